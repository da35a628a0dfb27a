"""The dependence that forbids a refused step: its vector, and a small picture of its arrows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from dlcompiler.analysis.accesses import Loop
from dlcompiler.ir import PrimFunc
from dlcompiler.views.loops.dependence_list import Entry, dependence_list, key_of
from dlcompiler.views.loops.dependence_scene import entry_scene
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.loops.loop_tree import LoopTree
from dlcompiler.views.render.scene import Scene

_ABOUT_ORDER = ("bind", "parallel", "reorder", "vectorize")
"""The primitives that let iterations run in another order, or at the same time."""


class Conflict(TypedDict):
    """A dependence that a refused step would break."""

    kind: str
    """``flow, anti, output (reduction)``."""
    buffer: str
    source: str
    """The access that comes first: ``C[i, j]``."""
    sink: str
    loops: list[str]
    """Keys of the loops of the vector, outermost first."""
    vector: list[int | str]
    """The distance, or the direction, for each loop."""
    nearest: list[int] | None
    words: str
    example: str
    """Two points that touch one element; '' if none are known."""
    first: dict[str, int]
    """The point that comes first: the value of each loop, by its key. Empty if none is known."""
    second: dict[str, int]
    scene: Scene
    """The iterations of the loops concerned, with the arrows."""


def conflict(func: PrimFunc, tree: LoopTree, refused: Mapping[str, Any]) -> Conflict | None:
    """Return the dependence that forbids a refused step.

    Parameters
    ----------
    func
        The program without the step: ``lower(s, args, simple_mode=True)``.
    tree
        The loop nest of the same state.
    refused
        The `Preview` of the step.

    Returns
    -------
    Conflict or None
        None if no dependence forbids the step: it is refused for another reason.
    """
    step = refused["step"]
    is_refused = refused["status"] == "illegal" and refused["kind"] == "semantic"
    if not is_refused or step["primitive"] not in _ABOUT_ORDER:
        return None
    order = [loop_key(step["stage"], path) for path in step["args"].get("axes", ())]
    loop = loop_key(step["stage"], step["args"].get("axis", ""))
    keys = [loop, *(key for key in refused["conflicts"] if "/" in key and "//" not in key)]
    # The steps of a scan are computed by other stages: the loop is its own, the accesses theirs.
    stages = dict.fromkeys((step["stage"], *(row["stage"] for row in tree["rows"])))
    carried = [each for stage in stages for each in _carried(func, tree, stage)]
    if order:
        broken = [each for each in carried if _is_reversed(each, order)]
    else:
        broken = [each for each in carried if each.key in keys]
        broken.sort(key=lambda each: each.key != loop)
    return _conflict(broken[0]) if broken else None


def _carried(func: PrimFunc, tree: LoopTree, stage: str) -> list[Entry]:
    return [entry for entry in dependence_list(func, tree, stage) if entry.loop]


def _conflict(entry: Entry) -> Conflict:
    vector = entry.vector
    example = vector.example if vector else None
    return {
        "kind": entry.kind,
        "buffer": entry.buffer,
        "source": entry.source,
        "sink": entry.sink,
        "loops": [key_of(loop) for loop in entry.loops],
        "vector": [*vector.distances] if vector else [],
        "nearest": [*vector.nearest] if vector and vector.nearest else None,
        "words": entry.words,
        "example": entry.example,
        "first": _values(entry, example.first if example else None),
        "second": _values(entry, example.second if example else None),
        "scene": entry_scene(entry, _pair(entry)),
    }


def _values(entry: Entry, values: Mapping[Loop, int] | None) -> dict[str, int]:
    return {key_of(loop): values[loop] for loop in entry.loops} if values else {}


def _is_reversed(entry: Entry, order: Sequence[str]) -> bool:
    """Tell whether the sink would come before the source if loops were reordered.

    `order` has the keys of some loops in their new order; the others stay where they are.
    """
    if entry.vector is None or entry.vector.nearest is None:
        return False
    by_key = {key_of(loop): n for loop, n in zip(entry.loops, entry.vector.nearest, strict=True)}
    moved = iter([key for key in order if key in by_key])
    after = [by_key[next(moved) if key in order else key] for key in by_key]
    return next((n for n in after if n), 0) < 0


def _pair(entry: Entry) -> list[Loop]:
    """Return the two loops to draw: those with a distance, or the carrying one and another."""
    assert entry.loop is not None
    if len(entry.moving) == 2:
        return list(entry.moving)
    at = entry.loops.index(entry.loop)
    return list(entry.loops[max(at - 1, 0) : max(at - 1, 0) + 2])
