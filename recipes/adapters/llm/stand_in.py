"""A stand-in for a server of language models: it knows good texts, and nothing of languages.

    python recipes/adapters/llm/stand_in.py PORT GOOD_TEXTS

It answers two requests on this machine, at http://127.0.0.1:PORT/v1:

- /chat/completions: the rating of a translation by a judge, the share of its words, in %, that the
  good text nearest to it has
- /completions: log-probabilities of a given text, −1 for words of the good texts, −6 for others
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

if len(sys.argv) != 3:
    sys.exit(__doc__)
GOOD = [set(line.split()) for line in Path(sys.argv[2]).read_text("utf-8").splitlines()]
WORDS = set[str]().union(*GOOD)


def rating(question: str) -> str:
    """Rating of the translation in a question of `rerank/scorers/judge.jinja`, 0 to 100."""
    words = question.partition("Translation to judge:\n")[2].partition("\n")[0].split()
    nearest = max(sum(word in good for word in words) for good in GOOD)
    return str(round(100 * nearest / max(1, len(words))))


def choice(index: int, text: str) -> dict[str, Any]:
    """A text with the log-probabilities of its tokens, as `echo` and `logprobs` ask for."""
    tokens = re.findall(r" ?\S+|\s", text)
    numbers = [-1.0 if token.strip() in WORDS else -6.0 for token in tokens]
    named = {"tokens": ["<s>", *tokens], "token_logprobs": [None, *numbers]}
    return {"index": index, "text": text, "logprobs": named}


class Handler(BaseHTTPRequestHandler):
    """Answers of the server."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""

    def do_POST(self) -> None:
        """Answer a request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/chat/completions"):
            said = {"role": "assistant", "content": rating(request["messages"][-1]["content"])}
            choices: list[dict[str, Any]] = [{"message": said}]
        else:
            prompt = request["prompt"]
            texts = prompt if isinstance(prompt, list) else [prompt]
            choices = [choice(n, text) for n, text in enumerate(texts)]
        used = {"prompt_tokens": len(str(request)) // 4, "completion_tokens": 1}
        body = json.dumps({"choices": choices, "usage": used}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
