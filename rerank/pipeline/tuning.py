"""`rerank tune-mert`: weights of all dense features, for corpus BLEU of whole documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rerank
from rerank.bleu import Statistics, Tokenizer, corpus_bleu, length_ratio
from rerank.errors import RerankError, UsageError
from rerank.features import Space
from rerank.kbest import column_names
from rerank.lines import digest, display
from rerank.notices import Notices
from rerank.outputs import check_outputs
from rerank.pipeline.estimate import estimate
from rerank.pipeline.lists import Announce, Lists, Opened
from rerank.pipeline.searching import AUTO, Search, say_search
from rerank.pipeline.tuning_set import Choices, TuningSet, Wanted, read_set
from rerank.references import read_with_documents
from rerank.tuning.mert import Settings, optimise
from rerank.tuning.rounds import ContextTask, Round, tune_in_rounds
from rerank.weights import Weights, read_weights, write_weights


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `tune_mert` found, on the tuning set: BLEU and length ratio, first candidates' too."""

    weights: Weights
    bleu: float
    length_ratio: float
    baseline_bleu: float
    baseline_ratio: float
    rounds: int

    def to_text(self) -> str:
        """One line for people."""
        return (
            f"tuned BLEU {self.bleu:.2f} (length ratio {self.length_ratio:.3f}); first candidates "
            f"{self.baseline_bleu:.2f} ({self.baseline_ratio:.3f})"
        )


def tune_mert(
    lists: Lists,
    references: Sequence[str | Path],
    out: str | Path,
    *,
    features: Sequence[str] = (),
    start: str | Path | None = None,
    search: Search = AUTO,
    tokenize: str = "none",
    settings: Settings | None = None,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> Tuning:
    """Tune weights by minimum error rate training on corpus BLEU, and write them to `out`.

    Features that no scorer's context changes are tuned on one pool to convergence; with a
    context the pool is made anew in every round under the path decoded last. `features`
    names what is tuned (default: all dense ones; `total` if it is named, or weighted in
    `start`); the others keep their start weight. The scale of the weights is fitted by
    likelihood under the path that they decode. Memory: see `TuningSet`.
    """
    settings = settings or Settings()
    if search.method == "mbr":
        raise UsageError(
            "--search mbr: tune-mert follows the path of highest score, for which mbr does not "
            "look; take auto, viterbi, beam, or any other"
        )
    search = search.seeded(settings.seed)
    check_outputs([out], [*lists.files, *references, *([start] if start else [])])
    if Path(out).suffix not in (".json", ".ini"):
        raise UsageError(f"--out {out}: expected a weights file .json or .ini")
    tokenizer = Tokenizer(tokenize)
    given = None if start is None else read_weights(start, notices)
    search = search.at(given.alpha if given else None)
    wanted = Wanted(features, given, display(start or ""))
    documents, lines = read_with_documents(lists.docs, lists.no_docs, references, notices)
    with Opened(lists, notices, documents=documents) as opened:
        search = say_search(opened, search, announce)
        if opened.scorers:
            estimate(opened, search, announce)
        corpus, space = read_set(opened, lines, tokenizer, wanted, announce)
        baseline = corpus.total(corpus.first)
        announce(_scored("first candidates", baseline))
        task = _Task(opened, corpus, search, wanted.columns(space), wanted.start(space), space)
        weights, rounds = _tune(task, settings, notices, announce)
        if not weights.any():
            raise RerankError("tuning found no weights; give some to start from with --start")
        path, sums = task.decode(weights)
        with opened.searching():
            scale = corpus.scale(path, weights, notices)
        if scale:
            announce(scale.to_text())
        opened.warn()
        opened.report(announce)
        # while the copy of standard input is there to be digested
        made = _provenance(opened, [*references, *([start] if start else [])], settings)
    result = Tuning(
        Weights(
            _by_name(weights, space),
            given.sparse if given else {},
            scale.alpha if scale else None,
            {
                **made,
                "bleu": float(corpus_bleu(sums)),
                "length_ratio": float(length_ratio(sums)),
                "signature": tokenizer.signature(len(references)),
                **({"alpha_error": scale.error, "alpha_lists": scale.n_lists} if scale else {}),
            },
        ),
        float(corpus_bleu(sums)),
        float(length_ratio(sums)),
        float(corpus_bleu(baseline)),
        float(length_ratio(baseline)),
        rounds,
    )
    write_weights(out, result.weights)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A tuning set, how it is searched, and which columns of the start weights may move."""

    opened: Opened
    corpus: TuningSet
    search: Search
    tuned: NDArray[np.int64]
    start: NDArray[np.float64]
    space: Space

    @property
    def names(self) -> list[str]:
        names = column_names(self.space.labels)
        return [names[column] for column in self.tuned]

    def full(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """All weights (F,) from those of the tuned columns."""
        full = self.start.copy()
        full[self.tuned] = weights
        return full

    def decode(self, weights: NDArray[np.float64]) -> tuple[Choices, Statistics]:
        """The path that full weights (F,) choose, and its summed statistics."""
        with self.opened.searching():
            return self.corpus.decode(weights, self.search)

    @property
    def contextual(self) -> bool:
        """Whether a tuned or weighted feature depends on earlier choices."""
        problems = self.corpus.documents[0].problems
        return any(problem.order != 0 for problem in problems)


def _tune(
    task: _Task, settings: Settings, notices: Notices, announce: Announce
) -> tuple[NDArray[np.float64], int]:
    """Full weights (F,), and the number of rounds it took."""
    corpus, start = task.corpus, task.start[task.tuned]
    if not task.contextual:
        pool = corpus.pool(corpus.first, task.tuned, task.start)
        found = optimise(pool, start, notices, names=task.names, settings=settings)
        announce(
            f"{len(found.optima)} optima; start {found.start.bleu:.2f} (length ratio "
            f"{found.start.ratio:.3f}), taken {found.best.bleu:.2f} ({found.best.ratio:.3f})"
        )
        return task.full(found.best.weights), 1

    def report(done: Round) -> None:
        predicted = f"predicted BLEU {done.predicted.bleu:.2f}, " if done.predicted else ""
        announce(_scored(f"round {done.number}: {predicted}decoded", done.statistics))

    context = ContextTask(
        corpus.first,
        lambda path: corpus.pool(path, task.tuned, task.start),
        lambda weights: task.decode(task.full(weights)),
    )
    best = tune_in_rounds(
        context, start, notices, names=task.names, settings=settings, report=report
    )
    announce(f"kept: round {best.number}")
    return task.full(best.weights), best.number


def _by_name(weights: NDArray[np.float64], space: Space) -> dict[str, tuple[float, ...]]:
    widths = np.cumsum([label.width for label in space.labels])[:-1]
    parts = np.split(weights, widths)
    return {
        label.name: tuple(part.tolist()) for label, part in zip(space.labels, parts, strict=True)
    }


def _scored(what: str, sums: Statistics) -> str:
    return f"{what} BLEU {corpus_bleu(sums):.2f}, length ratio {length_ratio(sums):.3f}"


def _provenance(
    opened: Opened, texts: Sequence[str | Path], settings: Settings
) -> dict[str, object]:
    """What a weights file says of its making: objective, seed, digests of the inputs."""
    lists = opened.lists
    files = [*lists.files, *texts]
    return {
        "rerank": rerank.__version__,
        "algorithm": "mert",
        "objective": "corpus BLEU",
        "seed": settings.seed,
        "random_starts": settings.random_starts,
        "top": lists.top,
        "diverse": lists.diverse,
        "inputs": [  # what is no file cannot be read again
            {"file": Path(f).name, "digest": digest(f)} for f in files if Path(f).is_file()
        ],
        "models": {
            scorer.name: {"folder": folder.name, "digest": scorer.digest}
            for scorer, (_, folder) in zip(opened.models, lists.lms, strict=True)
        },
        "scores": {
            scorer.name: {"file": Path(scorer.source).name, "digest": scorer.digest}
            for scorer in opened.outside
        },
    }
