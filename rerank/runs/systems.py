"""K-best lists of the outputs of several systems, and of several lists: `--systems`, `--kbest`.

Equal outputs of a sentence are one candidate. Its features: `sys` and the name of each system, 1
for those whose output it is; `votes`, how many these are; its mean sentence BLEU and mean chrF2
against the outputs of the other systems (0..100), `consensusbleu` and `consensuschrf`, which is
minimum Bayes risk under a uniform distribution (Kumar & Byrne 2004,
https://aclanthology.org/N04-1022) without the candidate's own vote; and `consensusdocbleu`, the
same for BLEU of the whole document, see `rerank.metrics.agreement`.

K-best lists beside them are merged by text: `sys` and the name of a list says how often it has a
text, which are so many votes; its own features and totals have its name before theirs.

The lists are written to a temporary file, which the commands read as any other: Moses lines, or
JSON lines where a text holds `|||`. A sentence of K candidates with V different n-grams takes
O(K² V / 63) time. Memory: the largest document, and texts of files with several systems.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.alignment import note_alignment, remembered_trigrams
from rerank.corpus.columns import Label, SparseColumns, TextColumn, offsets_of, places_of
from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.kbest import KBest, split_words
from rerank.corpus.preparation import note_preparation
from rerank.corpus.reading import AS_EMPTY
from rerank.corpus.spelling import nfc
from rerank.corpus.text_profile import TextProfile
from rerank.errors import MADE_OF, InputError, UsageError
from rerank.files.lines import scratch_file, spool
from rerank.files.paths import FilePath, base_name, display, file_and_name
from rerank.formats.document_files import UnsegmentedText, chosen_documents, segments_of
from rerank.formats.plain_texts import text_lines
from rerank.formats.table import lines_of
from rerank.formats.tokens import plain_name
from rerank.formats.translations import Translation, documents_in, read_systems, read_texts_of
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS as ALL
from rerank.registry import FORMATS
from rerank.runs.lists import (
    KBestFile,
    Lists,
    NamedSystem,
    documents_of_systems,
    number_of_lines,
)
from rerank.scorers import TOTAL
from rerank.scorers.agreement import CONSENSUS, VOTES, votes_of

if TYPE_CHECKING:
    from rerank.metrics.agreement import SystemAgreement

OutputText = FilePath | Translation  # a file with a line per sentence, or the lines in memory
NO_LISTS: Mapping[str, KBest] = MappingProxyType({})
_DIGEST_DIGITS = 6  # in a label
PREFIX = "sys"  # of the names of indicator features
_PROFILED = 5200  # lines of all systems together whose preparation is compared
_ALIGNED = 8000, 200  # lines of all systems whose places are compared; least of each
_NEARLY_ALL = 0.9  # of the lines of other systems, which have what one lacks


def made_lists(
    lists: Lists,
    notices: Notices,
    copies: ExitStack,
    documents: Documents | None = None,
    *,
    agreement: bool = False,
) -> tuple[Lists, Documents | None, dict[str, str], SystemAgreement | None]:
    """The lists, those of systems in a temporary file, which is deleted with `copies`.

    documents: of the run [default: those that the options or the files name]. With them, which for
    lists of systems are always known, the name of each system by the label of its indicator
    feature, and their agreement if it is asked for and no list is merged with them. UsageError as
    `Lists.check`; for faults of systems see `open_outputs`.
    """
    lists.check()
    if not lists.made:
        return lists, documents, {}, None
    from rerank.metrics.agreement import SystemAgreement  # numba

    systems = [  # files are read several times
        (name, path if file_and_name(path)[1] is not None else copies.enter_context(spool(path)))
        for name, path in lists.segmented
    ]
    plain = replace(lists, systems=(), merged=(), missing=AS_EMPTY, side={})
    merged = {
        name: KBestFile(copies.enter_context(spool(path)), replace(plain, kbest=str(path)))
        for name, path in lists.merged
    }
    docs, no_docs = lists.docs, lists.no_docs
    own = documents_of_systems(systems, notices) if documents is None and docs is None else None
    documents = documents or (own if no_docs is None else None)
    if documents is None and not systems:
        documents = next(iter(merged.values())).documents(notices)
    elif documents is None:
        of_text = partial(number_of_lines, systems[0][1])
        count = of_text if own is None else partial(int, own.n_sentences)
        documents = chosen_documents(docs, no_docs, count, notices)
    # segments are matched by the names that the files have, whatever --no-docs makes of them
    outputs: dict[str, OutputText] = {}
    if systems:
        model = display(docs or lists.systems[0][1])
        outputs = open_outputs(
            [*systems, *lists.unsegmented],
            documents if own is None else own,
            notices,
            model,
            copies,
        )
    _check_names([*outputs, *(name for name, _ in lists.merged)])
    if lists.by_name:
        outputs, merged = dict(sorted(outputs.items())), dict(sorted(merged.items()))
    labels, texts = labels_of([*outputs, *merged]), outputs.values()
    counted = SystemAgreement(labels) if agreement and not merged else None
    shown = f"<outputs of {len(labels)} systems>"
    while shown in MADE_OF:  # of lists that are open, too
        shown = f"{shown[:-1]}, again>"
    path = copies.enter_context(scratch_file(shown))
    every = (
        text or b""
        for sentences in read_outputs(texts, documents, Notices())
        for each in sentences
        for text in each
    )
    known = "jsonl" if merged or any(b"|||" in text for text in every) else "moses"
    form, origins = FORMATS[known](), _Origins(outputs, len(labels))
    with path.open("wb") as file:
        for kbest in _merged(outputs, merged, labels, documents, notices, in_nfc=lists.in_nfc):
            if counted is not None:
                counted.add(kbest)
            origins.add(kbest)
            written = lines_of(
                form, kbest, documents, (), np.zeros((kbest.n, 0)), None, first_id=lists.first_id
            )
            file.writelines(line + b"\n" for _, line in written)
    if known == "moses":  # a candidate a line
        copies.callback(MADE_OF.pop, shown)
        MADE_OF[shown] = origins.place
    if docs is None and no_docs is None:
        docs = _docids(documents, copies)
    made = replace(lists, kbest=path, kbest_format=known, docs=docs)
    if merged:  # what else the options say of a list was done
        made = replace(made, top=None, diverse=False, encoding="utf-8", encoding_errors="strict")
    return made, documents, dict(zip(labels, [*outputs, *merged], strict=True)), counted


class _Origins:
    """Where the candidates of made lists come from: of each line a system and a sentence.

    8 bytes a candidate, for as long as the lists are open.
    """

    def __init__(self, outputs: Mapping[str, OutputText], n_labels: int) -> None:
        self._outputs, self._n_labels = [*outputs.items()], n_labels
        self._pairs: list[NDArray[np.int32]] = []

    def add(self, kbest: KBest) -> None:
        """Add the lists of the next document."""
        first = (kbest.dense[:, : self._n_labels] > 0).argmax(axis=1)
        sentences = kbest.first + np.repeat(np.arange(len(kbest.counts)), kbest.counts)
        self._pairs.append(np.column_stack([first, sentences]).astype(np.int32))

    def place(self, line: int) -> str:
        """The line of the first system that has the candidate of a line, counted from 1."""
        for pairs in self._pairs:
            if line <= len(pairs):
                system, sentence = pairs[line - 1].tolist()
                name, text = self._outputs[system]
                if isinstance(text, Translation):
                    return f"outputs of {name}, sentence {sentence + 1}"
                return f"{display(text)}:{sentence + 1}"
            line -= len(pairs)
        return f"line {line} behind all candidates"


def _merged(
    outputs: Mapping[str, OutputText],
    merged: Mapping[str, KBestFile],
    labels: Sequence[str],
    documents: Documents,
    notices: Notices,
    *,
    in_nfc: bool,
) -> Iterator[KBest]:
    """The lists of each document; at the end, notices of systems that are unlike the others."""
    profiles, heads = [TextProfile() for _ in outputs], [list[bytes]() for _ in outputs]
    of_systems = read_outputs(outputs.values(), documents, notices)
    of_lists, first = [file.read(documents, notices) for file in merged.values()], 0
    for sentences, *named in zip(of_systems, *of_lists, strict=True):
        if in_nfc:
            sentences = [[text and nfc(text) for text in each] for each in sentences]
        for m, profile in enumerate(profiles):
            if profile.lines < _PROFILED / len(profiles):
                heads[m] += (head := [each[m] or b"" for each in sentences])
                profile.add(head)
        own_lists = (found for _, found in named)
        yield kbest_of(sentences, labels, first, dict(zip(merged, own_lists, strict=True)))
        first += len(sentences)
    _compare(dict(zip(outputs, profiles, strict=True)), heads, notices)


def _docids(documents: Documents, copies: ExitStack) -> Path:
    """A temporary file with the document id of each line."""
    path = copies.enter_context(scratch_file("<documents of the systems>"))
    ids = (f"{name}\n" * len(sentences) for name, sentences in documents.ranges())
    path.write_text("".join(ids), encoding="utf-8")
    return path


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
    for own in systems.values():
        total.update(own.counts)
    for name, own in systems.items():
        others = [other for other in systems if other != name]
        called = others[0] if len(others) == 1 else "the other systems"
        rest = own.others([*systems.values()], total)
        texts = {f"outputs of {name}": own, f"those of {called}": rest}
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

    merged: list[dict[bytes, dict[int, float]]] = []  # votes of each text, by systems and lists
    firsts: dict[tuple[int, bytes, int], int] = {}  # row of a text in a list
    votes_in = [votes_of(kbest) for kbest in lists.values()]
    for t, outputs in enumerate(texts):
        found: dict[bytes, dict[int, float]] = {}
        for m, text in enumerate(outputs):
            if text is not None:
                found.setdefault(text, {})[m] = 1.0
        for m, (kbest, of_rows) in enumerate(
            zip(lists.values(), votes_in, strict=True), len(outputs)
        ):
            for row in kbest.rows(t):
                text = b" ".join(kbest.tokens(row))
                own = found.setdefault(text, {})
                own[m] = own.get(m, 0.0) + float(of_rows[row])
                firsts.setdefault((t, text, m), row)
        merged.append(found)
    counts = np.array([len(one) for one in merged], np.int64)
    indicators = np.zeros((int(counts.sum()), len(labels)))
    for row, givers in enumerate(givers for one in merged for givers in one.values()):
        indicators[row, [*givers]] = [*givers.values()]
    kbest = KBest(
        source="",
        first=first,
        offsets=offsets_of(counts),
        texts=TextColumn.of([text for one in merged for text in sorted(one)]),
        ranks=places_of(counts),
        labels=tuple(Label(name, 1) for name in (*labels, VOTES, *CONSENSUS)),
        dense=np.zeros((len(indicators), 0)),
        sparse=SparseColumns.empty(len(indicators)),
        totals=np.zeros(len(indicators)),  # readers of Moses lists expect a column
    )
    rows = iter(range(kbest.n))
    pairs = (pair for one in merged for pair in sorted(zip(one, rows, strict=False)))
    by_text = np.array([row for _, row in pairs], np.int64)
    by_label = sorted(range(len(labels)), key=labels.__getitem__)
    given, indicators = indicators, indicators[by_text][:, by_label]
    votes = indicators.sum(axis=1)
    features = np.empty((kbest.n, 1 + len(CONSENSUS)))
    for a, b in pairwise(kbest.offsets.tolist()) if lists else ():  # a list's text of most votes
        best = indicators[a:b] == indicators[a:b].max(axis=0, initial=0.0)
        first_best = (best.cumsum(axis=0) == 1) & best
        indicators[a:b] = first_best & (indicators[a:b] > 0)
    features[by_text] = np.column_stack([votes, consensus(kbest, votes, indicators)])
    texts_as_given = TextColumn.of([text for one in merged for text in one])
    kbest = replace(kbest, texts=texts_as_given, dense=np.column_stack([given, features]))
    return kbest if not lists else _with_own_scores(kbest, merged, firsts, lists)


def _with_own_scores(
    kbest: KBest,
    merged: Sequence[Mapping[bytes, Mapping[int, float]]],
    firsts: Mapping[tuple[int, bytes, int], int],
    lists: Mapping[str, KBest],
) -> KBest:
    """The candidates with the features of each list, and its totals, under its name.

    merged, firsts: as of `kbest_of`, the lists numbered behind the systems.
    """
    labels, columns = [*kbest.labels], [kbest.dense]
    sparse: list[dict[str, float]] = [{} for _ in range(kbest.n)]
    places = [(t, text) for t, found in enumerate(merged) for text in found]
    n_systems = len(kbest.labels) - 1 - len(CONSENSUS) - len(lists)
    for m, (name, own) in enumerate(lists.items(), n_systems):
        rows = [firsts.get((*place, m), -1) for place in places]
        held = [k for k, row in enumerate(rows) if row >= 0]
        values = own.dense if own.totals is None else np.column_stack([own.dense, own.totals])
        block = np.zeros((kbest.n, values.shape[1]))
        block[held] = values[[rows[k] for k in held]]
        prefix, names = plain_name(name), [*own.labels]
        names += [Label(TOTAL, 1)] if own.totals is not None else []
        labels += [Label(f"{prefix}{label.name}", label.width) for label in names]
        columns.append(block)
        for k in held:
            sparse[k] |= {f"{prefix}{key}": value for key, value in own.sparse.row(rows[k]).items()}
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
    texts: Iterable[OutputText], documents: Documents, notices: Notices
) -> Iterator[list[list[bytes | None]]]:
    """The outputs of each document: [sentence][system], None for one that is missing.

    Blanks around words are those of a k-best list: one between words, none at the ends.
    """
    sources: list[Iterator[bytes | None]] = [
        iter(one.lines) if isinstance(one, Translation) else text_lines(one, notices, "system")
        for one in texts
    ]
    for start, stop in pairwise(documents.starts):
        outputs = [list(islice(lines, stop - start)) for lines in sources]
        yield [
            [None if own[t] is None else b" ".join(split_words(own[t] or b"")) for own in outputs]
            for t in range(stop - start)
        ]


def open_outputs(
    systems: Sequence[NamedSystem],
    documents: Documents,
    notices: Notices,
    model: str,
    copies: ExitStack,
) -> dict[str, OutputText]:
    """The text of each system by name, of (NAME, file) or, for all of WMT XML, (`ALL`, file).

    Files are read several times; missing segments are counted. Texts of whole documents are
    aligned with the systems before them, in temporary files. model: what has the documents, in
    messages. UsageError for two systems of one name; InputError for a text with another number of
    lines, or without any output for a document.
    """
    found: dict[str, OutputText] = {}
    segmented: list[OutputText] = []
    named: list[tuple[str, OutputText]]
    for given, path in systems:
        if isinstance(path, UnsegmentedText):
            name = base_name(path) if given == ALL else given
            named = [(name, _aligned(path, segmented, documents, copies, notices))]
        else:
            named = [*_texts(given, path, documents, notices, model)]
            segmented += [text for _, text in named]
        for name, text in named:
            if name in found:
                raise UsageError(
                    f"--systems: two systems are named {name!r}; give one of them as "
                    "NAME=FILE with another name, or leave it out"
                )
            found[name] = text
            if isinstance(text, Translation):
                _check(text, documents, notices)
    return found


def _aligned(
    path: UnsegmentedText,
    outputs: Sequence[OutputText],
    documents: Documents,
    copies: ExitStack,
    notices: Notices,
) -> Path:
    """A temporary file with the segments of a text of whole documents, aligned with outputs."""
    lines = (
        [[one for one in sentence if one] or [b""] for sentence in sentences]
        for sentences in read_outputs(outputs, documents, Notices())
    )
    copy = copies.enter_context(scratch_file(f"<segments of {display(path)}>"))
    with copy.open("wb") as file:
        for segments in segments_of(path, documents, lines, notices):
            file.writelines(segment + b"\n" for segment in segments)
    return copy


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


def _texts(
    given: str, path: FilePath, documents: Documents, notices: Notices, model: str
) -> Iterator[tuple[str, OutputText]]:
    """Name and text of each system that an option gives."""
    if given == ALL:
        yield from read_systems(path, documents, notices)[1].items()
        return
    is_plain = file_and_name(path)[1] is None and documents_in(path, Notices()) is None
    if documents.lines is None and is_plain and number_of_lines(path) == documents.n_file_lines:
        yield given, path
        return
    cure = (
        "if it lacks lines, or has whole documents, align it with the other systems: --systems "
        f"{given}={display(path)},align=yes"
    )
    found = read_texts_of(path, documents, notices, model=model, role="system", cure=cure)
    if len(found) > 1:
        names = ", ".join(text.name for text in found[:30])
        raise UsageError(
            f"--systems {given}={display(path)}: expected one system, found {len(found)}; give "
            f"{names}; or the file without a name, for all of them"
        )
    yield given, found[0]


def _check(text: Translation, documents: Documents, notices: Notices) -> None:
    """Count missing segments; InputError for a system without any output for a document."""
    for name, lines in zip(documents.ids, documents.split(text.lines), strict=True):
        if lines and all(line is None for line in lines):
            raise InputError(
                f"expected outputs for all documents, found none for {shown_id(name)}; leave "
                "the system out, or give --docs without this document",
                source=text.name,
            )
    if count := sum(line is None for line in text.lines):
        notices.add("segment-without-candidate", source=text.name, count=count)
