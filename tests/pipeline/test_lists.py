"""What the options say of lists: files, names, what does not go together, and their own sources."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from support.files import write

from rerank.errors import UsageError
from rerank.pipeline.lists import Lists, own_documents, with_own_sources

SYSTEMS = (("A", Path("a.txt")), ("B", Path("b.txt")))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_files_are_all_that_are_read() -> None:
    scores = {"scores": (("qe", Path("dev.qe")),)}
    lists = Lists("dev.kbest", "dev.docs", score_files=scores, side={"source": "dev.src"})
    assert list(map(str, lists.files)) == ["dev.kbest", "dev.docs", "dev.src", "dev.qe"]
    assert list(map(str, Lists("", systems=SYSTEMS).files)) == ["a.txt", "b.txt"]


def test_messages_name_the_list_or_the_systems() -> None:
    assert [Lists("dev.kbest").name, Lists("", systems=SYSTEMS).name] == [
        "dev.kbest",
        "the list of the systems",
    ]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (Lists(""), "expected --kbest FILE or --systems NAME=FILE, found neither"),
        (Lists("dev.kbest", systems=SYSTEMS), "found both; give one of them"),
        (Lists("", systems=SYSTEMS, encoding="cp1252"), "--encoding: not for the lists of"),
        (Lists("", systems=SYSTEMS, kbest_format="moses"), "--kbest-format: not for the lists of"),
        (
            Lists("k", missing="source", score_files={"pair-scores": (("p", Path("pairs")),)}),
            "--pair-scores: it has no pairs of the source lines that --missing source",
        ),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(lists: Lists, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        lists.check()


def test_documents_and_sources_of_the_list_itself_are_used_where_no_option_names_others() -> None:
    line = '{{"document": "{}", "source": "{}", "candidates": [{{"text": "a", "score": 1}}]}}'
    write("lists", [line.format("x", "eins"), line.format("y", "zwei")])
    documents = own_documents(Lists("lists"))
    assert documents is not None
    assert documents.ids == ("x", "y")
    assert own_documents(Lists("lists", no_docs="one")) is None
    with ExitStack() as copies:
        found = with_own_sources(Lists("lists"), copies).side["source"]
        assert Path(found).read_text() == "eins\nzwei\n"
        given = Lists("lists", side={"source": "dev.src"})
        assert with_own_sources(given, copies) is given
    assert not Path(found).exists()


def test_a_list_without_sources_of_all_sentences_has_none() -> None:
    write("lists", ["0 ||| a ||| A= 1 ||| 0"])
    with ExitStack() as copies:
        assert dict(with_own_sources(Lists("lists"), copies).side) == {}
