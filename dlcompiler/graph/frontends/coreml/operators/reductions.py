"""Reductions, sorted elements and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dlcompiler.graph.frontends.coreml.node import CoremlOrigin, Operation, OperationConverter
from dlcompiler.graph.ir import Expr


def _composed(before: str, name: str, after: str) -> Callable[..., Expr]:
    def reduce(node: CoremlOrigin, x: Expr, **attrs: Any) -> Expr:
        made = node.call(name, node.call(before, x) if before else x, **attrs)
        return node.call(after, made) if after else made

    return reduce


REDUCTIONS: Mapping[str, Callable[..., Expr]] = {
    "reduce_sum": _composed("", "sum", ""), "reduce_mean": _composed("", "mean", ""),
    "reduce_max": _composed("", "max", ""), "reduce_min": _composed("", "min", ""),
    "reduce_prod": _composed("", "prod", ""), "reduce_l1_norm": _composed("abs", "sum", ""),
    "reduce_l2_norm": _composed("", "norm", ""), "reduce_log_sum": _composed("", "sum", "log"),
    "reduce_log_sum_exp": _composed("", "logsumexp", ""),
    "reduce_sum_square": _composed("square", "sum", ""),
}  # fmt: skip
"""Name of a reduction of MIL -> what computes it."""


def reduced(node: CoremlOrigin, name: str, x: Expr, axes: Sequence[int], keepdims: bool) -> Expr:
    """Return a reduction over some of the dimensions."""
    return REDUCTIONS[name](node, x, axis=node.axes(axes, node.rank(x)), keepdims=keepdims)


def _reduction(name: str) -> OperationConverter:
    def convert(node: Operation) -> Expr:
        x = node.input()
        axes = node.integers("axes", range(node.rank(x)))
        return reduced(node, name, x, axes, node.flag("keep_dims"))

    return convert


def _position(name: str) -> OperationConverter:
    def convert(node: Operation) -> Expr:
        x = node.input()
        axis = node.axis(node.integer("axis", -1), node.rank(x))
        made = node.call(name, x, axis=(axis,), keepdims=node.flag("keep_dims"))
        return node.cast(made, node.out_dtype)

    return convert


def _topk(node: Operation) -> list[Expr]:
    found = node.call(
        "topk", node.input(), k=node.integer("k", 1), axis=node.integer("axis", -1),
        ret_type="both", is_ascend=node.flag("ascending"), dtype="int32",
    )  # fmt: skip
    if not node.flag("return_indices", True):
        return [found[0]]
    return [found[0], node.cast(found[1], node.results[-1][0])]


def _argsort(node: Operation) -> Expr:
    return node.call("argsort", node.input(), axis=node.integer("axis", -1),
                     is_ascend=node.flag("ascending"), dtype="int32")  # fmt: skip


def _cumsum(node: Operation) -> Expr:
    x = node.input()
    axis = node.axis(node.integer("axis", 0), node.rank(x))
    is_turned = node.flag("reverse")
    if is_turned:
        x = node.call("reverse", x, axis=axis)
    x = node.call("cumsum", x, axis=axis, exclusive=node.flag("exclusive"))
    return node.call("reverse", x, axis=axis) if is_turned else x


TABLE: dict[str, OperationConverter] = {
    **{name: _reduction(name) for name in REDUCTIONS},
    "reduce_argmax": _position("argmax"), "reduce_argmin": _position("argmin"), "topk": _topk,
    "argsort": _argsort, "cumsum": _cumsum,
}  # fmt: skip
"""The converters of this module."""
