"""Find the rows of the loop tree at which the threads of a block wait at barriers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Barrier, For, Stmt, Store, is_in_block, walk
from dlcompiler.ir.rewrite import children
from dlcompiler.lowering import build_nests
from dlcompiler.schedule import State, has_bounds, open_obligations
from dlcompiler.views.loops.line_keys import keys_of
from dlcompiler.views.per_state import per_state


@dataclass(frozen=True, slots=True)
class BarrierPlace:
    """The position in the loop tree of one barrier of the lowered program."""

    inside: str
    """Key of the loop around it, as in the loop tree."""
    before: str | None
    """Key of the stage, the loop or the statement that follows; None at the end of the loop."""


@per_state
def barrier_places(state: State) -> tuple[BarrierPlace, ...]:
    """Return where the program of a state has barriers, in program order.

    Returns
    -------
    tuple of BarrierPlace
        Empty for a state without threads of a block, and for one that cannot be lowered yet.
    """
    kinds = {kind for stage in state.stages for kind in stage.kinds.values()}
    if not any(map(is_in_block, kinds)) or not has_bounds(state):
        return ()
    args = [t for stage in state.stages if stage.is_placeholder for t in stage.tensors]
    args += [t for stage in state.stages if stage.is_output for t in stage.tensors]
    if any(open_obligations(state)):
        return ()
    try:
        return tuple(_barriers(build_nests(state, args, "main").body, None))
    except DLCompilerError:  # the pane of the program shows the error
        return ()


def _barriers(stmt: Stmt, around: str | None) -> Iterator[BarrierPlace]:
    """Yield the barriers inside a statement; `around` is the key of the loop around it."""
    if isinstance(stmt, For):
        around = next((key for key in keys_of(stmt) if "/" in key), around)
    parts = [child for child in children(stmt) if isinstance(child, Stmt)]
    for n, part in enumerate(parts):
        if isinstance(part, Barrier) and around is not None:
            yield BarrierPlace(around, _first_key(parts[n + 1 :], around.partition("/")[0]))
        yield from _barriers(part, around)


def _first_key(parts: Sequence[Stmt], host: str) -> str | None:
    """Return the key at which statements begin: another stage, or a loop or statement of `host`."""
    for node in (node for part in parts for node in walk(part)):
        if isinstance(node, For | Store) and (keys := keys_of(node)):
            stage = keys[0].partition("/")[0]
            if stage != host:
                return stage
            return next(
                (key for key in keys if "/" in key and isinstance(node, For)), f"{host}//body"
            )
    return None
