"""Files of a run with one fault each, by row of the catalogue of faults, and sound variants.

Each is made from the sound files of `tests/faults/00-sound`. A row that no file can show is in
`OTHER_ROWS`, with the reason.
"""

import gzip
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

KBEST, DOCS, REF, SOURCE, WEIGHTS = "dev.kbest", "dev.docs", "dev.ref", "dev.src", "w.ini"
FAULT, WARNING, SOUND = 3, 1, 0
Change = Callable[[bytes], bytes]

OTHER_ROWS = {
    19: "the locale is no file; a test of its own runs `check` in two, tests/test_faults.py decode",
    50: "files that are not given; a test of its own gives three lists without them",
}


@dataclass(frozen=True)
class Case:
    """Files made from sound ones, and what commands say of them.

    changes: by file; finding: pattern of the line of `check`; options: of all commands;
    decoded, tuned: exit codes, None where the command does not read the file.
    """

    row: int
    name: str
    level: int
    finding: str
    changes: Mapping[str, Change]
    options: Sequence[str] = ()
    decoded: int | None = None
    tuned: int | None = None

    @property
    def id(self) -> str:
        """`23-word`, for pytest."""
        return f"{self.row:02}-{self.name}"

    def lay_out(self, sound: Path, folder: Path) -> None:
        """Write the files into a folder."""
        for name in (KBEST, DOCS, REF, WEIGHTS):
            (folder / name).write_bytes((sound / name).read_bytes())
        (folder / SOURCE).write_bytes(b"la lampe\nelle luit\nle bar\npersonne\n")
        for name, change in self.changes.items():
            (folder / name).write_bytes(change((folder / name).read_bytes()))


def case(
    row: int,
    name: str,
    level: int,
    finding: str,
    changes: Mapping[str, Change],
    *options: str,
    decoded: int | None = -1,
    tuned: int | None = -1,
) -> Case:
    """A case whose commands refuse the files that `check` refuses, if they read them."""
    code = FAULT if level == FAULT else 0
    read = {KBEST, DOCS, WEIGHTS} & set(changes)
    if decoded == -1:
        decoded = code if read else None
    if tuned == -1:
        tuned = code if {KBEST, DOCS, REF} & set(changes) else None
    return Case(row, name, level, finding, changes, options, decoded, tuned)


# Changes


def line(number: int, old: str, new: str) -> Change:
    """Another text on a line, counted from 1."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        assert old.encode() in lines[number - 1], lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old.encode(), new.encode(), 1)
        return b"\n".join(lines)

    return change


def replaced(old: str, new: str) -> Change:
    """Another text wherever one is."""
    return lambda content: content.replace(old.encode(), new.encode())


def put(number: int, *lines: str) -> Change:
    """Lines before the line of this number."""

    def change(content: bytes) -> bytes:
        found = content.split(b"\n")
        found[number - 1 : number - 1] = [one.encode() for one in lines]
        return b"\n".join(found)

    return change


def without(*numbers: int) -> Change:
    """The content without these lines."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"\n".join(one for n, one in enumerate(lines, 1) if n not in numbers)

    return change


def order(*numbers: int) -> Change:
    """The lines of these numbers, in this order."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"".join(lines[n - 1] + b"\n" for n in numbers)

    return change


def content(new: bytes | str) -> Change:
    """Another content."""
    made = new.encode() if isinstance(new, str) else new
    return lambda old: made


def recoded(encoding: str) -> Change:
    """The text in another encoding."""
    return lambda old: old.decode().encode(encoding)


def normal_form(form: str) -> Change:
    """The text in another Unicode form."""
    return lambda old: unicodedata.normalize(form, old.decode()).encode()  # type: ignore[arg-type]


def before(start: bytes) -> Change:
    """Bytes before the content."""
    return lambda old: start + old


def after(end: bytes) -> Change:
    """Bytes after the content."""
    return lambda old: old + end


def both(*changes: Change) -> Change:
    """Several changes, one after another."""

    def change(old: bytes) -> bytes:
        for one in changes:
            old = one(old)
        return old

    return change


def each_line(change: Callable[[str], str]) -> Change:
    """A change of every line."""
    return lambda old: "".join(change(one) + "\n" for one in old.decode().splitlines()).encode()


def _columns(one: str) -> list[str]:
    return [column.strip() for column in one.split("|||")]


def as_moses(old: bytes) -> bytes:
    """The sound list as it is."""
    return old


def as_jsonl(old: bytes) -> bytes:
    """A Moses list of the sound features as JSON lines."""
    rows = [_columns(one) for one in old.decode().splitlines()]
    lines = []
    for sentence, group in groupby(rows, key=lambda row: row[0]):
        candidates = []
        for _, text, features, total in group:
            lm, tm0, tm1, wp = (float(token) for token in features.split() if token[-1] != "=")
            values = {"LM0": lm, "TM0": [tm0, tm1], "WP0": wp}
            candidates.append({"text": text, "score": float(total), "features": values})
        lines.append(json.dumps({"id": int(sentence), "candidates": candidates}))
    return "".join(one + "\n" for one in lines).encode()


def as_sockeye(old: bytes) -> bytes:
    """A Moses list as Sockeye's JSON."""
    rows = [_columns(one) for one in old.decode().splitlines()]
    lines = []
    for _, group in groupby(rows, key=lambda row: row[0]):
        found = list(group)
        one = {
            "sentence_id": found[0][0],
            "translation": found[0][1],
            "translations": [row[1] for row in found],
            "scores": [[-float(row[3])] for row in found],
        }
        lines.append(json.dumps(one))
    return "".join(one + "\n" for one in lines).encode()


def as_fairseq(old: bytes) -> bytes:
    """A Moses list as output of fairseq-generate."""
    lines = []
    rows = [_columns(one) for one in old.decode().splitlines()]
    for sentence, group in groupby(rows, key=lambda row: row[0]):
        lines.append(f"S-{sentence}\tsource {sentence}")
        for _, text, _, total in group:
            lines += [f"H-{sentence}\t{total}\t{text}", f"P-{sentence}\t-0.5 {total}"]
    return "".join(one + "\n" for one in lines).encode()


def sockeye(change: Change) -> dict[str, Change]:
    return {KBEST: both(as_sockeye, change), WEIGHTS: content("[weight]\nlogprob= 1\n")}


def fairseq(change: Change) -> dict[str, Change]:
    return {
        KBEST: both(as_fairseq, change),
        WEIGHTS: content("[weight]\nlogprob= 0\nscore= 1\n"),
    }


def jsonl(change: Change) -> dict[str, Change]:
    return {KBEST: both(as_jsonl, change)}


def kbest(change: Change) -> dict[str, Change]:
    return {KBEST: change}


def _firsts_as_references(old: bytes) -> bytes:
    return b"the lamp is lit\nit gives light\nthe caf\xc3\xa9 is closed\nnobody comes\n"


_LONG = "x" * (17 << 20)
_RAGGED = r"expected 4 feature values as on the first line, found"
_DATASET = '<dataset><doc id="evening"><ref><seg id="1">a</seg></ref></doc></dataset>'
_SGML = """\
<refset setid="x" srclang="any" trglang="en">
<doc docid="town">
<seg id="1">the bar is closed & dark</seg>
<seg id="2">no one is coming</seg>
</doc>
<DOC genre="talk" docid="evening">
<seg id="1">the lamp is lit</seg>
<seg id="2">it gives a light</seg>
</DOC>
</refset>
"""
_BOMB = '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY c "&a;&a;&a;&a;">]>\n<dataset>&c;</dataset>\n'
_DOCTYPES = (
    ("bomb", '[<!ENTITY a "aaaa"><!ENTITY c "&a;&a;">]'),
    ("external", '[<!ENTITY b SYSTEM "file:///x">]'),
    ("dtd", 'SYSTEM "http://example.org/a.dtd"'),
)

BROKEN = [
    # Text and encoding
    *(
        case(1, name, WARNING, rf"{name}:1: byte-order mark at the start, removed; ",
             {name: before(b"\xef\xbb\xbf")})
        for name in (KBEST, DOCS, REF)
    ),
    case(2, "in-a-hypothesis", WARNING, r"dev\.kbest:3: byte-order mark inside the text, kept; ",
         kbest(line(3, "light", "\ufefflight"))),
    case(2, "in-a-reference", WARNING, r"dev\.ref:2: byte-order mark inside the text, kept; ",
         {REF: line(2, "light", "\ufefflight")}),
    case(2, "after-a-hypothesis", WARNING, r"dev\.kbest:9: byte-order mark inside",
         kbest(line(9, "coming", "coming\ufeff"))),
    case(3, "kbest", FAULT, r"dev\.kbest:1: .*UTF-16 little-endian; convert it with: iconv",
         kbest(both(recoded("utf-16-le"), before(b"\xff\xfe")))),
    case(3, "kbest-without-mark", FAULT, r"dev\.kbest:1: .*UTF-16 big-endian; convert",
         kbest(recoded("utf-16-be"))),
    case(3, "reference", FAULT, r"dev\.ref:1: .*UTF-16 little-endian; convert",
         {REF: both(recoded("utf-16-le"), before(b"\xff\xfe"))}),
    case(3, "docs-32", FAULT, r"dev\.docs:1: .*UTF-32 little-endian; convert",
         {DOCS: both(recoded("utf-32-le"), before(b"\xff\xfe\0\0"))}),
    case(4, "latin-1", FAULT, r"dev\.kbest:6: expected UTF-8, found 0xE9 at byte 14 .*; if so",
         kbest(recoded("latin-1"))),
    case(4, "reference", FAULT, r"dev\.ref:3: expected UTF-8, found 0xE9",
         {REF: recoded("latin-1")}),
    case(4, "docs", FAULT, r"dev\.docs:2: expected UTF-8, found 0xFF",
         {DOCS: lambda old: old.replace(b"evening\ntown", b"even\xffing\ntown")}),
    case(5, "kbest", FAULT, r"dev\.kbest:3: .*encoded surrogate \(CESU-8\); convert",
         kbest(lambda old: old.replace(b"it gives", b"it \xed\xa0\x80\xed\xb0\x80"))),
    case(5, "reference", FAULT, r"dev\.ref:2: .*encoded surrogate",
         {REF: lambda old: old.replace(b"gives", b"\xed\xa0\x80\xed\xb0\x80")}),
    case(5, "json", FAULT, r"dev\.kbest:2: .*half a surrogate pair",
         jsonl(line(2, "it gives", "\\ud800 gives"))),
    case(6, "kbest", FAULT, r"dev\.kbest:3: .*NUL byte at byte 9 of the line; remove",
         kbest(line(3, " gives", "\0gives"))),
    case(6, "reference", FAULT, r"dev\.ref:4: .*NUL byte", {REF: line(4, "nobody", "no\0body")}),
    case(6, "docs", FAULT, r"dev\.docs:1: .*NUL byte", {DOCS: line(1, "evening", "eve\0ning")}),
    *(
        case(7, name, WARNING, rf"{name}:1: CRLF line ends, read as LF; .* times",
             {name: replaced("\n", "\r\n")})
        for name in (KBEST, DOCS, REF)
    ),
    case(8, "kbest", WARNING, r"dev\.kbest:3: carriage return inside a line, kept; convert",
         kbest(line(3, "it gives", "it\rgives"))),
    case(8, "last-line", WARNING, r"dev\.kbest:9: carriage return inside",
         kbest(line(9, "no one", "no\rone"))),
    case(8, "reference", WARNING, r"dev\.ref:1: carriage return inside",
         {REF: line(1, "is lit", "is\rlit")}),
    case(9, "u2028", WARNING, r"dev\.kbest:3: separator other than LF .*; ",
         kbest(line(3, "gives", "gi\u2028ves"))),
    case(9, "next-line", WARNING, r"dev\.ref:2: separator other", {REF: line(2, "a", "\x85a")}),
    case(9, "vertical-tab", WARNING, r"dev\.kbest:9: separator other",
         kbest(line(9, "coming", "com\ving"))),
    *(
        case(10, name, SOUND, "no faults, no warnings", {name: lambda old: old.rstrip(b"\n")})
        for name in (KBEST, DOCS, REF)
    ),
    case(11, "one-in-reference", FAULT,
         r"dev\.ref: expected 4 lines as dev\.docs has, found 5; 1 blank line more at the end",
         {REF: after(b"\n")}),
    case(11, "three-in-reference", FAULT, r"dev\.ref: .* found 7; 3 blank lines more at the end",
         {REF: after(b"\n \n\n")}),
    case(11, "in-source", FAULT, r"dev\.src: .* found 5; 1 blank line more at the end",
         {SOURCE: after(b"\n")}),
    case(11, "in-docs", FAULT, r"dev\.docs:5: expected a document id, found a blank line; give",
         {DOCS: after(b"\n")}),
    case(12, "kbest", WARNING,
         r"dev\.kbest:6: hypotheses in Unicode form NFD, .*; give --normalize nfc",
         kbest(normal_form("NFD"))),
    case(12, "reference", WARNING,
         r"dev\.kbest: references in Unicode form NFD, .*; give --normalize nfc",
         {REF: normal_form("NFD")}),
    case(12, "first-candidate", WARNING, r"dev\.kbest:6: hypotheses in Unicode form NFD",
         kbest(line(6, "caf\u00e9", "cafe\u0301"))),
    case(13, "no-break", WARNING, r"dev\.kbest:3: no-break space U\+00A0, kept; ",
         kbest(line(3, "it gives", "it\xa0gives"))),
    case(13, "ideographic", WARNING, r"dev\.kbest:6: ideographic space U\+3000, kept; ",
         kbest(line(6, "is closed", "is\u3000closed"))),
    case(13, "zero-width", WARNING, r"dev\.ref:1: zero-width space U\+200B, kept; ",
         {REF: line(1, "lamp", "la\u200bmp")}),
    case(13, "soft-hyphen", WARNING, r"dev\.kbest:1: soft hyphen U\+00AD, kept; ",
         kbest(line(1, "lamp", "la\xadmp"))),
    *(
        case(14, f"u{ord(mark):04x}", WARNING,
             r"dev\.kbest:3: bidirectional control character, kept; ",
             kbest(line(3, "light", f"{mark}light")))
        for mark in "\u202e\u200f\u2066"
    ),
    case(15, "hypotheses", WARNING, r"dev\.kbest:3: mixed escaping: hypotheses .*; unescape",
         kbest(line(3, "light", "light &apos;s"))),
    case(15, "references", WARNING, r"dev\.kbest: mixed escaping: references .*; unescape",
         {REF: line(1, "lit", "lit &amp; bright")}),
    case(15, "bar", WARNING, r"dev\.kbest:1: mixed escaping: hypotheses contain &#124;",
         kbest(line(1, "lamp", "&#124; lamp"))),
    case(16, "read-uniquely", WARNING, r"dev\.kbest:3: hypothesis that contains '\|\|\|', kept; ",
         kbest(line(3, "it gives", "it ||| gives"))),
    case(16, "could-be-columns", FAULT, r"dev\.kbest:3: expected .*'\|\|\|' inside a hypothesis",
         kbest(line(3, "light |||", "light ||| LM0= 1 ||| 2 |||"))),
    case(16, "in-first-line", FAULT, r"dev\.kbest:\d: expected .*'\|\|\|' inside a hypothesis",
         kbest(line(1, "lamp is", "lamp ||| is"))),
    *(
        case(17, word.strip("</>") + "-" * word.count("/") + "literal", WARNING,
             r"dev\.kbest:3: hypothesis that contains <s>, .*; ",
             kbest(line(3, "light", word)))
        for word in ("<s>", "</s>", "<unk>", "<pad>")
    ),
    case(18, "kbest", FAULT, r"dev\.kbest:3: expected at most 16777216 bytes in a line",
         kbest(line(3, "light", _LONG))),
    case(18, "reference", FAULT, r"dev\.ref:4: expected at most [\d,]+ bytes in a line, found more",
         {REF: line(4, "coming", _LONG)}),
    case(18, "docs", FAULT, r"dev\.docs:2: expected at most 8192 bytes in a line",
         {DOCS: line(2, "evening", "e" * 8193)}),
    # K-best lists
    case(20, "empty", FAULT, r"dev\.kbest: expected a k-best list, found no hypotheses",
         kbest(content(""))),
    case(20, "blank-lines", FAULT, r"dev\.kbest: expected a k-best list, found no hypotheses",
         kbest(content("\n\n\n"))),
    case(20, "compressed", FAULT, r"dev\.kbest: expected a k-best list, found no hypotheses",
         kbest(content(gzip.compress(b"")))),
    case(20, "docs", FAULT, r"dev\.docs: expected one document id per source line, found none",
         {DOCS: content("")}),
    *(
        case(21, name, WARNING, rf"dev\.kbest:{number}: blank line, skipped; ",
             kbest(put(number, blank)))
        for name, number, blank in (("first", 1, ""), ("middle", 4, ""), ("blanks", 10, "  "))
    ),
    case(22, "two-columns", FAULT, r"dev\.kbest:1: expected a k-best list, found .*formats tried",
         kbest(content("0 ||| the lamp\n"))),
    case(22, "tabs", FAULT, r"dev\.kbest:1: expected a k-best list, found .*formats tried",
         kbest(replaced(" ||| ", "\t"))),
    case(22, "json", FAULT, r"dev\.kbest:1: .*has no list of candidates",
         kbest(content('{"text": "the lamp"}\n'))),
    case(22, "a-line", FAULT, r"dev\.kbest:4: expected 4 columns as on the first line, found 2",
         kbest(put(4, "1 ||| it gives"))),
    *(
        case(23, name, FAULT, r"dev\.kbest:3: expected a sentence id \(digits 0-9\), found",
             kbest(line(3, "1 |||", f"{bad} |||")))
        for name, bad in (("word", "x"), ("underscore", "1_0"), ("arabic", "\u0661"),
                          ("full-width", "\uff11"), ("decimal", "1.0"))
    ),
    *(
        case(24, name, FAULT, r"dev\.kbest:3: expected a sentence id", 
             kbest(line(3, "1 |||", f"{bad} |||")))
        for name, bad in (("negative", "-1"), ("two-to-31", "2147483648"), ("huge", "9" * 30))
    ),
    case(25, "first", WARNING, r"dev\.kbest: source line without hypotheses \(ids 0\); ",
         kbest(without(1, 2))),
    case(25, "middle", WARNING, r"dev\.kbest: source line without hypotheses \(ids 1\); ",
         kbest(without(3, 4, 5))),
    case(25, "last", WARNING, r"dev\.kbest: source line without hypotheses \(ids 3\); ",
         kbest(without(8, 9))),
    case(26, "interleaved", WARNING, r"dev\.kbest:3: interleaved ids, grouped by sentence; ",
         kbest(order(1, 3, 2, 4, 5, 6, 7, 8, 9))),
    case(26, "descending", WARNING, r"dev\.kbest:4: interleaved ids",
         kbest(order(3, 4, 5, 1, 2, 8, 9, 6, 7))),
    case(26, "across-documents", FAULT,
         r"dev\.kbest:6: expected ids of this document or a later one, .*; sort the list with",
         kbest(order(1, 2, 3, 4, 6, 5, 7, 8, 9))),
    case(26, "documents-descend", FAULT, r"dev\.kbest:5: expected ids of this document",
         kbest(order(6, 7, 8, 9, 1, 2, 3, 4, 5))),
    case(27, "one", FAULT, r"dev\.kbest:9: expected ids of 4 source lines, found id 4, which",
         kbest(line(9, "3 |||", "4 |||"))),
    case(27, "far", FAULT, r"dev\.kbest:2: expected ids of 4 source lines, found id 2000, which",
         kbest(line(2, "0 |||", "2000 |||"))),
    case(27, "docs-too-short", FAULT, r"dev\.kbest:8: expected ids of 3 source lines, found id 3",
         {DOCS: without(4)}),
    case(28, "all", FAULT, r"dev\.kbest:8: .*ids look 1-based; use --first-id 1",
         kbest(each_line(lambda one: f"{int(one[0]) + 1}{one[1:]}"))),
    case(28, "json", FAULT, r"dev\.kbest:4: .*ids look 1-based; use --first-id 1",
         kbest(both(each_line(lambda one: f"{int(one[0]) + 1}{one[1:]}"), as_jsonl))),
    case(28, "marian", FAULT, r"dev\.kbest:8: .*ids look 1-based",
         kbest(both(each_line(lambda one: f"{int(one[0]) + 1}{one[1:]}"), replaced("= ", "=")))),
    *(
        case(29, f"line-{n}", FAULT, rf"dev\.kbest:{n}: expected .* for LM0, found",
             kbest(line(n, old, f"LM0= {bad} TM0")))
        for n, old, bad in ((2, "LM0= -8.25 TM0", "nan"), (5, "LM0= -6.5 TM0", "NaN"),
                            (9, "LM0= -9.25 TM0", "-nan"))
    ),
    *(
        case(30, name, FAULT, r"dev\.kbest:3: expected .* for LM0, found",
             kbest(line(3, "LM0= -7 ", f"LM0= {bad} ")))
        for name, bad in (("inf", "inf"), ("negative", "-inf"), ("overflow", "1e400"))
    ),
    *(
        case(31, name, FAULT, r"dev\.kbest:3: expected a decimal number for LM0, found",
             kbest(line(3, "LM0= -7 ", f"LM0= {bad} ")))
        for name, bad in (("underscore", "1_0"), ("hexadecimal", "0x1"), ("comma", "1,5"),
                          ("full-width", "\uff11"))
    ),
    case(32, "missing", FAULT, rf"dev\.kbest:4: {_RAGGED} 3: WP0 has 0 instead of 1",
         kbest(line(4, " WP0= -4", ""))),
    case(32, "renamed", FAULT, rf"dev\.kbest:4: {_RAGGED} 4: .*WP0 has 0",
         kbest(line(4, "WP0", "WP1"))),
    case(32, "added", FAULT, rf"dev\.kbest:7: {_RAGGED} 5: ",
         kbest(line(7, "WP0= -3", "WP0= -3 XX0= 1"))),
    case(33, "more-values", FAULT, rf"dev\.kbest:4: {_RAGGED} 5: TM0 has 3 instead of 2",
         kbest(line(4, "TM0= -2", "TM0= -2 -2"))),
    case(33, "repeated-label", FAULT, rf"dev\.kbest:6: {_RAGGED} 5: LM0 has 2 instead of 1",
         kbest(line(6, "WP0= -4", "WP0= -4 LM0= -1"))),
    case(33, "fewer-values", FAULT, rf"dev\.kbest:9: {_RAGGED} 3: TM0 has 1 instead of 2",
         kbest(line(9, "TM0= -1.5 -2.5", "TM0= -1.5"))),
    case(33, "repeated-everywhere",
        SOUND,
        "no faults, no warnings",
        {
            KBEST: replaced("WP0= ", "TM0= "),
            WEIGHTS: content("[weight]\nLM0= 0.5\nTM0= 0.25 0.125 -0.125\n"),
        },
    ),
    case(34, "marian", WARNING, r"dev\.kbest:1: no blank between label and value, .*; ",
         kbest(replaced("= ", "="))),
    case(34, "old-labels", WARNING, r"dev\.kbest:1: old Moses labels, .*; ",
         kbest(replaced("= ", ": "))),
    case(34, "unlabelled", WARNING, r"dev\.kbest:1: features without labels, called F0, .*; ",
         {KBEST: both(replaced("LM0= ", ""), replaced("TM0= ", ""), replaced("WP0= ", "")),
          WEIGHTS: content("[weight]\nF0= 0.5\nF1= 0.25\nF2= 0.125\nF3= -0.125\n")}),
    case(35, "one-line", WARNING, r"dev\.kbest:4: line with sparse features .*; ",
         kbest(line(4, "WP0= -4", "WP0= -4 PT_x= 1"))),
    case(35, "every-line", WARNING, r"dev\.kbest:1: line with sparse features .* \(9 times",
         kbest(replaced(" WP0=", " PP_a= 1 WP0="))),
    case(35, "different-names", WARNING, r"dev\.kbest:1: line with sparse features .* \(2 times",
         kbest(both(line(1, "WP0=", "T_a= 1 WP0="), line(7, "WP0=", "T_b= 2 WP0=")))),
    case(36, "everywhere", WARNING, r"dev\.kbest:1: no total column; ",
         kbest(each_line(lambda one: one.rpartition(" |||")[0]))),
    case(36, "one-line", WARNING, r"dev\.kbest:4: no total column; ",
         kbest(line(4, " ||| -3.96875", ""))),
    case(36, "last-line", WARNING, r"dev\.kbest:9: no total column; ",
         kbest(line(9, " ||| -4.8125", ""))),
    case(37, "one", WARNING,
         r"dev\.kbest:3: total that is not the weighted sum .*largest difference 6\.46875\); ",
         kbest(line(3, "-3.53125", "-10"))),
    case(37, "two", WARNING, r"dev\.kbest:1: total that is not .*difference 0\.125\).*2 times",
         kbest(both(line(1, "-4.875", "-5"), line(9, "-4.8125", "-4.75")))),
    case(37, "weights", WARNING, r"dev\.kbest:1: total that is not .*\(9 times\)",
         {WEIGHTS: content("[weight]\nLM0= 1\nTM0= 0.25 0.125\nWP0= -0.125\n")}),
    *(
        case(38, f"line-{n}", WARNING, rf"dev\.kbest:{n}: duplicate hypothesis, kept; ",
             kbest(line(n, old, new)))
        for n, old, new in ((2, "a lamp burns", "the lamp is lit"),
                            (5, "it lights", "it gives light"),
                            (9, "no one is coming", "nobody comes"))
    ),
    *(
        case(39, f"line-{n}", WARNING, rf"dev\.kbest:{n}: empty hypothesis; ",
             kbest(line(n, f"||| {old} |||", "|||  |||")))
        for n, old in ((1, "the lamp is lit"), (5, "it lights"), (9, "no one is coming"))
    ),
    case(39, "all", WARNING, r"dev\.kbest:6: empty hypothesis; .* \(2 times",
         kbest(both(line(6, "the café is closed", ""), line(7, "the café closed", "")))),
    case(40, "moses", WARNING, r"dev\.kbest: list with one hypothesis per sentence, .*; ",
         kbest(order(1, 3, 6, 8))),
    case(40, "json", WARNING, r"dev\.kbest: list with one hypothesis per sentence",
         kbest(both(order(2, 4, 7, 9), as_jsonl))),
    case(40, "marian", WARNING, r"dev\.kbest: list with one hypothesis per sentence",
         kbest(both(order(1, 5, 6, 9), replaced("= ", "=")))),
    case(41, "more-than-2", FAULT, r"dev\.kbest:5: expected at most 2 hypotheses of a sentence",
         kbest(after(b"")), "--max-k", "2"),
    case(41, "more-than-1", FAULT, r"dev\.kbest:2: expected at most 1 hypotheses of a sentence",
         kbest(after(b"")), "--max-k", "1"),
    case(41, "json", FAULT, r"dev\.kbest:2: expected at most 2 hypotheses of a sentence",
         jsonl(after(b"")), "--max-k", "2"),
    case(41, "varying", SOUND, "no faults, no warnings",
         kbest(each_line(lambda one: "\n".join(
             one.replace(" |||", f" ||| {i}", 1) for i in range(300 if one[0] == "1" else 1))))),
    case(42, "3-names", WARNING, r"dev\.kbest:1: line with sparse features .*\(9 times",
         kbest(replaced(" WP0=", " S_a= 1 S_b= 2 S_c= 3 WP0="))),
    case(42, "100-names-a-line", WARNING, r"dev\.kbest:1: line with sparse features .*\(9 times",
         kbest(each_line(lambda one: one.replace(
             " WP0=", "".join(f" S_{one[:30].replace(' ', '')}{i}= 1" for i in range(100))
             .replace("|", "") + " WP0=")))),
    case(42, "30000-names", WARNING, r"dev\.kbest:4: line with sparse features",
         kbest(line(4, " WP0=", "".join(f" S_{i}= 1" for i in range(30_000)) + " WP0="))),
    case(43, "log-lines", WARNING,
         r"dev\.kbest:3: line that is no output of fairseq \(logging\), skipped; ",
         fairseq(put(3, "2026-11-23 10:00:00 | INFO | fairseq | loading"))),
    case(43, "no-hypotheses", WARNING, r"dev\.kbest: source line without hypotheses \(ids 3\); ",
         fairseq(lambda old: old[: old.index(b"H-3")])),
    case(43, "no-tokens", WARNING, r"dev\.kbest:2: hypothesis without P- lines; ",
         {KBEST: both(as_fairseq, lambda old: b"".join(
             one for one in old.splitlines(keepends=True) if not one.startswith(b"P-"))),
          WEIGHTS: content("[weight]\nscore= 1\n")}),
    case(43, "cut-off", FAULT, r"dev\.kbest:\d+: expected a P- line as for the first hypothesis",
         fairseq(lambda old: old[: old.rindex(b"P-3")])),
    case(43, "no-id", FAULT, r"dev\.kbest:\d+: expected H-ID, score and text with TABs",
         fairseq(replaced("H-2\t-5.4375\t", "H-2\t"))),
    case(44, "nan", FAULT, r"dev\.kbest:2: expected .*number.*found .*nan", 
         sockeye(line(2, "3.53125", "NaN"))),
    case(44, "repeated-key", FAULT, r"dev\.kbest:3: .*the key 'translation' twice",
         sockeye(line(3, '"translation":', '"translation": "x", "translation":'))),
    case(44, "nested", FAULT, r"dev\.kbest:2: .*too deep a nesting|dev\.kbest:2: expected",
         sockeye(line(2, "[3.53125]", "[" * 200_000 + "]" * 200_000))),
    case(44, "digits", FAULT, r"dev\.kbest:4: .*a number of 5000 digits",
         sockeye(line(4, "4.125", "1" * 5000))),
    case(45, "mark", WARNING, r"dev\.kbest:1: byte-order mark at the start, removed; ",
         jsonl(before(b"\xef\xbb\xbf"))),
    case(45, "concatenated", FAULT, r"dev\.kbest:\d: expected .*Extra data",
         jsonl(lambda old: old.replace(b"\n", b"", 2).replace(b"}{", b"} {", 1)),
         "--kbest-format", "jsonl"),
    case(45, "concatenated-later", FAULT, r"dev\.kbest:3: expected .*Extra data",
         jsonl(lambda old: old[:-1].replace(b'\n{"id": 3', b' {"id": 3') + b"\n")),
    case(45, "cut-off", FAULT, r"dev\.kbest:4: expected one JSON object, found",
         jsonl(lambda old: old[:-20])),
    case(46, "alignment", SOUND, "no faults, no warnings",
         kbest(each_line(lambda one: f"{one} ||| 0-0 1-1 "))),
    case(46, "segmentation", SOUND, "no faults, no warnings",
         kbest(each_line(lambda one: f"{one} ||| 0=0 1-2=1 ||| 0-0 1-1 "))),
    case(46, "before-features", SOUND, "no faults, no warnings",
         kbest(each_line(lambda one: one.replace("||| LM0", "||| 0-0 1-1 ||| LM0")))),
    # Documents, sources, references
    case(47, "short", FAULT, r"dev\.ref: expected 3 lines as dev\.docs has, found 4",
         {DOCS: without(2)}),
    case(47, "long", FAULT, r"dev\.ref: expected 5 lines as dev\.docs has, found 4",
         {DOCS: after(b"town\n")}, decoded=0),
    case(47, "source-short", FAULT, r"dev\.src: expected 4 lines as dev\.docs has, found 3",
         {SOURCE: without(3)}),
    case(47, "source-long", FAULT, r"dev\.src: expected 4 lines as dev\.docs has, found 6",
         {SOURCE: after(b"a\nb\n")}),
    *(
        case(48, name, FAULT, rf"dev\.docs:{n}: expected each document in one run of lines, .*; ",
             {DOCS: content(names)})
        for name, n, names in (("first", 3, "a\nb\na\na\n"), ("last", 4, "a\nb\nc\na\n"),
                               ("twice", 3, "a\nb\na\nb\n"))
    ),
    *(
        case(49, name, SOUND, "no faults, no warnings", {DOCS: content(names)})
        for name, names in (("each", "a\nb\nc\nd\n"), ("last", "a\na\na\nb\n"),
                            ("first", "a\nb\nb\nb\n"))
    ),
    case(49, "blank-id", FAULT, r"dev\.docs:2: expected a document id, found a blank line; ",
         {DOCS: line(2, "evening", "")}),
    case(51, "one-document", SOUND, "no faults, no warnings", {DOCS: content("a\n" * 4)}),
    case(51, "2000-sentences", SOUND, "no faults, no warnings",
         {KBEST: lambda old: b"".join(
             b"%d ||| word %d %d ||| LM0= -%d TM0= -1 -1 WP0= -2 ||| -%d.125\n"
             % (t, t, k, k + 1, 0) for t in range(2000) for k in range(2)),
          DOCS: content("a\n" * 2000), REF: content("word 1 0\n" * 2000),
          SOURCE: content("mot\n" * 2000),
          WEIGHTS: content("[weight]\nLM0= 0\nTM0= 0 0\nWP0= 0.0625\n")},
         decoded=None, tuned=None),
    case(51, "by-option", SOUND, "no faults, no warnings", kbest(after(b"")), decoded=None,
         tuned=None),
    case(52, "missing", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 3; line i",
         {REF: without(2)}),
    case(52, "more", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 5; line i",
         {REF: put(2, "one more")}),
    case(52, "blank", WARNING, r"dev\.ref:2: blank reference; ",
         {REF: line(2, "it gives a light", "")}),
    case(52, "empty-file", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 0",
         {REF: content("")}),
    *(
        case(53, f"line-{n}", WARNING,
             rf"dev\.ref:{n}: reference that only says there is no translation; ",
             {REF: line(n, old, new)})
        for n, old, new in ((1, "the lamp is lit", "NO TRANSLATION AVAILABLE"),
                            (2, "it gives a light", "NO BEST TRANSLATION"),
                            (4, "nobody is coming", " NO TRANSLATION AVAILABLE "))
    ),
    *(
        case(54, name, FAULT, r"dev\.kbest:1: .*it looks like SGML or XML of documents",
             kbest(content(text)))
        for name, text in (
            ("ampersand", '<tstset setid="x"><doc docid="a"><seg id="1">a & b</seg></doc>\n'),
            ("repeated-id", '<doc docid="a">\n<seg id="1">a</seg>\n<seg id="1">b</seg>\n'),
            ("no-system", '<refset setid="x">\n<doc docid="a"><seg id="1">a</seg></doc>\n'),
        )
    ),
    case(55, "bomb", FAULT, r"dev\.kbest:1: ", kbest(content(_BOMB))),
    case(55, "external", FAULT, r"dev\.kbest:1: .*SGML or XML", kbest(content(
        '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hosts">]>\n'))),
    case(55, "dtd", FAULT, r"dev\.kbest:1: .*SGML or XML", kbest(content(
        '<?xml version="1.0"?>\n<!DOCTYPE a SYSTEM "http://example.org/a.dtd">\n<dataset/>\n'))),
    case(54, "reference-joined-by-ids", SOUND, "no faults, no warnings", {REF: content(_SGML)}),
    case(54, "reference-repeated-id", FAULT, r"dev\.ref:\d+: .*seg",
         {REF: content(_SGML.replace('<seg id="2">it gives', '<seg id="1">it gives'))}),
    case(54, "reference-of-others", FAULT, r"dev\.ref: expected a reference of each of 4 sentences",
         {REF: content(_SGML.replace('docid="town"', 'docid="village"'))}),
    *(
        case(55, f"reference-{name}", FAULT, r"dev\.ref:\d+: .*(entit|document type)",
             {REF: content(f"<?xml version='1.0'?>\n<!DOCTYPE a {kind}>\n{_DATASET}\n")})
        for name, kind in _DOCTYPES
    ),
    case(54, "documents", SOUND, "no faults, no warnings", {DOCS: content(_SGML)}),
    case(54, "documents-repeated-id", FAULT, r"dev\.docs:8: .*two; number segments",
         {DOCS: content(_SGML.replace('<seg id="2">it gives', '<seg id="1">it gives'))}),
    case(54, "documents-without-docid", FAULT, r"dev\.docs:6: expected a docid",
         {DOCS: content(_SGML.replace(' docid="evening"', ""))}),
    case(54, "documents-open-segment", FAULT, r"dev\.docs:4: expected </seg>",
         {DOCS: content(_SGML.replace("coming</seg>", "coming"))}),
    *(
        case(55, f"documents-{name}", FAULT, r"dev\.docs:\d+: .*entities are not allowed",
             {DOCS: content(f"<?xml version='1.0'?>\n<!DOCTYPE a {kind}>\n{_DATASET}\n")})
        for name, kind in _DOCTYPES
    ),
    *(
        case(56, name, SOUND, "no faults, no warnings",
             {DOCS: content(f"{label}\n{label}\ntown\ntown\n")})
        for name, label in (("slash", "a/../../b"), ("script", "<script>x</script>"),
                            ("command", "=cmd()|x"), ("5-kB", "d" * 5000))
    ),
    case(57, "firsts", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ",
         {REF: _firsts_as_references}, tuned=None),
    case(57, "one-candidate", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ",
         {KBEST: order(1, 3, 6, 8), REF: _firsts_as_references}, tuned=None),
    case(57, "json", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ",
         {KBEST: as_jsonl, REF: _firsts_as_references}, tuned=None),
]  # fmt: skip

CLEAN = [
    case(0, "moses", SOUND, "", {}),
    case(0, "compressed", SOUND, "", kbest(gzip.compress)),
    case(0, "json", SOUND, "", kbest(as_jsonl)),
    case(0, "sockeye", SOUND, "", sockeye(after(b""))),
    case(0, "fairseq", SOUND, "", fairseq(after(b""))),
    case(0, "without-café", SOUND, "", {KBEST: replaced("é", "e"), REF: replaced("é", "e")}),
]
