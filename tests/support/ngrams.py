"""N-gram models of made-up texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lm.corpus import build_vocabulary, intern, renumber
from lm.ngrams import FALLBACK, KneserNey, NGramCounts, NGramModel, StupidBackoff, count_ngrams
from lm.ngrams.arpa import read_arpa
from lm.vocabulary import Vocabulary

GOLDEN = Path(__file__).parents[1] / "lm" / "ngrams"
TEXT = (GOLDEN / "lmplz.txt").read_text().splitlines()  # 90 made-up sentences


def counts_of(
    sentences: Sequence[str], order: int, size: int = 1000
) -> tuple[NGramCounts, Vocabulary]:
    """The n-grams of sentences, and a vocabulary of their most frequent words."""
    words, raw = intern([(sentence or "=").encode() for sentence in sentences], "blank")
    vocabulary = build_vocabulary(words, raw, size)
    return count_ngrams(renumber(raw, words, vocabulary), len(vocabulary), order), vocabulary


def model_of(
    sentences: Sequence[str],
    order: int,
    smoothing: KneserNey | StupidBackoff = KneserNey(FALLBACK),  # noqa: B008 - immutable
) -> NGramModel:
    return smoothing.estimate(*counts_of(sentences, order))[0]


def scores(
    model: NGramModel, sentences: Sequence[str]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Scores (S, 2) in nats."""
    text = "".join(f"{sentence}\n" for sentence in sentences).encode()
    return model.scores(*model.vocabulary.encode_lines(text))[:, :2]


def log10_of_words(model: NGramModel, sentence: str) -> list[float]:
    """Base-10 logarithms of a sentence's words and of `</s>`: differences of scores of prefixes."""
    words = sentence.split()
    prefixes = [" ".join(words[:n]) for n in range(len(words) + 1)]
    result = scores(model, prefixes) / np.log(10)
    return [*np.diff(result[:, 0]).tolist(), float(result[-1, 1])]


def golden(name: str) -> NGramModel:
    """The model in a file beside the tests."""
    return read_arpa((GOLDEN / name).read_bytes().split(b"\n"))
