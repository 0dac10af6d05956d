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
    files = _files(name)
    found = {field: path for field, path in files.items() if re.match("ref(-|$)", field)}
    if translator is not None:
        chosen = {field: path for field, path in found.items() if field == f"ref-{translator}"}
        if not chosen:
            there = ", ".join(field.removeprefix("ref-") for field in found) or "none"
            raise UsageError(f"{name}: no reference {translator!r}; there are: {there}")
        found = chosen
    if not found:
        raise _not_cached(name, "ref")
    return list(found.values())


def cached_source(name: str) -> str:
    """File of the source of a test set; UsageError if it is not in the cache."""
    return _file(name, "src")


def cached_docids(name: str) -> str:
    """File of the document ids of a test set; UsageError if the cache has none."""
    files = _files(name)
    if files and "docid" not in files:
        raise UsageError(f"{name}: the test set has no document ids; give --docs or --no-docs")
    return _file(name, "docid")


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
            f"{name}: sacrebleu has no test set {found['set']!r}; {hint}there are "
            f"{len(DATASETS)}, which sacrebleu lists"
        )
    dataset = DATASETS[found["set"]]
    if found["pair"] not in dataset.langpairs:
        raise UsageError(
            f"{name}: the test set has no language pair {found['pair']!r}; it has "
            f"{', '.join(sorted(dataset.langpairs))}"
        )
    return dataset, found["pair"]


def _files(name: str) -> dict[str, str]:
    """Files of a test set in the cache, by field, in the order of their names.

    The list of the fields that sacrebleu gives needs the test set, which it would download.
    """
    dataset, pair = _dataset(name)
    pattern: str = dataset._get_txt_file_path(pair, "")  # type: ignore[attr-defined]
    folder, start = os.path.split(pattern)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = {one.removeprefix(start): os.path.join(folder, one) for one in names}
    return {
        field: path
        for field, path in paths.items()
        if path == pattern + field and os.path.isfile(path) and os.path.getsize(path)
    }


def _file(name: str, field: str) -> str:
    """File of a field of a test set."""
    files = _files(name)
    if field not in files:
        raise _not_cached(name, field)
    return files[field]


def _not_cached(name: str, field: str) -> UsageError:
    dataset, pair = _dataset(name)
    folder = os.path.dirname(dataset._get_txt_file_path(pair, field))  # type: ignore[attr-defined]
    test_set = name.removeprefix(PREFIX).removesuffix(f"/{pair}")
    return UsageError(
        f"{name}: not in the cache of sacrebleu ({folder}); fetch it with: "
        f"sacrebleu -t {test_set} -l {pair} < /dev/null"
    )
