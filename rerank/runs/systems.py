"""K-best lists of the outputs of several systems, and of several lists: `--systems`, `--kbest`.

Equal outputs of a sentence are one candidate. Its features: `sys` and the name of each system, 1
for those whose output it is; `votes`, how many these are; its mean sentence BLEU and mean chrF2
against the outputs of the other systems (0..100), `consensusbleu` and `consensuschrf`, which is
minimum Bayes risk under a uniform distribution (Kumar & Byrne 2004,
https://aclanthology.org/N04-1022) without the candidate's own vote; and `consensusdocbleu`, the
same for BLEU of the whole document, see `rerank.metrics.agreement`.

K-best lists beside them are merged by text: `sys` and the name of a list says how often it has a
text, which are so many votes; its own features and totals have its name before theirs.
A sentence of K candidates with V different n-grams takes O(K² V / 63) time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain, pairwise
from types import MappingProxyType

import numpy as np

from rerank.corpus.alignment import note_alignment, remembered_trigrams
from rerank.corpus.columns import KBestRows, Label, SparseColumns, TextColumn, offsets_of, places_of
from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.kbest import KBest, split_words
from rerank.corpus.preparation import note_preparation
from rerank.corpus.reading import AS_EMPTY
from rerank.corpus.spelling import nfc
from rerank.corpus.text_profile import TextProfile
from rerank.errors import MADE_OF, InputError, UsageError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.lines import is_pipe, spool
from rerank.files.paths import FilePath, base_name, display, file_and_name
from rerank.formats.document_files import UnsegmentedText, chosen_documents, segments_of
from rerank.formats.table import KBestFormat
from rerank.formats.tokens import plain_name
from rerank.formats.translations import Translation, documents_in, read_systems, read_texts_of
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS as ALL
from rerank.registry import FORMATS
from rerank.runs.lists import (
    KBestFile,
    Lists,
    ListSource,
    NamedSystem,
    documents_of_systems,
    number_of_lines,
)
from rerank.scorers import TOTAL
from rerank.scorers.agreement import CONSENSUS, VOTES, votes_of

NO_LISTS: Mapping[str, KBest] = MappingProxyType({})
_DIGEST_DIGITS = 6  # in a label
PREFIX = "sys"  # of the names of indicator features
_PROFILED = 5200  # lines of all systems together whose preparation is compared
_ALIGNED = 8000, 200  # lines of all systems whose places are compared; least of each
_NEARLY_ALL = 0.9  # of the lines of other systems, which have what one lacks


class SystemLists(ListSource):
    """Lists made of outputs of systems and of merged lists; their candidates are in memory.

    texts: of each system by name, and merged: the lists by name, whose candidates `make` joins.
    """

    def __init__(
        self,
        lists: Lists,
        documents: Documents,
        texts: Mapping[str, Translation],
        merged: Mapping[str, KBestFile],
    ) -> None:
        if merged:  # what the options say of a list was done when it was read
            lists = replace(lists, top=None)
        name = f"<outputs of {len(texts) + len(merged)} systems>"
        while name in MADE_OF:  # of lists that are open, too
            name = f"{name[:-1]}, again>"
        super().__init__(lists, name, documents=documents)
        self.texts, self.merged = texts, merged
        labels = labels_of([*texts, *merged])
        self.systems = dict(zip(labels, [*texts, *merged], strict=True))
        self._rows: list[KBestRows] = []

    def make(self, notices: Notices, store: ArrayStore) -> None:
        """Make the lists; where they are too large for memory, in files of a store."""
        n = size = 0
        cut = {text.strip() for file in self.texts.values() for text in file.truncated}
        cut = set(map(nfc, cut)) if self.lists.in_nfc else cut
        for kbest in self._documents(notices):
            lines = [self.documents.line(kbest.first + t) for t in range(len(kbest))]
            rows = KBestRows(
                labels=kbest.labels,
                lines=kbest.texts,
                text_spans=kbest.texts.spans,
                line_numbers=np.arange(n + 1, n + kbest.n + 1),
                sentences=self.lists.first_id + np.repeat(np.array(lines, np.int64), kbest.counts),
                dense=kbest.dense,
                totals=np.full(kbest.n, np.nan) if kbest.totals is None else kbest.totals,
                sparse=kbest.sparse,
                truncated=np.array([text in cut for text in kbest.texts.to_list()], np.bool_),
            )
            n, size = n + kbest.n, size + rows.nbytes
            if kbest.n:
                self._rows.append(rows if store.has_room(size) else rows.filed(store))

    def _documents(self, notices: Notices) -> Iterator[KBest]:
        """The lists of each document; at the end, notices of systems that are unlike the others."""
        profiles = [TextProfile() for _ in self.texts]
        heads = [list[bytes]() for _ in self.texts]
        of_lists = []
        for file in self.merged.values():
            file.documents = self.documents
            of_lists.append(file.read(notices))
        labels, first = [*self.systems], 0
        of_systems = read_outputs([*self.texts.values()], self.documents)
        for sentences, *named in zip(of_systems, *of_lists, strict=True):
            if self.lists.in_nfc:
                sentences = [[text and nfc(text) for text in each] for each in sentences]
            for m, profile in enumerate(profiles):
                if profile.lines < _PROFILED / len(profiles):
                    heads[m] += (head := [each[m] or b"" for each in sentences])
                    profile.add(head)
            merged = dict(zip(self.merged, (kbest for _, kbest in named), strict=True))
            yield kbest_of(sentences, labels, first, merged)
            first += len(sentences)
        _compare(dict(zip(self.texts, profiles, strict=True)), heads, notices)

    @cached_property
    def format(self) -> KBestFormat:
        """Moses lines or, where these cannot hold the lists, JSON lines."""
        bars = any(rows.lines.block_has(b"|||") for rows in self._rows)
        form: KBestFormat = FORMATS["jsonl" if self.merged or bars else "moses"]()
        return form

    def rows(self, notices: Notices) -> tuple[KBestFormat, Iterator[KBestRows]]:
        """The format, and the candidates of one document after the other."""
        return self.format, iter(self._rows)

    def candidates(self, kbest: KBest) -> KBest:
        """The lists without lines, which no file has."""
        return replace(kbest, lines=None)

    def place(self, number: int) -> str:
        """Where a candidate comes from: the first text that has it, and the sentence, from 1."""
        names = [*self.systems.values()]
        for rows in self._rows:
            if number <= len(rows):
                name = names[int((rows.dense[number - 1, : len(names)] > 0).argmax())]
                line = int(rows.sentences[number - 1]) - self.lists.first_id + 1
                path = dict(self.lists.systems).get(name, "-")
                plain = not (is_pipe(path) or file_and_name(path)[1])
                if plain and documents_in(path, Notices()) is None:
                    return f"{display(path)}:{line}"
                return f"outputs of {name}, sentence {line}"
            number -= len(rows)
        return f"line {number} behind all candidates"


def made_lists(
    lists: Lists,
    notices: Notices,
    copies: ExitStack,
    documents: Documents | None = None,
    *,
    store: ArrayStore = IN_MEMORY,
) -> SystemLists:
    """Lists made of the outputs of systems, and of merged lists; `copies` closes what is opened.

    documents: of the run [default: those that the options or the files name]. For faults of
    systems see `open_outputs`.
    """
    systems = [  # files are read several times
        (name, path if named or aligned else copies.enter_context(spool(path)))
        for name, path in lists.systems
        for aligned in [isinstance(path, UnsegmentedText)]
        for named in [not aligned and file_and_name(path)[1] is not None]
    ]
    segmented = [pair for pair in systems if not isinstance(pair[1], UnsegmentedText)]
    alone = replace(lists, systems=(), merged=(), missing=AS_EMPTY, side={})
    merged = {
        name: KBestFile(copies.enter_context(spool(path)), replace(alone, kbest=str(path)))
        for name, path in lists.merged
    }
    stated = None
    if documents is None and lists.docs is None:
        stated = documents_of_systems(segmented, notices)
    if documents is None and lists.no_docs is None:
        documents = stated
    if documents is None and not systems:
        documents = next(iter(merged.values())).find_documents(notices)
    elif documents is None:
        of_text = partial(number_of_lines, segmented[0][1])
        count = of_text if stated is None else partial(int, stated.n_sentences)
        documents = chosen_documents(lists.docs, lists.no_docs, count, notices)
    texts: dict[str, Translation] = {}
    if systems:
        # segments are matched by the names that the files have, whatever --no-docs makes of them
        model = display(lists.docs or lists.systems[0][1])
        texts = open_outputs(systems, stated or documents, notices, model)
    _check_names([*texts, *(name for name, _ in lists.merged)])
    source = SystemLists(lists, documents, texts, merged)
    source.make(notices, store)
    copies.callback(MADE_OF.pop, source.name, None)
    MADE_OF[source.name] = source.place
    return source


def _compare(
    systems: Mapping[str, TextProfile], lines: Sequence[Sequence[bytes]], notices: Notices
) -> None:
    """Notices of what the outputs of one system have in many lines, and the others never.

    lines: the first ones of each system, which should be in the order of those of the first one;
    of further systems 200 to 1000 are compared with these, 8000 of all systems where they are
    many: enough to see lines that are shifted or shuffled, of which 1000 are compared then.
    """
    most = max(_ALIGNED[1], _ALIGNED[0] // max(len(systems), 1))
    trigrams = remembered_trigrams()
    for name, text in [*zip(systems, lines, strict=True)][1:]:
        pair = {f"outputs of {name}": text, f"outputs of {next(iter(systems))}": lines[0]}
        note_alignment(pair, few := Notices(), most=most, trigrams=trigrams)
        if few.lines():  # from which line, and a command, by more lines
            note_alignment(pair, notices)
    total: Counter[tuple[str, str]] = Counter()
    for profile in systems.values():
        total.update(profile.counts)
    for name, profile in systems.items():
        others = [other for other in systems if other != name]
        called = others[0] if len(others) == 1 else "the other systems"
        remaining = profile.others([*systems.values()], total)
        texts = {f"outputs of {name}": profile, f"those of {called}": remaining}
        note_preparation(texts, notices, least=_NEARLY_ALL)
        if len(others) == 1:
            return


def kbest_of(
    texts: Sequence[Sequence[bytes | None]],
    labels: Sequence[str],
    first: int = 0,
    lists: Mapping[str, KBest] = NO_LISTS,
) -> KBest:
    """Lists of a document's outputs, texts[t][m] of system m or None, labels (M,).

    lists: k-best lists of it by name, whose labels stand behind those of the systems; a candidate
    has the values of the first line of a list that has its text, else 0.

    Candidates are in the order of the first system whose output they are. Their features are
    computed in an order that depends on texts and labels only, so that another order of the systems
    changes none of them.
    """
    from rerank.metrics.agreement import consensus  # numba

    merged, firsts = _votes(texts, [*lists.values()])
    counts = np.array([len(candidates) for candidates in merged], np.int64)
    indicators = np.zeros((int(counts.sum()), len(labels)))
    for row, givers in enumerate(givers for texts_of in merged for givers in texts_of.values()):
        indicators[row, [*givers]] = [*givers.values()]
    kbest = KBest(
        source="",
        first=first,
        offsets=offsets_of(counts),
        texts=TextColumn.of([text for candidates in merged for text in sorted(candidates)]),
        ranks=places_of(counts),
        labels=tuple(Label(name, 1) for name in (*labels, VOTES, *CONSENSUS)),
        dense=np.zeros((len(indicators), 0)),
        sparse=SparseColumns.empty(len(indicators)),
        totals=np.zeros(len(indicators)),  # readers of Moses lists expect a column
    )
    rows = iter(range(kbest.n))
    pairs = (pair for texts_of in merged for pair in sorted(zip(texts_of, rows, strict=False)))
    by_text = np.array([row for _, row in pairs], np.int64)
    by_label = sorted(range(len(labels)), key=labels.__getitem__)
    as_listed, indicators = indicators, indicators[by_text][:, by_label]
    votes = indicators.sum(axis=1)
    features = np.empty((kbest.n, 1 + len(CONSENSUS)))
    for a, b in pairwise(kbest.offsets.tolist()) if lists else ():  # a list's text of most votes
        best = indicators[a:b] == indicators[a:b].max(axis=0, initial=0.0)
        first_best = (best.cumsum(axis=0) == 1) & best
        indicators[a:b] = first_best & (indicators[a:b] > 0)
    features[by_text] = np.column_stack([votes, consensus(kbest, votes, indicators)])
    kbest = replace(
        kbest,
        texts=TextColumn.of([text for candidates in merged for text in candidates]),
        dense=np.column_stack([as_listed, features]),
    )
    return kbest if not lists else _with_own_scores(kbest, merged, firsts, lists)


def _votes(
    texts: Sequence[Sequence[bytes | None]], lists: Sequence[KBest]
) -> tuple[list[dict[bytes, dict[int, float]]], dict[tuple[int, bytes, int], int]]:
    """Votes of each text of each sentence, by numbers of systems and, behind them, of lists.

    And the first row of a text in a list, by sentence, text and number of the list.
    """
    merged: list[dict[bytes, dict[int, float]]] = []
    firsts: dict[tuple[int, bytes, int], int] = {}
    votes_in = [votes_of(kbest) for kbest in lists]
    for t, outputs in enumerate(texts):
        candidates: dict[bytes, dict[int, float]] = {}
        for m, text in enumerate(outputs):
            if text is not None:
                candidates.setdefault(text, {})[m] = 1.0
        for m, (kbest, votes) in enumerate(zip(lists, votes_in, strict=True), len(outputs)):
            for row in kbest.rows(t):
                text = b" ".join(kbest.tokens(row))
                by_list = candidates.setdefault(text, {})
                by_list[m] = by_list.get(m, 0.0) + float(votes[row])
                firsts.setdefault((t, text, m), row)
        merged.append(candidates)
    return merged, firsts


def _with_own_scores(
    kbest: KBest,
    merged: Sequence[Mapping[bytes, Mapping[int, float]]],
    firsts: Mapping[tuple[int, bytes, int], int],
    lists: Mapping[str, KBest],
) -> KBest:
    """The candidates with the features of each list, and its totals, under its name.

    merged, firsts: as of `_votes`.
    """
    labels, columns = [*kbest.labels], [kbest.dense]
    sparse: list[dict[str, float]] = [{} for _ in range(kbest.n)]
    places = [(t, text) for t, candidates in enumerate(merged) for text in candidates]
    n_systems = len(kbest.labels) - 1 - len(CONSENSUS) - len(lists)
    for m, (name, part) in enumerate(lists.items(), n_systems):
        rows = [firsts.get((*place, m), -1) for place in places]
        held = [k for k, row in enumerate(rows) if row >= 0]
        values, totals = part.dense, part.totals
        values = values if totals is None else np.column_stack([values, totals])
        block = np.zeros((kbest.n, values.shape[1]))
        block[held] = values[[rows[k] for k in held]]
        prefix, names = plain_name(name), [*part.labels]
        names += [Label(TOTAL, 1)] if totals is not None else []
        labels += [Label(f"{prefix}{label.name}", label.width) for label in names]
        columns.append(block)
        for k in held:
            sparse[k] |= {
                f"{prefix}{key}": value for key, value in part.sparse.row(rows[k]).items()
            }
    dense = np.concatenate(columns, axis=1)
    return replace(
        kbest, labels=tuple(labels), dense=dense, sparse=SparseColumns.of(sparse), totals=None
    )


def labels_of(names: Iterable[str]) -> list[str]:
    """Names (M,) of the indicator features: `sys` and the Latin letters and digits of the name.

    Digits of a digest follow where that leaves out other letters, or where another system has the
    same label, so that the order of the systems does not matter.

    >>> labels_of(["base-1", "base1", "base2"])
    ['sysbase12fc609', 'sysbase1', 'sysbase2']
    """
    plain = {name: re.sub(r"[^0-9A-Za-z]", "", name) for name in names}
    shared = Counter(plain.values())
    return [
        f"{PREFIX}{label}"
        if label == name or (shared[label] == 1 and name.isascii())
        else f"{PREFIX}{label}{sha256(name.encode()).hexdigest()[:_DIGEST_DIGITS]}"
        for name, label in plain.items()
    ]


def read_outputs(
    texts: Sequence[Translation], documents: Documents
) -> Iterator[list[list[bytes | None]]]:
    """The outputs of each document: [sentence][system], None for one that is missing.

    Blanks around words are those of a k-best list: one between words, none at the ends; so are
    TABs.
    """
    for start, stop in pairwise(documents.starts):
        lines = ([text.lines[t] for text in texts] for t in range(start, stop))
        yield [
            [line and b" ".join(split_words(line.replace(b"\t", b" "))) for line in sentence]
            for sentence in lines
        ]


def open_outputs(
    systems: Sequence[NamedSystem], documents: Documents, notices: Notices, model: str
) -> dict[str, Translation]:
    """The text of each system by name, of (NAME, file) or, for all of WMT XML, (`ALL`, file).

    Missing segments are counted. Texts of whole documents are aligned with all systems that have
    segments. model: what has the documents, in messages. UsageError for two systems of one name;
    InputError for a text with another number of lines, or without any output for a document.
    """
    texts: dict[str, Translation] = {}
    segmented: list[Translation] = []
    opened: dict[NamedSystem, list[tuple[str, Translation]]] = {}
    for name, path in sorted(systems, key=lambda pair: isinstance(pair[1], UnsegmentedText)):
        if isinstance(path, UnsegmentedText):
            lines = (
                [[line for line in sentence if line] or [b""] for sentence in sentences]
                for sentences in read_outputs(segmented, documents)
            )
            aligned = [*chain.from_iterable(segments_of(path, documents, lines, notices))]
            text = Translation(display(path), aligned)
            named = [(base_name(path) if name == ALL else name, text)]
        elif name == ALL:
            named = [*read_systems(path, documents, notices)[1].items()]
        else:
            named = [(name, _text(name, path, documents, notices, model))]
        for system, text in named:
            if system in texts:
                raise UsageError(
                    f"--systems: two systems are named {system!r}; give one of them as "
                    "NAME=FILE with another name, or leave it out"
                )
            texts[system] = text
            _check(text, documents, notices)
            if not isinstance(path, UnsegmentedText):
                segmented.append(text)
        opened[name, path] = named
    return {system: text for pair in systems for system, text in opened[pair]}


def _check_names(names: Sequence[str]) -> None:
    """UsageError for two systems or lists of one name, and for a single one."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"--kbest, --systems: two are named {twice[0]!r}; give one of them as NAME=FILE with "
            "another name, or leave it out"
        )
    if len(names) < 2:
        raise UsageError(
            f"--systems: expected two systems or more, found {', '.join(names)}; there is nothing "
            "to rerank"
        )


def _text(
    name: str, path: FilePath, documents: Documents, notices: Notices, model: str
) -> Translation:
    """The text of a system."""
    cure = (
        "if it lacks lines, or has whole documents, align it with the other systems: --systems "
        f"{name}={display(path)},align=yes"
    )
    texts = read_texts_of(path, documents, notices, model=model, role="system", cure=cure)
    if len(texts) > 1:
        names = ", ".join(text.name for text in texts[:30])
        raise UsageError(
            f"--systems {name}={display(path)}: expected one system, found {len(texts)}; give "
            f"{names}; or the file without a name, for all of them"
        )
    return texts[0]


def _check(text: Translation, documents: Documents, notices: Notices) -> None:
    """Count missing segments and TABs; InputError for no output at all for a document."""
    for name, lines in zip(documents.ids, documents.split(text.lines), strict=True):
        if lines and all(line is None for line in lines):
            raise InputError(
                f"expected outputs for all documents, found none for {shown_id(name)}; leave "
                "the system out, or give --docs without this document",
                source=text.name,
            )
    if tabs := [n for n, line in enumerate(text.lines, 1) if line and b"\t" in line]:
        notices.add("tab-in-text", source=text.name, line=tabs[0], count=len(tabs))
    if count := sum(line is None for line in text.lines):
        notices.add("segment-without-candidate", source=text.name, count=count)
