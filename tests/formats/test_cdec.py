"""Which lists are taken for those of Cdec; `test_named_features` reads them."""

from rerank.formats.cdec import Cdec
from rerank.formats.moses import Moses


def test_its_example_is_its_own_and_that_of_moses_is_not() -> None:
    assert Cdec().detect([b"", Cdec.example])
    assert not Cdec().detect([Moses.example])
