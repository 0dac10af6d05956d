"""The maximum-entropy classifier of adjacent sentences, as a baseline of `lm-eval coherence`.

    python recipes/coherence/maximum_entropy.py --train FILE --valid FILE TEXT

Lin et al. 2015, §6.1: trained with bags of words of adjacent sentences, it gives the probability
that two sentences follow each other; of a document and a permutation, the one with the higher sum
of log-probabilities is taken for the original. The texts have a sentence a line and a blank line
after each document; permutations are those of `rerank lm-eval coherence` with the same seed.

What the paper leaves open: a pair of sentences has the words of the first, those of the second,
those of both, and the pairs of a word of each, hashed; each adjacent pair is trained against three
pairs of the same document that are not adjacent; the L2 penalty is that with the highest accuracy
on permutations of the validation text. Time O(pairs × words of a sentence²) an iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_expit

from lm.comparisons import distinct_orders
from rerank.notices import Notices
from rerank.report.language_models import (
    CoherenceAccuracy,
    CoherenceReport,
    ModelFacts,
    PermutedDocument,
)
from rerank.runs.texts import evaluation_text
from rerank.scorers.text_models import EvaluationText

HASHED = 1 << 20  # weights that pairs of words share
NOT_ADJACENT = 3  # for each adjacent pair
PENALTIES = (100.0, 1_000.0, 10_000.0)

Words = NDArray[np.int64]
Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Sentences:
    """Distinct words of each sentence of a text, in the numbers of the training text's words."""

    words: list[Words]
    text: EvaluationText

    @classmethod
    def of(cls, text: EvaluationText, numbers: dict[bytes, int]) -> Sentences:
        """The sentences; words that `numbers` lacks are left out."""
        known = np.array([numbers.get(word, -1) for word in text.words], dtype=np.int64)
        bounds = text.corpus.sentences.tolist()
        found = [np.unique(known[text.corpus.tokens[begin:end]]) for begin, end in pairwise(bounds)]
        return cls([own[own >= 0] for own in found], text)

    def documents(self) -> Iterator[range]:
        """The sentences of each document."""
        bounds = self.text.corpus.documents.tolist()
        return (range(begin, end) for begin, end in pairwise(bounds))


@dataclass(frozen=True)
class Classifier:
    """p(adjacent | first, second) = σ(weights · features + bias); V words of the training text."""

    weights: NDArray[np.float64]
    n_words: int

    @classmethod
    def trained(
        cls, features: csr_matrix, adjacent: NDArray[np.bool_], penalty: float
    ) -> Classifier:
        """The minimum of −Σ log p + penalty/2 · |weights|² over pairs, by L-BFGS."""
        signs = np.where(adjacent, 1.0, -1.0)

        def objective(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            margins = signs * (features @ weights)
            loss = -log_expit(margins).sum() + penalty / 2 * weights @ weights
            slope = -signs * np.exp(log_expit(-margins))
            return float(loss), features.T @ slope + penalty * weights

        begin = np.zeros(features.shape[1])
        found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60})
        return cls(found.x, (features.shape[1] - HASHED - 1) // 3)

    def outcomes(
        self, sentences: Sentences, permutations: int, seed: int
    ) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Document, its sentences, and outcomes: 1 if it is preferred to a permutation, ½ a tie."""
        corpus = sentences.text.corpus
        for d, own in enumerate(sentences.documents()):
            rng = np.random.default_rng((seed, d))
            orders = distinct_orders(corpus, d, permutations, rng)
            if len(orders):
                log_p = self._log_p(sentences, own)
                first, *others = (
                    log_p[order[:-1], order[1:]].sum() for order in [np.arange(len(own)), *orders]
                )
                yield d, len(own), np.array([(first > x) + 0.5 * (first == x) for x in others])

    def _log_p(self, sentences: Sentences, own: range) -> NDArray[np.float64]:
        """(T, T) log-probabilities that one sentence of a document follows another."""
        pairs = [(i, j) for i in own for j in own]
        found = features_of(sentences.words, pairs, self.n_words) @ self.weights
        log_p: NDArray[np.float64] = log_expit(found).reshape(len(own), len(own))
        return log_p


def features_of(words: list[Words], pairs: Iterable[tuple[int, int]], n_words: int) -> csr_matrix:
    """Binary features (pairs, 3 V + HASHED + 1), the last of which is the bias."""
    columns, sizes = [], []
    for i, j in pairs:
        first, second = words[i], words[j]
        hashed = (first[:, None] * 0x9E3779B1 + second * 0x85EBCA6B) % HASHED
        own = [
            first,
            second + n_words,
            np.intersect1d(first, second, assume_unique=True) + 2 * n_words,
            np.unique(hashed) + 3 * n_words,
            np.array([3 * n_words + HASHED]),
        ]
        columns += own
        sizes.append(sum(map(len, own)))
    indices = np.concatenate(columns).astype(np.int32)
    shape = len(sizes), 3 * n_words + HASHED + 1
    return csr_matrix(
        (np.ones(len(indices), dtype=np.float32), indices, np.cumsum([0, *sizes])), shape=shape
    )


def training_pairs(sentences: Sentences, seed: int) -> tuple[Pairs, NDArray[np.bool_]]:
    """Pairs of sentences of one document, and which of them are adjacent."""
    rng, pairs, adjacent = np.random.default_rng(seed), [], []
    for own in sentences.documents():
        for i in own[:-1]:
            pairs.append((i, i + 1))
            adjacent.append(True)
            others = [j for j in own if j not in (i, i + 1)]
            drawn = rng.permutation(others)[:NOT_ADJACENT] if others else []
            pairs += [(i, int(j)) for j in drawn]
            adjacent += [False] * len(drawn)
    return pairs, np.array(adjacent)


def accuracy(
    classifier: Classifier, sentences: Sentences, permutations: int, seed: int
) -> CoherenceAccuracy:
    """Its accuracy on a text, as `rerank lm-eval coherence` reports that of a language model."""
    found = list(classifier.outcomes(sentences, permutations, seed))
    documents = [PermutedDocument(d, size, len(own)) for d, size, own in found]
    facts = ModelFacts("maximum entropy", "", 2, 0.0)
    left_out = sentences.text.corpus.n_documents - len(found)
    report = CoherenceReport.of(
        {facts: [own for _, _, own in found]},
        documents,
        left_out=left_out,
        permutations=permutations,
        seed=seed,
    )
    return report.models[facts]


@click.command()
@click.option("--train", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--valid", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--permutations", default=20, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.argument("text", type=click.Path(exists=True, path_type=Path))
def main(train: Path, valid: Path, permutations: int, seed: int, text: Path) -> None:
    """Print the accuracy on TEXT."""
    notices = Notices()
    of_training = evaluation_text(train, "blank", notices)
    numbers = {word: number for number, word in enumerate(of_training.words)}
    sentences = Sentences.of(of_training, numbers)
    pairs, adjacent = training_pairs(sentences, seed)
    features = features_of(sentences.words, pairs, len(numbers))
    validation = Sentences.of(evaluation_text(valid, "blank", notices), numbers)
    classifiers = {}
    for penalty in PENALTIES:
        classifier = Classifier.trained(features, adjacent, penalty)
        score = accuracy(classifier, validation, 2, seed).accuracy
        click.echo(f"penalty {penalty:g}: validation {score:.1%}", err=True)
        classifiers[score] = classifier
    test = Sentences.of(evaluation_text(text, "blank", notices), numbers)
    found = accuracy(classifiers[max(classifiers)], test, permutations, seed)
    click.echo("| model | accuracy | 1,000 sets: mean (SD) |\n|---|---|---|")
    click.echo(
        f"| maximum entropy | {100 * found.accuracy:.1f} [{100 * found.low:.1f}, "
        f"{100 * found.high:.1f}] | {100 * found.sets_mean:.2f} ({100 * found.sets_sd:.2f}) |"
    )


if __name__ == "__main__":
    main()
