"""What `rerank list decoders` says is what the table of decoders says."""

import inspect
import json

import pytest

from decoders.table import ANY, DECODERS, FINITE, NONE, Decoder
from rerank.files.outputs import to_json
from rerank.pipeline.listing import flags, list_decoders
from rerank.pipeline.searching import FLAGS

every_decoder = pytest.mark.parametrize("row", DECODERS.values(), ids=DECODERS)


def told() -> dict[str, dict[str, object]]:
    """Rows of the JSON by name."""
    content = json.loads(to_json(list_decoders().to_dict()))
    assert content["schema"] == 1
    return {row["name"]: row for row in content["decoders"]}


def test_all_decoders_are_listed_in_their_order() -> None:
    assert list(told()) == list(DECODERS)


@every_decoder
def test_the_options_listed_are_those_that_the_decoder_takes(row: Decoder) -> None:
    taken = {FLAGS[name] for name in FLAGS if row.takes(name)}
    taken |= {"--n-best"} if row.takes("n_best") else set()
    assert len(flags(row)) == len(set(flags(row)))
    assert set(flags(row)) == taken
    assert told()[row.name]["options"] == flags(row)


@every_decoder
def test_every_option_listed_is_an_argument_of_the_function(row: Decoder) -> None:
    """Or stands for random numbers, as a seed does."""
    arguments = set(inspect.signature(row.load()).parameters)
    assert {FLAGS[name] for name in arguments & FLAGS.keys()} <= set(flags(row))
    assert ("rng" in arguments) == ("--seed" in flags(row))


@every_decoder
def test_orders_are_those_that_are_served_and_those_of_exact_search(row: Decoder) -> None:
    words = {ANY: "any", FINITE: "finite", NONE: "none", 0: "0", 1: "up to 1"}
    found = told()[row.name]
    assert found["orders"] == words[row.highest_order]
    assert found["exact on"] == words[row.exact_to]
    assert (found["cost"], found["source"]) == (row.cost, row.source)


def test_the_table_for_people_holds_the_same_words() -> None:
    text = list_decoders().to_text()
    words = set(text.split())
    for row in DECODERS.values():
        assert row.name in words
        assert set(flags(row)) <= words
        assert set(row.source.split()) <= words
    assert max(map(len, text.splitlines())) <= 160


def test_a_table_of_other_decoders_is_listed_too() -> None:
    own = Decoder("mine", "m:f", ANY, NONE, "O(1)", "nowhere")
    listed = list_decoders({"mine": own})
    assert listed.rows == (own,)
    assert "mine" in listed.to_text()
