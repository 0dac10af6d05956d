"""`rerank sample`: text drawn from a language model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from rerank.errors import InputError, UsageError
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.pipeline.language_models import open_model
from rerank.pipeline.perplexity import broken_models, read_corpus
from rerank.pipeline.progress import progress
from rerank.pipeline.side_information import refuse


@dataclass(frozen=True, slots=True)
class Sampling:
    """How much text is drawn, and how; the defaults are those of `sample`.

    sentences: of each document; longest: words of a sentence, which ends there if no `</s>` is
    drawn before; temperature: probabilities are proportional to p^(1/temperature).
    """

    documents: int = 1
    sentences: int = 10
    longest: int = 100
    temperature: float = 1.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class SampledText:
    """Counts of a text that was drawn; cut: sentences that ended without `</s>`."""

    documents: int
    sentences: int
    words: int
    cut: int
    longest: int

    def to_text(self) -> str:
        """`2 documents, 20 sentences, 131 words`, and how many sentences were cut off."""
        counts = (self.documents, "document"), (self.sentences, "sentence"), (self.words, "word")
        text = ", ".join(_counted(n, noun) for n, noun in counts)
        if self.cut:
            cut, longest = _counted(self.cut, "sentence"), _counted(self.longest, "word")
            text += f"; {cut} cut off at --longest {longest}"
        return text


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def sample(
    lm: Path,
    out: str | Path,
    sampling: Sampling,
    *,
    notices: Notices,
    start: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> SampledText:
    """Draw documents from a model and write them to `out`, a blank line between them.

    start: a text of one document, which every document continues, or precedes if the model reads
    documents from the last sentence to the first; it is not written. Every sentence
    has a word, so that no other line is blank. What is drawn, and on what it depends, says
    `lm.sampling.sample`.
    """
    from lm.sampling import sample as draw

    check_outputs((out,), () if start is None else (start,))
    saved = open_model(lm, device, threads)
    refuse(saved, lm, "rerank sample")
    vocabulary = saved.vocabulary
    if not saved.model.head.predicts_end:
        raise UsageError(
            f"{lm}: this model predicts bags of words, without order and </s>, of which no "
            "sentence can be drawn; give another one"
        )
    if not vocabulary.words:
        raise UsageError(f"{lm}: this model knows no word that could be drawn; train another")
    before = None if start is None else read_corpus(start, saved, notices)
    if before is not None and before.n_documents > 1:
        raise InputError(
            f"expected one document to continue, found {before.n_documents:,}; keep one of those "
            "between blank lines",
            source=display(start or ""),
        )
    documents = draw(saved.model, start=before, **asdict(sampling))
    sentences = words = cut = 0
    with atomic(out) as file, broken_models(lm):
        for number, document in enumerate(
            progress(documents, label="sampling", unit="documents", total=sampling.documents)
        ):
            file.write(b"\n" if number else b"")
            for sentence in saved.sentence_order(document.sentences):
                file.write(b" ".join(vocabulary.decode(saved.reading_order(sentence))) + b"\n")
            sentences += len(document.sentences)
            words += sum(map(len, document.sentences))
            cut += document.cut
    return SampledText(sampling.documents, sentences, words, cut, sampling.longest)
