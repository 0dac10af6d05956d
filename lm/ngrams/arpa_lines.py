"""The lines of an ARPA file, one n-gram a line, and what may be wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lm.ngrams import NGramError
from lm.ngrams.arpa_kernel import WordTable, read_ngrams

MOST_LOG10 = 300.0  # size of a logarithm; a word's score must have an exponential
_BLOCK = 1 << 16  # lines
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHOWN = 60  # bytes of a line in a message
_CURE = "is the file complete, and in ARPA format? have it written again"
_SAY = "as the counts at the top of the file say"

Log10s = NDArray[np.float32]


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
            if found := line.strip(b" \t\r"):
                return found
        return b""

    def block(self, most: int) -> list[bytes]:
        """The next lines, `most` at most."""
        found = list(islice(self._lines, most))
        self.number += len(found)
        return found

    def expect(self, mark: bytes, where: str) -> None:
        """Read a line that a part of the file begins with; ArpaError if it is another one."""
        if (found := self.filled()) != mark:
            raise self.fault(
                f"expected {mark.decode()} after {where}, {_SAY}, found {shown(found)}"
            )

    def fault(self, message: str, line: int | None = None) -> ArpaError:
        """An error at a line, or at the last one read."""
        return ArpaError(f"{message}; {_CURE}", max(1, line or self.number))


def words_and_weights(text: Lines, count: int, *, last: bool) -> tuple[list[bytes], Log10s, Log10s]:
    """The next `count` lines as 1-grams: their words, probabilities and back-offs (m,).

    last: whether the file has no longer n-grams, and so no back-offs.
    """
    words, probs, backoffs, first = list[bytes](), list[float](), list[float](), text.number + 1
    while len(words) < count:
        lines = text.block(min(count - len(words), _BLOCK))
        for line in lines or [b""]:
            prob, (word,), backoff = _entry(text, line, first, 1, count, len(words), last)
            words.append(word)
            probs.append(prob)
            backoffs.append(backoff)
    return words, np.array(probs, np.float32), np.array(backoffs, np.float32)


def ngrams_and_weights(
    text: Lines, n: int, count: int, ids: Mapping[bytes, int], *, last: bool
) -> tuple[NDArray[np.int32], Log10s, Log10s]:
    """The next `count` lines as n-grams: ids (m, n), probabilities and back-offs (m,).

    Compiled for lines in the form that programs write; memory grows with the lines that are there.
    """
    table, first, done = WordTable.of(ids), text.number + 1, 0
    found: list[tuple[NDArray[np.int32], Log10s, Log10s]] = []
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
                prob, own, backoff = _entry(text, line, first, n, count, done + row, last)
                if unknown := [word for word in own if word not in ids]:
                    raise text.fault(
                        f"expected words that are 1-grams, found {shown(unknown[0])}",
                        first + done + row,
                    )
                words[row], probs[row] = [ids[word] for word in own], prob
                backoffs[row : row + 1] = backoff
                row, begin = row + 1, begin + len(line) + 1
        found.append((words, probs, backoffs))
        done += m
    empty = np.zeros((0, n), np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32)
    words, probs, backoffs = map(np.concatenate, zip(empty, *found, strict=True))
    return words, probs, backoffs


def _entry(
    text: Lines, line: bytes, first: int, n: int, count: int, done: int, last: bool
) -> tuple[float, list[bytes], float]:
    """The logarithm, words and back-off of a line; ArpaError, with what is wrong.

    It is the line after `done` of the `count` n-grams of order n, whose first line is `first`.
    """
    fields = [field for field in line.replace(b"\t", b" ").strip(b" \r").split(b" ") if field]
    words, number = f"{n} word{'s' if n > 1 else ''}", first + done
    if not fields or line.startswith(b"\\"):
        what = "a blank line or the end of the file" if not fields else shown(line)
        message = f"expected {count:,} {n}-grams, {_SAY}, found {done:,}, then {what}"
        raise text.fault(message, number)
    if len(fields) not in ((n + 1,) if last else (n + 1, n + 2)):
        form = f"a logarithm and {words}" if last else f"a logarithm, {words}, perhaps a back-off"
        raise text.fault(f"expected {form}, found {shown(line)}", number)
    prob = _logarithm(fields[0])
    if prob is None or prob > 0:
        limits = f"a base-10 logarithm from -{MOST_LOG10:g} to 0"
        raise text.fault(f"expected {limits}, found {shown(fields[0])}", number)
    backoff = _logarithm(fields[n + 1]) if len(fields) > n + 1 else 0.0
    if backoff is None:
        limits = f"a base-10 logarithm of at most {MOST_LOG10:g} in size"
        message = f"expected the back-off to be {limits}, found {shown(fields[-1])}"
        raise text.fault(message, number)
    return prob, fields[1 : n + 1], backoff


def _logarithm(token: bytes) -> float | None:
    """A number in ASCII decimals of a size up to `MOST_LOG10`."""
    value = float(token) if _NUMBER.fullmatch(token) else np.inf
    return value if abs(value) <= MOST_LOG10 else None


def shown(line: bytes) -> str:
    """A line or a part of it, quoted and not too long, for a message."""
    return repr(line[:_SHOWN].decode(errors="replace")) if line else "the end of the file"
