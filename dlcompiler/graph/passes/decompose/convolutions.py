"""Convolutions of one and three dimensions, by convolutions of two."""

from __future__ import annotations

from typing import Any

from dlcompiler.graph.ir import Call, Expr, Tuple
from dlcompiler.graph.passes.decompose.rules import (
    Rule,
    Written,
    order_of,
    reshaped,
    turned,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, shape_of


def with_height(layout: str) -> str:
    """Return a layout of rows as one of images.

    Examples
    --------
    >>> with_height("NWC")
    'NHWC'
    """
    return layout.replace("W", "HW")


def as_images(old: Call, value: Expr, layout: str, suffix: str) -> Call:
    """Return rows as images of height 1."""
    axis = layout.index("W")
    return call_like(old, "expand_dims", value, suffix=suffix, axis=axis, num_newaxis=1)


def flat_attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of windows along rows as those over images of height 1."""
    found = dict(attrs)
    before, after = attrs["padding"]
    found["padding"] = (0, before, 0, after)
    for name, first in (
        ("strides", 1), ("dilation", 1), ("kernel_size", 1), ("pool_size", 1),
        ("output_padding", 0),
    ):  # fmt: skip
        if attrs.get(name) is not None:
            found[name] = (first, *attrs[name])
    for name in ("data_layout", "kernel_layout", "out_layout", "layout"):
        if name in attrs:
            found[name] = with_height(attrs[name])
    return found


def conv1d(call: Call, types: KnownTypes) -> Written | None:
    """Write a convolution along rows as one over images of height 1."""
    attrs = attrs_of(call)
    out_layout = attrs["out_layout"] or attrs["data_layout"]
    if not all(attrs[name].isalpha() for name in ("data_layout", "kernel_layout")):
        return None
    data = as_images(call, call.args[0], attrs["data_layout"], "image")
    weight = as_images(call, call.args[1], attrs["kernel_layout"], "weight")
    made = call_like(call, "nn.conv2d", data, weight, suffix="conv", **flat_attrs(attrs))
    del types
    return Written(
        "rows are images of height 1",
        call_like(call, "squeeze", made, axis=(out_layout.index("W"),)),
    )


def conv3d(call: Call, types: KnownTypes) -> Written | None:
    """Write a convolution over volumes as one over slices.

    The channels of a slice are those of all slices that a window reads.
    """
    attrs = attrs_of(call)
    shape, kernel = shape_of(call.args[0], types), shape_of(call.args[1], types)
    layout, out_layout = attrs["data_layout"], attrs["out_layout"] or attrs["data_layout"]
    if shape is None or kernel is None or attrs["groups"] > 1:
        return None
    if not all(text.isalpha() for text in (layout, attrs["kernel_layout"], out_layout)):
        return None
    data = turned(call, call.args[0], order_of(layout, "NDCHW"), "slices")
    weight = turned(call, call.args[1], order_of(attrs["kernel_layout"], "ODIHW"), "weight")
    n, depth, c, h, w = (shape[axis] for axis in order_of(layout, "NDCHW"))
    o, taps, _, kh, kw = (kernel[axis] for axis in order_of(attrs["kernel_layout"], "ODIHW"))
    before, after = attrs["padding"][0], attrs["padding"][3]
    step, distance = attrs["strides"][0], attrs["dilation"][0]
    out = (depth + before + after - (taps - 1) * distance - 1) // step + 1
    if out < 1 or before < 0 or after < 0:
        return None
    if before or after:
        data = call_like(call, "nn.pad", data, suffix="padded",
                         pad_width=((0, 0), (before, after), (0, 0), (0, 0), (0, 0)))  # fmt: skip
    parts = [
        call_like(
            call, "strided_slice", data, suffix=f"slice{tap}", axes=(1,), begin=(tap * distance,),
            end=(tap * distance + (out - 1) * step + 1,), strides=(step,),
        )
        for tap in range(taps)
    ]  # fmt: skip
    joined = parts[0] if taps == 1 else _concatenated(call, parts, 2)
    images = reshaped(call, joined, (n * out, taps * c, h, w), "images")
    made = call_like(
        call, "nn.conv2d", images, reshaped(call, weight, (o, taps * c, kh, kw), "matrix"),
        suffix="conv", strides=attrs["strides"][1:], dilation=attrs["dilation"][1:],
        padding=(*attrs["padding"][1:3], *attrs["padding"][4:]), out_dtype=attrs["out_dtype"],
    )  # fmt: skip
    found = types.tensor(call).shape
    rows, columns = (found[out_layout.index(letter)] for letter in "HW")
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    volumes = reshaped(call, made, (n, out, o, rows, columns), "volumes")
    value = turned(call, volumes, order_of("NDCHW", out_layout), "")
    return Written("the slices that a window reads are channels of one slice", value)


def _concatenated(old: Call, parts: list[Call], axis: int) -> Call:
    return call_like(old, "concatenate", Tuple(tuple(parts)), suffix="joined", axis=axis)


RULES: dict[str, Rule] = {"nn.conv1d": conv1d, "nn.conv3d": conv3d}
"""Operator -> the rule for its calls."""
