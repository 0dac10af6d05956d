"""`rerank diversity`: how much the candidates of a sentence differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from rerank.commands.run import ListFiles, Messages, form_option, print_result
from rerank.options import Command, part, record
from rerank.table import Column, Table

if TYPE_CHECKING:
    from rerank.commands.lists import Lists
    from rerank.corpus.diversity import Diversity
    from rerank.notices import Notices

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


def diversity(options: DiversityOptions) -> None:
    """Count distinct candidates and their mean edit distance.

    --docs is needed only if ids fall within documents.

    Example:
      rerank diversity --kbest test.nbest.gz --top 20 --diverse
    """
    with options.messages.warnings() as notices:
        result = diversity_of(options.lists.lists(), notices)
    print_result(result, options.form)


COMMAND = Command("diversity", DiversityOptions, diversity)


@dataclass(frozen=True, slots=True)
class Diversities:
    """Diversity of each list that has candidates, by its id in the file.

    candidates, distinct: sums over the lists; mean: by figure, over the lists for which it is
    defined, None if there are none; shares: by name of `_SHARES` and figure, the smallest value
    with at least this share of the values at or below it.
    """

    lists: Mapping[int, Diversity]
    candidates: int
    distinct: int
    mean: Mapping[str, float | None]
    shares: Mapping[str, Mapping[str, float | None]]

    @classmethod
    def of(cls, lists: Mapping[int, Diversity]) -> Diversities:
        """The figures of lists."""
        import numpy as np

        defined = {
            figure: np.array([x for x in values if x is not None], dtype=np.float64)
            for figure in _FIGURES
            for values in [[getattr(one, figure) for one in lists.values()]]
        }
        mean = {name: float(own.mean()) if len(own) else None for name, own in defined.items()}
        shares = {
            name: {
                figure: float(np.quantile(own, share, method="inverted_cdf")) if len(own) else None
                for figure, own in defined.items()
            }
            for name, share in _SHARES.items()
        }
        total, distinct = (int(defined[figure].sum()) for figure in ("candidates", "distinct"))
        return cls(lists, total, distinct, mean, shares)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded."""
        return {
            "schema": 1,
            "candidates": self.candidates,
            "distinct": self.distinct,
            "mean": self.mean,
            "lists": [{"id": t, **asdict(one)} for t, one in self.lists.items()],
        }

    def table(self) -> Table:
        """A row for each list; a figure that is not defined for it is missing."""
        columns = [Column("id"), *(Column(figure) for figure in _FIGURES)]
        return Table(columns, [[t, *asdict(one).values()] for t, one in self.lists.items()])

    def to_text(self) -> str:
        """The report as a table: mean and quantiles of each figure over the lists."""
        columns = [Column("of a list"), *(Column(*figure) for figure in _FIGURES.items())]
        rows = {"mean": self.mean, **self.shares}
        table = Table(columns, [[name, *found.values()] for name, found in rows.items()])
        return (
            f"{table.to_text()}\n\n"
            f"{len(self.lists):,} lists, {self.candidates:,} candidates, {self.distinct:,} "
            "distinct\n"
            "distance: edit distance in words, mean of all pairs of a list\n"
            "relative: distance / length of the longer candidate, mean of all pairs of a list\n"
            "10%, 50%, 90%: quantiles over the lists\n"
        )


def diversity_of(lists: Lists, notices: Notices) -> Diversities:
    """The diversity of k-best lists, as `--top` and `--diverse` leave them.

    Documents determine only in which order ids may come (`rerank.corpus.grouping.documents_of`);
    without --docs every list is a document. Memory: a document, and about 200 bytes per list.
    """
    import numpy as np

    from rerank.commands.list_run import ListRun
    from rerank.corpus.diversity import diversity as diversity_of_list

    if lists.docs is None:
        lists = replace(lists, no_docs="each")
    found: dict[int, Diversity] = {}
    with ListRun.open(lists, notices) as source:
        for _, kbest in source.read():
            for t in np.flatnonzero(kbest.counts).tolist():
                tokens = [kbest.tokens(row) for row in kbest.rows(t)]
                line = source.documents.line(kbest.first + t)
                found[lists.first_id + line] = diversity_of_list(tokens)
    return Diversities.of(dict(sorted(found.items())))
