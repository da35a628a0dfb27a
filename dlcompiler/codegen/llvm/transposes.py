"""Read columns of a block of memory by rows and transpose them in registers.

::

    C[0, 0 : +8] = T[0 : +8, 0]             row l = T[l, 0 : +8]     for l in 0 … 7
    C[1, 0 : +8] = T[0 : +8, 1]      →      columns = transposed(rows)
    …                                       C[r, 0 : +8] = column r  for r in 0 … 7
    C[7, 0 : +8] = T[0 : +8, 7]

Eight columns of eight elements are 64 loads of one element each, and as many insertions; as rows
they are 8 loads and 24 shuffles. A block is found in the loads of consecutive stores: as many as a
vector has lanes, from one buffer, each beginning one element after the previous one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.addresses import Addresses, Offset, step_of
from dlcompiler.codegen.llvm.types import value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.codegen.operands import operands
from dlcompiler.ir import Buffer, Expr, IfThenElse, Load, Logical, Store

_LANES = (4, 8, 16)
_ELEMENT_BYTES = (1, 2, 4, 8)
_SHUFFLED_BYTES = 16  # what an instruction of x86 shuffles freely: a half of a 256-bit register


@dataclass(eq=False)
class _Block:
    """A square block of a buffer; the program loads each of its columns."""

    buffer: Buffer
    dtype: str
    first: Offset
    """Offset of its first element."""
    step: int
    """Distance between its rows [elements]."""
    columns: list[str] = field(default_factory=list)
    """The operand of each column, after they are written."""


@dataclass(frozen=True)
class Column:
    """A load that is a column of a block."""

    block: _Block
    number: int

    def operand(self, addresses: Addresses) -> str:
        """Return the operand of the column; the first use writes all columns of the block."""
        block, w = self.block, addresses.w
        if not block.columns:
            size = dtypes.bytes_of(dtypes.element(block.dtype))
            starts = (
                addresses.pointer(block.buffer, block.first.plus(row * block.step))
                for row in range(dtypes.lanes(block.dtype))
            )
            type_ = value_type(block.dtype)
            rows = [w.value(f"load {type_}, ptr {start}, align {size}") for start in starts]
            block.columns = transposed(w, rows, block.dtype)
        return block.columns[self.number]


def find_columns(stores: Sequence[Store], addresses: Addresses) -> dict[int, Column]:
    """Return the loads of neighbouring stores that are columns of blocks, by ``id``.

    A store to the buffer that they read ends a block, because later loads may read new values.
    The offsets of candidate loads are written to the function.
    """
    found: dict[int, Column] = {}
    waiting: dict[Buffer, list[Load]] = defaultdict(list)
    for store in stores:
        for load in _plain_loads(store.value):
            if _may_be_column(load):
                waiting[load.buffer].append(load)
        found |= _columns(waiting.pop(store.buffer, []), addresses)
    for loads in waiting.values():
        found |= _columns(loads, addresses)
    return found


def _plain_loads(value: Expr) -> list[Load]:
    """Return the loads without a predicate; no loads if the expression contains a choice."""
    loads: list[Load] = []
    pending, seen = [value], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case IfThenElse() | Logical():
                return []
            case Load(_, _, None):
                loads.append(node)
        pending.extend(operands(node))
    return loads


def _may_be_column(load: Load) -> bool:
    lanes, element = dtypes.lanes(load.dtype), dtypes.element(load.dtype)
    if lanes not in _LANES or dtypes.bytes_of(element) not in _ELEMENT_BYTES:
        return False
    if dtypes.is_bool(element):  # a bit in registers, a byte in memory
        return False
    step = step_of(load.buffer, load.indices)
    return step is not None and abs(step) >= lanes


def _columns(loads: Sequence[Load], addresses: Addresses) -> dict[int, Column]:
    """Return the loads of one buffer that are columns of a block with as many columns as rows."""
    beside: dict[object, dict[int, list[Load]]] = defaultdict(lambda: defaultdict(list))
    starts: dict[object, tuple[Load, Offset, int]] = {}
    for load in loads if len(loads) >= min(_LANES) else ():
        progression = addresses.progression(load.buffer, load.indices)
        assert progression is not None
        offset, step = progression
        key = load.dtype, offset.variable, step
        beside[key][offset.constant].append(load)
        starts[key] = load, offset, step
    found: dict[int, Column] = {}
    for same, group in beside.items():
        example, offset, step = starts[same]
        lanes = dtypes.lanes(example.dtype)
        for first in sorted(group):
            wanted = range(first, first + lanes)
            if not all(start in group for start in wanted):
                continue
            corner = Offset(offset.variable, first)
            block = _Block(example.buffer, example.dtype, corner, step)
            for number, start in enumerate(wanted):
                found |= {id(load): Column(block, number) for load in group.pop(start)}
    return found


def transposed(w: Function, rows: Sequence[str], dtype: str) -> list[str]:
    """Write the columns of a square block from its rows.

    Pairs of rows are interleaved, first within 16 bytes, then by pieces of 16 bytes: each step is
    one instruction of x86 per row.
    """
    lanes = dtypes.lanes(dtype)
    inner = min(_SHUFFLED_BYTES // dtypes.bytes_of(dtypes.element(dtype)), lanes)
    current = list(rows)
    width = 1
    while width < inner:
        current = _interleaved(w, current, dtype, inner, width)
        width *= 2
    piece = inner
    while piece < lanes:
        current = _exchanged(w, current, dtype, piece)
        piece *= 2
    # Halves of halves come out as in a fast Fourier transform: by reversed bits.
    return [current[_reversed_bits(column, inner)] for column in range(lanes)]


def _interleaved(w: Function, rows: Sequence[str], dtype: str, inner: int, width: int) -> list[str]:
    """Interleave runs of `width` lanes from rows `width` apart, in groups of `inner` lanes."""
    lanes, result = dtypes.lanes(dtype), list(rows)
    for first in (n for n in range(lanes) if not n & width):
        for half in (0, 1):
            order = [
                piece + half * inner // 2 + run * width + lane + (lanes if second else 0)
                for piece in range(0, lanes, inner)
                for run in range(inner // 2 // width)
                for second in (False, True)
                for lane in range(width)
            ]
            pair = rows[first], rows[first + width]
            result[first + half * width] = _shuffle(w, dtype, pair, order)
    return result


def _reversed_bits(number: int, below: int) -> int:
    """Return `number` with its bits below the power of two `below` in the opposite order."""
    result, bit, mirrored = number - number % below, 1, below // 2
    while mirrored:
        result += mirrored if number & bit else 0
        bit, mirrored = bit * 2, mirrored // 2
    return result


def _exchanged(w: Function, rows: Sequence[str], dtype: str, piece: int) -> list[str]:
    """Swap runs of `piece` lanes between pairs of rows that are `piece` apart."""
    lanes, result = dtypes.lanes(dtype), list(rows)
    for first in (n for n in range(lanes) if not n & piece):
        pair = rows[first], rows[first + piece]
        kept = [lane if not lane & piece else lanes + lane - piece for lane in range(lanes)]
        moved = [lane + piece if not lane & piece else lanes + lane for lane in range(lanes)]
        result[first] = _shuffle(w, dtype, pair, kept)
        result[first + piece] = _shuffle(w, dtype, pair, moved)
    return result


def _shuffle(w: Function, dtype: str, pair: tuple[str, str], order: Sequence[int]) -> str:
    type_ = value_type(dtype)
    chosen = ", ".join(f"i32 {lane}" for lane in order)
    return w.pure(
        f"shufflevector {type_} {pair[0]}, {type_} {pair[1]}, <{len(order)} x i32> <{chosen}>"
    )
