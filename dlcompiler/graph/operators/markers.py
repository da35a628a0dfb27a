"""Operators that return their data, and tell passes what to do with it."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler import te
from dlcompiler.graph.operators.attributes import Attribute, text
from dlcompiler.graph.operators.base import Array, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.layouts import same_layouts
from dlcompiler.graph.operators.relations import as_first
from dlcompiler.ops.elementwise import identity


def _copy(call: Result, x: Array) -> Array:
    del call
    return x.copy()


def _define(call: Result, x: te.Tensor) -> te.Tensor:
    del call
    made: te.Tensor = identity(x)
    return made


def _annotation(name: str, doc: str, attributes: Sequence[Attribute] = ()) -> GraphOperator:
    return GraphOperator(
        name, ("data",), as_first, _copy, Pattern.OPAQUE, _define, tuple(attributes), doc,
        same_layouts(), notes={"is_annotation": True},
    )  # fmt: skip


TABLE = (
    _annotation("annotation.stop_fusion", "The same elements; nothing is fused across it."),
    _annotation("on_device", "The same elements; they are computed on a device.",
                (Attribute("device", text, doc="name of the device"),)),
    _annotation("device_copy", "The same elements, copied from one device to another.",
                (Attribute("source", text, doc="name of the device that has them"),
                 Attribute("target", text, doc="name of the device that gets them"))),
)  # fmt: skip
"""The operators of this module."""
