"""Advice about caches: strides, tile sizes, and conflicts in sets."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.analysis.advice.subject import Finding, Rule, Subject
from dlcompiler.analysis.footprint import Nest
from dlcompiler.analysis.references import Reference
from dlcompiler.analysis.traffic import moved_bytes, occupied_bytes
from dlcompiler.ir import Buffer
from dlcompiler.schedule import Step
from dlcompiler.target import CacheLevel

WORTH = 0.02
"""Least part of a program's operations and stores that a reported loop has."""
BYTES_PER_OPERATION = 0.25
"""Bytes per operation that the shared cache can deliver: in a cycle, a core with AVX2 computes 32
operations and gets about 8 bytes from the shared cache. **Source:** Intel 64 and IA-32
Architectures Optimization Reference Manual, "Cache hierarchy" of the Skylake server processors."""
TILE = 32
"""Iterations of a tile to begin with: 4 KiB of float32 in two dimensions."""
WAYS = 8
"""Lines that a set of a cache holds: 8 in most nearest caches, 4 to 16 in others."""


def stride_one(subject: Subject) -> Iterator[Finding]:
    """Find innermost loops with a large stride, if another loop of the stage has a small one."""
    for nest in subject.innermost:
        if subject.share(nest) < WORTH:
            continue
        cost = _cost(subject, nest, nest)
        own = [
            each for each in subject.chain(nest)[:-1]
            if subject.name(each)[0] == subject.name(nest)[0] and each.trips > 1
        ]  # fmt: skip
        better = min(own, key=lambda each: _cost(subject, nest, each), default=None)
        if better is None or (least := _cost(subject, nest, better)) >= cost:
            continue
        worst = max(
            (item for item in nest.own if subject.stride(item, nest)),
            key=lambda item: abs(subject.stride(item, nest) or 0),
        )
        (stage, path), other = subject.name(nest), subject.name(better)[1]
        yield Finding(
            stage, path,
            f"consecutive iterations of {path} access elements of {worst.access.buffer.name} that "
            f"are {abs(subject.stride(worst, nest) or 0):,} apart, so that an iteration loads "
            f"{cost:.2g} cache lines; with {other} as the innermost loop it loads {least:.2g}",
            "high", _innermost(subject, better),
        )  # fmt: skip


def _cost(subject: Subject, nest: Nest, loop: Nest) -> float:
    """Return how many cache lines an iteration of `loop` would load if it were the innermost."""
    line = subject.footprint.line_bytes
    total = 0.0
    for item in {item.place: item for item in nest.own}.values():
        stride = subject.stride_bytes(item, loop)
        total += 1 if stride is None else min(abs(stride) / line, 1)
    return total


def _innermost(subject: Subject, nest: Nest) -> Step | None:
    """Return the step that makes a loop the innermost of its stage."""
    stage, axis = subject.stage(nest), subject.axis(nest)
    if stage is None or axis is None:
        return None
    inside = stage.leaves[stage.position(axis) + 1 :]
    axes = [stage.paths[leaf] for leaf in (*inside, axis)]
    return subject.step("reorder", stage.name, axes=axes)


def large_tile(subject: Subject) -> Iterator[Finding]:
    """Find data that all iterations of a loop use, but that does not fit a cache."""
    level = _own_level(subject)
    if level is None:
        return
    least = BYTES_PER_OPERATION * subject.all_operations
    for buffer in subject.footprint.root.references:
        found = _too_large(subject, buffer, level)
        if found is None or moved_bytes(subject.footprint, level, subject.target, buffer) < least:
            continue
        nest, size = found
        stage, path = subject.name(nest)
        yield Finding(
            stage, path,
            f"each of {nest.trips:,} iterations of {path} uses the same {_size(size)} "
            f"of {buffer.name}, which do not fit the cache ({level}): tile the loops inside, so "
            "that the data stays in the cache",
            "high", _tile(subject, nest),
        )  # fmt: skip


def _size(size: int) -> str:
    """Return a number of bytes with the unit of which there is at least one, from KiB on."""
    value = size / 2**10
    for unit in ("KiB", "MiB", "GiB"):
        if value < 10_000:
            return f"{value:,.0f} {unit}"
        value /= 2**10
    return f"{value:,.0f} TiB"


def _too_large(subject: Subject, buffer: Buffer, level: CacheLevel) -> tuple[Nest, int] | None:
    """Return the innermost loop that reuses data larger than a cache, and its size [byte]."""
    footprint = subject.footprint
    if math.prod(buffer.static_shape) * dtypes.bytes_of(buffer.dtype) <= level.bytes:
        return None
    for nest in reversed(footprint.nests):
        if buffer not in nest.references or nest.trips == 1:
            continue
        item = footprint.one_of(nest, buffer)
        size = occupied_bytes(item, footprint.line_bytes)
        if size > level.bytes and footprint.whole_of(nest, buffer).elements == item.elements:
            return nest, size
    return None


def _own_level(subject: Subject) -> CacheLevel | None:
    """Return the largest cache that is private to a core, or else the nearest cache."""
    caches = subject.target.caches
    return next((level for level in reversed(caches) if level.shared_by <= 2),
                caches[0] if caches else None)  # fmt: skip


def _tile(subject: Subject, nest: Nest) -> Step | None:
    """Return a step on the way to smaller tiles inside a loop.

    The first step tiles the loop with the next one, or splits the longest loop inside. If a loop
    inside has been split already, the step moves the resulting outer loop out.
    """
    stage, axis = subject.stage(nest), subject.axis(nest)
    if stage is None or axis is None:
        return None
    trips = {subject.name(each)[1]: each.trips for each in nest.walk()}
    at = stage.position(axis)
    inside = [leaf for leaf in stage.leaves[at + 1 :] if leaf.kind == "data"]
    paths = [stage.paths[leaf] for leaf in inside]
    for leaf, path in zip(inside, paths, strict=True):
        if path.endswith(".outer"):
            between = [stage.paths[each] for each in stage.leaves[at : stage.position(leaf)]]
            return subject.step("reorder", stage.name, axes=[path, *between])
    long = [path for path in paths if trips.get(path, 0) > TILE]
    if axis.kind == "data" and nest.trips > TILE and long[:1] == paths[:1] != []:
        return subject.step("tile", stage.name, x=stage.paths[axis], y=long[0],
                            x_factor=TILE, y_factor=TILE)  # fmt: skip
    if not long:
        return None
    longest = max(long, key=lambda path: trips[path])
    return subject.step("split", stage.name, axis=longest, factor=TILE)


def set_conflict(subject: Subject) -> Iterator[Finding]:
    """Find strided accesses whose lines would fit a cache, but map to few of its sets."""
    named: set[str] = set()
    for level in subject.target.caches:
        for nest in subject.footprint.nests:
            if subject.share(nest) < WORTH:
                continue
            for buffer, items in nest.references.items():
                stride = abs(subject.stride_bytes(items[0], nest) or 0)
                held = _held_lines(level, stride)
                if nest.trips <= held or buffer.name in named:
                    continue
                if not _is_used_again(subject, nest, buffer, items[0], level):
                    continue
                named.add(buffer.name)
                stage, path = subject.name(nest)
                yield Finding(
                    stage, path,
                    f"{path} accesses {nest.trips:,} cache lines of {buffer.name} that are "
                    f"{stride:,} bytes apart: they map to sets of the cache ({level}) that hold "
                    f"only {held:,}, and are evicted before they are used again; copy the data to "
                    "a separate buffer, or pad the rows",
                    "medium", _apart(subject, buffer.name, stage),
                )  # fmt: skip


def _held_lines(level: CacheLevel, stride: int) -> float:
    """Return how many cache lines at a distance of `stride` bytes fit in a cache level; [1]."""
    period = max(level.bytes // WAYS, level.line)
    if stride <= level.line:
        return math.inf
    return WAYS * (period // math.gcd(stride, period)) if period % level.line == 0 else math.inf


def _is_used_again(
    subject: Subject, nest: Nest, buffer: Buffer, item: Reference, level: CacheLevel
) -> bool:
    """Tell whether an outer loop reuses the same lines while the cache still holds them."""
    line = subject.footprint.line_bytes
    for outer in subject.chain(nest)[-2::-1]:
        held = subject.footprint.one_of(outer, buffer)
        if occupied_bytes(held, line) > level.bytes:
            return False
        if outer.trips > 1 and abs(subject.stride_bytes(item, outer) or 0) < line:
            return True
    return False


def _apart(subject: Subject, name: str, reader: str) -> Step | None:
    """Return a step that changes the strides of a buffer: a copy, or padded rows."""
    if not subject.schedule.state.has_stage(name):
        return None
    stage = subject.schedule.state.stage(name)
    if stage.is_placeholder:
        return subject.step("cache_read", name, scope="global", readers=[reader])
    if len(stage.op.axis) < 2:
        return None
    row = stage.paths[stage.op.axis[-2]]
    return subject.step("storage_align", name, axis=row, factor=64, offset=16)


RULES = (
    Rule(
        "stride-one axis not innermost",
        "K. S. McKinley, S. Carr, C.-W. Tseng, Improving Data Locality with Loop Transformations, "
        "TOPLAS 18(4), 1996, section 4",
        stride_one,
    ),
    Rule(
        "tile larger than a cache",
        "K. Goto, R. A. van de Geijn, Anatomy of High-Performance Matrix Multiplication, "
        "TOMS 34(3), 2008, section 4",
        large_tile,
    ),
    Rule(
        "power-of-two stride",
        "M. S. Lam, E. E. Rothberg, M. E. Wolf, The Cache Performance and Optimizations of "
        "Blocked Algorithms, ASPLOS 1991, section 3",
        set_conflict,
    ),
)
