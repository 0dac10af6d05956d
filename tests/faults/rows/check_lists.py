"""K-best lists, as `rerank check` and the commands that read lists see them."""

from support.faults import (
    FAULT, RESTORED, SOUND, WARNING, Fault, around, both, checked, each_line, line, order, packed, put, replaced, without,
)
from support.forms import DOCS, KBEST, WEIGHTS, as_fairseq, as_jsonl, fairseq, jsonl, kbest, sockeye

RAGGED = r"expected 4 feature values as on the first line, found"
NO_LIST = r"dev\.kbest: expected a k-best list, found no hypotheses"
FROM_ONE = each_line(lambda one: f"{int(one[0]) + 1}{one[1:]}")
SPARSE = r"line with sparse features"
FINE = "no faults, no warnings"

FAULTS = [
    checked("20-check-blank-lines", FAULT, NO_LIST, kbest("\n\n\n")),
    checked("20-check-compressed", FAULT, NO_LIST, kbest(packed(b""))),
    checked("20-check-docs", FAULT, r"dev\.docs: expected one document id per source line, found none", {DOCS: ""}),
    *(checked(f"21-check-{number}", WARNING, rf"dev\.kbest:{number}: blank line, skipped; ", kbest(put(number, blank)))
        for number, blank in ((1, ""), (10, "  "))),
    checked("22-check-two-columns", FAULT, r"dev\.kbest:1: expected a k-best list, found .*formats tried", kbest("0 ||| the lamp\n")),
    checked("22-check-json", FAULT, r"dev\.kbest:1: .*JSON without candidates at its keys", kbest('{"text": "the lamp"}\n')),
    checked("22-check-a-line", FAULT, r"dev\.kbest:4: expected 4 columns as on the first line, found 2", kbest(put(4, "1 ||| it gives"))),
    *(checked(f"{row}-check-{name}", FAULT, r"dev\.kbest:3: expected a sentence id .*, found", kbest(line(3, "1 |||", f"{bad} |||")))
        for row, name, bad in ((23, "underscore", "1_0"), (23, "arabic", "\u0661"), (24, "negative", "-1"), (24, "two-to-31", "2147483648"))),
    *(checked(f"25-check-{t}", WARNING, rf"dev\.kbest: source line without hypotheses \(ids {t}\); ", kbest(without(*numbers)))
        for t, numbers in ((0, (1, 2)), (1, (3, 4, 5)), (3, (8, 9)))),
    checked("26-check-interleaved", WARNING, r"dev\.kbest:3: interleaved ids, grouped by sentence; ", kbest(order(1, 3, 2, 4, 5, 6, 7, 8, 9))),
    checked("26-check-across-documents", FAULT, r"dev\.kbest:6: expected ids of this document or a later one, .* sorts the list",
        kbest(order(1, 2, 3, 4, 6, 5, 7, 8, 9))),
    checked("27-check-one", FAULT, r"dev\.kbest:9: expected ids of 4 source lines, found id 4, which", kbest(line(9, "3 |||", "4 |||"))),
    checked("27-check-far", FAULT, r"dev\.kbest:2: expected ids of 4 source lines, found id 2000, which", kbest(line(2, "0 |||", "2000 |||"))),
    checked("27-check-docs-too-short", FAULT, r"dev\.kbest:8: expected ids of 3 source lines, found id 3", {DOCS: without(4)}, also={}),
    Fault("27-far-without-documents", "check --kbest dev.kbest", r"^dev\.kbest:2: expected ids of 2 source lines, found id 2000000, which needs 2000001;",
        kbest("0 ||| it ||| A= 1 ||| 0\n2000000 ||| it ||| A= 1 ||| 0\n"), cure={KBEST: RESTORED}),
    checked("28-check-all", FAULT, r"dev\.kbest:8: .*ids look 1-based; use --first-id 1", kbest(FROM_ONE)),
    checked("28-check-json", FAULT, r"dev\.kbest:4: .*ids look 1-based; use --first-id 1", kbest(both(FROM_ONE, as_jsonl))),
    *(checked(f"29-check-line-{n}", FAULT, rf"dev\.kbest:{n}: expected .* for LM0, found", kbest(line(n, old, f"LM0= {bad} TM0")))
        for n, old, bad in ((2, "LM0= -8.25 TM0", "nan"), (9, "LM0= -9.25 TM0", "-nan"))),
    *(checked(f"{row}-check-{name}", FAULT, rf"dev\.kbest:3: expected {kind}.* for LM0, found", kbest(line(3, "LM0= -7 ", f"LM0= {bad} ")))
        for row, kind, name, bad in ((30, "", "negative", "-inf"), (30, "", "overflow", "1e400"), (31, "a decimal", "underscore", "1_0"), (31, "a decimal",
        "full-width", "\uff11"))),
    checked("32-check-missing", FAULT, rf"dev\.kbest:4: {RAGGED} 3: WP0 has 0 instead of 1", kbest(line(4, " WP0= -4", ""))),
    checked("33-check-repeated-label", FAULT, rf"dev\.kbest:6: {RAGGED} 5: LM0 has 2 instead of 1", kbest(line(6, "WP0= -4", "WP0= -4 LM0= -1"))),
    checked("33-check-repeated-everywhere", SOUND, FINE, {KBEST: replaced("WP0= ", "TM0= "), WEIGHTS: "[weight]\nLM0= 0.5\nTM0= 0.25 0.125 -0.125\n"}),
    checked("34-check-marian", WARNING, r"dev\.kbest:1: no blank between label and value, .*; ", kbest(replaced("= ", "="))),
    checked("34-check-old-labels", WARNING, r"dev\.kbest:1: old Moses labels, .*; ", kbest(replaced("= ", ": "))),
    checked("34-check-unlabelled", WARNING, r"dev\.kbest:1: features without labels, called F0, .*; ",
        {KBEST: both(replaced("LM0= ", ""), replaced("TM0= ", ""), replaced("WP0= ", "")), WEIGHTS: "[weight]\nF0= 0.5\nF1= 0.25\nF2= 0.125\nF3= -0.125\n"}),
    checked("35-check-one-line", WARNING, rf"dev\.kbest:4: {SPARSE} .*; ", kbest(line(4, "WP0= -4", "WP0= -4 PT_x= 1"))),
    checked("35-check-different-names", WARNING, rf"dev\.kbest:1: {SPARSE} .* \(2 times",
        kbest(both(line(1, "WP0=", "T_a= 1 WP0="), line(7, "WP0=", "T_b= 2 WP0=")))),
    checked("36-check-everywhere", WARNING, r"dev\.kbest:1: no total column; ", kbest(each_line(lambda one: one.rpartition(" |||")[0]))),
    checked("36-check-one-line", WARNING, r"dev\.kbest:4: no total column; ", kbest(line(4, " ||| -3.96875", ""))),
    checked("37-check-two", WARNING, r"dev\.kbest:1: total that is not the weighted sum .*difference 0\.125\).*2 times",
        kbest(both(line(1, "-4.875", "-5"), line(9, "-4.8125", "-4.75")))),
    checked("37-check-weights", WARNING, r"dev\.kbest:1: total that is not .*\(9 times\)", {WEIGHTS: "[weight]\nLM0= 1\nTM0= 0.25 0.125\nWP0= -0.125\n"}),
    checked("66-weights-of-a-word", FAULT, r"w\.ini:2: expected a decimal number for LM0, found 'x'", {WEIGHTS: replaced("LM0= 0.5", "LM0= x")}),
    checked("38-check-duplicate", WARNING, r"dev\.kbest:5: duplicate hypothesis, kept; ", kbest(line(5, "it lights", "it gives light"))),
    checked("39-check-one", WARNING, r"dev\.kbest:9: empty hypothesis; ", kbest(line(9, "||| no one is coming |||", "|||  |||"))),
    checked("39-check-all", WARNING, r"dev\.kbest:6: empty hypothesis; .* \(2 times",
        kbest(both(line(6, "the café is closed", ""), line(7, "the café closed", "")))),
    checked("40-check-moses", WARNING, r"dev\.kbest: list with one hypothesis per sentence, .*; ", kbest(order(1, 3, 6, 8))),
    checked("40-check-json", WARNING, r"dev\.kbest: list with one hypothesis per sentence", kbest(both(order(2, 4, 7, 9), as_jsonl))),
    checked("41-check-more-than-2", FAULT, r"dev\.kbest:5: expected at most 2 hypotheses of a sentence", kbest(around()), "--max-k 2"),
    checked("41-check-json", FAULT, r"dev\.kbest:2: expected at most 2 hypotheses of a sentence", jsonl(around()), "--max-k 2"),
    checked("41-check-varying", SOUND, FINE,
        kbest(each_line(lambda one: "\n".join(one.replace(" |||", f" ||| {i}", 1) for i in range(300 if one[0] == "1" else 1))))),
    checked("42-check-3-names", WARNING, rf"dev\.kbest:1: {SPARSE} .*\(9 times", kbest(replaced(" WP0=", " S_a= 1 S_b= 2 S_c= 3 WP0="))),
    checked("42-check-20000-names", WARNING, rf"dev\.kbest:4: {SPARSE}", kbest(line(4, " WP0=", "".join(f" S_{i}= 1" for i in range(20_000)) + " WP0="))),
    checked("43-check-log-lines", WARNING, r"dev\.kbest:3: line that is no output of fairseq \(logging\), skipped; ",
        fairseq(put(3, "2026-11-23 10:00:00 | INFO | fairseq | loading"))),
    checked("43-check-no-hypotheses", WARNING, r"dev\.kbest: source line without hypotheses \(ids 3\); ", fairseq(lambda old: old[: old.index(b"H-3")])),
    checked("43-check-no-tokens", WARNING, r"dev\.kbest:2: hypothesis without P- lines; ",
        {KBEST: both(as_fairseq, lambda old: b"".join(x for x in old.splitlines(keepends=True) if x[:1] != b"P")), WEIGHTS: "score= 1\n"}),
    checked("43-check-cut-off", FAULT, r"dev\.kbest:\d+: expected a P- line as for the first hypothesis", fairseq(lambda old: old[: old.rindex(b"P-3")])),
    checked("43-check-no-id", FAULT, r"dev\.kbest:\d+: expected H-ID, score and text with TABs", fairseq(replaced("H-2\t-5.4375\t", "H-2\t"))),
    checked("44-check-nan", FAULT, r"dev\.kbest:2: expected .*number.*found .*nan", sockeye(line(2, "3.53125", "NaN"))),
    checked("44-check-repeated-key", FAULT, r"dev\.kbest:3: .*the key 'translation' twice",
        sockeye(line(3, '"translation":', '"translation": "x", "translation":'))),
    checked("44-check-nested", FAULT, r"dev\.kbest:2: .*too deep a nesting|dev\.kbest:2: expected", sockeye(line(2, "[3.53125]", "[" * 99_999 + "]" * 99_999))),
    checked("44-check-digits", FAULT, r"dev\.kbest:4: .*a number of 5000 digits", sockeye(line(4, "4.125", "1" * 5000))),
    checked("45-check-mark", WARNING, r"dev\.kbest:1: byte-order mark at the start, removed; ", jsonl(around(b"\xef\xbb\xbf"))),
    checked("45-check-concatenated", FAULT, r"dev\.kbest:\d: expected .*Extra data", jsonl(lambda old: old.replace(b"\n", b"", 2).replace(b"}{", b"} {", 1)),
        "--kbest-format jsonl"),
    checked("45-check-cut-off", FAULT, r"dev\.kbest:4: expected one JSON object, found", jsonl(lambda old: old[:-20])),
    checked("46-check-segmentation", SOUND, FINE, kbest(each_line(lambda one: f"{one} ||| 0=0 1-2=1 ||| 0-0 1-1 "))),
    checked("46-check-before-features", SOUND, FINE, kbest(each_line(lambda one: one.replace("||| LM0", "||| 0-0 1-1 ||| LM0")))),
]  # fmt: skip
