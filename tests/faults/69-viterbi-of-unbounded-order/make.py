"""The tiny model, of unbounded order."""

from pathlib import Path

from lm.checkpoint import save_model
from lm.model import Config, DocumentLM
from lm.vocabulary import Vocabulary

vocabulary = Vocabulary((b"it", b"light"))
config = Config("ccdclm", len(vocabulary), 4, 4)
save_model(Path("model"), DocumentLM.seeded(config, 1), vocabulary, {"oov_rate": 1.0})
