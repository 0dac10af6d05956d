"""`rerank lm-eval` on the documents of a text: `coherence`, `ordering` and `next-sentence`.

What Ghosh et al. (2016), §4.4, leave open of `next-sentence` is decided so: passages are cut from
the beginning of a document, one after the other, and share no sentence; a rest that is shorter is
left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rerank.errors import InputError, UsageError
from rerank.files.terminal import progress
from rerank.options import argument, option, part, record
from rerank.runs.options import (
    LM_OR_HF_HELP,
    Machine,
    Messages,
    form_option,
    parting_option,
    print_result,
)
from rerank.scorers.model_options import HUGGING_FACE
from rerank.values import FILE, FOLDER, Pair, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm.checkpoint import SavedModel
    from lm.comparisons import Block
    from lm.corpus import Corpus
    from rerank.metrics.accuracy import Array
    from rerank.notices import Notices
    from rerank.report.language_models import CoherenceReport, ModelFacts
    from rerank.scorers.causal_lm import CausalLM

_UNNAMED = "\0"  # in place of a name; no argument of a command has this character
SEED_OF_MODELS = Whole(0, 2**31 - 1)


@record
class ModelsAndText:
    """Language models, and the text that they are compared on."""

    lms: tuple[tuple[str, Path], ...] = option(
        f"{LM_OR_HF_HELP}; NAME is its name in the output; repeatable.",
        "--lm",
        type=Pair("NAME=DIR or DIR, for example codclm.lm", FOLDER, label=_UNNAMED),
        metavar="[NAME=]DIR",
        many=True,
    )
    text: str = argument("TEXT", type=FILE)
    parting: str = parting_option()

    def opened(
        self, machine: Machine, open_folder: Callable[..., SavedModel]
    ) -> list[tuple[str, Path, SavedModel | CausalLM]]:
        """The models with their names and folders; UsageError for two of one name.

        A folder without a name is its own name.
        """
        from rerank.scorers.models import open_for_texts

        # keys behind a folder without a name have the first =
        whole = [
            (_UNNAMED, Path(f"{name}={path}")) if name.startswith(HUGGING_FACE) else (name, path)
            for name, path in self.lms
        ]
        named = [(str(path) if name == _UNNAMED else name, path) for name, path in whole]
        for name, n in Counter(name for name, _ in named).items():
            if n > 1:
                raise UsageError(f"--lm {name}: given {n} times; give each model a name of its own")
        on = machine.device, machine.threads
        return [
            (name, folder, open_for_texts(folder, *on) or open_folder(folder, *on))
            for name, folder in named
        ]


def announce_choice(model: CausalLM, texts: Iterable[str], messages: Messages) -> None:
    """Have a model of Hugging Face choose by the first sentences what its options leave open."""
    if line := model.choose_by(texts):
        messages.announce(line)


@record
class PermutationOptions:
    """Options of `rerank lm-eval coherence` and of `rerank lm-eval ordering`."""

    given: ModelsAndText = part(ModelsAndText)
    permutations: int = option(
        "Permutations of the sentences of each document; fewer where fewer have another text.",
        type=Whole(1, 10_000),
        default=20,
    )
    seed: int = option("Random seed of permutations.", type=SEED_OF_MODELS, default=1)
    bags: str | None = option(
        "Score of a sentence under a model of bags of words, as rnnslm: mean or sum over its "
        "words.\n\n"
        "The mean of log p, by which it is trained (Lin et al. 2015, eq. 9), or the sum, the "
        "log-probability of the bag.",
        type=click.Choice(["mean", "sum"]),
        default=None,
    )
    form: str = form_option("text", "json")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@record
class Blocks:
    """How passages of a text are put into blocks."""

    block: int = option(
        "Passages of a block, candidates of each other.", type=Whole(2, 1000), default=50
    )
    context: int = option(
        "Sentences of a passage before the one to choose.", type=Whole(1, 1000), default=3
    )
    blocks: int = option("Most blocks.", type=Whole(1, 100_000), default=100)
    candidates: str = option(
        "Which passages are in a block.\n\n"
        "From different documents, drawn at random, as in the paper; consecutive in the "
        "text, which is harder and needs fewer documents; or passages whose last sentences "
        "have one topic of --topics, the paper's second experiment.",
        type=click.Choice(["separate", "consecutive", "same-topic"]),
        default="separate",
    )
    topics: str | None = option(
        "File with a topic for each line of TEXT, as `rerank topics label` writes it.\n\n"
        "Blank where TEXT is: for models that are given topics (each candidate its own), and "
        "for --candidates same-topic.",
        type=FILE,
        default=None,
    )
    seed: int = option("Random seed of the blocks.", type=SEED_OF_MODELS, default=1)


@record
class NextSentenceOptions:
    """Options of `rerank lm-eval next-sentence`."""

    given: ModelsAndText = part(ModelsAndText)
    blocks: Blocks = part(Blocks, "Blocks")
    errors: str | None = option(
        "Write the wrong choices to this file, one JSON object per line.", type=FILE, default=None
    )
    form: str = form_option("text", "json")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def coherence(options: PermutationOptions) -> None:
    """Measure how often a language model prefers a document to permutations of its sentences.

    TEXT has one sentence per line, and by default a blank line between documents. The accuracy is
    printed as in Ji et al. 2016 (mean and standard deviation over 1,000 samples of the documents,
    with their z-test), and as the share of all pairs of a document and a permutation, with a test
    over documents between models.

    Example:
      rerank lm-eval coherence --lm codclm.lm --lm rnnlm.lm --permutations 20 test.en
    """
    print_result(_permuted(options), options.form)


def ordering(options: PermutationOptions) -> None:
    """Measure how often a language model finds the order of the sentences of a document.

    TEXT has one sentence per line, and by default a blank line between documents. The accuracy is
    that of Lin et al. 2015: the share of all pairs of a document and a permutation of its sentences
    in which the document has the higher probability, here with a 95% interval and a test over
    documents between models. The pairs are those of `lm-eval coherence` with the same seed.

    Example:
      rerank lm-eval ordering --lm rnnslm.lm --lm hrnnlm.lm --permutations 20 talks.en
    """
    from rerank.report.language_models import OrderingReport

    print_result(OrderingReport(_permuted(options)), options.form)


def next_sentence(options: NextSentenceOptions) -> None:
    """Measure how often a language model chooses the sentence that follows a passage.

    TEXT has one sentence per line, and by default a blank line between documents; for paragraphs,
    as in Ghosh et al. 2016, give --documents paragraphs. It is cut in passages of four sentences:
    the fourth is chosen, given the other three, among the fourth sentences of all passages of the
    block. Scores are those of equation 4 there, log p without its normaliser, and log p given the
    context less log p without.

    Example:
      rerank lm-eval next-sentence --lm clstm.lm --lm rnnlm.lm --errors wrong.jsonl test.en
    """
    import numpy as np

    from lm.corpus import renumber
    from rerank.files.outputs import atomic, check_outputs
    from rerank.metrics.accuracy import SCORES, outcomes_of
    from rerank.report.language_models import NextSentenceReport
    from rerank.runs.texts import interned
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.models import broken_models, open_forward_model

    given, settings, errors = options.given, options.blocks, options.errors
    topics, labels = settings.topics, None
    options.messages.announce_threads(options.machine.threads)
    with options.messages.warnings() as notices:
        folders = [folder for _, folder in given.lms]
        read = (given.text, *((topics,) if topics else ()), *folders)
        check_outputs((errors,) if errors else (), read)
        opened = given.opened(options.machine, open_forward_model)
        _check_topics(opened, settings)
        text = EvaluationText.read(given.text, given.parting, notices)
        if topics is not None:
            beside = text.corpus, text.name, given.parting, notices
            words, labels = interned(topics, "topics", *beside)
        blocks, left_out = _blocks(text, settings, None if labels is None else labels.tokens)
        outcomes = {}
        with atomic(errors) if errors else nullcontext() as file:
            for name, folder, saved in opened:
                corpus, facts = text.read_by(saved, name, options.messages, notices)
                if isinstance(saved, CausalLM):
                    matrices = _causal_matrices(saved, text, blocks)
                else:
                    if labels is not None and "topics" in saved.side:
                        known = renumber(labels, words, saved.side["topics"])
                        corpus = replace(corpus, side={"topics": known})
                    matrices = _matrices(saved, corpus, blocks)
                with broken_models(folder):
                    own = [*progress(matrices, label=name, unit="blocks", total=len(blocks))]
                if file is not None:
                    for b, (block, by_score) in enumerate(zip(blocks, own, strict=True)):
                        file.writelines(_wrong(text, name, b, block, by_score))
                if isinstance(saved, CausalLM):
                    saved.finish(text.name, notices)
                outcomes[facts] = {
                    score: np.concatenate([outcomes_of(by_score[score]) for by_score in own])
                    for score in SCORES
                }
    chosen = {name: getattr(settings, name) for name in ("block", "context", "candidates")}
    about = {"blocks": len(blocks), **chosen, "left_out": left_out, "seed": settings.seed}
    documents = [own.document for block in blocks for own in block]
    print_result(NextSentenceReport.of(outcomes, documents, about), options.form)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationText:
    """A text in the indices of its own distinct words, so that it is the same for all models."""

    name: str
    words: list[bytes]
    corpus: Corpus

    @classmethod
    def read(cls, path: str | Path, documents: str, notices: Notices) -> EvaluationText:
        """The text of a file, documents parted as `lm.corpus.DOCUMENTS` names it.

        InputError if it has no words.
        """
        from rerank.files.paths import display
        from rerank.formats.running_text import RunningText
        from rerank.runs.texts import read_text

        words, corpus = read_text(RunningText(path, "evaluation", documents), notices)
        return cls(display(path), words, corpus)

    def read_by(
        self, saved: SavedModel | CausalLM, name: str, messages: Messages, notices: Notices
    ) -> tuple[Corpus, ModelFacts]:
        """The text as a model of this name reads it, and what a report says of the model.

        In the ids of a model of our own, not in its reading order, with a warning if far more words
        are unknown than in its training text.
        """
        from lm.corpus import renumber
        from rerank.report.language_models import ModelFacts
        from rerank.scorers.causal_lm import CausalLM
        from rerank.scorers.features import UnknownWords

        if isinstance(saved, CausalLM):
            announce_choice(saved, self.sentences(), messages)
            return self.corpus, ModelFacts.of_causal(name, saved)
        unknown = UnknownWords()
        words = [self.words[i] for i in self.corpus.tokens.tolist()]
        unknown.add(words, saved.vocabulary.__contains__)
        unknown.warn(name, saved.about, notices, source=self.name, text="text")
        corpus = renumber(self.corpus, self.words, saved.vocabulary)
        return corpus, ModelFacts.of(name, saved, unknown.share)

    def sentences(self) -> Iterator[str]:
        """All sentences in order, as texts."""
        return map(self.sentence, range(self.corpus.n_sentences))

    def sentence(self, s: int) -> str:
        """Sentence s, as text."""
        own = self.corpus.tokens[slice(*self.corpus.sentences[s : s + 2])]
        return b" ".join(self.words[i] for i in own.tolist()).decode()


# Documents and permutations of their sentences


def _permuted(options: PermutationOptions) -> CoherenceReport:
    """Accuracy of language models in telling documents from permuted ones.

    A document of the text is compared with random permutations of its sentences, which all models
    share: the seed and the number of the document decide them. All have different texts, and none
    that of the document. A pair is right if log p of the document is higher, all sentences and
    their `</s>` counted; a tie counts ½. Documents that have no such permutation are left out;
    InputError if all are.
    """
    import numpy as np

    from lm.comparisons import distinct_orders, log_probs_of_orders
    from rerank.report.language_models import CoherenceReport, PermutedDocument
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.models import broken_models, open_model, refuse

    given, permutations, seed = options.given, options.permutations, options.seed
    options.messages.announce_threads(options.machine.threads)
    with options.messages.warnings() as notices:
        opened = given.opened(options.machine, open_model)
        for _, folder, saved in opened:
            if isinstance(saved, CausalLM):
                continue
            if not saved.model.causal:
                raise UsageError(
                    f"{folder}: the model is given the next sentence, and its scores add up to no "
                    "log-probability of a document; choose another model"
                )
            refuse(saved, folder, "rerank lm-eval coherence")
        if options.bags and not any(is_bags(saved) for *_, saved in opened):
            raise UsageError("--bags: no --lm is a model of bags of words, such as rnnslm")
        means = options.bags != "sum"
        text = EvaluationText.read(given.text, given.parting, notices)
        n, orders = text.corpus.n_documents, {}
        for d in range(n):
            rng = np.random.default_rng((seed, d))
            if len(several := distinct_orders(text.corpus, d, permutations, rng)):
                orders[d] = several
        if not orders:
            raise InputError(
                "expected a document of two different sentences or more, found none; part "
                "documents with blank lines, or choose another text",
                source=text.name,
            )
        outcomes = {}
        for name, folder, saved in opened:
            corpus, facts = text.read_by(saved, name, options.messages, notices)
            if isinstance(saved, CausalLM):
                log_probs = _causal_log_probs(saved, text, orders)
            else:
                own = means and is_bags(saved)
                facts = replace(facts, means=own)
                log_probs = log_probs_of_orders(saved, corpus, orders, means=own)
            found = progress(log_probs, label=name, unit="documents", total=len(orders))
            with broken_models(folder):
                outcomes[facts] = [(own[0] > own[1:]) + 0.5 * (own[0] == own[1:]) for own in found]
            if isinstance(saved, CausalLM):
                saved.finish(text.name, notices)
        paired = [PermutedDocument(d, own.shape[1], len(own)) for d, own in orders.items()]
        return CoherenceReport.of(
            outcomes, paired, left_out=n - len(paired), permutations=permutations, seed=seed
        )


def is_bags(saved: SavedModel | CausalLM) -> bool:
    """Whether a model predicts sentences as bags of words, without `</s>`."""
    from rerank.scorers.causal_lm import CausalLM

    return not isinstance(saved, CausalLM) and not saved.model.head.predicts_end


def _causal_log_probs(
    model: CausalLM, text: EvaluationText, orders: Mapping[int, NDArray[np.int64]]
) -> Iterator[NDArray[np.float64]]:
    """Log p (1 + P,) of documents as they are, and with their sentences in P other orders."""
    import numpy as np

    for d, own in orders.items():
        first = int(text.corpus.documents[d])
        sentences = [text.sentence(first + s).encode() for s in range(own.shape[1])]
        texts = [sentences, *([sentences[s] for s in order] for order in own.tolist())]
        if model.order == 0:  # all alike, whatever rounding says
            texts = texts[:1] * len(texts)
        yield np.array([model.log_probs(one)[0].sum() for one in texts])


# Passages, and blocks of them whose last sentences are candidates of each other


def _check_topics(
    opened: Sequence[tuple[str, Path, SavedModel | CausalLM]], settings: Blocks
) -> None:
    """UsageError for models that need what this command does not read, or for topics amiss."""
    from rerank.formats.translations import check_files
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.models import refuse

    needed: dict[str, str] = {}
    for _, folder, saved in opened:
        if isinstance(saved, CausalLM):
            continue
        if {*saved.side} == {*saved.model.context.side_information} == {"topics"}:
            needed.setdefault("topics", str(folder))
        else:
            refuse(saved, folder, "rerank lm-eval next-sentence")
    if settings.candidates == "same-topic":
        needed.setdefault("topics", "--candidates same-topic")
    check_files(needed, () if settings.topics is None else ("topics",))


def _blocks(
    text: EvaluationText, settings: Blocks, topics: NDArray[np.int32] | None
) -> tuple[list[Block], int]:
    """The blocks of a text, and how many passages are in none; InputError without a block.

    topics: (T,) those of the sentences.
    """
    import numpy as np

    from lm.comparisons import BLOCKS, Passage

    size, kind = settings.context + 1, settings.candidates
    passages = [
        Passage(d, last - size + 1, last, None if topics is None else int(topics[last]))
        for d, (begin, end) in enumerate(pairwise(text.corpus.documents.tolist()))
        for last in range(begin + size - 1, end, size)
    ]
    rng = np.random.default_rng(settings.seed)
    blocks = BLOCKS[kind](passages, settings.block, settings.blocks, rng)
    if blocks:
        return blocks, len(passages) - len(blocks) * settings.block
    of_topic = max(Counter(own.topic for own in passages).values(), default=0)
    what, number = {
        "separate": ("documents with ", len({own.document for own in passages})),
        "same-topic": ("passages of one topic, of all ", of_topic),
        "consecutive": ("", len(passages)),
    }[kind]
    cure = "choose another text"
    if number > 1:
        cure = f"give --block {number} or less"
        cure += ", or --candidates consecutive" * (len(passages) > number)
    raise InputError(
        f"expected {settings.block} {what}passages of {size} sentences, found {number}; {cure}",
        source=text.name,
    )


def _matrices(
    saved: SavedModel, corpus: Corpus, blocks: Sequence[Block]
) -> Iterator[dict[str, Array]]:
    """Score matrices (k, k) of each block, by name of score; corpus: in the model's ids.

    O(k²) sentences are scored for a block of k passages; those of one block are in memory.
    """
    import numpy as np

    from lm.comparisons import scores_in_contexts, scores_of_followers
    from lm.scoring import ScoringEngine

    corpus = saved.in_reading_order(corpus)

    def sentence(s: int) -> list[int]:
        return [*corpus.tokens[slice(*corpus.sentences[s : s + 2])].tolist()]

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
        yield _by_score(found.astype(np.float64))


def _causal_matrices(
    model: CausalLM, text: EvaluationText, blocks: Sequence[Block]
) -> Iterator[dict[str, Array]]:
    """Score matrices (k, k) of each block under a model of Hugging Face, by name of score."""
    import numpy as np

    def sentences(first: int, last: int) -> tuple[bytes, ...]:
        return tuple(text.sentence(s).encode() for s in range(first, last))

    for block in blocks:
        contexts = [*(sentences(own.first, own.last) for own in block), ()]
        candidates = [sentences(own.last, own.last + 1)[0] for own in block]
        scores = model.scores_after((context, candidates) for context in contexts)
        yield _by_score(np.stack([*scores]))


def _by_score(log_probs: NDArray[np.float64]) -> dict[str, Array]:
    """Score matrices (k, k), by name of score, of scores (k + 1, k), the last without context."""
    from rerank.metrics.accuracy import SCORES

    return {name: score(log_probs[:-1], log_probs[-1]) for name, score in SCORES.items()}


def _wrong(
    text: EvaluationText, lm: str, b: int, block: Block, matrices: Mapping[str, Array]
) -> Iterator[bytes]:
    """A line of JSON for each passage of a block and each score by which it is wrong.

    document, sentence (in its document), block: from 0; lead: of the choice over the right one.
    """
    for score, matrix in matrices.items():
        for own, scores, right in zip(block, matrix, matrix.diagonal().tolist(), strict=True):
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
