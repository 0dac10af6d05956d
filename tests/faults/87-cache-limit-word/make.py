import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "tiny_model.py"))
