"""What the shell does, as functions: one per command, each documented.

>>> from rerank.pipeline import train_lm, tune_mert, decode, evaluate
"""

from rerank.pipeline.decoding import Reports, decode, score
from rerank.pipeline.demo import Demo, demo
from rerank.pipeline.diversity import Diversities, diversity
from rerank.pipeline.evaluation import evaluate
from rerank.pipeline.language_models import Recipe, perplexity, train_lm
from rerank.pipeline.lists import Lists
from rerank.pipeline.models import Scoring
from rerank.pipeline.moses_tuning import MosesTuning, tune_moses
from rerank.pipeline.results import CorpusResult
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning import TunedWeights, tune_mert
from rerank.pipeline.tuning_outcome import Tuning
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.objectives.options import ObjectiveOptions
from rerank.tuning.plan import Plan

__all__ = [
    "CorpusResult",
    "Demo",
    "Diversities",
    "Lists",
    "MertSettings",
    "MosesTuning",
    "ObjectiveOptions",
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
    "perplexity",
    "score",
    "train_lm",
    "tune_mert",
    "tune_moses",
]
