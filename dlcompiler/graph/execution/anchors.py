"""Which operator of the library schedules a kernel, and how its operands are packed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes, ops, te
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import Call, Function, Node, TensorType, calls, tensor_types
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.base import Array, Attributes, operator_name
from dlcompiler.graph.operators.relations import chosen_axes
from dlcompiler.ops import elementwise
from dlcompiler.ops.gemm import packed_width
from dlcompiler.ops.recurrent import GATES
from dlcompiler.ops.recurrent_workload import packed_size
from dlcompiler.ops.widening import STORED, result_dtype, sums_dtype
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

Packing: TypeAlias = Callable[[Array], Array]
"""Returns a weight as the kernel reads it."""
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


@dataclass(frozen=True, slots=True)
class Anchor:
    """The call of a kernel that an operator of the library computes."""

    call: Call
    sources: tuple[Node, ...]
    """Its arguments; for a weight that the kernel converts, the parameter that stores it."""
    selection: ops.Selection
    inputs: tuple[Tensor, ...]
    """Placeholders for the arguments of the call; some may be computed in the kernel, and several
    may stand for one argument that is given twice."""
    results: tuple[Tensor, ...]
    """Its results: several if the call returns a tuple."""
    packings: Mapping[int, Packing]
    """Arguments that are packed at build."""
    before: Mapping[int, Conversion]
    """Of `Wanted`."""
    after: Conversion | None
    """Of `Wanted`."""


_Translate: TypeAlias = Callable[[Attributes, "list[TensorType]", Target, bool], "Wanted | None"]


def anchor_of(
    function: Function, types: Types, target: Target, constants: frozenset[int]
) -> Anchor | None:
    """Return the call that an operator of the library computes; None if there is none.

    Parameters
    ----------
    function : Function
        A kernel.
    types : Types
        Types of its nodes.
    target : Target
        The machine.
    constants : frozenset of int
        Parameters of the kernel that are constants of the model: only they can be packed.
    """
    inside = [call for call in calls(function.body) if operator_name(call) in TRANSLATIONS]
    if len(inside) != 1:
        return None
    (call,) = inside
    stored = _stored(call, function, types, target)
    sources = tuple(stored.get(arg, arg) for arg in call.args)
    wanted = _wanted(call, types, target, _is_packed(call, sources, function, constants))
    if wanted is None:
        return None
    if stored:
        if not wanted.weights:
            sources = call.args
        else:
            (dtype,) = {types.tensor(source).dtype for source in stored.values()}
            wanted = replace(wanted, params={**wanted.params, "weight_dtype": dtype})
    try:
        selection = ops.select(wanted.kind, wanted.params, target)
    except DLCompilerError:  # of a dtype or a layout that it does not take
        return None
    chosen = selection.operator.schedule_for(target)
    args = (chosen.define or selection.operator.define)(selection.workload)
    inputs = tuple(t for t in args if isinstance(t.op, PlaceholderOp))
    results = tuple(t for t in args if not isinstance(t.op, PlaceholderOp))
    packings = {n: _packing(selection, wanted.turn, inputs[n]) for n in wanted.weights}
    anchor = Anchor(
        call, sources, selection, inputs, results, packings, wanted.before, wanted.after
    )
    return anchor if _fits(anchor, types) else None


def _stored(call: Call, function: Function, types: Types, target: Target) -> dict[Node, Node]:
    """Return the weights that a kernel converts from 16 bits as it reads them.

    Returns
    -------
    dict
        The conversion -> the parameter that it converts; empty if there is a weight without.
    """
    name = operator_name(call)
    places = STORED_WEIGHTS.get(name, ())
    found: dict[Node, Node] = {}
    for arg in (call.args[place] for place in places if target.device == "cpu"):
        if not isinstance(arg, Call) or operator_name(arg) != "cast":
            return {}
        (source,) = arg.args
        kinds = types[source], types[arg]
        if source not in function.params or not all(isinstance(k, TensorType) for k in kinds):
            return {}
        if types.tensor(source).dtype not in STORED or types.tensor(arg).dtype != "float32":
            return {}
        found[arg] = source
    same = len({types.tensor(source).dtype for source in found.values()}) == 1
    return found if same and len(set(found.values())) == len(places) else {}


def _is_packed(
    call: Call, sources: Sequence[Node], function: Function, constants: frozenset[int]
) -> bool:
    """Tell whether the weights are constants, and only this call reads them."""
    first = _FIRST_WEIGHT.get(operator_name(call), -1)
    pairs = zip(call.args[first:], sources[first:], strict=True)
    return all(
        _is_own_constant(source, reader, call, function, constants) for reader, source in pairs
    )


def _is_own_constant(
    weight: Node, given: Node, call: Call, function: Function, constants: frozenset[int]
) -> bool:
    """Tell whether a weight is a constant that only a call reads, perhaps by a conversion."""
    if weight not in function.params or call.args.count(given) > 1:
        return False
    readers = [each for each in calls(function.body) if given in each.args]
    if given is not weight and [e for e in calls(function.body) if weight in e.args] != [given]:
        return False
    return function.params.index(weight) in constants and readers == [call]


def _wanted(call: Call, types: Types, target: Target, is_packed: bool) -> Wanted | None:
    kinds = [types[arg] for arg in call.args]
    tensors = [kind for kind in kinds if isinstance(kind, TensorType)]
    name = operator_name(call)
    is_mixed = len({kind.dtype for kind in tensors}) > 1 and name not in INTEGERS
    if len(tensors) < len(kinds) or is_mixed:
        return None
    return TRANSLATIONS[name](REGISTRY[name].complete(call), tensors, target, is_packed)


def _packing(selection: ops.Selection, turn: tuple[int, ...], packed: Tensor) -> Packing:
    def pack(array: Array) -> Array:
        turned = array.transpose(turn) if turn else array
        plain = np.ascontiguousarray(turned.astype(dtypes.to_numpy(packed.dtype), copy=False))
        return selection.operator.prepack(selection.workload, {packed.name: plain})[packed.name]

    return pack


def _fits(anchor: Anchor, types: Types) -> bool:
    """Tell whether the operator takes and returns tensors of the call's types."""
    results = anchor.results if anchor.after is None else tuple(map(anchor.after, anchor.results))
    pairs = list(zip(results, tensor_types(types[anchor.call]), strict=False))
    if len(pairs) < len(anchor.results):
        return False
    for n, (tensor, arg) in enumerate(zip(anchor.inputs, anchor.call.args, strict=False)):
        if n not in anchor.packings and n not in anchor.before:
            pairs.append((tensor, types.tensor(arg)))
    fits = len(anchor.inputs) == len(anchor.call.args)
    return fits and all(t.static_shape == k.shape and t.dtype == k.dtype for t, k in pairs)


# -- translations ---------------------------------------------------------------------------------

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
        first = _FIRST_WEIGHT[f"nn.{kind}"]
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

_FIRST_WEIGHT = {
    f"nn.{kind}{suffix}": 3 if kind == "lstm" else 2 for kind in GATES for suffix in ("", "_cell")
}
"""Operator -> its first weight, if it has several: those from there on are weights."""
STORED_WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "nn.conv2d": (1,),
    "nn.dense": (1,),
    **{name: (first, first + 1) for name, first in _FIRST_WEIGHT.items()},
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
