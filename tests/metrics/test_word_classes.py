"""Counts of the words of a class: truth from sacrebleu's clipped unigrams, and by hand."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from support.metrics import corpora

from rerank.errors import InputError
from rerank.metrics.bleu import Bleu
from rerank.metrics.word_classes import (
    CLOSED,
    ContentWords,
    ListedWords,
    Names,
    WordClass,
    WordF1,
    class_statistics,
    english_classes,
    read_frequencies,
    read_words,
)
from rerank.notices import Notices

VOWELS = ListedWords("vowels", frozenset("aeiou"))
lines = st.lists(st.sampled_from(["a", "e", "b", "c", "A", "&amp;"]), max_size=6).map(" ".join)


def statistics(
    classes: list[WordClass], hypotheses: list[str], references: list[list[str]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Rows (n, C, 3) of a hypothesis for each sentence; references as sacrebleu takes them."""
    return class_statistics(
        classes,
        [[line.encode()] for line in hypotheses],
        [[line.encode() for line in group] for group in zip(*references, strict=True)],
        Bleu().split,
    )


def only_vowels(text: str) -> str:
    return " ".join(word for word in text.lower().split() if word in VOWELS.words)


@settings(max_examples=60)
@given(corpora(lines))
def test_counts_are_those_of_sacrebleu_for_texts_of_these_words_alone(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    hypotheses, (reference, *_) = corpus
    rows = statistics([VOWELS], hypotheses, [reference])
    truth = BLEU(tokenize="none").corpus_score(
        list(map(only_vowels, hypotheses)), [list(map(only_vowels, reference))]
    )
    assert rows.sum(axis=0).tolist() == [[truth.counts[0], truth.totals[0], truth.ref_len]]


@settings(max_examples=60)
@given(corpora(lines))
def test_the_best_reference_counts_and_the_first_of_equal_ones(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    hypotheses, references = corpus
    rows = statistics([VOWELS], hypotheses, references)[:, 0].tolist()
    alone = [statistics([VOWELS], hypotheses, [one])[:, 0].tolist() for one in references]
    for row, *of_each in zip(rows, *alone, strict=True):
        quality = [1.0 if h + r == 0 else 2 * m / (h + r) for m, h, r in of_each]
        assert row == of_each[quality.index(max(quality))]


@given(corpora(lines))
def test_a_text_beside_itself_has_an_f1_of_100_and_exchange_leaves_f1_as_it_is(
    corpus: tuple[list[str], list[list[str]]],
) -> None:
    hypotheses, (reference, *_) = corpus
    f1 = WordF1("vowels")
    there, back = (
        statistics([VOWELS], ours, [theirs]).sum(axis=(0, 1))
        for ours, theirs in ((hypotheses, reference), (reference, hypotheses))
    )
    assert there.tolist() == [back[0], back[2], back[1]]
    assert f1.scores(there) == f1.scores(back)
    same = statistics([VOWELS], reference, [reference]).sum(axis=(0, 1))
    assert f1.scores(same) == (100 if same[1] else 0)


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    precision, recall = 3 / 4, 3 / 8
    found = WordF1("x").scores(np.array([[3, 4, 8], [0, 0, 0]]))
    assert found.tolist() == [100 * 2 * precision * recall / (precision + recall), 0]
    assert "|class:x|nrefs:2|" in WordF1("x").signature(2)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Anna saw Ben and I left .", ["Ben"]),
        ("he left . Then Carla came", ["Carla"]),
        ('he said , " Come , Dora ! "', ["Dora"]),
        ("- Yes . - Good , Emil", ["Emil"]),
        ("WHAT DID HE SAY", []),
        ("the NATO and the EU", ["NATO", "EU"]),
        ("3 Swiss and Österreich", ["Swiss", "Österreich"]),
        ("nobody here", []),
        ("", []),
    ],
)
def test_names_have_a_capital_inside_a_sentence(line: str, names: list[str]) -> None:
    assert Names(frozenset({"i"})).members(line.split()) == names


def test_escapes_are_undone_and_case_is_ignored() -> None:
    clitics = ListedWords("clitics", frozenset({"'m", "i"}))
    assert statistics([clitics], ["I &apos;m"], [["i 'M"]]).tolist() == [[[2, 2, 2]]]


def test_content_words_are_divided_by_frequency() -> None:
    found = english_classes({}, {"house": 9, "tree": 10, "sea": 1000}, Notices())
    members = {
        one.name: one.members(["The", "house", ",", "the", "Tree", ".", "sea", "7", "moon"])
        for one in found
    }
    assert members == {
        "pronouns": [],
        "auxiliaries": [],
        "function": ["the", "the"],
        "names": ["Tree"],
        "content": ["house", "tree", "sea", "moon"],
        "content 0": ["moon"],
        "content 1-9": ["house"],
        "content 10-99": ["tree"],
        "content 100-999": [],
        "content 1000+": ["sea"],
    }


def test_lists_take_the_place_of_english_ones_or_stand_beside_them() -> None:
    lists = {"pronouns": frozenset({"ich"}), "links": frozenset({"doch"})}
    found = {one.name: one for one in english_classes(lists, None, Notices())}
    assert list(found) == [*CLOSED, "names", "content", "links"]
    words = ["Ich", "he", "doch", "sah"]
    assert found["pronouns"].members(words) == ["ich"]
    assert found["links"].members(words) == ["doch"]
    assert found["content"].members(words) == ["he", "doch", "sah"]
    assert isinstance(found["content"], ContentWords)


def test_the_english_lists_are_words_in_lower_case_without_repetitions() -> None:
    import rerank.metrics.word_classes as module

    folder = Path(module.__file__).parent / "word_lists"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{n}.en" for n in CLOSED)
    for name in CLOSED:
        written = (folder / f"{name}.en").read_text().splitlines()
        assert (
            len(written) == len(set(written)) == len(read_words(folder / f"{name}.en", Notices()))
        )
        assert [word.lower() for word in written] == written


@pytest.mark.parametrize(
    ("content", "message"),
    [("a\nb c\n", "list:2: expected one word a line, found 2: 'b c'"), ("\n", "found no word")],
)
def test_a_list_has_a_word_a_line(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_words(path, Notices())


def test_counts_of_words_are_read_whatever_their_case(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text("The 3\nthe\t4\n&apos;s 5\n")
    assert read_frequencies(path, Notices()) == {"the": 7, "'s": 5}
    for bad in ("the", "the 3 4", "the -1", "the 1.5", "3 the"):
        path.write_text(f"a 1\n{bad}\n")
        with pytest.raises(InputError, match="counts:2: expected a word and its count, found"):
            read_frequencies(path, Notices())
