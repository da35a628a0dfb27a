"""What calls of graph operators are in the words of the library, which has kernels for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dlcompiler import dtypes, te
from dlcompiler.graph.ir import TensorType
from dlcompiler.graph.operators.base import Attributes
from dlcompiler.graph.operators.relations import chosen_axes
from dlcompiler.ops import elementwise
from dlcompiler.ops.gemm import packed_width
from dlcompiler.ops.recurrent import GATES
from dlcompiler.ops.recurrent_workload import packed_size
from dlcompiler.ops.widening import result_dtype, sums_dtype
from dlcompiler.target import Target
from dlcompiler.te import Tensor

Conversion: TypeAlias = Callable[[Tensor], Tensor]
"""Returns a tensor with the same elements in another dtype, or moved by a number."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call computes, in the words of the library."""

    kind: str
    """As of `ops.select`."""
    params: Mapping[str, Any]
    """Parameters of the workload."""
    weights: tuple[int, ...] = ()
    """The arguments that are packed before the calls."""
    turn: tuple[int, ...] = ()
    """Order of the axes of weights in the library; () if it is the same."""
    before: Mapping[int, Conversion] = field(default_factory=dict)
    """Arguments that the library takes in another form."""
    after: Conversion | None = None
    """What makes the result of the call from that of the library; None if it is the same."""


_Translate: TypeAlias = Callable[[Attributes, "list[TensorType]", Target, bool], "Wanted | None"]

_TURNED = {"OIHW": (), "HWIO": (3, 2, 0, 1), "OHWI": (0, 3, 1, 2), "HWOI": (2, 3, 0, 1)}
"""Layout of weights -> the order of its axes in OIHW."""


def _conv2d(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    data, weight = kinds
    layout, turn = attrs["data_layout"], _TURNED.get(attrs["kernel_layout"])
    if not is_packed or turn is None or layout not in ("NCHW", "NHWC"):
        return None
    if attrs["out_layout"] not in ("", layout) or attrs["out_dtype"] not in (
        "",
        result_dtype(data.dtype),
    ):
        return None
    n, c, h, w = (data.shape[layout.index(letter)] for letter in "NCHW")
    o, _, kh, kw = (weight.shape[axis] for axis in turn or range(4))
    params = {
        "n": n, "c": c, "h": h, "w": w, "kernel": (kh, kw), "stride": attrs["strides"],
        "padding": attrs["padding"], "dilation": attrs["dilation"], "dtype": data.dtype,
        "layout": layout,
    }  # fmt: skip
    if attrs["groups"] == c and c > 1:
        return Wanted("depthwise_conv2d", {**params, "multiplier": o // c}, (1,), turn)
    return Wanted("conv2d", {**params, "o": o, "groups": attrs["groups"]}, (1,), turn)


def _dense(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    data, weight = kinds
    if data.rank != 2 or attrs["out_dtype"] not in ("", result_dtype(data.dtype)):
        return None
    (m, k), n = data.shape, weight.shape[0]
    params: dict[str, Any] = {"m": m, "n": n, "k": k, "dtype": data.dtype}
    if not is_packed:
        return Wanted("dense", params)
    params["packed"] = packed_width(int(m), target, sums_dtype(data.dtype))  # type: ignore[arg-type]  # known extents
    return Wanted("dense", params, (1,))


def _matmul(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    a, b = kinds
    if attrs["out_dtype"] not in ("", result_dtype(a.dtype)) or a.rank != b.rank:
        return None
    layout = "".join("T" if attrs[f"transpose_{name}"] else "N" for name in "ab")
    *lead, m, k = _turned(a.shape, attrs["transpose_a"])
    *other, _, n = _turned(b.shape, attrs["transpose_b"])
    params = {"m": m, "n": n, "k": k, "dtype": a.dtype, "layout": layout}
    if a.rank == 2:
        return Wanted("matmul", params)
    if a.rank == 3 and lead == other:
        return Wanted("batch_matmul", {**params, "batch": lead[0]})
    return None


def _turned(shape: tuple[Any, ...], is_turned: bool) -> tuple[Any, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if is_turned else shape


def _integers(translate: _Translate) -> _Translate:
    """Return the translation of an operator on quantized data, from that on other data.

    The library multiplies int8; uint8 is moved by 128. A depthwise convolution is computed in
    float32, which holds its sums exactly, and multiplies faster than int32.
    """

    def translated(
        attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
    ) -> Wanted | None:
        data, weight = kinds
        as_int8 = [TensorType(data.shape, "int8"), weight]
        wanted = translate({**attrs, "out_dtype": "int32"}, as_int8, target, is_packed)
        if wanted is None or target.device != "cpu":
            return None
        zero, moved = attrs["input_zero_point"], 128 if data.dtype == "uint8" else 0
        if wanted.kind == "depthwise_conv2d":
            taps = math.prod(wanted.params["kernel"])
            if taps * _LARGEST_PRODUCT >= _LARGEST_EXACT:
                return None
            return replace(
                wanted, params={**wanted.params, "dtype": "float32"},
                before={0: _moved(zero, "float32")}, after=_moved(0, "int32"),
            )  # fmt: skip
        before = {0: _moved(moved, "int8")} if moved else {}
        params = {**wanted.params, "zero_point": zero - moved}
        return replace(wanted, params=params, before=before)

    return translated


_LARGEST_PRODUCT = 255 * 128
"""Of a quantized number less its zero point, and a weight; [1]."""
_LARGEST_EXACT = 1 << 24
"""float32 holds all whole numbers up to this one; [1]."""


def _moved(zero_point: int, dtype: str) -> Conversion:
    """Return the function that subtracts a number in int32, and converts to a dtype."""

    def moved(x: Tensor) -> Tensor:
        if not zero_point:
            made: Tensor = elementwise.cast(x, dtype)
            return made
        zero = te.const(zero_point, "int32")
        element = lambda v: (v.astype("int32") - zero).astype(dtype)  # noqa: E731 - one expression
        changed: Tensor = elementwise.elementwise("moved", element, x)
        return changed

    return moved


def _pool(kind: str) -> _Translate:
    def translate(
        attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
    ) -> Wanted | None:
        (data,) = kinds
        layout = attrs["layout"]
        if layout not in ("NCHW", "NHWC") or attrs["out_layout"] not in ("", layout):
            return None
        n, c, h, w = (data.shape[layout.index(letter)] for letter in "NCHW")
        return Wanted("pool2d", {
            "kind": kind, "n": n, "c": c, "h": h, "w": w, "kernel": attrs["pool_size"],
            "stride": attrs["strides"], "padding": attrs["padding"],
            "dilation": attrs["dilation"], "layout": layout, "dtype": data.dtype,
            "ceil_mode": int(attrs["ceil_mode"]),
            "count_include_pad": int(attrs.get("count_include_pad", True)),
        })  # fmt: skip

    return translate


def _softmax(kind: str) -> _Translate:
    def translate(
        attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
    ) -> Wanted | None:
        (data,) = kinds
        return Wanted(kind, {"shape": data.shape, "axis": attrs["axis"], "dtype": data.dtype})

    return translate


def _layer_norm(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    data = kinds[0]
    is_usual = attrs["center"] and attrs["scale"]
    if not is_usual or attrs["axis"] not in (-1, data.rank - 1):
        return None
    params = {"shape": data.shape, "dtype": data.dtype, "epsilon": attrs["epsilon"]}
    return Wanted("layer_norm", params)


def _rms_norm(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    data = kinds[0]
    if attrs["axis"] not in (-1, data.rank - 1):
        return None
    params = {"shape": data.shape, "dtype": data.dtype, "epsilon": attrs["epsilon"]}
    return Wanted("rms_norm", params)


def _group_norm(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    data = kinds[0]
    if not attrs["center"] or not attrs["scale"] or attrs["axis"] not in (1, 1 - data.rank):
        return None
    params = {"shape": data.shape, "dtype": data.dtype, "epsilon": attrs["epsilon"]}
    if "num_groups" not in attrs:
        return Wanted("instance_norm", params)
    return Wanted("group_norm", {**params, "groups": attrs["num_groups"]})


def _attention(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    query, key, value, *masks = kinds
    if query.rank != 4 or attrs["scale"] is not None or any(m.rank != 4 for m in masks):
        return None
    batch, heads, rows, depth = query.shape
    return Wanted("attention", {
        "batch": batch, "heads": heads, "rows": rows, "depth": depth, "dtype": query.dtype,
        "kv_heads": key.shape[1], "length": key.shape[2], "width": value.shape[3],
        "causal": int(attrs["is_causal"]), "mask": masks[0].shape if masks else "",
    })  # fmt: skip


def _reduction(function: str) -> _Translate:
    def translate(
        attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
    ) -> Wanted | None:
        (data,) = kinds
        if not dtypes.is_float(data.dtype) or dtypes.bits(data.dtype) < 32:
            return None
        axes = chosen_axes(attrs, data.rank)
        return Wanted("reduction", {
            "function": function, "shape": data.shape, "axes": axes,
            "keepdims": int(attrs["keepdims"]), "dtype": data.dtype,
        })  # fmt: skip

    return translate


def _norm(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    function = {1.0: "l1_norm", 2.0: "l2_norm"}.get(float(attrs["ord"]))
    return None if function is None else _reduction(function)(attrs, kinds, target, is_packed)


def _cumsum(
    attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
) -> Wanted | None:
    (data,) = kinds
    if attrs["axis"] is None or attrs["exclusive"] or attrs["dtype"] not in ("", data.dtype):
        return None
    return Wanted("cumsum", {"shape": data.shape, "axis": attrs["axis"], "dtype": data.dtype})


def _global_pool(function: str) -> _Translate:
    reduction = _reduction(function)

    def translate(
        attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
    ) -> Wanted | None:
        layout = attrs["layout"]
        if not layout.isalpha() or attrs["out_layout"] not in ("", layout):
            return None
        axes = tuple(n for n, letter in enumerate(layout) if letter in "DHW")
        whole = {"axis": axes, "exclude": False, "keepdims": True}
        return reduction(whole, kinds, target, is_packed)

    return translate


def _recurrent(kind: str, *, is_cell: bool) -> _Translate:
    def translate(
        attrs: Attributes, kinds: list[TensorType], target: Target, is_packed: bool
    ) -> Wanted | None:
        data, hidden = kinds[:2]
        first = FIRST_WEIGHT[f"nn.{kind}"]
        params: dict[str, Any] = {
            "steps": 1 if is_cell else data.shape[0], "batch": data.shape[-2],
            "inputs": data.shape[-1], "hidden": hidden.shape[1], "cell": int(is_cell),
            "biases": len(kinds) - first - 2, "dtype": data.dtype,
        }  # fmt: skip
        params |= {name: attrs[name] for name in ("activation",) if name in attrs}
        if "reset_after" in attrs:
            params["reset_after"] = int(attrs["reset_after"])
        if not is_packed or target.device == "gpu":
            return Wanted(kind, params)
        params["packed"] = packed_size(kind, params["hidden"], target, data.dtype)
        return Wanted(kind, params, tuple(range(first, len(kinds))))

    return translate


INTEGERS = frozenset({"qnn.conv2d", "qnn.dense", "qnn.matmul"})
"""Operators whose arguments may have several dtypes."""

FIRST_WEIGHT = {
    f"nn.{kind}{suffix}": 3 if kind == "lstm" else 2 for kind in GATES for suffix in ("", "_cell")
}
"""Operator -> its first weight, if it has several: those from there on are weights."""
STORED_WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "nn.conv2d": (1,),
    "nn.dense": (1,),
    **{name: (first, first + 1) for name, first in FIRST_WEIGHT.items()},
}
"""Operator -> its weights that kernels read as floats of 16 bits; others are converted before."""

TRANSLATIONS: Mapping[str, _Translate] = {
    "nn.conv2d": _conv2d,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _matmul,
    "qnn.conv2d": _integers(_conv2d),
    "qnn.dense": _integers(_dense),
    "qnn.matmul": _integers(_matmul),
    "nn.max_pool2d": _pool("max"),
    "nn.avg_pool2d": _pool("avg"),
    "nn.softmax": _softmax("softmax"),
    "nn.log_softmax": _softmax("log_softmax"),
    "nn.layer_norm": _layer_norm,
    "nn.group_norm": _group_norm,
    "nn.scaled_dot_product_attention": _attention,
    "nn.instance_norm": _group_norm,
    **{f"nn.{kind}": _recurrent(kind, is_cell=False) for kind in GATES},
    **{f"nn.{kind}_cell": _recurrent(kind, is_cell=True) for kind in GATES},
    "nn.rms_norm": _rms_norm,
    **{name: _reduction(name) for name in ("sum", "mean", "max", "min", "prod", "logsumexp")},
    "norm": _norm,
    "cumsum": _cumsum,
    **{f"nn.global_avg_pool{n}d": _global_pool("mean") for n in (1, 2, 3)},
    **{f"nn.global_max_pool{n}d": _global_pool("max") for n in (1, 2, 3)},
}
"""Operator of graphs -> what it is in the library."""
