"""Contrastive sets in JSON lines: what is read, and what is refused, with line and cure."""

import json
from pathlib import Path

import pytest

from rerank.errors import InputError
from rerank.formats.contrastive import ContrastiveItem, read_contrastive
from rerank.notices import Notices

SOUND = '{"context": [], "right": "it burns", "wrong": "he burns"}'


def read(path: Path, *lines: str, notices: Notices | None = None) -> list[ContrastiveItem]:
    file = path / "set.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_contrastive(file, notices or Notices())


def test_an_item_has_a_context_a_right_sentence_and_wrong_ones(tmp_path: Path) -> None:
    item = {"id": 7, "context": ["the  lamp is lit ", "café"], "right": "it burns", "wrong": "a"}
    groups = {"phenomenon": "gender", "pronoun": "it"}
    several = {**item, "wrong": ["he burns", "she burns"], **groups}
    assert read(tmp_path, json.dumps(item), json.dumps(several, ensure_ascii=False)) == [
        ContrastiveItem((b"the lamp is lit", "café".encode()), b"it burns", (b"a",)),
        ContrastiveItem(
            (b"the lamp is lit", "café".encode()),
            b"it burns",
            (b"he burns", b"she burns"),
            (("phenomenon", "gender"), ("pronoun", "it")),
        ),
    ]


def test_words_are_split_on_ascii_space_only(tmp_path: Path) -> None:
    (item,) = read(tmp_path, json.dumps({"context": [], "right": "a\u00a0b\tc d", "wrong": "d"}))
    assert item.right.split(b" ") == ["a\u00a0b\tc".encode(), b"d"]


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    notices = Notices()
    assert len(read(tmp_path, "", SOUND, " ", SOUND, notices=notices)) == 2
    (line,) = notices.lines()
    assert line.startswith("2 x blank line, skipped, first at ")
    assert line.endswith("set.jsonl:1")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("the lamp", "expected one JSON object on the line: Expecting value at character 1"),
        (SOUND + SOUND, "expected one JSON object on the line: Extra data at character 58"),
        ('["a"]', r'expected a JSON object on the line, found \["a"\]'),
        ("[" * 100_000, "found too deep a nesting"),
        ('{"id": ' + "1" * 5000 + "}", "expected one JSON object on the line: .*digit"),
        ('{"id": NaN}', "found NaN, which is not JSON; remove it"),
        ('{"id": 1, "id": 2}', 'found the field "id" twice in one object; keep one'),
        ('{"rigth": "a"}', "found the field \"rigth\"; did you mean 'right'.; rename or remove it"),
        ('{"zzz": "a"}', 'found the field "zzz"; there are: id, context, .*; rename or remove'),
        (
            '{"right": "a", "wrong": "b"}',
            "expected the field 'context', found none; give .* \\[\\]",
        ),
        ('{"context": []}', "expected the field 'right', found none; a line is {.*}"),
        (
            SOUND.replace("[]", '"a b"'),
            "expected a list of sentences as 'context', found \"a b\"; write .sentence.",
        ),
        (SOUND.replace("[]", "[1]"), "expected a sentence as 'context', found 1"),
        (SOUND.replace("[]", '[" "]'), "expected a sentence as 'context', found no words"),
        (SOUND.replace('"he burns"', "[]"), "expected a sentence or several as 'wrong', found an"),
        (SOUND.replace('"he burns"', "null"), "expected a sentence as 'wrong', found null"),
        (SOUND.replace("he burns", "it  burns"), "expected 'wrong' to differ from 'right'; corr"),
        (SOUND.replace("it burns", r"it\nburns"), "expected one sentence as 'right', found a line"),
        (SOUND.replace("it burns", r"\ud800"), "found half a surrogate pair in 'right'; write"),
        (SOUND[:-1] + ', "pronoun": 3}', "expected text as 'pronoun', found 3; write it in quotes"),
        (SOUND[:-1] + r', "pronoun": "\udfff"}', "found half a surrogate pair in 'pronoun'"),
    ],
)
def test_a_fault_is_told_with_its_line_and_a_cure(line: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"set\.jsonl:2: .*{told}"):
        read(tmp_path, SOUND, line)


def test_a_file_without_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"set\.jsonl:1: expected a JSON object per line, found n"):
        read(tmp_path)


def test_long_values_are_cut_in_messages(tmp_path: Path) -> None:
    with pytest.raises(InputError) as fault:
        read(tmp_path, json.dumps({"x" * 10_000: 1}))
    assert len(str(fault.value)) < 400
