"""Items that a document repeats, and the runs of words that translate them in it.

An item of a source is a run of tokens; which run of the target translates it is found in the
document alone, by competitive linking (Melamed 2000, https://aclanthology.org/J00-2004).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain

import numpy as np

SOURCE_RUN, TARGET_RUN = 4, 3  # tokens of what is found to be repeated, and to translate it
_PRECISION = 0.8  # of a translation: where it stands, its source does
_DECIMALS = 9  # of coefficients that are told apart
_UNSPACED = (  # scripts of words without spaces, and Korean, whose particles are part of words
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)


def tokens_of(text: str, *, case: bool = False) -> list[str]:
    """Words, characters of scripts without spaces, and marks; case: whether capitals are kept."""
    text = unicodedata.normalize("NFKC", text)
    if not case:
        text = unicodedata.normalize("NFKC", text.casefold())
    return _token().findall(text)


@cache
def _token() -> re.Pattern[str]:
    """A token: a character of some scripts, a run of letters, marks and digits, any other one."""
    marks = [chr(i) for i in range(0x300, 0x11000) if unicodedata.category(chr(i))[0] == "M"]
    word = rf"(?:(?![{_UNSPACED}])[\w{''.join(marks)}])+"
    return re.compile(rf"[{_UNSPACED}]|{word}|[^\s]")


def runs_of(tokens: Sequence[str], longest: int) -> dict[str, int]:
    """Runs of tokens with letters or digits, joined by spaces, and how many tokens each has."""
    return {
        " ".join(run): n
        for n in range(1, longest + 1)
        for run in zip(*(tokens[i:] for i in range(n)), strict=False)
        if all(word[0].isalnum() for word in run) and (n > 1 or len(run[0]) > 1)
    }


def links_of(
    items: Sequence[Mapping[str, int]], shares: Sequence[Mapping[str, float]]
) -> dict[str, tuple[float, str]]:
    """The item that each target run translates, behind their Dice coefficient.

    items: of each sentence, with their numbers of tokens; shares: of its target runs.
    """
    from scipy.sparse import csr_array

    most = max(2, len(items) // 2)
    repeated = ({x for x, n in Counter(chain(*own)).items() if n > 1} for own in (items, shares))
    ours, theirs = map(sorted, repeated)
    places = [{x: i for i, x in enumerate(own)} for own in (ours, theirs)]
    tables = []
    for rows, columns in zip((items, shares), places, strict=True):
        cells = [
            (t, columns[x], v) for t, row in enumerate(rows) for x, v in row.items() if x in columns
        ]
        t, x, v = zip(*cells, strict=True) if cells else ((), (), ())
        tables.append(csr_array((v, (t, x)), (len(rows), len(columns))))
    a, b = tables[0].sign().astype(np.float64), tables[1].astype(np.float64)
    n, p = a.sum(axis=0), b.sum(axis=0)
    joint, together = (a.T @ b).tocsr(), (a.T @ b.sign()).tocsr()
    joint.sort_indices()
    together.sort_indices()
    cells = joint.tocoo()
    i, g = cells.row, cells.col
    dice = 2.0 * cells.data / (n[i] + p[g])
    kept = (together.data > 1) & (cells.data >= _PRECISION * p[g]) & (n[i] <= most)
    links: dict[str, tuple[float, str]] = {}
    sizes = dict(chain(*(own.items() for own in items)))
    lengths = np.array([sizes[x] for x in ours])
    order = np.lexsort((i, -lengths[i], -dice.round(_DECIMALS))) if len(i) else i
    for cell in order[kept[order]].tolist():
        links.setdefault(theirs[g[cell]], (float(dice[cell]), ours[i[cell]]))
    return links


def translations_of(items: Sequence[Mapping[str, int]], texts: Sequence[str]) -> dict[str, int]:
    """Of repeated items of a source: in how many sentences a text has one translation, the most.

    items: of each sentence, as of `runs_of`; items without a repeated translation are left out.
    """
    runs = [runs_of(tokens_of(text), TARGET_RUN) for text in texts]
    links = links_of(items, [dict.fromkeys(own, 1.0) for own in runs])
    counts = Counter(
        (links[run][1], run)
        for here, own in zip(items, runs, strict=True)
        for run in own.keys() & links.keys()
        if links[run][1] in here
    )
    found: dict[str, int] = {}
    for (item, _), n in counts.items():
        found[item] = max(n, found.get(item, 0))
    return found
