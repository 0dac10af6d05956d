"""`rerank tune-moses` on the files that Moses' extractor would write.

Truth: sacrebleu's counts, choices in plain Python, and `tune-mert` on the lists themselves.
"""

import gzip
import re
from itertools import count

import numpy as np
import pytest
import sacrebleu
from support.tuned import columns, dense, made
from support.world import World

MOSES = "tune-moses --features features.dat --scores scores.dat --out out.json"
PLAIN = f"{MOSES} --select none"
INI = """\
[feature]
KENLM name=LM0
UnknownWordPenalty
[weight]
UnknownWordPenalty0= 1
LM0= 1 # of words
TM0= 0.5 0.25
[threads]
4
"""


@pytest.fixture
def extracted(world: World) -> World:
    """Drawn lists, and the extractor's files of them; each third hypothesis has tag_x."""
    world.draw(11, "abcdefghijkl", ())
    references = world.lines("dev.ref")
    features, scores, number = list[str](), list[str](), count()
    for t, candidates in world.lists().items():
        features.append(f"FEATURES_TXT_BEGIN_0 {t} {len(candidates)} 3 LM0_0 TM0_0 TM0_1 ")
        scores.append(f"SCORES_TXT_BEGIN_0 {t} {len(candidates)} 9 BLEU")
        for text, values, _ in candidates:
            own = sacrebleu.corpus_bleu([text], [[references[t]]], tokenize="none", force=True)
            pairs = [count for both in zip(own.counts, own.totals, strict=True) for count in both]
            dense = values.replace("LM0= ", "").replace("TM0= ", "")
            features.append(f"{dense}{' tag_x=1' * (next(number) % 3 == 0)}")
            scores.append(f"{' '.join(map(str, [*pairs, own.ref_len]))} ")
        features.append("FEATURES_TXT_END_0")
        scores.append("SCORES_TXT_END_0")
    world.write("features.dat", features)
    world.write("scores.dat", scores)
    world.write("moses.ini", INI)
    world.write("init.opt", "1 0.5 0.25\n0 0 0\n1 1 1\n")
    world.weights("start.json", {"LM0": 1.0, "TM0": [0.5, 0.25]}, sparse={"tag_x": -4.5})
    return world


def bleu_by_hand(world: World, name: str) -> float:
    """BLEU of what weights choose, from the files, in plain Python."""
    weights, sums = world.json(name), np.zeros(9, int)
    known = [w for own in weights["weights"].values() for w in own]
    files = [world.text(f).split("_END_0\n")[:-1] for f in ("features.dat", "scores.dat")]
    for features, scores in zip(*files, strict=True):
        best, chosen = -np.inf, ""
        for row, counts in zip(features.split("\n")[1:-1], scores.split("\n")[1:-1], strict=True):
            score = weights["sparse"].get("tag_x", 0.0) if "tag_x=1" in row else 0.0
            values = [float(token) for token in row.split() if "=" not in token]
            for value, weight in zip(values, known, strict=True):
                score += value * weight
            if score > best:
                best, chosen = score, counts
        sums += np.array(chosen.split(), int)
    counts, totals = sums[0:8:2].tolist(), sums[1:8:2].tolist()
    own = sacrebleu.BLEU.compute_bleu(counts, totals, int(sums[1]), int(sums[8]), "exp")
    return float(own.score)


def test_weights_below_the_first_hypotheses_ask_for_older_weights(extracted: World) -> None:
    """The first hypotheses are the references, features are noise; the order counts from --init."""
    rng, features, scores = np.random.default_rng(1), list[str](), list[str]()
    for t in range(20):
        features += [f"FEATURES_TXT_BEGIN_0 {t} 3 2 LM0_0 TM0_0"]
        features += [" ".join(f"{v:.3f}" for v in rng.normal(size=2)) for _ in range(3)]
        features += ["FEATURES_TXT_END_0"]
        scores += [f"SCORES_TXT_BEGIN_0 {t} 3 9 BLEU", "8 8 7 7 6 6 5 5 8"]
        scores += ["6 8 4 7 2 6 1 5 8"] * 2 + ["SCORES_TXT_END_0"]
    extracted.write("features.dat", features)
    extracted.write("scores.dat", scores)
    run = extracted.ok(MOSES)
    told = "than their first hypotheses; give the weights that made the lists with --init"
    assert told in run.err
    verdict = "output against first candidates, held out: worse, significant in BLEU"
    written = extracted.json("out.json")["provenance"]["verdict"]
    assert re.fullmatch(rf"{verdict} \(BLEU -[0-9.]+, p (0\.0[0-9]{2}|< 0\.001)\)", written)
    assert f"verdict: {written}\n" in run.err
    extracted.write("init.opt", "1 1\n0 0\n1 1\n")
    assert "first hypotheses; give" not in extracted.ok(f"{MOSES} --init init.opt").err


STARTS = ["", "--init init.opt", "--start start.json", "--start moses.ini"]


@pytest.mark.parametrize(
    ("start", "select"), list(zip(STARTS, ["cv", "none", "cv", "none"], strict=True))
)
def test_the_bleu_reported_is_of_the_weights(extracted: World, start: str, select: str) -> None:
    run = extracted.ok(MOSES, "--select", select, *start.split())
    truth = bleu_by_hand(extracted, "out.json")
    assert made(extracted)["bleu"] == pytest.approx(truth, rel=1e-12)
    assert (
        f"tuning documents: BLEU {truth:.2f} (length ratio {made(extracted)['length_ratio']:.3f})"
        in run.err
    )
    if "json" in start:
        told = f", start {bleu_by_hand(extracted, 'start.json'):.2f} ("
        assert told in run.err.splitlines()[-1]
    assert ("selection" in made(extracted)) == (select == "cv")
    assert made(extracted)["statistics"] == "Moses' extractor"
    assert made(extracted)["tuned"] == ["LM0", "TM0_0", "TM0_1"]


SAME = [
    "--length-ratio 0.9 --length-price 20 --start moses.ini",
    "--shrink 0 --start start.json --seed 4 --starts 3 --threads 2",
    "--shrink 0 --start start.json --range LM0=0.5:2 --range TM0_1=0:",
    "--algorithm expected-bleu --start start.json",
]


@pytest.mark.parametrize("options", SAME)
def test_lists_and_their_files_lead_to_the_same_weights(extracted: World, options: str) -> None:
    """With each sentence as a document; gaps of tune-mert change the last bits."""
    mert = "tune-mert --kbest dev.kbest --no-docs each --ref dev.ref --out mert.json --select none"
    lines, tagged = extracted.lines("dev.kbest"), []
    for n, line in enumerate(lines):
        tagged.append(line.replace(" ||| 0", " tag_x= 1 ||| 0") if n % 3 == 0 else line)
    extracted.write("dev.kbest", tagged)
    extracted.ok(mert, *options.split())
    run = extracted.ok(PLAIN, *options.split())
    one, two = made(extracted), made(extracted, "mert.json")
    assert columns(extracted) == pytest.approx(columns(extracted, "mert.json"), rel=1e-6)
    for key in ("algorithm", "objective", "seed", "bleu", "length_ratio", "alpha_lists", "ranges"):
        assert one[key] == two[key]
    alphas = [extracted.json(name)["alpha"] for name in ("out.json", "mert.json")]
    assert alphas[0] == pytest.approx(alphas[1], rel=1e-6)
    assert f"maximised: {one['objective']}\n" in run.err
    assert columns(extracted)[0] >= 0.5 or "range" not in options


def test_files_of_several_rounds_are_merged_and_duplicates_left_out(extracted: World) -> None:
    """Parts of the lists in two pairs of files, the second of them compressed."""
    extracted.ok(PLAIN, "--init", "init.opt")
    plain, n = columns(extracted), len(extracted.lines("dev.kbest"))
    for name in ("features", "scores"):
        *blocks, _ = extracted.text(f"{name}.dat").split("_END_0\n")
        both = ["", ""]
        for block in blocks:
            head, *rows = block.split("\n")[:-1]
            end = block.split("\n")[-1]
            for part, own in enumerate((rows[:2], rows[1:])):
                words = head.split(" ")
                words[2] = str(len(own))
                both[part] += "\n".join([" ".join(words), *own, f"{end}_END_0", ""])
        extracted.write(f"1.{name}", both[0])
        extracted.write(f"2.{name}", gzip.compress(both[1].encode()))
    files = "--features 1.features --features 2.features --scores 1.scores --scores 2.scores"
    run = extracted.ok(f"tune-moses {files} --out out.json --select none --init init.opt")
    assert columns(extracted) == pytest.approx(plain, rel=1e-9)
    assert f"{n} hypotheses of 12 sentences, 12 duplicates left out\n" in run.err


@pytest.mark.parametrize("algorithm", ["mert", "expected-bleu"])
def test_a_sentence_without_hypotheses_changes_no_weight(extracted: World, algorithm: str) -> None:
    extracted.ok(PLAIN, "--algorithm", algorithm)
    plain = columns(extracted)
    for name, tail in (("features", "3 LM0_0 TM0_0 TM0_1"), ("scores", "9 BLEU")):
        kind, text = name.upper(), extracted.text(f"{name}.dat")
        empty = f"{kind}_TXT_BEGIN_0 99 0 {tail}\n{kind}_TXT_END_0\n"
        extracted.write(f"{name}.dat", text + empty)
    run = extracted.ok(PLAIN, "--algorithm", algorithm)
    assert " hypotheses of 13 sentences, " in run.err
    assert columns(extracted) == plain


def test_a_moses_ini_keeps_all_but_its_weights(extracted: World) -> None:
    extracted.ok(PLAIN, "--start", "moses.ini")
    extracted.ok(
        PLAIN.replace("out.json", "tuned.ini"), "--start", "moses.ini", "--base", "moses.ini"
    )
    old, new = INI.splitlines(), extracted.lines("tuned.ini")
    assert new.pop(3) == f"# alpha: {extracted.json('out.json')['alpha']}"
    expected = [line for n, line in enumerate(old) if n not in (5, 6)]
    assert [line for n, line in enumerate(new) if n not in (5, 6)] == expected
    assert new[5] == f"LM0= {dense(extracted)['LM0'][0]} # of words"
    assert new[6] == f"TM0= {' '.join(map(str, dense(extracted)['TM0']))}"


NAMES = [("_0 _1 _2", ["F0", "F1", "F2"]), ("LM TM_0 TM_1", ["LM", "TM_0", "TM_1"])]


@pytest.mark.parametrize(("header", "names"), NAMES, ids=["unlabelled", "a label of one value"])
def test_features_are_named_by_headers(extracted: World, header: str, names: list[str]) -> None:
    extracted.ok(PLAIN)
    plain = columns(extracted)
    text = extracted.text("features.dat").replace("LM0_0 TM0_0 TM0_1", header)
    extracted.write("features.dat", text)
    extracted.ok(PLAIN)
    assert made(extracted)["tuned"] == names
    assert columns(extracted) == plain


def test_start_weights_come_before_those_of_an_init_opt(extracted: World) -> None:
    extracted.write("part.ini", "LM0= 1\n")
    run = extracted.ok(PLAIN, "--start", "part.ini", "--init", "init.opt")
    assert "start weights are those of part.ini, not of init.opt\n" in run.err
    assert "features without a weight in part.ini begin at 0: TM0\n" in run.err
    assert "1 x sparse feature without weight, counted as 0, first at part.ini" in run.err
    run = extracted.ok(PLAIN, "--init", "init.opt")
    assert "sparse feature without weight, counted as 0, first at features.dat" in run.err
