"""K-best lists of the outputs of several systems: `--systems` in place of `--kbest`.

Equal outputs of a sentence are one candidate. Its features: `sys` and the name of each system, 1
for those whose output it is; `votes`, how many these are; its mean sentence BLEU and mean chrF2
against the outputs of the other systems (0..100), `consensusbleu` and `consensuschrf`, which is
minimum Bayes risk under a uniform distribution (Kumar & Byrne 2004,
https://aclanthology.org/N04-1022) without the candidate's own vote; and `consensusdocbleu`, the
same for BLEU of the whole document, see `rerank.metrics.document_consensus`.

The lists are written to a temporary file, which the commands read as any other: Moses lines, or
JSON lines where a text holds `|||`. A sentence of K candidates with V different n-grams takes
O(K² V / 63) time. Memory: the largest document, and the texts that `SystemOutputs` holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import SparseColumns, TextColumn, offsets_of, places_of
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.corpus.labels import Label
from rerank.corpus.systems import (
    Named,
    SystemOutputs,
    count_sentences,
    documents_of_systems,
    read_outputs,
)
from rerank.files.lines import spool
from rerank.files.paths import FilePath, file_and_name
from rerank.formats.table import lines_of
from rerank.notices import Notices
from rerank.registry import FORMATS

Floats = NDArray[np.float64]
VOTES = "votes"
SENTENCE_BLEU, SENTENCE_CHRF, DOCUMENT_BLEU = "consensusbleu", "consensuschrf", "consensusdocbleu"
CONSENSUS = (SENTENCE_BLEU, SENTENCE_CHRF, DOCUMENT_BLEU)


@dataclass(frozen=True, slots=True)
class SystemLists:
    """Lists of the outputs of systems in a file of a format, with their documents.

    systems: name of each system by the label of its indicator feature, in their order.
    """

    path: Path
    format: str
    documents: Documents
    systems: dict[str, str]

    def docids(self) -> Path:
        """A file beside the lists with the document id of each sentence."""
        path = self.path.with_name("<documents of the systems>")
        ids, spans = self.documents.ids, map(self.documents.span, range(len(self.documents)))
        lines = (
            f"{name}\n" * (stop - start) for name, (start, stop) in zip(ids, spans, strict=True)
        )
        path.write_text("".join(lines), encoding="utf-8")
        return path


def lists_of_systems(
    systems: Sequence[Named],
    documents: Documents | None,
    notices: Notices,
    copies: ExitStack,
    *,
    docs: FilePath | None = None,
    no_docs: str | None = None,
    first_id: int,
    change: Callable[[bytes], bytes] | None = None,
) -> SystemLists:
    """Lists of systems' outputs in a temporary file, which is deleted with `copies`.

    documents: those of the run [default: as `docs` and `no_docs` say, else those that the files
    state]; first_id: of the first sentence; change: makes of each output what is read of it. For
    faults see `rerank.corpus.systems.read_outputs`.
    """
    systems = [(name, _reread(path, copies)) for name, path in systems]
    own = documents_of_systems(systems, notices) if documents is None and docs is None else None
    if documents is None:
        documents = own if no_docs is None else None
    if documents is None:
        n_lines = partial(count_sentences, systems) if own is None else partial(int, own.n_lines)
        documents = Documents.chosen(docs, no_docs, n_lines, notices)
    # segments are matched by the names that the files have, whatever --no-docs makes of them
    outputs = read_outputs(systems, documents if own is None else own, notices)
    outputs = replace(outputs, documents=documents)
    folder = copies.enter_context(tempfile.TemporaryDirectory(prefix="rerank-"))
    path = Path(folder, f"<outputs of {len(outputs.names)} systems>")
    known = "moses" if _fit_moses(outputs) else "jsonl"
    with path.open("wb") as file:
        form, first = FORMATS[known](), 0
        for texts in outputs.read(notices):
            if change is not None:
                texts = [[text and change(text) for text in each] for each in texts]
            kbest = kbest_of(texts, outputs.labels, first)
            nothing = np.zeros((kbest.n, 0))
            for _, line in lines_of(form, kbest, documents, (), nothing, None, first_id=first_id):
                file.write(line + b"\n")
            first += len(texts)
    return SystemLists(
        path, known, documents, dict(zip(outputs.labels, outputs.names, strict=True))
    )


def kbest_of(
    texts: Sequence[Sequence[bytes | None]], labels: Sequence[str], first: int = 0
) -> KBest:
    """Lists of a document's outputs, texts[t][m] of system m or None, labels (M,).

    Candidates are in the order of the first system whose output they are.
    """
    merged = [_merged(outputs) for outputs in texts]
    counts = np.array([len(one) for one in merged], np.int64)
    indicators = np.zeros((int(counts.sum()), len(labels)))
    for row, givers in enumerate(givers for one in merged for givers in one.values()):
        indicators[row, givers] = 1.0
    kbest = KBest(
        source="",
        first=first,
        offsets=offsets_of(counts),
        texts=TextColumn.of([text for one in merged for text in one]),
        ranks=places_of(counts),
        labels=tuple(Label(name, 1) for name in (*labels, VOTES, *CONSENSUS)),
        dense=np.zeros((len(indicators), 0)),
        sparse=SparseColumns.empty(len(indicators)),
        totals=np.zeros(len(indicators)),  # readers of Moses lists expect a column
    )
    votes = indicators.sum(axis=1)
    dense = np.column_stack([indicators, votes, *_consensus(kbest, indicators)])
    return replace(kbest, dense=dense)


def _consensus(kbest: KBest, indicators: Floats) -> list[Floats]:
    """Mean sentence BLEU and chrF2 (n,) against outputs of other systems; then document BLEU's."""
    from rerank.metrics.document_consensus import document_consensus  # numba
    from rerank.metrics.pairwise import PairwiseBleu, PairwiseChrf, leave_one_out

    votes = indicators.sum(axis=1)
    spans = [slice(a, b) for a, b in pairwise(kbest.offsets.tolist()) if a < b]
    found = []
    for utility in (PairwiseBleu(kbest), PairwiseChrf(kbest)):
        of_sentences = [leave_one_out(utility, s, votes[span]) for s, span in enumerate(spans)]
        found.append(np.concatenate([np.zeros(0), *of_sentences]))
    return [*found, document_consensus(kbest, indicators, found[0])]


def _merged(outputs: Sequence[bytes | None]) -> dict[bytes, list[int]]:
    """The systems of each different text, in the order of the first ones."""
    found: dict[bytes, list[int]] = {}
    for m, text in enumerate(outputs):
        if text is not None:
            found.setdefault(text, []).append(m)
    return found


def _fit_moses(outputs: SystemOutputs) -> bool:
    """Whether no text holds the separator of Moses' columns."""
    documents = outputs.read(Notices())
    return not any(b"|||" in (text or b"") for texts in documents for t in texts for text in t)


def _reread(path: FilePath, copies: ExitStack) -> FilePath:
    """A path to read several times: of standard input or a pipe, that of a copy."""
    return path if file_and_name(path)[1] is not None else copies.enter_context(spool(path))
