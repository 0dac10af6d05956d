"""Causal language models of Hugging Face: how they score candidates.

Each context is read once and its key–value pairs are kept (least recently used ones are dropped),
so that other contexts are read from where they differ; candidates are read as prefix trees, many
contexts in one batch. All distinct prefixes of a list stand in one input, each attending to its own
ancestors only (tree attention: Miao et al. 2024, SpecInfer, https://arxiv.org/abs/2305.09781,
section 4.2). Last tokens of candidates are predicted but never read.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.backend import Backend, on_device
from lm.causal_folder import (
    CAUSAL,
    LoraAdapter,
    check_tokenizer,
    folder_digest,
    open_folder,
    positions_of,
)
from lm.scoring import EngineCounts
from lm.trie import Candidates, Forest, Indices, build

NOTHING = -1  # in place of the token that texts begin with: their first token is not predicted
MOST_NODES = 1536  # of a tree: attention within it is quadratic, smaller ones share less
VERSION = 2  # of scores: to be raised whenever they change
STORED = 4  # times the floats of a batch that stored key–value pairs may have
PADDED = 1.1  # times the tokens of a batch that it may have with padding, beyond a few
FEW = {"cpu": 256, "cuda": 16_384, "mps": 16_384}
LOGITS = 1 << 24  # held at once
SHARED = 32  # first tokens of two new contexts that are worth a batch of their own
BLOCK = 64  # tokens of a context that are read together if the backend is deterministic
CHECK = 3e-3  # nats that tree attention may differ from plain reading, in float32
_SIGN = re.compile(r"[^\w\s]")  # in added tokens that are no words
Ids = tuple[int, ...]
KeyValues = tuple[Tensor, ...]  # (H, L, D) of each layer, keys and values by turns
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class CausalModel:
    """A causal language model of transformers, with its tokenizer.

    load: the model itself, in evaluation mode, whose tensors are read at the first call; digest:
    SHA-256 of its files and an adapter's; positions: most tokens of a text with its context; rows:
    of its embeddings; begin: id of the token that texts begin with, or `NOTHING`.
    """

    load: Callable[[], Any]
    tokenizer: Any
    digest: str
    positions: int
    rows: int
    begin: int

    @property
    def model(self) -> Any:
        """The model; CausalFolderError for tensors that are not its own."""
        return self.load()

    def encode(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        """Ids of the tokens of texts; what looks like a special token is text, unless `special`."""
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=not special, verbose=False
        )["input_ids"]
        return ids

    def turn(self, text: str) -> str:
        """A text as the turn of a user, and the begin of the answer; errors of any kind.

        The tokenizer's template of chats may be a stranger's.
        """
        turns = [{"role": "user", "content": text}]
        settings = {"tokenize": False, "add_generation_prompt": True}
        return str(self.tokenizer.apply_chat_template(turns, **settings))

    def special_token(self, texts: Sequence[str]) -> str | None:
        """The first special token in texts, or another added one that is no word, as `<think>`.

        The tokenizer itself is asked: it may normalise texts before it looks for these tokens.
        """
        added = self.tokenizer.added_tokens_decoder
        for plain, ids in zip(self.encode(texts), self.encode(texts, special=True), strict=True):
            for token in (added[number] for number in ids if number in added):
                if plain != ids if token.special else _SIGN.search(token.content):
                    return str(token.content)
        return None


def open_causal_model(
    folder: Path,
    device: torch.device | str = "cpu",
    dtype: str = "float32",
    adapter: LoraAdapter | None = None,
) -> CausalModel:
    """The causal language model of a folder, in `bfloat16` or else float32; CausalFolderError.

    Its tensors are not read yet. adapter: merged before weights are rounded to the dtype.
    """
    tokenizer, outline, load = open_folder(folder, CAUSAL, device, dtype, adapter)
    marks = tokenizer.bos_token_id, tokenizer.eos_token_id
    begin = next((mark for mark in marks if mark is not None), NOTHING)
    words = {*tokenizer.get_vocab().values()} - {*tokenizer.all_special_ids} | {begin}
    rows = check_tokenizer(folder, tokenizer, outline, words)
    config = outline.config.get_text_config()  # tokens that have positions and may be attended to
    positions = positions_of(config, "max_position_embeddings", "sliding_window")
    digest = folder_digest(folder, adapter)
    return CausalModel(load, tokenizer, digest, positions, rows, begin)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A prefix tree of some candidates, its Q read nodes level by level, the root first.

    rows: (n,) the candidates; tokens: (Q,) ids, of the root any: it is the last token of a context;
    depths: (Q,) from 0; spans: (2, Q) number of each node, depth first, and the first number behind
    its subtree; parents, words: (M,) read node and token of each prediction, by parent.
    """

    forest: Forest
    rows: Indices
    tokens: Indices
    depths: Indices
    spans: Indices
    parents: Indices
    words: Indices
    n_tokens: int

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(cls, candidates: Candidates, rows: Indices) -> Tree:
        """The tree of candidates `rows`; O(tokens)."""
        forest = build(candidates, rows, np.zeros(len(rows), np.int64), 1)
        read = np.unique(np.append(forest.parent, 0))
        place = np.full(len(forest), -1)
        place[read] = np.arange(len(read))
        depths = np.searchsorted(forest.levels, read, side="right") - 1
        spans = _depth_first(place[forest.parent[read]], depths)
        parents, words = place[forest.parent[1:]], forest.token[1:]
        n_tokens = int(np.diff(candidates.offsets)[rows].sum())
        tokens = forest.token[read]
        return cls(forest, rows, tokens, depths, spans, parents, words, n_tokens)

    def sums(self, log_probs: Tensor) -> NDArray[np.float64]:
        """Sums (n,) along the paths of the candidates, of log-probabilities (M,)."""
        leave = torch.zeros(len(self.forest), 1)
        return self.forest.sums(log_probs.float().cpu()[:, None], leave)[:, 0]


def trees_of(candidates: Candidates, most: int = MOST_NODES) -> list[Tree]:
    """Trees of all candidates, in lexicographic order, of at most `most` nodes if possible."""
    texts, sizes = candidates.texts(), np.diff(candidates.offsets)

    def split(rows: Indices) -> list[Tree]:
        if sizes[rows].sum() < 16 * most or len(rows) == 1:  # else do not even try
            tree = Tree.of(candidates, rows)
            if len(tree) <= most or len(rows) == 1:
                return [tree]
        return [tree for half in np.array_split(rows, 2) for tree in split(half)]

    order = sorted(range(len(texts)), key=lambda row: texts[row].tolist())
    return split(np.array(order, np.int64))


def _depth_first(parents: Indices, depths: Indices) -> Indices:
    """Spans (2, Q) of the nodes of a tree, which are ordered by depth, then by parent."""
    sizes, first = np.ones_like(parents), np.zeros_like(parents)
    ends = np.searchsorted(depths, np.arange(depths[-1] + 2)).tolist()
    levels = [slice(begin, end) for begin, end in pairwise(ends[1:])]
    for level in reversed(levels):
        np.add.at(sizes, parents[level], sizes[level])
    for level in levels:
        above = parents[level]
        done = np.cumsum(sizes[level]) - sizes[level]  # of the level, before each node
        first[level] = first[above] + 1 + done - done[np.searchsorted(above, above)]
    return np.stack([first, first + sizes])


def path_of(tokens: Sequence[int]) -> tuple[Indices, Indices, Indices]:
    """Tokens (Q,), depths and spans of a plain sequence, a tree of one branch."""
    n = len(tokens)
    numbers = np.arange(n)
    return np.array(tokens, np.int64), numbers, np.stack([numbers, np.full(n, n)])


def sees(first: Tensor, end: Tensor) -> Tensor:
    """Whether node column (B, Q, Q) is node row or an ancestor of it; first, end: (B, Q) spans."""
    row = first[:, :, None]
    return (first[:, None] <= row) & (row < end[:, None])


@dataclass(frozen=True, slots=True)
class CausalContext:
    """Tokens before a sentence: the one that texts begin with, then those of earlier sentences."""

    ids: tuple[int, ...]

    def after(self, sentence: Sequence[int]) -> CausalContext:
        """The context that ends with one more sentence."""
        return CausalContext((*self.ids, *sentence))

    @property
    def key(self) -> bytes:
        """The tokens in bytes."""
        return np.array(self.ids, np.int32).tobytes()


def windows(
    begin: int, tokens: Sequence[int], positions: int
) -> list[tuple[CausalContext, Sequence[int]]]:
    """Contexts and parts of a text that is longer than a model's positions.

    The first part fills them after the token that texts begin with; each further one is predicted
    after the last tokens before it, half of the positions.
    """
    half = max(1, positions // 2)
    starts = [0, *range(positions, len(tokens), max(1, positions - half))]
    return [
        (CausalContext(tuple(tokens[a - half : a]) if a else (begin,)), tokens[a:b])
        for a, b in pairwise([*starts, len(tokens)])
    ]


class _Row(NamedTuple):
    """An input of Q tokens after `past` ones, which are stored."""

    past: Ids
    tokens: Indices
    depths: Indices
    spans: Indices


@dataclass(slots=True, eq=False)
class CausalEngine:
    """A model on a backend; `nodes` of its counts are tokens that the transformer read."""

    model: CausalModel
    backend: Backend
    counts: EngineCounts = field(default_factory=EngineCounts)
    _stored: OrderedDict[Ids, KeyValues] = field(default_factory=OrderedDict)
    _sorted: list[Ids] = field(default_factory=list)  # the keys of what is stored
    _size: int = 0  # floats stored

    def check(self) -> None:
        """ValueError for scores that are NaN, or that differ from those of plain sequences."""
        n = len(self.model.tokenizer)
        words = [(7 * i + 3) % n for i in range(9)]
        context = CausalContext((self.model.begin, words[0], words[1]))
        candidates = [words[2:6], [*words[2:4], *words[6:9]], words[2:3], words[5:8]]
        check_scores(
            [self.plain_score(context.ids, candidate) for candidate in candidates],
            lambda: self.scores([(context, trees_of(Candidates.of([candidates])))])[0],
            self.backend.dtype,
            f"{type(self.model.model).__name__} scores a prefix tree otherwise than single texts",
            "its attention takes no tree mask, or its logits are not its output layer's; give a "
            "model such as GPT-2, Llama, Mistral or Qwen",
        )
        self.forget()
        self.counts = EngineCounts()

    def plain_score(self, context: Sequence[int], sentence: Sequence[int]) -> float:
        """Log p(sentence | context) by one forward pass over both, without any of the engine."""
        whole = [token for token in (*context, *sentence) if token != NOTHING]
        first = max(1, len(whole) - len(sentence))
        if first >= len(whole):
            return 0.0
        with torch.no_grad():
            ids = torch.tensor([whole], device=self.backend.device)
            logits = self.model.model(input_ids=ids).logits[0, first - 1 : -1].float()
            log_probs = logits.log_softmax(dim=1).gather(1, ids[0, first:, None])
        return float(log_probs.cpu().double().sum())

    def perplexities(self, begins: Sequence[int], texts: Sequence[Sequence[int]]) -> list[float]:
        """Perplexity of texts, each of which begins with a token, for each of these tokens."""
        trees = trees_of(Candidates.of([texts]))
        scores = self.scores([(CausalContext((begin,)), trees) for begin in begins])
        n_tokens = sum(map(len, texts))
        return [float(np.exp(-log_probs.sum() / n_tokens)) for log_probs in scores]

    def scores(
        self, requests: Sequence[tuple[CausalContext, Sequence[Tree]]]
    ) -> list[NDArray[np.float64]]:
        """Log p (K,) of the candidates of each request's trees, after its context, in nats.

        Results do not depend on other requests but for rounding, not even that if the backend is
        `deterministic`. O(nodes · (context + nodes)) attention for each request.
        """
        with self.counts.timed(self.backend):
            return self.backend.with_fewer_tokens(lambda: self._scores(requests))

    def _scores(
        self, requests: Sequence[tuple[CausalContext, Sequence[Tree]]]
    ) -> list[NDArray[np.float64]]:
        scores = [np.zeros(sum(len(t.rows) for t in trees)) for _, trees in requests]
        work = [(n, tree) for n, (_, trees) in enumerate(requests) for tree in trees]
        work.sort(key=lambda item: (len(item[1]), len(requests[item[0]][0].ids)))
        for batch in self._batches(work, lambda w: (len(requests[w[0]][0].ids), len(w[1]))):
            contexts = [requests[n][0] for n, _ in batch]
            self._store(contexts)
            rows = []
            for context, (_, tree) in zip(contexts, batch, strict=True):
                tokens = np.concatenate([[context.ids[-1]], tree.tokens[1:]])
                rows.append(_Row(context.ids[:-1], tokens, tree.depths, tree.spans))
            hidden, _ = self._read(rows, keep=False)
            of_trees = self._log_probs(hidden, [tree for _, tree in batch])
            for (n, tree), log_probs in zip(batch, of_trees, strict=True):
                if requests[n][0].ids == (NOTHING,):
                    first = torch.from_numpy(tree.parents == 0).to(log_probs.device)
                    log_probs = log_probs.masked_fill(first, 0.0)
                scores[n][tree.rows] = tree.sums(log_probs)
                self.counts.tokens += tree.n_tokens
        return scores

    def _batches(
        self, work: Sequence[Result], size: Callable[[Result], tuple[int, int]]
    ) -> Iterator[list[Result]]:
        """Work in order, in batches that fit; size: numbers of past and (rising) new tokens."""
        batch: list[Result] = []
        most, past, tokens = self.backend.tokens(1), 0, 0
        few = FEW[self.backend.device.type]
        config = self.model.model.config.get_text_config()
        width, layers = int(config.hidden_size), int(config.num_hidden_layers)
        heads = int(config.num_attention_heads)
        for item in work:
            p, q = size(item)
            past, tokens, padded = max(past, p), tokens + q, (len(batch) + 1) * q
            sparse = padded > max(few, PADDED * tokens)
            floats = (past + q) * (2 * width * (layers + 1) + q * heads) + 8 * q * width
            full = (len(batch) + 1) * floats > most  # of pairs, states and attention, about
            if batch and (self.backend.deterministic or full or sparse):
                yield batch
                batch, past, tokens = [], p, q
            batch.append(item)
        if batch:
            yield batch

    # Contexts

    def _store(self, contexts: Sequence[CausalContext]) -> None:
        """Have the key–value pairs of all tokens of contexts stored, without their last ones.

        Each is read from where it parts from those that are stored. A context that is the prefix of
        another, or has `SHARED` tokens in common with it, is read before it.
        """
        while self._stored and self._size > STORED * self.backend.tokens(1):
            key, dropped = self._stored.popitem(last=False)  # the least recently used pairs
            del self._sorted[bisect_left(self._sorted, key)]
            self._size -= sum(tensor.numel() for tensor in dropped)
        wanted = {context.ids[:-1] for context in contexts}
        while missing := sorted(ids for ids in wanted if not self._knows(ids)):
            rows: dict[tuple[Ids, Ids], None] = {}
            before: Ids = ()
            for ids in missing:
                begin, end = self._unread(ids)
                shared = _common(before, ids)
                least = 1 if ids[:shared] in wanted else SHARED
                if shared - begin < least:
                    rows[ids[:begin], ids[begin:end]] = None
                before = ids
            work = sorted(rows, key=lambda row: (len(row[1]), len(row[0])))
            for batch in self._batches(work, lambda row: (len(row[0]), len(row[1]))):
                _, kept = self._read([_Row(past, *path_of(new)) for past, new in batch], keep=True)
                for (past, new), pairs in zip(batch, kept, strict=True):
                    self._stored[(*past, *new)] = pairs
                    insort(self._sorted, (*past, *new))
                    self._size += sum(tensor.numel() for tensor in pairs)

    def forget(self) -> None:
        """Drop all stored pairs."""
        self._stored.clear()
        self._sorted.clear()
        self._size = 0

    def _unread(self, ids: Ids) -> tuple[int, int]:
        """The span of a context to read next: all not stored; if deterministic, a fixed block."""
        if self.backend.deterministic:
            breaks = [*range(BLOCK, len(ids), BLOCK), len(ids)]
            known = max([n for n in breaks if self._knows(ids[:n])], default=0)
            return known, min(n for n in breaks if n > known)
        place = bisect_left(self._sorted, ids)
        near = self._sorted[max(0, place - 1) : place + 1]
        return max((_common(ids, other) for other in near), default=0), len(ids)

    def _knows(self, ids: Ids) -> bool:
        """Whether the pairs of these tokens are stored, which makes them recently used."""
        key = self._key_of(ids)
        if ids and key is not None:
            self._stored.move_to_end(key)
        return not ids or key is not None

    def _key_of(self, ids: Ids) -> Ids | None:
        """The stored context that begins with these tokens; on a deterministic backend, is them."""
        if ids in self._stored or self.backend.deterministic:
            return ids if ids in self._stored else None
        after = self._sorted[(place := bisect_left(self._sorted, ids)) : place + 1]
        return after[0] if after and after[0][: len(ids)] == ids else None

    # The transformer

    def _read(self, rows: Sequence[_Row], *, keep: bool) -> tuple[list[Tensor], list[KeyValues]]:
        """Hidden states (Q, R) of each row's tokens and, if asked for, pairs of past and tokens."""
        device = self.backend.device
        past, new = max(len(row.past) for row in rows), max(len(row.tokens) for row in rows)
        # tokens, positions, and spans; those of padding are its own, so that it sees itself
        inputs = np.zeros((4, len(rows), new), np.int64)
        inputs[2], inputs[3] = new + np.arange(new), new + np.arange(new) + 1
        stored = np.zeros((2, len(rows)), np.int64)  # past tokens that are seen: from, to
        for i, row in enumerate(rows):
            p, q = len(row.past), len(row.tokens)
            bare = (row.past[0] if p else row.tokens[0]) == NOTHING
            inputs[0, i, :q] = np.maximum(row.tokens, 0)
            inputs[1, i, :q] = np.maximum(p + row.depths - bare, 0)
            inputs[2:, i, :q] = row.spans
            stored[:, i] = bare, p
            if bare and not p:  # what stands in place of a first token is seen by itself alone
                inputs[3, i, 0] = 1
        columns = on_device((inputs.ravel(), stored.ravel()), device)
        tokens, positions, *spans = columns[0].view(inputs.shape)
        begin, end = columns[1].view(2, len(rows), 1)
        at = torch.arange(past, device=device)
        of_past = ((begin <= at) & (at < end))[:, None].expand(-1, new, -1)
        seen = torch.cat([of_past, sees(*spans)], dim=2)[:, None]
        dtype = next(self.model.model.parameters()).dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=device)
        mask.masked_fill_(~seen, torch.finfo(dtype).min)
        cache = self._cache(rows, past)
        network = self.model.model.base_model
        output = network(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=mask,
            use_cache=True,
            **{cache_argument(network): cache},
        )
        self.counts.nodes += sum(len(row.tokens) for row in rows)
        hidden = [output.last_hidden_state[i, : len(row.tokens)] for i, row in enumerate(rows)]
        if not keep:
            return hidden, []
        ends = [(len(row.past), past + len(row.tokens)) for row in rows]
        pairs = [  # the cache is filled by now; without padding, in memory of their own
            tuple(
                torch.cat([part[i, :, :p], part[i, :, past:q]], dim=1)
                for keys, values, *_ in cache
                for part in (keys, values)
            )
            for i, (p, q) in enumerate(ends)
        ]
        return hidden, pairs

    def _cache(self, rows: Sequence[_Row], past: int) -> Any:
        """Key–value pairs of the rows' past tokens in one batch, padded at the end."""
        from transformers import DynamicCache

        if not past:
            return DynamicCache()
        stored = [
            self._stored[self._key_of(row.past) or row.past] if row.past else () for row in rows
        ]
        pairs = []
        for layer, like in enumerate(next(layers for layers in stored if layers)):
            batch = like.new_zeros(len(rows), like.shape[0], past, like.shape[2])
            for i, (row, layers) in enumerate(zip(rows, stored, strict=True)):
                if layers:
                    batch[i, :, : len(row.past)] = layers[layer][:, : len(row.past)]
            pairs.append(batch)
        return DynamicCache(zip(pairs[::2], pairs[1::2], strict=True))

    def _log_probs(self, hidden: Sequence[Tensor], trees: Sequence[Tree]) -> list[Tensor]:
        """Log p (M,) of each tree's predictions, on the CPU; some of the logits at a time."""
        head = self.model.model.get_output_embeddings()
        states = torch.cat(list(hidden))
        starts = np.cumsum([0, *map(len, hidden)])
        parents = np.concatenate([t.parents + s for t, s in zip(trees, starts, strict=False)])
        words = torch.from_numpy(np.concatenate([tree.words for tree in trees]))
        words = words.to(states.device)
        most = max(64, LOGITS // len(head.weight))
        log_probs = []
        for begin in range(0, len(states), most):
            logits = head(states[begin : begin + most]).float()
            a, b = np.searchsorted(parents, [begin, begin + most]).tolist()
            rows = torch.from_numpy(parents[a:b] - begin).to(states.device)
            log_probs.append(logits[rows, words[a:b]] - logits.logsumexp(dim=1)[rows])
        return list(torch.split(torch.cat(log_probs).cpu(), [len(tree.words) for tree in trees]))


def check_scores(
    plain: Sequence[float],
    scores: Callable[[], NDArray[np.float64]],
    dtype: str,
    difference: str,
    cure: str,
) -> None:
    """ValueError unless an engine's scores (K,) are those of the plain model, and these finite."""
    expected = np.array(plain)
    if not np.isfinite(expected).all():
        raise ValueError("it returns NaN or no probability; are its files damaged?")
    try:
        worst = float(np.abs(scores() - expected).max())
    except (RuntimeError, TypeError, ValueError, AttributeError):  # masks or pairs not taken
        worst = np.inf
    if not worst <= (CHECK if dtype == "float32" else 100 * CHECK):
        by = f"by {worst:.3g} nats in a test" if np.isfinite(worst) else "it fails on a test"
        raise ValueError(f"{difference} ({by}): {cure}")


def cache_argument(network: nn.Module) -> str:
    """Name of the argument for key–value pairs, which versions of transformers call differently."""
    named = signature(network.forward).parameters
    return "cache" if "cache" in named else "past_key_values"


def _common(tokens: Ids, others: Ids) -> int:
    """Number of first tokens that two texts have in common."""
    pairs = enumerate(zip(tokens, others, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(tokens), len(others)))
