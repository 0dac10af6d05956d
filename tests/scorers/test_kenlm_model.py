"""KenLM binaries against our scores of the ARPA file that they were built from.

`lmplz.probing` and `lmplz.trie` are from KenLM's `build_binary probing|trie lmplz.arpa`.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from support.files import write, write_weights
from support.ngrams import GOLDEN, TEXT, golden

from rerank.cli import run
from rerank.errors import InputError
from rerank.scorers.kenlm_model import KenlmModel, is_kenlm_binary
from rerank.scorers.ngram_model import ArpaModel

BINARIES = [GOLDEN / "lmplz.probing", GOLDEN / "lmplz.trie"]
LINES = [*TEXT[:9], "", "the lamp", "the lamp  burns", "unheard", "the <unk> <s> lamp", "</s> lamp"]


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: path.suffix[1:])
def test_scores_and_unknown_words_are_those_of_the_arpa_file(path: Path) -> None:
    pytest.importorskip("kenlm")
    assert is_kenlm_binary(path)
    ours, theirs = ArpaModel(golden("lmplz.arpa")), KenlmModel(path)
    text = "".join(f"{line}\n" for line in LINES).encode()
    expected, found = ours.scores(text), theirs.scores(text)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)  # float32 sums of back-offs
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[2] == expected[2]
    assert theirs.unknown_share == pytest.approx(ours.unknown_share, rel=1e-5)
    for word in (b"lamp", b"unheard", b"<s>", b"<unk>"):
        assert (word in theirs) == (word in ours)


def test_a_binary_that_is_cut_short_is_refused_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    path = tmp_path / "cut.bin"
    path.write_bytes(BINARIES[0].read_bytes()[:2000])
    with pytest.raises(InputError, match="kenlm cannot load this binary") as fault:
        KenlmModel(path)
    assert "\n" not in str(fault.value)


def test_without_the_package_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "kenlm", None)
    command = commands(tmp_path)
    assert run(command.split()) in (2, 3)
    (*_, last) = capsys.readouterr().err.splitlines()
    assert "pip install 'rerank-mt[kenlm]'" in last
    assert not Path("out.txt").exists()


def test_decode_takes_a_binary_as_it_takes_an_arpa_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("kenlm")
    monkeypatch.chdir(tmp_path)
    outputs = []
    for model in ("m.bin", "m.arpa"):
        assert run(commands(tmp_path).replace("m.bin", model).split()) == 0
        outputs.append(Path("out.txt").read_text())
        assert "word unknown to ngram" in capsys.readouterr().err
    assert outputs[0] == outputs[1]


def commands(folder: Path) -> str:
    shutil.copy(BINARIES[0], folder / "m.bin")
    shutil.copy(GOLDEN / "lmplz.arpa", folder / "m.arpa")
    texts = ("the lamp burns", "burns lamp the", "unheard word sees")
    write("dev.kbest", [f"0 ||| {text} ||| TM0= {-k} ||| 0" for k, text in enumerate(texts)])
    write_weights("w.json", {"TM0": [0.01], "ngram": [1.0], "ngramoov": [-1.0]})
    return "decode --kbest dev.kbest --no-docs one --ngram m.bin --weights w.json --out out.txt"
