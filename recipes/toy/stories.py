"""Documents of our own making: notes from a small town, a few sentences each.

The first sentence of a note tells who, when and what. The others go on with a pronoun, a verb
in the same tense and the same word for the same thing. Which they are is a toss of a coin for
every note: a sentence by itself does not tell, the sentence before it does.

In templates `@he`, `@his`, `@him`, `@term` and verbs (`@buy`) are what a note decides; `%kin`
and the like are slots for any word of a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_VERBS = """
be is was, begin begins began, bring brings brought, buy buys bought, carry carries carried,
clean cleans cleaned, drive drives drove, fill fills filled, forget forgets forgot,
give gives gave, go goes went, have has had, help helps helped, keep keeps kept,
know knows knew, leave leaves left, like likes liked, make makes made, meet meets met,
need needs needed, paint paints painted, park parks parked, play plays played,
sell sells sold, share shares shared, show shows showed, sit sits sat, sleep sleeps slept,
speak speaks spoke, stand stands stood, stop stops stopped, sweep sweeps swept,
take takes took, talk talks talked, wait waits waited, walk walks walked,
wash washes washed, watch watches watched, work works worked, write writes wrote
"""
VERBS = {base: (present, past) for base, present, past in map(str.split, _VERBS.split(","))}
PRONOUNS = {"he": ("he", "she"), "his": ("his", "her"), "him": ("him", "her")}
NAMES = (
    ("adam", "carl", "david", "frank", "george", "henry", "jack", "martin", "oscar", "peter"),
    ("anna", "clara", "diana", "emma", "helen", "julia", "laura", "maria", "nora", "sophie"),
)
EITHER = ("alex", "kim", "robin", "sam")  # names that do not tell; the opening's `@his` does
ADVERBS = (
    ("every day", "most days", "on sundays", "in summer"),
    ("yesterday", "last week", "last night", "two days ago"),
)
SLOTS = {
    "kin": ("brother", "sister", "mother", "father", "uncle", "aunt", "cousin", "neighbour"),
    "place": ("market", "harbour", "station", "school", "bridge", "church", "library", "park"),
    "food": ("bread", "cheese", "fish", "apples", "honey", "soup", "rice", "tea"),
    "colour": ("red", "green", "blue", "white", "black", "yellow"),
    "quality": ("old", "heavy", "small", "cheap", "clean", "noisy"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of note: pairs of words for its thing, first sentences, and later ones."""

    pairs: tuple[tuple[str, str], ...]
    openings: tuple[str, ...]
    others: tuple[str, ...]


KINDS = (
    Kind(
        (("", ""),) * 3,  # about nothing but a person; as frequent as three things
        (
            "@name @go to the %place",
            "@name @work near the %place",
            "@name @wait in front of the %place",
            "@name @stand in the %place",
        ),
        (
            "@he @buy %food and %food for @his %kin .",
            "@he @meet @his %kin and @his %kin there .",
            "@he @speak about the weather with @his %kin .",
            "then @he @walk home with @his %kin .",
            "@he @be tired but @he @have time for @his %kin .",
            "after dinner @he @play cards with @his %kin .",
            "@his %kin @wait for @him at home .",
            "@he @write a long letter to @his %kin .",
        ),
    ),
    Kind(
        (("lorry", "truck"), ("taxi", "cab")),
        ("@name @drive a %colour @term to the %place", "@name @wash a %colour @term"),
        (
            "@he @park the @term behind the %place .",
            "@he @fill the @term with %food and %food .",
            "@his %kin @sleep in the @term .",
            "at noon @he @sit in the @term with @his %kin .",
            "the @term @be too %quality for @his %kin .",
            "@he @stop the @term because @he @need %food .",
        ),
    ),
    Kind(
        (("jumper", "sweater"), ("parcel", "package"), ("torch", "flashlight")),
        ("@name @carry a %colour @term to the %place", "@name @bring a %colour @term home"),
        (
            "@he @give the @term to @his %kin .",
            "@he @keep the @term in @his bag .",
            "@he @show the @term to @his %kin and @his %kin .",
            "@he @forget the @term in the %place .",
            "the @term @be too %quality for @his %kin .",
            "@his %kin @like the @term and @take it home .",
        ),
    ),
    Kind(
        (("flat", "apartment"), ("shop", "store"), ("garden", "yard")),
        ("@name @clean a small @term near the %place", "@name @paint a small @term"),
        (
            "@he @share the @term with @his %kin .",
            "@he @leave the @term and @walk to the %place .",
            "@he @sell %food and %food in the @term .",
            "@he @like the @term because it @be %quality .",
            "@his %kin @help @him in the @term .",
            "then @he @sweep the floor of the @term .",
        ),
    ),
    Kind(
        (("film", "movie"),),
        ("@name @watch a new @term in the %place", "@name @talk about a new @term"),
        (
            "@he @like the end of the @term .",
            "@he @know the @term but @his %kin @be curious .",
            "the @term @make @his %kin laugh .",
            "after the @term @he @walk home with @his %kin .",
        ),
    ),
)


class Dice:
    """Chance, made of uniform numbers alone: the same on every machine."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def below(self, n: int) -> int:
        """One of 0 … n − 1."""
        return int(self._rng.random() * n)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return bool(self._rng.random() < p)

    def draw(self, items: Sequence[T], n: int) -> list[T]:
        """N of the items, none twice, in random order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in range(n)]

    def noise(self) -> float:
        """A number between −1 and 1, mostly small (triangular)."""
        return float(self._rng.random() + self._rng.random() - 1.0)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a note decides, 0 or 1 each: he or she, present or past, which word for the thing."""

    gender: int
    tense: int
    term: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A word that depends on the reading."""

    by: str
    forms: tuple[str, str]

    def under(self, reading: Reading) -> str:
        """The form of this reading."""
        return self.forms[getattr(reading, self.by)]


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and choices, and the reading that is right here."""

    parts: tuple[str | Choice, ...]
    right: Reading

    def words(self, reading: Reading) -> tuple[str, ...]:
        """The words under a reading."""
        return tuple(part if isinstance(part, str) else part.under(reading) for part in self.parts)

    def varies_by(self, aspect: str) -> bool:
        """Whether the words depend on this aspect of the reading."""
        return any(isinstance(part, Choice) and part.by == aspect for part in self.parts)

    def settled(self, *aspects: str) -> Sentence:
        """The sentence with the choices of these aspects made."""
        parts = (
            part.under(self.right) if isinstance(part, Choice) and part.by in aspects else part
            for part in self.parts
        )
        return Sentence(tuple(parts), self.right)


def document(dice: Dice) -> list[Sentence]:
    """Eight notes: two on men in the present, two on men in the past, on women likewise.

    Every document has all of them, and no thing twice: torn from its note and put behind another
    sentence, a sentence tells nothing.
    """
    coins = dice.draw([(gender, tense) for gender in (0, 1) for tense in (0, 1)] * 2, 8)
    names = [dice.draw(each, len(coins)) for each in NAMES]
    things = dice.draw([(kind, pair) for kind in KINDS for pair in kind.pairs], len(coins))
    sentences: list[Sentence] = []
    for i, ((gender, tense), (kind, pair)) in enumerate(zip(coins, things, strict=True)):
        right = Reading(gender, tense, dice.below(2))
        either = dice.chance(0.2)
        name = dice.pick(EITHER) if either else names[gender][i]
        opening = f"{dice.pick(ADVERBS[tense])} {dice.pick(kind.openings)}"
        if either or dice.chance(0.3):
            opening += " with @his %kin"
        first = _filled(f"{opening} .", name, pair, right, dice)
        sentences.append(first.settled("gender", "term"))  # here the source tells both
        for template in dice.draw(kind.others, 1 + dice.below(3)):
            sentences.append(_filled(template, name, pair, right, dice))
    return sentences


def _filled(
    template: str, name: str, pair: tuple[str, str], right: Reading, dice: Dice
) -> Sentence:
    """A sentence made from a template."""
    fillers = {slot: dice.draw(words, 2) for slot, words in SLOTS.items()}
    parts: list[str | Choice] = []
    for token in template.split():
        mark, word = token[0], token[1:]
        if token == "@name":
            parts.append(name)
        elif token == "@term":
            parts.append(Choice("term", pair))
        elif mark == "@" and word in PRONOUNS:
            parts.append(Choice("gender", PRONOUNS[word]))
        elif mark == "@":
            parts.append(Choice("tense", VERBS[word]))
        else:
            parts.append(fillers[word].pop() if mark == "%" else token)
    return Sentence(tuple(parts), right)
