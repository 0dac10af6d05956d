"""`--missing`: what the commands make of source lines without hypotheses.

The truth for `source` is a list that has the source line itself, with zeros for its features.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.files import read, write, write_weights
from support.gap import DOCS, LINES
from support.tuning import write_tuning_set

import rerank
from rerank.cli import run
from rerank.notices import Notices
from rerank.pipeline import Lists, Plan, Scoring, TunedWeights, decode, score, tune_mert

SOURCE = ("die lampe", "das licht", "die leere", "niemand")
ADDED = "2 ||| die leere ||| LM0= 0 ||| 0"
COMPLETE = (*LINES[:4], ADDED, *LINES[4:])
DECODE = "decode --kbest dev.kbest --docs dev.docs --weights w.json --out out -q"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a list of four sentences, the third without any."""
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", LINES)
    write("complete.kbest", COMPLETE)
    write("dev.docs", DOCS)
    write("dev.src", SOURCE)
    write("dev.ref", ("the lamp is lit", "it gives light", "the void", "no one"))
    write_weights("w.json", {"LM0": 1.0})
    return tmp_path


def failing(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and standard error of a command that writes no file `out`."""
    code = run([*words.split(), "-q"])
    assert not Path("out").exists()
    return code, capsys.readouterr().err


def test_without_the_option_the_output_has_an_empty_line() -> None:
    for more in ("", " --missing empty"):
        assert run((DECODE + more).split()) == 0
        assert read("out") == ["lamp", "it gives light", "", "no one"]


def test_the_source_line_is_the_translation() -> None:
    assert run(f"{DECODE} --missing source --source dev.src".split()) == 0
    assert read("out") == ["lamp", "it gives light", "die leere", "no one"]


def test_a_missing_sentence_is_an_error_before_anything_is_scored(
    capsys: pytest.CaptureFixture[str], model_folders: Mapping[str, Path]
) -> None:
    words = f"{DECODE} --missing error --lm lm={model_folders['codclm']} --cache cache"
    code, message = failing(words, capsys)
    assert (code, message) == (
        3,
        "rerank: dev.kbest: expected hypotheses of every source line, found none of 1 (ids 2); "
        "translate these lines again, or give --missing empty or --missing source\n",
    )
    assert [path for path in Path("cache").rglob("*") if path.is_file()] == []
    write("dev.kbest", COMPLETE)
    assert run(f"{DECODE} --missing error".split()) == 0


def test_sentences_that_are_left_out_are_not_missing() -> None:
    """The third sentence has no hypotheses, and no reference either."""
    write(
        "dev.jsonl",
        [
            f'{{"document": "{name}", "source": "{source}"'
            + ("}" if name == "y" else ', "reference": "one"}')
            for name, source in zip(DOCS, SOURCE, strict=True)
        ],
    )
    words = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.jsonl --missing error"
    more = ("--out", "out.json", "--start", "w.json", "-q")
    assert run([*words.split(), *more]) == 3
    assert run([*words.split(), *more, "--drop-unreferenced"]) == 0


@pytest.mark.parametrize(
    "command",
    [
        f"{DECODE} --missing source",
        "score --kbest dev.kbest --docs dev.docs --ngram n=no.arpa --missing source --out out",
        "first --kbest dev.kbest --missing source --out out",
        "check --kbest dev.kbest --docs dev.docs --missing source",
        "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --missing source --out a.ini",
    ],
)
def test_the_source_has_to_be_given(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        "no.arpa",
        ("\\data\\", "ngram 1=3", "", "\\1-grams:", "-1 <s>", "-1 </s>", "-1 <unk>", "", "\\end\\"),
    )
    assert failing(command, capsys) == (
        2,
        "rerank: --source: --missing source needs the source sentences; give --source FILE\n",
    )


def test_a_source_without_use_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, message = failing(f"{DECODE} --source dev.src", capsys)
    assert (code, "no model here needs the source" in message) == (2, True)


def test_a_list_that_has_its_sources_needs_no_file() -> None:
    write(
        "out.fairseq",
        [
            *("S-0\tdie lampe", "H-0\t-1\tlamp", "D-0\t-1\tlamp", "P-0\t-1"),
            "S-1\tdie leere",
        ],
    )
    write_weights("w.json", {"logprob": 1.0, "score": 0.0})
    words = "decode --kbest out.fairseq --no-docs one --weights w.json --missing source --out out"
    assert run([*words.split(), "-q"]) == 0
    assert read("out") == ["lamp", "die leere"]


@pytest.mark.parametrize("model", ["codclm", "ccdclm"])
def test_models_score_it_as_if_the_list_had_it(
    model: str, model_folders: Mapping[str, Path]
) -> None:
    lms, scoring = (("lm", model_folders[model]),), Scoring(no_cache=True)
    write_weights("w.json", {"LM0": 0.5, "lm": 1.0, "lmoov": -1.0})
    found = []
    for kbest, side in (("dev.kbest", {"source": "dev.src"}), ("complete.kbest", {})):
        missing = "source" if side else "error"
        lists = Lists(kbest, "dev.docs", lms=lms, scoring=scoring, side=side, missing=missing)
        result = decode(lists, "w.json", "out.txt", notices=Notices())
        assert result is not None
        score(lists, "out.kbest", notices=Notices())
        assert ("missing:source" in result.signature) == bool(side)
        found.append(([d.score for d in result.documents], read("out.txt"), read("out.kbest")))
    assert found[0] == found[1]


@pytest.mark.parametrize("form", ["moses", "jsonl"])
def test_a_list_that_is_written_back_has_it_in_its_format(
    form: str, model_folders: Mapping[str, Path]
) -> None:
    if form == "jsonl":
        for name in ("dev.kbest", "complete.kbest"):
            words = f"convert --kbest {name} --docs dev.docs --to jsonl --out out -q"
            assert run(words.split()) == 0
            Path("out").rename(name)
    given = f"--docs dev.docs --lm lm={model_folders['rnnlm']} --no-cache -q"
    more = "--missing source --source dev.src"
    assert run(f"score --kbest dev.kbest {given} {more} --out a".split()) == 0
    assert run(f"score --kbest complete.kbest {given} --out b".split()) == 0
    if form == "moses":
        assert read("a") == read("b")
        assert read("a")[4].startswith(ADDED[:27])
    else:
        own, others = ([json.loads(line)["candidates"] for line in read(name)] for name in "ab")
        assert own == others
        assert own[2][0]["text"] == "die leere"


@pytest.mark.parametrize("missing", ["empty", "source"])
@pytest.mark.parametrize("keys", [("document", "source"), ("doc_id", "src")], ids=" ".join)
def test_json_lines_that_are_written_keep_the_documents_and_sources_of_all_sentences(
    missing: str, keys: tuple[str, str]
) -> None:
    lists: tuple[tuple[str, ...], ...] = (("lamp",), ("it",), (), ("no one", "one"))
    lines = []
    for *beside, texts in zip(DOCS, SOURCE, lists, strict=True):
        candidates = [{"text": text, "features": {"LM0": -len(text)}} for text in texts]
        lines.append(dict(zip(keys, beside, strict=True)) | {"candidates": candidates})
    write("dev.jsonl", map(json.dumps, lines))
    words = f"decode --kbest dev.jsonl --missing {missing} --weights w.json -q"
    assert run(f"{words} --out a --kbest-out again.jsonl".split()) == 0
    assert run(f"{words} --out b".replace("dev.jsonl", "again.jsonl").split()) == 0
    assert read("a") == read("b")
    words = f"score --kbest dev.jsonl --missing {missing} --scores qe=dev.qe -q"
    write("dev.qe", ("1", "2", "3", "4"))
    assert run(f"{words} --out scored.jsonl".split()) == 0
    for name in ("again.jsonl", "scored.jsonl"):
        found = [json.loads(line) for line in read(name)]
        assert [one.get(keys[0], one.get("document")) for one in found] == list(DOCS)
        assert [one.get(keys[1], one.get("source")) for one in found] == list(SOURCE)
        assert all(len(one) == 4 for one in found)  # nothing is there twice


def test_scores_of_a_file_are_zero_for_it() -> None:
    write("dev.qe", ("1", "2", "3", "4", "5", "6"))
    write_weights("w.json", {"LM0": 0.0, "qe": 1.0})
    words = f"{DECODE} --scores qe=dev.qe --missing source --source dev.src --kbest-out lists"
    assert run(words.split()) == 0
    assert read("out") == ["lamp", "it gives light", "die leere", "one"]
    assert read("lists")[4] == "2 ||| die leere ||| LM0= 0 qe= 0 ||| 0"


def test_scores_of_a_file_are_those_of_its_lines_where_documents_stand_apart() -> None:
    write("dev.qe", ("1", "2", "3", "4", "5", "6"))
    write("dev.docs", ("x", "y", "x", "y"))
    write_weights("w.json", {"LM0": 0.0, "qe": 1.0})
    words = f"{DECODE} --allow-interleaved --scores qe=dev.qe --missing source --source dev.src"
    assert run([*words.split(), "--kbest-out", "lists"]) == 0
    assert read("out") == ["lamp", "it gives light", "die leere", "one"]
    values = [line.split("qe= ")[1].split(" ")[0] for line in read("lists")]
    assert values == ["1", "2", "3", "4", "0", "5", "6"]


def test_scores_of_pairs_do_not_go_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    write("dev.pairs", ("x\t0\t-\t0\t1",))
    words = f"{DECODE} --pair-scores p=dev.pairs --missing source --source dev.src"
    code, message = failing(words, capsys)
    assert code == 2
    assert message.startswith("rerank: --pair-scores: it has no pairs of the source lines")


def test_a_scorer_of_alignments_finds_none_in_it() -> None:
    lines = [f"{line} ||| 0-0" for line in LINES]
    write("dev.kbest", lines)
    write_weights("w.json", {"LM0": 1.0, "same": 1.0})
    words = f"{DECODE} --scorer same=consistency --source dev.src --missing source"
    assert run(words.split()) == 0
    assert read("out") == ["lamp", "it gives light", "die leere", "no one"]


def test_without_documents_the_source_says_how_many_lines_there_are() -> None:
    """The list ends before the source."""
    write("dev.src", (*SOURCE, "zuletzt"))
    words = "decode --kbest dev.kbest --no-docs one --weights w.json --out out -q"
    assert run(f"{words} --missing source --source dev.src".split()) == 0
    assert read("out") == ["lamp", "it gives light", "die leere", "no one", "zuletzt"]


def test_the_first_candidates_have_it() -> None:
    words = "first --kbest dev.kbest --missing source --source dev.src --out out -q"
    assert run(words.split()) == 0
    assert read("out") == ["the lamp is lit", "it gives light", "die leere", "no one"]


def test_weights_are_those_of_a_list_that_has_it() -> None:
    write_tuning_set(7, ["a"] * 4 + ["b"] * 4 + ["c"] * 4, {2, 7})
    write("dev.src", [f"quelle {t}" for t in range(12)])
    own = read("dev.kbest")
    added = [f"{t} ||| quelle {t} ||| LM0= 0 TM0= 0 0 ||| 0" for t in (2, 7)]
    write("complete.kbest", sorted([*own, *added], key=lambda line: int(line.split()[0])))
    weights = []
    for kbest, missing in (("dev.kbest", "source"), ("complete.kbest", "empty")):
        side = {"source": "dev.src"} if missing == "source" else {}
        lists = Lists(kbest, "dev.docs", side=side, missing=missing)
        tuned = TunedWeights(f"{missing}.json", start="start.json")
        result = tune_mert(lists, ["dev.ref"], tuned, plan=Plan(), notices=Notices())
        assert result is not None
        weights.append(result.weights.dense)
        assert result.weights.provenance.get("missing") == (missing if side else None)
    assert weights[0] == weights[1]


def test_check_says_what_the_other_commands_would(capsys: pytest.CaptureFixture[str]) -> None:
    words = "check --kbest dev.kbest --docs dev.docs --ref dev.ref --source dev.src"
    assert run(words.split()) == 0
    assert "dev.kbest: source line without hypotheses (ids 2); " in capsys.readouterr().out
    assert run([*words.split(), "--missing", "error"]) == 3
    assert "found none of 1 (ids 2); translate" in capsys.readouterr().out
    assert run([*words.split(), "--missing", "source"]) == 0
    told = capsys.readouterr().out
    assert "source line that is its own translation, for lack of hypotheses (ids 2); " in told


def test_check_reports_a_source_with_faults_once(capsys: pytest.CaptureFixture[str]) -> None:
    write("dev.src", SOURCE[:2])
    words = "check --kbest dev.kbest --docs dev.docs --source dev.src --missing source"
    assert run(words.split()) == 3
    assert capsys.readouterr().out.count("dev.src") == 1


def test_documents_that_are_read_in_python_have_it() -> None:
    with pytest.warns(rerank.RerankWarning, match="its own translation"):
        found = list(
            rerank.read("dev.kbest", "dev.docs", side={"source": "dev.src"}, missing="source")
        )
    assert [document.texts for document in found][1] == [["die leere"]]
    assert found[1].sentences[0][0][1] == {"LM0": 0.0}
