"""`rerank tune-mert --select cv`, and the start that a tuning on several systems chooses.

Truth: tunings of the other documents by the command itself, argmax in numpy, sacrebleu's scores of
the chosen lines, the jackknife (Efron 1982, section 3) and the documented rules, written again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import sacrebleu
from numpy.typing import NDArray
from support.tuned import FROM_START, LISTS, PAIRS, TUNE, bleu, columns, decoded, dense, made
from support.world import WORDS, World

Floats = NDArray[np.float64]
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
DOCUMENTS = "vvvwwxxxyyyzzz"
PRICE = 5.0  # points of BLEU for a length ratio that is off by 1
SYSTEM_FEATURES = ("sysA", "sysB", "sysC")


class Lists:
    """Lists of a file, in numpy: features (n, F) and texts of each sentence, in its documents."""

    def __init__(self, world: World, kbest: str = "dev.kbest") -> None:
        self.docs, self.references = world.lines("dev.docs"), world.lines("dev.ref")
        lists = world.lists(kbest).values()
        self.texts = [[text for text, *_ in of_list] for of_list in lists]
        self.features: list[Any] = [
            np.array([[float(v) for v in re.findall(r" (-?[\d.e-]+)", row)] for _, row, _ in own])
            for own in lists
        ]

    def chosen(self, weights: Sequence[float] | Floats) -> list[str]:
        """The first of the best candidates of each sentence."""
        rows = zip(self.texts, self.features, strict=True)
        return [texts[int((own @ weights).argmax())] for texts, own in rows]

    def score(
        self, lines: list[str], documents: set[str] | None = None, start: list[str] | None = None
    ) -> float:
        """BLEU of the lines of some documents, less the price of another length than a start's."""
        rows = zip(self.docs, lines, self.references, start or lines, strict=True)
        kept = [own for name, *own in rows if documents is None or name in documents]
        lines, references, before = map(list, zip(*kept, strict=True))
        result = bleu(lines, references)
        words = sum(len(line.split()) for line in before)
        return float(result.score - PRICE * abs(result.sys_len - words) / result.ref_len)

    def unit(self, weights: Floats, documents: set[str]) -> Floats:
        """Weights of length 1 in units of the features' deviations within lists."""
        own = [
            f - f.mean(axis=0)
            for f, d in zip(self.features, self.docs, strict=True)
            if d in documents
        ]
        return np.asarray(
            weights / np.linalg.norm(weights * np.linalg.norm(np.concatenate(own), axis=0))
        )

    def towards(self, start: Floats, tuned: Floats, share: float, documents: set[str]) -> Floats:
        """Weights at a share of the way, between directions."""
        ends = self.unit(start, documents), self.unit(tuned, documents)
        return (1 - share) * ends[0] + share * ends[1]


def jackknife(lists: Lists, lines: list[str], start: list[str] | None = None) -> Floats:
    """BLEU of the lines without those of one document each."""
    documents = {*lists.docs}
    return np.array([lists.score(lines, documents - {d}, start) for d in sorted(documents)])


def standard_error(values: Floats) -> float:
    n = len(values)
    return float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))


def tuned_without(world: World, document: str, *options: str) -> Floats:
    """Weights of a tuning on the other documents."""
    lists = Lists(world)
    kept = [t for t, name in enumerate(lists.docs) if name != document]
    rows = [line.partition(" ") for line in world.lines("dev.kbest")]
    content = [f"{kept.index(int(t))} {row}" for t, _, row in rows if int(t) in kept]
    world.write("rest.kbest", content)
    world.write("rest.docs", [lists.docs[t] for t in kept])
    world.write("rest.ref", [lists.references[t] for t in kept])
    words = "tune-mert --kbest rest.kbest --docs rest.docs --ref rest.ref --out rest.json"
    world.ok(f"{words} --select none", *options)
    return np.array(columns(world, "rest.json"))


def chosen_share(values: Floats, without: Floats) -> int:
    """Rule of the command: of those good enough, the smallest that is as good as the best.

    Better than the start by share standard errors; as good: within one. values: (C,); without:
    (C, D)
    """
    bound = [s * standard_error(o - without[0]) for s, o in zip(SHARES, without, strict=True)]
    good = [c for c in range(1, len(SHARES)) if values[c] - values[0] > bound[c]]
    best = max(good, key=lambda c: float(values[c]), default=0)
    error = [standard_error(without[best] - own) for own in without]
    return min((c for c in good if values[c] >= values[best] - error[c]), default=0)


def chosen_on_others(lists: Lists, held: list[list[str]], begin: list[str] | None) -> list[str]:
    """Each document's lines at the share that the rule chooses on the others; under ten of them."""
    lines, everything = [""] * len(lists.docs), {*lists.docs}
    for document in sorted(everything):
        rest = everything - {document}
        values = np.array([lists.score(own, rest, begin) for own in held])
        without = np.array(
            [[lists.score(own, rest - {d}, begin) for d in sorted(rest)] for own in held]
        )
        chosen = held[chosen_share(values, without)]
        for t in (t for t, name in enumerate(lists.docs) if name == document):
            lines[t] = chosen[t]
    return lines


def good_enough(candidates: Sequence[Any]) -> list[Any]:
    """The candidates that may be chosen: where there are others, not the start."""
    start, *others = candidates
    good = [one for one in others if one["difference"] > one["share"] * one["difference_error"]]
    return good or [start]


@pytest.mark.parametrize(
    ("seed", "start", "length"),
    [
        (2, "start.json", "free"),
        (8, "bad.json", "free"),
        (2, "", "free"),
        (8, "", "free"),
        (2, "bad.json", "auto"),
        (8, "bad.json", "auto"),
    ],
    ids=str,
)
def test_shares_are_judged_on_others(world: World, seed: int, start: str, length: str) -> None:
    """Without start weights the best single feature, of either sign, takes their place.

    Here the totals say nothing of the features. With references that are too short, the length is
    held by a price.
    """
    world.draw(seed, DOCUMENTS, ())
    if not start:
        rng = np.random.default_rng(7)
        rows = (line.removesuffix("0") for line in world.lines("dev.kbest"))
        world.write("dev.kbest", [f"{row}{rng.random() ** 9}" for row in rows])
    world.weights("bad.json", {"LM0": -0.5, "TM0": [1.0, -0.25]})
    if length == "auto":
        world.write("dev.ref", [" ".join(line.split()[:5]) for line in world.lines("dev.ref")])
    how = ["--algorithm", "expected-bleu", *(["--start", start] if start else [])]
    run = world.ok(TUNE, *how, "--length-ratio", length)
    selection, lists = made(world)["selection"], Lists(world)
    everything = {*DOCUMENTS}
    singles = [sign * row for sign in (1.0, -1.0) for row in np.eye(3)]
    outputs = [lists.chosen(single) for single in singles]

    def anchor(documents: set[str]) -> Floats:
        if start:
            return np.array(columns(world, start))
        return singles[int(np.argmax([lists.score(one, documents) for one in outputs]))]

    held: list[list[str]] = [[""] * len(lists.docs) for _ in SHARES]
    begin = lists.chosen(anchor(everything)) if length == "auto" else None
    directions = []
    for document in sorted(everything):
        rest = everything - {document}
        tuned = tuned_without(world, document, *how)
        directions.append(lists.unit(tuned, everything))
        for own, share in zip(held, SHARES, strict=True):
            output = lists.chosen(lists.towards(anchor(rest), tuned, share, rest))
            for t in (t for t, name in enumerate(lists.docs) if name == document):
                own[t] = output[t]
    values = np.array([lists.score(own, start=begin and held[0]) for own in held])
    without = np.array([jackknife(lists, own, begin and held[0]) for own in held])
    plain = np.array([lists.score(own) for own in held])
    assert selection["objective"] == "corpus BLEU"
    price = f" − {PRICE:g} |length ratio − the start's|" if begin else ""
    assert selection["maximised"] == f"corpus BLEU{price}"
    assert (selection["folds"], selection["held_out"]) == (5, {"unit": "documents", "number": 5})
    for c, one in enumerate(selection["candidates"]):
        assert one["share"] == SHARES[c]
        assert one["held_out"] == pytest.approx(plain[c], rel=1e-12)
        error = standard_error(jackknife(lists, held[c]))
        assert one["error"] == pytest.approx(error, rel=1e-9)
        assert one["difference"] == pytest.approx(values[c] - values[0], abs=1e-9)
        error = standard_error(without[c] - without[0])
        assert one["difference_error"] == pytest.approx(error, rel=1e-6, abs=1e-9)
    chosen = chosen_share(values, without)
    assert selection["chosen"] == selection["candidates"][chosen]
    judged = chosen_on_others(lists, held, begin and held[0]) if chosen else held[0]
    assert selection["held_out_bleu"] == pytest.approx(lists.score(judged), rel=1e-12)
    assert selection["choice"]["held_out"] == selection["held_out_bleu"]
    mean = np.mean(directions, axis=0)
    expected = lists.towards(anchor(everything), mean, SHARES[chosen], everything)
    weights = np.array(columns(world))
    truth = pytest.approx(expected / np.abs(expected).sum(), rel=1e-6)
    assert weights / np.abs(weights).sum() == truth
    last, one = run.err.splitlines()[-1], selection["chosen"]
    value = f"{one['held_out']:.2f} ± {one['error']:.2f}"
    assert last.startswith(f"held out: corpus BLEU {selection['choice']['held_out']:.2f} ± ")
    assert ("these are kept" in last) == (chosen == 0)
    name = f"{SHARES[chosen]:g}" if chosen else "start weights"
    row = rf"^  {re.escape(name)} +{re.escape(value)}  .*  ← chosen$"
    assert re.search(row, run.err, re.MULTILINE)


def test_the_length_of_the_start_is_held_by_a_price(world: World) -> None:
    """What another length would be worth: the best of all prices per word, by enumeration."""
    world.draw(2, DOCUMENTS, ())
    whole = world.lines("dev.ref")
    world.write("dev.ref", [" ".join(line.split()[: 4 + t % 3]) for t, line in enumerate(whole)])
    result, lists = world.ok(FROM_START, "--algorithm", "pro"), Lists(world)
    start = np.array(columns(world, "start.json"))
    lines = lists.chosen(start)
    length = made(world)["selection"]["length"]
    own = {
        d: bleu(*zip(*[(o, r) for n, o, r in rows if n == d], strict=True))
        for rows in [[*zip(lists.docs, lines, lists.references, strict=True)]]
        for d in {*DOCUMENTS}
    }
    ratios = [own[d].sys_len / own[d].ref_len for d in sorted(own)]
    weights = np.array([own[d].ref_len for d in sorted(own)])
    score = bleu(lines, lists.references)
    ratio = score.sys_len / score.ref_len
    assert length["ratio"] == pytest.approx(ratio)
    assert length["documents"] == pytest.approx(ratios)
    spread = np.sqrt(np.average((np.array(ratios) - ratio) ** 2, weights=weights))
    assert length["spread"] == pytest.approx(spread)
    outputs = [
        [
            texts[int((f @ start + price * np.array([len(x.split()) for x in texts])).argmax())]
            for texts, f in zip(lists.texts, lists.features, strict=True)
        ]
        for price in np.linspace(-30, 30, 4001)
    ]
    best = max(lists.score(one) for one in {tuple(output): output for output in outputs}.values())
    assert length["worth"] == pytest.approx(best - score.score)
    assert length["price"] == PRICE
    percent = 100 * (1 - 1 / ratio)
    line = (
        f"length: the references are {percent:.0f} % shorter than the output of the start weights"
    )
    assert line in result.err
    assert f"would have {best - score.score:+.2f} on these documents" in result.err
    assert "--length-ratio free if yours are" in result.err
    world.ok(FROM_START, "--length-ratio", "free", "--algorithm", "pro")
    assert made(world)["selection"]["length"]["price"] == 0


@pytest.mark.parametrize(
    ("documents", "folds", "unit", "number"),
    [
        ("aabbccdd", 4, "documents", 4),
        ("abcdefghijk", 5, "documents", 11),
        ("a" * 15 + "b" * 9, 5, "blocks of lines", 10),
    ],
)
def test_folds_are_documents_or_where_there_are_under_four_blocks_of_lines(
    world: World, documents: str, folds: int, unit: str, number: int
) -> None:
    """Held out together they are all lines: the start has the BLEU of decoding."""
    world.draw(1, documents, ())
    world.ok(FROM_START, "--length-ratio", "free")
    result = made(world)["selection"]
    assert (result["folds"], result["held_out"]) == (folds, {"unit": unit, "number": number})
    truth = bleu(decoded(world, weights="start.json"), world.lines("dev.ref")).score
    assert result["candidates"][0]["held_out"] == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("documents", [DOCUMENTS, "a" * 15 + "b" * 9], ids=["documents", "blocks"])
def test_with_context_held_out_documents_are_decoded(world: World, documents: str) -> None:
    """Held out together they are all lines: the start has the BLEU of decoding with it."""
    world.draw(1, documents, ())
    world.weights("paired.json", {"LM0": 0.5, "TM0": [0.25, 0.25], "pairs": 1.0})
    world.ok(TUNE, "--start", "paired.json", *PAIRS.split())
    selection = made(world)["selection"]
    truth = bleu(decoded(world, *PAIRS.split(), weights="paired.json"), world.lines("dev.ref"))
    assert selection["candidates"][0]["held_out"] == pytest.approx(truth.score, rel=1e-12)
    assert selection["chosen"] in good_enough(selection["candidates"])
    assert made(world)["bleu"] == bleu(decoded(world, *PAIRS.split()), world.lines("dev.ref")).score


def draw_echo(world: World, seed: int, names: Sequence[str], strength: float) -> None:
    """Lists whose references are the best path of tm and a feature of pairs, echo, by Viterbi.

    A tenth of the words of the references are others.
    """
    rng = np.random.default_rng(seed)
    rows, pairs, docs, references = (list[str]() for _ in range(4))
    for name in names:
        drawn = [[rng.choice(WORDS[:9], rng.integers(4, 8)) for _ in range(5)] for _ in range(8)]
        texts = [[" ".join(words) for words in sentence] for sentence in drawn]
        tm = rng.normal(size=(8, 5)).round(3)
        echo = [rng.normal(size=(5 if t else 1, 5)).round(3) for t in range(8)]
        best, pointers = np.zeros(1), []
        for t in range(8):
            sums = best[:, None] + tm[t] + strength * echo[t]
            pointers.append(sums.argmax(axis=0))
            best = sums.max(axis=0)
        path = [int(best.argmax())]
        for t in range(7, 0, -1):
            path.insert(0, int(pointers[t][path[0]]))
        for t in range(8):
            number = len(docs)
            docs.append(name)
            words = texts[t][path[t]].split()
            changed = [word if rng.random() > 0.1 else str(rng.choice(WORDS)) for word in words]
            references.append(" ".join(changed))
            for k, text in enumerate(texts[t]):
                rows.append(f"{number} ||| {text} ||| tm= {tm[t][k]} ||| {tm[t][k]}")
                for j, values in enumerate(echo[t]):
                    before = j if t else "-"
                    pairs.append(f"{name}\t{t}\t{before}\t{k}\t{values[k]}")
    world.write("dev.kbest", rows)
    world.write("dev.docs", docs)
    world.write("dev.ref", references)
    world.write("dev.pairs", pairs)


def test_context_that_decides_is_found_and_predicted(world: World) -> None:
    """As in a report of users: the start's context says nothing of echo, its own path does.

    Printed and new value are within two standard errors of each other, of both together.
    """
    echo = ["--pair-scores", "echo=dev.pairs"]
    draw_echo(world, 1, [f"d{d}" for d in range(12)], 1.5)
    world.ok(TUNE, *echo)
    chosen = made(world)["selection"]["choice"]
    draw_echo(world, 2, [f"n{d}" for d in range(30)], 1.5)
    lists, lines = Lists(world), decoded(world, *echo)
    value, error = lists.score(lines), standard_error(jackknife(lists, lines))
    assert value > 60
    assert abs(value - chosen["held_out"]) <= 2 * np.hypot(error, chosen["error"])


def test_where_the_scale_is_settled_the_way_is_a_straight_line(world: World) -> None:
    """A range that ends in another number than 0 settles it; shares are read off two weights."""
    world.draw(2, DOCUMENTS, ())
    world.weights("bad.json", {"LM0": -0.5, "TM0": [1.0, -0.25]})
    world.ok(TUNE, "--start", "bad.json", "--range", "LM0=-1:1", "--range", "TM0=-1:1")
    share = made(world)["selection"]["chosen"]["share"]
    assert share > 0
    weights = np.array(columns(world))
    assert (np.abs(weights) <= 1).all()
    tuned = (weights - (1 - share) * np.array([-0.5, 1.0, -0.25])) / share
    assert (np.abs(tuned) <= 1 + 1e-9).all()


def quality(world: World) -> Floats:
    """Sentence BLEU of each candidate."""
    references = world.lines("dev.ref")
    score = sacrebleu.sentence_bleu
    lists = world.lists().items()
    return np.array([score(text, [references[t]]).score for t, own in lists for text, *_ in own])


def test_features_that_begin_at_0_are_tuned_alone_first(world: World) -> None:
    """One new feature knows the references: alone it is as good as any tuned weights."""
    world.draw(2, DOCUMENTS, ())
    world.write("new.scores", quality(world).tolist())
    run = world.ok(f"{FROM_START} --scores new=new.scores --length-ratio free")
    selection = made(world)["selection"]
    start, new, *others = selection["candidates"]
    assert [(one["share"], one["new"]) for one in (start, new)] == [(0, False), (0, True)]
    assert [other["share"] for other in others] == [*SHARES[1:]]
    assert new["difference"] > 0
    assert "to the tuned weights; new: features that begin at 0 tuned alone\n" in run.err
    assert re.search(r"\n  new  +\d", run.err)
    assert selection["chosen"] in good_enough(selection["candidates"])


def test_new_features_that_gain_nothing_are_tuned_with_others(world: World) -> None:
    """Random numbers: shares without them are those of the lists that have none."""
    world.draw(2, DOCUMENTS, ())
    world.ok(FROM_START)
    without = made(world)["selection"]["candidates"]
    lines = world.lines("dev.kbest")
    rng = np.random.default_rng(0)
    world.write("new.scores", [f"{one:.4f}" for one in rng.standard_normal(len(lines))])
    run = world.ok(f"{FROM_START} --scores new=new.scores")
    start, new, *others = made(world)["selection"]["candidates"]
    assert new["difference"] <= 0
    assert [start, *(other for other in others if not other["new"])] == without
    expected = [(share, new) for share in SHARES[1:] for new in (False, True)]
    assert [(other["share"], other["new"]) for other in others] == expected
    assert "tuned alone, which is no gain: shares are tried with and without them\n" in run.err
    assert re.search(r"\n  0.05  +\d.*\n  new 0.05  +\d", run.err)
    assert dense(world)["new"] == (0.0,)
    remark = "`new` has weight 0: it gained nothing on held-out text"
    assert remark in run.err.splitlines()[-3:]
    used = world.ok(f"decode {LISTS} --weights out.json --scores new=new.scores --out o --trace t")
    assert remark in used.err.splitlines()[-2:]
    page = world.ok("report --trace t --docs dev.docs --weights out.json").out
    assert f"<p>{remark}.</p>" in page
    tuned = {name: own for name, own in made(world).items() if name != "selection"}
    world.weights("w.json", dense(world), provenance=tuned)
    untested = world.ok(f"decode {LISTS} --weights w.json --out o").err
    assert "`new` has weight 0: it is not used" in untested.splitlines()[-2:]


def test_a_new_feature_that_helps_only_when_others_change_has_a_weight(world: World) -> None:
    """What it knows of the references is behind ten times another feature, which knows little."""
    world.draw(2, DOCUMENTS, ())
    lines, rng = world.lines("dev.kbest"), np.random.default_rng(2)
    noise = rng.standard_normal((len(lines), 3))
    noise[:, 0] += quality(world) / 40
    noise = noise.round(3)
    rows = [
        f"{' ||| '.join(line.split(' ||| ')[:2])} ||| LM0= {lm} TM0= {tm} {other} ||| 0"
        for line, (lm, tm, other) in zip(lines, noise.tolist(), strict=True)
    ]
    world.write("dev.kbest", rows)
    world.write("new.scores", (quality(world) / 20 - 10 * noise[:, 0]).tolist())
    world.ok(f"{FROM_START} --scores new=new.scores")
    selection = made(world)["selection"]
    assert selection["candidates"][1]["difference"] <= 0
    assert selection["chosen"]["new"]
    assert selection["chosen"] in good_enough(selection["candidates"])
    assert dense(world)["new"] != (0.0,)


# Several systems
def write_systems(world: World, seed: int, quality: Sequence[float], documents: str) -> None:
    """Outputs of systems A, B, C: references of which shares of the words are right."""
    rng, words = np.random.default_rng(seed), np.array(WORDS[:7])
    references = [rng.choice(words, 8) for _ in documents]
    for name, right in zip("ABC", quality, strict=True):
        own = [np.where(rng.random(8) < right, ref, rng.choice(words, 8)) for ref in references]
        world.write(name, [" ".join(line) for line in own])
    world.write("dev.ref", [" ".join(line) for line in references])
    world.write("dev.docs", list(documents))


OF_SYSTEMS = "--systems A=A --systems B=B --systems C=C --docs dev.docs"


def lists_of_starts(world: World) -> tuple[Lists, list[str], dict[str, list[list[str]]]]:
    """The lists of the systems, labels of their features, and outputs of each start by system."""
    world.ok(f"score {OF_SYSTEMS} --agreement --out lists.kbest -q")
    lists = Lists(world, "lists.kbest")
    labels = re.findall(r"(\w+)=", world.lists("lists.kbest")[0][0][1])
    alone = [np.array([label == feature for label in labels], float) for feature in SYSTEM_FEATURES]
    added = {"consensus": "consensusdocbleu", "agreement": "agreement", "": ""}
    outputs = {
        kind: [lists.chosen(one + np.array([x == own for x in labels], float)) for one in alone]
        for kind, own in added.items()
    }
    return lists, labels, outputs


def held_out(
    documents: str,
    outputs: Mapping[str, Sequence[list[str]]],
    score: Callable[[list[str], set[str]], float],
) -> dict[str, list[str]]:
    """Output of each start, its system chosen on other folds (document number mod 10)."""
    names = [*dict.fromkeys(documents)]
    held: dict[str, list[str]] = {kind: [] for kind in outputs}
    for t, name in enumerate(documents):
        fold = names.index(name) % 10
        others = {d for n, d in enumerate(names) if n % 10 != fold}
        ahead = int(np.argmax([score(one, others) for one in outputs[""]]))
        for kind, own in held.items():
            own.append(outputs[kind][ahead][t])
    return held


@pytest.mark.parametrize(
    ("documents", "quality"),
    [
        ("uuvvwwxxyyzz", (1.0, 1.0, 0.5)),
        ("abcdefghijk", (0.9, 0.5, 0.5)),
        ("uuvvwwxxyyzz", (0.7, 0.7, 0.7)),
        ("abcdefghijk", (0.5, 0.6, 0.8)),
    ],
    ids=str,
)
def test_the_start_is_the_best_system_alone_or_beside_consensus_or_agreement(
    world: World, documents: str, quality: tuple[float, ...]
) -> None:
    """Judged on folds on which the system was not chosen.

    Agreement, unless consensus is better by half a standard error, or a system alone by one.
    """
    write_systems(world, 3, quality, documents)
    run = world.ok(f"tune-mert {OF_SYSTEMS} --ref dev.ref --out out.json")
    lists, labels, outputs = lists_of_starts(world)
    assert outputs[""] == [world.lines(name) for name in "ABC"]
    values = [lists.score(one) for one in outputs[""]]
    assert made(world)["systems"] == pytest.approx(dict(zip("ABC", values, strict=True)))
    held = held_out(documents, outputs, lists.score)
    scores = {kind: lists.score(own) for kind, own in held.items()}
    without = {kind: jackknife(lists, held[kind]) for kind in scores}
    surely = {
        kind: score
        for kind, score in scores.items()
        if score - scores["agreement"]
        > (0.5 if kind else 1) * standard_error(without[kind] - without["agreement"])
    }
    best = "ABC"[int(np.argmax(values))]
    kind = max(surely, key=lambda one: surely[one], default="agreement")
    together = f"the {kind} of the systems together with " if kind else ""
    assert made(world)["start"] == f"{together}the system {best}"
    assert (
        f"start: {together}the system {best}; held-out corpus BLEU of the system that is best on "
        f"other documents {scores['']:.2f}, together with the consensus {scores['consensus']:.2f}, "
        f"together with the agreement {scores['agreement']:.2f}\n"
    ) in run.err
    ranked = sorted(zip("ABC", values, strict=True), key=lambda one: -one[1])
    listed = ", ".join(f"{name} {value:.2f}" for name, value in ranked)
    assert f"corpus BLEU of each system on these documents: {listed}\n" in run.err
    candidates = made(world)["selection"]["candidates"]
    chosen = made(world)["selection"]["chosen"]
    assert chosen in good_enough(candidates)
    beside, last = made(world)["beside_systems"], run.err.splitlines()[-1]
    agreed = lists.score(lists.chosen(np.array([x == "agreement" for x in labels], float)))
    expected = {"system": best, "best": max(values), "agreement": agreed}
    assert {name: beside[name] for name in expected} == pytest.approx(expected)
    assert beside["output"] == pytest.approx(made(world)["selection"]["held_out_bleu"])
    assert last == f"verdict: {made(world)['verdict']}"
    assert last.startswith(
        f"verdict: BLEU on held-out documents: output {beside['output']:.2f}, best system {best} "
        f"{max(values):.2f}, agreement {agreed:.2f}; output against {best}: "
    )
    world.ok(f"decode {OF_SYSTEMS} --out agreed")  # the cure of the last case
    assert lists.score(world.lines("agreed")) == pytest.approx(agreed)
    agreement = beside["agreement_gain"]
    if agreed > max(*values, beside["output"]) and (agreement["p"] or 1) < 0.05:
        assert last.endswith(": choose by agreement, with decode without --weights")
    else:
        equal = f"{beside['output']:.2f}" == f"{beside['best']:.2f}"
        none = beside["gain"]["difference"] < 0 or equal
        assert last.endswith(f": use {best} alone") == none


@pytest.mark.parametrize(
    ("seed", "quality", "start"),
    [
        (3, (0.5, 0.6, 0.7), ""),  # others are worse
        (19, (0.6, 0.6, 0.7), ""),  # agreement is better by a quarter of a standard error
        (13, (0.7, 0.7, 0.7), ""),  # by exactly one, as on a single document
        (3, (0.7, 0.7, 0.7), "consensus"),
        (4, (0.7, 0.7, 0.7), "agreement"),
    ],
    ids=str,
)
def test_a_metric_of_people_starts_from_the_best_system_unless_others_are_surely_better(
    world: World, seed: int, quality: tuple[float, ...], start: str
) -> None:
    """Better by more than one standard error of a mean over documents of a sentence each."""
    documents = "abcdefghijkl"
    write_systems(world, seed, quality, documents)
    references = [line.split() for line in world.lines("dev.ref")]

    def right(lines: list[str]) -> Floats:
        pairs = zip(references, map(str.split, lines), strict=True)
        return np.array([sum(map(str.__eq__, *pair)) for pair in pairs], float)

    for name in "ABC":
        world.write(f"{name}.q", right(world.lines(name)).tolist())
    options = " ".join(f"--metric q={name}:{name}.q" for name in "ABC")
    world.ok(f"tune-mert {OF_SYSTEMS} --ref dev.ref --out out.json --objective q {options}")
    outputs = lists_of_starts(world)[2]

    def score(lines: list[str], kept: set[str]) -> float:
        return float(right(lines)[[name in kept for name in documents]].mean())

    held = {kind: right(own) for kind, own in held_out(documents, outputs, score).items()}
    gains = {kind: own - held[""] for kind, own in held.items()}
    errors = {kind: gain.std(ddof=1) / np.sqrt(len(gain)) for kind, gain in gains.items()}
    surely = [kind for kind, gain in gains.items() if gain.mean() > errors[kind] + 1e-9]
    assert start == max(surely, key=lambda one: gains[one].mean(), default="")
    best = "ABC"[int(np.argmax([right(world.lines(name)).mean() for name in "ABC"]))]
    together = f"the {start} of the systems together with " if start else ""
    assert made(world)["start"] == f"{together}the system {best}"


def test_a_tuning_with_too_few_lists_takes_the_tuned_weights(world: World) -> None:
    world.draw(2, "xx", ())
    run = world.ok(FROM_START, "--shrink", 0)
    assert "too few lists for cross-validation: tuned weights are taken as they are" in run.err
    cv = columns(world)
    world.ok(FROM_START, "--shrink", 0, "--select", "none")
    assert cv == columns(world)
    assert "selection" not in made(world)
