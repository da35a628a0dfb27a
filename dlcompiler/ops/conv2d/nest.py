"""Schedule steps shared by the direct convolution and the convolution as a matrix product.

Both keep a tile of sums in registers, and compute it inside blocks of rows and blocks of output
channels of the result; the image, copied before, is read by all blocks of channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.space import Config
from dlcompiler.te import PlaceholderOp, Tensor

_UNROLLED_VECTORS = 16


def sums_and_operands(result: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sums of a convolution, the image tensor that they read, and the weights."""
    sums = next(t for t in result.op.input_tensors if t.name == "conv2d.sums")
    image = next(t for t in sums.op.input_tensors if t.name != "weight")
    weight = next(t for t in sums.op.input_tensors if t.name == "weight")
    return sums, image, weight


def split_channels(
    stage: Stage, channel: Axis, extent: int, groups: int, block: int
) -> tuple[list[Axis], Axis]:
    """Split the loop over output channels into groups and blocks.

    Parameters
    ----------
    stage : Stage
        The stage of the result.
    channel : Axis
        Its loop over `extent` channels, or over bundles of channels.
    extent, groups, block : int
        Number of channels, of groups, and of channels in a block; [1].

    Returns
    -------
    tuple
        The loops over groups (if there are several) and blocks, and the loop inside a block.
    """
    outer = []
    if groups > 1:
        group, channel = stage.split(channel, max(extent // groups, 1))
        outer = [group]
    blocks, inside = stage.split(channel, block)
    return [*outer, blocks], inside


def parallelize_outermost(
    stage: Stage, image: Axis, rows: Sequence[Axis], channels: Sequence[Axis], cfg: Config
) -> Axis:
    """Run the outermost loops on several cores if the config says so.

    Parameters
    ----------
    stage : Stage
        The stage of the result; its outermost loops are in the order of the config.
    image : Axis
        The loop over images.
    rows : sequence of Axis
        The loop over blocks of rows, and perhaps those inside it that are shared as well.
    channels : sequence of Axis
        Loops over groups and blocks of channels.
    cfg : Config
        Has the knobs ``order`` and ``parallel``.

    Returns
    -------
    Axis
        The loop over blocks of rows, perhaps fused: where the image is copied, by rows.
    """
    if not cfg["parallel"]:
        return rows[0]
    is_by_rows = cfg["order"] == "rows"
    shared = stage.fuse(image, *(rows if is_by_rows else channels))
    stage.parallel(shared)
    return shared if is_by_rows else rows[0]


def split_reduction(stage: Stage, channels: Axis, taps: Sequence[Axis], steps: int) -> list[Axis]:
    """Return the loops of a reduction, with an innermost unrolled loop over a few channels.

    Parameters
    ----------
    stage : Stage
        The stage of the sums.
    channels : Axis
        The loop over input channels.
    taps : sequence of Axis
        The loops over the kernel.
    steps : int
        Channels of one iteration; with 1 nothing is split.
    """
    if steps == 1:
        return [channels, *taps]
    channels, step = stage.split(channels, steps)
    stage.unroll(step)
    return [channels, *taps, step]


def place_copy(
    s: Schedule, copy: Tensor, result: Tensor, rows: Axis, cfg: Config, *, lanes: int, row: int = 0
) -> None:
    """Schedule the copied image: for each block of rows, or as a whole before all blocks.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    copy : Tensor
        What the sums read; an image that is read where it is, a placeholder, has no stage.
    result : Tensor
        The convolution's.
    rows : Axis
        The loop over blocks of rows.
    cfg : Config
        Has the knobs ``order`` and ``parallel``.
    lanes : int
        Lanes of a vector.
    row : int
        Elements of the innermost dimension that form a row; 0: all.
    """
    if isinstance(copy.op, PlaceholderOp):
        return
    is_by_rows = cfg["order"] == "rows"
    if is_by_rows:
        s[copy].compute_at(s[result], rows)
    if row:
        s[copy].split(copy.op.axis[-1], row)
    _copy_rows(s[copy], lanes, is_parallel=cfg["parallel"] and not is_by_rows)


def _copy_rows(stage: Stage, lanes: int, *, is_parallel: bool) -> None:
    """Copy rows in vectors, and on several cores if requested."""
    first, second, *_, last = stage.leaf_iter_vars
    vectors, vector = stage.split(last, lanes)
    stage.vectorize(vector)
    if last.extent <= _UNROLLED_VECTORS * lanes:
        stage.unroll(vectors)
    if is_parallel:
        stage.parallel(stage.fuse(first, second))
