"""A run report of made-up documents whose names and texts are hostile."""

from support.evaluations import DOCUMENTS, evaluated

from rerank.formats.trace import Choice
from rerank.report.explanation import Explanation
from rerank.report.run_report import ChangedSentence, ReportedDocument, RunReport

HOSTILE = (
    "</script><script>window.PWNED = 1</script>",
    '<img src=x onerror="window.PWNED = 1">',
    "javascript:window.PWNED=1",
    "{{7*7}}{% raw %}",
    "]]><!--",
    '" onmouseover="window.PWNED=1',
    "\u202eevil\u2028\u200b",
    "x" * 100_000,
)


def report_of(shown: int = len(DOCUMENTS), repeat: int = 1) -> RunReport:
    """A report of twelve documents, of which the first ones are shown."""
    _, _, evaluation = evaluated()
    documents, choices = [], []
    for d, name in enumerate(DOCUMENTS.ids):
        text = HOSTILE[d % len(HOSTILE)] if d < len(HOSTILE) else f"text {d}"
        chosen = f"{text} it is"
        added = {f"<b>{name}</b>": 0.5, "LM0": -0.25}
        texts: dict[str, str | None] = {"chosen": chosen, "first": "it was", "runner_up": None}
        alone = {"chosen": 0, "text": "it was", "lead": 0.125}
        choices.append(Choice(name, 1, text, 2, 0, texts, {}, added, None, 0.25, alone))
        sentence = ChangedSentence(
            1, text, text, "it was", chosen, f"reference {text}", 2, 0.25, "it was", added
        )
        base, ours = evaluation.documents[d].bleu
        kept = [sentence] * repeat if d < shown else None
        label = text if d < len(HOSTILE) - 1 else name
        documents.append(ReportedDocument(label, 3, 1, 1, base, ours, d % 2 == 0, 0.5, 1.5, kept))
    search = {
        **{"exact": False, "gap": 0.5, "best": "best known", "near_ties": 3, "score": -10.0},
        **{"baseline_score": -12.0, "signature": HOSTILE[0]},
    }
    chosen_by = {"selection": {"chosen": {"held_out": 20.5, "error": 1.25, "difference": 0.5}}}
    return RunReport(
        HOSTILE[0],
        evaluation,
        Explanation.of(choices),
        documents,
        search,
        {"LM0": 0.5, HOSTILE[1]: -1.0},
        {"algorithm": HOSTILE[0], **chosen_by},
        [("trace", HOSTILE[1], "ab" * 32)],
        "0.1.0",
    )
