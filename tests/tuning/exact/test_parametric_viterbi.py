"""Parametric Viterbi search, against the lines of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.chains import random_trellis

from decoders.arrays import Pairwise
from decoders.viterbi import viterbi
from rerank.tuning.exact.parametric_viterbi import Breaks, parametric_viterbi
from rerank.tuning.exact.trellis import Trellis

LO, HI = -2.0, 2.0


@st.composite
def trellises(draw: st.DrawFn) -> Trellis:
    """Few paths: sentences of one candidate, no sentences, all lines equal, slopes all 0."""
    sizes = draw(st.lists(st.integers(1, 4), max_size=5))
    spread = draw(st.sampled_from([0, 1, 3, 50]))
    found = random_trellis(draw(st.integers(0, 2**32)), sizes, spread=spread)
    return found._replace(slope=found.slope * draw(st.sampled_from([0, 1, 8])))


def lines_of(trellis: Trellis) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All paths (P, T), by their last sentence first, and their lines (2, P)."""
    sizes = np.diff(trellis.offsets).tolist()
    paths = np.array([p[::-1] for p in product(*map(range, reversed(sizes)))], dtype=np.int64)
    lines = np.zeros((2, len(paths)))
    for t, size in enumerate(sizes):
        before = paths[:, t - 1] if t else 0
        at = trellis.starts[t] + before * size + paths[:, t]
        lines += trellis.base[at], trellis.slope[at]
    return paths, lines


def segments(found: Breaks) -> tuple[list[float], list[tuple[int, ...]]]:
    """Steps where the best path changes, and the paths between them, those at one step left out."""
    assert found.complete
    path, paths, steps = found.first.copy(), [tuple(found.first.tolist())], [LO]
    for i in np.argsort(found.steps, kind="stable"):
        part = slice(found.starts[i], found.starts[i + 1])
        path[found.sentences[part]] = found.choices[part]
        if found.steps[i] == steps[-1]:
            paths[-1] = tuple(path.tolist())
        elif found.steps[i] < HI:
            steps.append(float(found.steps[i]))
            paths.append(tuple(path.tolist()))
    return [*steps, HI], paths


@settings(max_examples=50)
@given(trellises())
def test_between_breaks_no_path_of_all_is_better(trellis: Trellis) -> None:
    paths, lines = lines_of(trellis)
    places = {tuple(path): i for i, path in enumerate(paths.tolist())}
    steps, found = segments(parametric_viterbi(trellis, LO, HI, 10**6))
    for (a, b), path in zip(pairwise(steps), found, strict=True):
        scores = lines[0] + (a + b) / 2 * lines[1]
        assert scores[places[path]] >= scores.max() - 1e-9


@given(trellises())
def test_of_equal_candidates_the_first_stands_for_all(trellis: Trellis) -> None:
    """Every candidate twice: the second one is never chosen."""
    offsets, starts = trellis.offsets * 2, trellis.starts * 4
    if len(offsets) > 1:
        starts[1:] -= 2 * trellis.offsets[1]
    places, sizes = np.arange(trellis.starts[-1]), np.diff(trellis.offsets)
    blocks = np.split(places, trellis.starts[1:-1])
    twice = [
        np.tile(block.reshape(-1, k), (2 if t else 1, 2)).reshape(-1)
        for t, (block, k) in enumerate(zip(blocks, sizes, strict=False))
    ]
    order = np.concatenate(twice) if len(sizes) else places
    doubled = Trellis(offsets, starts, trellis.base[order], trellis.slope[order])
    found = parametric_viterbi(doubled, LO, HI, 10**6)
    assert (found.first < sizes).all()
    assert (found.choices < sizes[found.sentences]).all()


@given(trellises())
def test_slopes_increase_along_the_envelope_and_its_score_is_continuous(trellis: Trellis) -> None:
    paths, lines = lines_of(trellis)
    places = {tuple(path): i for i, path in enumerate(paths.tolist())}
    steps, found = segments(parametric_viterbi(trellis, LO, HI, 10**6))
    order = [places[path] for path in found]
    assert (np.diff(lines[1, order]) > 0).all()
    for step, (p, q) in zip(steps[1:-1], pairwise(order), strict=True):
        scores = lines[0] + step * lines[1]
        assert scores[p] == pytest.approx(scores[q], abs=1e-9)
        assert scores[p] == pytest.approx(scores.max(), abs=1e-9)


@given(trellises(), st.integers(-8, 8))
def test_at_one_step_it_finds_the_path_of_the_decoder(trellis: Trellis, quarters: int) -> None:
    step = quarters / 4
    sizes = np.diff(trellis.offsets).tolist()
    blocks = np.split(trellis.base + step * trellis.slope, trellis.starts[1:-1])
    matrices = [m.reshape(-1, k) for m, k in zip(blocks, sizes, strict=False)]
    found = parametric_viterbi(trellis, step, step, 10**6)
    assert tuple(found.first.tolist()) == viterbi(Pairwise(matrices))[0].choices
    assert len(found.steps) == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_long_document_of_any_numbers_is_searched_as_the_decoder_does(seed: int) -> None:
    trellis = random_trellis(seed, [12] * 40, spread=1000, unit=1 / 317)
    found = parametric_viterbi(trellis, LO, HI, 10**6)
    steps, paths = segments(found)
    assert len(paths) > 40
    for (a, b), path in zip(pairwise(steps), paths, strict=True):
        middle = (a + b) / 2
        blocks = np.split(trellis.base + middle * trellis.slope, trellis.starts[1:-1])
        best = viterbi(Pairwise([m.reshape(-1, 12) for m in blocks]))[0]
        if b - a > 1e-6:
            assert path == best.choices


def test_independent_sentences_break_each_for_itself() -> None:
    """Two sentences, lines 0 and step − place: breaks at the places, also at the same one."""
    for places in ((-1.0, 1.0), (0.5, 0.5)):
        base = np.array([0.0, -places[0], *[0.0, -places[1]] * 2])
        slope = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
        trellis = Trellis(np.array([0, 2, 4]), np.array([0, 2, 6]), base, slope)
        found = parametric_viterbi(trellis, LO, HI, 10**6)
        steps, paths = segments(found)
        assert steps[1:-1] == sorted(set(places))
        assert (paths[0], paths[-1]) == ((0, 0), (1, 1))


def test_no_more_breaks_are_looked_for_than_were_asked_for() -> None:
    trellis = random_trellis(1, [10] * 10, spread=1000)
    everything = parametric_viterbi(trellis, LO, HI, 10**6)
    assert everything.complete
    some = parametric_viterbi(trellis, LO, HI, 5)
    assert not some.complete
    assert len(some.steps) <= 6 < len(everything.steps)
