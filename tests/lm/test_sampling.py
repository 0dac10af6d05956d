"""Sampled text: frequencies against the model's own probabilities, seeds, and how it ends."""

from collections import Counter
from collections.abc import Iterable

import pytest
import torch
from scipy.stats import chisquare
from support.models import OF_TEXT_ALONE, enlarged

from lm.composition import HEADS, Composition
from lm.contexts.last_hidden import LastHidden
from lm.contexts.previous_words import PreviousWords
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.fusions import Input, Output
from lm.heads import SCORED, Head, Softmax
from lm.histories import contexts_after
from lm.model import Config, DocumentLM
from lm.sampling import SampledDocument, sample
from lm.scoring import ScoreError, after
from lm.tiny_models import DOCUMENT, tiny_model
from lm.trie import Candidates
from lm.vocabulary import END, SPECIAL
from lm.zoo import ZOO

WORDS = range(len(SPECIAL), 10)  # of the tiny models
COMPOSITIONS = {
    **{name: ZOO[name] for name in OF_TEXT_ALONE if name != "rnnslm"},
    "attention": Composition(PreviousWords, Input, "", ""),
    "attention on the logits": Composition(PreviousWords, Output, "", ""),
    "classes": Composition(LastHidden, Output, "", "", HEADS["classes"]),
    "self-normalised": Composition(LastHidden, Output, "", "", HEADS["self-normalised"]),
}
START = Corpus.of([DOCUMENT[:2]])


class TrigramSoftmax(Softmax):
    """No linear head: the logit of the word before the last is raised, except at the beginning."""

    linear = False

    def at_positions(self, features: torch.Tensor, positions: object) -> torch.Tensor:
        words = positions.words[:, None].to(features)  # type: ignore[attr-defined]
        return torch.cat([features, positions.previous(words)], dim=1)  # type: ignore[attr-defined]

    def table(self, features: torch.Tensor) -> torch.Tensor:
        logits = features[:, :-1] @ self.weight().T + self.bias
        return torch.log_softmax(logits + 3 * (torch.arange(10) == features[:, -1:]), dim=1)

    def nll(self, features: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return -self.table(features)[torch.arange(len(targets)), targets]

    def predictor(self, backend: object) -> "TrigramSoftmax":
        return self

    def log_probs(
        self, features: torch.Tensor, parents: torch.Tensor, words: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        table = self.table(features)
        return table[parents, words], table[:, END]


def trigrams(hidden: int, context: int, embedding: torch.nn.Embedding, *, tied: bool) -> Head:
    return TrigramSoftmax(hidden, context, embedding)


def texts(model: DocumentLM, n: int, **options: object) -> list[SampledDocument]:
    given = {"documents": n, "sentences": 2, "seed": 5, "longest": 6, **options}
    return [*sample(model, **given)]  # type: ignore[arg-type]


def exact(
    model: DocumentLM, before: Corpus, prefixes: Iterable[tuple[int, ...]]
) -> dict[tuple[int, ...], float]:
    """Probabilities of sentences, complete ones, from the scoring engine."""
    lists = [list(prefix) for prefix in prefixes]
    ((scores, _),) = after(
        ScoringEngine.of(model), [(Candidates.of([lists]), contexts_after(model, before))]
    )
    found = torch.tensor(scores[0]).double().exp().tolist()
    return {tuple(prefix): p for prefix, p in zip(lists, found, strict=True)}


def test_frequencies_of_sentences_are_those_of_the_models_probabilities() -> None:
    """Sentences of one and two words, over four words; the rest is pooled.

    p(sentence) of the engine counts `<unk>`, `<s>` and an early `</s>`: with biases of −30 they
    are as good as impossible, so that nothing is renormalised.
    """
    model = DocumentLM.seeded(Config("ccdclm", 7, 6, 8), 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
        model.head.bias[:2] = -30.0
        model.head.bias[END] = 1.0
    before = Corpus.of([[[3, 4]]])
    short = [(a,) for a in range(3, 7)] + [(a, b) for a in range(3, 7) for b in range(3, 7)]
    truth = exact(model, before, [(), *short])
    nothing = truth.pop(())
    assert nothing > 0.01
    probabilities = {words: p / (1 - nothing) for words, p in truth.items()}
    drawn = texts(model, 8_000, sentences=1, start=before, together=8_000, longest=3)
    counts = Counter(tuple(document.sentences[0]) for document in drawn)
    observed = [counts[words] for words in short]
    expected = [8_000 * probabilities[words] for words in short]
    observed.append(8_000 - sum(observed))
    expected.append(8_000 - sum(expected))
    assert min(expected) > 5
    assert chisquare(observed, expected).pvalue > 0.01  # fixed seed


def test_the_second_sentence_is_drawn_in_the_context_of_the_first() -> None:
    model = enlarged(tiny_model(ZOO["codclm"]), 4.0)
    drawn = texts(model, 6_000, longest=1, together=6_000, sentences=2)
    first, most = Counter(d.sentences[0][0] for d in drawn).most_common(1)[0]
    observed = Counter(d.sentences[1][0] for d in drawn if d.sentences[0][0] == first)
    context = contexts_after(model, Corpus.of([[[first]]]))
    state = model.start(context, model.word_inputs())
    features = model.head.features(model.hidden(state), model.context.value(context))
    p = model.head.log_probabilities(features)[0, list(WORDS)].double().exp()
    expected = (most * p / p.sum()).tolist()
    assert chisquare([observed[word] for word in WORDS], expected).pvalue > 0.01
    begun = Counter(d.sentences[0][0] for d in drawn)
    other = [most * begun[word] / len(drawn) for word in WORDS]
    assert chisquare([observed[word] for word in WORDS], other).pvalue < 1e-4


@pytest.mark.parametrize("name", [*COMPOSITIONS, "trigrams"])
def test_the_batch_changes_nothing(name: str) -> None:
    composition = COMPOSITIONS.get(name, Composition(LastHidden, Output, "", "", trigrams))
    model = tiny_model(composition)
    whole = texts(model, 7, together=7, start=START)
    assert texts(model, 7, together=1, start=START) == whole
    assert texts(model, 7, together=3, start=START) == whole
    assert texts(model, 2, together=3, start=START) == whole[:2]
    assert len({document.sentences for document in map(hashable, whole)}) > 3


def hashable(document: SampledDocument) -> SampledDocument:
    return SampledDocument(tuple(map(tuple, document.sentences)), document.cut)  # type: ignore[arg-type]


def test_a_model_of_bags_of_words_is_refused() -> None:
    with pytest.raises(ValueError, match="a model of bags of words draws no sentences"):
        texts(tiny_model(ZOO["rnnslm"]), 1)


def test_a_head_that_reads_the_words_before_sees_those_that_were_drawn() -> None:
    """The word before the last is raised by 3 nats: it comes back far more often."""
    drawn = texts(tiny_model(Composition(LastHidden, Output, "", "", trigrams)), 300)
    plain = texts(tiny_model(Composition(LastHidden, Output, "", "")), 300)

    def returns(documents: list[SampledDocument]) -> float:
        sentences = [s for d in documents for s in d.sentences]
        found = [s[i] == s[i - 2] for s in sentences for i in range(2, len(s))]
        return sum(found) / len(found)

    assert returns(drawn) > 2 * returns(plain)


def test_another_seed_draws_another_text() -> None:
    model = tiny_model(ZOO["ccdclm"])
    assert texts(model, 3) == texts(model, 3)
    assert texts(model, 3) != texts(model, 3, seed=6)


def test_what_a_document_continues_changes_it() -> None:
    model = enlarged(tiny_model(ZOO["drnnlm"]))
    assert texts(model, 3) != texts(model, 3, start=START)
    assert texts(tiny_model(ZOO["rnnlm"]), 3) == texts(tiny_model(ZOO["rnnlm"]), 3, start=START)


def test_sentences_have_words_of_the_vocabulary_and_at_most_the_longest_number() -> None:
    model = tiny_model(ZOO["hrnnlm"])
    with torch.no_grad():
        model.head.bias[:3] = 4.0  # `<unk>`, `<s>` and `</s>` would be drawn all the time
    documents = texts(model, 200, sentences=3, longest=2)
    sentences = [sentence for document in documents for sentence in document.sentences]
    assert len(sentences) == 600
    assert {len(sentence) for sentence in sentences} == {1, 2}
    assert {word for sentence in sentences for word in sentence} <= set(WORDS)


def test_sentences_that_do_not_end_are_cut_off_and_counted() -> None:
    model = tiny_model(ZOO["codclm"])
    for bias, ends in ((-100.0, False), (100.0, True)):
        with torch.no_grad():
            model.head.bias[END] = bias
        documents = texts(model, 3, sentences=4, longest=5)
        assert {len(s) for d in documents for s in d.sentences} == {1 if ends else 5}
        assert [document.cut for document in documents] == [0 if ends else 4] * 3


def test_a_low_temperature_draws_the_most_probable_word_and_a_high_one_any() -> None:
    model = enlarged(tiny_model(ZOO["rnnlm"]), 4.0)
    hidden = model.hidden(model.start(model.context.start(1), model.word_inputs()))
    log_probs = model.head.log_probabilities(model.head.features(hidden, None))[0]
    best = max(WORDS, key=lambda word: float(log_probs[word]))
    cold = texts(model, 50, sentences=1, longest=1, temperature=0.01)
    assert {document.sentences[0][0] for document in cold} == {best}
    hot = texts(model, 3500, sentences=1, longest=1, temperature=100.0, together=3500)
    counts = Counter(document.sentences[0][0] for document in hot)
    weights = (log_probs[list(WORDS)].double() / 100).softmax(dim=0)
    assert chisquare([counts[w] for w in WORDS], (3500 * weights).tolist()).pvalue > 0.01


def test_a_model_that_returns_nan_is_an_error() -> None:
    model = tiny_model(ZOO["rnnlm"])
    with torch.no_grad():
        model.head.bias[4] = torch.nan
    with pytest.raises(ScoreError, match="a language model returned NaN"):
        texts(model, 1)


def test_a_model_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="without words"):
        texts(DocumentLM(Config("rnnlm", 3, 2, 2)), 1)


def test_a_head_that_is_not_linear_is_asked_for_all_words_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_model(Composition(LastHidden, Output, "", "", trigrams))
    features = torch.cat([torch.randn(5, 16), torch.tensor([[3.0], [4], [0], [9], [5]])], dim=1)
    found = model.head.log_probabilities(features)
    assert SCORED > 50
    monkeypatch.setattr("lm.heads.SCORED", 20)
    torch.testing.assert_close(model.head.log_probabilities(features), found)
    assert isinstance(model.head, TrigramSoftmax)
    torch.testing.assert_close(found, model.head.table(features).detach())
