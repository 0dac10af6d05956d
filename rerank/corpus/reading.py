"""Options of reading: k-best lists, and the documents of their sentences."""

from __future__ import annotations

from typing import Any

import click

from rerank.corpus.documents import DocumentFile
from rerank.errors import UsageError
from rerank.files.encoding import Encoding
from rerank.files.paths import FilePath
from rerank.options import option, optional, optional_file, record
from rerank.registry import DOCUMENT_FORMATS
from rerank.values import MOST_LINES, TEXT, WEIGHT, EncodingName, MemberName, Whole

AS_EMPTY, AS_ERROR, AS_SOURCE = "empty", "error", "source"  # of `--missing`
AS_IT_IS, AS_NFC = "none", "nfc"  # of `--normalize`
KEEP, AVOID, DROP = "keep", "avoid", "drop"  # of `--defects`


def tokenize_option() -> Any:
    """The option of the tokenizer of BLEU; None: by the format of the references."""
    return optional(
        "Tokenizer of sacrebleu for BLEU, such as 13a, or moses-en.\n\n"
        "moses-en is that of Moses for a language, of texts that are not tokenised. Default: "
        "13a for references in XML, SGML, JSON or of a test set, none for plain lines.",
        type=TEXT,
    )


@record
class ReadingOptions:
    """How k-best lists are read from a file."""

    kbest_format: str | None = optional(
        "Format of the list, if its first lines do not tell; `rerank list formats` shows them. "
        "flat:K and portage:K have K lines a sentence.",
        type=TEXT,
        metavar="NAME[:K]",
    )
    kbest_scores: FilePath | None = optional_file(
        "Numbers of each hypothesis of a flat or Portage list, a line each, as features F0, F1, ….",
        rare=True,
    )
    encoding: str = option(
        "Encoding of the list, as latin-1, cp1252 or gb18030; what is written is UTF-8.",
        type=EncodingName(),
        default="utf-8",
        metavar="NAME",
        rare=True,
    )
    encoding_errors: str = option(
        "Refuse bytes of the list that are not of its encoding, or read U+FFFD for them.",
        type=click.Choice(["strict", "replace"]),
        default="strict",
        rare=True,
    )
    top: int | None = optional(
        "Keep the first K candidates.", type=Whole(most=MOST_LINES), metavar="K"
    )
    first_id: int = option(
        "Id of the first source sentence in the list.",
        type=Whole(0, MOST_LINES),
        default=0,
        rare=True,
    )
    max_k: int = option(
        "Refuse sentences with more candidates than this.",
        type=Whole(most=MOST_LINES),
        default=1_000_000,
        rare=True,
    )
    clip_inf: float | None = optional(
        "Replace infinite feature values by ±VALUE.", type=WEIGHT, metavar="VALUE", rare=True
    )
    missing: str = option(
        "Source lines without candidates: an empty line, an error, or the line of --source "
        "as it is.\n\n"
        "source: the source line is their only candidate, with 0 for every feature of the "
        "list.",
        type=click.Choice([AS_EMPTY, AS_ERROR, AS_SOURCE]),
        default=AS_EMPTY,
    )
    normalize: str = option(
        "nfc: read all texts in Unicode's normal form NFC, in which equal words have equal "
        "characters.\n\n"
        "Hypotheses, references and sources; what is written is then in NFC, too.",
        type=click.Choice([AS_IT_IS, AS_NFC]),
        default=AS_IT_IS,
        rare=True,
    )

    @property
    def encoded(self) -> Encoding:
        """The encoding of the lists."""
        return Encoding(self.encoding, self.encoding_errors == "replace")

    @property
    def in_nfc(self) -> bool:
        """Whether texts are put into NFC."""
        return self.normalize == AS_NFC


@record
class DocumentOptions:
    """Which sentences are a document: as a file says, or `--no-docs`."""

    docs: str | None = optional_file(
        "Document ids, one line per source sentence; or another format of `rerank list "
        "document-formats`.\n\n"
        "The format is recognised by its content: WMT XML, NIST SGML, JSON lines, sizes, text "
        "with blank lines between documents."
    )
    docs_field: str | None = optional(
        "Field of --docs that is the document id: a number from 1, or a key of JSON.",
        type=TEXT,
        metavar="N|KEY",
        rare=True,
    )
    docs_format: str | None = optional(
        "Format of --docs [default: by content].", type=MemberName(DOCUMENT_FORMATS), rare=True
    )
    allow_interleaved: bool | None = option(
        "Lines of a document in --docs may stand apart.", default=None, rare=True
    )
    no_docs: str | None = optional(
        "In place of --docs: each sentence is a document, or all sentences are one.",
        type=click.Choice(["each", "one"]),
    )

    def check(self) -> None:
        """UsageError for what is said of a file that is not given."""
        said = self.docs_field, self.docs_format, self.allow_interleaved
        if self.docs is None and any(said):
            more = "" if self.allow_interleaved is None else ", --allow-interleaved"
            raise UsageError(f"--docs-field, --docs-format{more}: give --docs")

    @property
    def file(self) -> FilePath | None:
        """The file of documents, with what is said of it."""
        said = self.docs_field, self.docs_format, self.allow_interleaved
        if self.docs is None or said == (None, None, None):
            return self.docs
        return DocumentFile(self.docs, self.docs_format, self.docs_field, self.allow_interleaved)
