"""Open the best known schedule of a product as a branch; compare the current rate with the peak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler import dtypes
from dlcompiler.analysis.advice import Speed
from dlcompiler.autotune import best_choice
from dlcompiler.autotune.features.cycles import FLOPS_PER_LANE
from dlcompiler.autotune.models.roofline import CYCLE_S
from dlcompiler.errors import ScheduleError
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.ops.gemm.written import product_of, schedule_product
from dlcompiler.schedule import create_schedule
from dlcompiler_widgets.explorer.measured import measured_for, peak_ceilings

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session


def speed_of(session: Session) -> Speed | None:
    """Return the rate of the current state and the peak; None if the state is not measured."""
    measured = measured_for(session, session.schedule.node)
    dtype = session.schedule.outputs[0].dtype
    if measured is None or not measured.threads or not dtypes.is_float(dtype):
        return None
    gflops, threads = measured.shown.gflops, measured.threads
    if gflops is None:
        return None
    found = peak_ceilings(session, threads)
    if isinstance(found, Ceilings):
        return Speed(gflops, found.peak_gflops, threads, "measured on this machine")
    peak = session.target.lanes(dtype) * FLOPS_PER_LANE * threads / CYCLE_S / 1e9
    return Speed(gflops, peak, threads, f"estimated for {1e-9 / CYCLE_S:.0f} GHz")


def open_best(session: Session, args: Mapping[str, Any]) -> None:
    """Go to the best known schedule of the product that the session shows, as a branch.

    Its config is that of the fastest record in the session's database, or else the default one.
    """
    outputs = session.schedule.outputs
    found = [(tensor, product_of(tensor)) for tensor in outputs]
    tensor, workload = next(((t, w) for t, w in found if w is not None), (None, None))
    if tensor is None or workload is None:
        raise ScheduleError(
            "open the best known schedule", "no output is a matrix product",
            got=", ".join(each.name for each in outputs),
            expected="sum(A[i, k] * B[k, j]) of float32 or float64; A and B may be transposed, or "
            "stacks of matrices",
        )  # fmt: skip
    choice = best_choice(workload, session.target, session.db)
    made = create_schedule([each.op for each in outputs])
    schedule_product(made, tensor, choice.config, session.target)
    # A second cursor on the history has no listeners, so the page is updated once at the end.
    way = session.schedule.fork("best known")
    way.jump(way.history.history.root.id)
    made.trace.replay(way)
    if not way.node.name:
        way.describe(name="best known")
    session.schedule.jump(way.node.id)
    session.follow(f"Opened as a branch: {choice.note}.")


ACTIONS = {"best": open_best}
"""By the name of the request."""
