"""Fold products with a number for each channel into the weights beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Node, TensorType, children
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.tools import (
    SMALLEST_NORMAL,
    KnownTypes,
    attrs_of,
    call_like,
    decided,
    operator_of,
    rewrite_calls,
    with_log,
)

NAME = "fold_scale_axis"
Array: TypeAlias = npt.NDArray[Any]
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
    Rounding differs: ``(x · w) · s`` becomes ``x · (w · s)``. A product stays where it is if the
    dtype does not hold ``w · s``, or is float16 and the weights are not known.
    """
    uses = Counter(child for node in module.nodes() for child in children(node))
    log: list[Decision] = []
    folder = _Folder(uses)

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        folder.note(old, new)
        folder.refused = ""
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
        elif folder.refused:
            reason = f"{folder.refused}, so the product stays where it is"
            log.append(decided(NAME, old, "not folded", "range", reason,
                               remedy="compute in float32"))  # fmt: skip
        return found

    return with_log(rewrite_calls(module, rule), log)


@dataclass(slots=True)
class _Folder:
    """How often nodes are used; a node with several uses keeps its own value."""

    uses: Counter[Node]
    refused: str = ""
    """Why the range of a dtype forbids to fold; "" if it does not."""

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
            return self.scaled_outputs(data, factor, axis, types)
        is_positive = dtypes.is_float(factor.type.dtype) and (factor.value > 0).all()
        if name == "nn.relu" and is_positive:  # a product of integers may wrap below 0
            inner = self.pushed(data.args[0], factor, axis, types)
            return None if inner is None else call_like(data, name, inner)
        if name == "add":
            for first, second in (data.args, reversed(data.args)):
                # A factor of a whole tensor would be one more product for each element.
                if not isinstance(second, Constant) or not self.keeps_sum(second, factor):
                    continue
                inner = self.pushed(first, factor, axis, types)
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
                scaled = self.scaled_weight(call, weight, factor, kernel.index("I"), types)
                if scaled is None:
                    return None
                same: dict[str, Any] = dict(call.attrs)
                return call_like(call, operator_of(call), inner, scaled, **same)
        return None

    def scaled_outputs(
        self, data: Call, factor: Constant, axis: int, types: KnownTypes
    ) -> Expr | None:
        """Return a call with a factor for each output channel in its weights."""
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
        scaled = self.scaled_weight(data, weight, factor, place, types)
        if scaled is None:
            return None
        same: dict[str, Any] = dict(data.attrs)
        return call_like(data, operator_of(data), inner, scaled, **same)

    def scaled_weight(
        self, call: Call, weight: Node, factor: Constant, place: int, types: KnownTypes
    ) -> Call | None:
        """Return weights with a factor along one dimension; None if they do not fit."""
        kind = types.tensor(weight)
        shape = [1] * kind.rank
        shape[place] = factor.value.size
        along = Constant(factor.value.reshape(shape))
        value = _value_of(weight)
        if value is None and kind.dtype == "float16":
            self.refused = "the weights are not known, and float16 has a small range"
            return None
        if value is not None and not _holds(value, along.value, kind.dtype, place):
            self.refused = f"a weight times its factor does not fit {kind.dtype}"
            return None
        return call_like(call, "multiply", weight, along, suffix="weight")

    def keeps_sum(self, summand: Constant, factor: Constant) -> bool:
        """Tell whether a product can be split: of a sum into a sum of products."""
        dtype = factor.type.dtype
        if not dtypes.is_float(dtype):
            return True
        # Half of the range: the other product must not overflow before this one is added.
        if (2 * abs(_product(summand.value, factor.value)) <= dtypes.LARGEST[dtype]).all():
            return True
        self.refused = f"a summand times its factor does not fit {dtype}"
        return False


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


def _value_of(weight: Node) -> Array | None:
    """Return weights that are constants, also those that were multiplied by constants."""
    factors = []
    while isinstance(weight, Call) and operator_of(weight) == "multiply":
        weight, factor = weight.args
        if not isinstance(factor, Constant):
            return None
        factors.append(factor.value)
    if not isinstance(weight, Constant):
        return None
    value = weight.value
    for factor in reversed(factors):
        value = _product(value, factor).astype(value.dtype)
    return value


def _holds(weight: Array, factor: Array, dtype: str, place: int) -> bool:
    """Tell whether a dtype holds weights times factors.

    In float16, one of the numbers for a channel must have full precision: beside that, others may
    be lost. The smallest ones of wider dtypes are too small to matter.
    """
    if not dtypes.is_float(dtype) or not weight.size:
        return True
    largest = dtypes.LARGEST[dtype]
    most = max(float(weight.max()), -float(weight.min())) * float(abs(factor).max())
    if dtype != "float16" and most <= largest:
        return True
    product = abs(_product(weight, factor))
    if not ((product <= largest) | ~np.isfinite(weight)).all():
        return False
    others = tuple(n for n in range(product.ndim) if n != place)
    most = product.max(axis=others)
    return dtype != "float16" or bool(((most == 0) | ~(most < SMALLEST_NORMAL[dtype])).all())


def _product(a: Array, b: Array) -> Array:
    """Return a product in float64 if it is one of floats."""
    with np.errstate(all="ignore"):
        if dtypes.is_float(dtypes.from_numpy(a.dtype)):
            return a.astype(np.float64) * b.astype(np.float64)
        return a * b
