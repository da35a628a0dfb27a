"""The words of the language: what a user writes to make tensors and expressions.

The names follow classic TE (and so `sum`, `max`, `all` … shadow Python's here).
"""

from __future__ import annotations

import inspect
import itertools
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError, shown_number
from dlcompiler.ir import (
    Axis,
    Const,
    Extent,
    extent_binary,
)
from dlcompiler.ir import const as make_const
from dlcompiler.ir.names import checked_label
from dlcompiler.te.definition import (
    checked_data_dtype,
    checked_extent,
    checked_name,
    checked_shape,
    define_tensors,
)
from dlcompiler.te.given_functions import signature_of
from dlcompiler.te.tensor import PlaceholderOp, Tensor

_placeholder_names = (f"placeholder{n or ''}" for n in itertools.count())
_axis_names = (f"rv{n or ''}" for n in itertools.count())

# -- tensors and axes ---------------------------------------------------------------------------


def placeholder(
    shape: Sequence[Extent] | Extent, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """Declare an input tensor.

    Parameters
    ----------
    shape : tuple of int
        Extent of each dimension; 0 is allowed.
    dtype : str or numpy.dtype
        Element type.
    name : str, optional
        Unique names are made up for unnamed inputs.
    """
    name = checked_name(name, "te.placeholder") if name is not None else next(_placeholder_names)
    where = f"te.placeholder {name}"
    element = checked_data_dtype(dtype, where)
    return PlaceholderOp(name, checked_shape(shape, where), element).output(0)


def compute(
    shape: Sequence[Extent] | Extent,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: object = None,
) -> Any:
    """Define a tensor, or several computed together, element by element.

    Parameters
    ----------
    shape : tuple of int
        Extent of each dimension of the result; a 0-d tensor has the shape ``()``.
    fcompute : callable
        Gets one axis for each dimension and returns the element's expression; a reduction
        (`te.sum` …) stands at its top. Its parameter names become the axes' names. A tuple of
        expressions defines several tensors; of reductions, they are the results of one.
    name : str
        Name of the tensor and of its stage.
    tag : str
        Free text kept with the operation.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple if `fcompute` returns one.

    Raises
    ------
    ExpressionError
        If the function takes another number of arguments than there are dimensions, or a
        reduction stands inside another expression.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> te.compute((8, 4), lambda i, j: A[j, i], name="T")
    Tensor(T: float32[8, 4])
    """
    del attrs  # accepted for classic code; nothing reads it
    where = f"te.compute {checked_name(name, 'te.compute')}"
    checked_label(tag, where, "tag")
    extents = checked_shape(shape, where)
    names = _parameter_names(fcompute, len(extents), where)
    axes = tuple(Axis(n, extent, "data") for n, extent in zip(names, extents, strict=True))
    result = fcompute(*axes)
    if not isinstance(result, list | tuple):
        return define_tensors(name, axes, (result,), where, tag)[0]
    return define_tensors(name, axes, result, where, tag)


def _parameter_names(fcompute: Callable[..., Any], ndim: int, where: str) -> list[str]:
    """Return a name for each axis, from the parameters of the user's function."""
    if not callable(fcompute):
        raise ExpressionError(where, "not a function of the axes", got=repr(fcompute))
    parameters = signature_of(fcompute, where).parameters.values()
    positional = [
        p.name
        for p in parameters
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    variadic = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    for name in (*positional, *variadic):
        checked_name(name, where)
    needed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if needed:
        raise ExpressionError(
            where, "the function needs arguments by name", got=", ".join(needed),
            expected="one argument for each axis, in their order",
        )  # fmt: skip
    if variadic and len(positional) <= ndim:
        return positional + [f"{variadic[0]}{n}" for n in range(ndim - len(positional))]
    if len(positional) != ndim:
        raise ExpressionError(
            where,
            "the function takes another number of axes than the shape has dimensions",
            got=f"{len(positional)} parameters ({', '.join(positional) or 'none'})",
            expected=f"{ndim}",
        )
    return positional


def reduce_axis(dom: Sequence[int], name: str | None = None) -> Axis:
    """Declare an axis to reduce over.

    Parameters
    ----------
    dom : (int, int)
        First value and the value after the last: ``(0, n)``.
    name : str, optional
        Unique names are made up for unnamed axes.
    """
    name = checked_name(name, "te.reduce_axis") if name is not None else next(_axis_names)
    where = f"te.reduce_axis {name}"
    first, end = _pair(dom, where)
    if not isinstance(first, int):
        raise ExpressionError(
            where, "the domain starts at a symbol", got=repr(dom), expected="(0, n)",
            hint="start at a number, and add the symbol where the axis is used",
        )  # fmt: skip
    extent = extent_binary("sub", end, first)
    if isinstance(extent, int) and extent < 0:
        raise ExpressionError(where, "the domain is empty", got=repr(dom), expected="(0, n)")
    return Axis(name, checked_extent(extent, where), "reduce", start=first)


def _pair(dom: Any, where: str) -> tuple[Extent, Extent]:
    if not isinstance(dom, Sequence) or len(dom) != 2:
        raise ExpressionError(where, "the domain is not a pair", got=repr(dom), expected="(0, n)")
    return checked_extent(dom[0], where), checked_extent(dom[1], where)


def const(value: Any, dtype: Any = None) -> Const:
    """Make a literal.

    Parameters
    ----------
    value : number
        Of Python or NumPy.
    dtype : str or numpy.dtype, optional
        By default that of the value: of a Python bool it is ``bool``, of an int ``int32``, of a
        float ``float32``, and a number of NumPy has its own.

    Raises
    ------
    ExpressionError
        If the dtype cannot hold the value.

    Examples
    --------
    >>> import numpy as np
    >>> const(4).dtype, const(4.0).dtype, const(True).dtype, const(np.uint8(3)).dtype
    ('int32', 'float32', 'bool', 'uint8')
    """
    kind = dtypes.as_dtype(_dtype_of_number(value) if dtype is None else dtype)
    if dtypes.lanes(kind) > 1:
        raise ExpressionError("te.const", "a literal is one number", got=kind)
    made = make_const(value, kind)
    if dtypes.is_index(kind) and not -(2**63) <= made.value < 2**63:
        raise ExpressionError("te.const", "an index has 64 bits", got=shown_number(value))
    return made


def _dtype_of_number(value: Any) -> str:
    """Return the dtype of a literal of which none is given."""
    if isinstance(value, np.generic):
        return dtypes.from_numpy(value.dtype)
    if isinstance(value, bool):
        return "bool"
    if not isinstance(value, numbers.Integral):
        return "float32"
    if not -(2**31) <= int(value) < 2**31:
        raise ExpressionError(
            "te.const", "does not fit int32, the dtype of an int", got=shown_number(value),
            hint="give another one: te.const(value, 'int64')",
        )  # fmt: skip
    return "int32"


# -- layouts ------------------------------------------------------------------------------------


class AxisSeparator:
    """Stands between the axes of a layout; `AXIS_SEPARATOR` is the only one."""

    def __repr__(self) -> str:
        return "te.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()
"""In ``s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])``: the axes before it become
one dimension of the memory, those behind it another."""
