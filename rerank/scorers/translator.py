"""Candidates of sources by a sequence-to-sequence model, for `rerank candidates`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from lm.causal_folder import CausalFolderError
from lm.ctranslate2 import ConvertedEngine, open_converted_model
from lm.seq2seq import Generated, GenerationSettings, SourceAndTarget, TranslationEngine
from rerank.corpus.documents import Documents
from rerank.corpus.spelling import detokenised
from rerank.errors import InputError
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.scorers.model_options import LanguageModelOption, TranslationSettings
from rerank.scorers.models import choose_device, open_models
from rerank.scorers.translation_model import TranslationScorer, unknown_letters

Ids = tuple[int, ...]  # what the model reads of a source


@dataclass(slots=True, eq=False)
class Translator:
    """A model that translates, and how; seed: of draws.

    cut: number of candidates that did not end; too_long: of those whose texts, as the tokenizer
    reads them, have more tokens than the model has positions.
    """

    engine: TranslationEngine | ConvertedEngine
    settings: TranslationSettings
    generation: GenerationSettings
    seed: int
    cut: int = 0
    too_long: int = 0

    @property
    def drawn(self) -> bool:
        """Whether candidates are draws, in place of those of a beam."""
        return self.generation.temperature is not None

    @property
    def alone(self) -> bool:
        """Whether a source is translated on its own, so that a list does not depend on others."""
        return self.drawn or self.generation.groups > 1

    def read(
        self, sources: Sequence[bytes], name: str, documents: Documents, notices: Notices
    ) -> list[Ids]:
        """What the model reads of each source; InputError for one that is too long.

        Warnings: of sources that are blank, of a script that the model does not know, and of those
        that are cut at the model's positions.
        """
        model, prefix = self.engine.model, self.settings.prefix
        language, place = self.settings.detokenize_source, display(name)
        lines = detokenised(sources, language) if language else sources
        before = f"{prefix.rstrip()} " if prefix else ""
        tokens = model.encode([before + line.decode() for line in lines])
        most = model.positions - len(model.source)
        long = [t for t, ids in enumerate(tokens) if len(ids) > most]
        if long and self.settings.long != "cut":
            raise InputError(
                f"expected a source of at most {most:,} tokens, for which the model has "
                f"positions, found one of {len(tokens[long[0]]):,}; add ,long=cut behind the "
                "folder of --model, which cuts it there, or part it",
                source=name,
                line=documents.line(long[0]) + 1,
            )
        letters = Counter(chain.from_iterable(line.decode() for line in lines))
        if blank := [t for t, source in enumerate(sources) if not source.strip()]:
            at = documents.line(blank[0]) + 1
            notices.add("blank-source-line", source=place, line=at, count=len(blank))
        unknown_letters(model, letters, target=False).warn_of_language(
            "the model",
            notices,
            unit="source letter",
            source=place,
            cure="give the model of this pair of languages",
        )
        if long:
            notices.add(
                "long-text",
                source=place,
                line=documents.line(long[0]) + 1,
                count=len(long),
                asked=True,
                positions=f"{model.positions:,}",
                name="the model",
                shortened="cut",
            )
        return [model.source.around([ids[:most]]) for ids in tokens]

    def header(self, sources: Sequence[bytes]) -> bytes:
        """A line that is equal for runs with equal results."""
        content = hashlib.sha256(b"\n".join(sources)).hexdigest()
        facts = {"model": self.engine.model.digest, **asdict(self.settings)}
        facts |= {**asdict(self.generation), "sources": content}
        del facts["adapter"]  # which the model's digest has
        return json.dumps({**facts, "seed": self.seed if self.drawn else None}).encode() + b"\n"

    def translate(self, sources: Sequence[Ids], begin: int) -> list[list[dict[str, Any]]]:
        """Candidates of each source, as JSON lists have them: in the order of the beam.

        Draws and groups by probability. begin: number of the first source, on which its draws
        depend, and on the seed, but not on what else is translated.
        """
        decode = self.engine.model.tokenizer.decode
        generated: list[list[Generated]] = []
        for n, batch in enumerate([[ids] for ids in sources] if self.alone else [sources], begin):
            seed = int(np.random.SeedSequence((self.seed, n)).generate_state(1)[0])
            generated += self.engine.generated(batch, self.generation, seed)
        self.cut += sum(not candidate.ended for beam in generated for candidate in beam)
        written = [
            [" ".join(decode(c.tokens, skip_special_tokens=True).split()) for c in beam]
            for beam in generated
        ]
        log_probs = self._log_probs(sources, written)
        return [*map(self._list, generated, written, log_probs)]

    def _log_probs(
        self, sources: Sequence[Ids], written: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        """Log p of the distinct texts of each source, without those that are too long.

        Their tokens are the tokenizer's, not those that were generated: a text has many
        segmentations, and some tokens are not written.
        """
        model = self.engine.model
        most = model.positions - len(model.target)
        distinct = [[*dict.fromkeys(texts)] for texts in written]
        tokens = iter(model.encode([*chain.from_iterable(distinct)], target=True))
        read = [{text: next(tokens) for text in texts} for texts in distinct]
        fitting = [{text: x for text, x in ids.items() if len(x) <= most} for ids in read]
        self.too_long += sum(map(len, read)) - sum(map(len, fitting))
        pairs = [
            [SourceAndTarget(source, model.target.around([x])) for x in ids.values()]
            for source, ids in zip(sources, fitting, strict=True)
        ]
        rows = zip(fitting, self.engine.scores(pairs), strict=True)
        return [dict(zip(texts, scores.tolist(), strict=True)) for texts, scores in rows]

    def _list(
        self,
        generated: Sequence[Generated],
        written: Sequence[str],
        log_probs: Mapping[str, float],
    ) -> list[dict[str, Any]]:
        """Candidates with distinct texts, best first; log_probs: of those that are kept."""
        votes, candidates = Counter(written), list[dict[str, Any]]()
        for text, log_prob in log_probs.items():
            score = log_prob if self.alone else generated[written.index(text)].score
            features = {"logprob": log_prob} | ({"votes": votes[text]} if self.drawn else {})
            candidates.append({"text": text, "score": score, "features": features})
        if self.alone:
            candidates.sort(key=lambda candidate: -candidate["score"])
        return candidates if self.drawn else candidates[: self.generation.number]


def open_engine(
    model: LanguageModelOption, device: str, threads: int | None, *, converted: bool
) -> tuple[TranslationEngine | ConvertedEngine, TranslationSettings]:
    """The model of a folder of Hugging Face or of CTranslate2; InputError for an invalid one."""
    settings = model.window
    if not isinstance(settings, TranslationSettings):
        raise TypeError(type(settings))
    if converted:
        languages = settings.src, settings.tgt
        chosen = choose_device(device, threads)
        try:
            return open_converted_model(model.folder, *languages, chosen, threads), settings
        except CausalFolderError as fault:
            raise InputError(str(fault)) from None
    on: dict[str, Any] = {"device": device, "threads": threads}
    (scorer,) = open_models([model], None, **on, dtype="float32", deterministic=False)
    if not isinstance(scorer, TranslationScorer):
        raise TypeError(type(scorer))
    return scorer.engine, scorer.window
