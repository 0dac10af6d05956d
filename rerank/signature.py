"""The version, and the signature: a run in one line, for logs and papers.

It has everything that the choices of a run depend on.

After sacrebleu's signatures: `rerank|search:viterbi|exact:yes|k:100|ctx:1|lm:codclm=ab12cd34|
w:9f3e01ab|docs:77aa10bc|v:0.1.0`. Two runs with one signature on the same lists make the same
choices, but for ties within the stated error of the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rerank.files.paths import FilePath

__version__ = "0.1.0"
LENGTH = 8  # hexadecimal digits of a digest


def signature(parts: Mapping[str, object]) -> str:
    """`rerank|key:value|…|v:version` of the parts that are not None, in their order."""
    known = [f"{key}:{_plain(value)}" for key, value in parts.items() if value is not None]
    return "|".join(["rerank", *known, f"v:{__version__}"])


def short_digest(path: FilePath | None) -> str | None:
    """First digits of a file's SHA-256; None for what cannot be read a second time."""
    from rerank.files.lines import digest

    if path is None or not Path(path).is_file():
        return None
    return digest(path).removeprefix("sha256:")[:LENGTH]


def _plain(value: object) -> str:
    """A value without the characters that divide a signature."""
    text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    return text.replace("|", "_").replace(":", "=")
