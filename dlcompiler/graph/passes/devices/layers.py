"""Int8 layers: an operator with sums in int32, and what makes int8 of them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Node,
    children,
    post_order,
)
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.passes.tools import operator_of

BLOCK = 16
"""Channels of a block of the matrix unit; [1]."""
LARGEST = 127
"""The largest int8 result; [1]."""
_MOST_SHIFT = 31
Attributes: TypeAlias = Mapping[str, Any]
"""All attributes of a call, by name."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An int8 layer: an anchor and what makes int8 results of its sums."""

    anchor: Call
    """The call of an operator of `ANCHORS`."""
    calls: tuple[Call, ...]
    """The anchor, and all behind it, the last first; then what widens its data, if anything."""
    bias: Expr | None = None
    """What is added to each output channel; int32."""
    shift: int = 0
    """Bits by which sums are shifted to the right; [1]."""
    relu: bool = False
    """Whether results are at least 0."""

    @property
    def operator(self) -> str:
        """Name of the anchor's operator."""
        return operator_of(self.anchor)

    @property
    def attrs(self) -> Attributes:
        """All attributes of the anchor."""
        return REGISTRY[self.operator].complete(self.anchor)

    @property
    def data(self) -> Expr:
        """What the layer reads: int8."""
        return _data(self.anchor)

    @property
    def weight(self) -> Expr | None:
        """The weights; None without."""
        return self.anchor.args[1] if len(self.anchor.args) > 1 else None


def layers_of(function: Function, types: Types) -> Iterator[tuple[Call, Layer | str]]:
    """Yield each anchor of a function with its layer, or why there is none.

    Parameters
    ----------
    function : Function
        A function, or a kernel.
    types : Types
        Types of its nodes.
    """
    users: dict[Node, list[Node]] = {}
    order = list(post_order(function))
    for node in order:
        for below in children(node):
            users.setdefault(below, []).append(node)
    for node in order:
        if isinstance(node, Call) and _is_anchor(node):
            yield node, _unsuitable(node, types) or _layer_of(node, users, types)


def _is_anchor(call: Call) -> bool:
    name = operator_of(call)
    return name in ANCHORS and (name != "sum" or _data(call) is not call.args[0])


def _data(anchor: Call) -> Expr:
    """Return the data of an anchor; that of a sum is widened by a cast."""
    first = anchor.args[0]
    if operator_of(anchor) != "sum" or not isinstance(first, Call) or operator_of(first) != "cast":
        return first
    return first.args[0]


def _layer_of(anchor: Call, users: Mapping[Node, list[Node]], types: Types) -> Layer | str:
    """Return the layer of an anchor, or why there is none."""
    if operator_of(anchor) == "nn.max_pool2d":
        return Layer(anchor, (anchor,))
    found = _behind(anchor, users, types)
    widening = anchor.args[0]
    if isinstance(found, str) or widening is found.data:
        return found
    if len(users[widening]) > 1:
        return "something else reads its data in int32"
    assert isinstance(widening, Call)
    return replace(found, calls=(*found.calls, widening))


# -- what the matrix unit can compute -------------------------------------------------------------


def _unsuitable(anchor: Call, types: Types) -> str:
    """Return why the matrix unit cannot compute an anchor; "" if it can."""
    name, result = operator_of(anchor), types.tensor(anchor)
    data, *weights = (types.tensor(arg) for arg in (_data(anchor), *anchor.args[1:2]))
    wanted = "int8" if name == "nn.max_pool2d" else "int32"
    if {each.dtype for each in (data, *weights)} != {"int8"} or result.dtype != wanted:
        return f"it is of {data.dtype}: the accelerator multiplies int8, and adds in int32"
    if problem := ANCHORS[name](REGISTRY[name].complete(anchor), data.rank):
        return problem
    channels, filters = data.shape[1], result.shape[1]
    if not all(type(n) is int and n % BLOCK == 0 for n in (channels, filters)):
        return f"its {channels} and {filters} channels are no whole blocks of {BLOCK}"
    return ""


def _dense(attrs: Attributes, rank: int) -> str:
    return "" if rank == 2 else f"its data has {rank} dimensions"


def _sum(attrs: Attributes, rank: int) -> str:
    axes = attrs["axis"]
    is_of_image = rank == 4 and isinstance(axes, tuple) and {n % 4 for n in axes} == {2, 3}
    return "" if is_of_image and not attrs["exclude"] else "it is no sum over whole images"


def _convolution(attrs: Attributes, rank: int) -> str:
    layouts = attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"] or "NCHW"
    if layouts != ("NCHW", "OIHW", "NCHW"):
        return f"its layouts are {', '.join(map(str, layouts))}: only NCHW and OIHW are known"
    return _windows(attrs)


def _transposed(attrs: Attributes, rank: int) -> str:
    layouts = attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"] or "NCHW"
    if layouts != ("NCHW", "IOHW", "NCHW") or attrs["groups"] != 1:
        return "it has groups, or other layouts than NCHW and IOHW"
    problem = _windows(attrs)
    pads, sizes, stride = attrs["padding"], attrs["kernel_size"], attrs["strides"][0]
    if not problem and any(pad >= size for pad, size in zip(pads[:2], sizes, strict=True)):
        return "its padding is as wide as its kernel"
    if not problem and max(attrs["output_padding"]) >= stride:
        return "its output padding is as wide as its stride"
    return problem


def _largest(attrs: Attributes, rank: int) -> str:
    if attrs["layout"] != "NCHW" or attrs["ceil_mode"]:
        return f"its layout is {attrs['layout']}, or its last windows reach beyond the image"
    return _windows(attrs)


def _windows(attrs: Attributes) -> str:
    """Return why windows are none of blocks; "" if they are."""
    if attrs["dilation"] != (1, 1):
        return f"its dilation is {attrs['dilation']}"
    rows, columns = attrs["strides"]
    top, left, bottom, right = attrs["padding"]
    if rows != columns or (top, left) != (bottom, right):
        return "its strides or its padding differ between sides"
    return ""


ANCHORS: Mapping[str, Callable[[Attributes, int], str]] = MappingProxyType(
    {
        "nn.conv2d": _convolution, "nn.conv2d_transpose": _transposed, "nn.dense": _dense,
        "nn.max_pool2d": _largest, "sum": _sum,
    }
)  # fmt: skip
"""Operator -> a function of its attributes and the dimensions of its data, which returns why blocks
cannot compute it."""


# -- what follows an anchor -----------------------------------------------------------------------


def _behind(anchor: Call, users: Mapping[Node, list[Node]], types: Types) -> Layer | str:
    """Return an anchor and what is behind it as a layer, or why that is none."""
    calls = [anchor]
    found: dict[str, Call] = {}
    wanted = ["bias", "right_shift", "clip", "cast"]
    while wanted:
        readers = users.get(calls[-1], [])
        reader = readers[0] if len(readers) == 1 else None
        if not isinstance(reader, Call):
            return f"{operator_of(calls[-1])} has {len(readers)} readers"
        name = operator_of(reader)
        role = "bias" if name in ("add", "nn.bias_add") else name
        if role not in wanted:
            return f"{name or 'a result'} is behind it, not {wanted[0]}"
        del wanted[: wanted.index(role) + 1]
        found[role] = reader
        calls.append(reader)
    return _layer(calls, found, types)


def _layer(calls: Sequence[Call], found: Mapping[str, Call], types: Types) -> Layer | str:
    """Return calls as a layer, or why they are none."""
    anchor, bias, shift = calls[0], None, 0
    if "bias" in found:
        bias = _bias(found["bias"], anchor, types)
        if bias is None:
            return "something else than a number for each channel is added"
    if "right_shift" in found:
        amount = found["right_shift"].args[1]
        if not isinstance(amount, Constant) or np.ndim(amount.value):
            return "it is shifted by something else than a number"
        shift = int(amount.value)
    if "clip" not in found or found["cast"].attrs.get("dtype") != "int8":
        return "its results are not clipped and cast to int8"
    low, high = (found["clip"].attrs[name] for name in ("a_min", "a_max"))
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if high != LARGEST or low not in (0, -LARGEST) or not 0 <= shift <= _MOST_SHIFT:
        return f"it is shifted by {shift} and clipped to {low:g} … {high:g}"
    return Layer(anchor, tuple(reversed(calls)), bias, shift, low == 0)


def _bias(reader: Call, anchor: Call, types: Types) -> Expr | None:
    """Return what an addition adds to the sums, if it is a number for each output channel."""
    if operator_of(reader) == "nn.bias_add":
        return reader.args[1]
    (other,) = [arg for arg in reader.args if arg is not anchor] or [anchor]
    shape = list(types.tensor(other).shape)
    spatial = types.tensor(anchor).rank - 2
    channels = types.tensor(anchor).shape[1]
    while len(shape) > 1 + spatial and shape[0] == 1:
        del shape[0]
    return other if shape == [channels, *[1] * spatial] else None
