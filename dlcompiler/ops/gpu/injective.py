"""Schedule operators on a GPU that compute each element independently.

Loops that are contiguous in every operand are fused, and shared out in vectors: each thread
computes some vectors that are a whole block of threads apart.

If an operand is transposed, blocks of threads copy a tile of it to shared memory by rows, and read
the tile by columns, so that both arrays are accessed along memory. Rows of the tile have an odd
number of words: the threads of a warp then read a column from different banks.

*Before*, then *after* ``schedule_elements`` of ``C[i, j] = A[j, i]`` with tiles of 32 × 32::

    for i in range(64):                 for block in blockIdx.x(8):
        for j in range(128):                allocate A.shared: float32[32, 32] strides [33, 1]
            C[i, j] = A[j, i]               for thread in threadIdx.x(256):
                                                A.shared[…, …] = A[…]          rows of A
                                            barrier
                                            for thread in threadIdx.x(256):
                                                C[…] = A.shared[…, …]          rows of C

**Source:** the tile is that of G. Ruetsch, P. Micikevicius, "Optimizing Matrix Transpose in CUDA",
2009, sections 4 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis, IfThenElse, TensorLoad, Var, walk
from dlcompiler.ops import operator
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gpu.anchors import behind, computed
from dlcompiler.ops.gpu.threads import Chip, bind, copy_together, fused, share_elements
from dlcompiler.ops.injective import axis_across, guards_in, joins, loads_in, side_by_side
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.schedule.auto_inline import inline_injective
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_THREADS = (64, 128, 256, 512, 1024)
_STEPS = (1, 2, 4, 8)
_SIDES = (8, 16, 32, 64)
_BYTES_AHEAD = 16
"""Bytes that a thread should load at once, so that enough of them are on their way [byte]."""


@dataclass(frozen=True)
class Crossing:
    """An operand that is contiguous along other loops than the result."""

    tensor: Tensor
    across: tuple[Axis, ...]
    """The loops of the result along which the operand is contiguous."""
    along: tuple[Axis, ...]
    """The loops along which the result is contiguous: its last ones."""
    layout: tuple[tuple[int, ...], ...]
    """Dimensions of the operand in groups: each becomes one dimension of the tile. The last group
    are the dimensions of `across`."""
    row: int
    """The group of the dimensions of `along`."""


@dataclass(frozen=True)
class Plan:
    """How the elements of a result are shared out."""

    axes: tuple[Axis, ...]
    joined: int
    """Elements of the last loops that are contiguous in all operands [1]."""
    is_whole: bool
    """Whether these are all loops."""
    crossing: Crossing | None
    is_plain: bool
    """Whether no element is chosen by a condition, so that vectors can be loaded."""


def plan_of(s: Schedule, out: Tensor) -> Plan:
    """Return how to share out the elements of a result whose producers are inlined.

    Parameters
    ----------
    s : Schedule
        A schedule in which the stages before `out` are inlined, or reductions.
    out : Tensor
        A result that is no reduction.
    """
    axes = s[out].op.axis
    loads = loads_in(s, out)
    joined = side_by_side(axes, loads, guards_in(s, out)) if axes else []
    body = [node for expr in bodies(s.state)[s[out].name] for node in walk(expr)]
    return Plan(
        tuple(axes),
        math.prod(axis.extent for axis in joined if isinstance(axis.extent, int)),
        len(joined) == len(axes),
        _crossing(axes, loads) if axes else None,
        not any(isinstance(node, IfThenElse) for node in body),
    )


def _crossing(axes: Sequence[Axis], loads: Sequence[TensorLoad]) -> Crossing | None:
    """Return the transposed operand of a result; None if there is none, or several, or other."""
    if any(axis.extent == 0 for axis in axes):
        return None
    side = axis_across(axes, loads)
    found = {load.tensor: load for load in loads if _is_across(axes, side, load)}
    if side is None or len(found) != 1:
        return None
    ((tensor, load),) = found.items()
    of_tensor = {tuple(map(id, each.indices)) for each in loads if each.tensor is tensor}
    variables = {axis.var for axis in axes}
    if len(of_tensor) > 1 or not all(index in variables for index in load.indices):
        return None
    end = next(n for n, axis in enumerate(axes) if axis is side)
    across = _run(axes[: end + 1], load)
    along = _run(axes[end + 1 :], load)
    place = {index: n for n, index in enumerate(load.indices)}
    groups = [tuple(place[axis.var] for axis in group) for group in (along, across)]
    single = [(n,) for n in range(len(load.indices)) if not any(n in group for group in groups)]
    layout = tuple(sorted([*single, *groups]))
    assert isinstance(tensor, Tensor)
    return Crossing(tensor, across, along, layout, layout.index(groups[0]))


def _is_across(axes: Sequence[Axis], side: Axis | None, load: TensorLoad) -> bool:
    return side is not None and axis_across(axes, [load]) is side


def _run(axes: Sequence[Axis], load: TensorLoad) -> tuple[Axis, ...]:
    """Return the longest run of last axes that is contiguous in a load."""
    found = [axes[-1]]
    for axis in reversed(axes[:-1]):
        if not joins(axis, found[0], load):
            break
        found.insert(0, axis)
    return tuple(found)


# -- the choices --------------------------------------------------------------------------------


def _plan(workload: Workload) -> tuple[Plan, Tensor]:
    out = operator(workload.op).define(workload)[-1]
    s = create_schedule(out)
    inline_injective(s)
    return plan_of(s, out), out


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    If no operand is transposed:

    ==============  ============================================================================
    ``threads``     of a block
    ``vector``      neighbouring results that a thread computes at once
    ``steps``       such groups of a thread
    ==============  ============================================================================

    If one is transposed:

    ==============  ============================================================================
    ``threads``     of a block
    ``rows``        of a tile of the result
    ``columns``     of it, along which the result is contiguous
    ``load``        neighbouring elements that a thread loads at once
    ``vector``      neighbouring results that it stores at once
    ==============  ============================================================================
    """
    plan, out = _plan(workload)
    chip = Chip.of(target)
    threads = Knob("threads", tuple(n for n in _THREADS if n <= chip.most_threads))
    if plan.crossing is None:
        vectors = _vectors(plan, chip.lanes(out.dtype))
        return Space(workload, [threads, Knob("vector", vectors), Knob("steps", _STEPS)])
    rows, columns = (_extent(axes) for axes in (plan.crossing.across, plan.crossing.along))
    lanes = chip.lanes(out.dtype)
    knobs = [
        threads,
        Knob("rows", _sides(rows)),
        Knob("columns", _sides(columns)),
        Knob("load", _lanes(rows, lanes)),
        Knob("vector", _lanes(columns, lanes)),
    ]
    size = dtypes.bytes_of(plan.crossing.tensor.dtype)
    filters = [
        Filter(
            "each thread has an element of a tile",
            lambda v: (
                v["threads"] * max(v["vector"], v["load"]) <= v["rows"] * v["columns"]
                or (v["threads"] == _THREADS[0] and v["vector"] == v["load"] == 1)
            ),
        ),
        Filter(
            "a tile fits in shared memory",
            lambda v: (v["rows"] + 8) * v["columns"] * size <= chip.shared_bytes,
        ),
    ]
    return Space(workload, knobs, filters)


def _extent(axes: Sequence[Axis]) -> int:
    return math.prod(axis.extent for axis in axes if isinstance(axis.extent, int))


def _vectors(plan: Plan, lanes: int) -> tuple[int, ...]:
    """Return how many results a thread may compute at once: vectors do not cross rows."""
    return tuple(n for n in (1, 2, 4) if n <= lanes and (plan.is_whole or plan.joined % n == 0))


def _sides(extent: int) -> tuple[int, ...]:
    """Return the sides of tiles along some loops: powers of two, or all."""
    most = max(extent, 1)
    return (*(n for n in _SIDES if n < most), *((most,) if most <= _SIDES[-1] else ()))


def _lanes(extent: int, lanes: int) -> tuple[int, ...]:
    return tuple(n for n in (1, 2, 4) if n <= lanes and max(extent, 1) % n == 0)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with vectors of 16 bytes, or tiles of 32 × 32.

    Notes
    -----
    A thread loads 16 bytes at once, in a vector or in steps, where this leaves enough blocks for
    four on each multiprocessor.
    """
    plan, out = _plan(workload)
    return space(workload, target).config(**_default(plan, out, Chip.of(target)))


def _default(plan: Plan, out: Tensor, chip: Chip) -> dict[str, int]:
    if plan.crossing is not None:
        return _default_tile(plan.crossing, chip)
    size, threads = dtypes.bytes_of(out.dtype), min(256, chip.most_threads)
    vector = max(_vectors(plan, chip.lanes(out.dtype))) if plan.is_plain else 1
    elements = math.prod(extent for extent in out.shape if isinstance(extent, int))
    enough = 4 * chip.processors * threads
    steps = [n for n in _STEPS if n * vector * size <= _BYTES_AHEAD]
    fitting = [n for n in steps if n * vector * enough <= elements]
    return {"threads": threads, "vector": vector, "steps": max(fitting, default=1)}


def _default_tile(crossing: Crossing, chip: Chip) -> dict[str, int]:
    """Return tiles of 32 × 32; a short side leaves room for a longer one on the other side."""
    sides = [_sides(_extent(axes)) for axes in (crossing.across, crossing.along)]
    rows, columns = (max(n for n in side if n <= 32) for side in sides)
    rows = max(n for n in sides[0] if n * columns <= 32 * 32 or n <= 32)
    columns = max(n for n in sides[1] if n * rows <= 32 * 32 or n <= 32)
    fitting = [n for n in _THREADS if n <= min(256, rows * columns, chip.most_threads)]
    threads = max(fitting, default=_THREADS[0])
    return {"threads": threads, "rows": rows, "columns": columns, "load": 1, "vector": 1}


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule an operator that computes each element independently on a GPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The results; each is a kernel.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    del target
    inline_injective(s)
    for out in outs:
        schedule_elements(s, out, cfg.values)


def schedule_elements(s: Schedule, out: Tensor, cfg: Mapping[str, Any]) -> None:
    """Share out the elements of a result that is no reduction among blocks and threads.

    Parameters
    ----------
    s : Schedule
        Changed in place; stages before `out` are inlined, or stored as a whole.
    out : Tensor
        An output.
    cfg : mapping
        A config of `space`.
    """
    plan, stage = plan_of(s, out), s[out]
    if not plan.axes:
        bind(stage, {"threadIdx.x": stage.fuse()})
    elif plan.crossing is None or "rows" not in cfg:
        share_elements(stage, plan.axes, cfg["threads"], vector=cfg["vector"], steps=cfg["steps"])
    else:
        _schedule_tiles(s, out, plan, plan.crossing, cfg)


def share_out(s: Schedule, out: Tensor, target: Target) -> None:
    """Share out the elements of a result that is no reduction, by the default config.

    Parameters
    ----------
    s : Schedule
        Changed in place; stages before `out` are inlined, or stored as a whole.
    out : Tensor
        The result.
    target : Target
        A GPU.
    """
    schedule_elements(s, out, _default(plan_of(s, out), out, Chip.of(target)))


def schedule_rest(s: Schedule, host: Tensor, target: Target) -> None:
    """Schedule what is computed from the result of another schedule, each output as a kernel.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    host : Tensor
        The result that is scheduled already.
    target : Target
        A GPU.
    """
    ends = [stage for stage in s.stages if stage.state.is_output and stage.name != s[host].name]
    later = {op.output(0) for op in computed(s)} & behind(s, [host])
    for op in computed(s):
        stage = s[op]
        if op.output(0) in later and not stage.state.is_output and stage.name != s[host].name:
            stage.compute_inline()
    for stage in ends:
        share_out(s, stage.op.output(0), target)


def _schedule_tiles(
    s: Schedule, out: Tensor, plan: Plan, crossing: Crossing, cfg: Mapping[str, Any]
) -> None:
    stage, tensor = s[out], crossing.tensor
    readers = [each.op.output(0) for each in s.stages if tensor in _inputs(each.op)]
    copy = s.cache_read(tensor, "shared", readers)
    extents = tensor.static_shape
    s[copy].transform_layout(lambda *i: [_joined(i, extents, group) for group in crossing.layout])
    both = {*map(id, crossing.across), *map(id, crossing.along)}
    rest = [axis for axis in plan.axes if id(axis) not in both]
    rows, row = stage.split(fused(stage, crossing.across), cfg["rows"])
    columns, column = stage.split(fused(stage, crossing.along), cfg["columns"])
    stage.reorder(*rest, rows, columns, row, column)
    block = fused(stage, [*rest, rows, columns])
    element, lane = stage.split(stage.fuse(row, column), cfg["vector"])
    step, thread = stage.split(element, cfg["threads"])
    stage.reorder(block, thread, step, lane)
    bind(stage, {"blockIdx.x": block, "threadIdx.x": thread})
    stage.vectorize(lane)
    s[copy].compute_at(stage, block)
    word = max(4 // dtypes.bytes_of(tensor.dtype), 1)
    s[copy].storage_align(s[copy].op.axis[crossing.row], 2 * word, word)
    copy_together(s[copy], {"threadIdx.x": cfg["threads"]}, vector=cfg["load"])


def _inputs(op: object) -> Sequence[Tensor]:
    return op.input_tensors if isinstance(op, ComputeOp) else ()


def _joined(indices: Sequence[Var], extents: Sequence[int], group: Sequence[int]) -> Any:
    """Return the index of an element in some dimensions as one number."""
    total: Any = indices[group[0]]
    for n in group[1:]:
        total = total * extents[n] + indices[n]
    return total


INJECTIVE = DeviceSchedule(space, default_config, schedule)
