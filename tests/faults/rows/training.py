"""Training of models: options for which a model has no use, texts, folders, topics, relations.

Tables: a row's name, the command (or what is added to it), what is said, and its cure.
"""

import json

from support.faults import PASTED, Changes, Fault, Model, line, replaced, table

TEXT = "the lamp is lit\nit burns\n\nno one\nshe is\n\n" * 3
TEXTS: Changes = {"t": TEXT, "v": TEXT}
TRAIN = "train-lm --train t --valid v --out lm --epochs 1 --streams 2 --device cpu --hidden 4"
T = f"{TRAIN} --embed 4"
SOUND = f"{T} --model codclm"


# A model, an option that it has no use for, and what is said; without the option it is trained.
USELESS = """
attention | codclm | --attention 7 | 'codclm' has no attention, found a size 7
fusion-of-a-state | codclm | --fusion initial | the fusion 'initial' needs a context that
fusion-of-nothing | rnnlm | --fusion merge | --model rnnlm: 'rnnlm' has no context
late-fusion | rlm-bow-lf-2 | --recurrence tanh | late fusion expects .* found TanhRNN; choose lstm
head | codclm | --head sparse | 'sparse' is not one of 'softmax', 'classes'
nce-without-noise | codclm | --objective nce --negatives 0 | nce: expected noise words, found .* 0
nce-of-all-words | codclm --head classes | --objective nce | the head .* trained on all words
negatives | codclm --head classes | --negatives 7 | 7: the head .* on all words
context-noise | rnnlm | --context-noise 0.3 | 0.3: rnnlm reads no target context; leave
reverse-documents | rnnlm | --reverse-documents | --reverse-documents: rnnlm reads no context
levels | ccdclm | --levels two-step | this model has no sentence level; leave
channel | codclm | --reverse | --reverse: codclm has no attention over the words of one source sentence, which a channel needs
levels-of-no-document | ccdclm | --levels context | ccdclm adds no document context to another model; leave
relation-classifier | dclm | --relation-classifier mlp | no classifier .*'mlp'
hash-size | codclm | --hash-size 99 | has no hashed features, found a size 99
passages-across | codclm --passages 2 | --across-documents | --passages 2: the last sentence
topics | rnnlm | --topics-number 5 | 'rnnlm' has no topics, found a number 5 of them
topic-model | codclm | --topic-model lda | 'codclm' has no topics, found a model lda
"""
OF_LIN = """
embed | rnnslm --embed 5 | 'rnnslm' has no embeddings beside its hidden layers
recurrence | rnnslm --recurrence lstm | a recurrence of its own, found 'lstm'; leave that out
tied | hrnnlm-lin --tied | 'hrnnlm-lin' has untied embeddings, found tied ones; leave that out
head-of-bags | rnnslm --head softmax | a head of its own, found 'softmax'; leave that out
fusion-of-bags | rnnslm --fusion input | a fusion of its own, found 'input'; leave that out
hash-of-few | rnnlm-lin --hash-size 4 | expected a hash size of at least .*, a slot for each
dropout | rnnslm --dropout 0.2 | --dropout 0.2: rnnslm has no states of words
backward | rnnslm --backward | --backward: rnnslm predicts bags of words, which have no order
recipe | rnnlm-lin --recipe code | has no recipe 'code', but strong, paper; choose
"""
OPTIONS = [
    Fault(
        *(f"--useless-{name}", f"{T} --model {model} {option}", message, TEXTS, 2),
        f"{T} --model {model}" + " --recurrence lstm" * (name == "late-fusion"),
    )
    for name, model, option, message in (row.split(" | ") for row in USELESS.strip().split("\n"))
]
OPTIONS += [
    Fault(f"--useless-{name}", f"{TRAIN} --model {model}", message, TEXTS, 2)
    for name, model, message in (row.split(" | ") for row in OF_LIN.strip().split("\n"))
]

# Files beside texts

SIDE = "--source s --valid-source s"
SOURCES = "eins zwei\ndrei\n\nvier\nzwei\n\n" * 3
WITH_SIDE: Changes = {**TEXTS, "s": SOURCES, "r": "a\nb\n\n" * 6, "p": "0\n1\n\n" * 6}
B, RELATED = (f"{T} --model dclm-bilingual --encoder cnn", f"{T} --model dclm-auxiliary --relations r")
RST = f"{T} --model dclm-rst {SIDE} --parents p --valid-parents p"
FILES = table(
    f"""
95-train-source-missing | {B} | --source: dclm-bilingual needs the source | {B} {SIDE}
95-valid-source-missing | {B} --source s | --valid-source: dclm-bilingual needs | {B} {SIDE}
95-train-source-of-no-use | {SOUND} {SIDE} | --source: no model here needs | {SOUND}
95-valid-relations-of-no-use | {RELATED} --valid-relations r | no model here needs | {RELATED}
95-levels-of-relations | {RELATED} --levels two-step | relations from one | {RELATED}
95-parents-from-the-last | {RST} --reverse-documents | count sentences from the first | {RST}
""",
    WITH_SIDE,
)
OTHERS = "s: expected 12 sentences in 6 documents as in t, found 11 .*document 1 has 1 "
ONE_LABEL = "r: expected one label for each sentence, found 2 words"
FEWER: Changes = {**WITH_SIDE, "s": SOURCES.replace("drei\n", "", 1)}
DOUBLE: Changes = {**WITH_SIDE, "r": "a\nb b\n\n" + "a\nb\n\n" * 5}
FILES += [
    Fault("95-source-of-fewer-documents", f"{B} {SIDE}", r"s: expected 12 sentences in 6 documents as in t, found 10 sentences in 5 documents; line i must .*between documents$",
        {**WITH_SIDE, "s": SOURCES[: SOURCES.rindex("vier")]}, 3, {"s": SOURCES}),
    Fault("95-source-of-other-documents", f"{B} {SIDE}", OTHERS, FEWER, 3, {"s": SOURCES}),
    Fault("95-relation-of-two", RELATED, ONE_LABEL, DOUBLE, 3, {"r": line(2, "b b", "b")}),
]


def mono(hidden: int = 4, encoder: str = "cnn") -> Model:
    """A model of source text."""
    return Model("dclm", {"encoder": encoder, "embed": 4, "hidden": hidden})


MONO: Changes = {**WITH_SIDE, "mono": mono()}
OF_SOURCE, PLAIN = f"{B} {SIDE} --source-lm mono", f"{T} --model dclm"
SOURCE_MODELS = [
    Fault(f"62-source-{name}", OF_SOURCE, message, {**MONO, "mono": model}, 2, {"mono": mono()})
    for name, message, model in (
        ("model-of-another-size", "train both with the same --embed, --hidden", mono(hidden=7)),
        ("model-of-another-encoder", r"mono: .*encoder\.", mono(encoder="bag")),
        ("model-of-another-kind", "expected a dclm that reads .*, found codclm", Model("codclm")),
    )
]
SOURCE_MODELS += table(
    f"""
62-source-vocabulary | {OF_SOURCE} --source-vocab 9 | leave out --source-vocab | {OF_SOURCE}
62-source-turned | {OF_SOURCE} --reverse-documents | in different directions | {OF_SOURCE}
62-source-model-of-no-use | {PLAIN} --source-lm mono | dclm reads no source | {PLAIN}
""",
    MONO,
)

FROM = f"{SOUND} --from old"
OF_DOCUMENTS = f"{T} --source t --valid-source t --model attention-gated --levels context"
OF_SOURCE_TEXT = f"{T} --source t --valid-source t --model attention"
FROM_MODELS = table(
    f"""
--from-and-a-vocabulary | {FROM} --vocab 9 | --vocab: the vocabularies are those of --from | {FROM}
--from-another-size | {FROM} --hidden 7 | --from old: .* train with the --model, --embed | {FROM}
--from-another-model | {T} --model drnnlm --from old | context.first of this codclm .* none in drnnlm | {FROM}
--from-a-model-that-reads-backward | {FROM} --backward | give --backward to both | {FROM}
--from-the-other-direction | {OF_SOURCE_TEXT} --from fwd --reverse | --from fwd: .*translate in different directions; give --reverse to both | {OF_SOURCE_TEXT} --from fwd
--from-nothing-but-the-context | {OF_DOCUMENTS} | --levels context: without --from all other weights would stay random; give --from DIR | {OF_DOCUMENTS} --from fwd
--from-and-a-tokenizer | {FROM} --tokenizer bpe:280 | --tokenizer: the vocabularies are those of --from | {FROM}
""",
    {**TEXTS, "old": Model("codclm", {"embed": 4, "hidden": 4}), "fwd": Model("attention", {"embed": 4, "hidden": 4})},
)
OLD: Changes = {**TEXTS, "old": Model("codclm", {"embed": 4, "hidden": 4})}
FROM_MODELS.append(Fault("--from-no-folder", f"{SOUND} --from none", "none: .*made by .rerank train-lm., found none", OLD, cure=FROM))

# Texts and folders

ONE = TEXT.replace("\n\n", "\n")
NEW = SOUND.replace("--out lm", "--out new")
N, MINE = "train-ngram --train t --out m", {**TEXTS, "lm/notes": "mine"}
FEW, BACKOFF = f"{N} --order 2 --discount-fallback", f"{N} --smoothing stupid-backoff"
IN_FILE, BELOW = (SOUND.replace("--out lm", f"--out {out}") for out in ("t", "t/lm"))
TWO = SOUND.replace("t --valid v", "- --valid -")
DOCUMENTS = table(
    f"""
--ngrams-in-place-of-their-text | {N.replace("--out m", "--out t")} --order 2 | output t is also the input t; name another | {FEW}
--long-sentences | {SOUND} --longest 1 | 1: all sentences .* a larger | {SOUND} --longest 2
--no-frequent-word | {SOUND} --vocab-min-count 1000 | 1000: no word is so frequent | {SOUND}
--two-texts-on-standard-input | {TWO} | only one input can be - | {SOUND}
82-curve-is-the-text | {SOUND} --curve t | output t is also the input | {SOUND} --curve curve
82-model-folder-is-a-file | {IN_FILE} | expected a folder, found the file 't' | {SOUND}
82-model-folder-below-a-file | {BELOW} | t/lm: t is not a folder; name another | {SOUND}
--ngrams-of-no-frequent-words | {N} --vocab-min-count 1000 | no word is so frequent | {FEW}
--fallback-of-no-discounts | {BACKOFF} --discount-fallback | has no discounts; leave it | {BACKOFF}
--smoothing-unknown | {N} --smoothing laplace | laplace | {BACKOFF}
""",
    TEXTS,
)
DOCUMENTS += table(
    f"""
82-model-folder-is-not-empty | {SOUND} | lm: not empty; name a new folder, or --resume | {NEW}
82-model-folder-without-a-run | {SOUND} --resume | lm: not empty, and holds no run | {NEW}
""",
    MINE,
)
DOCUMENTS += [
    Fault(f"--{role}-text-{name}", SOUND, message, {**TEXTS, role[0]: content}, 3, {role[0]: TEXT})
    for role, name, content in (("train", "blank", "\n\n  \n"), ("valid", "empty", ""))
    for message in (f"{role[0]}:1: .*found no words",)
]
UNK, TAB = replaced("one", "UNK"), "t:2: expected words between spaces, found a T"
CLOSED = "close documents with lines that begin with ="
PARTED = "1 x training text is one document; part documents with blank lines, first at t"
ABSENT = "t.*expected the word 'UNK' of --unknown"
DOCUMENTS += [
    Fault("--one-document", SOUND, PARTED, {**TEXTS, "t": ONE}, 0),
    Fault("--one-open", f"{SOUND} --documents equals", CLOSED, {"t": ONE, "v": f"{ONE}=\n"}, 0),
    Fault("--unknown", f"{SOUND} --unknown UNK", ABSENT, TEXTS, 3, {"t": UNK, "v": UNK}),
    Fault("--ngrams-of-a-tab", FEW, TAB, {"t": "a b\na\tb c\n"}, 3, {"t": "a b\na b c\n"}),
    Fault("--marks-in-the-source", f"{B} {SIDE}", "s:2: expected words, found </s>",
          {**WITH_SIDE, "s": SOURCES.replace("drei", "drei </s>", 1)}, 3, {"s": SOURCES}),
]

TALKS = "<doc id='1'>\n<url>x</url>\na lamp\nit is\n</doc>\n<doc id='2'>\nno\n</doc>\n"
WIKI = "= A =\n\na lamp\nit is\n\n= = B = =\n\nit burns\n\n= C =\n\nno one\n\nshe is\n"
EACH = "document of one sentence, as most here; .* between documents only, or give --across-doc"
ARPA = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 <unk>\n-1 it\n\n\\end\\\n"
PPL, LM = "perplexity --ngram n t", "perplexity --lm d t"
EVERY = "12 x training sentences have words that end in @@ .*, validation sentences do not"
ONCE, UNKNOWN = f"{SOUND} --validations 1", TEXT.replace("one", "[UNK]")
DOCUMENTS += [
    Fault(f"--{name}", command, said, {**TEXTS, "n": ARPA, "d": Model("codclm"), "t": text}, exit, cure)
    for name, command, exit, said, text, cure in (
        ("marks", FEW, 3, "t:1: expected words, found <s>, a mark", "<s> a lamp </s>\n", {"t": "a lamp\n"}),
        ("marks-to-predict", PPL, 3, "t:2: expected words, found </s>", "it\nit </s>\n", {"t": "it\nit\n"}),
        ("json", FEW, 3, "t:1: .* found JSON", '{"text": "a b\\nc"}\n' * 2, PASTED),
        ("talks", FEW, 0, r"5 x mark-up in a line \(<doc>, <url>\).*, first at t:1 ", TALKS, {"t": "a lamp\nit is\n\nno\n"}),
        ("ends", FEW, 0, r"1 x mark-up .*\(<\|endoft", "a b\n<|endoftext|>\nc d\n", {"t": "a b\n\nc d\n"}),
        ("italics", FEW, 0, r"1 x mark-up in a line \(<i>\)", "<i>no</i> lamp\nit\n", {"t": "no lamp\nit\n"}),
        ("markdown", FEW, 0, r"3 x heading or rule of M", "# A\nit is\n---\n\n## B\na\n# 2\n", {"t": "\nit is\n\n\na\n# 2\n"}),
        ("control-words", FEW, 0, r"2 x mark .*\(\[CLS\], [\s\S]*^kneser", "[CLS] a b [SEP]\n" * 2, {"t": "a b\n" * 2}),
        ("lines-of-sentences", FEW, 0, r"\(_eos\), .*write line ends", "a b _eos c d\n" * 2, {"t": "a b\nc d\n\n" * 2}),
        ("tab", PPL, 0, "1 x TAB in a line, .*, first at t:3 ", "it\n\nthe\tlamp\nis\n", {"t": "it\n\nthe lamp\nis\n"}),
        ("headings", LM, 0, EACH, WIKI, {"t": "a lamp\nit is\nit burns\n\nno one\nshe is\n" * 2}),
        ("one-each", LM, 0, EACH, "it\n\n" * 5, f"{LM} --across-documents"),
        ("unknown-words", FEW, 0, r"2 x unknown word .*\(<unk>, <UNK>\)", "a <unk>\n<UNK> b\n", None),
        ("bert", ONCE, 0, r"--unknown '\[UNK\]'", UNKNOWN, f"{ONCE} --unknown '[UNK]'"),
        ("other-valid", ONCE, 0, EVERY, TEXT.replace(" ", "@@ "), {"t": TEXT}),
        ("few", f"{SOUND} --words 9", 0, r"barely .*\d+ epochs; give --words \d+ --res", TEXT, None),
        ("short", f"{SOUND} --minutes 1e-4", 0, r"barely .*\d+ epochs; give --minutes 1 --res", TEXT, None),
    )
]

OF_PAIR: Changes = {"t": "the lamp\nit is\n\nno one\n\n" * 4, "s": "la lampe\nelle luit\n\npersonne\n\n" * 4}
SWAPPED = f"{T.replace('--valid v', '--valid s')} --model attention --source s --valid-source t"
SIDES = [
    Fault(f"95-valid-{name}", SWAPPED, message, OF_PAIR, 0, f"{T.replace('--valid v', '--valid t')} --model attention --source s --valid-source s")
    for name, message in (
        ("of-the-source", "20 x word unknown to the model .100.0%.*give a validation text in the language of the training text.* first at s"),
        ("of-a-swapped-source", "24 x source word unknown to the model .100.0%.*give text and source in the languages.* first at t"),
    )
]

# Subword units

BPE = f"{SOUND} --tokenizer bpe:280"
OF_NGRAMS = "train-ngram --train t --out m.arpa --order 2 --discount-fallback --tokenizer bpe:280"
TOKENIZERS = table(
    f"""
--pieces-of-no-kind | {SOUND} --tokenizer words:280 | expected unigram:SIZE or bpe:SIZE .*found 'words:280' | {BPE}
--pieces-fewer-than-bytes | {SOUND} --tokenizer bpe:256 | with more than 256 | {BPE}
--pieces-fewer-than-characters | {SOUND} --tokenizer bpe:260 | bpe:260: expected 256 bytes and the 1.*choose 27. or more | {BPE}
--pieces-more-than-the-text-has | {SOUND} --tokenizer bpe:900 | bpe:900: the training text allows no more .* fewer | {BPE}
--pieces-and-words | {BPE} --vocab 9 | --vocab: the pieces of --tokenizer are the vocabulary | {BPE}
--pieces-and-frequent-words | {BPE} --vocab-min-count 2 | --vocab-min-count: the pieces | {BPE}
--pieces-and-a-word-for-unknown-ones | {BPE} --unknown it | --unknown: the pieces | {BPE}
--pieces-of-no-source | {BPE} --source-tokenizer bpe:280 | no --source to read so; leave it out | {BPE}
--pieces-of-a-source-in-one-file | {BPE[:-7]}sentencepiece:s --model attention --source t | give --source-tokenizer | {BPE}
--pieces-of-ngrams-and-words | {OF_NGRAMS} --vocab 9 | --vocab: the pieces of --tokenizer are the vocabulary | {OF_NGRAMS}
--pieces-of-a-source-and-words | {BPE} --model attention --source t --source-vocab 9 | --source-vocab: the pieces | {BPE}
""",
    TEXTS,
    exit=2,
)
TOKENIZERS += table(
    f"""
--pieces-of-another-file | {BPE[:-7]}sentencepiece:t | t: not a model file of SentencePiece; give | {BPE}
--pieces-of-no-file | {BPE[:-7]}sentencepiece:none | none: .*no such file | {BPE}
""",
    TEXTS,
    exit=3,
)
TOKENIZERS += [
    Fault(f"--pieces-of-pieces-{name}", command, f"12 x line with words that {words} .*, whose pieces --tokenizer cuts once more; join them.*; or leave --tokenizer out, first at t",
        {"t": text, "v": text}, 0, {"t": TEXT, "v": TEXT})
    for name, command, words, text in (
        ("of-subword-nmt", OF_NGRAMS, "end in @@", TEXT.replace(" ", "@@ ")),
        ("of-sentencepiece", BPE, "begin with \u2581", TEXT.replace(" ", " \u2581")),
    )
]  # fmt: skip


# Topics and relations

LEARN = "topics learn t --topics-number 2 --out model"
LABEL = "topics label --model model t"
LABELS = "a\nb\n\nb\na\n\n" * 3
P = "train-lm --model clstm-given-topic --train t --topics l --valid t --valid-topics l --out model"
P += " --embed 4 --hidden 4 --streams 2 --epochs 1"
FOR_TOPICS: Changes = {"t": TEXT, "l": LABELS}
TOPICS = table(
    f"""
--more-topics-than-texts | {LEARN} --topics-number 99 | 99: .*found 6; ask for fewer | {LEARN}
--topics-of-frequent-words | {LEARN} --vocab-min-count 999 | no word is so frequent | {LEARN}
--topics-of-lines-and-parts | {LABEL} --documents equals --docs dev.docs | every line is a sentence
""",
    FOR_TOPICS,
)
TOPICS += table(
    """
62-topic-model-missing | topics label --model model t | topics.json: cannot be read
62-classifier-missing | relations label --model model t | relations.json
""",
    FOR_TOPICS,
    exit=3,
)
RELATION = {"sentences": [["so", "it"], ["but", "it"], ["and", "it"]]}
ANNOTATED = json.dumps({**RELATION, "relations": [None, {"sense": "Comparison"}, None]}) + "\n"
LONE = '{"sentences": [["a"], ["b"]], "relations": [null, null]}\n'
CLASSIFY, OBJECT = "relations train a --out model", "a:2: expected a JSON object with sentences"
SHORT, TWICE = LABELS[:-4] + "\n\n", LABELS.replace("a", "a a", 1)
TOPICS += [
    Fault("--topics-of-no-words", LEARN, "found no words", {"t": "\n"}, 3, {"t": TEXT}),
    Fault("--labels-too-few", P, "document 6 has 1 ", {**FOR_TOPICS, "l": SHORT}, 3, FOR_TOPICS),
    Fault("--label-of-two", P, "one label for each", {**FOR_TOPICS, "l": TWICE}, 3, FOR_TOPICS),
    Fault("--one-relation", CLASSIFY, "with at least two relations", {"a": LONE}, 3, {"a": ANNOTATED}),
    *(Fault(f"--annotated-{name}", CLASSIFY, OBJECT, {"a": f"{ANNOTATED}{wrong}\n"}, 3, cure) for cure in ({"a": ANNOTATED * 2},)
        for name, wrong in (("without-relations", '{"sentences": [["a"]]}'), ("no-json", "["), ("relations-too-few",
        '{"sentences": [["a"], ["b"]], "relations": [null]}'), ("word-with-a-blank", '{"sentences": [["a b"]], "relations": [null]}'))),
    *(Fault(f"82-{name}-folder-not-empty", command, "model: not empty; name a new folder", {**FOR_TOPICS, "a": ANNOTATED, "model/x": ""}, 2,
        command.replace("out model", "out new")) for name, command in (("topics", LEARN), ("trained", P), ("classifier", CLASSIFY))),
]  # fmt: skip
FAULTS = [*OPTIONS, *FILES, *SOURCE_MODELS, *FROM_MODELS, *DOCUMENTS, *SIDES, *TOKENIZERS, *TOPICS]
