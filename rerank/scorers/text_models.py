"""Language models that judge texts, which are no lists: those of train-lm and of Hugging Face.

Both kinds have the same methods, so that experiments need not tell them apart. Sentences are
UTF-8, their words parted by spaces; the context of a sentence is the sentences before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lm.comparisons import Block, log_probs_of_orders, scores_in_contexts, scores_of_followers
from lm.corpus import Corpus, renumber
from lm.folders import SavedModel
from lm.scoring import ScoringEngine
from lm.side_information import SideText, information_of
from lm.vocabulary import words_of
from rerank.notices import Notices
from rerank.scorers.causal_lm import CausalLM
from rerank.scorers.models import open_for_texts, refuse
from rerank.scorers.unknown_words import UnknownWords

Texts = Iterable[bytes]
Place = tuple[str, str]  # name of a text, and what it is, in messages
Variants = Sequence[Sequence[bytes]]  # [item][variant of a sentence]
Contexts = Sequence[Sequence[Sequence[bytes]]]  # [item][context][sentence]
Scores = NDArray[np.floating[Any]]
Orders = Mapping[int, NDArray[np.int64]]  # (P, n) of the n sentences of a document, by its number


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationText:
    """A text in the indices of its own distinct words, so that it is the same for all models.

    topics: distinct labels, and the label of each sentence in their indices.
    """

    name: str
    words: list[bytes]
    corpus: Corpus
    topics: tuple[list[bytes], SideText] | None = None

    def sentence(self, s: int) -> bytes:
        """The words of sentence s."""
        ids = self.corpus.tokens[slice(*self.corpus.sentences[s : s + 2])]
        return b" ".join(self.words[i] for i in ids.tolist())

    def sentences(self, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The sentences from `begin` to before `end`, or all."""
        return map(self.sentence, range(begin, self.corpus.n_sentences if end is None else end))

    def choices(self, block: Block) -> tuple[list[Sequence[bytes]], list[bytes]]:
        """Contexts of k passages and last none, and the k last sentences, which are the choices."""
        contexts = [tuple(self.sentences(passage.first, passage.last)) for passage in block]
        return [*contexts, ()], [self.sentence(passage.last) for passage in block]


class TrainedModel:
    """A model of `rerank train-lm` by its name.

    bags: whether it predicts sentences as bags of words, without `</s>`; oov: share of words that
    are out of vocabulary, known from `begin` on.
    """

    def __init__(self, name: str, folder: Path, saved: SavedModel) -> None:
        self.name, self.folder, self.saved, self.oov = name, folder, saved, 0.0
        self.digest, self.order, head = saved.digest, saved.model.order, saved.model.head
        self.bags, self.normalised = not head.predicts_end, head.normalised
        needed = information_of(saved.model.context, training=False)
        self.reads_sources = needed == ("source",)
        self.reads_topics = {*saved.side} == {*saved.model.context.side_information} == {"topics"}

    def refuse(self, command: str) -> None:
        """UsageError for a model that needs more than the text, in a command that has no more."""
        refuse(self.saved, self.folder, command)

    def begin(self, sentences: Texts, typical: Texts, place: Place, notices: Notices) -> str:
        """Count the unknown words of all sentences, with a warning if they are many."""
        unknown, (source, text) = UnknownWords(), place
        words = chain.from_iterable(map(words_of, sentences))
        unknown.add(words, self.saved.vocabulary.__contains__)
        unknown.warn(self.name, self.saved.about, notices, source=source, text=text)
        self.oov = unknown.share
        return ""

    def scores(
        self, variants: Variants, contexts: Contexts, sources: Contexts | None = None
    ) -> Iterator[Scores]:
        """Scores (C, K) of each item's K variants after its C contexts, in nats.

        Those after contexts that the model cannot tell apart have equal bits. sources: of each
        context and, last, of the item; models that read none are given none.
        """
        saved, read = self.saved, None
        ids = {
            sentence: saved.reading_order(saved.vocabulary.encode(words_of(sentence)))
            for sentence in chain(*variants, *chain(*contexts))
        }
        if sources is not None and self.reads_sources:
            lines = [*dict.fromkeys(chain(*chain(*sources)))]
            side = saved.encode_side("source", b"".join(line + b"\n" for line in lines))
            spans = pairwise(side.sentences.tolist())
            known = dict(zip(lines, (side.tokens[a:b].tolist() for a, b in spans), strict=True))
            read = [[tuple(map(known.__getitem__, text)) for text in item] for item in sources]
        encoded = [[tuple(map(ids.__getitem__, text)) for text in item] for item in contexts]
        lists = [[*map(ids.__getitem__, item)] for item in variants]
        return scores_in_contexts(ScoringEngine.of(saved.model), lists, encoded, read)

    def scores_of_blocks(self, text: EvaluationText, blocks: Iterable[Block]) -> Iterator[Scores]:
        """Scores (k + 1, k) of the last sentences of k passages in each other's contexts.

        Last those without context. Topics are those of the sentences, whatever the context. O(k²)
        sentences are scored for a block, those in memory.
        """
        if not self.reads_topics or text.topics is None:
            for contexts, candidates in map(text.choices, blocks):
                yield from self.scores([candidates], [contexts])
            return
        labels, topics = text.topics
        corpus = renumber(text.corpus, text.words, self.saved.vocabulary)
        side = {"topics": renumber(topics, labels, self.saved.side["topics"])}
        corpus = self.saved.in_reading_order(replace(corpus, side=side))
        engine = ScoringEngine.of(self.saved.model)
        for block in blocks:
            last = np.array([passage.last for passage in block])
            before = [np.arange(passage.first, passage.last) for passage in block]
            yield scores_of_followers(engine, corpus, [*before, last[:0]], last)

    def log_probs(self, text: EvaluationText, orders: Orders, *, means: bool) -> Iterator[Scores]:
        """Log p (1 + P,) of documents as they are, and with their sentences in P other orders.

        means: whether sentences under a model of bags count as means over their words.
        """
        corpus = renumber(text.corpus, text.words, self.saved.vocabulary)
        return log_probs_of_orders(self.saved, corpus, orders, means=means and self.bags)

    def finish(self, source: str, notices: Notices) -> None:
        """Nothing: texts of any length have room."""


class HuggingFaceModel:
    """A causal language model of Hugging Face by its name, to whose tokens no word is unknown."""

    bags = reads_sources = reads_topics = False
    normalised, oov = True, 0.0

    def __init__(self, name: str, folder: Path, model: CausalLM) -> None:
        self.name, self.folder, self.model, self.order = name, folder, model, model.order

    @property
    def digest(self) -> str:
        """The first digits of the digest of the model, and of what is chosen for it."""
        return self.model.digest[:16]

    def refuse(self, command: str) -> None:
        """Nothing: it needs no more than the text."""

    def begin(self, sentences: Texts, typical: Texts, place: Place, notices: Notices) -> str:
        """Choose by the first typical sentences what the options of the model leave open."""
        return self.model.choose_by(sentence.decode() for sentence in typical)

    def scores(
        self, variants: Variants, contexts: Contexts, sources: Contexts | None = None
    ) -> Iterator[Scores]:
        """Scores (C, K) of each item's K variants after its C contexts, in nats."""
        items = zip(variants, contexts, strict=True)
        rows = self.model.scores_after((text, lines) for lines, texts in items for text in texts)
        return (np.stack([*islice(rows, len(texts))]) for texts in contexts)

    def scores_of_blocks(self, text: EvaluationText, blocks: Iterable[Block]) -> Iterator[Scores]:
        """Scores (k + 1, k) of the last sentences of k passages in each other's contexts."""
        for contexts, candidates in map(text.choices, blocks):
            yield from self.scores([candidates], [contexts])

    def log_probs(self, text: EvaluationText, orders: Orders, *, means: bool) -> Iterator[Scores]:
        """Log p (1 + P,) of documents as they are, and with their sentences in P other orders."""
        for d, permutations in orders.items():
            document = [*text.sentences(*text.corpus.documents[d : d + 2].tolist())]
            texts = [document, *([document[s] for s in p] for p in permutations.tolist())]
            if self.order == 0:  # all alike, whatever rounding says
                texts = texts[:1] * len(texts)
            yield np.array([self.model.log_probs(lines)[0].sum() for lines in texts])

    def finish(self, source: str, notices: Notices) -> None:
        """Warn of contexts and texts longer than the model's positions."""
        self.model.finish(source, notices)


TextModel: TypeAlias = TrainedModel | HuggingFaceModel


def open_text_models(
    named: Mapping[str, Path],
    open_folder: Callable[..., SavedModel],
    device: str,
    threads: int | None,
) -> list[TextModel]:
    """The models of folders of train-lm, which `open_folder` opens, or of hf:DIR, by name."""
    opened: list[TextModel] = []
    for name, folder in named.items():
        if (causal := open_for_texts(folder, device, threads)) is not None:
            opened.append(HuggingFaceModel(name, folder, causal))
        else:
            opened.append(TrainedModel(name, folder, open_folder(folder, device, threads)))
    return opened
