"""Test sets of sacrebleu that are in its cache: `sacrebleu:wmt23/ru-en`. Nothing is downloaded."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from rerank.errors import UsageError

PREFIX = "sacrebleu:"
_NAME = re.compile(rf"{PREFIX}(?P<set>.+)/(?P<pair>[A-Za-z-]+)")


@dataclass(frozen=True, slots=True)
class CachedSet:
    """A test set of sacrebleu and a language pair, as its options -t and -l name them."""

    test_set: str
    language_pair: str

    def references(self) -> list[str]:
        """Files of its references."""
        return cached_references(f"{PREFIX}{self.test_set}/{self.language_pair}")

    def docids(self) -> str:
        """File of its document ids."""
        return cached_docids(f"{PREFIX}{self.test_set}/{self.language_pair}")


def cached_references(name: str, translator: str | None = None) -> list[str]:
    """Files of the references of a test set: all, or the one of a translator.

    UsageError for an unknown set, or one that is not in the cache.
    """
    fields = _fields(name)
    kinds = [field for field in fields if field.partition(":")[0] == "ref"]
    if translator is not None:
        kinds = [field for field in kinds if field.partition(":")[2] == translator]
        if not kinds:
            there = ", ".join(field.partition(":")[2] or "(unnamed)" for field in fields)
            raise UsageError(f"{name}: no reference {translator!r}; there are: {there}")
    return [_cached(name, field) for field in kinds]


def cached_source(name: str) -> str:
    """File of the source of a test set; UsageError if it is not in the cache."""
    return _cached(name, "src")


def cached_docids(name: str) -> str:
    """File of the document ids of a test set; UsageError if it has none, or is not in the cache."""
    if "docid" not in _fields(name):
        raise UsageError(f"{name}: the test set has no document ids; give --docs or --no-docs")
    return _cached(name, "docid")


def _dataset(name: str) -> tuple[object, str]:
    """The test set of sacrebleu, and the language pair."""
    import difflib

    from sacrebleu.dataset import DATASETS

    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"expected {PREFIX}TESTSET/PAIR, as {PREFIX}wmt23/ru-en, found {name!r}")
    if found["set"] not in DATASETS:
        near = difflib.get_close_matches(found["set"], DATASETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{name}: sacrebleu has no test set {found['set']!r}; {hint}`sacrebleu --list` shows "
            "them"
        )
    dataset = DATASETS[found["set"]]
    if found["pair"] not in dataset.langpairs:
        raise UsageError(
            f"{name}: the test set has no language pair {found['pair']!r}; it has "
            f"{', '.join(sorted(dataset.langpairs))}"
        )
    return dataset, found["pair"]


def _fields(name: str) -> list[str]:
    dataset, pair = _dataset(name)
    return list(dataset.fieldnames(pair))  # type: ignore[attr-defined]


def _cached(name: str, field: str) -> str:
    """File of a field of a test set."""
    dataset, pair = _dataset(name)
    path: str = dataset._get_txt_file_path(pair, field)  # type: ignore[attr-defined]
    if not os.path.isfile(path) or not os.path.getsize(path):
        test_set = name.removeprefix(PREFIX).removesuffix(f"/{pair}")
        raise UsageError(
            f"{name}: not in the cache of sacrebleu ({os.path.dirname(path)}); fetch it with: "
            f"sacrebleu -t {test_set} -l {pair} --echo {field}"
        )
    return path
