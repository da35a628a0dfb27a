"""VTA, the accelerator of TVM: its memories, its instructions of 128 bits, its presets.

VTA has three engines. ``load`` fills the memories of inputs and weights, ``compute`` loads
micro-ops and accumulators and runs GEMM and ALU instructions, ``store`` writes results to DRAM.

**Source:** T. Moreau et al., "A Hardware-Software Blueprint for Flexible Deep Learning
Specialization", IEEE Micro 39 (2019); hw_spec.h and the Chisel sources of apache/tvm-vta.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import TargetError
from dlcompiler.target.accelerators.model import Accelerator
from dlcompiler.target.accelerators.parts import (
    Engine,
    Field,
    Instruction,
    Memory,
    MemoryPort,
    TokenQueue,
)

LOAD, STORE, GEMM, FINISH, ALU = range(5)
"""Opcodes."""
MEMORY_TYPES = MappingProxyType({"uop": 0, "wgt": 1, "inp": 2, "acc": 3, "out": 4})
ALU_OPERATIONS = ("min", "max", "add", "shr")
"""Operations of the ALU, in the order of their codes; a shift by a negative number is to the
left."""
MEASURED_LATENCY = MappingProxyType({"A": 0, "B": 16})
"""Latency of the memory with which each profile was measured [clock]."""
MOST_LATENCY = 1_000_000
"""Latency of DRAM at most [clock]."""
_HALF = 64
"""No field crosses the halves of a word; [bit]."""
_TOKENS = ("pop_prev", "pop_next", "push_prev", "push_next")


@dataclass(frozen=True, slots=True)
class VtaConfig:
    """The parameters of a VTA, by their names in its configuration files.

    Sizes are binary logarithms: ``LOG_BLOCK`` 4 means blocks of 16 by 16.
    """

    LOG_INP_WIDTH: int = 3
    LOG_WGT_WIDTH: int = 3
    LOG_ACC_WIDTH: int = 5
    LOG_BATCH: int = 0
    LOG_BLOCK_IN: int = 4
    LOG_BLOCK_OUT: int = 4
    LOG_UOP_BUFF_SIZE: int = 15
    LOG_INP_BUFF_SIZE: int = 15
    LOG_WGT_BUFF_SIZE: int = 18
    LOG_ACC_BUFF_SIZE: int = 17
    LOG_BUS_WIDTH: int = 6
    """Width of the memory bus, 64 bits by default; [log2 bit]."""
    clock_hz: float = 100e6
    """Clock [1/s]."""
    dram_latency: int | None = None
    """Cycles before the first data of a request that finds the port idle; None for those of the
    memory with which the profile was measured: 0 for A, 16 for B [clock]."""
    profile: str = "B"
    """Rules of the timed simulator: ``"A"``, the RTL of 2019, or ``"B"``, that of 2021."""
    lowering: str = "exact"
    """How programs are made: ``"exact"``, or ``"classic"`` as TVM did; `Accelerator.lowering`."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name.startswith("LOG_") and not (type(value) is int and 0 <= value <= 30):
                raise TargetError(
                    f"configure VTA: {each.name}", "this is no binary logarithm of a size",
                    got=repr(value), expected="a whole number, 0 to 30",
                )  # fmt: skip
        self._check_elements()
        if type(self.clock_hz) not in (int, float) or not 0 < self.clock_hz < 1e12:
            raise TargetError(
                "configure VTA: clock_hz", "this is no clock", got=repr(self.clock_hz),
                expected="a positive number [1/s]",
            )  # fmt: skip
        latency = self.dram_latency
        if latency is not None and not (type(latency) is int and 0 <= latency <= MOST_LATENCY):
            raise TargetError(
                "configure VTA: dram_latency", "this is no latency", got=repr(latency),
                expected=f"a whole number, 0 to {MOST_LATENCY}, or None",
            )  # fmt: skip
        if self.profile not in ("A", "B"):
            raise TargetError(
                "configure VTA: profile", "no such profile", got=repr(self.profile),
                expected="'A' (the RTL of 2019) or 'B' (2021)",
            )  # fmt: skip

    def _check_elements(self) -> None:
        """Refuse memories that are smaller than an element."""
        rows, inner, outer = self.LOG_BATCH, self.LOG_BLOCK_IN, self.LOG_BLOCK_OUT
        for name, log_numbers in (
            ("INP", rows + inner), ("WGT", outer + inner), ("ACC", rows + outer),
        ):  # fmt: skip
            log_bits = log_numbers + int(getattr(self, f"LOG_{name}_WIDTH"))
            size = f"LOG_{name}_BUFF_SIZE"
            if log_bits - 3 > getattr(self, size):
                raise TargetError(
                    f"configure VTA: {size}", "the memory is smaller than an element",
                    got=f"2**{getattr(self, size)} bytes",
                    expected=f"at least 2**{log_bits - 3} bytes",
                )  # fmt: skip

    @property
    def port(self) -> MemoryPort:
        """The memory port."""
        latency = MEASURED_LATENCY[self.profile] if self.dram_latency is None else self.dram_latency
        return MemoryPort((1 << self.LOG_BUS_WIDTH) // 8, latency)

    @property
    def batch(self) -> int:
        """Rows of an input element; [1]."""
        return 1 << self.LOG_BATCH

    @property
    def block_in(self) -> int:
        """Columns of an input element; [1]."""
        return 1 << self.LOG_BLOCK_IN

    @property
    def block_out(self) -> int:
        """Columns of a result; [1]."""
        return 1 << self.LOG_BLOCK_OUT

    def to_json(self) -> dict[str, int | float | str | None]:
        """Return it as JSON: the keyword arguments that make it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def memories(self) -> tuple[Memory, ...]:
        """Return the memories, each with the depth that follows from its size."""

        def of(name: str, rows: int, columns: int, log_width: int, log_size: int) -> Memory:
            dtype = f"int{1 << log_width}"
            size = rows * columns * dtypes.bytes_of(dtype)
            return Memory(name, (rows, columns), dtype, max((1 << log_size) // size, 1))

        batch, out = self.batch, self.block_out
        acc = of("acc", batch, out, self.LOG_ACC_WIDTH, self.LOG_ACC_BUFF_SIZE)
        return (
            Memory("uop", (1,), "uint32", (1 << self.LOG_UOP_BUFF_SIZE) // 4),
            of("wgt", out, self.block_in, self.LOG_WGT_WIDTH, self.LOG_WGT_BUFF_SIZE),
            of("inp", batch, self.block_in, self.LOG_INP_WIDTH, self.LOG_INP_BUFF_SIZE),
            acc,
            Memory("out", (batch, out), f"int{1 << self.LOG_INP_WIDTH}", acc.depth),
        )


def vta(
    name: str = "vta", config: VtaConfig | None = None, intrinsic: object = None
) -> Accelerator:
    """Return a VTA of some configuration.

    Parameters
    ----------
    name : str
        Its name.
    config : VtaConfig, optional
        Its parameters.
    intrinsic : TensorIntrin, optional
        What its GEMM computes on elements, as te; `dlcompiler.ops` gives it.
    """
    config = config or VtaConfig()
    memories = config.memories()
    depth = {memory.name: memory.depth for memory in memories}
    gemm_operands = MappingProxyType({"dst": "acc", "src": "inp", "wgt": "wgt"})
    alu_operands = MappingProxyType({"dst": "acc", "src": "acc"})
    writes = MappingProxyType({"dst": "out"})
    gemm, alu = _gemm_fields(depth), _alu_fields(depth)
    instructions = (
        *(_load(memory) for memory in ("uop", "wgt", "inp", "acc")),
        Instruction(
            "store", "store", "store", "out", fields=_COPY,
            fixed=MappingProxyType({"opcode": STORE, "memory_type": MEMORY_TYPES["out"]}),
        ),
        Instruction(
            "gemm", "compute", "tensor", operands=gemm_operands, also_writes=writes,
            intrinsic=intrinsic, micro_ops="uop", fields=gemm,
            spacing=2 if config.profile == "A" else 1,
            fixed=MappingProxyType({"opcode": GEMM}),
        ),
        Instruction(
            "alu", "compute", "elementwise", operands=alu_operands, also_writes=writes,
            operations=ALU_OPERATIONS, micro_ops="uop", fields=alu,
            fixed=MappingProxyType({"opcode": ALU}),
        ),
        Instruction(
            "finish", "compute", "finish", fields=_placed((("opcode", 3), *_TOKEN_BITS)),
            fixed=MappingProxyType({"opcode": FINISH}),
        ),
    )  # fmt: skip
    return Accelerator(
        name, memories, ENGINES, instructions, QUEUES,
        config.port, config.clock_hz,
        profile=config.profile, lowering=config.lowering,
    )  # fmt: skip


def config_of(accelerator: Accelerator) -> VtaConfig | None:
    """Return the parameters of a VTA; None for another accelerator.

    Examples
    --------
    >>> config_of(preset("vta-ultra96")) == ULTRA96
    True
    """
    sizes = {memory.name: memory for memory in accelerator.memories}
    if accelerator.profile not in MEASURED_LATENCY or {*sizes} != {*MEMORY_TYPES}:
        return None
    inp, wgt, acc, port = sizes["inp"], sizes["wgt"], sizes["acc"], accelerator.port
    if not all(len(memory.shape) == 2 for memory in (inp, wgt, acc)):
        return None
    widths = {"INP_WIDTH": inp, "WGT_WIDTH": wgt, "ACC_WIDTH": acc}
    sizes_of = {"UOP": sizes["uop"], "INP": inp, "WGT": wgt, "ACC": acc}
    is_measured = port.latency == MEASURED_LATENCY[accelerator.profile]
    logs: dict[str, Any] = {
        **{f"LOG_{name}": _log(dtypes.bits(memory.dtype)) for name, memory in widths.items()},
        **{f"LOG_{name}_BUFF_SIZE": _log(memory.bytes) for name, memory in sizes_of.items()},
        "LOG_BATCH": _log(inp.shape[0]),
        "LOG_BLOCK_IN": _log(inp.shape[1]),
        "LOG_BLOCK_OUT": _log(acc.shape[1]),
        "LOG_BUS_WIDTH": _log(port.bytes_per_cycle * 8),
    }
    config = VtaConfig(
        clock_hz=accelerator.clock_hz, profile=accelerator.profile,
        dram_latency=None if is_measured else port.latency, lowering=accelerator.lowering,
    )  # fmt: skip
    config = replace(config, **logs)
    parts = (config.memories(), config.port, ENGINES, QUEUES)
    own = (accelerator.memories, port, accelerator.engines, accelerator.queues)
    return config if parts == own else None


def _log(number: int) -> int:
    return max(number, 1).bit_length() - 1


ENGINES = tuple(map(Engine, ("load", "compute", "store")))
"""The engines; each has a queue of 512 instructions."""
QUEUES = (
    TokenQueue("load", "compute", "push_next", "pop_prev"),
    TokenQueue("compute", "load", "push_prev", "pop_next"),
    TokenQueue("compute", "store", "push_next", "pop_prev"),
    TokenQueue("store", "compute", "push_prev", "pop_next"),
)
"""Tokens say that data is there (to the right) or that its place is free (to the left)."""

_TOKEN_BITS = tuple((name, 1) for name in _TOKENS)


def _placed(widths: tuple[tuple[str, int], ...], start: int = 0) -> tuple[Field, ...]:
    """Return fields one after another from a bit on."""

    def place() -> Iterator[Field]:
        offset = start
        for name, bits in widths:
            yield Field(name, bits, offset, signed=name == "imm")
            offset += bits

    return tuple(place())


_COPY = (
    *_placed(
        (("opcode", 3), *_TOKEN_BITS, ("memory_type", 3), ("sram_base", 16), ("dram_base", 32))
    ),
    *_placed(
        (
            *((name, 16) for name in ("y_size", "x_size", "x_stride")),
            *((name, 4) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")),
        ),
        _HALF,
    ),
)


def _load(memory: str) -> Instruction:
    engine = "load" if memory in ("inp", "wgt") else "compute"
    fixed = MappingProxyType({"opcode": LOAD, "memory_type": MEMORY_TYPES[memory]})
    return Instruction(
        f"load {memory}", engine, "load", memory, pads=memory != "uop", fields=_COPY, fixed=fixed
    )


def _bits(depth: int) -> int:
    return max((depth - 1).bit_length(), 1)


def _loops(depth: dict[str, int], first: str) -> tuple[Field, ...]:
    uop = _bits(depth["uop"])
    return _placed(
        (
            ("opcode", 3), *_TOKEN_BITS, (first, 1), ("uop_bgn", uop), ("uop_end", uop + 1),
            ("iter_out", 14), ("iter_in", 14),
        )
    )  # fmt: skip


def _gemm_fields(depth: dict[str, int]) -> tuple[Field, ...]:
    dst, src, wgt = (_bits(depth[name]) for name in ("acc", "inp", "wgt"))
    widths = (("dst", dst), ("src", src), ("wgt", wgt))
    factors = tuple(
        (f"{name}_factor_{loop}", bits) for name, bits in widths for loop in ("out", "in")
    )
    return (*_loops(depth, "reset"), *_placed(factors, _HALF))


def _alu_fields(depth: dict[str, int]) -> tuple[Field, ...]:
    bits = _bits(max(depth["acc"], depth["inp"]))
    factors = tuple(
        (f"{name}_factor_{loop}", bits) for name in ("dst", "src") for loop in ("out", "in")
    )
    widths = (*factors, ("operation", 3), ("use_imm", 1), ("imm", 16))
    return (*_loops(depth, "reset"), *_placed(widths, _HALF))


PYNQ = VtaConfig()
"""100 MHz, a bus of 64 bits."""
DE10 = VtaConfig()
"""100 MHz, a bus of 64 bits."""
ULTRA96 = VtaConfig(clock_hz=333e6, LOG_BUS_WIDTH=7)
"""333 MHz, a bus of 128 bits."""
VDLA_PAPER = VtaConfig(clock_hz=200e6, LOG_WGT_BUFF_SIZE=15)
"""The accelerator of "TVM", OSDI 2018, section 6.4: 200 MHz, 32 KiB for weights."""
PRESETS = MappingProxyType(
    {"vta-pynq": PYNQ, "vta-ultra96": ULTRA96, "vta-de10": DE10, "vdla-paper": VDLA_PAPER}
)
"""Name of a target -> its parameters."""


@functools.cache
def preset(name: str) -> Accelerator:
    """Return the accelerator of a preset, the same one each time.

    Examples
    --------
    >>> preset("vta-pynq").memory("wgt").depth, preset("vdla-paper").memory("wgt").depth
    (1024, 128)
    """
    return vta(name, PRESETS[name])
