import subprocess

from support.cli import start

import rerank


def test_the_package_runs_as_a_module() -> None:
    done = start("--version", stdout=subprocess.PIPE)
    assert rerank.__version__ in done.communicate()[0].decode()
    assert done.returncode == 0
