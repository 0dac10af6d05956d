"""Readers and arbitrary bytes: a value or an `InputError`, never another exception."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.formats.arpa import read_ngrams
from rerank.formats.contrastive import read_contrastive
from rerank.formats.documents.table import read_documents, read_texts
from rerank.formats.table import SizedFormat, TwoPassFormat, formats
from rerank.formats.weights import read_weights
from rerank.notices import Notices

FUZZED = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PIECES = (
    *(b" ||| ", b"|||", b"\t", b"\n", b"\n\n", b"\r\n", b"\r", b"\0", b" ", b"=", b"_", b'"', b","),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b"<",
        b">",
        b"&",
        b"\\",
        b"\\n",
        b"\\ud800",
        b"\xff",
        b"\xef\xbb\xbf",
    ),
    *(b"nan", b"-inf", b"1e400", b"-0", b"1_0", b"99999999999999999999", b"-1", b"\xd9\xa1"),
    *(b"\xe2\x80\xa8", b"\xc2\xa0", b"null", b"true", b"F0= -1", b"<doc id='d'>", b"</seg>"),
    *(b"S-0\t", b"H-0\t-1\t", b"<!ENTITY a 'b'>", b"[weight]", b"\\1-grams:", b"\\end\\"),
)
DOCUMENTS = (
    b"a\na\nb\n",
    b"a 2\nb 1\n",
    b"a 1 2\nb 3 3\n",
    b'{"document": "d", "source": "x", "ref": "y"}\n',
    b'<refset setid="s"><doc docid="d"><seg id="1"> a </seg></doc></refset>\n',
    b'<dataset id="x"><doc id="d" origlang="en"><src lang="en"><p><seg id="1">a</seg></p></src>'
    b"</doc></dataset>\n",
    b"one sentence\nanother\n\na third\n",
)
WEIGHTS = (
    b"[weight]\nLM0= 0.5\nTM0= 0.2 0.3\n",
    b"LM0= 0.5\nTM0= 0.2\nTM0= 0.3\n",
    b'{"schema": 1, "weights": {"LM0": [0.5]}}\n',
    b"LM0=0.5 TM0_0=0.2\n",
    b"F0 0.5\nt_a 3\n",
)
ARPA = (
    b"\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99\t<s>\t-0.3\n-1\t</s>\n-0.5\ta\t-0.2\n\n"
    b"\\2-grams:\n-0.1\t<s> a\n\n\\end\\\n"
)
PAIR = (
    b'{"id": "1", "context": ["a"], "right": "he is", "wrong": "she is"}\n'
    b'{"id": "2", "context": [], "right": "b", "wrong": ["c", "d"]}\n'
)


@st.composite
def damaged(draw: st.DrawFn, examples: tuple[bytes, ...]) -> bytes:
    """An example, repeated or not, with up to six pieces cut out, put in or put in place."""
    data = draw(st.sampled_from(examples)) * draw(st.integers(1, 3))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.sampled_from([0, 0, 1, 2, 8])))
        piece = draw(st.one_of(st.sampled_from((b"", *PIECES)), st.binary(max_size=4)))
        data = data[:start] + piece + data[stop:]
    return data


def read_or_refuse(read: Callable[[Path], object], data: bytes, folder: Path) -> None:
    """Read a file of these bytes; `InputError` is an answer, another exception is a fault."""
    path = folder / "file"
    path.write_bytes(data)
    with suppress(InputError):
        read(path)


@pytest.mark.parametrize("name", [known.name for known in formats()])
@FUZZED
@given(data=st.data())
def test_k_best_lists(name: str, data: st.DataObject, tmp_path: Path) -> None:
    examples = {known.name: known.example + b"\n" for known in formats()}
    others = damaged(tuple(examples.values()))
    content = data.draw(st.one_of(damaged((examples[name],)), others, st.binary(max_size=60)))
    scores = data.draw(st.one_of(damaged((b"-1.5 2\n",)), st.binary(max_size=20))).split(b"\n")

    def read(path: Path) -> None:
        reader = next(known for known in formats() if known.name == name)
        source = str(path)
        if isinstance(reader, SizedFormat):
            reader = reader.configured(1, scores, source)
        if isinstance(reader, TwoPassFormat):
            reader = reader.prepared(read_lines(path, Notices()), source=source)
        for rows in reader.read(read_lines(path, Notices()), Notices(), source=source, clip=None):
            assert rows.texts is not None

    read_or_refuse(read, content, tmp_path)


@FUZZED
@given(content=st.one_of(damaged(DOCUMENTS), st.binary(max_size=60)))
def test_documents(content: bytes, tmp_path: Path) -> None:
    read_or_refuse(lambda path: read_documents(path, Notices()), content, tmp_path)


@FUZZED
@given(content=st.one_of(damaged(DOCUMENTS), st.binary(max_size=60)))
def test_references(content: bytes, tmp_path: Path) -> None:
    read_or_refuse(lambda path: read_texts(path, Notices()), content, tmp_path)


@FUZZED
@given(content=st.one_of(damaged(WEIGHTS), st.binary(max_size=60)))
def test_weights(content: bytes, tmp_path: Path) -> None:
    read_or_refuse(lambda path: read_weights(path, Notices()), content, tmp_path)


@FUZZED
@given(content=st.one_of(damaged((ARPA,)), st.binary(max_size=60)))
def test_n_gram_models(content: bytes, tmp_path: Path) -> None:
    read_or_refuse(lambda path: read_ngrams(path, Notices()), content, tmp_path)


@FUZZED
@given(content=st.one_of(damaged((PAIR,)), st.binary(max_size=60)))
def test_contrastive_items(content: bytes, tmp_path: Path) -> None:
    read_or_refuse(lambda path: read_contrastive(path, Notices()), content, tmp_path)


@pytest.mark.parametrize(
    ("read", "examples"),
    [
        (lambda path: read_documents(path, Notices()), DOCUMENTS),
        (lambda path: read_weights(path, Notices()), WEIGHTS),
        (lambda path: read_ngrams(path, Notices()), (ARPA,)),
        (lambda path: read_contrastive(path, Notices()), (PAIR,)),
    ],
    ids=["documents", "weights", "n-grams", "contrastive"],
)
def test_the_examples_that_are_damaged_are_valid(
    read: Callable[[Path], object], examples: tuple[bytes, ...], tmp_path: Path
) -> None:
    for n, example in enumerate(examples):
        path = tmp_path / str(n)
        path.write_bytes(example)
        read(path)
