"""`rerank sample`: text drawn from a language model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rerank.errors import InputError, UsageError
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.files.terminal import progress
from rerank.formats.plain_texts import RunningText
from rerank.notices import Notices
from rerank.options import Command, option, part, record
from rerank.runs.options import LM_HELP, Machine, Messages, printed
from rerank.runs.texts import TextFiles, encoded, read_text
from rerank.scorers.models import broken_models, open_model, refuse
from rerank.values import FILE, FOLDER, Real, Whole


@record
class Sampling:
    """How much text is drawn, and how."""

    documents: int = option("Number of documents.", type=Whole(), default=1)
    sentences: int = option("Number of sentences of each document.", type=Whole(), default=10)
    longest: int = option(
        "Most words of a sentence; one that has not ended by itself is cut off there.",
        type=Whole(),
        default=100,
    )
    temperature: float = option(
        "Words are drawn with probabilities proportional to p^(1/TEMPERATURE).",
        type=Real(0.01, 100),
        default=1.0,
    )
    seed: int = option("Random seed.", type=Whole(0, 2**31 - 1), default=1)


@record
class SampleOptions:
    """Options of `rerank sample`."""

    lm: Path = option(LM_HELP, type=FOLDER, metavar="DIR")
    start: str | None = option(
        "Text of one document, a sentence per line, that every document continues; it is not "
        "printed.",
        type=FILE,
        default=None,
    )
    out: str = option("Output; - is standard output.", type=FILE, default="-")
    sampling: Sampling = part(Sampling, "What is drawn")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def sample(options: SampleOptions, notices: Notices) -> str:
    """Write text drawn from a language model: a sentence per line, blank lines between documents.

    Each sentence is drawn in the context of those before it; by a model of train-lm
    --reverse-documents in that of those after it, --start being the end of the document. <unk> is
    never drawn, nor an empty sentence: the other probabilities are scaled up. The same seed gives
    the same text. Not for rnnslm, which predicts bags of words.

    Example:
      rerank sample --lm codclm.lm --documents 3 --sentences 8 --seed 7
    """
    from lm.sampling import sample as draw

    lm, start, sampling = options.lm, options.start, options.sampling
    check_outputs([options.out], [start], [lm])
    saved = open_model(lm, options.machine.device, options.machine.threads)
    refuse(saved, lm, "rerank sample")
    if not saved.model.head.predicts_end:
        raise UsageError(
            f"{lm}: this model predicts bags of words, without order and </s>, of which no "
            "sentence can be drawn; give another one"
        )
    if not saved.vocabulary.words:
        raise UsageError(f"{lm}: this model knows no word that could be drawn; train another")
    before = None
    if start is not None:
        text = read_text(RunningText(start, "evaluation", "blank"), notices)
        before = saved.in_reading_order(encoded(text, TextFiles(start), saved, notices))
        if before.n_documents > 1:
            raise InputError(
                f"expected one document to continue, found {before.n_documents:,}; keep one of "
                "those between blank lines",
                source=display(start),
            )
    drawn = draw(saved.model, start=before, **asdict(sampling))
    sentences = words = cut = 0
    shown = progress(drawn, label="sampling", unit="documents", total=sampling.documents)
    with atomic(options.out) as file, broken_models(lm):
        for number, document in enumerate(shown):
            file.write(b"\n" if number else b"")
            # every sentence has a word, so that no other line is blank
            for sentence in saved.sentence_order(document.sentences):
                line = saved.vocabulary.line(saved.reading_order(sentence))
                file.write(line + b"\n")
                words += len(line.split(b" "))
            sentences += len(document.sentences)
            cut += document.cut
    counts = (sampling.documents, "document"), (sentences, "sentence"), (words, "word")
    drawn_counts = ", ".join(_counted(n, noun) for n, noun in counts)
    if not cut:
        return drawn_counts
    longest = _counted(sampling.longest, "word")
    return f"{drawn_counts}; {_counted(cut, 'sentence')} cut off at --longest {longest}"


COMMAND = Command("sample", SampleOptions, sample)


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
