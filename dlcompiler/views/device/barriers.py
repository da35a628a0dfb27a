"""Where the threads of a block meet, as places in the loop tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Barrier, For, Stmt, Store, is_in_block, walk
from dlcompiler.ir.rewrite import children
from dlcompiler.lowering import build_nests
from dlcompiler.schedule import State, has_bounds, open_obligations
from dlcompiler.views.loops.line_keys import keys_of


@dataclass(frozen=True, slots=True)
class Meeting:
    """A barrier in the program of a schedule."""

    inside: str
    """Key of the loop around it, as in the loop tree."""
    before: str | None
    """Key of the stage, the loop or the statement that follows; None at the end of the loop."""


def meetings(state: State) -> tuple[Meeting, ...]:
    """Return the barriers of a state's program, in its order.

    Returns
    -------
    tuple of Meeting
        Empty for a state without threads of a block, and for one that cannot be lowered yet.
    """
    kinds = {kind for stage in state.stages for kind in stage.kinds.values()}
    if not any(map(is_in_block, kinds)) or not has_bounds(state):
        return ()
    if "barriers" not in state.cache:
        state.cache["barriers"] = tuple(_found(state))
    known: tuple[Meeting, ...] = state.cache["barriers"]
    return known


def _found(state: State) -> Iterator[Meeting]:
    args = [t for stage in state.stages if stage.is_placeholder for t in stage.tensors]
    args += [t for stage in state.stages if stage.is_output for t in stage.tensors]
    if any(open_obligations(state)):
        return
    try:
        yield from _in(build_nests(state, args, "main").body, None)
    except DLCompilerError:  # the texts of the program say why
        return


def _in(stmt: Stmt, around: str | None) -> Iterator[Meeting]:
    """Yield the barriers inside a statement; `around` is the key of the loop that it is in."""
    if isinstance(stmt, For):
        around = next((key for key in keys_of(stmt) if "/" in key), around)
    parts = [child for child in children(stmt) if isinstance(child, Stmt)]
    for n, part in enumerate(parts):
        if isinstance(part, Barrier) and around is not None:
            yield Meeting(around, _first_key(parts[n + 1 :], around.partition("/")[0]))
        yield from _in(part, around)


def _first_key(parts: Sequence[Stmt], host: str) -> str | None:
    """Return what statements begin with: another stage, or a loop or statement of `host`."""
    for node in (node for part in parts for node in walk(part)):
        if isinstance(node, For | Store) and (keys := keys_of(node)):
            stage = keys[0].partition("/")[0]
            if stage != host:
                return stage
            return next(
                (key for key in keys if "/" in key and isinstance(node, For)), f"{host}//body"
            )
    return None
