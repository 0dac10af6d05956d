"""K-best lists of documents, as they are read from a file."""

from collections.abc import Iterable, Sequence
from typing import Any

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions, documents_of
from rerank.corpus.kbest import KBest
from rerank.formats.moses import read_rows
from rerank.notices import Notices


def kbest_of_lines(lines: Iterable[str], n_sentences: int, **options: Any) -> KBest:
    """Lines of the file `dev.kbest` as one document; options: those of `ReadingOptions`."""
    rows = read_rows((line.encode() for line in lines), Notices(), source="dev.kbest")
    whole, chosen = Documents.one(n_sentences), ReadingOptions(**options)
    (found,) = documents_of(rows, whole, Notices(), chosen, source="dev.kbest")
    return found


def kbest(lists: Sequence[Sequence[str]]) -> KBest:
    """Lists of texts (maybe none) as one document."""
    lines = (f"{t} |||  {text} ||| LM0= 0 ||| 0" for t, texts in enumerate(lists) for text in texts)
    return kbest_of_lines(lines, len(lists))


def kbest_of_sizes(sizes: Sequence[int], **options: Any) -> KBest:
    """A document with so many candidates of each sentence, w0, w1, …, whose LM0 is 0."""
    lines = (f"{t} ||| w{k} ||| LM0= 0 ||| 0" for t, n in enumerate(sizes) for k in range(n))
    return kbest_of_lines(lines, len(sizes), **options)


def kbest_without_candidates(n_sentences: int) -> KBest:
    """A document of gaps; another one in its file has a candidate."""
    rows = read_rows([b"9 ||| it ||| LM0= 0 ||| 0"], Notices())
    documents = Documents(("gaps", "other"), (0, n_sentences, 10))
    return next(documents_of(rows, documents, Notices()))
