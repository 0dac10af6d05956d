"""The library in memory: as the README shows it, and with the same results as `rerank decode`."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rerank
from decoders.arrays import Pairwise
from decoders.problem import DocumentProblem
from rerank import Document, Reranker, RerankWarning
from rerank.corpus.document import Candidate
from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, Reports, Scoring, Search, TunedWeights, decode, tune_mert

Sentences = list[list[Candidate]]
TALK = Document(
    "talk-1",
    [
        [("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})],
        [("it sleeps", {"tm": -2.0}), ("he sleeps", {"tm": -1.9})],
    ],
)


def short(document: Document) -> list[list[int]]:
    return [[-len(text.split()) for text in sentence] for sentence in document.texts]


class SameWord:
    """Order 1: 1 for a candidate that begins like the one before it."""

    order = 1

    def score(self, document: Document) -> DocumentProblem:
        lists = [texts for texts in document.texts if texts]
        first = [[text.split()[0] for text in texts] for texts in lists]
        matrices = [np.zeros((1, len(lists[0])))] if lists else []
        for before, here in pairwise(first):
            matrices.append(np.array([[float(a == b) for b in here] for a in before]))
        return Pairwise(matrices)


def test_the_example_of_the_readme_runs_as_written() -> None:
    from rerank import Document, Reranker

    talk = Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})], [("it sleeps", {"tm": -2.0}), ("he sleeps", {"tm": -1.9})]])  # fmt: skip  # noqa: E501
    short = lambda document: [[-len(text.split()) for text in sentence] for sentence in document.texts]  # fmt: skip  # noqa: E731, E501
    reranker = Reranker({"tm": 1.0, "short": 0.1}, scorers={"short": short})
    (result,) = reranker.decode([talk])
    assert (result.choices, result.texts) == ((0, 1), ("the cat", "he sleeps"))
    assert result.score == pytest.approx(-1.0 - 1.9 - 0.1 * 4)
    assert result.exact
    assert np.array(result.margins) == pytest.approx([0.2, 0.1])


def test_a_scorer_that_sees_the_sentence_before_decides_with_it() -> None:
    sentences: Sentences = [[("a b", {"x": 0.0})], [("c", {"x": 1.0}), ("a", {"x": 0.5})]]
    reranker = Reranker({"x": 1.0, "same": 1.0}, scorers={"same": SameWord()})
    (result,) = reranker.decode([Document("d", sentences)])
    assert (result.choices, result.texts, result.score) == ((0, 1), ("a b", "a"), 1.5)


def test_names_of_the_package_load_numpy_and_torch_when_they_are_used() -> None:
    program = """
import sys, rerank
heavy = {"numpy", "torch", "rerank.api"}
assert not heavy & sys.modules.keys()
assert {"Reranker", "tune"} <= set(dir(rerank))
rerank.Reranker
assert "torch" not in sys.modules
try:
    rerank.Rerankr
except AttributeError as fault:
    print(fault)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "module 'rerank' has no attribute 'Rerankr'\n")


# The same as with files

words = st.lists(st.sampled_from(["the", "cat", "it", "sleeps", "é"]), max_size=4).map(" ".join)
numbers = st.integers(-40, 40).map(lambda n: n / 8)
candidates = st.tuples(words, st.fixed_dictionaries({"tm": numbers, "lm": numbers}))
documents = st.lists(
    st.lists(st.lists(candidates, max_size=3), min_size=1, max_size=3), min_size=1, max_size=3
).filter(lambda found: any(lists for sentences in found for lists in sentences))


def written(folder: Path, lists: Sequence[Sentences], scores: Sequence[Sequence[float]]) -> Lists:
    """The documents as files for the shell; scores of all candidates for `--scores`."""
    lines, ids, t = [], [], 0
    for d, sentences in enumerate(lists):
        for found in sentences:
            ids.append(f"d{d}")
            for text, features in found:
                columns = " ".join(f"{name}= {value}" for name, value in features.items())
                lines.append(f"{t} ||| {text} ||| {columns} ||| 0")
            t += 1
    values = [score for row in scores for score in row]
    for name, rows in (("kbest", lines), ("docs", ids), ("scores", values)):
        (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    score_files = {"scores": (("short", folder / "scores"),)}
    return Lists(folder / "kbest", folder / "docs", score_files=score_files)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # empty and equal candidates
@given(documents, st.sampled_from(["auto", "beam", "smc", "mbr"]), st.integers(0, 3))
def test_results_are_those_of_the_same_documents_in_files(
    tmp_path: Path, lists: list[Sentences], search: str, seed: int
) -> None:
    given = [Document(f"d{d}", sentences) for d, sentences in enumerate(lists)]
    scores = [[s for found in short(document) for s in found] for document in given]
    files = written(tmp_path, lists, scores)
    weights = {"tm": 1.0, "lm": 0.5, "short": 0.25}
    content = {"schema": 1, "weights": weights, "alpha": 0.5, "mbr_spread": 0.5}
    (tmp_path / "w.json").write_text(json.dumps(content))
    scale: Any = {"spread" if search == "mbr" else "alpha": 0.5}
    reports = Reports(summary=tmp_path / "summary")
    how = Search(search).listing(2) if search in ("beam", "smc") else Search(search)
    how = how.seeded(seed)
    done = decode(
        files, tmp_path / "w.json", tmp_path / "out", search=how, reports=reports, notices=Notices()
    )
    assert done is not None
    options: Any = {"n_best": how.options.n_best, "seed": seed}
    reranker = Reranker(weights, scorers={"short": short}, search=search, **scale, **options)
    results = reranker.decode(given)
    told = json.loads((tmp_path / "summary").read_text())["documents"]
    assert [result.to_dict() for result in results] == told
    texts = [text for result in results for text in result.texts]
    assert texts == (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1]
    from_file = Reranker(tmp_path / "w.json", scorers={"short": short}, search=search, **options)
    read = list(rerank.read(tmp_path / "kbest", tmp_path / "docs"))
    assert [result.to_dict() for result in from_file.decode(read)] == told
    reverse = reranker.decode(given[::-1])
    assert [(one.choices, one.score) for one in reverse[::-1]] == [
        (one.choices, one.score) for one in results
    ]


def test_language_models_score_as_in_the_shell(
    tmp_path: Path, model_folders: Mapping[str, Path]
) -> None:
    lists: list[Sentences] = [
        [[("the lamp", {"tm": -1.0}), ("a lamp", {"tm": 0.0})], [("it is lit", {"tm": 0.0})]],
        [[("no light", {"tm": 0.5}), ("she burns", {"tm": 0.0}), ("it", {"tm": -0.5})]],
    ]
    files = written(tmp_path, lists, [[0.0] * 6])
    folder = model_folders["ccdclm"]
    files = Lists(files.kbest, files.docs, lms=(("lm", folder),), scoring=Scoring(no_cache=True))
    weights = {"tm": 1.0, "lm": 0.5, "lmoov": -1.0}
    (tmp_path / "w.json").write_text(json.dumps(weights))
    done = decode(files, tmp_path / "w.json", tmp_path / "out", notices=Notices())
    assert done is not None
    reranker = Reranker(weights, lm={"lm": folder}, no_cache=True, beam=8)
    results = reranker.decode(Document(f"d{d}", found) for d, found in enumerate(lists))
    assert [(one.id, one.choices, one.score) for one in results] == [
        (one.id, one.choices, one.score) for one in done.documents
    ]


# What is refused, and what is said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beem": 3}, "no option 'beem'; did you mean 'beam'?"),
        ({"ess_threshold": 3}, "no option 'ess_threshold'; did you mean 'beam_threshold'?"),
        ({"xyzzy": 3}, "no option 'xyzzy'; there are alpha, beam, "),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as fault:
        Reranker({"tm": 1.0}, **options)
    assert str(fault.value).startswith(message)


def test_faults_name_the_scorer_the_feature_or_the_search() -> None:
    with pytest.raises(UsageError, match="scorer 'tm': talk-1 already has a feature 'tm'"):
        Reranker({"tm": 1.0}, scorers={"tm": short}).decode([TALK])
    with pytest.raises(RerankError, match=r"'short'.*talk-1"):
        Reranker({"tm": 1.0, "short": 1.0}, scorers={"short": lambda d: [[1.0], [1.0]]}).decode(
            [TALK]
        )
    with pytest.raises(RerankError, match="found one of 'x'; there are: tm"):
        Reranker({"x": 1.0}).decode([TALK])
    with pytest.raises(UsageError, match="no decoder is called 'beem'"):
        Reranker({"tm": 1.0}, search="beem").decode([TALK])
    with pytest.raises(UsageError, match="--particles"):
        Reranker({"tm": 1.0}, search="beam", particles=3).decode([TALK])


def test_warnings_are_those_of_python() -> None:
    impossible = [[("a", {"x": -1e100})], [("b", {"x": -1e100})]]
    with pytest.warns(RerankWarning, match="no possible path"):
        Reranker({"x": 1.5e208}).decode([Document("d", impossible)])
    with pytest.warns(RerankWarning, match="feature without weight; 0 is used: tm"):
        Reranker({}, default_weight=0.0, scorers={}, sparse={"s": 1.0}).decode([TALK])


def test_no_document_has_no_result() -> None:
    assert Reranker({"tm": 1.0}).decode([]) == []
    (result,) = Reranker({"tm": 1.0}).decode([Document("d", [[], []])])
    assert (result.choices, result.texts, result.score) == ((None, None), ("", ""), 0.0)


def test_lines_about_a_run_go_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="rerank"):
        Reranker({"tm": 1.0}).decode([TALK])
    assert caplog.messages[0].startswith("search: viterbi, exact")


def test_all_zero_weights_are_for_decoders_that_treat_candidates_alike() -> None:
    sentences: Sentences = [[("a b", {"x": 1.0}), ("b c", {"x": 3.0}), ("b c d", {"x": 2.0})]]
    document = Document("d", sentences)
    (result,) = Reranker({"x": 0.0}, search="mbr").decode([document])
    assert result.texts == ("b c",)  # it shares most words with the others
    for search in ("auto", "beam"):
        with pytest.raises(RerankError, match="all-zero weights; only --search smc, ffbs, mbr"):
            Reranker({"x": 0.0}, search=search).decode([document])


# Tuning


@pytest.mark.filterwarnings("ignore:no alpha:rerank.RerankWarning")
def test_tuning_finds_the_weights_that_decode_to_the_references() -> None:
    """Feature x is high for the wrong candidates, y for the right ones; `short` says nothing."""
    rng, documents, references = np.random.default_rng(1), list[Document](), list[list[str]]()
    for d in range(6):
        sentences: Sentences = []
        for _ in range(4):
            texts = [" ".join(rng.choice(["a", "b", "c", "d"], 5 + k % 2)) for k in range(3)]
            features = [
                {"x": float(k), "y": 2.0 if k == 1 else float(rng.normal())} for k in range(3)
            ]
            sentences.append(list(zip(texts, features, strict=True)))
        documents.append(Document(f"d{d}", sentences))
        references.append([candidates[1][0] for candidates in sentences])
    with pytest.warns(RerankWarning, match="no alpha is fitted: the best candidates score highest"):
        weights = rerank.tune(documents, references, scorers={"short": short}, seed=2)
    assert set(weights.dense) == {"x", "y", "short"}
    results = Reranker(weights, scorers={"short": short}).decode(documents)
    assert [list(result.texts) for result in results] == references
    start = {"x": 0.0, "y": 1.0, "short": 0.5}
    kept = rerank.tune(documents, references, start=start, features=["y"], scorers={"short": short})
    assert (kept.dense["x"], kept.dense["short"]) == ((0.0,), (0.5,))
    with pytest.raises(RerankError, match="document 'd5': expected references of 4 sentences"):
        rerank.tune(documents, references[:-1], start=start, scorers={"short": short})
    with pytest.raises(TypeError, match="did you mean 'seed'"):
        rerank.tune(documents, references, seeed=1)  # type: ignore[call-arg]


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # sentences without candidates
def test_tuned_weights_are_those_of_tune_mert(tuning_lists: Path) -> None:
    lists = Lists("dev.kbest", "dev.docs", scoring=Scoring(no_cache=True))
    tuned = tune_mert(
        lists, ["dev.ref"], TunedWeights("w.json", start="start.json"), notices=Notices()
    )
    assert tuned is not None
    lines = iter(Path("dev.ref").read_text().splitlines())
    documents = list(rerank.read("dev.kbest", "dev.docs"))
    references = [[next(lines) for _ in document.sentences] for document in documents]
    found = rerank.tune(documents, references, start="start.json")
    assert (found.dense, found.alpha) == (tuned.weights.dense, tuned.weights.alpha)


# Evaluation


def systems() -> Iterator[tuple[str, list[list[str]]]]:
    yield "1-best", [["the cat sat on the mat"], ["it sleeps all day long", "so it does"]]
    yield "reranked", [["the cat sat on a mat"], ["he sleeps all day long", "so he does"]]


def test_evaluation_is_that_of_files(tmp_path: Path) -> None:
    from rerank.pipeline import evaluate

    references = [["the cat sat on the mat"], ["he sleeps all day long", "yes he does"]]
    found = rerank.evaluate(dict(systems()), references, seed=3)
    for name, texts in (*systems(), ("ref", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for one in texts for line in one))
    (tmp_path / "docs").write_text("0\n1\n1\n")
    paths = [tmp_path / name for name, _ in systems()]
    expected = evaluate(tmp_path / "docs", [tmp_path / "ref"], paths, seed=3, notices=Notices())
    assert [one.bleu for one in found.systems] == [one.bleu for one in expected.systems]
    assert found.documents == expected.documents
    assert [one.name for one in found.systems] == ["1-best", "reranked"]
    several = [[[one, "the cat"] for one in document] for document in references]
    assert rerank.evaluate(dict(systems()), several).systems[0].bleu >= found.systems[0].bleu
    with pytest.raises(ValueError, match="system '1-best': expected a text for each sentence"):
        rerank.evaluate(dict(systems()), references[:1])


def test_minus_infinity_under_a_negative_weight_names_scorer_document_and_sentence() -> None:
    own = lambda document: [[], [0.0, -np.inf]]  # noqa: E731
    sentences: Sentences = [[], [("a", {"tm": 0.0}), ("b", {"tm": 0.0})]]
    with pytest.raises(RerankError) as fault:
        list(
            Reranker({"tm": 1.0, "own": -1.0}, scorers={"own": own}).decode(
                [Document("d", sentences)]
            )
        )
    message = (
        "scorer 'own', document 'd', sentence 1 (counted from 0): −inf under a negative weight"
    )
    assert str(fault.value) == message


@pytest.mark.filterwarnings("ignore:.*feature without weight:rerank.RerankWarning")
def test_lists_are_made_of_the_outputs_of_systems(tmp_path: Path) -> None:
    outputs = {"A": ["the cat", "it sleeps"], "B": ["a cat", "he sleeps"]}
    for name, lines in outputs.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    systems = {name: tmp_path / name for name in outputs}
    documents = rerank.read(systems=systems, no_docs="one")
    for _ in range(2):  # read again from the same file
        (document,) = documents
        assert document.texts == [["the cat", "a cat"], ["it sleeps", "he sleeps"]]
    results = Reranker({"sysB": 1.0}, default_weight=0).decode(documents)
    assert [result.texts for result in results] == [("a cat", "he sleeps")]


def test_lists_in_another_encoding_are_read(tmp_path: Path) -> None:
    path = tmp_path / "list"
    lines = "0 ||| un café ||| tm= 1 ||| 1\n0 ||| café ||| tm= 0 ||| 0\n"
    path.write_bytes(lines.encode("latin-1"))
    (document,) = rerank.read(path, no_docs="one", encoding="latin-1")
    assert document.texts == [["un café", "café"]]


def test_an_unknown_option_of_reading_is_named_with_a_similar_one() -> None:
    with pytest.raises(TypeError, match="no option 'no_doc'; did you mean 'no_docs'"):
        rerank.read("list", no_doc="one")  # type: ignore[call-arg]
