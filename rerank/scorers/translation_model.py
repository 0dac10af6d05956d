"""A Hugging Face sequence-to-sequence model as a source of features: log-probability `NAME`.

The model reads the source and predicts the candidate, log p(candidate | source); or, in reverse,
reads the candidate and predicts the source, the channel of a noisy-channel model. With sentences of
context the sources before and the candidates chosen there stand before source and candidate, each
tokenised on its own, with a separator after each if there is one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lm.seq2seq import (
    VERSION,
    Frame,
    Generated,
    GenerationSettings,
    Ids,
    SourceAndTarget,
    TranslationEngine,
    TranslationModel,
    TranslationTexts,
)
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import NamedLists
from rerank.corpus.spelling import detokenised
from rerank.errors import InputError, SideError
from rerank.files.cache import Cache
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.scorers.cached_scores import Choices, ListTexts
from rerank.scorers.features import ScoredDocument
from rerank.scorers.model_options import TranslationSettings
from rerank.scorers.unknown_words import OF_PAIR, UnknownWords
from rerank.scorers.window_model import WindowProblem, WindowSource, read_by_people

if TYPE_CHECKING:
    from lm.ctranslate2 import ConvertedEngine

SOURCE = "source"  # the kind of side information that are the source lines
_Tokens = list[list[list[int]]]  # of the texts of each list


class TranslationContext(NamedTuple):
    """Tokens before what the model reads and before what it predicts, of so many sentences."""

    read: tuple[int, ...] = ()
    predicted: tuple[int, ...] = ()
    sentences: int = 0


class TranslationProblem(WindowProblem):
    """A document under a sequence-to-sequence model; arguments as of `WindowProblem`."""

    def __init__(
        self, source: TranslationScorer, name: str, texts: ListTexts, *arguments: Any, **more: Any
    ) -> None:
        super().__init__(source, name, texts, *arguments, **more)
        self.model = source.model
        lines = read_by_people(texts.side[SOURCE], self.window.detokenize_source)
        self._sources = [[line] for line in lines]

    def _encoded(self, lists: Sequence[Sequence[str]], *, target: bool, prefix: str) -> _Tokens:
        texts = [prefix + text for text in chain(*lists)]
        tokens = iter(self.model.encode(texts, target=target))
        return [[next(tokens) for _ in texts] for texts in lists]

    @cached_property
    def _read(self) -> tuple[_Tokens, _Tokens]:
        """What the model reads of each list, as the first text of its input, and as a later one."""
        prefix = f"{self.window.prefix.rstrip()} " if self.window.prefix else ""
        lists = self._lines if self.window.reverse else self._sources
        first = self._encoded(lists, target=False, prefix=prefix)
        if self.window.long == "cut":
            most = self.model.positions - len(self.model.source)
            self.counts.texts.update(
                (self.label, t, k)
                for t, texts in enumerate(first)
                for k, tokens in enumerate(texts)
                if len(tokens) > most
            )
            first = [[tokens[:most] for tokens in texts] for texts in first]
        later = self._encoded(lists, target=False, prefix="") if prefix and self.sentences else []
        return first, later or first

    @cached_property
    def _predicted(self) -> _Tokens:
        """What the model predicts of each list."""
        lists = self._sources if self.window.reverse else self._lines
        return self._encoded(lists, target=True, prefix="")

    @cached_property
    def _separator(self) -> list[int]:
        """The token behind each sentence of context, if there is one."""
        return [] if self.window.separator is None else [separator_of(self.model, self.window)]

    def _one(self, tokens: _Tokens, t: int, k: int) -> list[int]:
        """What tokens have of candidate k of list t, or of its sentence."""
        return tokens[t][k if len(tokens[t]) > 1 else 0]

    def n_tokens(self, t: int) -> int:
        """Tokens that are predicted of list t."""
        return sum(map(len, self._predicted[t]))

    def read(self, t: int, choices: Choices) -> tuple[TranslationContext, bytes]:
        """The context of sentence t after the choices of the sentences just before it, and its key.

        Of these the last ones that are within the model's positions with the longest texts of list
        t: whole sentences. O(tokens).
        """
        (first, later), predicted = self._read, self._predicted
        sides = (first, self.model.source), (predicted, self.model.target)
        rooms = [self._room(t, tokens, frame) for tokens, frame in sides]
        n = 0
        for n, k in enumerate(reversed(choices), 1):
            for side, tokens in enumerate((first, predicted)):
                rooms[side] -= len(self._one(tokens, t - n, k)) + len(self._separator)
            if min(rooms) < 0:
                self.counts.contexts += 1
                n -= 1
                break
        context = TranslationContext()
        for s in range(t - n, t):
            k, read = choices[s - t], later if context.sentences else first
            context = TranslationContext(
                (*context.read, *self._one(read, s, k), *self._separator),
                (*context.predicted, *self._one(predicted, s, k), *self._separator),
                context.sentences + 1,
            )
        return context, repr(tuple(context)).encode()

    def _room(self, t: int, tokens: _Tokens, frame: Frame) -> int:
        """How many tokens fit before the longest text of list t; InputError if that is too long."""
        most, sizes = self.model.positions - len(frame), [*map(len, tokens[t])]
        if max(sizes) <= most:
            return most - max(sizes)
        reads, k = tokens is self._read[0], int(np.argmax(sizes))
        of_source = reads is not self.window.reverse
        message = (
            f"expected {'a source' if of_source else 'candidates'} of at most {most:,} tokens, for "
            f"which the model of {self.label} has positions, found one of {sizes[k]:,}; "
            f"{'add ,long=cut behind the folder of --lm, which cuts it there, or ' * reads}"
        )
        if not of_source:
            raise self.too_long(t, k, f"{message}leave it out")
        number = t if self._kbest is None else int(np.flatnonzero(self._kbest.counts)[t])
        raise SideError(f"{message}part it", kind=SOURCE, document=self.name, sentence=number)

    def request(
        self, t: int, context: TranslationContext, chosen: Sequence[int] | None = None
    ) -> list[SourceAndTarget]:
        """Inputs and labels of the candidates."""
        read, predicted = self._read[context.sentences > 0], self._predicted
        return [
            SourceAndTarget(
                self.model.source.around([context.read, self._one(read, t, k)]),
                self.model.target.around([context.predicted, self._one(predicted, t, k)]),
                len(context.predicted),
            )
            for k in (range(len(self._lines[t])) if chosen is None else chosen)
        ]


def separator_of(model: TranslationModel, given: TranslationSettings) -> int:
    """Id of the token after each sentence of context; ValueError for a name of no token."""
    token = model.tokenizer.get_vocab().get(given.separator)
    if token is None:
        raise ValueError(
            f"separator={given.separator}: its tokenizer has no such token; give another, such as "
            f"{model.tokenizer.eos_token}, or leave it out"
        )
    return int(token)


def unknown_letters(
    model: TranslationTexts, letters: Mapping[str, int], *, target: bool
) -> UnknownWords:
    """Counts of the letters of sources or translations, and of those that a model cannot read."""
    counts = UnknownWords()
    for letter, n in letters.items():
        if letter.isalpha():
            counts.count(letter.encode(errors="replace"), n, model.knows(letter, target=target))
    return counts


class TranslationScorer(WindowSource):
    """The feature of one sequence-to-sequence model, in nats.

    A sentence's score is minus the model's loss for its labels, summed: log p of its tokens with
    the end of the sentence and the token of its language, if the model has one.
    """

    problem_of = TranslationProblem
    side_information = (SOURCE,)
    model: TranslationModel
    shortened = "cut"

    def __init__(
        self,
        name: str,
        model: TranslationModel,
        given: TranslationSettings,
        new_engine: Callable[[TranslationModel], TranslationEngine],
        cache: Cache | None = None,
        **how: Any,
    ) -> None:
        super().__init__(name, partial(new_engine, model), given, cache, **how)
        self.model = model
        self._source_letters, self._letters = Counter[str](), Counter[str]()
        identity = repr((model.digest, given.identity))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()

    def check(self) -> None:
        """ValueError for a separator that is no token."""
        if self.window.separator is not None:
            separator_of(self.model, self.window)

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists), whose letters are counted for a warning."""
        for _, kbest in documents:
            texts = self._texts(kbest)
            lines = texts.text.decode(errors="replace").split("\n")
            firsts = texts.offsets[:-1][np.diff(texts.offsets) > 0].tolist()
            self._source_letters.update(texts.side[SOURCE].decode(errors="replace"))
            self._letters.update(chain.from_iterable(lines[row] for row in firsts))
        return super().score(documents)

    def finish(self, source: str, notices: Notices) -> None:
        """Warnings: of memory and lengths, and of texts in a script that the model cannot read."""
        super().finish(source, notices)
        reverse = self.window.reverse
        sources = unknown_letters(self.model, self._source_letters, target=reverse)
        sources.warn_of_language(self.label, notices, unit="source letter", cure=OF_PAIR)
        texts = unknown_letters(self.model, self._letters, target=not reverse)
        texts.warn_of_language(self.label, notices, unit="letter", source=source)
        self._source_letters, self._letters = Counter(), Counter()

    def facts(self, *, null: bool) -> tuple[object, ...]:
        """Model, settings and arithmetic."""
        window = self.null_window if null else self.window
        return "translation", VERSION, self.model.digest, window.identity, *self.arithmetic


# Candidates, for `rerank candidates`


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
        # log p of distinct texts, by the tokens of the tokenizer, not those that were generated: a
        # text has many segmentations, and some tokens are not written
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
        log_probs = [dict(zip(texts, scores.tolist(), strict=True)) for texts, scores in rows]
        return [*map(self._list, generated, written, log_probs)]

    def _list(
        self, generated: Sequence[Generated], written: Sequence[str], log_probs: Mapping[str, float]
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
