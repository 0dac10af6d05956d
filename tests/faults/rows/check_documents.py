"""Documents, sources and references, as `rerank check` and the other commands see them."""

from support.faults import FAULT, SOUND, WARNING, around, checked, line, without
from support.forms import DOCS, KBEST, REF, SOURCE, WEIGHTS, kbest

DATASET = '<dataset><doc id="evening"><ref><seg id="1">a</seg></ref></doc></dataset>'
SGML = """\
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
BOMB = '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY c "&a;&a;&a;&a;">]>\n<dataset>&c;</dataset>\n'
FIRSTS = "the lamp is lit\nit gives light\nthe café is closed\nnobody comes\n"
FINE = "no faults, no warnings"

FAULTS = [
    checked("47-check-short", FAULT, r"dev\.ref: expected 3 lines as dev\.docs has, found 4", {DOCS: without(2)}, also={}),
    checked("47-check-source-long", FAULT, r"dev\.src: expected 4 lines as dev\.docs has, found 6", {SOURCE: around(end=b"a\nb\n")}),
    checked("48-check-3", FAULT, r"dev\.docs:3: expected each document in one run of lines, .*; ", {DOCS: "a\nb\na\na\n"}),
    *(checked(f"49-check-{names[-3:-1].strip()}", SOUND, FINE, {DOCS: names}) for names in ("a\nb\nc\nd\n", "a\nb\nb\nb\n")),
    checked("49-check-blank-id", FAULT, r"dev\.docs:2: expected a document id, found a blank line; ", {DOCS: line(2, "evening", "")}),
    checked("51-check-one-document", SOUND, FINE, {DOCS: "a\n" * 4}),
    checked("51-check-2000-sentences", SOUND, FINE,
        {KBEST: lambda old: b"".join(b"%d ||| word %d %d ||| LM0= -%d TM0= -1 -1 WP0= -2 ||| -0.125\n" % (t, t, k, k + 1) for t in range(2000)
        for k in range(2)), DOCS: "a\n" * 2000, REF: "".join(f"word {t} 0\n" for t in range(1999)) + "x\n", SOURCE: "mot\n" * 2000,
        WEIGHTS: "LM0= 0\nTM0= 0 0\nWP0= 0.0625\n"}, also={}),
    checked("52-check-missing", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 3; line i", {REF: without(2)}),
    checked("52-check-blank", WARNING, r"dev\.ref:2: blank reference; ", {REF: line(2, "it gives a light", "")}),
    checked("52-check-empty-file", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 0", {REF: ""}),
    *(checked(f"53-check-{new.split()[-1].lower()}", WARNING, rf"dev\.ref:{n}: reference that only says there is no translation; ", {REF: line(n, old, new)})
        for n, old, new in ((2, "it gives a light", "NO BEST TRANSLATION"), (4, "nobody is coming", " NO TRANSLATION AVAILABLE "), (4, "nobody is coming",
        "nan"))),
    checked("54-check-system", FAULT, r"dev\.kbest:1: .*it looks like SGML or XML of documents",
        kbest('<tstset setid="x"><doc docid="a"><seg id="1">a & b</seg></doc>\n')),
    checked("55-check-bomb", FAULT, r"dev\.kbest:1: ", kbest(BOMB)),
    checked("54-check-reference-joined-by-ids", SOUND, FINE, {REF: SGML}),
    checked("54-check-reference-of-others", FAULT, r"dev\.ref: expected a reference of each of 4 sentences",
        {REF: SGML.replace('docid="town"', 'docid="village"')}),
    checked("54-check-documents", SOUND, FINE, {DOCS: SGML}),
    checked("54-check-documents-repeated-id", FAULT, r"dev\.docs:8: .*two; number segments",
        {DOCS: SGML.replace('<seg id="2">it gives', '<seg id="1">it gives')}),
    *(checked(f"55-check-{name}", FAULT, rf"{file}:\d+: .*entities are not allowed", {file: f"<?xml version='1.0'?>\n<!DOCTYPE a {kind}>\n{DATASET}\n"})
        for file, name, kind in ((REF, "bomb-of-references", '[<!ENTITY a "aaaa"><!ENTITY c "&a;&a;">]'), (DOCS, "dtd-of-documents",
        'SYSTEM "http://example.org/a.dtd"'))),
    *(checked(f"56-check-{name}", SOUND, FINE, {DOCS: f"{label}\n{label}\ntown\ntown\n"})
        for name, label in (("script", "<script>a/../../b"), ("5-kB", "=" + "d" * 5000))),
    checked("57-check-firsts", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ", {REF: FIRSTS}, also={}),
]  # fmt: skip
