"""The models of Ji et al. and of the memo through the command line: trained, scored, searched."""

import json
import math
from itertools import product
from pathlib import Path

import pytest

from rerank.cli import run

TEXT = """\
the lamp is lit
it is UNK now
= =
the boat is old
no one is here
=
it is dark
so it is
="""
LISTS = [["the lamp is lit", "a lamp", "it is old"], ["it is dark", "the boat", "so it burns"]]
COMMON = "--documents equals --embed 4 --hidden 6 --epochs 2 --streams 2 --learning-rate 0.1"
MODELS = [
    "adclm --attention 5 --layers 2 --recurrence cifg",
    "dam --attention 5 --layers 2 --recurrence cifg-2015",
    "drnnlm --recurrence gru",
    "ccdclm --fusion input-sum --recurrence rnn",
    "codclm --fusion merge",
    "dclm --encoder rnn --sentence-recurrence gru",
    "dclm --encoder bag --recurrence tanh --fusion input",
    "dclm-decoupled --encoder sum",
    "dclm-two-sentence --layers 2",
]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_trained_measured_scored_and_searched(
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The document found is the best of all nine, by the scores of texts of two sentences."""
    from lm.checkpoint import load_model
    from lm.corpus import encode
    from lm.evaluation import perplexity

    monkeypatch.chdir(tmp_path)
    Path("text").write_text(TEXT, encoding="utf-8")
    lists = [f"{t} ||| {words} ||| |||\n" for t, own in enumerate(LISTS) for words in own]
    Path("lists").write_text("".join(lists).replace("||| |||", "||| tm= 0 ||| 0"), encoding="utf-8")
    weights = {"schema": 1, "weights": {"tm": [1.0], "lm": [1.0], "lmoov": [0.0]}}
    Path("w.json").write_text(json.dumps(weights), encoding="utf-8")
    options = f"--unknown UNK --train text --valid text --out folder -q {COMMON}"
    assert run(f"train-lm --model {model} {options}".split()) == 0
    measure = "perplexity --lm folder text --documents equals --format json -q"
    assert run(measure.split()) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["sentences"], measured["tokens"], measured["oov"]) == (6, 22, 1)
    assert measured["duplicate_last_word"] is False
    use = "--lm lm=folder --kbest lists --no-docs one --no-cache -q"
    assert run(f"score {use} --out scored --weights w.json".split()) == 0
    assert run(f"decode {use} --weights w.json --search beam --beam 9 --out best".split()) == 0
    saved = load_model(Path("folder"))
    nats = {
        path: perplexity(
            saved.model, encode([words.encode() for words in path], saved.vocabulary)
        ).nats
        for path in product(*LISTS)
    }
    best = min(nats, key=lambda path: nats[path])
    assert Path("best").read_text(encoding="utf-8").splitlines() == list(best)
    scored = Path("scored").read_text(encoding="utf-8").splitlines()
    features = [line.split("lm= ")[1].split()[0] for line in scored]
    alone = perplexity(saved.model, encode([LISTS[0][1].encode()], saved.vocabulary)).nats
    assert math.isclose(float(features[1]), -alone, abs_tol=1e-3)
