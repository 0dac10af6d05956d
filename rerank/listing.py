"""`rerank list`: the models, scorers, decoders, metrics and formats that there are.

Rows of built-in members come from light tables; entry points of other packages are listed by
name and package, and not loaded. Only counting the parameters of models needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rerank.commands.run import SEARCH, SEARCH_NAMES
from rerank.registry import (
    DECODERS,
    DOCUMENT_FORMATS,
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
    from lm.composition import Composition

Row = dict[str, object]
_HIDDEN = frozenset({"rng", "n_best", "start"})  # arguments whose options have other names


@dataclass(frozen=True, slots=True)
class Listing:
    """Members of one kind, a row each.

    warnings: names that other packages use in vain; note: what is printed below the rows.
    """

    rows: tuple[Row, ...]
    warnings: tuple[str, ...] = ()
    note: str = ""

    def to_text(self, width: int = 80) -> str:
        """Each name, and below it what is known of it, in lines of at most `width` characters."""
        shown = [
            {key: value for key, value in row.items() if not isinstance(value, dict)}
            | (settings if isinstance(settings := row.get("settings"), dict) else {})
            for row in self.rows
        ]
        margin = max((len(key) for row in shown for key in row), default=0) + 4
        lines: list[str] = []
        for row in shown:
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
        return "\n".join([*lines, *(["", *wrap(self.note, width)] if self.note else [])])


LABELS_COUNTED = 8  # kinds of labels for which parameters are counted


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """Sizes for which parameters are counted; the defaults are those of `train-lm`.

    vocabulary: words without `<unk>`, `<s>` and `</s>`.
    """

    embed: int = 128
    hidden: int = 256
    layers: int = 1
    recurrence: str = "lstm"
    tied: bool = True
    vocabulary: int = 10_000

    def to_text(self) -> str:
        """`embed 128, hidden 256, …`."""
        layers = f"{self.layers} {self.recurrence} layer{'s' if self.layers > 1 else ''}"
        tied = "tied" if self.tied else "untied"
        sizes = f"embed {self.embed:,}, hidden {self.hidden:,}, {layers}, {tied} output layer"
        return f"{sizes}, {self.vocabulary:,} words and <unk>, <s>, </s>"


def model_listing(sizes: ModelSizes) -> Listing:
    """The listing of the models with numbers of parameters, which take no memory to count.

    A built-in model that has none of these sizes, or a family of models, has no number, but the
    reason. Where the equations of a model decide a size, that is counted and told. Models of other
    packages are not loaded.
    """
    found = listing("models")
    note = f"number of parameters: with {sizes.to_text()}"
    return replace(found, rows=tuple(_counted(row, sizes) for row in found.rows), note=note)


def _counted(row: Row, sizes: ModelSizes) -> Row:
    """The row of a model with its number of parameters."""
    if row["package"] is not None:
        return row
    from lm.composition import load
    from lm.model import Config, DocumentLM, n_parameters
    from lm.side_information import KINDS as KINDS_OF_SIDE
    from lm.side_information import LABELS, information_of
    from lm.vocabulary import SPECIAL

    name, given = str(row["name"]), asdict(sizes)
    own = MODELS.builtin[name].adapted(given) if name in MODELS.builtin else given
    shape = own | {"vocabulary": sizes.vocabulary + len(SPECIAL)}
    composition = MODELS.builtin.get(name)  # None of a family
    needed = information_of(load(composition.context)) if composition else ()
    beside: dict[str, Any] = {
        KINDS_OF_SIDE[kind]: len(SPECIAL) + (LABELS_COUNTED if kind in LABELS else sizes.vocabulary)
        for kind in needed
        if kind in KINDS_OF_SIDE
    }
    try:
        model = DocumentLM.without_memory(Config(name, **shape, **beside), MODELS.builtin)
    except ValueError as fault:
        return {**row, "number of parameters": None, "not counted": str(fault)}
    changed = [
        f"{size} {'its own' if value is None else value}"
        for size, value in own.items()
        if value != given[size]
    ]
    changed += [f"{name.replace('_', ' ')} {n:,}" for name, n in beside.items()]
    told = {"number of parameters": n_parameters(model), "counted with": ", ".join(changed)}
    return {**row, **told, "sizes": own}


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
    return [*(SEARCH_NAMES[name] for name in row.options if name not in _HIDDEN), *seed, *several]


def _decoders() -> Iterable[Row]:
    for row in DECODERS.builtin.values():
        yield {
            "name": row.name,
            "orders": row.orders,
            "exact on": row.exact_orders,
            "cost": row.cost,
            "options": flags(row),
            "settings": {
                name: key.text for name, key in SEARCH.keys.items() if row.takes(key.field)
            },
            "source": row.source,
        }


def _metrics() -> Iterable[Row]:
    for name, address in METRICS.builtin.items():
        yield {"name": name, "option": f"--objective {name}", "address": address}


def _scorers() -> Iterable[Row]:
    help = (
        "Language model made by train-lm, as features NAME and NAMEoov; with hf:DIR a causal "
        "language model of Hugging Face, as feature NAME."
    )
    yield {"name": "lm", "option": "--lm NAME=DIR", "description": help}
    for name, kind in SCORE_FILES.items():
        yield {"name": name, "option": f"--{name} [NAME=]FILE", "description": kind.help}
    yield {
        "name": "consistency",
        "option": "--scorer NAME=consistency[:IGNORED]",
        "description": "Lexical consistency: minus the number of translations that a candidate "
        "gives to source words with another translation in the document so far, by the alignments "
        "or segmentations of the list; needs --source. IGNORED: a file of source words that do "
        "not count.",
    }
    yield {
        "name": "document-cache",
        "option": "--scorer NAME=document-cache[:SHARE]",
        "description": "Words that the document has had before: the log-probability of a "
        "candidate's words under the unigram of the document so far, of weight SHARE [default "
        "0.5] beside a uniform distribution, less that without it. --document-cache interpolates "
        "a language model instead.",
    }


def _models() -> Iterable[Row]:
    models: Mapping[str, Composition] = {**MODELS.builtin, **MODELS.families}
    for name, model in models.items():
        unknown = "N" if name in MODELS.families else "unbounded"
        order = unknown if model.order is None else model.order
        yield {
            "name": name,
            "order": order if model.causal else f"{order}, given the next sentence, too: sweeps",
            "exact decoders": [row.name for row in DECODERS.builtin.values() if _exact(row, model)],
            "context": str(model.context).partition(":")[2],
            "fusion": _part(model.fusion, "fusion", model),
            "head": _part(model.head, "head", model),
            "source": model.source,
            "parameters": model.parameters,
        }


def _part(part: object, option: str, model: Composition) -> str:
    """Name of a part, and the option that replaces it."""
    name = str(part).partition(":")[2]
    return name if model.fixed else f"{name} (others: train-lm --{option})"


def _exact(decoder: Decoder, model: Composition) -> bool:
    """Whether a decoder is exact for a model, or for all models of a family of finite order."""
    order = model.order
    if not (model.causal or decoder.acausal):
        return False
    return decoder.exact(order if order is None or isinstance(order, int) else 10**6)


def _formats() -> Iterable[Row]:
    for name in FORMATS.builtin:
        known = FORMATS[name]()
        yield {
            "name": name,
            "description": known.description,
            "suffixes": list(known.suffixes),
            "example": known.example.decode(),
        }


def _document_formats() -> Iterable[Row]:
    for name in DOCUMENT_FORMATS.builtin:
        known = DOCUMENT_FORMATS[name]()
        yield {
            "name": name,
            "description": known.description,
            "texts": "with texts" if known.has_texts else "documents only",
            "example": known.example.decode(),
        }


def _plain(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(value) if isinstance(value, list) else str(value)


KINDS: dict[str, tuple[Registry[Any], Callable[[], Iterable[Row]]]] = {
    "models": (MODELS, _models),
    "scorers": (SCORERS, _scorers),
    "decoders": (DECODERS, _decoders),
    "metrics": (METRICS, _metrics),
    "formats": (FORMATS, _formats),
    "document-formats": (DOCUMENT_FORMATS, _document_formats),
}
