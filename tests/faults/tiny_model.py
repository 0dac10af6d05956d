"""A model of chance weights over the words of the sound list, in `model`."""

from pathlib import Path

from lm.checkpoint import save_model
from lm.model import Config, DocumentLM
from lm.vocabulary import Vocabulary

lines = Path("dev.kbest").read_text(encoding="utf-8").splitlines()
words = {word for line in lines for word in line.split(" ||| ")[1].split()}
vocabulary = Vocabulary(tuple(word.encode() for word in sorted(words)))
config = Config("codclm", len(vocabulary), 4, 4)
save_model(Path("model"), DocumentLM.seeded(config, 1), vocabulary, {"oov_rate": 0.0})
