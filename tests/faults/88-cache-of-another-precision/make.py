import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "warm_cache.py"))
