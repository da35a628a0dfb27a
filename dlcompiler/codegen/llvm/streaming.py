"""Write non-temporal stores, which bypass the caches, under the pragma ``nontemporal``.

They suit a large result that is not read soon: the caches keep other data, and a line that is
written whole is not read first. Machines have them for aligned vectors only; LLVM splits others
into stores of single elements. The loop is therefore written several times, and a test of the
pointers chooses one::

    if C begins at a multiple of 32 bytes:
        for i: C[i*8 : +8] = …          past the caches, in vectors
        fence
    elif C begins at a multiple of 16 bytes:
        for i: C[i*8 : +8] = …          past the caches, in halves of vectors
        fence
    else:
        for i: C[i*8 : +8] = …
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.lanes import progression
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import Binary, Buffer, Const, Expr, For, Load, Region, Store, walk
from dlcompiler.ir.expr import lanes_of

PRAGMA = "nontemporal"

LEAST = 16
"""Alignment of the places that are stored to [byte]: that of NumPy's arrays. Wider vectors are then
stored by parts, which takes 8 % longer (measured on Zen 3, a copy of 64 MiB)."""


def alignments(triple: str) -> tuple[int, ...]:
    """Return the alignments to test for [byte], the largest first."""
    return (32, LEAST) if triple.startswith("x86_64") else (LEAST,)


def streamed(loop: For, known: Collection[Buffer], alignment: int) -> tuple[Buffer, ...]:
    """Return the buffers that a loop may write by non-temporal stores, if they are aligned.

    Parameters
    ----------
    loop
        Any loop; without the pragma, none are returned.
    known
        Buffers that exist before the loop; only their pointers can be tested there.
    alignment
        Alignment of the stores; [byte].
    """
    if not dict(loop.annotations).get(PRAGMA):
        return ()
    nodes = list(walk(loop.body))
    read = {node.buffer for node in nodes if isinstance(node, Load | Region)}
    stores = (node for node in nodes if isinstance(node, Store) and is_streamable(node, alignment))
    found = dict.fromkeys(store.buffer for store in stores)
    return tuple(buffer for buffer in found if buffer in known and buffer not in read)


def is_streamable(store: Store, alignment: int) -> bool:
    """Tell whether a store writes a whole vector at an aligned index."""
    buffer, element_bytes = store.buffer, dtypes.bytes_of(store.buffer.dtype)
    if store.predicate is not None or lanes_of(store.indices) * element_bytes % alignment:
        return False
    distance, step = 0, 0
    for index, stride in zip(store.indices, buffer.strides, strict=True):
        found = progression(index)
        if found is None or not isinstance(stride, int):
            return False
        step += found[1] * stride
        distance = math.gcd(distance, _divisor(found[0]) * stride)
    return step == 1 and distance * element_bytes % alignment == 0


def are_aligned(w: Function, pointers: Sequence[str], alignment: int) -> str:
    """Write the test that all pointers are aligned, and return its operand."""
    numbers = [w.pure(f"ptrtoint ptr {pointer} to i64") for pointer in pointers]
    joined = numbers[0]
    for number in numbers[1:]:
        joined = w.pure(f"or i64 {joined}, {number}")
    return w.pure(f"icmp eq i64 {w.pure(f'and i64 {joined}, {alignment - 1}')}, 0")


def mark(w: Function) -> str:
    """Return the metadata that makes a store non-temporal."""
    return f", !nontemporal !{w.module.debug.note('!{i32 1}')}"


def write_fence(w: Function) -> None:
    """Write a fence, so that threads that see the end of the loop also see its stores.

    On x86 other stores may overtake non-temporal ones, also the store that signals another thread.
    """
    if w.module.triple.startswith(("x86_64", "i686")):
        symbol = w.module.declare("llvm.x86.sse.sfence", "void", "")
        w.effect(f"call void {symbol}()")


def _divisor(index: Expr) -> int:
    """Return a number that divides an index for all values of its variables; 0 for index 0."""
    match index:
        case Const(value):
            return abs(int(value))
        case Binary("add" | "sub", a, b):
            return math.gcd(_divisor(a), _divisor(b))
        case Binary("mul", a, b):
            return _divisor(a) * _divisor(b)
    return 1
