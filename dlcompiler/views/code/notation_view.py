"""The expressions of a state as notation; each index variable has the keys of its loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule, StageState, State
from dlcompiler.schedule.inference.relations import axes_of
from dlcompiler.schedule.state import Fuse, Split
from dlcompiler.te import ComputeOp, ScanOp
from dlcompiler.te.notation.line import Line as Statement
from dlcompiler.te.notation.line import Names, names_of
from dlcompiler.views.code.program import Line, Token
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.loops.loop_tree import element_text

_LONGEST_STATEMENT = 4_000
_WORD = re.compile(r"[^\W\d]\w*")


def notation_lines(schedule: Schedule) -> list[Line]:
    """Return a line for each input, then for the expression of each stage, producers first.

    Steps that change the dataflow, such as ``cache_write``, also change the expressions.

    Parameters
    ----------
    schedule
        The schedule.

    Returns
    -------
    list of Line
        A line has the key of its stage. A token of kind ``axis`` has the keys of the loops that its
        axis became; behind the statement stand the ranges of its axes.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> s = create_schedule(B.op)
    >>> _ = s[B].split(B.op.axis[0], 4)
    >>> [line["text"] for line in notation_lines(s)]
    ['A: float32[8]', 'B[i] = A[i]*2.0  # i < 8']
    >>> notation_lines(s)[1]["tokens"][1]
    {'kind': 'axis', 'text': 'i', 'keys': ['B/i.outer', 'B/i.inner']}
    """
    state = schedule.state
    names = _names(state)
    lines: list[Line] = []
    for stage in sorted(state.stages, key=lambda stage: not stage.is_placeholder):
        tokens = list(_cut(_tokens(stage, names)))
        lines.append(_line(len(lines) + 1, stage, tokens))
    return lines


def _names(state: State) -> Names:
    """Return a name for each tensor; all handles of one tensor get the same name."""
    handles = [t for stage in state.stages for t in (*stage.tensors, *stage.aliases)]
    names = names_of(handles)
    for stage in state.stages:
        for tensor, rewritten in zip(stage.tensors, stage.op.outputs, strict=True):
            names.tensors.setdefault(rewritten, names.tensors[tensor])
    return names


def _line(number: int, stage: StageState, tokens: list[Token]) -> Line:
    return {
        "number": number,
        "text": "".join(token["text"] for token in tokens),
        "depth": 0,
        "status": "same",
        "keys": [] if stage.is_placeholder else [loop_key(stage.name)],
        "tokens": tokens,
    }


def _cut(tokens: Iterator[Token]) -> Iterator[Token]:
    """Yield tokens until the line is too long; then a comment says that it was cut."""
    length = 0
    for token in tokens:
        length += len(token["text"])
        if length > _LONGEST_STATEMENT:
            yield {"kind": "comment", "text": " … cut: the statement is too long to show"}
            return
        yield token


def _tokens(stage: StageState, names: Names) -> Iterator[Token]:
    if isinstance(stage.op, ScanOp):
        yield {"kind": "text", "text": stage.op.text(names.tensors)}
        time = stage.op.scan_axis
        steps = f"  # {time.name} < {names.extent(time.extent)} (time)"
        yield from _marked(steps, {time.name: _loops(stage, time)}, is_comment=True)
        return
    if not isinstance(stage.op, ComputeOp):
        shape = ", ".join(str(names.extent(extent)) for extent in stage.tensor.shape)
        text = f"{names.tensors[stage.tensor]}: {stage.tensor.dtype}[{shape}]"
        yield {"kind": "text", "text": text}
        return
    # Names of axes may be used again in another line: each line tells their ranges.
    statement = Statement(stage.op, names, {})
    axes = {name: _loops(stage, axis) for axis, name in statement.axes.items()}
    try:
        text = statement.text()
    except ExpressionError as error:
        target = f"{stage.name}[{', '.join(stage.paths[axis] for axis in stage.op.axis)}]"
        yield {"kind": "text", "text": element_text(target, stage.op.bodies)}
        yield {"kind": "comment", "text": f"  # no notation: {error.problem}"}
        return
    yield from _marked(text, axes, is_comment=False)
    yield from _marked(f"  # {_ranges(stage, statement)}", axes, is_comment=True)


def _ranges(stage: StageState, statement: Statement) -> str:
    """Return the ranges of a statement's axes as text, and ``inlined`` for an inlined stage."""
    parts = [
        f"{f'{axis.start} <= ' if axis.start else ''}{name} < {_end(statement, axis)}"
        + (" (reduction)" if axis.kind == "reduce" else "")
        for axis, name in statement.axes.items()
    ]
    return ", ".join([*parts, *(["inlined"] if stage.is_inlined else [])]) or "one element"


def _end(statement: Statement, axis: Axis) -> int | str:
    extent = statement.names.extent(axis.extent)
    if isinstance(extent, int):
        return axis.start + extent
    return f"{axis.start} + {extent}" if axis.start else extent


def _marked(text: str, axes: Mapping[str, list[str]], *, is_comment: bool) -> Iterator[Token]:
    """Split a text into tokens: axes with the keys of their loops, and the text between."""
    end = 0
    for match in _WORD.finditer(text):
        if match[0] not in axes:
            continue
        if match.start() > end:
            yield _plain(text[end : match.start()], is_comment)
        yield {"kind": "axis", "text": match[0], "keys": axes[match[0]]}
        end = match.end()
    if end < len(text):
        yield _plain(text[end:], is_comment)


def _plain(text: str, is_comment: bool) -> Token:
    return {"kind": "comment" if is_comment else "text", "text": text}


def _loops(stage: StageState, axis: Axis) -> list[str]:
    """Return the keys of the loops made from an axis of the expression, outermost first."""
    made = {axis}
    for relation in stage.relations:
        match relation:
            case Split(parent) if parent in made:
                made.update(axes_of(relation))
            case Fuse(outer, inner, fused) if outer in made or inner in made:
                made.add(fused)
    if stage.is_inlined:
        return []
    return [loop_key(stage.name, stage.paths[leaf]) for leaf in stage.leaves if leaf in made]
