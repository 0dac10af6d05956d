"""Models, their options and the files beside the lists that they need."""

from __future__ import annotations

import json

from support.faults import Changes, Fault, Model, line, replaced

LISTS = "--kbest dev.kbest --docs dev.docs"
DECODE = f"decode {LISTS} --weights w.ini --default-weight 0.5 --out -"
SCORE = f"score {LISTS} --out - --lm lm=lm"
OF_CONTEXT, PLAIN = Model("codclm"), Model("rnnlm")
TURNED = Model("codclm", {"reverse_documents": True})
NEXT = Model("dclm-right-target")
BOTH, SOURCE = Model("dclm-bilingual-decoupled"), "--source dev.src"
ITEM = {"context": ["the lamp"], "right": "it burns", "wrong": ["it gives"]}
ITEMS = json.dumps(ITEM) + "\n" + json.dumps(ITEM) + "\n"


def refused(
    name: str, command: str, message: str, cure: str | None, model: Model = OF_CONTEXT
) -> Fault:
    """A usage error of a command that runs once the words of the cure are in place of it."""
    return Fault(f"66-{name}", command, message, {"lm": model}, 2, cure)


OPTIONS = [
    refused("pmi-of-none", f"{SCORE} --pmi other", "--pmi other: .* NAME of an --lm .*lm", SCORE),
    refused(
        "pmi-twice", f"{SCORE} --pmi lm --pmi lm", "--pmi lm: given twice", f"{SCORE} --pmi lm"
    ),
    refused(
        "pmi-without-context",
        f"{SCORE} --pmi lm",
        "is a model without context, whose PMI is always 0; leave the option",
        SCORE,
        PLAIN,
    ),
    refused(
        "pmi-of-a-taken-name",
        f"{SCORE} --pmi lm --lm lmpmi=lm",
        "--lm lmpmi=lm: the name is taken by another --lm",
        f"{SCORE} --pmi lm --lm other=lm",
    ),
    refused("pmi-next", f"{SCORE} --pmi lm", "--pmi lm: lm is a model that is given", SCORE, NEXT),
    Fault(
        "66-pmi-of-a-label",
        f"{SCORE} --pmi lm",
        "--pmi lm: dev.kbest already has a feature 'lmnull'; choose another NAME",
        {"lm": OF_CONTEXT, "dev.kbest": replaced("WP0=", "lmnull=")},
        2,
        f"{SCORE} --lm other=lm --pmi other".replace("--lm lm=lm ", ""),
    ),
    refused(
        "document-cache-of-none",
        f"{SCORE} --document-cache other=0.1",
        "--document-cache other: expected the NAME of an --lm",
        f"{SCORE} --document-cache lm=0.1",
    ),
    refused(
        "document-cache-twice",
        f"{SCORE} --document-cache lm --document-cache lm=0.2",
        "--document-cache lm: given twice",
        f"{SCORE} --document-cache lm",
    ),
    *(
        refused(
            f"document-cache-{name}",
            f"{SCORE} --document-cache lm={share}",
            message,
            f"{SCORE} --document-cache lm=0.5",
        )
        for name, share, message in (
            ("of-nothing", "0", "0.0 is not in the range 0<x<1"),
            ("alone", "1", "1.0 is not in the range 0<x<1"),
            ("of-a-word", "x", "expected a finite decimal number, found 'x'"),
        )
    ),
    *(
        Fault(
            f"66-document-cache-scorer-{name}",
            f"score {LISTS} --out - --scorer used=document-cache:{share}",
            f"expected a weight of the document cache above 0 and below 1, found '{share}'",
            {},
            2,
            f"score {LISTS} --out - --scorer used=document-cache:0.5",
        )
        for name, share in (("large", "1"), ("nan", "nan"), ("underscore", "0_5"))
    ),
    *(
        Fault(f"66-name-{n}", f"score {LISTS} --out - --lm {name}=lm", message, {"lm": PLAIN}, 2)
        for n, name, message in (
            ("begins-with-a-digit", "2lm", "letters and digits that begins with a letter"),
            ("underscore", "l_m", "letters and digits that begins with a letter"),
            ("accent", "lé", "letters and digits that begins with a letter"),
            ("of-the-total", "total", "'total' is the list's total"),
        )
    ),
    *(
        Fault(
            f"66-name-taken-{n}",
            f"score {LISTS} --out - {options}",
            f"{taken}: the name is taken by another --{other}",
            {"lm": PLAIN, "m": "0\n" * 9},
            2,
            f"score {LISTS} --out - --lm a=lm --lm b=lm --scores c=m",
        )
        for n, options, taken, other in (
            ("twice", "--lm lm=lm --lm lm=lm", "--lm lm=lm", "lm"),
            ("unknown-words", "--lm lm=lm --lm lmoov=lm", "--lm lmoov=lm", "lm"),
            ("of-scores", "--lm qe=lm --scores qeoov=m", "--scores qeoov=m", "lm"),
        )
    ),
    refused(
        "mean-of-memories",
        f"{DECODE} --lm lm=lm --search survivors --merge mean --alpha 1",
        "states of this problem have no mean; merge by max or sample",
        f"{DECODE} --lm lm=lm --search survivors --merge max --alpha 1",
        Model("adclm"),
    ),
    *(
        refused(
            f"next-sentence-for-{search}",
            f"{DECODE} --lm lm=lm --search {search} --alpha 1".replace(
                " --alpha 1" if search in ("beam", "viterbi") else "?", ""
            ),
            rf"--search {search}: {search} does not serve .* decoders that fit: sweeps, which",
            f"{DECODE} --lm lm=lm --search sweeps",
            NEXT,
        )
        for search in ("beam", "viterbi", "smc")
    ),
    refused(
        "both-directions-for-beam",
        f"{DECODE} --lm a=lm --lm b=lm2 --search beam",
        "beam does not serve scores that depend on later sentences.* decoders that fit: sweeps",
        None,
        Model("ccdclm"),
    ),
]
OPTIONS[-1] = Fault(
    "66-both-directions-for-beam",
    OPTIONS[-1].command,
    OPTIONS[-1].message,
    {"lm": Model("ccdclm"), "lm2": Model("ccdclm", {"reverse_documents": True})},
    2,
    f"{DECODE} --lm a=lm --lm b=lm2",
)


# Models that a command cannot use


def useless(name: str, command: str, message: str, model: Model, cure: Changes | None) -> Fault:
    files: Changes = {"lm": model, "text": "it is\nthe ___\n", "items": ITEMS}
    return Fault(f"62-{name}", command, message, files, 2, cure)


CLOZE, CONTRASTIVE = "cloze --lm lm text", "lm-eval contrastive --lm lm items"
FORWARD: Changes = {"lm": OF_CONTEXT}
COMMANDS = [
    *(
        useless(f"reversed-for-{command.split()[0]}", command, message, TURNED, FORWARD)
        for message in (
            "reads documents from the last sentence to the first.* --reverse-documents",
        )
        for command in (CLOZE, CONTRASTIVE)
    ),
    *(
        useless(f"next-for-{name}", command, message, NEXT, FORWARD)
        for name, command, message in (
            ("sample", "sample --lm lm", "the model is given the next sentence, which rerank sam"),
            ("cloze", CLOZE, "the model is given the next sentence, which rerank cloze"),
            ("contrastive", CONTRASTIVE, "given the next sentence, which rerank lm-eval contras"),
        )
    ),
    useless(
        "bags-for-sample", "sample --lm lm", "bags of words, without order", Model("rnnslm"), {}
    ),
    useless(
        "source-for-sample", "sample --lm lm", "which rerank sample does not read", BOTH, FORWARD
    ),
    useless(
        "backward-twice",
        "perplexity --lm lm text --duplicate-last-word",
        "lm reads sentences from right to left; leave it out",
        Model("rnnlm", {"backward": True}),
        FORWARD,
    ),
    Fault(
        "62-of-hugging-face",
        SCORE,
        "lm: expected a folder made by .*, found a Hugging Face model; .* --lm NAME=hf:DIR$",
        {"lm/config.json": '{"model_type": "gpt2"}'},
        3,
        {"lm": PLAIN},
    ),
    Fault(
        "62-missing", SCORE, "lm: expected a folder made by .*, found none; ", {}, 3, {"lm": PLAIN}
    ),
    Fault("62-no-model", SCORE, r"config\.json.*rerank train-lm", {"lm/x": ""}, 3, {"lm": PLAIN}),
    Fault(
        "62-hf-for-perplexity",
        "perplexity hyp.txt --lm hf:gpt",
        "--lm hf:gpt: this command takes models made by train-lm",
        {"lm": PLAIN},
        2,
        "perplexity hyp.txt --lm lm",
    ),
    *(
        Fault(f"62-hf-{name}", f"score {LISTS} --out - --lm gpt=hf:{value}", message, {}, code)
        for name, value, message, code in (
            (
                "missing",
                "none",
                "none: expected a folder written by save_pretrained, found none",
                3,
            ),
            ("no-folder", ",sentences=2", "expected hf:DIR", 2),
            ("sentences", "gpt,sentences=x", "found sentences=x", 2),
            ("negative", "gpt,sentences=-1", "found sentences=-1", 2),
            ("tokens", "gpt,tokens=99999999", "found tokens=99999999", 2),
            ("join", "gpt,join=comma", "found join=comma", 2),
            ("unknown", "gpt,sentence=2", "found sentence=2", 2),
            ("language", "gpt,detokenize=english", "found detokenize=english", 2),
            ("twice", "gpt,tokens=1,tokens=1", "tokens is given twice", 2),
        )
    ),
    *(
        Fault(
            f"62-nan-for-{name}",
            command,
            message,
            {"lm": Model("rnnlm", {"nan": "head.bias"})},
            1,
            {"lm": PLAIN},
        )
        for name, command, message in (
            ("score", SCORE, "scorer 'lm', document 'evening'.*NaN"),
            ("perplexity", "perplexity hyp.txt --lm lm", "lm: a language model returned NaN"),
            ("sample", "sample --lm lm", "lm: a language model returned NaN"),
        )
    ),
    Fault(
        "62-nan-along-a-path",
        f"{DECODE} --lm lm=lm",
        "scorer 'lm', document 'evening': sentence 0, candidate .*NaN",
        {"lm": Model("ccdclm", {"nan": "head.bias"})},
        1,
        {"lm": PLAIN},
    ),
    Fault(
        "62-nan-reversed",
        SCORE,
        "document 'evening', its sentences counted from the last: sentence 0, ",
        {"lm": Model("codclm", {"nan": "head.bias", "reverse_documents": True})},
        1,
        {"lm": PLAIN},
    ),
    Fault(
        "61-words-unknown-to-the-model",
        SCORE,
        (
            r"\d+ x word unknown to lm \(\d\d\.\d% of the list's words, 0\.0% of its training "
            "text's; most frequent: .*check case",
            "first at dev.kbest",
        ),
        {"lm": Model("rnnlm", {"oov_rate": 0.0})},
        0,
    ),
]


# Files beside lists and texts

BESIDE = f"{SCORE} {SOURCE}"
GIVEN: Changes = {"lm": BOTH}
FILES = [
    Fault(
        "95-source-missing",
        SCORE,
        r"--source: --lm lm needs the source .*give --source FILE",
        GIVEN,
        2,
        BESIDE,
    ),
    Fault(
        "95-source-of-no-use",
        BESIDE,
        "--source: no model here needs the source sentences; leave",
        {"lm": PLAIN},
        2,
        SCORE,
    ),
    *(
        Fault(
            f"95-source-of-{n}-lines",
            BESIDE,
            f"dev.src: expected 4 lines.*found {n}",
            {**GIVEN, "dev.src": "la lampe\n" * n},
            3,
            {"dev.src": "la lampe\n" * 4},
        )
        for n in (3, 6)
    ),
    Fault(
        "95-topic-of-two-words",
        f"{SCORE} --topics topics",
        "topics:2: expected one label, found 2 words",
        {"lm": Model("clstm-given-topic"), "topics": "1\n2 3\n1\n1\n"},
        3,
        {"topics": line(2, "2 3", "2")},
    ),
    Fault(
        "95-topic-beside-interleaved-documents",
        f"{SCORE} --topics topics --allow-interleaved",
        "^rerank: topics:3: expected one label, found 2 words",
        {
            "lm": Model("clstm-given-topic"),
            "topics": "1\n2\n1 1\n1\n",
            "dev.docs": "evening\ntown\nevening\ntown\n",
        },
        3,
        {"topics": line(3, "1 1", "1")},
    ),
    *(
        Fault(
            f"95-parent-{name}",
            f"{SCORE} {SOURCE} --parents parents",
            "parents:1: expected the number of another sentence of the document, from 1",
            {"lm": Model("dclm-rst"), "parents": f"{number}\n0\n0\n0\n"},
            3,
            {"parents": "2\n0\n0\n0\n"},
        )
        for name, number in (
            ("too-large", "3"),
            ("itself", "1"),
            ("negative", "-1"),
            ("word", "x"),
            ("two", "1 2"),
            ("blank", ""),
        )
    ),
    Fault(
        "95-parent-beside-a-text",
        "perplexity text --lm lm --source source --parents parents",
        "parents:4: expected the number of another sentence of the document.*this is sentence 1$",
        {
            "lm": Model("dclm-rst"),
            "text": "it\nit\n\nit\nit\n",
            "source": "a\na\n\na\na\n",
            "parents": "2\n0\n\n3\n1\n",
        },
        3,
        {"parents": line(4, "3", "2")},
    ),
    Fault(
        "95-source-of-a-text-missing",
        "perplexity text --lm lm",
        "--source: lm needs the source sentences; give --source FILE",
        {**GIVEN, "text": "it\n", "source": "a\n"},
        2,
        "perplexity text --lm lm --source source",
    ),
]


# Texts

TEXTS = [
    Fault(
        "61-perplexity-of-no-words",
        "perplexity text --lm lm",
        "text:1: .*found no words",
        {"lm": PLAIN, "text": "\n"},
        3,
        {"text": "it\n"},
    ),
    Fault(
        "61-perplexity-of-no-words-among-equals",
        "perplexity text --lm lm --documents equals",
        "found no words",
        {"lm": PLAIN, "text": "=\n\n=\n"},
        3,
        {"text": "it\n=\n"},
    ),
    Fault(
        "61-perplexity-of-no-model",
        "perplexity hyp.txt",
        "expected --lm DIR or --ngram FILE, found neither; give one of them",
        {"lm": PLAIN},
        2,
        "perplexity hyp.txt --lm lm",
    ),
    *(
        Fault(
            f"61-ngram-with{option.split()[0][1:]}",
            f"perplexity text --ngram m {option}",
            f"{option.split()[0]}: not for the n-gram model",
            {"text": "it\n"},
            2,
        )
        for option in (
            "--lm d",
            "--document-cache 0.1",
            "--across-documents",
            "--source s",
            "--duplicate-last-word",
            "--threads 1",
            "--device cpu",
        )
    ),
    Fault("61-two-standard-inputs", "perplexity --ngram - -", "only one input can be -", {}, 2),
    *(
        Fault(
            f"61-cloze-{name}",
            CLOZE,
            message,
            {"lm": PLAIN, "text": text},
            3,
            {"text": "it is\nthe ___\n"},
        )
        for name, text, message in (
            (
                "without-a-gap",
                "the ___\n\nit\nthe lamp\n",
                "text:4: expected 1 ___ in the last sentence .* found 0; end each",
            ),
            (
                "of-two-gaps",
                "___ is ___\n",
                "text:1: expected 1 ___ in the last sentence of a document, found 2",
            ),
            (
                "of-a-gap-before-the-last",
                "it ___\nthe ___\n",
                "text:1: expected 0 ___ in a sentence before the last, found 1",
            ),
            ("of-no-words", " \n\n", "text:1: expected sentences, found no words"),
        )
    ),
    *(
        Fault(
            f"97-sample-{name}",
            f"sample --lm lm {option}",
            option.split()[0],
            {"lm": PLAIN},
            2,
            "sample --lm lm",
        )
        for name, option in (
            ("of-no-documents", "--documents 0"),
            ("of-no-sentences", "--sentences 0"),
            ("of-no-words", "--longest 0"),
            ("at-no-temperature", "--temperature 0"),
            ("at-nan", "--temperature nan"),
        )
    ),
    *(
        Fault(
            f"61-sample-{name}",
            "sample --lm lm --start start",
            message,
            {"lm": PLAIN, "start": text},
            3,
            {"start": "the lamp\n"},
        )
        for name, text, message in (
            (
                "after-two-documents",
                "the lamp\n\nit is\n",
                "start: expected one document to continue, found 2",
            ),
            ("after-no-words", "\n", "start:1: .*found no words"),
        )
    ),
]
FAULTS = [*OPTIONS, *COMMANDS, *FILES, *TEXTS]
