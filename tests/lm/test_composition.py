"""Compositions, the tables of their parts, and families of models that are read off a name."""

from functools import partial

import pytest

from lm.composition import (
    ENCODERS,
    FUSIONS,
    HEADS,
    RECURRENCES,
    RELATION_CLASSIFIERS,
    TOPIC_MODELS,
    Composition,
    LastSentences,
    fact,
    load,
)
from lm.contexts.bag import BagOfWords
from lm.model import Config, DocumentLM
from lm.recurrences import LSTM
from lm.zoo import ZOO

TABLES = (RECURRENCES, ENCODERS, RELATION_CLASSIFIERS, FUSIONS, HEADS, TOPIC_MODELS)


@pytest.mark.parametrize("part", [part for table in TABLES for part in table.values()])
def test_every_address_of_a_part_leads_to_its_maker(part: str) -> None:
    assert callable(load(part))


@pytest.mark.parametrize("name", sorted(ZOO))
def test_every_published_composition_names_parts_that_there_are(name: str) -> None:
    composition = ZOO[name]
    parts = (composition.context, composition.fusion, composition.head)
    assert all(callable(load(part)) for part in parts)
    own = composition.recurrence
    assert own is None or callable(load(own))


def test_facts_are_those_of_the_maker_beneath_its_arguments() -> None:
    assert fact(partial(BagOfWords, sentences=2), "options") == BagOfWords.options
    bags = load(LastSentences("lm.contexts.bag:BagOfWords", 3))
    assert (bags.func, bags.keywords) == (BagOfWords, {"sentences": 3})


def test_a_composition_changes_what_it_leaves_no_choice_of() -> None:
    values = {"embed": 4, "hidden": 6, "recurrence": "gru", "tied": False}
    assert Composition("", "", "", "").adapted(values) == values
    one_size = Composition("", "", "", "", one_size=True, tied=True, shape=(LSTM, 1))
    assert one_size.adapted(values) == {"embed": 6, "hidden": 6, "recurrence": None, "tied": None}


def test_a_name_of_a_family_ends_in_its_number_of_sentences() -> None:
    for number in (1, 4, 100):
        found = ZOO[f"rlm-bow-lf-{number}"]
        assert found.context == LastSentences("lm.contexts.bag:WordFrequencies", number)
        assert DocumentLM(Config(f"rlm-bow-lf-{number}", 9, 3, 4)).order == found.order == number


@pytest.mark.parametrize(
    "end", ["0", "04", "101", "-1", "1.0", "\N{FULLWIDTH DIGIT FOUR}", "N", ""]
)
def test_other_names_are_of_no_family(end: str) -> None:
    name = f"rlm-bow-lf-{end}"
    assert name not in ZOO
    with pytest.raises(KeyError, match="rlm-bow-lf"):
        ZOO[name]


def test_families_are_not_among_the_names_of_the_table() -> None:
    assert not {*ZOO} & {*ZOO.families, "rlm-bow-lf-4"}
    assert len(ZOO) == len([*ZOO])
