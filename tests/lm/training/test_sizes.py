"""Sizes by name."""

from lm.model import Config
from lm.training.recipes import STRONG
from lm.training.sizes import SIZES


def test_the_small_size_is_that_of_a_model_by_default_and_others_are_larger() -> None:
    small, medium, large = SIZES.values()
    default = Config("rnnlm", 10)
    assert (small.embed, small.hidden, small.layers) == (
        default.embed,
        default.hidden,
        default.layers,
    )
    assert (STRONG["embed"], STRONG["hidden"], STRONG["layers"]) == (128, 256, 1)
    for one, other in ((small, medium), (medium, large)):
        assert one.embed < other.embed
        assert one.hidden < other.hidden
        assert one.layers <= other.layers
