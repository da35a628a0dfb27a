"""Where the lanes of vectorized loops run: inside all other loops.

Vectorizing turns each statement in a loop into vector operations. So the loops in a vectorized loop
are around its lanes in the machine code, and a loop with more iterations than a vector has lanes
becomes rounds of such vectors, which stay where the loop was (`dlcompiler.passes.vectorize_loops`).

Measured on a processor with AVX2 for twelve products, sums and convolutions whose vectorized loop
contains others: ten are predicted at 0.9 to 2.0 times their time, and two that store columns at 2
and 9 times. With the lanes where the loop stands, it was up to 78 times.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler import dtypes
from dlcompiler.ir import Axis
from dlcompiler.passes.vectorize_loops import MAX_LANES, VECTOR_BYTES
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.state import Split, StageState, State

STRAIGHT = ("vectorized", "unrolled")
"""Kinds of loops that leave no loop in the code."""


def lanes_inside(state: State) -> State:
    """Return a placed state in which the lanes of vectorized loops are the innermost loops."""
    stages = tuple(map(_lanes_inside, state.stages))
    if all(new is old for new, old in zip(stages, state.stages, strict=True)):
        return state
    result = State(state.id, stages)
    result.cache.update(placed=result, bodies=bodies(state))
    return result


def _lanes_inside(stage: StageState) -> StageState:
    for axis in stage.leaves:
        inside = stage.leaves[stage.position(axis) + 1 :]
        has_loop = any(stage.kind(leaf) not in STRAIGHT for leaf in inside)
        if stage.kind(axis) == "vectorized" and has_loop:
            stage = _moved(stage, axis)
    return stage


def _moved(stage: StageState, axis: Axis) -> StageState:
    """Move the lanes of a vectorized loop inside; its rounds, if there are any, stay."""
    most = min(MAX_LANES, max(VECTOR_BYTES // dtypes.bytes_of(stage.tensor.dtype), 2))
    at = stage.position(axis)
    before, behind = stage.leaves[:at], stage.leaves[at + 1 :]
    if isinstance(axis.extent, int) and axis.extent <= MAX_LANES:
        return replace(stage, leaves=(*before, *behind, axis))
    rounds, lanes = (
        Axis(f"{axis.name}.{name}", axis.extent, axis.kind) for name in ("round", "lane")
    )
    return replace(
        stage,
        leaves=(*before, rounds, *behind, lanes),
        relations=(*stage.relations, Split(axis, rounds, lanes, most, None)),
        kinds={**stage.kinds, lanes: "vectorized"},
        paths={**stage.paths, rounds: rounds.name, lanes: lanes.name},
    )
