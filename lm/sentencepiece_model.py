"""The pieces of a `.model` file of SentencePiece, a message of protocol buffers.

Read are those fields of `sentencepiece_model.proto` that a segmentation needs, and the encoding is
that of https://protobuf.dev/programming-guides/encoding/. Of the rules by which SentencePiece
normalises a text, those named after NFKC are that of Unicode here, and the file's own table is not
read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from lm.subwords import SubwordError, SubwordVocabulary

MOST_BYTES = 64 << 20
_PIECES, _TRAINER, _NORMALISER = 1, 2, 3  # fields of the message
_MODEL_TYPE, _SPLIT_BY_SPACE, _SPACE_AS_SUFFIX = 3, 22, 24  # of the trainer
_DUMMY_PREFIX = 3  # of the normaliser: ▁ before the first word, too
_TYPES = {1: "unigram", 2: "bpe"}
_NORMAL, _USER_DEFINED = 1, 4  # types of pieces that stand for text
_NORMALISATIONS = {
    b"": "identity",
    b"identity": "identity",
    b"nfkc": "nfkc",
    b"nmt_nfkc": "nfkc",
    b"nfkc_cf": "nfkc_cf",
    b"nmt_nfkc_cf": "nfkc_cf",
}
_FIXED = {1: 8, 5: 4}  # bytes of the types of fields that are not varints
Field = int | bytes


def read_pieces(raw: bytes, text: Mapping[bytes, int]) -> SubwordVocabulary:
    """The vocabulary of a file, most frequent pieces first in a text, with a piece for each byte.

    text: words, and how often it has each. SubwordError for another file, or one whose segmentation
    or normalisation is not known.
    """
    try:
        fields = [*_fields(raw)]
        parts = [{n: v for n, v in _fields(_message(own))} for f, own in fields if f == _PIECES]
        trainer, normaliser = (
            {n: v for f, own in fields if f == kind for n, v in _fields(_message(own))}
            for kind in (_TRAINER, _NORMALISER)
        )
        scores: dict[str, float] = {}
        for part in parts:
            if part.get(3, _NORMAL) in (_NORMAL, _USER_DEFINED):
                (score,) = struct.unpack("<f", _message(part.get(2, bytes(4))))
                scores[_message(part[1]).decode()] = score
        name = _message(normaliser.get(1, b""))
    except (ValueError, KeyError, IndexError, struct.error):
        raise SubwordError("not a model file of SentencePiece; give its .model file") from None
    if not scores:
        raise SubwordError("expected pieces in a model file of SentencePiece, found none")
    segmentation = _TYPES.get(int(trainer.get(_MODEL_TYPE, 1)))
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
                f"found one trained with {option}=false; train one with its default"
            )
    if name not in _NORMALISATIONS:
        raise SubwordError(
            f"expected a normalisation of {', '.join(n.decode() for n in _NORMALISATIONS if n)}, "
            f"found {name.decode(errors='replace')!r:.60}; train one with a known name"
        )
    return SubwordVocabulary.of(scores, text, segmentation, _NORMALISATIONS[name])


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
