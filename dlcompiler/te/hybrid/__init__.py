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
write are 0, as in Python (`dlcompiler.te.extern.zeros`).
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
        If the source is not there, or at a call, if an argument is something else, or if something
        in the source is not part of the subset; the text names the line.
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
    """Refuse to run a script as Python on what is neither an array nor a number."""
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
    """Yield what an argument holds, inside tuples in tuples."""
    if not isinstance(arg, list | tuple):
        yield arg
        return
    for item in arg:
        yield from _leaves(item)


def _is_symbolic(arg: object) -> bool:
    """Tell whether an argument is, or holds, a tensor: then the source is parsed, not run."""
    return any(isinstance(leaf, Tensor | Expr) for leaf in _leaves(arg))


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
