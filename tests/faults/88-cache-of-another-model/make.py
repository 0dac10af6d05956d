import runpy
from pathlib import Path

from lm.checkpoint import load_model, save_model
from lm.model import DocumentLM

runpy.run_path(str(Path(__file__).parents[1] / "warm_cache.py"))
saved = load_model(Path("model"))
other = DocumentLM.seeded(saved.model.config, 2)
save_model(Path("model"), other, saved.vocabulary, {"oov_rate": 0.0})
