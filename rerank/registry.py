"""Tables of everything that goes by a name, to which other packages add by entry points.

A built-in member is one file and one line in its table; a member of another package is an entry
point of the table's group. Members are loaded when they are used; built-in names take precedence.
This module is below all others, so that the tables cannot say the types of their members: what a
scorer, a metric, a format must be stands in `rerank.scorers`, `rerank.metrics`, `rerank.formats`.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rerank.errors import UsageError
from rerank.files.terminal import reserve_results

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

    from decoders.table import Decoder
    from lm.composition import Composition

Member = TypeVar("Member")
_used: dict[str, dict[str, EntryPoint]] = {}  # members that were loaded, by module of their package


class Registry(Mapping[str, Member], Generic[Member]):
    """Members by name. Iteration yields the names of all, built-in ones first, and loads nothing.

    Members of a family, such as `rlm-bow-lf-4`, are left out there. kind: a member in messages; its
    plural is the entry-point group, `rerank.metrics`. table: built-in members by name, or their
    addresses `module:attribute`; or the address of the table.
    """

    def __init__(self, kind: str, table: str | Mapping[str, Any]) -> None:
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        self.kind, self.group = kind, f"rerank.{plural.replace(' ', '_')}"
        self._table = table

    @property
    def builtin(self) -> Mapping[str, Any]:
        """The built-in table."""
        return attribute(self._table) if isinstance(self._table, str) else self._table

    @property
    def families(self) -> Mapping[str, Any]:
        """Built-in families by pattern, `rlm-bow-lf-N`: members have a number in place of N."""
        families: Mapping[str, Any] = getattr(self.builtin, "families", {})
        return families

    def plugins(self) -> dict[str, EntryPoint]:
        """Entry points of other packages by name; UsageError if two packages use one name."""
        from importlib import metadata

        points: dict[str, EntryPoint] = {}
        for point in _entry_points(metadata.entry_points, self.group, tuple(sys.path)):
            other = points.setdefault(point.name, point)
            if other != point:
                raise UsageError(
                    f"expected one {self.kind} called {point.name!r}, found two, in the packages "
                    f"{package(other)} and {package(point)}; uninstall one of them"
                )
        return points

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in self.plugins()

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self.builtin, *self.plugins()])

    def __len__(self) -> int:
        return len({*self.builtin, *self.plugins()})

    def __getitem__(self, name: str) -> Member:
        """The member of a name; UsageError if its package cannot be loaded."""
        if name in self.builtin:
            member = self.builtin[name]
            return attribute(member) if isinstance(member, str) else member  # type: ignore[no-any-return]
        point = self.plugins()[name]
        reserve_results()
        try:
            _used.setdefault(point.module.partition(".")[0], {})[f"{self.kind} {name!r}"] = point
            return point.load()  # type: ignore[no-any-return]
        except (Exception, SystemExit) as fault:
            reason = " ".join(f"{type(fault).__name__}: {fault}".split())
            raise UsageError(
                f"{self.kind} {name!r}, {point.value}, cannot be loaded: {reason}; repair or "
                f"uninstall the package {package(point)}"
            ) from fault

    def named(self, name: str) -> Member:
        """The member of a name; UsageError with the nearest name if there is none."""
        if name not in self:
            names = [*self, *self.families]
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            if near and near[0] in self.families:
                numbers: range = self.builtin.numbers  # type: ignore[attr-defined]
                hint = f"did you mean {near[0]} with N from {numbers[0]} to {numbers[-1]}? "
            known = f"there are {', '.join(names)}" if names else "none is installed"
            known += "" if near else f"; others are entry points {self.group} of installed packages"
            raise UsageError(f"no {self.kind} {name!r}; {hint}{known}")
        return self[name]

    def with_plugin(self, name: str) -> dict[str, Member]:
        """The built-in members and, if another package has it, the member of this name."""
        others = {} if name in self.builtin else self.plugins()
        return {**self.builtin, **({name: self[name]} if name in others else {})}


@cache
def _entry_points(
    search: Callable[..., EntryPoints], group: str, path: tuple[str, ...]
) -> list[EntryPoint]:
    """Entry points of a group on Python's path, by name; searched once, which takes 6 ms."""
    try:
        return sorted(search(group=group), key=lambda point: point.name)
    except Exception as fault:  # of any kind: they are files of other packages
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise UsageError(
            f"the entry_points.txt of {_unreadable()} cannot be read: {reason}; install that "
            "package again"
        ) from None


def _unreadable() -> str:
    """The installed package whose entry points cannot be read."""
    from importlib import metadata

    for distribution in metadata.distributions():
        try:
            _ = distribution.entry_points
        except Exception:
            with suppress(ValueError):
                return f"{distribution.name} {distribution.version}"
    return "an installed package"


def attribute(address: str) -> Any:
    """What is at an address `module:attribute`."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def forget_plugins() -> None:
    """Begin another run: members that are loaded from now on are its plug-ins."""
    _used.clear()


def fault_of_plugin(fault: BaseException) -> str | None:
    """What a member of another package did, if an exception went through its code; else None.

    `metric 'mine' of the package somebody: ValueError at somebody.py:7: no such word`.
    """
    frames = list(walk_tb(fault.__traceback__))
    for frame, _ in frames:
        members = _used.get(frame.f_globals.get("__name__", "").partition(".")[0], {})
        for point in members.values():
            last, line = frames[-1]
            raised = f"{type(fault).__name__} at {Path(last.f_code.co_filename).name}:{line}"
            what = f"{' or '.join(members)} of the package {package(point)}: {raised}: {fault}"
            return " ".join(what.split()).rstrip(": ")
    return None


def package(point: EntryPoint) -> str:
    """Name of the installed package that has an entry point."""
    with suppress(ValueError):  # of a file METADATA that is no text
        if point.dist:
            return point.dist.name
    return "(unknown)"


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """A kind of files of scores, or of models that give scores at no cost worth caching.

    label: feature name if no NAME is given; help: of its option; scorer: address of a `FileScorer`;
    columns: what is behind NAME in the names of further features.
    """

    label: str
    help: str
    scorer: str
    columns: tuple[str, ...] = ()


ALL_SYSTEMS = "*"  # of `--systems FILE`, in place of a name: all systems of the file
SCORE_FILES = {  # by option, without its dashes
    "scores": ScoreFile(
        "scores",
        "Scores of another tool, as feature NAME: a number for each line of the list; "
        "repeatable.\n\n"
        "Or SYSTEM:FILE, a number per source line for the outputs of each of the --systems; "
        "or a table of all, TSV or CSV with a heading or JSON lines, with segment, system, "
        "value and perhaps document, of which TABLE,reference=ID,direction=ID keeps some "
        "rows, or what comet-score prints.",
        "rerank.scorers.score_files:HypothesisScores",
    ),
    "pair-scores": ScoreFile(
        "pairs",
        "A number for each pair of candidates of neighbouring sentences, as feature NAME; "
        "repeatable.\n\n"
        "Lines: document id, sentence, candidate of the previous sentence, candidate, "
        "number, with a TAB between them. Sentences count from 0 within their document, "
        "candidates from 0 within their list; for the first sentence of a document the "
        "previous candidate is '-'. Every pair is required; documents come in the order of "
        "--docs.",
        "rerank.scorers.score_files:PairScores",
    ),
    "ngram": ScoreFile(
        "ngram",
        "N-gram language model in ARPA format, plain or compressed, or of KenLM (extra "
        "kenlm); repeatable.\n\n"
        "Made by train-ngram, lmplz or SRILM; features NAME, its log-probability in nats, "
        "and NAMEoov, its unknown words. A binary of KenLM needs the extra.",
        "rerank.scorers.ngram_model:NGramScores",
        ("oov",),
    ),
}

PROGRAM = "command"  # before a program that scores (`rerank.scorers.programs`)
JUDGE = "judge"  # before a language model that is asked (`rerank.scorers.judge`)
ESTIMATORS = (f"{PROGRAM}:", f"{JUDGE}:")  # what metrics and utilities may begin with, too
SCORERS: Registry[Callable[..., Any]] = Registry(
    "scorer",
    {
        PROGRAM: "rerank.scorers.programs:ProgramScorer",
        JUDGE: "rerank.scorers.judge_scorer:JudgeScorer",
        "consistency": "rerank.scorers.lexical_cohesion:Consistency",
        "document-cache": "rerank.scorers.lexical_cohesion:DocumentCache",
    },
)
DECODERS: Registry[Decoder] = Registry("decoder", "decoders.table:DECODERS")
METRICS: Registry[Callable[..., Any]] = Registry(
    "metric",
    {
        "bleu": "rerank.metrics.bleu:Bleu",
        "chrf": "rerank.metrics.chrf:Chrf",
        "ter": "rerank.metrics.ter:Ter",
        "pronouns": "rerank.metrics.discourse:Pronouns",
        "connectives": "rerank.metrics.discourse:Connectives",
        "tense": "rerank.metrics.discourse:Tense",
        "names": "rerank.metrics.discourse:Names",
    },
)
FORMATS: Registry[Callable[..., Any]] = Registry(
    "format",
    {  # in the order in which they are asked whether a file is theirs
        "sockeye": "rerank.formats.decoder_lists:Sockeye",
        "jsonl": "rerank.formats.json_lists:JsonLines",
        "mlm-scoring": "rerank.formats.decoder_lists:MlmScoring",
        "fairseq": "rerank.formats.decoder_lists:Fairseq",
        "mbr-nmt": "rerank.formats.plain_lists:MbrNmt",
        "travatar": "rerank.formats.decoder_lists:Travatar",
        "joshua": "rerank.formats.decoder_lists:Joshua",
        "cdec": "rerank.formats.decoder_lists:Cdec",
        "flat": "rerank.formats.plain_lists:Flat",
        "portage": "rerank.formats.plain_lists:Portage",
        "tabs": "rerank.formats.plain_lists:Tabs",
        "nematus": "rerank.formats.decoder_lists:Nematus",
        "moses": "rerank.formats.moses:Moses",
    },
)
DOCUMENT_FORMATS: Registry[Callable[..., Any]] = Registry(
    "document format",
    {  # in the order in which they are asked
        "wmt-xml": "rerank.formats.document_texts:WmtXml",
        "sgml": "rerank.formats.document_texts:Sgml",
        "jsonl": "rerank.formats.document_json:DocumentJson",
        "review-table": "rerank.formats.review_tables:ReviewTable",
        "sizes": "rerank.formats.document_ids:Sizes",
        "numbered-docids": "rerank.formats.document_ids:NumberedDocids",
        "equals-lines": "rerank.formats.document_ids:EqualsLines",
        "blank-lines": "rerank.formats.document_ids:BlankLines",
        "docids": "rerank.formats.document_ids:Docids",
    },
)
WEIGHT_FORMATS: Registry[Any] = Registry(
    "weight format",
    {
        "json": "rerank.formats.weight_files:JSON",
        "ini": "rerank.formats.weight_files:INI",
        "dense": "rerank.formats.weight_files:DENSE",
        "kbmira": "rerank.formats.weight_files:KBMIRA",
        "cdec": "rerank.formats.weight_files:CDEC",
        "travatar": "rerank.formats.weight_files:TRAVATAR",
    },
)
MOSES_INI = "moses-ini"  # the format of weights that are written into a moses.ini
UTILITIES: Registry[Any] = Registry(  # of minimum Bayes risk, each called with lists
    "utility",
    {
        "bleu": "rerank.metrics.consensus:PairwiseBleu",
        "aggregate-bleu": "rerank.metrics.consensus:AggregateBleu",
        "linear-bleu": "rerank.metrics.consensus:LinearBleu",
        "chrf": "rerank.metrics.consensus:PairwiseChrf",
        "aggregate-chrf": "rerank.metrics.consensus:AggregateChrf",
        "embeddings": "rerank.metrics.embeddings:EmbeddingUtility",
    },
)
MODELS: Registry[Composition] = Registry("model", "lm.zoo:ZOO")
SIDE_INFORMATION = {  # that models may need: the option of its file, and what is in it
    "source": "the source sentences",
    "relations": "the discourse relation of each sentence to the one before",
    "topics": "the topic, or another discrete feature, of each sentence",
    "parents": "the number of each sentence's nucleus in its document (from 1; 0: none)",
}
