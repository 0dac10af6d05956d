"""`perplexity --tags`: figures of each tag, and files that do not fit the text."""

import math

import pytest
import torch
from support.world import Folders, World

from lm.laws import read_by_words

TEXT = "the lamp is\nit\n\nis lit the\n"
TAGS = "D N V\nP\n\nV A D\n"


@pytest.fixture
def tagged(world: World, model_folders: Folders) -> World:
    world.write("text", TEXT)
    world.write("tags", TAGS)
    world.write("kinds", TEXT.replace("the", "D").replace("is", "V"))
    for name in ("rnnlm", "ccdclm", "codclm", "rnnslm"):
        (world.folder / name).symlink_to(model_folders[name])
    return world


@pytest.mark.parametrize("model", ["rnnlm", "ccdclm", "codclm"])
@pytest.mark.parametrize("options", ["", "--duplicate-last-word"])
def test_tags_add_up_to_the_figures_of_texts(model: str, options: str, tagged: World) -> None:
    """A tag for each kind of word: figures of a tag are those of its words."""
    command = f"perplexity --lm {model} text --device cpu --format json {options}"
    plain = tagged.ok(command).json
    result = tagged.ok(f"{command} --tags tags").json
    kinds = tagged.ok(f"{command} --tags kinds").json["tags"]
    tags = result.pop("tags")
    del result["end_of_sentence"]
    assert result == plain
    counts = {tag: own["tokens"] for tag, own in tags.items()}
    expected = {"D": 2, "V": 2, "A": 1, "N": 1, "P": 1}
    assert counts == ({**expected, "D": 3, "V": 3, "P": 2} if options else expected)
    for tag, kind in (("D", "D"), ("V", "V"), ("N", "lamp"), ("P", "it"), ("A", "lit")):
        assert tags[tag] == kinds[kind]


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_the_nats_of_a_word_are_those_of_its_pieces(backward: bool, tagged: World) -> None:
    saved = tagged.model("rnnlm", "pieces", pieces=True, backward=backward)
    way = -1 if backward else 1
    tagged.write("text", TEXT.replace("lamp", "unlit"))
    result = tagged.ok("perplexity --lm pieces text --tags tags --device cpu --format json").json
    nats: dict[str, list[float]] = {}
    lines = zip(TEXT.replace("lamp", "unlit").split("\n"), TAGS.split("\n"), strict=True)
    for words, tags in filter(any, lines):
        pieces = [saved.vocabulary.encode([word.encode()]) for word in words.split()]
        ids = [i for piece in pieces for i in piece][::way]
        context = saved.model.context.start(1)
        with torch.no_grad():
            features = saved.model.features(read_by_words(saved.model, ids, context), context)
            own = saved.model.head.nll(features[: len(ids)], torch.tensor(ids)).tolist()[::way]
        for tag, word in zip(tags.split(), pieces, strict=True):
            nats.setdefault(tag, []).append(sum(own[: len(word)]))
            del own[: len(word)]
    expected = {tag: len(nat) for tag, nat in nats.items()}
    assert {tag: own["tokens"] for tag, own in result["tags"].items()} == expected
    for tag, own in result["tags"].items():
        assert own["nats"] == pytest.approx(sum(nats[tag]), rel=1e-5)
        mean = sum(map(math.exp, nats[tag])) / len(nats[tag])
        assert own["mean_word_perplexity"] == pytest.approx(mean, rel=1e-4)
        assert "words" not in own
    ends = result["end_of_sentence"]["nats"]
    assert sum(map(sum, nats.values())) + ends == pytest.approx(result["nats"], rel=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("D N\nP\n\nV A D\n", "tags:1: expected 3 tags, one for each word of sentence 1 of text"),
        ("D N V\nP\n\nV A D D\n", "tags:4: expected 3 tags, one for each word of sentence 3"),
        (TAGS + "D\n", "tags: expected 3 sentences in 2 documents as in text, found 4"),
        ("D N </s>\nP\n\nV A D\n", "tags:1: expected tags of words, found </s>"),
    ],
    ids=["short", "long", "more", "end"],
)
def test_tags_that_do_not_fit_are_refused(content: str, message: str, tagged: World) -> None:
    """A row of the table of faults could not have the model."""
    tagged.write("tags", content)
    run = tagged.run("perplexity --lm rnnlm text --tags tags --device cpu")
    assert (run.exit, run.err.startswith(f"rerank: {message}")) == (3, True)


def test_one_tsv_has_one_table_and_an_n_gram_model_no_tags(tagged: World) -> None:
    command = "perplexity --lm rnnlm text --tags tags --device cpu --format tsv"
    rows = tagged.ok(command).lines
    assert [row.split("\t")[0] for row in rows] == ["tag", "D", "V", "A", "N", "P", "</s>"]
    assert "leave out --tags or --per-document" in tagged.refused(f"{command} --per-document")
    refused = tagged.refused("perplexity --ngram x.arpa text --tags tags")
    assert "--tags: not for the n-gram model of --ngram" in refused
