"""`rerank evaluate`: scores of translations beside those of a baseline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.corpus.reading import DocumentOptions, ReadingOptions
from rerank.errors import UsageError
from rerank.files.outputs import check_outputs
from rerank.files.paths import FilePath, base_name, display, file_of
from rerank.files.terminal import show, width
from rerank.formats.document_files import PREFIX, UnsegmentedText, cached_files, segments_of
from rerank.notices import Notices
from rerank.options import Command, argument, flag, option, optional, optional_file, part, record
from rerank.registry import ALL_SYSTEMS
from rerank.report.measures import MeasureOptions, tokenizer_of
from rerank.runs.options import Messages, ReferenceFiles, SystemValue, form_option, print_result
from rerank.table import fitting
from rerank.values import FILE, SEED, TEXT, Whole

if TYPE_CHECKING:
    from rerank.corpus.documents import Documents
    from rerank.metrics import TextMetric
    from rerank.metrics.bleu import Bleu, Extremes
    from rerank.report.comparison import EvaluatedTexts, SystemText
    from rerank.report.evaluation import Evaluation
    from rerank.scorers.programs import ProgramMetric


BEST = "best"  # the baseline that is the best system
_NOT_ALIGNED = "texts of whole documents need --align"


@record
class EvaluatedFiles:
    """Translations, and what they are compared with."""

    systems: tuple[str, ...] = argument("HYP...", type=FILE)
    documents: DocumentOptions = part(DocumentOptions)
    references: ReferenceFiles = part(ReferenceFiles)
    source: str | None = optional_file(
        "Text in the source language, one sentence per line, for --metric terms and programs.",
        rare=True,
    )
    test_set: str | None = optional(
        "Test set of sacrebleu in place of --ref and --docs, as wmt23, from the cache of "
        "sacrebleu; nothing is downloaded.",
        "-t",
        "--test-set",
        type=TEXT,
    )
    language_pair: str | None = optional(
        "Language pair of --test-set, as ru-en.", "-l", "--language-pair", type=TEXT
    )
    baseline: str | None = optional_file(
        "Translations that the others are compared with; best: the best of the others.\n\n"
        "FILE#NAME in WMT XML; with --systems also the NAME of one. best: the best of --systems "
        "or, without them, of the HYPs, by the first metric (a file of this name is ./best). "
        "Default: best with --systems, else the first HYP; one alone is scored."
    )
    align: bool = flag(
        "HYP and --baseline are texts of whole documents, as of LLMs, parted here into "
        "segments.\n\n"
        "By edit distance to the segments of the references, as mwerSegmenter does; each may "
        "be a folder with a file for each document, named by its id."
    )
    rivals: tuple[tuple[str, str], ...] = option(
        "Outputs of single systems that stand beside each HYP, as of decode; the best of them is "
        "the baseline; repeatable.",
        "--systems",
        type=SystemValue("[NAME=]FILE, for example A=a.txt or wmt23.xml", FILE, label=ALL_SYSTEMS),
        default=(),
        metavar="[NAME=]FILE",
    )
    truecase: str | None = optional_file(
        "Truecase references and translations before they are scored, by a model of `sacremoses "
        "train-truecase` or of Moses.",
        rare=True,
    )

    @property
    def fixed(self) -> list[str]:
        """The baseline, if it is a file."""
        return [] if self.baseline is None or self.best or self.named else [self.baseline]

    @property
    def named(self) -> bool:
        """Whether the baseline is the name of one of the systems."""
        if self.baseline in (None, BEST, "-") or not self.rivals:
            return False
        return not os.path.lexists(file_of(self.baseline))

    @property
    def best(self) -> bool:
        """Whether the baseline is the best system."""
        return self.baseline == BEST or (self.baseline is None and bool(self.rivals))

    @property
    def described(self) -> tuple[tuple[str, ...], FilePath | None]:
        """References and documents, of a test set unless the options name other documents."""
        docs = self.documents.file
        if self.test_set is None:
            return self.references.references, docs
        if self.references.references:
            raise UsageError("expected --ref or --test-set, found both; give one")
        cached = f"{PREFIX}{self.test_set}/{self.language_pair}"
        references = tuple(cached_files(cached, "reference"))
        if docs is None and self.documents.no_docs is None:
            (docs,) = cached_files(cached, "documents")
        return references, docs

    def check(self) -> None:
        """UsageError for half of a test set, and for two systems of one name."""
        names = [name for name, _ in self.rivals]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(
                f"--systems: two systems are named {twice[0]!r}; give one of them as NAME=FILE "
                "with another name, or leave it out"
            )
        if (self.test_set is None) != (self.language_pair is None):
            raise UsageError("--test-set and --language-pair: expected both or none; give both")


@record
class Oracle:
    """The k-best list whose best and worst choices are shown."""

    kbest: str | None = optional_file(
        "K-best list whose oracle and anti-oracle BLEU is shown.", once=True
    )
    reading: ReadingOptions = part(
        ReadingOptions, without={"missing"}, rare={"kbest_format", "top"}
    )

    def extremes(
        self,
        documents: Documents,
        references: Sequence[Sequence[bytes]],
        bleu: Bleu,
        notices: Notices,
        in_case: Callable[[Iterable[bytes]], list[bytes]] | None,
    ) -> Extremes | None:
        """Statistics of the best and of the worst choices; in_case: changes the case of texts."""
        from rerank.corpus.columns import TextColumn
        from rerank.metrics.bleu import list_extremes
        from rerank.runs.lists import KBestFile, Lists

        if self.kbest is None:
            return None
        options = Lists(self.kbest, **asdict(self.reading))
        file = KBestFile(Path(self.kbest), options, documents=documents)
        lists = (kbest for _, kbest in file.read(notices))
        if in_case is not None:
            lists = (
                replace(kbest, texts=TextColumn.of(in_case(kbest.texts.to_list())))
                for kbest in lists
            )
        return list_extremes(lists, references, bleu)


@record
class PrintedEvaluation:
    """How the scores are printed."""

    per_document: bool = flag(
        "Print a table of the documents, too, in TSV in place of that of the systems; JSON has it "
        "always."
    )
    score_only: bool = flag(
        "Print only the scores of each HYP, a line each, its metrics parted by TABs.",
        "--score-only",
        "-b",
    )
    digits: int = option(
        "Number of digits after the point of --score-only.",
        "--width",
        "-w",
        type=Whole(0, 16),
        default=2,
        rare=True,
    )
    seed: int = option("Random seed of intervals and tests.", type=SEED, default=1, rare=True)
    form: str = form_option("text", "json", "tsv", "latex", "markdown")


@record
class EvaluateOptions:
    """Options of `rerank evaluate`."""

    files: EvaluatedFiles = part(EvaluatedFiles, "Translations and documents")
    measures: MeasureOptions = part(MeasureOptions, "Measures")
    oracle: Oracle = part(Oracle, "Oracle")
    printed: PrintedEvaluation = part(PrintedEvaluation, "Output")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def evaluate(options: EvaluateOptions) -> None:
    """Compare translations with a baseline: BLEU, chrF, TER, and documents better or worse.

    Example:
      rerank evaluate --docs test.docids --ref test.en --baseline test.1best test.out

    Systems and references inside WMT XML are named as FILE#NAME:
      wmt23.xml#GPT4-5shot
    """
    with options.messages.warnings() as notices:
        _note_names(options.files.references.references, options.files.systems, notices)
        result = evaluation(options, notices)
    printed = options.printed
    if printed.score_only:
        named = {system.name: system for system in result.systems}
        systems = tuple(named[display(path)] for path in options.files.systems)
        show(replace(result, systems=systems).score_lines(printed.digits, first=0))
    elif printed.per_document and printed.form not in ("json", "text"):
        if printed.form != "tsv":
            print_result(result, printed.form)
            show("")
        show(getattr(result.documents_table(distinct=True), f"to_{printed.form}")())
    else:
        if printed.per_document and printed.form == "text":
            with fitting(width()):
                show(result.documents_table().to_text() + "\n", for_people=True)
        print_result(result, printed.form)


COMMAND = Command("evaluate", EvaluateOptions, evaluate)


def evaluation(options: EvaluateOptions, notices: Notices) -> Evaluation:
    """Scores of translations in files against references, the baseline first."""
    from rerank.corpus.spelling import detokenised, detruecased, nfc, truecaser
    from rerank.formats.translations import files_of, read_with_documents
    from rerank.report.comparison import announce_programs, tuning_of
    from rerank.report.comparison import evaluate as evaluated

    files, measures, announce = options.files, options.measures, options.messages.announce
    references, docs = files.described
    untokenised = [f"{PREFIX}{files.test_set}"] if files.test_set else references
    systems = [*files.fixed, *files.systems]
    score_files = measures.score_files([*systems, *dict(files.rivals)])
    read = [
        *files_of(references, "reference"),
        *files_of([*systems, *(SystemValue.path(file) for _, file in files.rivals)], "system"),
        *files_of([docs], "documents"),
        *files_of([files.source], "source"),
        *files_of(chain(*score_files.values()), "system"),
        *(options.oracle.kbest, files.truecase, measures.weights),
    ]
    inputs = check_outputs([], read)
    measures = replace(measures, tokenize=tokenizer_of(measures.tokenize, untokenised, announce))
    metrics = measures.loaded_metrics(notices)
    documents, targets = read_with_documents(
        docs, files.documents.no_docs, references, notices, drop=files.references.drop_unreferenced
    )
    texts = _read_texts(files, documents, targets, notices, model=display(docs or references[0]))
    if options.oracle.reading.in_nfc:
        texts = texts.changed(lambda lines: list(map(nfc, lines)))
    in_case = truecaser(files.truecase) if files.truecase else None
    texts = texts if in_case is None else texts.changed(in_case)
    _note_oddities(texts, measures.tokenize or "none", notices)
    if files.best or files.named:
        texts, score_files = _baseline_first(options, texts, metrics, documents, score_files)
    extremes = options.oracle.extremes(documents, texts.references, metrics[0], notices, in_case)
    plain = None
    if measures.detokenize:
        plain = texts.changed(detruecased) if measures.detruecase else texts
        plain = plain.changed(partial(detokenised, language=measures.detokenize))
    result = evaluated(
        documents,
        texts,
        notices,
        metrics=metrics,
        score_files=score_files,
        extremes=extremes,
        plain=plain,
        tuning=tuning_of(measures.weights, notices),
        seed=options.printed.seed,
    )
    announce_programs(metrics[1], announce)
    inputs.check()
    return result


def _baseline_first(
    options: EvaluateOptions,
    texts: EvaluatedTexts,
    metrics: tuple[Bleu, dict[str, TextMetric | ProgramMetric]],
    documents: Documents,
    score_files: dict[str, list[str]],
) -> tuple[EvaluatedTexts, dict[str, list[str]]]:
    """Texts and files of scores with the system first that is named, or the best, which is said."""
    from rerank.report.comparison import values_of

    number, files = len(texts.systems), options.files
    begin = len(files.systems) if files.rivals else 0
    if files.named:
        names = [text.name for text in texts.systems[begin:]]
        if files.baseline not in names:
            raise UsageError(
                f"--baseline {files.baseline}: no such file, and no system of --systems; they are "
                f"{', '.join(names)}"
            )
        baseline = begin + names.index(files.baseline)
    else:
        first = options.measures.names[0]
        values = values_of(texts, {**metrics[1], "bleu": metrics[0]}[first], documents)
        baseline = max(range(begin, number), key=values.__getitem__)
        options.messages.announce(
            f"baseline: {texts.systems[baseline].name}, the best of {number - begin} systems by "
            f"{first}"
        )
    order = [baseline, *(i for i in range(number) if i != baseline)]
    texts = replace(texts, systems=[texts.systems[i] for i in order])
    return texts, {name: [paths[i] for i in order] for name, paths in score_files.items()}


def _read_texts(
    files: EvaluatedFiles,
    documents: Documents,
    references: Sequence[Sequence[bytes]],
    notices: Notices,
    *,
    model: str,
) -> EvaluatedTexts:
    """The texts of the baseline, if it is a file, of HYP and of `--systems`, and the source.

    model: what has the documents, in messages.
    """
    from rerank.formats.translations import read_systems, read_translation
    from rerank.report.comparison import EvaluatedTexts, SystemText

    def aligned(path: FilePath) -> list[bytes]:
        """The segments of texts of whole documents, as of the references."""
        parts = segments_of(path, documents, documents.split(references), notices)
        return [*chain.from_iterable(parts)]

    def plain(path: FilePath, cure: str) -> Sequence[bytes]:
        return read_translation(path, documents, notices, model=model, cure=cure)

    texts: list[SystemText] = []
    for file in (*files.fixed, *files.systems):
        lines = aligned(file) if files.align else plain(file, _NOT_ALIGNED)
        texts.append(SystemText(display(file), lines))
    for name, file in files.rivals:
        path = SystemValue.path(file)
        if isinstance(path, UnsegmentedText):
            name = base_name(path) if name == ALL_SYSTEMS else name
            texts.append(SystemText(name, aligned(path)))
        elif name == ALL_SYSTEMS:  # of a file
            for system, text in read_systems(path, documents, notices)[1].items():
                texts.append(SystemText(system, [line or b"" for line in text.lines]))
        else:
            cure = (
                "if it lacks lines, or has whole documents: "
                f"--systems {name}={display(path)},align=yes"
            )
            texts.append(SystemText(name, plain(path, cure)))
    sources = None
    if files.source is not None:
        sources = read_translation(files.source, documents, notices, model=model, role="source")
    return EvaluatedTexts(references, texts, sources)


def _note_names(references: Sequence[str], systems: Sequence[str], notices: Notices) -> None:
    """A warning of systems that are named as further references, as --ref ref.? names them."""
    stems = {name.rstrip("0123456789") for name in references} - {*references}
    if names := [x for x in systems if x.rstrip("0123456789") in stems and x not in references]:
        notices.add("named-as-reference", names=names)


def _note_oddities(texts: EvaluatedTexts, tokenize: str, notices: Notices) -> None:
    """Warnings of texts that are not spelled or tokenised as the references are, or equal them."""
    from rerank.corpus.preparation import note_identity

    texts.note_differences(notices, tokenize)
    for text in texts.systems:
        note_identity(text.lines, texts.references, notices, source=text.name)
