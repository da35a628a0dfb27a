"""Give the int8 layers of a model to an accelerator with a matrix unit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from dlcompiler.graph.decisions import Decision, Wish
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import Call, Module, Node, named
from dlcompiler.graph.ir.traverse import rewrite_from
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import call as make_call
from dlcompiler.graph.passes.devices.layers import Layer, layers_of
from dlcompiler.graph.passes.devices.workloads import misfit
from dlcompiler.graph.passes.tools import operator_of
from dlcompiler.target import Target, resolve

NAME = "offload"


def offload(
    module: Module, device: str = "vta", host: str = "cpu", target: Target | str | None = None
) -> Module:
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
        A model with int8 layers: a convolution, also of groups or transposed, a dense layer or a
        sum over whole images, of int8 with sums in int32; perhaps a bias, a shift to the right; a
        clip to −127 or 0 … 127, and a cast to int8. The largest elements of windows are a layer,
        too.
    device, host : str
        Names of the devices.
    target : Target or str, optional
        The accelerator that `device` stands for. Layers that do not fit into its memories stay on
        the host.

    Returns
    -------
    Module
        Its log says of each of these operators where it runs, and why.
    """
    typed = named(infer_types(module))
    types = types_of(typed)
    accelerator = None if target is None else resolve(target)
    log: list[Decision] = []
    wishes: list[Wish] = []
    functions = dict(typed.functions)
    for name, function in typed.functions.items():
        layers = [
            (anchor, _fitting(layer, types, accelerator))
            for anchor, layer in layers_of(function, types)
        ]
        log += [_decision(anchor, layer, device) for anchor, layer in layers]
        found = [layer for _, layer in layers if isinstance(layer, Layer)]
        wishes += [wish for layer in found for wish in _together(layer)]
        inside = {each for layer in found for each in layer.calls}

        def rule(old: Node, new: Node, inside: set[Call] = inside) -> Node:
            if not isinstance(old, Call) or not operator_of(old):
                return new
            place = device if old in inside else host
            return make_call(REGISTRY["on_device"], (new,), {"device": place})

        functions[name] = rewrite_from(function, rule)
    wished = (*typed.wishes, *wishes)
    return replace(typed, functions=functions, log=(*typed.log, *log), wishes=wished)


def _fitting(layer: Layer | str, types: Types, target: Target | None) -> Layer | str:
    """Return a layer, or why the accelerator cannot compute it."""
    if target is None or isinstance(layer, str):
        return layer
    return misfit(layer, types, target) or layer


def _together(layer: Layer) -> Iterator[Wish]:
    """Yield wishes that the calls of a layer are one kernel, where the rules would divide them.

    What follows a sum is a kernel of its own by the rules of fusion, and what widens its data would
    become a part of the kernel before it.
    """
    if layer.operator == "sum":
        for after, before in itertools.pairwise(layer.calls):
            yield Wish("fuse", (before.name, after.name))


def _decision(anchor: Call, layer: Layer | str, device: str) -> Decision:
    subject = (anchor.name or operator_of(anchor),)
    if isinstance(layer, str):
        return Decision(
            NAME, subject, "placed", "host", f"{subject[0]} stays on the host: {layer}",
        )  # fmt: skip
    return Decision(NAME, subject, "placed", "int8 layer", f"{subject[0]} runs on {device}")
