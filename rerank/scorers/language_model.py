"""A document language model as a source of features: log-probability `NAME`, and `NAMEoov`.

A model of subword units, to which no word is unknown, has no `NAMEoov`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lm.folders import SavedModel
from lm.side_information import NUMBERS, SentenceNumbers, SideText, rows_of
from lm.subwords import SubwordVocabulary
from lm.vocabulary import UNKNOWN
from rerank.corpus.columns import offsets_of
from rerank.errors import RerankError
from rerank.files.cache import Cache
from rerank.formats.translations import SOURCE
from rerank.notices import Notices
from rerank.scorers.cached_scores import Arrays, HistoryProblem, ListScores, ListTexts, flat
from rerank.scorers.model_source import ModelSource
from rerank.scorers.unknown_words import FOREIGN, OF_PAIR, UnknownWords

if TYPE_CHECKING:
    from lm.scoring import ScoringEngine
    from lm.sentences import Rows
    from lm.trie import Candidates

VERSION = 4  # to be raised whenever `lm.scoring` gives a text other scores
# in nats a sentence: recipes/bench; tf32 has three bits more than bfloat16, and rounds
# the operands of small products, too
ERRORS = {"float32": 1.2e-4, "tf32": 0.125, "bfloat16": 0.5}
Places: TypeAlias = NDArray[np.int64]


class LanguageModel(ModelSource):
    """The features of one model folder.

    Order 0: each candidate is scored once. Order 1: after each candidate of the previous sentence,
    4 · K² bytes a sentence. Order 2 and up, unbounded, or `on_demand`: after each history that a
    decoder keeps. The documents of
    one call are scored in one batch, and looked up in the cache one by one. A model that is not
    causal scores paths (`rerank.scorers.acausal`), which are not cached.

    document_cache: weight λ of a document cache that the model is interpolated with
    (`lm.document_cache`), which makes the order unbounded; None for the model alone.
    """

    cached_columns: Sequence[str] = ("unknown", "words")
    counted = "list"  # in which unknown words are counted

    def __init__(
        self,
        name: str,
        saved: SavedModel,
        cache: Cache | None = None,
        *,
        arithmetic: tuple[str, bool],
        pmi: bool = False,
        document_cache: float | None = None,
    ) -> None:
        super().__init__(
            name,
            partial(_opened, saved, arithmetic, document_cache),
            cache,
            ERRORS,
            arithmetic=arithmetic,
            columns=() if isinstance(saved.vocabulary, SubwordVocabulary) else (f"{name}oov",),
            pmi=pmi,
            given_later=bool(saved.config.reverse_documents),
        )
        facts = saved.facts
        self.side_information, self.order = facts.information, facts.order
        self.saved, self.document_cache = saved, document_cache
        self.causal = self.cacheable = facts.causal
        self.additive, self.digest = facts.additive, saved.digest
        if document_cache is not None:  # which holds all earlier sentences, and adds to no logits
            self.order, self.additive = None, False
            identity = repr((saved.digest, document_cache)).encode()
            self.digest = hashlib.sha256(identity).hexdigest()[: len(saved.digest)]
        self.unknown, self.of_source = UnknownWords(), UnknownWords()
        self.cure = "reverse=yes if it is a model of the source" if facts.alone else ""

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """The model, the arithmetic, and how contexts are formed.

        Null scores are those in the start context, where a document cache is empty; those of a
        model of order 0 are its only scores.
        """
        facts = VERSION, self.saved.digest, *self.arithmetic
        if null:
            alone = self.saved.facts.order == 0 and not self.side_information
            return facts if alone else (*facts, "null")
        lazy = ("lazy",) if self.on_demand else ()
        share = () if self.document_cache is None else ("cache", self.document_cache)
        return (*facts, *lazy, *share)

    def finish(self, source: str, notices: Notices) -> None:
        """Warnings: of memory, and of far more unknown words than the training text has."""
        super().finish(source, notices)
        about, cure = self.saved.about, self.cure if self.unknown.share > FOREIGN else ""
        text = self.counted
        if isinstance(self.saved.vocabulary, SubwordVocabulary):
            unit = f"{'source ' * (self.counted == 'source')}word"
            self.unknown.warn_of_language(self.label, notices, unit=unit, source=source, cure=cure)
        else:
            self.unknown.warn(self.label, about, notices, source=source, text=text, cure=cure)
        self.of_source.warn_of_language(self.label, notices, unit="source word", cure=OF_PAIR)
        self.unknown, self.of_source = UnknownWords(), UnknownWords()

    def report(self) -> str:
        """What was computed and what was cached, how scores are normalised, and what is read."""
        line = super().report()
        if not self.saved.facts.normalised:
            line += f"; scores are not normalised: {_stated_error(self.saved.about)}"
        if self.given_later:
            line += "; documents read from the last sentence to the first"
        return line

    def details(self) -> str:
        """Nodes of the tries and normalisers of all pairs, in a line; empty if there were none."""
        if not self.opened:
            return ""
        work, parts = self.engine.counts, []
        if work.nodes:
            share = work.tokens / work.nodes
            parts.append(f"{work.nodes:,} trie nodes ({share:.2f} tokens a node)")
        if work.normalisers:
            share = work.recomputed / work.normalisers
            parts.append(f"{work.normalisers:,} normalisers, {share:.2%} recomputed directly")
        return f"{self.label}: {', '.join(parts)}" if parts else ""

    def _computed(
        self, documents: Sequence[tuple[str, ListTexts]], *, null: bool
    ) -> Iterator[Arrays]:
        """Scores of whole documents: in one batch, but one by one if `deterministic`."""
        from lm.scoring import LogProbError
        from rerank.scorers.histories import located

        if self.arithmetic[1] and len(documents) > 1:
            for document in documents:
                yield from self._computed([document], null=null)
        else:
            names, texts = zip(*documents, strict=True)
            starts = offsets_of(np.array([len(text.counts) for text in texts]))
            try:
                yield from self._batch(texts, starts, null=null)
            except LogProbError as fault:
                place = fault.list or 0
                d = int(np.searchsorted(starts, place, side="right")) - 1
                where = located(fault, place - int(starts[d]))
                raise RerankError(f"{self.place(names[d])}: {where}") from None
            except MemoryError as fault:
                to = f" to {names[-1]!r}" if len(names) > 1 else ""
                raise RerankError(
                    f"{self.place(names[0])}{to}: {fault}; keep fewer candidates with --top"
                ) from None

    def _batch(self, texts: Sequence[ListTexts], starts: Places, *, null: bool) -> list[Arrays]:
        """Scores of documents in one batch; starts: (D + 1,) offsets into the lists of all."""
        from lm.scoring import independent, pairs
        from lm.trie import Candidates

        encoded = [self._encoded(text) for text in texts]
        lists = Candidates.joined([lists for lists, _ in encoded])
        side, first = self._side_rows(texts), np.zeros(len(lists), dtype=np.bool_)
        first[starts[:-1][np.diff(starts) > 0]] = True
        if null or (self.order == 0 and side is None):  # in the start context
            scores = independent(self.engine, lists, side)
        else:
            scores = pairs(self.engine, lists, first, side)
        return [
            {**columns, "scores": flat(scores[a:b])}
            for (a, b), (_, columns) in zip(pairwise(starts), encoded, strict=True)
        ]

    def _problem(self, name: str, texts: ListTexts, known: ListScores | None) -> HistoryProblem:
        """The problem of a document that is scored as a search goes on, with its cached scores."""
        from rerank.scorers.acausal import AcausalProblem
        from rerank.scorers.histories import ContextualProblem

        encoded = cache(partial(self._encoded, texts))
        known = known or ListScores(texts, texts, encoded()[1])
        if not self.causal:
            return AcausalProblem(self.engine, known, encoded, label=self.place(name))
        return ContextualProblem(
            self.engine,
            known,
            self._score_cache,
            encoded,
            order=self.order,
            label=self.place(name),
            side=self._side_rows([texts]),
        )

    def _static(self, known: ListScores) -> NDArray[np.float64]:
        """Number of out-of-vocabulary words of each candidate, (n, 1), added to the totals.

        (n, 0) where none can be: of subword units.
        """
        unknown, vocabulary = known.column("unknown"), self.saved.vocabulary
        if SOURCE in known.requested.side:
            self.of_source.add(*self.saved.words_of_source(known.requested.side[SOURCE]))
        if isinstance(vocabulary, SubwordVocabulary):
            self.unknown.add_first(known.requested, vocabulary.knows)
            return super()._static(known)
        words = int(known.column("words").sum())
        self.unknown.add_candidates(known.requested, words, unknown, vocabulary.__contains__)
        return unknown.astype(np.float64)[:, None]

    def _encoded(self, texts: ListTexts) -> tuple[Candidates, Arrays]:
        """Candidates as ids of words, and the number of words and unknown words of each."""
        from lm.trie import Candidates

        tokens, offsets = self.saved.encode_lines(texts.text)
        unknown = np.concatenate([[0], np.cumsum(tokens == UNKNOWN)])[offsets]
        columns = {
            "words": np.diff(offsets).astype(np.int32),
            "unknown": np.diff(unknown).astype(np.int32),
        }
        return Candidates(tokens, offsets, texts.offsets), columns

    def _side_rows(self, texts: Sequence[ListTexts]) -> Rows | None:
        """Side information of all lists of some documents, a row each; None if there is none.

        Lists without candidates are not among them: the next sentence is the next one with
        candidates.
        """
        if not self.side_information:
            return None
        context, device = self.engine.model.context, self.engine.backend.device
        documents = np.cumsum([0, *(len(text.counts) for text in texts)])
        side: dict[str, SideText] = {}
        for kind in self.side_information:
            if kind in NUMBERS:
                indices = [  # of the list that each one names, 0 for none, among all lists
                    begin + int(line) - 1 if int(line) else -1
                    for text, begin in zip(texts, documents.tolist(), strict=False)
                    for line in text.side[kind].split()
                ]
                side[kind] = SentenceNumbers.of(np.array(indices, np.int64))
            else:
                lines = b"".join(text.side[kind] for text in texts)
                side[kind] = self.saved.encode_side(kind, lines)
        return rows_of(side, context.side_information, np.arange(documents[-1]), documents, device)


class ChannelModel(LanguageModel):
    """log p(source sentence | candidate) by a model trained with source and target exchanged.

    The channel of a noisy-channel model: by Bayes' rule the best translation has the largest
    p(target) · p(source | target) (Brown et al. 1993); Yee, Dauphin & Auli 2019 (arXiv:1908.05731)
    rerank lists of neural systems by it. Order 0. Equal candidates of a list are read once. There
    is no column of unknown words: those of the source are the same for all candidates.
    """

    cached_columns = ()
    counted = "source"

    def __init__(
        self,
        name: str,
        saved: SavedModel,
        cache: Cache | None = None,
        *,
        arithmetic: tuple[str, bool],
    ) -> None:
        super().__init__(name, saved, cache, arithmetic=arithmetic)
        self.columns, self.cure = (), "leave reverse=yes out if it is a model of the target"
        identity = repr((saved.digest, "reverse")).encode()
        self.digest = hashlib.sha256(identity).hexdigest()[: len(saved.digest)]

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """That of the model, and the direction."""
        return (*super()._identity(null=null), "reverse")

    def _static(self, known: ListScores) -> NDArray[np.float64]:
        """No columns; the unknown words of the source are counted for a warning."""
        counts = np.ones(len(known.requested.counts), np.int64)
        sources = ListTexts(known.requested.side[SOURCE], counts)
        self.unknown.add_first(sources, self.saved.vocabulary.knows)
        return np.zeros((known.requested.counts.sum(), 0))

    def _batch(self, texts: Sequence[ListTexts], starts: Places, *, null: bool) -> list[Arrays]:
        """Scores of documents in one batch; starts: (D + 1,) offsets into the lists of all."""
        from lm.scoring import LogProbError, given_each
        from lm.sentences import Rows

        numbers: list[list[int]] = []  # of each candidate among the distinct ones of its list
        distinct: list[dict[bytes, int]] = []
        for of_list in chain(*(text.lists() for text in texts)):
            known: dict[bytes, int] = {}
            numbers.append(
                [known.setdefault(line, len(known)) for line in of_list.splitlines(True)]
            )
            distinct.append(known)
        groups = offsets_of(np.array([len(known) for known in distinct], np.int64))
        read = self.saved.encode_side(SOURCE, b"".join(chain(*distinct)))
        device = self.engine.backend.device
        side = Rows.of(read.rows(np.arange(groups[-1]), device))
        lines = b"".join(text.side[SOURCE] for text in texts)
        sentences, _ = self._encoded(ListTexts(lines, np.ones(len(distinct), np.int64)))
        try:
            scores = given_each(self.engine, sentences, side, groups)
        except LogProbError as fault:
            k = numbers[fault.list or 0].index(fault.candidate or 0)
            raise LogProbError(str(fault), list=fault.list, candidate=k) from None
        every = [of_list[places] for of_list, places in zip(scores, numbers, strict=True)]
        return [{"scores": flat(every[a:b])} for a, b in pairwise(starts.tolist())]


def _opened(saved: SavedModel, arithmetic: tuple[str, bool], share: float | None) -> ScoringEngine:
    """What scores with a model, where that is, or with it and a document cache of this weight."""
    from lm.backend import Backend
    from lm.document_cache import WithDocumentCache
    from lm.scoring import ScoringEngine

    model, (dtype, deterministic) = saved.model, arithmetic
    backend = Backend(model.embedding.weight.device, dtype=dtype, deterministic=deterministic)
    model = model if share is None else WithDocumentCache(model, share)
    return ScoringEngine.of(model, backend)


def _stated_error(about: Mapping[str, object]) -> str:
    """Log Z on the validation text, as the folder of the model states it."""
    stated = about.get("log_z")
    numbers = [stated.get("mean"), stated.get("sd")] if isinstance(stated, dict) else [None]
    if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
        return "log Z unknown"
    from lm.evaluation import LogNormalisers

    return f"{LogNormalisers(*numbers).to_text()} on the validation text"
