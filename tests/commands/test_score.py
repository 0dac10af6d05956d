"""`score`: features of language models beside those of the list."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
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


@pytest.mark.parametrize("name", ["rnnlm", "codclm", "hrnnlm"])
def test_lists_whose_only_candidate_is_the_text_score_as_its_perplexity(
    name: str, world: World, models: Mapping[str, Path]
) -> None:
    rng, docs = np.random.default_rng(8), "aaaabccccc"
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 7))) for _ in docs]
    world.write("dev.kbest", [f"{t} ||| {text} ||| A= 0 ||| 0" for t, text in enumerate(texts)])
    world.write("dev.docs", [*docs])
    parts = ["\n".join(t for t, d in zip(texts, docs, strict=True) if d == name) for name in "abc"]
    world.write("text", "\n\n".join(parts) + "\n")
    world.ok(f"{SCORE} --lm lm={models[name]}")
    found = world.ok(f"perplexity --lm {models[name]} text --format json").json
    found = found[0] if isinstance(found, list) else found
    rows = features(world)
    nats = -sum(float(row[row.index("lm=") + 1]) for row in rows)
    oov = sum(float(row[row.index("lmoov=") + 1]) for row in rows)
    words = sum(len(text.split()) + 1 for text in texts)
    assert (found["sentences"], found["oov"]) == (10, oov)
    assert found["perplexity"] == pytest.approx(np.exp(nats / words), rel=1e-5)


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
