"""`lm-eval pairs`: contrasts in k-best lists, against all pairs of candidates one by one."""

import json
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.world import World

KIND = {"he", "she", "it", "i'm"}
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
    world.write("words", sorted(KIND))
    command = "lm-eval pairs --kbest list --no-docs each --ref ref --word-list w=words --class w"
    (world.folder / "pairs").unlink(missing_ok=True)
    world.run(f"{command} --out pairs -q")
    found = [json.loads(x) for x in world.lines("pairs")] if "pairs" in world.files() else []
    expected = [
        [(a, b) for a in candidates for b in candidates if contrast(a, b, reference)]
        for candidates, reference in lists
    ]
    assert len(found) == sum(map(bool, expected))
    for item, pairs in zip(found, filter(None, expected), strict=True):
        wrong = item["wrong"] if isinstance(item["wrong"], list) else [item["wrong"]]
        assert wrong
        assert all((item["right"].split(), other.split()) in pairs for other in wrong)
