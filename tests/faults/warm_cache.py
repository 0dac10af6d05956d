"""The tiny model and, in the user's cache, its scores of the sound list."""

import runpy
from pathlib import Path

from rerank.notices import Notices
from rerank.pipeline import Lists, score

runpy.run_path(str(Path(__file__).with_name("tiny_model.py")))
score(Lists("dev.kbest", "dev.docs", lms=(("lm", Path("model")),)), "scored", notices=Notices())
Path("scored").unlink()
