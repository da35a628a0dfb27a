"""Layers of transformers that PyTorch computes by one operator when it needs no gradients."""

from __future__ import annotations

from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.ir import Expr


def _layer(node: AtenNode) -> Expr:
    """Return an encoder layer: attention, then two dense layers, each added to what it takes."""
    _refuse_masks(node)
    x = node.tensor("src")
    norm_first = bool(node["norm_first"])
    first = _normal(node, x, 1) if norm_first else x
    x = node.call("add", x, _attention(node, first))
    if not norm_first:
        x = _normal(node, x, 1)
    inner = _normal(node, x, 2) if norm_first else x
    wide = _dense(node, inner, "ffn_weight_1", "ffn_bias_1")
    active = node.call("nn.gelu" if node["use_gelu"] else "nn.relu", wide)
    x = node.call("add", x, _dense(node, active, "ffn_weight_2", "ffn_bias_2"))
    return x if norm_first else _normal(node, x, 2)


def _self_attention(node: AtenNode) -> list[Expr | None]:
    """Return the attention of a sequence to itself; the weights of its means are not computed."""
    _refuse_masks(node)
    query = node.tensor("query")
    if node.tensor("key") is not query or node.tensor("value") is not query:
        node.fail("its keys or values are not its queries")
    return [_attention(node, query), None]


def _refuse_masks(node: AtenNode) -> None:
    if node.get("mask") is not None:
        node.fail("it has a mask", hint="torch.backends.mha.set_fastpath_enabled(False)")


def _attention(node: AtenNode, x: Expr) -> Expr:
    """Return what each position reads from all others, by several heads."""
    heads = int(node["num_heads"] if "num_heads" in node.given else node["num_head"])
    batch, steps, size = node.shape(x)
    joined = _dense(node, x, "qkv_weight", "qkv_bias")
    parts = node.call("split", joined, indices_or_sections=(size, 2 * size), axis=2)
    q, k, v = (
        node.call("transpose", node.reshape(parts[n], (batch, steps, heads, size // heads)),
                  axes=(0, 2, 1, 3))
        for n in range(3)
    )  # fmt: skip
    read = node.call("nn.scaled_dot_product_attention", q, k, v)
    rows = node.reshape(node.call("transpose", read, axes=(0, 2, 1, 3)), (batch, steps, size))
    return _dense(node, rows, "proj_weight", "proj_bias")


def _dense(node: AtenNode, x: Expr, weight: str, bias: str) -> Expr:
    made = node.call("nn.dense", x, node.tensor(weight))
    return node.call("add", made, node.tensor(bias)) if node[bias] is not None else made


def _normal(node: AtenNode, x: Expr, number: int) -> Expr:
    scale, shift = (node.tensor(f"norm_{what}_{number}") for what in ("weight", "bias"))
    return node.call("nn.layer_norm", x, scale, shift, axis=-1, epsilon=float(node["eps"]))


TABLE: dict[str, Converter] = {
    "_transformer_encoder_layer_fwd": _layer, "_native_multi_head_attention": _self_attention,
}  # fmt: skip
"""The converters of this module."""
