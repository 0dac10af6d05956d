"""Candidates that are no translations: found, named, avoided, dropped and cleaned."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.world import World

import rerank

SOURCES = [
    "die Fähre verlässt den Hafen um sieben Uhr morgens .",
    "niemand hatte dem Kapitän vom kaputten Ruder erzählt .",
    "sie schrieb den Brief auf die Rückseite einer alten Quittung .",
    "wir zählten elf Boote , bevor der Nebel kam .",
    "im Frühling bringt der Fluss Holz aus den Bergen mit .",
    "er fragte mich nie , warum ich den Schlüssel behielt .",
]
TEXTS = [
    ["the ferry leaves the harbour at seven in the morning .", "the ferry departs at seven ."],
    ["nobody had told the captain about the broken rudder .", "no one told him of the rudder ."],
    ["she wrote the letter on the back of an old receipt .", "she wrote it on an old bill ."],
    ["we counted eleven boats before the fog came .", "eleven boats we saw before the fog ."],
    ["in spring the river brings wood from the hills .", "in spring it carries timber down ."],
    ["he never asked me why I kept the key .", "he has not asked why I have that key ."],
]
PLACE = 3  # the sentence whose candidates are damaged
LOOP = "we counted " + "eleven boats and then " * 12
DEFECTS: Mapping[str, Any] = {  # by kind: what stands there twice in place of two translations
    "control-token": "we counted eleven boats before the fog came .<|im_end|>",
    "text-around": "Here is the English translation: we counted eleven boats .",
    "byte-tokens": "we counted <0xE2><0x80> eleven boats .",
    "reasoning": "<think>\nBoote are boats.\n</think>\n\nwe counted eleven boats .",
    "cut-off": {"text": "we counted eleven boats before", "finish_reason": "length"},
    "loop": LOOP,
    "other-script": "мы насчитали одиннадцать лодок , прежде чем пришёл туман .",
    "untranslated": SOURCES[PLACE],
    "refusal": "I'm sorry, but I can't assist with that request.",
}


def lists(damaged: Sequence[Any] = (), **more: Any) -> str:
    """JSON lines of the sentences, with other candidates in front of those of one of them."""
    rows = []
    for t, (source, texts) in enumerate(zip(SOURCES, TEXTS, strict=True)):
        candidates = [*damaged, *texts] if t == PLACE else [*texts]
        rows.append({"id": t, "source": source, "candidates": candidates, **more})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def choice(world: World, text: str, options: str = "") -> tuple[str, str]:
    """The choice of the damaged sentence, and what was printed."""
    world.write("a.jsonl", text)
    run = world.ok(f"decode --kbest a.jsonl --no-docs one {options}")
    return run.lines[PLACE], run.err


@pytest.mark.parametrize("kind", DEFECTS)
def test_two_candidates_with_one_defect_are_named_and_not_chosen(world: World, kind: str) -> None:
    chosen, printed = choice(world, lists([DEFECTS[kind]] * 2))
    assert chosen in TEXTS[PLACE]
    assert "2 x candidate" in printed
    assert f"{kind}]" in printed
    kept, _ = choice(world, lists([DEFECTS[kind]] * 2), "--defects keep")
    assert kept not in TEXTS[PLACE] or kind == "cut-off"  # which agrees with the others, too


def test_sources_that_are_of_use_only_need_not_be_complete(world: World) -> None:
    world.write("ids", ["d"] * (len(SOURCES) + 1))
    world.write("a.jsonl", lists([DEFECTS["untranslated"]] * 2))
    run = world.ok("decode --kbest a.jsonl --docs ids")  # whose last line has no candidates
    assert run.lines[PLACE] in (*TEXTS[PLACE], SOURCES[PLACE])


def test_of_candidates_that_all_have_a_defect_the_least_bad_is_taken(world: World) -> None:
    bad = json.dumps([DEFECTS["refusal"], DEFECTS["refusal"], LOOP])
    chosen, printed = choice(world, lists().replace(json.dumps(TEXTS[PLACE]), bad))
    assert chosen == LOOP.strip()
    assert "defects: 1 sentences of which every candidate has a defect" in printed


def test_candidates_that_are_dropped_leave_the_numbers_of_the_others(world: World) -> None:
    text = lists([DEFECTS["refusal"], LOOP])
    before, behind = [0.0] * 2 * PLACE, [0.0] * 2 * (len(TEXTS) - PLACE - 1)
    scores = [*before, 9.0, 9.0, 1.0, 2.0, *behind]
    world.write("scores", "".join(f"{value}\n" for value in scores))
    world.write("w.json", '{"s": 1}')
    how = "--scores s=scores --weights w.json"
    assert choice(world, text, how)[0] == DEFECTS["refusal"]
    assert choice(world, text, f"{how} --defects drop")[0] == TEXTS[PLACE][1]
    assert choice(world, text, f"{how} --defects avoid")[0] == TEXTS[PLACE][1]


@pytest.mark.parametrize("words", [
    "The translation of the German text is:", "Translated text:", "This text translates to:",
    'Here\'s the translation of the text "wir zählten" into English:', "English translation:",
    'The English translation of "wir zählten" from German to English is:',
    "The given German text can be translated into:", "It can be translated to:",
])  # fmt: skip
def test_words_around_a_translation_are_named_and_not_chosen(world: World, words: str) -> None:
    """As language models say them; a text about a translation is one."""
    chosen, printed = choice(world, lists([f"{words} {TEXTS[PLACE][1]}"] * 2))
    assert (chosen in TEXTS[PLACE], "text-around]" in printed) == (True, True)
    of_translations = f"the {words.strip(':').lower()} read by us before the fog : good"
    assert "text-around]" not in choice(world, lists([of_translations]))[1]


def test_an_engine_of_many_outputs_that_are_no_translations_has_no_vote(world: World) -> None:
    """Two engines of a family comment, and agree with each other where they do not."""
    one, other = zip(*TEXTS * 10, strict=True)
    comment = DEFECTS["text-around"]
    named = {"A": one, "B": [text.partition(" ")[2] for text in one]}
    for name, end in (("C", "here"), ("D", "there")):
        texts = [f"{text} {end}" for text in other]
        named[name] = [comment if t % 3 == 0 else text for t, text in enumerate(texts)]
    for name, lines in named.items():
        world.write(name, "".join(f"{line}\n" for line in lines))
    systems = " ".join(f"--systems {name}={name}" for name in named)
    run = world.ok(f"decode {systems} --no-docs one")
    assert "systems without a vote: C, D (many outputs that are no translations)" in run.err
    assert {*run.lines} <= {*named["A"], *named["B"]}
    two = world.ok("decode --systems C=C --systems A=A --no-docs one")  # each has a vote
    assert two.lines == [*named["A"]]


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
@pytest.mark.parametrize("how", ["avoid", "drop", "keep"])
def test_python_chooses_as_the_shell_does(world: World, how: str) -> None:
    text = lists([DEFECTS["loop"], DEFECTS["loop"], DEFECTS["cut-off"]])
    chosen, _ = choice(world, text, f"--defects {how}")
    documents = rerank.read(kbest=world.folder / "a.jsonl", no_docs="one")
    assert rerank.choose(documents, defects=how)[0].texts[PLACE] == chosen


def test_what_all_candidates_say_is_no_defect(world: World) -> None:
    """The source may say sorry, repeat itself, or begin with words about a translation."""
    said = "sorry , I cannot translate this text . " + "no , no , no , " * 6
    rows = lists().replace(json.dumps(TEXTS[PLACE]), json.dumps([f"{said}!", f"{said}."]))
    assert "R7" not in choice(world, rows)[1]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("<think>\nno\n</think>\n\na b .", "a b ."),
        ("it is so\n</think>\na b .", "a b ."),
        ("<|channel|>analysis<|message|>no<|end|><|channel|>final<|message|>a b .", "a b ."),
        ("```text\na b .\n```", "a b ."),
        ("a b .<|im_end|>", "a b ."),
        ("caf<0xC3><0xA9> .", "café ."),
        ("ĠMüller cafÃ© âĢĶ .", "Müller café — ."),
        ("<think> it has no end", "<think> it has no end"),
        ("a <0xC3> b .", "a <0xC3> b ."),
        ("Here is the translation: a b .", "Here is the translation: a b ."),
    ],
)
def test_convert_takes_what_is_no_translation_away(world: World, text: str, cleaned: str) -> None:
    world.write("a.jsonl", lists([text]))
    run = world.ok("convert --clean --kbest a.jsonl --to jsonl")
    assert json.loads(run.lines[PLACE])["candidates"][0]["text"] == cleaned
    assert ("taken away" in run.err) == (text != cleaned)


def test_a_prompt_before_all_texts_is_named_and_taken_away(world: World) -> None:
    rows = [json.loads(line) for line in lists().splitlines()]
    for row in rows:
        prompt = f"Translate German to English: {row.pop('source')} English: "
        row["candidates"] = [prompt + text for text in row["candidates"]]
    world.write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    run = world.ok("convert --clean --kbest a.jsonl --to first")
    assert run.lines == [texts[0] for texts in TEXTS]
    assert "R705 prompt" in run.err
    assert "taken away: prompt 12" in run.err


def test_arrays_of_pipelines_are_lists_of_candidates(world: World) -> None:
    rows = [[{"generated_text": f"English: {text}"} for text in texts] for texts in TEXTS]
    world.write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    run = world.ok("convert --clean --kbest a.jsonl --to first")
    assert run.lines == [texts[0] for texts in TEXTS]
    assert "R705 prompt" in run.err


def test_outputs_of_systems_are_named_by_system(world: World) -> None:
    for name, place in (("a", 0), ("b", 1), ("c", 0)):
        lines = [texts[place] for texts in TEXTS]
        lines[PLACE] = LOOP.strip() if name == "c" else lines[PLACE]
        world.write(name, "".join(f"{line}\n" for line in lines))
    run = world.ok("decode --systems a=a --systems b=b --systems c=c --no-docs one")
    assert "1 x output of c that repeats itself" in run.err
    assert "c:4 [R707 loop]" in run.err
    assert run.lines[PLACE] in TEXTS[PLACE]


@pytest.mark.parametrize("missing", [None, -9999.0, "None"])
def test_a_log_probability_that_is_missing_is_not_0(world: World, missing: object) -> None:
    def answer(values: Sequence[object]) -> str:
        choices = [{"text": "a b", "logprobs": {"token_logprobs": [*values]}}]
        return json.dumps({"id": 0, "choices": choices}) + "\n"

    world.write("a.jsonl", answer([-1.0, missing]))
    convert = "convert --kbest a.jsonl --to moses"
    assert "a.jsonl:1: expected a log-probability of every token" in world.refused(convert, exit=3)
    world.write("a.jsonl", answer([None, -1.0]))  # of the first token no server knows it
    assert "-1" in world.ok(convert).out


@pytest.mark.filterwarnings("ignore::rerank.RerankWarning")
@given(
    phrase=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True),
    times=st.integers(1, 30),
)
def test_a_phrase_is_a_loop_from_sixteen_words_on(phrase: list[str], times: int) -> None:
    """Where another candidate of the sentence does not repeat it."""
    text = " ".join([*phrase] * times)
    (result,) = rerank.choose([rerank.Document("d", [[text, text, "one two three four ."]])])
    is_loop = times >= 3 and times * len(phrase) >= 16
    assert result.choices == (2 if is_loop else 0,)


def test_tables_and_traces_say_which_candidates_were_avoided(world: World) -> None:
    world.write("a.jsonl", lists([DEFECTS["reasoning"], DEFECTS["loop"]]))
    world.ok("decode --kbest a.jsonl --no-docs one --table t.tsv --trace t.jsonl")
    cells = world.table("t.tsv")["defects"]
    said = {"reasoning": 1, "loop": 1}
    assert sorted(cells[PLACE].split(", ")) == sorted(f"{k} {n}" for k, n in said.items())
    assert not any(cells[:PLACE])
    records = [json.loads(line) for line in world.lines("t.jsonl")]
    assert [record["defects"] for record in records[PLACE - 1 : PLACE + 1]] == [{}, said]
    assert records[PLACE]["over_first"]["defects"] > 0
    told = "andidates that are no translations, avoided where others are there: "
    told += "reasoning 1, loop 1 (sentences: 1)"
    assert told in world.ok("explain t.jsonl").out
    world.ok("report --trace t.jsonl --no-docs one --out page.html")
    assert f"<p>C{told}.</p>" in world.text("page.html")


def test_a_tuning_offers_the_feature_of_the_defects_that_it_sees(world: World) -> None:
    """With it, weights avoid what looks good to the other features."""
    rows, references = [], []
    for t in range(24):
        texts = [f"{TEXTS[t % 6][0]} {t}", f"{TEXTS[t % 6][1]} {t}"]
        texts.append(f"<think> {t} </think> {texts[0]}" if t % 2 else f"{TEXTS[(t + 1) % 6][1]} .")
        good = [0.5, 0.1, 0.9 if t % 2 else -0.5]
        rows += [
            f"{t} ||| {text} ||| tm= {value} lm= {len(text) / 100} ||| {value}"
            for text, value in zip(texts, good, strict=True)
        ]
        references.append(texts[0])
    world.write("k", "".join(f"{row}\n" for row in rows))
    world.write("r", "".join(f"{line}\n" for line in references))
    world.write("d", "".join(f"d{t // 2}\n" for t in range(24)))
    tune = "tune-mert --kbest k --docs d --ref r --out w.json"
    assert "--defects avoid tunes a weight for them" in world.ok(tune).err
    assert "tunes a weight" not in world.ok(f"{tune} --defects avoid").err
    chosen = world.ok("decode --kbest k --docs d --weights w.json").lines
    assert chosen == references


def test_numbers_for_candidates_with_a_text_alone_are_refused_by_blank_ones(world: World) -> None:
    texts = ["a b", "", "c", "d", "", "e"]
    rows = (f"{i // 2} ||| {text} ||| tm= 1 ||| 1\n" for i, text in enumerate(texts))
    world.write("k", "".join(rows))
    world.write("q", "1\n" * 4)
    world.weights("w.json", {"tm": 1.0, "q": 1.0})
    refused = world.run("decode --kbest k --no-docs each --scores q=q --weights w.json")
    assert refused.exit == 3
    assert "q:5: expected 6 lines as k has, found 4; " in refused.err
    assert refused.err.endswith("in their order, also for those without a text: 2, 5\n")


def test_what_outputs_of_systems_say_of_their_ends_counts(world: World) -> None:
    for name, texts in (("a", "the ferry leaves at"), ("b", "the ferry leaves at noon today .")):
        ends = {"it rains .": "stop", texts: "length" if name == "a" else "stop"}
        rows = [{"document": "d", "hypothesis": x, "finish_reason": y} for x, y in ends.items()]
        world.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    run = world.ok("decode --systems a=a --systems b=b --systems c=a --table t.tsv")
    assert run.lines[1] == "the ferry leaves at noon today ."
    assert "output of a that was cut off" in run.err
    assert world.table("t.tsv")["defects"][-1] == "cut-off 1"
