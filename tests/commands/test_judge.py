"""Judges: what they are asked, what their answers are worth, and that none is lost or made up."""

import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.forked import start
from support.judge import FAULTS, READ, JudgeStub, opinion, shown
from support.world import DECODE, EVALUATE, ROOT, TUNE, World

from rerank import Document, Reranker
from rerank.report.page import marked
from rerank.scorers.judge_forms import FORMS, aggregated, errors_of
from rerank.scorers.judge_models import unpacked

ASKED = DECODE + " --source dev.src --default-weight 1"
TEXTS = [
    ["the lamp is lit", "a lamp burns"],
    ["it gives light", "she gives a light", "it lights"],
    ["the café is closed", "the café closed"],
    ["nobody comes", "no one is coming"],
]


@pytest.fixture
def stub() -> Iterator[JudgeStub]:
    server = JudgeStub()
    yield server
    server.shutdown()
    server.server_close()


def values(world: World) -> list[list[float]]:
    """The feature of each candidate of `k.out`."""
    return [
        [float(re.findall(r" j= (\S+)", features)[0]) for _, features, _ in own]
        for own in world.lists("k.out").values()
    ]


def judged(world: World, model: str, more: str = "") -> str:
    """What a run says whose list has the judgements; its feature is `j`."""
    return world.ok(f"{ASKED} --scorer j=judge:{model} --kbest-out k.out -v {more}").err


def shares(texts: list[str]) -> list[float]:
    """Shares of the others that each text is before, in the opinion of the server."""
    return [sum(opinion(x) < opinion(y) for x in texts) / (len(texts) - 1) for y in texts]


@pytest.mark.parametrize("form", ["rating", "errors", "ranking", "pair"])
def test_judgements_are_what_the_answers_say(form: str, world: World, stub: JudgeStub) -> None:
    world.write("more.json", '{"logprobs": null}')
    said = judged(world, f"{stub.url()},form={form},request=more.json")
    expected = {
        "rating": [[float(opinion(x)) for x in texts] for texts in TEXTS],
        "errors": [[-5.0 * sum(opinion(w) > 50 for w in x.split()) for x in t] for t in TEXTS],
        "ranking": [*map(shares, TEXTS)],
        "pair": [*map(shares, TEXTS)],
    }[form]
    assert values(world) == [pytest.approx(x) for x in expected]
    n = {"rating": 9, "errors": 9, "ranking": 4, "pair": 2 + 6 + 2 + 2}[form]
    assert f"j: {n} answers of toy ({form})" in said
    assert stub.asked.total() == n
    assert set(Counter(stub.asked).values()) == {1}
    again = judged(world, f"{stub.url()},form={form},request=more.json")
    assert f"j: 0 answers of toy ({form}) in 0.0 s, {n} from the cache" in again
    assert stub.asked.total() == n


def test_a_grade_is_the_expectation_over_the_letters(world: World, stub: JudgeStub) -> None:
    """By the shares that the server states of A, B and C; the rest is on `The`."""
    said = judged(world, f"{stub.url()},form=grade")
    a, b, c = (math.exp(x) for x in (-0.5, -1.5, -2.5))
    mean = (100 * a + 75 * b + 50 * c) / (a + b + c)
    assert [*itertools.chain(*values(world))] == pytest.approx([mean] * 9)
    assert f"{1 - a - b - c:.1%} of the probability on other answers" in said


@pytest.mark.parametrize("before", [1, 2])
def test_choices_before_are_searched_exactly(before: int, world: World, stub: JudgeStub) -> None:
    world.write("dev.docs", "evening\n" * 4)
    world.write("w.ini", "[weight]\nLM0= 0\nTM0= 0 0\nWP0= 0\nj= 1\n")
    run = world.ok(f"{ASKED} --scorer j=judge:{stub.url()},before={before} --search viterbi")

    def total(path: tuple[str, ...]) -> int:
        parts = [path[max(0, t - before) : t + 1] for t in range(4)]
        return sum(opinion("".join(f"{x}\n" for x in p[:-1]) + p[-1]) for p in parts)

    assert run.lines == [*max(itertools.product(*TEXTS), key=total)]
    stub.asked.clear()
    world.ok(f"{ASKED} --scorer j=judge:{stub.url()},before={before} --search greedy --no-cache")
    visited, first = sum(map(len, TEXTS)), len(TEXTS)  # the path of first candidates, too
    assert visited <= stub.asked.total() <= visited + first


def test_passages_are_judged_as_one_text(world: World, stub: JudgeStub) -> None:
    """Those of three sentences that end a stride of 2, and the last one: of 5 sentences two."""
    world.write("dev.docs", "evening\n" * 4)
    world.write("w.ini", "[weight]\nLM0= 0\nTM0= 0 0\nWP0= 0\nj= 1\n")
    run = world.ok(f"{ASKED} --scorer j=judge:{stub.url()},window=3,stride=2 --search viterbi")

    def total(path: tuple[str, ...]) -> int:
        return opinion("\n".join(path[:3])) + opinion("\n".join(path[1:]))

    assert run.lines == [*max(itertools.product(*TEXTS), key=total)]
    questions = [json.loads(q)["messages"][0]["content"] for q in stub.asked]
    assert len(questions) == 2 * 3 * 2 + 3 * 2 * 2
    assert any("la lampe\nelle luit\nle bar\n" in question for question in questions)


@pytest.mark.parametrize("name", [*FAULTS, "cut", "none"])
def test_an_unreadable_answer_is_no_judgement(name: str, world: World, stub: JudgeStub) -> None:
    said = judged(world, stub.url(name))
    assert [*itertools.chain(*values(world))] == [0.0] * 9
    assert "read and were asked for again: 9, 9 of them in vain: document" in said
    assert stub.asked.total() == 18
    judged(world, stub.url(name))
    assert stub.asked.total() == 18
    refused = world.refused(f"{ASKED} --scorer j=judge:{stub.url(name)},before=1", exit=1)
    assert "sentence 0 (counted from 0): expected an answer as asked" in refused


@pytest.mark.parametrize(
    "stored",
    [b"", b"[", b"[" * 9999, b"[]", b"{}", b'{"text": 5}', b'{"text": "5", "more": 1}',
     b'{"text": "5", "value": "5"}', b'{"text": "5", "value": NaN}', b'{"text": "5", "cut": "9"}'],
)  # fmt: skip
def test_what_is_stored_by_others_is_no_answer(stored: bytes) -> None:
    assert unpacked(stored) is None
    assert unpacked(b'{"text": "5", "read": 9, "value": 5.0}') is not None


@pytest.mark.parametrize("form", ["grade", "pair"])
def test_prose_is_no_judgement_by_its_first_token(form: str, world: World, stub: JudgeStub) -> None:
    """The server states that prose begins with A, with log-probabilities of letters."""
    said = judged(world, f"{stub.url('prose')},form={form}")
    assert "in vain: document" in said
    assert "of the probability" not in said


def test_a_run_ends_where_nothing_can_be_read(world: World, stub: JudgeStub) -> None:
    world.draw()
    world.write("dev.src", world.text("dev.docs"))
    command = ASKED.replace("w.ini", "start.json")
    result = world.refused(f"{command} --scorer j=judge:{stub.url('cut')},parallel=2", exit=1)
    assert "none of 40 answers can be read, the last one was cut off; give tokens=N" in result
    assert "give tokens=N; its 4" in result
    assert stub.asked.total() <= 42
    stub.asked.clear()
    world.ok(f"{command} --scorer j=judge:{stub.url()},tokens=99")  # those that were cut, again
    world.ok(f"{command} --scorer j=judge:{stub.url()},tokens=9")
    assert stub.asked.total() == 43


@pytest.mark.parametrize("name", READ)
def test_a_number_may_have_a_frame(name: str, world: World, stub: JudgeStub) -> None:
    judged(world, stub.url(name))
    assert values(world) == [[opinion(x) for x in texts] for texts in TEXTS]


def test_one_unread_answer_leaves_0_to_its_sentence(world: World, stub: JudgeStub) -> None:
    """All candidates of the sentence have 0; those of the other sentences have their ratings."""
    stub.unread = "it lights"
    judged(world, stub.url())
    assert values(world)[1] == [0.0] * 3
    assert values(world)[0] == [opinion(x) for x in TEXTS[0]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("half", "the server answered with what is no JSON"),
        ("no-choices", "the server expected an object with choices"),
        ("no-object", "the server expected an object with choices"),
        ("number", "the server expected a text as content of a message, found 7"),
        ("broken", "the server answered 500"),
        ("forbidden", "the server answered 403"),
    ],
)
def test_faults_of_servers_name_them(
    name: str, message: str, world: World, stub: JudgeStub
) -> None:
    run = world.run(f"{ASKED} --scorer j=judge:{stub.url(name)},retries=0")
    assert run.exit == 1
    assert "--scorer j=judge:openai:http://127.0.0.1" in run.err
    assert message in run.err
    assert "Traceback" not in run.err


def test_busy_servers_are_asked_again(world: World, stub: JudgeStub) -> None:
    judged(world, stub.url("busy"))
    assert values(world)[0] == [opinion(x) for x in TEXTS[0]]
    assert stub.asked.total() == 18


@pytest.mark.parametrize("name", ["broken", "forbidden"])
def test_what_was_answered_before_a_fault_is_not_asked_again(
    name: str, world: World, stub: JudgeStub
) -> None:
    stub.until = 5
    assert "its 5 answers so far are kept" in world.refused(
        f"{ASKED} --scorer j=judge:{stub.url(name)},retries=0,parallel=1", exit=1
    )
    assert "j: 4 answers of toy (rating) in" in judged(world, stub.url())


def test_what_was_answered_before_a_kill_is_not_asked_again(world: World, stub: JudgeStub) -> None:
    stub.seconds = 0.2
    fork = start(f"{ASKED} --scorer j=judge:{stub.url()},passes=9,parallel=16")
    while stub.asked.total() < 60:
        time.sleep(0.02)
    os.kill(fork.process, signal.SIGKILL)
    fork.wait()
    stub.seconds = 0.0
    time.sleep(0.5)
    judged(world, f"{stub.url()},passes=9,parallel=2")
    assert sum(n - 1 for n in stub.asked.values()) <= 16


def test_a_run_ends_when_its_budget_is_spent(world: World, stub: JudgeStub) -> None:
    """A question costs 100 · 10 and 2 · 20 of a million: 0.00104; four of them fit."""
    priced = f"{stub.url()},parallel=1,price=10/20"
    dry = world.ok(f"{ASKED} --scorer j=judge:{priced} --dry-run").err
    assert re.search(r"j \(at most 9 questions, about [\d,]+ tokens read and 36 written, for", dry)
    assert not stub.asked
    run = world.run(f"{ASKED} --scorer j=judge:{priced},budget=0.0043 --out new.txt")
    assert run.exit == 1
    assert not (world.folder / "new.txt").exists()
    assert "is spent, 4 of 9 questions are answered; give a larger one; its 4 answers" in run.err
    stub.seconds = 0.1
    more = f"{stub.url()},parallel=8,price=10/20,budget=0.0022"
    assert world.run(f"{ASKED} --scorer j=judge:{more}").exit == 1
    assert stub.asked.total() == 6
    stub.seconds = 0.0
    said = judged(world, f"{priced},budget=1")
    assert "j: 3 answers of toy (rating)" in said
    assert "at 10/20 a million 0.00312" in said
    assert stub.asked.total() == 9


def test_a_judge_is_asked_where_it_may_matter(world: World, stub: JudgeStub) -> None:
    """By the totals −4.875, −4.8125 | −3.53, −3.97, −4.25 | −5.44, −5.63 | −4.125, −4.81."""
    said = judged(world, f"{stub.url()},top=2,margin=0.5")
    worst = min(map(opinion, TEXTS[1][:2]))
    expected = [[*map(opinion, TEXTS[0])], [*map(opinion, TEXTS[1][:2]), worst]]
    assert values(world) == [*expected, [*map(opinion, TEXTS[2])], [0, 0]]
    assert "; 1 sentences not asked about" in said
    assert stub.asked.total() == 6


def test_the_best_texts_are_asked_about_however_often_they_are_there(
    world: World, stub: JudgeStub
) -> None:
    texts = ["ee", "dd", "ee", "cc", "ee"]
    features = "LM0= 0 TM0= 0 0 WP0= 0"
    lines = [f"0 ||| {x} ||| {features} ||| {-k}" for k, x in enumerate(texts)]
    world.write("dev.kbest", [*lines, *(f"{t} ||| a ||| {features} ||| 0" for t in (1, 2, 3))])
    judged(world, f"{stub.url()},top=2")
    worst = min(opinion("ee"), opinion("dd"))
    assert values(world)[0] == [worst if x == "cc" else opinion(x) for x in texts]
    assert stub.asked.total() == 2


def test_without_totals_the_best_texts_are_those_that_agree(world: World, stub: JudgeStub) -> None:
    outputs = {"a": "one lamp", "b": "the lamp is lit", "c": "the lamp is lit now", "d": "x"}
    for name, text in outputs.items():
        world.write(name, [text, "y", "y", "y"])
    systems = " ".join(f"--systems {name}={name}" for name in outputs)
    world.ok(f"decode {systems} --no-docs one --source dev.src --scorer j=judge:{stub.url()},top=2")
    asked = {shown(json.loads(q)["messages"][0]["content"])[0][1] for q in stub.asked}
    assert asked == {outputs["b"], outputs["c"]}


def test_equal_texts_are_asked_about_once_alone_never(world: World, stub: JudgeStub) -> None:
    texts = [(0, "ab"), (0, "ab"), (1, "ab"), (2, "c"), (3, "c"), (3, "d")]
    features = "LM0= 0 TM0= 0 0 WP0= 0 ||| 0"
    world.write("dev.kbest", [f"{t} ||| {text} ||| {features}" for t, text in texts])
    for form, n in (("rating", 2), ("ranking", 1), ("pair", 2)):
        stub.asked.clear()
        judged(world, f"{stub.url()},form={form}")
        assert stub.asked.total() == n
        assert values(world)[0] == [0, 0]


def test_passes_are_own_questions_and_their_noise_is_said(world: World, stub: JudgeStub) -> None:
    said = judged(world, f"{stub.url()},passes=3")
    assert stub.asked.total() == 27
    assert {json.loads(q)["temperature"] for q in stub.asked} == {1.0}
    assert "standard deviation 0 of a candidate over passes" in said
    stub.asked.clear()
    judged(world, f"{stub.url()},form=ranking,passes=4,parallel=1")
    questions = [json.loads(q)["messages"][0]["content"] for q in stub.asked]
    orders = {tuple(text for _, text in shown(question)) for question in questions}
    assert len([order for order in orders if len(order) == 3]) > 1
    assert values(world) == [pytest.approx(shares(texts)) for texts in TEXTS]


def test_passes_are_aggregated_as_the_formulas_say() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.normal(50, 10, (7, 5))
    drawn[0, 1], drawn[3, 2], drawn[:, 4] = 999.0, np.nan, np.nan
    for k in range(4):
        own = drawn[~np.isnan(drawn[:, k]), k]
        near = own[abs(own - own.mean()) <= 2 * own.std()]
        ranks = 1 / np.arange(1, len(own) + 1)
        ranked = (np.sort(own)[::-1] * ranks).sum() / ranks.sum()
        for mean, value in (("mean", own.mean()), ("trimmed", near.mean()), ("ranks", ranked)):
            assert aggregated(drawn, mean)[k] == pytest.approx(value)
            assert np.isnan(aggregated(drawn, mean)[4])
    assert 999.0 in drawn[:, 1]
    assert aggregated(drawn, "trimmed")[1] < 100


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"ranking": ["B", "A", "C"]}', [0.5, 1.0, 0.0]),
        ('```json\n{"ranking": ["B", "A", "C"]}\n```', [0.5, 1.0, 0.0]),
        ("C > B > A", [0.0, 0.5, 1.0]),
        ('["Translation C", "B", "A"]', [0.0, 0.5, 1.0]),
        ('{"ranking": ["B", "A"]}', None),
        ('{"ranking": ["B", "A", "D"]}', None),
        ('{"ranking": ["B", "A", "C", "C"]}', None),
        ('{"ranking": "BAC"}', None),
        ('{"ranking": [["B"], "A", "C"]}', None),
        ("[" * 9999, None),
        ("A", None),
        ("", None),
    ],
)
def test_a_ranking_names_each_label_once(text: str, found: list[float] | None) -> None:
    assert FORMS["ranking"].read(text, 3) == found


@pytest.mark.parametrize(("text", "penalty"), [
    ('{"errors": []}', 0.0),
    ('{"errors": [{"span": "x", "category": "Punctuation", "severity": " Minor"}]}', 0.1),
    ('{"errors": [{"span": "x", "category": "accuracy", "severity": "critical"}]}', 25.0),
    ('{"errors": [{"span": "x", "category": "accuracy", "severity": "awful"}]}', None),
    ('{"errors": [{"span": "x", "severity": "major"}]}', None),
    ('{"errors": {}}', None),
    ('{"errors": [1]}', None),
    ("no errors", None),
])  # fmt: skip
def test_errors_are_weighed_as_mqm(text: str, penalty: float | None) -> None:
    errors = errors_of(text)
    assert (None if errors is None else sum(e.penalty for e in errors)) == penalty
    assert FORMS["errors"].read(text, 1) == (None if penalty is None else [-penalty])


def test_trace_table_and_page_show_the_errors_of_the_choices(world: World, stub: JudgeStub) -> None:
    judge = f"--scorer j=judge:{stub.url()},form=errors"
    world.ok(f"{ASKED} {judge} --trace t.jsonl --table t.tsv --out o.txt".replace("--out -", ""))
    result = [json.loads(line) for line in world.lines("t.jsonl")]
    for sentence, cell in zip(result, world.table("t.tsv")["errors"], strict=True):
        words = [w for w in sentence["texts"]["chosen"].split() if opinion(w) > 50]
        assert [error["span"] for error in sentence["errors"]] == words
        assert cell == "; ".join(f"major accuracy: {word}" for word in words)
        assert sentence["judged"] == [{"judge": "j", "passes": [-5.0 * len(words)]}]
    page = world.ok("report --trace t.jsonl --docs dev.docs --out -").out
    word = next(w for s in result if s["chosen"] != s["first"] for w in [s["errors"][0]["span"]])
    assert f"<mark>{word}</mark> <small>(major, accuracy)</small>" in page


@pytest.mark.parametrize(
    ("spans", "parts"),
    [
        (["lamp"], ["the ", "+lamp", " is lit"]),
        (["is lit", "the"], ["+the", " lamp ", "+is lit"]),
        (["l", "l"], ["the ", "+l", "amp is ", "+l", "it"]),
        (["lamp is", "is lit"], ["the ", "+lamp is", " lit", " ", "+“is lit”"]),
        (["“sun”", ""], ["the lamp is lit", " ", "+“sun”", " ", "+…"]),
    ],
)
def test_errors_are_marked_at_their_words(spans: list[str], parts: list[str]) -> None:
    errors = [{"span": span, "category": "accuracy", "severity": "major"} for span in spans]
    result = marked("the lamp is lit", errors)
    assert ["+" * bool(kind) + part for kind, part in result] == parts


def test_a_judge_is_a_metric_an_objective_and_a_utility(world: World, stub: JudgeStub) -> None:
    judge = f"judge:{stub.url()}"
    run = world.ok(f"{EVALUATE} --source dev.src --metric bleu --metric j={judge} --format json")
    texts = world.lines("hyp.txt")
    means = [system["scores"]["j"]["score"] for system in json.loads(run.out)["systems"]]
    assert means[-1] == pytest.approx(np.mean([*map(opinion, texts)]))
    plain = json.loads(next(iter(stub.asked)))["messages"][0]["content"]
    assert "by a person" not in plain
    world.ok(f"{EVALUATE} --source dev.src --metric j={judge},reference=yes")
    assert any("A right translation, by a person:\\nnobody is coming" in q for q in stub.asked)
    world.ok(
        f"{TUNE} --source dev.src --metric j={judge} --objective j --select none --search greedy"
    )
    mbr = world.ok(f"{ASKED} --search mbr:utility={judge},form=grade")
    assert len(mbr.lines) == 4
    assert any("A right translation, by a person:\\na lamp burns" in q for q in stub.asked)


def test_the_page_of_judges_can_be_followed(
    world: World, stub: JudgeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "recipes" / "docs" / "judges.md").read_text(encoding="utf-8")
    make, *blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    subprocess.run([sys.executable, ROOT / make.split()[1], "three-engines"], check=True)
    monkeypatch.chdir("three-engines")
    server = stub.url().removeprefix("openai:").partition(",")[0]
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        world.ok(line.replace("http://127.0.0.1:8000/v1", server).removeprefix("rerank "))
    assert "<mark>" in Path("report.html").read_text(encoding="utf-8")


def test_python_takes_a_judge_as_the_shell_does(world: World, stub: JudgeStub) -> None:
    document = Document("d", [[(x, {}) for x in t] for t in TEXTS], side={"source": ["x"] * 4})
    (result,) = Reranker({}, scorers={"j": f"judge:{stub.url()}"}).decode([document])
    assert stub.asked.total() == 9
    (alone,) = Reranker({"j": 1.0}, scorers={"j": f"judge:{stub.url()}"}).decode([document])
    assert alone.texts == tuple(max(texts, key=opinion) for texts in TEXTS)
    assert stub.asked.total() == 9
    assert len(result.texts) == 4


def test_context_is_shown(world: World, stub: JudgeStub) -> None:
    languages = "source-language=French,target-language=English"
    judged(world, f"{stub.url()},source-before=1,source-after=1,{languages}")
    whole = "\n".join(json.loads(q)["messages"][0]["content"] for q in stub.asked)
    assert "from French into English" in whole
    assert "Source, before it:\nla lampe\n\nSource:\nelle luit\n" in whole
    assert "Source:\nla lampe\n\nSource, after it:\nelle luit\n" in whole
    world.write("mine.jinja", "Translation to judge:\n{{ candidate }}\n{{ source }}?")
    stub.asked.clear()
    judged(world, f"{stub.url()},prompt=mine.jinja")
    assert json.loads(next(iter(stub.asked)))["messages"][0]["content"].endswith("?")


def test_the_expectation_of_a_model_is_that_of_a_plain_loop(world: World) -> None:
    """Shares of all 101 answers, each with its end, by a forward pass for each."""
    pytest.importorskip("transformers")
    from support.causal import obvious, save

    from lm.causal import open_causal_model

    folder = Path("toy")
    save(world.folder / folder, positions=2048)
    judged(world, f"hf:{folder}")
    opened = open_causal_model(folder)
    end = opened.begin  # it has no eos
    answers = [[*ids, end] for ids in opened.encode([str(n) for n in range(101)])]
    result = values(world)
    for t, texts in enumerate(TEXTS[:2]):
        for k, text in enumerate(texts):
            question = judge_question(world.lines("dev.src")[t], text)
            context = [opened.begin, *opened.encode([question])[0]]
            log_probs = np.array([obvious(opened, context, ids) for ids in answers])
            shares_ = np.exp(log_probs - log_probs.max())
            mean = (shares_ * np.arange(101)).sum() / shares_.sum()
            assert result[t][k] == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize("form", ["grade", "pair"])
def test_both_doors_of_a_model_give_the_same(
    form: str, world: World, stub: JudgeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with the model states the log-probabilities of its first token."""
    pytest.importorskip("transformers")
    import torch
    from support.causal import save

    from lm.causal import open_causal_model

    opened = open_causal_model(save(world.folder / "toy", positions=2048))
    network = opened.model

    def answer(request: dict[str, Any], fault: str) -> dict[str, Any]:
        ids = opened.encode([f"{request['messages'][0]['content']}\nAnswer: "])[0]
        given = torch.tensor([[opened.begin, *ids]])
        with torch.no_grad():
            log_probs = network(input_ids=given).logits[0, -1].log_softmax(0).tolist()
        letters = "ABCDE" if form == "grade" else "AB"
        tops = [(x, log_probs[opened.encode([x])[0][0]]) for x in letters]
        stated = [{"token": token, "logprob": number} for token, number in tops]
        content = {"content": [{"token": "A", "top_logprobs": stated}]}
        return {"choices": [{"message": {"content": "A"}, "logprobs": content}]}

    monkeypatch.setattr(stub, "answer", answer)
    judged(world, f"{stub.url()},form={form}")
    of_server = values(world)
    judged(world, f"hf:toy,form={form}")
    assert values(world) == [pytest.approx(x, abs=1e-4) for x in of_server]


def judge_question(source: str, text: str) -> str:
    """The question for a rating, in a model without chats."""
    from rerank.scorers.judge_forms import TEMPLATE

    last = next(x for x in TEMPLATE.read_text().splitlines() if x.startswith("How well"))
    last = last.replace("{{ well }}", "say what the source says, in good language")
    return f"Source:\n{source}\n\nTranslation to judge:\n{text}\n\n{last}\n\nAnswer: "
