"""The predicted times of the states on the way to the current one, for the history of a GPU.

A background thread describes one state after another, the latest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlcompiler.errors import DLCompilerError
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.schedule import Node
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.views.history.predicted import Predicted, predicted_parts
from dlcompiler_widgets.explorer.background import Background

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Key = tuple[str, str]


class Predictions(Background[Key, tuple[Predicted | None]]):
    """The predicted times that are known, by the id of the state and the name of the target."""

    def __init__(self) -> None:
        super().__init__("predictions")
        self._found: dict[Key, Predicted | None] = {}

    def of(self, session: Session) -> dict[str, Predicted]:
        """Return what is known, by the id of the state, and have the next state described.

        States that cannot be lowered to kernels have no time. When another time is known,
        `on_ready` is called.
        """
        found = self.known(session)
        if session.target.device != "gpu":
            return found
        for node in reversed(session.schedule.node.path()):
            key = (node.id, session.target.name)
            if key not in self._found and not self._describe(session, node, key):
                break
        return self.known(session)

    def known(self, session: Session) -> dict[str, Predicted]:
        """Return what is known, by the id of the state; nothing is begun for another state."""
        name = session.target.name
        if session.target.device != "gpu":
            return {}
        self._add_current(session)
        return {state: time for (state, target), time in self._found.items()
                if target == name and time is not None}  # fmt: skip

    def _add_current(self, session: Session) -> None:
        """Take the time of the current state from its kernels, if they are described."""
        key = (session.schedule.node.id, session.target.name)
        if key in self._found:
            return
        try:
            kernels = session.kernels.of(session, patience_s=0.0)
        except DLCompilerError:
            self._found[key] = None
            return
        if kernels is not None:
            self._found[key] = predicted_parts(kernels, session.target.name)

    def _describe(self, session: Session, node: Node, key: Key) -> bool:
        """Tell whether the time of a state is known; if not, begin to find it out."""
        if node is session.schedule.node:
            return False  # its kernels are being described
        if not uses_threads(node.state):
            self._found[key] = None
            return True
        there = session.schedule.fork("predicted")
        there.jump(node.id)
        args, target, name = session.args, session.target, session.name

        def describe(_: object) -> Predicted | None:
            try:
                kernels = kernels_of(lower_program(there, args, target, name), target)
            except DLCompilerError:
                return None
            return predicted_parts(kernels, target.name)

        known = self.get(key, lambda c: (describe(c),), patience_s=0.0)
        if known is None:
            return False
        self._found[key] = known[0]
        return True
