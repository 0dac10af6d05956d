"""Defects put into candidates: what agreement chooses with and without `--defects avoid`.

    python recipes/studies/defects/run.py --data DATA --work WORK [--seeds 3]

Of each sentence two to all candidates are of a set; a share of all candidates becomes cut off, a
loop, the source, another script, reasoning, a refusal, a frame, control tokens or bytes, half of
them together with another candidate of the sentence, which then has the same text. Lists are JSON
lines with `finish_reason`, as servers write them, and the source.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter, defaultdict
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from sacrebleu import corpus_bleu, corpus_chrf

import rerank
from rerank.corpus.defects import KINDS, Defects
from rerank.notices import Notices

SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
SYSTEMS = {  # folder, source, documents, outputs
    "wmt23-zh-en-llm": ("src.zh", "docids", "hyp.*.en", "ref.en"),
    "llm4-guofeng": ("src", "docids", "hyp.*.en", "ref.en"),
    "llm4-ted17-fr-en": ("src", "docids", "hyp.*.en", "ref.en"),
    "ted-zh-en": ("tst2010.zh", "tst2010.docids", "tst2010.nmt.*.en", "tst2010.en"),
}
RANKS = (0, 20, 40, 60, 80)  # of a k-best list, that stand for samples
Sentence = tuple[str, str, str, list[str]]  # document, source, reference, candidates


def damaged(kind: str, text: str, source: str, rng: np.random.Generator) -> str:
    """A text with a defect."""
    words = text.split()
    if kind == "cut-off":
        return " ".join(words[: max(1, len(words) // 2)])
    if kind == "loop":
        phrase = " ".join(words[: int(rng.integers(2, 6))])
        return " ".join([text, *[phrase] * int(rng.integers(8, 20))])
    frames = {
        "untranslated": source,
        "other-script": "он сказал нам об этом вчера вечером , и мы ушли домой .",
        "reasoning": f"<think>\nThe sentence is about {words[:1]}.\n</think>\n\n{text}",
        "refusal": "I'm sorry, but I can't translate this text without more context.",
        "text-around": f"Here is the translation: {text}",
        "control-token": f"{text}<|im_end|>",
        "byte-tokens": f"{text} <0xE2><0x80>",
    }
    return frames[kind]


def with_defects(
    sentences: list[Sentence], share: float, rng: np.random.Generator, out: Path
) -> dict[tuple[int, int], str]:
    """Write lists in which a share of the candidates has a defect: by sentence and candidate."""
    put: dict[tuple[int, int], str] = {}
    kinds = ["cut-off", "loop", "untranslated", "other-script", "reasoning", "refusal"]
    kinds += ["text-around", "control-token", "byte-tokens"]
    with out.open("w", encoding="utf-8") as file:
        for t, (document, source, _, texts) in enumerate(sentences):
            candidates: list[dict[str, Any]] = [
                {"text": text, "finish_reason": "stop"} for text in texts
            ]
            for k in np.flatnonzero(rng.random(len(texts)) < share / 1.5).tolist():
                kind = kinds[int(rng.integers(len(kinds)))]
                text = damaged(kind, texts[k], source, rng)
                both = [k, (k + 1) % len(texts)] if rng.random() < 0.5 and len(texts) > 2 else [k]
                for place in both:
                    ending = "length" if kind == "cut-off" else "stop"
                    candidates[place] = {"text": text, "finish_reason": ending}
                    put[t, place] = kind
            row = {"id": t, "document": document, "source": source, "candidates": candidates}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return put


def sets(data: Path) -> dict[str, list[Sentence]]:
    """The sentences of each set."""
    found: dict[str, list[Sentence]] = {}
    for name, (source, ids, outputs, reference) in SYSTEMS.items():
        texts = [p.read_text().splitlines() for p in sorted((data / name).glob(outputs))]
        beside = [
            (data / name / file).read_text().splitlines() for file in (ids, source, reference)
        ]
        columns = zip(*beside, zip(*texts, strict=True), strict=True)
        found[name] = [(d, s, r, list(dict.fromkeys(c))) for d, s, r, c in columns]
    ted = data / "ted-zh-en"
    beside = [(ted / f"dev2010.{end}").read_text().splitlines() for end in ("docids", "zh", "en")]
    with gzip.open(ted / "dev2010.nbest.gz", "rt") as file:
        lists = groupby(file, lambda line: int(line.partition(" ||| ")[0]))
        picked = {t: [line.split(" ||| ")[1] for line in islice(g, 100)] for t, g in lists}
    found["dev2010"] = [
        (d, s, r, [picked[t][k] for k in RANKS if k < len(picked.get(t, []))])
        for t, (d, s, r) in enumerate(zip(*beside, strict=True))
    ]
    return {name: [s for s in rows if len(s[3]) > 1] for name, rows in found.items()}


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
def main(data: Path, work: Path, seeds: int) -> None:
    """Print the table of sets and shares, then precision and recall of each kind."""
    warnings.simplefilter("ignore")
    heads = ["set", "share", "BLEU, chrF2: keep", "avoid", "defects chosen: keep", "avoid"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    hits, of_kind, false = Counter[str](), Counter[str](), Counter[str]()
    for name, sentences in sets(data).items():
        references = [sentence[2] for sentence in sentences]
        for share in SHARES:
            figures = defaultdict[str, list[list[float]]](list)
            for seed in range(1, (seeds if share else 1) + 1):
                path = work / f"{name}.jsonl"
                put = with_defects(sentences, share, np.random.default_rng(seed), path)
                documents = list(rerank.read(kbest=path))
                result, place = Defects(), 0
                for _, kbest in result.marked(((d.id, d.kbest) for d in documents), Notices()):
                    marks = result.marks(kbest)
                    for t in range(len(kbest)):
                        for k, row in enumerate(kbest.rows(t)):
                            kind, mark = put.get((place, k)), marks[row]
                            of_kind[kind or ""] += 1
                            hits[kind or ""] += bool(mark)
                            if mark and kind is None:
                                false[KINDS[mark - 1]] += 1
                        place += 1
                for how in ("keep", "avoid"):
                    chosen = rerank.choose(documents, defects=how)
                    texts = [text for document in chosen for text in document.texts]
                    choices = [k for document in chosen for k in document.ranks[0]]
                    bleu = corpus_bleu(texts, [references], force=True).score
                    chrf = corpus_chrf(texts, [references]).score
                    bad = sum((t, k) in put for t, k in enumerate(choices)) / len(choices)
                    figures[how].append([bleu, chrf, bad])
            means = {how: np.mean(rows, axis=0) for how, rows in figures.items()}
            cells = [f"{b:.2f}, {c:.2f}" for b, c, _ in means.values()]
            cells += [f"{bad:.1%}" for *_, bad in means.values()]
            print(f"| {name} | {share:.0%} | {' | '.join(cells)} |", flush=True)
    print("\n| kind | put | found |\n|---|---|---|")
    for kind, n in of_kind.items():
        print(f"| {kind or 'none'} | {n:,} | {hits[kind] / n:.2%} |")
    print(f"false: {dict(false)}")


if __name__ == "__main__":
    main()
