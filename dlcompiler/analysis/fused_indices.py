"""Split a fused loop variable into the indices that it was fused from.

A loop over ``f`` that is used as ``f // 32`` and ``f % 32`` counts as two loops with independent
indices: ``f = 32*high + low``. This works where all divisors of a variable are multiples of each
other. Its quotients and remainders are then sums of these indices, and the accesses are affine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dlcompiler.analysis.accesses import Access
from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import Binary, Const, Expr, Var, walk


@dataclass(frozen=True, slots=True)
class UnfusedIndex:
    """One of the indices that a loop variable was fused from."""

    var: Var
    weight: int
    """Increase of the loop variable when this index grows by 1."""
    extent: int
    """Number of its values; [1]."""


UnfusedIndices = Mapping[Var, tuple[UnfusedIndex, ...]]
"""For a loop variable the indices that it was fused from, innermost first."""


def unfused_indices(
    accesses: Iterable[Access], analyzer: Analyzer
) -> dict[Var, tuple[UnfusedIndex, ...]]:
    """Return, for each loop variable that accesses divide, the indices it was fused from."""
    extents: dict[Var, int | None] = {}
    weights: dict[Var, set[int]] = {}
    seen: set[int] = set()
    for access in accesses:
        for loop in access.loops:
            same = extents.setdefault(loop.var, loop.size)
            extents[loop.var] = loop.size if same == loop.size else None
        for expr in (*access.indices, *access.conditions):
            if id(expr) in seen:
                continue
            seen.add(id(expr))
            for part in walk(expr):
                if isinstance(part, Expr):
                    _add_weights(part, analyzer, weights)
    found = {}
    for var, own in weights.items():
        extent = extents.get(var)
        if extent is not None and (parts := _unfused(var, own, extent)):
            found[var] = parts
    return found


def _add_weights(expr: Expr, analyzer: Analyzer, weights: dict[Var, set[int]]) -> None:
    match expr:
        case Binary("floordiv" | "floormod", a, Const(divisor, "index")) if divisor > 0:
            for var, step in _steps(analyzer.affine(a), analyzer):
                weight = int(divisor) * step
                if weight.denominator == 1:
                    weights.setdefault(var, set()).add(int(weight))
                else:
                    weights.setdefault(var, set()).add(0)  # not by whole steps


def _steps(form: Affine, analyzer: Analyzer) -> Iterator[tuple[Var, Fraction]]:
    """Yield each variable with the increase of it that makes the form grow by 1."""
    for term in form.terms.values():
        for part in term.parts:
            scale = Fraction(1, abs(term.factor))
            match part:
                case Var():
                    yield part, scale
                case Binary("floordiv", a, Const(divisor, "index")) if divisor > 0:
                    for var, step in _steps(analyzer.affine(a), analyzer):
                        yield var, step * int(divisor) * scale
                case Binary("floormod", a, _):
                    for var, step in _steps(analyzer.affine(a), analyzer):
                        yield var, step * scale


def _unfused(var: Var, weights: set[int], extent: int) -> tuple[UnfusedIndex, ...]:
    """Return the indices with these weights; none if a weight is no multiple of a smaller one."""
    inner = sorted(weight for weight in weights if weight != 1 and weight < extent)
    if not inner or inner[0] < 2 or any(b % a for a, b in pairwise(inner)):
        return ()
    ends = [1, *inner]
    parts = []
    for n, weight in enumerate(ends):
        size = -(-extent // weight) if n == len(ends) - 1 else ends[n + 1] // weight
        parts.append(UnfusedIndex(Var(f"{var.name}.part{n}"), weight, size))
    return tuple(parts)


def is_whole(parts: tuple[UnfusedIndex, ...], extent: int) -> bool:
    """Tell whether every combination of the indices is a value of the loop variable."""
    return parts[-1].weight * parts[-1].extent == extent
