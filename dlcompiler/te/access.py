"""Does an expression read outside its tensors? Proved, refused with a witness, or left open."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    IfThenElse,
    Logical,
    Reduce,
    Select,
    TensorHandle,
    TensorLoad,
    Var,
    binary,
    compare,
    extent_expr,
    free_vars,
    index_const,
    numeric,
    structural_equal,
    substitute,
    walk,
)
from dlcompiler.ir.guards import MAX_WAYS, Guards, guarded
from dlcompiler.ir.operations import BinaryOp
from dlcompiler.te.evaluation.elements import Block, Elements
from dlcompiler.te.evaluation.plan import NO_PLAN
from dlcompiler.te.tensor import ComputeOp, PlaceholderOp, Tensor

MAX_CORNER_AXES = 8
MAX_POINTS = 2**16
UNKNOWN = Interval(0, math.inf)
"""The range of a symbol that is an extent."""

Requirement: TypeAlias = tuple[Expr, str]
"""A condition on symbols, and what is wrong where it does not hold."""
Point: TypeAlias = dict[Var, int]


@dataclass(frozen=True, slots=True, eq=False)
class OpenRead:
    """A read of which it is not proved that one of its indices is inside: it is checked as it runs.

    It happens where all `guards` hold, each looked at only if those before do.
    """

    load: TensorLoad
    dimension: int
    guards: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    """It happens once for each of their points: not at all where one is empty."""

    @property
    def index(self) -> Expr:
        """The index in question."""
        return self.load.indices[self.dimension]

    @property
    def extent(self) -> Extent:
        """What it must stay below."""
        return self.load.tensor.shape[self.dimension]


def check_accesses(
    body: Expr, axes: Sequence[Axis], where: str, left: Collection[TensorHandle] = ()
) -> None:
    """Refuse an element that is outside its tensor for some values of the axes.

    Looks at the corners of the iteration space, where affine indices are extreme, and at all points
    (up to 65536) of an index that is no sum or stands under a guard; it refuses only with a point
    in hand. Of a symbolic extent, only what is below 0 is certain. What is neither proved nor
    refused is checked when the program is called (`requirements`) or runs (`open_reads`).
    Of tensors that are `left` for later, the first index is not looked at.

    Raises
    ------
    ExpressionError
        With the axes' values that lead outside.
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
                raise _too_many_ways(where, load, "give what it is part of its own te.compute")
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
            hint="compute it with smaller numbers: take the remainder before the product",
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
        because=f"there {' and '.join(map(str, guards))} holds" if guards else None,
        hint=f"guard it{' more narrowly' if guards else ''}: "
        "te.if_then_else(condition, element, other)",
    )


def extent_text(extent: Extent) -> str:
    """Return the last index of a dimension, as text."""
    return str(extent - 1) if isinstance(extent, int) else f"{extent} - 1"


@lru_cache(maxsize=1024)  # a tuner lowers one expression a thousand times
def open_reads(body: Expr, axes: tuple[Axis, ...], first: int = 0) -> tuple[OpenRead, ...]:
    """Return the reads that may leave their tensor, as far as it can be proved.

    Parameters
    ----------
    body
        The expression of an element.
    axes
        The axes that it depends on.
    first
        The first value of the first axis: in a recurrence, the steps before are given.

    Returns
    -------
    tuple of OpenRead
        Without those whose index is assumed to be inside (`te.assume_bounds`), and those that a
        call answers for all elements at once (`requirements`).

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
                hint = "compute what it is part of as a stage of its own, not inline"
                raise _too_many_ways("lower", load, hint)
            found.append(OpenRead(load, dimension, guards, tuple(domain.axes)))
    return tuple(found)


def _reads(
    body: Expr, axes: Sequence[Axis], first: int = 0
) -> Iterator[tuple[TensorLoad, Guards | None, _Domain]]:
    """Yield the reads that happen, with their guards and the values that the axes take there.

    What a reduction starts from is read once for each element, also where it combines nothing.
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
    """Tell whether the author of an index vouches for all of it: see `te.assume_bounds`."""
    while isinstance(index, Cast):
        index = index.value
    return isinstance(index, Call) and index.name == "assume_bounds"


class _Domain:
    """The values that the axes of an operation take."""

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
        """Tell whether a call checks a formula of symbols before it runs: see `requirements`."""
        has_symbols = not isinstance(extent, int) or not free_vars(index) <= self.extents.keys()
        return has_symbols and _ends(index, self.all_extents) is not None

    def was_tried(self, index: Expr, extent: Extent, guards: Sequence[Expr]) -> bool:
        """Tell whether an index is inside at all points that there are."""
        if not isinstance(extent, int):
            return False
        found = list(self.at_points(index, guards))
        return bool(found) and all(0 <= value < extent for _, value in found)

    def extremes(self, index: Expr, guards: Sequence[Expr]) -> Iterator[tuple[Point, int]]:
        """Yield points where an index may be least or greatest, with its value there."""
        yield from self.at_corners(index, guards)
        if guards or numeric.linear_form(index) is None:
            yield from self.at_points(index, guards)

    def at_corners(self, index: Expr, guards: Sequence[Expr]) -> Iterator[tuple[Point, int]]:
        """Yield the corners of the axes that an index and its guards depend on."""
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
        """Yield where an index is least and greatest; nothing where there are too many points.

        Guards that depend on elements of tensors are taken to hold.
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
        """Tell whether an expression depends on axes of known extents alone."""
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
    """Return the placeholders that are read only at earlier places of the first axis.

    They may be states of a recurrence, of which the first places are given in another way.
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


def requirements(op: ComputeOp, sizes: Collection[Var]) -> tuple[Requirement, ...]:
    """Return what symbols must satisfy so that an operation reads inside its tensors.

    Parameters
    ----------
    op
        The operation.
    sizes
        Symbols that are not negative.

    Returns
    -------
    tuple of (condition, problem)
        What is proved for all sizes is left out, and so is what stands under a guard. An index is
        taken between the ends that its parts have: more than it reaches where one axis occurs in
        several parts that do not cancel.
    """
    axes = (*op.axis, *op.reduce_axis)
    shapes = (t.shape for t in (*op.input_tensors, *op.outputs))
    extents_used = (*itertools.chain(*shapes), *(axis.extent for axis in axes))
    indexed = set[Var]().union(*map(free_vars, op.bodies)) - {axis.var for axis in axes}
    if not indexed and all(isinstance(extent, int) for extent in extents_used):
        return ()
    ranges = dict.fromkeys(sizes, Interval(0, math.inf))
    extents = {axis.var: extent_expr(axis.extent) for axis in axes}
    analyzer = Analyzer(ranges, extents)
    found: dict[str, Requirement] = {}
    reads = (read for body in op.bodies for read in guarded(body, TensorLoad))
    for load in (load for load, guards in reads if not guards):
        for dimension, index in enumerate(load.indices):
            for condition in _conditions(index, load.tensor.shape[dimension], extents, analyzer):
                problem = f"{op.name} would read {load} outside dimension {dimension}"
                found.setdefault(str(condition), (condition, problem))
    return tuple(found.values())


def _conditions(
    index: Expr, extent: Extent, extents: Mapping[Var, Expr], analyzer: Analyzer
) -> Iterator[Expr]:
    """Yield the conditions under which an index is inside, where a proof fails."""
    simple = analyzer.simplify(index)
    ends = _ends(simple, extents) or _ends(index, extents)
    if ends is None:
        return
    low, high = ends
    used = [extents[var] for var in sorted(free_vars(index) & set(extents), key=lambda v: v.name)]
    inside = (
        (compare("ge", simple, 0), compare("ge", low, 0)),
        (compare("lt", simple, extent_expr(extent)), compare("lt", high, extent_expr(extent))),
    )
    for proof, condition in inside:
        if analyzer.can_prove(proof):
            continue
        wanted: Expr = analyzer.simplify(condition)
        for count in used:  # a loop that does not run reads nothing
            if not isinstance(count, Const):
                wanted = Logical("or", compare("le", count, 0), wanted)
        if not (isinstance(wanted, Const) and wanted.value):
            yield wanted


def _ends(index: Expr, extents: Mapping[Var, Expr]) -> tuple[Expr, Expr] | None:
    """Return the least and the greatest value of an index, as formulas of symbols."""
    match index:
        case Const():
            return index, index
        case Var():
            if index not in extents:
                return index, index
            return index_const(0), binary("sub", extents[index], 1)
        case Binary(op, a, b):
            left, right = _ends(a, extents), _ends(b, extents)
            return None if left is None or right is None else _binary_ends(op, left, right)
        case Select(_, a, b) | IfThenElse(_, a, b):
            left, right = _ends(a, extents), _ends(b, extents)
            if left is None or right is None:
                return None
            return binary("min", left[0], right[0]), binary("max", left[1], right[1])
    return None


def _binary_ends(
    op: BinaryOp, a: tuple[Expr, Expr], b: tuple[Expr, Expr]
) -> tuple[Expr, Expr] | None:
    match op:
        case "add" | "min" | "max":
            return binary(op, a[0], b[0]), binary(op, a[1], b[1])
        case "sub":
            return binary(op, a[0], b[1]), binary(op, a[1], b[0])
        case "mul":
            corners = [binary("mul", x, y) for x in dict.fromkeys(a) for y in dict.fromkeys(b)]
            low = high = corners[0]
            for corner in corners[1:]:
                low, high = binary("min", low, corner), binary("max", high, corner)
            return low, high
        case "floordiv" if isinstance(b[0], Const) and b[0] is b[1] and b[0].value > 0:
            return binary(op, a[0], b[0]), binary(op, a[1], b[0])
        case "floormod" if isinstance(b[0], Const) and b[0] is b[1] and b[0].value > 0:
            return index_const(0), binary("sub", b[0], 1)
        # By a divisor of any sign that all elements share: monotonic; by zero, 0.
        case "floordiv" if structural_equal(b[0], b[1], rename=False):
            ends = binary(op, a[0], b[0]), binary(op, a[1], b[0])
            return binary("min", *ends), binary("max", *ends)
        case "floormod" if structural_equal(b[0], b[1], rename=False):
            return binary("min", 0, b[0] + 1), binary("max", 0, b[0] - 1)
        case "bitand" | "bitor" | "bitxor":
            return _bitwise_ends(op, a, b)
    return None


def _bitwise_ends(
    op: BinaryOp, a: tuple[Expr, Expr], b: tuple[Expr, Expr]
) -> tuple[Expr, Expr] | None:
    """Bound bit operations: no bit is set beyond those of the operands."""
    highs = [high for low, high in (a, b) if _is_natural(low)]
    if op == "bitand" and highs:
        return index_const(0), binary("min", highs[0], highs[-1])
    if len(highs) == 2:
        return index_const(0), binary("add", *highs)
    return None


def _is_natural(low: Expr) -> bool:
    return isinstance(low, Const) and low.value >= 0
