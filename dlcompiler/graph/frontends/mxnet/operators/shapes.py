"""Operators that make, shape, cut and join tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dlcompiler.graph.frontends.mxnet.node import MOST_NUMBERS, Converter, MxnetNode
from dlcompiler.graph.frontends.origin import constant_of, is_static
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array


def _flatten(node: MxnetNode) -> Expr:
    return node.call("nn.batch_flatten", node.input(0))


def _reshape(node: MxnetNode) -> Expr:
    x, codes = node.input(0), node.integers("shape")
    is_turned, keeps_first = node.flag("reverse"), node.flag("keep_highest")
    old = node.integers("target_shape")
    if not codes:  # before version 0.9: 0 is what -1 is now
        codes = tuple(n or -1 for n in old)
        codes = (0, *codes[1:]) if keeps_first else codes
    if min(codes, default=0) >= -1 and not is_turned and not is_static(node.type(x)):
        return node.call("reshape", x, newshape=codes)
    shape = node.shape(x)
    if is_turned:
        found = _coded_shape(node, shape[::-1], codes[::-1])[::-1]
    else:
        found = _coded_shape(node, shape, codes)
    return node.reshape(x, _completed(node, found, math.prod(shape)))


def _coded_shape(node: MxnetNode, shape: Sequence[int], codes: Sequence[int]) -> list[int]:
    """Return the extents that the codes of `Reshape` stand for; -1 for one to compute.

    0 copies an extent, -2 all that are left, -3 joins two, and -4 divides one into the next two.
    """
    left, made, rest = list(shape), [], iter(enumerate(codes))

    def next_extent() -> int:
        if not left:
            node.fail("its shape has more codes than the data have dimensions", got=repr(codes))
        return left.pop(0)

    for place, code in rest:
        match code:
            case 0:
                made.append(next_extent())
            case -2:
                made += left
                left = []
            case -3:
                made.append(next_extent() * next_extent())
            case -4:
                made += _divided(node, next_extent(), (n for _, n in rest))
            case -1 if len(made) != place:  # MXNet computes another extent then
                node.fail("-1 follows codes of several extents", got=repr(codes)[:100])
            case _ if code < -4:
                node.fail("its shape has an unknown code", got=repr(codes)[:100])
            case _:
                made.append(code)
                left = left[1:]
    return made


def _divided(node: MxnetNode, extent: int, rest: Iterator[int]) -> tuple[int, int]:
    a, b = next(rest, 0), next(rest, 0)
    if a == -1 and b > 0:
        a = extent // b
    elif b == -1 and a > 0:
        b = extent // a
    if min(a, b) < 0 or a * b != extent:
        node.fail("an extent is not divided so", got=f"{extent} into {a} times {b}")
    return a, b


def _completed(node: MxnetNode, shape: list[int], elements: int) -> list[int]:
    """Return a shape with the one extent that is left open."""
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known and elements % known == 0:
        shape = [elements // known if n == -1 else n for n in shape]
    if -1 in shape or math.prod(shape) != elements:
        node.fail("its shape does not fit the data", got=repr(shape)[:100],
                  expected=f"{elements} elements")  # fmt: skip
    return shape


def _reshape_like(node: MxnetNode) -> Expr:
    for name in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end"):
        if node.text(name) is not None:
            node.fail("it reshapes some dimensions only")
    return node.reshape(node.input(0), node.shape(node.input(1)))


def _transpose(node: MxnetNode) -> Expr:
    axes = node.integers("axes")
    return node.call("transpose", node.input(0), axes=axes or None)


def _swap(node: MxnetNode) -> Expr:
    rank = node.rank(node.input(0))
    a, b = node.axis(rank, 0, "dim1"), node.axis(rank, 0, "dim2")
    axes = list(range(rank))
    axes[a], axes[b] = b, a
    return node.call("transpose", node.input(0), axes=tuple(axes))


def _expand_dims(node: MxnetNode) -> Expr:
    x = node.input(0)
    return node.call("expand_dims", x, axis=node.axis(node.rank(x) + 1), num_newaxis=1)


def _squeeze(node: MxnetNode) -> Expr:
    x = node.input(0)
    made = node.call("squeeze", x, axis=node.integers("axis") or None)
    return made if node.rank(made) else node.reshape(x, (1,))


def _concat(node: MxnetNode) -> Expr:
    axis = node.axis(node.rank(node.input(0)), 1, "dim")
    return node.call("concatenate", node.tuple(node.inputs), axis=axis)


def _stack(node: MxnetNode) -> Expr:
    axis = node.axis(node.rank(node.input(0)) + 1, 0)
    return node.call("stack", node.tuple(node.inputs), axis=axis)


def _slice_channel(node: MxnetNode) -> list[Expr]:
    axis, count = node.axis(node.rank(node.input(0)), 1), node.integer("num_outputs")
    return _parts(node, axis, _equal(node, axis, count))


def _split_v2(node: MxnetNode) -> list[Expr]:
    axis, count = node.axis(node.rank(node.input(0)), 1), node.integer("sections", 0)
    first = list(node.integers("indices"))
    if count:
        first = _equal(node, axis, count)
    return _parts(node, axis, first if first[:1] == [0] else [0, *first])


def _equal(node: MxnetNode, axis: int, count: int) -> list[int]:
    """Return where equal parts begin."""
    extent = node.shape(node.input(0))[axis]
    if count < 1 or not extent or extent % count:
        node.fail("no such number of parts", got=f"{count} parts of {extent}")
    return list(range(0, extent, extent // count))


def _parts(node: MxnetNode, axis: int, first: list[int]) -> list[Expr]:
    """Return the parts of the data that begin at these places."""
    x, shape = node.input(0), node.shape(node.input(0))
    is_squeezed = node.flag("squeeze_axis")
    found: list[Expr] = [x]
    if len(first) > 1:
        parts = node.call("split", x, indices_or_sections=tuple(first[1:]), axis=axis)
        found = [parts[n] for n in range(len(first))]
    if not is_squeezed:
        return found
    return [node.reshape(part, (*shape[:axis], *shape[axis + 1 :])) for part in found]


def _slice(node: MxnetNode) -> Expr:
    begin, end, steps = node.bounds("begin"), node.bounds("end"), node.bounds("step")
    steps = steps or (None,) * len(begin)
    if not len(begin) == len(end) == len(steps) <= node.rank(node.input(0)) or 0 in steps:
        node.fail("begin, end and step do not fit the data", got=f"{begin}, {end}, {steps}"[:100])
    return _cut(node, dict(enumerate(map(slice, begin, end, steps))))


def _slice_axis(node: MxnetNode) -> Expr:
    (end,) = node.bounds("end") or (None,)
    return _cut(node, {node.axis(node.rank(node.input(0))): slice(node.integer("begin"), end)})


def _slice_like(node: MxnetNode) -> Expr:
    wanted = node.shape(node.input(1))
    axes = node.integers("axes", range(len(wanted)))
    rank = node.rank(node.input(0))
    if any(not -rank <= axis < rank for axis in axes):
        node.fail("there is no such axis", got=f"axes {axes} of {rank} dimensions")
    return _cut(node, {axis % rank: slice(0, wanted[axis % rank]) for axis in axes})


def _cut(node: MxnetNode, parts: dict[int, slice]) -> Expr:
    """Return a part of the data: for each axis as Python cuts lists."""
    x = node.input(0)
    for axis, part in parts.items():
        extent = node.shape(x)[axis]
        places = range(*part.indices(extent))
        if len(places) == extent and places.step > 0:
            continue
        if places.step < 0:
            node.limited((len(places),), MOST_NUMBERS)
            x = node.call("take", x, constant_of(np.asarray(places, "int64")), axis=axis)
            continue
        x = node.call("strided_slice", x, begin=(places.start,), strides=(places.step,),
                      end=(max(places.stop, places.start),), axes=(axis,))  # fmt: skip
    return x


def _pad(node: MxnetNode) -> Expr:
    x, flat = node.input(0), node.integers("pad_width")
    mode = node.choice("mode", "constant", "edge", "reflect")
    value = node.number("constant_value", 0.0)
    if len(flat) != 2 * node.rank(x) or min(flat) < 0:
        node.fail("pad_width does not fit the data", got=repr(flat)[:100])
    width = tuple(zip(flat[::2], flat[1::2], strict=True))
    if mode == "constant":
        return node.call("nn.pad", x, node.scalar(value, x), pad_width=width)
    return node.call("nn.pad", x, pad_width=width, pad_mode=mode)


def _tile(node: MxnetNode) -> Expr:
    return node.call("tile", node.input(0), reps=node.integers("reps"))


def _repeat(node: MxnetNode) -> Expr:
    x, repeats, axis = node.input(0), node.integer("repeats"), node.text("axis")
    if axis is None:
        x = node.reshape(x, (math.prod(node.shape(x)),))
    return node.call("repeat", x, repeats=repeats, axis=node.axis(node.rank(x), 0))


def _reverse(node: MxnetNode) -> Expr:
    x = node.input(0)
    for axis in node.integers("axis"):
        x = node.call("reverse", x, axis=axis)
    return x


def _broadcast_to(node: MxnetNode) -> Expr:
    own, shape = node.shape(node.input(0)), node.integers("shape")
    if len(shape) != len(own):
        node.fail("its shape does not fit the data", got=repr(shape)[:100], expected=repr(own))
    return node.broadcast(node.input(0), [b or a for a, b in zip(own, shape, strict=True)])


def _broadcast_axis(node: MxnetNode) -> Expr:
    shape = list(node.shape(node.input(0)))
    for axis, size in zip(node.integers("axis"), node.integers("size"), strict=True):
        shape[axis] = size
    return node.broadcast(node.input(0), node.limited(shape))


def _broadcast_like(node: MxnetNode) -> Expr:
    shape, wanted = list(node.shape(node.input(0))), node.shape(node.input(1))
    left, right = node.integers("lhs_axes"), node.integers("rhs_axes")
    if not left and not right:
        return node.broadcast(node.input(0), wanted)
    for a, b in zip(left, right, strict=True):
        shape[a] = wanted[b]
    return node.broadcast(node.input(0), shape)


def _filled(value: float | None = None) -> Converter:
    """Return the converter of a tensor of one number; None: of the attribute ``value``."""

    def convert(node: MxnetNode) -> Expr:
        shape, dtype = node.limited(node.integers("shape")), node.dtype_attr("float32")
        node.text("ctx")
        number = node.number("value") if value is None else value
        return node.call("full", node.scalar(number, dtype), shape=shape, dtype=dtype)

    return convert


def _arange(node: MxnetNode) -> Expr:
    start, step = node.number("start", 0.0), node.number("step", 1.0)
    has_stop, repeat = node.text("stop") is not None, node.integer("repeat", 1)
    stop, dtype = node.number("stop", 0.0), node.dtype_attr("float32")
    node.text("ctx")
    if node.flag("infer_range") or not has_stop:
        node.fail("its length comes from what reads it")
    if not step or not 0 <= (count := math.ceil((stop - start) / step)) * repeat <= MOST_NUMBERS:
        node.fail("no such range", got=f"from {start} to {stop} by {step}")
    return node.numbers(_steps(start, step, np.arange(count).repeat(repeat)), dtype)


def _arange_like(node: MxnetNode) -> Expr:
    shape, axis = node.shape(node.input(0)), node.text("axis")
    start, step = node.number("start", 0.0), node.number("step", 1.0)
    repeat = node.integer("repeat", 1)
    node.text("ctx")
    if axis is not None:
        shape = (shape[node.axis(len(shape))],)
    count = math.prod(shape)
    if repeat < 1 or count > MOST_NUMBERS:
        node.fail("no such range", got=f"{count} numbers, each {repeat} times")
    numbers = _steps(start, step, np.arange(count) // repeat)
    return node.numbers(numbers.reshape(shape), node.dtype(node.input(0)))


def _steps(start: float, step: float, places: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(start + places * step)


def _eye(node: MxnetNode) -> Expr:
    rows, columns = node.integer("N"), node.integer("M", 0)
    node.text("ctx")
    rows, columns = node.limited((rows, columns or rows), MOST_NUMBERS)
    ones = np.eye(rows, columns, node.integer("k", 0))
    return node.numbers(ones, node.dtype_attr("float32"))


def _cumsum(node: MxnetNode) -> Expr:
    x, axis = node.input(0), node.text("axis")
    dtype = node.dtype_attr(node.dtype(x))
    if axis is None:
        x = node.reshape(x, (math.prod(node.shape(x)),))
    return node.call("cumsum", node.cast(x, dtype), axis=node.axis(node.rank(x), 0))


def _shape_array(node: MxnetNode) -> Expr:
    return constant_of(np.asarray(node.shape(node.input(0)), "int64"))


def _size_array(node: MxnetNode) -> Expr:
    return constant_of(np.asarray([math.prod(node.shape(node.input(0)))], "int64"))


TABLE: dict[str, Converter] = {
    "Flatten": _flatten, "flatten": _flatten, "Reshape": _reshape, "reshape": _reshape,
    "reshape_like": _reshape_like, "transpose": _transpose, "SwapAxis": _swap, "swapaxes": _swap,
    "expand_dims": _expand_dims, "squeeze": _squeeze, "Concat": _concat, "concat": _concat,
    "_rnn_param_concat": _concat, "stack": _stack, "SliceChannel": _slice_channel,
    "split": _slice_channel, "_split_v2": _split_v2, "slice": _slice, "crop": _slice,
    "slice_axis": _slice_axis, "slice_like": _slice_like, "Pad": _pad, "pad": _pad, "tile": _tile,
    "repeat": _repeat, "reverse": _reverse, "flip": _reverse, "broadcast_to": _broadcast_to,
    "broadcast_axis": _broadcast_axis, "broadcast_axes": _broadcast_axis,
    "broadcast_like": _broadcast_like, "_zeros": _filled(0), "_ones": _filled(1),
    "_full": _filled(), "_arange": _arange, "_contrib_arange_like": _arange_like,
    "_eye": _eye, "cumsum": _cumsum, "_np_cumsum": _cumsum, "shape_array": _shape_array,
    "size_array": _size_array,
}  # fmt: skip
"""The converters of this module."""
