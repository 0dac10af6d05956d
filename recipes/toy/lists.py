"""K-best lists of the documents' sentences, as from a system that sees one sentence at a time.

The source language of our story need not say he or she, nor when, and has one word for each
thing. So a list offers all readings that its sentence leaves open, and the model's scores favour
none of them. They lean, a little, against wrong words and wrong order, which every list has too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from stories import SLOTS, VERBS, Dice, Reading, Sentence

WEIGHTS = {"TM0": (0.3, 0.2), "LM0": (0.5,), "WordPenalty0": (-0.6,)}

_ASPECTS = ("gender", "tense", "term")
_BASE = {form: base for base, forms in VERBS.items() for form in forms}
_CLASS = {word: words for words in SLOTS.values() for word in words}
_SMALL = ("a", "the", "to", "of", "with", "for", "in", "near")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Words with the model's scores of them; `total` is the dense ones' weighted sum."""

    words: Words
    dense: dict[str, tuple[float, ...]]
    sparse: dict[str, int]
    total: float

    def line(self, number: int) -> str:
        """The candidate of a source sentence as Moses writes it, with word alignment."""
        features = [f"{name}= {' '.join(map('{:g}'.format, v))}" for name, v in self.dense.items()]
        features += [f"{name}= {value}" for name, value in self.sparse.items()]
        alignment = " ".join(f"{i}-{i}" for i in range(len(self.words)))
        columns = str(number), " ".join(self.words), " ".join(features), f"{self.total:.2f}"
        return " ||| ".join((*columns, alignment))


def candidates(sentence: Sentence, dice: Dice) -> list[Candidate]:
    """The list of a sentence, the highest total first."""
    told = [aspect for aspect in _ASPECTS if dice.chance(0.4)]
    readings = _readings(sentence.settled(*told))
    errors = dict.fromkeys(readings, 0)
    for _ in range(4 + dice.below(7)):
        words = dice.pick(readings)
        for n in range(1, 3 if dice.chance(0.3) else 2):
            words = _spoilt(words, dice)
            errors.setdefault(words, n)
    texts = list(errors)
    if dice.chance(0.05):  # two derivations of one text
        texts.append(dice.pick(texts))
    wrong = _misunderstood(readings[0], dice) if dice.chance(0.15) else {}
    result = [
        _scored(tuple(wrong.get(word, word) for word in words), errors[words], dice)
        for words in texts
    ]
    return sorted(result, key=lambda candidate: -candidate.total)


def _readings(sentence: Sentence) -> list[Words]:
    """The words under each reading that makes a difference."""
    ranges = [(0, 1) if sentence.varies_by(aspect) else (0,) for aspect in _ASPECTS]
    return [sentence.words(Reading(*values)) for values in product(*ranges)]


def _spoilt(words: Words, dice: Dice) -> Words:
    """The words with a fault: a bare verb, a lost word, another word, two that changed places."""
    fault = dice.below(4)
    apt = (_BASE, _SMALL, _CLASS, ())[fault]
    places = [i for i, word in enumerate(words) if word in apt]
    if not places:
        i = dice.below(len(words) - 2)
        return (*words[:i], words[i + 1], words[i], *words[i + 2 :])
    i = dice.pick(places)
    if fault == 0:
        instead: Words = (_BASE[words[i]],)
    elif fault == 1:
        instead = ()
    else:
        instead = (dice.pick(_CLASS[words[i]]),)
    return (*words[:i], *instead, *words[i + 1 :])


def _misunderstood(words: Words, dice: Dice) -> dict[str, str]:
    """A word that no candidate gets right, and what all of them have instead."""
    known = [word for word in words if word in _CLASS]
    if not known:
        return {}
    old = dice.pick(known)
    return {old: dice.pick([word for word in _CLASS[old] if word != old])}


def _scored(words: Words, errors: int, dice: Dice) -> Candidate:
    """The candidate with made-up scores, each lower by about 1 for an error."""
    n = len(words)
    dense = {
        "TM0": tuple(round(-0.9 * n - 0.8 * errors + 2.5 * dice.noise(), 1) for _ in range(2)),
        "LM0": (round(-1.7 * n - 1.2 * errors + 2.5 * dice.noise(), 1),),
        "WordPenalty0": (-n,),
    }
    sparse = {f"TWI_{dice.pick(words)}": 1} if dice.chance(0.1) else {}
    total = sum(
        weight * value
        for name, weights in WEIGHTS.items()
        for weight, value in zip(weights, dense[name], strict=True)
    )
    return Candidate(words, dense, sparse, total)
