"""Lines of `decode --trace`: texts, differences of features, and choices without context."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.files import read, write_weights

from rerank.notices import Notices
from rerank.pipeline import Lists, Reports, decode

WEIGHTS = {"LM0": [0.125], "TM0": [0.0, 0.0], "lm": [4.0], "lmoov": [-0.5]}
every_order = pytest.mark.parametrize("name", ["rnnlm", "codclm", "drnnlm"])


@pytest.fixture(autouse=True)
def here(tuning_lists: Path) -> None:
    write_weights("w.json", WEIGHTS)


def decoded(folder: Path, **options: object) -> list[str]:
    given = Lists("dev.kbest", lms=(("lm", folder),), **{"docs": "dev.docs", **options})  # type: ignore[arg-type]
    decode(given, "w.json", "out.txt", reports=Reports(trace="out.trace"), notices=Notices())
    return read("out.txt")


@every_order
def test_a_trace_has_texts_and_differences_of_what_was_decoded(
    name: str, model_folders: Mapping[str, Path]
) -> None:
    chosen = decoded(model_folders[name])
    first = decoded(model_folders[name], top=1)
    alone = decoded(model_folders[name], docs=None, no_docs="each")
    decoded(model_folders[name])
    documents = read("dev.docs")
    for line in map(json.loads, read("out.trace")):
        t = documents.index(line["document"]) + line["sentence"]
        assert line["texts"]["chosen"] == chosen[t]
        assert line["texts"]["first"] == first[t]
        over_first, over_other = line["over_first"], line["over_runner_up"]
        assert over_first.keys() == line["weighted"].keys()
        if line["chosen"] == line["first"]:
            assert set(over_first.values()) == {0.0}
        if over_other is not None:
            assert sum(over_other.values()) == pytest.approx(line["margin"], abs=1e-5)
            assert line["runner_up"] != line["chosen"]
        if name == "rnnlm":
            assert line["alone"] is None
        else:
            assert line["alone"]["text"] == alone[t]
            assert (line["alone"]["lead"] > 0) == (line["alone"]["chosen"] != line["chosen"])


def test_the_differences_from_the_first_candidate_are_of_weights_times_features(
    model_folders: Mapping[str, Path],
) -> None:
    """Of features of the list, which are read from the file here."""
    decoded(model_folders["codclm"])
    rows: dict[int, list[list[float]]] = {}
    for line in read("dev.kbest"):
        number, _, features, _ = line.split(" ||| ")
        values = [float(x) for x in features.split() if not x.endswith("=")]
        rows.setdefault(int(number), []).append(values)
    documents = read("dev.docs")
    for line in map(json.loads, read("out.trace")):
        own = rows[documents.index(line["document"]) + line["sentence"]]
        difference = np.subtract(own[line["chosen"]], own[0]) * [0.125, 0.0, 0.0]
        found = [line["over_first"][name] for name in ("LM0", "TM0_0", "TM0_1")]
        assert found == pytest.approx(difference.tolist())
