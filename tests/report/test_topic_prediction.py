"""Figures of predicted topics as text, JSON and TSV."""

import json
import math

from lm.topics.prediction.evaluation import TopicFigures
from rerank.report.topic_prediction import TopicPredictionReport

REPORT = TopicPredictionReport(
    {
        "topic predictor": TopicFigures(2000, 1500, 2000 * math.log(2)),
        "topic of the sentence before": TopicFigures(2000, 1000),
    }
)


def test_people_see_a_table_and_the_number_of_predictions() -> None:
    heading, _, *rows, empty, number = REPORT.to_text().splitlines()
    assert heading.split() == ["perplexity", "accuracy"]
    assert [row.split()[-2:] for row in rows] == [["2.00", "75.00%"], ["infinite", "50.00%"]]
    assert (empty, number) == ("", "2,000 topics of next sentences")


def test_machines_see_all_digits() -> None:
    found = json.loads(json.dumps(REPORT.to_dict(), allow_nan=False))
    perplexity = math.exp(2000 * math.log(2) / 2000)
    assert found == {
        "schema": 1,
        "predictions": 2000,
        "topic_predictor": {"perplexity": perplexity, "accuracy": 0.75},
        "topic_of_the_sentence_before": {"perplexity": None, "accuracy": 0.5},
    }
    assert REPORT.to_tsv().splitlines() == [
        "model\tperplexity\taccuracy",
        f"topic predictor\t{perplexity}\t0.75",
        "topic of the sentence before\t\t0.5",
    ]
