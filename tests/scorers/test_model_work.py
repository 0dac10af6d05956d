"""Lines about the work of a model."""

from dataclasses import replace

from lm.checkpoint import SavedModel
from lm.engine import EngineCounts
from rerank.scorers.model_work import counters, work_done


def test_work_is_said_in_a_line(saved: dict[str, SavedModel]) -> None:
    model, work = saved["rnnlm"], EngineCounts()
    assert work_done("lm", model, work, 0) == "lm: nothing to score"
    assert work_done("lm", model, work, 3) == "lm: 3 documents from the cache"
    assert counters("lm", work) == ""
    counted = replace(work, tokens=1200, nodes=400, seconds=0.25)
    assert work_done("lm", model, counted, 0) == "lm: 1,200 tokens scored in 0.2 s"
    assert counters("lm", counted) == "lm: 400 trie nodes (3.00 tokens a node)"
