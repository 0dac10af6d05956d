"""Perplexity as text, JSON and TSV."""

import json
import math
from dataclasses import replace

import pytest

from lm.evaluation import LogNormalisers, Perplexity
from rerank.report.perplexity import PerplexityReport

FIRST, SECOND = Perplexity(2, 8, 1, 20.0, 16.0), Perplexity(1, 1000, 0, 3003.0, 3000.0)
TEXT = Perplexity(3, 1008, 1, 3023.0, 3016.0)
WITH_DOCUMENTS = Perplexity(3, 1008, 1, 3023.0, 3016.0, documents=(FIRST, SECOND))


def test_a_text_alone_is_one_line_for_people() -> None:
    assert PerplexityReport(FIRST).to_text() == (
        "perplexity 7.39 (without </s> 7.39), 2.0000 nats per token over 8 words "
        "(1 out of vocabulary) in 2 sentences\n"
    )


def test_documents_are_rows_above_that_line() -> None:
    lines = PerplexityReport(WITH_DOCUMENTS).to_text().splitlines()
    assert lines[0].split()[:4] == ["document", "sentences", "words", "OOV"]
    assert lines[2].split() == ["0", "2", "8", "1", "2.0000", "7.39", "7.39"]
    assert lines[3].split() == ["1", "1", "1,000", "0", "3.0000", "20.09", "20.09"]
    assert lines[-1] == PerplexityReport(TEXT).to_text().strip()


def test_json_has_the_figures_of_the_text_and_a_list_of_documents() -> None:
    alone, found = (PerplexityReport(one).to_dict() for one in (TEXT, WITH_DOCUMENTS))
    others = {"duplicate_last_word": False, "given": [], "pseudo_likelihood": False}
    assert alone == {"schema": 1, **TEXT.as_json(), **others}
    documents = [{"document": 0, **FIRST.as_json()}, {"document": 1, **SECOND.as_json()}]
    assert found == {**alone, "documents": documents}
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("text", "rows"), [(TEXT, [TEXT]), (WITH_DOCUMENTS, [FIRST, SECOND])], ids=["text", "documents"]
)
def test_tsv_has_a_header_and_a_line_each(text: Perplexity, rows: list[Perplexity]) -> None:
    header, *lines = PerplexityReport(text).to_tsv().splitlines()
    assert header.split("\t")[-7:] == list(TEXT.as_json())
    for d, (line, one) in enumerate(zip(lines, rows, strict=True)):
        cells = line.split("\t")
        assert [float(cell) for cell in cells[-7:]] == list(one.as_json().values())
        assert cells[:-7] == ([str(d)] if text is WITH_DOCUMENTS else [])


@pytest.mark.parametrize("kind", ["relations", "topics"])
def test_labels_that_may_tell_what_is_predicted_are_named(kind: str) -> None:
    report = PerplexityReport(TEXT, given=("source", kind))
    first, second = report.to_text().splitlines()
    assert first == PerplexityReport(TEXT).to_text().strip()
    assert second.startswith(f"given --{kind}: not a perplexity if the labels were made from")
    assert report.to_dict()["given"] == ["source", kind]
    assert len(PerplexityReport(TEXT, given=("source",)).to_text().splitlines()) == 1


def test_scores_that_are_not_normalised_are_said_to_be_so() -> None:
    found = Perplexity(2, 8, 0, 20.0, 16.0, LogNormalisers(-0.0261, 0.2894))
    assert PerplexityReport(found).to_text().splitlines()[-1] == (
        "scores of this model are not normalised: log Z -0.026 ± 0.289 a word"
    )


def test_scores_of_stupid_backoff_are_not_called_perplexity() -> None:
    found = Perplexity(2, 8, 1, 20.0, 16.0, normalised=False)
    report = PerplexityReport(Perplexity(2, 8, 1, 20.0, 16.0, normalised=False, documents=(found,)))
    heading, *_, text = report.to_text().splitlines()
    assert heading.endswith("nats per token, not normalised")
    assert text == (
        "2.0000 nats per token over 8 words (1 out of vocabulary) in 2 sentences; the scores do "
        "not sum to 1: no perplexity, and not comparable with one"
    )
    assert report.to_dict()["nats_per_token_not_normalised"] == 2.0
    assert "perplexity" not in report.to_dict()


def test_a_pseudo_likelihood_is_not_called_perplexity() -> None:
    document = Perplexity(2, 8, 1, 20.0, 16.0, causal=False)
    report = PerplexityReport(replace(document, documents=(document,)))
    heading, *_, text, reservation = report.to_text().splitlines()
    assert heading.split("nats per token, pseudo-likelihood")[1].split() == [
        *("pseudo-perplexity", "without", "</s>"),
    ]
    assert text == (
        "pseudo-perplexity 7.39 (without </s> 7.39), 2.0000 nats per token over 8 words "
        "(1 out of vocabulary) in 2 sentences"
    )
    assert reservation == (
        "each sentence is given the next one, too: a pseudo-likelihood, no perplexity, and not "
        "comparable with one"
    )
    found = report.to_dict()
    assert found["pseudo_likelihood"] is True
    assert found["pseudo_perplexity"] == pytest.approx(7.389, abs=1e-3)
    assert not found.keys() & {"perplexity", "perplexity_without_eos", "nats_per_token"}
    assert "pseudo_perplexity" in report.to_tsv().splitlines()[0].split("\t")


TAGS = {"NN": Perplexity(0, 6, 1, 12.0, 12.0), "</x>": Perplexity(0, 2, 0, 4.0, 4.0)}
TAGGED = replace(FIRST, tags=TAGS)


def test_tags_are_rows_and_the_ends_of_sentences_the_last_one() -> None:
    *table, blank, line = PerplexityReport(TAGGED).to_text().splitlines()
    assert table[0].split() == [*("tag", "words", "OOV", "nats", "per", "token", "perplexity")]
    assert [row.split() for row in table[2:]] == [
        ["NN", "6", "1", "2.0000", "7.39"],
        ["</x>", "2", "0", "2.0000", "7.39"],
        ["</s>", "2", "0", "2.0000", "7.39"],
    ]
    assert (blank, line) == ("", PerplexityReport(FIRST).to_text().strip())
    both = PerplexityReport(replace(TAGGED, documents=(FIRST,))).to_text()
    assert [block.split()[0] for block in both.split("\n\n")] == ["document", "tag", "perplexity"]


def test_json_and_tsv_have_the_figures_of_tags() -> None:
    report = PerplexityReport(TAGGED)
    found = json.loads(json.dumps(report.to_dict()))
    row = {"tokens": 6, "oov": 1, "nats": 12.0, "nats_per_token": 2.0, "perplexity": math.exp(2)}
    assert found["tags"] == {"NN": row, "</x>": {**row, "tokens": 2, "oov": 0, "nats": 4.0}}
    assert found["end_of_sentence"] == found["tags"]["</x>"]
    assert found.items() >= PerplexityReport(FIRST).to_dict().items()
    header, *lines = report.to_tsv().splitlines()
    assert header.split("\t") == ["tag", *row]
    assert [line.split("\t")[0] for line in lines] == ["NN", "</x>", "</s>"]
    assert [float(cell) for cell in lines[0].split("\t")[1:]] == list(row.values())


def test_tags_without_the_ends_of_sentences_or_of_a_pseudo_likelihood_say_so() -> None:
    bag = replace(TAGGED, predicts_end=False, tags={"NN": replace(TAGS["NN"], predicts_end=False)})
    found = PerplexityReport(bag).to_dict()
    assert found["end_of_sentence"] is None
    assert found["tags"] == {
        "NN": {"tokens": 6, "oov": 1, "nats": 12.0, "nats_per_word_of_a_bag": 2.0}
    }
    acausal = replace(TAGGED, causal=False, tags={"NN": replace(TAGS["NN"], causal=False)})
    header, *_ = PerplexityReport(acausal).to_tsv().splitlines()
    assert header.split("\t")[-2:] == ["nats_per_token_pseudo_likelihood", "pseudo_perplexity"]
