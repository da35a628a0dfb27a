"""Make instructions: the values of their fields, their micro-ops, and the elements they access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.codegen.accelerator.computations import Computation, Loops, elements_of
from dlcompiler.codegen.accelerator.copies import PADS, Block, CopyPattern
from dlcompiler.codegen.accelerator.micro_ops import MicroOpCache
from dlcompiler.codegen.accelerator.places import PAGE, chip_places, dram_places, zeros_place
from dlcompiler.codegen.accelerator.tokens import ContextTokens, Draft, Elements, ExactTokens
from dlcompiler.codegen.accelerator.zeros import pieces
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import PrimFunc, Var
from dlcompiler.simulate.accelerators import InstructionProgram, Step
from dlcompiler.simulate.accelerators.listing import origin_text
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields

MICRO_OP_BYTES = 4
Accesses: TypeAlias = "tuple[tuple[str, Elements | slice], ...]"
"""Name of a memory, and elements of it."""


class Writer:
    """Appends instructions to a program.

    Parameters
    ----------
    func
        The function that the program computes.
    accelerator
        What runs it.
    threads
        The virtual threads: their numbers in the loops of virtual threads.
    preloads
        Whether the program begins by loading all its micro-ops. Otherwise each list is loaded when
        an instruction needs it, and stays until another takes its place.
    """

    def __init__(
        self,
        func: PrimFunc,
        accelerator: Accelerator,
        threads: Sequence[Mapping[Var, int]],
        *,
        preloads: bool = False,
    ) -> None:
        self.func, self.accelerator = func, accelerator
        self.places = chip_places(func, accelerator)
        self.dram = {each.name: each for each in dram_places(func, accelerator)}
        end = max((b.address + b.bytes for b in self.dram.values()), default=PAGE)
        self.micro_op_address = _whole_pages(end)
        self._fields = {
            i.name: [f for name in operand_fields(accelerator, i) if (f := i.field(name))]
            for i in accelerator.instructions
        }
        coded = [i for i in accelerator.instructions if i.micro_ops]
        memory = accelerator.memory(coded[0].micro_ops) if coded else None
        self._cache = MicroOpCache(memory, is_preloaded=preloads) if memory else None
        self._width = max((len(i.operands) for i in coded), default=0)
        """Operands of a micro-op in DRAM; [1]."""
        depths = {memory.name: memory.depth for memory in accelerator.memories}
        depths |= {_dram(name): 1 for name in self.dram}
        self.thread: dict[Var, int] = {}
        """Number in each loop of virtual threads that runs now."""
        self._is_partial = False
        self._zeros, self._has_zeros = zeros_place(accelerator), False
        self._is_classic = accelerator.lowering == "classic"
        self.tokens = (
            ContextTokens(accelerator, depths, self.nop, threads)
            if self._is_classic
            else ExactTokens(accelerator, depths, self.nop)
        )

    def finished(self) -> InstructionProgram:
        """Append what ends a program, and return it."""
        finish = next((i for i in self.accelerator.instructions if i.kind == "finish"), None)
        if finish is not None:
            self.tokens.join(Draft(self.nop(finish.engine)))
            self.tokens.add(Draft(self._step(finish, {}, None)))
        self._preload()
        micro_ops = np.zeros((0, self._width), np.int64)
        if self._cache is not None and self._cache.lists:
            micro_ops = np.concatenate(self._cache.lists)
        code = _whole_pages(self.micro_op_address + MICRO_OP_BYTES * len(micro_ops))
        steps = tuple(draft.finished() for draft in self.tokens.order)
        size = code + len(steps) * self.accelerator.word_bits // 8
        buffers = (*self.dram.values(), *([self._zeros] if self._has_zeros else []))
        return InstructionProgram(
            self.accelerator,
            steps,
            buffers,
            micro_ops,
            self.micro_op_address,
            code,
            size,
            self._is_partial,
        )

    def _preload(self) -> None:
        """Put a load of all micro-ops at the beginning, if they are to be there."""
        cache = self._cache
        if cache is None or not cache.is_preloaded or not cache.length:
            return
        values = self._loading(0, 0, cache.length)
        step = self._step(self._loader_of(cache.memory.name), values, None)
        self.tokens.order.insert(0, Draft(step))

    def copy(self, pattern: CopyPattern, block: Block) -> None:
        """Append the copy of a block, or several if its padding does not fit one instruction."""
        for piece in pieces(pattern, block):
            self._copy(pattern, piece)

    def _copy(self, pattern: CopyPattern, block: Block) -> None:
        instruction = pattern.instruction
        memory = self.accelerator.memory(instruction.memory)
        start = self.places[pattern.on_chip] + block.sram
        buffer = self._zeros if block.is_zeros else self.dram[pattern.in_dram.name]
        values = {
            "sram_base": start,
            "dram_base": buffer.address // memory.dram_bytes + block.dram,
            "y_size": block.rows, "x_size": block.columns, "x_stride": block.stride,
            **dict(zip(PADS, block.pads, strict=True)),
        }  # fmt: skip
        step = self._step(instruction, values, pattern.leaf)
        chip = memory.name, slice(start, start + block.covered)
        dram = _dram(buffer.name), slice(0, 1)
        is_load = instruction.kind == "load"
        ends: tuple[Accesses, Accesses] = ((dram,), (chip,)) if is_load else ((chip,), (dram,))
        if block.is_zeros:
            self._has_zeros, ends = True, ((), (chip,))  # nothing writes the zeros
        self._add(pattern, step, *ends)

    def compute(self, pattern: Computation, loops: Loops, bases: tuple[int, ...]) -> None:
        """Append a computation.

        Parameters
        ----------
        pattern
            What is computed.
        loops
            The loops of the instruction.
        bases
            The first element of each operand in its buffer.
        """
        instruction = pattern.instruction
        own = [b + self.places[buffer] for b, buffer in zip(bases, pattern.buffers, strict=True)]
        # An operand that is not used (of a reset) is element 0, and does not move.
        missing = len(instruction.operands) - len(own)
        own += [0] * missing
        factors = [*loops.factors, *[(0, 0)] * missing]
        values = {"iter_out": loops.iterations[0], "iter_in": loops.iterations[1]}
        for name, (outer, inner) in zip(instruction.operands, factors, strict=True):
            values |= {f"{name}_factor_out": outer, f"{name}_factor_in": inner}
        values |= dict(pattern.fields)
        micro_ops = np.zeros((len(loops.micro_ops), max(self._width, len(own))), np.int64)
        micro_ops[:, : len(own)] = own
        micro_ops[:, : loops.micro_ops.shape[1]] += loops.micro_ops
        if self._cache is None or not instruction.micro_ops:
            for row in micro_ops:
                values |= dict(zip(instruction.operands, map(int, row), strict=True))
                self._compute(pattern, values, row[None, :], ())
            return
        site = id(pattern) if self._is_classic or pattern.is_idle else 0
        place, load = self._cache.find(micro_ops, site)
        if load is not None and not pattern.is_idle:
            self._load_micro_ops(place, *load, pattern)
        end = place + len(micro_ops)
        values |= {"uop_bgn": place, "uop_end": end}
        self._compute(pattern, values, micro_ops, ((instruction.micro_ops, slice(place, end)),))

    def _compute(
        self,
        pattern: Computation,
        values: Mapping[str, int],
        micro_ops: npt.NDArray[np.int64],
        fetched: tuple[tuple[str, slice], ...],
    ) -> None:
        """Append one instruction, which also reads the micro-ops in `fetched`."""
        instruction, fields = pattern.instruction, dict(pattern.fields)
        used = list(instruction.operands.items())[: len(pattern.buffers)]
        if fields.get("use_imm"):
            used = used[:1]
        iterations = values["iter_out"], values["iter_in"]
        touched = [
            (memory, elements_of(iterations, steps, micro_ops[:, place]))
            for place, (name, memory) in enumerate(used)
            for steps in ((values[f"{name}_factor_out"], values[f"{name}_factor_in"]),)
        ]
        reads, writes = touched, touched[:1]
        if fields.get("reset"):  # it writes no other memory, and does not read what it writes
            reads = touched[1:]
        else:
            writes += [(copy, touched[0][1]) for copy in instruction.also_writes.values()]
        step = self._step(instruction, values, pattern.leaf)
        self._add(pattern, step, (*reads, *fetched), tuple(writes))

    def _load_micro_ops(self, place: int, source: int, count: int, pattern: Computation) -> None:
        """Append the load of a list of micro-ops."""
        assert self._cache is not None
        name = self._cache.memory.name
        step = self._step(self._loader_of(name), self._loading(place, source, count), pattern.leaf)
        self._add(pattern, step, (), ((name, slice(place, place + count)),))

    def _loading(self, place: int, source: int, count: int) -> dict[str, int]:
        """Return the fields of a load of micro-ops."""
        return {
            "sram_base": place, "dram_base": self.micro_op_address // MICRO_OP_BYTES + source,
            "y_size": 1, "x_size": count, "x_stride": count,
        }  # fmt: skip

    def _loader_of(self, memory: str) -> Instruction:
        return next(
            i for i in self.accelerator.instructions if i.kind == "load" and i.memory == memory
        )

    def _add(
        self, pattern: CopyPattern | Computation, step: Step, reads: Accesses, writes: Accesses
    ) -> None:
        """Append an instruction, or one that only passes its tokens."""
        if pattern.is_idle:
            self._is_partial = True
            step = self.nop(step.instruction.engine)._replace(origin=step.origin)
        self.tokens.add(Draft(step, reads, writes, thread=dict(self.thread)))

    def _step(self, instruction: Instruction, values: Mapping[str, int], origin: Any) -> Step:
        """Return an instruction with the values of its fields; the others are 0.

        Raises
        ------
        ScheduleError
            A value does not fit its field.
        """
        fields = self._fields[instruction.name]
        row = tuple(values.get(field.name, 0) for field in fields)
        for field, value in zip(fields, row, strict=True):
            if not field.least <= value <= field.most:
                raise ScheduleError(
                    f"build {self.func.name} for {self.accelerator.name}",
                    f"{field.name} of {instruction.name} does not fit its field",
                    got=str(value), expected=f"{field.least} to {field.most}",
                    because=origin_text(origin), hint="choose smaller tiles",
                )  # fmt: skip
        return Step(instruction, row, origin=origin)

    def nop(self, engine: str) -> Step:
        """Return an instruction of an engine that only passes tokens: one that moves nothing.

        It is the copy of the smallest elements: of inputs or micro-ops on VTA, as its runtime does.
        """
        own, memory = self.accelerator.of(engine), self.accelerator.memory
        copies = [i for i in own if i.is_copy]
        chosen = min(copies, key=lambda i: memory(i.memory).element_bytes, default=own[0])
        return self._step(chosen, {}, None)


def _dram(buffer: str) -> str:
    """Return the name by which tokens know a buffer in DRAM."""
    return f"dram {buffer}"


def _whole_pages(address: int) -> int:
    return -(-address // PAGE) * PAGE
