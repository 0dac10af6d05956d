"""A tuning set read from files: statistics of all candidates and gaps, by sacrebleu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from support.files import read
from support.tuning import PAIRS, first_candidates

from rerank.corpus.references import read_with_documents
from rerank.errors import InputError, UsageError
from rerank.formats.weights import Weights
from rerank.metrics import Metric
from rerank.metrics.bleu import corpus_bleu
from rerank.metrics.per_hypothesis import PerHypothesis
from rerank.notices import Notices
from rerank.pipeline import Lists, ObjectiveOptions
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.tuning_reading import read_set
from rerank.scorers.features import FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.objectives.objective import bleu_counts
from rerank.tuning.pools.tuning_set import TuningSet

ALL = ObjectiveOptions((("m", 1.0), ("chrf", 1.0)), {"m": "dev.m"})
START = Weights({"LM0": (0.5,)}, {}, None, {})


def made(
    asked: ObjectiveOptions = ALL,
    notices: Notices | None = None,
    features: TunedFeatures | None = None,
    **options: Any,
) -> tuple[TuningSet, FeatureSpace, tuple[Metric, ...]]:
    lists, notices = Lists("dev.kbest", "dev.docs", **options), notices or Notices()
    documents, lines = read_with_documents(lists.docs, lists.no_docs, ["dev.ref"], notices)
    with KBestSource.open(lists, notices, documents=documents) as opened:
        metrics = asked.load_metrics(
            read=lambda name, path: PerHypothesis(name, Path(path), opened.info, notices)
        )
        features = features or TunedFeatures((), START, "start.json")
        corpus = read_set(opened, documents.split(lines), metrics, features, lambda line: None)
        return corpus, corpus.documents[0].space, metrics


def texts() -> list[tuple[int, str, float]]:
    rows = [line.split(" ||| ") for line in read("dev.kbest")]
    return [(int(t), text, float(m)) for (t, text, *_), m in zip(rows, read("dev.m"), strict=True)]


def test_every_candidate_has_the_statistics_of_every_metric(tuning_lists: Path) -> None:
    corpus, space, _ = made()
    assert [label.name for label in space.labels] == ["LM0", "TM0"]
    rows, references = np.vstack(corpus.statistics), read("dev.ref")
    assert rows.shape == (len(texts()), 9 + 2 + 18)
    for row, (t, text, m) in zip(rows, texts(), strict=True):
        bleu = sacrebleu.corpus_bleu([text], [[references[t]]], tokenize="none", force=True)
        assert row[:9].tolist() == [*bleu.counts, *bleu.totals, bleu.ref_len]
        assert row[9:11].tolist() == [m, 1.0]


def test_statistics_are_whole_numbers_but_where_a_metric_has_others(tuning_lists: Path) -> None:
    assert made()[0].statistics[0].dtype == np.float64
    assert made(ObjectiveOptions((("chrf", 1.0),)))[0].statistics[0].dtype.kind == "i"
    assert made(ObjectiveOptions((("ter", 1.0),)))[0].statistics[0].dtype == np.float64


def test_gaps_are_empty_lines_and_documents_without_candidates_are_one_row(
    tuning_lists: Path,
) -> None:
    """Sentence 3 of x has no candidates, nor have 8 and 9, which are document v."""
    corpus, _, metrics = made(ObjectiveOptions((("chrf", 1.0), ("ter", 1.0))))
    assert [document.name for document in corpus.documents] == ["x", "y", "z", "w"]
    references, whole = read("dev.ref"), corpus.gaps
    assert whole.shape == (5, 9 + 18 + 2)
    for d, sentences in enumerate(([3], [], [], [], [8, 9])):
        refs = [references[t] for t in sentences]
        words = sum(len(line.split()) for line in refs)
        assert whole[d, :9].tolist() == [0] * 8 + [words]
        assert whole[d, 27:].tolist() == [words, words]
        if refs:
            truth = sacrebleu.corpus_chrf([""] * len(refs), [refs]).score
            assert float(metrics[1].scores(whole[d, 9:27])) == truth


def test_first_candidates_add_up_to_the_corpus(tuning_lists: Path) -> None:
    corpus, _, metrics = made(ObjectiveOptions((("ter", 1.0), ("chrf", 1.0))))
    references, hypotheses = read("dev.ref"), first_candidates()
    summed = corpus.sums(corpus.first).sum(axis=0)
    found = [float(corpus_bleu(bleu_counts(summed)))]
    found += [float(metrics[1].scores(summed[9:11])), float(metrics[2].scores(summed[11:]))]
    truth = [
        sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score,
        -sacrebleu.corpus_ter(hypotheses, [references]).score,
        sacrebleu.corpus_chrf(hypotheses, [references]).score,
    ]
    assert found == pytest.approx(truth, rel=1e-12)


def test_features_of_scores_from_outside_are_columns_too(tuning_lists: Path) -> None:
    corpus, space, _ = made(score_files=PAIRS)
    assert [label.name for label in space.labels] == ["LM0", "TM0", "pairs"]
    assert [p.order for p in corpus.documents[0].problems] == [1]


def test_lists_cut_by_top_have_the_numbers_of_their_own_lines(tuning_lists: Path) -> None:
    corpus, *_ = made(top=2)
    kept: dict[int, list[float]] = {}
    for t, _, m in texts():
        kept.setdefault(t, []).append(m)
    numbers = [m for values in kept.values() for m in values[:2]]
    assert np.vstack(corpus.statistics)[:, 9].tolist() == numbers


def test_unknown_names_are_refused_before_anything_is_scored(
    tuning_lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scoring(*_: object) -> None:
        raise AssertionError("scored")

    monkeypatch.setattr(KBestSource, "prepared", scoring)
    for features, told in (
        (TunedFeatures(("LM1",), None, ""), "--features LM1"),
        (TunedFeatures((), None, "", {"LM1": (0, 1)}), "--range LM1"),
    ):
        with pytest.raises(UsageError, match=told):
            made(features=features)


def test_lists_without_candidates_are_refused(tuning_lists: Path) -> None:
    Path("dev.kbest").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"dev\.kbest: expected "):
        made(ObjectiveOptions())


def test_first_candidates_unlike_the_references_in_their_bytes_are_noticed(
    tuning_lists: Path,
) -> None:
    lines = read("dev.kbest")
    lines[0] = lines[0].replace("||| ", "||| &quot; ", 1)
    Path("dev.kbest").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    notices = Notices()
    made(ObjectiveOptions(), notices)
    assert [notice.kind for notice in notices if "escap" in notice.kind]
