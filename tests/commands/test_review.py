"""`rerank decode --table`: what reviewers open, and `evaluate --ref` of what they send back."""

import random
import zipfile
from collections.abc import Callable
from typing import Any

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from support.world import World

SYSTEMS = "--systems A=a --systems B=b --systems C=c --docs dev.docs --source dev.src"
HOSTILE = [
    *("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2", "#N/A", "TRUE", "1e5", "007", "=A1"),
    *(
        "_x0041_",
        "_x005F_x0041_",
        "_xZZZZ_ _x00",
        "\x1b[2J\x07",
        "a\u2028b",
        "\ufffe\uffff",
        "\x0b",
    ),
    *(
        '"',
        '""quoted""',
        "a;b,c",
        "'",
        "  two  spaces  ",
        "\\t \\n",
        "# no comment",
        "<b>&amp;</b>",
    ),
    *("春天 来了", "e\u0301 ﷽ 👩‍👩‍👧", "line", "final", ""),
]


def drawn(rng: random.Random) -> str:
    return "".join(rng.choices("a =\"',;_x0041\x02\x1f\ufffe😀é", k=rng.randrange(12)))


def of_engines(world: World, lines: list[str]) -> str:
    """The options of three engines, the third of which says the same as the second."""
    rng = random.Random(7)
    world.write("a", lines)
    world.write("b", [" ".join(rng.sample(line.split(" "), line.count(" ") + 1)) for line in lines])
    world.write("c", world.lines("b"))
    world.write("dev.docs", [f"d{t // 9}" for t in range(len(lines))])
    world.write("dev.src", [f"Zeile {t}" for t in range(len(lines))])
    return SYSTEMS


@pytest.mark.parametrize("suffix", ["tsv", "csv", "xlsx", "tsv.gz"])
def test_what_is_read_of_a_table_is_what_was_written(world: World, suffix: str) -> None:
    """Whatever a text holds: of each engine, of the chosen text, and of `final`."""
    lines = [*HOSTILE, *(drawn(random.Random(n)) for n in range(60))]
    world.ok(f"decode {of_engines(world, lines)} --out out --table t.{suffix}")
    for name, file in {"chosen": "out", "A": "a", "B": "b", "C": "c"}.items():
        text = f"t.{suffix}#{name}"
        options = f"--systems X={text} --systems Y={text} --docs t.{suffix}"
        read = world.ok(f"convert {options} --to first --out -").lines
        plain = f"--systems X={file} --systems Y={file} --docs dev.docs"
        assert read == world.ok(f"convert {plain} --to first --out -").lines
    told = world.ok(f"evaluate --ref t.{suffix} out")
    assert "hypotheses identical to reference" in told.err


def test_no_text_of_a_workbook_is_a_formula_and_changed_words_are_marked(world: World) -> None:
    of_engines(world, [*HOSTILE, *(drawn(random.Random(n)) for n in range(50))])
    world.ok(f"decode {SYSTEMS} --out out --table t.xlsx")
    world.ok(f"decode {SYSTEMS} --out out --table t.tsv")
    table = world.table("t.tsv")
    sheet = openpyxl.load_workbook(world.folder / "t.xlsx", rich_text=True)["sentences"]
    header, *rows = sheet.iter_rows()
    assert [cell.value for cell in header] == [*table]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", sheet.dimensions)
    for t, row in enumerate(rows):
        for heading, cell in zip(table, row, strict=True):
            number = heading in ("line", "segment", "margin", "score", "agreement")
            expected = {"n"} if number or cell.value is None else {"s", "inlineStr"}
            assert cell.data_type in expected
        text = row[[*table].index("text")].value
        marked = isinstance(text, CellRichText) and any(isinstance(x, TextBlock) for x in text)
        more = set(table["text"][t].split(" ")) - set(table["text of A"][t].split(" "))
        assert marked >= bool(more)
        assert marked <= (table["changed"][t] == "yes")


def edited(world: World, name: str, edit: Callable[[Any], None]) -> None:
    book = openpyxl.load_workbook(world.folder / name)
    edit(book["sentences"])
    book.save(world.folder / name)


def test_an_edited_workbook_is_a_reference_whatever_the_order_of_its_rows(world: World) -> None:
    """As the plain text of its last column: no option says which documents there are."""
    texts = [f"the {word} is {n} here" for n, word in enumerate(["lamp", "light", "sun"] * 9)]
    world.ok(f"decode {of_engines(world, texts)} --out out --table t.xlsx")
    final = [f"{line} indeed\tor not" if n % 3 else line for n, line in enumerate(texts)]

    def reviewed(sheet: Any) -> None:
        last = sheet.max_column
        for row, text in zip(sheet.iter_rows(min_row=2), final, strict=True):
            row[last - 1].value = text.replace("\t", " \r\n")
        rows = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]
        random.Random(1).shuffle(rows)
        for n, row in enumerate(rows, 2):
            for m, value in enumerate(row, 1):
                sheet.cell(n, m).value = value
        sheet.delete_cols(7, 3)  # for people, as is one that is added
        sheet.cell(1, sheet.max_column + 1).value = "remark"

    edited(world, "t.xlsx", reviewed)
    world.write("final", [line.replace("\t", " ") for line in final])
    of_workbook = world.ok("evaluate --ref t.xlsx out --format json").json
    plain = world.ok("evaluate --ref final --docs dev.docs out --tokenize 13a --format json").json
    assert of_workbook["systems"] == plain["systems"]
    world.write("t.csv", 'line;document;segment;text;final\n2;d;1;a;b;\n1;d;0;c;"d ""e"""\n')
    world.write("out", 'd "e"\nb\n')
    assert "identical to reference" in world.ok("evaluate --ref t.csv out").err


def test_what_decided_is_said_in_words(world: World) -> None:
    """A term outweighs agreement, and equal scores keep the first."""
    for name, word, polite, last in (
        *(("a", "lamp", "you", "no"), ("b", "light", "you all", "no")),
        *(("c", "flame", "you all", "nay"),),
    ):
        lamp = f"the {word} is lit now at the river in the evening"
        world.write(name, [lamp, f"good day to {polite}", "yes", last])
    world.write("dev.docs", "d\n" * 4)
    world.write("dev.src", ["die Lampe brennt", "guten Tag", "ja", "nein"])
    world.write("terms", "Lampe\tlamp\n")
    world.ok(f"decode {SYSTEMS} --glossary terms --out out --table t.tsv")
    table = world.table("t.tsv")
    decided = ["glossary", "agreement", "no other text", "agreement"]
    assert table["decided by"] == decided
    assert table["terms kept"] == ["Lampe → lamp", "", "", ""]
    assert table["source"] == world.lines("dev.src")
    world.weights("w.json", {"sysC": -1.0})
    world.ok(f"decode {SYSTEMS} --weights w.json --default-weight 0 --out out --table t.tsv")
    decided = ["kept: no other is better", "weight of C", "no other text", "weight of C"]
    assert world.table("t.tsv")["decided by"] == decided


@pytest.mark.parametrize(
    ("heading", "value", "message"),
    [
        ("final", "=1+1", "t.xlsx:3: expected text as final, found a formula; give the cell the "),
        ("final", 2.5, "t.xlsx:3: expected text as final, found 2.5 as a number or date; give"),
        ("final", True, "t.xlsx:3: expected text as final, found True as a number or date; give"),
        ("line", "=1", "t.xlsx:3: expected a whole number from 1 as line, found a formula; leave"),
        ("line", 1.5, "t.xlsx:3: expected a whole number from 1 as line, found '1.5'; leave"),
        ("segment", 0, "t.xlsx:3: expected segment 0 of document 'd0' once, found it again; "),
    ],
)
def test_a_cell_that_is_no_text_or_no_place_is_named(
    world: World, heading: str, value: object, message: str
) -> None:
    world.ok(f"decode {of_engines(world, ['a b', 'c d'])} --out out --table t.xlsx")

    def edit(sheet: Any) -> None:
        column = next(cell.column for cell in sheet[1] if cell.value == heading)
        sheet.cell(3, column).value = value

    edited(world, "t.xlsx", edit)
    refused = world.run("evaluate --ref t.xlsx out")
    assert (refused.exit, refused.err.startswith(f"rerank: {message}")) == (3, True)


def test_a_hostile_workbook_ends_in_one_line(world: World) -> None:
    world.ok(f"decode {of_engines(world, ['a b', 'c d'])} --out out --table t.xlsx")
    with zipfile.ZipFile(world.folder / "t.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    entity = b'<!DOCTYPE x [<!ENTITY e "ee">]>'
    damaged = "found a damaged one"
    for part, content, message in [
        (sheet, parts[sheet][:400], damaged),
        (sheet, entity + parts[sheet], damaged),
        (sheet, parts[sheet].replace(b'<row r="2"', b'<row r="x"'), damaged),
        ("bomb", bytes(513 << 20), "expected at most 536,870,912 bytes of XML"),
        ("xl/workbook.xml", b"<workbook/>", damaged),
    ]:
        with zipfile.ZipFile(world.folder / "h.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in (parts | {part: content}).items():
                archive.writestr(name, data, compresslevel=1)
        refused = world.run("evaluate --ref h.xlsx out")
        assert (refused.exit, len(refused.err.splitlines())) == (3, 1)
        assert refused.err.startswith("rerank: h.xlsx: ")
        assert message in refused.err
