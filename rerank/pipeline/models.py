"""The scorers of a run: named, opened, and language models set to work on a machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.cache import Cache, cache_folder, cache_limit
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline.devices import choose_device
from rerank.pipeline.language_models import open_model
from rerank.registry import OUTSIDE
from rerank.scorers.features import TOTAL

if TYPE_CHECKING:
    from rerank.scorers.file_scorer import FileScorer, ListInfo
    from rerank.scorers.language_model import LanguageModel

LM = "lm"  # option of language models
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


Named = tuple[str, Path]


def check_names(options: Mapping[str, Sequence[Named]]) -> dict[str, str]:
    """The option behind every label; UsageError for names that cannot be.

    options: what is given for each option, without its dashes.
    """
    labels: dict[str, str] = {}
    for option, given in options.items():
        for name, path in given:
            own = f"--{option} {name}={path}"
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"{own}: expected a NAME of letters and digits that begins with a letter, "
                    "because it becomes a label of the list"
                )
            if name == TOTAL:
                raise UsageError(f"{own}: {TOTAL!r} is the list's total; choose another")
            added = {name, f"{name}oov"} if option == LM else {name}
            if taken := sorted(added & labels.keys()):
                raise UsageError(
                    f"{own}: the name is taken by another --{labels[taken[0]]}; choose another NAME"
                )
            labels |= dict.fromkeys(added, option)
    return labels


def open_models(lms: Sequence[Named], scoring: Scoring, cache: Cache | None) -> list[LanguageModel]:
    """The scorers of `--lm NAME=DIR`, in order."""
    return [_language_model(name, folder, scoring, cache) for name, folder in lms]


def open_outside(
    option: str, name: str, path: Path, given: ListInfo, notices: Notices
) -> FileScorer:
    """The scorer of an option's NAME=FILE, a kind of `rerank.registry`."""
    module, _, attribute = OUTSIDE[option].scorer.partition(":")
    made: FileScorer = getattr(import_module(module), attribute)(name, path, given, notices)
    return made


def _language_model(
    name: str, folder: Path, scoring: Scoring, cache: Cache | None
) -> LanguageModel:
    from lm.machine import Machine
    from rerank.scorers.language_model import LanguageModel

    device = choose_device(scoring.device)
    machine = Machine(device, dtype=scoring.dtype, deterministic=scoring.deterministic)
    return LanguageModel(name, open_model(folder, scoring.device), machine, cache)
