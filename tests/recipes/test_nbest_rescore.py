"""`rerank` in place of scripts/nbest-rescore: same list, same ini, same totals and choices.

The truth is `support.nbest_rescore`, written from a description of the scripts.
"""

from pathlib import Path

import numpy as np
import pytest
from support.files import read, write
from support.nbest_rescore import rescored, topbest, weights_of

from rerank.cli import run

# powers of 2: totals that are equal are equal floats, in whatever order they are summed
INI = "# rescored\n\n[weight]\nTM0= 0.25 -0.125\nLM0= 0.5\nWordPenalty0= -0.125\n"
DECODE = ["decode", "--kbest", "list", "--no-docs", "each", "--quiet"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lists(sentences: int = 12, k: int = 8, *, seed: int = 3) -> list[str]:
    """Lists with the blanks of Moses; integer features, so that many totals are equal."""
    rng = np.random.default_rng(seed)
    words = np.array(["a", "red", "blue", "house", "tree", "is", "near", "here"])
    return [
        f"{t} ||| {' '.join(rng.choice(words, 5))} {n}  ||| TM0= {a} {b} LM0= {c} WordPenalty0= -6 "
        "||| -1 ||| 0-0 "
        for t in range(sentences)
        for n, (a, b, c) in enumerate(rng.integers(-2, 1, (k, 3)).tolist())
    ]


def totals(lines: list[str]) -> list[float]:
    """Column 4."""
    return [float(line.split("|||")[3]) for line in lines]


def decode(ini: str, *more: str) -> tuple[list[str], list[str]]:
    """Rescored list and choices of `rerank decode`."""
    Path("rescore.ini").write_text(ini, encoding="utf-8")
    out = ["--weights", "rescore.ini", "--out", "out", "--kbest-out", "rescored"]
    assert run([*DECODE, *out, *more]) == 0
    return read("rescored"), read("out")


@pytest.mark.parametrize("seed", range(3))
def test_totals_and_choices_are_those_of_the_scripts_ties_included(seed: int) -> None:
    lines = lists(seed=seed)
    write("list", lines)
    theirs = rescored(lines, INI)
    equal = [totals(theirs[t : t + 8]) for t in range(0, len(theirs), 8)]
    assert any(one.count(max(one)) > 1 for one in equal)  # lists whose best candidates tie
    ours, chosen = decode(INI)
    np.testing.assert_allclose(totals(ours), totals(theirs), rtol=1e-8, atol=1e-12)  # nine digits
    assert chosen == list(topbest(theirs))


def test_the_scripts_choose_the_same_from_our_rescored_list() -> None:
    write("list", lists())
    ours, chosen = decode(INI)
    assert list(topbest(ours)) == chosen


def test_only_the_total_changes_where_the_scripts_strip_all_columns() -> None:
    lines = lists(2)
    write("list", lines)
    ours, _ = decode(INI)
    for before, after, theirs in zip(lines, ours, rescored(lines, INI), strict=True):
        old, new = before.split("|||"), after.split("|||")
        assert [*new[:3], *new[4:]] == [*old[:3], *old[4:]]
        stripped = [field.strip() for field in new]
        assert [x for n, x in enumerate(stripped) if n != 3] == [
            x for n, x in enumerate(theirs.split(" ||| ")) if n != 3
        ]


def test_tuned_weights_are_a_rescore_ini_of_l1_norm_1_that_the_scripts_read() -> None:
    lines = lists()
    write("list", lines)
    write("ref", [line.split("|||")[1].strip() for line in lines[3::8]])
    tune = ["tune-mert", "--kbest", "list", "--no-docs", "each", "--ref", "ref", "--quiet"]
    assert run([*tune, "--select", "none", "--out", "tuned.ini"]) == 0
    ini = Path("tuned.ini").read_text(encoding="utf-8")
    weights = weights_of(ini)
    assert list(weights) == ["TM0=", "LM0=", "WordPenalty0="]
    norm = sum(abs(value) for values in weights.values() for value in values)
    assert norm == pytest.approx(1, abs=1e-12)
    theirs = rescored(lines, ini)
    ours, chosen = decode(ini)
    np.testing.assert_allclose(totals(ours), totals(theirs), rtol=1e-8, atol=1e-9)
    assert chosen == list(topbest(theirs))


def test_a_positive_factor_of_all_weights_changes_no_choice() -> None:
    write("list", lists())
    eightfold = INI.replace("-0.125", "-1").replace("0.25", "2").replace("0.5", "4")
    ours, chosen = decode(INI)
    more, same = decode(eightfold)
    assert chosen == same
    np.testing.assert_allclose(totals(more), 8 * np.array(totals(ours)), rtol=1e-8)


def test_interleaved_ids_are_one_list_each_where_topbest_begins_a_new_one() -> None:
    lines = lists(2, 2)
    lines = [lines[0], lines[2], lines[1], lines[3]]
    write("list", lines)
    assert len(list(topbest(rescored(lines, INI)))) == 4
    grouped = list(topbest(rescored(sorted(lines, key=lambda line: int(line[0])), INI)))
    _, chosen = decode(INI, "--no-docs", "one")
    assert chosen == grouped
    assert len(chosen) == 2


def test_sparse_features_count_where_the_scripts_refuse_them() -> None:
    lines = [
        "0 ||| a b ||| LM0= -1 ||| 0",
        "0 ||| b a ||| LM0= -1 tag_first= 2 ||| 0",
    ]
    ini = "[weight]\nLM0= 1\ntag_first= 0.25\n"
    write("list", lines)
    with pytest.raises((KeyError, IndexError)):
        rescored(lines, ini.replace("tag_first= 0.25\n", ""))
    ours, chosen = decode(ini)
    assert totals(ours) == [-1, -0.5]
    assert chosen == ["b a"]


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        ("[weight]\nLM0= 1\n", "expected a weight for every feature of the list"),
        (INI + "Other0= 1\n", "expected weights of the list's features, found one of 'Other0'"),
        (INI.replace("0.25 -0.125", "0.25"), "expected 2 weights for 'TM0'"),
    ],
    ids=["missing", "unknown", "too-few"],
)
def test_weights_that_do_not_fit_the_list_are_refused(
    ini: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("list", lists(2))
    Path("rescore.ini").write_text(ini, encoding="utf-8")
    assert run([*DECODE, "--weights", "rescore.ini", "--out", "out"]) == 3
    assert message in capsys.readouterr().err
    assert not Path("out").exists()
