"""Formats of k-best lists: what each states, how one is recognised, and reading in any of them.

A new format is a file with a `KBestFormat`, a line in the table `rerank.registry.FORMATS` and a
test; or, in another package, an entry point of the group `rerank.formats`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import KBestRows
from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ALL
from rerank.corpus.kbest import KBest
from rerank.corpus.reading import ReadingOptions
from rerank.errors import InputError, UsageError, shown
from rerank.files.encoding import NUMBER
from rerank.files.lines import is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.plain_lists import looks_like
from rerank.formats.tokens import Place, read_object
from rerank.notices import Notices
from rerank.registry import FORMATS

_HEAD = 20  # lines that are not blank, from which a format is recognised
_BLANK = 1000  # lines that may be blank before them
_OTHERS = {  # how files begin that are no k-best lists, and what to do with them
    rb"\s*<(?:\?xml|!DOCTYPE|dataset|srcset|refset|tstset|doc)\b": "SGML or XML of documents, with "
    "one translation of each sentence: in place of --kbest give --systems FILE for all of its "
    "systems, or --systems NAME=FILE#SYSTEM for one",
    rb"(?:FEATURES|SCORES)_(?:TXT|BIN)_BEGIN": "a file of Moses' extractor: `rerank tune-moses "
    "--features FILE` reads it",
    rb"[DT]-[0-9]+\t": "output of fairseq without its H- lines: give all lines, or write H- for D-",
    rb"[SHDP]-[0-9]+ +\S": "output of fairseq whose TABs became blanks: write a TAB after the tag "
    "and, on H- and D- lines, after the score",
    rb"(?:\[[0-9-]+ [0-9:,]+ INFO\]|SENT [0-9]+:)": "the log of OpenNMT-py: give the file of "
    "-output, written with -n_best K and -with_score, as --kbest-format flat:K",
    rb"(?:[\w.]+\(|\[|\{)(?:\w+=)?[\[(]*'": "what Python prints: write JSON with json.dumps",
    rb"\\data\\": "a language model in ARPA format: give it as --ngram",
}
_AMONG_OTHERS = "a list among other lines, as of logging: leave these out"
_NUMBERS = (
    "numbers alone, as of Portage's ffvals: give them as --kbest-scores beside the list, with "
    "--kbest-format portage:K or flat:K"
)
_SHAPE = 'a line {"candidates": [{"text": "…", "score": -1.5}, …]} for each sentence'
_OF_LIST = re.compile(rb"[0-9]+ *[|]{3}.*[|]{3}")


class KBestFormat(Protocol):
    """A format of k-best lists; `rerank.formats.laws.check_format` tests one.

    name: as in the table of formats; description: one line for people; suffixes: usual endings of
    file names; example: one line, or one entry, of such a file.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    example: bytes

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a file that begins with these lines, at least one of them not blank, is one."""
        ...

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses of a file in chunks of bounded size; `InputError` where it is not valid.

        clip: magnitude to read for an infinite number, which is otherwise an error.
        """
        ...

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int,
    ) -> Iterator[bytes]:
        """Lines of the candidates of a document, without line ends.

        names, values: (A,), (n, A) features to append; totals: (n,) that replace those of the
        list. What `read` has kept of the file is written as it was.
        """
        ...


@runtime_checkable
class TwoPassFormat(Protocol):
    """A format whose file is read once before, for what only its end tells."""

    def prepared(self, lines: Iterable[bytes], *, source: str) -> KBestFormat:
        """The format for a file of these lines."""
        ...


@runtime_checkable
class SizedFormat(Protocol):
    """A format whose file says neither how many hypotheses a sentence has nor their scores."""

    def configured(self, k: int | None, scores: Iterable[bytes] | None, name: str) -> KBestFormat:
        """The format for lists of k hypotheses and the scores of a file of this name."""
        ...


@runtime_checkable
class AnnotatedFormat(Protocol):
    """A format whose files may have the document and the source of each sentence."""

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """(sentence id, its document, its source) of each sentence, None where there is none."""
        ...


@runtime_checkable
class SampledFormat(Protocol):
    """A format whose lists may be samples, so that equal texts of a sentence are votes."""

    sampled: bool


@runtime_checkable
class SentencesBeside(Protocol):
    """A format whose files may name sentences that have no hypotheses."""

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of such a sentence, or of any; -1 if there is none.

        Entries with faults, which `read` reports, are left out.
        """
        ...


def detect(lines: Iterator[bytes], *, source: str = "") -> tuple[KBestFormat, Iterator[bytes]]:
    """The format of a file by its first lines, and all its lines.

    `InputError` for a file that is in no known format, or has no line that is not blank.
    """
    head: list[bytes] = []
    content: list[int] = []  # numbers of the lines that are not blank
    for line in islice(lines, _HEAD + _BLANK):
        head.append(line)
        if line.strip():
            content.append(len(head))
        if len(content) == _HEAD:
            break
    if not content:
        raise InputError("expected a k-best list, found no hypotheses", source=source)
    # those of other packages come first, since the Moses reader accepts many dialects
    names = sorted(FORMATS, key=lambda name: name in FORMATS.builtin)
    tried: list[KBestFormat] = [FORMATS[name]() for name in names]
    for known in tried:
        if known.detect(head):
            return known, chain(head, lines)
    filled = head[content[0] - 1 :]
    meaning = _looks_like(filled)
    raise Place(source, Notices()).fault(
        f"expected a k-best list, found {shown(filled[0])}; "
        f"{f'it looks like {meaning}; ' if meaning else ''}formats tried: "
        f"{', '.join(known.name for known in tried)}; `rerank list formats` shows a line of each",
        content[0],
    )


def chosen_format(name: str) -> tuple[KBestFormat, int | None]:
    """The format that `--kbest-format NAME[:K]` names, and K; UsageError if there is none."""
    name, mark, k = name.partition(":")
    known: KBestFormat = FORMATS.named(name)()
    if not mark:
        return known, None
    if not isinstance(known, SizedFormat):
        raise UsageError(f"--kbest-format {name}:{k}: {name} takes no number; give {name} alone")
    if not re.fullmatch("[1-9][0-9]{0,6}", k):
        raise UsageError(f"--kbest-format {name}:{k}: expected a number of lines, as {name}:100")
    return known, int(k)


def check_format_options(options: ReadingOptions) -> None:
    """UsageError for options that name no format, or scores of one that has its own."""
    k, known = None, None
    if options.kbest_format is not None:
        known, k = chosen_format(options.kbest_format)
    if isinstance(known, SizedFormat):
        known.configured(k, None if options.kbest_scores is None else (), "")
    elif options.kbest_scores is not None:
        raise UsageError(
            "--kbest-scores: expected a list whose scores are in another file; give --kbest-format "
            "flat:K, where each sentence has K lines, or portage:K"
        )


def opened(
    path: FilePath,
    notices: Notices,
    options: ReadingOptions = ALL,
    known: KBestFormat | None = None,
) -> tuple[KBestFormat, Iterator[bytes]]:
    """The format of a k-best list, ready to read the lines of the file, and these lines.

    known: of an earlier call for the same file; otherwise the format that the options name, or
    that is recognised.
    """
    lines, source = read_lines(path, notices, encoded=options.encoded), display(path)
    name, file = options.kbest_format, options.kbest_scores
    if known is None:
        check_format_options(options)
        if name is None:
            known, lines = detect(lines, source=source)
        else:
            known, _ = chosen_format(name)
        if isinstance(known, TwoPassFormat):
            if is_pipe(path):
                raise UsageError(f"{source}: a list of {known.name} is read twice; name a file")
            again = read_lines(path, notices.unreported(), encoded=options.encoded)
            known = known.prepared(again, source=source)
    if isinstance(known, SizedFormat) and name is not None:
        _, k = chosen_format(name)
        scores = None if file is None else read_lines(file, notices)
        known = known.configured(k, scores, "" if file is None else display(file))
    return known, lines


def lines_of(
    form: KBestFormat,
    kbest: KBest,
    documents: Documents,
    names: Sequence[str],
    values: NDArray[np.float64],
    totals: NDArray[np.float64] | None,
    *,
    first_id: int,
) -> Iterator[tuple[int, bytes]]:
    """(sentence, line) of the lists of a document as a format writes them, ids those of the source.

    Sentences count from 0 through all `documents`; names, values, totals: see `KBestFormat.write`.
    """
    in_file = kbest.line_numbers is None or bool(kbest.line_numbers.all())
    if documents.lines is None and in_file:
        lines = form.write(kbest, names, values, totals, first_id=first_id)
        yield from ((kbest.first, line) for line in lines)
        return
    for t in range(len(kbest)):
        rows, sentence = slice(*kbest.offsets[t : t + 2].tolist()), kbest.first + t
        candidates = replace(kbest.sentence(t), first=documents.line(sentence))
        if candidates.line_numbers is not None and not candidates.line_numbers.all():
            candidates = replace(candidates, lines=None)  # its candidate is not in the file
        added = None if totals is None else totals[rows]
        for line in form.write(candidates, names, values[rows], added, first_id=first_id):
            yield sentence, line


def _looks_like(head: Sequence[bytes]) -> str:
    """What a file is that begins with these lines and is no list, and a cure; empty if unknown."""
    line = head[0]
    if any(map(_OF_LIST.match, head)):
        return _AMONG_OTHERS
    if other := next((text for sign, text in _OTHERS.items() if re.match(sign, line)), None):
        return other
    if re.match(rb"\s*[\[{]", line):
        keys = ""
        try:
            keys = f" without candidates at its keys {', '.join(read_object(line))}"
        except InputError as fault:
            if line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}"):
                return f"JSON: {fault}"
        return f"JSON{keys:.150}: write {_SHAPE}"
    return _NUMBERS if all(map(NUMBER.fullmatch, line.split())) else looks_like(head)
