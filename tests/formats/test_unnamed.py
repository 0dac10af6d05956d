"""Weights with a place instead of a name, as Moses' tuners write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.labels import Label
from rerank.errors import InputError
from rerank.formats.weights import Weights, by_place, vector, weights_from_lines
from rerank.notices import Notices

LABELS = (Label("LM0", 1), Label("TM0", 2))


def weights(text: str) -> Weights:
    return weights_from_lines(text.encode().splitlines(), Notices())


@given(st.lists(st.integers(1, 3), min_size=1, max_size=12))
def test_the_i_th_value_gets_the_i_th_weight(widths: list[int]) -> None:
    labels = [Label(f"L{i}x", width) for i, width in enumerate(widths)]
    dense = {f"F{i}": (float(i + 1),) for i in reversed(range(sum(widths)))}
    found = vector(Weights(by_place(dense, labels)), labels)
    assert found.tolist() == list(range(1, sum(widths) + 1))
    assert vector(Weights(dense), labels).tolist() == found.tolist()


@pytest.mark.parametrize(
    "text",
    ["F0 0.5\nF1 -1\nF2 2\nt_a 3\n", "0.5 -1 2 \nt_a= 3\n", "F1= -1\nF2= 2\nF0= 0.5\nt_a= 3\n"],
    ids=["kbmira", "weights.txt", "run.dense"],
)
def test_weights_without_names_get_those_of_the_features(text: str) -> None:
    found = weights(text)
    assert by_place(found.dense, LABELS) == {"LM0": (0.5,), "TM0": (-1.0, 2.0)}
    assert found.sparse == {"t_a": 3.0}


@pytest.mark.parametrize(
    ("labels", "pairs"),
    [
        ((Label("LM0", 1),), "F0 → LM0"),
        (LABELS, "F0 → LM0, F1 → TM0_0, F2 → TM0_1"),
        ((Label("TM0", 7),), "F0 → TM0_0, F1 → TM0_1, F2 → TM0_2, F3 → TM0_3, F4 → TM0_4, …"),
    ],
)
def test_a_notice_says_which_feature_gets_which_weight(
    labels: tuple[Label, ...], pairs: str
) -> None:
    notices = Notices()
    width = sum(label.width for label in labels)
    found = Weights({f"F{i}": (1.0,) for i in range(width)})
    vector(found, labels, notices=notices, source="w.json")
    expected = f"1 x weights without names, applied by place: {pairs}, first at w.json"
    assert notices.lines() == [expected]


def test_weights_with_names_stay_as_they_are() -> None:
    labels = {"TM0": (1.0, 2.0)}
    assert by_place(labels, LABELS) is labels
    with_others = {"F0": (1.0,), "LM0": (1.0,)}
    assert by_place(with_others, LABELS) is with_others
    without = {"F0": (1.0,)}
    assert by_place(without, (Label("F0", 1), Label("F1", 1))) is without
    nothing: dict[str, tuple[float, ...]] = {}
    assert by_place(nothing, LABELS) is nothing
    assert by_place(without, ()) is without


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("1 2", 2),
        ("1 2 3 4", 4),
        ("F0 1\nF1 2\nF3 3", 3),
        ("1 2 3\n0 0 0\n1 1 -1", 9),
    ],
)
def test_another_number_of_weights_is_refused(text: str, n: int) -> None:
    message = f"w.txt: expected 3 weights without names, F0 to F2, .* of LM0 TM0, found {n}"
    with pytest.raises(InputError, match=message):
        by_place(weights(text).dense, LABELS, source="w.txt")
