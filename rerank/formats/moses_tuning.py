"""Files of Moses' extractor: features and statistics of hypotheses, in blocks of a sentence.

    FEATURES_TXT_BEGIN_0 <sentence> <n> <F> LM0_0 TM0_0 TM0_1 …
    v v v [tag_np=v …]                                             n lines
    FEATURES_TXT_END_0

    SCORES_TXT_BEGIN_0 <sentence> <n> 9 BLEU
    c1 t1 c2 t2 c3 t3 c4 t4 reflen                                 n lines
    SCORES_TXT_END_0

Line j of a block is the same hypothesis in both files. A sentence may have several blocks. Moses
accepts `nan` and lines with too few features, and then tunes weights that are useless; here a line
that does not fit its block is refused.

Source: mert/FeatureArray.cpp, FeatureStats.cpp, ScoreArray.cpp and BleuScorer.cpp of
https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import Label
from rerank.errors import InputError, shown
from rerank.formats.token_kernel import read_numbers
from rerank.formats.tokens import Place, number
from rerank.notices import Notices

_COUNT = re.compile(rb"[0-9]{1,9}")
_COLUMN = re.compile(r"(.*)_([0-9]{1,9})")  # LM0_0: the name of a function, and which of its values
_OURS = [0, 2, 4, 6, 1, 3, 5, 7, 8]  # columns of theirs in the order of `rerank.metrics.bleu`
_WIDTH = len(_OURS)


@dataclass(frozen=True, slots=True, eq=False)
class ExtractorBlock:
    """The n hypotheses of a block.

    line: number of the block's first line in the file; values: (n, W), features, or statistics in
    the order of `rerank.metrics.bleu`; sparse: sparse features by row, of rows that have any;
    labels: of features, their widths sum to W.
    """

    line: int
    sentence: int
    values: NDArray[np.float64]
    sparse: Mapping[int, Mapping[str, float]]
    labels: tuple[Label, ...] = ()

    @property
    def n(self) -> int:
        """Number of hypotheses."""
        return len(self.values)


def feature_blocks(
    lines: Iterable[bytes], notices: Notices, *, source: str = ""
) -> Iterator[ExtractorBlock]:
    """The blocks of features.dat; `InputError` for another file. O(bytes)."""
    reader = _Reader(lines, "FEATURES", source, notices)
    names: list[bytes] = []
    labels: tuple[Label, ...] = ()
    for sentence, n, width, header in reader.headers("<names of the features>"):
        line = reader.line
        if len(header) != width:
            raise reader.fault(f"expected {width} names of features, found {len(header)}")
        if not names:
            names, labels = header, _labels_of(header, reader)
        elif header != names:
            pairs = enumerate(zip_longest(names, header), 1)
            place, (ours, theirs) = next((j, pair) for j, pair in pairs if pair[0] != pair[1])
            raise reader.fault(
                f"expected the features of the first block, {len(names)} with {_shown(ours)} at "
                f"place {place}, found {width} with {_shown(theirs)} at place {place}; "
                "tune lists of one system at a time"
            )
        values, sparse = reader.rows(n, width, sentence, "feature values")
        if sparse:
            reader.note("sparse-features", line=line + 1 + min(sparse), count=len(sparse))
        yield ExtractorBlock(line, sentence, values, sparse, labels)


def statistics_blocks(
    lines: Iterable[bytes], notices: Notices, *, source: str = ""
) -> Iterator[ExtractorBlock]:
    """The blocks of scores.dat for BLEU; `InputError` for another file. O(bytes)."""
    reader = _Reader(lines, "SCORES", source, notices)
    for sentence, n, width, header in reader.headers("BLEU"):
        line = reader.line
        if header != [b"BLEU"] or width != _WIDTH:
            raise reader.fault(
                f"expected {_WIDTH} statistics of BLEU, found {width} of "
                f"{shown(b' '.join(header))}; run extractor with the scorer type BLEU"
            )
        values, sparse = reader.rows(n, _WIDTH, sentence, "statistics")
        if sparse:
            message = "expected statistics, found 'name=value'"
            raise reader.fault(message, line + 1 + min(sparse))
        counts = (values == np.rint(values)) & (values >= 0) & (values < 2**31)
        above = values[:, 0:8:2] > values[:, 1:8:2]
        wrong = np.flatnonzero(~counts.all(axis=1) | above.any(axis=1))
        if len(wrong):
            raise reader.fault(
                "expected whole numbers c1 t1 … c4 t4 reflen, no c above its t, found "
                f"{values[wrong[0]].tolist()}; run extractor with reflen:closest",
                line + 1 + int(wrong[0]),
            )
        yield ExtractorBlock(line, sentence, values[:, _OURS], sparse)


def _shown(name: bytes | None) -> str:
    return "no more" if name is None else shown(name)


def _labels_of(names: Sequence[bytes], place: Place) -> tuple[Label, ...]:
    """Labels of the columns that extractor calls `LM0_0 TM0_0 TM0_1`: LM0, and TM0 of two values.

    `_0 _1`, from lists without labels, are F0 and F1, as in the lists. A name without a number is
    a label of one value. `InputError` for a duplicate or misplaced column.
    """
    counts: Counter[str] = Counter()
    for column in names:
        name, number = column.decode(), "0"
        if match := _COLUMN.fullmatch(name):
            name, number = match[1], match[2]
            if not name:
                name, number = f"F{number}", "0"
        if int(number) != counts[name]:
            raise place.fault(
                f"expected {name}_{counts[name]} among the names of the features, found "
                f"{shown(column)}; names are LM0_0 TM0_0 TM0_1, as extractor writes them"
            )
        if counts[name] and next(reversed(counts)) != name:
            raise place.fault(
                f"expected the values of {name} side by side, found other names before "
                f"{shown(column)}"
            )
        counts[name] += 1
    return tuple(Label(name, width) for name, width in counts.items())


class _Reader(Place):
    """Reads a file block by block and counts its lines."""

    def __init__(self, lines: Iterable[bytes], what: str, source: str, notices: Notices) -> None:
        super().__init__(source, notices, 0)
        self._lines = iter(lines)
        self._begin = f"{what}_TXT_BEGIN_0".encode()
        self._end = f"{what}_TXT_END_0".encode()
        self._binary = f"{what}_BIN_BEGIN_0".encode()

    def headers(self, tail: str) -> Iterator[tuple[int, int, int, list[bytes]]]:
        """The first line of each block, which is the current one; call `rows` after each.

        Sentence, number of hypotheses, width of a line, and the tokens after these.
        """
        form = f"{self._begin.decode()} <sentence> <hypotheses> <numbers> {tail}"
        for text in self._lines:
            self.line += 1
            tokens = text.split()
            if not tokens:
                self.note("blank-line")
                continue
            if tokens[0] == self._binary:
                raise self.fault(
                    "expected text, found the binary form; run extractor without its binary option"
                )
            numbers = tokens[1:4]
            if (
                tokens[0] != self._begin
                or len(tokens) < 5
                or not all(map(_COUNT.fullmatch, numbers))
            ):
                raise self.fault(f"expected '{form}', found {shown(text)}")
            sentence, n, width = map(int, numbers)
            yield sentence, n, width, tokens[4:]
        if self.line == 0:
            raise self.fault(f"expected '{form}', found no line")

    def rows(
        self, n: int, width: int, sentence: int, what: str
    ) -> tuple[NDArray[np.float64], dict[int, dict[str, float]]]:
        """Values (n, width) and sparse features by row, of the n lines of a block."""
        lines, first = list(islice(self._lines, n + 1)), self.line + 1
        block, end = f"{n} hypotheses of sentence {sentence}", self._end.decode()
        values, others = read_numbers(lines[:n], width)
        sparse: dict[int, dict[str, float]] = {}
        for row in others:
            self.line, tokens = first + row, lines[row].split()
            if tokens == [self._end]:
                raise self.fault(f"expected {block} as the block's first line says, found {row}")
            dense, named = list[float](), dict[str, float]()
            for token in tokens:
                head, mark, digits = token.rpartition(b"=")  # a name may contain `=`
                name = head.decode() if mark else f"value {len(dense) + 1}"
                if not name or name in named:
                    raise self.fault(
                        f"expected a sparse feature once, name=value, found {shown(token)}"
                    )
                try:
                    value = number(digits, name)
                except InputError as fault:
                    cure = "correct the list that extractor has read"
                    raise self.fault(f"{fault}; {cure}") from None
                if mark:
                    named[name] = value
                else:
                    dense.append(value)
            if len(dense) != width:
                raise self.fault(
                    f"expected {width} {what} as the block's first line says, found {len(dense)}"
                )
            values[row] = dense
            if named:
                sparse[row] = named
        self.line = first + len(lines) - 1
        if len(lines) <= n:
            raise self.fault(
                f"expected {block} and {end}, found the end of the file after {len(lines)}; "
                "is the file cut short?"
            )
        if lines[n].strip() != self._end:
            raise self.fault(f"expected {end} after {block}, found {shown(lines[n])}")
        return values, sparse
