"""Targets for a part of the cases, in addition to this machine and a generic GPU."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dlcompiler.codegen.gpu import emit_opencl
from dlcompiler.errors import TargetError
from dlcompiler.ir import Const, PrimFunc
from dlcompiler.ir.program import Program
from dlcompiler.passes.cut_at_barriers import as_cpu_function
from dlcompiler.pipeline import Kernel, SimulatedKernel, build, emit_source
from dlcompiler.pipeline.devices import load
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.opencl import find_device
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

OTHERS = ("c", "c", "x86-64-avx2", "x86-64-sse4", "x86-64-sse2", "aarch64", "riscv64")
"""Kernels for those that run here are tried; for the others, code is made."""
GPUS = ("a100", "rtx-a6000", "rtx-4060-laptop")
SHARE = 0.04
"""Share of the cases that are also built for one of `OTHERS`: C takes a tenth of a second."""
GPU_SHARE = 0.15
"""Share of the cases with threads that are also compiled, and built for one of `GPUS`."""
OPENCL_SHARE = 0.1
"""Share of those that also run on the OpenCL device of this machine, if there is one and if the
limits of a GPU allow it: about three in ten are within them."""
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
UNKNOWN_SIZE = "is not known, but a thread has memory of fixed sizes only"


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


def is_tried_on_gpu(seed: int) -> bool:
    """Tell whether the program of a seed is tried as a GPU's device code, too; 0 always is."""
    return not seed or random.Random(f"target {seed}").random() < GPU_SHARE


def kernel_on_gpu(seed: int, schedule: Schedule, args: Sequence[Tensor]) -> SimulatedKernel | None:
    """Return the program for a GPU that has limits; None if it exceeds one."""
    try:
        return build(schedule, args, random.Random(f"gpu {seed}").choice(GPUS))
    except TargetError as error:
        if any(limit in str(error) for limit in GPU_LIMITS):
            return None
        raise


def kernel_in_opencl(seed: int, program: Program) -> Kernel | None:
    """Return a program for a GPU as one of this machine's OpenCL device, of some seeds."""
    if random.Random(f"opencl {seed}").random() >= OPENCL_SHARE or find_device()[0] is None:
        return None
    machine = resolve("opencl")
    try:
        return load(emit_opencl(program, machine), machine)
    except TargetError as error:
        if UNKNOWN_SIZE in str(error):
            return None
        raise


def code_of_threads(program: Program) -> PrimFunc | None:
    """Return a program for a GPU as loops of a CPU; None if no GPU takes it.

    That is if blocks would repeat a statement, or if a number of threads is not known: with 0 of
    them, a statement outside any thread would be left out.
    """
    counts = (n for launch in program.launches for tag, n in launch.threads.items()
              if tag.startswith("threadIdx"))  # fmt: skip
    if not all(isinstance(n, Const) for n in counts):
        return None
    try:
        return as_cpu_function(program)
    except TargetError as error:
        if "is outside the loop of blockIdx" in str(error):
            return None
        raise
