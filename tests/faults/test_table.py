"""Every fault of the table: one line with place and cure, no output, and the cure cures."""

import gzip
import re
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.faults import PASTED, RESTORED, Changes, Fault, Model, around
from support.forms import DOCS, KBEST, REF, SOURCE, as_jsonl, fairseq, kbest, sockeye
from support.world import CHECK, ROOT, SOUND, Outcome, World, need_packages

TABLES = sorted(path.stem for path in (Path(__file__).parent / "rows").glob("*.py"))
FAULTS: list[Fault] = [
    row for name in TABLES for row in import_module(f"faults.rows.{name}").FAULTS
]


def change(world: World, changes: Changes, before: dict[str, bytes]) -> None:
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
            world.write(name, before[name] if new == RESTORED else new)


def lay_out(world: World, fault: Fault) -> dict[str, bytes]:
    """Files before the changes, after which those of the fault are there."""
    if fault.setup:
        fault.setup(world)
    before = world.files()
    change(world, fault.changes, before)
    return before


def run(world: World, fault: Fault, *options: str, command: str = "") -> Outcome:
    words = command or fault.command
    need_packages(words)
    return world.run(words, *options, stdin=fault.stdin, **fault.environment)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_has_place_and_cure_and_changes_no_file(fault: Fault, world: World) -> None:
    lay_out(world, fault)
    before = world.files()
    result = run(world, fault)
    checking = fault.command.startswith("check ")
    said = result.out if checking else result.err
    assert result.exit == fault.exit, said
    files = world.files()
    assert {name: files.get(name) for name in before} == before
    assert result.exit == 0 or files == before
    for pattern in fault.messages:
        there = re.search(pattern.removeprefix("!"), said, re.MULTILINE)
        assert bool(there) != pattern.startswith("!"), f"{pattern!r} in: {said}"
    assert "Traceback" not in result.err
    assert result.err.count("\n") < 10
    assert not re.search(f"{re.escape(str(ROOT))}|site-packages|{world.folder}", result.err)


def parts(fault: Fault) -> tuple[Changes, str]:
    """Files that the cure changes, and the command that it names."""
    given = fault.cure if isinstance(fault.cure, tuple) else (fault.cure,)
    files = {name: new for part in given if isinstance(part, Mapping) for name, new in part.items()}
    return files, next((part for part in given if isinstance(part, str)), fault.command)


def cured(fault: Fault) -> str:
    """What the cured run is of: equal ones, often that of the sound files, are run once."""
    files, command = parts(fault)
    left = {name: new for name, new in fault.changes.items() if files.get(name) != RESTORED}
    own = {name: new for name, new in files.items() if new != RESTORED}
    return repr((command.split(), left, own, fault.stdin, fault.environment, fault.setup))


CURED = {cured(row): row for row in FAULTS if row.cure}.values()


def pasted(world: World, fault: Fault) -> str:
    """The command of a fault, on the file that the command in its message writes."""
    result = run(world, fault)
    (shell,) = re.findall("`([^`]+ > [^`]+)`", result.err)
    subprocess.run(["bash", "-c", shell], cwd=world.folder, check=True)
    made = shell.split()[-1]
    return re.sub(rf"(?<![\w.]){re.escape(made.rpartition('.')[0])}(?!\S)", made, fault.command)


@pytest.mark.parametrize("fault", CURED, ids=lambda row: row.name)
def test_the_cure_that_the_message_names_cures(fault: Fault, world: World) -> None:
    before, (files, command) = lay_out(world, fault), parts(fault)
    change(world, files, before)
    command = pasted(world, fault) if command == PASTED else command
    result = run(world, fault, command=command)
    assert result.exit == 0, result.err + result.out
    if command.startswith(("train-", "perplexity")) and command != fault.command:
        assert not any(re.search(message, result.err) for message in fault.messages)


@pytest.mark.parametrize("fault", [row for row in FAULTS if row.warns], ids=lambda row: row.name)
def test_strict_makes_an_error_of_every_warning(fault: Fault, world: World) -> None:
    lay_out(world, fault)
    result = run(world, fault, "--strict")
    assert result.exit == (0 if fault.asked else 3)
    if not fault.asked and not fault.command.startswith("check "):
        assert "(an error under --strict; --allow " in result.err
        assert result.stdout == b""


@pytest.mark.parametrize("fault", [row for row in FAULTS if row.also], ids=lambda row: row.name)
def test_other_commands_refuse_what_check_refuses_alike(fault: Fault, world: World) -> None:
    lay_out(world, fault)
    before = world.files()
    for command, code in fault.also.items():
        result = run(world, fault, command=command)
        assert result.exit == code, f"{command}: {result.err}"
        if code:
            assert world.files() == before
            assert any(re.search(one.removeprefix("^"), result.err) for one in fault.messages)


# Faults of lists that `check --fix` mends, or that leave nothing to mend
MENDED = {1, 2, 6, 7, 10, 21, 22, 23, 24, 26, 29, 30, 31, 32, 33}


@pytest.mark.parametrize(
    "fault", [row for row in FAULTS if "-check-" in row.name], ids=lambda row: row.name
)
def test_a_clean_copy_passes_or_is_not_written(fault: Fault, world: World) -> None:
    lay_out(world, fault)
    before = world.files()
    (world.folder / "clean").mkdir()
    result = run(world, fault, "--fix", "clean", "-q")
    written = sorted(path.name for path in (world.folder / "clean").iterdir())
    row = int(fault.name[:2])
    if row in MENDED and [*fault.changes] == ["dev.kbest"] and "formats tried" not in result.out:
        assert result.exit == 0, result.out
    if result.exit:
        assert (result.exit, written) == (3, [])
        assert "no clean copy is written, since these faults remain:\n" in result.out
        assert world.files() == before
        return
    assert written == ["dev.docs", "dev.kbest", "dev.ref", "dev.src"]
    for name in written:
        world.write(name, world.content(f"clean/{name}"))
    again = run(world, fault)
    assert again.exit == 0
    assert "fault" not in again.out.replace("no faults", "")
    assert "--fix" not in again.out


PIECES = [b"\n", b"\r", b"|||", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan", b"{", b'"', b"=", b"_"]
PIECES += [b" ", b"\t", b"9" * 12, b"", b"&apos;", b"<s>", b"\xe2\x80\xa8", b"H-9", b"null", b","]
FORMS: list[Changes] = [{}, kbest(gzip.compress), kbest(as_jsonl)]
FORMS += [sockeye(around()), fairseq(around())]


@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_of_any_kind_is_reported_and_mended_or_left(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Bytes at random places: exit code 0 or 3, no other error, and copies without faults."""
    world = World(tmp_path_factory.mktemp("damaged"))
    for name, content in SOUND.items():
        world.write(name, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world.folder)
        change(world, data.draw(st.sampled_from(FORMS)), {})
        for name in data.draw(st.sets(st.sampled_from([KBEST, DOCS, REF, SOURCE]), min_size=1)):
            old = world.content(name)
            start, size = data.draw(st.integers(0, len(old))), data.draw(st.integers(0, 9))
            piece = data.draw(st.sampled_from(PIECES))
            world.write(name, old[:start] + piece + old[start + size :])
        (world.folder / "clean").mkdir()
        command = CHECK if data.draw(st.booleans()) else f"{CHECK} --weights w.ini"
        code = world.run(command, "--fix", "clean", "-q", RERANK_TRACEBACK="1").exit
        assert code in (0, 3)
        copies = sorted((world.folder / "clean").iterdir())
        assert len(copies) == (0 if code else 4)
        for path in copies:
            world.write(path.name, path.read_bytes())
        assert code or world.run(CHECK).exit == 0


def test_names_are_unique_and_begin_with_a_row_of_the_catalogue() -> None:
    names = [fault.name for fault in FAULTS]
    assert len({*names}) == len(names)
    assert all(re.match(r"(\d\d-|--)[\w.-]+$", name) for name in names)
