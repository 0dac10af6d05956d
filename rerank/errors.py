"""Faults a user can mend, each with the exit code the shell sees.

0 fine · 1 the run failed · 2 usage or configuration · 3 bad input data ·
75 stopped early with the state saved · 130/143 a signal with nothing saved.
Messages are one line: what was expected, what came, how to mend it.
"""

from __future__ import annotations


class RerankError(Exception):
    """A run that failed for a reason outside the program: input/output, memory, a scorer."""

    exit_code = 1


class UsageError(RerankError):
    """Options or configuration that do not fit together."""

    exit_code = 2


class InputError(RerankError):
    """Bad input data, located: `file:line: expected …, found …; cure`."""

    exit_code = 3

    def __init__(self, message: str, *, source: str = "", line: int | None = None) -> None:
        self.source = source
        self.line = line
        where = source if line is None else f"{source}:{line}"
        super().__init__(f"{where}: {message}" if where else message)


class StoppedEarly(RerankError):
    """Work stopped by a signal or a time limit with its state saved; the same command resumes."""

    exit_code = 75
