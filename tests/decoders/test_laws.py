"""The laws of decoders: ours keep them, and a decoder that breaks one is caught."""

import dataclasses
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from decoders.laws import SCALED, LawError, check_decoder
from decoders.problem import DocumentProblem, Path
from decoders.result import Posterior, SearchResult
from decoders.table import ANY, DECODERS, NONE, Decoder, Options
from decoders.viterbi import exhaustive


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, SCALED) for name in DECODERS),
        ("beam", Options(width=1)),
        ("beam", Options(width=300)),
        ("survivors", Options(merge="sample", scale=0.7)),
        ("random-beam", Options(width=300, scale=0.7)),
        ("smc", Options(particles=8, temper=0.0, lag=1, scale=2.0)),
        ("sweeps", Options(width=64, block=2)),
        ("sweeps", Options(width=2, gibbs=2, horizon=1, scale=0.5)),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.given()),
)
def test_every_decoder_keeps_the_laws(name: str, options: Options) -> None:
    check_decoder(DECODERS[name], options, documents=3)


def row_for(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, **facts: Any) -> Decoder:
    """The row of a decoder in somebody's package."""
    module = ModuleType("somebody")
    vars(module)["decoder"] = function
    monkeypatch.setitem(sys.modules, "somebody", module)
    row = Decoder("mine", "somebody:decoder", ANY, NONE, "O(K^T)", "nowhere", ("n_best",))
    return dataclasses.replace(row, **facts)


def best(problem: DocumentProblem, *, n_best: int = 1) -> list[Path]:
    return exhaustive(problem, n_best=n_best)


BROKEN: dict[str, tuple[Callable[[list[Path], int], list[Path]], dict[str, Any]]] = {
    "a score is not that of its path": (
        lambda found, n: [Path(path.choices, path.score + 0.5) for path in found[:n]], {},
    ),
    "too few or too many paths": (lambda found, n: found[: n + 1], {}),
    "a path is listed twice": (lambda found, n: found[:1] * n, {}),
    "not in the order of the rule of ties": (lambda found, n: found[:n][::-1], {}),
    "the search is not exact": (lambda found, n: found[: n + 1][-n:], {"exact_to": ANY}),
    "impossible document does not leave the first candidates": (
        lambda found, n: [max(found, key=lambda path: path.choices)], {"options": ()},
    ),
    "all-zero scores do not give uniform marginals": (
        lambda found, n: found[:n], {"uniform": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_law_is_named(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    answer, facts = BROKEN[fault]

    def broken(problem: DocumentProblem, *, n_best: int = 1) -> list[Path]:
        return answer(best(problem, n_best=10**4), n_best)

    with pytest.raises(LawError, match=f"^mine on order .*{fault}"):
        check_decoder(row_for(broken, monkeypatch, **facts), documents=4)


def test_a_path_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(problem: DocumentProblem, *, n_best: int) -> list[Path]:
        return [Path(tuple(problem.lengths), 0.0)]

    with pytest.raises(ValueError, match="no candidate"):
        check_decoder(row_for(elsewhere, monkeypatch), documents=1)


def test_a_changed_argument_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def changing(problem: DocumentProblem, *, n_best: int) -> list[Path]:
        for table in problem.tables:  # type: ignore[attr-defined]
            table += 1
        return best(problem, n_best=n_best)

    with pytest.raises(ValueError, match="read-only"):
        check_decoder(row_for(changing, monkeypatch), documents=1)


def test_a_result_that_depends_on_the_batch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def remembering(problem: DocumentProblem) -> Path:
        calls.append(problem)
        return best(problem, n_best=2)[-1] if len(calls) % 2 else best(problem)[0]

    with pytest.raises(LawError, match="the result depends on the batch"):
        check_decoder(row_for(remembering, monkeypatch, options=()), documents=4)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"marginals": ()}, "marginals have another shape"),
        ({"draws": np.full((1, 9), 0)}, "draws are not paths"),
        ({"weights": np.array([0.5])}, "weights of draws are not probabilities"),
    ],
)
def test_an_invalid_posterior_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], fault: str
) -> None:
    def sure(problem: DocumentProblem) -> SearchResult:
        """A posterior that holds the best path alone."""
        (path,) = best(problem)
        marginals = tuple(np.eye(k)[c] for k, c in zip(problem.lengths, path.choices, strict=True))
        draws = np.array([path.choices], dtype=np.intp).reshape(1, -1)
        posterior = Posterior(marginals, 0.0, False, draws, np.ones(1))
        return SearchResult((path,), dataclasses.replace(posterior, **changes))

    changes: dict[str, Any] = {}
    row = row_for(sure, monkeypatch, options=())
    check_decoder(row, documents=1)
    changes = change
    with pytest.raises(LawError, match=fault):
        check_decoder(row, documents=1)
