"""Recurrent cells of the papers in scalar arithmetic, equation by equation.

A cell takes its parameters by their names in the paper, an input and the state before it, None
before the first input, and returns the new state, the hidden state first. Where a paper leaves
the terms of the state before out at the first input, this equals a state of zeros, but for
`cifg_2015`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from support.scalar.algebra import Vector, htanh, one_minus, plus, product, sigmoid, tanh, times

Parameters: TypeAlias = Mapping[str, Any]  # vectors and matrices by their names
State: TypeAlias = tuple[Vector, ...]
Cell: TypeAlias = Callable[[Parameters, Vector, State | None], State]


def _drive(p: Parameters, gate: str, u: Vector, h: Vector, *more: Vector) -> Vector:
    """W_x· u + W_h· h + b_·, and further terms."""
    return plus(product(p["W_x" + gate], u), product(p["W_h" + gate], h), p["b_" + gate], *more)


def cifg(p: Parameters, u: Vector, before: State | None) -> State:
    """`LSTMBuilder` of cnn since 2016-04-20: coupled gates, peepholes that are whole matrices.

    i = σ(W_xi u + W_hi h⁻ + W_ci c⁻ + b_i); c = (1 − i)∘c⁻ + i∘tanh(W_xc u + W_hc h⁻ + b_c);
    o = σ(W_xo u + W_ho h⁻ + W_co c + b_o), of the new c; h = o∘tanh(c).
    """
    h, c = before or (_zeros(p["b_i"]), _zeros(p["b_i"]))
    i = sigmoid(_drive(p, "i", u, h, product(p["W_ci"], c)))
    g = tanh(_drive(p, "c", u, h))
    c = plus(times(one_minus(i), c), times(i, g))
    o = sigmoid(_drive(p, "o", u, h, product(p["W_co"], c)))
    return times(o, tanh(c)), c


def cifg_2015(p: Parameters, u: Vector, before: State | None) -> State:
    """`LSTMBuilder` of cnn until April 2016: o has no W_co c at the first input."""
    if before is not None:
        return cifg(p, u, before)
    i = sigmoid(plus(product(p["W_xi"], u), p["b_i"]))
    c = times(i, tanh(plus(product(p["W_xc"], u), p["b_c"])))
    o = sigmoid(plus(product(p["W_xo"], u), p["b_o"]))
    return times(o, tanh(c)), c


def lstm(p: Parameters, x: Vector, before: State | None) -> State:
    """Wang & Cho 2015, eqs. 6–9: three gates, no peepholes; h_0 = 0."""
    h, c = before or (_zeros(p["b_i"]), _zeros(p["b_i"]))
    i, o, f = (sigmoid(gate(p, name, x, h)) for name in "iof")  # eqs. 6–8
    c = plus(times(f, c), times(i, tanh(gate(p, "c", x, h))))  # eq. 9
    return times(o, tanh(c)), c


def peephole(p: Parameters, x: Vector, before: State | None) -> State:
    """Ghosh et al. 2016, eq. 1, with diagonal W_ci, W_cf, W_co as in Graves 2009; c_0 = h_0 = 0."""
    h, c = before or (_zeros(p["b_i"]), _zeros(p["b_i"]))
    i = sigmoid(_drive(p, "i", x, h, times(p["W_ci"], c)))
    f = sigmoid(_drive(p, "f", x, h, times(p["W_cf"], c)))
    c = plus(times(f, c), times(i, tanh(_drive(p, "c", x, h))))
    o = sigmoid(_drive(p, "o", x, h, times(p["W_co"], c)))
    return times(o, tanh(c)), c


def gate(p: Parameters, name: str, x: Vector, h: Vector) -> Vector:
    """W x_t + U h_{t−1} + b of one gate of Wang & Cho 2015, eqs. 6–9, before its nonlinearity."""
    return plus(product(p["W_" + name], x), product(p["U_" + name], h), p["b_" + name])


def sigmoid_rnn(p: Parameters, x: Vector, before: State | None) -> State:
    """Mikolov et al. 2010, eqs. 1–2, with a bias: h = σ(W_x x + W_h h⁻ + b)."""
    (h,) = before or (_zeros(p["b"]),)
    return (sigmoid(plus(product(p["W_x"], x), product(p["W_h"], h), p["b"])),)


def tanh_rnn(p: Parameters, x: Vector, before: State | None) -> State:
    """Elman 1990 with a bias: h = tanh(W_x x + W_h h⁻ + b)."""
    (h,) = before or (_zeros(p["b"]),)
    return (tanh(plus(product(p["W_x"], x), product(p["W_h"], h), p["b"])),)


def htanh_rnn(p: Parameters, x: Vector, before: State | None) -> State:
    """HTanh(U h⁻ + W x + b): the layer of Lin et al. 2015, eqs. 4–6, with a bias, from h_0 = 0."""
    (h,) = before or (_zeros(p["b"]),)
    return (htanh(plus(product(p["U"], h), product(p["W"], x), p["b"])),)


def _zeros(like: Vector) -> Vector:
    return [0.0] * len(like)


@dataclass(frozen=True)
class Stack:
    """Layers of a cell: the hidden state of one is the input of the next (Ji et al. 2016, §2.1)."""

    cell: Cell
    layers: Sequence[Parameters]

    def __call__(self, x: Vector, before: list[State] | None) -> list[State]:
        """The states of all layers after one more input."""
        states: list[State] = []
        for n, p in enumerate(self.layers):
            states.append(self.cell(p, x, before[n] if before else None))
            x = states[-1][0]
        return states

    def read(self, xs: Sequence[Vector], before: list[State] | None = None) -> list[list[State]]:
        """The states after each input."""
        result = []
        for x in xs:
            before = self(x, before)
            result.append(before)
        return result


def top(states: list[State]) -> Vector:
    """Hidden state of the last layer."""
    return states[-1][0]
