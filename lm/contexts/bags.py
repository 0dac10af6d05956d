"""The last few sentences as bags of words: their sum, or a sequence that a recurrence reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows, embedding_sums

MOST_ENTRIES = 1 << 22  # of (positions, sentences, attention) at once


class BagContext(Context):
    """Base of the contexts that read each sentence as a bag of words.

    They hold the words of a sentence (B, M) as 1 + id in descending order, so that equal bags have
    equal bits; 0 where there is none.
    """

    averages = False
    merges_sentences = True

    def summary(self, sentences: ReadSentences) -> Rows:
        """The sorted words (B, M) of each sentence, as a context holds them."""
        words, mask = sentences.words()
        return Rows.of(((words + 1) * mask).sort(dim=1, descending=True).values)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The sorted words: equal bags leave equal contexts."""
        return np.sort(words).tobytes()


class BagOfWords(BagContext):
    """Sum of the embeddings of all words of the last n sentences, with a separate table.

    A context holds the words (B, M, n) of the sentences, at first none; embeddings are added in the
    order of the ids, so that equal sums have equal bits. Parameters: VK.
    """

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, sentences: int = 1
    ) -> None:
        super().__init__(embedding, recurrence)
        self.sentences = self.bags = sentences
        self.width = embedding.embedding_dim
        self.table = nn.Parameter(torch.empty_like(embedding.weight).uniform_(-0.1, 0.1))

    def start(self, batch: int) -> Rows:
        """Empty bags."""
        empty = self.get_buffer("empty")
        return Rows.of(empty.new_zeros(batch, 0, self.bags, dtype=torch.long))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The last bag after the n − 1 before it."""
        newest = Rows.of(summary.tensors[0][:, :, None])
        (older,) = contexts.tensors
        slots = [Rows.of(bag) for bag in torch.split(older, 1, dim=2)[1:]]
        # bags of different sizes are padded to the same number of words
        padded = torch.tensor_split(Rows.cat([*slots, newest]).tensors[0], self.bags)
        return Rows.of(torch.cat(padded, dim=2))

    def value(self, contexts: Rows) -> Tensor:
        """The vector (B, K) of all sentences as a single bag."""
        return self.vectors(contexts.tensors[0].flatten(1).sort(dim=1).values)

    def vectors(self, bags: Tensor) -> Tensor:
        """Summed embeddings (B, K) of sorted bags (B, M), as contexts hold them."""
        return embedding_sums(self.table, bags - 1, bags > 0)

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """The sorted words of all sentences: equal sums give equal scores."""
        return np.sort(np.frombuffer(b"".join(sentences), dtype=np.int32)).tobytes()


class WordFrequencies(BagOfWords):
    """Relative frequencies s of the words of the last n sentences, projected: p = P s.

    The BoW context of Wang & Cho 2015, arXiv:1511.03729, §3.1: the sentences are a single bag whose
    counts are divided by their sum. p is zero at the beginning of a document.
    """

    def vectors(self, bags: Tensor) -> Tensor:
        """P s (B, K) of sorted bags (B, M); 0 if empty."""
        return super().vectors(bags) / (bags > 0).sum(dim=1, keepdim=True).clamp(min=1)


class BagSequence(WordFrequencies):
    """Last state of a recurrence over the bags s_1 … s_n of the last n sentences, oldest first.

    The SeqBoW context of Wang & Cho 2015, arXiv:1511.03729, §3.1: z_j = φ(P s_j, z_{j-1}) with
    frequencies s_j, value p = z_n, (B, H). φ is of the word level's kind and size. The paper
    does not say what φ's input is; here P is the projection of the BoW context, so that a word
    costs K parameters and not 4H. There is no step without words, and p is then the state before,
    at first zero. Parameters, for an LSTM layer: VK + 4H(H + K + 1).
    """

    history_key = Context.history_key  # the order of the bags decides, too

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, sentences: int = 1
    ) -> None:
        super().__init__(embedding, recurrence, sentences=sentences)
        self.reader = recurrence.like(self.width)
        self.width = recurrence.hidden

    def value(self, contexts: Rows) -> Tensor:
        """The last state, (B, H)."""
        return self.read(self.reader, *self.projected(contexts))[-1]

    def projected(self, contexts: Rows) -> tuple[Tensor, Tensor]:
        """P s_j (n, B, K) of each sentence, and a mask (n, B) of those with words."""
        bags = contexts.tensors[0].permute(2, 0, 1)
        frequencies = self.vectors(bags.flatten(0, 1))
        return frequencies.view(*bags.shape[:2], -1), (bags > 0).any(dim=2)

    def read(self, reader: Recurrence, inputs: Tensor, mask: Tensor) -> list[Tensor]:
        """Top states (B, H) after each of n inputs (n, B, K), unchanged where the mask is false."""
        state, outputs = reader.start(inputs.shape[1]), []
        for projected, present in zip(reader.project(inputs), mask, strict=True):
            both = zip(reader.step(projected, state), state, strict=True)
            state = tuple(torch.where(present[:, None], new, old) for new, old in both)
            outputs.append(reader.output(state))
        return outputs


class BagAttention(BagSequence):
    """Weighted mean of annotations of the last n sentences, with other weights for each word.

    The SeqBoW-ATT context of Wang & Cho 2015, arXiv:1511.03729, §3.1: two recurrences read the
    bags in both directions; z_j = [→z_j; ←z_j]; α_j = softmax_j score(z_j, h); p = Σ α_j z_j.
    The paper leaves the score open: it is v · tanh(W h + U z_j) (Bahdanau et al. 2015) of size
    `attention`, H by default. Its h is the state before the word, since late fusion makes the
    current state from p; at the first word there is none. Sentences without words have no
    annotation; p is zero without any. Parameters, for LSTM layers: VK + 8H(H + K + 1) + A(3H + 1).
    """

    per_word = True
    options = ("attention",)

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        sentences: int = 1,
        attention: int | None = None,
    ) -> None:
        super().__init__(embedding, recurrence, sentences=sentences)
        self.backward_reader = recurrence.like(embedding.embedding_dim)
        hidden, self.width = recurrence.hidden, 2 * recurrence.hidden
        size = hidden if attention is None else attention
        self.query = nn.Linear(hidden, size, bias=False)
        self.annotation = nn.Linear(self.width, size, bias=False)
        self.weight = nn.Linear(size, 1, bias=False)

    def prepared(self, contexts: Rows) -> Rows:
        """Annotations (B, n, 2H), their share (B, n, A) in the scores, and a mask (B, n)."""
        inputs, mask = self.projected(contexts)
        forward = self.read(self.reader, inputs, mask)
        backward = self.read(self.backward_reader, inputs.flip(0), mask.flip(0))[::-1]
        both = zip(forward, backward, strict=True)
        annotations = torch.stack([torch.cat(pair, dim=1) for pair in both], dim=1).float()
        return Rows.of(annotations, self.annotation(annotations), mask.T)

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """O(N n (A + H)) time; at most `MOST_ENTRIES` numbers of the attention at once."""
        annotations, keys, mask = prepared.tensors
        largest = max(tensor.shape[1:].numel() for tensor in (annotations, keys))
        most = max(1, MOST_ENTRIES // largest)
        values = []
        for at, asked in zip(torch.split(row, most), torch.split(query, most), strict=True):
            energy = self.weight(torch.tanh(keys[at] + self.query(asked)[:, None]))[:, :, 0]
            # a finite number: without any sentence all shares would be NaN
            shares = torch.softmax(energy.float().masked_fill(~mask[at], -1e30), dim=1) * mask[at]
            values.append(torch.einsum("bn,bnd->bd", shares, annotations[at]))
        return torch.cat(values)
