"""Faults of files of scores and of n-gram models."""

from support.faults import RESTORED, Changes, Fault, both, each_line, line, put, replaced, without
from support.world import DECODE

SCORED = DECODE + " --default-weight 0.5 --scores qe=dev.qe"
PAIRS = DECODE + " --default-weight 0.5 --pair-scores dev.pairs"
NIGHT = "night\t0\t-\t0\t1"
LATER: Changes = {  # a document without candidates before the last one
    "dev.docs": put(3, "night"), "dev.kbest": both(replaced("\n3 |||", "\n4 |||"), replaced("\n2 |||", "\n3 |||")),
}

FAULTS = [
    Fault("64-ngram-binary", DECODE + " --ngram m.bin", r"m\.bin:1: expected \\data\\ in the first 1,000 lines, found none; .* not one in a binary format",
        {"m.bin": "blmt 7 of another program\n"}),
    Fault("64-ngram-cut-short", DECODE + " --ngram m.arpa",
        r"m\.arpa:12: expected 2 2-grams, as the counts at the top of the file say, found 1, then a blank line or the end",
        {"m.arpa": "\\data\\\nngram 1=3\nngram 2=2\n\n\\1-grams:\n-99\t<s>\t0\n-1\t</s>\n-1\ta\t0\n\n\\2-grams:\n-0.5\t<s> a\n"}),
    Fault("64-ngram-without-unk", DECODE + " --default-weight 0.5 --ngram m.arpa",
        r"1 x n-gram model without <unk>: unknown words get the log10 probability -100, .*first at m\.arpa",
        {"m.arpa": "\\data\\\nngram 1=3\n\n\\1-grams:\n-99\t<s>\n-1\t</s>\n-1\ta\n\n\\end\\\n"}, exit=0),
    Fault("95-scores-missing-file", DECODE + " --default-weight 0.5 --scores qe=dev.que", r"no file dev\.que; did you mean dev\.qe\?", exit=2, cure=SCORED),
    Fault("95-scores-nan", SCORED, r"dev\.qe:2: expected a decimal number for qe, found 'nan'", {"dev.qe": line(2, "0.25", "nan")}, cure={"dev.qe": RESTORED}),
    Fault("95-scores-of-a-taken-name", DECODE + " --default-weight 0.5 --scores LM0=dev.qe",
        r"--scores LM0=…: dev\.kbest already has a feature 'LM0'; choose another NAME", exit=2, cure=SCORED),
    Fault("95-scores-of-one-name", DECODE + " --default-weight 0.5 --scores qe=dev.qe --pair-scores qe=dev.qe",
        r"--pair-scores qe=dev\.qe: the name is taken by another --scores; choose another NAME", exit=2,
        cure=DECODE + " --default-weight 0.5 --scores qe=dev.qe --pair-scores dev.pairs"),
    Fault("95-scores-too-few", SCORED, r"dev\.qe:3: expected 9 lines as dev\.kbest has, found 2; write one number for each",
        {"dev.qe": without(3, 4, 5, 6, 7, 8, 9)}, cure={"dev.qe": RESTORED}),
    Fault("95-scores-too-many", SCORED, r"dev\.qe:10: expected 9 lines as dev\.kbest has, found 18", {"dev.qe": "0.5\n" * 18}, cure={"dev.qe": RESTORED}),
    Fault("96-pair-columns", PAIRS, r"dev\.pairs:1: expected 5 columns \(document, sentence, previous index, index, value\) with a TAB between them, found 1",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening 0 - 0 1")}, cure={"dev.pairs": RESTORED}),
    Fault("96-pair-index-too-large", PAIRS, r"dev\.pairs:4: expected a previous index below 2, the candidates of sentence 0, found 2; they count from 0",
        {"dev.pairs": line(4, "evening\t1\t0\t1\t-0.5", "evening\t1\t2\t0\t0.25")}, cure={"dev.pairs": RESTORED}),
    Fault("96-pair-infinite", PAIRS, r"dev\.pairs:1: expected a finite number for pairs, found '-inf'; give --clip-inf",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t-\t0\t-inf")}, cure=PAIRS + " --clip-inf 100"),
    Fault("96-pair-infinite-clipped", PAIRS + " --clip-inf 100", r"1 x infinite number, clipped, first at dev\.pairs:1",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t-\t0\t-inf")}, exit=0, asked=True),
    Fault("96-pair-missing", PAIRS,
        (r"dev\.pairs:8: expected all 8 pairs of document 'evening' before this line, found 1 of them missing",
        "sentence 1, previous index 1, index 1; write a line for each pair, or cut the lists with --top"), {"dev.pairs": without(7)},
        cure={"dev.pairs": RESTORED}),
    Fault("96-pair-nan", PAIRS, r"dev\.pairs:1: expected a decimal number for pairs, found 'nan'",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t-\t0\tnan")}, cure={"dev.pairs": RESTORED}),
    Fault("96-pair-of-a-document-without-candidates", PAIRS, r"dev\.pairs:15: expected documents that have candidates, found 'night', which has none",
        {"dev.docs": put(5, "night"), "dev.pairs": put(15, NIGHT)}, cure={"dev.docs": RESTORED, "dev.pairs": RESTORED}),
    Fault("96-pair-of-a-document-between-others-without-candidates", PAIRS,
        r"dev\.pairs:9: expected documents that have candidates, found 'night', which has none", {**LATER, "dev.pairs": put(9, NIGHT)},
        cure={"dev.pairs": RESTORED}),
    Fault("36-total-that-lines-lack", DECODE + " --default-weight 0.5",
        r"dev\.kbest:1: expected a total on every line, because the feature 'total' is used, found none; leave it out of the features",
        {"w.ini": lambda old: old + b"total= 1\n", "dev.kbest": each_line(lambda one: one.rpartition(" |||")[0])}, cure={"w.ini": RESTORED}),
    Fault("96-pair-of-an-unknown-document", PAIRS, r"dev\.pairs:9: expected a document id of the lists, found 'morning'; ids are those of --docs",
        {"dev.pairs": line(9, "town\t0\t-\t0\t0.25", "morning\t0\t-\t0\t1")}, cure={"dev.pairs": RESTORED}),
    Fault("96-pair-twice", PAIRS, r"dev\.pairs:4: expected each pair once, found this one again",
        {"dev.pairs": line(4, "evening\t1\t0\t1\t-0.5", "evening\t0\t-\t1\t-0.75")}, cure={"dev.pairs": RESTORED}),
    Fault("96-pair-without-previous", PAIRS, r"dev\.pairs:1: expected '-' as previous index of sentence 0, the first of its document",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t0\t0\t1")}, cure={"dev.pairs": RESTORED}),
]  # fmt: skip
