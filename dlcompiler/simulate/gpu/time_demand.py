"""What a phase of a kernel demands of each resource of a multiprocessor, and how long it waits."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dlcompiler.ir import Buffer
from dlcompiler.simulate.gpu.counters import AccessCounters, KernelCounters
from dlcompiler.simulate.gpu.time_phases import Loop, Reach, Read
from dlcompiler.simulate.gpu.time_values import bodies_of, distinct_loads
from dlcompiler.simulate.gpu.transactions import LINE_BYTES, SECTOR_BYTES, WORD_BYTES
from dlcompiler.simulate.gpu.unrolling import copies_together

MMA = 16 * 8 * 16
"""Products of float16 that a warp's instruction on tensor cores adds up. It takes as long for half
as many of TF32, or twice as many of int8."""
DIVISION = 8
"""Operations on floats that a division is made of, besides one special one; [1]."""
Kept: TypeAlias = Mapping[tuple[Buffer, bool], float]
"""Array, and whether it is stored -> the fraction of its accesses that remain after unrolling."""


@dataclass(slots=True)
class Demand:
    """What one block demands of its multiprocessor in one phase."""

    clocks: dict[str, float] = field(default_factory=dict)
    """Clocks in which each resource is busy, by its name."""
    instances: int = 1
    """How often a block goes through the phase; the rest is the sum of all [1]."""
    rounds: dict[str, float] = field(default_factory=dict)
    """How often a warp waits for ``global`` and for ``shared`` memory."""
    chain: float = 0.0
    """Clocks of operations that wait for one another."""
    issue: float = 0.0
    """Clocks that one warp needs to issue its instructions if nothing keeps it."""
    l2_bytes: float = 0.0
    """Bytes of arrays between L1 and L2 [byte]."""
    spilled_bytes: float = 0.0
    """Bytes of values without a register between L1 and L2 [byte]."""
    missed: float = 0.0
    """Sectors that L1 does not have [1]."""
    hit_fraction: float = 0.0
    """Loads of global memory that L1 answers [1]."""


def demand_of(
    counters: KernelCounters, read: Read, rates: Mapping[str, float], l1_bytes: float,
    constant: Iterable[Buffer] = (),
) -> Demand:  # fmt: skip
    """Return what a block demands in one phase.

    Parameters
    ----------
    counters
        Of the phase, for all blocks.
    read
        What the phase touches.
    rates
        Numbers of the target, see `dlcompiler.target.gpu_rates`.
    l1_bytes
        First level cache for one block; 0: no load is a hit there. [byte]
    constant
        Arrays in constant memory, whose elements are operands of instructions.
    """
    kept = _kept(read, set(constant))
    blocks = max(counters.blocks, 1)
    made = Demand(instances=_instances(read))
    lanes_at_once = rates.get("vector lanes", 1.0)
    width = min(_width(read), lanes_at_once)
    issued = _issued(counters, kept, width) / blocks - read.removed_branches * counters.warps
    issued = max(issued, 0.0)  # guards may leave out some of the branches that are removed
    made.issue = issued / max(counters.warps, 1)
    clocks = made.clocks
    clocks["issue"] = issued / rates["schedulers"]
    for unit, lanes in _arithmetic(counters).items():
        clocks[unit] = lanes * lanes_at_once / width / blocks / rates[unit]
    passes = (_passes(access, rates, counters.warp_size) * _share(access, kept)
              for access in counters.accesses)  # fmt: skip
    clocks["shared and L1"] = sum(passes) / blocks
    made.l2_bytes = _l2_bytes(counters, read, l1_bytes, kept, made) / blocks
    clocks["L2 port"] = made.l2_bytes / rates["l2_port"]
    made.rounds = _rounds(read, kept)
    made.chain = _chain(read, rates)
    return made


def _kept(read: Read, constant: set[Buffer]) -> Kept:
    """Return for each array the fraction of its loads, and stores, that remain after unrolling.

    Of the stores, these are sums in memory: each is stored once, after its last update.
    """
    of: dict[tuple[Buffer, bool], list[Reach]] = defaultdict(list)
    for reach in read.reaches:
        if reach.space != "local" and (reach.is_update or not reach.is_write):
            of[reach.buffer, reach.is_write].append(reach)
    return {key: 0.0 if key[0] in constant else distinct_loads(each) for key, each in of.items()}


def _share(access: AccessCounters, kept: Kept) -> float:
    return kept.get((access.site.buffer, access.site.is_write), 1.0)


def _issued(counters: KernelCounters, kept: Kept, width: float) -> float:
    """Return the instructions of all warps, without those that the compiler removes.

    `width` is the number of elements that one of them computes, on a GPU with vectors.
    """
    total = 0.0
    for kind, (_, most) in counters.instructions.items():
        if kind.startswith(("load ", "store ")):
            continue
        computed = 1.0 if kind in ("branch", "barrier") else width
        total += most.requests / computed * (DIVISION + 1 if kind.endswith(" div") else 1)
    return total + sum(access.most.requests * _share(access, kept) for access in counters.accesses)


def _arithmetic(counters: KernelCounters) -> dict[str, float]:
    """Return the operations of threads by the unit that computes them."""
    lanes: dict[str, float] = defaultdict(float)
    for kind, (_, most) in counters.instructions.items():
        active = counters.warp_size * most.requests
        dtype, _, operation = kind.partition(" ")
        if kind in ("special", "convert", "integer"):
            lanes[kind] += active
        elif operation == "mma":
            unit = "tensor cores, int8" if dtype == "int8" else "tensor cores"
            lanes[unit] += MMA * most.requests
        elif operation == "div":
            lanes[_unit(dtype)] += DIVISION * active
            lanes["special"] += active
        elif operation == "other":
            lanes["integer"] += active
        elif operation in ("add", "mul", "fma"):
            lanes[_unit(dtype)] += active
    return dict(lanes)


def _width(read: Read) -> float:
    """Return how many elements the stores of a phase have, in the mean."""
    stores = [reach for reach in read.reaches if reach.is_write]
    total = sum(reach.executions for reach in stores)
    return sum(reach.lanes * reach.executions for reach in stores) / total if total else 1.0


def _unit(dtype: str) -> str:
    return {"float16": "float16", "bfloat16": "float16", "float64": "float64"}.get(dtype, "float32")


def _passes(access: AccessCounters, rates: Mapping[str, float], warp_size: int) -> float:
    """Return the clocks of an access in the unit of loads and stores.

    Without a rate of shared memory, what threads share is memory like any other.
    """
    most = access.most
    units = most.requests * warp_size / rates["memory_units"]
    if access.space == "global":
        return max(most.lines / rates["lookups"], most.sectors * SECTOR_BYTES / rates["l1"], units)
    return max(most.wavefronts * LINE_BYTES / rates["shared"] if "shared" in rates else 0.0, units)


def _instances(read: Read) -> int:
    """Return how often a block goes through a phase."""
    outside = {id(loop.var): loop.extent for r in read.reaches for loop in r.loops
               if loop.is_outside}  # fmt: skip
    return math.prod(outside.values())


def spill(
    demands: Sequence[Demand], phases: Sequence[tuple[KernelCounters, Read]], bytes_: int,
    rates: Mapping[str, float], l1_bytes: float,
) -> None:  # fmt: skip
    """Add to the demands of a block what it spills.

    A value without a register is stored, and loaded again, in each execution of the code that
    updates most sums. Stores go through to L2; loads find in L1 what there is room for.

    Parameters
    ----------
    demands
        Of the phases, which are changed.
    phases
        Counters of each, and what it touches.
    bytes_
        What a thread spills. [byte]
    rates
        Numbers of the target.
    l1_bytes
        First level cache for one block. [byte]
    """
    found = [(body.sums * body.executions, body.executions, number)
             for number, (_, read) in enumerate(phases) for body in bodies_of(read)]  # fmt: skip
    _, times, number = max(found, default=(0, 1, len(phases) - 1))
    demand, counters = demands[number], phases[number][0]
    stores = bytes_ / WORD_BYTES * counters.warps * times
    each = max(1 / rates["lookups"], counters.warp_size / rates["memory_units"])
    demand.clocks["shared and L1"] += 2 * stores * each
    demand.clocks["issue"] += 2 * stores / rates["schedulers"]
    held = bytes_ * counters.threads
    demand.spilled_bytes = stores * LINE_BYTES * (1 + max(1 - l1_bytes / held, 0.0))
    demand.clocks["L2 port"] += demand.spilled_bytes / rates["l2_port"]


# -- caches ---------------------------------------------------------------------------------------


def _l2_bytes(
    counters: KernelCounters, read: Read, l1_bytes: float, kept: Kept,
    made: Demand,
) -> float:  # fmt: skip
    """Return the bytes that all blocks move between L1 and L2; note the fraction of hits."""
    stored = sum(a.most.sectors * _share(a, kept) for a in counters.accesses if a.site.is_write)
    asked: dict[Buffer, float] = defaultdict(float)
    for access in counters.accesses:
        if not access.site.is_write and access.space == "global":
            asked[access.site.buffer] += access.most.sectors * _share(access, kept)
    missed = misses(read, l1_bytes, asked, counters.blocks)
    total, gone = sum(asked.values()), sum(missed.values())
    made.missed = gone / max(counters.blocks, 1)
    made.hit_fraction = 1 - gone / total if total else 0.0
    return SECTOR_BYTES * (stored + gone)


def misses(
    read: Read, room: float, asked: Mapping[Buffer, float], blocks: int
) -> dict[Buffer, float]:
    """Return the sectors that a block's cache does not have, for each array that is loaded.

    The cache keeps what the threads of the block touch in the innermost loops, as many as it has
    room for; of these loops each sector is loaded once.

    Parameters
    ----------
    read
        What the phase touches.
    room
        Size of the cache for one block. [byte]
    asked
        Sectors that all blocks ask for.
    blocks
        Number of blocks.
    """
    loads = [r for r in read.reaches if not r.is_write and r.space == "global" and asked[r.buffer]]
    depth = max((len(_inside(r)) for r in loads), default=0)
    for level in range(depth + 1):
        held = [_held(r, level, read) for r in loads]
        if SECTOR_BYTES * sum(of for of, _ in _by_array(loads, held).values()) > room:
            continue
        found = {b: of * times * blocks for b, (of, times) in _by_array(loads, held).items()}
        return {b: min(n, asked[b]) for b, n in found.items()}
    return dict(asked)


def _inside(reach: Reach) -> tuple[Loop, ...]:
    return tuple(loop for loop in reach.loops if not loop.is_outside)


def _held(reach: Reach, level: int, read: Read) -> tuple[float, float]:
    """Return the sectors touched in the loops from a level on, and how often these loops run."""
    inside = _inside(reach)
    run = {**read.threads, **{loop.var: loop.extent for loop in inside[level:]}}
    around = [loop.extent for loop in reach.loops if loop.var not in run]
    return read.touched(reach, run), math.prod(around)


def _by_array(
    loads: Sequence[Reach], held: Sequence[tuple[float, float]]
) -> dict[Buffer, tuple[float, float]]:
    """Return the greatest of the accesses to each array: they are taken to touch the same."""
    found: dict[Buffer, tuple[float, float]] = {}
    for reach, (sectors, times) in zip(loads, held, strict=True):
        before = found.get(reach.buffer, (0.0, 0.0))
        found[reach.buffer] = max(before, (sectors, times), key=math.prod)
    return found


# -- waiting --------------------------------------------------------------------------------------


def _rounds(read: Read, kept: Kept) -> dict[str, float]:
    """Return how often a warp waits for memory: loads in one stretch of code wait together.

    Of a loop that is too long to be unrolled, some iterations are put together.
    """
    stretches: dict[tuple[int, ...], list[Reach]] = defaultdict(list)
    for reach in read.reaches:
        stretches[tuple(id(loop.var) for loop in reach.around)].append(reach)
    rounds = {"global": 0.0, "shared": 0.0}
    for reaches in stretches.values():
        around = reaches[0].around
        times = float(math.prod(loop.extent for loop in around))
        if around and not (around[-1].is_outside or around[-1].is_rolled):
            size = sum(math.prod(loop.extent for loop in r.copies) for r in reaches)
            extent = around[-1].extent
            times *= math.ceil(extent / copies_together(size)) / max(extent, 1)
        loaded = {r.space for r in reaches if not r.is_write and kept.get((r.buffer, False), 1.0)}
        for space in rounds:
            rounds[space] += times * (space in loaded)
    return rounds


def _chain(read: Read, rates: Mapping[str, float]) -> float:
    """Return the clocks of the sums of a thread, whose additions wait for one another."""
    longest: dict[tuple[int, ...], float] = {}
    latency = {
        "local": rates["float_latency"],
        "shared": rates["float_latency"] + rates["shared_latency"],
        "global": rates["float_latency"] + rates["l1_latency"],
    }
    for reach in read.reaches:
        if not reach.is_update:
            continue
        sums = math.prod(loop.extent for loop in reach.loops if loop.var in reach.address.terms)
        times = reach.executions / max(sums, 1) * latency[reach.space]
        key = tuple(id(loop.var) for loop in reach.loops)
        longest[key] = max(longest.get(key, 0.0), times)
    return sum(longest.values())
