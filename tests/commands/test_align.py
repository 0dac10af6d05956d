"""Texts of whole documents parted into segments: `--systems FILE,align=yes`, `evaluate --align`.

Truth: the definition of mwerSegmenter (Matusov et al. 2005, section 3), over all segmentations,
with the costs of beginnings that `rerank.corpus.edit_distance` states.
"""

import json
import random
from itertools import accumulate, combinations_with_replacement, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.words import edit_distance
from support.world import World

from rerank.corpus.edit_distance import parted

REFERENCES = ["the lamp is lit .", "it gives a light .", "the café is closed .", "nobody comes ."]
TEXTS = ("a lamp is lit .\nit gives light .", "the café was closed . no one comes .")
SEGMENTS = [("a lamp is lit .", "it gives light ."), ("the café was closed .", "no one comes .")]
IDS = ("evening", "town")
Words = tuple[str, ...]


def cost(words: Words, places: tuple[int, ...], references: list[list[Words]]) -> int:
    """Ten times the edits to the nearest references, and what beginnings of segments cost.

    words: `a\n` is the last of a line; places: first words of the segments from the second on.
    """
    plain, found = tuple(map(str.strip, words)), 0
    for (a, b), several in zip(pairwise((0, *places, len(words))), references, strict=True):
        found += 10 * min(edit_distance(plain[a:b], one) for one in several)
    for place, several in zip(places, references, strict=False):
        closed = 2 * sum(one[-1:] == (".",) for one in several) > len(several)
        if closed and 0 < place < len(words) and not words[place - 1].endswith("\n"):
            found += 1 if words[place - 1] == "." else 50
    return found


LINE = st.lists(st.sampled_from("ab."), max_size=4).map(tuple)


@given(
    st.lists(st.sampled_from(["a", "b", ".", "a\n", ".\n"]), max_size=7).map(tuple),
    st.lists(st.lists(LINE, min_size=1, max_size=2), min_size=1, max_size=4),
)
def test_segments_have_the_least_cost_of_all(words: Words, references: list[list[Words]]) -> None:
    found = parted(" ".join(words), [[" ".join(one) for one in own] for own in references]).segments
    assert " ".join(filter(None, found)) == " ".join(map(str.strip, words))
    *places, _ = accumulate(len(segment.split()) for segment in found)
    every = combinations_with_replacement(range(len(words) + 1), len(references) - 1)
    least = min(cost(words, others, references) for others in every)
    assert cost(words, tuple(places), references) == least


def test_the_words_of_each_segment_come_back_from_a_long_document() -> None:
    rng = random.Random(1)
    lines = [" ".join(rng.choices("abcdefghijklmnop", k=rng.randint(1, 30))) for _ in range(200)]
    noisy = [line if n % 3 else f"{line} ." for n, line in enumerate(lines)]
    assert parted("\n".join(noisy), [[line] for line in lines]).segments == noisy


@pytest.mark.parametrize(
    ("text", "references", "segments"),
    [
        ("我来了。他走了。", ["我來了。", "他走。"], ["我来了。", "他走了。"]),
        ('He said "Go." They left.', ["He said.", "They left."], ['He said "Go."', "They left."]),
        ("One, two Three four.", ["one, two", "three four."], ["One, two", "Three four."]),
        ("", ["a", "b"], ["", ""]),
    ],
    ids=["characters", "quotes", "references-within-sentences", "empty"],
)
def test_segments_begin_with_a_word(text: str, references: list[str], segments: list[str]) -> None:
    assert parted(text, [[line] for line in references]).segments == segments


FORMS = {
    "folder": {f"t/{name}.txt": text for name, text in zip(IDS, TEXTS, strict=True)},
    "blank-lines": {"t": f"{TEXTS[0]}\n\n\n{TEXTS[1]}\n"},
    "equals": {"t": f"{TEXTS[0]}\n===\n{TEXTS[1]}\n"},
    "line-each": {"t": "".join(" ".join(text.split()) + "\n" for text in TEXTS)},
    "json": {"t": "".join(json.dumps({"doc_id": name, "hypothesis": text}) + "\n"
        for name, text in zip(IDS[::-1], TEXTS[::-1], strict=True))},
    "one-text": {"t": "\n".join(TEXTS) + "\n"},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_documents_are_read_and_aligned(world: World, form: str) -> None:
    for name, text in FORMS[form].items():
        world.write(name, text)
    world.write("ref", REFERENCES)
    world.write("segments", [line for segment in SEGMENTS for line in segment])
    run = world.ok("evaluate --docs dev.docs --ref ref --align --format json t")
    expected = world.ok("evaluate --docs dev.docs --ref ref --format json segments")
    for own, others in zip(run.json["systems"], expected.json["systems"], strict=True):
        assert own["metrics"] == others["metrics"]
    assert ("documents of a text not found" in run.stderr.decode()) == (form == "one-text")
    command = "evaluate --docs dev.docs --ref ref --systems A=t,align=yes ref --format json"
    beside = world.ok(command)
    assert beside.json["systems"][0]["metrics"]["bleu"]["score"] == own["metrics"]["bleu"]["score"]
    world.ok("score --docs dev.docs --systems A=ref --systems B=t,align=yes --out aligned")
    world.ok("score --docs dev.docs --systems A=ref --systems B=segments --out list")
    assert world.content("aligned") == world.content("list")


def test_empty_merged_and_repeated_segments_are_named(world: World) -> None:
    again = "nobody ever comes to this very small place ."
    world.write("ref", [*REFERENCES[:3], again])
    text = f"the lamp is lit and bright now .\n\nthe café is closed .\n{again}\n{again}\n"
    world.write("t", text)
    result = world.ok("evaluate --docs dev.docs --ref ref --align t -m bleu").stderr.decode()
    assert "merged segment, whose text is in the one beside it: evening:2" in result
    assert "repeated sentence, more often than in the references, in a segment: town:2" in result
    world.write("t", f"the lamp is lit .\n\n{again}\n")
    result = world.ok("evaluate --docs dev.docs --ref ref --align t -m bleu").stderr.decode()
    assert "2 x segment without text, which the document leaves out: evening:2, town:1" in result
