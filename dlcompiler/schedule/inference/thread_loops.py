"""The thread loops that enclose a stage, and the memory that its values are in."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.ir import SHARED, SHARED_SCOPES, Axis, is_in_block, is_thread
from dlcompiler.schedule.state import AttachedAt, Fuse, Split, StageState, State, is_scan


def uses_threads(state: State) -> bool:
    """Tell whether any loop is bound to threads of a device."""
    known: bool | None = state.cache.get("uses threads")
    if known is None:
        kinds = (kind for stage in state.stages for kind in stage.kinds.values())
        known = state.cache["uses threads"] = any(map(is_thread, kinds))
    return known


def has_only_virtual_threads(state: State) -> bool:
    """Tell whether all threads are virtual ones, as those of an accelerator are.

    They run in one program, and so no memory is private to one of them.
    """
    known: bool | None = state.cache.get("only virtual threads")
    if known is None:
        kinds = {kind for stage in state.stages for kind in stage.kinds.values() if is_thread(kind)}
        known = state.cache["only virtual threads"] = kinds == {"vthread"}
    return known


def threads_around(state: State, stage: StageState) -> Mapping[str, tuple[StageState, Axis]]:
    """Map each thread axis around a stage to the loop bound to it, with that loop's stage.

    If a loop of the attached stage is bound to one of these axes, the same threads run it. Virtual
    threads are not an axis of a launch, so each of their loops has its own key.
    """
    found: dict[str, tuple[StageState, Axis]] = {}
    for host, leaf in loops_around(state, stage) if uses_threads(state) else ():
        kind = host.kind(leaf)
        if is_thread(kind):  # if two loops have the same thread axis, the outer one counts
            found.setdefault(
                f"vthread {host.key(leaf)}" if kind == "vthread" else kind, (host, leaf)
            )
    return found


def has_own_launches(state: State, stage: StageState) -> bool:
    """Tell whether each iteration of the loops around a stage launches blocks that compute it.

    These are serial loops of the host. Of a parallel one, the launches of several iterations would
    run at once, and store in the same memory.
    """
    kinds = [stage.kind(leaf) for leaf in stage.leaves]
    if stage.scope != "global" or all(is_in_block(kind) for kind in kinds if is_thread(kind)):
        return False
    around = loops_around(state, stage)
    return bool(around) and all(host.kind(leaf) == "serial" for host, leaf in around)


def axis_of(name: str) -> str:
    """Return the thread axis that a key of `threads_around` stands for."""
    return name.partition(" ")[0]


def loops_around(state: State, stage: StageState) -> list[tuple[StageState, Axis]]:
    """Return the loops that a stage is computed inside, outermost first, each with its stage."""
    found: list[tuple[StageState, Axis]] = []
    while isinstance(stage.attachment, AttachedAt):
        at = stage.attachment
        stage = state.stage(at.stage)
        if not stage.has_leaf(at.axis):
            break
        found[:0] = ((stage, leaf) for leaf in stage.leaves[: stage.position(at.axis) + 1])
    return found


def threads_of_block(state: State, stage: StageState) -> bool:
    """Tell whether a stage is computed inside a loop that is bound to threads of a block."""
    return any(is_in_block(host.kind(leaf)) for host, leaf in threads_around(state, stage).values())


def reduced_by_threads(stage: StageState) -> tuple[Axis, ...]:
    """Return the reduction loops of a stage that are bound to threads of a block."""
    return tuple(
        leaf for leaf in stage.leaves if leaf.kind == "reduce" and is_thread(stage.kind(leaf))
    )


def axes_of_threads(stage: StageState) -> frozenset[Axis]:
    """Return the loops that are bound to threads, and all axes that they come from.

    A split of such an axis keeps its factor even if the extent is smaller: a schedule may split
    so that several stages have the same number of threads.

    **Source:** TVM, ``PassUpThreadBinding`` in ``src/te/schedule/message_passing.cc``.
    """
    found = {leaf for leaf in stage.leaves if is_thread(stage.kind(leaf))}
    for relation in reversed(stage.relations) if found else ():
        match relation:
            case Split(parent, outer, inner, _, _) if outer in found or inner in found:
                found.add(parent)
            case Fuse(outer, inner, fused) if fused in found:
                found.update((outer, inner))
    return frozenset(found)


def is_launched(stage: StageState) -> bool:
    """Tell whether a stage is a scan whose steps all run in one launch."""
    return is_scan(stage) and any(is_thread(kind) for kind in stage.kinds.values())


def nest_order(stage: StageState) -> tuple[Axis, ...]:
    """Return the loops of a stage as lowering nests them, outermost first.

    Loops of threads that share a reduction are outside its other reduction loops: each thread
    first reduces its own part.
    """
    shared = reduced_by_threads(stage)
    if not shared:
        return stage.leaves
    serial = [
        leaf for leaf in stage.leaves if leaf.kind == "reduce" and not is_thread(stage.kind(leaf))
    ]
    return (*(leaf for leaf in stage.leaves if leaf.kind == "data"), *shared, *serial)


def scope_of(state: State, stage: StageState) -> str:
    """Return the memory of a stage's values; the default follows the attachment point.

    The default is local inside a thread, shared inside a block, otherwise global. Virtual threads
    alone, as accelerators have them, run in one program and make no memory local.
    """
    if stage.scope != "global" or not isinstance(stage.attachment, AttachedAt):
        return stage.scope
    kinds = [host.kind(leaf) for host, leaf in threads_around(state, stage).values()]
    if all(kind == "vthread" for kind in kinds):
        return "global"
    if any(map(is_in_block, kinds)):
        return "local"
    return SHARED if kinds else "global"


def is_shared(state: State, stage: StageState) -> bool:
    """Tell whether threads share a stage's values: those of a block, or those of a warp."""
    return scope_of(state, stage) in SHARED_SCOPES
