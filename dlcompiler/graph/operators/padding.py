"""Borders around tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import Attribute, one_of, pairs
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.layouts import Layouts, layout_of
from dlcompiler.graph.operators.relations import expect, static
from dlcompiler.ops import transforms

_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric",
          "wrap": "wrap"}  # fmt: skip
_MIRRORS = {"SYMMETRIC": "symmetric", "REFLECT": "reflect"}


def _mode(call: CallTypes | Result) -> str:
    attrs = call.attrs
    return _MIRRORS[attrs["mode"]] if "mode" in attrs else str(attrs["pad_mode"])


def _padded(call: CallTypes) -> TensorType:
    kind, width = call.tensor(0), call.attrs["pad_width"]
    if len(width) != kind.rank:
        call.fail(f"pad_width has {len(width)} pairs", expected=f"{kind.rank}, one per dimension")
    shape: list[Dimension] = []
    for n, (extent, (before, after)) in enumerate(zip(kind.shape, width, strict=True)):
        if not isinstance(extent, int):
            shape.append(ANY)
            continue
        most = extent - 1 if _mode(call) == "reflect" else extent
        is_bounded = _mode(call) not in ("constant", "edge")
        if max(before, after) and _mode(call) != "constant" and not extent:
            call.fail(f"dimension {n} has no element to repeat")
        if is_bounded and max(before, after) > most:
            call.fail(
                f"the border of dimension {n} is wider than what it shows",
                got=f"{(before, after)} around {extent} elements", expected=f"at most {most}",
            )  # fmt: skip
        shape.append(extent + before + after)
    if len(call.args) > 1:
        expect(call, 1, (), kind.dtype)
    return TensorType(tuple(shape), kind.dtype)


def _evaluate(call: Result, x: Array, value: Array | None = None) -> Array:
    mode = _mode(call)
    if mode == "constant":
        made = np.full(static(call.tensor), 0 if value is None else value, x.dtype)
        inside = (slice(first, first + extent) for (first, _), extent in zip(
            call.attrs["pad_width"], x.shape, strict=True))  # fmt: skip
        made[tuple(inside)] = x
        return made
    modes: dict[str, Any] = {"mode": mode}
    return np.pad(x, call.attrs["pad_width"] or 0, **modes) if x.ndim else x.copy()


def _define(call: Result, x: te.Tensor, value: te.Tensor | None = None) -> te.Tensor:
    width, mode = call.attrs["pad_width"], _mode(call)
    before, after = ([pair[side] for pair in width] for side in (0, 1))
    if mode != "constant":
        return transforms.pad_by_elements(x, before, after, mode)
    filled = te.const(0, x.dtype) if value is None else value[()]
    return transforms.pad(x, before, after, filled)


def _layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of a border: dimensions that are split have none."""
    if not current[0]:
        return None
    old, new = layout_of(current[0]), layout_of(wanted)
    if sorted(old.dimensions) != sorted(new.dimensions):
        return None
    width = dict(zip(old.axes, call.attrs["pad_width"], strict=True))
    found = []
    for axis in new.axes:
        pair = width[axis.upper()]
        is_split = old.factor(axis.upper()) > 1 or new.factor(axis.upper()) > 1
        if is_split and (pair != (0, 0) or width.get(axis.lower(), (0, 0)) != (0, 0)):
            return None
        found.append((0, 0) if axis.islower() else pair)
    rest = ("",) * (len(call.inputs) - 1)
    return Layouts((wanted, *rest), (wanted,), {"pad_width": tuple(found)})


_WIDTH = Attribute("pad_width", pairs, doc="elements before and after, for each dimension")

TABLE = (
    GraphOperator(
        "nn.pad", ("data", "pad_value?"), _padded, _evaluate, Pattern.INJECTIVE, _define,
        (_WIDTH, Attribute("pad_mode", one_of(*_MODES), "constant", "what the border holds")),
        "The tensor with a border of one value, or of its own elements.", _layouts,
    ),
    GraphOperator(
        "nn.mirror_pad", ("data",), _padded, _evaluate, Pattern.INJECTIVE, _define,
        (_WIDTH, Attribute("mode", one_of(*_MIRRORS), "SYMMETRIC",
                           "repeat the outermost element, or not")),
        "The tensor with a border that mirrors its elements.", _layouts,
    ),
)  # fmt: skip
"""The operators of this module."""
