"""Names of objectives, as weights files have them, and the metrics that they name."""

from __future__ import annotations

import re

# what `name` of the classes of `rerank.tuning.objectives.objective` begins with, before a metric
_TERM = re.compile(
    r"(?:^|(?<= \+ ))(?:\S+ )?(?:corpus|mean document|worst \S+ % of documents,) "
    r"(.+?)(?= \+ | − |$)"
)


def metrics_of(objective: str) -> list[str]:
    """Names of the metrics that an objective maximises: of `corpus BLEU − 5 |…|`, BLEU.

    In their order; prices of length and of shrinkage are no metrics.
    """
    return _TERM.findall(objective)
