"""Declare buffers and build calls of external functions."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.expr import Call, Const, Expr, Extent, as_expr, as_index, cast
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.names import checked_label
from dlcompiler.ir.shapes import check_shape
from dlcompiler.ir.stmt import Buffer, CallConvention, ExternCall, Region

LIBM = {
    **{signature.libm: name for name, signature in FUNCTIONS.items() if signature.libm},
    "exp10": "exp10",  # an extension of some C libraries
    "nearbyint": "round",
}
"""Function of the C mathematics library for float64 -> function of the IR."""
CUDA_FAST = {
    f"__{name}f": name
    for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow")
}
"""Function of CUDA that trades accuracy for speed -> the accurate function of the IR."""


def decl_buffer(
    shape: Sequence[Extent] | Extent,
    dtype: Any = "float32",
    name: str = "buffer",
    data: object = None,
    strides: Sequence[Extent] | None = None,
    elem_offset: object = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
) -> Buffer:
    """Declare a buffer: a block of memory for loop IR or a tensor intrinsic.

    Parameters
    ----------
    shape : tuple of int or Expr
        Extent of each dimension; [1].
    dtype : str
        Type of an element.
    name : str
        Name in the program.
    data : None
        Accepted for classic code; the memory is bound by the caller.
    strides : sequence of int or Expr, optional
        Elements per step of each dimension; by default those of a compact row-major array; [1]. A
        symbol (`te.var`) takes the stride of the bound memory.
    elem_offset : None or 0
        Accepted for classic code; the offset is that of the bound memory.
    scope : str
        Memory: ``""`` is ``"global"``.
    data_alignment : int
        Alignment of the first element; -1 for the default of every array; [byte].
    offset_factor : int
        If the buffer is bound to a part of another one, the offset of that part is a multiple of
        this number of elements; 0 for any offset; [1].
    buffer_type : ""
        Broadcasting by strides of 0 is not supported.

    Raises
    ------
    ExpressionError
        If an argument is not supported or does not match the others.

    Examples
    --------
    >>> decl_buffer((4, 8), "float32", name="A", offset_factor=8).strides
    (8, 1)
    """
    where = f"decl_buffer {checked_label(name, 'decl_buffer')}"
    extents = tuple(_extent(n, where) for n in (shape if isinstance(shape, Sequence) else (shape,)))
    check_shape(extents, where, "buffer")
    steps = () if strides is None else tuple(_extent(n, where) for n in strides)
    if data is not None:
        raise _unsupported(where, "data", data, "bind the buffer where it is used")
    if elem_offset is not None and not (isinstance(elem_offset, int) and elem_offset == 0):
        raise _unsupported(where, "elem_offset", elem_offset, "offset_factor= says what it divides")
    if buffer_type:
        raise _unsupported(where, "buffer_type", buffer_type, "give strides=")
    if steps and len(steps) != len(extents):
        raise ExpressionError(
            where, "wrong number of strides", got=len(steps), expected=len(extents)
        )
    alignment = 64 if data_alignment == -1 else data_alignment
    if not _is_count(alignment) or alignment < 1 or alignment & (alignment - 1):
        raise ExpressionError(
            where, "data_alignment is not a power of two", got=repr(data_alignment),
            expected="bytes: 16, 32, 64 …, or -1",
        )  # fmt: skip
    if not _is_count(offset_factor) or offset_factor < 0:
        raise ExpressionError(
            where, "offset_factor is no number of elements", got=repr(offset_factor),
            expected="0 or more",
        )  # fmt: skip
    element = dtypes.as_dtype(dtype)
    if dtypes.is_index(element) or dtypes.lanes(element) != 1:
        raise ExpressionError(where, "not the dtype of a buffer", got=element, expected="float32 …")
    memory = checked_label(scope, where, "scope") or "global"
    return Buffer(name, extents, element, memory, steps, alignment, offset_factor)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _unsupported(where: str, what: str, value: object, hint: str) -> ExpressionError:
    return ExpressionError(where, f"{what}= is not supported", got=repr(value), hint=hint)


def _extent(value: Any, where: str) -> Extent:
    """Return an extent or a stride: an int if it is a constant, else an expression."""
    expr = as_index(value, where)
    return int(expr.value) if isinstance(expr, Const) else expr


# -- calls ----------------------------------------------------------------------------------------


def call_packed(name: str, *args: Any) -> ExternCall:
    """Build a call of a registered Python function.

    Parameters
    ----------
    name : str
        Name given to `register_func`.
    args : Buffer, Region, number or Expr
        A buffer arrives as a NumPy array that shares its memory, a number as a number. Given whole,
        an input of the stage is read, and any other buffer written; ``buffer.access_ptr("rw")`` and
        ``buffer.region(indices, extents, "r")`` say it otherwise.

    Returns
    -------
    ExternCall
        A statement.

    Raises
    ------
    ExpressionError
        If an argument is none of these.
    """
    return _call(name, "packed", args)


def call_extern(dtype: Any, name: str, *args: Any) -> ExternCall:
    """Build a call of a registered C function.

    Parameters
    ----------
    dtype : str
        Type of the result, which is dropped.
    name : str
        Name given to `register_extern`.
    args : Region, number or Expr
        A region (``buffer.access_ptr("r")``) arrives as a pointer to its first element, an index as
        an ``int64_t``, any other number as the C type of its dtype.

    Returns
    -------
    ExternCall
        A statement.

    Raises
    ------
    ExpressionError
        If an argument is none of these, or a buffer without what the function does with it.
    """
    dtypes.as_dtype(dtype)
    return _call(name, "c", args)


def call_pure_extern(dtype: Any, name: str, *args: Any) -> Expr:
    """Build a call of a C mathematics function as the function of the IR that it corresponds to.

    Parameters
    ----------
    dtype : {"float32", "float64"}
        Type of the result and the arguments.
    name : str
        Such as ``"expf"``, with the ``f`` of float32; or ``"__expf"``, which means the same.
    args : Expr or number
        Its arguments.

    Raises
    ------
    ExpressionError
        If there is no such function here.

    Examples
    --------
    >>> from dlcompiler.ir import Var
    >>> print(call_pure_extern("float32", "expf", Var("x", "float32")))
    exp(x)
    """
    where = f"call_pure_extern {name}"
    element = dtypes.as_dtype(dtype)
    known = {
        "float32": {**{f"{libm}f": ours for libm, ours in LIBM.items()}, **CUDA_FAST},
        "float64": LIBM,
    }.get(element, {})
    ours = known.get(name)
    if ours is None:
        raise ExpressionError(
            where,
            "not a supported function of the C mathematics library",
            got=f"{name} of {element}",
            expected=", ".join(known) or "float32 or float64",
        )
    signature = FUNCTIONS[ours]
    if len(args) != signature.arity:
        raise ExpressionError(
            where, "wrong number of arguments", got=len(args), expected=signature.arity
        )
    kinds = [element] * (signature.arity - 1) + [signature.last or element]
    values = (cast(as_expr(arg, kind), kind) for arg, kind in zip(args, kinds, strict=True))
    return Call(ours, tuple(values), element)


def _call(name: Any, convention: CallConvention, args: Sequence[Any]) -> ExternCall:
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise ExpressionError("call from outside", "not the name of a function", got=repr(name))
    checked_label(name, "call from outside")
    where = f"call {name}"
    return ExternCall(name, convention, tuple(_argument(arg, convention, where) for arg in args))


def _argument(value: Any, convention: CallConvention, where: str) -> Expr:
    buffer = value if isinstance(value, Buffer) else getattr(value, "buffer", None)
    if isinstance(value, Region):
        return value
    if isinstance(buffer, Buffer) and not isinstance(value, Expr):
        if convention == "c":
            raise ExpressionError(
                where, f"no access is declared for {buffer.name}",
                hint=f"pass {buffer.name}.access_ptr('r'), 'w' or 'rw'",
            )  # fmt: skip
        return buffer.region([0] * len(buffer.shape), buffer.shape)
    if isinstance(value, str):
        raise ExpressionError(
            where, "a string cannot be passed", got=repr(value),
            hint="register a function that contains the string",
        )  # fmt: skip
    if type(value) is not bool and isinstance(value, numbers.Integral):
        return as_index(value, where)
    expr = as_expr(value)
    if dtypes.lanes(expr.dtype) > 1:
        raise ExpressionError(where, "a vector cannot be passed", got=f"{expr} ({expr.dtype})")
    return expr
