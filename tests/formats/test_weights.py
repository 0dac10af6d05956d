"""Weight files: what is written reads back, what others write is read, the rest is refused."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus import LARGEST
from rerank.corpus.labels import Label
from rerank.errors import InputError, UsageError
from rerank.formats.weights import (
    Weights,
    read_start_weights,
    read_weights,
    to_ini,
    to_json,
    vector,
    weights_from_lines,
    write_weights,
)
from rerank.notices import Notices

DATA = Path(__file__).parents[2].parent / "shared" / "data"

finite = st.floats(-LARGEST, LARGEST)
json_values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | finite
all_weights = st.builds(
    Weights,
    dense=st.dictionaries(
        st.from_regex(r"[A-Za-z][0-9A-Za-z]{0,5}", fullmatch=True),
        st.lists(finite, min_size=1, max_size=3).map(tuple),
        max_size=4,
    ),
    sparse=st.dictionaries(
        st.from_regex(r"[a-z]{1,3}_[!-~]{0,5}", fullmatch=True), finite, max_size=4
    ),
    alpha=st.none() | st.floats(0, LARGEST, exclude_min=True),
    mbr_spread=st.none() | st.floats(0, LARGEST, exclude_min=True),
    provenance=st.dictionaries(st.text(max_size=5), json_values, max_size=3),
).filter(lambda w: any(map(any, w.dense.values())) or any(w.sparse.values()))


def read(content: bytes, notices: Notices | None = None) -> Weights:
    return weights_from_lines(content.split(b"\n"), notices or Notices(), source="w.ini")


@given(all_weights)
def test_json_reads_back_equal(weights: Weights) -> None:
    assert read(to_json(weights)) == weights


@given(all_weights)
def test_an_ini_file_reads_back_its_weights_and_alpha(weights: Weights) -> None:
    found = read(to_ini(weights))
    assert found == replace(weights, provenance={})


@given(all_weights)
def test_an_ini_file_is_what_the_rescoring_script_of_moses_takes(weights: Weights) -> None:
    """Its reader: lines after the first `[weight]`, a label with `=`, then what `float` reads."""
    lines = to_ini(weights).decode().split("\n")
    found = [line.split() for line in lines[lines.index("[weight]") + 1 :] if line.strip()]
    assert {label: tuple(map(float, values)) for label, *values in found} == {
        **{f"{name}=": values for name, values in weights.dense.items()},
        **{f"{name}=": (value,) for name, value in weights.sparse.items()},
    }


@pytest.mark.parametrize("suffix", [".json", ".ini"])
def test_files_read_back(tmp_path: Path, suffix: str) -> None:
    weights = Weights({"LM0": (0.1,), "TM0": (0.2, -1e-9)}, {"tag_np": 3.0})
    write_weights(tmp_path / f"w{suffix}", weights)
    assert read_weights(tmp_path / f"w{suffix}", Notices()) == weights


def test_standard_output_gets_json_and_with_a_base_that_file(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    weights = Weights({"LM0": (0.5,)})
    write_weights("-", weights)
    assert capsysbinary.readouterr().out == to_json(weights)
    write_weights("-", weights, base=[b"[weight]", b"LM0= 1"])
    assert capsysbinary.readouterr().out == b"[weight]\nLM0= 0.5\n"


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a weights file .json or .ini"):
        write_weights(tmp_path / "w.txt", Weights({"LM0": (0.1,)}))
    assert list(tmp_path.iterdir()) == []


def test_an_ini_file_is_what_moses_reads() -> None:
    weights = Weights({"LM0": (0.5,), "TM0": (1.0, -2e20)}, {"t_a": 3.0}, 0.25, {"seed": 1})
    assert to_ini(weights).decode() == (
        "# seed: 1\n# alpha: 0.25\n\n[weight]\nLM0= 0.5\nTM0= 1 -2e20\nt_a= 3\n"
    )


def test_a_moses_ini_is_written_with_the_weights_in_it(tmp_path: Path) -> None:
    base = [b"[feature]", b"KENLM name=LM0", b"[weight]", b"LM0= 1 # was 1", b"[threads]", b"4"]
    weights = Weights({"LM0": (0.5,)}, alpha=3.0, provenance={"seed": 1})
    write_weights(tmp_path / "moses.ini", weights, base=base)
    assert (tmp_path / "moses.ini").read_text() == (
        "[feature]\nKENLM name=LM0\n# alpha: 3.0\n[weight]\nLM0= 0.5 # was 1\n[threads]\n4\n"
    )
    assert read_weights(tmp_path / "moses.ini", Notices()) == replace(weights, provenance={})
    with pytest.raises(UsageError, match=r"expected a weights file .ini, like --base"):
        write_weights(tmp_path / "moses.json", weights, base=base)


@pytest.mark.parametrize(
    "weights",
    [
        Weights({"a b": (1.0,)}),
        Weights({"": (1.0,)}),
        Weights({"[x": (1.0,)}),
        Weights({"a_b": (1.0,)}),
        Weights({"LM0": (1.0,)}, {"ab": 1.0}),
    ],
)
def test_names_that_an_ini_file_cannot_hold_are_refused(weights: Weights) -> None:
    with pytest.raises(UsageError, match="cannot hold the feature name"):
        to_ini(weights)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            b"# by hand\n\n[weight]\nLM0= 0.5\nTM0= 1 -2 # two\ntag_a= 3\n", id="rescore.ini"
        ),
        pytest.param(
            b"[input-factors]\n0\n[feature]\nKENLM name=LM0 order=5\n[weight] # tuned\n"
            b"LM0= 0.5\nTM0= 1 -2\ntag_a= 3\n[other]\nx\n",
            id="moses.ini",
        ),
        pytest.param(b"LM0= 0.5\nTM0= 1\nTM0= -2\ntag_a= 3\n", id="run1.dense"),
        pytest.param(b"LM0 0.5\nTM0 1 -2\ntag_a 3\n", id="cdec and kbmira"),
        pytest.param(b"LM0 = 0.5\nTM0 = 1 -2\ntag_a = 3\n", id="blanks around ="),
        pytest.param(b"LM0=0.5 TM0=1 -2 tag_a=3\n", id="travatar"),
        pytest.param(b'{"LM0": 0.5, "TM0": [1, -2], "tag_a": 3}', id="plain JSON"),
    ],
)
def test_what_other_tools_write_is_read(content: bytes) -> None:
    found = read(content)
    values = {**found.dense, **{name: (w,) for name, w in found.sparse.items()}}
    assert {name: w if isinstance(w, tuple) else (w,) for name, w in values.items()} == {
        "LM0": (0.5,),
        "TM0": (1, -2),
        "tag_a": (3,),
    }


def test_a_file_of_sparse_weights_that_is_not_read_is_named() -> None:
    notices = Notices()
    read(b"[weight-file]\nsparse.txt\n[weight]\nLM0= 1\n", notices)
    assert notices.lines() == [
        "1 x [weight-file] ignored; its weights are not read, first at w.ini:1"
    ]


def test_weights_of_functions_that_are_never_tuned_are_left_out_with_a_notice() -> None:
    notices = Notices()
    content = b"""[feature]
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
    found = weights_from_lines(content.split(b"\n"), notices, source="moses.ini")
    assert found.dense == {"LM0": (0.5,), "WordPenalty0": (-1.0,), "Distortion0": (0.2,)}
    kind = "weight of a feature that is never tuned, left out, as k-best lists leave it out"
    assert notices.lines() == [f"2 x {kind}, first at moses.ini:9"]


def test_what_show_weights_prints_is_read() -> None:
    notices = Notices()
    found = weights_from_lines([b"LM0= 0.5", b"UnknownWordPenalty0 UNTUNEABLE"], notices)
    assert found.dense == {"LM0": (0.5,)}
    assert "never tuned" in notices.lines()[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "w.ini: expected weights.*found none"),
        (b"[ttable-limit]\n20\n", r"section \[weight\], found none"),
        (b"[weight]\nLM0= nan\n", "w.ini:2: expected a decimal number for LM0, found 'nan'"),
        (b"[weight]\nLM0= 1e999\n", "w.ini:2: expected a finite number"),
        (b"[weight]\nTM0= UNTUNEABLECOMPONENT\n", "section .weight., found none"),
        (b"[weight]\nUNTUNEABLECOMPONENT\n", "section .weight., found none"),
        (b"[weight]\nLM0=\n", "w.ini:2: expected a number after 'LM0='"),
        (b"[weight]\n=\n", "w.ini:2: expected"),
        (b"a_b= 1\na_b= 2\n", "w.ini:2: expected one weight of 'a_b', found two"),
        (b"not used\n", "w.ini: expected weights, found 'not used', which mert-moses.pl writes"),
        (b"# alpha: -1\n[weight]\nLM0= 1\n", "w.ini:1: expected alpha above 0, found '-1'"),
        (b"# mbr_spread: 0\n[weight]\nLM0= 1\n", "w.ini:1: expected mbr_spread above 0, found '0'"),
        (
            b'{"schema": 1, "weights": {"LM0": 1}, "mbr_spread": -1}',
            "found mbr_spread -1; mbr_spre",
        ),
        (b'{"schema": 1}', "expected JSON weights, found none"),
        (b"{}", "expected JSON weights, found none"),
        (b'{"schema": 1,\n"weights": {"LM0": [0.1}}', "w.ini:2: expected JSON"),
        (b'{"schema": 1, "weights": {"LM0": [NaN]}}', "found NaN"),
        (b'{"schema": 1, "weights": {"LM0": [1e999]}}', "weights are finite numbers"),
        (b'{"schema": 1, "weights": {"LM0": [true]}}', "weights are finite numbers"),
        (b'{"schema": 1, "weights": {"LM0": "1"}}', "weights are finite numbers"),
        (b'{"schema": 1, "weights": [1]}', "found no object at 'weights'"),
        (
            b'{"schema": 1, "weights": {"LM0": 1, "LM0": 2}}',
            "found the key 'LM0' twice in one object",
        ),
        (b'{"schema": 1, "weigths": {"LM0": 1}}', "did you mean 'weights'"),
        (b'{"schema": 2, "weights": {"LM0": 1}}', "found schema 2; this version reads 1"),
        (b'{"schema": 1, "weights": {"LM0": 1}, "alpha": 0}', "found alpha 0"),
        (b'{"schema": 1, "weights": {"LM0": 1}, "alpha": "x"}', "found 'alpha': 'x'"),
        (b'{"weights": {"LM0": 1}}', "found 'weights'"),
        (b'{"\\ud800": 1}', "expected JSON weights"),
        (b'{"LM0": ' + b"1" * 5000 + b"}", "expected JSON weights"),
        (b'{"LM0": ' + b"1" * 400 + b"}", "expected JSON weights"),
        (b'{"LM0":' + b"[" * 200_000, "expected JSON"),
        (b'{"LM0":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "expected JSON"),
    ],
)
def test_what_is_no_weights_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(content)
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize(
    "content", [b"LM0= 0\na_b= 0\n", b'{"LM0": [0.0, 0]}', b'{"schema": 1, "sparse": {"a_b": 0}}']
)
def test_all_zero_weights_are_read_but_no_tuning_starts_from_them(
    content: bytes, tmp_path: Path
) -> None:
    assert read(content).all_zero
    path = tmp_path / "w"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"w: expected .*, found all-zero weights; leave out"):
        read_start_weights(path, Notices())
    path.write_bytes(content.replace(b" 0", b" -1", 1))
    assert not read_start_weights(path, Notices()).all_zero


noise = st.lists(
    st.sampled_from(
        [b"[weight]", b"{", b"}", b'"a"', b":", b"[", b"]", b"1", b"a=", b"a_b= 1", b"#"]
    )
    | st.sampled_from([b"\n", b" ", b",", b"nan", b"NaN", b"null", b'"schema": 1', b"\xff", b"x"]),
    max_size=20,
).map(b"".join)


@settings(max_examples=50)
@given(noise | st.binary(max_size=30))
def test_any_bytes_are_weights_or_an_input_error(content: bytes) -> None:
    try:
        found = read(content)
    except InputError:
        return
    values = [*(v for w in found.dense.values() for v in w), *found.sparse.values()]
    assert values
    assert all(map(math.isfinite, values))


LABELS = (Label("LM0", 1), Label("TM0", 2))


def test_a_vector_is_in_the_order_of_the_list() -> None:
    weights = Weights({"TM0": (1.0, 2.0), "LM0": (3.0,)}, {"a_b": 4.0})
    assert vector(weights, LABELS).tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ({"LM": (1.0,), "TM0": (1.0, 1.0)}, "w.ini: .*found one of 'LM'; did you mean 'LM0'"),
        ({"LM0": (1.0,)}, "found none for 'TM0'; .*--default-weight 0"),
        ({"LM0": (1.0,), "TM0": (1.0,)}, "expected 2 weights for 'TM0', one per .*, found 1"),
        ({"LM0": (1.0,), "TM0": (1.0, 1.0), "Foo": (1.0,)}, "'Foo'; there are: LM0, TM0"),
    ],
)
def test_weights_that_do_not_fit_the_list_are_refused(
    dense: dict[str, tuple[float, ...]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        vector(Weights(dense), LABELS, source="w.ini")
    with pytest.raises(InputError, match=r"w.ini: .*; there are none"):
        vector(Weights(dense), (), source="w.ini")


def test_a_default_stands_for_weights_that_are_missing_and_is_counted() -> None:
    notices = Notices()
    assert vector(Weights({"LM0": (3.0,)}), LABELS, default=0, notices=notices).tolist() == [
        3,
        0,
        0,
    ]
    assert notices.lines() == ["1 x feature without weight; 0 is used: TM0"]


def test_the_weight_of_unknown_words_may_stand_in_a_moses_ini() -> None:
    weights = Weights({"UnknownWordPenalty0": (1.0,), "LM0": (3.0,)})
    assert vector(weights, [Label("LM0", 1)]).tolist() == [3]
    with_it = [Label("UnknownWordPenalty0", 1), Label("LM0", 1)]
    assert vector(weights, with_it).tolist() == [1, 3]


def test_json_is_json() -> None:
    values = json.loads(to_json(Weights({"LM0": (0.1,)}, alpha=2.0)))
    assert values == {
        "schema": 1,
        "weights": {"LM0": [0.1]},
        "sparse": {},
        "alpha": 2.0,
        "provenance": {},
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
def test_the_weights_of_the_system_explain_its_totals() -> None:
    # Moses prints six digits and adds -100 for each unknown word, which is no feature
    from rerank.corpus.documents import Documents
    from rerank.formats.table import read_documents

    weights = read_weights(DATA / "tvsub-zh-en" / "moses.rescore.ini", Notices())
    lists = read_documents(
        DATA / "tvsub-zh-en" / "test3ref.nbest.gz", Documents.one(1154), Notices()
    )
    for kbest in lists:
        assert kbest.totals is not None
        gap = kbest.totals - kbest.dense @ vector(weights, kbest.labels)
        np.testing.assert_allclose(gap, 100 * np.round(gap / 100), atol=2e-3)
