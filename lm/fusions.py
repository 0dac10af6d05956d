"""Where a context enters the model.

A fusion receives the context's value, for each sentence or for each word. Order and way of
scoring follow from the facts that it states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias, cast

import torch
from torch import Tensor, nn

from lm.contexts import Context
from lm.recurrences import Recurrence, Sizes, State
from lm.sentences import Rows

Value = Callable[[], Tensor]
Share: TypeAlias = Tensor | Callable[[Tensor], Tensor] | None


class Fusion(nn.Module):
    """Base of the fusions, and the facts that each of them states.

    Constructors receive D, the width of a value, and a recurrence over the embeddings (K inputs),
    for its sizes: its tensors may have no memory; and keywords, as those of `lm.contexts.Context`.
    ValueError for a recurrence that does not suit the fusion.
    """

    uses_context: ClassVar[bool] = True
    hidden_depends_on_context: ClassVar[bool] = False
    adds_to_logits: ClassVar[bool] = False  # logits are additive in the context
    needs_state: ClassVar[bool] = False  # the context must carry a recurrent state
    linear: ClassVar[bool] = False  # `share` is linear in values, and added to words' projections
    # it asks for the values of words itself, by states of the same position: `share` is then a
    # function from such queries (N, H) to values (N, D)
    asks: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ()
    input_columns = 0  # that a value adds to the inputs
    output_columns = 0  # to the features

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__()

    def initial(self, recurrence: Recurrence, context: Context, contexts: Rows) -> State:
        """Recurrent states in which sentences begin; here those of the recurrence."""
        return recurrence.start(len(contexts))

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor | None:
        """What `step` needs of values (B, D), with B rows, or None."""
        return None

    def step(self, cells: Recurrence, words: Tensor, state: State, share: Share) -> State:
        """States after another word each, of which `words` are projections."""
        return cells.step(words if share is None else words + cast(Tensor, share), state)

    def unroll(
        self, cells: Recurrence, words: Tensor, state: State, *, sizes: Sizes, share: Share
    ) -> State:
        """States after every word of packed sentences; share: N rows in packed order."""
        return cells.unroll(words if share is None else words + cast(Tensor, share), state, sizes)

    def output(self, hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, Tensor | None]:
        """Hidden states (N, …) and values (N, D) or None for the head; words: embeddings (N, K)."""
        return hidden, None


class NoFusion(Fusion):
    """The context enters nowhere."""

    uses_context = False


class InitialState(Fusion):
    """The sentence begins in the state that the context carries (document RNNLM)."""

    hidden_depends_on_context = True
    needs_state = True

    def initial(self, recurrence: Recurrence, context: Context, contexts: Rows) -> State:
        """The carried state."""
        return context.state(contexts)


class Input(Fusion):
    """The value is concatenated to every input: [x; c] (Ji et al. 2016, eqs. 4–5)."""

    hidden_depends_on_context = True
    linear = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.input_columns = width

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor:
        """W_c c: computed once for a sentence, unless it has a value for each word."""
        return recurrence.project(value, first=recurrence.inputs - self.input_columns)


class Output(Fusion):
    """The value is added to the logits through a separate matrix (Ji et al. 2016, eq. 7)."""

    adds_to_logits = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.output_columns = width

    def output(self, hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, Tensor | None]:
        """Both, unchanged."""
        return hidden, value()


class InputSum(Fusion):
    """A projection of the value is added to every input: x + W_p p, D · K parameters.

    The early fusion of Wang & Cho 2015, arXiv:1511.03729, §3.2; another s(x, c) of Ji et al.
    2016, eq. 4.
    """

    hidden_depends_on_context = True
    linear = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.projection = nn.Linear(width, recurrence.inputs, bias=False)

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor:
        """W_x W c: computed once for a sentence, unless it has a value for each word."""
        return recurrence.project_sum(self.projection(value))


class Merge(Fusion):
    """The head receives tanh(W_h h + W_c c + b), H units (Ji et al. 2016, eq. 12).

    H(H + D + 1) parameters. Hidden states do not see the context; logits are not additive in it.
    """

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.of_hidden = nn.Linear(recurrence.hidden, recurrence.hidden)
        self.of_value = nn.Linear(width, recurrence.hidden, bias=False)

    def output(self, hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, Tensor | None]:
        """The merged units alone."""
        return torch.tanh(self.of_hidden(hidden) + self.of_value(value())), None


class InputMerge(Input):
    """The value is concatenated to every input, and merged: `Input` with `Merge`.

    The fusion of the attentional model of Ji et al. 2016, eqs. 11–12.
    """

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.merge = Merge(width, recurrence)

    def output(self, hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, Tensor | None]:
        """The merged units alone."""
        return self.merge.output(hidden, value, words)


class BetweenLevels(Merge):
    """A second level of the recurrence reads [h; c], and the head tanh(W_h h' + W_c c' + b).

    h is the state of the level below at the same word, which asks for the value c; h' is that of
    the second level, which asks for c'. No level waits for a value of the level above, so that
    training unrolls each over all words. Both levels are of the same kind and size.
    Parameters: those of the recurrence over H + D inputs, and those of `Merge`.
    """

    hidden_depends_on_context = True
    asks = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.upper = recurrence.like(recurrence.hidden + width)

    def initial(self, recurrence: Recurrence, context: Context, contexts: Rows) -> State:
        """Both levels before any word: the state of the first, then that of the second."""
        return super().initial(recurrence, context, contexts) + self.upper.start(len(contexts))

    def step(self, cells: Recurrence, words: Tensor, state: State, share: Share) -> State:
        """States of both levels after another word each."""
        half = len(state) // 2
        below = cells.step(words, state[:half])
        return below + self.upper.step(self._inputs(cells.output(below), share), state[half:])

    def unroll(
        self, cells: Recurrence, words: Tensor, state: State, *, sizes: Sizes, share: Share
    ) -> State:
        """States of both levels after every word, a level after the other."""
        half = len(state) // 2
        below = cells.unroll(words, state[:half], sizes)
        inputs = self._inputs(cells.output(below), share)
        return below + self.upper.unroll(inputs, state[half:], sizes)

    def _inputs(self, hidden: Tensor, share: Share) -> Tensor:
        """Share of hidden states (N, H) and the values for them in the second level's inputs."""
        values = cast(Callable[[Tensor], Tensor], share)(hidden)
        return self.upper.project(torch.cat([hidden, values], dim=1))


class InputAndInitialState(Input, InitialState):
    """The value is concatenated to every input, and the sentence begins in the carried state.

    The thought vectors of Ghosh et al. 2016, arXiv:1602.06291, fig. 8.
    """


class InputResidual(Input):
    """The value is concatenated to every input, and the head receives tanh(h + Q c + P x).

    The fusion of the program `dam` in the code of Ji et al. 2016, where x is the embedding of the
    word read last. H(D + K) parameters.
    """

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.of_value = nn.Linear(width, recurrence.hidden, bias=False)
        self.of_word = nn.Linear(recurrence.inputs, recurrence.hidden, bias=False)

    def output(self, hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, Tensor | None]:
        """The H units alone."""
        return torch.tanh(hidden + self.of_value(value()) + self.of_word(words())), None


class LateFusion(Fusion):
    """Late fusion of Wang & Cho 2015, arXiv:1511.03729, §3.2.

    r = σ(W_r (W_p p) + W_r' c + b_r); h = o∘tanh(c + r∘(W_p p)), where c and o are the memory
    cell and the output gate of the recurrence's top layer. The paper prints W_r twice; they are
    two matrices here. Parameters: HD + 2H² + H.

    ValueError for a recurrence without memory cell and output gate.
    """

    hidden_depends_on_context = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        if not recurrence.output_gate:
            raise ValueError(
                "late fusion expects a recurrence with a memory cell and an output gate, found "
                f"{type(recurrence).__name__}; choose lstm or cifg, or early fusion"
            )
        self.projection = nn.Linear(width, recurrence.hidden, bias=False)
        self.gate = nn.Linear(recurrence.hidden, recurrence.hidden)
        self.memory_gate = nn.Linear(recurrence.hidden, recurrence.hidden, bias=False)

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor:
        """W_p p and W_r (W_p p) + b_r side by side, (B, 2H): all that does not depend on c."""
        projected = self.projection(value)
        return torch.cat([projected, self.gate(projected)], dim=1)

    def step(self, cells: Recurrence, words: Tensor, state: State, share: Share) -> State:
        """States after another word each."""
        projected, gate = cast(Tensor, share).float().chunk(2, dim=1)

        def added(c: Tensor) -> Tensor:
            return torch.sigmoid(gate + self.memory_gate(c)) * projected

        return cells.step(words, state, added)

    def unroll(
        self, cells: Recurrence, words: Tensor, state: State, *, sizes: Sizes, share: Share
    ) -> State:
        """States after every word of packed sentences, step by step."""
        states: list[State] = []
        steps = (torch.split(rows, list(sizes)) for rows in (words, cast(Tensor, share)))
        for step, of_step in zip(*steps, strict=True):
            state = self.step(cells, step, tuple(rows[: len(step)] for rows in state), of_step)
            states.append(state)
        return tuple(torch.cat(column) for column in zip(*states, strict=True))
