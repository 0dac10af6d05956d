"""Estimators outside the process: programs that score candidates, each answer cached by content.

A program (`rerank.files.program`) is asked only for what a search visits. The request about a
candidate has `source` and `candidate`, with a window of n sentences also `sources_before`,
`candidates_before` and `sources_after`, up to n − 1 each; a metric adds `references`, a utility
`reference`. The feature of a document is the sum over its windows, as of SLIDE (Raunak et al.
2023, https://aclanthology.org/2023.wmt-1.101) with a stride of 1; the first windows are shorter.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol

import click
import numpy as np

from decoders.problem import Answer, Array, DocumentProblem, Indices
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import RerankError, UsageError
from rerank.files.cache import Cache
from rerank.files.program import Program, ProgramError
from rerank.files.signature import LENGTH, signature
from rerank.metrics import Counted, MeanScore, Metric, Rows
from rerank.metrics.consensus import ExpectedUtility
from rerank.registry import PROGRAM
from rerank.scorers.cached_scores import (
    KEY_BYTES,
    Choices,
    GrowingShard,
    WindowStates,
    digest,
    split_keys,
)
from rerank.scorers.features import FeatureSource, ScoredDocument
from rerank.values import Key, Real, Whole, settings, split

KEYS = {
    "window": Key("window", Whole(1), "sentences of a window"),
    "source": Key("source", click.BOOL, "whether requests have the source"),
    "timeout": Key("timeout", Real(0, 1e6, above=True), "most seconds without an answer"),
    "batch": Key("batch", Whole(1), "most requests at once"),
}
WITHOUT_WINDOW = {key: KEYS[key] for key in KEYS if key != "window"}  # of metrics and utilities
_REMEMBERED = 1 << 20  # answers, about 150 MB
_KEY = re.compile(r"""(?<!\\),([A-Za-z_-]+)=[^,\s"']*(?=,|$)""")  # what looks like one of `KEYS`


def _check_keys(argument: str, keys: Mapping[str, Key]) -> None:
    """BadParameter for a misspelt key behind a program, or one of `KEYS` that is not for it.

    Words unlike keys belong to the program, as `a=1,b=2` among its arguments.
    """
    for key in _KEY.findall(argument):
        if key not in keys and difflib.get_close_matches(key.lower(), KEYS):
            raise click.BadParameter(
                f"expected one of {', '.join(keys)} behind the program, found {key}=; take one of "
                f"these, or write \\,{key}= if it belongs to the program"
            )


class Question(NamedTuple):
    """What is asked of the candidates `chosen` among the texts of a sentence.

    parts: all else that a request has, by name; place: of the sentence, for messages.
    """

    parts: Mapping[str, Any]
    texts: Sequence[str]
    chosen: Sequence[int]
    place: str = ""

    def requests(self) -> list[bytes]:
        """The request about each candidate, as a program reads it."""
        texts = (self.texts[k] for k in self.chosen)
        return [json.dumps({**self.parts, "candidate": text}).encode() for text in texts]


class Answers(Protocol):
    """What questions about a document are asked; errors and costs as of `DocumentAnswers.of`."""

    def of(self, questions: Iterable[Question], place: str) -> Array:
        """Answers (n,) about the candidates of questions."""

    def save(self) -> None:
        """Put answers into the cache."""


class Estimator(ABC):
    """Something outside that gives numbers to candidates.

    option: how the user named it, for messages; title: name and version that it states, `kiwi 2.2`,
    and facts: each, for weights files; digest: of these; side_information: what requests have of
    it, the source, unless options say not.
    """

    option: str
    title: str
    facts: dict[str, object]
    digest: str
    side_information: Sequence[str]

    @property
    def signature(self) -> str:
        """`kiwi 2.2=ab12cd34`, for those of metrics."""
        return f"{self.title}={self.digest[:LENGTH]}"

    @abstractmethod
    def keep_in(self, cache: Cache | None, of_models: Mapping[str, Any] | None = None) -> None:
        """Keep answers in a cache; of_models: what a model runs on, as of `open_models`."""

    @abstractmethod
    def answers(self, document: str) -> Answers:
        """The answers about a document, known by a digest of its texts."""

    @abstractmethod
    def report(self) -> str:
        """What was asked, in a line."""


class ProgramEstimator(Estimator):
    """A program, and what it has answered.

    settings: values of `KEYS` behind it; cached: number of answers of earlier runs.
    """

    def __init__(self, option: str, argument: str, keys: Mapping[str, Key]) -> None:
        self.option = option
        try:
            _check_keys(argument, keys)
            command, given = split(argument, keys)
            self.settings = settings(given, keys, None, None)
            seconds, batch = self.settings.get("timeout", 600.0), self.settings.get("batch", 256)
            self.program = Program(command, seconds=seconds, batch=batch)
        except (click.BadParameter, UsageError) as fault:
            raise UsageError(f"{option}: {fault}") from None
        except ProgramError as fault:
            raise RerankError(f"{option}: {fault}") from None
        name, version = self.program.name, self.program.version
        self.facts: dict[str, object] = {"program": name, "version": version}
        self.title = " ".join(filter(None, [name, version]))
        self.digest = hashlib.sha256(repr(("command 1", name, version)).encode()).hexdigest()
        self.side_information = ("source",) if self.settings.get("source", True) else ()
        self.cache: Cache | None = None
        self.cached = 0
        self.memory: dict[bytes, float] = {}

    def keep_in(self, cache: Cache | None, of_models: Mapping[str, Any] | None = None) -> None:
        """Have answers cached, if the program states a version."""
        self.cache = cache if self.program.version else None

    def answers(self, document: str) -> DocumentAnswers:
        """The answers about a document, known by a digest of its texts."""
        return DocumentAnswers(self, document)

    def report(self) -> str:
        """`1,200 answers of kiwi 2.2 in 31.5 s, 300 from the cache`."""
        line = f"{self.program.answered:,} answers of {self.title} in {self.program.spent:.1f} s"
        return f"{line}, {self.cached:,} from the cache" if self.cached else line


class DocumentAnswers(GrowingShard):
    """Answers about one document: of the cache, of this run, or asked for now.

    answers: by the digest of a request; those about a document are a shard of the cache.
    """

    def __init__(self, estimator: ProgramEstimator, document: str) -> None:
        super().__init__()
        self._estimator, self._shard = estimator, (estimator.digest[:32], document)
        self.answers = self._stored()
        self._cached = self.answers.keys() - estimator.memory.keys()  # not used so far

    def _stored(self) -> dict[bytes, float]:
        """The answers in the cache, which may be anybody's."""
        cache = self._estimator.cache
        if cache is None or (arrays := cache.get(*self._shard)) is None:
            return {}
        keys, numbers = arrays.get("key", np.zeros(0)), arrays.get("answer", np.zeros(0))
        sound = keys.dtype == np.uint8 and numbers.dtype == np.float64 and numbers.ndim == 1
        if not (sound and keys.shape == (KEY_BYTES * len(numbers),) and np.isfinite(numbers).all()):
            cache.refuse(*self._shard)
            return {}
        return dict(zip(split_keys(keys), numbers.tolist(), strict=True))

    def _write(self) -> None:
        if self._estimator.cache is not None:
            self.answers |= self._stored()  # other documents may begin alike
            keys = np.frombuffer(b"".join(self.answers), np.uint8)
            arrays = {"key": keys, "answer": np.array([*self.answers.values()])}
            self._estimator.cache.put(*self._shard, arrays)

    def of(self, questions: Iterable[Question], place: str) -> Array:
        """Answers (n,) about the candidates of questions; equal requests are sent once.

        RerankError, naming the place, if the program does not answer; what it has answered is
        saved.
        """
        estimator, known = self._estimator, self.answers
        requests = [request for question in questions for request in question.requests()]
        keys, unknown = [digest(text) for text in requests], dict[bytes, bytes]()
        for key, text in zip(keys, requests, strict=True):
            if key in known:
                estimator.cached += key in self._cached
                self._cached.discard(key)
            elif key in estimator.memory:
                known[key], self._grown = estimator.memory[key], True
            else:
                unknown[key] = text
        if unknown:
            self._ask(unknown, place)
        return np.array([known[key] for key in keys])

    def _ask(self, requests: dict[bytes, bytes], place: str) -> None:
        """Enter the answers of the program to requests by key."""
        estimator, names = self._estimator, iter(requests)
        program, memory = estimator.program, estimator.memory
        try:
            for numbers in program.ask([*requests.values()]):
                if len(memory) > _REMEMBERED:
                    memory.clear()
                answers = dict(zip(islice(names, len(numbers)), numbers, strict=True))
                self.answers.update(answers)
                memory.update(answers)
                self._grown = self._grown or bool(answers)
                self.keep()
        except BaseException as fault:  # a signal, too
            self.save()
            if not isinstance(fault, ProgramError):
                raise
            kept = f"; its {program.answered:,} answers so far are in the cache"
            kept *= bool(estimator.cache and estimator.cache.writable and program.answered)
            message = f"{estimator.option}, {place}: {program.name}: {fault}{kept}"
            raise RerankError(message) from None


def shard_of(kbest: KBest) -> str:
    """The name of the answers about documents that begin with the same candidate, in the cache."""
    return hashlib.sha256(kbest.text(0) if kbest.n else b"").hexdigest()


class Shown(NamedTuple):
    """What else questions show: whether the source, and how many sentences before and after it.

    candidates: how many choices before, on which scores depend.
    """

    source: bool
    candidates: int
    before: int
    after: int


class ProgramProblem(WindowStates, DocumentProblem):
    """A document under an estimator of windows; a state is the choices before in the window.

    label: of the document in messages.
    """

    lengths: tuple[int, ...] = ()
    order: int = 0

    def __init__(self, kbest: KBest, answers: Answers, shown: Shown, *, label: str) -> None:
        self._answers, self._label, self._shown = answers, label, shown
        self.order = self.sentences = shown.candidates
        self._present = np.flatnonzero(kbest.counts).tolist()
        self._texts = [[kbest.text(row).decode() for row in kbest.rows(t)] for t in self._present]
        sources = kbest.side["source"] if shown.source else ()
        self._sources = [sources[t].decode() for t in self._present] if shown.source else None
        self.lengths = tuple(map(len, self._texts))

    def question(self, t: int, history: Choices, chosen: Sequence[int]) -> Question:
        """What is asked of some candidates of sentence t after a history."""
        shown, parts = self._shown, dict[str, object]()
        begin = max(0, t - shown.candidates)
        if self._sources is not None:
            parts["source"] = self._sources[t]
        if shown.candidates:
            before = zip(range(begin, t), history[len(history) - (t - begin) :], strict=True)
            parts["candidates_before"] = [self._texts[s][k] for s, k in before]
        if self._sources is not None and shown.before:
            parts["sources_before"] = self._sources[max(0, t - shown.before) : t]
        if self._sources is not None and shown.after:
            parts["sources_after"] = self._sources[t + 1 : t + 1 + shown.after]
        place = f"{self._label}, sentence {self._present[t]} (counted from 0)"
        return Question(parts, self._texts[t], chosen, place)

    def scores(self, t: int, wanted: Sequence[tuple[Choices, Sequence[int]]]) -> Array:
        """Scores (n,) of candidates of sentence t, each after a history."""
        questions = [self.question(t, history, chosen) for history, chosen in wanted]
        return self._answers.of(questions, questions[0].place)

    def extend(self, states: list[Choices], t: int) -> Answer:
        """Scores (N, K_t) after each history."""
        k = self.lengths[t]
        wanted = [(state, range(k)) for state in states]
        return self.scores(t, wanted).reshape(len(states), k), states

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path, of its own candidates alone."""
        totals = np.zeros(len(paths))
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            rows = paths[:, max(0, s - self.order) : s + 1].tolist()
            totals += self.scores(s, [(tuple(history), [k]) for *history, k in rows])
        return totals

    def unary(self, t: int) -> Array:
        """Scores (K_t,) of sentence t at order 0."""
        return self.pairwise(t)[0] if self.order == 0 else super().unary(t)  # type: ignore[return-value]

    def pairwise(self, t: int) -> Array:
        """Scores (K_{t-1}, K_t) of sentence t at order 0 and 1."""
        pairs = self.order == 1 and t > 0
        before: list[Choices] = [(k,) for k in range(self.lengths[t - 1])] if pairs else [()]
        scores, _ = self.extend(before, t)
        k = self.lengths[t - 1] if t else 1
        return np.broadcast_to(scores, (k, self.lengths[t]))


class ProgramScorer(FeatureSource):
    """The feature of `--scorer NAME=command:PROGRAM[,window=N]`, of order N − 1."""

    slow_unit = "requests"

    def __init__(
        self, name: str, argument: str, cache: Cache | None, of_models: Mapping[str, Any]
    ) -> None:
        self._estimator = ProgramEstimator(f"--scorer {name}={PROGRAM}", argument, KEYS)
        self._estimator.keep_in(cache)
        self.window: int = self._estimator.settings.get("window", 1)
        super().__init__(name, order=self.window - 1)
        self.side_information = self._estimator.side_information
        identity = repr((self._estimator.digest, self.window, self.side_information))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()
        self.chosen = {**self._estimator.facts, "window": self.window}
        self.cacheable = self._estimator.cache is not None

    @property
    def seconds(self) -> float:
        """Time that the program has taken so far."""
        return self._estimator.program.spent

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over lists of k candidates."""
        return float(k ** (self.window - 1))

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""
        scored = []
        how = {"label": self.name, "unit": "documents", "total": len(documents)}
        shown = Shown(bool(self.side_information), *[self.window - 1] * 3)
        for name, kbest in self.progress(documents, **how):
            answers, label = self._estimator.answers(shard_of(kbest)), f"document {name!r}"
            problem = ProgramProblem(kbest, answers, shown, label=label)
            if self.order == 0:  # all at once, in as few batches as possible
                lists = enumerate(problem.lengths)
                answers.of([problem.question(t, (), range(k)) for t, k in lists], label)
                answers.save()
            scored.append(ScoredDocument(problem, np.zeros((kbest.n, 0)), answers.save))
        return scored

    def report(self) -> str:
        """`qe: 1,200 answers of kiwi 2.2 in 31.5 s, 300 from the cache`."""
        return f"{self.name}: {self._estimator.report()}"


class ProgramUtility(ExpectedUtility):
    """The utility of a candidate where another is the reference, as a program scores it."""

    def __init__(self, kbest: KBest, estimator: Estimator) -> None:
        super().__init__(kbest)
        if estimator.side_information and "source" not in kbest.side:
            raise UsageError(
                f"{estimator.option}: it needs the source sentences; give them, or add ,source=no"
            )
        self._estimator, self._answers = estimator, estimator.answers(shard_of(kbest))

    def expected(self, t: int, marginals: Array) -> Array:
        """Expected utility, as of `ExpectedUtility`; only references that are possible are asked.

        O(K R) answers, with R of these.
        """
        sentence = int(self._present[t])
        texts = [self.kbest.text(row).decode() for row in self.kbest.rows(sentence)]
        parts: dict[str, object] = {}
        if self._estimator.side_information:
            parts["source"] = self.kbest.side["source"][sentence].decode()
        possible = np.flatnonzero(marginals.reshape(-1, len(texts)).any(axis=0))
        everyone = range(len(texts))
        questions = [
            Question({**parts, "reference": texts[other]}, texts, everyone)
            for other in possible.tolist()
        ]
        place = f"source line {self.kbest.first + sentence + 1}"
        utilities = self._answers.of(questions, place).reshape(len(possible), len(texts))
        if t == len(self._present) - 1:
            self._answers.save()
        return np.asarray(marginals[..., possible] @ utilities)


class ProgramMetric(MeanScore, Metric):
    """The mean of what a program says of hypotheses; a row of statistics is `[value, 1]`."""

    width = 2

    def __init__(self, name: str, estimator: Estimator) -> None:
        self.name, self.estimator = name, estimator

    def _values(
        self,
        hypotheses: Sequence[Sequence[bytes]],
        references: Sequence[Sequence[bytes]],
        sources: Sequence[bytes] | None,
        *,
        shard: str,
        place: str,
    ) -> Array:
        """Values (n,) of the hypotheses of each sentence of a document.

        The program has all references, and the sources unless options say not. shard: of the
        document in the cache; place: its name in messages.
        """
        questions = []
        for t, texts in enumerate(hypotheses):
            parts: dict[str, object] = {"references": [line.decode() for line in references[t]]}
            if self.estimator.side_information:
                if sources is None:
                    raise UsageError(
                        f"{self.estimator.option}: it needs the source; give --source FILE, or add "
                        ",source=no behind it"
                    )
                parts["source"] = sources[t].decode()
            lines = [text.decode() for text in texts]
            questions.append(Question(parts, lines, range(len(lines))))
        answers = self.estimator.answers(shard)
        values = answers.of(questions, place)
        answers.save()
        return values

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates."""
        texts = [[kbest.text(row) for row in kbest.rows(t)] for t in range(len(kbest))]
        place = f"the document of source line {kbest.first + 1}"
        sources = kbest.side.get("source")
        values = self._values(texts, references, sources, shard=shard_of(kbest), place=place)
        listed = np.asarray(kbest.line_numbers) > 0
        return Counted(np.stack([values * listed, listed], axis=1), np.zeros(self.width))

    def of_texts(
        self,
        documents: Documents,
        hypotheses: Sequence[Sequence[bytes]],
        references: Sequence[Sequence[bytes]],
        sources: Sequence[bytes] | None,
    ) -> Rows:
        """Sums (D, n, 2) of the statistics of documents, whose sentences have n hypotheses each."""
        rows, n = [], max(map(len, hypotheses), default=0)
        for name, (a, b) in zip(documents.ids, pairwise(documents.starts), strict=True):
            lines = b"\n".join(line for lines in references[a:b] for line in lines)
            values = self._values(
                hypotheses[a:b],
                references[a:b],
                None if sources is None else sources[a:b],
                shard=hashlib.sha256(lines).hexdigest(),
                place=f"document {name!r}",
            )
            sums = values.reshape(b - a, n).sum(axis=0)
            rows.append(np.stack([sums, np.full(n, b - a)], axis=1))
        return np.array(rows).reshape(-1, n, self.width)

    def signature(self, n_references: int) -> str:
        """`rerank|metric:comet|program:Unbabel/wmt22-comet-da COMET 2.2.7=ab12cd34|…`."""
        program = self.estimator.signature
        return signature({"metric": self.name, "program": program, "nrefs": n_references})
