"""Candidates after a prompt: a template of Jinja, and log p(candidate | prompt) by a causal model.

A template runs in Jinja's sandbox: it sees the variables of `VARIABLES` and nothing else of the
program or the machine. Prompt and candidate are tokenised together. A prompt is never cut off; with
`tokens` it shows fewer sentences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lm.causal import NOTHING, CausalContext, CausalModel
from lm.causal_folder import UNLIMITED, reason_of
from lm.trie import Candidates
from rerank.errors import InputError, RerankError
from rerank.scorers.cached_scores import Choices, ListTexts
from rerank.scorers.causal_lm import NO_TOKEN, CausalLM, CausalProblem
from rerank.scorers.model_options import Window
from rerank.scorers.templates import JinjaTemplate

OF_SOURCE = ("source", "sources_before", "sources_after", "document")
TARGETS = "targets_before"
LANGUAGES = {"source_language": "source-language", "target_language": "target-language"}
VARIABLES = (*OF_SOURCE, TARGETS, *LANGUAGES)
Texts: TypeAlias = Sequence[str]
MERGED = (
    "expected a prompt whose last token ends where a candidate begins, found one that the "
    "tokenizer merges with it; end the prompt in one line break, without white space before it"
)


class PromptTemplate(JinjaTemplate):
    """The template of prompts of a window.

    side_information: that of its variables; window: the given one, whose sentences are the
    candidates that prompts show; entries: what weights files state of it.
    """

    def __init__(self, settings: Window) -> None:
        self._settings, given = settings, settings.languages
        lacking = {name: key for name, key in LANGUAGES.items() if name not in given}
        known = [name for name in VARIABLES if name not in lacking]
        super().__init__(Path(settings.prompt or ""), known, lacking)
        self.side_information = ("source",) if self.used & {*OF_SOURCE} else ()
        shown = settings.sentences if TARGETS in self.used else 0
        self.window = replace(settings, sentences=shown)
        self.entries = {"prompt": self.path.name, "prompt_digest": self.digest}

    def facts(self, *, null: bool) -> tuple[object, ...]:
        """What scores depend on; null: of prompts that show no other sentences."""
        return *sorted(self._settings.languages.items()), 0 if null else self._settings.sentences

    def render(
        self, label: str, t: int, sources: Texts, chosen: Texts, most: int | None = None
    ) -> str:
        """The prompt for sentence t, which shows `most` sentences before and after it, or all.

        chosen: candidates of the sentences before. InputError if the template fails.
        """
        n = len(sources) if most is None else most
        values: dict[str, object] = {
            "source": sources[t],
            "sources_before": sources[max(0, t - n) : t],
            "sources_after": sources[t + 1 : t + 1 + n],
            "document": "\n".join(sources),
            TARGETS: chosen[max(0, len(chosen) - n) :],
        }
        values |= self._settings.languages
        return self.rendered(values, f"{label}, sentence {t}")


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
    """A document whose candidates are scored after prompts; arguments as of `WindowProblem`."""

    def __init__(
        self, source: PromptedLM, name: str, texts: ListTexts, *arguments: Any, **more: Any
    ) -> None:
        super().__init__(source, name, texts, *arguments, **more)
        self._template, self._sources = source.template, sources_of(texts)
        self._shown = 0 if self.null else source.settings.sentences

    def candidates(self, t: int, context: CausalContext) -> Candidates:
        """The tokens of list t after a prompt."""
        return context.candidates if isinstance(context, Prompt) else super().candidates(t, context)

    def read(self, t: int, choices: Choices) -> tuple[Prompt, bytes]:
        """The prompt of sentence t: as many sentences as its options say, and no fewer.

        O(tokens of the prompt) for each candidate.
        """
        chosen, most = self.chosen_texts(t, choices), self.window.tokens
        n, last = self._shown, max(t, len(self._lines) - 1 - t)
        if most is not None:

            def size(shown: int) -> int:
                shown_text = self._template.render(self.label, t, self._sources, chosen, shown)
                return len(self._tokens([self._turn(shown_text)])[0])

            sizes = range((last if n is None else min(n, last)) + 1)
            n = max(0, bisect_right(sizes, most, key=size) - 1)
        text = self._template.render(self.label, t, self._sources, chosen, n)
        lines = self._lines[t]
        if self.window.chat and (token := self.model.special_token([text, *lines])):
            raise self._about(
                f"expected texts without the special tokens of chats, found {token!r}; take it out "
                "of the texts, or leave out chat=yes",
                t,
                next((k for k, x in enumerate(lines) if self.model.special_token([x])), 0),
            )
        text = self._turn(text)
        tokens, *whole = self._tokens([text, *(text + line for line in lines)])
        candidates = []
        for k, ids in enumerate(whole):
            if ids[: len(tokens)] != tokens:
                raise self._about(MERGED, t, k)
            candidates.append([] if self._sizes[t][k] == UNLIMITED else ids[len(tokens) :])
        prompt = Prompt((self.model.begin, *tokens), candidates=Candidates.of([candidates]))
        # whether the model has positions for all that it reads, which last tokens are not
        read = len(prompt.ids) - (prompt.ids[0] == NOTHING) + prompt.longest - 1
        if len(tokens) > (UNLIMITED if most is None else most) or read > self.model.positions:
            raise self._too_much(t, prompt)
        return prompt, prompt.key

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        return self.model.encode(texts, self.window.chat)

    def _turn(self, text: str) -> str:
        """A prompt as a user's turn of a chat, or as it is."""
        if not self.window.chat:
            return text
        try:
            return self.model.turn(text)
        except Exception as fault:  # of any kind: the template of a folder may be a stranger's
            raise InputError(
                f"{self.label}: the template of chats of its tokenizer fails: {reason_of(fault)}; "
                "copy the tokenizer from the model's own folder, or leave out chat=yes"
            ) from None

    def _about(self, message: str, t: int, k: int = 0) -> InputError:
        """An error in the template's last line, about a candidate."""
        return self._template.at_end(f"{message} ({self.place(t, k)})")

    def _too_much(self, t: int, prompt: Prompt) -> RerankError:
        """An error about a prompt that does not fit, or a candidate that none fits before."""
        longest = int(np.argmax([*map(len, prompt.candidates.texts())]))
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

    problem_of = PromptProblem

    def __init__(
        self, name: str, model: CausalModel, settings: Window, *more: Any, **how: Any
    ) -> None:
        self.template, self.settings = PromptTemplate(settings), settings
        self.side_information = self.template.side_information
        begin = NO_TOKEN if settings.chat and settings.begin is None else settings.begin
        window = replace(self.template.window, join="space", begin=begin)
        super().__init__(name, model, window, *more, **how)

    def window_facts(self, *, null: bool) -> tuple[object, ...]:
        """What scores depend on beside the model."""
        prompt = self.template.digest, self.settings.chat, *self.template.facts(null=null)
        return (*super().window_facts(null=null), "prompt", *prompt)

    def _begin_with(self, token: int) -> None:
        super()._begin_with(token)
        import transformers

        digest, version = self.model.digest, transformers.__version__
        self.chosen |= {**self.template.entries, "model_digest": digest, "transformers": version}

    def check(self) -> None:
        """ValueError as of a model without a prompt, or for a tokenizer without chats."""
        super().check()
        if self.settings.chat and not self.model.tokenizer.chat_template:
            raise ValueError("its tokenizer has no template of chats; leave out chat=yes")
