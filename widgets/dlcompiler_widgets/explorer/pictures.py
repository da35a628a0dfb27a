"""The picture tabs of the workbench, and the condition under which each one applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.views.loops.axis_graph import axes_scene
from dlcompiler.views.loops.iteration_scene import iteration_scene
from dlcompiler.views.loops.iteration_space import iteration_space
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.loops.schedule_graph import dataflow_scene
from dlcompiler.views.memory.scopes import memory_scopes
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.scene import Scene, scene_html
from dlcompiler_widgets.explorer import blocks

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session


@dataclass(frozen=True)
class Picture:
    """One tab of the pane with pictures."""

    text: str
    """Label of the tab."""
    draw: Callable[[Session], Mapping[str, Any]]
    """Return the view model for a session: a `Scene`, or the input of the drawer named `kind`."""
    kind: str = "scene"
    still: Callable[[Any], Scene] = lambda scene: scene
    """Make the static picture from what `draw` returned."""
    applies: Callable[[Session], bool] = lambda session: True
    """Tell whether the tab has something to show for the target and the program."""


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


def _has_memories(session: Session) -> bool:
    """Tell whether the target has more than one memory: a cache, or a second memory scope."""
    return bool(session.target.caches) or len(session.target.scopes) > 1


def _has_threads(session: Session) -> bool:
    """Tell whether loops can be bound to threads of the target, or are bound already."""
    return bool(session.target.thread_axes) or uses_threads(session.schedule.state)


PICTURES: dict[str, Picture] = {
    "nest": Picture("Loop nest", _nest),
    "memory": Picture("Memory scopes", _memory, applies=_has_memories),
    "space": Picture("Iteration space", _space, kind="space", still=iteration_scene),
    "block": Picture(
        "Thread block", _block, kind="block", still=blocks.still, applies=_has_threads
    ),
    "stages": Picture("Stages", _stages),
    "axes": Picture("Axes", _axes),
    "off": Picture("Off", lambda session: {}, kind="off"),
}


def pictures_of(session: Session) -> dict[str, Picture]:
    """Return the pictures that apply to the target and the program of a session."""
    return {name: picture for name, picture in PICTURES.items() if picture.applies(session)}


def still(session: Session, name: str) -> Scene | DLCompilerError:
    """Return a picture that stands still; in place of one that cannot be drawn, the error."""
    picture = PICTURES[name]
    try:
        model = picture.draw(session)
        if model.get("is_pending"):
            session.blocks.wait()
            model = picture.draw(session)
        return picture.still(model)
    except DLCompilerError as error:
        return error


def still_html(scene: Scene | DLCompilerError, *, is_open: bool = False) -> Markup:
    """Return a picture with its table; in place of one that cannot be drawn, the reason."""
    if isinstance(scene, DLCompilerError):
        return tag("p", None, str(scene))
    return scene_html(scene, is_open=is_open)
