"""Options of the search through documents, of commands that do not take the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rerank.cli.options import all_of
from rerank.commands.search import SearchOptions
from rerank.options import decorators_of

if TYPE_CHECKING:
    from rerank.commands.search import Search

_NAMES = ("search", "beam", "alpha", "seed", "gap")
search_options = all_of(decorators_of(SearchOptions))
path_options = all_of(decorators_of(SearchOptions, without={"gap"}))  # of commands without a gap
mbr_options = all_of(decorators_of(SearchOptions, without={"beam", "alpha", "gap"}))
tuning_search_options = all_of(  # with a seed of their own
    decorators_of(SearchOptions, without={"gap", "seed"})
)


def search_of(options: dict[str, Any]) -> Search:
    """The `Search` that a command's options ask for; they are removed from `options`."""
    given = {name: options.pop(name) for name in _NAMES if name in options}
    return SearchOptions(**given).chosen()
