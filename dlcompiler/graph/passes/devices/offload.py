"""Give the int8 convolutions and dense layers of a model to an accelerator with a matrix unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    AttrValue,
    Call,
    Constant,
    Expr,
    Function,
    Module,
    Node,
    children,
    named,
    post_order,
)
from dlcompiler.graph.ir.traverse import rewrite_from
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import call as make_call
from dlcompiler.graph.passes.tools import operator_of

NAME = "offload"
BLOCK = 16
"""Channels of a block of the matrix unit; [1]."""
LARGEST = 127
"""The largest int8 result; [1]."""
_MOST_SHIFT = 31
ANCHORS = ("nn.conv2d", "nn.dense")


@dataclass(frozen=True, slots=True)
class Layer:
    """An int8 layer: an anchor and what makes int8 results of its sums."""

    anchor: Call
    """The convolution or dense layer."""
    calls: tuple[Call, ...]
    """The anchor, and all behind it, the last first."""
    bias: Expr | None
    """What is added to each output channel; int32."""
    shift: int
    """Bits by which sums are shifted to the right; [1]."""
    relu: bool
    """Whether results are at least 0."""

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """All attributes of the anchor."""
        return REGISTRY[operator_of(self.anchor)].complete(self.anchor)


def offload(module: Module, device: str = "vta", host: str = "cpu") -> Module:
    """Annotate the layers that an accelerator can compute with ``on_device``.

    *Before*::

        %0 = nn.conv2d(%x, %w, channels=16, kernel_size=[1, 1], out_dtype="int32");
        %1 = right_shift(%0, 8);
        %2 = clip(%1, a_min=0, a_max=127);
        cast(%2, dtype="int8")

    *After*::

        %0 = nn.conv2d(%x, %w, channels=16, kernel_size=[1, 1], out_dtype="int32");
        %1 = on_device(%0, device="vta");
        %2 = right_shift(%1, 8);
        %3 = on_device(%2, device="vta");
        %4 = clip(%3, a_min=0, a_max=127);
        %5 = on_device(%4, device="vta");
        %6 = cast(%5, dtype="int8");
        on_device(%6, device="vta")

    All other calls are annotated with the host.

    Parameters
    ----------
    module : Module
        A model with int8 layers: a convolution or a dense layer of int8 with sums in int32, perhaps
        a bias, a shift to the right, a clip to −127 or 0 … 127, and a cast to int8.
    device, host : str
        Names of the devices.

    Returns
    -------
    Module
        Its log says of each convolution and dense layer where it runs, and why.
    """
    typed = named(infer_types(module))
    types = types_of(typed)
    log: list[Decision] = []
    functions = dict(typed.functions)
    for name, function in typed.functions.items():
        layers = list(layers_of(function, types))
        log += [_decision(anchor, layer, device) for anchor, layer in layers]
        inside = {each for _, layer in layers if isinstance(layer, Layer) for each in layer.calls}

        def rule(old: Node, new: Node, inside: set[Call] = inside) -> Node:
            if not isinstance(old, Call) or not operator_of(old):
                return new
            place = device if old in inside else host
            return make_call(REGISTRY["on_device"], (new,), {"device": place})

        functions[name] = rewrite_from(function, rule)
    return replace(typed, functions=functions, log=(*typed.log, *log))


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
        if isinstance(node, Call) and operator_of(node) in ANCHORS:
            yield node, _unsuitable(node, types) or _behind(node, users, types)


def _unsuitable(anchor: Call, types: Types) -> str:
    """Return why the matrix unit cannot compute an anchor; "" if it can."""
    data, weight = (types.tensor(arg) for arg in anchor.args[:2])
    if (data.dtype, weight.dtype, types.tensor(anchor).dtype) != ("int8", "int8", "int32"):
        return f"it is of {data.dtype}: the accelerator multiplies int8, and adds in int32"
    attrs = REGISTRY[operator_of(anchor)].complete(anchor)
    groups = 1
    if operator_of(anchor) == "nn.conv2d":
        layouts = attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"] or "NCHW"
        if layouts != ("NCHW", "OIHW", "NCHW"):
            return f"its layouts are {', '.join(map(str, layouts))}: only NCHW and OIHW are known"
        if attrs["dilation"] != (1, 1):
            return f"its dilation is {attrs['dilation']}"
        rows, columns = attrs["strides"]
        top, left, bottom, right = attrs["padding"]
        if rows != columns or (top, left) != (bottom, right):
            return "its strides or its padding differ between sides"
        groups = int(attrs["groups"])
    channels, filters = data.shape[1], weight.shape[0]
    if not all(type(n) is int and n % (BLOCK * groups) == 0 for n in (channels, filters)):
        return f"its {channels} and {filters} channels are no whole blocks of {BLOCK}"
    return ""


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


def _decision(anchor: Call, layer: Layer | str, device: str) -> Decision:
    subject = (anchor.name or operator_of(anchor),)
    if isinstance(layer, str):
        return Decision(
            NAME, subject, "placed", "host", f"{subject[0]} stays on the host: {layer}",
        )  # fmt: skip
    return Decision(NAME, subject, "placed", "int8 layer", f"{subject[0]} runs on {device}")
