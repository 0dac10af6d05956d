"""Side information beside k-best lists: a file with a line for each source line, as references.

Which files give it, and that models and files fit each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.lines import SURPLUS, count_lines, read_lines
from rerank.files.paths import FilePath
from rerank.formats.translations import documents_in, read_translation
from rerank.notices import Notices
from rerank.registry import SIDE_INFORMATION

Files = Mapping[str, str | Path]
SOURCE = "source"  # the kind of side information that are the source lines
NO_FILES: Files = MappingProxyType({})


def check_files(needed: Mapping[str, str], given: Iterable[str], prefix: str = "") -> None:
    """UsageError for files that a model needs, but nobody gave, or gave, but no model needs.

    needed: kinds, with the name of a model that needs each; given: kinds for which there is a
    file; prefix: of the options, as in `--valid-source`.
    """
    given = set(given)
    for kind, model in needed.items():
        if kind not in given:
            option = f"--{prefix}{kind}"
            raise UsageError(
                f"{option}: {model} needs {SIDE_INFORMATION[kind]}; give {option} FILE"
            )
    for kind in sorted(given - needed.keys()):
        raise UsageError(
            f"--{prefix}{kind}: no model here needs {SIDE_INFORMATION[kind]}; leave it out"
        )


def sentence_number(words: Sequence[bytes], i: int, size: int, source: str, line: int) -> int:
    """The number of another sentence than i, from 0, of a document of this size; 0 for none.

    words: of a line of a file; source, line: for the InputError if it is not such a number.
    """
    number = words[0] if len(words) == 1 else b""
    if number.isdigit() and len(number) < 10 and int(number) <= size and int(number) != i + 1:
        return int(number)
    raise InputError(
        f"expected the number of another sentence of the document, from 1 to {size}, or 0 for "
        f"none, found {b' '.join(words).decode(errors='replace')!r:.80}; this is sentence {i + 1}",
        source=source,
        line=line,
    )


def given_lines(
    path: FilePath, name: str, kind: str, documents: Documents, notices: Notices
) -> Iterator[list[bytes]]:
    """Lines of each document of a file with a line for each source line, a document at a time.

    name: of the file, in messages. InputError for another number of lines, or for a line of
    labels that is not one word, or of numbers not that of a sentence. Memory: the largest document.
    """
    lines, done = read_lines(path, notices), 0
    if kind == SOURCE and not _line_by_line(path, documents):
        lines = iter(read_translation(path, documents, notices, role="source"))
    elif documents.lines is not None:
        found = list(islice(lines, documents.n_file_lines + SURPLUS))
        _check_number(len(found), documents.n_file_lines, name, documents.cure)
        lines = iter(documents.in_order(found))
    for d in range(len(documents)):
        start, stop = documents.span(d)
        found = list(islice(lines, stop - start))
        done += len(found)
        if done < stop:
            _check_number(done, documents.n_sentences, name, documents.cure)
        if kind != SOURCE:
            check_document(found, kind, name, [documents.line(t) + 1 for t in range(start, stop)])
        yield found
    _check_number(done + len(list(islice(lines, SURPLUS))), done, name, documents.cure)


def _check_number(found: int, expected: int, name: str, cure: str) -> None:
    """InputError unless a file has a line for each source line, of which no more are counted."""
    if found != expected:
        more = " or more" if found == expected + SURPLUS else ""
        raise InputError(
            f"expected {expected:,} lines, one for each source line, found {found:,}{more}; "
            f"{cure or 'line i must belong to source line i'}",
            source=name,
        )


def _line_by_line(path: FilePath, documents: Documents) -> bool:
    """Whether a source is a plain text, without separators between its documents."""
    if str(path).startswith("sacrebleu:") or documents_in(path, Notices()) is not None:
        return False
    separators = count_lines(path) - documents.n_file_lines
    return not len(documents) - 1 <= separators <= len(documents) or separators < 1


def check_document(
    lines: Sequence[bytes], kind: str, name: str, numbers: Sequence[int] | None = None
) -> None:
    """InputError for side information of a document's sentences that is not of its kind.

    Labels are one word, numbers those of a sentence. name, numbers: of the file and of its lines,
    or of the document in memory and 1, 2, …, in messages.
    """
    from lm.side_information import LABELS, NUMBERS
    from lm.vocabulary import words_of

    numbers = numbers or range(1, len(lines) + 1)
    for i, line in enumerate(lines):
        words = words_of(line)
        if kind in LABELS and len(words) != 1:
            raise InputError(
                f"expected one label, found {len(words)} words; write a label without spaces for "
                "each source line",
                source=name,
                line=numbers[i],
            )
        if kind in NUMBERS:
            sentence_number(words, i, len(lines), name, numbers[i])
