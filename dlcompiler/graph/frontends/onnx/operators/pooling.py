"""Pooling, and the windows of it and of convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.ir import Expr

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""Number of spatial dimensions -> layout of the images."""


def spatial_rank(node: Node, x: Expr) -> int:
    """Return the number of spatial dimensions of images."""
    rank = node.rank(x) - 2
    if rank not in LAYOUTS:
        node.fail("the images have another number of dimensions", got=str(node.type(x)),
                  expected="3 to 5 dimensions")  # fmt: skip
    return rank


def pads_of(
    node: Node, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:  # fmt: skip
    """Return the elements before and after the images, as an attribute or a rule gives them."""
    rank = len(kernel)
    rule = str(node.attr("auto_pad", "NOTSET"))
    if rule in ("NOTSET", "VALID", ""):
        pads = node.attr("pads") if rule != "VALID" else None
        found = tuple(pads) if pads else (0,) * (2 * rank)
        if len(found) != 2 * rank:
            node.fail("it has another number of pads than twice the dimensions", got=repr(found))
        return found
    if rule not in ("SAME_UPPER", "SAME_LOWER"):
        node.fail("no such rule of padding", got=repr(rule))
    before, after = [], []
    for size, k, step, d in zip(sizes, kernel, strides, dilation, strict=True):
        total = max((-(-size // step) - 1) * step + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        before.append(large if rule == "SAME_LOWER" else small)
        after.append(small if rule == "SAME_LOWER" else large)
    return (*before, *after)


def listed(node: Node, name: str, rank: int) -> tuple[int, ...]:
    """Return an attribute with a number for each spatial dimension; by default ones."""
    found = tuple(node.attr(name) or (1,) * rank)
    if len(found) != rank or any(n < 1 for n in found):
        node.fail(f"{name} does not fit the images", got=repr(found))
    return found


def _pool(kind: str) -> Callable[[Node], Any]:
    def convert(node: Node) -> Any:
        x = node.input(0)
        rank = spatial_rank(node, x)
        kernel = listed(node, "kernel_shape", rank)
        strides, dilation = listed(node, "strides", rank), listed(node, "dilations", rank)
        sizes = node.shape(x)[2:] if str(node.attr("auto_pad", "NOTSET")) != "NOTSET" else ()
        attrs: dict[str, Any] = {
            "pool_size": kernel, "strides": strides, "dilation": dilation,
            "padding": pads_of(node, sizes, kernel, strides, dilation),
            "layout": LAYOUTS[rank], "ceil_mode": bool(node.attr("ceil_mode", 0)),
        }  # fmt: skip
        if kind == "avg":
            attrs["count_include_pad"] = bool(node.attr("count_include_pad", 0))
        if kind == "lp":
            attrs["p"] = float(node.attr("p", 2))
        made = node.call(f"nn.{kind}_pool{rank}d", x, **attrs)
        return [made, None] if kind == "max" else made

    return convert


def _global(kind: str) -> Callable[[Node], Any]:
    def convert(node: Node) -> Expr:
        x = node.input(0)
        rank = spatial_rank(node, x)
        return node.call(f"nn.global_{kind}_pool{rank}d", x, layout=LAYOUTS[rank])

    return convert


def _global_lp(node: Node) -> Expr:
    x = node.input(0)
    axes = tuple(range(2, node.rank(x)))
    return node.call("norm", x, ord=float(node.attr("p", 2)), axis=axes, keepdims=True)


TABLE: dict[str, Callable[[Node], Any]] = {
    "MaxPool": _pool("max"), "AveragePool": _pool("avg"), "LpPool": _pool("lp"),
    "GlobalMaxPool": _global("max"), "GlobalAveragePool": _global("avg"),
    "GlobalLpPool": _global_lp,
}  # fmt: skip
"""The converters of this module."""
