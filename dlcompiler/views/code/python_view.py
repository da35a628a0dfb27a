"""The steps of a schedule as Python; each line has its state and the keys of its loops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dlcompiler.ir import Axis
from dlcompiler.schedule import Node, Schedule
from dlcompiler.schedule.saved.python_writer import PythonLine, python_lines
from dlcompiler.views.code.program import Line, pieces
from dlcompiler.views.loops.line_keys import loop_key

_PIECES = re.compile(
    r'(?P<comment>#.*)|(?P<text>"[^"]*")|(?P<keyword>(?<=\.)\w+(?=\())'
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?\b)"
)


def python_view(schedule: Schedule, variable: str = "s") -> list[Line]:
    """Return the lines of ``schedule.trace.to_python()``.

    Parameters
    ----------
    schedule
        The schedule.
    variable
        What the schedule is called in the code.

    Returns
    -------
    list of Line
        A line has the keys of the loops that it made or changed and that are still there, then of
        its stages; a step has the id of the state that it led to.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> s = create_schedule(B.op)
    >>> _ = s[B].split(B.op.axis[0], 4)
    >>> [(line["text"], line["keys"]) for line in python_view(s)][-1]
    ('i_outer, i_inner = s[B].split(i, factor=4)', ['B/i.outer', 'B/i.inner', 'B'])
    """
    state = schedule.state
    computed = [stage for stage in state.stages if not stage.is_placeholder]
    names = {stage.name for stage in computed}
    loops = {
        leaf: loop_key(stage.name, stage.paths[leaf])
        for stage in computed
        if not stage.is_inlined
        for leaf in stage.leaves
    }
    lines = python_lines(schedule.node.path(), variable)
    return [_line(number, line, loops, names) for number, line in enumerate(lines, 1)]


def _line(number: int, line: PythonLine, loops: dict[Axis, str], names: set[str]) -> Line:
    keys = [loops[axis] for axis in line.axes if axis in loops]
    keys += [name for name in _stages(line.node) if name in names]
    shown: Line = {
        "number": number,
        "text": line.text,
        "depth": 0,
        "status": "same",
        "keys": list(dict.fromkeys(keys)),
        "tokens": list(pieces(line.text, _PIECES.finditer(line.text))),
    }
    if line.node is not None:
        shown["state"] = line.node.id
        shown["about"] = f"the step {line.node.title()}" if line.node.step else "the first state"
    return shown


def _stages(node: Node | None) -> Iterator[str]:
    """Yield the names of the stages that a step added or was applied to."""
    if node is None or node.step is None or node.parent is None:
        return
    before = {stage.name for stage in node.parent.state.stages}
    for stage in node.state.stages:
        if stage.name not in before or stage.name == node.step.stage:
            yield stage.name
