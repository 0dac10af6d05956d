"""Causal transformers of Hugging Face against one forward pass in float64 for each candidate."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import causal

from lm.backend import Backend
from lm.causal import NOTHING, CausalContext, CausalEngine, CausalModel, open_causal_model, trees_of
from lm.causal_folder import CausalFolderError
from lm.trie import Candidates


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    kinds = ("gpt2", "llama", "gemma2", "mamba")
    return {kind: causal.save(tmp_path_factory.mktemp(kind), kind) for kind in kinds}


@pytest.fixture(scope="module")
def models(folders: dict[str, Path]) -> dict[str, CausalModel]:
    return {kind: open_causal_model(folder) for kind, folder in folders.items()}


def sentences(n: int, seed: int = 2) -> list[list[int]]:
    """Sentences of three different tokens, so that many prefixes are shared."""
    rng = np.random.default_rng(seed)
    return [rng.integers(40, 43, rng.integers(1, 6)).tolist() for _ in range(n)]


def contexts() -> list[CausalContext]:
    """Contexts of up to three sentences, some of them beginnings of others or of equal tokens."""
    result = [CausalContext((0,))]
    for n, sentence in enumerate(sentences(7, 3)):
        result.append(result[n // 2].after(sentence))
    start = CausalContext((0,))
    return [*result, start.after([40, 41]).after([42]), start.after([40]).after([41]).after([42])]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("deterministic", [False, True], ids=["batched", "deterministic"])
def test_scores_are_those_of_single_forward_passes(
    models: dict[str, CausalModel], kind: str, deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, backend = models[kind], Backend(deterministic=deterministic)
    engine = CausalEngine(model, backend)
    engine.check()
    lists = [sentences(7), [*sentences(5, 4), []]]
    trees = [trees_of(Candidates.of([of_list]), most=8) for of_list in lists]
    requests = [(context, n % 2) for n, context in enumerate(contexts())]
    result = engine.scores([(context, trees[n]) for context, n in requests])
    for (context, n), scores in zip(requests, result, strict=True):
        expected = [causal.obvious(model, context.ids, one) for one in lists[n]]
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    tokens = sum(len(one) for _, n in requests for one in lists[n])
    assert engine.counts.tokens == tokens
    assert 0 < engine.counts.nodes < tokens + sum(len(c.ids) for c, _ in requests)
    monkeypatch.setattr("lm.causal.STORED", 0)  # stored contexts may be dropped
    again = [engine.scores([(context, trees[n])])[0] for context, n in requests]
    np.testing.assert_allclose(np.concatenate(again), np.concatenate(result), atol=1e-5)
    assert len(engine._stored) <= 2
    if deterministic:  # scores do not depend on what was scored before
        for (context, n), own in zip(requests, result, strict=True):
            (alone,) = CausalEngine(model, backend).scores([(context, trees[n])])
            np.testing.assert_array_equal(alone, own)


def test_a_context_that_grows_is_read_from_where_it_ended(models: dict[str, CausalModel]) -> None:
    engine = CausalEngine(models["gpt2"], Backend())
    trees = trees_of(Candidates.of([[[40, 41], [40, 42]]]))
    context = CausalContext((0,)).after([40, 41, 42]).after([43, 44])
    engine.scores([(context, trees)])
    assert engine.counts.nodes == 5 + 2  # all but the last token, then root and prefix
    engine.scores([(context.after([45, 46]), trees)])
    assert engine.counts.nodes == 7 + 2 + 2
    assert engine._size == sum(t.numel() for pairs in engine._stored.values() for t in pairs)


def test_what_contexts_have_in_common_is_read_once(models: dict[str, CausalModel]) -> None:
    engine, candidates = CausalEngine(models["gpt2"], Backend()), [[40, 41], [40, 42]]
    trees = trees_of(Candidates.of([candidates]))
    prompt = (40,) * 37
    contexts = [CausalContext((0, *prompt, 43 + n, 50, 60 + n)) for n in range(3)]
    result = engine.scores([(one, trees) for one in contexts])
    assert engine.counts.nodes == (38 + 2) + 2 * 2 + 3 * 2  # the first, what is new of two, trees
    engine.scores([(CausalContext((0, *prompt, 41)), trees)])  # begins another one
    assert engine.counts.nodes == 50 + 2
    for context, scores in zip(contexts, result, strict=True):
        expected = [causal.obvious(models["gpt2"], context.ids, one) for one in candidates]
        np.testing.assert_allclose(scores, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_texts_may_begin_with_no_token(models: dict[str, CausalModel], kind: str) -> None:
    model = replace(models[kind], begin=NOTHING)
    engine, lists = CausalEngine(model, Backend()), [*sentences(7), []]
    engine.check()
    trees = trees_of(Candidates.of([lists]), most=8)
    bare = [replace(one, ids=(NOTHING, *one.ids[1:])) for one in contexts()]
    for context, found in zip(bare, engine.scores([(one, trees) for one in bare]), strict=True):
        whole = [[*context.ids[1:], *of_list] for of_list in lists]
        starts = [max(1, len(one) - len(own)) for one, own in zip(whole, lists, strict=True)]
        expected = [
            causal.obvious(model, one[:n], one[n:]) if one else 0.0
            for one, n in zip(whole, starts, strict=True)
        ]
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["gemma2", "mamba"])
def test_some_architectures_cannot_read_a_tree(models: dict[str, CausalModel], kind: str) -> None:
    with pytest.raises(ValueError, match="scores a prefix tree otherwise than single texts"):
        CausalEngine(models[kind], Backend()).check()


# Folders
def test_a_model_is_opened_with_its_positions_and_the_token_that_texts_begin_with(
    models: dict[str, CausalModel], folders: dict[str, Path], tmp_path: Path
) -> None:
    opened = models["gpt2"]
    assert (opened.positions, opened.begin) == (64, 0)
    lamp, end, empty = opened.encode(["the lamp\n", "\n", ""])
    assert (lamp[-1:], empty) == (end, [])
    assert 0 not in opened.encode(["<|endoftext|>"])[0]  # special only where we put it
    assert opened.digest == open_causal_model(causal.save(tmp_path / "again")).digest
    words = tmp_path / "again" / "tokenizer.json"
    words.write_text(json.dumps({**json.loads(words.read_text()), "truncation": None}, indent=1))
    digests = {opened.digest, models["llama"].digest, open_causal_model(tmp_path / "again").digest}
    assert len(digests) == 3


def test_folders_in_other_forms_are_the_models_that_they_hold(tmp_path: Path) -> None:
    """In parts, as GPT-2 was first published, and with a mask that its code has now."""
    from safetensors.torch import load, save

    ids = torch.tensor([[0, 40, 41, 9]])
    for n, change in enumerate([in_two(), None]):
        folder = tmp_path / f"{n}"
        (change or (lambda path: causal.save(path, "gpt2")))(folder)
        if change is None:
            result = load((folder / "model.safetensors").read_bytes())
            bare = {name.removeprefix("transformer."): tensor for name, tensor in result.items()}
            bare["h.0.attn.masked_bias"] = torch.tensor(-1e4)
            (folder / "model.safetensors").write_bytes(save(bare, {"format": "pt"}))
        plain = causal.save(tmp_path / f"plain{n}", "gpt2" if change is None else "llama")
        models = [open_causal_model(one).model for one in (folder, plain)]
        with torch.no_grad():
            a, b = (model(ids).logits for model in models)
        assert torch.equal(a, b)


def of_own_code(folder: Path) -> None:
    causal.save(folder)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "own.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('it was run')")


def of_causal(change: Callable[[Path], object], kind: str = "llama") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        causal.save(folder, kind)
        change(folder)

    return make


def tensors(
    change: Callable[[dict[str, torch.Tensor]], object], kind: str = "llama"
) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        from safetensors.torch import load, save

        result = load((folder / "model.safetensors").read_bytes())
        change(result)
        (folder / "model.safetensors").write_bytes(save(result, {"format": "pt"}))

    return of_causal(edit, kind)


def config(kind: str = "llama", **changes: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        result = json.loads((folder / "config.json").read_bytes()) | changes
        (folder / "config.json").write_text(json.dumps(result))

    return of_causal(edit, kind)


def saved_as(kind: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        import transformers

        shape = transformers.AutoConfig.from_pretrained(folder)
        getattr(transformers, kind)(shape).save_pretrained(folder)

    return of_causal(edit)


def in_parts(name: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / "sub").mkdir()
        index = {"weight_map": {"model.norm.weight": name}}
        (folder / "model.safetensors").rename(folder / "a.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return of_causal(edit)


def instead(name: str, put: Callable[[Path], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        put(folder / name)

    return of_causal(edit)


def of_files(**files: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        folder.mkdir()
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_bytes(content)

    return make


def in_two(head: str = "b", *, twice: bool = False) -> Callable[[Path], None]:
    """The head apart, in a file of which the index says that it is `head`; the norm `twice`."""

    def edit(folder: Path) -> None:
        from safetensors.torch import load, save

        result = load((folder / "model.safetensors").read_bytes())
        (folder / "model.safetensors").unlink()
        parts = {"a": {n: t for n, t in result.items() if n != HEAD}, "b": {HEAD: result[HEAD]}}
        parts["b"] |= {NORM: result[NORM] + 1} if twice else {}
        for name, part in parts.items():
            (folder / f"{name}.safetensors").write_bytes(save(part, {"format": "pt"}))
        index = {name: f"{part}.safetensors" for part in parts for name in parts[part]}
        index |= {NORM: "a.safetensors", HEAD: f"{head}.safetensors"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))

    return of_causal(edit)


HEAD, NORM, BIAS = "lm_head.weight", "model.norm.weight", "transformer.h.0.attn.c_attn.bias"
UP = "model.layers.0.mlp.up_proj.weight"
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: None, "expected a folder written by save_pretrained, found none"),
    (of_files(README__md=b"?"), "expected config.json of a Hugging Face model, found none"),
    (of_files(config__json=b"{}", pytorch_model__bin=b"\x80\x04."),
        "found only pytorch_model.bin; write"),
    (of_files(config__json=b"{", model__safetensors=b""), "expected JSON"),
    (of_files(config__json=b'{"model_type": "gpt2"}', model__safetensors=b"no tensors"),
        "cannot load it as a causal language model"),
    (of_own_code, "code of its own"),
    (of_files(config__json=b"{}", model__gguf=b"GGUF"), "found only model.gguf; write"),
    (of_files(adapter_config__json=b"{}"), "expected a whole model, found an adapter"),
    (of_causal(lambda folder: (folder / "adapter_config.json").touch()), "found an adapter"),
    (config(architectures=["xLlamaForCausalLMx"]), "expected .*, found xLlamaForCausalLMx"),
    (in_two("a"), "found them without lm_head.weight; give"),
    (in_two(twice=True), "and in no other, found model.norm.weight elsewhere"),
    (tensors(lambda found: found.update({NORM: found[NORM].to(torch.float8_e5m2)})), "e5m2 for fl"),
    (tensors(lambda found: found.update({BIAS: found[BIAS].to(torch.int8)}), "gpt2"),
        "int8 for fl"),
    (saved_as("LlamaModel"), "expected .* LlamaForCausalLM, found LlamaModel"),
    (saved_as("LlamaForSequenceClassification"), "found LlamaForSequenceClassification"),
    (tensors(lambda found: found.pop("lm_head.weight")), "without lm_head.weight; give"),
    (tensors(lambda found: found.update(e=found.pop("lm_head.weight"))), "use: e;"),
    (tensors(lambda found: found.update({UP: found[UP].to(torch.int8)})), "int8 for float32"),
    (of_causal(lambda folder: (folder / "tokenizer.json").unlink(), "gpt2"), "tokenizer"),
    (tensors(lambda found: found.pop("model.norm.weight")), "without model.norm.weight"),
    (tensors(lambda found: found.update(v=torch.ones(1))), "which it does not use: v;"),
    (config(num_hidden_layers=1), "which it does not use: model.layers.1.* and 6 more"),
    (config(num_hidden_layers=3), "without model.layers.2.* and 6 more"),
    (config(num_hidden_layers=10**9), "tensors of 1,000,000,000 layers .* found 21 tensors"),
    (config(vocab_size=300), r"embed_tokens.weight \(280 × 16 for 300 × 16\)"),
    (config(vocab_size=10**9), "found them smaller than config.json states"),
    (config(intermediate_size=12), r"down_proj.weight \(16 × 24 for 16 × 12\)"),
    (config("gpt2", n_positions=10**9), "found them smaller than config.json states"),
    (config(configuration_files=["../config.4.0.json"]), "names of files beside it, found '../c"),
    (in_parts("sub/a.safetensors"), "names of files beside it, found 'sub/a.safetensors'"),
    (in_parts("../a.safetensors"), "names of files beside it, found '../a.safetensors'"),
    (in_parts("a.bin"), "found 'a.bin', which is none"),
    (instead("config.json", lambda path: path.write_text('{"a":' * 10**5)), "expected JSON"),
    (instead("tokenizer_config.json", os.mkfifo), "a regular file.* found a pipe"),
    (instead("vocab.json", lambda path: path.symlink_to("/dev/zero")), "a regular file"),
    (instead("additional_chat_templates/a.jinja", os.mkfifo), "a regular file"),
    (instead("added_tokens.json", Path.mkdir), "a regular file.* found a folder"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_folder_of_a_model_is_refused_in_a_line(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    if message != "code of its own":
        pytest.importorskip("transformers")
    make(tmp_path / "m")
    with pytest.raises(CausalFolderError, match=message) as fault:
        _ = open_causal_model(tmp_path / "m").model
    assert "\n" not in str(fault.value)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_files(config__json=b"{}", model__safetensors=b"")(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CausalFolderError, match=r"pip install 'rerank-mt\[hf\]'"):
        open_causal_model(tmp_path / "m")


def test_a_tokenizer_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")

    def missing(*given: object, **more: object) -> None:
        raise ImportError(
            "\nMarianTokenizer requires the SentencePiece library but it was not found\n"
        )

    of_files(config__json=b"{}", model__safetensors=b"")(tmp_path / "m")
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", missing)
    with pytest.raises(CausalFolderError, match=r"pip install sentencepiece$") as fault:
        open_causal_model(tmp_path / "m")
    assert "\n" not in str(fault.value)
