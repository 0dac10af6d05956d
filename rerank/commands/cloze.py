"""`rerank cloze`: the missing words of sentences, from all that surrounds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rerank.errors import InputError, RerankError, UsageError
from rerank.files.paths import display
from rerank.formats.plain_texts import text_lines
from rerank.notices import Notices
from rerank.options import Command, argument, option, part, record
from rerank.runs.options import LM_HELP, Machine, Messages, form_option, printed
from rerank.scorers.models import open_forward_model, refuse
from rerank.table import tsv_line
from rerank.values import FILE, FOLDER, Whole

MISSING = b"___"  # the word that stands for the missing one
Line = tuple[int, list[bytes]]  # its number, from 1, and its words


@dataclass(frozen=True, slots=True)
class Cloze:
    """The queries of a text: their lines, and natural-log probabilities of the best answers.

    The most probable answer comes first.
    """

    queries: Sequence[tuple[int, Mapping[str, float]]]

    def to_text(self) -> str:
        """A line for each answer: line of the query, word and log-probability, with TABs."""
        return "\n".join(
            tsv_line([line, word, f"{log_prob:.4f}"])
            for line, answers in self.queries
            for word, log_prob in answers.items()
        )

    def to_dict(self) -> dict[str, object]:
        """The queries as JSON values."""
        queries = [{"line": line, "answers": answers} for line, answers in self.queries]
        return {"schema": 1, "queries": queries}


@record
class ClozeOptions:
    """Options of `rerank cloze`."""

    text: str = argument("TEXT", type=FILE)
    lm: Path = option(LM_HELP, type=FOLDER, metavar="DIR")
    answers: int = option("Number of answers to each query.", type=Whole(), default=5)
    form: str = form_option("text", "json")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def cloze(options: ClozeOptions, notices: Notices) -> Cloze:
    """Fill in missing words of TEXT with a language model.

    TEXT has one sentence per line and a blank line between documents. The last sentence of each
    document has ___ in place of one word. The model scores this sentence, after those before it,
    completed with every word of its vocabulary. Output: the line, an answer and its
    natural-log probability, with TABs between them.

    Example:
      rerank cloze --lm rlm.lm queries.en --answers 1
    """
    from lm.comparisons import answer_log_probs
    from lm.scoring import LogProbError, ScoringEngine
    from lm.subwords import SubwordVocabulary
    from lm.vocabulary import SPECIAL

    lm, machine, queries = options.lm, options.machine, []
    documents = list(_documents(text_lines(options.text, notices), display(options.text)))
    saved = open_forward_model(lm, machine.device, machine.threads)
    refuse(saved, lm, "rerank cloze")
    if isinstance(saved.vocabulary, SubwordVocabulary):
        raise UsageError(
            f"{lm}: the model predicts subword pieces, and a gap is a word; give a model of words, "
            "trained without --tokenizer"
        )
    engine, vocabulary = ScoringEngine.of(saved.model), saved.vocabulary
    words = [word.decode() for word in vocabulary.words]
    candidates = range(len(SPECIAL), len(vocabulary))
    for (number, query), before in documents:
        gap, sentences = query.index(MISSING), [vocabulary.encode(text) for text in before]
        sides = vocabulary.encode(query[:gap]), vocabulary.encode(query[gap + 1 :])
        try:
            log_probs = answer_log_probs(engine, sentences, sides, candidates)
        except LogProbError as fault:
            raise RerankError(f"{lm}: line {number}: {fault}") from None
        best = (-log_probs).argsort(kind="stable")[: options.answers].tolist()
        queries.append((number, {words[k]: float(log_probs[k]) for k in best}))
    return Cloze(queries)


COMMAND = Command("cloze", ClozeOptions, cloze)


def _documents(lines: Iterable[bytes], source: str) -> Iterator[tuple[Line, list[list[bytes]]]]:
    """The query of each document, and the sentences before it; InputError without a query."""
    from lm.vocabulary import words_of

    seen = False
    numbered = enumerate(map(words_of, lines), 1)
    for filled, run in groupby(numbered, lambda line: bool(line[1])):
        if not filled:
            continue
        *before, query = run
        for place, words in (*before, query):
            expected, gaps = int(place == query[0]), words.count(MISSING)
            if gaps != expected:
                where = ("a sentence before the last", "the last sentence of a document")
                raise InputError(
                    f"expected {expected} ___ in {where[expected]}, found {gaps}; end each "
                    "document, before a blank line, with the sentence that misses a word",
                    source=source,
                    line=place,
                )
        yield query, [words for _, words in before]
        seen = True
    if not seen:
        raise InputError("expected sentences, found no words", source=source, line=1)
