"""What BLEU hardly sees of documents in English: pronouns, connectives, tense, names, repetition.

Each metric is F1 against the references, of items that are counted in each sentence and clipped:
matches are the sum over items of the smaller of their two counts. Precision, recall and F1 are of
sums over sentences; with words as items, that is the word F-measure of compare-mt (Neubig et al.
2019, https://aclanthology.org/N19-4007). An item is a class, not a word: `him` for `he` is right,
`her` is not. These are the categories of BlonDe (Jiang et al. 2022, section 4,
https://aclanthology.org/2022.naacl-main.111) as far as text alone has them: tenses are those of
forms that show them, and names are words with a capital inside a sentence. Connectives are classed
by the relations of the Penn Discourse Treebank. `cohesion` is the device that Wong & Kit (2012,
https://aclanthology.org/D12-1097) call repetition. `terms` needs the source, and knows no language:
which run of words translates an item is sought in the document alone, by competitive linking
(Melamed 2000, https://aclanthology.org/J00-2004).
"""

from __future__ import annotations

import html
import re
import unicodedata
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.errors import InputError
from rerank.files.signature import signature
from rerank.metrics import DocumentMetric, MeanScore, Rows, TextMetric

CLOSED = ("pronouns", "auxiliaries", "function")
"""English lists of closed classes: other function words are determiners, prepositions, …."""
PRONOUNS = {
    "masculine": "he him his himself",
    "feminine": "she her hers herself",
    "neuter": "it its itself",
    "plural": "they them their theirs themselves themself",
}
CONNECTIVES = {
    "comparison": "but|however|although|though|even though|yet|nevertheless|nonetheless|whereas"
    "|while|instead|despite|in spite of|on the contrary|by contrast|in contrast|conversely"
    "|on the other hand|rather than|still",
    "contingency": "because|since|so|therefore|thus|hence|consequently|as a result|accordingly"
    "|if|unless|so that|in order to|otherwise|as long as|that is why|for this reason|due to",
    "expansion": "and|or|nor|also|moreover|furthermore|in addition|besides|for example"
    "|for instance|in fact|indeed|in other words|in particular|similarly|likewise|in short"
    "|as well",
    "temporal": "when|then|before|after|until|till|once|meanwhile|afterwards|later|next|finally"
    "|at last|as soon as|whenever|in the meantime|previously|at the same time|earlier",
}
TENSES = {
    "present": "am is are 'm 're has have 've do does ain",
    "past": "was were had did",
    "future": "will shall 'll wo sha",
    "modal": "can could may might must should would ought ca",
}
JOINED = (
    "cannot=can not|gonna=going to|gotta=got to|wanna=want to|hafta=have to|hasta=has to"
    "|oughta=ought to|useta=used to|coulda=could have|shoulda=should have|woulda=would have"
    "|mighta=might have|musta=must have|dunno=do not know|gimme=give me|lemme=let me"
    "|kinda=kind of|sorta=sort of|outta=out of|lotta=lot of|'tis=it is|'twas=it was|'em=them"
    "|'cause=because|cuz=because"
)
"""Words that are written as one, in full; `TENSES` has the parts of others, as of `don't`."""
_NO_PAST = {"hundred", "sacred", "naked", "wicked", "kindred", "embed", "sled", "rugged", "aged"}
_TOKENS = re.compile(r"[^\W_]+(?:[.\-][^\W_]+)*|['’][^\W\d_]+|[^\w\s]")
_ENDS = frozenset('.!?…:"“”„«»')  # a sentence or a quotation may begin behind them
_FEWEST_WORDS, _LEAST = 100, 0.25  # of words in texts that must be English, closed-class words


def tokens_of(line: bytes) -> list[str]:
    """Words, clitics such as 's, and marks of a line, tokenised or not; `JOINED` words in full."""
    tokens = _TOKENS.findall(html.unescape(line.decode()).replace("’", "'"))
    return [word for token in tokens for word in (_JOINED.get(token.lower()) or [token])]


@cache
def english_words(name: str) -> frozenset[str]:
    """The words of a list of `word_lists`, in lower case: one of `CLOSED`, or another."""
    path = Path(__file__).parent / "word_lists" / f"{name}.en"
    return frozenset(path.read_text("utf-8").split())


@cache
def closed_words() -> frozenset[str]:
    """English words of closed classes."""
    return frozenset(chain(*map(english_words, CLOSED)))


def _labels(kinds: dict[str, str]) -> dict[str, str]:
    """The label of each word of lists by label."""
    return {word: label for label, words in kinds.items() for word in words.split()}


_JOINED = {word: full.split() for word, full in (p.split("=") for p in JOINED.split("|"))}
_PRONOUNS = _labels(PRONOUNS)
_TENSES = _labels(TENSES)
_TENSES |= {word + end: tense for word, tense in _TENSES.items() for end in ("n", "nt")}  # isn 't
_SENSES = {item: sense for sense, listed in CONNECTIVES.items() for item in listed.split("|")}
_LONGEST_FIRST = "|".join(sorted(_SENSES, key=len, reverse=True))
_CONNECTIVE = re.compile(rf"(?<![^ ])(?:{_LONGEST_FIRST})(?![^ ])")


class EnglishF1(TextMetric):
    """F1, 0 to 100, of items that the sentences of English texts have.

    A row of statistics is `[matches, items of the hypothesis, items of the reference]`. InputError
    by `scores` if the references are not English, all that were read taken together.
    """

    width = 3

    def __init__(self) -> None:
        self._words = self._known = 0  # of the references

    @abstractmethod
    def items(self, words: Sequence[str]) -> list[str]:
        """The items of a sentence, as they are compared."""

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> NDArray[np.int64]:
        """Statistics (n, 3). O(words) time.

        Of several references that counts with which a hypothesis has the greatest F1 in its
        sentence, the first of equal ones; where both have no item, F1 is 1.
        """
        lines = [[*group] for group in references]
        self.count_words([line for group in lines for line in group])
        rows = []
        for group, texts in zip(hypotheses, lines, strict=True):
            targets = [self._counted(line) for line in texts]
            for ours in map(self._counted, group):
                counts = (
                    ((ours & theirs).total(), ours.total(), theirs.total()) for theirs in targets
                )
                rows.append(max(counts, key=_f1))
        return np.array(rows, np.int64).reshape(-1, self.width)

    def _counted(self, line: bytes) -> Counter[str]:
        return Counter(self.items(tokens_of(line)))

    def count_words(self, texts: Sequence[bytes]) -> None:
        """Count the words of references, and the commonest English ones among them."""
        words = [word.lower() for line in texts for word in tokens_of(line) if word[0].isalpha()]
        self._words += len(words)
        self._known += sum(word in closed_words() for word in words)

    def check_language(self) -> None:
        """InputError if the references so far are of some length and hardly have English words."""
        if self._words >= _FEWEST_WORDS and self._known < _LEAST * self._words:
            share = self._known / self._words
            raise InputError(
                f"metric {self.name}: expected English references, found {share:.0%} "
                "English function words in them, less than in any English text; it knows no other "
                "language, leave it out"
            )

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """F1 (…) of summed statistics (…, 3); 0 where neither side has an item."""
        self.check_language()
        items = summed[..., 1] + summed[..., 2]
        return np.asarray(200 * summed[..., 0] / np.maximum(items, 1))

    def signature(self, n_references: int) -> str:
        """`rerank|metric:pronouns|language:en|nrefs:1|v:0.2.0`."""
        return signature({"metric": self.name, "language": "en", "nrefs": n_references})


def _f1(row: tuple[int, int, int]) -> float:
    matches, *both = row
    return 2 * matches / sum(both) if any(both) else 1.0


class Pronouns(EnglishF1):
    """F1 of the classes of pronouns of the third person: masculine, feminine, neuter, plural."""

    name = "pronouns"

    def items(self, words: Sequence[str]) -> list[str]:
        """The class of each pronoun."""
        return [_PRONOUNS[word] for word in map(str.lower, words) if word in _PRONOUNS]


class Connectives(EnglishF1):
    """F1 of the relations of connectives: comparison, contingency, expansion, temporal."""

    name = "connectives"

    def items(self, words: Sequence[str]) -> list[str]:
        """The relation of each connective; the longest one counts where one is part of another."""
        return [_SENSES[found] for found in _CONNECTIVE.findall(" ".join(words).lower())]


class Tense(EnglishF1):
    """F1 of the tenses of verbs: present, past, future, modal."""

    name = "tense"

    def items(self, words: Sequence[str]) -> list[str]:
        """The tense of each verb form that shows it; of others, as of `'s`, nothing is known."""
        lower = [word.lower() for word in words]
        tenses = []
        for word, following in zip_longest(lower, lower[1:]):
            if word in _TENSES and (word != "won" or following == "'t"):
                tenses.append(_TENSES[word])
                continue
            regular = word.endswith("ed") and not word.endswith("eed") and len(word) > 4
            # irregular forms that are others, too, such as `put`, do not count
            if word in english_words("past") or (regular and word not in _NO_PAST):
                tenses.append("past")
        return tenses


class Names(EnglishF1):
    """F1 of names: words with a capital inside sentences."""

    name = "names"

    def items(self, words: Sequence[str]) -> list[str]:
        """Words with a capital that do not begin a sentence, but for `I`.

        Lines without a lower-case letter have no names.
        """
        if not any(letter.islower() for word in words for letter in word):
            return []
        names, begins = [], True
        for word in words:
            if not any(map(str.isalnum, word)):
                begins = begins or not _ENDS.isdisjoint(word)
                continue
            if word[0].isupper() and not begins and word != "I":
                names.append(word)
            begins = False
        return names


class Cohesion(EnglishF1, DocumentMetric):
    """F1 of repetitions: content words of a sentence that an earlier one of the document has."""

    name = "cohesion"
    between = b"\n"

    def items(self, words: Sequence[str]) -> list[str]:
        """The content words of a sentence."""
        return [
            word
            for word in map(str.lower, words)
            if word not in closed_words() and any(map(str.isalpha, word))
        ]

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> NDArray[np.int64]:
        """Statistics (n, 3) of documents, the sentences of each joined by line ends."""
        rows = []
        for group, lines in zip(hypotheses, references, strict=True):
            texts = [*lines]
            self.count_words(texts)
            targets = [self._repeated(line) for line in texts]
            for document in map(self._repeated, group):
                counts = (self._counts(document, target) for target in targets)
                rows.append(max(counts, key=lambda row: row[0] / max(1, row[1] + row[2])))
        return np.array(rows, np.int64).reshape(-1, self.width)

    def _repeated(self, document: bytes) -> list[Counter[str]]:
        """The repeated content words of each sentence."""
        before, repeated = set[str](), list[Counter[str]]()
        for line in document.split(b"\n"):
            words = self.items(tokens_of(line))
            repeated.append(Counter(word for word in words if word in before))
            before.update(words)
        return repeated

    @staticmethod
    def _counts(ours: Sequence[Counter[str]], others: Sequence[Counter[str]]) -> tuple[int, ...]:
        """Clipped matches in sentences, and the numbers of both sides."""
        matches = sum((a & b).total() for a, b in zip(ours, others, strict=True))
        return matches, sum(map(Counter.total, ours)), sum(map(Counter.total, others))


class Terms(MeanScore, DocumentMetric):
    """How often, in percent, names and terms are rendered as elsewhere in the document.

    Of the repeated items of the source whose translations the first reference repeats, in n
    sentences: the share of these n in which a hypothesis repeats a translation, whichever that is
    (`translations_of`).
    """

    name, width, between, with_source = "terms", 2, b"\n", True

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> NDArray[np.int64]:
        """Statistics (n, 2): sentences rendered alike, and those of the reference."""
        rows = []
        for group, lines in zip(hypotheses, references, strict=True):
            source, reference, *_ = (line.decode().split("\n") for line in lines)
            items = [runs_of(script_tokens(line), SOURCE_RUN) for line in source]
            expected = translations_of(items, reference)
            for document in group:
                rendered = translations_of(items, document.decode().split("\n"))
                alike = sum(min(n, rendered.get(item, 0)) for item, n in expected.items())
                rows.append((alike, sum(expected.values())))
        return np.array(rows, np.int64).reshape(-1, self.width)

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Shares (…) of summed statistics (…, 2), 0 to 100."""
        return 100 * super().scores(summed)


# Items that a document repeats


SOURCE_RUN, TARGET_RUN = 4, 3  # tokens of what is found to be repeated, and to translate it
_PRECISION = 0.8  # of a translation: where it stands, its source does
_DECIMALS = 9  # of coefficients that are told apart
_UNSPACED = (  # scripts of words without spaces, and Korean, whose particles are part of words
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)


def script_tokens(text: str, *, case: bool = False) -> list[str]:
    """Words, characters of scripts without spaces, and marks; case: whether capitals are kept."""
    text = unicodedata.normalize("NFKC", text)
    if not case:
        text = unicodedata.normalize("NFKC", text.casefold())
    return _token().findall(text)


@cache
def _token() -> re.Pattern[str]:
    """A token: a character of some scripts, a run of letters, marks and digits, any other one."""
    marks = [chr(i) for i in range(0x300, 0x11000) if unicodedata.category(chr(i))[0] == "M"]
    word = rf"(?:(?![{_UNSPACED}])[\w{''.join(marks)}])+"
    return re.compile(rf"[{_UNSPACED}]|{word}|[^\s]")


def runs_of(tokens: Sequence[str], longest: int) -> dict[str, int]:
    """Runs of tokens with letters or digits, joined by spaces, and how many tokens each has."""
    return {
        " ".join(run): n
        for n in range(1, longest + 1)
        for run in zip(*(tokens[i:] for i in range(n)), strict=False)
        if all(word[0].isalnum() for word in run) and (n > 1 or len(run[0]) > 1)
    }


def links_of(
    items: Sequence[Mapping[str, int]], shares: Sequence[Mapping[str, float]]
) -> dict[str, tuple[float, str]]:
    """The item that each target run translates, behind their Dice coefficient.

    items: of each sentence, with their numbers of tokens; shares: of its target runs.
    """
    from scipy.sparse import csr_array

    most = max(2, len(items) // 2)
    repeated = ({x for x, n in Counter(chain(*own)).items() if n > 1} for own in (items, shares))
    ours, theirs = map(sorted, repeated)
    places = [{x: i for i, x in enumerate(own)} for own in (ours, theirs)]
    tables = []
    for rows, columns in zip((items, shares), places, strict=True):
        cells = [
            (t, columns[x], v) for t, row in enumerate(rows) for x, v in row.items() if x in columns
        ]
        t, x, v = zip(*cells, strict=True) if cells else ((), (), ())
        tables.append(csr_array((v, (t, x)), (len(rows), len(columns))))
    a, b = tables[0].sign().astype(np.float64), tables[1].astype(np.float64)
    n, p = a.sum(axis=0), b.sum(axis=0)
    joint, together = (a.T @ b).tocsr(), (a.T @ b.sign()).tocsr()
    joint.sort_indices()
    together.sort_indices()
    cells = joint.tocoo()
    i, g = cells.row, cells.col
    dice = 2.0 * cells.data / (n[i] + p[g])
    kept = (together.data > 1) & (cells.data >= _PRECISION * p[g]) & (n[i] <= most)
    links: dict[str, tuple[float, str]] = {}
    sizes = dict(chain(*(own.items() for own in items)))
    lengths = np.array([sizes[x] for x in ours])
    order = np.lexsort((i, -lengths[i], -dice.round(_DECIMALS))) if len(i) else i
    for cell in order[kept[order]].tolist():
        links.setdefault(theirs[g[cell]], (float(dice[cell]), ours[i[cell]]))
    return links


def translations_of(items: Sequence[Mapping[str, int]], texts: Sequence[str]) -> dict[str, int]:
    """Of repeated items of a source: in how many sentences a text has one translation, the most.

    items: of each sentence, as of `runs_of`; items without a repeated translation are left out.
    """
    runs = [runs_of(script_tokens(text), TARGET_RUN) for text in texts]
    links = links_of(items, [dict.fromkeys(own, 1.0) for own in runs])
    counts = Counter(
        (links[run][1], run)
        for here, own in zip(items, runs, strict=True)
        for run in own.keys() & links.keys()
        if links[run][1] in here
    )
    found: dict[str, int] = {}
    for (item, _), n in counts.items():
        found[item] = max(n, found.get(item, 0))
    return found
