"""Products of matrices, normalisations, softmax and attention."""

from __future__ import annotations

from dlcompiler.graph.frontends.coreml import norms
from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.ir import Expr


def _affine(node: Operation) -> norms.Affine:
    gamma, beta = (node.input(name) if node.has(name) else None for name in ("gamma", "beta"))
    return gamma, beta


def _linear(node: Operation) -> Expr:
    made = node.call("nn.dense", node.input(), node.input("weight"))
    return node.call("add", made, node.input("bias")) if node.has("bias") else made


def _matmul(node: Operation) -> Expr:
    return node.call(
        "nn.matmul", node.input("x"), node.input("y"), transpose_a=node.flag("transpose_x"),
        transpose_b=node.flag("transpose_y"),
    )  # fmt: skip


def _einsum(node: Operation) -> Expr:
    return node.call("einsum", node.tuple(node.inputs_of("values")),
                     equation=node.text("equation"))  # fmt: skip


def _softmax(node: Operation) -> Expr:
    x = node.input()
    return node.call("nn.softmax", x, axis=node.axis(node.integer("axis", -1), node.rank(x)))


def _attention(node: Operation) -> Expr:
    operands = [node.input(name) for name in ("query", "key", "value", "attn_mask")
                if name != "attn_mask" or node.has(name)]  # fmt: skip
    return node.call("nn.scaled_dot_product_attention", *operands)


def _batch_norm(node: Operation) -> Expr:
    x = node.input()
    if node.rank(x) < 2:
        node.fail("its data have no channels", got=str(node.type(x)))
    gamma, beta = (
        node.input(name) if node.has(name) else norms.full(node, value, node.shape(x)[1], x)
        for name, value in (("gamma", 1), ("beta", 0))
    )
    made = node.call("nn.batch_norm", x, gamma, beta, node.input("mean"), node.input("variance"),
                     axis=1, epsilon=node.number("epsilon", 1e-5))  # fmt: skip
    return made[0]


def _instance_norm(node: Operation) -> Expr:
    return norms.instance_norm(node, node.input(), _affine(node), node.number("epsilon", 1e-5))


def _layer_norm(node: Operation) -> Expr:
    x = node.input()
    axes = node.integers("axes", range(node.rank(x)))
    return norms.layer_norm(node, x, axes, _affine(node), node.number("epsilon", 1e-5))


def _l2_norm(node: Operation) -> Expr:
    return norms.l2_norm(node, node.input(), node.number("epsilon", 1e-6))


def _lrn(node: Operation) -> Expr:
    return node.call(
        "nn.lrn", node.input(), size=node.integer("size"), axis=1, bias=node.number("k", 1.0),
        alpha=node.number("alpha", 1e-4), beta=node.number("beta", 0.75),
    )  # fmt: skip


TABLE: dict[str, OperationConverter] = {
    "linear": _linear, "matmul": _matmul, "einsum": _einsum, "softmax": _softmax,
    "scaled_dot_product_attention": _attention, "batch_norm": _batch_norm,
    "instance_norm": _instance_norm, "layer_norm": _layer_norm, "l2_norm": _l2_norm,
    "local_response_norm": _lrn,
}  # fmt: skip
"""The converters of this module."""
