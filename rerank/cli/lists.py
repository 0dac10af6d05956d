"""Options for the k-best lists, documents and scores that a command works on."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rerank.cli.options import all_of
from rerank.cli.searching import search_of
from rerank.commands.run import ListFiles, RunOptions, ScorerOptions, ScoringMachine, Sharing
from rerank.corpus.reading import ReadingOptions
from rerank.options import decorators_of, settings_of

if TYPE_CHECKING:
    from rerank.commands.lists import Lists
    from rerank.commands.search import Search

_NAMES = {field.name for field in fields(ReadingOptions)}
reading_options = all_of(decorators_of(ReadingOptions, without={"missing", "normalize"}))
(missing_option,) = decorators_of(ReadingOptions, without=_NAMES - {"missing"})
(normalize_option,) = decorators_of(ReadingOptions, without=_NAMES - {"normalize"})
systems_option = decorators_of(ListFiles, without={"kbest"})[0]
_DEVICE, _THREADS, *_SCORING = decorators_of(ScoringMachine)
list_options = all_of(
    [*decorators_of(ListFiles), *decorators_of(ScorerOptions), _DEVICE, *_SCORING]
)
distribution_options = all_of(decorators_of(Sharing))
HEADINGS = {
    "kbest": "Lists and documents",
    "lm": "Features to add",
    "search": "Search",
    "strict": "Messages",
}


def split(options: dict[str, Any]) -> tuple[Lists, Search]:
    """`Lists` and `Search` from a command's options."""
    search = search_of(options)
    drop_unreferenced = options.pop("drop_unreferenced", False)
    run = settings_of(RunOptions, **options)
    return run.inputs(drop_unreferenced=drop_unreferenced), search
