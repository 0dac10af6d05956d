"""Documents, sources and references, as `rerank check` and the other commands see them."""

from support.faults import FAULT, SOUND, WARNING, around, checked, line, order, put, without
from support.forms import DOCS, KBEST, REF, SOURCE, WEIGHTS, as_jsonl, kbest

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
DOCTYPES = (
    ("bomb", '[<!ENTITY a "aaaa"><!ENTITY c "&a;&a;">]'),
    ("external", '[<!ENTITY b SYSTEM "file:///x">]'),
    ("dtd", 'SYSTEM "http://example.org/a.dtd"'),
)
FIRSTS = "the lamp is lit\nit gives light\nthe café is closed\nnobody comes\n"

FAULTS = [    # Documents, sources, references
    checked("47-check-short", FAULT, r"dev\.ref: expected 3 lines as dev\.docs has, found 4",
         {DOCS: without(2)}, also={}),
    checked("47-check-long", FAULT, r"dev\.ref: expected 5 lines as dev\.docs has, found 4",
         {DOCS: around(end=b"town\n")}, also={}),
    checked("47-check-source-short", FAULT, r"dev\.src: expected 4 lines as dev\.docs has, found 3",
         {SOURCE: without(3)}),
    checked("47-check-source-long", FAULT, r"dev\.src: expected 4 lines as dev\.docs has, found 6",
         {SOURCE: around(end=b"a\nb\n")}),
    *(
        checked(f"48-check-{name}", FAULT, rf"dev\.docs:{n}: expected each document in one run of lines, .*; ",
             {DOCS: (names)})
        for name, n, names in (("first", 3, "a\nb\na\na\n"), ("last", 4, "a\nb\nc\na\n"),
                               ("twice", 3, "a\nb\na\nb\n"))
    ),
    *(
        checked(f"49-check-{name}", SOUND, "no faults, no warnings", {DOCS: (names)})
        for name, names in (("each", "a\nb\nc\nd\n"), ("last", "a\na\na\nb\n"),
                            ("first", "a\nb\nb\nb\n"))
    ),
    checked("49-check-blank-id", FAULT, r"dev\.docs:2: expected a document id, found a blank line; ",
         {DOCS: line(2, "evening", "")}),
    checked("51-check-one-document", SOUND, "no faults, no warnings", {DOCS: ("a\n" * 4)}),
    checked("51-check-2000-sentences", SOUND, "no faults, no warnings",
         {KBEST: lambda old: b"".join(
             b"%d ||| word %d %d ||| LM0= -%d TM0= -1 -1 WP0= -2 ||| -%d.125\n"
             % (t, t, k, k + 1, 0) for t in range(2000) for k in range(2)),
          DOCS: ("a\n" * 2000), REF: ("word 1 0\n" * 2000),
          SOURCE: ("mot\n" * 2000),
          WEIGHTS: ("[weight]\nLM0= 0\nTM0= 0 0\nWP0= 0.0625\n")},
         also={}),
    checked("51-check-by-option", SOUND, "no faults, no warnings", kbest(around()), also={}),
    checked("52-check-missing", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 3; line i",
         {REF: without(2)}),
    checked("52-check-more", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 5; line i",
         {REF: put(2, "one more")}),
    checked("52-check-blank", WARNING, r"dev\.ref:2: blank reference; ",
         {REF: line(2, "it gives a light", "")}),
    checked("52-check-empty-file", FAULT, r"dev\.ref: expected 4 lines as dev\.docs has, found 0",
         {REF: ("")}),
    *(
        checked(f"53-check-line-{n}", WARNING,
             rf"dev\.ref:{n}: reference that only says there is no translation; ",
             {REF: line(n, old, new)})
        for n, old, new in ((1, "the lamp is lit", "NO TRANSLATION AVAILABLE"),
                            (2, "it gives a light", "NO BEST TRANSLATION"),
                            (4, "nobody is coming", " NO TRANSLATION AVAILABLE "))
    ),
    *(
        checked(f"54-check-{name}", FAULT, r"dev\.kbest:1: .*it looks like SGML or XML of documents",
             kbest(text))
        for name, text in (
            ("ampersand", '<tstset setid="x"><doc docid="a"><seg id="1">a & b</seg></doc>\n'),
            ("repeated-id", '<doc docid="a">\n<seg id="1">a</seg>\n<seg id="1">b</seg>\n'),
            ("no-system", '<refset setid="x">\n<doc docid="a"><seg id="1">a</seg></doc>\n'),
        )
    ),
    checked("55-check-bomb", FAULT, r"dev\.kbest:1: ", kbest(BOMB)),
    checked("55-check-external", FAULT, r"dev\.kbest:1: .*SGML or XML", kbest(
        '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hosts">]>\n')),
    checked("55-check-dtd", FAULT, r"dev\.kbest:1: .*SGML or XML", kbest(
        '<?xml version="1.0"?>\n<!DOCTYPE a SYSTEM "http://example.org/a.dtd">\n<dataset/>\n')),
    checked("54-check-reference-joined-by-ids", SOUND, "no faults, no warnings", {REF: (SGML)}),
    checked("54-check-reference-repeated-id", FAULT, r"dev\.ref:\d+: .*seg",
         {REF: (SGML.replace('<seg id="2">it gives', '<seg id="1">it gives'))}),
    checked("54-check-reference-of-others", FAULT, r"dev\.ref: expected a reference of each of 4 sentences",
         {REF: (SGML.replace('docid="town"', 'docid="village"'))}),
    *(
        checked(f"55-check-reference-{name}", FAULT, r"dev\.ref:\d+: .*(entit|document type)",
             {REF: (f"<?xml version='1.0'?>\n<!DOCTYPE a {kind}>\n{DATASET}\n")})
        for name, kind in DOCTYPES
    ),
    checked("54-check-documents", SOUND, "no faults, no warnings", {DOCS: (SGML)}),
    checked("54-check-documents-repeated-id", FAULT, r"dev\.docs:8: .*two; number segments",
         {DOCS: (SGML.replace('<seg id="2">it gives', '<seg id="1">it gives'))}),
    checked("54-check-documents-without-docid", FAULT, r"dev\.docs:6: expected a docid",
         {DOCS: (SGML.replace(' docid="evening"', ""))}),
    checked("54-check-documents-open-segment", FAULT, r"dev\.docs:4: expected </seg>",
         {DOCS: (SGML.replace("coming</seg>", "coming"))}),
    *(
        checked(f"55-check-documents-{name}", FAULT, r"dev\.docs:\d+: .*entities are not allowed",
             {DOCS: (f"<?xml version='1.0'?>\n<!DOCTYPE a {kind}>\n{DATASET}\n")})
        for name, kind in DOCTYPES
    ),
    *(
        checked(f"56-check-{name}", SOUND, "no faults, no warnings",
             {DOCS: (f"{label}\n{label}\ntown\ntown\n")})
        for name, label in (("slash", "a/../../b"), ("script", "<script>x</script>"),
                            ("command", "=cmd()|x"), ("5-kB", "d" * 5000))
    ),
    checked("57-check-firsts", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ",
         {REF: FIRSTS}, also={}),
    checked("57-check-one-candidate", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ",
         {KBEST: order(1, 3, 6, 8), REF: FIRSTS}, also={}),
    checked("57-check-json", WARNING, r"dev\.kbest: hypotheses identical to reference 1; ",
         {KBEST: as_jsonl, REF: FIRSTS}, also={}),
]
