"""Operators that combine elements along dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler.graph.frontends.onnx.node import Converter, Node
from dlcompiler.graph.ir import Expr


def _axes(node: Node, rank: int, since: int) -> tuple[int, ...] | None:
    """Return the axes of a reduction; None if it does nothing."""
    axes = node.listed("axes", 1, since)
    if not axes:
        if node.attr("noop_with_empty_axes", 0):
            return None
        return tuple(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        node.fail("there is no such axis", got=f"axes {axes} of {rank} dimensions")
    return tuple(axis % rank for axis in axes)


def _reduction(
    name: str, since: int, before: str = "", after: str = ""
) -> Converter:  # fmt: skip
    """Return the converter of a reduction, with functions before and after it."""

    def convert(node: Node) -> Expr:
        x = node.input(0)
        axes = _axes(node, node.rank(x), since)
        if before:
            x = node.call(before, x)
        keeps = bool(node.attr("keepdims", 1))
        if axes is not None and (axes or node.rank(x)):
            x = _reduced(node, name, x, axes, keeps)
        if after:
            x = node.call(after, x)
        return x if before or after or axes is not None else node.call("copy", x)

    return convert


def _reduced(node: Node, name: str, x: Expr, axes: tuple[int, ...], keeps: bool) -> Expr:
    if node.dtype(x) == "bool":  # the largest and the smallest of truth values
        name = {"max": "any", "min": "all"}.get(name, name)
    return node.call(name, x, axis=axes, keepdims=keeps)


def _log_sum_exp(node: Node) -> Expr:
    x = node.input(0)
    axes = _axes(node, node.rank(x), 18)
    if axes is None:
        return node.call("log", node.call("exp", x))
    return node.call("logsumexp", x, axis=axes, keepdims=bool(node.attr("keepdims", 1)))


def _position(name: str) -> Converter:
    def convert(node: Node) -> Expr:
        x = node.input(0)
        found = node.call(
            name, x, axis=(node.axis(0, node.rank(x)),), keepdims=bool(node.attr("keepdims", 1)),
            select_last_index=bool(node.attr("select_last_index", 0)),
        )  # fmt: skip
        return node.cast(found, "int64")

    return convert


def _running(name: str) -> Converter:
    def convert(node: Node) -> Expr:
        x = node.input(0)
        rank = node.rank(x)
        axis = int(node.constant(1, "the axis").reshape(-1)[0]) % max(rank, 1)
        turned = bool(node.attr("reverse", 0))
        if turned:
            x = node.call("reverse", x, axis=axis)
        x = node.call(name, x, axis=axis, exclusive=bool(node.attr("exclusive", 0)))
        return node.call("reverse", x, axis=axis) if turned else x

    return convert


TABLE: dict[str, Callable[[Node], Any]] = {
    "ReduceSum": _reduction("sum", 13), "ReduceMean": _reduction("mean", 18),
    "ReduceMax": _reduction("max", 18), "ReduceMin": _reduction("min", 18),
    "ReduceProd": _reduction("prod", 18), "ReduceL1": _reduction("sum", 18, "abs"),
    "ReduceL2": _reduction("sum", 18, "square", "sqrt"),
    "ReduceSumSquare": _reduction("sum", 18, "square"),
    "ReduceLogSum": _reduction("sum", 18, after="log"), "ReduceLogSumExp": _log_sum_exp,
    "ArgMax": _position("argmax"), "ArgMin": _position("argmin"), "CumSum": _running("cumsum"),
    "CumProd": _running("cumprod"),
}  # fmt: skip
"""The converters of this module."""
