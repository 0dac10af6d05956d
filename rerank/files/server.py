"""A server of language models that gives log-probabilities of text, as OpenAI's completions do.

A request has `echo: true`, `logprobs: 1` and `max_tokens: 1`, for which some servers take 0 as no
limit; what is generated is ignored. Only the URL that is given is asked: no redirect is followed,
and the proxies of the environment are not used.
"""

from __future__ import annotations

import http.client
import json
import queue
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from rerank.errors import RerankError, shown

ECHOES = (
    "vLLM, SGLang and llama_cpp.server (logits_all) return them, llama-server of llama.cpp does not"
)
_MOST = 1 << 28  # bytes of an answer
_READ, _SAID = 1 << 16, 200  # bytes at once, and characters of its messages
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 600.0  # seconds before another try
_PASSING = {408, 425, 429, *range(500, 600)}  # statuses after which a request is tried again
_UNSEEN = re.compile("[^!-~]")  # spaces and what is not ASCII
_AGAIN = "; its log may say why, and the same command goes on from what it has answered"
_LONG = "show fewer sentences, ,sentences=N, raise its limit, or leave the candidate out"
_OF_TEXTS = dict.fromkeys((400, 413, 422), f"; a text may be longer than the model reads: {_LONG}")
_CURES = {
    **_OF_TEXTS,
    401: "; give its key in the environment: OPENAI_API_KEY, or ,key-env=NAME",
    403: "; give its key in the environment: OPENAI_API_KEY, or ,key-env=NAME",
    404: "; a URL ends in /v1 as a rule, and model= is a name that the server lists",
}


class ServerError(RerankError):
    """What a server did wrong, or why it was not reached."""


class TextError(ServerError):
    """A fault about a text; number: of the text among those that the server was to return."""

    number = 0


class _RefusedText(TextError):
    """A status that refuses a text of a request."""


class PassingError(ServerError):
    """A fault that another try may not meet; wait: seconds that the server asks for."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class EchoedText:
    """A text as a server returns it, and perhaps a token more.

    tokens: texts of its tokens; log_probs: of each, None where nothing stands before; generated:
    how many of the last tokens are generated, None if the server does not say.
    """

    tokens: list[str]
    log_probs: list[float | None]
    generated: int | None


def url_of(text: str) -> SplitResult:
    """The parts of a server's URL; ValueError for another one."""
    url = urlsplit(text)
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError("expected a URL of printable ASCII characters")
    if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
        raise ValueError("expected a URL as http://localhost:8000/v1")
    if url.username is not None or url.query or url.fragment:
        raise ValueError("expected a URL without a name, a password and a query")
    return url


class Server:
    """The completions of a model of a server, at URL/completions.

    key: sent with each request, and shown nowhere; seconds: longest time of a request; retries:
    how often one is tried again; threads: requests at once; batch: texts of a request.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None,
        seconds: float,
        retries: int,
        threads: int,
        batch: int,
    ) -> None:
        self._url, self.model, self._key = url_of(url), model, key
        self._path = f"{self._url.path.rstrip('/')}/completions"
        self._seconds, self._retries = seconds, retries
        self._threads, self._batch = threads, batch

    def echoed(self, texts: Sequence[str]) -> Iterator[tuple[int, EchoedText]]:
        """Each text as the server returns it, with its number, in any order.

        ServerError if a request fails; no other is begun then.
        """
        batch = self._batch
        waiting = deque((n, texts[n : n + batch]) for n in range(0, len(texts), batch))
        parts, stopped = len(waiting), threading.Event()
        answers: queue.SimpleQueue[tuple[int, list[EchoedText] | Exception]] = queue.SimpleQueue()

        def work() -> None:
            while waiting and not stopped.is_set():
                try:
                    n, part = waiting.popleft()
                except IndexError:
                    return
                try:
                    answers.put((n, self._answer(part, stopped)))
                except Exception as fault:
                    answers.put((n, fault))

        for _ in range(min(self._threads, parts)):  # daemons, which the end of a run ends, too
            threading.Thread(target=work, daemon=True).start()
        try:
            for _ in range(parts):
                begin, answer = answers.get()
                if isinstance(answer, TextError):
                    answer.number += begin
                if isinstance(answer, Exception):
                    raise answer
                yield from enumerate(answer, begin)
        finally:
            stopped.set()

    def _answer(self, texts: Sequence[str], stopped: threading.Event) -> list[EchoedText]:
        """The answer to one request, tried again after faults that may pass."""
        request = {
            "model": self.model,
            "prompt": texts[0] if len(texts) == 1 else list(texts),
            "echo": True,
            "logprobs": 1,
            "max_tokens": 1,
            "temperature": 0,
        }
        body = json.dumps(request).encode()
        for tries in range(self._retries + 1):
            try:
                return _read(self._sent(body), texts)
            except _RefusedText as fault:
                if len(texts) == 1:
                    raise
                many = f"{fault}; to see which of {len(texts)} texts, add ,batch=1 behind the URL"
                raise ServerError(many) from None
            except PassingError as fault:
                if tries == self._retries or stopped.is_set():
                    raise ServerError(f"{fault} (tries: {tries + 1})") from None
                stopped.wait(min(_LONGEST_WAIT, fault.wait or _FIRST_WAIT * 2**tries))
        raise ServerError("no request was sent")

    def _sent(self, body: bytes) -> bytes:
        """The body of the answer to a request, sent once."""
        url, end = self._url, time.monotonic() + self._seconds
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname or "", url.port, timeout=self._seconds)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        timer: threading.Timer | None = None
        try:
            connection.connect()
            timer = threading.Timer(self._seconds, _cut, [connection.sock])  # of drips, too
            timer.daemon = True
            timer.start()
            connection.request("POST", self._path, body, headers)
            parts, size = [], 0
            with connection.getresponse() as response:
                while part := response.read1(_READ):
                    parts.append(part)
                    size += len(part)
                    if size > _MOST:
                        raise ServerError(f"answered with more than {_MOST:,} bytes")
            if time.monotonic() > end:
                raise TimeoutError
        except (OSError, http.client.HTTPException) as fault:
            if isinstance(fault, TimeoutError) or time.monotonic() > end:
                raise PassingError(
                    f"gave no answer in {self._seconds:g} s; add ,timeout=SECONDS behind the URL"
                ) from None
            reason = (getattr(fault, "strerror", None) or str(fault)).lower()
            raise PassingError(f"cannot be asked: {reason}; is it running?") from None
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()
        if response.status != 200:
            raise self._refused(response, b"".join(parts))
        return b"".join(parts)

    def _refused(self, response: http.client.HTTPResponse, body: bytes) -> ServerError:
        """The error about an answer of another status than 200."""
        status = response.status
        try:
            answer = json.loads(body)
            error = answer.get("error", answer)
            said = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, LookupError, AttributeError, RecursionError):
            said = body.decode(errors="replace").strip()
        if self._key:
            said = said.replace(self._key, "***")
        message = f"answered {status}{f': {said[:_SAID]}' if said else ''}"
        if 300 <= status < 400:
            return ServerError(f"{message}; redirects are not followed: give the URL itself")
        if status in _PASSING:
            asked = response.headers.get("Retry-After", "")
            wait = float(asked) if asked.isdecimal() else 0.0
            return PassingError(f"{message}{_AGAIN}", wait)
        kind = _RefusedText if status in _OF_TEXTS and "echo" not in said else ServerError
        return kind(f"{message}{f'; {ECHOES}' if 'echo' in said else _CURES.get(status, '')}")


def _cut(connection: socket.socket) -> None:
    """End a connection that another thread reads."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _read(body: bytes, texts: Sequence[str]) -> list[EchoedText]:
    """The texts in an answer, in the order of the request."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise PassingError(f"answered with what is no JSON, or half of it{_AGAIN}") from None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ServerError("expected an object with choices, as of OpenAI's completions")
    if sorted(str(x.get("index")) for x in choices) != sorted(map(str, range(len(texts)))):
        cure = "; add ,batch=1 behind the URL" if len(texts) > 1 else ""
        raise ServerError(f"expected {len(texts)} choices, one a text, found {len(choices)}{cure}")
    usage = answer.get("usage")
    made = usage.get("completion_tokens") if isinstance(usage, dict) else None
    generated = {0: 0, len(texts): 1}.get(made) if isinstance(made, int) else None
    choices.sort(key=lambda choice: int(choice["index"]))
    read = list[EchoedText]()
    for choice, text in zip(choices, texts, strict=True):
        try:
            read.append(_echoed(choice, text, generated))
        except TextError as fault:
            fault.number = len(read)
            raise
    return read


def cut_of(tokens: Sequence[str], text: str) -> str:
    """The message about tokens of the begin or the end of a text alone; '' for others.

    Compared are visible ASCII characters. The first token may stand before the text, and the last
    one be generated; a single one may be all that a server generates.
    """
    whole = _UNSEEN.sub("", text)
    read = [
        (len(part), _UNSEEN.sub("", "".join(part)))
        for part in (tokens[1:-1], tokens[1:], tokens[:-1], tokens)
    ]
    if not any(part == whole for _, part in read):
        for n, part in read:
            if n > 1 and part and (whole.startswith(part) or whole.endswith(part)):
                return (
                    f"returns {n:,} tokens, of a part of the text that it is given: it cuts "
                    f"texts; {_LONG}"
                )
    return ""


def _echoed(choice: dict[str, Any], text: str, generated: int | None) -> EchoedText:
    """The tokens of a choice; ServerError if they are not of the text, or not all have numbers."""
    stated = choice.get("logprobs")
    named = stated if isinstance(stated, dict) else {}
    tokens, numbers = named.get("tokens") or [], named.get("token_logprobs") or []
    silent = f"returns no log-probabilities of the text that it is given; {ECHOES}"
    echoed = str(choice.get("text")).startswith(text)
    lists = isinstance(tokens, list) and isinstance(numbers, list)
    texts = lists and all(isinstance(token, str) for token in tokens)
    if not (echoed and lists and numbers) or None in numbers[1:]:
        if cut := cut_of(tokens if texts else [], text):
            raise TextError(cut)
        raise ServerError(silent)
    if len(tokens) != len(numbers) or not texts:
        raise TextError(f"expected {len(numbers)} tokens of a text, found {len(tokens)}")
    predicted = numbers[1 : None if generated == 0 else -1]  # the last one may be generated
    if predicted and not any(predicted):
        raise ServerError(f"returns 0.0 as the log-probability of each token of a text; {ECHOES}")
    for place, (token, number) in enumerate(zip(tokens, numbers, strict=True)):
        fine = isinstance(number, int | float) and -1e6 < number < 1e-3
        if not fine and (place or number is not None):
            raise TextError(
                f"expected a log-probability of token {place + 1} of {len(tokens)}, "
                f"{shown(token.encode())}, found {number!s:.20}"
            )
    return EchoedText(tokens, numbers, generated)
