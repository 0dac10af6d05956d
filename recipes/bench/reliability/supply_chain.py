"""Checks of what is installed and of what is distributed; exit code 4 if one of them fails.

python recipes/bench/reliability/supply_chain.py licences
python recipes/bench/reliability/supply_chain.py wheel

`licences` reads the metadata of all packages that the program needs at run time, without extras.
`wheel` builds the source distribution, and the wheel from it, twice, compares the bytes, looks for
files that should not be in the wheel, and runs it in a new environment. It needs git, and a
package index for the build backend.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from email.message import Message
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tabulate import tabulate

ROOT = Path(__file__).parents[3]
FAULT = 4  # exit code


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# Licences

ALLOWED = {
    *("MIT", "PSF-2.0", "MPL-2.0", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"),
    *("0BSD", "BSD-2-Clause", "BSD-3-Clause"),
    "LicenseRef-BSD",  # metadata that does not say how many clauses
    *("CC0-1.0", "Zlib"),  # parts of numpy
    "BSL-1.0",  # parts of torch
    "CNRI-Python",  # parts of regex
}
"""SPDX identifiers."""

NAMES = {
    "BSD": "LicenseRef-BSD",
    "BSD License": "LicenseRef-BSD",
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""Identifiers of what older metadata has instead."""


def run_time_packages(
    requirements: Iterable[str],
    find: Callable[[str], metadata.Distribution] = metadata.distribution,
) -> dict[str, metadata.Distribution | None]:
    """Packages that the requirements need, directly or not, by name; None if not installed."""
    packages: dict[str, metadata.Distribution | None] = {}
    seen = set()
    queue = [one for one in map(Requirement, requirements) if _applies(one, ())]
    while queue:
        needed = queue.pop()
        name = canonicalize_name(needed.name)
        if (key := (name, *sorted(needed.extras))) in seen:
            continue
        seen.add(key)
        try:
            packages[name] = result = find(needed.name)
        except metadata.PackageNotFoundError:
            packages[name] = None
            continue
        further = map(Requirement, result.requires or ())
        queue += [one for one in further if _applies(one, needed.extras)]
    return dict(sorted(packages.items()))


def _applies(requirement: Requirement, extras: Collection[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": one}) for one in ("", *extras))


def stated_licence(fields: Message) -> tuple[str, str]:
    """Licence of a package and the field that states it, both empty if none does.

    `License` counts if it is an expression or a known name, not if it is a text; several
    classifiers are taken to apply together.
    """
    if expression := fields.get("License-Expression"):
        return expression, "License-Expression"
    text = (fields.get("License") or "").strip()
    if text and _canonical(NAMES.get(text, text)):
        return NAMES.get(text, text), "License"
    classifiers = fields.get_all("Classifier", ())
    names = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ")]
    if names:
        return " AND ".join(NAMES.get(name, name) for name in names), "Classifier"
    return (text.partition("\n")[0], "License") if text else ("", "")


def is_allowed(expression: str) -> bool:
    """Whether the terms of an SPDX expression can be met with licences of the list."""
    left = _canonical(expression)
    while "(" in left:  # innermost parentheses first
        left = re.sub(r"\(([^()]*)\)", lambda found: "MIT" if _is_met(found[1]) else "none", left)
    return _is_met(left)


def _is_met(expression: str) -> bool:
    """Whether all licences of one alternative are on the list; no parentheses."""
    return any(
        all(one.strip() in ALLOWED for one in alternative.split(" AND "))
        for alternative in expression.split(" OR ")
    )


def _canonical(expression: str) -> str:
    """The expression with the usual case of identifiers; empty if it is none."""
    try:
        return str(canonicalize_license_expression(expression))
    except InvalidLicenseExpression:
        return ""


def check_licences() -> bool:
    """Whether all licences are on the list; prints a table."""
    rows, faults = [], 0
    for name, package in run_time_packages(_pyproject()["project"]["dependencies"]).items():
        licence, field = stated_licence(package.metadata) if package else ("", "")
        allowed = is_allowed(licence)
        faults += not allowed
        version = package.version if package else "not installed"
        rows.append((name, version, licence or "none", field, "yes" if allowed else "NO"))
    headers = ("package", "version", "licence", "field", "allowed")
    print(tabulate(rows, headers, disable_numparse=True))  # version numbers are texts
    print(f"\n{len(rows)} packages, {faults} without an allowed licence")
    return not faults


# The wheel

PACKAGES = ("decoders", "lm", "rerank")
DATA = {".css", ".en", ".gz", ".html", ".ini", ".jinja", ".js", ".typed"}
DIST_INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
_PICKLE = re.compile(rb"\x80[\x02-\x05]")


def content_faults(wheel: Path, sources: Iterable[str]) -> list[str]:
    """What is in a wheel and should not be, and what is not in it and should be.

    sources: paths of the files of the repository, relative to its root
    """
    expected = {source for source in sources if PurePosixPath(source).parts[0] in PACKAGES}
    faults, members = [], set()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            folder, _, rest = member.partition("/")
            if folder.endswith(".dist-info"):
                if rest not in DIST_INFO:
                    faults.append(f"unexpected metadata: {member}")
                continue
            members.add(member)
            if member not in expected:
                faults.append(f"unexpected: {member}")
            elif _is_test(member):
                faults.append(f"a test: {member}")
            elif PurePosixPath(member).suffix not in {".py", *DATA}:
                faults.append(f"neither a module nor known package data: {member}")
            if _PICKLE.match(archive.read(member)):
                faults.append(f"a pickle: {member}")
    return faults + [f"missing: {one}" for one in sorted(expected - members)]


def _is_test(path: str) -> bool:
    *folders, name = PurePosixPath(path).parts
    return "tests" in folders or re.fullmatch(r"conftest\.py|test_.*\.py", name) is not None


def check_wheel(work: Path) -> bool:
    """Whether the wheel has the right files, equal bytes when built twice, and runs."""
    sources = _output(["git", "ls-files"], ROOT).splitlines()
    epoch = _output(["git", "log", "-1", "--format=%ct"], ROOT).strip()
    builder = _environment(work / "builder")
    _pip(builder, "build", *_pyproject()["build-system"]["requires"])
    # other folders, times and permissions
    builds = [
        build(builder, sources, work / name, mode, epoch)
        for name, mode in (("first", 0o644), ("second", 0o600))
    ]
    good = True
    for one, other in zip(*builds, strict=True):
        digest, repeated = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other))
        good &= digest == repeated
        print(f"{one.name}: {one.stat().st_size} bytes, sha256 {digest}")
        print(f"  built again: {'equal' if digest == repeated else f'DIFFERENT, {repeated}'}")
    wheel = builds[0][1]
    faults = content_faults(wheel, sources)
    print(f"content of the wheel: {len(faults)} faults", *faults, sep="\n  ")
    return run_installed(wheel, work) and good and not faults


def build(
    builder: Path, sources: Sequence[str], folder: Path, mode: int, epoch: str
) -> tuple[Path, Path]:
    """Source distribution, and the wheel built from it, of a copy of the sources.

    mode: permissions of the files; epoch: seconds since 1970, for SOURCE_DATE_EPOCH
    """
    for source in sources:
        target = folder / "tree" / source
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, target)
        target.chmod(mode)
    command = [str(builder), "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    _output([*command, str(folder / "tree")], folder, {"SOURCE_DATE_EPOCH": epoch})
    (source_distribution,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return source_distribution, wheel


# The wheel in a new environment


def run_installed(wheel: Path, work: Path) -> bool:
    """Whether the wheel, alone in a new environment, is what is imported, and decodes.

    The dependencies are those of this environment: a .pth file names their folders. Such a file
    does not run .pth files in these folders, so that an editable installation is not seen.
    """
    python = _environment(work / "clean")
    _pip(python, "--no-deps", "--no-index", str(wheel))
    dependencies = run_time_packages(_pyproject()["project"]["dependencies"]).values()
    folders = {str(one.locate_file("")) for one in dependencies if one is not None}
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(_output([str(python), "-c", where], work).strip())
    (site / "dependencies.pth").write_text("\n".join(sorted(folders)) + "\n", encoding="utf-8")
    program = f"import {', '.join(PACKAGES)}\nfor m in {', '.join(PACKAGES)}: print(m.__path__[0])"
    paths = _output([str(python), "-c", program], work).splitlines()
    imported = all(Path(path).parent == site for path in paths)
    print(f"new environment: the packages are {'' if imported else 'NOT '}those of the wheel")
    rerank, example = str(python.with_name("rerank")), site / "rerank" / "example"
    print(_output([rerank, "--version"], work).strip())
    lists = ["--kbest", f"{example}/test.nbest.gz", "--docs", f"{example}/test.docids.gz"]
    weights = ["--weights", f"{example}/weights.ini", "--out", "out.txt"]
    _output([rerank, "decode", *lists, *weights], work, {"RERANK_CACHE": str(work / "cache")})
    lines = (work / "out.txt").read_text(encoding="utf-8").count("\n")
    print(f"rerank decode: {lines} lines")
    return imported and lines > 0


def _environment(folder: Path) -> Path:
    """The interpreter of a new, empty environment."""
    _output([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
    return folder / "bin" / "python"


def _pip(python: Path, *arguments: str) -> None:
    """Install into an environment by the pip of this one."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    _output([*pip, *arguments], python.parent)


def _output(
    command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
) -> str:
    """Standard output of a program, which does not see what PYTHONPATH names."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.update(variables or {})
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Do one of the checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=["licences", "wheel"])
    if parser.parse_args().check == "licences":
        good = check_licences()
    else:
        with tempfile.TemporaryDirectory() as work:
            good = check_wheel(Path(work).resolve())
    sys.exit(0 if good else FAULT)


if __name__ == "__main__":
    main()
