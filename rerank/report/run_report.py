"""What a decoding did: whether it is better, why, where, what changed, and how it was made.

The sections answer these questions in their order. The page is rendered by `rerank.report.page`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.paths import display
from rerank.files.signature import __version__
from rerank.formats.run_records import FIRST, Choice, first_named, read_trace
from rerank.formats.weights import Weights
from rerank.metrics import TextMetric
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.significance import idle
from rerank.notices import Notices, Printer
from rerank.report.comparison import (
    EvaluatedTexts,
    SystemText,
    announce_programs,
    evaluate,
    leads,
    values_of,
)
from rerank.report.evaluation import Evaluation, MetricScore
from rerank.report.explanation import Explanation, with_previous
from rerank.report.measures import SYSTEMS, Page
from rerank.scorers.programs import ProgramMetric
from rerank.tuning.objective import metrics_of

BEST, WORST, RANDOM = 100, 100, 50  # documents whose changed sentences are shown
LEAST = 0.05  # gain of a sentence in chrF that is not 0.0 with one digit
SENTENCES = 5000  # that are shown at most: a page of some 5 MB
References = Sequence[Sequence[bytes]]  # of each sentence; empty without any


@dataclass(frozen=True, slots=True)
class ChangedSentence:
    """A sentence whose text is not the baseline's.

    number: in its document, from 0; before: the chosen text of the sentence before; rank: of the
    choice in its list, from 0; alone: the text without context, if it is another; added: what each
    feature adds to the lead over the baseline, empty where that is not known; engines: systems
    whose output it is; chrf: gain in sentence chrF2, None without references; others: texts of
    other outputs; errors: what judges have found in the chosen text.
    """

    number: int
    source: str | None
    before: str | None
    baseline: str
    chosen: str
    reference: str | None
    rank: int
    margin: float | None
    alone: str | None
    added: Mapping[str, float | None]
    engines: Sequence[str]
    chrf: float | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    errors: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ReportedDocument:
    """A document: BLEU of the baseline and of the decoding, counts, and what the search says.

    BLEU is None without references. by_context: sentences whose text would be another without
    context, None where no score depends on other sentences; exact, gap, score_gain: of a summary;
    shown: its first changed sentences, None for a document that is only counted; better, worse:
    changed sentences that are so by chrF, None without references.
    """

    id: str
    sentences: int
    changed: int
    by_context: int | None
    baseline_bleu: float | None
    bleu: float | None
    exact: bool | None
    gap: float | None
    score_gain: float | None
    shown: Sequence[ChangedSentence] | None
    better: int | None = None
    worse: int | None = None

    @property
    def gain(self) -> float | None:
        """Difference in BLEU."""
        if self.bleu is None or self.baseline_bleu is None:
            return None
        return self.bleu - self.baseline_bleu


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A decoding beside its baseline.

    evaluation: of the baseline, the decoding and other outputs, None without references; baseline:
    what it is; rivals: BLEU of the texts of which it is the best; search: figures of the summary;
    weights: by feature; remarks: about them; tuning: their provenance; inputs: (what it is, file
    name, first digits of SHA-256); commands: of the tuning, the decoding and the page;
    without_context: BLEU of what would be chosen without context, None where that is not known;
    leads: BLEU of the decoding against each other output.
    """

    title: str
    version: str
    evaluation: Evaluation | None = None
    explanation: Explanation
    documents: Sequence[ReportedDocument] = ()
    search: Mapping[str, Any] | None
    weights: Mapping[str, float]
    remarks: Sequence[str]
    tuning: Mapping[str, Any]
    inputs: Sequence[tuple[str, str, str]] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    baseline: str = FIRST
    rivals: Mapping[str, float] = field(default_factory=dict)
    without_context: float | None = None
    leads: Mapping[str, MetricScore] = field(default_factory=dict)

    @property
    def against(self) -> str:
        """The baseline, and of how many texts it is the best."""
        best = f", the best of {len(self.rivals)} by BLEU" if len(self.rivals) > 1 else ""
        return f"{self.baseline}{best}"

    @property
    def verdicts(self) -> list[str]:
        """The comparison with the baseline in words, a line each; empty without references."""
        if self.evaluation is None:
            return []
        base, *others = self.evaluation.systems
        systems = (replace(base, name=self.against), *others)
        return replace(self.evaluation, systems=systems).verdicts

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the page as JSON values, unrounded, and the texts that it shows."""
        return {
            "schema": 1,
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "evaluation": self.evaluation and self.evaluation.to_dict(),
            "explanation": self.explanation.to_dict(),
            "documents": [
                {**asdict(document), "gain": document.gain} for document in self.documents
            ],
            "leads": {name: asdict(lead) for name, lead in self.leads.items()},
        }


def report_of(
    decoding: Decoding,
    weights: Weights,
    notices: Notices,
    *,
    metrics: tuple[Bleu, Mapping[str, TextMetric | ProgramMetric]],
    page: Page,
    score_files: Mapping[str, Sequence[str]],
    summary: Mapping[str, Any] | None = None,
    announce: Printer,
) -> RunReport:
    """The report of a decoding beside its baseline, without the commands that made it.

    metrics, score_files: as of `rerank.report.comparison.evaluate`; summary: of the search.
    """
    documents, tuning = decoding.documents, weights.provenance
    result = RunReport(
        title=page.title or f"Reranking of {documents.n_sentences:,} sentences",
        version=__version__,
        explanation=Explanation.of(decoding.choices(Notices())),
        search=summary and {key: summary[key] for key in summary if key != "documents"},
        weights=weights.by_value | dict(weights.sparse),
        remarks=weights.remarks(),
        tuning=tuning,
        baseline=decoding.baseline,
        rivals=decoding.rivals,
    )
    losses = dict.fromkeys(documents.ids, 0.0)
    if decoding.references:
        evaluation = evaluate(
            documents,
            decoding.texts(),
            notices,
            metrics=metrics,
            score_files=score_files,
            tuning=tuning if metrics_of(str(tuning.get("objective", ""))) else {},
            seed=page.seed,
        )
        announce_programs(metrics[1], announce)
        losses = {
            document.id: document.bleu[0] - document.bleu[1] for document in evaluation.documents
        }
        models, by_value = tuning.get("models"), weights.by_value
        figures = [
            (name, by_value.get(name, 0.0), result.explanation.decided[name])
            for name in (models if isinstance(models, dict) else {})
        ]
        evaluation = replace(evaluation, idle=idle(figures, result.explanation.sentences))
        result = _with_bleu(replace(result, evaluation=evaluation), decoding, metrics[0], page.seed)
    shown = shown_documents(losses, page.show_documents, page.seed)
    reported = reported_documents(decoding, result.evaluation, summary, shown)
    return replace(result, documents=reported)


def _with_bleu(report: RunReport, decoding: Decoding, bleu: Bleu, seed: int) -> RunReport:
    """The report with BLEU without context, and against each other output."""
    documents, texts, without_context = decoding.documents, decoding.texts(), None
    if report.explanation.by_context is not None:
        alone = replace(texts, systems=[SystemText("alone", decoding.alone)])
        (without_context,) = values_of(alone, bleu, documents)
    others = dict(zip(decoding.others, leads(documents, texts, bleu, seed), strict=True))
    return replace(report, without_context=without_context, leads=others)


@dataclass(frozen=True, slots=True)
class RecordedChoices:
    """The choices of a decoding, as often as they are read, and what messages call them."""

    name: str
    read: Callable[[Notices], Iterable[Choice]]

    @classmethod
    def of_file(cls, path: str) -> RecordedChoices:
        """The trace in a file."""
        return cls(display(path), partial(read_trace, path, display(path)))


class Decoding:
    """The choices of a trace beside its baseline: another trace, a text, or first candidates.

    before, after: lines of the baseline and of the decoding; alone: what would be chosen without
    context; outputs: lines of each system of whose outputs the lists are made; candidates: texts
    of which the best is the baseline, and rivals, their BLEU; others: lines of other outputs, which
    stand beside it; references, sources: of the sentences, where there are any.
    """

    def __init__(
        self,
        trace: RecordedChoices,
        baseline: RecordedChoices | None,
        documents: Documents,
        notices: Notices,
    ) -> None:
        self._trace, self._other, self._notices = trace, baseline, notices
        self._text: Sequence[bytes] | None = None  # the baseline, if it is a text
        self.baseline = FIRST if baseline is None else baseline.name
        self.outputs: dict[str, list[bytes]] = {}
        self.candidates: Mapping[str, Sequence[bytes]] = {}
        self.rivals: Mapping[str, float] = {}
        self.others: Mapping[str, Sequence[bytes]] = {}
        self.references: References = []
        self.sources: Sequence[bytes] | None = None
        self.documents = documents
        self.places = {name: documents.span(d) for d, name in enumerate(documents.ids)}
        self.before, self.after, self.alone = ([b""] * documents.n_sentences for _ in range(3))
        self._read()

    def _read(self) -> None:
        """Take the lines of all choices."""
        seen: set[int] = set()
        for choice in self.choices(self._notices):
            start, stop = self.places.get(choice.document, (0, 0))
            line = start + choice.sentence
            if not start <= line < stop or line in seen:
                raise InputError(
                    f"expected sentences of the documents, each once, found sentence "
                    f"{choice.sentence} of {choice.document!r}; give the document ids of the "
                    "decoding",
                    source=self._trace.name,
                )
            seen.add(line)
            if self._other is None:
                self.baseline = first_named(choice.first_engine)
            self.before[line] = (choice.texts["first"] or "").encode()
            self.after[line] = self.alone[line] = (choice.texts["chosen"] or "").encode()
            if choice.alone is not None:
                self.alone[line] = str(choice.alone["text"]).encode()
            for name, text in (choice.outputs or {}).items():
                empty = [b""] * self.documents.n_sentences
                self.outputs.setdefault(name, empty)[line] = text.encode()
        if lacking := self.documents.n_sentences - len(seen):
            self._notices.add("sentence-without-trace", source=self._trace.name, count=lacking)

    def find_baseline(self, bleu: Bleu, *, scored: bool) -> None:
        """Take the best of several texts as the baseline, of lists of systems by default theirs.

        scored: whether there are values of another metric, of one baseline. UsageError for texts of
        which none is known to be the best.
        """
        rivals = self.candidates
        if not rivals and self._other is None and self.references and len(self.outputs) > 1:
            rivals = self.outputs
        if not rivals:
            return
        if len(rivals) > 1 and not self.references:
            raise UsageError(
                "--baseline: the best of several texts is found by references; give --ref FILE, too"
            )
        if self.references:
            texts = [SystemText(name, lines) for name, lines in rivals.items()]
            scores = values_of(EvaluatedTexts(self.references, texts), bleu, self.documents)
            self.rivals = dict(zip(rivals, scores, strict=True))
        self.baseline = max(rivals, key=lambda name: self.rivals.get(name, 0.0))
        if len(rivals) > 1 and scored:
            raise UsageError(
                "--scores: values of one baseline are needed, and the best of several is "
                f"{self.baseline}; give its text, and no other, as --baseline FILE"
            )
        self._text = rivals[self.baseline]
        self.before = list(self._text)

    def texts(self) -> EvaluatedTexts:
        """The baseline, the decoding and the other outputs, to be evaluated."""
        lines = (self.before, self.after, *self.others.values())
        systems = map(SystemText, (*SYSTEMS, *self.others), lines)
        return EvaluatedTexts(self.references, [*systems], self.sources)

    def choices(self, notices: Notices) -> Iterator[Choice]:
        """The choices, those of a baseline in place of the first candidates."""
        for choice in self._choices(notices):
            if self._text is not None and choice.document in self.places:
                line = self.places[choice.document][0] + choice.sentence
                choice = _beside(choice, self._text[line].decode())
            yield choice

    def _choices(self, notices: Notices) -> Iterator[Choice]:
        ours = self._trace.read(notices)
        if self._other is None:
            yield from ours
            return
        name = self._other.name
        for choice, other in zip_longest(ours, self._other.read(notices)):
            if choice is None:
                raise InputError(
                    f"expected as many sentences as {self._trace.name} has, found more; give "
                    "traces of the same lists",
                    source=name,
                )
            place = choice.document, choice.sentence
            if other is None or (other.document, other.sentence) != place:
                raise InputError(
                    f"expected the sentences of {self._trace.name} in their order, but not "
                    f"sentence {place[1]} of {place[0]!r}; give traces of the same lists",
                    source=name,
                )
            yield replace(_beside(choice, other.texts["chosen"]), first=other.chosen)


def _beside(choice: Choice, text: str | None) -> Choice:
    """The choice beside a text of a baseline in place of the first candidate.

    What features add to it is known where the text is one of those that the trace compares. The
    scores of another trace do not tell: its weights, its models, or its contexts may be others.
    """
    known = {choice.texts["first"]: choice.over_first}
    if choice.over_runner_up is not None:
        known = {choice.texts["runner_up"]: choice.over_runner_up, **known}
    texts = {**choice.texts, "first": text}
    return replace(choice, texts=texts, over_first=known.get(text, {}))


def shown_documents(losses: Mapping[str, float], shown: int | None, seed: int) -> set[str]:
    """Documents to show: those with the largest gains and losses, and some by chance."""
    names = sorted(losses, key=losses.__getitem__)
    if shown is None or shown >= len(names):
        return set(names)
    best, worst = (shown * part // (BEST + WORST + RANDOM) for part in (BEST, WORST))
    kept = [*names[:best], *(names[-worst:] if worst else [])]
    rest = names[best : len(names) - worst]
    drawn = np.random.default_rng(seed).choice(len(rest), shown - len(kept), replace=False)
    return {*kept, *(rest[i] for i in drawn.tolist())}


def reported_documents(
    decoding: Decoding,
    evaluation: Evaluation | None,
    summary: Mapping[str, Any] | None,
    chosen: set[str],
) -> list[ReportedDocument]:
    """All documents, with the first changed sentences of those that are shown."""
    changes: dict[str, list[ChangedSentence]] = {name: [] for name in chosen}
    most = max(1, SENTENCES // max(1, len(chosen)))
    changed, by_context, contexts = Counter[str](), Counter[str](), False
    for before, choice in with_previous(decoding.choices(Notices())):
        changed[choice.document] += choice.changed
        by_context[choice.document] += choice.by_context
        contexts = choice.alone is not None
        if choice.changed and len(changes.get(choice.document, [None] * most)) < most:
            changes[choice.document].append(_changed(decoding, before, choice))
    searches = {} if summary is None else {x["id"]: x for x in summary["documents"]}
    documents = () if evaluation is None else evaluation.documents
    bleu = {scores.id: scores.bleu[:2] for scores in documents}
    reported = []
    for name, (start, stop) in decoding.places.items():
        search, shown = searches.get(name, {}), changes.get(name)
        gains = sentence_gains(decoding, start, stop) if decoding.references else None
        if gains is not None and shown:
            shown = [replace(change, chrf=gains.get(change.number, 0.0)) for change in shown]
        before_bleu, after_bleu = bleu.get(name, (None, None))
        score, first = search.get("score"), search.get("baseline_score")
        reported.append(
            ReportedDocument(
                name,
                stop - start,
                changed[name],
                by_context[name] if contexts else None,
                before_bleu,
                after_bleu,
                search.get("exact"),
                search.get("gap"),
                None if score is None or first is None else score - first,
                shown,
                None if gains is None else sum(gain >= LEAST for gain in gains.values()),
                None if gains is None else sum(gain <= -LEAST for gain in gains.values()),
            )
        )
    return reported


def _changed(decoding: Decoding, before: Choice | None, choice: Choice) -> ChangedSentence:
    """A changed sentence; before: the choice before it in its document."""
    line = decoding.places[choice.document][0] + choice.sentence
    sources, targets = decoding.sources, decoding.references
    return ChangedSentence(
        choice.sentence,
        choice.source if sources is None else sources[line].decode(),
        None if before is None else before.texts["chosen"],
        choice.texts["first"] or "",
        choice.texts["chosen"] or "",
        b" | ".join(dict.fromkeys(targets[line])).decode() if targets else None,
        choice.chosen,
        choice.margin,
        choice.alone["text"] if choice.alone and choice.by_context else None,
        choice.over_first,
        choice.systems or (),
        others={name: text[line].decode() for name, text in decoding.others.items()},
        errors=choice.errors,
    )


def sentence_gains(decoding: Decoding, start: int, stop: int) -> dict[int, float]:
    """Gains in chrF of the changed sentences of a document, by their numbers in it."""
    chrf, before, after = Chrf(), decoding.before, decoding.after
    lines = [t for t in range(start, stop) if before[t] != after[t]]
    if not lines:
        return {}
    pairs = ((before[t], after[t]) for t in lines)
    values = chrf.scores(chrf.statistics(pairs, [decoding.references[t] for t in lines]))
    gains = (values[1::2] - values[::2]).tolist()
    return {t - start: gain for t, gain in zip(lines, gains, strict=True)}
