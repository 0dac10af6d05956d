"""Terms of a glossary that candidates miss, and consistency without alignments.

The truth is read off the texts by hand.
"""

import warnings

import pytest
from support.world import World

import rerank
from rerank import Document, Reranker
from rerank.registry import SCORERS

PEKING = "北京大学\tPeking University", "北京\tBeijing"
MATCHES = {  # source, glossary, keys, candidate, and how many terms it misses
    "parts-of-chinese-text": ("他去了北京大学。", PEKING[:1], "", "He is at Peking University.", 0),
    "translation-missed": ("他去了北京大学。", PEKING[:1], "", "He is at Beijing University.", 1),
    "longest-first": ("他在北京大学。", PEKING[::-1], "", "At Peking University", 0),
    "shorter-one-elsewhere": ("北京的北京大学", PEKING, "", "At Peking University", 1),
    "longest-first-across-starts": ("a b c d", ("a b\tX", "b c d\tY"), "", "Y", 0),
    "once-a-sentence": ("北京北京", PEKING, "", "", 1),
    "thai": ("ผมรักกรุงเทพมาก", ("กรุงเทพ\tBangkok",), "", "I love Paris", 1),
    "whole-words-of-others": ("the arts", ("art\tKunst",), "", "", 0),
    "whole-words-of-targets": ("art", ("art\tart",), "", "a party", 1),
    "marks-are-parts-of-words": ("किताब", ("कि\tthat",), "", "", 0),
    "of-several": ("the cat", ("cat\tKatze | Kater",), "", "der Kater", 0),
    "possessive": ("李逊的", ("李逊\tLi Xun",), "", "Li Xun's", 0),
    "tokenised": ("the U . S . army", ("U.S.\tVSt.",), "", "die VSt . -Armee", 0),
    "tokenised-missed": ("the U . S . army", ("U.S.\tVSt.",), "", "die VS", 1),
    "decomposed": ("le café", ("cafe\u0301\tcaffe\u0300",), "", "il caffè", 0),
    "full-width": ("ＡＩ与人", ("ai\tAI",), "", "ＡＩ", 0),
    "capitals": ("an apple", ("Apple\tApfel",), "", "APFEL", 0),
    "capitals-kept": ("an Apple", ("Apple\tApfel",), ",case=yes", "apfel", 1),
    "capitals-of-the-source-kept": ("an apple", ("Apple\tApfel",), ",case=yes", "", 0),
    "endings": ("с городами", ("город\tcompany",), ",inflection=yes", "the companies", 0),
    "endings-missed": ("с городами", ("город\tcity",), ",inflection=yes", "the town", 1),
    "endings-as-they-are": ("с городами", ("город\tcity",), ",inflection=no", "", 0),
    "endings-of-short-words": ("ab", ("a\tx", "ab\tcat"), ",inflection=yes", "cats", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", MATCHES)
def test_terms_are_matched_as_the_rules_say(name: str, world: World) -> None:
    source, glossary, keys, text, missed = MATCHES[name]
    world.write("src", [source, "x"])
    world.write("terms", glossary)
    world.write("k", [f"0 ||| {text} ||| x= 0 ||| 0", "1 ||| x ||| x= 0 ||| 0"])
    command = f"score --kbest k --no-docs one --source src --glossary terms{keys} --out o"
    world.ok(command)
    expected = [f"x= 0 glossary= {-missed}", "x= 0 glossary= 0"]
    assert [line.split(" ||| ")[2] for line in world.lines("o")] == expected


def test_terms_count_beside_agreement_and_a_table_says_what_was_missed(world: World) -> None:
    texts = {
        "A": ["Lee sleeps in the large bed of his old house every night", "a cat", "Rod , too"],
        "B": ["Lee sleeps in the large bed of his old house every night", "a cat", "Rode , too"],
        "C": ["Li sleeps in the large bed of his old house every night", "a cat", "Rod , too"],
    }
    world.write("src", ["李睡觉", "猫", "罗德也"])
    world.write("terms", ["李\tLi", "罗德\tRhode|Rhodes", "猫\tcat", "狗\tdog"])
    files = {name: world.write(f"{name}.txt", text).name for name, text in texts.items()}
    systems = " ".join(f"--systems {name}={file}" for name, file in files.items())
    command = f"decode {systems} --no-docs one"
    assert world.ok(command).lines[0] == "Lee sleeps in the large bed of his old house every night"
    words = f"{command} --source src --glossary terms --summary s.json --strict --allow unused-term"
    run = world.ok(words)
    expected = ["Li sleeps in the large bed of his old house every night", "a cat", "Rod , too"]
    assert run.lines == expected
    assert "and 10 times glossary" in run.err
    places = "3 of 4 terms found, at 3 places; kept by the choice at 2, by any candidate at 2;"
    assert f"glossary: {places} missed:" in run.err
    (row,) = [line.split() for line in run.err.split("\n") if "Rhode|Rhodes" in line]
    assert row == ["罗德", "Rhode|Rhodes", "1", "0", "0"]
    result = world.json("s.json")["glossary"]
    names = ("source", "targets", "sentences", "kept", "possible")
    rows = [
        ("罗德", ["Rhode", "Rhodes"], 1, 0, 0),
        ("李", ["Li"], 1, 1, 1),
        ("猫", ["cat"], 1, 1, 1),
    ]
    terms = [dict(zip(names, one, strict=True)) for one in rows]
    assert result == {"sentences": 3, "kept": 2, "possible": 2, "terms": terms}
    content = ["Li sleeps in the large bed of his old house every night", "a cat", "Rhode , too"]
    world.write("ref", content)
    documents = rerank.read(systems=files, side={"source": "src"}, no_docs="each")
    world.write("own", world.lines("terms")[:3])
    results = rerank.choose(documents, glossary="own")
    assert [result.texts[0] for result in results] == run.lines
    kept = [one["terms"] for one in Reranker({}, glossary="own").trace(documents)]
    assert kept == [[("李", "Li", True)], [("猫", "cat", True)], [("罗德", "Rhode|Rhodes", False)]]
    world.ok(f"{command[:-4]} each --source src --glossary terms --trace t --out o")
    explained = world.ok("explain t --format json").json
    counts = {f"{d}": {"kept": n, "missed": 1 - n} for d, n in enumerate([1, 1, 0])}
    assert explained["terms"] == counts
    assert explained["missed"] == [["罗德", "Rhode|Rhodes", 1]]
    rows_of = [line.split() for line in world.ok("explain t").out.splitlines()]
    assert ["all", "documents", "2", "1"] in rows_of
    assert ["罗德", "Rhode|Rhodes", "1"] in rows_of
    assert "  missed      罗德 (Rhode|Rhodes)\n" in world.ok("explain t 2").out + "\n"
    page = world.ok("report --trace t --no-docs each --ref ref").out
    assert '<th scope="row">罗德</th><td class="text">Rhode|Rhodes</td><td>1</td>' in page
    world.ok(
        f"tune-mert {systems} --no-docs each --source src --ref ref --glossary terms --out w.json"
    )
    weights = world.json("w.json")
    assert "glossary" in weights["weights"]
    assert weights["provenance"]["glossary"]["file"] == "terms"


@pytest.fixture
def tunable(world: World) -> World:
    """Ten sentences of two candidates; the first one, which LM0 prefers, has no `light`."""
    texts = ["the lamp is lit", "the light is lit"]
    content = [f"{t} ||| {x} ||| LM0= {-k} ||| 0" for t in range(10) for k, x in enumerate(texts)]
    world.write("k", content)
    world.write("src", ["Lampe"] * 10)
    world.write("ref", [texts[0]] * 5 + [texts[1]] * 5)
    world.write("terms", ["Licht\tlight"])
    return world


RUN = "--kbest k --no-docs each --source src --glossary terms"
TUNE = f"tune-mert {RUN} --ref ref --starts 1 --out w.json"
PRESET = (
    "`glossary` has weight 10, as without a weights file: it tells no candidates of the tuning "
    "documents apart"
)


def test_a_glossary_that_tuning_says_nothing_of_keeps_its_own_weight(tunable: World) -> None:
    run = tunable.ok(TUNE)
    weights = tunable.json("w.json")
    assert weights["weights"]["glossary"] == [10.0]
    assert weights["provenance"]["presets"] == ["glossary"]
    assert PRESET in run.err.splitlines()[-3:]
    documents = rerank.read("k", no_docs="each", side={"source": "src"})
    references = [[line] for line in tunable.lines("ref")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rerank.RerankWarning)
        tuned = rerank.tune(documents, references, glossary="terms")
    assert (tuned.dense["glossary"], tuned.remarks()) == ((10.0,), [PRESET])
    tunable.write("src", ["Licht"] * 10)
    used = tunable.ok(f"decode {RUN} --weights w.json --out o")
    assert tunable.lines("o") == ["the light is lit"] * 10
    assert PRESET in used.err.splitlines()[-2:]


def test_a_glossary_has_the_weight_of_the_start_or_of_the_tuning(tunable: World) -> None:
    tunable.weights("start.json", {"LM0": 1, "glossary": 0})
    tunable.ok(f"{TUNE} --start start.json")
    assert tunable.json("w.json")["weights"]["glossary"] == [0.0]
    tunable.write("src", ["Licht"] * 10)
    run = tunable.ok(TUNE)
    assert tunable.json("w.json")["weights"]["glossary"] == [0.0]
    assert "`glossary` has weight 0: it gained nothing on held-out text" in run.err


def test_weights_without_one_of_a_glossary_are_used_with_its_own(tunable: World) -> None:
    tunable.write("src", ["Licht"] * 10)
    tunable.weights("w.json", {"LM0": 1})
    run = tunable.ok(f"decode {RUN} --weights w.json --out o --strict")
    assert tunable.lines("o") == ["the light is lit"] * 10
    said = "feature without weight; 10, its weight without a weights file, is used: glossary"
    assert said in run.err
    tunable.ok(f"decode {RUN} --weights w.json --out o --default-weight 0")
    assert tunable.lines("o") == ["the lamp is lit"] * 10
    documents = rerank.read("k", no_docs="each", side={"source": "src"})
    with pytest.warns(rerank.RerankWarning, match="its weight without a weights file"):
        results = Reranker({"LM0": 1.0}, glossary="terms").decode(documents)
    assert {result.texts[0] for result in results} == {"the light is lit"}


def test_translations_without_alignments_are_found_in_the_document(world: World) -> None:
    source = ["罗德来了", "天气很好", "罗德说话", "罗德走", "夜里", "大家都睡"]
    lists = [
        ("Rode came", "Rhode came"),
        ("fine", "nice"),
        ("Rhode spoke", "Rode spoke"),
        ("Rode left", "Rhode left"),
        ("at night",),
        ("all",),
    ]
    world.write("src", source)
    rows = [(t, text) for t, texts in enumerate(lists) for text in texts]
    world.write("k", [f"{t} ||| {text} ||| x= 0 ||| 0" for t, text in rows])
    world.weights("w.json", {"same": 1, "x": 1})
    command = "score --kbest k --no-docs one --source src --scorer same=consistency"
    world.ok(f"{command} --out o")
    values = [float(line.split("same= ")[1].split(" |||")[0]) for line in world.lines("o")]
    # after the first candidates Rode, and in the fourth sentence Rhode as well
    assert values == [0, 0, 0, 0, -1, 0, 0, 0, 0, 0]
    world.write("ignored", "罗德\n")
    world.ok(f"{command}:ignored --out o")
    assert all(" same= 0 " in line for line in world.lines("o"))
    document = Document("d", lists, side={"source": source})
    (result,) = Reranker({"same": 1.0}, scorers={"same": SCORERS["consistency"]()}).decode(
        [document]
    )
    assert result.score == 0
    assert len({text.split()[0] for text in (result.texts[t] for t in (0, 2, 3))}) == 1


def test_many_terms_that_overlap_are_found_in_a_moment(world: World) -> None:
    """Each term is the beginning of the next: comparing all at each word would take minutes.

    The longest one is found, and of five words behind it a term of five.
    """
    world.write("terms", ["ab " * n + f"\tx{n}" for n in range(1, 401)])
    world.write("src", ["ab " * 405])
    world.write("k", [f"0 ||| {text} ||| x= 0 ||| 0" for text in ("x5 x400", "x5", "x4")])
    lines = world.ok("score --kbest k --no-docs one --source src --glossary terms").lines
    assert [line.split(" ||| ")[2] for line in lines] == [
        f"x= 0 glossary= {-missed}" if missed else "x= 0 glossary= 0" for missed in (0, 1, 2)
    ]


def test_a_glossary_is_checked_against_a_source_alone(world: World) -> None:
    world.write("src", b"die Lampe\r\nist an\r\n")
    world.write("terms", "Lampe\tlamp\nSonne\tsun\n")
    said = world.ok("check --glossary terms --source src").out
    assert "terms: term of the glossary that no source sentence has: 'Sonne'; " in said
    assert "src:1: CRLF line ends" in said
    world.write("terms", "Lampe\t\n")
    refused = world.run("check --glossary terms --source src")
    assert (refused.exit, "terms:1: expected translations of 'Lampe'" in refused.out) == (3, True)
    assert "expected --kbest FILE" in world.run("check --glossary terms --source src --fix o").err
