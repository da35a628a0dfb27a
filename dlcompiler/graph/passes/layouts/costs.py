"""What layouts cost: a convolution in a layout, and the change of a tensor to another one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlcompiler.graph.ir import Constant, Node, TensorType, nbytes
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.layouts.forms import CallForms


@dataclass(frozen=True, slots=True)
class LayoutCosts:
    """Costs that the search adds up."""

    call: Callable[[CallForms, str], float]
    """Time of a call of an operator of the search in a layout of its images; [s]."""
    transform: Callable[[Node, TensorType, str, str], float]
    """Time to bring a value, of a type as it is now, from one layout to another; [s]."""
    provenance: str = "measured"
    """How the numbers were found: ``predicted``, ``measured`` or ``simulated``, and on what."""


def predicted_costs(
    *, lanes: int = 8, flops_per_second: float = 5e10, bytes_per_second: float = 1e10
) -> LayoutCosts:
    """Return costs that follow from shapes and the rates of a machine.

    Parameters
    ----------
    lanes : int
        Numbers of float32 in a vector; [1].
    flops_per_second : float
        Peak of a core; [1/s].
    bytes_per_second : float
        Rate at which a core reads and writes memory; [byte/s].

    Notes
    -----
    A convolution takes its operations over the peak, divided by the part of the vector lanes that
    it can use. Along the channels of a block or of NHWC, vectors are loaded whole. Along the width,
    as in NCHW, the last vector of a row is partly empty, and strides leave out lanes. Its operands
    are read once. A change of layout reads and writes each element once; constants are changed when
    they are folded. These are predictions: they rank layouts, and are no times of a kernel.

    **Source:** Y. Liu and others, "Optimizing CNN model inference on CPUs", USENIX ATC 2019,
    section 3.1 has the loop nest with blocks of channels.
    """

    def call(forms: CallForms, layout: str) -> float:
        if forms.form(layout) is None:
            return math.inf
        flops, bytes_ = _work(forms)
        used = _lanes_used(forms, layout, lanes)
        return max(flops / (flops_per_second * used), bytes_ / bytes_per_second)

    def transform(node: Node, kind: TensorType, old: str, new: str) -> float:
        if old == new or isinstance(node, Constant):
            return 0.0
        return 2 * nbytes(kind) / bytes_per_second

    rates = f"{flops_per_second:.3g} operations and {bytes_per_second:.3g} bytes a second"
    return LayoutCosts(call, transform, f"predicted from {lanes} lanes, {rates}")


def _extents(forms: CallForms) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the extents of images, weights and results."""
    result = forms.result
    texts = (*forms.current[:2], forms.form_now_outputs[0])
    kinds = (*result.inputs[:2], result.tensor)
    found = [
        layout_of(text).extents(kind.shape)
        for text, kind in zip(texts, kinds, strict=True)
        if isinstance(kind, TensorType)
    ]
    return found[0], found[1], found[2]


def _work(forms: CallForms) -> tuple[int, int]:
    """Return the operations of a convolution, and the bytes of its operands and its result."""
    _, weight, out = _extents(forms)
    taps = math.prod(extent for letter, extent in weight.items() if letter != "O")
    kinds = (*forms.result.inputs[:2], forms.result.tensor)
    bytes_ = sum(nbytes(kind) for kind in kinds if isinstance(kind, TensorType))
    return 2 * math.prod(out.values()) * taps, bytes_


def _lanes_used(forms: CallForms, layout: str, lanes: int) -> float:
    """Return the part of the vector lanes that a convolution uses, from 0 to 1."""
    _, _, out = _extents(forms)
    stored = layout_of(layout)
    if stored.is_blocked:
        length, stride = stored.factor("C"), 1
    else:
        letter = stored.axes[-1]
        length = out[letter]
        stride = 1 if letter == "C" else forms.result.attrs["strides"][-1]
    vectors = -(-length // lanes)
    return max(length / (vectors * lanes * stride), 1 / (lanes * stride))
