"""The checks of `recipes/bench/reliability/supply_chain.py`, on made-up metadata and wheels."""

import re
import zipfile
from email.message import Message
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.world import ROOT

import rerank

pytest.importorskip("packaging.licenses")  # of packaging 24.2 and later

SOURCES = ["lm/__init__.py", "decoders/__init__.py", "rerank/a.py", "rerank/w.ini", "tests/t.py"]
INFO = "rerank_mt-1.dist-info"


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "recipes" / "bench" / "reliability")
    return import_module("supply_chain")


def fields(*pairs: tuple[str, str]) -> Message:
    message = Message()
    for name, value in pairs:
        message[name] = value
    return message


def test_packages_are_followed_without_extras_and_those_off_the_list_are_found(
    chain: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = {
        "One": ["two[fast]>=1", "test-tool; extra == 'test'", "old; python_version < '3'"],
        "two": ["three; extra == 'fast'", "four; extra == 'slow'", "one"],
        "three": ["absent_name"],
    }

    def find(name: str) -> Any:
        if name not in needs:
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(requires=needs[name])

    packages = chain.run_time_packages(["One>=2"], find)
    assert [*packages] == ["absent-name", "one", "three", "two"]
    assert [name for name, found in packages.items() if found is None] == ["absent-name"]
    assert chain.is_allowed("MIT OR Apache-2.0 AND GPL-3.0-only")  # AND binds first
    assert not chain.is_allowed("(MIT OR Apache-2.0) AND GPL-3.0-only")
    package = SimpleNamespace(version="1", metadata=fields(("License", "GPL-3.0-only")))
    monkeypatch.setattr(chain, "run_time_packages", lambda _: {"good": None, "bad": package})
    assert not chain.check_licences()
    assert capsys.readouterr().out.endswith("2 packages, 2 without an allowed licence\n")


@pytest.mark.parametrize(
    ("member", "content", "fault"),
    [
        ("", b"", ""),
        ("tests/t.py", b"", "unexpected: tests/t.py"),
        (f"{INFO}/notes.txt", b"", f"unexpected metadata: {INFO}/notes.txt"),
        ("lm/test_a.py", b"", "a test: lm/test_a.py"),
        ("lm/a.pkl", b"", "neither a module nor known package data: lm/a.pkl"),
        ("lm/a.ini", b"\x80\x04K\x01.", "a pickle: lm/a.ini"),
        ("", b"", "missing: rerank/b.py"),
    ],
)
def test_members_of_a_wheel_that_are_too_many_or_too_few_are_listed(
    chain: Any, tmp_path: Path, member: str, content: bytes, fault: str
) -> None:
    path = tmp_path / "one.whl"
    names = [name for name in SOURCES if not name.startswith("tests")]
    names += [f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")]
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
        if member:
            archive.writestr(member, content)
    known = member if member and not fault.startswith("unexpected") else None
    sources = [*SOURCES, *filter(None, [known, fault.partition("missing: ")[2]])]
    assert chain.content_faults(path, sources) == ([fault] if fault else [])


def test_a_release_has_one_version_and_only_kinds_of_files_that_its_check_knows(chain: Any) -> None:
    written = [
        re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)
        for name, pattern in [("CITATION.cff", "^version: (.*)$"), ("CHANGELOG.md", "^## (.*)$")]
    ]
    assert [one and one[1] for one in written] == [rerank.__version__] * 2
    files = [path for name in chain.PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    kinds = {path.suffix for path in files if path.parent.name != "__pycache__"}
    assert kinds <= {".py", *chain.DATA}
