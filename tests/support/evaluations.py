"""An evaluation of two systems under three metrics, with the texts that it is of."""

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from support.metrics import drafts as edits

from rerank.corpus.documents import Documents
from rerank.metrics.bleu import Bleu
from rerank.metrics.oracle import Extremes
from rerank.registry import metric
from rerank.report.evaluation import Detokenised, Evaluation, Text, evaluate

N = 36  # lines, three in each document
DOCUMENTS = Documents(tuple(f"doc-{d}" for d in range(12)), tuple(range(0, N + 1, 3)))
OTHERS = {"chrf": metric("chrf"), "ter": metric("ter")}
TRUTH = {"bleu": BLEU(tokenize="none"), "chrf": CHRF(), "ter": TER()}


def encoded(name: str, lines: list[str]) -> Text:
    return Text(name, [line.encode() for line in lines])


def evaluated(
    n_references: int = 1, detokenise: bool = False, oracle: bool = False
) -> tuple[list[list[str]], list[list[str]], Evaluation]:
    """References, systems, and their evaluation; with the best of both as the oracle."""
    texts = edits(N, n_references + 2, seed=4)
    references, systems = texts[:n_references], texts[n_references:]
    targets = [[line.encode() for line in lines] for lines in zip(*references, strict=True)]
    ours = [encoded(f"system.{i}", lines) for i, lines in enumerate(systems)]
    best = Bleu().statistics([[line] for line in encoded("", references[0]).lines], targets)
    found = evaluate(
        DOCUMENTS,
        targets,
        ours,
        metric=Bleu(),
        others=OTHERS,
        detokenised=Detokenised(targets, ours) if detokenise else None,
        extremes=Extremes(best, best) if oracle else None,
    )
    return references, systems, found
