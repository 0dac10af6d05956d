"""`rerank diversity`: how much the candidates of a sentence differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rerank.notices import Notices
from rerank.options import Command, part, record
from rerank.runs.options import ListFiles, Messages, form_option, printed
from rerank.table import Column, Table

if TYPE_CHECKING:
    from rerank.corpus.edit_distance import Diversity

_FIGURES = {"candidates": ".1f", "distinct": ".1f", "distance": ".2f", "relative": ".3f"}
_SHARES = {"least": 0.0, "10%": 0.1, "50%": 0.5, "90%": 0.9, "most": 1.0}


@record
class DiversityOptions:
    """Options of `rerank diversity`."""

    lists: ListFiles = part(
        ListFiles,
        "Lists and documents",
        without={"systems", "no_docs", "missing"},
        required={"kbest"},
    )
    form: str = form_option(
        "text", "json", "tsv", help="A summary as text, or every sentence's figures as JSON or TSV."
    )
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def diversity(options: DiversityOptions, notices: Notices) -> Diversities:
    """Count distinct candidates and their mean edit distance.

    --docs is needed only if ids fall within documents.

    Example:
      rerank diversity --kbest test.nbest.gz --top 20
    """
    import numpy as np

    from rerank.corpus.edit_distance import diversity as diversity_of
    from rerank.runs.opening import open_run

    lists = options.lists.lists()
    if lists.docs is None:  # documents determine only in which order ids may come
        lists = replace(lists, no_docs="each")
    figures: dict[int, Diversity] = {}
    with open_run(lists, notices) as run:
        for _, kbest in run.read():
            for t in np.flatnonzero(kbest.counts).tolist():
                tokens = [kbest.tokens(row) for row in kbest.rows(t)]
                line = run.source.documents.line(kbest.first + t)
                figures[lists.first_id + line] = diversity_of(tokens)
    return Diversities(dict(sorted(figures.items())))


COMMAND = Command("diversity", DiversityOptions, diversity)


@dataclass(frozen=True, slots=True)
class Diversities:
    """Diversity of each list that has candidates, by its id in the file."""

    lists: Mapping[int, Diversity]

    def total(self, figure: str) -> int:
        """Sum of a figure that every list has."""
        return sum(getattr(figures, figure) for figures in self.lists.values())

    def of_lists(self, statistic: Callable[[Any], Any]) -> dict[str, float | None]:
        """A statistic of each figure, over the lists for which it is defined; None for no list."""
        import numpy as np

        result: dict[str, float | None] = {}
        for figure in _FIGURES:
            values = [getattr(figures, figure) for figures in self.lists.values()]
            defined = np.array([value for value in values if value is not None], np.float64)
            result[figure] = float(statistic(defined)) if len(defined) else None
        return result

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded."""
        import numpy as np

        return {
            "schema": 1,
            "candidates": self.total("candidates"),
            "distinct": self.total("distinct"),
            "mean": self.of_lists(np.mean),
            "lists": [{"id": t, **asdict(figures)} for t, figures in self.lists.items()],
        }

    def table(self) -> Table:
        """A row for each list; a figure that is not defined for it is missing."""
        columns = [Column("id"), *(Column(figure) for figure in _FIGURES)]
        return Table(columns, [[t, *asdict(x).values()] for t, x in self.lists.items()])

    def to_text(self) -> str:
        """The report as a table: mean and quantiles of each figure over the lists."""
        import numpy as np

        columns = [Column("of a list"), *(Column(*figure) for figure in _FIGURES.items())]
        statistics: dict[str, Callable[[Any], Any]] = {"mean": np.mean}
        for name, share in _SHARES.items():  # the smallest value with this share at or below it
            statistics[name] = partial(np.quantile, q=share, method="inverted_cdf")
        rows = [[name, *self.of_lists(x).values()] for name, x in statistics.items()]
        return (
            f"{Table(columns, rows).to_text()}\n\n"
            f"{len(self.lists):,} lists, {self.total('candidates'):,} candidates, "
            f"{self.total('distinct'):,} distinct\n"
            "distance: edit distance in words, mean of all pairs of a list\n"
            "relative: distance / length of the longer candidate, mean of all pairs of a list\n"
            "10%, 50%, 90%: quantiles over the lists\n"
        )
