"""Document-level reranking of k-best lists from machine translation.

>>> from rerank import Document, Reranker, choose, evaluate, read, tune

The names are loaded when they are used.
"""

import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":  # its signals, locks and renames are others
    raise SystemExit("rerank runs on Linux and macOS; on Windows run it in WSL")

from rerank.files.signature import __version__ as __version__

if TYPE_CHECKING:
    from rerank.api import Reranker as Reranker
    from rerank.api import choose as choose
    from rerank.api import evaluate as evaluate
    from rerank.api import read as read
    from rerank.api import tune as tune
    from rerank.corpus.kbest import Document as Document
    from rerank.errors import RerankError as RerankError
    from rerank.notices import RerankWarning as RerankWarning

__all__ = [
    *("Document", "RerankError", "RerankWarning", "Reranker"),
    *("choose", "evaluate", "read", "tune"),
]
_MODULES = {
    "Document": "rerank.corpus.kbest",
    "RerankError": "rerank.errors",
    "RerankWarning": "rerank.notices",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'rerank' has no attribute {name!r}")
    from importlib import import_module

    refuse_shadowing()
    return getattr(import_module(_MODULES.get(name, "rerank.api")), name)


def refuse_shadowing() -> None:
    """UsageError if Python finds another `lm` or `decoders` before ours. About 0.1 ms."""
    from importlib.util import find_spec
    from pathlib import Path

    ours = Path(__file__).parents[1]
    for name in ("lm", "decoders"):
        spec = find_spec(name)
        found = None if spec is None else spec.origin
        if found is None or Path(found).parent != ours / name:
            from rerank.errors import UsageError

            raise UsageError(
                f"expected the package {name!r} in {ours}, found {found or 'none'}; "
                "rename that file, or run rerank from another folder"
            )


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
