"""Write calls of functions: as LLVM intrinsics, as vector arithmetic, or to the C library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import arithmetic, bit_patterns, functions
from dlcompiler.codegen.llvm.conversions import convert
from dlcompiler.codegen.llvm.types import constant, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError
from dlcompiler.ir.functions import FUNCTIONS

Operands: TypeAlias = tuple[str, ...]

INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "roundeven",
    "abs": "fabs",
    "copysign": "copysign",
}
"""Functions of floats with vector instructions -> the LLVM intrinsic."""


def call(w: Function, name: str, argument_dtypes: tuple[str, ...], arguments: Operands) -> str:
    """Write the function `name` of operands of these dtypes."""
    dtype = argument_dtypes[0]
    if dtypes.element(dtype) in ("float16", "bfloat16") and name not in _PATTERNS:
        return _in_float32(w, name, argument_dtypes, arguments)
    if name == "abs" and not dtypes.is_float(dtype):
        return _integer_abs(w, dtype, arguments[0])
    if name in INTRINSICS:
        return arithmetic.intrinsic(w, INTRINSICS[name], dtype, *arguments)
    if functions.is_own(name, dtype):
        return functions.call(w, name, dtype, arguments)
    if name in LIBM or functions.is_alone(w, name):
        return _by_lanes(w, name, argument_dtypes, arguments)
    writer = {**_PATTERNS, **_OWN}.get(name)
    if writer is None:
        raise InternalError("generate LLVM code", f"unknown function {name}")
    return writer(w, dtype, *arguments)


def _in_float32(
    w: Function, name: str, argument_dtypes: tuple[str, ...], arguments: Operands
) -> str:
    dtype = argument_dtypes[0]
    wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
    pairs = list(zip(arguments, argument_dtypes, strict=True))
    widened = tuple(convert(w, x, d, wide) if d == dtype else x for x, d in pairs)
    result = call(w, name, tuple(wide if d == dtype else d for d in argument_dtypes), widened)
    return convert(w, result, wide, dtype)


def _integer_abs(w: Function, dtype: str, value: str) -> str:
    if dtypes.is_unsigned(dtype):
        return value
    negated = arithmetic.binary(w, "sub", dtype, "zeroinitializer", value)
    return arithmetic.binary(w, "max", dtype, value, negated)


def _by_lanes(w: Function, name: str, argument_dtypes: tuple[str, ...], arguments: Operands) -> str:
    lanes, type_ = dtypes.lanes(argument_dtypes[0]), value_type(argument_dtypes[0])
    elements = [dtypes.element(dtype) for dtype in argument_dtypes]
    if lanes == 1:
        return _of_lane(w, name, elements, arguments)
    pairs = list(zip(map(value_type, argument_dtypes), arguments, strict=True))
    result = "poison"
    for lane in range(lanes):
        operands = tuple(w.pure(f"extractelement {v} {a}, i64 {lane}") for v, a in pairs)
        made = _of_lane(w, name, elements, operands)
        inserted = f"{value_type(elements[0])} {made}, i64 {lane}"
        result = w.pure(f"insertelement {type_} {result}, {inserted}")
    return result


def _of_lane(w: Function, name: str, elements: Sequence[str], operands: Operands) -> str:
    """Write a function of scalars of these dtypes."""
    if functions.is_alone(w, name):
        return functions.call_alone(w, name, *zip(elements, operands, strict=True))
    if not w.module.has_library:
        raise InternalError("generate LLVM code", f"no code for {name} of {elements[0]}")
    types = [value_type(element) for element in elements]
    # Without `nobuiltin` LLVM replaces calls by other functions, pow(10, x) by exp10(x), which not
    # every C library has; the module would then not link.
    symbol = w.module.declare(
        name if elements[0] == "float64" else f"{name}f",
        types[0],
        ", ".join(types),
        "nobuiltin nounwind willreturn memory(none)",
    )
    typed = (f"{t} {operand}" for t, operand in zip(types, operands, strict=True))
    return w.pure(f"call {types[0]} {symbol}({', '.join(typed)})")


# -- functions put together from others -----------------------------------------------------------


def _exp10(w: Function, dtype: str, x: str) -> str:
    return call(w, "pow", (dtype, dtype), (constant(10.0, dtype), x))


def _rsqrt(w: Function, dtype: str, x: str) -> str:
    root = arithmetic.intrinsic(w, "sqrt", dtype, x)
    return arithmetic.binary(w, "div", dtype, constant(1.0, dtype), root)


def _likely(w: Function, dtype: str, condition: str) -> str:
    if dtypes.lanes(dtype) > 1:
        return condition
    symbol = w.module.declare("llvm.expect.i1", "i1", "i1, i1")
    return w.pure(f"call i1 {symbol}(i1 {condition}, i1 true)")


def _same(w: Function, dtype: str, value: str) -> str:
    return value


_OWN: dict[str, Callable[..., str]] = {
    "assume_bounds": _same,
    "exp10": _exp10,
    "likely": _likely,
    "rsqrt": _rsqrt,
}
_PATTERNS: dict[str, Callable[..., str]] = {
    "clz": bit_patterns.leading_zeros,
    "from_bits": bit_patterns.from_bits,
    "isfinite": bit_patterns.is_finite,
    "isinf": bit_patterns.is_infinite,
    "isnan": bit_patterns.is_nan,
    "nextafter": bit_patterns.next_after,
    "popcount": bit_patterns.count_ones,
    "sort_key": bit_patterns.sort_key,
    "tf32": bit_patterns.to_tf32,
    "to_bits": bit_patterns.to_bits,
}
"""Functions that look at the bits of their argument, also of floats of 16 bits."""
LIBM = tuple(
    signature.libm
    for name, signature in FUNCTIONS.items()
    if signature.libm and name not in INTRINSICS and name not in _PATTERNS
)
"""Functions computed lane by lane by the C library, unless `functions` has vector code."""
