"""Lists of other tools: cdec, Joshua, Travatar, Nematus, fairseq, Sockeye, mlm-scoring.

    0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 ||| -12.6       cdec
    0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6      Joshua
    0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2                   Travatar
    0 ||| the text ||| 1.5 1.75                                              Nematus

The first three leave out features that are 0, so that a file is read twice, first for the names of
all features (`prepared`). Where these are very many, those that not every hypothesis has are sparse
features. Joshua's names have underscores, with which Moses marks sparse features: they are dense
here, and read as `tmpt0` and `lm0`; there may be a blank after `=`.

Nematus writes a cost of each model, a negative log-probability in nats, divided by the length as
Nematus was told to: it is read with its sign changed, as F0, F1, …, without a total. A Moses list
without labels looks the same, so that this format must be named.

fairseq-generate and fairseq-interactive write several lines of a hypothesis:

    S-3     the source
    H-3     -0.3127      tokens of a hypothesis       score: base 2, divided by length^lenpen
    D-3     -0.3127      the hypothesis, detokenised
    P-3     -0.1 -0.4 …  log2 probability of each token and of </s>

Features: `logprob`, in nats, ln 2 times the sum of `P-`; `score`, that of `H-` in nats, normalised
by length as fairseq was told to. The text is that of `D-` if there is one.

Sockeye (sockeye/output_handler.py of https://github.com/awslabs/sockeye) writes an object a line:

    {"sentence_id": 1, "translation": "the text", "score": 1.5,
     "translations": ["the text", "a text"], "scores": [[1.5], [1.75]]}

A score is a cost, too: feature `logprob`. Further numbers of `scores` are those of target factors,
features `factor1`, `factor2`, …; of a single translation they are at `factor1_score`, …. Objects
are sentences in the order of the file; `sentence_id`, a number from 1 or a text, is not read. An
empty translation with an infinite score, as of a blank source line, is no hypothesis.

mlm-scoring (src/mlm/loaders.py of https://github.com/awslabs/mlm-scoring) has an object of
utterances, which are sentences in the order of the file:

    {"utt-1": {"ref": "the text", "hyp_1": {"score": -1.5, "text": "a text"}, "hyp_2": …}}

Sources: decoder/decoder.cc (`DumpKBest`) of https://github.com/redpony/cdec; DerivationVisitor,
KBestExtractor.java and decoder.properties (`output-format %i ||| %s ||| %f ||| %c`) of
https://github.com/apache/incubator-retired-joshua; src/bin/travatar-runner.cc of
https://github.com/neubig/travatar; nematus/translate.py (`--n-best`) of
https://github.com/EdinburghNLP/nematus; fairseq_cli/generate.py and interactive.py of
https://github.com/facebookresearch/fairseq.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any, Self

from rerank.corpus.columns import KBestRows
from rerank.errors import InputError, shown
from rerank.files.encoding import NUMBER
from rerank.formats import moses_grammar as grammar
from rerank.formats.json_lists import Sentence, side_of
from rerank.formats.row_builder import LineFormat, ReadOnlyFormat, RowBuilder, by_sentence
from rerank.formats.tokens import Place, chunks, first_object, read_object, read_objects, text_of
from rerank.notices import Notices

_MANY = 1000  # names of features, beyond which only those of every hypothesis are dense
_MOST = 1_000_000  # names of features
_NAME = re.compile(rb"([^\s=]+)=")
_NO_SCORE = "expected H-ID, score and text with TABs, found {}; give the output of fairseq whole"
_NOT_BEHIND = (
    "expected H-{} before its other lines, found {}; give the output in its own order or, if it is "
    "sorted, the H- lines alone"
)
_TAG = re.compile(rb"([A-Z])(?:-([0-9]+)(?:_[0-9]+)?)?\t([^\r]*)")  # a progress bar is behind \r
_AFTER_BAR = re.compile(rb"([A-Z])-([0-9]+)(?:_[0-9]+)?\t(.*)", re.DOTALL)  # or a log's head
_KNOWN = frozenset(b"STHDPAIECWO")
_LN2 = math.log(2)
_OF_JOSHUA = re.compile(rb"(?:^|\s)(?:tm_[A-Za-z]+_[0-9]+|lm_[0-9]+)=")
_SOCKEYE_SOURCE = ("source", "src", "source_text", "text")
_HYPOTHESIS = re.compile("hyp_([0-9]{1,9})")
_FIRST_HYPOTHESIS = re.compile(rb'"hyp_[0-9]+"\s*:\s*\{')
_MOST_JSON = 1 << 30  # bytes of a file of mlm-scoring


class NamedFeatures(LineFormat):
    """A format `id ||| text ||| …` with features `name=value`, and further columns.

    names: of the dense features of the whole file; sparse: whether it has others.
    """

    name: str
    column = 2  # of the features
    total = 3

    def __init__(self, names: tuple[str, ...] = (), sparse: bool = False) -> None:
        self.names, self.sparse, self._known = names, sparse, frozenset(names)

    def feature_columns(self, head: Sequence[bytes]) -> list[bytes]:
        """Those of the lines that are not blank; none unless each has a total and these columns."""
        lines = [line.split(grammar.SEPARATOR) for line in head if line.strip()]
        if all(len(f) > 3 and NUMBER.fullmatch(f[self.total].strip()) for f in lines):
            return [fields[self.column] for fields in lines]
        return []

    def prepared(self, lines: Iterable[bytes], *, source: str) -> Self:
        """The format with the names of all features, in order of appearance."""
        counts, n, place = Counter[bytes](), 0, Place(source, Notices())
        for line in place.numbered(lines):
            fields = line.split(grammar.SEPARATOR)
            if len(fields) > self.column:
                counts.update(dict.fromkeys(_NAME.findall(fields[self.column]), 1))
                n += 1
            if len(counts) > _MOST:
                limit = f"at most {_MOST:,} names of features"
                raise place.fault(f"expected {limit}, found more; leave out the rare ones")
        many = len(counts) > _MANY
        dense = [name for name, count in counts.items() if not many or count == n]
        dense = [] if len(dense) > _MANY else dense
        return type(self)(tuple(name.decode() for name in dense), many)

    def add(self, builder: RowBuilder, line: bytes) -> None:
        """Add the hypothesis of a line; a feature that it leaves out is 0."""
        fields = line.split(grammar.SEPARATOR)
        if len(fields) <= self.column:
            raise InputError(
                f"expected at least {self.column + 1} columns of {self.name}, found {shown(line)}"
            )
        features: dict[str, float] = {}
        for value in grammar.feature_values(fields[self.column]):
            if value.name in features:
                raise InputError(f"expected one value of {value.name}, found two")
            features[value.name] = builder.number(value.number, value.name)
        has_total = self.total < len(fields)
        total = builder.number(fields[self.total].strip(), "the total") if has_total else None
        sentence = grammar.sentence_id(fields[0].strip())
        names = self.names
        others = {name: value for name, value in features.items() if name not in self._known}
        if others and not self.sparse:
            other = next(iter(others))
            cure = f"; {grammar.FEATURES}" if "=" in other else ""
            raise InputError(f"expected the features {', '.join(names)}, found {other!r}{cure}")
        if self.sparse and builder.names is None:
            weights = "rerank weights W --to json --kbest LIST names the decoder's weights W so"
            renamed = (
                f" ({name} as {name}_; {weights})" for name in others if not grammar.is_sparse(name)
            )
            builder.note("many-features", renamed=next(renamed, ""))
        elif not self.sparse and len(features) < len(names):
            builder.note("absent-features")
        if any(map(grammar.is_numeric, fields[4:])):
            builder.note("numbers-not-read")
        values = [features.get(name, 0.0) for name in names]
        sparse = {name if grammar.is_sparse(name) else f"{name}_": others[name] for name in others}
        builder.add(sentence, fields[1], names, values, total=total, sparse=sparse)


class Cdec(NamedFeatures):
    """The format of cdec's k-best lists."""

    name = "cdec"
    description = "K-best lists of cdec; features that a line leaves out are 0."
    suffixes = (".kbest",)
    example = b"0 ||| the text ||| LanguageModel=-38.1 PhraseModel_0=1.5 Glue=2 ||| -12.6"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have features `name=value`, of changing names or with `_`.

        Marian's lists, which may have no blank after `=`, have the same names on every line.
        """
        names = list(map(_names, self.feature_columns(head)))
        varying = len(set(map(frozenset, names))) > 1
        return all(names) and (varying or any(b"_" in name for line in names for name in line))


class Joshua(NamedFeatures):
    """The format of Joshua's k-best lists."""

    name = "joshua"
    description = "K-best lists of Joshua; features that a line leaves out are 0."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| tm_pt_0=-1.5 lm_0=-38.1 WordPenalty=-2 ||| -12.6"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have one of the names of Joshua's models."""
        columns = self.feature_columns(head)
        return bool(columns) and all(map(_OF_JOSHUA.search, columns))


class Travatar(NamedFeatures):
    """The format of Travatar's k-best lists."""

    name = "travatar"
    description = "K-best lists of Travatar, with the total before the features."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| -12.6 ||| egfp=-4.2 lm=-38.1 word=2"
    column = 3
    total = 2

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines have a number before features `name=value`, or before none."""
        columns = self.feature_columns(head)
        return bool(columns) and all(_names(column) or not column.strip() for column in columns)


class Nematus(LineFormat):
    """The format of Nematus' n-best lists."""

    name = "nematus"
    description = "N-best lists of Nematus: costs without labels, read with their sign changed."
    suffixes = (".nbest",)
    example = b"0 ||| the text ||| 1.5 1.75"

    def add(self, builder: RowBuilder, line: bytes) -> None:
        """Add the hypothesis of a line; its text may hold `|||`, costs may not."""
        fields = line.split(grammar.SEPARATOR)
        if len(fields) < 3:
            raise InputError(f"expected 'id ||| text ||| cost cost', found {shown(line)}")
        sentence, *texts, costs = fields
        values = [0.0 - builder.number(token, "a cost") for token in costs.split()]
        if not values:
            raise InputError(f"expected costs in the last column, found none in {shown(line)}")
        text = grammar.SEPARATOR.join(texts).strip()
        builder.add_unlabelled(grammar.sentence_id(sentence.strip()), text, values)


def _names(field: bytes) -> list[bytes]:
    """Names of a column of `name=value`; none if it has anything else."""
    pairs = [token.rpartition(b"=") for token in field.split()]
    if all(name and NUMBER.fullmatch(value) for name, _, value in pairs):
        return [name for name, _, _ in pairs]
    return []


@dataclass(slots=True)
class _Hypothesis:
    """A hypothesis of which more lines may come."""

    sentence: int
    line: int
    text: bytes
    score: float
    log_prob: float | None = None
    tags: bytes = b""  # of its further lines

    def take(self, tag: re.Match[bytes], builder: RowBuilder) -> None:
        """Take the text or the tokens of its `D-` or `P-` line; InputError for a second one."""
        kind = tag[1]
        if kind in self.tags:
            raise InputError(
                f"expected one {kind.decode()}- line after H-{self.sentence}, found "
                f"{shown(tag[0])}, too; is an H- line missing before it?"
            )
        self.tags += kind
        first, _, text = tag[3].partition(b"\t")
        if kind == b"D":
            self.text = text
        else:
            values = [builder.number(token, "a token") for token in first.split()]
            self.log_prob = builder.finite(math.fsum(values) * _LN2, "logprob")

    def add(self, builder: RowBuilder) -> None:
        """Add the hypothesis, all of whose lines are read; all or none have lines of tokens."""
        current, builder.line = builder.line, self.line
        names = ("score",) if self.log_prob is None else ("logprob", "score")
        if builder.names in (None, names):
            if self.log_prob is None:
                builder.note("no-token-scores")
            values = [x for x in (self.log_prob, self.score) if x is not None]
            builder.add(self.sentence, self.text, names, values, total=self.score)
        else:
            some, there = ("a", "none") if self.log_prob is None else ("no", "one")
            what = f"expected {some} P- line as for the first hypothesis, found {there}"
            builder.refuse(builder.fault(f"{what}; is the output cut off?"))
        builder.line = current


class Fairseq(ReadOnlyFormat):
    """The format of fairseq's output."""

    name = "fairseq"
    description = (
        "Output of fairseq-generate and fairseq-interactive; scores of base 2 are read in nats."
    )
    suffixes = (".out", ".gen")
    example = b"H-0\t-0.25\tthe text\nP-0\t-0.5 -0.25 -0.125"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a line of a hypothesis, or two of a source, are among the first ones."""
        tags = [tag[1] for tag in map(_tagged, head) if tag]
        return b"H" in tags or sum(tag in (b"S", b"W", b"O") for tag in tags) >= 2

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses by sentence id, each sentence's in the order of the file."""
        chunks = super().read(lines, notices, source=source, clip=clip)
        return by_sentence(chunks, notices, source)

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses in the order of the file."""
        last: _Hypothesis | None = None
        broken = False  # whether the current hypothesis has an error
        sources = dict[bytes, bytes]()  # by id
        counted = -1  # sentence of lines without ids, of old versions of fairseq-interactive
        for line in builder.numbered(lines):
            tag = _tagged(line)
            if tag is None or tag[1][0] not in _KNOWN:
                if line.strip():
                    builder.note("no-output-of-fairseq")
                continue
            kind, number, content = tag.groups()
            if kind == b"S" and number:
                if sources.get(number) == content:
                    builder.note("source-again")
                elif sources.setdefault(number, content) != content:
                    what = f"expected one source of S-{number.decode()}, found another one than "
                    cure = "give each run of fairseq a file of its own"
                    builder.refuse(builder.fault(f"{what}above; {cure}"))
            if kind in b"SO" and not number:
                counted += 1
            if kind not in b"HDP":
                continue
            if kind == b"H" and last is not None:
                last.add(builder)
            try:
                sentence = grammar.sentence_id(number) if number else max(counted, 0)
                if kind == b"H":
                    score_text, mark, text = content.partition(b"\t")
                    if not mark:
                        raise InputError(_NO_SCORE.format(shown(tag[0])))
                    score = builder.number(score_text, "the score") * _LN2
                    last, broken = _Hypothesis(sentence, builder.line, text, score), False
                elif not broken:
                    if last is None or last.sentence != sentence:
                        raise InputError(_NOT_BEHIND.format(sentence, shown(tag[0])))
                    last.take(tag, builder)
            except InputError as fault:
                builder.refuse(fault)
                last, broken = None, True
            yield
        if last is not None:
            last.add(builder)

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """(sentence, its document, its source) of each sentence; documents are not known."""
        place = Place(source, notices)
        for tag in map(_tagged, place.numbered(lines)):
            if tag and tag[1] in (b"S", b"H") and tag[2]:
                try:
                    sentence = grammar.sentence_id(tag[2])
                except InputError as fault:
                    raise place.fault(str(fault)) from None
                yield sentence, None, tag[3] if tag[1] == b"S" else None

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of a source, which may have no hypotheses; -1 if there is none."""
        last = counted = -1
        for tag in map(_tagged, lines):
            if tag is None or tag[1] not in (b"S", b"O"):
                continue
            counted += tag[2] is None
            with suppress(InputError):
                last = max(last, counted if tag[2] is None else grammar.sentence_id(tag[2]))
        return last


def _tagged(line: bytes) -> re.Match[bytes] | None:
    """Tag, id and content of a line, without a progress bar or the head of a log's line."""
    return _TAG.match(line) or _AFTER_BAR.search(line)


# JSON


class Sockeye(ReadOnlyFormat):
    """The format of Sockeye's JSON output."""

    name = "sockeye"
    description = "JSON output of Sockeye; its scores are costs, read with their sign changed."
    suffixes = (".json", ".jsonl")
    example = (
        b'{"score": 1.5, "scores": [[1.5], [1.75]], "sentence_id": 1, "translation": "the text", '
        b'"translations": ["the text", "a text"]}'
    )

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first object has a translation and, of an n-best list, its scores."""
        first = first_object(head)
        return "translation" in first and ("sentence_id" in first or "scores" in first)

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of one object, a sentence, after the other."""
        first: int | None = None
        for n, sentence in enumerate(read_objects(lines, builder)):
            number = str(sentence.get("sentence_id"))
            if number.isdecimal():
                first = int(number[:9]) if first is None else first
                if int(number[:9]) != first + n:
                    builder.note("order-of-sockeye")
            try:
                self._add(builder, n, sentence)
            except InputError as fault:
                builder.refuse(fault)
            yield

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[Sentence]:
        """(sentence, its document, its source) of each sentence, where input keys have them."""
        place = Place(source, notices)
        for n, sentence in enumerate(read_objects(lines, place)):
            yield n, *side_of(sentence, _SOCKEYE_SOURCE, place)

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last object, which may have no translations."""
        return sum(1 for line in lines if line.strip()) - 1

    def _add(self, builder: RowBuilder, n: int, sentence: dict[str, Any]) -> None:
        """Add the hypotheses of an object."""
        texts = sentence.get("translations", [sentence.get("translation")])
        score = sentence.get("score")
        factors = takewhile(sentence.__contains__, (f"factor{i}_score" for i in count(1)))
        single = [*(score if isinstance(score, list) else [score]), *map(sentence.get, factors)]
        scores = sentence.get("scores", [single])
        if not (isinstance(texts, list) and isinstance(scores, list)):
            raise builder.fault("expected lists at 'translations' and 'scores'")
        if len(texts) != len(scores):
            raise builder.fault(
                f"expected a score for each of {len(texts)} translations, found {len(scores)}"
            )
        for text, score in zip(texts, scores, strict=True):
            costs = score if isinstance(score, list) else [score]
            if not costs:
                raise builder.fault("expected a score of each translation, found an empty list")
            if not all(isinstance(cost, float | int) and cost is not True for cost in costs):
                raise builder.fault(f"expected numbers for the score, found {score!r:.60}")
            infinite = any(abs(cost) == math.inf for cost in costs)
            if infinite and text == "":
                continue  # what Sockeye writes for a source that it does not translate
            # the score of such a filler is -inf, though scores are costs
            values = [-math.inf if abs(cost) == math.inf else 0 - cost for cost in costs]
            names = ("logprob", *(f"factor{i}" for i in range(1, len(costs))))
            written = text_of(text, "a translation", builder)
            checked = list(map(builder.finite, values, names))
            total = builder.finite(values[0], "the total")
            builder.add(n, written, names, checked, total=total)


class MlmScoring(ReadOnlyFormat):
    """The format of mlm-scoring's n-best lists."""

    name = "mlm-scoring"
    description = "N-best lists of mlm-scoring: one JSON object with all utterances."
    suffixes = (".json",)
    example = (
        b'{"utt-1": {"ref": "the text", "hyp_1": {"score": -1.5, "text": "the text"}, '
        b'"hyp_2": {"score": -1.75, "text": "a text"}}}'
    )

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first lines begin an object and name a hypothesis."""
        content = b"\n".join(head).lstrip()
        return content.startswith(b"{") and _FIRST_HYPOTHESIS.search(content) is not None

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of one utterance after the other."""
        utterances = read_object(_whole(lines, builder.source), builder)
        for sentence, (name, utterance) in enumerate(utterances.items()):
            if not isinstance(utterance, dict):
                raise builder.fault(f"expected an object at {name!r:.60}, found {utterance!r:.60}")
            numbered = [(int(n[1]), key) for key in utterance if (n := _HYPOTHESIS.fullmatch(key))]
            for _, key in sorted(numbered):
                candidate = utterance[key]
                if not isinstance(candidate, dict) or not {"score", "text"} <= candidate.keys():
                    raise builder.fault(
                        f"expected a score and a text at {name!r:.60} {key!r}, found "
                        f"{candidate!r:.60}"
                    )
                text = text_of(candidate["text"], "a hypothesis", builder)
                score = builder.finite(candidate["score"], "score")
                total = builder.finite(candidate["score"], "the total")
                builder.add(sentence, text, ("score",), [score], total=total)
            yield

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last utterance, which may have no hypotheses."""
        with suppress(InputError):
            return len(read_object(_whole(lines, ""))) - 1
        return -1


def _whole(lines: Iterable[bytes], source: str) -> bytes:
    """All lines; InputError for more than 1 GiB."""
    read = next(chunks(lines, _MOST_JSON), [])
    content = b"\n".join(read)
    if len(content) >= _MOST_JSON:
        raise InputError(
            "expected at most 1 GiB of JSON in one object, found more; split the file",
            source=source,
            line=len(read),
        )
    return content
