"""The Python interface: as the README shows it, and with the same results as the shell."""

import inspect
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.models import save_models
from support.world import ROOT, World

import rerank
from decoders.arrays import Pairwise
from rerank import Document, Reranker, RerankError, RerankWarning

Sentences = list[list[tuple[str, Mapping[str, float]]]]
TALK = Document(
    "talk-1",
    [
        [("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})],
        [("it sleeps", {"tm": -2.0}), ("he sleeps", {"tm": -1.9})],
    ],
)


def short(document: Document) -> list[list[int]]:
    return [[-len(text.split()) for text in sentence] for sentence in document.texts]


def test_names_of_the_package_load_numpy_and_torch_when_they_are_used() -> None:
    program = """
import sys, rerank
assert not {"numpy", "torch"} & sys.modules.keys()
assert {"Reranker", "tune"} <= set(dir(rerank))
rerank.Reranker
assert "torch" not in sys.modules
try:
    rerank.Rerankr
except AttributeError as fault:
    print(fault)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "module 'rerank' has no attribute 'Rerankr'\n")


# The same as in the shell
words = st.lists(st.sampled_from(["the", "cat", "it", "sleeps", "é"]), max_size=4).map(" ".join)
numbers = st.integers(-40, 40).map(lambda n: n / 8)
candidates = st.tuples(words, st.fixed_dictionaries({"tm": numbers, "lm": numbers}))
documents = st.lists(
    st.lists(st.lists(candidates, max_size=3), min_size=1, max_size=3), min_size=1, max_size=3
).filter(lambda found: any(lists for sentences in found for lists in sentences))


def write(world: World, given: list[Document]) -> None:
    """Documents and the scores of `short` as files."""
    lines, ids = list[str](), list[str]()
    for document in given:
        for sentence in document.sentences:
            for text, features in sentence:
                columns = " ".join(f"{name}= {value}" for name, value in features.items())
                lines.append(f"{len(ids)} ||| {text} ||| {columns} ||| 0")
            ids.append(document.id)
    scores = [score for document in given for own in short(document) for score in own]
    files: dict[str, list[Any]] = {"kbest": lines, "docs": ids, "scores": scores}
    for name, content in files.items():
        world.write(name, content)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # empty and equal candidates
@given(documents, st.sampled_from(["auto", "beam", "smc", "mbr"]), st.integers(1, 3))
def test_results_are_those_of_the_same_documents_in_files(
    world: World, lists: list[Sentences], search: str, seed: int
) -> None:
    given = [Document(f"d{d}", sentences) for d, sentences in enumerate(lists)]
    write(world, given)
    weights = {"tm": 1.0, "lm": 0.5, "short": 0.25}
    world.weights("w.json", weights, alpha=0.5, mbr_spread=0.5)
    options: dict[str, Any] = {"seed": seed, "n_best": 2 if search in ("beam", "smc") else 1}
    command = "decode --kbest kbest --docs docs --scores short=scores --weights w.json --summary s"
    how = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    texts = world.ok(f"{command} --search {search} {how}").lines
    scale: Any = {"spread" if search == "mbr" else "alpha": 0.5}
    reranker = Reranker(weights, scorers={"short": short}, search=search, **scale, **options)
    results = reranker.decode(given)
    told = world.json("s")["documents"]
    assert [result.to_dict() for result in results] == told
    assert [text for result in results for text in result.texts] == texts
    from_file = Reranker("w.json", scorers={"short": short}, search=search, **options)
    read = from_file.decode(rerank.read("kbest", "docs"))
    assert [result.to_dict() for result in read] == told
    reverse = reranker.decode(given[::-1])[::-1]
    assert [(one.choices, one.score) for one in reverse] == [(o.choices, o.score) for o in results]


@pytest.mark.parametrize("pmi", ["", ",pmi=yes"])
def test_a_generator_is_as_a_list_is(pmi: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The model costs a pass for each candidate before; exact search costs little here."""
    folder = tmp_path_factory.mktemp("lm")
    shape: Any = {"oov_rate": 0.25, "reverse_documents": True}
    save_models({"rlm-bow-ef-1": folder}, ("the", "a", "cat", "it", "he", "sleeps"), 4, 6, **shape)
    names = ["lmpmi", "lmnull", "lmoov"] if pmi else ["lm", "lmoov"]
    weights: dict[str, float] = {"tm": 1.0, **dict.fromkeys(names, 0.5)}
    how: Any = {"lm": {"lm": f"{folder}{pmi}"}, "no_cache": True}
    auto, exact = (Reranker(weights, search=name, **how) for name in ("auto", "viterbi"))
    result = auto.decode(document for document in [TALK])
    assert [one.to_dict() for one in result] == [one.to_dict() for one in exact.decode([TALK])]


def test_a_scorer_in_python_is_given_the_side_information_that_it_needs() -> None:
    class Lengths:
        order, side_information = 0, ("source",)

        def score(self, document: Document) -> list[list[float]]:
            pairs = zip(document.texts, document.side["source"], strict=True)
            return [[-abs(len(text) - len(one)) for text in own] for own, one in pairs]

    reranker = Reranker({"tm": 0.0, "length": 1.0}, scorers={"length": Lengths()})
    beside = {"source": ["un chat", "il dort"]}
    (result,) = reranker.decode([Document("talk", TALK.sentences, side=beside)])
    assert result.texts == ("the cat", "it sleeps")
    with pytest.raises(RerankError, match="scorer 'length' needs, found none; give them to"):
        reranker.decode([TALK])


def returned(function: Callable[..., Any]) -> Any:
    """The class that a function says it returns."""
    return inspect.unwrap(function).__globals__[function.__annotations__["return"]]


def test_the_page_about_the_interface_names_what_there_is() -> None:
    page = (ROOT / "recipes" / "docs" / "api.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    signatures = [one for row in rows for one in re.findall(r"`(\w+)(?:\(([^)]*)\))?`", row)]
    assert {name for name, _ in signatures} == {*rerank.__all__}
    for name, own in signatures:
        known = inspect.signature(getattr(rerank, name)).parameters if own else {}
        assert {*re.findall(r"\w+", own)} <= {*known}
    (results,) = re.findall(r"\*\*Results\*\* are immutable: (.*?)\.\n\n", page, re.DOTALL)
    names = [one for one in re.findall(r"`(\w+)`", results)]
    assert len(names) > 9
    (result,) = Reranker({"tm": 1.0}).decode([TALK])
    assert all(hasattr(result, name) for name in names)
    owners: Mapping[str, Any] = {
        **dict.fromkeys(("Reranker", "reranker"), Reranker),
        **{"rerank": rerank, "weights": returned(rerank.tune), "page": returned(Reranker.report)},
    }
    for owner, name in re.findall(rf"\b({'|'.join(owners)})\.(\w+)\(", page):
        assert hasattr(owners[owner], name), f"{owner}.{name}"
    for call in re.findall(r"`(Reranker\(weights, search.*?\))`", page):
        eval(call, {"Reranker": Reranker, "weights": {"tm": 1.0}})


# Outputs of systems, samples, pages: as in the shell
OUTPUTS = {
    "A": ["the lamp is lit", "it gives light", "the café is closed", "nobody comes"],
    "B-2": ["a lamp burns", "it gives light", "the café closed", "no one is coming"],
    "C": ["the lamp burns", "she gives a light", "the café is shut", "no one is coming"],
}
SYSTEMS = "--systems A=A --systems B-2=B-2 --systems C=C --docs dev.docs"


@pytest.fixture
def outputs(world: World) -> Any:
    systems = {name: world.write(name, lines) for name, lines in OUTPUTS.items()}
    return rerank.read(systems=systems, docs="dev.docs")


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
def test_the_choice_without_weights_is_that_of_the_shell(world: World, outputs: Any) -> None:
    shell = world.ok(f"decode {SYSTEMS} --summary s --trace t --kbest-out k").lines
    for found in (rerank.choose(outputs), Reranker({}).decode(document for document in outputs)):
        assert [text for result in found for text in result.texts] == shell
        assert [result.to_dict() for result in found] == world.json("s")["documents"]
        named = [system for result in found for system in result.systems]
        assert named == [
            tuple(name for name, output in OUTPUTS.items() if output[t] == text)
            for t, text in enumerate(shell)
        ]
    traced = [json.loads(line) for line in world.lines("t")]
    assert "--trace t" in traced[0].pop("run")["command"]
    assert [{"schema": 1} | one for one in Reranker({}).trace(outputs)] == traced
    world.weights("w.json", {"agreement": 1.0, "sysA": 0.5})
    tuned = world.ok(f"decode {SYSTEMS} --weights w.json --default-weight 0 -q --summary s").lines
    (both,) = [Reranker("w.json", default_weight=0).decode(outputs)]
    assert [text for result in both for text in result.texts] == tuned
    assert [result.to_dict() for result in both] == world.json("s")["documents"]
    (evening, _) = rerank.read("k", "dev.docs")  # which has the feature already
    assert "agreement" in evening.sentences[0][0][1]
    written = Reranker({"agreement": 1.0}, default_weight=0).decode(rerank.read("k", "dev.docs"))
    assert [text for result in written for text in result.texts] == shell


def test_a_part_of_a_document_that_was_read_keeps_the_weights_of_a_file(world: World) -> None:
    features = "tm= -{0} dist= 0 {0} -1 ||| 0"
    world.write(
        "k", [f"{t} ||| a {k} ||| {features.format(k)}" for t in range(2) for k in range(3)]
    )
    content: Any = {"schema": 1, "weights": {"tm": [1.0], "dist": [0.5, 2.0, 0.25]}}
    world.write("w.json", [json.dumps(content)])
    (whole,) = rerank.read("k", no_docs="one")
    part = Document(whole.id, [candidates[1:] for candidates in whole.sentences])
    for weights in ("w.json", content, content["weights"]):
        (result,) = Reranker(weights).decode([part])
        assert (result.texts, result.score) == (("a 2", "a 2"), 2 * (-2 + 4 - 0.25))
    less = [
        (text, {k: v for k, v in own.items() if k != "dist_2"}) for text, own in part.sentences[0]
    ]
    with pytest.raises(RerankError, match="expected weights of the list's features, found one of"):
        Reranker("w.json").decode([Document("d", [less])])


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
@pytest.mark.parametrize("search", ["auto", "mbr"])
def test_equal_outputs_in_memory_are_credited_to_all_their_systems(
    world: World, outputs: Any, search: str
) -> None:
    shell = world.ok(f"decode {SYSTEMS} --search {search} --alpha 1 --trace t").lines
    traced = [json.loads(line) for line in world.lines("t")]
    labels = {"sysA": "A", "sysB2": "B-2", "sysC": "C"}
    documents = [
        Document(
            name,
            [
                [(OUTPUTS[own][t], {k: float(k == label) for k in labels}) for label, own in given]
                for t in rows
            ],
            systems=labels,
        )
        for given in [[*labels.items()]]
        for name, rows in (("empty", []), ("evening", [0, 1]), ("town", [2, 3]))
    ]
    results = rerank.choose(documents, search=search, alpha=1.0)
    assert [text for result in results for text in result.texts] == shell
    systems = [list(system) for result in results for system in result.systems]
    assert systems == [sentence["systems"] for sentence in traced]
    assert any(len(system) > 1 for system in systems)
    assert [choice for result in results for choice in result.choices] == [
        [output[t] for output in OUTPUTS.values()].index(text) for t, text in enumerate(shell)
    ]
    references = [["it is", "lit"], ["the café", "no one"]]
    told, ours = (
        Reranker({}, search=search).report(lists, references).numbers["explanation"]["engines"]
        for lists in (outputs, documents[1:])
    )
    assert ours == told
    with pytest.raises(RerankError, match="expected the feature 'sysD' of `systems`"):
        rerank.choose([Document("d", documents[1].sentences, systems={"sysD": "D"})])


def test_samples_are_chosen_by_agreement_and_scores_need_weights() -> None:
    samples = Document("d", [["a b c d", "a b c e", "a b c d"], [], ["z"]])
    (result,) = rerank.choose([samples])
    assert (result.texts, result.systems) == (("a b c d", "", "z"), ())
    with pytest.raises(RerankError, match="documents have scores, which nothing but weights"):
        rerank.choose([TALK])
    binary = Document("d", [[("a", {"A": 1.0, "B": 0.0}), ("b", {"A": 0.0, "B": 1.0})]])
    with pytest.raises(RerankError, match=r"are named by Document's systems=\{'FEATURE'"):
        rerank.choose([binary])
    assert rerank.choose([TALK], search="mbr")[0].texts
    assert rerank.choose([TALK], agreement=True)[0].choices
    marked = [[("a", {"sysX": 0.0, "sysY": 1.0}), ("b", {"sysX": 1.0, "sysY": 0.0})]]
    named = Document("d", marked, systems={"sysX": "X", "sysY": "Y"})
    assert rerank.choose([named])[0].systems in ((("X",),), (("Y",),))


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # equal texts
def test_samples_with_scores_and_sources_are_tuned_as_in_the_shell(world: World) -> None:
    right = [f"{name} goes to the house by the river today" for name in "abcdef"]
    rows = [
        {"document": f"d{t}", "source": f"s{t}", "candidates": ["no", x, x], "scores": [-t] * 3}
        for t, x in enumerate(right)
    ]
    world.write("s", map(json.dumps, rows))
    world.write("ref", right)
    documents = [*rerank.read("s")]
    assert [document.side["source"] for document in documents] == [[f"s{t}"] for t in range(6)]
    world.ok("tune-mert --kbest s --ref ref --agreement --out w.json")
    weights = rerank.tune(documents, [[text] for text in right], agreement=True)
    assert weights.provenance["inputs"] == []
    assert "command" not in weights.provenance
    assert dict(weights.dense) == {k: tuple(v) for k, v in world.json("w.json")["weights"].items()}
    assert [one.texts[0] for one in Reranker(weights).decode(documents)] == right


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
@pytest.mark.parametrize("objective", ["bleu", "chrf"])
def test_tuning_on_systems_is_as_in_the_shell(world: World, outputs: Any, objective: str) -> None:
    world.ok(f"tune-mert {SYSTEMS} --ref dev.ref --objective {objective} --out w.json")
    lines = (world.folder / "dev.ref").read_text().splitlines()
    references = [Document("town", lines[2:]), Document("evening", lines[:2])]
    weights = rerank.tune(outputs, references, objective=objective)
    weights.save("p.json")
    assert world.json("p.json")["weights"] == world.json("w.json")["weights"]
    own, made = (world.json(name)["provenance"] for name in ("p.json", "w.json"))
    assert {"objective", "start", "systems", "selection", "verdict"} <= own.keys()
    assert (own.pop("inputs"), own.pop("BLEU")) == ([], pytest.approx(made["bleu"]))
    assert own == {name: made[name] for name in own}
    expected = [text for result in Reranker(weights).decode(outputs) for text in result.texts]
    assert world.ok(f"decode {SYSTEMS} --weights p.json -q").lines == expected
    with pytest.raises(TypeError, match="references: expected those of document 'town', found no"):
        rerank.tune(outputs, references[1:])
    with pytest.raises(TypeError, match="expected documents of different ids, found 'evening' tw"):
        rerank.tune(outputs, [*references, references[1]])
    with pytest.raises(TypeError, match="documents: expected those of document 'night', found no"):
        rerank.tune(outputs, [*references, Document("night", ["it is dark"])])
    read = rerank.read("dev.ref", "dev.docs", kbest_format="flat:1")
    assert {one.id: one.texts for one in read} == {
        reference.id: [[*sentence] for sentence in reference.texts] for reference in references
    }


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
def test_the_page_of_documents_in_memory_has_the_numbers_of_the_shell(world: World) -> None:
    world.ok("decode --kbest dev.kbest --docs dev.docs --weights w.ini --trace t")
    texts = "--docs dev.docs --ref dev.ref --weights w.ini --title X"
    numbers = world.ok(f"report --trace t {texts} --format json").json
    lines = (world.folder / "dev.ref").read_text().splitlines()

    def report(**options: Any) -> Any:
        texts = rerank.read("dev.kbest", "dev.docs"), [lines[:2], lines[2:]]
        return Reranker("w.ini").report(*texts, **options)

    page = report(title="X")
    result = json.loads(json.dumps(page.numbers))
    assert (result.pop("commands"), [*numbers.pop("commands")]) == ({}, ["decoding", "page"])
    assert {**result, "inputs": 0} == {**numbers, "inputs": 0}
    beside = {"mbr": Reranker({}, search="mbr")}
    both = report(beside=beside)
    systems = [system["metrics"] for system in both.numbers["evaluation"]["systems"]]
    alone = [system["metrics"] for system in page.numbers["evaluation"]["systems"]]
    assert (systems[:2], len(systems)) == (alone, 3)
    first, *_ = report(baseline=beside["mbr"]).numbers["evaluation"]["systems"]
    assert first["bleu"] == both.numbers["evaluation"]["systems"][2]["bleu"]
    page.save("page.html")
    assert "<title>X</title>" in (world.folder / "page.html").read_text()


ATTACK = "<script>alert(1)</script>&\u202e\u2066\"'\u200b</td></iframe>"


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
def test_what_notebooks_show_is_escaped(outputs: Any) -> None:
    documents = [Document(f"{ATTACK}{d}", [[ATTACK, "a b"], [ATTACK]]) for d in range(2)]
    results = rerank.choose(documents)
    references = [Document(document.id, [ATTACK, "b"]) for document in documents]
    evaluation = rerank.evaluate({ATTACK: results, "\udc00": results}, references)
    half = rerank.choose([Document("\ud800<b>", [["a", "b"]])])
    page = Reranker({}).report(documents, references, title=ATTACK)
    for one in (results, results[0], evaluation, half, rerank.choose(outputs), page):
        html = one._repr_html_()
        assert not {*"\u202e\u2066\u200b\ud800\udc00"} & {*html}
        tags = {*re.findall(r"</?(\w+)", html)}
        assert tags in ({"table", "thead", "tbody", "tr", "th", "td"}, {"iframe"})
        html.encode()
    assert "‹U+202E›" in results._repr_html_()
    assert rerank.choose([])._repr_html_() == "no documents"


# Warnings, results without documents, lines about a run
def test_warnings_are_those_of_python() -> None:
    impossible: Sentences = [[("a", {"x": -1e100})], [("b", {"x": -1e100})]]
    with pytest.warns(RerankWarning, match="no possible path"):
        Reranker({"x": 1.5e208}).decode([Document("d", impossible)])
    scaled = Reranker({"tm": 9e250}, search="smc", alpha=1e100)
    with pytest.warns(RerankWarning, match="no possible path was found, left with"):
        (result,) = scaled.decode([TALK])  # scores times the scale are −inf
    assert (result.choices, result.score) == ((0, 0), -27e250)
    with pytest.warns(RerankWarning, match="feature without weight; 0 is used: tm") as found:
        Reranker({}, default_weight=0.0, scorers={}, sparse={"s": 1.0}).decode([TALK])
    assert [getattr(one.message, "kind", None) for one in found] == ["feature-without-weight"]
    assert found[0].filename == __file__


def test_no_document_has_no_result_and_one_without_candidates_an_empty_one() -> None:
    assert Reranker({"tm": 1.0}).decode([]) == []
    (result,) = Reranker({"tm": 1.0}).decode([Document("d", [[], []])])
    assert (result.choices, result.texts, result.score) == ((None, None), ("", ""), 0.0)
    assert (result.exact, result.margins) == (True, (None, None))


def test_lines_about_a_run_go_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="rerank"):
        Reranker({"tm": 1.0}).decode([TALK])
    assert caplog.messages[0].startswith("search: viterbi, exact")


# What is refused (faults of the shell are rows of the table of faults)
def second(text: str, **features: Any) -> Document:
    """A document whose last candidate this is."""
    return Document("talk", [[("x", {"tm": 1.0})], [], [("x", {"tm": 1.0}), (text, features)]])


REFUSED: dict[str, tuple[Any, Document, type[Exception], str]] = {
    "option, nearest": ({"beem": 3}, TALK, TypeError, "^no option 'beem'; did you mean 'beam'"),
    "option, none near": ({"xyzzy": 3}, TALK, TypeError, "^no option 'xyzzy'; there are agree"),
    "weights, a list": ({"weights": [1.0]}, TALK, TypeError, "^weights: expected the weig"),
    "weight, no float": ({"weights": {"tm": 10**400}}, TALK, TypeError, "^weight of 'tm': exp"),
    "scorers, a list": ({"scorers": [short]}, TALK, TypeError, "^scorers: expected fun"),
    "kinds, a text": (
        {"scorers": {"own": SimpleNamespace(score=short, side_information="source")}},
        TALK, TypeError, r"'own': expected side_information to be a tuple .*\('source',\)",
    ),
    "name taken": ({"scorers": {"tm": short}}, TALK, RerankError, "'tm': talk-1 already has a fea"),
    "scorer's shape": (
        {"weights": {"tm": 1.0, "own": 1.0}, "scorers": {"own": lambda d: [[1.0], [1.0]]}},
        TALK, RerankError, r"'own'.*talk-1",
    ),
    "no feature": (
        {}, second("a"), RerankError,
        r"^talk: sentence 2, candidate 1: expected the features tm, .*found \(none\); give every",
    ),
    "another feature": ({}, second("a", tm=1, lm=2), RerankError, "found tm, lm; .* as sparse$"),
    "NaN": ({}, second("a", tm=np.nan), RerankError, r"up to 1e\+100 for the feature .tm., fo"),
    "text for a number": ({}, second("a", tm="1"), RerankError, "the feature 'tm', found '1'$"),
    "line end": ({}, second("a\nb", tm=1), RerankError, "text of one line, found 'a.nb'; replace"),
    "side information": (
        {}, Document("d", TALK.sentences, side={"source": ["il dort"]}), RerankError,
        "^d: expected 2 texts of side information 'source', one for each sentence, found 1; text i",
    ),
    "utility": (
        {"search": "mbr", "utility": "rouge"}, TALK, RerankError, "^utility: no utility 'rouge'",
    ),
    "document cache": (
        {"lm": {"lm": "no,document-cache=1.0"}}, TALK, RerankError,
        '^lm={"lm": "no,document-cache=1.0"}: found document-cache=1.0: 1.0 is not in the range 0<',
    ),
    "decoder": ({"search": "beem"}, TALK, RerankError, "no decoder 'beem'; did you mean"),
    "−inf": (
        {"weights": {"tm": 1.0, "own": -1.0}, "scorers": {"own": lambda d: [[], [0.0, -np.inf]]}},
        Document("d", [[], [("a", {"tm": 0.0}), ("b", {"tm": 0.0})]]), RerankError,
        r"^scorer 'own', document 'd', sentence 1 \(counted from 0\): −inf under a negative weight",
    ),
    "beyond float64": (
        {"weights": {"tm": -9e250}, "search": "smc", "alpha": 1e100}, TALK, RerankError,
        r"below 1\.8e308, found more; take smaller weights or another alpha=",
    ),
    "sums beyond float64": (
        {"weights": {"tm": -0.85e308}}, TALK, RerankError, r"sums.*below 1\.8e308.*take smaller",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "document", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_an_error_that_names_it(
    given: Any, document: Document, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        Reranker(**{"weights": {"tm": 1.0}, **given}).decode([document])


HALF, ONE = "a\udc00", [[("a", {"tm": 1.0})]]
FIVE: Any = 5
BARE: Any = TALK
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "search": (lambda: Reranker({}, search=FIVE), "^search: expected a name, found int 5$"),
    "half a name": (lambda: Reranker({}, search="\ud800"), "^search: expected a name in Unicode, "),
    "beam": (lambda: Reranker({}, beam="8"), "^beam: expected a whole number, found str '8'$"),
    "beam, range": (lambda: Reranker({}, beam=0), "^beam: 0 is not in the range 1<=x<=1000000"),
    "alpha": (lambda: Reranker({}, alpha=math.nan), "^alpha: expected a finite decimal number, fo"),
    "flag": (lambda: Reranker({}, no_cache="no"), "^no_cache: expected True or False, found str"),
    "device": (lambda: Reranker({}, device=0), "^device: expected a text, found int 0$"),
    "key": (lambda: Reranker({}, search="smc", ess="x"), "^ess: expected a number, found str 'x'$"),
    "one document": (lambda: Reranker({}).decode(BARE), "^documents: expected document"),
    "no document": (lambda: Reranker({"tm": 1.0}).decode([FIVE]), "^documents: expected documents"),
    "id": (lambda: Document(FIVE, []), "^document: expected an id that is a text, found in"),
    "sentences": (lambda: Document("d", "ab"), "^document 'd': expected a list of candidates a s"),
    "sentence": (lambda: Document("d", [FIVE]), "^document 'd', sentence 0: expected a lis"),
    "candidate": (lambda: Document("d", [[FIVE]]), "sentence 0: expected a text, or a"),
    "features": (lambda: Document("d", [[("a", FIVE)]]), "text and its features by name"),
    "name": (lambda: decoded([[("a", {1: 1.0})]]), "candidate 0: expected names of features, fou"),
    "half a text": (lambda: decoded([[(HALF, {"tm": 1.0})]]), "^d: expected a text in Unicode, fo"),
    "sides": (lambda: decoded(ONE, side=["a"]), "^document 'd', side: expected texts by kind, fou"),
    "side": (lambda: decoded(ONE, side={"source": "a"}), "'source': expected a list of a text for"),
    "side, half": (lambda: decoded(ONE, side={"source": [HALF]}), "'source': expected a text of o"),
    "kind": (lambda: decoded(ONE, side={"sauce": ["a"]}), "^side: no option 'sauce'; did you mean"),
    "path": (lambda: rerank.read(FIVE), "^kbest: expected a path, found int 5$"),
    "agreement": (lambda: rerank.choose([], agreement=FIVE), "^agreement: expected True or Fals"),
    "top": (lambda: rerank.read("k", no_docs="one", top=1.5), "^top: expected a whole number, fou"),
    "word": (lambda: rerank.read("k", no_docs="all"), "^no_docs: 'all' is not one of 'each', 'one"),
    "encoding": (lambda: rerank.read("k", encoding="x"), "^encoding: no encoding of text in which"),
    "file": (lambda: rerank.read("k", side={"source": FIVE}), "^file of 'source': expected"),
    "references": (lambda: rerank.evaluate({"A": [["a"]]}, ["a"]), "^references, document 0: expe"),
    "reference": (lambda: rerank.evaluate({"A": [["a"]]}, [[[]]]), "0, sentence 0: expected at le"),
    "half a reference": (lambda: rerank.evaluate({"A": [["a"]]}, [[HALF]]), "one line, in Unicode"),
    "system": (lambda: rerank.evaluate({"A": [[FIVE]]}, [["a"]]), "^system 'A', document 0,"),
    "systems": (lambda: rerank.evaluate({}, [["a"]]), "^systems: expected the texts of at least o"),
    "seed": (lambda: rerank.evaluate({"A": [["a"]]}, [["a"]], seed=-1), "^seed: -1 is not in the "),
    "tuned": (lambda: rerank.tune([TALK], [], features=[FIVE]), "^features: expected a text,"),
    "targets": (lambda: rerank.tune([TALK], [[FIVE]]), "^references, document 0, sentence 0"),
    "start": (lambda: rerank.tune([TALK], [], start={"tm": math.nan}), "^weight of 'tm': exp"),
    "option": (lambda: rerank.read("k", no_doc="one"), "^no option 'no_doc'; did you mean"),
}  # fmt: skip


def decoded(sentences: Any, **more: Any) -> object:
    return Reranker({"tm": 1.0}).decode([Document("d", sentences, **more)])


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_an_argument_of_another_type_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(RerankError, match=message):
        call()


def test_closed_standard_input_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(RerankError, match="standard input is closed; name a file instead of -"):
        list(rerank.read("-", no_docs="one"))


# Tuning and evaluation
@pytest.mark.filterwarnings("ignore:no alpha:rerank.RerankWarning")
@pytest.mark.parametrize(("unit", "better"), [(1.0, True), (1e-315, False)], ids=["1", "1e-315"])
@pytest.mark.parametrize("algorithm", ["pro", "expected-bleu"])
def test_weights_beyond_float64_are_not_taken(algorithm: str, unit: float, better: bool) -> None:
    """A weight that counts would be above 1e308 for values below 1e-308."""
    texts = {"the cat sat on the mat": -unit, "the cat sat on it": unit}
    lists: Sentences = [[(text, {"tm": value}) for text, value in texts.items()]]
    how: Any = {"start": {"tm": 1.0}, "algorithm": algorithm, "select": "none"}
    result = rerank.tune([Document("d", lists)], [[*texts][:1]], **how)
    assert result.dense == {"tm": (-1.0 if better else 1.0,)}


class Forbidding:
    """A scorer of order 1: candidate `before` and candidate `after` it have a score of −inf."""

    order = 1

    def __init__(self, before: int, after: int) -> None:
        self.pair = before, after

    def score(self, document: Document) -> Pairwise:
        second = np.zeros((2, 2))
        second[self.pair] = -np.inf
        return Pairwise([np.zeros((1, 2)), second])


FINITE = "expected finite scores to tune on, found another; give a low number in place of −inf"


@pytest.mark.parametrize(
    ("tm", "scorer", "more", "candidate"),
    [(1.7e308, short, {"features": ["own"]}, 1), (1.0, Forbidding(0, 1), {}, 3)],
    ids=["sums", "pool"],
)
def test_scores_that_cannot_be_tuned_are_named(
    tm: float, scorer: Any, more: Any, candidate: int
) -> None:
    how = {"start": {"tm": tm, "own": 1.0}, "scorers": {"own": scorer}, **more}
    message = f"^candidate {candidate} of all lists, counted from 0: {FINITE}"
    with pytest.raises(RerankError, match=message):
        rerank.tune([TALK], [["the cat", "he sleeps"]], **how)


def test_evaluation_is_that_of_the_shell(world: World) -> None:
    references = [["the cat sat on the mat"], ["he sleeps all day long", "yes he does"]]
    systems = {
        "1-best": [["the cat sat on a mat"], ["it sleeps all day", "yes it does"]],
        "reranked": [["the cat sat on a mat"], ["he sleeps all day long", "yes he does so"]],
    }
    for name, texts in (*systems.items(), ("ref", references)):
        world.write(name, [line for text in texts for line in text])
    world.write("docs", [*"011"])
    result = rerank.evaluate(systems, references, seed=3)
    told = world.ok(
        "evaluate --docs docs --ref ref --baseline 1-best reranked --seed 3 --format json"
    ).json
    assert [system.bleu for system in result.systems] == [one["bleu"] for one in told["systems"]]
    assert [system.name for system in result.systems] == ["1-best", "reranked"]
    several = [[[one, "the cat"] for one in document] for document in references]
    assert rerank.evaluate(systems, several).systems[0].bleu >= result.systems[0].bleu
