"""Describe accesses as sums of loop variables with bounds, from which elements are counted."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.analysis.accesses import Access
from dlcompiler.analysis.fused_indices import UnfusedIndices, is_whole, unfused_indices
from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import Binary, Call, Compare, Const, Expr, Not, Var, index_const, structural_key

_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class Sum:
    """``sum(factor * var) + constant``."""

    factors: Mapping[Var, int]
    constant: int

    def at(self, values: Mapping[Var, int]) -> int:
        """Return the constant plus the terms of the variables in `values`."""
        return self.constant + sum(
            factor * values[var] for var, factor in self.factors.items() if var in values
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition as bounds: `sum` without its constant is between `low` and `high`."""

    sum: Sum
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The affine parts of an access: indices and conditions as sums of loop variables."""

    access: Access
    extents: Mapping[Var, int]
    """Extents of the loops around it; for a fused loop, those of the indices it was fused from."""
    unfused: UnfusedIndices
    """The indices of the fused loops."""
    indices: tuple[Sum | None, ...]
    """None: not a sum of loop variables and unfused indices."""
    bounds: tuple[Bound, ...]
    is_known: bool
    """Whether `bounds` is equivalent to all conditions and loop extents."""
    variables: frozenset[Var]
    """Those of `extents` that are in the indices and conditions."""

    @property
    def place(self) -> Hashable:
        """A key that is equal for accesses to one buffer with the same indices."""
        return self.access.buffer, tuple(
            structural_key(index) if sum_ is None else (*sum_.factors.items(), sum_.constant)
            for sum_, index in zip(self.indices, self.access.indices, strict=True)
        )

    @property
    def signature(self) -> Hashable:
        """A key that is equal only for accesses to the same elements under the same conditions."""
        conditions = () if self.is_known else tuple(map(structural_key, self.access.conditions))
        bounds = ((*bound.sum.factors.items(), bound.low, bound.high) for bound in self.bounds)
        return self.place, conditions, *bounds

    @property
    def is_affine(self) -> bool:
        """Tell whether all indices are sums."""
        return None not in self.indices

    def fixed(self, depth: int) -> list[Var]:
        """Return the variables of the loops outside the one at `depth`."""
        return [
            var for loop in self.access.loops[:depth]
            for var in ([part.var for part in self.unfused.get(loop.var, ())] or [loop.var])
        ]  # fmt: skip

    def innermost(self, var: Var) -> Var:
        """Return the innermost index that a variable was fused from, or the variable itself."""
        return self.unfused[var][0].var if var in self.unfused else var


class Reader:
    """A converter of the accesses of one program to references."""

    def __init__(self, accesses: Sequence[Access], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.unfused: UnfusedIndices = unfused_indices(accesses, analyzer)
        # A loop is unfused in all accesses in the same way, or in none.
        while self.unfused and (spoiled := self._spoiled(accesses)):
            self.unfused = {var: own for var, own in self.unfused.items() if var not in spoiled}

    def _spoiled(self, accesses: Sequence[Access]) -> set[Var]:
        """Return the variables in accesses that are not affine in the unfused indices."""
        found: set[Var] = set()
        for access in accesses:
            item = self.read(access)
            if item is not None and not (item.is_affine and item.is_known):
                exprs = (*access.indices, *access.conditions)
                found.update(var for expr in exprs for var in self.analyzer.vars_of(expr))
        return found & self.unfused.keys()

    def read(self, access: Access) -> Reference | None:
        """Return an access as sums, or None if a loop around it has an unbounded extent."""
        extents: dict[Var, int] = {}
        bounds: list[Bound] = []
        is_known = True
        for loop in access.loops:
            size = loop.size
            if size is None:
                high = self.analyzer.interval(loop.extent).high
                if high == math.inf:
                    return None
                size, is_known = max(int(high), 0), False
            if loop.var in self.unfused:
                parts = self.unfused[loop.var]
                extents.update((part.var, part.extent) for part in parts)
                if not is_whole(parts, size):
                    whole = Sum({part.var: part.weight for part in parts}, 0)
                    bounds.append(Bound(whole, 0, size - 1))
            else:
                extents[loop.var] = size
        indices = tuple(self.sum(self.analyzer.affine(index), extents) for index in access.indices)
        for condition in access.conditions:
            found = self.bound(condition, extents)
            if found is None:
                is_known = False
            else:
                bounds.append(found)
        used = {var for expr in (*access.indices, *access.conditions)
                for var in self.analyzer.vars_of(expr)}  # fmt: skip
        own = {part.var for var in used for part in self.unfused.get(var, ())}
        return Reference(
            access, extents, self.unfused, indices, tuple(merged(bounds)), is_known,
            frozenset((used | own) & extents.keys()),
        )  # fmt: skip

    def sum(self, form: Affine, extents: Mapping[Var, int]) -> Sum | None:
        """Return an affine form as a sum of variables with extents; None if it is not one."""
        factors: dict[Var, int] = {}
        constant = form.constant
        for term in form.terms.values():
            part = self._atom(term.parts[0], extents) if len(term.parts) == 1 else None
            if part is None:
                return None
            constant += part.constant * term.factor
            for var, factor in part.factors.items():
                factors[var] = factors.get(var, 0) + factor * term.factor
        return Sum({var: factors[var] for var in extents if factors.get(var)}, constant)

    def _atom(self, atom: Expr, extents: Mapping[Var, int]) -> Sum | None:
        match atom:
            case Var() if atom in self.unfused and self.unfused[atom][0].var in extents:
                return Sum({part.var: part.weight for part in self.unfused[atom]}, 0)
            case Var() if atom in extents:
                return Sum({atom: 1}, 0)
            case Binary("floordiv" | "floormod" as op, a, Const(divisor, "index")) if divisor > 0:
                inner = self.sum(self.analyzer.affine(a), extents)
                return inner and _divided(op, inner, int(divisor), extents)
        return None

    def bound(self, condition: Expr, extents: Mapping[Var, int]) -> Bound | None:
        """Return a condition as bounds on a sum of loop variables; None for other conditions."""
        if isinstance(condition, Const):
            return Bound(Sum({}, 0), 0 if condition.value else 1, 0)
        for op, a, b in _comparisons(condition):
            sum_ = self.sum(self.analyzer.affine(a).plus(self.analyzer.affine(b), -1), extents)
            if sum_ is None or op == "ne":
                return None
            return _bound(op, sum_)
        return None


def _comparisons(condition: Expr) -> Iterator[tuple[str, Expr, Expr]]:
    match condition:
        case Compare(op, Binary("floordiv", a, Const(c, "index")), Const(b, "index")) if (
            op in ("lt", "ge") and c > 0
        ):
            yield op, a, index_const(int(b) * int(c))
        case Compare(op, a, b) if a.dtype == "index":
            yield op, a, b
        case Not(Compare(op, a, b)) if a.dtype == "index":
            yield _NEGATED[op], a, b
        case Call("likely", (inner,), _):
            yield from _comparisons(inner)


def _bound(op: str, sum_: Sum) -> Bound:
    """Return ``sum op 0`` as bounds on the sum divided by the common factor of its terms.

    The first factor is made positive, so that equal sums compare equal.
    """
    edge: float = -sum_.constant
    low, high = {
        "lt": (-math.inf, edge - 1), "le": (-math.inf, edge), "eq": (edge, edge),
        "gt": (edge + 1, math.inf), "ge": (edge, math.inf),
    }[op]  # fmt: skip
    common = math.gcd(*sum_.factors.values())
    if not common:
        return Bound(Sum({}, 0), low, high)
    if next(iter(sum_.factors.values())) < 0:
        common, low, high = -common, -high, -low
    low = low if low == -math.inf else -(-int(low) // abs(common))
    high = high if high == math.inf else int(high) // abs(common)
    return Bound(Sum({var: factor // common for var, factor in sum_.factors.items()}, 0), low, high)


def _divided(op: str, sum_: Sum, divisor: int, extents: Mapping[Var, int]) -> Sum | None:
    """Return a quotient or a remainder of a sum as a sum; None if it is not one."""
    whole = {var: factor for var, factor in sum_.factors.items() if factor % divisor == 0}
    rest = {var: factor for var, factor in sum_.factors.items() if factor % divisor}
    constant = sum_.constant % divisor
    ends = [factor * (extents[var] - 1) for var, factor in rest.items()]
    low = constant + sum(min(end, 0) for end in ends)
    high = constant + sum(max(end, 0) for end in ends)
    if low < 0 or high >= divisor:
        return None
    if op == "floormod":
        return Sum(rest, constant)
    quotients = {var: factor // divisor for var, factor in whole.items()}
    return Sum(quotients, sum_.constant // divisor)


def merged(bounds: Iterable[Bound]) -> list[Bound]:
    """Return bounds after combining those on equal sums into one."""
    found: dict[tuple[tuple[Var, int], ...], Bound] = {}
    for bound in bounds:
        key = tuple(bound.sum.factors.items())
        old = found.get(key, bound)
        found[key] = Bound(bound.sum, max(old.low, bound.low), min(old.high, bound.high))
    return list(found.values())
