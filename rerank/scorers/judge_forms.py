"""Forms of questions to a judge: what each asks, how its answer is read, and what that is worth.

rating: a number from 0 to 100, as GEMBA-DA (Kocmi and Federmann 2023,
https://aclanthology.org/2023.eamt-1.19); grade: a letter from A to E; errors: spans with
severities, and the penalty of MQM, as GEMBA-MQM (https://aclanthology.org/2023.wmt-1.64); ranking:
all candidates of a sentence at once; pair: two of them, in both orders. Values are larger the
better: 0 to 100, minus a penalty, or the share of the other candidates that one is better than.

An answer that is not as it was asked for is not read: no number is looked for in prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decoders.problem import Array

TEMPLATE = Path(__file__).with_name("judge.jinja")
PENALTIES = {"critical": 25.0, "major": 5.0, "minor": 1.0}
MINOR_PUNCTUATION = 0.1
_MOST_ERRORS = 1000
_NO_JSON = ValueError, LookupError, TypeError, RecursionError  # of another JSON, too
_NUMBER = re.compile(
    r"\**(?:(?:score|rating|answer)\s*[:=]\s*)?\**\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*(?:/\s*100|%)?\**\.?",
    re.I,
)
_LETTER = re.compile(
    r"(?:(?:grade|answer|translation)\s*[:=]?\s*)?[*(\"']*([A-Z])[*)\"']*\.?", re.I
)
_THOUGHT = re.compile(r"\s*(?:<think>)?.*?</think>", re.DOTALL)  # of models that reason aloud
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_RANKS = re.compile(r"\s*[>,]\s*")


class Judged(NamedTuple):
    """An error that a judge has found: words, category, severity."""

    span: str
    category: str
    severity: str

    @property
    def penalty(self) -> float:
        """Its penalty, of MQM."""
        if self.severity == "minor" and "punctuation" in self.category:
            return MINOR_PUNCTUATION
        return PENALTIES[self.severity]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of question.

    shows: candidates of a question, `one`, `two` or `all`; read: values of those in an answer, of
    so many that are shown, None if it cannot be read; tokens: most of an answer, and written: about
    how many it has; answers: the possible ones and their values, of which an expected value can be
    taken; schema: of a JSON answer, given how many are shown.
    """

    name: str
    shows: str
    read: Callable[[str, int], list[float] | None]
    tokens: int
    written: float = 4.0
    answers: Mapping[str, float] = field(default_factory=dict)
    schema: Callable[[int], dict[str, object]] | None = None

    def groups(self, distinct: Sequence[str], rng: np.random.Generator) -> list[list[str]]:
        """The texts that each question about distinct ones shows, in their order.

        One alone is not compared.
        """
        if self.shows == "one":
            return [[text] for text in distinct]
        if self.shows == "two":
            return [list(pair) for pair in permutations(distinct, 2)]
        order = rng.permutation(len(distinct)).tolist()
        return [[distinct[i] for i in order]] if len(order) > 1 else []


def labels(n: int) -> list[str]:
    """Labels of n candidates that a question shows."""
    return [chr(65 + i) for i in range(n)] if n <= 26 else [str(i + 1) for i in range(n)]


def shares(value: float, n: int) -> list[float]:
    """Values of the n candidates that are shown, a pair or one, by that of the first."""
    return [value, 1.0 - value] if n == 2 else [value]


def _bare(text: str) -> str:
    """An answer without thoughts before it and white space around it."""
    return _THOUGHT.sub("", text, count=1).strip()


def _rating(text: str, n: int) -> list[float] | None:
    """The number that an answer is."""
    found = _NUMBER.fullmatch(_bare(text))
    return [float(found[1])] if found and float(found[1]) <= 100 else None


def _letter(values: Mapping[str, float]) -> Callable[[str, int], list[float] | None]:
    """Reads the letter that an answer is; of a pair the value of the other one, too."""

    def read(text: str, n: int) -> list[float] | None:
        found = _LETTER.fullmatch(_bare(text))
        value = values.get(found[1].upper()) if found else None
        return None if value is None else shares(value, n)

    return read


def _json(text: str) -> Any:
    """The JSON that an answer is, perhaps in a fence; errors of `_NO_JSON` for another answer."""
    bare = _bare(text)
    fenced = _FENCED.fullmatch(bare)
    return json.loads(fenced[1] if fenced else bare)


def errors_of(text: str) -> list[Judged] | None:
    """The errors in an answer of the form `errors`; None if it cannot be read."""
    try:
        listed = _json(text)["errors"]
        if not isinstance(listed, list) or len(listed) > _MOST_ERRORS:
            return None
        named = "category", "severity"
        errors = [
            Judged(str(error["span"] or ""), *(str(error[key]).strip().lower() for key in named))
            for error in listed
        ]
    except _NO_JSON:
        return None
    return errors if all(error.severity in PENALTIES for error in errors) else None


def _penalty(text: str, n: int) -> list[float] | None:
    errors = errors_of(text)
    return None if errors is None else [-sum(error.penalty for error in errors) or 0.0]


def _ranking(text: str, n: int) -> list[float] | None:
    """Shares of the others that each of n candidates is before."""
    bare = _bare(text)
    try:
        listed = _json(bare) if bare[:1] in "[{`" else _RANKS.split(bare)
        listed = listed["ranking"] if isinstance(listed, dict) else listed
    except _NO_JSON:
        return None
    if not (isinstance(listed, list) and len(listed) == n):
        return None
    ranks = {str(x).removeprefix("Translation "): rank for rank, x in enumerate(listed)}
    if ranks.keys() != {*labels(n)}:
        return None
    return [1.0 - ranks[label] / max(1, n - 1) for label in labels(n)]


def _strict(**properties: object) -> dict[str, object]:
    """The schema of an object with these keys and no others."""
    keys = {"properties": properties, "required": [*properties]}
    return {"type": "object", **keys, "additionalProperties": False}


def _errors_schema(n: int) -> dict[str, object]:
    text = {"type": "string"}
    severity = {"type": "string", "enum": [*PENALTIES]}
    error = _strict(span=text, category=text, severity=severity)
    return _strict(errors={"type": "array", "items": error})


def _ranking_schema(n: int) -> dict[str, object]:
    label = {"type": "string", "enum": labels(n)}
    return _strict(ranking={"type": "array", "items": label})


_GRADES = {letter: 25.0 * (4 - i) for i, letter in enumerate("ABCDE")}
_PAIR = {"A": 1.0, "B": 0.0}
FORMS = {
    form.name: form
    for form in (
        Form("rating", "one", _rating, 16, answers={str(n): float(n) for n in range(101)}),
        Form("grade", "one", _letter(_GRADES), 16, answers=_GRADES),
        Form("errors", "one", _penalty, 1024, 120.0, schema=_errors_schema),
        Form("ranking", "all", _ranking, 1024, 40.0, schema=_ranking_schema),
        Form("pair", "two", _letter(_PAIR), 16, answers=_PAIR),
    )
}


def aggregated(values: Array, mean: str) -> Array:
    """Values (K,) of several passes (P, K), of which some may be NaN; NaN where all are."""
    if len(values) == 1:
        return np.array(values[0])
    known = np.ma.masked_invalid(values)
    if mean == "trimmed":
        far = abs(known - known.mean(axis=0)) > 2 * known.std(axis=0)
        known = np.ma.masked_where(np.ma.filled(far, fill_value=False), known)
    if mean == "ranks":
        ordered = np.ma.masked_invalid(-np.sort(-values, axis=0))  # NaN comes last
        weights = 1.0 / np.arange(1, len(values) + 1)
        means = np.ma.average(ordered, axis=0, weights=weights)
    else:
        means = known.mean(axis=0)
    return np.ma.filled(means.astype(float), np.nan)
