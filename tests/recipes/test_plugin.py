"""The plug-in package of `recipes/plugin`, installed in a folder and used from the shell."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.files import write_weights

from rerank.cli import run
from rerank.corpus.document import Document
from rerank.registry import METRICS, SCORERS
from rerank.scorers.laws import check_scorer

PACKAGE = Path(__file__).parents[2] / "recipes" / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which pip has installed the package, without a network."""
    if not (find_spec("pip") and find_spec("setuptools")):
        pytest.skip("needs pip and setuptools")
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PACKAGE, folder / "package")  # pip writes into the folder that it builds
    options = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"
    install = [sys.executable, "-m", "pip", "install", *options.split(), "--target", "site"]
    subprocess.run([*install, "./package"], cwd=folder, check=True)
    return folder / "site"


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed package on the path."""
    monkeypatch.syspath_prepend(site)


def test_the_package_is_small() -> None:
    files = [PACKAGE / "pyproject.toml", *PACKAGE.glob("*.py")]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 40


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("kind", "names"), [("scorers", {"length", "cohesion"}), ("metrics", {"recall"})]
)
def test_its_members_are_listed(
    kind: str, names: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", kind, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows if row["package"] == "rerank-plugin"} == names


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["length", "cohesion"])
def test_its_scorers_keep_the_laws(name: str) -> None:
    texts = [[["a b", "a", "c d e"], [], ["b", "b c"]], [["e", "b a"], ["c", "a b"], ["d", "a"]]]
    documents = [
        Document(f"talk-{d}", [[(text, {}) for text in sentence] for sentence in sentences])
        for d, sentences in enumerate(texts)
    ]
    check_scorer(SCORERS[name](), documents)


@pytest.mark.usefixtures("installed")
def test_its_metric_is_the_share_of_the_references_words() -> None:
    rows = METRICS["recall"]().statistics([[b"a b", b"c"]], [[b"a b c d"]])
    assert rows.tolist() == [[0.5, 1], [0.25, 1]]


LISTS = (
    "0 ||| a lamp is lit ||| LM0= -1 ||| -1",
    "0 ||| lit ||| LM0= -1.5 ||| -1.5",
    "1 ||| it gives ||| LM0= -1 ||| -1",
    "1 ||| the lamp ||| LM0= -1.5 ||| -1.5",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dev.kbest").write_text("".join(f"{line}\n" for line in LISTS))
    Path("dev.ref").write_text("a lamp is lit\nthe lamp\n")
    write_weights("w.json", {"LM0": [1.0], "words": [0.0], "again": [0.0]})


DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --out out --summary s.json"
SCORERS_GIVEN = ["--scorer", "words=length:2", "--scorer", "again=cohesion"]


@pytest.mark.usefixtures("installed", "here")
@pytest.mark.parametrize(
    ("words", "again", "expected"),
    [
        (0, 0, "a lamp is lit\nit gives\n"),
        (1, 0, "lit\nit gives\n"),  # 2 words wished for: 1 is as near as 3
        (0, 2, "a lamp is lit\nthe lamp\n"),  # lamp again
    ],
)
def test_decode_uses_its_scorers(words: float, again: float, expected: str) -> None:
    write_weights("w.json", {"LM0": [1.0], "words": [words], "again": [again]})
    for _ in range(2):  # the second time from the cache
        assert run([*DECODE.split(), *SCORERS_GIVEN, "-q"]) == 0
        assert Path("out").read_text() == expected
        assert "|scorers:words=" in json.loads(Path("s.json").read_text())["signature"]


@pytest.mark.usefixtures("installed", "here")
def test_the_second_decoding_takes_scores_from_the_cache(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for cached in (False, True):
        assert run([*DECODE.split(), *SCORERS_GIVEN]) == 0
        told = capsys.readouterr().err
        assert ("again: 1 documents from the cache" in told) == cached


@pytest.mark.usefixtures("installed", "here")
def test_tune_mert_follows_its_metric_with_its_scorers() -> None:
    tune = "tune-mert --kbest dev.kbest --no-docs one --ref dev.ref --objective recall --out t.json"
    assert run([*tune.split(), "--shrink", "0", *SCORERS_GIVEN, "-q"]) == 0
    content = json.loads(Path("t.json").read_text())
    assert content["provenance"]["scorers"]["again"]["entry"] == "cohesion"
    assert {"LM0", "words", "again"} <= content["weights"].keys()
    Path("w.json").write_text(Path("t.json").read_text())
    assert run([*DECODE.split(), *SCORERS_GIVEN, "-q"]) == 0
    assert Path("out").read_text() == "a lamp is lit\nthe lamp\n"


@pytest.mark.usefixtures("installed", "here")
@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [
        ("lenght", 2, "no scorer 'lenght'; did you mean length?"),
        (
            "length:many",
            1,
            "scorer 'words', document 'all': expected scores, found ValueError at",
        ),
        ("cohesion:now", 1, "--scorer words=cohesion:now: the scorer cannot be made: TypeError"),
    ],
)
def test_a_scorer_that_cannot_be_had_is_one_line(
    entry: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run([*DECODE.split(), "--scorer", f"words={entry}", "--scorer", "again=cohesion"]) == code
    )
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
