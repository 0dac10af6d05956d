"""Laws of the house: who may import whom, what may be called what, and what belongs where."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.world import ROOT

from rerank.diagnostics import diagnostics

PACKAGES = ("lm", "decoders", "rerank")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_bytes()) for path in SOURCES}
TOP_LEVEL = {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile"),
    *("README.md", "SECURITY.md", "CITATION.cff", "pyproject.toml"),
    *("decoders", "lm", "recipes", "rerank", "tests"),
}
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "tools", "manager"}
OPTIONAL = {"scipy", "sacrebleu", "sacremoses", "tabulate", "tqdm", "matplotlib", "sklearn"}

# names of other packages that begin with an underscore, and why: no public name does it there
PRIVATE = {
    # torch 2.13; the public `torch.cpu.get_capabilities` is not in 2.10, the oldest one
    ("lm/backend.py", "torch.cpu._is_amx_tile_supported"): "torch:cpu._is_amx_tile_supported",
    # torch 2.13; one kernel for a step of LSTM, whose public form is a whole sequence
    ("lm/recurrences/gated.py", "torch.ops.aten._thnn_fused_lstm_cell"): (
        "torch:ops.aten._thnn_fused_lstm_cell.default"
    ),
    ("lm/recurrences/gated.py", "torch.ops.aten._thnn_fused_lstm_cell_backward_impl"): (
        "torch:ops.aten._thnn_fused_lstm_cell_backward_impl.default"
    ),
    # torch 2.13; of a gradient that is not coalesced, `indices` refuses: it would have to be sorted
    ("lm/training/optimisers.py", "gradient._indices"): "torch:Tensor._indices",
    ("lm/training/optimisers.py", "gradient._values"): "torch:Tensor._values",
    # torch 2.13; `add_module` of a model that shares its parts would change the other model, too
    ("lm/document_cache.py", "model._modules"): "torch:nn.Module()._modules",
    # numba 0.68; the class of a function's cache has no option
    ("rerank/files/compilation.py", "dispatcher._cache"): "numba:njit(lambda: 0)._cache",
    # sacrebleu 2.6; its public functions download what is not there
    ("rerank/formats/document_files.py", "dataset._get_txt_file_path"): (
        "sacrebleu.dataset.base:Dataset._get_txt_file_path"
    ),
    # click 8.5; both the help and the messages of a range are made of it
    ("rerank/values.py", "super()._describe_range"): "click:IntRange._describe_range",
}
OF_TUPLES = {"_asdict", "_replace", "_fields", "_make"}  # public: so that no field has the name


def tracked() -> list[str]:
    """Files of the repository, as git sees them: those that are, or could be, committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout")
    return sorted(name for name in {*listing.stdout.split("\0")} if (ROOT / name).is_file())


def imports(
    tree: ast.AST, *, inside_functions: bool, for_types: bool = False
) -> Iterator[tuple[str, int]]:
    """Modules imported and the lines; for_types: with those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            if for_types:
                yield from imports(node, inside_functions=True)
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, inside_functions=inside_functions, for_types=for_types)


def offences(package: str, forbidden: set[str], *, inside_functions: bool) -> list[str]:
    """`file:line imports module` wherever a package imports what it must not."""
    return [
        f"{name}:{line} imports {module}"
        for name, tree in TREES.items()
        if name.startswith(f"{package}/")
        for module, line in imports(tree, inside_functions=inside_functions)
        if module.partition(".")[0] in forbidden
    ]


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("lm", {"decoders", "rerank", "sacrebleu", "sacremoses", "click"}),
        ("decoders", {"lm", "rerank", "torch", "scipy", "sacrebleu", "sacremoses", "click"}),
    ],
)
def test_foundations_import_neither_each_other_nor_more(package: str, forbidden: set[str]) -> None:
    assert offences(package, forbidden, inside_functions=True) == []


def test_what_only_some_commands_need_is_imported_inside_functions() -> None:
    assert offences("rerank", {*OPTIONAL, "torch"}, inside_functions=False) == []


def imported(*, everywhere: bool) -> dict[str, set[str]]:
    """Modules that each module imports when it is imported itself, or everywhere in it."""
    known = {name.removesuffix(".py").removesuffix("/__init__"): name for name in TREES}
    return {
        module: {
            other
            for found, _ in imports(TREES[name], inside_functions=everywhere, for_types=everywhere)
            for path in [found.replace(".", "/")]
            for other in [path if path in known else path.rpartition("/")[0]]
            if other in known and other != module
        }
        for module, name in known.items()
    }


def test_only_scorers_of_language_models_load_lm_when_they_are_imported() -> None:
    """`lm` loads torch: whatever imports it at the top, or one that does, stands in one folder."""
    reached = imported(everywhere=False)
    loading = {module for module in reached if module.partition("/")[0] == "lm"}
    while more := {m for m, others in reached.items() if others & loading} - loading:
        loading |= more
    assert {module.rpartition("/")[0] for module in loading if module.startswith("rerank")} == {
        "rerank/scorers"
    }


def test_modules_import_each_other_in_no_circle() -> None:
    """Neither when they are imported, nor later, nor for their types."""
    reached = imported(everywhere=True)
    while leaves := {module for module, others in reached.items() if not others & reached.keys()}:
        reached = {module: others for module, others in reached.items() if module not in leaves}
    assert sorted(reached) == []


DOORS = {"__init__.py", "__main__.py", "api.py"}
ROOMS = [
    *("commands", "check", "report", "runs", "tuning", "scorers", "metrics", "formats"),
    *("corpus", "files"),
]


def test_a_room_imports_only_rooms_below_it() -> None:
    """The order of rooms is that of CONTRIBUTING.md; modules beside the rooms know only `files`."""
    order = {room: n for n, room in enumerate(ROOMS)}
    above = [
        f"{name}:{line} imports {module}"
        for name, tree in TREES.items()
        if name.startswith("rerank/") and name.split("/")[1] not in DOORS
        for own in [order.get(name.split("/")[1], len(ROOMS) - 1)]
        for module, line in imports(tree, inside_functions=True)
        if module.startswith("rerank.") and order.get(module.split(".")[1], own) < own
    ]
    assert above == []


def test_every_option_that_a_message_names_exists() -> None:
    options = {"--version", "--help"}
    for path in (ROOT / "tests" / "golden" / "help").iterdir():
        options |= {*re.findall(r"--[a-z]+(?:-[a-z]+)*", path.read_text(encoding="utf-8"))}
    named = {
        (option, name)
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for option in re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", node.value)
    }
    assert sorted(one for one in named if one[0] not in options) == []


def test_every_warning_is_a_row_of_the_table_of_diagnostics() -> None:
    """And every row is the warning of some line of code."""
    texts = {
        node.value
        for name, tree in TREES.items()
        if name != "rerank/diagnostics.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert sorted(diagnostics().keys() - texts) == []
    warned = {
        node.args[0].value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        if re.search(
            r"(notices|findings)\.add$|(place|found|reader)\.note$", ast.unparse(node.func)
        )
    }
    assert warned - diagnostics().keys() == set()
    codes = [row.code for row in diagnostics().values()]
    assert codes == sorted(set(codes))


def private_names(tree: ast.AST) -> Iterator[str]:
    """Attributes that begin with an underscore, of objects whose class is not of the module."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            own.add(ast.unparse(node.target).removeprefix("self."))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own |= {node.attr} if ast.unparse(node.value) == "self" else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_(?!_)", node.attr):
            owner = ast.unparse(node.value)
            if node.attr not in own | OF_TUPLES and owner not in ("self", "cls", "super()"):
                yield ast.unparse(node)


def test_private_names_of_other_packages_are_few_and_known() -> None:
    result = {(name, text) for name, tree in TREES.items() for text in private_names(tree)}
    twin = ("rerank/scorers/window_model.py", "twin._work_uncached")  # of a class of ours
    assert result - {twin} <= PRIVATE.keys()
    assert [(n, t) for n, t in PRIVATE if not any(t in ast.unparse(x) for x in [TREES[n]])] == []


@pytest.mark.parametrize("place", PRIVATE.values())
def test_private_names_of_other_packages_are_still_there(place: str) -> None:
    package, _, path = place.partition(":")
    assert eval(f"module.{path}", {"module": pytest.importorskip(package)}) is not ...


def test_nothing_is_printed_but_through_one_module() -> None:
    """It escapes what a terminal obeys; another one writes bytes."""
    printing = re.compile(
        r"(click\.s?echo|sys\.std(out|err)\.write|print|sys\.std(out|err)\.buffer)\b"
    )
    result = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.Attribute)
        if printing.match(ast.unparse(node.func if isinstance(node, ast.Call) else node))
    }
    assert {Path(name).name for name in result} == {"terminal.py"}


def test_no_module_is_a_drawer_and_the_top_level_is_what_a_stranger_expects() -> None:
    names = {part: name for name in TREES for part in Path(name).with_suffix("").parts}
    assert [names[name] for name in sorted(names.keys() & DRAWERS)] == []
    assert {name.partition("/")[0] for name in tracked()} == TOP_LEVEL


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    folders = "|".join(("work", "farm", "root", "home", "tmp", "Users"))
    pattern = re.compile(rf"(?<![\w.*~}})/-])/({folders})/".encode())
    result = [
        f"{name}:{number}"
        for name in tracked()
        for number, line in enumerate((ROOT / name).read_bytes().split(b"\n"), 1)
        if pattern.search(line)
    ]
    assert result == []
