"""Vector values with Python operators, so that functions are written as formulas.

A `Value` is an operand of any number of lanes; its operators write one LLVM instruction each, which
rounds once and is never contracted with another. So a lane of a vector computes bit by bit what a
scalar does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.conversions import convert
from dlcompiler.codegen.llvm.types import constant, intrinsic_suffix, value_type
from dlcompiler.codegen.llvm.writer import Function


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An operand whose Python operators write LLVM instructions."""

    w: Function
    operand: str
    dtype: str

    @property
    def lanes(self) -> int:
        """Number of lanes; 1 for a scalar."""
        return dtypes.lanes(self.dtype)

    @property
    def format(self) -> Format:
        """The format of a float."""
        return FORMATS[dtypes.element(self.dtype)]

    # -- arithmetic ---------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Value:
        return self._arithmetic("add", other)

    def __sub__(self, other: Operand) -> Value:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._arithmetic("div", other)

    def __radd__(self, other: float) -> Value:
        return self.like(other) + self

    def __rsub__(self, other: float) -> Value:
        return self.like(other) - self

    def __rmul__(self, other: float) -> Value:
        return self.like(other) * self

    def __rtruediv__(self, other: float) -> Value:
        return self.like(other) / self

    def __neg__(self) -> Value:
        return self._new(f"fneg {value_type(self.dtype)} {self.operand}")

    def __abs__(self) -> Value:
        return intrinsic("fabs", self)

    # -- bits ---------------------------------------------------------------------------------

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", other)

    def __invert__(self) -> Value:
        return self ^ (True if dtypes.is_bool(self.dtype) else -1)

    def __lshift__(self, count: Operand) -> Value:
        return self._binary("shl", count)

    def __rshift__(self, count: Operand) -> Value:
        """Shift the bits of an integer to the right; copies of the sign bit fill from the left."""
        return self._binary("lshr" if dtypes.is_unsigned(self.dtype) else "ashr", count)

    def shifted_bits(self, count: int) -> Value:
        """Shift the bits of an integer to the right; zeros fill from the left."""
        return self._binary("lshr", count)

    # -- comparisons: false of NaN ------------------------------------------------------------

    def __lt__(self, other: Operand) -> Value:
        return self._compare("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("ge", other)

    def equals(self, other: Operand) -> Value:
        """Tell in which lanes two values are equal."""
        return self._compare("eq", other)

    def is_nan(self) -> Value:
        """Tell which lanes are not numbers."""
        type_ = value_type(self.dtype)
        return self._new(f"fcmp uno {type_} {self.operand}, {self.operand}", "bool")

    # -- conversions --------------------------------------------------------------------------

    def like(self, value: Operand) -> Value:
        """Return a number as a constant of this dtype; a `Value` is returned unchanged."""
        if isinstance(value, Value):
            return value
        return Value(self.w, constant(value, self.dtype), self.dtype)

    def to(self, element: str) -> Value:
        """Convert each lane; a float must be within the range of the integer."""
        dtype = dtypes.with_lanes(element, self.lanes)
        if dtypes.is_float(self.dtype) and dtypes.is_int(element):
            return self._new(
                f"fptosi {value_type(self.dtype)} {self.operand} to {value_type(dtype)}", element
            )
        return Value(self.w, convert(self.w, self.operand, self.dtype, dtype), dtype)

    def bits(self) -> Value:
        """Return the bits of a float as a signed integer."""
        return self._cast(self.format.integer)

    def as_float(self) -> Value:
        """Return the float whose bits are those of this integer."""
        return self._cast(f"float{dtypes.bits(self.dtype)}")

    # -- writing ------------------------------------------------------------------------------

    def _cast(self, element: str) -> Value:
        type_ = value_type(dtypes.with_lanes(element, self.lanes))
        return self._new(f"bitcast {value_type(self.dtype)} {self.operand} to {type_}", element)

    def _arithmetic(self, operation: str, other: Operand) -> Value:
        return self._binary(f"{'f' if dtypes.is_float(self.dtype) else ''}{operation}", other)

    def _binary(self, instruction: str, other: Operand) -> Value:
        right = self.like(other)
        return self._new(f"{instruction} {value_type(self.dtype)} {self.operand}, {right.operand}")

    def _compare(self, relation: str, other: Operand) -> Value:
        if dtypes.is_float(self.dtype):
            condition = f"fcmp o{relation}"
        else:
            sign = "u" if dtypes.is_unsigned(self.dtype) else "s"
            condition = f"icmp {relation if relation == 'eq' else sign + relation}"
        right = self.like(other)
        type_ = value_type(self.dtype)
        return self._new(f"{condition} {type_} {self.operand}, {right.operand}", "bool")

    def _new(self, operation: str, element: str = "") -> Value:
        dtype = dtypes.with_lanes(element, self.lanes) if element else self.dtype
        return Value(self.w, self.w.pure(operation), dtype)


Operand: TypeAlias = Value | float | int
Writer: TypeAlias = Callable[..., Value]
"""Writes a function of values."""


@dataclass(frozen=True)
class Format:
    """The binary format of a float."""

    integer: str
    """The integer dtype of the same size."""
    fraction: int
    """Bits of the significand that are stored."""
    bias: int
    """The bias that is added to the exponent."""

    @property
    def magic(self) -> float:
        """The number M such that ``x + M - M`` is the integer nearest to x.

        ``abs(x)`` must be below ``2**(fraction - 1)``. The low bits of ``x + M`` are this integer.
        """
        return 1.5 * 2.0**self.fraction

    @property
    def least_normal(self) -> float:
        """The smallest positive normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS = {"float32": Format("int32", 23, 127), "float64": Format("int64", 52, 1023)}


def intrinsic(name: str, *operands: Value) -> Value:
    """Write a call of an LLVM intrinsic whose operands and result have one dtype."""
    w, dtype = operands[0].w, operands[0].dtype
    type_ = value_type(dtype)
    symbol = w.module.declare(
        f"llvm.{name}.{intrinsic_suffix(dtype)}", type_, ", ".join([type_] * len(operands))
    )
    arguments = ", ".join(f"{type_} {value.operand}" for value in operands)
    return Value(w, w.pure(f"call {type_} {symbol}({arguments})"), dtype)


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """Write ``a*b + c``, rounded only once if the machine has such an instruction."""
    if a.w.module.has_fma:
        return intrinsic("fma", a, a.like(b), a.like(c))
    return a * b + c


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Write a polynomial, given its coefficients, lowest power first.

    The two lowest powers follow Horner's rule, which rounds least. Those above are summed in pairs,
    and pairs of pairs: the machine does these side by side.
    """
    lowest, upper = coefficients[:2], coefficients[2:]
    total = _by_pairs(x, upper) if upper else x.like(lowest[-1])
    for c in reversed(lowest if upper else lowest[:-1]):
        total = fma(total, x, c) if c else total * x
    return total


def by_steps(x: Value, coefficients: Sequence[float]) -> Value:
    """Write a polynomial by Horner's rule: few operations, but each needs the previous one."""
    total = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def _by_pairs(x: Value, coefficients: Sequence[float]) -> Value:
    """Write a polynomial by G. Estrin's scheme."""
    terms: list[Operand] = list(coefficients)
    while len(terms) > 1:
        pairs = [tuple(terms[n : n + 2]) for n in range(0, len(terms), 2)]
        terms = [fma(x, pair[1], pair[0]) if len(pair) == 2 else pair[0] for pair in pairs]
        x = x * x if len(terms) > 1 else x
    return x.like(terms[0])


def choose(condition: Value, a: Operand, b: Operand) -> Value:
    """Write `a` in the lanes where the condition holds, `b` in the others."""
    known = a if isinstance(a, Value) else b
    assert isinstance(known, Value)
    left, right, type_ = known.like(a), known.like(b), value_type(known.dtype)
    operation = (
        f"select {value_type(condition.dtype)} {condition.operand}, "
        f"{type_} {left.operand}, {type_} {right.operand}"
    )
    return Value(known.w, known.w.pure(operation), known.dtype)


def at_most(x: Value, limit: float) -> Value:
    """Write the smaller of `x` and a limit; NaN stays, as in the x86 instruction."""
    return choose(x.like(limit) < x, limit, x)


def at_least(x: Value, limit: float) -> Value:
    """Write the larger of `x` and a limit; NaN stays."""
    return choose(x.like(limit) > x, limit, x)


def with_sign_of(size: Value, x: Value) -> Value:
    """Write `size` with the sign of `x`."""
    return intrinsic("copysign", size, x)


def nearest_integer(x: Value) -> tuple[Value, Value]:
    """Write the nearest integer as a float, and an integer with the same low bits.

    ``abs(x)`` must be below ``2**fraction / 4``.
    """
    shifted = x + x.format.magic
    return shifted - x.format.magic, shifted.bits()


def if_any(
    condition: Value, write: Callable[[], tuple[Value, ...]], otherwise: tuple[Value, ...]
) -> tuple[Value, ...]:
    """Write a branch to rare code, run if a condition holds in any lane; else use `otherwise`."""
    w, before = condition.w, condition.w.block
    then, end = w.name("rare"), w.name("common")
    w.branch(_any_lane(condition), then, end)
    w.open(then)
    rare = write()
    leaving = w.block
    w.jump(end)
    w.open(end)
    results = []
    for a, b in zip(rare, otherwise, strict=True):
        type_ = value_type(a.dtype)
        phi = f"phi {type_} [ {a.operand}, %{leaving} ], [ {b.operand}, %{before} ]"
        results.append(Value(w, w.value(phi), a.dtype))
    return tuple(results)


def _any_lane(condition: Value) -> str:
    if condition.lanes == 1:
        return condition.operand
    w, type_ = condition.w, value_type(condition.dtype)
    symbol = w.module.declare(f"llvm.vector.reduce.or.v{condition.lanes}i1", "i1", type_)
    return w.pure(f"call i1 {symbol}({type_} {condition.operand})")


def element_of(name: str, numbers: Sequence[int], element: str, index: Value) -> Value:
    """Write the lookup of a constant table at an int32 index, which must be in bounds."""
    w, lanes = index.w, index.lanes
    part, dtype = value_type(element), dtypes.with_lanes(element, lanes)
    entries = ", ".join(f"{part} {constant(number, element)}" for number in numbers)
    base = w.module.constant(name, f"[{len(numbers)} x {part}]", f"[{entries}]")
    address = w.pure(f"getelementptr {part}, ptr {base}, {value_type(index.dtype)} {index.operand}")
    if lanes == 1:
        return Value(w, w.pure(f"load {part}, ptr {address}, align 4"), dtype)
    type_, mask = value_type(dtype), value_type(dtypes.with_lanes("bool", lanes))
    symbol = w.module.declare(
        f"llvm.masked.gather.{intrinsic_suffix(dtype)}.v{lanes}p0",
        type_,
        f"<{lanes} x ptr>, {mask}, {type_}",
    )
    on = constant(True, dtypes.with_lanes("bool", lanes))
    gather = (
        f"call {type_} {symbol}(<{lanes} x ptr> align 4 {address}, {mask} {on}, {type_} poison)"
    )
    return Value(w, w.pure(gather), dtype)
