"""`rerank evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rerank.corpus.casing import detruecased, truecased
from rerank.corpus.detokenisation import detokenised, note_detokenised
from rerank.corpus.documents import Documents
from rerank.corpus.normalization import AS_IT_IS, AS_NFC, nfc, nfc_lines
from rerank.corpus.references import note_identity, read_with_documents
from rerank.corpus.spelling import note_differences
from rerank.corpus.translations import files_of, read_translation
from rerank.errors import InputError, UsageError
from rerank.files.inputs import InputFiles
from rerank.files.outputs import check_outputs
from rerank.files.paths import FilePath, display
from rerank.formats.documents.sacrebleu_sets import CachedSet
from rerank.formats.weights import read_weights
from rerank.metrics import TextMetric
from rerank.metrics.bleu import Bleu
from rerank.metrics.line_scores import LineScores, read_line_scores
from rerank.metrics.oracle import Extremes, list_extremes
from rerank.metrics.word_classes import (
    ListedWords,
    WordClass,
    english_classes,
    read_frequencies,
    read_words,
)
from rerank.notices import Notices, PythonWarnings
from rerank.pipeline.kbest_file import KBestFile
from rerank.pipeline.lists import Lists
from rerank.registry import METRICS
from rerank.registry import metric as registered
from rerank.report.evaluation import Detokenised, Evaluation, Text
from rerank.report.evaluation import evaluate as judge
from rerank.report.line_scores import with_scores
from rerank.report.roles import with_roles
from rerank.report.word_classes import with_word_classes
from rerank.tuning.objectives.names import metrics_of

DEFAULT_METRICS = ("bleu", "chrf", "ter")


@dataclass(frozen=True, slots=True)
class Additions:
    """What an evaluation reports beside the metrics of the texts as they are.

    detokenize: language of the texts, to score them detokenised, too; scores: names of metrics of
    other tools, each with a system and the file of its values, as `HYP:FILE`. word_classes: F1 of
    classes of English words; word_lists: files of lists of words, by the name of their class, in
    place of the English ones or beside them; word_frequencies: file of counts of words, by which
    content words are divided. weights: file of a tuning, whose objective says which metrics were
    optimised. drop_unreferenced: leave out sentences that a reference does not have. test_set: of
    sacrebleu, in place of references and documents. detruecase: begin sentences of the detokenised
    texts with capitals; truecase: model by which references and translations are truecased before
    they are scored; normalize: Unicode's normal form of both (`rerank.corpus.normalization`).
    """

    detokenize: str | None = None
    scores: Sequence[tuple[str, str]] = ()
    word_classes: bool = False
    word_lists: Mapping[str, str | Path] = field(default_factory=dict)
    word_frequencies: str | Path | None = None
    weights: str | Path | None = None
    drop_unreferenced: bool = False
    test_set: CachedSet | None = None
    detruecase: bool = False
    truecase: str | Path | None = None
    normalize: str = AS_IT_IS

    def check(self) -> None:
        """UsageError for options that lack another one."""
        if self.word_frequencies is not None and not self.word_classes:
            raise UsageError(
                f"--word-frequencies {self.word_frequencies}: they divide the content words of "
                "--word-classes; add it"
            )
        if self.detruecase and self.detokenize is None:
            raise UsageError("--detruecase: it is for detokenised texts; add --detokenize LANGUAGE")

    @property
    def files(self) -> list[str | Path]:
        """Files that are read, but for those of scores."""
        more = (self.word_frequencies, self.weights, self.truecase)
        return [*self.word_lists.values(), *(path for path in more if path is not None)]

    def read_objectives(self, notices: Notices) -> list[str]:
        """Names of the objectives of the weights: of tuning, and of tune-mbr if it was used.

        Empty without weights; InputError for weights that do not name any.
        """
        if self.weights is None:
            return []
        made = read_weights(self.weights, notices).provenance
        mbr = made.get("mbr")
        named = (made.get("objective"), mbr.get("objective") if isinstance(mbr, dict) else None)
        found = [name for name in named if isinstance(name, str)]
        if not any(map(metrics_of, found)):
            raise InputError(
                "expected weights whose provenance names the objective of tuning, found none; give "
                "the .json file that tune-mert or another tuning command of rerank wrote",
                source=display(self.weights),
            )
        return found

    def read_classes(self, notices: Notices) -> list[WordClass]:
        """The classes of words that were asked for."""
        lists = {name: read_words(path, notices) for name, path in self.word_lists.items()}
        if not self.word_classes:
            return [ListedWords(name, words) for name, words in lists.items()]
        counts = None
        if self.word_frequencies is not None:
            counts = read_frequencies(self.word_frequencies, notices)
        return english_classes(lists, counts, notices)

    def score_files(self, systems: Sequence[str | Path]) -> dict[str, list[str]]:
        """File of values of each system, the baseline first, by name of the metric.

        UsageError for a file of no system, for a system without one, and for a name that is taken.
        """
        names = list(map(str, systems))
        found: dict[str, dict[str, str]] = {}
        for name, value in self.scores:
            option = f"--scores {name}={value}"
            if name in METRICS:
                raise UsageError(f"{option}: {name} is a metric of rerank; take another name")
            known = [one for one in names if value.startswith(f"{one}:") and value != f"{one}:"]
            if not known:
                raise UsageError(
                    f"{option}: expected HYP:FILE with HYP one of {', '.join(names)}, as they are "
                    "given"
                )
            system = max(known, key=len)
            if system in found.setdefault(name, {}):
                raise UsageError(f"{option}: two files for {system}; give one")
            found[name][system] = value.removeprefix(f"{system}:")
        for name, files in found.items():
            for system in names:
                if system not in files:
                    raise UsageError(
                        f"--scores {name}=…: expected values of all translations, found none of "
                        f"{system}; add --scores {name}={system}:FILE"
                    )
        return {name: [files[system] for system in names] for name, files in found.items()}


NO_ADDITIONS = Additions()


def evaluate(
    docs: FilePath | None,
    references: Sequence[str | Path],
    systems: Sequence[str | Path],
    *,
    notices: Notices | None = None,
    no_docs: str | None = None,
    kbest: str | Path | Lists | None = None,
    tokenize: str = "none",
    metrics: Sequence[str] = DEFAULT_METRICS,
    seed: int = 1,
    more: Additions = NO_ADDITIONS,
) -> Evaluation:
    """Scores of `systems`, the baseline first, against `references`, all of them files.

    Without a file of document ids `no_docs` says what a document is: `each` line, or all as `one`.
    Files of references and systems may hold several texts (`rerank.corpus.translations`). With a
    k-best list its oracle is reported. metrics: names of
    `rerank.registry.METRICS`, beside BLEU, which is always there; more: what is reported beside
    them.
    """
    notices = notices or PythonWarnings()
    lists = Lists(kbest) if isinstance(kbest, str | Path) else kbest
    more.check()
    if more.test_set is not None:
        if references:
            raise UsageError("expected --ref or --test-set, found both; give one")
        references = more.test_set.references()
        docs = more.test_set.docids() if docs is None and no_docs is None else docs
    score_files = more.score_files(systems)
    others_read = [
        *files_of([docs] if docs else [], "documents"),
        *([lists.kbest] if lists else []),
    ]
    others_read += [path for paths in score_files.values() for path in dict.fromkeys(paths)]
    others_read += more.files
    files = [*files_of(references, "reference"), *files_of(systems, "system"), *others_read]
    inputs = InputFiles(files)
    check_outputs([], files)
    metric = Bleu(tokenize)
    others = {name: registered(name) for name in dict.fromkeys(metrics) if name != "bleu"}
    documents, targets = read_with_documents(
        docs, no_docs, references, notices, drop=more.drop_unreferenced
    )
    model = display(references[0] if docs is None else docs)
    texts = [
        Text(display(path), read_translation(path, documents, notices, model=model))
        for path in systems
    ]
    if more.normalize == AS_NFC:
        targets = nfc_lines(targets)
        texts = [Text(text.name, list(map(nfc, text.lines))) for text in texts]
    if more.truecase is not None:
        targets = _in_columns(targets, partial(truecased, model=more.truecase))
        texts = [Text(text.name, truecased(text.lines, more.truecase)) for text in texts]
    flat = [line for sentence in targets for line in sentence]
    for text in texts:
        note_differences(text.lines, flat, notices, source=text.name)
        note_identity(text.lines, targets, notices, source=text.name)
        if tokenize == "none":
            note_detokenised(text.lines, notices, source=text.name)
    extremes = None
    if lists:
        read = KBestFile(Path(lists.kbest), lists).read(documents, notices)
        extremes = list_extremes((found for _, found in read), targets, metric)
    found = measured(
        documents,
        targets,
        texts,
        metric=metric,
        others=others,
        more=more,
        score_files=score_files,
        extremes=extremes,
        seed=seed,
        notices=notices,
    )
    inputs.check()
    return found


def measured(
    documents: Documents,
    targets: Sequence[Sequence[bytes]],
    texts: Sequence[Text],
    *,
    metric: Bleu,
    others: Mapping[str, TextMetric],
    more: Additions,
    score_files: Mapping[str, Sequence[str]],
    extremes: Extremes | None = None,
    seed: int = 1,
    notices: Notices,
) -> Evaluation:
    """Scores of texts, the baseline first, against [sentence][reference], with what `more` asks.

    score_files: those of `Additions.score_files`.
    """
    classes = more.read_classes(notices)
    objectives = more.read_objectives(notices)
    scores = _read_scores(score_files, texts, documents, notices)
    found = judge(
        documents,
        targets,
        texts,
        metric=metric,
        others=others,
        detokenised=_readable(targets, texts, more) if more.detokenize else None,
        extremes=extremes,
        seed=seed,
    )
    found = with_scores(found, documents, scores)
    found = with_word_classes(found, documents, targets, texts, classes=classes, split=metric.split)
    if not objectives:
        return found
    names = {"bleu": metric.name, **{key: other.name for key, other in others.items()}}
    names |= {name: name for name in scores}
    tuned = {name for objective in objectives for name in metrics_of(objective)}
    optimised = [key for key, name in names.items() if name in tuned]
    return with_roles(found, " and ".join(objectives), optimised)


def _read_scores(
    files: Mapping[str, Sequence[str]],
    texts: Sequence[Text],
    documents: Documents,
    notices: Notices,
) -> dict[str, list[LineScores]]:
    """Values of the lines of each system, by name of the metric; a file is read once."""
    found: dict[str, list[LineScores]] = {}
    for name, paths in files.items():
        named = dict(zip(paths, texts, strict=True))
        read = {
            path: _in_order(
                read_line_scores(path, name, documents.n_read, notices, text=text.name), documents
            )
            for path, text in named.items()
        }
        found[name] = [read[path] for path in paths]
    return found


def _in_order(scores: LineScores, documents: Documents) -> LineScores:
    """The values of the sentences of documents, from those of the lines of a file."""
    if documents.lines is None:
        return scores
    return LineScores(scores.values[list(documents.lines)], scores.signature)


def _readable(
    targets: Sequence[Sequence[bytes]], texts: Sequence[Text], more: Additions
) -> Detokenised:
    """References and systems, detokenised."""

    def change(lines: Sequence[bytes]) -> list[bytes]:
        ordered = detruecased(lines) if more.detruecase else lines
        return detokenised(ordered, str(more.detokenize))

    return Detokenised(
        _in_columns(targets, change), [Text(text.name, change(text.lines)) for text in texts]
    )


def _in_columns(
    targets: Sequence[Sequence[bytes]], change: Callable[[Sequence[bytes]], list[bytes]]
) -> list[list[bytes]]:
    """References of each sentence, changed one whole reference after the other."""
    return [list(row) for row in zip(*map(change, zip(*targets, strict=True)), strict=True)]
