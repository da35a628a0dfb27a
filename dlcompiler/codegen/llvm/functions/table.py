"""Table of the functions that are computed by arithmetic, with the largest error of each."""

from __future__ import annotations

from types import MappingProxyType

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.functions import (
    error,
    exact,
    exponential,
    logarithm,
    power,
    trigonometric,
    wide_angles,
    wide_exponential,
    wide_logarithm,
)
from dlcompiler.codegen.llvm.functions.values import Value, Writer
from dlcompiler.codegen.llvm.types import value_type
from dlcompiler.codegen.llvm.writer import Function

_WRITERS: dict[str, Writer] = {
    "cos": trigonometric.cos,
    "erf": error.erf,
    "exp": exponential.exp,
    "exp10": exponential.exp10,
    "exp2": exponential.exp2,
    "exp_below_1": exponential.exp_below_1,
    "log": logarithm.log,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "pow": power.pow,
    "sigmoid": exponential.sigmoid,
    "sin": trigonometric.sin,
    "tanh": exponential.tanh,
}

_WIDE: dict[str, Writer] = {
    "acos": wide_angles.acos,
    "acosh": wide_logarithm.acosh,
    "asin": wide_angles.asin,
    "asinh": wide_logarithm.asinh,
    "atan": wide_angles.atan,
    "atan2": wide_angles.atan2,
    "atanh": wide_logarithm.atanh,
    "cos": wide_angles.cos,
    "cosh": wide_exponential.cosh,
    "exp10": wide_logarithm.exp10,
    "exp2": wide_exponential.exp2,
    "fmod": exact.fmod,
    "hypot": wide_logarithm.hypot,
    "ldexp": exact.ldexp,
    "log10": wide_logarithm.log10,
    "log1p": wide_logarithm.log1p,
    "log2": wide_logarithm.log2,
    "pow": wide_logarithm.pow,
    "sin": wide_angles.sin,
    "sinh": wide_exponential.sinh,
    "tan": wide_angles.tan,
}
"""Functions of one float64, for machines that have no C library but an FMA instruction."""

MAX_ULPS = MappingProxyType(
    {
        "float32": MappingProxyType(
            {
                "cos": 1.75, "erf": 1.25, "exp": 1.25, "exp10": 1.5, "exp2": 1.25, "log": 1.0,
                "log10": 1.5, "log1p": 1.25, "log2": 1.5, "pow": 0.51, "rsqrt": 1.5,
                "sigmoid": 2.0, "sin": 1.75, "sqrt": 0.5, "tanh": 1.5,
            }
        ),
        "float64": MappingProxyType(
            {
                "erf": 1.5, "exp": 1.5, "log": 1.25, "rsqrt": 1.5, "sigmoid": 2.0, "sqrt": 0.5,
                "tanh": 1.5,
            }
        ),
    }
)  # fmt: skip
"""dtype -> function -> the largest error there is, in units in the last place of the true result.

Those of float32 were measured on all numbers (`pow`: on 10**8 pairs) by ``make fuzz-math``, those
of float64 on samples, with and without FMA instructions; each is rounded up.
"""

MAX_ULPS_ALONE = MappingProxyType(
    {
        "acos": 2.5, "acosh": 0.75, "asin": 2.75, "asinh": 0.75, "atan": 1.5, "atan2": 2.5,
        "atanh": 0.75, "cos": 1.0, "cosh": 1.75, "exp10": 1.25, "exp2": 1.25, "fmod": 0.0,
        "hypot": 1.0, "ldexp": 0.5, "log10": 0.75, "log1p": 0.75, "log2": 0.75, "pow": 1.25,
        "sin": 1.0, "sinh": 2.0, "tan": 2.5,
    }
)  # fmt: skip
"""Function -> the largest error of float64 on machines without a C library; as `MAX_ULPS`.

Measured on samples of 384,000 numbers, and rounded up. A float32 is computed in float64 and
rounded: the error is half a unit in the last place, and a millionth more.
"""

_COPIED_LINES = 300
"""Most lines of inlined copies of one function; with more it is called.

Copies are up to a third faster, since a call saves all vectors, but they take long to compile.
"""
_MOST_LINES = 80
"""Longer functions are always called: that takes a tenth longer."""


def is_own(name: str, dtype: str) -> bool:
    """Tell whether a function of this dtype is computed by arithmetic, not by the C library."""
    return name in _WRITERS and name in MAX_ULPS.get(dtypes.element(dtype), {})


def call(w: Function, name: str, dtype: str, arguments: tuple[str, ...]) -> str:
    """Write a call of the function `name` on operands of one dtype."""
    type_ = value_type(dtype)
    symbol = f"dlc_{name}_{dtype}"
    if symbol not in w.module.defined:
        w.module.define(symbol, _written(w, name, dtype, symbol, len(arguments)))
    operands = ", ".join(f"{type_} {operand}" for operand in arguments)
    function = w.module.defined[symbol]
    function.calls += 1
    is_copied = len(function.lines) <= min(_MOST_LINES, _COPIED_LINES // function.calls)
    return w.pure(f"call {type_} @{symbol}({operands}){'' if is_copied else ' noinline'}")


def _written(
    caller: Function, name: str, dtype: str, symbol: str, count: int
) -> list[tuple[str, int]]:
    """Return the lines of the function that computes `name`, which the module defines."""
    w = Function(caller.module, symbol, None)
    writer, type_ = _WRITERS[name], value_type(dtype)
    arguments = [Value(w, w.parameter("xy"[n], type_), dtype) for n in range(count)]
    result = writer(*arguments)
    attributes = "nounwind willreturn memory(none)"
    return w.finished("internal", attributes, result=(type_, result.operand))


def is_alone(w: Function, name: str) -> bool:
    """Tell whether a function is computed in float64 because there is no C library."""
    return not w.module.has_library and name in _WIDE


def call_alone(w: Function, name: str, *arguments: tuple[str, str]) -> str:
    """Write a call of a function of one float32 or float64.

    Parameters
    ----------
    w
        The function to append to.
    name
        The function that is called.
    arguments
        The dtype and the operand of each argument.
    """
    values = [Value(w, operand, dtype) for dtype, operand in arguments]
    given = [value.to("float64") if value.dtype == "float32" else value for value in values]
    symbol = f"dlc_{name}_alone"
    if symbol not in w.module.defined:
        inner = Function(w.module, symbol, None)
        parameters = [
            Value(inner, inner.parameter(f"x{n}", value_type(value.dtype)), value.dtype)
            for n, value in enumerate(given)
        ]
        result = _WIDE[name](*parameters)
        attributes = "nounwind willreturn memory(none) noinline"
        lines = inner.finished("internal", attributes, result=("double", result.operand))
        w.module.define(symbol, lines)
    operands = ", ".join(f"{value_type(value.dtype)} {value.operand}" for value in given)
    made = Value(w, w.pure(f"call double @{symbol}({operands})"), "float64")
    return made.to(arguments[0][0]).operand
