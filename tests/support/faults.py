"""Rows of the table of faults: what is wrong with the files or the command, and what is said of it.

The rows stand in `tests/faults/rows/*.py`, a list `FAULTS` in each; `tests/faults/test_table.py`
runs them all. A new refusal needs one row there and no other test.
"""

import gzip
import json
import os
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.world import CHECK, DECODE, TUNE, World

Change = Callable[[bytes], bytes]
RESTORED = "\0the content before the changes"
PASTED = "\0the command in the message, pasted into a shell, and the file that it writes"
LM = DECODE + " --default-weight 0.5 --lm lm=model"
MOSES = "tune-moses --features features.dat --scores scores.dat --out tuned.ini"
PRO = TUNE.replace(" --starts 1", " --algorithm pro")
Changes = Mapping[str, "Change | str | bytes | Model | None"]
"""By file: new content, or None to remove it; by folder: the model in it."""


@dataclass(frozen=True)
class Model:
    """A language model with drawn weights: arguments of `World.model`."""

    name: str
    shape: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """A command on the files of `support.world.SOUND` after `changes`, and how it ends.

    name: row of the catalogue of faults and words, `29-nan`, or words alone, `--nan`.
    message: patterns, each found in standard error (of `check`: standard output) if it does not
    begin with `!`, else found nowhere.
    exit: 3 input, 2 usage, 1 the system, 0 for a warning, which `--strict` turns into 3.
    cure: what the message advises, applied and run, must succeed: files changed further, the
    command that it names, or both; RESTORED stands for the content before the changes, PASTED for
    the same command on the file that the shell command in the message writes. None only
    where the message advises nothing that a test can do.
    also: exit codes of other commands on these files; those that refuse give the same message.
    setup: what the folder needs beside files, such as a model.
    asked: whether an option asks for what the command warns of, so that `--strict` accepts it.
    """

    name: str
    command: str
    message: str | tuple[str, ...]
    changes: Changes = field(default_factory=dict)
    exit: int = 3
    cure: Changes | str | tuple[Changes, str] | None = None
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, int] = field(default_factory=dict)
    setup: Callable[[World], None] | None = None
    asked: bool = False

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.message,) if isinstance(self.message, str) else self.message

    @property
    def warns(self) -> bool:
        """Whether the command succeeds with a warning."""
        fine = self.message == f"^{NOTHING}" or self.messages[0].startswith("!")
        return self.exit == 0 and not fine


NOTHING = "no faults, no warnings"
FAULT, WARNING, SOUND = "fault", "warning", "sound"
READ_BY = {  # commands that read the files of `check`, too
    DECODE + " --default-weight 0": {"dev.kbest", "dev.docs", "w.ini"},
    TUNE + " --start w.ini": {"dev.ref"},
}


def checked(
    name: str,
    level: str,
    finding: str,
    changes: Changes,
    options: str = "",
    *,
    cure: Changes | str | tuple[Changes, str] | None = None,
    also: Mapping[str, int] | None = None,
) -> Fault:
    """What `rerank check` says of files; decode and tune-mert refuse those that it refuses.

    also: exit codes of these two, where they differ. The cure of a fault is the sound content.
    """
    code = 3 if level == FAULT else 0
    # weights of sparse features are missing, so that totals of such lists differ
    weighed = {"dev.kbest", "dev.docs", "w.ini"} & set(changes) and name[:2] not in ("35", "42")
    weights = " --weights w.ini" if weighed else ""
    others = {
        f"{command} {options}": code for command, files in READ_BY.items() if files & set(changes)
    }
    sound = {file: RESTORED for file in changes}
    return Fault(
        name,
        f"{CHECK}{weights} {options}",
        f"^{finding}",
        changes,
        code,
        cure=cure or (sound if level == FAULT and not options else None),
        also=others if also is None else also,
    )


def table(
    text: str, changes: Changes, exit: int = 2, setup: Callable[[World], None] | None = None
) -> list[Fault]:
    """A fault a line, `name | command | message | cure`; the command of a cure may be missing."""
    return [
        Fault(name, command, message, changes, exit, cure[0] if cure else None, setup=setup)
        for name, command, message, *cure in (row.split(" | ") for row in text.strip().split("\n"))
    ]


# Changes of a file
def line(number: int, old: str, new: str) -> Change:
    """Another text on a line, counted from 1."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        assert old.encode() in lines[number - 1], lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old.encode(), new.encode(), 1)
        return b"\n".join(lines)

    return change


def replaced(old: str | bytes, new: str | bytes) -> Change:
    """Another text wherever one is."""
    a, b = (text.encode() if isinstance(text, str) else text for text in (old, new))

    def change(content: bytes) -> bytes:
        assert a in content, content
        return content.replace(a, b)

    return change


def put(number: int, *lines: str) -> Change:
    """Lines before the line of this number."""

    def change(content: bytes) -> bytes:
        result = content.split(b"\n")
        result[number - 1 : number - 1] = [one.encode() for one in lines]
        return b"\n".join(result)

    return change


def without(*numbers: int) -> Change:
    """The content without these lines."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"\n".join(one for n, one in enumerate(lines, 1) if n not in numbers)

    return change


def order(*numbers: int) -> Change:
    """The lines of these numbers, in this order."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"".join(lines[n - 1] + b"\n" for n in numbers)

    return change


def recoded(encoding: str) -> Change:
    """The text in another encoding."""
    return lambda old: old.decode().encode(encoding)


def normal_form(form: str) -> Change:
    """The text in another Unicode form."""
    return lambda old: unicodedata.normalize(form, old.decode()).encode()  # type: ignore[arg-type]


def each_line(change: Callable[[str], str]) -> Change:
    """A change of every line."""
    return lambda old: "".join(change(one) + "\n" for one in old.decode().splitlines()).encode()


def edited(*keys: Any) -> Change:
    """A JSON object with another value, the last argument, at the end of a path of keys."""

    def change(content: bytes) -> bytes:
        result = inner = json.loads(content)
        *path, last, value = keys
        for key in path:
            inner = inner[key]
        inner[last] = value
        return json.dumps(result).encode()

    return change


def packed(content: bytes) -> bytes:
    """The content compressed by gzip."""
    return gzip.compress(content, compresslevel=1, mtime=0)


def around(start: bytes = b"", end: bytes = b"") -> Change:
    """Bytes before and after the content."""
    return lambda old: start + old + end


def both(*changes: Change) -> Change:
    """Several changes, one after another."""

    def change(old: bytes) -> bytes:
        for one in changes:
            old = one(old)
        return old

    return change


# Models
def strange_tensor(world: World) -> None:
    """A model with a tensor whose name holds control characters."""
    import torch

    from lm.checkpoint import read_tensors, write_tensors

    world.model("codclm", "model")
    path = world.folder / "model/config.json"
    content, tensors = read_tensors(path)
    write_tensors(path, "weights", {**tensors, "\x1b[31mname\x9b\u202e": torch.zeros(1)}, content)


def model_of_pipes(world: World) -> None:
    os.mkdir(world.folder / "model")
    os.mkfifo(world.folder / "model/config.json")
