"""`train-ngram` against `lmplz` of KenLM, and its models as features."""

import gzip
import sys

import numpy as np
import pytest
from support.ngrams import GOLDEN, TEXT, golden, log10_of_words
from support.world import World

from lm.ngrams import NGramModel
from lm.ngrams.arpa import read_arpa

BINARIES = ["lmplz.probing", "lmplz.trie"]  # by KenLM's `build_binary probing|trie lmplz.arpa`


@pytest.fixture(autouse=True)
def text(world: World) -> None:
    world.write("train.txt", [*TEXT[:40], "", *TEXT[40:]])


def trained(world: World, options: str, out: str = "own.arpa") -> NGramModel:
    world.ok(f"train-ngram --train train.txt --out {out} {options} -q")
    return read_arpa(world.content(out).split(b"\n"))


def test_a_model_is_that_of_lmplz_and_blank_lines_are_not_sentences(world: World) -> None:
    said = world.ok("train-ngram --order 3 --train train.txt --out own.arpa.gz").err
    assert "kneser-ney of order 3: 693 words (0.00% outside the vocabulary) in 90 sent" in said
    assert "33 1-grams, 173 2-grams, 416 3-grams" in said
    for told in (  # as lmplz prints them
        "1-grams D1 0.273, D2 1.591, D3+ 1.364",
        "2-grams D1 0.490, D2 1.265, D3+ 1.247",
        "3-grams D1 0.625, D2 1.269, D3+ 2.063",
    ):
        assert told in said
    own = read_arpa(gzip.decompress(world.content("own.arpa.gz")).split(b"\n"))
    other = golden("lmplz.arpa")
    assert own.ngrams.counts == other.ngrams.counts
    # texts with all n-grams of the model, and others that back off
    for query in [*TEXT, *(" ".join(line.split()[::-1]) for line in TEXT), "the unheard king", ""]:
        expected = log10_of_words(other, query)
        assert log10_of_words(own, query) == pytest.approx(expected, abs=3e-6)


def test_words_outside_the_vocabulary_are_the_unknown_class(world: World) -> None:
    small = trained(world, "--order 3 --vocab 5 --discount-fallback")
    least = trained(world, "--order 3 --vocab-min-count 40 --discount-fallback")
    assert len(small.vocabulary.words) == 5
    words = " ".join(TEXT).split()
    assert {*least.vocabulary.words} == {w.encode() for w in words if words.count(w) >= 40}
    assert small.unknown_share > 0.2


def test_stupid_backoff_is_not_called_perplexity(world: World) -> None:
    trained(world, "--order 3 --smoothing stupid-backoff")
    said = world.ok("perplexity --ngram own.arpa train.txt").out
    assert "no perplexity, and not comparable with one" in said
    result = world.ok("perplexity --ngram own.arpa train.txt --format json --per-document").json
    assert not any("perplexity" in document for document in result["documents"])


def test_the_model_is_an_input_that_weights_files_name(world: World) -> None:
    world.draw()
    world.write("m.arpa", (GOLDEN / "lmplz.arpa").read_bytes())
    command = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --ngram lm=m.arpa"
    run = world.ok(f"{command} --starts 1 --out tuned.json")
    assert {"lm", "lmoov"} <= world.json("tuned.json")["weights"].keys()
    assert '"m.arpa"' in world.text("tuned.json")
    assert "lm: 4 documents scored by m.arpa in " in run.err
    assert "word unknown to lm (" in run.err


@pytest.mark.parametrize("binary", BINARIES)
def test_a_binary_of_kenlm_has_the_features_of_its_arpa_file(binary: str, world: World) -> None:
    pytest.importorskip("kenlm")
    lines = [*TEXT[:9], "", "the lamp  burns", "unheard", "the <unk> <s> lamp", "</s> lamp"]
    world.write("k", [f"{n} ||| {line} ||| TM0= 0 ||| 0" for n, line in enumerate(lines)])
    features = []
    for name in (binary, "lmplz.arpa"):
        world.write("model", (GOLDEN / name).read_bytes())
        run = world.ok("score --kbest k --no-docs one --ngram n=model --out -")
        assert "word unknown to n (" in run.err
        values = [line.split(" ||| ")[2].split() for line in run.lines]
        features.append([[float(value[3]), float(value[5])] for value in values])
    np.testing.assert_allclose(features[0], features[1], rtol=1e-6)  # float32 sums of back-offs


def test_without_kenlm_a_cure_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    world.write("m.bin", (GOLDEN / BINARIES[0]).read_bytes())
    run = world.run("score --kbest dev.kbest --docs dev.docs --ngram m.bin --out out")
    assert run.exit in (2, 3)
    assert "pip install 'rerank-mt[kenlm]'" in run.err.splitlines()[-1]
