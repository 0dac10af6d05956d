"""A tiny COMET checkpoint with random weights, and what COMET itself predicts with it.

    COMET_PYTHON tests/support/tiny_comet.py KIND FOLDER < SAMPLES

COMET_PYTHON is the interpreter of an environment with COMET 2.2 (recipes/adapters/estimators);
KIND is a key of `KINDS`.
It writes FOLDER/checkpoints/model.ckpt and FOLDER/hparams.yaml, reads a JSON list of
samples and prints the scores of `predict` as another.
"""

import json
import string
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

KINDS = {
    "referenceless": "ReferencelessRegression",
    "regression": "RegressionMetric",
    "unified": "UnifiedMetric",
}


def save_encoder(folder: Path) -> None:
    """An XLM-RoBERTa of two layers that reads letters, with random weights."""
    tokenizers, transformers = import_module("tokenizers"), import_module("transformers")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = f"▁{string.ascii_letters}{string.digits}.,é"
    vocabulary = [*((mark, 0.0) for mark in special), *((letter, -3.0) for letter in letters)]
    vocabulary.append(("<mask>", 0.0))
    own = tokenizers.Tokenizer(tokenizers.models.Unigram(vocabulary, unk_id=3))
    own.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    own.decoder = tokenizers.decoders.Metaspace()
    own.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    words = transformers.XLMRobertaTokenizerFast(tokenizer_object=own, model_max_length=128)
    words.save_pretrained(folder)
    config = transformers.XLMRobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=130,
        type_vocab_size=1,
        pad_token_id=1,
    )
    import_module("torch").manual_seed(0)
    transformers.XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def save_checkpoint(kind: str, folder: Path) -> Path:
    """The checkpoint of an estimator of this kind, as COMET's trainer writes it."""
    encoder = folder.resolve() / "encoder"
    save_encoder(encoder)
    shape: dict[str, Any] = {"hidden_sizes": [8, 4], "layer": "mix", "layer_norm": False}
    if kind == "unified":
        shape = {"hidden_sizes": [8], "sent_layer": "mix", "input_segments": ["mt", "src"]}
    model = getattr(import_module("comet.models"), KINDS[kind])(
        encoder_model="XLM-RoBERTa", pretrained_model=str(encoder), local_files_only=True, **shape
    )
    trainer = import_module("pytorch_lightning").Trainer(
        logger=False, enable_checkpointing=False, accelerator="cpu", enable_progress_bar=False
    )
    trainer.strategy.connect(model)
    path = folder / "checkpoints" / "model.ckpt"
    path.parent.mkdir()
    trainer.save_checkpoint(path)
    settings = import_module("yaml").safe_dump(dict(model.hparams))
    (folder / "hparams.yaml").write_text(settings)
    return path


def main() -> None:
    """Write the checkpoint and print scores, nothing else on standard output."""
    kind, folder = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr
    path = save_checkpoint(kind, Path(folder))
    model = import_module("comet").load_from_checkpoint(str(path))
    result = model.predict(json.load(sys.stdin), batch_size=2, gpus=0, progress_bar=False)
    answers.write(json.dumps([float(score) for score in result.scores]))


if __name__ == "__main__":
    main()
