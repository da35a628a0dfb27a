"""Compute the box of elements that a store and its loops write without gaps.

Loops that also enclose the reader are fixed at one iteration; the others run (*sweep*). An index
such as ``4*o + v`` sweeps 0, 1, … without a gap when each factor is at most what the terms below it
reach together. A guard on exactly such a sum (``4*o + v < 10``) cuts the sweep short; The answer is
None for any other condition on a sweeping variable, and for any other form of index.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from dlcompiler.analysis.accesses import Access, Loop
from dlcompiler.analysis.guards import Guards
from dlcompiler.analysis.injectivity import has_load
from dlcompiler.arith import Affine, Analyzer
from dlcompiler.arith.affine import AtomKey, Term, atom_key
from dlcompiler.ir import Binary, Const, Expr, Var, free_vars, structural_key

ZERO = Affine.of_constant(0)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The indices ``first + k`` of one dimension for k from 0 to `count` - 1."""

    first: Affine
    count: int
    limits: tuple[Affine, ...] = ()
    """Upper limits of k: sums over the variables of fixed loops."""

    def has(self, index: Affine, guards: Guards, analyzer: Analyzer) -> bool:
        """Tell whether an index is always in the sweep where the guards hold."""
        place = index.plus(self.first, -1)
        bounds = guards.narrow(place, analyzer.bounds(place))
        if bounds.low < 0 or bounds.high >= self.count:
            return False
        beyond = (place.plus(limit, -1) for limit in self.limits)
        return all(guards.narrow(form, analyzer.bounds(form)).high <= 0 for form in beyond)


def covered_box(
    store: Access, shared: Collection[Loop], holds: Collection[Expr], analyzer: Analyzer
) -> tuple[Sweep, ...] | None:
    """Return the box that a store writes while all its loops except the `shared` ones run.

    Parameters
    ----------
    store
        The store.
    shared
        Fixed loops: those around both the store and the reader.
    holds
        Conditions that are known to hold.
    analyzer
        Holds the range of each variable.

    Returns
    -------
    tuple of Sweep or None
        None if it is not known to be a box.
    """
    sweeping = {loop.var: loop for loop in store.loops if loop not in shared}
    if any(loop.size is None or loop.size < 1 for loop in sweeping.values()):
        return None
    open_ = store.conditions
    if open_:
        # Other conditions may not hold for the whole sweep: data may change, and sweeping
        # variables take other values.
        known = {
            structural_key(c) for c in holds if not (has_load(c) or free_vars(c) & sweeping.keys())
        }
        open_ = tuple(c for c in open_ if structural_key(c) not in known)
    cover = _Cover(sweeping, Guards(open_, analyzer), analyzer)
    sweeps = [cover.sweep(analyzer.affine(index)) for index in store.indices]
    if len(cover.used_guards) < len(open_):
        return None
    return tuple(sweep for sweep in sweeps if sweep) if all(sweeps) else None


@dataclass
class _Cover:
    sweeping: dict[Var, Loop]
    guards: Guards
    analyzer: Analyzer
    used: dict[AtomKey, list[tuple[int, int]]] = field(default_factory=dict)
    """For each sweeping value, the digits [low, high) that indices have used so far."""
    sizes: dict[AtomKey, int] = field(default_factory=dict)
    used_guards: set[int] = field(default_factory=set)

    def sweep(self, number: Affine) -> Sweep | None:
        """Return the range that an index sweeps in steps of 1; None if unknown."""
        first, moving = Affine.of_constant(number.constant), list[tuple[AtomKey, Term]]()
        for key, term in number.terms.items():
            if self.is_moving(term):
                moving.append((key, term))
            elif any(has_load(part) for part in term.parts):
                return None  # the element that is loaded may change before the index is used again
            else:
                first = first.plus(Affine({key: term}))
        moving.sort(key=lambda item: abs(item[1].factor))
        part = Sweep(ZERO, 1)
        terms: dict[AtomKey, Term] = {}
        for key, term in moving:
            own = self.count(term.parts[0]) if len(term.parts) == 1 else None
            if own is None or abs(term.factor) > part.count or part.limits:
                return None
            if term.factor < 0:
                first = first.plus(Affine.of_constant((own - 1) * term.factor))
            terms[key] = term
            part = self.cut(terms, part.count + (own - 1) * abs(term.factor))
        return Sweep(first, part.count, part.limits)

    def is_moving(self, term: Term) -> bool:
        return any(var in self.sweeping for p in term.parts for var in self.analyzer.vars_of(p))

    def count(self, atom: Expr) -> int | None:
        """Return n if an atom takes all values 0 to n-1 for any values of the earlier atoms."""
        value, low, high = _digit_of(atom)
        size = self.size(value)
        if size is None:
            return None
        high = high or size
        if (low > 1 or high < size) and (size % high or high % low):
            return None
        taken = self.used.setdefault(atom_key(value), [])
        if any(low < other_high and other_low < high for other_low, other_high in taken):
            return None
        taken.append((low, high))
        return high // low

    def size(self, value: Expr) -> int | None:
        """Return n if an expression takes all values from 0 to n-1, else None."""
        if isinstance(value, Var):
            return self.sweeping[value].size if value in self.sweeping else None
        key = atom_key(value)
        if key not in self.sizes and isinstance(value, Binary) and value.op == "add":
            inner = self.sweep(self.analyzer.affine(value))
            if inner is not None and not inner.first.terms and not inner.limits:
                self.sizes[key] = inner.count if inner.first.constant == 0 else 0
        return self.sizes.get(key) or None

    def cut(self, terms: dict[AtomKey, Term], count: int) -> Sweep:
        """Return the part of a sweep that the guards on its sum allow."""
        limits: list[Affine] = []
        for number, (known, interval) in enumerate(self.guards.bounds):
            moving = {key: term for key, term in known.terms.items() if self.is_moving(term)}
            if moving.keys() != terms.keys() or interval.high == math.inf:
                continue
            if any(moving[key].factor != term.factor for key, term in terms.items()):
                continue
            if any(term.factor < 0 for term in terms.values()):
                continue
            self.used_guards.add(number)
            fixed = Affine({k: t for k, t in known.terms.items() if k not in moving})
            if fixed.terms:
                limits.append(Affine.of_constant(int(interval.high)).plus(fixed, -1))
            else:
                count = min(count, int(interval.high) + 1)
        return Sweep(ZERO, max(count, 0), tuple(limits))


def _digit_of(atom: Expr) -> tuple[Expr, int, int]:
    """Return (x, low, high) when an atom is ``x % high // low``; high is 0 for ``x // low``."""
    match atom:
        case Binary("floormod", Binary("floordiv", x, Const(b, _)), Const(a, _)) if a > 0 < b:
            return x, int(b), int(a * b)
        case Binary("floordiv", x, Const(b, _)) if b > 0:
            return x, int(b), 0
        case Binary("floormod", x, Const(a, _)) if a > 0:
            return x, 1, int(a)
    return atom, 1, 0
