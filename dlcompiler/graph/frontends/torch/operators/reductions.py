"""Operators that combine elements along dimensions, sort them, or add them up one by one."""

from __future__ import annotations

import math

from dlcompiler import dtypes
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.ir import Expr


def _reduced(
    node: AtenNode, name: str, x: Expr, axes: tuple[int, ...], *, keeps: bool = False
) -> Expr:
    if not node.rank(x):
        return x
    if node.dtype(x) == "bool":  # the largest and the smallest of truth values
        name = {"max": "any", "min": "all"}.get(name, name)
    return node.call(name, x, axis=axes, keepdims=keeps)


def _reduction(name: str) -> Converter:
    """Return the converter of a reduction, which computes in the dtype of its result."""

    def convert(node: AtenNode) -> Expr:
        x = node.operand("self", node.out_dtype)
        axes = node.axes("dim", node.rank(x))
        return _reduced(node, name, x, axes, keeps=bool(node.get("keepdim", False)))

    return convert


def _of_truths(name: str) -> Converter:
    """Return the converter of a question about truth values; of uint8, the answer is uint8."""

    def convert(node: AtenNode) -> Expr:
        x = node.operand("self", "bool")
        axes = node.axes("dim", node.rank(x))
        made = _reduced(node, name, x, axes, keeps=bool(node.get("keepdim", False)))
        return node.cast(made, node.out_dtype)

    return convert


def _extreme(name: str) -> Converter:
    """Return the converter of the largest or smallest elements; of one dimension, their places."""

    def convert(node: AtenNode) -> Expr | list[Expr]:
        x = node.tensor("self")
        if isinstance(node.get("other"), Expr):
            dtype = node.out_dtype
            return node.call(f"{name}imum", node.cast(x, dtype), node.operand("other", dtype))
        if "dim" not in node.given:
            return _reduced(node, name, x, tuple(range(node.rank(x))))
        keeps, rank = bool(node["keepdim"]), node.rank(x)
        axis = node.axis("dim", rank)
        values = _reduced(node, name, x, (axis,), keeps=keeps)
        return [values, _places(node, f"arg{name}", x, axis, keeps=keeps)]

    return convert


def _places(node: AtenNode, name: str, x: Expr, axis: int, *, keeps: bool) -> Expr:
    """Return positions of the largest or smallest elements, as int64."""
    if not node.rank(x):
        return node.scalar(0, "int64")
    if node.dtype(x) == "bool":
        x = node.cast(x, "int8")
    return node.cast(node.call(name, x, axis=(axis,), keepdims=keeps), "int64")


def _position(name: str) -> Converter:
    def convert(node: AtenNode) -> Expr:
        x = node.tensor("self")
        if node["dim"] is None:
            flat = node.reshape(x, (math.prod(node.shape(x)),))
            return node.reshape(_places(node, name, flat, 0, keeps=False), node.out_shape)
        axis = node.axis("dim", node.rank(x))
        return _places(node, name, x, axis, keeps=bool(node["keepdim"]))

    return convert


def _mean(node: AtenNode) -> Expr:
    x = node.operand("self", node.out_dtype)
    axes = node.axes("dim", node.rank(x))
    return _reduced(node, "mean", x, axes, keeps=bool(node.get("keepdim", False)))


def moments(
    node: AtenNode, x: Expr, axes: tuple[int, ...], correction: float = 0.0
) -> tuple[Expr, Expr]:
    """Return the mean and the variance over dimensions, which are kept with extent 1."""
    dtype, shape = node.dtype(x), node.shape(x)
    count = math.prod(shape[axis] for axis in axes) - correction
    mean = _reduced(node, "mean", x, axes, keeps=True)
    squares = node.call("square", node.call("subtract", x, mean))
    total = _reduced(node, "sum", squares, axes, keeps=True)
    return mean, node.call("divide", total, node.number(max(count, 0.0), dtype))


def _variance(*, is_root: bool, has_mean: bool) -> Converter:
    def convert(node: AtenNode) -> Expr | list[Expr]:
        x = node.operand("self", node.out_dtype)
        correction = node.get("correction")
        if correction is None:
            correction = 1 if node.get("unbiased") in (None, True) else 0
        axes = node.axes("dim", node.rank(x))
        mean, spread = moments(node, x, axes, float(correction))
        if is_root:
            spread = node.call("sqrt", spread)
        spread = node.reshape(spread, node.out_shape)
        return [spread, node.reshape(mean, node.out_shape)] if has_mean else spread

    return convert


def _logsumexp(node: AtenNode) -> Expr:
    x = node.operand("self", node.out_dtype)
    if not node.rank(x):
        return node.call("copy", x)
    return node.call("logsumexp", x, axis=node.axes("dim", node.rank(x)),
                     keepdims=bool(node["keepdim"]))  # fmt: skip


def _vector_norm(node: AtenNode) -> Expr:
    x = node.operand("self", node.out_dtype)
    axes, keeps = node.axes("dim", node.rank(x)), bool(node["keepdim"])
    return node.reshape(_norm(node, x, float(node["ord"]), axes, keeps=keeps), node.out_shape)


def _distances(node: AtenNode) -> Expr:
    """Return the distances of all pairs of rows."""
    a, b = node.tensor("x1"), node.tensor("x2")
    a_shape, b_shape = node.shape(a), node.shape(b)
    a = node.reshape(a, (*a_shape[:-1], 1, a_shape[-1]))
    b = node.reshape(b, (*b_shape[:-2], 1, *b_shape[-2:]))
    apart = node.call("subtract", a, b)
    return _norm(node, apart, float(node["p"]), (node.rank(apart) - 1,), keeps=False)


def _distance(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    apart = node.call("subtract", node.operand("self", dtype), node.operand("other", dtype))
    axes = tuple(range(node.rank(apart)))
    return node.reshape(_norm(node, apart, float(node["p"]), axes, keeps=False), ())


def _norm(node: AtenNode, x: Expr, order: float, axes: tuple[int, ...], *, keeps: bool) -> Expr:
    """Return (Σ|x|**order)**(1/order), or what it tends to for 0 and infinity."""
    if not node.rank(x):
        x, axes = node.reshape(x, (1,)), (0,)
    if order == 0:
        is_some = node.call("not_equal", x, node.number(0, node.out_dtype))
        made = _reduced(node, "sum", node.cast(is_some, node.out_dtype), axes, keeps=keeps)
    elif math.isinf(order):
        made = _reduced(node, "max" if order > 0 else "min", node.call("abs", x), axes, keeps=keeps)
    elif order < 0:
        powers = node.call("power", node.call("abs", x), node.number(order, node.out_dtype))
        total = _reduced(node, "sum", powers, axes, keeps=keeps)
        made = node.call("power", total, node.number(1 / order, node.out_dtype))
    else:
        made = node.call("norm", x, ord=order, axis=axes, keepdims=keeps)
    return made


def _running(name: str) -> Converter:
    def convert(node: AtenNode) -> Expr:
        x = node.operand("self", node.out_dtype)
        if not node.rank(x):
            return node.call("copy", x)
        return node.call(name, x, axis=node.axis("dim", node.rank(x)))

    return convert


def _sort(node: AtenNode) -> list[Expr]:
    x = node.tensor("self")
    if not node.rank(x):
        return [node.call("copy", x), node.scalar(0, "int64")]
    axis, descending = node.axis("dim", node.rank(x)), bool(node["descending"])
    wide = node.cast(x, "int8") if node.dtype(x) == "bool" else x
    values = node.call("sort", wide, axis=axis, is_ascend=not descending)
    places = node.call("argsort", wide, axis=axis, is_ascend=not descending, dtype="int64")
    return [node.cast(values, node.out_dtype), places]


def _top_k(node: AtenNode) -> list[Expr]:
    x = node.tensor("self")
    if not node.rank(x):
        return [node.call("copy", x), node.scalar(0, "int64")]
    if not node["k"]:  # to `topk`, it would mean all
        return [
            node.call("full", node.number(0, kind), shape=node.out_shape, dtype=kind)
            for kind in (node.out_dtype, "int64")
        ]
    found = node.call(
        "topk", x, k=int(node["k"]), axis=node.axis("dim", node.rank(x)), ret_type="both",
        is_ascend=not node["largest"], dtype="int64",
    )  # fmt: skip
    return [found[0], found[1]]


def _searchsorted(node: AtenNode) -> Expr:
    rows, values = node.tensor("sorted_sequence"), node.get("self")
    if not isinstance(values, Expr) or node.get("sorter") is not None:
        node.fail("it searches for a number, or in another order")
    dtype = node.common_dtype("sorted_sequence", "self")
    right = bool(node.get("right")) or node.get("side") == "right"
    if not dtypes.is_float(dtype):
        rows, values = node.cast(rows, dtype), node.cast(values, dtype)
    return node.call("searchsorted", rows, values, right=right, dtype=node.out_dtype)


TABLE: dict[str, Converter] = {
    "sum": _reduction("sum"), "prod": _reduction("prod"), "amax": _reduction("max"),
    "amin": _reduction("min"), "mean": _mean, "any": _of_truths("any"), "all": _of_truths("all"),
    "max": _extreme("max"), "min": _extreme("min"), "argmax": _position("argmax"),
    "argmin": _position("argmin"), "var": _variance(is_root=False, has_mean=False),
    "std": _variance(is_root=True, has_mean=False),
    "var_mean": _variance(is_root=False, has_mean=True),
    "std_mean": _variance(is_root=True, has_mean=True), "logsumexp": _logsumexp,
    "linalg_vector_norm": _vector_norm, "_cdist_forward": _distances, "dist": _distance,
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"), "sort": _sort, "topk": _top_k, "searchsorted": _searchsorted,
}  # fmt: skip
"""The converters of this module."""
