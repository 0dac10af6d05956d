"""The scorers of a run: their names checked, their files, models and packages opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.distribution import Shard
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.cache import Cache, cache_folder, cache_limit
from rerank.notices import Notices
from rerank.registry import SCORE_FILES, SCORERS
from rerank.scorers.causal_options import causal_options, is_causal
from rerank.scorers.features import TOTAL
from rerank.scorers.model_folders import choose_device, open_model, use_cores

if TYPE_CHECKING:
    from lm.backend import Backend
    from rerank.scorers import FeatureSource
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.plugin import PluginScorer

LM, SCORER = "lm", "scorer"  # options of language models and of scorers in other packages
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
Named = tuple[str, Path]


@dataclass(frozen=True, slots=True)
class Scoring:
    """Machine that language models run on, and the score cache.

    cache: its folder, None for that of the environment or the system; threads: on the CPU, None
    for what suits the models; shard: the documents that are scored, None for all; ray: address of
    a Ray cluster that scores all, or `local` for one on this machine
    (`rerank.commands.distribution`); memory: bytes of the process, beyond which candidates lie in
    files (`rerank.files.arrays`).
    """

    device: str = "auto"
    dtype: str = "float32"
    deterministic: bool = False
    cache: str | Path | None = None
    no_cache: bool = False
    threads: int | None = None
    shard: Shard | None = None
    ray: str | None = None
    memory: int | None = None

    def open_cache(self, notices: Notices) -> Cache | None:
        """The cache, which may hold as much as the environment says."""
        if self.no_cache and self.cache is not None:
            raise UsageError("--cache and --no-cache exclude each other; give one of them")
        if self.no_cache:
            return None
        folder = None if self.cache is None else Path(self.cache)
        return Cache(cache_folder(folder), notices, cache_limit())


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of language models, by the NAME of their `--lm NAME=DIR`.

    pmi: models whose feature becomes two, with and without context;
    document_caches: (NAME, λ) of models interpolated with a document cache (`lm.document_cache`).
    """

    pmi: tuple[str, ...] = ()
    document_caches: tuple[tuple[str, float], ...] = ()

    def check(self, lms: Sequence[Named]) -> None:
        """UsageError for a NAME that no model has or that is given twice, and for another λ."""
        known = [name for name, _ in lms]
        for option, names in (
            ("pmi", self.pmi),
            ("document-cache", [name for name, _ in self.document_caches]),
        ):
            for n, name in enumerate(names):
                if name not in known:
                    models = ", ".join(known) or "none is given"
                    raise UsageError(
                        f"--{option} {name}: expected the NAME of an --lm NAME=DIR ({models})"
                    )
                if name in names[:n]:
                    raise UsageError(f"--{option} {name}: given twice; give it once")
        for name, share in self.document_caches:
            if not 0 < share < 1:
                raise UsageError(
                    f"--document-cache {name}={share}: expected a weight above 0 and below 1"
                )

    def provenance(self, name: str) -> dict[str, object]:
        """Entries of a weights file about one model."""
        found: dict[str, object] = {"pmi": True} if name in self.pmi else {}
        share = dict(self.document_caches).get(name)
        return found if share is None else {**found, "document_cache": share}


FLOAT32 = Scoring()
PLAIN = ModelOptions()


def check_names(
    options: Mapping[str, Sequence[tuple[str, str | Path]]], pmi: Collection[str] = ()
) -> None:
    """UsageError for invalid and repeated names of features.

    options: (NAME, value) pairs by option, without its dashes; pmi: `ModelOptions.pmi`.
    """
    labels: dict[str, str] = {}
    for option, given in options.items():
        for name, value in given:
            own = f"--{option} {name}={value}"
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"{own}: expected a NAME of letters and digits that begins with a letter, "
                    "because it becomes a label of the list"
                )
            if name == TOTAL:
                raise UsageError(f"{own}: {TOTAL!r} is the list's total; choose another NAME")
            columns = SCORE_FILES[option].columns if option in SCORE_FILES else ()
            ends = ("oov",) if option == LM else columns
            added = {name, *(name + end for end in ends)}
            added |= {f"{name}pmi", f"{name}null"} if option == LM and name in pmi else set()
            if taken := sorted(added & labels.keys()):
                raise UsageError(
                    f"{own}: the name is taken by another --{labels[taken[0]]}; choose another NAME"
                )
            labels |= dict.fromkeys(added, option)


def open_models(
    lms: Sequence[Named],
    scoring: Scoring,
    cache: Cache | None,
    options: ModelOptions = PLAIN,
) -> list[FeatureSource]:
    """The scorers of `--lm NAME=DIR`, in order.

    UsageError for the PMI form of a model without context.
    """
    options.check(lms)
    if not lms:
        return []
    from lm.backend import Backend
    from rerank.scorers.language_model import LanguageModel

    device = choose_device(scoring.device, scoring.threads)
    backend = partial(Backend, device, dtype=scoring.dtype, deterministic=scoring.deterministic)
    shares = dict(options.document_caches)
    found: list[FeatureSource] = []
    for name, folder in lms:
        if is_causal(folder):
            if name in shares:
                raise UsageError(
                    f"--document-cache {name}: {folder} is a Hugging Face model, whose tokens are "
                    "not words; give --scorer NAME=document-cache beside it"
                )
            causal = open_causal_lm(
                name, folder, backend, cache, scoring.threads, pmi=name in options.pmi
            )
            if name in options.pmi and causal.order == 0:
                raise UsageError(
                    f"--pmi {name}: {folder} is a model without context, whose PMI is always 0; "
                    "leave the option out, or give a window of a sentence or more"
                )
            found.append(causal)
            continue
        saved = open_model(folder, scoring.device, scoring.threads)
        model = LanguageModel(
            name,
            saved,
            backend(),
            cache,
            pmi=name in options.pmi,
            document_cache=shares.get(name),
        )
        if name in options.pmi and model.order == 0:
            raise UsageError(
                f"--pmi {name}: {folder} is a model without context, whose PMI is always 0; leave "
                f"the option out, or give the model a document cache: --document-cache {name}"
            )
        if name in options.pmi and not model.causal:
            raise UsageError(
                f"--pmi {name}: {folder} is a model that is given the next sentence, too, for "
                "which there is no PMI form; leave the option out"
            )
        found.append(model)
    return found


def open_causal_lm(
    name: str,
    value: str | Path,
    new_backend: Callable[[], Backend],
    cache: Cache | None,
    threads: int | None,
    *,
    pmi: bool,
) -> CausalLM:
    """The scorer of `--lm NAME=hf:DIR[,OPTION=VALUE …]`; InputError if the folder is not valid."""
    from lm.causal.folder import CausalFolderError, open_causal_model
    from lm.model import n_parameters
    from rerank.scorers.causal_lm import CausalLM

    options = causal_options(name, value)
    try:
        backend = new_backend()
        model = open_causal_model(options.folder, backend.device, backend.dtype)
        use_cores(n_parameters(model.model), threads)
        scorer = CausalLM(name, model, options, new_backend(), cache, pmi=pmi)
        scorer.check()
    except CausalFolderError as fault:
        raise InputError(str(fault)) from None
    except ValueError as fault:
        raise InputError(f"{options.folder}: {fault}") from None
    return scorer


def open_scorer(name: str, entry: str, cache: Cache | None) -> PluginScorer:
    """The scorer of `--scorer NAME=ENTRY[:ARGUMENT]`, made by a factory of another package."""
    from rerank.scorers.plugin import PluginScorer

    plugin, given, argument = entry.partition(":")
    factory = SCORERS.named(plugin)
    try:
        scorer = factory(argument) if given else factory()
    except RerankError:
        raise
    except Exception as fault:
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise RerankError(
            f"--scorer {name}={entry}: the scorer cannot be made: {reason}; check the ARGUMENT "
            "that it expects"
        ) from fault
    return PluginScorer(name, scorer, identity=(plugin, argument), cache=cache)
