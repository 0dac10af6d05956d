"""Models of unbounded order, and lists for them to score."""

import pytest

UNBOUNDED = ["ccdclm", "drnnlm", "hrnnlm", "adclm", "dam"]
every_model = pytest.mark.parametrize("name", UNBOUNDED)
every_mean = pytest.mark.parametrize("name", ["ccdclm", "drnnlm", "hrnnlm"])  # of contexts
LISTS = [
    ["the lamp is lit", "a lamp burns", "it", "one burns light"],
    ["it gives light", "she gives light", "no one", "no"],
    ["", "no one", "it burns", "the light"],
    ["the lamp", "she", "is the lamp lit", "a a a"],
    ["it is", "she is", "one is", "the one"],
]
OTHERS = [["no one", "she"], ["the light burns", "it"], ["is", "a lamp"]]
