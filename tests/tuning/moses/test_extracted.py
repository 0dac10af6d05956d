"""Pools from the files of Moses' extractor: merged by sentence, each hypothesis once."""

import gzip
import lzma
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.labels import Label
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.tuning.moses.extracted import ExtractedLists, read_extracted

Row = tuple[tuple[float, ...], tuple[int, ...], tuple[tuple[str, float], ...]]
"""Features, statistics in Moses' order of columns, sparse features."""

values = st.sampled_from([0.0, -0.0, 1.0, -2.5])
ones = st.tuples(
    st.tuples(values, values),
    st.sampled_from([(1, 2, 0, 1, 0, 0, 0, 0, 3), (2, 2, 1, 1, 0, 0, 0, 0, 3)]),
    st.sampled_from([(), (("t_a", 1.0),), (("t_a", 1.0), ("t_b", 2.0)), (("t_a", 0.0),)]),
)
files = st.lists(st.tuples(st.integers(0, 3), st.lists(ones, max_size=5)), max_size=5)
File = list[tuple[int, list[Row]]]


def write(folder: Path, content: File, name: str = "run1") -> tuple[Path, Path]:
    """The two files of extractor, in its spelling."""
    features, scores = folder / f"{name}.features.dat", folder / f"{name}.scores.dat"
    with features.open("w") as f, scores.open("w") as s:
        for sentence, rows in content:
            f.write(f"FEATURES_TXT_BEGIN_0 {sentence} {len(rows)} 2 LM0_0 TM0_0 \n")
            s.write(f"SCORES_TXT_BEGIN_0 {sentence} {len(rows)} 9 BLEU\n")
            for dense, counts, sparse in rows:
                named = [f"{key}={value!r}" for key, value in sparse]
                f.write(" ".join([*map(repr, dense), *named]) + " \n")
                s.write(" ".join(map(str, counts)) + " \n")
            f.write("FEATURES_TXT_END_0\n")
            s.write("SCORES_TXT_END_0\n")
    return features, scores


def read(*pairs: tuple[Path, Path], notices: Notices | None = None) -> ExtractedLists:
    features, scores = zip(*pairs, strict=True)
    return read_extracted(features, scores, notices or Notices())


def by_hand(contents: Sequence[File]) -> dict[int, list[Row]]:
    """The distinct hypotheses of each sentence, in order of appearance; a sparse 0 is absent."""
    found: dict[int, list[Row]] = {}
    for content in contents:
        for sentence, rows in content:
            for dense, counts, sparse in rows:
                row = dense, counts, tuple(pair for pair in sparse if pair[1])
                if row not in found.setdefault(sentence, []):
                    found[sentence].append(row)
            found.setdefault(sentence, [])
    return found


@given(st.lists(files, min_size=1, max_size=3))
def test_pairs_are_merged_by_sentence_and_equal_hypotheses_left_out(
    tmp_path_factory: pytest.TempPathFactory, contents: list[File]
) -> None:
    folder = tmp_path_factory.mktemp("pairs")
    truth = by_hand(contents)
    if any(len(content) == 0 for content in contents) or not any(truth.values()):
        return
    found = read(*(write(folder, content, f"run{i}") for i, content in enumerate(contents)))
    assert found.sentences.tolist() == sorted(truth)
    rows = [row for sentence in sorted(truth) for row in truth[sentence]]
    sizes = [len(truth[sentence]) for sentence in sorted(truth)]
    assert np.diff(found.offsets).tolist() == sizes
    assert found.features.tolist() == [list(dense) for dense, _, _ in rows]
    assert found.statistics[:, [0, 4, 1, 5, 2, 6, 3, 7, 8]].tolist() == [
        list(counts) for _, counts, _ in rows
    ]
    weights = {"t_a": 10.0, "t_b": 1.0}
    expected = [sum(weights[key] * value for key, value in sparse) for _, _, sparse in rows]
    pool = found.pool(weights)
    assert pool.fixed.tolist() == expected
    assert pool.features is found.features
    assert pool.offsets is found.offsets
    n_all = sum(len(rows) for content in contents for _, rows in content)
    assert found.n_repeated == n_all - len(rows)


ROW: Row = ((-1.0, 2.0), (1, 2, 0, 1, 0, 0, 0, 0, 3), ())
SPARSE: Row = (*ROW[:2], (("t_a", 1.0),))
SOUND: File = [(0, [ROW, SPARSE]), (2, [ROW])]


def test_labels_and_sparse_features_are_kept(tmp_path: Path) -> None:
    notices = Notices()
    found = read(write(tmp_path, SOUND), notices=notices)
    assert found.labels == (Label("LM0", 1), Label("TM0", 1))
    assert found.sparse.names == ("t_a",)
    assert found.pool({}).fixed.tolist() == [0, 0, 0]
    assert found.pool({"t_a": -0.5}).fixed.tolist() == [0, -0.5, 0]
    (line,) = notices.lines()
    assert line.startswith("1 x line with sparse features")
    assert line.endswith("run1.features.dat:3")


def test_compressed_files_are_read_whatever_their_names(tmp_path: Path) -> None:
    pair = write(tmp_path, SOUND)
    truth = read(pair)
    pair[0].write_bytes(gzip.compress(pair[0].read_bytes()))
    pair[1].write_bytes(lzma.compress(pair[1].read_bytes()))
    found = read(pair)
    assert found.features.tolist() == truth.features.tolist()
    assert found.statistics.tolist() == truth.statistics.tolist()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            [(0, [ROW, SPARSE]), (1, [ROW])],
            r"scores.dat:5: expected 1 hypotheses of sentence 2 as in .*features.dat:5, found "
            r"1 hypotheses of sentence 1; take both files from one run",
        ),
        ([(0, [ROW]), (2, [ROW])], r"scores.dat:1: expected 2 hypotheses .*, found 1 hypotheses"),
        ([(0, [ROW, ROW])], r"scores.dat: expected 1 hypo.*, found the end of the file; take"),
        (
            [*SOUND, (3, [ROW])],
            r"scores.dat:8: expected the end of the file as in .*features.dat, found 1 hypothe",
        ),
    ],
    ids=["ids", "counts", "fewer", "more"],
)
def test_files_that_do_not_go_together_are_refused(
    tmp_path: Path, other: File, message: str
) -> None:
    features, _ = write(tmp_path, SOUND)
    _, scores = write(tmp_path, other, "run2")
    with pytest.raises(InputError, match=message):
        read((features, scores))


def test_pairs_of_other_features_are_refused(tmp_path: Path) -> None:
    first, second = write(tmp_path, SOUND), write(tmp_path, SOUND, "run2")
    second[0].write_text(second[0].read_text().replace("TM0_0", "LM0_1"))
    message = r"run2.features.dat:1: expected the features of .*run1.features.dat, LM0\(1\) TM0\(1"
    with pytest.raises(InputError, match=message):
        read(first, second)


def test_as_many_files_of_each_kind_are_needed(tmp_path: Path) -> None:
    features, scores = write(tmp_path, SOUND)
    with pytest.raises(UsageError, match=r"found 2 for 1; name both as often"):
        read_extracted([features], [scores, scores], Notices())


def test_files_without_a_hypothesis_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected hypotheses to tune on, found none"):
        read(write(tmp_path, [(0, []), (1, [])]))
