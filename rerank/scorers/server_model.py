"""A language model behind a server as a source of features: log-probability `NAME`.

The server is sent prompt, or sentences before, and candidate as one text; the score is the sum over
the tokens of the candidate. Tokens are found in the text by what they are: the offsets that servers
give count the token that texts begin with, or are missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any, cast

import numpy as np

from lm.backend import Backend
from lm.scoring import EngineCounts
from rerank.errors import RerankError, shown
from rerank.files.cache import AnswerStore, Cache
from rerank.files.server import ServerError, server_of
from rerank.scorers.cached_scores import Choices, ListTexts, Sums, digest
from rerank.scorers.causal_lm import NO_TOKEN
from rerank.scorers.completions import EchoedText, TextError, cut_of, echoes
from rerank.scorers.model_options import ServerSettings, Window
from rerank.scorers.model_source import group_of
from rerank.scorers.prompts import MERGED, PromptTemplate, sources_of
from rerank.scorers.window_model import WindowProblem, WindowSource

VERSION = 1  # of how scores are formed
_BROKEN = "\ufffd"  # in tokens that end within a character; some servers give them as ''


class _TokenError(ValueError):
    """Tokens of which the score of a candidate is no sum."""


def begins_of(text: str, echo: EchoedText) -> list[int | None]:
    """Where the tokens of a text begin in it, without what is generated behind it.

    None within a character, and for a token that stands before the text. Spaces that servers leave
    out of tokens belong to the token behind. ValueError for tokens of another text.
    """
    begins: list[int | None] = []
    at = part = 0  # part: most characters that a run of broken tokens has so far
    for n, token in enumerate(echo.tokens):
        if at == len(text) and not part:
            break
        if not (at or part or text.startswith(token)):
            token = token.removeprefix(" ")  # of the first word, in some vocabularies
        known = bool(token) and text.lstrip(" ").startswith(token.lstrip(" "))
        if not (n or known or _BROKEN in token) and echo.log_probs[0] is None:
            begins.append(None)
            continue
        if not token or _BROKEN in token:
            if part and n >= len(echo.tokens) - (echo.generated or 0):
                break
            begins.append(None if part else at)
            part += max(1, len(token))
            continue
        start = text.find(token, at + bool(part), at + part + len(token))
        if part and start < 0 and len(text) - at <= part:
            break
        if not part and start < 0:
            spaces = len(text[at:]) - len(text[at:].lstrip(" "))
            start = text.find(token, at + spaces, at + spaces + len(token))
        if start < 0:
            seen = shown(token.encode(errors="backslashreplace"))
            raise _TokenError(
                f"expected tokens of the text that was sent, found {seen} as "
                f"token {n + 1}; the server gives other tokens, or their ids, as vLLM with "
                "return_tokens_as_token_ids"
            )
        begins.append(start if part else at)
        at, part = start + len(token), 0
    if len(text) - at > part:
        lack = shown(text[at:].encode())
        raise _TokenError(f"expected tokens of the text that was sent, which lack {lack}")
    return begins


@dataclass(frozen=True, slots=True, eq=False)
class SentText:
    """A candidate, or what is scored of it, and all that stands before it in what is sent.

    bare: whether a first token that is not predicted adds nothing.
    """

    before: str
    text: str
    bare: bool
    problem: ServerProblem
    t: int
    k: int

    @property
    def whole(self) -> str:
        """What is sent."""
        return self.before + self.text

    @property
    def key(self) -> bytes:
        """What determines the score under a model."""
        return digest(f"{len(self.before)} {self.bare} {self.whole}".encode())

    @property
    def place(self) -> str:
        """Where the candidate stands: file and line, where these are known."""
        return self.problem.place(self.t, self.k)

    def log_probs(self, echo: EchoedText) -> list[float]:
        """Log-probabilities of the candidate's tokens; RerankError if these are not known."""
        try:
            begins = begins_of(self.whole, echo)
            behind = (n for n, at in enumerate(begins) if at is not None and at >= len(self.before))
            first = next(behind, None)
            if first is None or begins[first] != len(self.before):
                raise self.problem.merged(self.t, self.k)
            numbers = echo.log_probs[first : len(begins)]
            if numbers[0] is None and not self.bare:
                raise _TokenError(
                    "the first token of a text is not predicted; add ,begin=TOKEN behind the URL, "
                    "what texts begin with, as <|endoftext|>, or begin=none to leave it out"
                )
        except _TokenError as fault:
            cut = cut_of(echo.tokens, self.whole)
            message = f"the server {cut}" if cut else fault
            raise RerankError(f"{self.problem.label}: {message} ({self.place})") from None
        return [number for number in numbers if number is not None]


class ServerEngine:
    """A server as what scores passages; its answers are kept in the cache; label: in messages."""

    def __init__(self, label: str, settings: ServerSettings, cache: Cache | None) -> None:
        self.label, self._settings = label, settings
        self._server = server_of(label, settings.url, settings, settings.concurrency)
        group = group_of(("answers of a server", VERSION, settings.model))
        self._answers, self.counts = AnswerStore(cache, group), EngineCounts()
        self.backend = Backend("cpu", dtype="bfloat16")  # as servers compute

    def scores(self, requests: Sequence[Sequence[SentText]]) -> list[Sums]:
        """The score (K,) of each passage of each request; what was answered is not asked again."""
        began = perf_counter()
        passages: dict[str, dict[bytes, SentText]] = {}  # that are to be scored, by text and key
        for passage in chain(*requests):
            if passage.text and self._known(passage) is None:
                passages.setdefault(passage.whole, {})[passage.key] = passage

        def read(text: str, echo: EchoedText) -> int:
            """How many tokens were scored; what was answered is kept before more is asked."""
            scored = 0
            for key, passage in passages[text].items():
                numbers = passage.log_probs(echo)
                self._answers.put(key, repr(sum(numbers)).encode())
                scored += len(numbers)
            return scored

        try:
            for scored in echoes(self._server, self._settings, [*passages], read):
                self.counts.tokens += scored
        except TextError as fault:
            place = next(iter(passages[fault.text].values())).place
            raise RerankError(f"{self.label}: the server {fault} ({place})") from None
        except ServerError as fault:
            raise RerankError(f"{self.label}: the server {fault}") from None
        finally:
            self.counts.seconds += perf_counter() - began
        return [np.array([self._known(p) or 0.0 for p in of_list]) for of_list in requests]

    def _known(self, passage: SentText) -> float | None:
        """The score of a passage that was answered; None for none, and what is no score."""
        try:
            score = float(self._answers.get(passage.key) or "nan")
        except ValueError:
            return None
        return score if -np.inf < score < np.inf else None


class ServerProblem(WindowProblem):
    """A document under a language model behind a server; arguments as of `WindowProblem`."""

    def __init__(
        self, source: ServerScorer, name: str, texts: ListTexts, *arguments: Any, **more: Any
    ) -> None:
        super().__init__(source, name, texts, *arguments, **more)
        self._template, self._sources = source.template, sources_of(texts)
        self._shown = 0 if self.null else source.settings.sentences
        begin = self.window.begin
        self._begin = "" if begin in (None, NO_TOKEN) else str(begin)

    def n_tokens(self, t: int) -> int:
        """Candidates of list t: how many tokens they have is known to the server."""
        return len(self._lines[t])

    def read(self, t: int, choices: Choices) -> tuple[str, bytes]:
        """The text before sentence t after the choices of the sentences just before it."""
        chosen = self.chosen_texts(t, choices)
        if self._template is not None:
            before = self._template.render(self.label, t, self._sources, chosen, self._shown)
        elif self.window.join == "newline":
            before = "".join(f"{text}\n" for text in chosen)
        else:
            before = " ".join(chosen)
        context = self._begin + before
        return context, context.encode()

    def request(self, t: int, context: str, chosen: Sequence[int] | None = None) -> list[SentText]:
        """The passages of the candidates."""
        newline, joined = self.window.join == "newline", self._template is None
        before = " " if joined and not newline and context != self._begin else ""
        after = "\n" if joined and newline else ""
        bare = self.window.begin == NO_TOKEN
        return [
            SentText(context, f"{before}{self._lines[t][k]}{after}", bare, self, t, k)
            for k in (range(len(self._lines[t])) if chosen is None else chosen)
        ]

    def merged(self, t: int, k: int) -> RerankError:
        """An error about a token that begins before candidate k and ends in it."""
        place = self.place(t, k)
        if self._template is not None:
            return self._template.at_end(f"{MERGED} ({place})")
        return RerankError(
            f"{self.label}: expected tokens that end where a candidate begins, found one that the "
            f"tokenizer merges with it; add ,join=newline behind the URL, or space ({place})"
        )


class ServerScorer(WindowSource):
    """The feature of a language model behind a server, in nats: log p of a candidate.

    With a prompt its order is the number of earlier candidates that this may show; else that of the
    window of sentences before. The digest has no URL: a server that moves finds its scores.
    """

    problem_of = ServerProblem
    unit = "texts"

    def __init__(
        self, name: str, settings: ServerSettings, cache: Cache | None, *, pmi: bool
    ) -> None:
        self.template: PromptTemplate | None = None
        self.settings, window = settings, cast(Window, settings)
        # without one nothing is stated, which decode would take for what was given (`as_tuned`)
        begin = {} if settings.begin is None else {"begin": settings.begin}
        self.chosen = {"model": settings.model, **begin}
        if settings.prompt:
            self.template = PromptTemplate(settings)
            self.side_information, window = self.template.side_information, self.template.window
            self.chosen |= self.template.entries
        engine = ServerEngine(f"--lm {name}=openai:{settings.url}", settings, cache)
        arithmetic = engine.backend.dtype, engine.backend.deterministic
        super().__init__(name, lambda: engine, window, cache, arithmetic=arithmetic, pmi=pmi)
        self.digest = hashlib.sha256(repr(self.facts(null=False)).encode()).hexdigest()

    def facts(self, *, null: bool) -> tuple[object, ...]:
        """The model's name, begin and window, and the prompt."""
        window = self.null_window if null else self.window
        facts = "server", VERSION, self.settings.model, self.settings.begin, window.identity
        if self.template is None:
            return facts
        return (*facts, self.template.digest, *self.template.facts(null=null))
