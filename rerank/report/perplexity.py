"""Perplexity of a text, and of each of its documents, for people and for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rerank.table import Column, Table

if TYPE_CHECKING:
    from lm.evaluation import Perplexity

LABELS_OF_SENTENCES = ("relations", "topics")
END = "</s>"
_COLUMNS = {  # of the tables for people, of those figures that a model has
    "document": Column("document", ","),
    "tag": Column("tag"),
    "sentences": Column("sentences", ","),
    "tokens": Column("words", ","),
    "oov": Column("OOV", ","),
    "nats_per_token": Column("nats per token", ",.4f"),
    "perplexity": Column("perplexity", ",.2f"),
    "perplexity_without_eos": Column("without </s>", ",.2f"),
    "nats_per_word_of_a_bag": Column("nats per word of a bag", ",.4f"),
    "nats_per_token_not_normalised": Column("nats per token, not normalised", ",.4f"),
    "nats_per_token_pseudo_likelihood": Column("nats per token, pseudo-likelihood", ",.4f"),
    "pseudo_perplexity": Column("pseudo-perplexity", ",.2f"),
    "pseudo_perplexity_without_eos": Column("without </s>", ",.2f"),
}


@dataclass(frozen=True, slots=True)
class PerplexityReport:
    """Perplexity of a text, with a row for each of its documents if it has figures of them.

    duplicate_last_word: whether the last word of each sentence was counted twice. given: kinds of
    side information that the model was given.
    """

    text: Perplexity
    duplicate_last_word: bool = False
    given: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values; `document` counts from 0.

        `tags`: figures of the words of each tag; `end_of_sentence`: of `</s>`, None for a model
        that does not predict it.
        """
        found: dict[str, object] = {"schema": 1, **self.text.as_json()}
        found["duplicate_last_word"] = self.duplicate_last_word
        found["given"] = list(self.given)
        found["pseudo_likelihood"] = not self.text.causal
        if self.text.documents is not None:
            found["documents"] = self._rows()
        if self.text.tags is not None:
            rows = {str(row.pop("tag")): row for row in self._rows_of_tags()}
            found["end_of_sentence"] = rows.pop(END, None)
            found["tags"] = rows
        return found

    def table(self) -> Table:
        """A row for each tag or document, or one for the text; all digits."""
        if self.text.tags is not None:
            return Table.of(self._rows_of_tags())
        return Table.of([self.text.as_json()] if self.text.documents is None else self._rows())

    def to_text(self) -> str:
        """One line for the text, after tables of the documents and of tags."""
        found = self.text
        counts = (
            f"{found.tokens:,} words ({found.oov:,} out of vocabulary) in "
            f"{found.sentences:,} sentences"
            f"{', the last word of each twice' if self.duplicate_last_word else ''}"
        )
        if not found.normalised:
            text = (
                f"{found.nats_per_token:.4f} nats per token over {counts}; the scores do not sum "
                "to 1: no perplexity, and not comparable with one\n"
            )
        elif found.predicts_end:
            pseudo = "" if found.causal else "pseudo-"
            text = (
                f"{pseudo}perplexity {found.perplexity:.2f} (without </s> "
                f"{found.perplexity_without_eos:.2f}), {found.nats_per_token:.4f} nats per token "
                f"over {counts}\n"
            )
        else:
            text = (
                f"{found.nats_per_token:.4f} nats per word of a bag of words over {counts}; word "
                "order and </s> are not predicted: not comparable with perplexities of other "
                "models\n"
            )
        if found.log_z is not None:
            text += f"scores of this model are not normalised: {found.log_z.to_text()}\n"
        if not found.causal:
            text += (
                "each sentence is given the next one, too: a pseudo-likelihood, no perplexity, and "
                "not comparable with one\n"
            )
        if labels := [f"--{kind}" for kind in self.given if kind in LABELS_OF_SENTENCES]:
            text += (
                f"given {' and '.join(labels)}: not a perplexity if the labels were made from the "
                "text itself; it is one if they come from the source or from earlier sentences\n"
            )
        tables = [] if found.documents is None else [_for_people(self._rows())]
        tables += [] if found.tags is None else [_for_people(self._rows_of_tags())]
        return "\n\n".join([*(table.to_text() for table in tables), text])

    def _rows(self) -> list[dict[str, object]]:
        return [{"document": d, **one.as_json()} for d, one in enumerate(self.text.documents or ())]

    def _rows_of_tags(self) -> list[dict[str, object]]:
        """Figures of the words of each tag and, last, of `</s>` if it is predicted."""
        rows = dict(self.text.tags or {})
        if self.text.predicts_end:
            nats, n = self.text.nats - self.text.word_nats, self.text.sentences
            ends = replace(self.text, sentences=0, tokens=n, oov=0, nats=nats, word_nats=nats)
            rows[END] = replace(ends, log_z=None)
        left_out = ("sentences", "perplexity_without_eos", "pseudo_perplexity_without_eos")
        return [
            {"tag": tag} | {k: v for k, v in one.as_json().items() if k not in left_out}
            for tag, one in rows.items()
        ]


def _for_people(rows: Sequence[Mapping[str, object]]) -> Table:
    """The table of the figures that people need."""
    names = [name for name in _COLUMNS if name in rows[0]]
    columns = [_COLUMNS[name] for name in names]
    return Table(columns, [[row[name] for name in names] for row in rows])
