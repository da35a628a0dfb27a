"""Schedule operators that compute each element independently.

*Before*, then *after* ``schedule_injective(s, C, target)`` for vectors of 8::

    for i in range(4):                  for i in parallel(4):
        for j in range(30):                 for j.outer in range(2):
            C[i, j] = A[i, j]*s[j]              for j.inner in vectorized(16):
                                                    if j.outer*16 + j.inner < 30:
                                                        C[i, j] = A[i, j]*s[j]

Dimensions that are contiguous in every operand become one loop. If an operand is transposed, the
result is computed in square blocks of vectors, which are read by rows and written by rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis, Binary, Call, Const, IfThenElse, TensorLoad, Var, free_vars, walk
from dlcompiler.ir.operations import DIVISIONS
from dlcompiler.ops.addresses import period_of, simplified, step_in, steps_of
from dlcompiler.ops.base import DeviceSchedule, by_device
from dlcompiler.ops.lanes import widest_power
from dlcompiler.ops.rows import width_knob
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.registry import Registry
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.schedule.auto_inline import inline_injective
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_SQUARE = 4
"""Blocks along each side of a square whose cache lines all fit the nearest cache."""
_WIDEST_SQUARE = 16
"""Most rows of a square that is transposed in registers; its loops are unrolled."""
_MOST_COPIES = 64
"""Most vectors of a block, unless it has two by two."""
_VECTORS = 4
"""Vectors of a mathematical function that are computed together. One at a time is up to 1.8 times
as fast for functions that wait for memory (measured: relu and add of 100,000)."""
_STEPS = (1, 2, 4)
"""Vectors in one iteration."""
_FEW_GATHERS = 2
"""Loads of scattered elements in a result of several vectors: each lane is an instruction, and
16 of them, as in a cubic resize, took 12 s to compile in vectors of 64."""
_MOST_CACHE = 32 << 20
"""Most of the last cache that a result finds for itself: many processors share a larger one
(measured with 300 MB: 64 MB are written 1.7 times as fast past it) [byte]."""
_CYCLES = 1.0
"""Time of an element on one core [cycle]; measured for sums of two float32."""


def schedule_injective(
    s: Schedule,
    out: Tensor,
    target: Target,
    cfg: Mapping[str, Any] | None = None,
    *,
    is_parallel: bool = False,
) -> None:
    """Schedule a tensor without reductions, and inline the tensors that it reads.

    Parameters
    ----------
    s : Schedule
        Changed in place; stages before `out` that are no reductions are inlined.
    out : Tensor
        An output.
    target : Target
        A CPU.
    cfg : mapping, optional
        Of `injective_space`; by default, `default_injective`'s values.
    is_parallel : bool
        By default, run the outermost loop on several cores.
    """
    inline_injective(s)
    op = s[out].op
    assert isinstance(op, ComputeOp)
    if not op.axis:
        return
    across = axis_across(op.axis, loads_in(s, out))
    loops = _loops_of(s, out)
    chosen = cfg or {**_default_values(s, out, target, loops), "parallel": is_parallel}
    if across is not None:
        _schedule_blocks(s, out, across, chosen, _block_lanes(out, target))
        return
    joined = loops.joined
    inner = s[out].fuse(*joined)
    outer, vector = s[out].split(inner, chosen["width"])
    steps, step = s[out].split(outer, chosen["steps"])
    s[out].vectorize(vector)
    s[out].unroll(step)
    rest = loops.axes[: len(loops.axes) - len(joined)]
    if chosen.get("by_case"):
        chosen_by = [axis for axis in rest if axis.var in loops.guards and not chosen["parallel"]]
        for loop in (*chosen_by, steps):
            s[out].pragma(loop, "loop_partition_hint")
    if chosen["parallel"]:
        extents = [axis.extent if isinstance(axis.extent, int) else target.cores for axis in rest]
        shared = rest if math.prod(extents) >= target.cores else (*rest, steps)
        s[out].parallel(s[out].fuse(*shared) if len(shared) > 1 else shared[0])
    if chosen["past_caches"]:
        s[out].pragma(s[out].leaf_iter_vars[0], "nontemporal")


def _block_lanes(out: Tensor, target: Target) -> int:
    """Return the rows and columns of the squares that are transposed in registers."""
    return min(target.lanes(out.dtype), _WIDEST_SQUARE)


def _is_beyond_caches(out: Tensor, target: Target) -> bool:
    """Tell whether no cache keeps a result: readers must load it from memory."""
    extents = [extent for extent in out.shape if isinstance(extent, int)]
    size = math.prod(extents) * dtypes.bytes_of(out.dtype)
    return len(extents) == len(out.shape) and size > min(target.cache_bytes(-1), _MOST_CACHE)


def loads_in(s: Schedule, out: Tensor) -> list[TensorLoad]:
    """Return the elements that the definition of a result reads."""
    exprs = bodies(s.state)[s[out].name]
    return [node for body in exprs for node in walk(body) if isinstance(node, TensorLoad)]


@dataclass(frozen=True)
class _Loops:
    """The loops of a result, and the elements that it reads in an iteration."""

    axes: tuple[Axis, ...]
    loads: tuple[TensorLoad, ...]
    guards: frozenset[Var]
    """Variables of the conditions that choose which element is read."""

    @property
    def joined(self) -> list[Axis]:
        """The longest run of last loops that is contiguous in all operands."""
        return side_by_side(self.axes, self.loads, self.guards)

    @property
    def extent(self) -> int:
        """How many consecutive results are contiguous in all operands."""
        joined = self.joined if self.axes else []
        return math.prod(axis.extent for axis in joined if isinstance(axis.extent, int))

    @property
    def gathers(self) -> int:
        """How many loads read neither neighbours nor one element in the last loop."""
        if not self.axes:
            return 0
        steps = [steps_of(load, self.axes)[self.axes[-1].var] for load in self.loads]
        return sum(step not in (0, 1) for step in steps)


def _loops_of(s: Schedule, out: Tensor) -> _Loops:
    """Return the loops of a result; one along which an operand is repeated is split in periods.

    The result of a tile, ``C[i] = A[i % 100]``, is computed period by period: in each, the operand
    is contiguous.
    """
    axes, loads = list(s[out].op.axis), loads_in(s, out)
    guards = guards_in(s, out)
    if axis_across(axes, loads) is not None or not axes:
        return _Loops(tuple(axes), tuple(loads), guards)
    for axis in s[out].op.axis:
        period = period_of(axis, loads)
        if period is None or axis.var in guards:
            continue
        outer, inner = s[out].split(axis, period)
        place = axes.index(axis)
        axes[place : place + 1] = [outer, inner]
        loads = [simplified(load, {axis.var: outer.var * period + inner.var}, axes)
                 for load in loads]  # fmt: skip
    return _Loops(tuple(axes), tuple(loads), guards)


def guards_in(s: Schedule, out: Tensor) -> frozenset[Var]:
    """Return the variables of the conditions in the definition of a result."""
    exprs = bodies(s.state)[s[out].name]
    chosen = [node for body in exprs for node in walk(body) if isinstance(node, IfThenElse)]
    return frozenset().union(*(free_vars(node.condition) for node in chosen))


def side_by_side(
    axes: Sequence[Axis], loads: Sequence[TensorLoad], guards: Collection[Var] = ()
) -> list[Axis]:
    """Return the longest run of last axes that is contiguous in all operands.

    `guards` are variables of conditions. Vectors of a joined axis could cross from one case to
    another; their axes are joined only if each index of an operand is an axis itself.
    """
    joined = [axes[-1]]
    steps = [steps_of(load, axes) for load in loads]
    for axis in reversed(axes[:-1]):
        if {axis.var, joined[0].var} & set(guards):
            goes_on = all(joins(axis, joined[0], load) for load in loads)
        else:
            goes_on = all(_goes_on(axis, joined[0], each) for each in steps)
        if not goes_on:
            break
        joined.insert(0, axis)
    return joined


def _goes_on(outer: Axis, inner: Axis, steps: Mapping[Var, int | None]) -> bool:
    """Tell whether the address goes on with the same step where the inner loop starts again."""
    own, after = steps[inner.var], steps[outer.var]
    if own is None or not isinstance(inner.extent, int):
        return own == after == 0
    return after == own * inner.extent


def joins(outer: Axis, inner: Axis, load: TensorLoad) -> bool:
    """Tell whether two axes are contiguous in a load, or the load uses neither."""
    uses = [n for n, i in enumerate(load.indices) if free_vars(i) & {outer.var, inner.var}]
    if not uses:
        return True
    if len(uses) != 2 or uses[1] != uses[0] + 1:
        return False
    first, second = (load.indices[n] for n in uses)
    extent = load.tensor.shape[uses[1]]
    return first is outer.var and second is inner.var and _same(extent, inner.extent)


def axis_across(axes: Sequence[Axis], loads: Sequence[TensorLoad]) -> Axis | None:
    """Return the axis along which a transposed operand is contiguous; None if there is none."""
    for load in loads:
        *others, last = load.indices or (None,)
        side = next((axis for axis in axes[:-1] if axis.var is last), None)
        if side is not None and any(index is axes[-1].var for index in others):
            return side
    return None


def _schedule_blocks(
    s: Schedule, out: Tensor, across: Axis, cfg: Mapping[str, Any], lanes: int
) -> None:
    """Schedule a transposing result: blocks of vectors, in rectangles that fit the caches."""
    stage, last = s[out], out.op.axis[-1]
    rest = [axis for axis in out.op.axis if axis is not across and axis is not last]
    rows, row = stage.split(across, cfg["row_vectors"] * lanes)
    columns, column = stage.split(last, cfg["column_vectors"] * lanes)
    vectors, vector = stage.split(column, lanes)
    row_squares, rows = stage.split(rows, cfg["rows"])
    column_squares, columns = stage.split(columns, cfg["columns"])
    squares = [row_squares, column_squares]
    loops = [*rest, *(reversed(squares) if cfg["down_first"] else squares)]
    stage.reorder(*loops, rows, columns, vectors, row, vector)
    stage.unroll(vectors)
    stage.unroll(row)
    stage.vectorize(vector)
    if cfg["parallel"]:
        stage.parallel(stage.fuse(*loops[:-1]))


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a == b


# -- the choices of an operator -----------------------------------------------------------------


def injective_space(workload: Workload, out: Tensor, target: Target) -> Space:
    """Return the configs of an operator that is scheduled by `schedule_injective`.

    Parameters
    ----------
    workload : Workload
        The workload of the operator.
    out : Tensor
        The result of the operator.
    target : Target
        A CPU.

    Notes
    -----
    If no operand is transposed:

    ==================  ========================================================================
    ``width``           neighbouring results that are computed together
    ``steps``           such groups in one iteration
    ``past_caches``     use non-temporal stores for a result that no cache can hold
    ``parallel``        run the outermost loop on several cores
    ``by_case``         run a loop for each case of a chain of conditions, where there is one
    ==================  ========================================================================

    If one is transposed:

    ==================  ========================================================================
    ``row_vectors``     rows of a block, in vectors
    ``column_vectors``  columns of a block, in vectors
    ``rows``            blocks from top to bottom of a rectangle that the nearest cache holds
    ``columns``         blocks from left to right of it
    ``down_first``      visit rectangles by columns, not by rows
    ``parallel``        run rectangles on several cores
    ==================  ========================================================================
    """
    s = create_schedule(out)
    inline_injective(s)
    parallel = parallel_knob(target.cores)
    if not _is_across(s, out):
        loops = _loops_of(s, out)
        width = width_knob("width", loops.extent, target.lanes(out.dtype), (1, 2, 4, 8, 16))
        is_beyond = _is_beyond_caches(out, target)
        past = Knob("past_caches", (False, True) if is_beyond else (False,))
        cases = (
            [Knob("by_case", (False, True))]
            if _has_case_loops(s, out, loops, target.lanes(out.dtype))
            else []
        )
        return Space(workload, [width, Knob("steps", _STEPS), past, *cases, parallel])
    lanes = _block_lanes(out, target)
    knobs = [
        *(Knob(name, (1, 2, 4)) for name in ("row_vectors", "column_vectors")),
        *(Knob(name, (1, 2, 4, 8, 16)) for name in ("rows", "columns")),
        Knob("down_first", (False, True)),
        parallel,
    ]
    copies = Filter(
        "a block is written out in few copies",
        lambda v: v["row_vectors"] * v["column_vectors"] * lanes <= max(_MOST_COPIES, 4 * lanes),
    )
    return Space(workload, knobs, [copies])


def default_injective(workload: Workload, out: Tensor, target: Target) -> Config:
    """Return a config for the function, the size of the result and the elements that it reads.

    Several vectors of a mathematical function are computed together, which hides its latency.
    """
    s = create_schedule(out)
    inline_injective(s)
    is_parallel = is_worth_sharing(_CYCLES * math.prod(out.static_shape), target)
    values = _default_values(s, out, target, _loops_of(s, out))
    return injective_space(workload, out, target).config(**values, parallel=is_parallel)


def _default_values(s: Schedule, out: Tensor, target: Target, loops: _Loops) -> dict[str, Any]:
    """Return the values of all knobs but ``parallel``, in a schedule whose stages are inlined."""
    if _is_across(s, out):
        return {
            "row_vectors": 2,
            "column_vectors": 2,
            "rows": _SQUARE,
            "columns": _SQUARE,
            "down_first": False,
        }
    has_cases = _has_case_loops(s, out, loops, target.lanes(out.dtype))
    is_long = any(
        isinstance(node, Call) for body in bodies(s.state)[s[out].name] for node in walk(body)
    )
    vectors = _VECTORS if is_long and not has_cases and loops.gathers <= _FEW_GATHERS else 1
    width = widest_power(loops.extent, vectors * target.lanes(out.dtype))
    steps = 1
    if loops.gathers and not has_cases:
        # Without a loop, the distances of the elements that the lanes read are constants.
        steps = next((n for n in _STEPS if n * width >= loops.extent), 1)
    values = {"width": width, "steps": steps, "past_caches": _is_beyond_caches(out, target)}
    return values | ({"by_case": True} if has_cases else {})


def _has_case_loops(s: Schedule, out: Tensor, loops: _Loops, lanes: int) -> bool:
    """Tell whether to consider a loop of its own for each case of a condition (``by_case``).

    The parts of a concatenation are such cases, or an image and its border: together they are
    computed with masks, which takes 2 to 10 times as long. At an edge of an image, which clamps
    indices, elements are scattered: inside it they are near.
    """
    if any(_is_near_inside(load, loops.axes, lanes) for load in loops.loads if loops.axes):
        return True
    return isinstance(bodies(s.state)[s[out].name][0], IfThenElse)


def _is_near_inside(load: TensorLoad, axes: Sequence[Axis], lanes: int) -> bool:
    """Tell whether the lanes of a vector read near elements, except where an index is clamped.

    They do if each quotient of the last loop moves on by a whole number from vector to vector.
    """
    last = axes[-1].var
    nodes = [node for index in load.indices for node in walk(index) if isinstance(node, Binary)]
    own = [node for node in nodes if last in free_vars(node)]
    if not any(node.op in ("min", "max") for node in own):
        return False
    quotients = [node for node in own if node.op in DIVISIONS]
    return all(_moves_on(node, axes, lanes) for node in quotients)


def _moves_on(quotient: Binary, axes: Sequence[Axis], lanes: int) -> bool:
    step = step_in(quotient.a, axes)
    if step is None or not isinstance(quotient.b, Const):
        return False
    return quotient.op == "floordiv" and step * lanes % int(quotient.b.value) == 0


def _is_across(s: Schedule, out: Tensor) -> bool:
    return axis_across(s[out].op.axis, loads_in(s, out)) is not None


def injective_schedules(
    define: Callable[[Workload], tuple[Tensor, ...]],
) -> Registry[DeviceSchedule]:
    """Return the schedules of an operator whose results are computed element by element.

    Parameters
    ----------
    define : callable
        `Operator.define`: returns the inputs and the results, which all have one shape.
    """

    def space(workload: Workload, target: Target) -> Space:
        """Return the configs of `dlcompiler.ops.injective`."""
        return injective_space(workload, define(workload)[-1], target)

    def default_config(workload: Workload, target: Target) -> Config:
        return default_injective(workload, define(workload)[-1], target)

    def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
        """Compute each result element by element on a CPU; see `schedule_injective`."""
        for out in outs:
            schedule_injective(s, out, target, cfg.values)

    return by_device(
        {
            "cpu": DeviceSchedule(space, default_config, schedule),
            "gpu": "dlcompiler.ops.gpu.injective:INJECTIVE",
        }
    )
