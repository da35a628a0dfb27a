"""What is known of the kernels of a state, for pictures, advice and the history of GPU targets.

A background thread lowers the state and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.target import Target
from dlcompiler.views.device.banks import banks_scene
from dlcompiler.views.device.coalescing import coalescing_scene
from dlcompiler.views.device.occupancy import occupancy_scene
from dlcompiler.views.device.waves import waves_scene
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer.background import Background
from dlcompiler_widgets.explorer.blocks import launch_number, machine_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Facts = tuple[KernelFacts, ...]
Draw = Callable[[KernelFacts, Target, str], Scene]


class Kernels(Background[tuple[str, str], Facts]):
    """The kernels that were described, by the id of the state and the name of the target."""

    def __init__(self) -> None:
        super().__init__("kernels")

    def of(self, session: Session, patience_s: float | None = None) -> Facts | None:
        """Return the kernels of the current state; None until they are described.

        Raises
        ------
        DLCompilerError
            The state cannot be lowered to kernels, or their counts depend on symbols or data.
        """
        node, target = session.schedule.node, session.target
        self.leave((node.id, target.name))
        there, args, name = session.schedule.fork("described"), session.args, session.name

        def describe(_: object) -> Facts:
            return tuple(kernels_of(lower_program(there, args, target, name), target))

        return self.get((node.id, target.name), describe, patience_s)

    def picture(self, session: Session, draw: Draw) -> Mapping[str, Any]:
        """Return a picture of the kernel with the chosen loop; ``is_pending`` until it is there."""
        found = self.of(session)
        if found is None:
            return _PENDING
        func = session.lowered(session.schedule.node, "loops")
        number = 0 if isinstance(func, DLCompilerError) else launch_number(session, func)
        kernel = found[number] if number < len(found) else found[-1]
        return draw(kernel, session.target, machine_of(session.target))


def _coalescing(kernel: KernelFacts, _: Target, machine: str) -> Scene:
    return coalescing_scene(kernel, machine)


def _banks(kernel: KernelFacts, _: Target, machine: str) -> Scene:
    return banks_scene(kernel, machine)


SCENES: dict[str, Draw] = {
    "coalescing": _coalescing,
    "banks": _banks,
    "occupancy": occupancy_scene,
    "waves": waves_scene,
}
"""What draws each picture, by the name of its tab."""
_PENDING: Mapping[str, Any] = {
    "title": "The kernel, simulated",
    "summary": "The accesses of the kernel are being counted …",
    "how_to_read": "the picture comes when they are counted.",
    "width": 364.0,
    "height": 20.0,
    "marks": [],
    "table": {"columns": ["access"], "rows": []},
    "is_pending": True,
}
