"""The search of documents, how it is chosen, and what is said of it."""

import re
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from support.lists import kbest_of_sizes

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.problem import DocumentProblem
from decoders.search import Options
from decoders.table import DECODERS
from rerank.corpus.labels import Label
from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline.searching import Search, choose_search, search_documents
from rerank.pipeline.sources import DocumentSource
from rerank.registry import FLAGS
from rerank.scorers.features import DocumentFeatures, FeatureSpace

NEEDING: dict[str, dict[str, Any]] = {  # options with which a decoder needs a scale
    "survivors": {"merge": "mean"},
    "random-beam": {},
    "smc": {},
    "ffbs": {},
    "sweeps": {"gibbs": 1},
}
VALUES: dict[str, Any] = {"merge": "max", "resampling": "residual", "utility": "chrf"}


def document(problem: DocumentProblem, name: str = "talk-1") -> DocumentFeatures:
    """Two sentences of two candidates each: one feature of the list, one of a scorer."""
    space = FeatureSpace((Label("LM0", 1), Label("x", 1)), (1,), 1, False)
    static = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    return DocumentFeatures(
        name, space, static, np.zeros(4), (problem,), np.array([0, 2, 4]), np.arange(2)
    )


def opened(*orders: int | None) -> DocumentSource:
    """Lists with scorers of these orders."""
    scorers = [
        SimpleNamespace(order=order, passes=lambda k: 1.0, given_later=False, causal=True)
        for order in orders
    ]
    return DocumentSource((), cast(Any, scorers), Notices(), name="dev.kbest")


def asked(method: str, **options: Any) -> Search:
    return Search(method, Options(**options))


PAIRS = Pairwise([np.array([[0.0, -1.0]]), np.array([[-9.0, -1.0], [0.0, -9.0]])])


def test_the_path_found_is_the_best_and_is_compared_with_that_of_first_candidates() -> None:
    (found,) = search_documents([document(PAIRS)], np.array([0.5, 1.0]), Search())
    assert found.choices == (1, 0)
    assert found.score == -1.0 + 0.0 + 0.5
    assert found.baseline_score == 0.5 - 9.0 + 0.5
    assert (found.exact, found.decoder) == (True, "viterbi")
    assert (found.best_score, found.optimal, found.posterior) == (found.score, True, None)


@pytest.mark.parametrize("method", sorted(DECODERS.keys() - {"mbr", "viterbi"}))
def test_the_optimum_of_a_finite_order_is_known_whatever_searches(method: str) -> None:
    how = asked(method, scale=1.0)
    (found,) = search_documents([document(PAIRS)], np.array([0.5, 1.0]), how)
    assert (found.best_score, found.optimal) == (-0.5, True)
    assert found.score <= found.best_score


@pytest.mark.parametrize("method", ["greedy", "beam", "smc", "sweeps"])
def test_the_best_known_path_of_an_unbounded_order_is_never_called_the_optimum(
    method: str,
) -> None:
    """Unless a beam is so wide that it keeps every history."""
    rng = np.random.default_rng(1)
    table = HistoryTable([rng.normal(size=shape) for shape in ((2,), (2, 2))])
    truth = max(table.tables[0][j] + table.tables[1][j, k] for j, k in product((0, 1), (0, 1)))
    narrow = {"width": 1} if DECODERS[method].takes("width") else {}
    how = asked(method, scale=1.0, gap=8, **narrow)
    (found,) = search_documents([document(table)], np.array([0.0, 1.0]), how)
    assert not found.optimal
    assert found.best_score == pytest.approx(truth)  # sweeps behind a beam of 8 see all paths
    assert found.score <= found.best_score


def test_an_invalid_score_is_an_error_with_scorer_document_and_sentence() -> None:
    poisoned = Unary([np.array([0.0, np.nan]), np.zeros(2)])
    with pytest.raises(RerankError, match=r"document .talk-2., .*NaN"):
        search_documents([document(PAIRS), document(poisoned, "talk-2")], np.ones(2), Search())


def test_a_decoder_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=re.escape("--search nothing: no decoder is called")):
        search_documents([document(PAIRS)], np.ones(2), Search("nothing"))
    with pytest.raises(UsageError, match=r"--search viterby: .*did you mean viterbi"):
        choose_search(opened(), Search("viterby"), lambda line: None)


@pytest.mark.parametrize(
    "how",
    [asked("beam", width=0), asked("survivors", merge="sum"), asked("smc", scale=-1.0)],
    ids=["width", "merge", "scale"],
)
def test_options_of_no_sense_are_refused_with_the_decoder(how: Search) -> None:
    with pytest.raises(UsageError, match=f"--search {how.method}: "):
        search_documents([document(PAIRS)], np.ones(2), how)


@dataclass
class Priced:
    """A scorer of order 1 whose exact search takes so many passes over lists of k candidates."""

    exponent: int
    order: int | None = 1
    given_later: bool = False
    causal: bool = True

    def passes(self, k: float) -> float:
        return k**self.exponent

    def lazily(self) -> None:
        self.order = None


@pytest.mark.parametrize(
    ("exponent", "k", "method", "chosen"),
    [
        (0, 100, "auto", "viterbi"),
        (1, 32, "auto", "viterbi"),
        (1, 33, "auto", "beam"),
        (1, 100, "viterbi", "viterbi"),
    ],
)
def test_auto_is_exact_unless_that_takes_four_times_the_passes_of_a_beam_of_eight(
    exponent: int, k: int, method: str, chosen: str
) -> None:
    scorer = Priced(exponent)
    lists = DocumentSource([("x", kbest_of_sizes((k, k)))], cast(Any, [scorer]), Notices())
    said: list[str] = []
    how = choose_search(lists, Search(method), said.append)
    assert said[0].startswith(f"search: {chosen}")
    assert ("is exact, in 33 passes over the lists" in said[0]) == (chosen == "beam")
    assert how.method == ("beam" if chosen == "beam" else method)
    assert scorer.order == (None if chosen == "beam" else 1)


def test_pairs_of_both_directions_are_scored_whole_whatever_that_costs() -> None:
    """Scored after some histories only, they would have no direction in common."""
    scorers = [Priced(1), Priced(1, given_later=True)]
    lists = DocumentSource([("x", kbest_of_sizes((99, 99)))], cast(Any, scorers), Notices())
    said: list[str] = []
    assert choose_search(lists, Search(), said.append) == Search()
    assert said[0].startswith("search: viterbi, exact for a problem of order 1")
    assert [scorer.order for scorer in scorers] == [1, 1]


@pytest.mark.parametrize(
    ("later", "earlier", "said"),
    [
        (
            None,
            1,
            "beam of width 8, not exact for a problem of unbounded order, O(T B K); documents "
            "are searched from the last sentence to the first",
        ),
        (2, 0, "viterbi, exact for a problem of order 2, O(T K^(n+1)), order n; documents are"),
        (
            None,
            None,
            "sweeps of width 8, not exact for a problem of unbounded order, O(T K^block "
            "(block + horizon)) a sweep; models read documents in both directions: sweeps from the",
        ),
        (2, 2, "sweeps of width 8, not exact for a problem of unbounded order"),
    ],
)
def test_the_direction_of_the_scorers_decides_and_is_announced(
    later: int | None, earlier: int | None, said: str
) -> None:
    scorers = [Priced(0, later, given_later=True), Priced(0, earlier)]
    lists = DocumentSource([("x", kbest_of_sizes((2, 2)))], cast(Any, scorers), Notices())
    announced: list[str] = []
    choose_search(lists, Search(), announced.append)
    assert announced[0].startswith(f"search: {said}")


@pytest.mark.parametrize("method", ["beam", "viterbi", "mbr", "exhaustive"])
def test_both_directions_of_unbounded_order_are_for_sweeps_alone(method: str) -> None:
    scorers = [Priced(0, None, given_later=True), Priced(0, None)]
    lists = DocumentSource([("x", kbest_of_sizes((2, 2)))], cast(Any, scorers), Notices())
    with pytest.raises(UsageError) as raised:
        choose_search(lists, Search(method), lambda line: None)
    told = str(raised.value)
    assert told.startswith(
        f"--search {method}: {method} does not serve scores that depend on later"
    )
    assert "decoders that fit: sweeps, which search the sum of models" in told
    assert "leave out those of one direction" in told


@pytest.mark.parametrize(
    ("orders", "how", "told"),
    [
        ((), Search(), "viterbi, exact for a problem of order 0, O(T K^(n+1)), order n"),
        ((1, 0), Search(), "viterbi, exact for a problem of order 1, O(T K^(n+1)), order n"),
        ((1, None), Search(), "beam of width 8, not exact for a problem of unbounded order"),
        ((1,), asked("greedy"), "greedy, not exact for a problem of order 1, O(T K)"),
        ((None,), asked("beam", width=3), "beam of width 3, not exact"),
        ((1,), asked("survivors"), "survivors, exact for a problem of order 1"),
        ((1,), asked("survivors", merge="mean", alpha=1.0), "survivors, not exact"),
        ((None,), asked("exhaustive"), "exhaustive, exact for a problem of unbounded order"),
    ],
)
def test_the_search_is_said_with_what_is_exact(
    orders: tuple[int | None, ...], how: Search, told: str
) -> None:
    said: list[str] = []
    choose_search(opened(*orders), how, said.append)
    assert said[0].startswith(f"search: {told}")


@pytest.mark.parametrize("option", sorted(FLAGS))
@pytest.mark.parametrize("method", sorted(DECODERS))
def test_an_option_that_a_decoder_does_not_use_is_refused_with_those_that_do(
    method: str, option: str
) -> None:
    """A scale is at hand, so that the option alone can be wrong."""
    row = DECODERS[method]
    how = asked(method, **{option: VALUES.get(option, 1)}).at(1.0)
    if row.takes(option) or option in ("alpha", "seed"):  # which every decoder accepts
        source = opened(None if row.serves(None) else 0)
        assert choose_search(source, how, lambda line: None) == how
        return
    with pytest.raises(UsageError) as fault:
        choose_search(opened(0), how, lambda line: None)
    takers = [name for name in DECODERS if DECODERS[name].takes(option)]
    assert str(fault.value) == (
        f"--search {method}: {method} does not use {FLAGS[option]}; it is for {', '.join(takers)}"
    )


def test_auto_lets_a_width_pass_and_no_other_option() -> None:
    assert choose_search(opened(1), asked("auto", width=3), lambda line: None).options.width == 3
    with pytest.raises(UsageError, match="--search viterbi: viterbi does not use --particles"):
        choose_search(opened(1), asked("auto", particles=3), lambda line: None)
    with pytest.raises(UsageError, match="--search beam: beam does not use --particles"):
        choose_search(opened(None), asked("auto", particles=3), lambda line: None)


@pytest.mark.parametrize("method", sorted(DECODERS))
def test_a_decoder_that_needs_a_scale_and_has_none_names_both_cures(method: str) -> None:
    how = asked(method, **NEEDING.get(method, {}))
    if method not in NEEDING:
        choose_search(opened(0), how, lambda line: None)
        return
    with pytest.raises(UsageError, match=r"--alpha A, or a weights file with an alpha"):
        choose_search(opened(0), how, lambda line: None)
    choose_search(opened(0), how.at(0.5), lambda line: None)
    choose_search(opened(0), asked(method, alpha=0.5, **NEEDING[method]), lambda line: None)


def test_a_merge_that_draws_or_averages_needs_a_scale_and_the_best_does_not() -> None:
    for merge in ("sample", "mean"):
        with pytest.raises(UsageError, match="--alpha"):
            choose_search(opened(1), asked("survivors", merge=merge), lambda line: None)
    choose_search(opened(1), asked("survivors", merge="max"), lambda line: None)


def test_viterbi_is_refused_for_unbounded_orders_with_decoders_that_fit() -> None:
    with pytest.raises(UsageError, match=r"--search viterbi: .*all earlier sentences") as fault:
        choose_search(opened(None), Search("viterbi"), lambda line: None)
    fitting = str(fault.value).rpartition("fit: ")[2].split(", ")
    assert fitting == [name for name in DECODERS if name != "viterbi"]


def test_a_seed_is_for_decoders_that_draw() -> None:
    assert Search("smc").seeded(7).options.seed == 7
    assert Search("viterbi").seeded(7) == Search("viterbi")
    assert Search().seeded(7) == Search()
    with pytest.raises(UsageError, match="no decoder is called"):
        Search("nothing").seeded(7)


@pytest.mark.parametrize(
    ("how", "decoders", "signed"),
    [
        (Search(), ["viterbi"], {}),
        (Search(), ["beam"], {"beam": 8}),
        (asked("beam", width=3, threshold=2.0), ["beam"], {"beam": 3, "beam-threshold": 2.0}),
        (asked("smc", scale=0.5), ["smc"], {"alpha": 0.5, "seed": 1}),
        (
            asked("smc", scale=0.5, alpha=0.25, particles=9, seed=3),
            ["smc"],
            {"particles": 9, "alpha": 0.25, "seed": 3},
        ),
        (asked("mbr", alpha=1.0), ["mbr"], {"alpha": 1.0, "seed": 1, "utility": "bleu"}),
        (asked("mbr", scale=9.0), ["mbr"], {"seed": 1, "utility": "bleu", "spread": 1.4}),
        (asked("mbr").at(9.0, 2.5), ["mbr"], {"seed": 1, "utility": "bleu", "spread": 2.5}),
        (
            asked("mbr", alpha=1.0, word_reward=-1.0).at(9.0, 2.5),
            ["mbr"],
            {"alpha": 1.0, "seed": 1, "utility": "bleu", "word-reward": -1.0},
        ),
        (
            asked("mbr", alpha=1.0, seed=2, utility="chrf"),
            ["mbr"],
            {"alpha": 1.0, "seed": 2, "utility": "chrf"},
        ),
        (asked("survivors", scale=0.5), ["survivors"], {}),
        (asked("sweeps", scale=0.5, block=2), ["sweeps"], {"beam": 8, "block": 2}),
        (asked("beam", n_best=20), ["beam"], {"beam": 20}),  # a narrower one lists fewer
        (asked("beam", n_best=20, width=4), ["beam"], {"beam": 4}),
    ],
)
def test_a_signature_says_the_options_that_decide_and_no_others(
    how: Search, decoders: list[str], signed: dict[str, object]
) -> None:
    assert how.signed(decoders) == signed


@pytest.mark.parametrize("method", ["smc", "ffbs", "viterbi"])
def test_a_document_without_a_possible_path_keeps_its_first_candidates(
    method: str,
) -> None:
    """A score of −inf that no path can avoid: sampling dies out, and the rule of ties decides."""
    dead = HistoryTable([np.zeros(2), np.full((2, 2), -np.inf)], order=1)
    how = asked(method, alpha=1.0) if method != "viterbi" else Search(method)
    one, _ = search_documents([document(dead), document(PAIRS)], np.array([1.0, 1.0]), how)
    assert one.choices == (0, 0)
    assert one.score == -np.inf


def test_a_scale_under_which_all_paths_are_impossible_leaves_the_first_candidates() -> None:
    """Scores times the scale overflow to −inf, in silence; the path's own score is finite."""
    (found,) = search_documents(
        [document(PAIRS)], np.array([-1.0, 1.0]), asked("smc", alpha=1.7e308)
    )
    assert found.posterior is not None
    assert found.posterior.extinct
    assert found.choices == (0, 0)
    assert found.score == found.baseline_score == -1.0 - 9.0 - 1.0


@pytest.mark.parametrize("method", ["survivors", "random-beam", "smc", "ffbs"])
def test_a_scale_that_takes_scores_beyond_float64_is_refused(method: str) -> None:
    how = asked(method, alpha=1.7e308, **NEEDING[method])
    with pytest.raises(RerankError, match=r"below 1\.8e308.*another --alpha"):
        search_documents([document(PAIRS)], np.array([9.0, 1.0]), how)


@pytest.mark.parametrize("method", ["greedy", "viterbi", "exhaustive"])
def test_a_path_whose_score_is_beyond_float64_is_refused(method: str) -> None:
    with pytest.raises(RerankError, match=r"sums.*below 1\.8e308.*take smaller weights"):
        search_documents([document(PAIRS)], np.array([1e308, 1.0]), Search(method))
