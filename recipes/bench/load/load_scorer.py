"""A scorer of order 0 that stands for any: a number made of the text alone."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rerank import Document


class TextHash:
    """CRC-32 of a hypothesis, scaled to −10 … 0."""

    order = 0
    digest = "crc32"  # so that scores are cached

    def score(self, document: Document) -> list[list[float]]:
        """T lists (K_t,) of numbers."""
        return [
            [-10 * zlib.crc32(text.encode()) / 0xFFFFFFFF for text in texts]
            for texts in document.texts
        ]
