"""`--ngram`: features of an n-gram model, from lists to weights and paths."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.files import write, write_weights
from support.ngrams import GOLDEN, golden, scores

from rerank.cli import run
from rerank.notices import Notices
from rerank.pipeline import Lists
from rerank.pipeline.kbest_source import KBestSource

LISTS = [["the lamp burns", "a old king sees", ""], [], ["zug1 unheard word", "moon"], ["the sea"]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(GOLDEN / "lmplz.arpa", "m.arpa")
    write(
        "dev.kbest",
        [
            f"{t} ||| {text} ||| TM0= {-k} ||| 0"
            for t, own in enumerate(LISTS)
            for k, text in enumerate(own)
        ],
    )
    write("dev.docs", ["x", "x", "x", "y"])
    write_weights("w.json", {"TM0": [0.25], "ngram": [1.0], "ngramoov": [-2.0]})
    return tmp_path


def test_features_are_the_scores_of_the_model_and_counts_of_unknown_words(here: Path) -> None:
    lists = Lists("dev.kbest", "dev.docs", score_files={"ngram": (("n", Path("m.arpa")),)})
    with KBestSource.open(lists, Notices()) as source:
        assert source.order == 0
        (scorer,) = source.scorers
        assert (scorer.name, tuple(scorer.columns)) == ("n", ("noov",))
        documents = list(source.read())
        x, y = scorer.score(documents)
    texts = [text for own in LISTS for text in own]
    expected = scores(golden("lmplz.arpa"), texts).sum(axis=1)
    found = [x.problem.unary(t) for t in range(2)] + [y.problem.unary(0)]
    assert np.concatenate(found).tolist() == expected.tolist()
    assert x.columns.ravel().tolist() == [0, 0, 0, 2, 0]
    assert scorer.report().startswith("n: 2 documents scored by m.arpa in ")
    assert [scorer.remembers(kbest) for _, kbest in documents] == [False, False]
    assert scorer.digest == hashlib.sha256(Path("m.arpa").read_bytes()).hexdigest()


def test_decoding_chooses_by_the_features_and_score_writes_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = "--kbest dev.kbest --docs dev.docs --ngram m.arpa"
    assert run(f"decode {files} --weights w.json --out out.txt".split()) == 0
    model, best = golden("lmplz.arpa"), []
    for own in LISTS:
        totals = [
            0.25 * -k
            + scores(model, [text]).sum()
            - 2 * sum(w in ("unheard", "word") for w in text.split())
            for k, text in enumerate(own)
        ]
        best.append(own[int(np.argmax(totals))] if own else "")
    assert Path("out.txt").read_text().split("\n")[:-1] == best
    assert run(f"score {files} --out scored".split()) == 0
    first = Path("scored").read_text().splitlines()[0]
    value = scores(model, [LISTS[0][0]]).sum()
    assert f"ngram= {value:.9g} ngramoov= 0" in first


def test_unknown_words_are_warned_of(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "decode --kbest dev.kbest --docs dev.docs --ngram m.arpa --weights w.json --out o"
    assert run(command.split()) == 0
    assert "word unknown to ngram (15.4% of the list's words" in capsys.readouterr().err


def test_the_model_is_an_input_that_weights_files_name(
    tuning_lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(GOLDEN / "lmplz.arpa", "m.arpa")
    command = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --ngram lm=m.arpa"
    assert run(f"{command} --out tuned.json".split()) == 0
    assert {"lm", "lmoov"} <= json.loads(Path("tuned.json").read_text())["weights"].keys()
    assert '"m.arpa"' in Path("tuned.json").read_text()


@pytest.mark.parametrize("block", [1, 20, 40])
def test_a_document_is_scored_in_blocks_of_lines(
    here: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    lists = Lists("dev.kbest", "dev.docs", score_files={"ngram": (("n", Path("m.arpa")),)})
    with KBestSource.open(lists, Notices()) as source:
        documents, (scorer,) = list(source.read()), source.scorers
        whole = scorer.score(documents)
        monkeypatch.setattr("rerank.scorers.ngram_model._BLOCK", block)
        for one, other in zip(whole, scorer.score(documents), strict=True):
            assert one.columns.tolist() == other.columns.tolist()
            for t in range(len(one.problem.lengths)):
                assert one.problem.unary(t).tolist() == other.problem.unary(t).tolist()
