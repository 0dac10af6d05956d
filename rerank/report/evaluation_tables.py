"""Tables of `rerank evaluate`: for a terminal, for papers and for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

from rerank.metrics.significance import DRAWS, FEWEST_DOCUMENTS, MOST_EXACT, RESAMPLES
from rerank.report.evaluation_details import (
    NAMES,
    OUTSIDE,
    all_scores,
    ends,
    escaped,
    legend_of_roles,
    legend_of_tests,
    legend_of_words,
    long_table,
    p_text,
    scores,
    tests_of,
    title,
    word_classes,
)

if TYPE_CHECKING:
    from rerank.report.evaluation import Evaluation, System
    from rerank.report.metric_scores import MetricScore

_HEADERS = (
    "system",
    "BLEU",
    "95%",
    "length\nratio",
    "gain",
    "95%",
    "better/equal/\nworse",
    "increase\nratio",
    "p",
)


def as_text(found: Evaluation, width: int | None = None, *, tests: bool = False) -> str:
    """BLEU and documents; below, other metrics; then a legend. tests: with a table of all tests."""
    rows = [_cells(system) for system in found.systems]
    for name, score in (("oracle", found.oracle), ("anti-oracle", found.anti_oracle)):
        if score is not None:
            rows.append([name, f"{score.bleu:.2f}", "", f"{score.length_ratio:.3f}"])
    table, turned = _fitted(_headers(found.systems[0]), rows, width)
    more, _ = _fitted(*_others(found.systems), width)
    blocks = [table, "", more, ""]
    if found.systems[0].detokenised:
        blocks += [_fitted(*_detokenised(found.systems), width)[0], ""]
    if found.systems[0].scores:
        blocks += [long_table(*scores(found.systems)), ""]
    if found.systems[0].word_classes:
        blocks += [long_table(*word_classes(found.systems)), ""]
    tests = tests and len(found.systems) > 1
    if tests:
        blocks += [long_table(*tests_of(found.systems)), ""]
    first = "column" if turned else "row"
    legend = [*_legend(found, first), *legend_of_roles(found), *legend_of_words(found)]
    if tests:
        legend += legend_of_tests(found)
    return "\n".join([*blocks, *legend]) + "\n"


def _headers(system: System) -> list[str]:
    """Headers of the first table."""
    return [_HEADERS[0], title("bleu", system.metrics["bleu"], "\n"), *_HEADERS[2:]]


def score_lines(found: Evaluation, digits: int) -> str:
    """The scores alone: a line for each system but the baseline, its metrics parted by TABs."""
    return "".join(
        "\t".join(f"{score.score:.{digits}f}" for score in all_scores(system).values()) + "\n"
        for system in found.systems[1:]
    )


def documents_table(found: Evaluation) -> str:
    """BLEU of every document, and what the other systems gain in it over the baseline."""
    from tabulate import tabulate

    rows = []
    for document in found.documents:
        first, *others = document.bleu
        cells = [document.id, f"{document.sentences:,}", f"{first:.2f}"]
        rows.append(cells + [cell for b in others for cell in (f"{b:.2f}", f"{b - first:+.2f}")])
    names = [system.name for system in found.systems]
    headers = ["document", "lines", names[0]]
    headers += [header for name in names[1:] for header in (name, "gain")]
    align = ["left"] + ["right"] * (len(headers) - 1)
    table: str = tabulate(rows, headers=headers, colalign=align, disable_numparse=True)
    return table + "\n"


def as_table(found: Evaluation, form: str) -> str:
    """One table of all columns, in a format of tabulate; below it that of word classes, if any."""
    from tabulate import tabulate

    headers, rows = _joined(found.systems)
    names = [header.replace("/\n", "/").replace("\n", " ") for header in headers]
    table: str = tabulate(escaped(rows, form), headers=names, tablefmt=form, disable_numparse=True)
    if found.systems[0].word_classes:
        table += "\n\n" + long_table(*word_classes(found.systems), form)
    return table + "\n"


def numbers(system: System) -> dict[str, object]:
    """The figures of a system by name."""
    counts = system.documents
    found: dict[str, object] = {"system": system.name}
    for name, score in all_scores(system).items():
        low, high = score.interval or (None, None)
        found |= {name: score.score, f"{name}_low": low, f"{name}_high": high}
        p = score.p_values
        found |= {
            f"{name}_gain": score.difference,
            f"{name}_p": score.p_value,
            f"{name}_bootstrap_p": None if p is None else p.bootstrap,
            f"{name}_sign_test_p": None if p is None else p.sign_test,
            **({} if score.role is None else {f"{name}_role": score.role}),
        }
    for name, words in system.word_classes.items():
        found |= {f"{name}_precision": words.precision, f"{name}_recall": words.recall}
        found |= {f"{name}_f1": words.f1.score, f"{name}_f1_gain": words.f1.difference}
        found |= {f"{name}_f1_p": words.f1.p_value}
    return found | {
        "length_ratio": system.length_ratio,
        "bleu_without_brevity_penalty": system.bleu_without_brevity_penalty,
        "better": counts.better,
        "equal": counts.equal,
        "worse": counts.worse,
        "increase_ratio": counts.increase_ratio,
        "sign_test_p": system.sign_test_p_value,
        "oracle_share": system.oracle_share,
    }


def _fitted(
    headers: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> tuple[str, bool]:
    """A table, and whether its systems are columns, since it is wider than `width` otherwise."""
    from tabulate import tabulate

    n_columns = max(map(len, rows))
    table: str = tabulate(
        rows,
        headers=headers[:n_columns],
        colalign=["left"] + ["right"] * (n_columns - 1),
        disable_numparse=True,
    )
    if width is None or width >= max(map(len, table.splitlines())):
        return table, False
    names, *others = zip_longest(headers[:n_columns], *rows, fillvalue="")
    room = max(13, (width - len("better/equal/worse")) // len(rows) - 2)
    table = tabulate(
        [[row[0].replace("/\n", "/").replace("\n", " "), *row[1:]] for row in others],
        headers=["\n".join(wrap(name, room)) for name in names],
        colalign=["left"] + ["right"] * len(rows),
        disable_numparse=True,
    )
    return table, True


def _cells(system: System) -> list[str]:
    """Row of the first table; that of the baseline has no comparison."""
    cells = [
        system.name,
        f"{system.bleu:.2f}",
        ends(system.interval, ".2f"),
        f"{system.length_ratio:.3f}",
    ]
    if system.difference is None:
        return cells
    counts = system.documents
    return [
        *cells,
        f"{system.difference:+.2f}",
        ends(system.difference_interval, "+.2f"),
        f"{counts.better}/{counts.equal}/{counts.worse}",
        f"{counts.increase_ratio:.1%}",
        p_text(system.p_value),
    ]


def _others(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the second table: other metrics, and what explains BLEU and documents."""
    names = [name for name in systems[0].metrics if name != "bleu"]
    headers, rows = ["system"], [[system.name] for system in systems]
    for name in names:
        shown = NAMES.get(name, name)
        header = title(name, systems[0].metrics[name], "\n")
        headers += [header] if len(systems) == 1 else [header, "gain", f"p\n({shown})"]
        for row, system in zip(rows, systems, strict=True):
            row += _metric(system.metrics[name], compared=len(systems) > 1)
    headers.append("BLEU without\nbrevity penalty")
    for row, system in zip(rows, systems, strict=True):
        row.append(f"{system.bleu_without_brevity_penalty:.2f}")
    if len(systems) > 1:
        headers.append("sign\ntest p")
        for row, system in zip(rows, systems, strict=True):
            row.append(p_text(system.sign_test_p_value))
    if any(system.oracle_share is not None for system in systems):
        headers.append("share of\noracle gain")
        for row, system in zip(rows, systems, strict=True):
            share = system.oracle_share
            row.append("" if share is None else f"{share:.1%}")
    return headers, rows


def _detokenised(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of detokenised texts."""
    headers, several = ["detokenised"], len(systems) > 1
    for name in systems[0].detokenised:
        header = title(name, systems[0].detokenised[name], "\n")
        headers += [header, "gain", f"p\n({NAMES.get(name, name)})"] if several else [header]
    rows = [[system.name] for system in systems]
    for row, system in zip(rows, systems, strict=True):
        for score in system.detokenised.values():
            row += _metric(score, compared=several)
    return headers, rows


def _joined(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of both tables in one."""
    headers, others = _others(systems)
    first = _headers(systems[0])[: 4 if len(systems) == 1 else None]
    rows = []
    for system, other in zip(systems, others, strict=True):
        cells = _cells(system)
        row = [*cells, *[""] * (len(first) - len(cells)), *other[1:]]
        for score in system.scores.values():
            row += _metric(score, compared=len(systems) > 1, form=OUTSIDE)
        rows.append(row)
    for name in systems[0].scores:
        header = title(name, systems[0].scores[name])
        headers += [header] if len(systems) == 1 else [header, "gain", f"p\n({name})"]
    return first + headers[1:], rows


def _metric(score: MetricScore, *, compared: bool, form: str = ".2f") -> list[str]:
    """Cells of a metric; with a comparison two more, which the baseline has empty."""
    cells = [f"{score.score:{form}}"]
    if not compared:
        return cells
    gain = "" if score.difference is None else f"{score.difference:+{form}}"
    return [*cells, gain, p_text(score.p_value)]


def _legend(found: Evaluation, first: str) -> Iterator[str]:
    n, sentences = len(found.documents), sum(d.sentences for d in found.documents)
    baseline = found.systems[0]
    yield f"BLEU: sacrebleu {baseline.signature}; {n:,} documents, {sentences:,} lines"
    for name, score in baseline.metrics.items():
        if name != "bleu":
            better = "; less is better" if name == "ter" else ""
            yield f"{NAMES.get(name, name)}: sacrebleu {score.signature}{better}"
    for name, score in baseline.detokenised.items():
        yield f"detokenised {NAMES.get(name, name)}: sacrebleu {score.signature}"
    for name in baseline.scores:
        yield f"{name}: mean of all lines, of values of another tool"
    yield "length ratio: words of the system / words of the references"
    if n > 1:
        yield f"95%: bootstrap over documents, {RESAMPLES:,} resamples, seed {found.seed}"
    if len(found.systems) == 1:
        return
    yield (
        f"gain, better/equal/worse: compared with the first {first}; increase ratio: better / all"
    )
    if n < FEWEST_DOCUMENTS:
        yield f"p: not computed for fewer than {FEWEST_DOCUMENTS} documents"
    else:
        patterns = f"all {2**n:,}" if n <= MOST_EXACT else f"{DRAWS:,} random"
        yield (
            "p: of the gain in the score of the whole text, two-sided sign-flip test over "
            f"documents, {patterns} patterns"
        )
    yield "sign test p: of the numbers of better and worse documents, however large each gain is"
