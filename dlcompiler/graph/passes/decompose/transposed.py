"""Transposed convolutions, by convolutions whose channels are the places between the pixels.

With a stride of s, the result at ``s * q + r`` reads the elements ``r, r + s, r + 2 s …`` of the
kernel, and the pixels ``q, q - 1, q - 2 …``. For each r this is a convolution of its own over the
same windows: so one convolution has the results of all r as channels, which then take their places
between each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler.graph.ir import Call, Expr
from dlcompiler.graph.passes.decompose import convolutions
from dlcompiler.graph.passes.decompose.convolutions import as_images, flat_attrs
from dlcompiler.graph.passes.decompose.rules import (
    Rule,
    Written,
    order_of,
    reshaped,
    turned,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, shape_of

_SPATIAL = {2: "HW", 3: "DHW"}


@dataclass(frozen=True, slots=True)
class _Places:
    """The results along one dimension, as windows over the pixels.

    Examples
    --------
    >>> places = _Places.of(size=4, kernel=4, stride=2, cut=1, out=8)
    >>> places.taps, places.before, places.after, places.windows, places.start
    (2, 1, 1, 5, 1)
    """

    stride: int
    taps: int
    """Pixels that a result reads."""
    before: int
    """Padding before the pixels."""
    after: int
    """Padding after them."""
    windows: int
    """Windows over the padded pixels; each has `stride` results."""
    start: int
    """The first result that is kept."""
    out: int
    """How many are kept."""

    @staticmethod
    def of(size: int, kernel: int, stride: int, cut: int, out: int) -> _Places:
        """Return the places; `cut` results are cut off before the `out` ones that are kept."""
        taps = -(-kernel // stride)
        first, last = cut // stride, (cut + out - 1) // stride
        before = max(taps - 1 - first, 0)
        first = taps - 1 - before
        after = max(last - (size - 1), 0)
        windows = size + before + after - taps + 1
        return _Places(stride, taps, before, after, windows, cut - first * stride, out)


def conv_transpose(call: Call, types: KnownTypes) -> Written | None:
    """Write a transposed convolution as a convolution for each place between pixels."""
    attrs, rank = attrs_of(call), len(attrs_of(call)["strides"])
    letters = _SPATIAL[rank]
    shape, kernel = shape_of(call.args[0], types), shape_of(call.args[1], types)
    out = shape_of(call, types)
    layout, stored = attrs["data_layout"], attrs["kernel_layout"]
    out_layout = attrs["out_layout"] or layout
    if shape is None or kernel is None or out is None:
        return None
    if not all(text.isalpha() for text in (layout, stored, out_layout)):
        return None
    if any(d > 1 for d in attrs["dilation"]):
        return None
    places = [
        _Places.of(
            shape[layout.index(letter)], kernel[stored.index(letter)], attrs["strides"][n],
            attrs["padding"][n], out[out_layout.index(letter)],
        )
        for n, letter in enumerate(letters)
    ]  # fmt: skip
    if any(place.windows < 1 or place.start < 0 for place in places):
        return None
    data = turned(call, call.args[0], order_of(layout, f"NC{letters}"), "images")
    weight = turned(call, call.args[1], order_of(stored, f"IO{letters}"), "weight")
    sizes = tuple(kernel[axis] for axis in order_of(stored, f"IO{letters}"))
    weights = _weights(call, weight, sizes, places, attrs["groups"])
    made = call_like(
        call, f"nn.conv{rank}d", data, weights, suffix="conv", groups=attrs["groups"],
        padding=(*(p.before for p in places), *(p.after for p in places)),
        out_dtype=attrs["out_dtype"],
    )  # fmt: skip
    images = _as_images(made, types)
    found = _in_place(call, images, shape[layout.index("N")], out[out_layout.index("C")], places)
    value = turned(call, found, order_of(f"NC{letters}", out_layout), "")
    return Written("each place between pixels is a channel of a convolution", value)


def _as_images(made: Call, types: KnownTypes) -> Expr:
    """Write a convolution over volumes as one over images, if there is a rule for it."""
    if attrs_of(made)["data_layout"] != "NCDHW":
        return made
    found = convolutions.conv3d(made, types)
    return made if found is None else found.value


def _weights(
    call: Call, weight: Expr, sizes: tuple[int, ...], places: list[_Places], groups: int
) -> Expr:
    """Turn weights ``(I, O, …)`` so that the elements of a place are a kernel of their own."""
    inner, outer, *kernel = sizes
    width = [(0, p.taps * p.stride - k) for p, k in zip(places, kernel, strict=True)]
    if any(after for _, after in width):
        weight = call_like(
            call, "nn.pad", weight, suffix="weight", pad_width=((0, 0), (0, 0), *width)
        )
    split = [extent for p in places for extent in (p.taps, p.stride)]
    parts: Expr = reshaped(call, weight, (groups, inner // groups, outer, *split), "parts")
    count = len(places)
    for n in range(count):
        if places[n].taps > 1:
            parts = call_like(call, "reverse", parts, suffix=f"turned{n}", axis=3 + 2 * n)
    rest, taps = [4 + 2 * n for n in range(count)], [3 + 2 * n for n in range(count)]
    parts = turned(call, parts, (0, 2, *rest, 1, *taps), "kernels")
    channels = groups * outer * math.prod(p.stride for p in places)
    return reshaped(call, parts, (channels, inner // groups, *(p.taps for p in places)), "matrix")


def _in_place(call: Call, made: Expr, n: int, channels: int, places: list[_Places]) -> Expr:
    """Put the channels of all places between each other, and cut off the edges."""
    count = len(places)
    value = made
    if any(p.stride > 1 for p in places):
        split = (n, channels, *(p.stride for p in places), *(p.windows for p in places))
        value = reshaped(call, value, split, "places")
        pairs = [axis for i in range(count) for axis in (2 + count + i, 2 + i)]
        value = turned(call, value, (0, 1, *pairs), "between")
        value = reshaped(call, value, (n, channels, *(p.windows * p.stride for p in places)), "all")
    if all(p.start == 0 and p.windows * p.stride == p.out for p in places):
        return value
    return call_like(
        call, "strided_slice", value, suffix="inside", axes=tuple(range(2, 2 + count)),
        begin=tuple(p.start for p in places), end=tuple(p.start + p.out for p in places),
        strides=(1,) * count,
    )  # fmt: skip


def conv1d_transpose(call: Call, types: KnownTypes) -> Written | None:
    """Write a transposed convolution along rows as one over images of height 1."""
    attrs = attrs_of(call)
    if not all(attrs[name].isalpha() for name in ("data_layout", "kernel_layout")):
        return None
    out_layout = attrs["out_layout"] or attrs["data_layout"]
    data = as_images(call, call.args[0], attrs["data_layout"], "image")
    weight = as_images(call, call.args[1], attrs["kernel_layout"], "weight")
    made = call_like(call, "nn.conv2d_transpose", data, weight, suffix="image",
                     **flat_attrs(attrs))  # fmt: skip
    found = conv_transpose(made, types)
    if found is None:
        return None
    value = call_like(call, "squeeze", found.value, axis=(out_layout.index("W"),))
    return Written(found.reason, value)


RULES: dict[str, Rule] = {
    "nn.conv1d_transpose": conv1d_transpose,
    "nn.conv2d_transpose": conv_transpose,
    "nn.conv3d_transpose": conv_transpose,
}
"""Operator -> the rule for its calls."""
