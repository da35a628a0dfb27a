"""Integer quantities of a program as sums over its variables, and conditions on them.

An index is a `Form`: a constant, and a factor for each loop variable. What is not affine, such as
``(i + j) // 3``, is a `Part` of the sum, which is computed for the values of its own variables.
A condition is a `Test` of a form, or a combination of tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.ir import Var

Integers: TypeAlias = npt.NDArray[np.int64]
Truth: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = Mapping[Var, Integers]
"""The values of variables, as arrays that broadcast against each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of a sum that is not affine."""

    function: Callable[..., Any]
    """Computes it from the values of its operands."""
    operands: tuple[Form | Predicate, ...]
    low: float
    """A lower bound; ``-inf`` if none is known."""
    high: float
    is_known: bool = True
    """Whether it can be computed; otherwise it depends on data that is not given."""
    variables: frozenset[Var] = frozenset()
    """The variables that it depends on."""

    def at(self, values: Values) -> Integers:
        """Return its values."""
        return np.asarray(self.function(*(operand.at(values) for operand in self.operands)))


Term: TypeAlias = "Var | Part"


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The integer ``constant + Σ factor · term``."""

    constant: int
    terms: Mapping[Term, int]

    def plus(self, other: Form, factor: int = 1) -> Form:
        """Return ``self + factor · other``."""
        terms = dict(self.terms)
        for term, count in other.terms.items():
            total = terms.get(term, 0) + factor * count
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return Form(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Form:
        """Return ``factor · self``."""
        terms = {term: factor * count for term, count in self.terms.items()} if factor else {}
        return Form(self.constant * factor, terms)

    def divided(self, divisor: int) -> tuple[Form, Form]:
        """Return ``(q, r)`` with ``self = divisor · q + r``; q takes all terms that it can."""
        quotient, terms, rest = self.constant // divisor, {}, {}
        for term, factor in self.terms.items():
            if factor % divisor:
                rest[term] = factor
            else:
                terms[term] = factor // divisor
        return Form(quotient, terms), Form(self.constant % divisor, rest)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for forms that are the same sum of the same terms."""
        return self.constant, frozenset(self.terms.items())

    @property
    def is_known(self) -> bool:
        """Tell whether the form can be computed from the variables and the arrays given."""
        return all(isinstance(term, Var) or term.is_known for term in self.terms)

    def at(self, values: Values) -> Integers:
        """Return the values of the form for values of its variables."""
        total: Any = np.int64(self.constant)
        for term, factor in self.terms.items():
            total = total + factor * (values[term] if isinstance(term, Var) else term.at(values))
        return np.asarray(total)


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """The condition that a form is 0, or that it is not negative."""

    __test__ = False  # it is not a test of pytest
    form: Form
    is_equality: bool

    def at(self, values: Values) -> Truth:
        """Return where it holds."""
        return self.holds(self.form.at(values))

    def holds(self, value: Integers) -> Truth:
        """Return where the form has a value for which the condition holds."""
        return np.asarray(value == 0 if self.is_equality else value >= 0)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """The conjunction or the disjunction of two conditions."""

    op: Literal["and", "or"]
    a: Predicate
    b: Predicate

    def at(self, values: Values) -> Truth:
        """Return where it holds."""
        join = np.logical_and if self.op == "and" else np.logical_or
        return np.asarray(join(self.a.at(values), self.b.at(values)))


@dataclass(frozen=True, slots=True, eq=False)
class Negated:
    """The negation of a condition."""

    value: Predicate

    def at(self, values: Values) -> Truth:
        """Return where it holds."""
        return np.logical_not(self.value.at(values))


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A condition that is the same for all values; None if it depends on data not given."""

    value: bool | None

    def at(self, _values: Values) -> Truth:
        """Return where it holds."""
        assert self.value is not None
        return np.asarray(self.value)


Predicate: TypeAlias = Test | Joined | Negated | Fixed
UNKNOWN = Fixed(None)
TRUE = Fixed(True)


def tests_of(predicate: Predicate) -> Iterator[Test]:
    """Yield the tests in a condition."""
    match predicate:
        case Test():
            yield predicate
        case Negated(value):
            yield from tests_of(value)
        case Joined(_, a, b):
            yield from tests_of(a)
            yield from tests_of(b)


def truth(predicate: Predicate, known: Mapping[Test, Truth]) -> tuple[Truth, Truth]:
    """Return where a condition holds surely, and where it may hold.

    Parameters
    ----------
    predicate
        The condition.
    known
        Where each of its tests holds. A test that is left out may hold or not.
    """
    match predicate:
        case Test() if predicate in known:
            return known[predicate], known[predicate]
        case Fixed(value) if value is not None:
            return np.asarray(value), np.asarray(value)
        case Negated(value):
            surely, maybe = truth(value, known)
            return ~maybe, ~surely
        case Joined(op, a, b):
            join = np.logical_and if op == "and" else np.logical_or
            (first, maybe), (second, perhaps) = truth(a, known), truth(b, known)
            return np.asarray(join(first, second)), np.asarray(join(maybe, perhaps))
    return np.asarray(False), np.asarray(True)


def variables_of(item: Form | Predicate) -> frozenset[Var]:
    """Return the variables that a quantity or a condition depends on."""
    if isinstance(item, Form):
        parts = (term.variables for term in item.terms if isinstance(term, Part))
        return frozenset(term for term in item.terms if isinstance(term, Var)).union(*parts)
    return frozenset().union(*(variables_of(test.form) for test in tests_of(item)))


def is_computable(item: Form | Predicate) -> bool:
    """Tell whether a quantity or a condition depends on no data but the arrays given."""
    match item:
        case Form():
            return item.is_known
        case Test(form):
            return form.is_known
        case Negated(value):
            return is_computable(value)
        case Joined(_, a, b):
            return is_computable(a) and is_computable(b)
    return item.value is not None


def constant_form(value: int) -> Form:
    """Return a number as a form."""
    return Form(value, {})


def unknown_form() -> Form:
    """Return a form about which nothing is known."""
    return Form(0, {Part(_unknown, (), -math.inf, math.inf, is_known=False): 1})


def _unknown() -> Integers:
    raise AssertionError("a value that depends on data")
