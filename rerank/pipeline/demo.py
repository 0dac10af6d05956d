"""`rerank demo`: the main job from text to table, on the embedded example."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.errors import UsageError
from rerank.example import EMBEDDED, Example, Set
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic, write_json
from rerank.formats.table import read_documents
from rerank.notices import Notices
from rerank.pipeline.decoding import decode
from rerank.pipeline.evaluation import evaluate
from rerank.pipeline.language_models import Recipe, train_lm
from rerank.pipeline.lists import Lists
from rerank.pipeline.models import Scoring
from rerank.pipeline.sources import Announce
from rerank.pipeline.tuning import TunedWeights, tune_mert
from rerank.report.evaluation import Evaluation
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.plan import Plan

DOCUMENT_LM = Recipe(
    "codclm",
    embed=64,
    hidden=64,
    epochs=5,
    dropout=0.0,
    context_dropout=0.0,
    learning_rate=0.02,
    negatives=0,
    streams=16,
    device="cpu",
    precision="float32",
)
# Of the same size: wider by what the other spends on its context.
SENTENCE_LM = replace(DOCUMENT_LM, model="rnnlm", hidden=70)


@dataclass(frozen=True, slots=True)
class Model:
    """A language model as it was trained: perplexity of held-out text, seconds of training."""

    name: str
    perplexity: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Demo:
    """Results of the demo.

    `evaluation.systems` are the 1-best of the lists, the language model of sentences, that of
    documents, and the latter where the sentences of each document are shuffled.
    """

    models: tuple[Model, ...]
    evaluation: Evaluation
    seed: int

    def to_dict(self) -> dict[str, object]:
        """The report for JSON."""
        models = [asdict(model) for model in self.models]
        return {"schema": 1, "seed": self.seed, "models": models} | self.evaluation.to_dict()

    def to_text(self) -> str:
        """The table, and an explanation of its rows."""
        first, sentence, document, shuffled = (system.bleu for system in self.evaluation.systems)
        models = (
            f"{model.name}: perplexity {model.perplexity:.2f}, trained in {model.seconds:.0f} s\n"
            for model in self.models
        )
        return (
            f"{self.evaluation.to_text()}{''.join(models)}\n"
            "In these documents the right words depend on the sentence before: he or she, present\n"
            "or past, lorry or truck. The language model of documents, which sees that sentence,\n"
            f"gains {document - first:.2f} BLEU over the 1-best and {document - sentence:.2f} over "
            "the model of sentences;\n"
            "with the sentences of each document shuffled it gains "
            f"{shuffled - first:.2f} and {shuffled - sentence:.2f}.\n"
        )


def demo(
    folder: Path | None,
    *,
    example: Example = EMBEDDED,
    recipes: tuple[Recipe, Recipe] = (SENTENCE_LM, DOCUMENT_LM),
    seed: int = 1,
    announce: Announce = lambda line: None,
) -> Demo:
    """Train, tune, decode and evaluate on an example; all files stay in the new `folder`.

    Without a folder they are removed. `recipes`: of a language model of sentences, and of one of
    documents. The latter decodes the test set once more, under the same weights, with the
    sentences of each document shuffled. `announce` gets every step as a command line.
    """
    if folder is None:
        announce("# rerank demo --out demo keeps the files of these commands")
        with tempfile.TemporaryDirectory() as scratch:
            temporary = Path(scratch) / "demo"
            return demo(
                temporary,
                example=example,
                recipes=recipes,
                seed=seed,
                announce=lambda line: announce(line.replace(str(temporary), "demo")),
            )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: expected a new or empty folder to work in; name another")
    steps = _Steps(folder, _copied(example, folder / "data"), seed, announce)
    test, document = steps.example.test, recipes[1].model
    outputs = {"1-best of the lists": steps.decoded(test, "1-best", steps.example.weights)}
    models = []
    for recipe in recipes:
        models.append(steps.trained(recipe))
        weights = steps.tuned(recipe.model)
        outputs[f"+ {recipe.model}"] = steps.decoded(test, recipe.model, weights, recipe.model)
    shuffled, order = shuffle(test, folder / "shuffled", seed=seed)
    out = steps.decoded(shuffled, f"shuffled.{document}", weights, document)
    outputs[f"+ {document}, shuffled"] = _in_order(out, order)
    result = Demo(tuple(models), steps.evaluated(outputs), seed)
    write_json(folder / "report.json", result.to_dict())
    return result


class _Steps:
    """The commands of a demo, each announced."""

    def __init__(self, folder: Path, example: Example, seed: int, announce: Announce) -> None:
        self.folder, self.example, self.seed, self.announce = folder, example, seed, announce
        self.notices = Notices()  # of faults that the example has on purpose

    def trained(self, recipe: Recipe) -> Model:
        """`train-lm` into a folder with the name of the model."""
        recipe = replace(recipe, seed=self.seed)
        train, valid, out = self.example.train, self.example.valid, self.folder / recipe.model
        self._say("train-lm", *_options(recipe), "--train", train, "--valid", valid, "--out", out)
        report = train_lm(recipe, train, valid, out, notices=self.notices)
        return Model(recipe.model, report.valid_perplexity, report.seconds)

    def tuned(self, name: str) -> Path:
        """`tune-mert` of the weight of this model; the system's own weights stay as they were."""
        references, start = self.example.tune.references, self.example.weights
        lists, out = self._lists(self.example.tune, name), self.folder / f"weights.{name}.json"
        options = ("--start", start, "--features", name, "--seed", self.seed, "--out", out)
        self._say("tune-mert", *_named(lists), "--ref", references, *options)
        tune_mert(
            lists,
            [references],
            TunedWeights(out, [name], start),
            plan=Plan(settings=MertSettings(seed=self.seed)),
            notices=self.notices,
        )
        return out

    def decoded(self, chosen: Set, name: str, weights: Path, *models: str) -> Path:
        """`decode` under these weights, into a text of this name."""
        lists, out = self._lists(chosen, *models), self.folder / f"test.{name}.txt"
        self._say("decode", *_named(lists), "--weights", weights, "--out", out)
        decode(lists, weights, out, notices=self.notices)
        return out

    def evaluated(self, outputs: Mapping[str, Path]) -> Evaluation:
        """`evaluate`, with a name for each row; the first is the baseline."""
        test, paths, seed = self.example.test, list(outputs.values()), self.seed
        options = ("--docs", test.docs, "--ref", test.references, "--kbest", test.kbest)
        self._say("evaluate", *options, "--seed", seed, "--baseline", *paths)
        found = evaluate(
            test.docs, [test.references], paths, kbest=test.kbest, seed=seed, notices=self.notices
        )
        pairs = zip(outputs, found.systems, strict=True)
        return replace(found, systems=tuple(replace(system, name=name) for name, system in pairs))

    def _lists(self, chosen: Set, *models: str) -> Lists:
        folders = tuple((name, self.folder / name) for name in models)
        return Lists(
            chosen.kbest,
            chosen.docs,
            lms=folders,
            scoring=Scoring(device="cpu", cache=self.folder / "cache"),
        )

    def _say(self, *words: object) -> None:
        self.announce(shlex.join(["rerank", *map(str, words)]))


def shuffle(original: Set, folder: Path, *, seed: int) -> tuple[Set, NDArray[np.int64]]:
    """A set with the sentences of each document in random order, and that order (T,).

    Sentence p of the new set is sentence `order[p]` of the original. The document ids stay.
    """
    notices = Notices()
    documents = Documents.from_file(original.docs, notices)
    rng = np.random.default_rng(seed)
    spans = map(documents.span, range(len(documents)))
    order = np.concatenate([start + rng.permutation(stop - start) for start, stop in spans])
    folder.mkdir(parents=True)
    names = original.kbest.name, original.references.name
    new = Set(folder / names[0], original.docs, folder / names[1])
    lines = list(read_lines(original.references, notices))
    with atomic(new.references) as file:
        file.writelines(lines[t] + b"\n" for t in order)
    with atomic(new.kbest) as file:
        file.writelines(_renumbered(original, documents, order))
    return new, order


def _renumbered(original: Set, documents: Documents, order: NDArray[np.int64]) -> Iterator[bytes]:
    """Lines of the lists in a new order of the sentences, with new ids."""
    for kbest in read_documents(original.kbest, documents, Notices()):
        for p in range(kbest.first, kbest.first + len(kbest)):
            for row in kbest.rows(int(order[p]) - kbest.first):
                _, bars, columns = kbest.line(row).partition(b" |||")
                yield b"%d%b%b\n" % (p, bars, columns)


def _in_order(shuffled: Path, order: NDArray[np.int64]) -> Path:
    """A text of which line p belongs to sentence `order[p]`, in the order of the sentences."""
    lines = list(read_lines(shuffled, Notices()))
    path = shuffled.with_suffix(f".in-order{shuffled.suffix}")
    with atomic(path) as file:
        file.writelines(lines[p] + b"\n" for p in np.argsort(order))
    return path


def _copied(example: Example, folder: Path) -> Example:
    """The example in a folder where it can be looked at."""
    folder.mkdir(parents=True)
    texts = (example.train, example.valid, example.weights)
    for path in (*texts, *example.tune, *example.test):
        shutil.copyfile(path, folder / path.name)
    return Example(folder)


def _options(recipe: Recipe) -> Iterator[str]:
    """Options of `train-lm` that differ from its defaults."""
    defaults = asdict(Recipe(""))
    for name, value in asdict(recipe).items():
        option = {"vocabulary": "vocab", "tied": "untied"}.get(name, name).replace("_", "-")
        if value != defaults[name]:
            yield from (f"--{option}", *([] if isinstance(value, bool) else [str(value)]))


def _named(lists: Lists) -> Sequence[object]:
    """Options that name lists and models."""
    models = [word for name, folder in lists.lms for word in ("--lm", f"{name}={folder}")]
    if models:
        models += ["--device", lists.scoring.device, "--cache", str(lists.scoring.cache)]
    return ["--kbest", lists.kbest, "--docs", lists.docs, *models]
