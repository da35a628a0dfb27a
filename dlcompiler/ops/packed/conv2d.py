"""The operators conv2d_packed and depthwise_conv2d_packed: convolutions of int8 blocks.

A tail of elementwise operations makes int8 of the sums: see `tail.Tail`.

A block of filters reads the blocks in which the channels of its groups are. Groups without whole
blocks share blocks, and the weights of channels of other groups are zeros. So a depthwise
convolution multiplies by blocks of weights with zeros outside their diagonal: the GEMM core adds
one product for each channel in a cycle, and the ALU of VTA has no products. A block for each group,
filled up with channels of zeros, takes more: 32 groups of four channels 3.9 times the cycles, and
four times the data.
"""

from __future__ import annotations

from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, by_device
from dlcompiler.ops.packed.blocks import (
    STANDARD,
    Blocks,
    Sizes,
    check_kernel,
    check_range,
    check_whole,
    pair,
)
from dlcompiler.ops.packed.extents import CONV2D, DEPTHWISE
from dlcompiler.ops.packed.reference import reference
from dlcompiler.ops.packed.sums import define
from dlcompiler.ops.packed.tail import checked_tail
from dlcompiler.ops.packed.weights import prepack
from dlcompiler.space import Workload


def window(
    op: str, *, n: int, c: int, h: int, w: int, kernel: Sizes, stride: int, padding: Sizes,
    block: str,
) -> tuple[Blocks, dict[str, int]]:  # fmt: skip
    """Check the parameters that all operators on images in blocks have.

    Returns
    -------
    Blocks, dict
        The blocks, and the parameters as a workload holds them.

    Raises
    ------
    TuningError
        One is not valid.
    """
    blocks = Blocks.of(op, block)
    kernel_h, kernel_w = pair(op, "kernel", kernel)
    pad_h, pad_w = pair(op, "padding", padding)
    sizes = {"n": n, "c": c, "h": h, "w": w, "kernel_h": kernel_h, "kernel_w": kernel_w}
    check_range(op, 1, **sizes, stride=stride)
    check_range(op, 0, pad_h=pad_h, pad_w=pad_w)
    check_whole(op, blocks.batch, n=n)
    check_whole(op, blocks.inputs, c=c)
    return blocks, {**sizes, "stride": stride, "pad_h": pad_h, "pad_w": pad_w}


def workload(
    *, c: int, h: int, w: int, o: int, kernel: Sizes, n: int = 1, stride: int = 1,
    padding: Sizes = 0, groups: int = 1, block: str = str(STANDARD), **tail: int,
) -> Workload:  # fmt: skip
    """Return the workload of a convolution of int8 blocks.

    Parameters
    ----------
    c, o : int
        Input and output channels, multiples of the blocks' inputs and outputs.
    h, w : int
        Height and width of the images.
    kernel, padding : int or tuple of int
        Extents of the kernel, and zeros on each side; (rows, columns).
    n : int
        Number of images, a multiple of the blocks' batch.
    stride : int
        Distance of neighbouring windows.
    groups : int
        Groups of channels; a group need not have whole blocks.
    block : str
        Batch, outputs and inputs of a block.
    **tail
        ``shift``, ``bias``, ``residual``, ``relu``: see `tail.Tail`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    blocks, image = window(
        CONV2D, n=n, c=c, h=h, w=w, kernel=kernel, stride=stride, padding=padding, block=block
    )
    check_range(CONV2D, 1, o=o, groups=groups)
    check_whole(CONV2D, blocks.outputs, o=o)
    if c % groups or o % groups:
        raise TuningError(
            f"workload of {CONV2D}", "the groups have no equal numbers of channels",
            got=f"c={c}, o={o}, groups={groups}", expected="groups divides c and o",
        )  # fmt: skip
    _check_kernel(CONV2D, image)
    own: dict[str, int | str] = {**image, "o": o, "groups": groups, "block": str(blocks)}
    return Workload.of(CONV2D, **own, **checked_tail(CONV2D, **tail))


def depthwise_workload(
    *, c: int, h: int, w: int, kernel: Sizes, n: int = 1, multiplier: int = 1, stride: int = 1,
    padding: Sizes = 0, block: str = str(STANDARD), **tail: int,
) -> Workload:  # fmt: skip
    """Return the workload of a depthwise convolution of int8 blocks.

    Parameters
    ----------
    c : int
        Channels, a multiple of the blocks' inputs.
    multiplier : int
        Outputs of each channel; ``c * multiplier`` is a multiple of the blocks' outputs.
    h, w, kernel, n, stride, padding, block, **tail
        See `workload`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    blocks, image = window(
        DEPTHWISE, n=n, c=c, h=h, w=w, kernel=kernel, stride=stride, padding=padding, block=block
    )
    check_range(DEPTHWISE, 1, multiplier=multiplier)
    check_whole(DEPTHWISE, blocks.outputs, outputs=c * multiplier)
    _check_kernel(DEPTHWISE, image)
    own: dict[str, int | str] = {**image, "multiplier": multiplier, "block": str(blocks)}
    return Workload.of(DEPTHWISE, **own, **checked_tail(DEPTHWISE, **tail))


def _check_kernel(op: str, image: dict[str, int]) -> None:
    height, width, *others = (image[name] for name in ("h", "w", "kernel_h", "kernel_w"))
    check_kernel(op, (height, width), (others[0], others[1]), (image["pad_h"], image["pad_w"]))


CONV2D_PACKED = Operator(
    CONV2D, workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}), prepack,
)  # fmt: skip
DEPTHWISE_PACKED = Operator(
    DEPTHWISE, depthwise_workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}), prepack,
)  # fmt: skip
