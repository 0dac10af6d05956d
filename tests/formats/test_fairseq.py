"""Output of fairseq: what its scores are in nats, and lines that come between."""

import math

import numpy as np
import pytest
from support.reading import features, rows_of, texts

from rerank.errors import InputError
from rerank.formats.fairseq import LOG_LINE, NO_TOKENS, Fairseq
from rerank.notices import Notices

LN2 = math.log(2)
GENERATE = """2026-11-23 10:00:00 | INFO | fairseq.tasks | [de] dictionary
S-1\tdie lampe
T-1\tthe lamp
H-1\t-0.5\tthe la@@ mp
D-1\t-0.5\tthe lamp
P-1\t-0.5000 -0.2500 -0.7500
A-1\t0-0 1-1
H-1\t-0.75\ta la@@ mp
D-1\t-0.75\ta lamp
P-1\t-1.0000 -0.5000 -0.7500
S-0\tlicht
H-0\t-1.5\tlight
D-0\t-1.5\tlight
P-0\t-1.0000 -2.0000
E-0_0\t-1\tli
2026-11-23 10:00:01 | INFO | fairseq_cli.generate | done
Generate test with beam=5: BLEU4 = 1.0
"""


def test_log_probabilities_are_sums_of_tokens_in_nats_whatever_the_length() -> None:
    rows = rows_of(Fairseq(), GENERATE)
    assert texts(rows) == ["light", "the lamp", "a lamp"]
    assert rows.sentences.tolist() == [0, 1, 1]
    found = features(rows)
    assert np.allclose(found["logprob"], [-3 * LN2, -1.5 * LN2, -2.25 * LN2], rtol=1e-15)
    assert np.allclose(found["score"], [-1.5 * LN2, -0.5 * LN2, -0.75 * LN2], rtol=1e-15)
    assert rows.totals.tolist() == found["score"]


def test_hypotheses_keep_their_order_and_number_in_the_file_when_sentences_are_sorted() -> None:
    notices = Notices()
    rows = rows_of(Fairseq(), GENERATE, notices=notices)
    assert rows.line_numbers.tolist() == [3, 1, 2]  # of hypotheses, for files of scores
    assert rows.file_lines.tolist() == [12, 4, 8]
    assert notices.lines() == [
        f"3 x {LOG_LINE}, first at f:1",
        "1 x sentences in the order of batches, sorted by id, first at f:12",
    ]


def test_interactive_output_has_further_lines() -> None:
    text = "S-0\tlicht\nW-0\t0.016\tseconds\nC-0\tx\nH-0\t-1\tlight\nP-0\t-1 -1\nI-0\t3\n"
    rows = rows_of(Fairseq(), text)
    assert (texts(rows), rows.sentences.tolist()) == (["light"], [0])


def test_lines_of_old_versions_without_ids_are_counted() -> None:
    text = "O\teins\nH\t-1\tone\nP\t-1 -1\nO\tzwei\nH\t-1\ttwo\nP\t-1 -2\n"
    rows = rows_of(Fairseq(), text)
    assert (texts(rows), rows.sentences.tolist()) == (["one", "two"], [0, 1])


def test_without_scores_of_tokens_the_normalised_score_is_the_feature() -> None:
    notices = Notices()
    rows = rows_of(Fairseq(), "H-0\t-0.5\ta\nH-0\t-1\tb\n", notices=notices)
    assert features(rows) == {"score": [-0.5 * LN2, -LN2]}
    assert notices.lines() == [f"2 x {NO_TOKENS}, first at f:1"]


def test_sources_are_beside_the_lists() -> None:
    lines = GENERATE.encode().splitlines()
    found = Fairseq().beside(lines, Notices(), source="f")
    assert list(found) == [(1, None, b"die lampe"), (0, None, b"licht")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H-0\t-1\ta\nP-0\t-1\nH-0\t-1\tb\n", "f:3: expected a P- line"),
        ("H-0\t-1\ta\nP-1\t-1\n", "f:2: expected H-1 before"),
        ("P-0\t-1\n", "f:1: expected H-0 before"),
        ("H-0\tnan\ta\n", "f:1: expected a finite number|f:1: expected a decimal number"),
        ("H-0\t-inf\ta\n", "f:1: .*--clip-inf"),
        ("H-0\n\nH-0\t-1\n", "f:3: expected H-ID, score and text"),
        (f"H-{'9' * 5000}\t-1\ta\n", "f:1: expected a sentence id"),
        ("H-2147483648\t-1\ta\n", "f:1: expected a sentence id"),
        ("H-0\t-1\ta\nP-0\t-1 x\n", "f:2: expected a decimal number"),
    ],
)
def test_faults_are_said_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        rows_of(Fairseq(), text)


def test_infinite_scores_are_clipped_on_demand() -> None:
    rows = rows_of(Fairseq(), "H-0\t-inf\ta\nP-0\t-inf -1\n", clip=100)
    assert features(rows)["score"] == [-100 * LN2]
    assert features(rows)["logprob"] == [-101 * LN2]
