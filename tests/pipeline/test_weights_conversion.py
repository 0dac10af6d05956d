"""`rerank weights`: files of one tool converted for another."""

from pathlib import Path

import pytest

from rerank.cli import run
from rerank.errors import InputError, UsageError
from rerank.formats.weights import read_weights
from rerank.notices import Notices
from rerank.pipeline import convert_weights

OLD = "[weight-d]\n0.3\n\n[weight-l]\n0.5  # first\n0.2\n[ttable-limit]\n20\n[weight-w]\n-1\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("run7.dense").write_text("LM0= 0.5\nTM0= 0.1\nTM0= 0.2\n")
    return tmp_path


def test_weights_go_from_tool_to_tool(here: Path) -> None:
    assert run(["weights", "run7.dense", "--to", "json", "--out", "w.json", "-q"]) == 0
    assert run(["weights", "w.json", "--to", "dense", "--out", "again.dense", "-q"]) == 0
    assert Path("again.dense").read_text() == Path("run7.dense").read_text()


def test_weights_go_into_a_moses_ini(here: Path) -> None:
    Path("moses.ini").write_text("[input]\nx\n[weight]\nLM0= 1\nTM0= 1 1\n")
    convert_weights("run7.dense", "moses-ini", "new.ini", base="moses.ini", notices=Notices())
    assert Path("new.ini").read_text() == "[input]\nx\n[weight]\nLM0= 0.5\nTM0= 0.1 0.2\n"


def test_weights_of_another_tool_get_the_names_of_its_list(here: Path) -> None:
    Path("cdec").write_text("tm_pt_0 0.5\nGlue 1\n")
    lines = ["0 ||| x ||| tm_pt_0=1 lm_0=2 ||| 1", "0 ||| y ||| Glue=1 lm_0=2 ||| 1", ""]
    Path("kbest").write_text("\n".join(lines))
    convert_weights("cdec", "dense", "out", kbest="kbest", notices=Notices())
    assert sorted(Path("out").read_text().splitlines()) == ["Glue= 1", "tmpt0= 0.5"]


CDEC = """\
0 ||| the black cat sat on a mat ||| LanguageModel=-3 PhraseModel_0=1.5 ||| -1
0 ||| the black cat sat on the mat ||| LanguageModel=-4 PhraseModel_0=0.5 ||| -2
1 ||| the big dog lay on a bed ||| LanguageModel=-3 PhraseModel_0=1 tm_pt_0=2 ||| -1
1 ||| the big dog lay on the bed ||| LanguageModel=-4 PhraseModel_0=0.2 tm_pt_0=3 ||| -2
"""


def tuned_on_a_list_of_cdec(out: str) -> None:
    """Weights of the features LanguageModel, PhraseModel0 and tmpt0, tuned to `out`."""
    Path("dev.kbest").write_text(CDEC)
    Path("ref").write_text("the black cat sat on the mat\nthe big dog lay on the bed\n")
    command = "tune-mert --kbest dev.kbest --no-docs one --ref ref -q --no-cache --out"
    assert run([*command.split(), out]) == 0


@pytest.mark.parametrize(
    ("to", "form", "end"), [("cdec", "{} {}", "\n"), ("travatar", "{}={}", " ")]
)
@pytest.mark.parametrize(
    ("file", "options"),
    [("w.json", []), ("w.ini", ["--kbest", "dev.kbest"])],
    ids=["from JSON", "with the list"],
)
def test_weights_tuned_on_a_list_of_cdec_have_the_names_of_cdec(
    file: str, options: list[str], to: str, form: str, end: str, here: Path
) -> None:
    tuned_on_a_list_of_cdec(file)
    assert run(["weights", file, "--to", to, "--out", "out", *options]) == 0
    dense = read_weights(file, Notices()).dense
    assert list(dense) == ["LanguageModel", "PhraseModel0", "tmpt0"]
    named = zip(("LanguageModel", "PhraseModel_0", "tm_pt_0"), dense.values(), strict=True)
    expected = [form.format(name, f"{value:g}") for name, (value,) in named]
    assert Path("out").read_text() == end.join(expected) + "\n"


def test_weights_tuned_on_a_list_of_cdec_come_back_from_cdec_for_its_list(here: Path) -> None:
    tuned_on_a_list_of_cdec("w.json")
    convert_weights("w.json", "cdec", "w.cdec", notices=Notices())
    convert_weights("w.cdec", "json", "again.json", kbest="dev.kbest", notices=Notices())
    tuned, again = (read_weights(name, Notices()) for name in ("w.json", "again.json"))
    assert (again.dense, again.sparse) == (tuned.dense, tuned.sparse)
    assert again.decoder_names == tuned.decoder_names
    assert tuned.decoder_names == {"PhraseModel0": "PhraseModel_0", "tmpt0": "tm_pt_0"}
    convert_weights("again.json", "cdec", "again.cdec", notices=Notices())
    assert Path("again.cdec").read_bytes() == Path("w.cdec").read_bytes()


def test_weights_without_names_get_those_of_a_list(here: Path) -> None:
    Path("kbmira").write_text("F0 0.5\nF1 0.1\nF2 0.2\n")
    Path("kbest").write_text("0 ||| x ||| LM0= -1 TM0= -2 -3 ||| 1\n")
    convert_weights("kbmira", "dense", "out", kbest="kbest", notices=Notices())
    assert Path("out").read_text() == Path("run7.dense").read_text()
    with pytest.raises(UsageError, match="--kbest kbest: the weights have names of the"):
        convert_weights("run7.dense", "dense", "out", kbest="kbest", notices=Notices())
    Path("kbest").write_text("0 ||| x ||| LM0= -1 ||| 1\n")
    with pytest.raises(InputError, match="kbmira: expected 1 weights without names, F0 to F0"):
        convert_weights("kbmira", "dense", "out", kbest="kbest", notices=Notices())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--to moses-ini", "--to moses-ini and --base: expected both or none"),
        ("--to json --base run7.dense", "--to moses-ini and --base: expected both or none"),
        ("--to jsn", "no weight format 'jsn'; did you mean json"),
        ("--to json --out run7.dense", "output run7.dense is also the input run7.dense"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("run7.dense").read_text()
    assert run(["weights", "run7.dense", *options.split()]) == 2
    assert message in capsys.readouterr().err
    assert Path("run7.dense").read_text() == before


def test_old_sections_have_the_labels_of_old_lists(here: Path) -> None:
    Path("moses.ini").write_text(OLD)
    found = read_weights("moses.ini", Notices())
    assert found.dense == {"d": (0.3,), "lm": (0.5, 0.2), "w": (-1.0,)}


def test_a_new_section_hides_old_ones(here: Path) -> None:
    Path("moses.ini").write_text(OLD + "[weight]\nLM0= 1\n")
    assert read_weights("moses.ini", Notices()).dense == {"LM0": (1.0,)}


@pytest.mark.parametrize("place", ["sub/sparse.txt", "sparse.txt"])
def test_a_file_of_sparse_weights_is_read_from_here_or_beside_the_ini(
    place: str, here: Path
) -> None:
    Path("sub").mkdir()
    Path("sub/moses.ini").write_text(
        f"[weight-file]\n{Path(place).name}\n[weight]\nLM0= 1\nx_a= 2\n"
    )
    Path(place).write_text("x_a 0.5\nx_b -1\n")
    notices = Notices()
    found = read_weights("sub/moses.ini", notices)
    assert (found.dense, found.sparse) == ({"LM0": (1.0,)}, {"x_a": 2.0, "x_b": -1.0})
    assert notices.lines() == [
        "1 x weight in [weight] and in the file of [weight-file]; that of [weight] is used: x_a, "
        "first at sub/moses.ini"
    ]


def test_a_file_of_sparse_weights_alone_is_enough_and_one_that_is_missing_is_named(
    here: Path,
) -> None:
    Path("moses.ini").write_text("[x]\n1\n[weight-file]\nsparse.txt\n")
    with pytest.raises(InputError, match=r"moses.ini:4: expected the file of \[weight-file\], fou"):
        read_weights("moses.ini", Notices())
    Path("sparse.txt").write_text("x_a 0.5\n")
    assert read_weights("moses.ini", Notices()).sparse == {"x_a": 0.5}


def test_components_that_are_never_tuned_are_left_out(here: Path) -> None:
    """Of `moses -show-weights`; k-best lists lack their values, too."""
    Path("shown").write_text("LM0= 0.5\nTM0= 0.2 UNTUNEABLECOMPONENT 0.1\nU= UNTUNEABLECOMPONENT\n")
    notices = Notices()
    found = read_weights("shown", notices)
    assert found.dense == {"LM0": (0.5,), "TM0": (0.2, 0.1)}
    assert notices.lines() == [
        "2 x UNTUNEABLECOMPONENT, left out, as k-best lists leave it out, first at shown:2"
    ]


def test_numbers_alone_may_stand_on_a_line_each(here: Path) -> None:
    Path("numbers").write_text("0.5\n\n-1\n2 3\n")
    assert read_weights("numbers", Notices()).dense == {
        "F0": (0.5,),
        "F1": (-1.0,),
        "F2": (2.0,),
        "F3": (3.0,),
    }


@pytest.mark.parametrize("kind", ["FEATURES", "SCORES"])
def test_binary_files_of_the_extractor_are_named(kind: str, here: Path) -> None:
    Path("w").write_bytes(f"{kind}_BIN_BEGIN_0 0 2 3 a b c\n".encode() + b"\0\0\x80\x3f\n")
    message = f"w:1: expected text, found the binary form of Moses' extractor {kind.lower()}; run"
    with pytest.raises(InputError, match=message):
        read_weights("w", Notices())
