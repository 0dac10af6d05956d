"""Milliseconds a sentence for lists of systems' outputs: consensus features, and sacrebleu's loop.

python recipes/systems/speed.py --data DATA
"""

from __future__ import annotations

import argparse
import time
from itertools import islice, pairwise
from pathlib import Path

from run import NMT
from sacrebleu.metrics import BLEU, CHRF

from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS
from rerank.runs.lists import documents_of_systems
from rerank.runs.systems import kbest_of, open_outputs, read_outputs

Texts = list[list[bytes | None]]


def ours(texts: Texts, systems: int) -> float:
    """Milliseconds a sentence of the lists with all features."""
    labels = [f"sys{m}" for m in range(systems)]
    kbest_of(texts[:2], labels)  # compiled code is loaded
    began = time.process_time()
    kbest_of(texts, labels)
    return 1000 * (time.process_time() - began) / len(texts)


def pairs(texts: Texts) -> float:
    """Milliseconds a sentence of sacrebleu's scores of all pairs."""
    metrics = BLEU(tokenize="none", effective_order=True), CHRF()
    began = time.process_time()
    for outputs in texts:
        lines = [(one or b"").decode() for one in outputs]
        for k, line in enumerate(lines):
            for other in lines[:k] + lines[k + 1 :]:
                for metric in metrics:
                    metric.sentence_score(line, [other])
    return 1000 * (time.process_time() - began) / len(texts)


def main() -> None:
    """Print a row for 5, 12 and 24 systems."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    folder = given.data / "ted-zh-en"
    xml = given.data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
    ted, wmt = [(one, folder / f"tst2010.nmt.{one}.en") for one in NMT], [(ALL_SYSTEMS, xml)]
    print("| systems | sentences | ms a sentence | sacrebleu, pair after pair |\n|---|---|---|---|")
    for named in (ted, wmt):
        documents = documents_of_systems(named, Notices())
        if documents is None:
            from rerank.formats.document_files import documents_of_file

            documents = documents_of_file(folder / "tst2010.docids", Notices())
        outputs = open_outputs(named, documents, Notices(), "the document ids")
        read = read_outputs([*outputs.values()], documents)
        texts, m = [sentence for document in read for sentence in document], len(outputs)
        row = f"{ours(texts, m):.3f} | {pairs(list(islice(texts, 40))):.1f}"
        print(f"| {m} | {len(texts):,} | {row} |", flush=True)
        if m == 12:
            # outputs of the next sentence in place of twelve further systems: no shared n-grams
            doubled = [a + b for a, b in pairwise(texts)]
            row = f"{ours(doubled, 24):.3f} | {pairs(list(islice(doubled, 20))):.1f}"
            print(f"| 24 | {len(doubled):,} | {row} |", flush=True)


if __name__ == "__main__":
    main()
