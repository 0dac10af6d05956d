"""`rerank first`: the first candidates of a list."""

from __future__ import annotations

from rerank.commands.convert import Converted, write_converted
from rerank.options import Command, option, part, record
from rerank.runs.options import ListFiles, Messages
from rerank.values import FILE


@record
class FirstOptions:
    """Options of `rerank first`."""

    lists: ListFiles = part(
        ListFiles, "Lists and documents", without={"systems"}, required={"kbest"}
    )
    source: str | None = option(
        "Source text, a line a sentence, for --missing source.", type=FILE, default=None
    )
    out: str = option("File of the translations, a line a sentence.", type=FILE, default="-")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def first(options: FirstOptions) -> None:
    """Write the first candidate of each sentence of a list.

    Example:
      rerank first --kbest test.nbest.gz --out test.1best
    """
    side = {} if options.source is None else {"source": options.source}
    with options.messages.warnings() as notices:
        lists = options.lists.lists(side=side)
        said = write_converted(lists, Converted(to="first", out=options.out), notices)
        options.messages.announce(said)


COMMAND = Command("first", FirstOptions, first)
