"""`rerank lm-eval`: experiments with language models alone, and the items of contrastive ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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
from rerank.errors import InputError, UsageError
from rerank.files.terminal import progress
from rerank.options import Command, argument, option, part, record
from rerank.report.measures import check_word_lists
from rerank.runs.options import (
    LM_OR_HF_HELP,
    ListFiles,
    Machine,
    Messages,
    ReferenceFiles,
    form_option,
    print_result,
)
from rerank.values import FILE, FOLDER, TEXT, Pair, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm.checkpoint import SavedModel
    from rerank.corpus.documents import Documents
    from rerank.formats.contrastive import ContrastiveItem, WordTest
    from rerank.metrics.accuracy import Outcomes
    from rerank.notices import Notices
    from rerank.scorers.causal_lm import CausalLM
    from rerank.scorers.features import UnknownWords

    Indices: TypeAlias = NDArray[np.int64]

VARIANTS = ("replaced", "omitted")
REPEATED = "repeated"  # the class of content words that the document has had


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
        "Words in which the variants differ: pronouns, auxiliaries, function, or a "
        "--word-list.\n\n"
        "The English lists pronouns, auxiliaries or function; the NAME of a --word-list; or "
        "repeated, content words of the document's earlier references against other content "
        "words.",
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
    variants: str = option(
        "What is wrong with a variant: it has another word of --class there, or has lost a word of "
        "it, or has one too many.",
        type=click.Choice([*VARIANTS]),
        default="replaced",
    )
    source: str | None = option(
        "Source sentences, a line for each sentence of the lists, for models that read them.",
        type=FILE,
        default=None,
    )
    before: str | None = option(
        "Text whose sentences stand before each item in place of the reference's, such as the "
        "output of decode.",
        type=FILE,
        default=None,
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
    or [SENTENCE, ...]}, and, if items are to be grouped, "phenomenon", "language" or "pronoun";
    "source": [SENTENCE, ...], those of the context and of the item, is for models that read it.
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
    from rerank.scorers.models import broken_models, open_for_texts, open_forward_model

    lms, files, machine = options.lms, options.files, options.machine
    options.messages.announce_threads(machine.threads)
    with options.messages.warnings() as notices:
        check_outputs((), files)
        named = Counter(map(display, files)) + Counter(f"--lm {lm}" for lm in lms)
        for name, n in named.items():
            if n > 1:
                raise UsageError(f"{name}: given {n} times; give it once")
        items, groups = _read(files, notices)
        contexts = [(item.context, item.source[:-1]) for item in items]
        rng = np.random.default_rng(options.seed)
        others = contexts_of_others(contexts, rng)
        if others is None:
            notices.add("condition-left-out", source=display(files[0]))
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
                _check_sources(saved, lm, items, files)
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
    word of --class: the right one's is in the reference, the others' are not; or they lack the
    word, or have one that the reference lacks (--variants omitted).

    Example:
      rerank lm-eval pairs --kbest dev.nbest.gz --docs dev.docids --ref dev.en --out pairs.jsonl
    """
    from rerank.corpus.spelling import nfc_lines
    from rerank.files.outputs import atomic, check_outputs
    from rerank.files.paths import display
    from rerank.formats.contrastive import CONTRASTS
    from rerank.formats.translations import read_references
    from rerank.runs.list_run import ListRun

    given, sentences, found = options.items, 0, Counter[str]()
    with options.messages.warnings() as notices:
        lists, kind = options.lists.lists(), _words_of(given, notices)
        read = [path for path in (given.source, given.before) if path is not None]
        check_outputs((given.out,), (*lists.files, *given.texts.references, *read))
        with ListRun.open(lists, notices) as source, atomic(given.out) as file:
            texts = read_references(given.texts.references, source.documents, notices)
            texts = nfc_lines(texts) if lists.in_nfc else texts
            beside = _Beside.read(given, [own[0] for own in texts], source.documents, notices)
            for name, kbest in source.read():
                first = kbest.first
                sentences += len(kbest)
                for t in range(len(kbest)):
                    earlier = texts[first : first + t]
                    candidates = [kbest.tokens(row) for row in kbest.rows(t)]
                    references = [own.split() for own in texts[first + t]]
                    item = CONTRASTS[given.variants](candidates, references, kind(earlier))
                    before = beside.of(first, first + t)
                    if item is None or before is None:
                        continue
                    found[item.word] += 1
                    phenomenon = [given.word_class, *["omitted"] * (given.variants == "omitted")]
                    line = {
                        "id": f"{name}:{t + 1}",
                        **before,
                        "right": item.right.decode(),
                        "wrong": [own.decode() for own in item.wrong],
                        "phenomenon": " ".join(phenomenon),
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
        unknown.add(words, saved.vocabulary.__contains__)
        return saved.reading_order(saved.vocabulary.encode(words))

    variants = [[encoded(one) for one in (item.right, *item.wrong)] for item in items]
    own = [tuple(map(encoded, item.context)) for item in items]
    contexts = [[context, ()] for context in own]
    sources: list[list[tuple[Sequence[int], ...]]] | None = None
    if saved.model.context.side_information:
        read = _sources(saved, items)
        sources = [[source, source[-1:]] for source in read]
    if others is not None:
        for i, k in enumerate(others.tolist()):
            contexts[i].append(own[k])
            if sources is not None:
                sources[i].append((*read[k][:-1], *read[i][-1:]))
    return scores_in_contexts(ScoringEngine.of(saved.model), variants, contexts, sources)


def _check_sources(
    saved: SavedModel, folder: Path, items: Sequence[ContrastiveItem], files: Sequence[str]
) -> None:
    """UsageError for a model that needs more than source sentences; InputError without these."""
    from lm.side_information import information_of
    from rerank.files.paths import display
    from rerank.scorers.models import refuse

    if information_of(saved.model.context, training=False) != ("source",):
        refuse(saved, folder, "rerank lm-eval contrastive")
        return
    lacking = next((i for i, item in enumerate(items, 1) if not item.source), None)
    if lacking is not None:
        raise InputError(
            f'{folder} needs the source sentences, which item {lacking} lacks; give "source": '
            "[SENTENCE, ...], as `rerank lm-eval pairs --source FILE` writes it",
            source=", ".join(map(display, files)),
        )


def _sources(
    saved: SavedModel, items: Sequence[ContrastiveItem]
) -> list[tuple[Sequence[int], ...]]:
    """Source sentences of each item in the model's ids."""
    from itertools import pairwise

    lines = b"".join(b"%s\n" % line for item in items for line in item.source)
    text = saved.encode_side("source", lines)
    ids = [text.tokens[a:b].tolist() for a, b in pairwise(text.sentences.tolist())]
    found = iter(ids)
    return [tuple(islice(found, len(item.source))) for item in items]


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


@dataclass(frozen=True, slots=True)
class _Beside:
    """What stands before an item: a text, and the source if it is given."""

    text: Sequence[bytes]
    source: Sequence[bytes] | None
    most: int

    @classmethod
    def read(
        cls, given: Items, text: Sequence[bytes], documents: Documents, notices: Notices
    ) -> _Beside:
        """The files of the options; text: the reference."""
        from rerank.formats.translations import read_translation

        if given.before is not None:
            text = read_translation(given.before, documents, notices)
        source = None
        if given.source is not None:
            source = read_translation(given.source, documents, notices, role="source")
        return cls(text, source, given.context)

    def of(self, first: int, t: int) -> dict[str, list[str]] | None:
        """The context of sentence t of a document, and its sources; None if its own is blank.

        Sentences that are blank on either side are left out.
        """
        before = [i for i in range(max(first, t - self.most), t) if self.text[i].strip()]
        if self.source is None:
            return {"context": [self.text[i].decode() for i in before]}
        before = [i for i in before if self.source[i].strip()]
        if not self.source[t].strip():
            return None
        return {
            "context": [self.text[i].decode() for i in before],
            "source": [self.source[i].decode() for i in (*before, t)],
        }


def _words_of(given: Items, notices: Notices) -> Callable[[Sequence[Sequence[bytes]]], WordTest]:
    """The words in which variants differ, by the earlier references of a document.

    UsageError for a class without a list.
    """
    from rerank.formats.contrastive import WordTest
    from rerank.formats.tokens import similar
    from rerank.metrics.word_classes import closed_classes, read_words

    own = {name: read_words(path, notices) for name, path in given.word_lists}
    closed = closed_classes(own, notices)
    listed = closed | own
    if given.word_class == REPEATED and REPEATED not in own:
        function = frozenset[str]().union(*closed.values())
        return lambda earlier: WordTest.repeated(earlier, function)
    if given.word_class not in listed:
        raise UsageError(
            f"--class {given.word_class}: {similar(given.word_class, (*listed, REPEATED))}; name "
            "one of these, or give --word-list NAME=FILE"
        )
    kind = WordTest(listed[given.word_class].__contains__)
    return lambda earlier: kind
