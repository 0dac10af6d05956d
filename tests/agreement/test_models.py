"""Features of language models that commands write, and the paths found with them, by definition.

The truth: `support.definitions` (a sentence at a time, word by word), a forward pass in float64 for
models of Hugging Face, `lm.ngrams` for n-gram models; every path of two documents is enumerated.
"""

import functools
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
import torch
from support import causal, seq2seq
from support.definitions import Texts, definition
from support.ngrams import GOLDEN, golden, scores
from support.programs import ESTIMATOR
from support.server import STUB, ModelServer, log_prob
from support.world import ROOT, World

from lm.causal import open_causal_model
from lm.vocabulary import UNKNOWN

LISTS = {  # a sentence of document x has no candidates
    "x": [["the lamp is lit", "it burns", "a lamp"], [], ["she </s> one", "it burns", ""]],
    "y": [["one", "the one"], ["it is", "no light", "unheard"], ["lamp", "it gives light"]],
}
LISTS["x"].append(["no", "burns it"])
PRESENT = {name: [of_list for of_list in lists if of_list] for name, lists in LISTS.items()}
NUMBERS = {name: [t for t, of_list in enumerate(lists) if of_list] for name, lists in LISTS.items()}
FIRST = {"x": 0, "y": len(LISTS["x"])}
SIDE = {
    "source": ["0 1", "2 2 unheard", "4", "1 0", "3", "0 0 5", "2 1"],
    "relations": ["0", "4", "unheard", "2", "1", "3", "0"],
    "topics": ["3", "1", "2", "unheard", "1", "2", "1"],
    "parents": ["3", "1", "4", "2", "0", "3", "1"],
}
SCORED = ["the lamp", "no one unheard", "it", "a a", "she burns", "light", "is no light"]
PARENTS = {"x": ["1", "2", "-1"], "y": ["-1", "2", "0"]}  # of sentences with candidates, from 0
FEATURES = {"LM0": 0.25, "lm": 1.0, "lmoov": -0.5, "lmpmi": 1.5, "lmnull": 0.5, "used": 1.25}
FEATURES |= {"b": 1.5, "boov": 0.25, "ngram": 0.75, "ngramoov": -0.25}
BEAM = "beam --beam 1000"
Lists = Mapping[str, list[list[str]]]  # of each document, texts of each sentence's candidates
Values = Callable[[str, Texts, int], Mapping[str, float]]  # document, its texts, a sentence


def static(number: int, k: int) -> float:
    """LM0 of a line."""
    return -((3 * number + 5 * k) % 7) / 4


@dataclass(frozen=True)
class Lm:
    """`--lm name=DIR` of a model with drawn weights, and its options."""

    model: str
    name: str = "lm"
    pmi: bool = False
    share: float = 0.0
    side: str = ""
    reverse: bool = False
    shape: Mapping[str, Any] = field(default_factory=dict)

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        saved = world.model(self.model, self.name, seed=len(self.name), **self.shape)
        options = f"--lm {self.name}={self.name}" + ",pmi=yes" * self.pmi
        options += f",document-cache={self.share}" * bool(self.share)
        if self.reverse:
            world.write("dev.scored", SCORED)
            options += ",reverse=yes --source dev.scored"
        options += "".join(f" --{kind} dev.{kind}" for kind in self.side.split())
        of = {}
        for document, own in lists.items():
            rows = [FIRST[document] + t for t, candidates in enumerate(own) if candidates]
            side = {kind: [SIDE[kind][n] for n in rows] for kind in self.side.split()}
            side |= {"parents": PARENTS[document]} if "parents" in side else {}
            of[document] = definition(saved, side, self.share)

        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            if self.reverse:
                source = SCORED[FIRST[document] + NUMBERS[document][t]]
                own = definition(saved, {"source": [texts[t]]})[0]
                return {self.name: own((source,), 0)}
            given = of[document][0](texts, t)
            words = saved.vocabulary.encode(texts[t].encode().split())
            oov = {f"{self.name}oov": sum(word == UNKNOWN for word in words)}
            oov = {} if "pieces" in self.shape else oov
            if self.pmi:
                null = of[document][1](texts, t)
                return {f"{self.name}pmi": given - null, f"{self.name}null": null, **oov}
            return {self.name: given, **oov}

        return options, values


class NGram:
    """`--ngram` of a model by KenLM's `lmplz`."""

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        world.write("m.arpa", (GOLDEN / "lmplz.arpa").read_bytes())
        model = golden("lmplz.arpa")

        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            oov = sum(word.encode() not in model.vocabulary.ids for word in texts[t].split())
            return {"ngram": scores(model, [texts[t]]).sum(), "ngramoov": oov}

        return "--ngram m.arpa", values


class Cache:
    """`--scorer used=document-cache:λ`: Σ log(1 − λ + λ V c / n) over words, V = 10,000."""

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            before = " ".join(texts[:t]).split()
            shares = [10_000 * before.count(word) / len(before or "?") for word in texts[t].split()]
            return {"used": sum(math.log(0.75 + 0.25 * c) for c in shares) if before else 0.0}

        return "--scorer used=document-cache:0.25", values


@dataclass(frozen=True)
class Hf:
    """`--lm lm=hf:DIR` of GPT-2 with drawn weights, given a window of the document."""

    window: str = ""
    sentences: int | None = None
    tokens: int | None = None
    join: str = "newline"
    pmi: bool = False
    positions: int = 64

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        folder = causal.save(world.folder / "gpt", positions=self.positions)
        log_p = causal.definition(folder, self)
        present = {name: [own for own in of_list if own] for name, of_list in lists.items()}

        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            given = log_p(present[document], texts, t)
            if not self.pmi:
                return {"lm": given}
            null = log_p(present[document][t : t + 1], texts[t : t + 1], 0)
            return {"lmpmi": given - null, "lmnull": null}

        return f"--lm lm=hf:gpt{self.window}" + ",pmi=yes" * self.pmi, values


@dataclass(frozen=True)
class Seq2Seq:
    """`--lm lm=seq2seq:DIR` of a model with drawn weights, in a direction, after some sentences."""

    kind: str = "marian"
    window: str = ""
    sentences: int = 0
    mark: str = ""
    reverse: bool = False
    pmi: bool = False

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        languages = seq2seq.LANGUAGES[self.kind]
        folder = seq2seq.save(world.folder / "mt", self.kind)
        world.write("dev.source", SIDE["source"])

        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            rows = [FIRST[document] + n for n, own in enumerate(lists[document]) if own]

            def log_p(first: int) -> float:
                sides = [SIDE["source"][n] for n in rows[first : t + 1]], texts[first : t + 1]
                read, predicted = reversed(sides) if self.reverse else sides
                return seq2seq.log_p(folder, languages, read, predicted, self.mark)

            given = log_p(max(0, t - self.sentences))
            return {"lmpmi": given - log_p(t), "lmnull": log_p(t)} if self.pmi else {"lm": given}

        options = f"--lm lm=seq2seq:mt{languages}{self.window}" + ",pmi=yes" * self.pmi
        return f"'{options}' --source dev.source".replace("'--lm ", "--lm '"), values


PROMPT = """{% for one in sources_before %}
{{ one }} = {{ targets_before[loop.index0] }}
{% endfor %}
{{ source }}{{ sources_after[0] if sources_after and target_language == "de" }}:
"""


@dataclass(frozen=True)
class Prompted:
    """`--lm lm=hf:DIR,prompt=FILE`: text and prompt tokenised as one, the prompt as code here."""

    sentences: int

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        model = open_causal_model(causal.save(world.folder / "gpt", "llama", positions=400))
        world.write("p.jinja", PROMPT.encode())
        sources = {
            name: [SIDE["source"][FIRST[name] + t] for t, own in enumerate(of_list) if own]
            for name, of_list in lists.items()
        }

        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            own, n = sources[document], self.sentences
            pairs = [f"{own[s]} = {texts[s]}\n" for s in range(max(0, t - n), t)]
            prompt = (
                "".join(pairs) + own[t] + (own[t + 1] if n and t + 1 < len(own) else "") + ":\n"
            )
            whole, first = model.encode([prompt + texts[t]])[0], len(model.encode([prompt])[0])
            return {"lm": causal.obvious(model, [model.begin, *whole[:first]], whole[first:])}

        options = f"--lm lm=hf:gpt,prompt=p.jinja,sentences={self.sentences},target-language=de"
        return f"{options} --source dev.source", values


CHAT = """{% for one in messages %}<|{{ one['role'] }}|>{{ one['content'] }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""


def plain(folder: Path) -> Callable[[str, str], float]:
    """log p(candidate | prompt), tokenised together, by transformers alone in float64."""
    transformers = pytest.importorskip("transformers")
    words = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).double().eval()

    @functools.cache
    def log_p(prompt: str, candidate: str) -> float:
        first, ids = (
            words(x, add_special_tokens=False).input_ids for x in (prompt, prompt + candidate)
        )
        assert ids[: len(first)] == first
        with torch.no_grad():
            log_probs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=1)
        return sum(float(log_probs[n - 1, ids[n]]) for n in range(len(first), len(ids)))

    return log_p


class Chat:
    """`--lm lm=hf:DIR,prompt=FILE,chat=yes`: a user's turn, and its answer."""

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        marks = ("<|user|>", "<|end|>", "<|assistant|>")
        folder = causal.save(world.folder / "chat", "llama", positions=400, more=marks)
        world.write("chat/chat_template.jinja", CHAT.encode())
        world.write("p.jinja", b"{{ targets_before | join }} {{ source }} =")
        log_p = plain(folder)

        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            source = SIDE["source"][FIRST[document] + NUMBERS[document][t]]
            before = texts[t - 1] if t else ""
            prompt = f"<|user|>{before} {source} =<|end|>\n<|assistant|>\n"
            return {"lm": log_p(prompt, texts[t])}

        options = "--lm lm=hf:chat,prompt=p.jinja,sentences=1,chat=yes"
        return f"{options} --source dev.source", values


@dataclass(frozen=True)
class Served:
    """`--lm lm=openai:URL`: a server whose numbers are a function of all that stands before."""

    sentences: int

    def opened(self, world: World, lists: Lists) -> tuple[str, Values]:
        def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
            before = "".join(f"{one}\n" for one in texts[max(0, t - self.sentences) : t])
            return {"lm": log_prob(before, f"{texts[t]}\n")}

        return f"--lm lm=openai:{STUB.url()},model=toy,sentences={self.sentences}", values


LAST, BLOCK = {"reverse_documents": True}, "sweeps:block=3"
MODELS: dict[str, tuple[str, list[Any]]] = {  # a search that is exact, and features
    "order-0": ("viterbi", [Lm("rnnlm")]),
    "topic-of-the-prefix": ("viterbi", [Lm("clstm-sentseg")]),
    "self-normalised": ("viterbi", [Lm("rnnlm", shape={"head": "self-normalised"})]),
    "order-1-added-to-logits": ("viterbi", [Lm("codclm")]),
    "order-1-another-pass": ("viterbi", [Lm("rlm-bow-ef-1")]),
    "order-1-classes": ("viterbi", [Lm("codclm", shape={"head": "classes"})]),
    "order-1-hashed": ("viterbi", [Lm("codclm", shape={"head": "hashed"})]),
    "order-1-layers": ("viterbi", [Lm("dclm-decoupled", shape={"layers": 2})]),
    "subwords": ("viterbi", [Lm("codclm", shape={"pieces": True})]),
    "subwords-and-source": ("viterbi", [Lm("attention", side="source", shape={"pieces": True})]),
    "order-2": ("viterbi", [Lm("rlm-bow-lf-2")]),
    "order-2-tokens": ("exhaustive", [Lm("dclm-two-sentence")]),
    "unbounded": (BEAM, [Lm("ccdclm")]),
    "unbounded-states": (BEAM, [Lm("dam")]),
    "unbounded-hashed": (BEAM, [Lm("hrnnlm-lin")]),
    "bags-of-words": (BEAM, [Lm("rnnslm")]),
    "backward": ("viterbi", [Lm("codclm", shape={"backward": True})]),
    "pmi": ("viterbi", [Lm("codclm", pmi=True)]),
    "pmi-unbounded": (BEAM, [Lm("hrnnlm", pmi=True)]),
    "document-cache": (BEAM, [Lm("rnnlm", share=0.2)]),
    "document-cache-and-pmi": (BEAM, [Lm("codclm", share=0.3, pmi=True)]),
    "n-grams": ("viterbi", [NGram()]),
    "source": ("viterbi", [Lm("dclm-bilingual", side="source")]),
    "source-words": ("viterbi", [Lm("attention", side="source")]),
    "source-words-and-words-before": ("viterbi", [Lm("attention-gated", side="source", pmi=True)]),
    "channel-of-words": ("viterbi", [Lm("attention", reverse=True)]),
    "source-and-context": ("viterbi", [Lm("dclm-bilingual-decoupled", side="source", pmi=True)]),
    "topics": ("viterbi", [Lm("clstm-given-topic", side="topics")]),
    "relations": (BEAM, [Lm("dclm-projection", side="relations")]),
    "parents": ("viterbi", [Lm("dclm-rst", side="source parents")]),
    "next-sentence": (BLOCK, [Lm("dclm-right-target")]),
    "next-sentence-reversed": (BLOCK, [Lm("dclm-right-target", shape=LAST)]),
    "reversed-unbounded": (BEAM, [Lm("ccdclm", "b", shape=LAST)]),
    "reversed-pmi": (BEAM, [Lm("hrnnlm", pmi=True, shape=LAST)]),
    "both-directions": ("viterbi", [Lm("codclm"), Lm("codclm", "b", shape=LAST)]),
    "both-directions-of-two-orders": (BEAM, [Lm("codclm"), Lm("ccdclm", "b", shape=LAST)]),
    "both-directions-unbounded": (BLOCK, [Lm("ccdclm"), Lm("ccdclm", "b", shape=LAST)]),
    "several": (BEAM, [Lm("codclm", pmi=True), Lm("drnnlm", "b"), NGram(), Cache()]),
    "hf": (BEAM, [Hf()]),
    "hf-prompt": ("viterbi", [Prompted(1)]),
    "hf-prompt-of-two": ("viterbi", [Prompted(2)]),
    "server": ("viterbi", [Served(1)]),
    "server-of-two": ("viterbi", [Served(2)]),
    "hf-prompt-alone": ("viterbi", [Prompted(0)]),
    "hf-chat": ("viterbi", [Chat()]),
    "hf-sentence": ("viterbi", [Hf(",sentences=1", 1, pmi=True)]),
    "hf-alone": ("viterbi", [Hf(",tokens=0", tokens=0)]),
    "translation": ("viterbi", [Seq2Seq("nllb")]),
    "translation-of-context": ("viterbi",
        [Seq2Seq("mbart", ",sentences=1,separator=</s>", 1, "</s>", pmi=True)]),
    "channel": ("viterbi", [Seq2Seq("marian-many", ",reverse=yes", reverse=True)]),
    "channel-of-context": ("viterbi", [Seq2Seq("t5", ",reverse=yes,sentences=2", 2, reverse=True)]),
    "hf-tokens-and-spaces": (BEAM, [Hf(",tokens=9,join=space", tokens=9, join="space")]),
}  # fmt: skip


def written(
    world: World, lists: Lists, sources: list[Any], lm0: float = FEATURES["LM0"]
) -> tuple[str, Values]:
    """Options for the features of lists, which are written with weights, and their values."""
    sentences = [own for of_document in lists.values() for own in of_document]
    rows = [(t, k, text) for t, sentence in enumerate(sentences) for k, text in enumerate(sentence)]
    world.write("dev.kbest", [f"{t} ||| {x} ||| LM0= {static(t, k)} ||| 0" for t, k, x in rows])
    world.write("dev.docs", [name for name, of_list in lists.items() for _ in of_list])
    opened = [source.opened(world, lists) for source in sources]

    def values(document: str, texts: Texts, t: int) -> Mapping[str, float]:
        return {k: v for _, own in opened for k, v in own(document, texts, t).items()}

    firsts = {name: tuple(own[0] for own in of_list if own) for name, of_list in lists.items()}
    names = [name for _, own in opened for name in own("x", firsts["x"], 0)]
    world.weights("w.json", {"LM0": lm0, **{name: FEATURES[name] for name in names}})
    return " ".join(options for options, _ in opened), values


def texts_of(document: str, path: tuple[int, ...]) -> Texts:
    return tuple(own[k] for own, k in zip(PRESENT[document], path, strict=True))


def features(line: str) -> dict[str, float]:
    """Of a line in the format of Moses."""
    return {k: float(v) for k, v in re.findall(r"(\w+)= (\S+)", line.split(" ||| ")[2])}


def check_lists(world: World, name: str, paths: dict[str, tuple[int, ...]], values: Values) -> None:
    """The features of a list are those of each candidate in the place of a path's choice."""
    lines, names = iter(world.lines(name)), [*world.json("w.json")["weights"]]  # of the options
    for document, path in paths.items():
        for t, own in enumerate(PRESENT[document]):
            for k, text in enumerate(own):
                texts = texts_of(document, (*path[:t], k, *path[t + 1 :]))
                number = FIRST[document] + NUMBERS[document][t]
                truth = {"LM0": static(number, k), **values(document, texts, t)}
                line = next(lines)
                assert line.startswith(f"{number} ||| {text} ||| ")
                assert features(line) == pytest.approx(truth, abs=1e-3)
                assert [*features(line)] == names


@pytest.mark.parametrize("name", MODELS)
def test_features_are_given_the_first_candidates_and_best_path(name: str, world: World) -> None:
    for kind, lines in SIDE.items():
        world.write(f"dev.{kind}", lines)
    search, sources = MODELS[name]
    options, values = written(world, LISTS, sources)
    world.ok(f"score --kbest dev.kbest --docs dev.docs {options} --out scored --no-cache")
    check_lists(world, "scored", {name: (0,) * 3 for name in PRESENT}, values)
    reports = "--summary out.json --kbest-out k --trace trace"
    command = f"decode --kbest dev.kbest --docs dev.docs {options} --weights w.json {reports}"
    run = world.ok(f"{command} --out out --search {search}")
    chosen: dict[str, tuple[int, ...]] = {}
    for document in world.json("out.json")["documents"]:
        name = document["id"]
        truth = dict[tuple[int, ...], float]()
        for path in product(*(range(len(own)) for own in PRESENT[name])):
            texts = texts_of(name, path)
            truth[path] = sum(
                FEATURES["LM0"] * static(FIRST[name] + NUMBERS[name][t], path[t])
                + sum(FEATURES[k] * v for k, v in values(name, texts, t).items())
                for t in range(len(texts))
            )
        best = max(truth, key=lambda path: truth[path])
        assert sorted(truth.values())[-2] < truth[best] - 1e-3  # no tie decides
        chosen[name] = tuple(k for k in document["choices"] if k is not None)
        assert document["score"] == pytest.approx(truth[best], abs=1e-3)
        assert chosen[name] == best
        assert document["exact"] == ("sweeps" not in search)
    first, *others = (text for name in chosen for text in texts_of(name, chosen[name]))
    assert world.lines("out") == [first, "", *others]  # no candidates
    check_lists(world, "k", chosen, values)
    for line in map(json.loads, world.lines("trace")):
        t, name = NUMBERS[line["document"]].index(line["sentence"]), line["document"]
        own = values(name, texts_of(name, chosen[name]), t)
        assert {k: line["features"][k] for k in own} == pytest.approx(own, abs=1e-3)
    assert "tokens scored in" in run.err or "ngram" in options or "used" in options


# Searches of models of unbounded order, with and without scores of earlier searches
DEEP = {
    "x": [["the lamp is lit", "it", "one burns light"], ["it gives light", "no one", "no"],
        ["", "no one", "it burns"], ["the lamp", "she", "a a a"]],
    "y": [["no one", "she"], ["the light", "it", "it"], ["is", "a lamp"]],
}  # fmt: skip
GREEDY, SMC, BLOCKS = "beam --beam 1", "smc:particles=9 --alpha 0.5", "sweeps:block=2"
MEAN = "survivors:merge=mean --alpha 0.5"  # of bags and of states to attend to there is none
SWEEPS = ("sweeps:horizon=0", "sweeps:gibbs=1 --alpha 0.5 --beam 3")
SEARCHED: dict[str, tuple[Lm | Hf | Seq2Seq | Cache, tuple[str, ...]]] = {
    "last-state": (Lm("ccdclm"), (GREEDY, SMC, MEAN)),
    "carried-state": (Lm("drnnlm", pmi=True), (MEAN, BLOCKS)),
    "sentence-level": (Lm("hrnnlm", shape=LAST), (SMC, MEAN)),
    "attention": (Lm("adclm"), (SMC, BLOCKS)),
    "bags": (Lm("rnnslm"), (GREEDY,)),
    "order-1-in-passes": (Lm("rlm-bow-ef-1", pmi=True, shape=LAST), (BLOCKS,)),
    "document-cache-beside": (Cache(), (SMC, BLOCKS)),
    "document-cache": (Lm("codclm", share=0.3), (BLOCKS,)),
    "next-sentence": (Lm("dclm-right-target"), SWEEPS),
    "hf": (Hf(), (GREEDY, SMC, BLOCKS)),
    "translation": (Seq2Seq("marian", ",sentences=3", 3), (GREEDY, BLOCKS)),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_a_path_has_the_score_of_its_definition_whatever_found_it(name: str, world: World) -> None:
    """Where bits are promised, what is cached changes none."""
    source, searches = SEARCHED[name]
    options, values = written(world, DEEP, [source], lm0=0.0)
    command = f"decode --kbest dev.kbest --docs dev.docs {options} --weights w.json -q"
    command += " --deterministic --summary out.json --kbest-out k --out out"
    for search in searches:
        result = []
        for cache in (" --no-cache", ""):
            world.ok(f"{command} --search {search}{cache}")
            result.append([world.content(file) for file in ("out.json", "k")])
        assert result[0] == result[1]
        for document in world.json("out.json")["documents"]:
            pairs = zip(DEEP[document["id"]], document["choices"], strict=True)
            texts = tuple(own[k] for own, k in pairs)
            truth = sum(
                FEATURES[feature] * value
                for t in range(len(texts))
                for feature, value in values(document["id"], texts, t).items()
            )
            assert document["score"] == pytest.approx(truth, abs=1e-3)


# Windows of models of Hugging Face
def test_contexts_beyond_the_positions_lose_whole_sentences_and_are_counted(world: World) -> None:
    options, values = written(world, DEEP, [Hf(positions=20)])
    run = world.ok(f"score --kbest dev.kbest --docs dev.docs {options} --out scored")
    assert re.search(r"\d+ x context longer than the 20 positions of lm", run.err)
    for line in world.lines("scored"):
        number, text, *_ = line.split(" ||| ")
        t = int(number) - 4 * (int(number) > 3)
        firsts = [own[0] for own in DEEP["x" if int(number) < 4 else "y"]]
        texts = (*firsts[:t], text)
        expected = pytest.approx(values("x" if int(number) < 4 else "y", texts, t)["lm"], abs=1e-3)
        assert features(line)["lm"] == expected
    narrow = world.ok(f"score --kbest dev.kbest --docs dev.docs {options},tokens=1 --out scored")
    assert "longer than" not in narrow.err


def test_windows_that_a_model_cannot_be_given_are_refused_with_their_cure(world: World) -> None:
    options, _ = written(world, {"x": [["it"], ["it"]]}, [Hf()])
    command = f"score --kbest dev.kbest --docs dev.docs --out scored {options}"
    alone = world.run(f"{command},tokens=0,pmi=yes").err
    assert "without context, whose PMI is always 0; leave the option out, or give a wind" in alone
    words = world.json("gpt/tokenizer.json")
    words["normalizer"] = {"type": "Strip", "strip_left": False, "strip_right": True}
    world.write("gpt/tokenizer.json", json.dumps(words))
    run = world.run(command)
    assert run.exit == 3
    assert re.search("gpt: its tokenizer has no newline, .*; add ,join=space$", run.err, re.M)
    world.ok(f"{command},join=space")


def test_detokenised_texts_are_what_the_model_reads_and_have_own_scores(world: World) -> None:
    plain: Lists = {"x": [['he reads "light".', "a lamp"], ["she is old."]]}
    tokenised: Lists = {"x": [["he reads &quot; light &quot; .", "a lamp"], ["she is old ."]]}
    result = []
    for lists, window in ((plain, ""), (tokenised, ",detokenize=en"), (tokenised, "")):
        options, _ = written(world, lists, [Hf(window)])
        world.ok(f"score --kbest dev.kbest --docs dev.docs {options} --out scored")
        result.append([features(line)["lm"] for line in world.lines("scored")])
    assert result[0] == pytest.approx(result[1], abs=1e-5)
    assert result[2] != pytest.approx(result[1], abs=1e-3)


# Models in tuning, and the work that they do
@pytest.mark.parametrize(
    "sources",
    [
        [Lm("codclm", pmi=True, share=0.2), Lm("codclm", "b", shape=LAST)],
        [Lm("dclm-right-target")],
        [Hf(",sentences=1", 1)],
    ],
    ids=["both-directions", "next-sentence", "hf"],
)
def test_weights_are_tuned_with_models_that_they_name(sources: list[Any], world: World) -> None:
    chosen, _ = written(world, DEEP, sources)
    names = world.json("w.json")["weights"].keys()
    world.write("dev.ref", [of_list[-1] or "no" for lists in DEEP.values() for of_list in lists])
    lists = f"--kbest dev.kbest --docs dev.docs {chosen}"
    tune = f"tune-mert {lists} --ref dev.ref --start w.json --top 2 --select none --starts 1"
    world.ok(f"{tune} --out tuned.json")
    result = world.json("tuned.json")
    assert result["weights"].keys() == names
    models = result["provenance"]["models"]
    for source in sources:
        if isinstance(source, Lm):
            own = models[source.name]
            assert (own["folder"], own.get("pmi", False)) == (source.name, source.pmi)
            expected = source.share or own.get("document_cache", 0.0)
            assert own.get("document_cache", 0.0) == expected
        else:
            assert models["lm"]["folder"] == f"hf:gpt{source.window}"
    assert len({model["digest"] for model in models.values()}) == len(sources)
    world.ok(f"decode {lists} --weights tuned.json --out out")


@pytest.mark.parametrize("search", ["greedy", "beam --beam 1", "smc:particles=1 --alpha 0.5"])
def test_a_search_scores_what_it_visits_and_first_candidates(search: str, world: World) -> None:
    options, _ = written(world, DEEP, [Hf(",sentences=1", 1)])
    command = f"decode --kbest dev.kbest --docs dev.docs {options} --weights w.json --deterministic"
    command += " --summary out.json --out out"

    def decoded(search: str) -> tuple[int, dict[str, Any]]:
        said = world.ok(f"{command} --search {search}").err
        (tokens,) = re.findall(r"lm: (?:.*, )?([\d,]+) tokens scored in", said) or ["0"]
        return int(tokens.replace(",", "")), world.json("out.json")

    tokens, result = decoded(search)
    model = open_causal_model(world.folder / "gpt")
    expected = {"visited": 0, "all": 0}
    for document in result["documents"]:
        lists = [own for own in DEEP[document["id"]] if own]
        for t, texts in enumerate(lists):
            visited = {lists[t - 1][k] for k in (0, document["choices"][t - 1])} if t else {""}
            size = sum(map(len, model.encode([f"{text}\n" for text in texts])))
            expected["visited"] += size * len(visited)
            expected["all"] += size * (len({*lists[t - 1]}) if t else 1)
    assert tokens == expected["visited"] < expected["all"]
    assert decoded("viterbi")[0] == expected["all"] - expected["visited"]
    world.ok("cache clear")
    assert decoded("viterbi")[0] == expected["all"]
    assert decoded(search) == (0, result)


def test_a_beam_that_scores_what_it_visits_keeps_each_last_choice_once(world: World) -> None:
    """It is exact where it holds all of them, also where other documents have more."""
    lists = DEEP | {"y": [own[:2] for own in DEEP["y"]]}
    options, _ = written(world, lists, [Hf(",sentences=1", 1)])
    command = "decode --kbest dev.kbest --docs dev.docs --weights w.json"
    world.ok(f"{command} {options} --summary out.json --out out --search beam --beam 2")
    result = world.json("out.json")
    assert [document["exact"] for document in result["documents"]] == [False, True]
    assert "|ctx:1|" in result["signature"]
    last = Lm("adclm", "b", shape=LAST)  # read from the other end, like the sum of both
    options, _ = written(world, lists, [Hf(",sentences=1", 1), last])
    said = world.ok(f"{command} {options} --summary both.json --out out --search beam --beam 1")
    assert "documents are searched from the last sentence to the first" in said.err


def test_commands_on_texts_score_with_causal_models_as_those_on_lists(world: World) -> None:
    log_p = causal.definition(causal.save(world.folder / "gpt"), Hf())
    documents = [["the lamp is lit", "it reads"], ["she", "no sea", "it"]]

    def log_ps(before: list[str], variants: list[str]) -> list[float]:
        texts = [(*before, variant) for variant in variants]
        return [log_p([[one] for one in own], own, len(before)) for own in texts]

    def of(text: tuple[str, ...]) -> float:
        return sum(log_ps([*text[:t]], [text[t]])[0] for t in range(len(text)))

    world.write("text", [*documents[0], "", *documents[1]])
    result = world.ok("perplexity --lm hf:gpt text --per-document --format json").json
    nats = [-of((*document,)) for document in documents]
    assert [document["nats"] for document in result["documents"]] == pytest.approx(nats, abs=1e-3)
    assert result["perplexity"] == pytest.approx(math.exp(sum(nats) / result["tokens"]), rel=1e-4)
    result = world.ok("lm-eval coherence --lm g=hf:gpt text --format json").json["models"][0]
    right = [
        sum(of((*document,)) > of(other) for other in {*permutations(document)} - {(*document,)})
        for document in documents
    ]
    assert result["right"] == right
    items = [(document[:-1], [document[-1], "he is old", "no"]) for document in documents]
    lines = [{"context": c, "right": v[0], "wrong": v[1:]} for c, v in items]
    world.write("items", [json.dumps(line) for line in lines])
    result = world.ok("lm-eval contrastive --lm hf:gpt items --format json").json["models"][0]
    for name, given in (("context", True), ("null", False), ("other", True)):
        contexts = [before if given else [] for before, _ in items]
        contexts = contexts[::-1] if name == "other" else contexts
        both = [log_ps(c, v) for c, (_, v) in zip(contexts, items, strict=True)]
        share = sum(own[0] > max(own[1:]) for own in both) / 2
        assert result["groups"][0]["accuracies"][name]["accuracy"] == share
    command = "lm-eval next-sentence --lm g=hf:gpt,sentences=1 --block 2 --context 1 text"
    result = world.ok(f"{command} --format json").json["models"][0]
    rows = [log_ps(document[:1], [other[1] for other in documents]) for document in documents]
    expected = sum(max(row) == row[n] for n, row in enumerate(rows)) / len(rows)
    assert result["accuracies"]["log_p"]["accuracy"] == expected


def test_the_token_that_texts_begin_with_is_chosen_once_and_kept_with_the_weights(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rerank.scorers.causal_lm.CLEARLY", 1.0)
    folder = causal.save(world.folder / "gpt", more=("<a>", "<b>", "<c>"))
    options, _ = written(world, DEEP, [])
    world.write("dev.ref", [of_list[-1] or "no" for lists in DEEP.values() for of_list in lists])
    world.weights("w.json", {"LM0": 0.25, "lm": 1.0})
    lists = f"--kbest dev.kbest --docs dev.docs {options} --lm lm=hf:gpt"
    tuning = f"tune-mert {lists} --ref dev.ref --start w.json --out tuned.json"
    said = world.ok(tuning).err
    model = open_causal_model(folder)
    firsts = [own[0] for found in DEEP.values() for own in found if own][:12]
    encoded = [one for one in model.encode([f"{first}\n" for first in firsts]) if one]
    sums = {
        name: sum(causal.obvious(model, [token], one) for one in encoded)
        for name, token in model.tokenizer.get_added_vocab().items()
    }
    best = max(sums, key=lambda name: sums[name])
    assert best != "<|endoftext|>"
    assert f"lm: texts begin with {best}, perplexity of the first" in said
    with monkeypatch.context() as without_tensors:
        without_tensors.setattr("lm.causal_folder._loaded", None)
        assert f"lm: texts begin with {best}, perplexity of the first" in world.ok(tuning).err
    assert world.json("tuned.json")["provenance"]["models"]["lm"]["begin"] == best
    decoded = [
        (world.ok(f"decode {lists}{key} --weights tuned.json --kbest-out k").err, world.lines("k"))
        for key in ("", f",begin={best}", ",begin=none")
    ]
    assert decoded[0][1] == decoded[1][1] != decoded[2][1]
    assert "texts begin" not in decoded[0][0]


def test_candidates_beyond_the_positions_are_named_or_scored_by_parts(world: World) -> None:
    folder = causal.save(world.folder / "gpt", "llama", positions=16)
    long = "it gives light by night and no sea is old"
    world.write("l", [f"0 ||| {text} ||| A= -1 ||| -1" for text in ("no", long)])
    command = "score --kbest l --no-docs one --lm g=hf:gpt"
    refused = world.refused(command, exit=3)
    assert "l:2: expected candidates of at most 16 tokens" in refused
    assert ",long=window behind the folder" in refused
    run = world.ok(f"{command},long=window")
    assert "1 x text longer than the 16 positions of g, scored by parts, first at l [" in run.err
    scored = run.out.splitlines()
    model = open_causal_model(folder)
    short, tokens = model.encode(["no\n", f"{long}\n"])
    parts = [([0], tokens[:16])]
    parts += [(tokens[n - 8 : n], tokens[n : n + 8]) for n in range(16, len(tokens), 8)]
    truth = [causal.obvious(model, [0], short), sum(causal.obvious(model, *part) for part in parts)]
    assert [features(line)["g"] for line in scored] == pytest.approx(truth, abs=1e-3)


# Models in given contexts
def test_a_first_pass_without_a_slow_scorer_leaves_it_the_best_candidates(world: World) -> None:
    world.write("qe.py", ESTIMATOR)
    qe = f"--scorer 'qe=command:{sys.executable} -IS qe.py,window=2'"
    command = "decode --docs dev.docs --default-weight 1 --out out --weights w.ini"
    qe += " --source dev.src"
    world.ok(f"{command} --kbest dev.kbest --kbest-out first")
    recipe = (ROOT / "recipes" / "docs" / "scorers.md").read_text()
    (sort,) = re.findall("^awk .*sorted.nbest$", recipe, re.MULTILINE)
    subprocess.run(["sh", "-c", sort], cwd=world.folder, check=True)
    totals: dict[str, list[float]] = {}
    for number, _, _, total in (line.split(" ||| ") for line in world.lines("sorted.nbest")):
        totals.setdefault(number, []).append(float(total))
    assert [*totals] == [*"0123"]
    assert all(own == sorted(own, reverse=True) for own in totals.values())
    world.ok(f"{command} --kbest sorted.nbest --top 2 {qe}")


def test_a_model_behind_a_server_has_the_scores_of_its_folder(world: World) -> None:
    """The server tokenises, decodes and echoes as transformers do; numbers are in float32."""
    folder = causal.save(world.folder / "gpt", "llama", positions=300)
    world.write("p.jinja", b"{{ source }} {{ targets_before | join }} =\n")
    scores = []
    for model in ("hf:gpt", f"openai:{ModelServer(folder).url},model=x,concurrency=1"):
        command = "score --kbest dev.kbest --docs dev.docs --source dev.src --out scored"
        world.ok(f"{command} --no-cache --lm g={model},prompt=p.jinja,sentences=1")
        scores.append([features(line)["g"] for line in world.lines("scored")])
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert len({*scores[0]}) == len(scores[0]) == len(world.lines("dev.kbest"))
