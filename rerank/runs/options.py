"""What commands share: options of runs and searches, their messages, their printed results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from rerank.corpus.reading import AS_SOURCE, AVOID, DROP, KEEP, DocumentOptions, ReadingOptions
from rerank.errors import UsageError
from rerank.files.terminal import process_number, progress_shown, say, show, width
from rerank.formats.document_files import UnsegmentedText
from rerank.notices import Notices, Strictness
from rerank.options import Given, flag, given, option, optional, optional_file, part, record
from rerank.registry import ALL_SYSTEMS, SCORE_FILES, SIDE_INFORMATION
from rerank.scorers.judge_options import ScorerValue, preset_of
from rerank.scorers.model_options import (
    GLOSSARY,
    LM,
    GlossaryName,
    LanguageModelOption,
    LanguageModelValue,
    Window,
    glossary_value,
    labels_of,
)
from rerank.table import fitting
from rerank.values import (
    FILE,
    FOLDER,
    TEXT,
    WEIGHT,
    DiagnosticName,
    Key,
    MemorySize,
    Pair,
    ShardName,
    Whole,
    settings,
    split,
    text_of,
)

if TYPE_CHECKING:
    from rerank.files.cache import Cache
    from rerank.files.paths import FilePath
    from rerank.formats.weights import Weights
    from rerank.runs.lists import Lists

Result = TypeVar("Result")
KBEST_HELP = (
    "K-best list of Moses, Marian, fairseq and others; - is standard input; repeatable.\n\n"
    "Plain or compressed by gzip, xz or bzip2; `rerank list formats` shows the formats. Several "
    "lists, and --systems, are merged by text, with features sysNAME, how often a list has the "
    "text, and its own scores, NAME before their names."
)
REFERENCE_HELP = (
    "Reference translation, one line per source sentence, or WMT XML and others; repeatable.\n\n"
    "WMT XML, NIST SGML or JSON lines: all references of the file are read, or one as "
    "FILE#NAME. sacrebleu:TESTSET/PAIR, as sacrebleu:wmt23/ru-en: from the cache of "
    "sacrebleu."
)
LM_OR_HF_HELP = "Language model of train-lm, or hf:DIR of Hugging Face (`rerank help lm`)"
CACHE_HELP = (
    "Folder of the score cache [default: $RERANK_CACHE, or rerank in the user's cache folder]."
)
DEVICE_HELP = "Device for language models: cpu, mps, cuda, cuda:N, or auto: CUDA, else the CPU."
THREADS_HELP = "CPU threads for language models [default: one; more for large models]."
MOST_THREADS = 512  # that a process should start
_FORMS = {  # of results, and what --help says of them
    ("text", "json"): "Output as text or as JSON.",
    ("text", "json", "tsv"): "Output as text, as JSON, or as TSV; the latter two with all digits.",
    ("text", "json", "tsv", "latex", "markdown"): "Output as text; as JSON or TSV, with all "
    "digits; or as a table for LaTeX (booktabs) or Markdown.\n\n"
    "These have each score with its gain, the interval of the gain, and p; --metric bleu leaves "
    "the other scores out. Rows have the names of the files, or of --systems NAME=FILE.",
}


class SystemValue(Pair):
    """[NAME=]FILE[,align=yes]; in TOML also a table with name, path and align."""

    text_of = staticmethod(text_of)
    keys: ClassVar = {"align": Key("align", click.BOOL, "whether texts are of whole documents")}

    def parsed(self, value: str) -> tuple[str, str]:
        """The name and the text behind it."""
        name, file = super().parsed(value)
        self.path(file)
        return name, file

    @classmethod
    def path(cls, file: FilePath) -> FilePath:
        """The path of the text behind NAME: an `UnsegmentedText` if it has align=yes."""
        path, keys = split(str(file), cls.keys)
        aligned = settings(keys, cls.keys, None, None).get("align", False)
        return UnsegmentedText(path) if aligned else Path(path if keys else file)


@record
class ListFiles:
    """K-best lists, in files or made of the outputs of systems, and their documents."""

    kbest: str | tuple[str, ...] = option(
        KBEST_HELP, type=FILE, default="", several=True, metavar="[NAME=]FILE"
    )
    systems: tuple[tuple[str, str], ...] = option(
        "Output of a system, a line per source sentence, in place of --kbest; repeatable.\n\n"
        "Lists are made of the outputs of all systems; --kbest may stand beside them. The system "
        "given first is the first engine: changes are counted from its output, and of equal "
        "candidates its own is chosen. "
        "FILE.xml#SYSTEM is one system of WMT XML; FILE.xml without NAME gives all its "
        "systems. NAME=FILE,align=yes: texts of whole documents, as of LLMs, are parted into "
        "the segments of the other systems by edit distance; FILE may be a folder with a "
        "file for each document.\n\n"
        "Features: sysNAME of each system, votes, consensusbleu, consensuschrf, "
        "consensusdocbleu; with --agreement, agreement, too.",
        type=SystemValue("[NAME=]FILE, for example A=a.txt or wmt23.xml", FILE, label=ALL_SYSTEMS),
        default=(),
        metavar="[NAME=]FILE",
    )
    documents: DocumentOptions = part(DocumentOptions)
    reading: ReadingOptions = part(ReadingOptions)

    def lists(self, **more: Any) -> Lists:
        """The lists as a run takes them; more: further fields."""
        from rerank.runs.lists import Lists, named_list

        named = tuple(named_list(file) for file in self.files_of_lists)
        single = not self.made and named[:1]
        return Lists(
            kbest=str(named[0][1]) if single else "",
            docs=self.documents.file,
            no_docs=self.documents.no_docs,
            systems=tuple((name, SystemValue.path(file)) for name, file in self.systems),
            merged=() if single else named,
            list_name=named[0][0] if single else "",
            **asdict(self.reading),
            **more,
        )

    @property
    def files_of_lists(self) -> tuple[str, ...]:
        """[NAME=]FILE of each k-best list."""
        if isinstance(self.kbest, tuple | list):
            return tuple(self.kbest)
        return (self.kbest,) if self.kbest else ()

    @property
    def made(self) -> bool:
        """Whether lists are made of outputs of systems, or of several lists."""
        return bool(self.systems) or len(self.files_of_lists) > 1


@record
class ReferenceFiles:
    """References of sentences; commands that cannot do without require them."""

    references: tuple[str, ...] = option(REFERENCE_HELP, "--ref", type=FILE, default=())
    drop_unreferenced: bool = flag(
        "Leave out sentences that a reference in WMT XML, NIST SGML or JSON lines does not have.",
        rare=True,
    )


def side_files(of: str, prefix: str = "", *, of_source: str = "") -> type[Given]:
    """A record of the files of side information beside a text: `--KIND` after a prefix, by kind.

    of: what has a line in the files; of_source: what else that of the source is for.
    """
    kinds = {
        f"{prefix}{kind}".replace("-", "_"): optional_file(
            f"{content[0].upper()}{content[1:]}, a line for each {of}.\n\nFor models that need it"
            f"{of_source if kind == 'source' else ''}.",
            f"--{prefix}{kind}",
            rare=kind != "source",
        )
        for kind, content in SIDE_INFORMATION.items()
    }
    return given("SideFiles", kinds)


def _score_file(kind: str) -> Any:
    """A field for files of `SCORE_FILES`."""
    label = SCORE_FILES[kind].label
    return option(
        SCORE_FILES[kind].help,
        type=Pair(f"[NAME=]FILE, for example {label}=FILE", FILE, label=label),
        default=(),
        metavar="[NAME=]FILE",
        rare=kind in ("pair-scores", "ngram"),
    )


@record
class ScorerOptions:
    """Scorers of a run, whose features stand behind those of the lists."""

    lm: tuple[LanguageModelOption, ...] = option(
        "Language model, as feature NAME: a folder of train-lm, or hf:DIR, seq2seq:DIR, "
        "openai:URL; repeatable.\n\n"
        "DIR, made by train-lm: features NAME, its log-probability in nats, and NAMEoov, the "
        "number of unknown words.\n\n"
        "hf:DIR: a causal language model of Hugging Face in safetensors (extra hf), given the "
        "document so far.\n\n"
        "seq2seq:DIR: a sequence-to-sequence model of Hugging Face (Marian, NLLB, M2M100, mBART, "
        "T5; extra hf), as log p(candidate | source); needs --source.\n\n"
        "openai:URL,model=NAME: a language model behind a server that gives log-probabilities of "
        "text through URL/completions (vLLM, SGLang, llama_cpp.server).\n\n"
        "Keys stand behind DIR or URL, as in --lm codclm=DIR,pmi=yes.",
        type=LanguageModelValue(),
        default=(),
        metavar="NAME=DIR[,KEY=VALUE...]",
    )
    scores: tuple[tuple[str, str], ...] = _score_file("scores")
    pair_scores: tuple[tuple[str, str], ...] = _score_file("pair-scores")
    ngram: tuple[tuple[str, str], ...] = _score_file("ngram")
    scorer: tuple[tuple[str, str], ...] = option(
        "Scorer as feature NAME: command:PROGRAM, judge:MODEL or another; repeatable.\n\n"
        "document-cache, consistency (source words with several translations in a document), "
        "command:PROGRAM (a program that reads JSON lines and answers a number for each), "
        "judge:MODEL (a language model that is asked, openai:URL,model=NAME or hf:DIR), or "
        "a scorer of an installed package; ARGUMENT is for it. `rerank list scorers` says what "
        "each computes.",
        type=ScorerValue("NAME=ENTRY or NAME=ENTRY:ARGUMENT", TEXT),
        default=(),
        metavar="NAME=ENTRY[:ARGUMENT]",
    )
    agreement: bool = flag(
        "Add features of how far candidates agree with the others of their sentence.\n\n"
        "agreement, by which they are chosen without --weights, votes, consensusbleu, "
        "consensuschrf and consensusdocbleu; those that the list has are not added."
    )
    defects: str | None = optional(
        "Candidates that are no translations: keep, avoid or drop them.\n\n"
        "Cut off, looping, untranslated, or with a prompt or reasoning; "
        "where a sentence has others, avoid takes one of these, by the feature `defects`, and drop "
        "leaves out the rest. Default: avoid without --weights, and with weights that have "
        "`defects`; else keep.",
        type=click.Choice([KEEP, AVOID, DROP]),
        rare=True,
    )
    glossary: str | None = optional(
        "Terms, as feature glossary: minus the number of those not translated; needs --source.\n\n"
        "Lines of the file: source term, TAB, translations with | between them. Each term "
        "counts 10 points of agreement without --weights; 10 is its weight, too, where the "
        "weights have none, or were tuned where no term tells candidates apart.\n\n"
        "Chinese and other text without spaces is compared by characters, all else by words.",
        type=GlossaryName(),
        metavar="FILE[,KEY=yes]",
    )
    side: Given = part(side_files("source line", of_source=", and for --missing source"))

    @property
    def names(self) -> dict[str, Sequence[tuple[str, str | Path]]]:
        """(NAME, value) of the scorers of each option, without its dashes."""
        by_option: dict[str, Sequence[tuple[str, str | Path]]] = {
            "lm": [(model.name, model.value) for model in self.lm],
            **self.score_files,
            "scorer": self.scorer,
            GLOSSARY: [(GLOSSARY, self.glossary)] if self.glossary else [],
        }
        return {option: named for option, named in by_option.items() if named}

    @property
    def origins(self) -> dict[str, str]:
        """How the user named each scorer, by its name."""
        named = {n: f"--{option} {n}=…" for option, pairs in self.names.items() for n, _ in pairs}
        return named | {f"{model.name}pmi": model.option for model in self.lm if model.pmi}

    @property
    def folders(self) -> list[Path]:
        """The folders of language models and of their adapters."""
        windows = [model.window for model in self.lm if model.window]
        adapters = [window.adapter for window in windows if window.adapter]
        return [*(model.folder for model in self.lm), *adapters]

    @property
    def files(self) -> list[Path]:
        """The files of scores of other tools, of prompts and terms."""
        from rerank.scorers.numbers import file_of_scores

        named = {**self.score_files, "scores": self.scores}
        files = [Path(file_of_scores(str(file))) for pairs in named.values() for _, file in pairs]
        windows = [model.window for model in self.lm if isinstance(model.window, Window)]
        files += [Path(window.prompt) for window in windows if window.prompt is not None]
        return [*files, *([Path(glossary_value(self.glossary)[0])] if self.glossary else [])]

    def used_by(self, weights: Weights, default: float | None) -> ScorerOptions:
        """These options without the scorers whose weights are all 0, on which no choice depends.

        default: weight of features that the weights lack. Agreement and the glossary stay: what
        the choices have of them is reported, whatever their weights.
        """

        def counts(option: str, name: str, *, pmi: bool = False) -> bool:
            labels = labels_of(option, name, pmi=pmi)
            values = [weights.dense.get(label, (default or 0.0,)) for label in labels]
            return labels.isdisjoint(weights.dense) or any(map(any, values))

        files: dict[str, Any] = {
            field: tuple(pair for pair in getattr(self, field) if counts(option, pair[0]))
            for option in (*SCORE_FILES, "scorer")
            for field in [option.replace("-", "_")]
        }
        models = tuple(model for model in self.lm if counts(LM, model.name, pmi=model.pmi))
        return replace(self, lm=models, **files)

    @property
    def beside_agreement(self) -> dict[str, float]:
        """Weights, beside that of agreement, of the features that have one without a file."""
        from rerank.scorers.glossary import WEIGHT

        weights = {name: preset_of(entry) for name, entry in self.scorer}
        weights |= {GLOSSARY: WEIGHT} if self.glossary else {}
        return {name: weight for name, weight in weights.items() if weight is not None}

    @property
    def score_files(self) -> dict[str, tuple[tuple[str, Path], ...]]:
        """(NAME, file) of scores of other tools, by the kinds that are given."""
        named = {kind: getattr(self, kind.replace("-", "_")) for kind in SCORE_FILES}
        first: dict[str, str] = {}
        named["scores"] = tuple(  # those of several systems have one name
            pair for pair in self.scores if first.setdefault(*pair) is pair[1] or ":" not in pair[1]
        )
        return {
            kind: tuple((name, Path(file)) for name, file in files)
            for kind, files in named.items()
            if files
        }


@record
class Machine:
    """What language models run on."""

    device: str = option(DEVICE_HELP, type=TEXT, default="auto", metavar="DEVICE")
    threads: int | None = optional(THREADS_HELP, type=Whole(1, MOST_THREADS))


@record
class ScoringMachine(Machine):
    """What the scorers of a run compute on, how, and where their scores are kept."""

    dtype: str = option(
        "Precision of large products; bfloat16 is faster, with errors of about 0.01 nats.\n\n"
        "tf32 lies between, on CUDA (on a CPU it is float32).",
        type=click.Choice(["float32", "tf32", "bfloat16"]),
        default="float32",
        rare=True,
    )
    deterministic: bool = flag(
        "Compute bit-identical scores for any batch size and number of threads; slower with beam "
        "search.",
        rare=True,
    )
    cache: Path | None = optional(CACHE_HELP, type=FOLDER, metavar="DIR", rare=True)
    no_cache: bool = flag("Neither read nor write the score cache.", rare=True)

    @property
    def of_models(self) -> dict[str, Any]:
        """What language models run on."""
        names = ("device", "threads", "dtype", "deterministic")
        return {name: getattr(self, name) for name in names}

    def open_cache(self, notices: Notices) -> Cache | None:
        """The cache, which may hold as much as the environment says; None without one."""
        from rerank.files.cache import Cache, cache_folder, cache_limit

        if not self.no_cache:
            return Cache(cache_folder(self.cache), notices, cache_limit())
        if self.cache is not None:
            raise UsageError("--cache and --no-cache exclude each other; give one of them")
        return None


@record
class Sharing:
    """How several processes share the documents of a run, and the memory of each."""

    shard: tuple[int, int] | None = optional(
        "Only score the documents of shard I of N, into the cache; the same command without "
        "--shard finishes.\n\n"
        "Documents are dealt by their size, and nothing is written. The shards may run on "
        "machines that share the cache. torchrun needs no option: its processes share the "
        "documents by themselves.",
        type=ShardName(),
        metavar="I/N",
        rare=True,
    )
    ray: str | None = optional(
        "Score on the workers of a Ray cluster (extra ray): auto, HOST:PORT, or local.\n\n"
        "auto is the cluster that this machine belongs to, local one on this machine alone.",
        type=TEXT,
        metavar="ADDRESS",
        rare=True,
    )
    memory: int | None = optional(
        "Memory for the whole program, as 3G [default: candidates may take half of what is "
        "available].\n\n"
        "Candidates that do not fit go to files in the folder $TMPDIR, with equal results.",
        type=MemorySize(),
        metavar="SIZE",
        rare=True,
    )


@record
class RunOptions:
    """What a run reads, what scores it, and on what machine."""

    lists: ListFiles = part(ListFiles, "Lists and documents", rare={"kbest_format", "missing"})
    scorers: ScorerOptions = part(ScorerOptions, "Features to add")
    machine: ScoringMachine = part(ScoringMachine, "Machine", rare={"device", "threads"})
    sharing: Sharing = part(Sharing, "Machine")

    def with_threads(self, threads: int | None) -> RunOptions:
        """These options with another number of threads for language models."""
        return replace(self, machine=replace(self.machine, threads=threads))

    def as_tuned(self, weights: Weights) -> RunOptions:
        """These options with what was chosen for the models of weights, by their provenance.

        The lists of systems have the feature `agreement` if the weights have it.
        """
        from rerank.scorers.agreement import (
            AGREEMENT,  # numpy
            DEFECTS,
        )

        models = tuple(model.as_tuned(weights.provenance) for model in self.scorers.lm)
        tuned = replace(self, scorers=replace(self.scorers, lm=models))
        has_agreement = self.lists.made and AGREEMENT in weights.dense
        if DEFECTS in weights.dense:
            tuned = tuned.avoiding_defects()
        return tuned.with_agreement() if has_agreement else tuned

    def with_agreement(self) -> RunOptions:
        """These options with features of agreement."""
        return replace(self, scorers=replace(self.scorers, agreement=True))

    def avoiding_defects(self) -> RunOptions:
        """These options with candidates that are no translations avoided, unless one says else."""
        how = self.scorers.defects or AVOID
        return replace(self, scorers=replace(self.scorers, defects=how))

    def check(self) -> None:
        """UsageError for pairs of candidates that the lists do not have."""
        if self.lists.reading.missing == AS_SOURCE and self.scorers.pair_scores:
            raise UsageError(
                "--pair-scores: it has no pairs of the source lines that --missing source takes "
                "for translations; leave out one of the two options"
            )

    @property
    def files(self) -> list[FilePath]:
        """All files that are read, without the models."""
        return [*self.inputs().files, *self.scorers.files]

    def inputs(self, *, drop_unreferenced: bool = False) -> Lists:
        """The lists as a run takes them, with their side information."""
        side = self.scorers.side.values()
        return self.lists.lists(side=side, drop_unreferenced=drop_unreferenced)


@record
class Messages:
    """What a command prints for its user, on standard error; the first process speaks for all."""

    strict: bool = flag(
        "Treat every warning as an error (exit code 3), but for those about what another option "
        "asks for, and those of --allow.",
        rare=True,
    )
    allow: tuple[str, ...] = option(
        "Kind of warnings that --strict accepts: its code or its name, as warnings end in them; "
        "repeatable.",
        type=DiagnosticName(),
        default=(),
        metavar="KIND",
        rare=True,
        needs={"strict": "warnings are errors under --strict alone; add it"},
    )
    deny: tuple[str, ...] = option(
        "Kind of warnings to treat as an error without --strict: its code or its name; repeatable.",
        type=DiagnosticName(),
        default=(),
        metavar="KIND",
        rare=True,
    )
    quiet: bool = flag("Print results and errors only.", "-q", "--quiet")
    verbose: bool = flag(
        "Print recipes, signatures and counters of the scoring engine, too.", "-v", rare=True
    )

    @property
    def strictness(self) -> Strictness:
        """Which warnings are errors."""
        return Strictness(self.strict, self.allow, self.deny)

    def announce_threads(self, threads: int | None) -> None:
        """Print the number of threads if the user chose it."""
        if threads is not None:
            self.announce(f"CPU threads for language models: {threads}")

    def announce(self, lines: str) -> None:
        """Print lines unless the command is quiet."""
        if not (self.quiet or process_number() > 0):
            say(lines)

    def detail(self, line: str) -> None:
        """Print a line that is of interest only under `-v`."""
        if self.verbose:
            self.announce(line)

    @contextmanager
    def warnings(self) -> Iterator[Notices]:
        """Collector of counted warnings, which are printed when the block ends.

        Progress of long work is shown in the block, unless the command is quiet.
        """
        notices = Notices(self.strictness)
        try:
            with progress_shown(not self.quiet):
                yield notices
        finally:
            self.report(notices)

    def report(self, notices: Notices) -> None:
        """Print the warnings so far: before work that is long, and at the end."""
        for line in notices.lines():
            self.announce(f"warning: {line}")


def default_weight_option() -> Any:
    """`--default-weight`: the field of a record beside one for a weights file."""
    return optional(
        "Weight of the features that the weights file lacks [default: refuse such a file].",
        "--default-weight",
        type=WEIGHT,
        metavar="WEIGHT",
        rare=True,
    )


def form_option(*forms: str, help: str | None = None) -> Any:
    """`--format`: the field of a record for the form of what is printed or written.

    help: that of `_FORMS`, if none is given.
    """
    return option(help or _FORMS[forms], "--format", type=click.Choice(forms), default=forms[0])


def print_result(result: Any, form: str) -> None:
    """Print a result: `to_dict()` as JSON, `table()` as TSV, or `to_text()` and the like."""
    if form == "json":
        text = json.dumps(result.to_dict(), allow_nan=False)
    elif form == "tsv":
        text = result.table().to_tsv()
    else:
        with fitting(width()):
            text = getattr(result, f"to_{form}")()
    show(text.removesuffix("\n"), for_people=form == "text")


def printed(work: Callable[[Any, Notices], Result]) -> Callable[[Any], Result]:
    """A command that collects its warnings, and prints them and then the result of its work.

    In the form of `--format`; a result that is a text is said unless the command is quiet.
    """

    @wraps(work)
    def command(options: Any) -> Result:
        messages: Messages = options.messages
        machine = getattr(getattr(options, "run", options), "machine", None)
        if machine is not None:
            messages.announce_threads(machine.threads)
        with messages.warnings() as notices:
            result = work(options, notices)
        if isinstance(result, str):
            messages.announce(result)
        elif result is not None and process_number() == 0:
            print_result(result, options.form)
        return result

    return command
