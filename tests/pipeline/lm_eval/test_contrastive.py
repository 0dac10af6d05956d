"""`lm-eval contrastive`: accuracies of models with known preferences, groups, other contexts."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lm.checkpoint import SavedModel, load_model, save_model
from lm.engine import ScoringEngine
from lm.model import Config, DocumentLM
from lm.scoring import after
from lm.tiny_models import context_after
from lm.trie import Candidates
from lm.vocabulary import Vocabulary
from rerank.errors import InputError, RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import contrastive
from rerank.pipeline.lm_eval.contrastive import contexts_of_others
from rerank.report.contrastive import ContrastiveReport, GroupAccuracy

PEOPLE = {"she": "the woman sings", "he": "the man sings", "it": "the dog sings"}


def write(name: str, items: Sequence[Mapping[str, object]]) -> str:
    Path(name).write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return name


def pronouns(n: int) -> list[dict[str, object]]:
    """Items whose right pronoun is that of the sentence before."""
    found: list[dict[str, object]] = []
    for i in range(n):
        right = list(PEOPLE)[i % 3]
        wrong = [f"{word} is here" for word in PEOPLE if word != right]
        phenomenon = "animate" if right != "it" else "inanimate"
        item = {"context": [PEOPLE[right]], "right": f"{right} is here"}
        found.append({**item, "wrong": wrong, "phenomenon": phenomenon})
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save_resolver(folder: str) -> str:
    """A codclm made by hand: its state remembers woman, man or dog, and raises the pronoun by 4."""
    people = [text.split()[1] for text in PEOPLE.values()]
    words = ["the", *people, "sings", *PEOPLE, "is", "here"]
    vocabulary = Vocabulary(tuple(word.encode() for word in words))
    V, H = len(vocabulary), len(people)
    model = DocumentLM(Config("codclm", V, V, H, tied=False))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.eye(V))
        model.recurrence.bias[0][: 3 * H] = 5.0  # all gates open
        for unit, (person, pronoun) in enumerate(zip(people, PEOPLE, strict=True)):
            model.recurrence.lower[0][3 * H + unit, vocabulary.ids[person.encode()]] = 5.0
            output = model.head.get_parameter("output")
            output[vocabulary.ids[pronoun.encode()], H + unit] = 4.0
    save_model(Path(folder), model, vocabulary, {})
    model = DocumentLM(Config("rnnlm", V, 2, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    save_model(Path("uniform"), model, vocabulary, {})
    return folder


def run(lms: Sequence[str | Path], *files: str, **options: int) -> ContrastiveReport:
    return contrastive([*map(Path, lms)], files, notices=Notices(), device="cpu", **options)


def score(saved: SavedModel, words: str, before: Sequence[str]) -> float:
    """Log p of a sentence after others, read word by word."""
    ids, *text = (saved.vocabulary.encode(s.encode().split(b" ")) for s in (words, *before))
    request = Candidates.of([[ids]]), context_after(saved.model, text)
    return float(after(ScoringEngine.of(saved.model), [request])[0][0][0, 0])


def accuracies(group: GroupAccuracy) -> dict[str, float]:
    return {condition: found.accuracy for condition, found in group.accuracies.items()}


def test_a_model_that_resolves_pronouns_is_right_with_context_and_wrong_with_anothers(
    here: Path,
) -> None:
    """Without context all pronouns are equally probable: ties.

    Another item's context has another antecedent in every item, because each of the three is that
    of a third of the items.
    """
    found = run([save_resolver("resolver"), "uniform"], write("set.jsonl", pronouns(12)))
    resolver, uniform = found.models
    assert [group.group for group in resolver.groups] == [
        *("all", "phenomenon=animate", "phenomenon=inanimate"),
    ]
    assert [group.items for group in resolver.groups] == [12, 8, 4]
    for group in resolver.groups:
        assert accuracies(group) == {"context": 1.0, "null": 0.5, "other": 0.0}
        assert group.accuracies["null"].ties == group.items
        assert group.p == {c: pytest.approx(2.0 ** (1 - group.items)) for c in ("null", "other")}
    for group in uniform.groups:
        assert accuracies(group) == {"context": 0.5, "null": 0.5, "other": 0.5}
        assert group.p == {"null": 1.0, "other": 1.0}
    assert (resolver.order, uniform.order, resolver.oov) == (1, 0, 0.0)


def test_accuracies_are_those_of_scores_one_by_one(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    words = ["the", "lamp", "is", "lit", "it", "she", "burns", "light", "unheard"]
    rng = np.random.default_rng(3)

    def sentence() -> str:
        return " ".join(rng.choice(words, int(rng.integers(1, 5))))

    def sentences(least: int, most: int) -> list[str]:
        return [sentence() for _ in range(int(rng.integers(least, most)))]

    items = [(sentences(0, 4), [sentence(), *sentences(1, 3)]) for _ in range(15)]
    file = write("set.jsonl", [{"context": c, "right": v[0], "wrong": v[1:]} for c, v in items])
    for folder in model_folders.values():
        (found,) = run([folder], file).models
        saved = load_model(folder)

        for condition in ("context", "null"):
            truth = 0
            for context, variants in items:
                before = context if condition == "context" else []
                right, *wrong = (score(saved, words, before) for words in variants)
                truth += right > max(wrong)
            assert found.groups[0].accuracies[condition].accuracy == truth / len(items)


def test_variants_that_a_model_cannot_tell_apart_are_ties(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    items = [{"context": [f"the lamp {i}"], "right": "xx is", "wrong": ["yy is"]} for i in "xy"]
    notices = Notices()
    found = contrastive(
        [model_folders["ccdclm"]], [write("set.jsonl", items)], notices=notices, device="cpu"
    )
    for accuracy in found.models[0].groups[0].accuracies.values():
        assert (accuracy.accuracy, accuracy.ties) == (0.5, 2)
    assert found.models[0].oov == pytest.approx(6 / 14)
    assert notices.lines() == []  # its training text had 25 %


def test_many_unknown_words_are_a_counted_warning(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    notices = Notices()
    items = [{"context": [f"xx {i}"], "right": "xx is", "wrong": ["yy is"]} for i in "xy"]
    contrastive([model_folders["ccdclm"]], [write("set.jsonl", items)], notices=notices)
    (line,) = notices.lines()
    assert line.startswith("8 x word unknown to ")
    assert "66.7% of the item's words" in line


def test_files_fields_and_their_values_are_groups(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    items = pronouns(6)
    items[0]["language"], items[5]["pronoun"] = "de", "it"
    files = write("one.jsonl", items[:2]), write("two.jsonl", items[2:])
    (found,) = run([model_folders["rnnlm"]], *files).models
    assert {group.group: group.items for group in found.groups} == {
        "all": 6,
        "phenomenon=animate": 4,
        "phenomenon=inanimate": 2,
        "language=de": 1,
        "pronoun=it": 1,
        "file=one.jsonl": 2,
        "file=two.jsonl": 4,
    }


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(0, 99))
def test_others_are_a_permutation_to_different_contexts_wherever_there_is_one(
    contexts: list[int], seed: int
) -> None:
    found = contexts_of_others(contexts, np.random.default_rng(seed))
    if 2 * max(Counter(contexts).values()) > len(contexts):  # by Hall's theorem there is none
        assert found is None
        return
    assert found is not None
    assert sorted(found.tolist()) == list(range(len(contexts)))
    assert all(contexts[i] != contexts[k] for i, k in enumerate(found.tolist()))
    again = contexts_of_others(contexts, np.random.default_rng(seed))
    assert found.tolist() == (again.tolist() if again is not None else None)


def test_the_seed_decides_whose_context_an_item_is_given() -> None:
    one, two, three = (
        contexts_of_others(range(50), np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one is not None
    assert two is not None
    assert three is not None
    assert one.tolist() == two.tolist() != three.tolist()


def test_contexts_of_which_most_are_equal_leave_a_condition_out(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    items = [{**item, "context": ["the lamp"]} for item in pronouns(3)]
    notices = Notices()
    file = write("set.jsonl", items)
    found = contrastive([model_folders["codclm"]], [file], notices=notices, device="cpu")
    assert [*found.models[0].groups[0].accuracies] == ["context", "null"]
    assert any("condition left out" in line for line in notices.lines())


def test_models_and_files_are_named_once(here: Path, model_folders: Mapping[str, Path]) -> None:
    file, folder = write("set.jsonl", pronouns(3)), model_folders["rnnlm"]
    with pytest.raises(UsageError, match=r"set\.jsonl: given 2 times; give it once"):
        run([folder], file, file)
    with pytest.raises(UsageError, match=r"--lm .*: given 2 times; give it once"):
        run([folder, folder], file)


def test_a_missing_or_broken_model_is_told(here: Path, model_folders: Mapping[str, Path]) -> None:
    file = write("set.jsonl", pronouns(3))
    with pytest.raises(InputError, match="nowhere: expected a folder made by `rerank train-lm`"):
        run([model_folders["rnnlm"], "nowhere"], file)
    saved = load_model(model_folders["rnnlm"])
    with torch.no_grad():
        saved.model.head.get_parameter("bias").fill_(torch.nan)
    save_model(Path("broken"), saved.model, saved.vocabulary, {})
    with pytest.raises(RerankError, match="broken: a language model returned NaN"):
        run(["broken"], file)
