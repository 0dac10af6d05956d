"""Machine code against Python: what it places is what the columns of the line say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions, documents_of
from rerank.formats.moses import read_rows
from rerank.notices import Notices
from rerank.scorers.pair_grid import Grid
from rerank.scorers.pair_kernel import place_lines

SIZES = (2, 0, 3)
NAME = "d é"
LISTS = [f"{t} ||| w ||| A= 1 ||| 1".encode() for t, size in enumerate(SIZES) for _ in range(size)]


def grid(top: int | None = None) -> Grid:
    """The grid of the first candidates of each list."""
    rows = read_rows(LISTS, Notices())
    (kbest,) = documents_of(rows, Documents((NAME,), (0, 3)), Notices(), ReadingOptions(top=top))
    return Grid.of(kbest, top)


GRID = grid()
BEFORE: dict[int, list[int | None]] = {0: [None], 2: [0, 1]}


def placed(line: str, grid: Grid = GRID) -> tuple[int, dict[int, float | str]]:
    """Lines taken of one, between others, and the values, or texts, that were placed."""
    blob = f"x\n{line}\nx\n".encode()
    flat, odd = np.full(int(grid.starts[-1]), np.nan), np.zeros((2, 4), dtype=np.int64)
    name = np.frombuffer(f"{NAME}\t".encode(), dtype=np.uint8)
    i, n, n_odd = place_lines(np.frombuffer(blob, dtype=np.uint8), 2, name, grid, flat, odd)
    assert i == (len(blob) - 2 if n else 2)
    found: dict[int, float | str] = dict(enumerate(flat.tolist()))
    for place, start, stop, offset in odd[:n_odd].tolist():
        assert (found[place], offset) == (0.0, 0)
        found[place] = blob[start:stop].decode()
    return n, {place: own for place, own in found.items() if own == own}


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 3), st.none() | st.integers(0, 3), st.integers(0, 4), st.floats().map(repr))
def test_a_line_is_placed_if_its_pair_is_one_of_the_document(
    t: int, previous: int | None, index: int, number: str
) -> None:
    before = BEFORE.get(t, [])
    n, found = placed(f"{NAME}\t{t}\t{'-' if previous is None else previous}\t{index}\t{number}")
    good = previous in before and index < SIZES[t] and number not in ("nan", "inf", "-inf")
    assert n == good
    assert {p: float(own) for p, own in found.items()} == (
        {GRID.place(t, previous or 0, index): float(number)} if good else {}
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        NAME,
        f"{NAME}\t",
        f"{NAME}\t0",
        f"{NAME}\t0\t-",
        f"{NAME}\t0\t-\t",
        f"{NAME}\t0\t-\t0",
        f"{NAME}\t0\t-\t0\t",
        f"{NAME}\t0\t-\t0\t1\t",
        f"{NAME}\t0\t-\t0\t1 ",
        f"{NAME}\t0\t-\t+0\t1",
        f"{NAME}\t0\t-\t0\t1f",
        f"{NAME}\t0\t-\t{'0' * 10}\t1",
        f"{NAME}\t0\t--\t0\t1",
        f"{NAME} \t0\t-\t0\t1",
        f"{NAME}e\t0\t-\t0\t1",
        "d\t0\t-\t0\t1",
    ],
)
def test_lines_of_another_shape_are_left_to_the_grammar(line: str) -> None:
    assert placed(line) == (0, {})


def test_a_pair_that_has_its_value_is_left_to_the_grammar() -> None:
    blob = np.frombuffer(f"{NAME}\t0\t-\t0\t1\n{NAME}\t0\t-\t0\t2\n".encode(), dtype=np.uint8)
    name = np.frombuffer(f"{NAME}\t".encode(), dtype=np.uint8)
    flat, odd = np.full(8, np.nan), np.zeros((2, 4), dtype=np.int64)
    assert place_lines(blob, 0, name, GRID, flat, odd) == (len(blob) // 2, 1, 0)
    assert flat[0] == 1.0


@pytest.mark.parametrize(
    ("previous", "index", "taken"), [(1, 1, True), (2, 0, True), (0, 7, True), (0, 0, True)]
)
def test_candidates_that_were_cut_are_passed_over(previous: int, index: int, taken: bool) -> None:
    cut = grid(top=1)
    n, found = placed(f"{NAME}\t2\t{previous}\t{index}\t1.5", cut)
    assert n == taken
    assert found == ({cut.place(2, 0, 0): 1.5} if previous == index == 0 else {})
