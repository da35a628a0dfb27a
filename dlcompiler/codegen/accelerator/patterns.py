"""What the nests of a program are: copies and computations, each found once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.codegen.accelerator.computations import (
    Computation,
    elementwise_computation,
    tensor_computations,
)
from dlcompiler.codegen.accelerator.copies import CopyPattern, copy_pattern, is_load, memory_of
from dlcompiler.codegen.accelerator.forms import Slots, flat_index
from dlcompiler.codegen.accelerator.nests import Nest, nest_of
from dlcompiler.codegen.accelerator.operations import Chain, chain_of
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    IntrinsicCall,
    Load,
    PrimFunc,
    Stmt,
    Store,
    free_vars,
    walk,
    walk_statements,
)
from dlcompiler.simulate.accelerators.listing import origin_text
from dlcompiler.target.accelerators import Accelerator, Instruction

Pattern: TypeAlias = "CopyPattern | Computation"


class Patterns:
    """The patterns of a function's nests.

    Parameters
    ----------
    func
        The function.
    accelerator
        What runs it.
    analyzer, slots
        Know its loops.
    """

    def __init__(
        self, func: PrimFunc, accelerator: Accelerator, analyzer: Analyzer, slots: Slots
    ) -> None:
        self.func, self.accelerator = func, accelerator
        self.analyzer, self.slots = analyzer, slots
        self._found: dict[int, tuple[Stmt, list[Pattern] | None]] = {}
        self._computed: set[str] = set()
        """Buffers of which computations have written all that can be stored."""
        self._loaded: set[str] = set()
        """Buffers that a load writes."""
        self._writers: defaultdict[Any, set[Any]] = defaultdict(set)
        """Origins of the stores into each buffer: virtual threads have stores of one origin."""
        self._updates: dict[Any, Store] = {}
        """Buffer -> a store that combines its elements with others, as reductions do."""
        for stmt in walk_statements(func.body):
            if isinstance(stmt, Store):
                self._writers[stmt.buffer].add(stmt.origin)
                if any(load.buffer is stmt.buffer for load in _loads(stmt)):
                    self._updates[stmt.buffer] = stmt
                if is_load(stmt, accelerator):
                    self._loaded.add(stmt.buffer.name)

    def of(self, stmt: Stmt) -> list[Pattern] | None:
        """Return the patterns of a nest, in order; None if a statement is no nest.

        Raises
        ------
        ScheduleError
            No instruction of the accelerator does what the nest does.
        """
        if id(stmt) not in self._found:
            nest = nest_of(stmt)
            self._found[id(stmt)] = stmt, None if nest is None else list(self._patterns(nest))
        return self._found[id(stmt)][1]

    def _patterns(self, nest: Nest) -> Iterator[Pattern]:
        common = self.accelerator, self.analyzer, self.slots
        if isinstance(nest.leaf, IntrinsicCall):
            self._computed.add(nest.leaf.regions[0].buffer.name)
            yield from tensor_computations(nest, *common)
            return
        is_sole = len(self._writers[nest.leaf.buffer]) == 1
        copied = copy_pattern(nest, *common, is_sole=is_sole)
        if copied is not None:
            if copied.instruction.kind == "store":
                yield from self._shown(nest, copied)
            yield copied
            return
        if nest.under("dma_copy", "skip_dma_copy"):
            raise ScheduleError(
                f"copy {nest.leaf.buffer.name} by one instruction", "it is no copy",
                got=origin_text(nest.leaf), because="a loop around it has the pragma dma_copy",
            )  # fmt: skip
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
                got=origin_text(nest.leaf),
                because=f"it is in memory {nest.leaf.buffer.scope!r}",
                expected="a copy between DRAM and a memory, an intrinsic (tensorize),"
                " or an elementwise operation in a memory of results",
                hint=self._hint(nest.leaf),
            )
        buffer = nest.leaf.buffer
        if buffer in self._updates:
            self._check_update(self._updates[buffer], instruction)
        # Beside a computation that does not read its result, a load may write other elements.
        is_all = buffer.name not in self._loaded or any(
            load.buffer is buffer for load in _loads(nest.leaf)
        )
        for each in self._elementwise(nest, instruction, chain_of(nest.leaf, instruction)):
            if is_all:
                self._computed.add(buffer.name)
            yield each

    def _check_update(self, update: Store, instruction: Instruction) -> None:
        """Refuse a reduction that no elementwise instruction computes, before its first value.

        Raises
        ------
        ScheduleError
            The instruction cannot compute it: then it needs an intrinsic.
        """
        try:
            chain_of(update, instruction)
        except ScheduleError as error:
            error.hint = self._hint(update) or error.hint
            raise

    def _hint(self, leaf: Store) -> str | None:
        """Return what lets an instruction compute a stage in a memory of the accelerator."""
        names = [i.name for i in self.accelerator.instructions if i.kind == "tensor"]
        if memory_of(leaf.buffer, self.accelerator) is None or not names:
            return None
        return f"s[{leaf.buffer.name}].tensorize(axis, intrinsic), that of {' or '.join(names)}"

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
            and self._is_at(chain.first, mine)
        )
        if not is_in_place:
            steps = [("add", chain.first), *steps]
        self._check_order(nest, mine, steps, is_in_place=is_in_place)
        if not is_in_place:
            yield self._reset(nest, instruction)
        for name, operand in steps:
            code = instruction.operations.index(name)
            is_number = isinstance(operand, int)
            fields = (
                ("operation", code), ("use_imm", int(is_number)),
                ("imm", operand if isinstance(operand, int) else 0),
            )  # fmt: skip
            buffers, sums = [leaf.buffer] * 2, [mine, mine]
            if isinstance(operand, Load):
                self._check_memory(leaf, operand, instruction)
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

    def _check_memory(self, leaf: Store, operand: Load, instruction: Instruction) -> None:
        """Refuse an operand that is in another memory than the instruction reads."""
        scopes = [self.accelerator.scope_of(name) for name in instruction.operands.values()]
        if operand.buffer.scope != scopes[-1]:
            raise ScheduleError(
                f"compute {leaf.buffer.name} by {instruction.name}",
                f"its operand {operand.buffer.name} is in another memory",
                got=operand.buffer.scope, expected=scopes[-1],
                hint=f"load it into {scopes[-1]} by a stage of its own, such as s.cache_read makes",
            )  # fmt: skip

    def _is_at(self, load: Load, mine: Affine) -> bool:
        """Tell whether an element is the one at an index of the same buffer."""
        distance = flat_index(load.buffer, load.indices, self.analyzer).plus(mine, -1)
        return not distance.terms and distance.constant == 0

    def _check_order(
        self, nest: Nest, mine: Affine, steps: list[tuple[str, int | Load]], *, is_in_place: bool
    ) -> None:
        """Refuse operations that cannot run one after another, each over the whole nest.

        Raises
        ------
        ScheduleError
            An operation reads results that another iteration or an operation before it has
            written, or several operations update one element again and again.
        """
        assert isinstance(nest.leaf, Store)
        leaf = nest.leaf
        where = f"compute {leaf.buffer.name} by several instructions"
        for number, (_, operand) in enumerate(steps):
            if not isinstance(operand, Load) or operand.buffer is not leaf.buffer:
                continue
            if not is_in_place or number or not self._is_at(operand, mine):
                raise ScheduleError(
                    where, f"it reads {operand} after an instruction has written it",
                    got=origin_text(leaf),
                    because="each operation runs over all elements before the next one",
                    hint="make the other operand a stage of its own, in the same memory",
                )  # fmt: skip
        moving = {var for part in mine.terms.values() for var in free_vars(part.atom)}
        still = [var for var, n in nest.extents.items() if n > 1 and var not in moving]
        if still and len(steps) > (1 if is_in_place else 0):
            raise ScheduleError(
                where, f"the loop {still[0].name} updates an element again and again",
                got=origin_text(leaf),
                because="each operation runs over all iterations before the next one",
                hint="make what is combined a stage of its own, in the same memory",
            )  # fmt: skip

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
                got=origin_text(nest.leaf),
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
        if name in self._computed or memory is None or copied.instruction.memory == memory.name:
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


def _loads(leaf: Store) -> Iterator[Load]:
    return (node for node in walk(leaf.value) if isinstance(node, Load))
