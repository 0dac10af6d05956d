"""A stand-in for an estimator: reads lines of text columns, prints a number for each line.

    python recipes/adapters/estimators/standin.py < sentences.tsv > sentences.scores

Of a source and a hypothesis: minus the difference of their lengths in words, relative to the
source. Of two sources and two hypotheses: the share of the hypothesis' words that the previous one
has. It knows nothing about quality; COMET and others take its place.
"""

from __future__ import annotations

import sys


def score(columns: list[str]) -> float:
    """The number of one line."""
    words = [column.split() for column in columns]
    if len(words) == 2:
        source, hypothesis = words
        return -abs(len(hypothesis) - len(source)) / max(1, len(source))
    *_, previous, hypothesis = words
    return sum(word in previous for word in hypothesis) / max(1, len(hypothesis))


def main() -> None:
    """Score standard input."""
    for line in sys.stdin:
        print(f"{score(line.rstrip(chr(10)).split(chr(9))):.6f}")


if __name__ == "__main__":
    main()
