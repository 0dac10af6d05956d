"""What stands behind a model of others in `--lm NAME=MARK:DIR[,KEY=VALUE…]`: a folder, a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import click

from rerank.values import FOLDER, TEXT, Key, Real, Whole

HUGGING_FACE = "hf:"  # before the folder of a causal language model
SEQ2SEQ = "seq2seq:"  # before the folder of a sequence-to-sequence model
SERVER = "openai:"  # before the URL of a server of language models


@dataclass(frozen=True, slots=True)
class Window:
    """What of a document is the context of a sentence of a causal language model.

    sentences: most sentences before it; tokens: most tokens of these, whole sentences; None for
    all of the document so far. join: `newline`, which ends every sentence and is predicted with
    it, or `space`, which is between two sentences and begins the second one. detokenize: language
    of tokenised lists, whose texts are given to the model detokenised, escapes undone. begin: token
    that texts begin with, `none` for none; None to choose one. long: what becomes of candidates
    longer than the model's positions, `error` or `window` (`lm.causal.windows`). prompt: template
    of a prompt after which candidates are scored (`rerank.scorers.prompts`); then sentences are
    those that it shows, and tokens those of it; chat: whether it is the turn of a chat;
    source_language, target_language: texts for it; dtype: of the model's arithmetic, None for that
    of the run; adapter: folder of one that is merged into the model, and part of its digest.
    """

    sentences: int | None = None
    tokens: int | None = None
    join: str = "newline"
    detokenize: str | None = None
    begin: str | None = None
    long: str = "error"
    prompt: str | None = None
    chat: bool = False
    source_language: str | None = None
    target_language: str | None = None
    dtype: str | None = None
    adapter: Path | None = None

    @property
    def languages(self) -> dict[str, str]:
        """The languages that are given, by the names that templates use."""
        found = {
            "source_language": self.source_language,
            "target_language": self.target_language,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def order(self) -> int | None:
        """Number of earlier sentences that a score depends on; None if unbounded."""
        return 0 if self.tokens == 0 and self.prompt is None else self.sentences

    @property
    def identity(self) -> tuple[object, ...]:
        """What scores depend on."""
        return self.order, self.tokens, self.join, self.detokenize, self.long


class _Language(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """A language by its code of two letters."""

    name = "language"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The code."""
        if not re.fullmatch("[a-z]{2}", value):
            self.fail("expected a language, as en", param, ctx)
        return str(value)


WINDOW_KEYS = {
    "sentences": Key("sentences", Whole(0), "most sentences of context"),
    "tokens": Key("tokens", Whole(0), "most tokens of context, in whole sentences"),
    "join": Key("join", click.Choice(["newline", "space"]), "what stands between two sentences"),
    "detokenize": Key("detokenize", _Language(), "language, as en: undo the tokenisation of lists"),
    "begin": Key("begin", TEXT, "token that texts begin with, or none for no token"),
    "long": Key(
        "long",
        click.Choice(["error", "window"]),
        "candidates beyond the positions: scored by parts",
    ),
    "prompt": Key(
        "prompt",
        TEXT,
        "file with a prompt before each candidate, a template of Jinja with source, "
        "sources_before, sources_after, targets_before, document, source_language and "
        "target_language",
    ),
    "chat": Key("chat", click.BOOL, "whether the prompt is the turn of a chat"),
    "source-language": Key("source_language", TEXT, "name of the source language, for the prompt"),
    "target-language": Key("target_language", TEXT, "name of the target language, for the prompt"),
    "dtype": Key("dtype", click.Choice(["float32", "tf32", "bfloat16"]), "precision of this model"),
    "adapter": Key("adapter", FOLDER, "folder of a LoRA adapter that is merged, as PEFT saves it"),
}


@dataclass(frozen=True, slots=True)
class ServerSettings(Window):
    """What a server of language models is asked, and how.

    url: of its API, without `/completions`; model: its name there; begin: text that all texts begin
    with, `none` if the first token is not predicted and that is no fault; concurrency: requests at
    once; batch: texts of a request; timeout: seconds of one; retries: how often one is tried again;
    key_env: variable of the environment that has the key, None for OPENAI_API_KEY, if it is set.
    """

    url: str = ""
    model: str = ""
    concurrency: int = 8
    batch: int = 1
    timeout: float = 120.0
    retries: int = 4
    key_env: str | None = None


_OF_SERVERS = ("sentences", "join", "detokenize", "begin", "prompt")
SERVER_KEYS = {
    "model": Key("model", TEXT, "name of the server's model"),
    **{key: WINDOW_KEYS[key] for key in (*_OF_SERVERS, "source-language", "target-language")},
    "concurrency": Key("concurrency", Whole(1, 1024), "requests at once [default: 8]"),
    "batch": Key("batch", Whole(1, 4096), "texts of a request [default: 1]"),
    "timeout": Key("timeout", Real(0, 1e5, above=True), "most seconds of a request [default: 120]"),
    "retries": Key("retries", Whole(0, 100), "tries after the first one [default: 4]"),
    "key-env": Key(
        "key_env", TEXT, "variable of the environment that has the key, else OPENAI_API_KEY"
    ),
}
WITH_PROMPT = {"chat", "source-language", "target-language"}
WITHOUT_PROMPT = {"join"}


@dataclass(frozen=True, slots=True)
class TranslationSettings:
    """What a sequence-to-sequence model of Hugging Face reads, and what it predicts.

    src, tgt: languages of the texts that it reads and predicts, by codes of its tokenizer; reverse:
    whether it reads candidates and predicts sources, as the channel of a noisy-channel model;
    sentences: number of sentences of context before source and candidate; separator: token after
    each of these; detokenize, detokenize_source: languages of tokenised lists and sources; prefix:
    text before what it reads; long: what becomes of texts to read that are longer than its
    positions, `error` or `cut`; adapter: as of `Window`.
    """

    src: str | None = None
    tgt: str | None = None
    reverse: bool = False
    sentences: int = 0
    separator: str | None = None
    detokenize: str | None = None
    detokenize_source: str | None = None
    prefix: str | None = None
    long: str = "error"
    adapter: Path | None = None

    @property
    def order(self) -> int:
        """Number of earlier sentences that a score depends on."""
        return self.sentences

    @property
    def identity(self) -> tuple[object, ...]:
        """What scores depend on."""
        return astuple(self)[:-1]  # the model's digest has the adapter


TRANSLATION_KEYS = {
    "src": Key(
        "src", TEXT, "language that the model reads, as zho_Hans, if its tokenizer has some"
    ),
    "tgt": Key("tgt", TEXT, "language that it predicts, as eng_Latn"),
    "reverse": Key("reverse", click.BOOL, "whether it reads candidates and predicts sources"),
    "sentences": Key("sentences", Whole(0), "sentences before, in front of source and candidate"),
    "separator": Key("separator", TEXT, "token after each sentence of context"),
    "detokenize": WINDOW_KEYS["detokenize"],
    "detokenize-source": Key("detokenize_source", _Language(), "the same of sources"),
    "prefix": Key("prefix", TEXT, "text before what the model reads"),
    "long": Key("long", click.Choice(["error", "cut"]), "texts to read beyond the positions: cut"),
    "adapter": WINDOW_KEYS["adapter"],
}


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The record and the keys of what stands behind folders of a kind, or URLs."""

    record: Callable[..., Window | TranslationSettings]
    keys: Mapping[str, Key]


OF_FOLDERS = {
    HUGGING_FACE: FolderSettings(Window, WINDOW_KEYS),
    SEQ2SEQ: FolderSettings(TranslationSettings, TRANSLATION_KEYS),
    SERVER: FolderSettings(ServerSettings, SERVER_KEYS),
}


def marked(value: str) -> tuple[str, str]:
    """The mark of a kind of folders that a value begins with, '' for none, and the folder."""
    mark = next((mark for mark in OF_FOLDERS if value.startswith(mark)), "")
    return mark, value.removeprefix(mark)


def shown_keys(mark: str, given: Mapping[str, str]) -> str:
    """The keys behind a folder, as weights files and messages have them: `,sentences=2`.

    Names of tokens and files may have slashes: weights files have those of `begin` and `prompt`
    beside the folder, and of an adapter the last part of its path.
    """
    own = OF_FOLDERS[mark].keys.keys() - {"begin", "prompt"} if mark else ()
    shown = {**given, "adapter": Path(given.get("adapter", "")).name}
    return "".join(f",{key}={shown[key]}" for key in given if key in own)
