"""Running text for language models, a sentence a line: what in it is no word of a sentence.

Corpora come with marks of sentences and of unknown words, with mark-up, columns and headings. They
are found while the lines are read, and each kind is reported once, with a filter that mends it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeAlias

from rerank.corpus.text_profile import MOST_LINES, TextProfile
from rerank.errors import InputError
from rerank.files.paths import FilePath, display
from rerank.formats.document_files import text_lines
from rerank.notices import NAMED, Notices

Use: TypeAlias = Literal["training", "n-grams", "evaluation"]
"""What is done with a text."""

PARAGRAPH = b"<p>"  # parts documents where --documents says so
UNKNOWN_FORM = b"<UNK>"  # `<unk>` to all readers of ARPA files
_READERS = {".gz": "gzip -dc", ".xz": "xz -dc", ".bz2": "bzip2 -dc"}
_FEWEST = 4  # documents of which most have one sentence
_WORD = rb"(?<![^ ])(?:%s)(?![^ ])"
_ENDS = re.compile(_WORD % rb"</?s>")
_MARK = rb"<(?:eos|bos|sep|brk|pad|cls)>|\[(?:eos|bos|sep|pad|cls)\]|_eos|<\|\w+\|>"
_MARKS = re.compile(_WORD % _MARK, re.I)
_INSIDE = re.compile(rb"[^ ] +(?:%s) +[^ ]" % _MARK, re.I)
_UNKNOWN = re.compile(_WORD % rb"<unk>|\[unk\]", re.I)
_TAG = re.compile(rb"\s*<(?:/?([?!]?[A-Za-z][\w.:-]*)(?:[\s/][^<>]*)?|(\|\w+\|))>\s*")
_ELEMENT = re.compile(rb"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>.*</\1>\s*")
_HEADING = re.compile(rb" *= [^=].* = *")
_MARKDOWN = re.compile(rb"#{1,6} [^#].*|={3,}|-{3,}")
_PARTS = frozenset(("doc", "document", "article", "chapter", "talk", "story", "file", "text"))
_INNER = re.compile(rb"</(b|em|font|hl|i|p|q|s|seg|strong|sub|sup|u)>", re.I)  # around words
_WITHOUT_ENDS = r"sed -E 's/(^| )<\/?s>/ /g'"
_HEADINGS = "sed -E -e '/^ *$/d' -e '/^ *= = /d' -e 's/^ *= .* = *$//'"
_WITHOUT_TABS = r"tr '\t\r' '  '"
_OF_MARKDOWN = "sed -E -e 's/^#{1,6} .*//' -e '/^(={3,}|-{3,})$/d'"


@dataclass(slots=True)
class _Found:
    """Lines of one kind: the first, how many, and the words, tags or numbers of TABs in them."""

    first: int = 0
    count: int = 0
    names: dict[str, None] = field(default_factory=dict)

    def add(self, line: int, *names: bytes) -> None:
        """Count a line."""
        self.first, self.count = self.first or line, self.count + 1
        self.names |= dict.fromkeys(name.decode() for name in names)

    def named(self) -> str:
        """The first names."""
        shown = list(self.names)
        return ", ".join(shown[:NAMED] + ["…"] * (len(shown) > NAMED))


class RunningText:
    """A text as it is read: `lines` yields its lines and then reports what is no sentence.

    documents: a name of `lm.corpus.DOCUMENTS`. unknown: the word of --unknown, if any. profile: of
    how it is prepared. InputError for JSON, tables and XML.
    """

    def __init__(
        self, path: FilePath, use: Use, documents: str = "blank", unknown: bytes | None = None
    ) -> None:
        self.source, self._path, self._use = display(path), path, use
        self.documents, self.profile = documents, TextProfile()
        self._unknown = unknown
        self._filled, self._inside = 0, False
        self._found: dict[str, _Found] = defaultdict(_Found)

    def lines(self, notices: Notices) -> Iterator[bytes]:
        """The lines of the file. InputError for marks of the ends of sentences, which no word is.

        For n-grams also for characters that part words in ARPA files.
        """
        before = b""
        for number, line in enumerate(text_lines(self._path, notices), 1):
            self._filled += not line.isspace() and line != b""
            unusual = False
            if line[:1] in b"#=-" and self.documents != "equals" and _MARKDOWN.fullmatch(line):
                # of text in tokens also `# 3 million`; a heading is the first line of a paragraph
                if line[:1] != b"#" or not before.strip():
                    self._found["markdown"].add(number)
            elif b"= " in line and _HEADING.fullmatch(line):
                self._found["heading"].add(number)
            elif b"<" in line or b"\t" in line or b"[" in line or b"_" in line or b"\r" in line:
                unusual = self._look(line, number)
            if not unusual and self.profile.lines < MOST_LINES:
                self.profile.add([line])
            before = line
            yield line
        for kind, found, values in self._reported():
            line, count = found.first, found.count
            notices.add(kind, source=self.source, line=line, count=count, **values)

    def check_documents(self, n_documents: int, of_one_sentence: int, notices: Notices) -> None:
        """A notice if most documents have one sentence, as if a blank line parted sentences."""
        if self.documents == "blank" and _FEWEST <= n_documents < 2 * of_one_sentence:
            headings = self._found["heading"].count > 1
            mend = f", as {self._filter(_HEADINGS)} does" if headings else ""
            notices.add(
                "paragraphs-as-documents", source=self.source, count=of_one_sentence, command=mend
            )

    def _look(self, line: bytes, number: int) -> bool:
        """Whether something is unusual in a line; it is counted."""
        if line.isspace():
            return True
        if (b"\t" in line or b"\r" in line) and self._use == "n-grams":
            raise InputError(
                "expected words between spaces, found a TAB or a carriage return, which ARPA "
                f"files cannot have in words; {self._filter(_WITHOUT_TABS)} writes blanks",
                source=self.source,
                line=number,
            )
        if b"\t" in line:
            self._found["tab"].add(number, b"%d" % line.count(b"\t"))
        tag = _TAG.fullmatch(line)
        if tag and not _UNKNOWN.fullmatch(line.strip()):
            if self.documents != "paragraphs" or line.strip() != PARAGRAPH:
                self._found["tag"].add(number, tag[1] or tag[2])
        elif ends := _ENDS.search(line):
            raise InputError(
                f"expected words, found {ends[0].decode()}, a mark of the ends of sentences, "
                "which language models set themselves; "
                f"{self._filter(_WITHOUT_ENDS)} removes it",
                source=self.source,
                line=number,
            )
        elif inner := _INNER.findall(line):
            self._found["inner"].add(number, *inner)
        elif element := _ELEMENT.fullmatch(line):
            self._found["element"].add(number, element[1])
        else:
            if marks := _MARKS.findall(line):
                self._found["mark"].add(number, *marks)
                self._inside |= _INSIDE.search(line) is not None
            if unknown := [word for word in _UNKNOWN.findall(line) if word != self._unknown]:
                self._found["unknown"].add(number, *unknown)
            return bool(marks or b"\t" in line)
        return True

    def _reported(self) -> Iterator[tuple[str, _Found, dict[str, Any]]]:
        """The name of each warning, where its lines are, and the values of its fields."""
        markup = [self._found[kind] for kind in ("tag", "element", "inner")]
        if any(one.count for one in markup):
            both = _Found(
                min(one.first for one in markup if one.count),
                sum(one.count for one in markup),
                {f"<{name}>": None for one in markup for name in one.names},
            )
            tags, elements, inner = (list(one.names) for one in markup)
            program, parts = _without_markup(tags, elements, inner)
            mend = f"remove it{', with a blank line between documents' * parts}"
            mend = f"{mend}: {self._filter(program)}"
            yield "markup-in-text", both, {"marks": both.named(), "cure": mend}
        if (mark := self._found["mark"]).count:
            words = "|".join(map(_escaped, mark.names))
            program, what = f"sed -E 's/(^| )({words})/ /g'", "remove it"
            if self._inside:
                program, what = f"perl -pe 's/ ({words}) /\\n/g; s/$/\\n/'", "write line ends"
            mend = f"{what}: {self._filter(program)}"
            yield "mark-in-text", mark, {"marks": mark.named(), "cure": mend}
        if (headings := self._found["markdown"]).count:
            yield "markdown-in-text", headings, {"command": self._filter(_OF_MARKDOWN)}
        unknown = self._found["unknown"]
        marks = unknown.named()
        if self._use == "n-grams" and {"<unk>", UNKNOWN_FORM.decode()} & unknown.names.keys():
            yield "unknown-word-counted", unknown, {"marks": marks}
        others = [name for name in unknown.names if name != "<unk>"]
        if self._use == "training" and others:
            yield "unknown-word-in-text", unknown, {"marks": marks, "word": others[0]}
        tab = self._found["tab"]
        if tab.count and not (tab.count == self._filled > 1 == len(tab.names)):  # no columns
            yield "tab-in-line", tab, {"command": self._filter("tr '\\t' ' '")}

    def _filter(self, program: str) -> str:
        """A command that writes what a filter makes of the file into one beside it."""
        name = str(self._path)
        reader = _READERS.get(Path(name).suffix)
        given = f"{reader} {quote(name)} | {program}" if reader else f"{program} < {quote(name)}"
        return f"`{program}`" if name == "-" else f"`{given} > {quote(name)}.txt`"


def _without_markup(tags: list[str], elements: list[str], inner: list[str]) -> tuple[str, bool]:
    """The filter that removes mark-up, and whether it leaves blank lines where documents end.

    tags: alone on their lines; elements: whole lines that are no sentences; inner: around words.
    """
    parting = [name for name in tags if name[0] == "|" or name.lower() in _PARTS]
    edits = [
        (r"s/^[[:space:]]*<\/?(%s)[ >].*$//", parting),
        (r"/^[[:space:]]*<(%s)[ >].*<\//d", elements),
        (r"/^[[:space:]]*<[^<>]*>[[:space:]]*$/d", tags),
        (r"s/<\/?(%s)( [^<>]*)?>//g", inner),
    ]
    chosen = [
        f"-e '{edit.replace('%s', '|'.join(map(_escaped, names)))}'"
        for edit, names in edits
        if names
    ]
    return f"sed -E {' '.join(chosen)}", bool(parting)


def _escaped(name: str) -> str:
    """A mark or the name of a tag in a regular expression of sed or perl."""
    return re.sub(r"([|\[\]])", r"\\\1", name)
