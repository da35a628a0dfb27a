"""Table of the functions that are computed by arithmetic, with the largest error of each."""

from __future__ import annotations

from types import MappingProxyType

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.functions import error, exponential, logarithm, power, trigonometric
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
