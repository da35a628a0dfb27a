"""Plan where kernels store their values: an arena with an offset for each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dlcompiler.display import render
from dlcompiler.graph.decisions import Decision, Effect, Verdict
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import MAIN, Module
from dlcompiler.graph.memory.blocks import (
    PART_ALIGNMENT,
    Block,
    block_of,
    live_bytes,
    lower_bound,
    merged,
)
from dlcompiler.graph.memory.classic import classic_bytes
from dlcompiler.graph.memory.offsets import end, place
from dlcompiler.graph.memory.values import Kernel, Program, Value, joined, overwritten, program_of

NAME = "plan_memory"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a value lies, and when."""

    name: str
    """The kernel that stores it."""
    offset: int
    """Distance from the begin of the arena; [byte]."""
    bytes: int
    """Size; [byte]."""
    first: int
    """Number of the kernel that stores it; [1]."""
    last: int
    """Number of the last kernel that reads it; [1]."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """An arena in which each value between kernels has its place."""

    kernels: tuple[str, ...]
    """Names of the kernels, in order."""
    placements: tuple[Placement, ...]
    bytes: int
    """Size of the arena; [byte]."""
    bound: int
    """Bytes that are needed at the same time at most; no plan with these blocks is smaller."""
    naive: int
    """Bytes without any reuse; [byte]."""
    classic: int
    """Bytes by the pool of Relay; [byte]."""
    live: tuple[int, ...]
    """Bytes that are reserved while each kernel runs; [byte]."""
    decisions: tuple[Decision, ...]
    """What is stored in the place of something else, and why not."""

    def __repr__(self) -> str:
        return (
            f"MemoryPlan({self.bytes:,} bytes for {len(self.placements)} values of "
            f"{len(self.kernels)} kernels; bound {self.bound:,}, without reuse {self.naive:,})"
        )

    def _repr_html_(self) -> str:
        return render("memory_plan", self)


def plan_memory(module: Module, function: str = MAIN) -> MemoryPlan:
    """Return where the kernels of a function store their values.

    Parameters
    ----------
    module : Module
        A module after `fuse_ops`; without fusion each operator is a kernel.
    function : str
        The function.

    Raises
    ------
    GraphError
        If the function has branches, or a size is known only in a run.

    Notes
    -----
    A value is stored in the place of another if its kernel is the last that reads that, and reads
    only the element that it stores. Inputs of a concatenation are stored where they lie in its
    result, if this does not make the arena larger.
    """
    typed = infer_types(module)
    types = types_of(typed)
    program = program_of(typed[function], types)
    planner = _Planner(program, types)
    planner.overwrite()
    planner.join()
    blocks = planner.blocks
    count = len(program.kernels)
    offsets = place(blocks, count)
    placements = [
        Placement(value.name, offsets[block] + offset, value.bytes, value.made_at, value.used_at)
        for block in blocks
        for value, offset in block.members.items()
    ]
    return MemoryPlan(
        tuple(kernel.name for kernel in program.kernels),
        tuple(sorted(placements, key=lambda p: p.first)),
        end(offsets), lower_bound(blocks, count), program.naive_bytes, classic_bytes(program),
        tuple(live_bytes(blocks, count)), tuple(planner.decisions),
    )  # fmt: skip


def plan_on_devices(
    program: Program, device_of: Mapping[Value, str], alignment: Mapping[str, int]
) -> dict[str, MemoryPlan]:
    """Return where the kernels of a function store their values on several devices.

    Parameters
    ----------
    program : Program
        The kernels of a function.
    device_of : mapping
        The device of each value.
    alignment : mapping
        Device -> where values may begin there: at multiples of this; [byte].

    Returns
    -------
    dict
        Device -> the plan of its arena. No value is stored in the place of another that is still
        read: a driver may copy the elements of an input while an output is stored.
    """
    return {
        device: _plan_alone(_restricted(program, device_of, device), unit)
        for device, unit in alignment.items()
    }


def _restricted(program: Program, device_of: Mapping[Value, str], device: str) -> Program:
    """Return a program with the values of one device only."""
    kernels = [
        replace(
            kernel,
            inputs=tuple(pair for pair in kernel.inputs if device_of[pair[1]] == device),
            outputs=tuple(value for value in kernel.outputs if device_of[value] == device),
        )
        for kernel in program.kernels
    ]
    return Program(kernels, [value for value in program.values if device_of[value] == device])


def _plan_alone(program: Program, alignment: int) -> MemoryPlan:
    """Return a plan in which each value has a place of its own while it lives."""
    blocks = [
        Block(-(-v.bytes // alignment) * alignment, v.made_at, v.used_at, {v: 0})
        for v in program.values
    ]
    count = len(program.kernels)
    offsets = place(blocks, count)
    placements = [
        Placement(value.name, offsets[block], value.bytes, value.made_at, value.used_at)
        for block in blocks
        for value in block.members
    ]
    return MemoryPlan(
        tuple(kernel.name for kernel in program.kernels),
        tuple(sorted(placements, key=lambda p: p.first)),
        end(offsets), lower_bound(blocks, count), program.naive_bytes, classic_bytes(program),
        tuple(live_bytes(blocks, count)), (),
    )  # fmt: skip


class _Planner:
    """Blocks of values, while values are put in the place of others."""

    def __init__(self, program: Program, types: Types) -> None:
        self.program = program
        self.types = types
        self.decisions = [
            _decision(name, value.name, "reshape", 0, "it has the same elements in the same order")
            for name, value in program.aliases
        ]
        self.block: dict[Value, Block] = {value: block_of(value) for value in program.values}
        self.in_place: set[tuple[Value, Value]] = set()
        """Values, and those that are stored in their place while they are read."""
        self.parts: dict[Value, set[Value]] = {}
        """Results of concatenations, and the values that lie in them unchanged."""

    @property
    def blocks(self) -> list[Block]:
        """The blocks, in order of their first use."""
        return list(dict.fromkeys(self.block.values()))

    def replace(self, block: Block) -> None:
        """Let a block take the place of those of its members."""
        for value in block.members:
            self.block[value] = block

    def overwrite(self) -> None:
        """Store outputs in the place of inputs that nothing needs any more."""
        for kernel in self.program.kernels:
            value = overwritten(kernel, self.types)
            if value is None:
                continue
            (output,) = kernel.outputs
            old = self.block[value]
            shift = old.members[value]
            self.replace(merged([(old, 0), (self.block[output], shift)], old.bytes))
            self.in_place.add((value, output))
            self.decisions.append(
                _decision(
                    kernel.name,
                    value.name,
                    "in place",
                    output.bytes,
                    f"{kernel.name} is the last reader, and reads only the element that it stores",
                )
            )

    def join(self) -> None:
        """Store the inputs of concatenations where they lie in the result, the largest first."""
        found = [(k, parts) for k in self.program.kernels if (parts := joined(k, self.types))]
        for kernel, parts in sorted(found, key=lambda entry: -entry[0].outputs[0].bytes):
            self._join(kernel, parts)

    def _join(self, kernel: Kernel, parts: list[tuple[Value, int]]) -> None:
        (result,) = kernel.outputs
        whole, blocks = self.block[result], [(self.block[v], offset) for v, offset in parts]
        problem = self._problem(parts)
        joined_block = merged([(whole, 0), *blocks], whole.bytes)
        inside = {part for value, _ in parts for part in (value, *self.parts.get(value, ()))}
        problem = problem or self._conflict(joined_block, {**self.parts, result: inside})
        if not problem:
            gone = {whole, *(block for block, _ in blocks)}
            rest = [block for block in self.blocks if block not in gone]
            count = len(self.program.kernels)
            if lower_bound([*rest, joined_block], count) > lower_bound(self.blocks, count):
                problem = "its memory would be reserved while other values need more"
            else:
                self.replace(joined_block)
                self.parts[result] = inside
        for value, _ in parts:
            rule = "copied" if problem else "part of a concatenation"
            because = problem or f"{kernel.name} reads it as it lies in its result"
            self.decisions.append(
                _decision(value.name, kernel.name, rule, 0 if problem else value.bytes, because)
            )

    def _problem(self, parts: list[tuple[Value, int]]) -> str:
        """Return why inputs cannot lie in the result; "" if they can."""
        for value, offset in parts:
            block = self.block[value]
            if any(place_ or v.bytes != value.bytes for v, place_ in block.members.items()):
                return f"{value.name} lies in the place of another value"
            if offset % PART_ALIGNMENT:
                return f"{value.name} would begin at no multiple of {PART_ALIGNMENT} bytes"
        if len({self.block[value] for value, _ in parts}) < len(parts):
            return "two of its inputs share memory"
        return ""

    def _conflict(self, block: Block, parts: Mapping[Value, set[Value]]) -> str:
        """Return why the values of a block would destroy each other; "" if they do not.

        Where two overlap, the earlier one must not be read any more when the later one is stored;
        unless the later one is stored in its place, or contains it.
        """
        for old, new in itertools.permutations(block.members, 2):
            begin, other = block.members[old], block.members[new]
            if old.made_at > new.made_at or old.used_at < new.made_at:
                continue
            if begin + old.bytes <= other or other + new.bytes <= begin:
                continue
            if (old, new) not in self.in_place and old not in parts.get(new, ()):
                return f"{new.name} would be stored over {old.name}, which is read later"
        return ""


def _decision(subject: str, other: str, rule: str, saved: int, reason: str) -> Decision:
    verdict: Verdict = "not reused" if rule == "copied" else "reused"
    return Decision(NAME, (subject, other), verdict, rule, reason, effect=Effect(bytes=saved))
