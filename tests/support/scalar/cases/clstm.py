"""The models of Ghosh et al. 2016, each with its scalar code."""

from support.scalar import clstm_names
from support.scalar.comparison import (
    SIDE,
    Case,
    V,
)

from lm.model import Config


def case(name: str, layers: int, tied: bool) -> Case:
    config = Config(name, V, 3, 4, "peephole", layers, tied, topics_number=5)
    return Case(config, clstm_names.scores)


CASES = [case(name, 1 + n % 2, n % 2 == 0) for n, name in enumerate(clstm_names.TOPICS)]
CASES += [
    Case(Config(name, V, 3, 4, "peephole", 2, False, thought=n), clstm_names.thought_scores)
    for name, n in (("clstm-thought", 2), ("hlstm", None))
]
CASES += [
    Case(
        Config(name, V, 3, 4, "peephole", layers, layers == 1, topic_labels=6),
        lambda model, document: clstm_names.given_scores(
            model, document, [label for (label,) in SIDE["topics"][: len(document)]]
        ),
    )
    for name in ("clstm-given-topic", "clstm-given-topic-carried")
    for layers in (1, 2)
]
