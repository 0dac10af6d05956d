"""What `rerank list` shows is what the tables hold, and what other packages bring."""

import inspect
from importlib.metadata import EntryPoint

import pytest

from decoders.table import ANY, DECODERS, FINITE, NONE, Decoder
from lm.zoo import HEADS, ZOO
from rerank.cli import cli
from rerank.listing import KINDS, flags, listing
from rerank.registry import FLAGS, FORMATS, METRICS, SCORE_FILES

every_decoder = pytest.mark.parametrize("row", DECODERS.values(), ids=DECODERS)


def told() -> dict[object, dict[str, object]]:
    """Rows of the decoders by name."""
    return {row["name"]: row for row in listing("decoders").rows}


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


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_text_for_people_holds_the_same_words_within_its_width(width: int) -> None:
    text = listing("decoders").to_text(width)
    words = set(text.split())
    for row in DECODERS.values():
        assert row.name in words
        assert set(flags(row)) <= words
        assert set(row.source.split()) <= words
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("models", [*ZOO]),
        ("scorers", ["lm", *SCORE_FILES]),
        ("metrics", [*METRICS.builtin]),
        ("formats", [*FORMATS.builtin]),
    ],
)
def test_built_in_members_are_listed_in_their_order(kind: str, names: list[str]) -> None:
    assert [row["name"] for row in listing(kind).rows] == names
    assert all(row["package"] is None for row in listing(kind).rows)


def test_the_heads_to_choose_from_are_those_of_the_table_and_the_models_name_theirs() -> None:
    (option,) = (p for p in cli.commands["train-lm"].params if p.name == "head")
    assert list(option.type.choices) == list(HEADS)  # type: ignore[attr-defined]
    heads = {row["name"]: row["head"] for row in listing("models").rows}
    assert heads["codclm"] == "softmax (others: train-lm --head)"
    assert heads["rnnlm-lin"] == "LinSoftmax (others: train-lm --head)"
    assert heads["rnnslm"] == "HashedBagSoftmax"


@pytest.mark.parametrize("kind", KINDS)
def test_members_of_other_packages_are_listed_but_not_loaded(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def points(group: str) -> list[EntryPoint]:
        return [EntryPoint("mine", "no.such.module:Mine", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", points)
    *_, last = listing(kind).rows
    assert last == {"name": "mine", "package": "(unknown)", "address": "no.such.module:Mine"}
    assert "no.such.module:Mine" in listing(kind).to_text()


def test_a_name_that_is_built_in_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("chrf", "no.such.module:Chrf", "rerank.metrics")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    found = listing("metrics")
    assert [row["name"] for row in found.rows].count("chrf") == 1
    assert found.warnings == ("metric 'chrf' of package (unknown) ignored: the name is built in",)
