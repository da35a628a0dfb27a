"""Profile A: the RTL of VTA of 2019, with one memory port for one burst at a time.

An instruction takes what its state machine does step by step: a GEMM 4 cycles and an ALU operation
5 or 6 cycles a micro-op, a store 3 cycles a vector, zeros around a load as long as data.

**Source:** measured on the RTL of apache/tvm-vta, commit 91026e7, in a Verilog simulator with an
ideal memory (no rows, no refresh): docs/VTA.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dlcompiler.simulate.accelerators.timing.events import ACT, ARBITRATE, NEVER, SERVE
from dlcompiler.simulate.accelerators.timing.fetching import Fetch, pieces
from dlcompiler.simulate.accelerators.timing.machine import Machine
from dlcompiler.simulate.accelerators.work import Work

BURST_BEATS = 256
"""Beats of a burst at most."""
CLIENTS = ("fetch", "uop", "inp", "wgt", "acc")
"""Those that read memory, by priority: the first that asks is served first."""
LAUNCH = 1
"""Cycle in which the first instructions are requested."""
AFTER_DISPATCH = 2
"""Cycles from the last dispatch of a chunk to the request of the next one."""
READ_SETUP = 4
"""Cycles of a read burst besides its beats: choose a client, address, memory, first data."""
WRITE_SETUP = 3
"""Cycles of a write burst besides its vectors: command, address, acknowledgement."""
GEMM_CYCLES, GEMM_DRAIN = 4, 6
"""Cycles of a micro-op, and until the last result of several is written."""
ALU_IMMEDIATE_CYCLES, ALU_REGISTER_CYCLES = 5, 6


class Profile2019:
    """The rules of profile A."""

    def __init__(self, machine: Machine) -> None:
        accelerator = machine.program.accelerator
        self._machine = machine
        self._bus = accelerator.port.bytes_per_cycle
        self._element_bytes = {each.name: each.dram_bytes for each in accelerator.memories}
        self._port = port = _Port(machine, accelerator.port.latency)
        word_beats = _ceil(accelerator.word_bits // 8, self._bus)

        def read(time: int, count: int, then: Callable[[int], None]) -> None:
            port.read(time, 0, count * word_beats, then)

        self._fetch = Fetch(machine, AFTER_DISPATCH, read)

    def launch(self) -> None:
        """Request the first instructions."""
        self._fetch.at(LAUNCH)

    def begin(self, step: int, time: int) -> None:
        """Run an instruction that starts at a cycle."""
        machine = self._machine
        work = machine.works[step]
        kind = work.instruction.kind
        if kind == "finish" or work.is_nop:
            machine.finish(step, time + 1)
        elif kind == "load":
            self._load(step, time, *self._bursts(work))
        elif kind == "store":
            self._store(step, time, list(self._write_bursts(work)), 0)
        else:
            machine.finish(step, time + _compute_cycles(work))

    def _bursts(self, work: Work) -> tuple[int, list[tuple[int, int]], int]:
        """Return the client of a load, its bursts, and the cycles of zeros after the last one.

        A burst is (cycles of zeros before it, beats).
        """
        fields, name = work.fields, work.instruction.memory
        client = CLIENTS.index(name) if name in CLIENTS else len(CLIENTS)
        if name == "uop":
            # One row only, whatever the instruction says.
            return client, [(0, n) for n in _uop_bursts(fields["x_size"], self._bus)], 0
        left = self._beats(name, fields.get("x_pad_0", 0))
        right = self._beats(name, fields.get("x_pad_1", 0))
        data = self._beats(name, fields["x_size"])
        row = left + data + right
        # The state machine goes through the zeros of a side at each burst, not at each row.
        sizes = list(pieces(data, BURST_BEATS)) * fields["y_size"]
        bursts = [(right + left, piece) for piece in sizes]
        bursts[0] = (fields.get("y_pad_0", 0) * row + left, sizes[0])
        return client, bursts, right + fields.get("y_pad_1", 0) * row

    def _beats(self, memory: str, count: int) -> int:
        """Return the beats of some elements; a beat has several if they are small."""
        size = self._element_bytes[memory]
        return (
            count * _ceil(size, self._bus) if size >= self._bus else _ceil(count * size, self._bus)
        )

    def _load(
        self, step: int, time: int, client: int, bursts: list[tuple[int, int]], after: int
    ) -> None:
        machine, port = self._machine, self._port
        count, index = len(bursts), 0

        def proceed(time: int) -> None:
            nonlocal index
            while index < count:
                zeros, beats = bursts[index]
                index += 1
                time += zeros
                end = port.read_alone(time, beats)
                if end is None:
                    if zeros:
                        machine.events.at(time, ACT, port.read, time, client, beats, proceed, step)
                    else:
                        port.read(time, client, beats, proceed, step)
                    return
                time = end
            machine.finish(step, time + after)

        proceed(time)

    def _write_bursts(self, work: Work) -> Iterator[int]:
        """Yield the cycles of each burst of a store, besides its setup."""
        beats = self._beats(work.instruction.memory, 1)
        most = max(BURST_BEATS // beats, 1)
        for _ in range(work.fields["y_size"]):
            for vectors in pieces(work.fields["x_size"], most):
                yield vectors * (1 + beats)  # read the vector, then send its beats

    def _store(self, step: int, time: int, bursts: list[int], index: int) -> None:
        if index == len(bursts):
            self._machine.finish(step, time)
            return

        def written(end: int) -> None:
            self._store(step, end, bursts, index + 1)

        self._port.write(time, bursts[index], written, step)


class _Port:
    """One port for reads and writes, one burst at a time.

    A read is chosen when the reader is idle, and asks the memory one cycle later. A write asks one
    cycle after its command. Where both ask in the same cycle, the read is served first.
    """

    def __init__(self, machine: Machine, latency: int) -> None:
        self._machine = machine
        self._events = machine.events
        self._latency = latency
        self._reader_free = 0
        self._memory_free = 0
        self._reads: dict[int, tuple[int, int, Callable[[int], None], int]] = {}
        self._at_memory: list[tuple[int, bool, int, Callable[[int], None], int]] = []

    def read(
        self, time: int, client: int, beats: int, then: Callable[[int], None], step: int = -1
    ) -> None:
        """Request a burst; ``then`` is called with the first cycle after its last beat."""
        self._reads[client] = (time, beats, then, step)
        if self._reader_free != NEVER:
            when = max(time, self._reader_free)
            self._events.at(when, ARBITRATE, self._choose, when)

    def read_alone(self, time: int, beats: int) -> int | None:
        """Serve a burst at once if nothing else happens until it begins.

        Returns the first cycle after its last beat, or None if others could be served before.
        """
        if (
            self._reads or self._at_memory or self._events.next_time() <= time + 1
            or self._reader_free > time or self._memory_free > time + 1
        ):  # fmt: skip
            return None
        end = time + READ_SETUP + self._latency + beats
        self._reader_free = self._memory_free = end
        return end

    def write(self, time: int, cycles: int, then: Callable[[int], None], step: int) -> None:
        """Write a burst; ``then`` is called with the first cycle after its acknowledgement."""
        self._at_memory.append((time + 1, True, cycles, then, step))
        when = max(time + 1, self._memory_free)
        self._events.at(when, SERVE, self._serve, when)

    def _choose(self, time: int) -> None:
        if time < self._reader_free or not self._reads:
            return
        requested, beats, then, step = self._reads.pop(min(self._reads))
        if step >= 0:
            self._machine.port_wait[step] += time - requested
        self._reader_free = NEVER
        self._at_memory.append((time + 1, False, beats, then, step))
        when = max(time + 1, self._memory_free)
        self._events.at(when, SERVE, self._serve, when)

    def _serve(self, time: int) -> None:
        if time < self._memory_free:
            return
        asking = [each for each in self._at_memory if each[0] <= time]
        if not asking:
            return
        first = min(asking, key=lambda each: each[1])
        self._at_memory.remove(first)
        asked, is_write, size, then, step = first
        if step >= 0:
            self._machine.port_wait[step] += time - asked
        setup = WRITE_SETUP if is_write else READ_SETUP + self._latency
        end = time - 1 + setup + size  # it was asked for in the cycle before
        self._memory_free = end
        events = self._events
        events.at(end, ACT, then, end)
        if not is_write:
            self._reader_free = end
            events.at(end, ARBITRATE, self._choose, end)
        if self._at_memory:
            events.at(end, SERVE, self._serve, end)


def _compute_cycles(work: Work) -> int:
    """Return the cycles of a GEMM or ALU instruction."""
    updates = work.updates
    if work.instruction.kind == "tensor":
        # A single update ends without waiting for its result: a fault of this RTL.
        drain = 0 if work.fields.get("reset") or updates == 1 else GEMM_DRAIN
        return GEMM_CYCLES * updates + drain
    if work.fields.get("use_imm"):
        return ALU_IMMEDIATE_CYCLES * updates
    return ALU_REGISTER_CYCLES * updates


def _uop_bursts(count: int, bus: int) -> Iterator[int]:
    """Yield the beats of the bursts of a load of micro-ops.

    Beats are counted from 0. A counter of what is left after a full burst ends the load at 0, so a
    single beat that is left over is not read.
    """
    last = _ceil(4 * count, bus) - 1
    while last >= BURST_BEATS:
        yield BURST_BEATS
        last -= BURST_BEATS
        if not last:
            return
    yield last + 1


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)
