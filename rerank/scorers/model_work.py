"""Lines about what a language model did in a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.scoring import EngineCounts


def work_done(name: str, saved: SavedModel, work: EngineCounts, remembered: int) -> str:
    """What was computed and what was cached: `codclm: 12 documents from the cache`."""
    parts = [f"{remembered:,} documents from the cache"] if remembered else []
    if work.tokens:
        parts.append(f"{work.tokens:,} tokens scored in {work.seconds:.1f} s")
    line = f"{name}: {', '.join(parts) or 'nothing to score'}"
    if saved.model.head.normalised:
        return line
    return f"{line}; scores are not normalised: {_stated_error(saved.about)}"


def counters(name: str, work: EngineCounts) -> str:
    """Nodes of the tries and normalisers of all pairs, in a line; empty if there were none."""
    parts = []
    if work.nodes:
        share = work.tokens / work.nodes
        parts.append(f"{work.nodes:,} trie nodes ({share:.2f} tokens a node)")
    if work.normalisers:
        share = work.recomputed / work.normalisers
        parts.append(f"{work.normalisers:,} normalisers, {share:.2%} recomputed directly")
    return f"{name}: {', '.join(parts)}" if parts else ""


def _stated_error(about: Mapping[str, object]) -> str:
    """Log Z on the validation text, as the folder of the model states it."""
    from lm.evaluation import LogNormalisers

    stated = about.get("log_z")
    numbers = [stated.get("mean"), stated.get("sd")] if isinstance(stated, dict) else [None]
    if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
        return "log Z unknown"
    return f"{LogNormalisers(*numbers).to_text()} on the validation text"
