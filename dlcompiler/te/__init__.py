"""Tensor expressions: what to compute, without saying how.

A tensor is a placeholder (given by the caller) or is computed element by element::

    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

or the same as text: ``te.notation("C[i, j] += A[i, k] * B[k, j]", A=((n, n), "float32"), …)``.
How to compute it is a schedule's business: ``te.create_schedule``, which the facade
(``import dlcompiler``) puts here, where classic code looks for it.
"""

from dlcompiler.te.evaluate import absolute_bound, evaluate, tolerance
from dlcompiler.te.language import (
    abs,
    all,
    any,
    ceil,
    compute,
    const,
    cos,
    div,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    log,
    max_value,
    maximum,
    min_value,
    minimum,
    placeholder,
    power,
    reduce_axis,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
    var,
)
from dlcompiler.te.magnitude import rounding_depth
from dlcompiler.te.notation import (
    notation,
    notation_arguments,
    notation_python,
    notation_text,
    signature_text,
)
from dlcompiler.te.reductions import argmax, argmin, comm_reducer, max, min, prod, sum
from dlcompiler.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, post_order

__all__ = [
    "ComputeOp",
    "Operation",
    "PlaceholderOp",
    "Tensor",
    "abs",
    "absolute_bound",
    "all",
    "any",
    "argmax",
    "argmin",
    "ceil",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "div",
    "erf",
    "evaluate",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "log",
    "max",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "notation",
    "notation_arguments",
    "notation_python",
    "notation_text",
    "placeholder",
    "post_order",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rounding_depth",
    "rsqrt",
    "select",
    "sigmoid",
    "signature_text",
    "sin",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "tolerance",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
