"""`recipes/source` on made-up sets: models of both directions, alone and together."""

from typing import Any

from support.world import SOUND, World

PARTS = {".docids": "dev.docs", ".zh": "dev.src", ".en": "dev.ref", ".nbest": "dev.kbest"}
SMALL = "--embed 4 --hidden 4 --vocab 30 --epochs 1 --streams 2 -q"


def test_every_system_has_a_row_in_the_table_of_each_test_set(world: World, script: Any) -> None:
    world.write("tvsub-zh-en/moses.rescore.ini", SOUND["w.ini"])
    for name in ("tune", "test", "test3ref"):
        for suffix, file in PARTS.items():
            world.write(f"tvsub-zh-en/{name}{suffix}", SOUND[file])
    models = []
    for name, text, source in (("fwd", "dev.ref", "dev.src"), ("chan", "dev.src", "dev.ref")):
        files = f"--train {text} --source {source} --valid {text} --valid-source {source}"
        world.ok(f"train-lm --model attention {files} --out {name} {SMALL}")
        models += ["--model", f"{name}={name}{',reverse=yes' * (name == 'chan')}"]
    options = ["--set", "tvsub-zh-en", "--top", "2", "--documents", "1"]
    done = script("source/run.py", "--data", ".", "--work", "work", *models, *options)
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in done.out.splitlines()]
    systems = ("lists alone", "fwd", "chan", "fwd+chan")
    assert [rows.count([system, "2"]) for system in systems] == [2] * 4  # test and test3ref
    again = script("source/run.py", "--data", ".", "--work", "work", *models, *options)
    assert again.out == done.out
    assert "tune-mert" not in again.err  # what is done is not done again
