"""Tensor expressions: they say what to compute, not how.

A tensor is either a placeholder, whose values the caller gives, or computed element by element::

    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

The same as text: ``te.notation("C[i, j] += A[i, k] * B[k, j]", A=((n, n), "float32"), …)``.
A schedule says how to compute it: ``te.create_schedule``.
"""

from typing import TYPE_CHECKING, Any

from dlcompiler.registry import Registry
from dlcompiler.te import hybrid
from dlcompiler.te.arithmetic import (
    abs,
    all,
    any,
    assume_bounds,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceildiv,
    div,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    infinity,
    left_shift,
    likely,
    max_value,
    maximum,
    min_value,
    minimum,
    power,
    right_shift,
    select,
    shift_left,
    shift_right,
    truncdiv,
    truncmod,
)
from dlcompiler.te.evaluation.evaluate import absolute_bound, evaluate, tolerance
from dlcompiler.te.extern.function import extern
from dlcompiler.te.gradient.reverse_mode import gradient
from dlcompiler.te.intrinsics.library import gemm_tile, tensor_intrin
from dlcompiler.te.intrinsics.tensor_intrin import TensorIntrin, decl_tensor_intrin
from dlcompiler.te.language import AXIS_SEPARATOR, compute, const, placeholder, reduce_axis
from dlcompiler.te.math import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    fmod,
    from_bits,
    hypot,
    isfinite,
    isinf,
    isnan,
    ldexp,
    log,
    log1p,
    log2,
    log10,
    nearbyint,
    nextafter,
    popcount,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sort_key,
    sqrt,
    tan,
    tanh,
    tf32,
    to_bits,
    trunc,
)
from dlcompiler.te.notation.reader import (
    notation,
    notation_arguments,
    notation_python,
    notation_text,
    signature_text,
)
from dlcompiler.te.recurrences import scan
from dlcompiler.te.reducers.reductions import argmax, argmin, comm_reducer, max, min, prod, sum
from dlcompiler.te.roundings import rounding_depth
from dlcompiler.te.symbols import bind_symbols, size_var, specialize, symbols_of, var
from dlcompiler.te.tensor import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    post_order,
)
from dlcompiler.te.thread_axes import ThreadAxis, thread_axis

__all__ = [
    "AXIS_SEPARATOR",
    "ComputeOp",
    "ExternOp",
    "Operation",
    "PlaceholderOp",
    "ScanOp",
    "Tensor",
    "TensorIntrin",
    "ThreadAxis",
    "abs",
    "absolute_bound",
    "acos",
    "acosh",
    "all",
    "any",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "assume_bounds",
    "atan",
    "atan2",
    "atanh",
    "bind_symbols",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "ceildiv",
    "clz",
    "comm_reducer",
    "compute",
    "const",
    "copysign",
    "cos",
    "cosh",
    "decl_tensor_intrin",
    "div",
    "erf",
    "evaluate",
    "exp",
    "exp2",
    "exp10",
    "extern",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "from_bits",
    "gemm_tile",
    "gradient",
    "hybrid",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "left_shift",
    "likely",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "nearbyint",
    "nextafter",
    "notation",
    "notation_arguments",
    "notation_python",
    "notation_text",
    "placeholder",
    "popcount",
    "post_order",
    "power",
    "prod",
    "reduce_axis",
    "right_shift",
    "round",
    "rounding_depth",
    "rsqrt",
    "scan",
    "select",
    "shift_left",
    "shift_right",
    "sigmoid",
    "signature_text",
    "sin",
    "sinh",
    "size_var",
    "sort_key",
    "specialize",
    "sqrt",
    "sum",
    "symbols_of",
    "tan",
    "tanh",
    "tensor_intrin",
    "tf32",
    "thread_axis",
    "to_bits",
    "tolerance",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]

#: Classic TVM has `create_schedule` in `te`. Here, `dlcompiler.schedule` imports `te`, so importing
#: it would be a cycle: the name is looked up when it is used.
ABOVE: Registry[Any] = Registry("name", {"create_schedule": "dlcompiler.schedule:create_schedule"})

if not TYPE_CHECKING:  # a type checker would take any name

    def __getattr__(name: str) -> Any:
        """Return `create_schedule` (PEP 562)."""
        if name not in ABOVE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return ABOVE[name]
