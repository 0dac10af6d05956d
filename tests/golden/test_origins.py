"""Where the values of the golden outputs come from: nothing here runs `rerank`.

Each test computes the values of stored outputs from the files of the small world: by sacrebleu, by
enumeration, from definitions, or with `lm` one sentence at a time. `lm` itself is tested against
scalar twins. `tests/commands/test_lm_eval.py` has the same computation for accuracies of language
models, on more models.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from scipy.stats import binomtest
from support.golden import ARPA, BASE, DOCUMENTS, GAP, LISTS, OURS, TEXT, TOPICS, WEIGHTS, fill
from support.words import edit_distance
from support.world import World

from decoders.table import DECODERS
from lm.checkpoint import load_model
from lm.folders import SavedModel
from lm.zoo import ZOO

OUTPUTS = Path(__file__).parent / "outputs"
SPANS = [slice(d, d + 2) for d in range(0, 24, 2)]  # lines of each document
METRICS: dict[str, Any] = {"bleu": BLEU(tokenize="none"), "chrf": CHRF(), "ter": TER()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, golden_models: Path) -> World:
    world = World(tmp_path_factory.mktemp("small"))
    fill(world, golden_models)
    return world


@cache
def stored(name: str) -> Any:
    """A stored output: JSON, or text."""
    text = (OUTPUTS / name).read_text(encoding="utf-8")
    return json.loads(text.partition("\n--- ")[0]) if name.endswith(".json") else text


@cache
def part(name: str, file: str) -> str:
    """A file in a stored output."""
    found = stored(name) if not name.endswith(".json") else (OUTPUTS / name).read_text("utf-8")
    text: str = f"\n{found}".partition(f"\n--- {file}\n")[2].partition("\n--- ")[0]
    return text


def lines_of(name: str, file: str) -> list[str]:
    return part(name, file).removesuffix("\n").split("\n")


def candidates(world: World) -> list[list[tuple[str, dict[str, list[float]]]]]:
    """Text and features of the candidates of each sentence."""
    found: list[list[tuple[str, dict[str, list[float]]]]] = [[] for _ in DOCUMENTS]
    for line in world.lines("dev.kbest"):
        number, text, features, _ = line.split(" ||| ")
        lm, a, b = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", re.sub(r"\w+=", "", features))
        values = {"LM0": [float(lm)], "TM0": [float(a), float(b)]}
        found[int(number)].append((text, values))
    return found


def static(features: dict[str, list[float]], weights: dict[str, list[float]]) -> float:
    pairs = (zip(weights[name], values, strict=True) for name, values in features.items())
    return sum(w * value for own in pairs for w, value in own)


def pair_scores(world: World) -> dict[tuple[str, int, str, int], float]:
    rows = (line.split("\t") for line in world.lines("dev.pairs"))
    return {(d, int(t), i, int(k)): float(value) for d, t, i, k, value in rows}


def best_path(
    world: World, d: int, weights: dict[str, list[float]], through: tuple[int, int] | None = None
) -> tuple[float, tuple[int | None, ...]]:
    """Score and choices of a document's best path, or of the best one through a candidate."""
    lists, name, pairs = candidates(world)[SPANS[d]], DOCUMENTS[2 * d], pair_scores(world)
    best: tuple[float, tuple[int | None, ...]] = (-math.inf, ())
    for path in product(*([*range(len(own))] or [None] for own in lists)):
        if through and path[through[0]] != through[1]:
            continue
        score, before = 0.0, "-"
        for t, (k, own) in enumerate(zip(path, lists, strict=True)):
            if k is not None:
                score += static(own[k][1], weights)
                score += weights["pair"][0] * pairs[name, t, before, k]
                before = str(k)
        best = max(best, (score, path), key=lambda one: one[0])
    return best


def texts(world: World, weights: dict[str, list[float]]) -> list[str]:
    """Translations by the best paths."""
    lists = candidates(world)
    choices = [k for d in range(12) for k in best_path(world, d, weights)[1]]
    return ["" if k is None else own[k][0] for k, own in zip(choices, lists, strict=True)]


def firsts(world: World) -> list[str]:
    return [own[0][0] if own else "" for own in candidates(world)]


# Decoding
def test_decode_finds_the_best_of_all_paths(small: World) -> None:
    found = [best_path(small, d, WEIGHTS) for d in range(12)]
    summary = json.loads(part("decode", "out.json"))
    for own, (score, choices) in zip(summary["documents"], found, strict=True):
        assert own["choices"] == [*choices]
        assert own["score"] == own["best_score"] == pytest.approx(score)
    assert summary["score"] == pytest.approx(sum(score for score, _ in found))
    assert lines_of("decode", "out.txt") == texts(small, WEIGHTS)
    trace = [json.loads(line) for line in lines_of("decode", "out.trace")]
    sentences = [t for t in range(24) if t != GAP]
    chosen = [k for _, own in found for k in own if k is not None]
    lists, first = candidates(small), firsts(small)
    for one, t, k in zip(trace, sentences, chosen, strict=True):
        assert (one["document"], one["sentence"], one["chosen"]) == (DOCUMENTS[t], t % 2, k)
        assert (one["texts"]["chosen"], one["texts"]["first"]) == (lists[t][k][0], first[t])
        assert one["total"] == pytest.approx(sum(one["weighted"].values()))
        values = {"LM0": 0.5, "TM0_0": 0.25, "TM0_1": 0.125, "pair": 1.5}
        for name, weight in values.items():
            assert one["weighted"][name] == pytest.approx(weight * one["features"][name])
        others = [
            best_path(small, t // 2, WEIGHTS, (t % 2, other))[0]
            for other in range(len(lists[t]))
            if other != k
        ]
        assert one["path_margin"] == pytest.approx(found[t // 2][0] - max(others))
    for line, own in zip(lines_of("decode", "out.kbest"), small.lines("dev.kbest"), strict=True):
        assert line.startswith(own.rpartition(" ||| ")[0])


def test_score_appends_the_values_of_files_and_of_the_arpa_model(small: World) -> None:
    numbers = iter(map(float, small.lines("dev.m")))
    for line in lines_of("score", "scored"):
        _, text, features, _ = line.split(" ||| ")
        values = dict(re.findall(r"(\w+)= (\S+)", features))
        assert float(values["qe"]) == next(numbers)
        log10, unknown = arpa(text)
        assert float(values["lm"]) == pytest.approx(log10 * math.log(10), rel=1e-8)
        assert float(values["lmoov"]) == unknown


def test_first_convert_export_and_weights_hold_what_they_were_given(small: World) -> None:
    assert lines_of("first", "base.txt") == firsts(small)
    lists = candidates(small)
    objects = [json.loads(line) for line in lines_of("convert", "out.jsonl")]
    for one in objects:
        own = lists[one["id"]]
        assert [(c["text"], c["score"]) for c in one["candidates"]] == [(x, 0) for x, _ in own]
        for c, (_, features) in zip(one["candidates"], own, strict=True):
            assert c["features"] == {"LM0": features["LM0"][0], "TM0": features["TM0"]}
    rows = [f"{d + 1}\t{DOCUMENTS[2 * d]}\t2" for d in range(12)]
    assert lines_of("export", "documents/documents.tsv") == rows
    assert lines_of("export", "documents/ref/0002.txt") == small.lines("dev.ref")[2:4]
    ini = dict(re.findall(r"^(\w+)= (.+)$", part("weights", "w.ini"), re.MULTILINE))
    assert {name: [*map(float, x.split())] for name, x in ini.items()} == WEIGHTS


def test_explanations_count_what_the_trace_says() -> None:
    trace = [json.loads(line) for line in lines_of("decode", "out.trace")]
    changed = [one for one in trace if one["texts"]["chosen"] != one["texts"]["first"]]
    found = stored("explain.json")
    assert (found["documents"], found["sentences"], found["changed"]) == (12, 23, len(changed))
    most = Counter(max(one["over_first"], key=one["over_first"].get) for one in changed)
    for name, own in found["features"].items():
        assert own["added_most"] == most[name]
        mean = math.fsum(one["over_first"][name] for one in changed) / len(changed)
        assert own["mean"] == pytest.approx(mean)
    assert stored("report.json")["explanation"] == found


# Evaluation
def sums(metric: Any, system: list[str], reference: list[str]) -> np.ndarray[Any, Any]:
    """sacrebleu's statistics of each document, summed."""
    rows = metric._extract_corpus_statistics(system, [reference])
    return np.array([np.sum(rows[span], axis=0) for span in SPANS])


def compare(
    rows: Sequence[np.ndarray[Any, Any]], score: Any, sign: int = 1
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is reported of a baseline and a system, from statistics (12, S) of documents."""
    base, ours = (score(own.sum(axis=0)) for own in rows)
    drawn = np.random.default_rng(1).integers(12, size=(1000, 12))
    draws = [np.array([score(own[picks].sum(axis=0)) for picks in drawn]) for own in rows]
    patterns = []
    for swaps in product((0, 1), repeat=12):
        picked = [np.where(np.array(swaps)[:, None] == k, *rows) for k in (1, 0)]
        patterns.append(abs(score(picked[0].sum(axis=0)) - score(picked[1].sum(axis=0))))
    gains = [sign * (score(b) - score(a)) for a, b in zip(*rows, strict=True)]
    better, worse = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
    apart = abs(draws[1] - draws[0])
    far = np.count_nonzero(apart - apart.mean() >= abs(ours - base) - 1e-9)
    p = {
        "sign_flip": np.mean(np.array(patterns) >= abs(ours - base) - 1e-9),
        "bootstrap": (far + 1) / 1001,
        "sign_test": binomtest(better, better + worse).pvalue,
    }
    ends = [np.percentile(one, [2.5, 97.5]).tolist() for one in (*draws, draws[1] - draws[0])]
    none = dict.fromkeys(("difference", "difference_interval", "p_value", "p_values", "role"))
    compared = {"difference": ours - base, "difference_interval": ends[2]}
    compared |= {"p_value": p["sign_flip"], "p_values": p, "role": None}
    return (
        {"score": base, "interval": ends[0], **none},
        {"score": ours, "interval": ends[1], **compared},
    )


def agree(found: Any, truth: Any) -> None:
    """Assert that all values of a truth are in what is found."""
    if isinstance(truth, dict):
        for name, value in truth.items():
            agree(found[name], value)
    else:
        assert found == (truth if truth is None else pytest.approx(truth, rel=1e-9, abs=1e-9))


def scores(metric: Any) -> Any:
    return lambda row: metric._compute_score_from_stats([*map(int, row)]).score


def mean(row: Any) -> float:
    return float(row[0] / row[1])


def test_every_value_of_evaluate_is_that_of_an_independent_script(small: World) -> None:
    reference, both = small.lines("dev.ref"), [firsts(small), texts(small, WEIGHTS)]
    systems = stored("evaluate.json")["systems"]
    for name, metric in METRICS.items():
        rows = [sums(metric, system, reference) for system in both]
        truth = compare(rows, scores(metric), -1 if name == "ter" else 1)
        for system, own in zip(systems, truth, strict=True):
            agree(system["metrics"][name], own)
            agree(system["detokenised"][name], own)  # these texts have nothing to undo
    comet = [np.array(small.lines(f"{name}.comet"), float) for name in (BASE, OURS)]
    rows = [np.stack([[own[s].sum(), 2] for s in SPANS]) for own in comet]
    for system, own in zip(systems, compare(rows, mean), strict=True):
        agree(system["scores"]["comet"], own)
    agree_in_summary(small, systems, reference, both)


def agree_in_summary(small: World, systems: Any, reference: Any, both: list[list[str]]) -> None:
    """Documents, length ratios, the oracle of the lists, and what repeats BLEU."""
    truth = METRICS["bleu"]
    for n, (system, text) in enumerate(zip(systems, both, strict=True)):
        whole = truth.corpus_score(text, [reference])
        agree(system, {"bleu": whole.score, "length_ratio": whole.ratio})
        agree(system["bleu_without_brevity_penalty"], whole.score / whole.bp)
        for document, span in zip(stored("evaluate.json")["documents"], SPANS, strict=True):
            own = truth.corpus_score(text[span], [reference[span]])
            assert document["bleu"][n] == pytest.approx(own.score)
            assert document["length_ratio"][n] == pytest.approx(own.ratio)
    of_sentences = BLEU(tokenize="none", effective_order=True)
    found = {}
    for name, pick in (("oracle", max), ("anti_oracle", min)):
        chosen = [
            pick([x for x, _ in own], key=lambda x: of_sentences.sentence_score(x, [r]).score)
            if own
            else ""
            for own, r in zip(candidates(small), reference, strict=True)
        ]
        found[name] = truth.corpus_score(chosen, [reference])
        agree(stored("evaluate.json")[name]["bleu"], found[name].score)
        agree(stored("evaluate.json")[name]["length_ratio"], found[name].ratio)
    base, ours = systems
    gain = found["oracle"].score - base["bleu"]
    agree(ours["oracle_share"], (ours["bleu"] - base["bleu"]) / gain)
    gains = [b - a for a, b in (one["bleu"] for one in stored("evaluate.json")["documents"])]
    counts = ours["documents"]
    assert (counts["better"], counts["worse"]) == (
        sum(g > 0 for g in gains),
        sum(g < 0 for g in gains),
    )
    assert counts["better"] + counts["equal"] + counts["worse"] == 12
    assert ours["increase_ratio"] == counts["increase_ratio"] == counts["better"] / 12
    for name in ("interval", "difference", "difference_interval", "p_value", "p_values"):
        assert ours[name] == ours["metrics"]["bleu"][name]
    assert stored("check.json")["summary"]["bleu"]["first"] == pytest.approx(base["bleu"])
    assert stored("check.json")["summary"]["bleu"]["oracle"] == pytest.approx(found["oracle"].score)


def test_a_report_is_an_evaluation_with_the_summary_of_the_decoding(small: World) -> None:
    found, evaluated = stored("report.json"), stored("evaluate.json")
    for own, system in zip(found["evaluation"]["systems"], evaluated["systems"], strict=True):
        assert own["metrics"] == system["metrics"]
    assert found["evaluation"]["documents"] == evaluated["documents"]
    summary = {one["id"]: one for one in json.loads(part("decode", "out.json"))["documents"]}
    first, chosen, reference = firsts(small), texts(small, WEIGHTS), small.lines("dev.ref")
    for d, (own, document) in enumerate(
        zip(found["documents"], evaluated["documents"], strict=True)
    ):
        assert [own["baseline_bleu"], own["bleu"]] == document["bleu"]
        assert own["gain"] == own["bleu"] - own["baseline_bleu"]
        search = summary[own["id"]]
        assert (own["gap"], own["exact"]) == (search["gap"], search["exact"])
        assert own["score_gain"] == search["score"] - search["baseline_score"]
        changed = [t for t in range(2 * d, 2 * d + 2) if first[t] != chosen[t]]
        assert own["changed"] == len(changed)
        for one, t in zip(own["shown"], changed, strict=True):
            assert (one["number"], one["before"]) == (t % 2, chosen[t - 1] if t % 2 else None)
            assert (one["baseline"], one["chosen"]) == (first[t], chosen[t])
            assert one["reference"] == one["source"] == reference[t]
    assert found["weights"] == {"LM0": 0.5, "TM0_0": 0.25, "TM0_1": 0.125, "pair": 1.5}


def test_tuned_weights_have_the_bleu_of_the_paths_that_they_choose(small: World) -> None:
    tuned = json.loads(part("tune-mert", "tuned.json"))
    chosen = texts(small, tuned["weights"])
    truth = METRICS["bleu"].corpus_score(chosen, [small.lines("dev.ref")])
    assert tuned["provenance"]["bleu"] == pytest.approx(truth.score)
    assert tuned["provenance"]["length_ratio"] == pytest.approx(truth.ratio)


def test_weights_tuned_on_extracted_files_have_the_bleu_of_their_statistics(small: World) -> None:
    tuned = json.loads(part("tune-moses", "tuned.json"))
    weights = np.concatenate([tuned["weights"]["LM0"], tuned["weights"]["TM0"]])
    blocks = [
        re.findall(rf"{kind}_TXT_BEGIN.*?\n(.*?)\n{kind}_TXT_END", small.text(file), re.DOTALL)
        for kind, file in (("FEATURES", "features.dat"), ("SCORES", "scores.dat"))
    ]
    total = np.zeros(9)
    for features, counts in zip(*blocks, strict=True):
        rows = [np.array([x.split() for x in one.split("\n")], float) for one in (features, counts)]
        total += rows[1][(rows[0] @ weights).argmax()]
    correct, ngrams = total[:8:2].astype(int).tolist(), total[1:8:2].astype(int).tolist()
    length = int(total[8])
    truth = BLEU.compute_bleu(correct, ngrams, ngrams[0], length, smooth_method="exp").score
    assert tuned["provenance"]["bleu"] == pytest.approx(truth)
    assert tuned["provenance"]["length_ratio"] == pytest.approx(ngrams[0] / length)


def test_diversity_is_the_mean_edit_distance_of_all_pairs(small: World) -> None:
    found = {one["id"]: one for one in stored("diversity.json")["lists"]}
    assert {*found} == {*range(24)} - {GAP}
    for t, own in enumerate(candidates(small)):
        if own:
            pairs = [*combinations([tuple(text.split()) for text, _ in own], 2)]
            apart = [edit_distance(a, b) for a, b in pairs]
            relative = [n / max(map(len, pair)) for n, pair in zip(apart, pairs, strict=True)]
            counts = [found[t]["candidates"], found[t]["distinct"]]
            assert counts == [len(own), len({*map(str, own)})]
            assert found[t]["distance"] == pytest.approx(np.mean(apart))
            assert found[t]["relative"] == pytest.approx(np.mean(relative))
    for name, value in stored("diversity.json")["mean"].items():
        assert value == pytest.approx(np.mean([one[name] for one in found.values()]))


# Language models
def arpa(text: str, end: bool = True) -> tuple[float, int]:
    """log10 p of a sentence under the bigram model, by its definition; number of unknown words."""
    rows = [line.split("\t") for line in ARPA.split("\n") if line.count("\t")]
    log10 = {tuple(row[1].split()): float(row[0]) for row in rows}
    backoff = {tuple(row[1].split()): float(row[2]) for row in rows if len(row) > 2}
    words = [word if (word,) in log10 else "<unk>" for word in text.split()]
    total = 0.0
    for before, word in pairwise(["<s>", *words, *["</s>"] * end]):
        if (before, word) in log10:
            total += log10[before, word]
        else:
            total += backoff.get((before,), 0.0) + log10[word,]
    return total, words.count("<unk>")


def test_perplexity_is_that_of_the_arpa_model_by_definition() -> None:
    found = stored("perplexity.json")
    for own, sentences in zip(
        (found, *found["documents"]), (TEXT, TEXT[:2], TEXT[2:]), strict=True
    ):
        kept = [text for text in sentences if text]
        both = [arpa(text) for text in kept]
        tokens = sum(len(text.split()) for text in kept)
        nats = -math.log(10) * sum(log10 for log10, _ in both)
        without = -math.log(10) * sum(arpa(text, end=False)[0] for text in kept)
        counts = [own["sentences"], own["tokens"], own["oov"]]
        assert counts == [len(kept), tokens, sum(n for _, n in both)]
        assert own["nats"] == pytest.approx(nats)
        assert own["nats_per_token"] == pytest.approx(nats / (tokens + len(kept)))
        assert own["perplexity"] == pytest.approx(math.exp(nats / (tokens + len(kept))))
        assert own["perplexity_without_eos"] == pytest.approx(math.exp(without / tokens))


def test_the_estimated_model_sums_to_one_after_every_word() -> None:
    rows = [line.split("\t") for line in lines_of("train-ngram", "out.arpa") if "\t" in line]
    log10 = {tuple(row[1].split()): float(row[0]) for row in rows}
    backoff = {row[1]: float(row[2]) for row in rows if len(row) > 2}
    words = [ngram[0] for ngram in log10 if len(ngram) == 1 and ngram != ("<s>",)]
    assert {*words} == {"<unk>", "</s>", *(word for text in TEXT for word in text.split())}
    assert sum(10 ** log10[word,] for word in words) == pytest.approx(1, abs=1e-6)
    for before in {*words, "<s>"} - {"</s>", "<unk>"}:
        total = sum(10 ** log10.get((before, w), backoff[before] + log10[w,]) for w in words)
        assert total == pytest.approx(1, abs=1e-6)


@pytest.fixture(scope="module")
def models(golden_models: Path) -> dict[str, SavedModel]:
    return {name: load_model(golden_models / name) for name in ("lm", "flat")}


def test_pairs_differ_in_the_pronoun_of_the_reference() -> None:
    items = [json.loads(line) for line in lines_of("lm-eval-pairs.json", "pairs")]
    assert [(one["right"], one["wrong"]) for one in items] == [
        (LISTS[0][1], [LISTS[0][0]]),
        ("it is him", ["it is her", "it is he"]),
    ]
    assert [one["context"] for one in items] == [[], ["the lamp is lit"]]


# Labels
def test_labels_are_those_that_the_texts_were_made_of(small: World) -> None:
    assert lines_of("relations-label", "labels") == [
        *("none", "Comparison", "", "none", "Contingency", "none")
    ]
    splits, senses = stored("relations-train.json")["splits"], defaultdict[str, list[Any]](list)
    for line in small.lines("annotated.jsonl"):
        document = json.loads(line)
        senses[document["split"]] += [one and one["sense"] for one in document["relations"][1:]]
    for split, own in senses.items():
        majority = Counter(senses["train"]).most_common(1)[0][0]
        share = own.count(majority) / len(own)
        assert splits[split] == {"pairs": len(own), "accuracy": 1.0, "majority_class": share}
    _, *topics = stored("topics-learn.json")["topics"]
    assert [one["sentences"] for one in topics] == [100, 100]
    assert sorted(sorted({*one["words"]} - {"the"}) for one in topics) == sorted(
        map(sorted, TOPICS)
    )
    of = {word: one["label"] for one in topics for word in one["words"]}
    assert lines_of("topics-label", "labels") == [of["lamp"], of["wick"], "", of["oar"], "0"]


# Tables of names
def test_lists_have_the_members_of_the_tables() -> None:
    assert [row["name"] for row in stored("list-models.json")] == [*ZOO, *ZOO.families]
    assert [row["name"] for row in stored("list-decoders.json")] == [*DECODERS]
    for row in stored("list-models.json"):
        if row["name"] in ZOO and ZOO[row["name"]].causal:
            order = ZOO[row["name"]].order
            assert row["exact decoders"] == [d.name for d in DECODERS.values() if d.exact(order)]
    for row in stored("list-decoders.json"):
        known = DECODERS[row["name"]]
        assert (row["cost"], row["source"]) == (known.cost, known.source)


# Formats
def leaves(found: Any) -> Iterator[float]:
    if isinstance(found, dict | list):
        for value in found.values() if isinstance(found, dict) else found:
            yield from leaves(value)
    elif isinstance(found, float | int) and not isinstance(found, bool):
        yield float(found)


TEXTS = sorted(
    path.name
    for path in OUTPUTS.iterdir()
    if path.suffix != ".json" and (OUTPUTS / f"{path.stem}.json").exists()
    if not path.name.startswith(("list-", "check.", "cache-", "report.", "explain."))
)


@pytest.mark.parametrize("name", TEXTS)
def test_tables_show_the_numbers_of_the_json(name: str) -> None:
    """Every number with decimals is one of the JSON, rounded; in per cent, it may be a share."""
    text = stored(name).partition("\n--- ")[0].replace("$-$", "-")  # of LaTeX
    known = [0.05, *leaves(stored(f"{name.partition('.')[0]}.json"))]  # and the level of p
    known += [100 * x for x in known]
    values = np.array(known)
    for shown in re.findall(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?(?![\w.])", text):
        digits = len(shown.partition(".")[2].partition("e")[0])
        width = 10.0**-digits if "e" not in shown else abs(float(shown)) / 10
        assert (abs(values - float(shown)) <= 0.51 * width).any(), shown
