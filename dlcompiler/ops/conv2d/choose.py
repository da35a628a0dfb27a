"""Choose the operator of a convolution: a tuned one, or the one with the lowest estimate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.errors import TargetError
from dlcompiler.ops.base import Operator, Selection, check_target, no_schedule, workload_from
from dlcompiler.ops.conv2d import direct, gemm, shapes, winograd
from dlcompiler.ops.conv2d.layouts import Layout, layout_of
from dlcompiler.ops.tuned import Tuned, anchor, config_for, shipped, target_class
from dlcompiler.ops.widening import DTYPES
from dlcompiler.space import Workload
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class _Candidate:
    operator: Operator
    variants: Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]
    """Returns the operator's own parameters to try."""
    is_exact: bool = True
    """Whether errors, NaN and infinities are those of a sum of products."""


def _direct(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    together = Layout(params.get("layout", "NCHW")).channels or 1
    groups = params.get("groups", 1)
    per_group = params["o"] // groups
    widest = max(direct.BLOCKS[0], 2 * per_group - 1)
    blocks = [b for b in direct.BLOCKS if b <= widest and b % together == 0]
    # A tile of the result that lies in two groups computes all blocks of both.
    whole = [b for b in blocks if per_group % b == 0] if groups > 1 else []
    yield from ({"block": block} for block in whole or blocks)


def _gemm(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not _is_usual(params):
        return
    groups = params.get("groups", 1)
    for block in (4, 6):
        # The sums of a block that a group cuts short are computed with those of all other blocks.
        if groups == 1 or params["o"] // groups % block == 0:
            yield {"block": block}


def _winograd(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not _is_usual(params):
        return
    shape = shapes.shape_of(shapes.workload("conv2d", **_plain(params)))
    yield from ({"tile": tile} for tile in winograd.TILES if not winograd.why_not(shape))


def _is_usual(params: Mapping[str, Any]) -> bool:
    """Tell whether all operators support the layout and the dtype."""
    is_wide = params.get("dtype", "float32") in shapes.FLOATS
    is_stored = params.get("weight_dtype", "")  # only the direct convolution converts weights
    return is_wide and not is_stored and params.get("layout", "NCHW") == "NCHW"


_OF_DIRECT = ("layout", "zero_point", "weight_dtype")
"""Parameters that only the direct convolution has; the others do not take int8."""

_CANDIDATES = (
    _Candidate(direct.CONV2D_DIRECT, _direct),
    _Candidate(gemm.CONV2D_GEMM, _gemm),
    _Candidate(winograd.WINOGRAD, _winograd, is_exact=False),
)


def select_conv2d(
    params: Mapping[str, Any], target: Target, tuned: Tuned | None = None, *, is_exact: bool = False
) -> Selection:
    """Choose the operator, workload and config of a convolution.

    Parameters
    ----------
    params : mapping
        See `shapes.workload`; ``layout`` may be given as well.
    target : Target
        The machine. Only operators with a schedule for its kind of device are considered.
    tuned : mapping, optional
        Configs by workload; by default those that are shipped for the target's class.
    is_exact : bool
        Leave out minimal filtering: its errors are larger than those of a sum of products, and a
        NaN spreads over its tile.

    Returns
    -------
    Selection

    Raises
    ------
    TargetError
        No operator that has a schedule for the kind of device computes this convolution.
    TuningError
        The parameters are not those of a convolution.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> params = dict(c=64, h=56, w=56, o=64, kernel=1)
    >>> select_conv2d(params, resolve("x86-64-avx2"), tuned={}).operator.name
    'conv2d_gemm'
    """
    candidates = _with_schedule(target)
    known = shipped(target_class(target)) if tuned is None else tuned
    workload_from("conv2d", _common_workload, params)
    layout_of("conv2d", params.get("layout", "NCHW"))
    allowed = [item for item in candidates if item.is_exact or not is_exact]
    found = list(_workloads(allowed, params))
    if not found:
        raise TargetError(
            f"schedule conv2d for {target.name}",
            "no operator with a schedule for this kind of device computes this convolution",
            got=", ".join(f"{name}={value}" for name, value in params.items()),
            because="operators with a schedule for it: "
            + ", ".join(item.operator.name for item in candidates)
            + ("; is_exact allows sums of products only" if is_exact else ""),
        )
    # What was found on one core does not decide for several.
    tried = [pair for pair in found if target.cores == 1 and anchor(pair[1]) in known] or found
    operator, workload = min(tried, key=lambda pair: _estimate(pair[0], pair[1], target))
    return Selection(operator, workload, config_for(operator, workload, target, known))


def _with_schedule(target: Target) -> list[_Candidate]:
    """Return the candidates that have a schedule for the kind of device of a target."""
    check_target("conv2d", target)
    found = [item for item in _CANDIDATES if target.device in item.operator.schedules]
    if not found:
        devices = {device for item in _CANDIDATES for device in item.operator.schedules}
        raise no_schedule("conv2d", target, devices)
    return found


def _estimate(operator: Operator, workload: Workload, target: Target) -> float:
    estimate = operator.schedule_for(target).estimate
    return math.inf if estimate is None else estimate(workload, target)


def _workloads(
    candidates: Sequence[_Candidate], params: Mapping[str, Any]
) -> Iterator[tuple[Operator, Workload]]:
    for candidate in candidates:
        own = params if candidate.operator is direct.CONV2D_DIRECT else _plain(params)
        for variant in candidate.variants(params):
            yield candidate.operator, candidate.operator.workload(**own, **variant)


def _common_workload(**params: Any) -> Workload:
    """Return the workload without what not all of the operators have."""
    return shapes.workload("conv2d", **_plain(params), allowed=DTYPES)


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _OF_DIRECT}
