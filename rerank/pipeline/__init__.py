"""What the shell does, as functions: one per command, each documented.

>>> from rerank.pipeline import train_lm, tune_mert, decode, evaluate
"""

from rerank.pipeline.criteria import Aims
from rerank.pipeline.decoding import Reports, decode, score
from rerank.pipeline.demo import Demo, demo
from rerank.pipeline.diversity import Diversities, diversity
from rerank.pipeline.evaluation import OracleList, evaluate
from rerank.pipeline.language_models import Recipe, perplexity, train_lm
from rerank.pipeline.listing import DecoderList, list_decoders
from rerank.pipeline.lists import Lists
from rerank.pipeline.models import Scoring
from rerank.pipeline.moses_tuning import MosesTuning, tune_moses
from rerank.pipeline.results import Decoding
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning import TunedWeights, tune_mert
from rerank.pipeline.tuning_outcome import Tuning
from rerank.pipeline.tuning_plan import Plan
from rerank.tuning.mert import Settings as MertSettings

__all__ = [
    "Aims",
    "DecoderList",
    "Decoding",
    "Demo",
    "Diversities",
    "Lists",
    "MertSettings",
    "MosesTuning",
    "OracleList",
    "Plan",
    "Recipe",
    "Reports",
    "Scoring",
    "Search",
    "TunedWeights",
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
