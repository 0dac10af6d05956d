"""`rerank export`: documents as files, for discourse metrics that run outside."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rerank.corpus.documents import Documents
from rerank.corpus.translations import read_translation
from rerank.errors import UsageError
from rerank.files.inputs import InputFiles
from rerank.files.outputs import check_folder
from rerank.files.paths import FilePath, display
from rerank.notices import Notices, PythonWarnings
from rerank.pipeline.sources import Printer, log

INDEX = "documents.tsv"


def export(
    texts: Sequence[tuple[str, str | Path]],
    folder: str | Path,
    docs: FilePath,
    *,
    notices: Notices | None = None,
    announce: Printer = log.info,
) -> None:
    """Write each document of each text to `folder`/NAME/0001.txt and so on, a sentence a line.

    texts: (NAME, file) of systems, references, sources. `documents.tsv` has the number, the id and
    the number of sentences of each document: ids come from strangers, and never name files. The
    folder is new or empty, and is written whole or not at all.
    """
    notices = notices or PythonWarnings()
    names = [name for name, _ in texts]
    for name in names:
        if not re.fullmatch(r"\w[\w.+-]{0,99}", name):
            raise UsageError(f"{name}: expected letters, digits and . + - _; choose another NAME")
        if names.count(name) > 1:
            raise UsageError(f"{name}: the NAME of two files; choose another one")
    target = Path(folder)
    check_folder(target, str(folder))
    if target.exists() and any(target.iterdir()):
        raise UsageError(f"{folder}: expected a new or empty folder; name another")
    inputs = InputFiles([docs, *(path for _, path in texts)])
    documents = Documents.from_file(docs, notices)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    new = scratch / "new"  # with the permissions of a folder that is made, not of a temporary one
    try:
        new.mkdir()
        for name, path in texts:
            lines = read_translation(path, documents, notices, model=str(docs))
            _write(new / name, lines, documents)
        rows = (
            f"{d + 1}\t{documents.ids[d]}\t{stop - start}\n"
            for d, (start, stop) in enumerate(map(documents.span, range(len(documents))))
        )
        (new / INDEX).write_text("".join(rows), encoding="utf-8")
        inputs.check()
        os.replace(new, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    announce(f"{len(documents):,} documents of {len(texts)} texts written to {display(folder)}")


def _write(folder: Path, lines: Sequence[bytes], documents: Documents) -> None:
    """A file for each document; numbers have as many digits as the largest, at least four."""
    folder.mkdir()
    width = max(4, len(str(len(documents))))
    for d in range(len(documents)):
        start, stop = documents.span(d)
        content = b"".join(line + b"\n" for line in lines[start:stop])
        (folder / f"{d + 1:0{width}}.txt").write_bytes(content)
