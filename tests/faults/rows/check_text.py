"""Text and encoding, as `rerank check` and the commands that read lists see them."""

from support.faults import (
    FAULT,
    SOUND,
    WARNING,
    around,
    both,
    checked,
    line,
    normal_form,
    recoded,
    replaced,
)
from support.forms import DOCS, KBEST, REF, SOURCE, jsonl, kbest

LONG = "x" * (17 << 20)

FAULTS = [
    # Text and encoding
    *(
        checked(f"01-check-{name}", WARNING, rf"{name}:1: byte-order mark at the start, removed; ",
             {name: around(b"\xef\xbb\xbf")})
        for name in (KBEST, DOCS, REF)
    ),
    checked("02-check-in-a-hypothesis", WARNING, r"dev\.kbest:3: byte-order mark inside the text, kept; ",
         kbest(line(3, "light", "\ufefflight"))),
    checked("02-check-in-a-reference", WARNING, r"dev\.ref:2: byte-order mark inside the text, kept; ",
         {REF: line(2, "light", "\ufefflight")}),
    checked("02-check-after-a-hypothesis", WARNING, r"dev\.kbest:9: byte-order mark inside",
         kbest(line(9, "coming", "coming\ufeff"))),
    checked("03-check-kbest", FAULT, r"dev\.kbest:1: .*UTF-16 little-endian; convert it with: iconv",
         kbest(both(recoded("utf-16-le"), around(b"\xff\xfe")))),
    checked("03-check-kbest-without-mark", FAULT, r"dev\.kbest:1: .*UTF-16 big-endian; convert",
         kbest(recoded("utf-16-be"))),
    checked("03-check-reference", FAULT, r"dev\.ref:1: .*UTF-16 little-endian; convert",
         {REF: both(recoded("utf-16-le"), around(b"\xff\xfe"))}),
    checked("03-check-docs-32", FAULT, r"dev\.docs:1: .*UTF-32 little-endian; convert",
         {DOCS: both(recoded("utf-32-le"), around(b"\xff\xfe\0\0"))}),
    checked("04-check-latin-1", FAULT, r"dev\.kbest:6: expected UTF-8, found 0xE9 at byte 14 .*; if so",
         kbest(recoded("latin-1"))),
    checked("04-check-reference", FAULT, r"dev\.ref:3: expected UTF-8, found 0xE9",
         {REF: recoded("latin-1")}),
    checked("04-check-docs", FAULT, r"dev\.docs:2: expected UTF-8, found 0xFF",
         {DOCS: lambda old: old.replace(b"evening\ntown", b"even\xffing\ntown")}),
    checked("05-check-kbest", FAULT, r"dev\.kbest:3: .*encoded surrogate \(CESU-8\); convert",
         kbest(lambda old: old.replace(b"it gives", b"it \xed\xa0\x80\xed\xb0\x80"))),
    checked("05-check-reference", FAULT, r"dev\.ref:2: .*encoded surrogate",
         {REF: lambda old: old.replace(b"gives", b"\xed\xa0\x80\xed\xb0\x80")}),
    checked("05-check-json", FAULT, r"dev\.kbest:2: .*half a surrogate pair",
         jsonl(line(2, "it gives", "\\ud800 gives"))),
    checked("06-check-kbest", FAULT, r"dev\.kbest:3: .*NUL byte at byte 9 of the line; remove",
         kbest(line(3, " gives", "\0gives"))),
    checked("06-check-reference", FAULT, r"dev\.ref:4: .*NUL byte", {REF: line(4, "nobody", "no\0body")}),
    checked("06-check-docs", FAULT, r"dev\.docs:1: .*NUL byte", {DOCS: line(1, "evening", "eve\0ning")}),
    *(
        checked(f"07-check-{name}", WARNING, rf"{name}:1: CRLF line ends, read as LF; .* times",
             {name: replaced("\n", "\r\n")})
        for name in (KBEST, DOCS, REF)
    ),
    checked("08-check-kbest", WARNING, r"dev\.kbest:3: carriage return inside a line, kept; convert",
         kbest(line(3, "it gives", "it\rgives"))),
    checked("08-check-last-line", WARNING, r"dev\.kbest:9: carriage return inside",
         kbest(line(9, "no one", "no\rone"))),
    checked("08-check-reference", WARNING, r"dev\.ref:1: carriage return inside",
         {REF: line(1, "is lit", "is\rlit")}),
    checked("09-check-u2028", WARNING, r"dev\.kbest:3: separator other than LF .*; ",
         kbest(line(3, "gives", "gi\u2028ves"))),
    checked("09-check-next-line", WARNING, r"dev\.ref:2: separator other", {REF: line(2, "a", "\x85a")}),
    checked("09-check-vertical-tab", WARNING, r"dev\.kbest:9: separator other",
         kbest(line(9, "coming", "com\ving"))),
    *(
        checked(f"10-check-{name}", SOUND, "no faults, no warnings", {name: lambda old: old.rstrip(b"\n")})
        for name in (KBEST, DOCS, REF)
    ),
    checked("11-check-one-in-reference", FAULT,
         r"dev\.ref: expected 4 lines as dev\.docs has, found 5; 1 blank line more at the end",
         {REF: around(end=b"\n")}),
    checked("11-check-three-in-reference", FAULT, r"dev\.ref: .* found 7; 3 blank lines more at the end",
         {REF: around(end=b"\n \n\n")}),
    checked("11-check-in-source", FAULT, r"dev\.src: .* found 5; 1 blank line more at the end",
         {SOURCE: around(end=b"\n")}),
    checked("11-check-in-docs", FAULT, r"dev\.docs:5: expected a document id, found a blank line; give",
         {DOCS: around(end=b"\n")}),
    checked("12-check-kbest", WARNING,
         r"dev\.kbest:6: hypotheses in Unicode form NFD, .*; give --normalize nfc",
         kbest(normal_form("NFD"))),
    checked("12-check-reference", WARNING,
         r"dev\.kbest: references in Unicode form NFD, .*; give --normalize nfc",
         {REF: normal_form("NFD")}),
    checked("12-check-first-candidate", WARNING, r"dev\.kbest:6: hypotheses in Unicode form NFD",
         kbest(line(6, "caf\u00e9", "cafe\u0301"))),
    checked("13-check-no-break", WARNING, r"dev\.kbest:3: no-break space U\+00A0, kept; ",
         kbest(line(3, "it gives", "it\xa0gives"))),
    checked("13-check-ideographic", WARNING, r"dev\.kbest:6: ideographic space U\+3000, kept; ",
         kbest(line(6, "is closed", "is\u3000closed"))),
    checked("13-check-zero-width", WARNING, r"dev\.ref:1: zero-width space U\+200B, kept; ",
         {REF: line(1, "lamp", "la\u200bmp")}),
    checked("13-check-soft-hyphen", WARNING, r"dev\.kbest:1: soft hyphen U\+00AD, kept; ",
         kbest(line(1, "lamp", "la\xadmp"))),
    *(
        checked(f"14-check-u{ord(mark):04x}", WARNING,
             r"dev\.kbest:3: bidirectional control character, kept; ",
             kbest(line(3, "light", f"{mark}light")))
        for mark in "\u202e\u200f\u2066"
    ),
    checked("15-check-hypotheses", WARNING, r"dev\.kbest:3: mixed escaping: hypotheses .*; unescape",
         kbest(line(3, "light", "light &apos;s"))),
    checked("15-check-references", WARNING, r"dev\.kbest: mixed escaping: references .*; unescape",
         {REF: line(1, "lit", "lit &amp; bright")}),
    checked("15-check-bar", WARNING, r"dev\.kbest:1: mixed escaping: hypotheses contain &#124;",
         kbest(line(1, "lamp", "&#124; lamp"))),
    checked("16-check-read-uniquely", WARNING, r"dev\.kbest:3: hypothesis that contains '\|\|\|', kept; ",
         kbest(line(3, "it gives", "it ||| gives"))),
    checked("16-check-could-be-columns", FAULT, r"dev\.kbest:3: expected .*'\|\|\|' inside a hypothesis",
         kbest(line(3, "light |||", "light ||| LM0= 1 ||| 2 |||"))),
    checked("16-check-in-first-line", FAULT, r"dev\.kbest:\d: expected .*'\|\|\|' inside a hypothesis",
         kbest(line(1, "lamp is", "lamp ||| is"))),
    *(
        checked(f"17-check-{name}", WARNING,
             r"dev\.kbest:3: hypothesis that contains <s>, .*; ",
             kbest(line(3, "light", word)))
        for name, word in (("start", "<s>"), ("end", "</s>"), ("unk", "<unk>"), ("pad", "<pad>"))
    ),
    checked("18-check-kbest", FAULT, r"dev\.kbest:3: expected at most 16777216 bytes in a line",
         kbest(line(3, "light", LONG))),
    checked("18-check-reference", FAULT, r"dev\.ref:4: expected at most [\d,]+ bytes in a line, found more",
         {REF: line(4, "coming", LONG)}),
    checked("18-check-docs", FAULT, r"dev\.docs:2: expected at most 8192 bytes in a line",
         {DOCS: line(2, "evening", "e" * 8193)}),
]
