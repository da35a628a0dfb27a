"""Scatter: copy the data, then apply the updates one after the other.

An index that is outside ends the kernel: `te.extern` checks each access.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from dlcompiler import te
from dlcompiler.ir import Assert, Buffer, BufferView, Builder, Expr, Stmt
from dlcompiler.ops.indexing import COMBINE
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.transforms import unravelled
from dlcompiler.target import Target
from dlcompiler.te import Tensor

UPDATE_CYCLES = 6.0
"""Time of an update, or of the copy of an element; [cycle]."""


def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int, mode: str, target: Target
) -> Tensor:
    """Define what `indexing.scatter_elements` defines, for a CPU.

    The slices along the first dimension are shared among cores unless it is the axis.
    """
    shape, own = data.static_shape, indices.static_shape
    cycles = UPDATE_CYCLES * (math.prod(shape) + math.prod(own))
    is_shared = axis > 0 and is_worth_sharing(cycles, target)

    def code(ib: Builder, ins: list[BufferView], out: BufferView) -> None:
        source, places, new = ins

        def apply(at: Sequence[Any]) -> None:
            place = _checked(ib, places[at], axis, shape)
            _combine(out, (*at[:axis], place, *at[axis + 1 :]), new[at], mode)

        if axis == 0:
            _copy(ib, source, out, ())
            _each(ib, own, (), apply)
            return
        with ib.for_range(0, shape[0], "i", kind="parallel" if is_shared else "serial") as i:
            _copy(ib, source, out, (i,))
            if own[0] == shape[0]:
                _each(ib, own, (i,), apply)
            else:
                with ib.if_scope(i < own[0]):
                    _each(ib, own, (i,), apply)

    return _scattered((data, indices, updates), code)


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    """Define what `indexing.scatter_nd` defines, for a CPU.

    No loop is shared among cores: two positions may be the same.
    """
    depth, *positions = indices.static_shape
    shape = data.static_shape

    def code(ib: Builder, ins: list[BufferView], out: BufferView) -> None:
        source, places, new = ins
        _copy(ib, source, out, ())
        with _loops(ib, positions) as at:
            here = [_checked(ib, places[(n, *at)], n, shape) for n in range(depth)]
            with _loops(ib, shape[depth:], is_vector=True) as rest:
                _combine(out, (*here, *rest), new[(*at, *rest)], mode)

    return _scattered((data, indices, updates), code)


def _scattered(
    inputs: tuple[Tensor, ...], code: Callable[[Builder, list[BufferView], BufferView], None]
) -> Tensor:
    def statements(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = Builder()
        code(ib, [ib.buffer_ptr(buffer) for buffer in ins], ib.buffer_ptr(outs[0]))
        return ib.get()

    data = inputs[0]
    made: Tensor = te.extern(
        data.shape, inputs, statements, name="T_scatter", dtype=data.dtype, is_complete=True
    )
    return made


def _checked(ib: Builder, value: Expr, dimension: int, shape: Sequence[int]) -> Expr:
    """Return data as an index of the result, and emit the check that it is inside.

    The numbers are compared as data: an index would be checked against overflow, too.
    """
    extent = te.const(shape[dimension], "int64")
    wide = value.astype("int64")
    place = ib.let("place", te.select(wide < te.const(0, "int64"), wide + extent, wide))
    is_inside = te.all(place >= te.const(0, "int64"), place < extent)
    text = (
        f"an index is outside the result: {{0}} in dimension {dimension} of extent "
        f"{shape[dimension]}"
    )
    ib.emit(Assert(is_inside, text, (place.astype("index"),)))
    return te.assume_bounds(place.astype("index"))


def _copy(ib: Builder, source: BufferView, out: BufferView, first: tuple[Any, ...]) -> None:
    """Emit a loop that copies the elements at some first indices."""
    rest = [extent for extent in out.shape[len(first) :] if isinstance(extent, int)]
    with ib.for_range(0, math.prod(rest), "element", kind="vectorize") as element:
        at = (*first, *unravelled(element, rest))
        out[at] = source[at]


def _each(
    ib: Builder, shape: Sequence[int], first: tuple[Any, ...], apply: Callable[..., None]
) -> None:
    with _loops(ib, shape[len(first) :]) as rest:
        apply((*first, *rest))


@contextmanager
def _loops(ib: Builder, shape: Sequence[Any], *, is_vector: bool = False) -> Iterator[list[Any]]:
    """Open a loop for each dimension; the last one runs in vectors if that is wanted."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ib.for_range(
                    0, extent, f"d{n}",
                    kind="vectorize" if is_vector and n == len(shape) - 1 else "serial",
                )
            )
            for n, extent in enumerate(shape)
        ]  # fmt: skip


def _combine(out: BufferView, at: Sequence[Any], value: Any, mode: str) -> None:
    out[tuple(at)] = value if mode == "update" else COMBINE[mode](out[tuple(at)], value)
