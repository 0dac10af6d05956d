"""Lists of cdec, Joshua and Travatar: features that a line leaves out are 0."""

import pytest
from support.reading import features, texts

from rerank.corpus.rows import concatenate
from rerank.errors import InputError
from rerank.formats.cdec import Cdec
from rerank.formats.joshua import Joshua
from rerank.formats.named_features import ABSENT, NamedFeatures
from rerank.formats.table import detect
from rerank.formats.travatar import Travatar
from rerank.notices import Notices

CDEC = """0 ||| a lamp ||| LM=-3.5 PhraseModel_0=1 ||| -2
0 ||| lamp ||| LM=-4 Glue=2 ||| -3
"""
JOSHUA = """0 ||| a lamp ||| tm_pt_0=-1 lm_0=-3.5 ||| -2
0 ||| lamp ||| tm_pt_0= -2 lm_0= -4 WordPenalty= -1 ||| -3
"""
TRAVATAR = """0 ||| a lamp ||| -2 ||| egfp=-1 lm=-3.5
0 ||| lamp ||| -3 ||| lm=-4 word=1
"""
LISTS = [
    (Cdec(), CDEC, {"LM": [-3.5, -4], "PhraseModel0": [1, 0], "Glue": [0, 2]}),
    (Joshua(), JOSHUA, {"tmpt0": [-1, -2], "lm0": [-3.5, -4], "WordPenalty": [0, -1]}),
    (Travatar(), TRAVATAR, {"egfp": [-1, 0], "lm": [-3.5, -4], "word": [0, 1]}),
]
each = pytest.mark.parametrize(
    ("known", "text", "expected"), LISTS, ids=[known.name for known, _, _ in LISTS]
)


@each
def test_a_list_is_recognised_and_absent_features_are_zero(
    known: NamedFeatures, text: str, expected: dict[str, list[float]]
) -> None:
    lines = text.encode().splitlines()
    assert detect(iter(lines))[0].name == known.name
    notices = Notices()
    prepared = known.prepared(lines, source="f")
    rows = concatenate(list(prepared.read(lines, notices, source="f", clip=None)))
    assert features(rows) == expected
    assert texts(rows) == ["a lamp", "lamp"]
    assert rows.totals.tolist() == [-2, -3]
    assert any(ABSENT in line for line in notices.lines())


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| F0=-1.5 F1=2 ||| -1",  # Marian
        b"0 ||| a ||| LM0= -1.5 tag_a= 2 ||| -1",
        b"0 ||| a ||| d: 1 lm: 2 ||| -1",
        b"0 ||| a ||| 1 2 3 ||| -1",
        b"0 ||| a ||| LM0= -1 ||| -1 ||| 0-0 ||| x=1",
    ],
)
def test_lists_of_moses_and_marian_are_not_taken_for_them(line: bytes) -> None:
    assert detect(iter([line, line]))[0].name == "moses"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CDEC + "1 ||| a\n", "f:3: expected at least 3 columns of cdec"),
        (CDEC + "x ||| a ||| LM=1 ||| 2\n", "f:3: expected a sentence id"),
        (CDEC + "1 ||| a ||| LM=1 LM=2 ||| 2\n", "f:3: expected one value of LM"),
        (CDEC + "1 ||| a ||| LM=x ||| 2\n", "f:3: expected a decimal number for LM"),
        (CDEC + "1 ||| a ||| LM=1 ||| nan\n", "f:3: expected a decimal number for the total"),
    ],
)
def test_faults_are_said_with_their_line(text: str, message: str) -> None:
    lines = text.encode().splitlines()
    known = Cdec().prepared(lines, source="f")
    with pytest.raises(InputError, match=f"^{message}"):
        list(known.read(lines, Notices(), source="f", clip=None))


def test_many_names_are_not_those_of_dense_features() -> None:
    lines = [b"0 ||| a ||| " + b" ".join(b"f%d=1" % i for i in range(10_001)) + b" ||| 1"]
    with pytest.raises(InputError, match=r"^f:1: expected at most 10,000 names"):
        Cdec().prepared(lines, source="f")
