"""Layers that pool, resize, cut and join images in the layout NCHW."""

from __future__ import annotations

from typing import Any

from dlcompiler.graph.frontends.darknet.node import Converter, DarknetNode
from dlcompiler.graph.ir import Expr


def _pool(kind: str) -> Converter:
    def convert(node: DarknetNode) -> Expr:
        """Pool windows; the smaller half of the padding comes first."""
        x, stride = node.image(), node.integer("stride", 1)
        size = node.integer("size", stride)
        padding = node.integer("padding", size - 1, low=0)
        node.without("maxpool_depth", "maxpool_zero_nonmax", "antialiasing")
        before, after = padding // 2, padding - padding // 2
        if after >= size:
            node.fail("its padding is as large as its windows", got=str(padding),
                      expected=f"at most {2 * size - 2}")  # fmt: skip
        attrs: dict[str, Any] = {"count_include_pad": False} if kind == "avg" else {}
        return node.call(
            f"nn.{kind}_pool2d", x, pool_size=(size, size), padding=(before, before, after, after),
            strides=(node.integer("stride_y", stride), node.integer("stride_x", stride)), **attrs,
        )  # fmt: skip

    return convert


def _avgpool(node: DarknetNode) -> Expr:
    return node.call("nn.global_avg_pool2d", node.image())


def _upsample(node: DarknetNode) -> Expr:
    x, stride, scale = node.image(), node.integer("stride", 2), node.number("scale", 1)
    made = node.call("nn.upsampling", x, scale_h=float(stride), scale_w=float(stride))
    return made if scale == 1 else node.call("multiply", made, node.scalar(scale, made))


def _reorg(node: DarknetNode) -> Expr:
    """Move blocks of pixels into channels, or back if ``reverse`` is set.

    Without ``reverse``, Darknet takes the image for one with fewer channels and more pixels (c/s²,
    h·s, w·s), moves blocks of that one, and takes the result for one of the right shape.
    """
    x, stride = node.image(), node.integer("stride", 1)
    node.without("flatten", "extra")
    count, channels, height, width = node.shape(x)
    is_reverse, square = node.flag("reverse"), stride * stride
    if channels % square or (not is_reverse and (height % stride or width % stride)):
        node.fail("its image cannot be divided into blocks", got=f"{channels}x{height}x{width}",
                  expected=f"channels in multiples of {square}, pixels of {stride}")  # fmt: skip
    if is_reverse:
        return node.call("nn.depth_to_space", x, block_size=stride)
    wide = node.reshape(x, (count, channels // square, height * stride, width * stride))
    made = node.call("nn.space_to_depth", wide, block_size=stride)
    return node.reshape(made, (count, channels * square, height // stride, width // stride))


def _reorg3d(node: DarknetNode) -> Expr:
    node.without("reverse")
    return node.call("nn.space_to_depth", node.image(), block_size=node.integer("stride", 1))


def _route(node: DarknetNode) -> Expr:
    """Return the channels of several layers; with groups, one group of each of them."""
    values = node.before("layers")
    groups, place = node.integer("groups", 1), node.integer("group_id", 0, low=0)
    if any(node.rank(value) == 2 for value in values):
        values = [node.vector(value) for value in values]
    if len({node.shape(value)[2:] for value in values}) > 1:
        node.fail("its layers have images of different sizes",
                  got=", ".join(str(node.type(value)) for value in values)[:200])  # fmt: skip
    if place >= groups or any(node.shape(value)[1] % groups for value in values):
        node.fail("its channels have no such group", got=f"group {place} of {groups}")
    if groups > 1:
        values = [_group(node, value, groups, place) for value in values]
    return values[0] if len(values) == 1 else node.call(
        "concatenate", node.tuple(values), axis=1
    )  # fmt: skip


def _group(node: DarknetNode, value: Expr, groups: int, place: int) -> Expr:
    size = node.shape(value)[1] // groups
    return node.call("strided_slice", value, begin=(place * size,), end=(place * size + size,),
                     axes=(1,))  # fmt: skip


def _shortcut(node: DarknetNode) -> Expr:
    """Add images of other layers, of which the first channels count."""
    x, others = node.image(), [node.image(value) for value in node.before("from")]
    alpha, beta = node.number("alpha", 1), node.number("beta", 1)
    for key in ("weights_type", "weights_normalization"):
        if node.text(key, "none") != "none":
            node.fail(f"option {key} is not supported", got=node.options[key][:100],
                      expected="none")  # fmt: skip
    shapes = {node.shape(value)[1:] for value in (x, *others)}
    if (alpha != 1 and len(shapes) > 1) or (
        len(others) > 1 and len({shape[1:] for shape in shapes}) > 1
    ):
        node.fail("its images have different sizes", got=", ".join(map(str, shapes))[:200])
    if alpha != 1:
        x = node.call("multiply", x, node.scalar(alpha, x))
    for other in others:
        if beta != 1:
            other = node.call("multiply", other, node.scalar(beta, other))
        x = node.call("add", x, _fitted(node, other, node.shape(x)))
    return node.activated(x, "linear")


def _fitted(node: DarknetNode, value: Expr, wanted: tuple[int, ...]) -> Expr:
    """Return an image with other channels and pixels: left out, or zeros between and after.

    **Source:** ``shortcut_cpu`` of Darknet.
    """
    shape = node.shape(value)
    if shape == wanted:
        return value
    strides = [max(have // want, 1) for have, want in zip(shape[2:], wanted[2:], strict=True)]
    samples = [max(want // have, 1) for have, want in zip(shape[2:], wanted[2:], strict=True)]
    if strides[0] != strides[1] or samples[0] != samples[1]:
        node.fail("its images have another ratio of sides", got=str(shape), expected=str(wanted))
    kept = [min(have, want) for have, want in zip(shape[1:], wanted[1:], strict=True)]
    ends = (kept[0], *((n - 1) * strides[0] + 1 for n in kept[1:]))
    value = node.call("strided_slice", value, begin=(0, 0, 0), end=ends, axes=(1, 2, 3),
                      strides=(1, *strides))  # fmt: skip
    if samples[0] > 1:
        value = node.call("nn.dilate", value, strides=(1, 1, *samples))
    missing = [want - have for have, want in zip(node.shape(value), wanted, strict=True)]
    if any(missing):
        value = node.call("nn.pad", value, node.scalar(0, value),
                          pad_width=tuple((0, n) for n in missing))  # fmt: skip
    return value


def _scaled_channels(node: DarknetNode) -> Expr:
    """Multiply the image of another layer by a number for each channel."""
    x, (other, *_) = node.image(), node.before("from")
    node.without("scale_wh")
    other = node.image(other)
    if node.shape(x) != (*node.shape(other)[:2], 1, 1):
        node.fail("it needs a number for each channel", got=str(node.type(x)))
    return node.activated(node.call("multiply", other, x), "linear")


def _sam(node: DarknetNode) -> Expr:
    """Multiply by the elements of another layer."""
    x, (other, *_) = node.image(), node.before("from")
    other = node.image(other)
    if node.shape(x) != node.shape(other):
        node.fail("its images have different sizes", got=f"{node.type(x)}, {node.type(other)}")
    return node.activated(node.call("multiply", x, other), "linear")


TABLE: dict[str, Converter] = {
    "maxpool": _pool("max"), "local_avgpool": _pool("avg"), "avgpool": _avgpool,
    "upsample": _upsample, "reorg": _reorg, "reorg3d": _reorg3d, "route": _route,
    "shortcut": _shortcut, "scale_channels": _scaled_channels, "sam": _sam,
}  # fmt: skip
"""The converters of this module."""
