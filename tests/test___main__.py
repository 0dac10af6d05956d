import subprocess
import sys

import rerank


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rerank", "--version"], capture_output=True, text=True, check=True
    )
    assert rerank.__version__ in done.stdout
