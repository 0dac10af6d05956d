"""`lm-eval coherence`: accuracies of models with known preferences, and against brute force."""

from collections.abc import Mapping
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from support.models import save_models, scores_of_sentences

from lm.checkpoint import load_model, save_model
from lm.model import Config, DocumentLM
from lm.vocabulary import Vocabulary
from rerank.errors import InputError, RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import coherence
from rerank.report.coherence import CoherenceReport

LETTERS = "abcdef"
DOCUMENTS = [
    ["the lamp is lit", "it burns", "she gives light"],
    ["it is", "it burns and burns", "it is"],
    ["the light"],
    ["she is unheard", "no one burns", "the lamp"],
    ["it gives", "it gives"],
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, documents: list[list[str]]) -> str:
    Path(name).write_text("\n\n".join("\n".join(own) for own in documents) + "\n")
    return name


def run(lms: Mapping[str, Path | str], text: str, **options: Any) -> CoherenceReport:
    named = [(name, Path(folder)) for name, folder in lms.items()]
    return coherence(named, text, notices=Notices(), device="cpu", **options)


def save_alphabet(folder: str, sign: float) -> None:
    """A codclm made by hand: after a letter it raises (or lowers) the next one of the alphabet."""
    vocabulary = Vocabulary(tuple(letter.encode() for letter in LETTERS))
    V, H = len(vocabulary), len(LETTERS)
    model = DocumentLM(Config("codclm", V, V, H, tied=False))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.eye(V))
        model.recurrence.bias[0][: 3 * H] = 5.0  # all gates open
        for unit, (letter, after) in enumerate(pairwise(LETTERS)):
            model.recurrence.lower[0][3 * H + unit, vocabulary.ids[letter.encode()]] = 5.0
            output = model.head.get_parameter("output")
            output[vocabulary.ids[after.encode()], H + unit] = 4.0 * sign
    save_model(Path(folder), model, vocabulary, {})


def test_models_that_expect_and_avoid_the_order_and_one_without_context() -> None:
    """Of `a b c d` no permutation has the three pairs of neighbours that raise probabilities."""
    save_alphabet("for", 1.0)
    save_alphabet("against", -1.0)
    model = DocumentLM(Config("rnnlm", 9, 2, 2))
    vocabulary = Vocabulary(tuple(letter.encode() for letter in LETTERS))
    save_model(Path("alone"), model, vocabulary, {})
    text = write("text", [[*LETTERS[k : k + 4]] for k in (0, 1, 2) * 4])
    found = run({"against": "against", "for": "for", "alone": "alone"}, text, permutations=10)
    assert [own.accuracy for own in found.models] == [0.0, 1.0, 0.5]
    assert [own.ties for own in found.models] == [0, 0, 120]
    assert [own.sets_sd for own in found.models] == [0.0, 0.0, 0.0]
    assert [own.model.order for own in found.models] == [1, 1, 0]
    assert [(own.higher, own.lower, own.difference) for own in found.comparisons] == [
        ("for", "against", 1.0),
        ("alone", "against", 0.5),
        ("for", "alone", 0.5),
    ]
    assert {own.p_documents for own in found.comparisons} == {2.0**-11}
    assert {own.z for own in found.comparisons} == {None}


def test_accuracies_are_those_of_all_permutations_one_by_one(
    model_folders: Mapping[str, Path],
) -> None:
    names = ("codclm", "ccdclm", "hrnnlm", "rnnslm")
    found = run({name: model_folders[name] for name in names}, write("text", DOCUMENTS))
    assert [(own.document, own.permutations) for own in found.documents] == [(0, 5), (1, 2), (3, 5)]
    assert found.left_out == 2
    for name, figures in zip(names, found.models, strict=True):
        saved = load_model(model_folders[name])
        for document, right in zip((0, 1, 3), figures.right, strict=True):
            sentences = DOCUMENTS[document]
            own = sum(scores_of_sentences(saved, sentences))
            others = {*permutations(sentences)} - {(*sentences,)}
            assert right == sum(own > sum(scores_of_sentences(saved, other)) for other in others)


def test_a_model_that_reads_documents_backward_sees_the_same_pairs(
    model_folders: Mapping[str, Path],
) -> None:
    """It is the model of the text whose documents are from the last sentence to the first."""
    saved = load_model(model_folders["ccdclm"])
    words = [word.decode() for word in saved.vocabulary.words]
    save_models({"ccdclm": Path("turned")}, words, 6, 8, oov_rate=0.25, reverse_documents=True)
    save_models({"ccdclm": Path("plain")}, words, 6, 8, oov_rate=0.25)
    turned = run({"m": "turned"}, write("text", DOCUMENTS))
    plain = run({"m": "plain"}, write("mirrored", [own[::-1] for own in DOCUMENTS]))
    assert turned.models[0].right == plain.models[0].right


def test_permutations_are_a_function_of_seed_and_document(
    model_folders: Mapping[str, Path],
) -> None:
    documents = [[f"{a} is {b}" for b in ("lit", "no", "light") for a in ("she", "it")]] * 4
    text, folder = write("text", documents), {"m": model_folders["codclm"]}
    one, again, other = (run(folder, text, permutations=99, seed=seed) for seed in (1, 1, 2))
    assert one.to_dict() == again.to_dict()
    assert one.models[0].right != other.models[0].right
    assert len(set(one.models[0].right)) > 1  # equal documents have other permutations
    longer = run(folder, write("longer", [*documents, ["it", "she"]]), permutations=99)
    assert longer.models[0].right[:4] == one.models[0].right


def test_many_unknown_words_are_a_counted_warning(model_folders: Mapping[str, Path]) -> None:
    notices = Notices()
    text = write("text", [["xx yy", "zz it"]])
    coherence([("m", model_folders["ccdclm"])], text, notices=notices, device="cpu")
    (line,) = notices.lines()
    assert line.startswith("3 x word unknown to m (75.0% of the text's words")


def test_a_text_without_permutations_is_refused(model_folders: Mapping[str, Path]) -> None:
    text = write("text", [["it is"], ["it", "it"]])
    with pytest.raises(InputError, match=r"text: expected a document of two different sentences"):
        run({"m": model_folders["codclm"]}, text)


def test_models_without_log_probabilities_of_documents_are_refused(
    model_folders: Mapping[str, Path],
) -> None:
    words = [word.decode() for word in load_model(model_folders["rnnlm"]).vocabulary.words]
    names = "dclm-bilingual", "dclm-right-target", "clstm-given-topic"
    save_models({name: Path(name) for name in names}, words, 6, 8, oov_rate=0.0)
    text = write("text", DOCUMENTS)
    told = "needs the source sentences", "add up to no log-probability of a document", "needs the t"
    for name, message in zip(names, told, strict=True):
        with pytest.raises(UsageError, match=f"{name}: .*{message}.*choose another model"):
            run({"good": model_folders["rnnlm"], "m": name}, text)


def test_names_are_given_once(model_folders: Mapping[str, Path]) -> None:
    twice = [("m", model_folders["rnnlm"]), ("m", model_folders["codclm"])]
    with pytest.raises(
        UsageError, match="--lm m: given 2 times; give each model a name of its own"
    ):
        coherence(twice, write("text", DOCUMENTS), notices=Notices())


def test_a_broken_model_is_told_with_its_folder(model_folders: Mapping[str, Path]) -> None:
    saved = load_model(model_folders["rnnlm"])
    with torch.no_grad():
        saved.model.head.get_parameter("bias").fill_(torch.nan)
    save_model(Path("broken"), saved.model, saved.vocabulary, {})
    with pytest.raises(RerankError, match="broken: a language model returned NaN"):
        run({"m": "broken"}, write("text", DOCUMENTS))
