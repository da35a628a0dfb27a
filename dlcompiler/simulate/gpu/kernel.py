"""What is known of a kernel before it runs: the input of pictures and of advice about GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.simulate.gpu.counters import KernelCounters
from dlcompiler.simulate.gpu.occupancy import Occupancy
from dlcompiler.simulate.gpu.requests import Request
from dlcompiler.simulate.gpu.resources import Resources
from dlcompiler.simulate.gpu.time import KernelTime


@dataclass(frozen=True, slots=True, eq=False)
class KernelFacts:
    """Counters, resources, occupancy and predicted time of a kernel on a GPU."""

    counters: KernelCounters
    """What its warps execute; simulated."""
    requests: tuple[Request, ...]
    """One request of a warp for each access in `counters`, in the same order."""
    needs: Resources
    """Its registers and memory; estimated."""
    occupancy: Occupancy | None
    """How many blocks run at once; None if the target does not say enough."""
    time: KernelTime | None
    """How long it takes, predicted; None if the target has no rates for it, or no block fits."""
    launches: int = 1
    """How often the kernel is started; [1]."""
    barriers: int = 0
    """Barriers in what a thread does, as generated code has them; [1]."""
    needless_barriers: int = 0
    """Those of them without which no two threads race; [1]."""

    @property
    def blocks(self) -> int:
        """Blocks of one launch; [1]."""
        return self.counters.blocks // max(self.launches, 1)
