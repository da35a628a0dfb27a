"""Bounds checks of the reads in an expression.

Each index of each read is either proved to be inside its tensor, refused with a point where it is
outside, or left open. An open read is checked when the program is called, if a formula of symbols
decides it (`requirements`), and otherwise when the program runs (`open_reads`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.arith.implication import implies
from dlcompiler.arith.overflow import is_limited, limits_of_data, overflow
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    Reduce,
    TensorHandle,
    TensorLoad,
    Var,
    extent_expr,
    free_vars,
    index_const,
    numeric,
    substitute,
    walk,
)
from dlcompiler.ir.guards import MAX_WAYS, Guards, guarded
from dlcompiler.te.element_plan import NO_PLAN
from dlcompiler.te.elements import Block, Elements
from dlcompiler.te.requirements import index_ends
from dlcompiler.te.tensor import ComputeOp, PlaceholderOp, Tensor

MAX_CORNER_AXES = 8
"""Axes of an index up to which all corners, 2 to this power, are tried."""
MAX_POINTS = 2**16
"""Points of the axes of an index up to which all are tried."""
UNKNOWN = Interval(0, math.inf)
"""The range of a symbol that is an extent."""

Point: TypeAlias = dict[Var, int]


@dataclass(frozen=True, slots=True, eq=False)
class OpenRead:
    """A read with an index that is not proved to be inside: it is checked when the program runs.

    It happens where all `guards` hold. A guard is evaluated only where those before it hold.
    """

    load: TensorLoad
    dimension: int
    guards: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    """The read happens once for each point of these axes, so never if one of them is empty."""

    @property
    def index(self) -> Expr:
        """The index in question."""
        return self.load.indices[self.dimension]

    @property
    def extent(self) -> Extent:
        """The extent of the dimension: the index must be below it."""
        return self.load.tensor.shape[self.dimension]


def check_accesses(
    body: Expr, axes: Sequence[Axis], where: str, left: Collection[TensorHandle] = ()
) -> None:
    """Refuse an expression that reads outside a tensor for some values of the axes.

    An affine index is extreme at corners of the iteration space, so the corners are tried. An index
    that is not affine, or is read under a guard, is tried at all points if they are at most 65536.
    A read is refused only if such a point is found. Against a symbolic extent, only an index below
    0 is certainly outside.

    Parameters
    ----------
    body : Expr
        The expression of an element.
    axes : sequence of Axis
        The axes that it depends on.
    where : str
        Names the operation in errors.
    left : collection of TensorHandle
        Tensors whose first index is not checked here: they may be states of a scan.

    Raises
    ------
    ExpressionError
        With values of the axes for which the index is outside; if an index may overflow 64 bits; if
        too many combinations of conditions lead to a read to look at each.
    """
    _refuse_overflow(body, axes, where)
    for load, guards, domain in _reads(body, axes):
        for dimension, (index, extent) in enumerate(
            zip(load.indices, load.tensor.shape, strict=True)
        ):
            if dimension == 0 and load.tensor in left:
                continue
            if domain.proves(index, extent, guards or ()):
                continue
            if guards is None:
                if domain.is_inside(index, extent, ()):
                    continue
                raise _too_many_ways(
                    where, load, "compute what contains it in a te.compute of its own"
                )
            for point, value in domain.extremes(index, guards):
                is_outside = value < 0 or (isinstance(extent, int) and value >= extent)
                if is_outside and all(holds_at(guard, point) for guard in guards):
                    raise _outside(load, dimension, guards, point, value, where)


def _refuse_overflow(body: Expr, axes: Sequence[Axis], where: str) -> None:
    domain = _Domain(axes)
    found = None if domain.is_empty else overflow(body, domain.analyzer.bounds_of)
    if found is not None:
        ends = domain.analyzer.interval(found)
        raise ExpressionError(
            where,
            f"the index {found} does not fit 64 bits",
            got=f"values from {ends.low} to {ends.high}",
            expected=f"{-(2**63)} to {2**63 - 1}",
            hint="keep the intermediate results small: take the remainder before the product",
        )


def _too_many_ways(where: str, load: TensorLoad, hint: str) -> ExpressionError:
    return ExpressionError(
        where,
        f"it is not proved that {load} lies inside {load.tensor.name}",
        because=f"more than {MAX_WAYS} combinations of conditions lead to it",
        hint=hint,
    )


def _outside(
    load: TensorLoad,
    dimension: int,
    guards: Sequence[Expr],
    point: Point,
    value: int,
    where: str,
) -> ExpressionError:
    tensor = load.tensor
    at = ", ".join(f"{var.name}={n}" for var, n in point.items()) or "every point"
    shape = ", ".join(map(str, tensor.shape))
    return ExpressionError(
        where,
        f"{load} lies outside {tensor.name} at {at}",
        got=f"index {value} in dimension {dimension}",
        expected=f"0 to {extent_text(tensor.shape[dimension])}, as {tensor.name} has the shape "
        f"({shape}{',' * (len(tensor.shape) == 1)})",
        because=f"{' and '.join(map(str, guards))} holds there" if guards else None,
        hint=f"guard it{' more narrowly' if guards else ''}: "
        "te.if_then_else(condition, element, other)",
    )


def extent_text(extent: Extent) -> str:
    """Return the largest index of a dimension of a given extent, as text."""
    return str(extent - 1) if isinstance(extent, int) else f"{extent} - 1"


@lru_cache(maxsize=1024)  # a tuner lowers one expression a thousand times
def open_reads(body: Expr, axes: tuple[Axis, ...], first: int = 0) -> tuple[OpenRead, ...]:
    """Return the reads that are not proved to be inside their tensor.

    Parameters
    ----------
    body
        The expression of an element.
    axes
        The axes that it depends on.
    first
        The first value of the first axis; in a recurrence, the rows before it are given.

    Returns
    -------
    tuple of OpenRead
        Without reads whose index is promised to be inside (`te.assume_bounds`), and those that are
        checked once for all elements when the program is called (`requirements`).

    Raises
    ------
    ExpressionError
        If too many combinations of conditions lead to such a read to check it under each.
    """
    found = []
    for load, guards, domain in _reads(body, axes, first):
        pairs = zip(load.indices, load.tensor.shape, strict=True)
        for dimension, (index, extent) in enumerate(pairs):
            if domain.is_inside(index, extent, guards or ()):
                continue
            if guards is None:
                hint = "compute the stage that contains it at a loop or at the root, not inline"
                raise _too_many_ways("lower", load, hint)
            found.append(OpenRead(load, dimension, guards, tuple(domain.axes)))
    return tuple(found)


def _reads(
    body: Expr, axes: Sequence[Axis], first: int = 0
) -> Iterator[tuple[TensorLoad, Guards | None, _Domain]]:
    """Yield the reads that happen, with their guards and the ranges of the axes.

    The start value of a reduction is read once for each element, even if the reduction has no
    points: only the data axes matter for it.
    """
    whole = start = _Domain(axes, first)
    at_start = set[int]()
    if isinstance(body, Reduce) and body.init:
        reduced = {axis.var for axis in body.axes}
        start = _Domain([axis for axis in axes if axis.var not in reduced], first)
        at_start = {id(node) for value in body.init for node in walk(value)}
    for load, guards in guarded(body, TensorLoad):
        domain = start if id(load) in at_start else whole
        if not domain.is_empty:
            yield load, guards, domain


def is_assumed(index: Expr) -> bool:
    """Tell whether all of an index is in `te.assume_bounds`, which promises that it is inside."""
    while isinstance(index, Cast):
        index = index.value
    return isinstance(index, Call) and index.name == "assume_bounds"


class _Domain:
    """The iteration space of an operation; proves or tries out that indices are inside."""

    def __init__(self, axes: Sequence[Axis], first: int = 0) -> None:
        self.axes = axes
        numbers = [axis for axis in axes if isinstance(axis.extent, int)]
        self.first = dict.fromkeys((axis.var for axis in axes), 0)
        self.first.update({axis.var: first for axis in axes[:1]})
        self.extents = {axis.var: axis.static_extent for axis in numbers}
        """The extents of the axes whose extent is a number; [1]."""
        self.is_empty = any(n <= self.first[var] for var, n in self.extents.items())
        self.ranges = {var: Interval(self.first[var], n - 1) for var, n in self.extents.items()}
        symbolic = {a.var: extent_expr(a.extent) for a in axes if not isinstance(a.extent, int)}
        self.analyzer = Analyzer(self.ranges, symbolic)
        self.all_extents = {axis.var: extent_expr(axis.extent) for axis in axes}
        for axis in axes:
            self.add_size(axis.extent)

    def add_size(self, extent: Extent) -> None:
        if isinstance(extent, Var):
            self.ranges.setdefault(extent, UNKNOWN)

    def proves(self, index: Expr, extent: Extent, guards: Sequence[Expr]) -> bool:
        """Tell whether an index is proved to be in [0, extent) wherever the guards hold."""
        self.add_size(extent)
        of_index = self.analyzer.interval
        if limits_of_data(index, of_index):
            return False
        guards = [guard for guard in guards if is_limited(guard, of_index)]
        bounds = (Compare("ge", index, index_const(0)), Compare("lt", index, extent_expr(extent)))
        return all(implies(guards, bound, self.analyzer) for bound in bounds)

    def is_inside(self, index: Expr, extent: Extent, guards: Sequence[Expr]) -> bool:
        """Tell whether an index needs no check where the guards hold."""
        return (
            is_assumed(index)
            or (not guards and self.is_required(index, extent))
            or self.proves(index, extent, guards)
            or self.was_tried(index, extent, guards)
        )

    def is_required(self, index: Expr, extent: Extent) -> bool:
        """Tell whether the check is a condition on symbols, done at the call (`requirements`)."""
        has_symbols = not isinstance(extent, int) or not free_vars(index) <= self.extents.keys()
        return has_symbols and index_ends(index, self.all_extents) is not None

    def was_tried(self, index: Expr, extent: Extent, guards: Sequence[Expr]) -> bool:
        """Tell whether an index was evaluated at all points, and is inside at each."""
        if not isinstance(extent, int):
            return False
        found = list(self.at_points(index, guards))
        return bool(found) and all(0 <= value < extent for _, value in found)

    def extremes(self, index: Expr, guards: Sequence[Expr]) -> Iterator[tuple[Point, int]]:
        """Yield points at which an index may be smallest or largest, with its value there."""
        yield from self.at_corners(index, guards)
        if guards or numeric.linear_form(index) is None:
            yield from self.at_points(index, guards)

    def at_corners(self, index: Expr, guards: Sequence[Expr]) -> Iterator[tuple[Point, int]]:
        """Yield the value of an index at the corners of the axes that it and its guards use."""
        used = set[Var]().union(*map(free_vars, (index, *guards)))
        names = sorted(used & self.extents.keys(), key=lambda var: var.name)
        if len(names) > MAX_CORNER_AXES:
            return
        ends = ((self.first[var], self.extents[var] - 1) for var in names)
        for corner in itertools.product(*ends):
            point = dict(zip(names, corner, strict=True))
            value = _at(index, point)
            if isinstance(value, Const):
                yield point, int(value.value)

    def at_points(self, index: Expr, guards: Sequence[Expr]) -> Iterator[tuple[Point, int]]:
        """Evaluate an index at all points, and yield those where it is smallest and largest.

        Nothing is yielded if there are too many points. Guards that depend on elements of tensors
        count as true, since the elements are not known.
        """
        known = [guard for guard in guards if self.is_known(guard)]
        used = tuple(
            axis for axis in self.axes if any(axis.var in free_vars(e) for e in (index, *known))
        )
        count = math.prod(axis.static_extent for axis in used if isinstance(axis.extent, int))
        if not self.is_known(index) or count > MAX_POINTS:
            return
        block = Block.whole(used)
        elements = Elements(ComputeOp("index", used, (index,)), {}, block, NO_PLAN, is_wide=False)
        with numeric.quiet():
            values = np.broadcast_to(elements.of(index), block.extents)
            holds = np.ones(block.extents, bool)
            for guard in known:
                holds &= elements.of(guard)
        if used and used[0] is self.axes[0]:
            holds[: self.first[used[0].var]] = False  # steps that are given
        if not holds.any():
            return
        places = np.flatnonzero(holds)
        inside = values.ravel()[places]
        for place in (places[inside.argmin()], places[inside.argmax()]):
            point = np.unravel_index(place, values.shape)
            yield {a.var: int(n) for a, n in zip(used, point, strict=True)}, int(values[point])

    def is_known(self, expr: Expr) -> bool:
        """Tell whether an expression depends only on axes whose extents are numbers."""
        has_loads = any(isinstance(node, TensorLoad) for node in walk(expr))
        return not has_loads and free_vars(expr) <= self.extents.keys()


def _at(expr: Expr, point: Point) -> Expr:
    fixed = substitute(expr, {var: index_const(n) for var, n in point.items()})
    return Analyzer({}).simplify(fixed)


def holds_at(guard: Expr, point: Point) -> bool:
    """Tell whether a condition certainly holds at a point."""
    value = _at(guard, point)
    return isinstance(value, Const) and bool(value.value)


def earlier_reads(bodies: Iterable[Expr], axes: Sequence[Axis]) -> frozenset[TensorHandle]:
    """Return the placeholders that are read only as ``A[i - c, …]``, with i the first axis.

    They may be states of a scan, whose first rows come from its inits.
    """
    found: dict[TensorHandle, bool] = {}
    for load in (node for body in bodies for node in walk(body) if isinstance(node, TensorLoad)):
        if not axes or not load.indices or not isinstance(load.tensor, Tensor):
            continue
        terms, constant = numeric.linear_form(load.indices[0]) or ({}, 0)
        is_input = isinstance(load.tensor.op, PlaceholderOp)
        is_earlier = is_input and terms == {axes[0].var: 1} and constant < 0
        found[load.tensor] = is_earlier and found.get(load.tensor, True)
    return frozenset(tensor for tensor, is_earlier in found.items() if is_earlier)
