"""Training of models: options for which a model has no use, texts, folders, topics, relations."""

from __future__ import annotations

import json

from support.faults import Changes, Fault, Model, line, replaced

TEXT = "the lamp is lit\nit burns\n\nno one\nshe is\n\n" * 3
TEXTS: Changes = {"t": TEXT, "v": TEXT}
TRAIN = "train-lm --train t --valid v --out lm --epochs 1 --streams 2 --device cpu"
SIZES = "--embed 4 --hidden 4"
LEAVE = "leave the option out"

# A model, an option that it has no use for, and what is said; without the option it is trained.
USELESS = [
    ("attention", "codclm", "--attention 7", "'codclm' has no attention, found a size 7"),
    (
        "fusion-of-a-state",
        "codclm",
        "--fusion initial",
        "the fusion 'initial' needs a context that",
    ),
    ("fusion-of-nothing", "rnnlm", "--fusion merge", "--model rnnlm: 'rnnlm' has no context"),
    (
        "late-fusion",
        "rlm-bow-lf-2",
        "--recurrence gru",
        "late fusion expects a recurrence with a memory cell and an output gate.*GRU; choose lstm",
    ),
    ("head", "codclm", "--head sparse", "'sparse' is not one of 'softmax', 'classes'"),
    (
        "nce-without-noise",
        "codclm",
        "--objective nce --negatives 0",
        "--objective nce: expected noise words, found --negatives 0; give a number",
    ),
    (
        "nce-of-all-words",
        "codclm --head classes",
        "--objective nce",
        f"--objective nce: the head of this model is trained on all words; {LEAVE}",
    ),
    (
        "negatives",
        "codclm --head classes",
        "--negatives 7",
        f"--negatives 7: the head of this model is trained on all words; {LEAVE}",
    ),
    (
        "context-noise",
        "rnnlm",
        "--context-noise 0.3",
        f"0.3: rnnlm reads no target context; {LEAVE}",
    ),
    (
        "reverse-documents",
        "rnnlm",
        "--reverse-documents",
        "--reverse-documents: rnnlm reads no cont",
    ),
    ("levels", "ccdclm", "--levels two-step", f"this model has no sentence level; {LEAVE}"),
    (
        "auxiliary-weight",
        "dclm",
        "--auxiliary-weight 2",
        f"--auxiliary-weight 2: dclm is trained by the loss of the words alone; {LEAVE}",
    ),
    (
        "auxiliary-weight-of-two-steps",
        "hrnnlm --levels two-step",
        "--auxiliary-weight 2",
        f"with --levels two-step the losses are not added; {LEAVE}",
    ),
    (
        "relation-classifier",
        "dclm",
        "--relation-classifier mlp",
        "'dclm' has no classifier of discourse relations, found 'mlp'; leave",
    ),
    (
        "hash-size",
        "codclm",
        "--hash-size 99",
        "has no hashed features, found a size 99 of their table",
    ),
    (
        "passages-across",
        "codclm --passages 2",
        "--across-documents",
        "--passages 2: the last sentence",
    ),
    ("topics", "rnnlm", "--topics-number 5", "'rnnlm' has no topics, found a number 5 of them"),
    ("topic-model", "codclm", "--topic-model lda", "'codclm' has no topics, found a model lda"),
]
OF_LIN = [  # equations that leave no room for an option
    ("embed", "rnnslm", "--embed 5", "'rnnslm' has no embeddings beside its hidden layers"),
    (
        "recurrence",
        "rnnslm",
        "--recurrence lstm",
        "a recurrence of its own, found 'lstm'; leave that",
    ),
    ("tied", "hrnnlm-lin", "--tied", "'hrnnlm-lin' has untied embeddings, found tied ones; leave"),
    (
        "head-of-bags",
        "rnnslm",
        "--head softmax",
        "a head of its own, found 'softmax'; leave that out",
    ),
    (
        "fusion-of-bags",
        "rnnslm",
        "--fusion input",
        "a fusion of its own, found 'input'; leave that",
    ),
    ("hash-order", "rnnslm", "--hash-order 3", "has no hashed n-grams of words, found a length 3"),
    (
        "hash-of-few",
        "rnnlm-lin",
        "--hash-size 4",
        "expected a hash size of at least .*, a slot for",
    ),
    ("dropout", "rnnslm", "--dropout 0.2", "--dropout 0.2: rnnslm has no states of words"),
    (
        "backward",
        "rnnslm",
        "--backward",
        "--backward: rnnslm predicts bags of words, which have no",
    ),
    ("recipe", "rnnlm-lin", "--recipe code", "has no recipe 'code', but strong, paper; choose"),
]
SIDE = "--source s --valid-source s"
SOURCES = "eins zwei\ndrei\n\nvier\nzwei\n\n" * 3
BILINGUAL = f"{TRAIN} --model dclm-bilingual {SIZES} --encoder cnn"
WITH_SIDE: Changes = {**TEXTS, "s": SOURCES}
FILES = [
    Fault(
        "95-training-source-missing",
        BILINGUAL,
        "--source: dclm-bilingual needs the source sentences; give --source FILE",
        WITH_SIDE,
        2,
        f"{BILINGUAL} {SIDE}",
    ),
    Fault(
        "95-valid-source-missing",
        f"{BILINGUAL} --source s",
        "--valid-source: dclm-bilingual needs",
        WITH_SIDE,
        2,
        f"{BILINGUAL} {SIDE}",
    ),
    Fault(
        "95-training-source-of-no-use",
        f"{TRAIN} --model rnnlm {SIZES} {SIDE}",
        "--source: no model here needs the source sentences; leave it out",
        WITH_SIDE,
        2,
        f"{TRAIN} --model rnnlm {SIZES}",
    ),
    Fault(
        "95-training-source-of-other-documents",
        f"{BILINGUAL} {SIDE}",
        "s: expected 12 sentences in 6 documents as in t, found 11 .*document 1 has 1 ",
        {**WITH_SIDE, "s": SOURCES.replace("drei\n", "", 1)},
        3,
        {"s": SOURCES},
    ),
    Fault(
        "95-valid-relations-of-no-use",
        f"{TRAIN} --model dclm-auxiliary {SIZES} --relations r --valid-relations r",
        "--valid-relations: no model here needs",
        {**TEXTS, "r": "a\nb\n\n" * 6},
        2,
        f"{TRAIN} --model dclm-auxiliary {SIZES} --relations r",
    ),
    Fault(
        "95-relation-of-two-words",
        f"{TRAIN} --model dclm-projection {SIZES} --relations r --valid-relations r",
        "r: expected one label for each sentence, found 2 words",
        {**TEXTS, "r": "a\nb b\n\n" + "a\nb\n\n" * 5},
        3,
        {"r": line(2, "b b", "b")},
    ),
    Fault(
        "95-levels-of-relations",
        f"{TRAIN} --model dclm-auxiliary {SIZES} --relations r --levels two-step",
        "two-step: dclm-auxiliary predicts words and relations from one sentence level; choose",
        {**TEXTS, "r": "a\nb\n\n" * 6},
        2,
        f"{TRAIN} --model dclm-auxiliary {SIZES} --relations r --levels together",
    ),
    Fault(
        "95-parents-from-the-last-sentence",
        f"{TRAIN} --model dclm-rst {SIZES} {SIDE} --parents p --valid-parents p "
        "--reverse-documents",
        "dclm-rst needs --parents, whose numbers count sentences from the first one",
        {**WITH_SIDE, "p": "0\n1\n\n" * 6},
        2,
        f"{TRAIN} --model dclm-rst {SIZES} {SIDE} --parents p --valid-parents p",
    ),
]
MONO: Changes = {**WITH_SIDE, "mono": Model("dclm", {"encoder": "cnn", "embed": 4, "hidden": 4})}
OF_SOURCE = f"{BILINGUAL} {SIDE} --source-lm mono"
SOURCE_MODELS = [
    Fault(
        f"62-source-model-{name}",
        command,
        message,
        {**MONO, **change},
        2,
        {"mono": MONO["mono"]} if change else OF_SOURCE,
    )
    for name, command, message, change in (
        (
            "of-another-size",
            OF_SOURCE,
            "train both with the same --embed, --hidden",
            {"mono": Model("dclm", {"encoder": "cnn", "embed": 4, "hidden": 7})},
        ),
        (
            "of-another-encoder",
            OF_SOURCE,
            r"mono: .*encoder\.",
            {"mono": Model("dclm", {"encoder": "bag", "embed": 4, "hidden": 4})},
        ),
        (
            "of-another-kind",
            OF_SOURCE,
            "expected a dclm that reads sentences from left to right, found codclm",
            {"mono": Model("codclm")},
        ),
        ("with-a-vocabulary", f"{OF_SOURCE} --source-vocab 9", "leave out --source-vocab", {}),
        (
            "turned",
            f"{OF_SOURCE} --reverse-documents",
            "read documents in different directions",
            {},
        ),
    )
]
SOURCE_MODELS.append(
    Fault(
        "62-source-model-without-source",
        f"{TRAIN} --model dclm {SIZES} --source-lm mono",
        "--source-lm mono: dclm reads no source sentences",
        MONO,
        2,
        f"{TRAIN} --model dclm {SIZES}",
    )
)
SOUND = f"{TRAIN} --model codclm {SIZES}"
ONE = TEXT.replace("\n\n", "\n")
DOCUMENTS = [
    *(
        Fault(
            f"61-{role}-text-{name}",
            SOUND,
            f"{role[0]}:1: .*found no words",
            {**TEXTS, role[0]: content},
            3,
            {role[0]: TEXT},
        )
        for role in ("training", "validation")
        for name, content in (("empty", ""), ("blank", "\n\n  \n"))
    ),
    Fault(
        "61-training-text-of-one-document",
        SOUND,
        "1 x training text is one document; part documents with blank lines, first at t",
        {**TEXTS, "t": ONE},
        0,
    ),
    Fault(
        "61-training-text-of-one-closed-document",
        f"{SOUND} --documents equals",
        "close documents with lines that begin with =",
        {"t": ONE, "v": f"{ONE}=\n"},
        0,
    ),
    Fault(
        "61-unknown-word-nowhere",
        f"{SOUND} --unknown UNK",
        "t.*expected the word 'UNK' of --unk",
        TEXTS,
        3,
        {"t": replaced("one", "UNK"), "v": replaced("one", "UNK")},
    ),
    Fault(
        "61-all-sentences-too-long",
        f"{SOUND} --longest 1",
        "--longest 1: all sentences .* choose a larger number",
        TEXTS,
        2,
        f"{SOUND} --longest 2",
    ),
    Fault(
        "61-no-frequent-word",
        f"{SOUND} --vocab-min-count 1000",
        "--vocab-min-count 1000: no word is so frequent",
        TEXTS,
        2,
        SOUND,
    ),
    Fault(
        "61-two-texts-on-standard-input",
        SOUND.replace("t --valid v", "- --valid -"),
        "only one input can be -",
        TEXTS,
        2,
        SOUND,
    ),
    Fault(
        "82-curve-is-the-text",
        f"{SOUND} --curve t",
        "output t is also the input",
        TEXTS,
        2,
        f"{SOUND} --curve curve",
    ),
    Fault(
        "82-model-folder-is-not-empty",
        SOUND,
        "lm: not empty; name a new folder, or --resume",
        {**TEXTS, "lm/notes": "mine"},
        2,
        SOUND.replace("--out lm", "--out new"),
    ),
    Fault(
        "82-model-folder-without-a-run",
        f"{SOUND} --resume",
        "lm: not empty, and holds no run to go on with; name a new folder",
        {**TEXTS, "lm/notes": "mine"},
        2,
        SOUND.replace("--out lm", "--out new"),
    ),
    *(
        Fault(
            f"82-model-folder-{name}",
            SOUND.replace("--out lm", f"--out {out}"),
            message,
            TEXTS,
            2,
            SOUND,
        )
        for name, out, message in (
            ("is-a-file", "t", "expected a folder, found the file 't'; name another"),
            ("below-a-file", "t/lm", "t/lm: t is not a folder; name another"),
        )
    ),
    Fault(
        "61-ngram-text-with-a-tab",
        "train-ngram --order 2 --train t --out m --discount-fallback",
        "t:2: expected words between spaces, found a T",
        {"t": "a b\na\tb c\n"},
        3,
        {"t": "a b\na b c\n"},
    ),
    Fault(
        "61-ngram-without-frequent-words",
        "train-ngram --train t --out m --vocab-min-count 1000",
        "--vocab-min-count 1000: no word is so frequent",
        TEXTS,
        2,
        "train-ngram --train t --out m --order 2 --discount-fallback",
    ),
    Fault(
        "61-fallback-of-no-discounts",
        "train-ngram --train t --out m --smoothing stupid-backoff --discount-fallback",
        "has no discounts; leave it",
        TEXTS,
        2,
        "train-ngram --train t --out m --smoothing stupid-backoff",
    ),
    Fault(
        "61-smoothing-unknown",
        "train-ngram --train t --out m --smoothing laplace",
        "laplace",
        TEXTS,
        2,
        "train-ngram --train t --out m --smoothing stupid-backoff",
    ),
]

# Topics and relations

LEARN = "topics learn t --topics-number 2 --out model"
LABELS = "a\nb\n\nb\na\n\n" * 3
PREDICT = "topics train --train t --topics l --valid t --valid-topics l --out model --epochs 1"
PREDICT += " --embed 4 --hidden 4 --streams 2"
FOR_TOPICS: Changes = {"t": TEXT, "l": LABELS}
RELATION = {"sentences": [["so", "it"], ["but", "it"], ["and", "it"]]}
ANNOTATED = json.dumps({**RELATION, "relations": [None, {"sense": "Comparison"}, None]}) + "\n"
RELATIONS = "relations train a --out model"
TOPICS = [
    Fault(
        "61-more-topics-than-stretches",
        "topics learn t --topics-number 99 --out model",
        "--topics-number 99: expected at least as many stretches.*found 6; ask for fewer",
        FOR_TOPICS,
        2,
        LEARN,
    ),
    Fault(
        "61-topics-without-frequent-words",
        f"{LEARN} --vocab-min-count 9999",
        "no word is so frequent",
        FOR_TOPICS,
        2,
        LEARN,
    ),
    Fault("61-topics-of-no-words", LEARN, "found no words", {"t": "\n"}, 3, {"t": TEXT}),
    Fault(
        "82-topics-folder-not-empty",
        LEARN,
        "model: not empty; name a new folder",
        {**FOR_TOPICS, "model/x": ""},
        2,
        LEARN.replace("model", "new"),
    ),
    Fault(
        "62-topic-model-missing",
        "topics label --model model t",
        "topics.json: cannot be read",
        FOR_TOPICS,
        3,
    ),
    *(
        Fault(f"61-predictor-{name}", f"{PREDICT} {options}", message, FOR_TOPICS, 2, PREDICT)
        for name, options, message in (
            (
                "joint-without-words",
                "--inputs topics --target joint",
                "no words for a joint target",
            ),
            ("next-words-of-topics", "--inputs topics --given-next-words", "no words of the next"),
            ("thought", "--thought 3", r"inputs words\+topics have no thought vector of a size"),
            ("recurrence", "--architecture bow-dnn --recurrence lstm", "bow-dnn has no recurrence"),
            ("inputs", "--architecture bow-dnn --inputs words+thought", "has no inputs 'thought'"),
            ("frequent-words", "--vocab-min-count 9999", "no word is so frequent"),
        )
    ),
    Fault(
        "61-predictor-labels-too-few",
        PREDICT,
        "document 6 has 1 sentence.*, not 2",
        {**FOR_TOPICS, "l": LABELS[:-4] + "\n\n"},
        3,
        {"l": LABELS},
    ),
    Fault(
        "61-predictor-label-of-two-words",
        PREDICT,
        "expected one label for each sentence",
        {**FOR_TOPICS, "l": LABELS.replace("a", "a a", 1)},
        3,
        {"l": LABELS},
    ),
    Fault(
        "61-predictor-of-single-sentences",
        PREDICT,
        "^rerank: t: expected a document of two sentences or more",
        {"t": "a\n\nb\n\n", "l": "1\n\n2\n\n"},
        3,
        FOR_TOPICS,
    ),
    Fault(
        "62-predictor-missing",
        "lm-eval topics --model model t --topics l",
        "topic-prediction.json: cannot be read",
        FOR_TOPICS,
        3,
    ),
    Fault(
        "82-predictor-folder-not-empty",
        PREDICT,
        "model: not empty; name a new folder",
        {**FOR_TOPICS, "model/x": ""},
        2,
        PREDICT.replace("model", "new"),
    ),
    Fault(
        "97-predictor-diverges",
        f"{PREDICT} --optimiser sgd --learning-rate 10 --clip 0 "
        "--weight-decay 10 --epochs 60 --schedule constant".replace("--epochs 1 ", ""),
        "training diverged.*lower --learning-rate",
        FOR_TOPICS,
        1,
        PREDICT,
    ),
    *(
        Fault(
            f"61-annotated-{name}",
            RELATIONS,
            "a:2: expected a JSON object with sentences",
            {"a": f"{ANNOTATED}{wrong}\n"},
            3,
            {"a": ANNOTATED * 2},
        )
        for name, wrong in (
            ("without-relations", '{"sentences": [["a"]]}'),
            ("no-json", "["),
            ("relations-too-few", '{"sentences": [["a"], ["b"]], "relations": [null]}'),
            ("word-with-a-blank", '{"sentences": [["a b"]], "relations": [null]}'),
        )
    ),
    Fault(
        "61-annotated-with-one-relation",
        RELATIONS,
        "with at least two relations",
        {"a": '{"sentences": [["a"], ["b"]], "relations": [null, null]}\n'},
        3,
        {"a": ANNOTATED},
    ),
    Fault("62-classifier-missing", "relations label --model model t", "relations.json", TEXTS, 3),
    Fault(
        "82-classifier-folder-not-empty",
        RELATIONS,
        "model: not empty; name a new folder",
        {"a": ANNOTATED, "model/x": ""},
        2,
        RELATIONS.replace("model", "new"),
    ),
]
FAULTS = [
    *(
        Fault(
            f"61-useless-{name}",
            f"{TRAIN} --model {model} {SIZES} {options}",
            message,
            TEXTS,
            2,
            f"{TRAIN} --model {model} {SIZES}" + " --recurrence lstm" * ("late" in name),
        )
        for name, model, options, message in USELESS
    ),
    *(
        Fault(
            f"61-useless-{name}", f"{TRAIN} --model {model} --hidden 4 {options}", message, TEXTS, 2
        )
        for name, model, options, message in OF_LIN
    ),
    *FILES,
    *SOURCE_MODELS,
    *DOCUMENTS,
    *TOPICS,
]
