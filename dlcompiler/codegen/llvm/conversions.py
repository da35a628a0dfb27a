"""Write conversions between dtypes. To integers they truncate and saturate; NaN becomes 0."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import arithmetic
from dlcompiler.codegen.llvm.bfloat16 import float32_like, is_bfloat16, narrow, widen
from dlcompiler.codegen.llvm.types import constant, intrinsic_suffix, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import Broadcast, Const, Expr


def convert(w: Function, value: str, source: str, target: str) -> str:
    """Write the conversion of `value` from dtype `source` to `target`, of equal lanes."""
    if source == target:
        return value
    if dtypes.is_bool(target):
        return arithmetic.compare(w, "ne", source, value, constant(0, source))
    if is_bfloat16(source):
        wide = float32_like(source)
        return convert(w, widen(w, value, source), wide, target)
    if is_bfloat16(target):
        return _to_bfloat16(w, value, source, target)
    if dtypes.is_float(source):
        return (_resize_float if dtypes.is_float(target) else _to_integer)(w, value, source, target)
    if dtypes.is_float(target):
        return _from_integer(w, value, source, target)
    return _resize_integer(w, value, source, target)


def _step(w: Function, instruction: str, value: str, source: str, target: str) -> str:
    return w.pure(f"{instruction} {value_type(source)} {value} to {value_type(target)}")


def _is_unsigned(dtype: str) -> bool:
    return dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype)


def _resize_integer(w: Function, value: str, source: str, target: str) -> str:
    if dtypes.bits(source) == dtypes.bits(target):
        return value
    if dtypes.bits(source) > dtypes.bits(target):
        return _step(w, "trunc", value, source, target)
    return _step(w, "zext" if _is_unsigned(source) else "sext", value, source, target)


def _from_integer(w: Function, value: str, source: str, target: str) -> str:
    instruction = "uitofp" if _is_unsigned(source) else "sitofp"
    if dtypes.element(target) != "float16":
        return _step(w, instruction, value, source, target)
    # Machines have no direct conversion. Integers below 2**24 are exact in float32, so that the
    # conversion rounds once; all larger ones exceed float16 and become infinity.
    wide = dtypes.with_lanes("float32", dtypes.lanes(target))
    return _step(w, "fptrunc", _step(w, instruction, value, source, wide), wide, target)


def _to_integer(w: Function, value: str, source: str, target: str) -> str:
    lanes = dtypes.lanes(source)
    if dtypes.element(source) == "float16":
        wide = dtypes.with_lanes("float32", lanes)
        return _to_integer(w, _step(w, "fpext", value, source, wide), wide, target)
    if lanes > 1 and (dtypes.bits(target) < 32 or dtypes.element(target) == "int32"):
        return _vector_to_integer(w, value, source, target)
    if dtypes.bits(target) < 32:
        # LLVM has fast vector code for 32 bits only. Saturating to int32 and then to the smaller
        # type gives the same result as saturating once.
        wide = dtypes.with_lanes("int32", lanes)
        clamped = _to_integer(w, value, source, wide)
        for op, limit in (("max", dtypes.min_value(target)), ("min", dtypes.max_value(target))):
            bound = constant(limit, wide)
            clamped = arithmetic.binary(w, "max" if op == "max" else "min", wide, clamped, bound)
        return _step(w, "trunc", clamped, wide, target)
    name = "fptoui" if dtypes.is_unsigned(target) else "fptosi"
    suffix = f"{intrinsic_suffix(target)}.{intrinsic_suffix(source)}"
    symbol = w.module.declare(f"llvm.{name}.sat.{suffix}", value_type(target), value_type(source))
    return w.pure(f"call {value_type(target)} {symbol}({value_type(source)} {value})")


def _vector_to_integer(w: Function, value: str, source: str, target: str) -> str:
    """Convert a vector by comparisons: LLVM writes one number at a time for ``llvm.fptosi.sat``.

    The limits are tested before the conversion, which truncates: they are whole numbers.
    """
    lanes, type_ = dtypes.lanes(source), value_type(source)
    condition, wide = (dtypes.with_lanes(name, lanes) for name in ("bool", "int32"))
    low, high = dtypes.min_value(target), dtypes.max_value(target)
    least, beyond, zero = (constant(number, source) for number in (low, high + 1, 0))
    is_above = w.pure(f"fcmp ogt {type_} {value}, {least}")
    from_least = arithmetic.select(w, source, condition, is_above, value, least)
    is_below = w.pure(f"fcmp olt {type_} {value}, {beyond}")  # a NaN is not
    inside = arithmetic.select(w, source, condition, is_below, from_least, zero)
    whole = _step(w, "fptosi", inside, source, wide)
    is_large = w.pure(f"fcmp oge {type_} {value}, {beyond}")
    made = arithmetic.select(w, wide, condition, is_large, constant(high, wide), whole)
    return made if target == wide else _step(w, "trunc", made, wide, target)


def is_inside(low: Expr, high: Expr, target: str) -> bool:
    """Tell whether limits of float32 are constants, and whole numbers of an integer dtype."""
    numbers = []
    for bound in (low, high):
        value = bound.value if isinstance(bound, Broadcast) else bound
        if not isinstance(value, Const) or dtypes.element(bound.dtype) != "float32":
            return False
        numbers.append(float(value.value))
    if not dtypes.is_int(target) or dtypes.bits(target) > 32 or dtypes.element(target) == "uint32":
        return False
    return dtypes.min_value(target) <= numbers[0] <= numbers[1] <= dtypes.max_value(target)


def convert_clamped(w: Function, value: str, source: str, target: str) -> str:
    """Convert floats that are inside the limits of an integer dtype, or NaN, which becomes 0."""
    lanes, type_ = dtypes.lanes(source), value_type(source)
    condition, wide = (dtypes.with_lanes(name, lanes) for name in ("bool", "int32"))
    is_number = w.pure(f"fcmp ord {type_} {value}, {constant(0, source)}")
    number = arithmetic.select(w, source, condition, is_number, value, constant(0, source))
    whole = _step(w, "fptosi", number, source, wide)
    return whole if target == wide else _step(w, "trunc", whole, wide, target)


def _to_bfloat16(w: Function, value: str, source: str, target: str) -> str:
    """Convert to bfloat16, rounding once: the steps before the last are exact or round to odd."""
    wide = float32_like(target)
    if dtypes.is_float(source):
        if dtypes.bits(source) > 32:
            return narrow(w, _rounded_to_odd(w, value, source, wide), target)
        return narrow(w, convert(w, value, source, wide), target)
    if dtypes.bits(source) <= 16:
        return narrow(w, _from_integer(w, value, source, wide), target)
    double = dtypes.with_lanes("float64", dtypes.lanes(source))
    if dtypes.bits(source) > 32:
        value = _sticky(w, value, source)
    return convert(w, _from_integer(w, value, source, double), double, target)


def _sticky(w: Function, value: str, dtype: str) -> str:
    """Reduce a 64-bit integer to 53 significant bits; the last one is set if a lower bit was.

    An integer of 53 bits or fewer is unchanged.
    """
    type_, condition = value_type(dtype), dtypes.with_lanes("bool", dtypes.lanes(dtype))
    lost = w.pure(f"and {type_} {value}, {constant(0x7FF, dtype)}")
    some = w.pure(f"add {type_} {lost}, {constant(0x7FF, dtype)}")  # reaches bit 11 unless 0
    joined = w.pure(f"or {type_} {value}, {some}")
    kept = w.pure(f"and {type_} {joined}, {constant(-0x800, dtype)}")
    offset, limit = (0, 2**53) if _is_unsigned(dtype) else (2**53, 2**54)
    shifted = w.pure(f"add {type_} {value}, {constant(offset, dtype)}")
    is_large = w.pure(f"icmp ugt {type_} {shifted}, {constant(limit, dtype)}")
    return arithmetic.select(w, dtype, condition, is_large, kept, value)


def _resize_float(w: Function, value: str, source: str, target: str) -> str:
    if dtypes.bits(source) < dtypes.bits(target):
        return _step(w, "fpext", value, source, target)
    if dtypes.element(source) == "float64" and dtypes.element(target) == "float16":
        wide = dtypes.with_lanes("float32", dtypes.lanes(source))
        return _step(w, "fptrunc", _rounded_to_odd(w, value, source, wide), wide, target)
    return _step(w, "fptrunc", value, source, target)


def _rounded_to_odd(w: Function, value: str, source: str, target: str) -> str:
    """Round float64 to a float32 whose last bit records that it is inexact.

    Rounding that to float16 gives the nearest float16, where rounding to nearest twice may not; and
    few machines go from float64 to float16 in one instruction.

    Notes
    -----
    **Source:** S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
    algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008, theorem 3.
    """
    lanes = dtypes.lanes(source)
    bits_dtype = dtypes.with_lanes("uint32", lanes)
    condition = dtypes.with_lanes("bool", lanes)
    bits_type = value_type(bits_dtype)
    nearest = _step(w, "fptrunc", value, source, target)
    back = _step(w, "fpext", nearest, target, source)
    inexact = w.pure(f"fcmp one {value_type(source)} {back}, {value}")
    away = w.pure(
        f"fcmp ogt {value_type(source)} {arithmetic.intrinsic(w, 'fabs', source, back)}, "
        f"{arithmetic.intrinsic(w, 'fabs', source, value)}"
    )
    bits = _step(w, "bitcast", nearest, target, bits_dtype)
    # The representation of a float grows with its magnitude: minus one is the next toward zero.
    one = constant(1, bits_dtype)
    lower = w.pure(f"sub {bits_type} {bits}, {one}")
    toward_zero = arithmetic.select(w, bits_dtype, condition, away, lower, bits)
    odd = w.pure(f"or {bits_type} {toward_zero}, {one}")
    chosen = arithmetic.select(w, bits_dtype, condition, inexact, odd, bits)
    return _step(w, "bitcast", chosen, bits_dtype, target)
