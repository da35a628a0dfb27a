"""Steps that several schedules share: find a stage by its role, and unroll loops last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule
from dlcompiler.te import Tensor

Loop: TypeAlias = tuple[Tensor, Axis]
"""A stage and one of its loops."""


def stages_by_role(s: Schedule, definition: str = "") -> dict[str, Tensor]:
    """Return the tensors of a schedule by the last part of their names.

    A definition names its stages ``depthwise.padded``, ``depthwise.sums``: the keys are ``padded``
    and ``sums``, so that one schedule serves several operators. With the name of a `definition`
    only its stages are returned.
    """
    names = ((stage.name.rpartition("."), stage.tensor) for stage in s.stages)
    return {role: made for (of, _, role), made in names if definition in ("", of)}


def unroll(s: Schedule, loops: Iterable[Loop]) -> None:
    """Unroll loops of several stages; the last step of a schedule.

    Each later step would check the extents of the unrolled loops anew, which takes time.
    """
    for tensor, axis in loops:
        s[tensor].unroll(axis)
