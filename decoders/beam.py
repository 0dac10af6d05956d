"""Search that keeps the best few document-level hypotheses at each sentence.

Equation (18) of J. Eisenstein, "The Document Context Language Model" (memo, §3.2), with ⊕ = the
`width` best; the method is B. Lowerre, "The HARPY speech recognition system", Carnegie Mellon
University, 1976. Recombination of hypotheses that the rest of the document cannot tell apart:
P. Koehn, F. J. Och, D. Marcu, "Statistical phrase-based translation", 2003,
https://aclanthology.org/N03-1017.

Hypotheses are held in the order of the tie rule (`decoders.problem`), not of their scores. Then the
(K_t, N) array of extensions, one row per candidate and one column per hypothesis, is in that order
too when read row by row: the last choice first, earlier choices after it. Selection by position is
the tie rule, and no history is ever compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.batching import Extend, Steps, batchable
from decoders.exhaustive import path_at
from decoders.problem import Array, DocumentProblem, Indices, Path, checked


@batchable
def beam(
    problem: DocumentProblem,
    *,
    width: int | None,
    n_best: int = 1,
    threshold: float = math.inf,
) -> Steps[list[Path]]:
    """The `n_best` highest-scoring paths among those whose prefixes all stayed in the beam.

    The beam holds `width` contexts (None: all of them). Hypotheses that end in the same `order`
    choices (all choices, if the order is unbounded) share a context, which keeps the best `n_best`
    of them; hypotheses worse than the best by more than `threshold` are dropped as well. Serves
    every order. Exact on order 0 and wherever `width` covers all contexts (`full_width`); no
    guarantee otherwise, and fewer paths than `n_best` only if the beam saw fewer. O(Σ B K_t) time
    beside the problem's own and O(T B) memory, where B is `width`, on finite orders times n_best.
    Ties: the rule of `decoders.problem`, applied to prefixes when the beam is cut and to paths at
    the end. Deterministic. Errors: ValueError for an invalid width, n_best or threshold, ScoreError
    naming the sentence.
    """
    if (width is not None and width < 1) or n_best < 1 or not threshold >= 0:
        raise ValueError(
            "expected a width and n_best of at least 1 and a threshold of at least 0, found "
            f"{width}, {n_best}, {threshold}"
        )
    states, order, last = problem.initial(), problem.order, len(problem.lengths) - 1
    totals = np.zeros(1)  # (N,) scores of the hypotheses, in the order of the tie rule
    contexts = np.zeros(1, dtype=np.intp)  # (N,) the state that each hypothesis is in
    tails = np.zeros((1, max(0, (order or 0) - 1)), dtype=np.intp)  # (N, n-1) latest choices first
    parents_at: list[Indices] = []  # (N,) of each sentence
    choices_at: list[Indices] = []  # (N,)
    complete = True
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        scores = checked(scores, t, shape=(int(contexts.max()) + 1, length))
        extensions = np.add(scores.T[:, contexts], totals, order="C").ravel()  # of (K_t, N)
        if t == last or order == 0:  # one context
            kept = top_positions(extensions, n_best)
            labels = np.zeros(kept.size, dtype=np.intp)
        elif order is None:  # as many contexts as hypotheses
            kept = labels = top_positions(extensions, width)
            complete = complete and kept.size == extensions.size
        else:
            tail = _number_rows(tails)
            kept, dropped = recombine(
                extensions.reshape(length, -1), tail, width=width, n_best=n_best
            )
            choices, parents = np.divmod(kept, totals.size)
            labels = choices * totals.size + tail[parents]
            complete = complete and not dropped
        near = extensions[kept] >= max(extensions.max() - threshold, -np.inf)
        kept, labels, complete = kept[near], labels[near], complete and bool(near.all())
        choices, parents = np.divmod(kept, totals.size)
        totals = extensions[kept]
        parents_at.append(parents)
        choices_at.append(choices)
        if t != last:
            _, leaders, new = np.unique(labels, return_index=True, return_inverse=True)
            states = problem.select(successors, contexts[parents[leaders]], choices[leaders])
            contexts = new
            tails = np.column_stack([choices, tails[parents]])[:, : tails.shape[1]]
    ranked = np.argsort(-totals, kind="stable")[:n_best]
    rows = backtrack(parents_at, ranked, choices_at).tolist()
    paths = [Path(tuple(r), s) for r, s in zip(rows, totals[ranked].tolist(), strict=True)]
    return _add_impossible(paths, problem.lengths, n_best) if complete else paths


def top_positions(scores: Array, width: int | None) -> Indices:
    """Ascending positions of the `width` highest scores; of equal scores the first ones.

    O(n) for `scores: (n,)` without NaN, by partition: no sort.
    """
    if width is None or scores.size <= width:
        return np.arange(scores.size)
    threshold = np.partition(scores, -width)[-width]
    kept = np.flatnonzero(scores >= threshold)
    if kept.size > width:  # too many equal the threshold: drop the last of those
        equal = np.flatnonzero(scores[kept] == threshold)
        kept = np.delete(kept, equal[width - kept.size :])
    return kept


def recombine(
    scores: Array, tails: Indices, *, width: int | None, n_best: int
) -> tuple[Indices, bool]:
    """Ascending flat positions of the `n_best` highest of each of the `width` best groups.

    `scores: (K, N)` without NaN, `tails: (N,)` numbers 0, …, U−1; a group is the entries of one row
    in all columns of one number. Groups are compared by their best score; of equal scores the
    first ones are kept. Also returns whether any group was dropped. By partition, O(K U S) where
    the largest group has S columns, and a sort of the K U groups.
    """
    length, n = scores.shape
    columns = _positions_of_numbers(tails)  # (U, S)
    padded = np.pad(scores, ((0, 0), (0, 1)), constant_values=-np.inf)[:, columns]
    places = np.arange(length)[:, None, None] * n + columns  # (K, U, S), flat
    first = padded.argmax(axis=2)[:, :, None]
    leaders = np.take_along_axis(places, first, axis=2).ravel()
    by_place = np.sort(leaders)
    chosen = by_place[top_positions(scores.ravel()[by_place], width)]
    if n_best > 1:
        among = np.zeros(scores.size, dtype=np.bool_)
        among[chosen] = True
        groups = among[leaders].reshape(length, -1)
        highest = _top_of_rows(padded[groups], n_best) & (columns < n)[np.nonzero(groups)[1]]
        return np.sort(places[groups][highest]), chosen.size < leaders.size
    return chosen, chosen.size < leaders.size


def _positions_of_numbers(numbers: Indices) -> Indices:
    """Positions (U, S) of each number 0, …, U−1 of (N,), ascending, rows filled up with N."""
    sizes = np.bincount(numbers)
    places = np.arange(numbers.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ranked = np.argsort(numbers, kind="stable")
    gathered = np.full((sizes.size, sizes.max()), numbers.size, dtype=np.intp)
    gathered[numbers[ranked], places] = ranked
    return gathered


def _top_of_rows(rows: Array, n: int) -> NDArray[np.bool_]:
    """True at the n highest scores of each row of (G, S); of equal scores at the first ones."""
    if rows.shape[1] <= n:
        return np.ones(rows.shape, dtype=np.bool_)
    threshold = np.partition(rows, -n, axis=1)[:, -n, None]
    above, equal = rows > threshold, rows == threshold
    kept: NDArray[np.bool_] = above | (
        equal & (equal.cumsum(axis=1) <= n - above.sum(axis=1, keepdims=True))
    )
    return kept


def full_width(lengths: Sequence[int], order: int | None = None) -> int:
    """Smallest width that makes the beam exact: the largest number of contexts of a sentence.

    A context is the last `order` choices, or all of them.
    """
    if order is None:
        return math.prod(lengths[:-1])
    spans = (lengths[max(0, t - order) : t] for t in range(len(lengths)))
    return max(map(math.prod, spans), default=1)


def _number_rows(rows: Indices) -> Indices:
    """A number (N,) from 0 for each row of (N, n), equal for equal rows."""
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.intp)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _add_impossible(paths: list[Path], lengths: Sequence[int], n_best: int) -> list[Path]:
    """The list filled up to `n_best` with paths of score −inf, the first ones by the rule of ties.

    For a complete search, which dropped only hypotheses that others with the same future surpass:
    if its list is not full, all paths outside it score −inf.
    """
    found = [path for path in paths if path.score > -np.inf]
    known = {path.choices for path in found}
    for position in range(math.prod(lengths)):
        if len(found) >= n_best:
            break
        choices = path_at(position, lengths)
        if choices not in known:
            found.append(Path(choices, -np.inf))
    return found


def backtrack(
    parents: Sequence[NDArray[np.integer[Any]]],
    rows: NDArray[np.integer[Any]],
    choices: Sequence[Indices] | None = None,
) -> Indices:
    """Choices (n, T) of the hypotheses in rows `rows: (n,)` of the last sentence.

    Hypothesis m of sentence t extends hypothesis `parents[t][m]` of sentence t−1 by candidate
    `choices[t][m]`; without `choices` by candidate m. O(n T).
    """
    paths = np.empty((rows.size, len(parents)), dtype=np.intp)
    for t in reversed(range(len(parents))):
        paths[:, t] = rows if choices is None else choices[t][rows]
        rows = parents[t][rows]
    return paths
