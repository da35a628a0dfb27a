"""The picture of simulated caches; a background thread simulates.

A simulation is cancelled when the schedule moves to another state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import PrimFunc
from dlcompiler.measurement.inputs import drawn, valid_indices
from dlcompiler.pipeline.cache_simulation import MOST_ACCESSES, Cancellation, simulate_program
from dlcompiler.pipeline.reuse_distances import reuse_distances
from dlcompiler.simulate.cache.inputs import deciding_inputs
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.memory.cache_scene import cache_scene
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer.background import Background

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

_SEED = 0
"""Of the inputs that are drawn: each simulation of a program has the same."""


class Caches(Background[str, Scene]):
    """The simulations that were asked for, by the id of the state."""

    def __init__(self) -> None:
        super().__init__("caches")

    def model(self, session: Session) -> Mapping[str, Any]:
        """Return the picture of the current state; ``is_pending`` until it is simulated."""
        node = session.schedule.node
        func = session.lowered(node, "loops")
        if isinstance(func, DLCompilerError):
            raise func
        self.leave(node.id)
        scene = self.get(node.id, lambda c: _simulated(func, session.args, session.target, c))
        return _PENDING if scene is None else scene


def _simulated(
    func: PrimFunc, args: Sequence[Tensor], target: Target, cancellation: Cancellation
) -> Scene:
    inputs = _inputs(func, args)
    found = simulate_program(func, target, MOST_ACCESSES, cancellation, inputs)
    return cache_scene(found, reuse_distances(func, target, inputs=inputs))


def _inputs(func: PrimFunc, args: Sequence[Tensor]) -> dict[str, npt.NDArray[Any]]:
    """Return random values for the inputs that decide what the program accesses."""
    wanted = deciding_inputs(func)
    if not wanted:
        return {}
    indices = valid_indices(func.name, args, _SEED)
    places = {buffer: n for n, buffer in enumerate(func.buffers) if buffer in wanted}
    return {
        buffer.name: np.asarray(indices.get(n, drawn("random", args[n], _SEED + n)))
        for buffer, n in places.items()
    }


_PENDING: Mapping[str, Any] = {
    "title": "Caches, simulated",
    "summary": "The caches are being simulated …",
    "how_to_read": "the picture comes when the simulation is ready.",
    "width": 364.0,
    "height": 20.0,
    "marks": [],
    "table": {"columns": ["level"], "rows": []},
    "is_pending": True,
}
