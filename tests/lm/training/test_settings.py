"""Records of a run."""

import re

import pytest

from lm.training.settings import Settings


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("optimiser", "adamw, muon, sgd, adagrad, adadelta"),
        ("schedule", "annealed, constant, halving"),
        ("segments", "carried, independent"),
        ("levels", "together, separate, two-step"),
        ("initialisation", "own, glorot"),
        ("objective", "likelihood, nce"),
    ],
)
def test_a_setting_that_no_table_has_is_refused(name: str, known: str) -> None:
    expected = f"no {name} 'odd' is known; there are {known}"
    with pytest.raises(ValueError, match=re.escape(expected)):
        Settings(**{name: "odd"})  # type: ignore[arg-type]
