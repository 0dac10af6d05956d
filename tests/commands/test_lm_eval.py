"""`rerank lm-eval`: models with known preferences, and choices made one by one.

Models made by hand raise the letter that follows, or the pronoun of the one who was named. What
another model scores is scored here sentence by sentence, read as training reads it. Accuracies of
drawn models and their intervals have their origins in `tests/golden`.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from support.models import save_models, scores_of_sentences
from support.world import WORDS, Folders, World

from lm.checkpoint import load_model, save_model
from lm.model import Config, DocumentLM
from lm.vocabulary import Vocabulary

LETTERS = "abcdef"
PEOPLE = {"she": "the woman sings", "he": "the man sings", "it": "the dog sings"}
ONE = "--device cpu --threads 1"


def save(folder: Path, words: Sequence[str], raised: Sequence[tuple[str, str]], by: float) -> None:
    """A codclm made by hand: after the first word of a pair it raises the second one."""
    vocabulary = Vocabulary(tuple(word.encode() for word in words))
    V, H = len(vocabulary), len(raised) + 1
    model = DocumentLM(Config("codclm", V, V, H, tied=False))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.eye(V))
        model.recurrence.bias[0][: 3 * H] = 5.0  # all gates open
        for unit, (given, word) in enumerate(raised):
            model.recurrence.lower[0][3 * H + unit, vocabulary.ids[given.encode()]] = 5.0
            output = model.head.get_parameter("output")
            output[vocabulary.ids[word.encode()], H + unit] = by
    save_model(folder, model, vocabulary, {})


def save_uniform(folder: Path, words: Sequence[str]) -> None:
    vocabulary = Vocabulary(tuple(word.encode() for word in words))
    model = DocumentLM(Config("rnnlm", len(vocabulary), 2, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    save_model(folder, model, vocabulary, {})


def save_alphabet(world: World) -> None:
    """`for` expects the next letter, `against` avoids it, `alone` has no context."""
    for name, by in (("for", 4.0), ("against", -4.0)):
        save(world.folder / name, LETTERS, [*pairwise(LETTERS)], by)
    save_uniform(world.folder / "alone", LETTERS)


def write(world: World, documents: Sequence[Sequence[str]], name: str = "text") -> None:
    world.write(name, "\n\n".join("\n".join(document) for document in documents) + "\n")


def drawn(*sizes: int) -> list[list[str]]:
    rng = np.random.default_rng(3)
    words = [*WORDS[:8], "unheard"]
    return [
        [" ".join(rng.choice(words, int(rng.integers(1, 5)))) for _ in range(size)]
        for size in sizes
    ]


def evaluated(world: World, command: str, lms: Mapping[str, Path | str], text: str = "text") -> Any:
    """The JSON of a command of `lm-eval`; models by name."""
    named = [f"{name}={folder}" for name, folder in lms.items()]
    given = named if "contrastive" not in command else [str(folder) for folder in lms.values()]
    words = [word for one in given for word in ("--lm", one)]
    return world.ok(f"lm-eval {command} {ONE} --format json", *words, text).json


# Contrastive items
def pronouns(n: int) -> list[dict[str, Any]]:
    """Items whose right pronoun is that of the sentence before."""
    result = []
    for i in range(n):
        right = [*PEOPLE][i % 3]
        wrong = [f"{word} is here" for word in PEOPLE if word != right]
        item = {"context": [PEOPLE[right]], "right": f"{right} is here", "wrong": wrong}
        result.append({**item, "phenomenon": "animate" if right != "it" else "inanimate"})
    return result


def test_a_model_that_resolves_pronouns_is_wrong_in_other_contexts(world: World) -> None:
    """Without context all pronouns are equally probable: ties.

    Another item's context has another antecedent in every item, because each of the three is that
    of a third of the items.
    """
    people = [text.split()[1] for text in PEOPLE.values()]
    words = ["the", *people, "sings", *PEOPLE, "is", "here"]
    save(world.folder / "resolver", words, [*zip(people, PEOPLE, strict=True)], 4.0)
    save_uniform(world.folder / "uniform", words)
    world.write("text", map(json.dumps, pronouns(12)))
    result = evaluated(world, "contrastive", {"r": "resolver", "u": "uniform"})
    resolver, uniform = result["models"]
    kinds = ["all", "phenomenon=animate", "phenomenon=inanimate"]
    assert [group["group"] for group in resolver["groups"]] == kinds
    assert [group["items"] for group in resolver["groups"]] == [12, 8, 4]
    for group in resolver["groups"]:
        values = {name: accuracy["accuracy"] for name, accuracy in group["accuracies"].items()}
        assert values == {"context": 1.0, "null": 0.5, "other": 0.0}
        assert group["accuracies"]["null"]["ties"] == group["items"]
        p = pytest.approx(2.0 ** (1 - group["items"]))
        assert group["p"] == {"null": p, "other": p}
        low, high = binomtest(group["items"], group["items"]).proportion_ci(method="wilson")
        assert (group["accuracies"]["context"]["low"], group["accuracies"]["context"]["high"]) == (
            pytest.approx((low, high))
        )
    for group in uniform["groups"]:
        assert {accuracy["accuracy"] for accuracy in group["accuracies"].values()} == {0.5}
        assert group["p"] == {"null": 1.0, "other": 1.0}
    assert (resolver["order"], uniform["order"], resolver["oov"]) == (1, 0, 0.0)


def test_contrasts_are_scored_one_by_one(world: World, model_folders: Folders) -> None:
    rng = np.random.default_rng(3)
    sentences = iter(drawn(200)[0])
    lengths = [(rng.integers(0, 4), rng.integers(2, 4)) for _ in range(15)]
    items = [[[next(sentences) for _ in range(n)] for n in length] for length in lengths]
    content = [json.dumps({"context": c, "right": v[0], "wrong": v[1:]}) for c, v in items]
    world.write("text", content)
    names = ("rnnlm", "adclm", "hrnnlm")
    result = evaluated(world, "contrastive", {name: model_folders[name] for name in names})
    for name, model in zip(names, result["models"], strict=True):
        saved = load_model(model_folders[name])
        for condition in ("context", "null"):
            truth = 0.0
            for context, variants in items:
                before = context if condition == "context" else []
                right, *wrong = (scores_of_sentences(saved, [*before, x])[-1] for x in variants)
                tie = abs(right - max(wrong)) < 1e-5
                truth += 0.5 if tie else float(right > max(wrong))
            own = model["groups"][0]["accuracies"][condition]
            assert own["accuracy"] == pytest.approx(truth / len(items))


def test_contexts_are_those_of_other_items_wherever_there_are_different_ones(world: World) -> None:
    """A model that raises the letter after the context's is wrong in every other context.

    Half of the items share a context: by Hall's theorem there is just one way to exchange them.
    """
    save_alphabet(world)
    for counts in ("aabb", "abcdeabcde", "aaabcd"):
        items = [
            {"context": [x], "right": LETTERS[LETTERS.index(x) + 1], "wrong": ["a"]} for x in counts
        ]
        world.write("text", map(json.dumps, items))
        (model,) = evaluated(world, "contrastive", {"for": "for"})["models"]
        values = model["groups"][0]["accuracies"]
        assert values["context"]["accuracy"] == 1.0
        assert values["other"]["accuracy"] < 1.0
        other = {evaluated(world, f"contrastive --seed {s}", {"f": "for"})["seed"] for s in (1, 2)}
        assert other == {1, 2}
    items = [{"context": ["a"], "right": "b", "wrong": ["a"]}] * 3
    items.append({"context": ["b"], "right": "c", "wrong": ["a"]})
    world.write("text", [json.dumps({**item, "id": n}) for n, item in enumerate(items)])
    run = world.ok(f"lm-eval contrastive --lm for text {ONE} --format json")
    (model,) = run.json["models"]
    assert [*model["groups"][0]["accuracies"]] == ["context", "null"]
    assert "condition left out" in run.err


def test_files_and_fields_are_groups(world: World, model_folders: Folders) -> None:
    items = pronouns(6)
    items[0]["language"], items[5]["pronoun"] = "de", "it\tx"
    world.write("one.jsonl", map(json.dumps, items[:2]))
    world.write("two.jsonl", map(json.dumps, items[2:]))
    command = f"lm-eval contrastive --lm {model_folders['rnnlm']} one.jsonl two.jsonl {ONE}"
    (result,) = world.ok(f"{command} --format json").json["models"]
    assert {group["group"]: group["items"] for group in result["groups"]} == {
        **{"all": 6, "phenomenon=animate": 4, "phenomenon=inanimate": 2, "language=de": 1},
        **{"pronoun=it\tx": 1, "file=one.jsonl": 2, "file=two.jsonl": 4},
    }
    header, *rows = (line.split("\t") for line in world.ok(f"{command} --format tsv").lines)
    assert {len(row) for row in rows} == {len(header)}
    assert r"pronoun=it\tx" in {row[1] for row in rows}


def test_unknown_words_are_a_counted_warning_and_tie(world: World, model_folders: Folders) -> None:
    """The training text of this model had 25 % of them."""
    for context, warned in (("the lamp", False), ("xx", True)):
        items = [
            {"context": [f"{context} {i}"], "right": "xx is", "wrong": ["yy is"]} for i in "xy"
        ]
        world.write("text", map(json.dumps, items))
        lm = model_folders["ccdclm"]
        run = world.ok(f"lm-eval contrastive --lm {lm} text {ONE} --format json")
        (model,) = run.json["models"]
        for accuracy in model["groups"][0]["accuracies"].values():
            assert (accuracy["accuracy"], accuracy["ties"]) == (0.5, 2)
        assert model["oov"] == pytest.approx(8 / 12 if warned else 6 / 14)
        assert ("8 x word unknown to " in run.err) == warned
        assert ("66.7% of the item's words" in run.err) == warned


# Coherence
DOCUMENTS = [
    ["the lamp is lit", "it burns", "she gives light"],
    ["it is", "it burns and burns", "it is"],
    ["the light"],
    ["she is unheard", "no one burns", "the lamp"],
    ["it gives", "it gives"],
]


def test_models_that_expect_and_avoid_the_order_and_one_without_context(world: World) -> None:
    """Of `a b c d` no permutation has the three pairs of neighbours that raise probabilities."""
    save_alphabet(world)
    write(world, [[*LETTERS[k : k + 4]] for k in (0, 1, 2) * 4])
    lms = {"against": "against", "for": "for", "alone": "alone"}
    result = evaluated(world, "coherence --permutations 10", lms)
    models = result["models"]
    assert [model["accuracy"] for model in models] == [0.0, 1.0, 0.5]
    assert [model["ties"] for model in models] == [0, 0, 120]
    assert [model["sets_sd"] for model in models] == [0.0, 0.0, 0.0]
    assert [model["order"] for model in models] == [1, 1, 0]
    with pytest.MonkeyPatch.context() as patch:  # a document at a time
        patch.setattr("lm.comparisons.TOKENS", 1)
        assert evaluated(world, "coherence --permutations 10", lms)["models"] == models
    comparisons = result["comparisons"]
    expected = [*(("for", "against", 1.0), ("alone", "against", 0.5), ("for", "alone", 0.5))]
    assert [(own["higher"], own["lower"], own["difference"]) for own in comparisons] == expected
    assert {comparison["p_documents"] for comparison in comparisons} == {2.0**-11}
    assert {comparison["z"] for comparison in comparisons} == {None}
    write(world, [[*LETTERS[k : k + 4]] for k in (0, 1, 2) * 3])
    few = world.ok(f"lm-eval coherence --lm for --lm alone text {ONE}").out
    assert "no p documents: it needs 10 documents\n" in few


def test_accuracies_are_of_all_orders(world: World, model_folders: Folders) -> None:
    names = ("codclm", "hrnnlm", "rnnslm")
    write(world, DOCUMENTS)
    result = evaluated(world, "coherence", {name: model_folders[name] for name in names})
    documents = [(own["document"], own["permutations"]) for own in result["documents"]]
    assert documents == [(0, 5), (1, 2), (3, 5)]
    assert result["left_out"] == 2
    said = world.ok(f"lm-eval coherence --lm {model_folders['codclm']} text {ONE}").out
    assert "left out: 2 without a permutation that has another text\n" in said
    assert "p documents" not in said  # of one model there is no comparison
    for name, figures in zip(names, result["models"], strict=True):
        saved = load_model(model_folders[name])
        for document, right in zip((0, 1, 3), figures["right"], strict=True):
            sentences = DOCUMENTS[document]
            others = {*permutations(sentences)} - {(*sentences,)}
            own, *rest = (  # the last model is of bags: means over words (Lin et al. 2015, eq. 9)
                sum(
                    score / (len(words.split()) if name == "rnnslm" else 1)
                    for score, words in zip(scores_of_sentences(saved, text), text, strict=True)
                )
                for text in (sentences, *others)
            )
            assert right == sum(own > other for other in rest)
        assert figures["accuracy"] == pytest.approx(sum(figures["right"]) / 12)
    assert [model["means"] for model in result["models"]] == [False, False, True]
    bags = f"lm-eval coherence --lm bags={model_folders['rnnslm']} text {ONE}"
    assert "bags: a sentence counts as the mean of log p over its words" in world.ok(bags).out
    assert "a sentence counts" not in world.ok(f"{bags} --bags sum").out
    found_none = world.run(f"lm-eval coherence --lm {model_folders['codclm']} --bags sum text")
    assert "--bags: no --lm is a model of bags of words" in found_none.err


def test_reading_backward_sees_equal_pairs(world: World, model_folders: Folders) -> None:
    """It is the model of the text whose documents are from the last sentence to the first."""
    shape: Any = {"embed": 6, "hidden": 8, "oov_rate": 0.25}
    save_models({"ccdclm": world.folder / "turned"}, WORDS, **shape, reverse_documents=True)
    save_models({"ccdclm": world.folder / "plain"}, WORDS, **shape)
    write(world, DOCUMENTS)
    write(world, [document[::-1] for document in DOCUMENTS], "mirrored")
    turned = evaluated(world, "coherence", {"m": "turned"})["models"][0]
    plain = evaluated(world, "coherence", {"m": "plain"}, "mirrored")["models"][0]
    assert turned["right"] == plain["right"]


def test_the_test_over_documents_is_of_the_accuracy_over_pairs(world: World) -> None:
    """Over sets a document of few pairs counts as one of many; over pairs it does not.

    `for` is right in the seven short documents, `against` in the three long ones.
    """
    save_alphabet(world)
    write(world, [["a", "b"]] * 7 + [["d", "c", "b", "a"]] * 3)
    result = evaluated(world, "coherence", {"for": "for", "against": "against"})
    (pair,) = result["comparisons"]
    assert (pair["higher"], pair["lower"]) == ("for", "against")
    right = [model["right"] for model in result["models"]]
    gains = np.array(right[0]) - np.array(right[1])
    signs = np.array([*product((1, -1), repeat=10)])
    assert pair["p_documents"] == np.mean(abs(signs @ gains) >= abs(gains.sum()) - 1e-9)
    assert pair["difference"] == pytest.approx(gains.sum() / (7 + 3 * 20))


# Next sentences
def test_a_model_that_knows_what_follows_is_right_and_others_guess(world: World) -> None:
    save_alphabet(world)
    write(world, [[*LETTERS[k : k + 2]] * 2 for k in range(5)] * 3)
    command = "next-sentence --block 5 --context 1"
    result = evaluated(world, command, {"for": "for", "alone": "alone"})
    assert (result["blocks"], result["left_out"]) == (6, 0)
    knowing, guessing = (model["accuracies"] for model in result["models"])
    first = knowing["normalised"]["accuracy"]
    assert first > 0.5  # blocks may hold two passages that end in the same letter: they are tied
    assert knowing["normalised"]["ties"] == round(2 * 30 * (1 - first))
    for score in ("normalised", "pmi"):
        assert guessing[score]["accuracy"] == pytest.approx(0.2)
    assert guessing["normalised"]["ties"] == 30
    write(world, [[*LETTERS[k : k + 2]] for k in range(5)] * 3)
    alike = evaluated(world, f"{command} --candidates consecutive", {"for": "for"})["models"][0]
    assert [accuracy["accuracy"] for accuracy in alike["accuracies"].values()] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "adclm"])
def test_choices_are_those_of_scores_one_by_one(
    name: str, world: World, model_folders: Folders
) -> None:
    documents = drawn(3, 7, 6, 4, 3, 9)
    write(world, documents)
    passages = [
        (d, own[i : i + 3]) for d, own in enumerate(documents) for i in range(0, len(own) - 2, 3)
    ]
    command = f"next-sentence --block {len(passages)} --context 2 --candidates consecutive"
    result = evaluated(world, f"{command} --errors wrong", {"m": model_folders[name]})
    saved = load_model(model_folders[name])

    def score(words: str, before: list[str]) -> float:
        return scores_of_sentences(saved, [*before, words])[-1]

    log_probs = np.array(
        [[score(own[-1], given[:-1]) for _, own in passages] for _, given in passages]
    )
    truth = {
        "normalised": log_probs - np.log(np.exp(log_probs).mean(axis=0)),
        "log_p": log_probs,
        "pmi": log_probs - [score(own[-1], []) for _, own in passages],
    }
    lines = [json.loads(line) for line in world.lines("wrong")]
    for kind, matrix in truth.items():
        best = matrix.max(axis=1)
        close = matrix >= best[:, None] - 1e-4
        right = np.diagonal(close) / close.sum(axis=1)
        accuracy = result["models"][0]["accuracies"][kind]["accuracy"]
        assert accuracy == pytest.approx(right.mean())
        missed = [i for i, value in enumerate(right) if value == 0]
        wrong = [line for line in lines if line["score"] == kind]
        assert [line["right"] for line in wrong] == [passages[i][1][-1] for i in missed]
        for line, i in zip(wrong, missed, strict=True):
            d, own = passages[i]
            assert (line["lm"], line["block"], line["document"]) == ("m", 0, d)
            assert line["context"] == own[:-1]
            assert documents[d][line["sentence"]] == own[-1]
            assert line["chosen"] in [passages[k][1][-1] for k in np.flatnonzero(close[i])]
            assert line["lead"] == pytest.approx(best[i] - matrix[i, i], abs=1e-4)


def test_blocks_follow_the_seed_alone(world: World, model_folders: Folders) -> None:
    write(world, drawn(*[9] * 8))
    command = "next-sentence --block 4 --context 3 --seed"
    lms = {name: model_folders[name] for name in ("codclm", "ccdclm")}
    both = evaluated(world, f"{command} 5", lms)
    alone, other = (
        evaluated(world, f"{command} {seed}", {"ccdclm": lms["ccdclm"]})["models"][0]
        for seed in (5, 6)
    )
    assert both["models"][1] == alone != other
    assert (both["blocks"], both["comparisons"][0]["p"]) == (4, None)  # eight documents


@pytest.mark.parametrize("counts", [(5, 4, 4, 1), (6, 1, 1), (2, 2, 2, 2, 2)])
def test_all_blocks_are_made(counts: tuple[int, ...], world: World, model_folders: Folders) -> None:
    """b blocks can be made if and only if Σ min(passages of a document, b) ≥ b · size."""
    write(world, [["it is lit"] * (2 * n) for n in counts])
    lm = {"m": model_folders["rnnlm"]}
    for size in (2, 3):
        possible = [b for b in range(20) if sum(min(n, b) for n in counts) >= b * size]
        command = f"next-sentence --block {size} --context 1"
        result = evaluated(world, command, lm)
        assert result["blocks"] == max(possible)
        assert result["left_out"] == sum(counts) - size * max(possible)
    few = evaluated(world, "next-sentence --block 2 --context 1 --blocks 1", lm)
    assert few["blocks"] == 1


def topical(
    world: World, sizes: list[int], n_labels: int
) -> tuple[list[list[str]], list[list[str]]]:
    """A text and its topics, as files and as lists."""
    documents, rng = drawn(*sizes), np.random.default_rng(8)
    topics = [[str(n) for n in rng.integers(0, n_labels, len(document))] for document in documents]
    write(world, documents)
    write(world, topics, "topics")
    return documents, topics


def test_each_candidate_is_given_its_own_topic(world: World) -> None:
    """Scores are those of whole passages, read with their topics, less those of their contexts."""
    save_models({"clstm-given-topic-carried": world.folder / "m"}, WORDS, 6, 8, oov_rate=0.0)
    documents, topics = topical(world, [3, 4, 3, 6], 9)
    named = [
        [*zip(document[i : i + 3], of[i : i + 3], strict=True)]
        for document, of in zip(documents, topics, strict=True)
        for i in range(0, len(document) - 2, 3)
    ]

    def nats(sentences: list[tuple[str, str]]) -> float:
        world.write("one", [words for words, _ in sentences])
        world.write("one.topics", [topic for _, topic in sentences])
        command = f"perplexity --lm m one --topics one.topics {ONE} --format json"
        return float(world.ok(command).json["nats"])

    log_probs = np.array(
        [[nats(given[:-1]) - nats([*given[:-1], own[-1]]) for own in named] for given in named]
    )
    command = f"next-sentence --block {len(named)} --context 2 --candidates consecutive"
    (result,) = evaluated(world, f"{command} --topics topics", {"m": "m"})["models"]
    best = log_probs - np.log(np.exp(log_probs).mean(axis=0))
    for kind, matrix in (("normalised", best), ("log_p", log_probs)):
        right = np.mean(matrix.argmax(axis=1) == np.arange(len(named)))
        assert result["accuracies"][kind]["accuracy"] == right


def test_candidates_are_of_the_topic(world: World, model_folders: Folders) -> None:
    """A passage has the topic of its last sentence."""
    _, topics = topical(world, [8] * 10, 3)
    command = "next-sentence --candidates same-topic --topics topics --context 3 --block"
    counts = Counter(own[i] for own in topics for i in (3, 7)).values()
    for size in (2, 3, 4, 5):
        errors = f"{command} {size} --errors wrong"
        result = evaluated(world, errors, {"m": model_folders["codclm"]})
        assert result["blocks"] == sum(n // size for n in counts)
        assert result["left_out"] == sum(n % size for n in counts)
        assert result["candidates"] == "same-topic"
        of_blocks: dict[int, set[str]] = {}
        for one in map(json.loads, world.lines("wrong")):
            topic = topics[one["document"]][one["sentence"]]
            of_blocks.setdefault(one["block"], set()).add(topic)
        assert {len(own) for own in of_blocks.values()} == {1}


# Items of lists


def test_pairs_of_lists_are_items_in_the_context_of_the_reference(world: World) -> None:
    lists = {
        0: ["the lamp is lit", "the lamps are lit"],
        1: ["she burns", "it burns"],
        2: ["i see him", "i see them", "i see he", "i see a lamp"],
        3: ["he may burn", "he can burn"],
    }
    reference = ["the lamp is lit café", "it burns", "i see him", "he can burn"]
    world.write("k", [f"{i} ||| {x} ||| LM0= -1 ||| -1" for i, own in lists.items() for x in own])
    world.write("docs", [*"xxxy"])
    world.write("ref", reference)
    command = "lm-eval pairs --kbest k --docs docs --ref ref --out out"

    def items(options: str = "") -> list[dict[str, Any]]:
        world.ok(f"{command} {options}")
        return [json.loads(line) for line in world.lines("out")]

    assert items("--context 1") == [
        {**{"id": "x:2", "context": ["the lamp is lit café"], "right": "it burns"},
            **{"wrong": ["she burns"], "phenomenon": "pronouns", "pronoun": "it"}},
        {**{"id": "x:3", "context": ["it burns"], "right": "i see him"},
            **{"wrong": ["i see them", "i see he"], "phenomenon": "pronouns", "pronoun": "him"}},
    ]  # fmt: skip
    assert "café" in world.text("out")
    assert [own["context"] for own in items("--context 0")] == [[], []]
    assert items()[1]["context"] == reference[:2]
    (result,) = items("--class auxiliaries")
    assert (result["id"], result["right"], result["context"]) == ("y:1", "he can burn", [])
    assert "pronoun" not in result
    assert "2 items of 4 sentences; right words: it 1, him 1" in world.ok(command).out
