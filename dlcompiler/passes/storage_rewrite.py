"""Let buffers whose lifetimes do not overlap share memory.

*Before*::

    def main(A: float32[64, 32], C: float32[64, 32]):
        allocate B: float32[64, 32]
        for i in range(64):
            for j in range(32):
                B[i, j] = A[i, j]*2.0
        for i in range(64):
            for j in range(32):
                C[i, j] = B[j*2, i // 2]
        allocate D: float32[2048]
        for i in range(2048):
            D[i] = C[i // 32, i % 32]
        for i in range(64):
            for j in range(32):
                C[i, j] = D[i*32 + j]

*After*::

    def main(A: float32[64, 32], C: float32[64, 32]):
        allocate B_D: float32[2048]
        for i in range(64):
            for j in range(32):
                B_D[i*32 + j] = A[i, j]*2.0
        for i in range(64):
            for j in range(32):
                C[i, j] = B_D[j*2*32 + i // 2]
        for i in range(2048):
            B_D[i] = C[i // 32, i % 32]
        for i in range(64):
            for j in range(32):
                C[i, j] = B_D[i*32 + j]

Buffers share memory if they have the same scope and dtype, are allocated inside the same parallel
and vectorized loops (whose iterations have buffers of their own), and are never live at the same
time. For a buffer allocated around a loop, the loop counts as one moment.
One exception: a nest may write an element of one buffer *in place* of the same element of another
that it is the last to read, where each element is written once.

Small buffers keep their own memory, because LLVM turns them into registers. So do operands of
intrinsics, which use the dimensions of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from dlcompiler import dtypes
from dlcompiler.arith import Affine, Analyzer, Interval
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Origin,
    Prefetch,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    free_vars,
    is_concurrent,
    rewrite,
    structural_key,
    walk,
)
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.passes.base import constant_extent, merge_origins, statements
from dlcompiler.passes.flatten_storage import elements_spanned, flat_index, with_flat_accesses

MIN_BYTES = 4096
"""Smaller buffers may become registers, which sharing would prevent; [byte]."""


def storage_rewrite(func: PrimFunc, *, min_bytes: int = MIN_BYTES) -> PrimFunc:
    """Let buffers whose lifetimes do not overlap share memory.

    Parameters
    ----------
    func
        A function without vector operations. Buffers of symbolic extents share with those of the
        same number of elements.
    min_bytes
        Buffers of known size below this keep their own memory; [byte].

    Returns
    -------
    PrimFunc
        `storage_bytes` of it and of `func` tell what was saved.
    """
    found = [node.buffer for node in statements(func.body) if isinstance(node, Allocate)]
    if len(set(found)) < 2:
        return func
    survey = _Survey(func)
    survey.visit(func.body, None, ())
    slots = [slot for slot in _assign(survey, min_bytes) if len(slot.lives) > 1]
    return func.with_body(_rewritten(func.body, slots)) if slots else func


def storage_bytes(func: PrimFunc) -> int:
    """Return the total size of the allocated buffers whose size is known [byte]."""
    own = {node.buffer for node in statements(func.body) if isinstance(node, Allocate)}
    return sum(_bytes(buffer) or 0 for buffer in own)


def _bytes(buffer: Buffer) -> int | None:
    elements = elements_spanned(buffer)
    return elements * dtypes.bytes_of(buffer.dtype) if isinstance(elements, int) else None


# -- lifetimes -------------------------------------------------------------------------------------

Span = tuple[int, int]
Path = tuple[Stmt, ...]


@dataclass
class _Life:
    """The lifetime of a buffer: for each allocation, the time of the first and last access."""

    buffer: Buffer
    region: For | None
    can_share: bool
    spans: list[Span] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    origin: Origin = ()


class _Survey:
    """Walks the statements in order of execution and numbers them, to find lifetimes."""

    def __init__(self, func: PrimFunc) -> None:
        self.variables = set(func.variables)
        self.fixed = {node.buffer for node in walk(func.body) if isinstance(node, Region)}
        """Arguments of external calls: these use the shape and the strides."""
        self.moment = 0
        self.lives: dict[Buffer, _Life] = {}
        self.open: dict[Buffer, Span | None] = {}
        self.nests: dict[Span, Stmt] = {}
        self.in_regions: set[Buffer] = set()
        """The buffers that intrinsics work on."""

    def visit(self, stmt: Stmt, region: For | None, path: Path) -> set[Buffer]:
        """Survey a statement and its parts; return the outer buffers that it accesses."""
        path = (*path, stmt)
        first = self.moment + 1
        match stmt:
            case Allocate():
                return self.allocate(stmt, region, path)
            case For():
                region = stmt if is_concurrent(stmt.kind) else region
                touched = self.touch(stmt.extent) | self.visit(stmt.body, region, path)
                for buffer in touched:  # an iteration may read values of the previous one
                    self.extend(buffer, first, self.moment)
            case IntrinsicCall():  # one moment: the order of its accesses is not specified
                touched = self.touch(*stmt.regions, stmt=stmt)
            case _:
                own = [child for child in children(stmt) if isinstance(child, Expr)]
                touched = self.touch(*own, stmt=stmt)
                for child in children(stmt):
                    if isinstance(child, Stmt):
                        touched |= self.visit(child, region, path)
        if isinstance(stmt, For | Store):
            self.nests[first, self.moment] = stmt
        return touched

    def touch(self, *exprs: Expr, stmt: Stmt | None = None) -> set[Buffer]:
        """Advance the time by one, and extend the lifetimes of the buffers accessed then."""
        self.moment += 1
        used = {node.buffer for expr in exprs for node in walk(expr) if isinstance(node, Load)}
        if isinstance(stmt, Store | Prefetch):
            used.add(stmt.buffer)
        if isinstance(stmt, IntrinsicCall):
            used.update(region.buffer for region in stmt.regions)
            self.in_regions |= used
        touched = {buffer for buffer in used if buffer in self.open}
        for buffer in touched:
            self.extend(buffer, self.moment, self.moment)
        return touched

    def extend(self, buffer: Buffer, first: int, last: int) -> None:
        span = self.open[buffer]
        self.open[buffer] = (first, last) if span is None else (min(span[0], first), last)

    def allocate(self, stmt: Allocate, region: For | None, path: Path) -> set[Buffer]:
        buffer = stmt.buffer
        self.open[buffer] = None
        touched = self.visit(stmt.body, region, path)
        span = self.open.pop(buffer)
        if buffer not in self.lives:
            is_bound = stmt.double is not None or buffer.separators or buffer in self.fixed
            can_share = not is_bound and self.is_free(buffer)
            self.lives[buffer] = _Life(buffer, region, can_share)
        life = self.lives[buffer]
        # An intrinsic depends on the dimensions of its buffers, so they cannot be replaced.
        is_plain = buffer not in self.in_regions
        life.can_share = life.can_share and is_plain and life.region is region
        life.spans += [] if span is None else [span]
        life.paths.append(path)
        life.origin = merge_origins(life.origin, stmt.origin)
        return touched - {buffer}

    def is_free(self, buffer: Buffer) -> bool:
        """Tell whether a buffer may be allocated further out: no loop changes its size."""
        extents = [
            extent for extent in (*buffer.shape, *buffer.strides) if isinstance(extent, Expr)
        ]
        return all(free_vars(extent) <= self.variables for extent in extents)


# -- assignment to slots ---------------------------------------------------------------------------


@dataclass
class _Slot:
    """Buffers that share memory."""

    lives: list[_Life] = field(default_factory=list)
    size: int = 0
    end: int = -1
    """The last moment at which one of them is live."""

    def add(self, life: _Life, size: int) -> None:
        self.lives.append(life)
        self.size = max(self.size, size)
        self.end = max(self.end, *(last for _, last in life.spans))


def _assign(survey: _Survey, min_bytes: int) -> list[_Slot]:
    """Give each buffer the free slot with the closest size, or a new slot."""
    slots: dict[object, list[_Slot]] = {}
    lives = [life for life in survey.lives.values() if life.can_share and life.spans]
    for life in sorted(lives, key=lambda life: life.spans[0]):
        buffer, size = life.buffer, _bytes(life.buffer)
        if size is not None and size < max(min_bytes, 1):
            continue
        elements = elements_spanned(buffer)
        kind = "known" if isinstance(elements, int) else structural_key(elements)
        key = (id(life.region), buffer.scope, buffer.dtype, kind)
        free = [slot for slot in slots.setdefault(key, []) if _fits(life, slot, survey)]
        if not free:
            free = [_Slot()]
            slots[key] += free
        closest = min(free, key=lambda slot: abs(slot.size - (size or 0)))
        closest.add(life, size or 0)
    return [slot for group in slots.values() for slot in group]


def _fits(life: _Life, slot: _Slot, survey: _Survey) -> bool:
    if slot.end < min(first for first, _ in life.spans):
        return True
    return all(
        _is_apart(mine, theirs) or _is_in_place(other, theirs, life, mine, survey)
        for other in slot.lives
        for theirs in other.spans
        for mine in life.spans
    )


def _is_apart(a: Span, b: Span) -> bool:
    return a[1] < b[0] or b[1] < a[0]


def _is_in_place(old: _Life, read: Span, new: _Life, written: Span, survey: _Survey) -> bool:
    """Tell whether the nest that last reads `old` and first writes `new` may work in place."""
    nest = survey.nests.get((written[0], read[1]))
    if nest is None or not read[0] < written[0] or not read[1] <= written[1]:
        return False
    loops, body = [], nest
    while not isinstance(body, Store):
        match body:
            case For():
                loops.append(body)
                body = body.body
            case If(condition, then, None) if not _reads(condition, old.buffer):
                body = then
            case _:
                return False
    if body.buffer is not new.buffer or _reads(body.value, new.buffer):
        return False
    target = flat_index(body.buffer, body.indices)
    analyzer = Analyzer({loop.var: Interval(0, (constant_extent(loop) or 1) - 1) for loop in loops})
    place = analyzer.affine(target)
    for load in _loads(body, old.buffer):
        if not _is_same(analyzer.affine(flat_index(load.buffer, load.indices)), place):
            return False
    return (
        not any(_reads(index, old.buffer) for index in body.indices)
        and all(constant_extent(loop) is not None for loop in loops)
        and _is_injective(place, loops)
    )


def _reads(expr: Expr, buffer: Buffer) -> bool:
    return any(isinstance(node, Load) and node.buffer is buffer for node in walk(expr))


def _loads(store: Store, buffer: Buffer) -> Iterator[Load]:
    for node in walk(store.value):
        if isinstance(node, Load) and node.buffer is buffer:
            yield node


def _is_same(a: Affine, b: Affine) -> bool:
    difference = a.plus(b, -1)
    return difference.is_constant and difference.constant == 0


def _is_injective(place: Affine, loops: list[For]) -> bool:
    """Tell whether no two iterations of the loops access the same element."""
    digits: list[tuple[int, int]] = []
    counts: Mapping[Var, int] = {loop.var: constant_extent(loop) or 0 for loop in loops}
    left = {var for var, count in counts.items() if count > 1}
    for term in place.terms.values():
        inside = [var for part in term.parts for var in free_vars(part) if var in counts]
        if not inside:
            continue
        if len(term.parts) > 1 or term.parts[0] not in left:
            return False
        left.remove(inside[0])
        digits.append((abs(term.factor), counts[inside[0]]))
    # Like the digits of a number: each stride exceeds the sum of all smaller steps.
    reach = 0
    for factor, count in sorted(digits):
        if factor <= reach:
            return False
        reach += factor * (count - 1)
    return not left


# -- the new program -------------------------------------------------------------------------------


def _rewritten(body: Stmt, slots: list[_Slot]) -> Stmt:
    """Replace the buffers of each slot by one, allocated around all uses of the old ones."""
    around: dict[int, list[tuple[Buffer, Origin]]] = {}
    gone: set[Buffer] = set()
    flat: dict[Buffer, Buffer] = {}
    same: dict[Buffer, Buffer] = {}
    for slot in slots:
        buffers = [life.buffer for life in slot.lives]
        shared = _shared_buffer(buffers)
        has_one_shape = all(_layout(buffer) == _layout(shared) for buffer in buffers)
        (same if has_one_shape else flat).update(dict.fromkeys(buffers, shared))
        origin: Origin = ()
        for life in slot.lives:
            origin = merge_origins(origin, life.origin)
        place = _innermost_common([path for life in slot.lives for path in life.paths])
        around.setdefault(id(place), []).append((shared, origin))
        gone.update(buffers)

    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store | Prefetch) and node.buffer in same:
            return replace(node, buffer=same[node.buffer])
        return node

    moved = _move_allocations(body, gone, around)
    if flat:
        moved = with_flat_accesses(moved, flat)
    return rewrite(moved, rule) if same else moved


def _layout(buffer: Buffer) -> object:
    return tuple(e if isinstance(e, int) else structural_key(e) for e in buffer.shape), tuple(
        e if isinstance(e, int) else structural_key(e) for e in buffer.strides
    )


def _shared_buffer(buffers: list[Buffer]) -> Buffer:
    first = buffers[0]
    names = list(dict.fromkeys(buffer.name for buffer in buffers))
    name = "_".join(names[:3]) + (f"_and_{len(names) - 3}_more" if len(names) > 3 else "")
    alignment = max(buffer.alignment for buffer in buffers)
    if all(_layout(buffer) == _layout(first) for buffer in buffers):
        return replace(first, name=name, alignment=alignment)
    sizes = [elements_spanned(buffer) for buffer in buffers]
    known = [size for size in sizes if isinstance(size, int)]
    size = max(known) if len(known) == len(sizes) else sizes[0]
    return Buffer(name, (size,), first.dtype, first.scope, (1,), alignment)


def _innermost_common(paths: list[Path]) -> Stmt:
    """Return the innermost statement that encloses the ends of all paths."""
    common = paths[0]
    for path in paths[1:]:
        pairs = zip(common, path, strict=False)
        common = tuple(a for a, b in pairs if a is b)
    return common[-1]


def _move_allocations(
    stmt: Stmt, gone: set[Buffer], around: Mapping[int, list[tuple[Buffer, Origin]]]
) -> Stmt:
    """Remove the allocations of `gone`; allocate the buffers in `around` at their statements."""

    def visit(stmt: Stmt) -> Stmt:
        new: Stmt = stmt
        match stmt:
            case Allocate(buffer, body):
                inner = visit(body)
                if buffer in gone:
                    new = inner
                elif inner is not body:
                    new = replace(stmt, body=inner)
            case For() | Let():
                inner = visit(stmt.body)
                new = stmt if inner is stmt.body else replace(stmt, body=inner)
            case Seq(statements):
                items = tuple(visit(item) for item in statements)
                is_same = all(a is b for a, b in zip(items, statements, strict=True))
                new = stmt if is_same else Seq(items)
            case If(condition, then, otherwise):
                rest = None if otherwise is None else visit(otherwise)
                branch = visit(then)
                is_same = branch is then and rest is otherwise
                new = stmt if is_same else If(condition, branch, rest)
        for buffer, origin in around.get(id(stmt), ()):
            new = Allocate(buffer, new, origin)
        return new

    return visit(stmt)
