"""`rerank evaluate` on WMT XML, interleaved documents and test sets; plain files are the truth."""

import json
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from rerank.cli import run
from rerank.formats.documents.table import DocumentFile
from rerank.notices import Notices
from rerank.pipeline import Additions, CachedSet, evaluate
from rerank.report.evaluation import Evaluation

SENTENCES = {"a": ["the lamp is lit now", "it gives light"], "b": ["she left us", "who knows it"]}
SYSTEM = {"a": ["a lamp is lit now", "it gives light"], "b": ["she left", "who knows that"]}
BASE = {"a": ["a lamp burns now", "it is light"], "b": ["she left us", "who knows"]}


def xml(*, without: str = "") -> str:
    parts = ["<dataset>"]
    for name, lines in SENTENCES.items():
        parts.append(f'<doc id="{name}">')
        sides = {
            'ref translator="A"': lines,
            'hyp system="X"': SYSTEM[name],
            'hyp system="base"': BASE[name],
        }
        for tag, texts in sides.items():
            segments = "".join(f'<seg id="{n}">{x}</seg>' for n, x in enumerate(texts, 1))
            if tag.startswith("ref"):
                segments = "".join(
                    f'<seg id="{n}">{x}</seg>' for n, x in enumerate(texts, 1) if x != without
                )
            parts.append(f"<{tag}>{segments}</{tag.split()[0]}>")
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>\n"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.xml").write_text(xml())
    for name, side in (("ref", SENTENCES), ("X", SYSTEM), ("base", BASE)):
        Path(name).write_text("".join(f"{line}\n" for lines in side.values() for line in lines))
    Path("docs").write_text("a\na\nb\nb\n")
    return tmp_path


def plain() -> Evaluation:
    return evaluate("docs", ["ref"], ["base", "X"], metrics=["bleu"], notices=Notices())


def figures(found: Evaluation) -> object:
    """All of the numbers, without the names of the files."""
    text = json.dumps(found.to_dict()).replace("t.xml#", "")
    return json.loads(text)


def test_wmt_xml_is_evaluated_as_the_files_unwrapped_from_it(here: Path) -> None:
    found = evaluate(
        None, ["t.xml"], ["t.xml#base", "t.xml#X"], metrics=["bleu"], notices=Notices()
    )
    assert figures(found) == figures(plain())


def test_plain_systems_are_evaluated_against_wmt_xml(here: Path) -> None:
    found = evaluate("t.xml", ["t.xml#A"], ["base", "X"], metrics=["bleu"], notices=Notices())
    assert figures(found) == figures(plain())


def test_interleaved_documents_are_evaluated_as_sorted_ones(here: Path) -> None:
    order = [2, 0, 3, 1]
    for name in ("docs", "ref", "X", "base"):
        lines = Path(name).read_text().splitlines()
        Path(f"mixed.{name}").write_text("".join(f"{lines[place]}\n" for place in order))
    Path("X.score").write_text("3\n1\n4\n2\n")
    Path("base.score").write_text("3\n1\n4\n2\n")
    command = "evaluate --docs mixed.docs --ref mixed.ref --baseline mixed.base mixed.X -m bleu"
    assert run([*command.split(), "-q"]) == 3
    scores = (("comet", "mixed.X:X.score"), ("comet", "mixed.base:base.score"))
    found = evaluate(
        DocumentFile("mixed.docs", allow_interleaved=True),
        ["mixed.ref"],
        ["mixed.base", "mixed.X"],
        metrics=["bleu"],
        more=Additions(scores=scores),
        notices=Notices(),
    )
    assert sorted(document.id for document in found.documents) == ["a", "b"]
    assert found.systems[1].bleu == plain().systems[1].bleu
    assert run([*command.split(), "--allow-interleaved", "-q"]) == 0


def test_sentences_without_reference_are_left_out_if_that_is_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.xml").write_text(xml(without="it gives light"))
    command = "evaluate --ref t.xml --baseline base X -m bleu"
    assert run(command.split()) == 3
    assert "t.xml: expected a reference of each of 4 sentences" in capsys.readouterr().err
    for name in ("docs", "ref", "X", "base"):
        lines = Path(name).read_text().splitlines()
        Path(f"less.{name}").write_text("".join(f"{lines[place]}\n" for place in (0, 2, 3)))
    more = Additions(drop_unreferenced=True)
    found = evaluate(None, ["t.xml"], ["base", "X"], metrics=["bleu"], more=more, notices=Notices())
    truth = evaluate(
        "less.docs", ["less.ref"], ["less.base", "less.X"], metrics=["bleu"], notices=Notices()
    )
    assert [one.bleu for one in found.systems] == [one.bleu for one in truth.systems]


def test_a_cached_test_set_brings_references_and_documents(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DATASETS["wmt23"], "_outdir", str(here))
    for name in ("docs", "ref"):
        field = "docid" if name == "docs" else "ref-refA"
        Path(f"wmt23.ru-en.{field}").write_text(Path(name).read_text())
    found = evaluate(
        None,
        [],
        ["base", "X"],
        metrics=["bleu"],
        more=Additions(test_set=CachedSet("wmt23", "ru-en")),
        notices=Notices(),
    )
    assert figures(found) == figures(plain())
    assert (
        run(
            [
                "evaluate",
                "-t",
                "wmt23",
                "-l",
                "ru-en",
                "--baseline",
                "base",
                "X",
                "-m",
                "bleu",
                "-q",
            ]
        )
        == 0
    )
    again = evaluate(
        "sacrebleu:wmt23/ru-en",
        ["sacrebleu:wmt23/ru-en#refA"],
        ["base", "X"],
        metrics=["bleu"],
        notices=Notices(),
    )
    assert figures(again) == figures(plain())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-t wmt23", "--test-set and --language-pair: expected both or none"),
        ("-t wmt23 -l ru-en --ref ref", "expected --ref or --test-set, found both"),
        ("--no-docs one", "expected a reference file, found none"),
        ("--ref ref --no-docs one --docs-field 1", "--allow-interleaved: give --docs"),
        ("--ref ref --docs docs --docs-format size", "no document format 'size'; did you mean"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    words: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", "--baseline", "base", "X", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_the_oracle_of_interleaved_documents_is_that_of_sorted_ones(here: Path) -> None:
    order = [2, 0, 3, 1]
    for name in ("docs", "ref", "X", "base"):
        lines = Path(name).read_text().splitlines()
        Path(f"mixed.{name}").write_text("".join(f"{lines[place]}\n" for place in order))
    candidates = [Path(name).read_text().splitlines() for name in ("base", "X")]
    for name, places in (("kbest", range(4)), ("mixed.kbest", order)):
        rows = [(n, own[p]) for n, p in enumerate(places) for own in candidates]
        Path(name).write_text("".join(f"{n} ||| {text} ||| LM0= 1 ||| 1\n" for n, text in rows))
    one, other = (
        evaluate(
            DocumentFile(f"{stem}docs", allow_interleaved=True),
            [f"{stem}ref"],
            [f"{stem}base", f"{stem}X"],
            metrics=["bleu"],
            kbest=f"{stem}kbest",
            notices=Notices(),
        )
        for stem in ("", "mixed.")
    )
    assert one.oracle == other.oracle
    assert one.oracle is not None
