"""Injectivity: prove that different iterations of a loop touch different elements.

The proof finds an inverse: a way to compute the iteration from the element alone, which is the same
for all accesses. Then no two iterations touch one element, and the loop carries no dependence.

An index is read as a number in mixed radix. In ``64*o + 8*p + v`` with v and p in [0, 8), p is the
digit ``index % 64 // 8``. `fuse` leaves quotients and remainders of one value, ``f // 5`` and
``f % 5``: they are joined to that value, which may itself be such a number (``f = 32*o + p``).

`Inverse` says how to compute a value from an element, as a hashable tuple. `DigitBounds` has the
range of what is below a digit, which must not reach the digit. The cost grows with the number of
accesses, not with the number of their pairs.

**Source:** V. Maslov, "Delinearization: an efficient way to break multiloop dependence equations",
PLDI 1992.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.analysis.accesses import Access, Loop
from dlcompiler.analysis.guards import Guards
from dlcompiler.arith import Affine, Analyzer
from dlcompiler.arith.affine import AtomKey, Term, atom_key
from dlcompiler.ir import Binary, Expr, Load, Var, walk

Inverse: TypeAlias = tuple[Hashable, ...]
ZERO, ONE = Affine.of_constant(0), Affine.of_constant(1)


@dataclass(frozen=True, slots=True)
class DigitBounds:
    """The ranges around a digit of ``number = larger * modulus + digit * weight + rest``.

    Ends are numbers, or loop-invariant expressions.
    """

    rest: tuple[Affine, Affine]
    """Least and greatest value of the rest."""
    total: tuple[Affine, Affine]
    """Least and greatest value of ``digit * weight + rest``."""
    size: Affine
    """Absolute value of the weight."""
    modulus: Affine | None
    """None if the number has no larger digit."""
    analyzer: Analyzer
    """Holds the conditions at the access."""

    @property
    def is_clear(self) -> bool:
        """Tell whether the digit overlaps neither the rest nor the larger digits."""
        return _is_within(self.rest, self.size, self.analyzer) and (
            self.modulus is None or _is_within(self.total, self.modulus, self.analyzer)
        )

    def union(self, other: DigitBounds) -> DigitBounds | None:
        """Return the bounds for two accesses with one inverse; None if they cannot be compared."""
        rest, total = _hull(self.rest, other.rest), _hull(self.total, other.total)
        if rest is None or total is None:
            return None
        return DigitBounds(rest, total, self.size, self.modulus, self.analyzer)


Ends: TypeAlias = tuple[Affine, Affine]


def _is_within(ends: Ends, width: Affine, analyzer: Analyzer) -> bool:
    """Tell whether the two `ends` provably differ by less than `width`."""
    return analyzer.decide("lt", ends[1].plus(ends[0], -1).plus(width, -1)) is True


def _hull(a: Ends, b: Ends) -> Ends | None:
    low, high = b[0].plus(a[0], -1), b[1].plus(a[1], -1)
    if not (low.is_constant and high.is_constant):
        return None
    return (b[0] if low.constant < 0 else a[0], b[1] if high.constant > 0 else a[1])


def is_injective(loop: Loop, accesses: Sequence[Access], analyzer: Analyzer) -> bool:
    """Tell whether each element is provably touched in only one iteration of a loop.

    Parameters
    ----------
    loop
        A loop around all the accesses.
    accesses
        All accesses of the loop to one buffer.
    analyzer
        Holds the range of each variable.

    Returns
    -------
    bool
        False if there is no proof; the elements may still be distinct.
    """
    depth = accesses[0].loops.index(loop)
    varying = frozenset(inner.var for access in accesses for inner in access.loops[depth:])
    return _InverseSearch(loop, varying, analyzer).is_unique(accesses)


class _InverseSearch:
    """A search for an inverse: the iteration of a loop as a function of the element."""

    def __init__(self, loop: Loop, varying: frozenset[Var], analyzer: Analyzer) -> None:
        self.loop = loop
        self.varying = varying
        """Variables of the loop and of those inside it."""
        self.analyzer = analyzer

    def is_unique(self, accesses: Sequence[Access]) -> bool:
        """Tell whether one inverse computes the iteration from the element for all accesses."""
        digit_bounds: dict[Inverse, DigitBounds | None] = {}
        common: set[Inverse] | None = None
        for access in accesses:
            reader = _Reader(self, access)
            found = reader.read()
            for inverse, bounds in reader.digit_bounds.items():
                old = digit_bounds.get(inverse, bounds)
                digit_bounds[inverse] = old and old.union(bounds)
            common = found if common is None else common & found
            if not common:
                return False
        return any(
            all(
                (own := digit_bounds[part]) and own.is_clear
                for part in _parts(inverse, digit_bounds)
            )
            for inverse in common or ()
        )

    def is_invariant(self, atom: Expr) -> bool:
        """Tell whether an atom has one value in all iterations of the loop."""
        if isinstance(atom, Var):
            return atom not in self.varying
        return self.varying.isdisjoint(self.analyzer.vars_of(atom)) and not has_load(atom)


def has_load(expr: Expr) -> bool:
    """Tell whether an expression depends on the elements of a buffer."""
    return not isinstance(expr, Var) and any(isinstance(node, Load) for node in walk(expr))


def _parts(inverse: Inverse, digit_bounds: Collection[Inverse]) -> Iterator[Inverse]:
    stack: list[Hashable] = [inverse]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            if item in digit_bounds:
                yield item
            stack.extend(item)


@dataclass(frozen=True, slots=True)
class _Digit:
    """A part of a value x: ``x % high // low``; without `high`, ``x // low``."""

    low: Hashable
    high: Affine | None
    inverse: Inverse


class _Reader:
    """The search for inverses in the indices of one access."""

    def __init__(self, search: _InverseSearch, access: Access) -> None:
        self.search = search
        self.access = access
        self.analyzer = search.analyzer
        self.digit_bounds: dict[Inverse, DigitBounds] = {}
        self.found: set[Inverse] = set()
        self.digits: dict[AtomKey, tuple[Expr, list[_Digit]]] = {}
        self.joined: set[AtomKey] = set()
        self.guards = Guards(access.conditions, search.analyzer)

    def read(self) -> set[Inverse]:
        """Return the inverses that the indices of the access provide.

        An index without the loop's variable may hold a digit of a number that contains it.
        """
        for number, index in enumerate(self.access.indices):
            if not self.search.varying.isdisjoint(self.analyzer.vars_of(index)):
                self.number(self.analyzer.affine(index), ("index", number))
        return self.found

    def number(self, number: Affine, inverse: Inverse) -> None:
        """Find the digits of a number whose value an inverse computes."""
        invariant, varying = self.sorted_terms(number)
        base = (*inverse, invariant)
        analyzer = self.analyzer.where_running(number)
        modulus: Affine | None = None
        for place, digit in enumerate(varying):
            terms = {key: term for other in varying[place + 1 :] for key, term in other.terms}
            size = digit.size(analyzer)
            rest = size and self.ends(Affine(terms, number.constant), size, analyzer)
            if size and rest:
                whole = Affine({**terms, **dict(digit.terms)}, number.constant)
                total = rest if modulus is None else self.ends(whole, None, analyzer)
                limit = modulus if total else ZERO
                bounds = DigitBounds(rest, total or rest, size, limit, analyzer)
                if bounds.is_clear:
                    own = ("digit", *base, _key(modulus), _key(digit.weight))
                    self.digit_bounds[own] = bounds
                    self.known(digit.atom, own)
            modulus = _divisor(modulus, digit.weight)

    def sorted_terms(self, number: Affine) -> tuple[Hashable, list[_Place]]:
        """Return the loop-invariant part of a number, and its digits, largest first."""
        invariant, varying = [], dict[AtomKey, _Place]()
        for key, term in number.terms.items():
            parts = [part for part in term.parts if not self.search.is_invariant(part)]
            if not parts:
                invariant.append((key, term.factor))
                continue
            atom, own_key, others = term.atom, key, tuple[Expr, ...]()
            if len(parts) == 1 < len(term.parts):
                atom, own_key = parts[0], atom_key(parts[0])
                others = tuple(part for part in term.parts if part is not atom)
            weight = Affine.of_product(others, term.factor)
            own = varying.get(own_key)
            if own is None:
                varying[own_key] = _Place(own_key, atom, weight, ((key, term),))
            else:
                varying[own_key] = own.plus(weight, (key, term))
        return frozenset(invariant), sorted(varying.values(), key=_Place.rank, reverse=True)

    def ends(self, part: Affine, below: Affine | None, analyzer: Analyzer) -> Ends | None:
        """Return the least and greatest value of a sum, using the access's conditions if needed."""
        if not part.terms:
            return (part, part)
        bounds = self.analyzer.bounds(part)
        if below is not None and below.is_constant and bounds.high - bounds.low >= below.constant:
            bounds = self.guards.narrow(part, bounds)
        if bounds.is_bounded:
            low, high = int(bounds.low), int(bounds.high)
            return Affine.of_constant(low), Affine.of_constant(high)
        over, expr = self.search.varying, part.to_expr()
        least, most = analyzer.lower_bound(expr, over), analyzer.upper_bound(expr, over)
        return None if least is None or most is None else (least, most)

    def known(self, atom: Expr, inverse: Inverse) -> None:
        """Record that an inverse computes an atom, and derive which numbers this determines."""
        if atom is self.search.loop.var:
            self.found.add(inverse)
            return
        for value, low, high in self.digit_of(atom):
            _, digits = self.digits.setdefault(atom_key(value), (value, []))
            digits.append(_Digit(_key(low), high, inverse))
            for key, (whole, own) in list(self.digits.items()):
                if key in self.joined:
                    continue
                if join := self.join(whole, [*own, *self.scaled_digits(whole)]):
                    self.joined.add(key)
                    self.number(self.analyzer.affine(whole), join)

    def scaled_digits(self, value: Expr) -> Iterator[_Digit]:
        """Yield the digits of a value x that follow from known digits of a quotient of x.

        With x = 16*o + i and i in [0, 16), the simplifier writes ``x // 90000`` as ``o // 5625``.
        """
        form = self.analyzer.affine(value)
        for part, digits in self.digits.values():
            quotient = self.analyzer.affine(part)
            factor = self.ratio(form, quotient)
            for digit in digits if factor > 1 else ():
                if isinstance(digit.low, int) and (digit.high is None or digit.high.is_constant):
                    high = digit.high and digit.high.times(factor)
                    yield _Digit(digit.low * factor, high, digit.inverse)

    def ratio(self, form: Affine, quotient: Affine) -> int:
        """Return the n for which ``form // n`` is `quotient`; 0 if there is none."""
        for key, term in quotient.terms.items():
            if key not in form.terms:
                return 0
            factor, rest = divmod(form.terms[key].factor, term.factor)
            if rest or factor < 1:
                return 0
            return factor if self.is_rest(form.plus(quotient, -factor), factor) else 0
        return 0

    def invariant_part(self, value: Expr) -> tuple[int, Hashable] | None:
        """Return n and a key of ``value // n`` if this is loop-invariant; None if no n is found."""
        form = self.analyzer.affine(value)
        terms = {k: t for k, t in form.terms.items() if all(map(self.search.is_invariant, t.parts))}
        if not terms:
            return None
        size = math.gcd(*(term.factor for term in terms.values()))
        if not self.is_rest(form.plus(Affine(terms, 0), -1), size):
            return None
        return size, frozenset((key, term.factor) for key, term in terms.items())

    def is_rest(self, part: Affine, divisor: int) -> bool:
        """Tell whether a sum lies in [0, divisor), using the access's conditions if needed."""
        bounds = self.analyzer.bounds(part)
        if not 0 <= bounds.low <= bounds.high < divisor:
            bounds = self.guards.narrow(part, bounds)
        return 0 <= bounds.low <= bounds.high < divisor

    def join(self, value: Expr, digits: list[_Digit]) -> Inverse | None:
        """Return the inverse that joins all digits of a value; None if a digit is missing."""
        by_low = {digit.low: digit for digit in digits}
        chain: list[_Digit] = []
        low = _key(ONE)
        while low in by_low and len(chain) < len(digits):
            digit = by_low[low]
            chain.append(digit)
            if digit.high is None or self.is_whole(value, digit.high):
                return ("join", tuple((digit.low, digit.inverse) for digit in chain))
            low = _key(digit.high)
        invariant = self.invariant_part(value) if chain and isinstance(low, int) else None
        if invariant and isinstance(low, int) and low % invariant[0] == 0:
            return ("join", tuple((digit.low, digit.inverse) for digit in chain), invariant, low)
        return None

    def is_whole(self, value: Expr, high: Affine) -> bool:
        form = self.analyzer.affine(value)
        decide = self.analyzer.decide
        return decide("ge", form) is True and decide("lt", form.plus(high, -1)) is True

    def digit_of(self, atom: Expr) -> Iterator[tuple[Expr, Affine, Affine | None]]:
        """Yield (x, low, high) when an atom is ``x % high // low``."""
        match atom:
            case Binary("floormod", Binary("floordiv", x, inner), outer):
                b, a = self.radix(inner, x), self.radix(outer, x)
                if a and b:
                    yield x, b, a.product(b)
            case Binary("floordiv", Binary("floormod", x, inner), outer):
                a, b = self.radix(inner, x), self.radix(outer, x)
                if a and b and a.is_constant and b.is_constant and not a.constant % b.constant:
                    yield x, b, a
        match atom:
            case Binary("floordiv", x, divisor) if a := self.radix(divisor, x):
                yield x, a, None
            case Binary("floormod", x, divisor) if a := self.radix(divisor, x):
                yield x, ONE, a

    def radix(self, divisor: Expr, dividend: Expr) -> Affine | None:
        """Return a loop-invariant divisor that is positive wherever the dividend is computed."""
        affine = self.analyzer.affine(divisor)
        if not affine.is_constant and not self.search.is_invariant(divisor):
            return None
        running = self.analyzer.where_running(self.analyzer.affine(dividend), affine)
        return affine if running.bounds(affine).low >= 1 else None


@dataclass(frozen=True, slots=True)
class _Place:
    """A digit of a number: an atom that varies in the loop, times a loop-invariant weight."""

    key: AtomKey
    atom: Expr
    weight: Affine
    terms: tuple[tuple[AtomKey, Term], ...]

    def plus(self, weight: Affine, item: tuple[AtomKey, Term]) -> _Place:
        return _Place(self.key, self.atom, self.weight.plus(weight), (*self.terms, item))

    def rank(self) -> tuple[int, int]:
        """Return the sort key of the weight: its degree, then its size."""
        sizes = (abs(term.factor) for term in self.weight.terms.values())
        return self.weight.degree, max(sizes, default=abs(self.weight.constant))

    def size(self, analyzer: Analyzer) -> Affine | None:
        """Return the absolute value of the weight; None if its sign is not known."""
        if analyzer.decide("gt", self.weight):
            return self.weight
        return self.weight.times(-1) if analyzer.decide("lt", self.weight) else None


def _divisor(modulus: Affine | None, weight: Affine) -> Affine:
    """Return a common divisor of all weights so far; 1 if no other is known."""
    if modulus is None:
        return weight if not weight.is_constant else Affine.of_constant(abs(weight.constant))
    if modulus.is_constant and weight.is_constant:
        return Affine.of_constant(math.gcd(modulus.constant, weight.constant))
    if weight.is_constant:
        return ONE
    return weight if modulus.divide(weight)[1] == ZERO else ONE


def _key(affine: Affine | None) -> Hashable:
    """Return a hashable key; equal sums have equal keys."""
    if affine is None or affine.is_constant:
        return affine and affine.constant
    return frozenset((k, term.factor) for k, term in affine.terms.items()), affine.constant
