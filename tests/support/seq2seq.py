"""Tiny sequence-to-sequence models of Hugging Face, and their own loss as the truth of scores."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TEXT = ("the lamp is lit", "it gives light", "she is old . he reads", "no sea at night", "")
SHAPE = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
}
CODES = ["eng_Latn", "zho_Hans", "zho_Hant"]
LANGUAGES = {
    "nllb": ",src=zho_Hans,tgt=eng_Latn",
    "mbart": ",src=zh_CN,tgt=en_XX",
    "mbart50": ",src=zh_CN,tgt=en_XX",
    "marian": "",
    "marian-many": ",tgt=eng",
    "marian-last": "",
    "t5": ",prefix=put into English:",
}


def pieces() -> list[tuple[str, float]]:
    """Pieces of made-up text for a unigram tokenizer: its words, and all letters."""
    words = sorted({word for line in TEXT for word in line.split()})
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz0123456789.:<>/_E"]
    return [*((f"▁{word}", -3.0) for word in words[::2]), *((letter, -6.0) for letter in letters)]


def tokenizer(kind: str) -> Any:
    """A tokenizer that places special tokens as models of this kind have them."""
    import transformers

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = [*((one, 0.0) for one in special), *pieces()]
    if kind == "nllb":
        numbers = {piece: n for n, (piece, _) in enumerate(vocabulary)}
        return transformers.NllbTokenizer(vocab=numbers, merges=[], additional_special_tokens=CODES)
    if kind in ("mbart", "mbart50"):
        name = "MBartTokenizer" if kind == "mbart" else "MBart50Tokenizer"
        return getattr(transformers, name)(vocab=vocabulary)
    if kind == "t5":
        own = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces()]
        return transformers.T5Tokenizer(vocab=own, extra_ids=0)
    if kind == "marian-last":  # as of OPUS-MT, whose last token is the padding
        return _of_marian(["<unk>", "</s>"], ["<pad>"])
    many = [">>eng<<", ">>fra<<"] if kind == "marian-many" else []
    return _of_marian(["<unk>", "</s>", "<pad>", *many])


def _of_marian(first: Sequence[str], last: Sequence[str] = ()) -> Any:
    """One of `tokenizers` in place of Marian's own, which needs the package sentencepiece."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    before, after = ([(name, 0.0) for name in names] for names in (first, last))
    own = Tokenizer(models.Unigram([*before, *pieces(), *after], 0))
    own.pre_tokenizer, own.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    own.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    names = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=own, **names)


def model(kind: str, words: Any, positions: int = 64) -> Any:
    """A model with large random weights for a tokenizer."""
    import torch
    import transformers

    torch.manual_seed(7)
    ids = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id}
    start = words.eos_token_id if kind == "nllb" else words.pad_token_id
    common = {**ids, "vocab_size": len(words), "decoder_start_token_id": start}
    common |= {"max_position_embeddings": positions, "init_std": 0.4, "bos_token_id": 0}
    if kind == "t5":
        t5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 1, "num_decoder_layers": 2}
        config = transformers.T5Config(
            **ids, **t5, num_heads=4, vocab_size=len(words), decoder_start_token_id=start
        )
        config.initializer_factor = 0.3
        return transformers.T5ForConditionalGeneration(config)
    if kind == "nllb":
        return transformers.M2M100ForConditionalGeneration(
            transformers.M2M100Config(**common, **SHAPE)
        )
    if kind in ("mbart", "mbart50"):
        return transformers.MBartForConditionalGeneration(
            transformers.MBartConfig(**common, **SHAPE)
        )
    end = None if kind == "marian-last" else words.eos_token_id  # CTranslate2 forces none
    config = transformers.MarianConfig(
        **common, **SHAPE, decoder_vocab_size=len(words), forced_eos_token_id=end
    )
    return transformers.MarianMTModel(config)


def save(folder: Path, kind: str = "marian", positions: int = 64) -> Path:
    """The folder of a new model and its tokenizer."""
    pytest.importorskip("transformers")
    from transformers.utils import logging

    logging.disable_progress_bar()
    words = tokenizer(kind)
    own = model(kind, words, positions)
    if hasattr(own, "final_logits_bias"):
        own.final_logits_bias.normal_()
    if kind == "marian-last":
        own.final_logits_bias[0, words.pad_token_id] = -1e4
    own.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


@cache
def plain(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the model of a folder, in float64, as transformers opens them."""
    import torch
    import transformers

    own = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64)
    return transformers.AutoTokenizer.from_pretrained(folder), own.eval()


def log_p(
    folder: Path, languages: str, sources: Sequence[str], targets: Sequence[str], mark: str = ""
) -> float:
    """log p of the last target given the sources and the targets before, with a mark after each.

    Without context it is minus the model's loss with `labels=`, summed.
    """
    import torch

    words, own = plain(folder)
    given = dict(one.split("=") for one in languages.split(",")[1:])
    if "src" in given:
        words.src_lang, words.tgt_lang = given["src"], given["tgt"]
    first = f"{given['prefix']} {sources[0]}" if "prefix" in given else sources[0]
    ids, _ = _framed(words, "text", [first, *sources[1:]], mark)
    labels, context = _framed(words, "text_target", targets, mark)
    if "tgt" in given and "src" not in given:
        ids.insert(0, words.convert_tokens_to_ids(f">>{given['tgt']}<<"))
    with torch.no_grad():
        result = own(input_ids=torch.tensor([ids]), labels=torch.tensor([labels]))
    if not context:
        return -float(result.loss) * len(labels)
    log_probs = result.logits[0].log_softmax(1)
    scored = [n for n in range(len(labels)) if n not in context]
    return sum(float(log_probs[n, labels[n]]) for n in scored)


def _framed(words: Any, kind: str, texts: Sequence[str], mark: str) -> tuple[list[int], range]:
    """Ids of texts in the special tokens of one, and the places of all but the last one."""
    plain = {"split_special_tokens": True}
    whole = words(**{kind: texts[-1]}, **plain).input_ids
    first = int(type(words).__name__ in ("NllbTokenizer", "MBart50Tokenizer"))
    ids = []
    for one in texts[:-1]:
        ids += words(**{kind: one}, add_special_tokens=False, **plain).input_ids
        ids += [words.convert_tokens_to_ids(mark)] if mark else []
    return [*whole[:first], *ids, *whole[first:]], range(first, first + len(ids))
