"""Compare two schedules: the difference of their programs, and which one is faster."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.display import render
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.pipeline import build, lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.runtime.timing import Paired, format_ratio
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor


@dataclass(frozen=True)
class Comparison:
    """Two schedules with the difference of their loop nests and their times."""

    a: str
    b: str
    timing: Paired
    """Measured in alternation; a ratio above 1 says that the second one is faster."""
    diff: str
    """Unified diff of the two loop nests."""

    def __repr__(self) -> str:
        verdict = f"{self.b} takes {format_ratio(1 / self.timing.ratio)} the time of {self.a}"
        return f"{self.diff}\n{self.timing}\n{verdict}"

    def _repr_html_(self) -> str:
        return render("comparison", self)


def compare(
    a: Schedule,
    b: Schedule,
    args: Sequence[Tensor] | None = None,
    *,
    target: str | Target = "cpu",
    rounds: int = 9,
    timeout_s: float = 60.0,
) -> Comparison:
    """Compare two schedules of one expression, measured in alternation in a worker process.

    Parameters
    ----------
    a, b : Schedule
        The schedules, each at the state that is compared.
    args : sequence of Tensor, optional
        Parameters of both; by default all inputs, then the outputs.
    target : str or Target
        The target to build for; it must run here.
    rounds : int
        Number of samples of each.
    timeout_s : float
        Limit of the measurement [s].
    """
    chosen = default_args(a) if args is None else list(args)
    kernels = [build(s, chosen, target, name) for s, name in ((a, "first"), (b, "second"))]
    remote = [RemoteKernel.of(kernel) for kernel in kernels]
    work = kernels[0].work
    flops = (work.flops or None) if work else None
    timing = remote[1].pair(remote[0], limits={"rounds": rounds}, timeout_s=timeout_s, flops=flops)
    old, new = (str(lower(s, chosen, simple_mode=True)).splitlines() for s in (a, b))
    names = (a.name, b.name) if a.name != b.name else ("first", "second")
    lines = difflib.unified_diff(old, new, fromfile=names[0], tofile=names[1], lineterm="", n=2)
    return Comparison(*names, timing, "\n".join(lines))
