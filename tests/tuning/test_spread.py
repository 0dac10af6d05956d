"""The choice of the spread: closed forms, and planted gains, of a metric that is a mean."""

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.mbr import SPREAD
from rerank.metrics import MeanOfSentences
from rerank.metrics.bleu import Bleu
from rerank.metrics.ter import Ter
from rerank.tuning.spread import SPREADS, best, choose_spread, difference_error, folds_of

C = len(SPREADS)


class Mean(MeanOfSentences):
    """Mean of numbers."""

    name = "mean"

    def of_lists(self, kbest: object, references: object) -> object:  # type: ignore[override]
        raise NotImplementedError


def sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Statistics (…, 2) of folds of one sentence each."""
    return np.stack([values, np.ones_like(values)], axis=-1)


def test_the_error_of_a_difference_of_means_is_the_standard_error_of_paired_differences() -> None:
    """Closed form: the jackknife of a mean gives s / √n."""
    values = np.random.default_rng(1).normal(size=(2, 9))
    truth = (values[0] - values[1]).std(ddof=1) / 3
    assert difference_error(sums(values), Mean()) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(("gain", "chosen"), [(0.9, 0), (1.1, 5)])
def test_the_default_is_left_for_more_than_a_standard_error(gain: float, chosen: int) -> None:
    noise = np.array([1.0, -1, 1, -1, 1, -1, 1, -1]) / np.sqrt(8 / 7)  # s = 1, so an error of 1/√8
    values = np.zeros((C, 8)) - 5
    values[0] = 0
    values[5] = gain / np.sqrt(8) + noise
    assert best(sums(values), Mean()) == chosen
    assert best(sums(values[:, :1]), Mean()) == 0  # of one fold there is no error


def test_what_is_said_of_held_out_folds_is_of_folds_that_did_not_choose() -> None:
    """One fold alone favours a spread: it is not chosen where that fold is left out."""
    values = np.zeros((C, 6))
    values[3] = [6, 0, 0, 0, 0, 0]
    values[4] = 1.0
    plain = np.full(6, 0.25)
    found = choose_spread(sums(values), sums(plain), Mean())
    assert (found.spread, found.mbr, found.default, found.plain) == (SPREADS[4], 1.0, 0.0, 0.25)
    assert (found.gain, found.error, found.folds) == (0.75, 0.0, 6)
    assert found.to_text().startswith("spread 1, better than 1.4, the default; held out: mbr 1.00")


def test_the_default_is_kept_where_choosing_does_not_help_on_held_out_folds() -> None:
    """Without fold 0 another spread is best, which is bad on that fold."""
    values = np.zeros((C, 6))
    values[1] = [-9.0, 1, 1, 1, 1, 1]
    values[3] = 0.5
    found = choose_spread(sums(values), sums(np.zeros(6)), Mean())
    assert best(sums(values), Mean()) == 3
    assert (found.spread, found.mbr) == (SPREAD, (-9 + 5 * 0.5) / 6)
    assert "spread 1.4, the default" in found.to_text()


def test_an_error_rate_is_smaller_where_it_is_better_and_said_as_published() -> None:
    references, texts = [[b"a b c d e f"]] * 6, ["a b c d e f", "a b c d e x"]
    for metric in (Bleu(), Ter()):
        rows = metric.statistics([[text.encode() for text in texts]] * 6, references)
        good, bad = rows[::2], rows[1::2]
        statistics = np.stack([bad, *[good] * (C - 1)])
        found = choose_spread(statistics, bad, metric)
        assert found.spread != SPREAD
        assert found.gain > 0
        assert (found.mbr > found.plain) == (metric.name == "BLEU")


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ((3, 1, 2, 5), [3, 1, 2, 5]),
        ((1,) * 45, [3] * 5 + [2] * 15),
        ((12,), [2, 2, *[1] * 8]),
        ((3, 0, 2), [1] * 5),
        ((0, 4, 0, 4), [4, 4]),
    ],
)
def test_folds_are_documents_or_blocks_of_sentences(
    sizes: tuple[int, ...], lengths: list[int]
) -> None:
    folds = folds_of(sizes)
    assert [len(fold) for fold in folds] == lengths
    assert np.concatenate(folds).tolist() == list(range(sum(sizes)))
