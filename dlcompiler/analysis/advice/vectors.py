"""Advice about vector instructions and registers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.analysis.advice.locality import WORTH
from dlcompiler.analysis.advice.subject import Finding, Rule, Subject
from dlcompiler.analysis.footprint import Nest
from dlcompiler.analysis.operations import solutions
from dlcompiler.schedule import Step

LEAST_WASTE = 0.05
"""Least fraction of unused lanes that is reported."""
OPERAND_REGISTERS = 2
"""Registers for operands, besides the sums: one row, one broadcast element."""


def tail_waste(subject: Subject) -> Iterator[Finding]:
    """Find vectorized loops that do not fill their last vector, or compute unused elements."""
    for nest in subject.footprint.nests:
        if nest.loop is None or nest.loop.kind != "vectorized" or nest.trips < 2:
            continue
        buffer = subject.written(nest)
        if buffer is None:
            continue
        lanes = subject.lanes(buffer.dtype)
        if lanes == 1:
            continue
        vectors = math.ceil(nest.trips / lanes)
        waste = 1 - _used(subject, nest) * nest.trips / (vectors * lanes)
        if waste < LEAST_WASTE:
            continue
        stage, path = subject.name(nest)
        yield Finding(
            stage, path,
            f"{nest.trips} iterations of {path} take {vectors} "
            f"{'vector' if vectors == 1 else 'vectors'} of {lanes} lanes, and {waste:.0%} of all "
            "lanes are never used",
            "medium" if waste < 0.25 else "high", _whole_vectors(subject, nest, lanes),
        )  # fmt: skip


def _used(subject: Subject, nest: Nest) -> float:
    """Return the fraction of a loop's iterations that pass the guards on its variable."""
    part = 1.0
    for item in subject.writes(nest):
        for bound in item.bounds:
            if nest.loop is not None and nest.loop.var in bound.sum.factors:
                sizes = {var: item.extents[var] for var in bound.sum.factors}
                part = min(part, solutions([bound], sizes)[0] / math.prod(sizes.values()))
    return part


def _whole_vectors(subject: Subject, nest: Nest, lanes: int) -> Step | None:
    stage, axis = subject.stage(nest), subject.axis(nest)
    if stage is None or axis is None or axis not in stage.op.axis or axis in stage.rounded:
        return None
    return subject.step("align_extent", stage.name, axis=stage.paths[axis], factor=lanes)


def not_vectorized(subject: Subject) -> Iterator[Finding]:
    """Find innermost data loops that could be vectorized."""
    for nest in subject.innermost:
        buffer = subject.written(nest)
        if nest.loop is None or nest.loop.kind != "serial" or buffer is None:
            continue
        lanes = subject.lanes(buffer.dtype)
        if subject.is_reduction(nest) or nest.trips < lanes or lanes == 1:
            continue
        if any(subject.stride(item, nest) != 1 for item in subject.writes(nest)):
            continue
        if subject.share(nest) < WORTH:
            continue
        if any(each.loop and each.loop.kind == "vectorized" for each in subject.chain(nest)):
            continue
        stage, path = subject.name(nest)
        yield Finding(
            stage, path,
            f"{path} stores {nest.trips:,} adjacent elements one at a time, but a vector register "
            f"of the target holds {lanes}: vectorize the loop",
            "high", _vectorize(subject, stage, path, nest.trips, lanes),
        )  # fmt: skip


def _vectorize(subject: Subject, stage: str, path: str, trips: int, lanes: int) -> Step | None:
    """Return the step that vectorizes a loop, or that splits it to the length of a vector."""
    widest = max(subject.target.limits.get("max_lanes", 64), lanes)
    vectors = subject.step("vectorize", stage, axis=path) if trips <= widest else None
    return subject.first(vectors, subject.step("split", stage, axis=path, factor=lanes))


def register_pressure(subject: Subject) -> Iterator[Finding]:
    """Find tiles whose sums need more registers than the target has."""
    if not subject.emits_vectors:
        return
    registers = subject.target.vector_registers
    for nest in subject.footprint.nests:
        inside = [each for each in nest.walk() if each is not nest]
        kinds = {each.loop.kind for each in inside if each.loop is not None}
        if not subject.is_reduction(nest) or not kinds or not kinds <= {"unrolled", "vectorized"}:
            continue
        for buffer in nest.references:
            item = subject.footprint.one_of(nest, buffer)
            if not (item.is_written and item.is_read) or not dtypes.is_float(buffer.dtype):
                continue
            if subject.footprint.whole_of(nest, buffer).elements != item.elements:
                continue
            lanes = subject.lanes(buffer.dtype) if "vectorized" in kinds else 1
            unit = "vectors" if lanes > 1 else "elements"
            sums = math.ceil(item.elements / lanes)
            if sums + OPERAND_REGISTERS <= registers:
                continue
            stage, path = subject.name(nest)
            yield Finding(
                stage, path,
                f"one iteration of {path} adds to {sums} {unit} of {buffer.name}: with "
                f"{OPERAND_REGISTERS} for its operands it needs {sums + OPERAND_REGISTERS} "
                f"registers, and the target has {registers}, so that sums are stored and loaded "
                "again; make the tile inside smaller",
                "high",
            )  # fmt: skip


RULES = (
    Rule(
        "vector tail waste",
        "Halide, TailStrategy in Schedule.h: how the last, incomplete vector is computed",
        tail_waste,
    ),
    Rule(
        "innermost data loop not vectorized",
        "S. Larsen, S. Amarasinghe, Exploiting Superword Level Parallelism with Multimedia "
        "Instruction Sets, PLDI 2000, section 2",
        not_vectorized,
    ),
    Rule(
        "register pressure",
        "T. M. Low et al., Analytical Modeling Is Enough for High-Performance BLIS, TOMS 43(2), "
        "2016, section 4",
        register_pressure,
    ),
)
