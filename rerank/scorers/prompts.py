"""Candidates after a prompt: a template of Jinja, and log p(candidate | prompt) by a causal model.

A template runs in Jinja's sandbox: it sees the variables of `VARIABLES` and nothing else of the
program or the machine. Prompt and candidate are tokenised together. A prompt is never cut off; with
`tokens` it shows fewer sentences.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lm.causal import CausalContext
from lm.causal_folder import NOTHING, UNLIMITED, CausalModel
from lm.trie import Candidates
from rerank.errors import InputError, RerankError
from rerank.scorers.cached_scores import ListTexts
from rerank.scorers.causal_lm import NO_TOKEN, CausalLM, CausalProblem
from rerank.scorers.hugging_face import Window
from rerank.scorers.window_model import Choices

OF_SOURCE = ("source", "sources_before", "sources_after", "document")
TARGETS = "targets_before"
LANGUAGES = {"source_language": "source-language", "target_language": "target-language"}
VARIABLES = (*OF_SOURCE, TARGETS, *LANGUAGES)
MOST_BYTES = 1 << 20  # of a template
Texts: TypeAlias = Sequence[str]
MERGED = (
    "expected a prompt whose last token ends where a candidate begins, found one that the "
    "tokenizer merges with it; end the prompt in one line break, without white space before it"
)


class PromptTemplate:
    """A template of prompts; InputError, with its line, if it is not valid.

    variables: those of `VARIABLES` that it uses; digest: SHA-256 of the file; lines: how many.
    """

    def __init__(self, path: Path, languages: Mapping[str, str]) -> None:
        try:
            from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as fault:
            raise InputError(
                f"{path}: prompts need the package jinja2 ({fault}); install it: pip install jinja2"
            ) from None
        self.path, self._languages = path, languages
        text = self._text()
        self.lines = max(1, len(text.splitlines()))
        sandbox = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        try:
            tree = sandbox.parse(text)
            self.variables = meta.find_undeclared_variables(tree) - sandbox.globals.keys()
            code = sandbox.compile(tree, str(path), str(path))
        except TemplateSyntaxError as fault:
            raise self._fault(f"expected a template of Jinja: {fault}", fault.lineno) from None
        for one in tree.find_all(nodes.Name):
            if one.name in self.variables and not (one.name in VARIABLES and self._has(one.name)):
                raise self._unknown(one.name, one.lineno)
        self._template = sandbox.template_class.from_code(sandbox, code, sandbox.make_globals(None))

    def _text(self) -> str:
        """The text of the file."""
        try:
            with self.path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except OSError as fault:
            reason = (fault.strerror or str(fault)).lower()
            raise InputError(f"{self.path}: expected a template of Jinja: {reason}") from None
        if len(raw) > MOST_BYTES:
            raise self._fault(f"expected a template of at most {MOST_BYTES:,} bytes, found more")
        self.digest = hashlib.sha256(raw).hexdigest()
        try:
            return raw.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as fault:
            line = raw[: fault.start].count(b"\n") + 1
            raise self._fault("expected text in UTF-8; convert it with iconv", line) from None

    def _has(self, name: str) -> bool:
        return name in self._languages or name not in LANGUAGES

    def _unknown(self, name: str, line: int) -> InputError:
        """An error about a variable that there is not."""
        if name in LANGUAGES:
            key = LANGUAGES[name]
            return self._fault(f"{name} is not given; add ,{key}=NAME behind the folder", line)
        near = get_close_matches(name, VARIABLES, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        return self._fault(f"no variable {name!r}; {hint}There are {', '.join(VARIABLES)}", line)

    def at_end(self, message: str) -> InputError:
        """An error in its last line."""
        return self._fault(message, self.lines)

    def _fault(self, message: str, line: int | None = None) -> InputError:
        return InputError(message, source=str(self.path), line=line)

    def render(self, label: str, t: int, sources: Texts, chosen: Texts, n: int) -> str:
        """The prompt for sentence t, which shows n sentences before and after it.

        chosen: candidates of the sentences before. InputError if the template fails.
        """
        values = {
            "source": sources[t],
            "sources_before": sources[max(0, t - n) : t],
            "sources_after": sources[t + 1 : t + 1 + n],
            "document": "\n".join(sources),
            TARGETS: chosen[max(0, len(chosen) - n) :],
        }
        try:
            return str(self._template.render({**values, **self._languages}))
        except Exception as fault:  # of any kind: templates compute
            line, trace = None, fault.__traceback__
            while trace is not None:
                own = trace.tb_frame.f_code.co_filename == str(self.path)
                line, trace = trace.tb_lineno if own else line, trace.tb_next
            raise self._fault(
                f"the template fails for {label}, sentence {t}: {type(fault).__name__}: {fault}; "
                "lists may be empty, and templates see texts and lists of texts, without their "
                "attributes",
                line,
            ) from None


def sources_of(texts: ListTexts) -> list[str]:
    """The sources of lists, empty texts where none are given."""
    lines = texts.side.get("source", b"\n" * len(texts.counts))
    return lines.decode().split("\n")[:-1]


@dataclass(frozen=True, slots=True, eq=False)
class Prompt(CausalContext):
    """The tokens of a prompt, and those of the candidates of its sentence as they stand after it.

    ids: with the token that texts begin with.
    """

    candidates: Candidates = field(kw_only=True)

    @property
    def longest(self) -> int:
        """Tokens of the longest candidate."""
        return max(map(len, self.candidates.texts()), default=0)


class PromptProblem(CausalProblem):
    """A document whose candidates are scored after prompts.

    template: of the prompts; sources: of the S sentences, or empty texts; shown: most sentences
    before and after one that its prompt shows, None for all; chat: whether the tokenizer's template
    of chats is around prompts.
    """

    def __init__(
        self,
        *args: Any,
        template: PromptTemplate,
        sources: Sequence[str],
        shown: int | None,
        chat: bool,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._template, self._sources, self._chat = template, sources, chat
        self._shown = len(self._lines) if shown is None else shown

    def candidates(self, t: int, context: CausalContext) -> Candidates:
        """The tokens of list t after a prompt."""
        return context.candidates if isinstance(context, Prompt) else super().candidates(t, context)

    def read(self, t: int, choices: Choices) -> Prompt:
        """The prompt of sentence t: as many sentences as its options say, and no fewer.

        O(tokens of the prompt) for each candidate.
        """
        chosen = [self._lines[t - len(choices) + i][k] for i, k in enumerate(choices)]
        most = self.window.tokens
        n, last = self._shown, max(t, len(self._lines) - 1 - t)
        if most is not None:

            def size(shown: int) -> int:
                return len(self.model.encode([self._text(t, chosen, shown)], self._chat)[0])

            n = max(0, bisect_right(range(min(n, last) + 1), most, key=size) - 1)
        text = self._text(t, chosen, n)
        tokens, *whole = self.model.encode([text, *(text + x for x in self._lines[t])], self._chat)
        own = []
        for k, ids in enumerate(whole):
            if ids[: len(tokens)] != tokens:
                raise self._merged(t, k)
            own.append([] if self._sizes[t][k] == UNLIMITED else ids[len(tokens) :])
        prompt = Prompt((self.model.begin, *tokens), candidates=Candidates.of([own]))
        if len(tokens) > (UNLIMITED if most is None else most) or not self._fits(prompt):
            raise self._too_much(t, prompt)
        return prompt

    def _fits(self, prompt: Prompt) -> bool:
        """Whether the model has positions for all that it reads: last tokens it does not."""
        bare = prompt.ids[0] == NOTHING
        return len(prompt.ids) - bare + prompt.longest - 1 <= self.model.positions

    def _text(self, t: int, chosen: Sequence[str], n: int) -> str:
        """The prompt of sentence t that shows n sentences before and after it."""
        text = self._template.render(self.label, t, self._sources, chosen, n)
        if not self._chat:
            return text
        marks = self.model.tokenizer.all_special_tokens
        for one in (text, *self._lines[t]):
            if found := [mark for mark in marks if mark in one]:
                raise self._about(
                    f"expected texts without the special tokens of chats, found {found[0]!r}; "
                    "take it out of the texts, or leave out chat=yes",
                    t,
                )
        turns = [{"role": "user", "content": text}]
        return str(
            self.model.tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
        )

    def _about(self, message: str, t: int, k: int = 0) -> InputError:
        """An error in the template's last line, about a candidate."""
        at = self.place(t, k)
        return self._template.at_end(f"{message} ({at})")

    def _merged(self, t: int, k: int) -> InputError:
        """An error about a prompt whose end and a candidate's begin are one token."""
        return self._about(MERGED, t, k)

    def _too_much(self, t: int, prompt: Prompt) -> RerankError:
        """An error about a prompt that does not fit, or a candidate that none fits before."""
        longest = int(np.argmax([len(own) for own in prompt.candidates.texts()]))
        size = len(prompt.ids) - 1
        limit = f"the model of {self.label} has {self.model.positions:,} positions"
        if prompt.longest > self.model.positions:
            return self.beyond_positions(t, longest)
        if self.window.tokens is not None:
            return self._about(
                f"a prompt without other sentences has {size:,} tokens, a candidate "
                f"{prompt.longest:,}; {limit}, tokens={self.window.tokens} allows fewer; write a "
                "shorter template, or raise tokens=",
                t,
                longest,
            )
        sizes = np.concatenate(self._sizes)
        safe = self.model.positions - int(sizes[sizes < UNLIMITED].max(initial=0)) - 2
        return self._about(
            f"a prompt has {size:,} tokens, and a candidate {prompt.longest:,}; {limit}, and "
            f"nothing is cut off: add ,tokens={max(1, safe)} behind the folder, which shows fewer "
            "sentences where needed, or ,sentences=N",
            t,
            longest,
        )


class PromptedLM(CausalLM):
    """The feature of a causal language model after a prompt, in nats: log p of a candidate.

    Its order is the number of earlier candidates that a prompt may show.
    """

    def __init__(
        self, name: str, model: CausalModel, window: Window, *more: Any, pmi: bool
    ) -> None:
        self.template = PromptTemplate(Path(window.prompt or ""), window.languages)
        self._given = window
        used = self.template.variables
        self.side_information = ("source",) if used & {*OF_SOURCE} else ()
        begin = NO_TOKEN if window.chat and window.begin is None else window.begin
        sentences = window.sentences if TARGETS in used else 0
        own = replace(window, sentences=sentences, join="space", begin=begin)
        super().__init__(name, model, own, *more, pmi=pmi)

    def _facts(self, window: Window) -> tuple[object, ...]:
        """What scores depend on beside the model."""
        given, shown = self._given, 0 if window is self._null else self._given.sentences
        prompt = self.template.digest, given.chat, *sorted(given.languages.items()), shown
        return (*super()._facts(window), "prompt", *prompt)

    def _begin_with(self, token: int) -> None:
        """Have texts begin with a token."""
        super()._begin_with(token)
        import transformers

        self.chosen |= {
            "prompt": self.template.path.name,
            "prompt_digest": self.template.digest,
            "model_digest": self.model.digest,
            "transformers": transformers.__version__,
        }

    def check(self) -> None:
        """ValueError as of a model without a prompt, or for a tokenizer without chats."""
        super().check()
        if self._given.chat and not self.model.tokenizer.chat_template:
            raise ValueError("its tokenizer has no template of chats; leave out chat=yes")

    def _kind(self, texts: ListTexts, *, null: bool) -> Callable[..., CausalProblem]:
        """What makes the problem of a document."""
        return partial(
            PromptProblem,
            template=self.template,
            sources=sources_of(texts),
            shown=0 if null else self._given.sentences,
            chat=self._given.chat,
        )
