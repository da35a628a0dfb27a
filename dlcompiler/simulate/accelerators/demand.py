"""What a program demands of an accelerator: operations, and bytes to and from DRAM."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dlcompiler.errors import UserError
from dlcompiler.ir import Binary, Call, Reduce, walk
from dlcompiler.simulate.accelerators.program import InstructionProgram, Step
from dlcompiler.simulate.accelerators.timing.described import described_cycles
from dlcompiler.simulate.accelerators.timing.run import time_program
from dlcompiler.simulate.accelerators.work import Work, works_of
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields

_UPDATES = 64
"""Updates of the shorter instruction of which the peak is computed; [1]."""


@dataclass(frozen=True)
class Demand:
    """Operations and bytes of a program."""

    operations: int
    """Multiplications, additions and others of all tensor instructions; [1]."""
    elementwise: int
    """Operations on single numbers of all elementwise instructions; [1]."""
    loaded: dict[str, int]
    """Memory -> bytes that are loaded into it [byte]."""
    stored: dict[str, int]
    """Memory -> bytes that are stored from it [byte]."""
    instruction_bytes: int
    """Size of the instructions, if they are fetched from DRAM [byte]."""

    @property
    def bytes(self) -> int:
        """All bytes to and from DRAM [byte]."""
        return sum(self.loaded.values()) + sum(self.stored.values()) + self.instruction_bytes

    @property
    def intensity(self) -> float:
        """Operations of tensor instructions for each byte to or from DRAM [1/byte]."""
        return self.operations / self.bytes if self.bytes else math.inf

    def __add__(self, other: Demand) -> Demand:
        """Return the demand of two programs."""
        return Demand(
            self.operations + other.operations, self.elementwise + other.elementwise,
            _summed(self.loaded, other.loaded), _summed(self.stored, other.stored),
            self.instruction_bytes + other.instruction_bytes,
        )  # fmt: skip


NOTHING = Demand(0, 0, {}, {}, 0)
"""The demand of no program."""


def demand_of(program: InstructionProgram) -> Demand:
    """Return what a program demands."""
    accelerator = program.accelerator
    each_update = {i.name: operations_of_update(accelerator, i) for i in accelerator.instructions}
    operations = elementwise = 0
    loaded: dict[str, int] = {}
    stored: dict[str, int] = {}
    for work in works_of(program):
        instruction = work.instruction
        if instruction.is_copy:
            moved = loaded if instruction.kind == "load" else stored
            size = _bytes(accelerator, work)
            moved[instruction.memory] = moved.get(instruction.memory, 0) + size
        elif instruction.kind == "tensor" and not work.fields.get("reset"):
            operations += work.updates * each_update[instruction.name]
        elif instruction.kind == "elementwise":
            elementwise += work.updates * each_update[instruction.name]
    # The general rules of time dispatch instructions without fetching them.
    fetched = len(program) * accelerator.word_bits // 8 if accelerator.profile else 0
    return Demand(operations, elementwise, loaded, stored, fetched)


def operations_of_update(accelerator: Accelerator, instruction: Instruction) -> int:
    """Return the operations that one micro-op of an instruction executes; [1].

    A sum of products counts two for each product.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> vta = preset("vta-pynq")
    >>> operations_of_update(vta, vta.instruction("gemm"))
    512
    """
    memories = [accelerator.memory(name) for name in instruction.operands.values()]
    if instruction.kind == "elementwise":
        return memories[0].numbers
    if instruction.kind != "tensor":
        return 0
    if instruction.intrinsic is None:  # VTA's GEMM: dst[b, o] += src[b, i] * wgt[o, i]
        return 2 * memories[0].numbers * memories[1].shape[-1]
    op: Any = instruction.intrinsic.op
    points: int = math.prod(axis.static_extent for axis in (*op.axis, *op.reduce_axis))
    arithmetic = sum(isinstance(n, Binary | Call | Reduce) and n.dtype != "index"
                     for body in op.bodies for n in walk(body))  # fmt: skip
    return points * max(arithmetic, 1)


def peak_of(accelerator: Accelerator) -> float:
    """Return the most operations that tensor instructions execute in a cycle; [1/clock].

    It is what the timed simulator gives for one more micro-op of a long instruction.

    Raises
    ------
    UserError
        The accelerator has no tensor instruction.
    """
    rates = [
        operations_of_update(accelerator, each)
        * _UPDATES
        / max(_cycles(accelerator, each, 2 * _UPDATES) - _cycles(accelerator, each, _UPDATES), 1)
        for each in accelerator.instructions
        if each.kind == "tensor"
    ]
    if not rates:
        raise UserError(
            f"compute the peak of {accelerator.name}", "it has no tensor instruction",
            got=", ".join(each.name for each in accelerator.instructions),
        )  # fmt: skip
    return max(rates)


def bandwidth_of(accelerator: Accelerator) -> float:
    """Return the most bytes to and from DRAM in a cycle [byte/clock].

    It is the width of the memory port. Copies that say themselves how many cycles they take do not
    use the port: each engine of such copies moves what one more element of a long copy takes.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> bandwidth_of(preset("vta-pynq")), bandwidth_of(preset("vta-ultra96"))
    (8.0, 16.0)

    Raises
    ------
    InstructionError
        A copy gives no number of cycles.
    """
    port = float(accelerator.port.bytes_per_cycle)
    copies = [each for each in accelerator.instructions if each.is_copy]
    own: dict[str, float] = {}
    for each in copies:
        if each.cycles is not None and not accelerator.profile:
            longer, shorter = (
                described_cycles(f"compute the bandwidth of {accelerator.name}", each, count)
                for count in (2 * _UPDATES, _UPDATES)
            )
            cycles = max(longer - shorter, 1)
            rate = accelerator.memory(each.memory).dram_bytes * _UPDATES / cycles
            own[each.engine] = max(own.get(each.engine, 0.0), rate)
    uses_port = any(each.cycles is None or accelerator.profile for each in copies)
    return sum(own.values()) + (port if uses_port else 0.0)


def _cycles(accelerator: Accelerator, instruction: Instruction, updates: int) -> int:
    """Return how long an instruction of some updates is busy; [clock]."""
    values = {"uop_end": 1, "iter_out": updates, "iter_in": 1}
    steps = [_step(accelerator, instruction, values)]
    steps += [_step(accelerator, i, {}) for i in accelerator.instructions if i.kind == "finish"][:1]
    run = time_program(InstructionProgram(accelerator, tuple(steps)))
    return int(run.end[0] - run.start[0])


def _step(accelerator: Accelerator, instruction: Instruction, values: dict[str, int]) -> Step:
    fields = operand_fields(accelerator, instruction)
    return Step(instruction, tuple(values.get(name, 0) for name in fields))


def _bytes(accelerator: Accelerator, work: Work) -> int:
    elements = work.fields["y_size"] * work.fields["x_size"]
    return elements * accelerator.memory(work.instruction.memory).dram_bytes


def _summed(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in dict.fromkeys([*a, *b])}
