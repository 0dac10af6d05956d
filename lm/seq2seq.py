"""Sequence-to-sequence models of Hugging Face: how they score translations.

Each source is encoded once. The distinct prefixes of its translations are read as a prefix tree,
level by level: a token each, with the key–value pairs of its parent, so that any decoder that can
generate can score; last tokens are predicted but never read. Where every source has one
translation, there is no prefix to share, and one pass reads whole translations.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import Backend
from lm.causal import STORED, cache_argument, check_scores
from lm.causal_folder import (
    SEQ2SEQ,
    CausalFolderError,
    LoraAdapter,
    check_tokenizer,
    folder_digest,
    open_folder,
    positions_of,
)
from lm.scoring import EngineCounts
from lm.trie import Candidates, Indices, build

VERSION = 1  # of scores: to be raised whenever they change
_CODE = re.compile(r"[a-z]{2,3}_[A-Za-z]{2,4}")  # special tokens of languages: zho_Hans, en_XX
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_MARIAN = re.compile(r">>(.+)<<")
_NAMED = 3  # languages in a message
Ids = tuple[int, ...]


class SourceAndTarget(NamedTuple):
    """Input of the encoder and labels of the decoder, special tokens included.

    context: number of labels, after the special ones before a text, that are not scored.
    """

    source: Ids
    target: Ids
    context: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """Special tokens before and after a text."""

    before: Ids = ()
    after: Ids = ()

    def around(self, parts: Sequence[Sequence[int]]) -> Ids:
        """The tokens of all parts, one after the other, in the frame."""
        return (*self.before, *chain.from_iterable(parts), *self.after)

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


@dataclass(frozen=True, slots=True, eq=False)
class TranslationTexts:
    """Tokenizer and frames; positions: most tokens of a text; digest: SHA-256 of all files."""

    tokenizer: Any
    digest: str
    positions: int
    source: Frame
    target: Frame

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[int]]:
        """Ids of the tokens of sources or translations, without special tokens."""
        return _encode(self.tokenizer, texts, target=target, special=False) if texts else []

    def knows(self, letter: str, *, target: bool) -> bool:
        """Whether a letter of a source or translation is read as neither unknown nor bytes."""
        (ids,) = self.encode([letter], target=target)
        names = self.tokenizer.convert_ids_to_tokens(ids)
        return self.tokenizer.unk_token_id not in ids and not any(map(_BYTE.fullmatch, names))


@dataclass(frozen=True, slots=True, eq=False)
class TranslationModel(TranslationTexts):
    """A model of transformers, in evaluation mode, whose tensors are read at the first `load`.

    start: first token that the decoder reads.
    """

    load: Callable[[], Any]
    start: int

    @property
    def model(self) -> Any:
        """The model; CausalFolderError for tensors that are not its own."""
        return self.load()


def open_translation_model(
    folder: Path,
    src: str | None = None,
    tgt: str | None = None,
    device: torch.device | str = "cpu",
    dtype: str = "float32",
    *,
    adapter: LoraAdapter | None = None,
) -> TranslationModel:
    """The sequence-to-sequence model of a folder; CausalFolderError if there is none.

    Its tensors are not read yet. src, tgt: languages of the encoder's and the decoder's texts, by
    the tokenizer's codes: required where it has tokens for them, else refused; adapter: merged into
    the weights.
    """
    tokenizer, model, load = open_folder(folder, SEQ2SEQ, device, dtype, adapter)
    files = {*getattr(tokenizer, "vocab_files_names", {}).values()} - {"tokenizer_config.json"}
    if files and not any((folder / name).exists() for name in files | {"tokenizer.json"}):
        raise CausalFolderError(
            f"{folder}: expected a tokenizer, found none; copy {' or '.join(sorted(files))} from "
            "the model's own folder, or write it there with tokenizer.save_pretrained(DIR)"
        )
    words = {*tokenizer.get_vocab().values()} - {*tokenizer.all_special_ids}
    check_tokenizer(folder, tokenizer, model, words)
    source, target = frames(folder, tokenizer, src, tgt)
    if tokenizer.eos_token_id not in target.after:
        raise CausalFolderError(
            f"{folder}: expected a tokenizer that ends texts with {tokenizer.eos_token or 'eos'}, "
            "found another; copy the tokenizer from the folder of the model"
        )
    positions = positions_of(model.config, "max_position_embeddings")
    start = model.config.decoder_start_token_id
    if shifted := getattr(model, "prepare_decoder_input_ids_from_labels", None):
        labels = target.around([[tokenizer.eos_token_id]])
        start = shifted(torch.tensor([labels]))[0, 0]  # in some models the language
    digest = folder_digest(folder, adapter)
    return TranslationModel(tokenizer, digest, positions, source, target, load, int(start))


def _encode(
    tokenizer: Any, texts: Sequence[str], *, target: bool, special: bool
) -> list[list[int]]:
    """Ids of texts as sources or translations; what looks like a special token is text."""
    sides = {"text_target" if target else "text": list(texts)}
    ids: list[list[int]] = tokenizer(
        **sides, add_special_tokens=special, split_special_tokens=True, verbose=False
    )["input_ids"]
    return ids


def frames(folder: Path, tokenizer: Any, src: str | None, tgt: str | None) -> tuple[Frame, Frame]:
    """Special tokens around sources and translations in these languages."""
    vocabulary, mark = tokenizer.get_vocab(), ""
    if hasattr(tokenizer, "src_lang"):
        codes = getattr(tokenizer, "lang_code_to_token", None) or {
            token: token for token in tokenizer.all_special_tokens if _CODE.fullmatch(token)
        }
        for key, code in (("src", src), ("tgt", tgt)):
            _check_language(folder, key, code, codes)
            setattr(tokenizer, f"{key}_lang", code)
    else:
        codes = {m[1]: m[0] for token in vocabulary if (m := _MARIAN.fullmatch(token))}
        _check_language(folder, "src", src, {})
        _check_language(folder, "tgt", tgt, codes)
        mark = codes.get(tgt or "", "")
    frames = []
    for target in (False, True):
        (bare,) = _encode(tokenizer, ["a"], target=target, special=False)
        (whole,) = _encode(tokenizer, ["a"], target=target, special=True)
        first = next(n for n in range(len(whole)) if whole[n : n + len(bare)] == bare)
        before = [vocabulary[mark]] if mark and not target else []
        frames.append(Frame((*before, *whole[:first]), (*whole[first + len(bare) :],)))
    return frames[0], frames[1]


def _check_language(folder: Path, key: str, code: str | None, tokens: Mapping[str, str]) -> None:
    """CausalFolderError for a language that is not among those with a token, or for none."""
    side = "sources" if key == "src" else "translations"
    if code is not None and not tokens:
        raise CausalFolderError(
            f"{folder}: {key}={code}: its tokenizer has no tokens for languages of {side}; leave "
            f"{key}= out"
        )
    if code is None and tokens:
        some = ", ".join([*tokens][:_NAMED])
        raise CausalFolderError(
            f"{folder}: expected {key}=CODE behind the folder, the language of {side}, found none: "
            f"its tokenizer has tokens for {some}{' and others' * (len(tokens) > _NAMED)}"
        )
    if code is not None and code not in tokens:
        near = difflib.get_close_matches(code, tokens, _NAMED, 0.3) or sorted(tokens)[:_NAMED]
        raise CausalFolderError(
            f"{folder}: {key}={code}: its tokenizer has no such language; did you mean "
            f"{' or '.join(near)}?"
        )


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How translations of a source are searched for: by beam search, or drawn from the model.

    number: of translations; beam: width of the beam; temperature: of draws, None for beam search;
    epsilon: tokens of a smaller probability are not drawn; longest: most tokens of a translation;
    groups: of the beam, equally wide; penalty: as of `TokensOfGroups`.
    """

    number: int
    beam: int
    temperature: float | None = None
    epsilon: float = 0.0
    longest: int = 200
    groups: int = 1
    penalty: float = 0.0


class Generated(NamedTuple):
    """A translation without special tokens, whether it ended, and log p / length (0 of draws)."""

    tokens: list[int]
    ended: bool
    score: float


@dataclass(slots=True, eq=False)
class TokensOfGroups:
    """What a group of beams pays for the tokens that earlier groups have at the same place.

    Hamming diversity of Vijayakumar et al. 2018 (arXiv:1610.02424, §3), `penalty` nats for each
    beam. A group depends on the tokens of earlier groups at the same place alone, so groups may be
    searched one after the other. Ends of translations cost nothing, nor do tokens at the last place
    of the longest ones, after which no scores are asked for.

    first: number of tokens before those that are searched; groups: for each group so far, the
    tokens of its beams, place by place.
    """

    penalty: float
    first: int
    groups: list[list[Tensor]] = field(default_factory=list)

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Scores (B, V) of the next tokens of the beams (B, L) of one source, less penalties."""
        *earlier, current = self.groups
        place = ids.shape[1] - self.first
        if place:
            current.append(ids[:, -1])
        taken = [tokens[place] for tokens in earlier if place < len(tokens)]
        if not taken:
            return scores
        return scores - self.penalty * torch.bincount(torch.cat(taken), minlength=scores.shape[1])


@dataclass(slots=True, eq=False)
class TranslationEngine:
    """A model on a backend; `nodes` of its counts are tokens that the decoder read."""

    model: TranslationModel
    backend: Backend
    counts: EngineCounts = field(default_factory=EngineCounts)

    def check(self) -> None:
        """ValueError for scores that are NaN, or that differ from the model's own loss."""
        tokenizer = self.model.tokenizer
        ids = sorted({*tokenizer.get_vocab().values()} - {*tokenizer.all_special_ids})
        words = [ids[(7 * i + 3) % len(ids)] for i in range(9)]
        sources = [self.model.source.around([words[a:b]]) for a, b in ((0, 3), (2, 4))]
        texts = [words[2:6], [*words[2:4], *words[6:9]], words[2:3], words[5:8]]
        targets = [self.model.target.around([text]) for text in texts]
        pairs = [SourceAndTarget(sources[0], target) for target in targets]
        other = [SourceAndTarget(sources[1], targets[0])]
        check_scores(
            [self.plain_score(pair) for pair in (*pairs, *other)],
            lambda: np.concatenate(self.scores([pairs, other])),
            self.backend.dtype,
            f"{type(self.model.model).__name__} scores a prefix tree otherwise than its own loss",
            "give a model such as Marian, NLLB, M2M100, mBART or T5",
        )
        self.counts = EngineCounts()

    def plain_score(self, pair: SourceAndTarget) -> float:
        """Log p of all labels by the model's own loss, without any of the engine."""
        device = self.backend.device
        with torch.no_grad():
            labels = torch.tensor([pair.target], device=device)
            source = torch.tensor([pair.source], device=device)
            loss = self.model.model(input_ids=source, labels=labels).loss
        return -float(loss) * len(pair.target)

    def scores(self, requests: Sequence[Sequence[SourceAndTarget]]) -> list[NDArray[np.float64]]:
        """Log p (K,) of each request's translations, in nats: sums over their labels.

        Results do not depend on other requests but for rounding, not even that if the backend is
        `deterministic`.
        """
        with self.counts.timed(self.backend):
            return self.backend.with_fewer_tokens(lambda: self._scores(requests))

    def _scores(self, requests: Sequence[Sequence[SourceAndTarget]]) -> list[NDArray[np.float64]]:
        pairs = [*chain.from_iterable(requests)]
        owners = [r for r, request in enumerate(requests) for _ in request]
        groups: dict[tuple[int, Ids], list[int]] = {}
        for n, (owner, pair) in enumerate(zip(owners, pairs, strict=True)):
            apart = owner if self.backend.deterministic else 0
            groups.setdefault((apart, pair.source), []).append(n)
        scores = np.zeros(len(pairs))
        for batch in self._batches(pairs, list(groups.values())):
            rows = [*chain.from_iterable(batch)]
            roots = np.repeat(np.arange(len(batch)), [len(group) for group in batch])
            translations = [pairs[n] for n in rows]
            read = self._levels if len(rows) > len(batch) else self._at_once
            sources = [pairs[group[0]].source for group in batch]
            scores[rows] = read(sources, translations, roots)
            self.counts.tokens += sum(len(pair.target) - pair.context for pair in translations)
        return np.split(scores, np.cumsum([*map(len, requests)])[:-1])

    def _batches(
        self, pairs: Sequence[SourceAndTarget], groups: Sequence[list[int]]
    ) -> Iterator[list[list[int]]]:
        """Groups of translations of a source, as many as fit; groups of one apart, by length."""
        most = STORED * self.backend.tokens(1)
        work: list[tuple[bool, int, int, list[int]]] = []
        for group in groups:
            source = len(pairs[group[0]].source)
            longest = max(len(pairs[n].target) for n in group)
            size = max(1, most // self._floats(source, longest))
            ordered = sorted(group, key=lambda n: pairs[n].target)
            parts = [ordered[a : a + size] for a in range(0, len(ordered), size)]
            work += [(len(p) == 1, longest if len(p) == 1 else 0, source, p) for p in parts]
        batch: list[list[int]] = []
        held, alone = 0, False
        for single, longest, source, part in sorted(work, key=lambda item: item[:3]):
            floats = self._floats(source, longest or max(len(pairs[n].target) for n in part))
            floats *= longest if single else len(part)
            full = held + floats > most or single != alone
            if batch and (full or self.backend.deterministic):
                yield batch
                batch, held = [], 0
            batch.append(part)
            held, alone = held + floats, single
        if batch:
            yield batch

    def _floats(self, source: int, target: int) -> int:
        """Floats that a row of a batch takes, about: logits and key–value pairs."""
        config = self.model.model.config
        layers = getattr(config, "decoder_layers", None) or config.num_hidden_layers
        words = len(self.model.model.get_output_embeddings().weight)
        return 2 * words + 2 * int(config.hidden_size) * int(layers) * (source + target)

    # The transformer

    def _encoded(self, sources: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """States (S, L, R) of sources, and which of them are of tokens (S, L)."""
        ids, mask = _padded(sources, self.model.tokenizer.pad_token_id or 0, self.backend.device)
        output = self.model.model.get_encoder()(input_ids=ids, attention_mask=mask)
        return output.last_hidden_state, mask

    def _logits(self, encoded: tuple[Tensor, Tensor], tokens: Tensor, **cache: Any) -> Tensor:
        """Logits (N, L, V) after each of the decoder's tokens (N, L), of N encoded sources."""
        from transformers.modeling_outputs import BaseModelOutput

        states, mask = encoded
        self.counts.nodes += tokens.numel()
        logits: Tensor = self.model.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=tokens,
            use_cache=bool(cache),
            **cache,
        ).logits
        return logits.float()

    def _levels(
        self, sources: Sequence[Ids], pairs: Sequence[SourceAndTarget], roots: Indices
    ) -> NDArray[np.float64]:
        """Scores (n,) of translations of the sources `roots`; a token is read a distinct prefix."""
        from transformers import DynamicCache, EncoderDecoderCache

        first, terms = len(self.model.target.before), list[tuple[Ids, int, float]]()
        for n, (_, target, context) in enumerate(pairs):
            terms.append((target, n, 1.0))
            if context:  # all labels, less those up to its end, and those before it
                terms += [(target[: first + context], n, -1.0), (target[:first], n, 1.0)]
        texts, numbers, signs = zip(*terms, strict=True)
        rows = np.array(numbers)
        forest = build(Candidates.of([texts]), np.arange(len(rows)), roots[rows], len(sources))
        device, model = self.backend.device, self.model.model
        states, mask = self._encoded(sources)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        read = np.zeros(len(forest), np.bool_)
        read[forest.parent[len(sources) :]] = True
        nodes = np.arange(len(sources))
        tokens = np.full(len(nodes), self.model.start)
        log_probs = []
        for begin, end in pairwise(forest.levels[1:]):
            owners = torch.from_numpy(forest.root[nodes]).to(device)
            ids = torch.from_numpy(tokens)[:, None].to(device)
            encoded = states[owners], mask[owners]
            logits = self._logits(encoded, ids, **{cache_argument(model): cache})[:, -1]
            places = np.searchsorted(nodes, forest.parent[begin:end])
            at = torch.from_numpy(places).to(device)
            words = torch.from_numpy(forest.token[begin:end]).to(device)
            log_probs.append(logits[at, words] - logits.logsumexp(dim=1)[at])
            kept = np.flatnonzero(read[begin:end])
            nodes, tokens = begin + kept, forest.token[begin + kept]
            if len(nodes):
                cache.reorder_cache(at[torch.from_numpy(kept).to(device)])
        into = torch.cat(log_probs).cpu()[:, None]
        sums = np.array(signs) * forest.sums(into, torch.zeros(len(forest), 1))[:, 0]
        return np.bincount(rows, weights=sums, minlength=len(pairs)).astype(np.float64)

    def _at_once(
        self, sources: Sequence[Ids], pairs: Sequence[SourceAndTarget], roots: Indices
    ) -> NDArray[np.float64]:
        """Scores (n,) of a translation of each source, in one pass."""
        device, first = self.backend.device, len(self.model.target.before)
        labels, _ = _padded([pair.target for pair in pairs], 0, device)
        tokens = torch.cat([torch.full_like(labels[:, :1], self.model.start), labels[:, :-1]], 1)
        logits = self._logits(self._encoded(sources), tokens)
        log_probs = logits.gather(2, labels[:, :, None])[:, :, 0] - logits.logsumexp(dim=2)
        places = np.arange(labels.shape[1])
        ends = np.array([[len(pair.target), first + pair.context] for pair in pairs])
        scored = (places < ends[:, :1]) & ((places < first) | (places >= ends[:, 1:]))
        sums: NDArray[np.float64] = np.where(scored, log_probs.cpu().double(), 0).sum(axis=1)
        return sums

    # Search for translations

    def generated(
        self, sources: Sequence[Ids], settings: GenerationSettings, seed: int
    ) -> list[list[Generated]]:
        """Translations of each source, by `generate` of transformers: best first, or as drawn.

        Draws depend on the sources, their order and the seed alone. Of several groups there is one
        source, and the translations of one group follow those of another.
        """
        if settings.groups == 1:
            return self._generated(sources, settings, seed, [])
        tokens = TokensOfGroups(settings.penalty, 1 + len(self.model.target.before))
        beam = settings.beam // settings.groups
        of_group, translations = replace(settings, number=beam, beam=beam), list[Generated]()
        for _ in range(settings.groups):
            tokens.groups.append([])
            [more] = self._generated(sources, of_group, seed, [tokens])
            translations += more
        return [translations]

    def _generated(
        self,
        sources: Sequence[Ids],
        settings: GenerationSettings,
        seed: int,
        processors: Sequence[TokensOfGroups],
    ) -> list[list[Generated]]:
        """Translations of one call of `generate`."""
        from transformers import DynamicCache, EncoderDecoderCache, LogitsProcessorList

        model, device = self.model, self.backend.device
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        ids, mask = _padded(sources, model.tokenizer.pad_token_id or 0, device)
        begin = torch.tensor([[model.start, *model.target.before]] * len(sources), device=device)
        way: dict[str, Any] = {"num_beams": settings.beam, "do_sample": False}
        if settings.temperature is not None:
            way = {"num_beams": 1, "do_sample": True, "temperature": settings.temperature}
            way |= {"top_k": 0, "top_p": 1.0, "epsilon_cutoff": settings.epsilon}
        with self.backend.inference(), torch.random.fork_rng():
            torch.manual_seed(seed)
            output = model.model.generate(
                input_ids=ids,
                attention_mask=mask,
                decoder_input_ids=begin,
                num_return_sequences=settings.number,
                max_new_tokens=min(settings.longest, model.positions - len(model.target)),
                max_length=None,
                return_dict_in_generate=True,
                output_scores=settings.temperature is None,
                logits_processor=LogitsProcessorList(processors),
                **{cache_argument(model.model): cache},
                **way,
            )
        end, rows = model.tokenizer.eos_token_id, output.sequences[:, begin.shape[1] :].tolist()
        scores = getattr(output, "sequences_scores", None)
        scores = [0.0] * len(rows) if scores is None else scores.tolist()
        translations = [
            Generated(row[: row.index(end)] if end in row else row, end in row, score)
            for row, score in zip(rows, scores, strict=True)
        ]
        number = settings.number
        return [translations[a : a + number] for a in range(0, len(rows), number)]


def _padded(rows: Sequence[Ids], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids (N, L) of rows, padded at the end, and a mask of those that are no padding."""
    lengths = torch.tensor([len(row) for row in rows])
    longest = int(lengths.max())
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])
    return ids.to(device), (torch.arange(longest) < lengths[:, None]).long().to(device)
