"""`decode --trace`: equal texts and near ties, and what is said of scorers.

Features, margins and marginals of choices by enumeration: `tests/agreement/test_searches.py`.
"""

import json
import sys
from hashlib import sha256

import pytest
from support.programs import ESTIMATOR
from support.server import STUB
from support.world import TUNE, World


@pytest.mark.parametrize(
    "search", ["greedy", "viterbi", "beam", "mbr --alpha 9", "ffbs --alpha 99"]
)
def test_copies_of_a_text_are_neither_runners_up_nor_changes(search: str, world: World) -> None:
    """As of samples of an LLM, of which several are equal; some differ in their blanks alone."""
    rows = [(0, "it is lit", -3), (0, "it burns", -1), (0, "it  burns", -1), (0, "it burns", -1.5)]
    rows += [(1, "she is", -2), (1, "she is", -1), (2, "a", -1), (2, "no", -1.25)]
    world.write("k", [f"{t} ||| {text} ||| LM0= {score} ||| 0" for t, text, score in rows])
    world.weights("w.json", {"LM0": 1})
    command = f"decode --kbest k --no-docs one --weights w.json --search {search} --trace trace"
    told = world.ok(f"{command} --summary s.json --out out").err
    lines = [json.loads(line) for line in world.lines("trace")]
    assert [one["chosen"] for one in lines] == [1, int("mbr" not in search), 0]
    assert [one["runner_up"] for one in lines] == [0, None, 1]
    assert [one["texts"]["runner_up"] for one in lines] == ["it is lit", None, "no"]
    assert [one["over_runner_up"] for one in lines] == [{"LM0": 2}, None, {"LM0": 0.25}]
    for name in ("margin", "path_margin"):
        assert [one[name] for one in lines] == [2, None, 0.25]
    assert "3 sentences, 1 changed (33.3%)" in told
    assert (world.json("s.json")["changed"], world.json("s.json")["near_ties"]) == (1, 0)
    assert "3 sentences, 1 changed (33.3%)" in world.ok("explain trace").out


def test_a_trace_states_of_scorers_what_weights_do_and_reports_show_it(world: World) -> None:
    """Of an LLM with a prompt behind a server, of a program, and of the utility of a search."""
    world.write("qe.py", ESTIMATOR)
    world.write("p", "{{ source }} =\n")
    qe = f"command:{sys.executable} -IS qe.py"
    given = f"--source dev.src --lm g=openai:{STUB.url()},model=toy,prompt=p --scorer 'q={qe}'"
    world.ok(f"{TUNE} {given}")
    made = world.json("tuned.json")["provenance"]
    assert made["models"]["g"]["prompt_digest"] == sha256(b"{{ source }} =\n").hexdigest()
    assert (made["scorers"]["q"]["program"], made["scorers"]["q"]["version"]) == ("toy", "1")
    others = {name: [1.0] * len(own) for name, own in world.json("tuned.json")["weights"].items()}
    world.weights("w.json", others, provenance=made)  # those of weight 0 would not be computed
    decode = "decode --kbest dev.kbest --docs dev.docs --weights w.json --out out --trace t"
    world.ok(f"{decode} {given} '--search=mbr:utility={qe}'")
    lines = [json.loads(line) for line in world.lines("t")]
    program = {"program": "toy", "version": "1"}
    for line in lines:
        assert (line["models"], line["scorers"]) == (made["models"], made["scorers"])
        assert [one.items() >= program.items() for one in line["programs"]] == [True]
    run = world.ok("explain t")
    for name, fact in (("g", "model toy"), ("q", "version 1"), ("utility", "program toy")):
        assert any(line.startswith(f"{name} ") and fact in line for line in run.lines)
    assert made["models"]["g"]["prompt_digest"][:8] in run.out
    stated = world.ok("explain t --format json").json["scorers"]
    assert stated["g"] == made["models"]["g"]
    page = "report --trace t --docs dev.docs --ref dev.ref --out r.html"
    world.ok(page)
    assert "prompt p, prompt_digest" in world.text("r.html")
