"""What the cache keeps of a document, found again by the texts and by nothing else."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lists import kbest, kbest_of_lines

from rerank.cache import Cache
from rerank.notices import Notices
from rerank.scorers.cached_scores import CachedScores, ListTexts, ScorerCache

Lists = list[list[str]]
texts = st.lists(
    st.lists(st.text("ab é", max_size=4).map(str.strip), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)


def texts_of(lists: Lists) -> ListTexts:
    return ListTexts.of(kbest(lists))


@given(texts)
def test_texts_are_the_hypotheses_list_by_list(lists: Lists) -> None:
    found = texts_of(lists)
    assert found.counts.tolist() == [len(k_best) for k_best in lists]
    assert found.lists() == ["".join(f"{text}\n" for text in k).encode() for k in lists]


def test_sentences_without_candidates_are_left_out() -> None:
    assert texts_of([["a"], [], ["b", "c"]]).lists() == [b"a\n", b"b\nc\n"]


@given(texts, st.data())
def test_lists_begin_longer_ones_and_are_found_by_the_same_name(
    lists: Lists, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, 4))
    shorter, longer = texts_of([k_best[:k] for k_best in lists]), texts_of(lists)
    assert shorter.is_prefix_of(longer)
    assert shorter.name() == longer.name()
    assert longer.is_prefix_of(shorter) == (k >= max(map(len, lists)))


@given(texts, texts)
def test_other_lists_are_never_taken_for_the_same(one: Lists, other: Lists) -> None:
    expected = len(one) == len(other) and all(
        b[: len(a)] == a for a, b in zip(one, other, strict=False)
    )
    assert texts_of(one).is_prefix_of(texts_of(other)) == expected


def test_a_word_is_no_beginning_of_a_longer_word() -> None:
    assert not texts_of([["a"]]).is_prefix_of(texts_of([["ab"]]))
    assert not texts_of([["a"]]).is_prefix_of(texts_of([["ab", "a"]]))


@pytest.mark.parametrize("order", [0, 1])
@given(lists=texts, data=st.data())
def test_kept_scores_are_cut_to_the_candidates_asked_for(
    order: int, lists: Lists, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, 4))
    rng = np.random.default_rng(7)
    sizes = [len(k_best) for k_best in lists]
    before = [1, *sizes[:-1]] if order else [1] * len(sizes)
    blocks = [rng.normal(size=shape) for shape in zip(before, sizes, strict=True)]
    words = rng.integers(9, size=sum(sizes))
    arrays = {"scores": np.concatenate([b.ravel() for b in blocks]), "words": words}
    kept = CachedScores(texts_of(lists), texts_of([k_best[:k] for k_best in lists]), arrays)
    for block, found in zip(blocks, kept.scores(order), strict=True):
        truth = block[: k if len(block) > 1 else 1, :k]
        np.testing.assert_array_equal(found, truth if order else truth[0])
    own = np.split(words, np.cumsum(sizes)[:-1])
    assert kept.column("words").tolist() == [w for part in own for w in part[:k].tolist()]


def test_what_was_kept_is_recalled_for_the_same_texts_and_scorer_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    memory, other = ScorerCache(cache, "a" * 32), ScorerCache(cache, "b" * 32)
    lists = [["a b", "a"], ["b"]]
    assert memory.recall(texts_of(lists)) is None
    memory.keep(texts_of(lists), {"scores": np.arange(3.0)})
    for found in (memory.recall(texts_of(lists)), memory.recall(texts_of([["a b"], ["b"]]))):
        assert found is not None
        assert found.arrays["scores"].tolist() == [0, 1, 2]
    assert other.recall(texts_of(lists)) is None
    assert memory.recall(texts_of([["a b", "a a"], ["b"]])) is None
    assert memory.recall(texts_of([["a b", "a", "a a"], ["b"]])) is None
    assert memory.recall(texts_of([["a b", "a"]])) is None


def test_without_a_cache_nothing_is_kept() -> None:
    memory = ScorerCache(None, "a" * 32)
    memory.keep(texts_of([["a"]]), {})
    assert memory.recall(texts_of([["a"]])) is None


def test_where_bits_matter_only_whole_lists_are_found(tmp_path: Path) -> None:
    memory = ScorerCache(Cache(tmp_path, Notices(), 10**9), "a" * 32, whole=True)
    memory.keep(texts_of([["a b", "a"], ["b"]]), {"scores": np.arange(3.0)})
    assert memory.recall(texts_of([["a b", "a"], ["b"]])) is not None
    assert memory.recall(texts_of([["a b"], ["b"]])) is None


def test_a_peek_saves_the_next_recall_the_reading(tmp_path: Path) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    memory, lists = ScorerCache(cache, "a" * 32), texts_of([["a"]])
    memory.keep(lists, {"scores": np.zeros(1)})
    assert memory.peek(lists) is memory.recall(lists)
    assert cache.hits == 1
    memory.peek(lists)
    assert memory.recall(texts_of([["b"]])) is None
    assert memory.recall(lists) is not None
    assert cache.hits == 3


def test_lists_divided_elsewhere_are_other_lists(tmp_path: Path) -> None:
    """Same first candidates, same text from end to end."""
    one, other = texts_of([["a", "b", "b"], ["b"]]), texts_of([["a", "b"], ["b", "b"]])
    assert (one.text, one.name()) == (other.text, other.name())
    for whole in (False, True):
        memory = ScorerCache(Cache(tmp_path / str(whole), Notices(), 10**9), "a" * 32, whole=whole)
        memory.keep(one, {"scores": np.arange(4.0)})
        assert memory.peek(other) is None
        assert memory.recall(other) is None
        assert memory.recall(one) is not None


def test_chosen_candidates_do_not_take_the_place_of_the_whole_list() -> None:
    lines = [f"0 ||| {text} ||| LM0= 0 ||| 0" for text in ("a", "a b", "c d e")]

    def kept(top: int, diverse: bool) -> ListTexts:
        return ListTexts.of(kbest_of_lines(lines, 1, top=top, diverse=diverse))

    assert kept(2, True).lists() == [b"a\nc d e\n"]
    assert kept(3, False).name() == kept(2, False).name() != kept(2, True).name()
