"""Check that `import lm` and `import decoders` find our packages, not files of the same names."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rerank.errors import UsageError

PACKAGES = ("lm", "decoders")


def refuse_shadowing() -> None:
    """UsageError if Python finds another `lm` or `decoders` before ours. About 0.1 ms."""
    ours = Path(__file__).parents[1]
    for name in PACKAGES:
        spec = find_spec(name)
        found = None if spec is None else spec.origin
        if found is None or Path(found).parent != ours / name:
            raise UsageError(
                f"expected the package {name!r} in {ours}, found {found or 'none'}; "
                "rename that file, or run rerank from another folder"
            )
