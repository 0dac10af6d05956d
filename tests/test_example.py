import gzip
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.example import EMBEDDED, Set
from rerank.files.lines import read_lines
from rerank.formats.table import read_documents
from rerank.formats.weights import read_weights, vector
from rerank.notices import Notices

GENERATOR = Path(__file__).parents[1] / "recipes" / "toy" / "generate.py"
FILES = [EMBEDDED.train, EMBEDDED.valid, EMBEDDED.weights, *EMBEDDED.tune, *EMBEDDED.test]
SETS = pytest.mark.parametrize("chosen", [EMBEDDED.tune, EMBEDDED.test], ids=["tune", "test"])
PAIRS = (
    ("he", "she"),
    ("his", "her"),
    ("was", "is"),
    ("walked", "walks"),
    ("lorry", "truck"),
    ("taxi", "cab"),
    ("jumper", "sweater"),
    ("parcel", "package"),
    ("torch", "flashlight"),
    ("flat", "apartment"),
    ("shop", "store"),
    ("garden", "yard"),
    ("film", "movie"),
)


@cache
def read(chosen: Set) -> tuple[tuple[KBest, ...], Notices]:
    """The k-best lists of all documents of a set, and what there was to say of them."""
    notices = Notices()
    documents = Documents.from_file(chosen.docs, notices)
    return tuple(read_documents(chosen.kbest, documents, notices)), notices


def lists(chosen: Set) -> tuple[KBest, ...]:
    return read(chosen)[0]


def words(*paths: Path) -> Counter[str]:
    """Words of texts, counted."""
    return Counter(
        w.decode() for p in paths for line in read_lines(p, Notices()) for w in line.split()
    )


def test_the_recipe_makes_the_embedded_example_again(tmp_path: Path) -> None:
    """Content, not compressed bytes: these differ from one zlib to another."""
    subprocess.run([sys.executable, str(GENERATOR), str(tmp_path), "--seed", "1"], check=True)
    made = {path.name: list(read_lines(path, Notices())) for path in tmp_path.iterdir()}
    assert made == {path.name: list(read_lines(path, Notices())) for path in FILES}


def test_the_package_holds_the_example_and_nothing_else() -> None:
    found = {path.name for path in EMBEDDED.folder.iterdir()} - {"__init__.py", "__pycache__"}
    assert found == {path.name for path in FILES}


def test_the_example_is_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < 400_000


def test_compressed_files_hold_neither_time_nor_name() -> None:
    headers = {path.read_bytes()[:8] for path in FILES if path.suffix == ".gz"}
    assert headers == {gzip.compress(b"", mtime=0)[:3] + bytes(5)}


@SETS
def test_every_sentence_has_a_document_a_reference_and_candidates(chosen: Set) -> None:
    n_lines = Documents.from_file(chosen.docs, Notices()).n_lines
    counts = np.concatenate([kbest.counts for kbest in lists(chosen)])
    assert len(list(read_lines(chosen.references, Notices()))) == n_lines == len(counts)
    assert counts.min() >= 3
    assert counts.max() <= 24
    assert len(set(counts.tolist())) > 5


@SETS
def test_lists_have_the_oddities_of_real_ones(chosen: Set) -> None:
    found, notices = read(chosen)
    assert {notice.kind for notice in notices} == {
        "line with sparse features (labels with '_')",
        "duplicate hypothesis, kept",
    }
    assert 0 < sum(kbest.sparse.indptr[-1] for kbest in found) < sum(kbest.n for kbest in found)
    columns = {kbest.line(row).count(b"|||") for kbest in found for row in range(kbest.n)}
    assert columns == {4}  # id, text, features, total, alignment


@SETS
def test_totals_are_the_weighted_sum_of_the_features_and_the_highest_is_first(chosen: Set) -> None:
    for kbest in lists(chosen):
        weights = vector(read_weights(EMBEDDED.weights, Notices()), kbest.labels)
        assert kbest.totals is not None
        np.testing.assert_allclose(kbest.totals, kbest.dense @ weights, atol=0.0051)
        for t in range(len(kbest)):
            rows = kbest.rows(t)
            assert (np.diff(kbest.totals[rows.start : rows.stop]) <= 0).all()


@SETS
def test_most_references_are_in_their_lists(chosen: Set) -> None:
    references = list(read_lines(chosen.references, Notices()))
    found = [
        references[kbest.first + t] in {kbest.text(row) for row in kbest.rows(t)}
        for kbest in lists(chosen)
        for t in range(len(kbest))
    ]
    assert 0.8 < np.mean(found) < 0.95


@pytest.mark.parametrize("pair", PAIRS, ids="/".join)
def test_of_two_words_that_a_document_decides_on_neither_is_the_likelier(
    pair: tuple[str, str],
) -> None:
    counts = words(EMBEDDED.train)
    one, other = (counts[word] for word in pair)
    assert min(one, other) > 100
    assert abs(one - other) < 0.15 * (one + other)


def test_words_of_the_lists_are_known_from_the_training_text() -> None:
    known = words(EMBEDDED.train)
    for chosen in (EMBEDDED.tune, EMBEDDED.test):
        texts = (k.text(row) for k in lists(chosen) for row in range(k.n))
        unknown = {word.decode() for text in texts for word in text.split()} - known.keys()
        # verbs without their ending are faults that only lists have
        assert all(word.isalpha() and len(word) > 1 for word in unknown)
        assert len(unknown) < 45
