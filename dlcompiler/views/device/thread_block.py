"""Simulate which elements each thread of a block touches in a phase, between two barriers.

The numbers come from the interpreter, which runs one block on inputs of zeros
(`dlcompiler.simulate.recording`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from dlcompiler import dtypes
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import For, PrimFunc, Store, walk
from dlcompiler.pipeline import lower
from dlcompiler.schedule import Schedule
from dlcompiler.simulate.recording import (
    BlockRecording,
    Phase,
    Touch,
    launches,
    record_block,
)
from dlcompiler.te import Tensor
from dlcompiler.views.device.block_costs import UNCOUNTED, Costs, Counters, cost_sentence, costs_of
from dlcompiler.views.device.block_map import draw_map, threads_in_order, words_of
from dlcompiler.views.device.block_phases import (
    draw_timeline,
    phase_text,
    rounds,
    shown_phases,
    times,
)
from dlcompiler.views.loops.line_keys import keys_of
from dlcompiler.views.render.scene import Cell, Mark, Scene, beside
from dlcompiler.views.render.units import format_bytes

HOW_TO_READ = (
    "left are the threads of the block, each in the colour of the first element that it touches "
    "in the marked phase. Right are the elements, each in the colour of the first thread that "
    "touches it. The first is dark, the last is light: threads of one colour begin with the same "
    "element. The list has the phases in order, with the barriers between them."
)
_COLUMNS = (
    "phase", "times", "buffer", "access", "threads", "elements", "elements per thread",
    "bytes per thread", "accesses",
)  # fmt: skip


class Choice(TypedDict):
    """One option of a list: its key and its text."""

    key: str
    text: str


class ThreadBlock(TypedDict):
    """The view of one phase of a block and one buffer that it touches."""

    scene: Scene
    phases: list[Choice]
    buffers: list[Choice]
    """Buffers of the chosen phase that can be drawn: ``A.shared r``."""
    threads: list[Choice]
    """The threads, each with a description of the elements that it touches."""
    phase: int
    """Number of the chosen phase, from 0."""
    buffer: str
    """Key of the chosen buffer; '' if the phase touches only private buffers of the threads."""
    costs: Costs
    """Counters of the accesses to the chosen buffer."""


def thread_block(
    schedule: Schedule,
    args: Sequence[Tensor],
    *,
    block: Mapping[str, int] | None = None,
    phase: int | None = None,
    buffer: str | None = None,
) -> Scene:
    """Return the picture of what the threads of one block touch in a phase.

    Parameters
    ----------
    schedule
        The schedule, at the state to show; loops are bound to threads of a block.
    args
        Parameters of the function: inputs first, outputs last.
    block
        Which block: ``{"blockIdx.x": 1}``; by default, the first.
    phase
        Which phase, from 0; by default, the first that reads shared memory.
    buffer
        What of it: ``"A.shared r"``, or ``"A.shared w"`` for what is written; by default, the
        first that is shared.

    Raises
    ------
    DLCompilerError
        If the state cannot be lowered, the block cannot be recorded (`record_block` says when), or
        there is no such phase or buffer.
    """
    recording = record_block(lower(schedule, args, simple_mode=True), None, block)
    return block_view(recording, phase, buffer)["scene"]


def launch_of(func: PrimFunc, key: str | None) -> For | None:
    """Return the launch that contains a loop or stage, by its key; by default, the last launch."""
    known = launches(func)
    stage = (key or "").partition("/")[0]
    own = (launch for launch in known if any(stage in keys_of(n) for n in walk(launch)
           if isinstance(n, For | Store)))  # fmt: skip
    return next(own, known[-1] if known else None)


def block_view(
    recording: BlockRecording,
    phase: int | None = None,
    buffer: str | None = None,
    counters: Counters = UNCOUNTED,
) -> ThreadBlock:
    """Return the view of a recorded block.

    Parameters
    ----------
    recording
        The block.
    phase, buffer
        As of `thread_block`.
    counters
        Counters of the kernel that the block is of.
    """
    number = _first_phase(recording) if phase is None else phase
    if not 0 <= number < len(recording.phases):
        expected = f"0 to {len(recording.phases) - 1}"
        raise ScheduleError("draw a block", "there is no such phase", got=phase, expected=expected)
    drawable = {_key(t): t for t in recording.phases[number].touches
                if t.buffer not in recording.private}  # fmt: skip
    if buffer is not None and buffer not in drawable:
        raise ScheduleError(
            "draw a block", f"phase {number} does not touch that", got=repr(buffer),
            expected=", ".join(drawable) or "none: each thread touches only memory of its own",
        )  # fmt: skip
    chosen = buffer or min(drawable, key=lambda key: _preference(drawable[key]), default="")
    touch = drawable.get(chosen)
    return {
        "scene": _scene(recording, number, touch, cost_sentence(touch, counters.kernel)),
        "phases": [{"key": str(n), "text": phase_text(recording, n)}
                   for n in range(len(recording.phases))],
        "buffers": [{"key": key, "text": f"{t.buffer.name}, {'written' if t.is_write else 'read'}"}
                    for key, t in drawable.items()],
        "threads": [{"key": f"t{n}", "text": words_of(recording, touch, thread)}
                    for n, thread in enumerate(threads_in_order(recording.threads))]
                   if touch else [],
        "phase": number,
        "buffer": chosen,
        "costs": costs_of(touch, counters),
    }  # fmt: skip


def _key(touch: Touch) -> str:
    return f"{touch.buffer.name} {'w' if touch.is_write else 'r'}"


def _preference(touch: Touch) -> tuple[bool, bool]:
    """Return a sort key that puts reads of shared memory first."""
    return touch.buffer.scope != "shared", touch.is_write


def _first_phase(recording: BlockRecording) -> int:
    """Return the first phase that reads shared memory, else one with non-private buffers."""

    def rank(phase: Phase) -> tuple[bool, ...]:
        shared = [t for t in phase.touches if t.buffer not in recording.private]
        return min(map(_preference, shared), default=(True, True, True))

    return min(range(len(recording.phases)), key=lambda n: rank(recording.phases[n]))


def _scene(recording: BlockRecording, number: int, touch: Touch | None, cost: str) -> Scene:
    parts: list[tuple[float, float, list[Mark]]] = []
    if touch is not None:
        marks, width, bottom = draw_map(recording, touch)
        parts.append((width + 4, bottom + 8, marks))
    parts.append(draw_timeline(recording, number))
    return {
        "title": "Threads of a block",
        "summary": " ".join(filter(None, (_summary(recording, number, touch), cost))),
        "how_to_read": HOW_TO_READ,
        **beside(*parts),
        "table": {"columns": list(_COLUMNS), "rows": _rows(recording)},
    }


def _summary(recording: BlockRecording, number: int, touch: Touch | None) -> str:
    x, y, z = recording.threads
    size = f"{x} × {y}" + (f" × {z}" if z > 1 else "")
    virtual = f", each running {recording.vthreads} virtual ones" if recording.vthreads > 1 else ""
    where = ", ".join(f"{tag} = {at}" for tag, at in recording.block.items())
    head = f"Simulated: {size} threads" + (f" of the block {where}" if where else "") + virtual
    what = phase_text(recording, number)
    if touch is None:
        return f"{head}; {what}: each thread touches only memory of its own or of its warp."
    counts = _per_thread(touch)
    verb = "writes" if touch.is_write else "reads"
    each = f"{_between(counts)} {'element' if max(counts) == 1 else 'elements'}"
    size = format_bytes(max(counts) * _bytes(touch))
    some = "each" if len(counts) == x * y * z else f"each of {len(counts)} of them"
    return (
        f"{head}; {what}: {some} {verb} {each} of {touch.buffer.name} ({size})"
        f"{_neighbours(recording, touch)}."
    )


def _neighbours(recording: BlockRecording, touch: Touch) -> str:
    """Describe the distance between the first elements that neighbouring threads touch."""
    first = {thread: offsets[0] for thread, offsets in touch.by_thread.items()}
    apart = {
        at - first[x - 1, y, z] for (x, y, z), at in first.items() if (x - 1, y, z) in first
    }  # fmt: skip
    if len(apart) != 1:
        return (
            ""
            if not apart
            else "; neighbours along threadIdx.x touch elements at varying distances"
        )
    (distance,) = apart
    names = {0: "touch the same element", 1: "touch elements side by side"}
    order = "" if distance > 0 else ", in reverse order"
    text = names.get(distance, f"touch elements {abs(distance):,} apart{order}")
    return f"; neighbours along threadIdx.x {text}"


def _rows(recording: BlockRecording) -> list[list[Cell]]:
    parts = rounds(recording.phases)
    return [
        [
            number + 1, times(parts, number), touch.buffer.name,
            "writes" if touch.is_write else "reads", len(touch.by_thread),
            _elements(recording, touch), _between(_per_thread(touch)),
            max(_per_thread(touch)) * _bytes(touch), sum(map(len, touch.by_thread.values())),
        ]
        for number in shown_phases(parts)
        for touch in recording.phases[number].touches
    ]  # fmt: skip


def _elements(recording: BlockRecording, touch: Touch) -> int:
    """Return how many elements the threads touch; for a private buffer, how many each one does."""
    if touch.buffer in recording.private:
        return sum(_per_thread(touch))
    return len({at for offsets in touch.by_thread.values() for at in offsets})


def _per_thread(touch: Touch) -> list[int]:
    return [len(set(offsets)) for offsets in touch.by_thread.values()]


def _between(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _bytes(touch: Touch) -> int:
    return dtypes.bytes_of(touch.buffer.dtype)
