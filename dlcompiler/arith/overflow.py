"""Find limits on data under which the arithmetic of an index does not overflow.

Index arithmetic is compiled as if it never overflowed: extents are limited, and so are all indices
made of axes. An index that is read from a tensor is not: ``A[I[i]*3 + 1]`` overflows for huge
elements of ``I``, and a comparison of the result is then meaningless. So the elements are compared
with a limit first.
"""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler.arith.bounds import bounds_of_operation
from dlcompiler.arith.data_ranges import data_range
from dlcompiler.arith.interval import EVERYTHING, Interval
from dlcompiler.ir import Binary, Cast, Const, Expr, IfThenElse, Select, Var, compare, walk
from dlcompiler.ir.rewrite import walk_up

LIMITS = (2**48, 2**31, *(2**bits for bits in range(15, -1, -1)))
"""Largest sizes of elements that are tried: the first is beyond the extents of all tensors; [1]."""
SAFE = Interval(-(2**62), 2**62)
INDEX = Interval(-(2**63), 2**63 - 1)
"""The values of an index in a compiled program."""


def limits_of_data(index: Expr, of_index: Callable[[Expr], Interval]) -> list[Expr]:
    """Return conditions on the data that an index reads; if they hold, it does not overflow.

    Parameters
    ----------
    index
        An index expression.
    of_index
        Bounds of an index expression without data.

    Examples
    --------
    >>> from dlcompiler.arith import Analyzer
    >>> from dlcompiler.ir import Buffer, Load, Var, cast
    >>> element = cast(Load(Buffer("I", (8,), "int64"), (Var("i"),)), "index")
    >>> for condition in limits_of_data(element * 3, Analyzer({}).interval): print(condition)
    index(I[i]) >= -281474976710656
    index(I[i]) <= 281474976710656
    """
    if isinstance(index, Var | Const):  # most indices
        return []
    read = [node for node in walk(index) if isinstance(node, Cast) and _is_read(node)]
    if not read or _is_read(index):
        return []
    limit = next((n for n in LIMITS if _is_safe(index, n, of_index)), LIMITS[-1])
    return [
        condition
        for element in read
        if not _is_within(_range(element, of_index), Interval(-limit, limit))
        for condition in (compare("ge", element, -limit), compare("le", element, limit))
    ]


def is_limited(condition: Expr, of_index: Callable[[Expr], Interval]) -> bool:
    """Tell whether no index in a condition can overflow, for all data that it may read."""
    indices = (node for node in walk(condition) if isinstance(node, Binary))
    return not any(limits_of_data(n, of_index) for n in indices if n.dtype == "index")


def overflow(expr: Expr, of_var: Callable[[Var], Interval]) -> Expr | None:
    """Return a part of an expression that is an index and may not fit 64 bits; else None.

    Parameters
    ----------
    expr
        An expression.
    of_var
        Bounds of a variable. Indices that depend on unbounded variables or on data are skipped.

    Examples
    --------
    >>> from dlcompiler.ir import Var
    >>> print(overflow(Var("i") * 2**62 % 10, lambda var: Interval(0, 3)))
    i*4611686018427387904
    """
    known: dict[int, Interval] = {}

    def of_leaf(leaf: Expr) -> Interval:
        return of_var(leaf) if isinstance(leaf, Var) else EVERYTHING

    for node in walk_up(expr):  # operands first: the recursion is never deep
        if isinstance(node, Expr) and node.dtype == "index":
            found = _bounds_of(node, of_leaf, known)
            if found.is_bounded and not _is_within(found, INDEX):
                return node
    return None


def _bounds_of(
    index: Expr, of_leaf: Callable[[Expr], Interval], known: dict[int, Interval]
) -> Interval:
    """Return the bounds of an index, and store the bounds of all its parts in `known`.

    `of_leaf` returns the bounds of a variable or of another operand that is not index arithmetic.
    """
    if id(index) in known:
        return known[id(index)]
    match index:
        case Const(value):
            found = Interval(int(value), int(value))
        case Binary(op, a, b):
            x, y = (_bounds_of(operand, of_leaf, known) for operand in (a, b))
            found = bounds_of_operation(op, x, y)
        case Select(_, a, b) | IfThenElse(_, a, b):
            x, y = (_bounds_of(side, of_leaf, known) for side in (a, b))
            found = x.hull(y)
        case _:
            found = of_leaf(index)
    known[id(index)] = found
    return found


def _is_read(node: object) -> bool:
    """Tell whether a node converts data to an index."""
    return isinstance(node, Cast) and node.dtype == "index" and node.value.dtype != "index"


def _range(element: Expr, of_index: Callable[[Expr], Interval]) -> Interval:
    assert isinstance(element, Cast)
    found = data_range(element.value, of_index)
    return found if _is_within(found, INDEX) else INDEX


def _is_within(inner: Interval, outer: Interval) -> bool:
    return outer.low <= inner.low and inner.high <= outer.high


def _is_safe(index: Expr, limit: int, of_index: Callable[[Expr], Interval]) -> bool:
    """Tell whether all parts of an index are in `SAFE` if ``abs(data) <= limit``."""

    def of_leaf(leaf: Expr) -> Interval:
        is_read = _is_read(leaf)
        found = _range(leaf, of_index) if is_read else of_index(leaf)
        most = limit if is_read else LIMITS[0]  # a variable stays below the largest extent
        return Interval(max(found.low, -most), min(found.high, most))

    known: dict[int, Interval] = {}
    _bounds_of(index, of_leaf, known)
    return all(_is_within(found, SAFE) for found in known.values())
