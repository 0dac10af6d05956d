"""`rerank train-ngram`, and `rerank perplexity --ngram`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.texts import check_text
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.lines import InputFiles, read_lines
from rerank.files.outputs import check_outputs
from rerank.files.paths import display
from rerank.formats.arpa import read_ngrams, write_ngrams
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.corpus import Corpus
    from lm.evaluation import Perplexity
    from lm.ngrams.estimation import KneserNey, StupidBackoff
    from lm.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class NGramRecipe:
    """Settings of an n-gram model: the options of `train-ngram`.

    smoothing: `kneser-ney` or `stupid-backoff`; vocabulary: most words, None for all; min_count:
    least count of a word of the vocabulary; documents: a name of `lm.corpus.DOCUMENTS`;
    discount_fallback: whether Kneser–Ney takes fixed discounts where the counts give none.
    """

    order: int = 5
    smoothing: str = "kneser-ney"
    vocabulary: int | None = None
    min_count: int = 1
    documents: str = "blank"
    discount_fallback: bool = False

    def make_smoothing(self) -> KneserNey | StupidBackoff:
        """The smoothing; UsageError for an option that it does not have."""
        from lm.ngrams.estimation import FALLBACK, KneserNey, StupidBackoff

        kneser_ney = KneserNey(FALLBACK if self.discount_fallback else None)
        smoothings: dict[str, KneserNey | StupidBackoff] = {
            "kneser-ney": kneser_ney,
            "stupid-backoff": StupidBackoff(),
        }
        found = smoothings[self.smoothing]
        if self.discount_fallback and found is not kneser_ney:
            raise UsageError(
                f"--discount-fallback: {self.smoothing} has no discounts; leave it out"
            )
        return found


def train_ngram(
    recipe: NGramRecipe,
    train: str | Path,
    out: str | Path,
    *,
    notices: Notices,
    announce: Callable[[str], None] = lambda line: None,
) -> None:
    """Estimate an n-gram model of a text, one sentence a line, and write it in ARPA format.

    `<unk>` in the text, and every word outside the vocabulary, is the unknown class. Memory: about
    60 bytes a word of the text, and up to 60 bytes an n-gram.
    """
    from lm.corpus import intern, renumber
    from lm.ngrams import NGramError
    from lm.ngrams.estimation import count_ngrams

    smoothing = recipe.make_smoothing()
    check_outputs([out], [train])
    inputs = InputFiles((train,))
    words, raw = intern(_without_tabs(train, notices), recipe.documents)
    check_text(raw, train, notices)
    vocabulary = _vocabulary(recipe, words, raw)
    corpus = renumber(raw, words, vocabulary)
    counts = count_ngrams(corpus, len(vocabulary), recipe.order)
    try:
        model, notes = smoothing.estimate(counts, vocabulary)
    except NGramError as fault:
        raise InputError(
            f"{fault}; take more text, a lower --order, or --discount-fallback",
            source=display(train),
        ) from None
    numbers = ", ".join(f"{n:,} {k}-grams" for k, n in enumerate(counts.ngrams.counts, 1))
    announce(
        f"{recipe.smoothing} of order {recipe.order}: {len(corpus.tokens):,} words "
        f"({corpus.n_unknown / len(corpus.tokens):.2%} outside the vocabulary) in "
        f"{corpus.n_sentences:,} sentences; {numbers}"
    )
    announce("; ".join(notes))
    inputs.check()
    write_ngrams(out, model)
    announce(f"model written to {display(out)}")


def _without_tabs(train: str | Path, notices: Notices) -> Iterator[bytes]:
    """Lines of a training text; InputError for characters that part words in ARPA files."""
    for number, line in enumerate(read_lines(train, notices), 1):
        if b"\t" in line or b"\r" in line:
            raise InputError(
                "expected words between spaces, found a TAB or a carriage return, which ARPA "
                "files cannot have in words; replace them with: tr '\\t\\r' '  '",
                source=display(train),
                line=number,
            )
        yield line


def _vocabulary(recipe: NGramRecipe, words: list[bytes], raw: Corpus) -> Vocabulary:
    """The most frequent words of an interned text; UsageError if none is frequent enough."""
    from lm.corpus import build_vocabulary

    size, least = recipe.vocabulary or len(words), recipe.min_count
    vocabulary = build_vocabulary(words, raw, size, least=least)
    if not vocabulary.words:
        raise UsageError(f"--vocab-min-count {least}: no word is so frequent; choose a smaller one")
    return vocabulary


def ngram_perplexity(
    ngram: str | Path,
    text: str | Path,
    *,
    notices: Notices,
    documents: str = "blank",
    per_document: bool = False,
) -> Perplexity:
    """Perplexity of a text under the n-gram model of an ARPA file.

    documents: a name of `lm.corpus.DOCUMENTS`; per_document: with that of each document, too.
    """
    from lm.corpus import encode
    from lm.evaluation import perplexity_of_ngrams

    check_outputs((), (ngram, text))
    model = read_ngrams(ngram, notices)
    corpus = encode(read_lines(text, notices), model.vocabulary, documents)
    check_text(corpus, text, notices)
    with _broken_models(ngram):
        return perplexity_of_ngrams(model, corpus, per_document=per_document)


@contextmanager
def _broken_models(ngram: str | Path) -> Iterator[None]:
    """RerankError, with the model's file, for a model without a score."""
    from lm.ngrams import NGramError

    try:
        yield
    except NGramError as fault:
        raise RerankError(f"{display(ngram)}: {fault}") from None
