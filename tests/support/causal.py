"""Tiny Hugging Face models with tokenizers trained on the spot, and scores in the obvious way."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

TEXT = ("the lamp is lit", "it gives light", "she is old . he reads", "no sea at night")
WIDTH, LAYERS, HEADS = 16, 2, 4


def tokenizer() -> Any:
    """A byte-level BPE tokenizer of made-up text."""
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=280,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    own.train_from_iterator([f"{line}\n" for line in TEXT] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=own, bos_token="<|endoftext|>")


def model(kind: str, vocabulary: int, positions: int = 64) -> Any:
    """A model with large random weights, of an architecture: gpt2, llama, gemma2, mamba."""
    import torch
    import transformers

    torch.manual_seed(5)
    common = {"vocab_size": vocabulary, "initializer_range": 0.3}
    shape = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS}
    attention = {**shape, "num_attention_heads": HEADS, "num_key_value_heads": HEADS // 2}
    attention |= {"intermediate_size": 24, "max_position_embeddings": positions}
    if kind == "gpt2":
        gpt2 = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": positions}
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(**common, **gpt2, bos_token_id=0, eos_token_id=0)
        )
    if kind == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**common, **attention))
    if kind == "gemma2":
        capped = transformers.Gemma2Config(
            **common, **attention, head_dim=4, final_logit_softcapping=0.5
        )
        return transformers.Gemma2ForCausalLM(capped)
    return transformers.MambaForCausalLM(transformers.MambaConfig(**common, **shape))


def save(folder: Path, kind: str = "gpt2", positions: int = 64, more: Sequence[str] = ()) -> Path:
    """The folder of a new model and its tokenizer, which may have more special tokens."""
    pytest.importorskip("transformers")
    from transformers.utils import logging

    logging.disable_progress_bar()
    words = tokenizer()
    words.add_special_tokens({"additional_special_tokens": list(more)} if more else {})
    model(kind, len(words), positions).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def obvious(opened: Any, context: Sequence[int], sentence: Sequence[int]) -> float:
    """log p(sentence | context) in float64: one forward pass, a sum of softmax entries."""
    import copy

    import torch

    exact = copy.deepcopy(opened.model).double()
    with torch.no_grad():
        logits = exact(input_ids=torch.tensor([[*context, *sentence]])).logits[0]
    log_probs = torch.log(torch.softmax(logits, dim=1))
    places = range(len(context), len(context) + len(sentence))
    return sum(float(log_probs[p - 1, token]) for p, token in zip(places, sentence, strict=True))


class Window(Protocol):
    """What a model is given of the document so far, at most, and how sentences are joined."""

    @property
    def sentences(self) -> int | None: ...
    @property
    def tokens(self) -> int | None: ...
    @property
    def join(self) -> str: ...


def definition(folder: Path, window: Window) -> Callable[..., float]:
    """log p(lists, texts, t) of sentence t of texts after those before, whole sentences of them.

    The longest candidate of a list decides how many tokens are left for its context.
    """
    from lm.causal import open_causal_model

    model, space = open_causal_model(folder), window.join == "space"

    @cache
    def tokens(text: str, first: bool) -> list[int]:
        if space and not text:
            return []
        return model.encode([" " * (space and not first) + text + "\n" * (not space)])[0]

    @cache
    def scored(context: tuple[int, ...], sentence: tuple[int, ...]) -> float:
        return obvious(model, context, sentence)

    def log_p(lists: Sequence[Sequence[str]], texts: Sequence[str], t: int) -> float:
        sizes = [[max(len(tokens(x, f)) for f in (True, False)) for x in own] for own in lists]
        most = model.positions - max(sizes[t])
        most = most if window.tokens is None else min(most, window.tokens)
        before = list(texts[:t] if window.sentences is None else texts[:t][-window.sentences :])
        while sum(max(len(tokens(one, f)) for f in (True, False)) for one in before) > most:
            del before[0]
        context = [model.begin]
        for one in before:
            context += tokens(one, len(context) == 1)
        return scored(tuple(context), tuple(tokens(texts[t], len(context) == 1)))

    return log_p
