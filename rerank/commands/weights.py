"""`rerank weights`: weights of one tool written for another."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from rerank.errors import InputError, UsageError
from rerank.files.lines import spool
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import FilePath, display
from rerank.notices import Notices
from rerank.options import Command, argument, option, optional_file, part, record
from rerank.registry import MOSES_INI, WEIGHT_FORMATS
from rerank.runs.options import Messages, printed
from rerank.values import FILE, MemberName

if TYPE_CHECKING:
    from rerank.formats.weights import Weights

MOSES = "moses"  # a section for a moses.ini, or a whole one


@record
class WeightsOptions:
    """Options of `rerank weights`."""

    source: str = argument("IN", type=FILE)
    to: str = option(
        "Format to write; moses is moses-ini with --base, else ini.\n\n"
        "json (ours), ini (rescore.ini, and a [weight] section to paste), dense "
        "(run*.dense), kbmira (F0, F1, …), cdec, travatar.",
        type=MemberName(WEIGHT_FORMATS, MOSES, MOSES_INI),
    )
    out: str = option("File to write; - is standard output.", type=FILE, default="-")
    base: str | None = optional_file("With --to moses-ini, the moses.ini to write them into.")
    kbest: str | None = optional_file(
        "K-best list of the weights: its features, in their order, have F0, F1, … of IN.\n\n"
        "Or those with names of another tool; with --to cdec or travatar, the list whose "
        "names are written (not needed for JSON that tune-mert made of this list)."
    )
    messages: Messages = part(Messages, "Messages", without={"verbose"})

    def check(self) -> None:
        """UsageError for one half of `--to moses-ini --base FILE`."""
        if self.to != MOSES and (self.base is not None) != (self.to == MOSES_INI):
            raise UsageError("--to moses-ini and --base: expected both or none; give both")


@printed
def weights(options: WeightsOptions, notices: Notices) -> None:
    """Convert a weights file for another tool.

    IN is recognised by its content: moses.ini, also with the sections of old versions, such as
    [weight-l], and with a [weight-file]; run*.dense; rescore.ini; kbmira and PRO; cdec and Joshua;
    travatar; numbers alone; JSON of rerank, or an object of names and numbers.

    Example:
      rerank weights run7.dense --to json --out weights.json
    """
    from rerank.formats.moses_ini import merged
    from rerank.formats.weight_files import read_base, read_weights, to_bytes

    source, base, kbest = options.source, options.base, options.kbest
    inputs = check_outputs([options.out], (source, base, kbest))
    read = read_weights(source, notices)
    if kbest is not None:
        read = _named(read, kbest, display(source))
    if base is None:
        content = to_bytes(read, "ini" if options.to == MOSES else options.to, notices)
    else:
        parts, lines = (read.dense, read.sparse, read.alpha), read_base(base, notices)
        content = merged(lines, *parts, notices, source=display(base))
    inputs.check()
    with atomic(options.out) as file:
        file.write(content)


COMMAND = Command("weights", WeightsOptions, weights)


def _named(weights: Weights, kbest: FilePath, source: str) -> Weights:
    """The weights under the names of a list's features."""
    from rerank.formats.table import opened
    from rerank.formats.weights import fitted_to

    notices = Notices()
    with spool(kbest) as file:
        known, lines = opened(file, notices)
        chunks = known.read(lines, notices, source=display(kbest), clip=1.0)
        rows = next(chunks, None)
        if rows is None:
            raise InputError("expected a k-best list, found no hypotheses", source=display(kbest))
        named = fitted_to(weights, rows.labels, source=source)
        others = named.dense.keys() - {label.name for label in rows.labels}
        names = set[str]().union(*(chunk.sparse.names for chunk in chain([rows], chunks) if others))
    for name in [other for other in others if f"{other}_" in names]:  # as lists of cdec are read
        dense = {**named.dense}
        (value,) = dense.pop(name)
        named = replace(named, dense=dense, sparse={**named.sparse, f"{name}_": value})
    if (named.dense, named.decoder_names) == (weights.dense, weights.decoder_names):
        raise UsageError(
            f"--kbest {display(kbest)}: the weights have names of the list already, or the "
            "features of the list have none; leave it out"
        )
    return named
