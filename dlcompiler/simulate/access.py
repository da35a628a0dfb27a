"""Loads and stores of the interpreter: bounds checks, and checks by the shadow memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from dlcompiler.ir import Buffer
from dlcompiler.ir.printer import format_loop
from dlcompiler.simulate.memory import LoopRun, Memory, Site, State, Task, Thunk


@dataclass(frozen=True)
class Access:
    """A load or a store of a statement, with its checks.

    The functions below call its methods only when it is necessary, so that most accesses are fast.
    """

    state: State
    site: Site
    memory: Memory
    indices: tuple[Thunk, ...]
    is_write: bool = False

    def observe(self, offsets: list[int]) -> None:
        """Report the access to the observer, if there is one."""
        observer, state = self.state.observer, self.state
        if observer is not None:
            observer.access(self.memory.buffer, offsets, state.task, is_write=self.is_write)

    def note_read(self, offset: int) -> None:
        """Check and record a read of an element that the running task has not accessed yet."""
        writers, readers = self.memory.writers, self.memory.readers
        writer, reader = writers[offset], readers[offset]
        if writer is None:
            element = self.element(offset)
            self.site.fail(
                "uninitialised",
                f"{element[0]} is read before it is written",
                buffer=self.memory.buffer.name,
                index=element[1],
            )
        if other := _concurrent(writer):
            self.fail_race(
                offset, *other, because="one iteration writes the element, another reads it"
            )
        if reader is None or _concurrent(reader) is None:
            readers[offset] = self.state.task

    def note_reads(self, offsets: list[int]) -> None:
        """Check and record the reads of a vector load."""
        task, writers, readers = self.state.task, self.memory.writers, self.memory.readers
        for offset in offsets:
            if writers[offset] is not task and readers[offset] is not task:
                self.note_read(offset)

    def note_writes(self, offsets: list[int]) -> None:
        """Check and record the writes of a vector store; two lanes must not write one element."""
        task, writers = self.state.task, self.memory.writers
        if len(set(offsets)) < len(offsets):
            twice = next(offset for offset in offsets if offsets.count(offset) > 1)
            text, index = self.element(twice)
            self.site.fail(
                "race",
                f"race on {text} between two lanes",
                buffer=self.memory.buffer.name,
                index=index,
                because="both lanes write the element",
            )
        for offset in offsets:
            if writers[offset] is not task:
                self.note_write(offset)

    def note_write(self, offset: int) -> None:
        """Check and record a write of an element that the running task has not written."""
        writers = self.memory.writers
        writer, reader = writers[offset], self.memory.readers[offset]
        if writer is not None and (other := _concurrent(writer)):
            self.fail_race(offset, *other, because="both iterations write the element")
        if reader is not None and (other := _concurrent(reader)):
            self.fail_race(
                offset, *other, because="one iteration reads the element, another writes it"
            )
        writers[offset] = self.state.task

    def fail_race(self, offset: int, run: LoopRun, iteration: int, because: str) -> NoReturn:
        """Raise the error for an access that conflicts with one by another iteration of `run`."""
        # The iteration of `run` that contains the running task.
        here = self.state.task
        while here.run is not run:
            assert here.run is not None, "a concurrent run encloses the running task"
            here = here.run.parent
        name, (text, index) = run.loop.var.name, self.element(offset)
        self.site.fail(
            "race",
            f"race on {text} between iterations {name}={iteration} and {name}={here.iteration}",
            buffer=self.memory.buffer.name,
            index=index,
            got=format_loop(run.loop).removesuffix(":"),
            because=because,
        )

    def fail_bounds(self, index: tuple[int, ...]) -> NoReturn:
        """Raise the error for an index outside the buffer."""
        buffer = self.memory.buffer
        place, (value, extent) = next(
            (n, (i, extent))
            for n, (i, extent) in enumerate(zip(index, buffer.shape, strict=True))
            if not 0 <= i < extent
        )
        self.site.fail(
            "out_of_bounds",
            f"{_element_text(buffer, index)} is out of bounds",
            buffer=buffer.name,
            index=index,
            got=f"{value} in dimension {place}",
            expected=f"0 to {extent - 1}" if extent else "no index: the dimension is empty",
        )

    def element(self, offset: int) -> tuple[str, tuple[int, ...]]:
        """Return the element that the access uses at an offset, as text and as indices."""
        buffer = self.memory.buffer
        lanes = np.broadcast_arrays(*(np.atleast_1d(thunk()) for thunk in self.indices))
        for index in zip(*(lane.tolist() for lane in lanes), strict=True):
            if sum(i * stride for i, stride in zip(index, buffer.strides, strict=True)) == offset:
                return _element_text(buffer, index), index
        return f"{buffer.name}[()]", ()


def scalar_offset(access: Access) -> Thunk:
    """Return a function that computes the offset of the element, and raises if out of bounds."""
    offset = _offset(access)
    if access.state.observer is None:
        return offset

    def observed() -> int:
        at: int = offset()
        access.observe([at])
        return at

    return observed


def _offset(access: Access) -> Thunk:
    buffer = access.memory.buffer
    fail = access.fail_bounds
    if len(buffer.shape) == 1:
        (first,), (n,), (step,) = access.indices, buffer.shape, buffer.strides

        def offset1() -> int:
            i = first()
            if not 0 <= i < n:
                fail((i,))
            result: int = i * step
            return result

        return offset1
    if len(buffer.shape) == 2:
        (first, second), (n, m), (step, step2) = access.indices, buffer.shape, buffer.strides

        def offset2() -> int:
            i, j = first(), second()
            if not (0 <= i < n and 0 <= j < m):
                fail((i, j))
            result: int = i * step + j * step2
            return result

        return offset2
    dimensions = list(zip(access.indices, buffer.shape, buffer.strides, strict=True))

    def offset() -> int:
        result = 0
        for thunk, extent, stride in dimensions:
            i = thunk()
            if not 0 <= i < extent:
                fail(tuple(thunk() for thunk in access.indices))
            result += i * stride
        return result

    return offset


def scalar_load(access: Access) -> Thunk:
    """Return a function that loads an element."""
    state, memory, offset = access.state, access.memory, scalar_offset(access)
    data, writers, readers = memory.data, memory.writers, memory.readers
    note_read = access.note_read
    if not memory.is_shadowed:

        def load() -> Any:
            state.loads += 1
            return data[offset()]

        return load

    def shadowed_load() -> Any:
        at = offset()
        task = state.task
        if writers[at] is not task and readers[at] is not task:
            note_read(at)
        state.loads += 1
        return data[at]

    return shadowed_load


def vector_offsets(access: Access) -> Any:
    """Return the offset of each active lane; raise if one is out of bounds."""
    buffer, active = access.memory.buffer, access.state.active
    if active is not None and not active.any():
        return np.zeros(0, np.int64)
    offsets: Any = 0
    for thunk, extent, stride in zip(access.indices, buffer.shape, buffer.strides, strict=True):
        index = thunk()
        if not isinstance(index, np.ndarray):
            is_inside = 0 <= index < extent
        else:
            index = index if active is None else index[active]
            is_inside = index.min() >= 0 and index.max() < extent
        if not is_inside:
            access.fail_bounds(_lane_outside(access, active))
        offsets = offsets + index * stride
    if access.state.observer is not None:
        access.observe(offsets.tolist())
    return offsets


def _lane_outside(access: Access, active: Any) -> tuple[int, ...]:
    """Return the index of the first active lane that is out of bounds."""
    lanes = np.broadcast_arrays(*(np.atleast_1d(thunk()) for thunk in access.indices))
    shape = access.memory.buffer.shape
    inside = [(lane >= 0) & (lane < extent) for lane, extent in zip(lanes, shape, strict=True)]
    wrong = ~np.logical_and.reduce(inside)
    first = np.flatnonzero(wrong if active is None else wrong & active)[0]
    return tuple(int(lane[first]) for lane in lanes)


def vector_load(access: Access) -> Thunk:
    """Return a function that loads an element for each active lane; other lanes get 0."""
    state, memory = access.state, access.memory

    def load() -> Any:
        offsets = vector_offsets(access)
        state.loads += len(offsets)
        if memory.is_shadowed:
            access.note_reads(offsets.tolist())
        values = memory.data[offsets]
        if state.active is None:
            return values
        result = np.zeros(state.active.shape, values.dtype)
        result[state.active] = values
        return result

    return load


def _concurrent(task: Task) -> tuple[LoopRun, int] | None:
    """Return the loop run and the iteration by which `task` is concurrent with the running task.

    None if it is not concurrent. Tasks run depth first. So if an iteration has ended, but its loop
    run has not, the running task is in another iteration of that run.
    """
    while not task.is_open:
        run = task.run
        assert run is not None, "the whole program is never over while it runs"
        if run.is_open:
            return run, task.iteration
        task = run.parent
    return None


def _element_text(buffer: Buffer, index: tuple[int, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(str, index)) or '()'}]"
