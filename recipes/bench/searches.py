"""Decoders alone: seconds, ratios to the obvious implementation, growth with N and with the width.

    python recipes/bench/searches.py [--lm DIR --kbest LIST --docs DOCIDS] [--repeat 5]

Scores are at hand, so what is timed is search. The obvious implementations are the recursion of
the textbook with a Python loop over candidates and numpy over their predecessors, and a beam that
sorts tuples; both must find the same score. With a model of unbounded order and lists, also the
share of a decoding that a beam of 64 spends outside the scorer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from decoders.arrays import Pairwise
from decoders.beam import beam
from decoders.ffbs import ffbs
from decoders.problem import DocumentProblem
from decoders.smc import smc
from decoders.viterbi import viterbi

SIZES = (400, 800)
Matrices = list[np.ndarray[Any, np.dtype[np.float64]]]


@dataclass(frozen=True)
class Unbounded(DocumentProblem):
    """Scores after a history that every candidate changes: cheap, and no two are known alike."""

    pairs: Pairwise
    order: None = field(init=False, default=None)

    @property
    def lengths(self) -> tuple[int, ...]:
        """K_t of each sentence."""
        return self.pairs.lengths

    def initial(self) -> np.ndarray[Any, Any]:
        """The empty history."""
        return self.pairs.initial()

    def extend(self, states: Any, t: int) -> tuple[Any, Any]:
        """Rows of the matrix."""
        return self.pairs.extend(states, t)

    def select(self, successors: Any, parents: Any, choices: Any) -> Any:
        """The choices."""
        return self.pairs.select(successors, parents, choices)


def matrices(n: int, k: int, seed: int) -> Matrices:
    """Scores of n sentences with k candidates each."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(k if t else 1, k)) for t in range(n)]


def obvious_viterbi(scores: Matrices) -> float:
    """The recursion, a candidate at a time."""
    best = np.zeros(1)
    for matrix in scores:
        best = np.array([(best + matrix[:, k]).max() for k in range(matrix.shape[1])])
    return float(best.max())


def obvious_beam(scores: Matrices, width: int) -> float:
    """Hypotheses as tuples (score, path), all extensions sorted."""
    beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for matrix in scores:
        longer = []
        for total, path in beams:
            row = matrix[path[-1] if path else 0]
            longer += [(total + s, (*path, k)) for k, s in enumerate(row.tolist())]
        longer.sort(key=lambda one: -one[0])
        beams = longer[:width]
    return beams[0][0]


def timed(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Least seconds of several runs, and the last answer."""
    seconds, answer = [], None
    for _ in range(repeat):
        began = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - began)
    return min(seconds), answer


def table(repeat: int) -> None:
    """Seconds of each decoder at two sizes, and ratios."""
    print("| decoder | N | K | width | ms | µs a sentence | obvious, ms | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for n in SIZES:
        scores = matrices(n, 100, 1)
        pairs = Pairwise(scores)
        ours, (path,) = timed(lambda pairs=pairs: viterbi(pairs), repeat)
        theirs, expected = timed(lambda scores=scores: obvious_viterbi(scores), 1)
        check(path.score, expected)
        row("viterbi", n, 1, ours, theirs)
        for width in (32, 64):
            free = Unbounded(pairs)
            ours, found = timed(lambda p=free, w=width: beam(p, width=w), repeat)
            theirs = None
            if n == SIZES[0]:  # its time grows with the square of N: paths are copied
                theirs, expected = timed(lambda s=scores, w=width: obvious_beam(s, w), 1)
                check(found[0].score, expected)
            row("beam, unbounded order", n, width, ours, theirs)
            ours, _ = timed(lambda p=pairs, w=width: beam(p, width=w), repeat)
            row("beam, order 1", n, width, ours, None)
        for width in (32, 64):
            rng = np.random.default_rng(1)
            how = {"alpha": 1.0, "rng": rng}
            ours, _ = timed(lambda p=free, w=width, how=how: smc(p, particles=w, **how), repeat)
            row("smc, unbounded order", n, width, ours, None)
            ours, _ = timed(lambda p=pairs, w=width, how=how: ffbs(p, samples=w, **how), repeat)
            row("ffbs, order 1", n, width, ours, None)


def check(ours: float, theirs: float) -> None:
    """Both searches must have found the same score."""
    if ours != theirs:
        raise SystemExit(f"the searches disagree: {ours} and {theirs}")


def row(name: str, n: int, width: int, seconds: float, obvious: float | None) -> None:
    """A line of the table."""
    ratio = "" if obvious is None else f"{obvious / seconds:.1f}×"
    theirs = "" if obvious is None else f"{obvious * 1e3:.1f}"
    print(
        f"| {name} | {n} | 100 | {width} | {seconds * 1e3:.1f} | {seconds / n * 1e6:.0f} "
        f"| {theirs} | {ratio} |"
    )


def share(model: Path, kbest: Path, docs: Path) -> None:
    """How a decoding with a beam of 64 divides between scorer and search."""
    from decoders.table import Options
    from rerank.commands.list_run import ListRun
    from rerank.commands.run import RunOptions
    from rerank.commands.search import Search, search_documents
    from rerank.notices import Notices
    from rerank.options import settings_of
    from rerank.scorers.features import prepare
    from rerank.scorers.model_options import LanguageModelOption

    options = settings_of(
        RunOptions,
        kbest=kbest,
        docs=docs,
        lm=(LanguageModelOption.of("lm", model),),
        top=25,
        no_cache=True,
    )
    with ListRun.open(options.inputs(), Notices(), options) as opened:
        named = opened.first_with_candidates()
        if named is None:
            raise SystemExit(f"{kbest}: no candidates")
        space = opened.space(named[1], total=False)
        (document,) = prepare([named], opened.scorers, space, {})
        weights = np.zeros(space.width)
        weights[list(space.contextual)] = 1.0
        began = time.perf_counter()
        search_documents([document], weights, Search("beam", Options(width=64)))
        whole = time.perf_counter() - began
        scorer = opened.scorers[0].seconds
    print(
        f"\nbeam 64 on {named[0]} ({len(named[1]):,} sentences, 25-best): {whole:.1f} s, of which "
        f"{scorer:.1f} s in the scorer, {1 - scorer / whole:.1%} outside"
    )


def main() -> None:
    """The table, and the share where there is a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--lm", type=Path)
    parser.add_argument("--kbest", type=Path)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    table(options.repeat)
    if options.lm:
        share(options.lm, options.kbest, options.docs)


if __name__ == "__main__":
    main()
