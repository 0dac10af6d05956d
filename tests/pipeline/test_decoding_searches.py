"""`decode` by each decoder, end to end: choices, what is said of them, and traces.

The truth is written out here: all paths of a document, scored by `lm.scoring.after`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.files import read, write, write_weights

from decoders.search import Options
from decoders.table import DECODERS
from lm.checkpoint import load_model, save_model
from lm.engine import ScoringEngine
from lm.scoring import after
from lm.trie import Candidates
from rerank.corpus.kbest import KBest
from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import CorpusResult, Lists, Reports, Search, decode, score
from rerank.pipeline.kbest_source import KBestSource
from rerank.registry import UTILITIES, attribute

WORDS = ("the", "a", "lamp", "is", "lit", "it", "she", "gives", "light", "burns")
SIZES = {"evening": (3, 0, 4, 2), "gap": (0,), "night": (2, 4, 3, 3), "town": (1, 2)}
COUNTS = [size for sizes in SIZES.values() for size in sizes]
WEIGHTS = {"LM0": 0.5, "lm": 0.25, "lmoov": -0.5}
ALPHA = 0.75
DRAWING = {  # searches that draw, with options that make them
    "survivors": Options(merge="sample"),
    "random-beam": Options(width=2),
    "smc": Options(particles=3),
    "ffbs": Options(samples=2, particles=3),
    "mbr": Options(particles=2),
    "sweeps": Options(gibbs=2, width=1),
}
SUMMING = {"ffbs": Options(samples=2), "mbr": Options()}  # on order 1, where no filter is needed
Path_ = tuple[int | None, ...]
both_models = pytest.mark.parametrize("name", ["codclm", "ccdclm"])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with lists, their documents and weights."""
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", [line for lines in made_up().values() for line in lines])
    write("dev.docs", [name for name, sizes in SIZES.items() for _ in sizes])
    weigh()
    return tmp_path


def made_up() -> dict[str, list[str]]:
    """The lines of each document; no text comes twice in a list."""
    rng = np.random.default_rng(7)
    lines: dict[str, list[str]] = {name: [] for name in SIZES}
    owners = [name for name, sizes in SIZES.items() for _ in sizes]
    for t, size in enumerate(COUNTS):
        for k in range(size):
            text = " ".join([WORDS[k], *rng.choice(WORDS, rng.integers(0, 4))])
            value = -rng.integers(0, 24) / 8
            lines[owners[t]].append(f"{t} ||| {text} ||| LM0= {value} ||| {value}")
    return lines


def weigh(alpha: float | None = None, **weights: float) -> None:
    write_weights("w.json", WEIGHTS | weights, alpha=alpha)


def lists_of(folder: Path | None, **options: Any) -> Lists:
    lms = (("lm", folder),) if folder else ()
    return Lists("dev.kbest", "dev.docs", lms=lms, **options)


def decoded(
    folder: Path | None, search: Search, notices: Notices | None = None, **options: Any
) -> CorpusResult:
    """`decode` into out.txt, out.json and out.trace."""
    result = decode(
        lists_of(folder, **options),
        "w.json",
        "out.txt",
        search=search,
        reports=Reports(None, "out.json", "out.trace"),
        notices=notices or Notices(),
    )
    assert result is not None
    return result


def paths_of(result: CorpusResult) -> dict[str, Path_]:
    return {document.id: document.choices for document in result.documents}


def trace() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out.trace").read_bytes().splitlines()]


def asked(method: str, options: Options | None = None, utility: str | None = None) -> Search:
    """A search with a scale, if it needs one under these options."""
    options = options or Options()
    scaled = DECODERS[method].scaled(options.given())
    options = replace(options, utility=utility)
    return Search(method, replace(options, alpha=ALPHA) if scaled else options)


def drawing(method: str, name: str) -> Options:
    """Options that make a search draw, on the order of a model."""
    return SUMMING.get(method, DRAWING[method]) if name == "codclm" else DRAWING[method]


def all_paths(folder: Path, name: str) -> dict[Path_, float]:
    """The score of every path of a document under `WEIGHTS`."""
    saved = load_model(folder)
    model, scorer = saved.model, ScoringEngine.of(saved.model)
    first = list(SIZES).index(name)
    start = sum(len(sizes) for sizes in list(SIZES.values())[:first])
    lines = [line.split(" ||| ") for line in made_up()[name]]
    paths: list[tuple[Path_, float]] = [((), 0.0)]
    contexts = model.context.start(1)
    for t, size in enumerate(SIZES[name], start):
        if not size:
            paths = [((*path, None), total) for path, total in paths]
            continue
        own = [fields for fields in lines if int(fields[0]) == t]
        ids = [saved.vocabulary.encode(text.encode().split()) for _, text, _, _ in own]
        ((scores, summaries),) = after(scorer, [(Candidates.of([ids]), contexts)])
        static = [
            WEIGHTS["LM0"] * float(total) + WEIGHTS["lmoov"] * words.count(0)
            for (_, _, _, total), words in zip(own, ids, strict=True)
        ]
        paths = [
            ((*path, k), total + static[k] + WEIGHTS["lm"] * float(scores[n, k]))
            for n, (path, total) in enumerate(paths)
            for k in range(size)
        ]
        before = contexts.repeat_interleave(size)
        contexts = model.context.advance(before, summaries).detach()
    return dict(paths)


def marginals(scores: Mapping[Path_, float], t: int, size: int) -> NDArray[np.float64]:
    """Probabilities of the candidates of a sentence, by all paths."""
    values = ALPHA * np.array(list(scores.values()))
    shares = np.exp(values - values.max())
    chosen = [path[t] or 0 for path in scores]
    return np.bincount(chosen, shares / shares.sum(), size).astype(np.float64)


# Every decoder


@both_models
@pytest.mark.parametrize("method", list(DECODERS))
def test_every_decoder_finds_paths_whose_scores_are_theirs_and_says_how_good_they_are(
    model_folders: Mapping[str, Path], method: str, name: str
) -> None:
    """On a finite order the optimum is known whatever searches, else the best known path."""
    if (method, name) == ("viterbi", "ccdclm"):
        with pytest.raises(UsageError, match=r"--search viterbi: .*fit: greedy, beam"):
            decoded(model_folders[name], asked(method))
        return
    result = decoded(model_folders[name], asked(method))
    for document in result.documents:
        scores = all_paths(model_folders[name], document.id)
        first = tuple(0 if size else None for size in SIZES[document.id])
        best = max(scores.values())
        assert document.score == pytest.approx(scores[document.choices], abs=1e-3)
        assert document.search.baseline_score == pytest.approx(scores[first], abs=1e-3)
        assert document.search.gap >= 0
        assert document.search.gap == pytest.approx(document.search.best_score - document.score)
        if document.id == "gap":
            assert (document.search.decoder, document.exact) == ("none", True)
            continue
        assert document.search.decoder == method
        assert document.search.optimal == (name == "codclm" or document.exact)
        if document.search.optimal:
            assert document.search.best_score == pytest.approx(best, abs=1e-3)
        else:
            assert document.search.best_score <= best + 1e-3
        if document.exact:
            assert document.score == pytest.approx(best, abs=1e-3)
        if DECODERS[method].exact(1 if name == "codclm" else None):
            assert document.exact


@both_models
def test_the_summary_and_the_line_for_people_say_the_same(
    model_folders: Mapping[str, Path], name: str
) -> None:
    result = decoded(model_folders[name], asked("greedy", Options(gap=8)))
    summary = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert summary == json.loads(json.dumps(result.to_dict()))
    best = "optimum" if name == "codclm" else "best known"
    assert summary["best"] == best
    figures = {key: summary[key] for key in ("score", "baseline_score", "best_score", "gap")}
    assert figures["gap"] == pytest.approx(figures["best_score"] - figures["score"])
    assert (
        f"model score {figures['score']:.3f} (first candidates {figures['baseline_score']:.3f}, "
        f"{best} {figures['best_score']:.3f}, gap {figures['gap']:.3f}); search greedy, none, not "
        "exact"
    ) in result.to_text()


def test_with_a_gap_asked_for_the_best_known_path_is_looked_for(
    model_folders: Mapping[str, Path],
) -> None:
    """By a beam that keeps everything here, and sweeps: it is the optimum, but not called so."""
    folder = model_folders["ccdclm"]
    drawn = Options(particles=1, alpha=0.05)
    plain = decoded(folder, Search("smc", drawn))
    wide = decoded(folder, Search("smc", replace(drawn, gap=200)))
    assert paths_of(wide) == paths_of(plain)
    for document, before in zip(wide.documents, plain.documents, strict=True):
        best = max(all_paths(folder, document.id).values())
        assert document.search.best_score == pytest.approx(best, abs=1e-3)
        assert document.search.gap >= before.search.gap
    assert any(document.search.gap > 0 for document in wide.documents)
    assert wide.totals()["best"] == "best known"


@pytest.mark.parametrize(("method", "name"), [("viterbi", "codclm"), ("beam", "ccdclm")])
def test_the_summary_lists_the_best_paths_of_every_document(
    model_folders: Mapping[str, Path], method: str, name: str
) -> None:
    decoded(model_folders[name], asked(method, Options(n_best=3)))
    for document in json.loads(Path("out.json").read_text(encoding="utf-8"))["documents"]:
        if document["id"] == "gap":
            assert document["further"] == []
            continue
        scores = all_paths(model_folders[name], document["id"])
        listed = [document, *document["further"]]
        found = [scores[tuple(path["choices"])] for path in listed]
        assert [path["score"] for path in listed] == pytest.approx(found, abs=1e-3)
        assert len({tuple(path["choices"]) for path in listed}) == min(3, len(scores))
        if method == "viterbi":
            assert found == pytest.approx(sorted(scores.values())[-3:][::-1], abs=1e-3)


def test_lists_of_paths_need_a_decoder_and_a_file_for_them(
    model_folders: Mapping[str, Path],
) -> None:
    with pytest.raises(
        UsageError,
        match=r"^--search greedy: greedy does not serve lists of several paths; .*viterbi",
    ):
        decoded(model_folders["codclm"], asked("greedy", Options(n_best=2)))
    search = asked("viterbi", Options(n_best=2))
    with pytest.raises(UsageError, match="give --summary FILE"):
        decode(lists_of(None), "w.json", "out.txt", search=search, notices=Notices())


@pytest.mark.parametrize("method", ["beam", "sweeps"])
def test_a_beam_that_keeps_every_history_is_exact_and_a_threshold_forbids_to_say_so(
    model_folders: Mapping[str, Path], method: str
) -> None:
    folder = model_folders["ccdclm"]
    assert decoded(folder, asked(method, Options(width=200))).totals()["exact"]
    assert not decoded(folder, asked(method, Options(width=2))).totals()["exact"]
    if method == "beam":
        assert not decoded(folder, asked(method, Options(width=200, threshold=50.0))).totals()[
            "exact"
        ]


# Decoders that draw


@both_models
@pytest.mark.parametrize("method", list(DRAWING))
def test_a_document_is_drawn_alike_alone_with_others_and_in_any_order(
    model_folders: Mapping[str, Path], method: str, name: str
) -> None:
    how = asked(method, drawing(method, name))
    together = paths_of(decoded(model_folders[name], how))
    for documents in [list(reversed(SIZES)), *([one] for one in SIZES if one != "gap")]:
        lines: list[str] = []
        ids: list[str] = []
        for document in documents:
            start = COUNTS_BEFORE[document]
            for line in made_up()[document]:
                number, rest = line.split(" ", 1)
                lines.append(f"{len(ids) + int(number) - start} {rest}")
            ids += [document] * len(SIZES[document])
        write("dev.kbest", lines)
        write("dev.docs", ids)
        found = paths_of(decoded(model_folders[name], how))
        assert found == {document: together[document] for document in documents}


COUNTS_BEFORE = {
    name: sum(len(sizes) for sizes in list(SIZES.values())[:d]) for d, name in enumerate(SIZES)
}


@both_models
@pytest.mark.parametrize("method", ["random-beam", "smc", "ffbs"])
def test_another_seed_draws_otherwise_and_the_same_seed_alike(
    model_folders: Mapping[str, Path], method: str, name: str
) -> None:
    own = {
        "random-beam": Options(alpha=0.05, width=1),
        "smc": Options(alpha=0.05, particles=1),
        "ffbs": Options(alpha=0.05, samples=1),
    }[method]
    found = []
    for seed in (1, 2, 3, 4, 1):
        result = decoded(model_folders[name], Search(method, replace(own, seed=seed)))
        assert f"|seed:{seed}|" in result.signature
        found.append(paths_of(result))
    assert found[0] == found[-1]
    assert any(other != found[0] for other in found[1:])
    without = decoded(model_folders[name], Search(method, own))
    assert paths_of(without) == found[0]  # the default is 1


# The scale


@both_models
@pytest.mark.parametrize("method", [name for name in DRAWING if name != "mbr"])
def test_the_scale_is_that_of_the_option_or_else_of_the_weights_file(
    model_folders: Mapping[str, Path], method: str, name: str
) -> None:
    folder, options = model_folders[name], drawing(method, name)
    with pytest.raises(UsageError, match=r"--alpha A, or a weights file with an alpha"):
        decoded(folder, Search(method, options))
    assert not Path("out.txt").exists()
    given = decoded(folder, Search(method, replace(options, alpha=ALPHA)))
    weigh(alpha=ALPHA)
    of_file = decoded(folder, Search(method, options))
    assert of_file.documents == given.documents
    assert f"|alpha:{ALPHA}|" in of_file.signature
    weigh(alpha=3.0)
    both = decoded(folder, Search(method, replace(options, alpha=ALPHA)))
    assert both.documents == given.documents


def test_mbr_scales_by_the_spread_of_the_option_or_else_of_the_weights_file(
    model_folders: Mapping[str, Path],
) -> None:
    folder = model_folders["codclm"]
    found = {s: decoded(folder, Search("mbr", Options(spread=s))) for s in (0.2, 1.4, 5.0)}
    assert found[0.2].documents != found[1.4].documents != found[5.0].documents  # log Z at least
    for scale in (0.01, 10.0):
        weigh(alpha=scale)  # fitted by likelihood: not for mbr
        assert decoded(folder, Search("mbr")).documents == found[1.4].documents
    weights = json.loads(Path("w.json").read_text(encoding="utf-8"))
    Path("w.json").write_text(json.dumps({**weights, "mbr_spread": 5.0}), encoding="utf-8")
    of_file = decoded(folder, Search("mbr"))
    assert of_file.documents == found[5.0].documents
    assert "|spread:5.0|" in of_file.signature
    assert decoded(folder, Search("mbr", Options(spread=0.2))).documents == found[0.2].documents
    by_alpha = decoded(folder, Search("mbr", Options(alpha=ALPHA)))
    assert "spread" not in by_alpha.signature
    decoded(folder, Search("smc"))  # which has no spread


def test_the_normaliser_is_that_of_all_paths(model_folders: Mapping[str, Path]) -> None:
    folder = model_folders["codclm"]
    for document in decoded(folder, asked("ffbs")).documents:
        values = ALPHA * np.array(list(all_paths(folder, document.id).values()))
        expected = np.log(np.exp(values - values.max()).sum()) + values.max()
        if document.id != "gap":
            assert document.search.log_normaliser == pytest.approx(expected, abs=1e-3)


def test_a_scale_that_leaves_no_path_possible_is_told_with_a_count(
    model_folders: Mapping[str, Path],
) -> None:
    """Every score times the scale is −inf: particles die out, the first candidates stay."""
    weigh(lmoov=0.0)
    how, notices = Search("smc", Options(alpha=1.7e308)), Notices()
    write("dev.kbest", [line.replace("LM0= 0.0", "LM0= -1") for line in read("dev.kbest")])
    result = decoded(model_folders["codclm"], how, notices)
    for document in result.documents:
        assert set(document.choices) <= {0, None}
        assert document.search.log_normaliser is None
    assert notices.lines()[1:] == [
        "3 x document in which no possible path was found, left with its first candidates, first "
        "at dev.kbest"
    ]
    assert all(line["marginals"] is None for line in trace())
    lists = lists_of(model_folders["codclm"])
    told = Notices()
    score(lists, "out.scored", weights="w.json", search=how, notices=told)
    assert told.lines() == notices.lines()


# Traces


@both_models
@pytest.mark.parametrize("method", ["beam", "ffbs"])
def test_a_trace_has_a_line_for_each_sentence_with_candidates_that_explains_its_choice(
    model_folders: Mapping[str, Path], method: str, name: str
) -> None:
    folder = model_folders[name]
    result = decoded(folder, asked(method))
    lines = trace()
    expected = [
        (document, t) for document, sizes in SIZES.items() for t, size in enumerate(sizes) if size
    ]
    assert [(line["document"], line["sentence"]) for line in lines] == expected
    for document in result.documents:
        own = [line for line in lines if line["document"] == document.id]
        assert [line["chosen"] for line in own] == [c for c in document.choices if c is not None]
        assert sum(line["total"] for line in own) == pytest.approx(document.score)
        scores = all_paths(folder, document.id)
        for line in own:
            t, size = line["sentence"], SIZES[document.id][line["sentence"]]
            weighted = {key: WEIGHTS[key] * value for key, value in line["features"].items()}
            assert line["weighted"] == pytest.approx(weighted)
            assert line["total"] == pytest.approx(sum(weighted.values()))
            if name == "codclm":
                through = [max(s for p, s in scores.items() if p[t] == c) for c in range(size)]
                others = np.delete(through, line["chosen"])
                margin = through[line["chosen"]] - others.max() if size > 1 else None
                assert line["path_margin"] == (margin and pytest.approx(margin, abs=1e-3))
            else:
                assert line["path_margin"] is None
            if method == "beam":
                assert line["marginals"] is line["marginal"] is None
            elif name == "codclm":
                truth = marginals(scores, t, size)
                np.testing.assert_allclose(line["marginals"], truth, atol=1e-3)
            if method == "ffbs":
                assert sum(line["marginals"]) == pytest.approx(1)
                assert line["marginal"] == line["marginals"][line["chosen"]]


@pytest.mark.parametrize("diverse", [False, True], ids=["first", "diverse"])
def test_choices_are_told_by_their_places_in_the_file_where_candidates_are_left_out(
    model_folders: Mapping[str, Path], diverse: bool
) -> None:
    result = decoded(model_folders["codclm"], asked("ffbs"), top=2, diverse=diverse)
    texts = [[] for _ in COUNTS]  # type: list[list[str]]
    for line in read("dev.kbest"):
        number, text, _, _ = line.split(" ||| ")
        texts[int(number)].append(text)
    choices = [c for document in result.documents for c in document.choices]
    own = [own[c] if c is not None else "" for own, c in zip(texts, choices, strict=True)]
    assert read("out.txt") == own
    assert [line["chosen"] for line in trace()] == [c for c in choices if c is not None]
    assert all(len(line["marginals"]) <= 2 for line in trace())
    assert diverse == any(c is not None and c > 1 for c in choices)


def test_a_trace_appears_whole_or_not_at_all(
    here: Path, model_folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in the last document leaves the old trace, the others' lines being written."""
    write("out.trace", ["old"])
    saved = load_model(model_folders["ccdclm"])
    with torch.no_grad():
        saved.model.embedding.weight[saved.vocabulary.encode([b"burns"])[0]] = torch.nan
    save_model(here / "broken", saved.model, saved.vocabulary, {})
    before = sorted(here.iterdir())
    monkeypatch.setattr("rerank.pipeline.sources.ABREAST", 1)  # a document at a time
    with pytest.raises(RerankError, match="NaN"):
        decoded(here / "broken", asked("beam"))
    assert read("out.trace") == ["old"]
    assert sorted(here.iterdir()) == before


def test_without_reports_nothing_is_traced(
    model_folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be work for nobody."""
    monkeypatch.setattr("rerank.pipeline.decoding.Trace", None)
    lists = lists_of(model_folders["codclm"])
    result = decode(lists, "w.json", "out.txt", notices=Notices())
    assert result is not None
    assert [d.search.near_ties for d in result.documents] == [None, 0, None, None]
    assert result.to_dict()["near_ties"] is None


@both_models
def test_two_equal_candidates_are_a_near_tie(model_folders: Mapping[str, Path], name: str) -> None:
    how = asked("exhaustive")
    result = decoded(model_folders[name], how)
    assert {d.search.near_ties for d in result.documents} == {0}
    lines = read("dev.kbest")
    chosen = result.documents[-1].choices[-1]
    assert chosen is not None
    (twice,) = [line for line in lines if line.startswith(f"{len(COUNTS) - 1} ")][chosen:][:1]
    write("dev.kbest", [*lines, twice])
    again = decoded(model_folders[name], how)
    assert [d.search.near_ties for d in again.documents] == [0, 0, 0, 1]
    assert paths_of(again) == paths_of(result)  # the first of equals
    assert again.to_dict()["near_ties"] == 1


# Minimum Bayes risk


@pytest.mark.parametrize("utility", [None, "bleu", "chrf"])
def test_mbr_chooses_by_expected_utility_under_the_marginals_of_all_paths(
    model_folders: Mapping[str, Path], utility: str | None
) -> None:
    folder = model_folders["codclm"]
    result = decoded(folder, asked("mbr", utility=utility))
    assert f"|utility:{utility or 'bleu'}|" in result.signature
    for document, kbest in zip(result.documents, lists_read(folder), strict=True):
        if not kbest.n:
            continue
        scores, gains = (
            all_paths(folder, document.id),
            attribute(UTILITIES[utility or "bleu"])(kbest),
        )
        present = [t for t, size in enumerate(SIZES[document.id]) if size]
        for s, t in enumerate(present):
            expected = gains.expected(s, marginals(scores, t, SIZES[document.id][t]))
            choice = document.choices[t]
            assert choice is not None
            assert expected[choice] == pytest.approx(expected.max(), abs=1e-2)
    assert not result.totals()["exact"]


def lists_read(folder: Path) -> list[KBest]:
    with KBestSource.open(lists_of(folder), Notices()) as opened:
        return [kbest for batch in opened.batches() for _, kbest in batch]


def test_the_utilities_choose_for_themselves(model_folders: Mapping[str, Path]) -> None:
    """With an unbounded model as well, from the paths of a particle filter."""
    found = [
        paths_of(decoded(model_folders["ccdclm"], asked("mbr", utility=utility)))
        for utility in ("bleu", "chrf")
    ]
    assert found[0] != found[1]


def test_a_utility_that_there_is_not_is_refused(model_folders: Mapping[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"--utility ter: there are bleu, .*chrf"):
        decoded(model_folders["codclm"], asked("mbr", utility="ter"))
