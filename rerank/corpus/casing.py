"""Capitals at the beginning of sentences: taken away by a truecase model, and put back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rerank.errors import InputError


def truecased(lines: Iterable[bytes], model: str | Path) -> list[bytes]:
    """Lines of words in the case of a model of Moses' `train-truecaser` or `sacremoses`.

    O(words) time. InputError for a file that is no such model.
    """
    from sacremoses import MosesTruecaser

    if not Path(model).is_file():
        raise InputError("expected a file with a truecase model, found none", source=str(model))
    try:
        change = MosesTruecaser(load_from=str(model)).truecase
    except (ValueError, OSError) as fault:
        raise InputError(
            f"expected a truecase model, lines WORD (COUNT/TOTAL) …, as of `sacremoses "
            f"train-truecase`: {' '.join(str(fault).split())}",
            source=str(model),
        ) from fault
    return [change(line.decode(), return_str=True).encode() for line in lines]


def detruecased(lines: Iterable[bytes]) -> list[bytes]:
    """Lines of words whose sentences begin with a capital, by Moses' rules. O(words) time."""
    from sacremoses import MosesDetruecaser

    change = MosesDetruecaser().detruecase
    return [change(line.decode(), return_str=True).encode() for line in lines]
