"""`rerank` in place of scripts/nbest-rescore of Moses: the same totals and choices.

The truth is written from a description of the scripts. rescore.py: column 4 is the sum of weights ·
features, by the first section [weight], a line for each label; the order of lines stays.
topbest.py: of the lines of one id in a row the first with the largest column 4.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from support.world import World

# powers of 2: totals that are equal are equal floats, in whatever order they are summed
INI = "# rescored\n\n[weight]\nTM0= 0.25 -0.125\nLM0= 0.5\nWordPenalty0= -0.125\n"


def weights_of(ini: str) -> dict[str, list[float]]:
    """Weights of a rescore.ini, by label with its `=`."""
    lines = ini.partition("[weight]\n")[2].partition("\n[")[0].split("\n")
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {label: [float(value) for value in values] for label, *values in rows}


def rescored(lines: Sequence[str], ini: str) -> list[str]:
    """The lines with new totals."""
    weights, found = weights_of(ini), []
    for line in lines:
        fields = [field.strip() for field in line.split("|||")]
        left: list[float] = []
        total = 0.0
        for token in fields[2].split():
            if token.endswith("="):
                assert not left, "a label has too few values"
                left = [*weights[token]]
            else:
                total += left.pop(0) * float(token)
        fields[3:4] = [repr(total)]
        found.append(" ||| ".join(fields))
    return found


def topbest(lines: Sequence[str]) -> Iterator[str]:
    """The chosen hypotheses: one for each run of lines with the same id."""
    last: str | None = None
    chosen, largest = "", 0.0
    for line in lines:
        number, text, _, score, *_ = (field.strip() for field in line.split("|||"))
        if number != last or float(score) > largest:
            if last is not None and number != last:
                yield chosen
            last, chosen, largest = number, text, float(score)
    if last is not None:
        yield chosen


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


def decode(world: World, ini: str) -> tuple[list[str], list[str]]:
    """Rescored list and choices of `rerank decode`."""
    world.write("rescore.ini", ini)
    command = "decode --kbest list --no-docs each --weights rescore.ini --kbest-out rescored"
    chosen = world.ok(command).lines
    return world.lines("rescored"), chosen


@pytest.mark.parametrize("seed", range(2))
def test_totals_and_choices_are_those_of_the_scripts_ties_included(seed: int, world: World) -> None:
    lines = lists(seed=seed)
    world.write("list", lines)
    theirs = rescored(lines, INI)
    equal = [totals(theirs[t : t + 8]) for t in range(0, len(theirs), 8)]
    assert any(one.count(max(one)) > 1 for one in equal)  # lists whose best candidates tie
    ours, chosen = decode(world, INI)
    np.testing.assert_allclose(totals(ours), totals(theirs), rtol=1e-8, atol=1e-12)  # nine digits
    assert chosen == [*topbest(theirs)] == [*topbest(ours)]
    for before, after in zip(lines, ours, strict=True):  # only the total changes
        old, new = before.split("|||"), after.split("|||")
        assert [*new[:3], *new[4:]] == [*old[:3], *old[4:]]
    eightfold = INI.replace("-0.125", "-1").replace("0.25", "2").replace("0.5", "4")
    more, same = decode(world, eightfold)
    assert chosen == same
    np.testing.assert_allclose(totals(more), 8 * np.array(totals(ours)), rtol=1e-8)
