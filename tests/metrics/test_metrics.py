"""Metrics of whole lists: each against sacrebleu on the lines that are chosen, gaps included."""

import gzip
import random
import re
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from support.files import write

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, UsageError
from rerank.formats.table import read_documents
from rerank.metrics import Metric, TextMetric
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.per_hypothesis import PerHypothesis
from rerank.metrics.ter import Ter
from rerank.notices import Notices
from rerank.scorers.file_scorer import ListInfo

DOCUMENTS = Documents(("x", "y", "z"), (0, 2, 3, 5))
LISTS = [["a b  c d e", "a b", ""], ["the cat sat ."], [], ["", "a a a a"], ["中 文 é", "b\u3000a"]]
REFERENCES = [["a b c d", "a c"], ["the cat .", "cat"], ["gone now", "x"], ["a", "b"], ["文 é", ""]]
LINES = [[line.encode() for line in lines] for lines in REFERENCES]
VALUES = [0.5, -1.25, 3.0, 1e-3, -0.0, 17.0, 0.1, 2.0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(
        "dev.kbest", [f"{t} ||| {text} ||| A= 1 ||| 2" for t, k in enumerate(LISTS) for text in k]
    )
    write("dev.comet", list(map(str, VALUES)))


def documents(top: int | None = None) -> list[KBest]:
    return list(read_documents("dev.kbest", DOCUMENTS, Notices(), ReadingOptions(top=top)))


def per_hypothesis(path: str = "dev.comet", clip: float | None = None) -> PerHypothesis:
    given = ListInfo(DOCUMENTS, "dev.kbest", lambda: len(VALUES), clip_inf=clip)
    return PerHypothesis("comet", Path(path), given, Notices())


TRUTHS = [
    pytest.param(Bleu(), BLEU(tokenize="none"), id="BLEU none"),
    pytest.param(Bleu("13a"), BLEU(tokenize="13a"), id="BLEU 13a"),
    pytest.param(Chrf(), CHRF(), id="chrF"),
    pytest.param(Ter(), TER(), id="TER"),
]


@pytest.mark.parametrize(("metric", "truth"), TRUTHS)
def test_chosen_rows_and_gaps_score_as_sacrebleu_scores_the_chosen_lines(
    metric: TextMetric, truth: BLEU | CHRF | TER
) -> None:
    counted = [
        metric.of_lists(kbest, LINES[slice(*DOCUMENTS.span(d))])
        for d, kbest in enumerate(documents())
    ]
    rows = np.concatenate([one.rows for one in counted])
    assert rows.shape == (sum(map(len, LISTS)), metric.width)
    gaps = np.sum([one.gaps for one in counted], axis=0)
    starts = np.cumsum([0, *map(len, LISTS)])
    rng = random.Random(1)
    for _ in range(20):
        chosen = [rng.randrange(len(k)) if k else None for k in LISTS]
        lines = [k[c] if c is not None else "" for c, k in zip(chosen, LISTS, strict=True)]
        picked = [start + c for c, start in zip(chosen, starts, strict=False) if c is not None]
        score = float(metric.scores(rows[picked].sum(axis=0) + gaps))
        expected = truth.corpus_score(lines, list(map(list, zip(*REFERENCES, strict=True)))).score
        assert metric.shown(score) == pytest.approx(expected, rel=1e-14)
    assert metric.signature(2) == str(truth.get_signature())


@pytest.mark.parametrize("metric", [Bleu(), Bleu("13a"), Chrf(), Ter()])
def test_lists_have_the_statistics_of_their_lines(metric: TextMetric) -> None:
    kbest = documents()[2]
    groups = [[text.encode() for text in texts] for texts in LISTS[3:]]
    assert (
        metric.of_lists(kbest, LINES[3:]).rows.tolist()
        == metric.statistics(groups, LINES[3:]).tolist()
    )


def test_numbers_of_a_file_belong_to_the_lines_of_the_list() -> None:
    metric: Metric = per_hypothesis()
    rows = [metric.of_lists(kbest, LINES).rows for kbest in documents()]
    assert np.concatenate(rows).tolist() == [[value, 1.0] for value in VALUES]
    cut = [metric.of_lists(kbest, LINES).rows for kbest in documents(top=1)]
    assert np.concatenate(cut)[:, 0].tolist() == [0.5, 1e-3, -0.0, 0.1]


def test_the_score_of_numbers_is_the_mean_of_those_chosen() -> None:
    metric = per_hypothesis()
    counted = [metric.of_lists(kbest, LINES) for kbest in documents()]
    summed = counted[0].rows[0] + counted[0].rows[3] + counted[2].rows[1] + counted[1].gaps
    assert metric.shown(float(metric.scores(summed))) == pytest.approx((0.5 + 1e-3 + 17.0) / 3)
    assert metric.scores(np.zeros((4, 2))).tolist() == [0, 0, 0, 0]


def test_compressed_files_are_seen_and_told_by_their_digest() -> None:
    Path("packed").write_bytes(gzip.compress(Path("dev.comet").read_bytes(), mtime=0))
    metric = per_hypothesis("packed")
    assert metric.of_lists(documents()[0], LINES).rows[:, 0].tolist() == VALUES[:4]
    told = r"rerank\|metric:comet\|file:packed=[0-9a-f]{8}\|v:.+"
    assert re.fullmatch(told, metric.signature(1))


@pytest.mark.parametrize("n", [0, 5, 9])
def test_a_file_of_another_length_is_refused_before_any_work(n: int) -> None:
    write("dev.comet", ["1"] * n)
    told = f"dev.comet:{min(n, 8) + 1}: expected 8 lines as dev.kbest has, found {n}; write one"
    with pytest.raises(InputError, match=re.escape(told)):
        per_hypothesis()


@pytest.mark.parametrize("clip", [None, 1e4])
@pytest.mark.parametrize("token", ["", "nan", "-inf", "1,5", "1_0", "0.1 0.2", "١", "1e999"])
def test_what_is_no_finite_number_is_refused_with_its_line(token: str, clip: float | None) -> None:
    """Nor is an infinity clipped, which may be done to features."""
    write("dev.comet", ["1", token, *["1"] * 6])
    told = (
        rf"^dev\.comet:2: expected a (finite|decimal) number for comet, found {token!r}; "
        r"write one for each line of dev\.kbest, in their order$"
    )
    with pytest.raises(InputError, match=told):
        per_hypothesis(clip=clip).of_lists(documents()[0], LINES)


def test_a_missing_file_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"no file dev\.xcomet; did you mean dev\.comet"):
        per_hypothesis("dev.xcomet")
