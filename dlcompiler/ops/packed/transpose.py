"""The operator conv2d_transpose_packed: transposed convolutions of int8 blocks, with a tail.

Row ``y`` of the result adds products of the image with those rows ``p`` of the kernel for which
``y + padding - p`` is a multiple of the stride. So the rows of the result with one remainder are an
ordinary convolution with each stride-th row of the kernel, and no zeros are put between the rows of
the image. Where the stride does not divide the kernel, zeros fill the kernel up.
"""

from __future__ import annotations

from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, by_device
from dlcompiler.ops.packed.blocks import STANDARD, Sizes, check_range, check_whole, pair
from dlcompiler.ops.packed.conv2d import window
from dlcompiler.ops.packed.extents import TRANSPOSE, extents_of
from dlcompiler.ops.packed.reference import reference
from dlcompiler.ops.packed.sums import define
from dlcompiler.ops.packed.tail import checked_tail
from dlcompiler.ops.packed.weights import prepack
from dlcompiler.space import Workload


def workload(
    *, c: int, h: int, w: int, o: int, kernel: Sizes, n: int = 1, stride: int = 1,
    padding: Sizes = 0, output_padding: Sizes = 0, block: str = str(STANDARD), **tail: int,
) -> Workload:  # fmt: skip
    """Return the workload of a transposed convolution of int8 blocks.

    Parameters
    ----------
    stride : int
        Distance of neighbouring inputs in the result.
    padding : int or tuple of int
        Rows and columns that the result lacks on each side, less than the kernel has.
    output_padding : int or tuple of int
        Rows and columns that are added below and to the right, fewer than `stride`.
    c, h, w, o, kernel, n, block, **tail
        See `conv2d.workload`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    blocks, image = window(
        TRANSPOSE, n=n, c=c, h=h, w=w, kernel=kernel, stride=stride, padding=padding, block=block
    )
    extra_h, extra_w = pair(TRANSPOSE, "output_padding", output_padding)
    check_range(TRANSPOSE, 1, o=o)
    check_range(TRANSPOSE, 0, extra_h=extra_h, extra_w=extra_w)
    check_whole(TRANSPOSE, blocks.outputs, o=o)
    own = {**image, "extra_h": extra_h, "extra_w": extra_w, "o": o, "block": str(blocks)}
    found = Workload.of(TRANSPOSE, **own, **checked_tail(TRANSPOSE, **tail))
    e = extents_of(found)
    for pad, size, extra, out in zip(e.padding, e.kernel, e.extra, e.out, strict=True):
        if pad >= size or extra >= stride or out < 1:
            raise TuningError(
                f"workload of {TRANSPOSE}", "the padding is too large", got=str(found),
                expected="padding < kernel, output_padding < stride, and a result",
            )  # fmt: skip
    return found


CONV2D_TRANSPOSE_PACKED = Operator(
    TRANSPOSE, workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}), prepack,
)  # fmt: skip
