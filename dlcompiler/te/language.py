"""Placeholders, computed tensors, reduction axes and literals: the basic functions of `te`."""

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
    """Declare an input tensor, whose values the caller gives.

    Parameters
    ----------
    shape : tuple of int or Expr
        Extent of each dimension: a number (0 is allowed), or a formula of symbols (`te.var`). A
        single extent makes a vector.
    dtype : str or numpy.dtype
        Element type.
    name : str, optional
        By default ``placeholder``, ``placeholder1``, …

    Returns
    -------
    Tensor

    Raises
    ------
    ExpressionError
        If the shape, the dtype or the name is not valid.

    Examples
    --------
    >>> from dlcompiler import te
    >>> te.placeholder((4, te.var("n")), "float64", name="A")
    Tensor(A: float64[4, n])
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
    """Define a tensor, or several computed together, by the expression of one element.

    Parameters
    ----------
    shape : tuple of int or Expr
        Extent of each dimension of the result; a 0-d tensor has the shape ``()``.
    fcompute : callable
        Gets one axis for each dimension and returns the expression of the element at that point.
        Its parameter names become the names of the axes. A reduction (`te.sum` …) is allowed only
        as the whole expression, not as an operand. A tuple of expressions defines several tensors;
        if they are reductions, they must be all results of one.
    name : str
        Name of the tensor and of its stage.
    tag : str
        Free text kept with the operation.
    attrs
        Ignored; classic TVM has a parameter of this name.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple if `fcompute` returns one.

    Raises
    ------
    ExpressionError
        If the number of the function's parameters differs from the number of dimensions, if a
        reduction is an operand of another expression, or if an element outside a tensor is read.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> te.compute((8, 4), lambda i, j: A[j, i], name="T")
    Tensor(T: float32[8, 4])

    A product of matrices sums over a reduction axis:

    >>> k = te.reduce_axis((0, 8), name="k")
    >>> te.compute((4, 4), lambda i, j: te.sum(A[i, k] * A[j, k], axis=k), name="G")
    Tensor(G: float32[4, 4])
    """
    del attrs  # classic TVM stores it with the operation; no pass here uses it
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
    """Return a name for each axis: the function's parameters, where ``*i`` stands for i0, i1."""
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
            where, "the function has parameters that can be given only by name",
            got=", ".join(needed), expected="one positional parameter for each axis",
        )  # fmt: skip
    if variadic and len(positional) <= ndim:
        return positional + [f"{variadic[0]}{n}" for n in range(ndim - len(positional))]
    if len(positional) != ndim:
        raise ExpressionError(
            where,
            "the function's number of parameters differs from the number of dimensions",
            got=f"{len(positional)} parameters ({', '.join(positional) or 'none'})",
            expected=f"{ndim}",
        )
    return positional


def reduce_axis(dom: Sequence[int], name: str | None = None) -> Axis:
    """Declare an axis to reduce over, for a reduction such as `te.sum`.

    Parameters
    ----------
    dom : (int, int or Expr)
        The first value, and the value after the last: ``(0, n)``. The first must be a number.
    name : str, optional
        By default ``rv``, ``rv1``, …

    Returns
    -------
    Axis

    Raises
    ------
    ExpressionError
        If `dom` is not a pair of extents, starts at a symbol, or ends before it starts.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="rows")
    Tensor(rows: float32[4])
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
        raise ExpressionError(
            where, "the domain ends before it starts", got=repr(dom), expected="(0, n)"
        )
    return Axis(name, checked_extent(extent, where), "reduce", start=first)


def _pair(dom: Any, where: str) -> tuple[Extent, Extent]:
    if not isinstance(dom, Sequence) or len(dom) != 2:
        raise ExpressionError(where, "the domain is not a pair", got=repr(dom), expected="(0, n)")
    return checked_extent(dom[0], where), checked_extent(dom[1], where)


def const(value: Any, dtype: Any = None) -> Const:
    """Return a literal of a given dtype.

    Parameters
    ----------
    value : number
        A number of Python or NumPy.
    dtype : str or numpy.dtype, optional
        By default, a Python bool is ``bool``, an int ``int32``, a float ``float32``; a NumPy number
        keeps its dtype.

    Returns
    -------
    Const

    Raises
    ------
    ExpressionError
        If the dtype cannot represent the value.

    Examples
    --------
    >>> import numpy as np
    >>> const(4).dtype, const(4.0).dtype, const(True).dtype, const(np.uint8(3)).dtype
    ('int32', 'float32', 'bool', 'uint8')
    """
    kind = dtypes.as_dtype(_dtype_of_number(value) if dtype is None else dtype)
    if dtypes.lanes(kind) > 1:
        raise ExpressionError(
            "te.const", "a literal is one number, not a vector", got=kind, expected="one lane"
        )
    made = make_const(value, kind)
    if dtypes.is_index(kind) and not -(2**63) <= made.value < 2**63:
        raise ExpressionError("te.const", "an index must fit 64 bits", got=shown_number(value))
    return made


def _dtype_of_number(value: Any) -> str:
    """Return the default dtype of a literal."""
    if isinstance(value, np.generic):
        return dtypes.from_numpy(value.dtype)
    if isinstance(value, bool):
        return "bool"
    if not isinstance(value, numbers.Integral):
        return "float32"
    if not -(2**31) <= int(value) < 2**31:
        raise ExpressionError(
            "te.const", "the value does not fit int32, the default dtype of an int",
            got=shown_number(value), hint="give a dtype: te.const(value, 'int64')",
        )  # fmt: skip
    return "int32"


# -- layouts ------------------------------------------------------------------------------------


class AxisSeparator:
    """Type of `AXIS_SEPARATOR`, its only value."""

    def __repr__(self) -> str:
        return "te.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()
"""Marks where one dimension of the memory ends and the next begins, in `Stage.transform_layout`.

``s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])`` stores P in a two-dimensional
buffer: the axes before the separator form its first dimension, those after it the second."""
