"""K-best lists of Travatar: `id ||| text ||| total ||| name=value name=value`.

Travatar leaves out features that are 0. Source: src/bin/travatar-runner.cc of
https://github.com/neubig/travatar.
"""

from __future__ import annotations

from collections.abc import Sequence

from rerank.formats.named_features import NamedFeatures, columns_of, is_number, names_of


class Travatar(NamedFeatures):
    """The format of Travatar's k-best lists."""

    name = "travatar"
    description = "K-best lists of Travatar, with the total before the features."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2"
    column = 3
    total = 2

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have a number before features `name=value`."""
        columns = columns_of(head)
        return all(len(one) >= 4 and is_number(one[2]) and names_of(one[3]) for one in columns)
