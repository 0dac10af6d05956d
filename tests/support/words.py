"""The words of made-up texts: all that the tiny language models of `conftest.py` know."""

WORDS = ("the", "a", "lamp", "is", "lit", "it", "she", "gives", "light", "burns", "no", "one")
