"""Widgets for single panes of the workbench, each with a static picture.

A pane follows the schedule that it is given, as the Explorer does: steps made in other cells, in
the Explorer or in another pane show up in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views import history_tree, loop_key, loop_tree, text_table
from dlcompiler.views.history.scene import history_scene
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.moves.advice import AdviceList, advice, advice_table
from dlcompiler.views.render.html import tree_html
from dlcompiler.views.render.markup import Markup, join, tag
from dlcompiler.views.render.scene import Scene, scene_html, table_html
from dlcompiler_widgets.explorer.pictures import PICTURES, still_html
from dlcompiler_widgets.explorer.widget import Workbench
from dlcompiler_widgets.static_output import section


class LoopTree(Workbench):
    """The loop nest of a schedule: an interactive tree; in static pages, nested boxes.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    >>> LoopTree(create_schedule(B.op))
    LoopTree(main on cpu: 1 stage, 2 loops; 0 steps)
    """

    shown_panes = ("tree",)

    def static_parts(self) -> dict[str, Markup]:
        """Return the nest twice: as text with bars, which every front end shows, and as boxes."""
        boxes = scene_html(nest_scene(self._session.tree))
        return {
            "the loop nest": tree_html(self._session.tree),
            "the loop nest as boxes": section("The same as boxes", boxes),
        }


class PicturePane(Workbench):
    """Shows only the picture tabs in ``shown_tabs``, without the other panes."""

    shown_panes = ("picture",)

    def scenes(self) -> list[Scene | DLCompilerError]:
        """Return its static pictures; in place of a picture that cannot be drawn, the error."""
        return [self.still(name) for name in self.shown_tabs["picture"]]

    def static_text(self) -> str:
        """Return the table of each picture under its sentence."""
        with self._locked():
            return "\n".join([repr(self), *map(_plain, self.scenes())])

    def static_parts(self) -> dict[str, Markup]:
        """Return the pictures, each with its table."""
        names = [PICTURES[name].text for name in self.shown_tabs["picture"]]
        drawn = [still_html(scene, is_open=True) for scene in self.scenes()]
        return dict(zip(names, drawn, strict=True))


class LoopPicture(PicturePane):
    """A picture of one iteration of a loop.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    axis : Axis or str, optional
        The loop: an axis that the schedule made or began with, or
        the key of a row in the loop tree, such as ``"C/i.outer"``. By default, the outermost loop.
    args : sequence of Tensor, optional
        Parameters of the function; by default, all inputs and outputs.
    target : str or Target
        What to compile for.
    **options
        Further ones of `Workbench`.

    Raises
    ------
    ScheduleError
        If the schedule has no such loop now.
    """

    def __init__(
        self,
        schedule: Schedule,
        axis: Axis | str | None = None,
        args: Sequence[Tensor] | None = None,
        target: str | Target = "cpu",
        **options: Any,
    ) -> None:
        key = None if axis is None else _key_of(schedule, axis)
        super().__init__(schedule, args, target, **options)
        if key is not None:
            with self._locked():
                self._session.choose({"key": key})
                self._push(None)

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self._session.chosen} of ", 1)


class MemoryScopes(LoopPicture):
    """The memories that hold the data of one iteration, and the traffic between them."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("memory",)}
    first_words = "Choose a loop by a click on a mark."


class IterationSpace(LoopPicture):
    """The elements of each tensor that each iteration of a loop touches, in order."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("space",)}
    first_words = "Step, or play the animation; neither needs the kernel."


class Dependences(LoopPicture):
    """The order that the accesses of a stage must keep: distance vectors, and arrows."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("dependences",)}
    first_words = "Choose a loop to see the dependences that it carries."


class CacheMisses(PicturePane):
    """Hits and misses in the simulated caches of the target, by loop, tensor and level."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("cache",)}
    first_words = "Choose a loop by a click on a bar."


class ThreadBlock(PicturePane):
    """The elements that each thread of a block touches between two barriers, by simulation."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("block",)}
    first_words = "Choose a phase, a buffer and a thread."


class KernelPicture(PicturePane):
    """A picture of the kernel with the chosen loop, on a GPU.

    Parameters
    ----------
    schedule : Schedule
        The schedule; its loops are bound to blocks and threads.
    args : sequence of Tensor, optional
        Parameters of the function; by default, all inputs and outputs.
    target : str or Target
        The GPU; a simulated one needs no device.
    **options
        Further ones of `Workbench`.
    """

    def __init__(
        self,
        schedule: Schedule,
        args: Sequence[Tensor] | None = None,
        target: str | Target = "gpu",
        **options: Any,
    ) -> None:
        super().__init__(schedule, args, target, **options)


class Coalescing(KernelPicture):
    """The sectors of global memory that the lanes of a warp touch, for each access of a kernel."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("coalescing",)}
    first_words = "Choose a stage of the kernel by a click on an access."


class Banks(KernelPicture):
    """The banks of shared memory that the lanes of a warp hit, and what padding would change."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("banks",)}
    first_words = "Choose a stage of the kernel by a click on an access."


class Occupancy(KernelPicture):
    """The blocks that each resource of a multiprocessor has room for, and what more would cost."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("occupancy",)}
    first_words = "The shortest bar is the limit."


class AcceleratorPicture(PicturePane):
    """A picture of the program on an accelerator.

    Parameters
    ----------
    schedule : Schedule
        The schedule; its stages are in the memories of the accelerator.
    args : sequence of Tensor, optional
        Parameters of the function; by default, all inputs and outputs.
    target : str or Target
        The accelerator, which is simulated.
    **options
        Further ones of `Workbench`.
    """

    def __init__(
        self,
        schedule: Schedule,
        args: Sequence[Tensor] | None = None,
        target: str | Target = "vta-pynq",
        **options: Any,
    ) -> None:
        super().__init__(schedule, args, target, **options)


class Timeline(AcceleratorPicture):
    """When each engine of an accelerator runs its instructions, and what it waits for."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("timeline",)}
    first_words = "Choose a stage by a click on a bar."


class ChipMemories(AcceleratorPicture):
    """Which values lie where in the memories of an accelerator, and how long."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("chip",)}
    first_words = "Choose a stage by a click on a value."


class Waves(KernelPicture):
    """The waves in which the blocks of a kernel run on the multiprocessors, and their tail."""

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("waves",)}
    first_words = "The last column is the tail."


class ScheduleGraph(PicturePane):
    """The dataflow between the stages, and the splits and fusions that made a stage's loops.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64,), name="A")
    >>> B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    >>> print(ScheduleGraph(create_schedule(B.op)).static_text().splitlines()[1])
    1 input, 1 computed stage: 0 inside a loop of a reader, 0 inlined.
    """

    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"picture": ("stages", "axes")}
    first_words = "Choose a stage or a loop by a click on its box."


class HistoryTree(Workbench):
    """The states of a schedule: go to a state, name it, add a note, or compare two states."""

    shown_panes = ("history", "compare")
    first_words = "Go to a state by a click, or with the arrow keys and Enter."

    def static_text(self) -> str:
        """Return the states as a table."""
        with self._locked():
            return f"{self!r}\n{_plain(self._scene())}"

    def static_parts(self) -> dict[str, Markup]:
        """Return the states as a graph of versions, and as a table."""
        return {"the states": scene_html(self._scene(), is_open=True)}

    def _scene(self) -> Scene:
        predicted = self._session.predictions.of(self._session)
        return history_scene(history_tree(self.schedule.history, predicted=predicted))


class Advice(Workbench):
    """Advice on a schedule: which loop is slow, why, and which step to try."""

    shown_panes = ("advice",)
    first_words = "Click on advice to choose its loop; a button applies the step."

    def _found(self) -> AdviceList:
        session = self._session
        return advice(self.schedule, session.args, session.target)

    def static_text(self) -> str:
        """Return the advice as a table."""
        with self._locked():
            found = self._found()
        table = advice_table(found)
        rows = text_table(table["columns"], table["rows"])
        return f"{self!r}\n{found['summary']}\n{rows}"

    def static_parts(self) -> dict[str, Markup]:
        """Return the advice as a table."""
        found = self._found()
        table = advice_table(found)
        rows = table_html(table["columns"], table["rows"])
        return {"the advice": join(tag("p", None, found["summary"]), rows)}


def _key_of(schedule: Schedule, axis: Axis | str) -> str:
    """Return the key that a loop has in the loop tree."""
    keys = {row["key"] for row in loop_tree(schedule)["rows"] if row["type"] == "loop"}
    if isinstance(axis, str):
        wanted = [axis]
    else:
        stages = [stage for stage in schedule.state.stages if axis in stage.leaves]
        wanted = [loop_key(stage.name, stage.paths[axis]) for stage in stages]
    found = next((key for key in wanted if key in keys), None)
    if found is None:
        raise ScheduleError(
            "show a loop",
            "there is no such loop now",
            got=f"axis {axis.name}" if isinstance(axis, Axis) else repr(axis),
            expected=", ".join(sorted(keys)),
            hint="give one of the axes that the last step returned, or a key of the loop tree"
            + _about_tensors(axis),
        )
    return found


def _about_tensors(axis: object) -> str:
    """Return what a hint adds where tensors stand in the place of a loop."""
    return "; tensors are a later argument: args=[…]" if isinstance(axis, list | tuple) else ""


def _plain(scene: Scene | DLCompilerError) -> str:
    if isinstance(scene, DLCompilerError):
        return str(scene)
    return f"{scene['summary']}\n{text_table(scene['table']['columns'], scene['table']['rows'])}"
