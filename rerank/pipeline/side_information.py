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
from rerank.files.lines import SURPLUS, read_lines
from rerank.files.paths import FilePath, display
from rerank.notices import Notices
from rerank.registry import SIDE_INFORMATION

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.side_information import SideText
    from lm.vocabulary import Vocabulary

Files = Mapping[str, str | Path]
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
    """UsageError for a model that needs side information, in a command that reads none."""
    for kind in saved.model.context.side_information:
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
    if not np.array_equal(found.documents, beside.documents):
        raise InputError(
            f"expected {_shape(beside)} as in {name}, found {_shape(found)}; line i must "
            f"belong to line i of {name}, with the same lines between documents"
            + _first_difference(found, beside),
            source=display(path),
        )
    lengths = np.diff(found.sentences)
    if kind in LABELS and (lengths != 1).any():
        n = int(np.flatnonzero(lengths != 1)[0])
        raise InputError(
            f"expected one label for each sentence, found {int(lengths[n])} words for sentence "
            f"{n + 1}; write a label without spaces on its line",
            source=display(path),
        )
    return words, SideText(found.tokens, found.sentences)


def _shape(corpus: Corpus) -> str:
    return f"{corpus.n_sentences:,} sentences in {corpus.n_documents:,} documents"


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
    found = {}
    for kind, path in paths.items():
        words, text = interned(path, kind, beside, name, documents, notices)
        found[kind] = renumbered(text, words, vocabularies[kind])
    return found


def given_lines(
    path: FilePath, name: str, kind: str, documents: Documents, notices: Notices
) -> Iterator[list[bytes]]:
    """Lines of each document of a file with a line for each source line, a document at a time.

    name: of the file, in messages. InputError for another number of lines, or for a line of
    labels that is not one word. Memory: the largest document.
    """
    from lm.side_information import LABELS

    lines, done = read_lines(path, notices), 0
    for d in range(len(documents)):
        start, stop = documents.span(d)
        found = list(islice(lines, stop - start))
        done += len(found)
        if done < stop:
            raise InputError(
                f"expected {documents.n_lines:,} lines, one for each source line, found {done:,}; "
                "line i must belong to source line i",
                source=name,
            )
        if kind in LABELS:
            for n, line in enumerate(found, start + 1):
                if len(line.split()) != 1:
                    raise InputError(
                        f"expected one label, found {len(line.split())} words; write a label "
                        "without spaces for each source line",
                        source=name,
                        line=n,
                    )
        yield found
    surplus = len(list(islice(lines, SURPLUS)))
    if surplus:
        more = " or more" if surplus == SURPLUS else ""
        raise InputError(
            f"expected {done:,} lines, one for each source line, found {done + surplus:,}{more}; "
            "line i must belong to source line i",
            source=name,
        )


def renumbered(text: SideText, words: Sequence[bytes], vocabulary: Vocabulary) -> SideText:
    """Interned side information in a vocabulary's ids."""
    import numpy as np

    from lm.side_information import SideText

    ids = np.asarray(vocabulary.encode(words), dtype=np.int32)
    return SideText(ids[text.tokens] if len(ids) else text.tokens, text.sentences)
