"""Requests of JSON to a server and its answers: several at once, tried again where that may help.

Only the URL that is given is asked: no redirect is followed, and the proxies of the environment are
not used. The key of a server stands in no message.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from rerank.errors import RerankError, UsageError
from rerank.notices import log

Result = TypeVar("Result")
_KEY = "OPENAI_API_KEY"
_READ, _SAID = 1 << 16, 200  # bytes at once, and characters of its messages
# bytes of an answer: a token, which is a byte of the request or more, has some 100 to 300 bytes in
# an answer with log-probabilities
_LEAST, _EACH = 1 << 20, 1000
_LONG = 5.0  # seconds of a pause that a run speaks of
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 600.0  # seconds before another try
_PASSING = {408, 425, 429, *range(500, 600)}  # statuses after which a request is tried again
_AGAIN = "; its log may say why, and the same command goes on from what it has answered"
_NO_KEY = "; give its key in the environment: OPENAI_API_KEY, or ,key-env=NAME"
_CURES = {
    **dict.fromkeys(range(300, 400), "; redirects are not followed: give the URL itself"),
    401: _NO_KEY,
    403: _NO_KEY,
    404: "; a URL ends in /v1 as a rule, and model= is a name that the server lists",
}
_SHORTEST, _PIECE = 4, 6  # characters of a key that is hidden, and of a part of it
# a character, perhaps with the escapes of URLs, of JSON, or of these escaped once more
_CHARACTER = re.compile(r"(?:%|\\+u00)([0-9a-f]{2})|\\*(.)", re.IGNORECASE | re.DOTALL)


class ServerError(RerankError):
    """What a server did wrong, or why it was not reached.

    status: of its answer, 0 without one; number: of the request among those that were to be sent.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status, self.number = status, 0


class PassingError(ServerError):
    """A fault that another try may not meet; wait: seconds that the server asks for."""

    def __init__(self, message: str, wait: float = 0.0, status: int = 0) -> None:
        super().__init__(message, status)
        self.wait = wait


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


def key_of(label: str, url: str, variable: str | None, *, insecure: bool) -> str | None:
    """The key of a server in the environment; UsageError for none, and one that all could read.

    label: of the scorer, in messages; variable: that has the key, else OPENAI_API_KEY, which may
    be missing; insecure: whether the key may be sent over http to another machine.
    """
    key = os.environ.get(variable or _KEY)
    if key is None and variable:
        raise UsageError(
            f"{label}: key-env={variable}: no such variable of the environment; export it, "
            "or leave key-env out"
        )
    if key is not None and not (key.isascii() and key.isprintable() and key):
        raise UsageError(
            f"{label}: expected a key of printable ASCII characters in {variable or _KEY}"
        )
    parts = url_of(url)
    local = parts.hostname == "localhost"
    with suppress(ValueError):
        local = local or ipaddress.ip_address(parts.hostname or "").is_loopback
    if key is not None and parts.scheme == "http" and not (local or insecure):
        raise UsageError(
            f"{label}: the key in {variable or _KEY} would be sent over http, which others can "
            "read; give a URL of https, or add ,insecure=yes behind the URL"
        )
    return key


def server_of(label: str, url: str, settings: Any, threads: int) -> Server:
    """The server of settings that have key_env, insecure, timeout and retries, as of `key_of`."""
    key = key_of(label, url, settings.key_env, insecure=settings.insecure)
    seconds, retries = settings.timeout, settings.retries
    return Server(url, key=key, seconds=seconds, retries=retries, threads=threads)


class Server:
    """A server that answers requests of JSON that are posted to paths behind its URL.

    key: sent with each request, and shown nowhere; seconds: longest time of a request, from its
    connection to the end of its answer; retries: how often one is tried again; threads: requests
    at once.
    """

    def __init__(
        self, url: str, *, key: str | None, seconds: float, retries: int, threads: int
    ) -> None:
        self._url, self._key = url_of(url), key
        self._seconds, self._retries, self._threads = seconds, retries, threads
        self._resumed = 0.0  # when requests may be sent again

    def answers(
        self,
        path: str,
        requests: Iterable[Mapping[str, object]],
        read: Callable[[int, Any], Result],
        n: int,
    ) -> Iterator[Result]:
        """What is read of the answer to each request, in any order.

        requests: at most n, taken when they are sent, by one thread at a time.
        read: of the request's number and the answer, in any thread. It may raise a PassingError,
        after which the request is tried again, and others. When a request fails for good no
        other is begun; those in flight are waited for, and then the error of the first one that
        failed is raised.
        """
        waiting, stopped, one = enumerate(requests), threading.Event(), threading.Lock()
        results, faults = queue.SimpleQueue[tuple[Result] | None](), dict[int, Exception]()

        def work() -> None:
            number = 0
            while not stopped.is_set():
                try:
                    with one:
                        number, request = next(waiting)
                    results.put((self._answer(path, request, partial(read, number), stopped),))
                except (StopIteration, PassingError):  # none is left, or another one has failed
                    break
                except Exception as fault:  # of the next request, too
                    stopped.set()
                    if isinstance(fault, RerankError):
                        fault.args = (self.redacted(str(fault)),)
                    if isinstance(fault, ServerError):
                        fault.number = number
                    faults[number] = fault
            results.put(None)

        threads = min(self._threads, n)
        for _ in range(threads):  # daemons, which the end of a run ends, too
            threading.Thread(target=work, daemon=True).start()
        try:
            while threads:
                result = results.get()
                if result is None:
                    threads -= 1
                else:
                    yield result[0]
        finally:
            stopped.set()
        if faults:
            raise faults[min(faults)]

    def redacted(self, text: str) -> str:
        """A text with `***` for the key, and for any six characters of it.

        As it is, or URL-encoded, or with the escapes of JSON, in small letters or capitals. A key
        of less than four characters is shown: what hides it would hide much else.
        """
        key = self._key or ""
        if len(key) < _SHORTEST:
            return text
        size = min(len(key), _PIECE)
        forms = {"".join(map(_plain, _CHARACTER.finditer(key))), key.lower()}
        pieces = {form[n : n + size] for form in forms for n in range(len(form) - size + 1)}
        matches = [*_CHARACTER.finditer(text)]
        found, plain, end = [match[0] for match in matches], "".join(map(_plain, matches)), 0
        for n in range(len(plain)):
            if plain[n : n + size] in pieces:
                found[n : n + size] = ["***" if n >= end else "", *[""] * (size - 1)]
                end = n + size
        return "".join(found)

    def _answer(
        self,
        path: str,
        request: Mapping[str, object],
        read: Callable[[Any], Result],
        stopped: threading.Event,
    ) -> Result:
        """What is read of the answer to one request; PassingError if others stopped its tries."""
        body = json.dumps(request).encode()
        tries = 0
        while True:
            while (wait := self._resumed - time.monotonic()) > 0:
                if stopped.wait(wait):
                    raise PassingError("was not asked")
            try:
                return read(self._sent(path, body))
            except RecursionError:
                raise ServerError("answered with JSON that is nested too deeply") from None
            except PassingError as fault:
                if stopped.is_set():
                    raise
                if tries == self._retries:
                    raise ServerError(f"{fault} (tries: {tries + 1})", fault.status) from None
                wait = min(_LONGEST_WAIT, fault.wait or _FIRST_WAIT * 2**tries)
                if fault.wait and fault.status in (429, 503):  # it concerns all requests
                    if wait >= _LONG and self._resumed < time.monotonic():
                        log.warning("the server asks for a pause of %g s (%d)", wait, fault.status)
                    self._resumed = max(self._resumed, time.monotonic() + wait)
                elif stopped.wait(wait):
                    raise
                tries += 1

    @cached_property
    def _security(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def _connected(self, end: float) -> socket.socket:
        """A connection, without the handshake of https; of several addresses the first one."""
        host, fault = self._url.hostname or "", OSError("no address")
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                left = max(1e-3, end - time.monotonic())
                connection = socket.create_connection((str(address[0]), port), left)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                fault = error
                continue
            if self._url.scheme == "http":
                return connection
            return self._security.wrap_socket(
                connection, server_hostname=host, do_handshake_on_connect=False
            )
        raise fault

    def _sent(self, path: str, body: bytes) -> Any:
        """The JSON of the answer to a request, sent once."""
        url, end = self._url, time.monotonic() + self._seconds
        most = _LEAST + _EACH * len(body)
        connection = http.client.HTTPConnection(url.hostname or "", url.port)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        timer: threading.Timer | None = None
        try:
            connection.sock = own = self._connected(end)
            timer = threading.Timer(end - time.monotonic(), _cut, [own])  # of drips, too
            timer.daemon = True
            timer.start()
            if isinstance(own, ssl.SSLSocket):
                own.do_handshake()
            connection.request("POST", f"{url.path.rstrip('/')}{path}", body, headers)
            answer = bytearray()
            with connection.getresponse() as response:
                encoding = (response.headers.get("Content-Encoding") or "identity").lower()
                while encoding == "identity" and (part := response.read1(_READ)):
                    answer += part
                    if len(answer) > most:
                        raise ServerError(
                            f"answered with more than {most:,} bytes, 1 MB and {_EACH:,} for each "
                            "byte of the request; see that the URL is that of a language model"
                        )
            if time.monotonic() > end:
                raise TimeoutError
        except (OSError, http.client.HTTPException, UnicodeError) as fault:
            if isinstance(fault, TimeoutError) or time.monotonic() > end:
                raise PassingError(
                    f"gave no answer in {self._seconds:g} s; add ,timeout=SECONDS behind the URL"
                ) from None
            reason = self._quoted(getattr(fault, "strerror", None) or str(fault)).lower()
            raise PassingError(f"cannot be asked: {reason}; is it running?") from None
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()
        if response.status != 200:
            raise self._refused(response, bytes(answer))
        if encoding != "identity":
            raise ServerError(
                f"answered in the encoding {self._quoted(encoding)}, which was not asked for; have "
                "it, or the proxy before it, send answers as they are"
            )
        try:
            return json.loads(answer)
        except ValueError:
            raise PassingError(f"answered with what is no JSON, or half of it{_AGAIN}") from None

    def _quoted(self, text: str) -> str:
        """The begin of what a server says, without its key."""
        return self.redacted(text[: 1 << 14])[:_SAID]

    def _refused(self, response: http.client.HTTPResponse, body: bytes) -> ServerError:
        """The error about an answer of another status than 200."""
        status = response.status
        try:
            answer = json.loads(body)
            error = answer.get("error", answer)
            said = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, LookupError, AttributeError, RecursionError):
            said = body.decode(errors="replace").strip()
        message = f"answered {status}{f': {self._quoted(said)}' if said else ''}"
        if status in _PASSING:
            wait = _seconds_of(response.headers.get("Retry-After", ""))
            return PassingError(f"{message}{_AGAIN}", wait, status)
        return ServerError(f"{message}{_CURES.get(status, '')}", status)


def entry(value: Any, key: str) -> Any:
    """What an object of JSON has under a key; None for others, and where it has none."""
    return value.get(key) if isinstance(value, dict) else None


def _cut(connection: socket.socket) -> None:
    """End a connection that another thread reads; of https, too, whose own method waits for it."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _seconds_of(header: str) -> float:
    """The seconds that a header Retry-After asks for, as a number or a date; 0 for others."""
    if re.fullmatch(r"\d+(\.\d*)?", header.strip(), re.ASCII):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _plain(character: re.Match[str]) -> str:
    """What a character of `_CHARACTER` stands for, in small letters."""
    code, plain = character.groups()
    return (chr(int(code, 16)) if code else plain).lower()[:1]
