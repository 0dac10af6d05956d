"""Document-level reranking of k-best lists from machine translation.

>>> from rerank import Document, Reranker, evaluate, read, tune

The names are loaded when they are used.
"""

from typing import TYPE_CHECKING

from rerank.signature import __version__ as __version__

if TYPE_CHECKING:
    from rerank.api import Reranker as Reranker
    from rerank.api import evaluate as evaluate
    from rerank.api import read as read
    from rerank.api import tune as tune
    from rerank.corpus.kbest import Document as Document
    from rerank.errors import RerankError as RerankError
    from rerank.notices import RerankWarning as RerankWarning

__all__ = ["Document", "RerankError", "RerankWarning", "Reranker", "evaluate", "read", "tune"]
_MODULES = {
    "Document": "rerank.corpus.kbest",
    "RerankError": "rerank.errors",
    "RerankWarning": "rerank.notices",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'rerank' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES.get(name, "rerank.api")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
