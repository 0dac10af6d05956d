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
import types
def download_model(name): return "/models/" + name
def load_from_checkpoint(path): print("Lightning speaks"); return Model()
class Model:
    def predict(self, samples, batch_size, gpus, progress_bar):
        assert all("</s>" not in one["mt"] or "</s>" in one["src"] for one in samples)
        return types.SimpleNamespace(scores=[-len(one["mt"]) for one in samples])
"""


def test_the_adapter_of_comet_answers_and_keeps_what_libraries_print_apart(world: World) -> None:
    world.write("site/comet.py", STANDIN)
    world.write(
        "site/unbabel_comet-2.2.7.dist-info/METADATA", "Name: unbabel-comet\nVersion: 2.2.7\n"
    )
    program = f"env PYTHONPATH=site {sys.executable} {FOLDER}/comet_program.py Unbabel/kiwi"
    found = world.ok(f"{ASKED}{shlex.quote(program)},window=2")
    assert "14 answers of Unbabel/kiwi COMET 2.2.7 in" in found.err
    assert found.lines == ["a lamp burns", "it lights", "the café closed", "nobody comes"]
