"""Campaigns of Pearmut, a platform on which people judge translations, and what they judged.

Of version 1.1 (Zouhar and Kocmi 2026, https://arxiv.org/abs/2601.02933): a campaign is a JSON file
for `pearmut add`; the annotations are the file that its dashboard downloads, or that of
`data/annotations` of the server. An item is a sentence, whose id is `DOCUMENT:NUMBER`, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.files.encoding import LARGEST
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import Place, read_objects
from rerank.notices import Notices

PROTOCOL = "cESA"  # error spans and scores of translations side by side
_MARKUP = re.compile(r"<(?=/?(?:br|strong|b|i|p|em|h[123])>)|^<(?=(?:audio|video|img|iframe) )")
_RESET = "__RESET__"  # in place of annotations: those of the user before do not count
_SHOWN = 20  # names in a message
_OUTSIDE = ("welcome_", "random_", "goodbye_")  # items that a campaign adds, by their ids


def campaign(
    name: str,
    documents: Documents,
    texts: Mapping[str, Sequence[bytes]],
    sources: Sequence[bytes] | None,
    *,
    seed: int,
    annotators: int,
) -> dict[str, Any]:
    """The documents in which texts differ, with all texts side by side, without their names.

    The order of documents, and in each that of the texts, is by chance, of the seed.
    """
    rng, shown = np.random.default_rng(seed), []
    for d, document in enumerate(documents.ids):
        lines = range(*documents.span(d))
        if all(len({text[t] for text in texts.values()}) == 1 for t in lines):
            continue
        order = [[*texts][i] for i in rng.permutation(len(texts)).tolist()]
        shown.append(
            [
                {
                    "item_id": f"{document}:{i}",
                    **({} if sources is None else {"src": _shown(sources[t])}),
                    "tgt": {system: _shown(texts[system][t]) for system in order},
                }
                for i, t in enumerate(lines)
            ]
        )
    info = {"assignment": "single-stream", "protocol": PROTOCOL, "users": annotators, "seed": seed}
    return {
        "campaign_id": name,
        "info": {**info, "shuffle": False, "show_model_names": False},
        "data": [shown[i] for i in rng.permutation(len(shown)).tolist()],
    }


def _shown(text: bytes) -> str:
    """A text in which Pearmut finds no markup: a word joiner parts what it would take for some."""
    return _MARKUP.sub("<\N{WORD JOINER}", text.decode())


def read_annotations(
    path: FilePath, model: str, documents: Documents, notices: Notices
) -> NDArray[np.float64]:
    """Scores (T,) of the sentences of a text, the mean of all annotators; NaN without any.

    model: the name of the text in the campaign. Of several scores by one annotator of a
    campaign the last counts.
    """
    place = Place(display(path), notices, 0)
    lines = {
        f"{document}:{i}": t
        for d, document in enumerate(documents.ids)
        for i, t in enumerate(range(*documents.span(d)))
    }
    by_user: dict[tuple[str, str], dict[int, float]] = {}
    models = set[str]()
    for name, entry in _entries(path, place):
        user = name, str(entry.get("user_id"))
        if entry.get("annotation") == _RESET:
            by_user.pop(user, None)
        elif not str(entry.get("item_i")).startswith(_OUTSIDE):
            for item, annotations in _annotated(entry, place):
                scores = {text: _score(judged, place) for text, judged in annotations.items()}
                models.update(text for text, score in scores.items() if score is not None)
                if (score := scores.get(model)) is None:
                    continue
                if (line := lines.get(str(item.get("item_id")))) is None:
                    raise place.fault(
                        f"expected a sentence of the documents, found the item "
                        f"{item.get('item_id')!r}; give the document ids of the campaign"
                    )
                by_user.setdefault(user, {})[line] = score
    if not any(by_user.values()):
        there = ", ".join(sorted(models)[:_SHOWN]) or "none"
        raise place.fault(f"expected scores of {model!r}, found those of {there}; give FILE#NAME")
    total, count = np.zeros(documents.n_sentences), np.zeros(documents.n_sentences)
    for by_line in by_user.values():
        for line, score in by_line.items():
            total[line] += score
            count[line] += 1
    total[count == 0] = np.nan
    return total / np.maximum(count, 1)


def _entries(path: FilePath, place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of campaigns, and logged annotations: one a line ('' as name), or lists by campaign."""
    for record in read_objects(read_lines(path, place.notices), place):
        several = {"": record} if "annotation" in record else record
        for name, entries in several.items():
            for entry in entries if isinstance(entries, list) else [entries]:
                if not isinstance(entry, dict) or "annotation" not in entry:
                    raise place.fault("expected annotations that Pearmut has downloaded")
                yield name, entry


def _annotated(entry: Mapping[str, Any], place: Place) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The items of an entry and the annotations of each by the name of the text."""
    pair: Any = entry.get("item"), entry["annotation"]
    if not all(isinstance(part, list) for part in pair) or len(pair[0]) != len(pair[1]):
        raise place.fault("expected as many annotations as items in each entry")
    for item, annotation in zip(*pair, strict=True):
        if isinstance(item, dict) and isinstance(annotation, dict):  # else skipped, or of a form
            yield item, annotation


def _score(annotation: Any, place: Place) -> float | None:
    """The score of an annotation, or the mean of its sliders; None without one."""
    if not isinstance(annotation, dict):
        return None
    sliders = annotation.get("sliders")
    values = [annotation.get("score")]
    if values == [None] and isinstance(sliders, dict):
        values = [*sliders.values()]
    numbers = [x for x in values if x is not None]
    for number in numbers:
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not abs(number) <= LARGEST:
            raise place.fault(f"expected a finite number as score, found {str(number)[:60]!r}")
    return sum(map(float, numbers)) / len(numbers) if numbers else None
