"""The loop of `recipes/adapters/estimators`: export, score outside, feed back; and its programs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from support.world import DECODE, EVALUATE, ROOT, World

LISTS = [["the bank", "a bank"], ["it is", "the bank is", "no"], ["he goes"]]


def test_numbers_of_an_estimator_come_back_as_features(world: World, script: Any) -> None:
    lines = [f"{t} ||| {x} ||| TM0= 0 ||| 0" for t, of_list in enumerate(LISTS) for x in of_list]
    files = {"kbest": lines, "docs": [*"xxy"], "src": ["die bank", "sie ist", "er geht"]}
    for end, content in files.items():
        world.write(f"dev.{end}", content)
    world.weights("w.json", {"TM0": 1.0, "qe": 0.5, "pair": 1.0})
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs"]
    script("adapters/estimators/export.py", *lists, "--source", "dev.src", "--out", "work")
    assert world.lines("work/sentences.tsv")[:2] == ["die bank\tthe bank", "die bank\ta bank"]
    rows = [line.split("\t") for line in world.lines("work/pairs.tsv")]
    assert len(rows) == 2 + 2 * 3 + 1
    assert rows[3] == ["x", "1", "0", "1", "die bank", "sie ist", "the bank", "the bank is"]
    assert rows[-1][:4] == ["y", "0", "-", "0"]
    world.write(
        "qe.txt",
        script("adapters/estimators/standin.py", text=world.text("work/sentences.tsv")).out,
    )
    texts = "".join("\t".join(row[4:]) + "\n" for row in rows)
    numbers = script("adapters/estimators/standin.py", text=texts).out.splitlines()
    keys = ["\t".join(row[:4]) for row in rows]
    world.write("pairs", [f"{key}\t{n}" for key, n in zip(keys, numbers, strict=True)])
    scores = "--scores qe=qe.txt --pair-scores pair=pairs --weights w.json --search viterbi"
    # after "the bank" two of three words are known, which outweighs half of a third too long
    expected = ["the bank", "the bank is", "he goes"]
    assert world.ok(["decode", *lists, *scores.split()]).lines == expected


ASKED = DECODE + " --source dev.src --default-weight 1 --scorer qe=command:"
FOLDER = ROOT / "recipes" / "adapters" / "estimators"


def test_the_program_of_the_readme_is_a_whole_program(world: World) -> None:
    (code,) = re.findall(r"\n\n((?:    .*\n)*    for line in sys.stdin:\n(?:    .*\n)+)",
                         (FOLDER / "README.md").read_text())  # fmt: skip
    world.write("qe.py", dedent(code))
    run = world.ok(f"{ASKED}'{sys.executable} qe.py,window=2'")
    assert "14 answers of length 1" in run.err


STANDIN = """\
import os, types
def download_model(name): return f"models/{name}/checkpoints/model.ckpt"
def load_from_checkpoint(path): print("Lightning speaks"); return Model()
class Model:
    def requires_references(self): return "REFERENCES" in os.environ
    def predict(self, samples, batch_size, gpus, progress_bar):
        assert all("</s>" not in one["mt"] or "</s>" in one["src"] for one in samples)
        return types.SimpleNamespace(scores=[-len(one["mt"]) for one in samples])
"""


def comet(world: World, model: str, *variables: str) -> str:
    """The command of the adapter, beside a stand-in for COMET and a checkpoint of Unbabel/kiwi."""
    world.write("site/comet.py", STANDIN)
    world.write(
        "site/unbabel_comet-2.2.7.dist-info/METADATA", "Name: unbabel-comet\nVersion: 2.2.7\n"
    )
    world.write("models/Unbabel/kiwi/checkpoints/model.ckpt", "weights")
    world.write("models/Unbabel/kiwi/hparams.yaml", "pool: avg")
    environment = " ".join(["env", "PYTHONPATH=site", *variables])
    return shlex.quote(f"{environment} {sys.executable} {FOLDER}/comet_program.py {model}")


def test_the_adapter_of_comet_answers_and_keeps_what_libraries_print_apart(world: World) -> None:
    run = world.ok(f"{ASKED}{comet(world, 'Unbabel/kiwi')},window=2")
    assert re.search("14 answers of kiwi COMET 2.2.7 [0-9a-f]{12} in", run.err)
    assert run.lines == ["a lamp burns", "it lights", "the café closed", "nobody comes"]


def test_another_checkpoint_of_the_same_path_has_scores_of_its_own(world: World) -> None:
    folder = "models/Unbabel/kiwi"
    command = f"{ASKED}{comet(world, f'{folder}/checkpoints/model.ckpt')}"
    asked = r"(\d+) answers of (model\.ckpt COMET 2\.2\.7 [0-9a-f]{12}) in"
    versions = set()
    for name, content, n in (
        ("hparams.yaml", "pool: avg", "9"),
        ("hparams.yaml", "pool: avg", "0"),
        ("hparams.yaml", "pool: cls", "9"),
        ("checkpoints/model.ckpt", "other weights", "9"),
    ):
        world.write(f"{folder}/{name}", content)
        ((result, version),) = re.findall(asked, world.ok(command).err)
        assert result == n, (name, content)
        versions.add(version)
    assert len(versions) == 3


def test_a_comet_model_that_needs_a_reference_is_no_scorer(world: World) -> None:
    refused = world.refused(f"{ASKED}{comet(world, 'Unbabel/kiwi', 'REFERENCES=1')}", exit=1)
    assert "needs a reference: give it to --metric, not to --scorer" in refused


TEXTS = ["the lamp is lit", "a lamp burns", "nobody comes", "it lights"]
REQUESTS: list[dict[str, Any]] = [
    {"source": "la lampe", "candidate": TEXTS[0], "references": ["the lamp burns", "lit"]},
    {"source": "elle luit", "candidate": TEXTS[1], "reference": TEXTS[0]},
    {"source": "le bar", "sources_before": ["la lampe", "elle luit"], "references": [TEXTS[3]],
     "candidate": TEXTS[2], "candidates_before": TEXTS[:2], "sources_after": ["personne"]},
]  # fmt: skip
SAMPLES = [
    {"src": "la lampe", "mt": TEXTS[0], "ref": "the lamp burns"},
    {"src": "elle luit", "mt": TEXTS[1], "ref": TEXTS[0]},
    {"src": "la lampe </s> elle luit </s> le bar", "ref": TEXTS[3],
     "mt": f"{TEXTS[0]} </s> {TEXTS[1]} </s> {TEXTS[2]}"},
]  # fmt: skip


class RealComet:
    """COMET in the environment of $COMET_PYTHON, and a tiny checkpoint of a kind."""

    def __init__(self, world: World, kind: str) -> None:
        self._python = os.environ.get("COMET_PYTHON", "")
        if not self._python:
            pytest.skip("set COMET_PYTHON to the Python of an environment with COMET 2.2")
        self._kind, self._folder = kind, world.folder / "tiny"
        self.program = [self._python, f"{FOLDER}/comet_program.py"]
        self.program += [f"{self._folder}/checkpoints/model.ckpt"]

    def run(self, command: Sequence[str], text: str) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        found = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    def predict(self, samples: Sequence[Mapping[str, str]]) -> list[float]:
        """What a new checkpoint gives by COMET's own `predict`."""
        shutil.rmtree(self._folder, ignore_errors=True)
        script = ROOT / "tests" / "support" / "tiny_comet.py"
        command = [self._python, str(script), self._kind, str(self._folder)]
        return list(json.loads(self.run(command, json.dumps(samples))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["referenceless", "regression", "unified"])
def test_the_adapter_gives_the_numbers_of_comets_own_predict(kind: str, world: World) -> None:
    """They are float32, and batches of other sizes differ in the last digits."""
    comet = RealComet(world, kind)
    expected = comet.predict(SAMPLES)
    text = "\n".join(map(json.dumps, REQUESTS))
    introduced, *answers = comet.run(comet.program, f"{text}\n\n").splitlines()
    assert re.fullmatch("COMET 2[.0-9]+ [0-9a-f]{12}", json.loads(introduced)["version"])
    assert answers.pop() == ""
    numbers = [float(answer) for answer in answers]
    assert numbers == pytest.approx(expected, abs=1e-6)
    assert len({*expected}) == len(expected)


@pytest.mark.slow
def test_a_list_is_scored_and_outputs_are_judged_by_a_real_comet(world: World) -> None:
    comet = RealComet(world, "referenceless")
    lines = world.lines("dev.kbest")
    sources, texts = world.lines("dev.src"), [line.split(" ||| ")[1] for line in lines]
    rows = [(sources[int(x.split(" ")[0])], y) for x, y in zip(lines, texts, strict=True)]
    expected = comet.predict([{"src": src, "mt": text} for src, text in rows])
    lists = "--kbest dev.kbest --docs dev.docs --source dev.src"
    program = shlex.join(comet.program)
    world.ok(["score", *lists.split(), "--out", "out", "--scorer", f"qe=command:{program}"])
    result = [float(line.split("qe= ")[1].split()[0]) for line in world.lines("out")]
    assert result == pytest.approx(expected, abs=1e-5)
    comet = RealComet(world, "regression")
    hypotheses, references = world.lines("hyp.txt"), world.lines("dev.ref")
    own = zip(sources, hypotheses, references, strict=True)
    values = comet.predict([{"src": a, "mt": b, "ref": c} for a, b, c in own])
    judged = world.ok([*EVALUATE.split(), "--source", "dev.src", "--format", "json",
                       "--metric", f"m=command:{program}"]).json  # fmt: skip
    score = judged["systems"][1]["scores"]["m"]["score"]
    assert score == pytest.approx(sum(values) / len(values), abs=1e-6)
    refused = world.refused(["score", *lists.split(), "--scorer", f"qe=command:{program}"], exit=1)
    assert "needs a reference: give it to --metric, not to --scorer" in refused


def test_embeddings_are_by_hand(world: World, script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors have an angle of a text's digit, 0.3 each; of two equal texts no pair counts."""

    class Angles:
        dim = 2

        def query(self, text: str) -> Any:
            return np.array([np.cos(0.3 * int(text[-1])), np.sin(0.3 * int(text[-1]))], np.float32)

    monkeypatch.setattr("rerank.metrics.embeddings._encoder", Angles)
    for name, texts in {"A": ["a 0", "b 1"], "B": ["a 1", "b 1"], "C": ["a 3", "b 2"]}.items():
        world.write(f"hyp.{name}.en", texts)
    world.write("src.zh", ["0", "3"])
    world.write("mqm.columns", ["A\tB\tC"])
    world.write("mqm.tsv", ["1\t0\t2", "0\t1\t3"])
    out = script("adapters/estimators/embeddings.py", "--data", world.folder).out.splitlines()
    # of a: B < A < C by people, A > B > C by the source, B > A > C by the others; of b: A < B < C
    # by people, C > A = B by the source
    assert out[2] == "| cosine of source and candidate | 40.0 | 2.00 |"
    assert out[3].startswith("| mean cosine to the others | 100.0 | 0.")
    assert out[5] == "| none: mean of 3 systems | 50.0 | 1.17 |"
