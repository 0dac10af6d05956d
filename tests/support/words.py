"""The distance of two texts in words."""

from collections.abc import Sequence


def edit_distance(words: Sequence[str], others: Sequence[str]) -> int:
    """Levenshtein's distance by its recursion, a row of the table at a time."""
    row = list(range(len(others) + 1))
    for i, word in enumerate(words, 1):
        above, row = row, [i]
        for j, other in enumerate(others, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (word != other)))
    return row[-1]
