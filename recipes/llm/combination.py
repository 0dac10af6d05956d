"""A large language model beside the agreement of systems: with its context, without, and another's.

Weights are tuned on every other document and choose on the rest, both ways. The context is the
sentence before (order 1), so search is exact; a model is asked with a prompt that shows the source,
and without one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Protocol

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "systems"))
from rules import METRICS, TestSet, lines_of, nmt, of_folder, wmt23
from run import Half

from rerank.corpus.kbest import KBest
from rerank.formats.document_files import read_texts
from rerank.metrics.consensus import PairwiseChrf
from rerank.metrics.significance import sign_flip_p_value
from rerank.notices import Notices

XML = "wmt23-ru-en/wmttest2023.ru-en.all.xml.gz"
PROMPT = Path(__file__).with_name("translate.jinja")
SETS = {  # source language, source, documents that are taken
    "mqm": ("Chinese", "mqm-zh-en/src.zh", None),
    "guofeng": ("Chinese", "llm4-guofeng/src", None),
    "wmt23": ("Russian", XML, 40),
    "nmt": ("Chinese", "ted-zh-en/tst2010.zh", None),
}
FEATURE, KEPT = "llm", "kept"
PLAIN, PROMPTED = WAYS = "plain", "prompt"
NO_MODEL = "tuned without it"
Model = tuple[str, int] | None  # how it is asked, and how many sentences before it is shown
HEADS = ["set", "model", "chosen by", *METRICS, "p", "CPU minutes"]


class Commands(Protocol):
    """Commands of rerank, each of which is run once."""

    @property
    def work(self) -> Path: ...
    def once(self, name: str, *command: str) -> str: ...
    def minutes(self, name: str) -> float: ...


@dataclass(frozen=True)
class Part(Half):
    """Half of the documents of a set, with their source; ids: (T,) document of each sentence."""

    source: Sequence[str] = ()
    ids: Sequence[str] = ()


@dataclass(frozen=True)
class Combination:
    """A set of outputs of systems, and the language model behind `--lm llm=hf:`."""

    run: Commands
    name: str
    found: TestSet
    source: Sequence[str]
    language: str
    lm: str

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Every other document, and the rest."""
        made = []
        for h in (0, 1):
            kept = self.lines(h)
            half = self.found.half(f"{self.name}.{h}", kept, self.run.work)
            own = [self.source[t] for t in kept], [self.found.docids[t] for t in kept]
            self.write(f"{half.name}.source", own[0])
            made.append(
                Part(half.name, half.systems, half.docs, half.reference, half.objective, *own)
            )
        return tuple(made)

    def lines(self, h: int) -> list[int]:
        """The sentences of a half."""
        numbers = [d for d, (_, own) in enumerate(groupby(self.found.docids)) for _ in own]
        return [t for t, d in enumerate(numbers) if d % 2 == h]

    def write(self, name: str, lines: Sequence[object]) -> Path:
        """A file with these lines."""
        path = self.run.work / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    # Commands

    def options(self, model: Model, name: str) -> list[str]:
        """Options of a model for the half, or the lists, of a name."""
        if model is None:
            return []
        way, sentences = model
        lm = f"{FEATURE}=hf:{self.lm},sentences={sentences}"
        found = ["--cache", str(self.run.work / "cache"), "--threads", "1"]
        if way == PROMPTED:
            lm += f",prompt={PROMPT},source-language={self.language},target-language=English"
            found += ["--source", str(self.run.work / f"{name}.source")]
        return ["--lm", lm, *found]

    def scored(self, model: tuple[str, int]) -> float:
        """Put the scores of all candidates, after all, into the cache; the minutes it took."""
        way, sentences = model
        for part in self.parts:
            own = self.options(model, part.name)
            name = f"{part.name}.{way}.{sentences}.scored"
            self.run.once(name, "score", *part.lists, *own, "--shard", "1/1")
        return self.minutes(f"{way}.{sentences}.scored")

    def tuned(self, kind: str, model: Model = None) -> list[list[str]]:
        """Options of weights for each half, which are tuned on the other."""
        found = []
        for part in reversed(self.parts):
            path = str(self.run.work / f"{part.name}.{kind}.json")
            about = ["--ref", str(part.reference), "--tokenize", self.found.tokenize, "--out", path]
            own = [*part.lists, *about, *part.objective, *self.options(model, part.name)]
            self.run.once(f"{part.name}.{kind}.tuned", "tune-mert", *own)
            found.append(["--weights", path])
        return found

    def weights(self, **features: float) -> list[str]:
        """Options of weights that are not tuned."""
        values = {name: [value] for name, value in features.items()}
        lines = [json.dumps({"schema": 1, "weights": values})]
        path = self.write(f"{'.'.join(features)}.json", lines)
        return ["--weights", str(path), "--default-weight", "0"]

    def decoded(
        self, kind: str, choosing: Sequence[Sequence[str]], model: Model = None
    ) -> list[list[str]]:
        """The choices of each half; choosing: options of weights and search of each."""
        outs = []
        for part, own in zip(self.parts, choosing, strict=True):
            given = [*part.lists, *self.options(model, part.name), *own]
            outs.append(self.decode(f"{part.name}.{kind}", given))
        return outs

    def decode(self, name: str, options: Sequence[str]) -> list[str]:
        """The choices of a command."""
        out = self.run.work / f"{name}.out"
        self.run.once(f"{name}.decoded", "decode", *options, "--out", str(out))
        return lines_of(out)

    def minutes(self, kind: str) -> float:
        """Minutes of what was done with both halves."""
        return sum(self.run.minutes(f"{part.name}.{kind}") for part in self.parts)

    # Contexts that no search chooses

    def after(
        self,
        kind: str,
        choosing: Sequence[Sequence[str]],
        model: Model,
        outs: Sequence[Sequence[str]],
    ) -> list[list[str]]:
        """The choices of each half after what was chosen in another document: outs.

        Each sentence is a document of its own, after the sentence before it in the next document,
        whose only candidate is the one that was chosen.
        """
        found = []
        for h, (part, own) in enumerate(zip(self.parts, choosing, strict=True)):
            lists, stem = self.listed(part), f"{part.name}.{kind}"
            rows, docs, source, last = [], [], [], []
            for t, s in enumerate(others(part.ids)):
                if s is not None:
                    rows.append([next(x for x in lists[s] if x[1] == outs[h][s])])
                    source.append(part.source[s])
                rows.append(lists[t])
                source.append(part.source[t])
                docs += [str(t)] * (len(rows) - len(docs))
                last.append(len(rows) - 1)
            lines = [
                " ||| ".join([str(i), *x[1:]]) for i, several in enumerate(rows) for x in several
            ]
            self.write(f"{stem}.source", source)
            given = ["--kbest", str(self.write(f"{stem}.nbest", lines))]
            given += ["--docs", str(self.write(f"{stem}.docids", docs))]
            chosen = self.decode(stem, [*given, *self.options(model, stem), *own])
            found.append([chosen[i] for i in last])
        return found

    def listed(self, part: Part) -> list[list[list[str]]]:
        """The fields of the lines of each list in Moses' format, with the features of systems."""
        path = self.run.work / f"{part.name}.nbest"
        self.run.once(
            f"{part.name}.listed", "score", *part.lists, "--agreement", "--out", str(path)
        )
        fields = (line.split(" ||| ") for line in lines_of(path))
        return [[*own] for _, own in groupby(fields, key=lambda own: own[0])]

    def kept(self) -> list[list[str]]:
        """Options of a feature that is 0 for the half of the systems of highest mean chrF, else −1.

        So the candidates that minimum Bayes risk keeps are chosen among, in whole lists.
        """
        outputs = [*self.found.systems.values()]
        utility = PairwiseChrf(
            KBest.of([[(text, {}) for text in own] for own in zip(*outputs, strict=True)])
        )
        k = len(outputs)
        means = [utility.expected(t, np.full(k, 1 / k)) for t in range(len(outputs[0]))]
        scores = np.array(means).round(9)
        kept = scores >= np.sort(scores, axis=1)[:, [k // 2]]  # equal outputs are kept, or all left
        options = []
        for h, part in enumerate(self.parts):
            own: list[str] = []
            for system, column in zip(self.found.systems, kept.T, strict=True):
                values = [int(column[t]) - 1 for t in self.lines(h)]
                path = self.write(f"{part.name}.{system}.kept", values)
                own += ["--scores", f"{KEPT}={system}:{path}"]
            options.append(own)
        return options

    # Rows

    def rows(self, ways: Sequence[str]) -> tuple[list[list[str]], str]:
        """The rows of the set, and what `evaluate` says of documents where there is a reference.

        ways: in which the model is asked, of `WAYS`.
        """
        judge, one = "MQM" if self.found.mqm else "BLEU", np.random.default_rng(1)
        agreed = self.decoded("agreement", [[], []])
        baseline = self.decoded("lists", self.tuned("lists"))
        rival, score = self.found.judged(self.whole(baseline))[judge]

        files = []

        def row(way: str, kind: str, outs: Sequence[Sequence[str]], spent: float) -> list[str]:
            output = self.whole(outs)
            name = "-".join([self.name, way, *re.findall("[a-z]+", kind)])
            files.append(str(self.write(name, output)))
            scores, own = self.found.scores(output), self.found.judged(output)[judge][0]
            p = None if outs is baseline else sign_flip_p_value(own, rival, score, rng=one)
            cells = [f"{scores[x]:.2f}" if x in scores else "" for x in METRICS]
            p_cell, minutes = "" if p is None else f"{p:.4f}", f"{spent:.1f}" if way else ""
            return [self.name, way, kind, *cells, p_cell, minutes]

        rows = [row("", "agreement", agreed, 0), row("", NO_MODEL, baseline, 0)]
        for way in ways:
            rows += [row(way, kind, *found) for kind, found in self.outputs(way).items()]
        return rows, self.discourse(files, ways) if self.found.reference else ""

    def discourse(self, files: Sequence[str], ways: Sequence[str]) -> str:
        """Pronouns, connectives, tense, names and cohesion of all outputs but the second, to it."""
        docs = self.write(f"{self.name}.docids", self.found.docids)
        reference = self.write(f"{self.name}.ref", self.found.reference)
        given = ["--docs", str(docs), "--ref", str(reference), "--metric", "discourse"]
        given += ["--tokenize", self.found.tokenize, "--format", "markdown"]
        given += ["--baseline", files[1], files[0], *files[2:]]
        found = self.run.once(".".join([self.name, *ways, "discourse"]), "evaluate", *given)
        return found.replace(f"{self.run.work}/", "")

    def outputs(self, way: str) -> Mapping[str, tuple[list[list[str]], float]]:
        """What is chosen with a model that is asked in some way, and the minutes of its scores.

        Greedy search is first, which asks for few scores; exact search finds these in the cache.
        """
        null, own, greedy = (way, 0), (way, 1), ["--search", "greedy"]
        alone, kept = [self.weights(llm=1)] * 2, self.weights(llm=1, kept=1e6)
        half = [[*given, *kept] for given in self.kept()]
        in_steps = self.decoded(f"{way}.half.greedy", [[*one, *greedy] for one in half], own)
        of_steps = self.minutes(f"{way}.half.greedy.decoded")
        of_null, of_own = self.scored(null), of_steps + self.scored(own)
        without = self.decoded(f"{way}.null", self.tuned(f"{way}.null", null), null)
        tuned = self.tuned(f"{way}.own", own)
        exact = self.decoded(f"{way}.own", tuned, own)
        steps = self.decoded(f"{way}.greedy", [[*one, *greedy] for one in tuned], own)
        other = self.after(f"{way}.other", tuned, own, exact)
        return {
            "tuned, no context": (without, of_null),
            "tuned, own context, exact": (exact, of_own),
            "tuned, own context, greedy": (steps, of_steps),
            "these weights, no context": (
                self.decoded(f"{way}.emptied", tuned, null),
                of_null,
            ),
            "these weights, another's context": (other, self.minutes(f"{way}.other.decoded")),
            "alone, exact": (self.decoded(f"{way}.alone", alone, own), of_own),
            "alone, exact, half of the list": (self.decoded(f"{way}.half", half, own), of_own),
            "alone, greedy, half of the list": (in_steps, of_steps),
        }

    def whole(self, outs: Sequence[Sequence[str]]) -> list[str]:
        """The outputs of both halves in the order of the set."""
        lines = [""] * len(self.found.docids)
        for h in (0, 1):
            for t, line in zip(self.lines(h), outs[h], strict=True):
                lines[t] = line
        return lines


def others(ids: Sequence[str]) -> list[int | None]:
    """For each sentence the one before it in the next document, as if that went round; or none."""
    spans = [[t for t, _ in own] for _, own in groupby(enumerate(ids), key=lambda one: one[1])]
    found: list[int | None] = []
    for d, own in enumerate(spans):
        other = spans[(d + 1) % len(spans)]
        found += [None, *(other[i % len(other)] for i in range(len(own) - 1))]
    return found


def combination(
    run: Commands, name: str, data: Path, lm: str, documents: int | None
) -> Combination:
    """A set of DATA, or its first documents."""
    language, source, most = SETS[name]
    if name == "wmt23":
        found, texts = wmt23(data), read_texts(data / source, Notices())
        (own,) = texts.text("source").values() if texts else ([],)
        lines = [" ".join((line or b"").decode().split()) for line in own]
    else:
        found = nmt(data) if name == "nmt" else of_folder(data / Path(source).parent)
        lines = lines_of(data / source)
    most = most if documents is None else documents
    sizes = [len([*own]) for _, own in groupby(found.docids)]
    n = sum(sizes[:most])
    found = replace(
        found,
        docids=found.docids[:n],
        systems={of: own[:n] for of, own in found.systems.items()},
        reference=found.reference[:n],
        mqm={of: own[:n] for of, own in found.mqm.items()},
    )
    return Combination(run, name, found, lines[:n], language, lm)
