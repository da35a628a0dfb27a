"""The loop nest of a schedule as rows: stages, their loops, and what stands inside these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from dlcompiler.ir import Axis, Expr, Extent, LoopKind, Reduce, format_expr
from dlcompiler.schedule import (
    AttachedAt,
    Schedule,
    StageState,
    State,
    has_bounds,
    infer_bounds,
    obligations,
)
from dlcompiler.schedule.inlining import bodies
from dlcompiler.schedule.placement import placed
from dlcompiler.schedule.recurrences import homes
from dlcompiler.te import ExternOp, ScanOp
from dlcompiler.views.colors import axis_colors

AXIS_WORDS = {"data": "data", "reduce": "reduction", "scan": "time"}
"""What readers are told about the kind of an axis."""

_LONGEST_STATEMENT = 200


class Row(TypedDict):
    """One line of the tree, in the order in which the program runs."""

    key: str
    """The same for the same thing in every state; unique in the tree."""
    type: Literal["stage", "loop", "statement"]
    depth: int
    """0 for a stage that nothing encloses."""
    parent: str | None
    """Key of the row around it."""
    stage: str
    name: str
    """Of a stage; of a loop its path, such as ``i.outer``; the text of a statement."""
    detail: str
    """Of a stage what it stores, and where; otherwise ''."""
    extent: int | str | None
    """Iterations of a loop; [1]. A formula where symbols decide."""
    runs: int | None
    """How often the inside of a loop, or a stage, is run in all; [1]. None where symbols decide."""
    kind: LoopKind
    axis: Literal["data", "reduce", "scan", ""]
    colors: list[str]
    """Colours of the original axes of a loop."""
    made_by: str
    """The step that made a loop, in words; '' for the axes of the expression."""
    made_by_state: str
    """Id of the state that it was made in, as in the history; '' for the axes of the expression."""
    owed: list[str]
    """Of a stage, what must be put right before lowering."""
    label: str
    """The row in words, to be spoken."""


class Debt(TypedDict):
    """Something owed."""

    key: str
    """Of the stage that it is about."""
    text: str
    step: str
    """The step that owes it."""
    hint: str
    """How to put it right; '' for what lowering settles."""


class LoopTree(TypedDict):
    """A loop nest, and what of the schedule has no loops."""

    rows: list[Row]
    inputs: list[str]
    """Declarations of the inputs: ``A: float32[64, 64]``."""
    inlined: list[str]
    """Stages that are substituted into their readers."""
    obligations: list[str]
    """What must be put right before lowering."""
    debts: list[Debt]
    """The same in parts, and what lowering will settle by itself."""
    summary: str


def loop_key(stage: str, path: str = "") -> str:
    """Return the key of a loop, or of a stage."""
    return f"{stage}/{path}" if path else stage


def loop_tree(schedule: Schedule) -> LoopTree:
    """Return the loop nest of a schedule's current state.

    Parameters
    ----------
    schedule
        The schedule.

    Returns
    -------
    LoopTree
        JSON-able.
    """
    return _Tree(schedule).build()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where rows go: inside `parent`, which runs its inside `runs` times."""

    parent: str | None
    depth: int
    runs: int | None


class _Tree:
    def __init__(self, schedule: Schedule) -> None:
        self.state = placed(schedule.state)
        self.steps = {node.id: node.title() for node in schedule.node.path()}
        self.bodies = bodies(self.state)
        self.homes = homes(self.state)
        owed = obligations(schedule.state)
        self.owed = owed
        self.homeless = {item.stage for item in owed if item.kind == "place"}
        self.extents = _extents(self.state)
        self.colors = axis_colors(self.state)
        self.rows: list[Row] = []

    def build(self) -> LoopTree:
        for stage in self.state.stages:
            if stage.name in self.bodies and (
                not isinstance(stage.attachment, AttachedAt) or stage.name in self.homeless
            ):
                self.stage(stage, _Place(None, 0, 1))
        return {
            "rows": self.rows,
            "inputs": [
                f"{s.name}: {self.declaration(s)}" for s in self.state.stages if s.is_placeholder
            ],
            "inlined": [s.name for s in self.state.stages if s.is_inlined],
            "obligations": [str(item) for item in self.owed],
            "debts": [
                {
                    "key": loop_key(item.stage),
                    "text": item.text,
                    "step": item.step,
                    "hint": item.hint,
                }
                for item in self.owed
            ],
            "summary": self.summary(),
        }

    def stage(self, stage: StageState, outside: _Place) -> None:
        detail = self.declaration(stage)
        label = f"stage {stage.name}, {detail}"
        if outside.parent:
            label += f", inside loop {outside.parent.replace('/', '.')}"
        if outside.runs is not None and outside.runs > 1:
            label += f", computed {outside.runs:,} times"
        label += f": {self.text(stage)}"
        key = loop_key(stage.name)
        debts = [
            item.text for item in self.owed if item.stage == stage.name and not item.is_settled
        ]
        if debts:
            label += f"; owed: {'; '.join(debts)}"
        self.rows.append(
            {
                **_row(stage, outside, key, "stage"),
                "name": stage.name,
                "detail": detail,
                "owed": debts,
                "label": label,
            }
        )
        self.loops(stage, _Place(key, outside.depth + 1, outside.runs))

    def loops(self, stage: StageState, place: _Place) -> None:
        body = next(iter(self.bodies[stage.name]), None)
        first_reduce = next((leaf for leaf in stage.leaves if leaf.kind == "reduce"), None)
        for leaf in stage.leaves:
            if leaf is first_reduce and isinstance(body, Reduce):
                start = ", ".join(format_expr(expr) for expr in body.start)
                self.statement(stage, place, "init", f"init {stage.name}[…] = {start}")
            place = self.loop(stage, leaf, place)
            for other in self.state.stages:
                if _is_attached(other, stage, leaf):
                    self.stage(other, place)
        if body is not None or stage.is_extern:  # the steps of a scan are stages of their own
            self.statement(stage, place, "body", self.text(stage))

    def loop(self, stage: StageState, leaf: Axis, outside: _Place) -> _Place:
        path, kind = stage.paths[leaf], stage.kind(leaf)
        extent = self.extents[stage.name][leaf]
        axis = AXIS_WORDS[leaf.kind]
        key, runs = loop_key(stage.name, path), _times(outside.runs, extent)
        own = stage.tensorized
        intrinsic = ""
        if own is not None and stage.position(leaf) >= stage.position(own.axis):
            intrinsic = own.intrin.name if leaf is own.axis else f"in {own.intrin.name}"
        self.rows.append(
            {
                **_row(stage, outside, key, "loop"),
                "name": path,
                "extent": extent if isinstance(extent, int) else str(extent),
                "runs": runs,
                "kind": kind,
                "axis": leaf.kind,
                "colors": list(self.colors[stage.name][leaf]),
                "made_by": self.steps.get(leaf.id.partition("/")[0], "") if leaf.id else "",
                "made_by_state": leaf.id.partition("/")[0],
                "detail": intrinsic,
                "label": f"loop {path} of {stage.name}, level {outside.depth}, {axis}, "
                f"extent {extent}, {kind}" + (f", {intrinsic}" if intrinsic else ""),
            }
        )
        return _Place(key, outside.depth + 1, runs)

    def statement(self, stage: StageState, place: _Place, part: str, text: str) -> None:
        row = _row(stage, place, f"{stage.name}//{part}", "statement")
        self.rows.append({**row, "name": text, "label": text})

    def declaration(self, stage: StageState) -> str:
        """Return what a stage stores; an attached one holds what one iteration needs."""
        shape = stage.tensor.shape
        stored = [self.homes[tensor] for tensor in stage.tensors if tensor in self.homes]
        if isinstance(stage.attachment, AttachedAt) and has_bounds(self.state):
            shape = tuple(
                span.extent for span in infer_bounds(self.state).stages[stage.name].region
            )
        scope = "" if stage.scope == "global" else f" in {stage.scope}"
        scope = f" of {', '.join(result.name for result in stored)}" if stored else scope
        return f"{stage.tensor.dtype}[{', '.join(map(str, shape))}]{scope}"

    def text(self, stage: StageState) -> str:
        """Return the statement of a stage over its original axes; of outside code the first."""
        if isinstance(stage.op, ScanOp):
            return stage.op.text()
        if isinstance(stage.op, ExternOp):
            return _short(stage.op.text.splitlines()[1].strip())
        target = f"{stage.name}[{', '.join(stage.paths[axis] for axis in stage.op.axis)}]"
        return _short(element_text(target, self.bodies[stage.name]))

    def summary(self) -> str:
        loops = [row for row in self.rows if row["type"] == "loop"]
        stages = sum(row["type"] == "stage" for row in self.rows)
        kinds: dict[str, int] = {}
        for row in loops:
            kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
        special = [f"{kinds[kind]} {kind}" for kind in kinds if kind != "serial"]
        return (
            f"{_count(stages, 'stage')}, {_count(len(loops), 'loop')}"
            f"{' (' + ', '.join(special) + ')' if special else ''}"
        )


def _row(
    stage: StageState, place: _Place, key: str, type: Literal["stage", "loop", "statement"]
) -> Row:
    """Return a row that stands at `place`, to be filled in."""
    return {
        "key": key, "type": type, "depth": place.depth, "parent": place.parent,
        "stage": stage.name, "name": "", "detail": "", "extent": None, "runs": place.runs,
        "kind": "serial", "axis": "", "colors": [], "made_by": "", "made_by_state": "",
        "owed": [], "label": "",
    }  # fmt: skip


def _times(runs: int | None, extent: Extent) -> int | None:
    return runs * extent if runs is not None and isinstance(extent, int) else None


def _extents(state: State) -> dict[str, Mapping[Axis, Extent]]:
    if not has_bounds(state):  # show the extents of the whole axes
        return {s.name: {leaf: leaf.extent for leaf in s.leaves} for s in state.stages}
    return {name: bounds.extents for name, bounds in infer_bounds(state).stages.items()}


def _is_attached(stage: StageState, parent: StageState, leaf: Axis) -> bool:
    at = stage.attachment
    return isinstance(at, AttachedAt) and at.stage == parent.name and at.axis is leaf


def element_text(target: str, bodies: Sequence[Expr]) -> str:
    """Return what makes an element of a stage: an assignment, or one step of a reduction."""
    head = bodies[0]
    if not isinstance(head, Reduce):
        return f"{target} = {', '.join(format_expr(body) for body in bodies)}"
    values = ", ".join(format_expr(value) for value in head.values)
    op = head.reducer.op or f"{head.reducer.name} "
    text = f"{target} { {'add': '+', 'mul': '*'}.get(op, op) }= {values}"
    return text if head.condition is None else f"{text} where {format_expr(head.condition)}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_STATEMENT else text[: _LONGEST_STATEMENT - 1] + "…"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
