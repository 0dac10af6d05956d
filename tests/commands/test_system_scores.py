"""`--scores` and `--metric` of the outputs of systems, joined by system and segment."""

import json
import re
from collections.abc import Callable

import pytest
from support.world import World

OUTPUTS = {"A": ["one two", "same", "x", "u v"], "B": ["one", "same", "y", "u w"]}
VALUES = {"A": [0.5, 0.25, -1.0, 0.0], "B": [0.125, 0.75, 2.0, 1e-3]}
GIVEN = "--systems A=A.out --systems B=B.out --docs dev.docs"
LINES = "--scores q=A:A.q --scores q=B:B.q"
CELLS = [(system, t) for system in VALUES for t in range(4)]


@pytest.fixture
def here(world: World) -> World:
    for name, lines in OUTPUTS.items():
        world.write(f"{name}.out", lines)
        world.write(f"{name}.q", VALUES[name])
    return world


def rows(first: int, *, documents: bool) -> list[dict[str, object]]:
    """A row of a table for each cell; sentences of a document, or of all, count from `first`."""
    return [
        {
            **({"document": ("evening", "town")[t // 2]} if documents else {}),
            "segment": first + (t % 2 if documents else t),
            "system": system,
            "value": VALUES[system][t],
        }
        for system, t in reversed(CELLS)
    ]


def delimited(mark: str) -> Callable[[list[dict[str, object]]], str]:
    return lambda table: "".join(
        mark.join(map(str, line)) + "\n" for line in ([*table[0]], *(one.values() for one in table))
    )


def json_lines(table: list[dict[str, object]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in table)


def test_scores_of_each_system_stand_beside_its_outputs(here: World) -> None:
    result = [line.split(" ||| ") for line in here.ok(f"score {GIVEN} {LINES}").lines]
    values = {(int(row[0]), row[1]): float(row[2].split()[-1]) for row in result}
    for t, (a, b) in enumerate(zip(*OUTPUTS.values(), strict=True)):
        own = {a: VALUES["A"][t], b: VALUES["B"][t]}
        if a == b:
            own = {a: (VALUES["A"][t] + VALUES["B"][t]) / 2}
        assert {text: value for (s, text), value in values.items() if s == t} == own


@pytest.mark.parametrize(
    "write", [delimited("\t"), delimited(","), json_lines], ids=["tsv", "csv", "jsonl"]
)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("documents", [False, True])
def test_a_table_says_the_same_as_files(
    here: World, write: Callable[[list[dict[str, object]]], str], first: int, documents: bool
) -> None:
    here.write("t", write(rows(first, documents=documents)))
    assert here.ok(f"score {GIVEN} --scores q=t").out == here.ok(f"score {GIVEN} {LINES}").out


@pytest.mark.parametrize("folder", ["", "out/"])
def test_the_output_of_comet_is_a_table_whose_systems_are_files(here: World, folder: str) -> None:
    lines = [f"{folder}{s}.out\tSegment {t}\tscore: {VALUES[s][t]}" for s, t in CELLS]
    means = [f"{folder}{s}.out\tscore: 0.5" for s in VALUES]
    here.write("all", [*lines[:4], means[0], *lines[4:], means[1]])
    named = GIVEN
    for name in OUTPUTS:
        here.write(f"{folder}{name}.out", OUTPUTS[name])
        named = named.replace(f"={name}.out", f"={folder}{name}.out")
    expected = here.ok(f"score {GIVEN} {LINES}").out
    assert here.ok(f"score {named} --scores q=all").out == expected
    here.write("A.comet", [*lines[:4], means[0]])
    run = here.run(f"score {GIVEN} --scores q=A:A.comet --scores q=B:B.q")
    assert "write its numbers alone, one on each line" in run.err
    here.write("numbers", [line.rpartition(" ")[2] for line in lines[:4]])
    assert here.ok(f"score {GIVEN} --scores q=A:numbers --scores q=B:B.q").out == expected


def test_a_metric_by_system_tunes_as_one_by_line(here: World) -> None:
    scored = here.ok(f"score {GIVEN} {LINES}").lines
    here.write("by.line", [line.split(" ||| ")[2].split()[-1] for line in scored])
    tune = f"tune-mert {GIVEN} --ref dev.ref --objective q --starts 1 --out"
    here.ok(f"{tune} a.json --metric q=by.line")
    run = here.ok(f"{tune} b.json --metric q=A:A.q --metric q=B:B.q")
    assert "metric:q|file:<q of the systems>=" in run.err  # no number that differs between runs
    assert here.json("a.json")["weights"] == here.json("b.json")["weights"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("A:A.q", "A.q: expected a value of q for segment 1 of document 'evening' and system B,"),
        ("C:A.q", "expected SYSTEM:FILE with SYSTEM one of A, B; a path with a colon is ./PATH"),
        ("A:short --scores q=B:B.q", "short:2: expected 4 lines as the source has, found 1; write"),
        ("empty", "empty:3: expected the columns segment, system and value of q, found no value"),
        ("twice", "twice:10: expected one value of q for each segment of a system, found anoth"),
        ("words", "words:2: expected the number of a segment, found 'one'; number segments"),
        ("hole", "hole:6: expected a value of q for segment 2 of document 'town' and system A, fo"),
        ("A:A.q --scores q=A:B.q", "B.q:1: expected one value of q for each segment of a system"),
        ("wide", "wide:1: expected a table with the columns segment, system and value, what comet"),
        ("named", "found none; call the systems in it as --systems does, A, B"),
        ("twice,reference=z", "twice: expected rows of the reference z, found (none); give one"),
    ],
)
def test_a_missing_cell_is_named(here: World, options: str, message: str) -> None:
    table = delimited("\t")(rows(0, documents=False))
    here.write("short", "1\n")
    here.write("wide", "segment\tA\tB\n0\t1\t2\n")
    here.write("named", table.replace("\tA\t", "\tsys-a\t").replace("\tB\t", "\tsys-b\t"))
    here.write("empty", "segment\tsystem\tvalue\n0\tA\t1\n1\tA\t\n")
    here.write("twice", table + "3\tB\t5\n")
    here.write("hole", "".join(line + "\n" for line in table.splitlines() if line[:3] != "3\tA"))
    here.write("words", "segment\tsystem\tq\none\tA\t1\n")
    run = here.run(f"score {GIVEN} --scores q={options}")
    assert (run.exit in (2, 3), message in run.err) == (True, True), run.err
    here.ok(f"score {GIVEN} {LINES}")
    here.write("A:A.q", range(7))
    here.ok(f"score {GIVEN} --scores q=./A:A.q")


@pytest.mark.parametrize(
    "write", [delimited("\t"), delimited(","), json_lines], ids=["tsv", "csv", "jsonl"]
)
@pytest.mark.parametrize(
    "others", [{"ref": "B b"}, {"langpair": "en-cs"}, {"refset": "B", "lp": "en-cs"}], ids=len
)
def test_a_table_of_several_references_names_the_option_that_chooses(
    here: World, write: Callable[[list[dict[str, object]]], str], others: dict[str, object]
) -> None:
    """The rows of other references or directions come first, and are fewer."""
    table = rows(0, documents=True)
    own = dict.fromkeys(others, "A")
    odd = [{**row, "value": 9, **others} for row in table[1:5]]
    here.write("t.q", write([*odd, *({**row, **own} for row in table)]))
    run = here.run(f"score {GIVEN} --scores q=t.q")
    assert (run.exit, ": expected one value of q for each" in run.err) == (3, True), run.err
    (cure,) = re.findall(r": (--scores \S+); there are ", run.err)
    assert here.ok(f"score {GIVEN} {cure}").out == here.ok(f"score {GIVEN} {LINES}").out
    tune = f"tune-mert {GIVEN} --ref dev.ref --objective q --starts 1"
    run = here.run(f"{tune} --out a.json --metric q=t.q")
    (cure,) = re.findall(r": (--metric \S+); there are ", run.err)
    here.ok(f"{tune} --out a.json {cure}")


@pytest.mark.parametrize("documents", [True, False])
def test_segments_are_the_ids_of_the_documents_file(here: World, documents: bool) -> None:
    ids, names = ["p2", "p1", "7a", "p3"], ["evening"] * 2 + ["town"] * 2
    own: list[dict[str, object]] = [
        {"document": d, "segment_id": s} for d, s in zip(names, ids, strict=True)
    ]
    here.write("d.jsonl", json_lines(own))
    given = GIVEN.replace("dev.docs", "d.jsonl")
    table = rows(0, documents=False)
    named = [{**row, "segment": ids[int(str(row["segment"]))]} for row in table]
    if documents:
        named = [{"doc": names[ids.index(str(row["segment"]))], **row} for row in named]
    here.write("t", delimited("\t")(named))
    assert here.ok(f"score {given} --scores q=t").out == here.ok(f"score {GIVEN} {LINES}").out
    here.write("t", delimited("\t")([{**row, "segment": "p"} for row in named]))
    run = here.run(f"score {given} --scores q=t")
    assert "t:2: expected the number of a segment, found 'p'; number segments from" in run.err


def test_a_list_that_is_merged_with_systems_brings_its_own_scores(here: World) -> None:
    """The cure of the refusal makes a list whose feature q is joined with the others' values."""
    here.write("dev.q", range(9))
    given = f"{GIVEN} --kbest base=dev.kbest"
    run = here.run(f"score {given} {LINES} --scores q=base:dev.q")
    assert (run.exit, "base is a k-best list, with several candidates" in run.err) == (2, True)
    command, more = re.findall(r"`(rerank .*?)`, give (--kbest \S+) ", run.err)[0]
    here.ok(command.removeprefix("rerank "))
    result = [
        json.loads(line)["candidates"] for line in here.ok(f"score {GIVEN} {more} {LINES}").lines
    ]
    values = {one["text"]: one["features"]["q"] for own in result for one in own}
    assert [values[text] for text in ("the lamp is lit", "no one is coming")] == [0, 8]
    assert [values[text] for text in ("one two", "same")] == [0.5, 0.5]
    run = here.run(f"score {given} {LINES}")
    assert "and system base, found none; " in run.err
    assert "--scores q=FILE" in run.err
