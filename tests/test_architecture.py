"""Laws of the house: who may import whom, what may be called what, and what belongs where."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rerank.cli import cli

ROOT = Path(__file__).parents[1]
PACKAGES = ("lm", "decoders", "rerank")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "decoders",
    "lm",
    "pyproject.toml",
    "recipes",
    "rerank",
    "tests",
}
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "tools", "manager"}
HEAVY = {"torch", "numpy", "scipy", "sacrebleu", "sacremoses", "numba", "tqdm"}
# from `rerank` to `lm`, which loads torch: the gate, and what is behind it
_BRIDGING = (
    *("language_model", "acausal", "contextual", "following", "moves", "requests"),
    "side_rows",
    *("causal_lm", "causal_problem", "causal_texts"),
)
BRIDGES = [f"rerank/scorers/{name}.py" for name in _BRIDGING]


def tracked() -> list[str]:
    """Files of the repository, as git sees them: those that are, or could be, committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout")
    return sorted(name for name in set(listing.stdout.split("\0")) if (ROOT / name).is_file())


def imports(tree: ast.AST, *, inside_functions: bool) -> Iterator[tuple[str, int]]:
    """Modules imported and the lines; without those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ".", node.lineno
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, inside_functions=inside_functions)


def offences(package: str, forbidden: set[str], *, inside_functions: bool) -> list[str]:
    """`file:line imports module` wherever a package imports what it must not."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] == package
        for module, line in imports(ast.parse(path.read_bytes()), inside_functions=inside_functions)
        if module.partition(".")[0] in forbidden
    ]


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("lm", {"decoders", "rerank", "sacrebleu", "sacremoses", "click"}),
        ("decoders", {"lm", "rerank", "torch", "scipy", "sacrebleu", "sacremoses", "click"}),
    ],
)
def test_foundations_import_neither_each_other_nor_the_roof(
    package: str, forbidden: set[str]
) -> None:
    assert offences(package, forbidden, inside_functions=True) == []


def test_the_roof_imports_what_loads_torch_inside_functions_or_over_one_bridge() -> None:
    """`decoders` is numpy only, so `rerank` may import it at the top of a module."""
    found = offences("rerank", {"lm", "torch"}, inside_functions=False)
    allowed = rf"({'|'.join(BRIDGES)}):\d+ imports lm\b"
    assert [name for name in found if not re.match(allowed, name)] == []
    bridges = {bridge.removesuffix(".py").replace("/", ".") for bridge in BRIDGES}
    crossed = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in SOURCES
        for module, line in imports(ast.parse(path.read_bytes()), inside_functions=False)
        if module in bridges and str(path.relative_to(ROOT)) not in BRIDGES
    ]
    assert crossed == []


def test_what_only_some_commands_need_is_imported_inside_functions() -> None:
    forbidden = {"scipy", "sacrebleu", "sacremoses", "tabulate", "tqdm"}
    assert offences("rerank", forbidden, inside_functions=False) == []


def loaded(program: str) -> set[str]:
    """Top-level modules that a program has loaded when it ends in silence."""
    program += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "command",
    [
        "",
        *sorted(cli.commands),
        "cache info",
        "lm-eval coherence",
        "lm-eval contrastive",
        "lm-eval next-sentence",
        "lm-eval ordering",
    ],
)
def test_help_loads_nothing_heavy(command: str) -> None:
    arguments = [*command.split(), "--help"]
    assert loaded(f"from rerank.cli import run; run({arguments})") & HEAVY == set()


@pytest.mark.parametrize(
    "command",
    [
        *("decode --search nope", "score --merge nope"),
        *("train-lm --model nope", "train-lm --head nope"),
    ],
)
def test_a_misspelt_option_is_refused_before_anything_heavy_is_loaded(command: str) -> None:
    program = f"""
import contextlib, io
from rerank.cli import run
with contextlib.redirect_stderr(io.StringIO()) as message:
    assert run({command.split()}) == 2
assert "nope" in message.getvalue()"""
    assert loaded(program) & HEAVY == set()


def test_commands_without_a_model_do_not_wait_for_torch() -> None:
    assert loaded("import rerank.pipeline") & {"torch", "sacrebleu", "tqdm"} == set()


UNUSED_BY_TUNING = {"torch", "sacremoses", "tqdm", "matplotlib"}


def test_tuning_without_a_model_loads_no_torch(tmp_path: Path) -> None:
    lines = [f"0 ||| a b c {end} ||| LM0= {k} TM0= {-k * k} ||| 0" for k, end in enumerate("defg")]
    (tmp_path / "dev.nbest").write_text("\n".join(lines))
    (tmp_path / "dev.en").write_text("a b c e\n")
    files = f"--kbest {tmp_path}/dev.nbest --ref {tmp_path}/dev.en --out {tmp_path}/weights.json"
    program = f"""
from rerank.cli import run
assert run("tune-mert -q --no-docs one {files}".split()) == 0"""
    assert loaded(program) & UNUSED_BY_TUNING == set()


def test_what_only_exact_pools_need_is_not_loaded_before() -> None:
    program = """
import sys, rerank.pipeline
assert not [name for name in sys.modules if name.startswith("rerank.tuning.exact.")]"""
    assert "numba" in loaded(program)


def test_every_option_that_a_message_names_exists() -> None:
    options = {"--version", "--help"}
    groups = [command for command in cli.commands.values() if isinstance(command, click.Group)]
    for command in [*cli.commands.values(), *(c for g in groups for c in g.commands.values())]:
        for parameter in command.params:
            options |= {*parameter.opts, *parameter.secondary_opts}
    named = {
        (name, str(path.relative_to(ROOT)))
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", node.value)
    }
    assert sorted((name, path) for name, path in named if name not in options) == []


def test_nothing_is_printed_but_through_one_module() -> None:
    """It escapes what a terminal obeys. `outputs` writes bytes, and `progress` draws a bar."""
    printing = re.compile(
        r"(click\.s?echo|sys\.std(out|err)\.write|print|sys\.std(out|err)\.buffer)\b"
    )
    found = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call | ast.Attribute)
        if printing.match(ast.unparse(node.func if isinstance(node, ast.Call) else node))
    }
    assert found == {"rerank/files/terminal.py", "rerank/files/outputs.py"}


def test_no_module_is_a_drawer() -> None:
    names = {path.stem: path for path in SOURCES} | {path.parent.name: path for path in SOURCES}
    assert sorted(str(names[name]) for name in names.keys() & DRAWERS) == []


def test_the_top_level_is_the_argument_of_the_field() -> None:
    assert {name.partition("/")[0] for name in tracked()} == TOP_LEVEL


def test_every_source_file_has_a_test_file_at_its_place() -> None:
    """`lm/c.py` has `tests/lm/test_c.py`, `rerank/a/c.py` has `tests/a/test_c.py`.

    `tests/a/test_a.py` tests the files of folder `a` that have no test file of their own.
    """
    untested = []
    for path in SOURCES:
        place = path.relative_to(ROOT)
        folder = ROOT / "tests" / Path(*place.parts[place.parts[0] == "rerank" : -1])
        tests = [folder / f"test_{path.stem}.py", folder / f"test_{folder.name}.py"]
        if path.stem != "__init__" and not any(test.is_file() for test in tests):
            untested.append(str(place))
    assert untested == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    folders = "|".join(("work", "farm", "root", "home", "tmp", "Users"))
    pattern = re.compile(rf"(?<![\w.*~}})/-])/({folders})/".encode())
    found = [
        f"{name}:{number}"
        for name in tracked()
        for number, line in enumerate((ROOT / name).read_bytes().split(b"\n"), 1)
        if pattern.search(line)
    ]
    assert found == []
