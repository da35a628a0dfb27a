"""Read the indices and conditions of a program as forms and tests (`forms`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    index_const,
)
from dlcompiler.ir.lanes import at_lane
from dlcompiler.ir.operations import BINARY, DIVISIONS
from dlcompiler.simulate.gpu.forms import (
    TRUE,
    UNKNOWN,
    Fixed,
    Form,
    Integers,
    Joined,
    Negated,
    Part,
    Predicate,
    Test,
    Truth,
    constant_form,
    is_computable,
    unknown_form,
    variables_of,
)

Known: TypeAlias = Form | Predicate
Scope: TypeAlias = Mapping[Var, Known]
"""What each variable in scope stands for."""
Vectors: TypeAlias = Mapping[Var, Callable[[Expr], Expr]]
"""For each variable that is a vector, a function from the number of a lane to its value there."""
Interval: TypeAlias = tuple[float, float]
LARGEST = 1 << 40
"""Largest number in an array with which this module computes; [1]."""


class Reader:
    """Turns expressions into forms and predicates.

    Parameters
    ----------
    arrays
        The values of buffers that the program only reads.
    """

    def __init__(self, arrays: Mapping[Buffer, np.ndarray]) -> None:
        self.arrays = arrays
        self.ranges: dict[Var, Interval] = {}
        """The least and the greatest value of each variable of a form."""
        self._parts: dict[tuple[object, ...], Part] = {}
        # By `id` of the expression and of its scope, which are kept so that no other gets the id.
        self._forms: dict[tuple[int, int], tuple[Expr, Scope, Form]] = {}

    def variable(self, name: str, extent: float) -> tuple[Var, Form]:
        """Return a new variable from 0 to `extent` - 1, and the form that it is."""
        var = Var(name)
        self.ranges[var] = 0, max(extent - 1, 0)
        return var, Form(0, {var: 1})

    # -- quantities -------------------------------------------------------------------------------

    def form(self, expr: Expr, scope: Scope) -> Form:
        """Return an integer expression as a form."""
        key = id(expr), id(scope)
        if key not in self._forms:
            self._forms[key] = expr, scope, self._form(expr, scope)
        return self._forms[key][2]

    def form_at(self, index: Expr, lane: int, scope: Scope, vectors: Vectors) -> Form:
        """Return one lane of a vector of indices as a form; a scalar is the same at each lane.

        Parameters
        ----------
        index
            A scalar or a vector.
        lane
            Number of the lane.
        scope
            What each variable stands for.
        vectors
            See `dlcompiler.ir.lanes.at_lane`.
        """
        if dtypes.lanes(index.dtype) == 1:
            return self.form(index, scope)
        match index:
            case Ramp(base, stride) if dtypes.is_index(base.dtype):
                first, step = self.form(base, scope), self.form(stride, scope)
                if first.is_known and step.is_known:
                    return first.plus(step, lane)
        return self.form(at_lane(index, index_const(lane), vectors), scope)

    def _form(self, expr: Expr, scope: Scope) -> Form:
        match expr:
            case Const(value, dtype) if not dtypes.is_float(dtype):
                return constant_form(int(value))
            case Var():
                known = scope.get(expr)
                return known if isinstance(known, Form) else unknown_form()
            case Binary(op, a, b) if not dtypes.is_float(expr.dtype):
                return self._wrapped(self._binary(op, self.form(a, scope), self.form(b, scope)),
                                     expr.dtype)  # fmt: skip
            case Cast(value, dtype) if not (dtypes.is_float(value.dtype) or dtypes.is_float(dtype)):
                return self._wrapped(self._number(value, scope), dtype)
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                if dtypes.is_float(expr.dtype):
                    return unknown_form()
                return self._choice(self.predicate(condition, scope),
                                    self.form(a, scope), self.form(b, scope))  # fmt: skip
            case Call("assume_bounds", (inner,), _):
                return self.form(inner, scope)
            case Load(buffer, indices, None):
                return self._element(buffer, indices, scope)
        return unknown_form()

    def _number(self, expr: Expr, scope: Scope) -> Form:
        """Return a form of an expression; 1 for true."""
        if not dtypes.is_bool(expr.dtype):
            return self.form(expr, scope)
        return self._choice(self.predicate(expr, scope), constant_form(1), constant_form(0))

    def _binary(self, op: Any, a: Form, b: Form) -> Form:
        if op in ("add", "sub"):
            return a.plus(b, 1 if op == "add" else -1)
        if op == "mul" and not (a.terms and b.terms):
            return a.times(b.constant) if a.terms else b.times(a.constant)
        if op in ("floordiv", "floormod") and not b.terms and b.constant > 0:
            return self._division(op, a, b.constant)
        is_positive = not b.terms and b.constant > 0 and self.interval(a)[0] >= 0
        if op in ("truncdiv", "truncmod") and is_positive:
            return self._division(op.replace("trunc", "floor"), a, b.constant)
        return self._part(op, (a, b), self._range_of(op, a, b))

    def _division(self, op: str, form: Form, divisor: int) -> Form:
        """Return a quotient or a remainder; terms that the divisor divides are taken out."""
        quotient, rest = form.divided(divisor)
        low, high = self.interval(rest)
        if low >= 0 and high < divisor:
            return quotient if op == "floordiv" else rest
        if op == "floordiv":
            bounds = low // divisor, high // divisor
            return quotient.plus(self._part(op, (rest, constant_form(divisor)), bounds))
        return self._part(op, (rest, constant_form(divisor)), (0, divisor - 1))

    def product(self, a: Form, b: Form) -> Form:
        """Return the product of two forms."""
        return self._binary("mul", a, b)

    def _choice(self, condition: Predicate, a: Form, b: Form) -> Form:
        (low, high), (least, most) = self.interval(a), self.interval(b)
        return self._part("choose", (condition, a, b), (min(low, least), max(high, most)))

    def _part(self, op: str, operands: tuple[Form | Predicate, ...], bounds: Interval) -> Form:
        if not all(map(is_computable, operands)):
            return unknown_form()
        variables = frozenset().union(*map(variables_of, operands))
        if not variables:
            return constant_form(int(_FUNCTIONS[op](*(each.at({}) for each in operands))))
        # The id of a condition is one of its keys, and the part keeps the condition.
        keys = (each.key if isinstance(each, Form) else id(each) for each in operands)
        made = Part(_FUNCTIONS[op], operands, *bounds, variables=variables)
        part = self._parts.setdefault((op, *keys), made)
        return Form(0, {part: 1})

    def _element(self, buffer: Buffer, indices: tuple[Expr, ...], scope: Scope) -> Form:
        """Return an element of an array whose values are given."""
        array = self.arrays.get(buffer)
        if array is None or array.dtype.kind not in "iub" or not array.size:
            return unknown_form()
        low, high = int(array.min()), int(array.max())
        if max(-low, high) > LARGEST:  # sums of such numbers may overflow
            return unknown_form()
        places = tuple(self.form(index, scope) for index in indices)
        if not all(place.is_known for place in places):
            return unknown_form()

        def read(*at: Integers) -> Integers:
            # Where a guard does not hold, an index may be outside: the value is not used.
            inside = (np.clip(n, 0, size - 1) for n, size in zip(at, array.shape, strict=True))
            return np.asarray(array[tuple(inside)], np.int64)

        variables = frozenset().union(*map(variables_of, places))
        if not variables:
            return constant_form(int(read(*(place.at({}) for place in places))))
        part = Part(read, places, low, high, variables=variables)
        key = ("load", id(buffer), *(place.key for place in places))
        return Form(0, {self._parts.setdefault(key, part): 1})

    def _wrapped(self, form: Form, dtype: str) -> Form:
        """Return a form as a value of a dtype; unknown if it may wrap around."""
        if dtypes.is_index(dtype) or not form.is_known:
            return form
        low, high = self.interval(form)
        fits = dtypes.min_value(dtype) <= low and high <= dtypes.max_value(dtype)
        return form if fits else unknown_form()

    # -- bounds -----------------------------------------------------------------------------------

    def interval(self, form: Form) -> Interval:
        """Return bounds of a form."""
        low: float = form.constant
        high: float = form.constant
        for term, factor in form.terms.items():
            least, most = self.ranges[term] if isinstance(term, Var) else (term.low, term.high)
            low += factor * (least if factor > 0 else most)
            high += factor * (most if factor > 0 else least)
        return low, high

    def _range_of(self, op: str, a: Form, b: Form) -> Interval:
        (low, high), (least, most) = self.interval(a), self.interval(b)
        if op == "min":
            return min(low, least), min(high, most)
        if op == "max":
            return max(low, least), max(high, most)
        if op == "mul" and all(map(math.isfinite, (low, high, least, most))):
            products = [x * y for x in (low, high) for y in (least, most)]
            return min(products), max(products)
        return -math.inf, math.inf

    # -- conditions -------------------------------------------------------------------------------

    def predicate(self, expr: Expr, scope: Scope) -> Predicate:
        """Return a condition."""
        match expr:
            case Const(value, _):
                return Fixed(bool(value))
            case Var():
                known = scope.get(expr, UNKNOWN)
                return UNKNOWN if isinstance(known, Form) else known
            case Not(value):
                return negated(self.predicate(value, scope))
            case Logical(op, a, b):
                return joined(op, self.predicate(a, scope), self.predicate(b, scope))
            case Call("likely", (inner,), _):
                return self.predicate(inner, scope)
            case Compare(op, a, b) if not dtypes.is_float(a.dtype):
                return self._comparison(op, self._number(a, scope), self._number(b, scope))
            case IfThenElse(condition, a, b) | Select(condition, a, b):
                chosen = self.predicate(condition, scope)
                return joined(
                    "or",
                    joined("and", chosen, self.predicate(a, scope)),
                    joined("and", negated(chosen), self.predicate(b, scope)),
                )
            case Load():
                return negated(self._test(self.form(expr, scope), is_equality=True))
        return UNKNOWN

    def _comparison(self, op: str, a: Form, b: Form) -> Predicate:
        match op:
            case "lt" | "le":
                return self.at_least(b.plus(a, -1), int(op == "lt"))
            case "gt" | "ge":
                return self.at_least(a.plus(b, -1), int(op == "gt"))
        equal = self._test(a.plus(b, -1), is_equality=True)
        return equal if op == "eq" else negated(equal)

    def at_least(self, form: Form, bound: int) -> Predicate:
        """Return the condition that a form is not below a number."""
        return self._test(form.plus(constant_form(bound), -1), is_equality=False)

    def _test(self, form: Form, *, is_equality: bool) -> Predicate:
        low, high = self.interval(form)
        if (is_equality and low == high == 0) or (not is_equality and low >= 0):
            return TRUE
        if high < 0 or (is_equality and low > 0):
            return Fixed(False)
        return Test(form, is_equality) if form.is_known else UNKNOWN


def negated(value: Predicate) -> Predicate:
    """Return the negation of a condition."""
    match value:
        case Fixed(known):
            return UNKNOWN if known is None else Fixed(not known)
        case Negated(inner):
            return inner
    return Negated(value)


def joined(op: Any, a: Predicate, b: Predicate) -> Predicate:
    """Return the conjunction or the disjunction of two conditions."""
    decisive = op == "or"  # the value of one side that decides
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Fixed) and one.value is not None:
            return Fixed(decisive) if one.value == decisive else other
    return Joined(op, a, b)


def _choose(condition: Truth, a: Integers, b: Integers) -> Integers:
    return np.where(condition, a, b)


def _divided(op: Any) -> Any:
    """Return a division of arrays that gives 0 for a divisor of 0."""

    def function(a: Integers, b: Integers) -> Integers:
        if b.ndim == 0 and b > 0:
            return _divided_by_number(op, a, int(b))
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, BINARY[op].arrays(a, safe))

    return function


def _divided_by_number(op: Any, a: Integers, b: int) -> Integers:
    """Return a division by a positive number; shifts and masks take a tenth of the time."""
    if op in ("floordiv", "floormod") and b & (b - 1) == 0:
        return a >> (b.bit_length() - 1) if op == "floordiv" else a & (b - 1)
    result: Integers = BINARY[op].arrays(a, b)
    return result


_FUNCTIONS: dict[str, Any] = {
    **{op: BINARY[op].arrays for op in BINARY if op not in DIVISIONS},
    **{op: _divided(op) for op in DIVISIONS},
    "choose": _choose,
}
