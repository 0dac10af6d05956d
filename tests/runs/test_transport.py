"""Requests to servers that answer slowly, too much, later, or with the key; on the loopback."""

import json
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from rerank.errors import UsageError
from rerank.files.server import PassingError, Server, ServerError, key_of

KEY = 'sk/"se+cr\\et%41~0123456789'
OK = b"HTTP/1.1 200 OK\r\n"
Script = Callable[[socket.socket, int], None]  # what answers the n-th request


@contextmanager
def listening(script: Script) -> Iterator[tuple[str, list[float]]]:
    """The URL of a server that runs a script for each connection, and when these came."""
    came: list[float] = []
    ended = False

    def serve(connection: socket.socket, n: int) -> None:
        with suppress(OSError), connection:
            script(connection, n)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            for n in count():
                connection, _ = listener.accept()
                if ended:
                    return connection.close()
                came.append(time.monotonic())
                threading.Thread(target=serve, args=[connection, n], daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", came
        ended = True
        socket.create_connection(listener.getsockname()).close()
        thread.join()


def request_of(connection: socket.socket) -> tuple[bytes, bytes]:
    """Header and body of the request."""
    with connection.makefile("rb") as file:
        header = b"".join(iter(file.readline, b"\r\n"))
        size = re.search(rb"(?i)content-length: (\d+)", header)
        return header, file.read(int(size[1]) if size else 0)


def body_of(connection: socket.socket) -> bytes:
    return request_of(connection)[1]


def answer(connection: socket.socket, status: str = "200 OK", body: object = 1, *more: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close", *more]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + data)


def asked(url: str, n: int = 1, read: Any = None, **keywords: Any) -> Iterator[Any]:
    server = Server(url, **{"key": None, "seconds": 5.0, "retries": 0, "threads": 1, **keywords})
    requests = [{"n": number} for number in range(n)]
    return server.answers("/p", requests, read or (lambda *item: item), len(requests))


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
DRIPS = {  # what is sent, and what is sent then again and again
    "nothing": (b"", b""),
    "header": (OK, b"X"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n"),
    "extensions": (CHUNKED + b"1;", b"x"),
    "body": (OK + b"Content-Length: 99999\r\n\r\n", b"["),
    "handshake": (b"\x16\x03\x03\x40\x00", b"\x02"),
}


@pytest.mark.parametrize(
    ("drip", "pause"), [*((drip, 0.1) for drip in DRIPS), ("continue", 0.0), ("trailers", 0.0)]
)
def test_a_request_ends_in_time_however_its_answer_drips(drip: str, pause: float) -> None:
    def script(connection: socket.socket, _: int) -> None:
        first, then = DRIPS[drip]
        connection.sendall(first)
        while True:
            connection.sendall(then)
            time.sleep(pause)

    with listening(script) as (url, _):
        began = time.monotonic()
        url = url.replace("http", "https") if drip == "handshake" else url
        with pytest.raises(ServerError, match=r"^gave no answer in 0.25 s; add ,timeout=SECONDS"):
            next(asked(url, seconds=0.25))
        assert 0.2 < time.monotonic() - began < 1.5


def test_an_answer_is_read_up_to_its_limit() -> None:
    sent: list[int] = []

    def script(connection: socket.socket, _: int) -> None:
        connection.sendall(OK + b"Content-Length: 240000000\r\n\r\n")
        for _ in range(240):
            connection.sendall(b" " * 1_000_000)
            sent.append(1_000_000)

    with listening(script) as (url, _):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ServerError, match="answered with more than 1,056,576 bytes"):
            next(asked(url))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32_000  # kB
        assert sum(sent) < 16_000_000  # and what the system holds


def test_after_a_fault_for_good_those_in_flight_are_waited_for_and_no_other_is_begun() -> None:
    def script(connection: socket.socket, _: int) -> None:
        n = json.loads(body_of(connection))["n"]
        time.sleep(0.2 + 0.2 * n)
        answer(connection, "200 OK" if n else "400 no", n)

    with listening(script) as (url, came):
        found: list[tuple[int, Any]] = []
        with pytest.raises(ServerError, match="answered 400") as fault:
            found.extend(asked(url, 9, threads=3))
        assert sorted(found) == [(1, 1), (2, 2)]
        assert (fault.value.number, fault.value.status, len(came)) == (0, 400, 3)


def test_a_fault_of_what_makes_the_requests_is_raised() -> None:
    def requests() -> Iterator[dict[str, object]]:
        yield {"n": 1}
        raise ValueError("no more")

    def script(connection: socket.socket, _: int) -> None:
        answer(connection, body=body_of(connection).decode())

    with listening(script) as (url, _):
        server = Server(url, key=None, seconds=5, retries=0, threads=3)
        with pytest.raises(ValueError, match="no more"):
            [*server.answers("/p", requests(), lambda _, answer: answer, 4)]


def test_a_generator_that_is_closed_ends_at_once() -> None:
    def script(connection: socket.socket, n: int) -> None:
        body_of(connection)
        time.sleep(2 * n)
        answer(connection)

    with listening(script) as (url, came):
        answers = asked(url, 9, threads=2)
        next(answers)
        began = time.monotonic()
        answers.close()  # type: ignore[attr-defined]  # of a generator
        assert time.monotonic() - began < 0.5
        time.sleep(0.2)
        assert len(came) <= 3


@pytest.mark.parametrize(("status", "dated"), [("429 wait", False), ("503 wait", True)])
def test_all_threads_wait_as_long_as_one_is_told(status: str, dated: bool) -> None:
    told: list[float] = []

    def script(connection: socket.socket, n: int) -> None:
        body_of(connection)
        if n:
            time.sleep(0.1)
            return answer(connection)
        told.append(time.monotonic())
        after = formatdate(time.time() + 2, usegmt=True) if dated else "1"
        return answer(connection, status, "later", f"Retry-After: {after}")

    with listening(script) as (url, came):
        assert len([*asked(url, 12, threads=2, retries=1)]) == 12
        later = [at - told[0] for at in came if at > told[0] + 0.1]
        assert (len(later) > 9, min(later) >= 0.9) == (True, True)


def test_what_is_read_decides_whether_a_request_is_tried_again() -> None:
    faults = iter([PassingError("half", 0.01), PassingError("half", 0.01), ServerError("bad")])

    def read(number: int, value: object) -> object:
        if number == 0 and (fault := next(faults, None)):
            raise fault
        return value

    def script(connection: socket.socket, _: int) -> None:
        answer(connection, body={"a": body_of(connection).decode()})

    with listening(script) as (url, came):
        with pytest.raises(ServerError, match=r"^half \(tries: 2\)$"):
            next(asked(url, read=read, retries=1))
        with pytest.raises(ServerError, match=r"^bad$"):
            next(asked(url, read=read, retries=9))
        assert [*asked(url, read=read)] == [{"a": '{"n": 0}'}]
        assert len(came) == 4


ECHOES = {
    "as-it-is": KEY,
    "in-json": json.dumps(KEY),
    "in-json-twice": json.dumps(json.dumps(KEY)),
    "with-slashes": json.dumps(KEY).replace("/", "\\/"),
    "by-numbers": "".join(f"\\u{ord(one):04X}" for one in KEY),
    "in-a-url": quote(KEY, safe=""),
    "in-small-letters": quote(KEY, safe="").lower(),
    "of-python": repr(KEY),
    "cut": "x" * 190 + KEY,
    "half": f"{KEY[:15]} and {KEY[-9:]}",
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("place", ["body", "json", "reason", "line", "encoding", "read"])
def test_a_key_stands_in_no_message(place: str, echo: str) -> None:
    said = ECHOES[echo]
    sent: list[bytes] = []

    def script(connection: socket.socket, _: int) -> None:
        sent.append(request_of(connection)[0])
        if place == "body":
            answer(connection, "400 no", said.encode())
        elif place == "json":
            answer(connection, "500 no", {"error": {"message": said}})
        elif place == "reason":
            answer(connection, f"400 {said}", said)
        elif place == "line":
            connection.sendall(f"{said}\r\n\r\n".encode())
        else:
            answer(connection, "200 OK", said, *[f"Content-Encoding: {said}"] * (place[0] == "e"))

    def read(_: int, value: str) -> object:
        raise ServerError(f"returns {value}")

    with listening(script) as (url, _), pytest.raises(ServerError) as fault:
        next(asked(url, key=KEY, read=read))
    assert f"Authorization: Bearer {KEY}".encode() in sent[0]
    told = str(fault.value)
    assert not re.search("(?i)sk/|sk%|012|789|u0073", told), told  # parts that others could use
    assert re.search(r"\*\*\*|x{20}", told)
    assert fault.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        *((f"http://{host}:8000/v1", True) for host in ("localhost", "127.9.0.1", "[::1]")),
        ("https://example.org/v1", True),
        *((f"http://{host}/v1", False) for host in ("example.org", "10.0.0.1", "[::2]")),
        ("http://localhost.example.org/v1", False),
    ],
)
def test_a_key_is_sent_over_http_to_this_machine_alone(
    url: str, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert key_of("g", url, None, insecure=False) is None
    monkeypatch.setenv("K", KEY)
    assert key_of("g", url, "K", insecure=True) == KEY
    if sent:
        assert key_of("g", url, "K", insecure=False) == KEY
    else:
        with pytest.raises(UsageError, match=r"^g: .*; give a URL of https, or add ,insecure=yes"):
            key_of("g", url, "K", insecure=False)
