"""Scripts of recipes, and what they run of `rerank`, in the process of the tests."""

import io
import runpy
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.world import ROOT
from support.world import run as rerank


def program(words: list[str], **options: Any) -> Any:
    """In place of `subprocess.run` of `python -m rerank`."""
    assert words[:3] == [sys.executable, "-m", "rerank"]
    result = rerank(words[3:], b"", {})
    return SimpleNamespace(returncode=result.exit, stdout=result.out, stderr=result.err)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a script of a recipe prints, called with these arguments and this standard input."""

    def run(name: str, *arguments: object, text: str = "") -> Any:
        path = ROOT / "recipes" / name
        monkeypatch.syspath_prepend(path.parent)
        for own in path.parent.glob("*.py"):  # not the module of that name of another recipe
            monkeypatch.delitem(sys.modules, own.stem, raising=False)
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "run", program)
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise
        return capsys.readouterr()

    return run
