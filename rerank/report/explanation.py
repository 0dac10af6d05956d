"""Why a decoding differs from the first candidates: of a run, of a document, of a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from typing import Any

from rerank.errors import UsageError
from rerank.files.signature import LENGTH
from rerank.formats.review_tables import FINAL, OF_ENGINE, PLACE, SOURCE, TEXT, Cell, Marked
from rerank.formats.run_records import Choice, first_named
from rerank.table import Column, Table, one_line

AGREEMENT = "agreement"
MOST_ROWS = 15  # of the tables of features and of words
MOST_DOCUMENTS = 50  # of tables of documents
_USUAL = 50  # the commonest words of a text: articles, prepositions, punctuation
_FEATURES = (
    *(Column("feature"), Column("added most", "d")),
    *(Column("of changed", ".1%"), Column("mean", "+.3f"), Column("needed", "d")),
)
_TERMS = Column("document"), Column("terms kept", "d"), Column("missed", "d")
_MISSED = Column("term missed"), Column("translations"), Column("times", "d")
_SCORERS = Column("scorer"), Column("model, digests and version")
_LEGEND = """\
changed: another text than that of the first candidate
added most: changed sentences in which the feature added most to the choice's
lead over the first; mean: of what it added to that lead, times its weight
needed: sentences, changed or not, in which another text would lead without it"""


@dataclass(slots=True)
class Explanation:
    """What a decoding changed, counted over the sentences of a trace.

    by_context: sentences whose text would be another without context; None where no score depends
    on other sentences; explained: changed sentences of which it is known what the features added;
    added, most: what each feature added in these, and in how many of them it added most; decided:
    sentences in which the choice leads because of a feature; words: changes of words; frequencies:
    of the words of all choices, in lower case; engines: of lists of systems, how many choices in
    each document are the output of each; first_engine: the one that was given first; alone: of each
    engine, those that are of no other; terms: of a glossary, how many of each document are kept and
    missed; missed: which; defects: candidates that are no translations, by kind; defective:
    sentences that have such candidates; shown: choices to print, each with the choice before it;
    stated: what traces state of each model and scorer.
    """

    documents: int = 0
    sentences: int = 0
    changed: int = 0
    explained: int = 0
    by_context: int | None = None
    added: dict[str, float] = field(default_factory=dict)
    most: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    words: Counter[tuple[str, str]] = field(default_factory=Counter)
    frequencies: Counter[str] = field(default_factory=Counter)
    engines: dict[str, Counter[str]] = field(default_factory=dict)
    first_engine: str | None = None
    terms: dict[str, Counter[bool]] = field(default_factory=dict)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    defects: Counter[str] = field(default_factory=Counter)
    defective: int = 0
    shown: list[tuple[Choice | None, Choice]] = field(default_factory=list)
    alone: Counter[str] = field(default_factory=Counter)
    stated: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, choices: Iterable[Choice], document: str | None = None, sentence: int | None = None
    ) -> Explanation:
        """Of all choices; or of a document, or of a sentence, whose choices are shown, too.

        Of a document those that are changed or miss a term. Memory: the distinct changes of words,
        and what is shown.
        """
        result = cls()
        for before, choice in with_previous(choices):
            if document in (None, choice.document):
                result.documents += before is None
                if sentence in (None, choice.sentence):
                    result._count(choice)
                    is_shown = choice.changed or choice.missed or sentence is not None
                    if document is not None and is_shown:
                        result.shown.append((before, choice))
        return result

    def _count(self, choice: Choice) -> None:
        self.sentences += 1
        self.stated |= choice.stated
        self.frequencies.update((choice.texts["chosen"] or "").lower().split())
        if choice.alone is not None:
            self.by_context = (self.by_context or 0) + choice.by_context
        self.first_engine = choice.first_engine
        if choice.systems:
            self.engines.setdefault(choice.document, Counter()).update(choice.systems)
            self.alone.update(choice.systems if len(choice.systems) == 1 else ())
        if choice.terms:
            self.terms.setdefault(choice.document, Counter()).update(k for *_, k in choice.terms)
            self.missed.update(choice.missed)
        self.defects.update(choice.defects)
        self.defective += bool(choice.defects)
        over = {name: value or 0.0 for name, value in (choice.over_runner_up or {}).items()}
        if (lead := sum(over.values())) > 0:
            self.decided.update(name for name, value in over.items() if value >= lead)
        if not choice.changed:
            return
        self.changed += 1
        runs = word_runs(choice.texts["first"] or "", choice.texts["chosen"] or "")
        self.words.update(run for run in runs if run[0] != run[1])
        added = {name: value or 0.0 for name, value in choice.over_first.items()}
        for name, value in added.items():
            self.added[name] = self.added.get(name, 0.0) + value
        if added:
            self.explained += 1
            if any(added.values()):  # else all candidates are equal, as to minimum Bayes risk
                self.most[max(added, key=added.__getitem__)] += 1

    def ranked(self) -> list[tuple[str, int, float]]:
        """Features, in how many sentences each added most, the most first, and its mean."""
        ranked = sorted(self.added, key=lambda name: (-self.most[name], -self.added[name]))
        n = max(1, self.explained)
        return [(name, self.most[name], self.added[name] / n) for name in ranked]

    def content_changes(self) -> list[tuple[tuple[str, str], int]]:
        """Changes of words and how often: first those of other words than the commonest."""
        usual = {word for word, _ in self.frequencies.most_common(_USUAL)}

        def rank(change: tuple[tuple[str, str], int]) -> tuple[bool, int]:
            words = " ".join(change[0]).lower().split()
            content = any(x not in usual and any(map(str.isalnum, x)) for x in words)
            return not content, -change[1]

        return sorted(self.words.items(), key=rank)

    def engine_shares(self) -> list[tuple[str, int]]:
        """Engines, and how many choices are the output of each, the most first."""
        return sum(self.engines.values(), Counter[str]()).most_common()

    def to_dict(self) -> dict[str, Any]:
        """Figures as JSON values."""
        features = {name: {"added_most": n, "mean": mean} for name, n, mean in self.ranked()}
        report: dict[str, Any] = {"schema": 1, "documents": self.documents}
        report |= {"sentences": self.sentences, "changed": self.changed}
        report |= {"by_context": self.by_context, "features": features}
        if self.engines:
            report["first_engine"] = self.first_engine
            report["engines"] = {d: dict(counts) for d, counts in self.engines.items()}
            report["alone"] = dict(self.alone)
        if self.terms:
            counts = self.terms.items()
            report["terms"] = {d: {"kept": n[True], "missed": n[False]} for d, n in counts}
            report["missed"] = [[*term, n] for term, n in self.missed.most_common()]
        if self.defects:
            report["defects"] = {"sentences": self.defective, "candidates": dict(self.defects)}
        report["words"] = [[old, new, n] for (old, new), n in self.words.most_common()]
        if self.stated:
            report["scorers"] = dict(self.stated)
        return report | {"shown": [asdict(choice) for _, choice in self.shown]}

    def context_text(self) -> str:
        """How many choices context decided."""
        single = self.by_context == 1
        return f"{self.by_context:,} {'choice comes' if single else 'choices come'} from context"

    def engines_table(self) -> Table:
        """Documents, 2 before 10, and how many of their choices are the output of each engine."""
        whole = dict(self.engine_shares())
        rows = [[d, *(counts[name] for name in whole)] for d, counts in self.engines.items()]
        columns = [Column("document"), *(Column(one_line(name), "d") for name in whole)]
        return _of_documents(columns, rows, [*whole.values()])

    def terms_table(self) -> Table:
        """Documents, 2 before 10, and how many terms of a glossary their choices keep and miss."""
        rows: list[list[Any]] = [[name, n[True], n[False]] for name, n in self.terms.items()]
        return _of_documents(_TERMS, rows, [sum(row[i] for row in rows) for i in (1, 2)])

    def missed_table(self) -> Table:
        """Terms of a glossary that choices miss, and in how many sentences."""
        missed = self.missed.most_common(MOST_ROWS)
        return Table(_MISSED, [[*map(one_line, term), count] for term, count in missed])

    def defects_text(self) -> str:
        """How many candidates were avoided, by kind, in how many sentences; empty without any."""
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in self.defects.most_common())
        return kinds and (
            f"candidates that are no translations, avoided where others are there: {kinds} "
            f"(sentences: {self.defective:,})"
        )

    def scorers_table(self) -> Table:
        """Models and scorers, and what is stated of each, with the first digits of digests."""
        rows = [[one_line(name), _facts(facts)] for name, facts in self.stated.items()]
        return Table(_SCORERS, rows)

    def to_text(self) -> str:
        """The figures as tables, and the sentences that are shown."""
        shown = [sentence_text(before, choice) for before, choice in self.shown]
        if len(self.shown) == 1 and self.sentences == 1:
            return f"{shown[0]}\n"
        share = f" ({self.changed / self.sentences:.1%})" if self.sentences else ""
        first = self.first_engine and first_named(self.first_engine)
        from_first = f" from {first}" if first else ""
        summary = (
            f"{self.documents:,} documents, {self.sentences:,} sentences, "
            f"{self.changed:,} changed{from_first}{share}"
        )
        if self.by_context is not None:
            summary += f"; {self.context_text()}"
        parts = [summary]
        if any(self.added.values()):
            rows = [
                (name, most, most / max(1, self.explained), mean, self.decided[name])
                for name, most, mean in self.ranked()[:MOST_ROWS]
                if most or mean
            ]
            parts += [Table(_FEATURES, rows).to_text(), _LEGEND]
        if self.defects:
            parts.append(self.defects_text())
        if self.engines:
            legend = "chosen segments of each engine; equal texts count for each of their engines"
            parts += _by_document(self.engines_table(), legend)
        if self.terms:
            legend = "terms of the glossary in the sources, and whether the chosen segment has them"
            parts += _by_document(self.terms_table(), legend)
        if self.missed:
            parts.append(self.missed_table().to_text())
        words = [
            (old or "(nothing)", new or "(nothing)", n)
            for (old, new), n in self.words.most_common(MOST_ROWS)
        ]
        if words:
            columns = Column(first or "first candidate"), Column("chosen"), Column("times", "d")
            parts.append(Table(columns, words).to_text())
        if self.stated:
            parts.append(self.scorers_table().to_text())
        return "\n\n".join([*parts, *shown]) + "\n"


def _facts(stated: Mapping[str, Any]) -> str:
    """`program kiwi, version 2.2, digest ab12cd34`, of what a trace states of a scorer."""
    shown = {name: str(value) for name, value in stated.items() if value not in ("", None)}
    shown |= {name: text[:LENGTH] for name, text in shown.items() if name.endswith("digest")}
    return one_line(", ".join(f"{name} {text}" for name, text in shown.items()))


def _of_documents(columns: Sequence[Column], rows: list[list[Any]], total: Sequence[int]) -> Table:
    """A table of documents, their numbers in order, and below several the total."""

    def natural(row: Sequence[Any]) -> list[str | tuple[int, str]]:
        return [
            (len(part.lstrip("0")), part.lstrip("0")) if i % 2 else part
            for i, part in enumerate(re.split("([0-9]+)", row[0]))
        ]

    whole = [["all documents", *total]] if len(rows) > 1 else []
    return Table(columns, [*sorted(rows, key=natural), *whole])


def _by_document(table: Table, legend: str) -> list[str]:
    """A table of documents, shortened if there are many, and what is said below it."""
    rest = len(table.rows) - MOST_DOCUMENTS - 1
    if rest > 0:
        table = Table(table.columns, [*table.rows[:MOST_DOCUMENTS], table.rows[-1]])
        legend += f"; {rest:,} more documents by --format json"
    return [table.to_text(), legend]


def with_previous(choices: Iterable[Choice]) -> Iterator[tuple[Choice | None, Choice]]:
    """Each choice after the one before it in its document, if there is one."""
    last = None
    for choice in choices:
        yield (last if last is not None and last.document == choice.document else None), choice
        last = choice


def sentence_text(before: Choice | None, choice: Choice) -> str:
    """A sentence, its choice beside others, and what each feature said, largest first."""
    texts = choice.texts
    first, chosen, other = texts["first"] or "", texts["chosen"] or "", texts["runner_up"]
    lines = [f"document {choice.document}, sentence {choice.sentence}"]
    lines += _row("source", choice.source)
    lines += _row("before", None if before is None else before.texts["chosen"])
    lines += _row("first", first + _engines(choice, first))
    lines += _row("chosen", marked_changes(first, chosen) if choice.changed else "the same")
    lines += _row("systems", ", ".join(choice.systems) if choice.systems else None)
    parts = [
        f"{name} {here:.2f} + {there:.2f}" for name, (here, there) in choice.agreements.items()
    ]
    if parts:
        lines += _row("agreement", f"{', '.join(parts)}   (in the sentence + of the engine in all)")
    missed = ", ".join(f"{term} ({translations})" for term, translations in choice.missed)
    lines += _row("missed", missed or None)
    if other is not None:
        lead = "" if choice.margin is None else f"   ({-choice.margin:+.3f})"
        lead += _engines(choice, other)
        lines += _row("runner-up", marked_changes(chosen, other) + lead)
    if choice.alone is not None:
        text = str(choice.alone["text"])
        alone = f"{marked_changes(chosen, text)}   ({choice.alone['lead'] or 0.0:+.3f} there)"
        alone += _engines(choice, text)
        lines += _row("no context", alone if choice.by_context else "the same choice")
    if choice.changed:
        lines += ["  why not the first:", *_contributions(choice.over_first)]
    if other is not None and choice.over_runner_up is not None:
        lines += ["  why not the runner-up:", *_contributions(choice.over_runner_up)]
    return "\n".join(lines)


def _engines(choice: Choice, text: str) -> str:
    names = choice.engines(text)
    return f"   [{', '.join(names)}]" if names else ""


def _row(name: str, text: str | None) -> list[str]:
    return [] if text is None else [f"  {name:<11} {text}"]


def _contributions(added: Mapping[str, float | None]) -> Iterator[str]:
    """Lines of features that make a difference, and of their sum."""
    known = {name: value for name, value in added.items() if value}
    width = max(map(len, ("total", *known)))
    yield f"    {'total':<{width}}  {sum(known.values()):+.3f}"
    for name in sorted(known, key=lambda name: -abs(known[name])):
        yield f"    {name:<{width}}  {known[name]:+.3f}"


def split_place(place: str, documents: Collection[str], source: str) -> tuple[str, int | None]:
    """Document and sentence of `DOC` or `DOC:SENT`; UsageError for another document."""
    if place in documents:
        return place, None
    document, colon, number = place.rpartition(":")
    if colon and document in documents and number.isdigit() and len(number) < 10:
        return document, int(number)
    few = ", ".join(sorted(documents)[:3])
    raise UsageError(
        f"{place}: expected DOC or DOC:SENT, a document of {source} and the number of a sentence "
        f"from 0; its documents are {few}{', …' if len(documents) > 3 else ''}"
    )


def marked_changes(before: str, after: str) -> str:
    """The second text with `[-words-]` that were left out and `{+words+}` added, as GNU wdiff."""
    shown = []
    for old, new in word_runs(before, after):
        if old == new:
            shown.append(new)
        else:
            shown += [f"[-{old}-]"] * bool(old) + [f"{{+{new}+}}"] * bool(new)
    return " ".join(shown)


def word_runs(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Runs of words of two texts: equal ones, and those that were replaced, and by what.

    The first is empty where words were added, the second where they were left out. Words are what
    spaces separate. About 15,000 sentences a second.
    """
    a, b = before.split(" "), after.split(" ")
    for _, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        yield " ".join(a[i:j]), " ".join(b[k:m])


# Rows for reviewers


@dataclass(frozen=True, slots=True)
class ReviewRows:
    """Rows of the sentences of a run, under the headings.

    engines: names of the systems; none of other lists, whose first candidate has a column instead.
    labels: what features are called, by their names, if not by these (`labels_of`). sources, terms:
    whether there are sources, and a glossary. by_utility: whether choices are those of expected
    utility, not of scores.
    """

    engines: Sequence[str]
    labels: Mapping[str, str]
    sources: bool
    terms: bool
    by_utility: bool

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [
            *PLACE,
            *([SOURCE] if self.sources else []),
            *("engine", TEXT, "decided by", "margin", "changed"),
            *([f"{OF_ENGINE}{name}" for name in self.engines] or ["first candidate"]),
            *(["terms kept", "terms missed"] if self.terms else []),
            *("score", AGREEMENT, "defects", "errors", FINAL),
        ]

    def row(
        self,
        place: tuple[int, str, int],
        source: str | None,
        choice: Choice | None,
        score: float | None = None,
        agreement: float | None = None,
    ) -> list[Cell]:
        """The row of a sentence; without a choice, of one that has no candidates.

        place: line, from 1, document, and segment in it; score: the total of the choice.
        """
        cells: list[Cell] = [*place, *([source] if self.sources else [])]
        if choice is None:
            return cells + [None] * (len(self.headings) - len(cells))
        first, text = choice.texts["first"] or "", choice.texts["chosen"] or ""
        runs = [(new, old != new) for old, new in word_runs(first, text) if new]
        outputs = choice.outputs or {}
        missed = "; ".join(f"{term} → {translations}" for term, translations in choice.missed)
        kept = "; ".join(f"{term} → {wanted}" for term, wanted, there in choice.terms if there)
        return [
            *cells,
            *(", ".join(choice.systems or ()), Marked(runs) if runs else text),
            *(self.decided_by(choice), choice.margin, "yes" if choice.changed else "no"),
            *([outputs.get(name) for name in self.engines] or [first]),
            *([kept, missed] if self.terms else []),
            *(score, agreement),
            ", ".join(f"{kind} {n}" for kind, n in choice.defects.items()),
            "; ".join(map(error_text, choice.errors)),
            text,
        ]

    def decided_by(self, choice: Choice) -> str:
        """What decided a choice, in words: the feature with the largest share of its margin."""
        if choice.over_runner_up is None:
            return "no other text"
        if self.by_utility:
            return AGREEMENT
        over = {name: value or 0.0 for name, value in choice.over_runner_up.items()}
        name = max(over, key=over.__getitem__, default="")
        if choice.by_context or (choice.margin or 0.0) < 0:
            return "context"
        if not over or over[name] <= 0:
            return "kept: no other is better" if not choice.changed else "nothing: equal scores"
        label = self.labels.get(name, name)
        if label == AGREEMENT and choice.agreements:
            here = {engine: value for engine, (value, _) in choice.agreements.items()}
            chosen = max(here[engine] for engine in choice.systems or here)
            return label if chosen == max(here.values()) else "agreement of the engine in all"
        return label


def labels_of(systems: Mapping[str, str], models: Sequence[str]) -> dict[str, str]:
    """What features are called in `decided by`, by their names.

    systems: name of each by the label of its indicator feature; models: names of language models.
    """
    from rerank.formats.weights import OF_AGREEMENT  # numpy

    return {
        **dict.fromkeys(OF_AGREEMENT, AGREEMENT),
        **{label: f"weight of {name}" for label, name in systems.items()},
        **{name: f"language model {name}" for name in models},
        "defects": "the next is no translation",
    }


def error_text(error: Mapping[str, str]) -> str:
    """`major accuracy: the words`, of an error that a judge has found."""
    return f"{error['severity']} {error['category']}: {error['span']}"
