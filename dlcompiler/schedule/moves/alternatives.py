"""What could be done instead of a refused step: candidates, the nearest to the wanted one first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dlcompiler.ir import THREADS, Axis, Extent
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.legality.obligations import extents_of
from dlcompiler.schedule.moves.enumeration import factors_of, intrinsics_of, layouts
from dlcompiler.schedule.primitives.base import SCOPES
from dlcompiler.schedule.state import AtRoot, AttachedAt, StageState, State, same_axes

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt

LANES = 16
"""Size of a loop that is split off for vectors or copies: one AVX-512 vector of float32; [1]."""


@dataclass(frozen=True, slots=True)
class Call:
    """A primitive with its arguments, as `Schedule.attempt` takes them."""

    name: str
    stage: str
    args: Mapping[str, Any]

    def but(self, **args: Any) -> Call:
        """Return the call with other arguments."""
        return Call(self.name, self.stage, {**self.args, **args})


Later: TypeAlias = "Callable[[Attempt], Call]"
Plan: TypeAlias = "tuple[Call | Later, ...]"
"""Calls; a later one may need what the one before it made."""
REORDER_STEPS: Plan = ()
"""Stands for the refused call itself, taken before the steps that forbid it."""


@dataclass(frozen=True)
class Refusal:
    """A refused call, and where it was made."""

    state: State
    call: Call

    @property
    def stage(self) -> StageState:
        """The stage of the call."""
        return self.state.stage(self.call.stage)

    @property
    def leaves(self) -> tuple[Axis, ...]:
        """The loops of the stage, outermost first."""
        return self.stage.leaves

    def extent(self, axis: Axis) -> Extent:
        """Return the iterations of a loop: of an attached stage, those that its reader needs."""
        return extents_of(self.state, self.stage).get(axis, axis.extent)

    def others(self, axis: Any) -> list[Axis]:
        """Return the other loops of the stage, the nearest first."""
        others = [leaf for leaf in self.leaves if leaf is not axis]
        if not isinstance(axis, Axis) or not self.stage.has_leaf(axis):
            return others
        place = self.stage.position(axis)
        return sorted(others, key=lambda leaf: abs(self.stage.position(leaf) - place))


def plans(refused: Refusal) -> Iterator[Plan]:
    """Yield what could be done instead of a refused call, the nearest to it first; none is tried.

    Another number, another loop, a step that makes the wanted one possible, another primitive.
    """
    return _CANDIDATES[refused.call.name](refused)


def _of_split(refused: Refusal) -> Iterator[Plan]:
    call, axis = refused.call, refused.call.args.get("axis")
    name = "nparts" if call.args.get("nparts") is not None else "factor"
    if isinstance(axis, Axis):
        for number in _near(refused.extent(axis), call.args.get(name)):
            yield (Call("split", call.stage, {"axis": axis, name: number}),)
    yield REORDER_STEPS
    for other in refused.others(axis):
        for number in _near(refused.extent(other), call.args.get(name)):
            yield (Call("split", call.stage, {"axis": other, name: number}),)
            break


def _of_tile(refused: Refusal) -> Iterator[Plan]:
    call = refused.call
    pairs = [(call.args.get(axis), call.args.get(f"{axis}_factor")) for axis in ("x", "y")]
    sizes = [_near(refused.extent(a), n)[:1] if isinstance(a, Axis) else [] for a, n in pairs]
    for x_factor, y_factor in itertools.product(*sizes):
        yield (call.but(x_factor=x_factor, y_factor=y_factor),)
    yield REORDER_STEPS
    for (axis, _), numbers in zip(pairs, sizes, strict=True):
        for number in numbers:
            yield (Call("split", call.stage, {"axis": axis, "factor": number}),)


def _near(extent: Extent, wanted: Any) -> list[int]:
    """Return the factors to offer, the nearest to the wanted one first; a small one for no number.

    The extent itself is left out, and so is 1: such a split changes nothing.
    """
    is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
    aim = wanted if is_number else LANES
    return sorted(factors_of(extent), key=lambda n: (abs(n - aim), n))


def _of_reorder(refused: Refusal) -> Iterator[Plan]:
    """Yield the orders that move one loop, those nearest to the wanted order first."""
    leaves, wanted = refused.leaves, _wanted_order(refused)
    orders: list[tuple[Axis, ...]] = []
    for leaf, place in itertools.product(leaves, range(len(leaves))):
        rest = [other for other in leaves if other is not leaf]
        order = (*rest[:place], leaf, *rest[place:])
        if not any(same_axes(order, known) for known in (leaves, *orders)):
            orders.append(order)
    for order in sorted(orders, key=lambda order: _inversions(order, wanted)):
        moved = [new for new, old in zip(order, leaves, strict=True) if new is not old]
        yield (refused.call.but(axes=tuple(moved)),)


def _wanted_order(refused: Refusal) -> tuple[Axis, ...]:
    given = refused.call.args.get("axes")
    axes: list[Axis] = []
    for axis in given if isinstance(given, tuple) else ():
        is_loop = isinstance(axis, Axis) and refused.stage.has_leaf(axis)
        if is_loop and not any(axis is other for other in axes):
            axes.append(axis)
    queue = iter(axes)
    return tuple(
        next(queue) if any(leaf is axis for axis in axes) else leaf for leaf in refused.leaves
    )


def _inversions(order: Sequence[Axis], wanted: Sequence[Axis]) -> int:
    """Return how many pairs of loops stand the other way round (Kendall's distance)."""
    place = {leaf: n for n, leaf in enumerate(wanted)}
    numbers = [place[leaf] for leaf in order]
    return sum(a > b for a, b in itertools.combinations(numbers, 2))


def _of_fuse(refused: Refusal) -> Iterator[Plan]:
    given = refused.call.args.get("axes")
    axes = [a for a in given if isinstance(a, Axis)] if isinstance(given, tuple) else []
    loops = [leaf for leaf in refused.leaves if any(leaf is axis for axis in axes)]
    if len(loops) > 1:  # side by side first, where they are not
        yield _gathered(refused, tuple(loops))
    yield REORDER_STEPS
    for leaf in loops:
        for other in refused.others(leaf):
            pair = tuple(x for x in refused.leaves if x is leaf or x is other)
            if len({axis.kind for axis in pair}) == 1:
                yield (refused.call.but(axes=pair),)
                yield _gathered(refused, pair)


def _gathered(refused: Refusal, axes: tuple[Axis, ...]) -> Plan:
    """Return the plan that brings loops side by side, behind the outermost of them, and fuses."""
    first, leaves = refused.stage.position(axes[0]), refused.leaves
    last = refused.stage.position(axes[-1])
    rest = (leaf for leaf in leaves[first : last + 1] if not any(leaf is axis for axis in axes))
    reorder = Call("reorder", refused.call.stage, {"axes": (*axes, *rest)})
    return reorder, Call("fuse", refused.call.stage, {"axes": axes})


def _of_lanes(refused: Refusal) -> Iterator[Plan]:
    """Yield data loops, the innermost first for vectors, the outermost first for threads."""
    call, axis = refused.call, refused.call.args.get("axis")
    data = [x for x in refused.leaves if x.kind == "data" and refused.stage.kind(x) == "serial"]
    for leaf in data if call.name == "parallel" else reversed(data):
        if leaf is not axis:
            yield (call.but(axis=leaf),)
    if isinstance(axis, Axis) and axis.kind == "reduce":
        yield from _factored(refused, axis)
    if isinstance(axis, Axis):
        yield from _unrolled(refused, axis)


def _of_bind(refused: Refusal) -> Iterator[Plan]:
    """Yield data loops, the outermost first, then thread axes that are free."""
    call = refused.call
    for leaf in refused.leaves:
        is_free = leaf.kind == "data" and refused.stage.kind(leaf) == "serial"
        if is_free and leaf is not call.args.get("axis"):
            yield (call.but(axis=leaf),)
    for thread in THREADS:
        yield (call.but(thread=thread),)


def _factored(refused: Refusal, axis: Axis) -> Iterator[Plan]:
    """Yield plans that make a part of a reduction loop a data loop: split, rfactor, annotate."""
    call = refused.call
    part = 0 if call.name == "parallel" else 1
    for number in _near(refused.extent(axis), LANES)[:2]:
        yield (
            Call("split", call.stage, {"axis": axis, "factor": number}),
            lambda split: Call("rfactor", call.stage, {"axis": split.result[part]}),
            lambda made: Call(
                call.name, _stage_of(made).name, {"axis": _stage_of(made).op.axis[0]}
            ),
        )


def _stage_of(made: Attempt) -> StageState:
    """Return the stage that a step made."""
    assert made.state is not None
    tensor = made.result[0] if isinstance(made.result, tuple) else made.result
    stage = made.state.find(tensor)
    assert stage is not None
    return stage


def _of_unroll(refused: Refusal) -> Iterator[Plan]:
    axis = refused.call.args.get("axis")
    if isinstance(axis, Axis):
        yield from _unrolled(refused, axis)
    for other in refused.others(axis):
        if refused.stage.kind(other) == "serial":
            yield (refused.call.but(axis=other),)


def _unrolled(refused: Refusal, axis: Axis) -> Iterator[Plan]:
    """Yield plans that unroll a loop, or a piece of it that is split off."""
    stage = refused.call.stage
    if refused.call.name != "unroll" and refused.stage.kind(axis) == "serial":
        yield (Call("unroll", stage, {"axis": axis}),)
    for number in _near(refused.extent(axis), LANES):
        yield (
            Call("split", stage, {"axis": axis, "factor": number}),
            lambda split: Call("unroll", stage, {"axis": split.result[1]}),
        )


def _of_rfactor(refused: Refusal) -> Iterator[Plan]:
    call, axis = refused.call, refused.call.args.get("axis")
    reduced = [leaf for leaf in refused.leaves if leaf.kind == "reduce"]
    for leaf in sorted(reduced, key=lambda leaf: leaf is not axis):
        yield (Call("rfactor", call.stage, {**call.args, "axis": leaf}),)
        yield (Call("rfactor", call.stage, {"axis": leaf}),)


def _of_compute_at(refused: Refusal) -> Iterator[Plan]:
    """Yield the loops further out, those further in, those of other readers, and no loop."""
    stage, call = refused.stage, refused.call
    parent, axis = call.args.get("parent"), call.args["axis"]
    hosts = sorted(consumers(refused.state, stage), key=lambda host: host.name != parent)
    for host in hosts:
        is_loop = isinstance(axis, Axis) and host.has_leaf(axis)
        place = host.position(axis) if is_loop else len(host.leaves)
        for leaf in (*reversed(host.leaves[:place]), *host.leaves[place + 1 :]):
            if not _is_there(stage, host, leaf):
                yield (Call("compute_at", stage.name, {"parent": host.name, "axis": leaf}),)
    if not isinstance(stage.attachment, AtRoot):
        yield (Call("compute_root", stage.name, {}),)


def _is_there(stage: StageState, host: StageState, leaf: Axis) -> bool:
    at = stage.attachment
    return isinstance(at, AttachedAt) and at.stage == host.name and at.axis is leaf


def _of_compute_group_at(refused: Refusal) -> Iterator[Plan]:
    """Yield the other loops of the same reader, the innermost first."""
    call = refused.call
    for leaf in reversed(refused.state.stage(call.args["parent"]).leaves):
        if leaf is not call.args["axis"]:
            yield (call.but(axis=leaf),)


def _of_compute_inline(refused: Refusal) -> Iterator[Plan]:
    """Yield the innermost loops of the readers; for an output, what it reads."""
    stage = refused.stage
    for host in consumers(refused.state, stage):
        for leaf in reversed(host.leaves):
            if not _is_there(stage, host, leaf):
                yield (Call("compute_at", stage.name, {"parent": host.name, "axis": leaf}),)
    for tensor in stage.op.input_tensors:
        producer = refused.state.producer_of(tensor)
        if not producer.is_placeholder and not producer.is_inlined:
            yield (Call("compute_inline", producer.name, {}),)


def _of_nothing(refused: Refusal) -> Iterator[Plan]:
    yield from ()


def _of_cache(refused: Refusal) -> Iterator[Plan]:
    """Yield known scopes and readers, and the stage with loops of its own first."""
    call, stage = refused.call, refused.stage
    scopes = [call.args["scope"]] if call.args.get("scope") in SCOPES else list(reversed(SCOPES))
    if call.name == "cache_read":
        readers = [s.name for s in refused.state.stages if stage.tensor in s.op.input_tensors]
        for scope, name in itertools.product(scopes, readers):
            yield (call.but(scope=scope, readers=(name,)),)
        return
    for scope in scopes:
        yield (call.but(scope=scope),)
        if stage.is_inlined:
            yield Call("compute_root", stage.name, {}), call.but(scope=scope)


def _of_storage(refused: Refusal) -> Iterator[Plan]:
    """Yield other numbers, and the same for a stage that has memory of its own."""
    call, stage = refused.call, refused.stage
    calls = list(_other_values(call, stage))
    yield from ((changed,) for changed in calls)
    first: Iterable[Call] = ()
    if stage.is_inlined:
        first = [Call("compute_root", stage.name, {})]
    elif stage.is_placeholder:
        readers = tuple(reader.name for reader in consumers(refused.state, stage))
        first = [Call("cache_read", stage.name, {"scope": "local", "readers": readers})]
    elif stage.is_output or call.name == "transform_layout":
        first = [Call("cache_write", stage.name, {"scope": "local"})]
    for before, wanted in itertools.product(first, (call, *calls)):
        yield before, lambda made, wanted=wanted: _in_copy(wanted, stage, made)  # type: ignore[misc]


def _in_copy(call: Call, stage: StageState, made: Attempt) -> Call:
    """Return a call about a stage as one about the copy of it that a step made."""
    if made.result is None:
        return call
    copy = _stage_of(made)
    axis = call.args.get("axis")
    moved = {} if axis is None else {"axis": _dimension_like(axis, stage, copy)}
    return Call(call.name, copy.name, {**call.args, **moved})


def _dimension_like(axis: Axis, stage: StageState, copy: StageState) -> Axis:
    """Return the dimension of a copy that stands for one of a stage, or its last one.

    A cache has a dimension for each loop of its stage, named after it.
    """
    path = stage.paths.get(axis, axis.name)
    named = [own for own in copy.op.axis if copy.paths[own].removesuffix(".c") == path]
    return (*named, *copy.op.axis[-1:], axis)[0]


def _other_values(call: Call, stage: StageState) -> Iterator[Call]:
    match call.name:
        case "set_scope":
            yield from (call.but(scope=scope) for scope in reversed(SCOPES))
        case "storage_align" | "align_extent":
            offset = {"offset": 0} if call.name == "storage_align" else {}
            yield from (call.but(factor=factor, **offset) for factor in (16, 8, 4))
        case "transform_layout":
            yield from (call.but(index_map=text) for text in layouts(stage))


def _of_prefetch(refused: Refusal) -> Iterator[Plan]:
    call, axis = refused.call, refused.call.args.get("axis")
    yield (call.but(offset=1),)
    for leaf in refused.others(axis):
        yield (call.but(axis=leaf),)
        yield (call.but(axis=leaf, offset=1),)


def _of_pragma(refused: Refusal) -> Iterator[Plan]:
    call = refused.call
    yield (call.but(pragma_value=16),)
    name = "auto_unroll_max_step"
    for leaf in (call.args.get("axis"), *refused.others(call.args.get("axis"))):
        yield (call.but(axis=leaf, pragma_type=name, pragma_value=16),)


def _of_tensorize(refused: Refusal) -> Iterator[Plan]:
    """Yield the shipped intrinsics for the loops that there are, those of the wanted loop first."""
    call, wanted = refused.call, refused.call.args.get("axis")
    if refused.stage.is_placeholder or refused.stage.is_inlined:
        return
    found = list(intrinsics_of(refused.state, refused.stage))
    for leaf, name in sorted(found, key=lambda pair: pair[0] is not wanted):
        yield (call.but(axis=leaf, intrin=name),)
    yield REORDER_STEPS


_CANDIDATES: dict[str, Callable[[Refusal], Iterator[Plan]]] = {
    "split": _of_split,
    "tile": _of_tile,
    "reorder": _of_reorder,
    "fuse": _of_fuse,
    "vectorize": _of_lanes,
    "parallel": _of_lanes,
    "bind": _of_bind,
    "unroll": _of_unroll,
    "tensorize": _of_tensorize,
    "rfactor": _of_rfactor,
    "compute_at": _of_compute_at,
    "compute_inline": _of_compute_inline,
    "compute_root": _of_nothing,
    "create_group": _of_nothing,
    "compute_group_at": _of_compute_group_at,
    "compute_group_root": _of_nothing,
    "cache_read": _of_cache,
    "cache_write": _of_cache,
    "set_scope": _of_storage,
    "storage_align": _of_storage,
    "align_extent": _of_storage,
    "double_buffer": _of_storage,
    "rolling_buffer": _of_storage,
    "transform_layout": _of_storage,
    "prefetch": _of_prefetch,
    "pragma": _of_pragma,
}
