"""Scores of a language model behind a server: how it is asked, and what is kept."""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from support.forked import start
from support.server import KEY, STUB, log_prob
from support.world import World

SCORE = "score --kbest dev.kbest --docs dev.docs --out out --lm g=openai:"


def asked(
    world: World, url: str, more: str = " --cache cache", **environment: str
) -> tuple[bytes, int]:
    """The list with scores, and how many requests it took."""
    before = STUB.asked.total()
    world.ok(f"{SCORE}{url},model=toy,sentences=1{more}", **environment)
    return (world.folder / "out").read_bytes(), STUB.asked.total() - before


def kept(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_scores_do_not_depend_on_batches_threads_or_tries_and_are_asked_once(world: World) -> None:
    first, requests = asked(world, STUB.url())
    assert requests == 14  # 2 + 2 · 3 and 2 + 2 · 2 texts
    assert asked(world, STUB.url()) == (first, 0)
    assert asked(world, STUB.url("broken")) == (first, 0)  # the same model elsewhere
    for more in (",batch=4", ",concurrency=1"):
        assert asked(world, STUB.url(), f"{more} --no-cache")[0] == first
    assert asked(world, STUB.url("busy"), " --no-cache") == (first, requests + 14)


def test_what_was_answered_before_a_fault_is_kept(world: World) -> None:
    assert "answered 400" in world.refused(
        f"{SCORE}{STUB.url('nobody')},model=toy,sentences=1 --cache cache", exit=1
    )
    assert 0 < asked(world, STUB.url())[1] < 14


@pytest.mark.parametrize("search", ["viterbi", "greedy", "beam"])
@pytest.mark.parametrize("killed", [False, True])
def test_no_text_is_paid_twice(world: World, search: str, killed: bool) -> None:
    """In a run that goes on after a fault, or a kill, but those that were in flight."""
    texts = [[f"{t} {k}" for k in range(4)] for t in range(16)]
    world.write("k", [f"{t} ||| {x} ||| F= 0 ||| 0" for t, of in enumerate(texts) for x in of])
    world.write("d", [t // 8 for t in range(16)])
    world.write("w", "g= 1\n")
    fault, more = "slow" if killed else "first-40", ",sentences=1" * (search == "viterbi")
    command = f"decode --kbest k --docs d --weights w --default-weight 0 --out - --search {search}"

    def run(fault: str, cache: str = "--cache cache") -> str:
        where = f"{STUB.url(fault)},model=toy,concurrency=4,retries=0{more}"
        return f"{command} {cache} --lm g=openai:{where}"

    def paid() -> Counter[bytes]:
        return sum((Counter({raw: n}) for (_, raw), n in STUB.asked.items()), Counter[bytes]())

    STUB.asked.clear()
    if killed:
        fork = start(run(fault))
        while STUB.asked.total() < 10:
            time.sleep(0.01)
        os.kill(fork.process, signal.SIGKILL)
        fork.wait()
    else:
        assert "answered 403" in world.run(run(fault)).err
    first = paid()
    result = world.ok(run("ok")).out
    assert sum(first.values()) < len(paid())
    assert sum(paid().values()) - len(paid()) <= 4  # one of each thread
    assert world.ok(run("ok", "--no-cache")).out == result


def test_keys_are_sent_and_kept_nowhere(world: World) -> None:
    result, _ = asked(world, STUB.url("key"), " -v --cache cache", OPENAI_API_KEY=KEY)
    assert result == asked(world, STUB.url("key"), ",key-env=K --no-cache", K=KEY)[0]
    assert KEY.encode() not in kept(world.folder)


def test_weights_name_model_and_prompt_but_no_url(world: World) -> None:
    world.write("p", "{{ source }} =\n")
    world.ok(
        "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --source dev.src --starts 1 "
        f"--out w.json --lm g=openai:{STUB.url()},model=toy,prompt=p"
    )
    text = (world.folder / "w.json").read_text()
    made = json.loads(text)["provenance"]
    assert " --lm g=openai:URL,model=toy,prompt=p " in made["command"]
    model = made["models"]["g"]
    assert (model["model"], model["prompt"], len(model["prompt_digest"])) == ("toy", "p", 64)
    assert "127.0.0.1" not in text


@pytest.mark.parametrize("fault", ["", "no-parts"])  # as of vLLM, as of llama.cpp
def test_scores_are_sums_over_tokens_for_any_server(world: World, fault: str) -> None:
    texts = ["a lamp", "über é", "é", "éé b", "b é", ""]
    world.write("k", [f"{t} ||| {text} ||| F= 0 ||| 0" for t, text in enumerate(texts)])
    lists = "--kbest k --no-docs one --out - --no-cache"
    result = world.ok(f"score {lists} --lm g=openai:{STUB.url(fault)},model=toy,sentences=1").lines
    before = ["", *(f"{text}\n" for text in texts)]
    expected = [log_prob(b, f"{text}\n") for b, text in zip(before, texts, strict=False)]
    values = [float(line.split("g= ")[1].split()[0]) for line in result]
    assert values == pytest.approx(expected, abs=1e-4)
