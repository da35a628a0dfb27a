"""Mathematical functions: LLVM intrinsics where machines have an instruction, libm elsewhere."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import arithmetic
from dlcompiler.codegen.llvm.conversions import convert
from dlcompiler.codegen.llvm.types import value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError

INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "roundeven",
    "abs": "fabs",
}
"""Functions of floats with vector instructions -> the LLVM intrinsic."""

LIBM = {
    "exp": 1, "log": 1, "sin": 1, "cos": 1, "tan": 1, "tanh": 1, "erf": 1, "pow": 2,
}  # fmt: skip
"""Functions computed lane by lane by the C library -> number of arguments."""


def call(w: Function, name: str, dtype: str, arguments: tuple[str, ...]) -> str:
    """Write the function `name` of operands of `dtype`."""
    if name == "abs" and not dtypes.is_float(dtype):
        return _integer_abs(w, dtype, arguments[0])
    if not dtypes.is_float(dtype):
        raise InternalError("generate LLVM code", f"{name} of {dtype}")
    if dtypes.element(dtype) in ("float16", "bfloat16"):
        wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
        widened = tuple(convert(w, argument, dtype, wide) for argument in arguments)
        return convert(w, call(w, name, wide, widened), wide, dtype)
    if name in INTRINSICS and len(arguments) == 1:
        return arithmetic.intrinsic(w, INTRINSICS[name], dtype, *arguments)
    if LIBM.get(name) != len(arguments):
        raise InternalError(
            "generate LLVM code",
            f"unknown function {name} of {len(arguments)} arguments",
            expected=", ".join([*INTRINSICS, *LIBM]),
        )
    return _by_lanes(w, name, dtype, arguments)


def _integer_abs(w: Function, dtype: str, value: str) -> str:
    if dtypes.is_unsigned(dtype):
        return value
    negated = arithmetic.binary(w, "sub", dtype, "zeroinitializer", value)
    return arithmetic.binary(w, "max", dtype, value, negated)


def _by_lanes(w: Function, name: str, dtype: str, arguments: tuple[str, ...]) -> str:
    element, lanes = dtypes.element(dtype), dtypes.lanes(dtype)
    type_ = value_type(element)
    symbol = w.module.declare(
        name if element == "float64" else f"{name}f",
        type_,
        ", ".join([type_] * len(arguments)),
        "nounwind willreturn memory(none)",
    )

    def scalar(operands: list[str]) -> str:
        return w.pure(f"call {type_} {symbol}({', '.join(f'{type_} {o}' for o in operands)})")

    if lanes == 1:
        return scalar(list(arguments))
    vector = value_type(dtype)
    result = "poison"
    for lane in range(lanes):
        operands = [w.pure(f"extractelement {vector} {a}, i64 {lane}") for a in arguments]
        result = w.pure(f"insertelement {vector} {result}, {type_} {scalar(operands)}, i64 {lane}")
    return result
