"""Which outputs of several systems agree most with those of the others.

For a sentence that is the mean utility against them; `SystemAgreement` adds what the whole corpus
tells of the systems. BLEU of a document is no mean over its sentences, so minimum Bayes risk (Kumar
& Byrne 2004, https://aclanthology.org/N04-1022) is sought for the document: choices x, an output of
each sentence, of the greatest expected utility

    U(x) = mean over systems j of ln BLEU(x, output of system j).

Outliers, to whose garbage logarithms would give a large say, and systems without outputs of the
document are left out. BLEU is sacrebleu's, but that ε = 0.1 is added to the matches and to the
n-grams of every order (Lin & Och 2004, https://aclanthology.org/C04-1072), and that an empty
document counts as ε words in the brevity penalty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.corpus.defects import whole
from rerank.corpus.kbest import KBest
from rerank.files.compilation import njit
from rerank.metrics import bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.consensus import ExpectedUtility, Floats, Integers, PairwiseBleu, PairwiseChrf

Statistics = NDArray[np.int32]
EPSILON = 0.1
OUTLIER = 0.5  # of the median of the systems' mean BLEU with the others
_LEAST_GAIN = 1e-12  # of other choices: less is rounding
BETA = 1.25  # of chrF as agreement: with that of chrF2, the longest outputs agree most
LENGTH_OUTLIER = 2.0  # times the median system's mean deviation from the median length
COPY = 0.95  # of the sentences of two systems are the same
DEFECTIVE = 0.1, 2.0  # share of a system's outputs, and times that of the system with the fewest
_LEAST_SENTENCES = 20  # of a system that is said to be an outlier or a copy
_DECIMALS = 9  # of scores: further ones depend on the order of the candidates
_DIGITS = 12  # of consensus behind the point: with more, reading takes four times as long


def consensus(kbest: KBest, votes: Floats, indicators: Floats) -> Floats:
    """Features (n, 3): mean sentence BLEU and chrF against the others, and `document_consensus`.

    votes: (n,) of each candidate; indicators: (n, M), 1 where it is the output of a system.
    """
    utilities = PairwiseBleu(kbest), PairwiseChrf(kbest)
    columns = [leave_one_out(utility, votes) for utility in utilities]
    columns.append(document_consensus(kbest, indicators, columns[0]))
    return np.column_stack(columns).round(_DIGITS)


def leave_one_out(utility: ExpectedUtility, votes: Floats) -> Floats:
    """Mean utility (n,) of each candidate against the other votes of its sentence; 0 without any.

    votes: (n,) of each candidate, the candidate's among them. utility: `PairwiseBleu` or
    `PairwiseChrf`; O(K² V / 63) a sentence for V different n-grams.
    """
    means = np.zeros(len(votes))
    for t, span in enumerate(_spans(utility.kbest)):
        counts = votes[span]
        n_votes, voting = float(counts.sum()), (counts > 0).astype(np.float64)
        others = n_votes - voting
        if others.any():
            expected = utility.expected(t, counts / n_votes)
            same = 100.0 * voting * (utility.words(t) > 0)  # of a text against itself
            mean = (n_votes * expected - same) / np.maximum(others, 1.0)
            means[span] = np.maximum(mean, 0.0) * (others > 0)  # rounding goes below
    return means


def sentence_agreement(kbest: KBest, votes: Floats) -> Floats:
    """Mean chrF (n,), β = 1.25, of each candidate against the other votes (n,) of its sentence."""
    return leave_one_out(PairwiseChrf(kbest, beta=BETA), votes).round(_DECIMALS)


def chosen_agreement(kbest: KBest, votes: Floats, rows: Sequence[int]) -> list[float | None]:
    """Mean chrF2 of a candidate of each sentence, a row, against the other votes (n,) of it.

    None where there are no others. O(K) time a sentence.
    """
    metric, texts, agreements = Chrf(), kbest.texts.to_list(), list[float | None]()
    for (a, b), row in zip(pairwise(np.unique(kbest.offsets).tolist()), rows, strict=True):
        others = votes[a:b].copy()
        others[row - a] = max(0.0, others[row - a] - 1.0)
        pairs = [[texts[row]]] * (b - a), [[text] for text in texts[a:b]]
        n, scores = float(others.sum()), metric.scores(metric.statistics(*pairs))
        agreements.append(round(float(scores @ others) / n, _DECIMALS) if n > 0 else None)
    return agreements


class SystemAgreement:
    """Agreement of the outputs of M systems, from two passes over the lists of a corpus.

    The score of a candidate is its mean chrF against the outputs of the other systems that have a
    vote, and that of its system in all sentences: outputs that agree about as well are told apart
    by their systems. In all sentences outputs with a defect (`KBest.defects`) count as 0. Three
    kinds of systems have no vote, though their outputs may be chosen: copies of another (`COPY`),
    which count once; those whose lengths deviate from the median of the systems by more than twice
    what the median system's do; and those of many outputs with defects (`DEFECTIVE`). Such a system
    comments, repeats or leaves out, often as the others of its family do.

    labels: (M,) of the systems' indicator features; the order is of no importance.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = sorted(labels)
        size = len(labels)
        self._chrf, self._both, self._equal = np.zeros((3, size, size))
        self._deviations, self._without, self._outputs = np.zeros((3, size))

    def add(self, kbest: KBest) -> None:
        """Count a document. O(K² (M + V / 63)) time a sentence; O(M²) memory for the corpus."""
        utility, all_outputs = PairwiseChrf(kbest, beta=BETA), self.outputs(kbest)
        systems = all_outputs * whole(kbest)[:, None]
        self._without += systems.sum(axis=0)
        self._outputs += all_outputs.sum(axis=0)
        for s, span in enumerate(_spans(kbest)):
            outputs = systems[span]
            present, rows = outputs.any(axis=0), outputs.argmax(axis=0)
            if not present.any():
                continue
            both = np.outer(present, present)
            pairs = utility.expected(s, np.eye(len(outputs)))  # [against, candidate]
            self._chrf += np.where(both, pairs.T[np.ix_(rows, rows)], 0.0)
            self._both += both
            self._equal += outputs.T @ outputs
            lengths = utility.characters(s)[rows][present] + 1.0
            self._deviations[present] += np.abs(np.log(lengths / np.median(lengths)))

    def scores(self, kbest: KBest) -> Floats:
        """Scores (n,) of a document's candidates, 0..200, when all documents are counted."""
        in_sentence, of_system = self.parts(kbest)
        return (in_sentence + of_system).round(_DECIMALS)

    def parts(self, kbest: KBest) -> tuple[Floats, Floats]:
        """What scores are the sum of, (n,) each: agreement in the sentence, and of the system."""
        silent = self._silent()
        voters = 1.0 - np.any([*silent.values()], axis=0)
        others = voters * (1.0 - np.eye(len(voters)))
        means = (self._chrf * others).sum(axis=1) / np.maximum((self._both * others).sum(axis=1), 1)
        means *= self._sound
        means[silent["copies of another"]] = 0.0  # of the system that they repeat counts
        systems = self.outputs(kbest) * whole(kbest)[:, None]  # without a defect
        in_sentence = sentence_agreement(kbest, systems @ voters)
        firsts = kbest.first_rows()
        return in_sentence[firsts], (systems * means).max(axis=1, initial=0.0)[firsts]

    def silent(self) -> dict[str, list[str]]:
        """Labels of the systems without a vote, by the reason."""
        names = np.array(self._labels)
        return {reason: names[which].tolist() for reason, which in self._silent().items()}

    def _silent(self) -> dict[str, NDArray[np.bool_]]:
        """Which systems (M,) have no vote, by the reason.

        Of copies the one that agrees most with all systems is the original, so that neither the
        order of systems nor their names matter.
        """
        known = self._both >= _LEAST_SENTENCES
        sums = self._chrf.sum(axis=1).round(_DECIMALS)
        originals = (sums > sums[:, None]) | np.tril(sums == sums[:, None], -1)
        equal = (self._equal >= COPY * self._both) & originals & known
        copies: NDArray[np.bool_] = np.any(equal, axis=1)
        deviations = self._deviations / np.maximum(self._both.diagonal(), 1.0)
        most = LENGTH_OUTLIER * float(np.median(deviations[~copies])) + _LEAST_GAIN
        outliers = known.diagonal() & (deviations > most) & ~copies
        share, times = DEFECTIVE
        defects = 1.0 - self._sound
        defective = defects > max(share, times * float(defects.min()))
        defective &= (self._outputs >= _LEAST_SENTENCES) & ~outliers & ~copies
        if (outliers | copies | defective).sum() > len(defects) - 2:
            defective[:] = False  # one system alone agrees with nobody
        return {
            "lengths unlike the others'": outliers,
            "many outputs that are no translations": defective,
            "copies of another": copies,
        }

    @property
    def _sound(self) -> Floats:
        """Share (M,) of the outputs of each system that have no defect."""
        return self._without / np.maximum(self._outputs, 1.0)

    def outputs(self, kbest: KBest) -> Floats:
        """Which systems each candidate is the output of, (n, M); of equal ones the first is."""
        names, firsts = column_names(kbest.labels), kbest.first_rows()
        outputs = kbest.dense[:, [names.index(label) for label in self._labels]]
        return np.where((firsts == np.arange(kbest.n))[:, None], outputs, 0.0)


def _spans(kbest: KBest) -> list[slice]:
    """Rows of each sentence that has candidates."""
    return [slice(a, b) for a, b in pairwise(kbest.offsets.tolist()) if a < b]


def document_consensus(kbest: KBest, indicators: Floats, utility: Floats) -> Floats:
    """W · (U(x with this candidate) − U(x)) of each candidate (n,), in natural logarithms.

    indicators: (n, M), 1 where a candidate is the output of a system; utility: (n,), whose best
    candidates are the first choices. From these, x is improved sentence by sentence until no other
    candidate of a sentence is better: candidates of x have 0, others less. W, the mean number of
    words of the systems' documents, makes values of long and short documents comparable.

    O(K² V / 63) time a sentence for the matches of V different n-grams, then O(n M) a pass over the
    document, of which there are few; O(n M) memory.
    """
    if not kbest.n:
        return np.zeros(0)
    indicators = indicators[:, indicators.any(axis=0)]
    offsets = np.unique(kbest.offsets)  # of sentences with candidates
    statistics = _statistics(kbest, indicators, offsets)
    spans = pairwise(offsets.tolist())
    choices = np.array([a + utility[a:b].argmax() for a, b in spans], np.int64)
    sums = statistics[choices].sum(axis=0, dtype=np.float64)
    of_systems = [statistics[output > 0].sum(axis=0, dtype=float) for output in indicators.T]
    shares = _shares(np.array(of_systems))
    values = np.zeros(kbest.n)
    while _improve(statistics, offsets, shares, choices, sums, values):
        pass
    return values * float(shares @ sums[:, -1])


def _statistics(kbest: KBest, indicators: Floats, offsets: Integers) -> Statistics:
    """BLEU statistics (n, M, WIDTH) of each candidate against the output of each system."""
    utility = PairwiseBleu(kbest)
    statistics = np.zeros((*indicators.shape, bleu.WIDTH), np.int32)
    for s, (a, b) in enumerate(pairwise(offsets.tolist())):
        outputs, words = indicators[a:b].argmax(axis=0), utility.words(s).astype(np.int64)
        part = statistics[a:b]
        part[..., : bleu.ORDER] = utility.matches(s)[:, outputs]
        totals = np.maximum(words[:, None] - np.arange(bleu.ORDER), 0)
        part[..., bleu.ORDER : -1] = totals[:, None]
        part[..., -1] = words[outputs]
        part[:, ~indicators[a:b].any(axis=0)] = 0
    return statistics


@njit(cache=True)
def _improve(
    statistics: Statistics,
    offsets: Integers,
    shares: Floats,
    choices: Integers,
    sums: Floats,
    values: Floats,
) -> bool:
    """Take better candidates in one pass; whether there were any. values: (n,) differences of U."""
    changed, others, added = False, sums.copy(), sums.copy()
    for t in range(len(choices)):
        chosen, best, most = choices[t], choices[t], _LEAST_GAIN
        others[:] = sums - statistics[chosen]
        base = _utility(sums, shares)
        for k in range(offsets[t], offsets[t + 1]):
            added[:] = others + statistics[k]
            values[k] = _utility(added, shares) - base
            if values[k] > most:
                best, most = k, values[k]
            elif k != chosen:  # of choices that are as good, x has one
                values[k] = min(values[k], -_LEAST_GAIN)
        if best != chosen:
            choices[t], changed = best, True
            sums[:] = others + statistics[best]
    return changed


@njit(cache=True)
def _shares(statistics: Floats) -> Floats:
    """Share (M,) of each system in U, from statistics (M, M, WIDTH) of all pairs of systems."""
    size = len(statistics)
    agreements = np.zeros(size)
    for i in range(size):
        for j in range(size):
            if i != j:
                agreement = math.exp(_log_bleu(statistics[i, j]))
                agreements[i] += agreement
                agreements[j] += agreement
    kept = (agreements >= OUTLIER * np.median(agreements)).astype(np.float64)
    shares: Floats = kept / kept.sum()
    return shares


@njit(cache=True)
def _utility(sums: Floats, shares: Floats) -> float:
    """Mean ln BLEU of summed statistics (M, WIDTH)."""
    total = 0.0
    for j in range(len(shares)):
        total += shares[j] * _log_bleu(sums[j])
    return total


@njit(cache=True)
def _log_bleu(statistics: Floats) -> float:
    """Smoothed ln BLEU of statistics (WIDTH,): matches, n-grams, words of the reference."""
    total, order = 0.0, len(statistics) // 2
    for n in range(order):
        total += math.log((statistics[n] + EPSILON) / (statistics[order + n] + EPSILON)) / order
    words, reference = statistics[order], statistics[2 * order]
    return total + float(min(0.0, 1.0 - reference / max(words, EPSILON)))
