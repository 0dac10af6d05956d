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
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
from rerank.registry import PROGRAM
from rerank.scorers.cached_scores import digest
from rerank.scorers.judge_forms import FORMS, TEMPLATE, aggregated, errors_of, labels, shares
from rerank.scorers.judge_models import Answer, ChatModel, LocalModel, Wording, unpacked
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
_UNKNOWN_KEY = re.compile(r".*,([A-Za-z_-]+)=[^,]*", re.DOTALL)
HOPELESS = 40  # answers after which a run ends if none can be read


class Judge(Estimator):
    """A judge, and what it has answered. progress: as of `FeatureSource`."""

    progress: Callable[..., Iterable[Any]] = staticmethod(lambda items, **how: items)

    def __init__(self, option: str, argument: str, keys: Mapping[str, Key]) -> None:
        self.option = f"{option}{without_secret(argument.partition(',')[0])}"
        try:
            target, self.settings = parsed(argument, keys)
            place = target.partition(":")[2]
            kind = ChatModel if target.startswith(SERVER) else LocalModel
            self.model = kind(self.option, place, self.settings)
        except (click.BadParameter, ValueError) as fault:
            raise UsageError(f"{self.option}: {fault}") from None
        chosen = self.settings
        self.form = FORMS[chosen.form]
        self.template = JinjaTemplate(Path(chosen.prompt) if chosen.prompt else TEMPLATE, VARIABLES)
        shows = "candidate" if self.form.shows == "one" else "candidates"
        if shows not in self.template.used:
            raise self.template.at_end(f"expected the variable {shows}, of form={chosen.form}")
        self.title = f"{chosen.model or Path(place).name} ({chosen.form})"
        self.facts: dict[str, object] = {"program": self.title, "version": str(VERSION)}
        self.side_information = ("source",) if chosen.source else ()
        self.counts, self._lock = Counts(), Lock()
        self.keep_in(None)

    def keep_in(self, cache: Cache | None, of_models: Mapping[str, Any] | None = None) -> None:
        """Keep answers in a cache; of_models: what a model of a folder runs on."""
        self.model.machine = of_models or {}
        asked = [item for item in asdict(self.settings).items() if item[0] not in NOT_ASKED]
        identity = repr((VERSION, asked, self.template.digest, self.model.facts))
        self.digest = hashlib.sha256(identity.encode()).hexdigest()
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
        answers = self._answered((p for _, passes in work for p in chain(*passes)), place)
        judged = [np.zeros(0)]
        for question, passes in work:
            values = self._values(question, passes, answers)
            if passes[0]:
                distinct = {question.texts[k]: k for k in question.chosen}
                self.counts.add_passes(values[:, [*distinct.values()]])
            judged.append(aggregated(values, self.settings.mean)[[*question.chosen]])
        return np.concatenate(judged)

    def ask(self, questions: Iterable[Question], place: str) -> None:
        """Have questions answered, all at once."""
        self._answered((p for q in questions for p in chain(*self._wordings(q))), place)

    # Questions

    def _wordings(self, question: Question) -> list[list[Wording]]:
        """The questions of each pass in words, each text once."""
        texts, place = question.texts, question.place
        if self.form.shows == "one":
            texts = [texts[k] for k in question.chosen]
        distinct = [*dict.fromkeys(texts)]
        of_passes = []
        for number in range(self.settings.passes):
            drawn = digest(repr((self.settings.seed, number, question.texts)).encode())
            groups = self.form.groups(distinct, np.random.default_rng([*drawn]))
            key = number if self.model.draws else 0
            worded = [Wording(self._text(question, g), tuple(g), key, place) for g in groups]
            of_passes.append(worded)
        return of_passes

    def _text(self, question: Question, texts: Sequence[str]) -> str:
        parts = question.parts
        around = "sources_before", "sources_after", "candidates_before"
        references = parts.get("references", []) if self.settings.reference else []
        values: dict[str, object] = {
            "form": self.form.name,
            "source": parts.get("source", ""),
            **{name: parts.get(name, []) for name in around},
            "reference": parts.get("reference", next(iter(references), "")),
            "candidate": texts[0],
            "candidates": [*zip(labels(len(texts)), texts, strict=True)],
            **{name: getattr(self.settings, name) for name in LANGUAGES},
        }
        return self.template.rendered(values, self.option)

    # Answers

    def _answered(self, prompts: Iterable[Wording], place: str) -> dict[Wording, Answer]:
        """The answers to prompts, the second ones where the first cannot be read."""
        answers, counts = self._found([*dict.fromkeys(prompts)], place), self.counts
        unread = [p for p, answer in answers.items() if self._read(p, answer) is None]
        again = {p: replace(p, again=True) for p in unread if self.model.varies}
        seconds = self._found([*again.values()], place)
        answers |= {prompt: seconds[second] for prompt, second in again.items()}
        for prompt in unread:
            answer = answers[prompt]
            counts.retried[prompt] = self._read(prompt, answer) is None
            if counts.retried[prompt] and not counts.unread:
                said = shown(answer["text"].encode())
                if answer.get("cut"):
                    said = "one that was cut off; allow it more by tokens=N"
                counts.unread = (
                    f"{prompt.place or place}: expected an answer as asked for, found {said}"
                )
        return answers

    def _found(self, prompts: Sequence[Wording], place: str) -> dict[Wording, Answer]:
        """The answers to distinct prompts, those that are not known from the model; RerankError."""
        known, unknown = dict[Wording, Answer](), list[Wording]()
        for prompt in prompts:
            answer = unpacked(self._store.get(prompt.key) or b"")
            if answer is None or answer.get("cut", math.inf) < self.model.tokens:
                unknown.append(prompt)
            else:
                known[prompt] = answer
                self.counts.seen.setdefault(prompt.key, False)
        if unknown:
            began = perf_counter()
            answers = self.model.ask(self._affordable(unknown), len(unknown), self._heard)
            how = {"label": self.title, "unit": "answers", "total": len(unknown)}
            try:
                for prompt, answer in self.progress(answers, **how):
                    known[prompt] = answer
                    self.counts.seen[prompt.key] = True
            except ServerError as fault:
                raise RerankError(
                    f"{self.option}, {place}: the server {fault}{self._kept()}"
                ) from None
            finally:
                self.counts.seconds += perf_counter() - began
            if len(known) < len(prompts):
                raise RerankError(
                    f"{self.option}, {place}: the budget of {self.settings.budget:g} is spent, "
                    f"{len(known):,} of {len(prompts):,} questions are answered; give a larger "
                    f"one{self._kept()}"
                )
        return known

    def _affordable(self, prompts: Iterable[Wording]) -> Iterator[Wording]:
        """The prompts until the next one, and those in flight, may cost more than is left."""
        budget, price, counts = self.settings.budget, self.settings.price, self.counts
        sent = counts.asked
        for prompt in prompts:
            if budget is not None and price is not None:
                spent = cost(counts.read, counts.written, price)
                guess = cost(prompt.n_tokens, self.form.written, price)
                mean = spent / counts.asked if counts.asked else guess
                if spent + mean * (sent + 1 - counts.asked) > budget:
                    return
            sent += 1
            yield prompt

    def _kept(self) -> str:
        n, cache = self.counts.asked, self.cache
        kept = cache is not None and cache.writable and n
        return f"; its {n:,} answers so far are kept" if kept else ""

    def _heard(self, prompt: Wording, answer: Answer) -> None:
        """Keep and count an answer, in any thread; ServerError if none of the first can be read."""
        self._store.put(prompt.key, json.dumps(answer).encode())
        with self._lock:
            counts = self.counts
            counts.asked += 1
            counts.guessed |= "read" not in answer
            counts.read += answer.get("read", prompt.n_tokens)
            counts.written += answer.get("written", self.form.written)
            counts.missing += answer.get("missing", 0.0)
            counts.expected += "value" in answer
            counts.readable += self._read(prompt, answer) is not None
            hopeless = counts.asked >= HOPELESS and not counts.readable
        if hopeless:
            said = "was cut off" if answer.get("cut") else f"is {shown(answer['text'].encode())}"
            cure = "give tokens=N" if answer.get("cut") else "give another form=, prompt= or model="
            raise ServerError(
                f"answers otherwise than it is asked to: none of {HOPELESS} answers can be read, "
                f"the last one {said}; {cure}"
            )

    def _read(self, prompt: Wording, answer: Answer) -> list[float] | None:
        """The values of the candidates that a prompt shows; None if its answer cannot be read."""
        n = len(prompt.shown)
        if "value" in answer:
            return shares(answer["value"], n)
        return self.form.read(answer["text"], n)

    def _values(
        self,
        question: Question,
        passes: Sequence[Sequence[Wording]],
        answers: Mapping[Wording, Answer],
    ) -> Array:
        """Values (P, K) of the texts of a question by each pass, NaN for those that have none."""
        values = np.full((len(passes), len(question.texts)), np.nan)
        for row, prompts in zip(values, passes, strict=True):
            read = {p.shown: v for p in prompts if (v := self._read(p, answers[p])) is not None}
            if self.form.shows == "two":  # a pair in one order alone would prefer a place
                read = {pair: v for pair, v in read.items() if pair[::-1] in read}
            if self.form.shows != "one":
                self.counts.first |= {p.key: read[p.shown][0] for p in prompts if p.shown in read}
            sums, times = defaultdict[str, float](float), Counter[str]()
            for texts, of_texts in read.items():
                times.update(texts)
                for text, value in zip(texts, of_texts, strict=True):
                    sums[text] += value
            unknown = np.nan if prompts else 0.5  # for a comparison of equal texts
            row[:] = [sums[x] / times[x] if x in times else unknown for x in question.texts]
        return values

    def sizes(self, question: Question) -> list[tuple[float, bool]]:
        """Of the wordings of a question the tokens, about, and whether they are answered."""
        prompts = chain(*self._wordings(question))
        return [(prompt.n_tokens, prompt.key in self._store) for prompt in prompts]

    def said(self, question: Question) -> tuple[list[float | None], list[dict[str, str]]]:
        """What each pass says of the one chosen candidate, None where it is unread, and its errors.

        Of the form `errors` those of the first pass. Nothing where it was not asked about: nothing
        is asked here.
        """
        (k,), passes = question.chosen, self._wordings(question)
        if not all(prompt.key in self._store for prompt in chain(*passes)):
            return [], []
        answers = self._answered(chain(*passes), question.place)
        values = self._values(question, passes, answers)[:, k].tolist()
        texts = [answers[p]["text"] for p in passes[0] if self.form.name == "errors"]
        errors = [error._asdict() for text in texts for error in errors_of(text) or []]
        return [None if math.isnan(value) else value for value in values], errors

    def report(self) -> str:
        """What was asked, what it cost, and how far the answers agree, in a line."""
        return self.counts.to_text(self.title, self.settings.price)


def cost(read: float, written: float, price: tuple[float, float]) -> float:
    """What tokens that are read and written cost, at a price of a million."""
    return (read * price[0] + written * price[1]) / 1e6


@dataclass(slots=True)
class Counts:
    """What a judge was asked, in this run, and how its answers differ."""

    asked: int = 0
    readable: int = 0
    seen: dict[bytes, bool] = field(default_factory=dict)  # keys of answers: whether asked now
    guessed: bool = False  # whether a server has not said how many tokens some answers had
    seconds: float = 0.0
    read: float = 0.0
    written: float = 0.0
    expected: int = 0
    missing: float = 0.0
    retried: dict[Wording, bool] = field(default_factory=dict)  # whether in vain
    unread: str = ""  # a message about the first one that was in vain
    unasked: set[tuple[str, int]] = field(default_factory=set)  # sentences of documents
    first: dict[bytes, float] = field(default_factory=dict)  # of the candidate shown first, by key
    within: list[float] = field(default_factory=list)  # variances of candidates over passes
    between: list[float] = field(default_factory=list)  # and of means within sentences

    def add_passes(self, values: Array) -> None:
        """Add variances of the candidates (P, K) of a sentence, if all have a value."""
        if len(values) > 1 and not np.isnan(values).any():
            self.within += values.var(axis=0, ddof=1).tolist()
            if values.shape[1] > 1:
                self.between.append(float(values.mean(axis=0).var(ddof=1)))

    def to_text(self, title: str, price: tuple[float, float] | None) -> str:
        """`1,200 answers of gpt (rating) in 31.5 s, 300 from the cache; 51,000 tokens read, …`."""
        parts = [f"{self.asked:,} answers of {title} in {self.seconds:.1f} s"]
        if cached := sum(not asked for asked in self.seen.values()):
            parts[0] += f", {cached:,} from the cache"
        if self.asked:
            about = "about " * self.guessed
            parts.append(f"{about}{self.read:,.0f} tokens read, {self.written:,.0f} written")
            if price is not None:
                sum_ = cost(self.read, self.written, price)
                parts[-1] += f", at {price[0]:g}/{price[1]:g} a million {about}{sum_:.4g}"
        if self.expected:
            parts.append(f"{self.missing / self.expected:.1%} of the probability on other answers")
        if self.within:
            named = f"{math.sqrt(np.mean(self.within)):.3g} of a candidate over passes"
            if self.between:
                named += f", {math.sqrt(np.mean(self.between)):.3g} of the candidates of a sentence"
            parts.append(f"standard deviation {named}")
        if self.first:
            share = np.mean([*self.first.values()])
            parts.append(f"the one shown first wins {share:.0%} (50% without a preference)")
        if self.unasked:
            parts.append(f"{len(self.unasked):,} sentences not asked about")
        if self.retried:
            n, lost = len(self.retried), sum(self.retried.values())
            parts.append(f"answers that could not be read and were asked for again: {n:,}")
            parts[-1] += f", {lost:,} of them in vain: {self.unread}" if lost else ""
        return "; ".join(parts)


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
    of_servers = OF_SERVERS | ({"tokens"} if FORMS[chosen.form].answers else set())
    if not server and (unused := given.keys() & of_servers):
        raise ValueError(f"{min(unused)}= is not used by a model in a folder; leave it out")
    return target, chosen


def estimator_of(option: str, value: str) -> Estimator:
    """The estimator of `command:PROGRAM` or `judge:MODEL` behind an option, which ends in `=`."""
    kind, _, argument = value.partition(":")
    if kind == PROGRAM:
        return ProgramEstimator(f"{option}{kind}", argument, WITHOUT_WINDOW)
    keys = OF_METRICS if option.startswith("--metric") else OF_UTILITIES
    return Judge(f"{option}{kind}:", argument, keys)
