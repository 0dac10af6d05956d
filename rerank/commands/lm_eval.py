"""`rerank lm-eval`: experiments with language models alone, and the items of contrastive ones."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from rerank.commands.lm_eval_documents import (
    SEED_OF_MODELS,
    NextSentenceOptions,
    PermutationOptions,
    announce_choice,
    coherence,
    next_sentence,
    ordering,
)
from rerank.commands.run import (
    LM_OR_HF_HELP,
    ListFiles,
    Machine,
    Messages,
    ReferenceFiles,
    form_option,
    print_result,
)
from rerank.errors import InputError, UsageError
from rerank.files.terminal import progress
from rerank.options import Command, argument, option, part, record
from rerank.report.measures import check_word_lists
from rerank.values import FILE, FOLDER, TEXT, Pair, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm.checkpoint import SavedModel
    from rerank.formats.contrastive import ContrastiveItem
    from rerank.metrics.accuracy import Outcomes
    from rerank.notices import Notices
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.features import UnknownWords

    Indices: TypeAlias = NDArray[np.int64]

Words: TypeAlias = Sequence[bytes]


@record
class ContrastiveOptions:
    """Options of `rerank lm-eval contrastive`."""

    lms: tuple[Path, ...] = option(
        f"{LM_OR_HF_HELP}; repeatable.",
        "--lm",
        type=FOLDER,
        metavar="DIR",
        many=True,
    )
    files: tuple[str, ...] = argument("FILE...", type=FILE)
    seed: int = option("Random seed of the other items' contexts.", type=SEED_OF_MODELS, default=1)
    form: str = form_option("text", "json", "tsv")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@record
class Items:
    """What items are made of, and where they go."""

    texts: ReferenceFiles = part(
        ReferenceFiles, without={"drop_unreferenced"}, required={"references"}
    )
    out: str = option("File for the items.", type=FILE)
    word_class: str = option(
        "Words in which the variants differ: the English lists pronouns, auxiliaries or function, "
        "or the NAME of a --word-list.",
        "--class",
        type=TEXT,
        default="pronouns",
        metavar="NAME",
    )
    word_lists: tuple[tuple[str, str], ...] = option(
        "A list of words, one a line, for --class; repeatable.",
        "--word-list",
        type=Pair("NAME=FILE", FILE),
        default=(),
        metavar="NAME=FILE",
    )
    context: int = option(
        "Sentences of the reference before each item.", type=Whole(0, 1000), default=3
    )

    def check(self) -> None:
        """UsageError for two lists of words of one name."""
        check_word_lists(self.word_lists)


@record
class PairsOptions:
    """Options of `rerank lm-eval pairs`."""

    lists: ListFiles = part(
        ListFiles, "Lists and documents", without={"systems", "missing"}, required={"kbest"}
    )
    items: Items = part(Items, "Items")
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def contrastive(options: ContrastiveOptions) -> None:
    """Measure how often a language model prefers the right sentence to wrong variants of it.

    Each line of FILE is an item: {"context": [SENTENCE, ...], "right": SENTENCE, "wrong": SENTENCE
    or [SENTENCE, ...]}, and, if items are to be grouped, "phenomenon", "language" or "pronoun".
    Accuracy is measured with the item's context, without context, and with another item's.

    Example:
      rerank lm-eval contrastive --lm codclm.lm --lm rnnlm.lm pronouns.jsonl
    """
    import numpy as np

    from rerank.files.outputs import check_outputs
    from rerank.files.paths import display
    from rerank.report.language_models import ContrastiveReport, GroupAccuracy, ModelFacts
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.features import UnknownWords
    from rerank.scorers.models import broken_models, open_for_texts, open_forward_model, refuse

    lms, files, machine = options.lms, options.files, options.machine
    options.messages.announce_threads(machine.threads)
    with options.messages.warnings() as notices:
        check_outputs((), files)
        named = Counter(map(display, files)) + Counter(f"--lm {lm}" for lm in lms)
        for name, n in named.items():
            if n > 1:
                raise UsageError(f"{name}: given {n} times; give it once")
        items, groups = _read(files, notices)
        contexts, rng = [item.context for item in items], np.random.default_rng(options.seed)
        others = contexts_of_others(contexts, rng)
        if others is None:
            notices.add(
                "condition left out: no other context for each item, because more than half of the "
                "items have the same one",
                source=display(files[0]),
            )
        models = {}
        opened = [(lm, open_for_texts(lm, machine.device, machine.threads)) for lm in lms]
        both = [
            (lm, causal or open_forward_model(lm, machine.device, machine.threads))
            for lm, causal in opened
        ]
        for lm, saved in both:
            if isinstance(saved, CausalLM):
                announce_choice(saved, (item.right.decode() for item in items), options.messages)
                outcomes = _outcomes(_causal_scores(saved, items, others), items, label=str(lm))
                facts = ModelFacts.of_causal(str(lm), saved)
                saved.finish(display(files[0]), notices)
            else:
                refuse(saved, lm, "rerank lm-eval contrastive")
                unknown = UnknownWords()
                with broken_models(lm):
                    scores = _scores(saved, items, others, unknown)
                    outcomes = _outcomes(scores, items, label=str(lm))
                facts = ModelFacts.of(str(lm), saved, unknown.share)
                unknown.warn(str(lm), saved.about, notices, source=display(files[0]), text="item")
            models[facts] = [
                GroupAccuracy.of(name, {c: column[rows] for c, column in outcomes.items()})
                for name, rows in groups.items()
            ]
    print_result(ContrastiveReport(models, len(items), options.seed), options.form)


def pairs(options: PairsOptions) -> None:
    """Make contrastive items from k-best lists, for `lm-eval contrastive`.

    An item is a candidate of a list and others that differ from it in one pronoun, or another
    word of --class: the right one's is in the reference, the others' are not.

    Example:
      rerank lm-eval pairs --kbest dev.nbest.gz --docs dev.docids --ref dev.en --out pairs.jsonl
    """
    from rerank.commands.list_run import ListRun
    from rerank.corpus.spelling import nfc_lines
    from rerank.files.outputs import atomic, check_outputs
    from rerank.files.paths import display
    from rerank.formats.translations import read_references

    given, sentences, found = options.items, 0, Counter[str]()
    with options.messages.warnings() as notices:
        lists, kind = options.lists.lists(), _words_of(given, notices)
        check_outputs((given.out,), (*lists.files, *given.texts.references))
        with ListRun.open(lists, notices) as source, atomic(given.out) as file:
            texts = read_references(given.texts.references, source.documents, notices)
            texts = nfc_lines(texts) if lists.in_nfc else texts
            for name, kbest in source.read():
                of_document = texts[kbest.first : kbest.first + len(kbest)]
                sentences += len(kbest)
                for t in range(len(kbest)):
                    candidates = [kbest.tokens(row) for row in kbest.rows(t)]
                    item = contrast_of(candidates, [own.split() for own in of_document[t]], kind)
                    if item is None:
                        continue
                    found[item.word] += 1
                    before = [of_document[i][0] for i in range(max(0, t - given.context), t)]
                    line = {
                        "id": f"{name}:{t + 1}",
                        "context": [own.decode() for own in before if own.strip()],
                        "right": item.right.decode(),
                        "wrong": [own.decode() for own in item.wrong],
                        "phenomenon": given.word_class,
                        **({"pronoun": item.word} if given.word_class == "pronouns" else {}),
                    }
                    file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            if not found:
                raise InputError(
                    f"expected candidates that differ in one word of {given.word_class}, which a "
                    "reference has and their others have not, found none; give longer lists or "
                    "another class",
                    source=display(lists.kbest),
                )
    words = dict(found.most_common())
    print_result(ContrastivePairs(found.total(), sentences, words), options.form)


COMMAND = click.Group(
    "lm-eval",
    commands=[
        Command("coherence", PermutationOptions, coherence),
        Command("contrastive", ContrastiveOptions, contrastive),
        Command("next-sentence", NextSentenceOptions, next_sentence),
        Command("ordering", PermutationOptions, ordering),
        Command("pairs", PairsOptions, pairs),
    ],
    help="Measure what language models know of documents, without lists to rerank.",
)


def contexts_of_others(contexts: Sequence[Hashable], rng: np.random.Generator) -> Indices | None:
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


def _read(
    files: Sequence[str], notices: Notices
) -> tuple[list[ContrastiveItem], dict[str, Indices]]:
    """The items of all files, and the rows of each group."""
    import numpy as np

    from rerank.files.paths import display
    from rerank.formats.contrastive import GROUPS, read_contrastive

    items: list[ContrastiveItem] = []
    rows: dict[tuple[str, str], list[int]] = {}
    for file in files:
        for item in read_contrastive(file, notices):
            for group in (*item.groups, ("file", display(file))):
                rows.setdefault(group, []).append(len(items))
            items.append(item)
    groups = {"all": np.arange(len(items))}
    for field in (*GROUPS, "file") if len(files) > 1 else GROUPS:
        groups |= {
            f"{name}={value}": np.array(rows[name, value]) for name, value in rows if name == field
        }
    return items, groups


def _scores(
    saved: SavedModel,
    items: Sequence[ContrastiveItem],
    others: Indices | None,
    unknown: UnknownWords,
) -> Iterator[NDArray[np.floating]]:
    """Scores (C, K) of the K variants of each item by condition."""
    from lm.comparisons import scores_in_contexts
    from lm.scoring import ScoringEngine

    def encoded(sentence: bytes) -> list[int]:
        words = sentence.split(b" ")
        unknown.add(words, saved.vocabulary)
        return saved.reading_order(saved.vocabulary.encode(words))

    variants = [[encoded(one) for one in (item.right, *item.wrong)] for item in items]
    own = [tuple(map(encoded, item.context)) for item in items]
    contexts = [[context, ()] for context in own]
    if others is not None:
        contexts = [[*found, own[k]] for found, k in zip(contexts, others.tolist(), strict=True)]
    return scores_in_contexts(ScoringEngine.of(saved.model), variants, contexts)


def _causal_scores(
    model: CausalLM, items: Sequence[ContrastiveItem], others: Indices | None
) -> Iterator[NDArray[np.floating]]:
    """Scores (C, K) of the K variants of each item by condition."""
    import numpy as np

    n = 2 + (others is not None)
    found = model.scores_after(
        (context, (item.right, *item.wrong))
        for i, item in enumerate(items)
        for context in (
            item.context,
            (),
            *(() if others is None else (items[others[i]].context,)),
        )
    )
    return (np.stack([*islice(found, n)]) for _ in items)


def _outcomes(
    scores: Iterator[NDArray[np.floating]], items: Sequence[ContrastiveItem], *, label: str
) -> dict[str, Outcomes]:
    """(n,) outcomes by condition: 1 right, ½ a tie with the best wrong variant, 0 wrong."""
    import numpy as np

    from rerank.report.language_models import CONDITIONS

    outcomes = []
    for found in progress(scores, label=label, unit="items", total=len(items)):
        right, best = found[:, 0], found[:, 1:].max(axis=1)
        outcomes.append((right > best) + 0.5 * (right == best))
    return dict(zip(CONDITIONS, np.array(outcomes).T, strict=False))


# Items from k-best lists


@dataclass(frozen=True, slots=True)
class ContrastivePairs:
    """Items made, sentences of the lists, and how often each right word is in an item."""

    items: int
    sentences: int
    words: Mapping[str, int]

    def to_text(self) -> str:
        """The figures in one line."""
        common = ", ".join(f"{word} {n:,}" for word, n in list(self.words.items())[:8])
        return f"{self.items:,} items of {self.sentences:,} sentences; right words: {common}\n"

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {"schema": 1, **asdict(self)}


def _words_of(given: Items, notices: Notices) -> frozenset[str]:
    """The words of the class; UsageError for one without a list."""
    from rerank.formats.tokens import similar
    from rerank.metrics.word_classes import closed_classes, read_words

    own = {name: read_words(path, notices) for name, path in given.word_lists}
    listed = closed_classes(own, notices) | own
    if given.word_class not in listed:
        raise UsageError(
            f"--class {given.word_class}: {similar(given.word_class, tuple(listed))}; name one of "
            "these, or give --word-list NAME=FILE"
        )
    return listed[given.word_class]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A candidate, variants of it that are wrong in one word, and that word of the right one."""

    right: bytes
    wrong: tuple[bytes, ...]
    word: str


def contrast_of(
    candidates: Sequence[Words], references: Sequence[Words], kind: frozenset[str]
) -> Contrast | None:
    """The first candidate of a list that others contrast with; None if there is none.

    Two candidates contrast if they differ in one word, both words are of a kind (lower case), some
    reference has the first candidate's word as often as this candidate does, and no reference has
    the other's. Words are compared in lower case, escapes of Moses undone. All such others, in the
    order of the list, are the wrong variants. O(words of the list · words of a candidate) time.

    Contrastive sets are mostly written by hand (Bawden et al. 2018,
    https://aclanthology.org/N18-1118). Here a system has made both variants: its own errors, in the
    documents that are to be reranked.
    """
    counts = [Counter(map(_plain, reference)) for reference in references]
    frames: dict[tuple[int, tuple[bytes, ...]], list[tuple[Words, str]]] = {}
    distinct = dict.fromkeys(tuple(words) for words in candidates)
    for words in distinct:
        for j, word in enumerate(map(_plain, words)):
            if word in kind:
                frames.setdefault((j, words[:j] + words[j + 1 :]), []).append((words, word))
    for alike in frames.values():
        wrong = tuple(
            b" ".join(words) for words, word in alike if not any(own[word] for own in counts)
        )
        for right, word in alike if wrong else ():
            times = sum(word == _plain(other) for other in right)
            if any(own[word] >= times for own in counts):
                return Contrast(b" ".join(right), wrong, word)
    return None


def _plain(word: bytes) -> str:
    return html.unescape(word.decode()).lower()
