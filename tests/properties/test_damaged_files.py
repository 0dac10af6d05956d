"""Damaged bytes of every format: a command reads them or refuses them in one line, never worse."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.world import World

PIECES = (
    *(b" ||| ", b"|||", b"\t", b"\n", b"\n\n", b"\r\n", b"\r", b"\0", b" ", b"=", b"_", b'"', b","),
    *(b"{", b"}", b"[", b"]", b"<", b">", b"&", b"\\", b"\\n", b"\\ud800"),
    *(b"\xff", b"\xef\xbb\xbf", b"nan", b"-inf", b"1e400", b"-0", b"1_0", b"9" * 20),
    *(b"-1", b"\xd9\xa1", b"\xe2\x80\xa8", b"\xc2\xa0", b"null", b"true", b"F0= -1"),
    *(b"<doc id='d'>", b"</seg>", b"S-0\t", b"H-0\t-1\t", b"<!ENTITY a 'b'>", b"[weight]"),
    *(b"\\1-grams:", b"\\end\\", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\xff\xfea\0"),
)  # fmt: skip
LISTS = {
    "moses": b"0 ||| a b ||| A= 1 B= 2 3 ||| -5\n",
    "fairseq": b"S-0\tx\nH-0\t-1\ta b\nD-0\t-1\ta b\nP-0\t-1 -1\n",
    "sockeye": b'{"translation": "a", "score": 1, "sentence_id": 1}\n',
    "jsonl": b'{"candidates": [{"text": "a", "score": -1, "features": {"x": 1}}]}\n',
    "cdec": b"0 ||| a ||| LM=1 P_0=2 ||| 3\n0 ||| b ||| LM=1 ||| 3\n",
    "joshua": b"0 ||| a ||| lm_0=1 ||| 3\n",
    "travatar": b"0 ||| a ||| 3 ||| lm=1 x=2\n",
    "mlm-scoring": b'{"u": {"ref": "a", "hyp_1": {"score": 1, "text": "a"}}}\n',
    "mbr-nmt": b"NC=1\na\n",
    "nematus": b"0 ||| a ||| 1 2\n",
    "tabs": b"a\tb\n",
    "flat:1": b"a\n",
}
DOCUMENTS = (
    b"a\na\nb\n",
    b"a 2\nb 1\n",
    b"a 1 2\nb 3 3\n",
    b'{"document": "d", "source": "x", "ref": "y"}\n' * 3,
    b'<refset setid="s"><doc docid="d"><seg id="1"> a </seg><seg id="2">b</seg><seg id="3">c</seg>'
    b"</doc></refset>\n",
    b'<dataset id="x"><doc id="d" origlang="en"><src lang="en"><p><seg id="1">a</seg></p></src>'
    b'<ref><seg id="1">a</seg></ref></doc></dataset>\n',
    b"one sentence\nanother\n\na third\n",
)
WEIGHTS = (
    b"[weight]\nLM0= 0.5\nTM0= 0.2 0.3\n",
    b"LM0= 0.5\nTM0= 0.2\nTM0= 0.3\n",
    b'{"schema": 1, "weights": {"LM0": [0.5]}}\n',
    b"LM0=0.5 TM0_0=0.2\n",
    b"F0 0.5\nt_a 3\n",
    b"1 0.5\n0 0\n1 1\n",
    b"[feature]\nKENLM name=LM0 tuneable=false\n[weight]\nLM0= 1\nA= 2\n# alpha: 2\n",
)
FEATURES = (
    b"FEATURES_TXT_BEGIN_0 0 2 2 A_0 B_0 \n1 2 \n-1 0.5 x_y=2 \nFEATURES_TXT_END_0\n"
    b"FEATURES_TXT_BEGIN_0 1 1 2 A_0 B_0 \n1 2 \nFEATURES_TXT_END_0\n",
)
SCORES = (
    b"SCORES_TXT_BEGIN_0 0 2 9 BLEU\n3 4 2 3 1 2 0 1 4 \n2 3 1 2 0 1 0 0 4 \nSCORES_TXT_END_0\n"
    b"SCORES_TXT_BEGIN_0 1 1 9 BLEU\n0 0 0 0 0 0 0 0 6 \nSCORES_TXT_END_0\n",
)
TUNE = "tune-moses --select none --start start.json --out tuned.json -q"
# name: (sound files, command that reads them as `file`)
FILES: dict[str, tuple[tuple[bytes, ...], str]] = {
    **{f"list of {name}": ((LISTS[name], *LISTS.values()),
        f"convert --kbest file --kbest-format {name} --to jsonl -q") for name in LISTS},
    "list of any format": (tuple(LISTS.values())[:10], "convert --kbest file --to moses -q"),
    "scores of a flat list": ((b"-1.5 2\n" * 3,),
        "convert --kbest text --kbest-format flat:1 --kbest-scores file --to moses -q"),
    "documents": (DOCUMENTS, "convert --kbest three --docs file --to first -q"),
    "references": (DOCUMENTS, "check --kbest three --no-docs each --ref file -q"),
    "sources": (DOCUMENTS, "first --kbest three --missing source --source file -q"),
    "weights": (WEIGHTS, "weights file --to json -q"),
    "moses.ini": (WEIGHTS[:1], "weights start.json --to moses-ini --base file -q"),
    "features of the extractor": (FEATURES, f"{TUNE} --features file --scores s.dat"),
    "scores of the extractor": (SCORES, f"{TUNE} --features f.dat --scores file"),
}  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, examples: tuple[bytes, ...]) -> bytes:
    """An example, repeated or not, with up to six pieces cut out, put in or put in place."""
    data = draw(st.just(examples[0]) | st.sampled_from(examples)) * draw(st.integers(1, 3))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.sampled_from([0, 0, 1, 2, 8])))
        piece = draw(st.one_of(st.sampled_from((b"", *PIECES)), st.binary(max_size=4)))
        data = data[:start] + piece + data[stop:]
    return data


@pytest.fixture
def three(world: World) -> World:
    """A list of three sentences, and the other files of the commands."""
    rows = [f"{t} ||| a ||| A= 1 ||| 0" for t in (0, 1, 1)] + ["2 ||| b ||| A= 1 ||| 0"]
    world.write("three", rows)
    world.write("text", "a\nb\nc\n")
    world.weights("start.json", {"A": 1.0, "B": 0.5})
    world.write("f.dat", FEATURES[0])
    world.write("s.dat", SCORES[0])
    return world


@pytest.mark.parametrize("name", FILES)
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_damaged_bytes_are_read_or_refused(name: str, data: st.DataObject, three: World) -> None:
    examples, command = FILES[name]
    three.write("file", data.draw(damaged(examples) | st.binary(max_size=60)))
    run = three.run(command)
    assert run.exit in (0, 3) or "all-zero weights" in run.err, run.err
    assert "internal error" not in run.err
    said = run.out if command.startswith("check") else run.err
    if run.exit:
        assert run.err.count("\n") == (not command.startswith("check")), run.err
        assert re.search("expected |found ", said), said
        assert run.stdout == b"" or command.startswith("check")


@pytest.mark.parametrize("name", FILES)
def test_the_files_that_are_damaged_are_sound_before(name: str, three: World) -> None:
    examples, command = FILES[name]
    for content in examples if name in ("weights", "list of any format") else examples[:1]:
        three.write("file", content)
        three.ok(command)
