"""`train-lm`: what is learnt from texts and files beside them, and what the folder says of it."""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from support.definitions import definition
from support.texts import TRAIN, documents_of, unigram_perplexity, with_texts
from support.world import World

from lm.checkpoint import load_model
from lm.folders import SavedModel
from lm.training.settings import STRONG


@pytest.fixture(autouse=True)
def texts(world: World) -> None:
    with_texts(world)


def trained(world: World, options: str = "--model codclm", out: str = "lm") -> SavedModel:
    world.ok(f"{TRAIN} {options} --out {out} -q")
    return load_model(world.folder / out)


def measured(world: World, options: str = "", out: str = "lm", text: str = "valid.txt") -> Any:
    """The figures of a text."""
    return world.ok(f"perplexity --lm {out} {text} -q --format json --device cpu {options}").json


def told(world: World, options: str, train: str = TRAIN) -> list[str]:
    """What is said of a training."""
    return world.ok(f"{train} {options} -v").err.splitlines()


# What is learnt
@pytest.mark.parametrize("model", ["rnnlm", "codclm", "hrnnlm", "rlm-bow-ef-1", "rnnlm-lin"])
def test_a_trained_model_beats_the_frequencies_of_words(model: str, world: World) -> None:
    """The text has an order of words, which frequencies do not know."""
    sizes = "--hidden 8 --hash-size 200" if model == "rnnlm-lin" else ""
    command = TRAIN.replace("--embed 6", "") if sizes else TRAIN
    world.ok(f"{command} --model {model} --epochs 5 -q {sizes}")
    result = measured(world)
    assert result["perplexity"] < unigram_perplexity(
        world.text("train.txt"), world.text("valid.txt")
    )
    assert (result["sentences"], result["tokens"], result["oov"]) == (24, 24 * 4, 0)


COLOURS = {"none": "so it is", "rot": "it is red", "blau": "it is blue"}


def write_colours(world: World) -> None:
    """Texts in which a colour is chance, and files beside them that name it."""
    rng = np.random.default_rng(3)
    kinds: dict[str, Callable[[str], str]] = {"txt": COLOURS.__getitem__, "topics": str}
    kinds |= {"source": "das ist {}".format, "relations": str}
    for name, n in (("train", 40), ("valid", 6)):
        words = [["none", *own] for own in rng.choice(["rot", "blau"], (n, 3)).tolist()]
        for kind, line in kinds.items():
            world.write(f"{name}.{kind}", [x for word in words for x in (*map(line, word), "")])


ATTENTION = "attention --hidden 32 --learning-rate 0.03 --epochs 24 --streams 8"


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("source", "dclm-bilingual-decoupled --encoder bag"),
        ("source", f"{ATTENTION} --source-characters"),
        ("topics", "clstm-given-topic"),
    ],
)
def test_a_model_learns_what_only_a_side_file_tells(kind: str, model: str, world: World) -> None:
    """Without it, a perplexity of 2 for three of 16 predictions: 1.14 in all."""
    write_colours(world)
    options = f"--{kind} train.{kind} --valid-{kind} valid.{kind} --epochs 10 --streams 2"
    trained(world, f"{options} --model {model}")
    assert measured(world, f"--{kind} valid.{kind}")["perplexity"] < 1.1
    world.weights("w.json", {"LM0": 0, "lm": 1, "lmoov": 0})
    texts = ((0, "so it is"), (1, "it is red"), (1, "it is blue"))
    world.write("c.kbest", [f"{t} ||| {text} ||| LM0= 0 ||| 0" for t, text in texts])
    of = dict(zip(world.lines("train.txt"), world.lines(f"train.{kind}"), strict=True))
    for colour in ("it is red", "it is blue"):  # the cache tells files apart
        world.write(f"c.{kind}", [of["so it is"], of[colour]])
        decode = "decode --kbest c.kbest --no-docs one --weights w.json --lm lm=lm -q"
        assert world.ok(f"{decode} --{kind} c.{kind}").lines == ["so it is", colour]


def test_sources_are_read_as_characters_but_for_the_unknown_word(world: World) -> None:
    write_colours(world)
    for name in ("train", "valid"):
        world.write(f"{name}.source", world.text(f"{name}.source").replace("rot", "<unk>"))
    files = "--source train.source --valid-source valid.source"
    saved = trained(world, f"{files} --model attention --hidden 4 --epochs 1 --source-characters")
    assert {word.decode() for word in saved.side["source"].words} == {*"dasistnoneblau"}
    words, knows = saved.words_of_source(b"das ist <unk>\n")
    assert [word for word in words if not knows(word)] == [b"<unk>"]
    tokens = saved.encode_side("source", b"das ist <unk>\n").tokens.tolist()
    assert [tokens.index(0), len(tokens)] == [6, 7]


def test_a_model_that_is_given_the_next_sentence_learns_what_only_this_tells(world: World) -> None:
    """Colours are chance and said twice: 2^(1/7) = 1.10 is the least for a model of the past."""
    rng = np.random.default_rng(3)
    for name, n in (("train", 60), ("valid", 6)):
        words = rng.choice(["red", "blue"], n)
        world.write(f"{name}.txt", [x for c in words for x in (f"it is {c}", f"so {c}", "")])
    said = told(world, "--model dclm-right-target --encoder bag --epochs 12 --streams 2")
    assert "order unbounded, given the next sentence, too; 60 documents" in said[0]
    assert any("valid pseudo-perplexity" in line for line in said)
    result = measured(world)
    assert result["pseudo_likelihood"] is True
    assert result["pseudo_perplexity"] < 1.05
    assert not result.keys() & {"perplexity", "nats_per_token"}
    text = world.ok("perplexity --lm lm valid.txt --per-document").out
    assert "pseudo-perplexity" in text
    assert text.splitlines()[-1].startswith("each sentence is given the next one, too: a pseudo-")


def test_relations_as_a_task_are_needed_in_training_alone(world: World) -> None:
    write_colours(world)
    options = "--model dclm-auxiliary --relations train.relations --encoder bag"
    plain = trained(world, options)
    assert measured(world)["perplexity"] == plain.about["valid_perplexity"]
    result = trained(world, f"{options} --relation-classifier mlp", "mlp")
    assert result.model.config.relation_classifier == "mlp"


# The folder
def test_a_model_says_how_it_came_about(world: World) -> None:
    said = told(world, "--model codclm --vocab 5 --curve curve.tsv")
    saved = load_model(world.folder / "lm")
    words = world.text("train.txt").split()
    known = Counter(words).most_common(5)
    assert {word.decode() for word in saved.vocabulary.words} == {word for word, _ in known}
    about: Any = saved.about
    share = 1 - sum(count for _, count in known) / len(words)
    assert about["oov_rate"] == pytest.approx(share)
    assert (about["model"], about["recipe"], about["longest"]) == ("codclm", "strong", None)
    assert about["settings"]["epochs"] == 1
    assert about["settings"]["precision"] == "float32"
    for name in ("train", "valid"):
        digest = hashlib.sha256(world.content(f"{name}.txt")).hexdigest()
        assert about["data"][name]["file"] == f"{name}.txt"
        assert about["data"][name]["digest"] == f"sha256:{digest}"
    parameters = sum(parameter.numel() for parameter in saved.model.parameters())
    assert said[0].startswith(
        f"codclm: {parameters:,} parameters, order 1; 24 documents, 384 words"
    )
    assert f"({share:.2%} outside the vocabulary); " in said[0]
    assert said[1].startswith("recipe strong: epochs 1, seed 1, ")
    assert "learning rate 0.05, " in said[1]
    assert "minutes" not in said[1]
    assert said[-1].startswith("model written to lm") or "lm" in said[-1]


def test_the_folder_holds_the_model_of_the_best_validation(world: World) -> None:
    saved = trained(world, "--model codclm --epochs 4 --learning-rate 0.4 --curve curve.tsv")
    header, *rows = (line.split("\t") for line in world.lines("curve.tsv"))
    best = min((dict(zip(header, row, strict=True)) for row in rows), key=perplexity_of)
    about: Any = saved.about
    expected = (f"{perplexity_of(best):.6g}", int(best["update"]))
    assert (f"{about['valid_perplexity']:.6g}", about["update"]) == expected
    assert len(rows) > 1
    assert measured(world)["perplexity"] == pytest.approx(about["valid_perplexity"], rel=1e-6)


def perplexity_of(row: dict[str, str]) -> float:
    return next(float(value) for name, value in row.items() if "perplexity" in name)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ("--model adclm --attention 5 --fusion merge --recurrence tanh", {"attention": 5}),
        ("--model rlm-bow-ef-2 --fusion gate", {"fusion": "gate"}),
        ("--model ccdclm --fusion input-sum --recurrence rnn", {"recurrence": "rnn"}),
        ("--model dclm --encoder rnn --sentence-recurrence tanh", {"encoder": "rnn"}),
        ("--model dclm-two-sentence --layers 2", {"layers": 2}),
        ("--model codclm --head classes", {"head": "classes"}),
        ("--model hrnnlm-lin-dual --hash-size 200", {"hash_size": 200}),
    ],
    ids=lambda value: value.split()[1] if isinstance(value, str) else "",
)
def test_models_have_given_shapes(options: str, shape: dict[str, object], world: World) -> None:
    """Its validation is that of the definition, sentence by sentence."""
    command = TRAIN.replace("--embed 6", "") if "-lin" in options else TRAIN
    said = told(world, options, command)
    saved = load_model(world.folder / "lm")
    assert {name: getattr(saved.model.config, name) for name in shape} == shape
    if "merge" in options:
        assert said[0].startswith("adclm (merge): ")
    log_p, _ = definition(saved)
    documents = [tuple(one) for one in documents_of(world.lines("valid.txt"))]
    nats = -sum(log_p(document, t) for document in documents for t in range(len(document)))
    assert measured(world)["nats"] == pytest.approx(nats, rel=1e-4)
    assert saved.about["valid_perplexity"] == pytest.approx(np.exp(nats / (5 * 24)), rel=1e-4)


PAPER = "--model codclm --recipe paper --embed 5 --hidden 5"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--model rnnlm", {"embed": 128, "hidden": 256, "layers": 1}),
        ("--model rnnlm --size medium --hidden 10", {"embed": 256, "hidden": 10}),
        ("--model rnnlm --size large --embed 7 --hidden 9 --layers 1", {"embed": 7, "layers": 1}),
        (PAPER, {"embed": 5, "layers": 2, "recurrence": "cifg-2015", "tied": False, "epochs": 1}),
        ("--model adclm --recipe paper", {"embed": 48, "hidden": 48, "attention": 48}),
        ("--model dam --recipe code", {"embed": 96, "hidden": 96, "attention": 48}),
        ("--model codclm --recipe code", {"embed": 16, "hidden": 48, "optimiser": "sgd"}),
        ("--model codclm", {"context_dropout": 0.1, "objective": "likelihood"}),
        ("--model rnnlm", {"streams": 32, "segment": 5, "clip": 5.0, "validations": 4}),
        ("--model drnnlm", {"context_dropout": 0.0}),  # a carried state is not dropped
        ("--model drnnlm --context-dropout 0.3", {"context_dropout": 0.3}),
        ("--model hrnnlm --levels two-step", {"levels": "two-step"}),
        ("--model codclm --objective nce --negatives 30", {"objective": "nce", "negatives": 30}),
        ("--model codclm --objective nce", {"negatives": 4096}),
        ("--model codclm --head classes", {"negatives": 0}),
        ("--model codclm --patience 7 --dropout 0.5", {"patience": 7, "dropout": 0.5}),
    ],
    ids=lambda value: value[8:] if isinstance(value, str) else "",
)
def test_values_are_those_given_or_of_the_preset_or_recipe_for_this_model(
    options: str, expected: dict[str, object], world: World
) -> None:
    sizes = "--(embed|hidden|streams) [0-9]+ " if {"embed", "streams"} & {*expected} else "$"
    said = told(world, options, re.sub(sizes, "", TRAIN))
    saved = load_model(world.folder / "lm")
    settings: Any = saved.about["settings"]
    result = asdict(saved.model.config) | settings
    assert {name: result[name] for name in expected} == expected
    if options == PAPER:
        assert said[1].startswith("recipe paper: epochs 1, ")
        assert "optimiser adagrad, " in said[1]
        assert (settings["optimiser"], settings["learning_rate"]) == ("adagrad", 0.05)
        assert saved.about["recipe"] == "paper"


@pytest.mark.parametrize("model", ["rnnslm", "hrnnlm-lin"])
def test_the_recipe_of_lin_et_al_trains_the_levels_as_it_says(model: str, world: World) -> None:
    data = "--train train.txt --valid valid.txt --hash-size 500 --vocab 30 --device cpu --out lm"
    command = f"train-lm --model {model} --recipe paper --epochs 1 {data} --curve curve.tsv"
    said = told(world, "", command)
    assert "optimiser sgd, schedule halving" in said[1]
    assert any("valid bag-of-words perplexity" in line for line in said)
    stages = {line.rpartition("\t")[2] for line in world.lines("curve.tsv")[1:]}
    assert stages == ({"words"} if model == "rnnslm" else {"sentences", "words"})
    epochs = [float(line.split("\t")[1]) for line in world.lines("curve.tsv")[1:]]
    assert (epochs == sorted(epochs), epochs[-1]) == (True, len(stages))
    config = load_model(world.folder / "lm").model.config
    assert (config.hidden, config.embed) == (30, 30)


def test_a_head_that_is_not_normalised_states_its_error(world: World) -> None:
    for options in ("--head self-normalised", "--head self-normalised --objective nce"):
        out = f"lm{len(options)}"
        about: Any = trained(world, f"--model codclm {options} --negatives 20", out).about
        result = measured(world, out=out)
        assert result["log_z_mean"] == pytest.approx(about["log_z"]["mean"], abs=1e-5)
        assert result["log_z_sd"] == pytest.approx(about["log_z"]["sd"], rel=1e-4)
        assert result["perplexity"] == pytest.approx(about["valid_perplexity"], rel=1e-6)
        score = f"score --kbest dev.kbest --docs dev.docs --lm lm={out} --out scored"
        mean, sd = about["log_z"].values()
        told = f"scores are not normalised: log Z {mean:.3f} ± {sd:.3f} a word"
        assert told in world.ok(score).err
    assert "log_z" not in trained(world, "--model codclm", "plain").about
    assert not [name for name in measured(world, out="plain") if name.startswith("log_z")]


def test_averaged_weights_are_saved_with_their_perplexity(world: World) -> None:
    averaged = trained(world, "--model codclm --averaging 0.5", "averaged")
    plain = trained(world, out="plain")
    result = measured(world, out="averaged")["perplexity"]
    assert result == pytest.approx(averaged.about["valid_perplexity"], rel=1e-6)
    assert result != plain.about["valid_perplexity"]


# How the text is read
def same_weights(one: SavedModel, other: SavedModel) -> bool:
    a, b = one.model.state_dict(), other.model.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("--backward", lambda own: [" ".join(line.split()[::-1]) for line in own]),
        ("--reverse-documents", lambda own: own[::-1]),
    ],
    ids=["backward", "reverse-documents"],
)
def test_a_reversed_reading_is_that_of_the_reversed_text(
    option: str, change: Callable[[Sequence[str]], list[str]], world: World
) -> None:
    text = ["c c c c c c b b b a", "a b c d", "", "d c a c b", "c"]  # no two counts are equal
    turned = [line for own in documents_of(text) for line in (*change(own), "")]
    world.write("forth", text)
    world.write("back", turned)
    one = trained(world, f"--model codclm --train forth --valid forth {option}", "one")
    other = trained(world, "--model codclm --train back --valid back", "other")
    assert same_weights(one, other)
    assert one.vocabulary == other.vocabulary
    assert measured(world, out="one", text="forth") == measured(world, out="other", text="back")
    said = told(world, f"--model codclm {option}", TRAIN.replace("--out lm", "--out again"))[0]
    expected = (option == "--backward", option != "--backward")
    assert ("from right to left" in said, "from the last" in said) == expected


def test_data_files_of_ji_et_al_train_the_model_of_blank_lines(world: World) -> None:
    for name in ("train", "valid"):
        text = world.text(f"{name}.txt")
        world.write(f"{name}.ji", text.replace("\n\n", "\n====\n").replace("old", "UNK"))
        world.write(f"{name}.unk", text.replace("old", "<unk>"))
    plain = trained(world, "--model codclm --train train.unk --valid valid.unk", "plain")
    files = "--train train.ji --valid valid.ji --documents equals --unknown UNK"
    ji = trained(world, f"--model codclm {files}", "ji")
    assert same_weights(ji, plain)
    assert b"UNK" not in ji.vocabulary.ids
    result = measured(world, "--documents equals", "ji", "valid.ji")
    assert result["perplexity"] == pytest.approx(ji.about["valid_perplexity"], rel=1e-6)
    assert result["oov"] == world.text("valid.txt").count("old")


def test_longer_sentences_give_training_their_words_and_nothing_else(world: World) -> None:
    lines = world.lines("train.txt")
    longer = [f"{line} and far away" if n % 5 == 0 else line for n, line in enumerate(lines)]
    for name, extra in (("one", longer), ("two", [x.replace("far", "long") for x in longer])):
        world.write(f"{name}.txt", extra)
        options = f"--model codclm --longest 4 --train {name}.txt --vocab 99"
        assert (
            "384 words" not in told(world, options, TRAIN.replace("--out lm", f"--out {name}"))[0]
        )
    one, two = (load_model(world.folder / name) for name in ("one", "two"))
    assert b"away" in one.vocabulary.ids
    assert one.about["longest"] == 4
    assert same_weights(one, two)


def test_words_that_are_too_rare_are_not_in_the_vocabulary(world: World) -> None:
    counts = Counter(world.text("train.txt").split())
    least = sorted(counts.values())[len(counts) // 2]
    result = trained(world, f"--model codclm --vocab-min-count {least}").vocabulary.words
    assert {word.decode() for word in result} == {w for w, n in counts.items() if n >= least}


def test_contexts_cross_the_ends_of_documents_where_that_is_asked_for(world: World) -> None:
    assert "16 stretches, " in told(world, "--model codclm --across-documents")[0]
    result = measured(world, "--across-documents")["perplexity"]
    about = load_model(world.folder / "lm").about
    assert about["valid_perplexity"] == pytest.approx(result, rel=1e-6)
    assert about["across_documents"] is True


def test_passages_are_measured_by_their_last_sentences(world: World) -> None:
    said = told(world, "--model codclm --passages 2")
    assert "48 passages of 2 sentences, 384 words" in said[0]
    saved = load_model(world.folder / "lm")
    log_p, _ = definition(saved)
    own = documents_of(world.lines("valid.txt"))
    pairs = [tuple(one[t : t + 2]) for one in own for t in (0, 2)]
    nats = -sum(log_p(pair, 1) for pair in pairs)
    expected = pytest.approx(np.exp(nats / (5 * len(pairs))), rel=1e-4)
    assert saved.about["valid_perplexity"] == expected
    assert saved.about["passages"] == 2


def test_the_help_says_the_values_of_the_strong_recipe(world: World) -> None:
    flags = {"min_count": "vocab-min-count", "vocabulary": "vocab", "initialisation": "init"}
    text = world.ok("train-lm --help-all").out
    for name, value in STRONG.items():
        flag = flags.get(name, name.replace("_", "-"))
        pattern = rf"^  --{flag}[ /].*?\[default:\s+([^;\]]*)"
        entry = re.search(pattern, text, re.DOTALL | re.MULTILINE)
        shown = {True: "tied"}.get(value, value) if isinstance(value, bool) else value
        assert entry is not None, name
        expected = f"{shown:g}" if isinstance(shown, float) else str(shown)
        assert " ".join(entry[1].split()) == expected


def test_a_folder_that_another_run_writes_is_refused_until_that_run_has_ended(world: World) -> None:
    """The lock of a run that was killed is a file that nobody holds."""
    options = "--model rnnlm --minutes 0.001 -q --out new/lm"
    world.write("new/.lm.lock", "")
    with (world.folder / "new/.lm.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        run = world.run(f"{TRAIN} {options}")
        message = "new/lm: another run writes this folder; name a new one, or wait"
        assert (run.exit, message in run.err) == (2, True), run.err
        assert [path.name for path in (world.folder / "new").iterdir()] == [".lm.lock"]
    world.ok(f"{TRAIN} {options}")
    assert [path.name for path in (world.folder / "new").iterdir()] == ["lm"]


def test_a_training_that_diverges_is_told(world: World) -> None:
    wild = "--optimiser sgd --learning-rate 10 --clip 0 --weight-decay 10 --schedule constant"
    run = world.run(f"{TRAIN} --model codclm --epochs 60 {wild}")
    assert run.exit == 1
    assert re.search("lm: training diverged: .*; lower --learning-rate", run.err)


# Trainings that begin with another model
@pytest.mark.parametrize("model", ["dclm-bilingual", "dclm-right"])
def test_the_source_side_begins_with_a_model_s_weights(model: str, world: World) -> None:
    """At a learning rate of almost 0 the saved model is the one that training began with."""
    mono = ["eins zwei", "drei", "", "zwei zwei drei vier", "eins", ""] * 4
    world.write("mono.src", mono)
    world.write("train.src", ["eins", "zwei neu", "", "drei vier", ""] * 4)
    world.write("train.tgt", ["one", "two new", "", "three four", ""] * 4)
    source = trained(world, "--model dclm --train mono.src --valid mono.src --encoder cnn", "mono")
    files = "--train train.tgt --valid train.tgt --source train.src --valid-source train.src"
    still = f"{files} --source-lm mono --learning-rate 1e-20 --encoder cnn"
    both = trained(world, f"--model {model} {still}", "both")
    assert both.side["source"].words == source.vocabulary.words
    level = both.model.context.source_level
    given = source.model.context.state_dict()
    assert level is not None
    assert level.state_dict().keys() == given.keys()
    assert all(torch.equal(tensor, given[key]) for key, tensor in level.state_dict().items())
    assert both.about["source_lm"] == source.digest
    assert not torch.equal(both.model.embedding.weight[:4], source.model.embedding.weight[:4])


def test_a_model_with_a_context_begins_as_the_model_without_it(world: World) -> None:
    """A matrix is 0: at a learning rate of almost 0 both have equal perplexities."""
    files = f"{TRAIN.replace('train.txt', 'valid.txt')} --source valid.txt --valid-source valid.txt"
    world.ok(f"{files} --model attention --out whole -q")
    world.ok(f"{files} --model attention-gated --from whole --learning-rate 1e-20 -q")
    saved, before = (load_model(world.folder / name) for name in ("lm", "whole"))
    assert (saved.about["from"], saved.vocabulary.words) == (before.digest, before.vocabulary.words)
    result, true = (measured(world, "--source valid.txt", out=name) for name in ("lm", "whole"))
    assert result["perplexity"] == pytest.approx(true["perplexity"], rel=1e-6)
    more = "--levels context --learning-rate 0.1"
    (world.folder / "lm").rename(world.folder / "still")
    world.ok(f"{files} --model attention-gated --from whole {more} -q")
    trained = load_model(world.folder / "lm").model.state_dict()
    for name, tensor in before.model.state_dict().items():  # the others stay
        assert torch.equal(trained[name], tensor)
    assert float(trained["context.projection.weight"].abs().max()) > 0


def test_a_gated_context_learns_what_only_the_sentence_before_tells(world: World) -> None:
    """Colours are chance and said twice, so that 2^(2/7) = 1.22 is the least without context.

    With it, 2^(1/7) = 1.10. Nothing but the context is trained: the first sentences of documents
    have the scores of the model of --from.
    """
    rng = np.random.default_rng(3)
    for name, n in (("train", 60), ("valid", 6)):
        words = rng.choice(["red", "blue"], n)
        world.write(f"{name}.txt", [x for c in words for x in (f"it is {c}", f"so {c}", "")])
        world.write(f"{name}.source", ["das ist es", "so", ""] * n)
    world.write("first.txt", [x for line in world.lines("valid.txt") if line for x in (line, "")])
    world.write("first.source", ["das ist es", "", "so", ""] * 6)
    files = f"{TRAIN} --source train.source --valid-source valid.source -q --streams 2"
    world.ok(f"{files} --model attention --epochs 3 --out whole")
    gated = f"{files} --model attention-gated --from whole --levels context --epochs 10"
    world.ok(f"{gated} --words 1000")
    world.ok(f"{gated} --resume")
    whole, result = (measured(world, "--source valid.source", out) for out in ("whole", "lm"))
    assert whole["perplexity"] > 1.21
    assert result["perplexity"] < 1.19
    alone = [measured(world, "--source first.source", out, "first.txt") for out in ("whole", "lm")]
    assert alone[0]["nats"] == pytest.approx(alone[1]["nats"], rel=1e-6)
    lists = ("it is red", "it is blue"), ("so red", "so blue")
    world.weights("w.json", {"LM0": 1, "lm": 1, "lmoov": 0})
    world.write("c.source", ["das ist es", "so"])
    decode = "decode --kbest c.kbest --no-docs one --weights w.json --lm lm=lm -q --source c.source"
    for choice, color in enumerate(("red", "blue")):
        rows = [(t, text, 9.0 * (t == 0 and k == choice)) for t, of_list in enumerate(lists)
                for k, text in enumerate(of_list)]  # fmt: skip
        world.write("c.kbest", [f"{t} ||| {text} ||| LM0= {x} ||| 0" for t, text, x in rows])
        for search in ("", "--search beam", "--search viterbi", "--search viterbi --top 2"):
            assert world.ok(f"{decode} {search}").lines == [f"it is {color}", f"so {color}"]


def test_a_channel_is_the_model_of_exchanged_sides_and_is_scored_as_one(world: World) -> None:
    write_colours(world)
    model = "--model attention --source-vocab 3"
    options = "--embed 6 --hidden 8 --streams 2 --epochs 1 --precision float32 --device cpu -q"
    for out, text, source in (("chan --reverse", "txt", "source"), ("hand", "source", "txt")):
        train = f"--train train.{text} --source train.{source}"
        valid = f"--valid valid.{text} --valid-source valid.{source}"
        world.ok(f"train-lm {train} {valid} {model} {options} --out {out}")
    chan, hand = (load_model(world.folder / name) for name in ("chan", "hand"))
    assert chan.digest == hand.digest
    assert (chan.about["reverse"], "reverse" in hand.about) == (True, False)
    assert chan.about["data"] == hand.about["data"]
    content = ["0 ||| it is red ||| LM0= 0 ||| 0", "0 ||| it is blue ||| LM0= 0 ||| 0"]
    world.write("c.kbest", content)
    world.write("c.source", ["das ist rot"])
    score = "score --kbest c.kbest --no-docs one --source c.source --out - -q --lm"
    assert ",reverse=yes behind the folder" in world.refused(f"{score} chan=chan")
    world.ok(f"{score} chan=chan,reverse=yes")


# Subword units
@pytest.mark.parametrize("model", ["codclm", "attention"])
def test_models_of_pieces_are_measured_by_piece_and_word(model: str, world: World) -> None:
    source = "--source train.txt --valid-source valid.txt" if model == "attention" else ""
    options = f"--model {model} --tokenizer unigram:273 {source}"
    whole, half = (TRAIN.replace("--out lm", f"--out {name}") for name in ("whole", "half"))
    said = " ".join(told(world, f"{options} --words 2000", whole))
    assert re.search(r"384 words in [0-9,]+ pieces \([0-9.]+ a word\)", said)
    world.ok(f"{half} {options} --words 1000")
    world.ok(f"{half} {options} --words 2000 --resume")
    saved = load_model(world.folder / "half")
    assert saved.about["tokenizer"] == "unigram:273"
    result = measured(world, "--source valid.txt" if source else "", out="half", text="valid.txt")
    lines = [line.split() for line in world.lines("valid.txt") if line]
    words, pieces = (
        sum(map(len, lines)),
        sum(len(saved.vocabulary.encode([word.encode() for word in line])) for line in lines),
    )
    assert (result["words"], result["tokens"], result["oov"]) == (words, pieces, 0)
    assert re.search(r"perplexity [0-9.]+ a piece, [0-9.]+ a word", said)
    per_word = np.exp(result["nats"] / (words + len(lines)))
    assert result["perplexity_per_word"] == pytest.approx(per_word)
    assert saved.about["valid_perplexity_per_word"] == pytest.approx(per_word, rel=1e-5)


@pytest.mark.parametrize(
    ("before", "after"), [("codclm", "codclm"), ("attention", "attention-gated")]
)
def test_a_model_of_pieces_is_trained_on(before: str, after: str, world: World) -> None:
    """At a learning rate of almost 0 both have equal perplexities, also of new characters."""
    beside = "--source train.txt --valid-source valid.txt" if before == "attention" else ""
    given = "--source other.txt" if beside else ""
    whole = trained(world, f"--model {before} --tokenizer unigram:273 {beside}", "whole")
    world.write("other.txt", ["le café est fermé", ""])
    command = f"--model {after} --from whole --learning-rate 1e-20 --words 1000 {beside}"
    saved = trained(world, command)
    assert (saved.vocabulary, saved.side) == (whole.vocabulary, whole.side)
    assert (saved.about["from"], saved.about["tokenizer"]) == (whole.digest, "unigram:273")
    result, true = (measured(world, given, out, "other.txt") for out in ("lm", "whole"))
    assert (result["tokens"], result["oov"]) == (true["tokens"], 0)
    assert result["nats"] == pytest.approx(true["nats"], rel=1e-6)
    world.ok(f"{TRAIN} {command.replace('1000', '2000')} --resume -q")
    assert load_model(world.folder / "lm").vocabulary == whole.vocabulary


def test_models_of_pieces_warn_of_texts_in_another_script(world: World) -> None:
    beside = "--source train.txt --valid-source valid.txt"
    trained(world, f"--model attention --tokenizer unigram:273 {beside}", "fwd")
    of_ngrams = "--order 2 --discount-fallback --tokenizer unigram:273"
    world.ok(f"train-ngram --train train.txt --out m.arpa {of_ngrams} -q")
    world.write("far.txt", ["夜 海", "", "灯"])
    world.write("c.kbest", ["0 ||| 夜 海 ||| LM0= 0 ||| 0", "0 ||| the ||| LM0= 0 ||| 0"])
    world.write("near.txt", ["the lamp is lit", "", "the moon is old"])
    world.write("one.txt", ["the lamp"])
    score = "score --kbest c.kbest --no-docs one --out -"
    word = r"word unknown to {} \(100.0% of them; most frequent: '夜'.*, first at {}\b"
    for command, n, model, file in (
        ("perplexity --lm fwd far.txt --source near.txt", "3 x ", "the model", "far.txt"),
        ("perplexity --lm fwd near.txt --source far.txt", "3 x source ", "the model", "far.txt"),
        ("perplexity --ngram m.arpa far.txt", "3 x ", "m.arpa", "far.txt"),
        (f"{score} --lm fwd=fwd --source one.txt", "2 x ", "fwd", "c.kbest"),
        (f"{score} --ngram m.arpa", "2 x ", "ngram", "c.kbest"),
    ):
        assert re.search(n + word.format(model, file), world.ok(command).err), command
    for command in ("--lm fwd near.txt --source near.txt", "--ngram m.arpa near.txt"):
        assert "unknown" not in world.ok(f"perplexity {command}").err


def test_what_needs_words_refuses_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(world, "--model codclm --tokenizer bpe:280")
    refused = world.refused("perplexity --lm lm valid.txt --duplicate-last-word")
    assert "lm predicts subword pieces" in refused
    monkeypatch.setattr("rerank.runs.texts.find_spec", lambda name: None)
    run = world.run(f"{TRAIN} --model codclm --tokenizer bpe:280")
    assert run.exit == 2
    assert "pip install 'rerank-mt[subwords]'" in " ".join(run.err.split())
