"""`train_lm` and `perplexity` on a made-up text: what is learnt, written, resumed and refused."""

import json
import math
import os
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from support.language_models import QUICK, SMALL, trained, with_texts
from support.models import OF_TEXT_ALONE

from lm.checkpoint import load_model, save_model
from lm.composition import Composition, fact, load
from lm.model import Config
from lm.side_information import information_of
from lm.training.trainer import Report
from lm.zoo import ZOO
from rerank.cli import run
from rerank.errors import InputError, RerankError, StoppedEarly, UsageError
from rerank.files.lines import digest
from rerank.notices import Notices
from rerank.pipeline import Recipe, language_models, perplexity, train_lm, training
from rerank.pipeline.recipes import completed

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
TRAINED_ON_TEXT = [
    name
    for name in OF_TEXT_ALONE
    if not ZOO[name].one_size and not information_of(load(ZOO[name].context))
]
every_model = pytest.mark.parametrize("name", OF_TEXT_ALONE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with 200 sentences to train on and 50 held out."""
    return with_texts(tmp_path, monkeypatch)


def unigram_perplexity() -> float:
    """Of the held-out text under the frequencies of the training text, `</s>` counted."""
    train, valid = (
        Counter(
            word
            for line in Path(name).read_text(encoding="utf-8").splitlines()
            for word in ([*line.split(), "</s>"] if line else [])
        )
        for name in ("train.txt", "valid.txt")
    )
    nats = -sum(n * math.log(train[word] / train.total()) for word, n in valid.items())
    return math.exp(nats / valid.total())


def model_files(folder: str) -> dict[str, bytes]:
    """What a model folder holds, but for the state of the run."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


# Training


@pytest.mark.parametrize("name", TRAINED_ON_TEXT)
def test_a_trained_model_beats_the_frequencies_of_words(here: Path, name: str) -> None:
    """The text has an order of words, which frequencies do not know."""
    topics = None
    if (module := fact(load(ZOO[name].context), "learns_with")) is not None:
        pytest.importorskip(module)
        topics = 2
    report = trained(replace(SMALL, model=name, topics_number=topics, epochs=3))
    found = perplexity(Path("lm"), "valid.txt", notices=Notices(), device="cpu")
    assert found.perplexity < unigram_perplexity()
    assert (found.sentences, found.tokens, found.oov) == (50, 50 * 7, 0)
    assert report.epoch == 3.0


def test_the_folder_holds_the_model_of_the_best_validation(here: Path) -> None:
    reports: list[Report] = []
    trained(replace(SMALL, learning_rate=0.2, epochs=2), report=reports.append)
    best = min(reports, key=lambda report: report.valid_perplexity)
    assert [report.best for report in reports if report is best] == [True]
    about = load_model(Path("lm")).about
    assert (about["valid_perplexity"], about["update"]) == (best.valid_perplexity, best.update)
    found = perplexity(Path("lm"), "valid.txt", notices=Notices(), device="cpu")
    assert found.perplexity == pytest.approx(best.valid_perplexity, rel=1e-6)


def test_a_model_says_how_it_came_about(here: Path) -> None:
    said: list[str] = []
    trained(replace(QUICK, vocabulary=5), announce=said.append)
    about = json.loads(Path("lm/config.json").read_text(encoding="utf-8"))["about"]
    assert about["model"] == "codclm"
    assert about["settings"]["epochs"] == 1
    assert about["settings"]["precision"] == "float32"
    assert about["data"] == {
        name: {"file": f"{name}.txt", "digest": digest(f"{name}.txt")}
        for name in ("train", "valid")
    }
    words = Path("train.txt").read_text(encoding="utf-8").split()
    known = sum(count for _, count in Counter(words).most_common(5))
    assert about["oov_rate"] == 1 - known / len(words)
    assert said[0].startswith("codclm: ")
    assert "order 1; 40 documents, 1,400 words" in said[0]


def test_a_seed_decides_the_model(here: Path) -> None:
    for out, seed in (("one", 5), ("two", 5), ("other", 6)):
        trained(replace(QUICK, seed=seed), out)
    assert model_files("one") == model_files("two")
    assert model_files("one").keys() != model_files("other").keys()


def test_a_head_that_is_not_normalised_states_its_error_in_the_folder(here: Path) -> None:
    said: list[str] = []
    reports: list[Report] = []
    recipe = replace(SMALL, head="self-normalised")
    trained(recipe, announce=said.append, report=reports.append)
    assert said[0].startswith("codclm (self-normalised): ")
    best = min(reports, key=lambda report: report.valid_perplexity)
    stated = load_model(Path("lm")).about["log_z"]
    assert best.log_z is not None
    assert stated == {"mean": best.log_z.mean, "sd": best.log_z.sd}
    found = perplexity(Path("lm"), "valid.txt", notices=Notices(), device="cpu")
    assert found.log_z is not None
    assert found.as_json()["log_z_mean"] == pytest.approx(best.log_z.mean, abs=1e-5)
    assert found.as_json()["log_z_sd"] == pytest.approx(best.log_z.sd, rel=1e-5)
    assert found.perplexity == pytest.approx(best.valid_perplexity, rel=1e-6)
    assert found.perplexity < unigram_perplexity()


def test_a_model_trained_by_nce_is_normalised_or_states_its_error(here: Path) -> None:
    recipe = replace(SMALL, objective="nce", negatives=30)
    for head in (None, "self-normalised"):
        out = str(head)
        report = trained(replace(recipe, head=head), out)
        saved, path = load_model(Path(out)), Path(out)
        assert saved.about["settings"]["objective"] == "nce"  # type: ignore[index]
        found = perplexity(path, "valid.txt", notices=Notices(), device="cpu")
        assert found.perplexity < unigram_perplexity()
        assert (found.log_z is None) == (head is None)
        assert ("log_z" in saved.about) == (head is not None)
        if report.log_z is not None:
            assert abs(report.log_z.mean) < 0.5


def test_a_normalised_head_states_no_error(here: Path) -> None:
    trained(replace(QUICK, head="classes"))
    saved = load_model(Path("lm"))
    assert "log_z" not in saved.about
    assert saved.about["settings"]["negatives"] == 0  # type: ignore[index]
    figures = perplexity(Path("lm"), "valid.txt", notices=Notices(), device="cpu").as_json()
    assert not [name for name in figures if name.startswith("log_z")]


PAPER = Recipe("codclm", recipe="paper", embed=6, hidden=6, epochs=1, device="cpu")


def test_the_recipe_of_a_paper_trains_and_is_printed_and_saved(here: Path) -> None:
    said: list[str] = []
    report = trained(replace(PAPER, learning_rate=0.05), announce=said.append)
    assert report.valid_perplexity < unigram_perplexity()
    assert said[1].startswith("recipe paper: epochs 1, ")
    assert "learning rate 0.05, " in said[1]
    assert "optimiser adagrad, " in said[1]
    saved = load_model(Path("lm"))
    settings: Any = saved.about["settings"]
    assert saved.about["recipe"] == "paper"
    assert (settings["optimiser"], settings["learning_rate"]) == ("adagrad", 0.05)
    config = saved.model.config
    assert (config.layers, config.recurrence, config.tied) == (2, "cifg", False)


def test_the_initial_weights_of_a_recipe_are_those_of_the_model(here: Path) -> None:
    folders = {}
    for init in ("own", "glorot"):
        trained(replace(PAPER, initialisation=init, learning_rate=1e-9), init)
        folders[init] = load_model(Path(init)).model.embedding.weight.detach().abs().max()
    assert folders["own"] < 0.1001 < 0.9 < folders["glorot"] <= 1.0  # √(6 / 6)


def test_words_that_are_too_rare_are_not_in_the_vocabulary(here: Path) -> None:
    words = Counter(Path("train.txt").read_text(encoding="utf-8").split())
    least = sorted(words.values())[len(words) // 2]
    trained(replace(QUICK, min_count=least))
    kept = {word.decode() for word in load_model(Path("lm")).vocabulary.words}
    assert kept == {word for word, count in words.items() if count >= least}
    with pytest.raises(UsageError, match="--vocab-min-count 1000: no word is so frequent"):
        trained(replace(QUICK, min_count=1000), "other")


def curve(name: str) -> list[list[str]]:
    """Lines of a learning curve without what the clock says."""
    lines = Path(name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[:2] + line.split("\t")[3:] for line in lines]


def test_a_learning_curve_has_every_validation_of_an_interrupted_run_once(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Report] = []
    trained(out="whole", curve="whole.tsv", report=reports.append)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 5)
        with pytest.raises(StoppedEarly):
            trained(curve="curve.tsv")
    assert 1 < len(curve("curve.tsv")) < 1 + len(reports)
    trained(curve="curve.tsv", resume=True)
    assert curve("curve.tsv") == curve("whole.tsv")
    assert [line[0] for line in curve("whole.tsv")[1:]] == [str(r.update) for r in reports]


def test_a_learning_curve_does_not_replace_the_text(here: Path) -> None:
    with pytest.raises(UsageError, match=r"output train\.txt is also the input"):
        trained(curve="train.txt")


def test_negatives_are_refused_where_none_are_sampled(here: Path) -> None:
    with pytest.raises(UsageError, match=r"--negatives 7: .*trained on all words; leave"):
        trained(replace(QUICK, head="classes", negatives=7))
    assert not Path("lm").exists()
    trained(replace(QUICK, head="classes", negatives=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention": 7}, "--model codclm: 'codclm' has no attention, found a size 7"),
        ({"fusion": "initial"}, "--model codclm: the fusion 'initial' needs a context that"),
        ({"model": "rnnlm", "fusion": "merge"}, "--model rnnlm: 'rnnlm' has no context"),
        ({"objective": "nce", "negatives": 0}, "--objective nce: expected noise words, found"),
        ({"objective": "nce", "head": "hashed"}, "--objective nce: the head of this model is"),
        ({"head": "classes", "negatives": 7}, "--negatives 7: the head of this model is trained"),
    ],
    ids=str,
)
def test_options_for_which_a_model_has_no_use_are_refused_before_the_text_is_read(
    here: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        trained(replace(QUICK, **change), train="missing.txt")
    assert not Path("lm").exists()


def test_a_fusion_and_a_size_of_attention_are_part_of_the_model(here: Path) -> None:
    said: list[str] = []
    recipe = replace(QUICK, model="adclm", attention=5, fusion="merge", recurrence="gru")
    trained(replace(recipe, head="classes"), announce=said.append)
    assert said[0].startswith("adclm (merge, classes): ")
    model = load_model(Path("lm")).model
    assert (model.config.attention, model.config.fusion, model.order) == (5, "merge", 1)
    assert model.context.get_parameter("query.weight").shape == (5, QUICK.hidden)


# Texts as Ji et al. have them


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (128, 256, 1)),
        ({"size": "medium"}, (256, 512, 1)),
        ({"size": "medium", "hidden": 10}, (256, 10, 1)),
        ({"size": "large", "embed": 7, "layers": 1}, (7, 1024, 1)),
    ],
    ids=str,
)
def test_sizes_given_win_over_those_of_the_preset(
    given: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    shape = Config(**completed(Recipe("rnnlm", **given)).values(Config))
    assert (shape.embed, shape.hidden, shape.layers) == expected


def test_a_preset_of_sizes_is_trained(here: Path) -> None:
    trained(replace(QUICK, size="medium", hidden=None))
    config = load_model(Path("lm")).model.config
    assert (config.embed, config.hidden, config.layers) == (12, 512, 1)


def test_the_averaged_weights_are_saved_with_their_perplexity(here: Path) -> None:
    report = trained(replace(QUICK, averaging=0.5))
    assert report.best
    found = perplexity(Path("lm"), "valid.txt", notices=Notices(), device="cpu")
    assert found.perplexity == pytest.approx(report.valid_perplexity, rel=1e-6)
    assert trained(out="plain").valid_perplexity != report.valid_perplexity


def test_context_noise_is_refused_for_models_without_context(here: Path) -> None:
    with pytest.raises(
        UsageError, match=r"--context-noise 0\.3: rnnlm reads no target context; leave"
    ):
        trained(replace(QUICK, model="rnnlm", context_noise=0.3))
    trained(replace(QUICK, model="rnnlm", context_noise=0.0))


def test_an_unknown_head_is_refused(here: Path) -> None:
    with pytest.raises(UsageError, match="no head 'sparse' is known; there are softmax, classes"):
        trained(replace(QUICK, head="sparse"))
    assert not Path("lm").exists()


# Interrupted runs


def interrupt_after(patch: pytest.MonkeyPatch, n_updates: int) -> None:
    """Sends SIGTERM to this process while the next update is handed on."""

    def handed_on(items: Iterable[T], **_: object) -> Iterator[T]:
        for n, item in enumerate(items, 1):
            if n == n_updates:
                os.kill(os.getpid(), signal.SIGTERM)
            yield item

    patch.setattr(training, "progress", handed_on)


@pytest.mark.parametrize("name", ["codclm", "hrnnlm"])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    recipe = replace(QUICK, model=name)
    uninterrupted = trained(recipe, "whole")
    for n_updates in (1, 4):  # before the first validation, and after it
        with monkeypatch.context() as patch:
            interrupt_after(patch, n_updates)
            with pytest.raises(StoppedEarly, match=r"lm: .*--resume"):
                trained(recipe, resume=True)
    report = trained(recipe, resume=True)
    assert model_files("lm") == model_files("whole")
    assert (report.update, report.valid_perplexity) == (
        uninterrupted.update,
        uninterrupted.valid_perplexity,
    )


def test_sigterm_ends_the_command_with_75_and_resume_finishes_its_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--embed 12 --hidden 16 --epochs 1 --learning-rate 5e-2 --streams 4 --device cpu"
    command = f"train-lm --model codclm --train train.txt --valid valid.txt --out lm {options}"
    with monkeypatch.context() as patch:
        interrupt_after(patch, 4)
        assert run([*command.split(), "--precision", "float32"]) == 75
    told = capsys.readouterr().err
    assert told.splitlines()[-1].startswith("rerank: lm: stopped, state saved; ")
    assert "model written" not in told
    trained(resume=True)
    trained(out="whole")
    assert model_files("lm") == model_files("whole")


def test_resume_without_an_interrupted_run_begins_one(here: Path) -> None:
    trained(resume=True)
    trained(out="whole")
    assert model_files("lm") == model_files("whole")


def test_a_finished_run_that_is_resumed_stays_as_it_is(here: Path) -> None:
    trained()
    before, said = model_files("lm"), list[str]()
    files = ("train.txt", "valid.txt", Path("lm"))
    assert train_lm(QUICK, *files, notices=Notices(), resume=True, announce=said.append) is None
    assert said[-1] == "lm: this run is finished; nothing is left to do"
    assert model_files("lm") == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"hidden": 8}, "hidden was 16, is 8"),
        ({"epochs": 9}, "epochs was 1, is 9"),
        ({"head": None}, "head was self-normalised, is None"),
    ],
    ids=str,
)
def test_another_run_is_not_resumed(
    here: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], told: str
) -> None:
    recipe = replace(QUICK, head="self-normalised")
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1)
        with pytest.raises(StoppedEarly):
            trained(recipe)
    with pytest.raises(InputError, match=f"the interrupted run was another one: {told}"):
        trained(replace(recipe, **change), resume=True)


# Refusals


def test_a_folder_that_holds_something_is_not_written_to(here: Path) -> None:
    Path("lm").mkdir()
    Path("lm/notes").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="lm: not empty; name a new folder, or --resume"):
        trained()
    assert model_files("lm") == {"notes": b"mine"}


def test_a_file_is_no_folder_for_a_model(here: Path) -> None:
    for out in ("train.txt", "train.txt/lm"):
        with pytest.raises(UsageError, match=rf"{out}: train\.txt is not a folder; name another"):
            trained(out=out)


@pytest.mark.parametrize("role", ["train", "valid"])
@pytest.mark.parametrize("content", ["", "\n\n  \n"], ids=["empty", "blank"])
def test_a_text_without_words_is_refused(here: Path, role: str, content: str) -> None:
    texts: dict[str, Any] = {role: "none.txt"}
    Path("none.txt").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"none\.txt:1: .*found no words") as fault:
        trained(**texts)
    assert fault.value.exit_code == 3
    assert not Path("lm").exists()


def test_both_texts_cannot_be_standard_input(here: Path) -> None:
    with pytest.raises(UsageError, match="only one input can be -"):
        trained(train="-", valid="-")


def test_a_text_of_one_document_is_told(here: Path) -> None:
    """Without blank lines, which part documents, all the text is one: most often an oversight."""
    text = Path("train.txt").read_text(encoding="utf-8").replace("\n\n", "\n")
    Path("train.txt").write_text(text, encoding="utf-8")
    notices = Notices()
    trained(notices=notices)
    assert notices.lines() == [
        "1 x training text is one document; part documents with blank lines, first at train.txt"
    ]
    with pytest.raises(InputError, match=r"train\.txt: training text is one document.*--strict"):
        trained(out="other", notices=Notices(strict=True))
    assert not Path("other").exists()


@pytest.mark.parametrize("rate", [1e3, 1e30])
def test_a_run_that_diverges_is_told(here: Path, rate: float) -> None:
    with pytest.raises(RerankError, match=r"lm: training diverged: .*lower --learning-rate"):
        trained(replace(QUICK, learning_rate=rate))


def test_a_model_that_no_memory_holds_is_refused_before_the_text_is_read(here: Path) -> None:
    """An LSTM of H cells with E inputs has 4 H (E + H) weights or more, each of 16 bytes here."""
    huge = replace(SMALL, model="rnnlm", hidden=1 << 16, layers=64)
    least = 16 * 64 * 4 * (1 << 16) ** 2 / 1e9
    with pytest.raises(UsageError, match=r"training needs more than .* GB, cpu has") as fault:
        train_lm(huge, "no text", "no text", Path("lm"), notices=Notices())
    (needed,) = re.findall(r"more than ([0-9,]+) GB", str(fault.value))
    assert least < float(needed.replace(",", "")) < 3 * least
    assert not Path("lm").exists()


# Perplexity


def test_perplexity_counts_words_unknown_words_and_sentences(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    Path("text").write_text("the lamp glows\n\nit is\nno <unk> one\n", encoding="utf-8")
    found = perplexity(model_folders["hrnnlm"], "text", notices=Notices(), device="cpu")
    assert (found.sentences, found.tokens, found.oov) == (3, 8, 2)
    assert found.perplexity == pytest.approx(math.exp(found.nats / 11))
    assert found.perplexity_without_eos == pytest.approx(math.exp(found.word_nats / 8))


def test_perplexity_depends_on_the_bounds_of_documents_where_the_model_does(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    text = Path("valid.txt").read_text(encoding="utf-8")
    Path("one.txt").write_text(text.replace("\n\n", "\n"), encoding="utf-8")
    for name, folder in model_folders.items():
        one, two = (
            perplexity(folder, file, notices=Notices(), device="cpu").nats
            for file in ("valid.txt", "one.txt")
        )
        assert (one == pytest.approx(two, rel=1e-6)) == (ZOO[name].order == 0)


def test_perplexity_of_a_broken_model_is_told(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    saved = load_model(model_folders["rnnlm"])
    with torch.no_grad():
        saved.model.head.get_parameter("bias").fill_(torch.nan)
    save_model(Path("broken"), saved.model, saved.vocabulary, {})
    with pytest.raises(RerankError, match="broken: a language model returned NaN"):
        perplexity(Path("broken"), "valid.txt", notices=Notices(), device="cpu")


def test_perplexity_of_no_text_or_no_model_is_told(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    Path("none.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"none\.txt:1: .*found no words"):
        perplexity(model_folders["rnnlm"], "none.txt", notices=Notices())
    with pytest.raises(InputError, match="nowhere: expected a folder made by"):
        perplexity(Path("nowhere"), "valid.txt", notices=Notices())


def test_a_model_of_another_package_is_trained_and_read(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry point names a composition; without the package its folder is not read."""
    point = EntryPoint("own", f"{language_models.__name__}:OWN", "rerank.models")
    own = Composition("lm.contexts.bag:BagOfWords", "lm.fusions:Output", "", "", order=1)
    monkeypatch.setattr(language_models, "OWN", own, raising=False)
    with monkeypatch.context() as installed:
        installed.setattr("importlib.metadata.entry_points", lambda group: [point])
        assert trained(replace(QUICK, model="own")).valid_perplexity < 100
        assert perplexity(Path("lm"), "valid.txt", notices=Notices()).perplexity < 100
    with pytest.raises(InputError, match="no model 'own'"):
        perplexity(Path("lm"), "valid.txt", notices=Notices())
