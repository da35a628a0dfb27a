"""Type relations that several operators share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from dlcompiler import dtypes
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.base import CallTypes
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.pools import window_of

Shape: TypeAlias = tuple[Dimension, ...]


def broadcast(call: CallTypes, shapes: Sequence[Sequence[Dimension]]) -> tuple[Dimension, ...]:
    """Return the common shape of operands, by NumPy's rules.

    A dimension that is not known until the run agrees with each extent: with 1 the result is not
    known either, with another extent it is that one, which a run checks.
    """
    rank = max(map(len, shapes), default=0)
    found: list[Dimension] = []
    for place in range(-rank, 0):
        extents = [shape[place] for shape in shapes if len(shape) >= -place]
        known = {e for e in extents if e is not ANY and e != 1}
        if len(known) > 1:
            call.fail(
                f"the shapes cannot be broadcast: dimension {place} has extents "
                f"{' and '.join(map(str, extents))}",
                expected="equal extents, or 1",
            )
        found.append(known.pop() if known else ANY if ANY in extents else 1)
    return tuple(found)


def same_dtype(call: CallTypes, kinds: Sequence[TensorType]) -> str:
    """Return the dtype that all operands have."""
    dtype = kinds[0].dtype
    if any(kind.dtype != dtype for kind in kinds):
        call.fail("the dtypes differ", hint="cast one of them: cast(x, dtype=…)")
    return dtype


def as_first(call: CallTypes) -> TensorType:
    """Return the type of the first argument."""
    return call.tensor(0)


def of_floats(call: CallTypes) -> TensorType:
    """Return the type of the first argument, which must be of floats."""
    kind = call.tensor(0)
    if not dtypes.is_float(kind.dtype):
        call.fail(f"takes floats, not {kind.dtype}", hint="cast the input: cast(x, dtype=…)")
    return kind


def axis_of(call: CallTypes, axis: int, rank: int, what: str = "axis") -> int:
    """Return an axis counted from 0; negative ones count from the end."""
    if not -rank <= axis < rank:
        call.fail(
            f"{what} {axis} is outside the tensor's {rank} dimensions",
            expected=f"{-rank} to {rank - 1}" if rank else "a tensor with dimensions",
        )
    return axis % rank


def of_numbers(call: CallTypes) -> TensorType:
    """Return the type of the first argument, which must not be of bools."""
    kind = call.tensor(0)
    if dtypes.is_bool(kind.dtype):
        call.fail(f"takes numbers, not {kind.dtype}", hint="cast the input: cast(x, dtype=…)")
    return kind


def index_type(call: CallTypes, i: int) -> TensorType:
    """Return the type of argument `i`, which must hold indices: integers that fit int64."""
    kind = call.tensor(i)
    if not dtypes.is_int(kind.dtype) or kind.dtype == "uint64":
        call.fail(
            f"argument {call.name(i)} has dtype {kind.dtype}", expected="integers, but not uint64"
        )
    return kind


def expect(call: CallTypes, i: int, shape: Sequence[Dimension], dtype: str) -> TensorType:
    """Give argument `i` a type if it has none; refuse one that has another type."""
    wanted = TensorType(tuple(shape), dtype)
    found = call.assign(i, wanted)
    if found.dtype != dtype:
        call.fail(f"argument {call.name(i)} has dtype {found.dtype}", expected=repr(wanted))
    if found.rank != wanted.rank or not all(map(same_extent, found.shape, wanted.shape)):
        call.fail(f"argument {call.name(i)} does not have the shape that follows from the others",
                  expected=repr(wanted))  # fmt: skip
    return found


def same_extent(a: Dimension, b: Dimension) -> bool:
    """Tell whether two extents may be equal: one that is not known may be any."""
    return a is ANY or b is ANY or a == b


def known_extent(a: Dimension, b: Dimension) -> Dimension:
    """Return the one of two extents, which may be equal, that is known."""
    return b if a is ANY else a


def axes_of(call: CallTypes, rank: int, what: str = "axis") -> tuple[int, ...]:
    """Return the axes in an attribute, counted from 0 and in order; None is all of them.

    With the attribute ``exclude``, they are all others.
    """
    given = call.attrs[what]
    if given is None:
        return tuple(range(rank))
    found = [axis_of(call, axis, rank, what) for axis in given]
    if len(set(found)) < len(found):
        call.fail(f"{what} names a dimension twice", got=f"{what}={list(given)}")
    if call.attrs.get("exclude"):
        return tuple(n for n in range(rank) if n not in found)
    return tuple(sorted(found))


def chosen_axes(attrs: Mapping[str, Any], rank: int, what: str = "axis") -> tuple[int, ...]:
    """Return the axes in an attribute as `axes_of` does, of a call that was checked."""
    given = attrs[what]
    if given is None:
        return tuple(range(rank))
    found = {axis % rank for axis in given}
    if attrs.get("exclude"):
        return tuple(n for n in range(rank) if n not in found)
    return tuple(sorted(found))


def without(shape: Sequence[Dimension], axes: Sequence[int], keepdims: bool) -> Shape:
    """Return a shape in which dimensions are reduced: left out, or of extent 1."""
    if keepdims:
        return tuple(1 if n in axes else extent for n, extent in enumerate(shape))
    return tuple(extent for n, extent in enumerate(shape) if n not in axes)


def windows_over(
    call: CallTypes, size: Dimension, window: Window, *, ceil_mode: bool = False, what: str = ""
) -> Dimension:
    """Return how many windows there are along a dimension; `window.size` is not read."""
    if not isinstance(size, int):
        return ANY
    padded = size + window.before + window.after
    if padded < window.reach:
        call.fail(
            f"a window reaches over {window.reach} elements of dimension {what}, which has "
            f"{padded} with its padding"
        )
    return window_of(replace(window, size=size), ceil_mode).out


def static(kind: TensorType) -> tuple[int, ...]:
    """Return the shape of a tensor of which all extents are known."""
    return tuple(extent for extent in kind.shape if isinstance(extent, int))
