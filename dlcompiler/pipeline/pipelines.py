"""How loop nests become a program, for each kind of device: passes, checks, kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlcompiler.analysis.device_limits import check_memory, check_threads
from dlcompiler.errors import TargetError
from dlcompiler.ir import PrimFunc
from dlcompiler.ir.program import Program
from dlcompiler.passes import (
    Pass,
    batch_assertions,
    eliminate_common_subexpressions,
    inject_double_buffer,
    inject_prefetch,
    inject_rolling_buffer,
    inject_virtual_threads,
    instrument_bounds,
    lower_intrinsics,
    narrow_indices,
    partition_loops,
    serialize_vectorized_loops,
    simplify,
    storage_rewrite,
    unroll_loops,
    vectorize_loops,
)
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.registry import Registry
from dlcompiler.target import Target


def accept(_func: PrimFunc, _target: Target) -> None:
    """Accept every function: there are no limits to check."""


def emits(what: str) -> Callable[[Target], bool]:
    """Return whether code for a target may contain something: see `Target.emits`."""
    return lambda target: what in target.emits


def lacks(what: str) -> Callable[[Target], bool]:
    """Return whether code for a target cannot contain something."""
    return lambda target: what not in target.emits


# Why this order: index arithmetic is simplified while loops still stand for ranges; double
# buffering makes conditions that partitioning takes out; buffers share memory before copies of
# loops blur when each is needed; statements take the place of intrinsics while their loops can
# still be vectorized; partitioned loops leave few guards to vectorizing, which wants simple
# indices; vectors are narrowed while loops still bound them; unrolling comes late, since every
# later pass pays for the copies, and the last simplification folds the numbers that unrolling put
# in.
CPU_PASSES = (
    Pass("simplify", simplify, establishes=frozenset({"affine indices"})),
    Pass("batch assertions", batch_assertions, requires=frozenset({"affine indices"})),
    Pass("rolling buffer", inject_rolling_buffer, requires=frozenset({"affine indices"})),
    Pass(
        "prefetch",
        inject_prefetch,
        requires=frozenset({"affine indices"}),
        only_for=emits("prefetch"),
    ),
    Pass("double buffer", inject_double_buffer),
    Pass("storage rewrite", storage_rewrite, requires=frozenset({"affine indices"})),
    Pass("partition", partition_loops, requires=frozenset({"affine indices"})),
    Pass("intrinsics", lower_intrinsics, requires=frozenset({"affine indices"})),
    Pass(
        "vectorize",
        vectorize_loops,
        requires=frozenset({"affine indices"}),
        establishes=frozenset({"no vectorized loops"}),
        only_for=emits("vectors"),
    ),
    Pass(
        "serialize",
        serialize_vectorized_loops,
        establishes=frozenset({"no vectorized loops"}),
        only_for=lacks("vectors"),
    ),
    Pass(
        "narrow",
        narrow_indices,
        requires=frozenset({"no vectorized loops"}),
        only_for=emits("vectors"),
    ),
    Pass(
        "unroll",
        unroll_loops,
        requires=frozenset({"no vectorized loops"}),
        establishes=frozenset({"no unrolled loops"}),
    ),
    Pass("simplify unrolled", simplify, requires=frozenset({"no unrolled loops"})),
)
# Virtual threads come before what shares and copies buffers, since they add dimensions to them.
_ROLLED = 1 + [item.name for item in CPU_PASSES].index("rolling buffer")
GPU_PASSES = (
    *CPU_PASSES[:_ROLLED],
    Pass("virtual threads", inject_virtual_threads, requires=frozenset({"affine indices"})),
    *CPU_PASSES[_ROLLED:],
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What happens between the loop nests of a schedule and a program for a kind of device."""

    passes: tuple[Pass, ...]
    """In order; `passes_of` leaves out what is not for a target."""
    check_nests: Callable[[PrimFunc, Target], None] = accept
    """Refuses loops, as the schedule names them, that are beyond the limits of a target."""
    check_result: Callable[[PrimFunc, Target], None] = accept
    """Refuses what the passes made of them for the same reason."""
    divide: Callable[[PrimFunc], Program] = Program.of
    """Returns the kernels of a function, and what the host does."""


PIPELINES: Registry[Pipeline] = Registry(
    "pipeline",
    {
        "cpu": Pipeline(CPU_PASSES),
        "gpu": Pipeline(GPU_PASSES, check_threads, check_memory, split_host_device),
    },
)
"""Kind of device -> its pipeline."""
# Measured on one x86-64 machine: LLVM finds common subexpressions by itself, so that naming them
# makes no kernel faster, and one slower (a convolution's tile, 4.4 ms -> 7.1 ms: the names keep
# vectors in registers that LLVM would rather load again).
EXTRA_PASSES = {
    "common subexpressions": Pass(
        "common subexpressions",
        eliminate_common_subexpressions,
        requires=frozenset({"no vectorized loops", "no unrolled loops"}),
    )
}
"""Passes that are run on request only, behind the others."""
INSTRUMENTS = {
    "bounds": Pass(
        "instrument bounds",
        instrument_bounds,
        requires=frozenset({"no vectorized loops", "no unrolled loops"}),
    )
}
"""What a program can be made to check while it runs: passes behind all others."""


def pipeline_of(target: Target) -> Pipeline:
    """Return the pipeline for the device of a target.

    Raises
    ------
    TargetError
        There is none for its kind of device.
    """
    return PIPELINES.find(target.device, f"lower for {target.name}", error=TargetError)


def passes_of(target: Target) -> tuple[Pass, ...]:
    """Return the passes for a target, in order.

    Raises
    ------
    TargetError
        There are none for its kind of device.
    """
    passes = pipeline_of(target).passes
    return tuple(item for item in passes if item.only_for is None or item.only_for(target))
