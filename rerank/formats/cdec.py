"""K-best lists of cdec: `id ||| text ||| Name=value Name_0=value ||| total`.

cdec leaves out features that are 0. Source: decoder/decoder.cc (`DumpKBest`) of
https://github.com/redpony/cdec.
"""

from __future__ import annotations

from collections.abc import Sequence

from rerank.formats.named_features import NamedFeatures, columns_of, is_number, names_of


class Cdec(NamedFeatures):
    """The format of cdec's k-best lists."""

    name = "cdec"
    description = "K-best lists of cdec; features that a line leaves out are 0."
    suffixes = (".kbest",)
    example = b"0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 Glue=2 ||| -12.6"
    column = 2
    total = 3

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have features `name=value`, of changing names or with `_`.

        Marian's lists, which may have no blank after `=`, have the same names on every line.
        """
        columns = columns_of(head)
        if not all(len(one) == 4 and is_number(one[3]) for one in columns):
            return False
        names = [names_of(one[2]) for one in columns]
        varying = len(set(map(frozenset, names))) > 1
        return all(names) and (varying or any(b"_" in name for one in names for name in one))
