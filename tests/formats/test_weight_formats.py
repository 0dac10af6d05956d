"""Formats that weights are written in; reading them back is the truth, and golden files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.errors import UsageError
from rerank.formats.weight_formats import to_bytes
from rerank.formats.weights import Weights, weights_from_lines
from rerank.notices import Notices
from rerank.registry import WEIGHT_FORMATS

GIVEN = Weights({"LM0": (0.5,), "TM0": (0.25, -1.0)}, {"wt_a~b": 2.0})
GOLDEN = {
    "ini": "# alpha: null\n\n[weight]\nLM0= 0.5\nTM0= 0.25 -1\nwt_a~b= 2\n",
    "dense": "LM0= 0.5\nTM0= 0.25\nTM0= -1\nwt_a~b= 2\n",
    "kbmira": "F0 0.5\nF1 0.25\nF2 -1\nwt_a~b 2\n",
    "cdec": "LM0 0.5\nTM0_0 0.25\nTM0_1 -1\nwt_a~b 2\n",
    "travatar": "LM0=0.5 TM0_0=0.25 TM0_1=-1 wt_a~b=2\n",
}
numbers = st.floats(-1e6, 1e6)
dense = st.dictionaries(
    st.from_regex(r"[A-Z][A-Za-z]{0,6}[0-9]?", fullmatch=True),
    st.lists(numbers, min_size=1, max_size=3).map(tuple),
    min_size=1,
    max_size=4,
)
sparse = st.dictionaries(st.from_regex(r"[a-z]{1,4}_[a-z~é]{1,4}", fullmatch=True), numbers)


def read(content: bytes) -> Weights:
    return weights_from_lines(content.split(b"\n"), Notices())


@pytest.mark.parametrize("name", GOLDEN)
def test_a_format_is_written_as_its_tool_writes_it(name: str) -> None:
    assert to_bytes(GIVEN, name, Notices()).decode() == GOLDEN[name]


@given(dense, sparse)
def test_weights_read_back(dense: dict[str, tuple[float, ...]], sparse: dict[str, float]) -> None:
    given_weights = Weights(dense, sparse)
    for name in ("json", "ini", "dense"):
        found = read(to_bytes(given_weights, name, Notices()))
        assert (found.dense, found.sparse) == (dense, sparse)
    values = [value for values in dense.values() for value in values]
    found = read(to_bytes(given_weights, "kbmira", Notices()))
    assert list(found.dense.values()) == [(value,) for value in values]
    assert found.sparse == sparse
    single = {name: values[:1] for name, values in dense.items()}
    for name in ("cdec", "travatar"):
        found = read(to_bytes(Weights(single, sparse), name, Notices()))
        assert (found.dense, found.sparse) == (single, sparse)


@pytest.mark.parametrize("name", [name for name in WEIGHT_FORMATS.builtin if name != "json"])
@pytest.mark.parametrize("label", ["a b", "#x", "a\tb", ""])
def test_a_name_that_a_format_cannot_hold_is_refused(name: str, label: str) -> None:
    if name == "kbmira":
        given_weights = Weights({"LM0": (1.0,)}, {label: 1.0})
    else:
        given_weights = Weights({label: (1.0,)})
    with pytest.raises(UsageError, match=r"cannot hold the feature name|\.json"):
        to_bytes(given_weights, name, Notices())


@pytest.mark.parametrize("name", ["cdec", "travatar"])
@pytest.mark.parametrize(
    "given_weights",
    [
        Weights({"tmpt0": (1.0,)}, {"tm_pt_0": 2.0}, decoder_names={"tmpt0": "tm_pt_0"}),
        Weights({"tm": (1.0, 2.0)}, {"tm_0": 2.0}),
    ],
    ids=["name of the decoder", "value of a feature"],
)
def test_two_weights_of_one_name_are_refused(given_weights: Weights, name: str) -> None:
    with pytest.raises(UsageError, match=r"expected one weight of 'tm_.*0', found two features"):
        to_bytes(given_weights, name, Notices())


@pytest.mark.parametrize("name", WEIGHT_FORMATS.builtin)
def test_a_scale_that_is_lost_is_a_warning(name: str) -> None:
    notices = Notices()
    content = to_bytes(Weights({"LM0": (1.0,)}, alpha=0.5), name, notices)
    kept = read(content).alpha == 0.5
    assert kept is (notices.lines() == [])
    assert kept is WEIGHT_FORMATS[name].keeps_scales
