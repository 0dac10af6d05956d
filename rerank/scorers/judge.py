"""Judges: language models that are asked about candidates, as a feature, a metric or a utility.

What is asked is a form (`rerank.scorers.judge_forms`) in words of a template; who answers, a server
or a model of a folder (`rerank.scorers.judge_models`). Every answer is kept when it comes, by its
question: whatever ends a run, none but those in flight is asked for twice.

Several passes are aggregated: `mean`; `trimmed`, the mean without what is more than two standard
deviations away from it; `ranks`, the mean with weights 1, 1/2, 1/3, … from the mildest judgement
to the harshest, our reading of the rank-weighted mean of GEMBA-MQM's second version (WMT25).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import click
import numpy as np

from decoders.problem import Array
from rerank.errors import RerankError, UsageError, shown
from rerank.files.cache import AnswerStore, Cache
from rerank.files.server import ServerError
from rerank.files.signature import LENGTH
from rerank.registry import PROGRAM
from rerank.scorers.cached_scores import digest
from rerank.scorers.judge_forms import FORMS, TEMPLATE, aggregated, errors_of
from rerank.scorers.judge_models import Answer, ChatModel, LocalModel, Wording, packed, unpacked
from rerank.scorers.judge_options import (
    LANGUAGES,
    NOT_ASKED,
    OF_METRICS,
    OF_SERVERS,
    OF_UTILITIES,
    VARIABLES,
    JudgeSettings,
)
from rerank.scorers.model_options import HUGGING_FACE, SERVER, without_secret
from rerank.scorers.programs import WITHOUT_WINDOW, Estimator, ProgramEstimator, Question
from rerank.scorers.templates import JinjaTemplate
from rerank.values import Key, settings, split

VERSION = 1  # of questions and of what answers are worth
BYTES_A_TOKEN = 3.5  # of a question, where no server has counted
WRITTEN = {"errors": 120.0, "ranking": 40.0}  # tokens of an answer, about; of other forms 4
_UNKNOWN_KEY = re.compile(r".*,([A-Za-z_-]+)=[^,]*", re.DOTALL)
HOPELESS = 40  # answers after which a run ends if none can be read
_Progress = Callable[..., Iterable[Any]]


class Judge(Estimator):
    """A judge, and what it has answered. progress: as of `FeatureSource`."""

    progress: _Progress = staticmethod(lambda items, **how: items)

    def __init__(self, option: str, argument: str, keys: Mapping[str, Key]) -> None:
        self.option = f"{option}{without_secret(argument.partition(',')[0])}"
        try:
            target, self.settings = parsed(argument, keys)
            kind = ChatModel if target.startswith(SERVER) else LocalModel
            self.model = kind(self.option, target.partition(":")[2], self.settings)
        except click.BadParameter as fault:
            raise UsageError(f"{self.option}: {fault.message}") from None
        except ValueError as fault:
            raise UsageError(f"{self.option}: {fault}") from None
        chosen = self.settings
        self.form = FORMS[chosen.form]
        self.template = JinjaTemplate(Path(chosen.prompt) if chosen.prompt else TEMPLATE, VARIABLES)
        shows = "candidate" if self.form.shows == "one" else "candidates"
        if shows not in self.template.used:
            raise self.template.at_end(f"expected the variable {shows}, of form={chosen.form}")
        self.title = f"{chosen.model or Path(target.partition(':')[2]).name} ({chosen.form})"
        self.facts: dict[str, object] = {"program": self.title, "version": str(VERSION)}
        self.side_information = ("source",) if chosen.source else ()
        self.counts, self._lock = Counts(), Lock()
        self._seen: dict[bytes, bool] = {}  # keys of answers that were used: whether asked now
        self._first: dict[bytes, float] = {}  # what the candidate gets that is shown first, by key
        self._unread: dict[Wording, bool] = {}  # those that were asked again: whether in vain
        self.keep_in(None)

    def keep_in(self, cache: Cache | None, of_models: Mapping[str, Any] | None = None) -> None:
        """Keep answers in a cache; of_models: what a model of a folder runs on."""
        self.model.machine = of_models or {}
        every = asdict(self.settings).items()
        asked = [(name, value) for name, value in every if name not in NOT_ASKED]
        identity = repr((VERSION, asked, self.template.digest, self.model.facts))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()
        self.signature = f"{self.title}={self.digest[:LENGTH]}"
        group = hashlib.sha256(repr((VERSION, self.model.facts)).encode()).hexdigest()
        self.cache, self._store = cache, AnswerStore(cache, group)

    def answers(self, document: str) -> Judge:
        """The judge itself, whose answers are known by their questions."""
        return self

    def save(self) -> None:
        """Nothing: answers are kept when they come."""

    def of(self, questions: Iterable[Question], place: str) -> Array:
        """Judgements (n,) of the candidates of questions; RerankError if one cannot be read."""
        judged = self.judged(questions, place)
        if np.isnan(judged).any():
            raise RerankError(f"{self.option}: {self.counts.unread}")
        return judged

    def judged(self, questions: Iterable[Question], place: str) -> Array:
        """Judgements (n,) of the candidates of questions, NaN where no answer can be read."""
        work = [(question, self._wordings(question)) for question in questions]
        answers = self._answered(work, place)
        judged = [self._values(*item, answers)[[*item[0].chosen]] for item in work]
        return np.concatenate(judged) if judged else np.zeros(0)

    def ask(self, questions: Iterable[Question], place: str) -> None:
        """Have questions answered, all at once."""
        self._answered([(question, self._wordings(question)) for question in questions], place)

    # Questions

    def _wordings(self, question: Question) -> list[list[Wording]]:
        """The questions of each pass in words.

        Equal texts are shown once, under the number of the first; one alone is not compared.
        """
        first, everyone = firsts(question.texts), range(len(question.texts))
        shows_one = self.form.shows == "one"
        distinct = sorted({first[k] for k in (question.chosen if shows_one else everyone)})
        if len(distinct) < 2 and not shows_one:
            return [[] for _ in range(self.settings.passes)]
        of_passes = []
        for number in range(self.settings.passes):
            drawn = digest(repr((self.settings.seed, number, question.texts)).encode())
            groups = self.form.groups(distinct, np.random.default_rng([*drawn]))
            key = number if self.model.draws else 0
            of_passes.append([Wording(self._text(question, g), tuple(g), key) for g in groups])
        return of_passes

    def _text(self, question: Question, shown_: Sequence[int]) -> str:
        texts = [question.texts[k] for k in shown_]
        values: dict[str, object] = {name: "" for name in VARIABLES}
        values |= {name: getattr(self.settings, name) for name in LANGUAGES}
        values |= {"form": self.form.name, "candidate": texts[0]}
        values["candidates"] = [*zip(self.form.labels(len(texts)), texts, strict=True)]
        for name in ("sources_before", "sources_after", "candidates_before"):
            values[name] = question.parts.get(name, [])
        values["source"] = question.parts.get("source", "")
        references = question.parts.get("references", []) if self.settings.reference else []
        values["reference"] = question.parts.get("reference", next(iter(references), ""))
        return self.template.rendered(values, self.option)

    # Answers

    def _answered(
        self, work: Sequence[tuple[Question, list[list[Wording]]]], place: str
    ) -> dict[Wording, Answer]:
        """The answers to the prompts of questions, the second ones where the first are unread."""
        owners = {p: question for question, passes in work for p in chain(*passes)}
        answers = self._found([*owners], place)
        unread = [p for p in answers if self._read(p, answers) is None]
        again = {p: replace(p, again=True) for p in unread if self.model.varies}
        seconds = self._found([*again.values()], place)
        for prompt in unread:
            answers[prompt] = seconds.get(again.get(prompt, prompt), answers[prompt])
            lost = self._read(prompt, answers) is None
            if lost and not any(self._unread.values()):
                said = shown(answers[prompt]["text"].encode())
                if answers[prompt].get("cut"):
                    said = "one that was cut off; allow it more by tokens=N"
                where = owners[prompt].place or place
                self.counts.unread = f"{where}: expected an answer as asked for, found {said}"
            self._unread[prompt] = lost
        return answers

    def _found(self, prompts: Sequence[Wording], place: str) -> dict[Wording, Answer]:
        """The answers to prompts, those that are not known from the model; RerankError."""
        known: dict[Wording, Answer] = {}
        unknown: dict[bytes, list[Wording]] = {}
        for prompt in dict.fromkeys(prompts):
            answer = unpacked(self._store.get(prompt.key) or b"")
            if answer is None or answer.get("cut", math.inf) < self.model.tokens:
                unknown.setdefault(prompt.key, []).append(prompt)
            else:
                known[prompt] = answer
                self._seen.setdefault(prompt.key, False)
        if unknown:
            keys, began = [*unknown], perf_counter()
            firsts_ = (prompts[0] for prompts in self._affordable(unknown.values()))
            asked = self.model.ask(firsts_, len(unknown), self._heard)
            how = {"label": self.title, "unit": "answers", "total": len(keys)}
            try:
                for n, answer in self.progress(asked, **how):
                    known |= dict.fromkeys(unknown[keys[n]], answer)
                    self._seen[keys[n]] = True
            except ServerError as fault:
                raise RerankError(
                    f"{self.option}, {place}: the server {fault}{self._kept()}"
                ) from None
            finally:
                self.counts.seconds += perf_counter() - began
            if len(known) < len({*prompts}):
                raise RerankError(
                    f"{self.option}, {place}: the budget of {self.settings.budget:g} is spent, "
                    f"{len(known):,} of {len({*prompts}):,} questions are answered; give a larger "
                    f"one{self._kept()}"
                )
        return known

    def _affordable(self, items: Iterable[Sequence[Wording]]) -> Iterator[Sequence[Wording]]:
        """The items until the next one, and those in flight, may cost more than is left."""
        chosen, counts = self.settings, self.counts
        sent = counts.asked
        for item in items:
            if chosen.budget is not None and chosen.price is not None:
                spent = cost(counts.read, counts.written, chosen.price)
                mean = spent / counts.asked if counts.asked else self._guess(item[0])
                if spent + mean * (sent + 1 - counts.asked) > chosen.budget:
                    return
            sent += 1
            yield item

    def _guess(self, prompt: Wording) -> float:
        """What a question may cost, by its length."""
        tokens = len(prompt.text.encode()) / BYTES_A_TOKEN, WRITTEN.get(self.form.name, 4.0)
        return cost(*tokens, self.settings.price or (0.0, 0.0))

    def _kept(self) -> str:
        n, cache = self.counts.asked, self.cache
        kept = cache is not None and cache.writable and n
        return f"; its {n:,} answers so far are kept" if kept else ""

    def _heard(self, prompt: Wording, answer: Answer) -> None:
        """Keep and count an answer, in any thread; ServerError if none of the first can be read."""
        self._store.put(prompt.key, packed(answer))
        with self._lock:
            counts = self.counts
            counts.asked += 1
            counts.guessed |= "read" not in answer
            counts.read += answer.get("read", len(prompt.text.encode()) / BYTES_A_TOKEN)
            counts.written += answer.get("written", WRITTEN.get(self.form.name, 4.0))
            counts.missing += answer.get("missing", 0.0)
            counts.expected += "value" in answer
            counts.readable += self._read(prompt, {prompt: answer}) is not None
            hopeless = counts.asked >= HOPELESS and not counts.readable
        if hopeless:
            said = "was cut off" if answer.get("cut") else f"is {shown(answer['text'].encode())}"
            cure = "give tokens=N" if answer.get("cut") else "give another form=, prompt= or model="
            raise ServerError(
                f"answers otherwise than it is asked to: none of {HOPELESS} answers can be read, "
                f"the last one {said}; {cure}"
            )

    def _read(self, prompt: Wording, answers: Mapping[Wording, Answer]) -> list[float] | None:
        """The values of the candidates that a prompt shows; None if its answer cannot be read."""
        answer = answers[prompt]
        if "value" in answer:
            return self.form.of_value(answer["value"])
        return self.form.read(answer["text"], len(prompt.shown))

    def _values(
        self,
        question: Question,
        of_passes: Sequence[Sequence[Wording]],
        answers: Mapping[Wording, Answer],
    ) -> Array:
        """Values (K,) of the texts of a question, NaN for those that have none."""
        values, first = self._values_by_pass(question, of_passes, answers), firsts(question.texts)
        if of_passes[0]:
            self.counts.add_passes(values[:, sorted({first[k] for k in question.chosen})])
        return aggregated(values, self.settings.mean)

    def _values_by_pass(
        self,
        question: Question,
        of_passes: Sequence[Sequence[Wording]],
        answers: Mapping[Wording, Answer],
    ) -> Array:
        """Values (P, K) of each pass."""
        values = np.full((len(of_passes), len(question.texts)), np.nan)
        for row, prompts in zip(values, of_passes, strict=True):
            found = {p.shown: self._read(p, answers) for p in prompts}
            if self.form.shows == "two":  # a pair in one order alone would prefer a place
                found = {s: v if found[s[::-1]] is not None else None for s, v in found.items()}
            read = {places: shares for places, shares in found.items() if shares is not None}
            sums, times = np.zeros((2, len(row)))
            for places, shares in read.items():
                sums[[*places]] += shares
                times[[*places]] += 1
            np.divide(sums, times, out=row, where=times > 0)
            if self.form.shows != "one":
                self._first |= {p.key: read[p.shown][0] for p in prompts if p.shown in read}
                row[:] = row if prompts else 0.5  # equal texts
        by_text: Array = values[:, firsts(question.texts)]
        return by_text

    def sizes(self, question: Question | None) -> list[tuple[int, bool]]:
        """Of the questions in words about a question's candidates bytes, and whether answered."""
        prompts = chain(*([] if question is None else self._wordings(question)))
        return [(len(prompt.text.encode()), prompt.key in self._store) for prompt in prompts]

    def errors(self, question: Question) -> list[dict[str, str]]:
        """The errors that the first pass has found in the chosen candidate of a question."""
        prompts = self._wordings(question)[0]
        answers = self._answered([(question, [prompts])], question.place)
        found = [errors_of(answers[prompt]["text"]) or [] for prompt in prompts]
        return [error._asdict() for error in chain(*found)]

    def by_pass(self, question: Question) -> list[float | None]:
        """What each pass says of the chosen candidate of a question; None where it is unread."""
        (k,), passes = question.chosen, self._wordings(question)
        values = self._values_by_pass(question, passes, self._answered([(question, passes)], ""))[
            :, k
        ]
        return [None if math.isnan(value) else value for value in values.tolist()]

    def report(self) -> str:
        """What was asked, what it cost, and how far the answers agree, in a line."""
        self.counts.cached = sum(not asked for asked in self._seen.values())
        self.counts.first = float(np.mean([*self._first.values()])) if self._first else None
        self.counts.retried, self.counts.lost = len(self._unread), sum(self._unread.values())
        return self.counts.to_text(self.title, self.settings.price)


def firsts(texts: Sequence[str]) -> list[int]:
    """The number of the first text that each text is equal to."""
    first = {text: k for k, text in reversed([*enumerate(texts)])}
    return [first[text] for text in texts]


def cost(read: float, written: float, price: tuple[float, float]) -> float:
    """What tokens that are read and written cost, at a price of a million."""
    return (read * price[0] + written * price[1]) / 1e6


@dataclass(slots=True)
class Counts:
    """What a judge was asked, in this run, and how its answers differ."""

    asked: int = 0
    readable: int = 0
    cached: int = 0
    guessed: bool = False  # whether a server has not said how many tokens some answers had
    seconds: float = 0.0
    read: float = 0.0
    written: float = 0.0
    expected: int = 0
    missing: float = 0.0
    retried: int = 0
    lost: int = 0
    unread: str = ""
    unasked: int = 0
    first: float | None = None  # the mean of what the candidate gets that is shown first
    _within: tuple[int, float] = (0, 0.0)
    _between: tuple[int, float] = (0, 0.0)

    def add_passes(self, values: Array) -> None:
        """Count variances of candidates (P, K) over the passes, and of their means."""
        if len(values) > 1 and not np.isnan(values).any():
            n, total = self._within
            self._within = n + values.shape[1], total + float(values.var(axis=0, ddof=1).sum())
            n, total = self._between
            if values.shape[1] > 1:
                means = values.mean(axis=0)
                self._between = n + 1, total + float(means.var(ddof=1))

    def to_text(self, title: str, price: tuple[float, float] | None) -> str:
        """`1,200 answers of gpt (rating) in 31.5 s, 300 from the cache; 51,000 tokens read, …`."""
        parts = [f"{self.asked:,} answers of {title} in {self.seconds:.1f} s"]
        if self.cached:
            parts[0] += f", {self.cached:,} from the cache"
        if self.asked:
            about = "about " * self.guessed
            parts.append(f"{about}{self.read:,.0f} tokens read, {self.written:,.0f} written")
            if price is not None:
                sum_ = cost(self.read, self.written, price)
                parts[-1] += f", at {price[0]:g}/{price[1]:g} a million {about}{sum_:.4g}"
        if self.expected:
            parts.append(f"{self.missing / self.expected:.1%} of the probability on other answers")
        if self._within[0]:
            deviations = [math.sqrt(t / n) for n, t in (self._within, self._between) if n]
            named = [f"{x:.3g} {of}" for x, of in zip(deviations, _DEVIATIONS, strict=False)]
            parts.append(f"standard deviation {', '.join(named)}")
        if self.first is not None:
            parts.append(f"the one shown first wins {self.first:.0%} (50% without a preference)")
        if self.unasked:
            parts.append(f"{self.unasked:,} sentences not asked about")
        if self.retried:
            again = f"answers that could not be read and were asked for again: {self.retried:,}"
            lost = f", {self.lost:,} of them in vain: {self.unread}" if self.lost else ""
            parts.append(again + lost)
        return "; ".join(parts)


_DEVIATIONS = "of a candidate over passes", "of the candidates of a sentence"


def parsed(argument: str, keys: Mapping[str, Key]) -> tuple[str, JudgeSettings]:
    """The model of `MODEL[,KEY=VALUE…]`, and what stands behind it; ValueError or BadParameter."""
    target, given = split(argument, keys)
    chosen = JudgeSettings(**settings(given, keys, None, None))
    if unknown := _UNKNOWN_KEY.fullmatch(target):
        near = get_close_matches(unknown[1], keys, 1)
        hint = f"did you mean {near[0]}=?" if near else f"there are {', '.join(keys)}"
        raise ValueError(f"no key {unknown[1]}=; {hint}")
    if not target.startswith((SERVER, HUGGING_FACE)):
        raise ValueError(
            f"expected {SERVER}URL,model=NAME or {HUGGING_FACE}DIR, and behind it one of "
            f"{', '.join(keys)}; found {shown(target.encode())}"
        )
    server = target.startswith(SERVER)
    chosen.check(server=server)
    unused = set() if server else given.keys() & OF_SERVERS
    if not server and chosen.tokens and FORMS[chosen.form].answers:
        unused.add("tokens")
    if unused:
        raise ValueError(f"{min(unused)}= is not used by a model in a folder; leave it out")
    return target, chosen


def estimator_of(option: str, value: str) -> Estimator:
    """The estimator of `command:PROGRAM` or `judge:MODEL` behind an option, which ends in `=`."""
    kind, _, argument = value.partition(":")
    if kind == PROGRAM:
        return ProgramEstimator(f"{option}{kind}", argument, WITHOUT_WINDOW)
    keys = OF_METRICS if option.startswith("--metric") else OF_UTILITIES
    return Judge(f"{option}{kind}:", argument, keys)
