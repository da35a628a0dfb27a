"""Hybrid script: functions in a subset of Python that define a stage, or run on NumPy arrays.

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

Called with tensors, the source is parsed and never run. `dlcompiler.te.hybrid.statements` and
`dlcompiler.te.hybrid.expressions` list what it may contain. Elements that it does not write are 0,
as in Python (`dlcompiler.te.extern.zeros`).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Expr
from dlcompiler.ir.operators import Operators
from dlcompiler.te.hybrid.expressions import is_known
from dlcompiler.te.hybrid.python import NAMES
from dlcompiler.te.hybrid.source import read_source
from dlcompiler.te.hybrid.statements import script_tensors
from dlcompiler.te.tensor import Tensor


def script(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a Python function into a hybrid script, as a decorator.

    Parameters
    ----------
    function : callable
        Its arguments are tensors or arrays, numbers, and tuples of these. A loop of `const_range`
        can run over the items of a tuple. Names from the surrounding code may be numbers, and
        tuples of numbers.

    Returns
    -------
    callable
        Called with tensors, it returns a tensor, or a tuple if the function returns several. Called
        with arrays, it runs as ordinary Python.

    Raises
    ------
    ExpressionError
        If the source of the function is not available. By a call, if an argument is of another
        type, or if the source contains something outside the subset; the text names the line.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> @te.hybrid.script
    ... def doubled(a):
    ...     b = output_tensor((a.shape[0],), "float32")
    ...     for i in range(a.shape[0]):
    ...         b[i] = a[i] * 2.0
    ...     return b
    >>> doubled(te.placeholder((8,), name="A"))
    Tensor(doubled: float32[8])
    >>> doubled(np.ones(2, "float32"))
    array([2., 2.], dtype=float32)
    """
    source = read_source(function)
    where = f"te.hybrid {source.name}"

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        try:
            given = inspect.signature(function).bind(*positional, **named)
        except TypeError as error:
            raise ExpressionError(where, "wrong arguments", got=str(error)) from error
        args = (*given.args, *given.kwargs.values())
        if any(_is_symbolic(arg) for arg in args):
            outputs = script_tensors(source, _known_around(function), args)
            return outputs[0] if len(outputs) == 1 else outputs
        _check_runs_on(given.arguments, where)
        return _as_python(function)(*given.args, **given.kwargs)

    return call


def _check_runs_on(given: Mapping[str, Any], where: str) -> None:
    """Refuse to run a script as Python on arguments that are neither arrays nor numbers."""
    leaves = [(name, leaf) for name, arg in given.items() for leaf in _leaves(arg)]
    for name, leaf in leaves:
        is_array = hasattr(leaf, "__array__") and not isinstance(leaf, Operators)
        if not is_known(leaf) and not is_array:
            raise ExpressionError(
                where, f"the argument {name} is neither a tensor, nor an array, nor a number",
                got=repr(leaf), expected="one of these, or a tuple of them",
            )  # fmt: skip
    if given and not leaves:
        raise ExpressionError(
            where, "the arguments hold neither a tensor nor an array",
            got=", ".join(map(repr, given.values())),
        )  # fmt: skip


def _leaves(arg: object) -> Iterator[object]:
    """Yield the items of an argument, which may be nested tuples."""
    if not isinstance(arg, list | tuple):
        yield arg
        return
    for item in arg:
        yield from _leaves(item)


def _is_symbolic(arg: object) -> bool:
    """Tell whether an argument is or contains a tensor: then the source is parsed, not run."""
    return any(isinstance(leaf, Tensor | Expr) for leaf in _leaves(arg))


def _as_python(function: Any) -> Callable[..., Any]:
    """Return the function with the script's functions (`output_tensor` …) as global names."""
    around = {**NAMES, **function.__globals__}
    return types.FunctionType(
        function.__code__, around, function.__name__, function.__defaults__, function.__closure__
    )


def _known_around(function: Any) -> dict[str, Any]:
    """Return the numbers, and tuples of numbers, that the function uses from surrounding code."""
    found = inspect.getclosurevars(function)
    around = {**found.globals, **found.nonlocals}
    known = {name: _numbers(value) for name, value in around.items()}
    return {name: value for name, value in known.items() if value is not None}


def _numbers(value: object) -> Any:
    """Return a number, or a (nested) tuple of numbers; None for anything else."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, list | tuple):
        return None
    items = tuple(map(_numbers, value))
    return None if any(item is None for item in items) else items


__all__ = ["script"]
