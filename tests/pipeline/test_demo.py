import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rerank.cli import cli, execute
from rerank.corpus.documents import Documents
from rerank.errors import UsageError
from rerank.example import EMBEDDED, Example, Set
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic
from rerank.formats.table import read_documents
from rerank.notices import Notices
from rerank.pipeline.demo import DOCUMENT_LM, SENTENCE_LM, Demo, demo, shuffle

ROWS = ["1-best of the lists", "+ rnnlm", "+ codclm", "+ codclm, shuffled"]


def cut(source: Path, target: Path, keep: Callable[[int, bytes], bool]) -> None:
    """The lines of a file that are to be kept, by their number from 0 and content."""
    with atomic(target) as file:
        lines = enumerate(read_lines(source, Notices()))
        file.writelines(line + b"\n" for n, line in lines if keep(n, line))


def tiny(options: str) -> str:
    return f"{options} --epochs 1 --embed 8 --hidden 8 --streams 4"


def cut_set(source: Set, target: Set, n_documents: int) -> None:
    end = Documents.from_file(source.docs, Notices()).starts[n_documents]
    cut(source.docs, target.docs, lambda n, line: n < end)
    cut(source.references, target.references, lambda n, line: n < end)
    cut(source.kbest, target.kbest, lambda n, line: int(line.split()[0]) < end)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The beginning of the embedded example."""
    example = Example(tmp_path_factory.mktemp("example"))
    cut(EMBEDDED.train, example.train, lambda n, line: n < 500)
    cut(EMBEDDED.valid, example.valid, lambda n, line: n < 50)
    cut(EMBEDDED.weights, example.weights, lambda n, line: True)
    cut_set(EMBEDDED.tune, example.tune, 2)
    cut_set(EMBEDDED.test, example.test, 3)
    return example


@dataclass(frozen=True)
class Shown:
    """A demo that ran in a folder, and what it announced."""

    result: Demo
    folder: Path
    lines: tuple[str, ...]


@pytest.fixture(scope="module")
def shown(small: Example, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The demo in a few seconds: its models have learnt little."""
    folder = tmp_path_factory.mktemp("parent") / "demo"
    models = {"rnnlm": tiny(SENTENCE_LM), "codclm": tiny(DOCUMENT_LM)}
    lines: list[str] = []
    result = demo(folder, execute, example=small, models=models, seed=3, announce=lines.append)
    return Shown(result, folder, tuple(lines))


def texts(chosen: Set) -> list[list[bytes]]:
    """Candidates of each sentence."""
    documents = Documents.from_file(chosen.docs, Notices())
    return [
        [kbest.text(row) for row in kbest.rows(t)]
        for kbest in read_documents(chosen.kbest, documents, Notices())
        for t in range(len(kbest))
    ]


def test_its_rows_are_the_1_best_both_models_and_the_shuffled_control(shown: Shown) -> None:
    assert [system.name for system in shown.result.evaluation.systems] == ROWS
    assert [model.name for model in shown.result.models] == ["rnnlm", "codclm"]
    oracle = shown.result.evaluation.oracle
    assert oracle is not None
    assert all(system.bleu < oracle.bleu for system in shown.result.evaluation.systems)


def test_the_first_row_is_the_first_candidates(shown: Shown) -> None:
    first = [candidates[0] for candidates in texts(Example(shown.folder / "data").test)]
    assert list(read_lines(shown.folder / "test.1-best.txt", Notices())) == first


def test_the_text_says_what_was_gained(shown: Shown) -> None:
    bleu = [system.bleu for system in shown.result.evaluation.systems]
    said = shown.result.to_text()
    assert all(name in said for name in ROWS)
    assert f"gains {bleu[2] - bleu[0]:.2f} BLEU over the 1-best and {bleu[2] - bleu[1]:.2f}" in said


def test_the_report_is_in_the_folder(shown: Shown) -> None:
    report = json.loads((shown.folder / "report.json").read_bytes())
    assert report == json.loads(json.dumps(shown.result.to_dict()))
    assert [system["name"] for system in report["systems"]] == ROWS
    assert report["seed"] == 3


def test_it_ends_with_changed_sentences_in_their_context_and_a_page(shown: Shown) -> None:
    said, page = shown.result.to_text(), shown.folder / "report.html"
    assert said.endswith(f"\nreport: {page}\n")
    assert page.read_text().startswith("<!doctype html>")
    lines = list(read_lines(shown.folder / "test.codclm.txt", Notices()))
    assert 1 <= len(shown.result.examples) <= 3
    assert len({choice.document for _, choice in shown.result.examples}) == len(
        shown.result.examples
    )
    for before, choice in shown.result.examples:
        assert before is not None
        assert before.sentence + 1 == choice.sentence
        assert choice.texts["chosen"] != choice.texts["first"]
        pair = [(one.texts["chosen"] or "").encode() for one in (before, choice)]
        assert pair in [lines[t : t + 2] for t in range(len(lines))]
        assert f"\n{choice.document}, sentence {choice.sentence}\n" in said


def test_its_steps_are_commands_of_the_shell(shown: Shown) -> None:
    commands = [shlex.split(line) for line in shown.lines]
    model = ["train-lm", "tune-mert", "decode"]
    names = ["decode", *model, *model, "decode", "evaluate", "report"]
    assert [command[:2] for command in commands] == [["rerank", name] for name in names]


def test_the_evaluation_is_that_of_the_announced_command(
    shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    execute([*shlex.split(shown.lines[-2])[1:], "--format", "json"])
    systems = json.loads(capsys.readouterr().out)["systems"]
    expected = shown.result.evaluation.systems
    assert [one["bleu"] for one in systems] == [one.bleu for one in expected]
    assert [one["p_value"] for one in systems] == [one.p_value for one in expected]


def test_without_a_folder_the_commands_say_how_to_keep_the_files(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: Path, execute: Any, **options: Any) -> Demo:
        options["announce"](f"rerank evaluate --docs {folder}/data/test.docids")
        return shown.result

    whole, lines = demo, list[str]()
    monkeypatch.setitem(demo.__globals__, "demo", run)
    result = whole(None, execute, announce=lines.append)
    assert result.page is None  # it is removed
    assert "report:" not in result.to_text()
    assert lines == [
        "# rerank demo --out demo keeps the files of these commands",
        "rerank evaluate --docs demo/data/test.docids",
    ]


def test_it_refuses_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "note").touch()
    with pytest.raises(UsageError, match="expected a new or empty folder"):
        demo(tmp_path, execute)


def test_shuffling_moves_sentences_within_their_documents(small: Example, tmp_path: Path) -> None:
    new, order = shuffle(small.test, tmp_path / "new", seed=1)
    documents = Documents.from_file(small.test.docs, Notices())
    for d in range(len(documents)):
        start, stop = documents.span(d)
        assert sorted(order[start:stop]) == list(range(start, stop))
    assert (order != np.arange(len(order))).mean() > 0.8
    assert new.docs == small.test.docs


def test_shuffled_lists_and_references_go_with_their_sentences(
    small: Example, tmp_path: Path
) -> None:
    new, order = shuffle(small.test, tmp_path / "new", seed=1)
    before, after = texts(small.test), texts(new)
    assert after == [before[t] for t in order]
    lines = list(read_lines(small.test.references, Notices()))
    assert list(read_lines(new.references, Notices())) == [lines[t] for t in order]


def test_another_seed_shuffles_otherwise(small: Example, tmp_path: Path) -> None:
    orders = [
        shuffle(small.test, tmp_path / name, seed=seed)[1]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert orders[0].tolist() == orders[1].tolist() != orders[2].tolist()


def test_the_model_of_sentences_has_no_fewer_parameters() -> None:
    from lm.model import Config, DocumentLM, n_parameters

    def size(options: str) -> int:
        given = [*options.split(), "--train", "t", "--valid", "v", "--out", "o"]
        recipe = cli.commands["train-lm"].make_context("train-lm", given).params
        shape = Config(recipe["model"], 220, recipe["embed"], recipe["hidden"])
        return n_parameters(DocumentLM.seeded(shape, 1))

    assert 1.0 <= size(SENTENCE_LM) / size(DOCUMENT_LM) < 1.05


@pytest.mark.slow
def test_documents_are_worth_what_the_example_promises(tmp_path: Path) -> None:
    found = demo(tmp_path / "demo", execute)
    first, sentence, document, shuffled = (system.bleu for system in found.evaluation.systems)
    assert document > first + 5
    assert document > sentence + 3
    assert shuffled < sentence + 1
    assert sentence > first
