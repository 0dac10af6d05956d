from pathlib import Path

import rerank
from rerank.signature import short_digest, signature


def test_a_signature_names_what_is_known_in_order_and_the_version() -> None:
    parts = {"search": "viterbi", "exact": True, "k": 100, "docs": None, "lm": "a=1"}
    expected = f"rerank|search:viterbi|exact:yes|k:100|lm:a=1|v:{rerank.__version__}"
    assert signature(parts) == expected


def test_a_value_cannot_forge_another_part() -> None:
    assert signature({"lm": "x|exact:yes"}).count("|") == 2


def test_a_digest_is_of_the_bytes_and_none_where_there_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert short_digest(tmp_path / "a") == "e3b0c442"  # SHA-256 of nothing, FIPS 180-4
    assert short_digest(tmp_path / "b") is None
    assert short_digest("-") is None
