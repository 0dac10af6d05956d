"""`rerank export`: documents as files, for discourse metrics that run outside."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rerank.commands.run import Messages
from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.options import Command, argument, option, part, record
from rerank.table import one_line
from rerank.values import FILE, FOLDER, Pair

INDEX = "documents.tsv"


@record
class ExportOptions:
    """Options of `rerank export`."""

    texts: tuple[tuple[str, str], ...] = argument(
        "NAME=FILE...", type=Pair("NAME=FILE, for example ours=test.out", FILE)
    )
    documents: DocumentOptions = part(
        DocumentOptions, without={"no_docs", "allow_interleaved"}, required={"docs"}
    )
    out: Path = option("New folder.", type=FOLDER, metavar="DIR")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def export(options: ExportOptions) -> None:
    """Write documents as files, for BlonDe and other metrics of discourse.

    DIR/NAME/0001.txt has the first document of FILE, a sentence on each line; DIR/documents.tsv
    has the number, the id and the number of sentences of each document.

    Example:
      rerank export --docs test.docids --out documents ours=test.out ref=test.en
    """
    from rerank.files.lines import InputFiles
    from rerank.files.outputs import scratch_folder
    from rerank.files.paths import display
    from rerank.formats.document_files import documents_of_file
    from rerank.formats.translations import read_translation

    target, texts, docs = options.out, options.texts, options.documents.file or ""
    _check(target, [name for name, _ in texts])
    with options.messages.warnings() as notices:
        inputs = InputFiles([docs, *(path for _, path in texts)])
        documents = documents_of_file(docs, notices)
        digits = max(4, len(str(len(documents))))
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(target) as new:
            for name, path in texts:
                (new / name).mkdir()
                lines = read_translation(path, documents, notices, model=str(docs))
                for d, own in enumerate(documents.split(lines), 1):
                    content = b"".join(line + b"\n" for line in own)
                    (new / name / f"{d:0{digits}}.txt").write_bytes(content)
            sentences = documents.split(range(documents.n_sentences))
            rows = (  # ids come from strangers, and never name files
                f"{d}\t{one_line(name)}\t{len(own)}\n"
                for d, (name, own) in enumerate(zip(documents.ids, sentences, strict=True), 1)
            )
            (new / INDEX).write_text("".join(rows), encoding="utf-8")
            inputs.check()
            os.replace(new, target)
        written = f"{len(documents):,} documents of {len(texts)} texts written"
        options.messages.announce(f"{written} to {display(target)}")


COMMAND = Command("export", ExportOptions, export)


def _check(folder: Path, names: Sequence[str]) -> None:
    """UsageError for an invalid or repeated NAME, and for a folder that is not empty."""
    from rerank.files.outputs import check_new_folder

    for name in names:
        if not re.fullmatch(r"\w[\w.+-]{0,99}", name):
            raise UsageError(f"{name}: expected letters, digits and . + - _; choose another NAME")
        if names.count(name) > 1:
            raise UsageError(f"{name}: the NAME of two files; choose another one")
    check_new_folder(folder, "expected a new or empty folder; name another")
