"""Weights under the names that a list's features have."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.labels import Label, decoder_names
from rerank.errors import InputError
from rerank.formats.weight_formats import to_bytes
from rerank.formats.weight_names import fitted
from rerank.formats.weights import Weights, fitted_to, vector, weights_from_lines
from rerank.notices import Notices
from rerank.registry import WEIGHT_FORMATS

numbers = st.floats(-1e6, 1e6)
dense = st.dictionaries(
    st.from_regex(r"[A-E][A-Za-z]{0,6}[0-9]?", fullmatch=True),
    st.lists(numbers, min_size=1, max_size=3).map(tuple),
    min_size=1,
    max_size=4,
)
sparse = st.dictionaries(st.from_regex(r"[a-z]{1,4}_[a-zé]{1,4}", fullmatch=True), numbers)


def read(content: bytes) -> Weights:
    return weights_from_lines(content.split(b"\n"), Notices())


@given(dense, sparse)
def test_what_is_written_has_the_same_weights_for_a_list(
    dense: dict[str, tuple[float, ...]], sparse: dict[str, float]
) -> None:
    labels = [Label(name, len(values)) for name, values in dense.items()]
    expected = vector(Weights(dense), labels)
    for name in WEIGHT_FORMATS.builtin:
        found = read(to_bytes(Weights(dense, sparse), name, Notices()))
        np.testing.assert_array_equal(vector(found, labels), expected, err_msg=name)
        assert fitted_to(found, labels).sparse == sparse, name


@given(dense, st.data())
def test_names_of_the_decoder_fit_the_list_that_has_them(
    dense: dict[str, tuple[float, ...]], data: st.DataObject
) -> None:
    renamed = data.draw(st.sets(st.sampled_from(sorted(dense))))
    labels = [
        Label(name, len(values), f"{name[0]}_{name[1:]}_" if name in renamed else "")
        for name, values in dense.items()
    ]
    given_weights = Weights(dense, decoder_names=decoder_names(labels))
    for name in ("cdec", "travatar"):
        content = to_bytes(given_weights, name, Notices())
        own = {label.decoder_name for label in labels if label.width == 1} - {""}
        assert own <= set(re.split(r"[ =\n]", content.decode()))
        found = fitted_to(read(content), labels)
        assert (found.dense, found.sparse) == (dense, {})
        assert found.decoder_names == given_weights.decoder_names


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        ("PhraseModel_0 1\nPhraseModel_1 2\nGlue 3\n", ("PhraseModel0", "PhraseModel1", "Glue"), 3),
        ("tm_pt_0 1\nlm_0 = 2\nWordPenalty 3\n", ("tmpt0", "lm0", "WordPenalty"), 3),
        ("egfp=1 lm_1=2 0x=3\n", ("egfp", "lm1", "F0x"), 3),
        ("TM0_0 1\nTM0_1 2\n", ("TM00", "TM01"), 2),
        ("TM0= 1 2\n", ("TM00", "TM01"), 2),
        ("LM-a= 1\n", ("LMa",), 1),
        ("LM0_0 1\n", ("LM0",), 1),
    ],
    ids=["cdec", "joshua", "travatar", "columns", "dense", "hyphen", "mert"],
)
def test_names_of_other_tools_fit_the_names_that_their_lists_are_read_with(
    text: str, names: tuple[str, ...], values: int
) -> None:
    labels = [Label(name, 1) for name in names]
    assert vector(read(text.encode()), labels).tolist() == list(range(1, values + 1))


def test_a_renamed_weight_is_a_notice() -> None:
    notices = Notices()
    vector(Weights({}, {"tm_pt_0": 1.0}), [Label("tmpt0", 1)], notices=notices, source="w")
    assert notices.lines() == [
        "1 x weight of a feature that the list has in letters and digits: tm_pt_0 → tmpt0, "
        "first at w"
    ]


def test_a_weight_under_its_own_name_comes_first() -> None:
    found = fitted({"tmpt0": (1.0,)}, {"tm_pt_0": 2.0}, [Label("tmpt0", 1)])
    assert (found.dense, found.sparse) == ({"tmpt0": (1.0,)}, {"tm_pt_0": 2.0})


def test_two_names_of_equal_letters_are_not_chosen_between_unless_one_is_that_of_the_list() -> None:
    weights = {"tm_0": 2.0, "t_m0": 1.0}
    assert fitted({}, weights, [Label("tm0", 1)]).dense == {}
    found = fitted({}, weights, [Label("tm0", 1, "t_m0")])
    assert (found.dense, found.sparse) == ({"tm0": (1.0,)}, {"tm_0": 2.0})


def test_some_values_of_a_feature_are_refused() -> None:
    with pytest.raises(InputError) as fault:
        vector(Weights({}, {"TM0_1": 2.0}), [Label("TM0", 2)], default=0, source="w")
    assert str(fault.value) == (
        "w: expected weights of all 2 values of 'TM0', found TM0_1 and no TM0_0"
    )


def test_the_list_of_another_tool_may_lack_features_that_are_always_0() -> None:
    notices = Notices()
    weights = Weights({"PassThrough": (1.0,)}, {"tm_pt_0": 1.0})
    assert vector(weights, [Label("tmpt0", 1)], notices=notices).tolist() == [1]
    assert any("PassThrough" in line for line in notices.lines())
    with pytest.raises(InputError, match="found one of 'PassThrough'"):
        vector(weights, [Label("tmpt0", 1), Label("LM0", 1)][1:], default=0)
