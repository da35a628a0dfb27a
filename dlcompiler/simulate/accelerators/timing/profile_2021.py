"""Profile B: the pipelined RTL of VTA of 2021, whose memory takes several requests at a time.

A GEMM takes a cycle a micro-op and an ALU operation one or two, after filling a pipeline. Requests
of reads queue up, so that only the first of them waits for the memory's latency. Zeros around a
load are written in cycles in which none of its data arrives. Writes do not delay reads.

**Source:** measured on the RTL of apache/tvm-vta, commit 36a9157 (Pynq shell, bus of 64 bits), in a
Verilog simulator with an ideal memory: docs/VTA.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping

from dlcompiler.simulate.accelerators.timing.events import ACT, ARBITRATE
from dlcompiler.simulate.accelerators.timing.fetching import Fetch, pieces
from dlcompiler.simulate.accelerators.timing.machine import Machine
from dlcompiler.simulate.accelerators.work import Work

BURST_BEATS = 256
"""Beats of a request at most; rows are split where the address is a multiple of their bytes."""
LARGEST_BURST = 4096
"""Bytes of a request at most, which AXI forbids to cross a multiple of them [byte]."""
OUTSTANDING = 16
"""Requests without all their data at most."""
CLIENTS = ("fetch", "uop", "inp", "wgt", "acc")
"""Those that read memory, by priority."""
LAUNCH = 2
"""Cycle in which the first request for instructions is queued."""
AFTER_DISPATCH = 3
"""Cycles from the last dispatch of a chunk to the queueing of the next request."""
FETCHED = 1
"""Cycles from the last beat of instructions to the first dispatch."""
UOPS_LOADED, VECTORS_LOADED = 2, 3
"""Cycles from the last beat of micro-ops or vectors, or the last zeros, to the end of a load."""
WRITE_SETUP = 3
"""Cycles of a write burst besides its vectors."""
PIPELINE = 6
"""Cycles from the last micro-op to the end of a GEMM or ALU instruction."""
ALU_REGISTER_CYCLES = 2
"""Cycles of a micro-op that reads two accumulators."""


class Profile2021:
    """The rules of profile B."""

    def __init__(self, machine: Machine) -> None:
        accelerator = machine.program.accelerator
        self._machine = machine
        self._bus = accelerator.port.bytes_per_cycle
        self._burst_bytes = min(BURST_BEATS * self._bus, LARGEST_BURST)
        self._element_bytes = {each.name: each.dram_bytes for each in accelerator.memories}
        self._port = port = _Port(machine, accelerator.port.latency)

        word_bytes = accelerator.word_bits // 8

        def read(time: int, count: int, then: Callable[[int], None]) -> None:
            bursts = list(pieces(-(-count * word_bytes // self._bus), BURST_BEATS))
            port.read(time, 0, bursts, lambda data: then(data[-1][1] + FETCHED))

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
            self._load(step, time, work)
        elif kind == "store":
            machine.finish(step, time + self._store_cycles(work))
        else:
            immediate = kind == "tensor" or work.fields.get("use_imm")
            cycles = work.updates * (1 if immediate else ALU_REGISTER_CYCLES)
            machine.finish(step, time + cycles + PIPELINE)

    def _load(self, step: int, time: int, work: Work) -> None:
        machine, fields, name = self._machine, work.fields, work.instruction.memory
        element = self._element_bytes[name]
        client = CLIENTS.index(name) if name in CLIENTS else len(CLIENTS)
        beats = [self._beats(address, size) for address, size in self._row_pieces(work, element)]
        if name == "uop":

            def loaded(data: list[tuple[int, int]]) -> None:
                machine.finish(step, data[-1][1] + UOPS_LOADED)

            self._port.read(time + 1, client, beats, loaded, step)
            return

        zeros = _zero_cycles(fields)

        def padded(data: list[tuple[int, int]]) -> None:
            last = max(data[-1][1], _last_zero(time, zeros, data))
            machine.finish(step, last + VECTORS_LOADED)

        # The row above the data is begun before the first request.
        begin = time + 2 if fields.get("y_pad_0") else time + 1
        self._port.read(begin, client, beats, padded, step)

    def _row_pieces(self, work: Work, element: int) -> Iterator[tuple[int, int]]:
        """Yield the address and the size of each request [byte]."""
        fields = work.fields
        address, size = fields["dram_base"] * element, fields["x_size"] * element
        for _ in range(fields["y_size"]):
            start, end = address, address + size
            while start < end:
                piece = min(end, start + self._burst_bytes - start % self._burst_bytes)
                yield start, piece - start
                start = piece
            address += fields["x_stride"] * element

    def _beats(self, address: int, size: int) -> int:
        return -(-(address % self._bus + size) // self._bus)

    def _store_cycles(self, work: Work) -> int:
        element = self._element_bytes[work.instruction.memory]
        vector = 1 + -(-element // self._bus)  # read the vector, then send its beats
        return sum(
            WRITE_SETUP + vector * (size // element) for _, size in self._row_pieces(work, element)
        )


class _Port:
    """Reads that queue up at a memory with one path for data, in the order of the requests.

    Each client has a place for one request, which is free again in the cycle after the request was
    issued. One request is issued a cycle, but none in the cycle of the last beat of another one. A
    request that finds none waiting at the memory waits for its latency.
    """

    def __init__(self, machine: Machine, latency: int) -> None:
        self._machine = machine
        self._events = machine.events
        self._latency = latency
        self._clients: dict[int, _Client] = {}
        self._waiting: dict[int, int] = {}
        """Client -> the first cycle in which its request can be issued."""
        self._last_beats: deque[int] = deque()
        self._first_beat = self._end = -1
        """Of the request that was issued last: its first beat, and its last one."""
        self._next_issue = 0

    def read(
        self,
        time: int,
        client: int,
        beats: list[int],
        then: Callable[[list[tuple[int, int]]], None],
        step: int = -1,
    ) -> None:
        """Request bursts one after another; ``then`` gets the first and last beat of each."""
        self._clients[client] = _Client(beats, then, step)
        self._events.at(time, ACT, self._queue, client, time)

    def _queue(self, client: int, time: int) -> None:
        self._waiting[client] = time + 1
        self._events.at(time + 1, ARBITRATE, self._issue, time + 1)

    def _issue(self, time: int) -> None:
        """Issue the request of the first client that has one, and the next ones if all is quiet."""
        waiting, events = self._waiting, self._events
        while waiting:
            if time < self._next_issue:
                return
            if (possible := self._possible_from(time)) > time:
                self._next_issue = possible
                events.at(possible, ARBITRATE, self._issue, possible)
                return
            ready = [client for client, since in waiting.items() if since <= time]
            if not ready:
                return
            client = min(ready)
            since = waiting.pop(client)
            self._serve(client, time, since)
            self._next_issue = time + 1
            request = self._clients[client]
            if request.is_done:
                request.then(request.data)
                time += 1
            elif waiting or events.next_time() <= time + 2:
                events.at(time + 1, ACT, self._queue, client, time + 1)
                time += 1
            else:
                # Nobody else can ask before the next request of this client is issued.
                waiting[client] = time + 2
                time += 2
                continue
            if waiting:
                events.at(time, ARBITRATE, self._issue, time)
            return

    def _possible_from(self, time: int) -> int:
        """Return the first cycle from `time` on in which a request may be issued."""
        last_beats = self._last_beats
        while True:
            while last_beats and last_beats[0] < time:
                last_beats.popleft()
            if last_beats and (last_beats[0] == time):
                time += 1
            elif len(last_beats) >= OUTSTANDING:
                time = last_beats[0] + 1
            else:
                return time

    def _serve(self, client: int, time: int, since: int) -> None:
        """Give a request its beats: the memory serves requests in the order of their issue."""
        request = self._clients[client]
        arrival = time + 1
        beats = request.beats[len(request.data)]
        undisturbed = arrival + self._latency + 1
        first = self._end + 1
        if arrival > self._first_beat:  # no request waits at the memory
            first = max(first, undisturbed)
        if request.step >= 0:
            wait = time - since
            if not request.data:
                wait += max(first - undisturbed, 0)
            self._machine.port_wait[request.step] += wait
        self._first_beat, self._end = first, first + beats - 1
        self._last_beats.append(self._end)
        request.data.append((first, self._end))


class _Client:
    """What a client reads: the beats of its requests, and when they come."""

    def __init__(
        self, beats: list[int], then: Callable[[list[tuple[int, int]]], None], step: int
    ) -> None:
        self.beats = beats
        self.then = then
        self.step = step
        self.data: list[tuple[int, int]] = []

    @property
    def is_done(self) -> bool:
        """Tell whether all requests were issued."""
        return len(self.data) == len(self.beats)


def _zero_cycles(fields: Mapping[str, int]) -> int:
    """Return the cycles that the zeros around a load take; [clock].

    They are written one a cycle, row by row. A row without any takes a cycle, too, if a row with
    some follows.
    """
    top, bottom = fields.get("y_pad_0", 0), fields.get("y_pad_1", 0)
    sides = fields.get("x_pad_0", 0) + fields.get("x_pad_1", 0)
    width = fields["x_size"] + sides
    rows = max(sides, 1) if bottom else sides
    return top * width + rows * fields["y_size"] + bottom * width


def _last_zero(time: int, zeros: int, data: list[tuple[int, int]]) -> int:
    """Return the cycle of the last zeros, which begin at `time` and are not written with data."""
    if not zeros:
        return -1
    for first, last in data:
        if first > time:
            free = first - time
            if zeros <= free:
                return time + zeros - 1
            zeros -= free
        time = max(time, last + 1)
    return time + zeros - 1
