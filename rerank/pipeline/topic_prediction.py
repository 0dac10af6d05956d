"""`rerank topics train` and `rerank lm-eval topics`: prediction of topics of next sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rerank
from rerank.commands.texts import TextFiles, encoded_text, training_texts
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.lines import InputFiles, digest
from rerank.files.outputs import check_outputs
from rerank.files.paths import display
from rerank.formats.side_information import check_files
from rerank.notices import Notices
from rerank.pipeline.progress import progress
from rerank.pipeline.recipe import Recipe
from rerank.pipeline.topics import check_new_folder
from rerank.report.topic_prediction import TopicPredictionReport
from rerank.scorers.model_folders import choose_device, use_cores

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from lm.corpus import Corpus
    from lm.topics.prediction import LabelledText, TopicPredictor
    from lm.topics.prediction.evaluation import TopicFigures
    from lm.topics.prediction.files import SavedPredictor
    from lm.topics.prediction.training import EpochReport, PredictorSettings

MODEL = "topic predictor"  # row of a report


@dataclass(frozen=True, slots=True)
class PredictorRecipe:
    """Settings of the training of a topic predictor: the options of `rerank topics train`.

    Fields are those of `lm.topics.prediction.PredictorConfig` and of
    `lm.topics.prediction.training.PredictorSettings`, and of the text: vocabulary, its most words;
    min_count, least count of a word of it; documents, of `lm.corpus.DOCUMENTS`.
    """

    architecture: str = "unrolled"
    inputs: str = "words+topics"
    given_next_words: bool = False
    target: str = "topic"
    embed: int = 128
    hidden: int = 256
    layers: int = 1
    recurrence: str | None = None
    thought: int | None = None
    vocabulary: int = 10_000
    min_count: int = 1
    documents: str = "blank"
    epochs: int = 10
    patience: int = 3
    seed: int = 1
    streams: int = 16
    segment: int = 8
    optimiser: str = "adamw"
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    clip: float = 5.0
    schedule: str = "annealed"
    dropout: float = 0.2
    device: str = "auto"
    threads: int | None = None

    def values(self, record: type[DataclassInstance]) -> dict[str, Any]:
        """Values of the fields that a dataclass has, too."""
        names = {field.name for field in fields(record)} & {field.name for field in fields(self)}
        return {name: getattr(self, name) for name in names}


def train_topics(
    recipe: PredictorRecipe,
    train: TextFiles,
    valid: TextFiles,
    out: Path,
    *,
    notices: Notices,
    report: Callable[[EpochReport], None] = lambda report: None,
    announce: Callable[[str], None] = lambda line: None,
) -> TopicFigures:
    """Train a predictor of topics into the folder `out`; its figures on the validation text.

    train, valid: texts with a file of topics each (`side["topics"]`). The folder is written in the
    end, with the predictor of the best validation; an interrupted run leaves none.
    """
    from lm.model import n_parameters
    from lm.topics.prediction.evaluation import Transitions
    from lm.topics.prediction.files import SavedPredictor
    from lm.topics.prediction.training import PredictorSettings
    from lm.topics.prediction.training import train as epochs_of

    check_new_folder(out)
    check_files({"topics": MODEL}, train.side)
    check_files({"topics": MODEL}, valid.side, "valid-")
    _predictor(recipe, 3, 3)  # faults of options, before texts are read
    device = choose_device(recipe.device, recipe.threads)
    inputs = InputFiles((*train.all, *valid.all))
    of_texts = Recipe(
        "clstm-given-topic",  # a model whose texts have topics beside them
        vocabulary=recipe.vocabulary,
        min_count=recipe.min_count,
        documents=recipe.documents,
    )
    texts = training_texts(of_texts, train, valid, notices)
    labels = texts.side["topics"]
    model = _predictor(recipe, len(texts.vocabulary), len(labels)).to(device)
    use_cores(n_parameters(model), recipe.threads)
    settings = PredictorSettings(**recipe.values(PredictorSettings))
    own, held_out = (
        _labelled(corpus, files, model, notices)
        for corpus, files in ((texts.train, train), (texts.valid, valid))
    )
    announce(
        f"{recipe.architecture} ({recipe.inputs}"
        f"{', words of the next sentence' if recipe.given_next_words else ''}"
        f"{', joint target' if recipe.target == 'joint' else ''}): "
        f"{n_parameters(model):,} parameters; {model.config.topics - 1:,} topics, "
        f"{int((own.targets >= 0).sum()):,} predictions, {own.corpus.n_documents:,} documents"
    )
    best: TopicFigures | None = None
    with _diverging():
        steps = epochs_of(model, own, held_out, settings)
        for one in progress(steps, label="training", unit="epochs", total=settings.epochs):
            report(one)
            best = one.valid if one.best else best
    inputs.check()
    saved = SavedPredictor(
        model, texts.vocabulary, labels, Transitions.of(texts.train, model.config.topics)
    )
    figures = {} if best is None else best.as_json()
    out.mkdir(parents=True, exist_ok=True)
    saved.save(out, _about(recipe, settings, train, valid) | {"valid": figures})
    if best is None:
        raise TypeError("a training has at least one epoch")
    return best


def evaluate_topics(
    model: Path,
    text: TextFiles,
    *,
    notices: Notices,
    documents: str = "blank",
    device: str = "auto",
    threads: int | None = None,
) -> TopicPredictionReport:
    """Perplexity and accuracy of the topics of a text, of a predictor and of baselines.

    text: with a file of topics. The baselines are those of the predictor's training text.
    """
    from lm.topics.prediction.evaluation import measure

    check_files({"topics": MODEL}, text.side)
    check_outputs((), text.all)
    saved = _open_predictor(model, device, threads)
    vocabularies = {"topics": saved.labels}
    corpus = encoded_text(text, saved.vocabulary, vocabularies, notices, documents)
    labelled = _labelled(corpus, text, saved.model, notices)
    with _diverging(str(model)):
        figures = {MODEL: measure(saved.model, labelled)}
    return TopicPredictionReport(figures | dict(saved.transitions.figures(corpus)))


def _predictor(recipe: PredictorRecipe, words: int, labels: int) -> TopicPredictor:
    """A new predictor for vocabularies of these sizes; UsageError if there is none of its shape."""
    from lm.topics.prediction import PredictorConfig, make

    values = recipe.values(PredictorConfig) | {"words": words, "labels": labels}
    try:
        return make(PredictorConfig(**values), recipe.seed)
    except ValueError as fault:
        raise UsageError(f"{fault}; choose another one, or leave it out") from None


def _labelled(
    corpus: Corpus, files: TextFiles, model: TopicPredictor, notices: Notices
) -> LabelledText:
    """A text as a predictor reads it; InputError if it has nothing to predict."""
    import numpy as np

    from lm.topics.prediction import LabelledText, topics_of

    found = LabelledText.of(corpus, model.config)
    if not (found.targets >= 0).any():
        raise InputError(
            "expected a document of two sentences or more, found none; part documents with blank "
            "lines, or choose another text",
            source=display(files.text),
        )
    if unseen := int(np.count_nonzero(topics_of(corpus) == 0)):
        notices.add(
            "topic that is not in the training text, read as <unk>",
            source=display(files.side["topics"]),
            count=unseen,
        )
    return found


def _open_predictor(folder: Path, device: str, threads: int | None) -> SavedPredictor:
    """The predictor of a folder; InputError if it is not valid."""
    from lm.model import n_parameters
    from lm.shards import ModelError
    from lm.topics.prediction.files import SavedPredictor

    try:
        saved = SavedPredictor.load(folder, choose_device(device, threads))
    except ModelError as fault:
        raise InputError(str(fault)) from None
    use_cores(n_parameters(saved.model), threads)
    return saved


@contextmanager
def _diverging(folder: str = "") -> Iterator[None]:
    """RerankError for a predictor without probabilities."""
    from lm.scoring import ScoreError

    try:
        yield
    except ScoreError as fault:
        cause = (
            f"{folder}: {fault}; train it again"
            if folder
            else (f"training diverged: {fault}; lower --learning-rate")
        )
        raise RerankError(cause) from None


def _about(
    recipe: PredictorRecipe, settings: PredictorSettings, train: TextFiles, valid: TextFiles
) -> dict[str, object]:
    """Provenance saved with a predictor: settings, data, versions."""
    import torch

    files = {"train": train.text, "valid": valid.text}
    files |= {"topics": train.side["topics"], "valid_topics": valid.side["topics"]}
    return {
        "rerank": rerank.__version__,
        "torch": torch.__version__,
        "settings": {**asdict(settings), "documents": recipe.documents},
        "data": {
            name: {"file": Path(f).name, "digest": digest(f)}
            for name, f in files.items()
            if Path(f).is_file()
        },
    }
