r"""N-gram models as ARPA files, the text format of SRILM, KenLM and others.

The grammar: any lines; `\data\`; a line `ngram n=count` for each order n from 1; for each order a
line `\n-grams:` and `count` lines of a base-10 logarithm, n words and perhaps a back-off (0 if it
is missing, and in the last order); `\end\`. Blank lines may stand between these parts; TAB or space
separate words and numbers. Compiled code reads lines in the form that programs write, the grammar
others.

A line above the data says that a model is of stupid back-off (KenLM refuses such a file, and
should: it would not step back over contexts that the model does not have), or has the pieces of a
model of subword units; other programs must be given a text in pieces.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lm.ngrams import MOST_ORDER, UNKNOWN_MISSING, Log10s, NGramError, NGramModel, NGrams, Nodes
from lm.subwords import SubwordVocabulary
from lm.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary

_TAB, _NEWLINE, _BLANK, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _E = b"\t\n +-.09e"
_POWERS = np.array([10.0**n for n in range(23)])  # powers of ten that are float64s
_DIGITS = 15  # of a number: so many are below 2^53
_FACTOR, _OFFSET = 0x100000001B3, 0x4BF29CE484222325  # of the hash FNV-1a; the latter as int64

Bytes: TypeAlias = NDArray[np.uint8]
MOST_LOG10 = 300.0  # size of a logarithm; a word's score must have an exponential
_BLOCK = 1 << 16  # lines
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHOWN = 60  # bytes of a line in a message
_CURE = "is the file complete, and in ARPA format? have it written again"
_LOGARITHM = f"a base-10 logarithm from -{MOST_LOG10:g} to"
_SAY = "as the counts at the top of the file say"
STUPID_BACKOFF = b"stupid backoff"
PIECES = b"# pieces of words "
_HEADER = 1000  # lines above the data
_COUNT = re.compile(rb"ngram[ \t]+([0-9]{1,2})[ \t]*=[ \t]*([0-9]{1,10})")
_STUPID = re.compile(STUPID_BACKOFF + rb" (0\.[0-9]{1,9})\b")
_UNKNOWN_FORMS = (SPECIAL[UNKNOWN], b"<UNK>")


class WordTable(NamedTuple):
    """A hash table of W words: index or −1 in slots, bytes in the blob at spans (W, 2), ids."""

    slots: NDArray[np.int32]
    blob: Bytes
    spans: NDArray[np.int64]
    ids: NDArray[np.int32]

    @classmethod
    def of(cls, ids: Mapping[bytes, int]) -> WordTable:
        """The table of words and their ids."""
        ends = np.cumsum([len(word) for word in ids])
        spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends])
        blob = np.frombuffer(b"".join(ids), np.uint8)
        slots = np.full(1 << (2 * len(ids)).bit_length(), -1, np.int32)
        _fill(slots, blob, spans)
        return cls(slots, blob, spans, np.array([*ids.values()], np.int32))


@njit(cache=True, nogil=True)
def _fill(slots: Any, blob: Any, spans: Any) -> None:
    for i in range(len(spans)):
        code = _OFFSET
        for place in range(spans[i, 0], spans[i, 1]):
            code = (code ^ blob[place]) * _FACTOR
        slot = (code ^ (code >> 29)) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = i


@njit(cache=True, nogil=True)
def _word(text: Any, place: Any, table: Any) -> Any:
    """The id of the word at `place`, −1 if it is unknown, and the index behind it."""
    begin, code = place, _OFFSET
    while text[place] != _BLANK and text[place] != _TAB and text[place] != _NEWLINE:
        code = (code ^ text[place]) * _FACTOR
        place += 1
    slot = (code ^ (code >> 29)) & (len(table.slots) - 1)
    while table.slots[slot] >= 0:
        i = table.slots[slot]
        first, end = table.spans[i]
        if end - first == place - begin:
            same = 0
            while same < place - begin and table.blob[first + same] == text[begin + same]:
                same += 1
            if same == place - begin:
                return table.ids[i], place
        slot = (slot + 1) & (len(table.slots) - 1)
    return np.int32(-1), place


@njit(cache=True, nogil=True)
def _number(text: Any, place: Any) -> Any:
    """The number at `place` and the index behind it; −1 if it is none or needs two roundings.

    One correctly rounded operation on two exact operands gives the float64 nearest to a decimal:
    Clinger (1990), https://doi.org/10.1145/93542.93557, section 3.
    """
    negative = text[place] == _MINUS
    place += negative or text[place] == _PLUS
    mantissa, digits, scale = 0, 0, 0
    while _ZERO <= text[place] <= _NINE and digits <= _DIGITS:
        mantissa, digits, place = 10 * mantissa + (text[place] - _ZERO), digits + 1, place + 1
    if text[place] == _POINT:
        place += 1
        while _ZERO <= text[place] <= _NINE and digits <= _DIGITS:
            mantissa, digits, place = 10 * mantissa + (text[place] - _ZERO), digits + 1, place + 1
            scale += 1
    if text[place] | 0x20 == _E:
        below = text[place + 1] == _MINUS
        place += 1 + (below or text[place + 1] == _PLUS)
        exponent, first = 0, place
        while _ZERO <= text[place] <= _NINE and place - first < 3:
            exponent, place = 10 * exponent + (text[place] - _ZERO), place + 1
        scale += exponent if below else -exponent
        digits = digits if place > first else 0
    if not 0 < digits <= _DIGITS or abs(scale) >= len(_POWERS):
        return 0.0, -1
    value = mantissa / _POWERS[scale] if scale >= 0 else mantissa * _POWERS[-scale]
    return (-value if negative else value), place


@njit(cache=True, nogil=True)
def _behind_blanks(text: Any, place: Any) -> Any:
    while text[place] == _BLANK or text[place] == _TAB:
        place += 1
    return place


@njit(cache=True, nogil=True)
def read_ngrams(
    text: Any, begin: Any, table: Any, row: Any, most: Any, words: Any, probs: Any, backoffs: Any
) -> Any:
    """Read the lines from index `begin` on into the rows from `row` on, as long as they are simple.

    text: ends with LF; words: (m, n) ids; probs, backoffs: (m,), the latter empty where a line may
    have none but 0; most: largest size of a number. The row and the index of the line not read.
    """
    n = words.shape[1]
    while row < len(words):
        backoff, place = 0.0, begin
        prob, place = _number(text, place)
        for j in range(n):
            if place < 0:
                break
            blank = _behind_blanks(text, place)
            words[row, j], end = _word(text, blank, table)
            place = end if blank > place and words[row, j] >= 0 else -1
        if place >= 0:
            blank = _behind_blanks(text, place)
            if text[blank] != _NEWLINE:
                backoff, place = _number(text, blank)
                blank = _behind_blanks(text, place) if place >= 0 else blank
                if not len(backoffs) and backoff != 0:
                    place = -1
            place = blank if place >= 0 and text[blank] == _NEWLINE else -1
        if place < 0 or not (-most <= prob <= 0) or not (-most <= backoff <= most):
            break
        probs[row] = prob
        if len(backoffs):
            backoffs[row] = backoff
        row, begin = row + 1, place + 1
    return row, begin


class ArpaError(NGramError):
    """A file that is not an ARPA file: the message, and the number of the line, from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Lines:
    """The lines of a file; number: of the last one read."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines, self.number = iter(lines), 0

    def filled(self) -> bytes:
        """The next line that is not blank, without blanks around it; empty at the end."""
        for line in self._lines:
            self.number += 1
            if text := line.strip(b" \t\r"):
                return text
        return b""

    def block(self, most: int) -> list[bytes]:
        """The next lines, `most` at most."""
        lines = list(islice(self._lines, most))
        self.number += len(lines)
        return lines

    def expect(self, mark: bytes, where: str) -> None:
        """Read the first line of a part of the file; ArpaError if it is another."""
        if (line := self.filled()) != mark:
            raise self.fault(f"expected {mark.decode()} after {where}, {_SAY}, found {shown(line)}")

    def fault(self, message: str, line: int | None = None) -> ArpaError:
        """An error at a line, or at the last line read."""
        return ArpaError(f"{message}; {_CURE}", max(1, line or self.number))


def ngrams_and_weights(
    text: Lines, n: int, count: int, ids: Mapping[bytes, int], *, last: bool
) -> tuple[NDArray[np.int32], Log10s, Log10s]:
    """The next `count` lines as n-grams: ids (m, n), probabilities and back-offs (m,), compiled."""
    table, first, done = WordTable.of(ids), text.number + 1, 0
    blocks = [(np.zeros((0, n), np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32))]
    while done < count:
        lines = text.block(min(count - done, _BLOCK)) or [b""]
        blob = np.frombuffer(b"\n".join([*lines, b""]), np.uint8)
        m = len(lines)
        words, probs = np.zeros((m, n), np.int32), np.zeros(m, np.float32)
        backoffs = np.zeros(0 if last else m, np.float32)
        row = begin = 0
        while row < m:
            columns = words, probs, backoffs
            row, begin = read_ngrams(blob, begin, table, row, MOST_LOG10, *columns)
            if row < m:  # in another form
                line = lines[row]
                prob, ngram, backoff = _entry(text, line, first, n, count, done + row, last)
                if unknown := [word for word in ngram if word not in ids]:
                    message = f"expected words that are 1-grams, found {shown(unknown[0])}"
                    raise text.fault(message, first + done + row)
                words[row], probs[row] = [ids[word] for word in ngram], prob
                backoffs[row : row + 1] = backoff
                row, begin = row + 1, begin + len(line) + 1
        blocks.append((words, probs, backoffs))
        done += m
    words, probs, backoffs = map(np.concatenate, zip(*blocks, strict=True))
    return words, probs, backoffs


def _entry(
    text: Lines, line: bytes, first: int, n: int, count: int, done: int, last: bool
) -> tuple[float, list[bytes], float]:
    """Logarithm, words and back-off of a line, n-gram `done` of `count` from line `first` on."""
    fields = [field for field in line.replace(b"\t", b" ").strip(b" \r").split(b" ") if field]
    words, number = f"{n} word{'s' if n > 1 else ''}", first + done
    if not fields or line.startswith(b"\\"):
        what = "a blank line or the end of the file" if not fields else shown(line)
        message = f"expected {count:,} {n}-grams, {_SAY}, found {done:,}, then {what}"
        raise text.fault(message, number)
    backoff = _logarithm(fields[n + 1]) if len(fields) > n + 1 else 0.0
    prob = _logarithm(b"-99" if fields[:2] == [b"-inf", b"<s>"] else fields[0])
    if len(fields) not in (n + 1, n + 2) or (last and backoff != 0):
        form = f"a logarithm and {words}" if last else f"a logarithm, {words}, perhaps a back-off"
        raise text.fault(f"expected {form}, found {shown(line)}", number)
    if prob is None or prob > 0:
        raise text.fault(f"expected {_LOGARITHM} 0, found {shown(fields[0])}", number)
    if backoff is None:
        message = f"expected the back-off to be {_LOGARITHM} {MOST_LOG10:g}"
        raise text.fault(f"{message}, found {shown(fields[-1])}", number)
    return prob, fields[1 : n + 1], backoff


def _logarithm(token: bytes) -> float | None:
    """A number in ASCII decimals of a size up to `MOST_LOG10`."""
    value = float(token) if _NUMBER.fullmatch(token) else np.inf
    return value if abs(value) <= MOST_LOG10 else None


def shown(line: bytes) -> str:
    """A line or a part of it, quoted and not too long, for a message."""
    return repr(line[:_SHOWN].decode(errors="replace")) if line else "the end of the file"


def read_arpa(lines: Iterable[bytes]) -> NGramModel:
    """The model in the lines of an ARPA file; ArpaError if they are not one.

    The prefix of every n-gram must be there, too, as KenLM demands; suffixes may be missing. A file
    without `<unk>` gives unknown words log10 probability −100, as KenLM does. Memory: about 40
    bytes an n-gram while they are read.
    """
    text = Lines(lines)
    unseen, pieces = _above_the_data(text)
    counts = _counts(text)
    vocabulary, log10s, weights = _unigrams(text, counts[0], last=len(counts) == 1)
    if pieces is not None:
        try:
            vocabulary = pieces.ordered(vocabulary.words)
        except ValueError:
            raise text.fault("expected the pieces above the data as the 1-grams") from None
    ids = {word: i for i, word in enumerate(SPECIAL)} | vocabulary.ids
    ids[_UNKNOWN_FORMS[1]] = UNKNOWN
    ngrams, root = NGrams.of_words(len(vocabulary)), np.zeros(1, np.float32)
    probs, backoffs = [root, log10s], [root, weights]
    for n, count in enumerate(counts[1:], 2):
        text.expect(b"\\%d-grams:" % n, f"{counts[n - 2]:,} {n - 1}-grams")
        first, last = text.number + 1, n == len(counts)
        words, log10s, weights = ngrams_and_weights(text, n, count, ids, last=last)
        parents, order = _places(words, ngrams, first)
        ngrams = ngrams.extended(parents[order], words[order, -1])
        probs.append(log10s[order])
        backoffs.append(weights if last else weights[order])
    text.expect(b"\\end\\", f"{counts[-1]:,} {len(counts)}-grams")
    if rest := text.filled():
        raise text.fault(f"expected the end of the file after \\end\\, found {shown(rest)}")
    contexts = np.concatenate(backoffs[:-1])
    return NGramModel(vocabulary, ngrams, np.concatenate(probs), contexts, unseen)


def _above_the_data(text: Lines) -> tuple[float, SubwordVocabulary | None]:
    """The back-off of unseen contexts and the pieces of words in the lines above the data."""
    unseen, pieces = 0.0, None
    for _ in range(_HEADER):
        line = text.filled()
        if line == b"\\data\\":
            return unseen, pieces
        if not line:
            break
        if line.startswith(PIECES):
            try:
                pieces = SubwordVocabulary.from_json(json.loads(line[len(PIECES) :]))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                raise text.fault("expected the pieces of words, found others") from None
        if match := _STUPID.match(line):
            unseen = math.log10(max(float(match[1]), 1e-9))
    raise ArpaError(
        f"expected \\data\\ in the first {_HEADER:,} lines, found none; an n-gram model is a text "
        "file in ARPA format, not one in a binary format: have it written in that format",
        max(1, text.number),
    )


def _counts(text: Lines) -> list[int]:
    """The number of n-grams of each order; reads the line above the first n-grams, too."""
    counts: list[int] = []
    while match := _COUNT.fullmatch(line := text.filled()):
        if int(match[1]) != len(counts) + 1 or len(counts) == MOST_ORDER:
            expected = f"the counts of the orders 1, 2, … up to {MOST_ORDER} at most"
            raise text.fault(f"expected {expected}, found {shown(line)}")
        counts.append(int(match[2]))
    if not counts or line != b"\\1-grams:":
        raise text.fault(f"expected lines ngram n=count, then \\1-grams:, found {shown(line)}")
    return counts


def _unigrams(
    text: Lines, count: int, *, last: bool
) -> tuple[Vocabulary, NDArray[np.float32], NDArray[np.float32]]:
    """The vocabulary, and the probabilities and back-offs (V,; none if `last`) of words by id."""
    words, probs, backoffs, first = list[bytes](), list[float](), list[float](), text.number + 1
    while len(words) < count:
        for line in text.block(min(count - len(words), _BLOCK)) or [b""]:
            prob, (word,), backoff = _entry(text, line, first, 1, count, len(words), last)
            words.append(word)
            probs.append(prob)
            backoffs.append(backoff)
    rows: dict[bytes, int] = {}
    for row, token in enumerate(words):
        word = SPECIAL[UNKNOWN] if token in _UNKNOWN_FORMS else token
        if rows.setdefault(word, row) != row:
            raise text.fault(f"expected each word once, found {shown(token)} again", first + row)
    for mark in (START, END):
        if SPECIAL[mark] not in rows:
            raise text.fault(f"expected {SPECIAL[mark].decode()} among the 1-grams, found none")
    unknown = rows.pop(SPECIAL[UNKNOWN], count)  # the last row, if the file has none
    marks = [rows.pop(SPECIAL[mark]) for mark in (START, END)]
    by_id = np.array([unknown, *marks, *rows.values()])
    columns = [*probs, UNKNOWN_MISSING], [*backoffs, 0.0]
    log10s, weights = (np.array(column, np.float32)[by_id] for column in columns)
    return Vocabulary(tuple(rows)), log10s, weights


def _places(
    words: NDArray[np.int32], ngrams: NGrams, first: int
) -> tuple[Nodes, NDArray[np.int64]]:
    """The parents (m,) of n-grams (m, n), from line `first`, and their order by (parent, word)."""
    n, parents = words.shape[1], ngrams.nodes(words[:, :-1])
    if (parents < 0).any():
        raise ArpaError(
            f"expected the first {n - 1} words of this {n}-gram among the {n - 1}-grams, found "
            "none; have the file written by a program that keeps them, such as lmplz",
            first + int(np.argmax(parents < 0)),
        )
    keys = parents.astype(np.int64) * ngrams.n_words + words[:, -1]
    order = np.argsort(keys)
    again = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(again):
        row = int(np.maximum(order[again], order[again + 1]).min())
        message = f"expected each {n}-gram once, found this {n}-gram again; remove a line"
        raise ArpaError(message, first + row)
    return parents, order


def arpa(model: NGramModel) -> Iterator[bytes]:
    """The file in blocks of lines; numbers have the 9 digits that give back the same float32."""
    ngrams = model.ngrams
    if not model.normalised:
        yield STUPID_BACKOFF + b" %.9g: scores, not probabilities\n\n" % 10**model.unseen
    if isinstance(model.vocabulary, SubwordVocabulary):
        yield PIECES + json.dumps(model.vocabulary.as_json(), ensure_ascii=False).encode() + b"\n\n"
    yield b"\\data\\\n"
    yield b"".join(b"ngram %d=%d\n" % pair for pair in enumerate(ngrams.counts, 1))
    words, parents = [*SPECIAL, *model.vocabulary.words], ngrams.parents()
    for n in range(1, ngrams.order + 1):
        yield b"\n\\%d-grams:\n" % n
        level = ngrams.level(n)
        for begin in range(level.start, level.stop, _BLOCK):
            block = slice(begin, min(begin + _BLOCK, level.stop))
            nodes, columns = np.arange(block.start, block.stop), []
            for _ in range(n):
                columns.append(map(words.__getitem__, ngrams.words[nodes].tolist()))
                nodes = parents[nodes]
            texts = map(b" ".join, zip(*reversed(columns), strict=True))
            probs = model.log10_probs[block].tolist()
            if n < ngrams.order:
                entries = zip(probs, texts, model.log10_backoffs[block].tolist(), strict=True)
                yield b"".join(b"%.9g\t%s\t%.9g\n" % entry for entry in entries)
            else:
                yield b"".join(b"%.9g\t%s\n" % entry for entry in zip(probs, texts, strict=True))
    yield b"\n\\end\\\n"
