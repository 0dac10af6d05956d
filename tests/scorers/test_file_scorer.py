"""What scores from files have in common: a digest, no error, and zeros to measure time with."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from support.lists import kbest_of_lines

from decoders.problem import DocumentProblem
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.notices import Notices
from rerank.scorers import ZeroScores
from rerank.scorers.file_scorer import ListInfo
from rerank.scorers.hypothesis_scores import HypothesisScores

LINES = ("0 ||| a ||| A= 1 ||| 1", "0 ||| b ||| A= 1 ||| 1", "2 ||| c ||| A= 1 ||| 1")
COUNTS = [2, 1]  # of the sentences that have candidates


@pytest.fixture
def kbest() -> KBest:
    return kbest_of_lines(LINES, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "qe.gz").write_bytes(gzip.compress(b"1\n1\n1\n", mtime=0))
    return tmp_path / "qe.gz"


def shapes(problem: DocumentProblem) -> list[tuple[int, ...]]:
    ask = problem.unary if problem.order == 0 else problem.pairwise
    scores = [ask(t) for t in range(len(problem.lengths))]
    assert not any(own.any() for own in scores)
    return [own.shape for own in scores]


def test_a_file_is_known_by_the_digest_of_its_bytes_and_is_off_by_nothing(path: Path) -> None:
    given = ListInfo(Documents(("x",), (0, 3)), "dev.kbest", lambda: 3)
    found = HypothesisScores("qe", path, given, Notices())
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found.error, found.seconds, found.passes(100)) == (0, 0, 1)
    assert found.report() == f"qe: 0 documents from {path}"


@pytest.mark.parametrize(("order", "expected"), [(0, [(2,), (1,)]), (1, [(1, 2), (2, 1)])])
def test_zeros_have_the_shape_of_scores(
    order: int, expected: list[tuple[int, ...]], kbest: KBest
) -> None:
    (found,) = ZeroScores("qe", ("a", "b"), order).score([("x", kbest)])
    assert (found.problem.order, list(found.problem.lengths)) == (order, COUNTS)
    assert shapes(found.problem) == expected
    assert np.array_equal(found.columns, np.zeros((3, 2)))


def test_what_measures_time_reads_nothing(path: Path, kbest: KBest) -> None:
    given = ListInfo(Documents(("x",), (0, 3)), "dev.kbest", lambda: 3)
    found = HypothesisScores("qe", path, given, Notices())
    assert shapes(found.forgetful().score([("x", kbest)])[0].problem) == [(2,), (1,)]
    assert found.documents == 0
    assert found.remembers(kbest)
