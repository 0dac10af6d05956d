"""The feature of a judge: its judgements of candidates, where they may matter to a choice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from decoders.problem import Array
from rerank.corpus.kbest import KBest, NamedLists
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.registry import JUDGE
from rerank.scorers.cached_scores import Choices
from rerank.scorers.features import FeatureSource, ScoredDocument
from rerank.scorers.judge import Judge, cost
from rerank.scorers.judge_options import OF_SCORERS, PRESETS, JudgeSettings
from rerank.scorers.programs import ProgramProblem, Question, Shown

STRANGE = 0.5  # of the probability, on other answers than those that are asked for
SAMPLE = 200  # questions by which costs are estimated
EXACT = 20_000  # questions that are looked up, whether they are answered already


class JudgeProblem(ProgramProblem):
    """A document under a judge; a state is the choices before that a question shows.

    asked: candidates of each sentence that are asked about, all others have the lowest judgement
    of these; where there are none all candidates have 0.
    """

    def __init__(
        self, kbest: KBest, judge: Judge, asked: Sequence[Sequence[int]], label: str
    ) -> None:
        settings = judge.settings
        before = settings.source_before + max(0, settings.window - 1)
        shown = Shown(settings.source, settings.order, before, settings.source_after)
        super().__init__(kbest, judge, shown, label=label)
        self._judge, self._settings, self.asked = judge, settings, asked
        self._rows: dict[tuple[int, Choices], Array] = {}  # of candidates, NaN where not asked yet

    def question(self, t: int, history: Choices, chosen: Sequence[int]) -> Question:
        """What is asked after a history; of a passage all of its sentences as one text."""
        question = super().question(t, history, chosen)
        if not self._settings.window:
            return question
        parts: dict[str, Any] = dict(question.parts)
        before = parts.pop("candidates_before", [])
        if self._settings.source:
            sources = [*parts.pop("sources_before", []), parts["source"]]
            begin = len(sources) - 1 - len(before)
            parts |= {"sources_before": sources[:begin], "source": "\n".join(sources[begin:])}
        texts = ["\n".join([*before, text]) for text in question.texts]
        return question._replace(parts=parts, texts=texts)

    def about(self, t: int, history: Choices, chosen: Iterable[int]) -> Question | None:
        """What is asked of candidates of sentence t after a history; None if nothing is."""
        asked = self.asked[t]
        places = [asked.index(k) for k in chosen if k in asked]
        if not places or not ends(t, len(self.lengths), self._settings):
            return None
        question = self.question(t, history, asked)
        return question._replace(texts=[question.texts[k] for k in asked], chosen=places)

    def scores(self, t: int, wanted: Sequence[tuple[Choices, Sequence[int]]]) -> Array:
        """Scores (n,) of candidates of sentence t, each after a history; no others are asked about.

        But for all of a list that is ranked, or of which some have the lowest judgement.
        """
        k = self.lengths[t]
        whole = not self.order or self._judge.form.shows != "one" or len(self.asked[t]) < k
        lacking: dict[Choices, set[int]] = {}
        for history, chosen in wanted:
            row = self._rows.setdefault((t, history), np.full(k, np.nan))
            new = {j for j in (range(k) if whole else chosen) if np.isnan(row[j])}
            lacking.setdefault(history, set()).update(new)
        questions = {h: self.about(t, h, sorted(new)) for h, new in lacking.items() if new}
        about = [question for question in questions.values() if question is not None]
        judge = self._judge.of if self.order else self._judge.judged
        judged = iter(judge(about, about[0].place if about else ""))
        for history, question in questions.items():
            row, places = self._rows[t, history], () if question is None else question.chosen
            values = [next(judged) for _ in places]
            row[[self.asked[t][place] for place in places]] = values
            # without a judgement of all that were asked about there is none
            if whole or not values:
                unknown = np.isnan(values).any() or not values
                row[:] = 0.0 if unknown else np.fmax(row, min(values))
        return np.concatenate([self._rows[t, history][[*chosen]] for history, chosen in wanted])


def ends(t: int, n: int, settings: JudgeSettings) -> bool:
    """Whether a passage ends with sentence t of n: each full one of a stride, and the last."""
    full = t + 1 - settings.window
    return not settings.window or t == n - 1 or (full >= 0 and full % settings.stride == 0)


class JudgeScorer(FeatureSource):
    """The feature of `--scorer NAME=judge:MODEL`, of order `before` or `window` − 1."""

    slow_unit = "questions"

    def __init__(
        self, name: str, argument: str, cache: Cache | None, of_models: Mapping[str, Any]
    ) -> None:
        self.judge = Judge(f"--scorer {name}={JUDGE}:", argument, OF_SCORERS)
        self.judge.keep_in(cache, of_models)
        settings = self.judge.settings
        super().__init__(name, order=settings.order)
        self.side_information, self.digest = self.judge.side_information, self.judge.digest
        self.chosen = {**self.judge.facts, "form": settings.form}
        self.cacheable, self.preset = cache is not None, PRESETS[settings.form]

    @property
    def seconds(self) -> float:
        """Time that answers have taken so far."""
        return self.judge.counts.seconds

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over lists of k candidates."""
        return float(k**self.judge.settings.order)

    def n_asked(self, counts: Sequence[int], most: float) -> float:
        """Most questions about lists; a list of n candidates is one question, a pair two."""
        settings, shows = self.judge.settings, self.judge.form.shows
        asked = [min(k, settings.top or k) for k in counts]
        each = [k if shows == "one" else k > 1 if shows == "all" else k * (k - 1) for k in asked]
        return settings.passes * sum(
            n * min(most, math.prod(counts[max(0, t - settings.order) : t]))
            for t, n in enumerate(each)
            if ends(t, len(counts), settings)
        )

    def price(self, n: float, documents: Iterable[NamedLists]) -> str:
        """`, about 2,100,000 tokens read and 28,000 written, for 0.33`, by some first questions."""
        found: list[tuple[float, bool]] = []
        whole = self.order == 0 and n <= EXACT
        for name, kbest in documents:
            problem = self._problem(name, kbest)
            for t, k in enumerate(problem.lengths):
                history = (0,) * min(t, self.order or 0)
                if question := problem.about(t, history, range(k)):
                    found += self.judge.sizes(question)
            if len(found) >= SAMPLE and not whole:
                break
        known = sum(answered for _, answered in found) if whole else 0
        n = len(found) - known if whole else n
        read = n * float(np.mean([size for size, _ in found] or [0]))
        written = n * self.judge.form.written
        price = self.judge.settings.price
        sum_ = f", for {cost(read, written, price):.3g}" if price else ""
        of_them = f", {known:,} of them answered already; the rest" * bool(known)
        return f"{of_them}, about {read:,.0f} tokens read and {written:,.0f} written{sum_}"

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document; at order 0 all is asked at once."""
        self.judge.progress = self.progress
        problems = [self._problem(*named) for named in documents]
        for problem, (name, _) in zip(problems, documents, strict=True):
            unasked = ((name, t) for t, asked in enumerate(problem.asked) if not asked)
            self.judge.counts.unasked.update(unasked)
        if self.order == 0:
            about = (p.about(t, (), range(k)) for p in problems for t, k in enumerate(p.lengths))
            self.judge.ask(filter(None, about), f"{len(documents):,} documents")
        return [
            ScoredDocument(problem, np.zeros((kbest.n, 0)))
            for problem, (_, kbest) in zip(problems, documents, strict=True)
        ]

    def _problem(self, name: str, kbest: KBest) -> JudgeProblem:
        return JudgeProblem(kbest, self.judge, self._asked(kbest), f"document {name!r}")

    def _asked(self, kbest: KBest) -> list[list[int]]:
        """The candidates of each sentence that are asked about, where it may matter.

        By the lists' totals, or by agreement where there are none: the `top` best ones, and none
        where the best one is better than the second by the `margin`. At order 0 none, either, where
        all texts are equal.
        """
        settings, asked = self.judge.settings, []
        values = None
        if settings.top is not None or settings.margin is not None:
            from rerank.scorers.agreement import agreement_of

            stated = kbest.n and kbest.totals is not None and np.ptp(kbest.totals) > 0
            values = kbest.totals if stated else agreement_of(kbest, None)
        for t in np.flatnonzero(kbest.counts).tolist():
            rows = kbest.rows(t)
            texts, chosen = [kbest.text(row) for row in rows], [*range(len(rows))]
            if values is not None:
                of_texts: dict[bytes, float] = {}
                for text, value in zip(texts, values[rows.start : rows.stop].tolist(), strict=True):
                    of_texts[text] = max(value, of_texts.get(text, -math.inf))
                best = sorted(of_texts, key=lambda text: -of_texts[text])
                gaps = [of_texts[best[0]] - of_texts[text] for text in best[1:2]]
                clear = any(gap >= (settings.margin or math.inf) for gap in gaps)
                chosen = [] if clear else [k for k in chosen if texts[k] in best[: settings.top]]
            if self.order == 0 and len({texts[k] for k in chosen}) < 2:
                chosen = []
            asked.append(chosen)
        return asked

    def count(self, kbest: KBest, choices: Sequence[int]) -> Mapping[str, Sequence[object]]:
        """`judged`, what each pass says of the choice, and `errors`, of the form of this name."""
        if not kbest.n:
            return {}
        problem, judged, errors = self._problem("", kbest), [], []
        for t, k in enumerate(choices):
            question = problem.about(t, tuple(choices[max(0, t - problem.order) : t]), [k])
            by_pass, found = ([], []) if question is None else self.judge.said(question)
            judged.append([{"judge": self.name, "passes": by_pass}] if by_pass else [])
            errors.append([{"judge": self.name, **error} for error in found])
        listed = {"errors": errors} if self.judge.form.name == "errors" else {}
        return {"judged": judged, **listed}

    def finish(self, source: str, notices: Notices) -> None:
        """Add a warning of a model that answers otherwise than it is asked to."""
        counts = self.judge.counts
        if counts.expected and (share := counts.missing / counts.expected) > STRANGE:
            notices.add("other-answers", source=source, name=self.name, share=f"{share:.0%}")

    def summary(self) -> Mapping[str, object]:
        """`judges`: the report, by name."""
        return {"judges": {self.name: self.judge.report()}}

    def report(self) -> str:
        """`judge: 1,200 answers of gpt (rating) in 31.5 s, …`."""
        return f"{self.name}: {self.judge.report()}"
