"""`sample`: documents that a model draws."""

import pytest
from support.texts import documents_of
from support.world import WORDS, World

from lm.sampling import sample


@pytest.mark.parametrize("model", ["rnnlm", "codclm", "hrnnlm"])
def test_documents_are_written_as_a_text_that_can_be_read_again(model: str, world: World) -> None:
    world.model(model)
    found = world.ok("sample --lm lm --documents 4 --sentences 3 --longest 8 --out text")
    documents = documents_of(world.lines("text"))
    assert [len(one) for one in documents] == [3] * 4
    words = [word for line in world.lines("text") for word in line.split()]
    assert {*words} <= {*WORDS}
    figures = world.ok("perplexity --lm lm text --format json --per-document").json
    assert (figures["sentences"], figures["tokens"], figures["oov"]) == (12, len(words), 0)
    assert len(figures["documents"]) == 4
    assert found.err.startswith(f"4 documents, 12 sentences, {len(words)} words")


def test_the_text_is_what_lm_draws_on_standard_output_with_counts_beside_it(world: World) -> None:
    saved = world.model("ccdclm")
    command = "sample --lm lm --documents 1 --sentences 2 --seed 7 --longest 9 --temperature 0.8"
    drawn = next(
        iter(sample(saved.model, documents=1, sentences=2, seed=7, longest=9, temperature=0.8))
    )
    found = world.ok(command)
    assert found.lines == [" ".join(WORDS[i - 3] for i in words) for words in drawn.sentences]
    assert found.err.startswith("1 document, 2 sentences, ")
    quiet = world.ok(command, "-q")
    assert (quiet.out, quiet.err) == (found.out, "")
    assert world.ok(command.replace("--seed 7", "--seed 8")).out != found.out


def test_drawn_documents_end_where_the_start_begins_if_reversed(world: World) -> None:
    world.model("ccdclm", "turned", reverse_documents=True)
    world.model("ccdclm", "twin")  # of the same weights
    world.write("end", ["the lamp is lit", "it burns"])
    world.write("begin", ["it burns", "the lamp is lit"])
    command = "sample --documents 2 --sentences 4 --longest 6 -q"
    ours = documents_of(world.ok(command, *["--lm", "turned", "--start", "end"]).lines)
    theirs = documents_of(world.ok(command, *["--lm", "twin", "--start", "begin"]).lines)
    assert ours == [one[::-1] for one in theirs] != theirs


def test_sentences_that_were_cut_off_are_told(world: World) -> None:
    saved = world.model("rnnlm")
    found = world.ok("sample --lm lm --documents 3 --sentences 3 --longest 1 --seed 3")
    cut = [
        one.cut
        for one in sample(saved.model, documents=3, sentences=3, longest=1, seed=3, temperature=1.0)
    ]
    assert min(cut) > 0
    assert f"9 words; {sum(cut)} sentences cut off at --longest 1 word" in found.err
