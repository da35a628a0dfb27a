"""Which operator computes a convolution: the tuned one, or that of the lowest estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler.ops.base import Operator, Selection
from dlcompiler.ops.conv2d import (
    direct,
    direct_schedule,
    gemm,
    gemm_schedule,
    shapes,
    winograd,
    winograd_schedule,
)
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.tuned import Tuned, anchor, config_for, shipped, target_class
from dlcompiler.ops.widening import DTYPES
from dlcompiler.space import Workload
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class _Candidate:
    operator: Operator
    variants: Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]
    """Returns the operator's own parameters to try."""
    estimate: Callable[[Workload, Target], float]
    is_exact: bool = True
    """Whether errors, NaN and infinities are those of a sum of products."""


def _direct(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    layout = params.get("layout", "NCHW")
    per_group = params["o"] // params.get("groups", 1)
    for block in direct.BLOCKS:
        if block <= max(direct.BLOCKS[0], 2 * per_group - 1):
            together = Layout(layout).channels or 1
            if block % together == 0:
                yield {"block": block}


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
    """Tell whether layout and dtype are those that all operators take."""
    is_wide = params.get("dtype", "float32") in shapes.FLOATS
    return is_wide and params.get("layout", "NCHW") == "NCHW"


_CANDIDATES = (
    _Candidate(direct.CONV2D_DIRECT, _direct, direct_schedule.estimate),
    _Candidate(gemm.CONV2D_GEMM, _gemm, gemm_schedule.estimate),
    _Candidate(winograd.WINOGRAD, _winograd, winograd_schedule.estimate, is_exact=False),
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
        Leave out minimal filtering, whose errors are larger and which spreads NaN over tiles.

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
    shapes.workload("conv2d", **_plain(params), allowed=DTYPES)
    found = [pair for pair in _workloads(params) if pair[0].is_exact or not is_exact]
    is_known = [pair for pair in found if anchor(pair[1]) in known]
    candidate, workload = min(is_known or found, key=lambda pair: pair[0].estimate(pair[1], target))
    operator = candidate.operator
    return Selection(operator, workload, config_for(operator, workload, target, known))


def _workloads(params: Mapping[str, Any]) -> Iterator[tuple[_Candidate, Workload]]:
    for candidate in _CANDIDATES:
        own = params if candidate.operator is direct.CONV2D_DIRECT else _plain(params)
        for variant in candidate.variants(params):
            yield candidate, candidate.operator.workload(**own, **variant)


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "layout"}
