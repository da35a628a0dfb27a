"""The operators that move data: transpose, pad and concatenate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler.errors import TuningError
from dlcompiler.ops.movement import DTYPES, Operand, movement, of_data
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.shapes import (
    checked_dimension,
    checked_dtype,
    numbers,
    numbers_text,
    shape_of,
    shape_text,
)
from dlcompiler.ops.transforms import concatenate, pad, pad_by_elements, transpose
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

MODES = ("constant", "edge", "reflect")


# -- transposition ------------------------------------------------------------------------------


def _transpose_workload(
    *, shape: Sequence[int] | str, axes: Sequence[int] | str = "reversed", dtype: str = "float32"
) -> Workload:
    """Return the workload of a transposition; `axes` are the operand's dimensions in new order."""
    text = shape_text(shape, "transpose")
    ndim = len(shape_of(text))
    order = tuple(reversed(range(ndim))) if axes == "reversed" else numbers(axes)
    order = tuple(checked_dimension(n, ndim, "transpose") for n in order)
    if sorted(order) != list(range(ndim)):
        raise TuningError("transpose", "not an order of the dimensions", got=str(axes))
    kind = checked_dtype(dtype, DTYPES, "transpose")
    return Workload.of("transpose", shape=text, axes=numbers_text(order), dtype=kind)


def _transpose(workload: Workload, data: Tensor) -> Tensor:
    return transpose(data, numbers(workload["axes"]))


def _transposed(workload: Workload, data: Array) -> Array:
    return np.transpose(data, numbers(workload["axes"]))


# -- padding ------------------------------------------------------------------------------------


def _pad_workload(
    *,
    shape: Sequence[int] | str,
    before: Sequence[int] | str,
    after: Sequence[int] | str,
    mode: str = "constant",
    dtype: str = "float32",
) -> Workload:
    """Return the workload of a padding; negative widths crop the tensor."""
    text = shape_text(shape, "pad")
    extents, first, last = shape_of(text), numbers(before), numbers(after)
    if mode not in MODES:
        raise TuningError("pad", "no such mode", got=repr(mode), expected=", ".join(MODES))
    if not len(first) == len(last) == len(extents):
        raise TuningError("pad", "not one number for each dimension", got=f"{before} and {after}")
    for extent, one, other in zip(extents, first, last, strict=True):
        widest = max(one, other)
        if extent + one + other < 0 or min(one, other) < -extent:
            raise TuningError(
                "pad",
                "the negative widths remove more elements than there are",
                got=f"{one} and {other}",
            )
        if mode != "constant" and widest > 0 and (widest >= extent or not extent):
            raise TuningError("pad", "the border is wider than the tensor", got=str(widest))
    kind = checked_dtype(dtype, DTYPES, "pad")
    return Workload.of(
        "pad",
        shape=text,
        before=numbers_text(first),
        after=numbers_text(last),
        mode=mode,
        dtype=kind,
    )


def _pad(workload: Workload, data: Tensor) -> Tensor:
    before, after = numbers(workload["before"]), numbers(workload["after"])
    if workload["mode"] == "constant":
        return pad(data, before, after, 0)
    return pad_by_elements(data, before, after, workload["mode"])


def _padded(workload: Workload, data: Array) -> Array:
    pairs = list(zip(numbers(workload["before"]), numbers(workload["after"]), strict=True))
    wide = np.pad(data, [(max(a, 0), max(b, 0)) for a, b in pairs], mode=workload["mode"])
    cuts = [
        (max(-a, 0), extent - max(-b, 0)) for (a, b), extent in zip(pairs, wide.shape, strict=True)
    ]
    return wide[tuple(slice(a, b) for a, b in cuts)]


# -- concatenation ------------------------------------------------------------------------------


def _concatenate_workload(
    *, shapes: Sequence[Any] | str, axis: int = 0, dtype: str = "float32"
) -> Workload:
    """Return the workload of a concatenation along a dimension."""
    given = shapes.split(",") if isinstance(shapes, str) else shapes
    texts = [shape_text(shape, "concatenate") for shape in given]
    extents = [shape_of(text) for text in texts]
    n = checked_dimension(axis, len(extents[0]), "concatenate")
    others = {(*shape[:n], *shape[n + 1 :]) for shape in extents}
    if len(others) > 1 or len({len(shape) for shape in extents}) > 1:
        raise TuningError("concatenate", "the other extents differ", got=" and ".join(texts))
    kind = checked_dtype(dtype, DTYPES, "concatenate")
    return Workload.of("concatenate", shapes=",".join(texts), axis=n, dtype=kind)


def _concatenate_operands(workload: Workload) -> list[Operand]:
    shapes = [shape_of(text) for text in workload["shapes"].split(",")]
    names = ["data"] if len(shapes) == 1 else [f"data{n}" for n in range(len(shapes))]
    return [Operand(n, e, workload["dtype"]) for n, e in zip(names, shapes, strict=True)]


def _concatenate(workload: Workload, *parts: Tensor) -> Tensor:
    return concatenate(parts, workload["axis"])


def _concatenated(workload: Workload, *parts: Array) -> Array:
    return np.concatenate(parts, axis=workload["axis"])


TRANSPOSE = movement("transpose", _transpose_workload, of_data, _transpose, _transposed)
PAD = movement("pad", _pad_workload, of_data, _pad, _padded)
CONCATENATE = movement(
    "concatenate", _concatenate_workload, _concatenate_operands, _concatenate, _concatenated
)
