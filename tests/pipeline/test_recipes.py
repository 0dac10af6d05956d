"""Recipes completed by their tables, overridden by what is given, and checked."""

from dataclasses import replace

import pytest

from lm.model import Config, DocumentLM
from lm.training.recipes import FAMILIES, STRONG
from lm.training.settings import Settings
from rerank.errors import UsageError
from rerank.pipeline import Recipe
from rerank.pipeline.recipes import completed, described, settings_of


def model_of(name: str, head: str | None = None) -> DocumentLM:
    return DocumentLM.seeded(Config(name, 20, 4, 5, head=head), 1)


def settings(recipe: Recipe) -> Settings:
    whole = replace(completed(recipe), precision="float32")
    return settings_of(whole, recipe, model_of(recipe.model, recipe.head))


def test_what_is_not_given_is_of_the_recipe() -> None:
    for name, values in (("strong", STRONG), ("paper", FAMILIES["ji"]["paper"])):
        found = completed(Recipe("codclm", recipe=name))
        assert {key: getattr(found, key) for key in values} == values


def test_what_is_given_overrides_the_recipe() -> None:
    given = Recipe("codclm", recipe="paper", hidden=7, dropout=0.5, patience=0, tied=True)
    found = completed(given)
    assert (found.hidden, found.dropout, found.patience, found.tied) == (7, 0.5, 0, True)
    assert found.optimiser == "adagrad"


@pytest.mark.parametrize(("name", "default"), [("codclm", 0.1), ("ccdclm", 0.1), ("drnnlm", 0.0)])
def test_no_context_is_dropped_where_it_is_a_carried_state(name: str, default: float) -> None:
    assert settings(Recipe(name)).context_dropout == default
    assert settings(Recipe(name, context_dropout=0.3)).context_dropout == 0.3


def test_levels_are_refused_for_models_of_one_level() -> None:
    assert settings(Recipe("hrnnlm", levels="two-step")).levels == "two-step"
    assert settings(Recipe("rnnlm", recipe="paper")).levels == "separate"  # nothing to part
    with pytest.raises(UsageError, match="--levels two-step: this model has no sentence level"):
        settings(Recipe("ccdclm", levels="two-step"))


def test_an_objective_needs_sampled_words_and_a_head_that_can_do_with_them() -> None:
    found = settings(Recipe("codclm", objective="nce", negatives=50))
    assert (found.objective, found.negatives) == ("nce", 50)
    for name in ("strong", "paper"):
        assert settings(Recipe("codclm", recipe=name, objective="nce")).negatives == 4096
    assert settings(Recipe("adclm", recipe="paper")).objective == "likelihood"
    message = "--objective nce: expected noise words, found --negatives 0; give a number"
    with pytest.raises(UsageError, match=message):
        settings(Recipe("codclm", objective="nce", negatives=0))
    message = "--objective nce: the head of this model is trained on all words; leave the option"
    for head in ("classes", "hashed"):
        with pytest.raises(UsageError, match=message):
            settings(Recipe("codclm", head=head, objective="nce"))


def test_a_recipe_that_a_model_has_not_is_refused() -> None:
    message = "--recipe odd --model rnnlm: .* no recipe 'odd', but strong, paper, code; choose"
    with pytest.raises(UsageError, match=message):
        completed(Recipe("rnnlm", recipe="odd"))


def test_a_description_names_every_setting() -> None:
    found = settings(Recipe("rnnlm", learning_rate=0.25, minutes=None))
    text = described("strong", found)
    assert text.startswith("recipe strong: epochs 5, seed 1, ")
    assert "learning rate 0.25, " in text
    assert "minutes" not in text
