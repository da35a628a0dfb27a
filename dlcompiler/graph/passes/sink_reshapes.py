"""Move changes of shape behind what is computed element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Expr, Module, Node
from dlcompiler.graph.operators import REGISTRY, Pattern
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    attrs_of,
    call_like,
    decided,
    operator_of,
    placed,
    rewrite_calls,
    shape_of,
    with_log,
)

NAME = "sink_reshapes"
VIEWS = ("reshape", "expand_dims", "squeeze", "nn.batch_flatten")
"""Operators that keep the order of the elements."""
TIED = (
    "broadcast_to", "broadcast_to_like", "tile", "repeat", "full", "full_like", "nn.bias_add",
    "nn.prelu",
)  # fmt: skip
"""Operators whose meaning depends on the shape of their operands, by an axis, extents or a rank."""
ALONG = ("qnn.quantize", "qnn.dequantize", "qnn.requantize")
"""Operators that may have a number for each index of an axis."""


def sink_reshapes(module: Module) -> Module:
    """Move changes of shape behind what is computed element by element from a loop nest's result.

    What follows the loop nest can then be fused to it.

    *Before*::

        %0 = nn.dense(%x, %w);
        %1 = reshape(%0, newshape=[1, 8, 32]);
        %2 = add(%1, %b);
        nn.relu(%2)

    *After*::

        %0 = nn.dense(%x, %w);
        %1 = add(%0, %b);
        %2 = nn.relu(%1);
        reshape(%2, newshape=[1, 8, 32])

    Parameters
    ----------
    module : Module
        The module.
    """
    log: list[Decision] = []
    fixed = placed(module)
    nests: set[Node] = set()
    """What anchors compute, also if it was changed element by element."""

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        pattern = REGISTRY[operator_of(new)].pattern
        if pattern == Pattern.ANCHOR:
            nests.add(new)
        if pattern > Pattern.BROADCAST or old in fixed:
            return None
        if any(arg in nests for arg in new.args):
            nests.add(new)
        if operator_of(new) in TIED:
            return None
        for view in new.args:
            if not isinstance(view, Call) or operator_of(view) not in VIEWS:
                continue
            if view.args[0] not in nests or (made := _before(new, view, types)) is None:
                continue
            nests.add(made)
            reason = "the elements keep their order, and the sum before it can be fused"
            log.append(decided(NAME, old, "rewritten", operator_of(view), reason))
            return call_like(new, "reshape", made, newshape=shape_of(new, types))
        return None

    return with_log(rewrite_calls(module, rule), log)


def _before(call: Call, view: Call, types: KnownTypes) -> Call | None:
    """Return a call on the operand of a change of shape; None if another operand hinders it."""
    wide, narrow = shape_of(call, types), shape_of(view.args[0], types)
    if wide is None or narrow is None or shape_of(view, types) != wide:
        return None
    is_along = operator_of(call) in ALONG and types.tensor(call.args[1]).rank > 0
    # The numbers go along an axis, which must be the last one before and after.
    if is_along and (attrs_of(call)["axis"] != -1 or wide[-1:] != narrow[-1:]):
        return None
    args = [
        view.args[0] if arg is view else _aligned(call, arg, wide, narrow, types)
        for arg in call.args
    ]
    known = [arg for arg in args if arg is not None]
    if len(known) < len(args):
        return None
    return call_like(call, operator_of(call), *known, suffix="before", **call.attrs)


def _aligned(
    call: Call, arg: Expr, wide: Sequence[int], narrow: Sequence[int], types: KnownTypes
) -> Expr | None:
    """Return an operand for results of the shape `narrow` that it has for those of `wide`."""
    stored = shape_of(arg, types)
    if stored is None:
        return None
    full = (1,) * (len(wide) - len(stored)) + stored
    found: list[int] = []
    for before, after in _groups(narrow, wide):
        part = [full[n] for n in after]
        if all(extent == 1 for extent in part):
            found += [1] * len(before)
        elif part == [wide[n] for n in after]:
            found += [narrow[n] for n in before]
        else:
            return None
    if (1,) * (len(found) - len(stored)) + stored == tuple(found):
        return arg
    return call_like(call, "reshape", arg, suffix="operand", newshape=tuple(found))


def _groups(first: Sequence[int], second: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the smallest groups of dimensions of two shapes that have as many elements.

    Examples
    --------
    >>> _groups((128, 64), (1, 8, 16, 64))
    [([0], [0, 1, 2]), ([1], [3])]
    >>> _groups((1, 5, 1, 7), (1, 5, 7))
    [([0], [0]), ([1], [1]), ([2, 3], [2])]
    """
    found: list[tuple[list[int], list[int]]] = []
    left, right = [*range(len(first))], [*range(len(second))]
    while left and right:
        before, after = [left.pop(0)], [right.pop(0)]
        while (a := math.prod(first[n] for n in before)) != (
            b := math.prod(second[n] for n in after)
        ):
            if a < b:
                before.append(left.pop(0))
            else:
                after.append(right.pop(0))
        found.append((before, after))
    # What is left has the extent 1.
    last = found.pop() if found else ([], [])
    return [*found, (last[0] + left, last[1] + right)]
