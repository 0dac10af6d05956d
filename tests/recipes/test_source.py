"""`recipes/studies/source` on made-up sets: models of both directions, alone and together."""

from typing import Any

import pytest
from support.world import SOUND, World

PARTS = {".docids": "dev.docs", ".zh": "dev.src", ".en": "dev.ref", ".nbest": "dev.kbest"}
SMALL = "--embed 4 --hidden 4 --vocab 30 --epochs 1 --streams 2 -q"


def test_every_system_has_a_row_in_the_table_of_each_test_set(world: World, script: Any) -> None:
    world.write("tvsub-zh-en/moses.rescore.ini", SOUND["w.ini"])
    for name in ("tune", "test", "test3ref"):
        for suffix, file in PARTS.items():
            world.write(f"tvsub-zh-en/{name}{suffix}", SOUND[file])
    models = []
    sides = ("dev.ref", "dev.src")
    for name, (text, source) in {"fwd": sides, "two": sides, "chan": sides[::-1]}.items():
        files = f"--train {text} --source {source} --valid {text} --valid-source {source}"
        seed = 2 if name == "two" else 1
        world.ok(f"train-lm --model attention {files} --out {name} {SMALL} --seed {seed}")
        models += ["--model", f"{name}={name}{',reverse=yes' * (name == 'chan')}"]
    options = ["--set", "tvsub-zh-en", "--top", "2", "--documents", "1"]
    done = script("studies/source/run.py", "--data", ".", "--work", "work", *models, *options)
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in done.out.splitlines()]
    systems = ("lists alone", "fwd", "two", "chan", "fwd+chan", "two+chan", "mean of fwd, two")
    assert [rows.count([system, "2"]) for system in systems] == [2] * 7  # test and test3ref
    again = script("studies/source/run.py", "--data", ".", "--work", "work", *models, *options)
    assert again.out == done.out
    assert "tune-mert" not in again.err  # what is done is not done again


def test_the_last_documents_of_a_bitext_are_held_out_on_both_sides(
    world: World, script: Any
) -> None:
    world.write("all.en", ["a b", "c", "", "", "d", "", "e f", "g"])
    world.write("all.zh", ["A", "C C", "", "", "D", "", "E", "G"])
    done = script(
        "studies/source/held_out.py", "en=all.en", "zh=all.zh", "--documents", "2", "--out", "o"
    )
    assert "valid.en: 2 documents, 4 words" in done.out
    assert world.text("o/train.en") == "a b\nc\n"
    assert world.text("o/valid.en") == "d\n\ne f\ng\n"
    assert world.text("o/valid.zh") == "D\n\nE\nG\n"
    world.write("all.zh", ["A", "", "D", "", "E", "G"])
    with pytest.raises(SystemExit):
        script(
            "studies/source/held_out.py",
            "en=all.en",
            "zh=all.zh",
            "--documents",
            "2",
            "--out",
            "new",
        )
    assert not (world.folder / "new").exists()
