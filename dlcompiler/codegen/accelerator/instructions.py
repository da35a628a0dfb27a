"""Choose the instructions of a program: the host's loops run here, and each nest makes some.

The host of an accelerator runs the loops that no instruction runs by itself. All extents are
numbers, so that they can be run when the program is built: the result is the list of instructions.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.codegen.accelerator.computations import (
    Computation,
    elementwise_computation,
    tensor_computation,
)
from dlcompiler.codegen.accelerator.copies import Block, CopyPattern, copy_pattern, memory_of
from dlcompiler.codegen.accelerator.forms import Number, Slots, flat_index, host_number
from dlcompiler.codegen.accelerator.micro_ops import MicroOpCache
from dlcompiler.codegen.accelerator.nests import Nest, nest_of
from dlcompiler.codegen.accelerator.operations import Chain, chain_of
from dlcompiler.codegen.accelerator.places import PAGE, chip_places, dram_places
from dlcompiler.codegen.accelerator.tokens import ContextTokens, Draft, Elements, ExactTokens
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Allocate,
    Const,
    For,
    If,
    IntrinsicCall,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    walk_statements,
)
from dlcompiler.simulate.accelerators import DramBuffer, InstructionProgram, Step
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields

Pattern: TypeAlias = "CopyPattern | Computation"
Accesses: TypeAlias = "tuple[tuple[str, Elements | slice], ...]"
"""Name of a memory, and elements of it."""
MICRO_OP_BYTES = 4


def instructions_of(func: PrimFunc, accelerator: Accelerator) -> InstructionProgram:
    """Return the program of an accelerator that computes a function.

    Parameters
    ----------
    func
        A lowered function. Its tensors are copied into the memories of the accelerator and out.
    accelerator
        What runs it.

    Raises
    ------
    ScheduleError
        A nest is no instruction of the accelerator; the message says why.
    TargetError
        The buffers do not fit into its memories.
    """
    return _Maker(func, accelerator).made()


class _Maker:
    def __init__(self, func: PrimFunc, accelerator: Accelerator) -> None:
        self.func, self.accelerator = func, accelerator
        self.is_classic = accelerator.lowering == "classic"
        loops = [s for s in walk_statements(func.body) if isinstance(s, For)]
        variables = list(dict.fromkeys(loop.var for loop in loops))
        self.slots: Slots = {var: n for n, var in enumerate(variables)}
        self.numbers = [0] * len(variables)
        self.analyzer = Analyzer({loop.var: _range(loop) for loop in loops})
        self.places = chip_places(func, accelerator)
        self.dram = {each.name: each for each in dram_places(func, accelerator)}
        end = max((b.address + b.bytes for b in self.dram.values()), default=PAGE)
        self.micro_op_address = -(-end // PAGE) * PAGE
        self.fields = {i.name: operand_fields(accelerator, i) for i in accelerator.instructions}
        uses = [i.micro_ops for i in accelerator.instructions if i.micro_ops]
        self.cache = MicroOpCache(accelerator.memory(uses[0])) if uses else None
        depths = {memory.name: memory.depth for memory in accelerator.memories}
        depths |= {f"dram {name}": 1 for name in self.dram}
        threads = {loop.var: range(_extent(loop)) for loop in loops if loop.kind == "vthread"}
        self.thread: dict[Var, int] = {}
        """Number in each loop of virtual threads that runs now."""
        self.tokens: ExactTokens = ExactTokens(accelerator, depths, self.nop)
        if self.is_classic:
            all_threads = [
                dict(zip(threads, numbers, strict=True))
                for numbers in itertools.product(*threads.values())
            ]
            self.tokens = ContextTokens(accelerator, depths, self.nop, all_threads)
        self.patterns: dict[int, tuple[Stmt, list[Pattern]]] = {}
        self.hosts: dict[int, tuple[Stmt, Number]] = {}
        self.computed: set[str] = set()
        self.writers: defaultdict[Any, set[Any]] = defaultdict(set)
        """Origins of the stores into each buffer: virtual threads have stores of one origin."""
        for stmt in walk_statements(func.body):
            if isinstance(stmt, Store):
                self.writers[stmt.buffer].add(stmt.origin)

    def made(self) -> InstructionProgram:
        self.run(self.func.body)
        self._finish()
        start = self.micro_op_address
        micro_ops = np.zeros((0, 0), np.int64)
        if self.cache is not None and self.cache.lists:
            micro_ops = np.concatenate(self.cache.lists)
        code = -(-(start + MICRO_OP_BYTES * len(micro_ops)) // PAGE) * PAGE
        steps = tuple(draft.finished() for draft in self.tokens.order)
        size = code + len(steps) * self.accelerator.word_bits // 8
        return InstructionProgram(
            self.accelerator, steps, tuple(self.dram.values()), micro_ops, start, code, size
        )

    def run(self, stmt: Stmt) -> None:
        """Run a statement on the host."""
        nest = self._nest(stmt)
        if nest is not None:
            for pattern in nest:
                self._emit(pattern)
            return
        match stmt:
            case Seq(items):
                for item in items:
                    self.run(item)
            case Allocate(_, body):
                self.run(body)
            case For(_, Const()):
                self._run_loop(stmt)
            case If(condition, then, otherwise):
                if self._holds(stmt, condition):
                    self.run(then)
                elif otherwise is not None:
                    self.run(otherwise)
            case _:
                raise ScheduleError(
                    f"build {self.func.name} for {self.accelerator.name}",
                    "it has no instruction for this", got=str(stmt).strip(),
                )  # fmt: skip

    def _run_loop(self, loop: For) -> None:
        slot = self.slots[loop.var]
        for value in range(_extent(loop)):
            self.numbers[slot] = value
            if loop.kind == "vthread":
                self.thread[loop.var] = value
            self.run(loop.body)
        self.thread.pop(loop.var, None)

    def _holds(self, stmt: Stmt, condition: Any) -> bool:
        if id(stmt) not in self.hosts:
            self.hosts[id(stmt)] = stmt, host_number(condition, self.slots)
        return bool(self.hosts[id(stmt)][1](self.numbers))

    # -- patterns ------------------------------------------------------------------------------

    def _nest(self, stmt: Stmt) -> list[Pattern] | None:
        """Return the patterns of a nest, found once; None if a statement is no nest."""
        if id(stmt) in self.patterns:
            return self.patterns[id(stmt)][1]
        nest = nest_of(stmt)
        if nest is None:
            return None
        found = list(self._patterns(nest))
        self.patterns[id(stmt)] = stmt, found
        return found

    def _patterns(self, nest: Nest) -> Iterator[Pattern]:
        common = self.accelerator, self.analyzer, self.slots
        if isinstance(nest.leaf, IntrinsicCall):
            found = tensor_computation(nest, *common)
            self.computed.add(nest.leaf.regions[0].buffer.name)
            yield found
            return
        is_sole = len(self.writers[nest.leaf.buffer]) == 1
        copied = copy_pattern(nest, *common, is_sole=is_sole)
        if copied is not None:
            if copied.instruction.kind == "store":
                yield from self._shown(nest, copied)
            yield copied
            return
        memory = memory_of(nest.leaf.buffer, self.accelerator)
        instruction = next(
            (
                i
                for i in self.accelerator.instructions
                if i.kind == "elementwise" and memory and i.operands["dst"] == memory.name
            ),
            None,
        )
        if instruction is None:
            raise ScheduleError(
                f"build {self.func.name} for {self.accelerator.name}",
                f"no instruction computes {nest.leaf.buffer.name}",
                got=str(nest.leaf).strip(),
                because=f"it is in memory {nest.leaf.buffer.scope!r}",
                expected="a copy between DRAM and a memory, an intrinsic (tensorize),"
                " or an elementwise operation in a memory of results",
            )
        made = list(self._elementwise(nest, instruction, chain_of(nest.leaf, instruction)))
        if made:  # a stage that changes nothing, in place, needs no instruction
            self.computed.add(nest.leaf.buffer.name)
        yield from made

    def _elementwise(
        self, nest: Nest, instruction: Instruction, chain: Chain
    ) -> Iterator[Computation]:
        """Yield the operations of a chain, each over the whole nest."""
        assert isinstance(nest.leaf, Store)
        leaf = nest.leaf
        mine = flat_index(leaf.buffer, leaf.indices, self.analyzer)
        steps: list[tuple[str, int | Load]] = [(o.name, o.operand) for o in chain.operations]
        is_in_place = (
            isinstance(chain.first, Load)
            and chain.first.buffer is leaf.buffer
            and flat_index(leaf.buffer, chain.first.indices, self.analyzer).plus(mine, -1).terms
            == {}
        )
        if not is_in_place:
            yield self._reset(nest, instruction)
            steps = [("add", chain.first), *steps]
        for name, operand in steps:
            code = instruction.operations.index(name)
            is_number = isinstance(operand, int)
            fields = (
                ("operation", code), ("use_imm", int(is_number)),
                ("imm", operand if isinstance(operand, int) else 0),
            )  # fmt: skip
            buffers, sums = [leaf.buffer] * 2, [mine, mine]
            if isinstance(operand, Load):
                buffers[1] = operand.buffer
                sums[1] = flat_index(operand.buffer, operand.indices, self.analyzer)
            yield elementwise_computation(
                buffers,
                sums,
                nest,
                instruction,
                self.accelerator,
                self.analyzer,
                self.slots,
                fields,
            )

    def _reset(self, nest: Nest, like: Instruction) -> Computation:
        """Return the instruction that makes the results of a nest zero."""
        assert isinstance(nest.leaf, Store)
        dst = like.operands["dst"]
        reset = next(
            (
                i
                for i in self.accelerator.instructions
                if i.field("reset") and i.kind == "tensor" and i.operands.get("dst") == dst
            ),
            None,
        )
        if reset is None:
            raise ScheduleError(
                f"compute {nest.leaf.buffer.name} by {like.name}",
                "it writes over its first operand, which is another buffer",
                got=str(nest.leaf).strip(),
                hint="let the operand be used by this stage only, at the same loop",
            )
        mine = flat_index(nest.leaf.buffer, nest.leaf.indices, self.analyzer)
        return elementwise_computation(
            [nest.leaf.buffer], [mine], nest, reset, self.accelerator, self.analyzer, self.slots,
            (("reset", 1),),
        )  # fmt: skip

    def _shown(self, nest: Nest, copied: CopyPattern) -> Iterator[Computation]:
        """Yield an operation that changes nothing, if no computation has written what is stored.

        The memory that a store reads gets the results of computations, but not what was loaded.
        """
        name, on_chip = copied.on_chip.name, copied.on_chip
        memory = memory_of(on_chip, self.accelerator)
        if name in self.computed or memory is None or copied.instruction.memory == memory.name:
            return
        for each in self.accelerator.instructions:
            if each.kind == "elementwise" and each.operands["dst"] == memory.name:
                assert isinstance(nest.leaf, Store)
                loads = [n for n in _loads(nest.leaf) if n.buffer is on_chip]
                fields = (("operation", each.operations.index("add")), ("use_imm", 1), ("imm", 0))
                mine = flat_index(on_chip, loads[0].indices, self.analyzer)
                yield elementwise_computation(
                    [on_chip] * 2, [mine] * 2, nest, each, self.accelerator, self.analyzer,
                    self.slots, fields,
                )  # fmt: skip

    # -- instructions --------------------------------------------------------------------------

    def _emit(self, pattern: Pattern) -> None:
        if isinstance(pattern, CopyPattern):
            for block in pattern.blocks(self.numbers):
                self._copy(pattern, block)
        else:
            for loops, bases in pattern.runs(self.numbers):
                self._compute(pattern, loops, bases)

    def _copy(self, pattern: CopyPattern, block: Block) -> None:
        instruction = pattern.instruction
        memory = self.accelerator.memory(instruction.memory)
        start = self.places[pattern.on_chip] + block.sram
        buffer = self.dram[pattern.in_dram.name]
        values = {
            "sram_base": start,
            "dram_base": buffer.address // memory.dram_bytes + block.dram,
            "y_size": block.rows, "x_size": block.columns, "x_stride": block.stride,
            **dict(zip(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), block.pads, strict=True)),
        }  # fmt: skip
        step = self._step(instruction, values, pattern.leaf)
        touched = slice(start, start + block.covered)
        chip, dram = (memory.name, touched), (f"dram {buffer.name}", slice(0, 1))
        if instruction.kind == "load":
            self._add(step, (dram,), (chip,))
        else:
            self._add(step, (chip,), (dram,))

    def _compute(self, pattern: Computation, loops: Any, bases: tuple[int, ...]) -> None:
        instruction = pattern.instruction
        names = list(instruction.operands)
        own = [
            base + self.places[buffer] for base, buffer in zip(bases, pattern.buffers, strict=True)
        ]
        # An operand that is not used (of a reset) is element 0, and does not move.
        missing = len(names) - len(own)
        own += [0] * missing
        factors = [*loops.factors, *[(0, 0)] * missing]
        micro_ops = np.pad(loops.micro_ops, ((0, 0), (0, missing))) + np.array(own)
        values = {"iter_out": loops.iterations[0], "iter_in": loops.iterations[1]}
        for name, (outer, inner) in zip(names, factors, strict=True):
            values |= {f"{name}_factor_out": outer, f"{name}_factor_in": inner}
        values |= dict(pattern.fields)
        used = list(enumerate(names[: len(bases)]))
        if dict(pattern.fields).get("use_imm"):
            used = used[:1]
        touched = [(instruction.operands[name], loops.elements(n, own[n])) for n, name in used]
        result = touched[0]
        reads = touched if not dict(pattern.fields).get("reset") else touched[1:]
        copies = [(copy, result[1]) for copy in instruction.also_writes.values()]
        writes = (result, *copies)
        if self.cache is None or not instruction.micro_ops:
            self._one_each(pattern, values, micro_ops, writes)
            return
        most = max(len(i.operands) for i in self.accelerator.instructions if i.micro_ops)
        micro_ops = np.pad(micro_ops, ((0, 0), (0, most - micro_ops.shape[1])))
        site = id(pattern) if self.is_classic else 0
        place, load = self.cache.find(micro_ops, site)
        if load is not None:
            self._load_micro_ops(place, *load, pattern)
        uop = (instruction.micro_ops, slice(place, place + len(micro_ops)))
        values |= {"uop_bgn": place, "uop_end": place + len(micro_ops)}
        step = self._step(instruction, values, pattern.leaf)
        self._add(step, (*reads, uop), writes)

    def _one_each(
        self, pattern: Computation, values: dict[str, int], micro_ops: Any, writes: Any
    ) -> None:
        """Append an instruction for each micro-op, which is in its fields."""
        del writes
        instruction = pattern.instruction
        names = list(instruction.operands)
        used = names[: len(pattern.buffers)]
        for row in micro_ops:
            own = dict(zip(names, map(int, row), strict=True))
            step = self._step(instruction, {**values, **own}, pattern.leaf)
            touched = [
                (
                    instruction.operands[name],
                    _grid(own[name], values, name),
                )
                for name in used
            ]
            is_reset = dict(pattern.fields).get("reset")
            copies = [(copy, touched[0][1]) for copy in instruction.also_writes.values()]
            reads = touched[1:] if is_reset else touched
            self._add(step, tuple(reads), (touched[0], *copies))

    def _load_micro_ops(self, place: int, source: int, count: int, pattern: Computation) -> None:
        assert self.cache is not None
        memory = self.cache.memory
        instruction = next(
            i for i in self.accelerator.instructions if i.kind == "load" and i.memory == memory.name
        )
        values = {
            "sram_base": place, "dram_base": self.micro_op_address // MICRO_OP_BYTES + source, "y_size": 1, "x_size": count,
            "x_stride": count,
        }  # fmt: skip
        step = self._step(instruction, values, pattern.leaf)
        self._add(step, (), ((memory.name, slice(place, place + count)),))

    def _add(self, step: Step, reads: Accesses, writes: Accesses) -> None:
        """Append an instruction that accesses elements of memories."""
        self.tokens.add(Draft(step, reads, writes, thread=dict(self.thread)))

    def _step(self, instruction: Instruction, values: Mapping[str, int], origin: Any) -> Step:
        """Return an instruction with the values of its fields; the others are 0.

        Raises
        ------
        ScheduleError
            A value does not fit its field.
        """
        fields = self.fields[instruction.name]
        row = tuple(values.get(name, 0) for name in fields)
        for name, value in zip(fields, row, strict=True):
            field = instruction.field(name)
            if field is not None and not field.least <= value <= field.most:
                raise ScheduleError(
                    f"build {self.func.name} for {self.accelerator.name}",
                    f"{name} of {instruction.name} does not fit its field",
                    got=str(value), expected=f"{field.least} to {field.most}",
                    because=str(origin).strip(), hint="choose smaller tiles",
                )  # fmt: skip
        return Step(instruction, row, origin=origin)

    def nop(self, engine: str) -> Step:
        """Return an instruction of an engine that only passes tokens: one that moves nothing.

        It is the copy of the smallest elements: of inputs or micro-ops on VTA, as its runtime does.
        """
        of = self.accelerator.of(engine)
        copies = [i for i in of if i.is_copy]
        memory = self.accelerator.memory
        chosen = min(copies, key=lambda i: memory(i.memory).element_bytes, default=of[0])
        return self._step(chosen, {}, None)

    def _finish(self) -> None:
        """Append what ends a program: an instruction that waits for all engines, and the last."""
        finish = next((i for i in self.accelerator.instructions if i.kind == "finish"), None)
        if finish is None:
            return
        self.tokens.join(Draft(self.nop(finish.engine)))
        self.tokens.add(Draft(self._step(finish, {}, None)))


def _grid(base: int, values: Mapping[str, int], name: str) -> Any:
    outer, inner = np.arange(values["iter_out"]), np.arange(values["iter_in"])
    steps = outer[:, None] * values[f"{name}_factor_out"] + inner * values[f"{name}_factor_in"]
    return (base + steps).reshape(-1)


def _loads(leaf: Store) -> Iterator[Load]:
    from dlcompiler.ir import walk

    return (node for node in walk(leaf.value) if isinstance(node, Load))


def _range(loop: For) -> Interval:
    return Interval(0, _extent(loop) - 1)


def _extent(loop: For) -> int:
    if not isinstance(loop.extent, Const):
        raise ScheduleError(
            f"run the loop {loop.var.name}", "its extent is not a number", got=str(loop.extent),
            because="the host of an accelerator makes all instructions beforehand",
        )  # fmt: skip
    return int(loop.extent.value)


_UNUSED: tuple[Any, ...] = (Callable, dataclass, Var, DramBuffer)
