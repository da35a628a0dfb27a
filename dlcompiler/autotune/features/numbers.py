"""Numbers that depend on knobs, as formulas.

A number that depends on no knob is a plain Python number. Every other number is a `Number`: a node
of a hash-consed graph (equal formulas are one node), with the range of its values. The graph is
evaluated for many configs at once (`evaluation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

Op: TypeAlias = Literal[
    "knob", "add", "sub", "mul", "div", "floordiv", "mod", "gcd", "min", "max", "le", "eq", "select"
]
Num: TypeAlias = "float | Number"
"""A plain number, or a formula of knobs."""


class Number:
    """A formula of knobs: a leaf made by `Graph.knob`, or an arithmetic operation.

    The values of all formulas are whole numbers below 2**52, or quotients of two of them: float64
    computes them as Python does.
    """

    __slots__ = ("args", "graph", "high", "knob", "knobs", "low", "op", "position", "table")

    def __init__(
        self,
        graph: Graph,
        op: Op,
        args: tuple[Num, ...],
        span: tuple[float, float],
        knob: int = -1,
        table: tuple[float, ...] = (),
    ) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.low, self.high = span
        self.knob = knob
        """Position of the knob in the space, for a leaf."""
        self.table = table
        """Its value for each value of the knob, for a leaf."""
        own = frozenset() if knob < 0 else frozenset((knob,))
        self.knobs: frozenset[int] = own.union(
            *(arg.knobs for arg in args if isinstance(arg, Number))
        )
        """The numbers of the knobs that it depends on."""
        self.position = graph.count
        """Order of creation; operands have smaller numbers than the formulas that use them."""

    def __add__(self, other: Num) -> Num:
        return add(self, other)

    def __radd__(self, other: Num) -> Num:
        return add(other, self)

    def __sub__(self, other: Num) -> Num:
        return subtract(self, other)

    def __rsub__(self, other: Num) -> Num:
        return subtract(other, self)

    def __mul__(self, other: Num) -> Num:
        return multiply(self, other)

    def __rmul__(self, other: Num) -> Num:
        return multiply(other, self)

    def __repr__(self) -> str:
        if self.op == "knob":
            return f"knob{self.knob}{list(self.table)}"
        return f"{self.op}({', '.join(map(repr, self.args))})"


class Graph:
    """All formulas of a space; equal ones are the same object."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Number] = {}

    @property
    def count(self) -> int:
        """Number of different formulas."""
        return len(self._nodes)

    def knob(self, number: int, table: Sequence[float]) -> Num:
        """Return the formula of a knob; `table` gives a number for each of the knob's values."""
        first = table[0]
        if all(value == first for value in table):
            return first
        key = ("knob", number, tuple(table))
        return self._made(key, "knob", (), (min(table), max(table)), number, tuple(table))

    def node(self, op: Op, args: tuple[Num, ...], span: tuple[float, float]) -> Num:
        """Return the formula of an operation; if only one value is possible, return that value."""
        if span[0] == span[1]:
            return span[0]
        return self._made((op, args), op, args, span)

    def _made(
        self,
        key: tuple[object, ...],
        op: Op,
        args: tuple[Num, ...],
        span: tuple[float, float],
        knob: int = -1,
        table: tuple[float, ...] = (),
    ) -> Number:
        known = self._nodes.get(key)
        if known is None:
            known = self._nodes[key] = Number(self, op, args, span, knob, table)
        return known


def low(value: Num) -> float:
    """Return the least value that a number can have."""
    return value.low if isinstance(value, Number) else value


def high(value: Num) -> float:
    """Return the largest value that a number can have."""
    return value.high if isinstance(value, Number) else value


def _graph(a: Num, b: Num) -> Graph:
    if isinstance(a, Number):
        return a.graph
    assert isinstance(b, Number)
    return b.graph


def add(a: Num, b: Num) -> Num:
    """Return ``a + b``."""
    if not isinstance(a, Number):
        if not isinstance(b, Number):
            return a + b
        a, b = b, a
    if not isinstance(b, Number):
        return a.graph.node("add", (a, b), (a.low + b, a.high + b)) if b else a
    if b.position < a.position:
        a, b = b, a
    return a.graph.node("add", (a, b), (a.low + b.low, a.high + b.high))


def subtract(a: Num, b: Num) -> Num:
    """Return ``a - b``."""
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return a - b
    if a is b:
        return 0
    if isinstance(a, Number) and a.op == "add" and b in a.args:
        return a.args[1 - a.args.index(b)]
    if not isinstance(b, Number):
        return add(a, -b)
    return _graph(a, b).node("sub", (a, b), (low(a) - high(b), high(a) - low(b)))


def multiply(a: Num, b: Num) -> Num:
    """Return ``a * b``."""
    if not isinstance(a, Number):
        if not isinstance(b, Number):
            return a * b
        a, b = b, a
    if not isinstance(b, Number):
        if b <= 0:
            return a.graph.node("mul", (a, b), (a.high * b, a.low * b)) if b else 0
        return a if b == 1 else a.graph.node("mul", (a, b), (a.low * b, a.high * b))
    if b.position < a.position:
        a, b = b, a
    if a.low >= 0 and b.low >= 0:
        return a.graph.node("mul", (a, b), (a.low * b.low, a.high * b.high))
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return a.graph.node("mul", (a, b), (min(ends), max(ends)))


def divide(a: Num, b: Num) -> Num:
    """Return ``a / b``, for a positive `b`."""
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return a / b
    if not isinstance(b, Number) and b == 1:
        return a
    if a is b:
        return 1
    ends = [x / y for x in (low(a), high(a)) for y in _divisors(b)]
    return _graph(a, b).node("div", (a, b), (min(ends), max(ends)))


def floordiv(a: Num, b: Num) -> Num:
    """Return ``a // b``, for a positive `b`."""
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return a // b
    if a is b:
        return 1
    if not isinstance(b, Number) and b == 1:
        return a
    if isinstance(a, Number) and a.op == "mul" and b in a.args:
        return a.args[1 - a.args.index(b)]
    ends = [x // y for x in (low(a), high(a)) for y in _divisors(b)]
    return _graph(a, b).node("floordiv", (a, b), (min(ends), max(ends)))


def _divisors(b: Num) -> tuple[float, float]:
    """Return the range of a divisor, from 1 on: no config that is used divides by 0."""
    return max(low(b), 1), max(high(b), 1)


def mod(a: Num, b: Num) -> Num:
    """Return ``a % b``, for a positive `b`."""
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return a % b
    if a is b or (not isinstance(b, Number) and b == 1):
        return 0
    if low(a) >= 0 and high(a) < low(b):
        return a
    return _graph(a, b).node("mod", (a, b), (0, high(b) - 1))


def gcd(a: Num, b: int) -> Num:
    """Return the greatest common divisor of a non-negative number and a plain one."""
    if not isinstance(a, Number):
        return math.gcd(int(a), b)
    return a.graph.node("gcd", (a, b), (1, b))


def ceildiv(a: Num, b: Num) -> Num:
    """Return ``ceil(a / b)``, for a positive `b`."""
    if a is b:
        return 1
    return floordiv(add(a, subtract(b, 1)), b)


def least(a: Num, b: Num) -> Num:
    """Return the minimum of two numbers."""
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return min(a, b)
    if a is b or high(a) <= low(b):
        return a
    if high(b) <= low(a):
        return b
    return _graph(a, b).node("min", (a, b), (min(low(a), low(b)), min(high(a), high(b))))


def most(a: Num, b: Num) -> Num:
    """Return the maximum of two numbers."""
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return max(a, b)
    if a is b or low(a) >= high(b):
        return a
    if low(b) >= high(a):
        return b
    return _graph(a, b).node("max", (a, b), (max(low(a), low(b)), max(high(a), high(b))))


def at_most(a: Num, b: Num) -> Num:
    """Return 1 where ``a <= b``, else 0."""
    if high(a) <= low(b):
        return 1
    if low(a) > high(b):
        return 0
    if a is b:
        return 1
    return _graph(a, b).node("le", (a, b), (0, 1))


def equal(a: Num, b: Num) -> Num:
    """Return 1 where ``a == b``, else 0."""
    if a is b:
        return 1
    if not (isinstance(a, Number) or isinstance(b, Number)):
        return int(a == b)
    if high(a) < low(b) or high(b) < low(a):
        return 0
    return _graph(a, b).node("eq", (a, b), (0, 1))


def select(condition: Num, a: Num, b: Num) -> Num:
    """Return `a` where `condition` is not 0, else `b`."""
    if not isinstance(condition, Number):
        return a if condition else b
    if a is b or not (isinstance(a, Number) or isinstance(b, Number) or a != b):
        return a
    span = min(low(a), low(b)), max(high(a), high(b))
    return condition.graph.node("select", (condition, a, b), span)


def product(values: Sequence[Num]) -> Num:
    """Return the product of all numbers."""
    plain = math.prod(value for value in values if not isinstance(value, Number))
    result: Num = plain
    for value in values:
        if isinstance(value, Number):
            result = multiply(result, value)
    return result
