"""What `score`, `decode` and `tune-mert` share: lists, documents, scorers, and their cost."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decoders.problem import UnsuitedDecoder
from decoders.search import decode as search
from rerank.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.features import TOTAL, Space, prepare
from rerank.kbest import KBest, read_documents
from rerank.lines import display, read_lines, spool
from rerank.notices import Notices
from rerank.pipeline.language_models import open_model
from rerank.progress import progress

if TYPE_CHECKING:
    from rerank.scorers.language_model import LanguageModel

SAMPLE = 10  # sentences that the estimate is measured on
SPARSEST = 1000  # lines without candidates for one with, beyond which ids are not believed
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Lists:
    """K-best lists and the documents they belong to, as the options name them.

    lms: (NAME, folder) of each language model; top: candidates kept of each sentence.
    """

    kbest: str | Path
    docs: str | Path | None = None
    no_docs: str | None = None
    lms: tuple[tuple[str, Path], ...] = ()
    top: int | None = None
    first_id: int = 0
    clip_inf: float | None = None
    max_k: int = 1_000_000
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class Survey:
    """One quick pass over a list: candidates, words, the highest sentence id."""

    lines: int
    words: int
    last_id: int


class Opened:
    """Lists ready to be read as often as needed: documents known, models loaded, input spooled.

    A context manager; standard input is copied to a temporary file for as long as it is open.
    """

    def __init__(
        self, lists: Lists, notices: Notices, *, documents: Documents | None = None
    ) -> None:
        self.lists, self.notices = lists, notices
        self.scorers = open_scorers(lists)
        self._stack = ExitStack()
        self._known = documents
        self._survey: Survey | None = None

    def __enter__(self) -> Opened:
        with self._stack:
            self.path = self._stack.enter_context(spool(self.lists.kbest))
            self.documents = self._known or self._documents()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *fault: object) -> None:
        self._stack.close()

    @property
    def survey(self) -> Survey:
        """Figures of the list, counted at the first use."""
        if self._survey is None:
            self._survey = _survey(self.path, display(self.lists.kbest), self.lists.top)
        return self._survey

    def _documents(self) -> Documents:
        lists = self.lists
        if lists.docs is not None and lists.no_docs is None:
            return Documents.from_file(lists.docs, self.notices)
        n_lines = 0 if lists.no_docs is None else self._lines_by_id()
        return Documents.chosen(lists.docs, lists.no_docs, n_lines, self.notices)

    def _lines_by_id(self) -> int:
        """How many source lines there are, from the highest id of the list."""
        survey = self.survey
        n_lines = max(0, survey.last_id - self.lists.first_id + 1)
        if n_lines > SPARSEST * (survey.lines + 1):
            raise InputError(
                f"expected ids without large gaps, found id {survey.last_id} in a list of "
                f"{survey.lines} hypotheses; give --docs FILE, a line per source line",
                source=display(self.lists.kbest),
            )
        return n_lines

    def __iter__(self) -> Iterator[tuple[str, KBest]]:
        """(document id, its lists) one document at a time; progress on stderr."""
        named = zip(self.documents.ids, self._documents_read(self.notices), strict=True)
        total = len(self.documents)
        yield from progress(named, label="documents", unit="documents", total=total)

    def _documents_read(self, notices: Notices) -> Iterator[KBest]:
        lists = self.lists
        found = read_documents(
            self.path,
            self.documents,
            notices,
            top=lists.top,
            first_id=lists.first_id,
            clip_inf=lists.clip_inf,
            max_k=lists.max_k,
        )
        return (replace(kbest, source=display(lists.kbest)) for kbest in found)

    def space(self, kbest: KBest, *, total: bool) -> Space:
        """Feature columns of these lists; UsageError if a model's name is a label of the list."""
        labels = {label.name for label in kbest.labels}
        for scorer in self.scorers:
            for name in (scorer.name, *scorer.columns):
                if name in labels:
                    raise UsageError(
                        f"--lm {scorer.name}=…: {kbest.source} already has a feature {name!r}; "
                        "choose another NAME"
                    )
        return Space.of(kbest.labels, self.scorers, total=total and TOTAL not in labels)

    def estimate(self, *, method: str, beam: int, announce: Announce) -> float:
        """Seconds of the work ahead, measured on the first sentences; said through `announce`."""
        survey = self.survey
        words, taken = 0, 0.0
        for name, kbest in zip(self.documents.ids, self._documents_read(Notices()), strict=False):
            words = self._sample(kbest, name, method, beam)  # once to warm up
            if words:
                began = time.monotonic()
                self._sample(kbest, name, method, beam)
                taken = time.monotonic() - began
                break
        seconds = taken * survey.words / max(1, words)
        announce(
            f"{len(self.documents):,} documents, {self.documents.n_lines:,} sentences, "
            f"{survey.lines:,} candidates, {survey.words:,} words; about {_duration(seconds)}"
            + (f" with {', '.join(s.name for s in self.scorers)}" if self.scorers else "")
        )
        return seconds

    def _sample(self, kbest: KBest, name: str, method: str, beam: int) -> int:
        """Words of a document's first sentences, once they are decoded."""
        head = _head(kbest)
        counted = [(scorer.oov, scorer.words) for scorer in self.scorers]
        document = prepare(head, name, self.scorers, self.space(head, total=False), {})
        weights = np.zeros(document.space.width)
        weights[list(document.space.contextual)] = 1.0
        try:
            search(document.problem(weights), method, width=beam)
        except UnsuitedDecoder as fault:
            raise UsageError(f"--search {method}: {fault}") from None
        for scorer, counts in zip(self.scorers, counted, strict=True):
            scorer.oov, scorer.words = counts  # the work itself counts these words
        return sum(len(head.tokens(row)) for row in range(head.n))

    def warn_of_unknown_words(self) -> None:
        """A notice for each model to which far more words are unknown than in its training."""
        for scorer in self.scorers:
            known = scorer.saved.about.get("oov_rate", 0.0)
            trained = float(known) if isinstance(known, float | int) else 0.0
            rate = scorer.oov / max(1, scorer.words)
            if rate > 2 * trained + 0.01:
                self.notices.add(
                    f"word unknown to {scorer.name} ({rate:.1%} of the list's words, {trained:.1%} "
                    "of its training text's): check case, escaping (&apos;), tokenisation and "
                    "subwords; the lists must look like the training text",
                    source=display(self.lists.kbest),
                    count=scorer.oov,
                )


def open_scorers(lists: Lists) -> list[LanguageModel]:
    """The scorers of `--lm NAME=DIR`, in order."""
    names: set[str] = set()
    scorers = []
    for name, folder in lists.lms:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--lm {name}={folder}: expected a NAME of letters and digits that begins with a "
                "letter, because it becomes a label of the list"
            )
        if {name, f"{name}oov"} & names:
            raise UsageError(f"--lm {name}={folder}: the name is taken by another --lm")
        if name == TOTAL:
            raise UsageError(f"--lm {name}={folder}: {TOTAL!r} is the list's total; choose another")
        names |= {name, f"{name}oov"}
        scorers.append(_language_model(name, folder, lists.device))
    return scorers


def _language_model(name: str, folder: Path, device: str) -> LanguageModel:
    from rerank.scorers.language_model import LanguageModel

    return LanguageModel(name, open_model(folder, device))


def _survey(path: Path, source: str, top: int | None) -> Survey:
    """Counts of the first `top` candidates of each list, without parsing features."""
    lines = words = last = 0
    seen: Counter[bytes] = Counter()
    for number, line in enumerate(read_lines(path, Notices()), 1):
        fields = line.split(b"|||", 2)
        if len(fields) < 3:
            if line.strip():
                raise InputError(
                    "expected 'id ||| text ||| features ||| total', found no such columns",
                    source=source,
                    line=number,
                )
            continue
        name = fields[0].strip()
        if name.isdigit() and len(name) < 19:  # longer ones are refused when the list is read
            last = max(last, int(name))
        seen[name] += 1
        if top is None or seen[name] <= top:
            lines += 1
            words += len(fields[1].split())
    return Survey(lines, words, last)


def _duration(seconds: float) -> str:
    """A length of time in the unit that fits it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _head(kbest: KBest) -> KBest:
    """The first sentences of a document's lists."""
    n = int(kbest.offsets[min(SAMPLE, len(kbest))])
    return replace(
        kbest,
        offsets=kbest.offsets[: SAMPLE + 1],
        spans=kbest.spans[:n],
        text_spans=kbest.text_spans[:n],
        line_numbers=kbest.line_numbers[:n],
        dense=kbest.dense[:n],
        totals=None if kbest.totals is None else kbest.totals[:n],
        sparse=kbest.sparse.take(np.arange(n)),
    )
