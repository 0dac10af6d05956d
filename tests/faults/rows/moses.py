"""Faults of the files of Moses' extractor."""

from support.faults import MOSES, RESTORED, Fault, line, replaced, without
from support.world import SOUND

FAULTS = [
    Fault("98-base-of-another-system", MOSES + " --base moses.ini", r"moses\.ini:3: expected 2 weights of TM0 as tuned, found 1; is it the ini of this system",
        {"moses.ini": "[weight]\nLM0= 1\nTM0= 1\nWP0= 1\n"}, cure={"moses.ini": SOUND["w.ini"]}),
    Fault("98-extracted-columns", MOSES, r"scores\.dat:8: expected 9 statistics as the block's first line says, found 8", {"scores.dat": line(8, "0 4 ", "0")},
        cure={"scores.dat": RESTORED}),
    Fault("98-extracted-counts-differ", MOSES, r"scores\.dat:5: expected 3 hypotheses of sentence 1 as in features\.dat:5, found 2 hyp.*one run of extractor",
        {"scores.dat": lambda old: without(8)(line(5, "1 3 9", "1 2 9")(old))}, cure={"scores.dat": RESTORED}),
    Fault("98-extracted-cut-short", MOSES, r"features\.dat:8: expected 3 hypotheses of sentence 1 .* found the end of the file after 3; is the file cut short",
        {"features.dat": without(9)}, cure={"features.dat": RESTORED}),
    Fault("98-extracted-for-another-metric", MOSES, r"scores\.dat:1: expected 9 statistics of BLEU, found 9 of 'TER'; run extractor with the scorer type BLEU",
        {"scores.dat": replaced("BLEU", "TER")}, cure={"scores.dat": RESTORED}),
    Fault("98-extracted-ids-differ", MOSES, r"scores\.dat:5: expected 3 hypotheses of sentence 1 as in features\.dat:5, found 3 hypotheses of sentence 2",
        {"scores.dat": line(5, "SCORES_TXT_BEGIN_0 1", "SCORES_TXT_BEGIN_0 2")}, cure={"scores.dat": RESTORED}),
    Fault("98-extracted-nan", MOSES, r"features\.dat:3: expected a decimal number for value 2, found 'nan'; correct the list",
        {"features.dat": line(3, "-8.25 -3", "-8.25 nan")}, cure={"features.dat": RESTORED}),
    Fault("98-extracted-sparse", MOSES + " --strict", r"features\.dat:3: line with sparse features \(labels with '_'\) \(an error under --strict; ",
        {"features.dat": line(3, "-8.25 -3 -2.5 -3 ", "-8.25 -3 -2.5 -3 tag_np=1 ")}, cure=({"features.dat": RESTORED}, MOSES)),
    Fault("98-extracted-unequal-numbers-of-files", MOSES + " --scores scores.dat", "found 2 for 1; name both as often, in the same order", exit=2, cure=MOSES),
    Fault("98-init-of-another-width", MOSES + " --init init.opt", r"init\.opt:1: expected 4 values, for LM0 … WP0, found 3",
        {"init.opt": "1 1 1\n0 0 0\n1 1 1\n"}, cure={"init.opt": "1 1 1 1\n0 0 0 0\n1 1 1 1\n"}),
    Fault("98-init-ranges", MOSES + " --init init.opt --strict", r"init\.opt: ranges other than 0 to 1, which weights may leave.*an error under --strict",
        {"init.opt": "1 1 1 1\n-1 0 0 0\n1 1 1 1\n"}),
]  # fmt: skip
