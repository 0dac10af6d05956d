"""Topic models through the command line: learned, saved, and labels written beside texts."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.files import read, write

from rerank.cli import run

LAMPS, BOATS = ["lamp", "light", "oil", "wick", "flame"], ["boat", "oar", "sail", "mast", "keel"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: documents of two topics, which share the word `the`."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    lines = []
    for n in range(60):
        words = (LAMPS, BOATS)[n % 2]
        lines += [" ".join(["the", *rng.choice(words, 5).tolist()]) for _ in range(4)] + [""]
    write("text", lines)
    return tmp_path


def learn(options: str = "") -> int:
    return run(f"topics learn text --topics-number 2 --out model -q {options}".split())


@pytest.mark.parametrize("kind", ["kmeans", "lda"])
def test_topics_are_learned_shown_and_written_beside_texts(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    assert learn(f"--topic-model {kind} --format json") == 0
    none, *found = json.loads(capsys.readouterr().out)["topics"]
    assert none == {"label": "0", "sentences": 0, "words": []}
    assert [one["sentences"] for one in found] == [120, 120]
    own = sorted(sorted({*one["words"]} - {"the"}) for one in found)
    assert own == [sorted(BOATS), sorted(LAMPS)]
    of = {word: one["label"] for one in found for word in one["words"]}
    write("new", ["the lamp", "wick", "", "", "oar the sail", "what"])
    assert run(["topics", "label", "--model", "model", "new", "--out", "labels", "-q"]) == 0
    assert read("labels") == [of["lamp"], of["wick"], "", "", of["oar"], "0"]
    assert {path.suffix for path in Path("model").iterdir()} == {".json", ".safetensors"}


def test_labels_do_not_depend_on_how_many_sentences_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("sklearn")
    assert learn() == 0
    found = []
    for size in (1, 7, 4096):
        monkeypatch.setattr("lm.topics.AT_ONCE", size)
        assert run(["topics", "label", "--model", "model", "text", "--out", "labels", "-q"]) == 0
        found.append(read("labels"))
    assert found[0] == found[1] == found[2]
    assert sorted(set(found[0])) == ["", "1", "2"]
    again = "topics learn text --topics-number 2 --out again -q"
    assert run(again.split()) == 0
    names = [sorted(path.name for path in Path(one).iterdir()) for one in ("model", "again")]
    assert names[0] == names[1]  # digests of the weights are in the names


def test_labels_stand_beside_lists_paragraphs_and_for_training() -> None:
    pytest.importorskip("sklearn")
    assert learn() == 0
    write("new", ["the lamp", "", "oar the sail", "<p>", "wick"])
    label = "topics label --model model new --out labels -q"
    assert run(f"{label} --documents paragraphs".split()) == 0
    lamp, _, boat, *others = read("labels")
    assert (read("labels")[1], others, lamp != boat) == ("", ["<p>", lamp], True)
    write("docs", list("aabbb"))
    assert run(f"{label} --docs docs".split()) == 0
    assert read("labels") == [lamp, "0", boat, "0", lamp]
    assert run(["topics", "label", "--model", "model", "text", "--out", "text.topics", "-q"]) == 0
    train = "train-lm --train text --valid text --topics text.topics --valid-topics text.topics -q"
    train = f"{train} --model clstm-given-topic --embed 4 --hidden 4 --epochs 1 --out lm"
    assert run(train.split()) == 0


def fault_of(command: str, capsys: pytest.CaptureFixture[str], code: int) -> str:
    """The only line of a command's messages."""
    capsys.readouterr()
    assert run(command.split()) == code
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_faults_are_one_line_and_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    learning = "topics learn text --out model"
    fault = fault_of(f"{learning} --topics-number 99", capsys, 2)
    assert "--topics-number 99: expected at least as many stretches" in fault
    assert "found 60; ask for fewer" in fault
    assert "no word is so frequent" in fault_of(f"{learning} --vocab-min-count 9999", capsys, 2)
    write("empty", [""])
    assert "found no words" in fault_of("topics learn empty --out model", capsys, 3)
    assert not Path("model").exists()
    label = "topics label --model model text --out labels"
    assert "topics.json: cannot be read" in fault_of(label, capsys, 3)
    assert learn() == 0
    fault = fault_of(learning, capsys, 2)
    assert fault.endswith("model: not empty; name a new folder")
    write("docs", ["a", "a"])
    fault = fault_of(f"{label} --docs docs", capsys, 3)
    assert "text: expected 2 lines, one for each line of docs, found 300" in fault
    fault = fault_of(f"{label} --docs docs --documents equals", capsys, 2)
    assert "every line is a sentence; leave one of them out" in fault
    assert not Path("labels").exists()


def test_an_altered_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    assert learn() == 0
    path = Path("model", "topics.json")
    content = json.loads(path.read_text())
    for change, message in (
        ({"topics": 3}, "expected weights of 3 topics and 14 words, found 2 and 14"),
        ({"words": None}, "expected weights of 2 topics and None words, found 2 and 14"),
        ({"vocabulary": "x"}, "expected a vocabulary's digest, found 'x'"),
        ({"shards": []}, "found other tensors; learn it again"),
    ):
        path.write_text(json.dumps(content | change))
        assert message in fault_of("topics label --model model text --out labels", capsys, 3)


def test_learning_without_scikit_learn_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rerank.pipeline.topics.find_spec", lambda name: None)
    fault = fault_of("topics learn text --out model", capsys, 2)
    assert fault.endswith("topics learn needs scikit-learn: pip install 'rerank-mt[topics]'")
