"""Programs outside that score candidates: what they are asked, and that no answer is lost."""

import itertools
import json
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.forked import start
from support.programs import ESTIMATOR, NAMED
from support.world import DECODE, TUNE, World

QE = f"command:'{sys.executable} -IS qe.py'"
ASKED = DECODE + " --source dev.src --default-weight 1"


def logged(program: str) -> str:
    """The program, which writes what it is asked into a file."""
    log = "        print(line, end='', file=open('asked', 'a'))\n        item ="
    return program.replace("        item =", log)


LOGGED = logged(ESTIMATOR)


def asked(world: World) -> list[dict[str, object]]:
    """The requests to the program since the last call."""
    path = world.folder / "asked"
    result = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return result


def score(before: list[str], candidate: str, source: str) -> int:
    return len(source) - len({*" ".join([*before, candidate]).split()}) ** 2


def test_a_run_says_what_it_waits_for(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A program that reads its input before it says who it is would wait for the run."""
    monkeypatch.setattr("rerank.files.program._PATIENCE", 0.01)
    world.write("qe.py", "import time; time.sleep(1)\n" + ESTIMATOR)
    world.ok(f"{ASKED} --scorer qe={QE}")
    assert 'waiting: expected a first line as {"name": "qe", "version": "1"}' in caplog.text


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_document_scores_the_sum_of_its_windows(window: int, world: World) -> None:
    world.write("qe.py", ESTIMATOR)
    world.write("dev.docs", "evening\n" * 4)
    world.write("w.ini", "[weight]\nLM0= 0\nTM0= 0 0\nWP0= 0\nqe= 1\n")
    run = world.ok(f"{ASKED} --scorer qe={QE},window={window} --search viterbi -v")
    sources = world.lines("dev.src")
    texts = [[text for text, *_ in own] for own in world.lists().values()]

    def total(path: tuple[str, ...]) -> int:
        starts = [max(0, t - window + 1) for t in range(4)]
        return sum(score([*path[starts[t] : t]], path[t], sources[t]) for t in range(4))

    best = max(itertools.product(*texts), key=total)
    assert run.lines == [*best]
    assert re.search(r"qe: \d+ answers of toy 1 in [\d.]+ s", run.err)
    assert re.search(r"\|exact:yes\|.*\|scorers:qe=[0-9a-f]{8}\|", run.err)


def test_requests_have_what_is_around_and_equal_ones_are_asked_once(world: World) -> None:
    world.write("qe.py", LOGGED)
    world.write(
        "dev.kbest",
        world.text("dev.kbest") + "3 ||| nobody comes ||| LM0= -9 TM0= -1 -1 WP0= -2 ||| -5\n",
    )
    said = world.ok(f"{ASKED} --scorer qe={QE},window=2").err
    assert re.search("10 candidates, [0-9]+ words; scored by qe [(]at most 16 requests[)]", said)
    first = {"source": "la lampe", "candidates_before": [], "sources_before": []}
    requests = asked(world)
    assert {**first, "sources_after": ["elle luit"], "candidate": "a lamp burns"} in requests
    pair = {"candidates_before": ["a lamp burns"], "sources_before": ["la lampe"]}
    pair |= {"sources_after": []}
    assert {"source": "elle luit", **pair, "candidate": "it lights"} in requests
    assert len(requests) == len({json.dumps(request) for request in requests}) == 2 + 6 + 2 + 4
    world.ok(f"{ASKED} --scorer qe={QE},window=2 --top 1")
    world.ok(f"{ASKED} --scorer qe={QE},window=2 --search sweeps")
    assert asked(world) == []
    world.write("dev.docs", "evening\n" * 4)
    world.ok(f"{ASKED} --scorer qe={QE},window=2 --search viterbi")
    run = world.ok(f"{ASKED} --scorer qe={QE},window=2 --search beam --beam 1")
    (visited,) = re.findall(r"0 answers .* (\d+) from the cache", run.err)
    assert 2 + 3 + 2 + 2 <= int(visited) < 2 + 6 + 6 + 4
    asked(world)
    world.ok(f"{DECODE} --default-weight 1 --scorer qe={QE},source=no")
    assert {"candidate": "it lights"} in asked(world)


def test_answers_are_cached_by_the_name_and_the_version_of_the_program(world: World) -> None:
    command = f"{ASKED} --scorer qe={QE} -v"
    digests = set()
    for version, n in (("1", 9), ("1", 0), ("2", 9), ("1", 0), ("", 9), ("", 9)):
        world.write("qe.py", LOGGED.replace('"version": "1"', f'"version": "{version}"'))
        digests.add(re.findall(r"scorers:qe=(\w+)", world.ok(command).err)[0])
        assert len(asked(world)) == n, version
    assert len(digests) == 3


def test_the_answers_before_a_fault_are_not_asked_again(world: World) -> None:
    rows = LOGGED.replace("    else", "        if 'bar' in line: sys.exit(1)\n    else")
    world.write("qe.py", rows)
    command = f"{ASKED} --scorer qe={QE},batch=2"
    assert "its 6 answers so far are in the cache" in world.run(command).err
    asked(world)
    world.write("qe.py", LOGGED)
    assert "qe: 3 answers of toy 1 in 0.0 s, 6 from the cache" in world.ok(command).err
    assert len(asked(world)) == 3


def test_messages_of_a_program_fill_no_file(world: World) -> None:
    """A megabyte is read from a pipe: the program finds no bytes in its standard error."""
    answer = "print('0123456789' * 10_000, file=sys.stderr); print(os.fstat(2).st_size)"
    loud = re.sub(r"print\(len.*", answer, ESTIMATOR).replace("import json", "import os, json")
    world.write("qe.py", loud)
    world.ok(f"{ASKED} --scorer qe={QE} --kbest-out k.out")
    assert world.text("k.out").count(" qe= 0 ") == 9


def test_weights_state_the_program_its_version_and_the_digest(world: World) -> None:
    world.write("qe.py", ESTIMATOR)
    world.ok(f"{TUNE} --select none --source dev.src --scorer qe={QE},window=2")
    stated = json.loads(world.text("tuned.json"))["provenance"]["scorers"]["qe"]
    assert (stated["program"], stated["version"], stated["window"]) == ("toy", "1", 2)
    words = f"{DECODE.replace('w.ini', 'tuned.json')} --source dev.src --scorer qe={QE},window=2 -v"
    run = world.ok(words)
    assert f"scorers:qe={stated['digest'][:8]}|" in run.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_program_is_left_behind_by_a_run_that_is_stopped(number: int, world: World) -> None:
    begin = "import os, subprocess, sys, time\nsubprocess.Popen(['sleep', '99'])\n"
    loop = "for n, line in enumerate(sys.stdin):\n"
    loop += "  n < 3 or (open('pid', 'w').write(str(os.getpid())), os.rename('pid', 'there'))\n"
    loop += "  n < 3 or time.sleep(99)\n  print(1 if line.strip() else '', flush=True)\n"
    world.write("qe.py", f"{begin}{NAMED}\n{loop}")
    fork = start(f"{ASKED} --scorer qe={QE},batch=1")
    for _ in range(1200):
        if (world.folder / "there").exists():
            break
        time.sleep(0.05)
    os.kill(fork.process, number)
    result = fork.wait()
    assert (result.exit, "Traceback" in result.err) == (75, False), result.err
    assert "finished work kept in the cache" in result.err
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group, *_ = stat.read_text().rpartition(")")[2].split()
            assert group != world.text("there") or state == "Z"  # left to the system to remove
    world.write("qe.py", ESTIMATOR)
    assert ", 1 from the cache" in world.ok(f"{ASKED} --scorer qe={QE}").err


METRIC = ESTIMATOR.replace(
    'print(len(item.get("source", "")) - len({*words}) ** 2)',
    """one = item["references"][0].split()
        print(len(item.get("source", "")) / 100 - sum(word not in one for word in words))""",
)


def test_weights_are_tuned_by_a_metric_that_a_program_computes(world: World) -> None:
    world.write("m.py", logged(METRIC))
    m = QE.replace("qe.py", "m.py")
    command = f"{TUNE} --select none --objective m"
    run = world.ok(f"{command} --metric m={m} --source dev.src")
    assert "--metric m=command: 9 answers of toy 1 in" in run.err
    requests = asked(world)
    asked_for = {"references": ["the lamp is lit"], "source": "la lampe"}
    assert {**asked_for, "candidate": "a lamp burns"} in requests
    assert (len(requests), "source" in requests[0]) == (9, True)
    assert re.search(
        r"m -?[\d.]+ \(rerank\|metric:m\|program:toy 1=[0-9a-f]{8}\|nrefs:1\|", run.err
    )
    weights = json.loads(world.text("tuned.json"))["weights"]
    assert "9 from the cache" in world.ok(f"{command} --metric m={m} --source dev.src").err
    assert asked(world) == []
    values = [
        -sum(w not in world.lines("dev.ref")[t].split() for w in text.split())
        + len(world.lines("dev.src")[t]) / 100
        for t, own in world.lists().items()
        for text, *_ in own
    ]
    world.write("m.txt", [f"{value!r}" for value in values])
    world.ok(f"{command} --metric m=m.txt")
    assert json.loads(world.text("tuned.json"))["weights"] == weights
    world.ok(f"{command} --metric m={m},source=no")
    assert "source" not in asked(world)[0]


def test_evaluate_has_the_values_and_tests_of_a_program_as_of_a_file(world: World) -> None:
    texts = [f"{word} {n}" for n in range(12) for word in ("lamp", "bridge")]
    names = {"ref": texts, "src": texts}
    names |= {"base": ["a lamp"] * 24, "ours": ["the lamp"] * 9 + texts[9:]}
    for name, lines in {**names, "docs": [f"d{n // 2}" for n in range(24)]}.items():
        world.write(name, lines)
    world.write("m.py", logged(METRIC).replace("/ 100", "/ 64"))
    files = "evaluate --docs docs --ref ref --source src --format json"
    both = f"{files} --baseline base ours"
    m = QE.replace("qe.py", "m.py")
    run = world.ok(f"{both} --metric m={m} --metric bleu")
    assert "--metric m=command: 48 answers of toy 1 in" in run.err
    assert {"references": ["lamp 0"], "source": "lamp 0", "candidate": "a lamp"} in asked(world)
    for name in ("base", "ours"):
        values = [
            len(source) / 64 - sum(word not in source.split() for word in text.split())
            for source, text in zip(texts, names[name], strict=True)
        ]
        world.write(f"{name}.m", [f"{value!r}" for value in values])
    given = "--scores m=base:base.m --scores m=ours:ours.m --metric bleu"
    expected = world.ok(f"{both} {given}").json["systems"]
    for own, other in zip(run.json["systems"], expected, strict=True):
        assert re.match(r"rerank\|metric:m\|program:toy 1=\w{8}\|", own["scores"]["m"]["signature"])
        other["scores"]["m"]["signature"] = own["scores"]["m"]["signature"]
        assert own["scores"] == other["scores"]
    text = world.ok(f"{both} --metric m={m}".replace("--format json", "")).out
    assert f"m: {own['scores']['m']['signature']}; mean of all lines with values" in text
    asked(world)
    again = world.ok(f"{files} --systems A=base --systems B=ours --metric m={m} base")
    assert "baseline: B, the best of 2 systems by m" in again.err
    assert asked(world) == []


def test_a_program_s_utility_is_that_of_the_same_numbers_in_a_file(world: World) -> None:
    utility = "abs(len(item['candidate']) - len(item['reference'])) + len(item.get('source', ''))"
    code = ESTIMATOR.replace('len(item.get("source", "")) - len({*words}) ** 2', f"3 - {utility}")
    world.write("u.py", logged(code))
    program = f"command:{sys.executable} -IS u.py"
    arrays: dict[str, Any] = {
        str(t): np.array([[3.0 - abs(len(a) - len(b)) for b, *_ in own] for a, *_ in own])
        for t, own in world.lists().items()
    }
    np.savez(world.folder / "given.npz", **arrays)
    by_file = world.ok([*DECODE.split(), "--search", "mbr:spread=0.5,utility=file:given.npz"])
    for more, files in ((",source=no", []), ("", ["--source", "dev.src"])):
        search = f"mbr:spread=0.5,utility={program}{more},word-reward=0"
        run = world.ok([*DECODE.split(), "-v", "--search", search, *files])
        requests = asked(world)
        assert (run.out, len(requests)) == (by_file.out, 4 + 9 + 4 + 4)
        assert ("source" in requests[0]) == bool(files)
        pair = {"candidate": "a lamp burns", "reference": "the lamp is lit"}
        assert {**pair, **({"source": "la lampe"} if files else {})} in requests
        assert re.search(r"\|utility:toy 1=[0-9a-f]{8}\|", run.err)
        again = world.ok([*DECODE.split(), "--search", search, *files])
        assert "--search mbr:utility=command: 0 answers of toy 1 in 0.0 s, 21 from the" in again.err
        assert (again.out, asked(world)) == (run.out, [])
