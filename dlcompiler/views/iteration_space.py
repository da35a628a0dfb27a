"""The iteration space: in which order a loop nest visits the elements of its tensors.

A *step* is one iteration of the chosen loop; the loops around it make the order, those inside it
make what the step touches. The model holds loops, index formulas and conditions, no points: a page
computes the steps that it shows, by the rules of `views.visits`. Both are tested against each
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Not,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    format_expr,
    substitute,
)
from dlcompiler.ir.rewrite import children
from dlcompiler.views.loop_tree import LoopTree, loop_key

MOST_CELLS = 24
"""A side of a grid has no more cells; a cell then stands for several elements."""
_SIDE_PX = 120

Formula: TypeAlias = "int | list[Any]"
"""``3``; ``["v", n]``, the value of loop ``n``; ``[op, a, b]`` of two formulas; ``["not", a]``."""

_BINARY = {"floordiv": "//", "floormod": "%", "add": "+", "sub": "-", "mul": "*"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class SpaceLoop(TypedDict):
    """A loop round the statement, outermost first."""

    key: str
    name: str
    extent: int
    kind: str
    colors: list[str]


class SpaceAccess(TypedDict):
    """How the statement reaches a tensor."""

    is_write: bool
    indices: list[Formula]
    text: str
    """``A[i.outer*32 + i.inner, k]``."""
    conditions: list[Formula]
    """What must hold for this access, beyond the conditions of the statement."""


class Grid(TypedDict):
    """The last two dimensions of a tensor as cells; a vector is one row."""

    rows: int
    columns: int
    block: list[int]
    """Elements that a cell stands for: down and across."""
    cell: int
    """Side of a cell; [px]."""


class SpaceTensor(TypedDict):
    """A tensor, and every way in which the statement reaches it."""

    name: str
    shape: list[int]
    grid: Grid
    dtype: str
    accesses: list[SpaceAccess]


class IterationSpace(TypedDict):
    """A statement in its loops."""

    stage: str
    statement: str
    chosen: str | None
    """Key of the chosen loop."""
    loops: list[SpaceLoop]
    depth: int
    """The chosen loop is ``loops[depth - 1]``: a step is one iteration of it."""
    steps: int
    """Product of the extents of the first `depth` loops."""
    tensors: list[SpaceTensor]
    conditions: list[Formula]
    notes: list[str]
    """What the picture leaves out, in words."""


@dataclass(frozen=True, slots=True)
class _Nest:
    """A statement with what stands around it."""

    store: Store
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    lets: Mapping[Var, Expr]


def iteration_space(func: PrimFunc, tree: LoopTree, key: str | None) -> IterationSpace:
    """Return the iteration space of the statement that a loop, or a stage, belongs to.

    Parameters
    ----------
    func
        The program as scheduled: ``lower(s, args, simple_mode=True)``.
    tree
        The loop nest of the same state.
    key
        A key of the tree. One of a stage means its innermost loop; None the last stage.

    Returns
    -------
    IterationSpace
        JSON-able.

    Raises
    ------
    ScheduleError
        For a stage without loops, or extents that are symbols.
    """
    stage = _stage_of(tree, key)
    nest = _find(func, stage)
    rows = {row["key"]: row for row in tree["rows"]}
    loops: list[SpaceLoop] = []
    for each in nest.loops:
        if not isinstance(each.extent, Const):
            raise ScheduleError(
                "draw the iteration space",
                f"the extent of {each.var.name} is known only at a call",
                got=format_expr(each.extent),
                hint="choose sizes: build the expression on numbers to see its order",
            )
        own = [loop_key(ref.stage, ref.axis) for ref in each.origin if ref.axis]
        row = next((rows[k] for k in own if k in rows), None)
        loops.append(
            {
                "key": own[0] if own else each.var.name,
                "name": each.var.name,
                "extent": int(each.extent.value),
                "kind": each.kind,
                "colors": list(row["colors"]) if row else [],
            }
        )
    keys = [loop["key"] for loop in loops]
    depth = keys.index(key) + 1 if key in keys else len(keys)
    return _model(stage, nest, loops, depth)


def _model(stage: str, nest: _Nest, loops: list[SpaceLoop], depth: int) -> IterationSpace:
    reader = _Formulas(nest)
    tensors: dict[Buffer, SpaceTensor] = {}
    notes: list[str] = []
    for buffer, indices, is_write, conditions in _accesses(nest.store):
        if not buffer.shape or not all(isinstance(size, int) for size in buffer.shape):
            continue
        text = f"{buffer.name}[{', '.join(map(format_expr, indices))}]"
        formulas = [reader.formula(index) for index in indices]
        needed = [reader.formula(condition) for condition in conditions]
        if any(formula is None for formula in (*formulas, *needed)):
            notes.append(f"{text} depends on data, and is not drawn")
            continue
        shape = [int(str(size)) for size in buffer.shape]
        tensor = tensors.setdefault(
            buffer,
            {
                "name": buffer.name,
                "shape": shape,
                "grid": _grid(shape),
                "dtype": buffer.dtype,
                "accesses": [],
            },
        )
        access: SpaceAccess = {
            "is_write": is_write,
            "indices": [formula for formula in formulas if formula is not None],
            "text": text,
            "conditions": [formula for formula in needed if formula is not None],
        }
        if access not in tensor["accesses"]:
            tensor["accesses"].append(access)
    guards = [reader.formula(condition) for condition in nest.conditions]
    if None in guards:
        notes.append("a condition on data is taken to hold")
    if concurrent := [loop["name"] for loop in loops[:depth] if loop["kind"] == "parallel"]:
        notes.append(f"{', '.join(concurrent)} runs on several cores: drawn in the order of one")
    return {
        "stage": stage,
        "statement": f"{nest.store.buffer.name}[…]",
        "chosen": loops[depth - 1]["key"] if loops else None,
        "loops": loops,
        "depth": depth,
        "steps": math.prod(loop["extent"] for loop in loops[:depth]),
        "tensors": list(tensors.values()),
        "conditions": [guard for guard in guards if guard is not None],
        "notes": notes,
    }


def _grid(shape: list[int]) -> Grid:
    sides = ([1, *shape])[-2:]
    # Powers of two, so that cells and tiles have common edges.
    down, across = (1 << (max(math.ceil(side / MOST_CELLS), 1) - 1).bit_length() for side in sides)
    rows, columns = math.ceil(sides[0] / down), math.ceil(sides[1] / across)
    cell = max(4, min(12, _SIDE_PX // max(rows, columns)))
    return {"rows": rows, "columns": columns, "block": [down, across], "cell": cell}


def _stage_of(tree: LoopTree, key: str | None) -> str:
    rows = [row for row in tree["rows"] if row["type"] != "statement"]
    named = next((row["stage"] for row in rows if row["key"] == key), None)
    if named is None and not rows:
        raise ScheduleError("draw the iteration space", "the schedule has no loops")
    return named or next(row["stage"] for row in reversed(rows) if row["depth"] == 0)


def _find(func: PrimFunc, stage: str) -> _Nest:
    """Return the statement that updates a stage, in its loops."""
    stack: list[tuple[Stmt, _Nest | tuple[Any, ...]]] = [(func.body, ((), (), {}))]
    while stack:
        stmt, around = stack.pop()
        loops, conditions, lets = around  # type: ignore[misc]
        match stmt:
            case For():
                stack.append((stmt.body, ((*loops, stmt), conditions, lets)))
            case Allocate():
                stack.append((stmt.body, around))
            case Let():
                stack.append((stmt.body, (loops, conditions, {**lets, stmt.var: stmt.value})))
            case If():
                if stmt.otherwise is not None:
                    stack.append(
                        (stmt.otherwise, (loops, (*conditions, Not(stmt.condition)), lets))
                    )
                stack.append((stmt.then, (loops, (*conditions, stmt.condition), lets)))
            case Seq():
                stack += [(each, around) for each in reversed(stmt.statements)]
            case Store() if _updates(stmt, stage):
                return _Nest(stmt, loops, conditions, lets)
            case _:
                pass
    raise ScheduleError("draw the iteration space", "the stage has no loops of its own", got=stage)


def _updates(store: Store, stage: str) -> bool:
    mine = [ref for ref in store.origin if ref.stage == stage]
    return bool(mine) and not any(ref.axis.startswith("(") for ref in mine)


_Found: TypeAlias = tuple[Buffer, tuple[Expr, ...], bool, tuple[Expr, ...]]


def _accesses(store: Store) -> Iterator[_Found]:
    """Yield (buffer, indices, whether it is written, conditions), the written one first."""
    yield store.buffer, store.indices, True, ()
    yield from _loads(store.value, ())


def _loads(expr: Expr, conditions: tuple[Expr, ...]) -> Iterator[_Found]:
    if isinstance(expr, Load):
        yield expr.buffer, expr.indices, False, conditions
    if isinstance(expr, IfThenElse):
        yield from _loads(expr.condition, conditions)
        yield from _loads(expr.a, (*conditions, expr.condition))
        yield from _loads(expr.b, (*conditions, Not(expr.condition)))
        return
    for child in children(expr):
        if isinstance(child, Expr):
            yield from _loads(child, conditions)


class _Formulas:
    """Writes index expressions as formulas over the loops of a nest."""

    def __init__(self, nest: _Nest) -> None:
        self.place = {loop.var: n for n, loop in enumerate(nest.loops)}
        self.lets = nest.lets

    def formula(self, expr: Expr) -> Formula | None:
        """Return an expression as a formula; None where it reads data."""
        while any(isinstance(part, Var) and part in self.lets for part in _parts(expr)):
            expr = substitute(expr, self.lets)
        try:
            return self._write(expr)
        except LookupError:
            return None

    def _write(self, expr: Expr) -> Formula:
        match expr:
            case Const():
                return int(expr.value)
            case Var():
                return ["v", self.place[expr]]
            case Binary():
                return [_BINARY.get(expr.op, expr.op), self._write(expr.a), self._write(expr.b)]
            case Compare():
                return [_COMPARE[expr.op], self._write(expr.a), self._write(expr.b)]
            case Logical():
                return [expr.op, self._write(expr.a), self._write(expr.b)]
            case Not():
                return ["not", self._write(expr.value)]
            case _:
                raise LookupError(type(expr).__name__)


def _parts(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        if isinstance(child, Expr):
            yield from _parts(child)
