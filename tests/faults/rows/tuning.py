"""Faults of `tune-mert`, `tune-moses` and `ablate` beside those of other rows files."""

import re

from support.faults import Fault, replaced
from support.world import SOUND, TUNE

LISTS = "--kbest dev.kbest --docs dev.docs --ref dev.ref"
MOSES = "tune-moses --features features.dat --scores scores.dat --out tuned.ini"
FROM_START = f"{TUNE} --start w.ini --select none"
FEATURES = """\
FEATURES_TXT_BEGIN_0 0 2 3 LM0_0 TM0_0 TM0_1
-1 -2 -3
-2 -1 -1
FEATURES_TXT_END_0
FEATURES_TXT_BEGIN_0 1 2 3 LM0_0 TM0_0 TM0_1
-3 -1 -2
-1 -2 -1
FEATURES_TXT_END_0
"""
SCORES = """\
SCORES_TXT_BEGIN_0 0 2 9 BLEU
4 4 3 3 2 2 1 1 4
2 4 1 3 0 2 0 1 4
SCORES_TXT_END_0
SCORES_TXT_BEGIN_0 1 2 9 BLEU
4 4 2 3 1 2 0 1 4
3 4 1 3 0 2 0 1 4
SCORES_TXT_END_0
"""
EXTRACTED = {"features.dat": FEATURES, "scores.dat": SCORES}
NO_MATCH = {"dev.ref": "w\nx\ny\nz\n"}
NO_FEATURES = "".join(f"{t} ||| {'b ' * k}a a a a |||  ||| {-k}\n" for t in range(4) for k in (0, 1))
WRONG = (  # file, what is in another's place, and the message
    ("binary", "features.dat", "TXT", "BIN", "1: expected text, found the binary form"),
    ("not-a-block", "features.dat", "BEGIN_0 0", "BEGIN_0 first", "1: expected 'FEATURES_TXT_BEGIN_0 <sentence> .*', found"),
    ("names-out-of-order", "features.dat", "TM0_0 TM0_1", "TM0_1 TM0_0", "1: expected TM0_0 among the names of the features, found 'TM0_1'"),
    ("names-too-few", "features.dat", "TM0_0 TM0_1", "TM0_0", "1: expected 3 names of features, found 2"),
    ("names-apart", "features.dat", "LM0_0 TM0_0", "TM0_0 LM0_0", "1: expected the values of TM0 side by side, found other names before"),
    ("other-names-later", "features.dat", "1 2 3 LM0_0", "1 2 3 LM1_0", "5: expected the features of the first block, 3 with 'LM0_0' at place 1"),
    ("sparse-twice", "features.dat", "-1 -2 -3", "-1 -2 -3 a_b=1 a_b=2", "2: expected a sparse feature once, name=value, found 'a_b=2'"),
    ("without-end", "features.dat", "FEATURES_TXT_END_0", "-1 -1 -1", "4: expected FEATURES_TXT_END_0 after 2 hypotheses of sentence 0"),
    ("of-statistics", "features.dat", "FEATURES_TXT_BEGIN_0 0", "SCORES_TXT_BEGIN_0 0", "1: expected 'FEATURES_TXT_BEGIN"),
    ("too-many-values", "features.dat", "-1 -2 -3\n", "-1 -2 -3 1\n", "2: expected 3 feature values .*, found 4"),
    ("infinite", "features.dat", "-1 -2 -3\n", "-1 -2 1e999\n", "2: expected a finite .*for value 3, found '1e999'"),
    ("binary-later", "features.dat", "FEATURES_TXT_BEGIN_0 1", "FEATURES_BIN_BEGIN_0 1", "5: expected text, found the binary form; run extractor without"),
    ("statistics-of-another-order", "scores.dat", "9 BLEU", "17 BLEU", "1: expected 9 statistics of BLEU, found 17 of 'BLEU'"),
    ("statistics-without-a-metric", "scores.dat", "9 BLEU", "9", "1: expected 'SCORES_TXT_BEGIN_0 <sentence> .* BLEU'"),
    ("statistics-nan", "scores.dat", "4 4 3 3", "4 nan 3 3", "2: expected a decimal"),
    ("block-too-short", "features.dat", "-2 -1 -1\n", "", "3: expected 2 hypotheses of sentence 0 .* found 1"),
    ("statistics-with-names", "scores.dat", "1 1 4\n", "1 1 4 a_b=1\n", "2: expected statistics, found 'name=value'"),
    ("impossible-counts", "scores.dat", "4 4 3 3 2 2 1 1 4", "5 4 3 3 2 2 1 1 4", "2: expected whole numbers c1 t1 … c4 t4 reflen, no c above its t"),
)

SAMPLES = '{"hypotheses": ["the lamp is lit", "nobody is coming", "a lamp is lit"]}\n' * 4

FAULTS = [
    # tune-mert
    Fault("--tune-features-unknown", f"{TUNE} --features LM1", r"--features LM1: no such feature; there are LM0, TM0, WP0", exit=2,
        cure=f"{TUNE} --features LM0"),
    Fault("--tune-start-of-another-feature", FROM_START, r"w\.ini: .*'LM9'; did you mean 'LM0'", {"w.ini": replaced("LM0", "LM9")},
        cure={"w.ini": SOUND["w.ini"]}),
    Fault("--tune-start-of-other-width", FROM_START, r"w\.ini: expected 2 weights for 'TM0'", {"w.ini": replaced("0.25 0.125", "0.25")},
        cure={"w.ini": SOUND["w.ini"]}),
    Fault("67-start-all-zero", FROM_START, r"w\.ini: expected a weight that is not 0, found all-zero weights; leave out --start",
        {"w.ini": "[weight]\nLM0= 0\n"}, cure=TUNE),
    Fault("67-tuned-all-zero", f"{TUNE} --features WP0", ("without a 4-gram match", "the result of tuning is all-zero weights, .* --start"), NO_MATCH, exit=1,
        cure=FROM_START),
    Fault("67-samples-without-features", "tune-mert --kbest s --docs dev.docs --ref dev.ref --out t.json", "nothing to tune; give --agreement, --lm",
        {"s": SAMPLES}, exit=1, cure="tune-mert --kbest s --docs dev.docs --ref dev.ref --out t.json --agreement"),
    Fault("67-totals-but-no-features", TUNE, "no tuned feature varies .*; give --features total, which tunes the totals of the lists",
        {"dev.kbest": NO_FEATURES}, exit=1, cure=f"{TUNE} --features total"),
    Fault("68-json-with-a-base", f"{FROM_START} --base w.ini", r"--out tuned\.json: expected a weights file \.ini, like --base", exit=2,
        cure=f"{FROM_START.replace('tuned.json', 'tuned.ini')} --base w.ini"),
    Fault("98-base-without-weights", f"{FROM_START.replace('tuned.json', 'tuned.ini')} --base moses.ini",
        (r"moses\.ini: expected a section \[weight\]", "!round"), {"moses.ini": "[weights]\nLM0= 1\n"}, cure={"moses.ini": SOUND["w.ini"]}),
    Fault("99-range-turned", f"{TUNE} --range LM0=1:0", "expected the least value first, found '1:0'", exit=2, cure=f"{TUNE} --range LM0=0:1"),
    Fault("99-range-of-a-feature-and-its-column", f"{TUNE} --range TM0=-1:1 --range TM0_1=0:", "--range TM0_1=…: a second range of one weight", exit=2,
        cure=f"{TUNE} --range TM0_0=-1:1 --range TM0_1=0:"),
    Fault("99-shrink-of-a-part", f"{FROM_START} --features TM0 --shrink 2", "--shrink 2: a part of the scores is not tuned, .* leave it out", exit=2,
        cure=f"{FROM_START} --features TM0"),
    Fault("99-shrink-from-zeros", f"{TUNE} --start w.ini --features TM0 --shrink 2", "--shrink 2: all tuned weights start at 0; leave it out",
        {"w.ini": "[weight]\nLM0= 0\nTM0= 0 0\nWP0= 0\ntag_x= 1\n"}, exit=2, cure=f"{TUNE} --start w.ini --features TM0"),
    Fault("99-length-price-zero", f"{TUNE} --length-ratio keep --length-price 0",
        "--length-ratio keep: --length-price 0 switches it off; leave one of them out", exit=2, cure=f"{TUNE} --length-ratio keep"),
    # tune-moses
    *(Fault(f"98-extracted-{name}", MOSES, f"{file}:{message}", {**EXTRACTED, file: EXTRACTED[file].replace(old, new, 1)}, cure={file: EXTRACTED[file]})
        for name, file, old, new, message in WRONG),
    Fault("67-tuned-all-zero-by-tune-moses", MOSES, ("without a 4-gram match", "the result of tuning is all-zero weights, .* --start"),
        {**EXTRACTED, "scores.dat": re.sub(r"(?m)^\d (.*) 0 1 4$|^\d (.*) 1 1 4$", r"4 4 2 3 1 2 0 1 4", SCORES)}, exit=1, cure={"scores.dat": SCORES}),
    Fault("98-tune-of-no-feature", f"{MOSES} --tune LM1", "--tune LM1: no such feature; there are LM0, TM0", EXTRACTED, exit=2, cure=f"{MOSES} --tune LM0"),
    Fault("98-range-of-a-weight-that-stays", f"{MOSES} --tune LM0 --range TM0=0:1", "this weight is not tuned; name its feature in --tune", EXTRACTED, exit=2,
        cure=f"{MOSES} --range TM0=0:1"),
    Fault("98-extracted-one-block-more", MOSES, r"scores\.dat:5: expected the end of the file as in features\.dat, found 2 hypotheses",
        {**EXTRACTED, "features.dat": FEATURES[: FEATURES.index("FEATURES_TXT_BEGIN_0 1")]}, cure={"features.dat": FEATURES}),
    Fault("98-extracted-no-hypothesis", MOSES, r"features\.dat: expected hypotheses to tune on, found none",
        {"features.dat": "FEATURES_TXT_BEGIN_0 0 0 1 LM0_0\nFEATURES_TXT_END_0\n", "scores.dat": "SCORES_TXT_BEGIN_0 0 0 9 BLEU\nSCORES_TXT_END_0\n"},
        cure=EXTRACTED),
    Fault("98-extracted-empty", MOSES, r"features\.dat: expected 'FEATURES_TXT_BEGIN_0 .*', found no line", {**EXTRACTED, "features.dat": ""},
        cure={"features.dat": FEATURES}),
    Fault("98-extracted-blank-line", MOSES, r"blank line, skipped, first at features\.dat:5",
        {**EXTRACTED, "features.dat": FEATURES.replace("END_0\n", "END_0\n\n", 1)}, exit=0),
    Fault("98-extracted-systems-differ", f"{MOSES} --features 2.dat --scores scores.dat",
        r"2\.dat:1: expected the features of features\.dat, LM0\(1\) TM0\(2\), found LM1\(1\)", {**EXTRACTED, "2.dat": FEATURES.replace("LM0", "LM1")},
        cure={"2.dat": FEATURES}),
    Fault("98-init-of-two-lines", f"{MOSES} --init init.opt", r"init\.opt: expected three lines, start, .*, found 2",
        {**EXTRACTED, "init.opt": "1 1 1\n0 0 0\n"}, cure={"init.opt": "1 1 1\n0 0 0\n1 1 1\n"}),
    Fault("98-init-of-four-lines", f"{MOSES} --init init.opt", r"init\.opt: expected three lines, start, .*, found 4 or more",
        {**EXTRACTED, "init.opt": "1 1 1\n0 0 0\n1 1 1\n1 1 1\n"}, cure={"init.opt": "1 1 1\n\n0 0 0\n1 1 1\n"}),
    Fault("98-init-infinite", f"{MOSES} --init init.opt", r"init\.opt:3: expected a finite decimal number, found 'inf'",
        {**EXTRACTED, "init.opt": "1 1 1\n0 0 0\n1 1 inf\n"}, cure={"init.opt": "1 1 1\n0 0 0\n1 1 1\n"}),
    Fault("98-init-range-turned", f"{MOSES} --init init.opt", r"init\.opt: expected a range for TM0_0, found 1 to 0",
        {**EXTRACTED, "init.opt": "1 1 1\n0 1 0\n1 0 1\n"}, cure={"init.opt": "1 1 1\n0 0 0\n1 1 1\n"}),
    Fault("98-weights-by-place-too-few", f"{MOSES} --start weights.txt", r"weights\.txt: expected 3 weights without names",
        {**EXTRACTED, "weights.txt": "1 2\n"}, cure={"weights.txt": "1 2 3\n"}),
    # ablate
    Fault("--ablate-without-context", f"ablate {LISTS} --weights w.ini", "no scorer here depends on other sentences; give --lm NAME=DIR of one", exit=2),
]  # fmt: skip
