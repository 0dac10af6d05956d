"""Where the values of the golden outputs come from: nothing here runs `rerank`.

Each test computes the values of stored outputs from the files of the small world, by sacrebleu or
from definitions. Values of the other outputs are computed, on more inputs, in the tests of their
commands: `decode` and `score` in `tests/agreement`, `tune-mert`, `tune-moses`, `lm-eval`,
`train-ngram`, `convert`, `first`, `diversity`, `export`, `weights` and `ablate` in
`tests/commands`.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from scipy.stats import binomtest
from support.golden import ARPA, BASE, DOCUMENTS, OURS, TEXT, TOPICS, fill
from support.tuned import first_candidates
from support.world import World

from decoders.table import DECODERS
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
    result = stored(name) if not name.endswith(".json") else (OUTPUTS / name).read_text("utf-8")
    text: str = f"\n{result}".partition(f"\n--- {file}\n")[2].partition("\n--- ")[0]
    return text


def lines_of(name: str, file: str) -> list[str]:
    return part(name, file).removesuffix("\n").split("\n")


def candidates(world: World) -> list[list[str]]:
    """Texts of the candidates of each sentence."""
    lists = world.lists()
    return [[text for text, *_ in lists.get(t, [])] for t in range(len(DOCUMENTS))]


# Decoding
def test_explanations_count_what_the_trace_says() -> None:
    trace = [json.loads(line) for line in lines_of("decode", "out.trace")]
    changed = [entry for entry in trace if entry["texts"]["chosen"] != entry["texts"]["first"]]
    result = stored("explain.json")
    assert (result["documents"], result["sentences"], result["changed"]) == (12, 23, len(changed))
    most = Counter(max(one["over_first"], key=one["over_first"].get) for one in changed)
    for name, feature in result["features"].items():
        assert feature["added_most"] == most[name]
        mean = math.fsum(one["over_first"][name] for one in changed) / len(changed)
        assert feature["mean"] == pytest.approx(mean)
    assert stored("report.json")["explanation"] == result


# Evaluation
def sums(metric: Any, system: list[str], reference: list[str]) -> np.ndarray[Any, Any]:
    """sacrebleu's statistics of each document, summed."""
    rows = metric._extract_corpus_statistics(system, [reference])
    return np.array([np.sum(rows[span], axis=0) for span in SPANS])


def compare(
    rows: Sequence[np.ndarray[Any, Any]], score: Any, sign: int = 1
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is reported of a baseline and a system, from statistics (12, S) of documents."""
    base, ours = (score(row.sum(axis=0)) for row in rows)
    drawn = np.random.default_rng(1).integers(12, size=(1000, 12))
    draws = [np.array([score(row[picks].sum(axis=0)) for picks in drawn]) for row in rows]
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
    reference = small.lines("dev.ref")
    both = [first_candidates(small), lines_of("decode", "out.txt")]
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
    # documents, length ratios, the oracle of the lists, and what repeats BLEU
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
            pick(own, key=lambda x: of_sentences.sentence_score(x, [r]).score) if own else ""
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


def test_a_report_shows_the_changes_and_the_gain_of_each_document(small: World) -> None:
    """Its evaluation is that of `evaluate`, and its gaps those of the summary: test_report.py."""
    result, evaluated = stored("report.json"), stored("evaluate.json")
    chosen = lines_of("decode", "out.txt")
    first, reference = first_candidates(small), small.lines("dev.ref")
    for d, (own, document) in enumerate(
        zip(result["documents"], evaluated["documents"], strict=True)
    ):
        assert [own["baseline_bleu"], own["bleu"]] == document["bleu"]
        assert own["gain"] == own["bleu"] - own["baseline_bleu"]
        changed = [t for t in range(2 * d, 2 * d + 2) if first[t] != chosen[t]]
        assert own["changed"] == len(changed)
        for one, t in zip(own["shown"], changed, strict=True):
            assert (one["number"], one["before"]) == (t % 2, chosen[t - 1] if t % 2 else None)
            assert (one["baseline"], one["chosen"]) == (first[t], chosen[t])
            assert one["reference"] == one["source"] == reference[t]
    assert result["weights"] == {"LM0": 0.5, "TM0_0": 0.25, "TM0_1": 0.125, "pair": 1.5}


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
    result = stored("perplexity.json")
    for own, sentences in zip(
        (result, *result["documents"]), (TEXT, TEXT[:2], TEXT[2:]), strict=True
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


# Labels
def test_labels_are_those_that_the_texts_were_made_of(small: World) -> None:
    assert lines_of("relations-label", "labels") == [
        *("none", "Comparison", "", "none", "Contingency", "none")
    ]
    splits, senses = stored("relations-train.json")["splits"], defaultdict[str, list[Any]](list)
    for line in small.lines("annotated.jsonl"):
        document = json.loads(line)
        senses[document["split"]] += [one and one["sense"] for one in document["relations"][1:]]
    for split, sense in senses.items():
        majority = Counter(senses["train"]).most_common(1)[0][0]
        share = sense.count(majority) / len(sense)
        assert splits[split] == {"pairs": len(sense), "accuracy": 1.0, "majority_class": share}
    _, *topics = stored("topics-learn.json")["topics"]
    assert [topic["sentences"] for topic in topics] == [100, 100]
    assert sorted(sorted({*topic["words"]} - {"the"}) for topic in topics) == sorted(
        map(sorted, TOPICS)
    )
    of = {word: topic["label"] for topic in topics for word in topic["words"]}
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
