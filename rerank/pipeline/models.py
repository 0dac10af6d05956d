"""The language models of a run: opened, set to work on a machine, and reported on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.cache import Cache, cache_folder, cache_limit
from rerank.devices import choose_device
from rerank.errors import UsageError
from rerank.features import TOTAL
from rerank.notices import Notices
from rerank.pipeline.language_models import open_model

if TYPE_CHECKING:
    from rerank.scorers.language_model import LanguageModel

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class Scoring:
    """What language models run on, and where scores are kept: in the folder `cache`.

    None is where the environment or the system keeps it.
    """

    device: str = "auto"
    dtype: str = "float32"
    deterministic: bool = False
    cache: Path | None = None
    no_cache: bool = False

    def open_cache(self, notices: Notices) -> Cache | None:
        """The cache, which may hold as much as the environment says."""
        if self.no_cache and self.cache is not None:
            raise UsageError("--cache and --no-cache exclude each other; give one of them")
        if self.no_cache:
            return None
        return Cache(cache_folder(self.cache), notices, cache_limit())


FLOAT32 = Scoring()


def open_scorers(
    lms: Sequence[tuple[str, Path]], scoring: Scoring, cache: Cache | None
) -> list[LanguageModel]:
    """The scorers of `--lm NAME=DIR`, in order."""
    names: set[str] = set()
    scorers = []
    for name, folder in lms:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--lm {name}={folder}: expected a NAME of letters and digits that begins with a "
                "letter, because it becomes a label of the list"
            )
        if {name, f"{name}oov"} & names:
            raise UsageError(f"--lm {name}={folder}: the name is taken by another --lm")
        if name == TOTAL:
            raise UsageError(f"--lm {name}={folder}: {TOTAL!r} is the list's total; choose another")
        names |= {name, f"{name}oov"}
        scorers.append(_language_model(name, folder, scoring, cache))
    return scorers


def _language_model(
    name: str, folder: Path, scoring: Scoring, cache: Cache | None
) -> LanguageModel:
    from lm.machine import Machine
    from rerank.scorers.language_model import LanguageModel

    device = choose_device(scoring.device)
    machine = Machine(device, dtype=scoring.dtype, deterministic=scoring.deterministic)
    return LanguageModel(name, open_model(folder, scoring.device), machine, cache)


def warn_of_unknown_words(scorers: Sequence[LanguageModel], source: str, notices: Notices) -> None:
    """A notice for each model to which far more words are unknown than in its training."""
    for scorer in scorers:
        known = scorer.saved.about.get("oov_rate", 0.0)
        trained = float(known) if isinstance(known, float | int) else 0.0
        rate = scorer.oov / max(1, scorer.words)
        if rate > 2 * trained + 0.01:
            notices.add(
                f"word unknown to {scorer.name} ({rate:.1%} of the list's words, {trained:.1%} "
                "of its training text's): check case, escaping (&apos;), tokenisation and "
                "subwords; the lists must look like the training text",
                source=source,
                count=scorer.oov,
            )


def work_of(scorer: LanguageModel) -> str:
    """What a model computed and what it remembered: `codclm: 12 documents from the cache`."""
    told = []
    if scorer.remembered:
        told.append(f"{scorer.remembered} documents from the cache")
    work = scorer.work
    if work.nodes:
        told.append(
            f"{work.tokens:,} tokens read as {work.nodes:,} trie nodes "
            f"({work.tokens / work.nodes:.2f} a node) in {work.seconds:.1f} s"
        )
    if work.normalisers:
        share = work.recomputed / work.normalisers
        told.append(f"{work.normalisers:,} normalisers of pairs, {share:.2%} of them formed twice")
    return f"{scorer.name}: {', '.join(told) or 'nothing to score'}"
