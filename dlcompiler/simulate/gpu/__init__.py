"""The simulated GPU: counts of what its warps execute, resources of kernels, occupancy."""

from dlcompiler.simulate.gpu.counters import AccessCounters, Given, KernelCounters, count_launch
from dlcompiler.simulate.gpu.populations import Tally

__all__ = ["AccessCounters", "Given", "KernelCounters", "Tally", "count_launch"]
