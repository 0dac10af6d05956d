"""The part of a WMT XML on which systems can be compared: a reference, its documents, systems.

Test suites have no reference, a second reference is of some documents only, and a system may have
translated only some. Each of these files is taken as it is, and what is left out is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rerank.corpus.documents import Documents, Lines, shown_name
from rerank.formats.document_files import read_texts
from rerank.notices import Notices


@dataclass(frozen=True)
class CompletePart:
    """A reference, the documents that have it in full, and systems with outputs for all of them.

    reference, systems: as options of the shell name them; documents: (D,) id and number of
    sentences.
    """

    reference: str
    documents: tuple[tuple[str, int], ...]
    systems: tuple[str, ...]


def complete_part(xml: Path, note: Callable[[str], None]) -> CompletePart:
    """The part of a file with the first of the references that cover most segments."""
    found = read_texts(xml, Notices())
    if found is None:
        sys.exit(f"{xml}: expected WMT XML")
    references, spans = found.text("reference"), _spans(found.documents)
    name = max(references, key=lambda one: sum(line is not None for line in references[one]))
    kept = {
        own: span
        for own, span in spans.items()
        if all(references[name][t] is not None for t in span)
    }
    if len(references) > 1:
        note(f"reference {shown_name(name)}, of {', '.join(map(shown_name, references))}")
    if len(kept) < len(spans):
        note(f"{len(spans) - len(kept)} of {len(spans)} documents left out, without reference")
    systems = []
    for system, lines in found.text("system").items():
        if lacking := sum(not _any(lines, span) for span in kept.values()):
            note(f"system {shown_name(system)} left out, without {lacking} of these documents")
        else:
            systems.append(f"{_option_name(system)}={xml}#{system}")
    if len(kept) < 2 or len(systems) < 2:
        sys.exit(
            f"{xml}: expected two documents with a reference and two systems that translate all of "
            f"them, found {len(kept)} and {len(systems)}"
        )
    sizes = tuple((own, len(span)) for own, span in kept.items())
    return CompletePart(f"{xml}#{name}" if name else str(xml), sizes, tuple(systems))


def _spans(documents: Documents) -> dict[str, range]:
    """Sentences of each document."""
    return {name: range(*documents.span(d)) for d, name in enumerate(documents.ids)}


def _any(lines: Lines, span: range) -> bool:
    """Whether a text has any sentence of a span."""
    return any(lines[t] is not None for t in span)


def _option_name(system: str) -> str:
    """A system's name in NAME=FILE, which holds neither / nor =."""
    return system.replace("/", "-").replace("=", "-")
