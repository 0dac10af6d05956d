"""Faults of options, standard input, compressed files and outputs."""

from support.faults import RESTORED, Fault, both, packed
from support.world import DECODE, EVALUATE

PAIR = b"evening\t0\t-\t0\t1.5"
TEXT = b"the lamp burns\nit gives light\nthe place is closed\nno one comes\n"
OUT = DECODE + " --out out.txt"
FAULTS = [
    Fault("00-missing-file", "first --kbest dev.kbset", r"no file dev\.kbset; did you mean dev\.kbest\?", {}, 2, "first --kbest dev.kbest"),
    Fault("00-missing-references", EVALUATE.replace("dev.ref", "r"), r"no file r; did you mean r\.0 and r1, an option for each\?", {"r.0": TEXT, "r1": TEXT}, 2,
        EVALUATE.replace("dev.ref", "r.0 --ref r1")),
    Fault("00-several-after-one-option", "first --kbest dev.kbest --docs dev.docs hyp.txt",
        "unexpected extra argument .*; an option has one value: repeat it, as --ref A", {}, 2, "first --kbest dev.kbest --docs dev.docs"),
    Fault("00-reference-as-a-system", "evaluate --docs dev.docs --ref r.0 r.1 hyp.txt",
        "translation named as a further reference: r.1; if it is one, give it as --ref FILE", {"r.0": TEXT, "r.1": TEXT}, 0,
        "evaluate --docs dev.docs --ref r.0 --ref r.1 hyp.txt"),
    Fault("00-standard-input-twice", "evaluate --docs dev.docs --ref - --baseline - hyp.txt", r"only one input can be - \(standard input\)", {}, 2, EVALUATE),
    Fault("00-documents-apart-of-no-file", "first --kbest dev.kbest --allow-interleaved", "--docs-field, --docs-format, --allow-interleaved: give --docs", {},
        2, "first --kbest dev.kbest --allow-interleaved --docs dev.docs"),
    Fault("--lists-of-one-name", "score --no-docs each --kbest dev.kbest --kbest dev.kbest", "two are named 'dev'; give one of them as NAME=FILE", {}, 2,
        "score --no-docs each --kbest dev.kbest --kbest b=dev.kbest"),
    Fault("00-dumped-name-that-is-not-utf-8", "first --kbest caf\udce9 --dump-config", r"--kbest: expected UTF-8, .* found caf\\xe9; rename the file",
        {"caf\udce9": "0 ||| a\n", "cafe": "0 ||| a\n"}, 2, "first --kbest cafe --dump-config"),
    Fault("00-unknown-option", DECODE + " --wieghts w.ini", ("(?i)no such option.*--wieghts", "--weights"), {}, 2, DECODE),
    Fault("91-gzip-cut-short", DECODE, r"dev\.kbest:\d+: expected the end of the gzip data, found the end of the file: it is truncated; copy the file again",
          {"dev.kbest": both(packed, lambda old: old[:-20])}, cure={"dev.kbest": RESTORED}),
    *(Fault(f"92-gzip-bomb-for-{name}", DECODE + options, f"{file.replace('.', '[.]')}{message}, found", {file: packed(content)}, cure={file: RESTORED})
        for name, options, file, message, content in (("pair-scores", " --default-weight 1 --pair-scores qe=dev.pairs", "dev.pairs",
        ":2: expected at most 1052 bytes in a line", (PAIR + b"\n") + (PAIR + b" " * (1 << 22) + b"\n")), ("scores", " --default-weight 1 --scores qe=dev.qe",
        "dev.qe", ":10: expected 9 lines as dev.kbest has", b"0.5\n" * (1 << 20)), ("weights", "", "w.ini",
        ": expected a file of at most 16,777,216 bytes, unpacked", b"LM0= 0.5\n" * (1 << 21)))),
    # Outputs
    Fault("81-disk-full-for-the-summary", OUT + " --kbest-out scored.kbest --summary /dev/full", "no space left writing /dev/full", {}, 1),
    *(Fault(f"82-{name}", DECODE + options, message, {}, 2, OUT + " --kbest-out scored")
        for name, options, message in (("folder-missing", " --out 'my no/out.txt'", r"output my no/out\.txt: no folder my no; make it with: mkdir -p 'my no'"),
        ("output-below-a-file", " --out w.ini/a/out.txt", r"output w\.ini/a/out\.txt: w\.ini is not a folder; name another"), ("output-is-a-folder", " --out .",
        r"output \. is a folder; name a file in it"), ("outputs-are-one-file", " --out out.txt --kbest-out ./out.txt",
        r"outputs out\.txt and \./out\.txt are the same file; name two"), ("summary-in-no-folder", " --summary no/summary.json",
        r"output no/summary\.json: no folder no; make it with: mkdir -p no"))),
    Fault("83-output-name-too-long", DECODE + " --out " + "a" * 300,
        "'--out': a+… is too long for the file system: 300 bytes, 300 in one name; choose a shorter path", {}, 2, OUT),
    # Options from a TOML file
    *(Fault(f"--config-{name}", EVALUATE + " --config c.toml", r"c\.toml: " + message, {"c.toml": wrong}, cure={"c.toml": sound})
        for name, wrong, message, sound in (("unknown-option", "sed = 2", "no option 'sed'; did you mean 'seed'", "seed = 2"), ("fraction-for-whole-number",
        "seed = 2.7", r"seed: expected a whole number, found '2\.7'", "seed = 2"), ("truth-for-number", "seed = true",
        "seed: expected a whole number, found 'true'", "seed = 1"), ("number-out-of-range", "width = 17", "width: 17 is not in the range 0<=x<=16",
        "width = 16"), ("number-for-flag", "per-document = 1", "per-document: expected true or false, found 1", "per-document = true"), ("text-for-list",
        "metric = 'chrf'", r"metric: expected a list, as \['chrf'\], found 'chrf'", "metric = ['chrf']"), ("table-for-value", "[seed]\nx = 1",
        r"seed: expected a text or a number, found \{'x': 1\}", "seed = 1"), ("number-of-many-digits", f"seed = {'9' * 5000}",
        "expected a TOML file of options, found a number of thousands of digits, or", "seed = 2"), ("number-of-many-hexadecimal-digits",
        f"seed = 0x{'f' * 9000}", "seed: expected a value, found a number of thousands of digits, or", "seed = 2"), ("nesting",
        f"seed = {'[' * 5000}{']' * 5000}", "expected a TOML file of options, found .* tables in each other; take it out", "seed = 2"), ("tables-in-tables",
        f"seed.{'a.' * 5000}a = 2", "seed: expected a value, found .* tables in each other; take it out", "seed = 2"), ("no-toml", "seed = = 2",
        "expected a TOML file of options: Invalid value", "seed = 2"))),
    *(Fault(f"--environment-{name}", EVALUATE, message, {}, 2, environment={f"RERANK_EVALUATE_{variable}": value})
        for name, variable, value, message in (("unknown", "SEDE", "2",
        "RERANK_EVALUATE_SEDE in the environment: no such option; did you mean RERANK_EVALUATE_SEED"), ("of-the-shell-alone", "CONFIG", "c.toml",
        "RERANK_EVALUATE_CONFIG in the environment: no such option; see rerank evaluate --help"), ("number", "SEED", "two",
        r"'--seed' \(RERANK_EVALUATE_SEED in the environment\): expected a whole number, found 'two'"), ("flag", "SCORE_ONLY", "perhaps",
        r"--score-only.*RERANK_EVALUATE_SCORE_ONLY in the environment\): 'perhaps' is not a valid boolean"), ("quote", "METRIC", "ter 'chrf",
        r"RERANK_EVALUATE_METRIC in the environment\): no closing quotation"))),
    Fault("--config-missing", EVALUATE + " --config no.toml", r"no file no\.toml", {}, 2, ({"no.toml": ""}, EVALUATE + " --config no.toml")),
]  # fmt: skip
