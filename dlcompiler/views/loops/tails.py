"""The tail of a split: the iterations that a guard skips if the factor does not divide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.ir import Axis, Extent
from dlcompiler.schedule import State
from dlcompiler.schedule.inference.bounds import split_extents
from dlcompiler.schedule.legality.obligations import extents_of
from dlcompiler.schedule.moves.enumeration import divisors

SPLIT_AXIS = {"factor": "axis", "nparts": "axis", "x_factor": "x", "y_factor": "y"}
"""Which loop a number of split or tile is about."""


def tail_text(extent: Extent, factor: int | None = None, nparts: int | None = None) -> str:
    """Describe the tail of a split: how many iterations are guarded, if any.

    Parameters
    ----------
    extent
        Iterations of the loop; [1]. A formula where symbols decide.
    factor, nparts
        Iterations of the inner loop, or of the outer one: one of them is given; at least 1, [1].

    Examples
    --------
    >>> tail_text(256, 32)
    '32 divides 256: 8 blocks of 32, no tail'
    >>> tail_text(256, 48)
    '48 does not divide 256: 6 blocks of 48, 32 of 288 iterations guarded, 11 %'
    """
    number = factor or nparts
    assert number
    if not isinstance(extent, int):
        return f"{extent} may not be a multiple of {number}: iterations beyond it are guarded"
    blocks, size = split_extents(extent, factor, nparts)
    assert isinstance(blocks, int)
    assert isinstance(size, int)
    run = blocks * size
    counted = f"1 block of {size:,}" if blocks == 1 else f"{blocks:,} blocks of {size:,}"
    if number > extent:
        return f"{number:,} is more than {extent:,}: {counted}"
    if run == extent:
        return f"{number:,} divides {extent:,}: {counted}, no tail"
    idle = run - extent
    percent = f"{100 * idle / run:.0f} %" if 100 * idle >= run else "less than 1 %"
    return (
        f"{number:,} does not divide {extent:,}: {counted}, "
        f"{idle:,} of {run:,} iterations guarded, {percent}"
    )


def tail_costs(
    state: State, stage: str, args: Mapping[str, Any], parameter: str, values: Sequence[int]
) -> list[str]:
    """Describe the tail for each value of a split's parameter; '' if it has no effect on tails.

    Parameters
    ----------
    state, stage, args
        As for `tail_of_step`; the parameter need not be among `args`.
    parameter
        ``factor``, ``nparts``, ``x_factor`` or ``y_factor``; others have no tail.
    values
        Each at least 1; [1].
    """
    axis = args.get(SPLIT_AXIS.get(parameter, ""))
    if not isinstance(axis, Axis):
        return ["" for _ in values]
    extent = extents_of(state, state.stage(stage)).get(axis, axis.extent)
    if parameter == "nparts":
        return [tail_text(extent, nparts=value) for value in values]
    return [tail_text(extent, value) for value in values]


def tail_of_step(state: State, name: str, stage: str, args: Mapping[str, Any]) -> str:
    """Describe the tails of a split or tile step; '' for any other step.

    Parameters
    ----------
    state
        The state before the step; its bounds give the extents of the loops.
    name, stage, args
        The step, as for `Schedule.attempt`; its numbers may be anything that was typed.
    """
    if name not in ("split", "tile"):
        return ""
    texts: dict[str, str] = {}
    for parameter, loop in SPLIT_AXIS.items():
        value = args.get(parameter)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            (text,) = tail_costs(state, stage, args, parameter, [value])
            axis = args.get(loop)
            path = state.stage(stage).paths.get(axis, "") if isinstance(axis, Axis) else ""
            texts[path] = text
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{path}: {text}" for path, text in texts.items())


def without_tail(state: State, name: str, stage: str, args: Mapping[str, Any]) -> dict[str, int]:
    """Return the nearest factors that leave no tail, for a split or tile that leaves one.

    Returns
    -------
    dict of str to int
        Only the numbers that change; empty if the step leaves no tail, or no number would help.
    """
    numbers: dict[str, int] = {}
    for parameter, loop in SPLIT_AXIS.items() if name in ("split", "tile") else ():
        axis, value = args.get(loop), args.get(parameter)
        if not isinstance(axis, Axis) or not isinstance(value, int) or value < 1:
            continue
        extent = extents_of(state, state.stage(stage)).get(axis, axis.extent)
        if not isinstance(extent, int) or value > extent or extent % value == 0:
            continue
        dividing = [number for number in divisors(extent) if extent % number == 0]
        if not dividing:
            return {}
        numbers[parameter] = min(dividing, key=lambda number: (abs(number - value), number))
    return numbers
