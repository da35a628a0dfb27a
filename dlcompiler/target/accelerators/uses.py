"""Who reads and writes a memory of an accelerator, and which operation does what."""

from __future__ import annotations

from dlcompiler.target.accelerators.model import Accelerator
from dlcompiler.target.accelerators.parts import Instruction, Memory

WITH_NUMBER = {"sub": "add", "shl": "shr"}
"""Operation with a number -> the one that does the same with minus the number."""


def memory_of_scope(accelerator: Accelerator, scope: str) -> Memory | None:
    """Return the memory of an accelerator that a scope names; None if it is no scope of it."""
    return next((m for m in accelerator.memories if accelerator.scope_of(m.name) == scope), None)


def why_no_stage(accelerator: Accelerator, memory: Memory) -> str:
    """Return why no stage can be in a memory; '' if stages can.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> vta = preset("vta-pynq")
    >>> why_no_stage(vta, vta.memory("uop"))
    'uop holds the micro-ops of gemm and alu'
    >>> why_no_stage(vta, vta.memory("out"))
    'out gets copies of what gemm and alu write into acc'
    >>> why_no_stage(vta, vta.memory("inp"))
    ''
    """
    running = [i for i in accelerator.instructions if i.micro_ops == memory.name]
    if running:
        return f"{memory.name} holds the micro-ops of {_names(running)}"
    if loads_into(accelerator, memory) or computing_into(accelerator, memory):
        return ""
    copying = [i for i in accelerator.instructions if memory.name in i.also_writes.values()]
    if not copying:
        return f"no instruction writes {memory.name}"
    results = dict.fromkeys(result_of(i) for i in copying)
    return (
        f"{memory.name} gets copies of what {_names(copying)} "
        f"write{'s' * (len(copying) == 1)} into {' and '.join(results)}"
    )


def loads_into(accelerator: Accelerator, memory: Memory) -> tuple[Instruction, ...]:
    """Return the instructions that load from DRAM into a memory."""
    return tuple(
        i for i in accelerator.instructions if i.kind == "load" and i.memory == memory.name
    )


def computing_into(accelerator: Accelerator, memory: Memory) -> tuple[Instruction, ...]:
    """Return the instructions that compute results in a memory."""
    return tuple(i for i in accelerator.instructions if result_of(i) == memory.name)


def reading(accelerator: Accelerator, memory: Memory) -> tuple[Instruction, ...]:
    """Return the instructions that read a memory, other than as their result so far."""
    return tuple(
        i
        for i in accelerator.instructions
        if memory.name in (i.reads if i.is_copy else tuple(i.operands.values())[1:])
    )


def result_of(instruction: Instruction) -> str:
    """Return the memory of the results that an instruction computes; '' for a copy."""
    return next(iter(instruction.operands.values()), "")


def _names(instructions: list[Instruction]) -> str:
    return " and ".join(i.name for i in instructions)
