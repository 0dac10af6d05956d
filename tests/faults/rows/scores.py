"""Faults of files of scores and of n-gram models."""

from support.faults import RESTORED, Fault, line, without
from support.world import DECODE

FAULTS = [
    Fault("64-ngram-binary", DECODE + " --ngram m.bin",
        r"m\.bin:1: expected \\data\\ in the first 1,000 lines, found none; .* not one in a binary format",
        {"m.bin": "blmt 7 of another program\n"},
    ),
    Fault("64-ngram-cut-short", DECODE + " --ngram m.arpa",
        r"m\.arpa:12: expected 2 2-grams, as the counts at the top of the file say, found 1, then a blank line or the end",
        {"m.arpa": """\
\\data\\
ngram 1=3
ngram 2=2

\\1-grams:
-99	<s>	0
-1	</s>
-1	a	0

\\2-grams:
-0.5	<s> a
"""},
    ),
    Fault("95-scores-missing-file", DECODE + " --default-weight 0.5 --scores qe=dev.que",
        r"no file dev\.que; did you mean dev\.qe\?",
        cure=DECODE + " --default-weight 0.5 --scores qe=dev.qe", exit=2,
    ),
    Fault("95-scores-nan", DECODE + " --default-weight 0.5 --scores qe=dev.qe",
        r"dev\.qe:2: expected a decimal number for qe, found 'nan'",
        {"dev.qe": line(2, "0.25", "nan")},
        cure={"dev.qe": RESTORED},
    ),
    Fault("95-scores-of-a-taken-name", DECODE + " --default-weight 0.5 --scores LM0=dev.qe",
        r"--scores LM0=…: dev\.kbest already has a feature 'LM0'; choose another NAME",
        cure=DECODE + " --default-weight 0.5 --scores qe=dev.qe", exit=2,
    ),
    Fault("95-scores-of-one-name", DECODE + " --default-weight 0.5 --scores qe=dev.qe --pair-scores qe=dev.qe",
        r"--pair-scores qe=dev\.qe: the name is taken by another --scores; choose another NAME",
        cure=DECODE + " --default-weight 0.5 --scores qe=dev.qe --pair-scores dev.pairs", exit=2,
    ),
    Fault("95-scores-too-few", DECODE + " --default-weight 0.5 --scores qe=dev.qe",
        r"dev\.qe:3: expected 9 lines as dev\.kbest has, found 2; write one number for each",
        {"dev.qe": without(3, 4, 5, 6, 7, 8, 9)},
        cure={"dev.qe": RESTORED},
    ),
    Fault("95-scores-too-many", DECODE + " --default-weight 0.5 --scores qe=dev.qe",
        r"dev\.qe:10: expected 9 lines as dev\.kbest has, found 18",
        {"dev.qe": """\
0.0
0.25
0.5
0.75
1.0
1.25
1.5
1.75
2.0
0.0
0.25
0.5
0.75
1.0
1.25
1.5
1.75
2.0
"""},
        cure={"dev.qe": RESTORED},
    ),
    Fault("96-pair-columns", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:1: expected 5 columns \(document, sentence, previous index, index, value\) with a TAB between them, found 1",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening 0 - 0 1")},
        cure={"dev.pairs": RESTORED},
    ),
    Fault("96-pair-index-too-large", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:4: expected a previous index below 2, the candidates of sentence 0, found 2; they count from 0",
        {"dev.pairs": line(4, "evening\t1\t0\t1\t-0.5", "evening\t1\t2\t0\t0.25")},
        cure={"dev.pairs": RESTORED},
    ),
    Fault("96-pair-infinite", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:1: expected a finite number for pairs, found '-inf'; give --clip-inf",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t-\t0\t-inf")},
        cure=DECODE + " --default-weight 0.5 --pair-scores dev.pairs --clip-inf 100",
    ),
    Fault("96-pair-infinite-clipped", DECODE + " --default-weight 0.5 --pair-scores dev.pairs --clip-inf 100",
        r"1 x infinite number, clipped, first at dev\.pairs:1",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t-\t0\t-inf")},
        exit=0,
    ),
    Fault("96-pair-missing", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        (r"dev\.pairs:8: expected all 8 pairs of document 'evening' before this line, found 1 of them missing", "sentence 1, previous index 1, index 1; write a line for each pair, or cut the lists with --top"),
        {"dev.pairs": without(7)},
        cure={"dev.pairs": RESTORED},
    ),
    Fault("96-pair-nan", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:1: expected a decimal number for pairs, found 'nan'",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t-\t0\tnan")},
        cure={"dev.pairs": RESTORED},
    ),
    Fault("96-pair-of-a-document-without-candidates", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:15: expected documents that have candidates, found 'night', which has none",
        {"dev.docs": """\
evening
evening
town
town
night
""", "dev.pairs": """\
evening	0	-	0	0.25
evening	0	-	1	-0.75
evening	1	0	0	0.5
evening	1	0	1	-0.5
evening	1	0	2	-1.5
evening	1	1	0	0.5
evening	1	1	1	-0.5
evening	1	1	2	-1.5
town	0	-	0	0.25
town	0	-	1	-0.75
town	1	0	0	0.5
town	1	0	1	-0.5
town	1	1	0	0.5
town	1	1	1	-0.5
night	0	-	0	1
"""},
        cure={"dev.docs": RESTORED, "dev.pairs": RESTORED},
    ),
    Fault("96-pair-of-an-unknown-document", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:9: expected a document id of the lists, found 'morning'; ids are those of --docs",
        {"dev.pairs": line(9, "town\t0\t-\t0\t0.25", "morning\t0\t-\t0\t1")},
        cure={"dev.pairs": RESTORED},
    ),
    Fault("96-pair-twice", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:4: expected each pair once, found this one again",
        {"dev.pairs": line(4, "evening\t1\t0\t1\t-0.5", "evening\t0\t-\t1\t-0.75")},
        cure={"dev.pairs": RESTORED},
    ),
    Fault("96-pair-without-previous", DECODE + " --default-weight 0.5 --pair-scores dev.pairs",
        r"dev\.pairs:1: expected '-' as previous index of sentence 0, the first of its document",
        {"dev.pairs": line(1, "evening\t0\t-\t0\t0.25", "evening\t0\t0\t0\t1")},
        cure={"dev.pairs": RESTORED},
    ),
]
