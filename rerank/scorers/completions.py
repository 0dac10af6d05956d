"""Log-probabilities of given text, as OpenAI's completions of a server return them.

A request has `echo: true`, `logprobs: 1` and `max_tokens: 1`, for which some servers take 0 as no
limit; what is generated is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from rerank.errors import RerankError, shown
from rerank.files.server import Server, ServerError, entry
from rerank.scorers.model_options import ServerSettings

Result = TypeVar("Result")
ECHOES = (
    "vLLM, SGLang and llama_cpp.server (logits_all) return them, llama-server of llama.cpp does not"
)
_UNSEEN = re.compile("[^!-~]")  # spaces and what is not ASCII
_LONG = "show fewer sentences, ,sentences=N, raise its limit, or leave the candidate out"
_REFUSING = (400, 413, 422)  # statuses that may refuse a text


class TextError(RerankError):
    """A fault about a text among those that the server was to return."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


@dataclass(frozen=True, slots=True)
class EchoedText:
    """A text as a server returns it, and perhaps a token more.

    tokens: texts of its tokens; log_probs: of each, None where nothing stands before; generated:
    how many of the last tokens are generated, None if the server does not say.
    """

    tokens: list[str]
    log_probs: list[float | None]
    generated: int | None


def echoes(
    server: Server,
    settings: ServerSettings,
    texts: Sequence[str],
    read: Callable[[str, EchoedText], Result],
) -> Iterator[Result]:
    """What is read of each text as the server returns it, at URL/completions, in any order.

    read: of the text and what is returned, in any thread. ServerError or TextError if
    a request fails; no other is begun then.
    """
    parts = [texts[n : n + settings.batch] for n in range(0, len(texts), settings.batch)]

    def request(part: Sequence[str]) -> dict[str, object]:
        prompt = part[0] if len(part) == 1 else list(part)
        how = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
        return {"model": settings.model, "prompt": prompt, **how}

    def results(number: int, answer: Any) -> list[Result]:
        part = parts[number]
        return [read(text, echo) for text, echo in zip(part, _read(answer, part), strict=True)]

    try:
        requests = map(request, parts)
        answers = server.answers("/completions", requests, results, len(parts))
        yield from chain.from_iterable(answers)
    except ServerError as fault:
        if fault.status not in _REFUSING:
            raise
        if "echo" in str(fault):
            raise ServerError(f"{fault}; {ECHOES}") from None
        message = f"{fault}; a text may be longer than the model reads: {_LONG}"
        if len(part := parts[fault.number]) > 1:
            to_see = f"to see which of {len(part)} texts, add ,batch=1 behind the URL"
            raise ServerError(f"{message}; {to_see}") from None
        raise TextError(message, part[0]) from None


def _read(answer: Any, texts: Sequence[str]) -> list[EchoedText]:
    """The texts in an answer, in the order of the request."""
    choices = entry(answer, "choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ServerError("expected an object with choices, as of OpenAI's completions")
    if sorted(str(x.get("index")) for x in choices) != sorted(map(str, range(len(texts)))):
        cure = "; add ,batch=1 behind the URL" if len(texts) > 1 else ""
        raise ServerError(f"expected {len(texts)} choices, one a text, found {len(choices)}{cure}")
    made = entry(entry(answer, "usage"), "completion_tokens")
    generated = {0: 0, len(texts): 1}.get(made) if isinstance(made, int) else None
    choices.sort(key=lambda choice: int(choice["index"]))
    return [_echoed(*item, generated) for item in zip(choices, texts, strict=True)]


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
    tokens, numbers = entry(stated, "tokens") or [], entry(stated, "token_logprobs") or []
    echoed = str(choice.get("text")).startswith(text)
    lists = isinstance(tokens, list) and isinstance(numbers, list)
    texts = lists and all(isinstance(token, str) for token in tokens)
    if not (echoed and lists and numbers) or None in numbers[1:]:
        if cut := cut_of(tokens if texts else [], text):
            raise TextError(cut, text)
        raise ServerError(f"returns no log-probabilities of the text that it is given; {ECHOES}")
    if len(tokens) != len(numbers) or not texts:
        raise TextError(f"expected {len(numbers)} tokens of a text, found {len(tokens)}", text)
    predicted = numbers[1 : None if generated == 0 else -1]  # the last one may be generated
    if predicted and not any(predicted):
        raise ServerError(f"returns 0.0 as the log-probability of each token of a text; {ECHOES}")
    for place, (token, number) in enumerate(zip(tokens, numbers, strict=True)):
        fine = type(number) in (int, float) and -1e6 < number < 1e-3
        if not fine and (place or number is not None):
            raise TextError(
                f"expected a log-probability of token {place + 1} of {len(tokens)}, "
                f"{shown(token.encode(errors='backslashreplace'))}, found {number!s:.20}",
                text,
            )
    return EchoedText(tokens, numbers, generated)
