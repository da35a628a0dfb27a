"""List every move of a loop or a stage, with its verdict and the reason of a refusal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict

from dlcompiler.ir import Axis
from dlcompiler.schedule import Domain, Illegal, Move, Pending, Schedule, StageState
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.moves.accelerator_moves import instructions_for
from dlcompiler.schedule.moves.device_moves import verdict_on
from dlcompiler.schedule.moves.enumeration import moves_of
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.trace import encode
from dlcompiler.target import Target
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.loops.tails import tail_costs
from dlcompiler.views.moves.effect import why_without_effect
from dlcompiler.views.moves.move_words import about, loops_of, move_text

PREFERRED_FACTOR = 32
MOST_SUGGESTIONS = 48

# Primitives that are alternatives share a group; the others are a group of their own.
GROUPS = {
    "env_threads": "bind",
    "vectorize": "annotate",
    "unroll": "annotate",
    "parallel": "annotate",
    "tensorize": "annotate",
    "pragma": "annotate",
    "prefetch": "annotate",
    "set_scope": "storage",
    "storage_align": "storage",
    "align_extent": "storage",
    "double_buffer": "storage",
    "rolling_buffer": "storage",
    "transform_layout": "storage",
    "compute_inline": "compute",
    "compute_root": "compute",
    "create_group": "compute",
    "compute_group_root": "compute",
    "compute_group_at": "compute_at",
}

REFUSED_WHEN_DONE = frozenset(
    {"vectorize", "unroll", "parallel", "bind", "compute_root", "compute_inline", "compute_at"}
)
"""Primitives that may refuse a step because it was made already: such a step is *done*."""

RANK = {"legal": 0, "pending": 1, "done": 2, "illegal": 3}

ORDER = (
    "split", "tile", "reorder", "fuse", "bind", "annotate", "rfactor",
    "compute", "compute_at", "cache_read", "cache_write", "storage",
)  # fmt: skip

Availability = Literal["legal", "pending", "illegal", "done"]


class Parameter(TypedDict):
    """A number that the user chooses."""

    name: str
    label: str
    """The loop that it is for, where a move has several; else ''."""
    suggested: list[int]
    """Values to offer, ascending."""
    costs: list[str]
    """What each suggested value means: the tail of a split; '' if it needs no explanation."""
    default: int


class PaletteItem(TypedDict):
    """One move, with its parameters and its verdict."""

    key: str
    """Id of the move: the same for the same move of the same loop in every state."""
    primitive: str
    text: str
    """Its effect in a few words: ``with j inside it``."""
    about: str
    """What the primitive does, in a sentence."""
    status: Availability
    """*done*: the move would change nothing."""
    kind: str
    """Kind of an illegal move: structural, semantic or limit."""
    reason: str
    """Why it is illegal or done, or the obligation that would be pending."""
    because: str
    got: str
    hint: str
    keys: list[str]
    """Keys of the loops that it changes, and of the loop that it would attach to."""
    conflicts: list[str]
    """Keys of the loops and statements that make the move illegal."""
    parameters: list[Parameter]
    step: dict[str, Any]
    """The step as data, to which the parameters are added."""


class PaletteGroup(TypedDict):
    """Moves that belong together."""

    name: str
    items: list[PaletteItem]


class Palette(TypedDict):
    """The moves of a loop or a stage."""

    chosen: str | None
    """Key of the loop or the stage."""
    title: str
    loop: list[PaletteGroup]
    """Moves of the loop."""
    stage: list[PaletteGroup]
    """Moves of its stage, and of stages that could be computed inside the loop."""


def palette(
    schedule: Schedule,
    chosen: str | None,
    primitives: Collection[str] | None = None,
    target: Target | None = None,
) -> Palette:
    """Return all moves of the loop or the stage that a key of the loop tree names.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from.
    chosen
        A key of the loop tree; one that names nothing gives an empty palette.
    primitives
        Primitives to offer, all by default; the others are not checked.
    target
        The machine to schedule for, as in `Schedule.moves`.

    Returns
    -------
    Palette
        JSON-able.
    """
    stage, axis = _find(schedule, chosen)
    if stage is None:
        return {"chosen": None, "title": "choose a loop", "loop": [], "stage": []}

    def wanted(name: str, args: Mapping[str, Any]) -> bool:
        loops = loops_of(name, args)
        if primitives is not None and name not in primitives:
            return False
        return not loops or any(item is axis for item in loops)

    moves = list(moves_of(schedule, stage.name, wanted, target))
    of_loop = [move for move in moves if loops_of(move.primitive, move.args)]
    of_stage = [move for move in moves if not loops_of(move.primitive, move.args)]
    of_loop += [other for move in of_loop for other in _variants(schedule, move, target)]
    copies = _read(schedule, stage, target)
    offered = [*copies, *(() if axis is None else _inside(schedule, stage, axis, target))]
    of_stage += [m for m in offered if primitives is None or m.primitive in primitives]
    title = f"stage {stage.name}"
    if axis is not None:
        title = f"loop {stage.paths[axis]} of {stage.name}"
    return {
        "chosen": chosen,
        "title": title,
        "loop": _groups(schedule, of_loop, axis, target),
        "stage": _groups(schedule, of_stage, None, target),
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


def _inside(
    schedule: Schedule, host: StageState, axis: Axis, target: Target | None
) -> Iterator[Move]:
    """Yield the moves that would compute another stage inside the loop `axis` of `host`."""
    for stage in schedule.state.stages:
        if not stage.is_placeholder and host in consumers(schedule.state, stage):
            yield from moves_of(
                schedule,
                stage.name,
                lambda name, args: name == "compute_at" and args["axis"] is axis,
                target,
            )


def _read(schedule: Schedule, reader: StageState, target: Target | None) -> Iterator[Move]:
    """Yield the ``cache_read`` moves that would make `reader` read a cached copy of an input."""
    for tensor in reader.op.input_tensors:
        yield from moves_of(
            schedule,
            schedule.state.producer_of(tensor).name,
            lambda name, args: name == "cache_read" and reader.name in args["readers"],
            target,
        )


def _variants(schedule: Schedule, move: Move, target: Target | None) -> Iterator[Move]:
    """Yield the variant of a split by a number of parts, which `moves_of` does not list."""
    if move.primitive == "split":
        (domain,) = move.domains
        parts = Domain("nparts", domain.suggested)
        args = {**move.args, "nparts": (domain.suggested or (2,))[0]}
        attempt = schedule.attempt("split", move.stage, args)
        verdict = verdict_on(target, attempt, args, schedule.state)
        yield replace(move, domains=(parts,), verdict=verdict)


def _groups(
    schedule: Schedule, moves: list[Move], axis: Axis | None, target: Target | None
) -> list[PaletteGroup]:
    groups: dict[str, list[PaletteItem]] = {}
    for move in moves:
        group = GROUPS.get(move.primitive, move.primitive)
        groups.setdefault(group, []).append(_item(schedule, move, axis, target))
    for name, items in groups.items():
        items.sort(key=lambda item: RANK[item["status"]])
        groups[name] = _folded(items)
    order = sorted(groups, key=lambda name: (RANK[groups[name][0]["status"]], _place(name)))
    return [{"name": name, "items": groups[name]} for name in order]


def _folded(items: list[PaletteItem]) -> list[PaletteItem]:
    """Merge ``bind`` moves refused for the same reason: each loop has one for each thread axis."""
    alike: dict[str, list[PaletteItem]] = {}
    for item in items:
        is_refused_bind = item["primitive"] == "bind" and item["status"] == "illegal"
        alike.setdefault(item["hint"] if is_refused_bind else item["key"], []).append(item)
    return [
        {**first, "text": f"{first['text']} and {len(others)} more"} if others else first
        for first, *others in alike.values()
    ]


def _place(group: str) -> int:
    return ORDER.index(group) if group in ORDER else len(ORDER)


def _item(schedule: Schedule, move: Move, axis: Axis | None, target: Target | None) -> PaletteItem:
    stage = schedule.state.stage(move.stage)
    step = encode(REGISTRY[move.primitive], schedule.state, stage, move.args)
    item: PaletteItem = {
        "key": " ".join([move.primitive, move.stage, *move.targets, *_parts(move)]),
        "primitive": move.primitive,
        "text": f"{move_text(stage, move, axis)}{_instructions(schedule, move, target)}",
        "about": about(move.primitive),
        "status": "legal",
        "kind": "",
        "reason": "",
        "because": "",
        "got": "",
        "hint": "",
        "keys": _keys(schedule, stage, move),
        "conflicts": [],
        "parameters": [
            *(_parameter(schedule, move, domain) for domain in move.domains),
            *([_dimension(stage)] if move.primitive == "rfactor" else []),
        ],
        "step": step.to_json(),
    }
    if isinstance(move.verdict, Illegal):
        verdict = move.verdict
        item["status"], item["kind"], item["reason"] = "illegal", verdict.kind, verdict.reason
        item["because"], item["got"] = verdict.because or "", verdict.got or ""
        item["hint"], item["conflicts"] = verdict.hint or "", list(verdict.conflicts)
    elif isinstance(move.verdict, Pending):
        item["status"], item["reason"] = "pending", move.verdict.obligation
    if unchanged := _unchanged(schedule, move):
        item["status"], item["reason"] = "done", unchanged
    return item


def _instructions(schedule: Schedule, move: Move, target: Target | None) -> str:
    """Return the instructions of an accelerator that a move leads to, as the end of its text."""
    if not move.verdict or target is None or target.accelerator is None:
        return ""
    state = schedule.state
    names = instructions_for(target.accelerator, state, state.stage(move.stage), move.args)
    return f" ({' or '.join(names)})" if names else ""


def _parameter(schedule: Schedule, move: Move, domain: Domain) -> Parameter:
    values = domain.suggested[:MOST_SUGGESTIONS]
    name, stage = domain.parameter, schedule.state.stage(move.stage)
    return {
        "name": name,
        "label": _label(stage, move, name),
        "suggested": list(values),
        "costs": tail_costs(schedule.state, move.stage, move.args, name, values),
        "default": _default(_effective(schedule, move, domain)),
    }


def _label(stage: StageState, move: Move, name: str) -> str:
    """Return the loop that a parameter of ``tile`` is for; '' for the only one of a move."""
    axis = {"x_factor": "x", "y_factor": "y"}.get(name)
    return stage.paths[move.args[axis]] if axis else ""


def _effective(schedule: Schedule, move: Move, domain: Domain) -> tuple[int, ...]:
    """Return the suggested values that change something; all if none does, or if two are given."""
    if len(move.domains) > 1:
        return domain.suggested
    found = (
        value for value in domain.suggested
        if not why_without_effect(
            schedule, move.primitive, move.stage, {**move.args, domain.parameter: value}
        )
    )  # fmt: skip
    return tuple(found) or domain.suggested


def _unchanged(schedule: Schedule, move: Move) -> str:
    """Return why a move would change nothing, '' if it changes something or is refused."""
    if not move.verdict and move.primitive not in REFUSED_WHEN_DONE:
        return ""
    return why_without_effect(schedule, move.primitive, move.stage, move.args, move.domains)


def _parts(move: Move) -> list[str]:
    return [domain.parameter for domain in move.domains if domain.parameter == "nparts"]


def _dimension(stage: StageState) -> Parameter:
    """Return rfactor's parameter: the position of the new dimension in the partial results."""
    values = list(range(len(stage.op.axis) + 1))
    return {
        "name": "factor_axis",
        "label": "",
        "suggested": values,
        "costs": [f"the new dimension stands at place {n}" for n in values],
        "default": 0,
    }


def _keys(schedule: Schedule, stage: StageState, move: Move) -> list[str]:
    if move.primitive in ("compute_at", "compute_group_at"):
        host = schedule.state.stage(move.args["parent"])
        return [stage.name, host.key(move.args["axis"])]
    leaves = [axis for axis in loops_of(move.primitive, move.args) if stage.has_leaf(axis)]
    return [stage.key(axis) for axis in leaves] or [stage.name]


def _default(values: tuple[int, ...]) -> int:
    """Return the initial value: the largest up to 32, or else the smallest."""
    return max((v for v in values if v <= PREFERRED_FACTOR), default=min(values, default=2))
