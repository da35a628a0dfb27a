"""Statements of a schedule with their loops, operations and accesses, as input of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.autotune.features.geometry import Access, Geometry, Loop, StageGeometry, access_of
from dlcompiler.autotune.features.numbers import Num
from dlcompiler.ir import Binary, Call, Expr, Reduce, TensorLoad, Var, walk
from dlcompiler.schedule.state import State

MOST_READS = 3
"""Number of reads of a statement that features describe, in the order of its text."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """Statement of one stage, with its loops, operations and accesses."""

    name: str
    """Name of the stage."""
    geometry: StageGeometry
    loops: tuple[Loop, ...]
    """All loops around it, outermost first."""
    write: Access
    reads: tuple[Access, ...]
    operations: Mapping[str, int]
    """Number of operations in one iteration, by kind: ``add`` (and the like), ``mul``, ``div``,
    ``special``."""

    @property
    def signature(self) -> tuple[object, ...]:
        """Return a cache key: statements with equal keys have equal features in all skeletons."""
        geometry = self.geometry
        return (
            self.name,
            geometry.stage.tensor.dtype,
            len(geometry.enclosing),
            tuple((loop.extent, loop.kind, loop.is_reduction) for loop in self.loops),
            geometry.region,
            tuple(geometry.extents[axis] for axis in geometry.stage.op.reduce_axis),
            tuple(self.operations.values()),
            tuple((a.name, a.itemsize, a.shape, a.strides, a.widths) for a in self.accesses),
        )

    @property
    def own_loops(self) -> tuple[Loop, ...]:
        """The loops of the stage itself."""
        return self.loops[len(self.geometry.enclosing) :]

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The write, then the reads."""
        return (self.write, *self.reads)


def statements(
    state: State,
    symbols: Mapping[Var, Num] | None = None,
    regions: Mapping[str, Sequence[Num]] | None = None,
) -> tuple[Statement, ...]:
    """Return the statements of a state, producers first.

    Parameters
    ----------
    state : State
        Of a schedule, or of a symbolic schedule.
    symbols : mapping of Var to Num, optional
        Values of the symbols of a symbolic schedule.
    regions : mapping of str to sequence of Num, optional
        Of stages whose region is known exactly: its extents by dimension [1].
    """
    geometry = Geometry(state, symbols, regions)
    return tuple(_statement(geometry, own) for own in reversed(geometry.stages.values()))


def _statement(geometry: Geometry, own: StageGeometry) -> Statement:
    stage = own.stage
    itemsize = dtypes.bytes_of(stage.tensor.dtype)
    place = TensorLoad(stage.tensor, tuple(axis.var for axis in stage.op.axis))
    write = access_of(geometry, own, place, itemsize, is_write=True)
    seen: dict[object, TensorLoad] = {}
    for load in geometry.loads(stage):
        seen.setdefault((load.tensor, tuple(map(str, load.indices))), load)
    reads = tuple(
        access_of(geometry, own, load, dtypes.bytes_of(load.dtype), is_write=False)
        for load in list(seen.values())[:MOST_READS]
    )
    operations = _operations(geometry.bodies[stage.name])
    return Statement(stage.name, own, own.loops, write, reads, operations)


_KINDS = {"add": "add", "sub": "add", "min": "add", "max": "add", "mul": "mul", "div": "div"}


def _operations(parts: tuple[Expr, ...]) -> dict[str, int]:
    """Count the operations on data, not on indices, in the bodies of a stage, by kind."""
    counts = {"add": 0, "mul": 0, "div": 0, "special": 0}
    for node in {id(node): node for body in parts for node in walk(body)}.values():
        match node:
            case Binary(op, _, _) if node.dtype != "index" and op in _KINDS:
                counts[_KINDS[op]] += 1
            case Reduce():
                counts["add"] += len(node.values)
            case Call():
                counts["special"] += 1
    return counts
