"""Sequence-to-sequence models converted for CTranslate2: how they find and score translations.

`ct2-transformers-converter` writes such a folder, in any quantisation; its option copy_files takes
along the files of the tokenizer, of transformers, which must be there. The random numbers of
CTranslate2 belong to a thread that computes, and begin with the seed where that thread begins:
draws are made by a translator of their own, opened for one call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lm.causal_folder import (
    UNLIMITED,
    CausalFolderError,
    check_regular_files,
    folder_digest,
)
from lm.generation import Generated, GenerationSettings
from lm.seq2seq import (
    Ids,
    SourceAndTarget,
    TranslationTexts,
    frames,
)

MODEL = "model.bin"
_TOKENIZER = "tokenizer_config.json"
_CONVERTER = "ct2-transformers-converter, with copy_files"


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedEngine:
    """A converted model that finds and scores translations on a device.

    model: what it reads; threads: of a translator, 0 for as many as CTranslate2 chooses;
    translator: of CTranslate2.
    """

    model: TranslationTexts
    folder: Path
    device: torch.device
    threads: int
    translator: Any

    def generated(
        self, sources: Sequence[Ids], given: GenerationSettings, seed: int
    ) -> list[list[Generated]]:
        """Translations of each source: best first, or as drawn; see `lm.generation.Generated`.

        Draws depend on the sources, their order and the seed alone.
        """
        import ctranslate2

        translator, before = self.translator, self.model.target.before
        way: dict[str, Any] = {"beam_size": given.beam}
        if given.temperature is not None:
            ctranslate2.set_random_seed(seed)
            translator = _translator(self.folder, self.device, self.threads)
            way = {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": given.temperature}
        longest = min(given.longest, self.model.positions - len(self.model.target))
        found = translator.translate_batch(
            [self._tokens(source) for source in sources],
            target_prefix=[self._tokens(before)] * len(sources) if before else None,
            num_hypotheses=given.number,
            max_decoding_length=longest + len(before),
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
            **way,
        )
        end, drawn = self.model.tokenizer.eos_token_id, given.temperature is not None
        lists: list[list[Generated]] = []
        for one in found:
            own = []
            for tokens, score in zip(one.hypotheses, one.scores, strict=True):
                ids = self.model.tokenizer.convert_tokens_to_ids(tokens)[len(before) :]
                ended = ids[-1:] == [end]
                own.append(Generated(ids[:-1] if ended else ids, ended, 0.0 if drawn else score))
            lists.append(own)
        return lists

    def scores(self, requests: Sequence[Sequence[SourceAndTarget]]) -> list[NDArray[np.float64]]:
        """Log p (K,) of each request's translations, in nats: sums over their labels."""
        pairs = [one for own in requests for one in own]
        end = len(self.model.target.after)  # which CTranslate2 adds
        found = self.translator.score_batch(
            [self._tokens(one.source) for one in pairs],
            [self._tokens(one.target[: len(one.target) - end]) for one in pairs],
            max_input_length=0,
        )
        sums = np.array([sum(one.log_probs) for one in found], np.float64)
        return np.split(sums, np.cumsum([len(own) for own in requests])[:-1])

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        """Names of tokens, which are what CTranslate2 reads."""
        found: list[str] = self.model.tokenizer.convert_ids_to_tokens(list(ids))
        return found


def open_converted_model(
    folder: Path,
    src: str | None,
    tgt: str | None,
    device: torch.device,
    threads: int | None,
) -> ConvertedEngine:
    """The converted model of a folder; CausalFolderError if there is none, or a package is missing.

    src, tgt: languages, as of `lm.seq2seq.open_translation_model`.
    """
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
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        threads_used = threads or 0
        translator = _translator(folder, device, threads_used)
    except Exception as fault:  # of any kind: neither package documents them
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise CausalFolderError(
            f"{folder}: it cannot be loaded as a converted model with its tokenizer: "
            f"{reason:.300}; convert it again: {_CONVERTER} and the files of the tokenizer"
        ) from None
    source, target = frames(folder, tokenizer, src, tgt)
    most = int(min(tokenizer.model_max_length, UNLIMITED))
    own = hashlib.sha256(folder_digest(folder, None).encode())
    with (folder / MODEL).open("rb") as file:
        own.update(hashlib.file_digest(file, "sha256").digest())
    texts = TranslationTexts(tokenizer, own.hexdigest(), most, source, target)
    return ConvertedEngine(texts, folder, device, threads_used, translator)


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
