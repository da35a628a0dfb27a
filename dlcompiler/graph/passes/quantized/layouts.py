"""The pass that stores the images of integer convolutions with their channels side by side."""

from __future__ import annotations

from dlcompiler.graph.ir import Call, Module
from dlcompiler.graph.passes.layouts import convert_layout
from dlcompiler.graph.passes.tools import attrs_of, operator_of

_WISHES = {"qnn.conv2d": ["NHWC", "default"], "nn.conv2d": ["default", "default"]}
"""Convolutions of floats stay as they are: most are faster in NCHW."""


def lay_out_integers(module: Module) -> Module:
    """Store the images of integer convolutions with their channels side by side.

    *Before*::

        qnn.conv2d(%x, %w)

    *After*::

        %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
        %2 = qnn.conv2d(%0, %1, data_layout="NHWC", kernel_layout="HWIO");
        layout_transform(%2, src_layout="NHWC", dst_layout="NCHW")

    An instruction multiplies four neighbouring bytes and adds up: in NHWC these are four channels,
    so that images need not be rearranged, and sums are stored as they are computed.

    Parameters
    ----------
    module : Module
        The module; without integer convolutions it stays as it is.
    """
    calls = [n for n in module.nodes() if operator_of(n) == "qnn.conv2d"]
    if all(isinstance(n, Call) and attrs_of(n)["data_layout"] == "NHWC" for n in calls):
        return module
    return convert_layout(module, _WISHES)
