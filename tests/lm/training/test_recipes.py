"""Recipes by name and family."""

from dataclasses import fields
from typing import Any

import pytest

from lm.model import Config, DocumentLM
from lm.training.recipes import FAMILIES, NAMES, STRONG, recipe
from lm.training.settings import Settings
from lm.zoo import ZOO
from rerank.pipeline import Recipe


def test_the_shape_of_the_strong_recipe_is_that_of_a_model_by_default() -> None:
    names = [f.name for f in fields(Config) if f.name in STRONG and f.name != "vocabulary"]
    shape: dict[str, Any] = {name: STRONG[name] for name in names}
    both = Config("codclm", 9), Config("codclm", 9, **shape)
    by_default, strong = (DocumentLM.without_memory(config).state_dict() for config in both)
    assert {n: t.shape for n, t in by_default.items()} == {n: t.shape for n, t in strong.items()}
    assert {"embed", "hidden", "layers", "recurrence", "tied"} == {*names}


def test_settings_have_by_default_what_runs_had_before_a_setting_existed() -> None:
    """States on disk that lack a setting are resumed with its default: it must not change."""
    then = Settings()
    assert (then.optimiser, then.schedule, then.segments, then.levels) == (
        "adamw",
        "annealed",
        "carried",
        "together",
    )
    assert (then.patience, then.accumulate, then.initialisation) == (0, 1, "own")
    assert not any((then.locked_dropout, then.word_dropout, then.weight_dropout))
    assert not any((then.context_noise, then.averaging))
    assert then.objective == "likelihood"
    assert then.auxiliary_weight == 1.0


def test_every_recipe_gives_every_value_that_the_others_give() -> None:
    known = {field.name for field in fields(Recipe)}
    assert STRONG.keys() <= known
    for family in FAMILIES.values():
        assert "paper" in family
        assert family.keys() <= set(NAMES)
        for values in family.values():
            assert STRONG.keys() <= values.keys() <= known


def test_every_family_that_a_model_names_exists() -> None:
    assert {model.recipe for model in ZOO.values()} - {None} <= FAMILIES.keys()


def test_ji_et_al_train_as_their_section_on_implementation_says() -> None:
    """arXiv:1511.03962, §3.1; the update is a sum over a segment because it has one stream."""
    values = recipe("paper", "ji")
    expected = {
        "layers": 2,
        "initialisation": "glorot",
        "optimiser": "adagrad",
        "learning_rate": 0.1,
        "schedule": "constant",
        "clip": 5.0,
        "segment": 5,
        "segments": "independent",
        "streams": 1,
        "dropout": 0.0,
        "context_dropout": 0.0,
        "negatives": 0,
        "tied": False,
    }
    assert {name: values[name] for name in expected} == expected
    code = recipe("code", "ji")
    assert code["optimiser"] == "sgd"
    shrinking = float(code["learning_rate"]) * float(code["weight_decay"])
    assert shrinking == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("name", "family", "known"),
    [
        ("code", "lin", "strong, paper"),
        ("paper", None, "strong"),
        ("x", "ji", "strong, paper, code"),
    ],
)
def test_a_recipe_that_a_family_has_not_is_refused(
    name: str, family: str | None, known: str
) -> None:
    with pytest.raises(ValueError, match=f"no recipe '{name}', but {known}$"):
        recipe(name, family)
