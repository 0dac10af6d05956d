"""`rerank evaluate` on files: what is read, in which order, and what is noticed."""

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline import Additions, Lists, evaluate


def kbest_line(t: int, hypothesis: str) -> str:
    return f"{t} ||| {hypothesis} ||| LM0= -1.5 ||| -1.5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two documents of two sentences; the k-best list has nothing for the third sentence."""
    lists = [["a b c d", "a b x x", "x"], ["e f", "g"], [], ["k l m n o p", "k l m n o x"]]
    files = {
        "docs": ["one", "one", "two", "two"],
        "ref": ["a b c d", "e f g h", "i j", "k l m n o p"],
        "base": ["a b x x", "g", "", "k l m n o x"],
        "ours": ["a b c d", "e f", "", "k l m n o p"],
        "kbest": [kbest_line(t, h) for t, candidates in enumerate(lists) for h in candidates],
    }
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_files_are_evaluated_and_a_sentence_without_candidates_is_an_empty_line(
    folder: Path,
) -> None:
    systems = [folder / "base", folder / "ours"]
    report = evaluate(
        folder / "docs", [folder / "ref"], systems, notices=Notices(), kbest=folder / "kbest"
    )
    assert [document.id for document in report.documents] == ["one", "two"]
    assert report.systems[1].name == str(folder / "ours")
    assert report.oracle is not None
    assert report.oracle.bleu == report.systems[1].bleu  # `ours` is the oracle, by hand
    assert report.anti_oracle is not None
    worst = ["x", "g", "", "k l m n o x"]
    truth = BLEU(tokenize="none").corpus_score(worst, [(folder / "ref").read_text().splitlines()])
    assert report.anti_oracle.bleu == truth.score


def test_texts_are_truecased_before_and_begin_with_capitals_where_they_are_detokenised(
    folder: Path,
) -> None:
    text = "The lamp is lit .\n"
    (folder / "ref").write_text(text * 4)
    (folder / "ours").write_text(text.lower() * 4)
    (folder / "truecase").write_text("the (1/1)\nlamp (1/1)\nis (1/1)\nlit (1/1)\n")
    files = (folder / "docs", [folder / "ref"], [folder / "ours"])

    def bleu(more: Additions) -> list[float]:
        (found,) = evaluate(*files, notices=Notices(), more=more).systems
        readable = found.detokenised.get("bleu")
        return [found.bleu, *([] if readable is None else [readable.score])]

    apart = BLEU(tokenize="none").corpus_score([text.lower()] * 4, [[text] * 4]).score
    assert bleu(Additions()) == [apart]
    assert bleu(Additions(truecase=folder / "truecase")) == pytest.approx([100])
    assert bleu(Additions(detokenize="en"))[1] < 99
    assert bleu(Additions(detokenize="en", detruecase=True)) == pytest.approx([apart, 100])
    with pytest.raises(UsageError, match=r"--detruecase: .*add --detokenize"):
        bleu(Additions(detruecase=True))


def test_output_identical_to_a_reference_is_noticed(folder: Path) -> None:
    notices = Notices()
    files = [folder / "base", folder / "ref"]
    evaluate(folder / "docs", [folder / "ref"], files, notices=notices)
    assert notices.lines() == [
        f"1 x hypotheses identical to reference 1, first at {folder / 'ref'}"
    ]


def test_what_a_system_and_the_references_spell_in_two_ways_is_noticed(folder: Path) -> None:
    (folder / "ref").write_text("é b c d\nit's\ni j\nk\n")
    (folder / "base").write_text("é b c d\nit's\ni j\nl\n")
    decomposed = unicodedata.normalize("NFD", "a\nit &apos;s\né\nl\n")
    (folder / "ours").write_bytes(decomposed.encode())
    notices = Notices()
    evaluate(folder / "docs", [folder / "ref"], [folder / "base", folder / "ours"], notices=notices)
    escaping, normalization = notices.lines()
    assert "mixed escaping: hypotheses contain &apos;" in escaping
    assert escaping.endswith(f"first at {folder / 'ours'}:2")
    assert "NFD" in normalization
    assert normalization.endswith(f"first at {folder / 'ours'}:3")


def test_the_list_of_the_oracle_is_read_as_the_options_say(folder: Path) -> None:
    lines = (folder / "kbest").read_text().replace("-1.5 |||", "-inf |||").splitlines(True)
    (folder / "kbest").write_text("".join(f"{int(line[0]) + 1}{line[1:]}" for line in lines))
    files = (folder / "docs", [folder / "ref"], [folder / "base"])
    listed = Lists(folder / "kbest", top=1, first_id=1, clip_inf=9.0)
    report = evaluate(*files, notices=Notices(), kbest=listed)
    assert report.oracle == report.anti_oracle  # of one candidate each
    with pytest.raises(InputError, match="--first-id 1"):
        evaluate(*files, notices=Notices(), kbest=Lists(folder / "kbest", clip_inf=9.0))
    with pytest.raises(InputError, match="--clip-inf"):
        evaluate(*files, notices=Notices(), kbest=Lists(folder / "kbest", first_id=1))


def test_only_one_file_can_be_standard_input(folder: Path) -> None:
    with pytest.raises(UsageError, match="only one input can be -"):
        evaluate(folder / "docs", ["-"], ["-", folder / "ours"], notices=Notices())


def test_documents_need_no_file(folder: Path) -> None:
    files = [folder / "base", folder / "ours"]
    each = evaluate(None, [folder / "ref"], files, notices=Notices(), no_docs="each")
    assert [document.sentences for document in each.documents] == [1, 1, 1, 1]
    one = evaluate(None, [folder / "ref"], files, notices=Notices(), no_docs="one")
    assert one.documents[0].bleu == tuple(system.bleu for system in one.systems)


def test_lengths_are_checked_before_the_k_best_list_is_read(folder: Path) -> None:
    (folder / "ours").write_text("a\n")
    with pytest.raises(InputError, match=r"ours: expected 4 lines as .*docs has, found 1;"):
        evaluate(
            folder / "docs",
            [folder / "ref"],
            [folder / "base", folder / "ours"],
            notices=Notices(),
            kbest=folder / "missing",
        )


def test_evaluation_needs_no_torch(folder: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from rerank.pipeline import evaluate\n"
        "from rerank.notices import Notices\n"
        "docs, ref, base, ours, kbest = sys.argv[1:]\n"
        "report = evaluate(docs, [ref], [base, ours], notices=Notices(), kbest=kbest)\n"
        "sys.exit(len(report.systems) - 2)\n"
    )
    names = ("docs", "ref", "base", "ours", "kbest")
    arguments = [sys.executable, "-c", program, *(str(folder / name) for name in names)]
    subprocess.run(arguments, check=True, timeout=60)


@pytest.fixture
def scores(folder: Path) -> Path:
    """The folder with values for the lines of both systems."""
    (folder / "base.comet").write_text("0.5\n0.5\n0\n0.5\n")
    (folder / "ours.comet").write_text("1\n0.5\n0\n0.75\n")
    return folder


def test_values_of_another_tool_are_read_for_each_system(
    scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scores)
    more = Additions(scores=[("comet", "ours:ours.comet"), ("comet", "base:base.comet")])
    found = evaluate("docs", ["ref"], ["base", "ours"], notices=Notices(), more=more)
    assert [system.scores["comet"].score for system in found.systems] == [0.375, 0.5625]


def test_names_of_systems_may_hold_colons_and_one_system_may_be_given_twice(
    scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scores)
    (scores / "base:ours").write_bytes((scores / "ours").read_bytes())
    more = Additions(scores=[("qe", "base:base.comet"), ("qe", "base:ours:ours.comet")])
    systems = ["base", "base:ours", "base"]
    found = evaluate("docs", ["ref"], systems, notices=Notices(), more=more)
    assert [system.scores["qe"].score for system in found.systems] == [0.375, 0.5625, 0.375]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("comet", "other:f")], "expected HYP:FILE with HYP one of base, ours, as they are given"),
        ([("comet", "base:")], "expected HYP:FILE with HYP one of base, ours"),
        ([("comet", "base:f")], "found none of ours; add --scores comet=ours:FILE"),
        ([("comet", "base:f"), ("comet", "base:g")], "two files for base; give one"),
        ([("ter", "base:f")], "ter is a metric of rerank; take another name"),
    ],
    ids=["unknown", "no file", "missing", "twice", "taken"],
)
def test_files_of_values_that_fit_no_system_are_refused_before_anything_is_read(
    given: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(
            "none", ["none"], ["base", "ours"], notices=Notices(), more=Additions(scores=given)
        )


def test_classes_of_words_are_english_ones_or_those_of_lists(folder: Path) -> None:
    (folder / "ref").write_text("he is in Rome\nshe has it\ni am\nk l m\n")
    (folder / "ours").write_text("he was in Rome\nhe has it\ni am\nk l m\n")
    (folder / "letters").write_text("k\nL\n")
    (folder / "counts").write_text("k 12\n")
    files = (folder / "docs", [folder / "ref"], [folder / "base", folder / "ours"])
    more = Additions(word_classes=True, word_frequencies=folder / "counts")
    found = evaluate(*files, notices=Notices(), more=more).systems[1].word_classes
    counts = {name: (one.words, one.reference_words) for name, one in found.items()}
    assert counts == {
        **{"pronouns": (4, 4), "auxiliaries": (3, 3), "function": (1, 1), "names": (1, 1)},
        **{"content": (4, 4), "content 0": (3, 3), "content 10-99": (1, 1)},
    }
    assert found["pronouns"].f1.score == 75
    more = Additions(word_lists={"letters": folder / "letters"})
    found = evaluate(*files, notices=Notices(), more=more).systems[1].word_classes
    assert {name: one.words for name, one in found.items()} == {"letters": 2}
    with pytest.raises(UsageError, match="they divide the content words of --word-classes"):
        evaluate(*files, more=Additions(word_frequencies=folder / "counts"))


def test_the_objective_of_the_weights_says_which_metrics_were_optimised(scores: Path) -> None:
    files = (scores / "docs", [scores / "ref"], [scores / "base", scores / "ours"])
    values = [("comet", f"{scores / name}:{scores / name}.comet") for name in ("base", "ours")]
    weights = scores / "weights.json"
    more = Additions(scores=values, word_lists={"a": scores / "list"}, weights=weights)
    (scores / "list").write_text("a\n")
    objective = "0.5 corpus chrF2 + 2 corpus comet − 5 |length ratio − 0.980|"
    made = {"objective": objective, "mbr": {"objective": "corpus TER"}}
    content = {"schema": 1, "weights": {"LM0": 1}, "provenance": made}
    weights.write_text(json.dumps(content))
    found = evaluate(*files, notices=Notices(), more=more)
    assert found.objective == f"{objective} and corpus TER"
    ours = found.systems[1]
    roles = {name: score.role for name, score in {**ours.metrics, **ours.scores}.items()}
    tuned = dict.fromkeys(("chrf", "ter", "comet"), "optimised")
    assert roles == {"bleu": "held out", **tuned}
    assert ours.word_classes["a"].f1.role == "held out"
    for other in ({}, {"objective": "something"}, {"objective": 3}):
        weights.write_text(json.dumps({**content, "provenance": other}))
        with pytest.raises(InputError, match=r"weights\.json: expected weights whose provenance"):
            evaluate(*files, notices=Notices(), more=more)
