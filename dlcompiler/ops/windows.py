"""The CPU schedule of depthwise convolution and of pooling, whose stages are the same.

The layout decides: images in NCHW are computed along rows (`dlcompiler.ops.sliding`), those whose
channels lie side by side in vectors of channels (`dlcompiler.ops.channels`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.channels import channels_config, channels_space, schedule_channels
from dlcompiler.ops.sliding import Sliding, schedule_sliding, sliding_config, sliding_space
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor


def window_schedule(
    windows: Callable[[Workload], Sliding],
    define: Callable[[Workload], tuple[Tensor, ...]] | None = None,
    *,
    has_weights: bool = False,
) -> DeviceSchedule:
    """Make the CPU schedule of an operator with the stages ``….padded`` and ``….sums``.

    Parameters
    ----------
    windows : callable
        Returns the windows of a workload, which has the parameter ``layout``.
    define : callable, optional
        `DeviceSchedule.define`: the definition in two passes, if windows may be so.
    has_weights : bool
        Whether elements of windows are multiplied by weights.
    """

    def is_by_rows(workload: Workload) -> bool:
        return bool(workload["layout"] == "NCHW")

    def space(workload: Workload, target: Target) -> Space:
        """Return the knobs: see `sliding.sliding_space`, `channels.channels_space`."""
        choices = sliding_space if is_by_rows(workload) else channels_space
        return choices(workload, windows(workload), target)

    def default_config(workload: Workload, target: Target) -> Config:
        if is_by_rows(workload):
            return sliding_config(workload, windows(workload), target)
        return channels_config(workload, windows(workload), target, has_weights=has_weights)

    def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
        """Schedule windows on a CPU: `sliding.schedule_sliding`, `channels.schedule_channels`."""
        (result,) = outs
        # Only the space of `sliding` has this knob.
        apply = schedule_sliding if "rows" in cfg else schedule_channels
        apply(s, result, cfg, target)

    return DeviceSchedule(space, default_config, schedule, define=define)
