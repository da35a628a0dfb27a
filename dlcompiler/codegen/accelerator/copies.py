"""Copies between DRAM and a memory of an accelerator, as two-dimensional blocks.

A copy instruction moves ``y_size`` rows of ``x_size`` elements. The rows lie densely in the memory
on the chip, and ``x_stride`` elements apart in DRAM; a load can write zeros around them. The inner
loops of a nest first make up an element, then the columns, then the rows. Loops that are left over
run on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlcompiler.arith import Analyzer
from dlcompiler.codegen.accelerator.elements import Lanes, lanes_of
from dlcompiler.codegen.accelerator.forms import Bound, Number, Slots, conjuncts, flat_index
from dlcompiler.codegen.accelerator.nests import HostLoop, Nest, Split, limits_of
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Buffer, Cast, Const, Expr, IfThenElse, Load, Select, Store, Var
from dlcompiler.simulate.accelerators.listing import origin_text
from dlcompiler.target.accelerators import Accelerator, Instruction, Memory
from dlcompiler.target.accelerators.uses import memory_of_scope

PADS = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a block, in elements."""

    extent: int
    sram: int
    """Distance of neighbours in the memory [elements]."""
    dram: int
    """Distance of neighbours in DRAM [elements]."""
    var: Var | None = None
    """The loop that runs along it, if a condition bounds it."""


ONE = Dim(1, 1, 1)


@dataclass(frozen=True, slots=True)
class Block:
    """What one copy instruction moves, in elements; addresses are relative to the buffers."""

    sram: int
    dram: int
    rows: int
    columns: int
    stride: int
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Zeros above, below, to the left and to the right."""
    is_zeros: bool = False
    """Whether all of it is padding; no data is read then."""

    @property
    def covered(self) -> int:
        """Number of elements of the memory that it writes or reads."""
        top, bottom, left, right = self.pads
        return (top + self.rows + bottom) * (left + self.columns + right)


@dataclass(frozen=True, slots=True)
class CopyPattern:
    """A nest that copies: its instruction, its buffers, and what it moves for given numbers."""

    instruction: Instruction
    on_chip: Buffer
    in_dram: Buffer
    host: tuple[HostLoop, ...]
    x: Dim
    y: Dim
    sram: Number
    dram: Number
    numbers: int
    """Numbers in an element; [1]."""
    guards: tuple[Bound, ...]
    """Outside them nothing is copied."""
    pads: tuple[Bound, ...]
    """Outside them a load writes zeros."""
    edges: tuple[Bound, ...]
    """Guards that a load can treat as padding: nothing else writes the buffer, so that no one reads
    what is outside."""
    leaf: Store
    is_one: bool = False
    """Whether each run of the nest must be one instruction."""
    is_idle: bool = False
    """Whether its instructions only pass tokens."""

    def blocks(self, numbers: list[int]) -> Iterator[Block]:
        """Yield the blocks for the numbers of the host's loops around the nest.

        Raises
        ------
        ScheduleError
            A block does not consist of whole elements.
        """
        for _ in runs(self.host, numbers):
            limits = self._limits(self.guards, numbers)
            edges = self._limits(self.edges, numbers)
            if limits is None or edges is None:
                continue
            columns, rows = self._range(self.x, limits), self._range(self.y, limits)
            if self.edges and self._is_one_block(columns, rows, numbers):
                yield self._block(columns, rows, numbers)
                continue
            limits = {var: _within(limits.get(var, edge), edge) for var, edge in edges.items()} | {
                var: limit for var, limit in limits.items() if var not in edges
            }
            yield from self._cut(self._range(self.x, limits), self._range(self.y, limits), numbers)

    def _limits(
        self, bounds: tuple[Bound, ...], numbers: Sequence[int]
    ) -> dict[Var, tuple[int, int]] | None:
        extents = {d.var: d.extent for d in (self.x, self.y) if d.var is not None}
        return limits_of(bounds, numbers, extents)

    def _is_one_block(
        self, columns: tuple[int, int], rows: tuple[int, int], numbers: Sequence[int]
    ) -> bool:
        """Tell whether one load can write all columns and rows, with what is outside as padding."""
        inside = self._limits((*self.pads, *self.edges), numbers)
        if inside is None or not self._is_stride():
            return False
        for dim, outer in ((self.x, columns), (self.y, rows)):
            low, high = _within(outer, self._range(dim, inside))
            most = self.instruction.field(f"{'x' if dim is self.x else 'y'}_pad_0")
            if low >= high or most is None or max(low - outer[0], outer[1] - high) > most.most:
                return False
        return True

    def _is_stride(self) -> bool:
        """Tell whether the distance of rows in DRAM fits its field."""
        field = self.instruction.field("x_stride")
        return field is None or self.y.dram <= field.most

    def _range(self, dim: Dim, limits: dict[Var, tuple[int, int]]) -> tuple[int, int]:
        return (0, dim.extent) if dim.var is None else limits.get(dim.var, (0, dim.extent))

    def _cut(
        self, columns: tuple[int, int], rows: tuple[int, int], numbers: Sequence[int]
    ) -> Iterator[Block]:
        """Yield the blocks of some columns and rows: one, or one a row if rows are not dense."""
        if columns[0] >= columns[1] or rows[0] >= rows[1]:
            return
        is_dense = columns[1] - columns[0] == self.y.sram or self.y.extent == 1
        if not (is_dense and self._is_stride()) and rows[1] - rows[0] > 1:
            if self.is_one:
                problem = "are too far apart in DRAM" if is_dense else "are not dense in the memory"
                raise _not_one_copy(self.leaf, f"its rows {problem}", "each row is a copy")
            for row in range(*rows):
                yield self._block(columns, (row, row + 1), numbers)
        else:
            yield self._block(columns, rows, numbers)

    def _block(
        self, columns: tuple[int, int], rows: tuple[int, int], numbers: Sequence[int]
    ) -> Block:
        inside = self._limits((*self.pads, *self.edges), numbers)
        x = _within(columns, self._range(self.x, inside or {}))
        y = _within(rows, self._range(self.y, inside or {}))
        is_zeros = inside is None or x[0] >= x[1] or y[0] >= y[1]
        sram = self.sram(numbers)
        dram = 0 if is_zeros else self.dram(numbers)
        if sram % self.numbers or dram % self.numbers:
            raise ScheduleError(
                f"copy {self.in_dram.name} to {self.on_chip.name}",
                "it does not begin with a whole element",
                got=f"number {dram if dram % self.numbers else sram}",
                expected=f"a multiple of {self.numbers}",
            )  # fmt: skip
        start = sram // self.numbers + columns[0] * self.x.sram + rows[0] * self.y.sram
        if is_zeros:
            return Block(start, 0, rows[1] - rows[0], columns[1] - columns[0], 1, is_zeros=True)
        source = dram // self.numbers + x[0] * self.x.dram + y[0] * self.y.dram
        size = y[1] - y[0], x[1] - x[0]
        pads = y[0] - rows[0], rows[1] - y[1], x[0] - columns[0], columns[1] - x[1]
        return Block(start, source, *size, self.y.dram if size[0] > 1 else size[1], pads)


def _within(outer: tuple[int, int], inner: tuple[int, int]) -> tuple[int, int]:
    return max(outer[0], inner[0]), min(outer[1], inner[1])


def runs(loops: Sequence[HostLoop], numbers: list[int]) -> Iterator[None]:
    """Set the numbers of some loops to each of their iterations in turn."""
    if not loops:
        yield
        return
    first, *rest = loops
    for value in range(first.extent):
        numbers[first.slot] = value
        yield from runs(rest, numbers)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Both ends of a copy."""

    leaf: Store
    on_chip: tuple[Buffer, tuple[Expr, ...]]
    in_dram: tuple[Buffer, tuple[Expr, ...]]
    kind: str
    padding: Expr | None
    """The condition outside which zeros are loaded."""


def copy_pattern(
    nest: Nest, accelerator: Accelerator, analyzer: Analyzer, slots: Slots, *, is_sole: bool
) -> CopyPattern | None:
    """Return a nest as a copy; None if it is none.

    Parameters
    ----------
    nest
        Loops around one statement.
    accelerator, analyzer, slots
        The machine, and what is known of the loops.
    is_sole
        Whether no other statement writes the buffer.

    Raises
    ------
    ScheduleError
        It is a copy that no instruction of the accelerator can do.
    """
    ends = _ends(nest, accelerator)
    if ends is None:
        return None
    way = "to" if ends.kind == "load" else "from"
    where = f"copy {ends.in_dram[0].name} {way} {ends.on_chip[0].name}"
    memory = memory_of(ends.on_chip[0], accelerator)
    assert memory is not None
    instruction = _instruction(ends, memory, accelerator, where)
    sums = [flat_index(*end, analyzer) for end in (ends.on_chip, ends.in_dram)]
    pads = tuple(conjuncts(ends.padding)) if ends.padding is not None else ()
    if pads and not instruction.pads:
        raise ScheduleError(
            where, f"{instruction.name} writes no padding", got=str(ends.padding),
            hint="store the padding in a stage of its own",
        )  # fmt: skip
    split = Split(nest, analyzer, slots, sums, pads)
    lanes = lanes_of(split, memory.numbers, where)
    x, y = _columns_and_rows(split, lanes, memory.numbers, where)
    together = nest.under("dma_copy", "skip_dma_copy")
    _check_one_copy(split, together, ends.leaf)
    sram, dram = (split.number(form.base) for form in split.forms())
    can_pad = instruction.pads and is_sole and _stays_inside(*ends.on_chip, analyzer)
    guards, edges = ((), nest.conditions) if can_pad else (nest.conditions, ())
    return CopyPattern(
        instruction, ends.on_chip[0], ends.in_dram[0], split.host, x, y, sram, dram,
        memory.numbers, split.bounds(guards), split.bounds(pads), split.bounds(edges), ends.leaf,
        y.var in together, bool(nest.under("skip_dma_copy")),
    )  # fmt: skip


def _stays_inside(buffer: Buffer, indices: Sequence[Expr], analyzer: Analyzer) -> bool:
    """Tell whether indices stay inside their dimensions even where conditions do not hold."""
    return all(
        bounds.low >= 0 and bounds.high < size
        for bounds, size in zip(map(analyzer.interval, indices), buffer.static_shape, strict=True)
    )


def _check_one_copy(split: Split, together: Sequence[Var], leaf: Store) -> None:
    """Refuse loops that the host runs although they are to be one copy."""
    for var in together:
        if var not in split.inner and split.nest.extents[var] > 1:
            raise _not_one_copy(
                leaf, f"the loop {var.name} does not fit into it",
                "a copy has rows that are dense in the memory and equally far apart in DRAM",
            )  # fmt: skip


def _not_one_copy(leaf: Store, problem: str, reason: str) -> ScheduleError:
    """Return the error of a nest that the pragma ``dma_copy`` says is one instruction."""
    return ScheduleError(
        f"copy {leaf.buffer.name} by one instruction", f"cannot detect a 2-D pattern: {problem}",
        got=origin_text(leaf), because=reason,
        hint="put the pragma dma_copy at a loop further inside, attach the stage deeper, or leave"
        " the pragma out: several copies are made then",
    )  # fmt: skip


def memory_of(buffer: Buffer, accelerator: Accelerator) -> Memory | None:
    """Return the memory of an accelerator in which a buffer lies."""
    return memory_of_scope(accelerator, buffer.scope)


def is_load(leaf: Store, accelerator: Accelerator) -> bool:
    """Tell whether a store copies from DRAM into a memory of an accelerator."""
    ends = _ends(Nest((), (), leaf), accelerator)
    return ends is not None and ends.kind == "load"


def _ends(nest: Nest, accelerator: Accelerator) -> _Ends | None:
    """Return both ends of a copy; None if a nest computes something."""
    leaf = nest.leaf
    if not isinstance(leaf, Store):
        return None
    value, padding = leaf.value, None
    if _is_filled(leaf, accelerator):
        own = leaf.buffer, leaf.indices
        return _Ends(leaf, own, own, "load", Const(0, "bool"))
    match value:
        case IfThenElse(condition, a, Const(0)) | Select(condition, a, Const(0)):
            value, padding = a, condition
    if isinstance(value, Cast):
        value = value.value  # a load widens, and a store keeps the low bits
    if not isinstance(value, Load):
        return None
    mine, other = (leaf.buffer, leaf.indices), (value.buffer, value.indices)
    if memory_of(leaf.buffer, accelerator) and value.buffer.scope == "global":
        return _Ends(leaf, mine, other, "load", padding)
    if memory_of(value.buffer, accelerator) and leaf.buffer.scope == "global" and padding is None:
        return _Ends(leaf, other, mine, "store", None)
    return None


def _is_filled(leaf: Store, accelerator: Accelerator) -> bool:
    """Tell whether a store writes zeros where no computation can: only a load can, as padding."""
    memory = memory_of(leaf.buffer, accelerator)
    computed = [m for i in accelerator.instructions for m in list(i.operands.values())[:1]]
    is_zero = isinstance(leaf.value, Const) and leaf.value.value == 0
    return memory is not None and is_zero and memory.name not in computed


def _instruction(ends: _Ends, memory: Memory, accelerator: Accelerator, where: str) -> Instruction:
    """Return the instruction for a copy.

    A store may read a memory that gets each result of another one, as its dtype.
    """
    memories = {memory.name: memory}
    if ends.kind == "store":
        for each in accelerator.instructions:
            for operand, copy in each.also_writes.items():
                if each.operands[operand] == memory.name:
                    memories[copy] = accelerator.memory(copy)
    for each in accelerator.instructions:
        if each.kind == ends.kind and each.memory in memories:
            dtype = memories[each.memory].in_dram or memories[each.memory].dtype
            if ends.in_dram[0].dtype == dtype:
                return each
    raise ScheduleError(
        where, f"{accelerator.name} has no instruction for this {ends.kind}",
        got=f"{ends.in_dram[0].dtype} in DRAM, memory {memory.name}",
        expected="; ".join(i.name for i in accelerator.instructions if i.kind == ends.kind)
        or f"an instruction copy(engine, {'into' if ends.kind == 'load' else 'out_of'}=…)",
    )  # fmt: skip


def _columns_and_rows(split: Split, lanes: Lanes, numbers: int, where: str) -> tuple[Dim, Dim]:
    """Return the columns and rows of a copy, and leave all other loops to the host.

    Raises
    ------
    ScheduleError
        The host would have to run a loop that also runs over an element.
    """
    bounded = {
        bound.var
        for conditions in (split.nest.conditions, split.pads)
        for bound in split.bounds(conditions)
    }
    # Steps that are no whole elements belong to the host, where a block is refused if it begins
    # inside an element.
    for var in [v for v in split.inner if v not in lanes.inside]:
        if any(lanes.factor(form, var) % numbers for form in split.forms()):
            split.leave(var)
    sram, dram = split.forms()
    extents = split.nest.extents
    dims = [
        Dim(
            lanes.rest.get(var, extents[var]), lanes.factor(sram, var) // numbers,
            lanes.factor(dram, var) // numbers, var,
        )
        for var in split.inner
        if lanes.rest.get(var, extents[var]) > 1 or var in bounded
    ]  # fmt: skip
    dims.sort(key=lambda dim: dim.sram)
    x, used = _joined(dims, 1, bounded)
    if x.extent > 1 and x.dram != 1:  # neighbours are apart in DRAM: each is a row
        x, y = ONE, x
    else:
        y, more = _joined(dims[len(used) :], x.extent, bounded)
        used += more
    for dim in dims:
        if dim not in used and dim.var is not None:
            if dim.var in lanes.inside:
                raise ScheduleError(
                    where, f"the loop {dim.var.name} runs over numbers and over elements",
                    hint=f"split it by {lanes.inside[dim.var]}",
                )  # fmt: skip
            split.leave(dim.var)
    return x, y


def _joined(dims: Sequence[Dim], step: int, bounded: set[Var | None]) -> tuple[Dim, list[Dim]]:
    """Return the dimension that begins with a step in the memory, and the loops in it.

    Loops join where the next one goes on where the one before ends, on both sides.
    """
    if not dims or dims[0].sram != step or dims[0].dram < 0:
        return Dim(1, step, step), []
    first, *rest = dims
    used, extent = [first], first.extent
    if first.var in bounded:
        return first, used
    for dim in rest:
        is_next = dim.sram == first.sram * extent and dim.dram == first.dram * extent
        if not is_next or dim.var in bounded:
            break
        extent *= dim.extent
        used.append(dim)
    return Dim(extent, first.sram, first.dram), used
