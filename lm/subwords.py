"""Vocabularies of subword units: each word of a text is read as one or more pieces.

A word is `▁` and its characters, as in SentencePiece (Kudo & Richardson 2018); no piece crosses a
space. A character that is in no piece is read as its UTF-8 bytes, so that every text has pieces,
and different words have different pieces unless they are normalised. The segmentation is that of a
unigram model (Kudo 2018, arXiv:1804.10959, section 3.1) or byte-pair encoding (Sennrich et al.
2016, arXiv:1508.07909). Pieces are learnt by the package `tokenizers`, or read from a file of
SentencePiece; to segment a text needs neither.
"""

from __future__ import annotations

import json
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lm.side_information import SideText
from lm.vocabulary import SPECIAL, UNKNOWN, Vocabulary

SPACE = "▁"  # before each word
BYTES = tuple(b"<0x%02X>" % byte for byte in range(256))  # names of the pieces of single bytes
NORMALISATIONS: Mapping[str, Callable[[str], str]] = {
    "identity": str,
    "nfkc": lambda word: unicodedata.normalize("NFKC", word),
    "nfkc_cf": lambda word: unicodedata.normalize("NFKC", word.casefold()),
}
_LITERAL = "\ud800"  # in place of `▁` within a word; no piece has it
_BYTE = re.compile(rb"<0x[0-9A-F]{2}>")
_UNKNOWN_PENALTY = 10.0  # of a character in no piece, below the least score, as in SentencePiece
_MOST_CACHED = 1 << 18  # words whose pieces are kept
_COVERED = 0.9995  # share of the characters of a text that pieces are learnt of
_CODEC = "utf-8", "surrogateescape"


class Scores(NamedTuple):
    """Scores of pieces, the length of the longest piece, and the least score (0 without pieces)."""

    of: Mapping[str, float]
    longest: int
    least: float


class SubwordError(ValueError):
    """A text of which no such pieces can be learnt, or a file without usable pieces."""


@dataclass(frozen=True, slots=True)
class SubwordVocabulary(Vocabulary):
    """Pieces and their ids; every word has pieces, but `<unk>`, which stands for unknown words.

    words: the pieces, single bytes among them; scores: for each piece, a natural-log probability
    (unigram) or the preference of the merge that makes it (bpe); segmentation, normalisation: names
    of `SEGMENTATIONS` and `NORMALISATIONS`.
    """

    scores: tuple[float, ...]
    segmentation: str = "unigram"
    normalisation: str = "identity"
    _scores: Scores = field(init=False, repr=False, compare=False)
    _known: dict[bytes, list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Vocabulary.__post_init__(self)
        if self.segmentation not in SEGMENTATIONS or self.normalisation not in NORMALISATIONS:
            raise ValueError(f"no segmentation {self.segmentation!r}, {self.normalisation!r}")
        if not all(name in self.ids for name in BYTES):
            raise ValueError("expected a piece for each byte")
        pairs = zip(self.words, self.scores, strict=True)
        scores = {piece.decode(): float(s) for piece, s in pairs if not _BYTE.fullmatch(piece)}
        if not np.isfinite([*scores.values(), 0.0]).all():
            raise ValueError("expected finite scores of pieces")
        longest, least = max(map(len, scores), default=1), min(scores.values(), default=0.0)
        object.__setattr__(self, "_scores", Scores(scores, longest, least))
        object.__setattr__(self, "_known", {})

    @classmethod
    def of(
        cls,
        scores: Mapping[str, float],
        text: Mapping[bytes, int],
        segmentation: str,
        normalisation: str = "identity",
    ) -> SubwordVocabulary:
        """The vocabulary of bytes and of pieces of single words, by their frequency in a text."""
        names = {*SPECIAL, b"<UNK>"}  # the last is <unk> in n-gram models
        kept = {
            name: score
            for piece, score in scores.items()
            if SPACE not in piece[1:]
            and (name := piece.encode()).split() == [name]  # no space, as of text in lines
            and not _BYTE.fullmatch(name)
            and name not in names
        }
        kept |= dict.fromkeys(BYTES, 0.0)
        unordered = cls(tuple(kept), tuple(kept.values()), segmentation, normalisation)
        counts: Counter[int] = Counter()
        for word, n in text.items():
            for i in unordered.pieces(word):
                counts[i - len(SPECIAL)] += n
        order = sorted(range(len(kept)), key=lambda i: -counts[i])
        return unordered.ordered([unordered.words[i] for i in order])

    def ordered(self, pieces: Sequence[bytes]) -> SubwordVocabulary:
        """The vocabulary with its pieces in this order; ValueError for other pieces."""
        scores = dict(zip(self.words, self.scores, strict=True))
        if {*pieces} != scores.keys():
            raise ValueError("expected the same pieces in another order")
        ordered = tuple(scores[piece] for piece in pieces)
        return type(self)(tuple(pieces), ordered, self.segmentation, self.normalisation)

    def __contains__(self, word: object) -> bool:
        """True but for `<unk>`, `<s>` and `</s>`: no other word is unknown."""
        return word not in SPECIAL

    def knows(self, word: bytes) -> bool:
        """Whether no more than half of the pieces of a word are single bytes."""
        pieces = self.decode(self.pieces(word))
        return 2 * sum(bool(_BYTE.fullmatch(piece)) for piece in pieces) <= len(pieces)

    @property
    def of_characters(self) -> bool:
        """False: pieces are made of words."""
        return False

    def pieces(self, word: bytes) -> list[int]:
        """Ids of the pieces of a word."""
        if word not in self._known:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            self._known[word] = self._segmented(word)
        return self._known[word]

    def _segmented(self, word: bytes) -> list[int]:
        """Ids of the pieces of a word that is not cached; `<unk>` in a text is no word."""
        if word in SPECIAL:
            return [UNKNOWN]
        text = NORMALISATIONS[self.normalisation](word.decode(*_CODEC).replace(SPACE, _LITERAL))
        text = SPACE + text.replace(" ", SPACE)  # of a normalised no-break space
        ids, segmented = self.ids, list[int]()
        for piece in SEGMENTATIONS[self.segmentation](text, self._scores):
            if piece in self._scores.of:
                segmented.append(ids[piece.encode()])
            else:
                character = SPACE.encode() if piece == _LITERAL else piece.encode(*_CODEC)
                segmented += [ids[BYTES[byte]] for byte in character]
        return segmented

    def encode(self, words: Iterable[bytes]) -> list[int]:
        """Ids of the pieces of words, word by word."""
        return [i for word in words for i in self.pieces(word)]

    def numbered(
        self, words: list[bytes], tokens: NDArray[np.int32], sentences: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Pieces (N,) in place of the words that `tokens` are indices of, and their offsets."""
        rows = [self.pieces(word) for word in words]
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int32)
        of_words = SideText(flat, np.cumsum([0, *map(len, rows)]))
        joined = of_words.take(tokens.astype(np.int64))
        return joined.tokens, joined.sentences[sentences]

    def encode_lines(self, text: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids (N,) of the pieces of LF-ended lines, and the lines' offsets (lines + 1,) in them."""
        index = {b"": 0, b"\n": 1}
        words = text.replace(b"\n", b" \n ").split(b" ")
        numbers = np.array([index.setdefault(word, len(index)) for word in words], np.int32) - 2
        is_word = numbers >= 0
        offsets = np.concatenate([[0], np.cumsum(is_word)[numbers == -1]])
        return self.numbered(list(index)[2:], numbers[is_word], offsets)

    def line(self, ids: Iterable[int]) -> bytes:
        """The words that pieces make up: bytes not of UTF-8 are replaced, a blank line is `▁`."""
        parts = []
        for piece in self.decode(ids):
            if _BYTE.fullmatch(piece):
                parts.append(bytes([int(piece[3:5], 16)]))
            else:
                parts.append(b" " * (piece in SPECIAL) + piece.replace(SPACE.encode(), b" "))
        text = b"".join(parts).replace(b"\n", b" ").strip(b" ").decode(errors="replace").encode()
        return SPACE.encode() if not text or text.isspace() else text

    def as_json(self) -> Any:
        """The vocabulary as JSON values."""
        return {
            "segmentation": self.segmentation,
            "normalisation": self.normalisation,
            "pieces": [piece.decode() for piece in self.words],
            "scores": list(self.scores),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SubwordVocabulary:
        """The vocabulary of `as_json`; ValueError, TypeError or KeyError for other values."""
        pieces = tuple(piece.encode() for piece in values["pieces"])
        scores = tuple(map(float, values["scores"]))
        return cls(pieces, scores, str(values["segmentation"]), str(values["normalisation"]))


# Segmentation of `▁` and a word, of which characters that are in no piece stay alone


def _most_probable(text: str, known: Scores) -> list[str]:
    """The segmentation of the largest sum of scores (Viterbi); O(length · longest) time.

    Of equal sums, that whose last piece is the longest, and so on towards the first.
    """
    scores, longest, least = known
    unknown = least - _UNKNOWN_PENALTY
    best, begin = [0.0], [0]
    for end in range(1, len(text) + 1):
        top, at = best[end - 1] + unknown, end - 1
        if text[end - 1] in scores:
            top = -np.inf
        for start in range(max(0, end - longest), end):
            score = scores.get(text[start:end])
            if score is not None and best[start] + score > top:
                top, at = best[start] + score, start
        best.append(top)
        begin.append(at)
    pieces, end = list[str](), len(text)
    while end:
        pieces.append(text[begin[end] : end])
        end = begin[end]
    return pieces[::-1]


def _merged(text: str, known: Scores) -> list[str]:
    """Byte-pair encoding: neighbours that make up the piece of the largest score are merged.

    Of equal scores the first from the left; O(length · log length) time for each merge of a pair.
    """
    units, scores = list(text), known.of
    after, before = [*range(1, len(units) + 1)], [*range(-1, len(units) - 1)]
    heap: list[tuple[float, int, str]] = []

    def propose(i: int) -> None:
        if i >= 0 and after[i] < len(units):
            merged = units[i] + units[after[i]]
            if merged in scores:
                heappush(heap, (-scores[merged], i, merged))

    for i in range(len(units)):
        propose(i)
    while heap:
        _, i, merged = heappop(heap)
        j = after[i]
        if not units[i] or j == len(units) or units[i] + units[j] != merged:
            continue  # a unit of the pair has been merged since
        units[i], units[j], after[i] = merged, "", after[j]
        if after[i] < len(units):
            before[after[i]] = i
        propose(before[i])
        propose(i)
    return [unit for unit in units if unit]


SEGMENTATIONS: Mapping[str, Callable[[str, Scores], list[str]]] = {
    "unigram": _most_probable,
    "bpe": _merged,
}


# Learning


def learn(segmentation: str, size: int, text: Mapping[bytes, int]) -> SubwordVocabulary:
    """A vocabulary of `size` pieces, learnt by the package `tokenizers`.

    text: words and how often each occurs. Characters beyond the most frequent ones, `_COVERED` of
    the text, are read as bytes. SubwordError for a size that the text does not allow. Unigram
    models of equal texts may differ in pieces of equal likelihood.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    most, text = size - len(BYTES), {w: n for w, n in text.items() if w not in SPECIAL}
    characters: Counter[str] = Counter()
    for word, n in text.items():
        for character in SPACE + word.decode(*_CODEC):
            characters[character] += n
    kept, left = set[str](), _COVERED * characters.total()
    for character, n in characters.most_common():
        if left > 0:
            kept.add(character)
        left -= n
    if most < len(kept):
        raise SubwordError(
            f"expected {len(BYTES)} bytes and the {len(kept):,} characters of the training text "
            f"among the pieces, found {size:,} pieces; choose {len(BYTES) + len(kept)} or more"
        )
    parts = (
        ("".join(c if c in kept else " " for c in SPACE + word.decode(*_CODEC)) + " ") * n
        for word, n in text.items()
    )
    unigram = segmentation == "unigram"
    tokenizer = Tokenizer(models.Unigram() if unigram else models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    make = trainers.UnigramTrainer if unigram else trainers.BpeTrainer
    trainer = make(vocab_size=most, show_progress=False, special_tokens=[])
    tokenizer.train_from_iterator(parts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    if unigram:
        scores = {piece: round(score, 6) for piece, score in model["vocab"]}
    else:
        scores = dict.fromkeys(sorted(kept), 0.0)
        ranks = [*enumerate(map("".join, model["merges"]), 1)]
        scores |= {piece: -float(rank) for rank, piece in reversed(ranks)}
    if len(scores) < most:
        raise SubwordError(
            f"the training text allows no more than {len(BYTES) + len(scores):,} pieces; choose "
            "this number or fewer"
        )
    return SubwordVocabulary.of(scores, text, segmentation)


# Files of SentencePiece: messages of protocol buffers, encoded as in
# https://protobuf.dev/programming-guides/encoding/, of which those fields of
# `sentencepiece_model.proto` are read that a segmentation needs. Rules of normalisation that are
# named after NFKC are that of Unicode here; the file's table is not read.

MOST_BYTES = 64 << 20
_PIECES, _TRAINER, _NORMALISER = 1, 2, 3  # fields of the message
_MODEL_TYPE, _SPLIT_BY_SPACE, _SPACE_AS_SUFFIX = 3, 22, 24  # of the trainer
_DUMMY_PREFIX = 3  # of the normaliser: ▁ before the first word, too
_TYPES = {1: "unigram", 2: "bpe"}
_NORMAL, _USER_DEFINED = 1, 4  # types of pieces that stand for text
_FIXED = {1: 8, 5: 4}  # bytes of the types of fields that are not varints
Field = int | bytes


def read_pieces(raw: bytes, text: Mapping[bytes, int]) -> SubwordVocabulary:
    """The vocabulary of a `.model` file of SentencePiece, with a piece for each byte.

    text: words and how often each occurs, by which pieces are ordered. SubwordError for another
    file, or an unknown segmentation or normalisation.
    """
    try:
        fields = [*_fields(raw)]
        parts = [{n: v for n, v in _fields(_message(value))} for f, value in fields if f == _PIECES]
        trainer, normaliser = (
            {n: v for f, value in fields if f == kind for n, v in _fields(_message(value))}
            for kind in (_TRAINER, _NORMALISER)
        )
        scores: dict[str, float] = {}
        for part in parts:
            if part.get(3, _NORMAL) in (_NORMAL, _USER_DEFINED):
                (score,) = struct.unpack("<f", _message(part.get(2, bytes(4))))
                scores[_message(part[1]).decode()] = score
        segmentation = _TYPES.get(int(trainer.get(_MODEL_TYPE, 1)))
        name = _message(normaliser.get(1, b"")).decode(errors="replace")
    except (ValueError, KeyError, IndexError, struct.error):
        raise SubwordError("not a model file of SentencePiece; give its .model file") from None
    if not scores:
        raise SubwordError("expected pieces in a model file of SentencePiece, found none")
    if "" in scores or not np.isfinite([*scores.values()]).all():
        raise SubwordError(
            "expected pieces of one character or more with finite scores, found an empty one, NaN "
            "or infinity; copy the model file again, or train another"
        )
    if segmentation is None or trainer.get(_SPACE_AS_SUFFIX):
        raise SubwordError(
            "expected a unigram or BPE model with ▁ before words, found another kind; train one "
            "with --model_type unigram or bpe"
        )
    for part, number, option in (
        (normaliser, _DUMMY_PREFIX, "add_dummy_prefix"),
        (trainer, _SPLIT_BY_SPACE, "split_by_whitespace"),
    ):
        if not part.get(number, 1):
            raise SubwordError(
                "expected a model whose pieces are of one word each, with ▁ before every word, "
                f"found {option}=false; train one with its default"
            )
    normalisation = name.removeprefix("nmt_") or "identity"
    if normalisation not in NORMALISATIONS:
        raise SubwordError(
            f"expected a normalisation of {', '.join(NORMALISATIONS)}, found {name!r:.60}; train "
            "one with a known name"
        )
    return SubwordVocabulary.of(scores, text, segmentation, normalisation)


def _message(value: Field) -> bytes:
    """A field that has bytes; ValueError for a number."""
    if isinstance(value, int):
        raise ValueError(value)
    return value


def _fields(raw: bytes) -> Iterator[tuple[int, Field]]:
    """Numbers and values of the fields of a message; IndexError or ValueError for none."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 63:
                return value

    while at < len(raw):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = varint() if kind == 2 else _FIXED[kind]
        if not number or at + size > len(raw):
            raise ValueError(number)
        yield number, raw[at : at + size]
        at += size
