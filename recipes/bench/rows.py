"""Rows of the tables: one model on one set, ours and the scripts'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lists import Set, Text, made_up
from measuring import best, difference, peak_memory, products_share
from phases import Phase, phases
from tasks import TASKS, flops, hypotheses

from lm.model import Config, DocumentLM
from lm.scoring import ScoringEngine
from lm.vocabulary import Vocabulary

LONG, FEW, SOME = 500, 3, 50  # of lists this long: so many sentences, so many contexts


@dataclass(frozen=True, slots=True)
class Row:
    """One model on one set. Rates are hypotheses a second; memory in bytes.

    words_rate: of words and `</s>`. ratio, loop_ratio, good_ratio, best_ratio: our rate over that
    of a script, the obvious one, a loop over contexts, `good.py` and `best.py`; None where a model
    has no such script.
    """

    data: str
    model: str
    shape: str
    sentences: int
    hypotheses: int
    seconds: float
    rate: float
    words_rate: float
    script_rate: float | None
    ratio: float | None
    loop_rate: float | None
    loop_ratio: float | None
    good_rate: float
    good_ratio: float
    best_rate: float | None
    best_ratio: float | None
    tokens_per_node: float
    peak_memory: int | None
    flops_per_second: float
    share_of_peak: float
    products_share: float | None
    difference: float


@dataclass(frozen=True, slots=True)
class Bench:
    """How much of the lists is used, and what is measured beside the times."""

    texts: Sequence[Text]
    made_up: bool
    sentences: int
    sample: int
    contexts: int
    peak: float
    profile: bool

    def rows(
        self, model: DocumentLM, vocabulary: Vocabulary | None, source: Vocabulary | None
    ) -> Iterator[Row]:
        """The model on each set; without vocabularies, words have ids by frequency."""
        size, of_source = model.config.vocabulary, model.config.source_words is not None
        for text in self.texts:
            if text.sources or not of_source:
                yield self.row(model, text.encoded(vocabulary or text.vocabulary(size), source))
        if self.made_up and not of_source:
            yield self.row(model, made_up(size))

    def row(self, model: DocumentLM, data: Set) -> Row:
        """The model on one set, warmed up, ours first."""
        config, task = model.config, TASKS[model.config.model]
        data, long = self.head(model, data), _long(data)
        most = min(SOME, self.contexts) if long else self.contexts
        scorer, script = ScoringEngine.of(model), task.script(model)
        task.ours(scorer, data)
        seconds, scores = best(lambda: task.ours(scorer, data))
        n = hypotheses(config.model, data)
        rate, rates, differences = n / seconds, dict[str, float](), []
        per_hypothesis = data.tokens / sum(map(len, data.lists))
        ratio = lambda name: rate / rates[name] if name in rates else None  # noqa: E731
        for name, peer in task.peers.items():
            ready, limit = peer.ready(script), most if peer.limited else None
            peer.scores(ready, data.head(2), 2)
            peer_seconds, expected = best(lambda p=peer, m=ready, c=limit: p.scores(m, data, c))
            differences.append(difference(scores, expected))
            rates[name] = hypotheses(config.model, data, limit) / peer_seconds
        nodes = data.nodes() if config.model == "rnnlm" else sum(data.list_nodes())
        return Row(
            data=data.name,
            model=config.model,
            shape=shape_of(config),
            sentences=len(data.lists),
            hypotheses=n,
            seconds=seconds,
            rate=rate,
            words_rate=rate * per_hypothesis,
            script_rate=rates.get("script"),
            ratio=ratio("script"),
            loop_rate=rates.get("loop"),
            loop_ratio=ratio("loop"),
            good_rate=rates["good"],
            good_ratio=rate / rates["good"],
            best_rate=rates.get("best"),
            best_ratio=ratio("best"),
            tokens_per_node=data.tokens / nodes,
            peak_memory=peak_memory(model, data),
            flops_per_second=flops(config, data) / seconds,
            share_of_peak=flops(config, data) / seconds / self.peak,
            products_share=products_share(model, data) if self.profile else None,
            difference=max(differences),
        )

    def head(self, model: DocumentLM, data: Set) -> Set:
        """The sentences of a set that the model is measured on."""
        if model.config.model == "rnnlm":
            return data.head(self.sentences)
        return data.head(min(FEW, self.sample) if _long(data) else self.sample)

    def phases(self, model: DocumentLM, vocabulary: Vocabulary | None) -> Iterator[Phase]:
        """Where our time on the first set goes."""
        text = self.texts[0]
        data = text.encoded(vocabulary or text.vocabulary(model.config.vocabulary))
        yield from phases(model, self.head(model, data))

    def scaling(
        self, model: DocumentLM, vocabulary: Vocabulary | None
    ) -> Iterator[dict[str, object]]:
        """Seconds of ours on the first set with 10, 25, 50, 100 candidates of each sentence."""
        text = self.texts[0]
        whole = text.encoded(vocabulary or text.vocabulary(model.config.vocabulary))
        scorer, task = ScoringEngine.of(model), TASKS[model.config.model]
        for k in (10, 25, 50, 100):
            data = whole.head(self.sentences, k)
            task.ours(scorer, data)
            seconds, _ = best(lambda data=data: task.ours(scorer, data))  # type: ignore[misc]
            nodes = data.nodes()
            yield {
                "model": model.config.model,
                "shape": shape_of(model.config),
                "K": k,
                "distinct prefixes": nodes,
                "hypotheses": hypotheses(model.config.model, data),
                "seconds": seconds,
                "seconds per million prefixes": seconds / nodes * 1e6,
                "GFLOP/s": flops(model.config, data) / seconds / 1e9,
            }


def _long(data: Set) -> bool:
    return max(map(len, data.lists)) > LONG


def shape_of(config: Config) -> str:
    """How a shape is written: 128/10k."""
    sizes = {config.embed: None, config.hidden: None}  # one number if they are equal
    words = config.vocabulary
    thousands = f"{round(words / 1000)}k" if words >= 1000 else str(words)
    return f"{'-'.join(map(str, sizes))}/{thousands}" + ("" if config.tied else " untied")
