"""A language model behind a server as a source of features: log-probability `NAME`.

The server is sent prompt, or sentences before, and candidate as one text; the score is the sum over
the tokens of the candidate. Tokens are found in the text by what they are: the offsets that servers
give count the token that texts begin with, or are missing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from lm.backend import Backend
from lm.scoring import EngineCounts
from rerank.errors import RerankError, UsageError, shown
from rerank.files.cache import Cache
from rerank.files.server import EchoedText, Server, ServerError, TextError, cut_of
from rerank.scorers.cached_scores import ListScores, ListTexts, ScorerCache, Sums
from rerank.scorers.causal_lm import NO_TOKEN
from rerank.scorers.hugging_face import ServerSettings
from rerank.scorers.prompts import MERGED, OF_SOURCE, TARGETS, PromptTemplate, sources_of
from rerank.scorers.window_model import Choices, WindowProblem, WindowSource

VERSION = 1  # of how scores are formed
_KEY = "OPENAI_API_KEY"
_BROKEN = "\ufffd"  # in tokens that end within a character; some servers give them as ''


class _TokenError(ValueError):
    """Tokens of which the score of a candidate is no sum."""


def begins_of(text: str, found: EchoedText) -> list[int | None]:
    """Where the tokens of a text begin in it, without what is generated behind it.

    None within a character, and for a token that stands before the text. Spaces that servers leave
    out of tokens belong to the token behind. ValueError for tokens of another text.
    """
    begins: list[int | None] = []
    at = part = 0  # part: most characters that a run of broken tokens has so far
    for n, token in enumerate(found.tokens):
        if at == len(text) and not part:
            break
        if not (at or part or text.startswith(token)):
            token = token.removeprefix(" ")  # of the first word, in some vocabularies
        known = bool(token) and text.lstrip(" ").startswith(token.lstrip(" "))
        if not (n or known or _BROKEN in token) and found.log_probs[0] is None:
            begins.append(None)
            continue
        if not token or _BROKEN in token:
            if part and n >= len(found.tokens) - (found.generated or 0):
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
            raise _TokenError(
                f"expected tokens of the text that was sent, found {shown(token.encode())} as "
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
    def place(self) -> str:
        """Where the candidate stands: file and line, where these are known."""
        return self.problem.place(self.t, self.k)

    def log_probs(self, found: EchoedText) -> list[float]:
        """Log-probabilities of the candidate's tokens; RerankError if these are not known."""
        try:
            begins = begins_of(self.before + self.text, found)
            own = [n for n, at in enumerate(begins) if at is not None and at >= len(self.before)]
            if not own or begins[own[0]] != len(self.before):
                raise self.problem.merged(self.t, self.k)
            numbers = found.log_probs[own[0] : len(begins)]
            if numbers[0] is None and not self.bare:
                raise _TokenError(
                    "the first token of a text is not predicted; add ,begin=TOKEN behind the URL, "
                    "what texts begin with, as <|endoftext|>, or begin=none to leave it out"
                )
        except _TokenError as fault:
            cut = cut_of(found.tokens, self.before + self.text)
            message = f"the server {cut}" if cut else fault
            raise RerankError(f"{self.problem.label}: {message} ({self.place})") from None
        return [number for number in numbers if number is not None]


class ServerEngine:
    """A server as what scores passages; label: in messages."""

    def __init__(self, server: Server, label: str) -> None:
        self.server, self.label, self.counts = server, label, EngineCounts()
        self.backend = Backend("cpu", dtype="bfloat16")  # as servers compute

    def scores(self, requests: Sequence[Sequence[SentText]]) -> list[Sums]:
        """The score (K,) of each passage of each request; equal texts are sent once."""
        began = perf_counter()
        texts = [*dict.fromkeys(p.before + p.text for own in requests for p in own if p.text)]
        try:
            found = {texts[n]: echo for n, echo in self.server.echoed(texts)}
        except TextError as fault:
            own = (p for one in requests for p in one if p.before + p.text == texts[fault.number])
            raise RerankError(f"{self.label}: the server {fault} ({next(own).place})") from None
        except ServerError as fault:
            raise RerankError(f"{self.label}: the server {fault}") from None
        finally:
            self.counts.seconds += perf_counter() - began
        return [np.array([self._score(p, found) for p in own]) for own in requests]

    def _score(self, passage: SentText, found: dict[str, EchoedText]) -> float:
        if not passage.text:
            return 0.0
        numbers = passage.log_probs(found[passage.before + passage.text])
        self.counts.tokens += len(numbers)
        return sum(numbers)


@dataclass(frozen=True, slots=True)
class TextContext:
    """The text before a candidate."""

    text: str

    @property
    def key(self) -> bytes:
        """The text in bytes."""
        return self.text.encode()


class ServerProblem(WindowProblem[TextContext]):
    """A document under a language model behind a server.

    template: of a prompt, if there is one; sources: of the S sentences, or empty texts; shown: most
    sentences before and after one that the prompt shows, None for all.
    """

    def __init__(
        self,
        *args: Any,
        given: ServerSettings,
        template: PromptTemplate | None,
        sources: Sequence[str],
        shown: int | None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._given, self._template, self._sources = given, template, sources
        self._shown = len(self._lines) if shown is None else shown
        self._begin = "" if given.begin in (None, NO_TOKEN) else str(given.begin)

    def n_tokens(self, t: int) -> int:
        """Candidates of list t: how many tokens they have is known to the server."""
        return len(self._lines[t])

    def read(self, t: int, choices: Choices) -> TextContext:
        """The text before sentence t after the choices of the sentences just before it."""
        chosen = [self._lines[t - len(choices) + i][k] for i, k in enumerate(choices)]
        if self._template is not None:
            prompt = self._template.render(self.label, t, self._sources, chosen, self._shown)
            return TextContext(self._begin + prompt)
        if self._given.join == "newline":
            return TextContext(self._begin + "".join(f"{one}\n" for one in chosen))
        return TextContext(self._begin + " ".join(chosen))

    def request(
        self, t: int, context: TextContext, chosen: Sequence[int] | None = None
    ) -> list[SentText]:
        """The passages of the candidates."""
        before, after = "", ""
        if self._template is None:
            newline = self._given.join == "newline"
            before = " " if not newline and context.text != self._begin else ""
            after = "\n" if newline else ""
        bare = self._given.begin == NO_TOKEN
        return [
            SentText(context.text, f"{before}{self._lines[t][k]}{after}", bare, self, t, k)
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


class ServerScorer(WindowSource[ServerEngine]):
    """The feature of a language model behind a server, in nats: log p of a candidate.

    With a prompt its order is the number of earlier candidates that this may show; else that of the
    window of sentences before. The digest has no URL: a server that moves finds its scores.
    """

    unit = "texts"

    def __init__(self, name: str, given: ServerSettings, cache: Cache | None, *, pmi: bool) -> None:
        self.template = (
            PromptTemplate(Path(given.prompt), given.languages) if given.prompt else None
        )
        self._given = own = given
        # without one nothing is stated, which decode would take for what was given (`as_tuned`)
        begin = {} if given.begin is None else {"begin": given.begin}
        self.chosen: dict[str, object] = {"model": given.model, **begin}
        if self.template is not None:
            used = self.template.variables
            self.side_information = ("source",) if used & {*OF_SOURCE} else ()
            own = replace(given, sentences=given.sentences if TARGETS in used else 0)
            self.chosen |= {
                "prompt": self.template.path.name,
                "prompt_digest": self.template.digest,
            }
        super().__init__(name, _engine_of(name, given), own, cache, pmi=pmi)
        self.window = own
        self.digest = hashlib.sha256(repr(self._facts(null=False)).encode()).hexdigest()

    def _facts(self, *, null: bool) -> tuple[object, ...]:
        """What scores depend on: the model's name, begin and window, and the prompt."""
        given = self._given
        window = replace(self.window, sentences=0) if null else self.window
        found = "server", VERSION, given.model, given.begin, window.identity
        if self.template is None:
            return found
        shown = 0 if null else given.sentences
        return (*found, self.template.digest, *sorted(given.languages.items()), shown)

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """What scores depend on, and how they are formed."""
        return (*self._facts(null=null), *(("lazy",) if self.on_demand and not null else ()))

    def _problem(
        self,
        name: str,
        texts: ListTexts,
        known: ListScores | None,
        *,
        null: bool = False,
        cache: ScorerCache | None = None,
    ) -> ServerProblem:
        """The problem of a document with its cached scores."""
        return ServerProblem(
            self._engine,
            known or ListScores(texts, texts, {}),
            cache or self._score_cache,
            [self.read_by_people(part, self._given.detokenize) for part in texts.lists()],
            0 if null else self.window.order,
            order=self.order,
            label=self._place(name),
            counts=self.lengths,
            kbest=self.lists.get(name),
            given=self._given,
            template=self.template,
            sources=sources_of(texts),
            shown=0 if null else self._given.sentences,
        )


def _engine_of(name: str, given: ServerSettings) -> ServerEngine:
    """The engine of a server, with the key of the environment; UsageError without it."""
    label = f"--lm {name}=openai:{given.url}"
    key = os.environ.get(given.key_env or _KEY)
    if key is None and given.key_env:
        raise UsageError(
            f"{label}: key-env={given.key_env}: no such variable of the environment; export it, or "
            "leave key-env out"
        )
    if key is not None and not (key.isascii() and key.isprintable() and key):
        raise UsageError(
            f"{label}: expected a key of printable ASCII characters in {given.key_env or _KEY}"
        )
    server = Server(
        given.url,
        given.model,
        key=key,
        seconds=given.timeout,
        retries=given.retries,
        threads=given.concurrency,
        batch=given.batch,
    )
    return ServerEngine(server, label)
