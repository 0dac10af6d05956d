"""A list with a model's feature under a context that no search chooses.

    python conditions.py null|reference MODEL KBEST DOCIDS REFERENCE OUT

`null`: every sentence after the start context, as if it began its document. `reference`:
after the reference of the sentence before it, the ceiling of what this context can give.
The list comes back with the features `NAME` and `NAMEoov`, ready for `tune-mert` and
`decode` without `--lm`; NAME is the model folder's name.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from numpy.typing import NDArray

from lm.checkpoint import load_model
from lm.scoring import ScoringEngine, after
from lm.sentences import Rows
from lm.trie import Candidates
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic
from rerank.files.terminal import progress
from rerank.formats.document_files import documents_of_file
from rerank.formats.moses import append_features
from rerank.notices import Notices
from rerank.runs.lists import KBestFile, Lists


def main(condition: str, model: str, kbest: str, docids: str, reference: str, out: str) -> None:
    """Write the list."""
    saved = load_model(Path(model))
    scorer, context = ScoringEngine.of(saved.model), saved.model.context
    name, encode = Path(model).name, saved.vocabulary.encode
    notices = Notices()
    documents = documents_of_file(docids, notices)
    references = [encode(line.split()) for line in read_lines(reference, notices)]
    start = context.start(1).detach()

    def scored(ids: list[list[int]], contexts: Rows) -> tuple[NDArray, Rows]:
        return after(scorer, [(Candidates.of([ids]), contexts)])[0]

    with atomic(out) as file:
        lists = KBestFile(kbest, Lists(kbest)).read(documents, notices)
        for _, document in progress(lists, label=condition, unit="documents", total=len(documents)):
            previous = start
            for t in range(len(document)):
                rows = document.rows(t)
                ids = [encode(document.tokens(row)) for row in rows]
                scores = scored(ids, previous)[0][0] if ids else []
                for row, sentence, score in zip(rows, ids, scores, strict=True):
                    added = [(name, float(score)), (f"{name}oov", float(sentence.count(0)))]
                    file.write(append_features(document.line(row), added) + b"\n")
                if condition == "reference":
                    summary = scored([references[document.first + t]], previous)[1]
                    with torch.no_grad():
                        previous = context.advance(previous, summary)


if __name__ == "__main__":
    main(*sys.argv[1:])
