"""Counts of what BLEU hardly sees in English documents; the truth is counted by hand."""

import pytest
from support.world import World

import rerank
from rerank.registry import METRICS

COUNTS = {  # metric: hypothesis, reference, (matches, items of the hypothesis, of the reference)
    "him-for-he": ("pronouns", "Give it to him .", "He got it .", (2, 2, 2)),
    "her-for-him": ("pronouns", "I saw her , you know .", "I saw him .", (0, 1, 1)),
    "clipped": ("pronouns", "they and them and THEIRS", "They came .", (1, 3, 1)),
    "escaped": ("pronouns", "he &apos;s late", "he’s late", (1, 1, 1)),
    "same-relation": ("connectives", "but he left", "however , he left", (1, 1, 1)),
    "longest": ("connectives", "As soon as he came , so did I", "when so", (2, 2, 2)),
    "part-of-a-word": ("connectives", "Iffy sand", "if and", (0, 0, 2)),
    "past": ("tense", "he walked and saw it", "he went and had it", (2, 2, 2)),
    "clitics": ("tense", "they'll come", "they won &apos;t come", (1, 1, 1)),
    "won": ("tense", "we won", "we won't", (0, 1, 1)),
    "negated": ("tense", "it isn't , it didn 't", "it isnt did n't", (2, 2, 2)),
    "joined": ("tense", "She cannot stay , we 're gonna go", "can not , are going to", (2, 2, 2)),
    "joined-past": ("tense", "'twas you , who shoulda", "it was , should have", (3, 3, 3)),
    "joined-pronoun": ("pronouns", "'Tis for 'em", "it is theirs", (2, 2, 2)),
    "joined-relation": ("connectives", "I left &apos;cause", "Because", (1, 1, 1)),
    "no-verbs": ("tense", "indeed a red hundred needs speed", "can", (0, 0, 1)),
    "names": ("names", "Today Ann met Bob .", "Ann met I and Bob .", (1, 2, 1)),
    "first-words": ("names", "Anna saw Ben and I left .", "he left . Then Carla came", (0, 1, 1)),
    "quoted": ("names", 'he said , " Come , Dora ! "', "- Yes . - Good , Emil", (0, 1, 1)),
    "capitals": ("names", "WHAT DID HE SAY", "the NATO and the EU", (0, 0, 2)),
    "other-letters": ("names", "3 Swiss and Österreich", "nobody here", (0, 2, 0)),
}


@pytest.mark.parametrize(("name", "ours", "theirs", "counts"), COUNTS.values(), ids=COUNTS)
def test_items_are_classes_and_counted_as_by_hand(
    name: str, ours: str, theirs: str, counts: tuple[int, int, int]
) -> None:
    rows = METRICS[name]().statistics([[ours.encode()]], [[theirs.encode()]])
    assert rows.tolist() == [[*counts]]


def test_repetitions_are_content_words_that_an_earlier_sentence_has() -> None:
    reference = "A dog ran .\nThe dog slept , and the cat\nThe cat saw a dog"
    # matches, items of the hypothesis and of the reference; a hound once is no repetition, and a
    # word twice in one sentence is none either
    for text, references, (matches, own, others) in (
        (reference, [reference], (3, 3, 3)),
        ("A hound ran\nThe dog dog slept\nA dog saw it", [reference], (1, 1, 3)),
        ("hound\nhound\nhound", ["cat\ncat\nhound", "hound\nhound\nx"], (1, 2, 1)),
    ):
        lines = [[*one] for one in zip(*(x.split("\n") for x in references), strict=True)]
        result = rerank.evaluate({"a": [text.split("\n")]}, [lines], metrics=["cohesion"])
        score = result.systems[0].metrics["cohesion"].score
        assert score == pytest.approx(200 * matches / (own + others))


def test_references_are_refused_for_their_language_taken_together_not_for_one_document() -> None:
    foreign = [b"wort " * 120, b"und " * 120]
    english = [b"It is he who has seen that dog . " * 60]
    for texts in ([*foreign, *english], [*english, *foreign]):
        result = METRICS["pronouns"]()
        rows_of = result.statistics([[text] for text in texts], [[text] for text in texts])
        assert result.scores(rows_of.sum(axis=0)) == pytest.approx(100)
    result = METRICS["pronouns"]()
    rows_of = result.statistics([[text] for text in foreign], [[text] for text in foreign])
    with pytest.raises(rerank.RerankError, match="expected English references, found 0%"):
        result.scores(rows_of.sum(axis=0))


def test_terms_are_what_a_source_repeats_and_count_where_one_translation_is_kept() -> None:
    source = ["alpha go", "bb cc", "alpha dd", "ee ff"]
    reference = ["Anna went", "but cold", "Anna dead", "every fun"]
    own = {
        "the-reference": (reference, 100.0),
        "another-name-throughout": (["Ana x", "q w", "Ana y", "z v"], 100.0),
        "two-names": (["Ana x", "q w", "Hanna y", "z v"], 0.0),
    }
    result = rerank.evaluate(
        {name: [text] for name, (text, _) in own.items()},
        [reference],
        sources=[source],
        metrics=["terms"],
    )
    scores = {system.name: system.metrics["terms"].score for system in result.systems}
    assert scores == {name: score for name, (_, score) in own.items()}


def test_the_metrics_stand_beside_others_in_every_form_and_in_python(world: World) -> None:
    world.write("docs", [f"d{i // 4}" for i in range(40)])
    world.write("ref", ["he was here", "but she saw it"] * 20)
    world.write("base", ["he is here", "she saw it"] * 20)
    world.write("ours", ["he was here", "but he saw it"] * 20)
    command = "evaluate --docs docs --ref ref --baseline base ours -m discourse"
    systems = world.ok(f"{command} --format json").json["systems"]
    base, ours = (
        {name: metric["score"] for name, metric in system["metrics"].items()} for system in systems
    )
    assert {*ours} == {"bleu", "pronouns", "connectives", "tense", "cohesion"}  # and no names
    assert base == pytest.approx(
        {"bleu": base["bleu"], "pronouns": 100, "connectives": 0, "tense": 50, "cohesion": 100}
    )
    assert ours["pronouns"] == pytest.approx(200 * 2 / 6)
    assert systems[1]["metrics"]["tense"]["p_value"] == pytest.approx(2 / 2**10)
    assert "pronouns lower, significant" in systems[1]["verdict"]
    for form in ("text", "latex", "markdown", "tsv"):
        assert "connectives" in world.ok(f"{command} --format {form}").out
    text, warned = world.ok(command).out, world.ok(command).err
    assert "metric names left out: the references have nothing that it counts" in warned
    assert "tense: rerank|metric:tense|language:en|nrefs:1" in text
    documents = {}
    for name in ("base", "ours", "ref"):
        lines = (world.folder / name).read_text().splitlines()
        documents[name] = [lines[i : i + 4] for i in range(0, 40, 4)]
    result = rerank.evaluate(
        {name: documents[name] for name in ("base", "ours")}, documents["ref"], metrics=["pronouns"]
    )
    assert result.systems[1].metrics["pronouns"].score == ours["pronouns"]
    assert [*result.systems[1].metrics] == ["bleu", "pronouns"]
