"""Which operator computes a convolution: the tuned one, or that of the lowest estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.base import Operator, Selection
from dlcompiler.ops.conv2d import (
    direct,
    direct_schedule,
    gemm,
    gemm_schedule,
    shapes,
    winograd,
)
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.tuned import Tuned, anchor, config_for, shipped, target_class
from dlcompiler.space import Workload
from dlcompiler.target import Target

_BYTES_PER_CYCLE = 9.4
_TRANSFORM_CYCLES = 1.5


@dataclass(frozen=True, slots=True)
class _Candidate:
    operator: Operator
    variants: Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]
    """Returns the operator's own parameters to try."""
    estimate: Callable[[Workload, Target], float]


def _direct(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    layout = params.get("layout", "NCHW")
    per_group = params["o"] // params.get("groups", 1)
    for block in direct.BLOCKS:
        if block <= max(direct.BLOCKS[0], 2 * per_group - 1):
            together = Layout(layout).channels or 1
            if block % together == 0:
                yield {"block": block}


def _gemm(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if params.get("layout", "NCHW") == "NCHW":
        yield from ({"block": block} for block in (4, 6))


def _winograd(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    plain = {name: value for name, value in params.items() if name != "layout"}
    shape = shapes.shape_of(shapes.workload("conv2d", **plain))
    if params.get("layout", "NCHW") == "NCHW" and winograd.why_not(shape) is None:
        yield from ({"tile": tile} for tile in winograd.TILES)


def _winograd_cycles(workload: Workload, target: Target) -> float:
    """Return about how long a convolution by minimal filtering takes on one core [cycle].

    Products take a tile of ``r`` rows and two vectors ``max(r, 5)`` cycles; the transformed weights
    come from beyond L2. The numbers are fitted to measurements on Zen 3.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    positions = (tile + winograd.TAPS - 1) ** 2
    tiles = shape.n * -(-shape.rows.out // tile) * -(-shape.columns.out // tile)
    rows = int(winograd.default_config(workload, target)["rows"])
    panels = -(-shape.o // winograd.PANEL)
    lanes = winograd.PANEL // target.lanes(shape.dtype) / 2
    products = positions * -(-tiles // rows) * max(rows * lanes, 5) * shape.c * panels
    weights = positions * shape.c * shape.o * dtypes.bytes_of(shape.dtype)
    transforms = positions * tiles * (shape.c + shape.o)
    return float(products + weights / _BYTES_PER_CYCLE + _TRANSFORM_CYCLES * transforms)


_CANDIDATES = (
    _Candidate(direct.CONV2D_DIRECT, _direct, direct_schedule.estimate),
    _Candidate(gemm.CONV2D_GEMM, _gemm, gemm_schedule.estimate),
    _Candidate(winograd.WINOGRAD, _winograd, _winograd_cycles),
)


def select_conv2d(
    params: Mapping[str, Any], target: Target, tuned: Tuned | None = None, *, is_exact: bool = False
) -> Selection:
    """Return how to compute a convolution.

    Minimal filtering has larger errors than the definition, and spreads a NaN over its tile.

    Parameters
    ----------
    params : mapping
        See `shapes.workload`; ``layout`` may be given, too.
    target : Target
        A CPU.
    tuned : mapping, optional
        Configs by workload; by default those that are shipped for the target's class.
    is_exact : bool
        Leave minimal filtering out.

    Returns
    -------
    Selection

    Raises
    ------
    TuningError
        The parameters are no convolution.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> params = dict(c=64, h=56, w=56, o=64, kernel=1)
    >>> select_conv2d(params, resolve("x86-64-avx2"), tuned={}).operator.name
    'conv2d_gemm'
    """
    known = shipped(target_class(target)) if tuned is None else tuned
    plain = {name: value for name, value in params.items() if name != "layout"}
    shapes.workload("conv2d", **plain)
    found = [
        pair
        for pair in _workloads(params)
        if not (is_exact and pair[0].operator is winograd.WINOGRAD)
    ]
    is_known = [pair for pair in found if anchor(pair[1]) in known]
    candidate, workload = min(is_known or found, key=lambda pair: pair[0].estimate(pair[1], target))
    operator = candidate.operator
    return Selection(operator, workload, config_for(operator, workload, target, known))


def _workloads(params: Mapping[str, Any]) -> Iterator[tuple[_Candidate, Workload]]:
    for candidate in _CANDIDATES:
        own = params if candidate.operator is direct.CONV2D_DIRECT else {
            name: value for name, value in params.items() if name != "layout"
        }  # fmt: skip
        for variant in candidate.variants(params):
            yield candidate, candidate.operator.workload(**own, **variant)
