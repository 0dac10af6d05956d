"""Words of the Moses tokenizer; sacremoses is the truth."""

import pytest
import sacremoses
from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesTokenizer
from support.metrics import statistics_of_lines

from rerank.errors import UsageError
from rerank.metrics.bleu import Bleu, corpus_bleu
from rerank.metrics.moses_tokens import moses_tokenizer

HYPOTHESES = ["It's Mr. Smith's lamp (really).", "AT&T has 1,000.5 lamps, don't they?", ""]
REFERENCES = ["It's the lamp of Mr. Smith.", "AT&T has 1,000 lamps, haven't they?", "No!"]


def by_sacremoses(lines: list[str], language: str) -> list[str]:
    split = MosesTokenizer(lang=language).tokenize
    return [split(line, return_str=True, escape=False) for line in lines]


@pytest.mark.parametrize("language", ["en", "de"])
def test_bleu_is_sacrebleus_of_the_words_of_sacremoses(language: str) -> None:
    ours = Bleu(f"moses-{language}")
    texts = [by_sacremoses(lines, language) for lines in (HYPOTHESES, REFERENCES)]
    truth = BLEU(tokenize="none")
    expected = truth.corpus_score(texts[0], texts[1:]).score
    summed = statistics_of_lines(ours, HYPOTHESES, [REFERENCES]).sum(axis=0)
    assert corpus_bleu(summed) == expected > 0
    assert ours.split(HYPOTHESES[1].encode()) == texts[0][1].split()
    tokens = f"tok:moses-{language}-sacremoses{sacremoses.__version__}"
    assert ours.signature(1) == str(truth.get_signature()).replace("tok:none", tokens)


def test_escapes_are_undone_and_none_are_made() -> None:
    tokenise = moses_tokenizer("moses-en")
    assert tokenise("It&apos;s AT&amp;T now.") == tokenise("It's AT&T now.") == "It 's AT & T now ."


@pytest.mark.parametrize("name", ["moses-xx", "moses-", "moses-english"])
def test_a_language_without_rules_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--tokenize {name}: .*there are .*en"):
        Bleu(name)
