"""Answers that were paid for, such as those of servers: kept by question, one at a time.

A process appends its answers to a file of its own in the folder of the group, so that processes
share a folder without locks, and reads those of all. An answer is a line: the begin of the SHA-256
of schema, group, key and answer, then key and answer in base64. Lines that are damaged or cut off
count as not there.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from base64 import b64decode, b64encode
from contextlib import suppress

from rerank.files.cache import Cache

_SCHEMA = b"rerank answers 1"  # a new number makes older answers unknown


class AnswerStore:
    """Answers by key, of one group of a cache; without a cache they are kept in memory alone.

    group: hex digits, the digest of what answers depend on beside their keys. Memory: the answers
    and some 200 bytes each. Threads may share it.
    """

    def __init__(self, cache: Cache | None, group: str) -> None:
        self._cache, self._group = cache, group
        self._name = secrets.token_hex(8)
        self._answers: dict[bytes, bytes] | None = None
        self._lock = threading.RLock()

    def get(self, key: bytes) -> bytes | None:
        """The answer that was put last under a key; None if there is none."""
        with self._lock:
            if self._answers is None:
                self._answers = self._read()
            return self._answers.get(key)

    def __contains__(self, key: bytes) -> bool:
        """Whether there is an answer."""
        return self.get(key) is not None

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer: it is on disk now, unless the cache cannot be written, or has none."""
        with self._lock:
            if self.get(key) == answer:
                return
            if self._answers is not None:
                self._answers[key] = answer
            if self._cache is not None:
                line = b" ".join([self._check(key, answer), b64encode(key), b64encode(answer)])
                # of a line that was cut off the next one is no part
                self._cache.append(self._group, self._name, b"\n" + line + b"\n")

    def _read(self) -> dict[bytes, bytes]:
        """The answers of all processes so far."""
        answers: dict[bytes, bytes] = {}
        for content in self._cache.answers(self._group) if self._cache is not None else ():
            for line in content.split(b"\n"):
                with suppress(ValueError):
                    check, *parts = line.split(b" ")
                    key, answer = (b64decode(part, validate=True) for part in parts)
                    if check == self._check(key, answer):
                        answers[key] = answer
        return answers

    def _check(self, key: bytes, answer: bytes) -> bytes:
        parts = _SCHEMA, self._group.encode(), key, answer
        return hashlib.sha256(b" ".join(map(b64encode, parts))).hexdigest()[:32].encode()
