"""Lists of systems' outputs: their features, and all commands that read them.

Features are counted by hand or by sacrebleu; lists written by hand are the truth for searches.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from support.files import read, write, write_weights
from support.models import save_models

from rerank.errors import InputError, UsageError
from rerank.formats.trace import read_trace
from rerank.formats.weights import read_weights
from rerank.notices import Notices
from rerank.pipeline import Lists, Plan, Reports, Scoring, TunedWeights, decode, score, tune_mert
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.references import read_targets
from rerank.pipeline.systems import kbest_of
from rerank.registry import ALL_SYSTEMS

A = ("the lamp is lit now", "it gives light", "who knows", "she left us there")
B = ("a lamp is lit now", "it gives light", "who could know", "she left us")
C = ("the lamp burns", "it is  light", "who knows", "she went away")
REFERENCE = ("the lamp is lit now", "it gives light", "who knows that", "she left us")
SYSTEMS = (("A", Path("a")), ("B-1", Path("b")), ("C", Path("c")))
BLEU_OF, CHRF_OF = BLEU(tokenize="none", effective_order=True), CHRF()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with outputs of three systems for two documents."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("a", A), ("b", B), ("c", C), ("ref", REFERENCE)):
        write(name, lines)
    write("docs", ("x", "x", "y", "y"))
    return tmp_path


def xml(systems: dict[str, tuple[str, ...]], reference: tuple[str, ...] = REFERENCE) -> str:
    """WMT XML of the documents."""

    def text(tag: str, attribute: str, lines: tuple[str, ...]) -> str:
        segments = (f'<seg id="{n}">{line}</seg>' for n, line in enumerate(lines, 1) if line != "-")
        return f"<{tag} {attribute}>{''.join(segments)}</{tag}>"

    parts = ["<dataset>"]
    for name, part in (("x", slice(0, 2)), ("y", slice(2, 4))):
        parts += [f'<doc id="{name}">', text("src", 'lang="xx"', ("s",) * 2)]
        parts.append(text("ref", 'lang="en"', reference[part]))
        parts += [text("hyp", f'system="{one}"', lines[part]) for one, lines in systems.items()]
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>\n"])


def test_equal_outputs_are_one_candidate_with_votes_and_indicators() -> None:
    kbest = kbest_of([[b"a b", b"c", b"a b"], [None, b"d", None]], ("sysA", "sysB", "sysC"), 7)
    assert [label.name for label in kbest.labels] == [
        *("sysA", "sysB", "sysC", "votes", "consensusbleu", "consensuschrf"),
        "consensusdocbleu",
    ]
    assert (kbest.first, kbest.counts.tolist(), kbest.texts.to_list()) == (
        *(7, [2, 1]),
        [b"a b", b"c", b"d"],
    )
    assert kbest.dense[:, :4].tolist() == [[1, 0, 1, 2], [0, 1, 0, 1], [0, 1, 0, 1]]
    assert kbest.dense[:, 4:6] == pytest.approx(np.array([[50, 50], [0, 0], [0, 0]]))
    assert kbest.dense[[0, 2], 6].tolist() == [0, 0] > kbest.dense[[1], 6].tolist()


def test_a_sentence_without_any_output_has_no_candidates() -> None:
    kbest = kbest_of([[None, None], [b"a", b"a"]], ("sysA", "sysB"))
    assert kbest.counts.tolist() == [0, 1]
    assert kbest.dense.tolist() == [[1, 1, 2, 100, 100, 0]]


def test_consensus_is_the_mean_score_against_the_outputs_of_the_others() -> None:
    kbest = kbest_of(
        [[line.encode() for line in lines] for lines in zip(A, B, C, strict=True)],
        ("sysA", "sysB", "sysC"),
    )
    for t, outputs in enumerate(zip(A, B, C, strict=True)):
        for row in kbest.rows(t):
            text = kbest.text(row).decode()
            others = [" ".join(one.split()) for one in outputs]
            others.remove(text)
            for column, metric in ((4, BLEU_OF), (5, CHRF_OF)):
                mean = sum(metric.sentence_score(text, [one]).score for one in others) / 2
                assert kbest.dense[row, column] == pytest.approx(mean)


def test_score_writes_the_lists_and_other_scorers_stand_beside() -> None:
    score(Lists("", "docs", systems=SYSTEMS, first_id=1), "lists", notices=Notices())
    lines = read("lists")
    assert len(lines) == 10
    assert lines[3].startswith("2 ||| it gives light ||| sysA= 1 sysB1= 1 sysC= 0 votes= 2 cons")
    write("values", map(str, range(10)))
    lists = Lists("", "docs", systems=SYSTEMS, score_files={"scores": (("qe", Path("values")),)})
    write_weights("w.json", {"qe": 1.0})
    decode(lists, "w.json", "out", default_weight=0.0, notices=Notices())
    assert read("out") == ["the lamp burns", "it is light", "who could know", "she went away"]


@pytest.mark.parametrize("feature", ["sysA", "sysB1", "sysC"])
def test_the_indicator_of_a_system_alone_chooses_its_outputs(feature: str) -> None:
    write_weights("w.json", {feature: 1.0})
    lists = Lists("", "docs", systems=SYSTEMS)
    decode(lists, "w.json", "out", default_weight=0.0, notices=Notices())
    expected = dict(zip(("sysA", "sysB1", "sysC"), (A, B, C), strict=True))[feature]
    assert read("out") == [" ".join(line.split()) for line in expected]


def test_the_lists_are_searched_and_written_as_the_same_lists_of_a_file() -> None:
    """Texts, n-best output, and totals; without a file the trace names the systems, too."""
    write_weights("w.json", {"votes": 0.25, "consensusbleu": 0.01, "sysC": 0.5})
    made = Lists("", "docs", systems=SYSTEMS)
    score(made, "lists", notices=Notices())
    found = {}
    for name, lists in (("made", made), ("file", Lists("lists", "docs"))):
        reports = Reports(f"{name}.kbest", f"{name}.json", f"{name}.trace")
        decode(lists, "w.json", name, default_weight=0.0, reports=reports, notices=Notices())
        summary = json.loads(Path(f"{name}.json").read_text())
        found[name] = (read(name), read(f"{name}.kbest"), summary["documents"])
    assert found["made"] == found["file"]
    choices = read_trace("made.trace", "made.trace", Notices())
    outputs = {"A": A, "B-1": B, "C": [" ".join(line.split()) for line in C]}
    assert [one.systems for one in choices] == [
        [name for name, lines in outputs.items() if lines[t] == text]
        for t, text in enumerate(read("made"))
    ]
    assert all(one.systems is None for one in read_trace("file.trace", "f", Notices()))


def test_an_explained_sentence_names_its_systems() -> None:
    write_weights("w.json", {"votes": 1.0})
    lists = Lists("", "docs", systems=SYSTEMS)
    result = decode(
        lists,
        "w.json",
        "out",
        default_weight=0.0,
        reports=Reports(explain="x:1"),
        notices=Notices(),
    )
    assert result is not None
    assert result.explanation is not None
    assert "  systems     A, B-1\n" in result.explanation.to_text()


def test_a_text_that_holds_the_separator_of_moses_is_kept() -> None:
    write("b", ("a ||| lamp", *B[1:]))
    write_weights("w.json", {"sysB1": 1.0})
    lists = Lists("", "docs", systems=SYSTEMS)
    reports = Reports("kbest")
    decode(lists, "w.json", "out", default_weight=0.0, reports=reports, notices=Notices())
    assert read("out")[0] == "a ||| lamp"
    first = json.loads(read("kbest")[0])
    assert [one["text"] for one in first["candidates"]] == [A[0], "a ||| lamp", C[0]]


def test_xml_brings_systems_documents_and_references() -> None:
    Path("t.xml").write_text(xml({"A": A, "B-1": B, "C": C}))
    made = Lists("", systems=((ALL_SYSTEMS, Path("t.xml")),))
    documents, references = read_targets(made, ["t.xml"], Notices())
    assert documents.ids == ("x", "y")
    assert references == [[line.encode()] for line in REFERENCE]
    found = []
    for lists in (made, Lists("", "docs", systems=SYSTEMS)):
        with KBestSource.open(lists, Notices()) as source:
            found.append([(name, k.texts.to_list(), k.dense.tolist()) for name, k in source.read()])
            assert source.systems == {"sysA": "A", "sysB1": "B-1", "sysC": "C"}
    assert found[0] == found[1]


def test_references_are_matched_with_the_systems_by_document_and_segment() -> None:
    Path("t.xml").write_text(xml({"A": A, "B": B}))
    head, first, last = xml({}).split("<doc ")
    last, end = last.split("</dataset>")
    Path("swapped.xml").write_text(f"{head}<doc {last}<doc {first}</dataset>{end}")
    lists = Lists("", systems=((ALL_SYSTEMS, Path("t.xml")),))
    found, references = read_targets(lists, ["swapped.xml"], Notices())
    assert found.ids == ("x", "y")
    assert references == [[line.encode()] for line in REFERENCE]


def test_xml_brings_the_sources_that_a_model_needs() -> None:
    words = sorted({word for lines in (A, B, C) for line in lines for word in line.split()})
    save_models({"dclm-bilingual": Path("lm")}, words, 6, 8, oov_rate=0.0)
    Path("t.xml").write_text(xml({"A": A, "B": B}))
    write("source", ("s",) * 4)
    found = []
    for systems, side in (
        (((ALL_SYSTEMS, Path("t.xml")),), {}),
        ((("A", Path("a")), ("B", Path("b"))), {"source": Path("source")}),
    ):
        scoring = Scoring(cache=Path("cache"))
        lists = Lists(
            "", "docs", systems=systems, lms=(("lm", Path("lm")),), scoring=scoring, side=side
        )
        score(lists, "out", notices=Notices())
        found.append(read("out"))
    assert found[0] == found[1]
    assert all(" lm= -" in line for line in found[0])


def test_documents_of_a_file_choose_those_of_xml() -> None:
    Path("t.xml").write_text(xml({"A": A, "B": B}))
    write("some", ("y", "y"))
    lists = Lists("", "some", systems=((ALL_SYSTEMS, Path("t.xml")),))
    with KBestSource.open(lists, Notices()) as source:
        ((name, kbest),) = source.read()
    texts = [b"who knows", b"who could know", b"she left us there", b"she left us"]
    assert (name, kbest.texts.to_list()) == ("y", texts)


def test_a_segment_that_a_system_lacks_is_no_candidate_and_is_counted() -> None:
    Path("t.xml").write_text(xml({"A": A, "B": ("-", *B[1:])}))
    notices = Notices()
    lists = Lists("", systems=((ALL_SYSTEMS, Path("t.xml")),))
    with KBestSource.open(lists, notices) as source:
        _, kbest = next(iter(source.read()))
    assert kbest.counts.tolist() == [1, 1]
    kind = "segment without translation, for which the system has no candidate"
    assert f"1 x {kind}, first at t.xml#B" in notices.lines()


@pytest.mark.parametrize(
    ("systems", "kind", "message"),
    [
        (SYSTEMS[:1], UsageError, "--systems: expected two systems or more, found A"),
        ((*SYSTEMS, ("A", Path("b"))), UsageError, "--systems: two systems are named 'A'"),
        ((*SYSTEMS, ("D", Path("short"))), InputError, "short: expected 4 lines .* found 1"),
    ],
    ids=["one", "twice", "short"],
)
def test_a_fault_leaves_no_output(
    systems: tuple[tuple[str, Path], ...], kind: type[Exception], message: str
) -> None:
    write("short", ("x",))
    write_weights("w.json", {"votes": 1.0})
    with pytest.raises(kind, match=message):
        decode(Lists("", "docs", systems=systems), "w.json", "out", notices=Notices())
    assert not Path("out").exists()


def test_equal_outputs_throughout_leave_nothing_to_rerank() -> None:
    notices = Notices()
    lists = Lists("", "docs", systems=(("A", Path("a")), ("B", Path("a"))))
    with KBestSource.open(lists, notices) as source:
        assert all(kbest.counts.tolist() == [1, 1] for _, kbest in source.read())
    assert any("there is nothing to rerank" in line for line in notices.lines())


def test_a_tuning_begins_with_one_of_the_systems_or_their_consensus_and_names_them() -> None:
    lists, said = Lists("", "docs", systems=SYSTEMS), list[str]()
    tune_mert(lists, ["ref"], TunedWeights("w.json"), notices=Notices(), announce=said.append)
    made = read_weights("w.json", Notices()).provenance
    own = {
        name: BLEU(tokenize="none", force=True).corpus_score(lines, [list(REFERENCE)]).score
        for name, lines in (("A", list(A)), ("B-1", list(B)), ("C", list(C)))
    }
    assert made["systems"] == pytest.approx(own)
    assert any(line.startswith("corpus BLEU of each system on these documents: ") for line in said)
    assert str(made["start"]).endswith("the system A")
    assert [one["file"] for one in made["inputs"]][:3] == ["a", "b", "c"]  # type: ignore[attr-defined]


def test_language_models_stand_beside_with_their_context(
    model_folders: Mapping[str, Path],
) -> None:
    """As on the same lists in a file; documents are those of the options."""
    score(Lists("", "docs", systems=SYSTEMS), "lists", notices=Notices())
    write_weights("w.json", {"votes": 0.5, "consensusbleu": 0.01, "lm": 1.0})
    scoring, lms = Scoring(cache=Path("cache")), (("lm", model_folders["codclm"]),)
    for name, lists in (
        ("made", Lists("", "docs", systems=SYSTEMS, lms=lms, scoring=scoring)),
        ("file", Lists("lists", "docs", lms=lms, scoring=scoring)),
    ):
        result = decode(
            lists,
            "w.json",
            name,
            default_weight=0.0,
            reports=Reports(f"{name}.kbest"),
            notices=Notices(),
        )
        assert result is not None
        assert "ctx:1" in result.signature
    assert read("made") == read("file")
    assert read("made.kbest") == read("file.kbest")


def test_start_weights_that_are_given_are_the_start() -> None:
    write_weights("start.json", {"sysB1": 1.0, "consensusbleu": 0.1})
    weights = TunedWeights("w.json", start="start.json")
    tune_mert(Lists("", "docs", systems=SYSTEMS), ["ref"], weights, plan=Plan(), notices=Notices())
    assert "start" not in read_weights("w.json", Notices()).provenance
