"""The picture of a block of threads; a background thread records the block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import For, PrimFunc
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.pipeline.gpu_report import counters_of
from dlcompiler.simulate.gpu import KernelCounters
from dlcompiler.simulate.gpu.counters import WARP
from dlcompiler.simulate.recording import BlockRecording, blocks_of, launches, record_block
from dlcompiler.target import Target
from dlcompiler.views.device.block_costs import Counters
from dlcompiler.views.device.block_map import merged_cells
from dlcompiler.views.device.thread_block import block_view, launch_of
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer.background import Background
from dlcompiler_widgets.explorer.status import Status
from dlcompiler_widgets.explorer.targets import times_of

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
        self._counted: tuple[object, list[KernelCounters] | str] | None = None
        """The counters of the kernels of a state for a target, or why there are none; and which
        these are."""

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
        counters = self._counters(session, func)
        try:
            view = block_view(found, phase, self._buffer, counters)
        except ScheduleError:  # this phase touches other buffers
            view = block_view(found, phase, counters=counters)
        blocks = [{"tag": tag, "count": n, "at": found.block[tag]}
                  for tag, n in found.blocks.items()]  # fmt: skip
        return {**view, "is_pending": False, "blocks": blocks}

    def _counters(self, session: Session, func: PrimFunc) -> Counters:
        """Return the counters of the kernel that is shown, or why there are none."""
        key = session.schedule.node.id, session.target.name
        if self._counted is None or self._counted[0] != key:
            self._counted = key, _counters_of(session)
        found, (launch, number) = self._counted[1], _launch(session, func)
        if isinstance(found, str):
            return Counters(why_not=found)
        if launch is None or len(found) != len(launches(func)):
            return Counters(why_not="the kernels are not those of this picture")
        return Counters(found[number], machine_of(session.target))

    def _recorded(self, session: Session, func: PrimFunc) -> BlockRecording | None:
        launch, number = _launch(session, func)
        counts = blocks_of(launch) if launch else {}
        block = {tag: at for tag, at in self._block.items() if 0 <= at < counts.get(tag, 0)}
        key = (session.schedule.node.id, number, *sorted(block.items()))
        return self.get(key, lambda _: record_block(func, launch, block))


def _launch(session: Session, func: PrimFunc) -> tuple[For | None, int]:
    """Return the launch that contains the chosen loop, and its number; None: there is no launch."""
    launch = launch_of(func, session.chosen)
    return launch, launches(func).index(launch) if launch else 0


def launch_number(session: Session, func: PrimFunc) -> int:
    """Return the number of the launch that contains the chosen loop; 0 if there is none."""
    return _launch(session, func)[1]


def machine_of(target: Target) -> str:
    """Return the GPU whose counters are simulated; a device of this machine may count others."""
    times = times_of(target)
    is_here = times is not None and times.kind == "measured"
    return target.name if not is_here else f"a GPU with warps of {_warp_size(target)} threads"


def _warp_size(target: Target) -> int:
    return target.limits.get("warp_size", WARP)


def _counters_of(session: Session) -> list[KernelCounters] | str:
    """Return the counters of the program's kernels, or why they cannot be counted."""
    if session.target.device != "gpu":
        return f"they are counted for GPUs, and {session.target.name} is none"
    func = session.lowered(session.schedule.node, "final")
    if isinstance(func, DLCompilerError):
        return func.problem
    try:
        return counters_of(split_host_device(func), _warp_size(session.target))
    except DLCompilerError as error:  # a shape is a symbol, or a statement is outside the blocks
        return error.problem


def still(model: Json) -> Scene:
    """Return the static picture, which is stored in notebooks."""
    scene: Scene = model["scene"]
    made: Scene = {**scene, "marks": merged_cells(scene["marks"])}
    made.pop("parts", None)  # the marks are counted anew, and nothing moves the parts
    return made
