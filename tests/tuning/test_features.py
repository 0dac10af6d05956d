"""Which weights move: by name, from where, and within ranges that decoding never leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tuning import ALONE, PAIRED, tune

from rerank.corpus.labels import Label
from rerank.errors import InputError, UsageError
from rerank.formats.weights import Weights
from rerank.pipeline import Lists, MertSettings, Plan, Tuning
from rerank.scorers.features import FeatureSpace
from rerank.tuning.features import TunedFeatures

SPACE = FeatureSpace((Label("LM0", 1), Label("TM0", 2), Label("one", 1)), (), 4, False)
START = Weights({"LM0": (0.5,), "TM0": (0.25, -1.0), "one": (0.0,)}, {}, None, {})
QUICK = MertSettings(random_starts=2, kicks=1)
Ranges = Mapping[str, tuple[float, float]]


def features(
    ranges: Ranges | None = None, given: Weights | None = START, *names: str
) -> TunedFeatures:
    return TunedFeatures(names, given, "start.json", ranges or {})


# Columns and start


def test_all_columns_are_tuned_unless_features_are_named() -> None:
    assert features().columns(SPACE).tolist() == [0, 1, 2, 3]
    assert features(None, START, "TM0").columns(SPACE).tolist() == [1, 2]
    assert features(None, START, "one", "LM0", "one").columns(SPACE).tolist() == [0, 3]


def test_the_start_is_the_given_weights_and_zeros_for_the_others() -> None:
    assert features().start(SPACE).tolist() == [0.5, 0.25, -1.0, 0.0]
    assert features(None, None).start(SPACE).tolist() == [0.0] * 4
    some = Weights({"TM0": (1.0, 2.0)}, {}, None, {})
    assert features(None, some).start(SPACE).tolist() == [0.0, 1.0, 2.0, 0.0]


def test_weights_by_place_are_taken_by_their_place() -> None:
    places = Weights({f"F{i}": (float(i),) for i in range(4)}, {}, None, {})
    assert features(None, places).start(SPACE).tolist() == [0.0, 1.0, 2.0, 3.0]
    said: list[str] = []
    features(None, places).check(SPACE, said.append)
    assert said == []


def test_features_that_begin_at_zero_are_told_where_there_is_a_start() -> None:
    said: list[str] = []
    features(None, Weights({"TM0": (1.0, 2.0)}, {}, None, {})).check(SPACE, said.append)
    assert said == ["features without a weight in start.json begin at 0: LM0, one"]
    features(None, None).check(SPACE, said.append)
    assert len(said) == 1


def test_the_total_is_a_feature_where_it_is_named_or_weighted() -> None:
    assert not features().total
    assert features(None, START, "total").total
    assert features(None, Weights({"total": (1.0,)}, {}, None, {})).total


def test_names_that_are_none_are_refused_with_those_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"^--features LM1: no such feature; there are LM0, TM0, o"
    ):
        features(None, START, "LM1").columns(SPACE)
    with pytest.raises(UsageError, match=r"^--features TM0_0: no such feature"):
        features(None, START, "TM0_0").columns(SPACE)
    with pytest.raises(InputError, match="LM9"):
        features(None, Weights({"LM9": (1.0,)}, {}, None, {})).start(SPACE)


# Ranges


def test_a_range_holds_for_a_feature_or_one_of_its_columns() -> None:
    bounds = features({"LM0": (0, math.inf), "TM0_1": (-2, -0.5)}).bounds(SPACE)
    assert bounds.low.tolist() == [0, -math.inf, -2, -math.inf]
    assert bounds.high.tolist() == [math.inf, math.inf, -0.5, math.inf]
    bounds = features({"TM0": (-3, 3)}).bounds(SPACE)
    assert bounds.low.tolist() == [-math.inf, -3, -3, -math.inf]
    assert not features().bounds(SPACE).low.max() > -math.inf


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"LM1": (0, 1)}, "--range LM1=…: no such feature; there are LM0, TM0_0, TM0_1, one"),
        ({"TM0_2": (0, 1)}, "--range TM0_2=…: no such feature"),
        ({"LM0": (1, 0)}, "--range LM0=1:0: expected the least value first"),
        ({"LM0": (0.75, 1)}, "--range LM0=0.75:1: the start weight of LM0 is 0.5; give one"),
        ({"TM0": (0, 1)}, "--range TM0=0:1: the start weight of TM0_1 is -1; give one within"),
        ({"LM0": (math.inf, math.inf)}, "the start weight of LM0 is 0.5"),
    ],
    ids=str,
)
def test_ranges_that_cannot_be_kept_are_refused(ranges: Ranges, message: str) -> None:
    with pytest.raises(UsageError) as fault:
        features(ranges).check(SPACE, print)
    assert message in str(fault.value)


def test_a_range_of_a_weight_that_stays_is_idle() -> None:
    with pytest.raises(UsageError, match=r"^--range LM0=…: this weight is not tuned; name its"):
        features({"LM0": (0, 1)}, START, "TM0").check(SPACE, print)
    features({"TM0": (-1, 1)}, START, "TM0").check(SPACE, print)


def test_a_start_of_zeros_may_be_outside_too() -> None:
    with pytest.raises(
        UsageError, match="the start weight of LM0 is 0; give one within by --start"
    ):
        features({"LM0": (0.5, 1)}, None).bounds(SPACE)


# End to end


def tuned(
    given: Lists,
    ranges: Ranges | None = None,
    *,
    pools: str = "auto",
    replicates: int = 1,
    **options: Any,
) -> Tuning:
    plan = Plan(pools, settings=QUICK, replicates=replicates)
    return tune(given, plan, start="start.json", ranges=ranges or {}, **options)


def flat(found: Tuning) -> dict[str, float]:
    """Weights by the name of their column."""
    return {
        name if len(values) == 1 else f"{name}_{i}": value
        for name, values in found.weights.dense.items()
        for i, value in enumerate(values)
    }


BOXES = [
    {"LM0": (0.4, 0.6), "TM0": (0.1, 0.3)},
    {"LM0": (-math.inf, 0.7), "TM0_1": (0.2, 0.3)},
    {"LM0": (0.0, math.inf), "TM0_1": (-math.inf, 0.25)},
    {"TM0_0": (0.25, 0.25)},
]


@pytest.mark.parametrize("ranges", BOXES, ids=str)
@pytest.mark.parametrize("pools", ["conditional", "exact"])
@pytest.mark.parametrize("given", [ALONE, PAIRED], ids=["alone", "pairs"])
def test_weights_stay_inside_their_ranges(
    tuning_lists: Path, given: Lists, pools: str, ranges: Ranges
) -> None:
    found = flat(tuned(given, ranges, pools=pools))
    for name, (low, high) in ranges.items():
        columns = [column for column in found if name in (column, column[: len(name)])]
        assert columns
        assert all(low <= found[column] <= high for column in columns), found


def test_the_mean_of_replicates_is_inside_too(tuning_lists: Path) -> None:
    found = flat(tuned(PAIRED, BOXES[0], replicates=3))
    assert 0.4 <= found["LM0"] <= 0.6
    assert 0.1 <= found["TM0_0"] <= 0.3


def test_where_only_the_sign_is_bound_the_norm_is_one(tuning_lists: Path) -> None:
    """A range that ends in 0 leaves the scale free; another settles it."""
    for given in (ALONE, PAIRED):
        found = flat(tuned(given, {"LM0": (0.0, math.inf)}))
        assert np.linalg.norm([*found.values()], 1) == pytest.approx(1)
        assert found["LM0"] >= 0


def test_features_that_are_not_named_stay(tuning_lists: Path) -> None:
    found = flat(tuned(PAIRED, features=("TM0", "pairs")))
    assert found["LM0"] == 0.5
    assert set(found) == {"LM0", "TM0_0", "TM0_1", "pairs"}


@pytest.mark.parametrize("pools", ["conditional", "exact"])
def test_tuning_gains_on_every_kind_of_pool(tuning_lists: Path, pools: str) -> None:
    found = tuned(PAIRED, pools=pools)
    assert found.result.bleu > found.result.baseline_bleu
