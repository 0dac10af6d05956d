"""A folder with small made-up files, in which `rerank` runs: what whole-program tests share.

`World.run` calls the program's entry point in this process and returns what it printed; a process
of its own (`World.start`) is for tests of processes: signals, pipes, limits, threads.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest

if TYPE_CHECKING:
    from lm.folders import SavedModel

ROOT = Path(__file__).parents[2]
Folders: TypeAlias = Mapping[str, Path]  # of models, by name
if os.environ.get("NUMBA_DISABLE_JIT"):  # for coverage of compiled functions, whose hashes overflow
    np.seterr(over="ignore")
WORDS = ("the", "a", "lamp", "is", "lit", "it", "she", "gives", "light", "burns", "no", "one")
SOUND = {  # files of a run without faults: four sentences in two documents
    "dev.kbest": """\
0 ||| the lamp is lit ||| LM0= -9.5 TM0= -1.5 -2 WP0= -4 ||| -4.875
0 ||| a lamp burns ||| LM0= -8.25 TM0= -3 -2.5 WP0= -3 ||| -4.8125
1 ||| it gives light ||| LM0= -7 TM0= -1 -1.25 WP0= -3 ||| -3.53125
1 ||| she gives a light ||| LM0= -7.5 TM0= -2 -1.75 WP0= -4 ||| -3.96875
1 ||| it lights ||| LM0= -6.5 TM0= -3.5 -3 WP0= -2 ||| -4.25
2 ||| the café is closed ||| LM0= -10.5 TM0= -2.25 -1 WP0= -4 ||| -5.4375
2 ||| the café closed ||| LM0= -10 TM0= -3 -2 WP0= -3 ||| -5.625
3 ||| nobody comes ||| LM0= -8 TM0= -1 -1 WP0= -2 ||| -4.125
3 ||| no one is coming ||| LM0= -9.25 TM0= -1.5 -2.5 WP0= -4 ||| -4.8125
""",
    "dev.docs": "evening\nevening\ntown\ntown\n",
    "dev.ref": "the lamp is lit\nit gives a light\nthe café is closed\nnobody is coming\n",
    "dev.src": "la lampe\nelle luit\nle bar\npersonne\n",
    "w.ini": "[weight]\nLM0= 0.5\nTM0= 0.25 0.125\nWP0= -0.125\n",
    "base.txt": "the lamp is lit\nit gives light\nthe café is closed\nnobody comes\n",
    "hyp.txt": "a lamp burns\nit gives light\nthe café is closed\nno one is coming\n",
    # scores of another tool, of hypotheses and of pairs; files of Moses' extractor
    "dev.pairs": """\
evening	0	-	0	0.25
evening	0	-	1	-0.75
evening	1	0	0	0.5
evening	1	0	1	-0.5
evening	1	0	2	-1.5
evening	1	1	0	0.5
evening	1	1	1	-0.5
evening	1	1	2	-1.5
town	0	-	0	0.25
town	0	-	1	-0.75
town	1	0	0	0.5
town	1	0	1	-0.5
town	1	1	0	0.5
town	1	1	1	-0.5
""",
    "dev.qe": "0.0\n0.25\n0.5\n0.75\n1.0\n1.25\n1.5\n1.75\n2.0\n",
    "features.dat": """\
FEATURES_TXT_BEGIN_0 0 2 4 LM0_0 TM0_0 TM0_1 WP0_0 
-9.5 -1.5 -2 -4 
-8.25 -3 -2.5 -3 
FEATURES_TXT_END_0
FEATURES_TXT_BEGIN_0 1 3 4 LM0_0 TM0_0 TM0_1 WP0_0 
-7 -1 -1.25 -3 
-7.5 -2 -1.75 -4 
-6.5 -3.5 -3 -2 
FEATURES_TXT_END_0
""",
    "scores.dat": """\
SCORES_TXT_BEGIN_0 0 2 9 BLEU
4 4 3 3 2 2 1 1 4 
1 3 0 2 0 1 0 0 4 
SCORES_TXT_END_0
SCORES_TXT_BEGIN_0 1 3 9 BLEU
3 3 1 2 0 1 0 0 4 
3 4 2 3 1 2 0 1 4 
1 2 0 1 0 0 0 0 4 
SCORES_TXT_END_0
""",
}
DECODE = "decode --kbest dev.kbest --docs dev.docs --weights w.ini --out -"
TUNE = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --starts 1 --out tuned.json"
EVALUATE = "evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt"
CHECK = "check --kbest dev.kbest --docs dev.docs --ref dev.ref --source dev.src"


@dataclass(frozen=True)
class Outcome:
    """Exit code of a command, and the bytes that it printed."""

    exit: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def lines(self) -> list[str]:
        return self.out.split("\n")[:-1]

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


class World:
    """The current folder of a test; file names are relative to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # Files

    def write(self, name: str, content: str | bytes | Iterable[object]) -> Path:
        """Write text, bytes, or lines (whatever `str` makes of them), in UTF-8."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            content = "".join(f"{line}\n" for line in content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def weights(self, name: str, weights: Mapping[str, Any], **others: object) -> Path:
        """Write a weights file in JSON; a number stands for a list of one."""
        lists = {k: v if isinstance(v, list | tuple) else [v] for k, v in weights.items()}
        return self.write(name, json.dumps({"schema": 1, "weights": lists, **others}))

    def content(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def text(self, name: str) -> str:
        return self.content(name).decode()

    def lines(self, name: str) -> list[str]:
        """Lines of a text file; the last one ends like the others."""
        *lines, rest = self.text(name).split("\n")
        assert rest == "", f"{name} ends without a line end"
        return lines

    def lists(self, name: str = "dev.kbest") -> dict[int, list[list[str]]]:
        """Columns of the candidates of each sentence, without its number, from lines of Moses."""
        found: dict[int, list[list[str]]] = {}
        for line in self.lines(name):
            number, *columns = line.split(" ||| ")
            found.setdefault(int(number), []).append(columns)
        return found

    def json(self, name: str) -> Any:
        return json.loads(self.content(name))

    def table(self, name: str) -> dict[str, list[str]]:
        """Columns of a .tsv, by heading."""
        header, *rows = (x.split("\t") for x in self.lines(name) if not x.startswith("# "))
        return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))

    def files(self) -> dict[str, bytes]:
        """Every file of the folder, by its name relative to it."""
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def draw(
        self,
        seed: int = 5,
        documents: Iterable[str] = "xxxxxyyyvvzzzzw",
        gaps: Container[int] = (3, 8, 9),
    ) -> None:
        """Write lists to tune on, drawn: better candidates have, on the whole, higher scores.

        Files: `dev.kbest` of 3 to 5 different candidates (none where a sentence is in `gaps`),
        `dev.docs`, `dev.ref`, `start.json`; `dev.m` and `dev.pairs` are scores of another tool, of
        hypotheses and of pairs.
        """
        rng, docs = np.random.default_rng(seed), [*documents]
        lines, pairs, numbers, references = list[str](), list[str](), list[float](), list[str]()
        before: tuple[str, int] | None = None
        for t, name in enumerate(docs):
            words = rng.choice(WORDS, int(rng.integers(6, 10))).tolist()
            references.append(" ".join(words))
            n = 0 if t in gaps else int(rng.integers(3, 6))
            for k in range(n):
                faults = int(rng.integers(0, 5))
                wrong = [*words[: len(words) - int(rng.integers(0, 3))], *["or"] * k]
                for place in rng.choice(len(wrong), min(faults, len(wrong)), replace=False):
                    wrong[place] = str(rng.choice(WORDS))
                lm, *tm = (3 * rng.standard_normal(3) - 2 * faults - k).round(2).tolist()
                lines.append(f"{t} ||| {' '.join(wrong)} ||| LM0= {lm} TM0= {tm[0]} {tm[1]} ||| 0")
                numbers.append(round(float(rng.standard_normal()) - faults, 3))
            if n:
                width = before[1] if before and before[0] == name else 0
                for i in range(width) or ["-"]:
                    values = rng.standard_normal(n).round(3).tolist()
                    row = f"{name}\t{t - docs.index(name)}\t{i}"
                    pairs += [f"{row}\t{k}\t{v}" for k, v in enumerate(values)]
                before = name, n
        files: dict[str, Iterable[object]] = {"kbest": lines, "docs": docs, "ref": references}
        for end, content in {**files, "m": numbers, "pairs": pairs}.items():
            self.write(f"dev.{end}", content)
        self.weights("start.json", {"LM0": 0.5, "TM0": [0.25, 0.25]})

    def model(self, name: str, folder: str = "lm", seed: int = 0, **shape: Any) -> SavedModel:
        """Write a language model of this name over `WORDS`, its weights drawn; see `drawn`."""
        from support.models import drawn

        saved, files = drawn(name, seed, **shape)
        for file, content in files.items():
            self.write(f"{folder}/{file}", content)
        return saved

    # Runs

    def run(
        self, command: str | Iterable[object], *more: object, stdin: bytes = b"", **environment: str
    ) -> Outcome:
        """`rerank` in this process; the command in shell notation or word by word, then `more`."""
        words = shlex.split(command) if isinstance(command, str) else [*map(str, command)]
        return run([*words, *map(str, more)], stdin, environment)

    def ok(self, command: str | Iterable[object], *more: object, **keywords: Any) -> Outcome:
        """`run` of a command that must succeed; skips where an optional package is missing."""
        need_packages(command)
        found = self.run(command, *more, **keywords)
        assert found.exit == 0, f"exit {found.exit}\n{found.err}\n{found.out}"
        return found

    def refused(
        self, command: str | Iterable[object], *more: object, exit: int = 2, **keywords: Any
    ) -> str:
        """What a command that must end with this exit code says on standard error."""
        found = self.run(command, *more, **keywords)
        assert found.exit == exit, f"exit {found.exit}\n{found.err}"
        return found.err

    def start(self, command: str | Iterable[object], **options: Any) -> subprocess.Popen[bytes]:
        """`rerank` in a process of its own; options are those of Popen, `env` beside ours."""
        words = shlex.split(command) if isinstance(command, str) else [*map(str, command)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        options = {"stdin": subprocess.DEVNULL, "cwd": self.folder, **options}
        return subprocess.Popen(
            [sys.executable, "-m", "rerank", *words], env=environment, **options
        )

    def process(self, command: str | Iterable[object], **options: Any) -> Outcome:
        """`rerank` in a process of its own, to its end."""
        program = self.start(command, **options)
        out, err = program.communicate(timeout=120)
        return Outcome(program.returncode, out or b"", err or b"")


_ENTRY_POINTS = metadata.entry_points


@cache
def _packages(*path: str) -> Any:
    return _ENTRY_POINTS()


def _installed(**keywords: str) -> Any:
    """Entry points of the packages on `sys.path`; to look through all of them takes 10 ms."""
    return _packages(*sys.path).select(**keywords)


def need_packages(command: str | Iterable[object]) -> None:
    """Skip a test of a command that works only with a package that is not installed."""
    words = command if isinstance(command, str) else " ".join(map(str, command))
    if words.startswith("topics learn ") and "--help" not in words:
        pytest.importorskip("sklearn")
    if words.startswith("candidates ") and "--help" not in words:
        pytest.importorskip("transformers")
    if "tokenizer unigram:" in words or "tokenizer bpe:" in words:
        pytest.importorskip("tokenizers")


def run(words: list[str], stdin: bytes, environment: Mapping[str, str]) -> Outcome:
    """The program's entry point with these arguments, its signal handlers undone afterwards."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    numbers = [*signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}]
    handlers = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        if metadata.entry_points is _ENTRY_POINTS:
            patch.setattr(metadata, "entry_points", _installed)
        patch.setattr(sys, "argv", ["rerank", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            entry_point()()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            for number, handler in handlers.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
    return Outcome(code, *(stream.buffer.getvalue() for stream in (out, err)))


def without_command(content: bytes) -> bytes:
    """A file that a run writes, without the command that it states."""
    return re.sub(rb'"command": "(?:[^"\\]|\\.)*",\s*', b"", content)


@cache
def help_of(*words: str) -> str:
    """The help of a command with all its options."""
    text = run([*words, "--help"], b"", {"COLUMNS": "80"}).out
    return run([*words, "--help-all"], b"", {"COLUMNS": "80"}).out if "--help-all" in text else text


@cache
def subcommands(*words: str) -> tuple[tuple[str, ...], ...]:
    """Words of every command that does something below a command."""
    _, mark, rest = help_of(*words).partition(" COMMAND [ARGS]...\n")
    names = re.findall(r"^  ([a-z][a-z-]+)  ", rest, re.MULTILINE) if mark else []
    return tuple(found for name in names for found in subcommands(*words, name)) or (words,)


@cache
def entry_point() -> Callable[[], object]:
    """What the console script `rerank` calls."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["scripts"]["rerank"].partition(":")
    found: Callable[[], object] = getattr(import_module(module), name)
    return found
