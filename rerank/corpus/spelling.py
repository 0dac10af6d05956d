"""How texts spell characters: with Moses' escapes (`&apos;`) or without, in form NFC or NFD.

Equal words that hypotheses and references spell in two ways count as different ones.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from unicodedata import is_normalized

from rerank.notices import Notices

UNESCAPE = "deescape-special-chars.perl"
_CONVERT = "; or write the list with: rerank convert --escape"
_ESCAPES = (b"&amp;", b"&lt;", b"&gt;", b"&apos;", b"&quot;", b"&#124;", b"&#91;", b"&#93;")
ESCAPE = re.compile(b"|".join(_ESCAPES))
_BARE = {  # the character of each escape, as it stands in text without escapes
    escape: re.compile(
        re.escape(html.unescape(escape.decode()).encode())
        + (rb"(?![a-z#0-9]+;)" if escape == b"&amp;" else b"")
    )
    for escape in _ESCAPES
}


@dataclass(slots=True)
class _Lines:
    """Lines of one kind: how many, and the number of the first."""

    first: int | None
    count: int = 0


@dataclass(slots=True)
class Spelling:
    """What lines, added one after the other, have of escapes and normal forms.

    escapes: the lines by the escapes that they have, in order; bare: escapes whose character stands
    in a line; not_nfc: lines that are not in NFC; has_not_nfd: whether a line is not in NFD.
    """

    escapes: dict[tuple[bytes, ...], _Lines] = field(default_factory=dict)
    bare: set[bytes] = field(default_factory=set)
    not_nfc: _Lines | None = None
    has_not_nfd: bool = False

    def add(self, lines: Iterable[bytes], numbers: Iterable[int | None] = repeat(None)) -> None:
        """Add lines with these numbers in their file. O(bytes)."""
        for line, number in zip(lines, numbers, strict=False):
            if b"&" in line and (found := tuple(dict.fromkeys(ESCAPE.findall(line)))):
                self.escapes.setdefault(found, _Lines(number)).count += 1
            self.bare |= {e for e in _BARE.keys() - self.bare if _BARE[e].search(line)}
            if not line.isascii():
                text = line.decode()
                if not is_normalized("NFC", text):
                    self.not_nfc = self.not_nfc or _Lines(number)
                    self.not_nfc.count += 1
                self.has_not_nfd = self.has_not_nfd or not is_normalized("NFD", text)

    def escaped_unlike(self, other: Spelling) -> tuple[bytes, _Lines] | None:
        """An escape that the other lines do not have, and the lines of all such escapes.

        If the others have escapes of some characters, only those count whose character stands there
        unescaped.
        """
        shared = {escape for found in other.escapes for escape in found}
        own = {escape for found in self.escapes for escape in found} - shared
        own = own & other.bare if shared else own
        kinds = [(found, lines) for found, lines in self.escapes.items() if own.intersection(found)]
        if not kinds:
            return None
        first = next(escape for escape in kinds[0][0] if escape in own)
        return first, _Lines(kinds[0][1].first, sum(lines.count for _, lines in kinds))


def note_spelling(
    hypotheses: Spelling,
    references: Spelling,
    notices: Notices,
    *,
    source: str = "",
    of_lists: bool = False,
) -> None:
    """Add a notice where only one side has Moses' escapes (`&apos;`), or is in Unicode form NFD.

    Where both sides have escapes, also for those of which the other side has the character alone.
    of_lists: whether the hypotheses are those of k-best lists.
    """
    both = {"hypotheses": hypotheses, "references": references}
    for side, other in (("hypotheses", "references"), ("references", "hypotheses")):
        own, others = both[side], both[other]
        kinds = dict[str, _Lines]()
        if escaped := own.escaped_unlike(others):
            form = "none" if side == "hypotheses" else "moses"
            kind = (
                f"mixed escaping: {side} contain {escaped[0].decode()} and similar, {other} do "
                f"not; unescape the {side} with Moses' {UNESCAPE}"
                f"{f'{_CONVERT} {form}' if of_lists else ''}"
            )
            kinds[kind] = escaped[1]
        if own.not_nfc and others.not_nfc is None and others.has_not_nfd:
            kind = (
                f"{side} in Unicode form NFD, {other} in NFC: equal words differ; "
                "give --normalize nfc"
            )
            kinds[kind] = own.not_nfc
        for kind, lines in kinds.items():
            line = lines.first if side == "hypotheses" else None
            notices.add(kind, source=source, line=line, count=lines.count)


def note_differences(
    hypotheses: Sequence[bytes],
    references: Sequence[bytes],
    notices: Notices,
    *,
    source: str = "",
    numbers: Sequence[int | None] | None = None,
) -> None:
    """Add a notice where hypotheses and references spell characters otherwise (`note_spelling`).

    numbers: line numbers of the hypotheses of k-best lists in their file `source` [default: 1, 2,
    …, of a plain text].
    """
    own, others = Spelling(), Spelling()
    own.add(hypotheses, range(1, len(hypotheses) + 1) if numbers is None else numbers)
    others.add(references)
    note_spelling(own, others, notices, source=source, of_lists=numbers is not None)
