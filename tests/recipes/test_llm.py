"""`recipes/llm` on made-up pairs and systems, with a tiny model: every row, and a killed run."""

import json
from typing import Any

from support import causal
from support.world import World

SENTENCES = ("the lamp is lit in the old house", "she sees it from the bridge at night")
ERRORS = {"A": ("old", "new"), "B": ("lit", "light"), "C": ("sees", "sees a")}
HOW = ("no context", "own context, exact", "own context, greedy")


def data(world: World, documents: int) -> None:
    """Pairs of pronouns, and systems with an error each, which is what people count."""
    for language in ("de", "fr", "zh"):
        pairs = [
            {"context": [f"the lamp {n}"], "right": f"it is {n}", "wrong": f"she is {n}"}
            for n in range(6)
        ]
        world.write(f"pronouns-en/{language}.jsonl", map(json.dumps, pairs))
    texts = [f"{text} {d} times" for d in range(documents) for text in SENTENCES]
    world.write("mqm-zh-en/docids", [f"d{n // 2}" for n in range(len(texts))])
    world.write("mqm-zh-en/src.zh", [text.upper() for text in texts])
    outputs = {name: [x.replace(*error) for x in texts] for name, error in ERRORS.items()}
    for name, lines in outputs.items():
        world.write(f"mqm-zh-en/hyp.{name}.en", lines)
    world.write("mqm-zh-en/ref.en", texts)
    world.write("mqm-zh-en/mqm.columns", ["\t".join(outputs)])
    counts = [
        [int(x != text) for x in own] for text, *own in zip(texts, *outputs.values(), strict=True)
    ]
    world.write("mqm-zh-en/mqm.tsv", ["\t".join(map(str, own)) for own in counts])


def test_every_row_is_printed_and_what_is_done_is_not_done_again(world: World, script: Any) -> None:
    causal.save(world.folder / "gpt", positions=512)
    data(world, 4)
    options = ["--lm", "gpt", "--data", ".", "--work", "work", "--only", "pronouns", "mqm"]
    done = script("llm/run.py", *options)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.out.splitlines()]
    assert [row[:2] for row in rows if row[:1] == ["all"]] == [["all", "1"], ["all", "2"]]
    chosen = [(row[1], row[2]) for row in rows if row[:1] == ["mqm"]]
    assert chosen[:2] == [("", "agreement"), ("", "tuned without it")]
    for way in ("plain", "prompt"):
        own = [how for found, how in chosen if found == way]
        assert len(own) == 8
        assert own[:3] == [f"tuned, {how}" for how in HOW]
    assert "mqm-plain-tuned-own-context-exact" in done.out  # of `evaluate --metric discourse`
    (world.folder / "work" / "mqm.1.plain.own.decoded.txt").unlink()
    again = script("llm/run.py", *options)
    assert again.out == done.out
    assert [line.split()[2] for line in again.err.splitlines() if line[:1] == "$"] == ["decode"]
