"""Tell why a step would change nothing: it is applied already, or only moves loops that run once.

A loop of one iteration is not in the lowered program, so that a step on it alone has no effect.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.ir import Axis, is_thread
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.legality.obligations import extents_of
from dlcompiler.schedule.state import (
    PREFETCH,
    AtRoot,
    AttachedAt,
    StageState,
    State,
    buffer_name,
    same_axes,
)

if TYPE_CHECKING:
    from dlcompiler.schedule.moves.enumeration import Domain

KINDS = {"vectorize": "vectorized", "unroll": "unrolled", "parallel": "parallel"}
"""Primitive -> the loop kind that it gives."""

OF_LOOPS = frozenset({"split", "tile", "fuse", "reorder", *KINDS})
"""Primitives that only change loops."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A step, with the state in which it would be applied."""

    state: State
    stage: StageState
    name: str
    args: Mapping[str, Any]

    @property
    def axis(self) -> Axis:
        """The loop of the step."""
        axis: Axis = self.args["axis"]
        return axis

    def extent(self, axis: Axis) -> int | None:
        """Return the number of iterations of a loop; None if it is not a constant."""
        if self.stage.is_placeholder or self.stage.is_inlined:
            return None
        extent = extents_of(self.state, self.stage).get(axis, axis.extent)
        return extent if isinstance(extent, int) else None

    def is_idle(self, axis: Axis) -> bool:
        """Tell whether a loop leaves no trace: it runs once, and nothing is attached to it."""
        return (
            self.extent(axis) == 1
            and not is_thread(self.stage.kind(axis))
            and not self.stage.pragmas.get(axis)
            and not self.attached(axis, axis)
        )

    def attached(self, first: Axis, last: Axis) -> bool:
        """Tell whether a stage is computed inside one of the loops from `first` to `last`."""
        stage = self.stage
        positions = range(stage.position(first), stage.position(last) + 1)
        places = (each.attachment for each in placed(self.state).stages)
        return any(
            isinstance(at, AttachedAt)
            and at.stage == stage.name
            and (not stage.has_leaf(at.axis) or stage.position(at.axis) in positions)
            for at in places
        )

    def is_empty(self) -> str:
        """Return the sentence that says that a stage computes nothing; '' if it does."""
        empty = [leaf for leaf in self.stage.leaves if self.extent(leaf) == 0]
        return f"{self.stage.label(empty[0])} has no iterations" if empty else ""

    def runs_once(self, axis: Axis) -> str:
        """Return the sentence that says that a loop runs once; '' if it does not."""
        return f"{self.stage.label(axis)} has one iteration" if self.extent(axis) == 1 else ""


def why_unchanged(
    state: State,
    stage: StageState,
    name: str,
    args: Mapping[str, Any],
    domains: Sequence[Domain] = (),
) -> str:
    """Return why a step would change neither the program nor an annotation; '' if it changes one.

    Parameters
    ----------
    state, stage
        The state in which the step would be applied, and its stage.
    name, args
        The primitive and its arguments; the step is legal.
    domains
        Parameters that are still to be chosen. The step changes nothing if no suggested value does.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((1, 8), name="A")
    >>> B = te.compute((1, 8), lambda i, j: A[i, j] + 1.0, name="B")
    >>> s = create_schedule(B.op)
    >>> i, j = B.op.axis
    >>> [why_unchanged(s.state, s.state.stage("B"), "unroll", {"axis": x}) for x in (i, j)]
    ['B.i has one iteration', '']
    """
    rule = RULES.get(name)
    if rule is None:
        return ""
    if name in OF_LOOPS and (empty := Asked(state, stage, name, args).is_empty()):
        return empty
    values = itertools.product(*(domain.suggested or (2,) for domain in domains))
    reason = ""
    for chosen in values:
        numbers = {each.parameter: value for each, value in zip(domains, chosen, strict=True)}
        reason = rule(Asked(state, stage, name, {**args, **numbers}))
        if not reason:
            return ""
    return reason


# -- loops -----------------------------------------------------------------------------------------


def _is_whole(number: Any, extent: int) -> bool:
    """Tell whether a split by a number leaves one of both loops with all iterations."""
    return isinstance(number, int) and (number == 1 or number >= extent)


def _split(asked: Asked) -> str:
    axis, extent = asked.axis, asked.extent(asked.axis)
    if extent is None:
        return ""
    number = asked.args.get("factor") or asked.args.get("nparts")
    if extent == 1:
        return asked.runs_once(axis)
    if not _is_whole(number, extent) or asked.attached(axis, axis):
        return ""
    return (
        f"one of both loops would run once, and the other {extent} times, "
        f"as {asked.stage.label(axis)} does now"
    )


def _tile(asked: Asked) -> str:
    """Return why both loops would stay whole, and in their order."""
    x, y = asked.args["x"], asked.args["y"]
    places = []
    for place, (axis, name) in enumerate(((x, "x_factor"), (y, "y_factor"))):
        extent, factor = asked.extent(axis), asked.args.get(name)
        if extent is None or (extent > 1 and not _is_whole(factor, extent)):
            return ""
        if extent > 1:  # the order is x.outer, y.outer, x.inner, y.inner
            places.append(place if factor == 1 else place + 2)
    if places != sorted(places):
        return ""
    return f"{asked.stage.label(x)} and {asked.stage.label(y)} would stay whole"


def _fuse(asked: Asked) -> str:
    once = [axis for axis in asked.args["axes"] if asked.extent(axis) == 1]
    if len(asked.args["axes"]) - len(once) > 1 or not once:
        return ""
    outer = asked.args["axes"][0]
    return "" if asked.attached(outer, outer) else asked.runs_once(once[0])


def _reorder(asked: Asked) -> str:
    axes, stage = asked.args["axes"], asked.stage
    if not all(stage.has_leaf(axis) for axis in axes):
        return ""
    now = sorted(axes, key=stage.position)
    if same_axes(now, axes):
        return "the loops are in this order already"
    has_lanes = any(stage.kind(axis) == "vectorized" for axis in axes)
    if has_lanes and asked.attached(stage.leaves[0], stage.leaves[-1]):
        return ""  # what is computed inside a vectorized loop moves out of it
    idle = [axis for axis in axes if asked.is_idle(axis)]
    busy, then = ([x for x in each if not any(x is y for y in idle)] for each in (now, axes))
    if not idle or not same_axes(busy, then):
        return ""
    rest = iter(axes)
    after = [next(rest) if any(x is y for y in axes) else x for x in stage.leaves]
    is_same = same_axes(_outside_sums(asked, stage.leaves), _outside_sums(asked, after))
    return asked.runs_once(idle[0]) if is_same else ""


def _outside_sums(asked: Asked, leaves: Sequence[Axis]) -> list[Axis]:
    """Return the loops around the initialisation of a reduction that run more than once."""
    outside = itertools.takewhile(lambda leaf: leaf.kind != "reduce", leaves)
    return [leaf for leaf in outside if asked.extent(leaf) != 1]


def _annotate(asked: Asked) -> str:
    kind = KINDS[asked.name]
    if asked.stage.kind(asked.axis) == kind:
        return f"{asked.stage.label(asked.axis)} is {kind} already"
    # What is computed inside a vectorized loop moves out of it.
    moves = kind == "vectorized" and asked.attached(asked.axis, asked.stage.leaves[-1])
    return "" if moves else asked.runs_once(asked.axis)


def _bind(asked: Asked) -> str:
    thread = asked.args["thread"]
    if asked.stage.kind(asked.axis) == thread:
        return f"{asked.stage.label(asked.axis)} is bound to {thread} already"
    return ""


def _pragma(asked: Asked) -> str:
    name, value = asked.args["pragma_type"], asked.args.get("pragma_value")
    wanted = 1 if value is None else value
    if asked.stage.pragmas.get(asked.axis, {}).get(name) == wanted:
        return f"{asked.stage.label(asked.axis)} has {name}={wanted} already"
    # A thread axis stays in the program, also one of one thread.
    return "" if is_thread(asked.stage.kind(asked.axis)) else asked.runs_once(asked.axis)


def _prefetch(asked: Asked) -> str:
    producer = asked.state.stage(asked.args["tensor"])
    tensor = producer.tensors[asked.args.get("tensor_output") or 0]
    offset = asked.args.get("offset", 1)
    name = PREFETCH + buffer_name(producer, tensor)
    if asked.stage.pragmas.get(asked.axis, {}).get(name) == offset:
        return f"{asked.stage.label(asked.axis)} prefetches that already"
    return asked.runs_once(asked.axis)


# -- stages ----------------------------------------------------------------------------------------


def _compute_root(asked: Asked) -> str:
    is_there = isinstance(asked.stage.attachment, AtRoot)
    return f"{asked.stage.name} has a loop nest of its own already" if is_there else ""


def _compute_inline(asked: Asked) -> str:
    return f"{asked.stage.name} is inlined already" if asked.stage.is_inlined else ""


def _compute_at(asked: Asked) -> str:
    at = asked.stage.attachment
    is_there = isinstance(at, AttachedAt) and at.axis is asked.args["axis"]
    return f"{asked.stage.name} is computed there already" if is_there else ""


def _compute_group_root(asked: Asked) -> str:
    group = asked.stage.group
    is_there = group is not None and isinstance(group.place, AtRoot)
    return "the group has loop nests of its own already" if is_there else ""


def _compute_group_at(asked: Asked) -> str:
    place = asked.stage.group.place if asked.stage.group is not None else None
    is_there = isinstance(place, AttachedAt) and place.axis is asked.args["axis"]
    return "the group is computed there already" if is_there else ""


# -- storage ---------------------------------------------------------------------------------------


def _set_scope(asked: Asked) -> str:
    scope = asked.args["scope"]
    return f"{asked.stage.name} is in {scope} already" if asked.stage.scope == scope else ""


def _storage_align(asked: Asked) -> str:
    wanted = (asked.args["factor"], asked.args.get("offset", 0))
    known = asked.stage.alignments
    if known.get(asked.axis) == wanted:
        return f"{asked.stage.label(asked.axis)} is padded in this way already"
    extents = [asked.extent(axis) for axis in asked.stage.op.axis]
    at = next((n for n, axis in enumerate(asked.stage.op.axis) if axis is asked.axis), None)
    if known or at is None or None in extents:
        return ""
    stride = 1
    for extent in extents[at + 1 :]:
        stride *= extent or 0
    factor, offset = wanted
    if (stride - offset) % factor:
        return ""
    return f"the rows begin {stride} elements apart: that is such a distance already"


def _align_extent(asked: Asked) -> str:
    factor = asked.args["factor"]
    if asked.stage.rounded.get(asked.axis) == factor:
        return f"{asked.stage.label(asked.axis)} is rounded up to a multiple of {factor} already"
    if not isinstance(asked.stage.attachment, AttachedAt):
        return f"{asked.stage.name} is computed whole: this is for a part, inside another loop"
    extent = asked.extent(asked.axis)
    if extent is None or extent % factor or asked.axis in asked.stage.rounded:
        return ""
    return f"{extent} iterations are a multiple of {factor} already"


def _double_buffer(asked: Asked) -> str:
    is_made = asked.stage.double_buffered_by
    return f"{asked.stage.name} is double-buffered already" if is_made else ""


def _rolling_buffer(asked: Asked) -> str:
    return f"{asked.stage.name} is a rolling buffer already" if asked.stage.rolled_by else ""


RULES: Mapping[str, Callable[[Asked], str]] = {
    "split": _split,
    "tile": _tile,
    "fuse": _fuse,
    "reorder": _reorder,
    **dict.fromkeys(KINDS, _annotate),
    "bind": _bind,
    "pragma": _pragma,
    "prefetch": _prefetch,
    "compute_root": _compute_root,
    "compute_inline": _compute_inline,
    "compute_at": _compute_at,
    "compute_group_root": _compute_group_root,
    "compute_group_at": _compute_group_at,
    "set_scope": _set_scope,
    "storage_align": _storage_align,
    "align_extent": _align_extent,
    "double_buffer": _double_buffer,
    "rolling_buffer": _rolling_buffer,
}
"""Primitive -> the function that says why a step changes nothing. All others change the program."""
