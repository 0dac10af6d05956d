"""A server of completions on the loopback interface, whose log-probabilities are of the text alone.

The first part of a path is what it does wrong: `http://127.0.0.1:…/half/v1`.
"""

import gzip
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zlib import crc32

KEY = "sk-secret-0123456789"
REQUEST = {
    "model": "toy", "prompt": "", "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0,
}  # fmt: skip

_TOKENS = {"wrong": "token_id:7", "surrogate": "\ud800", "shows-key": "x" * 55 + KEY}
_NUMBERS = {"nan": math.nan, "huge": math.inf, "true": True, "false": False, "named": KEY}
_BODIES: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deep": lambda _: b"[" * 100_000,
    "huge": lambda body: body.replace(b"Infinity", b"1e999"),
    "endless": lambda _: b" " * (1 << 24),
}


def tokens_of(text: str) -> list[tuple[str, int]]:
    """Tokens and where they begin: words, and two parts of each letter that is not of ASCII."""
    found: list[tuple[str, int]] = []
    for one in re.finditer(r"<\|x\|>| ?[!-~]+|[^!-~]", text):
        parts = [one[0]] if one[0].isascii() else ["\ufffd", "\ufffd"]
        found += [(part, one.start()) for part in parts]
    return found


def numbers(text: str) -> list[float]:
    """A log-probability of each token, by all that stands before it."""
    tokens = [token for token, _ in tokens_of(text)]
    return [-(crc32("|".join(tokens[: n + 1]).encode()) % 997) / 100 for n in range(len(tokens))]


def log_prob(before: str, text: str) -> float:
    """Log-probability of the tokens that begin behind `before`."""
    pairs = zip(tokens_of(before + text), numbers(before + text), strict=True)
    return sum(number for (_, at), number in pairs if at >= len(before))


class _Handler(BaseHTTPRequestHandler):
    server: "Stub"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        fault, own = self.path.split("/")[1], self.server
        own.asked[fault, raw] += 1
        refused = {
            "busy": 429 * (own.asked[fault, raw] == 1), "nobody": 400 * (b"nobody" in raw),
            "broken": 500, "moved": 302, "long": 400,
            "first-40": 403 * (sum(n for key, n in own.asked.items() if key[0] == fault) > 40),
            "key": 0 if self.headers.get("Authorization") == f"Bearer {KEY}" else 401,
        }.get(fault, 0)  # fmt: skip
        body = json.dumps(self.answer(json.loads(raw), fault)).encode()
        if refused:
            said = f"no, {self.headers['Authorization']}"
            body = json.dumps({"error": {"message": said}}).encode()
        if fault in _BODIES:
            body = _BODIES[fault](body)
        while fault == "drip":  # until the client leaves
            self.wfile.write(b"H")
            time.sleep(0.05)
        time.sleep(0.5 * (fault == "slow"))
        self.send_response(refused or 200)
        self.send_header("Retry-After", "0")
        self.send_header("Location", "/ok/v1/completions")
        self.send_header("Content-Encoding", fault if fault == "gzip" else "identity")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault in ("half", "cut") else body)

    def answer(self, request: dict[str, Any], fault: str) -> dict[str, Any]:
        given = request["prompt"]
        texts = given if isinstance(given, list) else [given]
        assert {**request, "prompt": ""} == REQUEST
        choices = [self.choice(n, text, fault) for n, text in enumerate(texts)][::-1]
        made = {"prompt_tokens": 9, "completion_tokens": len(texts)}
        return {"choices": choices[fault == "fewer" :], "usage": made}

    def choice(self, index: int, text: str, fault: str) -> dict[str, Any]:
        own: list[Any] = numbers(text)
        tokens = [token for token, _ in tokens_of(text)]
        begin, part = [] if fault == "bare" else ["<s>"], "" if fault == "no-parts" else "\ufffd"
        shown_tokens = [part if token == "\ufffd" else token for token in (*tokens, "\ufffd")]
        named = {"tokens": [*begin, *shown_tokens], "token_logprobs": [*own, -0.1]}
        named["token_logprobs"][:1] = [None] if fault == "bare" else [None, own[0]]
        if fault in _TOKENS:
            named["tokens"][2] = _TOKENS[fault]
        if fault in _NUMBERS:
            named["token_logprobs"][2] = _NUMBERS[fault]
        if fault == "zeros":
            named["token_logprobs"][1:-1] = [0.0] * (len(named["tokens"]) - 2)
        if fault == "short":  # cut at its end
            at = 1 + len(tokens) // 2
            named = {name: [*own[:at], own[-1]] for name, own in named.items()}
        if fault in ("cutting", "cropped"):  # cut at its begin, and the text with it
            named = {name: [own[0], *own[2:]] for name, own in named.items()}
            text = text.removeprefix(tokens[0]) if fault == "cutting" else text
        if fault == "silent":  # as llama-server
            text, named = "", {"tokens": [" x"], "token_logprobs": [-1]}
        shown = None if fault == "null" else named
        return {"index": index, "text": f"{text} x", "logprobs": shown}


class Stub(ThreadingHTTPServer):
    """The server; asked: how often each request came."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[tuple[str, bytes]] = Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *args: Any) -> None:
        """Nothing: a client may leave."""

    def url(self, fault: str = "ok") -> str:
        """Its URL, for requests to go wrong in this way."""
        return f"http://127.0.0.1:{self.server_port}/{fault}/v1"


STUB = Stub()


class ModelServer(HTTPServer):
    """A server that echoes texts with the log-probabilities of a causal model of transformers."""

    def __init__(self, folder: Path) -> None:
        import transformers

        super().__init__(("127.0.0.1", 0), _ModelHandler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.words = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def echo(self, text: str) -> dict[str, Any]:
        """The choice for a text: the token that texts begin with, its own, and nothing more."""
        import torch

        ids = [self.words.bos_token_id, *self.words(text, add_special_tokens=False).input_ids]
        with torch.no_grad():
            log_probs = self.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=1)
        given = [None, *(float(log_probs[n - 1, name]) for n, name in enumerate(ids) if n)]
        tokens = [self.words.decode([name]) for name in ids]
        named = {"tokens": tokens, "token_logprobs": given}
        return {"index": 0, "text": text, "logprobs": named}


class _ModelHandler(BaseHTTPRequestHandler):
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"choices": [self.server.echo(request["prompt"])]}
        body = json.dumps(answer | {"usage": {"completion_tokens": 0}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
