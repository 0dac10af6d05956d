"""Documents in memory: read as they are needed, their features known by name."""

from dataclasses import replace
from pathlib import Path

import pytest

import rerank
from rerank import Document, Reranker
from rerank.corpus.document import Candidate
from rerank.errors import RerankError
from rerank.formats import moses
from rerank.pipeline.memory import MemorySource


def test_documents_are_read_as_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault at the end of a long list is found when the reading comes to it."""
    monkeypatch.setattr(moses, "_CHUNK", 1000)
    n = 200
    lines = [f"{t} ||| word {k} ||| x= {k} ||| 0\n" for t in range(n) for k in (1, 2)]
    (tmp_path / "kbest").write_text("".join(lines) + "not a line\n")
    (tmp_path / "docs").write_text("".join(f"d{t}\n" for t in range(n)))
    read = rerank.read(tmp_path / "kbest", tmp_path / "docs")
    assert len(read) == n
    few = (document for document, _ in zip(read, range(5), strict=False))
    assert [one.choices for one in Reranker({"x": 1.0}).decode(few)] == [(1,)] * 5
    with pytest.raises(RerankError, match=rf"kbest:{2 * n + 1}: "):
        list(read)


def test_features_are_known_by_name_in_any_order() -> None:
    one = Document("one", [[("a", {"x": 1.0, "y": 0.0})]])
    two = Document("two", [[("b", {"y": 0.25, "x": 2.0}), ("c", {"y": 4.0, "x": 0.0})]])
    results = Reranker({"x": 1.0, "y": 0.125}).decode([one, two])
    assert [result.score for result in results] == [1.0, 2.0 + 0.25 / 8]
    with pytest.raises(RerankError, match="three: expected the features of the first document, x"):
        Reranker({"x": 1.0}).decode(
            [Document("o", [[("a", {"x": 1.0})]]), replace(two, id="three")]
        )


def test_sparse_features_may_be_missing() -> None:
    lists: list[list[Candidate]] = [[("a", {"x": 1.0}), ("b", {"x": 0.0, "s": 2.0})]]
    (result,) = Reranker({"x": 1.0}, sparse={"s": 1.0}).decode([Document("d", lists)])
    assert (result.choices, result.score) == ((1,), 2.0)


@pytest.mark.filterwarnings("ignore:.*source line without:rerank.RerankWarning")
def test_the_mean_size_of_lists_is_that_of_memory_or_of_the_file(tmp_path: Path) -> None:
    one = Document("one", [[("a", {"x": 1.0}), ("b", {"x": 1.0})], []])
    two = Document("two", [[("a", {"x": 1.0})]])
    assert MemorySource([one, two], []).mean_k() == 1.0
    source = MemorySource(iter([one, two]), [])
    assert source.mean_k() == 1.0
    assert [name for name, _ in source.read()] == ["one", "two"]
    (tmp_path / "kbest").write_text("".join(f"0 ||| w{k} ||| x= 0 ||| 0\n" for k in range(3)))
    (tmp_path / "docs").write_text("one\none\n")
    assert MemorySource(rerank.read(tmp_path / "kbest", tmp_path / "docs"), []).mean_k() == 1.5
