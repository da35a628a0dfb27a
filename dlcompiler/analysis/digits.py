"""Fused loops as several: a loop over ``f`` that is used as ``f // 32`` and ``f % 32`` is two.

Where all that divides a variable are multiples of each other, its values have digits, and these are
as independent as the variables of loops: ``f = 32*high + low``. Quotients and remainders are sums
of digits.
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
class Digit:
    """A digit of a loop variable."""

    var: Var
    weight: int
    """What it counts in the variable."""
    extent: int
    """Its values are below; [1]."""


Digits = Mapping[Var, tuple[Digit, ...]]
"""For a variable its digits, the least first."""


def digits_of(accesses: Iterable[Access], analyzer: Analyzer) -> dict[Var, tuple[Digit, ...]]:
    """Return the digits of the loop variables that are divided in indices and conditions."""
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
        if extent is not None and (digits := _digits(var, own, extent)):
            found[var] = digits
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
    """Yield variables, and by how much each must grow for the form to grow by 1."""
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


def _digits(var: Var, weights: set[int], extent: int) -> tuple[Digit, ...]:
    """Return the digits between weights; none where one is no multiple of the next smaller one."""
    inner = sorted(weight for weight in weights if weight != 1 and weight < extent)
    if not inner or inner[0] < 2 or any(b % a for a, b in pairwise(inner)):
        return ()
    ends = [1, *inner]
    digits = []
    for n, weight in enumerate(ends):
        size = -(-extent // weight) if n == len(ends) - 1 else ends[n + 1] // weight
        digits.append(Digit(Var(f"{var.name}.digit{n}"), weight, size))
    return tuple(digits)


def is_whole(digits: tuple[Digit, ...], extent: int) -> bool:
    """Tell whether all combinations of digits are values of the variable."""
    return digits[-1].weight * digits[-1].extent == extent
