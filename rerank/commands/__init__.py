"""The command line: a table of commands, each in a module that is loaded when it is called.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import difflib
import gc
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

import click

from rerank import refuse_shadowing
from rerank.errors import RerankError
from rerank.files.signature import __version__
from rerank.files.terminal import (
    Terminated,
    command_running,
    flush_messages,
    ignore_stopping,
    number_of_processes,
    process_number,
    raise_terminated,
    say,
)
from rerank.registry import attribute, fault_of_plugin, forget_plugins

_OUT_OF_MEMORY = re.compile(  # errors of torch
    "can't allocate memory|not enough memory|std::bad_alloc|CUDA( error:)? out of memory"
)
_NOT_ON_METAL = re.compile(r"[^.]*\bMPS (device|framework)[^.]*")  # errors of torch
_COMPUTING = r"(rerank|lm|decoders|numpy)(\.|$)"  # modules that compute with floats
_COMMANDS = {  # first sentence of the help of each command, by heading
    "Choose candidates": {
        "candidates": "Translate source sentences into k-best lists, by beam search or by draws "
        "from a model.",
        "check": "Find faults in the files of a run, and summarise its lists.",
        "first": "Write the first candidate of each sentence of a list.",
        "decode": "Choose the best candidates for whole documents.",
        "score": "Append features to a k-best list, for other tuners and decoders.",
        "demo": "Train, tune, decode and evaluate on an embedded example.",
    },
    "Tune weights": {
        "tune-mert": "Tune the feature weights by minimum error rate training, on whole documents.",
        "tune-moses": "Tune the feature weights on the files of Moses' extractor, in place "
        "of Moses' mert.",
        "weights": "Convert a weights file for another tool.",
    },
    "Judge": {
        "evaluate": "Compare translations with a baseline: BLEU, chrF, TER, and documents "
        "better or worse.",
        "report": "Show a decoding as a page: whether it helped, where, what changed, and why.",
        "explain": "Say what a decoding changed and why, of the file of decode --trace.",
        "ablate": "Say what the contexts of a decoding are worth, under the same weights.",
        "diversity": "Count distinct candidates and their mean edit distance.",
    },
    "Language models": {
        "train-lm": "Train a document language model.",
        "train-ngram": "Estimate an n-gram language model and write it in ARPA format.",
        "perplexity": "Compute the perplexity of TEXT under a language model.",
        "lm-eval": "Measure what language models know of documents, without lists to rerank.",
        "topics": "Topics of sentences: learned from text, and written beside it.",
        "relations": "Discourse relations between neighbouring sentences: files for --relations.",
    },
    "Files": {
        "convert": "Convert k-best lists of other tools, and between formats.",
        "export": "Write documents as files, for BlonDe and other metrics of discourse, or for "
        "people to judge.",
        "list": "Show what there is to choose from: built in, and from installed packages.",
        "help": "Say more of an option and its keys, or show the help of a command.",
        "cache": "Show or clear the cache of scores from earlier runs.",
    },
}


_ADDRESSES = {"list": "list_parts:COMMAND", "first": "convert:FIRST"}


class _Commands(click.Group):
    """The commands of `_COMMANDS`: each is `rerank.commands.NAME:COMMAND`, loaded when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return [name for rows in _COMMANDS.values() for name in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        refuse_shadowing()
        address = _ADDRESSES.get(cmd_name, f"{cmd_name.replace('-', '_')}:COMMAND")
        command: click.Command = attribute(f"rerank.commands.{address}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; UsageError, with the nearest names."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            raise click.UsageError(f"No such command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, rows in _COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), help) for name, help in rows.items()])


_HELP = """Choose translations that fit their documents, among k-best lists, samples or systems.

\b
To begin:
  rerank demo                     an embedded example, from training to report
  rerank check --kbest FILE ...   what is in your files, and what is wrong
  rerank decode --systems A=a.txt --systems B=b.txt --systems C=c.txt

\b
Environment:
  RERANK_<COMMAND>_<OPTION>   an option, as RERANK_DECODE_SEED=7;
                              of a repeatable one its words, as "bleu ter"
  RERANK_CACHE, RERANK_CACHE_GB, RERANK_TRACEBACK, NO_COLOR

\b
Exit codes:
  0    success
  1    the run failed: files, memory, a scorer
  2    options or configuration, or a file that is not there
  3    bad input data; warnings under --strict; check found faults
  75   stopped early, with the state saved: run the same command again
  130  interrupted, nothing saved (143: terminated)
"""


@click.group(
    cls=_Commands,
    help=_HELP,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, prog_name="rerank")
def cli() -> None:
    """The command line of `rerank`; its help is `_HELP`."""


execute = partial(cli.main, prog_name="rerank", standalone_mode=False)
"""The result of one command line, a list; errors are raised."""


def exit_code_of(arguments: Sequence[str]) -> int:
    """Exit code of one command line; an error is one line on standard error, not a traceback."""
    forget_plugins()
    try:
        with warnings.catch_warnings():
            # of floats beyond their range, whose results would be wrong
            warnings.filterwarnings("error", category=RuntimeWarning, module=_COMPUTING)
            result: object = execute(list(arguments))
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as fault:
        usage = io.StringIO()
        fault.show(usage)
        say(usage.getvalue().removesuffix("\n"))
        return fault.exit_code
    except RerankError as fault:
        return _failed(str(fault), fault.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted; nothing was saved", 130)
    except Terminated:
        return _failed("terminated; nothing was saved", 143)
    except SystemExit as leave:
        frames = [frame.f_globals for frame, _ in traceback.walk_tb(leave.__traceback__)]
        if not frames[-1]["__name__"].startswith("click."):
            plugin = fault_of_plugin(leave) or "code of another package"
            return _failed(f"{plugin}; it must not end the run, tell its authors")
        # a word is completed for a shell, or nobody reads the output any more
        return int(leave.code or 0) if "_RERANK_COMPLETE" in os.environ else 0
    except OSError as fault:  # writing a report to standard output failed, or another system call
        name = f"{fault.filename}: " if fault.filename else ""
        return _failed(name + (fault.strerror or str(fault)).lower())
    except RuntimeWarning as fault:
        return _failed(
            f"numbers beyond the range of floats ({fault}); the features or scores differ by too "
            "much: rescale them"
        )
    except Exception as bug:
        if isinstance(bug, MemoryError) or _OUT_OF_MEMORY.search(str(bug)):
            command = cli.get_command(click.Context(cli), arguments[0]) if arguments else None
            lists = command and any("--top" in option.opts for option in command.params)
            return _failed(
                "out of memory" + ("; use --top K to keep fewer candidates" if lists else "")
            )
        if os.environ.get("RERANK_TRACEBACK"):
            raise
        if missing := _NOT_ON_METAL.search(str(bug)):
            return _failed(f"--device mps: {missing[0]}; use --device cpu")
        if other := fault_of_plugin(bug):
            return _failed(f"{other}; tell its authors, with the traceback of RERANK_TRACEBACK=1")
        return _failed(
            f"internal error: {type(bug).__name__}: {bug}; please report it, with the output of "
            "the same command under RERANK_TRACEBACK=1"
        )
    return result if isinstance(result, int) else 0


def _failed(message: str, exit_code: int = 1) -> int:
    """The exit code, after the message on standard error."""
    process = f"[{process_number()}] " if number_of_processes() > 1 else ""
    say(f"{process}rerank: {message}".replace("\n", "\\n"))
    return exit_code


def main() -> NoReturn:
    """Entry point of the command `rerank`."""
    # numpy's and scipy's products are too small for threads, which would wait in busy loops;
    # those of torch wait asleep: beside other programs they take a fraction of the time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    # torch and numba make hundreds of thousands of objects that are no garbage: with Python's own
    # thresholds looking through them, and once more at the end, is a quarter of a short run
    gc.set_threshold(50_000, 20, 100)
    raise_terminated()
    try:
        with command_running():
            exit_code = exit_code_of(sys.argv[1:])
        ignore_stopping()
    except Terminated:  # while the message about a fault was printed
        exit_code = 143
    flush_messages()
    gc.freeze()  # what is left is not looked through once more
    sys.exit(exit_code)
