"""Biases, normalisations, softmax and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import TensorType, TupleType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    axis_or_all,
    boolean,
    finite,
    integer,
    positive,
)
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    Pattern,
    Result,
    TensorRelation,
)
from dlcompiler.graph.operators.layouts import Layouts, axis_layouts, layout_of, same_layouts
from dlcompiler.graph.operators.relations import (
    axes_of,
    axis_of,
    chosen_axes,
    expect,
    of_floats,
    of_numbers,
)
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops import channel_norms, norms
from dlcompiler.ops import softmax as rows
from dlcompiler.ops.batch_norm import batch_norm
from dlcompiler.ops.helpers import BROADCAST, ELEMWISE, tensor

# -- types ----------------------------------------------------------------------------------------


def _axis(call: CallTypes | Result, rank: int) -> int:
    return int(call.attrs["axis"]) % rank


def _per_channel(check: TensorRelation, count: int) -> TensorRelation:
    """Return the relation of an operator whose other arguments have a number for each channel."""

    def relation(call: CallTypes) -> TensorType:
        kind = check(call)
        axis = axis_of(call, call.attrs["axis"], kind.rank)
        for i in range(1, count + 1):
            expect(call, i, (kind.shape[axis],), kind.dtype)
        return kind

    return relation


def _batch_norm_type(call: CallTypes) -> TupleType:
    kind = _per_channel(of_floats, 4)(call)
    return TupleType((kind, call.tensor(3), call.tensor(4)))


def _group_norm_type(call: CallTypes) -> TensorType:
    kind = _per_channel(of_floats, 2)(call)
    axis = axis_of(call, call.attrs["axis"], kind.rank)
    extent, groups = kind.shape[axis], call.attrs["num_groups"]
    if axis == 0:
        call.fail("axis 0 is that of the images", expected="the axis of the channels")
    if isinstance(extent, int) and extent % groups:
        call.fail(f"{groups} groups do not divide {extent} channels")
    return kind


def _instance_norm_type(call: CallTypes) -> TensorType:
    kind = _per_channel(of_floats, 2)(call)
    if axis_of(call, call.attrs["axis"], kind.rank) == 0:
        call.fail("axis 0 is that of the images", expected="the axis of the channels")
    return kind


def _along_axis(call: CallTypes) -> TensorType:
    kind = of_floats(call)
    axis_of(call, call.attrs["axis"], kind.rank)
    return kind


def _over_axes(call: CallTypes) -> TensorType:
    kind = of_floats(call)
    axes_of(call, kind.rank)
    return kind


def _dropout_type(call: CallTypes) -> TupleType:
    kind = of_floats(call)
    if not 0 <= call.attrs["rate"] < 1:
        call.fail("rate is not a probability below 1", got=f"rate={call.attrs['rate']}")
    return TupleType((kind, kind))


# -- values ---------------------------------------------------------------------------------------


def _along(x: Array, parameter: Array, axis: int) -> Array:
    """Return a number for each channel as an array that broadcasts along the axis."""
    shape = [1] * x.ndim
    shape[axis] = parameter.size
    return wide(parameter).reshape(shape)


def _bias_add(call: Result, x: Array, bias: Array) -> Array:
    axis = _axis(call, x.ndim)
    return rounded(wide(x) + _along(x, bias, axis), call.tensor)


def _prelu(call: Result, x: Array, alpha: Array) -> Array:
    values = wide(x)
    below = values * _along(x, alpha, _axis(call, x.ndim))
    return rounded(np.where(values > 0, values, below), call.tensor)


def _affine(call: Result, x: Array, values: Array, gamma: Array, beta: Array) -> Array:
    """Scale and shift by channel, as far as ``scale`` and ``center`` say so."""
    axis = _axis(call, x.ndim)
    if call.attrs["scale"]:
        values = values * _along(x, gamma, axis)
    return values + _along(x, beta, axis) if call.attrs["center"] else values


def _standardised(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    values, axes = wide(x), tuple(axes)
    mean = values.mean(axes, keepdims=True)
    variance = np.square(values - mean).mean(axes, keepdims=True)
    return (values - mean) / np.sqrt(variance + epsilon)  # type: ignore[no-any-return]


def _batch_norm(
    call: Result, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> tuple[Array, ...]:
    axis = _axis(call, x.ndim)
    root = np.sqrt(_along(x, variance, axis) + call.attrs["epsilon"])
    values = (wide(x) - _along(x, mean, axis)) / root
    kind = call.inputs[0]
    assert isinstance(kind, TensorType)
    return rounded(_affine(call, x, values, gamma, beta), kind), mean.copy(), variance.copy()


def _layer_norm(call: Result, x: Array, gamma: Array, beta: Array) -> Array:
    values = _standardised(x, [_axis(call, x.ndim)], call.attrs["epsilon"])
    return rounded(_affine(call, x, values, gamma, beta), call.tensor)


def _instance_norm(call: Result, x: Array, gamma: Array, beta: Array) -> Array:
    axes = [n for n in range(1, x.ndim) if n != _axis(call, x.ndim)]
    values = _standardised(x, axes, call.attrs["epsilon"])
    return rounded(_affine(call, x, values, gamma, beta), call.tensor)


def _group_norm(call: Result, x: Array, gamma: Array, beta: Array) -> Array:
    axis = _axis(call, x.ndim)
    parts = np.split(wide(x), call.attrs["num_groups"], axis)
    inside = tuple(range(1, x.ndim))
    groups = [_standardised(part, inside, call.attrs["epsilon"]) for part in parts]
    return rounded(_affine(call, x, np.concatenate(groups, axis), gamma, beta), call.tensor)


def _rms_norm(call: Result, x: Array, weight: Array) -> Array:
    axis, values = _axis(call, x.ndim), wide(x)
    mean = np.square(values).mean(axis, keepdims=True)
    normal = values / np.sqrt(mean + call.attrs["epsilon"])
    return rounded(normal * _along(x, weight, axis), call.tensor)


def _l2_normalize(call: Result, x: Array) -> Array:
    values = wide(x)
    total = np.square(values).sum(chosen_axes(call.attrs, x.ndim), keepdims=True)
    return rounded(values / np.sqrt(np.maximum(total, call.attrs["eps"])), call.tensor)


def _lrn(call: Result, x: Array) -> Array:
    attrs, values, axis = call.attrs, wide(x), _axis(call, x.ndim)
    size, extent = attrs["size"], x.shape[axis]
    total = np.zeros_like(values)
    for n in range(extent):
        near = range(max(n - size // 2, 0), min(n + (size - 1) // 2 + 1, extent))
        place = [slice(None)] * x.ndim
        place[axis] = slice(n, n + 1)
        total[tuple(place)] = np.square(values.take(near, axis)).sum(axis, keepdims=True)
    base = attrs["bias"] + attrs["alpha"] / size * total
    return rounded(values / base ** attrs["beta"], call.tensor)


def _softmax(call: Result, x: Array) -> Array:
    axis = _axis(call, x.ndim)
    return rounded(np.exp(_log_of_share(wide(x), axis)), call.tensor)


def _log_softmax(call: Result, x: Array) -> Array:
    return rounded(_log_of_share(wide(x), _axis(call, x.ndim)), call.tensor)


def _log_of_share(x: Array, axis: int) -> Array:
    below = x - x.max(axis, keepdims=True, initial=-np.inf)
    return below - np.log(np.exp(below).sum(axis, keepdims=True))  # type: ignore[no-any-return]


def _dropout(call: Result, x: Array) -> tuple[Array, ...]:
    del call
    return x.copy(), np.ones_like(x)


# -- definitions ----------------------------------------------------------------------------------


def _define_bias_add(call: Result, x: te.Tensor, bias: te.Tensor) -> te.Tensor:
    axis = _axis(call, x.ndim)
    return tensor(x.shape, lambda *i: x[i] + bias[i[axis]], "T_bias_add", BROADCAST)


def _define_prelu(call: Result, x: te.Tensor, alpha: te.Tensor) -> te.Tensor:
    axis, zero = _axis(call, x.ndim), te.const(0, x.dtype)
    return tensor(
        x.shape, lambda *i: te.select(x[i] > zero, x[i], x[i] * alpha[i[axis]]), "T_prelu",
        BROADCAST,
    )  # fmt: skip


def _copied(x: te.Tensor) -> te.Tensor:
    return tensor(x.shape, lambda *i: x[i], f"{x.name}_copy", ELEMWISE)


def _define_batch_norm(
    call: Result, x: te.Tensor, gamma: te.Tensor, beta: te.Tensor, mean: te.Tensor,
    variance: te.Tensor,
) -> tuple[te.Tensor, ...]:  # fmt: skip
    attrs, one = call.attrs, te.const(1, x.dtype)
    epsilon = te.const(attrs["epsilon"], x.dtype)

    def factor(c: Any) -> Any:
        root = one / te.sqrt(variance[c] + epsilon)
        return gamma[c] * root if attrs["scale"] else root

    scale = tensor(mean.shape, factor, "batch_norm.scale", ELEMWISE)

    def offset(c: Any) -> Any:
        moved = -mean[c] * scale[c]
        return beta[c] + moved if attrs["center"] else moved

    shift = tensor(mean.shape, offset, "batch_norm.shift", ELEMWISE)
    result = batch_norm(x, scale, shift, _axis(call, x.ndim))
    return result, _copied(mean), _copied(variance)


def _define_affine(call: Result, x: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    scale, shift = gamma if attrs["scale"] else None, beta if attrs["center"] else None
    if scale is None and shift is None:
        return x
    return channel_norms.scaled(x, scale, shift, _axis(call, x.ndim))


def _define_layer_norm(call: Result, x: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
    attrs, axis = call.attrs, _axis(call, x.ndim)
    if axis == x.ndim - 1 and attrs["scale"] and attrs["center"]:
        return norms.layer_norm(x, gamma, beta, attrs["epsilon"])
    values = channel_norms.standardised(x, [axis], attrs["epsilon"])
    return _define_affine(call, values, gamma, beta)


def _define_instance_norm(
    call: Result, x: te.Tensor, gamma: te.Tensor, beta: te.Tensor
) -> te.Tensor:
    axes = [n for n in range(1, x.ndim) if n != _axis(call, x.ndim)]
    values = channel_norms.standardised(x, axes, call.attrs["epsilon"])
    return _define_affine(call, values, gamma, beta)


def _define_group_norm(call: Result, x: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    values = channel_norms.grouped(
        x, _axis(call, x.ndim), attrs["num_groups"],
        lambda part, axes: channel_norms.standardised(part, axes, attrs["epsilon"]),
    )  # fmt: skip
    return _define_affine(call, values, gamma, beta)


def _define_rms_norm(call: Result, x: te.Tensor, weight: te.Tensor) -> te.Tensor:
    axis, epsilon = _axis(call, x.ndim), call.attrs["epsilon"]
    if axis == x.ndim - 1:
        return norms.rms_norm(x, weight, epsilon)
    values = channel_norms.power_of_means(x, [axis], epsilon)
    return channel_norms.scaled(values, weight, None, axis)


def _define_l2_normalize(call: Result, x: te.Tensor) -> te.Tensor:
    axes = chosen_axes(call.attrs, x.ndim)
    return channel_norms.l2_normalize(x, axes, call.attrs["eps"])


def _define_lrn(call: Result, x: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    return channel_norms.local_response_norm(
        x, _axis(call, x.ndim), attrs["size"], attrs["bias"], attrs["alpha"], attrs["beta"]
    )


def _define_dropout(call: Result, x: te.Tensor) -> tuple[te.Tensor, ...]:
    del call
    return _copied(x), tensor(x.shape, lambda *i: te.const(1, x.dtype), "dropout_mask", ELEMWISE)


def _by_image(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of a normalisation of each image: the images stay the first dimension."""
    if current[0] and layout_of(current[0]).axes[0] != layout_of(wanted).axes[0]:
        return None
    return axis_layouts(2)(call, current, wanted)


# -- the table ------------------------------------------------------------------------------------


def _axis_attribute(default: int, doc: str = "the dimension of the channels") -> Attribute:
    return Attribute("axis", integer, default, doc)


def _affine_attributes(epsilon: float = 1e-5) -> tuple[Attribute, ...]:
    return (
        Attribute("epsilon", finite, epsilon, "added to the variance"),
        Attribute("center", boolean, True, "add beta"),
        Attribute("scale", boolean, True, "multiply by gamma"),
    )


_PARAMETERS = ("data", "gamma", "beta")

TABLE = (
    GraphOperator(
        "nn.bias_add", ("data", "bias"), _per_channel(of_numbers, 1), _bias_add, Pattern.BROADCAST,
        _define_bias_add, (_axis_attribute(1),), "Add a number to each channel.",
        axis_layouts(1),
    ),
    GraphOperator(
        "nn.prelu", ("data", "alpha"), _per_channel(of_floats, 1), _prelu, Pattern.BROADCAST,
        _define_prelu, (_axis_attribute(1),),
        "x, or alpha·x where x is negative, with an alpha for each channel.", axis_layouts(1),
    ),
    GraphOperator(
        "nn.batch_norm", ("data", "gamma", "beta", "moving_mean", "moving_var"), _batch_norm_type,
        _batch_norm, Pattern.ANCHOR, _define_batch_norm,
        (_axis_attribute(1), *_affine_attributes()),
        "Normalise each channel by given moments, which are outputs 1 and 2.",
        axis_layouts(4, outputs=2), kernel="batch_norm",
    ),
    GraphOperator(
        "nn.layer_norm", _PARAMETERS, _per_channel(of_floats, 2), _layer_norm, Pattern.ANCHOR,
        _define_layer_norm, (_axis_attribute(-1, "the dimension of the rows"),
                             *_affine_attributes()),
        "Normalise rows by their own mean and variance.", axis_layouts(2), kernel="layer_norm",
    ),
    GraphOperator(
        "nn.instance_norm", _PARAMETERS, _instance_norm_type, _instance_norm, Pattern.ANCHOR,
        _define_instance_norm, (_axis_attribute(1), *_affine_attributes()),
        "Normalise each channel of each image by its own mean and variance.", _by_image,
        kernel="instance_norm",
    ),
    GraphOperator(
        "nn.group_norm", _PARAMETERS, _group_norm_type, _group_norm, Pattern.ANCHOR,
        _define_group_norm,
        (Attribute("num_groups", positive, doc="groups of channels"), _axis_attribute(1),
         *_affine_attributes()),
        "Normalise groups of channels of each image by their own mean and variance.", _by_image,
        kernel="group_norm",
    ),
    GraphOperator(
        "nn.rms_norm", ("data", "weight"), _per_channel(of_floats, 1), _rms_norm, Pattern.ANCHOR,
        _define_rms_norm, (_axis_attribute(-1, "the dimension of the rows"),
                           Attribute("epsilon", finite, 1e-5, "added to the mean of squares")),
        "Divide rows by the root of their mean square, and scale them.", axis_layouts(1),
        kernel="rms_norm",
    ),
    GraphOperator(
        "nn.l2_normalize", ("data",), _over_axes, _l2_normalize, Pattern.ANCHOR,
        _define_l2_normalize,
        (Attribute("eps", finite, 1e-12, "least sum of squares"),
         Attribute("axis", axis_or_all, None, "the dimensions of the sum; None: all")),
        "Divide by the root of the sum of squares.",
    ),
    GraphOperator(
        "nn.lrn", ("data",), _along_axis, _lrn, Pattern.OPAQUE, _define_lrn,
        (Attribute("size", positive, 5, "channels in a sum"), _axis_attribute(1),
         Attribute("bias", finite, 2.0, "added to the sum"),
         Attribute("alpha", finite, 1e-5, "factor of the mean square"),
         Attribute("beta", finite, 0.75, "power")),
        "Divide by a power of the mean square of the channels beside.", axis_layouts(0),
    ),
    GraphOperator(
        "nn.softmax", ("data",), _along_axis, _softmax, Pattern.ANCHOR,
        lambda call, x: rows.softmax(x, call.attrs["axis"]), (_axis_attribute(-1, "of the rows"),),
        "Powers e**x, divided by their sum.", axis_layouts(0), kernel="softmax",
    ),
    GraphOperator(
        "nn.log_softmax", ("data",), _along_axis, _log_softmax, Pattern.ANCHOR,
        lambda call, x: rows.log_softmax(x, call.attrs["axis"]),
        (_axis_attribute(-1, "of the rows"),), "The logarithm of `nn.softmax`.", axis_layouts(0),
        kernel="log_softmax",
    ),
    GraphOperator(
        "nn.dropout", ("data",), _dropout_type, _dropout, Pattern.OPAQUE, _define_dropout,
        (Attribute("rate", finite, 0.5, "share of elements that training drops"),),
        "The data as it is, and a mask of ones: nothing is dropped at inference.",
        same_layouts(2),
    ),
)  # fmt: skip
"""The operators of this module."""
