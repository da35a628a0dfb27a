"""The passes and checks that turn loop nests into a program, for each kind of device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dlcompiler.analysis.device_intrinsics import check_intrinsics
from dlcompiler.analysis.device_limits import check_memory, check_threads
from dlcompiler.errors import TargetError
from dlcompiler.ir import PrimFunc
from dlcompiler.ir.program import Program
from dlcompiler.passes import (
    Pass,
    batch_assertions,
    branch_on_padding,
    compute_in_place,
    eliminate_common_subexpressions,
    inject_double_buffer,
    inject_prefetch,
    inject_rolling_buffer,
    inject_virtual_threads,
    instrument_bounds,
    load_ahead,
    lower_intrinsics,
    narrow_indices,
    partition_loops,
    serialize_vectorized_loops,
    simplify,
    storage_rewrite,
    unroll_loops,
    vectorize_loops,
)
from dlcompiler.passes.split_host_accelerator import split_host_accelerator
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.registry import Registry
from dlcompiler.target import Target


def accept(_func: PrimFunc, _target: Target) -> None:
    """Accept every function: a CPU has no such limits."""


def emits(what: str) -> Callable[[Target], bool]:
    """Return a predicate: code for a target may contain `what` (see `Target.emits`)."""
    return lambda target: what in target.emits


def lacks(what: str) -> Callable[[Target], bool]:
    """Return a predicate: code for a target cannot contain `what`."""
    return lambda target: what not in target.emits


def check_kernels(func: PrimFunc, target: Target) -> None:
    """Refuse a program that a GPU has no memory or no instructions for."""
    check_memory(func, target)
    check_intrinsics(func, target)


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
# Virtual threads add dimensions to buffers. They are injected before the passes that share or
# copy buffers. Loads go ahead as soon as double buffers have halves. Padding is stored in branches,
# which vectorizing then need not mask. Code for a GPU writes vectors of indices as scalars, and
# narrows these itself.
_BEFORE = {
    "prefetch": Pass(
        "virtual threads", inject_virtual_threads, requires=frozenset({"affine indices"})
    ),
    "storage rewrite": Pass("load ahead", load_ahead, reads_target=True),
    "vectorize": Pass("padding", branch_on_padding, requires=frozenset({"affine indices"})),
}
GPU_PASSES = tuple(
    each
    for item in CPU_PASSES
    if item.name != "narrow"
    for each in ((_BEFORE[item.name], item) if item.name in _BEFORE else (item,))
)
# An instruction runs whole loops: none is unrolled or vectorized. Buffers get their places when the
# instructions are chosen.
ACCELERATOR_PASSES = (
    Pass("simplify", simplify, establishes=frozenset({"affine indices"})),
    Pass("double buffer", inject_double_buffer),
    Pass("in place", compute_in_place, reads_target=True),
    Pass(
        "virtual threads",
        partial(inject_virtual_threads, whole_nests=True),
        requires=frozenset({"affine indices"}),
    ),
    Pass("simplify threads", simplify, requires=frozenset({"affine indices"})),
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The passes and checks between the loop nests of a schedule and the program, for a device."""

    passes: tuple[Pass, ...]
    """The passes in order; `passes_of` leaves out those that a target does not need."""
    check_nests: Callable[[PrimFunc, Target], None] = accept
    """Refuses loops that exceed a limit of the target. It runs before the passes, so that the error
    names the loops of the schedule."""
    check_result: Callable[[PrimFunc, Target], None] = accept
    """Refuses a program that exceeds a limit of the target. It runs after the passes."""
    divide: Callable[[PrimFunc], Program] = Program.of
    """Splits a function into kernels and the host part."""


PIPELINES: Registry[Pipeline] = Registry(
    "pipeline",
    {
        "cpu": Pipeline(CPU_PASSES),
        "gpu": Pipeline(GPU_PASSES, check_threads, check_kernels, split_host_device),
        "accelerator": Pipeline(ACCELERATOR_PASSES, divide=split_host_accelerator),
    },
    ("passes", "check_nests", "check_result", "divide"),
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
"""Passes that run only on request, after the others."""
INSTRUMENTS = {
    "bounds": Pass(
        "instrument bounds",
        instrument_bounds,
        requires=frozenset({"no vectorized loops", "no unrolled loops"}),
    )
}
"""Instruments: checks that a program makes while it runs. Their passes run after all others."""


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
