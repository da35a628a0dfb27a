"""Write operations on bfloat16, the upper half of a float32, which is held in an ``i16``.

LLVM's own type is not used for arithmetic, which calls functions that C libraries lack; processors
before 2020 have no instructions for it. An operation widens to float32, which holds every bfloat16
exactly, and rounds its result: by integer operations, or where the machine can, by one instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.types import constant, value_type
from dlcompiler.codegen.llvm.writer import Function

ROUNDS = "rounds-to-bfloat16"
"""Feature of a module whose machine has an instruction that rounds a float32 to bfloat16."""


def is_bfloat16(dtype: str) -> bool:
    """Tell whether the lanes of `dtype` are of bfloat16."""
    return dtypes.element(dtype) == "bfloat16"


def float32_like(dtype: str) -> str:
    """Return the dtype float32 with as many lanes as `dtype`."""
    return dtypes.with_lanes("float32", dtypes.lanes(dtype))


def widen(w: Function, value: str, dtype: str) -> str:
    """Write the float32 that is equal to a bfloat16 of `dtype`."""
    bits = dtypes.with_lanes("uint32", dtypes.lanes(dtype))
    type_ = value_type(bits)
    extended = w.pure(f"zext {value_type(dtype)} {value} to {type_}")
    shifted = w.pure(f"shl {type_} {extended}, {constant(16, bits)}")
    return w.pure(f"bitcast {type_} {shifted} to {value_type(float32_like(dtype))}")


def narrow(w: Function, value: str, dtype: str, *, is_exact: bool = False) -> str:
    """Write the bfloat16 of `dtype` nearest to a float32, ties to even.

    With `is_exact` the float32 is known to be a bfloat16 (or NaN).
    """
    lanes = dtypes.lanes(dtype)
    bits = dtypes.with_lanes("uint32", lanes)
    type_, float_type = value_type(bits), value_type(float32_like(dtype))
    if ROUNDS in w.module.features and not is_exact:
        short = "bfloat" if lanes == 1 else f"<{lanes} x bfloat>"
        rounded = w.pure(f"fptrunc {float_type} {value} to {short}")
        return w.pure(f"bitcast {short} {rounded} to {value_type(dtype)}")
    pattern = w.pure(f"bitcast {float_type} {value} to {type_}")
    if not is_exact:
        pattern = _rounded(w, value, pattern, dtype, bits)
    upper = w.pure(f"lshr {type_} {pattern}, {constant(16, bits)}")
    return w.pure(f"trunc {type_} {upper} to {value_type(dtype)}")


def _rounded(w: Function, value: str, pattern: str, dtype: str, bits: str) -> str:
    """Write the bits of a float32 with the upper half rounded; NaN stays NaN."""
    type_, float_type = value_type(bits), value_type(float32_like(dtype))
    bool_type = value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
    upper = w.pure(f"lshr {type_} {pattern}, {constant(16, bits)}")
    last = w.pure(f"and {type_} {upper}, {constant(1, bits)}")
    half = w.pure(f"add {type_} {last}, {constant(0x7FFF, bits)}")
    nearest = w.pure(f"add {type_} {pattern}, {half}")
    quiet = w.pure(f"or {type_} {pattern}, {constant(0x400000, bits)}")
    is_nan = w.pure(f"fcmp uno {float_type} {value}, {constant(0.0, float32_like(dtype))}")
    return w.pure(f"select {bool_type} {is_nan}, {type_} {quiet}, {type_} {nearest}")


def in_float32(
    w: Function, dtype: str, operands: tuple[str, ...], write: Callable[[tuple[str, ...]], str],
    *, is_exact: bool = False,
) -> str:  # fmt: skip
    """Write an operation on bfloat16: `write` gets the widened operands, in float32."""
    wide = tuple(widen(w, operand, dtype) for operand in operands)
    return narrow(w, write(wide), dtype, is_exact=is_exact)
