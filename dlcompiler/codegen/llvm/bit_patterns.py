"""Write functions of the bits of a number: counts of bits, classes and neighbours of floats."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.arithmetic import binary, compare, intrinsic, select
from dlcompiler.codegen.llvm.types import constant, intrinsic_suffix, value_type
from dlcompiler.codegen.llvm.writer import Function

_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF << 52}


def count_ones(w: Function, dtype: str, x: str) -> str:
    """Write the number of bits of an integer that are 1."""
    return intrinsic(w, "ctpop", dtype, x)


def leading_zeros(w: Function, dtype: str, x: str) -> str:
    """Write the number of leading zero bits of an integer, as an int32."""
    type_, result = value_type(dtype), dtypes.with_lanes("int32", dtypes.lanes(dtype))
    symbol = w.module.declare(f"llvm.ctlz.{intrinsic_suffix(dtype)}", type_, f"{type_}, i1")
    count = w.pure(f"call {type_} {symbol}({type_} {x}, i1 false)")
    if dtypes.bits(dtype) == 32:
        return count
    step = "trunc" if dtypes.bits(dtype) > 32 else "zext"
    return w.pure(f"{step} {type_} {count} to {value_type(result)}")


def is_nan(w: Function, dtype: str, x: str) -> str:
    """Tell whether a float is not a number."""
    return _compare_size(w, "ugt", dtype, x)


def is_infinite(w: Function, dtype: str, x: str) -> str:
    """Tell whether a float is infinite."""
    return _compare_size(w, "eq", dtype, x)


def is_finite(w: Function, dtype: str, x: str) -> str:
    """Tell whether a float is a number and not infinite."""
    return _compare_size(w, "ult", dtype, x)


def to_tf32(w: Function, dtype: str, x: str) -> str:
    """Write a float32 rounded to the 10 bits of mantissa of TF32, halves away from 0."""
    bits = _bits_like(dtype)
    pattern = _pattern(w, dtype, x)
    half = binary(w, "add", bits, pattern, constant(1 << 12, bits))
    rounded = binary(w, "bitand", bits, half, constant(0xFFFFE000, bits))
    known = dtypes.with_lanes("bool", dtypes.lanes(dtype))
    result = select(w, bits, known, is_finite(w, dtype, x), rounded, pattern)
    return w.pure(f"bitcast {value_type(bits)} {result} to {value_type(dtype)}")


def sort_key(w: Function, dtype: str, x: str) -> str:
    """Write an int32 that compares as a float32 does: its magnitude with its sign."""
    bits = dtypes.with_lanes("int32", dtypes.lanes(dtype))
    pattern = _pattern(w, dtype, x)
    largest = constant(2**31 - 1, bits)
    size = binary(w, "bitand", bits, pattern, largest)
    sign = w.pure(f"ashr {value_type(bits)} {pattern}, {constant(31, bits)}")
    turned = w.pure(f"xor {value_type(bits)} {size}, {sign}")
    key = w.pure(f"sub {value_type(bits)} {turned}, {sign}")
    known = dtypes.with_lanes("bool", dtypes.lanes(dtype))
    return select(w, bits, known, is_nan(w, dtype, x), largest, key)


def to_bits(w: Function, dtype: str, x: str) -> str:
    """Write the integer with the bits of a float."""
    return _pattern(w, dtype, x)


def from_bits(w: Function, dtype: str, x: str) -> str:
    """Write the float with the bits of an integer."""
    result = dtypes.with_lanes(f"float{dtypes.bits(dtype)}", dtypes.lanes(dtype))
    return w.pure(f"bitcast {value_type(dtype)} {x} to {value_type(result)}")


def next_after(w: Function, dtype: str, x: str, y: str) -> str:
    """Write the number of the dtype that follows `x` toward `y`.

    The bits of a float, read as an integer, grow with its magnitude: neighbours differ by one.
    """
    bits, condition = _bits_like(dtype), dtypes.with_lanes("bool", dtypes.lanes(dtype))
    pattern, toward = _pattern(w, dtype, x), _pattern(w, dtype, y)
    zero, one = constant(0.0, dtype), constant(1, bits)
    bool_type = value_type(condition)

    rises, is_positive = compare(w, "gt", dtype, y, x), compare(w, "gt", dtype, x, zero)
    shrinks = w.pure(f"xor {bool_type} {rises}, {is_positive}")
    smaller, larger = (binary(w, op, bits, pattern, one) for op in ("sub", "add"))
    result = select(w, bits, condition, shrinks, smaller, larger)

    sign = binary(w, "bitand", bits, toward, constant(1 << dtypes.bits(bits) - 1, bits))
    least = binary(w, "bitor", bits, sign, one)
    result = select(w, bits, condition, compare(w, "eq", dtype, x, zero), least, result)
    result = select(w, bits, condition, compare(w, "eq", dtype, x, y), toward, result)
    for value, own in ((x, pattern), (y, toward)):
        result = select(w, bits, condition, is_nan(w, dtype, value), own, result)
    return w.pure(f"bitcast {value_type(bits)} {result} to {value_type(dtype)}")


def _compare_size(w: Function, relation: str, dtype: str, x: str) -> str:
    """Compare the bits of ``abs(x)`` with the bits of infinity."""
    bits = _bits_like(dtype)
    largest = constant((1 << dtypes.bits(bits) - 1) - 1, bits)
    size = binary(w, "bitand", bits, _pattern(w, dtype, x), largest)
    infinity = constant(_INFINITY[dtypes.element(dtype)], bits)
    return w.pure(f"icmp {relation} {value_type(bits)} {size}, {infinity}")


def _pattern(w: Function, dtype: str, x: str) -> str:
    return w.pure(f"bitcast {value_type(dtype)} {x} to {value_type(_bits_like(dtype))}")


def _bits_like(dtype: str) -> str:
    return dtypes.with_lanes(f"uint{dtypes.bits(dtype)}", dtypes.lanes(dtype))
