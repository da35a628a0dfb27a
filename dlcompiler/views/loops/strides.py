"""Strides of the accesses inside each loop, in words for the labels of the loop tree."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.analysis.advice.subject import Subject
from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.loops.loop_tree import LoopTree
from dlcompiler.views.memory.footprints import footprint_of, loop_of
from dlcompiler.views.per_state import per_state

_MOST_BUFFERS = 4


def with_strides(
    tree: LoopTree, schedule: Schedule, args: Sequence[Tensor], target: Target
) -> LoopTree:
    """Add the strides of each loop to the loop tree's labels for screen readers.

    Parameters
    ----------
    tree
        The loop nest of the schedule's current state.
    schedule, args, target
        The schedule, the parameters of the function, and the machine.

    Returns
    -------
    LoopTree
        The unchanged tree if the state cannot be lowered, or sizes are known only at a call.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> from dlcompiler.target import resolve
    >>> from dlcompiler.views import loop_tree
    >>> A = te.placeholder((8, 64), name="A")
    >>> B = te.compute((64, 8), lambda i, j: A[j, i], name="B")
    >>> s = create_schedule(B.op)
    >>> tree = with_strides(loop_tree(s), s, [A, B], resolve("x86-64-avx2"))
    >>> tree["rows"][1]["label"]
    'loop i of B, level 1, data, extent 64, serial, unit stride in A, stride 8 in B'
    """
    try:
        words = stride_words(schedule, args, target)
    except DLCompilerError:
        return tree
    rows = [
        {**row, "label": f"{row['label']}, {words[row['key']]}"} if words.get(row["key"]) else row
        for row in tree["rows"]
    ]
    return {**tree, "rows": rows}  # type: ignore[typeddict-item]


def stride_words(schedule: Schedule, args: Sequence[Tensor], target: Target) -> dict[str, str]:
    """Return the strides of each loop in words, by its key in the loop tree.

    A buffer is named if all accesses to it inside the loop have the same stride, other than 0.

    Raises
    ------
    DLCompilerError
        If the state cannot be lowered, or sizes are known only at a call.
    """
    return _stride_words(schedule, tuple(args), target)


@per_state
def _stride_words(schedule: Schedule, args: tuple[Tensor, ...], target: Target) -> dict[str, str]:
    subject = Subject(schedule, footprint_of(schedule, args, target), target)
    found: dict[str, dict[str, set[int | None]]] = {}
    for nest in subject.footprint.nests:
        key = loop_of(nest)
        if key is None:
            continue
        strides = found.setdefault(key, {})
        for inside in nest.walk():
            for item in inside.own:
                strides.setdefault(item.access.buffer.name, set()).add(subject.stride(item, nest))
    return {key: _sentence(strides) for key, strides in found.items()}


def _sentence(strides: dict[str, set[int | None]]) -> str:
    even = {name: values.pop() for name, values in strides.items() if len(values) == 1}
    moving = sorted((abs(stride), name) for name, stride in even.items() if stride)
    shown = [
        f"unit stride in {name}" if stride == 1 else f"stride {stride:,} in {name}"
        for stride, name in moving[:_MOST_BUFFERS]
    ]
    return ", ".join(shown)
