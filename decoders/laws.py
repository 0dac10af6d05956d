"""The laws of decoders, as one function that the test of a new decoder calls.

    from decoders.laws import check_decoder

    def test_my_decoder_keeps_the_laws() -> None:
        check_decoder(ROW)

Truth is `exhaustive`, on random documents small enough to enumerate. Their arrays are read-only: a
decoder that changes its arguments raises ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from decoders.arrays import HistoryTable
from decoders.batching import path_score
from decoders.mbr import Utility
from decoders.problem import Array
from decoders.result import Posterior, SearchResult
from decoders.search import decode_all
from decoders.table import Decoder, Options
from decoders.viterbi import exhaustive

ORDERS = (0, 1, 2, None)
DYADIC = (  # values of scores; no sum of them is rounded, so that ties are ties in every decoder
    (-1.0, -0.5, 0.0),
    (-np.inf, -np.inf, -0.25, 0.0, 0.75),
    (-np.inf, -np.inf, -np.inf, -np.inf, -np.inf, 0.5),
    (0.0,),
)
SCALED = Options(scale=0.7)


class LawError(AssertionError):
    """A law that a decoder breaks."""


class ExactMatch:
    """The utility 1 of the reference itself, 0 of any other candidate."""

    def expected(self, t: int, marginals: Array) -> Array:
        """The marginals."""
        return marginals

    def words(self, t: int) -> Array:
        """No words."""
        return np.zeros(1)


def random_problem(
    order: int | None,
    lengths: Sequence[int],
    rng: np.random.Generator,
    values: Sequence[float] | None = None,
) -> HistoryTable:
    """A problem of read-only random scores: normal ones, or drawn from `values`."""
    tables = []
    for t in range(len(lengths)):
        shape = tuple(lengths[0 if order is None else max(0, t - order) : t + 1])
        tables.append(rng.normal(size=shape) if values is None else rng.choice(values, size=shape))
        tables[-1].flags.writeable = False
    return HistoryTable(tables, order)


def check_decoder(
    row: Decoder,
    options: Options = SCALED,
    *,
    utility: Utility | None = None,
    documents: int = 10,
    seed: int = 1,
) -> None:
    """Raises LawError if the decoder of a row breaks a law under these options.

    On each order that it serves, on `documents` documents of each kind of scores, with single
    paths and, where it takes `n_best`, with lists: paths are distinct, in the order of the rule of
    ties, with the bits of `path_score`; they are those of `exhaustive` where the search is exact,
    and never better; probabilities are valid; a result depends on the document and the seed alone;
    an impossible document has its first candidates; with all scores 0 a decoder that is `uniform`
    has a posterior, which is uniform where it is exact.
    """
    rng, table = np.random.default_rng(seed), {row.name: row}

    def run(problems: dict[str, HistoryTable], how: Options) -> dict[str, SearchResult]:
        """The results by document."""
        utilities, inputs = [utility or ExactMatch()] * len(problems), list(problems.values())
        results = decode_all(
            inputs, row.name, how, documents=list(problems), utilities=utilities, table=table
        )
        return dict(zip(problems, results, strict=True))

    for order, n_best in product(ORDERS, (1, 5) if row.takes("n_best") else (1,)):
        if not row.serves(order):
            continue
        how = replace(options, n_best=n_best)
        problems = _random_problems(order, documents, rng)
        results, backwards = run(problems, how), run(dict(reversed(problems.items())), how)
        for n, (name, problem) in enumerate(problems.items()):
            alone = run({name: problem}, how) if n % 5 == 0 else {}
            bits = {_bits(result) for result in (results[name], backwards[name], *alone.values())}
            laws = _laws_of_paths(problem, results[name], n_best)
            laws |= _laws_of_posterior(results[name].posterior, problem.lengths)
            laws["the result depends on the batch"] = len(bits) == 1
            if name == "impossible document":
                first = results[name].paths[0].choices == (0, 0, 0)
                laws["an impossible document does not leave the first candidates"] = first
            if name == "uniform document" and row.uniform:
                uniform = _is_uniform(results[name].posterior)
                laws["all-zero scores do not give uniform marginals"] = uniform
            for fault, kept in laws.items():
                if not kept:
                    where = f"{row.name} on order {order}, {name}"
                    raise LawError(f"{where}: {fault}; found {results[name]} for {problem}")


def _random_problems(
    order: int | None, documents: int, rng: np.random.Generator
) -> dict[str, HistoryTable]:
    """Problems of one order by document: some of each kind of scores, and three special ones."""
    shapes = [rng.integers(1, 5, size=rng.integers(1, 5)).tolist() for _ in range(documents)]
    return {
        f"document {kind}.{d}": random_problem(order, lengths, rng, values)
        for kind, values in enumerate((None, *DYADIC))
        for d, lengths in enumerate(shapes)
    } | {
        "empty document": random_problem(order, (), rng),
        "impossible document": random_problem(order, (2, 3, 2), rng, [-np.inf]),
        "uniform document": random_problem(order, (3, 2, 4), rng, [0.0]),
    }


def _laws_of_paths(problem: HistoryTable, result: SearchResult, n_best: int) -> dict[str, bool]:
    """Whether the paths keep each law, by the fault if not. Errors: ValueError for no path."""
    paths, expected = list(result.paths), exhaustive(problem, n_best=n_best)
    return {
        "a score is not that of its path": all(
            path.score == path_score(problem, path.choices) for path in paths
        ),
        "too few or too many paths": 1 <= len(paths) <= n_best,
        "a path is listed twice": len({path.choices for path in paths}) == len(paths),
        "paths are not in the order of the rule of ties": paths
        == sorted(paths, key=lambda path: (-path.score, path.choices[::-1])),
        "a score is above the optimum": paths[0].score <= expected[0].score,
        "the search is not exact": not result.exact or paths == expected,
    }


def _laws_of_posterior(posterior: Posterior | None, lengths: Sequence[int]) -> dict[str, bool]:
    """Whether a posterior keeps each law, by the fault if not."""
    if posterior is None:
        return {}
    total = 0.0 if posterior.extinct else 1.0
    draws, weights = posterior.draws, posterior.weights
    return {
        "marginals have another shape": [row.shape for row in posterior.marginals]
        == [(length,) for length in lengths],
        "marginals are not probabilities": all(
            row.min() >= 0 and np.isclose(row.sum(), total) for row in posterior.marginals
        ),
        "draws are not paths": draws.shape == (weights.size, len(lengths))
        and bool(((draws >= 0) & (draws < np.array(lengths))).all()),
        "weights of draws are not probabilities": not weights.size
        or (weights.min() >= 0 and bool(np.isclose(weights.sum(), 1))),
    }


def _is_uniform(posterior: Posterior | None) -> bool:
    """Whether there is a posterior, and equal probability where it is exact."""
    if posterior is None or not posterior.exact:
        return posterior is not None
    return all(np.ptp(row) < 1e-12 for row in posterior.marginals)


def _bits(result: SearchResult) -> tuple[object, ...]:
    """A result with its posterior, for comparison bit for bit."""
    posterior = result.posterior
    if posterior is None:
        return (result,)
    arrays = (*posterior.marginals, posterior.draws, posterior.weights)
    return result, posterior.log_normaliser, *(array.tobytes() for array in arrays)
