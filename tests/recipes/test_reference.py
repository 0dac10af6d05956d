"""The page of the reference is the one that the program gives."""

import subprocess
import sys

from support.world import ROOT


def test_the_page_of_the_reference_is_current() -> None:
    """`python recipes/reference.py > recipes/reference.md` makes it anew."""
    program = [sys.executable, str(ROOT / "recipes" / "reference.py")]
    page = subprocess.run(program, capture_output=True, check=True, cwd=ROOT).stdout
    assert page == (ROOT / "recipes" / "reference.md").read_bytes()
