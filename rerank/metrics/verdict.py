"""What the tests of a comparison mean, in one line of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from rerank.metrics.significance import FEWEST_DOCUMENTS

SIGNIFICANT = 0.05  # p of a difference that is called significant
MIXED = "mixed: "  # a verdict of metrics that differ significantly in both directions
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
    def shown(self) -> float:
        """The difference as it is printed, so that equal figures are no gain."""
        return round(self.difference, 2)

    @property
    def significant(self) -> bool:
        """Whether chance hardly explains the gain."""
        return self.p is not None and self.p < SIGNIFICANT


def verdict(
    gains: Sequence[Gain],
    rest: Sequence[Gain] = (),
    longer: float = 0.0,
    others: Sequence[Gain] = (),
) -> str:
    """Whether a system is better than another, by the tests of its gains.

    gains: in the metrics that decide: those that were optimised, or BLEU; rest: in other metrics,
    which may disagree; longer: difference of the length ratios; others: gains in scores of which
    nobody knows whether more is better.
    """
    both = [*gains, *rest]
    tested = any(gain.p is not None for gain in both)
    if not any(gain.shown for gain in both):
        line = "no difference"
    elif tested:
        line = _tested(gains, both, longer)
    else:
        parts = [_in_direction(both, sign) for sign in (1, -1)]
        line = ", ".join(filter(None, parts)) + (_length(longer) if all(parts) else "")
    for gain in others:
        if gain.significant:
            line += f"; {gain.metric} {'higher' if gain.difference > 0 else 'lower'}, significant"
    if tested or line == "no difference":
        return line
    return f"{line}; not tested: fewer than {FEWEST_DOCUMENTS} documents"


def judged(gain: Gain) -> str:
    """The verdict of a gain, with its number and, if it was tested, p."""
    p = f", {p_text(gain.p)}" if gain.p is not None and gain.shown else ""
    return f"{verdict([gain])} ({gain.metric} {gain.difference:+.2f}{p})"


def _tested(gains: Sequence[Gain], both: Sequence[Gain], longer: float) -> str:
    """The direction of the gains that decide, if they agree; then all metrics that differ.

    Where none decides and significant gains differ in direction, these come first, as `mixed`.
    """
    found = {1 if gain.difference > 0 else -1 for gain in gains if gain.significant}
    sign = found.pop() if len(found) == 1 else 0
    certain = [gain for gain in both if gain.significant]
    unsure = [gain for gain in both if not gain.significant]
    if sign:
        alike = [gain.metric for gain in certain if gain.difference * sign > 0]
        rest = [gain.metric for gain in unsure if gain.difference * sign >= 0]
        head = f"{'better' if sign > 0 else 'worse'}, significant in {_listed(alike)}"
        head += f", not in {_listed(rest)}" if rest else ""
        certain = [gain for gain in certain if gain.difference * sign < 0]
    else:
        names = _listed([gain.metric for gain in unsure])
        head = f"no significant difference in {names}" if names else ""
    mixed = ""
    if not sign and len({gain.difference > 0 for gain in certain}) > 1:
        certain.sort(key=lambda gain: gain.difference < 0)
        told = [
            f"{_in_direction([x], 1) or _in_direction([x], -1)} ({p_text(x.p)})" for x in certain
        ]
        mixed, certain = f"{MIXED}{', '.join(told)}", []
    differing = [_in_direction(certain, way, ", significant") for way in (1, -1)]
    differing.append(_in_direction(unsure, -sign, ", not significant"))
    length = _length(longer) if mixed or any(differing) else ""
    return "; ".join(filter(None, [mixed, head, *differing])) + length


def _in_direction(gains: Sequence[Gain], sign: int, test: str = "") -> str:
    """`BLEU and TER better` and what the test says, of the gains of a sign; '' without any."""
    names = [gain.metric for gain in gains if gain.difference * sign > 0]
    return f"{_listed(names)} {'better' if sign > 0 else 'worse'}{test}" if names else ""


def answer(verdict: str) -> tuple[str, str]:
    """What a verdict answers to "is it better?", and its direction: `up`, `down` or `same`.

    "but": another metric differs significantly in the other direction.
    """
    if verdict.startswith(MIXED):
        return "Mixed", "same"
    for word, other, short, direction in (
        ("better", "worse", "Yes", "up"),
        ("worse", "better", "No", "down"),
    ):
        if verdict.startswith(word):
            return f"{short}{', but' * (f'{other}, significant' in verdict)}", direction
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


def p_text(p: float | None) -> str:
    """`p 0.042` or `p < 0.001`; '' for None."""
    return "" if p is None else f"p {p:.3f}" if p >= 0.001 else "p < 0.001"


def _length(longer: float) -> str:
    """What may explain that metrics differ: another length of the output."""
    if abs(longer) < _OTHER_LENGTH:
        return ""
    return f"; the output is {'longer' if longer > 0 else 'shorter'}"


def _listed(names: Sequence[str]) -> str:
    """`BLEU, chrF and TER`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
