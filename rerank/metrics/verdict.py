"""What the tests of a comparison mean, in one line of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from rerank.metrics.significance import FEWEST_DOCUMENTS

SIGNIFICANT = 0.05  # p of a difference that is called significant
_OTHER_LENGTH = 0.01  # difference of length ratios that is worth a word
_IDLE = 0.005  # share of choices that depend on a feature which contributes nothing


@dataclass(frozen=True, slots=True)
class Gain:
    """What a system gains over another in a metric; of an error rate, too, positive is better.

    p: of a test of the gain, None if it was not tested.
    """

    metric: str
    difference: float
    p: float | None

    @classmethod
    def of_error(cls, metric: str, difference: float, error: float) -> Gain:
        """A gain with its standard error, tested against the normal distribution."""
        if error > 0:
            return cls(metric, difference, 2 * NormalDist().cdf(-abs(difference) / error))
        return cls(metric, difference, 1.0 if difference == 0 else None)

    @property
    def significant(self) -> bool:
        """Whether chance hardly explains the gain."""
        return self.p is not None and self.p < SIGNIFICANT


def verdict(gains: Sequence[Gain], longer: float = 0.0, others: Sequence[Gain] = ()) -> str:
    """Whether a system is better than another, by the tests of its gains.

    longer: difference of the length ratios; others: gains in scores of which nobody knows whether
    more is better.
    """
    tested = any(gain.p is not None for gain in gains)
    counted = [gain for gain in gains if gain.significant or not tested]
    better = [gain.metric for gain in counted if gain.difference > 0]
    worse = [gain.metric for gain in counted if gain.difference < 0]
    if not any(gain.difference for gain in gains):
        line = "no difference"
    elif not (better or worse):
        line = "no significant difference"
    elif better and worse:
        line = f"{_listed(better)} better, {_listed(worse)} worse{_length(longer)}"
    elif tested:
        word, other = ("better", "worse") if better else ("worse", "better")
        sign = 1 if better else -1
        rest = [gain for gain in gains if not gain.significant]
        against = [gain.metric for gain in rest if gain.difference * sign < 0]
        alike = [gain.metric for gain in rest if gain.metric not in against]
        line = f"{word}, significant in {_listed(better or worse)}"
        line += f", not in {_listed(alike)}" if alike else ""
        if against:
            line += f"; {_listed(against)} {other}, not significant{_length(longer)}"
    else:
        line = f"{_listed(better or worse)} {'better' if better else 'worse'}"
    for gain in others:
        if gain.significant:
            line += f"; {gain.metric} {'higher' if gain.difference > 0 else 'lower'}, significant"
    if tested or line == "no difference":
        return line
    return f"{line}; not tested: fewer than {FEWEST_DOCUMENTS} documents"


def answer(verdict: str) -> tuple[str, str]:
    """What a verdict answers to "is it better?", and its direction: `up`, `down` or `same`."""
    if verdict.startswith("better"):
        return "Yes", "up"
    if verdict.startswith("worse"):
        return "No", "down"
    return "No" if verdict == "no difference" else "Not certain", "same"


def idle(models: Sequence[tuple[str, float, int]], sentences: int) -> str:
    """Which language models contribute nothing to the choices of sentences; '' for none.

    models: name, weight, and number of choices that would be others without the model's score.
    """
    found = [
        f"your language model {name} contributes nothing (weight {weight:.3g}): without it "
        f"{changed:,} of {sentences:,} choices would be others"
        for name, weight, changed in models
        if changed < _IDLE * sentences
    ]
    return "; ".join(found)


def _length(longer: float) -> str:
    """What may explain that metrics differ: another length of the output."""
    if abs(longer) < _OTHER_LENGTH:
        return ""
    return f": {'longer' if longer > 0 else 'shorter'} output"


def _listed(names: Sequence[str]) -> str:
    """`BLEU, chrF and TER`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
