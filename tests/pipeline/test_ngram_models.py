"""`train-ngram` and `perplexity --ngram`, from text to figures."""

import gzip
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.ngrams import GOLDEN, TEXT, golden, scores

from lm.ngrams import MOST_ORDER
from lm.ngrams.arpa_reading import read_arpa
from rerank.cli import cli, run
from rerank.cli.ngram_models import MOST_ORDER as MOST_OF_OPTION
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import NGramRecipe, ngram_perplexity, train_ngram


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a text of two documents and a model of lmplz."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power cut in these tests
    Path("train.txt").write_text("\n".join([*TEXT[:40], "", *TEXT[40:]]) + "\n")
    Path("text").write_text("the lamp burns\n\nthe unheard boat\nmoon\n")
    shutil.copy(GOLDEN / "lmplz.arpa", "lmplz.arpa")
    return tmp_path


def ran(command: str) -> int:
    return run(command.split())


def trained(out: str = "own.arpa", **options: Any) -> None:
    train_ngram(replace(NGramRecipe(order=3), **options), "train.txt", out, notices=Notices())


def test_a_model_is_that_of_lmplz_and_blank_lines_are_not_sentences(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("train-ngram --order 3 --train train.txt --out own.arpa.gz") == 0
    said = capsys.readouterr().err
    assert "kneser-ney of order 3: 693 words (0.00% outside the vocabulary) in 90 sent" in said
    assert "33 1-grams, 173 2-grams, 416 3-grams" in said
    assert "3-grams D1 0.625, D2 1.269, D3+ 2.063" in said
    own = read_arpa(gzip.decompress(Path("own.arpa.gz").read_bytes()).split(b"\n"))
    queries = [*TEXT[:9], "the unheard king", ""]
    expected = scores(golden("lmplz.arpa"), queries)
    assert scores(own, queries) == pytest.approx(expected, abs=2e-5)


def test_perplexity_has_the_columns_of_language_models(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # base-10 logarithms from KenLM 0.3.0: `score` of its Python module
    log10 = {"the lamp burns": -4.090147, "the unheard boat": -5.510195, "moon": -3.296734}
    assert ran("perplexity --ngram lmplz.arpa text --format json --per-document") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nats"] == pytest.approx(-sum(log10.values()) * 2.302585, abs=2e-4)
    assert (found["sentences"], found["tokens"], found["oov"]) == (3, 7, 1)
    assert [one["tokens"] for one in found["documents"]] == [3, 4]
    assert ran("perplexity --ngram lmplz.arpa text") == 0
    line = capsys.readouterr().out
    assert line.startswith(f"perplexity {found['perplexity']:.2f} (without </s> ")
    assert ran("perplexity --ngram lmplz.arpa text --format tsv") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert (
        float(dict(zip(header.split("\t"), row.split("\t"), strict=True))["nats"])
        == (found["nats"])
    )


def test_stupid_backoff_is_not_called_perplexity(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(smoothing="stupid-backoff")
    assert ran("perplexity --ngram own.arpa text") == 0
    assert "no perplexity, and not comparable with one" in capsys.readouterr().out
    found = ngram_perplexity("own.arpa", "text", notices=Notices(), per_document=True)
    assert found.documents is not None
    assert {"perplexity"} & {key for one in found.documents for key in one.as_json()} == set()


def test_words_outside_the_vocabulary_are_the_unknown_class(here: Path) -> None:
    trained(vocabulary=5, discount_fallback=True)
    trained("least.arpa", min_count=40, discount_fallback=True)
    small, least = (
        read_arpa(Path(f).read_bytes().split(b"\n")) for f in ("own.arpa", "least.arpa")
    )
    assert len(small.vocabulary.words) == 5
    counts = {word: " ".join(TEXT).split().count(word) for word in " ".join(TEXT).split()}
    frequent = {word.encode() for word, n in counts.items() if n >= 40}
    assert set(least.vocabulary.words) == frequent
    assert small.unknown_share > 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 5}, "none that occur .*; take more text, a lower --order, or --discount-fallb"),
        ({"min_count": 1000}, "--vocab-min-count 1000: no word is so frequent"),
        ({"smoothing": "stupid-backoff", "discount_fallback": True}, "has no discounts; leave it"),
        ({"smoothing": "laplace"}, "--smoothing laplace: expected kneser-ney or stupid-backoff"),
    ],
    ids=["no discounts", "no words", "a fallback of nothing", "an unknown smoothing"],
)
def test_faults_are_told_with_their_cure_and_nothing_is_written(
    options: dict[str, Any], message: str, here: Path
) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        trained(**options)
    assert not Path("own.arpa").exists()


def test_words_that_arpa_files_cannot_hold_are_refused_with_the_line(here: Path) -> None:
    Path("train.txt").write_text("a b\na\tb c\n")
    with pytest.raises(InputError, match=r"train\.txt:2: expected words between spaces, found a T"):
        trained()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "expected --lm DIR or --ngram FILE, found neither; give one of them"),
        ("--ngram m --lm d", "--lm: not for the n-gram model of --ngram; leave one of them out"),
        ("--ngram m --document-cache 0.1", "--document-cache: not for the n-gram model"),
        ("--ngram m --across-documents", "--across-documents: not for the n-gram model"),
        ("--ngram m --duplicate-last-word", "--duplicate-last-word: not for the n-gram model"),
        ("--ngram m --source s", "--source: not for the n-gram model"),
        ("--ngram m --threads 1", "--threads: not for the n-gram model"),
        ("--ngram m --device cpu", "--device: not for the n-gram model"),
        ("--ngram - -", "only one input can be - (standard input)"),
    ],
)
def test_options_that_ngram_models_do_not_have_are_refused(
    options: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = [] if options.endswith(" -") else ["text"]
    assert run(["perplexity", *options.split(), *text]) == 2
    assert message in capsys.readouterr().err


def test_the_option_allows_the_orders_that_there_are() -> None:
    assert MOST_OF_OPTION == MOST_ORDER
    assert "train-ngram" in cli.commands
