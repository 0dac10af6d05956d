"""Packages of other people with entry points, installed in a folder of the path."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    points: Mapping[str, Mapping[str, str]],
    *,
    name: str = "somebody",
) -> None:
    """A package of one module, as pip leaves it; points: attributes by entry-point group and name.

    An attribute with a colon is an address of another module.
    """
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, members in points.items():
        lines.append(f"[rerank.{group}]")
        lines += [f"{one} = {at if ':' in at else f'{name}:{at}'}" for one, at in members.items()]
    (info / "entry_points.txt").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(folder)
