"""`rerank lm-eval pairs`: contrastive items from k-best lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import click

from rerank.errors import InputError
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.formats.contrastive import CONTRASTS, WordTest
from rerank.notices import Notices
from rerank.options import option, optional_file, part, record
from rerank.runs.options import ListFiles, Messages, ReferenceFiles, form_option, printed
from rerank.values import FILE, Whole

VARIANTS = ("replaced", "omitted")
REPEATED = "repeated"  # the class of content words that the document has had
CLASSES = ("pronouns", "auxiliaries", "function", REPEATED)


@record
class Items:
    """What items are made of, and where they go."""

    texts: ReferenceFiles = part(
        ReferenceFiles, without={"drop_unreferenced"}, required={"references"}
    )
    out: str = option("File for the items.", type=FILE)
    word_class: str = option(
        "Words in which the variants differ: pronouns, auxiliaries, function, or repeated.\n\n"
        "English words of these classes; or repeated, content words of the document's earlier "
        "references against other content words.",
        "--class",
        type=click.Choice([*CLASSES]),
        default="pronouns",
    )
    context: int = option(
        "Sentences of the reference before each item.", type=Whole(0, 1000), default=3
    )
    variants: str = option(
        "What is wrong with a variant: it has another word of --class there, or has lost a word of "
        "it, or has one too many.",
        type=click.Choice([*VARIANTS]),
        default="replaced",
    )
    source: str | None = optional_file(
        "Source sentences, a line for each sentence of the lists, for models that read them."
    )
    before: str | None = optional_file(
        "Text whose sentences stand before each item in place of the reference's, such as the "
        "output of decode."
    )


@record
class PairsOptions:
    """Options of `rerank lm-eval pairs`."""

    lists: ListFiles = part(
        ListFiles, "Lists and documents", without={"systems", "missing"}, required={"kbest"}
    )
    items: Items = part(Items, "Items")
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def pairs(options: PairsOptions, notices: Notices) -> ContrastivePairs:
    """Make contrastive items from k-best lists, for `lm-eval contrastive`.

    An item is a candidate of a list and others that differ from it in one pronoun, or another
    word of --class: the right one's is in the reference, the others' are not; or they lack the
    word, or have one that the reference lacks (--variants omitted).

    Example:
      rerank lm-eval pairs --kbest dev.nbest.gz --docs dev.docids --ref dev.en --out pairs.jsonl
    """
    from rerank.corpus.spelling import nfc_lines
    from rerank.formats.translations import read_references, read_translation
    from rerank.runs.opening import open_run

    chosen, lists, sentences = options.items, options.lists.lists(), 0
    words_of, words = _words_of(chosen.word_class), Counter[str]()
    read = (*lists.files, *chosen.texts.references, chosen.source, chosen.before)
    check_outputs([chosen.out], read)
    phenomenon = chosen.word_class + " omitted" * (chosen.variants == "omitted")
    with open_run(lists, notices) as run, atomic(chosen.out) as file:
        texts = read_references(chosen.texts.references, run.source.documents, notices)
        texts = nfc_lines(texts) if lists.in_nfc else texts
        before, sources = [references[0] for references in texts], None
        if chosen.before is not None:
            before = read_translation(chosen.before, run.source.documents, notices)
        if chosen.source is not None:
            sources = read_translation(chosen.source, run.source.documents, notices, role="source")
        for name, kbest in run.read():
            first = kbest.first
            sentences += len(kbest)
            for t in range(len(kbest)):
                candidates = [kbest.tokens(row) for row in kbest.rows(t)]
                references = [line.split() for line in texts[first + t]]
                test = words_of(texts[first : first + t])
                item = CONTRASTS[chosen.variants](candidates, references, test)
                place = max(first, first + t - chosen.context), first + t
                context = _context(before, sources, *place)
                if item is None or context is None:
                    continue
                words[item.word] += 1
                line = {
                    "id": f"{name}:{t + 1}",
                    **context,
                    "right": item.right.decode(),
                    "wrong": [wrong.decode() for wrong in item.wrong],
                    "phenomenon": phenomenon,
                    **({"pronoun": item.word} if chosen.word_class == "pronouns" else {}),
                }
                file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        if not words:
            raise InputError(
                f"expected candidates that differ in one word of {chosen.word_class}, which a "
                "reference has and their others have not, found none; give longer lists or "
                "another class",
                source=display(lists.kbest),
            )
    return ContrastivePairs(words.total(), sentences, dict(words.most_common()))


@dataclass(frozen=True, slots=True)
class ContrastivePairs:
    """Items made, sentences of the lists, and how often each right word is in an item."""

    items: int
    sentences: int
    words: Mapping[str, int]

    def to_text(self) -> str:
        """The figures in one line."""
        common = ", ".join(f"{word} {n:,}" for word, n in list(self.words.items())[:8])
        return f"{self.items:,} items of {self.sentences:,} sentences; right words: {common}\n"

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {"schema": 1, **asdict(self)}


def _context(
    texts: Sequence[bytes], sources: Sequence[bytes] | None, begin: int, t: int
) -> dict[str, list[str]] | None:
    """Sentences from `begin` to t, and sources, but for blank ones; None if t has no source."""
    before = [i for i in range(begin, t) if texts[i].strip()]
    if sources is None:
        return {"context": [texts[i].decode() for i in before]}
    if not sources[t].strip():
        return None
    before = [i for i in before if sources[i].strip()]
    return {
        "context": [texts[i].decode() for i in before],
        "source": [sources[i].decode() for i in (*before, t)],
    }


def _words_of(word_class: str) -> Callable[[Sequence[Sequence[bytes]]], WordTest]:
    """The words in which variants differ, by the earlier references of a document."""
    from rerank.metrics.discourse import closed_words, english_words

    if word_class == REPEATED:
        return lambda earlier: WordTest.repeated(earlier, closed_words())
    test = WordTest(english_words(word_class).__contains__)
    return lambda earlier: test
