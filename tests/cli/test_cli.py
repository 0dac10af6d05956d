"""The command line: help, options, exit codes, and which stream a message goes to."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from support.cli import examples, finish, start

import rerank
from rerank import pipeline
from rerank.cli import cli, run
from rerank.cli.values import EncodingName, FolderName
from rerank.errors import InputError, RerankError, StoppedEarly, UsageError
from rerank.pipeline import TextFiles
from rerank.registry import ALL_SYSTEMS, SCORE_FILES

ROOT = Path(__file__).parents[2]
GROUPS = {"cache", "list", "lm-eval", "relations", "topics"}
COMMANDS = sorted(set(cli.commands) - {"demo"} - GROUPS)
LISTED = "decode --kbest dev.kbest --docs dev.docs --weights w.json"
LINES = (
    "0 ||| the lamp is lit ||| LM0= -9.5 ||| -9.5",
    "0 ||| a lamp burns ||| LM0= -8.25 ||| -8.25",
    "1 ||| it gives light ||| LM0= -7 ||| -7",
)
every_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a list, its documents, weights and references."""
    monkeypatch.chdir(tmp_path)
    files = {
        "dev.kbest": "".join(f"{line}\n" for line in LINES),
        "dev.docs": "x\ny\n",
        "w.json": '{"schema": 1, "weights": {"LM0": [1.0]}}\n',
        "dev.ref": "the lamp is lit now\nit gives light to us\n",
        "base.txt": "the lamp is lit\nit gives light\n",
        "hyp.txt": "the lamp is lit now\nit gives light\n",
    }
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")
    return tmp_path


def called(
    patch: pytest.MonkeyPatch, name: str, arguments: Sequence[str]
) -> tuple[int, dict[str, Any]]:
    """Exit code, and what the command's function is called with, by name, options unpacked."""
    seen: dict[str, Any] = {}

    def record(*given: object, **named: object) -> SimpleNamespace:
        pairs = [*unpacked({str(i): value for i, value in enumerate(given)} | named)]
        seen.update(pairs, all=[value for _, value in pairs])  # two may have one name
        figures = {
            "log_z": None,
            "explanation": None,
            "documents": None,
            "tags": None,
            "causal": True,
            "exit_code": 0,
            **dict.fromkeys(FIGURES, 1.0),
        }
        return SimpleNamespace(to_text=lambda *_, **__: "", to_dict=dict, as_json=dict, **figures)

    patch.setattr(pipeline, name.replace("-", "_"), record)
    return run([name, *arguments]), seen


FORMS: dict[str, tuple[str, object]] = {  # values of a form of their own, and what they become
    "NAME[=WEIGHT]": ("m=2.5", (("m", 2.5),)),
    "NAME[=SHARE]": ("m=0.25", (("m", 0.25),)),
    "NAME=ENTRY[:ARGUMENT]": ("m=e:f=g", (("m", "e:f=g"),)),
    "NAME=HYP:FILE": ("m=a=b:c", (("m", "a=b:c"),)),
    "NAME=FILE": ("m=f=g", {"m": "f=g"}),
    "NAME=LOW:HIGH": ("LM0=-1:2.5", {"LM0": (-1.0, 2.5)}),
    "keep|free|RATIO": ("0.97", 0.97),
    "SIZE": ("3G", 3 << 30),
    "I/N": ("2/3", pipeline.Shard(2, 3)),
}
FIGURES = (
    *("perplexity", "perplexity_without_eos", "nats_per_token", "tokens", "oov", "sentences"),
    *("predicts_end", "normalised"),
)
# options that stand in place of the first of the command
ALTERNATIVES = {"perplexity": "ngram"}
ALTERNATIVES |= dict.fromkeys(("ablate", "decode", "score", "tune-mbr", "tune-mert"), "systems")
PRINTING = {
    "evaluate": ("per_document", "tests", "score_only", "digits"),
    "report": ("figures", "curves"),
}


def unpacked(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values, those of dataclasses too."""
    for name, value in values.items():
        yield name, value
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            yield from unpacked(fields)


def argument_value(argument: click.Parameter, number: int) -> tuple[list[str], object]:
    """A value for an argument, and what it becomes."""
    if argument.metavar == "NAME=FILE...":
        return [f"n{number}=f{number}"], ((f"n{number}", f"f{number}"),)
    return [f"text{number}"], f"text{number}"


def distinct_value(option: click.Option, number: int) -> tuple[list[str], object]:
    """Arguments that set an option to a value of its own, and what should arrive."""
    if option.secondary_opts:  # of --tied/--untied
        return [option.secondary_opts[0]], False
    if option.is_flag:
        return [option.opts[-1]], True
    if isinstance(option.type, click.Choice):
        value = next(c for c in reversed(list(option.type.choices)) if c != option.default)
        return [option.opts[-1], value], value
    if option.metavar == "PERCENT":
        return [option.opts[-1], str(number)], number / 100
    if isinstance(option.type, click.types.FloatParamType):
        return [option.opts[-1], f"0.{number:02}5"], float(f"0.{number:02}5")
    if isinstance(option.type, click.IntRange):
        whole = number + 2 if option.type.max is None else min(number + 2, int(option.type.max))
        return [option.opts[-1], str(whole)], whole
    if option.metavar == "NAME=DIR":
        return [option.opts[-1], f"n{number}=d{number}"], ((f"n{number}", Path(f"d{number}")),)
    if option.metavar == "[NAME=]FILE":
        return [option.opts[-1], f"n{number}=f{number}"], ((f"n{number}", Path(f"f{number}")),)
    if option.metavar in FORMS:
        text, value = FORMS[option.metavar]
        return [option.opts[-1], text], value
    text = f"text{number}.json"
    if isinstance(option.type, EncodingName):
        return [option.opts[-1], "cp1252"], "cp1252"
    if isinstance(option.type, FolderName):
        return [option.opts[-1], text], Path(text)
    return [option.opts[-1], text], (text,) if option.multiple else text


# Help


@every_command
def test_the_help_of_a_command_has_an_example_of_options_that_it_has(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    (words,) = examples(capsys.readouterr().out)
    assert words[:2] == ["rerank", name]
    given = {word for word in words if word.startswith("--")}
    known = {opt for option in cli.commands[name].params for opt in option.opts}
    assert given <= known
    needed = {o.opts[-1] for o in cli.commands[name].params if o.required and o.opts[-1][0] == "-"}
    assert needed <= given


@every_command
def test_every_option_of_a_command_is_explained_or_named_for_what_it_is(name: str) -> None:
    plain = {"--seed", "--dropout", "--precision"}
    for option in cli.commands[name].params:
        if isinstance(option, click.Option):
            assert option.help or option.opts[-1] in plain


def test_the_first_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["-h"]):
        assert run(arguments) == 0
        text = capsys.readouterr().out
        assert all(re.search(rf"^  {name} +\S", text, re.MULTILINE) for name in cli.commands)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rerank, version {rerank.__version__}\n"


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("rerank tune-", ["plain,tune-mbr", "plain,tune-mert", "plain,tune-moses"]),
        ("rerank decode --se", ["plain,--search", "plain,--seed"]),
        ("rerank decode --search s", ["plain,survivors", "plain,smc", "plain,sweeps"]),
        ("rerank train-lm --model cc", ["plain,ccdclm"]),
        ("rerank decode --kbest te", ["file,te"]),
        ("rerank evaluate out", ["file,out"]),
    ],
)
def test_the_shell_completes_commands_options_values_and_files(
    words: str,
    completions: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_RERANK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run([]) == 0
    assert capsys.readouterr().out.splitlines() == completions


# Options


@every_command
def test_every_option_arrives_at_the_pipeline(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but those that say what is printed."""
    printing = {"quiet", "verbose", "form", *PRINTING.get(name, ())}
    arguments: list[str] = []
    expected: dict[str, object] = {}
    for number, parameter in enumerate(cli.commands[name].params):
        option = str(parameter.name)
        if isinstance(parameter, click.Argument):
            given, expected[option] = argument_value(parameter, number)
            arguments += given
        elif option not in printing and option != ALTERNATIVES.get(name):
            assert isinstance(parameter, click.Option)
            given, value = distinct_value(parameter, number)
            arguments += given
            expected[option] = value
    code, seen = called(monkeypatch, name, [*arguments, "--quiet"])
    assert code == 0
    assert seen["notices"].strict is expected.pop("strict")
    values = [
        *seen.values(),
        *seen.get("score_files", {}).values(),
        *seen.get("side", {}).values(),
        *(path for files in seen.values() if isinstance(files, TextFiles) for path in files.all),
        *(v for value in seen.values() if isinstance(value, list | tuple) for v in value),
    ]
    for option, value in expected.items():
        if isinstance(value, bool):
            assert seen[option] is value
        else:
            assert value in values, option


@every_command
def test_defaults_are_those_of_the_pipeline(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook that leaves an option out gets what the shell gets."""
    first = cli.commands[name].params[: name in ALTERNATIVES]
    needed = [*first, *(p for p in cli.commands[name].params if p.required)]
    arguments = [
        argument
        for n, p in enumerate(needed)
        for argument in (
            distinct_value(p, n) if isinstance(p, click.Option) else argument_value(p, n)
        )[0]
    ]
    code, seen = called(monkeypatch, name, [*arguments, "--quiet"])
    assert code == 0
    compared = 0
    for value in seen.values():
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            for f in dataclasses.fields(value):
                if f.default is not dataclasses.MISSING:
                    assert getattr(value, f.name) == f.default, f.name
                    compared += 1
    assert compared or name in ("perplexity", "cloze", "evaluate", "explain", "export", "weights")


REFUSED: dict[str, float] = {
    "embed": 0,
    "hidden": -1,
    "layers": 65,
    "vocab": 0,
    "epochs": 0,
    "minutes": 0,
}
REFUSED |= {"learning-rate": 0, "dropout": 1, "seed": -1, "streams": 0, "negatives": -1}
REFUSED |= {"hash-size": 0, "hash-order": 4, "topics-number": 0, "thought": 0}
REFUSED |= {"locked-dropout": 1, "word-dropout": -0.1, "weight-dropout": 0.96}
REFUSED |= {"context-noise": 1.1, "averaging": -1}


def test_names_on_the_command_line_are_all_that_there_are() -> None:
    """From tables without torch, or written out, because help must not wait for torch."""
    from lm.composition import ENCODERS, FUSIONS, HEADS, RECURRENCES, TOPIC_MODELS
    from lm.corpus import DOCUMENTS
    from lm.training.sizes import SIZES
    from lm.zoo import ZOO

    def names(command: str, option: str) -> set[str]:
        (found,) = (p for p in cli.commands[command].params if option in p.opts)
        assert isinstance(found.type, click.Choice)
        return set(found.type.choices)

    assert names("train-lm", "--model") == set(ZOO)
    assert names("train-lm", "--recurrence") == set(RECURRENCES)
    assert names("train-lm", "--sentence-recurrence") == set(RECURRENCES)
    assert names("train-lm", "--encoder") == set(ENCODERS)
    assert names("train-lm", "--fusion") == set(FUSIONS)
    assert names("train-lm", "--head") == set(HEADS)
    assert names("train-lm", "--topic-model") == set(TOPIC_MODELS)
    assert names("train-lm", "--documents") == names("perplexity", "--documents") == set(DOCUMENTS)
    assert names("train-lm", "--size") == set(SIZES)
    (size,) = (p for p in cli.commands["train-lm"].params if "--size" in p.opts)
    assert isinstance(size, click.Option)
    for name, shape in SIZES.items():
        assert f"{name} {shape.embed}, {shape.hidden}, {shape.layers}" in (size.help or "")


@pytest.mark.parametrize("value", ["codclm", "=models/codclm", "codclm=", "="])
def test_a_model_is_given_as_name_and_folder(
    value: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*LISTED.split(), "--lm", value]) == 2
    message = capsys.readouterr().err
    assert f"expected NAME=DIR, for example codclm=models/codclm; found '{value}'" in message


def test_the_folder_of_a_model_may_have_an_equals_sign(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, seen = called(
        monkeypatch, "decode", [*LISTED.split()[1:], "--lm", "a=b=c", "--lm", "d=e", "-q"]
    )
    assert seen["lms"] == (("a", Path("b=c")), ("d", Path("e")))


@pytest.mark.parametrize("option", sorted(SCORE_FILES))
def test_scores_from_outside_have_a_name_of_their_own_or_that_of_their_kind(
    option: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [f"--{option}={value}" for value in ("a=b=c", "d", "./e=f", "-")]
    _, seen = called(monkeypatch, "decode", [*LISTED.split()[1:], *given, "-q"])
    label = SCORE_FILES[option].label
    named = (("a", "b=c"), (label, "d"), (label, "e=f"), (label, "-"))
    assert seen["score_files"] == {option: tuple((name, Path(path)) for name, path in named)}


@pytest.mark.parametrize("option", sorted(SCORE_FILES))
@pytest.mark.parametrize("value", ["", "qe="])
def test_scores_from_outside_are_in_a_file(
    option: str, value: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*LISTED.split(), f"--{option}", value]) == 2
    assert f"expected [NAME=]FILE, for example {SCORE_FILES[option].label}=FILE" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("option", REFUSED)
def test_sizes_and_rates_that_no_model_has_are_refused(
    option: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "train-lm --model rnnlm --train dev.ref --valid dev.ref --out lm"
    assert run([*command.split(), f"--{option}", str(REFUSED[option])]) == 2
    assert f"Invalid value for '--{option}'" in capsys.readouterr().err
    assert not Path("lm").exists()


@pytest.mark.parametrize("words", ["--top 5 --diverse", "--diverse --top 5"])
def test_a_diverse_top_is_asked_for_in_any_order(
    words: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, seen = called(monkeypatch, "decode", [*LISTED.split()[1:], *words.split(), "-q"])
    assert (code, seen["top"], seen["diverse"]) == (0, 5, True)


def test_outputs_of_systems_stand_in_place_of_a_list(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--systems", "a=x=y", "--systems", "t.xml#B", "--systems", "./c=d.xml"]
    code, seen = called(monkeypatch, "decode", ["--weights", "w.json", *given, "-q"])
    (lists,) = (value for value in seen["all"] if isinstance(value, pipeline.Lists))
    everything = ALL_SYSTEMS
    named = (("a", "x=y"), (everything, "t.xml#B"), (everything, "c=d.xml"))
    systems = tuple((name, Path(path)) for name, path in named)
    assert (code, lists.kbest, lists.systems) == (0, "", systems)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "expected --kbest FILE or --systems NAME=FILE, found neither; give one of them"),
        ("--kbest dev.kbest --systems a=base.txt", "NAME=FILE, found both; give one of them"),
        ("--systems a=base.txt --encoding latin-1", "--encoding: not for the lists of --systems"),
        ("--systems a=base.txt --kbest-format moses", "--kbest-format: not for the lists of --sy"),
    ],
    ids=["neither", "both", "encoding", "format"],
)
def test_a_command_reads_one_kind_of_lists(
    words: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["decode", "--docs", "dev.docs", "--weights", "w.json", *words.split()]) == 2
    assert message in capsys.readouterr().err


# Exit codes


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (RerankError("no room"), 1, "rerank: no room\n"),
        (UsageError("give one"), 2, "rerank: give one\n"),
        (InputError("odd", source="f", line=3), 3, "rerank: f:3: odd\n"),
        (StoppedEarly("saved"), 75, "rerank: saved\n"),
        (KeyboardInterrupt(), 130, "rerank: interrupted; nothing was saved\n"),
        (MemoryError(), 1, "rerank: out of memory; use --top K to keep fewer candidates\n"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8"),
            1,
            "rerank: out of memory; use --top K to keep fewer candidates\n",
        ),
        (
            RuntimeWarning("overflow in multiply"),
            1,
            "rerank: numbers beyond the range of floats (overflow in multiply); the features or "
            "scores differ by too much: rescale them\n",
        ),
    ],
    ids=["run", "usage", "input", "stopped", "interrupted", "memory", "torch", "overflow"],
)
def test_a_fault_is_one_line_and_an_exit_code(
    fault: BaseException,
    code: int,
    message: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(pipeline, "decode", fail)
    assert run([*LISTED.split()]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.lstrip("\n")) == ("", message)


def test_a_warning_of_numpy_never_reaches_the_user(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of our modules, also from their threads, are faults; others stay warnings."""

    def overflow() -> None:
        warnings.warn_explicit("overflow", RuntimeWarning, "f.py", 1, module="rerank.tuning.task")

    def warn(*_: object, **__: object) -> None:
        warnings.warn_explicit("odd", RuntimeWarning, "f.py", 1, module="elsewhere")
        with ThreadPoolExecutor(1) as threads:
            threads.submit(overflow).result()

    monkeypatch.setattr(pipeline, "decode", warn)
    with pytest.warns(RuntimeWarning, match="odd") as printed:
        assert run(LISTED.split()) == 1
    assert len(printed) == 1
    message = capsys.readouterr().err
    assert message.startswith("rerank: numbers beyond the range of floats (overflow)")
    assert message.count("\n") == 1


def test_only_commands_with_lists_are_told_to_read_fewer_candidates(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pipeline, "train_lm", fail)
    words = "train-lm --model rnnlm --train dev.ref --valid dev.ref --out lm"
    assert run(words.split()) == 1
    assert capsys.readouterr().err == "rerank: out of memory\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decide"], "No such command 'decide'"),
        (["decode", "--kbset", "x"], "No such option"),
        (["decode", "--kbest", "x"], "Missing option '--weights'"),
        (["evaluate", "--ref", "r", "--baseline", "b"], "Missing argument 'HYP...'"),
        ([*LISTED.split(), "--search", "best"], "Invalid value for '--search'"),
        ([*LISTED.split(), "--beam", "0"], "Invalid value for '--beam'"),
        ([*LISTED.split(), "--top", "0"], "Invalid value for '--top'"),
        ([*LISTED.split(), "--diverse"], "Invalid value for '--diverse': it needs --top"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_misused_options_end_with_2(
    arguments: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_script_ends_with_the_exit_code_and_a_reader_that_leaves_is_no_fault(
    here: Path,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    left = start(*LISTED.split(), stdout=writing)
    os.close(writing)
    code, message = finish("decode")
    _, words = left.communicate()
    assert (left.returncode, b"Traceback" in words, b"rror" in words) == (0, False, False)
    assert code == 2
    assert "Missing option '--weights'" in message


@pytest.mark.parametrize(("when", "code"), [("flush_messages", 3), ("run", 143)])
def test_a_terminal_that_is_closed_as_a_run_ends_is_no_fault(when: str, code: int) -> None:
    program = (
        "import signal; from rerank import cli\n"
        "cli.run = lambda arguments: 3\n"
        f"cli.{when} = lambda *arguments: signal.raise_signal(signal.SIGHUP)\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, b"")


# Standard output and standard error


def test_results_go_to_standard_output_and_everything_else_to_standard_error(
    here: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    Path("dev.kbest").write_text("".join(f"{line}\r\n" for line in LINES), encoding="utf-8")
    assert run(LISTED.split()) == 0
    captured = capfdbinary.readouterr()
    assert captured.out == b"a lamp burns\nit gives light\n"
    assert b"search: viterbi, exact" in captured.err
    assert b"warning: 3 x CRLF line ends, read as LF, first at dev.kbest:1\n" in captured.err
    assert b"2 documents, 2 sentences, 1 changed; model score -15.250" in captured.err


def test_quiet_leaves_results_and_errors(
    here: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    Path("dev.kbest").write_text("".join(f"{line}\r\n" for line in LINES), encoding="utf-8")
    for flag in ("--quiet", "-q"):
        assert run([*LISTED.split(), flag]) == 0
        captured = capfdbinary.readouterr()
        assert (captured.out, captured.err) == (b"a lamp burns\nit gives light\n", b"")
    assert run([*LISTED.split(), "--strict", "-q"]) == 3
    captured = capfdbinary.readouterr()
    assert captured.out == b""
    assert captured.err.startswith(b"rerank: dev.kbest:1: CRLF line ends")


def test_warnings_are_printed_before_an_error_too(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = "\n".join([f"{LINES[0]}\r", "none"]) + "\n"
    Path("dev.kbest").write_text(content, encoding="utf-8")
    assert run(LISTED.split()) == 3
    message = capsys.readouterr().err
    assert message.index("warning: 1 x CRLF line ends") < message.index("rerank: dev.kbest:2:")


# Figures for machines


def test_the_json_of_evaluate_is_one_object(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt --format json -q"
    assert run(command.split()) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    assert found["schema"] == 1
    assert captured.out.count("\n") == 1


def test_the_scores_of_evaluate_alone_are_those_of_sacrebleu(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt -q -m chrf -b"
    reference, ours = ((here / name).read_text().splitlines() for name in ("dev.ref", "hyp.txt"))
    bleu = BLEU(tokenize="none").corpus_score(ours, [reference]).score
    chrf = CHRF().corpus_score(ours, [reference]).score
    assert run([*command.split(), "-w", "4"]) == 0
    assert capsys.readouterr().out == f"{bleu:.4f}\t{chrf:.4f}\n"


def test_the_documents_of_evaluate_are_a_table_before_that_of_systems(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "evaluate",
        "--docs",
        "dev.docs",
        "--ref",
        "dev.ref",
        "--baseline",
        "base.txt",
        "hyp.txt",
        "-q",
    ]
    assert run(command) == 0
    plain = capsys.readouterr().out
    assert run([*command, "--per-document"]) == 0
    documents, rest = capsys.readouterr().out.split("\n\n", 1)
    assert documents.split()[0] == "document"
    assert rest == plain


def test_the_json_of_perplexity_is_one_object(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["perplexity", "--lm", str(model_folders["rnnlm"]), "base.txt", "--device", "cpu"]
    assert run([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["sentences"], found["tokens"]) == (1, 2, 7)
    assert run(command) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"perplexity {found['perplexity']:.2f} (without </s> ")
    assert run([*command, "--per-document", "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [one["tokens"] for one in whole.pop("documents")] == [7]
    assert whole == found


def test_training_prints_its_progress_and_the_folder_of_the_model(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "train-lm --model rnnlm --train dev.ref --valid hyp.txt --out lm --embed 4 --hidden 4"
    assert run([*command.split(), "--epochs", "1", "--device", "cpu"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("rnnlm: ")
    assert lines[1].startswith("recipe strong: ")
    assert re.match(
        r"epoch  1\.00 .* train \d\.\d+ nats  valid perplexity \d+\.\d\d  best", lines[2]
    )
    assert "model written to lm" in lines


def test_scores_that_are_not_normalised_are_said_to_be_so_with_their_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lm.evaluation import LogNormalisers, Perplexity

    found = Perplexity(2, 8, 0, 20.0, 16.0, LogNormalisers(-0.0261, 0.2894))
    monkeypatch.setattr(pipeline, "perplexity", lambda *given, **named: found)
    assert run(["perplexity", "--lm", "m", str(Path(__file__))]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "scores of this model are not normalised: log Z -0.026 ± 0.289 a word"
    assert run(["perplexity", "--lm", "m", str(Path(__file__)), "--format", "json"]) == 0
    assert '"log_z_mean": -0.0261, "log_z_sd": 0.2894' in capsys.readouterr().out


def test_nats_of_bags_of_words_are_not_shown_as_a_perplexity(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lm.evaluation import Perplexity

    found = Perplexity(2, 8, 1, 20.0, 20.0, predicts_end=False)
    monkeypatch.setattr(pipeline, "perplexity", lambda *given, **named: found)
    assert run(["perplexity", "--lm", "m", str(Path(__file__))]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2.5000 nats per word of a bag of words over 8 words (1 out of vocabulary) in 2 sentences; "
        "word order and </s> are not predicted: not comparable with perplexities of other models"
    ]
    assert run(["perplexity", "--lm", "m", str(Path(__file__)), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        **{"schema": 1, "sentences": 2, "tokens": 8, "oov": 1},
        **{"nats": 20.0, "nats_per_word_of_a_bag": 2.5, "duplicate_last_word": False, "given": []},
        "pseudo_likelihood": False,
    }
