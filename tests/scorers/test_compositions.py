"""Two compositions of finite order, from training to exact search, against all paths by hand.

A bag of the last two sentences added to the logits (order 2), and attention over the words
of the previous sentence (order 1, a value per word).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from support.lists import kbest
from support.models import enlarged
from torch import Tensor

from decoders.search import Options, decode
from lm.checkpoint import SavedModel, load_model, save_model
from lm.composition import Composition
from lm.contexts.bag import BagOfWords
from lm.contexts.previous_words import PreviousWords
from lm.corpus import encode
from lm.fusions import Output
from lm.model import Config, DocumentLM
from lm.tiny_models import read_by_words
from lm.training.state import load_training, save_training
from lm.training.trainer import Settings, Trainer
from lm.vocabulary import END, Vocabulary
from rerank.cache import Cache
from rerank.notices import Notices
from rerank.scorers.contextual import ContextualProblem
from rerank.scorers.language_model import LanguageModel

WORDS = ("the", "a", "lamp", "is", "lit", "it", "burns", "no", "one")
OURS = {
    "bags": Composition(partial(BagOfWords, sentences=2), Output, "", ""),
    "attention": Composition(PreviousWords, Output, "", ""),
}
TEXT = [b"the lamp is lit", b"it burns", b"no one is a lamp", b"", b"a lamp burns", b"it is lit"]
LISTS = [
    ["the lamp", "lamp the", "it"],
    ["it", "the lamp", "is the lamp"],
    ["no one", "a lamp is lit", "it burns"],
    ["the lamp burns", "one", "it is"],
]
Ids = list[int]


def trainer_of(name: str) -> Trainer:
    vocabulary = Vocabulary(tuple(word.encode() for word in WORDS))
    config = Config(name, len(vocabulary), 6, 8)
    model = enlarged(DocumentLM.seeded(config, 1, OURS))
    corpus = encode(TEXT * 4, vocabulary)
    return Trainer(model, corpus, corpus, settings=Settings(epochs=12, streams=2))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SavedModel]:
    """Both models trained, saved, and read back."""
    found = {}
    for name in OURS:
        folder, trainer = tmp_path_factory.mktemp(name), trainer_of(name)
        reports = [report for report in trainer.run() if report is not None]
        assert reports[-1].valid_perplexity < reports[0].valid_perplexity
        save_model(folder, trainer.model, Vocabulary(tuple(w.encode() for w in WORDS)), {})
        found[name] = load_model(folder, zoo=OURS)
    return found


def bag_value(model: DocumentLM, hidden: Tensor, before: Sequence[Ids]) -> Tensor:
    """The sum of the words of the last two sentences, for every position."""
    words = [word for sentence in before[-2:] for word in sentence]
    return model.context.get_parameter("table")[words].sum(dim=0).expand(len(hidden), -1)


def attention_value(model: DocumentLM, hidden: Tensor, before: Sequence[Ids]) -> Tensor:
    """A weighted mean of the states of the last sentence's words, for each position."""
    if not before or not before[-1]:
        return torch.zeros(hidden.shape)
    states = read_by_words(model, before[-1], model.context.start(1)).hidden[1:]
    query, memory, weight = (
        model.context.get_parameter(f"{name}.weight") for name in ("query", "memory", "weight")
    )
    values = []
    for h in [torch.zeros(hidden.shape[1]), *hidden[:-1]]:
        energy = torch.stack([weight[0] @ torch.tanh(query @ h + memory @ s) for s in states])
        values.append(torch.softmax(energy, dim=0) @ states)
    return torch.stack(values)


VALUES: dict[str, Callable[[DocumentLM, Tensor, Sequence[Ids]], Tensor]] = {
    "bags": bag_value,
    "attention": attention_value,
}


@torch.no_grad()
def score(saved: SavedModel, name: str, document: Sequence[str]) -> float:
    """Log p of a document's last sentence after the others, by the equations of the model."""
    model = saved.model
    *before, words = [saved.vocabulary.encode(text.encode().split()) for text in document]
    hidden = read_by_words(model, words, model.context.start(1)).hidden
    features = torch.cat([hidden, VALUES[name](model, hidden, before)], dim=1)
    logits = features @ model.head.get_parameter("projection.weight").T @ model.embedding.weight.T
    log_probs = torch.log_softmax((logits + model.head.get_parameter("bias")).double(), dim=1)
    return float(log_probs[range(len(logits)), [*words, END]].sum())


def all_paths(saved: SavedModel, name: str) -> dict[tuple[int, ...], float]:
    """The score of every path, by enumeration."""
    prefixes: dict[tuple[int, ...], float] = {(): 0.0}
    for t in range(len(LISTS)):
        for path in product(*(range(len(own)) for own in LISTS[: t + 1])):
            texts = [own[k] for own, k in zip(LISTS, path, strict=False)]
            prefixes[path] = prefixes[path[:-1]] + score(saved, name, texts)
    return {path: total for path, total in prefixes.items() if len(path) == len(LISTS)}


@pytest.mark.parametrize(("name", "order"), [("bags", 2), ("attention", 1)])
def test_exact_search_finds_the_best_of_all_paths(
    name: str, order: int, saved: Mapping[str, SavedModel]
) -> None:
    scorer = LanguageModel("lm", saved[name])
    (scored,) = scorer.score([("evening", kbest(LISTS))])
    assert scored.problem.order == scorer.order == order
    found = decode(scored.problem, "viterbi", Options()).paths[0]
    truth = all_paths(saved[name], name)
    best = max(truth, key=lambda path: truth[path])
    assert found.choices == best
    assert found.score == pytest.approx(truth[best], abs=1e-3)
    assert sorted(truth.values())[-2] < truth[best] - 1e-3  # no tie decides


def test_equal_sums_are_scored_once_and_remain_two_states(
    saved: Mapping[str, SavedModel],
) -> None:
    """After (the lamp, it) and (it, the lamp) sentence 2 scores alike, and sentence 3 does not."""
    scorer = LanguageModel("lm", saved["bags"])
    (scored,) = scorer.score([("evening", kbest(LISTS))])
    problem = scored.problem
    assert isinstance(problem, ContextualProblem)
    _, successors = problem.extend(problem.initial(), 0)
    states = problem.select(successors, np.zeros(3, np.intp), np.arange(3))
    before, contexts = scorer.work.nodes, 2  # the lamp and lamp the are one bag
    _, successors = problem.extend(states, 1)
    trie = len({(), ("it",), ("the",), ("the", "lamp"), ("is",), ("is", "the"), tuple("isl")})
    assert scorer.work.nodes - before == trie  # bags only add to the logits
    assert scorer.work.normalisers == contexts * trie
    parents, choices = np.array([0, 1, 2]), np.array([0, 0, 1])
    states = problem.select(successors, parents, choices)  # both orders, and both sentences
    before = scorer.work.nodes
    scores, successors = problem.extend(states, 2)
    words = [text.split() for text in LISTS[2]]
    assert scorer.work.nodes - before == len({tuple(w[:n]) for w in words for n in range(5)})
    np.testing.assert_array_equal(scores[[0, 0]], scores[1:])
    assert states.keys[0] == states.keys[1] != states.keys[2]
    scores, _ = problem.extend(problem.select(successors, np.arange(3), np.zeros(3, np.intp)), 3)
    np.testing.assert_array_equal(scores[0], scores[1])
    for row, path in ((0, (0, 0, 0)), (2, (2, 1, 0))):
        texts = [own[k] for own, k in zip(LISTS, path, strict=False)]
        truth = [score(saved["bags"], "bags", [*texts, text]) for text in LISTS[3]]
        np.testing.assert_allclose(scores[row], truth, atol=1e-3)
    assert np.abs(scores[0] - scores[2]).max() > 1e-2


def test_a_search_from_the_cache_computes_nothing_and_finds_the_same(
    saved: Mapping[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    found = []
    searches = [("beam", Options(width=1)), *[("viterbi", Options())] * 2]
    for method, options in searches:  # a narrow beam, then all that it left out
        scorer = LanguageModel("lm", saved["bags"], cache=cache)
        (scored,) = scorer.score([("evening", kbest(LISTS))])
        found.append(decode(scored.problem, method, options).paths[0])
        scored.keep()
    assert found[1] == found[2]
    assert found[1].score == pytest.approx(max(all_paths(saved["bags"], "bags").values()), abs=1e-3)
    assert scorer.work.nodes == 0


@pytest.mark.parametrize("name", sorted(OURS))
def test_an_interrupted_training_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    whole = trainer_of(name)
    reports = [report for report in whole.run() if report is not None]
    part, again = trainer_of(name), trainer_of(name)
    for update, _ in enumerate(part.run()):
        if update == 4:
            break
    save_training(tmp_path, part)
    load_training(tmp_path, again)
    last = [report for report in again.run() if report is not None][-1]
    assert last.valid_perplexity == reports[-1].valid_perplexity
