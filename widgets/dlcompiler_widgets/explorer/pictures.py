"""The picture tabs of the workbench, and the condition under which each one applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.views.loops.axis_graph import axes_scene
from dlcompiler.views.loops.dependence_scene import dependence_scene
from dlcompiler.views.loops.iteration_scene import iteration_scene
from dlcompiler.views.loops.iteration_space import iteration_space
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.loops.schedule_graph import dataflow_scene
from dlcompiler.views.memory.scopes import memory_scopes
from dlcompiler.views.render.markup import Markup, join, tag
from dlcompiler.views.render.scene import Scene, scene_html
from dlcompiler_widgets.explorer import blocks
from dlcompiler_widgets.explorer.kernels import SCENES
from dlcompiler_widgets.explorer.measured import ladder_picture, roofline_picture
from dlcompiler_widgets.explorer.status import status_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

NO_GPU = "it is about the warps and multiprocessors of a GPU"
NO_ACCELERATOR = "it is about the engines and memories of an accelerator"


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
    why_not: str = ""
    """Why it has nothing to show for a target to which it does not apply."""
    group: str = ""
    """Label of the tab under which it stands with others; empty: it has one of its own."""

    @property
    def title(self) -> str:
        """What the tab shows."""
        return self.text


def _nest(session: Session) -> Mapping[str, Any]:
    return nest_scene(session.tree)


def _memory(session: Session) -> Mapping[str, Any]:
    return memory_scopes(session.schedule, session.args, session.target, session.chosen)


def _cache(session: Session) -> Mapping[str, Any]:
    return session.caches.model(session)


def _loops(session: Session) -> PrimFunc:
    func = session.lowered(session.schedule.node, "loops")
    if isinstance(func, DLCompilerError):
        raise func
    return func


def _space(session: Session) -> Mapping[str, Any]:
    return iteration_space(_loops(session), session.tree, session.chosen)


def _dependences(session: Session) -> Mapping[str, Any]:
    return dependence_scene(_loops(session), session.tree, session.chosen)


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


def _has_caches(session: Session) -> bool:
    """Tell whether the caches of the target can be simulated: those of one core of a CPU."""
    return bool(session.target.caches) and not _has_threads(session)


def _has_threads(session: Session) -> bool:
    """Tell whether loops can be bound to threads of the target, or are bound already."""
    if session.target.accelerator is not None:
        return False  # its only threads are virtual ones, which are no more when it runs
    return bool(session.target.thread_axes) or uses_threads(session.schedule.state)


def _is_accelerator(session: Session) -> bool:
    return session.target.accelerator is not None


def _of_accelerator(name: str) -> Callable[[Session], Mapping[str, Any]]:
    """Return what draws a picture of the program on the accelerator."""
    return lambda session: session.accelerators.picture(session, name)


def _is_gpu(session: Session) -> bool:
    return session.target.device == "gpu"


def _of_kernel(name: str) -> Callable[[Session], Mapping[str, Any]]:
    """Return what draws a picture of the kernel with the chosen loop."""
    return lambda session: session.kernels.picture(session, SCENES[name])


def _scene_of(model: Mapping[str, Any]) -> Scene:
    scene: Scene = model["scene"]
    return scene


_ACCELERATOR: dict[str, Any] = {
    "kind": "cycles", "applies": _is_accelerator, "why_not": NO_ACCELERATOR, "group": "Accelerator",
}  # fmt: skip
_KERNEL: dict[str, Any] = {"applies": _is_gpu, "why_not": NO_GPU, "group": "Kernel"}

PICTURES: dict[str, Picture] = {
    "nest": Picture("Loop nest", _nest),
    "memory": Picture(
        "Memory scopes", _memory, applies=_has_memories, why_not="it has one memory and no caches"
    ),
    "cache": Picture(
        "Cache", _cache, applies=_has_caches,
        why_not="only the caches of a CPU are simulated, without threads of a GPU",
    ),
    "space": Picture("Iteration space", _space, kind="space", still=iteration_scene),
    "dependences": Picture("Dependences", _dependences),
    "block": Picture(
        "Thread block", _block, kind="block", still=blocks.still, applies=_has_threads,
        why_not="it has no threads that loops could be bound to",
    ),
    "timeline": Picture("Timeline", _of_accelerator("timeline"), **_ACCELERATOR),
    "chip": Picture("Memories on the chip", _of_accelerator("chip"), **_ACCELERATOR),
    "coalescing": Picture("Coalescing", _of_kernel("coalescing"), **_KERNEL),
    "banks": Picture("Banks", _of_kernel("banks"), **_KERNEL),
    "occupancy": Picture("Occupancy", _of_kernel("occupancy"), **_KERNEL),
    "waves": Picture("Waves", _of_kernel("waves"), **_KERNEL),
    "ladder": Picture("Ladder", ladder_picture, kind="states", still=_scene_of),
    "roofline": Picture("Roofline", roofline_picture, kind="states", still=_scene_of),
    "stages": Picture("Stages", _stages),
    "axes": Picture("Axes", _axes),
    "off": Picture("Off", lambda session: {}, kind="off"),
}  # fmt: skip


def pictures_of(session: Session) -> dict[str, Picture]:
    """Return the pictures that apply to the target and the program of a session."""
    return {name: picture for name, picture in PICTURES.items() if picture.applies(session)}


def why_no_picture(session: Session, name: str) -> ScheduleError | None:
    """Return why a picture has nothing to show for a session; None if it has."""
    picture = PICTURES[name]
    if picture.applies(session):
        return None
    target = session.target.name
    return ScheduleError(
        f"show {picture.title}", f"there is none for {target}", because=picture.why_not
    )


def still(session: Session, name: str) -> Scene | DLCompilerError:
    """Return the static picture of a tab; if it cannot be drawn, the error."""
    picture = PICTURES[name]
    try:
        model = picture.draw(session)
        if model.get("is_pending"):
            session.wait_for_pictures()
            model = picture.draw(session)
        return picture.still(model)
    except DLCompilerError as error:
        return error


def still_html(scene: Scene | DLCompilerError, *, is_open: bool = False) -> Markup:
    """Return the HTML of a picture with its table; if it cannot be drawn, the reason."""
    if not isinstance(scene, DLCompilerError):
        return scene_html(scene, is_open=is_open)
    status = status_of(scene)
    lines = [f"{label}: {value}" for label, value in status.details]
    return join(tag("p", None, status.text), *(tag("p", None, line) for line in lines))
