"""ARPA files on disk: compressed by the suffix, read by the content, faults with file and line."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from support.ngrams import GOLDEN, TEXT, golden, model_of, scores

from rerank.errors import InputError
from rerank.formats.arpa import read_ngrams, write_ngrams
from rerank.notices import Notices


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_a_file_is_compressed_if_its_suffix_says_so(suffix: str, tmp_path: Path) -> None:
    path, model = tmp_path / f"model.arpa{suffix}", model_of(TEXT, 2)
    write_ngrams(path, model)
    packed = path.read_bytes()
    unpacked: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        ".gz": gzip.decompress,
        ".xz": lzma.decompress,
    }
    assert unpacked[suffix](packed).startswith(b"\\data\\\nngram 1=33\n")
    path.rename(tmp_path / "renamed")
    found, notices = read_ngrams(tmp_path / "renamed", Notices()), Notices()
    assert scores(found, TEXT).tolist() == scores(model, TEXT).tolist()
    assert notices.lines() == []


def test_a_fault_has_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    path.write_bytes((GOLDEN / "pruned.arpa").read_bytes().replace(b"-0.5\ta b", b"0.5\ta b"))
    with pytest.raises(InputError, match=r"model\.arpa:15: expected a base-10 logarithm"):
        read_ngrams(path, Notices())


def test_a_model_without_an_unknown_class_is_told() -> None:
    notices = Notices()
    found = read_ngrams(GOLDEN / "pruned.arpa", notices)
    assert scores(found, ["a b c"]).tolist() == scores(golden("pruned.arpa"), ["a b c"]).tolist()
    (line,) = notices.lines()
    assert "n-gram model without <unk>: unknown words get the log10 probability -100" in line


def test_unusual_characters_of_words_are_not_warned_of(tmp_path: Path) -> None:
    path, notices = tmp_path / "model.arpa", Notices()
    write_ngrams(path, model_of(["a\u200bb \u3000", "\xa0"], 2))
    model = read_ngrams(path, notices)
    assert {word.decode() for word in model.vocabulary.words} == {"a\u200bb", "\u3000", "\xa0"}
    assert notices.lines() == []
