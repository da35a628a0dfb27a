"""The products of attention; an operand has the queries, keys and values of each head together."""

from __future__ import annotations

import math

from dlcompiler.graph.frontends.mxnet.node import Converter, MxnetNode
from dlcompiler.graph.ir import Expr


def _part(node: MxnetNode, i: int, parts: int, place: int) -> Expr:
    """Return one of the parts of an operand as (batch · heads, steps, elements).

    The operand is (steps, batch, heads · parts · elements).
    """
    x, heads = node.input(i), node.integer("heads")
    steps, batch, width = node.shape(x)
    if heads < 1 or width % (heads * parts):
        node.fail("its elements are not divided by the heads", got=f"{width} by {heads} x {parts}")
    size = width // (heads * parts)
    split = node.reshape(x, (steps, batch * heads, parts, size))
    part = node.call("strided_slice", split, begin=(place,), end=(place + 1,), axes=(2,))
    return node.call("transpose", node.reshape(part, (steps, batch * heads, size)), axes=(1, 0, 2))


def _scores(node: MxnetNode, query: Expr, key: Expr) -> Expr:
    scale = 1 / math.sqrt(max(node.shape(query)[2], 1))
    scaled = node.call("multiply", query, node.scalar(scale, query))
    return node.call("nn.matmul", scaled, key, transpose_b=True)


def _mixed(node: MxnetNode, value: Expr) -> Expr:
    """Return the values of the steps, each times its weight, as (steps, batch, elements)."""
    made = node.call("transpose", node.call("nn.matmul", node.input(1), value), axes=(1, 0, 2))
    steps, rows, size = node.shape(made)
    heads = node.integer("heads")
    return node.reshape(made, (steps, rows // heads, heads * size))


def _self_scores(node: MxnetNode) -> Expr:
    return _scores(node, _part(node, 0, 3, 0), _part(node, 0, 3, 1))


def _self_mixed(node: MxnetNode) -> Expr:
    return _mixed(node, _part(node, 0, 3, 2))


def _other_scores(node: MxnetNode) -> Expr:
    return _scores(node, _part(node, 0, 1, 0), _part(node, 1, 2, 0))


def _other_mixed(node: MxnetNode) -> Expr:
    return _mixed(node, _part(node, 0, 2, 1))


def _over_root(node: MxnetNode) -> Expr:
    """Divide by the root of the last extent."""
    x = node.input(0)
    root = math.sqrt(max(node.shape(x)[-1], 1))
    return node.call("divide", x, node.scalar(root, x))


TABLE: dict[str, Converter] = {
    "_contrib_interleaved_matmul_selfatt_qk": _self_scores,
    "_contrib_interleaved_matmul_selfatt_valatt": _self_mixed,
    "_contrib_interleaved_matmul_encdec_qk": _other_scores,
    "_contrib_interleaved_matmul_encdec_valatt": _other_mixed,
    "_contrib_div_sqrt_dim": _over_root,
}  # fmt: skip
"""The converters of this module."""
