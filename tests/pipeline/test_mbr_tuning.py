"""`tune_mbr`: what it says of a spread is what `decode` writes under it, by sacrebleu."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from support.files import write

from decoders.mbr import SPREAD
from decoders.search import Options
from rerank.errors import InputError, UsageError
from rerank.formats.weights import read_weights
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices
from rerank.pipeline import Lists, MbrTuning, Search, decode, tune_mbr
from rerank.tuning.spread import SPREADS, choose_spread

WORDS = ("the", "a", "lamp", "is", "lit", "it", "she", "gives", "light", "burns")
DOCS = ("v",) * 5 + ("w",) * 4 + ("x",) * 7 + ("y",) * 2 + ("z",) * 6
HOLES = {3, 16, 17}  # the last two are a document
WEIGHTS = {"LM0": [1.0], "TM0": [0.5]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: lists in which candidates with fewer faults resemble each other more."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    lines, references = [], []
    for t in range(len(DOCS)):
        words = rng.choice(WORDS, 8).tolist()
        references.append(" ".join(words))
        for faults in [] if t in HOLES else rng.integers(0, 5, 7).tolist():
            wrong = [*words]
            for place in rng.choice(8, faults, replace=False).tolist():
                wrong[place] = rng.choice(WORDS)
            lm, tm = (-faults + 3 * rng.standard_normal(2)).round(2).tolist()
            lines.append(f"{t} ||| {' '.join(wrong)} ||| LM0= {lm} TM0= {tm} ||| 0")
    write("dev.kbest", lines)
    write("dev.docs", DOCS)
    write("dev.ref", references)
    write("w.json", [json.dumps({"schema": 1, "weights": WEIGHTS, "alpha": 0.01})])
    return tmp_path


def lists(folder: Path | None = None) -> Lists:
    return Lists("dev.kbest", "dev.docs", lms=(("lm", folder),) if folder else ())


def weigh(**more: Any) -> None:
    """Weights with these entries, and those of a language model."""
    weights = {**WEIGHTS, "lm": [0.25], "lmoov": [-0.5]}
    write("w.json", [json.dumps({"schema": 1, "weights": weights, **more})])


def tuned(given: Lists, out: str = "mbr.json", **options: Any) -> MbrTuning:
    options = {"search": Search("mbr"), "notices": Notices(), **options}
    return tune_mbr(given, ["dev.ref"], options.pop("weights", "w.json"), out, **options)


def texts(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").split("\n")[:-1]


def decoded(given: Lists, search: Search, weights: str = "w.json") -> list[str]:
    decode(given, weights, "out.txt", search=search, notices=Notices())
    return texts("out.txt")


def bleu(hypotheses: list[str]) -> float:
    found = sacrebleu.corpus_bleu(hypotheses, [texts("dev.ref")], tokenize="none", force=True)
    return float(found.score)


@pytest.mark.parametrize("name", [None, "codclm", "ccdclm"])
def test_scores_are_those_of_decoding(
    here: Path, model_folders: Mapping[str, Path], name: str | None
) -> None:
    if name:
        weigh()
    given = lists(model_folders[name] if name else None)
    options = Options(particles=8) if name == "ccdclm" else Options()
    said: list[str] = []
    found = tuned(given, search=Search("mbr", options), announce=said.append).choice
    assert found.plain == pytest.approx(bleu(decoded(given, Search())), rel=1e-12)
    default = bleu(decoded(given, Search("mbr", options)))
    assert found.default == pytest.approx(default, rel=1e-12)
    assert re.search(rf"^BLEU by spread: 0\.35: .*, 1\.4: {default:.2f}, 2: ", said[-1])
    assert found.folds == len(set(DOCS))


def test_the_choice_is_that_on_the_statistics_of_what_is_decoded(here: Path) -> None:
    """With a utility and a reward, which change what is decoded."""
    options: dict[str, Any] = {"utility": "linear-bleu", "word_reward": 0.25}
    metric, starts = Bleu(), [DOCS.index(name) for name in sorted(set(DOCS))]

    def statistics(search: Search) -> np.ndarray[Any, Any]:
        rows = zip(decoded(lists(), search), texts("dev.ref"), strict=True)
        counts = [metric.statistics([[t.encode()]], [[r.encode()]])[0] for t, r in rows]
        return np.asarray(np.add.reduceat(np.array(counts), starts))

    sums = [statistics(Search("mbr", Options(spread=s, **options))) for s in SPREADS]
    truth = choose_spread(np.array(sums), statistics(Search()), metric)
    assert tuned(lists(), search=Search("mbr", Options(**options))).choice == truth
    assert tuned(lists()).choice != truth


def test_the_spread_goes_to_the_weights_file_from_which_decode_reads_it(here: Path) -> None:
    write("w.json", [json.dumps({"schema": 1, "weights": WEIGHTS, "alpha": 3.0})])
    for out in ("mbr.json", "mbr.ini"):
        found = tuned(lists(), out)
        read = read_weights(out, Notices())
        assert (read.dense, read.alpha) == ({n: tuple(w) for n, w in WEIGHTS.items()}, 3.0)
        assert read.mbr_spread == found.choice.spread
        of_option = decoded(lists(), Search("mbr", Options(spread=found.choice.spread)))
        assert decoded(lists(), Search("mbr"), out) == of_option
    made = json.loads(Path("mbr.json").read_text(encoding="utf-8"))["provenance"]["mbr"]
    assert made["utility"] == "bleu"
    assert {key: made[key] for key in ("held_out", "by_spread")} == found.choice.to_provenance()


def test_other_metrics_are_followed(here: Path) -> None:
    chrf = sacrebleu.corpus_chrf(decoded(lists(), Search()), [texts("dev.ref")]).score
    found = tuned(lists(), metric="chrf")
    assert found.choice.plain == pytest.approx(chrf, rel=1e-12)
    assert found.to_text().startswith(f"chrF2: spread {found.choice.spread:g}, ")


def test_lists_that_the_weights_were_tuned_on_are_noticed(here: Path) -> None:
    from rerank.files.lines import digest

    inputs = [{"file": "dev.kbest", "digest": digest("dev.kbest")}]
    for made, told in ((inputs, 1), ([{"file": "dev.kbest", "digest": "sha256:0"}], 0)):
        content = {"schema": 1, "weights": WEIGHTS, "provenance": {"inputs": made}}
        write("w.json", [json.dumps(content)])
        notices = Notices()
        tuned(lists(), notices=notices)
        assert len([one for one in notices if "tuned on these lists" in one.kind]) == told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": Search("mbr", Options(alpha=1.0))}, "leave out --alpha and --spread"),
        ({"search": Search("beam")}, "--search beam: tune-mbr is for mbr"),
        ({"search": Search("mbr", Options(spread=1.0))}, "leave out --alpha and --spread"),
        ({"search": Search("mbr", Options(particles=9))}, "--particles above order 1"),
        ({"search": Search("mbr", Options(utility="ter"))}, "--utility ter: there are bleu"),
        ({"metric": "chrf", "tokenize": "13a"}, "--tokenize: it is for --metric bleu"),
        ({"metric": "blue"}, "no metric 'blue'; did you mean bleu"),
        ({"out": "mbr.txt"}, "expected a weights file .json or .ini"),
        ({"out": "w.json"}, "w.json"),
    ],
)
def test_options_without_sense_are_refused(
    here: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        tuned(lists(), options.pop("out", "mbr.json"), **options)
    assert sorted(Path().iterdir()) == [Path(f"dev.{x}") for x in ("docs", "kbest", "ref")] + [
        Path("w.json")
    ]


def test_weights_that_are_all_zero_need_no_scale(here: Path) -> None:
    write("w.json", [json.dumps({"LM0": 0, "TM0": 0})])
    with pytest.raises(InputError, match="all-zero weights; mbr needs no scale for them"):
        tuned(lists())


def test_the_default_is_the_one_that_decode_has() -> None:
    assert SPREADS[0] == SPREAD
    assert len(set(SPREADS)) == len(SPREADS)
