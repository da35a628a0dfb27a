"""What may be done next to a loop or a stage: every move, the refused ones with the reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypedDict

from dlcompiler.ir import Axis
from dlcompiler.schedule import AttachedAt, Illegal, Move, Pending, Schedule, StageState
from dlcompiler.schedule.inlining import consumers
from dlcompiler.schedule.moves import moves_of
from dlcompiler.schedule.primitives import primitive
from dlcompiler.schedule.state import AtRoot
from dlcompiler.schedule.trace import encode
from dlcompiler.views.loop_tree import loop_key

PREFERRED_FACTOR = 32
MOST_SUGGESTIONS = 10

# Primitives that are alternatives share a group; the others are a group of their own.
GROUPS = {
    "vectorize": "annotate",
    "unroll": "annotate",
    "parallel": "annotate",
    "pragma": "annotate",
    "prefetch": "annotate",
    "set_scope": "storage",
    "storage_align": "storage",
    "align_extent": "storage",
    "double_buffer": "storage",
    "transform_layout": "storage",
    "compute_at": "compute",
    "compute_inline": "compute",
    "compute_root": "compute",
}

ORDER = (
    "split", "tile", "reorder", "fuse", "annotate", "rfactor",
    "compute", "cache_read", "cache_write", "storage",
)  # fmt: skip

Availability = Literal["legal", "pending", "illegal", "done"]


class Parameter(TypedDict):
    """A number to be chosen."""

    name: str
    suggested: list[int]
    default: int


class PaletteItem(TypedDict):
    """A move."""

    key: str
    """The same for the same move of the same loop in every state."""
    primitive: str
    text: str
    """What it would do, in a few words: ``with j inside it``."""
    about: str
    """What the primitive does, in a sentence."""
    status: Availability
    """*done*: the loop or the stage is like that already."""
    kind: str
    """Of an illegal move: structural, semantic or limit."""
    reason: str
    """Why it is illegal or done, or what it would owe."""
    because: str
    got: str
    hint: str
    parameters: list[Parameter]
    step: dict[str, Any]
    """The step as data, to which the parameters are added."""


class PaletteGroup(TypedDict):
    """Moves that belong together."""

    name: str
    items: list[PaletteItem]


class Palette(TypedDict):
    """What may be done next."""

    chosen: str | None
    """Key of the loop or the stage that it is about."""
    title: str
    loop: list[PaletteGroup]
    """Moves of the loop."""
    stage: list[PaletteGroup]
    """Moves of its stage, and of stages that could be computed inside the loop."""


def palette(schedule: Schedule, chosen: str | None) -> Palette:
    """Return all moves of the loop or the stage that a key of the loop tree names.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from.
    chosen
        A key of the loop tree; one that names nothing gives an empty palette.

    Returns
    -------
    Palette
        JSON-able.
    """
    stage, axis = _find(schedule, chosen)
    if stage is None:
        return {"chosen": None, "title": "choose a loop", "loop": [], "stage": []}

    def wanted(name: str, args: Mapping[str, Any]) -> bool:
        loops = _loops_of(name, args)
        return not loops or any(item is axis for item in loops)

    moves = list(moves_of(schedule, stage.name, wanted))
    of_loop = [move for move in moves if _loops_of(move.primitive, move.args)]
    of_stage = [move for move in moves if not _loops_of(move.primitive, move.args)]
    if axis is not None:
        of_stage += _inside(schedule, stage, axis)
    title = f"loop {stage.paths[axis]} of {stage.name}" if axis else f"stage {stage.name}"
    return {
        "chosen": chosen,
        "title": title,
        "loop": _groups(schedule, of_loop, axis),
        "stage": _groups(schedule, of_stage, None),
    }


def _find(schedule: Schedule, key: str | None) -> tuple[StageState | None, Axis | None]:
    for stage in schedule.state.stages:
        if stage.is_placeholder:
            continue
        if loop_key(stage.name) == key:
            return stage, None
        for leaf in stage.leaves:
            if loop_key(stage.name, stage.paths[leaf]) == key:
                return stage, leaf
    return None, None


def _loops_of(name: str, args: Mapping[str, Any]) -> list[Axis]:
    """Return the loops of its own stage that a move is about."""
    if name == "compute_at":
        return []
    values = [value if isinstance(value, tuple) else (value,) for value in args.values()]
    return [item for value in values for item in value if isinstance(item, Axis)]


def _inside(schedule: Schedule, host: StageState, axis: Axis) -> Iterator[Move]:
    """Yield the moves that would compute another stage inside the loop `axis` of `host`."""
    for stage in schedule.state.stages:
        if not stage.is_placeholder and host in consumers(schedule.state, stage):
            yield from moves_of(
                schedule,
                stage.name,
                lambda name, args: name == "compute_at" and args["axis"] is axis,
            )


def _groups(schedule: Schedule, moves: list[Move], axis: Axis | None) -> list[PaletteGroup]:
    groups: dict[str, list[PaletteItem]] = {}
    for move in moves:
        group = GROUPS.get(move.primitive, move.primitive)
        groups.setdefault(group, []).append(_item(schedule, move, axis))
    return [{"name": name, "items": groups[name]} for name in sorted(groups, key=_rank)]


def _rank(group: str) -> int:
    return ORDER.index(group) if group in ORDER else len(ORDER)


def _item(schedule: Schedule, move: Move, axis: Axis | None) -> PaletteItem:
    stage = schedule.state.stage(move.stage)
    step = encode(primitive(move.primitive), schedule.state, stage, move.args)
    item: PaletteItem = {
        "key": f"{move.primitive} {move.stage} {' '.join(move.targets)}",
        "primitive": move.primitive,
        "text": _text(stage, move, axis),
        "about": _about(move.primitive),
        "status": "legal",
        "kind": "",
        "reason": "",
        "because": "",
        "got": "",
        "hint": "",
        "parameters": [
            {
                "name": domain.parameter,
                "suggested": _suggested(domain.suggested),
                "default": _default(domain.suggested),
            }
            for domain in move.domains
        ],
        "step": step.to_json(),
    }
    if already := _already(schedule, stage, move):
        item["status"], item["reason"] = "done", already
    elif isinstance(move.verdict, Illegal):
        verdict = move.verdict
        item["status"], item["kind"], item["reason"] = "illegal", verdict.kind, verdict.reason
        item["because"], item["got"] = verdict.because or "", verdict.got or ""
        item["hint"] = verdict.hint or ""
    elif isinstance(move.verdict, Pending):
        item["status"], item["reason"] = "pending", move.verdict.obligation
    return item


def _already(schedule: Schedule, stage: StageState, move: Move) -> str:
    """Return why a move would change nothing, or ''."""
    kind = {"vectorize": "vectorized", "unroll": "unrolled", "parallel": "parallel"}
    axis, at = move.args.get("axis"), stage.attachment
    match move.primitive:
        case "vectorize" | "unroll" | "parallel" as name if (
            stage.kind(move.args["axis"]) == kind[name]
        ):
            return f"{stage.label(move.args['axis'])} is {kind[name]} already"
        case "compute_root" if isinstance(at, AtRoot):
            return f"{stage.name} has a loop nest of its own already"
        case "compute_inline" if stage.is_inlined:
            return f"{stage.name} is inlined already"
        case "compute_at" if isinstance(at, AttachedAt) and at.axis is axis:
            return f"{stage.name} is computed there already"
    return ""


def _text(stage: StageState, move: Move, axis: Axis | None) -> str:
    """Return what a move would do, seen from the chosen loop."""
    names = {
        axis: stage.paths.get(axis, axis.name) for axis in _loops_of(move.primitive, move.args)
    }
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
            return " × ".join(names.values())
        case "compute_at":
            return f"{stage.name} at {move.targets[-1]}"
        case "compute_inline":
            return "inline"
        case "compute_root":
            return "on its own"
        case _:
            return _storage_text(move)


def _storage_text(move: Move) -> str:
    """Return what a move would do that is about memory, or leaves a note."""
    match move.primitive:
        case "cache_write" | "set_scope":
            return f"in {move.args['scope']}"
        case "cache_read":
            return f"in {move.args['scope']}, for {', '.join(move.args['readers'])}"
        case "storage_align":
            return f"rows padded, offset {move.args['offset']}"
        case "align_extent":
            return "rows of whole vectors"
        case "transform_layout":
            return str(move.args["index_map"]).partition(": ")[2]
        case "prefetch":
            return f"of {move.args['tensor']}"
        case "pragma":
            return str(move.args["pragma_type"])
    return move.primitive


@cache
def _about(name: str) -> str:
    """Return what a primitive does: the first line of its module."""
    return (inspect.getdoc(inspect.getmodule(primitive(name).apply)) or "").partition("\n")[0]


def _suggested(values: tuple[int, ...]) -> list[int]:
    """Return at most ten of the values, the smaller ones first to stay."""
    return list(values[:MOST_SUGGESTIONS])


def _default(values: tuple[int, ...]) -> int:
    """Return the value to start with: the largest that is not above 32."""
    return max((v for v in values if v <= PREFERRED_FACTOR), default=min(values, default=2))
