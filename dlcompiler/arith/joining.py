"""Join the indices of a fused loop: ``A[f // 7, f % 7]`` is ``A[0, f]`` in row-major memory."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Const,
    Expr,
    Extent,
    Ramp,
    Var,
    binary,
    extent_expr,
    index_const,
    structural_equal,
    walk,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.operations import DIVISIONS

_ZERO = index_const(0)


def joined(indices: Sequence[Expr], strides: Sequence[Extent]) -> tuple[Expr, ...] | None:
    """Return indices of the same element, with one index instead of the parts of a fused loop.

    Parameters
    ----------
    indices : sequence of Expr
        The indices of an access, one for each dimension.
    strides : sequence of Extent
        The strides of the buffer [elements].

    Returns
    -------
    tuple of Expr or None
        The fused index stands in the last of the joined dimensions; the others get 0. If a term is
        added to the first index, the first keeps it. The fused index may exceed its dimension.
        None if no indices can be joined.

    Notes
    -----
    A vector that fills a part of the joined dimensions evenly never crosses their end. Then the
    dimensions before them may have any indices: those of ``f = ramp(16*i, 1, 16)`` in dimensions of
    4·12 elements are ``A[i // 3, 0, ramp(16*i % 48, 1, 16)]``.

    Examples
    --------
    >>> from dlcompiler.ir import Var, binary
    >>> f = Var("f", "index")
    >>> print(*joined((binary("floordiv", f, 7), binary("floormod", f, 7)), (7, 1)))
    0 f
    """
    for last in reversed(range(1, len(indices))):
        source, by, extent = _parts(indices[last])
        if by != 1 or extent is None or not _is(strides[last], 1):
            continue
        found = _first_of_run(indices, strides, last, source, extent)
        if found is not None:
            first, base = found
            zeros = (index_const(0),) * (last - first - 1)
            return (*indices[:first], base, *zeros, source, *indices[last + 1 :])
        first, covered = _run(indices, strides, last, source, extent)
        part = _part_of(source, covered) if first < last else None
        if part is not None:
            zeros = (index_const(0),) * (last - first)
            return (*indices[:first], *zeros, part, *indices[last + 1 :])
    return None


def flat_offset(indices: Sequence[Expr], strides: Sequence[Extent]) -> Expr | None:
    """Return the offset of an element [elements] if it needs fewer divisions than its indices.

    Parameters
    ----------
    indices : sequence of Expr
        The indices of an access, one for each dimension.
    strides : sequence of Extent
        The strides of the buffer [elements].

    Returns
    -------
    Expr or None
        None if no quotients and remainders cancel, or a stride is symbolic.

    Examples
    --------
    >>> from dlcompiler.ir import Var
    >>> v = Var("v", "index")
    >>> row, column = binary("floordiv", v, 48), binary("floormod", v, 48)
    >>> print(flat_offset((row, binary("mul", column, 16)), (768, 1)))
    v*16
    """
    if lanes_of(indices) != 1 or not all(isinstance(stride, int) for stride in strides):
        return None
    before = sum(map(_divisions, indices))
    if before < 2:  # it takes a quotient and a remainder to cancel
        return None
    total: Expr = _ZERO
    for index, stride in zip(indices, strides, strict=True):
        total = binary("add", total, binary("mul", index, extent_expr(stride)))
    total = Analyzer({}).simplify(total)
    return total if _divisions(total) < before else None


def _divisions(expr: Expr) -> int:
    if isinstance(expr, Var | Const):  # most indices
        return 0
    return sum(isinstance(node, Binary) and node.op in DIVISIONS for node in walk(expr))


def _run(
    indices: Sequence[Expr], strides: Sequence[Extent], last: int, source: Expr, covered: int
) -> tuple[int, int]:
    """Return the first of the dimensions up to `last` that `source` runs along, and their size."""
    for position in reversed(range(last)):
        own, by, extent = _parts(indices[position])
        if extent is None or by != covered or not _is(strides[position], covered):
            return position + 1, covered
        if not structural_equal(own, source, rename=False):
            return position + 1, covered
        covered *= extent
    return 0, covered


def _part_of(source: Expr, covered: int) -> Expr | None:
    """Return ``source % covered`` as a ramp; None if it is not known to be one."""
    match source:
        case Ramp(base, Const(1), lanes) if covered % lanes == 0 and _is_multiple(base, lanes):
            return Ramp(binary("floormod", base, covered), index_const(1), lanes)
    return None


def _is_multiple(expr: Expr, number: int) -> bool:
    """Tell whether an expression is written as a multiple of a number."""
    match expr:
        case Const(value):
            return int(value) % number == 0
        case Binary("add" | "sub", a, b):
            return _is_multiple(a, number) and _is_multiple(b, number)
        case Binary("mul", a, b):
            return _is_multiple(a, number) or _is_multiple(b, number)
    return False


def _first_of_run(
    indices: Sequence[Expr], strides: Sequence[Extent], last: int, source: Expr, covered: int
) -> tuple[int, Expr] | None:
    """Return the first dimension of the run that ends at `last`, if it covers all of `source`.

    The second result is the term that is added to the index of that dimension, or 0.
    """
    for position in reversed(range(last)):
        index = indices[position]
        if isinstance(index, Const) and index.value == 0:
            continue
        base, index = _without_base(index)
        own, by, extent = _parts(index)
        if (
            by != covered
            or not _is(strides[position], covered)
            or not structural_equal(own, source, rename=False)
        ):
            return None
        if extent is None:
            return position, base
        if base is not _ZERO:
            return None
        covered *= extent
    return None


def _is(stride: Extent, number: int) -> bool:
    """Tell whether a stride is this number; ``==`` on a symbolic one builds an expression."""
    return isinstance(stride, int) and stride == number


def _without_base(index: Expr) -> tuple[Expr, Expr]:
    """Split ``b + x // n``, with b equal in all lanes, into b and ``x // n``; else b is 0."""
    match index:
        case Binary("add", base, Binary("floordiv") as quotient) | Binary(
            "add", Binary("floordiv") as quotient, base
        ):
            if isinstance(base, Broadcast):
                return base.value, quotient
            if lanes_of((base,)) == 1 == lanes_of((quotient,)):
                return base, quotient
    return _ZERO, index


def _parts(index: Expr) -> tuple[Expr, int, int | None]:
    """Return x, n and m of ``x // n % m``; n is 1 without ``//``, and m is None without ``%``."""
    extent = None
    match index:
        case Binary("floormod", x, divisor) if (number := _positive(divisor)) is not None:
            index, extent = x, number
    match index:
        case Binary("floordiv", x, divisor) if (number := _positive(divisor)) is not None:
            return x, number, extent
    return index, 1, extent


def _positive(expr: Expr) -> int | None:
    match expr:
        case Const(value, _) | Broadcast(Const(value, _), _) if int(value) > 0:
            return int(value)
    return None
