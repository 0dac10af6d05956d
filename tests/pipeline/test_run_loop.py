"""The loop of a run: what is asked for when, and what goes to the cache."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.chains import Unary
from decoders.problem import DocumentProblem
from decoders.result import NO_CANDIDATES
from rerank.corpus.documents import Documents
from rerank.corpus.grouping import documents_of
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.formats.moses import read_rows
from rerank.notices import Notices
from rerank.pipeline import sources
from rerank.pipeline.run_loop import run_loop
from rerank.pipeline.searching import Search
from rerank.pipeline.sources import DocumentSource, NamedLists
from rerank.scorers import FeatureSource, ScoredDocument
from rerank.scorers.features import FeatureSpace

SIZES = {"x": (2, 0, 1), "y": (0,), "z": (3,)}


def lists() -> list[NamedLists]:
    """Documents with candidates of these numbers; the later ones are better."""
    lines, ids, t = list[bytes](), list[str](), 0
    for name, sizes in SIZES.items():
        for size in sizes:
            lines += [b"%d ||| w%d ||| x= %d ||| 0" % (t, k, k) for k in range(size)]
            ids.append(name)
            t += 1
    documents = Documents.from_lines(name.encode() for name in ids)
    found = documents_of(read_rows(iter(lines), Notices()), documents, Notices())
    return list(zip(documents.ids, found, strict=True))


class Recorder(FeatureSource):
    """A scorer that writes down what happens to its documents."""

    def __init__(self, worst: float = 0.0) -> None:
        super().__init__("s")
        self.worst, self.events = worst, list[str]()

    def score(self, documents: list[tuple[str, KBest]]) -> list[ScoredDocument]:  # type: ignore[override]
        found = []
        for name, kbest in documents:
            self.events.append(f"score {name}")
            problem: DocumentProblem = Unary(
                [np.full(k, self.worst) for k in kbest.counts.tolist() if k]
            )
            keep = lambda name=name: self.events.append(f"keep {name}")  # noqa: E731
            found.append(ScoredDocument(problem, np.zeros((kbest.n, 0)), keep))
        return found


def ones(space: FeatureSpace) -> NDArray[np.float64]:
    return np.ones(space.width)


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ABREAST", 1)


def test_a_document_is_read_scored_searched_handed_on_and_kept(one_at_a_time: None) -> None:
    scorer = Recorder()
    events = scorer.events

    def read() -> Iterator[NamedLists]:
        for name, kbest in lists():
            events.append(f"read {name}")
            yield name, kbest

    source = DocumentSource((), [scorer], Notices())
    source.read = read  # type: ignore[method-assign]
    for batch in run_loop(source, ones, Search()):
        events.append("hand on " + " ".join(name for name, *_ in batch.each()))
    assert events == [
        *("read x", "score x", "hand on x", "keep x"),
        *("read y", "read z", "score z", "hand on y z", "keep z"),
    ]
    assert source.unfinished == []


def test_results_stand_beside_their_documents_with_or_without_candidates() -> None:
    (batch,) = run_loop(DocumentSource(lists(), [Recorder()], Notices()), ones, Search())
    found = {name: (document, result) for name, _, document, result in batch.each()}
    assert list(found) == ["x", "y", "z"]
    assert found["y"] == (None, NO_CANDIDATES)
    assert [found[name][1].choices for name in "xz"] == [(1, 0), (2,)]
    assert batch.weights.tolist() == [1, 1]


def test_without_a_search_documents_are_scored_and_stay_unfinished_if_that_is_wanted() -> None:
    source = DocumentSource(lists(), [scorer := Recorder()], Notices())
    (batch,) = run_loop(source, lambda space: None, keep=False)
    assert ([one.name for one in batch.documents], list(batch.results)) == (["x", "z"], [])
    assert [one.name for one in source.unfinished] == ["x", "z"]
    assert not any(event.startswith("keep") for event in scorer.events)


def test_weights_are_matched_once_and_before_anything_is_scored(one_at_a_time: None) -> None:
    scorer, spaces = Recorder(), list[FeatureSpace]()

    def weigh(space: FeatureSpace) -> NDArray[np.float64]:
        assert not scorer.events
        spaces.append(space)
        return ones(space)

    assert len(list(run_loop(DocumentSource(lists(), [scorer], Notices()), weigh, Search()))) == 2
    assert [label.name for label in spaces[0].labels] == ["x", "s"]
    assert len(spaces) == 1


@pytest.mark.parametrize("search", [Search(), Search("smc").at(1.0)], ids=["viterbi", "smc"])
def test_documents_without_a_possible_path_are_counted(search: Search) -> None:
    source = DocumentSource(lists(), [Recorder(-np.inf)], Notices(), name="dev.kbest")
    (batch,) = run_loop(source, ones, search)
    assert [result.choices for result in batch.results] == [(0, 0), (0,)]
    assert source.notices.lines() == [
        "2 x document in which no possible path was found, left with its first candidates, first "
        "at dev.kbest"
    ]
    source.notices = Notices(strict=True)
    with suppress(StopIteration), pytest.raises(InputError, match="no possible path"):
        next(run_loop(source, ones, search))
