"""How often language models prefer documents to copies of them with permuted sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

from rerank.metrics.discrimination import SETS, Outcomes, accuracies_of_sets, share, z_test
from rerank.metrics.significance import (
    FEWEST_DOCUMENTS,
    bootstrap,
    percentile_interval,
    sign_flip_p_value,
)

_NOTES = f"""\
accuracy: share of pairs of a document and a permutation of its sentences in which log p of the
document is higher; ties count ½ (Lin et al. 2015, table 1) [95% interval, bootstrap of documents]
sets: mean (standard deviation) over {SETS:,} sets of documents drawn with replacement, each
against one of its permutations (Ji et al. 2016, table 3)
"""
_COMPARISONS = """\
p documents: two-sided sign-flip test over documents, of the accuracy over pairs
z, p sets: two-sample one-sided z-test of the means over sets, as in Ji et al. 2016; z grows with
the number of sets, whatever the number of documents: judge by p documents
"""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A language model: its name here, digest, order (None: unbounded) and share of OOV words."""

    lm: str
    digest: str
    order: int | None
    oov: float


@dataclass(frozen=True, slots=True)
class PermutedDocument:
    """A document of a text, counted from 0, its sentences, and permutations it was paired with."""

    document: int
    sentences: int
    permutations: int


@dataclass(frozen=True, slots=True)
class CoherenceAccuracy:
    """Accuracy of one model over pairs, its 95% interval, ties, mean and SD over test sets.

    right: pairs of each document that are right, ties ½.
    """

    model: ModelFacts
    accuracy: float
    low: float
    high: float
    ties: int
    sets_mean: float
    sets_sd: float
    right: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CoherenceComparison:
    """Two models, the one with the higher mean over sets first, and tests of their difference.

    difference: of accuracies over pairs; p_documents: two-sided, None with too few documents; z,
    p_sets: one-sided, over sets; None where no accuracy of a set differs.
    """

    higher: str
    lower: str
    difference: float
    p_documents: float | None
    z: float | None
    p_sets: float | None


@dataclass(frozen=True, slots=True)
class CoherenceReport:
    """Accuracies of language models on the same pairs of documents and permutations.

    left_out: documents without a permutation that has another text; permutations: the most of one
    document.
    """

    models: tuple[CoherenceAccuracy, ...]
    comparisons: tuple[CoherenceComparison, ...]
    documents: tuple[PermutedDocument, ...]
    left_out: int
    permutations: int
    seed: int

    @classmethod
    def of(
        cls,
        outcomes: Mapping[ModelFacts, Sequence[Outcomes]],
        documents: Sequence[PermutedDocument],
        *,
        left_out: int,
        permutations: int,
        seed: int,
    ) -> CoherenceReport:
        """The report of outcomes: by model, by document, of its pairs."""
        pairs = np.array([own.permutations for own in documents], dtype=np.float64)
        right = [np.array([own.sum() for own in found]) for found in outcomes.values()]
        statistics = np.array([np.stack([own, pairs], axis=1) for own in right])
        sampled = bootstrap(statistics, share, rng=np.random.default_rng(seed))
        sets = accuracies_of_sets([*outcomes.values()], rng=np.random.default_rng(seed))
        models = []
        for (facts, found), own, draws, of_sets in zip(
            outcomes.items(), statistics, sampled, sets, strict=True
        ):
            ties = sum(int(np.count_nonzero(one == 0.5)) for one in found)
            figures = float(share(own.sum(axis=0))), *percentile_interval(draws), ties
            spread = float(of_sets.mean()), float(of_sets.std(ddof=1))
            models.append(CoherenceAccuracy(facts, *figures, *spread, tuple(own[:, 0].tolist())))
        comparisons = []
        for a, b in combinations(range(len(models)), 2):
            first, second = (a, b) if models[a].sets_mean >= models[b].sets_mean else (b, a)
            rng = np.random.default_rng(seed)
            p = sign_flip_p_value(statistics[first], statistics[second], share, rng=rng)
            z, p_sets = z_test(sets[first], sets[second]) or (None, None)
            names = models[first].model.lm, models[second].model.lm
            difference = models[first].accuracy - models[second].accuracy
            comparisons.append(CoherenceComparison(*names, difference, p, z, p_sets))
        columns = tuple(models), tuple(comparisons), tuple(documents)
        return cls(*columns, left_out, permutations, seed)

    @property
    def pairs(self) -> int:
        """Number of pairs of a document and a permutation."""
        return sum(own.permutations for own in self.documents)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded; documents count from 0."""
        return {
            "schema": 1,
            "pairs": self.pairs,
            "permutations": self.permutations,
            "sets": SETS,
            "seed": self.seed,
            "left_out": self.left_out,
            "models": [
                {**asdict(own.model), **{k: v for k, v in asdict(own).items() if k != "model"}}
                for own in self.models
            ],
            "comparisons": [asdict(own) for own in self.comparisons],
            "documents": [asdict(own) for own in self.documents],
        }

    def to_text(self) -> str:
        """A table with a row for each model, and one with a row for each two, in per cent."""
        from tabulate import tabulate

        rows = [
            [
                own.model.lm,
                f"{100 * own.accuracy:.2f} [{100 * own.low:.2f}, {100 * own.high:.2f}]",
                f"{own.ties:,}",
                f"{100 * own.sets_mean:.2f} ({100 * own.sets_sd:.2f})",
            ]
            for own in self.models
        ]
        headings = ["model", "accuracy", "ties", "sets"]
        align = ["left", "right", "right", "right"]
        text = f"{tabulate(rows, headings, colalign=align, disable_numparse=True)}\n\n"
        if self.comparisons:
            headings = ["higher", "lower", "difference", "p documents", "z", "p sets"]
            align = ["left", "left", *["right"] * 4]
            rows = [_comparison(own) for own in self.comparisons]
            text += f"{tabulate(rows, headings, colalign=align, disable_numparse=True)}\n\n"
        return text + self.counts() + _NOTES + (_COMPARISONS if self.comparisons else "")

    def counts(self) -> str:
        """Lines on what the accuracies are of."""
        text = f"{self.pairs:,} pairs of {len(self.documents):,} documents\n"
        few = sum(own.permutations < self.permutations for own in self.documents)
        if few:
            text += f"{few:,} of these have fewer than {self.permutations:,} permutations\n"
        if self.left_out:
            text += f"left out: {self.left_out:,} without a permutation that has another text\n"
        if self.comparisons and len(self.documents) < FEWEST_DOCUMENTS:
            text += f"no p documents: it needs {FEWEST_DOCUMENTS} documents\n"
        return text


def _comparison(own: CoherenceComparison) -> list[str]:
    """A row of the table of comparisons."""
    z = "–" if own.z is None else f"{own.z:.2f}"
    p_documents, p_sets = ("–" if p is None else f"{p:.2g}" for p in (own.p_documents, own.p_sets))
    return [own.higher, own.lower, f"{100 * own.difference:.2f}", p_documents, z, p_sets]
