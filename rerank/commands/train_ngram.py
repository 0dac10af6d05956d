"""`rerank train-ngram`: an n-gram language model in an ARPA file."""

from __future__ import annotations

import click

from rerank.errors import InputError, UsageError
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.formats.plain_texts import UNKNOWN_FORM, RunningText
from rerank.notices import Notices
from rerank.options import Command, flag, option, optional, part, record
from rerank.runs.options import Messages, printed
from rerank.runs.texts import (
    TOKENIZER,
    TOKENIZER_HELP,
    check_package,
    counted_words,
    frequent_words,
    parting_option,
    read_text,
    subwords,
    tokenizer_files,
)
from rerank.values import FILE, MOST_LINES, Whole

MOST_ORDER = 6  # of `lm.ngrams`


@record
class TrainNgramOptions:
    """Options of `rerank train-ngram`."""

    train: str = option(
        "Training text: one sentence per line; blank lines are not sentences.", type=FILE
    )
    out: str = option(
        "ARPA file to write, compressed if it ends in .gz, .xz or .bz2; - is standard output.",
        type=FILE,
    )
    order: int = option("Words of the longest n-grams.", type=Whole(1, MOST_ORDER), default=5)
    smoothing: str = option(
        "Interpolated modified Kneser-Ney, or stupid backoff, which is no probability.\n\n"
        "kneser-ney (Chen & Goodman 1999) is as lmplz has it; stupid-backoff is of Brants et "
        "al. 2007; other programs refuse its file.",
        type=click.Choice(["kneser-ney", "stupid-backoff"]),
        default="kneser-ney",
    )
    discount_fallback: bool = flag(
        "Take the discounts 0.5, 1 and 1.5 for orders whose counts give none, as in small or "
        "made-up texts; such a text is refused otherwise."
    )
    vocabulary: int | None = optional(
        "Vocabulary size: the most frequent words; the others are <unk> [default: all words].",
        "--vocab",
        type=Whole(most=MOST_LINES),
    )
    min_count: int = option(
        "Number of times that a word of the vocabulary is in the training text.",
        "--vocab-min-count",
        type=Whole(most=MOST_LINES),
        default=1,
    )
    tokenizer: str | None = optional(TOKENIZER_HELP, type=TOKENIZER, metavar="KIND:SIZE")
    documents: str = parting_option()
    messages: Messages = part(Messages, "Messages", without={"verbose"})

    def check(self) -> None:
        """UsageError for an option that the smoothing does not have."""
        if self.discount_fallback and self.smoothing != "kneser-ney":
            raise UsageError(
                f"--discount-fallback: {self.smoothing} has no discounts; leave it out"
            )
        if self.tokenizer is not None:
            check_package("--tokenizer", self.tokenizer)
            if self.vocabulary or self.min_count > 1:
                raise UsageError(
                    f"--vocab{'' if self.vocabulary else '-min-count'}: the pieces of --tokenizer "
                    "are the vocabulary; leave one of them out"
                )


# memory: about 60 bytes a word of the text, and up to 60 bytes an n-gram
@printed
def train_ngram(options: TrainNgramOptions, notices: Notices) -> str:
    """Estimate an n-gram language model and write it in ARPA format.

    It is for --ngram of score, decode, tune-mert and perplexity, and for other programs.

    Example:
      rerank train-ngram --order 5 --train train.en.gz --out model.arpa.gz
    """
    from lm.corpus import renumber
    from lm.ngrams import FALLBACK, KneserNey, NGramError, StupidBackoff, count_ngrams
    from lm.ngrams.arpa import arpa

    train, announce = options.train, options.messages.announce
    read = [train, *tokenizer_files([options.tokenizer or ""])]
    inputs = check_outputs([options.out], read)
    text = RunningText(train, "n-grams", options.documents)
    words, raw = read_text(text, notices, across=True)
    if options.tokenizer is not None:
        text.check_pieces(notices)
    options.messages.report(notices)
    if options.tokenizer is None:
        most, least = options.vocabulary, options.min_count
        vocabulary = frequent_words(words, raw, most, least, UNKNOWN_FORM)
    else:
        vocabulary = subwords("--tokenizer", options.tokenizer, words, raw)
    corpus = renumber(raw, words, vocabulary)
    counts = count_ngrams(corpus, len(vocabulary), options.order)
    smoothing: KneserNey | StupidBackoff = StupidBackoff()
    if options.smoothing == "kneser-ney":
        smoothing = KneserNey(FALLBACK if options.discount_fallback else None)
    try:
        model, notes = smoothing.estimate(counts, vocabulary)
    except NGramError as fault:
        raise InputError(
            f"{fault}; take more text, a lower --order, or --discount-fallback",
            source=display(train),
        ) from None
    numbers = ", ".join(f"{n:,} {k}-grams" for k, n in enumerate(counts.ngrams.counts, 1))
    announce(
        f"{options.smoothing} of order {options.order}: {counted_words(corpus)} in "
        f"{corpus.n_sentences:,} sentences; {numbers}"
    )
    announce("; ".join(notes))
    inputs.check()
    with atomic(options.out) as file:
        for block in arpa(model):
            file.write(block)
    return f"model written to {'standard output' if options.out == '-' else display(options.out)}"


COMMAND = Command("train-ngram", TrainNgramOptions, train_ngram)
