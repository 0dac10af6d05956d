"""Outputs of several systems for every other document of two test sets, as lists for a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rerank.formats.translations import documents_in
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS
from rerank.runs.lists import Lists

NMT = ("baseline", "cache", "han-enc", "han-dec", "han-joint")
LLM = ("wmt23-zh-en-llm", "llm4-guofeng", "llm4-ted17-fr-en")


def halves(data: Path, work: Path, name: str) -> Iterator[tuple[Lists, Path]]:
    """Systems on every other document, by their order, and the reference of each half.

    name: `nmt`, five neural systems on TED tst2010, or a folder of outputs of language models.
    """
    folder, names = data / name, ("docids", "ref.en")
    outputs = {path.name[4:-3]: path for path in sorted(folder.glob("hyp.*.en"))}
    if name == "nmt":
        folder, names = data / "ted-zh-en", ("tst2010.docids", "tst2010.en")
        outputs = {system: folder / f"tst2010.nmt.{system}.en" for system in NMT}
    ids = _lines(folder / names[0])
    order = {one: place % 2 for place, one in enumerate(dict.fromkeys(ids))}
    for half in (0, 1):
        paths = []
        for path in (*(folder / one for one in names), *outputs.values()):
            lines = zip(ids, _lines(path), strict=True)
            paths.append(work / f"{half}.{name}.{path.name}")
            _write(paths[-1], [line for one, line in lines if order[one] == half])
        docs, reference, *texts = paths
        yield Lists("", docs, systems=tuple(zip(outputs, texts, strict=True))), reference


def wmt23_halves(data: Path, work: Path) -> Iterator[tuple[Lists, Path]]:
    """Twelve systems on halves of WMT23, Russian → English: every other document, by ids alone."""
    xml = data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
    documents = documents_in(xml, Notices())
    spans = [] if documents is None else [*map(documents.span, range(len(documents)))]
    for half in (0, 1):
        docs = work / f"wmt23.{half}.docids"
        ids = [] if documents is None else documents.ids
        chosen = list(zip(ids, spans, strict=True))[half::2]
        _write(docs, [name for name, (start, stop) in chosen for _ in range(start, stop)])
        yield Lists("", docs, systems=((ALL_SYSTEMS, xml),)), xml


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
