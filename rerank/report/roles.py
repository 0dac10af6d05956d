"""Whether a metric of an evaluation was the objective of tuning, or was held out from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rerank.report.metric_scores import MetricScore

if TYPE_CHECKING:
    from rerank.report.evaluation import Evaluation

OPTIMISED, HELD_OUT = "optimised", "held out"


def with_roles(found: Evaluation, objective: str, optimised: Collection[str]) -> Evaluation:
    """The evaluation with the role of every metric in tuning.

    objective: its name, for people; optimised: names in this evaluation of the metrics in it. The
    metrics of detokenised texts have the roles of those of the texts as they are.
    """

    def named(scores: Mapping[str, MetricScore]) -> dict[str, MetricScore]:
        return {
            name: replace(score, role=OPTIMISED if name in optimised else HELD_OUT)
            for name, score in scores.items()
        }

    systems = [
        replace(
            system,
            metrics=named(system.metrics),
            detokenised=named(system.detokenised),
            scores=named(system.scores),
            word_classes={
                name: replace(score, f1=replace(score.f1, role=HELD_OUT))
                for name, score in system.word_classes.items()
            },
        )
        for system in found.systems
    ]
    return replace(found, systems=tuple(systems), objective=objective)
