"""Tuning from files in the current folder, and what decoding with the weights found gives."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEUScore
from support.files import read, write, write_weights
from support.words import WORDS

from rerank.notices import Notices
from rerank.pipeline import Lists, Plan, Search, TunedWeights, Tuning, decode, tune_mert

ALONE = Lists("dev.kbest", "dev.docs")
PAIRS = {"pair-scores": (("pairs", Path("dev.pairs")),)}
PAIRED = Lists("dev.kbest", "dev.docs", score_files=PAIRS)
START = {"LM0": [1.0], "TM0": [0.5, 0.25]}
AUTO = Search()


@dataclass(frozen=True)
class NoisyCandidate:
    """A reference with so many words replaced; on the whole, its features fall with them."""

    text: str
    faults: int
    lm: float
    tm: tuple[float, float]
    tag: bool

    @property
    def line(self) -> str:
        """All that follows the number of the sentence in a k-best list."""
        tag = " tag_x= 1" if self.tag else ""
        return f"{self.text} ||| LM0= {self.lm} TM0= {self.tm[0]} {self.tm[1]}{tag} ||| 0"


@dataclass(frozen=True)
class NoisyList:
    """Candidates of a sentence, and the reference that they were made of."""

    reference: str
    candidates: list[NoisyCandidate]


def noisy_lists(seed: int, sizes: Sequence[int], *, lost: int = 0) -> list[NoisyList]:
    """Lists of these sizes; lost: the most words that a candidate lacks at its end."""
    rng = np.random.default_rng(seed)
    found = []
    for size in sizes:
        words = rng.choice(WORDS, 8).tolist()
        candidates = []
        for faults in rng.integers(0, 5, size).tolist():
            text = words[: 8 - int(rng.integers(lost + 1))] if lost else [*words]
            for place in rng.choice(len(text), faults, replace=False).tolist():
                text[place] = str(rng.choice(WORDS))
            lm, x, y = (-2 * faults + 3 * rng.standard_normal(3)).round(2).tolist()
            tag = rng.random() < 0.3
            candidates.append(NoisyCandidate(" ".join(text), faults, lm, (x, y), bool(tag)))
        found.append(NoisyList(" ".join(words), candidates))
    return found


def write_tuning_set(
    seed: int, docs: Sequence[str], gaps: Container[int], *, lost: int = 0
) -> None:
    """Write dev.kbest, dev.docs, dev.ref, start.json; gaps: sentences without candidates."""
    lists = noisy_lists(seed, [0 if t in gaps else 5 for t in range(len(docs))], lost=lost)
    write("dev.kbest", [f"{t} ||| {c.line}" for t, own in enumerate(lists) for c in own.candidates])
    write("dev.docs", docs)
    write("dev.ref", [own.reference for own in lists])
    write_weights("start.json", START)


def first_candidates() -> list[str]:
    """The first candidate of every sentence of dev.kbest; empty where there is none."""
    first: dict[int, str] = {}
    for line in read("dev.kbest"):
        t, text, *_ = line.split(" ||| ")
        first.setdefault(int(t), text)
    return [first.get(t, "") for t in range(len(read("dev.docs")))]


def tune(
    lists: Lists,
    plan: Plan,
    said: list[str] | None = None,
    *,
    out: str = "out.json",
    references: Sequence[str] = ("dev.ref",),
    search: Search = AUTO,
    tokenize: str = "none",
    **weights: Any,
) -> Tuning:
    """`tune_mert`; said: takes the lines it announces; weights: fields of `TunedWeights`."""
    found = tune_mert(
        lists,
        references,
        TunedWeights(out, **weights),
        search=search,
        tokenize=tokenize,
        plan=plan,
        notices=Notices(),
        announce=(said if said is not None else list[str]()).append,
    )
    assert found is not None
    return found


def decoded_bleu(
    lists: Lists,
    weights: str,
    *,
    references: Sequence[str] = ("dev.ref",),
    tokenize: str = "none",
) -> BLEUScore:
    """sacrebleu's BLEU of what `decode` writes, into hyp.txt."""
    decode(lists, weights, "hyp.txt", notices=Notices())
    truth = [read(name) for name in references]
    return sacrebleu.corpus_bleu(read("hyp.txt"), truth, tokenize=tokenize, force=True)
