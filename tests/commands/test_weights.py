"""`weights`: files of one tool for another, and the weights that a list's features get."""

import json

import pytest
from support.world import World

LM_TM: dict[str, list[float]] = {"LM0": [0.5], "TM0": [1, -2]}
OLD = "[weight-d]\n0.3\n\n[weight-l]\n0.5  # first\n0.2\n[ttable-limit]\n20\n[weight-w]\n-1\n"
SHOWN = "LM0= 0.5\nTM0= 0.2 UNTUNEABLECOMPONENT 0.1\nU= UNTUNEABLECOMPONENT\n"
UNTUNED = """[feature]
KENLM name=LM0 order=5
KENLM tuneable=false order=3
WordPenalty
Distortion tuneable=true
PhraseDictionary tuneable=false name=Names num-features=2 # of names
[weight]
LM0= 0.5
KENLM0= 0.1
WordPenalty0= -1
Distortion0= 0.2
Names= 0.2 0.2
"""
# name: (content, weights, part of the warnings)
READ: dict[str, tuple[str, dict[str, list[float]], str]] = {
    "rescore.ini": ("# by hand\n\n[weight]\nLM0= 0.5\nTM0= 1 -2 # two\ntag_a= 3\n",
        {**LM_TM, "tag_a": [3]}, ""),
    "moses.ini": ("[input-factors]\n0\n[feature]\nKENLM name=LM0 order=5\n[weight] # tuned\n"
        "LM0= 0.5\nTM0= 1 -2\n[other]\nx\n", LM_TM, ""),
    "run1.dense": ("LM0= 0.5\nTM0= 1\nTM0= -2\n", LM_TM, ""),
    "cdec and kbmira": ("LM0 0.5\nTM0 1 -2\ntag_a 3\n", {**LM_TM, "tag_a": [3]}, ""),
    "blanks around =": ("LM0 = 0.5\nTM0 = 1 -2\n", LM_TM, ""),
    "travatar": ("LM0=0.5 TM0=1 -2 tag_a=3\n", {**LM_TM, "tag_a": [3]}, ""),
    "plain JSON": ('{"LM0": 0.5, "TM0": [1, -2]}', LM_TM, ""),
    "JSON that lacks a schema": ('{"weights": 1}', {"weights": [1]}, ""),
    "old sections": (OLD, {"d": [0.3], "lm": [0.5, 0.2], "w": [-1]}, ""),
    "a new section beside old ones": (f"{OLD}[weight]\nLM0= 1\n", {"LM0": [1]}, ""),
    "numbers alone": ("0.5\n\n-1\n2 3\n", {"F0": [0.5], "F1": [-1], "F2": [2], "F3": [3]}, ""),
    "init.opt": (
        "1 0.5 -1\n0 0 -2\n1 1 1\n", {"F0": [1], "F1": [0.5], "F2": [-1]},
        "1 x init.opt of Moses' mert; its start weights are read, and not its ranges, first at w:1",
    ),
    **{f"no init.opt, {text!r}": (text, {f"F{i}": [float(v)] for i, v in enumerate(text.split())},
        "!init.opt") for text in ("1\n0\n2\n", "1 2\n3 1\n2 2\n", "1 2\n0 0\n1\n")},
    "components that are never tuned": (SHOWN, {"LM0": [0.5], "TM0": [0.2, 0.1]},
        "2 x UNTUNEABLECOMPONENT, left out, as k-best"),
    "moses -show-weights": ("LM0= 0.5\nU0 UNTUNEABLE\n", {"LM0": [0.5]}, "never tuned"),
    "functions that are never tuned": (
        UNTUNED, {"LM0": [0.5], "WordPenalty0": [-1], "Distortion0": [0.2]},
        "2 x weight of a feature that is never tuned, left out, as k-best lists leave it out, firs",
    ),
    "a file of sparse weights": ("[weight-file]\nsparse\n[weight]\nLM0= 1\nx_a= 2\n",
        {"LM0": [1], "x_a": [2], "x_b": [-1]},
        "1 x weight in [weight] and in the file of [weight-file]; that of [weight] is used: x_a"),
    "a file of sparse weights alone": ("[x]\n1\n[weight-file]\nsparse\n",
        {"x_a": [0.5], "x_b": [-1]}, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_weights_of_each_tool_are_read(name: str, world: World) -> None:
    content, expected, warning = READ[name]
    world.write("sub/w", content)
    world.write("sub/sparse", "x_a 0.5\nx_b -1\n")
    run = world.ok("weights sub/w --to json")
    result = run.json["weights"] | {key: [value] for key, value in run.json["sparse"].items()}
    assert result == expected
    part = warning.removeprefix("!").replace("first at w", "first at sub/w")
    assert (part in run.err) != warning.startswith("!")


GIVEN = {"schema": 1, "weights": {"LM0": [0.5], "TM0": [0.25, -1.0]}, "sparse": {"wt_a~b": 2.0}}
WRITTEN = {
    "ini": "# alpha: null\n\n[weight]\nLM0= 0.5\nTM0= 0.25 -1\nwt_a~b= 2\n",
    "dense": "LM0= 0.5\nTM0= 0.25\nTM0= -1\nwt_a~b= 2\n",
    "kbmira": "F0 0.5\nF1 0.25\nF2 -1\nwt_a~b 2\n",
    "cdec": "LM0 0.5\nTM0_0 0.25\nTM0_1 -1\nwt_a~b 2\n",
    "travatar": "LM0=0.5 TM0_0=0.25 TM0_1=-1 wt_a~b=2\n",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_format_is_written_as_its_tool_writes_it(name: str, world: World) -> None:
    world.write("w.json", json.dumps(GIVEN))
    run = world.ok(f"weights w.json --to {name}")
    assert (run.out, "alpha" in run.err) == (WRITTEN[name], False)
    world.write("w.json", json.dumps({**GIVEN, "alpha": 0.5, "provenance": {"seed": 1}}))
    run = world.ok(f"weights w.json --to {name}")
    assert ("# seed: 1\n# alpha: 0.5\n" in run.out) == ("alpha" not in run.err) == (name == "ini")


INI = """\
# MERT optimized configuration
[feature]
KENLM name=LM0 factor=0 path=lm.bin order=5
[weight] # of the features above

UnknownWordPenalty0= 1
LM0= 0.5  # the old one
  TM0=  0.2 0.25\t0.3
Distortion0 0.1
t_a== 1
LM1 =\t1 
A= 1
B=1
A= 2 3
[distortion-limit]
6
LM0= 7
"""


def test_only_the_values_of_the_weights_given_change(world: World) -> None:
    dense = {"TM0": [-1.0, 1e-9, 2e20], "LM0": [0.125], "Distortion0": [0.0], "LM1": [-2.0]}
    dense |= {"A": [4.0, 5.0, 6.0], "B": [-2.0]}
    world.weights("w.json", dense, sparse={"t_a=": 2.0})
    world.write("m.ini", INI)
    run = world.ok("weights w.json --to moses-ini --base m.ini")
    expected = INI.replace("LM0= 0.5 ", "LM0= 0.125 ").replace("0.2 0.25\t0.3", "-1 1e-09\t2e20")
    expected = expected.replace("Distortion0 0.1", "Distortion0 0").replace("t_a== 1", "t_a== 2")
    expected = expected.replace("LM1 =\t1 ", "LM1 =\t-2 ").replace("A= 1", "A= 4")
    assert run.out == expected.replace("A= 2 3", "A= 5 6").replace("B=1", "B=-2")
    assert "appended" not in run.err


def test_what_the_section_lacks_is_appended_and_alpha_is_a_comment(world: World) -> None:
    world.write("m.ini", "[weight]\nLM0= 1 # was 1\n\n[threads]\n4\n")
    world.weights("w.json", {"rnn": 0.5, "LM0": 0.5}, sparse={"tag_x": -1.0}, alpha=3.0)
    run = world.ok("weights w.json --to moses-ini --base m.ini --out new.ini")
    assert world.text("new.ini") == (
        "# alpha: 3.0\n[weight]\nLM0= 0.5 # was 1\nrnn= 0.5\ntag_x= -1\n\n[threads]\n4\n"
    )
    assert "2 x weight appended: rnn, tag_x; Moses refuses the file unless it has this" in run.err
    assert world.ok("weights new.ini --to json").json["alpha"] == 3
    world.weights("w.json", {"LM0": 0.5})  # the scale of other weights is not that of these
    world.ok("weights w.json --to moses-ini --base new.ini --out last.ini")
    assert world.lines("last.ini")[0] == "# alpha: null"


# The names of a list
def decoded(world: World, weights: str, features: str, more: str = "") -> tuple[list[str], str]:
    """Totals of a list of one candidate and its mirror image, and the warnings."""
    world.write("w", weights)
    world.write("list", [f"0 ||| {text} ||| {features} ||| 0" for text in ("a", "b")])
    words = f"decode --kbest list --no-docs one --weights w --kbest-out scored --out out {more}"
    err = world.ok(words).err
    return [line.rsplit(" ||| ", 1)[1] for line in world.lines("scored")], err


@pytest.mark.parametrize(
    ("weights", "features", "total"),
    [
        ("TM0= 1 2\nLM0= 3\n", "LM0= 10 TM0= 100 1000", 30 + 100 + 2000),
        ("F2 1\nF0 3\nF1 2\n", "LM0= 10 TM0= 100 1000", 30 + 200 + 1000),
        ("3 2 1\n", "LM0= 10 TM0= 100 1000", 30 + 200 + 1000),
        ("PhraseModel_0 1\nGlue 3\n", "PhraseModel0= 10 Glue= 100", 310),
        ("tm_pt_0 1\nlm_0 = 2\n", "tmpt0= 10 lm0= 100", 210),
        ("egfp=1 lm_1=2 0x=3\n", "egfp= 10 lm1= 100 F0x= 1000", 3210),
        ("TM0= 1 2\n", "TM00= 10 TM01= 100", 210),
        ("TM0_0 1\nTM0_1 2\n", "TM0= 10 100", 210),
        ("LM-a= 1\n", "LMa= 10", 10),
        ("tm_pt_0 5\ntmpt0= 1\n", "tmpt0= 10", 10),
        ("UnknownWordPenalty0= 1\nLM0= 3\n", "LM0= 10", 30),
        ("UnknownWordPenalty0= 1\nLM0= 3\n", "UnknownWordPenalty0= 100 LM0= 10", 130),
    ],
)
def test_weights_go_to_features(weights: str, features: str, total: float, world: World) -> None:
    assert decoded(world, weights, features)[0] == [str(total)] * 2


def test_weights_under_other_names_or_none_are_warnings(world: World) -> None:
    _, err = decoded(world, "tm_pt_0 1\n", "tmpt0= 10")
    kind = "weight of a feature that the list has in letters and digits: tm_pt_0 → tmpt0"
    assert f"1 x {kind}, first at w" in err
    _, err = decoded(world, "1 2 3 4 5 6\n", "TM0= 1 2 3 4 5 6")
    pairs = "F0 → TM0_0, F1 → TM0_1, F2 → TM0_2, F3 → TM0_3, F4 → TM0_4, …"
    assert f"1 x weights without names, applied by place: {pairs}, first at w" in err
    totals, err = decoded(world, "LM0= 3\n", "LM0= 10 TM0= 1 1", "--default-weight 0")
    assert (totals, "1 x feature without weight; 0 is used: TM0" in err) == (["30"] * 2, True)


CDEC = """\
0 ||| the black cat sat on a mat ||| LanguageModel=-3 PhraseModel_0=1.5 ||| -1
0 ||| the black cat sat on the mat ||| LanguageModel=-4 PhraseModel_0=0.5 ||| -2
1 ||| the big dog lay on a bed ||| LanguageModel=-3 PhraseModel_0=1 tm_pt_0=2 ||| -1
1 ||| the big dog lay on the bed ||| LanguageModel=-4 PhraseModel_0=0.2 tm_pt_0=3 ||| -2
"""


def test_weights_tuned_on_a_list_of_cdec_have_the_names_of_cdec_and_come_back(world: World) -> None:
    world.write("cdec.kbest", CDEC)
    world.write("ref", "the black cat sat on the mat\nthe big dog lay on the bed\n")
    tune = "tune-mert --kbest cdec.kbest --no-docs one --ref ref --no-cache --out"
    for name, option in (("w.json", ""), ("w.ini", "--kbest cdec.kbest")):
        world.ok(f"{tune} {name}")
        dense = world.ok(f"weights {name} --to json").json["weights"]
        assert list(dense) == ["LanguageModel", "PhraseModel0", "tmpt0"]
        names = ("LanguageModel", "PhraseModel_0", "tm_pt_0")
        values = [repr(value) for (value,) in dense.values()]
        cdec = world.ok(f"weights {name} --to cdec {option}").out
        assert cdec == "".join(f"{n} {v}\n" for n, v in zip(names, values, strict=True))
        travatar = world.ok(f"weights {name} --to travatar {option}").out
        assert travatar == " ".join(map("=".join, zip(names, values, strict=True))) + "\n"
    world.write("w.cdec", world.ok("weights w.json --to cdec").out)
    world.ok("weights w.cdec --to json --kbest cdec.kbest --out again.json")
    one, other = world.json("w.json"), world.json("again.json")
    for key in ("weights", "sparse", "decoder_names"):
        assert one[key] == other[key]
    assert one["decoder_names"] == {"PhraseModel0": "PhraseModel_0", "tmpt0": "tm_pt_0"}
    assert world.ok("weights again.json --to cdec").out == world.text("w.cdec")


def test_weights_of_the_decoder_name_sparse_features_as_its_list_is_read(world: World) -> None:
    lines = (
        f"{k // 9} ||| a{k} ||| LM=-1 {' '.join(f'R{9 * k + i}=1' for i in range(9))} ||| 0\n"
        for k in range(180)
    )
    world.write("list", "".join(lines))
    world.write("W", "LM 1\nR7 -0.5\n")
    world.ok("weights W --to json --kbest list --out w.json")
    assert world.json("w.json")["sparse"] == {"R7_": -0.5}
    run = world.ok("decode --kbest list --no-docs one --weights w.json --out -")
    assert "rerank weights W --to json --kbest LIST names" in run.err
    assert run.lines[0] == "a1"
    assert world.ok("weights w.json --to cdec").out == world.text("W")


def test_weights_without_names_get_those_of_a_list(world: World) -> None:
    world.write("kbmira", "F0 0.5\nF1 0.1\nF2 0.2\n")
    world.write("list", "0 ||| x ||| LM0= -1 TM0= -2 -3 ||| 1\n")
    run = world.ok("weights kbmira --to dense --kbest list")
    assert run.out == "LM0= 0.5\nTM0= 0.1\nTM0= 0.2\n"
