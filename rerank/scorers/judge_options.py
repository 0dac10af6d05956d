"""What a judge is asked, and how: the keys behind `judge:MODEL`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import click

from rerank.registry import ESTIMATORS, JUDGE
from rerank.values import (
    SEED,
    TEXT,
    FileName,
    Key,
    Pair,
    ParsedType,
    Real,
    Whole,
    key_field,
    key_table,
    split,
)

FORMS = ("rating", "grade", "errors", "ranking", "pair")
OF_ONE = ("rating", "grade", "errors")  # forms of questions about one candidate
# weights beside agreement, in chrF of 0 to 100, by recipes/studies/judges
PRESETS = {"rating": 2.0, "grade": 2.0, "errors": 4.0, "ranking": 60.0, "pair": 60.0}
LANGUAGES = ("source_language", "target_language")
VARIABLES = (
    *("form", "source", "sources_before", "sources_after", "candidates_before", "reference"),
    *("candidate", "candidates", *LANGUAGES),
)
_FEWEST = {"trimmed": 6, "ranks": 2}  # of fewer, none is two standard deviations from the mean
_SENTENCES = Whole(0, 1000)


class Price(ParsedType):
    """IN/OUT: the price of a million tokens that a model reads, and of those that it writes."""

    name = "price"

    def parsed(self, value: str) -> tuple[float, float]:
        """Both prices."""
        number = Real(0, 1e6)
        parts = [number.convert(part, None, None) for part in value.split("/")]
        if len(parts) != 2:
            raise ValueError(f"expected IN/OUT, as 0.15/0.60, found {value!r:.40}")
        return parts[0], parts[1]


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """What a judge is asked, and how."""

    model: str = key_field(TEXT, "name of the server's model", "")
    form: str = key_field(
        click.Choice(FORMS),
        "what is asked: a number from 0 to 100, a letter from A to E, the errors, an order of "
        "all candidates, the better one of two [default: rating]",
        "rating",
    )
    source: bool = key_field(click.BOOL, "whether questions have the source [default: yes]", True)
    source_before: int = key_field(_SENTENCES, "source sentences before that are shown", 0)
    source_after: int = key_field(_SENTENCES, "source sentences after that are shown", 0)
    before: int = key_field(_SENTENCES, "choices before that are shown, on which scores depend", 0)
    window: int = key_field(
        Whole(1, 1000), "sentences of a passage, which is judged as one text, as of SLIDE", 0
    )
    stride: int = key_field(Whole(1, 1000), "sentences from passage to passage [default: 1]", 1)
    reference: bool = key_field(
        click.BOOL, "of metrics: whether questions have the reference [default: no]", False
    )
    prompt: str = key_field(
        FileName(), f"file with the question, a template of Jinja with {', '.join(VARIABLES)}", ""
    )
    source_language: str = key_field(TEXT, "name of the source language", "")
    target_language: str = key_field(TEXT, "name of the target language", "")
    passes: int = key_field(Whole(1, 1000), "how often each question is asked [default: 1]", 1)
    temperature: float | None = key_field(
        Real(0, 10), "at which answers are drawn [default: 0, of several passes 1]"
    )
    mean: str = key_field(
        click.Choice(["mean", "trimmed", "ranks"]),
        "of several passes: of all, of those within two standard deviations, or with weights 1, "
        "1/2, 1/3 … from the mildest on",
        "mean",
    )
    seed: int = key_field(SEED, "of the order in which candidates are shown [default: 1]", 1)
    top: int | None = key_field(
        Whole(2),
        "ask only about so many texts of a sentence, the best ones by the list's totals or, "
        "without these, by agreement; the others have the lowest judgement of these",
    )
    margin: float | None = key_field(
        Real(0, 1e9, above=True),
        "ask about no sentence whose best candidate is better than the second by so much",
    )
    price: tuple[float, float] | None = key_field(
        Price(), "IN/OUT, of a million tokens that are read, and written, as 0.15/0.60"
    )
    budget: float | None = key_field(
        Real(0, 1e9, above=True), "sum, at the price, after which a run ends"
    )
    parallel: int = key_field(Whole(1, 1024), "questions at once [default: 8]", 8)
    timeout: float = key_field(
        Real(0, 1e5, above=True), "most seconds of an answer [default: 120]", 120.0
    )
    retries: int = key_field(Whole(0, 100), "tries after the first one [default: 4]", 4)
    tokens: int | None = key_field(Whole(1, 1_000_000), "most tokens of an answer")
    schema: bool = key_field(
        click.BOOL, "whether a server is sent the JSON schema of the answer [default: yes]", True
    )
    request: str = key_field(
        FileName(), "JSON file with further entries of requests; null leaves an entry out", ""
    )
    key_env: str = key_field(
        TEXT, "variable of the environment that has the key, else OPENAI_API_KEY", ""
    )
    insecure: bool = key_field(
        click.BOOL, "whether the key may be sent over http to another machine", False
    )

    @property
    def order(self) -> int:
        """Number of earlier choices that a judgement depends on."""
        return max(self.before, self.window - 1)

    def check(self, *, server: bool) -> None:
        """ValueError for keys that do not fit together."""
        if server and not self.model:
            raise ValueError("expected ,model=NAME behind the URL")
        if self.budget is not None and self.price is None:
            raise ValueError("budget= needs price=IN/OUT, of a million tokens")
        if self.window and (self.before or self.form not in OF_ONE):
            raise ValueError("window= is for rating, grade and errors, and without before=")
        if self.window and self.margin is not None:
            raise ValueError("margin= leaves out sentences, of which passages are made")
        if self.mean != "mean" and self.passes < (fewest := _FEWEST[self.mean]):
            raise ValueError(f"mean={self.mean} is for passes={fewest} and more")
        if self.stride > 1 and not self.window:
            raise ValueError("stride= is for passages; add window=N")
        drawn = server and self.temperature != 0
        if self.passes > 1 and not drawn and self.form != "ranking":
            cure = ", or give a temperature" if server else ""
            raise ValueError(f"several passes have equal answers here; leave passes= out{cure}")


KEYS = key_table(JudgeSettings)
NOT_ASKED = {"price", "budget", "parallel", "timeout", "retries", "key_env", "insecure"}
NOT_ASKED |= {"tokens", "prompt"}  # of prompts the text counts
OF_SCORERS = {key: KEYS[key] for key in KEYS if key != "reference"}
_OF_LISTS = {"before", "window", "stride", "top", "margin", "source-before", "source-after"}
OF_METRICS = {key: KEYS[key] for key in KEYS if key not in _OF_LISTS}
OF_METRICS["form"] = Key("form", click.Choice(OF_ONE), "what is asked [default: rating]")
OF_UTILITIES = {key: OF_METRICS[key] for key in OF_METRICS if key != "reference"}
OF_SERVERS = {"model", "temperature", "schema", "parallel", "timeout", "retries", "key-env"}
OF_SERVERS |= {"insecure", "request", "price", "budget"}


def preset_of(entry: str) -> float | None:
    """The weight of `judge:MODEL` beside agreement; None for another scorer."""
    kind, _, argument = entry.partition(":")
    form = split(argument, KEYS)[1].get("form", "rating") if kind == JUDGE else ""
    return PRESETS.get(form, 1.0) if form else None


class ScorerValue(Pair):
    """NAME=ENTRY[:ARGUMENT] of `--scorer` as a tuple."""

    sections: ClassVar = {"judge:MODEL": OF_SCORERS}

    def parsed(self, value: str) -> tuple[str, Any]:
        """The name and the value; ValueError for a value without a name, too."""
        if value.startswith(ESTIMATORS):
            raise ValueError(f"expected a name in front, as j={value}")
        return super().parsed(value)
