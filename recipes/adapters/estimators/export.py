"""Write what an estimator outside is to score: candidates, and pairs of neighbouring candidates.

    python recipes/adapters/estimators/export.py --kbest LIST --docs DOCS --source SOURCE \
      --out FOLDER

FOLDER/sentences.tsv has a line for each line of the list: source, hypothesis. FOLDER/pairs.tsv has
a line for each pair: document id, sentence, candidate of the previous sentence, candidate (as
`--pair-scores` has them), then previous source, source, previous hypothesis, hypothesis.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import rerank


def sentences(document: rerank.Document) -> Iterator[tuple[str, ...]]:
    """Source and hypothesis of each candidate."""
    for source, candidates in zip(document.side["source"], document.texts, strict=True):
        for text in candidates:
            yield source, text


def pairs(document: rerank.Document) -> Iterator[tuple[str, ...]]:
    """Each candidate after each one of the nearest earlier sentence that has candidates."""
    sources, before, said = document.side["source"], [("-", "")], ""
    for t in document.present:
        texts = list(enumerate(document.texts[t]))
        for j, previous in before:
            for k, text in texts:
                yield document.id, str(t), j, str(k), said, sources[t], previous, text
        before, said = [(str(k), text) for k, text in texts], sources[t]


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kbest", required=True)
    parser.add_argument("--docs", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--top", type=int, help="as in rerank decode: for fewer pairs")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    documents = rerank.read(
        options.kbest, docs=options.docs, top=options.top, side={"source": options.source}
    )
    with (
        (options.out / "sentences.tsv").open("w", encoding="utf-8") as of_sentences,
        (options.out / "pairs.tsv").open("w", encoding="utf-8") as of_pairs,
    ):
        for document in documents:
            of_sentences.writelines("\t".join(row) + "\n" for row in sentences(document))
            of_pairs.writelines("\t".join(row) + "\n" for row in pairs(document))


if __name__ == "__main__":
    main()
