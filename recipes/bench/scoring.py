"""Our scoring engine against scripts in PyTorch: same weights, same machine, same run.

    python recipes/bench/scoring.py --data DATA [--shape 128/10k] [--lm DIR] [--scaling] [--phases]

Prints one table (README.md explains its columns) and exits with 1 if any score of the two
differs by more than 1e-3 nats. Run it with nothing else running.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click
import torch
from lists import FILES, MADE_UP, Text
from measuring import machine, matmul_peak
from phases import Phase
from rows import Bench, Row
from tabulate import tabulate
from tasks import TASKS, seeded

from lm.checkpoint import load_model
from lm.model import Config, DocumentLM
from lm.vocabulary import Vocabulary

TOLERANCE = 1e-3
SHOWN = 0.005  # share of the time that a phase of the table has, at least
SHAPES = ("128/10k", "256/20k")


def _config(model: str, shape: str) -> Config:
    """The model of a shape such as 128/10k: embedding and hidden size, words."""
    size, _, words = shape.partition("/")
    try:
        vocabulary = int(words.removesuffix("k")) * (1000 if words.endswith("k") else 1)
        source = vocabulary if model == "attention" else None
        return Config(
            model, vocabulary, int(size), int(size), "lstm", tied=True, source_words=source
        )
    except ValueError:
        raise click.UsageError(f"expected a shape such as 128/10k, found {shape!r}") from None


def _models(
    folders: Sequence[Path], shapes: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[DocumentLM, Vocabulary | None, Vocabulary | None]]:
    """Trained models with their vocabularies and those of the source, then random ones without."""
    for folder in folders:
        saved = load_model(folder)
        config = saved.model.config
        if config.model not in TASKS or (config.recurrence, config.layers) != ("lstm", 1):
            raise click.UsageError(f"{folder}: expected {', '.join(TASKS)} with one LSTM layer")
        yield saved.model, saved.vocabulary, saved.side.get("source")
    for shape in shapes or (() if folders else SHAPES):
        for name in names or TASKS:
            yield seeded(_config(name, shape)), None, None


def _table(rows: Sequence[Row]) -> str:
    header = "data model shape ours/s script/s ratio loop/s ratio good/s ratio best/s ratio"
    header += " tokens/node MiB GFLOP/s peak products max|Δ|"
    columns = header.split()
    if all(row.products_share is None for row in rows):
        columns.remove("products")
    cells = [
        [
            *(r.data, r.model, r.shape, f"{r.rate:,.0f}"),
            *_compared(r.script_rate, r.ratio),
            *_compared(r.loop_rate, r.loop_ratio),
            *_compared(r.good_rate, r.good_ratio),
            *_compared(r.best_rate, r.best_ratio),
            f"{r.tokens_per_node:.2f}",
            "?" if r.peak_memory is None else f"{r.peak_memory / 2**20:.0f}",
            *(f"{r.flops_per_second / 1e9:,.0f}", f"{r.share_of_peak:.0%}"),
            *([] if r.products_share is None else [f"{r.products_share:.0%}"]),
            f"{r.difference:.0e}",
        ]
        for r in rows
    ]
    align = ["left"] * 3 + ["right"] * (len(columns) - 3)
    return tabulate(cells, columns, colalign=align, disable_numparse=True)


def _phase_table(phases: Sequence[Phase]) -> str:
    cells = [
        [
            *(p.model, p.phase, p.kind, f"{p.share:.1%}"),
            "" if p.rate is None else f"{p.rate / 1e9:,.0f} {p.unit}",
            "" if p.of_limit is None else f"{p.of_limit:.0%}",
        ]
        for p in phases
        if p.share >= SHOWN
    ]
    columns = ["model", "phase", "operations", "share", "rate", "of the limit"]
    align = ["left"] * 3 + ["right"] * 3
    return tabulate(cells, columns, colalign=align, disable_numparse=True)


def _compared(rate: float | None, ratio: float | None) -> tuple[str, str]:
    if rate is None or ratio is None:
        return "", ""
    return f"{rate:,.0f}", f"{ratio:.{1 if ratio >= 10 else 2}f}×"


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--set", "sets", multiple=True, type=click.Choice([*FILES, MADE_UP]))
@click.option("--model", "models", multiple=True, type=click.Choice(list(TASKS)))
@click.option("--shape", "shapes", multiple=True, help="EMBED=HIDDEN/V, random weights.")
@click.option("--lm", "folders", multiple=True, type=click.Path(path_type=Path), help="Trained.")
@click.option("--sentences", default=200, show_default=True, help="Of each set, for rnnlm.")
@click.option("--sample", default=20, show_default=True, help="The same, for the others.")
@click.option("--contexts", default=100, show_default=True, help="The script's, of a list.")
@click.option("--threads", type=int, help="PyTorch's threads  [default: all]")
@click.option("--device", default="cpu", show_default=True)
@click.option("--scaling", is_flag=True, help="Seconds of ours against K, too.")
@click.option("--profile", is_flag=True, help="Share of products and exponentials, too.")
@click.option("--phases", is_flag=True, help="Where our time goes on the first set, too; CPU.")
@click.option("--format", "style", default="table", type=click.Choice(["table", "json"]))
def main(  # noqa: PLR0913 (an option each)
    data: Path,
    sets: tuple[str, ...],
    models: tuple[str, ...],
    shapes: tuple[str, ...],
    folders: tuple[Path, ...],
    sentences: int,
    sample: int,
    contexts: int,
    threads: int | None,
    device: str,
    scaling: bool,
    profile: bool,
    phases: bool,
    style: str,
) -> None:
    """Time our scoring against scripts in PyTorch, and compare their scores."""
    if threads:
        torch.set_num_threads(threads)
    place = torch.device(device)
    if phases and place.type != "cpu":
        raise click.UsageError("--phases measures a CPU")
    chosen = sets or (*FILES, MADE_UP)
    texts = [Text.read(data, x, max(sentences, sample)) for x in chosen if x != MADE_UP]
    peak = matmul_peak(place)
    bench = Bench(texts, MADE_UP in chosen, sentences, sample, contexts, peak, profile)
    rows: list[Row] = []
    growth: list[Mapping[str, object]] = []
    spent: list[Phase] = []
    for model, vocabulary, source in _models(folders, shapes, models):
        for row in bench.rows(model.to(place), vocabulary, source):
            speed = f"{row.words_rate:,.0f} words/s, {row.good_ratio:.1f}× good"
            click.echo(f"{row.model} {row.shape}, {row.data}: {speed}", err=True)
            rows.append(row)
        if scaling and texts and model.config.model in ("rnnlm", "codclm"):
            growth += bench.scaling(model, vocabulary)
        if phases and texts:
            spent += bench.phases(model, vocabulary)
    about = {"machine": machine(place), "matmul_peak_flops_per_second": peak}
    if style == "json":
        result = {**about, "rows": [asdict(row) for row in rows], "scaling": growth}
        result["phases"] = [asdict(phase) for phase in spent]
        print(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        print(f"{about['machine']}; float32 products at most {peak / 1e9:,.0f} GFLOP/s\n")
        print(_table(rows))
        if growth:
            print("\n" + tabulate(growth, "keys", floatfmt=".3g", intfmt=","))
        if spent:
            print("\n" + _phase_table(spent))
    if not all(row.difference <= TOLERANCE for row in rows):
        sys.exit(f"scores differ by more than {TOLERANCE} nats")


if __name__ == "__main__":
    main()
