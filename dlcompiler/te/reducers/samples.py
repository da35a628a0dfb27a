"""Random values and partial results of a reduction, on which the laws of its reducer are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir import (
    Const,
    Expr,
    Reduce,
    Reducer,
    TensorLoad,
    Var,
    free_vars,
    rewrite,
    structural_key,
    substitute,
    walk,
)
from dlcompiler.ir.numeric import quiet, storage
from dlcompiler.ir.rewrite import Node
from dlcompiler.te.element_plan import plan_of
from dlcompiler.te.elements import NOWHERE, Array, Elements
from dlcompiler.te.roundings import rounds
from dlcompiler.te.tensor import ComputeOp, Tensor

Partial: TypeAlias = list[Array]

PART = 1024
"""Number of samples of each of five kinds: small, special and random numbers, numbers near a
constant of the reducer, and numbers of the same size as one."""
ROWS = 5 * PART
SMALL = (1, 2, 3, 4, -1, -2, 0)
"""Few values, so that equal ones occur in one sample; their sums are exact in any order."""
SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 5.0, -5.0)
MAX_INLINED = 3
"""Producer stages, one behind the other, whose expressions are inlined into a value; [1]."""
MAX_LOADS = 64
"""Different elements of tensors in a value, above which no further stage is inlined; [1]."""
UNKNOWN_EXTENT = 1024
"""Value used for an extent that is known only when the program runs; [1]."""
RARE = 0.1
"""A condition that holds for a smaller part of the samples is ignored: too few samples remain."""
TOLERANCE = 1e-6
"""Difference of two sides in float64 that counts as rounding, relative to the largest number."""


class Samples:
    """Samples of a reduction: row n of each array belongs to sample n.

    Parameters
    ----------
    head : Reduce
        The reduction.
    is_ordered : bool
        Draw no NaN.

    Attributes
    ----------
    nothing : list of ndarray
        The identity.
    partials : list of ndarray
        Partial results of zero to two values, from the identity or from the value of ``init=``.
    others : list of ndarray
        Partial results of zero to two values, from the identity.
    values : list of list of ndarray
        The values at two further points.
    """

    def __init__(self, head: Reduce, *, is_ordered: bool = False) -> None:
        self.reducer: Reducer = head.reducer
        results = head.reducer.results
        self.is_rounded = any(rounds(x) for x in results if dtypes.is_float(x.dtype))
        self.constants = _constants(results)
        self.is_ordered = is_ordered
        self.rng = np.random.default_rng(0)
        self.valid = np.ones(ROWS, bool)
        points = _Points(head, self)
        with quiet():
            self.nothing = self.computed(head.reducer.identities, {})
            start = self.nothing
            if head.init:
                given = self.computed(points.init, points.draw())
                start = _where(self.rng.random(ROWS) < 0.5, given, start)
            self.partials = self.partial(points, start)
            self.others = self.partial(points, self.nothing)
            drawn = [self._point(points) for _ in range(2)]
        self.values = [values for values, _ in drawn]
        for _, counts in drawn:
            self.valid &= counts

    def merge(self, a: Partial, b: Partial) -> Partial:
        """Apply the reducer to two partial results, or to a partial result and a value."""
        variables = dict(zip((*self.reducer.lhs, *self.reducer.rhs), (*a, *b), strict=True))
        with quiet():
            return self.computed(self.reducer.results, variables)

    def difference(
        self,
        sides: tuple[Partial, Partial],
        text: str,
        shown: Sequence[Partial],
        *,
        is_exact: bool = False,
    ) -> str | None:
        """Return the first sample for which two sides of a law differ, as text; None if none does.

        Parameters
        ----------
        sides : pair of list of ndarray
            Results that the law says are equal.
        text : str
            Format string; its arguments are the items of `shown`, then the two sides.
        shown : sequence of list of ndarray
            The partial results and values from which the sides are computed.
        is_exact : bool
            Whether to report a difference that rounding explains.
        """
        with quiet():
            scale = _largest([array for part in (*shown, *sides) for array in part])
            slack = scale * (TOLERANCE if self.is_rounded and not is_exact else 0.0)
            wrong = self.valid & ~_same(*sides, slack)
        if not wrong.any():
            return None
        row = int(np.argmax(wrong))
        return text.format(*(_text(part, row) for part in (*shown, *sides)))

    def _point(self, points: _Points) -> tuple[Partial, Array]:
        """Draw the values at one more point, and tell for which samples they are used.

        If the reducer rounds, infinities and NaN are not used: even for a sum, whether the result
        is infinite or NaN depends on the order.
        """
        variables = points.draw()
        values = self.computed(points.values, variables)
        counts = np.ones(ROWS, bool)
        if points.condition is not None:
            (counts,) = self.computed((points.condition,), variables)
            if counts.mean() < RARE:  # too few samples would be left: use all
                counts = np.ones(ROWS, bool)
        for value in values:
            if self.is_rounded:
                counts = counts & np.isfinite(value)
            elif self.is_ordered:
                counts = counts & ~np.isnan(value)
        return values, counts

    def partial(self, points: _Points, start: Partial) -> Partial:
        """Return partial results of zero, one or two points, chosen at random for each sample."""
        result = last = start
        depth = self.rng.integers(0, 3, ROWS)
        for n in range(2):
            values, counts = self._point(points)
            last = _where(counts, self.merge(last, values), last)
            result = _where(depth > n, last, result)
        return result

    def computed(self, exprs: Sequence[Expr], variables: dict[Var, Array]) -> Partial:
        """Compute expressions of variables; floats in float64 where the reducer rounds."""
        if self.is_rounded:
            variables = {
                var: array.astype(np.float64) if dtypes.is_float(var.dtype) else array
                for var, array in variables.items()
            }
        op = ComputeOp("samples", (), tuple(exprs))
        plan = plan_of(op)
        elements = Elements(op, {}, NOWHERE, plan, is_wide=self.is_rounded, variables=variables)
        return [np.broadcast_to(elements.of(expr), (ROWS,)) for expr in exprs]


class _Points:
    """The values at the points of a reduction, as expressions of variables that are drawn.

    An element of a tensor in such an expression is replaced:

    - by the tensor's own expression, if it is computed without a reduction;
    - by a partial result, if it comes from an earlier stage of the same reducer (after `rfactor`);
    - by a variable that takes any value of its dtype, otherwise.

    The reduction axes, and elements whose indices depend on them, are drawn anew for each point;
    all other variables keep one value for all points.
    """

    def __init__(self, head: Reduce, samples: Samples) -> None:
        self.samples = samples
        self.reducer = head.reducer
        self.varying = {axis.var for axis in head.axes}
        self.extents: dict[Var, Any] = {axis.var: axis.extent for axis in head.axes}
        self.loads: dict[object, Var] = {}
        self.earlier: dict[object, tuple[tuple[Var, ...], _Points]] = {}
        self.values = [self._replaced(value, MAX_INLINED) for value in head.values]
        self.init = [self._replaced(start, MAX_INLINED) for start in head.init]
        self.condition = None
        if head.condition is not None:
            self.condition = self._replaced(head.condition, MAX_INLINED)
        conditions = () if self.condition is None else (self.condition,)
        used = {v for x in (*self.values, *self.init, *conditions) for v in free_vars(x)}
        partial = {var for group, _ in self.earlier.values() for var in group}
        self.variables = sorted(used - partial, key=lambda var: var.name)
        self.fixed = {v: self._drawn(v) for v in self.variables if v not in self.varying}

    def _replaced(self, expr: Expr, levels: int) -> Expr:
        """Replace the elements of tensors in an expression, inlining up to `levels` stages."""

        def rule(node: Node) -> Node:
            return self._element(node, levels) if isinstance(node, TensorLoad) else node

        return rewrite(expr, rule)

    def _element(self, load: TensorLoad, levels: int) -> Expr:
        """Return the replacement of an element whose indices contain no elements themselves."""
        tensor = load.tensor
        key = *(structural_key(index, rename=False) for index in load.indices), load.dtype
        if isinstance(tensor, Tensor) and isinstance(tensor.op, ComputeOp):
            body = tensor.op.bodies[tensor.value_index]
            if isinstance(body, Reduce) and body.reducer is self.reducer:
                return self._part(tensor.op, key)[tensor.value_index]
            if not isinstance(body, Reduce) and levels and len(self.loads) < MAX_LOADS:
                places = {a.var: x for a, x in zip(tensor.op.axis, load.indices, strict=True)}
                return self._replaced(substitute(body, places), levels - 1)
        if (tensor, key) not in self.loads:
            var = self.loads[tensor, key] = Var(f"{tensor.name}.{len(self.loads)}", load.dtype)
            if any(self.varying & free_vars(index) for index in load.indices):
                self.varying.add(var)
        return self.loads[tensor, key]

    def _part(self, op: ComputeOp, key: object) -> tuple[Var, ...]:
        """Return variables for one element of an earlier reduction stage, one for each result."""
        if (op, key) not in self.earlier:
            head = op.bodies[0]
            assert isinstance(head, Reduce)
            group = tuple(Var(f"{op.name}.v{n}", t.dtype) for n, t in enumerate(op.outputs))
            self.earlier[op, key] = group, _Points(head, self.samples)
        return self.earlier[op, key][0]

    def draw(self) -> dict[Var, Array]:
        """Return the values of all variables at one more point."""
        drawn = {v: self._drawn(v) for v in self.variables if v in self.varying}
        for group, points in self.earlier.values():
            part = self.samples.partial(points, self.samples.nothing)
            drawn.update(zip(group, part, strict=True))
        return self.fixed | drawn

    def _drawn(self, var: Var) -> Array:
        if var.dtype == "index":
            extent = self.extents.get(var, UNKNOWN_EXTENT)
            size = extent if isinstance(extent, int) and extent > 0 else UNKNOWN_EXTENT
            return self.samples.rng.integers(0, size, ROWS)
        if dtypes.is_bool(var.dtype):
            return self.samples.rng.random(ROWS) < 0.5
        draw = self._floats if dtypes.is_float(var.dtype) else self._integers
        with quiet():
            return draw(var.dtype)

    def _floats(self, dtype: str) -> Array:
        rng = self.samples.rng
        special: tuple[float, ...] = SPECIAL
        random = rng.standard_normal(PART) * 4
        if not self.samples.is_rounded:
            high = dtypes.LARGEST[dtype]
            special = (*SPECIAL, high, -high, 1e-7, np.inf, -np.inf)
            random *= 10.0 ** rng.uniform(-4, 4, PART)
            if not self.samples.is_ordered:
                special = (*special, np.nan, np.nan)
        constants = self.samples.constants
        near = np.where(rng.random(PART) < 0.5, rng.choice(constants, PART), 0.0)
        large = rng.choice(constants, PART) * rng.uniform(-2, 2, PART) ** 3
        parts = rng.choice(SMALL, PART), rng.choice(special, PART), random
        return np.concatenate((*parts, near + rng.choice(SMALL, PART), large)).astype(
            storage(dtype)
        )

    def _integers(self, dtype: str) -> Array:
        rng = self.samples.rng
        low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
        special = [n for n in (low, low + 1, high - 1, high, 0, 1, -1, 5, -5) if n >= low]
        constants = [int(c) for c in self.samples.constants if low <= c <= high] or [0]
        near = [min(max(c + n, low), high) for c in constants for n in SMALL]
        reach = 2 * max(abs(c) for c in constants)
        is_near = rng.random(PART) < 0.5
        kind = storage(dtype)
        small = np.array([max(n, low) for n in SMALL], kind)
        parts = (
            rng.choice(small, PART),
            rng.choice(np.array(special, kind), PART),
            rng.integers(low, high, PART, dtype=kind, endpoint=True),
            np.where(is_near, rng.choice(np.array(near, kind), PART), rng.choice(small, PART)),
            rng.integers(max(-reach, low), min(reach, high), PART, dtype=kind, endpoint=True),
        )
        return np.concatenate(parts)


def _constants(results: Sequence[Expr]) -> tuple[float, ...]:
    """Return the finite numbers in a combination: its behaviour may change near them."""
    nodes = (node for result in results for node in walk(result) if isinstance(node, Const))
    values = {node.value for node in nodes if np.isfinite(node.value)}
    return tuple(sorted(values)) or (0,)


def _where(condition: Array, a: Partial, b: Partial) -> Partial:
    return [np.where(condition, x, y) for x, y in zip(a, b, strict=True)]


def _largest(arrays: Sequence[Array]) -> Array:
    """Return the largest finite magnitude among the floats of each sample."""
    result: Array = np.zeros(ROWS)
    for array in arrays:
        if array.dtype.kind not in "biu":
            magnitude = np.abs(array.astype(np.float64))
            result = np.maximum(result, np.where(np.isfinite(magnitude), magnitude, 0.0))
    return result


def _same(left: Partial, right: Partial, slack: Array) -> Array:
    """Tell for each sample whether all results agree within `slack`; NaN equals NaN."""
    same = np.ones(ROWS, bool)
    for a, b in zip(left, right, strict=True):
        equal = np.asarray(a == b)
        if a.dtype.kind not in "biu":
            x, y = a.astype(np.float64), b.astype(np.float64)
            equal = equal | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= slack)
        same &= equal
    return same


def _text(part: Partial, row: int) -> str:
    values = [str(array[row]) for array in part]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
