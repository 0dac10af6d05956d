"""`report` end to end, of decodings of made-up lists."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.files import read, write, write_weights

from rerank.cli import run
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Additions, Decoded, Lists, Page, Reports, decode, evaluate, report
from rerank.report.page import render

WEIGHTS = {"LM0": [0.125], "TM0": [0.0, 0.0], "lm": [4.0], "lmoov": [-0.5]}


@pytest.fixture(autouse=True)
def here(tuning_lists: Path, model_folders: Mapping[str, Path]) -> None:
    write_weights("w.json", WEIGHTS)
    for name, top in (("ours", None), ("first", 1)):
        lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["drnnlm"]),), top=top)
        reports = Reports(summary=f"{name}.json", trace=f"{name}.trace")
        decode(lists, "w.json", f"{name}.txt", reports=reports, notices=Notices())


def made(decoded: Decoded | None = None, **options: object):  # type: ignore[no-untyped-def]
    given = {"docs": "dev.docs", "notices": Notices(), **options}
    return report(decoded or Decoded("ours.trace"), ["dev.ref"], "out.html", **given)  # type: ignore[arg-type]


def test_the_numbers_are_those_of_evaluate_and_of_the_summary() -> None:
    found = made(Decoded("ours.trace", summary="ours.json", weights="w.json"))
    truth = evaluate("dev.docs", ["dev.ref"], ["first.txt", "ours.txt"], notices=Notices())
    for ours, theirs in zip(found.evaluation.systems, truth.systems, strict=True):
        assert (ours.bleu, ours.p_value) == (theirs.bleu, theirs.p_value)
        assert ours.metrics == theirs.metrics
    assert found.evaluation.documents == truth.documents
    summary = json.loads(Path("ours.json").read_text())
    by_name = {one["id"]: one for one in summary["documents"]}
    first, chosen, names = read("first.txt"), read("ours.txt"), read("dev.docs")
    assert len(found.documents) == 5
    for one in found.documents:
        own = by_name[one.id]
        assert (one.gap, one.exact) == (own["gap"], own["exact"])
        changed = [t for t, n in enumerate(names) if n == one.id and first[t] != chosen[t]]
        assert one.changed == len(changed)
        assert one.shown is not None
        assert [(s.baseline, s.chosen) for s in one.shown] == [
            (first[t], chosen[t]) for t in changed
        ]
        assert [s.number for s in one.shown] == [t - names.index(one.id) for t in changed]
        assert [s.reference for s in one.shown] == [read("dev.ref")[t] for t in changed]
    assert found.weights == {"LM0": 0.125, "TM0_0": 0.0, "TM0_1": 0.0, "lm": 4.0, "lmoov": -0.5}
    assert found.explanation.changed == sum(one.changed for one in found.documents) > 0
    assert Path("out.html").read_text() == render(found)


def test_another_decoding_takes_the_place_of_the_first_candidates() -> None:
    one, other = made(Decoded("ours.trace")), made(Decoded("ours.trace", baseline="first.trace"))
    assert one.evaluation == other.evaluation
    for c, d in zip(one.documents, other.documents, strict=True):
        for a, b in zip(c.shown or (), d.shown or (), strict=True):
            assert (a.baseline, a.chosen, a.rank) == (b.baseline, b.chosen, b.rank)
            for name in ("LM0", "TM0_0", "lmoov"):  # lm of the first is in another context
                assert a.added[name] == pytest.approx(b.added[name])
    same = made(Decoded("ours.trace", baseline="ours.trace"))
    assert same.explanation.changed == 0
    assert same.evaluation.systems[1].difference == 0


def test_source_sentences_stand_beside_their_translations() -> None:
    write("dev.src", [f"Satz {t}" for t in range(len(read("dev.docs")))])
    found = made(Decoded("ours.trace", source="dev.src"))
    names = read("dev.docs")
    shown = [(d.id, s) for d in found.documents for s in d.shown or ()]
    assert shown
    assert all(s.source == f"Satz {names.index(name) + s.number}" for name, s in shown)


def test_of_few_documents_the_best_and_the_worst_are_shown() -> None:
    found = made(page=Page(shown=3))
    assert sum(one.shown is not None for one in found.documents) == 3
    ranked = sorted(found.documents, key=lambda one: -one.gain)
    assert ranked[0].shown is not None
    assert ranked[-1].shown is not None
    assert all(one.shown is None for one in made(page=Page(shown=0)).documents)


def test_of_many_changed_sentences_the_first_of_each_document_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = {one.id: one.shown for one in made().documents}
    monkeypatch.setattr("rerank.pipeline.reporting.SENTENCES", 3)
    found = made()
    for one in found.documents:
        assert one.shown == (every[one.id] or [])[:1]
    assert any(one.shown for one in found.documents)


def test_sentences_that_a_trace_has_not_are_counted() -> None:
    """Those without candidates, and those of a trace that was cut short."""
    expected = len(read("dev.docs")) - len(read("ours.trace"))
    for gone in (0, 2):
        write("short.trace", read("ours.trace")[gone:])
        notices = Notices()
        made(Decoded("short.trace"), notices=notices)
        (line,) = notices.lines()
        assert line.startswith(f"{expected + gone} x sentence that the trace has not")


def test_traces_of_other_lists_are_refused() -> None:
    lines = read("ours.trace")
    write("double.trace", [*lines, lines[0]])
    with pytest.raises(InputError, match=r"double.trace: expected sentences of the documents"):
        made(Decoded("double.trace"))
    write("dev.short", [*read("dev.docs")[:-1], "other"])
    with pytest.raises(InputError, match="give the document ids of the decoding"):
        made(docs="dev.short")
    write("less.trace", lines[1:])
    with pytest.raises(InputError, match=r"less.trace: expected the sentences of ours.trace"):
        made(Decoded("ours.trace", baseline="less.trace"))
    write("more.trace", [*lines, lines[0]])
    with pytest.raises(InputError, match=r"more.trace: expected as many sentences as ours.trace"):
        made(Decoded("ours.trace", baseline="more.trace"))
    with pytest.raises(UsageError, match="a trace is read twice"):
        made(Decoded("-"))
    assert not Path("out.html").exists()


def test_the_command_writes_a_page_or_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["report", "--trace", "ours.trace", "--docs", "dev.docs", "--ref", "dev.ref", "-q"]
    assert run([*command, "--out", "page.html", "--title", "Lamps & lights"]) == 0
    page = Path("page.html").read_text()
    assert "<h1>Lamps &amp; lights</h1>" in page
    assert run([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert f"{found['evaluation']['systems'][1]['bleu']:.2f}" in page


def test_the_command_draws_figures_and_curves(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    command = ["report", "--trace", "ours.trace", "--docs", "dev.docs", "--ref", "dev.ref"]
    write("curve", ["update\tepoch\tseconds\ttraining_nats\tvalid_perplexity\trate\tstage"])
    curve = ["--curve", "lm=curve", "--out", "page.html"]
    assert run([*command, *curve, "--figures", "figures"]) == 0
    assert "figure written to figures/gains.pdf" in capsys.readouterr().err
    assert {path.name for path in Path("figures").iterdir()} == {
        f"{name}.{form}" for name in ("gains", "features", "curves") for form in ("pdf", "svg")
    }
    assert run([*command, *curve]) == 2
    assert "--figures DIR; give it" in capsys.readouterr().err


def test_measures_beside_bleu_are_those_of_evaluate() -> None:
    n = len(read("dev.ref"))
    write("first.comet", [str(i % 3 / 4) for i in range(n)])
    write("ours.comet", [str(i % 5 / 4) for i in range(n)])
    provenance = {"schema": 1, "weights": WEIGHTS, "provenance": {"objective": "corpus BLEU"}}
    Path("tuned.json").write_text(json.dumps(provenance))
    words = sorted({word for line in read("dev.ref") for word in line.split()})[:4]
    write("some", words)
    named = {"baseline": "first", "decoded": "ours"}
    ours, theirs = (
        Additions(
            scores=[("comet", f"{own[k]}:{file}.comet") for k, file in named.items()],
            word_lists={"some": "some"},
            weights=weights,
        )
        for own, weights in (
            (dict(zip(named, named, strict=True)), None),
            ({"baseline": "first.txt", "decoded": "ours.txt"}, "tuned.json"),
        )
    )
    metrics = ("ter",)
    found = made(Decoded("ours.trace", weights="tuned.json"), metrics=metrics, more=ours)
    systems = ["first.txt", "ours.txt"]
    truth = evaluate(
        "dev.docs", ["dev.ref"], systems, metrics=metrics, more=theirs, notices=Notices()
    )
    for a, b in zip(found.evaluation.systems, truth.systems, strict=True):
        assert (a.metrics, a.scores, a.word_classes) == (b.metrics, b.scores, b.word_classes)
        assert a.metrics["bleu"].role == "optimised"
    page = Path("out.html").read_text()
    assert "comet, held out" in page
    assert "F1 of classes of words" in page
    command = "report --trace ours.trace --docs dev.docs --ref dev.ref -m ter --word-list some=some"
    scores = ["--scores", "comet=baseline:first.comet", "--scores", "comet=decoded:ours.comet"]
    assert run([*command.split(), *scores, "--weights", "tuned.json", "--out", "again.html"]) == 0
    assert "comet, held out" in Path("again.html").read_text()
