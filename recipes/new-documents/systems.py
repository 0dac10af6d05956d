"""K-best lists of several systems' outputs: one indicator feature a system, and two of consensus.

A candidate's consensus features are its mean sentence BLEU and its mean chrF against the outputs of
the other systems.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from sacrebleu.metrics import BLEU, CHRF

NMT = ("baseline", "cache", "han-enc", "han-dec", "han-joint")
Segments = tuple[list[str], list[str], dict[str, list[str]]]
"""Document id and reference of each segment, and each system's outputs."""


def nmt(data: Path) -> Segments:
    """Five neural systems on TED tst2010."""
    folder = data / "ted-zh-en"
    ids, references = _lines(folder / "tst2010.docids"), _lines(folder / "tst2010.en")
    return ids, references, {name: _lines(folder / f"tst2010.nmt.{name}.en") for name in NMT}


def wmt23(data: Path) -> Segments:
    """Twelve systems of WMT23, Russian → English."""
    with gzip.open(data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz") as file:
        root = ElementTree.parse(file).getroot()
    ids, references, outputs = list[str](), list[str](), dict[str, list[str]]()
    for document in root.iter("doc"):
        own = {one.get("system", ""): _segments(one) for one in document.iter("hyp")}
        reference = _segments(next(document.iter("ref")))
        for number, text in reference.items():
            ids.append(document.get("id", ""))
            references.append(text)
            for name, texts in own.items():
                outputs.setdefault(name, []).append(texts[number])
    return ids, references, outputs


def write_halves(work: Path, name: str, segments: Segments) -> None:
    """Write NAME.0 and NAME.1: lists, document ids and references of every other document."""
    ids, references, outputs = segments
    order = {one: place % 2 for place, one in enumerate(dict.fromkeys(ids))}
    for half in (0, 1):
        rows = [t for t, one in enumerate(ids) if order[one] == half]
        texts = [[outputs[system][t] for system in outputs] for t in rows]
        _write(work / f"{name}.{half}.nbest", _list(texts))
        _write(work / f"{name}.{half}.docids", (ids[t] for t in rows))
        _write(work / f"{name}.{half}.en", (references[t] for t in rows))


def _list(texts: Sequence[Sequence[str]]) -> Iterator[str]:
    bleu, chrf = BLEU(effective_order=True, tokenize="none"), CHRF()
    for t, candidates in enumerate(texts):
        for k, text in enumerate(candidates):
            others = [one for i, one in enumerate(candidates) if i != k]
            systems = " ".join(f"S{i}= {int(i == k)}" for i in range(len(candidates)))
            agreement = [
                sum(metric.sentence_score(text, [other]).score for other in others) / len(others)
                for metric in (bleu, chrf)
            ]
            yield f"{t} ||| {text} ||| {systems} BLEU= {agreement[0]:.4f} chrF= {agreement[1]:.4f}"


def _segments(element: ElementTree.Element) -> Mapping[str, str]:
    return {one.get("id", ""): " ".join((one.text or "").split()) for one in element.iter("seg")}


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _write(path: Path, lines: Iterator[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
