"""Which lists are taken for those of Travatar; `test_named_features` reads them."""

from rerank.formats.moses import Moses
from rerank.formats.travatar import Travatar


def test_its_example_is_its_own_and_that_of_moses_is_not() -> None:
    assert Travatar().detect([b"", Travatar.example])
    assert not Travatar().detect([Moses.example])
