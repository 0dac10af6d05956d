"""Results of a decoding, document by document: what was chosen, as text and as JSON, and why.

The file of `decode --trace` has one JSON object a line, a line for each sentence with candidates:

- `document`, `sentence` (in its document, from 0), `source` (if side information has it);
- `chosen`, `first`, `runner_up`: index in the file's list of the choice, of the first candidate,
  and of the best candidate with another text in the same context; `texts`: what they say;
- `total`, `features` and `weighted`: of the chosen candidate in the context of the decoded other
  sentences, feature values and what each adds to the total (`sparse`: all sparse features);
- `over_first`, `over_runner_up`: what each feature adds to the choice less what it adds to these;
- `margin`: the total minus that of the runner-up, which stands after the same earlier sentences
  (before the same later ones, for scorers that read documents from the last sentence); what it
  changes in other sentences does not count, so that it can be below 0;
- `path_margin`: the score of the best path through the chosen candidate minus that of the best
  path through one with another text; only where scores depend on one sentence before at most;
- `alone`: the choice without context, `chosen` and `text`, and its `lead`, how much larger its
  total is there than that of the decoded choice; only where scores depend on other sentences, and
  exist without them, too: not with --pair-scores;
- `systems`: names of those whose output the choice is, and `outputs`, the text of each;
  `first_engine`: the system that was given first; only of lists made by `--systems`;
- `agreements`: of each system what the feature `agreement` of its output is the sum of, in the
  sentence and of the system in all sentences;
- `models` and `scorers`: of `--lm` and `--scorer`, by name, what a weights file states of them:
  model, digests, prompt and its digest, a program's name and version; `programs`: the same of one
  that computes the utility of a search;
- `defects`: with `--defects avoid`, of which kinds candidates of the sentence are that are no
  translations, and how many;
- `judged`: `judge` and what each of its `passes` says of the choice, null for an unread answer;
- `errors`: what judges of the form errors have found in the choice: `judge`, `span`, `category` and
  `severity` of each;
- `terms`: with `--glossary`, those of the source sentence, each `[term, translations, kept]`;
- `run`: of the first line, what made the file: `rerank`, its version, `command`, a line for a
  shell, and `inputs`, name and digest of each file that was read;
- `marginal`, the probability of the chosen candidate, and `marginals`, of every one that was kept,
  in the order of the file; only of a search that has a posterior.

Null stands for values that do not exist: the margin over no other possible text, a marginal
without a possible path. Scores and margins are in natural logarithms, weighted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from decoders.marginals import is_chain, max_marginals
from decoders.result import NO_CANDIDATES, Direction, SearchResult
from rerank.corpus.columns import column_names
from rerank.corpus.documents import DocumentFile
from rerank.corpus.kbest import KBest
from rerank.corpus.reading import AS_NFC, AS_SOURCE
from rerank.files.paths import FilePath
from rerank.files.signature import LENGTH, short_digest, signature
from rerank.formats.run_records import first_named
from rerank.formats.table import lines_of
from rerank.runs.lists import LineWriter, ListSource, digest_of_ids
from rerank.runs.run import Run
from rerank.runs.search import Search
from rerank.scorers.agreement import votes_of
from rerank.scorers.features import (
    DocumentFeatures,
    FeatureSource,
    have_contexts,
    lacking_scores_without_context,
    without_context,
)
from rerank.table import Column, Table

Array = NDArray[np.float64]
NO_SYSTEMS: Mapping[str, str] = MappingProxyType({})
NOTHING_STATED: Mapping[str, object] = MappingProxyType({})
_DIRECTIONS = {
    Direction.REVERSED: "from the last sentence to the first",
    Direction.BOTH: "of models in both directions",
}


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """Result of a search in one document, and where its candidates stand in the lists.

    systems: of each sentence, names of those whose output was chosen; empty of other lists.
    search: of the sentences that have candidates; ranks: of each path found, best first, the index
    in the input's list of every sentence's candidate, None where a sentence has none; texts: of the
    chosen candidates, only of documents in memory; engines: of lists of systems, how many choices
    are the output of each; changed: sentences whose text is not that of the first candidate.
    """

    id: str
    search: SearchResult
    ranks: tuple[tuple[int | None, ...], ...]
    texts: tuple[str, ...] = ()
    engines: Mapping[str, int] = field(default_factory=dict)
    systems: tuple[tuple[str, ...], ...] = ()
    changed: int = 0

    @classmethod
    def of(
        cls,
        name: str,
        kbest: KBest,
        search: SearchResult,
        texts: tuple[str, ...] = (),
        systems: Mapping[str, str] = NO_SYSTEMS,
    ) -> Self:
        """The result of a document with these lists, of which a search saw those not empty.

        systems: name of each system by the label of its indicator feature.
        """
        filled = np.flatnonzero(kbest.counts).tolist()
        ranks = []
        for path in search.paths:
            of_path: list[int | None] = [None] * len(kbest)
            for t, k in zip(filled, path.choices, strict=True):
                of_path[t] = int(kbest.ranks[kbest.rows(t)[k]])
            ranks.append(tuple(of_path))
        names, changed = column_names(kbest.labels), 0
        columns = [(name, names.index(label)) for label, name in systems.items() if label in names]
        engines: list[tuple[str, ...]] = [()] * len(kbest)
        for t, k in zip(filled, search.choices, strict=True):
            first, row = kbest.rows(t)[0], kbest.rows(t)[k]
            changed += k > 0 and kbest.text(first) != kbest.text(row)
            engines[t] = tuple(name for name, f in columns if kbest.dense[row, f])
        counts = Counter(chain.from_iterable(engines))
        shares = {system: counts[system] for system in systems.values() if kbest.n}
        chosen = tuple(engines) if systems else ()
        return cls(name, search, tuple(ranks), texts, shares, chosen, changed)

    @property
    def choices(self) -> tuple[int | None, ...]:
        """Index in the input's list of each sentence's choice; None where it has no candidates."""
        return self.ranks[0]

    @property
    def score(self) -> float:
        """Score of the path found."""
        return self.search.score

    @property
    def baseline_score(self) -> float:
        """Score of the first candidates."""
        return self.search.baseline_score

    @property
    def best_score(self) -> float:
        """Score of the best path known, the optimum if `optimal`."""
        return self.search.best_score

    @property
    def optimal(self) -> bool:
        """Whether `best_score` is known to be the highest score of all paths."""
        return self.search.optimal

    @property
    def exact(self) -> bool:
        """Whether the search is sure to have found a path of the highest score."""
        return self.search.exact

    @property
    def near_ties(self) -> int | None:
        """Number of choices that lead by less than the error of the scores."""
        return self.search.near_ties

    @property
    def margins(self) -> tuple[float | None, ...]:
        """Lead of each choice over the best candidate of another text, in the document's score.

        Where scores depend on more than one earlier sentence, in that of the sentence alone; below
        0 if the other sentences decided against it, infinite if there is no other text.
        """
        known = iter(self.search.clearest_margins or ())
        return tuple(None if choice is None else next(known, None) for choice in self.choices)

    def table(self) -> Table:
        """A row for each sentence."""
        columns: list[tuple[Column, Sequence[Any]]] = [
            (Column("document"), [self.id] * len(self.choices)),
            (Column("sentence", "d"), range(len(self.choices))),
            (Column("choice", "d"), self.choices),
            (Column("margin", ".4g"), self.margins),
        ]
        if self.systems:
            columns.append((Column("systems"), [", ".join(names) for names in self.systems]))
        columns.append((Column("text"), self.texts or [""] * len(self.choices)))
        return Table.by_columns(columns)

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return self.table().to_html()

    def to_dict(self) -> dict[str, object]:
        """The document in a `--summary`."""
        search, (first, *further) = self.search, self.ranks
        return {
            "id": self.id,
            "score": finite(search.score),
            "baseline_score": finite(search.baseline_score),
            "best_score": finite(search.best_score),
            "best": "optimum" if search.optimal else "best known",
            "gap": finite(search.gap),
            "exact": search.exact,
            "search": search.decoder,
            "direction": search.direction,
            "near_ties": search.near_ties,
            "log_normaliser": search.log_normaliser,
            "choices": list(first),
            **({"engines": dict(self.engines)} if self.engines else {}),
            "further": [
                {"score": finite(path.score), "choices": list(choices)}
                for path, choices in zip(search.paths[1:], further, strict=True)
            ],
        }


class DocumentResults(list[DocumentResult]):
    """The results of documents, which show themselves in notebooks."""

    def _repr_html_(self) -> str:
        """One table of all sentences."""
        if not self:
            return "no documents"
        tables = [result.table() for result in self]
        return Table(tables[0].columns, [row for table in tables for row in table.rows]).to_html()


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """Results of all documents, and their totals.

    signature: of the run; approximate: whether a feature is, whatever the search.
    """

    documents: tuple[DocumentResult, ...]
    signature: str = ""
    approximate: bool = False

    def totals(self) -> dict[str, Any]:
        """Sums over the documents, and what is known of all of them."""
        searches = [document.search for document in self.documents]
        choices = [choice for document in self.documents for choice in document.choices]
        near_ties = [search.near_ties for search in searches]
        names = ("score", "baseline_score", "best_score", "gap")
        engines = Counter[str]()
        for document in self.documents:
            engines.update(document.engines)
        return {
            **{name: sum((getattr(search, name) for search in searches), 0.0) for name in names},
            "best": "optimum" if all(search.optimal for search in searches) else "best known",
            "exact": all(search.exact for search in searches),
            "sentences": len(choices),
            "changed": sum(document.changed for document in self.documents),
            "near_ties": None if None in near_ties else sum(n or 0 for n in near_ties),
            **({"first_engine": next(iter(engines)), "engines": dict(engines)} if engines else {}),
        }

    def to_dict(self) -> dict[str, object]:
        """The `--summary` object."""
        totals = self.totals()
        return {
            "schema": 1,
            "signature": self.signature,
            "documents": [document.to_dict() for document in self.documents],
            **{n: finite(v) if isinstance(v, float) else v for n, v in totals.items()},
        }

    def to_text(self) -> str:
        """One line for people."""
        searches = sorted({document.search.decoder for document in self.documents})
        ways = {document.search.direction for document in self.documents} - {Direction.FORWARD}
        total = self.totals()
        share = f" ({total['changed'] / total['sentences']:.1%})" if total["sentences"] else ""
        engines = sorted(total.get("engines", {}).items(), key=lambda share: -share[1])
        shares = ", ".join(f"{name} {n / total['sentences']:.1%}" for name, n in engines)
        first = first_named(total.get("first_engine")) + ":" * bool(engines)
        return (
            f"{len(self.documents)} documents, {total['sentences']} sentences, {total['changed']} "
            f"changed{share}; model score {total['score']:.3f} ({first} "
            f"{total['baseline_score']:.3f}, {total['best']} {total['best_score']:.3f}, gap "
            f"{total['gap']:.3f}); search {', '.join(searches)}, "
            f"{''.join(f'{_DIRECTIONS[way]}, ' for way in sorted(ways))}"
            + ("approximate" if self.approximate else "exact" if total["exact"] else "not exact")
            + (f"\nchosen: {shares}; equal texts count for each of their engines" if shares else "")
        )


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Features (n, F) and totals (n,) of a document's candidates under the path found.

    weights: (F,); result: the search's, with margins and near-ties; runners_up: row of each
    sentence's best candidate whose text is not that of the choice, None without one; alone: totals
    (n,) without context, None where no score depends on other sentences, one has no value without
    them, as of --pair-scores, or they were not asked for.
    """

    kbest: KBest
    document: DocumentFeatures
    weights: Array
    features: Array
    totals: Array
    result: SearchResult
    runners_up: tuple[int | None, ...]
    alone: Array | None = None

    @classmethod
    def of(
        cls,
        kbest: KBest,
        document: DocumentFeatures,
        weights: Array,
        result: SearchResult,
        scorers: Sequence[FeatureSource],
    ) -> Trace:
        """The trace under weights (F,).

        O(n F) and a sort of each list; on order 1 two passes over all pairs, and another sort.
        """
        choices = result.choices
        with np.errstate(over="ignore"):  # sums below −1.8e308 are −inf
            features = document.under(choices)
            totals = features @ weights + document.sparse
            lists = np.split(totals, document.offsets[1:-1]) if choices else []
            problem = document.problem(weights)
            best = max_marginals(problem) if is_chain(problem) else None
        rows = document.chosen_rows(choices).tolist()
        margins, runners_up = _margins(kbest, lists, choices, rows)
        path_margins = None if best is None else _margins(kbest, best, choices, rows)[0]
        result = replace(result, margins=margins, path_margins=path_margins)
        # the score of a document may be wrong by Σ |weight| · error of a sentence, times S, and so
        # may that of any other path
        columns = list(document.space.contextual)
        errors = np.array([scorer.error for scorer in scorers])
        of_sentence = float(np.abs(weights[columns]) @ errors) if columns else 0.0
        error = len(document.present) * of_sentence
        near = sum(abs(margin) < 2 * error for margin in result.clearest_margins or ())
        result = replace(result, near_ties=near)
        return cls(kbest, document, weights, features, totals, result, runners_up)

    def with_totals_alone(self, scorers: Sequence[FeatureSource]) -> Trace:
        """With the totals that candidates have in no context; a pass over the lists."""
        if not have_contexts(scorers) or lacking_scores_without_context(scorers):
            return self
        features = without_context(self.document, scorers, self.kbest)
        with np.errstate(over="ignore"):
            return replace(self, alone=features @ self.weights + self.document.sparse)

    def records(
        self,
        systems: Mapping[str, str],
        lists: Collection[str] = (),
        counted: Mapping[str, Sequence[object]] = MappingProxyType({}),
        stated: Mapping[str, object] = NOTHING_STATED,
    ) -> Iterator[dict[str, Any]]:
        """The JSON object of each sentence with candidates.

        systems: name of each system by the label of its indicator feature; lists: names of those
        among them that are merged lists, which have many texts; counted: what scorers say of each
        sentence (`FeatureSource.count`); stated: of the scorers (`Scorers.entries`).
        """
        kbest, document, result = self.kbest, self.document, self.result
        names = column_names(document.space.labels)
        columns = zip(names, self.features.T, strict=True)
        indicators = [(systems[name], column) for name, column in columns if name in systems]
        margins, path_margins, posterior = result.margins or (), result.path_margins, None
        if result.posterior is not None and not result.posterior.extinct:
            posterior = result.posterior.marginals
        weighted, added = self.features * self.weights, (*names,)
        if kbest.sparse.names:
            weighted, added = np.column_stack([weighted, document.sparse]), (*names, "sparse")
        sources = kbest.side.get("source")
        rows = document.chosen_rows(result.choices).tolist()
        for s, (t, row) in enumerate(zip(document.present.tolist(), rows, strict=True)):
            first, stop = document.offsets[s : s + 2].tolist()
            other, marginals = self.runners_up[s], None if posterior is None else posterior[s]
            places = {"chosen": row, "first": first, "runner_up": other}
            record = {
                "document": document.name,
                "sentence": t,
                "source": None if sources is None else sources[t].decode(),
                **{
                    name: None if place is None else int(kbest.ranks[place])
                    for name, place in places.items()
                },
                "texts": {
                    name: None if place is None else kbest.text(place).decode()
                    for name, place in places.items()
                },
                "total": finite(self.totals[row]),
                "features": _named(names, self.features[row]),
                "weighted": _named(added, weighted[row]),
                "over_first": _named(added, _difference(weighted, row, first)),
                "over_runner_up": (
                    None if other is None else _named(added, _difference(weighted, row, other))
                ),
                "margin": finite(margins[s]),
                "path_margin": None if path_margins is None else finite(path_margins[s]),
                "alone": self._alone(row, first, stop),
                "marginal": None if marginals is None else float(marginals[result.choices[s]]),
                "marginals": None if marginals is None else marginals.tolist(),
            }
            if systems:
                record["first_engine"] = next(iter(systems.values()))
                record["systems"] = [name for name, values in indicators if values[row]]
                record["outputs"] = {
                    name: kbest.text(first + int(values[first:stop].argmax())).decode()
                    for name, values in indicators
                    if name not in lists and values[first:stop].any()
                }
            by_scorers = {key: by_sentence[s] for key, by_sentence in counted.items()}
            yield {**record, **by_scorers, **stated}

    def agreement(self) -> list[float | None]:
        """Mean chrF2 of each choice against the other candidates; None where there are none."""
        from rerank.metrics.agreement import chosen_agreement  # numba

        rows = self.document.chosen_rows(self.result.choices).tolist()
        return chosen_agreement(self.kbest, votes_of(self.kbest), rows)

    def _alone(self, row: int, first: int, stop: int) -> dict[str, object] | None:
        """The choice of a sentence without context: the decoded one, a row, if none is better."""
        totals = self.alone
        if totals is None:
            return None
        best = first + int(totals[first:stop].argmax())
        if totals[best] == totals[row]:
            best = row
        lead = 0.0 if best == row else finite(float(totals[best] - totals[row]))
        text = self.kbest.text(best).decode()
        return {"chosen": int(self.kbest.ranks[best]), "text": text, "lead": lead}


class ModelUse:
    """How many choices depend on each language model, counted a document at a time."""

    def __init__(self, scorers: Sequence[FeatureSource], models: Sequence[FeatureSource]) -> None:
        self._models = {scorers.index(model): model.name for model in models}
        self._weights, self._counts = np.zeros(len(models)), np.zeros(len(models), np.int64)
        self._sentences = 0

    def add(self, document: DocumentFeatures, choices: Sequence[int], weights: Array) -> None:
        """Count the choices of a document under weights (F,)."""
        columns = [document.space.contextual[place] for place in self._models]
        self._weights = weights[columns]
        self._counts += document.depending(choices, weights, columns)
        self._sentences += len(choices)

    def to_text(self) -> str:
        """Which models contribute nothing; '' for none."""
        from rerank.metrics.significance import idle  # numba

        figures = zip(
            self._models.values(), self._weights.tolist(), self._counts.tolist(), strict=True
        )
        return idle(list(figures), self._sentences)


def _margins(
    kbest: KBest, lists: Sequence[Array], choices: Sequence[int], rows: Sequence[int]
) -> tuple[tuple[float, ...], tuple[int | None, ...]]:
    """Lead of each choice over the best candidate of another text, and the row of that.

    lists: (K,) scores of the candidates of each sentence; rows: of the choices. +inf without a
    possible candidate of another text; of equal candidates the first is the best. Texts are
    compared from the best candidate on, until one differs.
    """
    margins, runners_up = list[float](), list[int | None]()
    for scores, choice, row in zip(lists, choices, rows, strict=True):
        chosen, start = kbest.text(row), row - choice
        ranked = np.argsort(-scores, kind="stable").tolist()
        other = next((k for k in ranked if k != choice and kbest.text(start + k) != chosen), None)
        best = -math.inf if other is None else float(scores[other])
        margins.append(math.inf if best == -math.inf else float(scores[choice]) - best)
        runners_up.append(None if other is None else start + other)
    return tuple(margins), tuple(runners_up)


def _difference(weighted: Array, row: int, other: int) -> Array:
    """What each feature adds to a candidate less what it adds to another; −inf − −inf is 0."""
    lead = np.zeros(weighted.shape[1])
    np.subtract(weighted[row], weighted[other], out=lead, where=weighted[row] != weighted[other])
    return lead


def _named(names: Sequence[str], values: Array) -> dict[str, float | None]:
    return dict(zip(names, map(finite, values.tolist()), strict=True))


def finite(value: float) -> float | None:
    """A number for JSON: None if it is infinite or NaN."""
    return float(value) if math.isfinite(value) else None


def write_list(
    source: ListSource,
    write: LineWriter,
    kbest: KBest,
    document: DocumentFeatures | None,
    choices: Sequence[int],
    *,
    weights: Array | None = None,
) -> int:
    """Write a document's lines with features under a path and, given weights, totals.

    document: None without any candidates, for which JSON lines have lines, too.
    Returns in how many sentences another total is larger than that of the path's candidate.
    """
    kbest = source.with_annotations(kbest)
    names: list[str] = []
    added, totals = np.zeros((kbest.n, 0)), None
    if document is not None:
        space = document.space
        features = document.under(choices)
        totals = None if weights is None else features @ weights + document.sparse
        added = features[:, space.list_width :]
        names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
    first_id = source.lists.first_id
    write(lines_of(source.format, kbest, source.documents, names, added, totals, first_id=first_id))
    if document is None or totals is None or not len(document.present):
        return 0
    largest = np.maximum.reduceat(totals, document.offsets[:-1])
    return int((largest > totals[document.chosen_rows(choices)]).sum())


def signature_of(
    run: Run[ListSource],
    search: Search,
    result: CorpusResult,
    *,
    weights: FilePath | None,
    default_weight: float | None,
) -> str:
    """The signature of a decoding under the weights of a file."""

    def digests(scorers: Sequence[FeatureSource]) -> str | None:
        return ",".join(f"{scorer.name}={scorer.digest[:LENGTH]}" for scorer in scorers) or None

    searches = [document.search for document in result.documents]
    exact = "approximate" if result.approximate else all(search.exact for search in searches)
    searches = [search for search in searches if search.decoder != NO_CANDIDATES.decoder]
    decoders = sorted({search.decoder for search in searches})
    ways = sorted({search.direction for search in searches})
    lists, models, machine = run.source.lists, run.scorers_by_kind.models, run.options.machine
    docs = short_digest(lists.docs)
    if lists.made and lists.docs is None:
        docs = digest_of_ids(run.source.documents)[:LENGTH]
    return signature(
        {
            "search": "+".join(decoders),
            **search.signed(decoders),
            "exact": exact,
            "k": "all" if lists.top is None else lists.top,
            "norm": AS_NFC if lists.in_nfc else None,
            "missing": AS_SOURCE if lists.missing == AS_SOURCE else None,
            "ctx": "all" if run.scorers_by_kind.order is None else run.scorers_by_kind.order,
            "dir": None if set(ways) <= {Direction.FORWARD} else "+".join(ways),
            "lm": digests(models),
            "scores": digests(run.scorers_by_kind.score_files),
            "scorers": digests(run.scorers_by_kind.plugins),
            "terms": run.scorers_by_kind.glossary and run.scorers_by_kind.glossary.digest[:LENGTH],
            "dtype": machine.dtype if models and machine.dtype != "float32" else None,
            "det": True if models and machine.deterministic else None,
            "w": run.scorers_by_kind.agreement and run.scorers_by_kind.agreement.name
            if weights is None
            else short_digest(weights),
            "dw": default_weight,
            "docs": lists.no_docs or docs,
            "field": lists.docs.field if isinstance(lists.docs, DocumentFile) else None,
        }
    )
