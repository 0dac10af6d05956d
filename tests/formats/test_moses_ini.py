"""Weights in ini files of Moses: alpha in a comment, and values replaced in place."""

import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus import LARGEST
from rerank.errors import InputError, UsageError
from rerank.formats.moses_ini import merged, read_ini, read_scale, scale_line
from rerank.formats.weights import Weights, weights_from_lines
from rerank.notices import Notices

# made up, in the form that train-model.perl and mert-moses.pl write
MOSES = b"""\
# MERT optimized configuration
# BLEU 0.2311 on dev

[input-factors]
0

[feature]
UnknownWordPenalty
KENLM name=LM0 factor=0 path=lm.bin order=5
[weight] # of the features above

UnknownWordPenalty0= 1
LM0= 0.5  # the old one
  TM0=  0.2 0.25\t0.3
Distortion0 0.1
tag_np= 4

[distortion-limit]
6
LM0= 7
""".split(b"\n")[:-1]


def merge(
    lines: Sequence[bytes],
    dense: Mapping[str, Sequence[float]],
    sparse: dict[str, float] | None = None,
    alpha: float | None = None,
    notices: Notices | None = None,
) -> list[bytes]:
    return merged(lines, dense, sparse or {}, alpha, notices or Notices(), source="m.ini")


def test_only_the_values_of_the_weights_given_change() -> None:
    notices = Notices()
    given = {"TM0": (-1.0, 1e-9, 2e20), "LM0": (0.125,), "Distortion0": (0.0,)}
    expected = [*MOSES]
    expected[12] = b"LM0= 0.125  # the old one"
    expected[13] = b"  TM0=  -1 1e-09\t2e20"
    expected[14] = b"Distortion0 0"
    assert merge(MOSES, given, notices=notices) == expected
    assert notices.lines() == []


def test_what_the_section_lacks_is_appended_to_it_with_a_notice() -> None:
    notices = Notices()
    found = merge(
        MOSES, {"rnn": (0.5,), "LM0": (1.0,)}, {"tag_np": 2.0, "tag_x": -1.0}, None, notices
    )
    assert found[15:19] == [b"tag_np= 2", b"rnn= 0.5", b"tag_x= -1", b""]
    assert found[19:] == MOSES[17:]
    assert notices.lines() == [
        "2 x weight appended; Moses refuses the file unless it has this feature: rnn, tag_x, "
        "first at m.ini"
    ]


def test_alpha_is_a_comment_before_the_section() -> None:
    found = merge(MOSES, {"LM0": (0.5,)}, alpha=0.25)
    assert found == [*MOSES[:9], b"# alpha: 0.25", *MOSES[9:]]
    assert read_scale(found) == 0.25
    again = merge(found, {"LM0": (0.5,)}, alpha=2.0)
    assert again == [*MOSES[:9], b"# alpha: 2.0", *MOSES[9:]]
    # the scale of other weights is not that of these
    assert merge(found, {"LM0": (0.5,)})[9] == b"# alpha: null"


def test_a_label_on_several_lines_keeps_its_lines() -> None:
    lines = [b"[weight]", b"TM0= 1", b"LM0= 1", b"TM0= 2 3"]
    assert merge(lines, {"TM0": (4.0, 5.0, 6.0)}) == [
        b"[weight]",
        b"TM0= 4",
        b"LM0= 1",
        b"TM0= 5 6",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"LM0=1", b"LM0=-2"),
        (b"LM0 =\t1 ", b"LM0 =\t-2 "),
        (b"LM0 1 # =", b"LM0 -2 # ="),
    ],
)
def test_lines_are_rewritten_as_they_are_spelled(line: bytes, expected: bytes) -> None:
    assert merge([b"[weight]", line], {"LM0": (-2.0,)}) == [b"[weight]", expected]


def test_a_sparse_name_may_hold_the_sign_of_equality() -> None:
    lines = [b"[weight]", b"t_a= 1", b"t_a== 1", b"t_=b= 1"]
    sparse = {"t_a": 2.0, "t_a=": 3.0, "t_=b": 4.0}
    assert merge(lines, {}, sparse) == [b"[weight]", b"t_a= 2", b"t_a== 3", b"t_=b= 4"]


@pytest.mark.parametrize(
    ("lines", "dense", "message"),
    [
        ([b"LM0= 1"], {"LM0": (1.0,)}, r"m.ini: expected a section \[weight\] to write into"),
        (MOSES, {"TM0": (1.0,)}, r"m.ini:14: expected 1 weights of TM0 as tuned, found 3; is it"),
        (
            [b"[weight]", b"A=", b"A= #1"],
            {"A": (1.0,)},
            r"m.ini:2: expected 1 weights of A .*, found 0",
        ),
        (
            [b"# alpha: 1", b"# alpha: 2"],
            {},
            r"m.ini:2: expected one comment '# alpha: …', found two",
        ),
    ],
)
def test_an_ini_of_another_system_is_refused(
    lines: list[bytes], dense: dict[str, Sequence[float]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        merge(lines, dense)


def test_names_that_an_ini_cannot_hold_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot hold the feature name 'a_b'"):
        merge(MOSES, {"a_b": (1.0,)})


def test_alpha_is_read_from_its_comment_alone() -> None:
    assert read_scale([b"# alpha: chosen by hand", b"# alphas: 3", b"alpha: 4", b"LM0= 1"]) is None
    assert read_scale([b"# alpha: null"]) is None
    assert read_scale([b"x", b" #alpha:  1e-3 "]) == 1e-3


@pytest.mark.parametrize("token", ["0", "-1", "1e999"])
def test_an_alpha_that_is_no_scale_is_refused(token: str) -> None:
    message = re.escape(f"w.ini:2: expected alpha above 0, found '{token}'")
    with pytest.raises(InputError, match=message):
        read_scale([b"", f"# alpha: {token}".encode()], source="w.ini")


positive = st.floats(0, LARGEST, exclude_min=True)
finite = st.floats(-LARGEST, LARGEST)


@given(st.none() | positive)
def test_alpha_reads_back(alpha: float | None) -> None:
    assert read_scale([scale_line("alpha", alpha).encode()]) == alpha


labels = st.from_regex(r"[A-Za-z][0-9A-Za-z]{0,3}", fullmatch=True)
dense_weights = st.dictionaries(
    labels, st.lists(finite, min_size=1, max_size=3).map(tuple), max_size=4
)
tags = st.dictionaries(st.from_regex(r"[a-z]_[!-~]{0,3}", fullmatch=True), finite, max_size=2)
noise = st.lists(
    st.sampled_from([b"", b"# [weight]", b"0", b"KENLM name=LM0", b"[feature]", b"\ttab"]),
    max_size=4,
)


@given(dense_weights, tags, st.none() | positive, noise, noise, st.data())
def test_weights_written_into_an_ini_read_back_and_the_rest_stays(
    dense: dict[str, tuple[float, ...]],
    sparse: dict[str, float],
    alpha: float | None,
    before: list[bytes],
    after: list[bytes],
    data: st.DataObject,
) -> None:
    others = data.draw(st.dictionaries(labels.filter(lambda x: x not in dense), finite))
    present = [name for name in dense if data.draw(st.booleans())]
    old = [f"{name}= {' '.join('1' for _ in dense[name])}  # old".encode() for name in present]
    kept = [f"{name}= {value!r}".encode() for name, value in others.items()]
    section = data.draw(st.permutations([*old, *kept, b"", b"# a comment"]))
    lines = [*before, b"[weight]", *section, b"[end]", *after]
    found = merged(lines, dense, sparse, alpha, Notices())
    if not any(map(any, dense.values())) and not any(sparse.values()) and not any(others.values()):
        return
    back = weights_from_lines(found, Notices())
    expected = {**dense, **{name: (value,) for name, value in others.items()}}
    assert back == Weights(expected, sparse, alpha)
    untouched = [line for line in lines if line not in old]
    assert [line for line in found if line in untouched][: len(untouched)] == untouched
    assert merged(found, dense, sparse, alpha, Notices()) == found


def test_of_an_init_opt_the_start_weights_are_read() -> None:
    notices = Notices()
    dense, sparse, _ = read_ini([b"1 0.5 -1", b"0 0 -2", b"1 1 1", b""], notices, source="init.opt")
    assert (dense, sparse) == ({"F0": (1.0,), "F1": (0.5,), "F2": (-1.0,)}, {})
    assert notices.lines() == [
        "1 x init.opt of Moses' mert; its start weights are read, and not its ranges, "
        "first at init.opt:1"
    ]


@pytest.mark.parametrize("text", ["1\n0\n2", "1 2\n3 1\n2 2", "1 2\n0 0", "1 2\n0 0\n1"])
def test_other_lines_of_numbers_are_all_weights(text: str) -> None:
    dense, _, _ = read_ini(text.encode().split(b"\n"), Notices())
    assert sum(map(len, dense.values())) == len(text.split())
