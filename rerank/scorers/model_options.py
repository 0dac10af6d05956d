"""Language models as options name them: `--lm NAME=…`, its keys, and names of features."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import click

from rerank.errors import UsageError
from rerank.registry import SCORE_FILES
from rerank.scorers import TOTAL
from rerank.scorers.hugging_face import (
    OF_FOLDERS,
    SERVER,
    SERVER_KEYS,
    TRANSLATION_KEYS,
    WINDOW_KEYS,
    WITH_PROMPT,
    WITHOUT_PROMPT,
    TranslationSettings,
    Window,
    marked,
    shown_keys,
)
from rerank.values import FOLDER, PART, FileName, Key, settings, split, text_of

LM, SCORER = "lm", "scorer"  # options of language models and of scorers in other packages
REVERSE = "reverse"  # key of models of Hugging Face and of ours: score the source
GLOSSARY = "glossary"  # its option, and its feature
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SECRET = re.compile("//[^/]*@")  # in a URL
_UNKNOWN_KEY = re.compile(r".*,([a-z-]+=[^,/]*)", re.DOTALL)


KEYS = {
    "pmi": Key(
        "pmi",
        click.BOOL,
        "features NAMEnull, without the sentences before, and NAMEpmi, the rest, in place of NAME, "
        "so that fluency and context have weights of their own; what a model reads of the source, "
        "earlier sentences included, is in both",
    ),
    "document-cache": Key(
        "document_cache",
        PART,
        "share, as 0.1, of the unigram of the document so far in the model; its order is then "
        "unbounded",
    ),
    **WINDOW_KEYS,
    **TRANSLATION_KEYS,
    **SERVER_KEYS,
}
OF_OTHERS = WINDOW_KEYS | TRANSLATION_KEYS | SERVER_KEYS


@dataclass(frozen=True, slots=True)
class LanguageModelOption:
    """A value of `--lm NAME=[hf:|seq2seq:]DIR[,KEY=VALUE…]`: a language model as a feature.

    value: the folder, as it was given with the keys of a window, or `openai:` and the name of a
    server's model; window: what a model of Hugging Face or of a server is given, None for one of
    our own; pmi: whether its feature becomes two, with and without context; document_cache: weight
    λ of a document cache (`lm.document_cache`), if any; reverse: whether one of our own scores the
    source given a candidate (`rerank.scorers.channel_model`).
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
        found: dict[str, object] = {"pmi": True} if self.pmi else {}
        found |= {"reverse": True} if self.reverse else {}
        share = self.document_cache
        return found if share is None else {**found, "document_cache": share}

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


def _parsed(name: str, text: str) -> LanguageModelOption:
    """The model that a value describes; BadParameter for an invalid one."""
    found: dict[str, Any] = {}
    try:
        rest, given = split(text, KEYS)
        mark, folder = marked(rest)
        own = OF_FOLDERS[mark].keys if mark else {}
        unknown = _UNKNOWN_KEY.fullmatch(rest)
        if unknown and not Path(folder).exists():
            raise click.BadParameter(
                f"expected a folder, or one of {', '.join(KEYS)} behind it, "
                f"found {unknown.group(1)}"
            )
        if not folder:
            raise click.BadParameter(f"expected {mark}DIR, the folder of a Hugging Face model")
        if mark == SERVER:
            check_server(folder, given)
        for key, value in given.items():
            if mark and key == "document-cache":
                raise click.BadParameter(
                    f"{folder} is a Hugging Face model, whose tokens are not words; give "
                    "--scorer NAME=document-cache beside it"
                )
            if key in OF_OTHERS.keys() - own and (mark or key != REVERSE):
                kinds = [known for known, kind in OF_FOLDERS.items() if key in kind.keys]
                places = [f"{one}{'URL' if one == SERVER else 'DIR'}" for one in kinds]
                whose = "a server" if kinds == [SERVER] else "a Hugging Face model"
                raise click.BadParameter(f"{key} is for {' and '.join(places)}, {whose}")
            if key in (WITHOUT_PROMPT if "prompt" in given else WITH_PROMPT):
                which = "without" if "prompt" in given else "with"
                raise click.BadParameter(f"{key} is for models {which} prompt=FILE; leave it out")
            try:
                known = own.get(key) or KEYS[key]
                found[known.field] = known.type.convert(value, None, None)
            except click.BadParameter as fault:
                raise click.BadParameter(f"found {key}={value}: {fault.message}") from None
    except click.BadParameter as fault:
        told = _SECRET.sub("//…@", text)
        raise click.BadParameter(f"{name}={told}: {fault.message}") from None
    window = {known.field: found.pop(known.field) for key, known in own.items() if key in given}
    told = shown_keys(mark, given)
    if mark == SERVER:
        window["url"], folder, told = folder, f"{mark}{given['model']}", ""
        rest = folder
    value = FOLDER.convert(f"{rest}{told}", None, None)
    return LanguageModelOption(
        name,
        Path(folder),
        value,
        **found,
        window=OF_FOLDERS[mark].record(**window) if mark else None,
    )


def check_server(url: str, given: Mapping[str, str]) -> None:
    """BadParameter for no URL of a server, or no name of a model behind it."""
    from rerank.files.server import url_of

    try:
        url_of(url)
    except ValueError as fault:
        keys = ", ".join(SERVER_KEYS)
        raise click.BadParameter(f"{fault}, and one of {keys} behind it") from None
    if "model" not in given:
        raise click.BadParameter("expected ,model=NAME behind the URL")


class LanguageModelValue(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """NAME=[MARK:]DIR[,KEY=VALUE…] as a `LanguageModelOption`; in TOML a table with a path."""

    name = "model"
    text_of = staticmethod(text_of)
    sections: ClassVar = {
        "every model": {"pmi": KEYS["pmi"]},
        "DIR of train-lm": {
            "document-cache": KEYS["document-cache"],
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
    for option, given in options.items():
        for name, value in given:
            own = f"--{option} {name}={value}"
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"{own}: expected a NAME of letters and digits that begins with a letter, "
                    "because it becomes a label of the list"
                )
            if name == TOTAL:
                raise UsageError(f"{own}: {TOTAL!r} is the list's total; choose another NAME")
            added = labels_of(option, name, pmi=name in pmi)
            if taken := sorted(added & labels.keys()):
                raise UsageError(
                    f"{own}: the name is taken by another --{labels[taken[0]]}; choose another NAME"
                )
            labels |= dict.fromkeys(added, option)
