"""A program of an accelerator: instructions in order, and what lies in DRAM at the start."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import CallError
from dlcompiler.registry import Registry
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.parts import is_whole


class Step(NamedTuple):
    """One instruction of a program."""

    instruction: Instruction
    values: tuple[int, ...]
    """Of the fields that are neither fixed nor tokens, in the order of
    `dlcompiler.target.accelerators.encodings.operand_fields`."""
    pops: tuple[str, ...] = ()
    """Names of the queues from which it pops a token before it begins."""
    pushes: tuple[str, ...] = ()
    """Names of the queues into which it pushes a token when it is done."""
    origin: Any = None
    """The statement of the loop IR that it comes from; None for one from outside."""

    def __repr__(self) -> str:
        return (
            f"Step({self.instruction.name!r}, values={self.values}, pops={self.pops},"
            f" pushes={self.pushes})"
        )


@dataclass(frozen=True, slots=True)
class DramBuffer:
    """An array in the DRAM of an accelerator."""

    name: str
    address: int
    """Where it begins [byte]."""
    shape: tuple[int, ...]
    dtype: str
    role: str = "input"
    """``"input"``, ``"output"``, ``"temporary"``, ``"micro-ops"``, or ``"zeros"``: read only."""

    @property
    def bytes(self) -> int:
        """Size [byte]."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class InstructionProgram:
    """Instructions of an accelerator in the order in which they are fetched."""

    accelerator: Accelerator
    steps: tuple[Step, ...]
    buffers: tuple[DramBuffer, ...] = ()
    micro_ops: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((0, 3), dtype=np.int64)
    )
    """Micro-ops as they lie in DRAM; (count, operands): the element of each operand [elements]."""
    micro_op_address: int = 0
    """Where the micro-ops begin [byte]."""
    instruction_address: int = 0
    """Where the instructions begin [byte]."""
    dram_bytes: int = 0
    """Size of the DRAM that the program uses [byte]."""
    is_partial: bool = False
    """Whether instructions were left out, so that only its time means something."""

    def __post_init__(self) -> None:
        places = (self.micro_op_address, self.instruction_address, self.dram_bytes)
        micro_ops: Any = self.micro_ops
        is_table = isinstance(micro_ops, np.ndarray) and micro_ops.ndim == 2
        if not is_table or micro_ops.dtype.kind not in "iu":
            raise CallError(
                "make a program of an accelerator", "its micro-ops are no table",
                got=repr(micro_ops)[:80], expected="an array of int64, (count, operands)",
            )  # fmt: skip
        if not all(is_whole(place, 0) for place in places):
            raise CallError(
                "make a program of an accelerator", "an address or the size of DRAM is no size",
                got=repr(places), expected="whole numbers of at least 0",
            )  # fmt: skip

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        buffers = ", ".join(f"{b.name}: {b.dtype}{list(b.shape)}" for b in self.buffers)
        return (
            f"InstructionProgram({self.accelerator.name!r}, {len(self)} instructions;"
            f" in DRAM: {buffers})"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program into a file, which `load_program` reads; see `containers`."""
        _WRITERS["container"](self, path)


_WRITERS: Registry[Callable[[InstructionProgram, str | os.PathLike[str]], None]] = Registry(
    "writer", {"container": "dlcompiler.simulate.accelerators.containers:save_program"}
)
