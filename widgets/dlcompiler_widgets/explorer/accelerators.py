"""Pictures of the program of a state on an accelerator: its timeline, and its memories.

A background thread builds the state, simulates when each instruction runs, and draws the cycles
that are shown. Both pictures show the same cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.codegen import Source
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline import build
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.views.device.accelerator_memories import memories_scene
from dlcompiler.views.device.cycle_picture import LEFT, RIGHT, WIDTH
from dlcompiler.views.device.timeline import timeline_scene
from dlcompiler.views.loops.line_keys import source_lines
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler_widgets.explorer.background import Background
from dlcompiler_widgets.explorer.remembered import Remembered
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]
Window = tuple[int, int]
"""The first cycle that is shown, and the one before which the picture ends; [clock]."""

_REMEMBERED = 4


class Accelerators(Background[tuple[str, str, str, Window | None], Json]):
    """The pictures of programs, by state, target, name of the tab, and cycles that are shown."""

    def __init__(self) -> None:
        super().__init__("accelerators")
        self._window: tuple[str, Window] | None = None
        """The id of a state, and the cycles that are shown of it; of others, all are."""
        self._kernels: Remembered[tuple[str, str], AcceleratorKernel] = Remembered(_REMEMBERED)
        """Used by the background thread only."""
        self._built: tuple[tuple[str, str], AcceleratorKernel] | None = None
        """The kernel that was used last, by the id of the state and the name of the target."""
        self._drawn: tuple[tuple[str, str, str], Json] | None = None
        """The picture that was returned last, and what it is of, but for the cycles."""

    def open(self, session: Session, args: Mapping[str, Any]) -> None:
        """Show the cycles from ``first`` to ``last``, or all of them."""
        match args:
            case {"first": int(first), "last": int(last)} if 0 <= first < last:
                self._window = session.schedule.node.id, (first, last)
                session.status = Status(f"Shown: cycles {first:,} to {last:,}.")
            case _ if not args:
                self._window = None
                session.status = Status("Shown: all cycles.")
            case _:
                raise ScheduleError(
                    "show some cycles", "the cycles are not in order", got=repr(dict(args)),
                    expected="0 <= first < last",
                )  # fmt: skip

    def generated(self, session: Session) -> tuple[Source, PrimFunc] | None:
        """Return the code and the loop IR of the current state if its picture is open, or known."""
        key = session.schedule.node.id, session.target.name
        if self._last is not None and self._last[0][:2] == key:
            self.wait()
        if self._built is None or self._built[0] != key:
            return None
        kernel = self._built[1]
        return kernel.generated, kernel.func

    def picture(self, session: Session, name: str) -> Mapping[str, Any]:
        """Return the picture of a tab for the current state; ``is_pending`` until it is there.

        Beside the fields of a `Scene` it has ``state``, the id of the state, and ``window``: the
        cycles that are shown, all cycles, and where the first and the last one are in the picture.
        Marks of an instruction have its ``line`` in the text of instructions.

        Raises
        ------
        DLCompilerError
            The state is no program of the accelerator.
        """
        node, target = session.schedule.node, session.target
        window = self._window[1] if self._window and self._window[0] == node.id else None
        key = (node.id, target.name, name, window)
        self.leave(key)
        there, args = session.schedule.fork("simulated"), session.args

        def make() -> AcceleratorKernel:
            kernel = build(there, args, target, session.name)
            assert isinstance(kernel, AcceleratorKernel)
            if not kernel.report().runs:
                raise ScheduleError(
                    f"show what {target.name} does", "it runs no part of this program",
                    because="no buffer is in one of its memories",
                    expected=", ".join(scope.name for scope in target.scopes[1:]),
                    hint="s[stage].set_scope(…), for copies of the inputs and for the result",
                )  # fmt: skip
            return kernel

        def draw(_: object) -> Json:
            kernel = self._kernels.get((node.id, target.name), make)
            self._built = (node.id, target.name), kernel
            return {**_drawn(kernel, name, window), "state": node.id}

        found = self.get(key, draw)
        if found is not None:
            self._drawn = key[:3], found
        elif self._drawn is not None and self._drawn[0] == key[:3]:
            return {**self._drawn[1], "is_pending": True}  # the cycles that were shown before
        return _PENDING if found is None else found


def _drawn(kernel: AcceleratorKernel, name: str, window: Window | None) -> Json:
    """Return a picture of a program in some of its cycles, or in all."""
    timeline, memories = kernel.timeline(), kernel.memories()
    cycles = timeline.cycles
    first, last = window or (0, cycles)
    first, last = min(first, cycles - 1), max(min(last, cycles), 1)
    if window is not None:
        timeline, memories = timeline.between(first, last), memories.between(first, last)
    scene: Scene = timeline_scene(timeline) if name == "timeline" else memories_scene(memories)
    where = {"first": first, "last": last, "cycles": cycles, "left": LEFT, "right": WIDTH - RIGHT}
    return {**scene, "marks": [*_linked(scene["marks"], kernel)], "window": where}


def _linked(marks: Iterable[Mark], kernel: AcceleratorKernel) -> Iterator[Json]:
    """Yield marks with the line of their instruction, and the keys of the loops around it."""
    firsts, line = [], 0
    for program in kernel.parts:
        line += 1  # the title of a part
        if program is not None:
            firsts.append(line)
            line += len(program)
    lines, line_of = source_lines(kernel.func), statement_lines(kernel.func)
    runs = kernel.report().runs
    for mark in marks:
        if "instruction" not in mark:
            yield {**mark}
            continue
        part, number = mark["instruction"]
        place = line_of.get(id(runs[part].program.steps[number].origin), 0)
        around = lines[place - 1].within if place else ()
        keys = dict.fromkeys([*mark.get("keys", ()), *around])
        yield {**mark, "line": firsts[part] + number + 1, "keys": [*keys]}


_PENDING: Mapping[str, Any] = {
    "title": "The accelerator, simulated",
    "summary": "The program is being built and simulated …",
    "how_to_read": "the picture comes when this is done.",
    "width": 364.0,
    "height": 20.0,
    "marks": [],
    "table": {"columns": ["engine"], "rows": []},
    "is_pending": True,
}
