"""Reading in chunks that are smaller than any file."""

import pytest

from rerank.files import compression


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every boundary of blocks, members and reads falls inside a small file."""
    monkeypatch.setattr(compression, "_CHUNK_BYTES", 7)
    monkeypatch.setattr(compression, "_PACKED_BYTES", 5)
