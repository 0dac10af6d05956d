"""`score`: features of language models beside those of the list."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from support.models import save_models
from support.world import WORDS, World

SCORE = "score --kbest dev.kbest --docs dev.docs --no-cache --out o"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("rnnlm", "codclm", "hrnnlm")}
    save_models(folders, WORDS[:9], 4, 6, oov_rate=0.25)
    return folders


def features(world: World) -> list[list[str]]:
    """Labels and values of each line."""
    return [line.split(" ||| ")[2].split() for line in world.lines("o")]


def test_models_are_appended_in_the_order_of_the_options(
    world: World, models: Mapping[str, Path]
) -> None:
    told = world.ok(f"{SCORE} --lm b={models['rnnlm']} --lm a={models['hrnnlm']}").err
    assert "candidates are scored after the first candidates of their document's earlier" in told
    for row in features(world):
        labels = [token for token in row if token.endswith("=")]
        assert labels[-4:] == ["b=", "boov=", "a=", "aoov="]


def test_a_default_weight_stands_in_for_weights_that_the_file_lacks(
    world: World, models: Mapping[str, Path]
) -> None:
    command = f"{SCORE} --lm lm={models['codclm']} --weights w.json"
    found = []
    for weights, more in (({}, "--default-weight 0.5"), ({"lm": 0.5, "lmoov": 0.5}, "")):
        world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.5], "WP0": 0, **weights})
        told = world.ok(f"{command} {more}").err
        assert "candidates are scored after the decoded path of their document's earlier" in told
        found.append(world.content("o"))
    assert found[0] == found[1]


def test_tuning_reads_scores_in_files_again_and_names_them_by_their_digests(world: World) -> None:
    world.draw()
    files = "--scores m=dev.m --pair-scores - --clip-inf 9"
    command = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --starts 1 --out t.json"
    numbers, lines = world.lines("dev.m"), world.lines("dev.pairs")
    world.write("dev.m", ["-inf", *numbers[1:]])
    pairs = "\n".join([f"{lines[0].rpartition(chr(9))[0]}\t-inf", *lines[1:], ""]).encode()
    found = world.ok(f"{command} {files}", stdin=pairs)
    tuned = world.json("t.json")
    said = tuned["provenance"]["scores"]
    assert said["m"] == {"file": "dev.m", "digest": sha256(world.content("dev.m")).hexdigest()}
    assert said["pairs"] == {"file": "<stdin>", "digest": sha256(pairs).hexdigest()}
    assert {*tuned["weights"]} == {"LM0", "TM0", "m", "pairs"}
    told = "2 x infinite number, clipped, first at "  # in the first reading alone
    assert told in found.err
