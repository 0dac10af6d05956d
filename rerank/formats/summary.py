"""The summary of a decoding, as `decode --summary` writes it, read back."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.notices import Notices

_FIGURES = ("score", "baseline_score", "gap")


def read_summary(path: str | Path, documents: Collection[str], notices: Notices) -> dict[str, Any]:
    """A summary of these documents; InputError for something else, or for other documents."""
    content = b"\n".join(read_lines(path, notices))
    try:
        found = json.loads(content)
        _check(found, set(documents))
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        reason = fault.args[0] if isinstance(fault, _Other) else "found something else"
        raise InputError(
            f"expected a summary of the same documents, {reason}; write it with rerank decode "
            "--summary FILE",
            source=display(path),
        ) from None
    return dict(found)


class _Other(ValueError):
    """What was found."""


def _check(found: Any, documents: set[str]) -> None:
    """A fault if a summary has not what a report takes from it."""
    for one in [found, *found["documents"]]:
        for name in _FIGURES:
            if one[name] is not None and not isinstance(one[name], int | float):
                raise TypeError(name)
        if not isinstance(one["exact"], bool):
            raise TypeError("exact")
    if not isinstance(found["signature"], str) or not isinstance(found["best"], str):
        raise TypeError("signature")
    if not isinstance(found["near_ties"], int | None):
        raise TypeError("near_ties")
    for one in found["documents"]:
        if one["id"] not in documents:
            raise _Other(f"found a document {one['id']!r}")
