"""Values of options: every one of every command is bounded, not empty, and no path is too long."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest

from rerank.cli import cli, run
from rerank.cli.values import (
    FILE,
    FOLDER,
    LENGTH_RATIO,
    METRIC_WEIGHT,
    SHARE,
    WEIGHT,
    FileName,
    Interval,
    MemorySize,
    NameList,
    Pair,
    Real,
    ShardName,
    Text,
    Whole,
    WordOr,
)

NONSENSE = [
    *("inf", "-inf", "+infinity", "nan", "-nan", "1e999", "-1e999", "1e308", "-1e308"),
    *(str(sign * (2**bits - less)) for sign in (1, -1) for bits in (63, 64) for less in (0, 1)),
    *("", " ", "1_0", "0x1", "１", "٣", "1,5", "many", "1.5.2", "--", "9" * 5000),
]


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Words of every command that does something."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name)


def command_of(words: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return command


PARAMETERS = [
    pytest.param(words, number, id=f"{' '.join(words)} {parameter.human_readable_name}")
    for words in commands(cli)
    for number, parameter in enumerate(command_of(words).params)
    if not isinstance(parameter.type, click.types.BoolParamType)
]
every_parameter = pytest.mark.parametrize(("words", "number"), PARAMETERS)


def sound(parameter: click.Parameter) -> str:
    """A value that the parameter accepts."""
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    return "a=0:1" if isinstance(parameter.type, Pair) else "some"


def parsed(command: click.Command, parameter: click.Parameter, value: str) -> Any:
    """The value as click reads it, in a command line with all that is required."""
    needed = {one: sound(one) for one in command.params if one.required} | {parameter: value}
    options = [f"{one.opts[-1]}={text}" for one, text in needed.items() if one.opts[0][0] == "-"]
    given = [text for one, text in needed.items() if one.opts[0][0] != "-"]
    context = command.make_context(command.name, [*options, "--", *given])
    found = context.params[str(parameter.name)]
    return found[-1] if parameter.multiple or parameter.nargs == -1 else found


def numbers(kind: click.ParamType[Any]) -> tuple[Real | Whole, tuple[str, ...]] | None:
    """The type of a parameter's number, and how the number is written; None without one."""
    if isinstance(kind, Real | Whole):
        return kind, ("{}",)
    if isinstance(kind, WordOr):
        return kind.number, ("{}",)
    if isinstance(kind, Interval):
        return WEIGHT, ("{}:", ":{}", "0:{}", "{}:0")
    if isinstance(kind, Pair) and (inner := numbers(kind.value)):
        return inner[0], tuple(f"a={form}" for form in inner[1])
    return None


@every_parameter
def test_every_value_is_of_a_type_that_knows_what_is_sound(
    words: tuple[str, ...], number: int
) -> None:
    kind = command_of(words).params[number].type
    assert isinstance(
        kind,
        Real | Whole | WordOr | Text | NameList | Pair | ShardName | MemorySize | click.Choice,
    )
    if isinstance(kind, Real | Whole):
        assert kind.min is not None
        assert kind.max is not None
        assert -math.inf < kind.min < kind.max < math.inf


@every_parameter
def test_a_number_that_makes_no_sense_is_a_usage_error_before_any_work(
    words: tuple[str, ...], number: int
) -> None:
    """Or it is one that the help says is sound, as the seed 2^63 − 1."""
    command = command_of(words)
    parameter = command.params[number]
    found = numbers(parameter.type)
    if found is None:
        return
    kind, forms = found
    accepted = []
    for text in NONSENSE:
        for form in forms:
            if not text and "0" in form:  # one end may be left out
                continue
            with suppress(click.UsageError):  # of exit code 2
                accepted.append((text, parsed(command, parameter, form.format(text))))
    for text, value in accepted:
        assert isinstance(parameter.type, Real | Whole), (text, value)
        assert kind.min <= value <= kind.max
        assert value == type(value)(text)
        context = click.Context(command)
        shown = parameter.get_help_record(context)
        assert shown is not None
        assert kind._describe_range() in shown[1]


@every_parameter
def test_an_empty_value_is_a_usage_error(words: tuple[str, ...], number: int) -> None:
    """As of a shell variable that is not set."""
    command = command_of(words)
    with pytest.raises(click.UsageError) as fault:
        parsed(command, command.params[number], "")
    assert fault.value.exit_code == 2


@every_parameter
@pytest.mark.parametrize("path", ["a" * 300, "/".join(["a" * 100] * 60)], ids=["name", "whole"])
def test_a_path_that_is_too_long_is_a_usage_error(
    words: tuple[str, ...], number: int, path: str
) -> None:
    command = command_of(words)
    parameter = command.params[number]
    kind = parameter.type.value if isinstance(parameter.type, Pair) else parameter.type
    if isinstance(kind, FileName):
        text = f"a={path}" if isinstance(parameter.type, Pair) else path
        with pytest.raises(click.UsageError, match="is too long for the file system"):
            parsed(command, parameter, text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("decode --kbest k --weights w --default-weight inf", "expected a finite decimal number"),
        ("decode --kbest k --weights w --top 9223372036854775807", "not in the range 1<=x<2^31"),
        ("evaluate --ref r --baseline b h --seed 9223372036854775808", "0<=x<2^63"),
        ("decode --kbest k --weights w --cache=", "is a variable of the shell not set?"),
        (
            "tune-mert --kbest k --ref r --out o.json --features=",
            "expected a value, found an empty",
        ),
        ("tune-mert --kbest k --ref r --out o.json --features a,", "expected names with commas"),
        ("tune-mert --kbest k --ref r --out o.json --memory 3", "expected a size such as 3G"),
        ("tune-mert --kbest k --ref r --out o.json --memory -3G", "expected a size such as 3G"),
        ("tune-mert --kbest k --ref r --out o.json --memory 255M", "expected at least 256M"),
    ],
)
def test_the_command_ends_with_2_and_a_reason(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Whole(), "+007", 7),
        (Whole(0, 2**63 - 1), str(2**63 - 1), 2**63 - 1),
        (SHARE, ".5", 0.5),
        (WEIGHT, "-1E-3", -0.001),
        (NameList(), "a,b", ("a", "b")),
        (Pair("f", FILE), "a=b=c", ("a", "b=c")),
        (Pair("f", FILE, label="l"), "./b=c", ("l", "./b=c")),
        (Pair("f", FOLDER), "a=b", ("a", Path("b"))),
        (Pair("f", METRIC_WEIGHT, default=1.0), "a", ("a", 1.0)),
        (Pair("f", Interval(), last=True), "a=b=:.5", ("a=b", (-math.inf, 0.5))),
        (MemorySize(), "3G", 3 << 30),
        (MemorySize(), "1.5g", 3 << 29),
        (MemorySize(), "500M", 500 << 20),
        (ShardName(), "1/1", (1, 1)),
        (ShardName(), "2/16", (2, 16)),
        (WordOr(("keep",), LENGTH_RATIO), "keep", "keep"),
        (WordOr(("keep",), LENGTH_RATIO), "0.97", 0.97),
    ],
)
def test_a_sound_value_arrives(kind: click.ParamType[Any], text: str, value: object) -> None:
    assert kind.convert(text, None, None) == value


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert FOLDER.convert(str(tmp_path), None, None) == tmp_path
    with pytest.raises(click.BadParameter, match="expected a folder, found the file"):
        FOLDER.convert(str(file), None, None)
