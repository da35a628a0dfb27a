"""Targets for a part of the cases, in addition to this machine and a generic GPU."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dlcompiler.errors import TargetError
from dlcompiler.pipeline import Kernel, SimulatedKernel, build, emit_source
from dlcompiler.runtime.llvm import Options
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

OTHERS = ("c", "c", "x86-64-avx2", "x86-64-sse4", "x86-64-sse2", "aarch64", "riscv64")
"""Kernels for those that run here are tried; for the others, code is made."""
GPUS = ("a100", "rtx-a6000", "rtx-4060-laptop")
SHARE = 0.04
"""Share of the cases that are also built for one of `OTHERS`: C takes a tenth of a second."""
GPU_SHARE = 0.15
"""Share of the cases with threads that are also built for one of `GPUS`."""
NO_FLOAT16 = "float16 needs a processor that converts it"
GPU_LIMITS = (
    "memory than there is",
    "is computed outside any thread",
    "asks for too many",
    "too many threads",
    "too many virtual threads",
    "is not known",
    "may belong to several warps",
    "stores too much at once",
)
"""What `build` refuses for a GPU that has limits."""


def kernel_elsewhere(
    seed: int, schedule: Schedule, args: Sequence[Tensor]
) -> tuple[str, Kernel] | None:
    """Return the kernel for another target, and its name, of some seeds; 0 is always tried."""
    rng = random.Random(f"target {seed}")
    name = rng.choice(OTHERS)
    if seed and rng.random() >= SHARE:
        return None
    machine = resolve(name)
    try:
        if _runs_here(machine):
            return name, build(schedule, args, machine)
        emit_source(schedule, args, machine)
    except TargetError as error:
        if NO_FLOAT16 not in str(error):
            raise
    return None


def _runs_here(machine: Target) -> bool:
    try:
        Options.for_target(machine).check()
    except TargetError:
        return False
    return True


def kernel_on_gpu(
    seed: int, schedule: Schedule, args: Sequence[Tensor]
) -> tuple[str, SimulatedKernel] | None:
    """Return the program for a GPU that has limits, and its name, of some seeds."""
    rng = random.Random(f"target {seed}")
    name = rng.choice(GPUS)
    if seed and rng.random() >= GPU_SHARE:
        return None
    try:
        return name, build(schedule, args, name)
    except TargetError as error:
        if any(limit in str(error) for limit in GPU_LIMITS):
            return None
        raise
