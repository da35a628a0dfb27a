"""Type relations that several operators share."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler import dtypes
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.base import CallTypes


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
