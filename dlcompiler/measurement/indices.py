"""Find the values of index inputs that keep every access inside its tensor.

A table of indices may hold only values that name elements, or the expression cannot be evaluated.
The search starts at one point where all indices are valid, and widens the range of each input from
there. For ``A[I[i] + 1]`` with 10 elements in ``A``, the range of ``I`` is -1 to 8.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dlcompiler import dtypes
from dlcompiler.arith import Interval
from dlcompiler.arith.bounds import bounds_of_operation
from dlcompiler.arith.interval import EVERYTHING
from dlcompiler.ir import (
    Axis,
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Not,
    Reduce,
    Region,
    Select,
    Stmt,
    Store,
    TensorLoad,
    Var,
    walk,
)
from dlcompiler.ir.operations import BinaryOp
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.te import ComputeOp, ExternOp, PlaceholderOp, Tensor
from dlcompiler.te.tensor import post_order

Spans = dict[Tensor, Interval]
_NEAR_ZERO = range(-8, 65)
_MOST_STARTS = 20_000
_MOST_CONSTANTS = 32


@dataclass(frozen=True)
class IndexRanges:
    """The valid values of the inputs that are used as indices."""

    spans: Mapping[Tensor, Interval] = field(default_factory=dict)
    """Least and greatest valid value of each input whose range was found."""
    unknown: tuple[Tensor, ...] = ()
    """Inputs for which no valid values were found."""


@dataclass(frozen=True)
class _Index:
    """An index that depends on the elements of tensors."""

    expr: Expr
    extent: int
    values: _Values
    sources: tuple[Tensor, ...]
    """The inputs whose elements it depends on."""

    def holds(self, spans: Spans) -> bool:
        """Tell whether the index is valid for all values of its inputs in `spans`."""
        reach = self.values.range(self.expr, spans)
        return reach.low >= 0 and reach.high < self.extent


def index_ranges(outputs: Sequence[Tensor], *, guarded: bool) -> IndexRanges:
    """Return the values of inputs for which every index is valid.

    Parameters
    ----------
    outputs : sequence of Tensor
        An expression of known shapes.
    guarded : bool
        Whether indices that are used only where a condition holds must be valid as well.
    """
    found = [index for index in _indices(outputs) if guarded or not index[1]]
    indices = [index for index, _ in found if index.sources]
    everything = {t: _of_dtype(t.dtype) for index in indices for t in index.sources}
    open_ones = [index for index in indices if not index.holds(everything)]
    spans: Spans = {}
    unknown: list[Tensor] = []
    for group in _groups(open_ones):
        tensors = list(dict.fromkeys(t for index in group for t in index.sources))
        solved = _solve(group, tensors)
        if solved is None:
            unknown += tensors
        else:
            spans.update(solved)
    return IndexRanges(spans, tuple(unknown))


def _groups(indices: Sequence[_Index]) -> list[list[_Index]]:
    """Group the indices: indices that depend on a common input are in one group."""
    groups: list[tuple[set[Tensor], list[_Index]]] = []
    for index in indices:
        tensors, members = set(index.sources), [index]
        apart = []
        for other_tensors, others in groups:
            if tensors & other_tensors:
                tensors |= other_tensors
                members = others + members
            else:
                apart.append((other_tensors, others))
        groups = [*apart, (tensors, members)]
    return [members for _, members in groups]


# -- solving --------------------------------------------------------------------------------------


def _solve(indices: Sequence[_Index], tensors: Sequence[Tensor]) -> Spans | None:
    """Find wide spans in which all indices are valid, by growing from one valid point."""
    limits = {tensor: _of_dtype(tensor.dtype) for tensor in tensors}
    spans = _start(indices, limits)
    if spans is None:
        return None
    for group in ([*tensors], *([tensor] for tensor in tensors)):
        for side in (1, -1):
            spans = _grown(indices, limits, spans, group, side)
    return spans


def _start(indices: Sequence[_Index], limits: Spans) -> Spans | None:
    tried = sorted(dict.fromkeys(_candidates(indices, limits)), key=abs)
    for point in itertools.islice(itertools.product(tried, repeat=len(limits)), _MOST_STARTS):
        pairs = list(zip(limits, point, strict=True))
        if all(limits[t].low <= value <= limits[t].high for t, value in pairs):
            spans = {t: Interval(value, value) for t, value in pairs}
            if all(index.holds(spans) for index in indices):
                return spans
    return None


def _candidates(indices: Sequence[_Index], tensors: Iterable[Tensor]) -> list[int]:
    """Return values that are likely to be valid: near 0, near constants, or where a dtype wraps."""
    nodes = [node for index in indices for node in walk(index.expr)]
    constants = {n.value for n in nodes if isinstance(n, Const) and isinstance(n.value, int)}
    signed = [sign * c for c in sorted(constants)[:_MOST_CONSTANTS] for sign in (1, -1)]
    result = [*_NEAR_ZERO, *signed, *map(sum, itertools.combinations_with_replacement(signed, 2))]
    for dtype in sorted({tensor.dtype for tensor in tensors if dtypes.is_int(tensor.dtype)}):
        if dtypes.bits(dtype) == 8:
            result += range(int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype)) + 1)
        result += [int(_wrapped(Interval(value, value), dtype).low) for value in result]
    return result


def _grown(
    indices: Sequence[_Index], limits: Spans, spans: Spans, tensors: Sequence[Tensor], side: int
) -> Spans:
    """Move the upper (1) or lower (-1) ends of some spans outwards while all indices are valid."""
    # The step doubles until it fails once, then halves at each failure: a binary search.
    step, is_growing = 1, True
    while step:
        wider = {**spans, **{t: _moved(spans[t], side * step, limits[t]) for t in tensors}}
        if wider != spans and all(index.holds(wider) for index in indices):
            spans = wider
            step *= 2 if is_growing else 1
        else:
            is_growing = False
            step //= 2
    return spans


def _moved(span: Interval, by: int, limit: Interval) -> Interval:
    if by > 0:
        return Interval(span.low, min(span.high + by, limit.high))
    return Interval(max(span.low + by, limit.low), span.high)


def _of_dtype(dtype: str) -> Interval:
    if dtypes.is_bool(dtype):
        return Interval(0, 1)
    if dtypes.is_float(dtype) or dtypes.is_index(dtype):
        return EVERYTHING
    return Interval(int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype)))


# -- ranges of values -----------------------------------------------------------------------------


class _Values:
    """Computes the ranges of the expressions of one operation."""

    def __init__(
        self,
        variables: Mapping[Var, Interval | Expr],
        tensors: Mapping[Buffer, Tensor] | None = None,
        stored: Mapping[Buffer, Sequence[Expr]] | None = None,
    ) -> None:
        self.variables = variables
        """Ranges of axes and loops; the values of variables that a Let binds."""
        self.tensors = tensors or {}
        """The input tensors of the buffers that statements read."""
        self.stored = stored or {}
        """The values that statements store into each other buffer."""

    def range(self, expr: Expr, spans: Spans, seen: frozenset[object] = frozenset()) -> Interval:
        """Return an interval that contains all values of an integer or bool expression."""
        return _wrapped(self._range(expr, spans, seen), expr.dtype)

    def _range(  # noqa: C901 - one case per node
        self, expr: Expr, spans: Spans, seen: frozenset[object]
    ) -> Interval:
        match expr:
            case Const(value):
                return Interval(int(value), int(value)) if _is_whole(expr) else EVERYTHING
            case Var():
                known = self.variables.get(expr, EVERYTHING)
                return known if isinstance(known, Interval) else self.range(known, spans, seen)
            case Compare() | Logical() | Not():
                return Interval(0, 1)
            case Cast(value, _):
                return self.range(value, spans, seen) if _is_whole(value) else EVERYTHING
            case Select(_, a, b) | IfThenElse(_, a, b):
                return self.range(a, spans, seen).hull(self.range(b, spans, seen))
            case Binary(op, a, b) if _is_whole(expr):
                return _combined(op, self.range(a, spans, seen), self.range(b, spans, seen))
            case Call("assume_bounds", (index,), _):
                return self.range(index, spans, seen)
            case Call("abs", (value,), _) if _is_whole(expr):
                return _absolute(self.range(value, spans, seen))
            case TensorLoad():
                return _elements(expr.tensor, spans, seen)
            case Load(buffer, _) if buffer in self.tensors:
                return _elements(self.tensors[buffer], spans, seen)
            case Load(buffer, _) if self.stored.get(buffer) and buffer not in seen:
                values = [self.range(v, spans, seen | {buffer}) for v in self.stored[buffer]]
                return functools.reduce(Interval.hull, values)
        return EVERYTHING

    def sources(self, expr: Expr, seen: frozenset[object] = frozenset()) -> Iterator[Tensor]:
        """Yield the inputs that the value of an expression depends on."""
        for node in walk(expr):
            match node:
                case TensorLoad():
                    yield from _sources(node.tensor)
                case Load(buffer, _) if buffer in self.tensors:
                    yield from _sources(self.tensors[buffer])
                case Load(buffer, _) if buffer not in seen:
                    for value in self.stored.get(buffer, ()):
                        yield from self.sources(value, seen | {buffer})
                case Var() if isinstance(known := self.variables.get(node), Expr):
                    yield from self.sources(known, seen)


def _wrapped(found: Interval, dtype: str) -> Interval:
    """Return the interval that results when numbers of an interval are converted to a dtype.

    Integers of data wrap; if only a part of the interval wraps, the result is the whole dtype.
    """
    limit = _of_dtype(dtype)
    if limit.low <= found.low and found.high <= limit.high:
        return found
    if dtypes.is_bool(dtype) or math.isinf(found.low) or math.isinf(found.high):
        return limit
    size = limit.high - limit.low + 1
    turns = (found.low - limit.low) // size
    moved = Interval(found.low - turns * size, found.high - turns * size)
    return moved if moved.high <= limit.high else limit


def _combined(op: BinaryOp, x: Interval, y: Interval) -> Interval:
    if op in ("shl", "shr") and y.low == y.high and 0 <= y.low < 64:
        op, y = "mul" if op == "shl" else "floordiv", Interval(2**y.low, 2**y.low)
    if op == "add":
        return Interval(x.low + y.low, x.high + y.high)
    if op == "sub":
        return Interval(x.low - y.high, x.high - y.low)
    return bounds_of_operation(op, x, y)


def _absolute(x: Interval) -> Interval:
    ends = abs(x.low), abs(x.high)
    return Interval(0 if x.low <= 0 <= x.high else min(ends), max(ends))


def _is_whole(expr: Expr) -> bool:
    return not dtypes.is_float(expr.dtype)


def _elements(tensor: object, spans: Spans, seen: frozenset[object]) -> Interval:
    """Return the range of a tensor's elements."""
    if not isinstance(tensor, Tensor):
        return EVERYTHING
    limit = _of_dtype(tensor.dtype)
    if isinstance(tensor.op, PlaceholderOp):
        return spans.get(tensor, limit)
    if not isinstance(tensor.op, ComputeOp) or tensor in seen:
        return limit
    body = tensor.op.bodies[tensor.op.outputs.index(tensor)]
    values = _Values(_of_axes((*tensor.op.axis, *tensor.op.reduce_axis)))
    if not isinstance(body, Reduce):
        return values.range(body, spans, seen | {tensor})
    if body.reducer.op not in ("min", "max") or math.prod(a.static_extent for a in body.axes) == 0:
        return limit
    parts = [*body.values, *body.init]
    if body.condition is not None:
        return limit
    return functools.reduce(Interval.hull, (values.range(p, spans, seen | {tensor}) for p in parts))


def _sources(tensor: object) -> Iterator[Tensor]:
    if not isinstance(tensor, Tensor):
        return
    for op in post_order([tensor]):
        if isinstance(op, PlaceholderOp):
            yield op.output(0)


def _of_axes(axes: Sequence[Axis]) -> dict[Var, Interval | Expr]:
    return {a.var: Interval(a.start, a.start + a.static_extent - 1) for a in axes}


# -- indices --------------------------------------------------------------------------------------


def _indices(outputs: Sequence[Tensor]) -> Iterator[tuple[_Index, bool]]:
    """Yield (index, whether a condition guards it) for the indices that depend on inputs."""
    for op in post_order(outputs):
        if isinstance(op, ComputeOp):
            values = _Values(_of_axes((*op.axis, *op.reduce_axis)))
            for body in op.bodies:
                yield from _in(body, values)
        elif isinstance(op, ExternOp):
            tensors = dict(zip(op.in_buffers, op.inputs, strict=True))
            variables: dict[Var, Interval | Expr] = {}
            stored: dict[Buffer, list[Expr]] = {}
            for node in walk(op.body):
                if isinstance(node, For):
                    variables[node.var] = _of_loop(node)
                elif isinstance(node, Let):
                    variables[node.var] = node.value
                elif isinstance(node, Store) and node.buffer not in tensors:
                    stored.setdefault(node.buffer, []).append(node.value)
            yield from _in(op.body, _Values(variables, tensors, stored))


def _of_loop(loop: For) -> Interval:
    count = loop.extent.value if isinstance(loop.extent, Const) else math.inf
    return Interval(0, max(count - 1, 0))


def _in(root: Node, values: _Values) -> Iterator[tuple[_Index, bool]]:
    pending, seen = [(root, False)], set()
    while pending:
        node, is_guarded = pending.pop()
        if (id(node), is_guarded) in seen:
            continue
        seen.add((id(node), is_guarded))
        for index in _of_access(node, values):
            yield index, is_guarded
        condition = getattr(node, "condition", None)
        guards = isinstance(node, If | IfThenElse | Reduce) and condition is not None
        for child in children(node):
            if isinstance(child, Expr | Stmt):
                pending.append((child, is_guarded or (guards and child is not condition)))


def _of_access(node: Node, values: _Values) -> Iterator[_Index]:
    match node:
        case TensorLoad(tensor, indices):
            shape: Sequence[object] = tensor.shape
        case Load(buffer, indices) | Store(buffer, indices) | Region(buffer, indices):
            shape = buffer.shape
        case _:
            return
    for expr, extent in zip(indices, shape, strict=True):
        sources = tuple(dict.fromkeys(values.sources(expr)))
        if sources and isinstance(extent, int):
            yield _Index(expr, extent, values, sources)
