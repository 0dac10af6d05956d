"""Learning rates over a stage."""

import pytest

from lm.training.schedules import SCHEDULES, Position, fell


def rates(name: str, updates: int = 1000, halvings: int = 0) -> list[float]:
    return [
        SCHEDULES[name].rate(0.2, Position(n, updates, n / updates, halvings))
        for n in range(updates)
    ]


def test_an_annealed_rate_rises_for_two_percent_of_the_updates_and_falls_to_zero() -> None:
    found = rates("annealed")
    assert found.index(max(found)) == 20  # 2 % of 1,000
    assert found[9] == pytest.approx(0.2 * 10 / 21 * (1 - 0.009))
    assert found[500] == pytest.approx(0.2 * 0.5)
    assert found[-1] == pytest.approx(0.2 * 1e-3)


def test_an_annealed_rate_follows_the_budget_that_runs_out_first() -> None:
    assert SCHEDULES["annealed"].rate(0.2, Position(500, 1000, 0.75, 0)) == pytest.approx(0.05)


def test_a_constant_rate_is_its_peak() -> None:
    assert set(rates("constant")) == {0.2}


def test_a_halving_rate_is_the_peak_halved_as_often_as_said() -> None:
    assert [set(rates("halving", halvings=n)) for n in range(3)] == [{0.2}, {0.1}, {0.05}]
    assert [name for name, schedule in SCHEDULES.items() if schedule.halves] == ["halving"]


def test_a_loss_has_fallen_if_it_is_lower_by_more_than_three_in_a_thousand() -> None:
    assert fell(None, 5.0)
    assert fell(5.0, 5.0 / 1.0031)
    assert not fell(5.0, 5.0 / 1.0029)
    assert not fell(5.0, 5.1)
