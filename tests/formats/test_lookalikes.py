"""Files that are no k-best lists: what they may be; commands of jq are run where there is one."""

import json
import re
import shutil
import subprocess

import pytest

from rerank.formats.lookalikes import looks_like
from rerank.formats.table import detect
from rerank.notices import Notices


def batch(number: int, *texts: str) -> str:
    """A line of the output of an OpenAI batch; without texts a request that failed."""
    choices = [{"index": i, "message": {"content": text}} for i, text in enumerate(texts)]
    response = {"status_code": 200, "body": {"id": "x", "choices": choices}} if texts else None
    return json.dumps({"id": "b", "custom_id": f"r-{number}", "response": response, "error": None})


SENTENCES = [["a", "b"], ["c"]]
JSON = {
    "arrays of texts": '["a", "b"]\n["c"]\n',
    "arrays of objects": '[{"generated_text": "a"}, {"generated_text": "b"}]\n[{"text": "c"}]\n',
    "array of arrays": '[\n [{"text": "a"}, {"text": "b"}],\n [{"text": "c"}]\n]\n',
    "array of arrays on a line": '[[{"text": "a"}, {"text": "b"}], [{"text": "c"}]]\n',
    "array of sentences": '[{"candidates": ["a", "b"]}, {"candidates": ["c"]}]\n',
    "pretty array": '[\n  {\n  "hypotheses": ["a", "b"]}, {"hypotheses": ["c"]}\n]\n',
    "pretty objects": '{\n "candidates": [\n  "a", "b"]\n}\n{\n "candidates": ["c"]\n}\n',
    "another key": '{"x": 1, "my beams": ["a", "b"]}\n{"x": 1, "my beams": ["c"]}\n',
    "batch": "\n".join([batch(10, "c"), batch(9, "a", "b")]),
}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("name", JSON)
def test_the_command_makes_a_list_of_json(name: str) -> None:
    content = JSON[name].encode()
    found = looks_like(content.splitlines()[:20])
    command = re.search("`jq (-s?c) '([^']*)' FILE > lists.jsonl`", found)
    assert command is not None
    out = subprocess.run(["jq", *command.groups()], input=content, capture_output=True, check=True)
    known, lines = detect(iter(out.stdout.splitlines()))
    assert known.name == "jsonl"
    texts: list[list[bytes]] = []
    for rows in known.read(lines, Notices(), source="f", clip=None):
        for sentence, text in zip(rows.sentences.tolist(), rows.texts.to_list(), strict=True):
            texts += [[]] * (sentence + 1 - len(texts))
            texts[sentence] = [*texts[sentence], text]
    assert texts == [[text.encode() for text in sentence] for sentence in SENTENCES]


def test_failed_requests_of_a_batch_have_no_candidates() -> None:
    found = looks_like([batch(1).encode()])
    assert found.startswith("it looks like responses of a batch of OpenAI: ")
    assert "// []" in found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<dataset id='x'>", "--systems NAME=FILE#SYSTEM"),
        ("<tstset setid='x'>", "--systems FILE"),
        ("1.5\t-2", "--kbest-format portage:K"),
        ("the text", "portage:K in place of flat:K and ffvals as SCORES"),
        ("a text\tthe text", "--kbest-format tabs"),
        ('{"a": 1', "is cut off"),
        ("{'a': 1}", "double quotes"),
        ('{"a": 1}', "'{candidates: .\"LIST\"}'"),
        ("[" * 100_000, "array of candidates"),
    ],
)
def test_other_files_have_a_cure(line: str, message: str) -> None:
    assert message in looks_like([line.encode()])


def test_columns_of_an_unknown_form_are_nothing_else() -> None:
    assert looks_like([b"0 ||| a"]) == ""
