"""The plug-in package, `recipes/adapters/plugin`, installed in a folder, used from the shell."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.packages import install
from support.world import ROOT, World

from rerank import Document
from rerank.scorers.laws import check_scorer

PACKAGE = ROOT / "recipes" / "adapters" / "plugin"
LISTS = (
    "0 ||| a lamp is lit ||| LM0= -1 ||| -1",
    "0 ||| lit ||| LM0= -1.5 ||| -1.5",
    "1 ||| it gives ||| LM0= -1 ||| -1",
    "1 ||| the lamp ||| LM0= -1.5 ||| -1.5",
)
LITTLE = 1e-9  # a scorer of weight 0 would not be computed
SCORERS = "--scorer words=length:2 --scorer again=cohesion"
DECODE = f"decode --kbest dev.kbest --no-docs one --weights w.json --summary s.json {SCORERS}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which pip has installed the package, without a network."""
    if not (find_spec("pip") and find_spec("setuptools")):
        pytest.skip("needs pip and setuptools")
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PACKAGE, folder / "package")  # pip writes into the folder that it builds
    options = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"
    install = [sys.executable, "-m", "pip", "install", *options.split(), "--target", "site"]
    subprocess.run([*install, "./package"], cwd=folder, check=True)
    return folder / "site"


@pytest.fixture
def here(world: World, site: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The installed package on the path, and lists of two sentences."""
    monkeypatch.syspath_prepend(site)
    world.write("dev.kbest", LISTS)
    world.write("dev.ref", ["a lamp is lit", "the lamp"])
    world.weights("w.json", {"LM0": 1, "words": LITTLE, "again": LITTLE})
    return world


def member(group: str, name: str) -> Callable[[], Any]:
    (point,) = entry_points(group=f"rerank.{group}", name=name)
    found: Callable[[], Any] = point.load()
    return found


def test_the_package_is_small() -> None:
    files = [PACKAGE / "pyproject.toml", *PACKAGE.glob("*.py")]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 70


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["length", "cohesion"])
def test_its_scorers_keep_the_laws(name: str) -> None:
    texts = [[["a b", "a", "c d e"], [], ["b", "b c"]], [["e", "b a"], ["c", "a b"], ["d", "a"]]]
    documents = [
        Document(f"talk-{d}", [[(text, {}) for text in sentence] for sentence in sentences])
        for d, sentences in enumerate(texts)
    ]
    check_scorer(member("scorers", name)(), documents)


@pytest.mark.usefixtures("here")
def test_its_metric_is_the_share_of_the_references_words() -> None:
    rows = member("metrics", "recall")().statistics([[b"a b", b"c"]], [[b"a b c d"]])
    assert rows.tolist() == [[0.5, 1], [0.25, 1]]


@pytest.mark.parametrize(
    ("words", "again", "expected"),
    [
        (LITTLE, LITTLE, ["a lamp is lit", "it gives"]),
        (1, LITTLE, ["lit", "it gives"]),  # 2 words wished for: 1 is as near as 3
        (LITTLE, 2, ["a lamp is lit", "the lamp"]),  # lamp again
    ],
)
def test_decode_uses_its_scorers(
    words: float, again: float, expected: list[str], here: World
) -> None:
    here.weights("w.json", {"LM0": 1, "words": words, "again": again})
    for cached in (False, True):
        run = here.ok(DECODE)
        assert run.lines == expected
        assert ("again: 1 documents from the cache" in run.err) == cached
        assert "|scorers:words=" in here.json("s.json")["signature"]


def test_its_decoder_climbs_to_the_path_that_viterbi_finds(here: World) -> None:
    here.weights("w.json", {"LM0": 1, "words": 0, "again": 2})
    run = here.ok(f"{DECODE} --search climb")
    assert "search: climb, not exact" in run.err
    assert run.lines == here.ok(DECODE).lines == ["a lamp is lit", "the lamp"]


def test_its_utility_chooses_what_the_same_numbers_in_a_file_choose(here: World) -> None:
    lists = [["a lamp is lit", "a lamp", "lamp is a lit"], ["the the", "the x", "x y the"]]
    here.write("s.jsonl", [json.dumps({"hypotheses": of_list}) for of_list in lists])
    words = [[{*text.split()} for text in of_list] for of_list in lists]
    pairs = [np.array([[len(a & b) / len(a | b) for b in word] for a in word]) for word in words]
    arrays: dict[str, Any] = {str(t): pair for t, pair in enumerate(pairs)}
    np.savez(here.folder / "U.npz", **arrays)
    mbr = "decode --kbest s.jsonl --search mbr:utility="
    assert here.ok(f"{mbr}overlap").lines == ["a lamp is lit", "the x"]
    assert here.ok(f"{mbr}file:U.npz").lines == ["a lamp is lit", "the x"]
    assert here.ok(f"{mbr}overlap --seed 3").lines == ["a lamp is lit", "the x"]
    assert "; did you mean overlap?" in here.run(f"{mbr}overlab").err


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("[[1.0]]", "expected finite numbers (2, 2), found an array (1, 1)"),
        ("[[1.0, float('nan')]] * 2", "expected finite numbers (2, 2), found an array (2, 2)"),
        ("[[1.0], [1.0, 2.0]]", "expected rows of numbers, found ValueError: "),
        ("'a'", "expected rows of numbers, found ValueError: "),
    ],
)
def test_what_is_no_utility_names_it(
    pairs: str, message: str, here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from rerank.metrics.consensus import PairUtility\nclass Own(PairUtility):\n"
    source += f"    def pairs(self, texts):\n        return {pairs}\n"
    install(here.folder, monkeypatch, source, {"utilities": {"own": "Own"}})
    here.write("s.jsonl", '{"hypotheses": ["a", "b"]}\n')
    run = here.run("decode --kbest s.jsonl --search mbr:utility=own")
    assert (run.exit != 0, f"utility Own: {message}" in run.err) == (True, True), run.err


def test_tune_mert_follows_its_metric_with_its_scorers(here: World) -> None:
    tune = "tune-mert --kbest dev.kbest --no-docs one --ref dev.ref --objective recall --shrink 0"
    here.ok(f"{tune} --out t.json {SCORERS}")
    content = here.json("t.json")
    assert content["provenance"]["scorers"]["again"]["entry"] == "cohesion"
    assert {"LM0", "words", "again"} <= content["weights"].keys()
    here.write("w.json", json.dumps(content))
    assert here.ok(DECODE).lines == ["a lamp is lit", "the lamp"]


def test_scorers_that_cannot_be_made_are_refused(here: World) -> None:
    refused = here.refused(DECODE.replace("length:2", "lenght"))
    assert "no scorer 'lenght'; did you mean length?" in refused
    refused = here.refused(DECODE.replace("length:2", "cohesion:now"), exit=1)
    assert "--scorer words=cohesion:now: the scorer cannot be made: TypeError" in refused
