"""Faults of searches, and of scores of hypotheses and of pairs in files."""

from support.faults import Fault, line, order, put, replaced
from support.world import CHECK, DECODE

SCORED = f"{DECODE} --default-weight 0.5"
SCALED = f"{DECODE} --alpha 1 --summary s.json"
SIZES = {"evening": (2, 3), "town": (2, 2)}
PAIRS = "".join(
    f"{name}\t{t}\t{j}\t{k}\t0.5\n"
    for name, (one, two) in SIZES.items()
    for t, before, n in ((0, "-", one), (1, range(one), two))
    for j in before
    for k in range(n)
)
BEYOND = (  # option, value that is refused, nearest one that is accepted, and a search for it
    ("ess", "1.5", "1", "smc"), ("--alpha", "0", "0.001", "survivors"), ("block", "0", "1", "sweeps"),
    ("word-reward", "101", "100", "mbr"), ("word-reward", "x", "-100", "mbr"), ("--gap", "0", "1", "beam"),
    ("merge", "sum", "sample", "survivors"), ("utility", "ter", "chrf", "mbr"),
    ("resampling", "best", "residual", "smc"), ("--search", "viterby", "viterbi", "auto"),
)
MANY = "".join(f"{t} ||| {word} ||| LM0= 0 TM0= 0 0 WP0= 0 ||| 0\n" for t in range(20) for word in "ab")
ALIGNED = replaced("\n", " ||| 0-0\n")
PARTLY = lambda old: line(1, " ||| 0-0", "")(line(2, " ||| 0-0", "")(ALIGNED(old)))  # noqa: E731
TERMS = "la lampe\tthe lamp|a lamp\n\npersonne\tnobody\n"
TERMED = f"{SCORED} --source dev.src --glossary terms"
WRONG_TERMS = (
    ("without-a-tab", "le bar bar\n", "4: expected a source term, a TAB and its translations, .* found 1 column; put a TAB", "le bar\tbar\n"),
    ("with-a-third-column", "le bar\tbar\tpub\n", "4: expected .* found 3 columns; leave out the others", "le bar\tbar\n"),
    ("without-a-term", " \tbar\n", "4: expected a source term before the TAB, found none; leave out", ""),
    ("without-a-translation", "bar\t\n", "4: expected translations of 'bar', .* found an empty one; leave out", ""),
    ("with-a-term-twice", "LA  Lampe\tlamp\n", "4: expected a term once, found 'LA  Lampe' again, as on line 1; put all its", ""),
)
CONSISTENT = f"{SCORED} --scorer same=consistency"


def searching(search: str, flag: str, value: str) -> str:
    scale = " --alpha 1" if search in ("smc", "ffbs", "survivors") else ""
    return f"{DECODE}{scale} --summary s.json --search {search}" + (f" {flag} {value}" if flag[0] == "-" else f":{flag}={value}")


WRONG_PAIRS = (
    ("of-documents-out-of-order", "1: expected all 8 pairs of document 'evening' before this line, found 8 of them missing",
        order(*range(9, 15), *range(1, 9))),
    ("of-a-document-that-resumes", "15: expected documents in the order of --docs, each in one run of lines, found 'evening'", put(15, "evening\t0\t-\t0\t1")),
    ("of-a-sentence-that-is-not-there", "8: expected a sentence of document 'evening' that has candidates, found 2", line(8, "\t1\t", "\t2\t")),
    ("of-a-candidate-that-is-not-there", "8: expected an index below 3, the candidates of sentence 1, found 3; they count from 0", line(8, "\t2\t", "\t3\t")),
    ("of-no-digits", r"8: expected a sentence \(digits 0-9\), found '٢'", line(8, "\t1\t", "\t٢\t")),
)  # fmt: skip

FAULTS = [
    *(Fault(f"69-{flag.lstrip('-')}-{value.replace('.', '-').replace('--', '-').lstrip('-')}-for-{search}", searching(search, flag, value),
        f"Invalid value for '{flag}'" if flag[0] == "-" else f"Invalid value for '--search': {flag}: ", exit=2, cure=searching(search, flag, good))
        for flag, value, good, search in BEYOND),
    Fault("69-particles-where-all-paths-are-summed", f"{SCALED} --search ffbs:particles=8",
        "--search ffbs: ffbs uses particles above order 1 only; up to order 1 it sums over all", exit=2, cure=f"{SCALED} --search ffbs"),
    Fault("69-alpha-and-spread", f"{SCALED} --search mbr:spread=2", "--search mbr: --alpha is the scale itself; leave out spread", exit=2,
        cure=f"{SCALED} --search mbr"),
    Fault("69-lists-of-paths-by-greedy", f"{SCALED} --search greedy --n-best 2", "--search greedy: greedy does not serve lists of several paths; .*viterbi",
        exit=2, cure=f"{SCALED} --search viterbi --n-best 2"),
    Fault("69-lists-of-paths-without-a-file", f"{DECODE} --n-best 2", "--n-best: the summary lists the paths of a document; give --summary FILE", exit=2,
        cure=f"{DECODE} --n-best 2 --summary s.json"),
    Fault("69-exhaustive-search-of-many-paths", f"{DECODE} --search exhaustive",
        "--search exhaustive: exhaustive takes documents of at most 1,000,000 paths, this has", {"dev.kbest": MANY, "dev.docs": "one\n" * 20}, exit=2,
        cure=f"{DECODE} --search viterbi"),
    Fault("69-search-of-score-without-weights", "score --kbest dev.kbest --docs dev.docs --pair-scores dev.pairs --out - --search viterbi",
        "--search, its options and --default-weight are for the path decoded with --weights; give", {"dev.pairs": PAIRS}, exit=2,
        cure="score --kbest dev.kbest --docs dev.docs --pair-scores dev.pairs --out - --search viterbi --weights w.ini --default-weight 0"),
    Fault("69-nothing-to-score-with", "score --kbest dev.kbest --docs dev.docs --out -", "nothing to score with; give at least one --lm NAME=DIR", exit=2),
    *(Fault(f"96-pairs-{name}", f"{SCORED} --pair-scores dev.pairs", rf"dev\.pairs:{message}", {"dev.pairs": wrong(PAIRS.encode())}, cure={"dev.pairs": PAIRS})
        for name, message, wrong in WRONG_PAIRS),
    # Scores of hypotheses, and lexical consistency
    Fault("46-consistency-without-a-source", CONSISTENT, "--source: --scorer same needs the source sentences", {"dev.kbest": ALIGNED}, exit=2,
        cure=f"{CONSISTENT} --source dev.src"),
    Fault("46-consistency-with-some-alignments", f"{CONSISTENT} --source dev.src",
        r"dev\.kbest:1: expected a column of alignments \(0-0 1-2\) or of phrase segmentation", {"dev.kbest": PARTLY},
        cure={"dev.kbest": line(1, "-4.875", "-4.875 ||| 0-0")}),
    # Glossaries
    Fault("46-glossary-without-a-source", f"{SCORED} --glossary terms", "--source: --glossary needs the source sentences", {"terms": TERMS}, exit=2,
        cure=TERMED),
    *(Fault(f"46-glossary-{name}", f"{CHECK} --glossary terms", rf"terms:{message}", {"terms": TERMS + wrong}, cure={"terms": TERMS + right}, also={TERMED: 3})
        for name, wrong, message, right in WRONG_TERMS),
    Fault("46-glossary-empty", TERMED, "terms: expected lines of a source term, a TAB and its translations, found none", {"terms": "\n"},
        cure={"terms": TERMS}),
    Fault("46-glossary-key", f"{TERMED},case=perhaps", "case: 'perhaps' is not a valid boolean", {"terms": TERMS}, exit=2, cure=f"{TERMED},case=yes"),
    Fault("46-glossary-twice-in-the-list", TERMED, "--glossary: dev.kbest already has the feature 'glossary'; leave the option out",
        {"terms": TERMS, "dev.kbest": replaced("LM0=", "glossary= 0 LM0=")}, exit=2, cure=SCORED),
    Fault("46-scores-without-weights", "decode --kbest dev.kbest --docs dev.docs --scores qe=dev.qe --out -",
        r"--scores: it is of no use without weights; .*with the line `qe= 1`, and --default-weight 0", {"own": "qe= 1\n"}, exit=2,
        cure="decode --kbest dev.kbest --docs dev.docs --scores qe=dev.qe --weights own --default-weight 0"),
    Fault("46-glossary-without-weights", "decode --kbest dev.kbest --docs dev.docs --search mbr --source dev.src --glossary terms --out -",
        "--glossary: it is of no use without weights; add --weights FILE", {"terms": TERMS}, exit=2, cure=TERMED),
    *(Fault(f"46-glossary-unused-term-{command.split()[0]}", command, "term of the glossary that no source sentence has.*: 'lampes'",
        {"terms": TERMS + "lampes\tlamps\n"}, exit=0, cure=f"{command},inflection=yes") for command in (TERMED, f"{CHECK} --glossary terms")),
    Fault("46-alignment-outside-of-the-sentence", f"{CONSISTENT} --source dev.src",
        r"dev\.kbest:1: alignment '2-0': expected positions in a source sentence of 2 words", {"dev.kbest": lambda old: line(1, "0-0", "2-0")(ALIGNED(old))},
        cure={"dev.kbest": line(1, "2-0", "1-0")}),
    Fault("46-phrase-outside-of-the-sentence", f"{CONSISTENT} --source dev.src",
        r"dev\.kbest:1: alignment '0-1=0-4': expected positions in a source .* a hypothesis of 4",
        {"dev.kbest": lambda old: line(1, "0-0", "0-1=0-4")(ALIGNED(old))}, cure={"dev.kbest": line(1, "0-4", "0-3")}),
    Fault("46-words-to-ignore-missing", f"{CONSISTENT}:no-file --source dev.src",
        "no-file: expected a file of source words to ignore, one on a line: No such file", {"dev.kbest": ALIGNED}, exit=2, cure={"no-file": "la\n"}),
]  # fmt: skip
