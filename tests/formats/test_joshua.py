"""Which lists are taken for those of Joshua; `test_named_features` reads them."""

from rerank.formats.joshua import Joshua
from rerank.formats.moses import Moses


def test_its_example_is_its_own_and_that_of_moses_is_not() -> None:
    assert Joshua().detect([b"", Joshua.example])
    assert not Joshua().detect([Moses.example])
