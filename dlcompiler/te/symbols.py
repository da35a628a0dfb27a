"""Symbols (`te.var`): extents and numbers that get their values when the program is called."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from dlcompiler import dtypes
from dlcompiler.errors import CallError, ExpressionError
from dlcompiler.ir import (
    Allocate,
    Axis,
    Buffer,
    Compare,
    Const,
    Expr,
    Extent,
    Reduce,
    TensorLoad,
    Var,
    const,
    extent_value,
    free_vars,
    index_const,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.runtime.arguments import as_checked_number
from dlcompiler.te.bodies import rewrite_bodies, with_buffers
from dlcompiler.te.definition import checked_name
from dlcompiler.te.tensor import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    post_order,
)

Resize: TypeAlias = Callable[[Extent, str], int]
_names = (f"n{number or ''}" for number in itertools.count())


INDICES = ("index", "int32", "int64")
"""Dtypes of `var` that can be extents."""
NUMBERS = ("bool", "float32", "float64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
"""Dtypes of `var` that are data."""


def var(name: str | None = None, dtype: Any = "int32") -> Var:
    """Declare a symbol: an extent or a number that is known when the kernel is called.

    Parameters
    ----------
    name : str, optional
        By default ``n``, ``n1``, …
    dtype : str
        ``int32`` and ``int64`` make an index, which can be an extent of a tensor. If it is an
        extent of an input, its value is inferred from the array's shape; otherwise the caller gives
        it. Narrower and unsigned integers, ``float32``, ``float64`` and ``bool`` make a number to
        compute with, which wraps or rounds as its dtype does.

    Returns
    -------
    Var

    Raises
    ------
    ExpressionError
        If the name is not valid, or no number of this dtype can be passed to a kernel.

    Examples
    --------
    >>> from dlcompiler import te
    >>> n = te.var("n")
    >>> A = te.placeholder((n,), name="A")
    >>> te.compute((n,), lambda i: A[i] + 1.0, name="B")
    Tensor(B: float32[n])
    """
    name = checked_name(name, "te.var") if name is not None else next(_names)
    where = f"te.var {name}"
    kind = dtypes.as_dtype(dtype)
    if kind in INDICES:
        return Var(name, "index", is_symbol=True)
    if kind not in NUMBERS:
        raise ExpressionError(
            where, "a number of this dtype cannot be passed to a kernel", got=kind,
            expected="an integer type, bool, float32 or float64",
        )  # fmt: skip
    return Var(name, kind, is_symbol=True)


def size_var(name: str | None = None, dtype: Any = "int32") -> Var:
    """Declare a symbol for an extent, which is not negative.

    Parameters
    ----------
    name, dtype
        As for `var`; the dtype is an integer type.

    Returns
    -------
    Var
    """
    if not dtypes.is_int(kind := dtypes.as_dtype(dtype)):
        raise ExpressionError("te.size_var", "an extent is an integer", got=kind)
    return var(name, "index")


def symbols_of(outputs: Iterable[Tensor]) -> tuple[Var, ...]:
    """Return the symbols in the expressions of tensors, in order of appearance.

    Parameters
    ----------
    outputs : iterable of Tensor
        The tensors; those that they depend on are included.

    Returns
    -------
    tuple of Var

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((te.var("n"), te.var("m")), name="A")
    >>> te.symbols_of([te.compute((4,), lambda i: A[i, 0], name="B")])
    (Var(n), Var(m))
    """
    found: dict[Var, None] = {}
    for op in post_order(outputs):
        for expr in _expressions(op):
            found.update(dict.fromkeys(sorted(_symbols_in(expr), key=lambda var: var.name)))
    return tuple(found)


def _symbols_in(expr: Expr) -> list[Var]:
    return [var for var in free_vars(expr) if var.is_symbol]


def _expressions(op: Operation) -> list[Expr]:
    """Return every expression in the shape, the axes and the bodies of an operation."""
    extents = [*op.outputs[0].shape, *(axis.extent for axis in op.reduce_axis)]
    if isinstance(op, ExternOp):
        extents += [extent for tensor in op.outputs for extent in tensor.shape]
        extents += [node for node in walk(op.body) if isinstance(node, Var) and node.is_symbol]
    bodies = op.bodies if isinstance(op, ComputeOp) else ()
    return [*(extent for extent in extents if isinstance(extent, Expr)), *bodies]


def bind_symbols(
    shapes: Mapping[Tensor, Sequence[int]], numbers_given: Mapping[Var, Any], where: str
) -> dict[Var, Any]:
    """Infer the values of symbols from the shapes of arrays and from numbers that are given.

    Parameters
    ----------
    shapes : mapping of Tensor to sequence of int
        The shape of the array for each input.
    numbers_given : mapping of Var to number
        Values of symbols that the caller gives.
    where : str
        Names the operation in errors.

    Returns
    -------
    dict of Var to number
        The symbols whose values are known. Only a dimension that is a symbol by itself defines it;
        a formula such as ``n + 1`` does not.

    Raises
    ------
    CallError
        If two dimensions, or a dimension and a number that is given, disagree about a symbol.
    """
    values = {
        symbol: as_checked_number(f"{where}: {symbol.name}", symbol.dtype, number)
        for symbol, number in numbers_given.items()
    }
    sources = dict.fromkeys(values, "the number given")
    for tensor, shape in shapes.items():
        for n, (extent, size) in enumerate(zip(tensor.shape, shape, strict=False)):
            if not isinstance(extent, Var):
                continue
            if values.setdefault(extent, size) != size:
                raise CallError(
                    where, f"{extent.name} is both {values[extent]} and {size}",
                    got=f"{size} in dimension {n} of {tensor.name}",
                    expected=f"{values[extent]}, as {sources[extent]} says",
                )  # fmt: skip
            sources.setdefault(extent, f"dimension {n} of {tensor.name}")
    return values


def specialize(outputs: Sequence[Tensor], values: Mapping[Var, Any]) -> dict[Tensor, Tensor]:
    """Rebuild the expressions of tensors with numbers in place of symbols.

    Parameters
    ----------
    outputs : sequence of Tensor
        The tensors to rebuild.
    values : mapping of Var to number
        A number for each of their symbols.

    Returns
    -------
    dict of Tensor to Tensor
        From each tensor that the outputs depend on, and the outputs, to the new one.

    Raises
    ------
    CallError
        If a symbol has no value, or an extent becomes negative or too large.

    Examples
    --------
    >>> from dlcompiler import te
    >>> n = te.var("n")
    >>> B = te.compute((n,), lambda i: i * 2, name="B")
    >>> te.specialize([B], {n: 5})[B]
    Tensor(B: int32[5])
    """
    missing = [symbol.name for symbol in symbols_of(outputs) if symbol not in values]
    if missing:
        raise CallError(
            "specialize", f"symbol {missing[0]} cannot be inferred from the arguments",
            because="no input has it as an extent by itself",
            hint=f"give it a number: {{{missing[0]}: …}}",
        )  # fmt: skip
    literals = {symbol: const(value, symbol.dtype) for symbol, value in values.items()}
    return rebuild(outputs, lambda extent, name: _extent(extent, values, name), literals)


def rebuild(
    outputs: Sequence[Tensor],
    resize: Resize,
    literals: Mapping[Var, Expr] | None = None,
    boundary: Callable[[int], int] | None = None,
) -> dict[Tensor, Tensor]:
    """Rebuild the expressions of tensors with other extents.

    Parameters
    ----------
    outputs
        The tensors to rebuild.
    resize
        Gets an extent and the name of its tensor or axis, and returns the new extent.
    literals
        The replacement of each symbol.
    boundary
        Gets a number with which an index is compared, and returns the new number.

    Returns
    -------
    dict of Tensor to Tensor
        From each tensor that the outputs depend on, and the outputs, to the new one. The new
        expressions may read outside their tensors: whether they do depends on `resize`.
    """
    known: dict[Tensor, Tensor] = {}
    order = post_order(outputs)
    scans = [op for op in order if isinstance(op, ScanOp)]
    # `post_order` leaves the states out, but the updates that read them are rebuilt here.
    for op in (*(state.op for scan in scans for state in scan.states), *order):
        new = _rebuilt(op, resize, literals or {}, boundary, known)
        known.update(zip(op.outputs, new.outputs, strict=True))
    return known


def _rebuilt(
    op: Operation,
    resize: Resize,
    literals: Mapping[Var, Expr],
    boundary: Callable[[int], int] | None,
    known: Mapping[Tensor, Tensor],
) -> Operation:
    if isinstance(op, PlaceholderOp):
        tensor = op.output(0)
        shape = tuple(resize(extent, tensor.name) for extent in tensor.shape)
        return PlaceholderOp(op.name, shape, tensor.dtype)
    if isinstance(op, ScanOp):
        parts = (op.inits, op.updates, op.states)
        inits, updates, states = (tuple(known[tensor] for tensor in part) for part in parts)
        return ScanOp(op.name, inits, updates, states)
    if isinstance(op, ExternOp):
        return _extern(op, resize, literals, known)
    return _compute(op, resize, literals, boundary, known)


def _extern(
    op: ExternOp, resize: Resize, literals: Mapping[Var, Expr], known: Mapping[Tensor, Tensor]
) -> ExternOp:
    """Return an extern operation with resized buffers; constants in its statements stay."""

    def resized(buffer: Buffer) -> Buffer:
        shape = tuple(resize(extent, buffer.name) for extent in buffer.shape)
        return replace(buffer, shape=shape, strides=())

    own = [node.buffer for node in walk(op.body) if isinstance(node, Allocate)]
    buffers = {buffer: resized(buffer) for buffer in (*op.in_buffers, *op.out_buffers, *own)}
    return ExternOp(
        op.name,
        tuple(known[tensor] for tensor in op.inputs),
        tuple(buffers[buffer] for buffer in op.in_buffers),
        tuple(buffers[buffer] for buffer in op.out_buffers),
        substitute(with_buffers(op.body, buffers), literals),
        op.tag,
        is_complete=op.is_complete,
    )


def _compute(
    op: ComputeOp,
    resize: Resize,
    literals: Mapping[Var, Expr],
    boundary: Callable[[int], int] | None,
    known: Mapping[Tensor, Tensor],
) -> ComputeOp:
    def resized(axis: Axis) -> Axis:
        extent = resize(axis.extent, f"axis {axis.name} of {op.name}")
        return Axis(axis.name, extent, axis.kind, start=axis.start)

    axes = {axis: resized(axis) for axis in (*op.axis, *op.reduce_axis)}
    replaced: dict[Var, Expr] = {axis.var: new.var for axis, new in axes.items()}
    replaced.update(literals)

    def rule(node: Node) -> Node:
        match node:
            case Var():
                return replaced.get(node, node)
            case TensorLoad(tensor, indices) if isinstance(tensor, Tensor):
                return TensorLoad(known[tensor], indices)
            case Compare(compare, a, b) if boundary is not None and a.dtype == "index":
                return Compare(compare, _moved(a, boundary), _moved(b, boundary))
            case Reduce():
                return replace(node, axes=tuple(axes[axis] for axis in node.axes))
        return node

    return ComputeOp(
        op.name, tuple(axes[axis] for axis in op.axis), rewrite_bodies(op.bodies, rule), op.tag
    )


def _moved(expr: Expr, boundary: Callable[[int], int]) -> Expr:
    return index_const(boundary(int(expr.value))) if isinstance(expr, Const) else expr


def _extent(extent: int | Expr, values: Mapping[Var, Any], name: str) -> int:
    value = extent_value(extent, values)
    if value < 0:
        raise CallError(
            "specialize", f"an extent of {name} is negative", got=f"{extent} = {value}",
            expected="at least 0",
        )  # fmt: skip
    if value > 2**48:
        raise CallError("specialize", f"an extent of {name} is too large", got=value)
    return value
