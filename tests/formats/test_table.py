"""The table of formats: which one is taken for a file, and formats of other packages."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions
from rerank.errors import InputError
from rerank.formats.moses import Moses
from rerank.formats.table import Survey, detect, format_of, formats, read_documents, survey_of
from rerank.notices import Notices
from rerank.registry import FORMATS

LINE = b"0 ||| a b ||| A= 1 ||| 2"


class Shouted(Moses):
    """A format of another package: Moses lists under a line of their own."""

    name = "shouted"

    def detect(self, head: Sequence[bytes]) -> bool:
        return head[0] == b"SHOUTED"


def test_formats_have_the_names_of_the_table() -> None:
    assert [known.name for known in formats()] == list(FORMATS.builtin)


def test_all_lines_of_a_file_are_there_after_its_format_is_known() -> None:
    lines = [b"", b" ", *[LINE] * 50]
    known, found = detect(iter(lines))
    assert known.name == "moses"
    assert list(found) == lines


def test_a_file_of_no_known_format_is_refused_with_its_line_and_the_formats_tried() -> None:
    with pytest.raises(
        InputError,
        match=r"^dev.txt:3: expected a k-best list, found 'a b c'; it looks like plain text: .*"
        r"`rerank convert .*`; formats tried: .*, moses; `rerank",
    ):
        detect(iter([b"", b"  ", b"a b c", LINE]), source="dev.txt")


@pytest.mark.parametrize("lines", [[], [b""], [b"", b"\t"]])
def test_a_file_without_content_has_no_hypotheses(lines: list[bytes]) -> None:
    with pytest.raises(InputError, match=r"^dev.txt: expected a k-best list, found no hypotheses"):
        detect(iter(lines), source="dev.txt")


def test_a_survey_counts_the_first_candidates_of_each_sentence(tmp_path: Path) -> None:
    path = tmp_path / "dev.kbest"
    texts = {3: [b"a b", b"", b"d"], 1: [b"c"]}
    lines = [b"%d ||| %s ||| A= inf" % (t, text) for t in texts for text in texts[t]]
    path.write_bytes(b"\n".join([lines[0], b"", lines[3], *lines[1:3], b"", b""]))
    assert survey_of(path, ReadingOptions(clip_inf=9)) == Survey(4, 4, 3, 5, False)
    assert survey_of(path, ReadingOptions(clip_inf=9, top=1)) == Survey(2, 3, 3, 5, False)
    with pytest.raises(InputError, match=r"dev.kbest:1: .*--clip-inf"):
        survey_of(path)


def test_a_file_is_surveyed_and_read_in_the_format_it_is_in(tmp_path: Path) -> None:
    path = tmp_path / "dev.kbest"
    path.write_bytes(LINE + b"\n" + LINE + b"\n")
    assert format_of(path).name == "moses"
    assert survey_of(path) == Survey(2, 4, 0, 2)
    assert survey_of(path, ReadingOptions(top=1)) == Survey(1, 2, 0, 2)
    (kbest,) = read_documents(path, Documents.one(1), Notices())
    assert kbest.texts.to_list() == [b"a b", b"a b"]
    assert kbest.source == str(path)


def test_a_format_of_another_package_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("shouted", f"{__name__}:Shouted", "rerank.formats")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Shouted)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    assert detect(iter([b"SHOUTED", LINE]))[0].name == "shouted"
    assert detect(iter([LINE]))[0].name == "moses"


def test_of_a_file_of_blank_lines_only_the_first_are_read() -> None:
    """A compressed file of a megabyte may have a billion of them."""
    lines = iter([b""] * 5000)
    with pytest.raises(InputError, match="expected a k-best list, found no hypotheses"):
        detect(lines)
    assert sum(1 for _ in lines) == 5000 - 1020
    found, lines = detect(iter([b""] * 1019 + [b"0 ||| a ||| F= 1 ||| 1"]))
    assert (found.name, sum(1 for _ in lines)) == ("moses", 1020)


@pytest.mark.parametrize(("ids", "rising"), [((0, 0, 2, 3), True), ((0, 1, 0), False)])
def test_a_survey_says_whether_sentences_come_in_order(
    tmp_path: Path, ids: tuple[int, ...], rising: bool
) -> None:
    file = tmp_path / "list"
    file.write_text("".join(f"{i} ||| a ||| F= 1 ||| 1\n" for i in ids))
    assert survey_of(file).rising is rising


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("S-0\ts\nH-0\t-1\tx\nS-1\ts\nS-2\ts\n", 2),
        ("O\ts\nH\t-1\tx\nO\ts\n", 1),
        ('{"candidates": ["x"]}\n\n{"candidates": []}\n{"candidates": [ ]}\n', 2),
        ('{"id": 3, "candidates": ["x"]}\n{"id": 7, "candidates": []}\n', 7),
        ('{"id": 3, "candidates": ["x"]}\n{"id": 7, "candidates": [}\n', None),
        (
            '{"sentence_id": 1, "translation": "x", "score": 1}\n'
            '{"sentence_id": 2, "translations": [], "scores": []}\n',
            1,
        ),
        ("NC=1\nNC=0\nNC=0\n", 1),
        ('{"a": {"ref": "x", "hyp_1": {"score": 1, "text": "x"}}, "b": {"ref": "y"}}', 1),
    ],
    ids=["fairseq", "interactive", "jsonl", "ids", "fault", "sockeye", "mbr-nmt", "mlm-scoring"],
)
def test_sentences_without_hypotheses_at_the_end_count(
    tmp_path: Path, text: str, last: int | None
) -> None:
    path = tmp_path / "list"
    path.write_text(text)
    if last is None:
        with pytest.raises(InputError, match=":2: expected one JSON object"):
            survey_of(path)
        return
    assert survey_of(path).last_id == last
    notices = Notices()
    (kbest,) = read_documents(path, Documents.one(last + 1), notices)
    assert len(kbest) == last + 1
    assert any("without hypotheses" in line for line in notices.lines())
