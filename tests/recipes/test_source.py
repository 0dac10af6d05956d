"""`recipes/source` on made-up sets: models of both directions, alone and together."""

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
    done = script("source/run.py", "--data", ".", "--work", "work", *models, *options)
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in done.out.splitlines()]
    systems = ("lists alone", "fwd", "two", "chan", "fwd+chan", "two+chan", "mean of fwd, two")
    assert [rows.count([system, "2"]) for system in systems] == [2] * 7  # test and test3ref
    again = script("source/run.py", "--data", ".", "--work", "work", *models, *options)
    assert again.out == done.out
    assert "tune-mert" not in again.err  # what is done is not done again


def test_the_last_documents_of_a_bitext_are_held_out_on_both_sides(
    world: World, script: Any
) -> None:
    world.write("all.en", ["a b", "c", "", "", "d", "", "e f", "g"])
    world.write("all.zh", ["A", "C C", "", "", "D", "", "E", "G"])
    done = script("source/held_out.py", "en=all.en", "zh=all.zh", "--documents", "2", "--out", "o")
    assert "valid.en: 2 documents, 4 words" in done.out
    assert world.text("o/train.en") == "a b\nc\n"
    assert world.text("o/valid.en") == "d\n\ne f\ng\n"
    assert world.text("o/valid.zh") == "D\n\nE\nG\n"
    world.write("all.zh", ["A", "", "D", "", "E", "G"])
    with pytest.raises(SystemExit):
        script("source/held_out.py", "en=all.en", "zh=all.zh", "--documents", "2", "--out", "new")
    assert not (world.folder / "new").exists()


def test_a_transformer_learns_beside_attention_from_the_same_words(
    world: World, script: Any
) -> None:
    files = {"train": "dev.ref", "source": "dev.src", "valid": "dev.ref", "valid-source": "dev.src"}
    options = [part for name, file in files.items() for part in (f"--{name}", file)]
    options += ["--rate", "attention=0.02", "--rate", "transformer=0.02", "--size", "8"]
    found = []
    for words in ("1", "600"):
        done = script("source/transformer.py", *options, "--words", words)
        found.append(
            [float(line.split("perplexity ")[1].split()[0]) for line in done.out.splitlines()]
        )
    before, after = found
    assert len(before) == 2
    assert all(b < 0.8 * a for a, b in zip(before, after, strict=True))


def test_perplexities_in_contexts_are_those_of_the_command(world: World, script: Any) -> None:
    """With its own document that of the text, without any that of sentences as documents."""
    words = [f"w{n % 5} w{n % 3}" for n in range(6)]
    apart = "\n".join(words[:3]) + "\n\n" + "\n".join(words[3:]) + "\n"
    texts = {"text": "\n".join(words), "ids": "a\na\na\nb\nb\nb", "t": apart}
    texts["each"] = apart.replace("\n\n", "\n").replace("\n", "\n\n")
    for name, text in texts.items():
        world.write(name, text.split("\n"))
    files = "--train t --valid t --source t --valid-source t --learning-rate 0.5"
    world.ok(f"train-lm --model attention-gated {files} --out lm --dropout 0 {SMALL}")
    given = ["--text", "text", "--source", "text", "--docs", "ids", "--chosen", "text"]
    *_, row = script("source/context.py", "--lm", "lm", *given).out.splitlines()
    null, other, gold, chosen = row.split()[1:5]
    for file, found in (("t", gold), ("each", null)):
        truth = world.ok(f"perplexity --lm lm --source {file} {file} --format json").json
        assert abs(float(found) - truth["perplexity"]) < 0.001
    assert chosen == gold
    assert len({null, other, gold}) == 3
