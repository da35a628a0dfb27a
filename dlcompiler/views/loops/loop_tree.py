"""The loop tree: the stages, loops, statements and barriers of a schedule as rows."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypedDict

from dlcompiler.ir import (
    Axis,
    Expr,
    Extent,
    LoopKind,
    Reduce,
    format_expr,
    is_in_block,
    is_sharer,
    is_thread,
)
from dlcompiler.schedule import AttachedAt, Schedule, StageState, State, has_bounds, infer_bounds
from dlcompiler.schedule.inference.bounds import largest_extents
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.recurrences import storage_aliases
from dlcompiler.schedule.inference.thread_loops import nest_order, scope_of
from dlcompiler.schedule.legality.obligations import obligations
from dlcompiler.te import ExternOp, ScanOp
from dlcompiler.views.device.barriers import BarrierPlace, barrier_places
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.render.colors import axis_colors

AXIS_WORDS = {"data": "data", "reduce": "reduction", "scan": "time"}
"""Kind of an axis -> the word that labels use."""

_LONGEST_STATEMENT = 200


RowType: TypeAlias = Literal["stage", "loop", "statement", "barrier"]
LINES: tuple[RowType, ...] = ("statement", "barrier")
"""Rows that hold no others and cannot be chosen."""


class Row(TypedDict):
    """One line of the tree, in the order in which the program runs."""

    key: str
    """Unique in the tree, and the same in every state of the schedule."""
    type: RowType
    depth: int
    """0 for a stage outside all loops."""
    parent: str | None
    """Key of the row around it."""
    stage: str
    name: str
    """Name of a stage, path of a loop (``i.outer``), or text of a statement or barrier."""
    detail: str
    """For a stage, the buffer that it stores and its scope; otherwise ''."""
    extent: int | str | None
    """Iterations of a loop; [1]. A formula where symbols decide."""
    runs: int | None
    """How often the body of a loop, or a stage, is executed in total; [1]. None if it depends on
    symbols. A stage that the threads of a block compute together counts once for all of them."""
    kind: LoopKind
    sign: str
    """A sign for a loop that is bound to a thread axis: ``▦`` blocks, ``▸`` threads, ``▹`` virtual
    threads; otherwise ''."""
    axis: Literal["data", "reduce", "scan", ""]
    colors: list[str]
    """Colours of the original axes of a loop."""
    made_by: str
    """The step that made a loop, in words; '' for the axes of the expression."""
    made_by_state: str
    """Id of the state that it was made in, as in the history; '' for the axes of the expression."""
    pending: list[str]
    """The pending obligations of a stage, which later steps must fulfil before lowering."""
    label: str
    """The row in words, to be spoken."""


class PendingObligation(TypedDict):
    """A requirement that a later step, or lowering, must fulfil."""

    key: str
    """Key of the stage concerned."""
    text: str
    step: str
    """The step that is legal only under this obligation."""
    hint: str
    """The step that fulfils it; '' if lowering does so by itself."""


class LoopTree(TypedDict):
    """The rows of a loop nest, and the inputs and inlined stages, which have no loops."""

    rows: list[Row]
    inputs: list[str]
    """Declarations of the inputs: ``A: float32[64, 64]``."""
    inlined: list[str]
    """Stages that are substituted into their readers."""
    obligations: list[str]
    """Texts of the pending obligations, including those that lowering fulfils by itself."""
    pending: list[PendingObligation]
    """The same obligations in parts."""
    summary: str


def kind_text(row: Row) -> str:
    """Return the kind of a loop as text, after its sign if it has one."""
    return f"{row['sign']} {row['kind']}" if row["sign"] else row["kind"]


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
    """A position for rows: inside `parent`, whose body runs `runs` times."""

    parent: str | None
    depth: int
    runs: int | None
    threads: tuple[tuple[LoopKind, Extent], ...] = ()
    """The loops of threads of a block around it, and their iterations."""

    def inside(self, kind: LoopKind, extent: Extent) -> _Place:
        """Return the place inside a loop of this kind and extent at this place."""
        threads = (*self.threads, (kind, extent)) if is_in_block(kind) else self.threads
        return replace(self, runs=_times(self.runs, extent), threads=threads)

    def shared(self, scope: str) -> _Place:
        """Return the place of a stage here; threads that share its memory compute it once."""
        runs = self.runs
        for kind, extent in self.threads:
            if runs is not None and isinstance(extent, int) and extent and is_sharer(scope, kind):
                runs //= extent
        left = (each for each in self.threads if not is_sharer(scope, each[0]))
        return replace(self, runs=runs, threads=tuple(left))


class _Tree:
    def __init__(self, schedule: Schedule) -> None:
        self.state = placed(schedule.state)
        self.steps = {node.id: node.title() for node in schedule.node.path()}
        self.bodies = bodies(self.state)
        self.aliases = storage_aliases(self.state)
        self.obligations = obligations(schedule.state)
        self.unplaced = {item.stage for item in self.obligations if item.kind == "place"}
        self.extents = _extents(self.state)
        self.colors = axis_colors(self.state)
        self.joined = _joined(self.state)
        self.barriers = barrier_places(self.state)
        self.rows: list[Row] = []

    def build(self) -> LoopTree:
        for stage in self.state.stages:
            if stage.name in self.bodies and (
                not isinstance(stage.attachment, AttachedAt) or stage.name in self.unplaced
            ):
                self.stage(stage, _Place(None, 0, 1))
        for place, same in itertools.groupby(self.barriers):
            self.barrier(place, len(list(same)))
        return {
            "rows": self.rows,
            "inputs": [
                f"{s.name}: {self.declaration(s)}" for s in self.state.stages if s.is_placeholder
            ],
            "inlined": [s.name for s in self.state.stages if s.is_inlined],
            "obligations": [str(item) for item in self.obligations],
            "pending": [
                {
                    "key": loop_key(item.stage),
                    "text": item.text,
                    "step": item.step,
                    "hint": item.hint,
                }
                for item in self.obligations
            ],
            "summary": self.summary(),
        }

    def stage(self, stage: StageState, outside: _Place) -> None:
        outside = outside.shared(scope_of(self.state, stage))
        detail = self.declaration(stage)
        label = f"stage {stage.name}, {detail}"
        if outside.parent:
            label += f", inside loop {outside.parent.replace('/', '.')}"
        if outside.runs is not None and outside.runs > 1:
            label += f", computed {outside.runs:,} times"
        label += f": {self.text(stage)}"
        key = loop_key(stage.name)
        pending = [
            item.text
            for item in self.obligations
            if item.stage == stage.name and not item.is_settled
        ]
        if pending:
            label += f"; pending: {'; '.join(pending)}"
        self.rows.append(
            {
                **_row(stage.name, outside, key, "stage"),
                "name": stage.name,
                "detail": detail,
                "pending": pending,
                "label": label,
            }
        )
        self.loops(stage, replace(outside, parent=key, depth=outside.depth + 1))

    def loops(self, stage: StageState, place: _Place) -> None:
        body = next(iter(self.bodies[stage.name]), None)
        loops = nest_order(stage)
        reduces = (leaf for leaf in loops if leaf.kind == "reduce")
        first_reduce = next((leaf for leaf in reduces if not is_thread(stage.kind(leaf))), None)
        for leaf in (*loops, None):
            if leaf is first_reduce and isinstance(body, Reduce):
                start = ", ".join(format_expr(expr) for expr in body.start)
                self.statement(stage, place, "init", f"init {stage.name}[…] = {start}")
            if leaf is None:
                break
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
        key = loop_key(stage.name, path)
        is_joined = leaf in self.joined[stage.name]
        if not is_joined or is_sharer(scope_of(self.state, stage), kind):
            inside = outside.inside(kind, extent)
        else:  # the threads that run it are counted already
            inside = outside
        inside_it = sum(place.inside == key for place in self.barriers)
        own = stage.tensorized
        intrinsic = ""
        if own is not None and stage.position(leaf) >= stage.position(own.axis):
            intrinsic = own.intrin.name if leaf is own.axis else f"in {own.intrin.name}"
        self.rows.append(
            {
                **_row(stage.name, outside, key, "loop"),
                "name": path,
                "extent": extent if isinstance(extent, int) else str(extent),
                "runs": inside.runs,
                "kind": kind,
                "sign": _sign(kind),
                "axis": leaf.kind,
                "colors": list(self.colors[stage.name][leaf]),
                "made_by": self.steps.get(leaf.id.partition("/")[0], "") if leaf.id else "",
                "made_by_state": leaf.id.partition("/")[0],
                "detail": intrinsic,
                "label": f"loop {path} of {stage.name}, level {outside.depth}, {axis}, "
                f"extent {extent}, {kind}"
                + (f", {intrinsic}" if intrinsic else "")
                + (f", {_count(inside_it, 'barrier')} inside" if inside_it else ""),
            }
        )
        return replace(inside, parent=key, depth=outside.depth + 1)

    def barrier(self, at: BarrierPlace, count: int) -> None:
        """Insert a row for `count` barriers at a position of the tree."""
        positions = {row["key"]: n for n, row in enumerate(self.rows)}
        if at.inside not in positions:
            return
        host = self.rows[positions[at.inside]]
        position = positions.get(at.before or "")
        if position is None or self.rows[position]["parent"] != host["key"]:
            # Nothing that follows is drawn directly inside this loop: the barrier ends the loop.
            rest = range(positions[host["key"]] + 1, len(self.rows))
            ends = (n for n in rest if self.rows[n]["depth"] <= host["depth"])
            position = next(ends, len(self.rows))
        number = sum(row["type"] == "barrier" for row in self.rows)
        row = _row(host["stage"], _Place(host["key"], host["depth"] + 1, host["runs"]),
                   f"{host['stage']}//barrier {number}", "barrier")  # fmt: skip
        which = "barrier" if count == 1 else f"{count} barriers"
        text = f"{which}: all threads of the block wait"
        self.rows.insert(position, {**row, "name": text, "label": text})

    def statement(self, stage: StageState, place: _Place, part: str, text: str) -> None:
        row = _row(stage.name, place, f"{stage.name}//{part}", "statement")
        self.rows.append({**row, "name": text, "label": text})

    def declaration(self, stage: StageState) -> str:
        """Return dtype, shape and scope of a stage's buffer: a region for an attached stage."""
        shape = stage.tensor.shape
        stored = [self.aliases[tensor] for tensor in stage.tensors if tensor in self.aliases]
        if isinstance(stage.attachment, AttachedAt) and has_bounds(self.state):
            shape = tuple(
                span.extent for span in infer_bounds(self.state).stages[stage.name].region
            )
        where = scope_of(self.state, stage)
        scope = "" if where == "global" else f" in {where}"
        scope = f" of {', '.join(result.name for result in stored)}" if stored else scope
        return f"{stage.tensor.dtype}[{', '.join(map(str, shape))}]{scope}"

    def text(self, stage: StageState) -> str:
        """Return the statement of a stage over its original axes; of extern code, a line."""
        if isinstance(stage.op, ScanOp):
            return stage.op.text()
        if isinstance(stage.op, ExternOp):
            return _short(stage.op.text.splitlines()[1].strip())
        indices = ", ".join(stage.paths[axis] for axis in stage.op.axis) or "()"
        target = f"{stage.name}[{indices}]"
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


def _row(stage: str, place: _Place, key: str, type: RowType) -> Row:
    """Return an empty row at `place`, which the caller fills in."""
    return {
        "key": key, "type": type, "depth": place.depth, "parent": place.parent,
        "stage": stage, "name": "", "detail": "", "extent": None, "runs": place.runs,
        "kind": "serial", "sign": "", "axis": "", "colors": [], "made_by": "", "made_by_state": "",
        "pending": [], "label": "",
    }  # fmt: skip


def _sign(kind: LoopKind) -> str:
    if not is_thread(kind):
        return ""
    return "▹" if kind == "vthread" else "▸" if is_in_block(kind) else "▦"


def _joined(state: State) -> dict[str, Collection[Axis]]:
    """Return the axes of each stage without a loop of their own: an outer thread loop runs them."""
    if not has_bounds(state):
        return {stage.name: () for stage in state.stages}
    return {name: bounds.joined for name, bounds in infer_bounds(state).stages.items()}


def _times(runs: int | None, extent: Extent) -> int | None:
    return runs * extent if runs is not None and isinstance(extent, int) else None


def _extents(state: State) -> dict[str, Mapping[Axis, Extent]]:
    if not has_bounds(state):  # show the extents of the whole axes
        return {s.name: largest_extents(s) for s in state.stages}
    return {name: bounds.extents for name, bounds in infer_bounds(state).stages.items()}


def _is_attached(stage: StageState, parent: StageState, leaf: Axis) -> bool:
    at = stage.attachment
    return isinstance(at, AttachedAt) and at.stage == parent.name and at.axis is leaf


def element_text(target: str, bodies: Sequence[Expr]) -> str:
    """Return the statement that computes an element: an assignment, or one reduction step."""
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
