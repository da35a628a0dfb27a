"""Check the instructions of an accelerator: their operands, their fields and their codes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from dlcompiler.errors import TargetError
from dlcompiler.target.accelerators.parts import Instruction, Kind, is_whole

if TYPE_CHECKING:
    from dlcompiler.target.accelerators.model import Accelerator

_MICRO_OP_BYTES = 4
_VTA_OPERANDS = 3
"""Operands of a tensor instruction without an intrinsic: VTA's product of matrices."""


def check_types(where: str, instruction: Any) -> None:
    """Refuse an instruction of an unknown kind, or parts of it that have wrong types.

    Parameters
    ----------
    where
        The operation, for messages.
    instruction
        An `Instruction`, each part of which can be anything.

    Raises
    ------
    TargetError
        The message names the part.
    """
    name = instruction.name

    def refuse(problem: str, got: object, expected: str) -> None:
        raise TargetError(where, problem, got=repr(got), expected=expected)

    if instruction.kind not in get_args(Kind):
        refuse(f"{name!r} is of no kind of instruction", instruction.kind,
               ", ".join(get_args(Kind)))  # fmt: skip
    for part in ("operands", "also_writes", "fixed"):
        if not isinstance(getattr(instruction, part), Mapping):
            refuse(f"{part} of {name!r} is no mapping", getattr(instruction, part), "{name: …}")
    if instruction.cycles is not None and not callable(instruction.cycles):
        refuse(f"cycles of {name!r} is no function", instruction.cycles,
               "lambda n: …, of the number of elements moved or of micro-ops")  # fmt: skip
    if not is_whole(instruction.spacing):
        refuse(f"{name!r} has an impossible spacing", instruction.spacing,
               "a whole number of at least 1")  # fmt: skip
    intrinsic = instruction.intrinsic
    if intrinsic is not None and not is_intrinsic(intrinsic):
        refuse(f"{name!r} computes no tensor intrinsic", intrinsic,
               "te.decl_tensor_intrin(…), or te.tensor_intrin(name)")  # fmt: skip


def is_intrinsic(value: object) -> bool:
    """Tell whether a value looks like a `te.TensorIntrin`, which this package cannot import."""
    return all(hasattr(value, name) for name in ("output", "inputs", "id"))


def check_operands(accelerator: Accelerator, instruction: Instruction, where: str) -> None:
    """Refuse an instruction that computes and has other operands than it needs.

    Raises
    ------
    TargetError
        The message names the instruction.
    """
    name, operands = instruction.name, instruction.operands
    expected = _operands(instruction)
    if expected is not None and len(operands) != expected:
        raise TargetError(
            where, f"{name!r} has {len(operands)} operands", got=repr(dict(operands)),
            expected=f"{expected}: the result, then what it reads",
        )  # fmt: skip
    if instruction.kind == "elementwise" and not instruction.operations:
        raise TargetError(
            where, f"{name!r} has no operations", got=repr(instruction.operations),
            expected="operations=('add', 'max', …)",
        )  # fmt: skip
    for operand in instruction.also_writes:
        if operand not in operands:
            raise TargetError(
                where, f"{name!r} has no operand {operand!r}, which also_writes names",
                got=", ".join(operands),
            )  # fmt: skip
    if instruction.micro_ops:
        _check_micro_ops(accelerator, instruction, where)


def _operands(instruction: Instruction) -> int | None:
    """Return how many operands an instruction needs; None for one that does not compute."""
    if instruction.kind == "elementwise":
        return 2
    if instruction.kind != "tensor":
        return None
    intrinsic = instruction.intrinsic
    return _VTA_OPERANDS if intrinsic is None else 1 + len(intrinsic.inputs)


def _check_micro_ops(accelerator: Accelerator, instruction: Instruction, where: str) -> None:
    """Refuse micro-ops that have no place in their memory, or that nothing loads."""
    memory = accelerator.memory(instruction.micro_ops)
    if memory.dram_bytes != _MICRO_OP_BYTES:
        raise TargetError(
            where, f"the micro-ops of {instruction.name!r} are no words of 32 bits",
            got=f"{memory.name}: {memory.dtype}{list(memory.shape)}",
            expected=f"Memory({memory.name!r}, (1,), 'uint32', depth)",
        )  # fmt: skip
    if not any(i.kind == "load" and i.memory == memory.name for i in accelerator.instructions):
        raise TargetError(
            where, f"nothing loads the micro-ops of {instruction.name!r}", got="no instruction",
            expected=f"copy(engine, into={memory.name!r})",
        )  # fmt: skip


def check_codes(accelerator: Accelerator, where: str) -> None:
    """Refuse two instructions whose words can be the same.

    Raises
    ------
    TargetError
        The fixed fields of two instructions do not tell them apart.
    """
    for one, other in itertools.combinations(accelerator.instructions, 2):
        (a, of_a), (b, of_b) = _code(one), _code(other)
        if not (a ^ b) & of_a & of_b:
            raise TargetError(
                where, f"{one.name!r} and {other.name!r} may have the same code",
                got=f"{dict(one.fixed)}, {dict(other.fixed)}",
                expected="a fixed field at the same place with different values",
            )  # fmt: skip


def _code(instruction: Instruction) -> tuple[int, int]:
    """Return the fixed bits of an instruction's words, and which bits these are."""
    bits = of_which = 0
    for name, value in instruction.fixed.items():
        field = instruction.field(name)
        assert field is not None
        mask = (1 << field.bits) - 1
        bits |= (value & mask) << field.offset
        of_which |= mask << field.offset
    return bits, of_which
