"""`rerank lm-eval`: what language models know of documents, without lists to rerank.

What Ghosh et al. (2016), §4.4, leave open of `next-sentence` is decided so: passages are cut from
the beginning of a document, one after the other, and share no sentence; a rest that is shorter is
left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.commands.lm_eval_pairs import PairsOptions, pairs
from rerank.errors import InputError, UsageError
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.files.terminal import progress
from rerank.formats.contrastive import GROUPS, read_contrastive
from rerank.notices import Notices
from rerank.options import Command, argument, option, optional, optional_file, part, record
from rerank.runs.options import LM_OR_HF_HELP, Machine, Messages, form_option, printed
from rerank.runs.texts import evaluation_text, interned, parting_option
from rerank.scorers.model_options import HUGGING_FACE
from rerank.scorers.models import broken_models, open_forward_model, open_model
from rerank.values import FILE, FOLDER, Pair, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm.comparisons import Block
    from rerank.formats.contrastive import ContrastiveItem
    from rerank.metrics.significance import Array, Outcomes
    from rerank.report.language_models import (
        CoherenceReport,
        ContrastiveReport,
        NextSentenceReport,
    )
    from rerank.scorers.text_models import EvaluationText, TextModel

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

    @property
    def named(self) -> dict[str, Path]:
        """Folders by name, which a folder without a name is itself; UsageError for equal names."""
        # keys behind a folder without a name have the first =
        whole = [
            (_UNNAMED, Path(f"{name}={path}")) if name.startswith(HUGGING_FACE) else (name, path)
            for name, path in self.lms
        ]
        pairs = [(str(path) if name == _UNNAMED else name, path) for name, path in whole]
        for name, n in Counter(name for name, _ in pairs).items():
            if n > 1:
                raise UsageError(f"--lm {name}: given {n} times; give each model a name of its own")
        return dict(pairs)


@record
class PermutationOptions:
    """Options of `rerank lm-eval coherence`."""

    read: ModelsAndText = part(ModelsAndText)
    permutations: int = option(
        "Permutations of the sentences of each document; fewer where fewer have another text.",
        type=Whole(1, 10_000),
        default=20,
    )
    seed: int = option("Random seed of permutations.", type=SEED_OF_MODELS, default=1)
    bags: str | None = optional(
        "Score of a sentence under a model of bags of words, as rnnslm: mean or sum over its "
        "words.\n\n"
        "The mean of log p, by which it is trained (Lin et al. 2015, eq. 9), or the sum, the "
        "log-probability of the bag.",
        type=click.Choice(["mean", "sum"]),
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
    topics: str | None = optional_file(
        "File with a topic for each line of TEXT, as `rerank topics label` writes it.\n\n"
        "Blank where TEXT is: for models that are given topics (each candidate its own), and "
        "for --candidates same-topic."
    )
    seed: int = option("Random seed of the blocks.", type=SEED_OF_MODELS, default=1)


@record
class NextSentenceOptions:
    """Options of `rerank lm-eval next-sentence`."""

    read: ModelsAndText = part(ModelsAndText)
    blocks: Blocks = part(Blocks, "Blocks")
    errors: str | None = optional_file(
        "Write the wrong choices to this file, one JSON object per line."
    )
    form: str = form_option("text", "json")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@record
class ContrastiveOptions:
    """Options of `rerank lm-eval contrastive`."""

    lms: tuple[Path, ...] = option(
        f"{LM_OR_HF_HELP}; repeatable.", "--lm", type=FOLDER, metavar="DIR", many=True
    )
    files: tuple[str, ...] = argument("FILE...", type=FILE)
    seed: int = option("Random seed of the other items' contexts.", type=SEED_OF_MODELS, default=1)
    form: str = form_option("text", "json", "tsv")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def coherence(options: PermutationOptions, notices: Notices) -> CoherenceReport:
    """Measure how often a language model prefers a document to permutations of its sentences.

    TEXT has one sentence per line, and by default a blank line between documents. The accuracy is
    printed as in Ji et al. 2016 (mean and standard deviation over 1,000 samples of the documents,
    with their z-test), and as the share of all pairs of a document and a permutation, with a test
    over documents between models (Lin et al. 2015). All models have the same permutations, by the
    seed and the number of the document, whose texts are all different.

    Example:
      rerank lm-eval coherence --lm codclm.lm --lm rnnlm.lm --permutations 20 test.en
    """
    import numpy as np

    from lm.comparisons import distinct_orders
    from rerank.report.language_models import CoherenceReport, ModelFacts, PermutedDocument
    from rerank.scorers.text_models import open_text_models

    read, means, on = options.read, options.bags != "sum", options.machine
    models = open_text_models(read.named, open_model, on.device, on.threads)
    for model in models:
        model.refuse("rerank lm-eval coherence")
    if options.bags and not any(model.bags for model in models):
        raise UsageError("--bags: no --lm is a model of bags of words, such as rnnslm")
    text = evaluation_text(read.text, read.parting, notices)
    orders = {}
    for d in range(text.corpus.n_documents):
        rng = np.random.default_rng((options.seed, d))
        permutations = distinct_orders(text.corpus, d, options.permutations, rng)
        if len(permutations):
            orders[d] = permutations
    if not orders:
        raise InputError(
            "expected a document of two different sentences or more, found none; part documents "
            "with blank lines, or choose another text",
            source=text.name,
        )
    outcomes = {}
    for model in models:
        _begin(model, text, options.messages, notices)
        log_probs = model.log_probs(text, orders, means=means)
        shown = progress(log_probs, label=model.name, unit="documents", total=len(orders))
        with broken_models(model.folder):
            pairs = [(x[0] > x[1:]) + 0.5 * (x[0] == x[1:]) for x in shown]
        model.finish(text.name, notices)
        outcomes[ModelFacts.of(model, means=means and model.bags)] = pairs
    return CoherenceReport.of(
        outcomes,
        [PermutedDocument(d, order.shape[1], len(order)) for d, order in orders.items()],
        left_out=text.corpus.n_documents - len(orders),
        permutations=options.permutations,
        seed=options.seed,
    )


def _begin(model: TextModel, text: EvaluationText, messages: Messages, notices: Notices) -> None:
    """Have a model begin with a text."""
    choice = model.begin(text.sentences(), text.sentences(), (text.name, "text"), notices)
    if choice:
        messages.announce(choice)


@printed
def next_sentence(options: NextSentenceOptions, notices: Notices) -> NextSentenceReport:
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

    from rerank.formats.translations import check_files
    from rerank.metrics.significance import SCORES, outcomes_of
    from rerank.report.language_models import ModelFacts, NextSentenceReport
    from rerank.scorers.text_models import open_text_models

    read, settings, errors, on = options.read, options.blocks, options.errors, options.machine
    folders = read.named
    check_outputs([errors], (read.text, settings.topics), folders.values())
    models = open_text_models(folders, open_forward_model, on.device, on.threads)
    needed = {"topics": "--candidates same-topic"} if settings.candidates == "same-topic" else {}
    for model in models:
        if model.reads_topics:
            needed.setdefault("topics", str(model.folder))
        else:
            model.refuse("rerank lm-eval next-sentence")
    check_files(needed, () if settings.topics is None else ("topics",))
    text = evaluation_text(read.text, read.parting, notices)
    if settings.topics is not None:
        beside = text.corpus, text.name, read.parting, notices
        text = replace(text, topics=interned(settings.topics, "topics", *beside))
    blocks, left_out = _blocks(text, settings)
    outcomes = {}
    with atomic(errors) if errors else nullcontext() as file:
        for model in models:
            _begin(model, text, options.messages, notices)
            scores = model.scores_of_blocks(text, blocks)
            shown = progress(scores, label=model.name, unit="blocks", total=len(blocks))
            by_score: dict[str, list[Outcomes]] = {name: [] for name in SCORES}
            with broken_models(model.folder):
                for b, log_probs in enumerate(shown):
                    rows = log_probs.astype(np.float64)
                    matrices = {name: score(rows[:-1], rows[-1]) for name, score in SCORES.items()}
                    for name, matrix in matrices.items():
                        by_score[name].append(outcomes_of(matrix))
                    if file is not None:
                        file.writelines(_wrong(text, model.name, (b, blocks[b]), matrices))
            model.finish(text.name, notices)
            joined = {name: np.concatenate(parts) for name, parts in by_score.items()}
            outcomes[ModelFacts.of(model)] = joined
    chosen = {name: getattr(settings, name) for name in ("block", "context", "candidates")}
    about = {"blocks": len(blocks), **chosen, "left_out": left_out, "seed": settings.seed}
    documents = [passage.document for block in blocks for passage in block]
    return NextSentenceReport.of(outcomes, documents, about)


def _blocks(text: EvaluationText, settings: Blocks) -> tuple[list[Block], int]:
    """The blocks of a text, and how many passages are in none; InputError without a block."""
    import numpy as np

    from lm.comparisons import BLOCKS, Passage

    size, kind = settings.context + 1, settings.candidates
    topics = None if text.topics is None else text.topics[1].tokens
    passages = [
        Passage(d, last - size + 1, last, None if topics is None else int(topics[last]))
        for d, (begin, end) in enumerate(pairwise(text.corpus.documents.tolist()))
        for last in range(begin + size - 1, end, size)
    ]
    rng = np.random.default_rng(settings.seed)
    blocks = BLOCKS[kind](passages, settings.block, settings.blocks, rng)
    if blocks:
        return blocks, len(passages) - len(blocks) * settings.block
    of_topic = max(Counter(passage.topic for passage in passages).values(), default=0)
    what, number = {
        "separate": ("documents with ", len({passage.document for passage in passages})),
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


def _wrong(
    text: EvaluationText, lm: str, numbered: tuple[int, Block], matrices: Mapping[str, Array]
) -> Iterator[bytes]:
    """JSON lines of the choices that a score gets wrong; document, sentence, block: from 0."""
    b, block = numbered
    for score, matrix in matrices.items():
        for passage, scores, right in zip(block, matrix, matrix.diagonal().tolist(), strict=True):
            best = int(scores.argmax())
            if scores[best] == right:
                continue
            line = {
                "lm": lm,
                "score": score,
                "block": b,
                "document": passage.document,
                "sentence": passage.last - int(text.corpus.documents[passage.document]),
                "context": [s.decode() for s in text.sentences(passage.first, passage.last)],
                "right": text.sentence(passage.last).decode(),
                "chosen": text.sentence(block[best].last).decode(),
                "lead": float(scores[best] - right),
            }
            yield json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


@printed
def contrastive(options: ContrastiveOptions, notices: Notices) -> ContrastiveReport:
    """Measure how often a language model prefers the right sentence to wrong variants of it.

    Each line of FILE is an item: {"context": [SENTENCE, ...], "right": SENTENCE, "wrong": SENTENCE
    or [SENTENCE, ...]}, and, if items are to be grouped, "phenomenon", "language" or "pronoun";
    "source": [SENTENCE, ...], those of the context and of the item, is for models that read it.
    Accuracy is measured with the item's context, without context, and with another item's.

    Example:
      rerank lm-eval contrastive --lm codclm.lm --lm rnnlm.lm pronouns.jsonl
    """
    import numpy as np

    from rerank.report.language_models import (
        CONDITIONS,
        ContrastiveReport,
        GroupAccuracy,
        ModelFacts,
    )
    from rerank.scorers.text_models import open_text_models

    check_outputs((), options.files)
    for name, n in Counter(
        [*map(display, options.files), *(f"--lm {lm}" for lm in options.lms)]
    ).items():
        if n > 1:
            raise UsageError(f"{name}: given {n} times; give it once")
    items, groups = _items(options.files, notices)
    place = display(options.files[0])
    texts, sources = _conditions(items, options.seed)
    if len(texts[0]) < len(CONDITIONS):
        notices.add("condition-left-out", source=place)
    variants = [(item.right, *item.wrong) for item in items]
    named, on = {str(lm): lm for lm in options.lms}, options.machine
    models = open_text_models(named, open_forward_model, on.device, on.threads)
    for model in models:
        _check_sources(model, items, options.files)
    accuracies = {}
    for model in models:
        sentences = chain(*variants, *(item.context for item in items))
        rights = (item.right for item in items)
        if choice := model.begin(sentences, rights, (place, "item"), notices):
            options.messages.announce(choice)
        outcomes = []
        with broken_models(model.folder):
            scores = model.scores(variants, texts, sources)
            for rows in progress(scores, label=model.name, unit="items", total=len(items)):
                right, best = rows[:, 0], rows[:, 1:].max(axis=1)
                outcomes.append((right > best) + 0.5 * (right == best))  # ½ for a tie
        model.finish(place, notices)
        columns = dict(zip(CONDITIONS, np.array(outcomes).T, strict=False))
        accuracies[ModelFacts.of(model)] = [
            GroupAccuracy.of(name, {c: column[rows] for c, column in columns.items()})
            for name, rows in groups.items()
        ]
    return ContrastiveReport(accuracies, len(items), options.seed)


def _conditions(items: Sequence[ContrastiveItem], seed: int) -> tuple[list[Any], list[Any]]:
    """Sentences before each item in each condition, and their sources and that of the item.

    Without the last condition where items have no others whose contexts they could take.
    """
    import numpy as np

    contexts = [(item.context, item.source[:-1]) for item in items]
    others = contexts_of_others(contexts, np.random.default_rng(seed))
    of_others = [[]] * len(items) if others is None else [[contexts[k]] for k in others]
    texts, sources = [], []
    for item, other in zip(items, of_others, strict=True):
        texts.append([item.context, (), *(before for before, _ in other)])
        last = item.source[-1:]
        sources.append([item.source, last, *((*source, *last) for _, source in other)])
    return texts, sources


def contexts_of_others(
    contexts: Sequence[Hashable], rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """For each item another one with a different context, each item once: a permutation.

    Items in random order, those of equal contexts together, receive the context of the one m
    places further on, where m items have the most frequent context. None if no such permutation
    exists, which is so if m > n / 2. O(n log n) time.
    """
    import numpy as np

    n, counts = len(contexts), Counter(contexts)
    most = max(counts.values())
    if 2 * most > n:
        return None
    ranks = dict(zip(counts, rng.permutation(len(counts)).tolist(), strict=True))
    order = rng.permutation(n)
    order = order[np.argsort([ranks[contexts[i]] for i in order], kind="stable")]
    chosen = np.empty(n, dtype=np.int64)
    chosen[order] = np.roll(order, -most)
    return chosen


def _items(
    files: Iterable[str], notices: Notices
) -> tuple[list[ContrastiveItem], dict[str, list[int]]]:
    """The items of all files, and the rows of each group."""
    items: list[ContrastiveItem] = []
    rows: dict[tuple[str, str], list[int]] = {}
    names = [*map(display, files)]
    for file, name in zip(files, names, strict=True):
        for item in read_contrastive(file, notices):
            for group in (*item.groups, ("file", name)):
                rows.setdefault(group, []).append(len(items))
            items.append(item)
    groups = {"all": [*range(len(items))]}
    for field in (*GROUPS, "file") if len(names) > 1 else GROUPS:
        groups |= {f"{name}={value}": rows[name, value] for name, value in rows if name == field}
    return items, groups


def _check_sources(model: TextModel, items: Sequence[Any], files: Sequence[str]) -> None:
    """UsageError for a model that needs more than source sentences; InputError without these."""
    if not model.reads_sources:
        model.refuse("rerank lm-eval contrastive")
        return
    lacking = next((i for i, item in enumerate(items, 1) if not item.source), None)
    if lacking is not None:
        raise InputError(
            f'{model.folder} needs the source sentences, which item {lacking} lacks; give "source":'
            " [SENTENCE, ...], as `rerank lm-eval pairs --source FILE` writes it",
            source=", ".join(map(display, files)),
        )


COMMAND = click.Group(
    "lm-eval",
    commands=[
        Command("coherence", PermutationOptions, coherence),
        Command("contrastive", ContrastiveOptions, contrastive),
        Command("next-sentence", NextSentenceOptions, next_sentence),
        Command("pairs", PairsOptions, pairs),
    ],
    help="Measure what language models know of documents, without lists to rerank.",
)
