"""Training that begins with the weights of other models: `train-lm --from` and `--source-lm`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rerank.errors import UsageError
from rerank.registry import MODELS
from rerank.runs.training_options import TrainLmOptions

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.model import DocumentLM

TOKENIZERS = ("tokenizer", "source_tokenizer")  # as a model's folder names them


class Beginning(NamedTuple):
    """Models with whose weights and vocabularies training begins: --source-lm and --from."""

    source: SavedModel | None
    whole: SavedModel | None

    @property
    def about(self) -> dict[str, object]:
        """Digests of the models, and the tokenizers of --from, for the folder of the new model."""
        both = {"source_lm": self.source, "from": self.whole}
        found: dict[str, object] = {
            name: saved.digest for name, saved in both.items() if saved is not None
        }
        known = {} if self.whole is None else self.whole.about
        return found | {name: known[name] for name in TOKENIZERS if name in known}


def model_before(options: TrainLmOptions, values: Mapping[str, Any]) -> SavedModel | None:
    """The model of --from; UsageError if it reads in another direction."""
    from rerank.scorers.models import open_model

    folder = options.choice.begin
    if folder is None:
        return None
    saved = open_model(folder, "cpu", options.machine.threads)
    for name in ("backward", "reverse_documents"):
        if bool(getattr(saved.model.config, name)) != bool(values.get(name)):
            raise UsageError(
                f"--from {folder}: it and the model to be trained read in different directions; "
                f"give --{name.replace('_', '-')} to both, or to none"
            )
    if bool(saved.about.get("reverse")) != options.files.reverse:
        raise UsageError(
            f"--from {folder}: it and the model to be trained translate in different directions; "
            "give --reverse to both, or to none"
        )
    return saved


def begin_from(model: DocumentLM, saved: SavedModel, folder: Path | None) -> None:
    """Give a model the tensors of another, in the first columns of those that have more.

    UsageError if one of them has no tensor of its name, or of its size.
    """
    import torch

    own = model.state_dict()
    for name, tensor in saved.model.state_dict().items():
        to = own.get(name)
        if to is not None and to.ndim == tensor.ndim == 2:
            to = to[:, : tensor.shape[1]]
        if to is None or to.shape != tensor.shape:
            found = "none" if to is None else tuple(own[name].shape)
            raise UsageError(
                f"--from {folder}: {name} of this {saved.model.config.model} has the size "
                f"{tuple(tensor.shape)}, found {found} in {model.config.model}; train with the "
                "--model, --embed, --hidden, --layers and other parts of that model"
            )
        with torch.no_grad():
            to.copy_(tensor)


# A source side that begins with a model of source text: what a bilingual model has of the source
# sentences, a dclm has of its own (Eisenstein's memo, §2.1: "We may also want to train this model
# on source-language text"), of which there may be more than there is with translations.


def source_model(options: TrainLmOptions, values: Mapping[str, Any]) -> SavedModel | None:
    """The model of source text of --source-lm; UsageError if no source side can begin with it."""
    from lm.composition import load
    from lm.contexts.document import DocumentRecurrence
    from rerank.scorers.models import open_model

    folder, name = options.choice.source_lm, options.choice.model
    if folder is None:
        return None
    saved = open_model(folder, "cpu", options.machine.threads)
    own = saved.model.config
    fault = ""
    if "source" not in load(MODELS[name].context).side_information:
        fault = f"{name} reads no source sentences; leave it out"
    elif options.texts.source_vocabulary or options.texts.source_tokenizer:
        given = "vocab" if options.texts.source_vocabulary else "tokenizer"
        fault = (
            "the vocabulary of the source sentences is that of this model; leave out "
            f"--source-{given}"
        )
    elif type(saved.model.context) is not DocumentRecurrence or own.backward:
        turned = " from right to left" if own.backward else ""
        fault = (
            "expected a dclm that reads sentences from left to right, found "
            f"{own.model}{turned}; train one on source text"
        )
    elif bool(own.reverse_documents) != bool(values.get("reverse_documents")):
        fault = (
            "it and the model to be trained read documents in different directions; give "
            "--reverse-documents to both, or to none"
        )
    if fault:
        raise UsageError(f"--source-lm {folder}: {fault}")
    return saved


def begin_with(model: DocumentLM, saved: SavedModel, folder: Path | None) -> None:
    """Give the source side of a model the weights of a model of source text.

    UsageError if they differ in size or kind.
    """
    level = model.context.source_level
    if level is None:
        raise UsageError(
            f"--source-lm {folder}: {model.config.model} has no recurrence over source sentences; "
            "leave it out"
        )
    given = saved.model.context.state_dict()
    expected = {name: tuple(tensor.shape) for name, tensor in level.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in given.items()}
    if expected != found:
        name = min(n for n in expected | found if expected.get(n) != found.get(n))
        raise UsageError(
            f"--source-lm {folder}: {name}: expected {expected.get(name, 'none')}, found "
            f"{found.get(name, 'none')}; train both with the same --embed, --hidden, --layers, "
            "--recurrence, --encoder and --sentence-recurrence"
        )
    level.load_state_dict(given)
