"""Hybrid script: a subset of Python that is a stage, and runs as ordinary Python on arrays.

::

    @te.hybrid.script
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), "float32")
        for i in parallel(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

    C = outer(A, B)           # of tensors: a tensor
    c = outer(a, b)           # of NumPy arrays: an array, by Python

Of tensors, the source is parsed and never run: what is in it, and what each word means, is said in
`dlcompiler.te.hybrid.statements` and `dlcompiler.te.hybrid.expressions`. Elements that it does not
write are 0, as in Python (`dlcompiler.te.zeros`).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from dlcompiler.ir import Expr
from dlcompiler.te.hybrid.python import NAMES
from dlcompiler.te.hybrid.source import read_source
from dlcompiler.te.hybrid.statements import script_tensors
from dlcompiler.te.tensor import Tensor


def script(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of hybrid script from one of Python.

    Parameters
    ----------
    function : callable
        Of tensors or arrays, numbers, and tuples of these, whose items `const_range` counts. Names
        of the surrounding code may stand for numbers, and tuples of numbers.

    Returns
    -------
    callable
        Of tensors, it returns a tensor, or a tuple where the function returns several; of arrays,
        what Python computes.

    Raises
    ------
    ExpressionError
        If the source is not there, or at a call, if something in it is not part of the subset; the
        text names the line.
    """
    source = read_source(function)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if any(_is_symbolic(arg) for arg in args):
            outputs = script_tensors(source, _known_around(function), args)
            return outputs[0] if len(outputs) == 1 else outputs
        return _as_python(function)(*args)

    return call


def _is_symbolic(arg: object) -> bool:
    """Tell whether an argument is, or holds, a tensor: then the source is parsed, not run."""
    if isinstance(arg, list | tuple):
        return any(map(_is_symbolic, arg))
    return isinstance(arg, Tensor | Expr)


def _as_python(function: Any) -> Callable[..., Any]:
    """Return the function with the words of the script among its global names."""
    around = {**NAMES, **function.__globals__}
    return types.FunctionType(
        function.__code__, around, function.__name__, function.__defaults__, function.__closure__
    )


def _known_around(function: Any) -> dict[str, Any]:
    """Return the numbers, and tuples of numbers, that names of the surrounding code stand for."""
    found = inspect.getclosurevars(function)
    around = {**found.globals, **found.nonlocals}
    known = {name: _numbers(value) for name, value in around.items()}
    return {name: value for name, value in known.items() if value is not None}


def _numbers(value: object) -> Any:
    """Return a number, or a tuple of what are numbers in the end; None for anything else."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, list | tuple):
        return None
    items = tuple(map(_numbers, value))
    return None if any(item is None for item in items) else items


__all__ = ["script"]
