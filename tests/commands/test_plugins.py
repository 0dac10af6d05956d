"""Scorers, decoders and models of other people: their laws, and their use as ours are used."""

import math
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.packages import install
from support.problems import BothSides
from support.world import ROOT, World

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.problem import DocumentProblem, Floats
from rerank import Document, Reranker, RerankError
from rerank.scorers.laws import LawError, check_scorer


def document(name: str, *sentences: Sequence[str]) -> Document:
    return Document(name, [[(text, {"x": 0.0}) for text in candidates] for candidates in sentences])


class Custom:
    def __init__(self, order: Any, score: Callable[[Document], Any]) -> None:
        self.order, self.score = order, score


def lengths(document: Document) -> list[list[int]]:
    return [[-len(text.split()) for text in sentence] for sentence in document.texts]


def repeats(document: Document) -> Pairwise:
    """Words that the sentence before has as well."""
    lists = [[""], *filter(None, document.texts)]
    return Pairwise(
        [
            np.array([[float(len({*a.split()} & {*b.split()})) for b in own] for a in before])
            for before, own in pairwise(lists)
        ]
    )


# The laws of scorers
DOCUMENTS = [
    document("talk", ["a b", "a", "c d e"], [], ["b", "b c", "d"], ["a b c", "e"]),
    document("news", ["e", "b a"], ["c", "a b c d"], ["d d", "a"]),
    document("one", ["a", "b b"]),
]


def counting() -> Callable[[Document], list[list[float]]]:
    """Scores that grow from call to call."""
    calls: list[str] = []

    def score(document: Document) -> list[list[float]]:
        calls.append(document.id)
        return [[float(len(calls))] * len(texts) for texts in document.texts]

    return score


def looking_back(document: Document) -> list[list[float]]:
    lasts = [len(texts[-1]) if texts else 0 for texts in document.texts]
    return [[float(sum(lasts[:t]))] * len(text) for t, text in enumerate(document.texts)]


def looking_ahead(document: Document) -> Pairwise:
    words = sum(len(texts) for texts in document.texts)
    return Pairwise([matrix + words for matrix in repeats(document).matrices])


def repeats_of_two(document: Document) -> list[Any]:
    """Words that one of the two sentences before has as well, as nested lists."""
    found, first, second = list[Any](), [""], [""]
    for text in document.texts:
        words = [[{*f"{a} {b}".split()} for b in second] for a in first]
        found.append([[[float(len(w & {*c.split()})) for c in text] for w in row] for row in words])
        first, second = (second, text) if text else (first, second)
    return found


@pytest.mark.parametrize(
    "scorer",
    [lengths, *(Custom(order, repeats) for order in (1, 2, None)), Custom(2, repeats_of_two)],
    ids=range(5),
)
def test_honest_scorers_keep_the_laws(scorer: Any) -> None:
    check_scorer(scorer, DOCUMENTS)


def far(document: Document) -> list[Any]:
    """Scores that look at the first candidate three sentences before."""
    sizes = [1, 1, *(len(texts) for texts in document.texts)]
    firsts = ["", "", "", *(texts[0] for texts in document.texts)]
    return [
        np.full(sizes[t : t + 3], float(firsts[t] > "word 7")) for t in range(len(document.texts))
    ]


def opening(document: Document) -> list[Any]:
    """Scores that look at the first candidate of the first sentence."""
    return [[float(document.texts[0][0] > "a a")] * len(texts) for texts in document.texts]


LONG = document("long", *[[f"word {(7 * k + t) % 20}" for k in range(20)] for t in range(6)])


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (Custom(2, far), "sentence 3 .* do not depend on sentences other than 1, 2, 3"),
        (Custom(0, opening), "sentence 2 .* do not depend on sentences other than 2"),
        (counting(), "do not depend on other documents"),
        (looking_back, "sentence 1 .* do not depend on sentences other than 1"),
        (Custom(0, repeats), "expected a problem of order 0"),
        (Custom(None, looking_ahead), "sentence 0 .* do not depend on sentences other than 0"),
        (lambda document: [[0.0]], "expected scores of "),
    ],
    ids=["distant", "opening", "state", "past", "order", "future", "shape"],
)
def test_every_law_of_scorers_is_checked(scorer: Any, message: str) -> None:
    with pytest.raises(LawError, match=message):
        check_scorer(scorer, [LONG] if "1, 2, 3" in message else DOCUMENTS)


# Scorers in Python
def decode(scorer: Any, *sentences: Sequence[str], search: str = "auto", **options: Any) -> Any:
    how = {"search": search, "scorers": {"own": scorer}, **options}
    (result,) = Reranker({"x": 1.0, "own": 1.0}, **how).decode([document("talk", *sentences)])
    return result


def test_matrices_follow_the_nearest_earlier_sentence_that_has_candidates() -> None:
    def score(document: Document) -> list[Any]:
        return [[[0, 0]], [], [[0, 2], [3, 0]], [[0], [0]]]

    result = decode(Custom(1, score), ["a b", "c"], [], ["c", "a b"], ["d"])
    assert (result.choices, result.score, result.baseline_score) == ((1, None, 0, 0), 3, 0)


def test_nested_lists_of_order_2_have_an_axis_for_each_sentence_before() -> None:
    def score(document: Document) -> list[Any]:
        return [[[[0, 0]]], [], [[[0, 1], [1, 0]]], [[[0, 2], [0, 0]], [[0, 0], [0, 0]]]]

    sentences: list[list[str]] = [["a b", "c"], [], ["c", "a b"], ["d", "e"]]
    result = decode(Custom(2, score), *sentences)
    assert (result.choices, result.score, result.exact) == ((0, None, 0, 1), 2, True)
    tables = [np.zeros(2), np.array([[0.0, 1], [1, 0]]), np.zeros((2, 2, 2))]
    tables[-1][0, 0, 1] = 2
    same = decode(Custom(2, lambda document: HistoryTable(tables, 2)), *sentences)
    assert (same.choices, same.score) == (result.choices, result.score)


class Acausal(BothSides):
    """A candidate gains where the next sentence takes the same one."""

    def scores_within(self, choices: Sequence[int]) -> list[Floats]:
        return [np.full(k, float(sum(choices) + t)) for t, k in enumerate(self.lengths)]


def test_a_problem_of_a_scorer_is_searched_as_it_is() -> None:
    arrays = [np.array([1.0, 2]), np.array([3.0, 4, 5])]
    result = decode(Custom(None, lambda document: Unary(arrays)), ["a", "b"], [], ["c", "d", "e"])
    assert (result.choices, result.score) == ((1, None, 2), 7)
    for merge in ("mean", "sample"):
        own = decode(Custom(1, repeats), ["a", "b"], ["b", "c"], search="survivors", merge=merge,
                     alpha=9.0)  # fmt: skip
        assert (own.choices, own.score) == ((1, 0), 1)
    pairs = Acausal([np.array([0.0, 2]), np.zeros(2)], 1.0)
    both = decode(Custom(None, lambda document: pairs), ["a", "b"], ["c", "d"])
    assert (both.choices, both.score, both.margins) == ((1, 1), 3, (0, 0))
    assert (both.baseline_score, both.best_score, both.optimal, both.exact) == (1, 3, False, False)
    assert both.near_ties == 0


def raising(document: Document) -> list[Any]:
    raise KeyError("no\nsuch word")


class Late(Unary):
    """Scores that turn out wrong inside the search."""

    def extend(self, states: Any, t: int) -> Any:
        if t == 0:
            return super().extend(states, t)
        return [1, 2] if self.scores[0][0] else 1 / 0, None


def given(order: int | None, *answer: Any) -> Custom:
    return Custom(order, lambda document: [*answer])


def problem(order: int | None, found: DocumentProblem) -> Custom:
    return Custom(order, lambda document: found)


PAIRS = Pairwise([np.zeros((1, 2)), np.zeros((2, 3))])
NUMBER = "expected a number or -inf, but the score is"
FAULTS: dict[str, tuple[Any, str]] = {  # of two sentences with candidates, another between them
    "sentences": (given(0, [0, 0], []), "expected scores of 3 sentences, those without"),
    "shape": (given(0, [0, 0], [], [0, 0]), r"^S, sentence 2 \(counted from 0\): .*shape \(3,\)"),
    "no number": (given(0, [0, 0], [], [0, 0, "é"]),
        r"^S, sentence 2 .*: expected scores, found V"),
    "NaN": (given(0, [0, math.nan], [], [0] * 3), rf"^S, sentence 0, candidate 1 .*: {NUMBER} NaN"),
    "+inf": (given(0, [0, 0], [], [0, 0, math.inf]), rf"^S, sentence 2, candidate 2 .*{NUMBER} \+"),
    "nothing": (Custom(0, lambda d: None),
        "^S: expected a list of arrays from a scorer of order 0"),
    "exception": (Custom(0, raising), "^S: expected scores, found KeyError at test_plugins.py:"),
    "matrix": (given(1, [[0, 0]], [], [[0] * 3]), r"^S, sentence 2 .*: .*shape \(2, 3\), found"),
    "order 2": (given(2, [[[0, 0]]], [], [[[0] * 3] * 3]),
        r"^S, sentence 2 .*: .*shape \(1, 2, 3\), found \(1, 3, 3\)"),
    "no order": (given(None, [0, 0], [], [0] * 3), "^S: expected a DocumentProblem from a scorer"),
    "exception in a search": (problem(None, Late([np.zeros(2), np.zeros(3)])),
        r"^S, sentence 2 \(counted from 0\): expected scores, found ZeroDivisionError"),
    "shape in a search": (problem(None, Late([np.ones(2), np.zeros(3)])), "^S, sentence 2 .*shape"),
    "NaN in a search": (problem(None, Unary([np.zeros(2), np.array([0, 0, np.nan])])),
        rf"^S, sentence 2, candidate 2 .*: {NUMBER} NaN"),
    "NaN of a pair": (problem(1, Pairwise([np.zeros((1, 2)), np.full((2, 3), np.nan)])),
        rf"^S, sentence 2, candidate 0 .*: {NUMBER} NaN"),
    "lengths": (problem(1, Pairwise([np.zeros((1, 2))])),
        r"^S: .*lengths \(2, 3\), .*found \(2,\)"),
    "higher order": (problem(0, PAIRS), "^S: expected a problem of order 0, as the scorer states"),
}  # fmt: skip


@pytest.mark.parametrize(("scorer", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_a_scorer_is_one_line_with_its_place(scorer: Any, message: str) -> None:
    pattern = message.replace("S", "scorer 'own', document 'talk'", 1)
    with pytest.raises(RerankError, match=pattern if message[0] == "^" else message) as fault:
        decode(scorer, ["a", "b"], [], ["c", "d", "e"])
    assert "\n" not in str(fault.value)
    assert fault.value.exit_code == 1


@pytest.mark.parametrize("scorer", [3, Custom(-1, lengths), Custom("1", lengths)])
def test_what_is_no_scorer_is_refused(scorer: Any) -> None:
    with pytest.raises(RerankError, match="scorer 'own': expected") as fault:
        decode(scorer, ["a"])
    assert fault.value.exit_code == 2


# In the shell, by entry points
PACKAGE = '''
from decoders.batching import path_score
from decoders.problem import Path
from decoders.table import ANY, NONE, Decoder
from lm.composition import Composition


def last(problem):
    """The path of last candidates."""
    choices = tuple(length - 1 for length in problem.lengths)
    return Path(choices, path_score(problem, choices))


class Repeats:
    order, digest = 1, "1"

    def __init__(self, factor="1"):
        self.factor = float(factor)

    def score(self, document):
        matrices, before = [], [""]
        for texts in document.texts:
            own = [[self.factor * len({*a.split()} & {*b.split()}) for b in texts] for a in before]
            matrices.append(own)
            before = texts or before
        return matrices


LAST = Decoder("last", "somebody:last", ANY, NONE, "O(T) scores", "somebody")
SUMS = Composition("lm.contexts:LastHidden", "lm.fusions:Output", "somebody", "?")
'''
POINTS: Mapping[str, Mapping[str, str]] = {
    "scorers": {"again": "Repeats"},
    "decoders": {"last": "LAST", "beam": "LAST"},
    "models": {"sums": "SUMS"},
}
LISTS = ["0 ||| a lamp is lit", "0 ||| lit", "1 ||| it gives", "1 ||| the lamp", "1 ||| the"]
DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --summary s.json"


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    install(world.folder, monkeypatch, PACKAGE, POINTS)
    world.write("dev.kbest", [f"{line} ||| LM0= -{n} ||| -1" for n, line in enumerate(LISTS)])
    world.weights("w.json", {"LM0": 0.5, "again": 2})
    return world


def test_decode_uses_scorers_of_a_package_and_the_cache_by_their_digest(here: World) -> None:
    run = f"{DECODE} --scorer again=again"
    first = here.ok(run)
    assert first.lines == ["a lamp is lit", "the lamp"]
    assert "again: 1 documents scored in " in first.err
    assert "|scorers:again=" in here.json("s.json")["signature"]
    second = here.ok(run)
    assert "again: 1 documents from the cache\n" in second.err
    assert second.out == first.out
    for changed in (f"{run}:3", f"{run} --no-cache"):
        assert "from the cache" not in here.ok(changed).err
    lines = here.lines("dev.kbest")
    here.write("dev.kbest", lines[:-1])  # scores may depend on the whole list
    assert "from the cache" not in here.ok(run).err


@pytest.mark.parametrize(("content", "message"), [
    (b"[rerank.scorers]\n\xff = x:y\n",
        "^rerank: the entry_points.txt of somebody 1.0 cannot be"),
    (b"[rerank.scorers]\nagain =\n", "scorer 'again', , cannot be loaded: .*package somebody$"),
])  # fmt: skip
def test_unreadable_entry_points_are_named(content: bytes, message: str, here: World) -> None:
    points = here.folder / "somebody-1.0.dist-info" / "entry_points.txt"
    points.write_bytes(content)
    run = here.run(f"{DECODE} --scorer again=again")
    assert run.exit == 2
    assert re.search(message, run.err, re.MULTILINE)


@pytest.mark.parametrize("change", ['digest = 1, "2"', "digest = 1, None"])
def test_scores_are_not_taken_from_a_scorer_that_changed(
    change: str, here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"{DECODE} --scorer again=again"
    here.ok(run)
    shutil.rmtree(here.folder / "somebody-1.0.dist-info")
    source = PACKAGE.replace('digest = 1, "1"', change)
    install(here.folder, monkeypatch, source, POINTS, name="other")
    for cached in (False, "None" not in change):
        assert ("from the cache" in here.ok(run).err) == cached


LOUD = """
import os, sys

print("loading")

def scores(document):
    print("scoring")
    os.write(1, b"by descriptor\\n")
    os.system("echo by a child")
    return [[0] * len(own) for own in document.texts]

def ends(document=None):
    sys.exit(0)

def quiet(): return scores
def late(): return ends
"""


@pytest.mark.parametrize(
    ("entry", "exit", "said"),
    [
        ("loud", 0, ["loading", "scoring", "by descriptor", "by a child"]),
        ("late", 1, ["rerank: scorer 's', document 'all': expected scores, found SystemExit at l"]),
        ("early", 1, ["rerank: --scorer s=early: the scorer cannot be made: SystemExit: 0; check"]),
    ],
)
def test_what_a_scorer_prints_is_no_translation_and_its_exit_is_a_fault(
    entry: str, exit: int, said: Sequence[str], here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"loud": "quiet", "late": "late", "early": "ends"}
    install(here.folder, monkeypatch, LOUD, {"scorers": own}, name="loud")
    here.weights("w.json", {"LM0": 0.5, "s": 1})
    path = {"PYTHONPATH": f"{ROOT}{os.pathsep}{here.folder}"}
    result = here.process(
        f"decode --kbest dev.kbest --no-docs one --weights w.json -q --scorer s={entry}", env=path
    )
    assert (result.exit, result.lines) == (exit, [] if exit else ["a lamp is lit", "it gives"])
    assert not [line for line in said if line not in result.err]


def test_decode_searches_with_the_decoder_of_a_package_if_new(here: World) -> None:
    here.weights("w.json", {"LM0": 1})
    assert here.ok(DECODE).lines == ["a lamp is lit", "it gives"]
    assert here.ok(f"{DECODE} --search last").lines == ["lit", "the"]
    assert "rerank|search:last|exact:no" in here.json("s.json")["signature"]
    assert here.ok(f"{DECODE} --search beam").lines == ["a lamp is lit", "it gives"]


def test_a_package_s_model_is_trained_too(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    here.write("text", "a lamp is lit\nit gives light\n\nthe lamp\na lamp gives light\n")
    here.ok("train-lm --model sums --train text --valid text --out lm --embed 4 --hidden 4"
            " --epochs 1 -q")  # fmt: skip
    here.weights("w.json", {"LM0": 0, "own": 1, "ownoov": 0})
    assert len(here.ok(f"{DECODE} --lm own=lm").lines) == 2
    assert "|ctx:1|lm:own=" in here.json("s.json")["signature"]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    assert "no model 'sums'" in here.refused("perplexity --lm lm text", exit=3)
