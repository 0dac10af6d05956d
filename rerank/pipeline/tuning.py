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
from rerank.lines import digest, display
from rerank.notices import Notices
from rerank.outputs import check_outputs
from rerank.pipeline.estimate import estimate
from rerank.pipeline.lists import Announce, Lists, Opened
from rerank.pipeline.searching import AUTO, Search, say_search
from rerank.pipeline.tuning_plan import USUAL, Plan, Task, make_pools
from rerank.pipeline.tuning_set import Choices, Wanted, read_set
from rerank.references import read_with_documents
from rerank.tuning.rounds import Round, tune_in_rounds
from rerank.tuning.scale import Scale
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
    plan: Plan = USUAL,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> Tuning:
    """Tune weights by minimum error rate training on corpus BLEU, and write them to `out`.

    On pools `auto` and `conditional`, features that no scorer's context changes are tuned on one
    pool to convergence; with a context the pool is made anew in every round under the path
    decoded last. Pools of `documents` are lists of paths, which grow in every round. `features`
    names what is tuned (default: all dense ones; `total` if it is named, or weighted in
    `start`); the others keep their start weight. The scale of the weights is fitted by
    likelihood under the path that they decode. Memory: see `TuningSet`.
    """
    plan.check()
    read = [*references, *([start] if start else [])]
    _check_out(out, [*lists.files, *read])
    search, tokenizer = _seeded(search, plan.settings.seed), Tokenizer(tokenize)
    given = None if start is None else read_weights(start, notices)
    wanted = Wanted(features, given, display(start or ""))
    documents, lines = read_with_documents(lists.docs, lists.no_docs, references, notices)
    with Opened(lists, notices, documents=documents) as opened:
        search = say_search(
            opened, search.at(given.alpha if given else None).listing(plan.n_best), announce
        ).listing(1)
        if opened.scorers:
            estimate(opened, search, announce)
        corpus, space = read_set(opened, lines, tokenizer, wanted, announce)
        task = Task(opened, corpus, space, search, wanted, plan, notices)
        baseline = corpus.total(corpus.first)
        announce(_scored("first candidates", baseline))
        best = _tuned(task, announce)
        path, sums = task.decode(best.step.weights)
        scale = _scale(task, path, task.full(best.step.weights), announce)
        opened.warn()
        opened.report(announce)
        # while the copy of standard input is there to be digested
        made = _provenance(opened, read, plan)
    made |= _reached(sums, scale) | {"signature": tokenizer.signature(len(references))}
    result = Tuning(
        Weights(
            _by_name(task.full(best.step.weights), space),
            given.sparse if given else {},
            scale.alpha if scale else None,
            made,
        ),
        float(corpus_bleu(sums)),
        float(length_ratio(sums)),
        float(corpus_bleu(baseline)),
        float(length_ratio(baseline)),
        best.number,
    )
    write_weights(out, result.weights)
    return result


def _seeded(search: Search, seed: int) -> Search:
    """The search with the seed of the tuner; UsageError for one that tuning cannot follow."""
    if search.method == "mbr":
        raise UsageError(
            "--search mbr: tune-mert follows the path of highest score, for which mbr does not "
            "look; take auto, viterbi, beam, or any other"
        )
    return search.seeded(seed)


def _check_out(out: str | Path, read: Sequence[str | Path]) -> None:
    """UsageError where weights cannot be written to `out`, or one of the files read is there."""
    check_outputs([out], read)
    if Path(out).suffix not in (".json", ".ini"):
        raise UsageError(f"--out {out}: expected a weights file .json or .ini")


def _tuned(task: Task, announce: Announce) -> Round:
    """The best round, all of them told; RerankError where none found weights."""
    ended = tune_in_rounds(
        make_pools(task),
        task.start[task.tuned],
        fixed=task.fixed,
        report=lambda done: announce(done.to_text()),
    )
    announce(f"stopped: {ended.reason}")
    announce(f"kept: round {ended.best.number}")
    if not task.full(ended.best.step.weights).any():
        raise RerankError("tuning found no weights; give some to start from with --start")
    return ended.best


def _scale(
    task: Task, path: Choices, weights: NDArray[np.float64], announce: Announce
) -> Scale | None:
    """The scale of full weights (F,) under the path that they decode, told where there is one."""
    with task.opened.searching():
        scale = task.corpus.scale(path, weights, task.notices)
    if scale:
        announce(scale.to_text())
    return scale


def _reached(sums: Statistics, scale: Scale | None) -> dict[str, object]:
    """What a weights file says of BLEU on the tuning set, and of the scale where there is one."""
    fitted = {"alpha_error": scale.error, "alpha_lists": scale.n_lists} if scale else {}
    return {"bleu": float(corpus_bleu(sums)), "length_ratio": float(length_ratio(sums)), **fitted}


def _by_name(weights: NDArray[np.float64], space: Space) -> dict[str, tuple[float, ...]]:
    widths = np.cumsum([label.width for label in space.labels])[:-1]
    parts = np.split(weights, widths)
    return {
        label.name: tuple(part.tolist()) for label, part in zip(space.labels, parts, strict=True)
    }


def _scored(what: str, sums: Statistics) -> str:
    return f"{what} BLEU {corpus_bleu(sums):.2f}, length ratio {length_ratio(sums):.3f}"


def _provenance(opened: Opened, texts: Sequence[str | Path], plan: Plan) -> dict[str, object]:
    """What a weights file says of its making: objective, seed, digests of the inputs."""
    lists = opened.lists
    files = [*lists.files, *texts]
    return {
        "rerank": rerank.__version__,
        "algorithm": "mert",
        "objective": "corpus BLEU",
        "seed": plan.settings.seed,
        "random_starts": plan.settings.random_starts,
        "pools": plan.pools,
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
