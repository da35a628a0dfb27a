"""Write loads and stores of one element, of adjacent elements, or of each lane by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import arithmetic, streaming
from dlcompiler.codegen.llvm.addresses import Addresses, Offset, splat
from dlcompiler.codegen.llvm.types import (
    constant,
    intrinsic_suffix,
    is_bool,
    memory_type,
    value_type,
)
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError
from dlcompiler.ir import Buffer, Load, Prefetch, Store
from dlcompiler.ir.expr import lanes_of

# Elements that a few vectors hold are read by whole vectors and shuffled, others one by one: more
# vectors would outnumber the elements by more than the shuffles save.
_MOST_VECTORS = 4
_FEWEST_LANES = 4


@dataclass(frozen=True, slots=True)
class Mask:
    """The active lanes: only these may access memory."""

    operand: str
    lanes: int

    @property
    def type(self) -> str:
        """The LLVM type of the mask."""
        return f"<{self.lanes} x i1>"

    def lane(self, w: Function, number: int) -> str:
        """Tell whether one lane is active."""
        return w.pure(f"extractelement {self.type} {self.operand}, i64 {number}")

    def any(self, w: Function) -> str:
        """Tell whether any lane is active."""
        return self._reduced(w, "or")

    def all(self, w: Function) -> str:
        """Tell whether all lanes are active."""
        return self._reduced(w, "and")

    def _reduced(self, w: Function, operation: str) -> str:
        name = f"llvm.vector.reduce.{operation}.v{self.lanes}i1"
        symbol = w.module.declare(name, "i1", self.type)
        return w.pure(f"call i1 {symbol}({self.type} {self.operand})")


# -- loads ----------------------------------------------------------------------------------------


def load(addresses: Addresses, node: Load, mask: Mask | None) -> str:
    """Write a load and return its value.

    Parameters
    ----------
    addresses
        The addresses of the function to append to.
    node
        The load.
    mask
        The lanes that may access memory; None for all. A scalar load under a mask is done if any
        lane is active. A lane that is not loaded gets 0.
    """
    w, buffer, dtype = addresses.w, node.buffer, node.dtype
    lanes = dtypes.lanes(dtype)
    if lanes == 1:
        return _load_any(addresses, buffer, addresses.offset(buffer, node.indices), mask)
    found = addresses.progression(buffer, node.indices)
    if found is None:
        near = addresses.pattern(buffer, node.indices) if _may_select(lanes, mask) else None
        if near is not None and len(_starts(near[1])) <= _MOST_VECTORS:
            return _load_selected(addresses, buffer, *near, dtype)
        offsets = addresses.scattered(buffer, node.indices, lanes)
        return _load_lanes(addresses, buffer, offsets, mask)
    base, step = found
    if step == 0:
        value = splat(w, _load_any(addresses, buffer, base, mask), buffer.dtype, lanes)
        if mask is None:
            return value
        zero = constant(0, dtype)
        return arithmetic.select(w, dtype, f"boolx{lanes}", mask.operand, value, zero)
    if step == 1:
        return _load_neighbours(addresses, buffer, base, dtype, mask)
    if _may_select(lanes, mask) and abs(step) <= _MOST_VECTORS:
        places = tuple(lane * step for lane in range(lanes))
        return _load_selected(addresses, buffer, base, places, dtype)
    offsets = [base.plus(lane * step) for lane in range(lanes)]
    return _load_lanes(addresses, buffer, offsets, mask)


def _load_any(addresses: Addresses, buffer: Buffer, offset: Offset, mask: Mask | None) -> str:
    """Load one element if any lane of the mask is active."""
    return _load_one(addresses, buffer, offset, mask.any(addresses.w) if mask else None)


def _load_one(addresses: Addresses, buffer: Buffer, offset: Offset, condition: str | None) -> str:
    """Load one element if a condition holds; else, to avoid a jump, load a 0 from the stack."""
    w = addresses.w
    if condition is None:
        return _from_memory(w, _read(addresses, buffer, offset, buffer.dtype), buffer.dtype)
    address = addresses.pointer(buffer, offset, in_bounds=False)
    chosen = w.pure(f"select i1 {condition}, ptr {address}, ptr {w.zero()}")
    value = w.value(f"load {memory_type(buffer.dtype)}, ptr {chosen}{_align(buffer)}")
    return _from_memory(w, value, buffer.dtype)


def _read(addresses: Addresses, buffer: Buffer, offset: Offset, dtype: str) -> str:
    address = addresses.pointer(buffer, offset)
    return addresses.w.value(f"load {memory_type(dtype)}, ptr {address}{_align(buffer)}")


def _load_neighbours(
    addresses: Addresses, buffer: Buffer, base: Offset, dtype: str, mask: Mask | None
) -> str:
    w, type_ = addresses.w, memory_type(dtype)
    if mask is None:
        return _from_memory(w, _read(addresses, buffer, base, dtype), dtype)
    if not _has_masks(buffer):
        whole, part, end = w.name("whole"), w.name("part"), w.name("part.end")
        w.branch(mask.all(w), whole, part)
        w.open(whole)
        value = _read(addresses, buffer, base, dtype)
        w.jump(end)
        w.open(part)
        incoming = [(value, whole), (_masked_load(addresses, buffer, base, dtype, mask), w.block)]
        w.jump(end)
        return _from_memory(w, w.join(end, type_, incoming), dtype)
    return _from_memory(w, _masked_load(addresses, buffer, base, dtype, mask), dtype)


def _masked_load(addresses: Addresses, buffer: Buffer, base: Offset, dtype: str, mask: Mask) -> str:
    w, type_ = addresses.w, memory_type(dtype)
    # The first lane may be inactive and outside the buffer: with `inbounds` its address would be
    # poison, although no lane reads it.
    address = addresses.pointer(buffer, base, in_bounds=False)
    suffix = intrinsic_suffix(_as_stored(dtype))
    symbol = w.module.declare(f"llvm.masked.load.{suffix}.p0", type_, f"ptr, {mask.type}, {type_}")
    return w.value(
        f"call {type_} {symbol}(ptr align {dtypes.bytes_of(buffer.dtype)} {address}, "
        f"{mask.type} {mask.operand}, {type_} zeroinitializer)"
    )


def _may_select(lanes: int, mask: Mask | None) -> bool:
    return mask is None and lanes >= _FEWEST_LANES


def _width(places: Sequence[int]) -> int:
    """Return the lanes of the vectors that read elements: no more than these are apart."""
    reach = max(places) - min(places) + 1
    return min(len(places), 1 << (reach.bit_length() - 1))


def _starts(places: Sequence[int]) -> list[int]:
    """Return where the vectors begin that together hold all elements.

    No vector reads before the first or beyond the last element: it might leave the buffer.
    """
    width, starts = _width(places), list[int]()
    for place in sorted(places):
        if not starts or place >= starts[-1] + width:
            starts.append(min(place, max(places) - width + 1))
    return starts


def _load_selected(
    addresses: Addresses, buffer: Buffer, base: Offset, places: Sequence[int], dtype: str
) -> str:
    """Load whole vectors that hold the elements at some places, then select these by shuffles."""
    w, lanes, width, starts = addresses.w, len(places), _width(places), _starts(places)
    if width == 1:
        one = _load_any(addresses, buffer, base.plus(places[0]), None)
        return splat(w, one, buffer.dtype, lanes)
    kind = dtypes.with_lanes(buffer.dtype, width)
    type_ = memory_type(kind)
    vectors = [_read(addresses, buffer, base.plus(start), kind) for start in starts]
    if width < lanes:
        return _from_memory(w, _select_of_two(w, width, kind, vectors, starts, places), dtype)
    held = [max(n for n, start in enumerate(starts) if start <= place) for place in places]
    result = "poison"
    for number, (vector, start) in enumerate(zip(vectors, starts, strict=True)):
        chosen = ", ".join(
            f"i32 {lanes + place - start if of == number else lane if of < number else 'poison'}"
            for lane, (place, of) in enumerate(zip(places, held, strict=True))
        )
        result = w.pure(
            f"shufflevector {type_} {result}, {type_} {vector}, <{lanes} x i32> <{chosen}>"
        )
    return _from_memory(w, result, dtype)


def _select_of_two(
    w: Function,
    width: int,
    dtype: str,
    vectors: Sequence[str],
    starts: Sequence[int],
    places: Sequence[int],
) -> str:
    """Select elements of one or two vectors of `width` lanes, fewer than those of the result."""
    type_ = memory_type(dtype)
    first, second = (*vectors, "poison")[:2]
    chosen = ", ".join(
        f"i32 {place - starts[0] if place < starts[0] + width else width + place - starts[1]}"
        for place in places
    )
    return w.pure(
        f"shufflevector {type_} {first}, {type_} {second}, <{len(places)} x i32> <{chosen}>"
    )


def _has_masks(buffer: Buffer) -> bool:
    """Tell whether machines have masked loads and stores of elements of this size.

    They have none below 32 bits: LLVM expands these into a jump per lane. Callers therefore test
    first whether all lanes are active.
    """
    return dtypes.bytes_of(buffer.dtype) >= 4


def _load_lanes(
    addresses: Addresses, buffer: Buffer, offsets: Sequence[Offset], mask: Mask | None
) -> str:
    w, lanes = addresses.w, len(offsets)
    type_, element = value_type(dtypes.with_lanes(buffer.dtype, lanes)), value_type(buffer.dtype)
    result = "poison"
    for lane, offset in enumerate(offsets):
        condition = mask.lane(w, lane) if mask else None
        value = _load_one(addresses, buffer, offset, condition)
        result = w.pure(f"insertelement {type_} {result}, {element} {value}, i64 {lane}")
    return result


# -- stores ---------------------------------------------------------------------------------------


def store(addresses: Addresses, node: Store, value: str, mask: Mask | None) -> None:
    """Write a store of the operand `value`, in the lanes of `mask`; None for all lanes."""
    w, buffer = addresses.w, node.buffer
    lanes = lanes_of(node.indices)
    if dtypes.lanes(node.value.dtype) != lanes:
        raise InternalError("generate LLVM code", f"{node.value.dtype} is stored to {lanes} places")
    if lanes == 1:
        _write(addresses, buffer, addresses.offset(buffer, node.indices), buffer.dtype, value)
        return
    vector_dtype = dtypes.with_lanes(buffer.dtype, lanes)
    found = addresses.progression(buffer, node.indices)
    if found is not None and found[1] == 1:
        if mask is None:
            alignment = addresses.streamed.get(buffer, 0)
            if alignment and not streaming.is_streamable(node, alignment):
                alignment = 0
            _write(addresses, buffer, found[0], vector_dtype, value, streamed=alignment)
        elif _has_masks(buffer):
            _write_neighbours(addresses, buffer, found[0], value, mask)
        else:
            _write_narrow(addresses, buffer, found[0], value, mask)
        return
    if found is not None:
        offsets = [found[0].plus(lane * found[1]) for lane in range(lanes)]
    else:
        offsets = addresses.scattered(buffer, node.indices, lanes)
    for lane, offset in enumerate(offsets):
        item = w.pure(f"extractelement {value_type(vector_dtype)} {value}, i64 {lane}")
        if mask is None:
            _write(addresses, buffer, offset, buffer.dtype, item)
        else:
            _write_one(addresses, buffer, offset, item, mask.lane(w, lane))


def _write_narrow(
    addresses: Addresses, buffer: Buffer, base: Offset, value: str, mask: Mask
) -> None:
    w = addresses.w
    whole, part, end = w.name("whole"), w.name("part"), w.name("part.end")
    w.branch(mask.all(w), whole, part)
    w.open(whole)
    _write(addresses, buffer, base, dtypes.with_lanes(buffer.dtype, mask.lanes), value)
    w.jump(end)
    w.open(part)
    _write_neighbours(addresses, buffer, base, value, mask)
    w.jump(end)
    w.open(end)


def _write_neighbours(
    addresses: Addresses, buffer: Buffer, base: Offset, value: str, mask: Mask
) -> None:
    w, dtype = addresses.w, dtypes.with_lanes(buffer.dtype, mask.lanes)
    type_, suffix = memory_type(dtype), intrinsic_suffix(_as_stored(dtype))
    symbol = w.module.declare(
        f"llvm.masked.store.{suffix}.p0", "void", f"{type_}, ptr, {mask.type}"
    )
    address = addresses.pointer(buffer, base, in_bounds=False)
    w.effect(
        f"call void {symbol}({type_} {_to_memory(w, value, dtype)}, "
        f"ptr align {dtypes.bytes_of(buffer.dtype)} {address}, {mask.type} {mask.operand})"
    )


def _write_one(
    addresses: Addresses, buffer: Buffer, offset: Offset, value: str, condition: str
) -> None:
    """Store one element if a condition holds; else, to avoid a jump, write to unused stack."""
    w = addresses.w
    address = addresses.pointer(buffer, offset, in_bounds=False)
    chosen = w.pure(f"select i1 {condition}, ptr {address}, ptr {w.waste()}")
    stored = _to_memory(w, value, buffer.dtype)
    w.effect(f"store {memory_type(buffer.dtype)} {stored}, ptr {chosen}{_align(buffer)}")


def _write(
    addresses: Addresses,
    buffer: Buffer,
    offset: Offset,
    dtype: str,
    value: str,
    *,
    streamed: int = 0,
) -> None:
    w = addresses.w
    address = addresses.pointer(buffer, offset)
    stored = _to_memory(w, value, dtype)
    how = f", align {streamed}{streaming.mark(w)}" if streamed else _align(buffer)
    w.effect(f"store {memory_type(dtype)} {stored}, ptr {address}{how}")


def prefetch(addresses: Addresses, node: Prefetch) -> None:
    """Write the hint that an element will be read soon."""
    w = addresses.w
    offset = addresses.offset(node.buffer, node.indices)
    address = addresses.pointer(node.buffer, offset, in_bounds=False)
    symbol = w.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    w.effect(f"call void {symbol}(ptr {address}, i32 0, i32 3, i32 1)")


# -- what memory holds ----------------------------------------------------------------------------


def _align(buffer: Buffer) -> str:
    # Arrays of callers may be aligned to their elements only; a larger value would be undefined
    # behaviour. For own buffers LLVM finds the alignment at the `alloca` or the workspace call.
    return f", align {dtypes.bytes_of(buffer.dtype)}"


def _as_stored(dtype: str) -> str:
    return dtypes.with_lanes("uint8", dtypes.lanes(dtype)) if is_bool(dtype) else dtype


def _from_memory(w: Function, value: str, dtype: str) -> str:
    if not is_bool(dtype):
        return value
    return w.pure(f"icmp ne {memory_type(dtype)} {value}, {constant(0, _as_stored(dtype))}")


def _to_memory(w: Function, value: str, dtype: str) -> str:
    if not is_bool(dtype):
        return value
    return w.pure(f"zext {value_type(dtype)} {value} to {memory_type(dtype)}")
