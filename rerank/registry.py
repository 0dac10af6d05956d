"""What goes by a name: scores from outside, by the option that gives their files, and metrics.

A further kind of scores is a line here and the file with its scorer; the command line follows. A
further metric is a line here and its file or, in another package, an entry point of the group
`rerank.metrics`; one whose name is taken here is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from rerank.errors import UsageError

if TYPE_CHECKING:
    from rerank.metrics import TextMetric


@dataclass(frozen=True, slots=True)
class Kind:
    """label: of the feature where no NAME is given; scorer: `module:class`, an `FileScorer`."""

    label: str
    help: str
    scorer: str


OUTSIDE = {  # by option, without its dashes
    "scores": Kind(
        "scores",
        "A number for each line of the list, as feature NAME; repeatable.",
        "rerank.scorers.hypothesis_scores:HypothesisScores",
    ),
    "pair-scores": Kind(
        "pairs",
        "A number for each two candidates of neighbouring sentences, as feature NAME: document, "
        "sentence, index of the candidate before, index, value; repeatable.",
        "rerank.scorers.pair_scores:PairScores",
    ),
}

METRICS = {  # by name: `module:attribute`, which makes a `rerank.metrics.TextMetric` when called
    "bleu": "rerank.metrics.corpus_bleu:Bleu",
    "chrf": "rerank.metrics.chrf:Chrf",
    "ter": "rerank.metrics.ter:Ter",
}


def metric(name: str) -> TextMetric:
    """The metric of a name, with its defaults; UsageError for one that is unknown or cannot be had.

    Only the module of that metric is loaded.
    """
    if name in METRICS:
        module, _, attribute = METRICS[name].partition(":")
        made: TextMetric = getattr(import_module(module), attribute)()
        return made
    from importlib.metadata import entry_points

    others = {point.name: point for point in entry_points(group="rerank.metrics")}
    if name not in others:
        known = ", ".join([*METRICS, *sorted(others.keys() - METRICS.keys())])
        raise UsageError(f"no metric {name!r}; there are {known}")
    try:
        found: TextMetric = others[name].load()()
    except (ImportError, AttributeError) as fault:
        reason = " ".join(str(fault).split())
        raise UsageError(
            f"metric {name!r}, {others[name].value}, cannot be loaded: {reason}; "
            "mend or remove the package that brings it"
        ) from fault
    return found
