"""Prefetch packed weights from beyond the caches of a core."""

from __future__ import annotations

import math

from dlcompiler import dtypes
from dlcompiler.ir import Axis
from dlcompiler.schedule import Stage
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

_AHEAD = 32
"""Iterations between what is read and what is prefetched: that many rows of a panel, or more where
an iteration reads several; [1]."""


def prefetch_weights(
    stage: Stage, weight: Tensor, steps: Axis, target: Target, ahead: int = _AHEAD
) -> None:
    """Prefetch rows of a panel of weights that are read some iterations later.

    Nothing is done where the weights fit the caches of a core.

    Parameters
    ----------
    stage : Stage
        Sums, which read the weights row by row.
    weight : Tensor
        Packed before the call.
    steps : Axis
        The loop over rows of the weights.
    target : Target
        A CPU.
    ahead : int
        Iterations of `steps` between what is read and what is prefetched: about 4 KB, and twice as
        much where a step takes few cycles.

    Notes
    -----
    The prefetcher of a processor stops at the end of a page, after a few rows of a panel. Measured
    on Emerald Rapids, float32, without: dense 1x4096x4096 takes 7 % longer, 4x4096x4096 45 %,
    128x3072x768 12 %, 512x2048x2048 13 %, 512x1024x1024 as long. With weights of bfloat16 one row
    takes 25 % longer, and a step of an LSTM, too. Convolutions whose weights come from memory:
    512 to 512 channels at 14 with stride 2 takes 25 % longer, minimal filtering 40 %.
    """
    size = math.prod(weight.static_shape) * dtypes.bytes_of(weight.dtype)
    is_far = isinstance(weight.op, PlaceholderOp) and size > target.cache_bytes(1)
    is_loop = not isinstance(steps.extent, int) or steps.extent > 1  # a traced extent is a formula
    if is_far and is_loop:
        stage.prefetch(weight, steps, ahead)
