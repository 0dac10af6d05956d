"""A Hugging Face sequence-to-sequence model as a source of features: log-probability `NAME`.

The model reads the source and predicts the candidate, log p(candidate | source); or, in reverse,
reads the candidate and predicts the source, the channel of a noisy-channel model. With sentences of
context the sources before and the candidates chosen there stand before source and candidate, each
tokenised on its own, with a separator after each if there is one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from lm.backend import Backend
from lm.seq2seq import (
    VERSION,
    Frame,
    SourceAndTarget,
    TranslationEngine,
    TranslationModel,
    TranslationTexts,
)
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import SideError
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.scorers.cached_scores import ListScores, ListTexts, ScorerCache
from rerank.scorers.features import OF_PAIR, ScoredDocument, UnknownWords
from rerank.scorers.hugging_face import TranslationSettings
from rerank.scorers.window_model import Choices, LengthCounts, WindowProblem, WindowSource

SOURCE = "source"  # the kind of side information that are the source lines
_Tokens = list[list[list[int]]]  # of the texts of each list


@dataclass(frozen=True, slots=True)
class TranslationContext:
    """Tokens before what the model reads and before what it predicts, of so many sentences."""

    read: tuple[int, ...] = ()
    predicted: tuple[int, ...] = ()
    sentences: int = 0

    @property
    def key(self) -> bytes:
        """The tokens in bytes."""
        return repr((self.read, self.predicted, self.sentences)).encode()


class TranslationProblem(WindowProblem[TranslationContext]):
    """A document under a sequence-to-sequence model.

    lists: source and candidates of each sentence; name: of the document.
    """

    def __init__(
        self,
        engine: TranslationEngine,
        known: ListScores,
        cache: ScorerCache,
        lists: Sequence[tuple[str, list[str]]],
        given: TranslationSettings,
        *,
        order: int | None,
        label: str,
        name: str,
        counts: LengthCounts,
        kbest: KBest | None = None,
    ) -> None:
        lines = [candidates for _, candidates in lists]
        super().__init__(
            engine,
            known,
            cache,
            lines,
            given.sentences,
            order=order,
            label=label,
            counts=counts,
            kbest=kbest,
        )
        self.model, self.given, self.name = engine.model, given, name
        self._sources = [[source] for source, _ in lists]

    # Texts

    def _encoded(self, lists: Sequence[Sequence[str]], *, target: bool, prefix: str) -> _Tokens:
        texts = [prefix + one for own in lists for one in own]
        tokens = iter(self.model.encode(texts, target=target))
        return [[next(tokens) for _ in own] for own in lists]

    @cached_property
    def _read(self) -> tuple[_Tokens, _Tokens]:
        """What the model reads of each list, as the first text of its input, and as a later one."""
        prefix = f"{self.given.prefix.rstrip()} " if self.given.prefix else ""
        lists = self._lines if self.given.reverse else self._sources
        first = self._encoded(lists, target=False, prefix=prefix)
        if self.given.long == "cut":
            most = self.model.positions - len(self.model.source)
            self.counts.texts.update(
                (self.label, t, k)
                for t, texts in enumerate(first)
                for k, tokens in enumerate(texts)
                if len(tokens) > most
            )
            first = [[one[:most] for one in own] for own in first]
        later = self._encoded(lists, target=False, prefix="") if prefix and self._sentences else []
        return first, later or first

    @cached_property
    def _predicted(self) -> _Tokens:
        """What the model predicts of each list."""
        lists = self._sources if self.given.reverse else self._lines
        return self._encoded(lists, target=True, prefix="")

    @cached_property
    def _separator(self) -> list[int]:
        return [] if self.given.separator is None else [separator_of(self.model, self.given)]

    def _one(self, tokens: _Tokens, t: int, k: int) -> list[int]:
        """What tokens have of candidate k of list t, or of its sentence."""
        return tokens[t][k if len(tokens[t]) > 1 else 0]

    def n_tokens(self, t: int) -> int:
        """Tokens that are predicted of list t."""
        return sum(len(one) for one in self._predicted[t])

    def read(self, t: int, choices: Choices) -> TranslationContext:
        """The context of sentence t after the choices of the sentences just before it.

        Of these the last ones that are within the model's positions with the longest texts of list
        t: whole sentences. O(tokens).
        """
        (first, later), predicted = self._read, self._predicted
        sides = (first, self.model.source), (predicted, self.model.target)
        rooms = [self._room(t, tokens, frame) for tokens, frame in sides]
        n = 0
        for n, k in enumerate(reversed(choices), 1):
            for side, tokens in enumerate((first, predicted)):
                rooms[side] -= len(self._one(tokens, t - n, k)) + len(self._separator)
            if min(rooms) < 0:
                self.counts.contexts += 1
                n -= 1
                break
        found = TranslationContext()
        for s in range(t - n, t):
            k = choices[s - t]
            own = later if found.sentences else first
            found = TranslationContext(
                (*found.read, *self._one(own, s, k), *self._separator),
                (*found.predicted, *self._one(predicted, s, k), *self._separator),
                found.sentences + 1,
            )
        return found

    def _room(self, t: int, tokens: _Tokens, frame: Frame) -> int:
        """How many tokens fit before the longest text of list t; InputError if that is too long."""
        most, sizes = self.model.positions - len(frame), [len(one) for one in tokens[t]]
        if max(sizes) <= most:
            return most - max(sizes)
        reads, k = tokens is self._read[0], int(np.argmax(sizes))
        of_source = reads is not self.given.reverse
        message = (
            f"expected {'a source' if of_source else 'candidates'} of at most {most:,} tokens, for "
            f"which the model of {self.label} has positions, found one of {sizes[k]:,}; "
            f"{'add ,long=cut behind the folder of --lm, which cuts it there, or ' * reads}"
        )
        if not of_source:
            raise self.too_long(t, k, f"{message}leave it out")
        number = t if self._kbest is None else int(np.flatnonzero(self._kbest.counts)[t])
        raise SideError(f"{message}part it", kind=SOURCE, document=self.name, sentence=number)

    def request(
        self, t: int, context: TranslationContext, chosen: Sequence[int] | None = None
    ) -> list[SourceAndTarget]:
        """Inputs and labels of the candidates."""
        read, predicted = self._read[context.sentences > 0], self._predicted
        return [
            SourceAndTarget(
                self.model.source.around([context.read, self._one(read, t, k)]),
                self.model.target.around([context.predicted, self._one(predicted, t, k)]),
                len(context.predicted),
            )
            for k in (range(len(self._lines[t])) if chosen is None else chosen)
        ]


def separator_of(model: TranslationModel, given: TranslationSettings) -> int:
    """Id of the token after each sentence of context; ValueError for a name of no token."""
    found = model.tokenizer.get_vocab().get(given.separator)
    if found is None:
        raise ValueError(
            f"separator={given.separator}: its tokenizer has no such token; give another, such as "
            f"{model.tokenizer.eos_token}, or leave it out"
        )
    return int(found)


def unknown_letters(
    model: TranslationTexts, letters: Mapping[str, int], *, target: bool
) -> UnknownWords:
    """Counts of the letters of sources or translations, and of those that a model cannot read."""
    found = UnknownWords()
    for letter, n in letters.items():
        if letter.isalpha():
            found.count(letter.encode(errors="replace"), n, model.knows(letter, target=target))
    return found


class TranslationScorer(WindowSource[TranslationEngine]):
    """The feature of one sequence-to-sequence model, in nats.

    A sentence's score is minus the model's loss for its labels, summed: log p of its tokens with
    the end of the sentence and the token of its language, if the model has one.
    """

    side_information = (SOURCE,)
    shortened = "cut"

    def __init__(
        self,
        name: str,
        model: TranslationModel,
        given: TranslationSettings,
        backend: Backend,
        cache: Cache | None = None,
        *,
        pmi: bool = False,
    ) -> None:
        self.model, self.given, self.engine = model, given, TranslationEngine(model, backend)
        super().__init__(name, self.engine, given, cache, pmi=pmi)
        self._source_letters, self._letters = Counter[str](), Counter[str]()
        identity = repr((model.digest, given.identity))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()

    def check(self) -> None:
        """ValueError for an architecture that scores cannot be computed with, or no such token."""
        if self.given.separator is not None:
            separator_of(self.model, self.given)
        self._engine.check()

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists), whose letters are counted for a warning."""
        for _, kbest in documents:
            texts = self._texts(kbest)
            lines = texts.text.decode(errors="replace").split("\n")
            firsts = texts.offsets[:-1][np.diff(texts.offsets) > 0].tolist()
            self._source_letters.update(texts.side[SOURCE].decode(errors="replace"))
            self._letters.update(chain.from_iterable(lines[row] for row in firsts))
        return super().score(documents)

    def finish(self, source: str, notices: Notices) -> None:
        """Warnings: of memory and lengths, and of texts in a script that the model cannot read."""
        super().finish(source, notices)
        reverse, model = self.given.reverse, self.model
        read = unknown_letters(model, self._source_letters, target=reverse)
        read.warn_of_language(self.label, notices, unit="source letter", cure=OF_PAIR)
        found = unknown_letters(model, self._letters, target=not reverse)
        found.warn_of_language(self.label, notices, unit="letter", source=source)
        self._source_letters, self._letters = Counter(), Counter()

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """Model, settings and arithmetic; null scores are of no context."""
        given = replace(self.given, sentences=0) if null else self.given
        found = "translation", VERSION, self.model.digest, given.identity
        lazy = ("lazy",) if self.on_demand and not null else ()
        backend = self._engine.backend
        return (*found, backend.dtype, backend.deterministic, *lazy)

    def _problem(
        self,
        name: str,
        texts: ListTexts,
        known: ListScores | None,
        *,
        null: bool = False,
        cache: ScorerCache | None = None,
    ) -> TranslationProblem:
        """The problem of a document with its cached scores."""
        given = replace(self.given, sentences=0) if null else self.given
        sources = self.read_by_people(texts.side[SOURCE], given.detokenize_source)
        lines = [self.read_by_people(part, given.detokenize) for part in texts.lists()]
        return TranslationProblem(
            self._engine,
            known or ListScores(texts, texts, {}),
            cache or self._score_cache,
            [*zip(sources, lines, strict=True)],
            given,
            order=self.order,
            label=self._place(name),
            name=name,
            counts=self.lengths,
            kbest=self.lists.get(name),
        )
