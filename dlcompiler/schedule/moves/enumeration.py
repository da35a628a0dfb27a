"""List every move on a stage with its verdict, for menus, tuners and fuzzers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from dlcompiler.display import render
from dlcompiler.ir import Axis, Extent, ThreadTag, is_one
from dlcompiler.schedule.groups import is_member
from dlcompiler.schedule.index_maps import variable_names
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.inference.recurrences import hosts
from dlcompiler.schedule.inference.thread_loops import is_launched
from dlcompiler.schedule.legality.obligations import extents_of, has_bounds
from dlcompiler.schedule.legality.tensorized import box_extents
from dlcompiler.schedule.moves import accelerator_moves
from dlcompiler.schedule.moves.device_moves import scopes_of, threads_of, verdict_on
from dlcompiler.schedule.state import StageState, State, is_scan
from dlcompiler.schedule.verdict import Verdict
from dlcompiler.target import Target
from dlcompiler.te.intrinsics.library import families_for

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Schedule

MAX_DIVISOR = 4096
SYMBOLIC_FACTORS = (4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a parameter: any integer ≥ 1 is allowed, and `suggested` lists good ones."""

    parameter: str
    suggested: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.parameter} in {{{', '.join(map(str, self.suggested))}}} or any"


@dataclass(frozen=True, slots=True)
class Move:
    """A step that could come next. Its parameters in `domains` are still to be chosen."""

    primitive: str
    stage: str
    args: Mapping[str, Any]
    targets: tuple[str, ...]
    """The names of its axes or scopes."""
    domains: tuple[Domain, ...]
    verdict: Verdict

    def __repr__(self) -> str:
        parts = [self.primitive, *(self.targets or (self.stage,)), *map(str, self.domains)]
        verdict = "" if self.verdict else f": {self.verdict!r}"
        return f"Move({', '.join(parts)}{verdict})"


class Moves(tuple[Move, ...]):
    """A tuple of moves, which a notebook shows as a table with their verdicts."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render("moves", self)


Wanted: TypeAlias = Callable[[str, Mapping[str, Any]], bool]


def moves_of(
    schedule: Schedule, name: str, wanted: Wanted | None = None, target: Target | None = None
) -> Iterator[Move]:
    """Yield every move on a stage with its verdict; with `wanted`, only the moves it accepts.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from.
    name
        Name of the stage.
    wanted
        Tells from a primitive and its arguments whether to list the move.
    target
        The target: it gives the memories and, for a GPU, the thread axes. Moves that it cannot run
        are illegal by a *limit*. Without a target, the moves are those of a CPU.
    """
    state = schedule.state
    stage = state.stage(name)
    for primitive, args, targets, domains in _candidates(state, stage, target):
        if wanted is not None and not wanted(primitive, args):
            continue
        sample = {**args, **{d.parameter: (d.suggested or (2,))[0] for d in domains}}
        attempt = schedule.attempt(primitive, name, sample)
        verdict = verdict_on(target, attempt, args, state)
        yield Move(primitive, name, args, targets, domains, verdict)


def move_of(schedule: Schedule, primitive: str, name: str, args: Mapping[str, Any]) -> Move | None:
    """Return the move for a step without its numbers: with the suggested ones; None if none fits.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from.
    primitive, name
        The primitive and the name of the stage.
    args
        The arguments that are given, such as the axis of a split.
    """

    def wanted(other: str, others: Mapping[str, Any]) -> bool:
        return other == primitive and all(_is_same(others.get(key), args[key]) for key in args)

    found = moves_of(schedule, name, wanted)
    return next((move for move in found if move.domains), None)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (
        isinstance(one, str | int) and isinstance(other, str | int) and one == other
    )


_Candidate = tuple[str, dict[str, Any], tuple[str, ...], tuple[Domain, ...]]


def _candidates(state: State, stage: StageState, target: Target | None) -> Iterator[_Candidate]:
    scopes = scopes_of(target)
    yield from _cache_read_candidates(state, stage, scopes)
    if stage.is_placeholder:
        return
    if not stage.is_inlined:
        yield from _loop_candidates(stage, extents_of(state, stage), threads_of(target))
        yield from _launch_candidates(stage, threads_of(target))
        yield from _prefetch_candidates(state, stage)
        yield from _intrinsic_candidates(state, stage, target)
    readers = consumers(state, stage)
    scans = [hosts(state)[reader.name] for reader in readers if reader.name in hosts(state)]
    for host in dict.fromkeys((*readers, *scans)):
        for leaf in host.leaves:
            args = {"parent": host.name, "axis": leaf}
            yield "compute_at", args, (stage.name, host.label(leaf)), ()
    yield from _group_candidates(state, stage)
    yield "compute_inline", {}, (stage.name,), ()
    yield "compute_root", {}, (stage.name,), ()
    yield from _storage_candidates(stage, scopes)
    for scope in scopes:
        yield "cache_write", {"scope": scope}, (stage.name, scope), ()


def _launch_candidates(stage: StageState, threads: Sequence[ThreadTag]) -> Iterator[_Candidate]:
    """Yield launches of all steps of a scan: 32 threads, 128 threads, 4 blocks of 32 threads."""
    if "threadIdx.x" not in threads or not is_scan(stage) or is_launched(stage):
        return
    for launch in ("threadIdx.x=32", "threadIdx.x=128", "blockIdx.x=4 threadIdx.x=32"):
        yield "env_threads", {"threads": launch}, (stage.name, launch), ()


def _group_candidates(state: State, stage: StageState) -> Iterator[_Candidate]:
    """Yield the call that groups a stage with its producers; for a group, its attachments."""
    group = stage.group
    if group is None:
        if any(not state.producer_of(tensor).is_placeholder for tensor in stage.op.input_tensors):
            yield "create_group", {"outputs": (stage.name,), "inputs": ()}, (stage.name,), ()
        return
    for consumer in consumers(state, stage):
        for leaf in () if is_member(consumer, group) else consumer.leaves:
            args = {"parent": consumer.name, "axis": leaf}
            yield "compute_group_at", args, (group.name, consumer.label(leaf)), ()
    yield "compute_group_root", {}, (group.name,), ()


def _storage_candidates(stage: StageState, scopes: Sequence[str]) -> Iterator[_Candidate]:
    for scope in scopes:
        yield "set_scope", {"scope": scope}, (stage.name, scope), ()
    for axis in stage.op.axis:
        factors = Domain("factor", (4, 8, 16))
        for offset in (0, 1):
            targets = (stage.label(axis), f"offset {offset}")
            yield "storage_align", {"axis": axis, "offset": offset}, targets, (factors,)
        yield "align_extent", {"axis": axis}, (stage.label(axis),), (factors,)
    yield "double_buffer", {}, (stage.name,), ()
    yield "rolling_buffer", {}, (stage.name,), ()
    for text in layouts(stage):
        yield "transform_layout", {"index_map": text}, (stage.name, text), ()


def _prefetch_candidates(state: State, stage: StageState) -> Iterator[_Candidate]:
    ahead = Domain("offset", (1, 2, 4))
    for tensor in stage.op.input_tensors:
        read = state.producer_of(tensor)
        if tensor in read.states:
            continue  # a step of a scan just computed these: prefetching them is useless
        which = {"tensor_output": n} if (n := read.tensors.index(tensor)) else {}
        for leaf in stage.leaves:
            args = {"tensor": read.name, "axis": leaf, **which}
            yield "prefetch", args, (stage.label(leaf), tensor.name), (ahead,)


def _intrinsic_candidates(
    state: State, stage: StageState, target: Target | None
) -> Iterator[_Candidate]:
    accelerator = None if target is None else target.accelerator
    if accelerator is not None:
        found = accelerator_moves.intrinsics_of(accelerator, state, stage)
    else:
        found = intrinsics_of(state, stage, target)
    for leaf, name in found:
        yield "tensorize", {"axis": leaf, "intrin": name}, (stage.label(leaf), name), ()


def intrinsics_of(
    state: State, stage: StageState, target: Target | None = None
) -> Iterator[tuple[Axis, str]]:
    """Yield (loop, intrinsic) if the sizes of a loop, with the loops inside, fit the intrinsic.

    For a target without the instructions, the loops of the declaration would take the place of the
    intrinsic: such a step gains nothing, and is left out.
    """
    if stage.tensorized is not None or len(stage.tensors) > 1 or not has_bounds(state):
        return
    read = dict.fromkeys(load.tensor for load in loads_of(bodies(state)[stage.name]))
    families = [
        family
        for family in families_for(stage.tensor.dtype, [tensor.dtype for tensor in read])
        if target is None or family.emitter in target.emits
    ]
    for leaf in stage.leaves if families else ():
        extents = box_extents(state, stage, leaf)
        names = () if extents is None else (family.fitting(*extents) for family in families)
        for name in filter(None, names):
            yield leaf, name


def layouts(stage: StageState) -> Iterator[str]:
    """Yield two layouts as text: last two dimensions swapped, and the last one in blocks of 4."""
    names = variable_names([axis.name for axis in stage.op.axis])
    if not names:
        return
    *rest, last = names
    head = f"lambda {', '.join(names)}: ["
    if rest:
        yield head + ", ".join([*rest[:-1], last, rest[-1]]) + "]"
    yield head + ", ".join([f"{last} // 4", *rest, f"{last} % 4"]) + "]"


def _cache_read_candidates(
    state: State, stage: StageState, scopes: Sequence[str]
) -> Iterator[_Candidate]:
    for number, tensor in enumerate(stage.readable):
        readers = tuple(s.name for s in state.stages if tensor in s.op.input_tensors)
        choices = [(name,) for name in readers] + ([readers] if len(readers) > 1 else [])
        which = {"output": number} if number else {}
        for scope, chosen in itertools.product(scopes, choices):
            args = {"scope": scope, "readers": chosen, **which}
            yield "cache_read", args, (tensor.name, scope, *chosen), ()


def _loop_candidates(
    stage: StageState, extents: Mapping[Axis, Extent], threads: Sequence[ThreadTag]
) -> Iterator[_Candidate]:
    label = stage.label
    for leaf in stage.leaves:
        factors = Domain("factor", factors_of(extents[leaf]))
        yield "split", {"axis": leaf}, (label(leaf),), (factors,)
        for primitive in ("vectorize", "unroll", "parallel"):
            yield primitive, {"axis": leaf}, (label(leaf),), ()
        for thread in threads:
            yield "bind", {"axis": leaf, "thread": thread}, (label(leaf), thread), ()
        copies = Domain("pragma_value", (4, 16, 64))
        name = "auto_unroll_max_step"
        yield "pragma", {"axis": leaf, "pragma_type": name}, (label(leaf), name), (copies,)
        if leaf.kind == "reduce":
            yield "rfactor", {"axis": leaf}, (label(leaf),), ()
    for pair in zip(stage.leaves, stage.leaves[1:], strict=False):
        outer, inner = pair
        yield "fuse", {"axes": pair}, (label(outer), label(inner)), ()
        yield "reorder", {"axes": (inner, outer)}, (label(inner), label(outer)), ()
        if outer.kind == inner.kind == "data":
            domains = (
                Domain("x_factor", _tile_factors(extents[outer])),
                Domain("y_factor", _tile_factors(extents[inner])),
            )
            yield "tile", {"x": outer, "y": inner}, (label(outer), label(inner)), domains
    # Past a loop of one iteration a step changes nothing: these go past it to the next one.
    moving = [leaf for leaf in stage.leaves if not is_one(extents[leaf])]
    for outer, inner in itertools.pairwise(moving):
        if stage.position(inner) > stage.position(outer) + 1:
            yield "reorder", {"axes": (inner, outer)}, (label(inner), label(outer)), ()


def _tile_factors(extent: Extent) -> tuple[int, ...]:
    """Return `factors_of`; for a loop that has none, its extent: the other loop is split."""
    return factors_of(extent) or ((max(extent, 1),) if isinstance(extent, int) else ())


def factors_of(extent: Extent) -> tuple[int, ...]:
    """Return the factors to offer for a loop: divisors; for a symbolic extent, powers of two."""
    return divisors(extent) if isinstance(extent, int) else SYMBOLIC_FACTORS


@cache
def divisors(extent: int) -> tuple[int, ...]:
    """Return the divisors of `extent` except 1 and itself; if there are none, small numbers.

    For a huge extent, divisors are found by trial up to `MAX_DIVISOR` only.
    """
    small = [n for n in range(2, min(math.isqrt(extent), MAX_DIVISOR) + 1) if extent % n == 0]
    large = [extent // n for n in reversed(small) if n * n != extent]
    return (*small, *large) or tuple(n for n in (2, 4, 8) if n < extent)
