"""`cloze`: words for a gap, ranked by the definition of the model's score."""

from __future__ import annotations

import numpy as np
import pytest
from support.definitions import definition
from support.world import WORDS, World

TEXT = ["the lamp is lit", "it ___ light", "", "", "no one ___"]


def test_answers_are_the_words_whose_completed_sentences_score_highest(world: World) -> None:
    log_p, _ = definition(world.model("ccdclm"))
    world.write("text", TEXT)
    command = "cloze --lm lm text -q --answers"
    one, other = world.ok(f"{command} 12 --format json").json["queries"]
    assert (one["line"], other["line"]) == (2, 5)
    for query, lines in ((one, TEXT[:2]), (other, TEXT[4:])):
        scores = [
            log_p(tuple(x.replace("___", word) for x in lines), len(lines) - 1) for word in WORDS
        ]
        order = np.argsort(scores)[::-1]
        assert list(query["answers"]) == [WORDS[k] for k in order]
        shares = np.array(scores)[order] - np.logaddexp.reduce(scores)
        assert [*query["answers"].values()] == pytest.approx(shares.tolist(), abs=1e-4)
    rows = [line.split("\t") for line in world.ok(f"{command} 2").lines]
    assert [row[:2] for row in rows[:2]] == [["2", word] for word in list(one["answers"])[:2]]
    assert len(rows) == 4
