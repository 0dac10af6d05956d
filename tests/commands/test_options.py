"""Values of options, from the help of every command: bounded, not empty, no path too long.

What the help says of an option is all that is used here; a value is refused before any work, with
exit code 2 and a message that names the option.
"""

import json
import os
import pty
import re
import shlex
import tomllib
from functools import cache
from hashlib import sha256

import pytest
from support.forked import start
from support.world import EVALUATE, TUNE, World, help_of, subcommands

import rerank

NONSENSE = [
    *("inf", "-infinity", "nan", "-1e999", "1e308", str(2**63), str(-(2**64))),
    *("1_0", "0x1", "٣", "1,5", "9" * 5000),
]
RANGE = re.compile(r"\[(?:default[^][]*?; )?([-\d.e+]+)(<=?)x(<=?)([-\d.e+^]+)\]")


COMMANDS = [words for words in subcommands() if words != ("list",)]


@cache
def options(words: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Metavar and help of each option that takes a value."""
    found: dict[str, tuple[str, str]] = {}
    name = ""
    for line in help_of(*words).split("\n"):
        option = re.match(r"^  (?:-\w, )?(--[\w-]+)(?: (\S.*?))?(?:  |$)", line)
        if option:
            name = option[1] if option[2] and option[2][0] != "/" else ""
            found |= {name: (option[2], "")} if name else {}
        if name:
            text = line[option.end() :] if option else line.strip()
            found[name] = found[name][0], f"{found[name][1]} {text.strip()}"
    return found


def new_options(words: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Those that no command before has with the same help: the others are the same objects."""
    before = {one for other in COMMANDS[: COMMANDS.index(words)] for one in options(other).items()}
    return {name: found for name, found in options(words).items() if (name, found) not in before}


def refused(world: World, words: tuple[str, ...], option: str, value: str) -> str:
    """The message; the exit code must be 2, and the option be named."""
    run = world.run([*words, f"{option}={value}"])
    assert run.exit == 2, (option, value, run.err)
    assert option in run.err, (option, value, run.err)
    return run.err


every_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


@every_command
def test_an_empty_value_is_a_usage_error(words: tuple[str, ...], world: World) -> None:
    """As of a shell variable that is not set."""
    for option in options(words):
        refused(world, words, option, "")


@every_command
def test_numbers_out_of_the_range_are_usage_errors(words: tuple[str, ...], world: World) -> None:
    for option, (_, text) in new_options(words).items():
        result = RANGE.search(text)
        if not result:
            continue
        low, opens, closes, high = result.groups()
        least, most = (eval(edge.replace("^", "**"), {}) for edge in (low, high))
        beyond = [least - 1, most * 2 + 1, *[least] * (opens == "<"), *[most] * (closes == "<")]
        for value in [*(f"{value:.0f}" for value in beyond), *NONSENSE]:
            whole = re.fullmatch("-?[0-9]{1,30}", value)
            if not whole or not least <= int(value) <= most or int(value) in beyond:
                refused(world, words, option, value)


@every_command
def test_a_path_that_is_too_long_is_a_usage_error(words: tuple[str, ...], world: World) -> None:
    for option, (metavar, _) in new_options(words).items():
        if metavar in ("FILE", "DIR", "OUT"):
            for path in ("a" * 300, "/".join(["a" * 100] * 60)):
                assert "is too long for the file system" in refused(world, words, option, path)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate --ref r --baseline b h --seed 9223372036854775808", "0<=x<2^63"),
        ("tune-mert --kbest k --ref r --out o.json --features a,", "expected names with commas"),
        ("tune-mert --kbest k --ref r --out o.json --memory -3G", "expected a size such as 3G"),
        ("tune-mert --kbest k --ref r --out o.json --memory 255M", "expected at least 256M"),
        ("score --kbest k --lm lm=dev.docs", "expected a folder, found the file"),
    ],
)
def test_values_of_a_form_are_refused_and_why(command: str, message: str, world: World) -> None:
    assert message in world.refused(command)


def test_options_of_a_file_are_those_of_the_command_line_which_has_precedence(world: World) -> None:
    texts = 'kbest = "dev.kbest"\nmetric = ["chrf"]\nformat = "text"\n'
    world.write("c.toml", f"{texts}seed = 5\nper-document = true\n")
    run = world.ok(f"{EVALUATE} --kbest dev.kbest --seed 5 --metric chrf --per-document")
    assert world.ok(f"{EVALUATE} --config c.toml").out == run.out
    other = world.ok(f"{EVALUATE} --kbest dev.kbest --seed 6 --metric ter --format json").out
    assert world.ok(f"{EVALUATE} --config c.toml --seed 6 --metric ter --format json").out == other


def test_options_of_a_search_are_keys_of_the_shell_and_of_tables(world: World) -> None:
    lists = "decode --kbest dev.kbest --docs dev.docs --weights w.ini --out o --summary s.json"
    world.ok(f"{lists} --search smc:particles=5,ess=0.25 --alpha 1")
    given = world.json("s.json")
    assert "|particles:5|ess:0.25|" in given["signature"]
    table = 'search = {kind = "smc", particles = 5, ess = 0.25}\nalpha = 1\n'
    world.write("c.toml", table)
    world.ok(f"{lists} --config c.toml")
    assert world.json("s.json") == given
    assert "did you mean particles?" in world.refused(f"{lists} --search smc:partikles=5")
    world.write("c.toml", 'search = {kind = "smc", particles = 5.5}\n')
    refused = world.run(f"{lists} --config c.toml")
    assert "c.toml: search: particles: expected a whole number, found '5.5'" in refused.err


@pytest.mark.parametrize(("command", "environment"), [
    ("evaluate hyp.txt --docs dev.docs --ref dev.ref --baseline base.txt --seed 5", {}),
    ("evaluate hyp.txt --docs dev.docs --ref dev.ref", {"BASELINE": "base.txt", "SEED": "5"}),
    ("evaluate hyp.txt --docs dev.docs --ref dev.ref -m ter -m chrf --per-document -b", {}),
    ("evaluate hyp.txt --docs dev.docs --ref dev.ref",
        {"METRIC": "ter 'chrf'", "SCORE_ONLY": "true"}),
    ("evaluate hyp.txt --docs dev.docs --format json", {"REF": "dev.ref", "FORMAT": "tsv"}),
])  # fmt: skip
def test_a_run_file_that_is_dumped_gives_the_same_result(
    command: str, environment: dict[str, str], world: World
) -> None:
    """Options of the command line and of the environment; those of the command line first."""
    environment = {f"RERANK_EVALUATE_{name}": value for name, value in environment.items()}
    run = world.ok(command, **environment)
    dumped = world.ok(f"{command} --dump-config", **environment).out
    world.write("run.toml", dumped)
    assert dumped.startswith("# rerank evaluate hyp.txt --config THIS_FILE\n")
    assert world.ok("evaluate hyp.txt --config run.toml").out == run.out
    assert world.ok("evaluate hyp.txt --config run.toml --dump-config").out == dumped


def run_again(world: World, command: str) -> None:
    """Run a line that a file states as a shell would, without the environment of the first run."""
    program, *words = shlex.split(command)
    assert program == "rerank"
    world.ok(words)


def test_a_trace_has_a_line_that_gives_it_again_and_what_was_read(world: World) -> None:
    """Options of the command line, of the environment and of a file; the keys of these are none."""
    world.write("my list.kbest", world.text("dev.kbest"))
    world.write("c.toml", 'weights = "w.ini"\nsearch = {kind = "beam"}\n')
    world.ok(
        "decode --kbest 'my list.kbest' --docs dev.docs --scores qe=dev.qe --default-weight 0.5 "
        "--trace t --out o -q --config c.toml",
        RERANK_DECODE_BEAM="3",
        OPENAI_API_KEY="sk-secret",
    )
    (first, *others), files = map(json.loads, world.lines("t")), world.files()
    run = first["run"]
    assert not any("run" in line for line in others)
    assert run["command"] == (
        "rerank decode --kbest 'my list.kbest' --docs dev.docs --scores qe=dev.qe --search beam "
        "--beam 3 --weights w.ini --default-weight 0.5 --out o --trace t --quiet"
    )
    names = {"my list.kbest", "dev.docs", "dev.qe", "w.ini"}
    digests = {name: f"sha256:{sha256(world.content(name)).hexdigest()[:8]}" for name in names}
    assert {entry["file"]: entry["digest"] for entry in run["inputs"]} == digests
    assert run["rerank"] == rerank.__version__
    assert not any(b"sk-secret" in content for content in files.values())
    (world.folder / "c.toml").unlink()
    (world.folder / "t").unlink()
    run_again(world, run["command"])
    assert world.content("t") == files["t"]


@pytest.mark.parametrize(
    "command",
    [
        f"{TUNE} --range LM0=0: -q",
        "tune-moses --features features.dat --scores scores.dat --starts 1 --out tuned.json",
    ],
    ids=["mert", "moses"],
)
def test_a_weights_file_has_the_line_that_gives_it_again(command: str, world: World) -> None:
    world.ok(command)
    weights = world.content("tuned.json")
    made = json.loads(weights)["provenance"]
    run_again(world, made["command"])
    assert world.content("tuned.json") == weights


def test_names_in_a_run_file_are_those_that_were_given(world: World) -> None:
    names = ['a b="x\\y"', "007=\x7f", "-0", "-1"]
    words = [word for name in names for word in ("--systems", name)]
    world.write("c.toml", world.ok(["decode", *words, "--top", "7", "-q", "--dump-config"]).out)
    result = tomllib.loads(world.content("c.toml").decode())
    assert result == {"systems": [*names[:3], -1], "top": 7, "quiet": True}
    dumped = world.ok(["evaluate", "a\nb = 1", "--seed", "5", "--dump-config"]).out
    assert tomllib.loads(dumped) == {"seed": 5}  # a name is in the comment, whatever is in it
    dumped = world.ok("score --scorer a=command:b --docs openai: --dump-config").out
    assert dumped.startswith("# rerank score --config THIS_FILE --trust-config\n")


def test_a_terminal_shows_tables_that_fit_and_marks_in_colour(world: World) -> None:
    """Not where NO_COLOR is set, and never JSON."""

    def on_terminal(words: str, **given: str) -> str:
        master, slave = pty.openpty()
        program = start(words, None, slave, **{"COLUMNS": "60", "TERM": "xterm", **given})
        os.close(slave)
        found = b""
        try:
            while part := os.read(master, 1 << 16):
                found += part
        except OSError:  # the program has ended
            pass
        os.close(master)
        program.wait()
        return found.decode().replace("\r", "")

    command = "evaluate hyp.txt --docs dev.docs --ref dev.ref --baseline base.txt -q"
    shown = on_terminal(command)
    assert "\x1b[1m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert on_terminal(command, NO_COLOR="1") == plain
    assert all(len(line) <= 60 or " " not in line.strip() for line in plain.splitlines())
    head = plain.partition("\n---")[0]  # of two lines
    assert f"\x1b[1m{head}\x1b[0m\n---" in shown
    assert head.count("\n") == 1
    assert json.loads(on_terminal(f"{command} --format json"))
    world.ok("decode --kbest dev.kbest --docs dev.docs --weights w.ini --trace t --out o -q")
    assert "\x1b[1;34m{+burns+}\x1b[0m" in on_terminal("explain t evening")
    narrow = on_terminal("explain t evening", COLUMNS="24", NO_COLOR="1").splitlines()
    assert all(len(line) <= 24 or " " not in line.strip() for line in narrow)
