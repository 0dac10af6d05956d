"""`rerank train-lm`: the training of a language model, and model folders read back."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.texts import TextFiles, TrainingTexts, training_texts
from rerank.errors import UsageError
from rerank.files.lines import InputFiles, digest
from rerank.files.outputs import check_folder, check_outputs
from rerank.formats.side_information import check_files
from rerank.notices import Notices
from rerank.pipeline.curves import LearningCurve
from rerank.pipeline.recipe import Recipe
from rerank.pipeline.recipes import (
    check_model,
    check_packages,
    completed,
    described,
    fitting,
    settings_of,
)
from rerank.pipeline.source_models import begin_with, check_source_model
from rerank.pipeline.training import validations
from rerank.registry import MODELS
from rerank.scorers.model_folders import (
    choose_device,
    choose_precision,
    open_model,
    use_cores,
    valid_files,
)
from rerank.torchrun import processes
from rerank.version import __version__

if TYPE_CHECKING:
    import torch

    from lm.checkpoint import SavedModel
    from lm.contexts import Context
    from lm.corpus import Corpus
    from lm.training.processes import Processes
    from lm.training.settings import Settings
    from lm.training.trainer import Report, Trainer


def train_lm(
    recipe: Recipe,
    train: str | Path | TextFiles,
    valid: str | Path | TextFiles,
    out: Path,
    *,
    notices: Notices,
    resume: bool = False,
    curve: str | Path | None = None,
    report: Callable[[Report], None] = lambda report: None,
    announce: Callable[[str], None] = lambda line: None,
) -> Report | None:
    """Train a document language model into the folder `out`; the last validation's report.

    The folder holds the model of the best validation. Interrupted runs (SIGINT, SIGTERM, a
    closed terminal) save their state and raise StoppedEarly; `resume` goes on from there. None
    where the run to be resumed is finished: what repeats a command after a kill may come late.
    curve: file for a line of every validation. Under `torchrun` several processes share the work
    of every update, and the first one writes, reports and announces.
    Memory: 4 bytes a word of the training text, plus the model.
    """
    from lm.composition import load
    from lm.model import n_parameters
    from lm.side_information import information_of
    from lm.training.state import load_training

    _check_folder(out, resume)
    given, recipe = recipe, completed(recipe)
    context = load(MODELS[recipe.model].context)
    needed = dict.fromkeys(information_of(context), recipe.model)
    of_scores = dict.fromkeys(information_of(context, training=False), recipe.model)
    train, valid = TextFiles.of(train), TextFiles.of(valid)
    check_files(needed, train.side)
    check_files(of_scores, valid.side, "valid-")
    files = (*train.all, *valid.all)
    inputs = InputFiles(files)
    rows = LearningCurve(curve) if curve else None
    check_outputs((curve,) if curve else (), files)
    state = out / "resume"
    resume = resume and (state / "state.json").exists()
    if not resume:
        check_packages(recipe)
    with processes(choose_device(recipe.device, recipe.threads), files) as (device, group):
        check_model(recipe, given, device)
        of_source = _source_model(recipe, context)
        known = {} if of_source is None else {"source": of_source.vocabulary}
        texts = training_texts(recipe, train, valid, notices, known)
        corpus = texts.train
        trainer = _trainer(recipe, given, texts, device, group, of_source, fresh=not resume)
        model, settings = trainer.model, trainer.settings
        if resume:
            with valid_files():
                load_training(state, trainer)
            if rows:
                rows.resume(trainer.progress.update, notices)
        announce = announce if group.rank == 0 else lambda line: None
        chosen = recipe.encoder, recipe.sentence_recurrence, recipe.fusion, recipe.head
        others = ", ".join(filter(None, chosen))
        announce(
            f"{recipe.model}{f' ({others})' if others else ''}"
            f"{' from right to left' if recipe.backward else ''}"
            f"{', documents from the last sentence' if recipe.reverse_documents else ''}: "
            f"{n_parameters(model):,} parameters, order "
            f"{'unbounded' if model.order is None else model.order}"
            f"{'' if model.causal else ', given the next sentence, too'}; {corpus.n_documents:,} "
            f"{_unit(recipe)}, "
            f"{len(corpus.tokens):,} words "
            f"({corpus.n_unknown / len(corpus.tokens):.2%} outside the vocabulary); "
            f"{trainer.updates_per_epoch:,} updates an epoch on {device} ({settings.precision})"
            f"{f', {group.number} processes' if group.number > 1 else ''}"
        )
        announce(described(recipe.recipe, settings))
        named = {"train": train.text, "valid": valid.text, **train.side}
        about = _about(recipe, settings, corpus, named)
        if of_source is not None:
            about["source_lm"] = of_source.digest
        inputs.check()
        group.any(False)  # none makes the folder before all have found it fit
        last: Report | None = None
        for last in validations(trainer, out, texts, about, rows):
            if group.rank == 0:
                report(last)
    if last is None:
        announce(f"{out}: this run is finished; nothing is left to do")
    return last


def _trainer(
    recipe: Recipe,
    given: Recipe,
    texts: TrainingTexts,
    device: torch.device,
    group: Processes,
    of_source: SavedModel | None,
    *,
    fresh: bool,
) -> Trainer:
    """A new model of these texts and its trainer, by a recipe and by what it was before.

    of_source: a model with whose weights the source side begins, if any. fresh: whether the model
    learns from the training text what no gradient trains; a resumed run reads it from its state.
    """
    from lm.model import Config, DocumentLM, n_parameters
    from lm.side_information import KINDS
    from lm.training.trainer import Trainer
    from lm.training.weights import INITIALISATIONS

    sizes = {KINDS[kind]: len(words) for kind, words in texts.side.items()}
    with fitting(recipe):
        config = Config(**recipe.values(Config) | {"vocabulary": len(texts.vocabulary), **sizes})
        model = DocumentLM.seeded(config, recipe.seed, MODELS)
    precise = replace(recipe, precision=choose_precision(recipe.precision or "auto", device))
    settings = settings_of(precise, given, model)
    use_cores(n_parameters(model), recipe.threads)
    INITIALISATIONS[settings.initialisation](model, recipe.seed)
    if of_source is not None:
        begin_with(model, of_source, str(recipe.source_lm))
    if fresh:
        with fitting(recipe):
            model.fit(texts.train, recipe.seed)
        # the first process decides: a last bit may differ between two of them
        model.load_state_dict(group.gather(dict(model.named_buffers()))[0], strict=False)
    try:
        return Trainer(
            model.to(device), texts.train, texts.valid, settings=settings, processes=group
        )
    except ValueError as fault:
        raise UsageError(f"--streams {settings.streams}: {fault}; start fewer processes") from None


def _source_model(recipe: Recipe, context: type[Context]) -> SavedModel | None:
    """The model of source text that a recipe names, fit for it; None if it names none."""
    if recipe.source_lm is None:
        return None
    saved = open_model(recipe.source_lm, "cpu", recipe.threads)
    check_source_model(saved, recipe, context)
    return saved


def _unit(recipe: Recipe) -> str:
    """What the training text is divided into."""
    if recipe.passages is not None:
        return f"passages of {recipe.passages} sentences"
    return "stretches" if recipe.across_documents else "documents"


def _check_folder(out: Path, resume: bool) -> None:
    check_folder(out, str(out))
    if not out.exists() or not any(out.iterdir()):
        return
    if not resume:
        raise UsageError(f"{out}: not empty; name a new folder, or --resume to go on with its run")
    begun = all(path.name == "resume" for path in out.iterdir())  # the first state was not whole
    if not begun and not (out / "resume" / "state.json").exists():
        raise UsageError(f"{out}: not empty, and holds no run to go on with; name a new folder")


def _about(
    recipe: Recipe, settings: Settings, corpus: Corpus, files: dict[str, str | Path]
) -> dict[str, object]:
    """Provenance saved with a model: settings, digests of the data, versions."""
    import torch

    return {
        "rerank": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": recipe.model,
        "recipe": recipe.recipe,
        "settings": asdict(settings),
        "longest": recipe.longest,
        "across_documents": recipe.across_documents,
        "passages": recipe.passages,
        "oov_rate": corpus.n_unknown / len(corpus.tokens),
        "data": {  # pipes cannot be read again
            name: {"file": Path(f).name, "digest": digest(f)}
            for name, f in files.items()
            if Path(f).is_file()
        },
    }
