"""The hash of histories, in Python's whole numbers: the definition that others are tested with."""

from collections.abc import Sequence

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / φ
MASK = (1 << 64) - 1


def first_slot(words: Sequence[int], size: int, vocabulary: int) -> int:
    """Where the row of a history begins: the last word first, xor and multiplied, modulo 2^64."""
    mixed = 0
    for word in words:
        mixed = (mixed ^ (word + 1)) * GOLDEN & MASK
        mixed ^= mixed >> 32
    return mixed % (1 << 62) % (size - vocabulary + 1)
