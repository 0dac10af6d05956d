"""The version, the signature, and what files say of the run that wrote them.

The signature is a run in one line, for logs and papers: everything that its choices depend on.

After sacrebleu's signatures: `rerank|search:viterbi|exact:yes|k:100|ctx:1|lm:codclm=ab12cd34|
w:9f3e01ab|docs:77aa10bc|v:0.2.0`. Two runs with one signature on the same lists make the same
choices, but for ties within the stated error of the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rerank.errors import printable
from rerank.files.paths import FilePath, base_name

__version__ = "0.2.0"
LENGTH = 8  # hexadecimal digits of a digest


def signature(parts: Mapping[str, object]) -> str:
    """`rerank|key:value|…|v:version` of the parts that are not None, in their order."""
    known = []
    for key, value in parts.items():
        if value is not None:
            text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
            known.append(f"{key}:{text.replace('|', '_').replace(':', '=')}")  # what divides it
    return "|".join(["rerank", *known, f"v:{__version__}"])


def short_digest(path: FilePath | None) -> str | None:
    """First digits of a file's SHA-256; None for what cannot be read a second time."""
    from rerank.files.lines import digest

    if path is None or not Path(path).is_file():
        return None
    return digest(path).removeprefix("sha256:")[:LENGTH]


def file_entry(path: FilePath) -> dict[str, str] | None:
    """Name without folders, and first digits of the SHA-256 of a file, as files state its inputs.

    `{"file": "dev.kbest", "digest": "sha256:ab12cd34"}`; None for what cannot be read twice.
    """
    digits = short_digest(path)
    name = printable(base_name(path))
    return None if digits is None else {"file": name, "digest": f"sha256:{digits}"}


def run_entries(files: Iterable[FilePath]) -> dict[str, Any]:
    """What a file says of the run that writes it: version, command line, digests of its inputs.

    `{"rerank": "0.2.0", "command": "rerank decode …", "inputs": […]}`, the inputs as `file_entry`;
    there is no command in Python.
    """
    from rerank.files.run_files import command_line

    command, entries = command_line(), map(file_entry, dict.fromkeys(files))
    return {
        "rerank": __version__,
        **({} if command is None else {"command": command}),
        "inputs": [entry for entry in entries if entry is not None],
    }


def comment(entries: Mapping[str, Any]) -> str:
    """Entries of a run as lines of a comment: the command, then version and inputs."""
    inputs = [f"{entry['file']} {entry['digest']}" for entry in entries["inputs"]]
    lines = [entries.get("command"), "; ".join([f"rerank {entries['rerank']}", *inputs])]
    return "".join(f"# {printable(line)}\n" for line in lines if line is not None)
