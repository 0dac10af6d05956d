"""Sequence-to-sequence models converted for CTranslate2: how they find and score translations.

`ct2-transformers-converter` writes such a folder, in any quantisation; its option copy_files takes
along the files of the tokenizer, of transformers, which must be there. The random numbers of
CTranslate2 belong to a thread and begin with the seed where the thread begins: each call that draws
opens another translator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lm.causal_folder import (
    SAFE,
    UNLIMITED,
    CausalFolderError,
    check_regular_files,
    digest_of,
    folder_digest,
    reason_of,
)
from lm.seq2seq import Generated, GenerationSettings, Ids, SourceAndTarget, TranslationTexts, frames

MODEL = "model.bin"
_TOKENIZER = "tokenizer_config.json"
_CONVERTER = "ct2-transformers-converter, with copy_files"


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedEngine:
    """A converted model on a device; threads: of a translator, 0 for CTranslate2's choice."""

    model: TranslationTexts
    folder: Path
    device: torch.device
    threads: int
    translator: Any

    def generated(
        self, sources: Sequence[Ids], settings: GenerationSettings, seed: int
    ) -> list[list[Generated]]:
        """Translations of each source: best first, or as drawn (by all sources and the seed)."""
        import ctranslate2

        translator, before = self.translator, self.model.target.before
        way: dict[str, Any] = {"beam_size": settings.beam}
        drawn = settings.temperature is not None
        if drawn:
            ctranslate2.set_random_seed(seed)
            translator = _translator(self.folder, self.device, self.threads)
            way = {"beam_size": 1, "sampling_topk": 0}
            way["sampling_temperature"] = settings.temperature
        longest = min(settings.longest, self.model.positions - len(self.model.target))
        results = translator.translate_batch(
            [self._tokens(source) for source in sources],
            target_prefix=[self._tokens(before)] * len(sources) if before else None,
            num_hypotheses=settings.number,
            max_decoding_length=longest + len(before),
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
            **way,
        )
        end, lists = self.model.tokenizer.eos_token_id, list[list[Generated]]()
        for result in results:
            lists.append([])
            for tokens, score in zip(result.hypotheses, result.scores, strict=True):
                ids = self.model.tokenizer.convert_tokens_to_ids(tokens)[len(before) :]
                ended = ids[-1:] == [end]
                ids = ids[:-1] if ended else ids
                lists[-1].append(Generated(ids, ended, 0.0 if drawn else score))
        return lists

    def scores(self, requests: Sequence[Sequence[SourceAndTarget]]) -> list[NDArray[np.float64]]:
        """Log p (K,) of each request's translations, in nats: sums over their labels."""
        pairs = [*chain.from_iterable(requests)]
        end = len(self.model.target.after)  # which CTranslate2 adds
        results = self.translator.score_batch(
            [self._tokens(pair.source) for pair in pairs],
            [self._tokens(pair.target[: len(pair.target) - end]) for pair in pairs],
            max_input_length=0,
        )
        sums = np.array([sum(result.log_probs) for result in results], np.float64)
        return np.split(sums, np.cumsum([*map(len, requests)])[:-1])

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        """Names of tokens, which are what CTranslate2 reads."""
        names: list[str] = self.model.tokenizer.convert_ids_to_tokens(list(ids))
        return names


def open_converted_model(
    folder: Path, src: str | None, tgt: str | None, device: torch.device, threads: int | None
) -> ConvertedEngine:
    """The converted model of a folder for these languages; CausalFolderError if there is none."""
    check_regular_files(folder)
    if not (folder / MODEL).is_file():
        raise CausalFolderError(
            f"{folder}: expected {MODEL} of CTranslate2, found none; a model of Hugging Face is "
            f"converted by {_CONVERTER} tokenizer.json {_TOKENIZER}"
        )
    if not (folder / _TOKENIZER).is_file():
        raise CausalFolderError(
            f"{folder}: expected the files of a tokenizer, found no {_TOKENIZER}; copy them from "
            f"the model that was converted, or convert it with copy_files"
        )
    try:
        import ctranslate2  # noqa: F401
        import transformers
    except ImportError as fault:
        raise CausalFolderError(
            f"{folder}: converted models need the packages ctranslate2 and transformers ({fault}); "
            "install them: pip install 'rerank-mt[ct2]'"
        ) from None
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **SAFE)
        translator = _translator(folder, device, threads or 0)
    except Exception as fault:  # of any kind: neither package documents them
        raise CausalFolderError(
            f"{folder}: it cannot be loaded as a converted model with its tokenizer: "
            f"{reason_of(fault)}; convert it again: {_CONVERTER} and the files of the tokenizer"
        ) from None
    source, target = frames(folder, tokenizer, src, tgt)
    most = int(min(tokenizer.model_max_length, UNLIMITED))
    digest = hashlib.sha256(folder_digest(folder, None).encode() + digest_of(folder / MODEL))
    texts = TranslationTexts(tokenizer, digest.hexdigest(), most, source, target)
    return ConvertedEngine(texts, folder, device, threads or 0, translator)


def _translator(folder: Path, device: torch.device, threads: int) -> Any:
    """A translator of CTranslate2 with one thread that computes, which has its helpers."""
    import ctranslate2

    return ctranslate2.Translator(
        str(folder),
        device=device.type,
        device_index=device.index or 0,
        inter_threads=1,
        intra_threads=threads,
    )
