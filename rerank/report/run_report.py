"""What a decoding did: whether it is better, why, where, what changed, and how it was made.

The sections answer these questions in their order. The page is rendered by `rerank.report.page`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import starmap, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.files.paths import display
from rerank.formats.run_records import Choice, read_trace
from rerank.formats.weights import FIRST
from rerank.metrics.chrf import Chrf
from rerank.notices import Notices
from rerank.report.comparison import EvaluatedTexts, SystemText
from rerank.report.evaluation import Evaluation, MetricScore
from rerank.report.explanation import Explanation, with_previous

BEST, WORST, RANDOM = 100, 100, 50  # documents whose changed sentences are shown
LEAST = 0.05  # gain of a sentence in chrF that is not 0.0 with one digit
SENTENCES = 5000  # that are shown at most: a page of some 5 MB


@dataclass(frozen=True, slots=True)
class ChangedSentence:
    """A sentence whose text is not the baseline's.

    number: in its document, from 0; before: the text that was chosen for the sentence before;
    rank: of the choice in its list, from 0; alone: the text without context, if it is another one;
    added: what each feature adds to the lead over the baseline, times its weight, empty where that
    is not known; engines: of which systems the choice is the output; chrf: gain in sentence chrF2,
    None without references; others: texts of other outputs.
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


@dataclass(frozen=True, slots=True)
class ReportedDocument:
    """A document: BLEU of the baseline and of the decoding, counts, and what the search says.

    BLEU is None without references. by_context: sentences whose text would be another without
    context, None where no score depends on other sentences; exact, gap, score_gain: of a summary,
    gap and gain in model score; shown: its changed sentences, or the first of them, None for a
    document that is only counted; domain: None where no file tells it; better, worse: changed
    sentences that are so by chrF, None without references.
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
    domain: str | None = None
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
    what it is;
    rivals: BLEU of the texts of which it is the best; search: figures of the summary; weights: by
    feature; remarks: about them, for people; tuning: their provenance; inputs: (what it is, file
    name, first digits of SHA-256); commands: of the tuning, the decoding and the page.
    domains: BLEU of both systems in the documents of each domain, if there are several;
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
    inputs: Sequence[tuple[str, str, str]]
    commands: Mapping[str, str]
    baseline: str = FIRST
    rivals: Mapping[str, float] = field(default_factory=dict)
    domains: Mapping[str, Sequence[MetricScore]] = field(default_factory=dict)
    without_context: float | None = None
    leads: Mapping[str, MetricScore] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the page as JSON values, unrounded, and the texts that it shows."""
        return {
            "schema": 1,
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "evaluation": self.evaluation and self.evaluation.to_dict(),
            "explanation": self.explanation.to_dict(),
            "documents": [{**asdict(one), "gain": one.gain} for one in self.documents],
            "domains": {name: [asdict(one) for one in own] for name, own in self.domains.items()},
            "leads": {name: asdict(one) for name, one in self.leads.items()},
        }


class Decoding:
    """The choices of a trace; before, after: lines of the baseline and of the decoding.

    alone: what would be chosen without context; outputs: lines of each system of whose outputs the
    lists are made; others: lines of other outputs, which stand beside it.
    """

    def __init__(
        self, trace: str | Path, baseline: str | Path | None, documents: Documents, notices: Notices
    ) -> None:
        self._trace, self._baseline, self._notices = trace, baseline, notices
        self._given: Sequence[bytes] | None = None
        self.outputs: dict[str, list[bytes]] = {}
        self.others: Mapping[str, Sequence[bytes]] = {}
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
                    source=display(self._trace),
                )
            seen.add(line)
            self.before[line] = (choice.texts["first"] or "").encode()
            self.after[line] = self.alone[line] = (choice.texts["chosen"] or "").encode()
            if choice.alone is not None:
                self.alone[line] = str(choice.alone["text"]).encode()
            for name, text in (choice.outputs or {}).items():
                empty = [b""] * self.documents.n_sentences
                self.outputs.setdefault(name, empty)[line] = text.encode()
        if lacking := self.documents.n_sentences - len(seen):
            self._notices.add("sentence-without-trace", source=display(self._trace), count=lacking)

    def against(self, lines: Sequence[bytes]) -> None:
        """Take the lines of a text, one for each sentence, as the baseline."""
        self._given = lines
        self.before = list(lines)

    def texts(
        self,
        names: Iterable[str],
        references: Sequence[Sequence[bytes]],
        sources: Sequence[bytes] | None,
    ) -> EvaluatedTexts:
        """The baseline, the decoding and the other outputs, by these names, to be evaluated."""
        lines = (self.before, self.after, *self.others.values())
        systems = starmap(SystemText, zip(names, lines, strict=True))
        return EvaluatedTexts(references, [*systems], sources)

    def _beside_text(self, choice: Choice) -> Choice:
        """The choice beside the baseline that is a text."""
        if self._given is None or choice.document not in self.places:
            return choice
        line = self.places[choice.document][0] + choice.sentence
        return _beside(choice, self._given[line].decode())

    def choices(self, notices: Notices) -> Iterator[Choice]:
        """The choices, those of a baseline in place of the first candidates."""
        yield from map(self._beside_text, self._choices(notices))

    def _choices(self, notices: Notices) -> Iterator[Choice]:
        ours = read_trace(self._trace, display(self._trace), notices)
        if self._baseline is None:
            yield from ours
            return
        name = display(self._baseline)
        for own, other in zip_longest(ours, read_trace(self._baseline, name, notices)):
            if own is None:
                raise InputError(
                    f"expected as many sentences as {display(self._trace)} has, found more; give "
                    "traces of the same lists",
                    source=name,
                )
            if other is None or (other.document, other.sentence) != (own.document, own.sentence):
                raise InputError(
                    f"expected the sentences of {display(self._trace)} in their order, but not "
                    f"sentence {own.sentence} of {own.document!r}; give traces of the same lists",
                    source=name,
                )
            yield replace(_beside(own, other.texts["chosen"]), first=other.chosen)


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
    targets: Sequence[Sequence[bytes]],
    sources: Sequence[bytes] | None,
    chosen: set[str],
) -> list[ReportedDocument]:
    """All documents, with the first changed sentences of those that are shown.

    targets: references of each sentence, empty without any.
    """
    changes: dict[str, list[ChangedSentence]] = {name: [] for name in chosen}
    most = max(1, SENTENCES // max(1, len(chosen)))
    changed, by_context, contexts = Counter[str](), Counter[str](), False
    for before, choice in with_previous(decoding.choices(Notices())):
        changed[choice.document] += choice.changed
        by_context[choice.document] += choice.by_context
        contexts = choice.alone is not None
        if choice.changed and len(changes.get(choice.document, [None] * most)) < most:
            line = decoding.places[choice.document][0] + choice.sentence
            changes[choice.document].append(
                ChangedSentence(
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
                    others={name: own[line].decode() for name, own in decoding.others.items()},
                )
            )
    searches = {} if summary is None else {one["id"]: one for one in summary["documents"]}
    documents = () if evaluation is None else evaluation.documents
    bleu = {one.id: (one.bleu[0], one.bleu[1]) for one in documents}
    found = []
    for name, (start, stop) in decoding.places.items():
        search, shown = searches.get(name, {}), changes.get(name)
        gains = sentence_gains(decoding, start, stop, targets) if targets else None
        if gains is not None and shown:
            shown = [replace(one, chrf=gains.get(one.number, 0.0)) for one in shown]
        before_bleu, after_bleu = bleu.get(name, (None, None))
        score, first = search.get("score"), search.get("baseline_score")
        found.append(
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
                decoding.documents.domains.get(name),
                None if gains is None else sum(gain >= LEAST for gain in gains.values()),
                None if gains is None else sum(gain <= -LEAST for gain in gains.values()),
            )
        )
    return found


def sentence_gains(
    decoding: Decoding, start: int, stop: int, targets: Sequence[Sequence[bytes]]
) -> dict[int, float]:
    """Gains in chrF of the changed sentences of a document, by their numbers in it."""
    chrf, before, after = Chrf(), decoding.before, decoding.after
    lines = [t for t in range(start, stop) if before[t] != after[t]]
    if not lines:
        return {}
    pairs = ((before[t], after[t]) for t in lines)
    values = chrf.scores(chrf.statistics(pairs, [targets[t] for t in lines]))
    gains = (values[1::2] - values[::2]).tolist()
    return {t - start: gain for t, gain in zip(lines, gains, strict=True)}
