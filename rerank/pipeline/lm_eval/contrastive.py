"""`rerank lm-eval contrastive`: how often a model prefers the right sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rerank.commands.run import progress
from rerank.errors import UsageError
from rerank.files.outputs import check_outputs
from rerank.files.paths import display
from rerank.formats.contrastive import GROUPS, ContrastiveItem, read_contrastive
from rerank.notices import Notices
from rerank.report.language_models import (
    CONDITIONS,
    ContrastiveReport,
    GroupAccuracy,
    ModelAccuracy,
)
from rerank.scorers.model_folders import broken_models, open_forward_model, refuse
from rerank.scorers.unknown_words import UnknownWords

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel

Ids = list[int]
Indices = NDArray[np.int64]


def contrastive(
    lms: Sequence[Path],
    files: Sequence[str | Path],
    *,
    notices: Notices,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> ContrastiveReport:
    """Accuracy of language models on contrastive items, with context and without.

    An item is right if log p(right | context) is above log p of every wrong variant, all with
    `</s>`; a tie with the best wrong variant counts ½. Contexts: the item's own, none (the
    beginning of a document), and that of another item, chosen by the seed
    (`contexts_of_others`). Groups are all items, those with the same phenomenon, language or
    pronoun, and, if there are several, those of each file.
    """
    check_outputs((), files)
    for name, n in (Counter(map(display, files)) + Counter(f"--lm {lm}" for lm in lms)).items():
        if n > 1:
            raise UsageError(f"{name}: given {n} times; give it once")
    items, groups = _read(files, notices)
    others = contexts_of_others([item.context for item in items], np.random.default_rng(seed))
    if others is None:
        notices.add(
            "condition left out: no other context for each item, because more than half of the "
            "items have the same one",
            source=display(files[0]),
        )
    models = []
    for lm, saved in [(lm, open_forward_model(lm, device, threads)) for lm in lms]:
        refuse(saved, lm, "rerank lm-eval contrastive")
        unknown = UnknownWords()
        with broken_models(lm):
            outcomes = _outcomes(saved, items, others, unknown, label=str(lm))
        found = tuple(
            GroupAccuracy.of(name, {c: column[rows] for c, column in outcomes.items()})
            for name, rows in groups.items()
        )
        order, normalised = saved.model.order, saved.model.head.normalised
        models.append(ModelAccuracy(str(lm), saved.digest, order, normalised, unknown.share, found))
        unknown.warn(str(lm), saved.about, notices, source=display(files[0]), text="item")
    return ContrastiveReport(tuple(models), len(items), seed)


def contexts_of_others(contexts: Sequence[Hashable], rng: np.random.Generator) -> Indices | None:
    """For each item another one with a different context, each item once: a permutation.

    Items in random order, those of equal contexts together, receive the context of the one m
    places further on, where m items have the most frequent context. None if no such permutation
    exists, which is so if m > n / 2. O(n log n) time.
    """
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
    files: Sequence[str | Path], notices: Notices
) -> tuple[list[ContrastiveItem], Mapping[str, Indices]]:
    """The items of all files, and the rows of each group."""
    of_files = {display(file): read_contrastive(file, notices) for file in files}
    items = list(chain.from_iterable(of_files.values()))
    rows: dict[tuple[str, str], list[int]] = {}
    for row, item in enumerate(items):
        for group in item.groups:
            rows.setdefault(group, []).append(row)
    ordered = sorted(rows, key=lambda group: GROUPS.index(group[0]))
    groups = {"all": np.arange(len(items))}
    groups |= {f"{field}={value}": np.array(rows[field, value]) for field, value in ordered}
    if len(of_files) > 1:
        begin = 0
        for name, own in of_files.items():
            groups[f"file={name}"] = np.arange(begin, begin + len(own))
            begin += len(own)
    return items, groups


def _outcomes(
    saved: SavedModel,
    items: Sequence[ContrastiveItem],
    others: Indices | None,
    unknown: UnknownWords,
    *,
    label: str,
) -> Mapping[str, NDArray[np.float64]]:
    """(n,) outcomes by condition: 1 right, ½ a tie with the best wrong variant, 0 wrong."""
    from lm.comparisons import scores_in_contexts
    from lm.scoring import ScoringEngine

    def encoded(sentence: bytes) -> Ids:
        words = sentence.split(b" ")
        unknown.add(words, saved.vocabulary.ids)
        return saved.reading_order(saved.vocabulary.encode(words))

    variants = [[encoded(one) for one in (item.right, *item.wrong)] for item in items]
    own = [tuple(map(encoded, item.context)) for item in items]
    contexts = [[context, ()] for context in own]
    if others is not None:
        contexts = [[*found, own[k]] for found, k in zip(contexts, others.tolist(), strict=True)]
    engine = ScoringEngine.of(saved.model)
    found = progress(
        scores_in_contexts(engine, variants, contexts),
        label=label,
        unit="items",
        total=len(items),
    )
    outcomes = np.array([_outcome(scores) for scores in found])
    return dict(zip(CONDITIONS, outcomes.T, strict=False))


def _outcome(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """(C,) outcomes of scores (C, K), those of the right variant in the first column."""
    best = scores[:, 1:].max(axis=1)
    outcome: NDArray[np.float64] = (scores[:, 0] > best) + 0.5 * (scores[:, 0] == best)
    return outcome
