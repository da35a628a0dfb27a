"""Layers on images, whose last three dimensions are channels, height and width."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.graph.frontends.coreml import norms, tensors
from dlcompiler.graph.frontends.coreml.images import (
    ALIGNED,
    Windows,
    convolution,
    cropped,
    joined,
    pads,
    positive,
    resized,
    scaled_size,
    transposed_convolution,
)
from dlcompiler.graph.frontends.coreml.messages import Message
from dlcompiler.graph.frontends.coreml.node import Layer, LayerConverter
from dlcompiler.graph.ir import Expr

_SAMPLING = ("align_corners", ALIGNED, "asymmetric")
"""Of `resizeBilinear`; the next one samples regions."""
_UPSAMPLING = ("asymmetric", "align_corners", "half_pixel")


def _images(node: Layer) -> Expr:
    """Return the data as images (n, channels, height, width)."""
    return joined(node, node.input(), 3)


def _like_input(node: Layer, made: Expr) -> Expr:
    """Return a result with the dimensions before the last three as the data has them."""
    return node.reshape(made, (*node.shape(node.input())[:-3], *node.shape(made)[1:]))


def _pair(node: Layer, name: str, default: int) -> tuple[int, ...]:
    return positive(node, node.integers(name, [default, default]), 2, name)


def _borders(given: Message | None) -> list[int]:
    """Return both borders of height, then of width; none where they are not given."""
    edges = given["borderAmounts"] if given is not None else ()
    return [each[name] for each in edges for name in ("startEdgeSize", "endEdgeSize")] or [0] * 4


def _windows(node: Layer) -> Windows:
    given = node.params
    valid, same = given["valid"], given["same"]
    rule, borders = "custom", _borders(None if valid is None else valid["paddingAmounts"])
    if same is not None:
        rule = "same_lower" if same["asymmetryMode"] else "same"
    return Windows(_pair(node, "kernelSize", 3), _pair(node, "stride", 1), (1, 1), rule, borders)


def _convolution(node: Layer) -> Expr:
    given, x = node.params, _images(node)
    channels, inner, groups = given["outputChannels"], given["kernelChannels"], given["nGroups"]
    windows = replace(_windows(node), groups=max(groups, 1))
    if given["isDeconvolution"]:  # it has no dilation
        shape = (inner, channels // windows.groups, *windows.kernel)
        wanted = node.integers("outputShape")
        made = transposed_convolution(
            node, x, node.weights("weights", shape, 1), windows,
            positive(node, wanted, 2, "outputShape") if wanted else None,
        )  # fmt: skip
    else:
        windows = replace(windows, dilation=_pair(node, "dilationFactor", 1))
        is_given = len(node.inputs) > 1
        shape = (channels, inner, *windows.kernel)
        weight = node.input(1) if is_given else node.weights("weights", shape)
        made = convolution(node, x, weight, windows)
    if given["hasBias"]:
        made = node.call("nn.bias_add", made, node.weights("bias", (channels,)), axis=1)
    return _like_input(node, made)


def _pooling(node: Layer) -> Expr:
    given, x = node.params, _images(node)
    if given["type"] not in (0, 1, 2):
        node.fail("no such kind of pooling", got=str(given["type"]))
    kind = ("max", "avg", "lp")[given["type"]]
    sizes = node.shape(x)[2:]
    attrs: dict[str, Any] = {"layout": "NCHW"}
    if kind == "avg":
        attrs["count_include_pad"] = not given["avgPoolExcludePadding"]
    if given["globalPooling"]:
        return _like_input(node, node.call(f"nn.{kind}_pool2d", x, pool_size=sizes, **attrs))
    windows, complete = _windows(node), given["includeLastPixel"]
    if complete is not None:
        amounts = [int(n) for n in complete["paddingAmounts"]] or [0, 0]
        windows = replace(windows, borders=[n for n in amounts for _ in range(2)])
    made = node.call(
        f"nn.{kind}_pool2d", x, pool_size=windows.kernel, strides=windows.strides,
        padding=pads(node, sizes, windows), ceil_mode=complete is not None, **attrs,
    )  # fmt: skip
    return _like_input(node, made)


def _batchnorm(node: Layer) -> Expr:
    given, x = node.params, _images(node)
    size = (given["channels"],)
    gamma, beta = node.weights("gamma", size), node.weights("beta", size)
    epsilon = given["epsilon"] or 1e-5
    if given["computeMeanVar"]:
        if not given["instanceNormalization"]:
            node.fail("it normalises by the moments of the batch")
        return _like_input(node, norms.instance_norm(node, x, (gamma, beta), epsilon))
    moments = node.weights("mean", size), node.weights("variance", size)
    made = node.call("nn.batch_norm", x, gamma, beta, *moments, axis=1, epsilon=epsilon)
    return _like_input(node, made[0])


def _mvn(node: Layer) -> Expr:
    """Subtract the mean of each image, or of each channel, and divide by the deviation."""
    given, x = node.params, node.input()
    rank = node.rank(x)
    axes = node.axes(range(-3 if given["acrossChannels"] else -2, 0), rank)
    centred = node.call("subtract", x, node.call("mean", x, axis=axes, keepdims=True))
    if not given["normalizeVariance"]:
        return centred
    square = node.call("mean", node.call("square", centred), axis=axes, keepdims=True)
    root = node.call("rsqrt", node.call("add", square, node.scalar(given["epsilon"] or 1e-6, x)))
    return node.call("multiply", centred, root)


def _lrn(node: Layer) -> Expr:
    given = node.params
    made = node.call(
        "nn.lrn", _images(node), size=given["localSize"] or 5, axis=1, bias=given["k"] or 1.0,
        alpha=given["alpha"], beta=given["beta"],
    )  # fmt: skip
    return _like_input(node, made)


def _padding(node: Layer) -> Expr:
    given = node.params
    constant = given["constant"]
    mode = "reflect" if given["reflection"] is not None else "constant"
    mode = "replicate" if given["replication"] is not None else mode
    return tensors.padded(node, node.input(), _borders(given["paddingAmounts"]), mode,
                          0.0 if constant is None else constant["value"])  # fmt: skip


def _crop(node: Layer) -> Expr:
    """Cut edges, or a part of the size of the second operand at an offset."""
    x, edges = node.input(), _borders(node.params["cropAmounts"])
    if len(node.inputs) > 1:
        offset = node.integers("offset", [0, 0])
        sizes = zip(offset, node.shape(x)[-2:], node.shape(node.input(1))[-2:], strict=False)
        edges = [edge for a, n, wanted in sizes for edge in (a, n - a - wanted)]
    return cropped(node, x, edges)


def _upsample(node: Layer) -> Expr:
    given, x = node.params, node.input()
    scales = [float(n) for n in given["fractionalScalingFactor"]]
    scales = scales or [float(n) for n in node.integers("scalingFactor", [1, 1])]
    if len(scales) != 2:
        node.fail("it has no two scales", got=repr(scales)[:100])
    size = scaled_size(node, x, scales)
    if given["mode"] == 0:
        return resized(node, x, size, "nearest_neighbor", "asymmetric")
    if not 0 <= given["linearUpsampleMode"] < len(_UPSAMPLING):
        node.fail("no such mode", got=str(given["linearUpsampleMode"]))
    return resized(node, x, size, "linear", _UPSAMPLING[given["linearUpsampleMode"]])


def _resize_bilinear(node: Layer) -> Expr:
    mode = node.params["mode"]
    number = 0 if mode is None else mode["samplingMethod"]
    if not 0 <= number < len(_SAMPLING):
        node.fail("no such sampling mode", got=str(number))
    size = _pair(node, "targetSize", 1)
    return resized(node, node.input(), size, "linear", _SAMPLING[number])


def _reorganize(node: Layer) -> Expr:
    given = node.params
    if given["mode"] not in (0, 1, 2):
        node.fail("no such mode", got=str(given["mode"]))
    name = "nn.depth_to_space" if given["mode"] else "nn.space_to_depth"
    attrs = {"mode": "CRD"} if given["mode"] == 2 else {}
    made = node.call(name, _images(node), block_size=given["blockSize"], layout="NCHW", **attrs)
    return _like_input(node, made)


def _l2_normalize(node: Layer) -> Expr:
    return norms.l2_norm(node, node.input(), node.params["epsilon"] or 1e-6)


TABLE: dict[str, LayerConverter] = {
    "convolution": _convolution, "pooling": _pooling, "batchnorm": _batchnorm, "mvn": _mvn,
    "lrn": _lrn, "padding": _padding, "crop": _crop, "upsample": _upsample,
    "resizeBilinear": _resize_bilinear, "reorganizeData": _reorganize,
    "l2normalize": _l2_normalize,
}  # fmt: skip
"""The converters of this module."""
