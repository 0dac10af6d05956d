"""`lm-eval pairs`: contrasts in k-best lists, against all pairs of candidates one by one."""

import json
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.world import World

KIND = {"he", "she", "it", "i'm"}  # among the English pronouns
words = st.lists(st.sampled_from(["he", "She", "it", "lamp", "burns", "i&apos;m"]), max_size=4)


def plain(word: str) -> str:
    return word.lower().replace("&apos;", "'")


def contrast(one: Sequence[str], other: Sequence[str], reference: Sequence[str]) -> bool:
    """Whether a candidate is right where another one is wrong, word by word."""
    if len(one) != len(other):
        return False
    differ = [(plain(a), plain(b)) for a, b in zip(one, other, strict=True) if a != b]
    if len(differ) != 1 or not KIND.issuperset(differ[0]):
        return False
    ((right, wrong),) = differ
    own = [plain(word) for word in reference]
    return own.count(right) >= [plain(w) for w in one].count(right) and wrong not in own


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=20,
)
@given(
    lists=st.lists(
        st.tuples(st.lists(words, min_size=1, max_size=6), words), min_size=1, max_size=5
    )
)
def test_items_are_pairs_of_candidates_that_differ_in_a_word_of_the_reference(
    lists: list[tuple[list[list[str]], list[str]]], world: World
) -> None:
    rows = [(t, " ".join(own)) for t, (candidates, _) in enumerate(lists) for own in candidates]
    world.write("list", [f"{t} ||| {text} ||| A= 1 ||| 0" for t, text in rows])
    world.write("ref", [" ".join(reference) for _, reference in lists])
    command = "lm-eval pairs --kbest list --no-docs each --ref ref"
    (world.folder / "pairs").unlink(missing_ok=True)
    world.run(f"{command} --out pairs -q")
    result = [json.loads(x) for x in world.lines("pairs")] if "pairs" in world.files() else []
    expected = [
        [(a, b) for a in candidates for b in candidates if contrast(a, b, reference)]
        for candidates, reference in lists
    ]
    assert len(result) == sum(map(bool, expected))
    for item, pairs in zip(result, filter(None, expected), strict=True):
        wrong = item["wrong"] if isinstance(item["wrong"], list) else [item["wrong"]]
        assert wrong
        assert all((item["right"].split(), other.split()) in pairs for other in wrong)


def test_items_lack_a_word_or_replace_one_that_the_document_has_had(world: World) -> None:
    """With the source, and after a text of one's own; a sentence without source is left out."""
    lists = [["the lamp"], ["i see the lamp", "see the lamp", "i see the light"], ["i go", "go"]]
    world.write("list", [f"{t} ||| {c} ||| A= 1 ||| 0" for t, own in enumerate(lists) for c in own])
    world.write("ref", ["the lamp", "I see the lamp", "go"])
    world.write("src", ["deng", "wo kan deng", "qu"])
    world.write("out", ["a light", "", "x"])
    command = "lm-eval pairs --kbest list --no-docs one --ref ref --source src -q"
    items = {}
    for kind in ("--variants omitted", "--class repeated", "--variants omitted --before out"):
        world.ok(f"{command} {kind} --out pairs")
        items[kind] = [json.loads(line) for line in world.lines("pairs")]
        (world.folder / "pairs").unlink()
    omitted, repeated, after = items.values()
    expected = [("i see the lamp", ["see the lamp"]), ("go", ["i go"])]
    assert [(x["right"], x["wrong"]) for x in omitted] == expected
    assert omitted[1]["context"] == ["the lamp", "I see the lamp"]
    assert omitted[1]["source"] == ["deng", "wo kan deng", "qu"]
    assert omitted[0]["phenomenon"] == "pronouns omitted"
    assert [(x["right"], x["wrong"]) for x in repeated] == [("i see the lamp", ["i see the light"])]
    assert [x["context"] for x in after] == [["a light"], ["a light"]]
    assert after[1]["source"] == ["deng", "qu"]
    world.write("src", ["deng", "", "qu"])
    world.ok(f"{command} --variants omitted --out pairs")
    (item,) = [json.loads(line) for line in world.lines("pairs")]
    assert (item["right"], item["source"]) == ("go", ["deng", "qu"])
