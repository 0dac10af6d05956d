"""N-best lists of Nematus: `id ||| text ||| cost cost …`, a cost of each model, lower is better.

A cost is a negative log-probability in nats, divided by the length as Nematus was told to: it is
read with its sign changed, as feature F0, F1, …, without a total. A Moses list without labels looks
the same, so that the format must be named.

Source: nematus/translate.py (`--n-best`) of https://github.com/EdinburghNLP/nematus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rerank.corpus.kbest import KBestRows
from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat, sentence_id
from rerank.formats.json_objects import BLANK
from rerank.formats.tokens import shown
from rerank.notices import Notices


class Nematus(ReadOnlyFormat):
    """The format of Nematus' n-best lists."""

    name = "nematus"
    description = "N-best lists of Nematus: costs without labels, read with their sign changed."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| 1.5 1.75"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never: a Moses list without labels looks the same."""
        return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file."""
        found = Hypotheses(notices, source, clip)
        for number, line in enumerate(lines, 1):
            found.at(number)
            if not line.strip():
                notices.add(BLANK, source=source, line=number)
                continue
            try:
                _add(found, line)
            except InputError as fault:
                notices.refuse(fault if fault.line else found.fault(str(fault)))
            if found.full:
                yield found.rows()
        if len(found):
            yield found.rows()


def _add(found: Hypotheses, line: bytes) -> None:
    """Add the hypothesis of a line; its text may hold `|||`, costs may not."""
    fields = line.split(grammar.SEPARATOR)
    if len(fields) < 3:
        raise InputError(f"expected 'id ||| text ||| cost cost', found {shown(line)}")
    sentence, *texts, costs = fields
    values = [0.0 - found.number(token, "a cost") for token in costs.split()]
    if not values:
        raise InputError(f"expected costs in the last column, found none in {shown(line)}")
    names = tuple(f"F{i}" for i in range(len(values)))
    found.add(sentence_id(sentence.strip()), grammar.SEPARATOR.join(texts).strip(), names, values)
