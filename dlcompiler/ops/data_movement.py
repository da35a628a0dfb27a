"""The operators that move data: transpose, pad and concatenate."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, as_expected, by_device
from dlcompiler.ops.injective import default_injective, injective_space, schedule_injective
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.shapes import (
    FLOATS,
    INTEGERS,
    checked_dimension,
    checked_dtype,
    shape_of,
    shape_text,
)
from dlcompiler.ops.transforms import concatenate, pad, pad_by_elements, transpose
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = (*FLOATS, *INTEGERS, "bool")
MODES = ("constant", "edge", "reflect")


# -- transposition ------------------------------------------------------------------------------


def _transpose_workload(
    *, shape: Sequence[int] | str, axes: Sequence[int] | str = "reversed", dtype: str = "float32"
) -> Workload:
    """Return the workload of a transposition; `axes` are the operand's dimensions in new order."""
    text = shape_text(shape, "transpose")
    ndim = len(shape_of(text))
    order = tuple(reversed(range(ndim))) if axes == "reversed" else _numbers(axes)
    order = tuple(checked_dimension(n, ndim, "transpose") for n in order)
    if sorted(order) != list(range(ndim)):
        raise TuningError("transpose", "not an order of the dimensions", got=str(axes))
    kind = checked_dtype(dtype, DTYPES, "transpose")
    return Workload.of("transpose", shape=text, axes=_text(order), dtype=kind)


def _transpose_operands(workload: Workload) -> list[tuple[int, ...]]:
    return [shape_of(workload["shape"])]


def _transpose(workload: Workload, data: Tensor) -> Tensor:
    return transpose(data, _numbers(workload["axes"]))


def _transposed(workload: Workload, data: Array) -> Array:
    return np.transpose(data, _numbers(workload["axes"]))


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
    extents, first, last = shape_of(text), _numbers(before), _numbers(after)
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
        "pad", shape=text, before=_text(first), after=_text(last), mode=mode, dtype=kind
    )


def _pad_operands(workload: Workload) -> list[tuple[int, ...]]:
    return [shape_of(workload["shape"])]


def _pad(workload: Workload, data: Tensor) -> Tensor:
    before, after = _numbers(workload["before"]), _numbers(workload["after"])
    if workload["mode"] == "constant":
        return pad(data, before, after, 0)
    return pad_by_elements(data, before, after, workload["mode"])


def _padded(workload: Workload, data: Array) -> Array:
    pairs = list(zip(_numbers(workload["before"]), _numbers(workload["after"]), strict=True))
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


def _concatenate_operands(workload: Workload) -> list[tuple[int, ...]]:
    return [shape_of(text) for text in workload["shapes"].split(",")]


def _concatenate(workload: Workload, *parts: Tensor) -> Tensor:
    return concatenate(parts, workload["axis"])


def _concatenated(workload: Workload, *parts: Array) -> Array:
    return np.concatenate(parts, axis=workload["axis"])


# -- what they share ----------------------------------------------------------------------------


def _numbers(given: Sequence[int] | str) -> tuple[int, ...]:
    if isinstance(given, str | bytes):
        return tuple(int(n) for n in str(given).split(",") if n)
    return tuple(map(operator.index, given))


def _text(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    (out,) = outs
    schedule_injective(s, out, target, cfg.values)


def _operator(
    name: str,
    workload: Callable[..., Workload],
    operands: Callable[[Workload], list[tuple[int, ...]]],
    element: Callable[..., Tensor],
    on_arrays: Callable[..., Array],
) -> Operator:
    """Return an operator that moves elements of its operands, without rounding."""

    def define(work: Workload) -> tuple[Tensor, ...]:
        shapes = operands(work)
        names = ["data"] if len(shapes) == 1 else [f"data{n}" for n in range(len(shapes))]
        parts = [
            te.placeholder(shape, work["dtype"], n) for shape, n in zip(shapes, names, strict=True)
        ]
        return *parts, element(work, *parts)

    def reference(work: Workload, seed: int) -> Reference:
        *parts, out = define(work)
        generator, kind = np.random.default_rng(seed), dtypes.to_numpy(work["dtype"])
        most = 2 if dtypes.is_bool(work["dtype"]) else 100
        arrays = {
            part.name: generator.integers(0, most, part.static_shape).astype(kind) for part in parts
        }
        expected = as_expected(on_arrays(work, *arrays.values()), out.dtype)
        return Reference(arrays, {out.name: expected}, {out.name: np.zeros(expected.shape)})

    def space(work: Workload, target: Target) -> Space:
        return injective_space(work, define(work)[-1], target)

    def default_config(work: Workload, target: Target) -> Config:
        return default_injective(work, define(work)[-1], target)

    return Operator(
        name,
        workload,
        define,
        reference,
        by_device(
            {
                "cpu": DeviceSchedule(space, default_config, _schedule),
                "gpu": "dlcompiler.ops.gpu.injective:INJECTIVE",
            }
        ),
    )


TRANSPOSE = _operator(
    "transpose", _transpose_workload, _transpose_operands, _transpose, _transposed
)
PAD = _operator("pad", _pad_workload, _pad_operands, _pad, _padded)
CONCATENATE = _operator(
    "concatenate", _concatenate_workload, _concatenate_operands, _concatenate, _concatenated
)
