"""K-best lists of documents, made of texts."""

from collections.abc import Sequence

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import documents_of
from rerank.corpus.kbest import KBest
from rerank.formats.moses import read_rows
from rerank.notices import Notices


def kbest(lists: Sequence[Sequence[str]]) -> KBest:
    """Lists of texts (maybe none) as one document, as they are read from a file."""
    lines = [f"{t} |||  {text} ||| LM0= 0 ||| 0" for t, texts in enumerate(lists) for text in texts]
    rows = read_rows([line.encode() for line in lines], Notices())
    (found,) = documents_of(rows, Documents(("one",), (0, len(lists))), Notices())
    return found
