"""Make k-best lists of any size, with documents, references and an n-gram model.

`python generate.py OUT D T K F SEED` writes D documents of T sentences on average, K hypotheses
of each sentence and F dense features into the folder OUT; `--sparse N` adds sparse features of N
names. The same arguments give the same bytes.

A sentence is a draft of words drawn from a Zipf distribution over 30,000 made-up words. Some of
its places have alternatives (other words, none, or two); a hypothesis takes one at each place,
the reference another. Features are sums over the alternatives that were taken, plus what the
sentence adds. So hypotheses share most of their words and some are duplicates, as in the lists of
a decoder. O(D T K) time, memory of one document.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.commands.train_ngram import TrainNgramOptions, train_ngram
from rerank.options import settings_of

VOCABULARY = 30_000
PLACES, ALTERNATIVES = 8, 3  # places with alternatives, the draft's own included
SHARED, OWN = 60, 6  # sparse features of a sentence, and of an alternative
TEXT = 20_000  # sentences from which the n-gram model is estimated, at most
LEVEL = 1  # of gzip


@dataclass(frozen=True, slots=True)
class Sentence:
    """A reference and K hypotheses, best first, with features (K, F) and a total each.

    sparse: fields of sparse features of each hypothesis, '' without any.
    """

    reference: str
    texts: list[str]
    features: NDArray[np.float64]
    totals: NDArray[np.float64]
    sparse: list[str]


def vocabulary(rng: np.random.Generator) -> list[str]:
    """Made-up words, each once, the frequent ones shorter."""
    consonants, vowels = list("bdfghklmnprstvz"), list("aeiou")
    syllables = [a + b for a in consonants for b in vowels]
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        size = 1 + int(np.log10(1 + len(words)) / 1.5) + int(rng.integers(0, 2))
        words["".join(rng.choice(syllables, size)) + rng.choice(["", "n", "s"])] = None
    return list(words)


def lengths(rng: np.random.Generator, documents: int, mean: int) -> NDArray[np.int64]:
    """Log-normal lengths (D,) of documents, at least 1, of the sum D · mean."""
    total = documents * mean
    drawn = rng.lognormal(sigma=0.6, size=documents)
    found: NDArray[np.int64] = np.maximum(1, np.floor(drawn / drawn.sum() * total).astype(np.int64))
    short = total - int(found.sum())
    longest = np.argsort(-found, kind="stable")
    while short < 0:  # those of one sentence came from less
        found[longest[:-short]] -= found[longest[:-short]] > 1
        short = total - int(found.sum())
    np.add.at(found, longest[np.arange(short) % documents], 1)
    return found


class Lists:
    """The sentences of a set of lists, one after the other."""

    def __init__(
        self, k: int, features: int, sparse: int, seed: int, words: list[str] | None = None
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.words = words or vocabulary(np.random.default_rng(0))
        self.k, self.features, self.sparse = k, features, sparse
        chances = 1 / (np.arange(VOCABULARY) + 2.7)
        self.cumulated = np.cumsum(chances / chances.sum())
        self.weights = np.round(self.rng.uniform(0.05, 0.3, features), 3)
        self.names = self.rng.permutation(sparse)  # of alternatives, in turn, so that all occur
        self.next_name = 0

    def draw(self, n: int) -> list[str]:
        """Words (n,) of a Zipf distribution."""
        places = np.searchsorted(self.cumulated, self.rng.random(n), side="right")
        return [self.words[i] for i in np.minimum(places, VOCABULARY - 1).tolist()]

    def sentence(self) -> Sentence:
        """The next sentence."""
        rng = self.rng
        draft = self.draw(int(np.clip(rng.lognormal(3.0, 0.45), 4, 80)))
        places = np.sort(rng.choice(len(draft), min(PLACES, len(draft) - 1), replace=False))
        tables, segments, before = [], [], 0
        for place in places.tolist():
            other, second = self.draw(2)
            kinds = (f" {other}", "", f" {other} {second}")
            shape = rng.choice(3, ALTERNATIVES - 1, replace=False, p=(0.7, 0.15, 0.15))
            tables.append([f" {draft[place]}", *(kinds[i] for i in shape.tolist())])
            segments.append("".join(f" {word}" for word in draft[before:place]))
            before = place + 1
        segments.append("".join(f" {word}" for word in draft[before:]))
        # the draft is likelier, and how much so differs from place to place
        odds = rng.uniform(0.15, 0.6, len(places))
        taken = np.where(
            rng.random((self.k, len(places))) < odds,
            rng.integers(1, ALTERNATIVES, (self.k, len(places))),
            0,
        )
        target = np.where(
            rng.random(len(places)) < 0.4, rng.integers(1, ALTERNATIVES, len(places)), 0
        )
        deltas = rng.normal(-0.3, 0.8, (len(places), ALTERNATIVES, self.features))
        deltas[:, 0] = 0.0
        base = -rng.gamma(4.0, 0.6 * len(draft) / 4, self.features)
        sums = base + deltas[np.arange(len(places)), taken].sum(axis=1)
        features = np.round(sums, 4)
        totals = features @ self.weights
        order = np.argsort(-totals, kind="stable")
        chosen = taken[order]
        pieces = np.empty((self.k, 2 * len(places) + 1), object)
        pieces[:, 0::2] = np.array(segments, object)
        for i, table in enumerate(tables):
            pieces[:, 2 * i + 1] = np.array(table, object)[chosen[:, i]]
        texts = ["".join(row).lstrip(" ") for row in pieces.tolist()]
        noise = iter(self.draw(len(draft)))
        changed = (rng.random(len(draft)) < 0.35).tolist()
        reference: list[str] = []
        at = {place: i for i, place in enumerate(places.tolist())}
        for i, (word, change) in enumerate(zip(draft, changed, strict=True)):
            if i in at:
                reference += tables[at[i]][target[at[i]]].split()
            else:
                reference.append(next(noise) if change else word)
        sparse = self._sparse(chosen) if self.sparse else [""] * self.k
        return Sentence(" ".join(reference), texts, features[order], totals[order], sparse)

    def _sparse(self, chosen: NDArray[np.int64]) -> list[str]:
        """Fields of sparse features of hypotheses, of the alternatives taken (K, P)."""
        shared = np.minimum(self.rng.zipf(1.3, SHARED), self.sparse) - 1
        common = "".join(f" tr_{name}= 1" for name in np.unique(shared).tolist())
        needed = chosen.shape[1] * ALTERNATIVES * OWN
        drawn = self.names[(self.next_name + np.arange(needed)) % self.sparse]
        self.next_name += needed
        # an alternative's names are its own, unless there are fewer names than places for them
        fields = np.array([f" sp_{name}= 1" for name in drawn.tolist()], object)
        own = fields.reshape(chosen.shape[1], ALTERNATIVES, OWN).sum(axis=2)
        rows = own[np.arange(chosen.shape[1]), chosen]
        return [common + "".join(row) for row in rows.tolist()]


def lines(sentence: Sentence, number: int, template: str) -> Iterator[str]:
    """Lines of a sentence's list in the format of Moses."""
    columns = zip(
        sentence.texts,
        sentence.features.tolist(),
        sentence.sparse,
        sentence.totals.tolist(),
        strict=True,
    )
    for text, features, sparse, total in columns:
        yield f"{number} ||| {text} ||| {template % tuple(features)}{sparse} ||| {total:.6f}\n"


def template_of(features: int) -> str:
    """Format of the dense features: a language model, a length, and the rest as one label."""
    rest = " ".join(["%.4f"] * (features - 2))
    return " ".join([*["LM0= %.4f", "WordPenalty0= %.4f"][:features], rest and f"TM0= {rest}"])


def generate(
    out: Path, documents: int, mean: int, k: int, features: int, seed: int, *, sparse: int = 0
) -> None:
    """Write `kbest.gz`, `ref`, `docids`, `weights.json` and `lm.arpa` into a folder."""
    if min(documents, mean, k, features) < 1 or sparse < 0:
        raise SystemExit("generate.py: expected numbers of at least 1; see --help")
    out.mkdir(parents=True, exist_ok=True)
    made = Lists(k, features, sparse, seed)
    template = template_of(features).rstrip(" ")
    number, names = 0, []
    with (
        open(out / "kbest.gz", "wb") as raw,
        gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as kbest,
        open(out / "ref", "w", encoding="utf-8") as references,
        open(out / "lm.txt", "w", encoding="utf-8") as text,
    ):
        for d, length in enumerate(lengths(made.rng, documents, mean).tolist()):
            for _ in range(length):
                sentence = made.sentence()
                kbest.write("".join(lines(sentence, number, template)).encode())
                references.write(sentence.reference + "\n")
                names.append(f"document-{d}\n")
                if number < TEXT:
                    text.write(sentence.texts[-1] + "\n")
                number += 1
    (out / "docids").write_text("".join(names), encoding="utf-8")
    _write_weights(out / "weights.json", made.weights)
    files = {"train": str(out / "lm.txt"), "out": str(out / "lm.arpa")}
    own = {"order": 3, "discount_fallback": True, "quiet": True}
    train_ngram(settings_of(TrainNgramOptions, **files, **own))
    (out / "lm.txt").unlink()


def _write_weights(path: Path, weights: NDArray[np.float64]) -> None:
    """Weights (F,) of the lists' totals as JSON."""
    values = weights.tolist()
    named: dict[str, float | list[float]] = {"LM0": values[0]}
    if len(values) > 1:
        named["WordPenalty0"] = values[1]
    if len(values) > 2:
        named["TM0"] = values[2] if len(values) == 3 else values[2:]
    path.write_text(json.dumps(named, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    for name in ("documents", "sentences", "k", "features", "seed"):
        parser.add_argument(name, type=int)
    parser.add_argument("--sparse", type=int, default=0, metavar="N", help="names of these")
    given = parser.parse_args()
    generate(
        given.out,
        given.documents,
        given.sentences,
        given.k,
        given.features,
        given.seed,
        sparse=given.sparse,
    )
