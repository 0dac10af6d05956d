"""Subword units: segmentation, learning, files of SentencePiece, and texts in pieces.

The truth: all segmentations enumerated, merges one by one, and the package `tokenizers`.
"""

import math
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.models import beside, config_of, nll_one_by_one

from lm.corpus import intern, renumber
from lm.evaluation import perplexity
from lm.folders import ModelError, read_vocabulary, write_vocabulary
from lm.model import DocumentLM
from lm.ngrams import FALLBACK, KneserNey, count_ngrams
from lm.ngrams.arpa import PIECES, ArpaError, arpa, read_arpa
from lm.subwords import SEGMENTATIONS, Scores, SubwordError, SubwordVocabulary, learn, read_pieces
from lm.training.settings import Settings
from lm.training.trainer import Trainer
from lm.vocabulary import SPECIAL, UNKNOWN
from lm.zoo import ZOO

SCORES = {
    "▁": -3.0,
    "a": -2.0,
    "b": -2.5,
    "ab": -3.0,
    "▁a": -4.0,
    "ba": -3.5,
    "aba": -5.25,
    "é": -4.0,
}
OF_SCORES = Scores(SCORES, 3, min(SCORES.values()))

TEXT = Counter({b"the": 9, b"lamp": 5, b"lamps": 3, b"lit": 4, b"is": 7, b"it": 6, b"\xc3\xa9t": 1})
words_of_text = st.text(min_size=1).filter(
    lambda w: not set(w) & set(" \n") and w.encode() not in SPECIAL
)
kinds = pytest.mark.parametrize("kind", SEGMENTATIONS)


def made(kind: str, scores: dict[str, float] = SCORES, **more: Any) -> SubwordVocabulary:
    return SubwordVocabulary.of(scores, {}, kind, **more)


@kinds
@given(lines=st.lists(st.lists(words_of_text, min_size=1), max_size=4))
def test_any_text_has_pieces_that_make_it_up(kind: str, lines: list[list[str]]) -> None:
    vocabulary = made(kind)
    texts = [" ".join(words).encode() for words in lines]
    tokens, offsets = vocabulary.encode_lines(b"".join(text + b"\n" for text in texts))
    assert (tokens > UNKNOWN + 2).all()
    rows = [tokens[a:b].tolist() for a, b in pairwise(offsets)]
    assert rows == [vocabulary.encode(text.split(b" ")) for text in texts]
    expected = [text if not text.isspace() else "▁".encode() for text in texts]
    assert [vocabulary.line(row) for row in rows] == expected
    words, corpus = intern(texts)
    result = renumber(corpus, words, vocabulary)
    assert result.tokens.tolist() == tokens.tolist() or any(text.isspace() for text in texts)
    if result.words is not None and not any(text.isspace() for text in texts):
        assert result.words.tolist() == [*map(len, lines)]
        assert result.take(np.arange(len(rows))).tokens.tolist() == tokens.tolist()


@given(st.text("abc", max_size=6))
def test_unigram_segmentation_has_the_largest_sum_of_all(word: str) -> None:
    text, unknown = f"▁{word}", min(SCORES.values()) - 10
    sums = []
    for n in range(len(text)):
        for cuts in combinations(range(1, len(text)), n):
            parts = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
            if all(part in SCORES or len(part) == 1 for part in parts):
                sums.append(sum(SCORES.get(part, unknown) for part in parts))
    result = SEGMENTATIONS["unigram"](text, OF_SCORES)
    assert "".join(result) == text
    assert sum(SCORES.get(part, unknown) for part in result) == pytest.approx(max(sums))


@given(st.text("abcé", max_size=12))
def test_byte_pairs_are_merged_one_by_one_the_largest_score_first(word: str) -> None:
    units = [*f"▁{word}"]
    while True:
        pairs = [(-SCORES[a + b], i) for i, (a, b) in enumerate(pairwise(units)) if a + b in SCORES]
        if not pairs:
            break
        _, i = min(pairs)
        units[i : i + 2] = [units[i] + units[i + 1]]
    assert SEGMENTATIONS["bpe"](f"▁{word}", OF_SCORES) == units


@kinds
def test_pieces_are_learnt_of_a_text_and_lie_in_a_folder_as_json(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    result = learn(kind, 269, TEXT)
    assert len(result) == 269 + len(SPECIAL)
    assert result.encode([b"<unk>", b"</s>"]) == [UNKNOWN] * 2
    assert result.line(result.encode([b"it", b"<unk>", b"is"])) == b"it <unk> is"
    assert result.line(result.encode([b"lamp", "ünheard".encode()])) == "lamp ünheard".encode()
    digest = write_vocabulary(tmp_path, result)
    assert read_vocabulary(tmp_path / "config.json", digest, len(result), 9999) == result
    with pytest.raises(ModelError, match="expected a vocabulary of 9"):
        read_vocabulary(tmp_path / "config.json", digest, 9, 9999)
    with pytest.raises(SubwordError, match=r"characters .* choose 26[0-9] or more"):
        learn(kind, 260, TEXT)
    with pytest.raises(SubwordError, match=r"allows no more than [0-9]+ pieces") as fault:
        learn(kind, 900, TEXT)
    most = int(str(fault.value).split(" than ")[1].split()[0])
    assert len(learn(kind, most, TEXT)) == most + len(SPECIAL)


# Files of SentencePiece
def field(number: int, value: int | bytes | float) -> bytes:
    """A field of a message of protocol buffers, of a number below 128."""
    tag, high = number << 3, bytes([(number << 3 & 127) | 128, number >> 4])
    if isinstance(value, int):
        return (bytes([tag]) if tag < 128 else high) + bytes([value])
    if isinstance(value, float):
        return bytes([tag | 5]) + struct.pack("<f", value)
    size = (
        bytes([len(value)])
        if len(value) < 128
        else bytes([len(value) & 127 | 128, len(value) >> 7])
    )
    return bytes([tag | 2]) + size + value


def model_file(
    kind: int | bytes = 1,
    name: bytes = b"nmt_nfkc",
    suffix: int = 0,
    split: int = 1,
    prefix: int = 1,
    more: Mapping[str, float] = {},
) -> bytes:
    """A .model file with the pieces of `SCORES` and more, its special pieces, and one of a byte.

    split, prefix: 0 for a file trained with split_by_whitespace or add_dummy_prefix false.
    """
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("<0x41>", 0.0, 6)]
    pieces += [(piece, score, 1) for piece, score in {**SCORES, **more}.items()]
    own = [field(1, p.encode()) + field(2, s) + field(3, t) for p, s, t in pieces]
    trainer = field(3, kind) + (field(24, suffix) if suffix else b"")
    trainer += b"" if split else field(22, split)
    normaliser = field(1, name) + (b"" if prefix else field(3, prefix))
    return b"".join(field(1, one) for one in own) + field(2, trainer) + field(3, normaliser)


@kinds
def test_pieces_of_a_file_of_sentencepiece(kind: str) -> None:
    result = read_pieces(model_file(1 + (kind == "bpe")), {})
    assert result == made(kind, normalisation="nfkc")
    fullwidth = "ａb\u00a0a".encode()  # NFKC: "ab a"
    assert result.pieces(fullwidth) == result.encode([b"ab", b"a"])


@pytest.mark.parametrize(("raw", "message"), [
    (b"the lamp is lit\n", "not a model file of SentencePiece"),
    (b"", "expected pieces .* found none"),
    (model_file()[:-3], "not a model file"),
    (model_file(3), "expected a unigram or BPE model"),
    (model_file(suffix=1), "expected a unigram or BPE model"),
    (model_file(split=0), "one word each, .* split_by_whitespace=false; train"),
    (model_file(prefix=0), "before every word, .* add_dummy_prefix=false; train"),
    (model_file(b"abc"), "not a model file"),
    (model_file(more={"c": math.nan}), "finite scores, found an empty one, NaN or infinity"),
    (model_file(more={"c": math.inf}), "finite scores, found an empty one, NaN or infinity"),
    (model_file(more={"": -1.0}), "one character or more"),
    (model_file(name=b"own"), "nfkc, nfkc_cf, found 'own'"),
], ids=[
        "text", "empty", "cut", "words", "suffix", "split", "prefix", "kind", "nan", "inf",
        "no-text", "normalisation",
    ])  # fmt: skip
def test_other_files_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(SubwordError, match=message):
        read_pieces(raw, {})


def test_pieces_with_spaces_are_of_no_line_of_text() -> None:
    """Gemma's model file has pieces of line ends and TABs; an ARPA file could not hold them."""
    expected = made("unigram", normalisation="nfkc")
    assert read_pieces(model_file(more={"\n": -1.0, "\t": -1.0, "a b": -1.0}), {}) == expected


@given(st.binary())
def test_bytes_that_are_no_model_file_are_refused(raw: bytes) -> None:
    with pytest.raises(SubwordError):
        read_pieces(raw, {})


# n-gram models
def test_an_arpa_file_of_pieces_has_them_above_the_data() -> None:
    texts = [b"a b ab", b"ab a", b"b \xc3\xa9 ba", b"a", b"ba ab ab c"] * 2
    words, raw = intern(texts)
    vocabulary = made("bpe")
    corpus = renumber(raw, words, vocabulary)
    counts = count_ngrams(corpus, len(vocabulary), 2)
    model, _ = KneserNey(FALLBACK).estimate(counts, vocabulary)
    lines = b"".join(arpa(model)).split(b"\n")
    result = read_arpa(lines)
    assert {*result.vocabulary.words} == {*vocabulary.words}
    text = b"ab unheard \xc3\xa9\nb\n"
    own, theirs = (m.scores(*m.vocabulary.encode_lines(text)) for m in (model, result))
    assert own == pytest.approx(theirs)
    assert not own[:, 2].any()  # of unknown words
    for line in (PIECES + b"{}", PIECES + b"[", lines[0].replace(b'"ba"', b'"bc"')):
        with pytest.raises(ArpaError, match="expected the pieces"):
            read_arpa([line, *lines[1:]])


# Language models
SPOKEN = (b"ab a ba", b"unheard \xc3\xa9", b"ab", b"", b"b ba", b"a ab ab", b"ba", b"") * 2
FIGURES = Settings(epochs=1, seed=5, streams=2, segment=2, learning_rate=1e-2, negatives=6)


@pytest.mark.parametrize("name", [*ZOO, *(family.replace("-N", "-2") for family in ZOO.families)])
def test_every_model_learns_pieces_and_scores_a_document_as_its_single_sentences(name: str) -> None:
    """One update of training; then all sentences at once against one after the other."""
    vocabulary = made("unigram")
    words, raw = intern(SPOKEN)
    corpus = beside(renumber(raw, words, vocabulary))
    config = config_of(name, len(vocabulary), 4, 5)
    if config.topics_number is not None:
        pytest.importorskip("sklearn", reason="topics are learnt by scikit-learn")
        config = replace(config, topics_number=2)
    model = DocumentLM.seeded(config, 3)
    model.context.fit(corpus, 3)
    trainer = Trainer(model, corpus, corpus, settings=FIGURES)
    before = model.embedding.weight.clone()
    next(iter(trainer.run()))
    assert not torch.equal(model.embedding.weight, before)
    if not model.causal:  # sentences are given later ones
        assert np.isfinite(perplexity(model, corpus).nats)
        return
    result = perplexity(model.eval(), corpus)
    total = sum(float(nll.double().sum()) for nll in nll_one_by_one(model, corpus))
    assert result.nats == pytest.approx(total, rel=1e-5)
    assert result.words == int(sum(len(line.split()) for line in SPOKEN))


def test_kneser_ney_of_pieces_scores_a_text_as_its_single_sentences() -> None:
    words, raw = intern(SPOKEN)
    vocabulary = made("unigram")
    counts = count_ngrams(renumber(raw, words, vocabulary), len(vocabulary), 3)
    model, _ = KneserNey(FALLBACK).estimate(counts, vocabulary)
    lines = [b"ab unheard\n", b"a \xc3\xa9 ba\n", b"\n"]
    whole = model.scores(*vocabulary.encode_lines(b"".join(lines)))
    single = [model.scores(*vocabulary.encode_lines(line)) for line in lines]
    assert whole == pytest.approx(np.concatenate(single))
    first = vocabulary.encode([b"ab"])
    tokens = np.array([[*first, n] for n in range(len(SPECIAL), len(vocabulary))], np.int32)
    starts = np.arange(0, tokens.size + 1, tokens.shape[1])
    sums = model.scores(tokens.reshape(-1), starts)
    before = model.scores(np.array(first, np.int32), np.array([0, len(first)]))
    after = np.exp(sums[:, 0] - before[0, 0]).sum() + np.exp(before[0, 1])
    assert 1 - model.unknown_share - 1e-6 <= after <= 1 + 1e-6  # all but <unk>
