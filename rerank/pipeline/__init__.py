"""What the shell does, as functions: one per command, each documented.

>>> from rerank.pipeline import train_lm, tune_mert, decode, evaluate
"""

from rerank.pipeline.choices import Decoding
from rerank.pipeline.decoding import Reports, decode, score
from rerank.pipeline.demo import Demo, demo
from rerank.pipeline.diversity import Diversities, diversity
from rerank.pipeline.evaluation import OracleList, evaluate
from rerank.pipeline.language_models import Recipe, perplexity, train_lm
from rerank.pipeline.listing import DecoderList, list_decoders
from rerank.pipeline.lists import Lists
from rerank.pipeline.models import Scoring
from rerank.pipeline.moses_tuning import MosesTuning, tune_moses
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning import Tuning, tune_mert
from rerank.tuning.mert import Settings as MertSettings

__all__ = [
    "DecoderList",
    "Decoding",
    "Demo",
    "Diversities",
    "Lists",
    "MertSettings",
    "MosesTuning",
    "OracleList",
    "Recipe",
    "Reports",
    "Scoring",
    "Search",
    "Tuning",
    "decode",
    "demo",
    "diversity",
    "evaluate",
    "list_decoders",
    "perplexity",
    "score",
    "train_lm",
    "tune_mert",
    "tune_moses",
]
