"""Advice on products that were measured far below the peak of the machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.analysis.advice.computation import LATENCY_CYCLES
from dlcompiler.analysis.advice.subject import Finding, Rule, Subject
from dlcompiler.analysis.footprint import Nest
from dlcompiler.analysis.references import Reference
from dlcompiler.runtime.timing import format_rate
from dlcompiler.schedule import Step

FAR = 0.5
"""Part of the peak below which a product is slow."""
MOST_WORK = 0.5
"""Least part of the program's operations of the nest that decides its time."""
UNITS = 2
"""Multiply-adds that a core begins in a cycle. **Source:** A. Fog, Instruction tables, 2022: 2 on
Intel cores since Haswell and on AMD Zen."""
IN_PROGRESS = LATENCY_CYCLES * UNITS
"""Sums that must be computed at a time to keep these units busy."""
TILE = (4, 2)
"""Rows, and vectors in a row, of a register tile to begin with: eight sums."""
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Product:
    """A nest that adds up products of two arrays, each of which is used in several iterations."""

    nest: Nest
    """Its innermost loop."""
    step: Nest
    """The innermost loop of the reduction that is not unrolled."""
    inside: tuple[Nest, ...]
    """The loops inside `step`, outermost first."""
    reads: tuple[Reference, ...]


def products(subject: Subject) -> Iterator[Product]:
    """Yield the products that do most of the work, if they were measured far below the peak."""
    if subject.speed is None or subject.speed.share >= FAR:
        return
    for nest in subject.innermost:
        found = _product(subject, nest)
        if found is not None and subject.share(nest) >= MOST_WORK:
            yield found


def _product(subject: Subject, nest: Nest) -> Product | None:
    chain, written = subject.chain(nest), subject.written(nest)
    steps = [
        n for n, each in enumerate(chain)
        if subject.is_reduction(each) and each.loop and each.loop.kind == "serial"
    ]  # fmt: skip
    places = {item.place: item for item in nest.own if not item.access.is_write}
    reads = tuple(item for item in places.values() if item.access.buffer is not written)
    data = [each for each in chain if not subject.is_reduction(each) and each.trips > 1]
    if written is None or not steps or len(reads) < 2:
        return None
    if not all(any(subject.stride(item, each) == 0 for each in data) for item in reads):
        return None
    return Product(nest, chain[steps[-1]], tuple(chain[steps[-1] + 1 :]), reads)


def register_tile(subject: Subject) -> Iterator[Finding]:
    """Find products whose sums are not kept in enough registers."""
    for product in products(subject):
        stage, path = subject.name(product.step)
        written = subject.written(product.nest)
        assert written is not None
        inside = [each for each in product.inside if not subject.is_reduction(each)]
        kinds = {each.loop.kind for each in inside if each.loop is not None}
        elements = math.prod(each.trips for each in inside)
        sums = math.ceil(elements / (subject.lanes(written.dtype) if "vectorized" in kinds else 1))
        in_memory = "serial" in kinds
        if not in_memory and sums >= IN_PROGRESS:
            continue
        what = (
            f"each step of {path} loads and stores {elements:,} sums of {written.name}"
            if in_memory
            else f"each step of {path} adds to only {sums} "
            f"{'register' if sums == 1 else 'registers'}, and {IN_PROGRESS} sums must be in "
            "progress to keep the multiply-add units busy"
        )
        yield Finding(
            stage, path,
            f"{_said(subject)}. There is no register tile: {what}. Put the inner parts of two "
            f"split data loops inside {path}, vectorize the last, and unroll the other",
            "high", _toward_tile(subject, product),
        )  # fmt: skip


def _toward_tile(subject: Subject, product: Product) -> Step | None:
    """Return a step on the way to a register tile: split two data loops, or move parts inside."""
    stage, axis = subject.stage(product.step), subject.axis(product.step)
    if stage is None or axis is None:
        return None
    data = [leaf for leaf in stage.leaves if leaf.kind == "data" and stage.kind(leaf) == "serial"]
    inner = [leaf for leaf in data if stage.paths[leaf].endswith(".inner")]
    outside = [leaf for leaf in inner if stage.position(leaf) < stage.position(axis)]
    if outside:
        between = stage.leaves[stage.position(outside[0]) : stage.position(axis) + 1]
        rest = [leaf for leaf in between if not any(leaf is each for each in outside)]
        return subject.step("reorder", stage.name, axes=[stage.paths[x] for x in (*rest, *outside)])
    rows, vectors = TILE
    columns = vectors * subject.lanes(stage.tensor.dtype)
    pairs = itertools.pairwise(data)
    return subject.first(*(
        subject.step("tile", stage.name, x=stage.paths[x], y=stage.paths[y],
                     x_factor=rows, y_factor=columns)
        for x, y in pairs if not inner
    ))  # fmt: skip


def packing(subject: Subject) -> Iterator[Finding]:
    """Find products that read an array in pieces that lie far apart."""
    line = subject.footprint.line_bytes
    for product in products(subject):
        stage, path = subject.name(product.step)
        for item in product.reads:
            apart = abs(subject.stride_bytes(item, product.step) or 0)
            piece = _piece_bytes(subject, item, product.inside)
            if apart <= max(line, piece):
                continue
            pages = f", and every {max(PAGE_BYTES // apart, 1)} steps a page" if (
                apart < PAGE_BYTES) else " and page"  # fmt: skip
            yield Finding(
                stage, path,
                f"{_said(subject)}. {item.access.buffer.name} is not packed: one step of {path} "
                f"reads {piece} bytes of it, and the next step reads {apart:,} bytes further on, "
                f"in another cache line{pages}. Copy it in the order in which it is read",
                "high", _copied(subject, item.access.buffer.name, stage),
            )  # fmt: skip


def _piece_bytes(subject: Subject, item: Reference, inside: Sequence[Nest]) -> int:
    """Return the bytes of an array that the loops inside a step of the reduction read."""
    trips = [each.trips for each in inside if subject.stride(item, each)]
    return math.prod(trips) * dtypes.bytes_of(item.access.buffer.dtype)


def _copied(subject: Subject, name: str, reader: str) -> Step | None:
    if not subject.schedule.state.has_stage(name):
        return None
    return subject.step("cache_read", name, scope="global", readers=[reader])


def _said(subject: Subject) -> str:
    """Return how fast the program ran."""
    speed = subject.speed
    assert speed is not None
    threads = "1 thread" if speed.threads == 1 else f"{speed.threads} threads"
    return (
        f"the measured {format_rate(speed.gflops)} GFLOP/s are {speed.share:.0%} of the peak of "
        f"{threads} "
        f"({format_rate(speed.peak_gflops)} GFLOP/s, {speed.source})"
    )


RULES = (
    Rule(
        "no register tile",
        "K. Goto, R. A. van de Geijn, Anatomy of High-Performance Matrix Multiplication, "
        "TOMS 34(3), 2008, sections 4 and 6",
        register_tile,
    ),
    Rule(
        "not packed",
        "K. Goto, R. A. van de Geijn, Anatomy of High-Performance Matrix Multiplication, "
        "TOMS 34(3), 2008, section 5",
        packing,
    ),
)
