"""Text and encoding, as `rerank check` and the commands that read lists see them."""

from support.faults import (FAULT, SOUND, WARNING, around, both, checked, line, normal_form, recoded, replaced)
from support.forms import DOCS, KBEST, REF, SOURCE, jsonl, kbest

LONG = "x" * (17 << 20)
NFD = "in Unicode form NFD"

FAULTS = [
    *(checked(f"{row}-check-{name}", level, rf"{name}{finding}", {name: change}) for name in (KBEST, DOCS, REF)
        for row, level, finding, change in (("01", WARNING, ":1: byte-order mark at the start, removed; ", around(b"\xef\xbb\xbf")), ("07", WARNING,
        ":1: CRLF line ends, read as LF; .* times", replaced("\n", "\r\n")))),
    checked("02-check-in-a-hypothesis", WARNING, r"dev\.kbest:3: byte-order mark inside the text, kept; ", kbest(line(3, "light", "\ufefflight"))),
    checked("03-check-kbest-without-mark", FAULT, r"dev\.kbest:1: .*UTF-16 big-endian; convert it with: iconv", kbest(recoded("utf-16-be"))),
    checked("03-check-reference", FAULT, r"dev\.ref:1: .*UTF-16 little-endian; convert", {REF: both(recoded("utf-16-le"), around(b"\xff\xfe"))}),
    checked("03-check-docs-32", FAULT, r"dev\.docs:1: .*UTF-32 little-endian; convert", {DOCS: both(recoded("utf-32-le"), around(b"\xff\xfe\0\0"))}),
    checked("04-check-latin-1", FAULT, r"dev\.kbest:6: expected UTF-8, found 0xE9 at byte 14 .*; if so", kbest(recoded("latin-1"))),
    checked("04-check-ascii", FAULT, r"dev\.kbest:6: expected ascii, found 0xC3 at byte 14 of the line; name the encoding", kbest(bytes), "--encoding ascii"),
    checked("04-check-docs", FAULT, r"dev\.docs:2: expected UTF-8, found 0xFF", {DOCS: replaced(b"evening\ntown", b"even\xffing\ntown")}),
    checked("04-check-cut-character", FAULT, r"dev\.ref:2: .*found 0xE5 at byte 7 of the line, probably a tr",
        {REF: replaced(b"gives a light", b"\xe5\xad\x97\xe5\xad")}),
    checked("05-check-reference", FAULT, r"dev\.ref:2: .*encoded surrogate \(CESU-8\); write the text", {REF: replaced(b"gives", b"\xed\xa0\x80\xed\xb0\x80")}),
    checked("05-check-json", FAULT, r"dev\.kbest:2: .*half a surrogate pair", jsonl(line(2, "it gives", "\\ud800 gives"))),
    checked("06-check-kbest", FAULT, r"dev\.kbest:3: .*NUL byte at byte 9 of the line; remove", kbest(line(3, " gives", "\0gives"))),
    checked("06-check-docs", FAULT, r"dev\.docs:1: .*NUL byte", {DOCS: line(1, "evening", "eve\0ning")}),
    checked("08-check-last-line", WARNING, r"dev\.kbest:9: carriage return inside a line, kept; write LF", kbest(line(9, "no one", "no\rone"))),
    checked("08-check-reference", WARNING, r"dev\.ref:1: carriage return inside", {REF: line(1, "is lit", "is\rlit")}),
    checked("09-check-u2028", WARNING, r"dev\.kbest:3: separator other than LF .*; ", kbest(line(3, "gives", "gi\u2028ves"))),
    *(checked(f"10-check-{name}", SOUND, "no faults, no warnings", {name: lambda old: old.rstrip(b"\n")}) for name in (KBEST, REF)),
    checked("11-check-three-in-reference", FAULT, r"dev\.ref: expected 4 lines .* found 7; 3 blank lines more at the end", {REF: around(end=b"\n \n\n")}),
    checked("11-check-in-source", FAULT, r"dev\.src: .* found 5; 1 blank line more at the end", {SOURCE: around(end=b"\n")}),
    checked("11-check-in-docs", FAULT, r"dev\.docs:5: expected a document id, found a blank line; give", {DOCS: around(end=b"\n")}),
    checked("12-check-first-candidate", WARNING, rf"dev\.kbest:6: hypotheses {NFD}, .*; give --normalize nfc", kbest(line(6, "caf\u00e9", "cafe\u0301"))),
    checked("12-check-reference", WARNING, rf"dev\.kbest: references {NFD}, .*; give --normalize nfc", {REF: normal_form("NFD")}),
    checked("13-check-no-break", WARNING, r"dev\.kbest:3: no-break space U\+00A0, kept; ", kbest(line(3, "it gives", "it\xa0gives"))),
    checked("14-check-u202e", WARNING, r"dev\.kbest:3: bidirectional control character, kept; ", kbest(line(3, "light", "\u202elight"))),
    checked("15-check-hypotheses", WARNING, r"dev\.kbest:3: mixed escaping: hypotheses .*; unescape", kbest(line(3, "light", "light &apos;s"))),
    checked("15-check-references", WARNING, r"dev\.kbest: mixed escaping: references .*; unescape", {REF: line(1, "lit", "lit &amp; bright")}),
    checked("16-check-read-uniquely", WARNING, r"dev\.kbest:3: hypothesis that contains '\|\|\|', kept; ", kbest(line(3, "it gives", "it ||| gives"))),
    checked("16-check-could-be-columns", FAULT, r"dev\.kbest:3: expected .*'\|\|\|' inside a hypothesis",
        kbest(line(3, "light |||", "light ||| LM0= 1 ||| 2 |||"))),
    checked("16-check-in-first-line", FAULT, r"dev\.kbest:\d: expected .*'\|\|\|' inside a hypothesis", kbest(line(1, "lamp is", "lamp ||| is"))),
    *(checked(f"17-check-{word[1:-1].strip('/')}-{n}", WARNING, r"dev\.kbest:3: hypothesis that contains <s>, .*; ", kbest(line(3, "light", word)))
        for n, word in enumerate(("</s>", "<unk>"))),
    checked("18-check-kbest", FAULT, r"dev\.kbest:3: expected at most 16777216 bytes in a line", kbest(line(3, "light", LONG))),
    checked("18-check-docs", FAULT, r"dev\.docs:2: expected at most 8192 bytes in a line", {DOCS: line(2, "evening", "e" * 8193)}),
]  # fmt: skip
