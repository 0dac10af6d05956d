import os
import subprocess
import sys

import pytest
from support.cli import start

import rerank


def test_the_package_runs_as_a_module() -> None:
    done = start("--version", stdout=subprocess.PIPE)
    assert rerank.__version__ in done.communicate()[0].decode()
    assert done.returncode == 0


@pytest.mark.parametrize(("given", "kept"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_the_command_starts_no_threads_of_numpy_unless_told(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], kept: str
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    program = (
        "import os, sys\n"
        "from rerank.cli import main\n"
        "sys.argv = ['rerank', '--version']\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-2:] == [kept, "False"]
