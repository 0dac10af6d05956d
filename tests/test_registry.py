"""Every line of the tables leads to what it names: a scorer and an option, or a metric."""

import sys
from importlib import import_module
from importlib.metadata import EntryPoint

import pytest

from rerank.cli import cli
from rerank.errors import UsageError
from rerank.metrics import TextMetric
from rerank.metrics.chrf import Chrf
from rerank.metrics.corpus_bleu import Bleu
from rerank.metrics.ter import Ter
from rerank.registry import METRICS, OUTSIDE, metric
from rerank.scorers.file_scorer import FileScorer


@pytest.mark.parametrize("option", sorted(OUTSIDE))
def test_a_kind_names_a_scorer_that_reads_a_file(option: str) -> None:
    module, _, attribute = OUTSIDE[option].scorer.partition(":")
    assert issubclass(getattr(import_module(module), attribute), FileScorer)


@pytest.mark.parametrize("command", ["score", "decode", "tune-mert"])
def test_a_kind_is_an_option_of_every_command_that_scores(command: str) -> None:
    known = {opt for parameter in cli.commands[command].params for opt in parameter.opts}
    assert {f"--{option}" for option in OUTSIDE} <= known


def test_kinds_without_a_name_make_features_of_different_names() -> None:
    labels = [kind.label for kind in OUTSIDE.values()]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("name", "shown"), [("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")])
def test_a_metric_is_had_by_its_name(name: str, shown: str) -> None:
    assert metric(name).name == shown


def test_every_metric_of_the_table_keeps_to_the_protocol() -> None:
    kept: list[TextMetric] = [Bleu(), Chrf(), Ter()]  # mypy looks at it
    assert {type(one) for one in kept} == {type(metric(name)) for name in METRICS}


class Longest:
    """A metric of another package."""

    name = "longest"


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of other packages: one that works, one that is taken, one that is broken."""
    values = {
        "longest": f"{__name__}:Longest",
        "chrf": "no.such.module:Chrf",
        "broken": "no.such.module:Broken",
    }
    found = [EntryPoint(name, value, "rerank.metrics") for name, value in values.items()]
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Longest.__module__])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: found)


@pytest.mark.usefixtures("points")
def test_another_package_brings_a_metric_by_an_entry_point() -> None:
    assert metric("longest").name == "longest"
    assert metric("chrf").name == "chrF2"


@pytest.mark.usefixtures("points")
def test_a_metric_that_cannot_be_had_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no metric 'comet'; there are bleu, chrf, ter, broken, l"):
        metric("comet")
    told = "metric 'broken', no.such.module:Broken, cannot be loaded: No module named 'no'; mend"
    with pytest.raises(UsageError, match=told):
        metric("broken")
