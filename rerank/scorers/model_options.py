"""Language models as options name them: `--lm NAME=…`, its keys, and names of features."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import click

from rerank.errors import UsageError
from rerank.registry import SCORE_FILES
from rerank.scorers import TOTAL
from rerank.values import (
    FOLDER,
    PART,
    TEXT,
    FileName,
    Key,
    Real,
    Whole,
    key_field,
    key_table,
    settings,
    split,
    text_of,
)

LM, SCORER = "lm", "scorer"  # options of language models and of scorers in other packages
REVERSE = "reverse"  # key of models of Hugging Face and of ours: score the source
GLOSSARY = "glossary"  # its option, and its feature
HUGGING_FACE = "hf:"  # before the folder of a causal language model
SEQ2SEQ = "seq2seq:"  # before the folder of a sequence-to-sequence model
SERVER = "openai:"  # before the URL of a server of language models


class _Language(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """A language by its code of two letters."""

    name = "language"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The code."""
        if not re.fullmatch("[a-z]{2}", value):
            self.fail("expected a language, as en", param, ctx)
        return str(value)


_DETOKENIZE = "language, as en: undo the tokenisation of lists"
_ADAPTER = {"type": FOLDER, "help": "folder of a LoRA adapter that is merged, as PEFT saves it"}


@dataclass(frozen=True, slots=True)
class Window:
    """What of a document is the context of a sentence of a causal language model.

    sentences, tokens: None for all of the document so far; with a prompt those that it shows, and
    those of it. join: `newline` ends every sentence and is predicted with it, `space` begins the
    second of two. begin: None to choose a token. dtype: None for that of the run. adapter: merged
    into the model, and part of its digest.
    """

    sentences: int | None = key_field(Whole(0), "most sentences of context")
    tokens: int | None = key_field(Whole(0), "most tokens of context, in whole sentences")
    join: str = key_field(
        click.Choice(["newline", "space"]), "what stands between two sentences", "newline"
    )
    detokenize: str | None = key_field(_Language(), _DETOKENIZE)
    begin: str | None = key_field(TEXT, "token that texts begin with, or none for no token")
    long: str = key_field(
        click.Choice(["error", "window"]),
        "candidates beyond the positions: scored by parts",
        "error",
    )
    prompt: str | None = key_field(
        TEXT,
        "file with a prompt before each candidate, a template of Jinja with source, "
        "sources_before, sources_after, targets_before, document, source_language and "
        "target_language",
    )
    chat: bool = key_field(click.BOOL, "whether the prompt is the turn of a chat", False)
    source_language: str | None = key_field(TEXT, "name of the source language, for the prompt")
    target_language: str | None = key_field(TEXT, "name of the target language, for the prompt")
    dtype: str | None = key_field(
        click.Choice(["float32", "tf32", "bfloat16"]), "precision of this model"
    )
    adapter: Path | None = field(default=None, metadata=_ADAPTER)

    @property
    def languages(self) -> dict[str, str]:
        """The languages that are given, by the names that templates use."""
        names = "source_language", "target_language"
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def order(self) -> int | None:
        """Number of earlier sentences that a score depends on; None if unbounded."""
        return 0 if self.tokens == 0 and self.prompt is None else self.sentences

    @property
    def identity(self) -> tuple[object, ...]:
        """What scores depend on."""
        return self.order, self.tokens, self.join, self.detokenize, self.long

    def without_context(self) -> Window:
        """The window of no sentences."""
        return replace(self, sentences=0, tokens=None)


@dataclass(frozen=True, slots=True)
class ServerSettings(Window):
    """What a server of language models is asked, and how.

    url: of its API, without `/completions`; begin: text that all texts begin with, `none` if the
    first token is not predicted and that is no fault.
    """

    url: str = ""
    model: str = key_field(TEXT, "name of the server's model", "")
    concurrency: int = key_field(Whole(1, 1024), "requests at once [default: 8]", 8)
    batch: int = key_field(Whole(1, 4096), "texts of a request [default: 1]", 1)
    timeout: float = key_field(
        Real(0, 1e5, above=True), "most seconds of a request [default: 120]", 120.0
    )
    retries: int = key_field(Whole(0, 100), "tries after the first one [default: 4]", 4)
    key_env: str | None = key_field(
        TEXT, "variable of the environment that has the key, else OPENAI_API_KEY"
    )
    insecure: bool = key_field(
        click.BOOL, "whether the key may be sent to other machines over http", False
    )


@dataclass(frozen=True, slots=True)
class TranslationSettings:
    """What a sequence-to-sequence model of Hugging Face reads and predicts."""

    src: str | None = key_field(
        TEXT, "language that the model reads, as zho_Hans, if its tokenizer has some"
    )
    tgt: str | None = key_field(TEXT, "language that it predicts, as eng_Latn")
    reverse: bool = key_field(click.BOOL, "whether it reads candidates and predicts sources", False)
    sentences: int = key_field(Whole(0), "sentences before, in front of source and candidate", 0)
    separator: str | None = key_field(TEXT, "token after each sentence of context")
    detokenize: str | None = key_field(_Language(), _DETOKENIZE)
    detokenize_source: str | None = key_field(_Language(), "the same of sources")
    prefix: str | None = key_field(TEXT, "text before what the model reads")
    long: str = key_field(
        click.Choice(["error", "cut"]), "texts to read beyond the positions: cut", "error"
    )
    adapter: Path | None = field(default=None, metadata=_ADAPTER)

    @property
    def order(self) -> int:
        """Number of earlier sentences that a score depends on."""
        return self.sentences

    @property
    def identity(self) -> tuple[object, ...]:
        """What scores depend on."""
        return astuple(self)[:-1]  # the model's digest has the adapter

    def without_context(self) -> TranslationSettings:
        """The settings of no sentences of context."""
        return replace(self, sentences=0)


WINDOW_KEYS, TRANSLATION_KEYS = key_table(Window), key_table(TranslationSettings)
SERVER_KEYS = key_table(
    ServerSettings,
    *("model", "sentences", "join", "detokenize", "begin", "prompt"),
    *("source_language", "target_language"),
    *("concurrency", "batch", "timeout", "retries", "key_env", "insecure"),
)
WITH_PROMPT = {"chat", "source-language", "target-language"}
WITHOUT_PROMPT = {"join"}


class EngineOptions(NamedTuple):
    """The record and the keys of what stands behind folders of a kind, or URLs."""

    record: type[Window | TranslationSettings]
    keys: Mapping[str, Key]


OF_FOLDERS = {
    HUGGING_FACE: EngineOptions(Window, WINDOW_KEYS),
    SEQ2SEQ: EngineOptions(TranslationSettings, TRANSLATION_KEYS),
    SERVER: EngineOptions(ServerSettings, SERVER_KEYS),
}
OF_OTHERS = WINDOW_KEYS | TRANSLATION_KEYS | SERVER_KEYS
OF_OURS = {
    "document-cache": Key(
        "document_cache",
        PART,
        "share, as 0.1, of the unigram of the document so far in the model; its order is then "
        "unbounded",
    )
}
PMI = Key(
    "pmi",
    click.BOOL,
    "features NAMEnull, without the sentences before, and NAMEpmi, the rest, in place of NAME, "
    "so that fluency and context have weights of their own; what a model reads of the source, "
    "earlier sentences included, is in both",
)
KEYS = {"pmi": PMI, **OF_OURS, **OF_OTHERS}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SECRET = re.compile("//[^/]*@")  # in a URL
_UNKNOWN_KEY = re.compile(r".*,([a-z-]+=[^,/]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LanguageModelOption:
    """A value of `--lm NAME=[hf:|seq2seq:]DIR[,KEY=VALUE…]`: a language model as a feature.

    value: the folder, as it was given with the keys of a window, or `openai:` and the name of a
    server's model; window: what a model of Hugging Face or of a server is given, None for one of
    ours; pmi: whether its feature becomes two, with and without context; document_cache: weight λ
    of a document cache (`lm.document_cache`), if any; reverse: whether a model of ours scores the
    source given a candidate (`rerank.scorers.language_model.ChannelModel`).
    """

    name: str
    folder: Path
    value: Path
    pmi: bool = False
    document_cache: float | None = None
    reverse: bool = False
    window: Window | TranslationSettings | None = None

    @classmethod
    def of(cls, name: str, value: str | Path) -> LanguageModelOption:
        """The model that a value describes; UsageError for an invalid one."""
        try:
            return _parsed(name, str(value))
        except click.BadParameter as fault:
            raise UsageError(f"--{LM} {fault.message}") from None

    @property
    def option(self) -> str:
        """The option as it was given, for messages."""
        share = "" if self.document_cache is None else f",document-cache={self.document_cache}"
        share += ",reverse=yes" * self.reverse
        return f"--{LM} {self.name}={self.value}{',pmi=yes' * self.pmi}{share}"

    @property
    def provenance(self) -> dict[str, object]:
        """Entries of a weights file about what is made of the model's scores."""
        names = "pmi", "reverse", "document_cache"
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value not in (None, False)}

    def as_tuned(self, provenance: Mapping[str, object]) -> LanguageModelOption:
        """The option with what was chosen for the model when weights were tuned, if anything was.

        provenance: of the weights.
        """
        models = provenance.get("models")
        stored = models.get(self.name) if isinstance(models, dict) else None
        begin = stored.get("begin") if isinstance(stored, dict) else None
        window = self.window
        if not (isinstance(window, Window) and window.begin is None and isinstance(begin, str)):
            return self
        return replace(self, window=replace(window, begin=begin))


def without_secret(text: str) -> str:
    """A text without names and passwords of URLs in it, for messages."""
    return _SECRET.sub("//…@", text)


def _parsed(name: str, text: str) -> LanguageModelOption:
    """The model that a value describes; BadParameter for an invalid one."""
    values: dict[str, Any] = {}
    try:
        rest, given = split(text, KEYS)
        mark = next((mark for mark in OF_FOLDERS if rest.startswith(mark)), "")
        folder, keys = rest.removeprefix(mark), OF_FOLDERS[mark].keys if mark else {}
        unknown = _UNKNOWN_KEY.fullmatch(rest)
        if unknown and not Path(folder).exists():
            raise click.BadParameter(
                f"expected a folder, or one of {', '.join(KEYS)} behind it, "
                f"found {unknown.group(1)}"
            )
        if not folder:
            raise click.BadParameter(f"expected {mark}DIR, the folder of a Hugging Face model")
        if mark == SERVER:
            _check_server(folder, given)
        for key, value in given.items():
            _check_key(key, mark, folder, prompted="prompt" in given)
            known = keys.get(key) or KEYS[key]
            try:
                values[known.field] = known.type.convert(value, None, None)
            except click.BadParameter as fault:
                raise click.BadParameter(f"found {key}={value}: {fault.message}") from None
    except click.BadParameter as fault:
        shown = without_secret(text)
        raise click.BadParameter(f"{name}={shown}: {fault.message}") from None
    window = {known.field: values.pop(known.field) for key, known in keys.items() if key in given}
    if mark == SERVER:
        window["url"], folder, shown = folder, f"{mark}{given['model']}", ""
        rest = folder
    else:
        # weights files have names of tokens and files, with slashes, beside the folder
        short = {**given, "adapter": Path(given.get("adapter", "")).name}
        shown_keys = [key for key in given if key in keys.keys() - {"begin", "prompt"}]
        shown = "".join(f",{key}={short[key]}" for key in shown_keys)
    return LanguageModelOption(
        name,
        Path(folder),
        FOLDER.convert(f"{rest}{shown}", None, None),
        **values,
        window=OF_FOLDERS[mark].record(**window) if mark else None,
    )


def _check_server(url: str, given: Mapping[str, str]) -> None:
    """BadParameter for no URL of a server, or no name of a model behind it."""
    from rerank.files.server import url_of

    try:
        url_of(url)
    except ValueError as fault:
        keys = ", ".join(SERVER_KEYS)
        raise click.BadParameter(f"{fault}, and one of {keys} behind it") from None
    if "model" not in given:
        raise click.BadParameter("expected ,model=NAME behind the URL")


def _check_key(key: str, mark: str, folder: str, *, prompted: bool) -> None:
    """BadParameter for a key that what stands before it does not have."""
    if mark and key in OF_OURS:
        raise click.BadParameter(
            f"{folder} is a Hugging Face model, whose tokens are not words; give "
            "--scorer NAME=document-cache beside it"
        )
    kinds = [known for known, kind in OF_FOLDERS.items() if key in kind.keys]
    if kinds and mark not in kinds and (mark or key != REVERSE):
        places = [f"{kind}{'URL' if kind == SERVER else 'DIR'}" for kind in kinds]
        whose = "a server" if kinds == [SERVER] else "a Hugging Face model"
        raise click.BadParameter(f"{key} is for {' and '.join(places)}, {whose}")
    if key in (WITHOUT_PROMPT if prompted else WITH_PROMPT):
        which = "without" if prompted else "with"
        raise click.BadParameter(f"{key} is for models {which} prompt=FILE; leave it out")


class LanguageModelValue(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """NAME=[MARK:]DIR[,KEY=VALUE…] as a `LanguageModelOption`; in TOML a table with a path."""

    name = "model"
    text_of = staticmethod(text_of)
    sections: ClassVar = {
        "every model": {"pmi": PMI},
        "DIR of train-lm": {
            **OF_OURS,
            REVERSE: Key(REVERSE, click.BOOL, "score --source given each candidate: a channel"),
        },
        "hf:DIR": WINDOW_KEYS,
        "seq2seq:DIR": TRANSLATION_KEYS,
        "openai:URL": SERVER_KEYS,
    }

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> LanguageModelOption:
        """The option."""
        if isinstance(value, LanguageModelOption):
            return value
        name, _, text = str(value).partition("=")
        if not (name and text):
            self.fail(
                f"expected NAME=DIR, for example codclm=models/codclm; found {value!r:.60}",
                param,
                ctx,
            )
        return _parsed(name, text)


GLOSSARY_KEYS = {
    "case": Key("case", click.BOOL, "whether capitals must be the same"),
    "inflection": Key("inflection", click.BOOL, "whether words with other endings count, too"),
}


class GlossaryName(FileName):
    """FILE[,case=yes][,inflection=yes] as it is given."""

    def parsed(self, value: str) -> str:
        """The value as it is given."""
        path, _ = glossary_value(value)
        super().parsed(path)
        return value


def glossary_value(value: str) -> tuple[str, dict[str, bool]]:
    """The file of a value of `--glossary`, and its keys; BadParameter for what is no yes or no."""
    path, given = split(value, GLOSSARY_KEYS)
    return path, settings(given, GLOSSARY_KEYS, None, None)


def labels_of(option: str, name: str, *, pmi: bool = False) -> set[str]:
    """Labels that the features of a scorer may have; option: without its dashes; pmi: of `--lm`."""
    if option == LM:
        return {name + end for end in ("", "oov", *(("pmi", "null") if pmi else ()))}
    ends = SCORE_FILES[option].columns if option in SCORE_FILES else ()
    return {name, *(name + end for end in ends)}


def check_names(
    options: Mapping[str, Sequence[tuple[str, str | Path]]], pmi: Collection[str] = ()
) -> None:
    """UsageError for invalid and repeated names of features.

    options: (NAME, value) pairs by option, without its dashes; pmi: NAMEs of models whose feature
    becomes two.
    """
    labels: dict[str, str] = {}
    named = ((option, *pair) for option, pairs in options.items() for pair in pairs)
    for option, name, value in named:
        fault, added = "", labels_of(option, name, pmi=name in pmi)
        if not _NAME.fullmatch(name):
            fault = (
                "expected a NAME of letters and digits that begins with a letter, because it "
                "becomes a label of the list"
            )
        elif name == TOTAL:
            fault = f"{TOTAL!r} is the list's total; choose another NAME"
        elif taken := sorted(added & labels.keys()):
            fault = f"the name is taken by another --{labels[taken[0]]}; choose another NAME"
        if fault:
            raise UsageError(f"--{option} {name}={value}: {fault}")
        labels |= dict.fromkeys(added, option)
