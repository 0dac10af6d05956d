"""What `lm` refuses, and what it says: a row for each kind of fault.

Damaged files are in `test_checkpoint.py`, faults of ARPA files in `test_ngrams.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lm.backend import Backend
from lm.contexts import LastHidden
from lm.contexts.bags import SentenceBags
from lm.corpus import Corpus
from lm.document_cache import WithDocumentCache
from lm.fusions import InitialState, LateFusion
from lm.heads import softmax
from lm.heads.hashed_softmax import HashTable, LinSoftmax
from lm.laws import tiny_model
from lm.model import Config, DocumentLM
from lm.recurrences import HTanh, OneHotHTanh
from lm.training.processes import Processes
from lm.training.settings import Settings, recipe
from lm.training.trainer import OBJECTIVES, Trainer
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO

WORDS, TEXT = nn.Embedding(9, 4), Corpus.of([[[3]]] * 8)


def model(name: str = "rnnlm", /, **fields: Any) -> Callable[[], object]:
    return lambda: DocumentLM(Config(name, **{"vocabulary": 9, "embed": 4, "hidden": 4, **fields}))


def initial_state() -> object:
    context = LastHidden(WORDS, HTanh(3, 4, 1))
    return InitialState(4, HTanh(3, 4, 1)).initial(HTanh(3, 4, 1), context, context.start(2))


def trainer(text: Corpus = TEXT, number: int = 1, **changes: Any) -> object:
    processes = Processes()
    processes.number = number
    own = DocumentLM(Config("rnnlm", 9, 4, 4, head=changes.pop("head", None)))
    return Trainer(own, text, TEXT, settings=Settings(streams=2, **changes), processes=processes)


ODD: dict[str, dict[str, Any]] = {name: {name: "odd"} for name in ("optimiser", "levels")}
VALUES: list[tuple[Callable[[], object], str]] = [
    # shapes that no model has
    (model("rnn"), "no model 'rnn'"),
    (model(recurrence="lstm2"), "no recurrence 'lstm2' is known"),
    (model("hrnnlm", sentence_recurrence="lstm2"), "no recurrence 'lstm2' is known"),
    (model("dclm-bilingual", source_context="all"), "no source context 'all' is known; there are"),
    (model(head="soft"), "no head 'soft' is known; there are"),
    (model("ccdclm", fusion="late"),
        "no fusion 'late' is known; there are input, input-sum, output"),
    (model(vocabulary=2), "at least 3 words, not 2"),
    (model(vocabulary=1 << 31), "at most 2,147,483,647 words"),
    (model(hidden=0), "sizes of 1 to 65,536"),
    (model(embed=(1 << 16) + 1), "sizes of 1 to 65,536"),
    (model(hidden=5.0), "whole numbers"),
    *((model(layers=n), f"1 to 64 layers, not {n}") for n in (0, 65)),
    (model(head="hashed", hash_size=0), "1 to 2,147,483,647 slots, not 0"),
    (model("dclm-bilingual", source_words=2), "3 to 2,147,483,647 words, not 2"),
    (model("hlstm", thought=0), "1 to 65,536 numbers, not 0"),
    # choices that a composition leaves no room for
    (model("ccdclm", fusion="initial"), "needs a context that carries a recurrent"),
    (model("rnnslm", recurrence="htanh"), "a recurrence of its own, found 'htanh'; leave that out"),
    (model("rnnslm", tied=True), "has untied embeddings, found tied ones"),
    (model("rnnslm", embed=5), "expected as many columns as hidden units, found 5 and 4"),
    (model("rnnslm", hash_size=8), "expected a hash size of at least 9"),
    (model("dclm-bilingual"), "'dclm-bilingual' needs side information: source"),
    (lambda: DocumentLM.without_memory(Config("rnnlm", (1 << 24) + 1, 2, 2, head="hashed",
        hash_size=1 << 25)), "at most 16777216 words, found 16777217"),
    # parts
    (lambda: LateFusion(3, HTanh(2, 4, 1)),
        r"memory cell and an output gate, found HTanh; choose l"),
    (lambda: HashTable(7, 6), "expected a hash size of at least 7, a slot for each word, found 6"),
    (lambda: LinSoftmax(4, 0, WORDS, tied=True), "separate input and output matrices"),
    *((lambda w=w: WithDocumentCache(tiny_model(ZOO["rnnlm"]), w), "between 0 and 1")
        for w in (0.0, 1.0, np.nan)),
    (lambda: Backend(dtype="float16"), "expected float32, tf32 or bfloat16, found float16"),
    *((lambda w=w: Vocabulary(w), "a vocabulary holds") for w in ((b"a", b"a"), (b"<s>",), (b"",))),
    (lambda: SentenceBags(nn.Embedding(9, 3), HTanh(3, 4, 1)),
        "expected an embedding of 4 columns, found 3"),
    # training
    *((lambda own=own: Settings(**own), f"no {name} 'odd' is known; there are")
        for name, own in ODD.items()),
    (lambda: recipe("code", "lin"), "no recipe 'code', but strong, paper$"),
    (lambda: trainer(Corpus.of([])), "at least one sentence each"),
    (lambda: trainer(number=4), "4 processes cannot share 2 streams"),
    (lambda: trainer(head="classes", objective="nce", negatives=5),
        "a head that can be trained on a s"),
    (lambda: OBJECTIVES["nce"].create(softmax(3, 0, WORDS, tied=True), torch.ones(9), 0),
        "expected at least 1 noise word, found 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), VALUES, ids=[message[:40] for _, message in VALUES])
def test_values_that_are_not_possible_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises((ValueError, KeyError), match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (initial_state, "only a context that carries a recurrent state"),
        (lambda: OneHotHTanh(4, 4).project(torch.randn(2, 3), first=4), "no other inputs"),
    ],
)
def test_parts_that_do_not_fit_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()
