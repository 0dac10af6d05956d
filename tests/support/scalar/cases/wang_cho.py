"""The models of Wang & Cho 2015, each with its scalar code."""

from support.scalar import names, wang_cho
from support.scalar.comparison import (
    Case,
    V,
)
from support.scalar.ji import Document, Scores

from lm.model import Config, DocumentLM

CONTEXTS = {
    "bow": wang_cho.bow,
    "seqbow": wang_cho.seqbow,
    "seqbow-att": wang_cho.seqbow_att,
}
FUSIONS = {"ef": wang_cho.early_fusion, "lf": wang_cho.late_fusion}
# a sequence of one sentence has no transition, and nothing to choose from
IDLE = tuple(
    f"context.{name}"
    for name in (
        *("reader.recurrent.0", "backward_reader.recurrent.0"),
        *("query.weight", "annotation.weight", "weight.weight"),
    )
)


def case(context: str, fusion: str, n: int, *, attention: int | None = None) -> Case:
    """A model with this context of n sentences."""

    def reference(model: DocumentLM, document: Document) -> Scores:
        parts = CONTEXTS[context], FUSIONS[fusion]
        return wang_cho.larger_context_lm(names.wang_cho(model), document, n, *parts)

    name = f"rlm-{context}-{fusion}-{n}"
    config = Config(name, V, 3, 4, "lstm", 1, n % 2 == 0, attention=attention)
    return Case(config, reference, idle=IDLE if n == 1 else ())


def without_context(model: DocumentLM, document: Document) -> Scores:
    parts = wang_cho.no_context, wang_cho.no_fusion
    return wang_cho.larger_context_lm(names.wang_cho(model), document, 0, *parts)


CASES = [Case(Config("rlm", V, 3, 4, "lstm", 1, tied=False), without_context)]
CASES += [case("bow", fusion, n) for fusion in FUSIONS for n in (1, 3)]
CASES += [case("seqbow", fusion, n) for fusion in FUSIONS for n in (1, 3)]
CASES += [
    case("seqbow-att", fusion, n, attention=a)
    for fusion, n, a in [
        ("ef", 2, None),
        ("ef", 4, 5),
        ("lf", 1, None),
        ("lf", 3, 5),
        ("lf", 4, None),
    ]
]
