"""`score`: features of language models and of other tools' output beside those of the list."""

import re
import subprocess
from hashlib import sha256

import pytest
from support.world import World

SCORE = "score --kbest dev.kbest --docs dev.docs --no-cache --out o"


def features(world: World) -> list[list[str]]:
    """Labels and values of each line."""
    return [line.split(" ||| ")[2].split() for line in world.lines("o")]


def test_a_default_weight_fills_in(world: World) -> None:
    world.model("codclm")
    command = f"{SCORE} --lm lm=lm --weights w.json"
    result = []
    for weights, more in (({}, "--default-weight 0.5"), ({"lm": 0.5, "lmoov": 0.5}, "")):
        world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.5], "WP0": 0, **weights})
        told = world.ok(f"{command} {more}").err
        assert "candidates are scored after the decoded path of their document's earlier" in told
        result.append(world.content("o"))
    assert result[0] == result[1]


OUTPUTS = {  # of other tools: lines before and after, those of the numbers 1, 2, … 9
    "comet-score": ("", "hyp\tSegment 3\tscore: {}\n", "hyp\tscore: 5\n"),
    "comet-json": ('{"hyp": [', '{{"mt": "a 0", "COMET": {}}}, ', "{}]}"),
    "json-lines": ("", '{{"id": 7, "prediction": {}}}\n', ""),
    "json-list": ('{\n"mean": {},\n"scores": [\n', "{},\n", "10]}"),
    "kenlm-words": ("", "a=3 2 -1\tTotal: {} OOV: 0\n", ""),
    "kenlm-sentences": ("", "Total: {} OOV: 1\n", "OOVs:\t9\n"),
    "srilm": ("",
        "a lamp\n1 sentences, 2 words, 0 OOVs\n0 zeroprobs, logprob= {} ppl= 3 ppl1= 4\n\n", ""),
    "json-mean": ('{"mean_score": 5, "scores": [', "{}, ", "10]}"),
}  # fmt: skip


@pytest.mark.parametrize("tool", OUTPUTS)
def test_a_message_says_how_to_make_scores_of_an_output(tool: str, world: World) -> None:
    before, line, after = OUTPUTS[tool]
    world.write("its output", before + "".join(line.format(n) for n in range(1, 10)) + after)
    command = f"{SCORE} --scores".split()
    refused = world.run([*command, "s=its output"])
    assert refused.exit == 3
    if not tool.startswith("json") and tool != "comet-json":
        assert "; write its" in refused.err
        assert (tool != "comet-score") == ("natural logarithms: those of KenLM" in refused.err)
        return
    (cure,) = re.findall("`(.*)`", refused.err)
    subprocess.run(["bash", "-c", f"{cure}; head -n 9 numbers > nine"], check=True)
    world.ok([*command, "s=nine"])
    assert [float(own[own.index("s=") + 1]) for own in features(world)] == [*range(1, 10)]


@pytest.mark.parametrize(
    "line", ["a b\t{}", "{} a lamp", "0 ||| a ||| QE= 7 ||| {}", "[{}]", "{}%"]
)
def test_lines_with_more_than_a_number_are_refused(line: str, world: World) -> None:
    world.write("numbers", [line.format(n) for n in range(1, 10)])
    refused = world.refused(f"{SCORE} --scores s=numbers", exit=3)
    assert "; write its numbers alone, one on each line, as -0.41" in refused


def test_tuning_reads_scores_in_files_again_and_names_them_by_their_digests(world: World) -> None:
    world.draw()
    files = "--scores m=dev.m --pair-scores - --clip-inf 9"
    command = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --starts 1 --out t.json"
    numbers, lines = world.lines("dev.m"), world.lines("dev.pairs")
    world.write("dev.m", ["-inf", *numbers[1:]])
    pairs = "\n".join([f"{lines[0].rpartition(chr(9))[0]}\t-inf", *lines[1:], ""]).encode()
    run = world.ok(f"{command} {files}", stdin=pairs)
    tuned = world.json("t.json")
    said = tuned["provenance"]["scores"]
    assert said["m"] == {"file": "dev.m", "digest": sha256(world.content("dev.m")).hexdigest()}
    assert said["pairs"] == {"file": "<stdin>", "digest": sha256(pairs).hexdigest()}
    assert {*tuned["weights"]} == {"LM0", "TM0", "m", "pairs"}
    told = "2 x infinite number, clipped, first at "  # in the first reading alone
    assert told in run.err
