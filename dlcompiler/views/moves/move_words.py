"""Describe the effect of each move as text, relative to a chosen loop."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule import Move, StageState
from dlcompiler.schedule.primitives import REGISTRY

PLAIN = {
    "compute_inline": "inline",
    "compute_root": "in loops of its own",
    "create_group": "with all stages that it reads",
    "compute_group_root": "the group in loops of its own",
}
"""Primitive -> description of a move without arguments."""


def loops_of(name: str, args: Mapping[str, Any]) -> list[Axis]:
    """Return the loops of the move's own stage that are among its arguments."""
    if name in ("compute_at", "compute_group_at"):
        return []
    values = [value if isinstance(value, tuple) else (value,) for value in args.values()]
    return [item for value in values for item in value if isinstance(item, Axis)]


def move_text(stage: StageState, move: Move, axis: Axis | None) -> str:
    """Return the effect of a move, relative to the chosen loop."""
    names = {axis: stage.paths.get(axis, axis.name) for axis in loops_of(move.primitive, move.args)}
    others = [name for item, name in names.items() if item is not axis]
    is_outer = axis is not None and stage.has_leaf(axis) and bool(others) and (
        stage.position(axis) < max(stage.position(item) for item in names)
    )  # fmt: skip
    match move.primitive:
        case "fuse":
            return f"with {others[0]} {'inside' if is_outer else 'around'} it"
        case "reorder":
            return f"{'inward' if is_outer else 'outward'}, past {others[0]}"
        case "tile":
            return f"tile {' × '.join(names.values())}"
        case "compute_at":
            return f"{stage.name} at {move.targets[-1]}"
        case "compute_group_at":
            return f"the group at {move.targets[-1]}"
        case "tensorize":
            return f"with {move.args['intrin']}"
        case "split":
            return "in parts" if move.domains[0].parameter == "nparts" else "split"
        case "bind":
            thread = move.args["thread"]
            return "to virtual threads" if thread == "vthread" else f"to {thread}"
        case "env_threads":
            return f"all steps on {move.args['threads'].replace(' ', ', ')}"
        case _:
            return PLAIN.get(move.primitive) or _storage_text(move)


def _storage_text(move: Move) -> str:
    """Return the effect of a move that changes memory or adds an annotation."""
    match move.primitive:
        case "cache_write" | "set_scope":
            return f"in {move.args['scope']}"
        case "cache_read":
            readers = ", ".join(move.args["readers"])
            return f"{move.targets[0]} in {move.args['scope']}, for {readers}"
        case "storage_align":
            return f"rows padded, offset {move.args['offset']}"
        case "align_extent":
            return "rows of whole vectors"
        case "transform_layout":
            return str(move.args["index_map"]).partition(": ")[2]
        case "prefetch":
            return f"prefetch of {move.args['tensor']}"
        case "pragma":
            return str(move.args["pragma_type"])
    return move.primitive


@cache
def about(name: str) -> str:
    """Return what a primitive does: the first line of its module."""
    return (inspect.getdoc(inspect.getmodule(REGISTRY[name].apply)) or "").partition("\n")[0]
