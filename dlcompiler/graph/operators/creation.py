"""Tensors that are made from numbers, or from the shape of another tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import Dimension, TensorType, TupleType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    boolean,
    dtype,
    dtype_or_same,
    index_dtype,
    integer,
    lengths,
    number,
    one_of,
    optional,
    positive,
)
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.layouts import same_layouts
from dlcompiler.graph.operators.relations import axis_of, expect, index_type, same_dtype, static
from dlcompiler.graph.operators.values import converted, literal, rounded
from dlcompiler.ops import elementwise, indexing
from dlcompiler.ops.helpers import INJECTIVE, tensor

# -- tensors of one value -------------------------------------------------------------------------


def _filled(call: CallTypes) -> TensorType:
    kind = expect(call, 0, (), call.tensor(0).dtype) if call.args else None
    chosen = call.attrs["dtype"] or (kind.dtype if kind else "float32")
    return TensorType(call.attrs["shape"], chosen)


def _like(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    if len(call.args) > 1:
        expect(call, 1, (), kind.dtype)
    return kind


def _evaluate_constant(value: int) -> Callable[..., Array]:
    return lambda call, *_: rounded(np.full(static(call.tensor), value), call.tensor)


def _evaluate_full(call: Result, value: Array) -> Array:
    found = converted(value, call.tensor.dtype)
    return rounded(np.broadcast_to(found, static(call.tensor)).copy(), call.tensor)


def _define_constant(value: int) -> Callable[..., te.Tensor]:
    return lambda call, *_: elementwise.full(static(call.tensor), call.tensor.dtype, value)


def _define_full(call: Result, value: te.Tensor) -> te.Tensor:
    found, wanted = value[()], call.tensor.dtype
    found = found if value.dtype == wanted else found.astype(wanted)
    return elementwise.full(static(call.tensor), wanted, found)


_SHAPE = Attribute("shape", lengths, doc="extents of the result")
_DTYPE = Attribute("dtype", dtype, "float32", "dtype of the result")


def _constant(name: str, value: int) -> tuple[GraphOperator, GraphOperator]:
    return (
        GraphOperator(
            name, (), _filled, _evaluate_constant(value), Pattern.ELEMENTWISE,
            _define_constant(value), (_SHAPE, _DTYPE), f"A tensor of {name}.",
        ),
        GraphOperator(
            f"{name}_like", ("data",), _like, _evaluate_constant(value), Pattern.ELEMENTWISE,
            _define_constant(value), doc=f"A tensor of {name}, of the type of the data.",
            layouts=same_layouts(),
        ),
    )  # fmt: skip


_FULL = (
    *_constant("zeros", 0),
    *_constant("ones", 1),
    GraphOperator(
        "full", ("fill_value",), _filled, _evaluate_full, Pattern.ELEMENTWISE, _define_full,
        (_SHAPE, Attribute("dtype", dtype_or_same, "", "dtype of the result")),
        "A tensor of one value.",
    ),
    GraphOperator(
        "full_like", ("data", "fill_value"), _like, lambda call, _, v: _evaluate_full(call, v),
        Pattern.ELEMENTWISE, lambda call, _, v: _define_full(call, v),
        doc="A tensor of one value, of the type of the data.",
    ),
)  # fmt: skip


# -- sequences and shapes -------------------------------------------------------------------------


def _range(call: CallTypes | Result) -> tuple[Any, Any]:
    """Return the first number of a sequence, and the step; those of integers are integers."""
    attrs = call.attrs
    first, step = (0 if attrs["stop"] is None else attrs["start"]), attrs["step"]
    if dtypes.is_float(attrs["dtype"]) or not _are_whole(first, step):
        return first, step
    return int(first), int(step)


def _are_whole(*values: float) -> bool:
    return all(float(value).is_integer() for value in values)


def _arange_type(call: CallTypes) -> TensorType:
    attrs = call.attrs
    first, step = _range(call)
    last = attrs["start"] if attrs["stop"] is None else attrs["stop"]
    if step == 0:
        call.fail("the step is 0", got="step=0")
    if not all(map(math.isfinite, (first, step, last))):
        call.fail("the sequence has no end", got=f"from {first} to {last} by {step}")
    if isinstance(first, int) and isinstance(step, int):
        count = math.ceil((Fraction(last) - first) / step)
    elif not dtypes.is_float(attrs["dtype"]):
        call.fail(
            "the start or the step of integers is no integer", got=f"from {first} by {step}",
            hint=f"cast(arange(…, dtype='float64'), dtype='{attrs['dtype']}') rounds each number",
        )  # fmt: skip
    else:
        length = (last - first) / step
        if not math.isfinite(length):
            call.fail("the sequence has no end", got=f"from {first} to {last} by {step}")
        count = math.ceil(length)
    return TensorType((max(count, 0),), attrs["dtype"])


def _arange(call: Result) -> Array:
    first, step = _range(call)
    (count,) = static(call.tensor)
    if isinstance(first, int) and isinstance(step, int):
        return rounded(np.arange(count) * step + first, call.tensor)
    return converted(np.arange(count) * float(step) + float(first), call.tensor.dtype)


def _define_arange(call: Result) -> te.Tensor:
    first, step = _range(call)
    kind = call.tensor.dtype
    is_whole = isinstance(first, int) and isinstance(step, int)
    own = kind if dtypes.is_float(kind) else "int64" if is_whole else "float64"

    def const(value: Any) -> Any:
        return te.const(value, own) if own == "int64" else literal(value, own)

    def element(i: Any) -> Any:
        value = i.astype(own) * const(step) + const(first)
        return value if own == kind else value.astype(kind)

    return tensor(static(call.tensor), element, "T_arange", INJECTIVE)


def _shape_type(call: CallTypes) -> TensorType:
    return TensorType((call.tensor(0).rank,), call.attrs["dtype"])


def _shape_of(call: Result, x: Array) -> Array:
    return rounded(np.array(x.shape, np.int64), call.tensor)


def _define_shape_of(call: Result, x: te.Tensor) -> te.Tensor:
    kind = call.tensor.dtype

    def element(i: Any) -> Any:
        value: Any = te.const(0, kind)
        for n, extent in enumerate(x.static_shape):
            value = te.select(i == n, te.const(extent, kind), value)
        return value

    return tensor((x.ndim,), element, "T_shape", INJECTIVE)


def _size_type(call: CallTypes) -> TensorType:
    call.tensor(0)
    return TensorType((), call.attrs["dtype"])


_COUNT_DTYPE = Attribute("dtype", index_dtype, "int32", "dtype of the result")

_SEQUENCES = (
    GraphOperator(
        "arange", (), _arange_type, _arange, Pattern.INJECTIVE, _define_arange,
        (Attribute("start", number, doc="first number; if it is the only one, where to stop"),
         Attribute("stop", optional(number), None, "the sequence stops before it"),
         Attribute("step", number, 1, "distance of the numbers"), _DTYPE),
        "A sequence of numbers at equal distances.",
    ),
    GraphOperator(
        "shape_of", ("data",), _shape_type, _shape_of, Pattern.INJECTIVE, _define_shape_of,
        (_COUNT_DTYPE,), "The extents of the data.",
    ),
    GraphOperator(
        "ndarray_size", ("data",), _size_type,
        lambda call, x: rounded(np.asarray(x.size), call.tensor), Pattern.INJECTIVE,
        lambda call, x: elementwise.full((), call.tensor.dtype, math.prod(x.static_shape)),
        (_COUNT_DTYPE,), "The number of elements of the data.",
    ),
)  # fmt: skip


# -- one_hot, trilu, meshgrid ---------------------------------------------------------------------


def _one_hot_type(call: CallTypes) -> TensorType:
    indices = index_type(call, 0)
    kinds = [expect(call, i, (), call.tensor(i).dtype) for i in (1, 2)]
    same_dtype(call, kinds)
    axis = axis_of(call, call.attrs["axis"], indices.rank + 1)
    shape = (*indices.shape[:axis], call.attrs["depth"], *indices.shape[axis:])
    return TensorType(shape, call.attrs["dtype"] or kinds[0].dtype)


def _one_hot(call: Result, indices: Array, on: Array, off: Array) -> Array:
    axis = call.attrs["axis"] % call.tensor.rank
    shape = [1] * call.tensor.rank
    shape[axis] = call.attrs["depth"]
    places = np.arange(call.attrs["depth"]).reshape(shape)
    chosen = np.where(np.expand_dims(indices.astype(np.int64), axis) == places, on, off)
    return rounded(converted(chosen, call.tensor.dtype), call.tensor)


def _define_one_hot(call: Result, indices: te.Tensor, on: te.Tensor, off: te.Tensor) -> te.Tensor:
    axis = call.attrs["axis"] % call.tensor.rank
    return indexing.one_hot(indices, on, off, call.attrs["depth"], axis, call.tensor.dtype)


def _trilu_type(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    if kind.rank < 2:
        call.fail("argument data is not a matrix")
    if len(call.args) > 1:
        expect(call, 1, (), index_type(call, 1).dtype)
    return kind


def _trilu(call: Result, x: Array, k: Array | None = None) -> Array:
    rows, columns = x.shape[-2:]
    diagonal = 0 if k is None else min(max(int(k), -rows), columns)
    above = np.arange(columns)[None] - np.arange(rows)[:, None] - diagonal
    kept = above >= 0 if call.attrs["upper"] else above <= 0
    return np.where(kept, x, np.zeros((), x.dtype))


def _define_trilu(call: Result, x: te.Tensor, k: te.Tensor | None = None) -> te.Tensor:
    rows, columns = x.static_shape[-2:]

    def element(*i: Any) -> Any:
        diagonal = 0 if k is None else indexing.clamped(k[()], -rows, columns)
        above = i[-1] - i[-2] - diagonal
        kept = above >= 0 if call.attrs["upper"] else above <= 0
        return te.select(kept, x[i], te.const(0, x.dtype))

    return tensor(x.shape, element, "T_trilu", INJECTIVE)


def _grid_type(call: CallTypes) -> TupleType:
    kinds = call.tensors(0)
    if not kinds:
        call.fail("no tensor is given")
    if any(kind.rank > 1 for kind in kinds):
        call.fail("a tensor has more than one dimension")
    shape: list[Dimension] = [kind.shape[0] if kind.rank else 1 for kind in kinds]
    if call.attrs["indexing"] == "xy":
        shape[:2] = reversed(shape[:2])
    return TupleType(tuple(TensorType(tuple(shape), kind.dtype) for kind in kinds))


def _along(call: Result, n: int) -> int:
    """Return the dimension of a grid along which tensor `n` lies."""
    is_turned = call.attrs["indexing"] == "xy" and n < 2 and _count(call) > 1
    return 1 - n if is_turned else n


def _count(call: Result) -> int:
    kind = call.inputs[0]
    assert isinstance(kind, TupleType)
    return len(kind.fields)


def _meshgrid(call: Result, parts: Sequence[Array]) -> tuple[Array, ...]:
    made = np.meshgrid(*parts, indexing=call.attrs["indexing"])
    return tuple(np.ascontiguousarray(part) for part in made)


def _define_meshgrid(call: Result, parts: Sequence[te.Tensor]) -> tuple[te.Tensor, ...]:
    kind = call.type
    assert isinstance(kind, TupleType)
    first = kind.fields[0]
    assert isinstance(first, TensorType)

    def one(n: int, part: te.Tensor) -> te.Tensor:
        at = _along(call, n)
        return tensor(
            static(first), lambda *i: part[i[at]] if part.ndim else part[()], "T_meshgrid",
            INJECTIVE,
        )  # fmt: skip

    return tuple(one(n, part) for n, part in enumerate(parts))


_OTHERS = (
    GraphOperator(
        "one_hot", ("indices", "on_value", "off_value"), _one_hot_type, _one_hot, Pattern.ANCHOR,
        _define_one_hot,
        (Attribute("depth", positive, doc="extent of the new dimension [1]"),
         Attribute("axis", integer, -1, "place of the new dimension"),
         Attribute("dtype", dtype_or_same, "", "dtype of the result")),
        "on_value where the position along a new dimension is the index, else off_value.",
    ),
    GraphOperator(
        "trilu", ("data", "k?"), _trilu_type, _trilu, Pattern.INJECTIVE, _define_trilu,
        (Attribute("upper", boolean, True, "keep what is above the diagonal, else below"),),
        "Triangles of matrices: the elements on diagonal k and beside it; others are 0.",
    ),
    GraphOperator(
        "meshgrid", ("data",), _grid_type, _meshgrid, Pattern.INJECTIVE, _define_meshgrid,
        (Attribute("indexing", one_of("ij", "xy"), "ij", "order of the first two dimensions"),),
        "A grid from one tensor for each of its dimensions.",
    ),
)  # fmt: skip

TABLE = (*_FULL, *_SEQUENCES, *_OTHERS)
"""The operators of this module."""
