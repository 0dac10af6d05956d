"""`decode`, `score` and `tune-mert` with scores of other tools, against all paths written out."""

import gzip
import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from support.files import write, write_weights
from support.tuning import PAIRS

from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import (
    CorpusResult,
    Lists,
    TunedWeights,
    decode,
    score,
    tune_mert,
)
from rerank.pipeline.decoding import Reports
from rerank.pipeline.models import Named

ROOT = Path(__file__).parents[2]
SIZES = {"evening": (3, 0, 4, 2), "gap": (0, 0), "night": (0, 2, 3), "town": (4,)}
COUNTS = [size for sizes in SIZES.values() for size in sizes]
WEIGHTS = {"LM0": 0.5, "qe": 1.25, "pairs": -0.75}
SCORES: Mapping[str, Sequence[Named]] = {"scores": (("qe", Path("dev.qe")),)}
Table = dict[tuple[str, int, int | None, int], float]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with lists, documents, weights, and scores of both kinds."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    lines = [
        f"{t} ||| w{t} v{k} ||| LM0= {rng.integers(-40, 0) / 8} ||| 0"
        for t, size in enumerate(COUNTS)
        for k in range(size)
    ]
    write("dev.kbest", lines)
    write("dev.docs", [name for name, sizes in SIZES.items() for _ in sizes])
    write("dev.qe", [str(x / 8) for x in rng.integers(-40, 40, len(lines))])
    write("dev.pairs", [line_of(*item) for item in table(rng).items()])
    write("ref", [f"w{t} v1" for t in range(len(COUNTS))])
    write_weights("w.json", WEIGHTS)
    return tmp_path


def table(rng: np.random.Generator) -> Table:
    """Dyadic values of all pairs of neighbours that have candidates."""
    found: Table = {}
    for name, sizes in SIZES.items():
        before: list[int | None] = [None]
        for t, size in enumerate(sizes):
            if size:
                for j, k in product(before, range(size)):
                    found[name, t, j, k] = int(rng.integers(-80, 80)) / 8
                before = list(range(size))
    return found


def line_of(row: tuple[str, int, int | None, int], value: float) -> str:
    name, t, j, k = row
    return f"{name}\t{t}\t{'-' if j is None else j}\t{k}\t{value}"


def read_table() -> Table:
    """The file of pairs, taken apart by hand."""
    rows = [line.split("\t") for line in Path("dev.pairs").read_text(encoding="utf-8").splitlines()]
    return {(d, int(t), None if j == "-" else int(j), int(k)): float(x) for d, t, j, k, x in rows}


def best_paths(
    weights: Mapping[str, float], top: int = 99
) -> dict[str, tuple[float, tuple[int | None, ...]]]:
    """The best path of every document, and its score: of all paths, the first from the last."""
    lines = Path("dev.kbest").read_text(encoding="utf-8").splitlines()
    own: dict[int, list[float]] = {}
    scores = map(float, Path("dev.qe").read_text(encoding="utf-8").split())
    for line, qe in zip(lines, scores, strict=True):
        t, lm = int(line.split()[0]), float(line.split("LM0= ")[1].split()[0])
        own.setdefault(t, []).append(weights["LM0"] * lm + weights.get("qe", 0.0) * qe)
    pairs, found = read_table(), {}
    bounds = np.cumsum([0, *map(len, SIZES.values())]).tolist()
    for (name, sizes), (start, _) in zip(SIZES.items(), pairwise(bounds), strict=True):
        candidates: list[Sequence[int | None]] = [
            range(min(size, top)) if size else [None] for size in sizes
        ]
        best: tuple[float, tuple[int | None, ...]] = (-np.inf, ())
        for path in sorted(product(*candidates), key=lambda path: [k or 0 for k in path[::-1]]):
            total, before = 0.0, None
            for t, k in enumerate(path):
                if k is not None:
                    total += own[start + t][k]
                    total += weights.get("pairs", 0.0) * pairs[name, t, before, k]
                    before = k
            if total > best[0]:
                best = (total, path)
        found[name] = best
    return found


def decoded(score_files: Mapping[str, Sequence[Named]], top: int | None = None) -> CorpusResult:
    lists = Lists("dev.kbest", "dev.docs", score_files=score_files, top=top)
    result = decode(lists, "w.json", "out", reports=Reports(kbest="out.kbest"), notices=Notices())
    assert result is not None
    return result


def assert_best(result: CorpusResult, top: int = 99) -> None:
    truth = best_paths(json.loads(Path("w.json").read_text(encoding="utf-8"))["weights"], top)
    assert {d.id: (d.score, d.choices) for d in result.documents} == truth
    assert all(d.exact for d in result.documents)
    chosen = [k for _, path in truth.values() for k in path]
    expected = ["" if k is None else f"w{t} v{k}" for t, k in enumerate(chosen)]
    assert Path("out").read_text(encoding="utf-8").split("\n") == [*expected, ""]


def test_scores_of_pairs_are_searched_exactly() -> None:
    write_weights("w.json", {"LM0": 0.5, "pairs": -0.75})
    result = decoded(PAIRS)
    assert_best(result)
    assert {d.search.decoder for d in result.documents} == {"viterbi", "none"}


def test_scores_of_hypotheses_decide_as_other_features_do() -> None:
    write_weights("w.json", {"LM0": 0.5, "qe": 1.25})
    assert_best(decoded(SCORES))


@pytest.mark.parametrize("top", [None, 1, 2, 3, 9])
def test_both_kinds_are_weighed_together(top: int | None) -> None:
    assert_best(decoded({**SCORES, **PAIRS}, top), top or 99)


def test_several_files_of_a_kind_are_features_of_their_own() -> None:
    write_weights("w.json", {"LM0": 0.5, "qe": 1.25, "a": -0.5, "b": -0.25})
    files = (("a", Path("dev.pairs")), ("b", Path("dev.pairs")))
    result = decoded({**SCORES, "pair-scores": files})
    truth = best_paths(WEIGHTS)
    assert {d.id: (d.score, d.choices) for d in result.documents} == truth


def test_compressed_files_are_seen() -> None:
    for name in ("dev.qe", "dev.pairs"):
        Path(name).write_bytes(gzip.compress(Path(name).read_bytes()))
    packed = decoded({**SCORES, **PAIRS})
    for name in ("dev.qe", "dev.pairs"):
        Path(name).write_bytes(gzip.decompress(Path(name).read_bytes()))
    assert packed.documents == decoded({**SCORES, **PAIRS}).documents


def test_a_model_beside_them_is_one_more_feature(model_folders: Mapping[str, Path]) -> None:
    """Of weight 0, it changes nothing."""
    write_weights("w.json", {**WEIGHTS, "lm": 0.0, "lmoov": 0.0})
    lists = Lists(
        "dev.kbest",
        "dev.docs",
        lms=(("lm", model_folders["codclm"]),),
        score_files={**SCORES, **PAIRS},
    )
    result = decode(lists, "w.json", "out", notices=Notices())
    assert result is not None
    assert_best(result)
    assert "|lm:lm=" in result.signature


def test_the_signature_names_files_by_their_digests() -> None:
    first = decoded({**SCORES, **PAIRS}).signature
    assert "|ctx:1|scores:qe=" in first
    assert "|lm:" not in first
    Path("dev.qe").write_text(Path("dev.qe").read_text().replace(".5", ".25"))
    second = decoded({**SCORES, **PAIRS}).signature
    assert first.split("pairs=")[1] == second.split("pairs=")[1]
    assert first != second


def test_lists_are_written_back_with_the_scores_under_the_path() -> None:
    result = decoded({**SCORES, **PAIRS})
    assert_written("out.kbest", {d.id: d.choices for d in result.documents})
    score(
        Lists("dev.kbest", "dev.docs", score_files={**SCORES, **PAIRS}), "first", notices=Notices()
    )
    firsts = {name: [0 if size else None for size in sizes] for name, sizes in SIZES.items()}
    assert_written("first", firsts)


def assert_written(file: str, paths: Mapping[str, Sequence[int | None]]) -> None:
    """Each candidate has its own score, and that of its pair with the choice before."""
    pairs, expected = read_table(), []
    for name, sizes in SIZES.items():
        before: int | None = None
        for t, (size, choice) in enumerate(zip(sizes, paths[name], strict=True)):
            expected += [pairs[name, t, before, k] for k in range(size)]
            before = before if choice is None else choice
    fields = [line.split() for line in Path(file).read_text(encoding="utf-8").splitlines()]
    own = [dict(pairwise(words)) for words in fields]
    assert [float(words["pairs="]) for words in own] == expected
    assert [float(words["qe="]) for words in own] == [
        float(token) for token in Path("dev.qe").read_text(encoding="utf-8").split()
    ]


def test_tuning_weighs_them_and_says_what_it_read() -> None:
    lists = Lists("dev.kbest", "dev.docs", score_files={**SCORES, **PAIRS})
    weights = TunedWeights("tuned.json", start="w.json")
    found = tune_mert(lists, ["ref"], weights, notices=Notices())
    assert found is not None
    assert set(found.weights.dense) == {"LM0", "qe", "pairs"}
    assert found.result.bleu >= found.result.baseline_bleu
    content = json.loads(Path("tuned.json").read_text(encoding="utf-8"))
    said = content["provenance"]
    assert said["scores"]["pairs"]["file"] == "dev.pairs"
    assert len(said["scores"]["qe"]["digest"]) == 64
    assert {"dev.pairs", "dev.qe"} <= {own["file"] for own in said["inputs"]}


def test_tuning_says_what_it_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path("dev.pairs").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    piped: Mapping[str, Sequence[Named]] = {"pair-scores": (("pairs", Path("-")),)}
    lists = Lists("dev.kbest", "dev.docs", score_files={**SCORES, **piped})
    weights = TunedWeights("tuned.json", start="w.json")
    found = tune_mert(lists, ["ref"], weights, notices=Notices())
    assert found is not None
    said = found.weights.provenance["scores"]
    digest = hashlib.sha256(content).hexdigest()
    assert isinstance(said, dict)
    assert said["pairs"] == {"file": "<stdin>", "digest": digest}


def test_a_fault_after_the_last_document_leaves_no_output() -> None:
    with Path("dev.pairs").open("a") as file:
        file.write("town\t0\t-\t0\t1\n")
    with pytest.raises(InputError, match="expected each pair once"):
        decoded({**SCORES, **PAIRS})
    assert not Path("out").exists()


def test_an_output_is_not_written_over_scores() -> None:
    lists = Lists("dev.kbest", "dev.docs", score_files=PAIRS)
    with pytest.raises(UsageError, match=r"is also the input dev\.pairs"):
        decode(lists, "w.json", "dev.pairs", notices=Notices())
    with pytest.raises(UsageError, match=r"is also the input dev\.pairs"):
        score(lists, "dev.pairs", notices=Notices())


def test_they_do_not_wait_for_torch() -> None:
    options = "--scores qe=dev.qe --pair-scores dev.pairs --weights w.json --out out -q"
    arguments = ["decode", "--kbest", "dev.kbest", "--docs", "dev.docs", *options.split()]
    program = f"from rerank.cli import run; import sys; code = run({arguments})"
    program += "; print(code, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0 False\n", "")
