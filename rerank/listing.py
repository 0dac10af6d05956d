"""`rerank list`: the models, scorers, decoders, metrics and formats that there are.

Rows of built-in members come from light tables; entry points of other packages are listed by
name and package, and not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rerank.registry import (
    DECODERS,
    FLAGS,
    FORMATS,
    METRICS,
    MODELS,
    SCORE_FILES,
    SCORERS,
    Registry,
    package,
)

if TYPE_CHECKING:
    from decoders.table import Decoder
    from lm.zoo import Composition

Row = dict[str, object]
_HIDDEN = frozenset({"rng", "n_best"})  # arguments whose options have other names


@dataclass(frozen=True, slots=True)
class Listing:
    """Members of one kind, a row each; warnings: names that other packages use in vain."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...] = ()

    def to_text(self, width: int = 80) -> str:
        """Each name, and below it what is known of it, in lines of at most `width` characters."""
        margin = max((len(key) for row in self.rows for key in row), default=0) + 4
        lines: list[str] = []
        for row in self.rows:
            known = {key: _plain(value) for key, value in row.items() if value not in (None, "")}
            lines.append(known.pop("name"))
            for key, text in known.items():
                lines += wrap(
                    text,
                    width,
                    initial_indent=f"  {key:<{margin - 2}}",
                    subsequent_indent=" " * margin,
                    break_on_hyphens=False,
                )
        return "\n".join(lines)


def listing(kind: str) -> Listing:
    """The members of a kind, `models`, `scorers`, …, built-in ones first."""
    registry, rows = KINDS[kind]
    builtin: list[Row] = [{**row, "package": None} for row in rows()]
    names = {row["name"] for row in builtin}
    others: list[Row] = [
        {"name": name, "package": package(point), "address": point.value}
        for name, point in registry.plugins().items()
        if name not in names
    ]
    return Listing((*builtin, *others), tuple(registry.clashes()))


def flags(row: Decoder) -> list[str]:
    """The options of the shell that a decoder uses."""
    seed = ["--seed"] if row.takes("seed") else []
    several = ["--n-best"] if row.takes("n_best") else []
    return [*(FLAGS[name] for name in row.options if name not in _HIDDEN), *seed, *several]


def _decoders() -> Iterable[Row]:
    for row in DECODERS.builtin.values():
        yield {
            "name": row.name,
            "orders": row.orders,
            "exact on": row.exact_orders,
            "cost": row.cost,
            "options": flags(row),
            "source": row.source,
        }


def _metrics() -> Iterable[Row]:
    for name, address in METRICS.builtin.items():
        yield {"name": name, "option": f"--objective {name}", "address": address}


def _scorers() -> Iterable[Row]:
    help = "Language model made by train-lm, as features NAME and NAMEoov."
    yield {"name": "lm", "option": "--lm NAME=DIR", "description": help}
    for name, kind in SCORE_FILES.items():
        yield {"name": name, "option": f"--{name} [NAME=]FILE", "description": kind.help}


def _models() -> Iterable[Row]:
    models: Mapping[str, Composition] = MODELS.builtin
    for name, model in models.items():
        yield {
            "name": name,
            "order": "unbounded" if model.order is None else model.order,
            "context": str(model.context).partition(":")[2],
            "fusion": str(model.fusion).partition(":")[2],
            "head": str(model.head).partition(":")[2]
            + ("" if model.only_head else " (others: train-lm --head)"),
            "source": model.source,
            "parameters": model.parameters,
        }


def _formats() -> Iterable[Row]:
    for name in FORMATS.builtin:
        known = FORMATS[name]()
        yield {
            "name": name,
            "description": known.description,
            "suffixes": list(known.suffixes),
            "example": known.example.decode(),
        }


def _plain(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


KINDS: dict[str, tuple[Registry[Any], Callable[[], Iterable[Row]]]] = {
    "models": (MODELS, _models),
    "scorers": (SCORERS, _scorers),
    "decoders": (DECODERS, _decoders),
    "metrics": (METRICS, _metrics),
    "formats": (FORMATS, _formats),
}
