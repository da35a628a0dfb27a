"""The pictures of the workbench, by the name of their tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.views.loops.axis_graph import axes_scene
from dlcompiler.views.loops.iteration_scene import iteration_scene
from dlcompiler.views.loops.iteration_space import iteration_space
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.loops.schedule_graph import dataflow_scene
from dlcompiler.views.memory.scopes import memory_scopes
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer import blocks

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session


@dataclass(frozen=True)
class Picture:
    """One tab."""

    text: str
    draw: Callable[[Session], Mapping[str, Any]]
    """What to show of a session; a `Scene`, or what the drawer named `kind` takes."""
    kind: str = "scene"
    still: Callable[[Any], Scene] = lambda scene: scene
    """What shows of it where nothing moves, made of what `draw` returned."""


def _nest(session: Session) -> Mapping[str, Any]:
    return nest_scene(session.tree)


def _memory(session: Session) -> Mapping[str, Any]:
    return memory_scopes(session.schedule, session.args, session.target, session.chosen)


def _space(session: Session) -> Mapping[str, Any]:
    func = session.lowered(session.schedule.node, "loops")
    if isinstance(func, DLCompilerError):
        raise func
    return iteration_space(func, session.tree, session.chosen)


def _block(session: Session) -> Mapping[str, Any]:
    return session.blocks.model(session)


def _stages(session: Session) -> Mapping[str, Any]:
    return dataflow_scene(session.schedule)


def _axes(session: Session) -> Mapping[str, Any]:
    chosen = (session.chosen or "").partition("/")[0]
    names = [stage.name for stage in session.schedule.state.stages if not stage.is_placeholder]
    return axes_scene(session.schedule, chosen if chosen in names else names[-1])


PICTURES: dict[str, Picture] = {
    "nest": Picture("Loop nest", _nest),
    "memory": Picture("Memory scopes", _memory),
    "space": Picture("Iteration space", _space, kind="space", still=iteration_scene),
    "block": Picture("Thread block", _block, kind="block", still=blocks.still),
    "stages": Picture("Stages", _stages),
    "axes": Picture("Axes", _axes),
    "off": Picture("Off", lambda session: {}, kind="off"),
}
