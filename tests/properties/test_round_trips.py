"""What is written is read back: lists, documents and weights of every format, by the commands.

Each format has a writer here, a few lines of Python in the spelling of its tool; `convert` and
`weights` must give back what was drawn. Of a list only what the format holds comes back.
"""

import json
from collections.abc import Callable
from html import escape
from math import log
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.world import World

in_world = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=12,
)
LARGEST = 1e100
Sentence = list[tuple[str, float, float]]  # text, log-probability, another score
numbers = st.floats(-LARGEST, LARGEST)
plain = st.characters(codec="utf-8", exclude_categories=["C", "Z"])
words = st.lists(st.text(plain, min_size=1, max_size=6), max_size=4).map(" ".join)
candidates = st.tuples(words.filter(lambda text: "|||" not in text), numbers, numbers)
lists = st.lists(st.lists(candidates, min_size=1, max_size=3), min_size=1, max_size=4)
of_equal_length = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.lists(candidates, min_size=k, max_size=k), min_size=1, max_size=4)
)


def rows(sentences: list[Sentence]) -> list[tuple[int, str, float, float]]:
    return [(t, *candidate) for t, sentence in enumerate(sentences) for candidate in sentence]


def jsonl(sentences: list[Sentence]) -> str:
    result = [
        [{"text": x, "score": a, "features": {"A": a, "B": b}} for x, a, b in sentence]
        for sentence in sentences
    ]
    return "".join(json.dumps({"candidates": own}) + "\n" for own in result)


def fairseq(sentences: list[Sentence]) -> str:
    """Scores of a token are of base 2; what is given is in nats, so that both are powers of two."""
    return "".join(f"H-{t}\t{a!r}\t{x}\nP-{t}\t{b!r}\n" for t, x, a, b in rows(sentences))


def sockeye(sentences: list[Sentence]) -> str:
    return "".join(
        json.dumps({
            "sentence_id": t,
            "translation": sentence[0][0],
            "translations": [x for x, _, _ in sentence],
            "scores": [[-a, -b] for _, a, b in sentence],
        })
        + "\n"
        for t, sentence in enumerate(sentences)
    )  # fmt: skip


def mlm(sentences: list[Sentence]) -> str:
    result = {
        f"u{t}": {f"hyp_{k}": {"score": a, "text": x} for k, (x, a, _) in enumerate(sentence, 1)}
        for t, sentence in enumerate(sentences)
    }
    return json.dumps(result)


def named(form: str, between: str) -> Callable[[list[Sentence]], str]:
    """Lists of cdec, Joshua and Travatar."""
    return lambda sentences: "".join(
        form.format(t, x, between.format(a, b), a) + "\n" for t, x, a, b in rows(sentences)
    )


# name: (writer, options, names of the two scores, factor of the scores, has a total)
WRITERS: dict[str, tuple[Callable[[list[Sentence]], str], str, tuple[str, ...], float, bool]] = {
    "fairseq": (fairseq, "", ("score", "logprob"), log(2), True),
    "sockeye": (sockeye, "", ("logprob", "factor1"), 1, True),
    "mlm-scoring": (mlm, "", ("score",), 1, True),
    "cdec": (named("{} ||| {} ||| {} ||| {!r}", "LM={!r} P_0={!r}"), "", ("LM", "P0"), 1, True),
    "joshua": (named("{} ||| {} ||| {} ||| {!r}", "lm_0={!r} x={!r}"), "", ("lm0", "x"), 1, True),
    "travatar": (named("{0} ||| {1} ||| {3!r} ||| {2}", "a={!r} b={!r}"), "", ("a", "b"), 1, True),
    "nematus": (lambda own: "".join(f"{t} ||| {x} ||| {-a!r} {-b!r}\n" for t, x, a, b in rows(own)),
        "--kbest-format nematus", ("F0", "F1"), 1, False),
    "mbr-nmt": (lambda sentences: "".join(f"NC={len(own)}\n" + "".join(f"{x}\n" for x, _, _ in own)
        for own in sentences), "", (), 1, False),
    "tabs": (lambda found: "".join("\t".join(x or "x" for x, _, _ in own) + "\n" for own in found),
        "--kbest-format tabs", (), 1, False),
}  # fmt: skip


def converted(world: World, options: str) -> list[list[dict[str, Any]]]:
    """The candidates of each sentence of the file `list`."""
    lines = world.ok(f"convert --kbest list --to jsonl -q {options}").lines
    return [json.loads(line)["candidates"] for line in lines]


@pytest.mark.parametrize("name", WRITERS)
@in_world
@given(sentences=lists)
def test_a_list_comes_back_as_json(name: str, sentences: list[Sentence], world: World) -> None:
    write, options, names, factor, has_total = WRITERS[name]
    content = write(sentences)
    world.write("list", content)
    result = converted(world, options)
    expected = [[x or ("x" if name == "tabs" else "") for x, _, _ in own] for own in sentences]
    assert [[one["text"] for one in own] for own in result] == expected
    for one, (_, _, a, b) in zip(
        (one for own in result for one in own), rows(sentences), strict=True
    ):
        values = dict(zip(names, (a * factor, b * factor), strict=False))
        assert one.get("features", {}) == values
        assert one.get("score") == (a * factor if has_total else None)


@in_world
@given(sentences=of_equal_length)
def test_a_flat_list_comes_back_with_its_scores(sentences: list[Sentence], world: World) -> None:
    world.write("list", [x for _, x, _, _ in rows(sentences)])
    world.write("scores", [f"{a!r}\t{b!r}" for _, _, a, b in rows(sentences)])
    k = len(sentences[0])
    for name in ("flat", "portage"):
        result = converted(world, f"--kbest-format {name}:{k} --kbest-scores scores")
        assert [
            [(one["text"], one["features"]["F0"], one["features"]["F1"]) for one in own]
            for own in result
        ] == sentences


@in_world
@given(sentences=lists)
def test_a_list_goes_through_moses_and_json_lines(sentences: list[Sentence], world: World) -> None:
    world.write("list", jsonl(sentences))
    world.ok("convert --kbest list --to moses --out moses")
    world.ok("convert --kbest moses --to moses --out again")
    assert world.content("again") == world.content("moses")
    world.ok("convert --kbest moses --to jsonl --out lists.jsonl")
    world.ok("convert --kbest lists.jsonl --to jsonl --out again")
    assert world.content("again") == world.content("lists.jsonl")
    world.ok("convert --kbest lists.jsonl --to jsonl --out list")
    assert [
        [(one["text"], *one["features"].values()) for one in own] for own in converted(world, "")
    ] == sentences


@in_world
@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="\n\0\r"), max_size=20)
    | st.lists(st.sampled_from(["|||", "||", " ", "a", "LM0=", "1", "😀"]), max_size=8).map("".join)
)
def test_any_text_is_written_to_a_moses_list_escaped_or_refused(text: str, world: World) -> None:
    world.write(
        "list",
        json.dumps({"candidates": [{"text": text, "score": 1}, {"text": "x", "score": 2}]}) + "\n",
    )
    run = world.run("convert --kbest list --to moses --out out -q")
    if run.exit:
        assert run.err.count("\n") == 1
        assert "list:1: " in run.err
        assert "convert --escape moses" in run.err
        assert "|||" in text
    else:
        assert world.text("out").split(" ||| ")[1].strip(" ") == text.replace("\t", " ").strip(" ")
    world.ok("convert --kbest list --to moses --escape moses --out out -q")
    world.ok("convert --kbest out --to first --escape none --out plain -q")
    unescaped = world.ok("convert --kbest list --to first --escape none -q").out
    assert world.text("plain") == unescaped


# Documents
names = st.text("abc-/.", min_size=1, max_size=6).filter(lambda name: name.strip("-/."))
sizes = st.dictionaries(names, st.integers(1, 4), min_size=1, max_size=4)


def sgml(sizes: dict[str, int]) -> str:
    documents = (
        f'<doc docid="{name}">\n'
        + "".join(f'<seg id="{n}"> {escape(f"{name} & {n}")} </seg>\n' for n in range(1, size + 1))
        + "</doc>\n"
        for name, size in sizes.items()
    )
    return f'<refset refid="r">\n{"".join(documents)}</refset>\n'


def xml(sizes: dict[str, int]) -> str:
    root = ElementTree.Element("dataset")
    for name, size in sizes.items():
        document = ElementTree.SubElement(root, "doc", id=name)
        for tag, given_name in (("src", {}), ("ref", {"translator": "r"})):
            side = ElementTree.SubElement(document, tag, given_name)
            for n in range(1, size + 1):
                ElementTree.SubElement(side, "seg", id=str(n)).text = f"{name} & {n}"
    return ElementTree.tostring(root, encoding="unicode")


DOCUMENTS: dict[str, tuple[Callable[[dict[str, int]], str], str]] = {
    "ids": (lambda sizes: "".join(f"{d}\n" * n for d, n in sizes.items()), "--docs-format docids"),
    "second field": (lambda sizes: "".join(f"x  {d}\n" * n for d, n in sizes.items()),
        "--docs-field 2"),
    "first of TABs": (lambda sizes: "".join(f"{d}\tx y\n" * n for d, n in sizes.items()),
        "--docs-field 1"),
    "numbered": (lambda sizes: "".join(f"{d}_{i}\n" for d, n in sizes.items() for i in range(n)),
        "--docs-format numbered-docids"),
    "sizes": (lambda sizes: "".join(f"{d} {n}\n" for d, n in sizes.items()), ""),
    "json": (lambda sizes: "".join(f'{{"doc": {json.dumps(d)}}}\n' * n for d, n in sizes.items()),
        ""),
    "json with another key": (lambda sizes: "".join(f'{{"talk": {json.dumps(d)}}}\n' * n
        for d, n in sizes.items()), "--docs-field talk"),
    "sgml": (sgml, ""),
    "xml": (xml, ""),
}  # fmt: skip


@pytest.mark.parametrize("form", DOCUMENTS)
@in_world
@given(drawn=sizes)
def test_documents_come_back(form: str, drawn: dict[str, int], world: World) -> None:
    write, options = DOCUMENTS[form]
    world.write("docs", write(drawn))
    ids = [name for name, size in drawn.items() for _ in range(size)]
    world.write("list", [f"{t} ||| a ||| A= 1 ||| 0" for t in range(len(ids))])
    command = f"convert --kbest list --docs docs {options} --to first --out /dev/null -q"
    assert world.ok(f"{command} --docs-out -").lines == ids


@settings(in_world, max_examples=5)
@given(drawn=sizes)
def test_references_of_a_set_are_its_segments(drawn: dict[str, int], world: World) -> None:
    lines = [f"{name} & {n}" for name, size in drawn.items() for n in range(1, size + 1)]
    world.write("text", lines)
    for write in (sgml, xml):
        world.write("set", write(drawn))
        run = world.ok("evaluate --ref set#r --baseline text text -m chrf --format json -q")
        assert run.json["systems"][0]["metrics"]["chrf"]["score"] == pytest.approx(100)


# Weights
labels = st.from_regex(r"[A-E][A-Za-z]{0,5}[0-9]?", fullmatch=True)  # F0, F1, … are places
dense = st.dictionaries(
    labels, st.lists(numbers, min_size=1, max_size=3), min_size=1, max_size=4
).filter(lambda found: any(map(any, found.values())))
tags = st.dictionaries(
    st.from_regex(r"[a-z]{1,4}_[a-z~é]{1,4}", fullmatch=True), numbers, max_size=3
)


def given_json(dense: dict[str, list[float]], sparse: dict[str, float], **more: object) -> str:
    return json.dumps({"schema": 1, "weights": dense, "sparse": sparse, **more})


@in_world
@given(dense=dense, sparse=tags, alpha=st.none() | st.floats(0, LARGEST, exclude_min=True))
def test_weights_come_back_from_every_format(
    dense: dict[str, list[float]], sparse: dict[str, float], alpha: float | None, world: World
) -> None:
    world.write("w.json", given_json(dense, sparse, alpha=alpha))
    features = " ".join(f"{name}= {' '.join('1' for _ in w)}" for name, w in dense.items())
    world.write("list", f"0 ||| a ||| {features} ||| 1\n")
    for name in ("json", "ini", "dense", "kbmira", "cdec", "travatar"):
        world.ok(f"weights w.json --to {name} --out new.{name} -q")
        kbest = "" if name in ("json", "ini", "dense") else "--kbest list"
        kbest = (
            kbest if kbest and (name == "kbmira" or any(len(w) > 1 for w in dense.values())) else ""
        )
        result = world.ok(f"weights new.{name} --to json -q {kbest}").json
        assert (result["weights"], result["sparse"]) == (dense, sparse), name
        assert result["alpha"] == (alpha if name in ("json", "ini") else None)


noise = st.lists(
    st.sampled_from(["", "# [weight]", "0", "KENLM name=LM0", "[feature]", "\ttab"]), max_size=4
)


@in_world
@given(dense=dense, sparse=tags, before=noise, after=noise, data=st.data())
def test_weights_written_into_a_moses_ini_come_back_and_the_rest_stays(
    dense: dict[str, list[float]],
    sparse: dict[str, float],
    before: list[str],
    after: list[str],
    data: st.DataObject,
    world: World,
) -> None:
    others = data.draw(st.dictionaries(labels.filter(lambda x: x not in dense), numbers))
    old = [
        f"{name}= {' '.join('1' for _ in w)}  # old"
        for name, w in dense.items() if data.draw(st.booleans())
    ]  # fmt: skip
    kept = [f"{name}= {value!r}" for name, value in others.items()]
    section = data.draw(st.permutations([*old, *kept, "", "# a comment"]))
    lines = [*before, "[weight]", *section, "[end]", *after]
    world.write("moses.ini", lines)
    world.write("w.json", given_json(dense, sparse))
    world.ok("weights w.json --to moses-ini --base moses.ini --out new.ini -q")
    result = world.ok("weights new.ini --to json -q").json
    assert result["weights"] == dense | {name: [value] for name, value in others.items()}
    assert result["sparse"] == sparse
    untouched = [line for line in lines if line not in old]
    new = [line for line in world.lines("new.ini") if line in untouched]
    assert new[: len(untouched)] == untouched
