"""Misused commands and options, and faults of the texts of `lm-eval`."""

from typing import Any

from support.faults import Changes, Fault, Model
from support.world import DECODE

LISTS = "decode --docs dev.docs --weights w.ini"
TRAIN = "train-lm --train dev.ref --valid dev.ref --out lm --model"
PAIRS = "lm-eval pairs --kbest dev.kbest --docs dev.docs --ref dev.ref --out out"
ITEMS: Changes = {"set.jsonl": '{"context": [], "right": "it is", "wrong": ["it was"]}\n'}
MODEL = "expected NAME=DIR, for example codclm=models/codclm; found"
FAMILY = "rlm-bow-lf-N with N from 1 to 100"
MISUSED = (
    ("command-unknown", "decide", "No such command 'decide'; did you mean decode", "list decoders"),
    ("command-of-a-family", "tune", "No such command 'tune'; did you mean .*tune-mert", "list decoders"),
    ("command-of-no-other", "x", "No such command 'x'; there are candidates, check, first,", "list decoders"),
    ("option-missing", "tune-mert --kbest x --ref y", "Missing option '--out'", None),
    ("weights-missing", DECODE.replace(" --weights w.ini", ""), "Missing option '--weights': dev.kbest has scores, .*or, to choose without the scores, --agreement ", f"{DECODE.replace(' --weights w.ini', '')} --agreement"),
    ("weights-missing-2", DECODE.replace(" --weights w.ini", ""), "!chosen by agreement", f"{DECODE.replace(' --weights w.ini', '')} --search mbr"),
    ("weights-missing-scores", DECODE.replace("--weights w.ini", "--search mbr --scores q=dev.qe"), "--scores: it is of no use without w", f"{DECODE} --default-weight 0 --scores q=dev.qe"),
    ("utility-twice", f"{DECODE} --search mbr:utility=chrf --utility bleu", "--utility bleu: --search names the utility chrf", f"{DECODE} --search mbr --utility chrf"),
    ("argument-missing", "evaluate --ref r --baseline b", "Missing argument 'HYP", None),
    ("utility-unknown", f"{DECODE} --search mbr:utility=rouge", "no utility 'rouge'; there are bleu", DECODE),
    ("no-lists", LISTS, "--kbest FILE or --systems NAME=FILE, found neither; give one", DECODE),
    ("model-without-folder", f"{DECODE} --lm codclm", f"{MODEL} 'codclm'", DECODE),
    ("model-without-name", f"{DECODE} --lm =lm", f"{MODEL} '=lm'", DECODE),
    ("scores-without-file", f"{DECODE} --scores n=", r"\[NAME=\]FILE, for example scores=F", DECODE),
    ("pairs-without-file", f"{DECODE} --pair-scores n=", "for example pairs=FILE", DECODE),
    ("ngram-without-file", f"{DECODE} --ngram n=", "for example ngram=FILE", DECODE),
    ("model-misspelt", f"{TRAIN} codclmm", r"no model 'codclmm'; did you mean codclm\? there", None),
    ("family-misspelt", f"{TRAIN} rlm-bow-fl-4", f"did you mean {FAMILY}", None),
    ("pairs-class-unknown", f"{PAIRS} --class pronoun", "'pronoun' is not one of 'pronouns', 'auxili", None),
)
LM_EVAL = (
    ("without-model", "contrastive set.jsonl", "Missing option '--lm'", 2),
    ("without-file", "contrastive --lm m", r"Missing argument 'FILE\.\.\.'", 2),
    ("without-text", "coherence --lm m", "Missing argument 'TEXT'", 2),
    ("missing-file", "contrastive --lm m none.jsonl", r"no file none\.jsonl", 2),
    ("standard-input-twice", "contrastive --lm m - -", "only one input can be -", 2),
    ("no-model", "contrastive --lm m set.jsonl", "m: expected a folder made by `rerank tr", 3),
    ("file-twice", "contrastive --lm m set.jsonl set.jsonl", r"set\.jsonl: given 2 times", 2),
    ("model-twice", "contrastive --lm m --lm m set.jsonl", "--lm m: given 2 times; give it", 2),
    ("name-twice", "coherence --lm a=m --lm a=n dev.ref", "--lm a: given 2 times; give each", 2),
    ("name-without-folder", "coherence --lm m= dev.ref", "expected NAME=DIR or DIR", 2),
    ("candidates", "next-sentence --lm m dev.ref --candidates all", "'all' is not one of", 2),
    ("output-is-input", "next-sentence --lm m t --errors t", "output t is also the input t", 2),
    ("field-missing", "contrastive --lm m wrong", "wrong:1: expected the field 'right', found", 3),
)
# texts, by the numbers of sentences of their documents, that are too short for blocks of passages
NEXT = "lm-eval next-sentence --lm m t --errors wrong --context 3"
SHORT = (
    ("separate", (8, 9, 3), "--block 3", "give --block 2 or less, or --candidates consecutive", "--block 2"),
    ("two-passages", (4, 5), "--block 3", r"found 2; give --block 2 or less\n", "--block 2"),
    ("one-passage", (9,), "--block 2", "found 1; choose another text", None),
    ("consecutive", (8, 4), "--block 5 --candidates consecutive", r"found 3; give --block 3 or less\n", "--block 3 --candidates consecutive"),
    ("topics-missing", (8, 8), "--block 2 --candidates same-topic", "--candidates same-topic needs the topic", "--block 2 --candidates same-topic --topics l"),
    ("topics-unused", (8, 8), "--block 2 --topics l", "--topics: no model here needs", "--block 2"),
    ("topics-rare", (8, 8), "--block 30 --candidates same-topic --topics l", "expected 30 passages of one topic", "--block 2 --candidates same-topic --topics l"),
)
# models that an experiment cannot use
UNFIT: tuple[tuple[str, str, str, dict[str, Any], str, int], ...] = (
    ("no-device", "coherence --lm m t --device cuda:99", "rnnlm", {}, "--device cuda:99", 2),
    ("coherence-source", "coherence --lm m t", "dclm-bilingual", {}, "needs the source sentences", 2),
    ("coherence-next", "coherence --lm m t", "dclm-right-target", {}, "is given the next sentence", 2),
    ("coherence-topic", "coherence --lm m t", "clstm-given-topic", {}, "needs the topic", 2),
    ("coherence-nan", "coherence --lm m t", "rnnlm", {"nan": "head.bias"}, "m: a language model returned NaN", 1),
    ("coherence-alike", "coherence --lm m one", "rnnlm", {}, "one: expected a document of two different sentences", 3),
    ("next-source", "next-sentence --block 2 --lm m t", "dclm-bilingual", {}, "needs the source sentences", 2),
    ("next-next", "next-sentence --block 2 --lm m t", "dclm-right-target", {}, "is given the next sentence", 2),
    ("next-reversed", "next-sentence --block 2 --lm m t", "codclm", {"reverse_documents": True}, "--reverse-documents", 2),
    ("next-nan", "next-sentence --block 2 --lm m t", "rnnlm", {"nan": "head.bias"}, "m: a language model returned NaN", 1),
)
TWICE: Changes = {"t": "it is\nshe is\nit burns\nno one\n\nthe lamp\nit is\nit\nlit\n", "one": "it is\n\nit\nit\n"}


def of_sizes(line: str, sizes: tuple[int, ...]) -> str:
    return "\n".join(f"{line}\n" * n for n in sizes)


FAULTS = [
    *(Fault(f"--{name}", given, told, {}, 2, cure) for name, given, told, cure in MISUSED),
    *(Fault(f"--lm-eval-{name}", f"lm-eval {given}", told, {**ITEMS, "wrong": '{"context": []}\n', "t": "it\n"}, exit) for name, given, told, exit in LM_EVAL),
    *(Fault(f"--lm-eval-text-{name}", f"{NEXT} {given}", told, {"m": Model("rnnlm"), "t": of_sizes("it is lit", sizes), "l": of_sizes("a", sizes)}, 2 if name in ("topics-missing", "topics-unused") else 3, cure and f"{NEXT} {cure}")
      for name, sizes, given, told, cure in SHORT),
    *(Fault(f"--lm-eval-model-{name}", f"lm-eval {given}", told, {**TWICE, "m": Model(model, shape)}, exit) for name, given, model, shape, told, exit in UNFIT),
    Fault("--demo-folder-in-use", "demo --out .", "expected a new or empty folder", exit=2),
    Fault("--pairs-without-items", f"{PAIRS} --class auxiliaries", r"dev\.kbest: expected candidates that differ in one"),
    Fault("--warning-before-an-error", DECODE, (r"warning: 1 x CRLF line ends", r"rerank: dev\.kbest:2:"), {"dev.kbest": "0 ||| it ||| LM0= 1 TM0= 1 1 WP0= 1 ||| 1\r\nnone\n"}),
]
