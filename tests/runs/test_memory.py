"""Memory: candidates in files, smaller batches, models that no memory holds; lists in memory."""

import re

import pytest
import torch
from support.runs import decoding, recalled, taken
from support.world import World

import rerank
from rerank import Document, Reranker, RerankError


@pytest.mark.parametrize("model", ["codclm", "ccdclm"])
def test_candidates_that_do_not_fit_lie_in_files(model: str, drawn: World) -> None:
    drawn.ok(decoding(model))
    expected = taken(drawn)
    run = drawn.ok(decoding(model, "--deterministic --no-cache --memory 256M"))
    assert "candidates that did not fit into memory: " in run.err
    assert taken(drawn) == expected


FAULTS = {
    "python": MemoryError(),
    "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    "cpu": RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
    "cublas": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
    "c++": RuntimeError("std::bad_alloc"),
}


@pytest.mark.parametrize(
    ("model", "fault"),
    [*zip(("rnnlm", "codclm", "hrnnlm", "dclm-right-target", "adclm"), FAULTS, strict=True)],
)
def test_a_model_that_is_short_of_memory_gives_the_same_scores_in_smaller_batches(
    model: str, fault: str, drawn: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm.backend import Backend

    drawn.model(model)
    command = "score --kbest dev.kbest --docs dev.docs --lm lm=lm --no-cache --out"
    drawn.ok(f"{command} whole")
    real, asked = Backend.tokens, list[int]()

    def scarce(self: Backend, hidden: int) -> int:
        asked.append(real(self, hidden))
        if asked[-1] > most:
            raise FAULTS[fault]
        return asked[-1]

    monkeypatch.setattr(Backend, "tokens", scarce)
    most = real(Backend(), 8) // 4
    run = drawn.ok(f"{command} parts")
    assert asked[:3] == [4 * most, 2 * most, most]
    assert {*asked[3:]} <= {most}
    told = "1 x language model that ran out of memory and went on with smaller batches: lm"
    assert told in run.err
    for line, other in zip(drawn.lines("whole"), drawn.lines("parts"), strict=True):
        assert values(line) == pytest.approx(values(other), abs=1e-4)
    most = 0
    failed = drawn.run(f"{command} none")
    assert failed.exit == 1
    assert re.search(r"scorer 'lm', document 'x'.*memory.*--top", failed.err)


def values(line: str) -> list[float]:
    return [float(word) for word in line.split(" ||| ")[2].split() if not word.endswith("=")]


def test_a_model_that_no_memory_holds_is_refused_before_the_text_is_read(world: World) -> None:
    """An LSTM of H cells with E inputs has 4 H (E + H) weights or more, each of 16 bytes here."""
    sizes = f"--hidden {1 << 16} --layers 64"
    run = world.run(f"train-lm --model rnnlm --train no --valid no --out lm {sizes} --device cpu")
    needed = re.search(r"training needs more than ([0-9,]+) GB, cpu has", run.err)
    assert needed is not None, run.err
    least = 16 * 64 * 4 * (1 << 16) ** 2 / 1e9
    assert least < float(needed[1].replace(",", "")) < 3 * least
    assert (run.exit, (world.folder / "lm").exists()) == (2, False)


# Documents in memory
def test_features_of_documents_are_known_by_name_in_any_order() -> None:
    one = Document("one", [[("a", {"x": 1.0, "y": 0.0})]])
    two = Document("two", [[("b", {"y": 0.25, "x": 2.0}), ("c", {"y": 4.0, "x": 0.0})]])
    results = Reranker({"x": 1.0, "y": 0.125}).decode([one, two])
    assert [result.score for result in results] == [1.0, 2.0 + 0.25 / 8]
    three = Document("three", two.sentences)
    with pytest.raises(RerankError, match="three: expected the features of the first document, x"):
        Reranker({"x": 1.0}).decode([Document("o", [[("a", {"x": 1.0})]]), three])


def test_documents_are_read_as_they_are_decoded(world: World) -> None:
    """A fault at the end of a long list is found when the reading comes to it."""
    n, words = 900, "word " * 400
    lines = [f"{t} ||| {words}{k} ||| x= {k} ||| 0" for t in range(n) for k in (1, 2)]
    world.write("long", [*lines, "not a line"])
    world.write("docs", [f"{t}-talk" for t in range(n)])
    lists = rerank.read("long", "docs")
    few = (document for document, _ in zip(lists, range(5), strict=False))
    assert [one.choices for one in Reranker({"x": 1.0}).decode(few)] == [(1,)] * 5
    with pytest.raises(RerankError, match=rf"long:{2 * n + 1}: "):
        list(lists)


@pytest.mark.parametrize(
    ("model", "keys", "options"),
    [
        ("codclm", ",pmi=yes,document-cache=0.2", ""),
        ("ccdclm", "", ""),
        ("dclm-bilingual-decoupled", "", "--source dev.src"),
        ("dclm-right-target", "", ""),
    ],
)
@pytest.mark.filterwarnings("ignore:source word unknown to lm")
def test_documents_in_memory_have_the_choices_and_scores_of_files(
    model: str, keys: str, options: str, world: World
) -> None:
    world.model(model)
    names = ("lmpmi", "lmnull") if "pmi" in keys else ("lm",)
    weights = {"LM0": 0.5, "TM0": [0.25, 0.125], "WP0": -0.125, **dict.fromkeys(names, 1.0)}
    world.weights("w.json", {**weights, "lmoov": 0.0})
    command = (
        f"decode --kbest dev.kbest --docs dev.docs --weights w.json --lm lm=lm{keys} {options}"
    )
    world.ok(f"{command} --out out --summary out.json")
    side = {"side": {"source": "dev.src"}} if "--source" in options else {}
    lists = rerank.read("dev.kbest", "dev.docs", **side)
    reranker = Reranker("w.json", lm={"lm": f"lm{keys}"})
    results = reranker.decode(lists)
    assert [text for result in results for text in result.texts] == world.lines("out")
    summary = world.json("out.json")["documents"]
    assert [result.score for result in results] == pytest.approx([own["score"] for own in summary])
    if side:
        whole = [Document(of_list.id, of_list.sentences) for of_list in lists]
        with pytest.raises(
            RerankError, match=r"evening: expected the source sentences, .* as side"
        ):
            reranker.decode(whole)


def test_scores_of_documents_in_memory_are_in_the_cache_of_commands(drawn: World) -> None:
    drawn.draw(gaps=())
    weights = {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5}
    drawn.weights("w.json", weights)
    Reranker("w.json", lm={"lm": "codclm"}).decode(rerank.read("dev.kbest", "dev.docs"))
    assert recalled(drawn.ok(decoding("codclm", ""))) == 5
