"""Products, convolutions, softmax and attention."""

from __future__ import annotations

from dlcompiler.graph.frontends.origin import is_dequantized_weight
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.frontends.windows import LAYOUTS
from dlcompiler.graph.ir import Constant, Expr


def product(node: AtenNode, a: Expr, b: Expr) -> Expr:
    """Return a matrix product; one with a weight is a dense layer."""
    is_weight = isinstance(b, Constant) or is_dequantized_weight(b)
    if is_weight and node.rank(b) == 2 and node.rank(a) >= 2:
        return node.call("nn.dense", a, node.transposed(b, (1, 0)))
    return node.call("nn.matmul", a, b)


def _product(a: str, b: str) -> Converter:
    return lambda node: product(node, node.tensor(a), node.tensor(b))


def _matmul(node: AtenNode) -> Expr:
    a, b = node.tensor("self"), node.tensor("other")
    if node.rank(a) == 1:
        a = node.reshape(a, (1, *node.shape(a)))
    if node.rank(b) == 1:
        b = node.reshape(b, (*node.shape(b), 1))
    return node.reshape(product(node, a, b), node.out_shape)


def _dot(node: AtenNode) -> Expr:
    a, b = node.tensor("self"), node.tensor("vec" if "vec" in node.given else "tensor")
    rows = a if node.rank(a) == 2 else node.reshape(a, (1, *node.shape(a)))
    return node.reshape(
        product(node, rows, node.reshape(b, (*node.shape(b), 1))), node.out_shape
    )  # fmt: skip


def _added(node: AtenNode, made: Expr) -> Expr:
    """Return ``beta·self + alpha·product``."""
    alpha, beta = node.get("alpha", 1), node.get("beta", 1)
    dtype = node.out_dtype
    if alpha != 1:
        made = node.call("multiply", made, node.number(alpha, dtype))
    if beta == 0:
        return made
    bias = node.operand("self", dtype)
    if beta != 1:
        bias = node.call("multiply", bias, node.number(beta, dtype))
    return node.call("add", made, bias)


def _add_product(a: str, b: str) -> Converter:
    return lambda node: _added(node, product(node, node.tensor(a), node.tensor(b)))


def _linear(node: AtenNode) -> Expr:
    x, weight = node.tensor("input"), node.tensor("weight")
    if node.rank(weight) == 1:
        weight = node.reshape(weight, (1, *node.shape(weight)))
    rows = node.reshape(x, (1, *node.shape(x))) if node.rank(x) == 1 else x
    made = node.reshape(node.call("nn.dense", rows, weight), node.out_shape)
    bias = node["bias"]
    return made if bias is None else node.call("add", made, node.tensor("bias"))


def _convolution(node: AtenNode) -> Expr:
    x, weight = node.tensor("input"), node.tensor("weight")
    rank = node.rank(x) - 2
    if rank not in LAYOUTS:
        node.fail("the images have another number of dimensions", got=str(node.type(x)),
                  expected="3 to 5 dimensions")  # fmt: skip
    pads = node.listed("padding", rank, 0)
    attrs = {
        "strides": node.listed("stride", rank), "padding": (*pads, *pads),
        "dilation": node.listed("dilation", rank), "groups": int(node["groups"]),
        "data_layout": LAYOUTS[rank],
    }  # fmt: skip
    if any(n < 0 for n in pads):
        node.fail("its padding is negative", got=repr(pads))
    if node["transposed"]:
        attrs["output_padding"] = node.listed("output_padding", rank, 0)
        made = node.call(f"nn.conv{rank}d_transpose", x, weight, **attrs)
    else:
        made = node.call(f"nn.conv{rank}d", x, weight, **attrs)
    if node["bias"] is None:
        return made
    return node.call("nn.bias_add", made, node.tensor("bias"), axis=1)


def _softmax(name: str) -> Converter:
    def convert(node: AtenNode) -> Expr:
        x = node.operand("self", node.out_dtype)
        rank = node.rank(x)
        if not rank:
            x = node.reshape(x, (1,))
        made = node.call(name, x, axis=node.axis("dim", max(rank, 1)))
        return node.reshape(made, node.out_shape)

    return convert


def _attention(node: AtenNode) -> Expr:
    if node.get("dropout_p", 0.0):
        node.fail("it drops weights at random, as in training", hint="module.eval()")
    q, k, v = (node.tensor(name) for name in ("query", "key", "value"))
    q_shape, k_shape, v_shape = (node.shape(x) for x in (q, k, v))
    lead = node.out_shape[:-2]
    q = node.broadcast(q, (*lead, *q_shape[-2:]))
    if not node.get("enable_gqa", False):  # else, heads of queries share keys
        k = node.broadcast(k, (*lead, *k_shape[-2:]))
        v = node.broadcast(v, (*lead, *v_shape[-2:]))
    operands = [q, k, v]
    mask = node.get("attn_mask")
    if mask is not None:
        kind = node.dtype(node.tensor("attn_mask"))
        operands.append(node.operand("attn_mask", "bool" if kind == "bool" else node.out_dtype))
    scale = node.get("scale")
    return node.call(
        "nn.scaled_dot_product_attention", *operands, is_causal=bool(node.get("is_causal", False)),
        scale=None if scale is None else float(scale),
    )  # fmt: skip


def _fused_attention(node: AtenNode) -> list[Expr | None]:
    return [_attention(node), None]


def _embedding(node: AtenNode) -> Expr:
    return node.call("take", node.tensor("weight"), node.tensor("indices"), axis=0)


def _outer(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    a, b = node.operand("self", dtype), node.operand("vec2", dtype)
    return node.call("multiply", node.reshape(a, (*node.shape(a), 1)), b)


TABLE: dict[str, Converter] = {
    "mm": _product("self", "mat2"), "bmm": _product("self", "mat2"), "matmul": _matmul,
    "mv": _dot, "dot": _dot, "addmm": _add_product("mat1", "mat2"),
    "baddbmm": _add_product("batch1", "batch2"), "linear": _linear, "outer": _outer,
    "convolution": _convolution, "_softmax": _softmax("nn.softmax"),
    "_log_softmax": _softmax("nn.log_softmax"), "softmax": _softmax("nn.softmax"),
    "log_softmax": _softmax("nn.log_softmax"), "scaled_dot_product_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _fused_attention,
    "_scaled_dot_product_attention_math": _fused_attention, "embedding": _embedding,
}  # fmt: skip
"""The converters of this module."""
