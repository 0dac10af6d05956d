"""`rerank perplexity`: how well a language model predicts a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rerank.errors import InputError, RerankError, UsageError
from rerank.files.outputs import check_outputs
from rerank.files.paths import FilePath, display
from rerank.files.terminal import number_of_processes, progress
from rerank.formats.plain_texts import RunningText
from rerank.notices import Notices
from rerank.options import Command, Given, argument, flag, optional, optional_file, part, record
from rerank.runs.options import LM_OR_HF_HELP, Machine, Messages, form_option, printed, side_files
from rerank.runs.texts import (
    TextFiles,
    check_shape,
    encoded,
    evaluation_text,
    note_language,
    parting_option,
    read_text,
    sentences_of,
)
from rerank.scorers.model_options import HUGGING_FACE
from rerank.scorers.models import broken_models, open_for_texts, open_model
from rerank.table import Column, Table
from rerank.values import FILE, FOLDER, PART

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from lm.corpus import Corpus
    from lm.evaluation import Perplexity, Share

LABELS_OF_SENTENCES = ("relations", "topics")
END = "</s>"
_COLUMNS = {  # of the tables for people, of those figures that a model has
    "document": Column("document", ","),
    "tag": Column("tag"),
    "sentences": Column("sentences", ","),
    "words": Column("words", ","),
    "tokens": Column("words", ","),
    "oov": Column("OOV", ","),
    "nats_per_token": Column("nats per token", ",.4f"),
    "perplexity": Column("perplexity", ",.2f"),
    "perplexity_without_eos": Column("without </s>", ",.2f"),
    "mean_word_perplexity": Column("mean of words", ",.2f"),
    "nats_per_word_of_a_bag": Column("nats per word of a bag", ",.4f"),
    "nats_per_token_not_normalised": Column("nats per token, not normalised", ",.4f"),
    "nats_per_token_pseudo_likelihood": Column("nats per token, pseudo-likelihood", ",.4f"),
    "pseudo_perplexity": Column("pseudo-perplexity", ",.2f"),
    "pseudo_perplexity_without_eos": Column("without </s>", ",.2f"),
}


@record
class PerplexityOptions:
    """Options of `rerank perplexity`."""

    text: str = argument("TEXT", type=FILE)
    lm: Path | None = optional(f"{LM_OR_HF_HELP}.", type=FOLDER, metavar="DIR")
    ngram: str | None = optional_file(
        "In place of --lm: n-gram language model in ARPA format, made by train-ngram, lmplz or "
        "SRILM, for example --ngram model.arpa.gz."
    )
    side: Given = part(side_files("line of TEXT, blank where that is blank"))
    across_documents: bool = flag("Let contexts cross the ends of documents.")
    documents: str = parting_option()
    document_cache: float | None = optional(
        "Interpolate the model with a document cache, the unigram of the document so far, of "
        "weight SHARE, for example 0.1.",
        type=PART,
        metavar="SHARE",
    )
    duplicate_last_word: bool = flag(
        "Read and count the last word of each sentence twice, as the published program of Ji et "
        "al. 2016 does: only to compare with their figures.",
        rare=True,
    )
    per_document: bool = flag("Print the figures of each document, too; documents count from 0.")
    tags: str | None = optional_file(
        "A file beside TEXT with a tag for each word: print the figures of each tag, and of "
        "</s>.\n\n"
        "Tags such as parts of speech; figures are per word also where a model predicts "
        "subword pieces; mean of words is that of 1 / p, the figure of Wang & Cho (2015)."
    )
    form: str = form_option("text", "json", "tsv")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})

    def check(self) -> None:
        """UsageError for no model, an option that an n-gram model does not have, or two tables."""
        of_ours = {
            **self.side.values(),
            "across-documents": self.across_documents,
            "document-cache": self.document_cache,
            "duplicate-last-word": self.duplicate_last_word,
            "tags": self.tags,
        }
        if self.ngram is not None:
            device, threads = self.machine.device != "auto", self.machine.threads
            of_ours = {"lm": self.lm, **of_ours, "device": device, "threads": threads}
            fault = "not for the n-gram model of --ngram; leave one of them out"
        elif self.lm is None:
            raise UsageError("expected --lm DIR or --ngram FILE, found neither; give one of them")
        else:
            of_ours = of_ours if str(self.lm).startswith(HUGGING_FACE) else {}
            fault = f"not for {self.lm}, of Hugging Face; leave it out"
        for name, value in of_ours.items():
            if value not in (None, False):
                raise UsageError(f"--{name}: {fault}")
        if self.form == "tsv" and self.tags and self.per_document:
            raise UsageError("--format tsv: one table; leave out --tags or --per-document")


@printed
def perplexity(options: PerplexityOptions, notices: Notices) -> PerplexityReport:
    """Compute the perplexity of TEXT under a language model.

    TEXT has one sentence per line, and by default a blank line between documents; - is standard
    input.

    Example:
      rerank perplexity --lm codclm.lm valid.en --format json
    """
    if str(options.lm).startswith(HUGGING_FACE):
        return _of_causal(options, notices)
    text = (_of_ngrams if options.lm is None else _of_model)(options, notices)
    given, documents = list(options.side.values()), text.documents
    return PerplexityReport(
        text.as_json(),
        [*_lines(text, given, twice=options.duplicate_last_word)],
        None if documents is None else [document.as_json() for document in documents],
        _figures_of_tags(text),
        {
            "duplicate_last_word": options.duplicate_last_word,
            "given": given,
            "pseudo_likelihood": not text.causal,
        },
    )


COMMAND = Command("perplexity", PerplexityOptions, perplexity)


@dataclass(frozen=True, slots=True)
class PerplexityReport:
    """Figures of a text, of its documents and of its tags, by name, where there are any.

    lines: what is said of the text; further: what else is known of it, for JSON.
    """

    figures: Mapping[str, object]
    lines: Sequence[str]
    documents: Sequence[Mapping[str, object]] | None = None
    tags: Mapping[str, Mapping[str, object]] | None = None
    further: Mapping[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values; `document` counts from 0.

        `tags`: figures of the words of each tag; `end_of_sentence`: of `</s>`, None for a model
        that does not predict it.
        """
        report: dict[str, object] = {"schema": 1, **self.figures, **self.further}
        if self.documents is not None:
            report["documents"] = self._rows()
        if self.tags is not None:
            report["end_of_sentence"] = self.tags.get(END)
            report["tags"] = {tag: x for tag, x in self.tags.items() if tag != END}
        return report

    def table(self) -> Table:
        """A row for each tag or document, or one for the text; all digits."""
        return Table.of(self._rows_of_tags() or self._rows() or [self.figures])

    def to_text(self) -> str:
        """A line or more for the text, after tables of the documents and of tags."""
        tables = [_for_people(rows) for rows in (self._rows(), self._rows_of_tags()) if rows]
        return "\n\n".join([*tables, "".join(f"{line}\n" for line in self.lines)])

    def _rows(self) -> list[dict[str, object]]:
        return [{"document": d, **x} for d, x in enumerate(self.documents or ())]

    def _rows_of_tags(self) -> list[dict[str, object]]:
        return [{"tag": tag, **x} for tag, x in (self.tags or {}).items()]


def _lines(text: Perplexity, given: Sequence[str], *, twice: bool) -> Iterator[str]:
    """The perplexity of a text, and what is to be known of it.

    given: kinds of side information that the model was given; twice: whether the last word of each
    sentence was counted twice.
    """
    words = f"{text.tokens:,} words ({text.oov:,} out of vocabulary)"
    unit, per_word = "token", ""
    if text.words is not None:
        words, unit = f"{text.tokens:,} pieces of {text.words:,} words", "piece"
    counts = f"{words} in {text.sentences:,} sentences{', the last word of each twice' * twice}"
    nats = f"{text.nats_per_token:.4f} nats per"
    if not text.normalised:
        yield (
            f"{nats} token over {counts}; the scores do not sum to 1: no perplexity, and not "
            "comparable with one"
        )
    elif text.predicts_end:
        others = f"without </s> {text.perplexity_without_eos:.2f}"
        if text.oov:
            others += f", without unknown words {text.perplexity_without_oov:.2f}"
        if text.words is not None:
            per_word = f" a piece, {text.perplexity_per_word:.2f} a word"
        yield (
            f"{'' if text.causal else 'pseudo-'}perplexity {text.perplexity:.2f}{per_word} "
            f"({others}), {nats} {unit} over {counts}"
        )
    else:
        yield (
            f"{nats} word of a bag of words over {counts}; word order and </s> are not "
            "predicted: not comparable with perplexities of other models"
        )
    if text.log_z is not None:
        yield f"scores of this model are not normalised: {text.log_z.to_text()}"
    if not text.causal:
        yield (
            "each sentence is given the next one, too: a pseudo-likelihood, no perplexity, and "
            "not comparable with one"
        )
    if labels := [f"--{kind}" for kind in given if kind in LABELS_OF_SENTENCES]:
        yield (
            f"given {' and '.join(labels)}: not a perplexity if the labels were made from the "
            "text itself; it is one if they come from the source or from earlier sentences"
        )


def _figures_of_tags(text: Perplexity) -> dict[str, dict[str, object]] | None:
    """Figures of the words of each tag and, last, of `</s>` if it is predicted."""
    if text.tags is None:
        return None
    rows = dict(text.tags)
    if text.predicts_end:
        nats = text.nats - text.word_nats
        rows[END] = text.of_subset(text.sentences, nats)
    kinds = ("perplexity_without_eos", "perplexity_without_oov")
    left_out = ("sentences", *kinds, *(f"pseudo_{kind}" for kind in kinds))
    return {
        tag: {name: value for name, value in words.as_json().items() if name not in left_out}
        for tag, words in rows.items()
    }


def _for_people(rows: Sequence[Mapping[str, object]]) -> str:
    """A table of the figures that people need."""
    names = [name for name in _COLUMNS if name in rows[0]]
    columns = [_COLUMNS[name] for name in names]
    if "words" in names:  # beside tokens of another kind
        columns[names.index("tokens")] = Column("tokens", ",")
    return Table(columns, [[row.get(name) for name in names] for row in rows]).to_text()


def _of_ngrams(options: PerplexityOptions, notices: Notices) -> Perplexity:
    """The figures of the text under the n-gram model of an ARPA file."""
    from lm.corpus import renumber
    from lm.evaluation import perplexity_of_ngrams
    from lm.ngrams import NGramError
    from rerank.scorers.ngram_model import read_ngrams

    ngram, text = str(options.ngram), options.text
    check_outputs((), (ngram, text))
    model = read_ngrams(ngram, notices)
    running = RunningText(text, "evaluation", options.documents)
    words, corpus = read_text(running, notices, across=True)
    note_language(words, corpus, model.vocabulary, display(ngram), notices, path=text)
    corpus = renumber(corpus, words, model.vocabulary)
    try:
        return perplexity_of_ngrams(model, corpus, per_document=options.per_document)
    except NGramError as fault:
        raise RerankError(f"{display(ngram)}: {fault}") from None


def _of_model(options: PerplexityOptions, notices: Notices) -> Perplexity:
    """The figures of the text under a trained model; each process of `torchrun` gets all."""
    import numpy as np

    from lm.corpus import with_last_words_twice
    from lm.document_cache import WithDocumentCache
    from lm.evaluation import Tags
    from lm.evaluation import perplexity as measure
    from lm.side_information import information_of
    from lm.subwords import SubwordVocabulary
    from rerank.formats.translations import check_files

    lm, machine, across = Path(options.lm or ""), options.machine, options.across_documents
    saved, tagged = open_model(lm, machine.device, machine.threads), None
    files = TextFiles(options.text, options.side.values())
    needed = information_of(saved.model.context, training=False)
    check_files(dict.fromkeys(needed, str(lm)), files.side)
    if twice := options.duplicate_last_word:
        fault = "reads sentences from right to left" if saved.model.config.backward else ""
        if isinstance(saved.vocabulary, SubwordVocabulary):
            fault = "predicts subword pieces, not words"
        if fault:
            raise UsageError(f"--duplicate-last-word: {lm} {fault}; leave it out")
    running = RunningText(options.text, "evaluation", options.documents)
    read = words, text = read_text(running, notices, across=across)
    columns = [encoded(read, files, saved, notices, options.documents)]
    if options.tags is not None:
        tagged = _read_tags(options.tags, text, options, notices)
        each = np.arange(len(tagged[0]) + 1)
        _, bounds = saved.vocabulary.numbered(words, text.tokens, each)
        numbers = np.repeat(each[:-1].astype(np.int32), np.diff(bounds))
        columns.append(replace(columns[0], tokens=numbers))
    columns = [saved.in_reading_order(column, across_documents=across) for column in columns]
    corpus, *others = map(with_last_words_twice, columns) if twice else columns
    model, tags = saved.model, None
    if options.document_cache is not None:
        model = WithDocumentCache(model, options.document_cache)
    if tagged is not None:
        ids, names = tagged
        words_of_tokens = others[0].tokens.astype(np.int64)
        if twice:  # the second copy counts as a word
            ids, words_of_tokens = ids[words_of_tokens], np.arange(len(words_of_tokens))
        tags = Tags(ids, names, words_of_tokens)
    inputs = (*files.all, *([] if options.tags is None else [options.tags]))
    with broken_models(lm), _share(inputs) as share:
        return measure(model, corpus, per_document=options.per_document, tags=tags, share=share)


def _of_causal(options: PerplexityOptions, notices: Notices) -> PerplexityReport:
    """The figures of the text under a model of Hugging Face.

    Its tokens are those of newlines, too, which end sentences where these are joined so; figures
    per word count newlines as `</s>`, as of other models.
    """
    from lm.evaluation import MOST_NATS

    name = str(options.lm)
    model = open_for_texts(Path(name), options.machine.device, options.machine.threads)
    if model is None:
        raise UsageError(f"--lm {name}: expected hf:DIR")
    text = evaluation_text(options.text, options.documents, notices)
    if choice := model.choose_by(sentence.decode() for sentence in text.sentences()):
        options.messages.announce(choice)
    spans, ends = [*pairwise(text.corpus.documents.tolist())], model.window.join == "newline"
    documents = list[dict[str, Any]]()
    for begin, end in progress(spans, label=name, unit="documents", total=len(spans)):
        log_probs, tokens = model.log_probs([*text.sentences(begin, end)])
        words = int(text.corpus.sentences[end] - text.corpus.sentences[begin])
        nats = -float(log_probs.sum())
        if not nats < MOST_NATS * max(1, words):  # NaN is not
            raise RerankError(
                f"{name}: the model returned NaN or has no probability left for the text"
            )
        documents.append(_causal_figures(end - begin, words, tokens, nats, ends=ends))
    model.finish(text.name, notices)
    tokens, nats = (sum(document[name] for document in documents) for name in ("tokens", "nats"))
    sentences, words = text.corpus.n_sentences, len(text.corpus.tokens)
    figures = _causal_figures(sentences, words, tokens, nats, ends=ends)
    of_newlines = f" and {sentences:,} ends of sentences" * ends
    line = (
        f"perplexity {figures['perplexity']:.2f} of {tokens:,} tokens, "
        f"{figures['nats_per_token']:.4f} nats each; {figures['perplexity_per_word']:.2f} of "
        f"{words:,} words{of_newlines}, to compare with models of words"
    )
    shown = options.per_document and documents
    return PerplexityReport(figures, [line], documents if shown else None)


def _causal_figures(
    sentences: int, words: int, tokens: int, nats: float, *, ends: bool
) -> dict[str, Any]:
    """Figures by name; ends: whether newlines end sentences."""
    per_token = nats / max(1, tokens)
    per_word = math.exp(nats / max(1, words + sentences * ends))
    return {
        **{"sentences": sentences, "words": words, "tokens": tokens, "nats": nats},
        **{"nats_per_token": per_token, "perplexity": math.exp(per_token)},
        "perplexity_per_word": per_word,
    }


@contextmanager
def _share(files: tuple[FilePath, ...]) -> Iterator[Share]:
    """The documents that this process reads, among those of `torchrun`."""
    from lm.evaluation import ALL, Share
    from rerank.runs.distribution import others_alive, sharing_documents

    if number_of_processes() == 1:
        yield ALL
        return
    with sharing_documents(files) as group:

        def add(tensor: Tensor) -> None:
            with others_alive("the same command begins again"):
                group.wait()
                group.add(tensor)

        yield Share(group.rank, group.number, add)


def _read_tags(
    path: str, beside: Corpus, options: PerplexityOptions, notices: Notices
) -> tuple[NDArray[np.int64], list[str]]:
    """Ids (W,) of the tags of a text's words, and their names; InputError if they do not fit."""
    import numpy as np

    from lm.corpus import Corpus

    lengths, name = np.diff(beside.sentences).tolist(), display(options.text)
    sentences, bounds = sentences_of(path, options.documents, notices)
    index: dict[bytes, int] = {}
    for i, (line, tags) in enumerate(sentences):
        fault = ""
        if i < len(lengths) and len(tags) != lengths[i]:
            fault = (
                f"expected {lengths[i]} tags, one for each word of sentence {i + 1} of {name}, "
                f"found {len(tags)}; write them on its line, with spaces between them"
            )
        elif END.encode() in tags:
            fault = (
                "expected tags of words, found </s>, which stands for the ends of sentences; give "
                "it another name"
            )
        if fault:
            raise InputError(fault, source=display(path), line=line)
    ids = [index.setdefault(tag, len(index)) for _, tags in sentences for tag in tags]
    offsets = np.cumsum([0, *(len(tags) for _, tags in sentences)])
    column = Corpus(np.array(ids, dtype=np.int32), offsets, bounds)
    check_shape(column, beside, name, path)
    return column.tokens.astype(np.int64), [tag.decode() for tag in index]
