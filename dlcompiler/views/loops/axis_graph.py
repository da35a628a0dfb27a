"""Graph of the splits and fusions that made the loops of a stage from its axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dlcompiler.ir import Axis, Extent
from dlcompiler.schedule import Schedule, StageState, has_bounds, infer_bounds
from dlcompiler.schedule.state import Fuse, Launched, Relation, Singleton, Split
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.loops.loop_tree import AXIS_WORDS
from dlcompiler.views.render.boxes import arrow, box, box_size, count, extent_of
from dlcompiler.views.render.colors import axis_colors
from dlcompiler.views.render.layered import layered
from dlcompiler.views.render.scene import Cell, Mark, Scene, beside

Drawn = tuple[float, float, list[Mark]]

_NOTHING: Drawn = (
    180.0,
    24.0,
    [{"shape": "text", "role": "soft", "x": 0, "y": 16, "text": "There is nothing to draw."}],
)


def axes_scene(schedule: Schedule, stage_name: str) -> Scene:
    """Return the graph of the splits and fusions that made a stage's loops from its axes.

    Parameters
    ----------
    schedule
        The schedule, at the state to show.
    stage_name
        Which stage.

    Returns
    -------
    Scene
        A box for each axis that there is or was; the loops of now in a solid outline, with their
        place in the nest.
    """
    stage = schedule.state.stage(stage_name)
    colors = axis_colors(schedule.state).get(stage_name, {})
    axes = _axes(stage)
    edges = [pair for relation in stage.relations for pair in _pairs(relation)]
    order = {leaf: n + 1 for n, leaf in enumerate(stage.leaves)}
    extents = _extents(schedule, stage)
    texts = {axis: _axis_lines(stage, axis, order, extents) for axis in axes}

    def family(members: Sequence[Axis]) -> Drawn:
        """Return width, height and marks of axes that splits and fusions connect."""
        known = set(members)
        own = [(a, b) for a, b in edges if a in known]
        places = layered({axis: box_size(texts[axis]) for axis in members}, own)
        marks = [arrow(places[a], places[b]) for a, b in own]
        for axis in members:
            fill = (colors.get(axis) or ("none",))[0]
            keys = [loop_key(stage.name, stage.paths[axis])] if axis in order else []
            marks += box(places[axis], texts[axis], keys, fill=fill, is_dashed=axis not in order)
        return *extent_of(places), marks

    return {
        "title": f"Axes of {stage.name}",
        "summary": _axes_summary(stage),
        "how_to_read": "arrows lead from an axis to the axes that a split or a fuse made of it. "
        "Solid boxes are loops, numbered from the outermost. Dashed boxes are axes that were split "
        "or fused, and are not loops now.",
        **beside(*(map(family, _families(axes, edges)) if axes else [_NOTHING])),
        "table": {
            "columns": ["axis", "extent", "kind", "made from", "loop number"],
            "rows": [_axis_row(stage, axis, edges, order, extents) for axis in axes],
        },
    }


def _families(axes: Sequence[Axis], edges: Sequence[tuple[Axis, Axis]]) -> Iterator[list[Axis]]:
    """Yield the axes that edges connect with each other, in the order of the first of each."""
    families = {axis: [axis] for axis in axes}
    for a, b in edges:
        if families[a] is not families[b]:
            joined = families[a] + families[b]
            families |= dict.fromkeys(joined, joined)
    seen: set[Axis] = set()
    for axis in axes:
        if axis not in seen:
            family = set(families[axis])
            seen |= family
            yield [each for each in axes if each in family]


def _axes(stage: StageState) -> list[Axis]:
    axes = dict.fromkeys((*stage.op.axis, *stage.op.reduce_axis))
    for relation in stage.relations:
        match relation:
            case Split():
                axes |= {relation.parent: None, relation.outer: None, relation.inner: None}
            case Fuse():
                axes |= {relation.outer: None, relation.inner: None, relation.fused: None}
            case Singleton() | Launched():
                axes[relation.axis] = None
    return list(axes | dict.fromkeys(stage.leaves))


def _pairs(relation: Relation) -> list[tuple[Axis, Axis]]:
    match relation:
        case Split():
            return [(relation.parent, relation.outer), (relation.parent, relation.inner)]
        case Fuse():
            return [(relation.outer, relation.fused), (relation.inner, relation.fused)]
        case _:
            return []


def _extents(schedule: Schedule, stage: StageState) -> Mapping[Axis, Extent]:
    """Return the extents of a stage's axes; an attached stage computes only a region."""
    state = schedule.state
    return infer_bounds(state).stages[stage.name].extents if has_bounds(state) else {}


def _axis_lines(
    stage: StageState, axis: Axis, order: Mapping[Axis, int], extents: Mapping[Axis, Extent]
) -> list[str]:
    name = stage.paths.get(axis, axis.name)
    extent = f"extent {extents.get(axis, axis.extent)}"
    if axis not in order:
        return [name, extent]
    kind = stage.kind(axis)
    return [f"{order[axis]}. {name}", extent if kind == "serial" else f"{extent}, {kind}"]


def _axis_row(
    stage: StageState,
    axis: Axis,
    edges: list[tuple[Axis, Axis]],
    order: Mapping[Axis, int],
    extents: Mapping[Axis, Extent],
) -> list[Cell]:
    size = extents.get(axis, axis.extent)
    extent = size if isinstance(size, int) else str(size)
    parents = [stage.paths.get(a, a.name) for a, b in edges if b is axis]
    kind = AXIS_WORDS[axis.kind]
    return [stage.paths.get(axis, axis.name), extent, kind, ", ".join(parents), order.get(axis)]


def _axes_summary(stage: StageState) -> str:
    if not _axes(stage):
        return f"{stage.name} has no axes: it is one statement, or code from outside computes it."
    splits = sum(isinstance(relation, Split) for relation in stage.relations)
    fusions = sum(isinstance(relation, Fuse) for relation in stage.relations)
    roots = len(stage.op.axis) + len(stage.op.reduce_axis)
    return (
        f"{stage.name} has {count(roots, 'axis', 'axes')}; {count(splits, 'split')} and "
        f"{count(fusions, 'fusion')} made {count(len(stage.leaves), 'loop')} of them."
    )
