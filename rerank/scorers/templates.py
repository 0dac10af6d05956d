"""Templates of Jinja in files of users, which may be anybody's: run in Jinja's sandbox.

A template sees the values that it is given and nothing else of the program or the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb
from types import MappingProxyType

from rerank.errors import InputError

_MOST_BYTES = 1 << 20


class JinjaTemplate:
    """A template of Jinja, run in its sandbox; InputError, with its line, if it is not valid.

    known: its possible variables; lacking: keys of options that would give some more of them, by
    variable. used: its variables; digest: of its text; lines: how many.
    """

    def __init__(
        self, path: Path, known: Sequence[str], lacking: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.path = path
        try:
            from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as fault:
            raise InputError(
                f"{self.path}: prompts need the package jinja2 ({fault}); install it: pip install "
                "jinja2"
            ) from None
        text = self._text()
        self.lines = max(1, len(text.splitlines()))
        sandbox = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        sandbox.intercepted_binops = frozenset({"**"})  # 9 ** 9 ** 9 takes time without end
        del sandbox.binop_table["**"]
        try:
            tree = sandbox.parse(text)
            self.used = meta.find_undeclared_variables(tree) - sandbox.globals.keys()
            code = sandbox.compile(tree, str(self.path), str(self.path))
        except TemplateSyntaxError as fault:
            raise self._fault(f"expected a template of Jinja: {fault}", fault.lineno) from None
        except (RecursionError, SyntaxError, ValueError, MemoryError) as fault:  # of Python itself
            raise self._fault(
                f"expected a template of few nested parts and short numbers, found more ({fault}); "
                "write a simpler one"
            ) from None
        for node in tree.find_all(nodes.Name):
            if node.name not in self.used or node.name in known:
                continue
            if node.name in lacking:
                cure = f"add ,{lacking[node.name]}=NAME behind the folder"
                raise self._fault(f"{node.name} is not given; {cure}", node.lineno)
            near = get_close_matches(node.name, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            there = f"There are {', '.join([*known, *lacking])}"
            raise self._fault(f"no variable {node.name!r}; {hint}{there}", node.lineno)
        self._template = sandbox.template_class.from_code(sandbox, code, sandbox.make_globals(None))

    def rendered(self, values: Mapping[str, object], label: str) -> str:
        """The text for values of all variables; InputError, with the label, if it fails."""
        try:
            return str(self._template.render(values))
        except Exception as fault:  # of any kind: templates compute
            frames, path = walk_tb(fault.__traceback__), str(self.path)
            lines = [line for frame, line in frames if frame.f_code.co_filename == path]
            raise self._fault(
                f"the template fails for {label}: {type(fault).__name__}: {fault}; "
                "lists may be empty, and templates see texts and lists of texts, without their "
                "attributes",
                lines[-1] if lines else None,
            ) from None

    def _text(self) -> str:
        """The text of the file."""
        try:
            with self.path.open("rb") as file:
                raw = file.read(_MOST_BYTES + 1)
        except OSError as fault:
            reason = (fault.strerror or str(fault)).lower()
            raise InputError(f"{self.path}: expected a template of Jinja: {reason}") from None
        if len(raw) > _MOST_BYTES:
            raise self._fault(f"expected a template of at most {_MOST_BYTES:,} bytes, found more")
        self.digest = hashlib.sha256(raw).hexdigest()
        try:
            return raw.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as fault:
            line = raw[: fault.start].count(b"\n") + 1
            raise self._fault("expected text in UTF-8; convert it with iconv", line) from None

    def at_end(self, message: str) -> InputError:
        """An error in its last line."""
        return self._fault(message, self.lines)

    def _fault(self, message: str, line: int | None = None) -> InputError:
        return InputError(message, source=str(self.path), line=line)
