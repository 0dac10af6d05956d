"""How far candidates agree with the others of their list: features, and a choice without weights.

Texts that a list has several times, and outputs of several systems that are equal, are votes:
each other vote counts once in the mean utility of a candidate, and its own does not.

Where nobody gives weights, candidates are chosen by the feature `agreement`: chrF with β = 1.25
against the other votes, and of systems' outputs what `SystemAgreement` adds to it. The feature
`defects` keeps candidates that are no translations from being chosen, by weights or without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary
from rerank.corpus.columns import column_names, places_of
from rerank.corpus.defects import defects_of, whole
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import UsageError
from rerank.formats.weights import OF_AGREEMENT
from rerank.scorers.features import DocumentFeatures, FeatureSource, ScoredDocument

if TYPE_CHECKING:
    from rerank.metrics.agreement import SystemAgreement
    from rerank.metrics.consensus import ExpectedUtility

Floats = NDArray[np.float64]
AGREEMENT, VOTES, SENTENCE_BLEU, SENTENCE_CHRF, DOCUMENT_BLEU = OF_AGREEMENT
CONSENSUS = (SENTENCE_BLEU, SENTENCE_CHRF, DOCUMENT_BLEU)
RULE = "the mean chrF (β = 1.25) of a candidate against the others of its sentence"
OF_SYSTEMS = ", and of its system against the others in all sentences"  # of lists made of systems
DEFECTS = "defects"
WEIGHT = -10_000.0  # of defects: more than differences of other features can make up for
_COLUMNS = (VOTES, *CONSENSUS)
_VERSIONS = 32  # of a document, made of the candidates of equal rank, that document BLEU looks at


def starting_features(metrics: Iterable[str]) -> dict[str, str]:
    """Features that tuning may start from where lists are made of systems, and what it calls them.

    metrics: names of those that are maximised.
    """
    consensus = SENTENCE_CHRF if {*metrics} == {"chrf"} else DOCUMENT_BLEU
    return {consensus: "consensus", AGREEMENT: AGREEMENT}


def is_rewarded(metrics: Iterable[str]) -> bool:
    """Whether all metrics count words or characters in common with references.

    What systems agree on has more of them than most outputs; people may like the best one better.
    """
    return {*metrics} <= {"bleu", "chrf", "ter"}


class Agreement(FeatureSource):
    """The feature `agreement`, and `votes` and consensus features where the lists have none.

    of_systems: their agreement, counted in all lists, if these are made of the outputs of systems;
    names: of each system by the label of its indicator feature.
    """

    def __init__(self, names: Mapping[str, str], of_systems: SystemAgreement | None) -> None:
        super().__init__(AGREEMENT, _COLUMNS)
        self.documents, self._names, self._of_systems = 0, names, of_systems

    def choose(self, lists: Iterable[KBest]) -> str:
        """Leave out the columns that the lists have; UsageError if they have `agreement`, too.

        Says which systems have no vote.
        """
        for kbest in lists:
            names = {label.name for label in kbest.labels}
            if AGREEMENT in names:
                raise UsageError(
                    f"--agreement: {kbest.source} already has the feature {AGREEMENT!r}; leave "
                    "the option out"
                )
            if VOTES in names:
                self.columns = () if names >= {*CONSENSUS} else CONSENSUS
            if kbest.n:
                break
        silent = {} if self._of_systems is None else self._of_systems.silent()
        named = [
            f"{', '.join(sorted(self._names[label] for label in labels))} ({reason})"
            for reason, labels in silent.items()
            if labels
        ]
        return f"{AGREEMENT}: systems without a vote: {'; '.join(named)}" if named else ""

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document."""
        self.documents += len(documents)
        return [self._scored(kbest) for _, kbest in documents]

    def _scored(self, kbest: KBest) -> ScoredDocument:
        scores, columns = agreement_of(kbest, self._of_systems), np.zeros((kbest.n, 0))
        if self.columns:
            columns = np.column_stack([_repetitions(kbest), _consensus(kbest)])
            columns = columns[:, len(_COLUMNS) - len(self.columns) :]
        parts = [scores[a:b] for a, b in pairwise(kbest.offsets.tolist()) if a < b]
        return ScoredDocument(Unary(parts), columns)

    def explain(self, kbest: KBest) -> dict[str, Sequence[object]]:
        """`agreements`: of each engine what its value is the sum of, in the sentence and in all."""
        if self._of_systems is None or not kbest.n:
            return {}
        names = column_names(kbest.labels)
        columns = [(name, names.index(label)) for label, name in self._names.items()]
        in_sentence, of_system = self._of_systems.parts(kbest)
        parts = np.column_stack([in_sentence, of_system]).round(2)
        rows = [np.arange(a, b) for a, b in pairwise(kbest.offsets.tolist()) if a < b]
        by_engine = [
            {
                name: parts[span[kbest.dense[span, column].argmax()]].tolist()
                for name, column in columns
                if kbest.dense[span, column].any()
            }
            for span in rows
        ]
        return {"agreements": by_engine}

    def report(self) -> str:
        """`agreement: 12 documents`."""
        return f"{self.name}: {self.documents:,} documents"


def agreement_of(kbest: KBest, of_systems: SystemAgreement | None) -> Floats:
    """Values (n,) of the feature `agreement`, of whose greatest a choice without weights is made.

    of_systems: as of `Agreement`.
    """
    from rerank.metrics.agreement import sentence_agreement  # numba

    if of_systems is not None:
        return of_systems.scores(kbest)
    return sentence_agreement(kbest, votes_of(kbest))


class UtilityByVotes:
    """A utility under probabilities multiplied by the candidates' votes."""

    def __init__(self, utility: ExpectedUtility) -> None:
        self.utility, votes = utility, votes_of(utility.kbest)
        spans = pairwise(np.unique(utility.kbest.offsets).tolist())
        self._votes = [votes[a:b] for a, b in spans]

    def expected(self, t: int, marginals: Floats) -> Floats:
        """Expected utility of each candidate of sentence t, in the shape of the marginals."""
        weighted = marginals * self._votes[t]
        return self.utility.expected(t, weighted / weighted.sum(axis=-1, keepdims=True))

    def words(self, t: int) -> Floats:
        """Number of words of each candidate of sentence t, (K_t,)."""
        return self.utility.words(t)


def _consensus(kbest: KBest) -> Floats:
    """Consensus features (n, 3); as documents for BLEU, the candidates of each rank are joined."""
    from rerank.metrics.agreement import consensus  # numba

    ranks = places_of(kbest.counts)
    versions = np.arange(min(_VERSIONS, ranks.max(initial=0) + 1))
    return consensus(kbest, votes_of(kbest), (ranks[:, None] == versions).astype(np.float64))


def _repetitions(kbest: KBest) -> Floats:
    """How often its list has the text of each candidate, (n,)."""
    texts, repetitions = kbest.texts.to_list(), list[int]()
    for a, b in pairwise(kbest.offsets.tolist()):
        times = Counter(texts[a:b])
        repetitions += [times[text] for text in texts[a:b]]
    return np.array(repetitions, np.float64)


class MeanAgreement:
    """Mean of `consensuschrf` over sentences that have several votes: of choices, and of votes."""

    def __init__(self) -> None:
        self._sums = np.zeros(3)  # sentences, of their choices, of their votes
        self._most = 0.0  # votes of a sentence

    def add(self, kbest: KBest, features: DocumentFeatures, choices: Sequence[int]) -> None:
        """Count the choices of a document, if it has the feature."""
        names = column_names(features.space.labels)
        if SENTENCE_CHRF not in names:
            return
        values = features.static[:, names.index(SENTENCE_CHRF)]
        votes, starts = votes_of(kbest), features.offsets[:-1]
        all_votes = np.add.reduceat(votes, starts)
        self._most = max(self._most, float(all_votes.max(initial=0.0)))
        of_votes = np.add.reduceat(votes * values, starts) / all_votes
        of_all = [np.ones(len(starts)), values[features.chosen_rows(choices)], of_votes]
        self._sums += np.sum(of_all, axis=1, where=all_votes > 1)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """`agreement` of the choices, and of all candidates; empty where nothing was counted."""
        n, chosen, votes = self._sums.tolist()
        return {"agreement": {"chosen": chosen / n, "all": votes / n}} if n else {}

    def to_text(self) -> str:
        """How large the agreement was; '' where nothing was counted."""
        if not (means := self.to_dict().get("agreement", {})):
            return ""
        two = "; of two candidates neither agrees more than the other: take three or more"
        return (
            f"agreement: chosen candidates have a mean chrF of {means['chosen']:.1f} against the "
            f"others of their sentence, all candidates {means['all']:.1f}{two * (self._most == 2)}"
        )


def agreement_of_systems(lists: Iterable[KBest], labels: Iterable[str]) -> SystemAgreement | None:
    """The agreement of the systems of these features; None where one has several candidates."""
    from rerank.metrics.agreement import SystemAgreement  # numba

    systems = [*labels]
    counted = SystemAgreement(systems)
    for kbest in lists:
        if not kbest.n:
            continue
        starts = np.unique(kbest.offsets)[:-1]
        if np.add.reduceat(counted.outputs(kbest), starts).max(initial=0.0) > 1.0:
            return None
        counted.add(kbest)
    return counted


def votes_of(kbest: KBest) -> Floats:
    """Votes (n,) that each line of a list stands for: its feature `votes`, otherwise 1.

    A candidate with a defect has none where its sentence has a better one.
    """
    names = column_names(kbest.labels)
    votes = kbest.dense[:, names.index(VOTES)] if VOTES in names else np.ones(kbest.n)
    votes = np.where(votes > 0, votes, 1.0)  # none of a source line (`--missing source`)
    return votes * whole(kbest)


def has_scores(kbest: KBest, besides: Collection[str] = ()) -> bool:
    """Whether any number but votes and features `besides` tells candidates of a sentence apart."""
    if not kbest.n:
        return False
    kept = [name != VOTES and name not in besides for name in column_names(kbest.labels)]
    columns = [kbest.dense[:, kept], *([] if kbest.totals is None else [kbest.totals[:, None]])]
    values, starts = np.concatenate(columns, axis=1), np.unique(kbest.offsets)[:-1]
    differ = np.maximum.reduceat(values, starts) != np.minimum.reduceat(values, starts)
    return bool(differ.any()) or bool(kbest.sparse.indptr[-1])


class DefectFeature(FeatureSource):
    """1 of candidates with a worse defect than the least bad one of their sentence, else 0."""

    preset = WEIGHT

    def __init__(self) -> None:
        super().__init__(DEFECTS)
        self._decided = 0

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """The feature of each document."""
        scored = []
        for _, kbest in documents:
            values = np.where(whole(kbest), 0.0, 1.0)
            parts = [values[a:b] for a, b in pairwise(kbest.offsets.tolist()) if a < b]
            scored.append(ScoredDocument(Unary(parts), np.zeros((kbest.n, 0))))
        return scored

    def count(self, kbest: KBest, choices: Sequence[int]) -> dict[str, Sequence[object]]:
        """Count sentences that keep a candidate with a defect, for lack of a better one.

        `defects` of each sentence that has candidates: kinds, and how many candidates have them.
        """
        if kbest.defects is not None and kbest.n:
            starts = np.unique(kbest.offsets)[:-1]
            self._decided += int((kbest.defects[starts + np.array(choices)] > 0).sum())
        counts = zip(defects_of(kbest), kbest.counts.tolist(), strict=True)
        return {DEFECTS: [kinds for kinds, n in counts if n]}

    def report(self) -> str:
        """`defects: 3 sentences of which every candidate has a defect`."""
        n = self._decided
        return f"{self.name}: {n:,} sentences of which every candidate has a defect; the least bad"
