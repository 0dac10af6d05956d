"""Lexical consistency by brute force: distinct translations of each source word, counted anew."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files import write, write_weights

from decoders.batching import conditional_scores, path_score
from decoders.problem import DocumentProblem
from rerank.cli import run
from rerank.corpus.document import Document
from rerank.errors import InputError, UsageError
from rerank.registry import SCORERS
from rerank.scorers.consistency import Consistency, ConsistencyProblem

Pair = tuple[bytes, bytes]
pairs = st.tuples(st.sampled_from([b"s", b"t"]), st.sampled_from([b"a", b"b", b"c"]))
candidates = st.lists(pairs, max_size=4)
documents = st.lists(st.lists(candidates, min_size=1, max_size=3), min_size=1, max_size=4)


def excess(sentences: Sequence[Sequence[Pair]]) -> int:
    """Σ_w max(0, n(w) − 1) of a text."""
    found = defaultdict(set)
    for word, translation in (pair for sentence in sentences for pair in sentence):
        found[word].add(translation)
    return sum(len(translations) - 1 for translations in found.values())


@given(documents)
def test_paths_sum_to_the_further_translations_of_all_words(
    lists: list[list[list[Pair]]],
) -> None:
    problem = ConsistencyProblem(lists)
    for path in product(*(range(len(own)) for own in lists)):
        chosen = [own[k] for own, k in zip(lists, path, strict=True)]
        assert path_score(problem, path) == -excess(chosen)


@given(documents, st.data())
def test_each_candidate_scores_what_it_adds(
    lists: list[list[list[Pair]]], data: st.DataObject
) -> None:
    path = [data.draw(st.integers(0, len(own) - 1)) for own in lists]
    chosen = [own[k] for own, k in zip(lists, path, strict=True)]
    problem = ConsistencyProblem(lists)
    for t, scores in enumerate(conditional_scores(problem, path)):
        added = [excess(chosen[:t]) - excess([*chosen[:t], one]) for one in lists[t]]
        assert scores.tolist() == added
    paths, horizon = np.array([path, [0] * len(path)]), data.draw(st.integers(0, 3))
    t = data.draw(st.integers(0, len(lists) - 1))
    truth = DocumentProblem.rescore(problem, paths, t, horizon)
    assert problem.rescore(paths, t, horizon).tolist() == truth.tolist()


LISTS = [
    "0 ||| the bank ||| TM0= 0 ||| 0 ||| 0-0 1-1",
    "1 ||| a shore ||| TM0= 0 ||| 0 ||| 0-0 1-1",
    "1 ||| a bank ||| TM0= -0.5 ||| 0 ||| 0-0 1-1",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", LISTS)
    write("dev.src", ["die bank", "eine bank"])
    write_weights("w.json", {"TM0": [1.0], "same": [1.0]})
    return tmp_path


COMMAND = "decode --kbest dev.kbest --no-docs one --weights w.json --out o --search beam"


def test_decoding_prefers_the_translation_that_the_document_has(here: Path) -> None:
    assert run(f"{COMMAND} --source dev.src --scorer same=consistency".split()) == 0
    assert Path("o").read_text() == "the bank\na bank\n"
    write("ignored", ["bank"])
    assert run(f"{COMMAND} --source dev.src --scorer same=consistency:ignored".split()) == 0
    assert Path("o").read_text() == "the bank\na shore\n"


def test_what_is_missing_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{COMMAND} --scorer same=consistency".split()) == 2
    assert "--source: --scorer same needs the source sentences" in capsys.readouterr().err
    write("dev.kbest", [line.rpartition(" |||")[0] for line in LISTS])
    assert run(f"{COMMAND} --source dev.src --scorer same=consistency".split()) in (2, 3)
    message = capsys.readouterr().err.splitlines()[-1]
    assert "dev.kbest:1: expected a column of alignments" in message
    with pytest.raises(UsageError, match="no-file: expected a file of source words"):
        SCORERS.named("consistency")("no-file")


def test_documents_made_in_memory_have_no_alignments() -> None:
    document = Document("talk", [[("a", {})]], side={"source": ["a"]})
    with pytest.raises(InputError, match="made in memory"):
        Consistency().score(document)
