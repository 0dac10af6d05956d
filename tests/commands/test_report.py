"""`rerank report`: the page is well formed, safe against its texts, and has its parts.

Its numbers have their origins in `tests/golden`. Traces are written by hand.
"""

import base64
import hashlib
import importlib.util
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from sacrebleu.metrics.chrf import CHRF
from support.world import WORDS, World

from rerank.metrics.significance import Gain, answer
from rerank.metrics.significance import verdict as verdict_of

HOSTILE = (
    "</script><script>window.PWNED = 1</script>",
    '<img src=x onerror="window.PWNED = 1">',
    "javascript:window.PWNED=1",
    "{{7*7}}{% raw %}",
    "]]><!--",
    '" onmouseover="window.PWNED=1',
    "evil\u202e\u200b\u00ad",
    "x" * 10_000,
)
NAMES = [*HOSTILE[:6], *"ghijkl"]
REPORT = "report --trace t --docs docs --ref ref"
VOID = {"meta", "link", "input", "br", "wbr"}


class Page(HTMLParser):
    """Elements, texts and scripts of a page; a fault for tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of the elements of a tag."""
        return [attrs for name, attrs in self.tags if name == tag]


def choice(document: str, sentence: int, first: str, chosen: str) -> str:
    """A line of a trace."""
    added = {f"<b>{document[:9]}</b>": 0.5, "LM0": -0.25}
    texts = {"chosen": chosen, "first": first, "runner_up": None}
    found = {"document": document, "sentence": sentence, "source": None, "chosen": 2, "first": 0}
    found |= {"texts": texts, "weighted": {}, "over_first": added, "over_runner_up": None}
    return json.dumps(
        found | {"margin": 0.25, "alone": {"chosen": 0, "text": first, "lead": 0.125}}
    )


@pytest.fixture
def traced(world: World) -> World:
    """Twelve documents of two sentences with hostile names and texts; the second one changed."""
    hostile = [HOSTILE[d % 8] for d in range(12)]
    world.write("docs", [name for name in NAMES for _ in "ab"])
    world.write("ref", [x for text in hostile for x in (f"{text} it is", "it is lit now here")])
    lines = []
    for name, text in zip(NAMES, hostile, strict=True):
        lines.append(choice(name, 0, f"{text} it is", f"{text} it is"))
        other = "it is lit now" if name in NAMES[::3] else f"{text} is lit now"
        lines.append(choice(name, 1, "it is lit" if name != "l" else "it is lit now here", other))
    world.write("t", lines)
    return world


def page(world: World, options: str = "") -> Page:
    return Page(world.ok(f"{REPORT} {options}").out)


def test_hostile_texts_stand_in_the_page_as_texts(traced: World) -> None:
    first, *others = traced.lines("t")
    lines = [f"rerank {what} '</pre><script>PWNED</script>'" for what in ("decode", "tune-mert")]
    traced.write("t", [json.dumps(json.loads(first) | {"run": {"command": lines[0]}}), *others])
    traced.weights("w.json", {"LM0": 1}, provenance={"command": lines[1]})
    title = "--title '</title><script>PWNED</script>'"
    traced.ok(f"{REPORT} --weights w.json --out page.html {title}")
    result = Page(traced.text("page.html"))
    text = "\0".join(result.texts)
    for hostile in HOSTILE:  # invisible characters are shown as code points
        assert re.sub("[\u202e\u200b\u00ad]", lambda x: f"‹U+{ord(x[0]):04X}›", hostile) in text
    assert "49" not in "".join(one for one in result.texts if "7*7" in one)
    assert len(result.of("script")) == 1
    assert not result.of("img")
    assert not any(name.startswith("on") for _, attrs in result.tags for name in attrs)
    assert "</title><script>PWNED</script>" in result.text
    assert f"Commands: tuning, decoding, page{lines[1]} {lines[0]} rerank report" in result.text
    for option in (*REPORT.split(" --")[1:], "weights w.json", "out page.html", title[2:]):
        assert f" --{option}" in result.text


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone(traced: World) -> None:
    result = page(traced)
    (policy,) = (attrs["content"] for attrs in result.of("meta") if attrs.get("http-equiv"))
    assert policy is not None
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(result.raw[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_there_is_nothing_from_elsewhere_and_links_lead_to_ids(traced: World) -> None:
    result = page(traced)
    assert not {name for _, attrs in result.tags for name in attrs} & {
        "style", "target", "src", "action",
    }  # fmt: skip
    links = [str(attrs["href"]) for _, attrs in result.tags if "href" in attrs]
    assert all(link.startswith(("#", "data:,")) for link in links)
    assert "http" not in result.raw["style"] + result.raw["script"]
    ids = [attrs["id"] for _, attrs in result.tags if "id" in attrs]
    assert len(ids) == len({*ids})
    labels = {attrs["aria-labelledby"] for _, attrs in result.tags if "aria-labelledby" in attrs}
    assert labels | {link[1:] for link in links if link[0] == "#"} <= {*ids}
    assert len(result.of("h1")) == 1


def test_the_parts_of_the_page_say_what_the_json_says(traced: World) -> None:
    result, numbers = page(traced), traced.ok(f"{REPORT} --format json").json
    base, ours = numbers["evaluation"]["systems"]
    minus = str.maketrans("-", "\N{MINUS SIGN}")
    assert f"BLEU went from {base['bleu']:.2f} to {ours['bleu']:.2f}" in result.text
    counts = ours["documents"]
    assert f"{counts['better']} of 12 documents got better, {counts['worse']} worse" in result.text
    for score in ours["metrics"].values():
        assert f"{score['score']:.2f}" in result.text
        assert score["signature"] in result.text
    for one in numbers["documents"]:
        gain = f"{one['gain']:+.2f}".translate(minus)
        assert gain in result.text or one["gain"] == 0
    explained = numbers["explanation"]
    assert f"{explained['changed']} of 24 sentences changed" in result.text
    assert f"{explained['by_context']} choices come from context" in result.text
    gains = [one["chrf"] for document in numbers["documents"] for one in document["shown"]]
    better, worse = sum(x >= 0.05 for x in gains), sum(x <= -0.05 for x in gains)
    equal = explained["changed"] - better - worse
    assert f": by chrF, {better} are better, {worse} worse, {equal} equal;" in result.text
    rows = [one for one in result.of("tr") if (one.get("id") or "").startswith("row-")]
    assert (len(rows), len(result.of("article"))) == (12, 15)  # three are examples
    assert "What features add is" not in result.text  # it is known for all
    assert not result.of("q")  # quotes of the texts would be doubled
    assert "Give --summary FILE" in result.text
    assert "Give --weights FILE" in result.text


def test_a_bar_shows_the_gain_of_each_document(traced: World) -> None:
    """To the left of zero for a loss, and as long as the gain is large, in the order of gains."""
    result, numbers = page(traced), traced.ok(f"{REPORT} --format json").json["documents"]
    bars: dict[int, dict[str, str | None]] = {}
    ours = None
    for tag, attrs in result.tags:
        if (name := attrs.get("id") or "").startswith("doc-"):
            ours = int(name[4:])
        elif tag == "rect" and ours is not None:
            bars.setdefault(ours, attrs)
    gains = [number["gain"] for number in numbers]
    assert {*bars} == {*range(12)}
    largest = max(map(abs, gains))
    for d, bar in bars.items():
        width, x = float(bar["width"] or 0), float(bar["x"] or 0)
        assert width == pytest.approx(100 * abs(gains[d]) / largest, abs=0.01)
        assert x == (-width if gains[d] < 0 else 0)
        assert bar["class"] == ("up" if gains[d] > 0 else "down" if gains[d] < 0 else "same")
    rows = [one["id"] or "" for one in result.of("tr") if (one.get("id") or "").startswith("row-")]
    assert [int(x[4:]) for x in rows] == sorted(range(12), key=lambda d: (-gains[d], d))
    worst = min(range(12), key=lambda d: gains[d])
    (link,) = re.findall('Worst document: <a href="#doc-([0-9]+)">', traced.ok(REPORT).out)
    assert gains[int(link)] == gains[worst] < 0


def test_a_gain_that_chance_may_explain_is_grey(traced: World) -> None:
    _, ours = traced.ok(f"{REPORT} --format json").json["evaluation"]["systems"]
    text = traced.ok(REPORT).out
    for name, score in ours["metrics"].items():
        certain = score["p_value"] < 0.05
        better = score["difference"] * (-1 if name == "ter" else 1) > 0
        kind = ("up" if better else "down") if certain else "same"
        gain = f"{score['difference']:+.2f}".replace("-", "\N{MINUS SIGN}")
        assert f'<td><b class="{kind}">{gain}</b></td>' in text
    told = {"better": ("Yes", "up"), "worse": ("No", "down")}
    word, kind = told.get(ours["verdict"].partition(",")[0], ("Not certain", "same"))
    assert f'<p class="verdict {kind}"><b>{word}:</b> {ours["verdict"]}' in text


@pytest.mark.parametrize(
    ("verdict", "found"),
    [
        ("better, significant in BLEU; TER worse, not significant", ("Yes", "up")),
        ("better, significant in BLEU; chrF worse, significant", ("Yes, but", "up")),
        ("worse, significant in BLEU, not in chrF", ("No", "down")),
        ("no significant difference in BLEU; chrF better, significant", ("Not certain", "same")),
        ("BLEU better; not tested: fewer than 10 documents", ("Not certain", "same")),
        ("no difference", ("No", "same")),
    ],
)
def test_what_a_verdict_answers(verdict: str, found: tuple[str, str]) -> None:
    assert answer(verdict) == found


def test_metrics_that_differ_both_ways_are_mixed() -> None:
    rest = [Gain("chrF", -0.6, 0.0001), Gain("TER", 1.5, 0.002)]
    told = "mixed: TER better (p 0.002), chrF worse (p < 0.001); no significant difference in BLEU"
    result = verdict_of([Gain("BLEU", 0.1, 0.494)], rest, -0.03)
    assert (result, answer(result)) == (f"{told}; the output is shorter", ("Mixed", "same"))
    both = [Gain("BLEU", 1.0, 0.01), *rest[:1]]
    assert verdict_of(both) == "mixed: BLEU better (p 0.010), chrF worse (p < 0.001)"


def test_the_page_says_what_bleu_would_be_without_context(world: World) -> None:
    world.write("docs", [*"aabbccdd"])
    world.write("ref", ["it is lit now here"] * 8)
    texts = {"a": "it is lit now here", "b": "it was lit", "c": "it is lit now here", "d": "it"}
    choices = [choice(d, n, "it is lit now", text) for d, text in texts.items() for n in range(2)]
    world.write("t", choices)
    command = "report --trace t --docs docs --ref ref -m bleu"
    result = world.ok(f"{command} --format json").json
    base = result["evaluation"]["systems"][0]["bleu"]
    assert result["without_context"] == pytest.approx(base)  # alone, the first are chosen
    shown = Page(world.ok(command).out).text
    assert f"BLEU would be {base:.2f} in place of" in shown


def test_without_references_the_page_says_what_changed(traced: World) -> None:
    command = "report --trace t"
    result, truth = (traced.ok(f"{x} --format json").json for x in (command, REPORT))
    assert result["explanation"] == truth["explanation"]
    assert result["evaluation"] is None
    for own, document in zip(result["documents"], truth["documents"], strict=True):
        assert (own["id"], own["sentences"]) == (document["id"], document["sentences"])
        assert (own["gain"], own["changed"]) == (None, document["changed"])
        for a, b in zip(own["shown"], document["shown"], strict=True):
            assert {**a, "reference": 0, "chrf": 0} == {**b, "reference": 0, "chrf": 0}
    shown = Page(traced.ok(f"{command} --docs docs").out)
    assert "Not known. Whether it is better is measured against references" in shown.text
    assert "A changed sentence" in shown.text
    assert "BLEU" not in shown.text
    traced.write("first", [json.loads(line)["texts"]["chosen"] for line in traced.lines("t")])
    same = traced.ok(f"{command} --baseline first --format json").json
    assert same["explanation"]["changed"] == 0
    for more in ("--baseline first --baseline docs", "--scores q=baseline:q --scores q=decoded:q"):
        assert "give --ref FILE, too" in traced.refused(f"{command} {more}")


def test_sentences_have_their_gains_in_chrf(traced: World) -> None:
    documents = traced.ok(f"{REPORT} --format json").json["documents"]
    shown = [one for document in documents for one in document["shown"]]
    for one in shown:
        reference = [one["reference"]]
        base, ours = (CHRF().sentence_score(one[x], reference) for x in ("baseline", "chosen"))
        assert one["chrf"] == pytest.approx(ours.score - base.score)
    worse = sum(one["chrf"] < 0 for one in shown)
    assert traced.ok(REPORT).out.count('<article class="harmed"') == worse + 3  # three are examples


def test_changes_of_content_words_come_first(world: World) -> None:
    """Before the commonest words and punctuation, however often those change."""
    usual = " ".join(f"w{n}" for n in range(47))
    lines = [(f"{usual} the .", f"{usual} a ."), (f"{usual} a .", f"{usual} the .")] * 3
    lines += [("old .", "new ."), ("x , y", "x y")]
    world.write("t", [choice("d", n, *pair) for n, pair in enumerate(lines)])
    rows = re.findall("<del>(.*?)</del></td><td", world.ok("report --trace t").out)
    assert rows == ["old", "the", "a", ","]


def test_of_few_documents_the_best_and_the_worst_are_shown(traced: World) -> None:
    result = traced.ok(f"{REPORT} --show-documents 5 --format json").json["documents"]
    shown = [one["shown"] is not None for one in result]
    assert shown.count(True) == 5
    ranked = sorted(result, key=lambda one: -one["gain"])
    assert all(one["shown"] is not None for one in (*ranked[:2], *ranked[-2:]))
    few = page(traced, "--show-documents 5")
    assert len(few.of("article")) == 8  # three are examples
    more = f"{REPORT} --show-documents 5 --format json -m bleu --seed"
    drawn = (traced.ok(f"{more} {seed}").json["documents"] for seed in range(1, 7))
    other = [[document["shown"] is not None for document in documents] for documents in drawn]
    assert other[0] == shown
    assert any(one != shown for one in other)  # the fifth by chance


def test_of_many_changed_sentences_the_first_of_each_document_are_shown(world: World) -> None:
    """5,000 sentences at most, shared by the documents."""
    world.write("docs", [d for d in "abc" for _ in range(1700)])
    world.write("ref", ["it"] * 5100)
    world.write("t", [choice(d, n, "is", "it") for d in "abc" for n in range(1700)])
    text = world.ok(f"{REPORT} -m bleu").out
    assert text.count("1,700 of 1,700 sentences changed, of which the first 1,666 are shown") == 3


def test_what_features_add_over_another_trace_is_by_own_scores(world: World) -> None:
    """Not by the other trace's, which are of other weights and features."""
    world.write("docs", ["a"] * 4)
    ours = [json.loads(choice("a", n, "it", "it is lit")) for n in range(4)]
    for one in ours:
        one |= {"weighted": {"LM0": 1.0, "own": 0.5}, "over_first": {"LM0": 0.25, "own": 0.75}}
        one["texts"]["runner_up"] = "it is"
        one["over_runner_up"] = {"LM0": -0.5, "own": 1.0}
    world.write("t", map(json.dumps, ours))
    for one, text in zip(ours, ("it", "it is", "lit", "it is lit"), strict=True):
        one["texts"] = {**one["texts"], "chosen": text}
        one["weighted"] = {"LM0": 1000.0, "theirs": -7.0}
    world.write("other", map(json.dumps, ours))
    result = world.ok("report --trace t --docs docs --baseline other --format json").json
    expected = [*({"LM0": 0.25, "own": 0.75}, {"LM0": -0.5, "own": 1.0}, {})]
    assert [one["added"] for one in result["documents"][0]["shown"]] == expected
    means = {name: feature["mean"] for name, feature in result["explanation"]["features"].items()}
    assert means == {"LM0": -0.125, "own": 0.875}
    shown = Page(world.ok("report --trace t --docs docs --baseline other").out).text
    assert "What features add is counted in 2 of the 3 changed sentences; in the others" in shown


def test_a_text_is_a_baseline_and_of_several_the_best(traced: World) -> None:
    plain = traced.ok(f"{REPORT} --format json").json
    first = [json.loads(line)["texts"]["first"] for line in traced.lines("t")]
    traced.write("first", first)
    traced.write("worse", ["no"] * 24)
    for given in ("--baseline first", "--baseline worse --baseline first"):
        result = traced.ok(f"{REPORT} {given} --format json").json
        assert result["evaluation"] == plain["evaluation"]
        assert result["explanation"] == plain["explanation"]
        assert (result["baseline"], {*result["rivals"]}) == ("first", {*given.split()[1::2]})
    told = "Compared with: first, the best of 2 by BLEU"
    assert told in page(traced, "--baseline worse --baseline first").text
    other = traced.ok(f"{REPORT} --baseline worse --format json").json
    assert other["explanation"]["changed"] == 24
    assert other["documents"][0]["shown"][0]["baseline"] == "no"
    assert other["evaluation"]["systems"][0]["bleu"] < plain["evaluation"]["systems"][0]["bleu"]


def test_a_decoding_of_systems_is_compared_with_the_best_of_them(world: World) -> None:
    """What engines gave is a table, here and in explain."""
    references = [f"{a} {b} is lit now" for a in WORDS[:4] for b in WORDS[4:7]]
    world.write("ref", references)
    world.write("docs", [f"<b>{t // 2}" for t in range(12)])
    for name, kept in (("poor", 1), ("good", 4), ("fair", 3)):
        world.write(name, [" ".join(x.split()[:kept]) for x in references])
    systems = " ".join(f"--systems {name}={name}" for name in ("poor", "good", "fair"))
    world.ok(f"decode {systems} --docs docs --out out --trace t --summary s")
    names = [
        next(one for one in ("poor", "good", "fair") if world.lines(one)[t] == text)
        for t, text in enumerate(world.lines("out"))
    ]
    command = "report --trace t --docs docs --ref ref -m bleu"
    result = world.ok(f"{command} --format json").json
    truth = "evaluate --docs docs --ref ref -m bleu --baseline good out --format json"
    base, ours = world.ok(truth).json["systems"]
    assert result["baseline"] == "good"
    assert result["rivals"]["good"] == pytest.approx(base["bleu"])
    assert {**result["evaluation"]["systems"][1], "name": "out"} == ours
    shown = Page(world.ok(command).out)
    assert "Compared with: good, the best of 3 by BLEU" in shown.text
    printed = world.ok(f"{command} --out page.html").err
    assert "verdict: decoded against good, the best of 3 by BLEU: " in printed
    unreferenced = Page(world.ok("report --trace t --summary s").out).text
    assert "Compared with: poor, the first engine." in unreferenced
    assert "that of poor, the first engine, is " in unreferenced
    assert "Words of the baseline (poor, the first engine) that were left out" in unreferenced
    counts = {d: names[2 * d : 2 * d + 2] for d in range(6)}
    engines = {f"<b>{d}": {n: count.count(n) for n in count} for d, count in counts.items()}
    assert result["explanation"]["engines"] == engines
    explained = world.ok("explain t --format json").json
    assert (explained["engines"], explained["alone"]) == (engines, Counter(names))
    heads = re.findall(r"sentence \d chrF \S+ (?:worse )?(\w+) ", shown.text)
    assert {*heads} == {*names} - {"good"}
    most = max({*names}, key=names.count)
    assert f"Chosen most: {most} {100 * names.count(most) / 12:.0f} %" in shown.text
    head = next(line for line in world.ok("explain t").lines if line.startswith("document "))
    assert {*head.split()[1:]} == {*names}
    (line,) = (x for x in world.ok("explain t").lines if x.startswith("all documents"))
    assert sum(map(int, line.split()[2:])) == 12
    told = world.ok("explain t <b>0:0").out
    assert f"  systems     {names[0]}\n" in told
    assert "  first       the   [poor]\n" in told
    assert "   [good]\n" in told
    more = "--scores qe=baseline:q --scores qe=decoded:q"
    world.write("q", range(12))
    assert "the best of several is good; give its" in world.refused(f"{command} {more}")
    assert world.ok(f"{command} {more} --baseline good --format json").json["baseline"] == "good"


def test_other_outputs_stand_beside_the_decoding(traced: World) -> None:
    """Their scores are those of evaluate, and the lead is that over each of them."""
    ours = [json.loads(line)["texts"]["chosen"] for line in traced.lines("t")]
    traced.write("ours", ours)
    traced.write("first", [json.loads(line)["texts"]["first"] for line in traced.lines("t")])
    traced.write("poor", ["no such text"] * 24)
    given = "--beside poor=poor --beside same=t"
    result = traced.ok(f"{REPORT} {given} --format json").json
    command = "evaluate --docs docs --ref ref --format json"
    truth = traced.ok(f"{command} --baseline first ours poor ours").json
    names = ["baseline", "decoded", "poor", "same"]
    assert [system["name"] for system in result["evaluation"]["systems"]] == names
    for system, true in zip(result["evaluation"]["systems"], truth["systems"], strict=True):
        assert {**system, "name": ""} == {**true, "name": ""}
    assert result["evaluation"]["documents"] == truth["documents"]
    lead = traced.ok(f"{command} --baseline poor ours").json["systems"][1]["metrics"]["bleu"]
    assert result["leads"]["poor"] == lead
    assert result["leads"]["same"]["difference"] == 0
    first = result["documents"][0]["shown"][0]
    assert first["others"] == {"poor": "no such text", "same": first["chosen"]}

    shown = page(traced, given)
    assert "sameas chosen" in shown.text
    assert "poorno such text" in shown.text
    assert f"poor BLEU 0.00 (chosen leads by +{lead['difference']:.2f})" in shown.text
    assert "gain of poorgain of same" in shown.text
    assert "gain of poor" not in page(traced).text


def test_measures_beside_bleu_are_those_of_evaluate(traced: World) -> None:
    for name in ("one", "other"):
        traced.write(f"{name}.comet", [len(name) / 4 + n for n in range(24)])
    choices = [json.loads(line)["texts"] for line in traced.lines("t")]
    for name, key in (("one", "first"), ("other", "chosen")):
        traced.write(name, [texts[key] for texts in choices])
    traced.weights("w.json", {"LM0": 1}, provenance={"objective": "corpus BLEU"})
    more = "-m ter --weights w.json --tokenize 13a --seed 3"
    own = "--scores comet=baseline:one.comet --scores comet=decoded:other.comet"
    truth = traced.ok(
        f"evaluate --docs docs --ref ref --baseline one other {more} --format json "
        "--scores comet=one:one.comet --scores comet=other:other.comet"
    ).json["systems"]
    result = traced.ok(f"{REPORT} {more} {own} --format json").json["evaluation"]["systems"]
    for a, b in zip(result, truth, strict=True):
        assert {**a, "name": ""} == {**b, "name": ""}
    text = page(traced, f"{more} {own}").text
    assert "comet, not optimised" in text
    assert "Optimised: the weights were tuned for it (corpus BLEU)" in text
    assert "without held-out figures" in text


def test_held_out_figures_of_the_tuning_and_the_search_are_shown(traced: World) -> None:
    chosen = {"held_out": 20.5, "error": 1.25, "difference": -0.5}
    made = {"algorithm": "mert", "selection": {"chosen": chosen}}
    traced.weights("w.json", {"LM0": 0.5}, provenance=made)
    document = {"gap": 0.5, "exact": False, "score": 2.0, "baseline_score": 0.5, "choices": [0, 0]}
    summary = {
        **{"schema": 1, "signature": "s", "score": -10.0, "baseline_score": -12.0, "gap": 0.5},
        **{"best": "best known", "exact": False, "near_ties": 3, "best_score": -9.5},
    }
    summary["documents"] = [{"id": name, **document} for name in NAMES]
    traced.write("s.json", json.dumps(summary))
    text = page(traced, "--summary s.json --weights w.json").text
    assert "Tuned by mert; on documents that were held out, 20.50 ± 1.25 BLEU, −0.50 over" in text
    result = traced.ok(f"{REPORT} --summary s.json --format json").json["documents"]
    assert {(one["gap"], one["exact"], one["score_gain"]) for one in result} == {(0.5, False, 1.5)}


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")
def test_figures_are_pdf_and_svg_whose_labels_are_no_markup(traced: World) -> None:
    command = f"{REPORT} --out page.html --figures"
    run = traced.ok(f"{command} figures")
    assert "figure written to figures/gains.pdf" in run.err
    files = {name: x for name, x in traced.files().items() if name.startswith("figures/")}
    assert {*files} == {
        f"figures/{name}.{form}" for name in ("gains", "features") for form in ("pdf", "svg")
    }
    assert all(
        x.startswith(b"%PDF" if name.endswith("pdf") else b"<?xml") for name, x in files.items()
    )
    gains, features = (files[f"figures/{name}.svg"].decode() for name in ("gains", "features"))
    assert "gain (BLEU points)" in gains
    assert len(re.findall(r'<g id="patch_\d+">', gains)) >= 12  # a bar for each document
    assert ">LM0<" in features
    assert "&lt;b&gt;" in features
    assert "<b>" not in features
    traced.ok(f"{command} again")
    for name, content in files.items():
        assert traced.content(name.replace("figures/", "again/")) == content
