"""What scripts/nbest-rescore of Moses does, written from a description of its behaviour.

rescore.py: column 4 is the sum of weights · features, by the first section [weight], a line for
each label; unknown labels and sparse features are KeyErrors; the order of lines stays. topbest.py:
of the lines of one id in a row the first with the largest column 4.
"""

from collections.abc import Iterator, Sequence


def weights_of(ini: str) -> dict[str, list[float]]:
    """Weights of a rescore.ini, by label with its `=`."""
    found: dict[str, list[float]] = {}
    inside = done = False
    for line in ini.splitlines():
        if line.startswith("["):
            done = done or inside
            inside = line.strip() == "[weight]" and not done
        elif inside and line.strip() and not line.startswith("#"):
            label, *values = line.split()
            found[label] = [float(value) for value in values]
    return found


def rescored(lines: Sequence[str], ini: str) -> list[str]:
    """The lines with new totals."""
    weights = weights_of(ini)
    return [_rescored(line, weights) for line in lines]


def _rescored(line: str, weights: dict[str, list[float]]) -> str:
    fields = [field.strip() for field in line.split("|||")]
    left: list[float] = []
    label, total = "", 0.0
    for token in fields[2].split():
        if token.endswith("="):
            if left:
                raise ValueError(f"{label} has too few values")
            label, left = token, list(weights[token])
        else:
            total += left.pop(0) * float(token)
    fields[3:4] = [repr(total)]
    return " ||| ".join(fields)


def topbest(lines: Sequence[str]) -> Iterator[str]:
    """The chosen hypotheses: one for each run of lines with the same id."""
    last: str | None = None
    chosen, largest = "", 0.0
    for line in lines:
        number, text, _, score, *_ = (field.strip() for field in line.split("|||"))
        if number != last or float(score) > largest:
            if last is not None and number != last:
                yield chosen
            last, chosen, largest = number, text, float(score)
    if last is not None:
        yield chosen
