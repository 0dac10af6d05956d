"""Faults of the files of Moses' extractor."""

from support.faults import MOSES, RESTORED, Fault, line, without
from support.world import SOUND

FAULTS = [
    Fault("98-base-of-another-system", MOSES + " --base moses.ini",
        r"moses\.ini:3: expected 2 weights of TM0 as tuned, found 1; is it the ini of this system",
        {"moses.ini": """\
[weight]
LM0= 1
TM0= 1
WP0= 1
"""},
        cure={"moses.ini": SOUND["w.ini"]},
    ),
    Fault("98-extracted-columns", MOSES,
        r"scores\.dat:8: expected 9 statistics as the block's first line says, found 8",
        {"scores.dat": line(8, "0 4 ", "0")},
        cure={"scores.dat": RESTORED},
    ),
    Fault("98-extracted-counts-differ", MOSES,
        r"scores\.dat:5: expected 3 hypotheses of sentence 1 as in features\.dat:5, found 2 hyp.*one run of extractor",
        {"scores.dat": """\
SCORES_TXT_BEGIN_0 0 2 9 BLEU
4 4 3 3 2 2 1 1 4 
1 3 0 2 0 1 0 0 4 
SCORES_TXT_END_0
SCORES_TXT_BEGIN_0 1 2 9 BLEU
3 3 1 2 0 1 0 0 4 
3 4 2 3 1 2 0 1 4 
SCORES_TXT_END_0
"""},
        cure={"scores.dat": RESTORED},
    ),
    Fault("98-extracted-cut-short", MOSES,
        r"features\.dat:8: expected 3 hypotheses of sentence 1 .* found the end of the file after 3; is the file cut short",
        {"features.dat": without(9)},
        cure={"features.dat": RESTORED},
    ),
    Fault("98-extracted-for-another-metric", MOSES,
        r"scores\.dat:1: expected 9 statistics of BLEU, found 9 of 'TER'; run extractor with the scorer type BLEU",
        {"scores.dat": """\
SCORES_TXT_BEGIN_0 0 2 9 TER
4 4 3 3 2 2 1 1 4 
1 3 0 2 0 1 0 0 4 
SCORES_TXT_END_0
SCORES_TXT_BEGIN_0 1 3 9 TER
3 3 1 2 0 1 0 0 4 
3 4 2 3 1 2 0 1 4 
1 2 0 1 0 0 0 0 4 
SCORES_TXT_END_0
"""},
        cure={"scores.dat": RESTORED},
    ),
    Fault("98-extracted-ids-differ", MOSES,
        r"scores\.dat:5: expected 3 hypotheses of sentence 1 as in features\.dat:5, found 3 hypotheses of sentence 2",
        {"scores.dat": line(5, "SCORES_TXT_BEGIN_0 1", "SCORES_TXT_BEGIN_0 2")},
        cure={"scores.dat": RESTORED},
    ),
    Fault("98-extracted-nan", MOSES,
        r"features\.dat:3: expected a decimal number for value 2, found 'nan'; correct the list",
        {"features.dat": line(3, "-8.25 -3", "-8.25 nan")},
        cure={"features.dat": RESTORED},
    ),
    Fault("98-extracted-range-of-no-feature", MOSES + " --range LM1=0:1",
        "--range LM1=…: no such feature; there are LM0, TM0_0, TM0_1, WP0$",
        cure=MOSES + " --range LM0=0:1", exit=2,
    ),
    Fault("98-extracted-range-without-start", MOSES + " --range TM0=0.5:1",
        r"--range TM0=0\.5:1: the start weight of TM0_0 is 0; give one within by --start$",
        exit=2,
    ),
    Fault("98-extracted-sparse", MOSES + " --strict",
        r"features\.dat:3: line with sparse features \(labels with '_'\) \(an error under --strict\)",
        {"features.dat": line(3, "-8.25 -3 -2.5 -3 ", "-8.25 -3 -2.5 -3 tag_np=1 ")},
        cure=({"features.dat": RESTORED}, MOSES),
    ),
    Fault("98-extracted-unequal-numbers-of-files", MOSES + " --scores scores.dat",
        "found 2 for 1; name both as often, in the same order",
        cure=MOSES, exit=2,
    ),
    Fault("98-init-of-another-width", MOSES + " --init init.opt",
        r"init\.opt:1: expected 4 values, for LM0 … WP0, found 3",
        {"init.opt": """\
1 1 1
0 0 0
1 1 1
"""},
        cure={"init.opt": "1 1 1 1\n0 0 0 0\n1 1 1 1\n"},
    ),
    Fault("98-init-ranges", MOSES + " --init init.opt --strict",
        r"init\.opt: ranges other than 0 to 1, which weights may leave.*an error under --strict",
        {"init.opt": """\
1 1 1 1
-1 0 0 0
1 1 1 1
"""},
    ),
]
