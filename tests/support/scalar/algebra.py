"""Vectors and matrices as lists of floats: the arithmetic of the scalar references."""

import math
from collections.abc import Sequence
from operator import mul

Vector = list[float]
Matrix = list[Vector]


def dot(one: Vector, other: Vector) -> float:
    if len(one) != len(other):
        raise ValueError(f"vectors of {len(one)} and {len(other)} entries have no product")
    return sum(map(mul, one, other), 0.0)


def product(matrix: Matrix, vector: Vector) -> Vector:
    return [dot(row, vector) for row in matrix]


def plus(*vectors: Vector) -> Vector:
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def times(one: Vector, other: Vector) -> Vector:
    """Entry by entry."""
    return [a * b for a, b in zip(one, other, strict=True)]


def one_minus(vector: Vector) -> Vector:
    return [1.0 - x for x in vector]


def weighted_sum(weights: Vector, vectors: Sequence[Vector]) -> Vector:
    return [dot(weights, list(column)) for column in zip(*vectors, strict=True)]


def sigmoid(vector: Vector) -> Vector:
    return [1.0 / (1.0 + math.exp(-x)) for x in vector]


def tanh(vector: Vector) -> Vector:
    return [math.tanh(x) for x in vector]


def htanh(vector: Vector) -> Vector:
    """Lin et al. 2015, eq. 6: the identity, cut off at −1 and 1."""
    return [max(-1.0, min(1.0, x)) for x in vector]


def log_softmax(logits: Vector) -> Vector:
    top = max(logits)
    log_z = top + math.log(math.fsum(math.exp(x - top) for x in logits))
    return [x - log_z for x in logits]


def softmax(logits: Vector) -> Vector:
    return [math.exp(x) for x in log_softmax(logits)]
