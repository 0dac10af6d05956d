"""What the shell does, as functions: one per command, each documented.

>>> from rerank.pipeline import train_lm, tune_mert, decode, evaluate
"""

from rerank.pipeline.decoding import Decoding, decode, score
from rerank.pipeline.demo import Demo, demo
from rerank.pipeline.evaluation import OracleList, evaluate
from rerank.pipeline.language_models import Recipe, perplexity, train_lm
from rerank.pipeline.lists import Lists
from rerank.pipeline.models import Scoring
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning import Tuning, tune_mert
from rerank.tuning.mert import Settings as MertSettings

__all__ = [
    "Decoding",
    "Demo",
    "Lists",
    "MertSettings",
    "OracleList",
    "Recipe",
    "Scoring",
    "Search",
    "Tuning",
    "decode",
    "demo",
    "evaluate",
    "perplexity",
    "score",
    "train_lm",
    "tune_mert",
]
