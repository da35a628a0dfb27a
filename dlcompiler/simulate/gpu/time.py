"""Predict how long a kernel takes on a GPU, term by term, from what its warps execute.

The model is analytic: it is made of counts of the program (`counters`), the occupancy, and rates
and latencies of the GPU with a source each (`dlcompiler.target.gpu_rates`). Nothing is fitted to
measured times. ``docs/GPU_TIME.md`` has the formulas and says where the model is wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.ir import Buffer, For, Var
from dlcompiler.simulate.gpu.counters import WARP, Given, KernelCounters, count_launch
from dlcompiler.simulate.gpu.occupancy import Occupancy
from dlcompiler.simulate.gpu.program import OneThread
from dlcompiler.simulate.gpu.resources import Resources
from dlcompiler.simulate.gpu.time_demand import Demand, demand_of, spill
from dlcompiler.simulate.gpu.time_phases import Phase, Read, phases_of, read_phase
from dlcompiler.simulate.gpu.time_queues import clocks_together
from dlcompiler.simulate.gpu.transactions import SECTOR_BYTES
from dlcompiler.target import Target

FORMULAS = {
    "issue": "instructions of warps / schedulers",
    "shared and L1": "passes of shared memory + lines or sectors of L1; threads / units if more",
    "L2 port": "bytes between L1 and L2 / bytes a clock of a multiprocessor's port",
    "L2": "bytes between L1 and L2 / bytes a clock of the L2 cache",
    **dict.fromkeys(
        ("tensor cores", "tensor cores, int8"),
        "products of float16, or as many TF32 · 2 or int8 / 2, / products a clock",
    ),
    "DRAM": "bytes between L2 and memory / (peak rate · fraction that copies reach)",
}
"""How the term of a resource is computed; of other resources: operations / lanes."""
OF_SCHEDULERS = (
    *("issue", "float32", "float16", "float64", "integer", "special", "convert"),
    *("tensor cores", "tensor cores, int8"),
)
"""Resources of which each scheduler of a multiprocessor has a part of its own."""
_RATE_OF = {"shared and L1": "l1", "issue": "schedulers", "L2 port": "l2_port", "L2": "l2",
            "DRAM": "dram"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """What a kernel would take if one resource alone limited it."""

    name: str
    seconds: float
    """[s]"""
    formula: str
    source: str
    """Where the rate in the formula comes from."""

    def to_dict(self) -> dict[str, Any]:
        """Return the term as values that ``json`` can write."""
        return {"name": self.name, "seconds": self.seconds, "formula": self.formula,
                "source": self.source}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The predicted time of a kernel, in its parts."""

    seconds: float
    """All of it [s]."""
    least_s: float
    """If every cache kept all it could, at the highest clock [s]."""
    most_s: float
    """If no cache kept anything, at the lowest clock [s]."""
    terms: tuple[Term, ...]
    """Resources, the one that binds first. They overlap: they do not add up."""
    latency_s: float
    """Waiting for results and for other warps that the work of the resource that binds does not
    hide [s]."""
    tail_s: float
    """What the last blocks add, which do not fill all multiprocessors [s]."""
    launch_s: float
    """What starting the kernel adds [s]."""
    waves: float
    """Blocks, over those that run at once [1]."""
    l1_hits: float
    """Fraction of the loads of global memory that L1 answers [1]."""
    dram_bytes: tuple[float, float, float]
    """Bytes between L2 and memory: as predicted, at least, at most [byte]."""

    @property
    def bound_by(self) -> str:
        """What takes the greatest part of the time: a resource, or ``"latency"``."""
        return self._in_order[0]

    @property
    def next_bound(self) -> str:
        """What would take it if that were free."""
        return self._in_order[1]

    @property
    def _in_order(self) -> list[str]:
        parts = {term.name: term.seconds for term in self.terms}
        parts |= {"latency": self.latency_s, "tail": self.tail_s, "launch": self.launch_s}
        return sorted(parts, key=lambda name: -parts[name])

    def to_dict(self) -> dict[str, Any]:
        """Return the time as values that ``json`` can write."""
        predicted, least, most = self.dram_bytes
        return {
            "seconds": self.seconds, "least_s": self.least_s, "most_s": self.most_s,
            "terms": [term.to_dict() for term in self.terms],
            "latency_s": self.latency_s, "tail_s": self.tail_s, "launch_s": self.launch_s,
            "waves": self.waves, "bound_by": self.bound_by, "next_bound": self.next_bound,
            "l1_hits": self.l1_hits,
            "dram_bytes": {"predicted": predicted, "least": least, "most": most},
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A kernel, cut into phases, and what is known of each."""

    phases: tuple[tuple[KernelCounters, Read], ...]
    blocks: int
    """Blocks of all launches [1]."""
    threads: int
    """Threads of a block [1]."""
    launches: int
    """How often the kernel is started [1]."""


def count_phases(
    thread: OneThread, given: Given, *, loops: Sequence[For] = (), is_merged: bool = True,
    warp_size: int = WARP,
) -> Counted:  # fmt: skip
    """Count what a kernel executes between its barriers.

    Parameters
    ----------
    thread
        What one thread does: see `dlcompiler.passes.merge_thread_loops`.
    given
        Values of symbols, and arrays.
    loops
        Loops of the host around the launch.
    is_merged
        Whether the compiler merges neighbouring loads of shared memory: see `merging`.
    warp_size
        Threads of a warp. [1]
    """
    phases = phases_of(thread)
    counted = [
        (count_launch(phase, loops=loops, given=given, is_merged=is_merged, warp_size=warp_size),
         read_phase(phase, given.numbers, loops))
        for phase in phases
    ]  # fmt: skip
    if not counted:
        nothing = Phase(thread.axes, thread.extents, thread.shared, thread.body)
        counted = [(count_launch(nothing, loops=loops, given=given), Read())]
    first, read = counted[0]
    of_launch = math.prod(read.blocks.values())
    return Counted(tuple(counted), first.blocks, first.threads,
                   max(first.blocks // max(of_launch, 1), 1))  # fmt: skip


def predict(
    counted: Counted, target: Target, occupancy: Occupancy, needs: Resources,
    constant: Iterable[Buffer] = (),
) -> KernelTime | None:  # fmt: skip
    """Predict the time of a kernel; None if the target has no rates, or no block fits.

    Parameters
    ----------
    counted
        The kernel.
    target
        The GPU.
    occupancy
        How many of its blocks a multiprocessor runs at once.
    needs
        Its shared memory, and what it spills.
    constant
        Arrays that are in constant memory.
    """
    if not target.rates or not occupancy.blocks:
        return None
    likely, least, most = (
        _Machine(target, occupancy, needs, tuple(constant), clock).run(counted, caches)
        for clock, caches in (("clock", "likely"), ("clock_most", "all"), ("clock_least", "none"))
    )
    dram = tuple(each.dram_bytes[0] for each in (likely, least, most))
    times = sorted(each.seconds for each in (likely, least, most))
    return KernelTime(
        likely.seconds, times[0], times[-1], likely.terms, likely.latency_s, likely.tail_s,
        likely.launch_s, likely.waves, likely.l1_hits, (dram[0], min(dram), max(dram)),
    )  # fmt: skip


class _Machine:
    """A GPU, on which each multiprocessor has room for some blocks of a kernel."""

    def __init__(
        self, target: Target, occupancy: Occupancy, needs: Resources,
        constant: tuple[Buffer, ...], clock: str,
    ) -> None:  # fmt: skip
        self.target = target
        self.rates = {name: rate.value for name, rate in target.rates.items()}
        self.rates["clock"] = self.rates[clock if clock in self.rates else "clock"]
        self.resident = occupancy.blocks
        self.processors = target.cores
        self.constant = constant
        l1, l2 = (target.cache_bytes(level) for level in (0, 1))
        is_one = target.limit("shared_bytes_per_processor") <= l1  # L1 and shared memory
        self.l1_bytes = l1 - (needs.shared_bytes * occupancy.blocks if is_one else 0)
        self.spill_bytes = needs.spill_bytes
        self.l2_bytes = l2

    def run(self, counted: Counted, caches: str) -> KernelTime:
        """Return the time with caches that keep what is likely, ``all`` they could, or ``none``."""
        blocks = max(counted.blocks / counted.launches, 1)
        resident = min(self.resident, math.ceil(blocks / self.processors))
        at_once = min(resident * self.processors, blocks)
        l1_bytes = {"likely": self.l1_bytes / resident, "all": math.inf, "none": 0.0}[caches]
        demands = [
            demand_of(counters, read, self.rates, l1_bytes, self.constant)
            for counters, read in counted.phases
        ]
        l2_bytes = sum(demand.l2_bytes for demand in demands) * blocks
        kept = {"likely": self.l2_bytes, "all": math.inf, "none": 0.0}[caches]
        reads = [read for _, read in counted.phases]
        dram = min(_dram_bytes(reads, kept, at_once, blocks), l2_bytes)
        spill_misses = 0.0
        if self.spill_bytes:
            spill(demands, counted.phases, self.spill_bytes, self.rates, l1_bytes)
            spill_misses = max(1 - kept / (self.spill_bytes * counted.threads * at_once), 0.0)
        missing = dram / l2_bytes if l2_bytes else 0.0
        return self._time(counted, demands, (missing, spill_misses), blocks)

    def _time(
        self, counted: Counted, demands: list[Demand], misses: tuple[float, float], blocks: float
    ) -> KernelTime:
        """Return the time if L2 misses some parts of the bytes of arrays, and of spilled values."""
        rates = self.rates
        active = min(self.processors, blocks)
        dram_clock = rates["dram"] * rates["dram_fraction"] / rates["clock"]
        missing, dram = misses[0], 0.0
        for demand in demands:
            bytes_ = demand.l2_bytes + demand.spilled_bytes
            beyond = demand.l2_bytes * missing + demand.spilled_bytes * misses[1]
            demand.clocks["L2"] = bytes_ / (rates["l2"] / active)
            demand.clocks["DRAM"] = beyond / (dram_clock / active)
            dram += beyond * blocks
        busy: dict[str, float] = defaultdict(float)
        for demand in demands:
            for name, clocks in demand.clocks.items():
                busy[name] += clocks
        bound = max(busy.values(), default=0.0)

        warps = max(counted.phases[0][0].warps, 1)

        def clocks_of(resident: int) -> float:
            barriers = rates["barrier"] * sum(d.instances for d in demands) * (len(demands) > 1)
            return barriers + sum(_clocks(d, rates, missing, resident, warps) for d in demands)

        full, rest = divmod(blocks, self.resident * self.processors)
        last = clocks_of(math.ceil(rest / self.processors)) if rest else 0.0
        wave = clocks_of(self.resident)
        clocks = full * wave + last
        ideal = bound * blocks / self.processors
        tail = max(last - wave * rest / (self.resident * self.processors), 0.0)
        second = counted.launches / rates["clock"]
        terms = [
            Term(name, n * blocks / active * second,
                 FORMULAS.get(name, "operations of threads / lanes"), self._source(name))
            for name, n in busy.items()
        ]  # fmt: skip
        launch = rates["launch"] * second
        return KernelTime(
            clocks * second + launch, 0.0, 0.0,
            tuple(sorted(terms, key=lambda term: -term.seconds)),
            max(clocks - tail - ideal, 0.0) * second, tail * second, launch,
            blocks / (self.resident * self.processors),
            _mean([demand.hit_fraction for demand in demands if demand.l2_bytes]),
            (dram * counted.launches, 0.0, 0.0),
        )  # fmt: skip

    def _source(self, name: str) -> str:
        rate = self.target.rates.get(_RATE_OF.get(name, name))
        return rate.source if rate else ""


def _clocks(
    demand: Demand, rates: Mapping[str, float], missing: float, blocks: int, warps: int
) -> float:
    """Return the clocks of a phase of some blocks that a multiprocessor runs at once.

    Blocks that start together get equal shares of each resource, so they go through their phases
    together: all their warps share the resources. A scheduler has a part of the warps; the unit
    that its warps need most keeps its other units waiting.
    """
    n = max(demand.instances, 1)
    together, of_scheduler = blocks * warps, blocks * warps / rates["schedulers"]
    inside = [c for name, c in demand.clocks.items() if name in OF_SCHEDULERS]
    own = max(inside, default=0.0) / n / warps * rates["schedulers"]
    demands = [(own, of_scheduler)] if own else []
    demands += [(clocks / n / warps, together) for name, clocks in demand.clocks.items()
                if clocks and name not in OF_SCHEDULERS]  # fmt: skip
    waits = _waits(demand, rates, missing) + max(demand.chain - n * own, 0.0)
    return n * clocks_together(demands, waits / n)


def _waits(demand: Demand, rates: Mapping[str, float], missing: float) -> float:
    """Return the clocks in which a warp waits for memory; loads of one round wait together.

    One sector that a cache does not have makes all warps wait that need it, or its neighbours.
    """
    rounds = demand.rounds.get("global", 0.0)
    missed = demand.missed / max(rounds, 1.0)
    latency = rates["l1_latency"] + min(missed, 1.0) * rates["l2_latency"]
    latency += min(missed * missing, 1.0) * rates["dram_latency"]
    return rounds * latency + demand.rounds.get("shared", 0.0) * rates["shared_latency"]


# -- the second level cache -----------------------------------------------------------------------


def _wave(blocks: Mapping[Var, int], at_once: float) -> dict[Var, int]:
    """Return how many blocks along each axis run at once: they start in order, x first."""
    found, left = {}, max(at_once, 1.0)
    for var, extent in blocks.items():
        found[var] = max(min(extent, math.ceil(left)), 1)
        left /= max(extent, 1)
    return found


def _dram_bytes(reads: Sequence[Read], kept: float, at_once: float, blocks: float) -> float:
    """Return the bytes between L2 and memory of one launch.

    Each sector is stored once. The cache keeps what the blocks that run at once touch in their
    innermost loops, as many as it has room for, or what all blocks touch.
    """
    stored = sum(_of_arrays(reads, None, 0, is_write=True).values()) * SECTOR_BYTES
    everything = sum(_of_arrays(reads, None, 0, is_write=False).values()) * SECTOR_BYTES
    if everything <= kept:
        return stored + everything
    waves = max(blocks / max(at_once, 1.0), 1.0)
    depth = max((len(r.loops) for read in reads for r in read.reaches), default=0)
    total = math.inf
    for level in range(depth + 1):
        held = _of_arrays(reads, at_once, level, is_write=False)
        repeated = _of_arrays(reads, at_once, level, is_write=False, is_total=True)
        total = waves * sum(repeated.values()) * SECTOR_BYTES
        if sum(held.values()) * SECTOR_BYTES <= kept:
            return stored + max(total, everything)
    return math.inf if kept == 0 else stored + max(total, everything)


def _of_arrays(
    reads: Sequence[Read], at_once: float | None, level: int, *, is_write: bool,
    is_total: bool = False,
) -> dict[Buffer, float]:  # fmt: skip
    """Return the sectors of each array that all blocks, or those of a wave, touch in some loops."""
    found: dict[Buffer, float] = defaultdict(float)
    for read in reads:
        blocks = read.blocks if at_once is None else _wave(read.blocks, at_once)
        for reach in read.reaches:
            if reach.space != "global" or reach.is_write != is_write:
                continue
            inner = {loop.var: loop.extent for loop in reach.loops[level:]}
            sectors = read.touched(reach, {**blocks, **read.threads, **inner})
            times = math.prod(loop.extent for loop in reach.loops[:level]) if is_total else 1
            found[reach.buffer] = max(found[reach.buffer], sectors * times)
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
