"""Outputs of several systems for every other document of two test sets, as lists for a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rerank.commands.lists import Lists
from rerank.formats.translations import documents_in
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS

NMT = ("baseline", "cache", "han-enc", "han-dec", "han-joint")


def nmt_halves(data: Path, work: Path) -> Iterator[tuple[Lists, Path]]:
    """Five neural systems on halves of TED tst2010, and the reference of each half."""
    folder = data / "ted-zh-en"
    ids = _lines(folder / "tst2010.docids")
    order = {name: place % 2 for place, name in enumerate(dict.fromkeys(ids))}
    for half in (0, 1):
        paths = []
        for suffix in ("docids", "en", *(f"nmt.{name}.en" for name in NMT)):
            lines = zip(ids, _lines(folder / f"tst2010.{suffix}"), strict=True)
            paths.append(work / f"{half}.tst2010.{suffix}")
            _write(paths[-1], [line for name, line in lines if order[name] == half])
        docs, reference, *outputs = paths
        systems = tuple(zip(NMT, outputs, strict=True))
        yield Lists("", docs, systems=systems), reference


def wmt23_parts(
    data: Path, work: Path, parts: int = 2, systems: tuple[str, ...] = ()
) -> Iterator[tuple[Lists, Path]]:
    """Systems on parts of WMT23, Russian → English: every so manieth document, by their ids alone.

    systems: their names [default: all twelve].
    """
    xml = data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
    documents = documents_in(xml, Notices())
    spans = [] if documents is None else [*map(documents.span, range(len(documents)))]
    named = [(name, Path(f"{xml}#{name}")) for name in systems] or [(ALL_SYSTEMS, xml)]
    for part in range(parts):
        docs = work / f"wmt23.{part}-{parts}.docids"
        ids = [] if documents is None else documents.ids
        chosen = list(zip(ids, spans, strict=True))[part::parts]
        _write(docs, [name for name, (start, stop) in chosen for _ in range(start, stop)])
        yield Lists("", docs, systems=tuple(named)), xml


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
