"""The command line: each command parses its options and calls one function of the pipeline.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import rerank
from rerank.cli.ablation import ablate
from rerank.cli.cache import cache
from rerank.cli.checking import check
from rerank.cli.cloze import cloze
from rerank.cli.converting import convert, first
from rerank.cli.decoding import decode, score
from rerank.cli.demo import demo
from rerank.cli.diversity import diversity
from rerank.cli.evaluation import evaluate
from rerank.cli.explanation import explain
from rerank.cli.exporting import export
from rerank.cli.listing import list_group
from rerank.cli.lm_eval import lm_eval
from rerank.cli.mbr_tuning import tune_mbr
from rerank.cli.moses_tuning import tune_moses
from rerank.cli.ngram_models import train_ngram
from rerank.cli.perplexity import perplexity
from rerank.cli.relations import relations
from rerank.cli.reporting import report
from rerank.cli.sampling import sample
from rerank.cli.topics import topics
from rerank.cli.training import train_lm
from rerank.cli.tuning import tune_mert
from rerank.cli.weights import weights
from rerank.errors import RerankError
from rerank.files.interrupts import Terminated, ignore_stopping, raise_terminated
from rerank.files.terminal import flush_messages, say
from rerank.shadowing import refuse_shadowing
from rerank.torchrun import number_of_processes, process_number

_OUT_OF_MEMORY = re.compile(  # errors of torch
    "can't allocate memory|not enough memory|std::bad_alloc|CUDA( error:)? out of memory"
)
_COMPUTING = r"(rerank|lm|decoders|numpy)(\.|$)"  # modules that compute with floats


@click.group(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    }
)
@click.version_option(rerank.__version__, prog_name="rerank")
def cli() -> None:
    """Rerank the k-best lists of whole documents with document-context language models."""
    refuse_shadowing()


for command in (
    demo,
    check,
    train_lm,
    train_ngram,
    perplexity,
    sample,
    lm_eval,
    cloze,
    relations,
    topics,
    score,
    tune_mert,
    tune_moses,
    tune_mbr,
    decode,
    evaluate,
    report,
    explain,
    ablate,
    export,
    convert,
    first,
    diversity,
    weights,
    list_group,
    cache,
):
    cli.add_command(command)


def execute(arguments: Sequence[str]) -> Any:
    """The result of one command line; errors are raised."""
    return cli.main(list(arguments), prog_name="rerank", standalone_mode=False)


def run(arguments: Sequence[str]) -> int:
    """Exit code of one command line; an error is one line on standard error, not a traceback."""
    try:
        with warnings.catch_warnings():
            # of floats beyond their range, whose results would be wrong
            warnings.filterwarnings("error", category=RuntimeWarning, module=_COMPUTING)
            result = execute(arguments)
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
    except SystemExit:  # raised by click for a BrokenPipeError: nobody reads the output any more
        return 0
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
            return _failed(f"out of memory{_cure(arguments)}")
        if os.environ.get("RERANK_TRACEBACK"):
            raise
        return _failed(
            f"internal error: {type(bug).__name__}: {bug}; please report it, with the output of "
            "the same command under RERANK_TRACEBACK=1"
        )
    return result if isinstance(result, int) else 0


def _cure(arguments: Sequence[str]) -> str:
    """How a command can do with less memory."""
    command = cli.commands.get(arguments[0]) if arguments else None
    lists = command is not None and any("--top" in option.opts for option in command.params)
    return "; use --top K to keep fewer candidates" if lists else ""


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
    raise_terminated()
    try:
        exit_code = run(sys.argv[1:])
        ignore_stopping()
    except Terminated:  # while the message about a fault was printed
        exit_code = 143
    flush_messages()
    sys.exit(exit_code)
