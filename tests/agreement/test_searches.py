"""`decode` and `score` with every source of scores and every search, against all paths.

The truth is written out here: features of candidates after each path, by their definitions (those
of language models from a reading of the whole text, sentence by sentence), and the sums of all
paths of a document. A path has None for a sentence without candidates.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from support.models import save_models, scores_of_sentences
from support.packages import install
from support.world import WORDS, World

from decoders.table import DECODERS
from lm.checkpoint import load_model
from lm.folders import SavedModel

SIZES = {"evening": (3, 0, 4, 2), "gap": (0,), "night": (2, 4, 3, 3), "town": (0, 1, 2, 0)}
KNOWN = WORDS[:9]  # to language models
RNG = np.random.default_rng(5)
ALPHA = 0.75
Choices = tuple[int | None, ...]
Features = dict[str, float]


@dataclass(frozen=True)
class Document:
    """Lists of a document: `texts[t]`, the lists' own features, and alignments by source words."""

    name: str
    texts: list[list[str]]
    own: list[list[Features]]
    qe: list[list[float]]
    pairs: dict[tuple[int, int | None, int], float]

    def before(self, t: int, path: Choices) -> int | None:
        """The choice of the nearest sentence before t that has candidates."""
        return next((k for k in reversed(path[:t]) if k is not None), None)

    def chosen(self, path: Choices) -> list[str]:
        """Texts of a path, without the sentences that have none."""
        return [self.texts[t][k] for t, k in enumerate(path) if k is not None]


def drawn() -> Iterator[Document]:
    """Documents whose numbers are dyadic: no sum of them is rounded, and some are equal."""
    for name, sizes in SIZES.items():
        texts = [[" ".join([WORDS[k], *RNG.choice(WORDS, RNG.integers(0, 4))]) for k in range(n)]
                 for n in sizes]  # fmt: skip
        own = [[{"LM0": RNG.integers(-8, 0) / 4, "TM0.0": RNG.integers(-8, 0) / 4, "TM0.1": -k / 2,
                 **({"tag_x": 2.0} if RNG.random() < 0.4 else {})} for k in range(n)]
               for n in sizes]  # fmt: skip
        qe = [(RNG.integers(-8, 8, n) / 4).tolist() for n in sizes]
        before: Sequence[int | None] = [None]
        pairs = {}
        for t, n in enumerate(sizes):
            for j, k in product(before, range(n)):
                pairs[t, j, k] = int(RNG.integers(-8, 8)) / 4
            before = list(range(n)) or before
        yield Document(name, texts, own, qe, pairs)


DOCUMENTS = list(drawn())
OWN = """
import numpy as np
from itertools import pairwise
from decoders.arrays import HistoryTable

class Table:
    def __init__(self, order):
        self.order = None if order == "all" else int(order)

    def score(self, document):
        lists = [texts for texts in document.texts if texts]
        tables = []
        for t in range(len(lists)):
            start = 0 if self.order is None else max(0, t - self.order)
            table = np.zeros([len(texts) for texts in lists[start : t + 1]])
            for path in np.ndindex(table.shape):
                texts = [own[k] for own, k in zip(lists[start : t + 1], path)]
                table[path] = repeated(texts)
            tables.append(table)
        return HistoryTable(tables, self.order)

def repeated(texts):
    return sum(word in text.split() for text in texts[:-1] for word in texts[-1].split()) / 4
"""


# Features of the candidates of sentence t after a path
def estimated(document: Document, t: int, path: Choices) -> list[Features]:
    return [{"qe": value} for value in document.qe[t]]


def paired(document: Document, t: int, path: Choices) -> list[Features]:
    j, n = document.before(t, path), len(document.texts[t])
    return [{"pairs": document.pairs.get((t, j, k), 0.0)} for k in range(n)]  # 0 without a pair


def repeated(order: int | None) -> Callable[[Document, int, Choices], list[Features]]:
    """A quarter for each word that one of the last sentences has as well."""

    def features(document: Document, t: int, path: Choices) -> list[Features]:
        texts = document.chosen(path[:t])
        texts = texts if order is None else texts[max(0, len(texts) - order) :]
        words = [word for text in texts for word in {*text.split()}]
        return [{"own": sum(words.count(word) for word in text.split()) / 4}
                for text in document.texts[t]]  # fmt: skip

    return features


def consistent(document: Document, t: int, path: Choices) -> list[Features]:
    """Source word n of a document's sentence n is translated by each first word."""
    seen: dict[int, set[str]] = {}
    for s, k in enumerate(path[:t]):
        if k is not None:
            seen.setdefault(s % 2, set()).add(document.texts[s][k].split()[0])
    own = seen.get(t % 2, set())
    return [{"same": -float(bool(own) and text.split()[0] not in own)}
            for text in document.texts[t]]  # fmt: skip


MODELS: dict[str, SavedModel] = {}
FOLDERS: dict[str, Path] = {}


@cache
def log_probability(name: str, texts: tuple[str, ...]) -> float:
    """Of the last of some sentences, after those before it, by a model of this name."""
    return scores_of_sentences(MODELS[name], texts)[-1]


def language_model(name: str) -> Callable[[Document, int, Choices], list[Features]]:
    def features(document: Document, t: int, path: Choices) -> list[Features]:
        before = document.chosen(path[:t])
        oov = [sum(word not in KNOWN for word in text.split()) for text in document.texts[t]]
        return [{"lm": log_probability(name, (*before, text)), "lmoov": unknown}
                for text, unknown in zip(document.texts[t], oov, strict=True)]  # fmt: skip

    return features


BASE = {"LM0": [0.5], "TM0": [0.25, 0.5]}


@dataclass(frozen=True)
class Source:
    """Scores beside the lists' own: options, order, weights, and features by definition."""

    options: str = ""
    order: int | None = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    features: tuple[Callable[[Document, int, Choices], list[Features]], ...] = ()
    rounded: bool = False  # in float32


SOURCES = {
    "lists": Source(),
    "scores": Source("--scores qe=dev.qe", 0, {"qe": 1.5}, (estimated,)),
    "pairs": Source("--pair-scores dev.pairs", 1, {"pairs": -0.75}, (paired,)),
    "order-1": Source("--scorer own=table:1", 1, {"own": -1.0}, (repeated(1),)),
    "order-2": Source("--scorer own=table:2", 2, {"own": 1.0}, (repeated(2),)),
    "all-earlier": Source("--scorer own=table:all", None, {"own": -0.5}, (repeated(None),)),
    "consistency": Source("--source dev.src --scorer same=consistency", None, {"same": 0.75},
        (consistent,)),
    "together": Source("--scores qe=dev.qe --pair-scores dev.pairs --scorer own=table:2", 2,
        {"qe": 0.5, "pairs": 1.0, "own": 0.25}, (estimated, paired, repeated(2))),
    "without-weight": Source("--pair-scores dev.pairs --scorer own=table:all", 1,
        {"pairs": 1.0, "own": 0.0}, (paired, repeated(None))),
    **{name: Source("--lm lm=models/" + name, order, {"lm": 0.25, "lmoov": -0.5},
        (language_model(name),), rounded=True)
        for name, order in (("rnnlm", 0), ("codclm", 1), ("ccdclm", None))},
}  # fmt: skip
SEARCHES = {
    **{name: f"--search {name}" for name in ("auto", "greedy", "viterbi", "beam", "exhaustive")},
    "narrow-beam": "--search beam --beam 2 --gap 2",
    "whole-beam": "--search beam --beam 1000",
    "survivors": "--search survivors",
    "survivors-sample": f"--search survivors:merge=sample --alpha {ALPHA}",
    "random-beam": f"--search random-beam --alpha {ALPHA} --beam 2",
    "smc": f"--search smc:particles=3 --alpha {ALPHA}",
    "ffbs": f"--search ffbs:samples=2 --alpha {ALPHA}",
    "mbr": f"--search mbr --alpha {ALPHA}",
    "sweeps": "--search sweeps --beam 1",
    "gibbs": f"--search sweeps:gibbs=2 --alpha {ALPHA} --beam 1",
}
EXACT = {"viterbi": 2, "survivors": 1, "exhaustive": 9, "whole-beam": 9}  # up to this order
REPRESENTATIVE = ("pairs", "order-2", "ccdclm")
every_source = pytest.mark.parametrize("name", SOURCES)


@pytest.fixture(scope="module", autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    FOLDERS.update({name: tmp_path_factory.mktemp(name) for name in ("rnnlm", "codclm", "ccdclm")})
    save_models(FOLDERS, KNOWN, 4, 6, oov_rate=0.25)
    MODELS.update({name: load_model(folder) for name, folder in FOLDERS.items()})


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The documents as files, the models, and a package with scorers of any order."""
    install(world.folder, monkeypatch, OWN, {"scorers": {"table": "Table"}})
    write_lists(world, DOCUMENTS)
    (world.folder / "models").mkdir()
    for name, folder in FOLDERS.items():
        (world.folder / "models" / name).symlink_to(folder)
    return world


def write_lists(world: World, documents: Sequence[Document]) -> None:
    lines, qe, pairs, source = list[str](), list[float](), list[str](), list[str]()
    number = 0
    for document in documents:
        for t, texts in enumerate(document.texts):
            source.append(f"s{t % 2}")
            for k, (text, own) in enumerate(zip(texts, document.own[t], strict=True)):
                tag = f" tag_x= {own['tag_x']}" if "tag_x" in own else ""
                dense = f"LM0= {own['LM0']} TM0= {own['TM0.0']} {own['TM0.1']}{tag}"
                lines.append(f"{number} ||| {text} ||| {dense} ||| {-k} ||| 0-0 ||| x=y")
            qe += document.qe[t]
            number += 1
        for (t, j, k), value in document.pairs.items():
            pairs.append(f"{document.name}\t{t}\t{'-' if j is None else j}\t{k}\t{value}")
    docs = [document.name for document in documents for _ in document.texts]
    files: dict[str, list[Any]] = {"kbest": lines, "docs": docs, "qe": qe, "pairs": pairs}
    files["src"] = source
    for end, content in files.items():
        world.write(f"dev.{end}", content)


def decode(world: World, source: Source, search: str, *more: str, **weights: Any) -> Any:
    """The summary of a decoding, whose other files are out.txt, out.kbest and out.trace."""
    world.weights("w.json", {**BASE, **source.weights}, sparse={"tag_x": 0.75}, **weights)
    files = "--out out.txt --summary s.json --kbest-out out.kbest --trace out.trace --no-cache"
    command = f"decode --kbest dev.kbest --docs dev.docs --weights w.json {files}"
    world.ok(f"{command} {source.options} {search}", *more)
    return world.json("s.json")


def features(document: Document, source: Source, t: int, path: Choices) -> list[Features]:
    """All features of the candidates of a sentence after a path."""
    result = [dict(own) for own in document.own[t]]
    for more in source.features:
        for one, other in zip(result, more(document, t, path), strict=True):
            one.update(other)
    return result


def weighted(source: Source, one: Features) -> float:
    weights = {"LM0": 0.5, "TM0.0": 0.25, "TM0.1": 0.5, "tag_x": 0.75, **source.weights}
    return sum(weights[name] * value for name, value in one.items())


@cache
def totals(name: str, d: int, t: int, path: Choices) -> tuple[float, ...]:
    """Weighted features of the candidates of a sentence after a path."""
    source = SOURCES[name]
    return tuple(weighted(source, one) for one in features(DOCUMENTS[d], source, t, path))


@cache
def all_paths(name: str, d: int) -> dict[Choices, float]:
    """The score of every path of a document; of equal ones the first is that of the tie rule."""
    choices = [range(len(texts)) if texts else [None] for texts in DOCUMENTS[d].texts]
    paths = sorted(product(*choices), key=lambda path: [k or 0 for k in path[::-1]])
    return {
        path: sum(totals(name, d, t, path[:t])[k] for t, k in enumerate(path) if k is not None)
        for path in paths
    }


def near(value: float, source: Source, *, rel: float = 0.0) -> Any:
    """Equal, but for float32 in language models and numbers printed with a few digits."""
    return pytest.approx(value, rel=rel, abs=2e-3 if source.rounded else 0)


# Every search
@pytest.mark.parametrize(
    ("name", "search"),
    [
        (name, search)
        for name in SOURCES
        for search in (SEARCHES if name in REPRESENTATIVE else ("auto", "whole-beam", "gibbs"))
    ],
)
def test_a_search_finds_paths_with_their_own_scores(name: str, search: str, here: World) -> None:
    source = SOURCES[name]
    if search == "viterbi" and source.order is None:
        return  # refused: a row of the table of faults
    summary = decode(here, source, SEARCHES[search])
    order = 9 if source.order is None else source.order
    texts, changed = list[str](), 0
    for d, (found, document) in enumerate(zip(summary["documents"], DOCUMENTS, strict=True)):
        paths, path = all_paths(name, d), tuple(found["choices"])
        best, first = max(paths.values()), tuple(None if k is None else 0 for k in path)
        texts += ["" if k is None else document.texts[t][k] for t, k in enumerate(path)]
        changed += sum(1 for k in path if k)
        assert found["id"] == document.name
        assert found["score"] == near(paths[path], source)
        assert found["baseline_score"] == near(paths[first], source)
        assert found["gap"] == pytest.approx(max(0, found["best_score"] - found["score"]))
        if document.name == "gap":
            assert (found["search"], found["exact"], found["score"]) == ("none", True, 0)
            continue
        method = SEARCHES[search].split()[1].partition(":")[0]
        automatic = "beam" if source.order is None else "viterbi"
        assert found["search"] == (automatic if method == "auto" else method)
        compared = search == "narrow-beam" and source.order is not None
        assert (found["best"] == "optimum") == (found["exact"] or compared)
        assert found["best_score"] <= best + 2e-3
        if found["best"] == "optimum":
            assert found["best_score"] == near(best, source)
        if found["exact"]:
            assert found["score"] == near(best, source)
            if not source.rounded:
                assert path == max(paths, key=lambda one: paths[one])
        must = order <= EXACT.get(search, 0 if search in ("greedy", "beam", "sweeps") else -1)
        assert found["exact"] or not (must or (search == "auto" and source.order is not None))
    assert here.lines("out.txt") == texts
    for total in ("score", "baseline_score", "best_score", "gap"):
        assert summary[total] == pytest.approx(sum(one[total] for one in summary["documents"]))
    assert (summary["sentences"], summary["changed"]) == (len(texts), changed)
    assert summary["exact"] == all(one["exact"] for one in summary["documents"])


@pytest.mark.parametrize(
    ("name", "search"), [("pairs", "--search viterbi"), ("order-2", "--search beam --beam 500")]
)
def test_the_summary_lists_the_best_paths_of_documents(name: str, search: str, here: World) -> None:
    result = decode(here, SOURCES[name], search, "--n-best", "4")
    for d, document in enumerate(result["documents"]):
        paths = all_paths(name, d)
        ranked = sorted(paths, key=lambda path: -paths[path])[:4]  # stable: equal ones in order
        listed = [document, *document["further"]]
        assert [tuple(path["choices"]) for path in listed] == ranked
        assert [path["score"] for path in listed] == [paths[path] for path in ranked]


# What is written of the choices
@every_source
def test_lists_are_written_back_with_the_features_under_the_path(name: str, here: World) -> None:
    source = SOURCES[name]
    summary = decode(here, source, "--search auto")
    paths = [tuple(document["choices"]) for document in summary["documents"]]
    written = here.lines("out.kbest")
    for old, new in zip(here.lines("dev.kbest"), written, strict=True):  # bytes
        number, text, own, _, *rest = old.split(" ||| ")
        assert new.startswith(f"{number} ||| {text} ||| {own}")
        assert new.endswith(" ||| ".join(["", *rest]))
    check_written(written, source, paths, new_totals=True)
    options = f"--kbest dev.kbest --docs dev.docs --out scored {source.options} --no-cache"
    if source.options:
        here.ok(f"score {options} --weights w.json")
        assert without_totals(here.lines("scored")) == without_totals(written)
        here.ok(f"score {options}")
        firsts = [tuple(None if k is None else 0 for k in path) for path in paths]
        check_written(here.lines("scored"), source, firsts, new_totals=False)


def without_totals(lines: Sequence[str]) -> list[list[str]]:
    return [[*columns[:3], *columns[4:]] for columns in (line.split(" ||| ") for line in lines)]


def check_written(
    lines: Sequence[str], source: Source, paths: Sequence[Choices], *, new_totals: bool
) -> None:
    rows = iter(lines)
    for document, path in zip(DOCUMENTS, paths, strict=True):
        for t, texts in enumerate(document.texts):
            for k, one in enumerate(features(document, source, t, path[:t])):
                _, text, labelled, total, *_ = next(rows).split(" ||| ")
                values = [float(token) for token in labelled.split() if not token.endswith("=")]
                names = [n for n in one if n != "tag_x"]
                names[3:3] = [n for n in one if n == "tag_x"]
                assert text == texts[k]
                assert values == [near(one[n], source) for n in names]
                expected = weighted(source, one) if new_totals else -k
                assert float(total) == near(expected, source, rel=1e-7)


@every_source
def test_a_trace_explains_each_choice(name: str, here: World) -> None:
    source = SOURCES[name]
    search = "--search beam --beam 1000" if source.order is None else "--search ffbs"
    search += ":particles=9" if source.order == 2 else ""
    search += "" if source.order is None else " --alpha 0.75"
    summary = decode(here, source, search)
    rows = iter([json.loads(line) for line in here.lines("out.trace")])
    for d, (found, document) in enumerate(zip(summary["documents"], DOCUMENTS, strict=True)):
        path, paths = tuple(found["choices"]), all_paths(name, d)
        z = math.fsum(math.exp(ALPHA * score) for score in paths.values())
        if source.order in (0, 1) and document.name != "gap":
            assert found["log_normaliser"] == pytest.approx(math.log(z), abs=2e-3)
        for t, k in enumerate(path):
            if k is None:
                continue
            row, own = next(rows), totals(name, d, t, path[:t])
            one = {n: v for n, v in features(document, source, t, path[:t])[k].items()}
            assert (row["document"], row["sentence"], row["chosen"]) == (document.name, t, k)
            assert row["total"] == near(own[k], source, rel=1e-9)
            sparse = 0.75 * one.pop("tag_x", 0.0)
            assert [*row["features"].values()] == [near(value, source) for value in one.values()]
            assert row["weighted"]["sparse"] == sparse
            assert sum(row["weighted"].values()) == pytest.approx(row["total"])
            assert row["first"] == 0
            assert sum(row["over_first"].values()) == pytest.approx(own[k] - own[0], abs=4e-3)
            alone, lone = row["alone"], totals(name, d, t, ())
            if source.order == 0 or paired in source.features:  # a file has no pairs without one
                assert alone is None
            else:
                assert lone[alone["chosen"]] == near(max(lone), source)
                assert alone["lead"] == pytest.approx(max(lone) - lone[k], abs=4e-3)
            others = [total for n, total in enumerate(own) if n != k]
            if not others:
                assert (row["runner_up"], row["margin"]) == (None, None)
                continue
            assert own[row["runner_up"]] == near(max(others), source, rel=1e-9)
            assert row["margin"] == pytest.approx(own[k] - max(others), abs=4e-3)
            if source.order not in (0, 1):
                assert row["path_margin"] is None
                continue
            through = [max(s for p, s in paths.items() if p[t] == c) for c in range(len(own))]
            rest = max(through[:k] + through[k + 1 :])
            assert row["path_margin"] == pytest.approx(through[k] - rest, abs=4e-3)
            shares = [
                math.fsum(math.exp(ALPHA * s) for p, s in paths.items() if p[t] == c) / z
                for c in range(len(own))
            ]
            assert row["marginals"] == pytest.approx(shares, abs=2e-3)
            assert row["marginal"] == row["marginals"][k]


# Minimum Bayes risk
def sentence_chrf(hypothesis: str, reference: str) -> float:
    return sacrebleu.sentence_chrf(hypothesis, [reference]).score


@pytest.mark.parametrize("name", ["pairs", "codclm"])
def test_mbr_chooses_by_expected_utility_under_marginals_of_paths(name: str, here: World) -> None:
    """The utility is chrF of sacrebleu."""
    result = decode(here, SOURCES[name], f"--search mbr:utility=chrf --alpha {ALPHA}")
    assert "|utility:chrf|" in result["signature"]
    for d, (one, document) in enumerate(zip(result["documents"], DOCUMENTS, strict=True)):
        paths = all_paths(name, d)
        shares = {path: math.exp(ALPHA * score) for path, score in paths.items()}
        for t, choice in enumerate(one["choices"]):
            if choice is None:
                continue
            texts = document.texts[t]
            others = [(texts[path[t] or 0], share) for path, share in shares.items()]
            gains = [sum(share * sentence_chrf(x, y) for y, share in others) for x in texts]
            assert gains[choice] == pytest.approx(max(gains), rel=1e-3)


# Draws
@pytest.mark.parametrize(
    ("name", "search"),
    [
        *(("consistency", search) for search in ("survivors-sample", "random-beam", "mbr")),
        *(("codclm", search) for search in ("smc", "ffbs", "gibbs")),
    ],
)
def test_a_document_is_drawn_alike_in_any_company(name: str, search: str, here: World) -> None:
    how = SEARCHES[search]
    together = {one["id"]: one for one in decode(here, SOURCES[name], how)["documents"]}
    for documents in (DOCUMENTS[::-1], DOCUMENTS[2:3]):
        write_lists(here, documents)
        result = decode(here, SOURCES[name], how)["documents"]
        for one, document in zip(result, documents, strict=True):
            assert one["choices"] == together[document.name]["choices"]
            assert one["log_normaliser"] == pytest.approx(together[document.name]["log_normaliser"])


@pytest.mark.parametrize("method", [name for name, row in DECODERS.items() if row.takes("alpha")])
def test_the_scale_is_that_of_the_option_or_of_the_weights_file(method: str, here: World) -> None:
    option, own = (":spread=", "mbr_spread") if method == "mbr" else (" --alpha ", "alpha")
    more = {"survivors": ":merge=sample", "sweeps": ":gibbs=2"}.get(method, "")
    search, source = f"--beam 1 --search {method}{more}", SOURCES["pairs"]
    search = search.removeprefix("" if method == "sweeps" else "--beam 1 ")
    given = decode(here, source, f"{search}{option}0.5")
    of_file = decode(here, source, search, **{own: 0.5})
    both = decode(here, source, f"{search}{option}0.5", **{own: 3.0})
    assert given["documents"] == of_file["documents"] == both["documents"]
    name = option.strip(" -:=")
    assert f"|{name}:0.5|" in of_file["signature"]
    if method == "mbr":  # a scale fitted by likelihood is not for it, alpha itself is
        expected = of_file["documents"]
        assert decode(here, source, search, alpha=9.0, mbr_spread=0.5)["documents"] == expected
        assert "spread" not in decode(here, source, f"{search} --alpha 0.5")["signature"]
