"""`rerank.tune`: the settings and the start of `rerank tune-mert`, and errors in Python's words."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from support.world import WORDS, World

import rerank
from rerank import Document, Reranker, RerankError

NAMES = "abcde"
LENGTH = 2  # sentences of a document
TUNE = "tune-mert --kbest list --docs ids --ref refs --pair-scores echo=pairs --out w.json"


class Echo:
    """A scorer of order 1: words of a candidate that the candidate before it has as well."""

    order = 1

    def score(self, document: Document) -> list[list[list[float]]]:
        words = [[{*text.split()} for text in texts] for texts in document.texts]
        return [
            [[float(len(a & b)) for b in after] for a in before]
            for before, after in pairwise([[set[str]()], *words])
        ]


@pytest.fixture
def references(world: World) -> list[list[str]]:
    """References of the list that is written, whose totals are weighted sums of its features."""
    rng = np.random.default_rng(3)
    lines, pairs, references = list[str](), list[str](), list[list[str]]()
    for d, name in enumerate(NAMES):
        texts = list[list[str]]()
        references.append([" ".join(rng.choice(WORDS, 7)) for _ in range(LENGTH)])
        for t, reference in enumerate(references[-1]):
            texts.append([])
            for faults in rng.permutation(4).tolist():
                words = reference.split()
                for place in rng.choice(7, faults, replace=False).tolist():
                    words[place] = str(rng.choice(WORDS))
                tm, lm = (rng.normal(-faults, 2.0, 2).round(2)).tolist()
                total = round(0.75 * tm + 0.25 * lm, 4)
                lines.append(
                    f"{LENGTH * d + t} ||| {' '.join(words)} ||| tm= {tm} lm= {lm} ||| {total}"
                )
                texts[-1].append(" ".join(words))
        for t, matrix in enumerate(Echo().score(Document(name, texts))):
            pairs += [
                f"{name}\t{t}\t{i if t else '-'}\t{k}\t{value}"
                for i, row in enumerate(matrix)
                for k, value in enumerate(row)
            ]
    for file, content in {"list": lines, "pairs": pairs, "refs": [*chain(*references)]}.items():
        world.write(file, content)
    world.write("ids", [name for name in NAMES for _ in range(LENGTH)])
    return references


AS_IN_THE_SHELL: dict[str, Mapping[str, Any]] = {  # beside --select none, but for cv
    "--select cv": {"select": "cv"},
    "--select cv --length-ratio keep": {"select": "cv", "length_ratio": "keep"},
    "--length-ratio 0.98 --length-price 2": {"length_ratio": 0.98, "length_price": 2},
    "--length-ratio free --shrink 0": {"length_ratio": "free", "shrink": 0},
    "--objective chrf": {"objective": "chrf"},
    "--objective bleu --objective ter=2": {"objective": {"bleu": 1, "ter": 2}},
    "--replicates 3 --seed 7": {"replicates": 3, "seed": 7},
    "--hold-out 0.3": {"hold_out": 0.3},
    "--algorithm pro": {"algorithm": "pro"},
    "--features tm,echo": {"features": ["tm", "echo"]},
    "--features total,echo": {"features": ["total", "echo"]},
    "--range echo=0:0.1 --range tm=0:": {"range": {"echo": (0, 0.1), "tm": (0, None)}},
    "--threads 2 --starts 2": {"threads": 2, "starts": 2},
    "--search beam --beam 2": {"search": "beam", "beam": 2},
    "--agreement": {"agreement": True},
    "--tokenize 13a": {"tokenize": "13a"},
}


def in_memory(documents: Iterable[Document]) -> list[Document]:
    """Documents without what only files have."""
    return [
        Document(
            document.id,
            [[(text, dict(named)) for text, named in k_best] for k_best in document.sentences],
            totals=document.totals,
        )
        for document in documents
    ]


def tuned(world: World) -> dict[str, tuple[float, ...]]:
    return {name: tuple(values) for name, values in world.json("w.json")["weights"].items()}


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # first candidates of lower totals
@pytest.mark.parametrize("options", AS_IN_THE_SHELL)
def test_settings_are_as_in_shell(world: World, references: list[list[str]], options: str) -> None:
    world.ok(f"{TUNE} --select none {options}")
    settings = {"select": "none", **AS_IN_THE_SHELL[options]}
    read = rerank.read("list", "ids")
    for documents in (read, in_memory(read)):
        result = rerank.tune(documents, references, scorers={"echo": Echo()}, **settings)
        assert dict(result.dense) == tuned(world)


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
def test_without_totals_the_order_is_the_start(world: World, references: list[list[str]]) -> None:
    world.write("list", [line.rpartition(" ||| ")[0] for line in world.lines("list")])
    world.ok(f"{TUNE} --select none")
    documents = in_memory(rerank.read("list", "ids"))
    assert documents[0].totals is None
    result = rerank.tune(documents, references, scorers={"echo": Echo()}, select="none")
    assert dict(result.dense) == tuned(world)


LISTS = [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})]] * 2
TALKS = [Document("talk", LISTS), Document("song", LISTS[:1])]
TEXTS = [["the cat", "a cat"], ["a cat"]]
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "of decoding": ({"n_best": 3}, "no option 'n_best'; there are "),
    "word": ({"length_ratio": "kep"}, "length_ratio: expected auto, keep, free or a number, fo"),
    "choice": ({"select": "all"}, "select: 'all' is not one of 'cv', 'none'"),
    "weight": ({"objective": {"ter": 0}}, "weight of 'ter': 0.0 is not in the range"),
    "metrics": ({"objective": {"bleu": 1, "ter": 1, "chrf": 1}},
        "objective: expected one metric, or two different ones, found bleu ter chrf"),
    "metric": ({"objective": "bluu"}, "objective=\"bluu\": no metric 'bluu'; did you mean bleu?"),
    "price": ({"length_price": 3},
        'length_price: length_ratio="auto" has no price; add length_ratio="keep", or leave the'),
    "price of 0": ({"length_ratio": 0.98, "length_price": 0},
        "length_ratio=0.98: length_price=0 switches it off; leave one of them out"),
    "shrink": ({"shrink": 1},
        "shrink=1: there are no start weights whose direction could be kept; give some by start="),
    "zeros": ({"start": {"tm": 0.0}},
        "start: expected a weight that is not 0, found all-zero weights; leave out start= to "),
    "search": ({"search": "mbr"}, 'search="mbr": tune-mert tunes the path of highest score, '),
    "held out": ({"hold_out": 0.9}, "hold_out=0.9: 2 of 2 documents held out leave none to tu"),
    "range": ({"range": {"tm": 5}}, "range of 'tm': expected the least weight and the greate"),
    "range of none": ({"range": {"tn": (0, None)}},
        'range={"tn": …}: no such feature; there are tm'),
    "range, start": ({"range": {"tm": (0, 1)}, "start": {"tm": -1}},
        'range={"tm": …}: expected a start weight of tm from 0 to 1, found -1; give another by st'),
    "features": ({"features": ["tn"]}, 'features=["tn"]: no such feature; there are tm'),
}  # fmt: skip


def decode(**how: Any) -> object:
    return Reranker({"tm": 1.0}, **how).decode(TALKS)


def tune(documents: Any, references: Any = TEXTS) -> object:
    return rerank.tune(documents, references)


def tune_with(totals: Any) -> object:
    return tune([Document("d", LISTS, totals=totals)], TEXTS[:1])


def report(references: Any = TEXTS, **options: Any) -> object:
    return Reranker({"tm": 1.0}).report(TALKS, references, **options)


def evaluate(references: Any = TEXTS, texts: Any = TEXTS, **more: Any) -> object:
    return rerank.evaluate({"A": texts}, references, **more)


TWO_DOCUMENTS = "references: expected references of 2 documents, found those of "
SCALE = 'search="smc": smc works with p ∝ exp(alpha · score) and needs alpha, and weights have no s'
CALLS: dict[str, tuple[Callable[[], object], str]] = {
    **{f"setting, {name}": (partial(rerank.tune, TALKS, TEXTS, **settings), message)
       for name, (settings, message) in SETTINGS.items()},
    "nothing to tune": (
        lambda: tune([Document("d", [["a", "b"]])], [["a"]]),
        "no tuned feature varies within a list, so there is nothing to tune; give agreement=True, "
        "lm=, scorers=… or another option that adds features",
    ),
    "decoder": (lambda: decode(search="smc"), SCALE),
    "trace": (lambda: [*Reranker({"tm": 1.0}, search="smc").trace(TALKS)], SCALE),
    "page": (lambda: report(scores=[("c", "x:f")]), "scores=…: expected HYP:FILE with HYP one"),
    "source": (
        lambda: evaluate(metrics=["terms"]),
        'metrics="terms": it needs the source; give sources=…',
    ),
    "metric": (lambda: evaluate(metrics=["termz"]), "metrics: no metric 'termz'; did you mean t"),
    "few documents": (lambda: tune(TALKS, TEXTS[:1]), f"{TWO_DOCUMENTS}1"),
    "generator": (lambda: tune(iter(TALKS), TEXTS[:1]), f"{TWO_DOCUMENTS}1"),
    "few sentences": (
        lambda: tune(TALKS, [["a cat"], ["a cat"]]),
        "references, document 'talk': expected references of 2 sentences, found those of 1",
    ),
    "many sentences": (
        lambda: tune(TALKS, [Document("song", ["a", "b"]), Document("talk", ["a", "b"])]),
        "references, document 'song': expected references of 1 sentences, found those of 2",
    ),
    "documents of a page": (lambda: report(TEXTS[:1]), f"{TWO_DOCUMENTS}1"),
    "evaluated documents": (
        lambda: evaluate(TEXTS[:1]),
        "system 'A': expected texts of 1 documents, found those of 2",
    ),
    "evaluated sentences": (
        lambda: evaluate([["a"], ["b"]]),
        "system 'A', document 0: expected texts of 1 sentences, found those of 2",
    ),
    "evaluated results": (lambda: evaluate(TEXTS[:1], decode()), f"{TWO_DOCUMENTS}1"),
    "sources": (
        lambda: evaluate(sources=TEXTS[:1]),
        "sources: expected sources of 2 documents, found those of 1",
    ),
    "totals": (lambda: tune_with([[1, 2]]), "d: expected totals of 2 sentences, found those of 1"),
    "totals of candidates": (
        lambda: tune_with([[1, 2], [3]]),
        "d: sentence 1: expected totals of 2 candidates, found 1",
    ),
    "total": (
        lambda: tune_with([[1, 2], [3, math.nan]]),
        "d: sentence 1, candidate 1: expected a finite number up to 1e+100 for the total, found na",
    ),
    "no lists of totals": (
        lambda: tune_with(5),
        "document 'd', totals: expected a list of numbers for each sentence, found int 5",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # texts of a few words
@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_errors_have_the_words_of_python(call: Callable[[], object], message: str) -> None:
    with pytest.raises(RerankError) as fault:
        call()
    assert str(fault.value).startswith(message)


def test_warnings_have_the_words_of_python(world: World) -> None:
    lines = [f"{t} ||| {text} ||| tm= 1 ||| 1" for t in (1, 2) for text in ("the cat", "a cat")]
    world.write("list", lines)
    world.write("ids", ["a", "b", "b"])
    with pytest.warns(rerank.RerankWarning, match="ids count from 1, give first_id=1"):
        list(rerank.read("list", "ids"))
