"""The score cache: scores are found again bit for bit, or computed again whatever happened."""

import errno
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save
from support.forked import start
from support.runs import (
    DOCUMENTS,
    MODELS,
    OUTPUTS,
    cache,
    decoding,
    recalled,
    shards,
    taken,
    tuning,
)
from support.world import Outcome, World

DAMAGED = "1 x damaged score cache shard, computed again, first at"
SCORE = "score --kbest dev.kbest --docs dev.docs --out out.kbest --lm lm="
PLAIN = f"{SCORE}codclm"


def outputs(world: World, command: str) -> tuple[Outcome, dict[str, bytes]]:
    run = world.ok(command)
    return run, taken(world)


# Found again
@pytest.mark.parametrize("model", MODELS)
def test_a_second_run_takes_all_scores_from_the_cache(model: str, drawn: World) -> None:
    _, expected = outputs(drawn, decoding(model, "--no-cache"))
    assert shards() == []
    for documents in (0, DOCUMENTS):
        result, written = outputs(drawn, decoding(model, ""))
        assert (recalled(result), written) == (documents, expected)
        assert ("tokens scored" in result.err) == (documents == 0)
        assert len(shards()) == DOCUMENTS


def test_without_new_scores_neither_torch_nor_the_tensors_are_read(drawn: World) -> None:
    """A folder that states no facts of its model is read whole, as those of 0.1 are."""
    command = decoding("codclm", "")
    _, expected = outputs(drawn, command)
    folder = drawn.folder / "codclm"
    program = "import sys, rerank.commands as main; code = main.exit_code_of(sys.argv[1:]); "
    program += "print(code, 'torch' in sys.modules)"
    words = [sys.executable, "-c", program, *shlex.split(command)]

    def again() -> str:
        run = subprocess.run(words, cwd=drawn.folder, capture_output=True, text=True, check=True)
        return run.stdout.splitlines()[-1]

    assert again() == "0 False"
    assert taken(drawn) == expected
    (shard,) = folder.glob("*.safetensors")
    shard.write_bytes(bytes(shard.stat().st_size))
    assert again() == "0 False"
    assert taken(drawn) == expected
    assert "digest differs" in drawn.refused(f"{command} --no-cache", exit=3)
    drawn.model("codclm", "codclm")
    manifest = json.loads((folder / "config.json").read_bytes())
    del manifest["facts"]
    (folder / "config.json").write_text(json.dumps(manifest))
    assert again() == "0 True"


@pytest.mark.parametrize("model", MODELS[1:])
def test_tuning_again_computes_no_scores_for_equal_weights(model: str, drawn: World) -> None:
    _, expected = outputs(drawn, tuning(model))
    result, written = outputs(drawn, tuning(model))
    assert (recalled(result), written) == (DOCUMENTS, expected)
    assert "tokens scored" not in result.err
    assert outputs(drawn, tuning(model, "--no-cache"))[1] == expected


def test_scores_of_another_model_form_or_precision_are_never_taken(drawn: World) -> None:
    drawn.model("codclm", "other", seed=2)
    drawn.model("codclm", "turned", reverse_documents=True)
    drawn.model("dclm-bilingual", "source")
    drawn.model("dclm-rst", "rst")
    lines = drawn.lines("dev.docs")
    for n in (1, 2):
        drawn.write(f"source{n}", [str(n)] * len(lines))
    firsts = [t == 0 or lines[t - 1] != lines[t] for t in range(len(lines))]
    drawn.write("varied", [str(n % 7) for n in range(len(lines))])
    drawn.write("parents1", [0] * len(lines))
    drawn.write(
        "parents2",
        [0 if first or line == "w" else 1 for first, line in zip(firsts, lines, strict=True)],
    )
    text = drawn.text("dev.kbest").replace(" the ", " a ")
    drawn.write("changed.kbest", text)
    commands = [
        *(PLAIN, f"{PLAIN} --deterministic", f"{PLAIN} --dtype bfloat16"),
        *(f"{PLAIN},document-cache={share}" for share in (0.1, 0.3)),
        *(f"{SCORE}{name}" for name in ("other", "turned", "ccdclm")),
        *(f"{SCORE}source --source source{n}" for n in (1, 2)),
        *(f"{SCORE}rst --source varied --parents parents{n}" for n in (1, 2)),
        PLAIN.replace("dev.kbest", "changed.kbest"),
    ]
    cold = [outputs(drawn, command) for command in commands]
    *others, turned, _ = (recalled(found) for found, _ in cold)
    assert (turned, {*others}) == (1, {0})  # document w has one sentence, whose parent is none
    for command, (_, expected) in zip(commands, cold, strict=True):
        found, written = outputs(drawn, command)
        assert (recalled(found), written) == (DOCUMENTS, expected)
        assert outputs(drawn, f"{command} --no-cache")[1] == expected
    assert len({written["out.kbest"] for _, written in cold}) >= len(cold) - 1  # bits may agree


@pytest.mark.parametrize("options", ["", ",pmi=yes"])
@pytest.mark.parametrize("model", MODELS[1:])
def test_other_contexts_are_scored_once(model: str, options: str, drawn: World) -> None:
    """A trace and the ablations share what has no context."""
    names = ["lmpmi", "lmnull"] if options else ["lm"]
    drawn.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.5], **dict.fromkeys(names, 1.0)})
    weights = "--weights w.json --default-weight 0.5"
    lists = f"--kbest dev.kbest --docs dev.docs {weights} --device cpu --lm lm={model}{options}"
    ablate, decode = f"ablate {lists} --ref dev.ref --format json", f"decode {lists} --out out.txt"
    expected = drawn.ok(f"{ablate} --no-cache").out
    commands = [decode, f"{decode} --trace t.json", ablate, ablate, f"{decode} --trace t.json"]
    tokens = ["tokens scored" in (found := drawn.ok(command)).err for command in commands]
    assert tokens == [True, not options, True, False, False]
    assert drawn.ok(ablate).out == expected
    assert recalled(found) == DOCUMENTS


@pytest.mark.parametrize("model", MODELS[1:])
def test_fewer_candidates_are_found_in_lists_of_more(model: str, drawn: World) -> None:
    """Batches of other sizes have other bits; a prefix of other texts is none."""
    for options, documents in (("", DOCUMENTS), ("--deterministic", 0)):
        expected = outputs(drawn, decoding(model, f"--top 2 --no-cache {options}"))[1]
        outputs(drawn, decoding(model, options))
        result, written = outputs(drawn, decoding(model, f"--top 2 {options}"))
        assert recalled(result) == documents
        assert written["out.txt"] == expected["out.txt"]
        assert options == "" or written == expected
    outputs(drawn, decoding(model, ""))
    outputs(drawn, decoding(model, "--top 2"))
    assert recalled(outputs(drawn, decoding(model, ""))[0]) == DOCUMENTS  # they are still there


def test_a_list_with_a_longer_word_or_one_sentence_less_is_another_list(drawn: World) -> None:
    lists = [["a", "a lamp"], ["it"]]
    for changed, documents in (
        (lists, 1),
        ([["a", "a lamps"], ["it"]], 0),
        ([["a", "a"], ["it"]], 0),
        ([["a"], ["it"]], 1),
        ([["a", "a lamp"]], 0),
        ([["a"], ["a lamp"], ["it"]], 0),
        ([["a", "a lamp"], ["it", "it"]], 0),
    ):
        for own in (lists, changed):
            rows = [f"{t} ||| {x} ||| LM0= 0 ||| 0" for t, of in enumerate(own) for x in of]
            drawn.write("few.kbest", rows)
            run = drawn.ok("score --kbest few.kbest --no-docs one --lm lm=codclm --out o")
        assert recalled(run) == documents, changed
        drawn.ok("cache clear")


# Damage
@pytest.mark.parametrize(("model", "place"), [("codclm", 0.0), ("ccdclm", 0.5), ("codclm", 1.0)])
def test_a_cut_or_changed_byte_is_noticed(model: str, place: float, drawn: World) -> None:
    command = f"{SCORE}{model} --deterministic"
    _, expected = outputs(drawn, command)
    shard = shards()[1]
    whole = shard.read_bytes()
    n = min(int(place * len(whole)), len(whole) - 1)
    for damaged in (whole[:n], whole[:n] + bytes([whole[n] ^ 0x80]) + whole[n + 1 :], whole + b"0"):
        shard.write_bytes(damaged)
        result, written = outputs(drawn, command)
        assert f"{DAMAGED} " in result.err
        assert (recalled(result), written) == (DOCUMENTS - 1, expected)
        assert shard.read_bytes() == whole
    shard.write_bytes(whole[:-1])
    refused = drawn.refused(f"{command} --strict --allow source-line-without-hypotheses", exit=3)
    assert "damaged score cache shard, computed again (an error under --strict" in refused


def digest(shard: Path, payload: bytes, schema: int = 1) -> bytes:
    head = f"rerank score cache {schema}\n{shard.parent.name}\n{shard.stem}\n"
    return hashlib.sha256(head.encode() + payload).digest()


def packed(header: object, data: bytes = b"", pad: int = 8) -> bytes:
    """Safetensors: the length of the header, the header, numbers."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % pad)
    return len(text).to_bytes(8, "little") + text + data


def entry(shape: object, begin: object, end: object, dtype: object = "U8") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_a_shard_is_safetensors_and_the_digest_of_schema_names_and_these(drawn: World) -> None:
    """safetensors and hashlib read what was written."""
    drawn.ok(PLAIN)
    for shard in shards():
        data = shard.read_bytes()
        assert data[-32:] == digest(shard, data[:-32])
        assert "scores" in load(data[:-32])
        assert (shard.parent.stat().st_mode & 0o777, cache().stat().st_mode & 0o777) == (0o700,) * 2


PAYLOADS = {
    "nothing": b"",
    "gigantic-header": b"\xff" * 8 + b"{}",
    "a-list": packed([1]),
    "no-json": packed(b"{nonsense}"),
    "nested": packed(b'{"a":' + b"[" * 99_999),
    "no-entry": packed({"a": 1}),
    "unknown-type": packed({"a": entry([1], 0, 1, "F8")}, b"x"),
    "bytes-left-over": packed({"a": entry([1], 0, 1)}, b"xy"),
    "too-few-bytes": packed({"a": entry([3], 0, 3)}, b"xy"),
    "overlap": packed({"a": entry([2], 0, 2), "b": entry([2], 0, 2)}, b"xy"),
    "negative": packed({"a": entry([-1], 0, -1)}, b"x"),
    "terabytes": packed({"a": entry([2**40], 0, 2**40)}),
    "beyond-64-bits": packed({"a": entry([2**99], 0, 2**99)}),
    "not-aligned": packed({"a": entry([1], 0, 8, "F64")}, b"x" * 8, pad=9),
}


def test_a_right_digest_over_anything_but_safetensors_is_damage(drawn: World) -> None:
    _, expected = outputs(drawn, PLAIN)
    shard = shards()[0]
    for name, payload in PAYLOADS.items():
        shard.write_bytes(payload + digest(shard, payload))
        result, written = outputs(drawn, PLAIN)
        assert (name, DAMAGED in result.err, written) == (name, True, expected)


@pytest.mark.parametrize("command", [PLAIN, f"{SCORE}ccdclm"], ids=["1", "any"])
def test_a_shard_of_arrays_of_another_scorer_is_damage(command: str, drawn: World) -> None:
    _, expected = outputs(drawn, command)
    shard = shards()[0]
    arrays = load(shard.read_bytes()[:-32])
    others = ({}, {"a": np.zeros(3)}, *(
        {**arrays, name: other}
        for name, old in arrays.items()
        for other in (np.append(old, old), old[:0], old * np.nan, old[None])
    ))  # fmt: skip
    for other in others:
        payload = save(other)
        shard.write_bytes(payload + digest(shard, payload))
        result, written = outputs(drawn, command)
        assert (DAMAGED in result.err, written) == (True, expected), other


def test_shards_of_another_name_group_or_schema_are_damage(drawn: World) -> None:
    drawn.ok(PLAIN)
    one, other = shards()[:2]
    payload = other.read_bytes()[:-32]
    for content in (one.read_bytes(), payload + digest(other, payload, schema=2)):
        other.write_bytes(content)
        assert DAMAGED in drawn.ok(PLAIN).err
    drawn.ok(f"{SCORE}ccdclm")
    (group,) = {shard.parent for shard in shards()} - {one.parent}
    (group / one.name).write_bytes(one.read_bytes())
    assert DAMAGED in drawn.ok(f"{SCORE}ccdclm").err


@pytest.mark.parametrize("kind", ["pipe", "link", "folder-of-bytes-without-end"])
def test_what_is_no_shard_is_not_read_and_gives_way_to_one(kind: str, drawn: World) -> None:
    """Nothing waits for a pipe, nothing is written through a link, no memory for 4 terabytes."""
    _, expected = outputs(drawn, PLAIN)
    shard = shards()[0]
    shard.unlink()
    victim = drawn.write("victim", "precious")
    if kind == "pipe":
        os.mkfifo(shard)
    elif kind == "link":
        shard.symlink_to(victim)
    else:
        with shard.open("wb") as file:
            file.truncate(1 << 42)  # a hole: it takes no room on disk
    result, written = outputs(drawn, PLAIN)
    assert (recalled(result), "damaged" in result.err, written) == (DOCUMENTS - 1, False, expected)
    assert shard.is_file()
    assert not shard.is_symlink()
    assert recalled(drawn.ok(PLAIN)) == DOCUMENTS
    assert drawn.text("victim") == "precious"


# A cache that cannot be written, and its limit
@pytest.mark.parametrize(
    ("call", "number", "reason"),
    [
        ("replace", errno.ENOSPC, "no space left writing"),
        ("fsync", errno.EROFS, "failed: read-only file system"),
    ],
)
def test_after_a_fault_of_the_disk_the_run_goes_on_without_writing_shards(
    call: str, number: int, reason: str, drawn: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, expected = outputs(drawn, f"{SCORE}rnnlm --no-cache")
    drawn.ok(PLAIN)
    before, faults = [path.read_bytes() for path in shards()], list[object]()
    real: Callable[..., None] = getattr(os, call)

    def fail(*given: Any) -> None:
        path = os.readlink(f"/proc/self/fd/{given[0]}") if call == "fsync" else str(given[-1])
        if path.startswith(str(cache())):
            faults.append(path)
            raise OSError(number, os.strerror(number))
        real(*given)

    monkeypatch.setattr(os, call, fail)
    result, written = outputs(drawn, f"{SCORE}rnnlm")
    assert (len(faults), written) == (1, expected)
    told = f"1 x score cache not written: {'' if number == errno.ENOSPC else 'writing '}"
    assert told in result.err
    assert reason in result.err
    assert [path.read_bytes() for path in shards()] == before


def size() -> int:
    return sum(path.stat().st_size for path in shards())


def test_shards_used_longest_ago_go_first(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODELS:
        drawn.ok(f"{SCORE}{name}")
        for shard in shards():
            os.utime(shard, (shard.stat().st_mtime - 100,) * 2)
    group, name = shards()[0].parent, shards()[0].name
    old, young = (group / f".{name[:50]}.1.0123456{n}.tmp" for n in "78")
    for path, seconds in ((old, 7_200), (young, 60)):
        path.write_bytes(b"x" * 9)
        os.utime(path, (time.time() - seconds,) * 2)
    drawn.ok(f"{SCORE}rnnlm")  # the oldest are used again
    again = {path for path in shards() if path.stat().st_mtime > time.time() - 60}
    used = {path: path.stat().st_mtime_ns for path in shards()}
    limit = size() + 10  # less room than another shard takes
    monkeypatch.setenv("RERANK_CACHE_GB", str(limit / 1e9))
    command = "score --kbest one.kbest --no-docs one --out one --lm lm=codclm"
    drawn.write("one.kbest", "0 ||| it ||| LM0= 0 ||| 0\n")
    drawn.ok(command)
    left = {path for path in used if path.exists()}
    assert len(again) == DOCUMENTS
    assert max(used[path] for path in used.keys() - left) < min(used[path] for path in left)
    largest = max(path.stat().st_size for path in shards())
    assert 0.9 * limit - largest < size() <= 0.9 * limit
    assert (old.exists(), young.exists()) == (False, True)  # of a dead writer, and of a live one
    for path in shards():
        os.utime(path, (time.time() + 3_600,) * 2)
    monkeypatch.setenv("RERANK_CACHE_GB", str((size() + 10) / 1e9))
    drawn.write("one.kbest", "0 ||| she ||| LM0= 0 ||| 0\n")
    drawn.ok(command)
    assert recalled(drawn.ok(command)) == 1  # what was just written stays, whatever the clock says


def test_documents_beyond_the_limit_are_told(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn.ok(PLAIN)
    sizes = sorted(path.stat().st_size for path in shards())
    drawn.ok("cache clear")
    monkeypatch.setenv("RERANK_CACHE_GB", str((sizes[-1] - 1) / 1e9))
    run = drawn.ok(PLAIN)
    assert "1 x document with more scores than the cache may hold, not kept; raise" in run.err
    assert shards() != []
    assert size() < sizes[-1]


# Several processes
def test_two_programs_that_share_a_cold_cache_write_the_bytes_of_one(drawn: World) -> None:
    _, expected = outputs(drawn, decoding("ccdclm", "--deterministic --no-cache"))
    command = decoding("ccdclm")
    renamed = command
    for name in OUTPUTS:
        renamed = renamed.replace(f" {name}", f" other.{name}")
    for program in [start(command), start(renamed)]:
        result = program.wait()
        assert result.exit == 0, result.err
        assert "damaged" not in result.err
    assert taken(drawn) == expected
    assert {name: drawn.content(f"other.{name}") for name in OUTPUTS} == expected
    assert [path.suffix for path in cache().glob("*/*")] == [".scores"] * DOCUMENTS
    assert recalled(drawn.ok(command)) == DOCUMENTS
