"""Faults of evaluations, reports and explanations, and of the files that they read."""

from support.faults import Changes, Fault, put, replaced
from support.world import EVALUATE

XML = """<dataset><doc id="x">
<src lang="xx"><seg id="1">s</seg></src><hyp system="A"><seg id="1">h</seg></hyp>
</doc></dataset>
"""
TUNED = '{"schema": 1, "weights": {"LM0": 1}, "provenance": %s}'
COMET = "--scores comet=base.txt:base.comet --scores comet=hyp.txt:hyp.comet"
NUMBERS: Changes = {"base.comet": "0\n1\n0\n1\n", "hyp.comet": "1\n1\n0\n1\n"}
CHOICE = (
    '{"document": "%s", "sentence": %d, "source": null, "chosen": 0, "first": 0, "runner_up": null,'
    ' "texts": {"chosen": "it", "first": "it", "runner_up": null}, "total": 0.0, "features": {},'
    ' "weighted": {}, "over_first": {}, "over_runner_up": null, "margin": null,'
    ' "path_margin": null, "alone": null, "marginal": null, "marginals": null}\n'
)
PLACES = [("evening", 0), ("evening", 1), ("town", 0), ("town", 1)]
TRACE = "".join(CHOICE % place for place in PLACES)
EXPLAIN = "decode --kbest dev.kbest --docs dev.docs --weights w.ini --out out --explain evening"
REPORT = "report --trace t --docs dev.docs --ref dev.ref --out page.html"


def with_numbers(**changes: str) -> Changes:
    """Files of values, some of them changed."""
    return {**NUMBERS, **{name.replace("_", "."): text for name, text in changes.items()}}


FAULTS = [
    # evaluate
    Fault(
        "---evaluate-tokenizer-unknown",
        f"{EVALUATE} --tokenize 13b",
        r"no tokenizer '13b'; sacrebleu has none, zh, 13a",
        exit=2,
        cure=f"{EVALUATE} --tokenize 13a",
    ),
    Fault(
        "---evaluate-tokenizer-moses-language",
        f"{EVALUATE} --tokenize moses-xx",
        r"--tokenize moses-xx: .*there are .*en",
        exit=2,
        cure=f"{EVALUATE} --tokenize moses-en",
    ),
    Fault(
        "---evaluate-tokenizer-to-download",
        f"{EVALUATE} --tokenize flores200",
        r"download it there from https://|cannot be loaded",
        exit=2,
        environment={"SACREBLEU": "none"},
    ),
    Fault(
        "---evaluate-lengths-before-the-list",
        f"{EVALUATE} --kbest missing.gz",
        r"hyp\.txt: expected 4 lines as dev\.docs has, found 1;",
        {"hyp.txt": "it\n", "missing.gz": ""},
        cure=({"hyp.txt": "it\n" * 4}, EVALUATE),
    ),
    Fault(
        "---evaluate-nothing",
        "evaluate --no-docs one --ref dev.ref --baseline base.txt hyp.txt",
        r"found none",
        {"dev.ref": "", "base.txt": "", "hyp.txt": ""},
    ),
    Fault(
        "---evaluate-standard-input-twice",
        "evaluate --docs dev.docs --ref - --baseline - hyp.txt",
        r"only one input can be -",
        exit=2,
        cure=EVALUATE,
    ),
    Fault(
        "---evaluate-detruecase-alone",
        f"{EVALUATE} --detruecase",
        r"--detruecase: .*add --detokenize",
        exit=2,
        cure=f"{EVALUATE} --detruecase --detokenize en",
    ),
    Fault(
        "---evaluate-frequencies-without-classes",
        f"{EVALUATE} --word-frequencies counts",
        r"--word-frequencies counts: they divide the content words of --word-classes; add it",
        {"counts": "it 3\n"},
        exit=2,
        cure=f"{EVALUATE} --word-frequencies counts --word-classes",
    ),
    Fault(
        "---evaluate-test-set-without-pair",
        f"{EVALUATE} --test-set wmt23",
        r"--test-set and --language-pair: expected both or none; give both",
        exit=2,
        cure=EVALUATE,
    ),
    Fault(
        "---evaluate-test-set-and-references",
        f"{EVALUATE} --test-set wmt23 --language-pair ru-en",
        r"expected --ref or --test-set, found both; give one",
        exit=2,
        cure=EVALUATE,
    ),
    Fault(
        "---evaluate-oracle-from-id-1",
        f"{EVALUATE} --kbest one.kbest",
        r"--first-id 1",
        {"one.kbest": "".join(f"{t} ||| it ||| LM0= 0 ||| 0\n" for t in range(1, 5))},
        cure=f"{EVALUATE} --kbest one.kbest --first-id 1",
    ),
    # what is noticed
    Fault(
        "---evaluate-identical-to-a-reference",
        EVALUATE,
        r"1 x hypotheses identical to reference 1, first at hyp\.txt",
        {"hyp.txt": "the lamp is lit\nit gives a light\nthe café is closed\nnobody is coming\n"},
        exit=0,
        cure={"hyp.txt": "it\n" * 4},
    ),
    Fault(
        "---evaluate-detokenised-text",
        "evaluate --no-docs one --ref ref --baseline ref out",
        r"12 x line that looks detokenised, .* give --tokenize 13a, first at out:1",
        {"out": "It is lit.\n" * 12, "ref": "it is lit .\n" * 12},
        exit=0,
        cure="evaluate --no-docs one --ref ref --baseline ref out --tokenize 13a",
    ),
    # values of other tools
    *(
        Fault(
            f"---evaluate-scores-{name}",
            f"evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt {given}",
            message,
            NUMBERS,
            exit=2,
            cure=f"{EVALUATE} {COMET}",
        )
        for name, given, message in (
            (
                "unknown",
                "--scores comet=other:f",
                r"expected HYP:FILE with HYP one of base\.txt, hyp",
            ),
            (
                "no-file",
                "--scores comet=base.txt:",
                r"expected HYP:FILE with HYP one of base\.txt, hy",
            ),
            (
                "missing",
                "--scores comet=base.txt:base.comet",
                r"found none of hyp\.txt; add --scores comet=hyp\.txt:FILE",
            ),
            (
                "twice",
                "--scores comet=base.txt:base.comet --scores comet=base.txt:hyp.comet",
                r"two files for base\.txt; give one",
            ),
            ("taken", "--scores ter=base.txt:base.comet", r"ter is a metric of rerank; take anoth"),
        )
    ),
    *(
        Fault(
            f"---evaluate-scores-file-{name}",
            f"{EVALUATE} {COMET}",
            message,
            with_numbers(hyp_comet=content),
            cure=NUMBERS,
        )
        for name, content, message in (
            (
                "nan",
                "1\nnan\n0\n1\n",
                r"hyp\.comet:2: expected a decimal number for comet, found 'nan'",
            ),
            (
                "infinite",
                "1\n0\n0\ninf\n",
                r"hyp\.comet:4: expected a finite number for comet, found",
            ),
            (
                "blank",
                "1\n\n0\n1\n",
                r"hyp\.comet:2: expected a decimal number for comet, found ''",
            ),
            (
                "short",
                "1\n0\n",
                r"hyp\.comet:3: expected 4 lines as hyp\.txt has, found 2; write one",
            ),
            (
                "long",
                "1\n0\n1\n0\n\n1\n",
                r"hyp\.comet:5: expected 4 lines as hyp\.txt has, found 6",
            ),
            ("very-long", "1\n" * 9999, r"expected 4 lines as hyp\.txt has, found 1,004 or more"),
        )
    ),
    # classes of words, and roles of metrics
    Fault(
        "---evaluate-word-list-two-words",
        f"{EVALUATE} --word-list own=list",
        r"list:2: expected one word a line, found 2: 'b c'",
        {"list": "a\nb c\n"},
        cure={"list": "it\nb\n"},
    ),
    Fault(
        "---evaluate-word-list-empty",
        f"{EVALUATE} --word-list own=list",
        r"list: expected a word a line, found no word",
        {"list": "\n"},
        cure={"list": "it\n"},
    ),
    *(
        Fault(
            f"---evaluate-frequencies-{name}",
            f"{EVALUATE} --word-classes --word-frequencies counts",
            r"counts:2: expected a word and its count, found",
            {"counts": f"a 1\n{line}\n"},
            cure={"counts": "a 1\nthe 3\n"},
        )
        for name, line in (("word", "the"), ("three", "the 3 4"), ("negative", "the -1"))
    ),
    *(
        Fault(
            f"---evaluate-weights-{name}",
            f"{EVALUATE} --weights tuned.json",
            r"tuned\.json: expected weights whose provenance names the objective of tuning",
            {"tuned.json": TUNED % made},
            cure={"tuned.json": TUNED % '{"objective": "corpus BLEU"}'},
        )
        for name, made in (("without", "{}"), ("unknown", '{"objective": "some"}'))
    ),
    # report and explain
    Fault(
        "---report-of-standard-input",
        "report --trace - --docs dev.docs --ref dev.ref",
        r"-: a trace is read twice; give the name of a file",
        exit=2,
        stdin=TRACE.encode(),
        cure=({"t": TRACE}, REPORT),
    ),
    Fault(
        "---report-sentence-twice",
        REPORT,
        r"t: expected sentences of the documents, each once, found sentence 0 of 'evening'",
        {"t": TRACE + CHOICE % PLACES[0]},
        cure={"t": TRACE},
    ),
    Fault(
        "---report-other-documents",
        REPORT,
        r"found sentence 1 of 'town'; give the document ids of the decoding",
        {"t": TRACE, "dev.docs": "evening\nevening\ntown\nother\n"},
        cure={"dev.docs": "evening\nevening\ntown\ntown\n"},
    ),
    Fault(
        "---report-sentences-that-the-trace-has-not",
        REPORT,
        r"2 x sentence that the trace has not",
        {"t": "".join(CHOICE % place for place in PLACES[:2])},
        exit=0,
        cure={"t": TRACE},
    ),
    Fault(
        "---report-baseline-shorter",
        f"{REPORT} --baseline b",
        r"b: expected the sentences of t in their order, but not sentence 0 of 'evening'",
        {"t": TRACE, "b": "".join(CHOICE % place for place in PLACES[1:])},
        cure={"b": TRACE},
    ),
    Fault(
        "---report-baseline-longer",
        f"{REPORT} --baseline b",
        r"b: expected as many sentences as t has, found more",
        {"t": TRACE, "b": TRACE + CHOICE % PLACES[0]},
        cure={"b": TRACE},
    ),
    Fault(
        "---report-curve-without-figures",
        f"{REPORT} --curve lm=c",
        r"--figures DIR; give it",
        {"t": TRACE, "c": "update\tepoch\n"},
        exit=2,
        cure=REPORT,
    ),
    Fault(
        "---explain-of-a-text",
        "explain dev.ref",
        r"dev\.ref:1: expected a line of a trace",
        {"t": TRACE},
        cure="explain t",
    ),
    Fault(
        "---explain-no-such-sentence",
        "explain t evening:7",
        r"t: has no sentence 7 of 'evening'|has no sentence 7 of 'evening'",
        {"t": TRACE},
        exit=2,
        cure="explain t evening:1",
    ),
    *(
        Fault(
            f"---explain-place-{name}",
            f"explain t {place}",
            r"expected DOC or DOC:SENT",
            {"t": TRACE},
            exit=2,
            cure="explain t evening",
        )
        for name, place in (("unknown", "q"), ("negative", "town:-1"), ("empty", "town:"))
    ),
    Fault(
        "---explain-in-decode-no-such-sentence",
        f"{EXPLAIN}:5",
        r"'evening' has 2 sentences",
        exit=2,
        cure=f"{EXPLAIN}:1",
    ),
    Fault(
        "---ablate-pair-scores",
        "ablate --kbest dev.kbest --docs dev.docs --ref dev.ref --weights w.ini --default-weight 1 "
        "--pair-scores p",
        r"--pair-scores pairs: a file has no scores in other contexts; leave it out",
        {"p": ""},
        exit=2,
    ),
    Fault(
        "---export-outputs-of-other-length",
        "export --docs dev.docs --out folder ours=hyp.txt",
        r"hyp\.txt: expected 4 lines",
        {"hyp.txt": put(2, "one more")},
        cure={"hyp.txt": replaced("one more\n", "")},
    ),
]
