"""K-best lists of Joshua: `id ||| text ||| tm_pt_0=value lm_0=value ||| total`.

Joshua's names have underscores, with which Moses marks sparse features: they are dense here, and
read as `tmpt0` and `lm0`. There may be a blank after `=`. Source: the class DerivationVisitor,
KBestExtractor.java and decoder.properties (`output-format %i ||| %s ||| %f ||| %c`) of
https://github.com/apache/incubator-retired-joshua.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rerank.formats.named_features import NamedFeatures, columns_of, is_number

_NAMES = re.compile(rb"(?:^|\s)(?:tm_[A-Za-z]+_[0-9]+|lm_[0-9]+)=")


class Joshua(NamedFeatures):
    """The format of Joshua's k-best lists."""

    name = "joshua"
    description = "K-best lists of Joshua; features that a line leaves out are 0."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6"
    column = 2
    total = 3

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have one of the names of Joshua's models."""
        columns = columns_of(head)
        return all(len(one) == 4 and is_number(one[3]) and _NAMES.search(one[2]) for one in columns)
