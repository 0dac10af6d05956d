"""A server of chats on the loopback interface that judges translations, and does much wrong.

The first part of a path is what it does: `http://127.0.0.1:…/ok/v1`. Its opinion of a text is a
number of 0 to 100 by its words alone, which `opinion` gives.
"""

import json
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

FAULTS = {  # what a message says, by the name of the fault; `{}` is the right answer
    "prose": "I would give this translation {} points, since it is good",
    "two": "{} {}",
    "empty": "",
    "minus": "-5",
    "much": "101",
    "float": "1e2",
    "words": "ninety",
    "nan": "NaN",
    "unicode": "\u0669\u0669",
    "surrogate": "\ud800",
    "list": "[{}]",
    "null": "null",
    "refusal": "I cannot help with that.",
    "thinking": "<think>it is good. {}",
}
READ = {
    "thought": "<think>hm</think>\n{}",
    "mark": "Score: {}/100",
    "bold": "**Answer: {}**",
    "thoughts": "it is good.</think>{}",
    "line": "{}.\n",
}


def opinion(text: str) -> int:
    """What the server thinks of a text."""
    return crc32(text.encode()) % 101


def shown(question: str) -> list[tuple[str, str]]:
    """Label and text of each candidate in a question; one without a label has ''."""
    listed = re.findall(r"^Translation (\w+):\n(.*)\n", question, re.M)
    one = re.search(r"^Translation to judge:\n((?:.+\n)+)", question, re.M)
    return listed or [("", one[1].strip() if one else "")]


class _Handler(BaseHTTPRequestHandler):
    server: "JudgeStub"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        fault, own = self.path.split("/")[1], self.server
        with own.lock:
            own.asked[raw.decode()] += 1
            number = own.asked.total()
        status = {"broken": 500, "forbidden": 403, "busy": 429 * (own.asked[raw.decode()] == 1)}
        refused = status.get(fault, 0) * (fault == "busy" or number > own.until)
        time.sleep(own.seconds)
        body = json.dumps(own.answer(json.loads(raw), fault), ensure_ascii=True).encode()
        self.send_response(refused or 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == "half" else body)


class JudgeStub(ThreadingHTTPServer):
    """The server; asked: how often each request came; until: requests before it breaks;
    seconds: until it answers; unread: a text that it says nothing of."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[str] = Counter()
        self.lock, self.until, self.seconds, self.unread = threading.Lock(), 0, 0.0, ""
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def handle_error(self, *args: Any) -> None:
        """Nothing: a client may leave."""

    def url(self, fault: str = "ok") -> str:
        """Its URL, for requests to go wrong in this way."""
        return f"openai:http://127.0.0.1:{self.server_port}/{fault}/v1,model=toy"

    def answer(self, request: dict[str, Any], fault: str) -> Any:
        """The answer to a request."""
        question = request["messages"][0]["content"]
        right = self.right(question)
        text = {**FAULTS, **READ}.get(fault, "{}").replace("{}", right)
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        if fault == "cut":
            choice["finish_reason"] = "length"
        if fault == "none":
            choice["message"]["content"] = None
        if fault == "number":
            choice["message"]["content"] = 7
        if request.get("logprobs"):
            ranked = [("A", -0.5), ("B", -1.5), (" C", -2.5), ("The", -3.0)]
            tops = [{"token": token, "logprob": number} for token, number in ranked]
            choice["logprobs"] = {"content": [{"token": "A", "top_logprobs": tops}]}
        if fault in ("no-choices", "no-object"):
            return {"choices": []} if fault == "no-choices" else [1]
        return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 2}}

    def right(self, question: str) -> str:
        """The right answer to a question."""
        texts = shown(question)
        if texts[0][1] == self.unread:
            return "no"
        if "Find the errors" in question:
            words = [w for w in texts[0][1].split() if opinion(w) > 50]
            errors = [{"span": w, "category": "accuracy", "severity": "major"} for w in words]
            return json.dumps({"errors": errors})
        if "Rank these" in question:
            ranked = sorted(texts, key=lambda item: -opinion(item[1]))
            return json.dumps({"ranking": [label for label, _ in ranked]})
        if "Which of the two" in question:
            return max(texts, key=lambda item: opinion(item[1]))[0]
        if "Grade this" in question:
            return "ABCDE"[4 - opinion(texts[0][1]) // 21]
        before = re.search(r"^Translation, before it:\n((?:.+\n)+)", question, re.M)
        return str(opinion((before[1] if before else "") + texts[0][1]))
