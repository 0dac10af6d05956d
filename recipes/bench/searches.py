"""Decoders alone: seconds, ratios to the obvious implementation, growth with N and with the width.

    python recipes/bench/searches.py [--lm DIR --kbest LIST --docs DOCIDS] [--repeat 5]
    python recipes/bench/searches.py --particles [--alpha 3]

Scores are at hand, so what is timed is search. The obvious implementations are the recursion of
the textbook with a Python loop over candidates and numpy over their predecessors, and a beam that
sorts tuples; both must find the same score. With a model of unbounded order and lists, also the
share of a decoding that a beam of 64 spends outside the scorer. `--particles` prints in place of
that what a particle filter finds of random problems, and at what cost, by its number of particles.
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
from decoders.laws import random_problem
from decoders.problem import DocumentProblem
from decoders.smc import particle_filter, smc
from decoders.viterbi import viterbi

SIZES = (400, 800)
PARTICLES = (8, 16, 32, 64, 128, 256)
PROBLEMS, LONGEST, CANDIDATES = 120, 40, 10  # of `--particles`
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


class Recurrent(DocumentProblem):
    """Normal scores, half of whose variance depends on a state that remembers the whole history."""

    lengths: tuple[int, ...] = ()
    order: None = None

    def __init__(self, n: int, rng: np.random.Generator, size: int = 8) -> None:
        self.lengths, self.start = (CANDIDATES,) * n, np.zeros((1, size))
        self.scores = rng.normal(scale=0.5**0.5, size=(n, CANDIDATES))
        self.inputs = rng.normal(size=(n, CANDIDATES, size))
        self.outputs = rng.normal(scale=(0.5 / size) ** 0.5, size=(n, size, CANDIDATES))

    def initial(self) -> np.ndarray[Any, Any]:
        """The state before the first sentence, (1, size)."""
        return self.start

    def extend(self, states: Any, t: int) -> tuple[Any, Any]:
        """Scores (N, K) after states (N, size), and what `select` needs."""
        return self.scores[t] + states @ self.outputs[t], (states, t)

    def select(self, successors: Any, parents: Any, choices: Any) -> Any:
        """The states after the chosen candidates: of variance 1 each."""
        states, t = successors
        return 0.8 * states[parents] + 0.6 * self.inputs[t, choices]


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
            ours, result = timed(lambda p=free, w=width: beam(p, width=w), repeat)
            theirs = None
            if n == SIZES[0]:  # its time grows with the square of N: paths are copied
                theirs, expected = timed(lambda s=scores, w=width: obvious_beam(s, w), 1)
                check(result[0].score, expected)
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


def particles(alpha: float) -> None:
    """What a particle filter finds of random problems of each order, and what that costs.

    Scores are N(0, 1). The best path is that of Viterbi; on unbounded orders the best one known,
    of a beam of 2,048 and of all runs. Prefixes: distinct ones, each of which a model would score.
    """
    columns = [*map(str, PARTICLES), "beam of 8"]
    print(f"| order | of {PROBLEMS} problems, α = {alpha:g} | {' | '.join(columns)} |")
    print("|---" * (2 + len(columns)) + "|")
    for order in (0, 1, 2, None):
        optima = np.zeros(len(columns), int)
        prefixes, seconds = np.zeros((2, len(PARTICLES)))
        for n in range(PROBLEMS):
            length, rng = 5 + (LONGEST - 5) * n // (PROBLEMS - 1), np.random.default_rng(n)
            problem: DocumentProblem = Recurrent(length, rng)
            if order is not None:
                problem = random_problem(order, [CANDIDATES] * length, rng)
            scores = []
            for i, number in enumerate(PARTICLES):
                how = {"alpha": alpha, "rng": rng, "particles": number}
                taken, run = timed(lambda p=problem, how=how: particle_filter(p, **how), 1)
                seconds[i] += taken
                prefixes[i] += np.mean([len(generation.choices) for generation in run.generations])
                scores.append(run.generations[-1].scores.max())
            scores.append(beam(problem, width=8)[0].score)
            best = viterbi(problem) if order is not None else beam(problem, width=2048)
            optima += np.array(scores) >= max(best[0].score, *scores) - 1e-9
        name = "unbounded" if order is None else order
        print(f"| {name} | best path found | {' | '.join(map(str, optima))} |")
        print(
            f"| | prefixes a sentence | {' | '.join(f'{x / PROBLEMS:.0f}' for x in prefixes)} | |"
        )
        ms = " | ".join(f"{x / PROBLEMS * 1e3:.1f}" for x in seconds)
        print(f"| | ms a document | {ms} | |")


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
    from rerank.notices import Notices
    from rerank.options import settings_of
    from rerank.runs.opening import open_run
    from rerank.runs.options import RunOptions
    from rerank.runs.search import Search, search_documents
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
    with open_run(options.inputs(), Notices(), options) as opened:
        named = next((lists for lists in opened.read_unreported() if lists[1].n), None)
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
    parser.add_argument("--particles", action="store_true")
    parser.add_argument("--alpha", type=float, default=3.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--lm", type=Path)
    parser.add_argument("--kbest", type=Path)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.particles:
        particles(options.alpha)
        return
    table(options.repeat)
    if options.lm:
        share(options.lm, options.kbest, options.docs)


if __name__ == "__main__":
    main()
