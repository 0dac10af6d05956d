"""Statistics of metrics: their sums score as sacrebleu scores, and tests of significance.

The truth is sacrebleu, scipy, closed forms, and enumeration in plain Python.
"""

import itertools
import math
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacremoses
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest
from scipy.stats import binomtest, norm
from support.world import World

import rerank
import rerank.metrics.significance as significance
from rerank.metrics.significance import (
    accuracies_of_sets,
    bootstrap,
    bootstrap_p_value,
    sign_flip_p_value,
    sign_test,
    wilson_interval,
    z_test,
)
from rerank.registry import METRICS, UTILITIES

Rows = NDArray[Any]
Corpus = tuple[list[str], list[list[str]]]  # hypotheses (T,); references, (T,) of each file
Texts = Sequence[Sequence[str | None]]  # outputs [sentence][system]

pytestmark = pytest.mark.filterwarnings("ignore::rerank.RerankWarning")  # of empty hypotheses
WHITE = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace()]
# Bytes like those of white space (U+0080, U+1681, U+200B, U+2027, U+3001, …), what 13a takes apart,
# characters of 1 to 4 bytes, and few different letters, so that n-grams repeat and match.
NEARLY = "\x80\x84\x86\u1681\u169a\u200b\u2027\u202a\u205e\u3001\u3040\ufeff\0"
LETTERS = st.sampled_from([*"aabbA.", "é", "中", "文", "\U0001f600", "\U000a0080", *NEARLY])
WORDS = st.sampled_from(["a", "a", "b", "ab", "a,b", "&amp;", "1.5", "(x)", "é", "中文"])
LINES = st.one_of(
    st.lists(WORDS, max_size=9).map(" ".join),
    st.lists(st.one_of(WORDS, LETTERS, st.just(" "), st.sampled_from(WHITE)), max_size=16).map(
        "".join
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)


def metric(name: str) -> Any:
    return METRICS[name]()


BLEU_ROWS = metric("bleu")


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    n = draw(st.integers(1, 5))
    texts = st.lists(LINES, min_size=n, max_size=n)
    return draw(texts), draw(st.lists(texts, min_size=1, max_size=3))


def rows_of(found: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Rows:
    """Statistics of a hypothesis for each sentence; references as sacrebleu takes them."""
    groups = [[line.encode() for line in lines] for lines in zip(*references, strict=True)]
    rows: Rows = found.statistics([[line.encode()] for line in hypotheses], groups)
    return rows


Bleu: Any = METRICS["bleu"]

TRUTHS = [
    *((Bleu(name), BLEU(tokenize=name)) for name in ("none", "13a", "char", "intl")),
    (metric("chrf"), CHRF()),
    (metric("ter"), TER()),
]
every_metric = pytest.mark.parametrize(
    ("found", "truth"), TRUTHS, ids=["none", "13a", "char", "intl", "chrf", "ter"]
)


@every_metric
@given(corpora())
def test_sums_of_statistics_have_sacrebleu_s_score(found: Any, truth: Any, corpus: Corpus) -> None:
    """To the last bit, but for TER, whose negative is larger where a text is better."""
    rows = rows_of(found, *corpus)
    score = found.shown(float(found.scores(rows.sum(axis=0))))
    expected = truth.corpus_score(*corpus).score
    assert score == (pytest.approx(expected, rel=1e-14) if found.name == "TER" else expected)
    assert found.signature(len(corpus[1])) == str(truth.get_signature())
    each = [float(found.scores(row)) for row in rows]
    assert found.scores(np.stack([rows, rows])).tolist() == [each, each]


@given(corpora())
def test_statistics_are_those_of_sacrebleu(corpus: Corpus) -> None:
    bleu = BLEU(tokenize="none")._extract_corpus_statistics(*corpus)
    assert rows_of(BLEU_ROWS, *corpus).tolist() == [[*row[2:], row[1]] for row in bleu]
    chrf = rows_of(metric("chrf"), *corpus)
    assert chrf.dtype == np.int64
    assert chrf.tolist() == CHRF()._extract_corpus_statistics(*corpus)
    assert metric("chrf").scores(chrf).tolist() == [
        CHRF().sentence_score(hypothesis, list(lines)).score
        for hypothesis, *lines in zip(corpus[0], *corpus[1], strict=True)
    ]


@every_metric
@settings(max_examples=15)
@given(st.lists(LINES, max_size=5), st.lists(LINES, min_size=1, max_size=3))
def test_a_list_is_counted_as_its_hypotheses_one_by_one(
    found: Any, truth: Any, hypotheses: list[str], references: list[str]
) -> None:
    lines, targets = ([line.encode() for line in own] for own in (hypotheses, references))
    rows = found.statistics([lines, [], lines], [targets] * 3)
    assert rows.shape == (2 * len(lines), found.width)
    alone = [found.statistics([[line]], [targets])[0].tolist() for line in lines]
    assert rows.tolist() == alone * 2


def test_characters_are_white_space_or_not_as_python_says() -> None:
    codes = [*range(0x3100), *range(0x3100, sys.maxunicode, 97)]  # white space ends at U+3000
    lines = [f"a{chr(c)}b" for c in codes if not 0xD800 <= c < 0xE000]
    rows = BLEU_ROWS.statistics([[line.encode() for line in lines]], [[b"a b"]])
    assert rows[:, 4].tolist() == [len(line.split()) for line in lines]


def test_long_texts_of_many_words_are_counted_right() -> None:
    rng = random.Random(1)
    texts = [[" ".join(map(str, rng.choices(range(k), k=k))) for k in (1, 9, 300)] for _ in "abc"]
    bleu = BLEU(tokenize="none")._extract_corpus_statistics(texts[0], texts[1:])
    assert rows_of(BLEU_ROWS, texts[0], texts[1:]).tolist() == [[*r[2:], r[1]] for r in bleu]
    chrf = CHRF()._extract_corpus_statistics(texts[0], texts[1:])
    assert rows_of(metric("chrf"), texts[0], texts[1:]).tolist() == chrf


@pytest.mark.parametrize(
    ("name", "counts"),
    [("bleu", [100_000, 99_999, 99_998, 99_997]), ("chrf", [100_000, 100_000, 100_000, 99_999])],
)
def test_a_long_line_takes_linear_time(name: str, counts: list[int]) -> None:
    line = b"a b " * 50_000
    started = time.perf_counter()
    assert metric(name).statistics([[line]], [[line]])[0, :4].tolist() == counts
    assert time.perf_counter() - started < 5  # a quadratic count would take minutes


LENGTHS = ((0, 3), (3, 0), (1, 80), (80, 1), (2, 120), (60, 5))


def moved_blocks(seed: int) -> tuple[list[int], list[int]]:
    """Texts of which blocks are moved far away, words lost and replaced: limits are met."""
    rng = random.Random(seed)
    reference = [rng.randrange(12 + 20 * seed) for _ in range(rng.randrange(30, 75))]
    hypothesis = list(reference)
    for _ in range(rng.randrange(1, 5)):
        a, size, b = rng.randrange(60), rng.randrange(1, 14), rng.randrange(75)
        block = hypothesis[a : a + size]
        del hypothesis[a : a + size]
        hypothesis[b:b] = block
    return [rng.randrange(50) if rng.random() < 0.1 else word for word in hypothesis], reference


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ([3, 4, 0, 1, 2], [0, 1, 2, 3, 4]),  # Snover et al. (2006): "this week" is one shift
        *(moved_blocks(seed) for seed in range(4)),
        ([0] * 40 + [*range(20)], [*range(20)] + [0] * 40),  # more shifts than are tried
        ([1, 2], [1, *[0] * 119]),  # the word stands outside of the beam
        *(([n % 9 for n in range(a)], [n % 7 for n in range(b)]) for a, b in LENGTHS),
    ],
    ids=lambda words: str(len(words)),
)
def test_edits_with_shifts_are_of_sacrebleu(hypothesis: list[int], reference: list[int]) -> None:
    ours, theirs = ([str(word) for word in words] for words in (hypothesis, reference))
    rows = rows_of(metric("ter"), [" ".join(ours)], [[" ".join(theirs)]])
    assert rows[0, 0] == translation_edit_rate(ours, theirs)[0]


@settings(max_examples=40)
@given(st.permutations(range(12)), st.integers(0, 4), st.integers(3, 12))
def test_edits_of_turned_texts_are_sacrebleus(order: list[int], dropped: int, n_words: int) -> None:
    ours = [str(n % n_words) for n in order[dropped:]]
    theirs = [str(n % n_words) for n in range(12)]
    rows = rows_of(metric("ter"), [" ".join(ours)], [[" ".join(theirs)]])
    assert rows[0, 0] == translation_edit_rate(ours, theirs)[0]


def test_ter_is_the_better_the_smaller_and_never_below_zero() -> None:
    sums = np.array([[0.0, 4.0], [1.0, 4.0], [5.0, 4.0], [0.0, 0.0], [2.0, 0.0]])
    scores = metric("ter").scores(sums)
    assert scores.tolist() == [0, -25, -125, 0, -100]
    assert not np.signbit(scores[[0, 3]]).any()
    assert [metric("ter").shown(score) for score in scores.tolist()] == [0, 25, 125, 0, 100]


@every_metric
def test_nothing_has_no_statistics_unequal_ones_fail(found: Any, truth: Any) -> None:
    assert found.statistics([], []).shape == (0, found.width)
    assert found.scores(np.zeros(found.width, np.int64)) == 0
    for hypotheses, references in ([[b"a"]], []), ([[b"a"]], [[b"a"], [b"b"]]), ([[b"a"]], [[]]):
        with pytest.raises(ValueError, match=r"of 1 sentences|without a reference|shorter|longer"):
            found.statistics(hypotheses, references)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_bytes_that_are_not_utf_8_are_refused(name: str) -> None:
    for lines in ([b"a", b"\xe2\x80"], [b"\xe2", b"\x80\x80"]):  # half a character in each of two
        with pytest.raises(UnicodeDecodeError):
            metric(name).statistics([lines], [[b"a"]])


def test_words_of_the_moses_tokenizer_are_those_of_sacremoses() -> None:
    texts = [
        ["It's Mr. Smith's lamp (really).", "AT&T has 1,000.5 lamps, don't they?", ""],
        ["It&apos;s the lamp of Mr. Smith.", "AT&amp;T has 1,000 lamps, haven't they?", "No!"],
    ]
    for language in ("en", "de"):
        found: Any = METRICS["bleu"](f"moses-{language}")
        split = sacremoses.MosesTokenizer(lang=language).tokenize
        plain = [[t.replace("&apos;", "'").replace("&amp;", "&") for t in text] for text in texts]
        words = [[split(t, return_str=True, escape=False) for t in own] for own in plain]
        truth = BLEU(tokenize="none")
        summed = rows_of(found, texts[0], texts[1:]).sum(axis=0)
        assert found.scores(summed) == truth.corpus_score(words[0], words[1:]).score > 0
        tokens = f"tok:moses-{language}-sacremoses{sacremoses.__version__}"
        assert found.signature(1) == str(truth.get_signature()).replace("tok:none", tokens)


# Expected utilities
def ngrams(text: str) -> list[tuple[str, ...]]:
    """Word n-grams of orders 1 to 4."""
    words = text.split()
    return [tuple(words[i : i + n]) for n in range(1, 5) for i in range(len(words) - n + 1)]


def expected_counts(held: Sequence[list[Any]], p: list[float]) -> dict[Any, float]:
    counts = defaultdict[Any, float](float)
    for weight, own in zip(p, held, strict=True):
        for ngram, times in Counter(own).items():
            counts[ngram] += weight * times
    return counts


def linear_bleu(texts: list[str], p: list[float]) -> list[float]:
    """Tromble et al. (2008) with T = 1, precision 0.8 and decay 0.6, by its definition."""
    held = [{*ngrams(text)} for text in texts]
    return [
        sum(
            weight / (4 * 0.8 * 0.6 ** (len(w) - 1))
            for weight, right in zip(p, held, strict=True)
            for w in ngrams(text)
            if w in right
        )
        - len(text.split())
        for text in texts
    ]


def aggregate_bleu(texts: list[str], p: list[float]) -> list[float]:
    """BLEU against expected counts (DeNero et al. 2009), smoothed as sacrebleu's `exp`."""
    right = expected_counts([ngrams(text) for text in texts], p)
    length = sum(weight * len(text.split()) for weight, text in zip(p, texts, strict=True))
    result = []
    for text in texts:
        own, precisions, misses = Counter(ngrams(text)), list[float](), 0
        for n in range(1, 5):
            correct = sum(min(c, right[w]) for w, c in own.items() if len(w) == n)
            total = sum(c for w, c in own.items() if len(w) == n)
            if total:
                misses += correct == 0
                precisions.append(correct / total if correct else 1 / (2**misses * total))
        if misses == len(precisions):
            result.append(0.0)
            continue
        brevity = min(1.0, math.exp(1 - length / len(text.split())))
        result.append(100 * brevity * math.prod(precisions) ** (1 / len(precisions)))
    return result


def aggregate_chrf(texts: list[str], p: list[float]) -> list[float]:
    """sacrebleu's F-score on expected counts of the n-grams of 1 to 6 characters."""
    joined = ["".join(text.split()) for text in texts]
    held = [[[x[i : i + n] for i in range(len(x) - n + 1)] for n in range(1, 7)] for x in joined]
    result = []
    for own in held:
        counts: list[float] = []
        for n in range(6):
            right = expected_counts([other[n] for other in held], p)
            match = sum(min(times, right[w]) for w, times in Counter(own[n]).items())
            counts += [len(own[n]), sum(right.values()), match]
        result.append(CHRF()._compute_f_score(counts))  # type: ignore[arg-type]
    return result


def pairwise(truth: BLEU | CHRF) -> Callable[[list[str], list[float]], list[float]]:
    def expected(texts: list[str], p: list[float]) -> list[float]:
        scores = [[truth.sentence_score(k, [r]).score for r in texts] for k in texts]
        return (np.array(scores) @ np.array(p)).tolist()  # type: ignore[no-any-return]

    return expected


EXPECTED = {
    "bleu": pairwise(BLEU(tokenize="none", effective_order=True)),
    "aggregate-bleu": aggregate_bleu,
    "linear-bleu": linear_bleu,
    "chrf": pairwise(CHRF()),
    "aggregate-chrf": aggregate_chrf,
}


def lists(seed: int) -> list[list[str]]:
    """Lists of texts, some empty; a few words, one of which holds the ideographic space U+3000.

    The last one has more n-grams than a hash table has room for at first, and than 63 bits.
    """
    rng = random.Random(seed)
    words = ["a", "a", "b", "ab", "ba", "é", "中文", "\U0001f600", "x\u3000y"]
    sizes = [0, 1, 3, 0, 0, *(rng.randrange(1, 7) for _ in range(25))]
    result = [[" ".join(rng.choices(words, k=rng.randrange(10))) for _ in range(k)] for k in sizes]
    long = [str(rng.randrange(40)) for _ in range(150)]
    variants = [[w if rng.random() < 0.9 else "0" for w in long][rng.randrange(4) :] for _ in "abc"]
    return [*result, [" ".join(words) for words in variants]]


@pytest.mark.parametrize("name", EXPECTED)
def test_expected_utilities_are_their_definitions(name: str, tmp_path: Path) -> None:
    """Under a drawn distribution, some of whose probabilities are 0, and under all sure ones."""
    result, rng = lists(3), np.random.default_rng(1)
    lines = [f"{t} |||  {text} ||| F= 0 ||| 0" for t, own in enumerate(result) for text in own]
    (tmp_path / "kbest").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "docs").write_text("x\n" * len(result))
    (document,) = rerank.read(tmp_path / "kbest", tmp_path / "docs", kbest_format="moses")
    utility = UTILITIES[name](document.kbest)
    for t, texts in enumerate(own for own in result if own):
        p = rng.dirichlet(np.ones(len(texts))) * (rng.random(len(texts)) < 0.8)
        p = p / (p.sum() or 1.0)
        p.flags.writeable = False
        each = np.array([p, *np.eye(len(texts))])
        truth = [EXPECTED[name](texts, own.tolist()) for own in each]
        together = utility.expected(t, each)
        assert together == pytest.approx(np.array(truth), rel=1e-9, abs=1e-9)
        assert [utility.expected(t, own).tolist() for own in each] == together.tolist()
        assert utility.words(t).tolist() == [len(text.split()) for text in texts]
    with pytest.raises(ValueError, match=r"marginals \(3,\) of 1 candidates"):
        utility.expected(0, np.full(3, 1 / 3))


# Consensus of systems
def drawn_outputs(n_systems: int, seed: int) -> list[Texts]:
    """Outputs of documents of one to four sentences; a system may lack some of a document."""
    rng = random.Random(seed)

    def output() -> str | None:
        if rng.random() < 0.15:
            return None
        return " ".join(rng.choices("abc", k=rng.randrange(7)))

    documents: list[Texts] = [
        [[output() for _ in range(n_systems)] for _ in range(rng.randrange(1, 5))]
        for _ in range(40)
    ]
    return [
        texts for texts in documents if all({*own} != {None} for own in zip(*texts, strict=True))
    ]


def candidates_of(documents: list[Texts], folder: Path) -> list[list[dict[str, dict[str, float]]]]:
    """Features of each different output, by document, sentence and text, from WMT XML."""
    parts = ["<dataset>"]
    for d, texts in enumerate(documents):
        parts.append(f'<doc id="d{d}"><src lang="xx">')
        parts += [f'<seg id="{t}">s</seg>' for t, _ in enumerate(texts, 1)]
        parts.append("</src>")
        for m in range(len(texts[0])):
            segments = [(t, line[m]) for t, line in enumerate(texts, 1) if line[m] is not None]
            parts.append(f'<hyp lang="en" system="S{m}">')
            parts += [f'<seg id="{t}">{text}</seg>' for t, text in segments]
            parts.append("</hyp>")
        parts.append("</doc>")
    (folder / "systems.xml").write_text("\n".join([*parts, "</dataset>"]))
    read = rerank.read(systems={"*": folder / "systems.xml"})
    return [[{x: dict(f) for x, f in lists} for lists in one.sentences] for one in read]


EPSILON, OUTLIER = 0.1, 0.5


def log_bleu(outputs: Sequence[str | None], references: Sequence[str | None]) -> float:
    """ln BLEU of the sentences that both have, from sacrebleu's counts, each of them plus ε."""
    both = [(x, y) for x, y in zip(outputs, references, strict=True) if None not in (x, y)]
    if not both:
        return 0.0
    hypotheses, expected = map(list, zip(*both, strict=True))
    result = BLEU(tokenize="none", force=True).corpus_score(hypotheses, [expected])
    precisions = [
        math.log((matches + EPSILON) / (n + EPSILON))
        for matches, n in zip(result.counts, result.totals, strict=True)
    ]
    words = max(int(result.sys_len), EPSILON)
    return sum(precisions) / 4 + min(0.0, 1.0 - int(result.ref_len) / words)


def kept_systems(texts: Texts) -> list[Sequence[str | None]]:
    """Outputs of the systems that are no outliers."""
    systems = [*zip(*texts, strict=True)]
    means = [
        sum(math.exp(log_bleu(x, y)) + math.exp(log_bleu(y, x)) for x in systems if x is not y)
        for y in systems
    ]
    least = OUTLIER * statistics.median(means)
    return [system for system, mean in zip(systems, means, strict=True) if mean >= least - 1e-12]


@pytest.mark.parametrize("n_systems", [2, 3, 4])
def test_document_consensus_is_the_gain_over_best_choices(n_systems: int, tmp_path: Path) -> None:
    documents = drawn_outputs(n_systems, seed=n_systems)
    for texts, found in zip(documents, candidates_of(documents, tmp_path), strict=True):
        values = [{x: f["consensusdocbleu"] for x, f in one.items()} for one in found]
        if any(sum(value > -1e-6 for value in one.values()) > 1 for one in values):
            continue  # equally good candidates: the file does not say which are the choices
        kept = kept_systems(texts)
        size = statistics.mean(sum(len((x or "").split()) for x in own) for own in kept)
        choices = [max(one, key=lambda x: one[x]) if one else None for one in values]
        base = statistics.mean(log_bleu(choices, own) for own in kept)
        for t, one in enumerate(values):
            assert max(one.values(), default=0.0) <= 1e-9
            for text, value in one.items():
                other = [*choices[:t], text, *choices[t + 1 :]]
                gain = statistics.mean(log_bleu(other, own) for own in kept) - base
                assert value == pytest.approx(size * gain, abs=1e-6, rel=1e-6)


def test_consensus_of_sentences_is_the_mean_score_against_the_other_systems(tmp_path: Path) -> None:
    documents = drawn_outputs(4, seed=9)
    truth = {"bleu": BLEU(tokenize="none", effective_order=True), "chrf": CHRF()}
    for texts, found in zip(documents, candidates_of(documents, tmp_path), strict=True):
        for line, candidates in zip(texts, found, strict=True):
            outputs = [one for one in line if one is not None]
            assert [*candidates] == [*dict.fromkeys(outputs)]
            for text, features in candidates.items():
                given = [float(one == text) for one in line]
                assert [features[f"sysS{m}"] for m in range(4)] == given
                assert features["votes"] == sum(given)
                others = [*outputs]
                others.remove(text)
                for name, tool in truth.items():
                    scores = [tool.sentence_score(text, [other]).score for other in others]
                    mean = statistics.fmean(scores) if scores else 0.0
                    assert features[f"consensus{name}"] == pytest.approx(mean, rel=1e-6, abs=1e-9)


def test_system_agreement_is_that_of_the_sentence_and_of_the_system(world: World) -> None:
    more = " ".join(random.Random(1).choices("abcdefgh", k=27))
    documents: list[Texts] = [  # S4 repeats S1, S5 adds to S0
        [[*line, line[1], line[0] and f"{line[0]} {more}"] for line in texts]
        for texts in drawn_outputs(4, seed=5)
    ]
    candidates_of(documents, world.folder)
    rows = iter(world.ok("score --systems systems.xml --agreement").lines)
    chrf, voters = CHRF(beta=1.25), range(4)  # type: ignore[arg-type]  # a whole number by default

    def scores(line: Sequence[str | None], text: str, own: int | None) -> list[float]:
        others = [line[m] for m in voters if m != own]
        return [chrf.sentence_score(text, [x]).score for x in others if x is not None]

    means = [0.0] * 6
    for m in (0, 1, 2, 3, 5):
        lines = [line for texts in documents for line in texts]
        means[m] = statistics.fmean(
            x for line in lines if line[m] is not None for x in scores(line, line[m] or "", m)
        )
    for line in [line for texts in documents for line in texts]:
        for text in dict.fromkeys(one for one in line if one is not None):
            _, written, features, *_ = next(rows).split(" ||| ")
            systems = [m for m in range(6) if line[m] == text]
            own = scores(line, text, next((m for m in systems if m in voters), None))
            expected = statistics.fmean(own or [0.0]) + max(means[m] for m in systems)
            result = float(features.split(" agreement= ")[1].split()[0])
            assert written == text
            assert result == pytest.approx(expected, rel=1e-8)


# Significance
def documents(seed: int, n: int, *, quality: float = 0.5) -> Rows:
    """Random BLEU statistics of n documents, (n, 9); every n-gram matches with `quality`."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, 60, size=n)
    totals = lengths[:, None] - np.arange(4)
    matches = rng.binomial(totals, quality ** np.arange(1, 5))
    return np.column_stack([matches, totals, lengths + rng.integers(-3, 4, size=n)])


def flipped(system: Rows, baseline: Rows, score: Any = None, **options: int) -> Any:
    """p; without a score of a metric that is a plain sum, so that closed forms hold."""
    score = score or (lambda summed: summed[..., 0].astype(np.float64))
    rng = np.random.default_rng(options.pop("seed", 0))
    return sign_flip_p_value(system, baseline, score, rng=rng, **options)


@settings(max_examples=12)
@given(st.lists(st.integers(-3, 3), min_size=10, max_size=11))
def test_p_of_a_sum_counts_signs(gains: list[int]) -> None:
    sums = [sum(map(int.__mul__, gains, s)) for s in itertools.product((-1, 1), repeat=len(gains))]
    as_far = sum(abs(one) >= abs(sum(gains)) for one in sums)
    system = np.array(gains)[:, None]
    assert flipped(system, 0 * system) == as_far / 2 ** len(gains)
    tenths, one = system / 10, np.ones_like(system, np.float64)
    assert flipped(one + tenths, one) == as_far / 2 ** len(gains)  # equal but for rounding


@pytest.mark.parametrize(
    ("n", "p"), [(9, None), (10, 2 / 2**10), (20, 2 / 2**20), (21, 1 / 10_001)]
)
def test_of_documents_that_all_gain_alike_p_is_the_least_there_is(n: int, p: float | None) -> None:
    """Exact up to 20 documents: the observed pattern and its mirror image; never 0 if drawn."""
    system = np.ones((n, 1), dtype=np.int64)
    assert flipped(system, 0 * system) == p


def test_p_of_drawn_swaps_is_exact_but_for_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    both = documents(3, 14), documents(103, 14, quality=0.46)
    exact = flipped(*both, BLEU_ROWS.scores)
    monkeypatch.setattr(significance, "MOST_EXACT", 10)
    drawn = flipped(*both, BLEU_ROWS.scores)
    # four standard errors of a share of 10,000 draws
    assert 0 < abs(drawn - exact) < 4 * math.sqrt(exact * (1 - exact) / 10_000)


def test_the_bootstrap_resamples_documents_in_any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    both = np.stack([documents(6, 7), documents(106, 7)])
    result = bootstrap(both, BLEU_ROWS.scores, rng=np.random.default_rng(9), resamples=101)
    drawn = np.random.default_rng(9).integers(7, size=(101, 7))
    truth = [[float(BLEU_ROWS.scores(own[picks].sum(axis=0))) for picks in drawn] for own in both]
    assert result.tolist() == truth
    p = [flipped(documents(8, n), documents(108, n), draws=101) for n in (12, 30)]
    monkeypatch.setattr(significance, "_BLOCK", 64)
    again = bootstrap(both, BLEU_ROWS.scores, rng=np.random.default_rng(9), resamples=101)
    assert again.tolist() == truth
    assert p == [flipped(documents(8, n), documents(108, n), draws=101) for n in (12, 30)]


def corrupted(seed: int, keep: tuple[float, float]) -> tuple[list[str], Any, list[Rows]]:
    """A reference, two systems, and their BLEU statistics; each of the 40 lines is a document."""
    rng = np.random.default_rng(seed)
    reference = [" ".join(rng.choice(list("abcdefg"), size=12)) for _ in range(40)]
    texts = [
        [" ".join(w if rng.random() < share else "x" for w in r.split()) for r in reference]
        for share in keep
    ]
    rows = [rows_of(BLEU_ROWS, text, [reference]) for text in texts]
    return reference, list(zip(("base", "ours"), texts, strict=True)), rows


@pytest.mark.parametrize("keep", [(0.8, 0.77), (0.7, 0.8), (0.8, 0.8)])
def test_the_p_of_the_bootstrap_is_that_of_sacrebleu(
    keep: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last digit: generators with one seed draw the same lines in both programs."""
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    reference, systems, rows = corrupted(1, keep)
    base, ours = (float(BLEU_ROWS.scores(row.sum(axis=0))) for row in rows)
    draws = bootstrap(np.stack(rows), BLEU_ROWS.scores, rng=np.random.default_rng(7))
    assert draws.shape == (2, 1000)
    result = bootstrap_p_value(ours, base, draws[1], draws[0])
    _, truth = PairedTest(systems, {"BLEU": BLEU(tokenize="none")}, [reference], "bs")()
    assert result == float(getattr(truth["BLEU"][1], "p_value"))  # noqa: B009 - of a union


def test_without_a_difference_the_sign_flip_test_keeps_its_level_and_the_bootstrap_does_not() -> (
    None
):
    """Of 200 pairs of systems of one quality 10 in the mean are below 0.05, 16 at most in 97%."""
    below = np.zeros(2)
    for seed in range(200):
        pair = np.stack([documents(seed, 12), documents(1000 + seed, 12)])
        draws = bootstrap(pair, BLEU_ROWS.scores, rng=np.random.default_rng(seed))
        scores = BLEU_ROWS.scores(pair.sum(axis=1)).tolist()
        p = flipped(pair[0], pair[1], BLEU_ROWS.scores), bootstrap_p_value(*scores, *draws)
        below += np.array(p) < 0.05
    assert below[0] <= 16 < below[1]


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_has_the_values_of_the_binomial_distribution(better: int, worse: int) -> None:
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert sign_test(better, worse) == pytest.approx(expected, rel=1e-12)


# Accuracies
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (7, 10), (250, 500), (499, 500)])
def test_intervals_of_accuracies_are_those_of_wilson(successes: int, n: int) -> None:
    truth = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((truth.low, truth.high), abs=1e-12)


OUTCOMES = [np.array([1.0, 0, 1, 0.5]), np.array([0.0]), np.array([1.0, 1.0]), np.array([0.5, 0.0])]


def test_accuracies_of_test_sets_have_the_moments_of_independent_draws() -> None:
    """A draw has mean m = mean over documents of their means, and variance E[x²] − m².

    Tolerances: 4 standard errors with 10,000 sets. All models are measured on the same sets.
    """
    better = [np.minimum(outcome + 0.25, 1.0) for outcome in OUTCOMES]
    rng = np.random.default_rng(1)
    result = accuracies_of_sets([OUTCOMES, OUTCOMES, better], rng=rng, sets=10_000)
    mean = np.mean([outcome.mean() for outcome in OUTCOMES])
    square = np.mean([(outcome**2).mean() for outcome in OUTCOMES])
    sd = math.sqrt((square - mean**2) / len(OUTCOMES))
    assert result[0].mean() == pytest.approx(mean, abs=4 * sd / 100)
    assert result[0].std() == pytest.approx(sd, rel=4 / math.sqrt(2 * 10_000))
    assert (result[0] == result[1]).all()
    assert (result[0] <= result[2]).all()


def test_z_is_the_difference_over_its_standard_error() -> None:
    """Samples of four: means 0.5 and 0.3, variances 0.04 / 3 and 0.08 / 3."""
    higher, lower = np.array([0.4, 0.6, 0.4, 0.6]), np.array([0.1, 0.3, 0.5, 0.3])
    z = 0.2 / math.sqrt((0.04 / 3 + 0.08 / 3) / 4)
    assert z_test(higher, lower) == pytest.approx((z, norm.sf(z)))
    assert z_test(lower, higher) == pytest.approx((-z, norm.sf(-z)))
    assert z_test(np.ones(5), np.zeros(5)) is None
    # Ji et al. 2016, table 3, CCDCLM and HRNNLM: 43.2 by the formula (36.55 is printed)
    pattern = np.tile([-1.0, 1.0], 500) * math.sqrt(999 / 1000)
    published = z_test(83.26 + 3.77 * pattern, 75.32 + 4.42 * pattern)
    assert published == pytest.approx((43.2, 0.0), abs=0.05)
