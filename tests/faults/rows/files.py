"""Faults of files that commands write for each other: traces and summaries of decodings."""

import json
from typing import Any

from support.faults import Fault

CHOICE: dict[str, Any] = {
    "document": "evening", "sentence": 0, "source": None, "chosen": 1, "first": 0,
    "texts": {"chosen": "it is lit", "first": "it is", "runner_up": "it"},
    "weighted": {"LM0": -1.5, "lm": -2.0}, "over_first": {"LM0": 0.5, "lm": None},
    "over_runner_up": {"LM0": 0.25, "lm": -0.125}, "margin": 0.125,
    "alone": {"chosen": 0, "text": "it is", "lead": 0.5},
}  # fmt: skip
DOCUMENT = {"id": "a", "score": -1.5, "baseline_score": -2, "gap": 0.0, "exact": True}
SUMMARY: dict[str, Any] = {
    "schema": 1, "signature": "rerank|v:0.1.0", "score": -1.5, "baseline_score": None, "gap": 0.0,
    "exact": True, "best": "optimum", "near_ties": 0, "documents": [DOCUMENT],
}  # fmt: skip
TRACE = "".join(json.dumps({**CHOICE, "document": d, "sentence": t}) + "\n" for d in "ab" for t in (0, 1))
REPORT = "report --trace t --summary s --docs docs --ref dev.ref --out page.html"


def of_trace(name: str, line: Any) -> Fault:
    """A trace whose second line is none."""
    text = line if isinstance(line, str) else json.dumps(line)
    sound = json.dumps(CHOICE) + "\n"
    return Fault(f"--trace-{name}", "explain t", "t:2: expected a line of a trace, found .*--trac",
                 {"t": f"{sound}{text}\n"}, cure={"t": sound})  # fmt: skip


def of_summary(name: str, content: Any, message: str = "something else") -> Fault:
    """A file that is no summary of the documents of a trace."""
    text = content if isinstance(content, str) else json.dumps(content)
    files = {"t": TRACE, "docs": "a\na\nb\nb\n", "s": text}
    expected = f"s: expected a summary of the same documents, .*{message}"
    return Fault(
        f"--summary-{name}", REPORT, expected, files, cure=REPORT.replace("--summary s ", "")
    )


FAULTS = [
    *(of_trace(f"{n}", line)
        for n, line in enumerate(("", "[]", "[" * 100_000, {key: value for key, value in CHOICE.items() if key != "margin"}, {**CHOICE,
        "texts": {"chosen": 1, "first": "a", "runner_up": None}}, {**CHOICE, "over_first": {"LM0": "0.5"}}, {**CHOICE, "over_first": 3}, {**CHOICE,
        "alone": {"chosen": 1}}, {**CHOICE, "sentence": "2"}, "5", '["evening", 0]', {**CHOICE, "margin": float("inf")}, json.dumps(CHOICE).replace("0.125,",
        f"1{'0' * 400},"), {**CHOICE, "over_first": {"\udc00": 0.5}}, {**CHOICE, "texts": {**CHOICE["texts"], "first": "\ud800"}}))),
    *(of_summary(f"{n}", content)
        for n, content in enumerate(("", "[]", "[" * 100_000, {key: value for key, value in SUMMARY.items() if key != "best"}, *({**SUMMARY, name: "1"}
        for name in ("gap", "exact", "near_ties")), {**SUMMARY, "documents": [{**DOCUMENT, "gap": "0"}]}, {**SUMMARY, "documents": 3}, {**SUMMARY,
        "signature": None}, {**SUMMARY, "score": float("nan")}, {**SUMMARY, "best": "\udc00"}))),
    Fault("--blank-lines", "perplexity --ngram blank dev.ref", r"blank:1\d{6}: expected text, found 1,0.* blank lines of 1,", {"blank": "\n" * 2**21}),
    of_summary("other", {**SUMMARY, "documents": [{**DOCUMENT, "id": "c"}]}, "a document 'c'"),
    Fault("--trace-newer", "explain t", "t:1: found schema 2; this version reads 1, try a n", {"t": json.dumps({**CHOICE, "schema": 2})},
        cure={"t": json.dumps({**CHOICE, "schema": 1})}),
    Fault("--summary-newer", REPORT, "s: found schema 2; this version reads 1, try a n",
        {"t": TRACE, "docs": "a\na\nb\nb\n", "s": json.dumps({**SUMMARY, "schema": 2})}, cure=REPORT.replace("--summary s ", "")),
]  # fmt: skip
