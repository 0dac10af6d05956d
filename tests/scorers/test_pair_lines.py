"""Lines one at a time, and what machine code takes of them, against the lines split."""

from collections.abc import Iterator

import numpy as np
import pytest

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import documents_of
from rerank.formats.moses import read_rows
from rerank.formats.tokens import number as parsed
from rerank.notices import Notices
from rerank.scorers import pair_lines
from rerank.scorers.pair_grid import Grid
from rerank.scorers.pair_lines import PairLines

LINES = [b"d\t0\t-\t%d\t%d" % (k, k) for k in range(5)]


def read(token: bytes, line: int) -> float:
    return parsed(token, str(line))


@pytest.fixture
def grid() -> Grid:
    """One list of five candidates."""
    rows = read_rows([b"0 ||| a ||| A= 1 ||| 1"] * 5, Notices())
    return Grid.of(next(documents_of(rows, Documents(("d",), (0, 1)), Notices())), None)


def stepped(lines: PairLines) -> Iterator[tuple[int, bytes]]:
    while (line := lines.peek()) is not None:
        yield lines.number, line
        lines.step()


@pytest.mark.parametrize("block", [1, 2, 5, 99])
@pytest.mark.parametrize("lines", [[], [b""], [b"a"], [b"a", b"", b"", b"b", b""]])
def test_lines_come_one_by_one_with_their_numbers(
    block: int, lines: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_lines, "BLOCK", block)
    assert list(stepped(PairLines(iter(lines)))) == list(enumerate(lines, 1))


def test_a_line_stays_until_it_is_left() -> None:
    lines = PairLines(iter(LINES))
    assert lines.peek() == lines.peek() == LINES[0]


def test_a_short_file_waits_for_no_compiler(grid: Grid) -> None:
    lines = PairLines(iter(LINES))
    lines.peek()
    assert lines.take("d", grid, np.full(5, np.nan), read) == 0


def test_machine_code_goes_as_far_as_the_block_or_a_line_that_is_not_common(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_lines, "BLOCK", 3)
    flat = np.full(5, np.nan)
    lines = PairLines(iter([LINES[0], LINES[1], LINES[2], LINES[3], b"d\t0\t-\t 4\t4"]))
    lines.peek()
    assert (lines.take("d", grid, flat, read), lines.number) == (3, 4)
    lines.peek()
    assert (lines.take("d", grid, flat, read), lines.number) == (1, 5)
    assert lines.peek() == b"d\t0\t-\t 4\t4"
    assert flat.tolist()[:4] == [0, 1, 2, 3]
    assert np.isnan(flat[4])


def test_numbers_of_more_than_one_rounding_are_read_with_their_lines(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_lines, "BLOCK", 5)
    asked: list[int] = []

    def noted(token: bytes, line: int) -> float:
        asked.append(line)
        return 0.5

    values = [b"1", b"0.12345678901234567", b"2", b"1e400", b"3"]
    lines = PairLines(iter([b"d\t0\t-\t%d\t%s" % item for item in enumerate(values)]))
    flat = np.full(5, np.nan)
    lines.peek()
    assert lines.take("d", grid, flat, noted) == 5
    assert asked == [2, 4]  # both, as one of them is not finite
    assert flat.tolist() == [1, 0.5, 2, 0.5, 3]
