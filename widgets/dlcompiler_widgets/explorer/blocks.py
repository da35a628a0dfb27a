"""The picture of a block of threads; a background thread records the block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.pipeline.gpu_report import counters_of
from dlcompiler.simulate.gpu import KernelCounters
from dlcompiler.simulate.recording import BlockRecording, blocks_of, launches, record_block
from dlcompiler.views.device.block_map import merged_cells
from dlcompiler.views.device.thread_block import block_view, launch_of
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer.background import Background
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]


class Blocks(Background[tuple[Any, ...], BlockRecording]):
    """The state of the picture of a block: its choices, and the recorded blocks."""

    def __init__(self) -> None:
        super().__init__("recording")
        self._block: dict[str, int] = {}
        self.phase: int | None = None
        """Number of the chosen phase; None: the default of `block_view`."""
        self._buffer: str | None = None
        self._counted: tuple[object, Sequence[KernelCounters]] | None = None
        """The counters of a state for a target, and which these are."""

    def open(self, session: Session, args: Mapping[str, Any]) -> None:
        """Select a ``phase``, ``buffer`` or ``block``: ``{"tag": "blockIdx.x", "at": 1}``."""
        match args:
            case {"phase": int(phase)}:
                self.phase = phase
            case {"buffer": str(buffer)}:
                self._buffer = buffer
            case {"block": {"tag": str(tag), "at": int(at)}}:
                self._block[tag] = at
            case _:
                raise ScheduleError(
                    "show a block", "the request is malformed", got=repr(dict(args))
                )
        session.status = Status("Shown: the elements that the threads of a block touch.")

    def model(self, session: Session) -> Json:
        """Return the view model of the picture; ``is_pending`` until the block is recorded."""
        func = session.lowered(session.schedule.node, "loops")
        if isinstance(func, DLCompilerError):
            raise func
        found = self._recorded(session, func)
        if found is None:
            return {"is_pending": True}
        is_there = self.phase is not None and 0 <= self.phase < len(found.phases)
        phase = self.phase if is_there else None
        try:
            view = block_view(found, phase, self._buffer, self._counters(session))
        except ScheduleError:  # this phase touches other buffers
            view = block_view(found, phase, counters=self._counters(session))
        blocks = [{"tag": tag, "count": n, "at": found.block[tag]}
                  for tag, n in found.blocks.items()]  # fmt: skip
        return {**view, "is_pending": False, "blocks": blocks}

    def _counters(self, session: Session) -> Sequence[KernelCounters]:
        """Return the counters of the program's kernels; none where they cannot be counted."""
        key = session.schedule.node.id, session.target.name
        if self._counted is None or self._counted[0] != key:
            self._counted = key, _counters_of(session)
        return self._counted[1]

    def _recorded(self, session: Session, func: PrimFunc) -> BlockRecording | None:
        launch = launch_of(func, session.chosen)
        counts = blocks_of(launch) if launch else {}
        block = {tag: at for tag, at in self._block.items() if 0 <= at < counts.get(tag, 0)}
        number = launches(func).index(launch) if launch else None
        key = (session.schedule.node.id, number, *sorted(block.items()))
        return self.get(key, lambda _: record_block(func, launch, block))


def _counters_of(session: Session) -> Sequence[KernelCounters]:
    if session.target.device != "gpu":
        return ()
    func = session.lowered(session.schedule.node, "final")
    if isinstance(func, DLCompilerError):
        return ()
    try:
        return counters_of(split_host_device(func))
    except DLCompilerError:  # a shape is a symbol, or a statement is outside the blocks
        return ()


def still(model: Json) -> Scene:
    """Return the static picture, which is stored in notebooks."""
    scene: Scene = model["scene"]
    return {**scene, "marks": merged_cells(scene["marks"])}
