"""Every line of the tables leads to what it names: a scorer and an option, or a metric."""

import sys
from importlib.metadata import EntryPoint

import pytest

from rerank.cli import cli
from rerank.errors import UsageError
from rerank.metrics import TextMetric
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.ter import Ter
from rerank.registry import DECODERS, METRICS, MODELS, SCORE_FILES, Registry, attribute, metric
from rerank.scorers.file_scorer import FileScorer


@pytest.mark.parametrize("option", sorted(SCORE_FILES))
def test_a_kind_names_a_scorer_that_reads_a_file(option: str) -> None:
    assert issubclass(attribute(SCORE_FILES[option].scorer), FileScorer)


@pytest.mark.parametrize("command", ["score", "decode", "tune-mert"])
def test_a_kind_is_an_option_of_every_command_that_scores(command: str) -> None:
    known = {opt for parameter in cli.commands[command].params for opt in parameter.opts}
    assert {f"--{option}" for option in SCORE_FILES} <= known


def test_kinds_without_a_name_make_features_of_different_names() -> None:
    labels = [kind.label for kind in SCORE_FILES.values()]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("name", "shown"), [("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")])
def test_a_metric_is_had_by_its_name(name: str, shown: str) -> None:
    assert metric(name).name == shown


def test_every_metric_of_the_table_keeps_to_the_protocol() -> None:
    kept: list[TextMetric] = [Bleu(), Chrf(), Ter()]  # mypy looks at it
    assert {type(one) for one in kept} == {type(metric(name)) for name in METRICS}


class Longest:
    """A member of another package."""

    name = "longest"


POINTS = {
    "longest": f"{__name__}:Longest",
    "chrf": "no.such.module:Chrf",
    "broken": "no.such.module:Broken",
}


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of other packages: one that works, one that is taken, one that is broken."""

    def found(group: str) -> list[EntryPoint]:
        return [EntryPoint(name, value, group) for name, value in POINTS.items()]

    monkeypatch.setitem(sys.modules, __name__, sys.modules[Longest.__module__])
    monkeypatch.setattr("importlib.metadata.entry_points", found)


@pytest.mark.usefixtures("points")
def test_another_package_brings_a_metric_by_an_entry_point() -> None:
    assert metric("longest").name == "longest"
    assert metric("chrf").name == "chrF2"
    assert METRICS.clashes() == ["metric 'chrf' of package (unknown) ignored: the name is built in"]


@pytest.mark.usefixtures("points")
@pytest.mark.parametrize("registry", [METRICS, DECODERS, MODELS], ids=lambda one: one.group)
def test_names_of_all_members_are_known_without_loading_them(registry: Registry[object]) -> None:
    names = [*registry]
    assert names[: len(registry.builtin)] == [*registry.builtin]
    assert {"longest", "broken"} <= {*names}
    assert len(registry) == len(names) == len({*names})
    assert "broken" in registry
    assert "nobody" not in registry
    assert registry["longest"] is Longest
    assert registry.with_plugin("longest") == {**registry.builtin, "longest": Longest}
    assert registry.with_plugin("nobody") == registry.builtin


@pytest.mark.usefixtures("points")
def test_a_member_that_cannot_be_had_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no metric 'chrff'; did you mean chrf"):
        metric("chrff")
    with pytest.raises(UsageError, match="no metric 'comet'; there are bleu, chrf, ter, broken, l"):
        metric("comet")
    told = "metric 'broken', no.such.module:Broken, cannot be loaded: ModuleNotFoundError: No mod"
    with pytest.raises(UsageError, match=told):
        metric("broken")


def test_members_of_a_family_are_had_and_its_pattern_stands_in_messages() -> None:
    assert MODELS.named("rlm-bow-lf-4").order == 4
    assert "rlm-bow-lf-4" in MODELS
    assert "rlm-bow-lf-N" not in MODELS
    near = "did you mean rlm-bow-lf-N with N from 1 to 100"
    for name in ("rlm-bow-fl-4", "rlm-bow-lf-0", "rlm-bow-lf-101", "rlm-bow-lf-N", "rlm-bow-lf"):
        with pytest.raises(UsageError, match=rf"no model '{name}'; {near}\? there are rnnlm, "):
            MODELS.named(name)
    with pytest.raises(UsageError, match=r"did you mean codclm\? there.*, rlm-seqbow-att-lf-N$"):
        MODELS.named("codclmm")


def test_two_packages_with_one_name_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [EntryPoint("own", f"{name}:Own", "rerank.metrics") for name in ("a", "b")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: both)
    with pytest.raises(UsageError, match="expected one metric called 'own', found two"):
        metric("own")
