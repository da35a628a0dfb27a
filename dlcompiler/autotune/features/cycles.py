"""Predict the least time of a loop nest, from its arithmetic and its memory traffic."""

from __future__ import annotations

from dlcompiler.autotune.features.caches import WorkingSets
from dlcompiler.autotune.features.nest import Nest
from dlcompiler.autotune.features.numbers import Num, at_most, divide, most, select
from dlcompiler.ops.gemm.predict import FMA_LATENCY_CYCLES

BYTES_PER_CYCLE = (32.0, 16.0, 6.0)
"""Approximate bandwidth of one core from L2, L3 and memory [byte / cycle]."""
COST = {"add": 1, "mul": 1, "div": 16, "special": 24}
"""Cost of each kind of operation, in additions. A division occupies a unit for 4 to 8 cycles; a
function of `dlcompiler.codegen.llvm.functions` is about twenty instructions."""
FLOPS_PER_LANE = 4
"""Operations of each lane in a cycle: two multiply-adds."""
_LOADS = 2
"""In a cycle."""
_SPILL_CYCLES = 1.2
"""Cost of each accumulator in a step if not all fit the registers: it is then loaded, added to and
stored [cycle]. Measured on Zen 3 for products and convolutions: 1.0 to 1.35."""
_LOOP_CYCLES = 1.0
"""Overhead of an iteration of a loop, without its body [cycle]."""


def compute_cycles(nest: Nest) -> Num:
    """Return the cycles of arithmetic and loads, if all inputs are in L1.

    The time of the straight-line code is the largest of three: its multiply-adds, its loads, and
    the latency of its accumulators. Accumulators that do not fit the registers are loaded and
    stored in each step.
    """
    started = nest.trips[nest.body]
    counts = nest.statement.operations
    operations = max(sum(COST[kind] * count for kind, count in counts.items()), 1)
    in_body = divide(nest.trips[-1] * operations, most(started, 1))
    arithmetic = divide(in_body, nest.vector * FLOPS_PER_LANE)
    write, *reads = nest.statement.accesses
    loads: Num = 0
    for access in reads:
        loads = loads + nest.loads(access)
    if nest.accumulates:
        fits = at_most(nest.held, nest.target.vector_registers)
        in_memory = nest.accumulators * nest.steps * _SPILL_CYCLES
        arithmetic = most(arithmetic, select(fits, 0, in_memory))
    else:
        loads = loads + nest.loads(write)
    body = most(arithmetic, divide(loads, _LOADS))
    if nest.reduces:
        body = most(body, nest.steps * FMA_LATENCY_CYCLES)
    total = started * (body + _LOOP_CYCLES)
    if nest.accumulates:
        # Before and after each run of the reduction the sums are loaded and stored.
        total = total + nest.trips[nest.first_step] * nest.accumulators
    return divide(total, nest.speedup)


def memory_cycles(sets: WorkingSets) -> tuple[Num, ...]:
    """Return the cycles of reading from L2, from L3, and from memory."""
    result = []
    for level, rate in enumerate(BYTES_PER_CYCLE):
        total: Num = 0
        for traffic in sets.traffic:
            total = total + traffic[level]
        result.append(divide(divide(total, rate), sets.nest.speedup))
    return tuple(result)
