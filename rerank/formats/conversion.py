r"""Lists of one format written in another, document by document.

Alignments and the like are columns of a Moses list beside text, features and total. Moses writes
them after the total, Marian before the features:

    0 ||| a b ||| LM0= -3 ||| -1.5 ||| 0-1=0-1 ||| 0-0 1-1      segmentation, alignment
    0 ||| a b ||| 0-0 1-1 ||| WordScores= -0.2 -0.1 ||| F0= -0.3 ||| -0.3

In JSON lines they are keys of a candidate: `segmentation`, `alignment` and `word_scores`.

N-best lists of whole documents have a line a document, with its sentences as Docent writes them:

    0 ||| the first sentence \n the second \n  ||| LM0= -50.1 TM0= -4.2 ||| -20.3

`\n`, a backslash and an n, is a token after every sentence. Features and total are those of the
candidates, summed.

Sources: moses/Manager.cpp (OutputNBest) of https://github.com/moses-smt/mosesdecoder,
src/translator/output_printer.h of https://github.com/marian-nmt/marian-dev, and
https://github.com/chardmeier/docent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import TextColumn
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.json_lists import kept_keys, lines_with_keys
from rerank.formats.moses import append_features, moses_lines
from rerank.formats.table import lines_of
from rerank.formats.tokens import shown, written
from rerank.notices import Notices
from rerank.registry import FORMATS

DOCUMENTS, FIRST = "documents", "first"
WORD_SCORES_LEFT_OUT = "line with Marian's word scores, which a Moses list cannot hold; left out"
OTHER = "column that is no alignment or segmentation, left out"
_MARK = b"WordScores="
_ALIGNMENT = re.compile(rb"\s*(?:[0-9]+-[0-9]+(?:\s+|$))*")
_SEGMENTATION = re.compile(rb"\s*(?:[0-9]+(?:-[0-9]+)?=[0-9]+(?:-[0-9]+)?(?:\s+|$))+")
_AFTER_TOTAL = {"segmentation": _SEGMENTATION, "alignment": _ALIGNMENT}  # in this order
_END = b"\\n"


@dataclass(frozen=True, slots=True)
class Conversion:
    """How lists are written that were read from a file.

    as_read: format of the file; to: `moses`, `jsonl`, `first` or `documents`; first_id: of the
    first source line; n_best: documents of a list of documents; ids, sources: of each source line,
    where they are known.
    """

    as_read: str
    to: str
    first_id: int = 0
    n_best: int = 1
    ids: Sequence[bytes] | None = None
    sources: Sequence[bytes] | None = None

    def lines(
        self, d: int, kbest: KBest, documents: Documents, notices: Notices
    ) -> Iterator[tuple[int, bytes]]:
        """(sentence, line) of the lists of document d; InputError where the format has no form."""
        if self.to == FIRST:
            filled = int((kbest.counts > 0).sum())
            return enumerate(kbest.chosen([0] * filled), kbest.first)
        if self.to == DOCUMENTS:
            return ((kbest.first, line) for line in _document_lines(d, kbest, self.n_best))
        places = [documents.line(kbest.first + t) for t in range(len(kbest))]
        known = {"document": self.ids, "source": self.sources}
        beside = {
            key: [given[place] for place in places]
            for key, given in known.items()
            if given is not None
        }
        kbest = replace(kbest, side=beside)
        if self.as_read != self.to == "moses" and kbest.texts.block_has(b"|||"):
            for t in range(len(kbest)):
                if any(b"|||" in kbest.texts[row] for row in kbest.rows(t)):
                    raise InputError(
                        f"expected no '|||' in a text of a Moses list, found one of sentence "
                        f"{kbest.first + t} (from 0); give --escape moses",
                        source=kbest.source,
                    )
        lines = self._in_form(kbest, documents, notices)
        kbest = kbest if lines is kbest.lines else replace(kbest, lines=lines)
        nothing = np.zeros((kbest.n, 0))
        target = FORMATS[self.to]()
        return lines_of(target, kbest, documents, (), nothing, None, first_id=self.first_id)

    def _in_form(self, kbest: KBest, documents: Documents, notices: Notices) -> TextColumn | None:
        """Lines as the format to write keeps them, with what it has beside the features.

        None for candidates whose lines are made anew.
        """
        if kbest.lines is None:
            return None
        own, forms = kbest.lines.to_list(), (self.as_read, self.to)
        if forms == ("moses", "moses"):
            new = [_as_moses_writes(line, notices, source=kbest.source) for line in own]
            return kbest.lines if new == own else TextColumn.of(new)
        if self.as_read == self.to:
            return kbest.lines
        if forms == ("moses", "jsonl"):
            keys = (_further_columns(line, notices, source=kbest.source) for line in own)
            return TextColumn.of(lines_with_keys(kbest.texts.to_list(), keys))
        if forms == ("jsonl", "moses"):
            others = [kept_keys(kbest, row)[1] for row in range(kbest.n)]
            if any(key in one for one in others for key in _AFTER_TOTAL):
                sentences = (
                    replace(kbest.sentence(t), lines=None, first=documents.line(kbest.first + t))
                    for t in range(len(kbest))
                )
                lines = (line for one in sentences for line in moses_lines(one, self.first_id))
                return TextColumn.of(
                    [_with_columns(a, b) for a, b in zip(lines, others, strict=True)]
                )
        return None


# Columns beside text, features and total


def _further_columns(line: bytes, notices: Notices, *, source: str = "") -> dict[str, str]:
    """The columns of a valid line beside text, features and total, by their keys in JSON lines."""
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    values = grammar.feature_values(fields[column])
    scores = [value.number for value in values if value.name == grammar.WORD_SCORES]
    found = {"word_scores": b" ".join(scores).decode()} if scores else {}
    for place, field in enumerate(fields):
        text = field.strip()
        if place < 2 or place in (column, column + 1):
            continue
        if text.startswith(_MARK):
            found["word_scores"] = text.removeprefix(_MARK).strip().decode()
        elif _ALIGNMENT.fullmatch(field):
            found["alignment"] = text.decode()
        elif _SEGMENTATION.fullmatch(field):
            found["segmentation"] = text.decode()
        elif place > column:  # before the features it is part of the text
            notices.add(OTHER, source=source)
    return found


def _with_columns(line: bytes, columns: Mapping[str, object]) -> bytes:
    """A line of a Moses list that ends with its total, with the columns that Moses has after it."""
    known = ((str(columns.get(key)).encode(), form) for key, form in _AFTER_TOTAL.items())
    return b" ||| ".join([line, *(text.strip() for text, form in known if form.fullmatch(text))])


def _as_moses_writes(line: bytes, notices: Notices, *, source: str = "") -> bytes:
    """A valid line in the form of Moses: `id ||| text ||| Name= v v ||| total ||| alignment`.

    A line that any version of Moses writes stays as it is, with old labels `lm: -3`, too; and so
    does one with `|||` in its text, whose columns are not sure. Numbers keep their digits.
    """
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    values = list(grammar.feature_values(fields[column]))
    labels = {value.label for value in values if value.label}
    with_scores = any(value.name == grammar.WORD_SCORES for value in values)
    if column == 2 and labels <= set(fields[2].split()) and not with_scores:
        return line  # no label without a blank between it and its value, as Marian writes them
    before = [field for field in fields[2:column] if not field.strip().startswith(_MARK)]
    if not all(map(_ALIGNMENT.fullmatch, before)):
        return line
    if len(before) < column - 2 or with_scores:
        notices.add(WORD_SCORES_LEFT_OUT, source=source)
    if column + 1 == len(fields) and before:  # no total that it could follow
        notices.add(OTHER, source=source)
        before = []
    columns = [fields[0], fields[1], b" ".join(_tokens(values)), *fields[column + 1 :], *before]
    return b" ||| ".join(field.strip() for field in columns)


def _tokens(values: Sequence[grammar.Value]) -> Iterator[bytes]:
    """The tokens of a feature column, with numbers as mert-moses.pl reads them."""
    for value in values:
        if value.name != grammar.WORD_SCORES:
            if value.label:
                yield value.label[:-1] + b"="
            yield value.number.lower().replace(b"e+", b"e").lstrip(b"+")


# Lists of documents


def _best_documents(kbest: KBest, n: int) -> Iterator[tuple[float, list[int]]]:
    """The n choices of candidates of largest summed total, best first; ties by lower ranks.

    The sum, and a row of each sentence that has any. Totals of sentences are independent, so that
    the n best of a prefix of the document and of the next sentence give those of both:
    O(T n K log(n K)) time, O(T n) memory. n = 1 takes the first candidate where lists are sorted.
    `InputError` if a candidate has no total and n > 1.
    """
    present = [kbest.rows(t) for t in np.flatnonzero(kbest.counts).tolist()]
    if kbest.totals is None:
        if n > 1:
            raise InputError(
                "expected totals of all candidates, by which documents are ordered, found none; "
                "give --n-best 1, or a list with totals",
                source=kbest.source,
            )
        yield 0.0, [rows[0] for rows in present]
        return
    sums = np.zeros(1)
    back: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # prefix, row of each choice
    for rows in present:
        every = (sums[:, None] + kbest.totals[rows.start : rows.stop]).ravel()
        order = np.argsort(-every, kind="stable")[:n]
        prefix, place = np.divmod(order, len(rows))
        back.append((prefix, rows.start + place))
        sums = every[order]
    for i, total in enumerate(sums.tolist()):
        chosen = list[int]()
        for prefixes, of_choice in reversed(back):
            chosen.append(int(of_choice[i]))
            i = int(prefixes[i])
        yield total, chosen[::-1]


def _document_lines(number: int, kbest: KBest, n: int) -> Iterator[bytes]:
    """The lines of the n best choices of a document."""
    for total, rows in _best_documents(kbest, n):
        chosen = iter(rows)
        texts = [kbest.text(next(chosen)) if k else b"" for k in kbest.counts.tolist()]
        for text in texts:
            if grammar.SEPARATOR in text or _END in text.split(b" "):
                raise InputError(
                    f"expected no '|||' and no '\\n' in a sentence of a document list, found "
                    f"{shown(text)}; give --escape moses",
                    source=kbest.source,
                )
        text = b"".join(b"%s %s " % (text, _END) if text else _END + b" " for text in texts)
        values = iter(kbest.dense[rows].sum(axis=0).tolist())
        blocks = []
        for label in kbest.labels:
            numbers = [written(next(values), label.name, digits=9) for _ in range(label.width)]
            blocks.append(label.name.encode() + b"= " + b" ".join(numbers))
        sparse: dict[str, float] = {}
        for row in rows if kbest.sparse.names else ():
            for name, value in kbest.sparse.row(row).items():
                sparse[name] = sparse.get(name, 0.0) + value
        line = b"%d ||| %s ||| %s" % (number, text, b" ".join(blocks))
        for name, value in sparse.items():
            line += b" %s= %s" % (name.encode(), written(value, name, digits=9))
        yield append_features(line, (), None if kbest.totals is None else total)
