"""What answers questions of judges: a chat of a server, or a model of a folder.

A server is asked at URL/chat/completions. A model of a folder gives the expected value over all
possible answers, as G-Eval (Liu et al. 2023, https://arxiv.org/abs/2303.16634, section 2.2) weighs
them, with no sampling: a number counts with the token that ends it, so that `1` is not the begin
of `10`, and the shares of all possible answers sum to 1. Of a server the same is made of the
`top_logprobs` of the first token, where each answer is one token.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast, get_type_hints

import numpy as np

from rerank.errors import InputError, RerankError
from rerank.files.server import ServerError, entry, server_of
from rerank.scorers.cached_scores import digest
from rerank.scorers.judge_forms import FORMS, Form
from rerank.scorers.judge_options import JudgeSettings
from rerank.scorers.model_options import HUGGING_FACE, LanguageModelOption

if TYPE_CHECKING:
    from lm.causal import CausalEngine, CausalModel
    from rerank.scorers.causal_lm import CausalLM

_AT_ONCE = 64  # questions between two that are kept
_TOP = 20  # log-probabilities of a token, the most that servers give
_MOST_CHARACTERS = 1 << 16  # of an answer
_BYTES_A_TOKEN = 3.5  # of a question, where no server has counted
_MACHINE = {"device": "auto", "threads": None, "dtype": "float32", "deterministic": False}


class Answer(TypedDict, total=False):
    """An answer as it is kept: its text, tokens read and written, and the expected value, if known.

    cut: most tokens that it might have, where it was cut off; missing: the share of the probability
    that is on none of the possible answers.
    """

    text: str
    cut: int
    read: int
    written: int
    value: float
    missing: float


_KINDS = get_type_hints(Answer)


@dataclass(frozen=True, slots=True)
class Wording:
    """A question in words.

    shown: candidates in it; number: of the pass; place: of the sentence, for messages; again:
    whether it is the second try.
    """

    text: str
    shown: tuple[str, ...] = field(compare=False)
    number: int
    place: str = field(compare=False)
    again: bool = False

    @property
    def key(self) -> bytes:
        """What its answer is known by."""
        return digest(repr((self.text, self.number, self.again)).encode())

    @property
    def n_tokens(self) -> float:
        """About how many tokens it has."""
        return len(self.text.encode()) / _BYTES_A_TOKEN


Heard: TypeAlias = Callable[[Wording, Answer], None]
Answers: TypeAlias = Iterator[tuple[Wording, Answer]]


class ChatModel:
    """A model behind a server of chats; UsageError or ValueError for settings that do not fit.

    tokens: most of an answer; draws: whether equal questions of several passes have answers of
    their own; varies: whether a second try may have another answer.
    """

    varies = True
    machine: Mapping[str, Any]  # of models in folders

    def __init__(self, option: str, url: str, chosen: JudgeSettings) -> None:
        self._form, self.draws = FORMS[chosen.form], chosen.passes > 1
        self._extra = _object_of(chosen.request) if chosen.request else {}
        if "messages" in self._extra:
            raise ValueError(f"request={chosen.request}: expected no messages; give prompt=FILE")
        self._server = server_of(option, url, chosen, chosen.parallel)
        self._request: dict[str, object] = {
            "model": chosen.model,
            "temperature": float(self.draws) if chosen.temperature is None else chosen.temperature,
        }
        if chosen.form in ("grade", "pair") and not self.draws:
            self._request |= {"logprobs": True, "top_logprobs": _TOP}
        self.tokens = chosen.tokens or self._form.tokens
        self._schema = self._form.schema if chosen.schema else None
        schema, extra = self._schema is not None, sorted(self._extra.items())
        self.facts = "chat", chosen.form, self._request, schema, extra

    def ask(self, prompts: Iterable[Wording], n: int, heard: Heard) -> Answers:
        """Each of at most n prompts with its answer, in any order; ServerError.

        heard: called with both as soon as the answer is there, before another prompt is taken.
        """
        sent: list[Wording] = []

        def request(prompt: Wording) -> dict[str, object]:
            sent.append(prompt)
            return self._of(prompt)

        def read(number: int, stated: Any) -> tuple[Wording, Answer]:
            prompt = sent[number]
            answer = self._read(stated, len(prompt.shown))
            heard(prompt, answer)
            return prompt, answer

        return self._server.answers("/chat/completions", map(request, prompts), read, n)

    def _of(self, prompt: Wording) -> dict[str, object]:
        messages = [{"role": "user", "content": prompt.text}]
        request = {**self._request, "max_tokens": self.tokens, "messages": messages}
        if prompt.number or prompt.again:
            request["seed"] = 2 * prompt.number + prompt.again
        if self._schema is not None:
            schema = self._schema(len(prompt.shown))
            named = {"name": self._form.name, "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        merged = {**request, **self._extra}
        return {key: value for key, value in merged.items() if value is not None}

    def _read(self, answer: Any, n: int) -> Answer:
        """What an answer about n candidates says; '' for a refusal, and for one that is cut off."""
        if error := entry(answer, "error"):
            said = error.get("message", error) if isinstance(error, dict) else error
            raise ServerError(f"answered with an error: {said!s:.200}")
        choices = entry(answer, "choices")
        if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
            raise ServerError("expected an object with choices, as of OpenAI's chat completions")
        choice, usage = choices[0], entry(answer, "usage")
        content = entry(choice.get("message"), "content")
        if not (content is None or isinstance(content, str)):
            raise ServerError(f"expected a text as content of a message, found {content!s:.40}")
        end, text = choice.get("finish_reason"), content or ""
        cut = end == "length" or len(text) > _MOST_CHARACTERS
        text = "" if cut or end == "content_filter" else self._server.redacted(text)
        kept = Answer(text=text.encode(errors="replace").decode())
        kept |= Answer(cut=self.tokens) if cut else Answer()
        for key, name in (("read", "prompt_tokens"), ("written", "completion_tokens")):
            count = entry(usage, name)
            if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**53:
                kept[key] = count  # type: ignore[literal-required]
        if "logprobs" in self._request and self._form.read(text, n) is not None:
            kept |= self._expected(choice.get("logprobs"))
        return kept

    def _expected(self, stated: Any) -> Answer:
        """The expected value by the shares of the first token; nothing if there are none."""
        try:
            first, shares = stated["content"][0], dict.fromkeys(self._form.answers, 0.0)
            if first["token"].strip() not in shares:  # the answer begins with another token
                return Answer()
            for token in first["top_logprobs"]:
                name, number = token["token"].strip(), float(token["logprob"])
                if name in shares and number <= 1e-3:
                    shares[name] += math.exp(number)
            known = sum(shares.values())
            value = sum(share * self._form.answers[name] for name, share in shares.items()) / known
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            return Answer()
        return Answer(value=value, missing=max(0.0, 1.0 - known))


class LocalModel:
    """A causal model of a folder of Hugging Face, opened at the first question.

    Forms with a few possible answers have their expected value; others are written by the model,
    its likeliest token at each place.
    """

    draws = varies = False
    machine: Mapping[str, Any]  # of `open_models`

    def __init__(self, option: str, folder: str, chosen: JudgeSettings) -> None:
        from lm.causal_folder import folder_digest

        self._option, self._folder, self._form = option, Path(folder), FORMS[chosen.form]
        self.tokens = chosen.tokens or self._form.tokens
        if not self._folder.is_dir():
            raise InputError(f"{folder}: expected the folder of a Hugging Face model, found none")
        self._digest = folder_digest(self._folder, None)

    @property
    def facts(self) -> tuple[object, ...]:
        """What answers depend on: model and arithmetic."""
        arithmetic = self.machine.get("dtype"), self.machine.get("deterministic")
        return "folder", self._form.name, self._digest, arithmetic

    def ask(self, prompts: Iterable[Wording], n: int, heard: Heard) -> Answers:
        """Each prompt with its answer; heard: called with both."""
        for item in self._answers([*prompts]):
            heard(*item)
            yield item

    def _answers(self, prompts: Sequence[Wording]) -> Answers:
        from lm.causal import CausalContext, trees_of
        from lm.trie import Candidates

        engine = self._engine
        questions = [(prompt, self._tokens_of(engine.model, prompt.text)) for prompt in prompts]
        if not self._form.answers:
            for prompt, tokens in questions:
                yield prompt, self._written(engine, tokens)
            return
        trees = trees_of(Candidates.of([answers_in_tokens(engine.model, self._form)]))
        names, values = [*self._form.answers], np.array([*self._form.answers.values()])
        for begin in range(0, len(questions), _AT_ONCE):
            part = questions[begin : begin + _AT_ONCE]
            scores = engine.scores([(CausalContext(tuple(tokens)), trees) for _, tokens in part])
            for (prompt, tokens), log_probs in zip(part, scores, strict=True):
                shares = np.exp(log_probs - log_probs.max())
                missing = max(0.0, 1.0 - float(np.exp(np.logaddexp.reduce(log_probs))))
                said = Answer(text=names[int(shares.argmax())], read=len(tokens), written=0)
                value = float(shares @ values / shares.sum())
                yield prompt, said | Answer(value=value, missing=missing)

    @cached_property
    def _engine(self) -> CausalEngine:
        """The model on its device; InputError if the folder is not valid."""
        from rerank.scorers.models import open_models

        option = LanguageModelOption.of("judge", f"{HUGGING_FACE}{self._folder},join=space")
        (opened,) = open_models([option], None, **{**_MACHINE, **self.machine})
        engine: CausalEngine = cast("CausalLM", opened).engine
        return engine

    def _tokens_of(self, model: CausalModel, text: str) -> list[int]:
        """Tokens of a question, which leaves room for an answer; InputError or RerankError."""
        if model.tokenizer.chat_template and (token := model.special_token([text])):
            raise RerankError(
                f"{self._option}: expected texts without the special tokens of chats, found "
                f"{token!r}; take it out of the texts"
            )
        try:
            tokens = question_in_tokens(model, text)
        except Exception as fault:  # of any kind, of a template of chats
            raise InputError(
                f"{self._folder}: the template of chats of its tokenizer fails: "
                f"{' '.join(str(fault).split())}; copy the tokenizer from the model's own folder"
            ) from None
        if len(tokens) + (8 if self._form.answers else self.tokens) > model.positions:
            raise RerankError(
                f"{self._option}: a question has {len(tokens):,} tokens, the model "
                f"{model.positions:,} positions; show fewer sentences, or give tokens="
            )
        return tokens

    def _written(self, engine: CausalEngine, ids: Sequence[int]) -> Answer:
        """What the model writes; '' if it does not end within the tokens."""
        import torch

        model, tokenizer, end = engine.model.model, engine.model.tokenizer, end_of(engine.model)
        with torch.no_grad():
            given = torch.tensor([ids], device=engine.backend.device)
            written = model.generate(
                given,
                attention_mask=torch.ones_like(given),
                max_new_tokens=self.tokens,
                do_sample=False,
                eos_token_id=end,
                pad_token_id=end,
            )[0, len(ids) :].tolist()
        ended = bool(written) and written[-1] == end
        text = tokenizer.decode(written, skip_special_tokens=True) if ended else ""
        cut = Answer() if ended else Answer(cut=self.tokens)
        return Answer(text=text, read=len(ids), written=len(written)) | cut


def question_in_tokens(model: CausalModel, text: str) -> list[int]:
    """Tokens of a question as a user's turn, or of a text where the model has no chats."""
    if model.tokenizer.chat_template:
        return model.encode([model.turn(text)], special=True)[0]
    return [model.begin, *model.encode([f"{text}\nAnswer: "])[0]]


def answers_in_tokens(model: CausalModel, form: Form) -> list[list[int]]:
    """Tokens of the possible answers, with that which ends them where one begins another."""
    answers = [*form.answers]
    alike = any(a != b and b.startswith(a) for a in answers for b in answers)
    end = [end_of(model)] if alike else []
    return [[*ids, *end] for ids in model.encode(answers)]


def end_of(model: CausalModel) -> int:
    """The token that ends an answer: eos, or that which parts texts; InputError without one."""
    eos = model.tokenizer.eos_token_id
    end = model.begin if eos is None else int(eos)
    if end < 0:
        raise InputError(
            "judge:hf: the tokenizer has neither an eos nor a bos token, which would end an "
            "answer; give another model"
        )
    return end


def unpacked(data: bytes) -> Answer | None:
    """An answer that is stored as JSON, which may be anybody's; None for another text."""
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(stored, dict) and "text" in stored and stored.keys() <= _KINDS.keys()):
        return None
    sound = all(isinstance(value, _KINDS[key]) for key, value in stored.items())
    return Answer(**stored) if sound and math.isfinite(stored.get("value", 0.0)) else None  # type: ignore[typeddict-item]


def _object_of(path: str) -> dict[str, object]:
    """The JSON object of a file; ValueError for another file."""
    try:
        stated = json.loads(Path(path).read_bytes()[: 1 << 20])
    except OSError as fault:
        raise ValueError(f"request={path}: {(fault.strerror or str(fault)).lower()}") from None
    except (ValueError, RecursionError):
        stated = None
    if not isinstance(stated, dict):
        raise ValueError(f"request={path}: expected a JSON object")
    return stated
