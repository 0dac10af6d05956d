"""`--drop-unreferenced`: smaller files are the truth."""

import json
from itertools import chain
from pathlib import Path

import pytest
from support.files import write, write_weights

from rerank.cli import run
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists
from rerank.pipeline.references import read_targets

SENTENCES = {
    "a": ("the lamp is lit now", "it gives light"),
    "b": ("she left us there", "who knows that"),
    "c": ("the old house burns", "it is cold at night"),
    "d": ("he saw the bridge again", "nobody sees the lamp"),
}
SYSTEMS = {"X": ("the", "a"), "Y": ("it", "this"), "Z": ("s", "z")}
DROP = "--drop-unreferenced"


def xml(unreferenced: str = "", names: str = "abcd", source: str = "s") -> str:
    """WMT XML of some documents, of which some have no reference."""
    parts = ["<dataset>"]
    for name in names:
        sides = {"src": [source] * 2, 'ref translator="A"': SENTENCES[name]}
        sides |= {
            f'hyp system="{system}"': [text.replace(*change) for text in SENTENCES[name]]
            for system, change in SYSTEMS.items()
        }
        parts.append(f'<doc id="{name}">')
        for tag, texts in sides.items():
            if not (tag.startswith("ref") and name in unreferenced):
                segments = (f'<seg id="{n}">{text}</seg>' for n, text in enumerate(texts, 1))
                parts.append(f"<{tag}>{''.join(segments)}</{tag.split()[0]}>")
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>\n"])


def kbest(names: str) -> list[str]:
    texts = [text for name in names for text in SENTENCES[name]]
    return [
        f"{n} ||| {text.replace(*change)} ||| LM0= -{k + len(text) % 3} TM0= {k * len(text) % 5}"
        " ||| 0"
        for n, text in enumerate(texts)
        for k, change in enumerate(SYSTEMS.values())
    ]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with XML whose document b has no reference, and lists of all and less."""
    monkeypatch.chdir(tmp_path)
    Path("all.xml").write_text(xml(unreferenced="b"))
    Path("less.xml").write_text(xml(names="acd"))
    write("all.kbest", kbest("abcd"))
    write("less.kbest", kbest("acd"))
    write_weights("w.json", {"LM0": [1.0], "TM0": [0.5]})
    return tmp_path


def tuned(command: str, out: str) -> dict[str, object]:
    assert run([*command.split(), "--out", out, "-q"]) == 0
    found: dict[str, object] = json.loads(Path(out).read_text())
    return found


@pytest.mark.parametrize("lists", ["--kbest {}.kbest", "--systems {}.xml"], ids=["list", "systems"])
def test_weights_are_tuned_on_the_sentences_that_have_references(
    lists: str, capsys: pytest.CaptureFixture[str]
) -> None:
    of_all = f"tune-mert {lists.format('all')} --ref all.xml#A"
    assert run([*of_all.split(), "--out", "two.json"]) == 3
    assert "or leave these sentences out with --drop-unreferenced" in capsys.readouterr().err
    one = tuned(f"tune-mert {lists.format('less')} --ref less.xml#A", "one.json")
    two = tuned(f"{of_all} {DROP}", "two.json")
    assert two["weights"] == one["weights"]
    made = two["provenance"]
    assert isinstance(made, dict)
    assert made["unreferenced"] == 2


def test_the_sentences_left_out_are_counted_in_one_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = f"tune-mbr --kbest all.kbest --ref all.xml#A --weights w.json {DROP} --out mbr.json"
    assert run(command.split()) == 0
    said = capsys.readouterr().err
    assert said.count("sentence without reference") == 1
    assert "warning: 2 x sentence without reference, left out (--drop-unreferenced)" in said


def test_mbr_and_ablation_see_the_sentences_that_have_references(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = tuned("tune-mbr --kbest less.kbest --ref less.xml --weights w.json", "one.json")
    two = tuned(f"tune-mbr --kbest all.kbest --ref all.xml --weights w.json {DROP}", "two.json")
    assert one["mbr_spread"] == two["mbr_spread"]
    found = []
    for stem, drop in (("less", ""), ("all", DROP)):
        files = f"--kbest {stem}.kbest --ref {stem}.xml --weights w.json"
        scorer = "--scorer c=document-cache --default-weight 1"
        command = f"ablate {files} {scorer} --format json -q {drop}"
        assert run(command.split()) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


@pytest.mark.parametrize("lists", ["--kbest all.kbest", "--systems all.xml"])
def test_check_measures_the_sentences_that_have_references(
    lists: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"check {lists} --ref all.xml#A".split()) == 3
    capsys.readouterr()
    assert run(f"check {lists} --ref all.xml#A {DROP}".split()) == 0
    said = capsys.readouterr().out
    assert "sentences   6" in said
    assert "sentence without reference, left out (--drop-unreferenced) (2 times)" in said


def test_a_set_without_any_reference_is_refused() -> None:
    Path("none.xml").write_text(xml(unreferenced="ab", names="abc"))
    lists = Lists("all.kbest", docs="docs", drop_unreferenced=True)
    write("docs", "aabb")
    with pytest.raises(InputError, match="expected references of these 4 sentences, found none"):
        read_targets(lists, ["none.xml#A"], Notices())


def test_pair_scores_of_documents_in_parts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write("pairs", ["a\t0\t-\t0\t1"])
    command = f"tune-mert --kbest all.kbest --ref all.xml --pair-scores p=pairs {DROP} --out o.json"
    assert run(command.split()) == 2
    assert "--pair-scores: its lines number the sentences of whole" in capsys.readouterr().err


def test_check_takes_the_documents_of_the_reference_as_tuning_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["check", "--kbest", "less.kbest", "--ref", "less.xml#A"]) == 0
    assert "documents   3 of 2 sentences" in capsys.readouterr().out
    lines = [{"document": name, "ref": text} for name in "acd" for text in SENTENCES[name]]
    write("less.jsonl", map(json.dumps, lines))
    assert run(["check", "--kbest", "less.kbest", "--ref", "less.jsonl"]) == 0
    assert "documents   3 of 2 sentences" in capsys.readouterr().out


@pytest.mark.parametrize(("no_docs", "n"), [("one", 1), ("each", 6)])
def test_systems_in_xml_are_read_without_its_documents(no_docs: str, n: int) -> None:
    named = tuple((name, Path(f"less.xml#{name}")) for name in SYSTEMS)
    whole = KBestSource.open(Lists("", systems=named), Notices())
    parts = KBestSource.open(Lists("", no_docs=no_docs, systems=named), Notices())
    with whole as one, parts as other:
        assert len(other.documents) == n
        texts = [[k.texts.to_list() for _, k in source.read()] for source in (one, other)]
    assert list(chain(*texts[0])) == list(chain(*texts[1]))
