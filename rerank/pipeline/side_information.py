"""Side information of a run: which files give it, and that models and files fit each other.

Beside a training text stands a text with as many sentences in as many documents; beside k-best
lists, a file with a line for each source line, as references are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.lines import SURPLUS, count_lines, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.translations import documents_in, read_translation
from rerank.notices import Notices
from rerank.registry import SIDE_INFORMATION

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.side_information import SentenceNumbers, SideText
    from lm.vocabulary import Vocabulary

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


def refuse(saved: SavedModel, folder: str | Path, command: str) -> None:
    """UsageError for a model that needs side information, in a command that reads none.

    Also for one that is given the next sentence, where there is none.
    """
    from lm.side_information import information_of

    if not saved.model.causal:
        raise UsageError(
            f"{folder}: the model is given the next sentence, which {command} does not have; "
            "choose another model"
        )
    for kind in information_of(saved.model.context, training=False):
        raise UsageError(
            f"{folder}: the model needs {SIDE_INFORMATION[kind]}, which {command} does not read; "
            "choose another model"
        )


def interned(
    path: str | Path, kind: str, beside: Corpus, name: str, documents: str, notices: Notices
) -> tuple[list[bytes], SideText]:
    """Distinct words of side information, and its sentences in their indices.

    beside: the text, of this name in messages, that has the same documents and sentences.
    """
    import numpy as np

    from lm.corpus import intern
    from lm.side_information import LABELS, SideText

    words, found = intern(read_lines(path, notices), documents)
    check_shape(found, beside, name, path)
    lengths = np.diff(found.sentences)
    if kind in LABELS and (lengths != 1).any():
        n = int(np.flatnonzero(lengths != 1)[0])
        raise InputError(
            f"expected one label for each sentence, found {int(lengths[n])} words for sentence "
            f"{n + 1}; write a label without spaces on its line",
            source=display(path),
        )
    return words, SideText(found.tokens, found.sentences)


def numbered(
    path: str | Path, beside: Corpus, name: str, documents: str, notices: Notices
) -> SentenceNumbers:
    """Sentences that a text names by their numbers in their documents, from 1; 0 for none.

    Arguments: as of `interned`.
    """
    import numpy as np

    from lm.corpus import DOCUMENTS, Corpus
    from lm.side_information import SentenceNumbers

    found: list[list[tuple[int, list[bytes]]]] = [[]]
    for n, words in enumerate(DOCUMENTS[documents](read_lines(path, notices)), 1):
        if words is None:
            found.append([])
        else:
            found[-1].append((n, words))
    sizes = np.array([len(lines) for lines in found if lines], dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    own = Corpus(np.zeros(0, np.int32), np.zeros(bounds[-1] + 1, np.int64), bounds)
    check_shape(own, beside, name, path)
    indices = np.full(own.n_sentences, -1, dtype=np.int64)
    for begin, lines in zip(bounds.tolist(), filter(None, found), strict=False):
        for i, (n, words) in enumerate(lines):
            parent = sentence_number(words, i, len(lines), display(path), n)
            indices[begin + i] = begin + parent - 1 if parent else -1
    return SentenceNumbers.of(indices)


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


def _shape(corpus: Corpus) -> str:
    return f"{corpus.n_sentences:,} sentences in {corpus.n_documents:,} documents"


def check_shape(found: Corpus, beside: Corpus, name: str, path: str | Path) -> None:
    """InputError for a text that has not the documents and sentences of another one."""
    import numpy as np

    if not np.array_equal(found.documents, beside.documents):
        raise InputError(
            f"expected {_shape(beside)} as in {name}, found {_shape(found)}; line i must "
            f"belong to line i of {name}, with the same lines between documents"
            + _first_difference(found, beside),
            source=display(path),
        )


def _first_difference(found: Corpus, beside: Corpus) -> str:
    """`; document 3 has 12 sentences, not 14`, of the first document that differs, if any."""
    import numpy as np

    both = [np.diff(one.documents) for one in (found, beside)]
    n = min(map(len, both))
    odd = np.flatnonzero(both[0][:n] != both[1][:n])
    if not odd.size:
        return ""
    d = int(odd[0])
    return f"; document {d + 1} has {both[0][d]:,} sentences, not {both[1][d]:,}"


def encoded(
    paths: Files,
    vocabularies: Mapping[str, Vocabulary],
    beside: Corpus,
    name: str,
    documents: str,
    notices: Notices,
) -> dict[str, SideText]:
    """Side information in the ids of vocabularies, of a text that has these sentences."""
    from lm.side_information import NUMBERS

    found: dict[str, SideText] = {}
    for kind, path in paths.items():
        if kind in NUMBERS:
            found[kind] = numbered(path, beside, name, documents, notices)
            continue
        words, text = interned(path, kind, beside, name, documents, notices)
        found[kind] = renumbered(text, words, vocabularies[kind])
    return found


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
        found = list(islice(lines, documents.n_read + SURPLUS))
        _check_number(len(found), documents.n_read, name, documents.cure)
        lines = iter(documents.in_order(found))
    for d in range(len(documents)):
        start, stop = documents.span(d)
        found = list(islice(lines, stop - start))
        done += len(found)
        if done < stop:
            _check_number(done, documents.n_lines, name, documents.cure)
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
    separators = count_lines(path) - documents.n_read
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


def renumbered(text: SideText, words: Sequence[bytes], vocabulary: Vocabulary) -> SideText:
    """Interned side information in a vocabulary's ids."""
    import numpy as np

    from lm.side_information import SideText

    ids = np.asarray(vocabulary.encode(words), dtype=np.int32)
    return SideText(ids[text.tokens] if len(ids) else text.tokens, text.sentences)
