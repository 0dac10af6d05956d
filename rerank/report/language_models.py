"""Accuracies of language models in the experiments of `rerank lm-eval`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.errors import printable
from rerank.metrics.significance import (
    FEWEST_DOCUMENTS,
    SETS,
    Outcomes,
    accuracies_of_sets,
    bootstrap,
    percentile_interval,
    share,
    sign_flip_p_value,
    sign_test,
    wilson_interval,
    z_test,
)
from rerank.table import Column, Table

if TYPE_CHECKING:
    from rerank.scorers.text_models import TextModel

CONDITIONS = ("context", "null", "other")
_SCORES = {"normalised": "eq. 4", "log_p": "log p", "pmi": "log p − log p(s)"}
_UNKNOWN = "–"  # a test that could not be made

_COHERENCE = f"""\
accuracy: share of pairs of a document and a permutation of its sentences in which log p of the
document is higher; ties count ½ (Lin et al. 2015, table 1) [95% interval, bootstrap of documents]
sets: mean (standard deviation) over {SETS:,} sets of documents drawn with replacement, each
against one of its permutations (Ji et al. 2016, table 3)
"""
_COHERENCE_TESTS = """\
p documents: two-sided sign-flip test over documents, of the accuracy over pairs
z, p sets: two-sample one-sided z-test of the means over sets, as in Ji et al. 2016; z grows with
the number of sets, whatever the number of documents: judge by p documents
"""
_OF_BAGS = """\
a sentence counts as the mean of log p over its words, by which the model is trained (Lin
et al. 2015, eq. 9); --bags sum for the log-probability of its bag
"""
_CONTRASTIVE = """\
accuracy: share of items whose right sentence has a higher log p than every wrong one; ties count ½
[95% interval of Wilson]; null: with no sentence before; other: with another item's context
p: sign test over items (exact McNemar), accuracy with context against null and against other
"""
_NEXT_SENTENCE = """\
accuracy: share of passages whose last sentence has the highest score among those of the block;
a tie of n counts 1/n [95% interval of Wilson, passages taken as independent]
eq. 4: log p(s | context) less the log of its mean over the contexts of the block (Ghosh et al.
2016); log p: without this normaliser; log p(s): at the beginning of a document
"""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A language model: its name here, digest, order (None: unbounded) and share of OOV words.

    normalised: whether its scores are log-probabilities. means: whether a sentence counts as the
    mean over its words, under a model of bags of words.
    """

    lm: str
    digest: str
    order: int | None
    oov: float
    normalised: bool = True
    means: bool = False

    @classmethod
    def of(cls, model: TextModel, *, means: bool = False) -> ModelFacts:
        """The facts of a model that has read its text."""
        return cls(model.name, model.digest, model.order, model.oov, model.normalised, means)

    def to_dict(self, *names: str) -> dict[str, Any]:
        """Name, digest and order, and further facts, as JSON values."""
        return {name: getattr(self, name) for name in ("lm", "digest", "order", *names)}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Mean outcome of items, its 95% interval, and number of ties."""

    accuracy: float
    low: float
    high: float
    ties: int

    @classmethod
    def of(cls, outcomes: Outcomes) -> Accuracy:
        """Accuracy of (n,) outcomes: 1 right, 0 wrong, a part of 1 in a tie."""
        successes = float(outcomes.sum())
        ties = int(np.count_nonzero((outcomes > 0) & (outcomes < 1)))
        low, high = wilson_interval(successes, len(outcomes))
        return cls(successes / len(outcomes), low, high, ties)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models, the difference of their accuracies, and tests of it by name.

    A test is None where it could not be made.
    """

    first: str
    second: str
    difference: float
    tests: Mapping[str, float | None]

    def to_dict(self, first: str = "first", second: str = "second") -> dict[str, Any]:
        """The figures as JSON values, under these keys for the names."""
        names = {first: self.first, second: self.second}
        return {**names, "difference": self.difference, **self.tests}


def _in_per_cent(accuracy: Accuracy, digits: int = 1) -> str:
    """An accuracy for people: `71.4 [67.2, 75.3]`."""
    share, *ends = (
        f"{100 * x:.{digits}f}" for x in (accuracy.accuracy, accuracy.low, accuracy.high)
    )
    return f"{share} [{', '.join(ends)}]"


def _compared(comparisons: Sequence[Comparison], *columns: Column) -> str:
    """A table with a row for each two models, the difference in per cent; none without models."""
    if not comparisons:
        return ""
    rows = [
        [pair.first, pair.second, 100 * pair.difference, *pair.tests.values()]
        for pair in comparisons
    ]
    return f"{Table(columns, rows, _UNKNOWN).to_text()}\n\n"


def _by_model(
    models: Mapping[ModelFacts, Any], *columns: tuple[Column, Callable[[Any], Any]]
) -> Table:
    """A table with a row for each model: columns, and what stands there of its accuracies."""
    rows = [[lm.lm, *(shown(accuracy) for _, shown in columns)] for lm, accuracy in models.items()]
    return Table([Column("model"), *(column for column, _ in columns)], rows)


def _not_normalised(models: Iterable[ModelFacts]) -> str:
    """A line about models whose scores are no log-probabilities."""
    names = [model.lm for model in models if not model.normalised]
    return f"scores of {', '.join(names)} are not normalised\n" if names else ""


def _means(models: Iterable[ModelFacts]) -> str:
    """A line about models of bags of words."""
    names = [model.lm for model in models if model.means]
    return f"{', '.join(names)}: {_OF_BAGS}" if names else ""


# Documents and permutations of their sentences: coherence


@dataclass(frozen=True, slots=True)
class PermutedDocument:
    """A document of a text, counted from 0, its sentences, and permutations it was paired with."""

    document: int
    sentences: int
    permutations: int


@dataclass(frozen=True, slots=True)
class CoherenceAccuracy(Accuracy):
    """Accuracy of one model over pairs, and its mean and standard deviation over test sets.

    right: pairs of each document that are right, ties ½.
    """

    sets_mean: float
    sets_sd: float
    right: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CoherenceReport:
    """Accuracies of language models on the same pairs of documents and permutations.

    comparisons: of each two models, first that with the higher mean over sets; difference: over
    pairs; p_documents: two-sided; z, p_sets: one-sided, over sets, None where no accuracy of a set
    differs. left_out: documents without a permutation that has another text; permutations: the
    most of a document.
    """

    models: Mapping[ModelFacts, CoherenceAccuracy]
    comparisons: Sequence[Comparison]
    documents: Sequence[PermutedDocument]
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
        names, pairs = [*outcomes], np.array([float(x.permutations) for x in documents])
        right = [np.array([pairs.sum() for pairs in of]) for of in outcomes.values()]
        statistics = np.array([np.stack([sums, pairs], axis=1) for sums in right])
        sampled = bootstrap(statistics, share, rng=np.random.default_rng(seed))
        sets = accuracies_of_sets([*outcomes.values()], rng=np.random.default_rng(seed))
        columns = zip(outcomes.values(), right, statistics, sampled, sets, strict=True)
        models = [
            CoherenceAccuracy(
                float(share(rows.sum(axis=0))),
                *percentile_interval(draws),
                sum(int(np.count_nonzero(pairs == 0.5)) for pairs in of),
                float(of_sets.mean()),
                float(of_sets.std(ddof=1)),
                tuple(sums.tolist()),
            )
            for of, sums, rows, draws, of_sets in columns
        ]
        comparisons = []
        for a, b in combinations(range(len(models)), 2):
            first, second = (a, b) if models[a].sets_mean >= models[b].sets_mean else (b, a)
            rng = np.random.default_rng(seed)
            p = sign_flip_p_value(statistics[first], statistics[second], share, rng=rng)
            difference = models[first].accuracy - models[second].accuracy
            z, p_sets = z_test(sets[first], sets[second]) or (None, None)
            tests = {"p_documents": p, "z": z, "p_sets": p_sets}
            comparisons.append(Comparison(names[first].lm, names[second].lm, difference, tests))
        by_model = dict(zip(names, models, strict=True))
        return cls(by_model, comparisons, documents, left_out, permutations, seed)

    @property
    def pairs(self) -> int:
        """Number of pairs of a document and a permutation."""
        return sum(document.permutations for document in self.documents)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values, numbers unrounded; documents count from 0."""
        return {
            "schema": 1,
            "pairs": self.pairs,
            "permutations": self.permutations,
            "sets": SETS,
            "seed": self.seed,
            "left_out": self.left_out,
            "models": [
                {**lm.to_dict("oov", "means"), **asdict(accuracy)}
                for lm, accuracy in self.models.items()
            ],
            "comparisons": [pair.to_dict("higher", "lower") for pair in self.comparisons],
            "documents": [asdict(document) for document in self.documents],
        }

    def to_text(self) -> str:
        """A table with a row for each model, and one with a row for each two, in per cent."""
        models = _by_model(
            self.models,
            (Column("accuracy", str), lambda x: _in_per_cent(x, 2)),
            (Column("ties", ","), lambda x: x.ties),
            (Column("sets", str), lambda x: f"{100 * x.sets_mean:.2f} ({100 * x.sets_sd:.2f})"),
        )
        columns = [Column("higher"), Column("lower"), Column("difference", ".2f")]
        columns += [Column("p documents", ".2g"), Column("z", ".2f"), Column("p sets", ".2g")]
        text = f"{models.to_text()}\n\n{_compared(self.comparisons, *columns)}"
        text += f"{self.pairs:,} pairs of {len(self.documents):,} documents\n"
        few = sum(document.permutations < self.permutations for document in self.documents)
        if few:
            text += f"{few:,} of these have fewer than {self.permutations:,} permutations\n"
        if self.left_out:
            text += f"left out: {self.left_out:,} without a permutation that has another text\n"
        if self.comparisons and len(self.documents) < FEWEST_DOCUMENTS:
            text += f"no p documents: it needs {FEWEST_DOCUMENTS} documents\n"
        tests_made = _COHERENCE_TESTS if self.comparisons else ""
        return f"{text}{_COHERENCE}{tests_made}{_means(self.models)}"


# Right and wrong variants of a sentence: contrastive


@dataclass(frozen=True, slots=True)
class GroupAccuracy:
    """Accuracies of one model on one group of items, by condition.

    p: two-sided, of the accuracy with context against that of each other condition; better, worse:
    items that the context decides for the right sentence, or against it.
    """

    group: str
    items: int
    accuracies: Mapping[str, Accuracy]
    p: Mapping[str, float]
    better: Mapping[str, int]
    worse: Mapping[str, int]

    @classmethod
    def of(cls, group: str, outcomes: Mapping[str, Outcomes]) -> GroupAccuracy:
        """Accuracies and tests of (n,) outcomes in each condition, `context` among them."""
        context = outcomes["context"]
        others = {name: column for name, column in outcomes.items() if column is not context}
        better = {name: int(np.count_nonzero(context > x)) for name, x in others.items()}
        worse = {name: int(np.count_nonzero(context < x)) for name, x in others.items()}
        p = {name: sign_test(better[name], worse[name]) for name in others}
        accuracies = {condition: Accuracy.of(column) for condition, column in outcomes.items()}
        return cls(group, len(context), accuracies, p, better, worse)


@dataclass(frozen=True, slots=True)
class ContrastiveReport:
    """Accuracies of language models on the same items, by group; seed: of the other contexts."""

    models: Mapping[ModelFacts, Sequence[GroupAccuracy]]
    items: int
    seed: int

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded."""
        models = [
            {**lm.to_dict("normalised", "oov"), "groups": [asdict(group) for group in groups]}
            for lm, groups in self.models.items()
        ]
        return {"schema": 1, "items": self.items, "seed": self.seed, "models": models}

    def table(self) -> Table:
        """A row for each model, group and condition; numbers unrounded."""
        return Table.of(
            [
                {
                    "lm": lm.lm,
                    "group": printable(group.group),
                    "items": group.items,
                    "condition": condition,
                    **asdict(accuracy),
                    "p": group.p.get(condition),
                    "better": group.better.get(condition),
                    "worse": group.worse.get(condition),
                }
                for lm, groups in self.models.items()
                for group in groups
                for condition, accuracy in group.accuracies.items()
            ]
        )

    def to_text(self) -> str:
        """A table with a row for each model and group, accuracies in per cent."""
        rows = [
            [
                *(lm.lm, printable(group.group), group.items),
                *map(_in_per_cent, group.accuracies.values()),
                *group.p.values(),
            ]
            for lm, groups in self.models.items()
            for group in groups
        ]
        (first, *_), *_ = self.models.values()
        columns = [Column("model"), Column("group"), Column("items", ",")]
        columns += [Column(condition, str) for condition in first.accuracies]
        columns += [Column(f"p {condition}", ".2g") for condition in first.p]
        table = Table(columns, rows).to_text()
        return f"{table}\n\n{_CONTRASTIVE}{_not_normalised(self.models)}"


# Choice of the sentence that follows: next-sentence


@dataclass(frozen=True, slots=True)
class NextSentenceReport:
    """Accuracies of language models on the same blocks, by score.

    comparisons: of each two models, by the score of equation 4, with a sign-flip test over
    documents. settings: number of `blocks`; passages of each `block`; sentences of `context` before
    the last; `candidates`, how blocks are made; passages `left_out` of all blocks; `seed`.
    """

    models: Mapping[ModelFacts, Mapping[str, Accuracy]]
    comparisons: Sequence[Comparison]
    settings: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        outcomes: Mapping[ModelFacts, Mapping[str, Outcomes]],
        documents: Sequence[int],
        settings: Mapping[str, Any],
    ) -> NextSentenceReport:
        """The report of outcomes (n,) by model and score, and of the document of each passage."""
        _, rows = np.unique(documents, return_inverse=True)
        passages = np.bincount(rows).astype(np.float64)
        comparisons = []
        for first, second in combinations(outcomes, 2):
            a, b = (outcomes[lm]["normalised"] for lm in (first, second))
            ours, theirs = (np.stack([np.bincount(rows, x), passages], axis=1) for x in (a, b))
            p = sign_flip_p_value(ours, theirs, share, rng=np.random.default_rng(settings["seed"]))
            difference = float(a.mean() - b.mean())
            comparisons.append(Comparison(first.lm, second.lm, difference, {"p": p}))
        models = {
            lm: {score: Accuracy.of(column) for score, column in by_score.items()}
            for lm, by_score in outcomes.items()
        }
        return cls(models, comparisons, settings)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded; `chance`: accuracy of a random choice."""
        return {
            "schema": 1,
            **self.settings,
            "chance": 1 / self.settings["block"],
            "models": [
                {
                    **lm.to_dict("oov", "normalised"),
                    "accuracies": {score: asdict(x) for score, x in accuracies.items()},
                }
                for lm, accuracies in self.models.items()
            ],
            "comparisons": [pair.to_dict() for pair in self.comparisons],
        }

    def to_text(self) -> str:
        """A table with a row for each model, and one with a row for each two, in per cent."""
        columns = [
            (Column(heading, str), lambda x, name=name: _in_per_cent(x[name]))
            for name, heading in _SCORES.items()
        ]
        tests = Column("difference, eq. 4", ".1f"), Column("p", ".2g")
        compared = _compared(self.comparisons, Column("model"), Column("and model"), *tests)
        test = f"p: sign-flip test over documents, which needs {FEWEST_DOCUMENTS} of them\n"
        of = self.settings
        return (
            f"{_by_model(self.models, *columns).to_text()}\n\n{compared}"
            f"{of['blocks']:,} blocks of {of['block']:,} passages, {of['context']:,} "
            f"sentences and the next one each; {of['left_out']:,} passages left out; chance: "
            f"{100 / of['block']:.1f}\n{_NEXT_SENTENCE}{test if compared else ''}"
            f"{_not_normalised(self.models)}"
        )
