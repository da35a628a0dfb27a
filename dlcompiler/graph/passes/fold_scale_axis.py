"""Fold products with a number for each channel into the weights beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Node, TensorType, children
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    attrs_of,
    call_like,
    decided,
    operator_of,
    rewrite_calls,
    with_log,
)

NAME = "fold_scale_axis"
_CONVOLUTIONS = frozenset({f"nn.conv{n}d" for n in (1, 2, 3)})


def fold_scale_axis(module: Module) -> Module:
    """Fold products with a constant for each channel into the weights of convolutions.

    *Before*::

        %0 = nn.conv2d(%x, %w);
        %1 = add(%0, meta[relay.Constant][0]);
        multiply(%1, meta[relay.Constant][1])

    *After*::

        %0 = multiply(%w, meta[relay.Constant][0]);
        %1 = nn.conv2d(%x, %0);
        %2 = multiply(meta[relay.Constant][1], meta[relay.Constant][2]);
        add(%1, %2)

    where the constants have a number for each output channel. A product before a convolution is
    folded along the input channels. `fold_constants` then multiplies constant weights.

    Parameters
    ----------
    module : Module
        The module.

    Notes
    -----
    Rounding differs: ``(x · w) · s`` becomes ``x · (w · s)``.
    """
    uses = Counter(child for node in module.nodes() for child in children(node))
    log: list[Decision] = []
    folder = _Folder(uses)

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        folder.note(old, new)
        found = None
        if operator_of(new) == "multiply":
            found = folder.behind(new, types)
        elif operator_of(new) in _CONVOLUTIONS:
            found = folder.before(new, types)
        if found is not None:
            reason = "a factor for each channel can be part of the weights"
            log.append(
                decided(NAME, old, "rewritten", "factor for each channel", reason, kernels=1)
            )
            folder.note(old, found)
        return found

    return with_log(rewrite_calls(module, rule), log)


@dataclass(slots=True)
class _Folder:
    """How often nodes are used; a node with several uses keeps its own value."""

    uses: Counter[Node]

    def note(self, old: Node, new: Node) -> None:
        """Take a node as often used as the one that it replaces."""
        self.uses[new] = self.uses[old]

    def behind(self, call: Call, types: KnownTypes) -> Expr | None:
        """Fold a product into what computes its other operand."""
        for data, factor in (call.args, reversed(call.args)):
            axis = _channel_axis(factor, data, types)
            if axis is not None and isinstance(factor, Constant):
                return self.pushed(data, factor, axis, types)
        return None

    def pushed(self, data: Node, factor: Constant, axis: int, types: KnownTypes) -> Expr | None:
        """Return a value multiplied by a factor for each channel; None if it cannot be folded."""
        if not isinstance(data, Call) or self.uses[data] != 1:
            return None
        name = operator_of(data)
        if name in _CONVOLUTIONS or name == "nn.dense":
            return _scaled_outputs(data, factor, axis, types)
        is_positive = dtypes.is_float(factor.type.dtype) and (factor.value > 0).all()
        if name == "nn.relu" and is_positive:  # a product of integers may wrap below 0
            inner = self.pushed(data.args[0], factor, axis, types)
            return None if inner is None else call_like(data, name, inner)
        if name == "add":
            for first, second in (data.args, reversed(data.args)):
                # A factor of a whole tensor would be one more product for each element.
                is_constant = isinstance(second, Constant)
                inner = self.pushed(first, factor, axis, types) if is_constant else None
                if inner is not None:
                    other = call_like(data, "multiply", second, factor, suffix="scaled")
                    return call_like(data, "add", inner, other)
        return None

    def before(self, call: Call, types: KnownTypes) -> Expr | None:
        """Fold a product that a convolution reads into the weights."""
        data, weight = call.args
        attrs = attrs_of(call)
        if operator_of(data) != "multiply" or self.uses[data] != 1 or attrs["groups"] != 1:
            return None
        assert isinstance(data, Call)
        if types.tensor(call).dtype != types.tensor(data).dtype:
            return None  # the product wraps, or is rounded, in the narrower dtype
        layout, kernel = layout_of(attrs["data_layout"]), layout_of(attrs["kernel_layout"])
        if layout.is_blocked or kernel.is_blocked:
            return None
        for inner, factor in (data.args, reversed(data.args)):
            axis = _channel_axis(factor, inner, types)
            if axis == layout.index("C") and isinstance(factor, Constant):
                scaled = _scaled_weight(call, weight, factor, kernel.index("I"), types)
                same: dict[str, Any] = dict(call.attrs)
                return call_like(call, operator_of(call), inner, scaled, **same)
        return None


def _channel_axis(factor: Node, data: Node, types: KnownTypes) -> int | None:
    """Return the only dimension of the data along which a factor differs; None if there is none."""
    kind, other = types[data], types[factor]
    if not isinstance(kind, TensorType) or not isinstance(other, TensorType):
        return None
    if other.rank > kind.rank or not kind.is_static:
        return None
    shape = (1,) * (kind.rank - other.rank) + other.shape
    long = [n for n, extent in enumerate(shape) if extent != 1]
    if len(long) != 1 or shape[long[0]] != kind.shape[long[0]]:
        return None
    if isinstance(factor, Constant) and not np.isfinite(factor.value).all():
        return None  # a weight of 0 would become NaN
    return long[0]


def _scaled_outputs(data: Call, factor: Constant, axis: int, types: KnownTypes) -> Expr | None:
    """Return a convolution or a product with a factor for each output channel in its weights."""
    attrs = attrs_of(data)
    inner, weight = data.args
    if operator_of(data) == "nn.dense":
        place = 0 if axis == types.tensor(data).rank - 1 else None
    else:
        layout = layout_of(attrs["out_layout"] or attrs["data_layout"])
        kernel = layout_of(attrs["kernel_layout"])
        is_plain = not layout.is_blocked and not kernel.is_blocked
        place = kernel.index("O") if is_plain and axis == layout.index("C") else None
    is_wider = types.tensor(weight).dtype != types.tensor(data).dtype
    if place is None or is_wider:
        return None
    scaled = _scaled_weight(data, weight, factor, place, types)
    same: dict[str, Any] = dict(data.attrs)
    return call_like(data, operator_of(data), inner, scaled, **same)


def _scaled_weight(
    call: Call, weight: Node, factor: Constant, place: int, types: KnownTypes
) -> Call:
    """Return weights with a factor along one dimension."""
    shape = [1] * types.tensor(weight).rank
    shape[place] = factor.value.size
    along = Constant(factor.value.reshape(shape))
    return call_like(call, "multiply", weight, along, suffix="weight")
