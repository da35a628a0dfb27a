"""Classic TVM's ``tvm.topi.generic``: schedules for any target."""

from __future__ import annotations

from typing import Any

from dlcompiler import te
from dlcompiler.compat.devices import GPUS
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.targets import Target
from dlcompiler.compat.tvm.topi import cuda
from dlcompiler.ops.injective import schedule_injective as schedule_one
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import resolve


def schedule_injective(outs: Any) -> Schedule:
    """Return a schedule of tensors that are not reductions, for the current target.

    It is vectorized for this machine; for a GPU, it has a thread for each element.

    Parameters
    ----------
    outs : Tensor or sequence of Tensor
        The outputs of the schedule.
    """
    current = Target.current()
    if current is not None and current.kind.name in GPUS:
        return cuda.schedule_injective(outs)
    results = [outs] if isinstance(outs, te.Tensor) else list(outs)
    s = create_schedule([out.op for out in results])
    for out in results:
        schedule_one(s, out, resolve("cpu"))
    return s


__getattr__ = reporter(__name__)
__all__ = ["schedule_injective"]
