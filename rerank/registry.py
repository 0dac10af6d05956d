"""Scores from outside by the option that gives their files: what the option says, who reads them.

A further kind is a line here and the file with its scorer; the command line follows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """label: of the feature where no NAME is given; scorer: `module:class`, an `Outside`."""

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
