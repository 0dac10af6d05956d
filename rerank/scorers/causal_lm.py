"""A Hugging Face causal language model as a source of features: log-probability `NAME`.

Every sentence is tokenised on its own, together with its newline or the space before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lm.causal import (
    NOTHING,
    VERSION,
    CausalContext,
    CausalEngine,
    CausalModel,
    Tree,
    trees_of,
    windows,
)
from lm.causal_folder import UNLIMITED
from lm.scoring import EngineCounts
from lm.trie import Candidates
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import RerankError
from rerank.files.cache import Cache
from rerank.notices import log
from rerank.scorers.cached_scores import Choices, ListTexts, Sums, digest
from rerank.scorers.features import ScoredDocument
from rerank.scorers.model_options import Window
from rerank.scorers.model_source import group_of
from rerank.scorers.window_model import WindowProblem, WindowSource, read_by_people

TOGETHER = 32  # items scored at once
Texts: TypeAlias = Sequence[bytes]
NO_TOKEN = "none"  # in place of a token that texts begin with
BEGINS, LINES = 6, 12  # tokens and first candidates by which texts' first token is chosen
CLEARLY = 0.7  # share of its perplexity that is left after another token, if that is chosen


class CausalProblem(WindowProblem):
    """A document under a causal language model; arguments as of `WindowProblem`."""

    def __init__(self, source: CausalLM, *arguments: Any, **keywords: Any) -> None:
        super().__init__(source, *arguments, **keywords)
        self.model = source.model
        self._long: dict[tuple[int, int], list[int]] = {}  # candidates that are scored by parts
        self._trees: dict[tuple[int, bytes], list[Tree]] = {}

    def _encoded(self, before: str, after: str) -> Candidates:
        """The candidates as tokens, with what stands before and after each."""
        texts = [before + text + after if text or after else "" for text in chain(*self._lines)]
        tokens = iter(self.model.encode(texts))
        lists = [[next(tokens) for _ in lines] for lines in self._lines]
        if self.window.long == "window":
            for t, candidates in enumerate(lists):
                for k, ids in enumerate(candidates):
                    if len(ids) > self.model.positions:
                        self._long.setdefault((t, k), ids)
                        candidates[k] = []
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
        first, later = (np.diff(form.offsets) for form in self._forms)
        sizes = np.split(np.maximum(first, later), self._forms[0].lists[1:-1])
        for t, k in self._long:
            sizes[t][k] = UNLIMITED  # in no context
        return sizes

    @cached_property
    def _of_long(self) -> dict[int, NDArray[np.float64]]:
        """(K_t,) log-probabilities of candidates that are scored by parts, 0 of others, by list."""
        self.counts.texts.update((self.label, t, k) for t, k in self._long)
        totals = {t: np.zeros(len(self._lines[t])) for t, _ in self._long}
        requests, owners = [], []
        for (t, k), tokens in self._long.items():
            for context, part in windows(self.model.begin, tokens, self.model.positions):
                requests.append((context, trees_of(Candidates.of([[part]]))))
                owners.append((t, k))
        for (t, k), scores in zip(owners, self.engine.scores(requests), strict=True):
            totals[t][k] += float(scores[0])
        return totals

    def long_scores(self, t: int) -> NDArray[np.float64]:
        """(K_t,) what candidates of list t that are scored by parts add to their scores of 0."""
        none = super().long_scores(t)
        return self._of_long.get(t, none)[: self.lengths[t]] if self._long else none

    def n_tokens(self, t: int) -> int:
        """Tokens of the candidates of list t."""
        sizes = self._sizes[t]
        return int(sizes[sizes < UNLIMITED].sum())

    def candidates(self, t: int, context: CausalContext) -> Candidates:
        """The tokens of list t, as it stands after a context."""
        return self._forms[len(context.ids) > 1].part(t, t + 1)

    def request(
        self, t: int, context: CausalContext, chosen: Sequence[int] | None = None
    ) -> tuple[CausalContext, list[Tree]]:
        """The context and prefix trees of the candidates."""
        candidates = self.candidates(t, context)
        if chosen is not None:
            lists = Candidates.joined([candidates.one(0, k) for k in chosen])
            return context, [Tree.of(lists, np.arange(len(chosen)))]
        key = t, digest(candidates.tokens.tobytes() + candidates.offsets.tobytes())
        if key not in self._trees:
            self._trees[key] = trees_of(candidates)
        return context, self._trees[key]

    def read(self, t: int, choices: Choices) -> tuple[CausalContext, bytes]:
        """The context of sentence t after the choices of the sentences just before it, and its key.

        Of these the last ones that are within the window and, with the longest candidate of list
        t, within the model's positions: whole sentences. O(tokens).
        """
        sizes = self._sizes[t]
        longest = int(sizes[sizes < UNLIMITED].max(initial=0))
        room = self.model.positions - longest  # the last token of a candidate is never read
        if room < 0:
            raise self.beyond_positions(t, int(np.argmax(sizes > self.model.positions)))
        window = UNLIMITED if self.window.tokens is None else self.window.tokens
        before = [int(self._sizes[t - 1 - i][k]) for i, k in enumerate(reversed(choices))]
        wanted, fitting = np.searchsorted(
            np.cumsum(np.array(before, np.int64)), [window, room], side="right"
        ).tolist()
        if fitting < wanted:
            self.counts.contexts += 1
        context = CausalContext((self.model.begin,))
        for s in range(t - min(wanted, fitting), t):
            form = self._forms[len(context.ids) > 1]
            context = context.after(form.one(s, choices[s - t]).tokens.tolist())
        return context, context.key

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
    tokens = [model.begin, tokenizer.eos_token_id, tokenizer.pad_token_id, *sorted(marks)]
    known = (token for token in tokens if token is not None and 0 <= token < model.rows)
    return tuple(dict.fromkeys(known))[:BEGINS]


def token_of(model: CausalModel, name: str) -> int:
    """Id of a token by its name, `NOTHING` of none; ValueError for a name of no token."""
    if name == NO_TOKEN:
        return NOTHING
    token = model.tokenizer.get_vocab().get(name)
    if token is None or token >= model.rows:
        names = [*(name_of(model, begin) for begin in begins_of(model)), NO_TOKEN]
        raise ValueError(
            f"begin={name}: its tokenizer has no such token; give another, such as "
            f"{', '.join(names)}"
        )
    return int(token)


def name_of(model: CausalModel, token: int) -> str:
    """Name of a token, by which an option gives it."""
    return NO_TOKEN if token == NOTHING else str(model.tokenizer.convert_ids_to_tokens(token))


class CausalLM(WindowSource):
    """The feature of one causal language model, in nats.

    A sentence's score is log p of its tokens, the newline at its end included, given the earlier
    sentences within the window; with `join=space` log p of its tokens, a space before it included.
    Order 0 and 1: all scores at once; else after each history that a decoder keeps.
    """

    problem_of: type[WindowProblem] = CausalProblem
    model: CausalModel
    shortened = "scored by parts"

    def __init__(
        self,
        name: str,
        model: CausalModel,
        window: Window,
        new_engine: Callable[[CausalModel], CausalEngine],
        cache: Cache | None = None,
        **how: Any,
    ) -> None:
        super().__init__(name, lambda: new_engine(self.model), window, cache, **how)
        self.model = model
        self._begins = begins_of(model) if window.begin is None else ()
        self._begin_with(model.begin if window.begin is None else token_of(model, window.begin))

    def _begin_with(self, token: int) -> None:
        """Have texts begin with a token."""
        self.model = replace(self.model, begin=token)
        if self.opened:
            self.engine.model = self.model
        identity = repr((self.model.digest, self.window_facts(null=False), token))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()
        self.chosen: dict[str, object] = {"begin": name_of(self.model, token)}

    def choose(self, lists: Iterable[KBest]) -> str:
        """Choose the token that texts begin with, unless it is given.

        Another one than the tokenizer's own if the first candidates of the first sentences are
        clearly less perplexing after it: for models of chats that is the mark of a turn.
        """
        return self.choose_by(
            text
            for kbest in lists
            for t in np.flatnonzero(kbest.counts).tolist()
            for text in read_by_people(
                kbest.texts[kbest.rows(t)[0]] + b"\n", self.window.detokenize
            )
        )

    def choose_by(self, texts: Iterable[str]) -> str:
        """As `choose`, by the first of these sentences."""
        begins, self._begins = self._begins, ()
        if len(begins) < 2:
            return ""
        end = "\n" * (self.window.join == "newline")
        encoded = (tokens for text in texts for tokens in self.model.encode([text + end]))
        firsts = [*islice((ids for ids in encoded if 0 < len(ids) < self.model.positions), LINES)]
        if not firsts:
            return ""
        perplexities = self._perplexities(begins, firsts)
        best = int(np.argmin(perplexities))
        if not perplexities[best] < CLEARLY * perplexities[0]:
            best = 0
        self._begin_with(begins[best])
        names = [name_of(self.model, token) for token in begins]
        rows = enumerate(zip(perplexities, names, strict=True))
        others = [f"{perplexity:.1f} after {name}" for n, (perplexity, name) in rows if n != best]
        return (
            f"{self.label}: texts begin with {names[best]}, perplexity of the first {len(firsts)} "
            f"sentences {perplexities[best]:.1f} ({', '.join(others)}); begin=TOKEN behind the "
            "folder chooses another"
        )

    def _perplexities(
        self, begins: Sequence[int], firsts: Sequence[Sequence[int]]
    ) -> NDArray[np.float64]:
        """Perplexities (B,) of sentences after each of B tokens, from the cache if they are there.

        They are not counted as scored.
        """
        facts = "begins", VERSION, self.model.digest, *self.arithmetic
        group, name = group_of(facts), digest(repr((begins, firsts)).encode()).hex()
        known = (self._cache.get(group, name) or {}) if self._cache else {}
        perplexities: NDArray[np.float64] = known.get("perplexities", np.zeros(0))
        if perplexities.shape == (len(begins),) and np.isfinite(perplexities).all():
            return perplexities
        perplexities = np.array(self.engine.perplexities(begins, firsts))
        self.engine.counts = EngineCounts()
        if self._cache is not None:
            self._cache.put(group, name, {"perplexities": perplexities})
        return perplexities

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""
        if line := self.choose(kbest for _, kbest in documents):
            log.info(line)
        return super().score(documents)

    def check(self) -> None:
        """ValueError for a tokenizer that scores cannot be computed with."""
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

    def facts(self, *, null: bool) -> tuple[object, ...]:
        """Model, window and arithmetic."""
        window = self.window_facts(null=null)
        return "causal", VERSION, self.model.digest, self.model.begin, window, *self.arithmetic

    def window_facts(self, *, null: bool) -> tuple[object, ...]:
        """What scores depend on beside the model."""
        identity: tuple[object, ...] = (self.null_window if null else self.window).identity
        return identity

    # Texts that are no lists

    def scores_after(self, items: Iterable[tuple[Texts, Texts]]) -> Iterator[Sums]:
        """Scores (K,) of each item's K variants of a sentence after the sentences before it."""
        iterator = iter(items)
        while batch := [*islice(iterator, TOGETHER)]:
            requests = []
            for before, variants in batch:
                problem = self._of_texts([*([text] for text in before), variants])
                t = len(before)
                requests.append((problem, [problem.recent((0,) * t)], t))
            for scores, _ in CausalProblem.extend_together(requests):
                yield scores[0].astype(np.float64)

    def log_probs(self, document: Texts) -> tuple[Sums, int]:
        """Log p (S,) of each sentence of a document after those before; how many tokens it is of.

        The first token of a text that begins with none is not predicted.
        """
        problem = self._of_texts([[text] for text in document])
        requests = [(problem, [problem.recent((0,) * t)], t) for t in range(len(document))]
        tokens = self.engine.counts.tokens
        answers = CausalProblem.extend_together(requests)
        log_probs = np.array([float(scores[0, 0]) for scores, _ in answers])
        bare = len(document) > 0 and self.model.begin == NOTHING
        return log_probs, self.engine.counts.tokens - tokens - bare

    def _of_texts(self, lists: Sequence[Texts]) -> WindowProblem:
        """The problem of lists of texts, each of which has at least a text."""
        text = b"".join(line + b"\n" for line in chain(*lists))
        return self._problem("text", ListTexts(text, np.array([*map(len, lists)], np.int64)), None)
