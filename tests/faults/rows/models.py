"""Models, their options and the files beside the lists that they need."""

import re

import json

from support import causal, lora, seq2seq
from support.faults import RESTORED, Changes, Fault, Model, each_line, line, replaced, table
from support.world import DECODE, TUNE, World

LISTS = "--kbest dev.kbest --docs dev.docs"
D = f"decode {LISTS} --weights w.ini --default-weight 0.5 --out -"
SCORE = f"score {LISTS} --out -"
S, DL = f"{SCORE} --lm lm=lm", f"{D} --lm lm=lm"
OF_CONTEXT, PLAIN, NEXT = Model("codclm"), Model("rnnlm"), Model("dclm-right-target")
TURNED = Model("codclm", {"reverse_documents": True})
BOTH, RST = Model("dclm-bilingual-decoupled"), Model("dclm-rst")
FORWARD: Changes = {"lm": OF_CONTEXT}


def translators(world: World) -> None:
    """Folders of Hugging Face, of several kinds and with several faults."""
    for kind in ("nllb", "marian", "t5"):
        seq2seq.save(world.folder / kind, kind)
    causal.save(world.folder / "gpt")
    seq2seq.save(world.folder / "short", positions=40)
    for name, lost in (("bare", "tokenizer.json"), ("empty", "model.safetensors")):
        seq2seq.save(world.folder / name)
        (world.folder / name / lost).unlink()
    world.write("empty/pytorch_model.bin", "")
    world.write("npz/model.npz", "")


# Options

OPTIONS = table(
    f"""
66-pmi-of-a-share | {S},pmi=0.5 | found pmi=0.5: .* is not a valid boolean | {S}
66-pmi-twice | {S},pmi=yes,pmi=yes | expected one pmi=, found two | {S},pmi=yes
66-pmi-of-a-taken-name | {S},pmi=yes --lm lmpmi=lm | lmpmi=lm: the name is taken | {S}
66-document-cache-of-none | {S},document-cache=no | found document-cache=no: expected a finite | {S}
66-document-cache-of-0 | {S},document-cache=0 | 0.0 is not in the range 0<x<1 | {S}
66-name-of-a-digit | {SCORE} --lm 2lm=lm | letters and digits that begins with a letter | {S}
66-name-with-underscore | {SCORE} --lm l_m=lm | letters and digits that begins with a letter | {S}
66-name-of-the-total | {SCORE} --lm total=lm | 'total' is the list's total | {S}
66-name-twice | {S} --lm lm=lm | --lm lm=lm: the name is taken by another --lm | {S}
66-name-of-unknown-words | {S} --lm lmoov=lm | lmoov=lm: the name is taken | {S}
66-name-of-scores | {S} --scores lmoov=m | lmoov=m: the name is taken by another --lm | {S}
""",
    {**FORWARD, "m": "0\n" * 9},
)
OPTIONS += table(f"66-pmi-without-context | {S},pmi=yes | without context, whose PMI is always 0; leave | {S}", {"lm": PLAIN})
OF_CACHE, ABOVE = (f"{SCORE} --scorer u=document-cache", "expected a weight .* above 0 and below 1, found")
OPTIONS += table(
    f"""
66-document-cache-alone | {OF_CACHE}:1 | {ABOVE} '1' | {OF_CACHE}:0.5
66-document-cache-nan | {OF_CACHE}:nan | {ABOVE} 'nan' | {OF_CACHE}:0.5
""",
    {},
)
SWEEPS = "does not serve .* decoders that fit: sweeps, which"
OPTIONS += table(
    f"""
66-next-sentence-pmi | {S},pmi=yes | pmi=yes: lm is a model that is given the next sentence | {S}
69-next-sentence-for-beam | {DL} --search beam | --search beam: beam {SWEEPS} | {DL} --search sweeps
69-next-sentence-for-smc | {DL} --search smc --alpha 1 | --search smc: smc {SWEEPS} | {DL}
""",
    {"lm": NEXT},
)
MEAN = f"{DL} --alpha 1 --search survivors"
OPTIONS += table(f"69-mean-of-memories | {MEAN}:merge=mean | have no mean; merge by max or sample | {MEAN}", {"lm": Model("adclm")})
TWO, LABEL = (f"{D} --lm a=lm --lm b=lm2", "--lm lm=lm,pmi=yes: dev.kbest already has a feature 'lmnull'; choose")
OPTIONS += table(
    f"69-both-directions-for-beam | {TWO} --search beam | beam {SWEEPS.split(',')[0]} | {TWO}",
    {"lm": Model("ccdclm"), "lm2": Model("ccdclm", {"reverse_documents": True})},
)
NULL: Changes = {**FORWARD, "dev.kbest": replaced("WP0=", "lmnull=")}
OPTIONS.append(Fault("66-pmi-of-a-label", f"{S},pmi=yes", LABEL, NULL, 2, S))

# Models that a command cannot use

ITEM = {"context": ["the lamp"], "right": "it burns", "wrong": ["it gives"]}
TEXTS = {"text": "it is\n", "items": (json.dumps(ITEM) + "\n") * 2}
CONTRASTIVE = "lm-eval contrastive --lm lm items"
LAST = "reads documents from the last sentence to the first.* --reverse-documents"
USELESS = [
    ("reversed-for-contrastive", CONTRASTIVE, LAST, TURNED),
    ("next-for-contrastive", CONTRASTIVE, "next sentence, which rerank lm-eval contrastive", NEXT),
    ("backward-twice", "perplexity --lm lm text --duplicate-last-word", "lm reads sentences from right to left; leave it out",
        Model("rnnlm", {"backward": True})),
]  # fmt: skip
READ = {**ITEM, "source": ["a", "b"]}
COMMANDS = [Fault(f"62-{name}", command, message, {**TEXTS, "lm": model}, 2, FORWARD) for name, command, message, model in USELESS]
COMMANDS += [
    Fault("95-items-without-source", CONTRASTIVE, "items: lm needs the source sentences, which item 1 lacks; give .source.: .*pairs --source FILE",
        {**TEXTS, "lm": Model("attention")}, 3, {"items": (json.dumps(READ) + "\n") * 2}),
    Fault("95-items-of-a-short-source", CONTRASTIVE, "items:2: expected 2 sentences as 'source', found 1; give those of the context and, last, that of",
        {"lm": Model("attention"), "items": f'{json.dumps(READ)}\n{json.dumps({**ITEM, "source": ["b"]})}\n'}, 3, {"items": (json.dumps(READ) + "\n") * 2}),
]
HF = f"{SCORE} --lm g=hf:"
COMMANDS += table(
    f"""
62-hf-with-document-cache | {HF}gpt,document-cache=0.5 | tokens are not words; give --scorer NAME=document-cache beside it
62-hf-tags-for-perplexity | perplexity hyp.txt --lm hf:gpt --tags hyp.txt | --tags: not for hf:gpt, of Hugging Face; leave it
62-hf-pmi-of-a-text | lm-eval coherence hyp.txt --lm hf:gpt,pmi=yes | pmi is for lists of candidates; leave it out
62-hf-reverse | {HF}gpt,reverse=yes | reverse is for seq2seq:DIR, a Hugging Face model
62-hf-long | {HF}gpt,long=cut | found long=cut
62-hf-no-folder | {HF},sentences=2 | expected hf:DIR
62-hf-negative | {HF}gpt,sentences=-1 | found sentences=-1
62-hf-tokens | {HF}gpt,tokens=99999999 | found tokens=99999999
62-hf-join | {HF}gpt,join=comma | found join=comma
62-hf-unknown | {HF}gpt,sentence=2 | found sentence=2
62-hf-language | {HF}gpt,detokenize=english | found detokenize=english
""",
    {},
)
NO_FOLDER = ".* written by save_pretrained, found none"
COMMANDS += table(
    f"""
62-hf-missing | {HF}none | none: {NO_FOLDER}
62-hf-missing-for-perplexity | perplexity hyp.txt --lm hf:none | none: {NO_FOLDER}
""",
    {},
    3,
)
OF_HF, NO_HF = ({"lm/config.json": '{"model_type": "gpt2"}'}, "a Hugging Face model; .* --lm NAME=hf:DIR, or NAME=seq2seq:DIR$")
COMMANDS += [
    Fault("62-of-hugging-face", S, NO_HF, OF_HF, 3, {"lm": PLAIN}),
    Fault("62-missing", S, "lm: expected a folder made by .*, found none; ", {}, 3, {"lm": PLAIN}),
    Fault("62-no-model", S, r"config\.json.*rerank train-lm", {"lm/x": ""}, 3, {"lm": PLAIN}),
]
PLACE, RETURNED = "scorer 'lm', document 'evening'", "lm: a language model returned NaN"
COMMANDS += [
    Fault(f"76-nan-{name}", command, message, {"lm": Model(model, shape)}, 1, {"lm": PLAIN})
    for name, command, message, model, turned in (
        ("for-score", S, f"{PLACE}.*NaN", "rnnlm", False),
        ("along-a-path", DL, f"{PLACE}: sentence 0, candidate .*NaN", "ccdclm", False),
        ("reversed", S, f"{PLACE}, its sentences counted from the last: sent", "codclm", True),
        ("for-perplexity", "perplexity hyp.txt --lm lm", RETURNED, "rnnlm", False),
    )
    for shape in ({"nan": "head.bias", "reverse_documents": turned},)
]
UNKNOWN = (r"\d+ x word unknown to lm \(\d\d\.\d% of the list's words, 0\.0% of its training text's; most frequent: ('[^']+', ){9}'[^']+'\)", "check case.*first at dev.kbest")
MORE = b"i ii iii iv v vi vii viii ix x xi xii"  # words that no model knows; ten are named
STRANGE: Changes = {"lm": Model("rnnlm", {"oov_rate": 0.0}), "dev.kbest": lambda text: text.replace(b"lights", MORE)}
COMMANDS += [
    Fault("--words-unknown-to-the-model", S, UNKNOWN, STRANGE, 0),
    Fault("--few-words-unknown", S, "!unknown to lm", {"lm": Model("rnnlm", {"oov_rate": 0.2})}, 0),
]

TRANSLATION, NLLB = f"{SCORE} --source dev.src --lm g=seq2seq:", "nllb,src=zho_Hans,tgt=eng_Latn"
SOUND_ONE = f"{TRANSLATION}marian"
FIND = "candidates --source dev.src --docs dev.docs --n-best 3 --longest 5 --out out.jsonl --model"
COMMANDS += table(
    f"""
66-seq2seq-of-no-source | {SCORE} --lm g=seq2seq:marian | --source: --lm g needs the source sent.*; give --source FILE | {SOUND_ONE}
66-seq2seq-key-of-causal | {SOUND_ONE},begin=x | begin is for hf:DIR and openai:URL, a Hugging Face model | {SOUND_ONE}
66-seq2seq-key-for-causal | {HF}gpt,src=en | src is for seq2seq:DIR, a Hugging Face model | {HF}gpt
66-seq2seq-reverse | {SOUND_ONE},reverse=2 | found reverse=2: .* is not a valid boolean | {SOUND_ONE}
66-seq2seq-pmi | {SOUND_ONE},pmi=yes | always 0; leave the option out, or give a window | {SOUND_ONE},sentences=1,pmi=yes
62-candidates-of-causal | {FIND} hf:gpt | --model hf:gpt: expected seq2seq:DIR, of Hugging Face | {FIND} seq2seq:marian
62-candidates-of-a-converted-model-and-epsilon | {FIND} ct2:marian --sample --epsilon 0.1 | --epsilon 0.1: CTranslate2 does not leave out tokens so; leave it out | {FIND} seq2seq:marian --sample
62-candidates-of-a-converted-model-on-mps | {FIND} ct2:marian --device mps | --device mps: not for a model of CTranslate2; use --device cpu | {FIND} seq2seq:marian --device cpu
62-candidates-of-context | {FIND} seq2seq:marian,sentences=1 | expected src, tgt, .* found another key; leave it out | {FIND} seq2seq:marian
62-candidates-of-no-beam | {FIND} seq2seq:marian --beam 2 | --beam 2: expected --n-best 3 or more | {FIND} seq2seq:marian --beam 3
62-candidates-of-no-draws | {FIND} seq2seq:marian --temperature 2 | tokens are drawn under --sample alone; add it | {FIND} seq2seq:marian --temperature 2 --sample
62-seq2seq-for-a-text | perplexity hyp.txt --lm seq2seq:marian | scores the candidates of a source; give it to decode, score | {SOUND_ONE}
""",
    {},
    2,
    setup=translators,
)
COMMANDS += table(
    f"""
66-seq2seq-no-language | {TRANSLATION}nllb | nllb: expected src=CODE behind the folder, the language of sources, .* for eng_Latn, zho_Hans, | {TRANSLATION}{NLLB}
66-candidates-no-language | {FIND} seq2seq:nllb | nllb: expected src=CODE behind the folder, the language of sources, .* for eng_Latn, zho_Hans, | {FIND} seq2seq:{NLLB}
66-candidates-unknown-language | {FIND} seq2seq:nllb,src=zho_Hans,tgt=en | tgt=en: .* no such language; did you mean eng_Latn | {FIND} seq2seq:{NLLB}
62-candidates-of-no-converted-model | {FIND} ct2:marian | marian: expected model.bin of CTranslate2, found none; .*converted by ct2-transformers-converter | {FIND} seq2seq:marian
62-candidates-no-tokenizer | {FIND} seq2seq:bare | bare: .*with its tokenizer | {FIND} seq2seq:marian
66-seq2seq-one-language | {TRANSLATION}nllb,src=zho_Hans | nllb: expected tgt=CODE behind the folder, the language of trans | {TRANSLATION}{NLLB}
66-seq2seq-unknown-language | {TRANSLATION}nllb,src=zh_Hanz,tgt=eng_Latn | src=zh_Hanz: .* no such language; did you mean zho_Han. or zho_Han.\\? | {TRANSLATION}{NLLB}
66-seq2seq-language-of-none | {SOUND_ONE},tgt=en | tgt=en: its tokenizer has no tokens for languages of translations; leave tgt= out | {SOUND_ONE}
66-seq2seq-separator | {SOUND_ONE},sentences=1,separator=x7 | separator=x7: .* no such token; give another, such as </s> | {SOUND_ONE},sentences=1,separator=</s>
62-seq2seq-causal | {TRANSLATION}gpt | gpt: expected a sequence-to-sequence model, found gpt2, .*; give it as --lm NAME=hf:gpt | {HF}gpt
62-hf-seq2seq | {HF}t5 | t5: expected a causal language model, found t5, a sequence.*; give it as --lm NAME=seq2seq:t5 | {TRANSLATION}t5
62-seq2seq-of-ours | {S} | the folder of a Hugging Face model is given as .* NAME=seq2seq:DIR | {SOUND_ONE}
62-seq2seq-no-tokenizer | {TRANSLATION}bare | bare: .*with its tokenizer | {SOUND_ONE}
62-seq2seq-pickle | {TRANSLATION}empty | empty: expected model.safetensors or .*, found only pytorch_model.bin; write | {SOUND_ONE}
62-seq2seq-of-marian | {TRANSLATION}npz | npz: expected config.json of .*; convert model.npz of Marian with .*convert_marian | {SOUND_ONE}
""",
    {},
    3,
    setup=translators,
)
BEYOND = "dev.src:3: expected a source of at most 39 tokens, .*, found one of 41; add ,long=cut behind .*, or part it"
COMMANDS += [
    Fault("18-seq2seq-long-source", f"{TRANSLATION}short", BEYOND, {"dev.src": "a\n\n" + "a " * 20 + "\na\n"},
        cure=f"{TRANSLATION}short,long=cut", setup=translators),
    Fault("18-candidates-long-source", f"{FIND} seq2seq:short", BEYOND, {"dev.src": "a\n\n" + "a " * 20 + "\na\n"},
        cure=f"{FIND} seq2seq:short,long=cut", setup=translators),
    Fault("18-seq2seq-cut-source", f"{TRANSLATION}short,long=cut", "1 x text longer than the 40 positions of g, cut",
        {"dev.src": "a\n\n" + "a " * 20 + "\na\n"}, 0, setup=translators, asked=True),
    Fault("18-seq2seq-long-candidate", f"{TRANSLATION}short", "dev.kbest:2: expected candidates of at most 39 .*; leave it out",
        {"dev.kbest": line(2, "a lamp burns", "a " * 40)}, setup=translators),
    Fault("95-candidates-short-source", f"{FIND} seq2seq:marian", "dev.src: expected 4 lines.*found 3", {"dev.src": "a\n" * 3}, 3,
        {"dev.src": "a\n" * 4}, setup=translators),
    Fault("95-seq2seq-short-source", SOUND_ONE, "dev.src: expected 4 lines.*found 3", {"dev.src": "a\n" * 3}, 3,
        {"dev.src": "a\n" * 4}, setup=translators),
]

PROMPTS = {
    "source": "{{ source }} =\n",
    "own": "{% for one in targets_before %}\n{{ one ~ one ~ one ~ one ~ one ~ one }}\n{% endfor %}\n{{ source }}\nnext:\n",
    "unknown": "a\n{{ sorce }}\n",
    "language": "{{ target_language }}: {{ source }}\n",
    "attribute": "a\n{{ source.__class__ }}\n",
    "first": "a\n{{ sources_before[0] }}\n",
    "broken": "a\n{{ source\n",
    "merged": "\n{{ source }} a",
    "long": "{{ source }}\n" * 9,
    "deep": f"{{{{ source }}}}\n{'{% if 1 %}' * 5000}{'{% endif %}' * 5000}",
    "brackets": f"{{{{ source }}}} {{{{ {'(' * 5000}1{')' * 5000} }}}}",
    "loops": f"{{{{ source }}}} {'{% for a in source %}' * 30}{'{% endfor %}' * 30}",
    "digits": f"{{{{ source }}}} {{{{ {'9' * 5000} }}}}",
    "power": "{{ source }}\n{{ 9 ** 9 ** 9 ** 9 }}",
}


def prompts(world: World) -> None:
    """A model of 100 positions and templates of prompts."""
    causal.save(world.folder / "gpt", "llama", positions=100)
    for name, text in PROMPTS.items():
        world.write(name, text)


PROMPTED = f"{SCORE} --source dev.src --lm g=hf:gpt,prompt="
SIMPLER = "expected a template of few nested parts and short numbers, found more [(]"
OK, FAILS = f"{PROMPTED}source", "the template fails for .*'evening', sentence 0: "
COMMANDS += table(
    f"""
66-prompt-of-no-source | {SCORE} --lm g=hf:gpt,prompt=source | --source: --lm g needs the source | {OK}
66-prompt-and-joiner | {OK},join=space | join is for models without prompt=FILE; leave it out | {OK}
66-chat-without-prompt | {HF}gpt,chat=yes | chat is for models with prompt=FILE; leave it out | {HF}gpt
66-prompt-of-source-for-text | lm-eval coherence hyp.txt --lm g=hf:gpt,prompt=source | its prompt shows the source, which .* does not read; give a prompt of targets_before alone
""",
    {},
    2,
    setup=prompts,
)
COMMANDS += table(
    f"""
62-prompt-missing | {PROMPTED}none | none: expected a template of Jinja: no such file | {OK}
62-prompt-unknown-variable | {PROMPTED}unknown | unknown:2: no variable 'sorce'; did you mean source. There are source, | {OK}
62-prompt-language | {PROMPTED}language | language:1: target_language is not given; add ,target-language=NAME | {PROMPTED}language,target-language=English
62-prompt-attribute | {PROMPTED}attribute | attribute:2: {FAILS}SecurityError: access to attribute '__class__' | {OK}
62-prompt-of-none-before | {PROMPTED}first | first:2: {FAILS}UndefinedError: list object has no element 0; lists may be empty | {OK}
62-prompt-broken | {PROMPTED}broken | broken:2: expected a template of Jinja: unexpected end | {OK}
62-prompt-nested | {PROMPTED}deep | deep: {SIMPLER}maximum recursion depth .*; write a simpler one | {OK}
62-prompt-of-brackets | {PROMPTED}brackets | brackets: {SIMPLER} | {OK}
62-prompt-of-loops | {PROMPTED}loops | loops: {SIMPLER}too many statically nested blocks | {OK}
62-prompt-of-digits | {PROMPTED}digits | digits: {SIMPLER} | {OK}
62-prompt-of-a-power | {PROMPTED}power | power:2: {FAILS}KeyError: '..' | {OK}
62-prompt-merged | {PROMPTED}merged | merged:2: expected a prompt whose last token ends where a candidate begins.*; end the prompt in one line break, .*dev.kbest:1 | {OK}
62-prompt-without-chat | {OK},chat=yes | its tokenizer has no template of chats; leave out chat=yes | {OK}
18-prompt-long | {PROMPTED}own,sentences=9 | own:5: a prompt has .* tokens, and a candidate .* has 100 positions, and nothing is cut off: add ,tokens= | {PROMPTED}own,sentences=9,tokens=45
18-prompt-long-alone | {PROMPTED}long,tokens=9 | long:9: a prompt without other sentences has .* tokens=9 allows fewer; write a shorter template | {PROMPTED}long,tokens=90
""",
    {"dev.src": "a\n" * 4},
    3,
    setup=prompts,
)
COMMANDS.append(
    Fault("18-prompt-long-candidate", OK, "dev.kbest:2: expected candidates of at most 100 .* add ,long=window",
        {"dev.kbest": line(2, "a lamp burns", "a " * 120)}, cure=f"{OK},long=window", setup=prompts)
)


def chats(world: World) -> None:
    """A model whose configuration does not name all special tokens of its tokenizer."""
    folder = causal.save(world.folder / "gpt", "llama", 100, ["<|user|>", "<|end|>", "<think>"])
    world.write("gpt/chat_template.jinja", "<|user|>{{ messages[0].content }}<|end|>\n")
    world.write("source", PROMPTS["source"])
    config = json.loads((folder / "tokenizer_config.json").read_text())
    world.write("gpt/tokenizer_config.json", json.dumps({**config, "extra_special_tokens": []}))
    words = json.loads((folder / "tokenizer.json").read_text())
    words["added_tokens"][-2]["normalized"], words["added_tokens"][-1]["special"] = True, False
    words["normalizer"] = {"type": "NFKC"}
    world.write("gpt/tokenizer.json", json.dumps(words))


COMMANDS += [
    Fault(f"62-prompt-chat-{name}", f"{OK},chat=yes", f"source:1: expected texts without the special tokens of chats, found '{re.escape(token)}'; take it out .*dev.kbest:{n}[)]",
        {"dev.kbest": line(n, "burns", f"{text} burns"), "dev.src": "a\n" * 4} if text else {"dev.src": "a<|end|>\n" * 4},
        cure={"dev.kbest": RESTORED, "dev.src": RESTORED}, setup=chats)
    for name, token, text, n in (
        ("special-token", "<|end|>", "<|end|>", 2),
        ("normalised-special-token", "<|end|>", "＜|end|＞", 2),
        ("added-token", "<think>", "<think>", 2),
        ("special-token-of-a-source", "<|end|>", "", 1),
    )
]  # fmt: skip
COMMANDS += [
    Fault(f"62-prompt-chat-template-{name}", f"{OK},chat=yes", f"'evening': the template of chats of its tokenizer fails: {error}.*; copy the tokenizer .* or leave out chat=yes",
        {"gpt/chat_template.jinja": text, "dev.src": "a\n" * 4}, cure=OK, setup=chats)
    for name, error, text in (
        ("nested", "RecursionError", "{% if 1 %}" * 5000 + "{% endif %}" * 5000),
        ("refuses", "TemplateError: no system", "{{ raise_exception('no system') }}"),
    )
]  # fmt: skip


def adapters(world: World) -> None:
    """A model, one of ours, and adapters, with several faults."""
    causal.save(world.folder / "gpt", "llama", positions=100)
    world.model("rnnlm", "lm")
    lora.save(world.folder / "lora", lora.LLAMA)
    lora.save(world.folder / "dora", lora.LLAMA, use_dora=True)
    lora.save(world.folder / "gpt2", lora.GPT2)
    weights = lora.save(world.folder / "pickle", lora.LLAMA) / "adapter_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))


ADAPTED, DIR_ALONE = f"{HF}gpt,adapter=lora", "merge the adapter with merge_and_unload.*, and give DIR without adapter="
COMMANDS += table(
    f"""
66-adapter-of-ours | {S},adapter=lora | adapter is for hf:DIR and seq2seq:DIR, a Hugging Face model | {S}
66-adapter-of-a-server | {SCORE} --lm g=openai:http://localhost:1/v1,model=m,adapter=lora | adapter is for hf:DIR and seq2seq:DIR | {ADAPTED}
66-adapter-of-a-file | {HF}gpt,adapter=w.ini | found adapter=w.ini: expected a folder, found the file 'w.ini'; name another | {ADAPTED}
""",
    {},
    2,
    setup=adapters,
)
COMMANDS += table(
    f"""
66-adapter-missing | {HF}gpt,adapter=none | none: expected adapter_config.json and adapter_model.safetensors of a LoRA adapter, found no adapter_config.json; write | {ADAPTED}
66-adapter-pickle | {HF}gpt,adapter=pickle | pickle: expected .*, found only adapter_model.bin, a pickle; write it again with save_pretrained.* of peft | {ADAPTED}
66-adapter-dora | {HF}gpt,adapter=dora | dora/adapter_config.json: expected plain LoRA, found use_dora true; {DIR_ALONE} | {HF}gpt
66-adapter-of-another-model | {HF}gpt,adapter=gpt2 | gpt2/adapter_model.safetensors: expected layers of LlamaForCausalLM, found base_model.model.transformer.*c_attn.lora_A.weight, a .*; give the model | {ADAPTED}
66-adapter-for-a-text | perplexity hyp.txt --lm hf:gpt,adapter=dora | found use_dora true; {DIR_ALONE} | perplexity hyp.txt --lm hf:gpt,adapter=lora
66-adapter-as-a-model | {HF}lora | lora: expected a whole model, found an adapter .*; give it behind the folder of its model: hf:DIR,adapter=lora | {ADAPTED}
""",
    {},
    3,
    setup=adapters,
)


def tuned_with_a_model(world: World) -> None:
    """Two models, and weights that are tuned with the first."""
    for name, drawn in (("lm", "rnnlm"), ("other", "codclm")):
        world.model(drawn, name)
    world.ok(f"{TUNE} --select none --lm lm=lm")


TUNED = DECODE.replace("w.ini", "tuned.json")
COMMANDS.append(
    Fault("62-weights-of-another-model", f"{TUNED} --lm lm=other",
        "weights tuned with another model, or other options of it, as lm; give --lm lm=lm as in tuning, or tune again, first at tuned.json",
        exit=0, cure=f"{TUNED} --lm lm=lm", setup=tuned_with_a_model)
)



def checkpoints(world: World) -> None:
    """A model, and its folder with the checkpoint of another one."""
    causal.save(world.folder / "gpt")
    other = causal.save(world.folder / "mixed")
    (causal.save(world.folder / "llama", "llama") / CHECKPOINT).replace(other / CHECKPOINT)


CHECKPOINT = "model.safetensors"
COMMANDS.append(
    Fault("62-hf-checkpoint-of-another-model", f"{HF}mixed", "mixed: .* found them without transformer.*; give", exit=3, cure=f"{HF}gpt", setup=checkpoints)
)

# Files beside lists and texts

SOURCE = f"{S} --source dev.src"
GIVEN: Changes = {"lm": BOTH, "text": "it\n", "source": "a\n"}
P = "perplexity text --lm lm"
FILES = table(
    f"""
95-source-missing | {S} | --source: --lm lm needs the source .*give --source FILE | {SOURCE}
95-source-of-a-text-missing | {P} | --source: lm needs the source | {P} --source source
""",
    GIVEN,
)
FILES += table(f"95-source-of-no-use | {SOURCE} | no model here needs .*; leave | {S}", {"lm": PLAIN})
FILES += [
    Fault(f"95-source-of-{n}-lines", SOURCE, f"dev.src: expected 4 lines.*found {n}",
        {**GIVEN, "dev.src": "la lampe\n" * n}, 3, {"dev.src": "la lampe\n" * 4})
    for n in (3, 6)
]
CHANNEL = f"{S},reverse=yes --source dev.src"
ANOTHER_SCRIPT = each_line(lambda one: re.sub("[a-zé]", "一", one))
KNOWN: Changes = {"lm": Model("attention", {"oov_rate": 0.1}), "dev.src": "the lamp\nit is\nno one\na light\n"}
FILES += table(
    f"""
95-reverse-without-source | {S},reverse=yes | --source: --lm lm needs the source .*give --source FILE | {CHANNEL}
95-reverse-with-pmi | {S},reverse=yes,pmi=yes --source dev.src | pmi is not for reverse=yes; leave it out | {CHANNEL}
95-reverse-with-cache | {S},document-cache=0.1,reverse=yes --source dev.src | document-cache is not for reverse | {CHANNEL}
""",
    KNOWN,
)
OTHER = f"{CHANNEL} | attention over the words of a source sentence; leave it out"
FILES += table(f"95-reverse-of-a-text | {OTHER} | {S}", {"lm": PLAIN})
FILES += table(f"95-reverse-of-documents | {OTHER} | {SOURCE}", {"lm": BOTH})
FILES += [
    Fault("95-reverse-one-short", CHANNEL, "dev.src: expected 4 lines.*found 3", {**KNOWN, "dev.src": "it\n" * 3}, 3, {"dev.src": "it\n" * 4}),
    Fault("95-reverse-of-the-target", CHANNEL, "unknown to lm .100.0% of the source's.*leave reverse=yes out if it is a", {**KNOWN, "dev.src": "la\n" * 4}, 0, SOURCE),
    Fault("95-source-of-another-pair", SOURCE, r"12 x source word unknown to lm .100.0% of them; most frequent: 'un', 'mot', .*give the model of this pair",
        {**KNOWN, "dev.src": "un mot d'avant\n" * 4}, 0, {"dev.src": "the lamp\n" * 4}),
    Fault("95-source-of-another-script", SOUND_ONE, r"4 x source letter unknown to g .100.0% of them; most frequent: '一'.*give the model of this pair",
        {"dev.src": "一\n" * 4}, 0, {"dev.src": "the lamp\n" * 4}, setup=translators),
    Fault("95-lists-of-another-script", SOUND_ONE, r".* x letter unknown to g .*: '一'.*give the model of this language.* first at dev.kbest",
        {"dev.kbest": ANOTHER_SCRIPT}, 0, {"dev.kbest": RESTORED}, setup=translators),
    Fault("95-candidates-of-another-script", f"{FIND} seq2seq:marian", r".*source letter unknown to the model .*give the model of this pair.* first at dev.src",
        {"dev.src": "一\n" * 4}, 0, {"dev.src": "the lamp\n" * 4}, setup=translators),
    Fault("95-perplexity-of-another-language", f"{P} --source source", "2 x word unknown to the model .100.0%.*give the model of this language.* first at text",
        {**KNOWN, "text": "un mot\n", "source": "it\n"}, 0, {"text": "the lamp\n"}),
    Fault("95-perplexity-of-another-source", f"{P} --source source", "2 x source word unknown to the model .100.0%.*give text and source in the lang.* first at source",
        {**KNOWN, "text": "it\n", "source": "un mot\n"}, 0, {"source": "the lamp\n"}),
    Fault("95-model-of-the-source", SOURCE, "; reverse=yes if it is a model of the source", {**KNOWN, "dev.kbest": replaced("e", "\u4e00")}, 0, CHANNEL),
]
TOPICS, LABELS, ONE = (f"{S} --topics t", Model("clstm-given-topic"), "expected one label, found 2 words")
APART: Changes = {"lm": LABELS, "t": "1\n2\n1 1\n1\n", "dev.docs": "a\nb\na\nb\n"}
MIXED = f"{TOPICS} --allow-interleaved"
FILES += [
    Fault("95-topic", TOPICS, f"t:2: {ONE}", {"lm": LABELS, "t": "1\n2 3\n1\n1\n"}, 3, {"t": "1\n" * 4}),
    Fault("95-topic-apart", MIXED, f"^rerank: t:3: {ONE}", APART, 3, {"t": line(3, "1 1", "1")}),
]
ANOTHER = "expected the number of another sentence of the document, from 1"
FILES += [
    Fault(f"95-parent-{name}", f"{SOURCE} --parents p", f"p:1: {ANOTHER}",
        {"lm": RST, "p": f"{number}\n0\n0\n0\n"}, 3, {"p": "2\n0\n0\n0\n"})
    for name, number in (("too-large", "3"), ("itself", "1"), ("negative", "-1"), ("word", "x"))
]
BESIDE: Changes = {"text": "it\nit\n\nit\nit\n", "s": "a\na\n\na\na\n", "p": "2\n0\n\n3\n1\n"}
FILES += [Fault("95-parent-beside-a-text", f"{P} --source s --parents p",
    f"p:4: {ANOTHER.split(',')[0]}.*this is sentence 1$", {**BESIDE, "lm": RST}, 3, {"p": line(4, "3", "2")})]

# Texts

NGRAM = "perplexity text --ngram m"
SAID = table(
    f"""
--perplexity-of-no-model | perplexity text | expected --lm DIR or --ngram FILE, found neither | {P}
--ngram-with-lm | {NGRAM} --lm d | --lm: not for the n-gram model of --ngram; leave
--ngram-with-cache | {NGRAM} --document-cache 0.1 | --document-cache: not for
--ngram-across-documents | {NGRAM} --across-documents | --across-documents: not for
--ngram-with-source | {NGRAM} --source s | --source: not for the n-gram model
--ngram-twice | {NGRAM} --duplicate-last-word | --duplicate-last-word: not for the n-gram model
--ngram-device | {NGRAM} --device cpu | --device: not for the n-gram model
--two-standard-inputs | perplexity --ngram - - | only one input can be -
""",
    {"lm": PLAIN, "text": "it\n"},
)
SAID += [
    Fault(f"--{name}", command, f"text:{message}", {"lm": PLAIN, "text": text}, 3, {"text": cure})
    for name, command, text, message, cure in (
        ("no-words", P, "\n", "1: .*found no words", "it\n"),
        ("no-words-in-documents", f"{P} --documents equals", "=\n\n=\n", ".*no words", "it\n=\n"),
    )
]
FAULTS = [*OPTIONS, *COMMANDS, *FILES, *SAID]
