"""`rerank export`: documents for discourse metrics that run outside, and for people who judge."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from rerank.corpus.documents import Documents
from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.files.lines import InputFiles
from rerank.files.outputs import check_new_folder, scratch_folder, to_json
from rerank.files.paths import display
from rerank.formats.document_files import documents_of_file
from rerank.notices import Notices
from rerank.options import Command, argument, option, optional_file, part, record
from rerank.runs.options import Messages, printed
from rerank.table import one_line
from rerank.values import FILE, FOLDER, SEED, Pair, Whole

INDEX, CAMPAIGN = "documents.tsv", "campaign.json"
PEARMUT = "pearmut"


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
    to: str = option(
        "Form of the documents: text files, or a campaign of Pearmut 1.1.\n\n"
        "There people compare the texts side by side without their names.",
        type=click.Choice(["text", PEARMUT]),
        default="text",
    )
    source: str | None = optional_file("Text in the source language that annotators see.")
    annotators: int = option("Number of annotators.", type=Whole(), default=1)
    seed: int = option("Random seed of the order of documents and texts.", type=SEED, default=1)
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def export(options: ExportOptions, notices: Notices) -> str:
    r"""Write documents as files, for BlonDe and other metrics of discourse, or for people to judge.

    DIR/NAME/0001.txt has the first document of FILE, a sentence on each line; DIR/documents.tsv
    has the number, the id and the number of sentences of each document.

    With --to pearmut, DIR/campaign.json, for `pearmut add`, has the documents in which the texts
    differ. What its annotators say is a metric of evaluate, as
    --scores esa=test.out:annotations.json#ours --scores esa=test.first:annotations.json#baseline

    Example:
      rerank export --docs test.docids --out documents ours=test.out ref=test.en
      rerank export --docs test.docids --out campaign --to pearmut --source test.zh \
        baseline=test.first ours=test.out
    """
    from rerank.formats.translations import read_translation

    target, texts, docs = options.out, options.texts, options.documents.file or ""
    for name, n in Counter(name for name, _ in texts).items():
        if not re.fullmatch(r"\w[\w.+-]{0,99}", name):
            raise UsageError(f"{name}: expected letters, digits and . + - _; choose another NAME")
        if n > 1:
            raise UsageError(f"{name}: the NAME of two files; choose another one")
    check_new_folder(target, "expected a new or empty folder; name another")
    if options.to == PEARMUT and len(texts) < 2:
        raise UsageError("--to pearmut: expected two texts to compare, found one; add NAME=FILE")
    if options.to != PEARMUT and options.source is not None:
        raise UsageError("--source: seen by annotators of --to pearmut alone; give that, too")
    files = [docs, *(path for _, path in texts), options.source]
    inputs = InputFiles([path for path in files if path is not None])
    documents = documents_of_file(docs, notices)
    lines = {
        name: read_translation(path, documents, notices, model=str(docs)) for name, path in texts
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target) as new:
        if options.to == PEARMUT:
            sources = None
            if (path := options.source) is not None:
                sources = read_translation(path, documents, notices, model=str(docs), role="source")
            number = _write_campaign(new, options, documents, lines, sources)
        else:
            number = _write_files(new, documents, lines)
        inputs.check()
        os.replace(new, target)
    return f"{number:,} documents of {len(texts)} texts written to {display(target)}"


COMMAND = Command("export", ExportOptions, export)


def _write_files(folder: Path, documents: Documents, texts: Mapping[str, Sequence[bytes]]) -> int:
    """Write a file for each document of each text, and an index; the number of documents."""
    digits = max(4, len(str(len(documents))))
    for name, lines in texts.items():
        (folder / name).mkdir()
        for d, document in enumerate(documents.split(lines), 1):
            content = b"".join(line + b"\n" for line in document)
            (folder / name / f"{d:0{digits}}.txt").write_bytes(content)
    rows = (  # ids come from strangers, and never name files
        f"{d}\t{one_line(name)}\t{len(lines)}\n"
        for d, (name, lines) in enumerate(documents.ranges(), 1)
    )
    (folder / INDEX).write_text("".join(rows), encoding="utf-8")
    return len(documents)


def _write_campaign(
    folder: Path,
    options: ExportOptions,
    documents: Documents,
    texts: Mapping[str, Sequence[bytes]],
    sources: Sequence[bytes] | None,
) -> int:
    """Write a campaign; the number of its documents, which are those in which texts differ."""
    from rerank.formats.pearmut import campaign

    name = re.sub(r"[^\w.-]", "_", options.out.name) or "rerank"
    made = campaign(
        *(name, documents, texts, sources), seed=options.seed, annotators=options.annotators
    )
    if not made["data"]:
        raise UsageError("the texts are equal in all documents; there is nothing to compare")
    (folder / CAMPAIGN).write_bytes(to_json(made))
    return len(made["data"])
