"""A Hugging Face causal language model as a source of features: log-probability `NAME`.

Every sentence is tokenised on its own, together with its newline or the space before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lm.backend import Backend
from lm.causal import VERSION, CausalContext, CausalEngine, Tree, trees_of, windows
from lm.causal_folder import NOTHING, UNLIMITED, CausalModel
from lm.scoring import EngineCounts
from lm.trie import Candidates
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import RerankError
from rerank.files.cache import Cache
from rerank.notices import log
from rerank.scorers.cached_scores import ListScores, ListTexts, ScorerCache, Sums, digest
from rerank.scorers.features import ScoredDocument
from rerank.scorers.hugging_face import Window
from rerank.scorers.window_model import Choices, LengthCounts, WindowProblem, WindowSource

TOGETHER = 32  # items scored at once
Texts: TypeAlias = Sequence[bytes]
NO_TOKEN = "none"  # in place of a token that texts begin with
BEGINS, LINES = 6, 12  # tokens and first candidates by which texts' first token is chosen
CLEARLY = 0.7  # share of its perplexity that is left after another token, if that is chosen


class CausalProblem(WindowProblem[CausalContext]):
    """A document under a causal language model."""

    def __init__(
        self,
        engine: CausalEngine,
        known: ListScores,
        cache: ScorerCache,
        lines: Sequence[Sequence[str]],
        window: Window,
        *,
        order: int | None,
        label: str,
        counts: LengthCounts,
        kbest: KBest | None = None,
    ) -> None:
        super().__init__(
            engine,
            known,
            cache,
            lines,
            window.order,
            order=order,
            label=label,
            counts=counts,
            kbest=kbest,
        )
        self.model, self.window = engine.model, window
        self._long: dict[tuple[int, int], list[int]] = {}  # candidates that are scored by parts
        self._trees: dict[tuple[int, bytes], list[Tree]] = {}

    # Texts

    def _encoded(self, before: str, after: str) -> Candidates:
        texts = [before + one + after if one or after else "" for own in self._lines for one in own]
        tokens = iter(self.model.encode(texts))
        lists = [[next(tokens) for _ in own] for own in self._lines]
        if self.window.long == "window":
            for t, own in enumerate(lists):
                for k, one in enumerate(own):
                    if len(one) > self.model.positions:
                        self._long.setdefault((t, k), one)
                        own[k] = []
        return Candidates.of(lists)

    @cached_property
    def _forms(self) -> tuple[Candidates, Candidates]:
        """The candidates as sentences without context, and as sentences after others."""
        if self.window.join == "newline":
            return (self._encoded("", "\n"),) * 2
        return self._encoded("", ""), self._encoded(" ", "")

    @cached_property
    def _sizes(self) -> list[NDArray[np.int64]]:
        """(K_t,) tokens of the candidates of each list, in the longer of the two forms."""
        both = [np.diff(own.offsets) for own in self._forms]
        sizes = np.split(np.maximum(*both), self._forms[0].lists[1:-1])
        for t, k in self._long:
            sizes[t][k] = UNLIMITED  # in no context
        return sizes

    @cached_property
    def _of_long(self) -> dict[int, NDArray[np.float64]]:
        """(K_t,) log-probabilities of candidates that are scored by parts, 0 of others, by list."""
        self.counts.texts.update((self.label, t, k) for t, k in self._long)
        found: dict[int, NDArray[np.float64]] = {}
        requests, owners = [], []
        for (t, k), tokens in self._long.items():
            found.setdefault(t, np.zeros(len(self._lines[t])))
            for context, part in windows(self.model.begin, tokens, self.model.positions):
                requests.append((context, trees_of(Candidates.of([[part]]))))
                owners.append((t, k))
        for (t, k), own in zip(owners, self.engine.scores(requests), strict=True):
            found[t][k] += float(own[0])
        return found

    def long_scores(self, t: int) -> NDArray[np.float64]:
        """(K_t,) what candidates of list t that are scored by parts add to their scores of 0."""
        none = np.zeros(self.lengths[t])
        return self._of_long.get(t, none)[: self.lengths[t]] if self._long else none

    def n_tokens(self, t: int) -> int:
        """Tokens of the candidates of list t."""
        own = self._sizes[t]
        return int(own[own < UNLIMITED].sum())

    def candidates(self, t: int, context: CausalContext) -> Candidates:
        """The tokens of list t, as it stands after a context."""
        return self._forms[len(context.ids) > 1].part(t, t + 1)

    def trees(self, t: int, context: CausalContext) -> list[Tree]:
        """Prefix trees of list t, as it stands after a context."""
        own = self.candidates(t, context)
        key = t, digest(own.tokens.tobytes() + own.offsets.tobytes())
        if key not in self._trees:
            self._trees[key] = trees_of(own)
        return self._trees[key]

    def request(
        self, t: int, context: CausalContext, chosen: Sequence[int] | None = None
    ) -> tuple[CausalContext, list[Tree]]:
        """The context and prefix trees of the candidates."""
        if chosen is None:
            return context, self.trees(t, context)
        own = self.candidates(t, context)
        lists = Candidates.joined([own.one(0, k) for k in chosen])
        return context, [Tree.of(lists, np.arange(len(chosen)))]

    def read(self, t: int, choices: Choices) -> CausalContext:
        """The context of sentence t after the choices of the sentences just before it.

        Of these the last ones that are within the window and, with the longest candidate of list
        t, within the model's positions: whole sentences. O(tokens).
        """
        own = self._sizes[t]
        longest = int(own[own < UNLIMITED].max(initial=0))
        room = self.model.positions - longest  # the last token of a candidate is never read
        if room < 0:
            raise self.beyond_positions(t, int(np.argmax(own > self.model.positions)))
        window = UNLIMITED if self.window.tokens is None else self.window.tokens
        sizes = [int(self._sizes[t - 1 - i][k]) for i, k in enumerate(reversed(choices))]
        wanted, fitting = np.searchsorted(
            np.cumsum(np.array(sizes, np.int64)), [window, room], side="right"
        ).tolist()
        if fitting < wanted:
            self.counts.contexts += 1
        begin, found = t - min(wanted, fitting), CausalContext((self.model.begin,))
        for s in range(begin, t):
            forms = self._forms[len(found.ids) > 1]
            found = found.after(forms.one(s, choices[s - t]).tokens.tolist())
        return found

    def beyond_positions(self, t: int, k: int) -> RerankError:
        """An error about candidate k of list t, for which no context leaves room."""
        return self.too_long(
            t,
            k,
            f"expected candidates of at most {self.model.positions:,} tokens, for which the "
            f"model of {self.label} has positions, found one of {int(self._sizes[t][k]):,}; add "
            ",long=window behind the folder of --lm, which scores it by parts, or leave it out",
        )


def begins_of(model: CausalModel) -> tuple[int, ...]:
    """Ids of tokens that texts may begin with: first the tokenizer's bos or eos, some others."""
    tokenizer = model.tokenizer
    marks = (n for n, token in tokenizer.added_tokens_decoder.items() if token.special)
    # that of unknown words, too: it is <|endoftext|> in some models of chats
    others = [tokenizer.eos_token_id, tokenizer.pad_token_id, *sorted(marks)]
    known = [one for one in others if one is not None]
    rows = model.model.get_input_embeddings().weight.shape[0]
    return tuple(dict.fromkeys(one for one in [model.begin, *known] if 0 <= one < rows))[:BEGINS]


def token_of(model: CausalModel, name: str) -> int:
    """Id of a token by its name, `NOTHING` of none; ValueError for a name of no token."""
    if name == NO_TOKEN:
        return NOTHING
    found = model.tokenizer.get_vocab().get(name)
    if found is None or found >= model.model.get_input_embeddings().weight.shape[0]:
        names = ", ".join(name_of(model, one) for one in begins_of(model))
        raise ValueError(
            f"begin={name}: its tokenizer has no such token; give another, such as "
            f"{', '.join(filter(None, [names, NO_TOKEN]))}"
        )
    return int(found)


def name_of(model: CausalModel, token: int) -> str:
    """Name of a token, by which an option gives it."""
    return NO_TOKEN if token == NOTHING else str(model.tokenizer.convert_ids_to_tokens(token))


class CausalLM(WindowSource[CausalEngine]):
    """The feature of one causal language model, in nats.

    A sentence's score is log p of its tokens, the newline at its end included, given the earlier
    sentences within the window; with `join=space` log p of its tokens, a space before it included.
    Order 0 and 1: all scores at once; else after each history that a decoder keeps.
    """

    cacheable = True
    shortened = "scored by parts"

    def __init__(
        self,
        name: str,
        model: CausalModel,
        window: Window,
        backend: Backend,
        cache: Cache | None = None,
        *,
        pmi: bool = False,
    ) -> None:
        super().__init__(name, CausalEngine(model, backend), window, cache, pmi=pmi)
        self.model, self.window = model, window
        self._null = replace(window, sentences=0, tokens=None)
        self._begins = begins_of(model) if window.begin is None else ()
        self._begin_with(model.begin if window.begin is None else token_of(model, window.begin))

    def _begin_with(self, token: int) -> None:
        """Have texts begin with a token."""
        self.model = self._engine.model = replace(self.model, begin=token)
        identity = repr((self.model.digest, self._facts(self.window), token))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()
        self.chosen: dict[str, object] = {"begin": name_of(self.model, token)}

    def choose(self, lists: Iterable[KBest]) -> str:
        """Choose the token that texts begin with, unless it is given.

        Another one than the tokenizer's own if the first candidates of the first sentences are
        clearly less perplexing after it: for models of chats that is the mark of a turn.
        """
        return self.choose_by(
            one
            for kbest in lists
            for t in np.flatnonzero(kbest.counts).tolist()
            for one in self._texts_of(kbest.texts[kbest.rows(t)[0]] + b"\n")
        )

    def choose_by(self, texts: Iterable[str]) -> str:
        """As `choose`, by the first of these sentences."""
        begins, self._begins = self._begins, ()
        if len(begins) < 2:
            return ""
        end = "\n" * (self.window.join == "newline")
        encoded = (tokens for one in texts for tokens in self.model.encode([one + end]))
        firsts = [*islice((one for one in encoded if 0 < len(one) < self.model.positions), LINES)]
        if not firsts:
            return ""
        found = self._engine.perplexities(begins, firsts)
        self._engine.counts = EngineCounts()
        best = int(np.argmin(found))
        if not found[best] < CLEARLY * found[0]:
            best = 0
        self._begin_with(begins[best])
        names = [name_of(self.model, token) for token in begins]
        others = [f"{found[n]:.1f} after {name}" for n, name in enumerate(names) if n != best]
        return (
            f"{self.label}: texts begin with {names[best]}, perplexity of the first {len(firsts)} "
            f"sentences {found[best]:.1f} ({', '.join(others)}); begin=TOKEN behind the folder "
            "chooses another"
        )

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""
        if line := self.choose(kbest for _, kbest in documents):
            log.info(line)
        return super().score(documents)

    def check(self) -> None:
        """ValueError for an architecture or a tokenizer that scores cannot be computed with."""
        if self.window.begin is None and self.model.begin == NOTHING:
            raise ValueError(
                "its tokenizer has neither a bos nor an eos token, which texts would begin with; "
                "add ,begin=TOKEN, a token of its vocabulary, or ,begin=none"
            )
        if self.window.join == "newline":
            plain, ended = self.model.encode(["a", "a\n"])
            if plain == ended or self.model.tokenizer.unk_token_id in ended[len(plain) :]:
                raise ValueError(
                    "its tokenizer has no newline, which would end each sentence; add ,join=space"
                )
        self._engine.check()

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """Model, window and arithmetic; null scores are of an empty window."""
        backend, window = self._engine.backend, self._null if null else self.window
        model = self.model.digest, self.model.begin
        found = "causal", VERSION, *model, self._facts(window), backend.dtype
        lazy = ("lazy",) if self.on_demand and not null else ()
        return (*found, backend.deterministic, *lazy)

    def _facts(self, window: Window) -> tuple[object, ...]:
        """What scores depend on beside the model."""
        return window.identity

    def _kind(self, texts: ListTexts, *, null: bool) -> Callable[..., CausalProblem]:
        """What makes the problem of a document."""
        return CausalProblem

    def _problem(
        self,
        name: str,
        texts: ListTexts,
        known: ListScores | None,
        *,
        null: bool = False,
        cache: ScorerCache | None = None,
    ) -> CausalProblem:
        """The problem of a document with its cached scores."""
        return self._kind(texts, null=null)(
            self._engine,
            known or ListScores(texts, texts, {}),
            cache or self._score_cache,
            [self._texts_of(part) for part in texts.lists()],
            self._null if null else self.window,
            order=self.order,
            label=self._place(name),
            counts=self.lengths,
            kbest=self.lists.get(name),
        )

    def _texts_of(self, lines: bytes) -> list[str]:
        return self.read_by_people(lines, self.window.detokenize)

    # Texts that are no lists

    def scores_after(self, items: Iterable[tuple[Texts, Texts]]) -> Iterator[Sums]:
        """Scores (K,) of each item's K variants of a sentence after the sentences before it."""
        iterator = iter(items)
        while batch := [*islice(iterator, TOGETHER)]:
            requests = []
            for before, variants in batch:
                problem = self._of_texts([*([one] for one in before), variants])
                t = len(before)
                requests.append((problem, [problem.recent((0,) * t)], t))
            for scores, _ in CausalProblem.extend_together(requests):
                yield scores[0].astype(np.float64)

    def log_probs(self, document: Texts) -> tuple[Sums, int]:
        """Log p (S,) of each sentence of a document after those before; how many tokens it is of.

        The first token of a text that begins with none is not predicted.
        """
        problem = self._of_texts([[one] for one in document])
        requests = [(problem, [problem.recent((0,) * t)], t) for t in range(len(document))]
        tokens = self._engine.counts.tokens
        answers = CausalProblem.extend_together(requests)
        found = np.array([float(scores[0, 0]) for scores, _ in answers])
        bare = len(document) > 0 and self.model.begin == NOTHING
        return found, self._engine.counts.tokens - tokens - bare

    def _of_texts(self, lists: Sequence[Texts]) -> CausalProblem:
        """The problem of lists of texts, each of which has one."""
        text = b"".join(one + b"\n" for own in lists for one in own)
        return self._problem("text", ListTexts(text, np.array([*map(len, lists)], np.int64)), None)
