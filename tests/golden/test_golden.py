"""Outputs of every command in every format, on one small world, compared whole.

Where the values come from: `test_origins.py`. After a wanted change,
`GOLDEN=write pytest tests/golden` writes the outputs again; a new command or format needs a line in
`support.golden.CASES`.
"""

import json
import os
import re
from pathlib import Path

import pytest
from support.golden import CASES, ON_STANDARD_ERROR, WITHOUT, Case, fill
from support.world import World, help_of, subcommands

OUTPUTS = Path(__file__).parent / "outputs"
EVERY = [(case, form) for case in CASES for form in case.forms.split() or [""]]
every_case = pytest.mark.parametrize(
    ("case", "form"), EVERY, ids=[case.name(form) for case, form in EVERY]
)
CHANGING = {  # versions, times, speeds, digests of what may differ, and where classes are
    r"(version:|\|v:|\"(?:version|rerank)\": \"|sacremoses)[0-9]+(\.[0-9]+)+": r"\1VERSION",
    r"(?<![.\w])[0-9a-f]{16,}\b|(?<=sha256:)[0-9a-f]{8}\b": "DIGEST",
    r"\brerank\.[a-z_.]+:[A-Z]\w+": "ADDRESS",
    r" +[0-9.,]+ words/s": " SPEED words/s",
    r"\b[0-9.]+ (s|min)\b": r"TIME \1",
}
DECIMAL = re.compile(r"\d+\.\d+")
NUMBER = re.compile(r"-?\d+\.\d{4,}(?:e[+-]\d+)?|-?\d(?:\.\d+)?e[+-]\d+")


def output(world: World, case: Case, form: str) -> str:
    """What the command prints and writes, without versions and times."""
    for command in case.before:
        world.ok(f"{command} -q")
    told = case.name(form) in ON_STANDARD_ERROR
    run = world.ok(case.command, *(["--format", form] if form else []), COLUMNS="80")
    parts = [run.err if told else run.out]
    parts += [f"--- {name}\n{world.text(name)}" for name in case.files]
    text = "".join(parts)
    for pattern, stands in CHANGING.items():
        text = re.sub(pattern, stands, text)
    return text


@every_case
def test_a_command_prints_and_writes_what_is_stored(
    case: Case, form: str, world: World, golden_models: Path
) -> None:
    """Numbers with four decimals or more may differ in their seventh digit: they are float32.

    Those of a training may differ by a hundredth.
    """
    fill(world, golden_models)
    result, path = output(world, case, form), OUTPUTS / case.name(form)
    if os.environ.get("GOLDEN") == "write":
        path.write_text(result, encoding="utf-8")
    stored = path.read_text(encoding="utf-8")
    number, rel = (DECIMAL, 0.01) if case.trained else (NUMBER, 1e-6)
    assert number.sub("#", result) == number.sub("#", stored)
    numbers = ([float(x) for x in number.findall(text)] for text in (result, stored))
    assert next(numbers) == pytest.approx(next(numbers), rel=rel, abs=1e-9)


def outputs(words: tuple[str, ...]) -> list[str]:
    """`command` or `command.format` of a command, as its help tells."""
    forms = re.search(r"^ +--format \[([a-z|]+)\]", help_of(*words), re.MULTILINE)
    name = "-".join(words)
    return [f"{name}.{form}" for form in forms[1].split("|")] if forms else [name]


def test_what_is_printed_as_a_table_is_printed_as_json_too() -> None:
    for case, form in EVERY:
        printed = (OUTPUTS / case.name(form)).read_text().partition("--- ")[0]
        assert case.forms or not re.search(r"^-{3,}(  -+)+$", printed, re.MULTILINE), case.words
        assert not case.forms or "json" in case.forms.split()
        if form == "json":
            json.loads(printed)


def test_every_command_has_an_output_in_every_format() -> None:
    stored = {path.name for path in OUTPUTS.iterdir()}
    assert {case.name(form) for case, form in EVERY} == stored
    assert {name for words in subcommands() for name in outputs(words)} == stored | WITHOUT
