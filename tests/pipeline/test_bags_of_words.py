"""Lin et al.'s models through the command line: trained, measured, and a greedy reranking."""

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from rerank.cli import run

THINGS = ("lamp", "boat", "king", "moon")
SMALL = "--device cpu --threads 1 --precision float32 --vocab 30 --hidden 8 --hash-size 500"
LISTS = "--kbest dev.kbest --docs dev.docs"
MODELS = "--lm sl=rnnslm --lm wl=hrnnlm-lin"


def document(rng: np.random.Generator, n: int) -> list[str]:
    """Sentences about one thing."""
    thing = rng.choice(THINGS)
    ends = rng.choice(["old", "red", "far off"], n)
    return [f"the {thing} is {end}" for end in ends]


def text_of(seed: int, n: int) -> str:
    rng = np.random.default_rng(seed)
    return "\n\n".join("\n".join(document(rng, 4)) for _ in range(n)) + "\n"


def write_lists(seed: int) -> None:
    """10-best lists of three documents: the reference with other things, in any order.

    The first candidate of a document's first sentence is the reference.
    """
    rng = np.random.default_rng(seed)
    kbest, docs, refs = [], [], []
    for d in range(3):
        for t, reference in enumerate(document(rng, 4)):
            thing = reference.split()[1]
            others = [
                reference.replace(thing, other).replace("is", verb)
                for other in THINGS
                for verb in ("is", "was", "not")
            ]
            candidates = [others[k] for k in rng.permutation(len(others))[:9]]
            place = 0 if t == 0 else int(rng.integers(10))
            candidates.insert(place, reference)
            kbest += [
                f"{len(docs)} ||| {c} ||| LM0= {-k / 10} ||| {-k / 10}"
                for k, c in enumerate(candidates)
            ]
            docs.append(f"d{d}")
            refs.append(reference)
    for name, lines in (("dev.kbest", kbest), ("dev.docs", docs), ("dev.ref", refs)):
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder with texts, lists and the three models, as the current one."""
    folder = tmp_path_factory.mktemp("lin")
    with chdir(folder):
        Path("train.txt").write_text(text_of(1, 40), encoding="utf-8")
        Path("valid.txt").write_text(text_of(2, 8), encoding="utf-8")
        write_lists(3)
        data = "--train train.txt --valid valid.txt --streams 4 --learning-rate 0.05 --quiet"
        for name in ("rnnslm", "rnnlm-lin", "hrnnlm-lin"):
            command = f"train-lm --model {name} --out {name} --epochs 5 {data} {SMALL}"
            assert run(command.split()) == 0
        yield folder


def shown(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(command.split()) == 0
    return capsys.readouterr().out


def nats(model: str, capsys: pytest.CaptureFixture[str]) -> float:
    out = shown(f"perplexity --lm {model} valid.txt --format json --device cpu", capsys)
    figures = json.loads(out)
    key = "nats_per_word_of_a_bag" if model == "rnnslm" else "nats_per_token"
    assert ("perplexity" in figures) == (model != "rnnslm")
    return float(figures[key])


def test_the_sentence_level_helps_the_words(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The thing of a document is known after its first sentence."""
    assert nats("hrnnlm-lin", capsys) < nats("rnnlm-lin", capsys) - 0.02


def test_bags_are_predicted_better_than_by_frequencies(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = Path("train.txt").read_text(encoding="utf-8").split()
    _, counts = np.unique(words, return_counts=True)
    shares = counts / counts.sum()
    assert nats("rnnslm", capsys) < -float((shares * np.log(shares)).sum()) - 0.1


def test_perplexity_says_that_bags_are_not_comparable(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown("perplexity --lm rnnslm valid.txt --device cpu", capsys)
    assert "nats per word of a bag of words" in out
    assert "not comparable with perplexities of other models" in out
    assert "perplexity " not in out.split("not comparable")[0]


def test_greedy_reranking_of_ten_best_lists_finds_the_things_of_the_documents(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """§6.3.2: weights by MERT, then left to right, each sentence after the choices before it."""
    tuned = f"tune-mert {LISTS} {MODELS} --ref dev.ref --out w.json"
    assert run([*tuned.split(), "--search", "greedy", "--quiet", "--device", "cpu"]) == 0
    weights = json.loads(Path("w.json").read_text(encoding="utf-8"))["weights"]
    assert weights["sl"] or weights["wl"]
    decoded = f"decode {LISTS} {MODELS} --weights w.json --search greedy --out out.txt --quiet"
    assert run([*decoded.split(), "--device", "cpu"]) == 0
    lines = Path("out.txt").read_text(encoding="utf-8").split("\n")
    references = Path("dev.ref").read_text(encoding="utf-8").split("\n")
    things = [line.split()[1:2] for line in lines]
    assert sum(a == b.split()[1:2] for a, b in zip(things, references, strict=True)) >= 11


def test_scores_of_bags_do_not_depend_on_the_order_of_words(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("dev.kbest").read_text(encoding="utf-8").splitlines()
    turned = []
    for line in lines:
        number, text, *rest = line.split(" ||| ")
        turned.append(" ||| ".join([number, " ".join(reversed(text.split())), *rest]))
    Path("turned.kbest").write_text("\n".join(turned) + "\n", encoding="utf-8")
    found = []
    for name in ("dev", "turned"):
        command = f"score --kbest {name}.kbest --docs dev.docs --lm sl=rnnslm --out {name}.scored"
        assert run([*command.split(), "--quiet", "--device", "cpu"]) == 0
        scored = Path(f"{name}.scored").read_text(encoding="utf-8").splitlines()
        found.append([float(line.split(" sl= ")[1].split()[0]) for line in scored])
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    assert len(set(np.round(found[0], 3))) > 20


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--model rnnslm --embed 4", "--embed 4: rnnslm has no embeddings beside its hidden"),
        ("--model rnnslm --recurrence lstm", "--recurrence lstm: rnnslm has a recurrence of its"),
        ("--model hrnnlm-lin --tied", "--tied: hrnnlm-lin has separate matrices"),
        ("--model rnnslm --head softmax", "--head softmax: rnnslm has a head of its own"),
        ("--model rnnslm --hash-order 3", "--hash-order 3: no part of this rnnslm"),
        ("--model codclm --hash-size 99", "--hash-size 99: no part of this codclm"),
        ("--model rnnlm-lin --hash-size 4", "--hash-size 4: expected at least a slot for each"),
        ("--model rnnlm-lin --negatives 5", "--negatives 5: the head of this model is trained"),
    ],
)
def test_options_that_the_equations_leave_no_room_for_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], options: str, told: str
) -> None:
    command = f"train-lm {options} --train train.txt --valid valid.txt --out other --hidden 8"
    capsys.readouterr()
    assert run(command.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert told in line
    assert not Path("other").exists()
