"""`recipes/systems` on a made-up WMT XML: both halves, every row, and what consensus gives."""

import os
import subprocess
import sys
from pathlib import Path

RECIPE = Path(__file__).parents[2] / "recipes" / "systems" / "run.py"
SENTENCES = ("the lamp is lit in the old house", "she sees it from the bridge at night")
ERRORS = {"A": ("old", "new"), "B": ("lit", "light"), "C": ("sees", "sees a"), "D": ("the", "a")}


def xml(documents: int) -> str:
    """Documents in which each system makes its own error in every sentence, and D in all words."""
    parts = ["<dataset>"]
    for d in range(documents):
        texts = [f"{sentence} {d} times over and over" for sentence in SENTENCES]
        outputs = {
            name: [text.replace(old, new) for text in texts] for name, (old, new) in ERRORS.items()
        }
        named = {'src lang="xx"': texts, 'ref lang="en"': texts}
        named |= {f'hyp lang="en" system="{name}"': own for name, own in outputs.items()}
        parts.append(f'<doc id="d{d}">')
        for tag, own in named.items():
            segments = "".join(f'<seg id="{n}">{text}</seg>' for n, text in enumerate(own, 1))
            parts.append(f"<{tag}><p>{segments}</p></{tag.split()[0]}>")
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>"])


def test_both_halves_are_tuned_on_and_tested(tmp_path: Path) -> None:
    file = tmp_path / "made.xml"
    file.write_text(xml(8))
    command = [sys.executable, str(RECIPE), "--xml", str(file), "--work", str(tmp_path / "work")]
    environment = {**os.environ, "PYTHONPATH": str(RECIPE.parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows[2:]] == [["made.0", "made.1"]] * 3 + [["made.1", "made.0"]] * 3
    for best, consensus, tuned in (rows[2:5], rows[5:8]):
        assert best[2].startswith("best system there: ")
        assert (consensus[2], tuned[2]) == ("uniform MBR", "tuned combination")
        assert float(tuned[3]) >= float(best[3]) - 0.1
