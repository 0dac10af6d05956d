"""A document in memory, and one read from a file, look alike to a scorer."""

from support.lists import kbest_of_lines

from rerank.corpus.document import Document

LINES = (
    "0 ||| the  cat ||| LM0= -1 TM0= 2 3 sp_x= 0.5 ||| 1",
    "0 ||| é ||| LM0= -2 TM0= 4 5 ||| 1",
    "2 ||| it ||| LM0= -3 TM0= 6 7 ||| 1",
)


def read() -> Document:
    return Document.of("talk", kbest_of_lines(LINES, 3))


def test_texts_have_an_empty_list_for_a_sentence_without_candidates() -> None:
    assert read().texts == [["the cat", "é"], [], ["it"]]
    assert Document("talk", [[("the cat", {}), ("é", {})], [], [("it", {})]]).texts == read().texts


def test_features_of_a_file_are_mappings_by_name() -> None:
    first, second = read().sentences[0]
    assert dict(first[1]) == {"LM0": -1, "TM0_0": 2, "TM0_1": 3, "sp_x": 0.5}
    assert dict(second[1]) == {"LM0": -2, "TM0_0": 4, "TM0_1": 5}
    assert (second[1]["TM0_1"], len(second[1]), "sp_x" in second[1]) == (5, 3, False)
