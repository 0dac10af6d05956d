"""Left-to-right search that keeps a few document-level hypotheses.

Equation (18) of J. Eisenstein, "The Document Context Language Model" (memo, §3.2): with a single
hypothesis `greedy`, with the `width` best `beam`, with a hypothesis for each candidate, as printed,
`survivors`. The beam is B. Lowerre, "The HARPY speech recognition system", Carnegie Mellon
University, 1976; recombination of hypotheses with the same future P. Koehn, F. J. Och, D. Marcu,
"Statistical phrase-based translation", 2003, https://aclanthology.org/N03-1017.

Hypotheses of `beam` are held in the order of the tie rule (`decoders.problem`), not of their
scores. Then the (K_t, N) array of extensions, a row per candidate and a column per hypothesis, is
in that order too when read row by row: selection by position is the tie rule.

`random_beam` is the memo's randomised beam (§3.2): the best `width` extensions with Gumbel noise
are draws without replacement (W. Kool, H. van Hoof, M. Welling, "Stochastic beams and where to find
them", 2019, https://arxiv.org/abs/1903.06059), of paths if a prefix has its probability with all
futures summed, as on order 0 and 1 by backward messages. Elsewhere it has its score: a heuristic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.batching import Extend, Steps, batchable, follow
from decoders.marginals import backward, draw, is_chain, log_sum_exp, softmax
from decoders.problem import Array, DocumentProblem, Indices, Path, checked, path_at
from decoders.result import check_scale, ranked

MERGES = ("max", "sample", "mean")


@batchable
def greedy(problem: DocumentProblem) -> Steps[Path]:
    """Path that takes the best candidate of each sentence given its choices so far.

    Serves every order; exact on order 0, no better than Viterbi on order 1, no guarantee beyond.
    O(Σ K_t) scores, one state. Ties: the first candidate of equal sums; on order 0 that is the
    rule of `decoders.problem`. Deterministic. Errors: ScoreError naming the sentence.
    """
    states, score = problem.initial(), 0.0
    choices: list[int] = []
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        sums = score + checked(scores, t, shape=(1, length))[0]
        choice = int(sums.argmax())
        score = float(sums[choice])
        choices.append(choice)
        if t + 1 < len(problem.lengths):
            states = problem.select(successors, np.zeros(1, np.intp), np.array([choice]))
    if problem.order == 0 and score == -np.inf:  # then every path scores −inf: the rule of ties
        choices = [0] * len(choices)
    return Path(tuple(choices), score)


@batchable
def beam(
    problem: DocumentProblem, *, width: int | None, n_best: int = 1, threshold: float = math.inf
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
        if t == last or order == 0:  # a single context
            kept = top_positions(extensions, n_best)
            labels = np.zeros(kept.size, dtype=np.intp)
        elif order is None:  # as many contexts as hypotheses
            kept = labels = top_positions(extensions, width)
            complete = complete and kept.size == extensions.size
        else:
            tail = np.zeros(len(tails), dtype=np.intp)  # a number for each distinct row of tails
            if tails.shape[1]:
                tail = np.unique(tails, axis=0, return_inverse=True)[1].reshape(-1)
            sums = extensions.reshape(length, -1)
            kept, dropped = recombine(sums, tail, width=width, n_best=n_best)
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
    best = np.argsort(-totals, kind="stable")[:n_best]
    rows = backtrack(parents_at, best, choices_at).tolist()
    paths = [Path(tuple(r), s) for r, s in zip(rows, totals[best].tolist(), strict=True)]
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

    `scores: (K, N)` without NaN, `tails: (N,)` numbers 0, …, U−1; a group is the entries of a row
    in all columns of a number. Groups are compared by their best score; of equal scores the first
    are kept. Also returns whether any group was dropped. By partition, O(K U S) where the largest
    group has S columns, and a sort of the K U groups.
    """
    length, n = scores.shape
    sizes = np.bincount(tails)
    places = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    by_number = np.argsort(tails, kind="stable")
    columns = np.full((sizes.size, sizes.max()), n, dtype=np.intp)  # (U, S), filled up with n
    columns[tails[by_number], places] = by_number
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


def _top_of_rows(rows: Array, n: int) -> NDArray[np.bool_]:
    """True at the n highest scores of each row of (G, S); of equal scores at the first."""
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


def _add_impossible(paths: list[Path], lengths: Sequence[int], n_best: int) -> list[Path]:
    """The list of a complete search, filled up to `n_best` by the rule of ties.

    If its list is not full, all paths outside it score −inf.
    """
    possible = [path for path in paths if path.score > -np.inf]
    known = {path.choices for path in possible}
    others = (path_at(position, lengths) for position in range(math.prod(lengths)))
    impossible = (Path(choices, -np.inf) for choices in others if choices not in known)
    return [*possible, *islice(impossible, n_best - len(possible))]


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


@batchable
def survivors(
    problem: DocumentProblem,
    *,
    rng: np.random.Generator,
    merge: str = "max",
    alpha: float | None = None,
) -> Steps[Path]:
    """The path of the best hypothesis when the search keeps a hypothesis for each candidate.

    ⟨h^(k), ψ^(k)⟩ = ⊕_q ⟨h^(ℓ), ψ^(ℓ) + log P(w^(k) | h^(ℓ))⟩ with q ∝ exp(α ψ), eqs. (18), (19):
    `merge` is the best ℓ (per-survivor processing: R. Raheli, A. Polydoros, C.-K. Tzou, IEEE
    Transactions on Communications, 1995), an ℓ drawn with q, or the mean, which the latter two need
    α for. Serves every order, `mean` where states have a mean. Exact on order 0 and 1 with `max`,
    as Viterbi. With `mean` no text has the state, so the path is scored again. O(Σ K_{t-1} K_t)
    scores, O(Σ K_t) memory. Ties: with `max` the rule of `decoders.problem` among the hypotheses
    kept. Random with `sample`: `rng`. Errors: ValueError for a merge without its α,
    UnsuitedDecoder, ScoreError naming the sentence.
    """
    if merge not in MERGES:
        raise ValueError(f"no merge is called {merge!r}; there are {', '.join(MERGES)}")
    if merge != "max":
        if alpha is None:
            raise ValueError(f"merging by {merge} needs a scale alpha")
        check_scale(alpha)
    scale = alpha or 1.0
    states, totals = problem.initial(), np.zeros(1)
    backpointers: list[Indices] = []  # ℓ (K_t,) of each sentence
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        sums = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        candidates = np.arange(length)
        # of the average, whose history is no text, the likeliest ℓ
        parents = draw(scale * sums.T, rng) if merge == "sample" else sums.argmax(axis=0)
        backpointers.append(parents)
        if merge == "mean":  # ψ = log-sum-exp at scale α
            totals = log_sum_exp(scale * sums, axis=0) / scale
        else:
            totals = sums[parents, candidates]
        if t + 1 == len(problem.lengths):
            break
        if merge == "mean":  # h̄ = Σ q h
            q = softmax(scale * sums.T).T
            q[0, q.sum(axis=0) == 0] = 1.0  # of an impossible candidate any state will do
            states = problem.average(successors, q)
        else:
            states = problem.select(successors, parents, candidates)
    if totals.max() == -np.inf:  # the rule of ties, where every path that was seen is impossible
        return (yield from follow.steps(problem, [0] * len(problem.lengths)))
    (choices,) = backtrack(backpointers, np.array([totals.argmax()])).tolist()
    return (yield from follow.steps(problem, choices))


@batchable
def random_beam(
    problem: DocumentProblem, *, width: int, alpha: float, rng: np.random.Generator, n_best: int = 1
) -> Steps[list[Path]]:
    """The best of `width` paths drawn by a beam with Gumbel noise at scale α.

    On order 0 and 1 the hypotheses kept are drawn without replacement from p(path) ∝
    exp(α · score), else by a heuristic. Serves every order; exact only where `width` covers all
    paths. O(T B K) time beside the problem's own, O(T B) memory, B = width; on order 1
    O(Σ K_{t-1} K_t) for the messages. Random: `rng`. Errors: ValueError unless 1 <= n_best <= width
    and α > 0, ScoreError naming the sentence.
    """
    if not 1 <= n_best <= width:
        raise ValueError(f"expected 1 <= n_best <= width, found n_best {n_best}, width {width}")
    choices, scores = yield from draw_paths.steps(problem, width=width, alpha=alpha, rng=rng)
    return list(ranked(choices, scores, n_best))


@batchable
def draw_paths(
    problem: DocumentProblem, *, width: int, alpha: float, rng: np.random.Generator
) -> Steps[tuple[Indices, Array]]:
    """The paths drawn (N, T) in falling order of their noisy scores, and their scores (N,)."""
    check_scale(alpha)
    futures = backward(problem, log_sum_exp, alpha) if is_chain(problem) else None
    states, totals, noisy_totals = problem.initial(), np.zeros(1), np.zeros(1)
    parents_at: list[Indices] = []  # (N,) of each sentence
    choices_at: list[Indices] = []  # (N,)
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        extensions = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        noisy = alpha * extensions + rng.gumbel(size=extensions.shape)
        if futures is not None:
            noisy = _conditioned(noisy + futures[t], noisy_totals)
        kept = top_positions(noisy.ravel(), width)
        noisy_totals = noisy.ravel()[kept]
        parents, choices = np.divmod(kept, length)
        totals = extensions[parents, choices]
        parents_at.append(parents)
        choices_at.append(choices)
        if t + 1 < len(problem.lengths):
            states = problem.select(successors, parents, choices)
    order = np.argsort(-noisy_totals, kind="stable")
    return backtrack(parents_at, order, choices_at), totals[order]


def _conditioned(noisy: Array, parents: Array) -> Array:
    """Noisy log-probabilities (N, K_t) of extensions, given those of their parents (N,).

    The noisy score of a prefix is the largest of its futures (Kool et al., §3.2): those of its
    extensions, `noisy` with new noise, are conditioned on that maximum.
    """
    top, parent = noisy.max(axis=1, keepdims=True), parents[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Kool et al., appendix B: −log(exp(−G) − exp(−top) + exp(−noisy)), G of the parent
        v = parent - noisy + np.log1p(-np.exp(noisy - top))
        conditioned = parent - np.maximum(0, v) - np.log1p(np.exp(-np.abs(v)))
    # the best extension has the noisy score of its parent; impossible ones stay impossible
    conditioned = np.where(noisy == top, parent, conditioned)
    return np.where(noisy == -np.inf, -np.inf, conditioned)
