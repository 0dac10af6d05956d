"""What `rerank list` shows is what the tables hold, and what other packages bring."""

import inspect
from dataclasses import asdict, replace
from importlib.metadata import EntryPoint

import pytest

from decoders.table import ANY, DECODERS, FINITE, NONE, Decoder
from lm.composition import HEADS, load
from lm.model import Config, DocumentLM, n_parameters
from lm.side_information import information_of
from lm.training.recipes import STRONG
from lm.zoo import ZOO
from rerank.cli import cli
from rerank.listing import KINDS, Sizes, flags, listing, model_listing
from rerank.registry import DOCUMENT_FORMATS, FLAGS, FORMATS, METRICS, MODELS, SCORE_FILES, SCORERS

LIN = ("rnnslm", "rnnlm-lin", "hrnnlm-lin", "hrnnlm-lin-dual")  # which have sizes of their own
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
        ("models", [*ZOO, *ZOO.families]),
        ("scorers", ["lm", *SCORE_FILES, *SCORERS.builtin]),
        ("metrics", [*METRICS.builtin]),
        ("formats", [*FORMATS.builtin]),
        ("document-formats", [*DOCUMENT_FORMATS.builtin]),
    ],
)
def test_built_in_members_are_listed_in_their_order(kind: str, names: list[str]) -> None:
    assert [row["name"] for row in listing(kind).rows] == names
    assert all(row["package"] is None for row in listing(kind).rows)


def test_the_heads_to_choose_from_are_those_of_the_table_and_the_models_name_theirs() -> None:
    own = {row["name"]: row for row in listing("models").rows}
    assert own["adclm"]["fusion"] == "InputMerge (others: train-lm --fusion)"
    assert own["adclm"]["head"] == "unbiased_softmax (others: train-lm --head)"
    (option,) = (p for p in cli.commands["train-lm"].params if p.name == "head")
    assert list(option.type.choices) == list(HEADS)  # type: ignore[attr-defined]
    assert own["codclm"]["head"] == "softmax (others: train-lm --head)"
    assert own["rnnlm-lin"]["head"] == "LinSoftmax (others: train-lm --head)"
    assert (own["rnnslm"]["head"], own["rnnslm"]["fusion"]) == ("HashedBagSoftmax", "Output")


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


def test_the_exact_decoders_of_a_model_are_those_of_its_order() -> None:
    names = {row["name"]: row["exact decoders"] for row in listing("models").rows}
    for name, model in ZOO.items():
        exact = [row.name for row in DECODERS.values() if row.exact(model.order)]
        assert names[name] == (exact if model.causal else [])


def test_a_model_that_is_given_the_next_sentence_is_listed_with_its_search() -> None:
    orders = {row["name"]: row["order"] for row in listing("models").rows}
    assert orders["dclm"] == "unbounded"
    assert orders["dclm-right-target"] == "unbounded, given the next sentence, too: sweeps"


@pytest.mark.parametrize(
    "sizes",
    [Sizes(7, 9, 2, "cifg", tied=False, vocabulary=20), Sizes(8, 5, vocabulary=11)],
    ids=["untied", "tied"],
)
def test_numbers_of_parameters_are_those_of_models_that_are_made(sizes: Sizes) -> None:
    for row in model_listing(sizes).rows:
        if row["name"] in ZOO.families:
            continue
        name, given = str(row["name"]), asdict(sizes)
        shape = ZOO[name].adapted(given) | {"vocabulary": sizes.vocabulary + 3}
        needed = information_of(load(ZOO[name].context))
        if "source" in needed:
            shape |= {"source_words": sizes.vocabulary + 3}
        if "relations" in needed:
            shape |= {"relation_labels": 8 + 3}
        if "topics" in needed:
            shape |= {"topic_labels": 8 + 3}
        model = DocumentLM.without_memory(Config(name, **shape))
        assert row["number of parameters"] == n_parameters(model)
        assert bool(row["counted with"]) == (name in LIN or needed != ())
        assert (row["sizes"] == given) == (name not in LIN)


def test_where_a_model_has_sizes_of_its_own_they_are_told() -> None:
    text = model_listing(Sizes(vocabulary=20)).to_text()
    of_lin = text[text.index("\nrnnslm\n") :]
    assert "counted with          embed 256, recurrence its own, tied its own\n" in of_lin
    assert "counted with" not in text[: text.index("\nrnnslm\n")]


def test_the_sizes_are_those_of_training_if_not_given() -> None:
    for name in Sizes.__dataclass_fields__:
        assert getattr(Sizes(), name) == STRONG[name]
    note = model_listing(Sizes(layers=2)).note
    assert note.startswith("number of parameters: with embed 128, hidden 256, 2 lstm layers, tied")


def test_parameters_are_counted_without_memory() -> None:
    """2³⁰ words of 2¹⁶ numbers: 256 TiB."""
    found = [
        row
        for row in model_listing(Sizes(embed=1 << 16, vocabulary=1 << 30)).rows
        if row["name"] not in (*ZOO.families, *LIN)
    ]
    assert all(int(str(row["number of parameters"])) > 1 << 46 for row in found)


def test_a_family_and_a_model_without_such_sizes_are_listed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def square(embedding: object, *given: object) -> object:
        raise ValueError("--embed and --hidden must be equal")

    class Table(dict[str, object]):
        def __contains__(self, name: object) -> bool:
            return super().__contains__(name) and name != "bag-N"

    table = Table(ZOO)
    table["bag-N"] = replace(ZOO["codclm"], order="N")  # type: ignore[arg-type]
    table["square"] = replace(ZOO["codclm"], context=square)
    monkeypatch.setattr(MODELS, "_table", table)
    rows = {row["name"]: row for row in model_listing(Sizes(4, 4, vocabulary=9)).rows}
    assert (rows["bag-N"]["order"], rows["bag-N"]["exact decoders"]) == (
        *("N", [row.name for row in DECODERS.values() if row.exact(1000)]),
    )
    assert "no model 'bag-N'" in str(rows["bag-N"]["not counted"])
    assert rows["square"]["not counted"] == "--embed and --hidden must be equal"
    assert rows["square"]["number of parameters"] is None
    assert rows["codclm"]["number of parameters"]


def test_models_of_other_packages_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "no.such.module:Mine", "rerank.models")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    *_, last = model_listing(Sizes(4, 4, vocabulary=9)).rows
    assert last == {"name": "mine", "package": "(unknown)", "address": "no.such.module:Mine"}
