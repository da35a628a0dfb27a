"""Operators of graphs beside PyTorch, where it is installed; it is no dependency.

Both compute in float64. The bound is that of `te.tolerance` for each of them. A function of the
table returns None for a call that PyTorch has no operator for: other layouts, asymmetric padding,
and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.ir.numeric import quiet
from dlcompiler.te.evaluation.evaluate import evaluate_within
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of, defined, flat, read_by
from tests.graph.operators.operator_cases import value_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
F = torch.nn.functional

_ORDERS = {
    "layout": ("NCW", "NCHW", "NCDHW"), "data_layout": ("NCW", "NCHW", "NCDHW"),
    "out_layout": ("",), "kernel_layout": ("OIW", "OIHW", "OIDHW", "IOW", "IOHW", "IODHW"),
}  # fmt: skip


def _is_plain(attrs: Any) -> bool:
    """Tell whether images and weights are in the order of PyTorch."""
    return all(attrs[name] in order for name, order in _ORDERS.items() if name in attrs)


def _padding(attrs: Any) -> Any:
    """Return the padding if it is the same on both sides."""
    pads = attrs["padding"]
    half = len(pads) // 2
    return pads[:half] if pads[:half] == pads[half:] else None


def _conv(rank: int) -> Any:
    function = getattr(F, f"conv{rank}d")

    def apply(attrs: Any, x: Any, w: Any) -> Any:
        if not _is_plain(attrs) or attrs["out_dtype"] or 0 in w.shape:
            return None
        pads, half = attrs["padding"], len(attrs["padding"]) // 2
        edges = [n for k in reversed(range(half)) for n in (pads[k], pads[half + k])]
        return function(
            F.pad(x, edges), w, None, attrs["strides"], 0, attrs["dilation"], attrs["groups"]
        )

    return apply


def _conv_transpose(rank: int) -> Any:
    function = getattr(F, f"conv_transpose{rank}d")

    def apply(attrs: Any, x: Any, w: Any) -> Any:
        pads = _padding(attrs)
        if not _is_plain(attrs) or attrs["out_dtype"] or pads is None:
            return None
        return function(
            x, w, None, attrs["strides"], pads, attrs["output_padding"], attrs["groups"],
            attrs["dilation"],
        )  # fmt: skip

    return apply


def _window(attrs: Any) -> Any:
    """Return extents and strides of windows; for one dimension `lp_pool1d` takes numbers."""
    size, strides = attrs["pool_size"], attrs["strides"]
    return (size[0], strides[0]) if len(size) == 1 else (size, strides)


def _pool(kind: str, rank: int) -> Any:
    function = getattr(F, f"{kind}_pool{rank}d")

    def apply(attrs: Any, x: Any) -> Any:
        pads = _padding(attrs)
        if not _is_plain(attrs) or pads is None or 0 in x.shape:
            return None
        if any(2 * p > k for p, k in zip(pads, attrs["pool_size"], strict=True)):
            return None
        if kind == "max":
            return function(x, attrs["pool_size"], attrs["strides"], pads, attrs["dilation"],
                            attrs["ceil_mode"])  # fmt: skip
        if any(n != 1 for n in attrs["dilation"]):
            return None
        if kind == "lp":
            return (
                None if any(pads) else function(x, attrs["p"], *_window(attrs), attrs["ceil_mode"])
            )
        return function(x, attrs["pool_size"], attrs["strides"], pads, attrs["ceil_mode"],
                        attrs["count_include_pad"])  # fmt: skip

    return apply


def _pool_to(kind: str, rank: int, size: Any = None) -> Any:
    function = getattr(F, f"adaptive_{kind}_pool{rank}d")

    def apply(attrs: Any, x: Any) -> Any:
        wanted = size or attrs["output_size"]
        if not _is_plain(attrs) or wanted is None or 0 in x.shape:
            return None
        return function(x, wanted)

    return apply


def _axes(attrs: Any, x: Any) -> list[int]:
    given = attrs["axis"]
    axes = range(x.ndim) if given is None else [n % x.ndim for n in given]
    return [n for n in range(x.ndim) if (n in axes) != bool(given and attrs.get("exclude"))]


def _reduction(function: Any) -> Any:
    def apply(attrs: Any, x: Any) -> Any:
        axes = _axes(attrs, x)
        if not axes or 0 in x.shape:  # PyTorch takes no axes as all
            return None
        return function(x, axes, attrs["keepdims"])

    return apply


def _prod(x: Any, axes: list[int], keep: bool) -> Any:
    for n in reversed(axes):
        x = torch.prod(x, n, keep)
    return x


def _position(function: Any) -> Any:
    def apply(attrs: Any, x: Any) -> Any:
        axes = _axes(attrs, x)
        if attrs["select_last_index"] or 0 in x.shape or len(axes) != 1:
            return None
        return function(x, axes[0], attrs["keepdims"]).to(torch.int32)

    return apply


def _pad(attrs: Any, x: Any, value: Any = None) -> Any:
    edges = [n for pair in reversed(attrs["pad_width"]) for n in pair]
    mode = {"constant": "constant", "edge": "replicate", "reflect": "reflect",
            "wrap": "circular"}.get(attrs["pad_mode"])  # fmt: skip
    if mode is None or not edges:
        return None
    if mode == "constant":
        return F.pad(x, edges, value=0.0 if value is None else float(value))
    return F.pad(x[None, None], edges, mode)[0, 0]


def _affine(function: Any) -> Any:
    def apply(attrs: Any, x: Any, gamma: Any, beta: Any, *others: Any) -> Any:
        if attrs["axis"] != 1 or 0 in x.shape:
            return None
        scale = gamma if attrs["scale"] else torch.ones_like(gamma)
        shift = beta if attrs["center"] else torch.zeros_like(beta)
        return function(attrs, x, scale, shift, *others)

    return apply


def _layer_norm(attrs: Any, x: Any, gamma: Any, beta: Any) -> Any:
    if attrs["axis"] % x.ndim != x.ndim - 1:
        return None
    scale = gamma if attrs["scale"] else None
    shift = beta if attrs["center"] else None
    return F.layer_norm(x, x.shape[-1:], scale, shift, attrs["epsilon"])


_RESIZE = {1: "linear", 2: "bilinear", 3: "trilinear"}


def _resize(rank: int) -> Any:
    def apply(attrs: Any, x: Any) -> Any:
        if not _is_plain(attrs) or attrs["scales"] or 0 in x.shape or 0 in attrs["size"]:
            return None
        mode, how = attrs["coordinate_transformation_mode"], attrs["method"]
        if how == "nearest_neighbor":
            if mode == "asymmetric" and attrs["rounding_method"] in ("", "floor"):
                return F.interpolate(x, attrs["size"], mode="nearest")
            return None
        if mode not in ("half_pixel", "align_corners"):
            return None
        if how == "cubic":
            if rank != 2 or attrs["cubic_alpha"] != -0.75 or attrs["cubic_exclude"]:
                return None
            return F.interpolate(x, attrs["size"], mode="bicubic",
                                 align_corners=mode == "align_corners")  # fmt: skip
        return F.interpolate(
            x, attrs["size"], mode=_RESIZE[rank], align_corners=mode == "align_corners"
        )

    return apply


def _attention(attrs: Any, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    if 0 in (*q.shape, *k.shape) or (mask is not None and attrs["is_causal"]):
        return None
    heads = q.ndim > 2 and q.shape[-3] != k.shape[-3]
    return F.scaled_dot_product_attention(
        q, k, v, mask, 0.0, attrs["is_causal"], scale=attrs["scale"], enable_gqa=heads
    )


def _cell(kind: str) -> Any:
    function = {"lstm": torch.lstm_cell, "gru": torch.gru_cell, "rnn": torch.rnn_tanh_cell}[kind]

    def apply(attrs: Any, x: Any, *others: Any) -> Any:
        count = 2 if kind == "lstm" else 1
        states, weights = others[:count], list(others[count:])
        if not attrs.get("reset_after", True):
            return None
        zero = torch.zeros(len(weights[0]), dtype=x.dtype)
        weights += [zero] * (4 - len(weights))
        step = torch.rnn_relu_cell if attrs.get("activation") == "relu" else function
        return step(x, states if count > 1 else states[0], *weights)

    return apply


def _sequence(kind: str) -> Any:
    step, count = _cell(kind), 2 if kind == "lstm" else 1

    def apply(attrs: Any, x: Any, *others: Any) -> Any:
        states, weights, rows = others[:count], others[count:], []
        for row in x:
            found = step(attrs, row, *states, *weights)
            if found is None:
                return None
            states = found if count > 1 else (found,)
            rows.append(states[0])
        return (torch.stack(rows), *states) if rows else None

    return apply


def _taken(attrs: Any, x: Any, indices: Any) -> Any:
    axis = attrs["axis"]
    if axis is None or attrs["batch_dims"] or attrs["mode"] == "wrap":
        return None
    inside = indices.long().clamp(0, x.shape[axis] - 1)
    found = torch.index_select(x, axis, inside.reshape(-1))
    return found.reshape(*x.shape[: axis % x.ndim], *indices.shape, *x.shape[axis % x.ndim + 1 :])


_SCATTER = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


def _scattered(attrs: Any, x: Any, indices: Any, updates: Any) -> Any:
    axis, how = attrs["axis"], attrs["reduction"]
    places = indices.long() % x.shape[axis]
    if how == "update":
        return None  # of several updates any may count
    return x.scatter_reduce(axis, places, updates, _SCATTER[how])


def _sorted(attrs: Any, x: Any) -> Any:
    return torch.sort(x, dim=attrs["axis"], descending=not attrs["is_ascend"], stable=True)


def _topk(attrs: Any, x: Any) -> Any:
    if attrs["k"] < 1 or attrs["ret_type"] == "indices":
        return None
    values, places = torch.topk(x, attrs["k"], attrs["axis"], largest=not attrs["is_ascend"])
    return values if attrs["ret_type"] == "values" else (values, places.to(torch.int32))


def _running(function: Any) -> Any:
    def apply(attrs: Any, x: Any) -> Any:
        if attrs["axis"] is None or attrs["exclusive"] or attrs["dtype"]:
            return None
        return function(x, attrs["axis"])

    return apply


def _unary(function: Any) -> Any:
    return lambda attrs, x: function(x)


def _binary(function: Any) -> Any:
    return lambda attrs, a, b: function(a, b)


_SAME = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "abs", "isnan",
    "isinf", "isfinite", "floor", "ceil", "round", "trunc", "negative", "sign", "square",
)  # fmt: skip
_BINARY = {
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div,
    "power": torch.pow, "atan2": torch.atan2, "maximum": torch.maximum, "minimum": torch.minimum,
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le,
    "greater": torch.gt, "greater_equal": torch.ge, "floor_mod": torch.remainder,
    "mod": torch.fmod,
}  # fmt: skip

OPERATORS: dict[str, Any] = {
    **{name: _unary(getattr(torch, name)) for name in _SAME},
    **{name: _binary(function) for name, function in _BINARY.items()},
    "erf": _unary(torch.erf), "nn.relu": _unary(F.relu), "nn.relu6": _unary(F.relu6),
    "nn.gelu": _unary(F.gelu), "nn.silu": _unary(F.silu), "nn.hard_swish": _unary(F.hardswish),
    "nn.gelu_tanh": _unary(lambda x: F.gelu(x, approximate="tanh")),
    "nn.hard_sigmoid": _unary(F.hardsigmoid), "nn.softplus": _unary(F.softplus),
    "nn.leaky_relu": lambda a, x: F.leaky_relu(x, a["alpha"]),
    "nn.elu": lambda a, x: F.elu(x, a["alpha"]),
    "clip": lambda a, x: torch.clamp(x, a["a_min"], a["a_max"]),
    "where": lambda a, c, x, y: torch.where(c, x, y),
    "transpose": lambda a, x: x.permute(a["axes"] or tuple(reversed(range(x.ndim)))),
    "concatenate": lambda a, parts: torch.cat(parts, a["axis"]),
    "stack": lambda a, parts: torch.stack(parts, a["axis"]),
    "tile": lambda a, x: torch.tile(x, a["reps"]),
    "repeat": lambda a, x: torch.repeat_interleave(x, a["repeats"], a["axis"]),
    "broadcast_to": lambda a, x: torch.broadcast_to(x, a["shape"]),
    "reverse": lambda a, x: torch.flip(x, (a["axis"],)),
    "take": _taken,
    "gather": lambda a, x, i: torch.gather(x, a["axis"], i.long() % x.shape[a["axis"]]),
    "adv_index": lambda a, parts: parts[0][tuple(i.long() for i in parts[1:])],
    "scatter_elements": _scattered,
    "trilu": lambda a, x, k=None: (torch.triu if a["upper"] else torch.tril)(
        x, 0 if k is None else int(k)),
    "meshgrid": lambda a, parts: torch.meshgrid(*parts, indexing=a["indexing"]),
    "cumsum": _running(torch.cumsum), "cumprod": _running(torch.cumprod),
    "sort": lambda a, x: _sorted(a, x)[0],
    "argsort": lambda a, x: _sorted(a, x)[1].to(getattr(torch, a["dtype"])),
    "topk": _topk,
    "nn.dense": lambda a, x, w: None if a["out_dtype"] else F.linear(x, w),
    "nn.matmul": lambda a, x, y: torch.matmul(
        x.mT if a["transpose_a"] else x, y.mT if a["transpose_b"] else y),
    "nn.batch_matmul": lambda a, x, y: torch.matmul(
        x.mT if a["transpose_a"] else x, y.mT if a["transpose_b"] else y),
    "einsum": lambda a, parts: torch.einsum(a["equation"], *parts),
    **{f"nn.conv{rank}d": _conv(rank) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": _conv_transpose(rank) for rank in (1, 2, 3)},
    **{f"nn.{kind}_pool{rank}d": _pool(kind, rank)
       for kind in ("max", "avg", "lp") for rank in (1, 2, 3)},
    **{f"nn.adaptive_{kind}_pool{rank}d": _pool_to(kind, rank)
       for kind in ("max", "avg") for rank in (1, 2, 3)},
    **{f"nn.global_{kind}_pool{rank}d": _pool_to(kind, rank, 1)
       for kind in ("max", "avg") for rank in (1, 2, 3)},
    "nn.bias_add": lambda a, x, b: x + b.reshape(
        [-1 if n == a["axis"] % x.ndim else 1 for n in range(x.ndim)]),
    "nn.prelu": lambda a, x, w: F.prelu(x, w) if a["axis"] == 1 and 0 not in x.shape else None,
    "nn.batch_norm": _affine(lambda a, x, g, b, m, v: (
        F.batch_norm(x, m, v, g, b, False, 0.0, a["epsilon"]), m, v)),
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _affine(lambda a, x, g, b: F.instance_norm(
        x, None, None, g, b, True, 0.0, a["epsilon"])),
    "nn.group_norm": _affine(lambda a, x, g, b: F.group_norm(
        x, a["num_groups"], g, b, a["epsilon"])),
    "nn.rms_norm": lambda a, x, w: F.rms_norm(x, x.shape[-1:], w, a["epsilon"])
    if a["axis"] % x.ndim == x.ndim - 1 else None,
    "nn.lrn": lambda a, x: F.local_response_norm(x, a["size"], a["alpha"], a["beta"], a["bias"])
    if a["axis"] == 1 and x.ndim > 2 else None,
    "nn.softmax": lambda a, x: F.softmax(x, a["axis"]),
    "nn.log_softmax": lambda a, x: F.log_softmax(x, a["axis"]),
    "nn.pad": _pad,
    "nn.scaled_dot_product_attention": _attention,
    "sum": _reduction(torch.sum), "mean": _reduction(torch.mean), "prod": _reduction(_prod),
    "max": _reduction(torch.amax), "min": _reduction(torch.amin),
    "logsumexp": _reduction(torch.logsumexp),
    "norm": lambda a, x: _reduction(
        lambda y, axes, keep: torch.linalg.vector_norm(y, a["ord"], axes, keep))(a, x),
    "nn.nll_loss": lambda a, x, t, w: F.nll_loss(
        x, t.long(), w, ignore_index=a["ignore_index"], reduction=a["reduction"]),
    "image.grid_sample": lambda a, x, g: F.grid_sample(
        x, g.movedim(1, -1), a["method"].replace("tri", "bi"), a["padding_mode"],
        a["align_corners"]) if 0 not in x.shape else None,
    "image.affine_grid": lambda a, m: F.affine_grid(
        m, [len(m), 1, *a["target_shape"]], align_corners=True).movedim(-1, 1)
    if 1 not in a["target_shape"] and len(m) else None,
    "argmax": _position(torch.argmax), "argmin": _position(torch.argmin),
    "nn.depth_to_space": lambda a, x: F.pixel_shuffle(x, a["block_size"])
    if a["mode"] == "CRD" and a["layout"] == "NCHW" else None,
    **{f"image.resize{rank}d": _resize(rank) for rank in (1, 2, 3)},
    **{f"nn.{kind}_cell": _cell(kind) for kind in ("lstm", "gru", "rnn")},
    **{f"nn.{kind}": _sequence(kind) for kind in ("lstm", "gru", "rnn")},
}  # fmt: skip
"""Name of an operator -> what PyTorch computes, from the attributes and the tensors."""


def as_torch(value):
    if isinstance(value, tuple):
        return tuple(map(as_torch, value))
    return torch.from_numpy(np.array(value))


def bounds(name, result, values):
    """Return the bounds of the outputs, by the definition; 0 for those that are no floats."""
    arrays, outputs = defined(name, result, values)
    for output in outputs:
        is_float = dtypes.is_float(output.dtype)
        yield evaluate_within([output], read_by([output], arrays))[1][0] if is_float else 0.0


@pytest.mark.campaign
@pytest.mark.parametrize("name", OPERATORS)
def test_pytorch_computes_the_same(name):
    compared = 0
    for number, case in enumerate(CASES[name]):
        for dtype, result in calls_of(name, case):
            if dtype != "float64":
                continue
            values = [value_of(e, dtype, np.random.default_rng(number)) for e in case.inputs]
            expected = OPERATORS[name](result.attrs, *map(as_torch, values))
            if expected is None:
                continue
            with quiet():
                found = REGISTRY[name].evaluate(result, *values)
            pairs = zip(flat(found), flat(expected), bounds(name, result, values), strict=True)
            for ours, theirs, bound in pairs:
                theirs = theirs.numpy()
                assert ours.shape == theirs.shape
                if not dtypes.is_float(str(ours.dtype)):
                    np.testing.assert_array_equal(ours, theirs)
                    continue
                is_same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
                assert np.all(is_same | (np.abs(ours - theirs) <= 2 * bound)), (case, ours, theirs)
            compared += 1
    assert compared
