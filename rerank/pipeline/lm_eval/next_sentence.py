"""`rerank lm-eval next-sentence`: how often a model chooses the sentence that follows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rerank.commands.run import progress
from rerank.errors import InputError
from rerank.files.outputs import atomic, check_outputs
from rerank.formats.side_information import check_files
from rerank.metrics.accuracy import SCORES, outcomes_of
from rerank.notices import Notices
from rerank.pipeline.lm_eval.passages import CANDIDATES, Block, passages_of
from rerank.pipeline.lm_eval.texts import (
    EvaluationText,
    NamedModels,
    check_names,
    needs_topics,
    with_side,
)
from rerank.report.language_models import Accuracy, ModelFacts, NextSentenceReport, SelectionModel
from rerank.scorers.model_folders import broken_models, open_forward_model, refuse

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus

TOPICS = "topics"
Array = NDArray[np.float64]
Matrices = Mapping[str, Array]  # (k, k) of a block, by name of `SCORES`


@dataclass(frozen=True, slots=True)
class BlockSettings:
    """How blocks are made: size, context sentences, candidates (of `CANDIDATES`), most, seed."""

    block: int = 50
    context: int = 3
    candidates: str = "separate"
    blocks: int = 100
    seed: int = 1


def next_sentence(
    lms: NamedModels,
    text: str | Path,
    settings: BlockSettings,
    *,
    notices: Notices,
    documents: str = "blank",
    topics: str | Path | None = None,
    errors: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> NextSentenceReport:
    """Accuracy of language models, given by name, in choosing the next sentence.

    A passage is `context` sentences and the next one; in each block of passages, the next
    sentence of each is chosen among those of all. The context is read as the beginning of a
    document. Scores: those of `rerank.metrics.accuracy.SCORES`, of log p with `</s>`. topics:
    file of the topic of each sentence of the text, for models that are given topics, of which
    each candidate is given its own (Ghosh et al. 2016, §4.3), and for candidates of one topic.
    errors: file for a line of JSON for each wrong choice. InputError if the text has no block.
    """
    check_outputs((errors,) if errors else (), (text, *((topics,) if topics else ())))
    check_names(lms)
    opened = [(name, folder, open_forward_model(folder, device, threads)) for name, folder in lms]
    _check_topics([(folder, saved) for _, folder, saved in opened], settings, topics)
    found = EvaluationText.read(text, documents, notices)
    side = {} if topics is None else found.side({TOPICS: topics}, documents, notices)
    blocks, left_out = _blocks(found, settings, side[TOPICS][1].tokens if side else None)
    outcomes: dict[str, dict[str, Array]] = {}
    models = []
    with atomic(errors) if errors else nullcontext() as file:
        for name, folder, saved in opened:
            corpus, oov = found.encoded(saved, name, notices)
            matrices = _matrices(saved, with_side(corpus, saved, side), blocks)
            with broken_models(folder):
                own = [*progress(matrices, label=name, unit="blocks", total=len(blocks))]
            if file is not None:
                for b, (block, by_score) in enumerate(zip(blocks, own, strict=True)):
                    file.writelines(_wrong(found, name, b, block, by_score))
            outcomes[name] = {
                score: np.concatenate([outcomes_of(by_score[score]) for by_score in own])
                for score in SCORES
            }
            facts = ModelFacts(name, saved.digest, saved.model.order, oov)
            accuracies = {s: Accuracy.of(one) for s, one in outcomes[name].items()}
            models.append(SelectionModel(facts, saved.model.head.normalised, accuracies))
    return NextSentenceReport(
        tuple(models),
        NextSentenceReport.compared(
            {name: own["normalised"] for name, own in outcomes.items()},
            np.array([own.document for block in blocks for own in block]),
            settings.seed,
        ),
        len(blocks),
        settings.block,
        settings.context,
        settings.candidates,
        left_out,
        settings.seed,
    )


def _check_topics(
    opened: Sequence[tuple[Path, SavedModel]], settings: BlockSettings, topics: str | Path | None
) -> None:
    """UsageError for models that need what this command does not read, or for topics amiss."""
    of_models = [folder for folder, saved in opened if needs_topics(saved)]
    for folder, saved in opened:
        if folder not in of_models:
            refuse(saved, folder, "rerank lm-eval next-sentence")
    needed = dict.fromkeys([TOPICS] * bool(of_models), str(next(iter(of_models), "")))
    if settings.candidates == "same-topic":
        needed.setdefault(TOPICS, "--candidates same-topic")
    check_files(needed, () if topics is None else (TOPICS,))


def _blocks(
    text: EvaluationText, settings: BlockSettings, topics: NDArray[np.int32] | None
) -> tuple[list[Block], int]:
    """The blocks of a text, and how many passages are in none; InputError without a block."""
    passages = passages_of(text.corpus, settings.context + 1, topics)
    rng = np.random.default_rng(settings.seed)
    make = CANDIDATES[settings.candidates]
    blocks = make(passages, settings.block, settings.blocks, rng)
    if blocks:
        return blocks, len(passages) - len(blocks) * settings.block
    kind = settings.candidates
    number = {
        "separate": len({own.document for own in passages}),
        "same-topic": max(Counter(own.topic for own in passages).values(), default=0),
        "consecutive": len(passages),
    }[kind]
    what = {"separate": "documents with ", "same-topic": "passages of one topic, of all "}
    cure = "choose another text"
    if number > 1:
        cure = f"give --block {number} or less"
        cure += ", or --candidates consecutive" * (len(passages) > number)
    raise InputError(
        f"expected {settings.block} {what.get(kind, '')}passages of "
        f"{settings.context + 1} sentences, found {number}; {cure}",
        source=text.name,
    )


def _matrices(saved: SavedModel, corpus: Corpus, blocks: Sequence[Block]) -> Iterator[Matrices]:
    """Score matrices of each block; corpus: in the model's ids, with the topics it needs.

    O(k²) sentences are scored for a block of k passages; those of one block are in memory.
    """
    from lm.comparisons import scores_in_contexts, scores_of_followers
    from lm.scoring import ScoringEngine

    corpus = saved.in_reading_order(corpus)

    def sentence(s: int) -> list[int]:
        begin, end = corpus.sentences[s : s + 2].tolist()
        return [*corpus.tokens[begin:end].tolist()]

    engine = ScoringEngine.of(saved.model)
    for block in blocks:
        if saved.model.context.side_information:
            before = [np.arange(own.first, own.last) for own in block]
            last = np.array([own.last for own in block])
            found = scores_of_followers(engine, corpus, [*before, last[:0]], last)
        else:
            contexts = [tuple(map(sentence, range(own.first, own.last))) for own in block]
            candidates = [sentence(own.last) for own in block]
            (found,) = scores_in_contexts(engine, [candidates], [[*contexts, ()]])
        log_probs = found.astype(np.float64)
        yield {name: score(log_probs[:-1], log_probs[-1]) for name, score in SCORES.items()}


def _wrong(
    text: EvaluationText, lm: str, b: int, block: Block, matrices: Matrices
) -> Iterator[bytes]:
    """A line of JSON for each passage of a block and each score by which it is wrong.

    document, sentence (in its document), block: from 0; lead: of the choice over the right one.
    """
    for score, matrix in matrices.items():
        for own, scores, right in zip(block, matrix, np.diagonal(matrix).tolist(), strict=True):
            best = int(scores.argmax())
            if scores[best] == right:
                continue
            line = {
                "lm": lm,
                "score": score,
                "block": b,
                "document": own.document,
                "sentence": own.last - int(text.corpus.documents[own.document]),
                "context": [text.sentence(s) for s in range(own.first, own.last)],
                "right": text.sentence(own.last),
                "chosen": text.sentence(block[best].last),
                "lead": float(scores[best] - right),
            }
            yield json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
