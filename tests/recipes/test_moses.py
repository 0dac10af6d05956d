"""`recipes/adapters/moses`: the decoder for mert-moses.pl, around a stand-in for Moses.

What mert-moses.pl does is written here from a description. No Moses is run.
"""

import gzip
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support.world import ROOT, World

RECIPE = ROOT / "recipes" / "adapters" / "moses"
OURS = ["--scorer", "used=document-cache", "--docs", "docids"]
CONFIG = ["-config", "moses.ini"]
ALL = [*CONFIG, "-input-file", "source"]
OVERWRITE = ["-weight-overwrite", "used= 0.2 LM0= 0.3 TM0= 0.1 0.1"]
NOUNS = [("lorry", "truck"), ("shop", "store"), ("film", "movie"), ("sea", "ocean")]
SENTENCES = 6  # of a document, 4 documents


def candidates() -> list[str]:
    """Lists in which the right noun of a document is in its first sentence, and later a toss."""
    rng = np.random.default_rng(5)
    lines = []
    for t in range(SENTENCES * len(NOUNS)):
        pair = NOUNS[t // SENTENCES]
        for n, noun in enumerate(pair if t % SENTENCES else pair[:1]):
            a, b, c = rng.normal(-4, 0.3, 3).round(2)
            for m, text in enumerate((f"he sees the {noun} now", f"he the {noun} sees now")):
                features = f"TM0= {a - m:g} {b:g} LM0= {c - m:g} tag_{n}= 1"
                lines.append(f"{t} ||| {text} ||| {features} ||| 0")
    return lines


class Moses:
    """The program in a folder with moses.ini, input, documents, references, and the stand-in."""

    def __init__(self, world: World, program: ModuleType, capture: Any) -> None:
        self.world, self.program, self.capture = world, program, capture
        world.write("candidates", candidates())
        weights = ["[weight]", "TM0= 0.2 0.1", "LM0= 0.5", "UnknownWordPenalty0= 1"]
        world.write("moses.ini", ["[candidates]", "candidates", "", *weights])
        world.write("source", [f"source {t}" for t in range(SENTENCES * len(NOUNS))])
        world.write("docids", [d for d in range(len(NOUNS)) for _ in range(SENTENCES)])
        nouns = [noun for noun, _ in NOUNS for _ in range(SENTENCES)]
        world.write("ref", [f"he sees the {noun} now" for noun in nouns])
        stand_in = f'exec "{sys.executable}" "{RECIPE / "stand_in.py"}" "$@"'
        world.write("moses", ["#!/bin/sh", stand_in]).chmod(0o755)

    def run(self, *words: str, ours: list[str] = OURS) -> tuple[int, list[str], str]:
        """Exit status, lines and messages of the decoder with these options of Moses."""
        self.capture.readouterr()
        own = ["--moses", "./moses", "--weight", "used=0.25"]
        code = int(self.program.main([*own, *ours, "--", *words]))
        out, err = self.capture.readouterr()
        return code, out.split("\n")[:-1], err

    def lines(self, *words: str) -> list[str]:
        code, lines, err = self.run(*words)
        assert code == 0, err
        return lines


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = spec_from_file_location("moses_decoder", RECIPE / "decoder.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules["moses_decoder"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def moses(world: World, program: ModuleType, capfd: pytest.CaptureFixture[str]) -> Moses:
    return Moses(world, program, capfd)


def featlist(lines: list[str]) -> list[tuple[str, float]]:
    """Features of `-show-weights` with their weights, as mert-moses.pl reads them."""
    found = []
    for line in lines:
        if match := re.match(r"(\S+)= (.+)$", line):
            values = match[2].split(" ")
            assert all(re.fullmatch(r"[+-]?[0-9.\-e]+", value) for value in values)
            found += [(match[1], float(value)) for value in values]
    return found


def order(line: str) -> list[str]:
    """Features of a line of a list, as mert-moses.pl checks them against `featlist`."""
    names, label, sparse = list[str](), "", False
    for token in line.split("|||")[2].split():
        if re.match(r".+_.+=", token):
            sparse = True
        elif match := re.match(r"([a-zA-Z][0-9a-zA-Z]*)=", token):
            label = match[1]
        else:
            assert re.fullmatch(r"-?[-0-9.\-e]+", token)
            names += [] if sparse else [label]
            sparse = False
    return names


def test_show_weights_has_the_lines_of_moses_and_ours_after_them(moses: Moses) -> None:
    """Those of the config count more than start weights; Moses gets a copy without ours."""
    expected = [*("TM0= 0.2 0.1", "LM0= 0.5", "UnknownWordPenalty0 UNTUNEABLE", "used= 0.25")]
    assert moses.lines(*CONFIG, "-inputtype", "0", "-show-weights") == expected
    moses.world.write("tuned.ini", [*moses.world.lines("moses.ini"), "used= 0.75"])
    result = featlist(moses.lines("-config", "tuned.ini", "-show-weights"))
    assert result == [("TM0", 0.2), ("TM0", 0.1), ("LM0", 0.5), ("used", 0.75)]


def test_features_are_those_under_the_path_decoded_with_the_current_weights(moses: Moses) -> None:
    world = moses.world
    names = [name for name, _ in featlist(moses.lines(*CONFIG, "-show-weights"))]
    out = moses.lines(*ALL, *OVERWRITE, "-n-best-list", "list", "100", "distinct")
    assert {(*order(line),) for line in world.lines("list")} == {(*names,)}
    world.write("w.ini", ["[weight]", "used= 0.2", "LM0= 0.3", "TM0= 0.1 0.1"])
    lists = "score --kbest candidates --docs docids --weights w.ini --out scored"
    world.ok(f"{lists} --scorer used=document-cache")
    expected = {line.split("|||")[1].strip() + line[:2]: line for line in world.lines("scored")}
    values = set()
    for line in world.lines("list"):
        sentence, text, features, total = line.split("|||")
        a, b, c, used = (float(features.split()[n]) for n in (1, 2, 4, -1))
        assert used == float(expected[text.strip() + line[:2]].split("|||")[2].split()[-1])
        assert float(total) == pytest.approx(0.2 * used + 0.1 * (a + b) + 0.3 * c)
        assert text.endswith("  ")  # the bytes of Moses
        values.add(used)
        assert int(sentence) % SENTENCES or used == 0
    assert len(values) > 2
    assert len(out) == len(world.lines("source"))


def test_translations_are_those_of_documents_under_the_weights(moses: Moses) -> None:
    alone, cached = (
        moses.lines(*ALL, "-weight-overwrite", f"used= {used} LM0= 0.3 TM0= 0.1 0.1")
        for used in (0, 3)
    )
    assert cached == moses.world.lines("ref") != alone
    moses.world.write("sparse", ["tag_1 50"])
    out = moses.lines(*ALL, "-weight-file", "sparse", *OVERWRITE)
    first = [noun for noun, _ in NOUNS for _ in range(SENTENCES)]
    assert [t for t, line in enumerate(out) if first[t] in line] == [0, 6, 12, 18]


def test_lists_are_packed_have_gaps_and_begin_where_the_options_say(moses: Moses) -> None:
    world = moses.world
    printed = moses.lines(*ALL, "-n-best-list", "-", "3")
    assert max(Counter(line.split()[0] for line in printed).values()) == 3
    for name in ("list", "list.gz"):
        out = moses.lines(*ALL, "-n-best-list", name, "3")
        content = world.content(name)
        text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
        assert text.split("\n")[:-1] == printed
    assert moses.lines(*ALL, "-start-translation-id", "1", "-n-best-list", "list", "3") == out
    assert world.lines("list")[0].startswith("1 ")
    world.write("candidates", [line for line in candidates() if not line.startswith("7 ")])
    out = moses.lines(*ALL, "-n-best-list", "list", "100")
    assert [t for t, line in enumerate(out) if not line] == [7]
    assert len(out) == len(world.lines("source"))


@pytest.mark.slow
def test_the_recipe_tunes_and_reranks_the_embedded_example(world: World) -> None:
    command = [sys.executable, str(RECIPE / "run.py"), "--work", "w", "--iterations", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=world.folder, env=environment, stdout=subprocess.PIPE, check=True
    )
    table = [line.split(" | ") for line in done.stdout.decode().splitlines() if "BLEU" not in line]
    scores = {row[0]: float(row[1].rstrip(" |")) for row in table if row[0].startswith("| t")}
    assert scores["| test set, reranked"] > scores["| test set, Moses alone"] + 2
