"""Models that score lists on a device, ours and scripts with their weights: what `run.py` times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import causal
import good
import numpy as np
import torch
from lists import Set
from numpy.typing import NDArray
from obvious import ContextLM
from plain import Attention
from tasks import TASKS, InContext, flops, hypotheses, seeded

from decoders.batching import run_batch
from decoders.beam import beam
from lm.backend import Backend
from lm.causal import CausalContext, CausalEngine, CausalModel
from lm.corpus import Corpus
from lm.model import Config, DocumentLM
from lm.scoring import ScoringEngine, after, independent, pairs
from lm.sentences import Rows
from lm.side_information import SideText
from lm.trie import Candidates

PRECISIONS = ("float32", "tf32", "bfloat16")
TYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16}
TEST = 12, 813, 94  # documents, sentences and candidates of `test`
Scores = list[NDArray[Any]]


@dataclass(frozen=True)
class Sizes:
    """Sizes of models, numbers of sentences of each task, and of updates."""

    hidden: int
    words: int
    transformer: tuple[int, int]  # units, layers
    sentences: dict[str, int]
    checked: int  # sentences whose scores are compared with the CPU's
    updates: int
    test: tuple[int, int, int] = TEST


REAL = Sizes(
    1024,
    30_000,
    (768, 12),
    {"rnnlm": 2000, "codclm": 240, "ccdclm 8": 120, "ccdclm 64": 48, "attention": 480, "gpt2": 48},
    12,
    20,
)
QUICK = Sizes(
    32,
    300,
    (16, 2),
    dict.fromkeys(REAL.sentences, 12) | {"gpt2": 4},
    4,
    2,
    (2, 3, 5),
)


@dataclass(frozen=True)
class Case:
    """A model that scores lists.

    ours, plain: make what scores, of a device, a precision and lists; count, flops: hypotheses of
    lists, and operations of the products that they need.
    """

    name: str
    ours: Callable[[torch.device, str, Set], Callable[[], Scores]]
    plain: Callable[[torch.device, str, Set], Callable[[], Scores]]
    count: Callable[[Set], int]
    flops: Callable[[Set], float]


class Together(InContext):
    """Documents whose beams advance in step, as `decode` has it."""

    @classmethod
    def extend_together(cls, requests: Sequence[Any]) -> list[Any]:
        """Scores after the contexts of all documents, in one batch."""
        result = after(requests[0][0].scorer, [(p.lists[t], states) for p, states, t in requests])
        return [(scores, (r[1], kept)) for r, (scores, kept) in zip(requests, result, strict=True)]


def beams(engine: ScoringEngine, data: Set, width: int) -> Scores:
    """Score of each document's best path."""
    problems = [Together(engine, [Candidates.of([c]) for c in d]) for d in data.documents()]
    result = run_batch(problems, [beam.steps(p, width=width) for p in problems])
    return [np.array([paths[0].score]) for paths in result]


def word_case(name: str, sizes: Sizes, width: int | None = None) -> Case:
    """`rnnlm`, `codclm` or `ccdclm`, beside `good.py`."""
    config = Config(name, sizes.words, sizes.hidden, sizes.hidden, "lstm", tied=True)
    model = seeded(config)

    def ours(device: torch.device, dtype: str, data: Set) -> Callable[[], Scores]:
        engine = ScoringEngine.of(model.to(device), Backend(device, dtype=dtype))
        if width:
            return lambda: beams(engine, data, width)
        lists, first = Candidates.of(data.lists), np.array(data.first)  # as `decode` reads them
        return lambda: pairs(engine, lists, first) if model.order else independent(engine, lists)

    def plain(device: torch.device, dtype: str, data: Set) -> Callable[[], Scores]:
        script = ContextLM.of(model.to(device))
        on_cuda = device.type == "cuda"  # chunks that fill a GPU
        good.ROWS, good.FLOATS = ((1 << 27) // sizes.words, 1 << 28) if on_cuda else (64, 1 << 20)
        if width:
            return lambda: [np.array([good.beam(script, d, width)[0]]) for d in data.documents()]
        return lambda: TASKS[name].peers["good"].scores(script, data, None)

    return Case(
        f"{name} {width}" if width else name,
        ours,
        plain,
        lambda data: hypotheses(name, data, width=width or 1),
        lambda data: flops(config, data, width=width or 1),
    )


def source_of(data: Set) -> list[list[int]]:
    """A made-up source sentence for each list: its first candidate from right to left."""
    return [candidates[0][::-1] or [3] for candidates in data.lists]


def attention_case(sizes: Sizes) -> Case:
    """`attention`, whose source is made up, beside `plain.Attention`."""
    h, v = sizes.hidden // 2, sizes.words
    config = Config("attention", v, h, h, "lstm", tied=False, source_words=v)
    model = DocumentLM.seeded(config, 1).eval()

    def ours(device: torch.device, dtype: str, data: Set) -> Callable[[], Scores]:
        engine = ScoringEngine.of(model.to(device), Backend(device, dtype=dtype))
        lists, source = Candidates.of(data.lists), Corpus.of([source_of(data)])
        side = SideText(source.tokens, source.sentences).rows(np.arange(len(lists)), device)
        return lambda: list(independent(engine, lists, Rows.of(side)))

    def plain(device: torch.device, dtype: str, data: Set) -> Callable[[], Scores]:
        script, source = Attention(model.to(device)), source_of(data)
        return lambda: [scores.numpy() for scores in script.scores(data.lists, source)]

    def operations(data: Set) -> float:
        """Two levels, attention twice, the merge, the classes and the words of a class."""
        length = float(np.mean([len(line) for line in source_of(data)]))
        each = 36 * h * h + 8 * length * h + 2 * h * v**0.5
        return sum(data.list_nodes()) * each + data.tokens / 2 * 4 * h * v**0.5

    return Case("attention", ours, plain, lambda data: hypotheses("rnnlm", data), operations)


def causal_case(sizes: Sizes) -> Case:
    """GPT-2 with random weights after first candidates, beside `causal.cached`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    units, layers = sizes.transformer
    config = GPT2Config(
        vocab_size=sizes.words,
        n_embd=units,
        n_layer=layers,
        n_head=max(2, units // 64),
        n_positions=1024,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(1)
    model = GPT2LMHeadModel(config).eval()
    weights = layers * 12 * units**2  # that a token passes, beside the words' matrix

    def tasks(data: Set) -> list[causal.Task]:
        result, before = [], [1]
        for candidates, begins in zip(data.lists, data.first, strict=True):
            before = [1] if begins else before[:1] + before[1:][-400:]
            own = [words or [3] for words in candidates]
            result.append((tuple(before), own))
            before = before + own[0]
        return result

    def ours(device: torch.device, dtype: str, data: Set) -> Callable[[], Scores]:
        moved = model.to(device, TYPES[dtype])
        opened = CausalModel(lambda: moved, None, "", 1024, 0, 1)
        engine, given = CausalEngine(opened, Backend(device, dtype=dtype)), tasks(data)
        contexts = [CausalContext(ids) for ids, _ in given]
        return lambda: causal.ours(engine, given, contexts)

    def plain(device: torch.device, dtype: str, data: Set) -> Callable[[], Scores]:
        network, given = model.to(device, TYPES[dtype]), tasks(data)
        causal.BATCH = 100
        return torch.no_grad()(lambda: causal.cached(network, given))

    def operations(data: Set) -> float:
        """Those of the distinct prefixes and of the contexts, without attention."""
        read = sum(data.list_nodes()) + sum(len(of_list[0]) for of_list in data.lists)
        return 2.0 * read * (weights + units * sizes.words)

    return Case("gpt2", ours, plain, lambda data: hypotheses("rnnlm", data), operations)
