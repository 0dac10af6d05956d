"""Names of feature values."""

from rerank.corpus.labels import Label, column_names


def test_a_label_of_several_values_numbers_them() -> None:
    assert column_names([Label("LM0", 1), Label("TM0", 2)]) == ["LM0", "TM0_0", "TM0_1"]
