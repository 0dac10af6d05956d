"""The oracle: best and worst candidates, by sacrebleu's sentence score."""

from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from support.lists import kbest
from support.metrics import drafts

from rerank.corpus.documents import Documents
from rerank.formats.table import read_documents
from rerank.metrics.bleu import Bleu
from rerank.metrics.oracle import list_extremes
from rerank.notices import Notices


def test_extremes_are_the_best_and_worst_by_sacrebleus_sentence_score() -> None:
    *lists, reference = drafts(40, 8, seed=5)  # 7 candidates of each sentence
    whole, groups = kbest(list(zip(*lists, strict=True))), [[r.encode()] for r in reference]
    rows = Bleu().of_lists(whole, groups).rows
    found = list_extremes([whole], groups, Bleu())
    truth = BLEU(tokenize="none", effective_order=True)
    scores = [
        [truth.sentence_score(line, [target]).score for line in candidates]
        for candidates, target in zip(zip(*lists, strict=True), reference, strict=True)
    ]
    best = [7 * t + row.index(max(row)) for t, row in enumerate(scores)]  # the first of equals
    worst = [7 * t + row.index(min(row)) for t, row in enumerate(scores)]
    assert found.best.tolist() == rows[best].tolist()
    assert found.worst.tolist() == rows[worst].tolist()


def test_lists_are_judged_document_by_document_and_a_gap_is_an_empty_line(tmp_path: Path) -> None:
    lists = [["a b x x", "a b c d"], [], ["e f g h", "e z"]]  # documents of two sentences, and one
    path = tmp_path / "dev.kbest"
    path.write_text(
        "".join(f"{t} ||| {h} ||| LM0= 0 ||| 0\n" for t, row in enumerate(lists) for h in row)
    )
    references = [[b"a b c d", b"a b"], [b"i j", b"i"], [b"x", b"e f g h"]]
    documents = Documents(("one", "two"), (0, 2, 3))
    found = list_extremes(read_documents(path, documents, Notices()), references, Bleu())
    for chosen, rows in (
        (["a b c d", "", "e f g h"], found.best),
        (["a b x x", "", "e z"], found.worst),
    ):
        truth = Bleu().statistics([[line.encode()] for line in chosen], references)
        assert rows.tolist() == truth.tolist()
