"""Side information of k-best lists in rows: of the lists with candidates alone."""

from dataclasses import replace

import torch
from support.lists import kbest
from support.models import config_of, side_vocabularies

from lm.checkpoint import SavedModel
from lm.model import DocumentLM
from lm.vocabulary import Vocabulary
from rerank.scorers.cached_scores import ListTexts
from rerank.scorers.side_rows import side_rows

KINDS = ("source", "parents")
SIDE = {"source": [b"0", b"1", b"2", b"3"], "parents": [b"3", b"4", b"0", b"1"]}


def saved(name: str) -> SavedModel:
    model = DocumentLM.without_memory(config_of(name, 9, 3, 4))
    return SavedModel(model, Vocabulary((b"a",)), "", {}, side_vocabularies(model))


def rows(lists: list[list[str]], documents: int = 1) -> list[list[int]]:
    """The word of the sentence itself, of the next one and of the nucleus; -1 without."""
    texts = ListTexts.of(replace(kbest(lists), side=SIDE), KINDS)
    found = side_rows(saved("dclm-rst"), [texts] * documents, torch.device("cpu"))
    assert found is not None
    words = zip(*(tensor.sum(dim=1).tolist() for tensor in found.tensors), strict=True)
    return [[int(word) - 4 if word else -1 for word in own] for own in words]


def test_a_sentence_without_candidates_is_neither_the_next_one_nor_a_nucleus() -> None:
    assert rows([["a"]] * 4) == [[0, 1, 2], [1, 2, 3], [2, 3, -1], [3, -1, 0]]
    assert rows([["a"], ["a"], [], ["a"]]) == [[0, 1, -1], [1, 3, 3], [3, -1, 0]]


def test_numbers_are_those_of_the_own_document() -> None:
    lists = [["a"], [], ["a"], ["a"]]
    assert rows(lists, 3) == 3 * rows(lists) == 3 * [[0, 2, 2], [2, 3, -1], [3, -1, 0]]


def test_models_of_the_text_alone_have_none() -> None:
    for name in ("rnnlm", "dclm-auxiliary"):
        assert side_rows(saved(name), [], torch.device("cpu")) is None
