"""Pictures of the program of a state on an accelerator: its timeline, and its memories.

A background thread builds the state, and simulates when each instruction runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import build
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.views.device.accelerator_memories import memories_scene
from dlcompiler.views.device.timeline import timeline_scene
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer.background import Background

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Scenes = Mapping[str, Scene]


class Accelerators(Background[tuple[str, str], Scenes]):
    """The pictures of programs, by the id of the state and the name of the target."""

    def __init__(self) -> None:
        super().__init__("accelerators")

    def picture(self, session: Session, name: str) -> Mapping[str, Any]:
        """Return the picture of a tab for the current state; ``is_pending`` until it is there.

        Raises
        ------
        DLCompilerError
            The state is no program of the accelerator.
        """
        node, target = session.schedule.node, session.target
        self.leave((node.id, target.name))
        there, args = session.schedule.fork("simulated"), session.args

        def draw(_: object) -> Scenes:
            kernel = build(there, args, target, session.name)
            assert isinstance(kernel, AcceleratorKernel)
            if not kernel.report().runs:
                raise ScheduleError(
                    f"show what {target.name} does", "it runs no part of this program",
                    because="no buffer is in one of its memories",
                    expected=", ".join(scope.name for scope in target.scopes[1:]),
                    hint="s[stage].set_scope(…), for copies of the inputs and for the result",
                )  # fmt: skip
            return {
                "timeline": timeline_scene(kernel.timeline()),
                "chip": memories_scene(kernel.memories()),
            }

        found = self.get((node.id, target.name), draw)
        return _PENDING if found is None else found[name]


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
