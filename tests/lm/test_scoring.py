"""Trie scores against the plain definition: one candidate, one word at a time, in float64."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.hashing import first_slot
from support.models import beside, config_of, enlarged, entered, without_padding
from torch import Tensor

from lm.backend import HELD, Backend
from lm.composition import HEADS, Composition
from lm.contexts.bag import BagOfWords
from lm.contexts.previous_words import PreviousWords
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.evaluation import perplexity
from lm.fusions import Input, Output
from lm.heads import Head
from lm.heads.class_softmax import ClassSoftmax
from lm.heads.hashed_softmax import HashedSoftmax
from lm.model import DocumentLM
from lm.rows import Rows
from lm.scoring import ScoreError, after, independent, pairs
from lm.tiny_models import context_after, read_by_words
from lm.trie import Candidates
from lm.vocabulary import END, START
from lm.zoo import ZOO

VOCABULARY = 23
NONE = Rows.of(torch.zeros(0, 0))
OTHER_HEADS = sorted(HEADS.keys() - {"softmax"})
SHAPES = [(r, n, tied) for r, n in (("lstm", 1), ("lstm", 2), ("cifg", 2)) for tied in (0, 1)]


FIRST_ORDER = [
    Composition(BagOfWords, Input, "Wang and Cho 2016, n = 1", ""),
    Composition(BagOfWords, Output, "", ""),
    Composition(PreviousWords, Output, "", ""),
]


def model_of(
    name: str,
    recurrence: str = "lstm",
    layers: int = 1,
    tied: bool = True,
    zoo: Mapping[str, Composition] = ZOO,
    head: str | None = None,
) -> DocumentLM:
    torch.manual_seed(5)
    shape: dict[str, Any] = {"recurrence": recurrence, "layers": layers, "tied": tied, "head": head}
    config = config_of(name, VOCABULARY, 6, 8, zoo=zoo, **shape)
    return enlarged(DocumentLM(config, zoo)).eval()


def word_scores(head: Head, features: Tensor) -> Tensor:
    """Scores (N, V) of all words by the definition of the head, in float64."""
    if isinstance(head, HashedSoftmax):
        return hashed_scores(head, features)
    logits = (features @ head.weight().T + head.bias).double()
    if isinstance(head, ClassSoftmax):
        of_class = (features @ head.classes.T + head.class_bias).double().log_softmax(dim=1)
        for c in range(of_class.shape[1]):
            own = [word for word in range(VOCABULARY) if math.isqrt(word) == c]
            logits[:, own] = logits[:, own].log_softmax(dim=1) + of_class[:, c : c + 1]
        return logits
    return logits.log_softmax(dim=1) if head.normalised else logits


def hashed_scores(head: HashedSoftmax, features: Tensor) -> Tensor:
    """Log-probabilities (N, V), with the row of each word that the last columns name, added."""
    table, columns = head.hashes.weight.double(), head.columns
    logits = (features[:, :columns] @ head.layer.weight().T + head.layer.bias).double()
    for row, words in enumerate(features[:, columns:].int().tolist()):
        for word in filter(None, words):
            begin = first_slot([word - 1], len(table), VOCABULARY)
            logits[row] += table[begin : begin + VOCABULARY]
    found = logits.log_softmax(dim=1)
    if not head.predicts_end:
        found[:, END] = 0
    return found


@torch.no_grad()
def sentence_score(model: DocumentLM, words: list[int], context: Rows) -> tuple[float, Rows]:
    """log p(words </s> | context) word by word, and the context after the sentence."""
    read = read_by_words(model, words, context)
    head = model.head

    def value() -> Tensor:
        if not model.context.per_word:
            return model.context.value(context).expand(len(read.hidden), -1)
        states = read.hidden if read.layers is None else read.layers
        query = torch.cat([torch.zeros(1, states.shape[1]), states[:-1]])
        rows = torch.zeros(len(query), dtype=torch.long)
        return model.context.word_values(model.context.prepared(context), rows, query)

    entered = model.fusion.output(
        read.hidden, value, lambda: model.embedding(torch.tensor([START, *words]))
    )
    features = head.features(*entered)
    if isinstance(head, HashedSoftmax):
        features = head.at_positions(features, read.positions)
    scores = word_scores(head, features)
    total = float(scores[range(len(scores)), [*words, END]].sum())
    return total, model.context.advance(context, model.context.summary(read))


word = st.sampled_from([0, *range(3, VOCABULARY)])  # control ids never stand in a text
sentence = st.lists(word, max_size=6)
k_best = st.lists(sentence, min_size=1, max_size=5)
document = st.lists(k_best, min_size=1, max_size=4)


@pytest.mark.parametrize(("recurrence", "layers", "tied"), SHAPES)
@given(lists=document)
@settings(max_examples=15)
def test_independent_scores_equal_word_by_word_scores(
    lists: list[list[list[int]]], recurrence: str, layers: int, tied: bool
) -> None:
    check_independent(model_of("rnnlm", recurrence, layers, tied), lists)


@pytest.mark.parametrize("head", OTHER_HEADS)
@given(lists=document)
@settings(max_examples=15, deadline=None)
def test_independent_scores_equal_them_with_other_heads(
    lists: list[list[list[int]]], head: str
) -> None:
    check_independent(model_of("rnnlm", head=head), lists)


def check_independent(model: DocumentLM, lists: list[list[list[int]]]) -> None:
    scores = independent(ScoringEngine.of(model), Candidates.of(lists))
    for candidates, row in zip(lists, scores, strict=True):
        expected = [sentence_score(model, c, model.context.start(1))[0] for c in candidates]
        np.testing.assert_allclose(row, expected, atol=1e-4)


@pytest.mark.parametrize("tied", [False, True])
@given(documents=st.lists(document, min_size=1, max_size=3))
@settings(max_examples=15)
def test_pairs_equal_every_candidate_scored_after_every_other(
    documents: list[list[list[list[int]]]], tied: bool
) -> None:
    check_pairs(model_of("codclm", tied=tied), documents)


@pytest.mark.parametrize("composition", FIRST_ORDER, ids=["bag-input", "bag", "attention"])
@given(documents=st.lists(document, min_size=1, max_size=3))
@settings(max_examples=10)
def test_pairs_equal_them_under_any_context_and_fusion_of_order_1(
    documents: list[list[list[list[int]]]], composition: Composition
) -> None:
    model = model_of("new", zoo={"new": composition})
    assert model.order == 1
    check_pairs(model, documents)


@pytest.mark.parametrize("name", ["codclm", "bag-input"])
@pytest.mark.parametrize("head", OTHER_HEADS)
@given(documents=st.lists(document, min_size=1, max_size=3))
@settings(max_examples=10, deadline=None)
def test_pairs_equal_them_with_other_heads(
    documents: list[list[list[list[int]]]], head: str, name: str
) -> None:
    check_pairs(model_of(name, head=head, zoo={**ZOO, "bag-input": FIRST_ORDER[0]}), documents)


def check_pairs(model: DocumentLM, documents: list[list[list[list[int]]]]) -> None:
    lists = [candidates for document in documents for candidates in document]
    first = np.array([t == 0 for document in documents for t in range(len(document))])
    contexts = [model.context.start(1)]
    matrices = pairs(ScoringEngine.of(model), Candidates.of(lists), first)
    for candidates, alone, matrix in zip(lists, first, matrices, strict=True):
        contexts = [model.context.start(1)] if alone else contexts
        assert matrix.shape == (len(contexts), len(candidates))
        for row, context in zip(matrix, contexts, strict=True):
            expected = [sentence_score(model, c, context)[0] for c in candidates]
            np.testing.assert_allclose(row, expected, atol=1e-4)
        contexts = [sentence_score(model, c, model.context.start(1))[1] for c in candidates]


@pytest.mark.parametrize(
    ("name", "head"),
    [*((name, None) for name in sorted(ZOO)), *(("ccdclm", head) for head in OTHER_HEADS)],
)
@given(lists=st.lists(k_best, min_size=1, max_size=3))
@settings(max_examples=5)
def test_scores_after_any_contexts_equal_word_by_word_scores(
    lists: list[list[list[int]]], name: str, head: str | None
) -> None:
    model = model_of(name, head=head)
    scorer, contexts = ScoringEngine.of(model), model.context.start(1)
    for candidates in lists:
        scores, summaries = alone(scorer, candidates, contexts)
        following = []
        for n, row in enumerate(scores):
            context = contexts.take(slice(n, n + 1))
            for k, candidate in enumerate(candidates):
                expected, then = sentence_score(model, candidate, context)
                assert row[k] == pytest.approx(expected, abs=1e-4)
                place = n * len(candidates) + k
                ours = model.context.advance(context, summaries.take(slice(place, place + 1)))
                both = without_padding(ours), without_padding(then)
                torch.testing.assert_close(*both, atol=1e-5, rtol=1e-4)
                following.append(ours)
        contexts = Rows.cat(following).take(slice(2))


@pytest.mark.parametrize(
    ("name", "passes"), [("dclm", 1), ("dclm-two-sentence", 1), ("ccdclm", 5), ("rlm-bow-ef-2", 5)]
)
def test_contexts_that_only_add_to_the_logits_share_one_pass_over_the_trie(
    name: str, passes: int
) -> None:
    model = model_of(name)
    scorer, contexts = ScoringEngine.of(model), random_contexts(model, 5)
    alone(scorer, [[3, 4], [3, 5, 6]], contexts)
    assert scorer.counts.nodes == 5 * passes  # <s>, 3, 4, 5, 6


def random_contexts(model: DocumentLM, n: int) -> Rows:
    """Contexts after two sentences of chance words each."""
    rng = np.random.default_rng(n)
    words = rng.integers(3, VOCABULARY, (n, 2, 4)).tolist()
    return Rows.cat([context_after(model, document) for document in words])


@torch.no_grad()
def alone(
    scorer: ScoringEngine, candidates: list[list[int]], contexts: Rows
) -> tuple[NDArray[np.float32], Rows]:
    """`after` of one list."""
    return after(scorer, [(Candidates.of([candidates]), contexts)])[0]


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("held", [1, 200, 1 << 25])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_requests_together_score_as_each_alone_however_much_fits(
    name: str, held: int, deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    lists = [
        [rng.integers(3, VOCABULARY, rng.integers(0, 6)).tolist() for _ in range(k)]
        for k in (3, 1, 5)
    ]
    model = model_of(name)
    contexts = [random_contexts(model, n) for n in (2, 5, 1)]
    expected = [alone(ScoringEngine.of(model), k, c) for k, c in zip(lists, contexts, strict=True)]
    monkeypatch.setitem(HELD, "cpu", held)
    scorer = ScoringEngine.of(model, Backend(deterministic=deterministic))
    requests = [(Candidates.of([k]), c) for k, c in zip(lists, contexts, strict=True)]
    for (scores, summary), (truth, then) in zip(after(scorer, requests), expected, strict=True):
        np.testing.assert_allclose(scores, truth, atol=1e-5)
        both = without_padding(summary), without_padding(then)
        torch.testing.assert_close(*both, atol=1e-5, rtol=1e-4)
    assert after(scorer, []) == []


@pytest.mark.parametrize(
    ("name", "head"),
    [
        *((name, None) for name in sorted(ZOO)),
        *((name, "classes") for name in ("rnnlm", "codclm", "ccdclm")),
    ],
)
def test_deterministic_scores_have_the_same_bits_for_any_threads_and_neighbours(
    name: str, head: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`after` of a context alone and among others; whole documents with 1 and 3 threads."""
    rng = np.random.default_rng(4)
    lists = Candidates.of(
        [
            [rng.integers(3, VOCABULARY, rng.integers(0, 9)).tolist() for _ in range(30)]
            for _ in range(6)
        ]
    )
    model, found = model_of(name, head=head), []
    contexts = random_contexts(model, 3)
    threads = torch.get_num_threads()
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            scorer = ScoringEngine.of(model, Backend(deterministic=True))
            found.append(by_order(scorer, lists, contexts))
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1]
    one = after(scorer, [(lists.part(2, 3), contexts.take(slice(1, 2)))])[0][0]
    many = after(scorer, [(lists.part(t, t + 1), contexts) for t in range(6)])[2][0]
    np.testing.assert_array_equal(one[0], many[1])


def by_order(scorer: ScoringEngine, lists: Candidates, contexts: Rows) -> list[bytes]:
    """The bits of all scores, computed the way that the model's order asks for."""
    if scorer.model.order == 0:
        return [scores.tobytes() for scores in independent(scorer, lists)]
    if scorer.model.order == 1:
        first = np.arange(len(lists)) == 0
        return [scores.tobytes() for scores in pairs(scorer, lists, first)]
    parts = [(lists.part(t, t + 1), contexts) for t in range(len(lists))]
    return [scores.tobytes() for scores, _ in after(scorer, parts)]


def test_memory_that_runs_out_halves_the_blocks_and_changes_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lm.backend.CACHED", 1 << 14)
    monkeypatch.setattr("lm.backend.FEWEST", 1 << 10)
    rng = np.random.default_rng(5)
    lists = Candidates.of(
        [[rng.integers(3, VOCABULARY, 7).tolist() for _ in range(40)] for _ in range(2)]
    )
    for name, most in (("rnnlm", 2500), ("codclm", 5000)):  # all words at once are more
        model = model_of(name)
        expected = by_order(ScoringEngine.of(model), lists, NONE)
        scorer = ScoringEngine.of(model, ShortOfMemory(most))
        found = by_order(scorer, lists, NONE)
        for ours, truth in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                np.frombuffer(ours, np.float32), np.frombuffer(truth, np.float32), atol=1e-5
            )
        assert scorer.backend.floats < 1 << 14
        with pytest.raises(MemoryError, match="out of memory: none left"):
            by_order(ScoringEngine.of(model, ShortOfMemory(most=3)), lists, NONE)


class ShortOfMemory(Backend):
    """A backend that has room for so many logits."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def buffer(self, like: Tensor, words: int) -> Tensor:
        if len(like) * words > self.most:
            raise torch.OutOfMemoryError("none left")
        return super().buffer(like, words)


def test_a_fault_in_the_scores_names_the_list() -> None:
    model = model_of("rnnlm")
    with torch.no_grad():
        model.embedding.weight[5] = torch.nan
        model.head.get_parameter("bias")[:] = 0
    lists = Candidates.of([[[3]], [[4], [3]]])
    with pytest.raises(ScoreError) as fault:
        independent(ScoringEngine.of(model), lists)
    assert fault.value.list == 0


def test_logits_that_overflow_are_a_fault_and_positive_ones_are_none() -> None:
    model, lists = model_of("rnnlm", head="self-normalised"), Candidates.of([[[3], [4]]])
    with torch.no_grad():
        model.head.get_parameter("bias")[:] = 100.0
    assert (independent(ScoringEngine.of(model), lists)[0] > 100).all()
    with torch.no_grad():
        model.head.get_parameter("bias")[4] = torch.inf
    with pytest.raises(ScoreError) as fault:
        independent(ScoringEngine.of(model), lists)
    assert (fault.value.list, fault.value.candidate) == (0, 1)


def test_bfloat16_products_stay_near_float32_ones_and_are_undone_afterwards() -> None:
    rng = np.random.default_rng(6)
    lists = Candidates.of(
        [[rng.integers(3, VOCABULARY, 5).tolist() for _ in range(20)] for _ in range(3)]
    )
    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    for name in ("rnnlm", "codclm"):
        model = model_of(name)
        precise, rough = (
            np.concatenate([np.frombuffer(s, np.float32) for s in by_order(scorer, lists, none)])
            for scorer in (
                ScoringEngine.of(model),
                ScoringEngine.of(model, Backend(dtype="bfloat16")),
            )
            for none in [NONE]
        )
        np.testing.assert_allclose(rough, precise, atol=0.5, rtol=0.02)
    assert matmul.fp32_precision == before


@pytest.mark.parametrize(("recurrence", "layers", "tied"), SHAPES)
@pytest.mark.parametrize("name", sorted(ZOO))
def test_perplexity_is_the_score_of_lists_whose_only_candidate_is_the_text(
    name: str, recurrence: str, layers: int, tied: bool
) -> None:
    model = model_of(name, recurrence, layers, tied)
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, size=23)
    tokens = rng.integers(3, VOCABULARY, size=lengths.sum()).astype(np.int32)
    offsets, documents = np.concatenate([[0], np.cumsum(lengths)]), np.array([0, 4, 5, 16, 23])
    corpus = beside(Corpus(tokens, offsets, documents))
    total = 0.0
    for first, last in zip(corpus.documents, corpus.documents[1:], strict=False):
        context = model.context.start(1)
        for s in range(first, last):
            words = tokens[corpus.sentences[s] : corpus.sentences[s + 1]].tolist()
            context = entered(model, corpus, context, s)
            scores, summary = alone(ScoringEngine.of(model), [words], context)
            context = model.context.advance(context, summary)
            total += float(scores[0, 0])
    for streams in (1, 3):
        result = perplexity(model, corpus, streams=streams, length=2)
        assert result.nats == pytest.approx(-total, rel=1e-6)
    assert result.tokens == lengths.sum()
    assert result.sentences == 23
