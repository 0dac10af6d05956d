"""The loop of `recipes/estimators`: export, score outside, feed back; and its programs."""

import re
import shlex
import sys
from textwrap import dedent
from typing import Any

from support.world import DECODE, ROOT, World

LISTS = [["the bank", "a bank"], ["it is", "the bank is", "no"], ["he goes"]]


def test_numbers_of_an_estimator_come_back_as_features(world: World, script: Any) -> None:
    lines = [f"{t} ||| {x} ||| TM0= 0 ||| 0" for t, own in enumerate(LISTS) for x in own]
    files = {"kbest": lines, "docs": [*"xxy"], "src": ["die bank", "sie ist", "er geht"]}
    for end, content in files.items():
        world.write(f"dev.{end}", content)
    world.weights("w.json", {"TM0": 1.0, "qe": 0.5, "pair": 1.0})
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs"]
    script("estimators/export.py", *lists, "--source", "dev.src", "--out", "work")
    assert world.lines("work/sentences.tsv")[:2] == ["die bank\tthe bank", "die bank\ta bank"]
    rows = [line.split("\t") for line in world.lines("work/pairs.tsv")]
    assert len(rows) == 2 + 2 * 3 + 1
    assert rows[3] == ["x", "1", "0", "1", "die bank", "sie ist", "the bank", "the bank is"]
    assert rows[-1][:4] == ["y", "0", "-", "0"]
    world.write(
        "qe.txt", script("estimators/standin.py", text=world.text("work/sentences.tsv")).out
    )
    texts = "".join("\t".join(row[4:]) + "\n" for row in rows)
    numbers = script("estimators/standin.py", text=texts).out.splitlines()
    keys = ["\t".join(row[:4]) for row in rows]
    world.write("pairs", [f"{key}\t{n}" for key, n in zip(keys, numbers, strict=True)])
    scores = "--scores qe=qe.txt --pair-scores pair=pairs --weights w.json --search viterbi"
    # after "the bank" two of three words are known, which outweighs half of a third too long
    expected = ["the bank", "the bank is", "he goes"]
    assert world.ok(["decode", *lists, *scores.split()]).lines == expected


ASKED = DECODE + " --source dev.src --default-weight 1 --scorer qe=command:"
FOLDER = ROOT / "recipes" / "estimators"


def test_the_program_of_the_readme_is_a_whole_program(world: World) -> None:
    (code,) = re.findall(r"\n\n((?:    .*\n)*    for line in sys.stdin:\n(?:    .*\n)+)",
                         (FOLDER / "README.md").read_text())  # fmt: skip
    world.write("qe.py", dedent(code))
    found = world.ok(f"{ASKED}'{sys.executable} qe.py,window=2'")
    assert "14 answers of length 1" in found.err


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
    found = world.ok(f"{ASKED}{comet(world, 'Unbabel/kiwi')},window=2")
    assert re.search("14 answers of kiwi COMET 2.2.7 [0-9a-f]{12} in", found.err)
    assert found.lines == ["a lamp burns", "it lights", "the café closed", "nobody comes"]


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
        ((found, version),) = re.findall(asked, world.ok(command).err)
        assert found == n, (name, content)
        versions.add(version)
    assert len(versions) == 3


def test_a_comet_model_that_needs_a_reference_is_no_scorer(world: World) -> None:
    found = world.run(f"{ASKED}{comet(world, 'Unbabel/kiwi', 'REFERENCES=1')}")
    assert found.exit == 1
    assert "needs a reference: give it to --metric, not to --scorer" in found.err
