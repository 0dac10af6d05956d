"""What the shell does, as functions: one per command, each documented.

>>> from rerank.pipeline import train_lm, tune_mert, decode
"""

from rerank.commands.texts import TextFiles as TextFiles
from rerank.pipeline.ablation import ablate as ablate
from rerank.pipeline.decoding import Reports as Reports
from rerank.pipeline.decoding import decode as decode
from rerank.pipeline.demo import Demo as Demo
from rerank.pipeline.demo import demo as demo
from rerank.pipeline.language_models import train_lm as train_lm
from rerank.pipeline.lists import Lists as Lists
from rerank.pipeline.lm_eval.coherence import coherence as coherence
from rerank.pipeline.lm_eval.contrastive import contrastive as contrastive
from rerank.pipeline.lm_eval.next_sentence import BlockSettings as BlockSettings
from rerank.pipeline.lm_eval.next_sentence import next_sentence as next_sentence
from rerank.pipeline.lm_eval.pairs import contrastive_pairs as contrastive_pairs
from rerank.pipeline.mbr_tuning import MbrTuning as MbrTuning
from rerank.pipeline.mbr_tuning import tune_mbr as tune_mbr
from rerank.pipeline.models import ModelOptions as ModelOptions
from rerank.pipeline.models import Scoring as Scoring
from rerank.pipeline.moses_tuning import MosesTuning as MosesTuning
from rerank.pipeline.moses_tuning import tune_moses as tune_moses
from rerank.pipeline.ngram_models import NGramRecipe as NGramRecipe
from rerank.pipeline.ngram_models import ngram_perplexity as ngram_perplexity
from rerank.pipeline.ngram_models import train_ngram as train_ngram
from rerank.pipeline.perplexity import perplexity as perplexity
from rerank.pipeline.recipe import Recipe as Recipe
from rerank.pipeline.results import CorpusResult as CorpusResult
from rerank.pipeline.scoring import score as score
from rerank.pipeline.searching import Search as Search
from rerank.pipeline.shards import Shard as Shard
from rerank.pipeline.tags import TaggedText as TaggedText
from rerank.pipeline.tuning import TunedWeights as TunedWeights
from rerank.pipeline.tuning import tune_mert as tune_mert
from rerank.pipeline.tuning_outcome import Tuning as Tuning
from rerank.tuning.plan import MertSettings as MertSettings
from rerank.tuning.plan import ObjectiveOptions as ObjectiveOptions
from rerank.tuning.plan import Plan as Plan
