"""The parts of an accelerator: memories, engines, queues of tokens, instructions, a memory port.

An accelerator has memories of its own, which only its instructions access. Each engine takes the
instructions of its queue in order; all engines run at the same time. An instruction that needs
what another engine makes waits for a token, which that engine pushes into a queue between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from dlcompiler import dtypes

Kind: TypeAlias = Literal["load", "store", "tensor", "elementwise", "finish"]
"""What an instruction does: ``load`` and ``store`` copy between DRAM and a memory, ``tensor``
computes a tensor intrinsic on elements of memories, ``elementwise`` an operation on each number of
an element, and ``finish`` ends a program."""
MOST_CYCLES = 1 << 40
"""Cycles of an instruction, or before the first data of a request, at most; [clock]."""


def is_whole(value: object, least: int = 1, most: int | None = None) -> bool:
    """Tell whether a value is a whole number in a range."""
    return type(value) is int and least <= value and (most is None or value <= most)


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory on the chip, addressed in elements, each of which is a small array.

    Examples
    --------
    >>> inp = Memory("inp", shape=(1, 16), dtype="int8", depth=2048)
    >>> inp.element_bytes, inp.bytes
    (16, 32768)
    """

    name: str
    shape: tuple[int, ...]
    """Shape of an element."""
    dtype: str
    depth: int
    """Number of elements; [1]."""
    in_dram: str = ""
    """Dtype of its elements in DRAM, if that is another one: copies convert them as casts do, so
    that a store of integers keeps the low bits."""

    @property
    def numbers(self) -> int:
        """Number of numbers in an element; [1]."""
        return math.prod(self.shape)

    @property
    def element_bytes(self) -> int:
        """Size of an element [byte]."""
        return self.numbers * dtypes.bytes_of(self.dtype)

    @property
    def dram_bytes(self) -> int:
        """Size of an element in DRAM [byte]."""
        return self.numbers * dtypes.bytes_of(self.in_dram or self.dtype)

    @property
    def bytes(self) -> int:
        """Size of the memory [byte]."""
        return self.depth * self.element_bytes


@dataclass(frozen=True, slots=True)
class Engine:
    """A unit that takes the instructions of its queue one after another."""

    name: str
    queue: int = 512
    """Instructions that wait at most; [1]."""


@dataclass(frozen=True, slots=True)
class TokenQueue:
    """Tokens from one engine to another: a push of the first lets one pop of the second pass."""

    source: str
    """Name of the engine that pushes."""
    sink: str
    """Name of the engine that pops."""
    push: str = ""
    """Field of the source's instructions that says whether they push; '' chooses a name."""
    pop: str = ""
    """Field of the sink's instructions that says whether they pop; '' chooses a name."""
    depth: int = 255
    """Tokens that it holds at most; [1]."""

    @property
    def name(self) -> str:
        """Its name in texts: ``"load->compute"``."""
        return f"{self.source}->{self.sink}"

    @property
    def push_field(self) -> str:
        """Name of the field of a push."""
        return self.push or f"push_{self.sink}"

    @property
    def pop_field(self) -> str:
        """Name of the field of a pop."""
        return self.pop or f"pop_{self.source}"


@dataclass(frozen=True, slots=True)
class Field:
    """Bits of an instruction's word."""

    name: str
    bits: int
    """Width [bit]."""
    offset: int
    """Place of the lowest bit; the bits of a word count from 0."""
    signed: bool = False

    @property
    def least(self) -> int:
        """The smallest value that fits."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def most(self) -> int:
        """The largest value that fits."""
        return (1 << (self.bits - self.signed)) - 1


@dataclass(frozen=True, slots=True)
class Instruction:
    """A kind of instruction.

    The fields of a ``load`` or ``store`` are ``sram_base`` and ``dram_base`` [elements], the block
    ``y_size`` by ``x_size`` [elements], ``x_stride`` from row to row in DRAM [elements]; of a load
    that pads also ``y_pad_0``, ``y_pad_1``, ``x_pad_0`` and ``x_pad_1``: elements of zeros before
    and after. The rows lie densely in the memory.

    A ``tensor`` or ``elementwise`` instruction runs ``for i < iter_out: for j < iter_in: for each
    micro-op``. With operands named ``dst``, ``src``, …, the element of an operand is
    ``micro_op.dst + i*dst_factor_out + j*dst_factor_in``. Its micro-ops lie in the memory
    `micro_ops` from ``uop_bgn`` up to but without ``uop_end``; without such a memory there is one,
    in the fields ``dst``, ``src``, ….
    """

    name: str
    engine: str
    kind: Kind
    memory: str = ""
    """Of a ``load`` or ``store``: the memory on the chip."""
    operands: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Of one that computes: operand -> its memory, the one that it writes first."""
    also_writes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Operand -> another memory that gets each result at the same address, as its dtype."""
    intrinsic: Any = None
    """Of a ``tensor`` instruction: the `te.TensorIntrin` that says what it computes; None for VTA's
    product of matrices."""
    operations: tuple[str, ...] = ()
    """Of an ``elementwise`` instruction: names of its operations, in the order of their codes."""
    micro_ops: str = ""
    """Memory of its micro-ops; '' if an instruction has one micro-op in its fields."""
    pads: bool = False
    """Whether a load can write zeros around what it loads."""
    cycles: Callable[[int], int] | None = None
    """Cycles that it takes for n elements moved, or n micro-ops executed."""
    spacing: int = 1
    """Two updates of one element are at least this far apart: 2 if of two in a row the first one
    would be lost; [1]."""
    fixed: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Fields whose values make it this instruction: ``opcode``, ``memory_type``."""
    fields: tuple[Field, ...] = ()
    """All fields of its word, with those of tokens and the fixed ones."""

    @property
    def is_copy(self) -> bool:
        """Tell whether it moves elements between DRAM and a memory."""
        return self.kind in ("load", "store")

    @property
    def reads(self) -> tuple[str, ...]:
        """Memories that it reads."""
        if self.is_copy:
            return (self.memory,) if self.kind == "store" else ()
        own = (self.micro_ops,) if self.micro_ops else ()
        return (*dict.fromkeys(self.operands.values()), *own)

    @property
    def writes(self) -> tuple[str, ...]:
        """Memories that it writes."""
        if self.is_copy:
            return (self.memory,) if self.kind == "load" else ()
        return (*tuple(self.operands.values())[:1], *self.also_writes.values())

    def field(self, name: str) -> Field | None:
        """Return the field of a name, or None."""
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True, slots=True)
class MemoryPort:
    """The way of an accelerator to DRAM."""

    bytes_per_cycle: int = 8
    """Width of the bus [byte/clock]."""
    latency: int = 16
    """Cycles before the first data of a request that finds the port idle [clock]."""
