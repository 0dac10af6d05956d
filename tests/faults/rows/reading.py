"""Faults of lists, documents and weights, as decode, evaluate and others see them."""

from support.faults import (
    RESTORED,
    Fault,
    around,
    drawn_model,
    line,
    normal_form,
    order,
    recoded,
    replaced,
    without,
)
from support.world import DECODE, EVALUATE, SOUND, TUNE

ITEM = '{"context": [], "right": "a", "wrong": "b"}\n'
FAULTS = [
    Fault("04-encoding-latin-1", DECODE + " --encoding latin-1",
        "!warning",
        {"dev.kbest": recoded("latin-1")},
        exit=0,
    ),
    Fault("04-encoding-replaced", DECODE + " --encoding-errors replace",
        r"warning: \d+ x bytes that are not utf-8, read as U\+FFFD, first at dev\.kbest:6",
        {"dev.kbest": recoded("latin-1")},
        exit=0,
    ),
    Fault("04-encoding-wrong", DECODE + " --encoding ascii",
        r"dev\.kbest:6: expected ascii, found 0xE9 at byte 14 of the line; name the encoding of the list with --encoding",
        {"dev.kbest": recoded("latin-1")},
        cure=DECODE + " --encoding latin-1",
    ),
    Fault("04-not-utf-8-weights", DECODE,
        (r"w\.ini:1: expected UTF-8", "iconv"),
        {"w.ini": around(b"# caf\xe9\n")},
        cure={"w.ini": RESTORED},
    ),
    Fault("05-contrastive-surrogate", "lm-eval contrastive --lm model set.jsonl",
        r"set\.jsonl:1: found half a surrogate pair in 'right'",
        {"set.jsonl": "{\"context\": [], \"right\": \"a \\ud800\", \"wrong\": \"b\"}\n"},
        cure={"set.jsonl": ITEM}, setup=drawn_model,
    ),
    Fault("12-composed-and-decomposed", EVALUATE,
        (r"1 x hypotheses in Unicode form NFD, references in NFC: equal words differ.*first at hyp\.txt:3", "--normalize nfc"),
        {"hyp.txt": normal_form("NFD")},
        cure=EVALUATE + " --normalize nfc --strict", exit=0,
    ),
    Fault("15-mixed-escaping", EVALUATE,
        (r"1 x mixed escaping: hypotheses contain &apos; and similar, references do not;.*first at hyp\.txt:2", r"deescape-special-chars\.perl"),
        {"base.txt": line(2, "it gives", "it 's"), "dev.ref": line(2, "it gives", "it 's"), "hyp.txt": line(2, "it gives", "it &apos;s")},
        exit=0,
    ),
    Fault("20-empty-kbest-for-diversity", "diversity --kbest empty.kbest",
        r"empty\.kbest.*no hypotheses",
        {"empty.kbest": ""},
        cure="diversity --kbest dev.kbest",
    ),
    Fault("22-flat-without-k", "decode --kbest dev.ref --kbest-format flat --docs dev.docs --weights w.ini --out out.txt",
        "--kbest-format flat: expected flat:K",
        cure="convert --kbest dev.ref --kbest-format flat:1 --to moses --out flat", exit=2,
    ),
    Fault("22-not-a-kbest-list", "decode --kbest dev.ref --docs dev.docs --weights w.ini --out out.txt",
        r"dev\.ref:1: expected a k-best list, found 'the lamp is lit'; it looks like plain text: .*`rerank convert .*`; formats tried: .*moses",
    ),
    Fault("22-unknown-format-name", "decode --kbest dev.kbest --kbest-format mosse --docs dev.docs --weights w.ini --out out.txt",
        "no format 'mosse'; did you mean moses",
        cure=DECODE + " --kbest-format moses", exit=2,
    ),
    Fault("25-hole-at-the-end-and-three-outputs", DECODE + " --out out.txt --kbest-out scored.kbest --summary summary.json --strict",
        r"dev\.kbest: source line without hypotheses \(ids 3\) \(an error under --strict\)",
        {"dev.kbest": without(8, 9)},
        cure={"dev.kbest": RESTORED},
    ),
    Fault("25-hole-refused", DECODE + " --missing error",
        r"dev\.kbest: expected hypotheses of every source line, found none of 1 \(ids 1\); .* --missing empty or --missing source",
        {"dev.kbest": without(3, 4, 5)},
        cure=DECODE + " --missing source --source dev.src",
    ),
    Fault("25-hole-without-a-source", DECODE + " --missing source",
        "--missing source needs the source sentences; give --source FILE",
        {"dev.kbest": without(3, 4, 5)},
        cure=DECODE + " --missing source --source dev.src", exit=2,
    ),
    Fault("26-ids-fall-for-diversity", "diversity --kbest dev.kbest",
        r"dev\.kbest:3: expected ids of this document or a later one, found 0 \(interleaved ids\); sort the list with: sort",
        {"dev.kbest": """\
0 ||| the lamp is lit ||| LM0= -9.5 TM0= -1.5 -2 WP0= -4 ||| -4.875
1 ||| it gives light ||| LM0= -7 TM0= -1 -1.25 WP0= -3 ||| -3.53125
0 ||| a lamp burns ||| LM0= -8.25 TM0= -3 -2.5 WP0= -3 ||| -4.8125
1 ||| she gives a light ||| LM0= -7.5 TM0= -2 -1.75 WP0= -4 ||| -3.96875
1 ||| it lights ||| LM0= -6.5 TM0= -3.5 -3 WP0= -2 ||| -4.25
2 ||| the café is closed ||| LM0= -10.5 TM0= -2.25 -1 WP0= -4 ||| -5.4375
2 ||| the café closed ||| LM0= -10 TM0= -3 -2 WP0= -3 ||| -5.625
3 ||| nobody comes ||| LM0= -8 TM0= -1 -1 WP0= -2 ||| -4.125
3 ||| no one is coming ||| LM0= -9.25 TM0= -1.5 -2.5 WP0= -4 ||| -4.8125
"""},
        cure={"dev.kbest": order(1, 3, 2, 4, 5, 6, 7, 8, 9)},
    ),
    Fault("28-ids-from-one-for-the-oracle", EVALUATE + " --kbest dev.kbest",
        ("1-based", "--first-id 1"),
        {"dev.kbest": """\
1 ||| the lamp is lit ||| LM0= -9.5 TM0= -1.5 -2 WP0= -4 ||| -4.875
1 ||| a lamp burns ||| LM0= -8.25 TM0= -3 -2.5 WP0= -3 ||| -4.8125
2 ||| it gives light ||| LM0= -7 TM0= -1 -1.25 WP0= -3 ||| -3.53125
2 ||| she gives a light ||| LM0= -7.5 TM0= -2 -1.75 WP0= -4 ||| -3.96875
2 ||| it lights ||| LM0= -6.5 TM0= -3.5 -3 WP0= -2 ||| -4.25
3 ||| the café is closed ||| LM0= -10.5 TM0= -2.25 -1 WP0= -4 ||| -5.4375
3 ||| the café closed ||| LM0= -10 TM0= -3 -2 WP0= -3 ||| -5.625
4 ||| nobody comes ||| LM0= -8 TM0= -1 -1 WP0= -2 ||| -4.125
4 ||| no one is coming ||| LM0= -9.25 TM0= -1.5 -2.5 WP0= -4 ||| -4.8125
"""},
        cure=EVALUATE + " --kbest dev.kbest --first-id 1",
    ),
    Fault("29-feature-nan-and-three-outputs", DECODE + " --out out.txt --kbest-out scored.kbest --summary summary.json",
        r"dev\.kbest:9: expected a decimal number for LM0, found 'nan'",
        {"dev.kbest": line(9, "LM0= -9.25", "LM0= nan")},
        cure={"dev.kbest": RESTORED},
    ),
    Fault("30-clip-nan", DECODE + " --clip-inf nan",
        "--clip-inf",
        cure=DECODE + " --clip-inf -1e4", exit=2,
    ),
    Fault("30-feature-inf-clipped", DECODE + " --clip-inf -1e4",
        r"1 x infinite number, clipped, first at dev\.kbest:3",
        {"dev.kbest": line(3, "LM0= -7", "LM0= -inf")},
        exit=0,
    ),
    Fault("30-feature-inf-clipped-for-the-oracle", EVALUATE + " --kbest dev.kbest --clip-inf -1e4",
        r"1 x infinite number, clipped, first at dev\.kbest:3",
        {"dev.kbest": line(3, "LM0= -7", "LM0= -inf")},
        exit=0,
    ),
    Fault("30-feature-too-large", DECODE,
        r"dev\.kbest:3: expected a finite number up to 1e\+100 for LM0, found '-1\.7e308'; give --clip-inf",
        {"dev.kbest": line(3, "LM0= -7", "LM0= -1.7e308")},
        cure=DECODE + " --clip-inf -1e4",
    ),
    Fault("30-infinite-weight", DECODE,
        (r"w\.ini:2: expected a finite number for LM0, found 'inf'", "!clip-inf"),
        {"w.ini": """\
[weight]
LM0= inf
TM0= 1 1
WP0= 1
"""},
        cure={"w.ini": RESTORED},
    ),
    Fault("31-number-empty", DECODE,
        r"dev\.kbest:3: expected .*WP0.*found (none|0|.*WP0)",
        {"dev.kbest": line(3, "WP0= -3", "WP0= ")},
        cure={"dev.kbest": RESTORED},
    ),
    Fault("32-jsonl-other-features", "decode --kbest dev.jsonl --docs dev.docs --weights w.ini --out out.txt",
        r"dev\.jsonl:2: expected 1 feature values as the first hypothesis has \(line 1\), found 1: lp has 0 instead of 1",
        {"dev.jsonl": """\
{"candidates": [{"text": "a", "features": {"lp": 1}}]}
{"candidates": [{"text": "a", "features": {"lq": 1}}]}
"""},
        cure={"dev.jsonl": replaced("lq", "lp"), "w.ini": "[weight]\nlp= 1\n", "dev.docs": "town\ntown\n"},
    ),
    Fault("39-empty-hypothesis-among-diverse", "diversity --kbest dev.kbest --top 2 --diverse",
        r"1 x empty hypothesis, first at dev\.kbest:",
        {"dev.kbest": line(5, "||| it lights", "||| ")},
        exit=0,
    ),
    Fault("41-diverse-without-top", DECODE + " --diverse",
        ("Invalid value for '--diverse'", "it needs --top K"),
        cure=DECODE + " --diverse --top 2", exit=2,
    ),
    Fault("41-list-too-long-to-be-read-for-diverse", DECODE + " --top 1 --diverse --max-k 2",
        r"dev\.kbest:5: expected at most 2 hypotheses of a sentence, found more of sentence 1; leave out --diverse, or raise --max-k",
        cure=DECODE + " --top 1 --diverse --max-k 3",
    ),
    Fault("44-contrastive-nan", "lm-eval contrastive --lm model set.jsonl",
        r"set\.jsonl:1: found NaN, which is not JSON; remove it",
        {"set.jsonl": "{\"context\": NaN, \"right\": \"a\", \"wrong\": \"b\"}\n"},
        cure={"set.jsonl": ITEM}, setup=drawn_model,
    ),
    Fault("45-contrastive-two-objects-on-a-line", "lm-eval contrastive --lm model set.jsonl",
        r"set\.jsonl:1: expected one JSON object on the line: Extra data",
        {"set.jsonl": "{\"context\": [], \"right\": \"a\", \"wrong\": \"b\"} {}\n"},
        cure={"set.jsonl": ITEM}, setup=drawn_model,
    ),
    Fault("47-docs-too-few-for-reference", EVALUATE,
        r"dev\.ref: expected 3 lines as dev\.docs has, found 4; line i must translate line i of dev\.docs",
        {"dev.docs": without(4)},
        cure={"dev.docs": RESTORED},
    ),
    Fault("47-hypotheses-too-few", EVALUATE,
        r"hyp\.txt: expected 4 lines as dev\.docs has, found 3; line i must translate line i of dev\.docs",
        {"hyp.txt": without(4)},
        cure={"hyp.txt": RESTORED},
    ),
    Fault("50-no-documents", "decode --kbest dev.kbest --weights w.ini --out out.txt",
        ("--docs FILE", "--no-docs each", "--no-docs one"),
        cure="decode --kbest dev.kbest --weights w.ini --out - --no-docs each", exit=2,
    ),
    Fault("50-no-documents-for-evaluation", "evaluate --ref dev.ref --baseline base.txt hyp.txt",
        ("--docs FILE", "--no-docs each", "--no-docs one"),
        cure="evaluate --ref dev.ref --no-docs one --baseline base.txt hyp.txt", exit=2,
    ),
    Fault("50-two-kinds-of-documents", TUNE + " --no-docs each",
        ("--docs FILE", "--no-docs each", "--no-docs one"),
        cure=TUNE, exit=2,
    ),
    Fault("52-reference-missing", EVALUATE,
        r"dev\.ref: expected 4 lines as dev\.docs has, found 3; line i must translate line i of dev\.docs",
        {"dev.ref": without(4)},
        cure={"dev.ref": RESTORED},
    ),
    Fault("52-references-of-other-lengths", "evaluate --no-docs one --ref dev.ref --ref more.ref --baseline base.txt hyp.txt",
        r"more\.ref: expected 4 lines as dev\.ref has, found 1",
        {"more.ref": "the lamp\n"},
        cure={"more.ref": SOUND["dev.ref"]},
    ),
    Fault("57-output-is-the-reference", EVALUATE,
        r"1 x hypotheses identical to reference 1, first at hyp\.txt",
        {"hyp.txt": """\
the lamp is lit
it gives a light
the café is closed
nobody is coming
"""},
        exit=0,
    ),
    Fault("66-contrastive-unknown-field", "lm-eval contrastive --lm model set.jsonl",
        r'set\.jsonl:1: found the field "rigth"; did you mean .right.\?; rename or remove it',
        {"set.jsonl": "{\"context\": [], \"rigth\": \"a\", \"wrong\": \"b\"}\n"},
        cure={"set.jsonl": ITEM}, setup=drawn_model,
    ),
    Fault("66-default-weight", DECODE + " --default-weight 0",
        r"1 x feature without weight; 0 is used: WP0, first at w\.ini",
        {"w.ini": without(4)},
        exit=0,
    ),
    Fault("66-default-weight-infinite", DECODE + " --default-weight inf",
        "'--default-weight': expected a finite decimal number, found 'inf'",
        cure=DECODE + " --default-weight 0", exit=2,
    ),
    Fault("66-feature-without-weight", DECODE,
        ("WP0", "did you mean"),
        {"w.ini": line(4, "WP0=", "WP1=")},
        cure={"w.ini": RESTORED},
    ),
    Fault("66-no-weight", DECODE,
        (r"w\.ini: expected a weight for every feature of the list, found none for 'WP0'", "--default-weight 0"),
        {"w.ini": without(4)},
        cure=DECODE + " --default-weight 0",
    ),
    Fault("66-weight-of-unknown-feature", DECODE,
        (r"w\.ini", "DM0"),
        {"w.ini": """\
[weight]
LM0= 0.5
TM0= 0.25 0.125
WP0= -0.125
DM0= 0.3
"""},
        cure={"w.ini": RESTORED},
    ),
    Fault("66-wrong-number-of-weights", DECODE,
        ("TM0", r"\b2\b", r"\b1\b"),
        {"w.ini": line(3, "0.25 0.125", "0.25")},
        cure={"w.ini": RESTORED},
    ),
    Fault("67-all-weights-zero", DECODE,
        r"w\.ini: expected a weight that is not 0, found all-zero weights; only --search smc, ffbs, mbr",
        {"w.ini": """\
[weight]
LM0= 0
TM0= 0 0
WP0= 0
"""},
        cure=DECODE + " --search mbr --alpha 1",
    ),
    Fault("67-all-weights-zero-for-mbr", DECODE + " --search mbr --alpha 1",
        "!all-zero",
        {"w.ini": """\
[weight]
LM0= 0
TM0= 0 0
WP0= 0
"""},
        exit=0,
    ),
    Fault("67-weight-nan", DECODE,
        r"w\.ini:2: .*nan",
        {"w.ini": line(2, "LM0= 0.5", "LM0= nan")},
        cure={"w.ini": RESTORED},
    ),
    Fault("68-weights-in-json", "decode --kbest dev.kbest --docs dev.docs --weights w.json --out -",
        r"w\.json:5: expected JSON weights, found 'TM0': 'x'; weights are finite numbers",
        {"w.json": """\
{
 "weights": {
  "LM0": 1,
  "TM0": [1,
   "x"]
 },
 "schema": 1
}
"""},
        cure={"w.json": '{"schema": 1, "weights": {"LM0": 1, "TM0": [1, 1], "WP0": 0}}'},
    ),
]
