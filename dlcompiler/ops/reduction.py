"""The operator of reductions over any dimensions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops import moments, reductions
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, as_expected, by_device
from dlcompiler.ops.helpers import ELEMWISE, tensor
from dlcompiler.ops.injective import schedule_injective
from dlcompiler.ops.lanes import schedule_reduction
from dlcompiler.ops.rounding import SMALLEST, Array, Wide, unit
from dlcompiler.ops.shapes import (
    FLOATS,
    INTEGERS,
    checked_dimension,
    checked_dtype,
    shape_of,
    shape_text,
)
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.auto_inline import inline_injective
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor


@dataclass(frozen=True, slots=True)
class Function:
    """A function that the operator computes."""

    define: Callable[..., Tensor]
    """Defines it on tensors: operand, dimensions, whether to keep them."""
    reference: Callable[..., Array]
    """The same function on NumPy arrays."""
    dtypes: tuple[str, ...] = (*FLOATS, *INTEGERS)
    is_sum: bool = False
    """Whether it rounds."""
    is_chain: bool = False
    """Whether it is a function of floats whose bound `moments.exact` gives."""
    has_identity: bool = True
    """Whether it is defined for an empty operand."""


_MANY_REGISTERS = 32
"""Vector registers from which on a turn reads two lines: with 16, maxima are slower by it; [1]."""
_CYCLES, _POSITION_CYCLES = 0.3, 0.6
"""Time of an element on one core, and the same for positions [cycle]; measured for float32."""

FUNCTIONS: dict[str, Function] = {
    "sum": Function(reductions.sum, np.sum, is_sum=True),
    "mean": Function(reductions.mean, np.mean, is_sum=True),
    "prod": Function(reductions.prod, np.prod, is_sum=True),
    **{
        name: Function(on_tensors, on_arrays, FLOATS, is_sum=True, is_chain=True)
        for name, (on_tensors, on_arrays) in moments.FUNCTIONS.items()
    },
    "max": Function(reductions.max, np.max, has_identity=False),
    "min": Function(reductions.min, np.min, has_identity=False),
    "argmax": Function(reductions.argmax, np.argmax, has_identity=False),
    "argmin": Function(reductions.argmin, np.argmin, has_identity=False),
    "all": Function(reductions.all, np.all, (*FLOATS, *INTEGERS, "bool")),
    "any": Function(reductions.any, np.any, (*FLOATS, *INTEGERS, "bool")),
}
"""Name -> the function. Sums, products and extremes have the dtype of the operand: integers wrap.

For an empty operand, the maximum is the smallest number of the dtype, and a position is -1."""


def workload(
    *,
    function: str,
    shape: Sequence[int] | str,
    axes: Sequence[int] | str | int = "all",
    keepdims: int = 0,
    dtype: str = "float32",
) -> Workload:
    """Return the workload of a reduction.

    Parameters
    ----------
    function : str
        A key of `FUNCTIONS`.
    shape : tuple of int or str
        Of the operand.
    axes : int, sequence of int, or str
        The dimensions to reduce: ``1``, ``(0, -1)``, ``"0,2"`` or ``"all"``.
    keepdims : int
        1 keeps them, with the extent 1.
    dtype : str
        Of the operand.
    """
    where = "reduction"
    if function not in FUNCTIONS:
        raise TuningError(
            where, "no such function", got=repr(function), expected=", ".join(FUNCTIONS)
        )
    text = shape_text(shape, where)
    ndim = len(shape_of(text))
    chosen = axes_of(axes, ndim)
    if function.startswith("arg") and len(chosen) not in (1, ndim):
        raise TuningError(where, f"{function} reduces one dimension or all", got=str(axes))
    if keepdims not in (0, 1):
        raise TuningError(where, "keepdims is neither 0 nor 1", got=repr(keepdims))
    return Workload.of(
        where,
        function=function,
        shape=text,
        axes=",".join(map(str, chosen)) or "none",
        keepdims=int(keepdims),
        dtype=checked_dtype(dtype, FUNCTIONS[function].dtypes, f"reduction {function}"),
    )


def axes_of(axes: Sequence[int] | str | int, ndim: int) -> tuple[int, ...]:
    """Return dimensions in ascending order: ``"all"``, ``"0,2"``, or numbers, also negative."""
    if axes == "all":
        return tuple(range(ndim))
    if isinstance(axes, str):
        axes = [int(n) for n in axes.split(",") if n not in ("", "none")]
    given = (axes,) if isinstance(axes, int) else axes
    return tuple(sorted({checked_dimension(n, ndim, "reduction") for n in given}))


def _axis(workload: Workload) -> tuple[int, ...] | int | None:
    """Return the dimensions in the form that NumPy and this module's functions accept."""
    ndim = len(shape_of(workload["shape"]))
    chosen = axes_of(workload["axes"], ndim)
    if workload["function"].startswith("arg"):
        return chosen[0] if len(chosen) == 1 else None
    return chosen


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result; floats of 16 bits are summed in float32."""
    kind, dtype = FUNCTIONS[workload["function"]], workload["dtype"]
    data = te.placeholder(shape_of(workload["shape"]), dtype, "data")
    axis, keepdims = _axis(workload), bool(workload["keepdims"])
    if not (kind.is_sum and dtype in ("float16", "bfloat16")):
        return data, kind.define(data, axis, keepdims)
    wide = tensor(data.shape, lambda *i: data[i].astype("float32"), "wide", ELEMWISE)
    total = kind.define(wide, axis, keepdims)
    return data, tensor(total.shape, lambda *i: total[i].astype(dtype), "narrow", ELEMWISE)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs, the result, and its bound: ``n·u·Σ|x|`` for sums of floats, else 0."""
    kind, dtype = FUNCTIONS[workload["function"]], workload["dtype"]
    data = _values(workload, np.random.default_rng(seed))
    axis, keepdims = _axis(workload), bool(workload["keepdims"])
    out = define(workload)[-1]
    gone = math.prod(shape_of(workload["shape"])) // max(math.prod(out.static_shape), 1)
    if kind.is_chain:
        wide = "float32" if dtypes.bits(dtype) == 16 else dtype
        exact_values, error = moments.exact(
            workload["function"], data.astype(np.float64), axis, keepdims, unit(wide)
        )
        error = error + 2 * unit(dtype) * (np.abs(exact_values) + SMALLEST[dtype])
        return Reference({"data": data}, {out.name: exact_values}, {out.name: error})
    if not gone and not kind.has_identity:
        nothing = -1 if workload["function"].startswith("arg") else _worst(workload)
        expected = as_expected(np.full(out.static_shape, nothing), out.dtype)
        return Reference({"data": data}, {out.name: expected}, {out.name: np.zeros(expected.shape)})
    is_float = dtypes.is_float(dtype)
    more: dict[str, Any] = {"keepdims": keepdims}
    if kind.is_sum and workload["function"] != "mean":
        more["dtype"] = np.float64 if is_float else data.dtype
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of no elements is NaN
        exact: Wide = data.astype(np.float64) if is_float else data
        expected = as_expected(kind.reference(exact, axis=axis, **more), out.dtype)
        sizes = np.asarray(kind.reference(np.abs(exact), axis=axis, **more)).astype(np.float64)
    bound = np.zeros(expected.shape)
    if kind.is_sum and is_float:
        own = unit("float32" if dtypes.bits(dtype) == 16 else dtype)
        bound = 2 * (gone + 2) * own * sizes + 2 * unit(dtype) * (sizes + SMALLEST[dtype])
    elif workload["function"] == "mean":
        bound = 2 * unit("float64") * sizes
    return Reference({"data": data}, {out.name: expected}, {out.name: bound})


def _worst(workload: Workload) -> float:
    dtype, largest = workload["dtype"], workload["function"] == "max"
    if dtypes.is_float(dtype):
        return -math.inf if largest else math.inf
    return dtypes.min_value(dtype) if largest else dtypes.max_value(dtype)


def _values(workload: Workload, generator: np.random.Generator) -> Array:
    shape, dtype = shape_of(workload["shape"]), workload["dtype"]
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_float(dtype):
        low, high = (0.9, 1.1) if workload["function"] == "prod" else (-1, 1)
        return generator.uniform(low, high, shape).astype(kind)
    return generator.integers(0, 2 if workload["function"] in ("all", "any") else 9, shape).astype(
        kind
    )


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule_reduction`.

    If contiguous elements are reduced together:

    ================  ==========================================================================
    ``vectors``       vectors of partial results
    ``streams``       rows, or pieces of a long row, that are read at once
    ``lines``         cache lines that each turn reads from each row
    ``halves``        combine lanes by halves, not one after the other
    ``parallel``      run on several cores
    ================  ==========================================================================

    Otherwise:

    ================  ==========================================================================
    ``strip``         neighbouring results kept in the nearest cache
    ``rows``          rows that are added to the strip in one iteration
    ``side``          vectors of results side by side
    ``parallel``      run on several cores
    ================  ==========================================================================
    """
    parallel = parallel_knob(target.cores)
    match _form(workload):
        case "nothing":
            return Space(workload, [parallel])
        case "rows":
            knobs = [
                Knob("vectors", (1, 2, 4, 8)),
                Knob("streams", (1, 2, 4, 8)),
                Knob("lines", (1, 2, 4)),
                Knob("halves", (False, True)),
            ]
        case _:
            knobs = [
                Knob("strip", (64, 256, 1024, 4096, 16384)),
                Knob("rows", (1, 2, 4, 8, 16)),
                Knob("side", (1, 2, 4)),
            ]
    return Space(workload, [*knobs, parallel])


def _form(workload: Workload) -> str:
    """Return the form: ``"rows"``, ``"columns"``, or ``"nothing"`` if no dimension is reduced."""
    ndim = len(shape_of(workload["shape"]))
    gone = axes_of(workload["axes"], ndim)
    if not gone:
        return "nothing"
    return "rows" if ndim - 1 in gone else "columns"


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with eight streams into eight vectors, or a strip that fits the L1 cache.

    If there is only one result, or a row is shorter than eight vectors, the streams take turns of
    two cache lines, into four vectors. Searches for a position, and all reductions with 32
    registers, read two cache lines of each row at a time: 5 to 10 % faster on an Emerald Rapids.
    """
    shape = shape_of(workload["shape"])
    gone = axes_of(workload["axes"], len(shape))
    is_one = math.prod(shape) == math.prod(shape[n] for n in gone)
    is_position = str(workload["function"]).startswith("arg")
    cycles = _POSITION_CYCLES if is_position else _CYCLES
    has_many = target.vector_registers >= _MANY_REGISTERS
    is_short = math.prod(shape[n] for n in gone) < 8 * target.lanes(workload["dtype"])
    vectors = 4 if is_one or (has_many and is_short) else 8
    lines = 2 if is_position or has_many else 1
    values: dict[str, Any] = {
        "nothing": {},
        "rows": {"vectors": vectors, "streams": 8, "lines": lines, "halves": True},
        "columns": {"strip": 4096, "rows": 8, "side": 1},
    }[_form(workload)]
    is_parallel = is_worth_sharing(cycles * math.prod(shape), target)
    return space(workload, target).config(**values, parallel=is_parallel)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a reduction on a CPU; see `schedule_reduction`."""
    (out,) = outs
    if not any(isinstance(stage.op, ComputeOp) and stage.op.reduce_axis for stage in s.stages):
        schedule_injective(s, out, target, is_parallel=cfg["parallel"])
        return
    inline_injective(s)
    parts = target.cores if cfg["parallel"] else 1
    schedule_reduction(s, out, cfg.values, target.lanes(out.dtype), parts)


REDUCTION = Operator(
    "reduction",
    workload,
    define,
    reference,
    by_device(
        {
            "cpu": DeviceSchedule(space, default_config, schedule),
            "gpu": "dlcompiler.ops.gpu.reduction:REDUCTION",
        }
    ),
)
