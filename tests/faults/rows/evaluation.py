"""Faults of evaluations, reports and explanations, and of the files that they read."""

from support.faults import Changes, Fault, put, replaced
from support.world import EVALUATE

TUNED = '{"schema": 1, "weights": {"LM0": 1}, "provenance": %s}'
FILES = "evaluate --docs dev.docs --ref dev.ref"
COMET = "--scores comet=base.txt:base.comet --scores comet=hyp.txt:hyp.comet"
JUDGEMENT = '{"user_id": "u", "annotation": [{"b": {"score": 7}}], "item": [{"item_id": "%s"}]}'
JUDGED = f"{FILES} hyp.txt --baseline base.txt --scores h=base.txt:log#b --scores h=hyp.txt:log"
NUMBERS: Changes = {"base.comet": "0\n1\n0\n1\n", "hyp.comet": "1\n1\n0\n1\n"}
CHOICE = (
    '{"document": "%s", "sentence": %d, "source": null, "chosen": 0, "first": 0, "runner_up": null,'
    ' "texts": {"chosen": "it", "first": "it", "runner_up": null}, "total": 0.0, "features": {},'
    ' "weighted": {}, "over_first": {}, "over_runner_up": null, "margin": null,'
    ' "path_margin": null, "alone": null, "marginal": null, "marginals": null}\n'
)
PLACES = [("evening", 0), ("evening", 1), ("town", 0), ("town", 1)]
TRACE = "".join(CHOICE % place for place in PLACES)
REPORT = "report --trace t --docs dev.docs --ref dev.ref --out page.html"
HYPOTHESIS = "expected HYP:FILE with HYP one of base"
LISTED = "".join(f"{t} ||| it ||| LM0= 0 ||| 0\n" for t in range(1, 5))

# options of `evaluate`: name, options, message, options that cure it
OPTIONS = (
    ("tokenizer-unknown", "--tokenize 13b", "no tokenizer '13b'; sacrebleu has", "--tokenize 13a"),
    ("tokenizer-moses", "--tokenize moses-xx", "moses-xx: .*there are .*en", "--tokenize moses-en"),
    ("tokenizer-remote", "--tokenize flores200", "download it there|cannot be loaded", ""),
    ("standard-input-twice", "- -", "only one input can be -", ""),
    ("detruecase-alone", "--detruecase", "add --detokenize", "--detruecase --detokenize en"),
    ("detokenize-name", "--detokenize english", "expected a language as two letters, such as en or", "--detokenize en"),
    ("test-set-without-pair", "--test-set wmt23", "expected both or none; give both", ""),
    ("test-set-and-references", "-t wmt23 -l ru-en", "expected --ref or --test-set, found both", ""),
    ("metric-without-source", "-m terms", "terms: it needs the source; give --source FILE", "-m terms --source dev.src"),
    ("metric-misspelt", "-m chrff", "no metric 'chrff'; did you mean chrf", "-m chrf"),
    ("scores-unknown", "--scores comet=other:f", HYPOTHESIS, COMET),
    ("scores-no-file", "--scores comet=base.txt:", HYPOTHESIS, COMET),
    ("scores-missing", "--scores c=base.txt:f", r"none of hyp\.txt; add --scores c=hyp\.txt", COMET),
    ("scores-twice", "--scores c=base.txt:f --scores c=base.txt:g", "two files for base", COMET),
    ("systems-twice", "--systems A=base.txt --systems A=hyp.txt", "two systems are named 'A'; give", "--systems A=base.txt --systems B=hyp.txt"),
    ("scores-taken", "--scores ter=base.txt:f", "ter is a metric of rerank; take anoth", COMET),
)
# lines of values for four lines, and what is said of them
VALUES = (
    ("nan", "1\nnan\n0\n1\n", r"hyp\.comet:2: expected a decimal number for comet, found 'nan'; write one for each line of hyp\.txt"),
    ("infinite", "1\n0\n0\ninf\n", r"hyp\.comet:4: expected a finite number for comet, found"),
    ("none", "NA\n" * 4, r"hyp\.comet: expected values of comet, found none but NA"),
    ("short", "1\n0\n", r"hyp\.comet:3: expected 4 lines as hyp\.txt has, found 2; write one"),
    ("long", "1\n0\n1\n0\n\n1\n", r"hyp\.comet:5: expected 4 lines as hyp\.txt has, found 6"),
    ("very-long", "1\n" * 9999, r"expected 4 lines as hyp\.txt has, found 1,004 or more"),
)
TRACES = (
    ("sentence-too-large", "".join(CHOICE % ("evening", t) for t in range(3)), "t: expected sentences of the documents, each once, found sentence 2 of 'evening'"),
    ("sentence-twice", TRACE + CHOICE % PLACES[0], "t: expected sentences of the documents, each"),
    ("other-documents", TRACE.replace("town", "sea"), "found sentence 0 of 'sea'; give the document"),
)
PLAIN = "evaluate --no-docs one --ref ref --baseline ref out"
OBJECTIVE = r"tuned\.json: expected weights whose provenance names the objective of tuning"

REVIEWED = "evaluate hyp.txt --ref t.tsv"
HEADINGS = "line\tdocument\tsegment\ttext\tfinal\n"
ROWS = [f"{n}\td{n // 3}\t{(n + 1) % 2}\tit\tthat\n" for n in range(1, 5)]
OK_ROWS: Changes = {"t.tsv": HEADINGS + "".join(ROWS)}
FAULTS = [
    Fault("--review-suffix", "decode --kbest dev.kbest --docs dev.docs --weights w.ini --table t.txt", r"--table t\.txt: expected a name that ends in \.xlsx, \.csv, \.tsv", exit=2, cure="decode --kbest dev.kbest --docs dev.docs --weights w.ini --out o --table t.csv"),
    Fault("--review-row-lacks", REVIEWED, r"t\.tsv: expected the segments of document 'd1' from 0 on in the order of their lines, found no segment 0 in its place", {"t.tsv": HEADINGS + "".join(ROWS[:2] + ROWS[3:])}, cure=OK_ROWS),
    Fault("--review-line", REVIEWED, r"t\.tsv:2: expected a whole number from 1 as line, found '0'; leave", {"t.tsv": HEADINGS + "".join(ROWS).replace("1", "0", 1)}, cure=OK_ROWS),
    Fault("--review-empty", REVIEWED, r"t\.tsv: expected a row for each sentence, found none", {"t.tsv": HEADINGS}, cure=OK_ROWS),
    Fault("--review-heading-twice", REVIEWED, r"t\.tsv:1: expected each column that is read once, found that of 'final' again; remove", {"t.tsv": "".join(f"{row[:-1]}\tfinal\n" for row in [HEADINGS, *ROWS])}, cure=OK_ROWS),
    Fault("--review-line-twice", REVIEWED, r"t\.tsv: expected another line of the source in each row, found one twice", {"t.tsv": HEADINGS + "".join(ROWS).replace("3\td1", "2\td1", 1)}, cure=OK_ROWS),
    Fault("--review-old-excel", "evaluate hyp.txt --ref t.xls", r"t\.xls: expected \.xlsx, \.csv or \.tsv, found a file of old Excel, or one with a password; save it as \.xlsx", {"t.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)}, cure=(OK_ROWS, REVIEWED)),
    Fault("--review-document", REVIEWED, r"t\.tsv:2: expected text as document, found ''", {"t.tsv": HEADINGS + "".join(ROWS).replace("d0", "", 1)}, cure=OK_ROWS),
    *(Fault(f"--evaluate-{name}", f"{EVALUATE} {given}", told, NUMBERS, 2, f"{EVALUATE} {cure}") for name, given, told, cure in OPTIONS),
    *(Fault(f"--evaluate-values-{name}", f"{EVALUATE} {COMET}", told, {**NUMBERS, "hyp.comet": content}, cure=NUMBERS) for name, content, told in VALUES),
    *(Fault(f"--evaluate-weights-{name}", f"{EVALUATE} --weights tuned.json", OBJECTIVE, {"tuned.json": TUNED % made}, cure={"tuned.json": TUNED % '{"objective": "corpus BLEU"}'})
      for name, made in (("without", "{}"), ("unknown", '{"objective": "some"}'))),
    Fault("--evaluate-lengths-before-the-list", f"{EVALUATE} --kbest broken.gz", r"hyp\.txt: expected 4 lines as dev\.docs has, found 1;",
          {"hyp.txt": "it\n", "broken.gz": ""}, cure=({"hyp.txt": "it\n" * 4}, EVALUATE)),
    *(Fault(f"--evaluate-truecase-{n}", f"{EVALUATE} --truecase m", f"^rerank: m: expected a {told}", {} if content is None else {"m": content}, cure={"m": "the (1/1)\n"})
      for n, content, told in (("missing", None, "file with a truecase model, found none"), ("broken", "x y z\n", "truecase model, lines WORD"))),
    Fault("--evaluate-nothing", "evaluate --no-docs one --ref dev.ref --baseline base.txt hyp.txt", r"found none", {"dev.ref": "", "base.txt": "", "hyp.txt": ""}),
    Fault("--evaluate-metric-of-english", f"{EVALUATE} -m pronouns", "metric pronouns: expected English references, found 0% .*; it knows no other language, leave it out", {"dev.ref": f"{'wort ' * 30}\n" * 4}, cure=EVALUATE),
    Fault("--evaluate-oracle-from-id-1", f"{EVALUATE} --kbest one.kbest", r"--first-id 1", {"one.kbest": LISTED}, cure=f"{EVALUATE} --kbest one.kbest --first-id 1"),
    Fault("--evaluate-identical-to-a-reference", EVALUATE, r"1 x hypotheses identical to reference 1, first at hyp\.txt",
          {"hyp.txt": "the lamp is lit\nit gives a light\nthe café is closed\nnobody is coming\n"}, exit=0, cure={"hyp.txt": "it\n" * 4}),
    Fault("--evaluate-detokenised-text", PLAIN, r"12 x line that looks detokenised, .* give --tokenize 13a, first at out:1",
          {"out": "It is lit.\n" * 12, "ref": "it is lit .\n" * 12}, exit=0, cure=f"{PLAIN} --tokenize 13a"),
    *(Fault(f"--report-{name}", REPORT, told, {"t": content}, cure={"t": TRACE}) for name, content, told in TRACES),
    Fault("--report-sentences-that-the-trace-has-not", REPORT, r"2 x sentence that the trace has not", {"t": "".join(CHOICE % place for place in PLACES[:2])}, exit=0, cure={"t": TRACE}),
    Fault("--report-baseline-shorter", f"{REPORT} --baseline b", r"b: expected the sentences of t in their order", {"t": TRACE, "b": TRACE.partition("\n")[2]}, cure={"b": TRACE}),
    Fault("--report-baseline-longer", f"{REPORT} --baseline b", r"b: expected as many sentences as t has, found more", {"t": TRACE, "b": TRACE * 2}, cure={"b": TRACE}),
    Fault("--report-baseline-trace-and-text", f"{REPORT} --baseline b --baseline base.txt", "expected texts or one trace, found both", {"t": TRACE, "b": TRACE}, 2, f"{REPORT} --baseline base.txt"),
    *(Fault(f"--report-beside-{n}", f"{REPORT} --beside {given}", told, {"t": TRACE, "few": "x\n"}, code, REPORT)
      for n, (given, told, code) in enumerate((
          ("decoded=t", "--beside decoded=…: another output has this name", 2), ("a=t --beside a=t", "--beside a=…: another output has this name", 2),
          ("t", "expected NAME=FILE, for example mbr=mbr.out; found 't'", 2), ("a=-", "-: a trace is read twice; give the name of a file", 2),
          ("a=few", r"few: expected \d+ lines", 3)))),
    Fault("--report-of-standard-input", "report --trace - --docs dev.docs --ref dev.ref", r"-: a trace is read twice; give the name of a file", exit=2, stdin=TRACE.encode(), cure=({"t": TRACE}, REPORT)),
    Fault("--explain-of-a-text", "explain dev.ref", r"dev\.ref:1: expected a line of a trace"),
    Fault("--explain-no-such-sentence", "explain t town:7", "t has no sentence 7 of 'town'", {"t": TRACE}, 2, "explain t town:1"),
    Fault("--explain-document-unknown", "explain t q", "expected DOC or DOC:SENT", {"t": TRACE}, 2, "explain t town:1"),
    *(
        Fault(f"--pearmut-{name}", f"{JUDGED}#{model}", r"log(:1)?: " + message, {"log": wrong}, cure={"log": JUDGEMENT % "town:1"} if model == "b" else None)
        for name, model, wrong, message in (
            ("model", "c", JUDGEMENT % "town:1", "expected scores of 'c', found those of b; give FILE#NAME"),
            ("item", "b", JUDGEMENT % "city:1", "expected a sentence of the documents, found the item 'city:1'; give the document ids of the campaign"),
            ("items", "b", (JUDGEMENT % "town:1").replace("[{", "[{}, {", 1), "expected as many annotations as items in each entry"),
            *((f"score-{i}", "b", (JUDGEMENT % "town:1").replace("7", score), "expected a finite number as score") for i, score in enumerate(("NaN", "1e999", "true", '"50"'))),
            ("other", "b", '{"data": [1]}', "expected annotations that Pearmut has downloaded"),
        )
    ),
    Fault("--ablate-pair-scores", "ablate --kbest dev.kbest --docs dev.docs --ref dev.ref --weights w.ini --default-weight 1 --pair-scores p",
          r"--pair-scores pairs: a file has no scores in other contexts; leave it out", {"p": ""}, 2),
    Fault("--export-outputs-of-other-length", "export --docs dev.docs --out folder ours=hyp.txt", r"hyp\.txt: expected 4 lines", {"hyp.txt": put(2, "one more")}, cure={"hyp.txt": replaced("one more\n", "")}),
]
