"""Exact functions of float64: remainders, and products with powers of two."""

from __future__ import annotations

from dlcompiler.codegen.llvm.functions.exponential import power_of_two
from dlcompiler.codegen.llvm.functions.values import Value, choose, with_sign_of

INFINITY, NAN = float("inf"), float("nan")
_STEP = 11
"""A remainder of 53 bits fits 64 bits after a shift by this; [bit]."""


def ldexp(x: Value, n: Value) -> Value:
    """Write ``x * 2**n`` for an int32 n, rounded once.

    All factors but the last are exact: those that make x smaller leave it 53 bits above the
    smallest normal number.
    """
    form = x.format
    for _ in range(2):
        largest, least = form.bias, 1 - form.bias + form.fraction + 1
        is_high, is_low = n > largest, n < 1 - form.bias
        x = x * choose(is_high, x.like(2.0**largest), choose(is_low, x.like(2.0**least), 1.0))
        n = n - choose(is_high, n.like(largest), choose(is_low, n.like(least), 0))
    n = choose(n > form.bias, form.bias, choose(n < 1 - form.bias, 1 - form.bias, n))
    return x * power_of_two((n + form.bias).to("int64"), form)


def fmod(x: Value, y: Value) -> Value:
    """Write what ``x / y`` leaves, with the sign of x, by a division of integers."""
    size, divisor = abs(x), abs(y)
    is_plain = (size < INFINITY) & (divisor > 0.0) & (divisor < INFINITY)
    (m, e), (d, f) = _parts(choose(is_plain, size, 1.0)), _parts(choose(is_plain, divisor, 1.0))
    steps = choose(e > f, e - f, 0)
    remainder = _remainder(m, d, steps)
    biased = f - 1075 + 2 * x.format.bias
    half = biased >> 1
    first, second = (power_of_two(each.to("int64"), x.format) for each in (half, biased - half))
    result = choose(size < divisor, size, remainder.to("float64") * first * second)
    result = choose(is_plain, result, choose((size < INFINITY) & (divisor > 0.0), size, NAN))
    return choose(x.is_nan() | y.is_nan(), NAN, with_sign_of(result, x))


def _parts(x: Value) -> tuple[Value, Value]:
    """Return a uint64 m and an int32 e of ``x = m * 2**(e - 1075)``, x not negative."""
    pattern = x.bits()
    exponent, fraction = pattern >> 52, pattern & (1 << 52) - 1
    is_normal = exponent > 0
    m = choose(is_normal, fraction | 1 << 52, fraction)
    return m.to("uint64"), choose(is_normal, exponent, 1).to("int32")


def _remainder(m: Value, d: Value, shift: Value) -> Value:
    """Write ``(m << shift) % d`` by a loop over a few bits."""
    w = m.w
    head, done = w.name("digits"), w.name("digits.end")
    first = Value(w, w.value(f"urem i64 {m.operand}, {d.operand}"), m.dtype)
    before = w.block
    w.branch((shift > 0).operand, head, done)
    w.open(head)
    lines = w.reserve(), w.reserve()
    names = f"%{w.name('remainder')}", f"%{w.name('left')}"
    rest, left = Value(w, names[0], m.dtype), Value(w, names[1], shift.dtype)
    step = choose(left < _STEP, left, _STEP)
    moved = rest << step.to("uint64")
    following = Value(w, w.value(f"urem i64 {moved.operand}, {d.operand}"), m.dtype)
    fewer = left - step
    for line, name, type_, start, then in (
        (lines[0], names[0], "i64", first.operand, following.operand),
        (lines[1], names[1], "i32", shift.operand, fewer.operand),
    ):
        w.fill(line, f"{name} = phi {type_} [ {start}, %{before} ], [ {then}, %{w.block} ]")
    after = w.block
    w.branch((fewer > 0).operand, head, done)
    joined = w.join(done, "i64", [(first.operand, before), (following.operand, after)])
    return Value(w, joined, m.dtype)
