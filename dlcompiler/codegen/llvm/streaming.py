"""Stores past the caches, under the pragma ``nontemporal``.

A large result that nothing reads soon need not pass through the caches, and a line that is written
whole need not be read first. Machines store so from a vector to a place of its alignment, and LLVM
makes stores of single elements of others: the loop is written several times, and a look at the
pointers chooses::

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
    """Return the alignments to look for, the best one first [byte]."""
    return (32, LEAST) if triple.startswith("x86_64") else (LEAST,)


def streamed(loop: For, known: Collection[Buffer], alignment: int) -> tuple[Buffer, ...]:
    """Return the buffers that a loop may store past the caches, if they begin aligned.

    Parameters
    ----------
    loop
        Any loop; without the pragma, none are returned.
    known
        Buffers that begin before the loop: of the others nothing can be asked there.
    alignment
        Of the places that are stored to [byte].
    """
    if not dict(loop.annotations).get(PRAGMA):
        return ()
    nodes = list(walk(loop.body))
    read = {node.buffer for node in nodes if isinstance(node, Load | Region)}
    stores = (node for node in nodes if isinstance(node, Store) and is_streamable(node, alignment))
    found = dict.fromkeys(store.buffer for store in stores)
    return tuple(buffer for buffer in found if buffer in known and buffer not in read)


def is_streamable(store: Store, alignment: int) -> bool:
    """Tell whether a store is of a whole vector to an aligned place, if its buffer is aligned."""
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
    """Write whether all pointers are aligned, and return it."""
    numbers = [w.pure(f"ptrtoint ptr {pointer} to i64") for pointer in pointers]
    joined = numbers[0]
    for number in numbers[1:]:
        joined = w.pure(f"or i64 {joined}, {number}")
    return w.pure(f"icmp eq i64 {w.pure(f'and i64 {joined}, {alignment - 1}')}, 0")


def mark(w: Function) -> str:
    """Return the metadata that makes a store pass the caches."""
    return f", !nontemporal !{w.module.debug.note('!{i32 1}')}"


def write_fence(w: Function) -> None:
    """Let whoever is told that the loop has ended see what it stored.

    On x86 such stores pass others, also the one that tells another thread.
    """
    if w.module.triple.startswith(("x86_64", "i686")):
        symbol = w.module.declare("llvm.x86.sse.sfence", "void", "")
        w.effect(f"call void {symbol}()")


def _divisor(index: Expr) -> int:
    """Return a number that divides an index whatever its variables are; 0 if it is 0."""
    match index:
        case Const(value):
            return abs(int(value))
        case Binary("add" | "sub", a, b):
            return math.gcd(_divisor(a), _divisor(b))
        case Binary("mul", a, b):
            return _divisor(a) * _divisor(b)
    return 1
