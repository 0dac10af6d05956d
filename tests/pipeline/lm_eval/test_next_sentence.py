"""`lm-eval next-sentence`: a model that knows what follows, and choices one by one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.models import save_models

from lm.checkpoint import SavedModel, load_model, save_model
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.evaluation import perplexity
from lm.model import Config, DocumentLM
from lm.scoring import after
from lm.side_information import SideText
from lm.tiny_models import context_after
from lm.trie import Candidates
from lm.vocabulary import Vocabulary
from rerank.errors import InputError, RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import BlockSettings, next_sentence
from rerank.report.next_sentence import NextSentenceReport

LETTERS = "abcdef"
WORDS = ["the", "lamp", "is", "lit", "it", "she", "burns", "light", "unheard"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(documents: list[list[str]], name: str = "text") -> str:
    Path(name).write_text("\n\n".join("\n".join(own) for own in documents) + "\n")
    return name


def run(
    lms: Mapping[str, Path | str], text: str, *, errors: str | None = None, **settings: Any
) -> NextSentenceReport:
    named = [(name, Path(folder)) for name, folder in lms.items()]
    return next_sentence(
        named, text, BlockSettings(**settings), notices=Notices(), errors=errors, device="cpu"
    )


def random_documents(*sizes: int) -> list[list[str]]:
    rng = np.random.default_rng(3)
    return [
        [" ".join(rng.choice(WORDS, int(rng.integers(1, 5)))) for _ in range(size)]
        for size in sizes
    ]


def score(saved: SavedModel, words: str, before: list[str]) -> float:
    """Log p of a sentence after others, read word by word."""
    ids, *text = (saved.vocabulary.encode(s.encode().split(b" ")) for s in (words, *before))
    request = Candidates.of([[ids]]), context_after(saved.model, text)
    return float(after(ScoringEngine.of(saved.model), [request])[0][0][0, 0])


def accuracy(report: NextSentenceReport, lm: int, score: str) -> float:
    return report.models[lm].accuracies[score].accuracy


def test_a_model_that_knows_what_follows_is_right_and_one_without_context_guesses() -> None:
    """A codclm made by hand: after a letter it raises the next one of the alphabet."""
    vocabulary = Vocabulary(tuple(letter.encode() for letter in LETTERS))
    V, H = len(vocabulary), len(LETTERS)
    model = DocumentLM(Config("codclm", V, V, H, tied=False))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.eye(V))
        model.recurrence.bias[0][: 3 * H] = 5.0  # all gates open
        for unit, (letter, follower) in enumerate(pairwise(LETTERS)):
            model.recurrence.lower[0][3 * H + unit, vocabulary.ids[letter.encode()]] = 5.0
            model.head.get_parameter("output")[vocabulary.ids[follower.encode()], H + unit] = 4.0
    save_model(Path("for"), model, vocabulary, {})
    save_model(Path("alone"), DocumentLM(Config("rnnlm", V, 2, 2)), vocabulary, {})
    text = write([[*LETTERS[k : k + 2]] * 2 for k in range(5)] * 3)
    found = run({"for": "for", "alone": "alone"}, text, block=5, context=1)
    assert (found.blocks, found.left_out) == (6, 0)
    first = accuracy(found, 0, "normalised")
    assert first > 0.5  # blocks may hold two passages that end in the same letter: they are tied
    assert found.models[0].accuracies["normalised"].ties == round(2 * 30 * (1 - first))
    assert accuracy(found, 1, "normalised") == pytest.approx(0.2)
    assert accuracy(found, 1, "pmi") == pytest.approx(0.2)
    assert found.models[1].accuracies["normalised"].ties == 30
    one = run({"for": "for"}, text, block=5, context=1, candidates="consecutive")
    assert accuracy(one, 0, "normalised") < 1  # both passages of a document are in a block
    distinct = write([[*LETTERS[k : k + 2]] for k in range(5)] * 3, "distinct")
    alike = run({"for": "for"}, distinct, block=5, context=1, candidates="consecutive")
    assert [accuracy(alike, 0, s) for s in ("normalised", "log_p", "pmi")] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm", "hrnnlm", "adclm"])
def test_choices_are_those_of_scores_one_by_one(
    name: str, model_folders: Mapping[str, Path]
) -> None:
    documents = random_documents(3, 7, 6, 4, 3, 9)
    passages = [
        (d, own[i : i + 3]) for d, own in enumerate(documents) for i in range(0, len(own) - 2, 3)
    ]
    found = run(
        {"m": model_folders[name]},
        write(documents),
        block=len(passages),
        context=2,
        candidates="consecutive",
        errors="wrong",
    )
    saved = load_model(model_folders[name])
    log_probs = np.array(
        [[score(saved, own[-1], given[:-1]) for _, own in passages] for _, given in passages]
    )
    alone = [score(saved, own[-1], []) for _, own in passages]
    truth = {
        "normalised": log_probs - np.log(np.exp(log_probs).mean(axis=0)),
        "log_p": log_probs,
        "pmi": log_probs - alone,
    }
    lines = [json.loads(line) for line in Path("wrong").read_text().splitlines()]
    for kind, matrix in truth.items():
        best = matrix.max(axis=1)
        close = matrix >= best[:, None] - 1e-4
        right = np.diagonal(close) / close.sum(axis=1)
        assert accuracy(found, 0, kind) == pytest.approx(right.mean())
        wrong = [line for line in lines if line["score"] == kind]
        missed = [i for i, value in enumerate(right) if value == 0]
        assert [line["right"] for line in wrong] == [passages[i][1][-1] for i in missed]
        for line, i in zip(wrong, missed, strict=True):
            d, own = passages[i]
            assert line["context"] == own[:-1]
            assert (line["lm"], line["block"], line["document"]) == ("m", 0, d)
            assert documents[d][line["sentence"]] == own[-1]
            chosen = [passages[k][1][-1] for k in np.flatnonzero(close[i])]
            assert line["chosen"] in chosen
            assert line["lead"] == pytest.approx(best[i] - matrix[i, i], abs=1e-4)


def test_blocks_are_the_same_for_all_models_and_follow_the_seed(
    model_folders: Mapping[str, Path],
) -> None:
    text = write(random_documents(*[9] * 8))
    both = run({n: model_folders[n] for n in ("codclm", "ccdclm")}, text, block=4, seed=5)
    alone = run({"ccdclm": model_folders["ccdclm"]}, text, block=4, seed=5)
    other = run({"ccdclm": model_folders["ccdclm"]}, text, block=4, seed=6)
    assert both.models[1] == alone.models[0]
    assert alone.models[0] != other.models[0]
    assert (both.blocks, both.comparisons[0].p) == (4, None)  # eight documents


def test_words_are_read_as_the_model_reads_them(model_folders: Mapping[str, Path]) -> None:
    """A backward model chooses as its twin does in a text with the words in the other order."""
    words = [word.decode() for word in load_model(model_folders["rnnlm"]).vocabulary.words]
    save_models({"codclm": Path("backward")}, words, 6, 8, oov_rate=0.25, backward=True)
    save_models({"codclm": Path("plain")}, words, 6, 8, oov_rate=0.25)
    documents = random_documents(*[8] * 6)
    turned = [[" ".join(own.split()[::-1]) for own in document] for document in documents]
    one = run({"m": "backward"}, write(documents), block=6)
    two = run({"m": "plain"}, write(turned, "turned"), block=6)
    assert one.models[0].accuracies == two.models[0].accuracies


@pytest.mark.parametrize(
    ("sizes", "settings", "told"),
    [
        ((8, 9, 3), {"block": 3}, "expected 3 documents with passages of 4 sentences, found 2; "),
        ((8, 9, 3), {"block": 3}, "give --block 2 or less, or --candidates consecutive"),
        ((4, 5), {"block": 3}, "found 2; give --block 2 or less$"),
        ((9,), {"block": 2}, "found 1; choose another text"),
        (
            (8, 4),
            {"block": 5, "candidates": "consecutive"},
            "expected 5 passages of 4 sentences, found 3; give --block 3 or less$",
        ),
        ((3, 2), {"block": 2}, "found 0; choose another text"),
    ],
)
def test_too_short_a_text_is_refused(
    sizes: tuple[int, ...], settings: dict[str, Any], told: str, model_folders: Mapping[str, Path]
) -> None:
    text = write(random_documents(*sizes))
    with pytest.raises(InputError, match=told):
        run({"m": model_folders["rnnlm"]}, text, errors="wrong", **settings)
    assert not Path("wrong").exists()


def test_models_that_need_more_than_earlier_sentences_are_refused(
    model_folders: Mapping[str, Path],
) -> None:
    words = [word.decode() for word in load_model(model_folders["rnnlm"]).vocabulary.words]
    names = "dclm-bilingual", "dclm-right-target"
    save_models({name: Path(name) for name in names}, words, 6, 8, oov_rate=0.0)
    save_models({"codclm": Path("turned")}, words, 6, 8, oov_rate=0.0, reverse_documents=True)
    text = write(random_documents(8, 8))
    told = {"dclm-bilingual": "needs the source sentences"}
    told |= {"dclm-right-target": "is given the next sentence", "turned": "--reverse-documents"}
    for name, message in told.items():
        with pytest.raises(UsageError, match=f"{name}.*{message}"):
            run({"good": model_folders["rnnlm"], "m": name}, text, block=2)


def test_the_errors_of_a_run_that_fails_are_not_written(model_folders: Mapping[str, Path]) -> None:
    saved = load_model(model_folders["rnnlm"])
    with torch.no_grad():
        saved.model.head.get_parameter("bias").fill_(torch.nan)
    save_model(Path("broken"), saved.model, saved.vocabulary, {})
    text = write(random_documents(8, 8))
    with pytest.raises(RerankError, match="broken: a language model returned NaN"):
        run({"good": model_folders["codclm"], "m": "broken"}, text, block=2, errors="wrong")
    assert not Path("wrong").exists()
    with pytest.raises(UsageError, match="output text is also the input text"):
        run({"good": model_folders["codclm"]}, text, block=2, errors="text")


def topical(sizes: list[int], labels: int) -> tuple[str, str, list[list[str]], list[list[str]]]:
    """A text and its topics, as files and as lists; labels are `0`, `1`, …, of a model's side."""
    documents = random_documents(*sizes)
    rng = np.random.default_rng(8)
    topics = [[str(n) for n in rng.integers(0, labels, len(own))] for own in documents]
    return write(documents), write(topics, "topics"), documents, topics


def test_each_candidate_is_given_its_own_topic() -> None:
    """Scores are those of whole passages, read with their topics, less those of their contexts."""
    save_models({"clstm-given-topic-carried": Path("m")}, WORDS, 6, 8, oov_rate=0.0)
    saved = load_model(Path("m"))
    _, _, documents, topics = topical([3, 4, 3, 6], 9)
    named = [
        (list(zip(own[i : i + 3], of[i : i + 3], strict=True)))
        for own, of in zip(documents, topics, strict=True)
        for i in range(0, len(own) - 2, 3)
    ]
    options: dict[str, Any] = {"block": len(named), "context": 2, "candidates": "consecutive"}
    settings = BlockSettings(**options)
    found = next_sentence(
        [("m", Path("m"))], "text", settings, notices=Notices(), topics="topics", device="cpu"
    )

    def nats(sentences: list[tuple[str, str]]) -> float:
        ids = [saved.vocabulary.encode(words.encode().split()) for words, _ in sentences]
        of = [saved.side["topics"].ids[topic.encode()] for _, topic in sentences]
        side = {"topics": SideText(np.array(of, dtype=np.int32), np.arange(len(of) + 1))}
        return perplexity(saved.model, replace(Corpus.of([ids]), side=side)).nats

    log_probs = np.array(
        [[nats(given[:-1]) - nats([*given[:-1], own[-1]]) for own in named] for given in named]
    )
    best = log_probs - np.log(np.exp(log_probs).mean(axis=0))
    assert accuracy(found, 0, "normalised") == np.mean(best.argmax(axis=1) == np.arange(len(named)))
    assert accuracy(found, 0, "log_p") == np.mean(log_probs.argmax(axis=1) == np.arange(len(named)))


def test_candidates_of_one_topic_and_topics_that_nobody_needs(
    model_folders: Mapping[str, Path],
) -> None:
    text, topics, _, _ = topical([8] * 10, 2)
    rnnlm = [("m", model_folders["rnnlm"])]
    settings = BlockSettings(block=4, candidates="same-topic")
    shared: dict[str, Any] = {"notices": Notices(), "device": "cpu"}
    found = next_sentence(rnnlm, text, settings, topics=topics, **shared)
    assert (found.blocks, found.left_out, found.candidates) == (4, 4, "same-topic")
    with pytest.raises(UsageError, match="--candidates same-topic needs the topic"):
        next_sentence(rnnlm, text, settings, **shared)
    with pytest.raises(UsageError, match="--topics: no model here needs"):
        next_sentence(rnnlm, text, BlockSettings(block=4), topics=topics, **shared)
    most = BlockSettings(block=30, candidates="same-topic")
    with pytest.raises(InputError, match="expected 30 passages of one topic, of all passages of 4"):
        next_sentence(rnnlm, text, most, topics=topics, **shared)
