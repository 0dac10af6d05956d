"""`rerank demo`: the main job from text to table, on the embedded example."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rerank.commands.evaluate import COMMAND as EVALUATE
from rerank.commands.evaluate import evaluation
from rerank.example import EMBEDDED, Example, Set
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic, check_new_folder, scratch_folder, to_json
from rerank.formats.document_files import documents_of_file
from rerank.formats.run_records import read_trace
from rerank.notices import Notices
from rerank.options import Command, filled, option, optional, part, record
from rerank.report.explanation import marked_changes, with_previous
from rerank.runs.options import Messages, form_option, print_result
from rerank.values import FOLDER, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rerank.formats.run_records import Choice
    from rerank.notices import Printer
    from rerank.report.evaluation import Evaluation

_TRAINING = (
    "--embed 64 --dropout 0 --context-dropout 0 --learning-rate 0.02 --negatives 0 --streams 32 "
    "--validations 1 --epochs 4 --device cpu --precision float32"
)
DOCUMENT_LM = f"--model codclm --hidden 64 {_TRAINING}"
# Of the same size: wider by what the other spends on its context.
SENTENCE_LM = f"--model rnnlm --hidden 70 {_TRAINING}"
MODELS = {"rnnlm": SENTENCE_LM, "codclm": DOCUMENT_LM}  # options of train-lm by name
_LISTS = "--kbest {lists.kbest} --docs {lists.docs}"
_SCORED = f"{_LISTS} --lm {{lm}}={{out}}/{{lm}} --device cpu --cache {{out}}/cache"
_TRACED = "--trace {out}/test.{lm}.trace --summary {out}/test.{lm}.summary"
_WEIGHTS = "{out}/weights.{lm}.json"
_SET = "--docs {lists.docs} --ref {lists.references}"
# command lines, whose names stand for files: `lists` of a set, `data` of the example, `out`
FIRST = f"decode {_LISTS} --weights {{data.weights}} --out {{out}}/test.1-best.txt"
TRAIN = "--seed {seed} --train {data.train} --valid {data.valid} --out {out}/{lm}"
TUNE = (
    f"tune-mert {_SCORED} --ref {{lists.references}} --start {{data.weights}} --features {{lm}} "
    f"--seed {{seed}} --out {_WEIGHTS}"
)
DECODE = f"decode {_SCORED} --weights {_WEIGHTS}"
JUDGE = f"evaluate {_SET} --kbest {{lists.kbest}} --seed {{seed}} --baseline"
REPORT = (
    f"report {_TRACED} --weights {_WEIGHTS} --beside sentences={{sentences}} "
    f"--beside shuffled={{shuffled}} {_SET} --seed {{seed}} --out {{out}}/report.html"
)
EXAMPLES = 3  # changed sentences that are shown


@dataclass(frozen=True, slots=True)
class Training:
    """The training of a language model: perplexity of held-out text, seconds of training."""

    name: str
    perplexity: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Demo:
    """Results of the demo.

    `evaluation.systems` are the 1-best of the lists, the language model of sentences, that of
    documents, and the latter where the sentences of each document are shuffled. examples: changed
    sentences, each after the choice before it; page: the report of the model of documents, None if
    it was removed with the other files.
    """

    models: tuple[Training, ...]
    evaluation: Evaluation
    seed: int
    examples: tuple[tuple[Choice, Choice], ...] = ()
    page: str | None = None

    def to_dict(self) -> dict[str, object]:
        """The report for JSON."""
        models = [asdict(model) for model in self.models]
        examples = [asdict(choice) for _, choice in self.examples]
        report = {"schema": 1, "seed": self.seed, "models": models, "examples": examples}
        return report | {"page": self.page} | self.evaluation.to_dict()

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
            f"{''.join(_example(*pair) for pair in self.examples)}"
            + (f"\nreport: {self.page}\n" if self.page else "")
        )


def _example(before: Choice, choice: Choice) -> str:
    """A changed sentence in its context."""
    first, chosen = choice.texts["first"] or "", choice.texts["chosen"] or ""
    shown = {
        "before": before.texts["chosen"],
        "first": first,
        "chosen": marked_changes(first, chosen),
        "no context": choice.alone["text"] if choice.alone else None,
    }
    rows = (f"  {name:<11} {text}\n" for name, text in shown.items() if text is not None)
    return f"\n{choice.document}, sentence {choice.sentence}\n{''.join(rows)}"


@record
class DemoOptions:
    """Options of `rerank demo`."""

    out: Path | None = optional(
        "New folder for data, models, weights and translations [default: a temporary one, removed "
        "at the end].",
        type=FOLDER,
        metavar="DIR",
    )
    seed: int = option("Random seed.", type=Whole(0, 2**31 - 1), default=1)
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"strict", "allow", "deny", "verbose"})


def demo(options: DemoOptions) -> None:
    """Train, tune, decode and evaluate on an embedded example.

    Example:
      rerank demo --out demo
    """
    folder, announce = options.out, options.messages.announce
    if folder is not None:
        result = demonstrate(folder, seed=options.seed, announce=announce)
    else:
        announce("# rerank demo --out demo keeps the files of these commands")
        with scratch_folder(Path(tempfile.gettempdir(), "rerank-demo"), 0o700) as scratch:
            temporary = scratch / "demo"
            result = demonstrate(
                temporary,
                seed=options.seed,
                announce=lambda line: announce(line.replace(str(temporary), "demo")),
            )
        result = replace(result, page=None)
    print_result(result, options.form)


COMMAND = Command("demo", DemoOptions, demo)


def demonstrate(folder: Path, *, seed: int, announce: Printer) -> Demo:
    """Train, tune, decode and evaluate on the embedded example; all files stay in the new `folder`.

    announce: gets each command line as text. The language model of documents decodes the test set
    once more, under the same weights, with the sentences of each document shuffled.
    """
    from rerank.commands import execute

    def shown(line: str, *more: object, **names: object) -> list[str]:
        """The words of a command line, which is announced."""
        words = [word.format(out=folder, data=example, seed=seed, **names) for word in line.split()]
        words += map(str, more)
        announce(shlex.join(["rerank", *words]))
        return words

    def run(line: str, **names: object) -> Any:
        """The result of a command; faults that the example has on purpose give no warnings."""
        return execute([*shown(line, **names), "--quiet"])

    check_new_folder(folder, "expected a new or empty folder to work in; name another")
    ignored = shutil.ignore_patterns("*.py", "__pycache__")
    example = Example(shutil.copytree(EMBEDDED.folder, folder / "data", ignore=ignored))
    test, trained = example.test, []
    run(FIRST, lists=test)
    outputs = {"1-best of the lists": folder / "test.1-best.txt"}
    for name, options in MODELS.items():
        report = run(f"train-lm {options} {TRAIN}", lm=name)
        trained.append(Training(name, report.valid_perplexity, report.seconds))
        run(TUNE, lists=example.tune, lm=name)
        traced = f" {_TRACED}" if options == DOCUMENT_LM else ""
        run(f"{DECODE}{traced} --out {{out}}/test.{name}.txt", lists=test, lm=name)
        outputs[f"+ {name}"] = folder / f"test.{name}.txt"
    shuffled, order = shuffle(test, folder / "shuffled", seed=seed)
    run(f"{DECODE} --out {{out}}/test.shuffled.{name}.txt", lists=shuffled, lm=name)
    lines = [*read_lines(folder / f"test.shuffled.{name}.txt", Notices())]
    in_order = folder / f"test.shuffled.{name}.in-order.txt"
    outputs[f"+ {name}, shuffled"] = in_order
    with atomic(in_order) as file:
        file.writelines(lines[p] + b"\n" for p in order.argsort())
    words = shown(JUDGE, *outputs.values(), lists=test)
    beside = {"sentences": outputs[f"+ {next(iter(MODELS))}"], "shuffled": in_order}
    run(REPORT, lists=test, lm=name, **beside)
    with EVALUATE.make_context(words[0], words[1:]) as context:
        result = evaluation(filled(EVALUATE.options, context.params), Notices())
    rows = zip(outputs, result.systems, strict=True)
    result = replace(result, systems=tuple(replace(system, name=row) for row, system in rows))
    examples = _examples(folder / f"test.{name}.trace")
    demo = Demo(tuple(trained), result, seed, examples, str(folder / "report.html"))
    with atomic(folder / "report.json") as file:
        file.write(to_json(demo.to_dict()))
    return demo


def _examples(trace: Path) -> tuple[tuple[Choice, Choice], ...]:
    """Changed sentences of different documents, first those whose choice the context decided."""
    pairs = with_previous(read_trace(trace, str(trace), Notices()))
    changed = [(a, b) for a, b in pairs if a is not None and b.changed]
    first: dict[str, tuple[Choice, Choice]] = {}
    for before, choice in sorted(changed, key=lambda pair: not pair[1].by_context):
        first.setdefault(choice.document, (before, choice))
    return tuple(first.values())[:EXAMPLES]


def shuffle(original: Set, folder: Path, *, seed: int) -> tuple[Set, NDArray[np.int64]]:
    """A set with the sentences of each document in random order, and that order (T,).

    Sentence p of the new set is sentence `order[p]` of the original. The document ids stay.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    spans = pairwise(documents_of_file(original.docs, Notices()).starts)
    order = np.concatenate([start + rng.permutation(stop - start) for start, stop in spans])
    folder.mkdir(parents=True)
    names = original.kbest.name, original.references.name
    new = Set(folder / names[0], original.docs, folder / names[1])
    lines, lists = list(read_lines(original.references, Notices())), dict[int, list[bytes]]()
    for line in read_lines(original.kbest, Notices()):
        number, bars, columns = line.partition(b" |||")
        lists.setdefault(int(number), []).append(bars + columns)
    with atomic(new.references) as file:
        file.writelines(lines[t] + b"\n" for t in order)
    with atomic(new.kbest) as file:
        for p, t in enumerate(order.tolist()):
            file.writelines(b"%d%b\n" % (p, columns) for columns in lists.get(t, ()))
    return new, order
