"""The iteration space: in which order a loop nest visits the elements of its tensors.

A *step* is one iteration of the chosen loop. The loops around it decide the order of the steps; the
loops inside it decide which elements a step touches. The model contains loops, index formulas and
conditions, but no points: a page computes the steps that it shows by the rules of `views.visits`.
A test compares both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from dlcompiler.analysis.accesses import Access, Loop, collect_accesses
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    For,
    Let,
    Logical,
    Not,
    PrimFunc,
    Stmt,
    Store,
    Var,
    format_expr,
    is_thread,
    walk,
)
from dlcompiler.ir.stmt import Buffer, Origin
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.loops.loop_tree import LINES, LoopTree, Row

MOST_CELLS = 24
"""A side of a grid has no more cells; a cell then stands for several elements."""
_SIDE_PX = 120
_OPERATION = "draw the iteration space"

Formula: TypeAlias = "int | list[Any]"
"""``3``; ``["v", n]``, the value of loop ``n``; ``[op, a, b]`` of two formulas; ``["not", a]``."""

_BINARY = {"floordiv": "//", "floormod": "%", "add": "+", "sub": "-", "mul": "*"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class SpaceLoop(TypedDict):
    """One loop around the statement."""

    key: str
    name: str
    extent: int
    kind: str
    colors: list[str]


class SpaceAccess(TypedDict):
    """One read or write of a tensor by the statement."""

    is_write: bool
    indices: list[Formula]
    text: str
    """``A[i.outer*32 + i.inner, k]``."""
    conditions: list[Formula]
    """Conditions of this access, in addition to those of the statement."""


class Grid(TypedDict):
    """The last two dimensions of a tensor as cells; a vector is one row."""

    rows: int
    columns: int
    block: list[int]
    """Elements that a cell stands for: down and across."""
    cell: int
    """Side of a cell; [px]."""


class SpaceTensor(TypedDict):
    """A tensor with all accesses of the statement to it."""

    name: str
    shape: list[int]
    grid: Grid
    dtype: str
    accesses: list[SpaceAccess]


class IterationSpace(TypedDict):
    """A statement with its loops, tensors and conditions."""

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
    """Sentences that say what the picture leaves out."""


def iteration_space(func: PrimFunc, tree: LoopTree, key: str | None) -> IterationSpace:
    """Return the iteration space of the statement inside a loop, or of a stage.

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
    stage = _stage_of(tree, key, _OPERATION)
    accesses = _statement(func, stage, _OPERATION)
    rows = {row["key"]: row for row in tree["rows"]}
    loops: list[SpaceLoop] = []
    for each in accesses[0].loops:
        if each.size is None:
            raise ScheduleError(
                _OPERATION,
                f"the extent of {each.var.name} is known only at a call",
                got=format_expr(each.extent),
                hint="declare the tensors with numbers instead of symbols",
            )
        own = [loop_key(ref.stage, ref.axis) for ref in _origin(each) if ref.axis]
        row = next((rows[k] for k in own if k in rows), None)
        loops.append(
            {
                "key": own[0] if own else each.var.name,
                "name": each.var.name,
                "extent": each.size,
                "kind": each.kind,
                "colors": list(row["colors"]) if row else [],
            }
        )
    place = {loop.var: n for n, loop in enumerate(accesses[0].loops)}
    if idle := _idle(rows, key):
        around = [loop["key"] in _way(rows, key) for loop in loops].count(True)
        loops.insert(around, idle)
        place = {var: n + (n >= around) for var, n in place.items()}
    keys = [loop["key"] for loop in loops]
    depth = keys.index(key) + 1 if key in keys else len(keys)
    return _model(stage, accesses, loops, depth, place)


def _idle(rows: Mapping[str, Row], key: str | None) -> SpaceLoop | None:
    """Return a loop of the nest that runs once: a program does not contain it any more."""
    row = rows.get(key or "")
    if row is None or row["type"] != "loop" or row["extent"] != 1 or is_thread(row["kind"]):
        return None
    return {
        "key": row["key"],
        "name": row["name"],
        "extent": 1,
        "kind": row["kind"],
        "colors": list(row["colors"]),
    }


def _way(rows: Mapping[str, Row], key: str | None) -> list[str]:
    """Return the keys of the rows around a row."""
    keys = []
    at = rows.get(key or "")
    while at is not None and (at := rows.get(at["parent"] or "")):
        keys.append(at["key"])
    return keys


def nest_of(
    func: PrimFunc, tree: LoopTree, key: str | None, operation: str
) -> tuple[str, tuple[Loop, ...]]:
    """Return a stage by a key of the loop tree, and the loops around its statement.

    `operation` is what an error says was attempted.
    """
    stage = _stage_of(tree, key, operation)
    loops = _statement(func, stage, operation)[0].loops
    return stage, tuple(loop for loop in loops if loop.kind != "lanes")


def _origin(loop: Loop) -> Origin:
    return loop.statement.origin if isinstance(loop.statement, For | Store) else ()


def _model(
    stage: str,
    accesses: list[Access],
    loops: list[SpaceLoop],
    depth: int,
    place: Mapping[Var, int],
) -> IterationSpace:
    write = accesses[0]
    tensors: dict[Buffer, SpaceTensor] = {}
    notes: list[str] = []
    missing: dict[str, str] = {}
    for each in accesses:
        buffer = each.buffer
        if not buffer.shape:
            notes.append(f"{buffer.name} is one element, and is not drawn")
        if not buffer.shape or not all(isinstance(size, int) for size in buffer.shape):
            continue
        text = f"{buffer.name}[{', '.join(map(format_expr, each.indices))}]"
        formulas = [_formula(index, place) for index in each.indices]
        own = each.conditions[len(write.conditions) :]
        needed = [_formula(condition, place) for condition in own]
        if any(formula is None for formula in (*formulas, *needed)):
            why = "its index is read from data" if None in formulas else "a condition reads data"
            missing[text] = f"{text} is not drawn: {why}"
            continue
        shape = [int(str(size)) for size in buffer.shape]
        tensor = tensors.setdefault(
            buffer,
            {
                "name": buffer.name,
                "shape": shape,
                "grid": grid_of(*([1, *shape])[-2:]),
                "dtype": buffer.dtype,
                "accesses": [],
            },
        )
        access: SpaceAccess = {
            "is_write": each.is_write,
            "indices": [formula for formula in formulas if formula is not None],
            "text": text,
            "conditions": [formula for formula in needed if formula is not None],
        }
        if access not in tensor["accesses"]:
            tensor["accesses"].append(access)
    notes += [note for text, note in missing.items() if text not in _texts(tensors)]
    guards = [_formula(condition, place) for condition in write.conditions]
    if None in guards:
        notes.append("a condition reads data; it is drawn as if it were true")
    if concurrent := [loop["name"] for loop in loops[:depth] if loop["kind"] == "parallel"]:
        run = f"{', '.join(concurrent)} {'run' if len(concurrent) > 1 else 'runs'}"
        notes.append(f"{run} on several cores; the order drawn is that of one core")
    if bound := [loop["name"] for loop in loops[:depth] if is_thread(loop["kind"])]:
        run = f"{', '.join(bound)} {'run' if len(bound) > 1 else 'runs'}"
        notes.append(f"{run} on threads of a device; the order drawn is that of one thread")
    return {
        "stage": stage,
        "statement": f"{write.buffer.name}[…]",
        "chosen": loops[depth - 1]["key"] if loops else None,
        "loops": loops,
        "depth": depth,
        "steps": math.prod(loop["extent"] for loop in loops[:depth]),
        "tensors": list(tensors.values()),
        "conditions": [guard for guard in guards if guard is not None],
        "notes": list(dict.fromkeys(notes)),
    }


def _texts(tensors: Mapping[Buffer, SpaceTensor]) -> set[str]:
    """Return the accesses that are drawn, as text."""
    return {access["text"] for tensor in tensors.values() for access in tensor["accesses"]}


def grid_of(rows: int, columns: int, most: int = MOST_CELLS) -> Grid:
    """Return a number of elements down and across as cells, with at most `most` on a side."""
    sides = (rows, columns)
    # Powers of two, so that cells and tiles have common edges.
    down, across = (1 << (max(math.ceil(side / most), 1) - 1).bit_length() for side in sides)
    cells_down, cells_across = math.ceil(rows / down), math.ceil(columns / across)
    cell = max(4, min(12, _SIDE_PX // max(cells_down, cells_across, 1)))
    return {"rows": cells_down, "columns": cells_across, "block": [down, across], "cell": cell}


def _stage_of(tree: LoopTree, key: str | None, operation: str) -> str:
    rows = [row for row in tree["rows"] if row["type"] not in LINES]
    named = next((row["stage"] for row in rows if row["key"] == key), None)
    if named is None and not rows:
        raise ScheduleError(operation, "the schedule has no loops")
    return named or next(row["stage"] for row in reversed(rows) if row["depth"] == 0)


def _statement(func: PrimFunc, stage: str, operation: str) -> list[Access]:
    """Return the accesses of the statement that updates a stage, a write first.

    Of a stage with several statements, such as one of code from outside, it is one with most loops
    and most reads. Several results are written by several statements, which count as one.
    """
    found = collect_accesses(func, with_inputs=True).items
    writes = [a for a in found if a.is_write and _updates(a.statement, stage)]
    if not writes:
        raise ScheduleError(
            operation, "no statement stores into this stage", got=stage,
            because="code from outside or another stage computes it, or it has no elements",
        )  # fmt: skip
    together = {id(each): _together(found, each) for each in writes}
    write = max(writes, key=lambda each: (len(each.loops), len(together[id(each)])))
    # An expression's last operand is collected first.
    return [write, *(a for a in reversed(together[id(write)]) if a is not write)]


def _together(found: Sequence[Access], write: Access) -> list[Access]:
    """Return the accesses of a statement; of one of several results, those of the others, too."""
    statements = {id(write.statement)}
    for each in found:  # the next values of all results are computed before one is stored
        if isinstance(each.statement, Let) and each.loops == write.loops:
            inside = {id(node) for node in walk(each.statement)}
            statements |= inside if id(write.statement) in inside else set()
    return [each for each in found if id(each.statement) in statements]


def _updates(statement: Stmt, stage: str) -> bool:
    if not isinstance(statement, Store):
        return False
    mine = [ref for ref in statement.origin if ref.stage == stage]
    return bool(mine) and not any(ref.axis.startswith("(") for ref in mine)


def _formula(expr: Expr, place: Mapping[Var, int]) -> Formula | None:
    """Return the formula of an expression; `place` numbers its loops. None if it reads data."""
    try:
        return _written(expr, place)
    except LookupError:
        return None


def _written(expr: Expr, place: Mapping[Var, int]) -> Formula:
    match expr:
        case Const():
            return int(expr.value)
        case Var():
            return ["v", place[expr]]
        case Binary():
            return [_BINARY.get(expr.op, expr.op), *_both(expr, place)]
        case Compare():
            return [_COMPARE[expr.op], *_both(expr, place)]
        case Logical():
            return [expr.op, *_both(expr, place)]
        case Not():
            return ["not", _written(expr.value, place)]
        case _:
            raise LookupError(type(expr).__name__)


def _both(expr: Binary | Compare | Logical, place: Mapping[Var, int]) -> list[Formula]:
    return [_written(expr.a, place), _written(expr.b, place)]
