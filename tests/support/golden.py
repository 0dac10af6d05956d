"""The small world of the golden outputs: its files, and one line for each command.

Twelve documents of two sentences with drawn lists, one sentence without candidates; a language
model whose weights are sines; texts and labels made up so that results are known.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from support import seq2seq
from support.models import config_of
from support.world import WORDS, World

from lm.checkpoint import save_model
from lm.model import DocumentLM
from lm.vocabulary import Vocabulary

DOCUMENTS, GAP = "aabbccddeeffgghhiijjkkll", 5
WEIGHTS = {"LM0": [0.5], "TM0": [0.25, 0.125], "pair": [1.5]}
ARPA = """\
\\data\\
ngram 1=7
ngram 2=5

\\1-grams:
-1.25\t<unk>
-99\t<s>\t-0.5
-0.75\t</s>
-0.5\tthe\t-0.25
-1\tlamp\t-0.125
-1.5\tis\t-0.375
-2\tlit

\\2-grams:
-0.25\t<s> the
-0.375\tthe lamp
-0.625\tlamp is
-0.875\tis lit
-0.125\tlit </s>

\\end\\
"""
TEXT = ["the lamp is lit", "the lamp", "", "it is the lamp lit", "lit", "she burns", "it is lit"]
ITEMS = [
    (["the lamp is lit"], "it burns", ["she burns", "one burns"], "animate"),
    (["she gives light"], "she burns", ["it burns"], "animate"),
    (["no lamp", "it is lit"], "no light burns", ["no one burns"], "other"),
]
LISTS = [["she burns", "it burns"], ["the lamp", "a lamp"], ["it is her", "it is him", "it is he"]]
OPENINGS = {"but": "Comparison", "so": "Contingency", "and": None}
TOPICS = (["lamp", "light", "oil", "wick", "flame"], ["boat", "oar", "sail", "mast", "keel"])
OURS, BASE = "out.txt", "base.txt"
COUNTS = [3, 3, 2]  # of candidates in the files of Moses' extractor


def save_models(folder: Path) -> None:
    """Models over twelve words: of documents, of sentences, and one that all words have alike."""
    vocabulary = Vocabulary(tuple(word.encode() for word in WORDS))
    for name, kind, size in (("lm", "codclm", 1.5), ("alone", "rnnlm", 1.5), ("flat", "rnnlm", 0)):
        model = DocumentLM.seeded(config_of(kind, len(vocabulary), 6, 8), 1)
        with torch.no_grad():
            for i, parameter in enumerate(model.parameters()):
                angles = torch.arange(parameter.numel(), dtype=torch.float64) * 0.7 + i
                parameter.copy_(size * angles.sin().reshape(parameter.shape))
        save_model(folder / name, model, vocabulary, {"oov_rate": 0.25})
    if find_spec("transformers"):
        seq2seq.save(folder / "mt")


def fill(world: World, models: Path) -> None:
    """Write all files of the small world."""
    shutil.copytree(models, world.folder, dirs_exist_ok=True)
    world.draw(5, DOCUMENTS, (GAP,))
    world.weights("w.json", WEIGHTS)
    world.weights("lm.json", {"LM0": [0.125], "TM0": [0.0, 0.0], "lm": [2.0], "lmoov": [-0.5]})
    world.write("bigram.arpa", ARPA)
    world.write("text", TEXT)
    names = ("context", "right", "wrong", "phenomenon")
    world.write("items.jsonl", [json.dumps(dict(zip(names, i, strict=True))) for i in ITEMS])
    passages = [f"{a} {b}" for a in ("the", "a", "no") for b in ("lamp", "light", "one", "it")]
    lines = [[passages[(5 * d + 7 * i) % 12] for i in range(3 + d % 2)] for d in range(12)]
    world.write("passages", "\n\n".join("\n".join(line) for line in lines) + "\n")
    pairs = [f"{t} ||| {x} ||| LM0= -1 ||| -1" for t, of_list in enumerate(LISTS) for x in of_list]
    world.write("pairs.kbest", pairs)
    world.write("pairs.ref", ["it burns", "the lamp is lit", "it is him"])
    rng = np.random.default_rng(2)
    world.write("annotated.jsonl", [annotated(rng, n) for n in range(25)])
    world.write("relations.text", ["so it burns", "but it is", "", "and it", "so light", "and it"])
    topical = [" ".join(["the", *rng.choice(TOPICS[n // 5 % 2], 5)]) for n in range(250)]
    world.write("topics.text", ["" if n % 5 == 4 else x for n, x in enumerate(topical)])
    world.write("new.text", ["the lamp", "wick", "", "oar the sail", "what"])
    columns = "3 LM0_0 TM0_0 TM0_1"
    world.write("features.dat", extracted("FEATURES", columns, features_of))
    world.write("scores.dat", extracted("SCORES", "9 BLEU", counts_of))
    world.write("init.opt", ["1 0.5 0.25", "0 0 0", "1 1 1"])
    for name, step in ((OURS, 5), (BASE, 3)):
        world.write(f"{name}.comet", [i % step / 4 for i in range(len(DOCUMENTS))])


def annotated(rng: np.random.Generator, n: int) -> str:
    """A document in which the first word of a sentence tells its relation."""
    openings = rng.choice([*OPENINGS], 6).tolist()
    sentences = [[word, *rng.choice(["lamp", "it", "burns"], 4).tolist()] for word in openings]
    senses = [OPENINGS[word] for word in openings]
    relations = [None, *({"sense": own} if own else None for own in senses[1:])]
    split = "train" if n < 20 else "test"
    return json.dumps({"sentences": sentences, "relations": relations, "split": split})


def features_of(t: int, k: int) -> str:
    return f"{(k * 7 + t * 3) % 5 - 2} {k - t} {(k + t) % 3 / 2}"


def counts_of(t: int, k: int) -> str:
    return f"{5 - k} 6 {4 - k} 5 {3 - k} 4 {2 - k if k < 2 else 0} 3 {6 + t % 2}"


def extracted(kind: str, head: str, row: Callable[[int, int], str]) -> list[str]:
    """Lines of a file of Moses' extractor for twelve sentences."""
    lines = []
    for t in range(12):
        n = COUNTS[t % 3]
        rows = [row(t, k) for k in range(n)]
        lines += [f"{kind}_TXT_BEGIN_0 {t} {n} {head} ", *rows, f"{kind}_TXT_END_0"]
    return lines


@dataclass(frozen=True)
class Case:
    """A command on the small world; what it prints, and the files that it writes, are stored.

    forms: of its --format, if it has any; before: commands that make its files; trained: whether
    its numbers come from a training, which is not the same to the last digit on all machines.
    """

    command: str
    forms: str = ""
    files: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    trained: bool = False

    @property
    def words(self) -> str:
        """The command without arguments."""
        words = self.command.split()
        n = 2 if words[0] in ("lm-eval", "relations", "topics", "list", "cache") else 1
        return " ".join(words[:n])

    def name(self, form: str) -> str:
        """Name of the stored output."""
        return self.words.replace(" ", "-") + (f".{form}" if form else "")


LISTS_OF = "--kbest dev.kbest --docs dev.docs"
PAIRS = f"{LISTS_OF} --pair-scores pair=dev.pairs --weights w.json"
DECODE = f"decode {PAIRS} --out out.txt --summary out.json --trace out.trace --kbest-out out.kbest"
FIRST = "first --kbest dev.kbest --docs dev.docs --out base.txt"
TUNED = "--starts 2 --select none"
ONE = "--device cpu --threads 1"
TRAIN_RELATIONS = "relations train annotated.jsonl --out relations.model"
LEARN = "topics learn topics.text --topics-number 2 --out topics.model"
SCORES = "--scores comet=out.txt:out.txt.comet --scores comet=base.txt:base.txt.comet"
ALL = "text json tsv latex markdown"
CASES = (
    Case("help search"),
    Case("check --kbest dev.kbest --docs dev.docs --ref dev.ref --weights start.json", "text json"),
    Case(
        "train-lm --model rnnlm --train passages --valid passages --embed 4 --hidden 4 --epochs 1 "
        f"--streams 2 {ONE} --out model",
        trained=True,
    ),
    Case(
        "train-ngram --order 2 --discount-fallback --train text --out out.arpa", "", ("out.arpa",)
    ),
    Case(
        "candidates --model seq2seq:mt --source text --no-docs one --n-best 2 --longest 5 "
        "--out out.jsonl",
        files=("out.jsonl",),
        trained=True,
    ),
    Case("perplexity --ngram bigram.arpa text --per-document", "text json tsv"),
    Case(f"lm-eval coherence --lm lm --lm flat passages {ONE}", "text json"),
    Case(f"lm-eval contrastive --lm lm --lm flat items.jsonl {ONE}", "text json tsv"),
    Case(
        f"lm-eval next-sentence --lm lm --lm flat passages --block 3 --context 2 {ONE} "
        "--errors errors.jsonl",
        "text json",
        ("errors.jsonl",),
    ),
    Case(
        "lm-eval pairs --kbest pairs.kbest --no-docs one --ref pairs.ref --context 1 --out pairs",
        "text json",
        ("pairs",),
    ),
    Case(TRAIN_RELATIONS, "text json"),
    Case(
        "relations label --model relations.model relations.text --out labels",
        files=("labels",),
        before=(TRAIN_RELATIONS,),
    ),
    Case(LEARN, "text json"),
    Case("topics label --model topics.model new.text --out labels", "", ("labels",), (LEARN,)),
    Case(
        f"score {LISTS_OF} --pair-scores pair=dev.pairs --weights w.json --scores qe=dev.m "
        "--ngram lm=bigram.arpa --default-weight 0 --out scored",
        files=("scored",),
    ),
    Case(
        f"tune-mert {LISTS_OF} --pair-scores pair=dev.pairs --ref dev.ref {TUNED} --out tuned.json",
        files=("tuned.json",),
    ),
    Case(
        f"tune-moses --features features.dat --scores scores.dat --init init.opt {TUNED} "
        "--out tuned.json",
        files=("tuned.json",),
    ),
    Case(DECODE, files=("out.txt", "out.json", "out.trace", "out.kbest")),
    Case(
        f"evaluate --docs dev.docs --ref dev.ref --kbest dev.kbest --baseline base.txt out.txt "
        f"{SCORES} --detokenize en",
        ALL,
        before=(FIRST, DECODE),
    ),
    Case(
        "report --trace out.trace --summary out.json --weights w.json --docs dev.docs "
        "--ref dev.ref --source dev.ref",
        "html json",
        before=(DECODE,),
    ),
    Case("explain out.trace", "text json", before=(DECODE,)),
    Case(f"ablate {LISTS_OF} --lm lm=lm --weights lm.json --ref dev.ref {ONE}", ALL),
    Case(
        "export --docs dev.docs --out documents ref=dev.ref",
        files=("documents/documents.tsv", "documents/ref/0002.txt"),
    ),
    Case(
        "convert --kbest dev.kbest --docs dev.docs --to jsonl --out out.jsonl", "", ("out.jsonl",)
    ),
    Case(FIRST, files=("base.txt",)),
    Case("diversity --kbest dev.kbest", "text json tsv"),
    Case("weights w.json --to ini --out w.ini", files=("w.ini",)),
    *(
        Case(f"list {kind}", "text json")
        for kind in (
            *("models", "scorers", "decoders", "metrics", "utilities", "formats"),
            "document-formats",
        )
    ),
    Case(
        "cache info --cache cache",
        "text json",
        before=(f"decode {LISTS_OF} --lm lm=lm --weights lm.json --cache cache --out o {ONE}",),
    ),
)
ON_STANDARD_ERROR = ("train-lm",)  # what these commands tell
WITHOUT = {  # outputs that are not stored
    "demo.text",  # of trainings that take long: tests/commands/test_demo.py
    "demo.json",
    "cache-clear",  # nothing is printed
}
