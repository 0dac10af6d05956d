"""A k-best list of four sentences, the third without candidates, and their documents."""

from support.files import write

from rerank.corpus.kbest import KBest
from rerank.notices import Notices
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists

LINES = (
    "0 ||| the lamp is lit ||| LM0= -9 ||| -4",
    "0 ||| a lamp burns ||| LM0= -8 ||| -5",
    "0 ||| lamp ||| LM0= -7 ||| -6",
    "1 ||| it gives light ||| LM0= -7 ||| -3",
    "3 ||| no one ||| LM0= -8 ||| -4",
    "3 ||| one ||| LM0= -9 ||| -5",
)
DOCS = ("x", "x", "y", "z")


def write_lists() -> None:
    """Write the lists and the documents as `dev.kbest` and `dev.docs` into the current folder."""
    write("dev.kbest", LINES)
    write("dev.docs", DOCS)


def read(lists: Lists, notices: Notices | None = None) -> list[tuple[str, KBest]]:
    """Names and lists of all documents."""
    with KBestSource.open(lists, notices or Notices()) as opened:
        return [document for batch in opened.batches() for document in batch]
