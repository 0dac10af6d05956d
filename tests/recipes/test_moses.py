"""`recipes/moses`: the decoder for mert-moses.pl, around a stand-in for Moses.

What mert-moses.pl and extractor do is written here from a description. No Moses is run.
"""

import gzip
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sacrebleu
from support.files import read, write

from rerank.cli import run

RECIPE = Path(__file__).parents[2] / "recipes" / "moses"
OURS = ["--scorer", "used=document-cache", "--docs", "docids"]
OVERWRITE = "used= 0.2 LM0= 0.3 TM0= 0.1 0.1"
NOUNS = [("lorry", "truck"), ("shop", "store"), ("film", "movie"), ("sea", "ocean")]
SENTENCES = 6  # of a document, 4 documents


def candidates() -> list[str]:
    """Lists in which the right noun of a document is in its first sentence, and later a toss."""
    rng = np.random.default_rng(5)
    lines = []
    for t in range(SENTENCES * len(NOUNS)):
        pair = NOUNS[t // SENTENCES]
        for n, noun in enumerate(pair if t % SENTENCES else pair[:1]):
            a, b, c = rng.normal(-4, 0.3, 3).round(2)
            for m, text in enumerate((f"he sees the {noun} now", f"he the {noun} sees now")):
                features = f"TM0= {a - m:g} {b:g} LM0= {c - m:g} tag_{n}= 1"
                lines.append(f"{t} ||| {text} ||| {features} ||| 0")
    return lines


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a moses.ini, an input, its documents and references, the stand-in."""
    monkeypatch.chdir(tmp_path)
    write("candidates", candidates())
    weights = ["[weight]", "TM0= 0.2 0.1", "LM0= 0.5", "UnknownWordPenalty0= 1"]
    write("moses.ini", ["[candidates]", "candidates", "", *weights])
    write("source", [f"source {t}" for t in range(SENTENCES * len(NOUNS))])
    write("docids", [str(d) for d in range(len(NOUNS)) for _ in range(SENTENCES)])
    write("ref", [f"he sees the {noun} now" for noun, _ in NOUNS for _ in range(SENTENCES)])
    stand_in = RECIPE / "stand_in.py"
    write("moses", ["#!/bin/sh", f'exec "{sys.executable}" "{stand_in}" "$@"'])
    Path("moses").chmod(0o755)
    return tmp_path


@pytest.fixture(scope="module")
def decoder() -> ModuleType:
    """The program."""
    spec = spec_from_file_location("moses_decoder", RECIPE / "decoder.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules["moses_decoder"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


def called(decoder: ModuleType, *words: str, ours: list[str] = OURS) -> int:
    """Exit status of the decoder with these options of Moses."""
    own = ["--moses", "./moses", "--weight", "used=0.25"]
    return int(decoder.main([*own, *ours, "--", *words]))


def decoded(decoder: ModuleType, capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Standard output of the decoder for the whole input."""
    capfd.readouterr()
    assert called(decoder, "-f", "moses.ini", "-input-file", "source", *words) == 0
    return capfd.readouterr().out.split("\n")[:-1]


def featlist(lines: list[str]) -> list[tuple[str, float]]:
    """Features of `-show-weights` with their weights, as mert-moses.pl reads them."""
    found = []
    for line in lines:
        if match := re.match(r"(\S+)= (.+)$", line):
            values = match[2].split(" ")
            assert all(re.fullmatch(r"[+-]?[0-9.\-e]+", value) for value in values)
            found += [(match[1], float(value)) for value in values]
    return found


def order(line: str) -> list[str]:
    """Features of a line of a list, as mert-moses.pl checks them against `featlist`."""
    names = []
    label, sparse = "", False
    for token in line.split("|||")[2].split():
        if re.match(r".+_.+=", token):
            sparse = True
        elif match := re.match(r"([a-zA-Z][0-9a-zA-Z]*)=", token):
            label = match[1]
        else:
            assert re.fullmatch(r"-?[-0-9.\-e]+", token)
            names += [] if sparse else [label]
            sparse = False
    return names


def shown(decoder: ModuleType, capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What `-show-weights` prints."""
    capfd.readouterr()
    assert called(decoder, *words, "-show-weights") == 0
    return capfd.readouterr().out.split("\n")[:-1]


def test_show_weights_has_the_lines_of_moses_and_ours_after_them(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    assert shown(decoder, capfd, "-config", "moses.ini", "-inputtype", "0") == [
        "TM0= 0.2 0.1",
        "LM0= 0.5",
        "UnknownWordPenalty0 UNTUNEABLE",
        "used= 0.25",
    ]


def test_weights_of_the_config_count_more_than_start_weights(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    write("tuned.ini", [*read("moses.ini"), "used= 0.75"])
    lines = shown(decoder, capfd, "-config", "tuned.ini")
    assert featlist(lines) == [("TM0", 0.2), ("TM0", 0.1), ("LM0", 0.5), ("used", 0.75)]
    assert "used= 0.75" in read("tuned.ini")  # Moses got a copy without it


def test_the_list_has_the_features_of_show_weights_in_their_order(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [name for name, _ in featlist(shown(decoder, capfd, "-config", "moses.ini"))]
    decoded(decoder, capfd, "-n-best-list", "list", "100", "distinct")
    assert {tuple(order(line)) for line in read("list")} == {tuple(names)}


def test_features_are_those_under_the_path_decoded_with_the_current_weights(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["-weight-overwrite", OVERWRITE, "-n-best-list", "list", "100", "distinct"]
    out = decoded(decoder, capfd, *words)
    write(
        "weights.ini",
        ["[weight]", *OVERWRITE.replace(" LM", "\nLM").replace(" TM", "\nTM").split("\n")],
    )
    lists = ["--kbest", "candidates", "--docs", "docids", "--quiet", "--weights", "weights.ini"]
    assert run(["score", *lists, *OURS[:2], "--out", "scored"]) == 0
    expected = {line.split("|||")[1].strip() + line[:2]: line for line in read("scored")}
    values = set()
    for line in read("list"):
        sentence, text, features, total = line.split("|||")
        theirs = expected[text.strip() + line[:2]]
        used = float(features.split()[-1])
        assert used == float(theirs.split("|||")[2].split()[-1])
        a, b, c = (float(features.split()[n]) for n in (1, 2, 4))
        assert float(total) == pytest.approx(0.2 * used + 0.1 * (a + b) + 0.3 * c)
        assert text.endswith("  ")  # the bytes of Moses
        values.add(used)
        assert int(sentence) % SENTENCES or used == 0
    assert len(values) > 2
    assert len(out) == len(read("source"))


def test_translations_are_those_of_documents_under_the_weights(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    names = "-weight-overwrite"
    alone = decoded(decoder, capfd, names, "used= 0 LM0= 0.3 TM0= 0.1 0.1")
    with_cache = decoded(decoder, capfd, names, "used= 3 LM0= 0.3 TM0= 0.1 0.1")
    assert with_cache == read("ref")
    assert alone != read("ref")


@pytest.mark.parametrize("name", ["list", "list.gz"])
def test_the_list_is_packed_where_its_name_says_so(
    name: str, decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = decoded(decoder, capfd, "-n-best-list", "-", "3")
    out = decoded(decoder, capfd, "-n-best-list", name, "3")
    content = Path(name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    assert text.split("\n")[:-1] == printed
    assert max(Counter(line.split()[0] for line in printed).values()) == 3
    assert len(out) == len(read("source"))


def test_a_sentence_without_candidates_is_an_empty_line(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    write("candidates", [line for line in candidates() if not line.startswith("7 ")])
    out = decoded(decoder, capfd, "-n-best-list", "list", "100")
    assert [t for t, line in enumerate(out) if not line] == [7]
    assert len(out) == len(read("source"))


def test_sparse_weights_of_a_file_count(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    write("sparse", ["tag_1 50"])
    out = decoded(decoder, capfd, "-weight-file", "sparse", "-weight-overwrite", OVERWRITE)
    first = [noun for noun, _ in NOUNS for _ in range(SENTENCES)]
    assert [t for t, line in enumerate(out) if first[t] in line] == [0, 6, 12, 18]


def test_ids_that_begin_at_1_are_read(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    out = decoded(decoder, capfd, "-start-translation-id", "1", "-n-best-list", "list", "9")
    assert out == decoded(decoder, capfd, "-n-best-list", "list0", "9")
    assert read("list")[0].startswith("1 ")


MORE = ["--scorer", "more=document-cache"]
CONFIG = ["-config", "moses.ini", "-input-file", "source"]


@pytest.mark.parametrize(
    ("words", "ours", "message"),
    [
        ([], OURS, "expected -config FILE"),
        (["moses.ini"], OURS, "expected an option of Moses after --, found 'moses.ini'"),
        (["-config", "none.ini"], OURS, "none.ini: cannot be read"),
        ([*CONFIG, "-n-best-list", "list"], OURS, "expected -n-best-list FILE SIZE [distinct]"),
        (CONFIG, [*OURS, "--weight", "more=1"], "found one of 'more'; there are: TM0, LM0, used"),
        (CONFIG, [*MORE, *OURS, "--weight", "more=1"], "give --weight more=1 --weight used=0.25"),
        (CONFIG, [*OURS, "--weight", "LM0=1"], "Moses has a feature of this name"),
        (CONFIG, [*OURS[:2], "--no-docs", "nothing"], "'nothing' is not one of"),
        (["-config", "moses.ini", "-unheard-of"], OURS, "Unrecognised parameter"),
        (["-config", "moses.ini", "-input-file", "short"], OURS, "give the --docs of this input"),
    ],
    ids=["config", "word", "file", "size", "name", "order", "twice", "rerank", "moses", "docs"],
)
def test_a_fault_is_a_message_and_no_list(
    words: list[str],
    ours: list[str],
    message: str,
    decoder: ModuleType,
    capfd: pytest.CaptureFixture[str],
) -> None:
    write("short", read("source")[:-1])
    given = words if "-n-best-list" in words else [*words, "-n-best-list", "list", "100"]
    assert called(decoder, *(given if words else []), ours=ours) != 0
    out, err = capfd.readouterr()
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert not Path("list").exists()


def test_options_that_the_decoder_itself_gives_are_refused(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        called(decoder, *CONFIG, ours=[*OURS, "--kbest=list"])
    assert "decoder.py itself gives this option" in capfd.readouterr().err


def extracted(kbest: str, run: int) -> None:
    """run<i>.features.dat and run<i>.scores.dat of a list, as extractor writes them."""
    lists: dict[str, list[list[str]]] = {}
    for line in read(kbest):
        fields = [field.strip() for field in line.split("|||")]
        lists.setdefault(fields[0], []).append(fields)
    references = read("ref")
    features, scores = [], []
    for sentence, rows in lists.items():
        columns = [re.sub(r"\S+_\S+= \S+", "", row[2]).split() for row in rows]
        names = order("||||||" + " ".join(columns[0]))
        numbered = [f"{name}_{names[:n].count(name)}" for n, name in enumerate(names)]
        head = f"{sentence} {len(rows)}"
        features.append(f"FEATURES_TXT_BEGIN_0 {head} {len(names)} {' '.join(numbered)} ")
        features += [" ".join(x for x in row if not x.endswith("=")) + " " for row in columns]
        features.append("FEATURES_TXT_END_0")
        scores.append(f"SCORES_TXT_BEGIN_0 {head} 9 BLEU")
        for row in rows:
            words, target = row[1].split(), references[int(sentence)].split()
            counts = []
            for n in range(1, 5):
                own, right = (
                    Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1))
                    for x in (words, target)
                )
                counts += [(own & right).total(), own.total()]
            scores.append(" ".join(map(str, [*counts, len(target)])) + " ")
        scores.append("SCORES_TXT_END_0")
    write(f"run{run}.features.dat", features)
    write(f"run{run}.scores.dat", scores)


def test_the_loop_of_mert_moses_tunes_our_feature(
    decoder: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    features = featlist(shown(decoder, capfd, "-config", "moses.ini"))
    names = [name for name, _ in features]
    values = [weight if name != "used" else 0.0 for name, weight in features]
    found = []
    files: list[str] = []
    for step in range(1, 4):
        norm = sum(map(abs, values))
        values = [value / norm for value in values]
        parts = [
            f"{name}= "
            + " ".join(f"{v:.6f}" for n, v in zip(names, values, strict=True) if n == name)
            for name in reversed(dict.fromkeys(names))
        ]
        lists = ["-n-best-list", f"run{step}.best100.out", "100", "distinct"]
        out = decoded(decoder, capfd, "-weight-overwrite", " ".join(parts), *lists)
        found.append(sacrebleu.corpus_bleu(out, [read("ref")], tokenize="none").score)
        assert order(read(f"run{step}.best100.out")[0]) == names
        extracted(f"run{step}.best100.out", step)
        files += ["--features", f"run{step}.features.dat", "--scores", f"run{step}.scores.dat"]
        box = [" ".join(map(repr, values)), " ".join("0" for _ in values)]
        write("init.opt", [*box, " ".join("1" for _ in values)])
        tune = ["tune-moses", *files, "--init", "init.opt", "--base", "moses.ini", "--quiet"]
        assert run([*tune, "--select", "none", "--out", "tuned.ini"]) == 0
        tuned = featlist(read("tuned.ini"))
        values = [value for name, value in tuned if name in names]
        assert [name for name, _ in tuned if name in names] == names
    assert dict(features)["used"] == 0.25
    assert values[-1] > 0.05
    assert found[-1] > found[0] + 5
    assert read("tuned.ini")[-1].startswith("used= ")


@pytest.mark.slow
def test_the_recipe_tunes_and_reranks_the_embedded_example(folder: Path) -> None:
    command = [sys.executable, str(RECIPE / "run.py"), "--work", str(folder / "w")]
    environment = {**os.environ, "PYTHONPATH": str(RECIPE.parents[1])}
    done = subprocess.run(
        [*command, "--iterations", "1"], env=environment, stdout=subprocess.PIPE, check=True
    )
    table = [line.split(" | ") for line in done.stdout.decode().splitlines() if "BLEU" not in line]
    scores = {row[0]: float(row[1].rstrip(" |")) for row in table if row[0].startswith("| t")}
    assert scores["| test set, reranked"] > scores["| test set, Moses alone"] + 2
