"""A file called lm.py or decoders.py hides our package of that name from Python."""

from pathlib import Path

import pytest
from support.cli import ROOT, finish

from rerank.errors import UsageError
from rerank.shadowing import refuse_shadowing


@pytest.mark.parametrize("name", ["lm.py", "decoders.py", "decoders/__init__.py"])
def test_a_file_that_shadows_a_package_is_named_in_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise RuntimeError('run by mistake')\n")
    package = name.partition("/")[0].removesuffix(".py")
    assert finish("list", "decoders", cwd=tmp_path) == (
        2,
        f"rerank: expected the package '{package}' in {ROOT}, found {path}; "
        "rename that file, or run rerank from another folder\n",
    )


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.shadowing.PACKAGES", ("no_such_package",))
    with pytest.raises(UsageError, match=r"expected the package 'no_such_package' .*, found none"):
        refuse_shadowing()
