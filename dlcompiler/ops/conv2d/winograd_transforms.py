"""The transforms of minimal filtering F(m, r): m outputs of an FIR filter of r taps at a time.

``out = A^T [(G g) * (B^T d)]`` with m + r - 1 products instead of m·r; in two dimensions each
transform is applied to the columns and to the rows.

**Source:** A. L. Toom (1963) and S. A. Cook (1966), as derived in R. E. Blahut, *Fast Algorithms
for Signal Processing*, 2010, section 5.2; S. Winograd, *Arithmetic Complexity of Computations*,
1980; for convolutional networks A. Lavin, S. Gray, CVPR 2016, arXiv:1509.09308, whose matrices
these are, but for signs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import te
from dlcompiler.ops.rounding import Wide

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

TAPS = 3
"""Extent of the kernels that are computed by minimal filtering."""
_POINTS = (0, 1, -1, 2, -2)
"""Where the polynomials are evaluated; small numbers keep the transforms cheap and exact."""


@dataclass(frozen=True)
class Transforms:
    """The matrices of F(m, r), exactly."""

    outputs: int
    """m."""
    taps: int
    """r."""
    output: Matrix
    """``A^T``, of the shape ``(m, m + r - 1)``."""
    weight: Matrix
    """``G``, of the shape ``(m + r - 1, r)``."""
    input: Matrix
    """``B^T``, of the shape ``(m + r - 1, m + r - 1)``."""

    @property
    def size(self) -> int:
        """Elements of a tile of the input along one dimension: m + r - 1."""
        return self.outputs + self.taps - 1

    def matrix(self, which: str) -> Wide:
        """Return a matrix in float64: ``"output"``, ``"weight"`` or ``"input"``."""
        return np.array([[float(x) for x in row] for row in getattr(self, which)])


@cache
def transforms(outputs: int, taps: int) -> Transforms:
    """Return the matrices of F(outputs, taps) by the method of Cook and Toom.

    A tile of the input is filtered by products of values at the points 0, 1, -1, 2, … and at
    infinity; the last is the product of the leading coefficients.

    Examples
    --------
    >>> [[str(x) for x in row] for row in transforms(2, 3).weight]
    [['-1', '0', '0'], ['1/2', '1/2', '1/2'], ['1/2', '-1/2', '1/2'], ['0', '0', '1']]
    """
    points = [Fraction(point) for point in _POINTS[: outputs + taps - 2]]
    without = [[q for q in points if q != p] for p in points]
    infinity = Fraction(1)
    output = tuple(
        (*(p**i for p in points), infinity if i == outputs - 1 else Fraction(0))
        for i in range(outputs)
    )
    weight = tuple(
        tuple(p**i / math.prod((p - q for q in others), start=Fraction(1)) for i in range(taps))
        for p, others in zip(points, without, strict=True)
    )
    last = tuple(infinity if i == taps - 1 else Fraction(0) for i in range(taps))
    rows = [(*_polynomial(others), Fraction(0)) for others in without]
    return Transforms(outputs, taps, output, (*weight, last), (*rows, _polynomial(points)))


def on_both_sides(matrix: Wide, values: Wide) -> Wide:
    """Return ``matrix @ values @ matrix.T`` of the last two dimensions."""
    result: Wide = matrix @ values @ matrix.T
    return result


def _polynomial(roots: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return the coefficients of the product of all ``x - root``, the constant term first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [root * c for c in coefficients] + [Fraction(0)]
        coefficients = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return tuple(coefficients)


# -- as expressions -----------------------------------------------------------------------------


def input_row(t: Transforms, row: int, values: Sequence[Any], number: Any) -> Any:
    """Return a row of ``B^T`` times a column of values.

    Rows of opposite points differ in the signs of the odd coefficients. Written as the sum and the
    difference of the same two parts, they share them.

    Parameters
    ----------
    t : Transforms
        The matrices.
    row : int
        Index of the row.
    values : sequence of expressions
        As many as a tile has elements.
    number : callable
        Makes a constant of a float.
    """
    coefficients = t.input[row]
    parts = []
    for parity in (0, 1):
        terms = [
            (c, v)
            for n, (c, v) in enumerate(zip(coefficients, values, strict=True))
            if c and n % 2 == parity
        ]
        if terms:
            parts.append(_signed(terms, number))
    return _added(parts)


def weight_row(t: Transforms, row: int, values: Sequence[Any], number: Any) -> Any:
    """Return a row of ``G`` times a column of values."""
    terms = [(c, v) for c, v in zip(t.weight[row], values, strict=True) if c]
    return _added([_signed(terms, number)])


def output_row(t: Transforms, row: int, values: Sequence[Any], number: Any) -> Any:
    """Return a row of ``A^T`` times a column of values, adding values of opposite points first."""
    coefficients = t.output[row]
    parts = []
    column = 0
    while column < len(values):
        c = coefficients[column]
        following = coefficients[column + 1] if column + 1 < len(values) else Fraction(0)
        if c and abs(c) == abs(following) and column % 2 == 1:
            a, b = values[column], values[column + 1]
            pair = a + b if c == following else a - b
            parts.append((c < 0, pair if abs(c) == 1 else pair * number(float(abs(c)))))
            column += 2
            continue
        if c:
            parts.append(_signed([(c, values[column])], number))
        column += 1
    return _added(parts)


def _signed(terms: Sequence[tuple[Fraction, Any]], number: Any) -> tuple[bool, Any]:
    """Return (is_negated, sum): the weighted sum with its last coefficient made positive."""
    is_negative = terms[-1][0] < 0
    scaled = [v if abs(c) == 1 else v * number(float(abs(c))) for c, v in terms]
    total = scaled[-1]
    for (coefficient, _), value in zip(terms[-2::-1], scaled[-2::-1], strict=True):
        total = total - value if (coefficient < 0) != is_negative else total + value
    return is_negative, total


def _added(parts: Sequence[tuple[bool, Any]]) -> Any:
    """Add signed parts, beginning with a positive one if there is one."""
    ordered = sorted(parts, key=lambda part: part[0])
    is_negative, total = ordered[0]
    if is_negative:
        total = -total
    for negate, part in ordered[1:]:
        total = total - part if negate else total + part
    return total


def chosen(number: Any, expressions: Sequence[Any]) -> Any:
    """Return ``expressions[number]`` as conditions on `number`, which unrolling folds to one."""
    result = expressions[-1]
    for n, expression in reversed(list(enumerate(expressions[:-1]))):
        result = te.if_then_else(number == n, expression, result)
    return result
