"""Every fault of the table: one line with place and cure, no output, and the cure cures."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from support.faults import Changes, Fault, Model
from support.world import ROOT, Outcome, World

TABLES = sorted(path.stem for path in (Path(__file__).parent / "rows").glob("*.py"))
FAULTS: list[Fault] = [
    row for name in TABLES for row in import_module(f"faults.rows.{name}").FAULTS
]
every_fault = pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])


def change(world: World, changes: Changes) -> None:
    """Change files, from what they hold now; a file that is not there is empty."""
    for name, new in changes.items():
        path = world.folder / name
        if new is None:
            path.unlink()
        elif isinstance(new, Model):
            world.model(new.name, name, **new.shape)
        elif callable(new):
            world.write(name, new(path.read_bytes() if path.exists() else b""))
        else:
            world.write(name, new)


def run(world: World, fault: Fault, *options: str) -> Outcome:
    return world.run(fault.command, *options, stdin=fault.stdin, **fault.environment)


@every_fault
def test_a_fault_is_reported_with_place_and_cure_and_changes_no_file(
    fault: Fault, world: World
) -> None:
    change(world, fault.changes)
    before = world.files()
    found = run(world, fault)
    said = found.out if fault.command.startswith("check ") else found.err
    after = {name: world.files().get(name) for name in before} if found.exit == 0 else world.files()
    assert (found.exit, after) == (fault.exit, before), found.err
    for pattern in [fault.message] if isinstance(fault.message, str) else fault.message:
        there = re.search(pattern.removeprefix("!"), said, re.MULTILINE)
        assert bool(there) != pattern.startswith("!"), f"{pattern!r} in: {said}"
    assert "Traceback" not in found.err
    assert found.err.count("\n") < 10
    assert not re.search(f"{re.escape(str(ROOT))}|site-packages|{world.folder}", found.err)


@pytest.mark.parametrize("fault", [row for row in FAULTS if row.cure], ids=lambda row: row.name)
def test_the_cure_that_the_message_names_cures(fault: Fault, world: World) -> None:
    assert fault.cure is not None
    change(world, fault.changes)
    parts = fault.cure if isinstance(fault.cure, tuple) else (fault.cure,)
    command = fault.command
    for part in parts:
        if isinstance(part, str):
            command = part
        else:
            change(world, part)
    world.ok(command, stdin=fault.stdin, **fault.environment)


@pytest.mark.parametrize(
    "fault",
    [row for row in FAULTS if row.exit == 0 and not row.message[0].startswith("!")],
    ids=lambda row: row.name,
)
def test_strict_makes_an_error_of_every_warning(fault: Fault, world: World) -> None:
    change(world, fault.changes)
    found = run(world, fault, "--strict")
    assert found.exit == 3
    assert "--strict" in found.err + found.out
    assert fault.command.startswith("check ") or found.stdout == b""


def test_names_are_unique_and_begin_with_a_row_of_the_catalogue() -> None:
    names = [fault.name for fault in FAULTS]
    assert len({*names}) == len(names)
    assert all(re.match(r"(\d\d|--)-[a-z0-9-]+$", name) for name in names)
