"""How translations of a source are found: settings, results, diverse beam search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How translations of a source are found: by beam search, or drawn from the model.

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
    """A translation without special tokens, whether it ended by itself, and its score in the beam.

    The score is log p of its tokens, divided by their number or as the model's folder says; 0 of
    draws.
    """

    tokens: list[int]
    ended: bool
    score: float


@dataclass(slots=True, eq=False)
class TokensOfGroups:
    """What a group of beams pays for the tokens that earlier groups have at the same place.

    Hamming diversity of Vijayakumar et al. 2018 (arXiv:1610.02424, §3), `penalty` nats for each
    beam. A group depends on the tokens of earlier ones at its own place alone, so that groups may
    be searched one after the other. Ends of translations cost nothing, nor do tokens at the last
    place of the longest ones, after which no scores are asked for.

    first: number of tokens before those that are searched; groups: for each group so far, the
    tokens of its beams, place by place.
    """

    penalty: float
    first: int
    groups: list[list[Tensor]] = field(default_factory=list)

    def begin_group(self) -> None:
        """Let the beams that follow be those of a new group."""
        self.groups.append([])

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Scores (B, V) of the next tokens of the beams (B, L) of one source, less penalties."""
        *earlier, own = self.groups
        place = ids.shape[1] - self.first
        if place:
            own.append(ids[:, -1])
        taken = [tokens[place] for tokens in earlier if place < len(tokens)]
        if not taken:
            return scores
        return scores - self.penalty * torch.bincount(torch.cat(taken), minlength=scores.shape[1])
