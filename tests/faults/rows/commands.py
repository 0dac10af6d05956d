"""Misused commands and options, and faults of the texts and models of `lm-eval`."""

from support.faults import Changes, Fault
from support.world import DECODE

LISTS = "decode --docs dev.docs --weights w.ini"
TRAIN = "train-lm --model rnnlm --train dev.ref --valid dev.ref --out lm"
CONTRASTIVE = "lm-eval contrastive"
ITEMS: Changes = {"set.jsonl": '{"context": [], "right": "it is", "wrong": ["it was"]}\n'}
SIZES = {
    **{"embed": 0, "hidden": -1, "layers": 65, "vocab": 0, "epochs": 0, "minutes": 0},
    **{"learning-rate": 0, "dropout": 1, "seed": -1, "streams": 0, "negatives": -1},
    **{"hash-size": 0, "hash-order": 4, "topics-number": 0, "thought": 0, "averaging": -1},
    **{"locked-dropout": 1, "word-dropout": -0.1, "weight-dropout": 0.96, "context-noise": 1.1},
}

FAULTS = [
    *(
        Fault(f"---{name}", command, message, exit=2, cure=cure)
        for name, command, message, cure in (
            ("command-unknown", "decide", r"No such command 'decide'", "list decoders"),
            ("option-unknown", "decode --kbset x", r"No such option", DECODE),
            ("option-missing", "decode --kbest x", r"Missing option '--weights'", DECODE),
            ("argument-missing", "evaluate --ref r --baseline b", r"Missing argument 'HYP", None),
            ("choice-unknown", f"{DECODE} --search best", r"Invalid value for '--search'", DECODE),
            ("number-too-small", f"{DECODE} --beam 0", r"Invalid value for '--beam'", DECODE),
            ("top-zero", f"{DECODE} --top 0", r"Invalid value for '--top'", f"{DECODE} --top 1"),
            (
                "no-kind-of-lists",
                f"{LISTS} --out -",
                r"expected --kbest FILE or --systems NAME=FILE, found neither; give one of them",
                f"{LISTS} --kbest dev.kbest --out -",
            ),
            (
                "two-kinds-of-lists",
                f"{LISTS} --kbest dev.kbest --systems a=base.txt",
                r"NAME=FILE, found both; give one of them",
                f"{LISTS} --kbest dev.kbest",
            ),
            (
                "encoding-of-systems",
                f"{LISTS} --systems a=base.txt --encoding latin-1 --default-weight 1",
                r"--encoding: not for the lists of --systems",
                None,
            ),
            (
                "format-of-systems",
                f"{LISTS} --systems a=base.txt --kbest-format moses --default-weight 1",
                r"--kbest-format: not for the lists of --systems",
                None,
            ),
            *(
                (
                    f"model-given-as-{what}",
                    f"{DECODE} --lm {value}",
                    rf"expected NAME=DIR, for example codclm=models/codclm; found '{value}'",
                    DECODE,
                )
                for what, value in (("name", "codclm"), ("folder", "=lm"), ("nothing", "codclm="))
            ),
            *(
                (
                    f"{option}-without-a-file",
                    f"{DECODE} --{option} name=",
                    rf"expected \[NAME=\]FILE, for example {label}=FILE",
                    DECODE,
                )
                for option, label in (
                    ("scores", "scores"),
                    ("pair-scores", "pairs"),
                    ("ngram", "ngram"),
                )
            ),
            *(
                (
                    f"training-{option}",
                    f"{TRAIN} --{option} {value}",
                    rf"Invalid value for '--{option}'",
                    None,
                )
                for option, value in SIZES.items()
            ),
        )
    ),
    Fault(
        "---warning-before-an-error",
        DECODE,
        (r"warning: 1 x CRLF line ends", r"rerank: dev\.kbest:2:"),
        {"dev.kbest": "0 ||| it ||| LM0= 1 TM0= 1 1 WP0= 1 ||| 1\r\nnone\n"},
    ),
    # lm-eval
    *(
        Fault(f"---lm-eval-{name}", f"lm-eval {command}", message, ITEMS, exit=code)
        for name, command, message, code in (
            ("without-model", "contrastive set.jsonl", r"Missing option '--lm'", 2),
            ("without-file", "contrastive --lm m", r"Missing argument 'FILE\.\.\.'", 2),
            ("without-text", "coherence --lm m", r"Missing argument 'TEXT'", 2),
            (
                "seed-negative",
                "contrastive --lm m set.jsonl --seed -1",
                r"-1 is not in the range",
                2,
            ),
            ("missing-file", "contrastive --lm m none.jsonl", r"no file none\.jsonl", 2),
            ("standard-input-twice", "contrastive --lm m - -", r"only one input can be -", 2),
            (
                "no-model",
                "contrastive --lm m set.jsonl",
                r"m: expected a folder made by `rerank tra",
                3,
            ),
            ("no-device", "coherence --lm m dev.ref --device cuda:99", r"--device cuda:99", 2),
            (
                "file-twice",
                "contrastive --lm m set.jsonl set.jsonl",
                r"set\.jsonl: given 2 times",
                2,
            ),
            (
                "model-twice",
                "contrastive --lm m --lm m set.jsonl",
                r"--lm m: given 2 times; give it",
                2,
            ),
            (
                "name-twice",
                "coherence --lm a=m --lm a=n dev.ref",
                r"--lm a: given 2 times; give each",
                2,
            ),
            ("name-without-folder", "coherence --lm m= dev.ref", r"expected NAME=DIR or DIR", 2),
            (
                "no-permutations",
                "ordering --lm m dev.ref --permutations 0",
                r"0 is not in the range",
                2,
            ),
            ("block", "next-sentence --lm m dev.ref --block 1", r"1 is not in the range", 2),
            ("context", "next-sentence --lm m dev.ref --context 0", r"0 is not in the range", 2),
            (
                "candidates",
                "next-sentence --lm m dev.ref --candidates all",
                r"'all' is not one of",
                2,
            ),
            (
                "output-is-the-input",
                "next-sentence --lm m dev.ref --errors dev.ref",
                r"output dev\.ref is also the input dev\.ref",
                2,
            ),
        )
    ),
    Fault(
        "---lm-eval-field-missing",
        f"{CONTRASTIVE} --lm m set.jsonl",
        r"set\.jsonl:1: expected the field 'right', found none; a line",
        {"set.jsonl": '{"context": []}\n'},
    ),
    Fault(
        "---lm-eval-pairs-class-unknown",
        "lm-eval pairs --kbest dev.kbest --docs dev.docs --ref dev.ref --out out --class pronoun",
        r"--class pronoun: did you mean 'pronouns'",
        exit=2,
    ),
    Fault(
        "---lm-eval-pairs-without-items",
        "lm-eval pairs --kbest dev.kbest --docs dev.docs --ref dev.ref --out out --class own "
        "--word-list own=list",
        r"dev\.kbest: expected candidates that differ in one",
        {"list": "zebra\n"},
    ),
    # names
    Fault(
        "71-metric-misspelt",
        "evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt -m chrff",
        r"no metric 'chrff'; did you mean chrf\? there are bleu, chrf, ter",
        exit=2,
        cure="evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt -m chrf",
    ),
    *(
        Fault(
            f"---model-{name.lower()}",
            f"train-lm --model {name} --train dev.ref --valid dev.ref --out lm",
            rf"no model '{name}'; did you mean {near}\? there are rnnlm, |'{name}' is not one of",
            exit=2,
        )
        for name, near in (
            ("codclmm", "codclm"),
            ("rlm-bow-fl-4", "rlm-bow-lf-N with N from 1 to 100"),
            ("rlm-bow-lf-0", "rlm-bow-lf-N with N from 1 to 100"),
            ("rlm-bow-lf-101", "rlm-bow-lf-N with N from 1 to 100"),
        )
    ),
    Fault(
        "---utility-unknown",
        f"{DECODE} --search mbr --utility rouge",
        r"'rouge' is not one of",
        exit=2,
        cure=f"{DECODE} --search mbr --utility chrf",
    ),
]
