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
import time
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import TypeAlias

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
from rerank.scorers.cached_scores import KEY_BYTES, digest
from rerank.scorers.features import FeatureSource, ScoredDocument
from rerank.values import Key, Real, Whole, settings, split

KEYS = {
    "window": Key("window", Whole(1), "sentences of a window"),
    "source": Key("source", click.BOOL, "whether requests have the source"),
    "timeout": Key("timeout", Real(0, 1e6, above=True), "most seconds without an answer"),
    "batch": Key("batch", Whole(1), "most requests at once"),
}
WITHOUT_WINDOW = ("source", "timeout", "batch")  # the keys of metrics and utilities
_SAVED_EVERY = 5.0  # seconds
_REMEMBERED = 1 << 20  # answers, about 150 MB
_KEY = re.compile(r"""(?<!\\),([A-Za-z_-]+)=[^,\s"']*(?=,|$)""")  # what looks like one of `KEYS`
Choices: TypeAlias = tuple[int, ...]


def _check_keys(argument: str, keys: Sequence[str]) -> None:
    """BadParameter for a misspelt key behind a program, or one of `KEYS` that is not for it.

    Words unlike keys belong to the program, as `a=1,b=2` among its arguments.
    """
    for key in _KEY.findall(argument):
        if key not in keys and difflib.get_close_matches(key.lower(), KEYS):
            raise click.BadParameter(
                f"expected one of {', '.join(keys)} behind the program, found {key}=; take one of "
                f"these, or write \\,{key}= if it belongs to the program"
            )


class Estimator:
    """A program, and what it has answered.

    option: how the user named it, for messages; settings: values of `KEYS` behind it. digest: of
    the name and the version that it states; without a version nothing is cached on disk. cached:
    number of answers of earlier runs.
    """

    def __init__(
        self, option: str, argument: str, keys: Sequence[str], cache: Cache | None = None
    ) -> None:
        self.option = option
        try:
            _check_keys(argument, keys)
            command, given = split(argument, {key: KEYS[key] for key in keys})
            self.settings = settings(given, KEYS, None, None)
        except click.BadParameter as fault:
            raise UsageError(f"{option}: {fault.message}") from None
        try:
            self.program = Program(
                command,
                seconds=self.settings.get("timeout", 600.0),
                batch=self.settings.get("batch", 256),
            )
        except ProgramError as fault:
            raise RerankError(f"{option}: {fault}") from None
        except UsageError as fault:
            raise UsageError(f"{option}: {fault}") from None
        identity = "command 1", self.program.name, self.program.version
        self.digest = hashlib.sha256(repr(identity).encode()).hexdigest()
        self.keep_in(cache)
        self.cached = 0
        self.memory: dict[bytes, float] = {}

    def keep_in(self, cache: Cache | None) -> None:
        """Have answers cached, if the program states a version."""
        self.cache = cache if self.program.version else None

    @property
    def program_and_version(self) -> str:
        """Both as the program states them: `kiwi 2.2`."""
        return " ".join(filter(None, [self.program.name, self.program.version]))

    @property
    def side_information(self) -> tuple[str, ...]:
        """What requests have of the side information: the source, unless options say not."""
        return ("source",) if self.settings.get("source", True) else ()

    @property
    def signature(self) -> str:
        """Program, version and digest: `kiwi 2.2=ab12cd34`."""
        return f"{self.program_and_version}={self.digest[:LENGTH]}"

    @property
    def facts(self) -> dict[str, object]:
        """What weights files state of the program."""
        return {"program": self.program.name, "version": self.program.version}

    def answers(self, document: str) -> CachedAnswers:
        """The answers about a document, known by a digest of its texts."""
        return CachedAnswers(self, document)

    def report(self) -> str:
        """`1,200 answers of kiwi 2.2 in 31.5 s, 300 from the cache`."""
        program, seconds = self.program_and_version, self.program.spent
        found = f"{self.program.answered:,} answers of {program} in {seconds:.1f} s"
        return f"{found}, {self.cached:,} from the cache" if self.cached else found


class CachedAnswers:
    """CachedAnswers about one document: of the cache, of this run, or asked for now."""

    def __init__(self, estimator: Estimator, document: str) -> None:
        self._estimator, self._name = estimator, document
        self._own: dict[bytes, float] = {}
        self._cached: set[bytes] = set()  # of earlier runs, not used so far
        self._grown, self._saved_at = False, time.monotonic()
        self._load()

    def _load(self) -> None:
        """Add the answers that are in the cache."""
        cache, group = self._estimator.cache, self._estimator.digest[:32]
        arrays = None if cache is None else cache.get(group, self._name)
        if cache is None or arrays is None:
            return
        keys, numbers = arrays.get("key", np.zeros(0)), arrays.get("answer", np.zeros(0))
        sound = keys.dtype == np.uint8 and numbers.dtype == np.float64 and numbers.ndim == 1
        if not (sound and keys.shape == (KEY_BYTES * len(numbers),) and np.isfinite(numbers).all()):
            cache.refuse(group, self._name)
            return
        raw = keys.tobytes()
        names = [raw[i : i + KEY_BYTES] for i in range(0, len(raw), KEY_BYTES)]
        self._cached |= {*names} - self._own.keys() - self._estimator.memory.keys()
        self._own |= dict(zip(names, numbers.tolist(), strict=True))

    def of(self, requests: Sequence[bytes], place: str) -> Array:
        """CachedAnswers (n,) to requests; equal ones are asked once.

        RerankError, naming the place, if the program does not answer; what it has answered is
        saved.
        """
        estimator, memory = self._estimator, self._estimator.memory
        keys, unknown = [digest(one) for one in requests], dict[bytes, bytes]()
        for key, request in zip(keys, requests, strict=True):
            if key in self._own:
                estimator.cached += key in self._cached
                self._cached.discard(key)
                continue
            if key in memory:
                self._own[key], self._grown = memory[key], True
            else:
                unknown[key] = request
        if unknown:
            names = iter(unknown)
            try:
                for numbers in estimator.program.ask([*unknown.values()]):
                    self._enter(dict(zip(islice(names, len(numbers)), numbers, strict=True)))
            except ProgramError as fault:
                self._enter(
                    dict(zip(islice(names, len(fault.answers)), fault.answers, strict=True))
                )
                raise RerankError(
                    f"{estimator.option}, {place}: {estimator.program.name}: {fault}{self._kept()}"
                ) from None
            except BaseException:  # a signal, too
                self.save()
                raise
        return np.array([self._own[key] for key in keys])

    def _enter(self, answers: Mapping[bytes, float]) -> None:
        """Add answers, and save them if the last time is long ago."""
        memory = self._estimator.memory
        if len(memory) > _REMEMBERED:
            memory.clear()
        self._own.update(answers)
        memory.update(answers)
        self._grown = self._grown or bool(answers)
        if time.monotonic() - self._saved_at > _SAVED_EVERY:
            self.save()

    def _kept(self) -> str:
        """What a message says of the answers so far, which are saved now."""
        self.save()
        cache, answered = self._estimator.cache, self._estimator.program.answered
        if cache is None or not cache.writable or not answered:
            return ""
        return f"; its {answered:,} answers so far are in the cache"

    def save(self) -> None:
        """Write the answers to the cache, if there are new ones."""
        cache = self._estimator.cache
        if cache is not None and self._grown:
            self._load()  # other documents may begin alike
            keys = np.frombuffer(b"".join(self._own), np.uint8)
            numbers = np.array([*self._own.values()])
            cache.put(self._estimator.digest[:32], self._name, {"key": keys, "answer": numbers})
        self._grown, self._saved_at = False, time.monotonic()


def request(**parts: object) -> bytes:
    """A request as the program reads it."""
    return json.dumps(parts).encode()


def shard_of(kbest: KBest) -> str:
    """The name of the answers about documents that begin with the same candidate, in the cache."""
    return hashlib.sha256(kbest.text(0) if kbest.n else b"").hexdigest()


class ProgramProblem(DocumentProblem):
    """A document under an estimator of windows; a state is the choices before in the window."""

    lengths: tuple[int, ...] = ()
    order: int = 0

    def __init__(
        self,
        kbest: KBest,
        answers: CachedAnswers,
        window: int,
        *,
        source: bool,
        label: str,
    ) -> None:
        present = np.flatnonzero(kbest.counts).tolist()
        self._answers, self._label = answers, label
        self.window, self.order = window, window - 1
        self._texts = [[kbest.text(row).decode() for row in kbest.rows(t)] for t in present]
        self._present = present
        self._sources = [kbest.side["source"][t].decode() for t in present] if source else None
        self.lengths = tuple(map(len, self._texts))

    def requests(self, t: int, history: Choices, candidates: Sequence[int]) -> list[bytes]:
        """The requests for some candidates of sentence t after a history."""
        begin, end = max(0, t - self.window + 1), t + self.window
        parts: dict[str, object] = {}
        if self._sources is not None:
            parts["source"] = self._sources[t]
        if self.window > 1:
            chosen = zip(range(begin, t), history[len(history) - (t - begin) :], strict=True)
            parts["candidates_before"] = [self._texts[s][k] for s, k in chosen]
            if self._sources is not None:
                parts["sources_before"] = self._sources[begin:t]
                parts["sources_after"] = self._sources[t + 1 : end]
        return [request(**parts, candidate=self._texts[t][k]) for k in candidates]

    def _scores(self, t: int, wanted: Sequence[bytes]) -> Array:
        place = f"{self._label}, sentence {self._present[t]} (counted from 0)"
        return self._answers.of(wanted, place)

    def initial(self) -> list[Choices]:
        """The empty history."""
        return [()]

    def extend(self, states: list[Choices], t: int) -> Answer:
        """Scores (N, K_t) after each history."""
        k = self.lengths[t]
        wanted = [one for state in states for one in self.requests(t, state, range(k))]
        return self._scores(t, wanted).reshape(len(states), k), states

    def select(
        self, successors: list[Choices], parents: Indices, choices: Indices
    ) -> list[Choices]:
        """The histories after the chosen candidates."""
        pairs = zip(parents.tolist(), choices.tolist(), strict=True)
        paths = [(*successors[parent], choice) for parent, choice in pairs]
        return [path[max(0, len(path) + 1 - self.window) :] for path in paths]

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path, of its own candidates alone."""
        totals = np.zeros(len(paths))
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            begin = max(0, s - self.window + 1)
            rows = paths[:, begin : s + 1].tolist()
            totals += self._scores(
                s, [self.requests(s, tuple(before), [k])[0] for *before, k in rows]
            )
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

    def complete(self) -> None:
        """Have all candidates scored at order 0, in as few batches as possible."""
        wanted = [one for t, k in enumerate(self.lengths) for one in self.requests(t, (), range(k))]
        self._answers.of(wanted, self._label)


class ProgramScorer(FeatureSource):
    """The feature of `--scorer NAME=command:PROGRAM[,window=N]`, of order N − 1."""

    slow_unit = "requests"

    def __init__(self, name: str, argument: str, cache: Cache | None) -> None:
        self._estimator = Estimator(f"--scorer {name}={PROGRAM}", argument, [*KEYS], cache)
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
        found = []
        how = {"label": self.name, "unit": "documents", "total": len(documents)}
        for name, kbest in self.progress(documents, **how):
            answers = self._estimator.answers(shard_of(kbest))
            problem = ProgramProblem(
                kbest,
                answers,
                self.window,
                source=bool(self.side_information),
                label=f"document {name!r}",
            )
            if self.order == 0:
                problem.complete()
                answers.save()
            found.append(ScoredDocument(problem, np.zeros((kbest.n, 0)), answers.save))
        return found

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
        wanted = [
            request(**parts, candidate=text, reference=texts[other])
            for text in texts
            for other in possible.tolist()
        ]
        place = f"source line {self.kbest.first + sentence + 1}"
        utilities = self._answers.of(wanted, place).reshape(len(texts), len(possible))
        if t == len(self._present) - 1:
            self._answers.save()
        return np.asarray(marginals[..., possible] @ utilities.T)


class ProgramMetric(MeanScore, Metric):
    """The mean of what a program says of hypotheses; a row of statistics is `[value, 1]`."""

    width = 2

    def __init__(self, name: str, argument: str) -> None:
        self.name = name
        self.estimator = Estimator(f"--metric {name}={PROGRAM}", argument, WITHOUT_WINDOW)

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
        wanted = []
        for t, texts in enumerate(hypotheses):
            parts: dict[str, object] = {"references": [line.decode() for line in references[t]]}
            if self.estimator.side_information:
                if sources is None:
                    raise UsageError(
                        f"{self.estimator.option}: it needs the source; give --source FILE, or add "
                        ",source=no behind it"
                    )
                parts["source"] = sources[t].decode()
            wanted += [request(**parts, candidate=text.decode()) for text in texts]
        answers = self.estimator.answers(shard)
        found = answers.of(wanted, place)
        answers.save()
        return found

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
        found, n = [], max(map(len, hypotheses), default=0)
        for name, (a, b) in zip(documents.ids, pairwise(documents.starts), strict=True):
            lines = b"\n".join(line for own in references[a:b] for line in own)
            values = self._values(
                hypotheses[a:b],
                references[a:b],
                None if sources is None else sources[a:b],
                shard=hashlib.sha256(lines).hexdigest(),
                place=f"document {name!r}",
            )
            sums = values.reshape(b - a, n).sum(axis=0)
            found.append(np.stack([sums, np.full(n, b - a)], axis=1))
        return np.array(found).reshape(-1, n, self.width)

    def signature(self, n_references: int) -> str:
        """`rerank|metric:comet|program:Unbabel/wmt22-comet-da COMET 2.2.7=ab12cd34|…`."""
        program = self.estimator.signature
        return signature({"metric": self.name, "program": program, "nrefs": n_references})
