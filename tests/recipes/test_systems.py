"""`recipes/studies/systems` on a made-up WMT XML: both halves, every row, and consensus."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from support.world import World

SENTENCES = ("the lamp is lit in the old house", "she sees it from the bridge at night")
ERRORS = {"A": ("old", "new"), "B": ("lit", "light"), "C": ("sees", "sees a"), "D": ("the", "a")}


def xml(
    documents: int,
    *,
    unreferenced: Sequence[int] = (),
    second: Sequence[int] = (),
    missing: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Documents in which each system makes its own error in every sentence, and D in all words.

    unreferenced: documents without references; second: documents with another one before the
    first; missing: a document that a system has not translated.
    """
    parts = ["<dataset>"]
    for d in range(documents):
        texts = [f"{sentence} {d} times over and over" for sentence in SENTENCES]
        outputs = {
            name: [text.replace(old, new) for text in texts] for name, (old, new) in ERRORS.items()
        }
        named = {'src lang="xx"': texts}
        if d in second:
            named['ref lang="en" translator="B"'] = [f"{text} indeed" for text in texts]
        if d not in unreferenced:
            named['ref lang="en" translator="A"'] = texts
        named |= {
            f'hyp lang="en" system="{name}"': own
            for name, own in outputs.items()
            if missing.get(name) != d
        }
        parts.append(f'<doc id="d{d}">')
        for tag, own in named.items():
            segments = "".join(f'<seg id="{n}">{text}</seg>' for n, text in enumerate(own, 1))
            parts.append(f"<{tag}><p>{segments}</p></{tag.split()[0]}>")
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>"])


def options(world: World, text: str) -> list[object]:
    return ["--xml", world.write("made.xml", text), "--work", "work"]


def test_both_halves_are_tuned_on_and_tested(world: World, script: Any) -> None:
    text = xml(8, unreferenced=(1, 4), second=(2,), missing={"D": 3})
    done = script("studies/systems/run.py", *options(world, text))
    said = [line for line in done.err.splitlines() if line.startswith("made.xml: ")]
    assert said == [
        "made.xml: reference 'A', of 'A', 'B'",
        "made.xml: 2 of 8 documents left out, without reference",
        "made.xml: system 'D' left out, without 1 of these documents",
    ]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.out.splitlines()]
    assert [row[:2] for row in rows[2:]] == [["made.0", "made.1"]] * 4 + [["made.1", "made.0"]] * 4
    for best, *consensus, tuned in (rows[2:6], rows[6:10]):
        assert best[2].startswith("best system there: ")
        assert [row[2] for row in consensus] == ["sentence MBR", "document MBR"]
        assert tuned[2] == "tuned combination"
        assert float(tuned[3]) >= float(best[3]) - 0.1


def test_a_file_of_one_complete_system_is_refused(world: World, script: Any) -> None:
    text = xml(2, missing={"A": 0, "B": 1, "C": 1})
    with pytest.raises(SystemExit, match=r"two systems that translate all .*, found 2 and 1"):
        script("studies/systems/run.py", *options(world, text))
