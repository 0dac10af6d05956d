"""Lin et al.'s models through the command line: trained, measured, and a greedy reranking."""

import json
import re
from collections.abc import Iterator
from contextlib import chdir
from itertools import permutations
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
    kbest: list[str] = []
    docs: list[str] = []
    refs: list[str] = []
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
        data = "--train train.txt --valid valid.txt --streams 4 --learning-rate 0.03 --quiet"
        for name, epochs in (("rnnslm", 6), ("rnnlm-lin", 1), ("hrnnlm-lin", 6)):
            command = f"train-lm --model {name} --out {name} --epochs {epochs} {data} {SMALL}"
            assert run(command.split()) == 0
        yield folder


def shown(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(command.split()) == 0
    return capsys.readouterr().out


def nats(model: str, capsys: pytest.CaptureFixture[str], text: str = "valid.txt") -> float:
    out = shown(f"perplexity --lm {model} {text} --format json --device cpu", capsys)
    figures = json.loads(out)
    key = "nats_per_word_of_a_bag" if model == "rnnslm" else "nats_per_token"
    assert ("perplexity" in figures) == (model != "rnnslm")
    return float(figures[key])


@pytest.mark.parametrize("name", ["rnnslm", "hrnnlm-lin"])
def test_the_sentences_before_help(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thing of a document is known after its first sentence."""
    text = Path("valid.txt").read_text(encoding="utf-8")
    Path("alone.txt").write_text(text.replace("\n", "\n\n"), encoding="utf-8")
    assert nats(name, capsys) < nats(name, capsys, "alone.txt") - 0.005


def test_words_alone_do_not_depend_on_the_sentences_before(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("valid.txt").read_text(encoding="utf-8")
    Path("alone.txt").write_text(text.replace("\n", "\n\n"), encoding="utf-8")
    whole, alone = (nats("rnnlm-lin", capsys, name) for name in ("valid.txt", "alone.txt"))
    assert whole == pytest.approx(alone, rel=1e-6)


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
    """§6.3.2: weights by MERT, and left to right, each sentence after the choices before it.

    The things are found with fixed weights: of twelve sentences MERT may choose any.
    """
    tuned = f"tune-mert {LISTS} {MODELS} --ref dev.ref --out w.json"
    assert run([*tuned.split(), "--search", "greedy", "--quiet", "--device", "cpu"]) == 0
    weights = json.loads(Path("w.json").read_text(encoding="utf-8"))
    assert {"LM0", "sl", "wl"} <= weights["weights"].keys()
    weights["weights"] = {"LM0": [0.6], "sl": [0.3], "wl": [0.1], "sloov": [0.0], "wloov": [0.0]}
    Path("w.json").write_text(json.dumps(weights), encoding="utf-8")
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
        ("--model rnnslm --embed 4", "'rnnslm' has no embeddings beside its hidden layers"),
        ("--model rnnslm --recurrence lstm", "a recurrence of its own, found 'lstm'; leave that"),
        ("--model hrnnlm-lin --tied", "'hrnnlm-lin' has untied embeddings, found tied ones; leave"),
        ("--model rnnslm --head softmax", "a head of its own, found 'softmax'; leave that out"),
        ("--model rnnslm --fusion input", "a fusion of its own, found 'input'; leave that out"),
        ("--model rnnlm-lin --fusion input", "'rnnlm-lin' has no context, found the fusion"),
        ("--model hrnnlm-lin --fusion gate", "late fusion expects a recurrence with a memory cell"),
        ("--model rnnslm --hash-order 3", "has no hashed n-grams of words, found a length 3"),
        ("--model codclm --hash-size 99", "has no hashed features, found a size 99 of their table"),
        ("--model rnnlm-lin --hash-size 4", "expected a hash size of at least 13, a slot for each"),
        ("--model rnnlm-lin --negatives 5", "--negatives 5: the head of this model is trained"),
        ("--model rnnslm --dropout 0.2", "--dropout 0.2: rnnslm has no states of words"),
        ("--model rnnslm --word-dropout 0.2", "--word-dropout 0.2: rnnslm has no states of words"),
        ("--model rnnslm --backward", "--backward: rnnslm predicts bags of words, which have no"),
        (
            "--model rnnlm-lin --context-noise 0.1",
            "--context-noise 0.1: rnnlm-lin reads no target context",
        ),
        ("--model rnnslm --levels two-step", "--levels two-step: this model has no sentence level"),
        ("--model rnnlm-lin --recipe code", "this model has no recipe 'code', but strong, paper"),
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


def test_no_text_is_drawn_from_bags_of_words(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["sample", "--lm", "rnnslm", "--out", "drawn.txt", "--device", "cpu"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "this model predicts bags of words, without order and </s>" in line
    assert not Path("drawn.txt").exists()
    out = shown("sample --lm hrnnlm-lin --sentences 2 --seed 3 --device cpu", capsys)
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize("name", ["rnnslm", "hrnnlm-lin"])
def test_the_pmi_form_splits_the_score_of_models_without_order(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for form in ([], ["--pmi", "m"]):
        command = f"score {LISTS} --lm m={name} --out {name}.pmi --quiet --device cpu"
        assert run([*command.split(), *form]) == 0
        lines = Path(f"{name}.pmi").read_text(encoding="utf-8").splitlines()
        rows.append([dict(re.findall(r"(\w+)= (\S+)", line)) for line in lines])
    for plain, split in zip(*rows, strict=True):
        total = float(split["mpmi"]) + float(split["mnull"])
        assert total == pytest.approx(float(plain["m"]), abs=6e-4)
    assert {float(row["mpmi"]) for row in rows[1][:10]} == {0.0}  # of a first sentence
    assert any(abs(float(row["mpmi"])) > 0.01 for row in rows[1][10:40])


def test_a_document_cache_brings_the_words_of_a_bag_that_came_before(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(options: str) -> float:
        out = shown(f"perplexity --lm rnnslm {options} --format json --device cpu", capsys)
        return float(json.loads(out)["nats_per_word_of_a_bag"])

    assert measured("--document-cache 0.2 valid.txt") != measured("valid.txt")
    Path("one.txt").write_text("the lamp is old\n", encoding="utf-8")
    assert measured("--document-cache 0.2 one.txt") == measured("one.txt")  # an empty cache


def test_contrastive_items_are_judged_by_the_words_of_their_contexts(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thing of the context is right; without context one of each two items is."""
    items = [
        {
            "context": [f"the {thing} is old"],
            "right": f"the {thing} is red",
            "wrong": [f"the {other} is red"],
        }
        for thing, other in permutations(THINGS, 2)
    ]
    text = "".join(json.dumps(item) + "\n" for item in items)
    Path("items.jsonl").write_text(text, encoding="utf-8")
    out = shown("lm-eval contrastive --lm rnnslm items.jsonl --format json --device cpu", capsys)
    (model,) = json.loads(out)["models"]
    found = model["groups"][0]["accuracies"]
    assert found["context"]["accuracy"] == 1.0
    assert found["null"]["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("rnnslm", {"words"}),
        ("rnnlm-lin", {"words"}),
        ("hrnnlm-lin", {"sentences", "words"}),
        ("hrnnlm-lin-dual", {"words"}),
    ],
)
def test_the_recipe_of_the_paper_trains_the_levels_as_it_says(
    here: Path, name: str, stages: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    data = "--train train.txt --valid valid.txt --hash-size 500 --vocab 30 --device cpu"
    command = f"train-lm --model {name} --recipe paper --epochs 1 {data}"
    capsys.readouterr()
    assert run([*command.split(), "--out", f"{name}.paper", "--curve", f"{name}.tsv"]) == 0
    told = capsys.readouterr().err
    assert "optimiser sgd, schedule halving" in told
    assert ("valid bag-of-words perplexity" in told) == (name in ("rnnslm", "hrnnlm-lin"))
    _, *lines = Path(f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    assert {line.rpartition("\t")[2] for line in lines} == stages
    config = json.loads((Path(f"{name}.paper") / "config.json").read_text(encoding="utf-8"))
    assert (config["config"]["hidden"], config["config"]["embed"]) == (30, 30)
    assert not {"recurrence", "tied"} & config["config"].keys()
