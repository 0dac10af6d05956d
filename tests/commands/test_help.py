"""The command line: help, completion, exit codes, streams, and what is loaded before the work."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest
from support.golden import CASES
from support.world import DECODE, EVALUATE, ROOT, TUNE, World, help_of, need_packages, subcommands

import rerank

HELP = Path(__file__).parents[1] / "golden" / "help"
COMMANDS = sorted({"demo", "cache clear", *(case.words for case in CASES)})
every_command = pytest.mark.parametrize("name", COMMANDS)
HEAVY = {"torch", "numpy", "scipy", "sacrebleu", "sacremoses", "numba", "tqdm"}


# Help
@every_command
def test_help_is_what_is_stored_with_an_example_that_works(name: str, world: World) -> None:
    """`GOLDEN=write` writes it again. The files of an example are not there: it ends at once."""
    text = world.ok(f"{name} --help", COLUMNS="80").out
    if "--help-all" in text:
        text += "\n" + help_of(*name.split())
    path = HELP / name.replace(" ", "-")
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text.split() == path.read_text(encoding="utf-8").split()
    block = text.partition("Example:\n")[2].partition("\n\n")[0].replace("\\\n", " ")
    examples = [shlex.split(line) for line in block.splitlines()]
    assert examples
    for words in examples:
        assert words[: 1 + len(name.split())] == ["rerank", *name.split()]
        if name != "demo":  # which would train
            need_packages(words[1:])
            run = world.run(words[1:])
            assert run.exit in (0, 2, 3)
            assert not re.search(r"No such option|Missing|Invalid value|Got unexpected", run.err)
            assert run.exit == 0 or re.search(r"no file|found none|expected a folder", run.err)


def test_the_list_of_commands_has_the_first_sentence_of_their_help(world: World) -> None:
    text = world.ok("--help", COLUMNS="80").out
    assert "\n    2    options or configuration" in text
    assert world.ok("--version").out == f"rerank, version {rerank.__version__}\n"
    listed = " ".join(text.split())
    for name in {words[0] for words in subcommands()}:
        text = world.ok(f"{name} --help", COLUMNS="80").out
        first = " ".join(text.split("\n\n")[1].split())
        assert f" {name} {first} " in f"{listed} "


def test_an_option_without_a_page_of_its_own_has_its_help_text(world: World) -> None:
    text = world.ok("help deterministic", COLUMNS="80").out
    assert text.startswith("--deterministic  (decode, score, tune-mert, ablate)\n\nCompute ")
    assert "deterministic" not in world.ok("help").out
    assert "did you mean seed" in world.run("help sed").err


def test_names_in_the_help_are_all_that_there_are() -> None:
    """They are written out there, because help must not wait for torch."""
    from lm import composition
    from lm.corpus import DOCUMENTS
    from lm.training.settings import SIZES

    text = (HELP / "train-lm").read_text(encoding="utf-8")
    tables = {"documents": DOCUMENTS, "size": SIZES, "head": composition.HEADS}
    tables |= {"encoder": composition.ENCODERS, "fusion": composition.FUSIONS}
    tables |= dict.fromkeys(("recurrence", "sentence-recurrence"), composition.RECURRENCES)
    for option, names in tables.items():
        (result,) = re.findall(rf"^  --{option} \[([^\]]+)\]", text, re.MULTILINE)
        assert {*result.split("|")} == {*names}
    joined = " ".join(text.split())
    for name, shape in SIZES.items():
        assert f"{name} {shape.embed}, {shape.hidden}, {shape.layers}" in joined


ALONE = """
import contextlib, io, runpy, sys, time

def rerank(words, blocked=()):
    sys.modules.update(dict.fromkeys(blocked))
    sys.argv = ["rerank", *words.split()]
    out, err = (io.TextIOWrapper(io.BytesIO()) for _ in "ab")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module("rerank", run_name="__main__")
        except SystemExit as end:
            return end.code

"""
LOADED = "print(*{name.partition('.')[0] for name in sys.modules})"


def loaded(program: str, folder: Path = ROOT) -> set[str]:
    """Top-level modules that a program has loaded when it ends in silence."""
    done = subprocess.run(
        [sys.executable, "-c", f"{ALONE}{program}\n{LOADED}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return {*done.stdout.split()}


def test_help_and_misspelt_options_load_nothing_heavy_and_take_little_time() -> None:
    """All of them in one process, in seconds of its own time."""
    wrong = ["decode --search nope", "score --dtype nope", "train-lm --model nope", "evaluate"]
    program = f"""
for name in {COMMANDS}:
    assert rerank(f"{{name}} --help") == 0, name
for words in {wrong}:
    assert rerank(words) == 2, words
assert time.process_time() < 5, time.process_time()"""
    assert loaded(program) & HEAVY == set()


def test_commands_without_a_model_work_without_torch(world: World) -> None:
    commands = [f"{DECODE} --trace t", EVALUATE, TUNE, "explain t", "list decoders", "list formats"]
    commands += ["report --trace t --docs dev.docs --ref dev.ref", "diversity --kbest dev.kbest"]
    commands += ["check --kbest dev.kbest --docs dev.docs --ref dev.ref", "first --kbest dev.kbest"]
    program = f"""
for words in {commands}:
    assert rerank(words, ["torch"]) == 0, words"""
    assert loaded(program, world.folder) & {"matplotlib", "sacremoses"} == set()


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("rerank tune-", ["plain,tune-mert", "plain,tune-moses"]),
        ("rerank decode --se", ["plain,--search", "plain,--seed"]),
        ("rerank decode --search s", ["plain,survivors", "plain,smc", "plain,sweeps"]),
        ("rerank train-lm --model cc", ["plain,ccdclm"]),
        ("rerank decode --kbest te", ["file,te"]),
        ("rerank evaluate out", ["file,out"]),
    ],
)
def test_the_shell_completes_all_words(words: str, completions: list[str], world: World) -> None:
    asked = {"_RERANK_COMPLETE": "bash_complete", "COMP_WORDS": words}
    run = world.ok([], COMP_CWORD=str(words.count(" ")), **asked)
    assert run.lines == completions


# Exit codes
PACKAGE = '''
import warnings
from pathlib import Path

from decoders.table import ANY, NONE, Decoder
from lm.composition import Composition


def fail(problem):
    """Raise what the file says."""
    exec(Path("raise").read_text())


def out_of_memory(*given, **named):
    raise MemoryError


BAD = Decoder("bad", "somebody:fail", ANY, NONE, "none", "somebody")
LARGE = Composition("somebody:out_of_memory", "lm.fusions:Output", "somebody", "?")
'''
OVERFLOW = 'warnings.warn_explicit("overflow", RuntimeWarning, "f.py", 1, module="%s")'


@pytest.fixture
def somebody(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A package whose decoder raises what the file `raise` says, and whose model is too large."""
    monkeypatch.syspath_prepend(world.folder)
    world.write("somebody.py", PACKAGE)
    points = [
        EntryPoint("bad", "somebody:BAD", "rerank.decoders"),
        EntryPoint("large", "somebody:LARGE", "rerank.models"),
    ]

    def found(**given: Any) -> Any:
        if not given.get("group", "").startswith("rerank."):
            return entry_points(**given)  # torch asks, too
        return [point for point in points if point.group == given["group"]]

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    monkeypatch.delitem(sys.modules, "somebody", raising=False)
    return world


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("raise KeyboardInterrupt", 130, "interrupted; nothing was saved"),
    ("raise MemoryError", 1, "out of memory; use --top K to keep fewer candidates"),
    ('raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory: you tried")', 1,
        "out of memory; use --top K to keep fewer candidates"),
    (OVERFLOW % "rerank.tuning.task", 1,
        "numbers beyond the range of floats (overflow); the features or scores differ by too "
        "much: rescale them"),
    ("raise OSError(5, 'Odd', 'f')", 1, "f: odd"),
    ("raise LookupError('why\\nnot')", 1,
        "decoder 'bad' of the package (unknown): LookupError at <string>:1: why not; tell its "
        "authors, with the traceback of RERANK_TRACEBACK=1"),
], ids=["interrupted", "memory", "torch", "overflow", "system", "bug"])  # fmt: skip
def test_a_fault_is_one_line(statement: str, code: int, message: str, somebody: World) -> None:
    somebody.write("raise", statement)
    run = somebody.run(f"{DECODE} --search bad -q")
    assert (run.exit, run.out) == (code, "")
    assert run.err.lstrip("\n") == f"rerank: {message}\n"


def test_a_bug_has_its_traceback_where_it_is_asked_for(somebody: World) -> None:
    somebody.write("raise", "raise LookupError('why')")
    with pytest.raises(LookupError, match="why"):
        somebody.run(f"{DECODE} --search bad -q", RERANK_TRACEBACK="1")


def test_a_warning_of_another_module_stays_a_warning(somebody: World) -> None:
    somebody.write("raise", f"{OVERFLOW % 'elsewhere'}\nraise MemoryError")
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert somebody.run(f"{DECODE} --search bad -q").exit == 1


def test_a_file_that_shadows_a_package_is_named_in_one_line(world: World) -> None:
    path = world.write("decoders/__init__.py", "raise RuntimeError('run by mistake')\n")
    result = world.process("list decoders")
    assert (result.exit, result.err) == (
        2,
        f"rerank: expected the package 'decoders' in {ROOT}, found {path}; "
        "rename that file, or run rerank from another folder\n",
    )
    python = [sys.executable, "-c", "from rerank import Reranker"]
    options: dict[str, Any] = {"cwd": world.folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    ran = subprocess.run(python, capture_output=True, text=True, check=False, **options)
    assert ran.stderr.endswith(result.err.partition(": ")[2])


# Standard output and standard error
def test_results_go_to_standard_output_and_everything_else_to_standard_error(world: World) -> None:
    world.write("dev.kbest", world.content("dev.kbest").replace(b"\n", b"\r\n"))
    run = world.ok(DECODE)
    assert len(run.lines) == 4
    assert "search: viterbi, exact" in run.err
    told = "warning: 9 x CRLF line ends, read as LF, first at dev.kbest:1 [R003 crlf-line-ends]\n"
    assert told in run.err
    assert "2 documents, 4 sentences, " in run.err
    for flag in ("--quiet", "-q"):
        quiet = world.ok(f"{DECODE} {flag}")
        assert (quiet.out, quiet.err) == (run.out, "")
    strict = world.run(f"{DECODE} --strict -q")
    assert (strict.exit, strict.out) == (3, "")
    assert strict.err.startswith("rerank: dev.kbest:1: CRLF line ends")


# Lists of names
def test_members_of_packages_are_not_loaded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a name is built in, a warning says that the other one is ignored."""
    for kind in ("models", "scorers", "decoders", "metrics", "formats", "document-formats"):
        built_in = world.ok(f"list {kind} --format json").json

        last_name = "names" if kind == "metrics" else built_in[-1]["name"]  # of the registry

        def points(group: str, taken: str = last_name) -> list[EntryPoint]:
            return [EntryPoint(n, "no.such.module:Mine", group) for n in ("mine", taken)]

        with monkeypatch.context() as patch:
            patch.setattr("importlib.metadata.entry_points", points)
            run = world.ok(f"list {kind} --format json")
        *others, last = run.json
        assert last == {"name": "mine", "package": "(unknown)", "address": "no.such.module:Mine"}
        assert [other["name"] for other in others] == [one["name"] for one in built_in]
        if kind not in ("models",):
            assert "of package (unknown) ignored: the name is built in" in run.err


@pytest.mark.parametrize("columns", [60, 100])
def test_the_text_of_a_list_has_its_words_within_the_width_of_the_terminal(
    columns: int, world: World
) -> None:
    rows = world.ok("list decoders --format json").json
    text = world.ok("list decoders", COLUMNS=str(columns)).out
    assert max(map(len, text.splitlines())) <= columns
    for row in rows:
        assert {row["name"], *row["options"], *row["source"].split()} <= {*text.split()}


def test_a_name_in_two_packages_is_a_fault(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [EntryPoint("own", f"{name}:Own", "rerank.metrics") for name in ("a", "b")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: both)
    refused = world.refused(f"{EVALUATE} -m own")
    assert "expected one metric called 'own', found two, in the packages" in refused
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: both[:1])
    run = world.run(f"{EVALUATE} -m own")
    assert "metric 'own', a:Own, cannot be loaded: ModuleNotFoundError: No mod" in run.err


@every_command
def test_help_shows_twenty_options_of_three_lines_at_most(name: str) -> None:
    """Two screens of the commands that most people need; all options stand behind the first."""
    shown, _, every = (
        (HELP / name.replace(" ", "-")).read_text(encoding="utf-8").partition("\nUsage: ")
    )
    assert len(re.findall(r"^  -", shown, re.MULTILINE)) <= 20
    if name in ("decode", "tune-mert"):
        assert len(shown.rstrip().splitlines()) <= 70
    for text in re.split(r"^ {2,}(?=-)", every, flags=re.MULTILINE)[1:]:
        lines = text.partition("\n\n")[0].rstrip().splitlines()
        alone = "  " not in lines[0].strip()  # the option, on its own line
        assert len(lines) <= 3 + alone, text
